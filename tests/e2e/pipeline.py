#!/usr/bin/env python3
"""Pipelines (--pp) on virtual ranks, beside one rank that takes the same micro-batches.

    pipeline.py CKC CKRUN [--flags "--target cuda ..."] [models] [t5] [forms] [files] [evaluation]
    [processes] [trace] [interleaved] [second] [zero_bubble] [some] [gpus]

Stages are cut out of the graph that one rank runs, so losses, parameters and states are the same
bits; every micro-batch has other samples.  models: transformers, dropout, a U-Net with skips over
stages, statistics of batches, experts, with 2 to 4 stages and 1 to 7 micro-batches.  forms: with
ranks, replicas, ZeRO, 16 bits, budgets, optimizers, averages; with clipping, the norm of which is
summed in another order.  CKR_POISON writes NaN to what nobody reads any more.  files: a run changes
its stages every step.  evaluation: of a data set.  processes: the files of virtual ranks, by MPI
and as torchrun starts them.  trace: the turns that stages take.  interleaved: the same for ranks
with several stages, their memory, and what is refused.  second: budgets under which a stage takes
two plans, with the peak that was planned.  zero_bubble: backward in two turns (--schedule zb-h1).
some: a few of these, for other targets.  gpus: processes with an emulated GPU each, which exchange
messages by a stand-in for NCCL, also as late as may be; and one of them that fails.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys

import numpy as np

import ck
import wire

sys.path.insert(0, ck.TOOLS)
import spread
from compare import load

FLAGS = shlex.split(ck.option("--flags", ""))
STEPS, SAMPLES = 3, 56
MODELS = ["chargpt-dyn-o24", "llama-dynamo", "bert-cls-dynamo", "gpt2-dropout-ts17", "unet-dynamo"]
MODELS += ["resnet-dynamo-bn", "qwen2-moe-dyn", "clip-learnt-ts14"]
T5 = "t5-ts17-dyn"
SHAPES = [(2, 4), (3, 7), (4, 4), (2, 1)]  # stages, micro-batches
FORMS = {
    "ranks": ["--tp", 2],
    "rows": ["--tp", 2, "--sp"],
    "replicas": ["--dp", 2],
    "any replicas": ["--dp", "auto"],
    "zero 1": ["--dp", 2, "--zero", 1],
    "ranks and replicas": ["--tp", 2, "--dp", 2],
    "bf16": ["--dtype", "bf16"],
    "bf16, no masters": ["--dtype", "bf16", "--master-weights", "off"],
    "sgd": ["--optimizer", "sgd"],
    "adafactor": ["--optimizer", "adafactor"],
    "averages": ["--ema"],
    "recompute": ["--recompute", "full"],
    "adapters": ["--lora", "*.mlp.*=2:4"],
    "frozen": ["--freeze", "*layers.0*"],
}
GROUPS = "--tp", "--dp"
# ranks, stages of each, micro-batches, form
INTERLEAVED = [
    ("chargpt-dyn-o24", (2, 2), 4, []),
    ("llama-dynamo", (3, 2), 6, ["--dp", 2]),
    ("llama-dynamo", (2, 3), 2, []),
    ("llama-dynamo", (2, 2), 6, ["--tp", 2, "--dp", 2, "--zero", 1]),
    ("llama-dynamo", (2, 2), 4, ["--tp", 2, "--sp", "--dtype", "bf16"]),
    ("gpt2-dropout-ts17", (2, 2), 4, ["--recompute", "full"]),
    ("unet-dynamo", (2, 2), 4, []),
    ("resnet-dynamo-bn", (2, 2), 2, []),
]
# ranks, stages of each, micro-batches, form
SECOND = [
    ("gpt2-dynamo-dyn", (3, 1), 6, []),
    ("gpt2-dynamo-dyn", (4, 1), 7, ["--dp", 2, "--zero", 1]),
    ("chargpt-dyn-o24", (3, 1), 5, []),
    ("llama-dynamo", (4, 1), 9, ["--tp", 2, "--sp"]),
    ("gpt2-dropout-ts17", (3, 1), 7, ["--dtype", "bf16"]),
    ("llama-dynamo", (2, 2), 6, []),
    ("resnet-dynamo-bn", (3, 1), 4, []),
    ("chargpt-dyn-o24", (3, 1), 5, ["--eval", "off"]),
]
ZB = "zb-h1"
# stages, micro-batches, form
ZERO_BUBBLE = [
    ("chargpt-dyn-o24", 3, 4, []),
    ("chargpt-dyn-o24", 4, 7, ["--tp", 2]),
    ("chargpt-dyn-o24", 2, 1, []),
    ("llama-dynamo", 2, 4, ["--tp", 2, "--sp"]),
    ("llama-dynamo", 3, 2, []),
    ("llama-dynamo", 4, 9, ["--dp", 2, "--zero", 1]),
    ("llama-dynamo", 3, 5, ["--tp", 2, "--dp", 2, "--zero", 1]),
    ("llama-dynamo", 3, 5, ["--dtype", "bf16"]),
    ("llama-dynamo", 3, 5, ["--freeze", "*layers.0*"]),
    ("llama-dynamo", 2, 3, ["--lora", "*.mlp.*=2:4"]),
    ("gpt2-dropout-ts17", 4, 6, []),
    ("gpt2-dropout-ts17", 3, 5, ["--recompute", "full"]),
    ("unet-dynamo", 2, 4, []),
    ("unet-dynamo", 4, 4, ["--dp", 2, "--zero", 1]),
    ("unet-dynamo", 3, 5, ["--recompute", "full"]),
    ("resnet-dynamo-bn", 3, 4, []),
    ("qwen2-moe-dyn", 3, 4, []),
    ("bert-cls-dynamo", 4, 5, []),
    ("crf-ts17", 2, 3, []),
]
PP = ["--pp", 3, "--microbatches", 4]


def vary(x, i):
    """Another batch: every integer below its largest one, noise on others."""
    if x.dtype.kind in "iu":
        top = x.max() + 1
        return x if top <= 2 else np.where(x < 0, x, (x + i) % top)
    return x if x.dtype.kind == "b" else x + x.dtype.type(0.1) * np.roll(x, i, -1)


class Pipelines(ck.Bench):
    def model(self, stem, samples=2):
        """Flags of ckc, and a file of samples."""
        flags, _ = ck.model_flags(os.path.join(ck.MODELS, stem))
        inputs = load(os.path.join(ck.MODELS, stem + ".inputs.safetensors"))
        data = {k: np.concatenate([vary(x, i) for i in range(SAMPLES)]) for k, x in inputs.items()}
        np.savez(self.path(stem + ".npz"), **data)
        return [os.path.join(ck.MODELS, stem + ".onnx"), *flags], self.path(stem + ".npz")

    def train(self, so, data, ranks, *more, env=None):
        run = ["--data", data, "--steps", STEPS, "--seed", 5, "--threads", 1, "--quiet"]
        out = [self.path(so + x) for x in (".log", ".st")]
        for x in out:
            if os.path.exists(x):
                os.remove(x)
        done = self.ckrun(
            *(self.path(so), "--ranks", ranks, *run, "--log", out[0], "--save", out[1], *more),
            env=env,
        )
        return done, *out

    def one(self, stem, stages, micros, what, *form, near=0, run=(), env=None, cut=()):
        """stages: their number, or ranks and stages of each, or ranks and ZB; cut: more options of
        theirs."""
        flags, data = self.model(stem)
        ranks, chunks = stages if isinstance(stages, tuple) else (stages, 1)
        cut = ["--pp", ranks, "--microbatches", micros, *cut]
        if chunks != 1:
            cut += ["--schedule", ZB if chunks == ZB else f"interleaved={chunks}"]
        groups = 1
        for k in GROUPS:
            n = form[form.index(k) + 1] if k in form else 1
            groups *= 2 if n == "auto" else n
        what = f"{stem}, {stages} stages, {micros} micro-batches{what}"
        for so, own, n, poison in (
            ("one.so", ["--grad-accum", micros], groups, None),
            ("pp.so", cut, groups * ranks, env),
        ):
            done = self.ckc(*flags, *own, *form, *FLAGS, "-o", self.path(so), "--quiet")
            if not self.must(done, f"{what}: compile {own}"):
                return
            done, log, save = self.train(so, data, n, *run, env=poison)
            if not self.must(done, f"{what}: run {own}"):
                return
            if so == "one.so":
                want = ck.losses(log), ck.tensors(save)
        got = ck.losses(log), ck.tensors(save)
        if near:
            far = max(abs(a / b - 1) for a, b in zip(got[0], want[0]))
            self.check(far <= near, f"{what}: losses {want[0]} and {got[0]}")
            return
        self.check(got[0] == want[0], f"{what}: losses {want[0]} and {got[0]}")
        names = set(got[1]) ^ set(want[1])
        self.check(not names, f"{what}: only one has {sorted(names)[:4]}")
        differ = [k for k in want[1] if k in got[1] and got[1][k] != want[1][k]]
        self.check(not differ, f"{what}: {len(differ)} tensors differ, such as {differ[:3]}")

    def t5(self):
        """An encoder, whose result skips to every layer of a decoder, and a tied embedding."""
        poison = {"CKR_POISON": "1"}
        for stages, micros in ((2, 4), (3, 4), (4, 7)):
            self.one(T5, stages, micros, "", env=poison)
        for stages in ((2, 2), (3, ZB), (4, ZB)):
            self.one(T5, stages, 4, "", env=poison)
        for stages in (3, (2, 2), (2, ZB)):
            self.one(T5, stages, 4, ", ranks", "--tp", 2)

    def models(self):
        for i, stem in enumerate(MODELS):
            for k, shape in enumerate(SHAPES):
                if i == 0 or k in (i % 3, 1):
                    self.one(stem, *shape, "", env={"CKR_POISON": "1"} if k == 1 else None)

    def forms(self):
        for name, form in FORMS.items():
            self.one("llama-dynamo", 3, 5, f", {name}", *form)
        self.one("llama-dynamo", 3, 5, ", clipped", near=1e-6, run=["--clip", 0.1])
        self.one("chargpt-dyn-o24", 2, 3, ", clipped", "--tp", 2, near=1e-6, run=["--clip", 0.1])
        self.one("chargpt-dyn-o24", 2, 3, ", no dropout", "--dropout", "off")
        # one stage reads the parameter, another only its copy in 16 bits
        pieces = ["--dp", 2, "--zero", 1, "--dtype", "bf16"]
        self.one("chargpt-dyn-o24", 2, 3, ", a tied master", *pieces)
        # the last stage has no gradient but that of a parameter of both
        self.one("crf-ts17", 2, 3, ", a tie beside no other parameter")

    def files(self):
        flags, data = self.model("chargpt-dyn-o24")
        run = ["--data", data, "--seed", 5, "--threads", 1, "--quiet"]
        shapes = [["--pp", 2, "--microbatches", 4], ["--grad-accum", 4]]
        shapes += [["--pp", 3, "--microbatches", 4], ["--pp", 4, "--grad-accum", 4]]
        last = []
        for i, own in enumerate(shapes):
            so, save = self.path("f.so"), self.path("f.st")
            self.must(self.ckc(*flags, *own, "-o", so, "--quiet"), f"files: {own}")
            ranks = own[1] if own[0] == "--pp" else 1
            done = self.ckrun(so, "--ranks", ranks, *run, "--steps", i + 1, "--save", save, *last)
            if not self.must(done, f"files: run {own}"):
                return
            last = ["--resume", save]
        so, save = self.path("w.so"), self.path("w.st")
        self.must(self.ckc(*flags, "--grad-accum", 4, "-o", so, "--quiet"), "files: one rank")
        self.must(self.ckrun(so, *run, "--steps", len(shapes), "--save", save), "files: one rank")
        a, b = ck.tensors(self.path("f.st")), ck.tensors(save)
        self.check(a == b, f"files: {[k for k in b if a.get(k) != b[k]][:4]} differ")

    def evaluate(self, so, ranks, data, save, processes=False):
        """What ckrun eval says of a data set, and a file of predictions; None if one fails."""
        out = []
        for argv in ["eval", so, "--data", data], ["predict", so, "--data", data, "-o", "o.npy"]:
            argv += ["--init", save] if save else []
            argv += ["--name", "logits"] if argv[0] == "predict" else []
            if processes:
                done = spread.run(ranks, [self.ckrun_path, *argv], cwd=self.work)
            else:
                done = self.ckrun(*argv, "--ranks", ranks)
            if not self.must(done, f"evaluation: {argv}, {ranks} ranks"):
                return None
            out.append(re.findall(r"samples.*", done.stdout))
        with open(self.path("o.npy"), "rb") as f:
            return out[0], f.read()

    def evaluation(self):
        """Forward turns alone: the numbers of one rank, also between steps, by running statistics,
        and in processes of their own."""
        for stem, stages, form in (
            ("chargpt-dyn-o24", 3, []),
            ("gpt2-dropout-ts17", 4, []),
            ("resnet-dynamo-bn", 3, []),
            ("unet-dynamo", 2, ["--dp", 2]),
            ("llama-dynamo", 2, ["--tp", 2, "--dtype", "bf16"]),
        ):
            flags, data = self.model(stem)
            valid, got = ["--valid", data, "--valid-every", 2], []
            for so, own, ranks in (
                ("one.so", ["--grad-accum", 4], 1),
                ("pp.so", ["--pp", stages, "--microbatches", 4], stages),
            ):
                ranks *= 2 if form else 1
                done = self.ckc(*flags, *own, *form, "-o", self.path(so))
                self.must(done, f"evaluation: {stem} {own}")
                self.check("cannot evaluate" not in done.stderr, f"evaluation: {done.stderr}")
                done, log, save = self.train(so, data, ranks, *valid)
                self.must(done, f"evaluation: {stem} {own}: train")
                rows = [
                    {k: x for k, x in row.items() if k in ("step", "loss", "valid_loss")}
                    for row in ck.log_rows(log)
                ]
                got.append((rows, self.evaluate(so, ranks, data, save)))
            same = got[0] == got[1] and got[0][1] and got[0][1][0]
            self.check(same, f"evaluation: {stem}: {[x[1] and x[1][0] for x in got]}")
            if stem in ("resnet-dynamo-bn", "llama-dynamo"):
                apart = self.evaluate("pp.so", ranks, data, save, processes=True)
                self.check(
                    apart == got[1][1], f"evaluation: {stem}: processes: {apart and apart[0]}"
                )
        self.scaled()
        flags, data = self.model("resnet-dynamo-bn")
        so = self.path("no.so")
        self.must(self.ckc(*flags, *PP, "--eval", "off", "-o", so), "evaluation: --eval off")
        done = self.ckrun("eval", so, "--ranks", 3, "--data", data)
        words = "it was compiled with --eval off"
        self.check(done.returncode == 1 and words in done.stderr, f"evaluation: {done.stderr}")

    def scaled(self):
        """Half of a mean, of which stages may end in the middle, beside its closed formula."""
        rng = np.random.default_rng(6)
        x, labels = rng.standard_normal((10, 6), "f"), rng.integers(0, 5, 10)
        w = [rng.standard_normal(s, "f") for s in ((6, 8), (8, 5))]
        nodes = [
            wire.node("MatMul", ["x", "w0"], "h"),
            wire.node("Tanh", ["h"], "t"),
            wire.node("MatMul", ["t", "w1"], "logits"),
            wire.node("SoftmaxCrossEntropyLoss", ["logits", "labels"], "mean", ignore_index=-100),
            wire.node("Mul", ["mean", "half"], "loss"),
        ]
        inits = [wire.floats(f"w{i}", v.shape, v.ravel()) for i, v in enumerate(w)]
        inits.append(wire.floats("half", (), [0.5]))
        with open(self.path("half.onnx"), "wb") as f:
            f.write(wire.graph(nodes, inits, {"x": (1, (4, 6)), "labels": (7, (4,))}, ["loss"]))
        np.savez(self.path("half.npz"), x=x, labels=labels)
        z = np.tanh(x.astype(float) @ w[0]) @ w[1]
        want = (np.log(np.exp(z).sum(1)) - z[np.arange(10), labels]).mean() / 2
        for cut in [], ["--stage", "mean.part"], ["--stage", "t"]:
            own = ["--pp", 2, "--microbatches", 2, *cut]
            self.must(self.ckc(self.path("half.onnx"), *own, "-o", self.path("half.so")), cut)
            done = self.ckrun("eval", "half.so", "--ranks", 2, "--data", "half.npz")
            loss = re.search(r"loss +([0-9.]+)", done.stdout)
            near = loss and abs(float(loss[1]) - want) < 1e-5
            self.check(near, f"half a mean, {cut}: {done.stdout} {done.stderr}, expected {want}")

    def processes(self):
        own = ["--pp", 2, "--microbatches", 3, "--tp", 2, "--dp", 2, "--zero", 1]
        self.spread("processes", 8, own)

    def spread(self, what, n, own, *more, stem="llama-dynamo", envs=(None,)):
        """The same bits in n processes as in one."""
        flags, data = self.model(stem)
        so = self.path("p.so")
        self.must(self.ckc(*flags, *own, *FLAGS, "-o", so, "--quiet"), f"{what}: compile")
        done, log, save = self.train("p.so", data, n, *more)
        self.must(done, f"{what}: virtual ranks")
        want = ck.losses(log), ck.content(save)
        run = ["--data", data, "--steps", STEPS, "--seed", 5, "--threads", 1, "--quiet", *more]
        run += ["--log", self.path("q.log"), "--save", self.path("q.st"), "--comm-timeout", 120]
        if "--schedule" in own:
            # a folder with the part of each process
            parts = [self.path("parts/") if x == self.path("q.st") else x for x in run]
            shutil.rmtree(self.path("parts"), ignore_errors=True)
            self.must(spread.run(n, [self.ckrun_path, so, *parts], cwd=self.work), what)
            done = self.ckrun("merge", self.path("parts"), "-o", self.path("q.st"))
            self.must(done, f"{what}: merge")
            self.check(ck.content(self.path("q.st")) == want[1], f"{what}: parts differ")
        for env in envs:
            os.remove(self.path("q.log")) if os.path.exists(self.path("q.log")) else None
            done = spread.run(n, [self.ckrun_path, so, *run], cwd=self.work, env=env)
            self.must(done, f"{what} {env}: torchrun")
            self.check("emulated" not in done.stderr, f"{what} {env}: {done.stderr}")
            got = ck.losses(self.path("q.log")), ck.content(self.path("q.st"))
            self.check(got == want, f"{what} {env}: torchrun: other losses or parameters")
        mpirun = shutil.which("mpirun")
        module = os.path.join(os.path.dirname(self.ckrun_path), "ckr_mpi.so")
        if not mpirun or not os.path.exists(module):
            print("skipped: MPI, which needs mpirun and ckr_mpi.so")
            return
        os.remove(self.path("q.st"))
        start = [mpirun, "--allow-run-as-root", "--oversubscribe", "-n", n]
        done = self.run([*start, self.ckrun_path, so, *run], {"ASAN_OPTIONS": "detect_leaks=0"})
        self.must(done, f"{what}: MPI")
        got = ck.losses(self.path("q.log")), ck.content(self.path("q.st"))
        self.check(got == want, f"{what}: MPI: other losses or parameters")

    def turns(self, what, own, *rows):
        """What --trace shows of a step: a row of turns for each rank, one after the other.  A turn
        is its kind, its stage and its micro-batch (b2.0), without the stage that of the rank."""
        flags, data = self.model("chargpt-dyn-o24")
        so = self.path("t.so")
        self.must(self.ckc(*flags, *own, "-o", so, "--quiet"), f"{what}: compile")
        run = ["--data", data, "--steps", 1, "--quiet", "--trace", "t.json"]
        self.must(self.ckrun(so, "--ranks", len(rows), *run), f"{what}: run")
        events = ck.plan(self.path("t.json"))["traceEvents"]
        for rank, row in enumerate(rows):
            want = [x if "." in x else f"{x[0]}{rank}.{x[1:]}" for x in row.split()]
            turns = [e for e in events if e.get("cat") == "turn" and e["tid"] == rank + 1]
            found = [
                f"{e['name'][0]}{e['args'].get('stage', rank)}.{e['args']['micro']}" for e in turns
            ]
            # updates of a rank's stages may come in any order
            last = sum(x[0] == "u" for x in want)
            found[-last:] = sorted(found[-last:])
            self.check(found == want, f"{what}: rank {rank}: {found}")
            ends = [(e["ts"], e["ts"] + e["dur"]) for e in turns]
            apart = all(a[1] <= b[0] + 1e-3 for a, b in zip(ends, ends[1:]))
            self.check(apart, f"{what}: rank {rank}: turns overlap: {ends}")

    def trace(self):
        """1F1B: forward turns of as many micro-batches as stages follow, then forward and backward
        in turns."""
        self.turns(
            "trace",
            ["--pp", 3, "--microbatches", 4],
            "f0 f1 f2 b0 f3 b1 b2 b3 n3 u3",
            "f0 f1 b0 f2 b1 f3 b2 b3 n3 u3",
            "f0 b0 f1 b1 f2 b2 f3 b3 n3 u3",
        )

    def peak(self, so, data, ranks, most, what, *more, env=None):
        """A run touches what is planned for the rank that needs most; its losses."""
        done, log, _ = self.train(so, data, ranks, "--stats", *more, env=env)
        self.must(done, what)
        self.check(f"planned {most};" in done.stdout, f"{what}: not {most}: {done.stdout}")
        rows = ck.log_rows(log)
        peak = max(row["peak_bytes"] for row in rows)
        self.check(0.9 * most <= peak <= most, f"{what}: measured {peak}, planned {most}")
        return [row["loss"] for row in rows]

    def interleaved(self):
        for stem, stages, micros, form in INTERLEAVED:
            text = "".join(f" {x}" for x in form)
            self.one(stem, stages, micros, text, *form, env={"CKR_POISON": "1"})
        self.one("llama-dynamo", (2, 2), 4, ", clipped", near=1e-6, run=["--clip", 0.1])
        own = ["--pp", 2, "--schedule", "interleaved=2", "--microbatches", 4]
        # clipping adds up the norm over all stages in one order
        self.spread("interleaved processes", 4, [*own, "--tp", 2], "--clip", 0.1)
        self.spread("interleaved replicas", 4, [*own, "--dp", 2, "--zero", 1])
        self.interleaved_memory()
        # Narayanan et al. 2021, figure 4
        self.turns(
            "interleaved: trace",
            ["--pp", 2, "--schedule", "interleaved=2", "--microbatches", 2],
            "f0.0 f0.1 f2.0 f2.1 b2.0 b2.1 b0.0 b0.1 n0.1 n2.1 u0.1 u2.1",
            "f1.0 f1.1 f3.0 b3.0 f3.1 b3.1 b1.0 b1.1 n1.1 n3.1 u1.1 u3.1",
        )
        flags, _ = self.model("chargpt-dyn-o24")
        for more, want in (
            (["--microbatches", 7], "--microbatches 8 or --microbatches 6"),
            (["--microbatches", 1], "--microbatches 2\n"),
            (["--schedule", "interleaved=1"], "1f1b, interleaved=V with V > 1 or zb-h1"),
            (["--schedule", "zb-h2"], "1f1b, interleaved=V with V > 1 or zb-h1"),
            (["--schedule", "interleaved=1000"], "expected at most 1024 stages"),
            (["--schedule", "interleaved=500"], "can be cut into at most"),
        ):
            form = {**dict(zip(own[::2], own[1::2])), **dict([more])}
            done = self.ckc(*flags, *(x for kv in form.items() for x in kv), "--plan-only")
            self.check(done.returncode in (1, 2), f"interleaved: {more} is accepted")
            self.check(want in done.stderr, f"interleaved: {more}: {done.stderr}")

    def interleaved_memory(self):
        """The claim is what a rank touches, of all its stages; a budget is one of a rank."""
        flags, data = self.model("llama-dynamo")
        own = ["--pp", 2, "--schedule", "interleaved=2", "--microbatches", 4]
        so, plan = self.path("m.so"), self.path("m.json")
        self.must(self.ckc(*flags, *own, "--plan-only", "--json", plan), "interleaved: plan")
        free = ck.plan(plan)
        least = [s["summary"]["peak_bytes"] for s in free["stages"]]
        budget = int(free["pipeline"]["peak_bytes"] * 0.93)
        own += ["--memory-budget", budget]
        done = self.ckc(*flags, *own, "-o", so, "--json", plan)
        self.must(done, f"interleaved: budget {budget}")
        peaks = [s["summary"]["peak_bytes"] for s in ck.plan(plan)["stages"]]
        most = max(peaks[0] + peaks[2], peaks[1] + peaks[3])
        self.check(most <= budget, f"interleaved: peaks {peaks} beyond {budget}, without: {least}")
        p = ck.plan(plan)["pipeline"]
        self.check(p["peak_bytes"] == most, f"interleaved: claim {p['peak_bytes']}, {most}")
        self.least_budget(flags, own[:-2], plan)
        self.peak("m.so", data, 2, most, "interleaved: run within a budget")

    def least_budget(self, flags, own, plan):
        """One byte is refused, with the least budget, which works; a byte less does not."""
        form = [*flags, *own, "--plan-only", "--json", plan, "--memory-budget"]
        done = self.ckc(*form, 1)
        named = re.search(r"too small for rank \d.*try: --memory-budget (\d+)B", done.stderr)
        if not self.check(done.returncode == 1 and named, f"interleaved: budget 1: {done.stderr}"):
            return
        least = int(named[1])
        self.must(self.ckc(*form, least), f"interleaved: budget {least}")
        found = ck.plan(plan)["pipeline"]["peak_bytes"]
        self.check(found <= least, f"interleaved: {found} bytes within {least}")
        done = self.ckc(*form, least - 1)
        self.check(done.returncode == 1, f"interleaved: {least - 1} works too")

    def second(self):
        found = [self.second_plan(*case) for case in SECOND]
        self.check(sum(map(bool, found)) >= 5, f"second plans: found {found}")
        own = ["--pp", 3, "--microbatches", 5, "--tp", 2]
        budget, _ = self.second_budget(self.model("llama-dynamo")[0], own, "second plan") or (0, 0)
        if self.check(budget, f"second plan: no budget for {own}"):
            self.spread("second plan", 6, [*own, "--memory-budget", budget])

    def second_budget(self, flags, own, what):
        """A budget under which a stage has two plans, and the stages; None: none is known."""
        plan = self.path("second.json")
        plan_only = [*flags, *own, *FLAGS, "--plan-only", "--json", plan]
        if not self.must(self.ckc(*plan_only), what):
            return None
        peak = ck.plan(plan)["pipeline"]["peak_bytes"]
        for k in range(1, 40):
            budget = int(peak * (1 - k / 80))
            if self.ckc(*plan_only, "--memory-budget", budget).returncode:
                return None
            stages = ck.plan(plan)["stages"]
            if any("second_plan" in s for s in stages):
                return budget, stages
        return None

    def second_plan(self, stem, shape, micros, form, near=0):
        """Equal bits, and the peak that was planned, where a stage has two plans."""
        flags, _ = self.model(stem)
        own = [*form, "--pp", shape[0], "--microbatches", micros]
        own += ["--schedule", f"interleaved={shape[1]}"] if shape[1] > 1 else []
        what = f"second plan: {stem} {own}"
        found = self.second_budget(flags, own, what)
        if not found:
            return 0
        stages = shape if shape[1] > 1 else shape[0]
        budget = ["--memory-budget", f"{found[0]}B"]
        for env in None, {"CKR_POISON": "1"}:
            what_of = f", two plans {form}"
            self.one(stem, stages, micros, what_of, *form, near=near, env=env, cut=budget)
        if not FLAGS:
            self.second_peak(stem, shape, form, found[1], what)
        return found[0]

    def second_peak(self, stem, shape, form, stages, what):
        """What pp.so, which was compiled last, touches on the rank that needs most."""
        plans = [[s, s.get("second_plan", s)] for s in stages]
        peaks = [max(p["summary"]["peak_bytes"] for p in both) for both in plans]
        most = max(sum(peaks[r :: shape[0]]) for r in range(shape[0]))
        ranks = shape[0] * (2 if "--tp" in form or "--dp" in form else 1)
        trace = ["--trace", self.path("second.trace")]
        self.peak("pp.so", self.path(stem + ".npz"), ranks, most, what, *trace)
        if shape[1] == 1:
            self.second_turns(stages, ranks // shape[0], what)

    def second_turns(self, stages, ranks, what):
        """The trace says which turns have the second plan: those in its slots."""
        events = ck.plan(self.path("second.trace"))["traceEvents"]
        turns = [
            e for e in events if e.get("cat") == "turn" and e["name"] in ("forward", "backward")
        ]
        self.check(turns, f"{what}: no turns in the trace")
        for e in turns:
            stage = stages[(e["tid"] - 1) // ranks]
            second = e["args"]["slot"] in stage.get("second_plan", {"slots": []})["slots"]
            self.check(second == (e["args"].get("plan") == 2), f"{what}: trace: {e}")

    def zero_bubble(self):
        for stem, stages, micros, form in ZERO_BUBBLE:
            text = "".join(f" {x}" for x in form)
            self.one(stem, (stages, ZB), micros, f" {text}", *form, env={"CKR_POISON": "1"})
        self.one("llama-dynamo", (3, ZB), 4, ", clipped", near=1e-6, run=["--clip", 0.1])
        own = ["--pp", 2, "--schedule", ZB, "--microbatches", 3]
        self.spread("zero bubble processes", 8, [*own, "--tp", 2, "--dp", 2, "--zero", 1])
        self.zero_bubble_memory()
        # Qi et al. 2023, figure 3: weight turns lag behind by the number of the rank
        self.turns(
            "zero bubble: trace",
            ["--pp", 3, "--microbatches", 4, "--schedule", ZB],
            "f0 f1 f2 b0 w0 f3 b1 w1 b2 w2 b3 w3 n3 u3",
            "f0 f1 b0 f2 b1 w0 f3 b2 w1 b3 w2 w3 n3 u3",
            "f0 b0 f1 b1 f2 b2 w0 f3 b3 w1 w2 w3 n3 u3",
        )
        flags, _ = self.model("chargpt-dyn-o24")
        for more, want in (
            (["--dump=memory"], "--pp without --dump=memory"),
            (["--interleave", 2], "--pp without --dump=memory"),
            (["--auto", "--devices", 2, "--global-batch", 8], "multiple of 3"),
            (["--zero", 2, "--dp", 2], "--pp and --zero 2, 3 and auto cannot"),
        ):
            done = self.ckc(*flags, *own, *more, "--plan-only")
            words = done.returncode == 2 and want in done.stderr
            self.check(words, f"zero bubble: {more}: {done.returncode} {done.stderr}")

    def zero_bubble_memory(self):
        """A rank touches what is claimed, also within budgets that take recomputation."""
        flags, data = self.model("gpt2-dropout-ts17")
        own = ["--pp", 3, "--schedule", ZB, "--microbatches", 5]
        plan = self.path("z.json")
        self.must(self.ckc(*flags, *own, "--plan-only", "--json", plan), "zero bubble: plan")
        free, first = ck.plan(plan)["pipeline"]["peak_bytes"], None
        for part in 1, 0.98, 0.95, 0.9:
            done = self.ckc(
                *(*flags, *own, "--memory-budget", int(free * part)),
                *("-o", self.path("z.so"), "--json", plan),
            )
            if not self.must(done, f"zero bubble: {part} of {free} bytes"):
                return
            stages = ck.plan(plan)["stages"]
            most = max(s["summary"]["peak_bytes"] for s in stages)
            self.check(most <= free * part, f"zero bubble: {most} bytes beyond {part} of {free}")
            again = sum(s["summary"]["recompute_seconds"] for s in stages)
            self.check((part < 1) == (again > 0), f"zero bubble: {part}: recompute {again}")
            what = f"zero bubble: run with {part} of {free} bytes"
            losses = self.peak("z.so", data, 3, most, what, env={"CKR_POISON": "1"})
            first = first or losses
            self.check(losses == first, f"zero bubble: {losses}, not {first}")

    def gpus(self):
        """Processes with a GPU each: the bits of virtual ranks on one."""
        os.environ.update(CKR_FAKE_GPUS="4", CKR_FAKE_NCCL_DIR=self.work)
        late, gpt = (None, {"CKR_FAKE_NCCL": "late"}), "chargpt-dyn-o24"
        two, four = ["--pp", 2, "--microbatches", 4], ["--pp", 4, "--microbatches", 6]
        chunks = [*two, "--schedule", "interleaved=2"]
        self.spread("GPUs", 2, two, stem=gpt, envs=late)
        self.spread("GPUs, 4 stages", 4, four, "--clip", 0.1, stem=gpt, envs=late)
        self.spread("GPUs, zb-h1", 4, [*four, "--schedule", ZB], envs=late)
        self.spread("GPUs, interleaved", 2, chunks, "--clip", 0.1, stem=T5, envs=late)
        self.spread("GPUs, ranks", 4, [*two, "--tp", 2, "--sp"], envs=late)
        self.spread("GPUs, interleaved ranks", 4, [*chunks, "--tp", 2], "--clip", 0.1, envs=late)
        self.spread("GPUs, replicas", 4, [*two, "--dp", 2, "--zero", 1], envs=late)
        self.gpus_second()
        self.gpus_evaluate(chunks)
        self.gpus_fail()

    def gpus_second(self):
        own = ["--pp", 2, "--microbatches", 5]
        found = self.second_budget(self.model("gpt2-dynamo-dyn")[0], own, "GPUs, two plans")
        if self.check(found, "GPUs: no budget for two plans"):
            own += ["--memory-budget", f"{found[0]}B"]
            self.spread("GPUs, two plans", 2, own, stem="gpt2-dynamo-dyn")

    def gpus_evaluate(self, own):
        flags, data = self.model(T5)
        self.must(self.ckc(*flags, *own, *FLAGS, "-o", self.path("v.so")), "GPUs: evaluation")
        got = [self.evaluate("v.so", 2, data, None, processes=x) for x in (False, True)]
        self.check(got[0] and got[0] == got[1], f"GPUs: evaluation: {[x and x[0] for x in got]}")

    def gpus_fail(self):
        """A label out of range, which only the last stage reads; a message that NCCL loses."""
        flags, data = self.model("chargpt-dyn-o24")
        so, bad = self.path("b.so"), self.path("bad.npz")
        self.must(self.ckc(*flags, *PP, *FLAGS, "-o", so), "GPUs: one fails")
        x = dict(np.load(data))
        labels = next(k for k in x if "label" in k or "target" in k)
        x[labels] = x[labels].copy()
        x[labels][:, 3] = 4711
        np.savez(bad, **x)
        argv = [self.ckrun_path, so, "--steps", 1, "--threads", 1, "--comm-timeout", 8, "--data"]
        here = self.run([*argv, bad, "--ranks", 3])
        for done in here, spread.run(3, [*argv, bad], cwd=self.work):
            told = re.findall("^ckrun: .*", done.stderr, re.M)
            named = len(told) == 1 and re.search(r"step 1: node '.*' \(.*\): .*: 4711", told[0])
            self.check(done.returncode == 1 and named, f"GPUs: a label: {done.returncode}, {told}")
        port = {"MASTER_PORT": spread.free_port()}
        how = dict(stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd=self.work)
        lost = {**port, "CKR_FAKE_NCCL": "message:2"}
        ranks = spread.start(3, [*argv, data], [0, 2], port, **how)
        ranks += spread.start(3, [*argv, data], [1], lost, **how)
        text = "".join(p.communicate(timeout=60)[1] for p in ranks)
        status = [p.returncode for p in ranks]
        named = re.search(r"step 1: (send|receive) of '.*' \(\d+ bytes\): remote process", text)
        self.check(all(x == 3 for x in status) and named, f"GPUs: a message: {status}, {text}")

    def some(self):
        # a GPU's products end in other sums where a stage ends
        near = 1e-6 if FLAGS else 0
        self.one("chargpt-dyn-o24", 3, 4, "", near=near)
        self.one("llama-dynamo", 2, 4, ", ranks and replicas", "--tp", 2, "--dp", 2, near=near)
        self.one("llama-dynamo", (2, 2), 4, "", near=near)
        found = self.second_plan("gpt2-dynamo-dyn", (3, 1), 6, [], near)
        self.check(found, "no stage has two plans")


def main():
    bench = Pipelines()
    parts = [
        "models",
        "t5",
        "forms",
        "files",
        "evaluation",
        "processes",
        "trace",
        "interleaved",
        "second",
        "zero_bubble",
    ]
    for part in bench.names or parts:
        getattr(bench, part)()
    bench.finish()


if __name__ == "__main__":
    main()
