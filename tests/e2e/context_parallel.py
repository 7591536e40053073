#!/usr/bin/env python3
"""Positions that replicas share (--cp), beside one rank with all of them.

    context_parallel.py CKC CKRUN [--flags "--target cuda ..."] [models] [forms] [bytes] [large]
    [heads] [files] [evaluation] [processes] [refusals] [some]

models: GPT-2 (labels shifted in the graph, some of them ignored), LLaMA (grouped heads, rotary
tables), BERT (no causal mask, a mask of keys; a head on the first token), GPT-2 with dropout, over
2, 3 and 4 replicas: losses of three steps and parameters are those of one rank.  forms: the same
with more samples, ranks, ZeRO, micro-batches, clipping, adapters, 16 bits, budgets, offloaded
states; the plan replays.  bytes: a sequence twice as long over two replicas has the activations of
one, byte for byte, and gathered keys and values by a closed formula; FLOPs of causal attention are
those of the replica with most, which are equal for all with two stretches each.
heads: bytes, FLOPs and the choice of exchanged heads by formulas.
large: LLaMA-3 8B with 131,072 tokens is planned from shapes.  files: a
run changes its shape every few steps.  evaluation: of samples that no batch divides; outputs.
processes: the files of virtual ranks.  What has no sense is refused with the line to type.  some:
two shapes, for other targets.  --flags: more for ckc.
"""

import json
import os
import resource
import shlex
import shutil
import sys

import numpy as np

import ck

sys.path.insert(0, ck.TOOLS)
import compare
import replay

FLAGS = shlex.split(ck.option("--flags", ""))
T, TOKENS, STEPS, SAMPLES = 12, 90, 3, 20
RTOL = 1e-5
DIMS = {
    "gpt2-dropout-ts17": ["--cp-dim", "input_ids=1"],
    "bert-cls-dynamo": ["--cp-dim", "input_ids=1"],
}
TRAIN = ["--steps", STEPS, "--lr", 0.05, "--seed", 3, "--threads", 1]
SGD = ["--optimizer", "sgd"]
HEADS = ["--cp-attention", "heads"]
DEVICE = {
    "name": "slow links",
    "product_flops": 4e11,
    "vector_flops": 6e10,
    "bandwidth": 4e10,
    "launch_seconds": 1e-6,
    "link_bytes_per_second": 1e6,
}
# name: model, samples of the step, flags of both, flags of the replicas, of which one has b samples
FORMS = {
    "samples": ("gpt2-dynamo-dyn", 4, SGD, ["--dp", 2, "--cp", 2], 2),
    "one sample each": ("gpt2-dynamo-dyn", 2, SGD, ["--dp", 2, "--cp", 3], 1),
    "many samples": ("gpt2-dynamo-dyn", 18, SGD, ["--cp", 2], 18),
    "one sample": ("llama-ts17-dyn", 1, SGD, ["--cp", 4], 1),
    "dropout": ("chargpt", 4, SGD, ["--dp", 2, "--cp", 3], 2),
    "dropout, unfused": ("chargpt", 4, [*SGD, "--attention", "unfused"], ["--dp", 2, "--cp", 2], 2),
    "dropout, ranks": ("chargpt", 4, SGD, ["--dp", 2, "--cp", 2, "--tp", 2], 2),
    "unfused": ("llama-ts17-dyn", 2, [*SGD, "--attention", "unfused"], ["--cp", 3], 2),
    "ranks": ("gpt2-dynamo-dyn", 2, SGD, ["--cp", 2, "--tp", 2], 2),
    "ranks, rows": ("llama-ts17-dyn", 2, SGD, ["--cp", 2, "--tp", 2, "--sp"], 2),
    "zero 1": ("gpt2-dynamo-dyn", 2, ["--optimizer", "sgdm"], ["--cp", 3, "--zero", 1], 2),
    "zero 2": ("gpt2-dynamo-dyn", 4, SGD, ["--dp", 2, "--cp", 2, "--zero", 2], 2),
    "zero 3": ("llama-ts17-dyn", 4, SGD, ["--dp", 2, "--cp", 3, "--zero", 3], 2),
    "zero 3, ranks": (
        "gpt2-dynamo-dyn",
        4,
        SGD,
        ["--dp", 2, "--cp", 2, "--tp", 2, "--sp", "--zero", 3],
        2,
    ),
    "zero, groups": (
        "gpt2-dynamo-dyn",
        4,
        SGD,
        ["--dp", 2, "--cp", 2, "--zero", 1, "--zero-group", 2],
        2,
    ),
    "micro": ("gpt2-dynamo-dyn", 4, SGD, ["--cp", 2, "--grad-accum", 2], 2),
    "micro of samples": (
        "gpt2-dynamo-dyn",
        4,
        SGD,
        ["--dp", 2, "--cp", 3, "--grad-accum", 2, "--zero", 2],
        1,
    ),
    "halves": ("gpt2-dynamo-dyn", 4, SGD, ["--cp", 2, "--tp", 2, "--halves", "on"], 4),
    "halves of one replica": ("gpt2-dynamo-dyn", 4, SGD, ["--cp", 3, "--halves", "on"], 4),
    "halves, zero 3": (
        "gpt2-dynamo-dyn",
        8,
        SGD,
        ["--dp", 2, "--cp", 2, "--tp", 2, "--sp", "--halves", "on", "--zero", 3],
        4,
    ),
    "halves, dropout": (
        "chargpt",
        8,
        SGD,
        ["--dp", 2, "--cp", 2, "--tp", 2, "--halves", "on"],
        4,
    ),
    "halves, heads, dropout": (
        "chargpt",
        8,
        SGD,
        ["--dp", 2, "--cp", 2, "--halves", "on", *HEADS],
        4,
    ),
    "heads": ("gpt2-dynamo-dyn", 2, SGD, ["--cp", 2, *HEADS], 2),
    "heads of one sample": ("gpt2-dynamo-dyn", 1, SGD, ["--cp", 4, *HEADS], 1),
    "heads, ranks": ("gpt2-dynamo-dyn", 2, SGD, ["--cp", 2, "--tp", 2, "--sp", *HEADS], 2),
    "heads, rotary": ("llama-ts17-dyn", 4, SGD, ["--dp", 2, "--cp", 2, "--zero", 3, *HEADS], 2),
    "heads, dropout": ("chargpt", 4, SGD, ["--dp", 2, "--cp", 2, *HEADS], 2),
    "heads, dropout, ranks": ("chargpt", 4, SGD, ["--dp", 2, "--cp", 2, "--tp", 2, *HEADS], 2),
    "heads, dropped scores": ("gpt2-dropout-ts17", 2, SGD, ["--cp", 2, *HEADS], 2),
    "heads, dropped scores, ranks": (
        "gpt2-dropout-ts17",
        2,
        SGD,
        ["--cp", 2, "--tp", 2, *HEADS],
        2,
    ),
    "heads, masks": ("bert-mlm-dynamo-dyn", 2, SGD, ["--cp", 2, *HEADS], 2),
    "heads, all again": (
        "gpt2-dynamo-dyn",
        2,
        SGD,
        ["--cp", 2, "--recompute", "full", *HEADS],
        2,
    ),
    "adapters": ("gpt2-dynamo-dyn", 2, [*SGD, "--lora", "*=2:4"], ["--cp", 3, "--zero", 3], 2),
    "all again": ("bert-mlm-dynamo-dyn", 2, SGD, ["--cp", 2, "--recompute", "full"], 2),
    "early": ("gpt2-dynamo-dyn", 2, SGD, ["--cp", 4, "--update-in-backward", "on"], 2),
    "averages": ("gpt2-dynamo-dyn", 2, [*SGD, "--ema"], ["--cp", 2, "--offload", "state"], 2),
}


def llama(layers, hidden, heads, groups, inner, vocab, t, b=1):
    """LLaMA's graph as text: shapes alone."""
    d, lines, params = hidden // heads, [], {}

    def put(text, shape=""):
        lines.append(f"\t%a{len(lines)}{shape} = {text}")
        return f"%a{len(lines) - 1}"

    def param(*shape):
        params[f"p{len(params)}"] = shape
        return f"%p{len(params) - 1}"

    def product(rows, k, n):
        return put(f"matmul {rows}, {param(k, n)}")

    def norm(x):
        lines.append(f"\t%a{len(lines)}, _ = rmsnorm {x}, {param(hidden)} {{axis=2}}")
        return put(f"reshape %a{len(lines) - 1} {{shape=[{b * t},{hidden}]}}")

    def heads_of(rows, n):
        y = put(f"reshape {product(rows, hidden, n * d)} {{shape=[{b},{t},{n},{d}]}}")
        return put(f"transpose {y} {{perm=[0,2,1,3]}}")

    def turned(x, n):
        shape, step = f": f32[{b},{n},{t},{d // 2}]", "step=[1,1,1,1]"
        first = put(f"slice {x} {{start=[0,0,0,0], {step}}}", shape)
        second = put(f"slice {x} {{start=[0,0,0,{d // 2}], {step}}}", shape)
        y = put(f"concat {put(f'neg {second}')}, {first} {{axis=3}}")
        u, v = put(f"mul {x}, {cos}"), put(f"mul {y}, {sin}")
        return put(f"add {u}, {v}")

    def back(rows):
        return put(f"reshape {rows} {{shape=[{b},{t},{hidden}]}}")

    freq = ",".join(f"{500000.0 ** (-2 * i / d):.6g}" for i in range(d // 2))
    angle = put("mul %pos, %freq")
    angle = put(f"concat {angle}, {angle} {{axis=1}}")
    angle = put(f"reshape {angle} {{shape=[1,1,{t},{d}]}}")
    cos, sin = put(f"cos {angle}"), put(f"sin {angle}")
    x = put(f"gather {param(vocab, hidden)}, %ids {{axis=0}}")
    for _ in range(layers):
        rows = norm(x)
        q, k, v = (heads_of(rows, n) for n in (heads, groups, groups))
        q, k = turned(q, heads), turned(k, groups)
        o = f"%a{len(lines)}"
        lines.append(f"\t{o}, _ = attention {q}, {k}, {v} {{scale={d**-0.5}, causal=1}}")
        o = put(f"transpose {o} {{perm=[0,2,1,3]}}")
        o = put(f"reshape {o} {{shape=[{b * t},{hidden}]}}")
        x = put(f"add {x}, {back(product(o, hidden, hidden))}")
        rows = norm(x)
        gate = put(f"silu {product(rows, hidden, inner)}")
        y = put(f"mul {gate}, {product(rows, hidden, inner)}")
        x = put(f"add {x}, {back(product(y, inner, hidden))}")
    z = product(norm(x), hidden, vocab)
    labels = put(f"reshape %labels {{shape=[{b * t}]}}")
    lines.append(f"\t%loss: f32[] output, _, _ = sce {z}, {labels} {{reduction=1, ignore=-100}}")
    head = ["graph @llama {", f"\tinput %ids: i64[{b},{t}]", f"\tinput %labels: i64[{b},{t}]"]
    head += [f"\tparam %{k}: f32[{','.join(map(str, s))}]" for k, s in params.items()]
    head += [f"\tconst %pos: f32[{t},1] = {{{','.join(map(str, range(t)))}}}"]
    head += [f"\tconst %freq: f32[1,{d // 2}] = {{{freq}}}"]
    return "\n".join([*head, *lines, "\tloss %loss", "}", ""])


class Context(ck.Bench):
    def model(self, name):
        return ck.SAMPLE if name == "chargpt" else os.path.join(ck.MODELS, name + ".onnx")

    def dims(self, name, b, t=T):
        return DIMS.get(name) or ["--dim", f"batch={b}", "--dim", f"seq={t}"]

    def data(self, name, b, t=T):
        """The same samples for any number of them."""
        rng = np.random.default_rng(7)
        ids = rng.integers(1, TOKENS, (SAMPLES, t))
        labels = np.where(
            rng.random((SAMPLES, t)) < 0.2, -100, rng.integers(1, TOKENS, (SAMPLES, t))
        )
        x = {"input_ids": ids[:b], "labels": labels[:b]}
        if name == "chargpt":
            x["tokens"] = x.pop("input_ids")
        if name.startswith("bert"):
            x["attention_mask"] = np.int64(rng.random((SAMPLES, t)) < 0.8)[:b]
            x["attention_mask"][:, 0] = 1
        if "cls" in name:
            x["labels"] = np.arange(b) % 3
        path = self.path(f"{name}{b}.{t}.npz")
        np.savez(path, **x)
        return path

    def train(self, name, b, flags, more=(), out="m", samples=None, launch=(), t=T):
        """Losses and parameters of some steps; None after a failure."""
        dims = self.dims(name, b, t)
        dims = dims if "--cp" in flags or name not in DIMS else []
        so = self.path(out + ".so")
        plan = self.path(out + ".json")
        done = self.ckc(
            self.model(name), "-o", so, "--quiet", "--json", plan, *dims, *flags, *FLAGS
        )
        if not self.must(done, f"{name} {flags}"):
            return None
        with open(plan) as f:
            text = f.read()
        faults = replay.Replay(json.loads(text)).faults
        self.check(not faults, f"{name} {flags}: replay: {faults[:3]}")
        save, log = self.path(out + ".s"), self.path(out + ".jsonl")
        args = [so, "--inputs", self.data(name, samples or b, t), *TRAIN, "--quiet", *more]
        if os.path.exists(log):
            os.remove(log)
        done = self.run([*launch, self.ckrun_path, *args, "--save", save, "--log", log])
        if not self.must(done, f"{name} {flags}: train"):
            return None
        with open(log) as f:
            losses = [x["loss"] for x in map(json.loads, f) if "loss" in x]
        return losses, compare.load(save)

    def alike(self, got, want, what, rtol=RTOL):
        if got is None or want is None:
            return
        self.check(np.allclose(got[0], want[0], rtol=rtol), f"{what}: losses {got[0]}, {want[0]}")
        a, b = got[1], want[1]
        if not self.check(set(a) == set(b), f"{what}: tensors {set(a) ^ set(b)}"):
            return
        worst = max(
            (np.abs(a[k] - b[k]).max() / max(np.abs(b[k]).max(), 1e-2), k) for k in b if b[k].size
        )
        self.check(worst[0] <= rtol, f"{what}: {worst[1]} differs by {worst[0]:.2g}")

    # ---- parts of the test ----

    def models(self):
        want = self.train("llama-ts17-dyn", 1, SGD, t=94)
        got = self.train("llama-ts17-dyn", 1, [*SGD, "--cp", 2], t=94)
        self.alike(got, want, "47 positions each")
        for name, parts in (
            ("gpt2-dynamo-dyn", (2, 3, 4)),
            ("llama-ts17-dyn", (2, 3, 4)),
            ("bert-mlm-dynamo-dyn", (2, 3, 4)),
            ("bert-cls-dynamo", (2, 3)),
            ("gpt2-dropout-ts17", (2, 3)),
        ):
            want = self.train(name, 2, SGD)
            for c in parts:
                got = self.train(name, 2, [*SGD, "--cp", c])
                self.alike(got, want, f"{name} over {c}")

    def forms(self):
        for what, (name, all_, both, flags, b) in FORMS.items():
            want = self.train(name, all_, both)
            got = self.train(name, b, [*both, *flags], samples=all_)
            self.alike(got, want, what)
        both = [*SGD, "--update-in-backward", "off"]
        want = self.train("gpt2-dynamo-dyn", 2, both, ["--clip", 0.1])
        got = self.train("gpt2-dynamo-dyn", 2, [*both, "--cp", 3, "--zero", 2], ["--clip", 0.1])
        self.alike(got, want, "clipped")
        want = self.train("llama-ts17-dyn", 2, SGD)
        got = self.train("llama-ts17-dyn", 2, [*SGD, "--dtype", "bf16", "--cp", 2])
        self.alike(got, want, "16 bits", 1e-2)
        lean = ["--cp", 2, "--zero", 3, "--memory-budget", "92%"]
        self.alike(self.train("llama-ts17-dyn", 2, [*SGD, *lean]), want, "lean")

    def some(self):
        want = self.train("gpt2-dynamo-dyn", 2, SGD)
        for flags in ["--cp", 3], ["--cp", 2, "--tp", 2, "--zero", 1]:
            self.alike(self.train("gpt2-dynamo-dyn", 2, [*SGD, *flags]), want, flags)
        want = self.train("llama-ts17-dyn", 4, SGD)
        got = self.train("llama-ts17-dyn", 2, [*SGD, "--dp", 2, "--cp", 4], samples=4)
        self.alike(got, want, "samples")
        want = self.train("chargpt", 4, SGD)
        got = self.train("chargpt", 4, [*SGD, "--cp", 2, "--tp", 2, *HEADS])
        self.alike(got, want, "heads, dropout")
        # several tiles of queries and keys
        for t, more, rtol in (98, [], RTOL), (192, [], RTOL), (192, ["--dtype", "bf16"], 2e-2):
            want = self.train("llama-ts17-dyn", 1, [*SGD, *more], t=t)
            got = self.train("llama-ts17-dyn", 1, [*SGD, "--cp", 2, *more], t=t)
            self.alike(got, want, f"{t} positions {more}", rtol)

    def plan(self, text, *flags, name="plan"):
        path = self.path(name + ".ck")
        with open(path, "w") as f:
            f.write(text)
        out = self.path(name + ".json")
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        done = self.ckc(path, "--plan-only", "--quiet", "--json", out, *flags)
        seconds = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
        if not self.must(done, f"{name} {flags}"):
            return None, seconds
        with open(out) as f:
            return json.load(f), seconds

    def bytes(self):
        layers, h, heads, groups, t, b = 2, 32, 4, 2, 24, 2
        d = h // heads
        flags = ["--update-in-backward", "off"]
        for c in 2, 3, 4:
            one = self.plan(llama(layers, h, heads, groups, 48, 40, t, b), *flags)[0]
            all_ = self.plan(
                llama(layers, h, heads, groups, 48, 40, c * t, b),
                *flags,
                "--cp",
                c,
                "--cp-dim",
                "ids=1",
            )[0]

            def saved(plan):
                return {
                    x["name"]: x["bytes"]
                    for x in plan["tensors"]
                    if x["kind"] == "activation" and x["saved"] and x["alias_of"] is None
                }

            x, y = saved(one), saved(all_)
            named = {k: v for k, v in y.items() if k.startswith("a")}
            self.check(
                named == {k: v for k, v in x.items() if k.startswith("a")} and len(named) > 10,
                f"activations of {c} * {t} positions over {c}: {named}",
            )
            # keys and values of all positions; sines, cosines, ids and labels of a part of them
            gathered = b * groups * c * t * d * 4
            others = sorted(v for k, v in y.items() if not k.startswith("a") and v > 1000)
            self.check(others == [gathered] * (2 * layers), f"gathered: {others}, {gathered}")
        # what a causal mask hides: of the last replica's queries 1 / 2 C; with two stretches a half
        # for each replica
        for t in 48, 52:
            hidden = []
            for c in 1, 2, 4:
                more = ["--cp", c, "--cp-dim", "ids=1"] if c > 1 else []
                text = llama(1, h, heads, groups, 48, 40, t, b)
                plans = [
                    self.plan(x, *flags, *more)[0]["summary"]["step_flops"]
                    for x in (text.replace("causal=1", "causal=0"), text)
                ]
                hidden.append((plans[0] - plans[1]) * c)
            # 8 divides 48; 4, but not 8, divides 52
            shares = (1, 1, 1) if t == 48 else (1, 1, 1 / 4)
            self.check(
                hidden[0] > 0 and all(x == hidden[0] * y for x, y in zip(hidden, shares)),
                f"FLOPs that the mask hides of {t} positions, over 1, 2 and 4: {hidden}",
            )

    def heads(self):
        """What exchanged heads save, compute and cost, by formulas."""
        layers, h, t, b, more = 2, 32, 24, 2, ["--cp-dim", "ids=1", "--update-in-backward", "off"]

        def sizes(plan):
            saved = (x for x in plan["tensors"] if x["kind"] == "activation" and x["saved"])
            return sorted(x["bytes"] for x in saved if x["alias_of"] is None and x["bytes"] > 1000)

        for c in 2, 4:
            one = self.plan(llama(layers, h, 4, 4, 48, 40, t, b), *more[2:])[0]
            all_ = self.plan(llama(layers, h, 4, 4, 48, 40, c * t, b), *more, "--cp", c, *HEADS)[0]
            # exchanged queries, keys, values and results; one rank computes the first three again
            want = sorted(sizes(one) + [b * h * t * 4] * 4 * layers)
            self.check(sizes(all_) == want, f"{c} * {t} over {c}: {sizes(all_)}, {want}")
        hidden = []
        for c in 1, 2, 4:  # 4, but not 8, divides 52
            flags = [*more, "--cp", c, *HEADS] if c > 1 else []
            plans = [
                self.plan(x, *flags)[0]["summary"]["step_flops"]
                for text in [llama(1, h, 4, 4, 48, 40, 52, b)]
                for x in (text.replace("causal=1", "causal=0"), text)
            ]
            hidden.append((plans[0] - plans[1]) * c)
        self.check(hidden[0] > 0 and len(set(hidden)) == 1, f"FLOPs that the mask hides: {hidden}")
        self.prices(more[:2])

    def prices(self, more):
        """The form that takes less time, by the bytes and messages of each."""
        rng, seen, d = np.random.default_rng(3), set(), 8
        rate = DEVICE["link_bytes_per_second"]
        for _ in range(40):
            c = int(rng.choice([2, 3, 4]))
            groups, t = c * int(rng.choice([1, 2])), 2 * c * int(rng.choice([1, 4, 16]))
            heads, latency = groups * int(rng.choice([1, 2, 4, 8])), rng.choice([0, 1e-5, 1e-2])
            budget = bool(rng.integers(2))
            device = self.path("device.json")
            with open(device, "w") as f:
                json.dump({**DEVICE, "link_latency_seconds": latency}, f)

            def send(n, share, c=c, t=t, latency=latency):
                part = n * t * d * 4 / share * (c - 1) / c
                return latency * (c - 1) + part / rate

            gather = (2 + budget) * 2 * send(groups, 1)
            exchange = 2 * (2 * send(heads, c) + 2 * send(groups, c)) + budget * send(heads, c)
            if abs(gather / exchange - 1) < 1e-6:
                continue
            flags = ["--cp", c, *more, "--device", device]
            flags += ["--memory-budget", "1GiB"] if budget else []
            plan = self.plan(llama(1, heads * d, heads, groups, 16, 10, t), *flags)[0]
            found = any(x["op"] == "all_to_all" for x in plan["schedule"])
            seen.add((found, budget))
            self.check(
                found == (exchange < gather),
                f"{heads} heads, {groups} of keys, {t} over {c}, {latency} s, budget {budget}: "
                f"exchanged {found}, expected {exchange} against {gather} s",
            )
        self.check(len(seen) == 4, f"prices: {seen}")

    def large(self):
        text = llama(32, 4096, 32, 8, 14336, 128256, 131072)
        flags = ["--dtype", "bf16", "--device", "H100", "--cp", 8, "--cp-dim", "ids=1"]
        plan, seconds = self.plan(text, *flags, "--dp", 8, "--zero", 3, "--memory-budget", "76GiB")
        if plan:
            print(f"LLaMA-3 8B, 131072 tokens over 8: planned in {seconds:.1f} s of CPU")
            self.check(plan["summary"]["peak_bytes"] <= 76 << 30, "LLaMA-3 8B: peak")
            self.check(seconds <= 5 or FLAGS, f"LLaMA-3 8B: {seconds:.1f} s of CPU, expected 5")

    def files(self):
        name, want = "gpt2-dynamo-dyn", None
        shapes = [
            [],
            ["--cp", 3, "--zero", 3],
            ["--cp", 2, "--tp", 2],
            ["--cp", 4, "--zero", 1],
            [],
        ]
        adam = ["--optimizer", "sgdm"]
        for i, flags in enumerate(shapes):
            more = ["--resume", self.path(f"{i - 1}.s")] if i else []
            more += ["--steps", 2 * (i + 1)]
            got = self.train(name, 2, [*adam, *flags], more, out=str(i))
            if got is None:
                return
        want = self.train(name, 2, adam, ["--steps", 2 * len(shapes)])
        self.alike((want[0][-len(got[0]) :], got[1]), (got[0], want[1]), "over changes of shape")

    def evaluation(self):
        name, lines = "gpt2-dynamo-dyn", []
        rng = np.random.default_rng(5)
        labels = np.where(rng.random((11, T)) < 0.2, -100, rng.integers(0, TOKENS, (11, T)))
        np.savez(self.path("d.npz"), input_ids=rng.integers(0, TOKENS, (11, T)), labels=labels)
        for b, flags in (2, []), (2, ["--cp", 2]), (2, ["--cp", 3, "--dp", 2]):
            so = self.path("e.so")
            self.must(
                self.ckc(
                    self.model(name),
                    "-o",
                    so,
                    *self.dims(name, b),
                    "--quiet",
                    "--eval",
                    "on",
                    "--output",
                    "logits",
                    *flags,
                    *FLAGS,
                ),
                f"evaluation {flags}",
            )
            done = self.ckrun("eval", so, "--data", "d.npz")
            self.must(done, f"evaluation {flags}")
            words = done.stdout.split("11 samples")[-1].split()
            done = self.ckrun("predict", so, "--data", "d.npz", "-o", "o.npy", "--name", "logits")
            self.must(done, f"outputs {flags}")
            lines.append((float(words[1]), np.load(self.path("o.npy"))))
        for loss, y in lines[1:]:
            self.check(abs(loss - lines[0][0]) < 1e-5, f"evaluation: {loss}, {lines[0][0]}")
            self.check(y.shape == (11, T, 96) and np.allclose(y, lines[0][1], atol=1e-5), "outputs")

    def processes(self):
        mpirun = shutil.which("mpirun")
        if not mpirun or not os.path.exists(
            os.path.join(os.path.dirname(self.ckrun_path), "ckr_mpi.so")
        ):
            print("skipped: processes, which need mpirun and ckr_mpi.so")
            return
        start = ["env", "ASAN_OPTIONS=detect_leaks=0", mpirun, "--allow-run-as-root"]
        for n, b, flags in (
            (3, 2, ["--cp", 3]),
            (4, 1, ["--dp", 2, "--cp", 2, "--zero", 3]),
            (4, 2, ["--cp", 2, "--tp", 2, "--sp"]),
            (2, 2, ["--cp", 2, *HEADS]),
            (4, 2, ["--cp", 2, "--tp", 2, *HEADS]),
        ):
            launch = [*start, "--oversubscribe", "-n", n]
            all_ = b * 2 if "--dp" in flags else b
            want = self.train("gpt2-dynamo-dyn", b, [*SGD, *flags], samples=all_, out="virtual")
            got = self.train(
                "gpt2-dynamo-dyn", b, [*SGD, *flags], samples=all_, out="apart", launch=launch
            )
            self.check(got and got[0] == want[0], f"{flags}: losses of processes")
            self.check(
                got and all(got[1][k].tobytes() == x.tobytes() for k, x in want[1].items()),
                f"{flags}: files differ",
            )

    def refusals(self):
        def no(model, flags, *words):
            done = self.ckc(model, "-o", self.path("no.so"), "--quiet", *flags)
            self.check(
                done.returncode in (1, 2) and all(w in done.stderr for w in words),
                f"{flags}: {done.returncode} {done.stderr}",
            )
            self.check(not os.path.exists(self.path("no.so")), f"{flags}: a file is left")

        vit = self.model(os.path.join("plan", "vit-dynamo"))
        positions = ["--cp", 2, "--cp-dim", "pixel_values=2"]
        no(vit, positions, "node 'node_cat' (Concat)", "runs along the sequence", "is whole")
        gpt, fixed = self.model("gpt2-dynamo-dyn"), self.model("bert-cls-dynamo")
        dims = self.dims("gpt2-dynamo-dyn", 2)
        no(gpt, [*dims, "--cp", 5], "that 5 divides, such as 10 or 15, found 12", "--dim seq=15")
        no(gpt, [*dims, "--cp", 16], "such as 16 or 32, found 12", "try: --dim seq=16")
        no(gpt, [*dims, "--cp", 0], "--cp: expected")
        no(gpt, [*dims, "--cp", "x"], "--cp: expected")
        no(gpt, [*dims, "--cp", 2000], "--cp: expected")
        no(gpt, [*dims, "--cp", 600, "--dp", 2], "at most 1024 replicas, found 1200")
        no(gpt, [*dims, "--cp", 2, "--dp", "auto"], "--cp and --dp auto cannot be combined")
        no(gpt, [*dims, "--cp", 2, "--dp", 2, "--ep", 3], "divisor of --dp times --cp, which is 4")
        auto = ["--auto", "--global-batch", 8]
        no(gpt, [*dims, "--cp", 2, *auto], "--auto chooses among replicas that have whole samples")
        no(gpt, [*dims, "--cp", 4, "--zero", 1, "--zero-group", 3], "--dp times --cp", "4; try")
        no(gpt, [*dims, "--cp-dim", "input_ids=1"], "expected --cp C", "try: --cp 2")
        no(gpt, [*dims, "--cp", 2, "--cp-dim", "input_ids"], "expected INPUT=AXIS")
        no(gpt, [*dims, "--cp", 2, "--cp-dim", "input_ids=9"], "expected INPUT=AXIS")
        no(gpt, [*dims, "--cp", 2, "--cp-dim", "x=1"], "no input of that name", "input_ids=1")
        no(gpt, [*dims, "--cp", 2, "--cp-dim", "input_ids=5"], "expected a dim of 2")
        no(fixed, ["--cp", 2], "try: --cp-dim input_ids=1")
        no(gpt, [*dims, *HEADS], "--cp-attention: expected --cp C", "try: --cp 2")
        no(gpt, [*dims, "--cp", 2, "--cp-attention", "x"], "expected auto|gather|heads")
        no(gpt, [*dims, "--cp", 3, *HEADS], "heads that 3 divides, found 4", "--cp-attention auto")
        no(gpt, [*dims, "--cp", 2, *HEADS, "--attention", "unfused"], "no fused attention")
        no(gpt, [*dims, "--cp", 2, "--tp", 4, *HEADS], "query heads that 8 divides, found 4")
        llama_ = self.model("llama-ts17-dyn")
        no(llama_, [*dims, "--cp", 4, *HEADS], "key heads that 4 divides, found 2")
        done = self.ckc(gpt, *dims, "--cp", 2, "--quiet", "-o", self.path("two.so"), *FLAGS)
        self.must(done, "two replicas")
        done = self.ckrun("two.so", "--ranks", 3, "--inputs", self.data("gpt2-dynamo-dyn", 2))
        self.check(done.returncode == 1 and "compiled for 2 replicas" in done.stderr, done.stderr)


def main():
    bench = Context()
    parts = ["models", "forms", "bytes", "heads", "large", "files", "evaluation", "processes"]
    parts += ["refusals"]
    for part in bench.names or parts:
        getattr(bench, part)()
    bench.finish()


if __name__ == "__main__":
    main()
