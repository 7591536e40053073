#!/usr/bin/env python3
"""Experts that replicas share (--ep), beside one rank with the whole batch.

    expert_parallel.py CKC CKRUN [--flags "--target cuda ..."] [models] [forms] [routing] [files]
    [evaluation] [capacity] [processes] [refusals] [search] [some]

Four mixtures, after Mixtral, Qwen2-MoE (a shared expert with a gate), DeepSeek-V3 (sigmoid scores,
a bias that only chooses, three choices) and GPT-OSS (biases, clamps, matrices the other way round).
models: losses, gradients and parameters are those of the interpreter in float64, which trains the
whole batch; a replica has experts / E of the parameters, gradients and states of experts; the plan
replays.  forms: the same with ranks, ZeRO, micro-batches, 16 bits, adapters, budgets, clipping.
routing: all rows to one expert, experts without rows.  files: a run changes its shape every few
steps.  evaluation: of samples that no batch divides.  capacity: the same with room for all rows;
without, rows behind it give zeros, or the step ends with the capacity that would do.  processes:
the files of virtual ranks.  What has no sense is refused with the line to type.  some: one shape of
each mixture, for other targets.  --flags: more for ckc.
"""

import os
import re
import shlex
import shutil
import sys

import numpy as np

import ck
import files
from truth import ADAM16, SHALLOW, Truth

sys.path.insert(0, ck.TOOLS)
import compare
import replay

FLAGS = shlex.split(ck.option("--flags", ""))
TOKENS, WIDTH, HIDDEN, CLASSES = 3, 8, 6, 7
EXPERTS = {"mixtral": 4, "qwen": 8, "deepseek": 8, "gptoss": 4, "one": 4, "few": 4}
CHOICES = {"deepseek": 3, "one": 1}
# Elements of one expert.
SIZES = {
    "up": 2 * HIDDEN * WIDTH,
    "down": HIDDEN * WIDTH,
    "up_bias": 2 * HIDDEN,
    "down_bias": WIDTH,
}
NEAR = tuple(4 * x for x in SHALLOW)  # two products of experts, norms and a softmax deep
TRAIN = ["--lr", 0.01, "--weight-decay", 0.1, "--seed", 5, "--threads", 1, "--quiet"]
# Flags and the samples of a micro-batch of a replica.
SHAPES = {
    "ep2": (["--dp", 2, "--ep", 2], 2),
    "ep4": (["--dp", 4, "--ep", 4], 1),
    "ep2 of 4": (["--dp", 4, "--ep", 2], 1),
    "ranks": (["--dp", 2, "--ep", 2, "--tp", 2], 2),
}
POSITIONS = ["--cp", 3, "--cp-dim", "x=1"]
# Ranks share rows, and have each expert whole.
WHOLE = ["--dp", 2, "--ep", 2, "--tp", 2, "--sp", "--shard", "up=R", "--shard", "down=R"]
FORMS = {
    "zero 1": (["--dp", 4, "--ep", 2, "--zero", 1], 1),
    "zero 2": (["--dp", 4, "--ep", 2, "--zero", 2, "--zero-group", 2], 1),
    "zero 3": (["--dp", 4, "--ep", 4, "--zero", 3], 1),
    "zero 3 of 4": (["--dp", 4, "--ep", 2, "--zero", 3], 1),
    "zero 2, groups": (["--dp", 4, "--ep", 4, "--zero", 2, "--zero-group", 2], 1),
    "zero 3, groups": (["--dp", 8, "--ep", 2, "--zero", 3, "--zero-group", 4], 1),
    "zero 3, ranks": (["--dp", 2, "--ep", 2, "--tp", 2, "--sp", "--zero", 3], 2),
    "ranks, rows": (["--dp", 2, "--ep", 2, "--tp", 2, "--sp"], 2),
    "rows of whole experts": ([*WHOLE], 2),
    "rows of whole experts, micro": ([*WHOLE, "--grad-accum", 2], 1),
    "rows of whole experts, zero": ([*WHOLE, "--zero", 2], 2),
    "micro": (["--dp", 2, "--ep", 2, "--grad-accum", 2], 1),
    "micro of 4": (["--dp", 4, "--ep", 2, "--grad-accum", 2, "--zero", 2], 1),
    "micro, groups": (
        ["--dp", 4, "--ep", 4, "--grad-accum", 2, "--zero", 3, "--zero-group", 2],
        1,
    ),
    "micro, ranks": (["--dp", 2, "--ep", 2, "--tp", 2, "--grad-accum", 2], 1),
    "lean": (["--dp", 2, "--ep", 2, "--memory-budget", "92%"], 2),
    "early": (["--dp", 4, "--ep", 2, "--update-in-backward", "on"], 1),
    "means": (["--dp", 4, "--ep", 2, "--optimizer", "adafactor"], 1),
    "means of few rows": (["--dp", 4, "--ep", 2, "--optimizer", "adafactor"], 1),
    "means, zero": (["--dp", 4, "--ep", 2, "--zero", 1, "--optimizer", "adafactor"], 1),
    "means, biases": (["--dp", 4, "--ep", 2, "--optimizer", "adafactor"], 1),
    "means, ranks": (["--dp", 2, "--ep", 2, "--tp", 2, "--optimizer", "adafactor"], 2),
    "averages": (["--dp", 4, "--ep", 2, "--ema"], 1),
    "adapters": (["--dp", 2, "--ep", 2, "--lora", "head=2:4"], 2),
    "frozen": (["--dp", 2, "--ep", 2, "--zero", 3, "--freeze", "up"], 2),
    "positions": (["--dp", 2, *POSITIONS, "--ep", 2], 2),
    "positions, groups": (["--dp", 4, *POSITIONS, "--ep", 4], 1),
    "positions, ranks": (["--dp", 2, *POSITIONS, "--ep", 2, "--tp", 2], 2),
    "positions, zero 3": (["--dp", 2, *POSITIONS, "--ep", 2, "--zero", 3], 2),
    "positions, micro": (["--dp", 2, *POSITIONS, "--ep", 2, "--grad-accum", 2], 1),
    "positions, capacity": (["--dp", 2, *POSITIONS, "--ep", 2, "--expert-capacity", 2], 2),
}


# Room for all rows.
CAPACITIES = {
    "2": (["--dp", 2, "--ep", 2, "--expert-capacity", 2], 2),
    "4": (["--dp", 4, "--ep", 4, "--expert-capacity", 4], 1),
    "2 of 4": (["--dp", 4, "--ep", 2, "--expert-capacity", 2.5, "--zero", 3], 1),
    "ranks": (["--dp", 2, "--ep", 2, "--tp", 2, "--expert-capacity", 2], 2),
    "ranks, rows": (["--dp", 2, "--ep", 2, "--tp", 2, "--sp", "--expert-capacity", 2], 2),
    "micro": (["--dp", 2, "--ep", 2, "--grad-accum", 2, "--expert-capacity", 2], 1),
    "lean": (["--dp", 2, "--ep", 2, "--expert-capacity", 2, "--memory-budget", "90%"], 2),
}
# One expert has all rows, and room for some of each replica.
DROPS = {
    "half": (["--dp", 2, "--ep", 2, "--expert-capacity", 1], 2, 3),
    "two of three": (["--dp", 4, "--ep", 2, "--expert-capacity", 1.2], 1, 2),
    "one of four": (["--dp", 4, "--ep", 4, "--expert-capacity", 0.8], 1, 1),
}


def samples(shape):
    """Of a step."""
    flags, n = shape
    for name in "--dp", "--grad-accum":
        n *= flags[flags.index(name) + 1] if name in flags and "auto" not in flags else 1
    return n * 2 if "auto" in flags else n


def experts_of(kind):
    return EXPERTS[kind]


def scores(kind, n, e, k):
    """The choice and weight of experts for each row."""
    if kind == "deepseek":
        return f"""
	const %prefer: f32[{e}] = {{{",".join(str(0.1 * i) for i in range(e))}}}
	%s = matmul %n, %gate
	%p = sigmoid %s
	%c = add %p, %prefer
	%q0, %i = topk %c {{k={k}, axis=1}}
	%q = gather_elements %p, %i {{axis=1}}
	%total = reduce_sum %q {{axes=[1]}}
	%g = div %q, %total"""
    # expert 2 alone, or the first two, for all rows
    push = {"one": "0,0,12,0", "few": "12,12,0,0"}.get(kind, ",".join("0" * e))
    return f"""
	const %push: f32[{e}] = {{{push}}}
	%s0 = matmul %n, %gate
	%s = add %s0, %push
	%p = softmax %s {{axis=1}}
	%q, %i = topk %p {{k={k}, axis=1}}
	%total = reduce_sum %q {{axes=[1]}}
	%g = {"mul %q, %q" if kind == "qwen" else "div %q, %total"}"""


def mixture(kind, b, kept=None):
    e, k, h, f = experts_of(kind), CHOICES.get(kind, 2), WIDTH, HIDDEN
    n = b * TOKENS
    turned = kind == "gptoss"
    up, down = ([e, h, 2 * f], [e, f, h]) if turned else ([e, 2 * f, h], [e, h, f])
    row, column = ([n, k, 1, h], [n, k, 1, 2 * f]) if turned else ([n, k, h, 1], [n, k, 2 * f, 1])
    half = row[:2] + ([1, f] if turned else [f, 1])
    params = {"gate": [h, e], "up": up, "down": down, "head": [h, CLASSES], "scale": [h]}
    text = scores(kind, n, e, k)
    product = "%x2, %w1" if turned else "%w1, %x2"
    text += f"""
	%x0 = reshape %n {{shape=[{n},1,{h}]}}
	%x1 = expand %x0 {{shape=[{n},{k},{h}]}}
	%x2 = reshape %x1 {{shape={row}}}
	%w1 = gather %up, %i {{axis=0}}
	%u{"0" if turned else ""} = matmul {product}"""
    if turned:
        params |= {"up_bias": [e, 2 * f], "down_bias": [e, h]}
        text += f"""
	%b1 = gather %up_bias, %i {{axis=0}}
	%b2 = reshape %b1 {{shape={column}}}
	%u = add %u0, %b2"""
    axis = 3 if turned else 2
    start = [0, 0, 0, 0]
    start[axis] = f
    part = ",".join(map(str, half))
    text += f"""
	%ug: f32[{part}] = slice %u {{start=[0,0,0,0], step=[1,1,1,1]}}
	%uu: f32[{part}] = slice %u {{start={start}, step=[1,1,1,1]}}"""
    if turned:
        text += """
	const %most: f32[] = {0.5}
	const %factor: f32[] = {1.7}
	const %unit: f32[] = {1}
	%g1 = min %ug, %most
	%g2 = mul %g1, %factor
	%g3 = sigmoid %g2
	%a0 = mul %g1, %g3
	%u1 = add %uu, %unit
	%a = mul %u1, %a0"""
    else:
        text += """
	%a0 = silu %ug
	%a = mul %a0, %uu"""
    product = "%a, %w2" if turned else "%w2, %a"
    text += f"""
	%w2 = gather %down, %i {{axis=0}}
	%y0 = matmul {product}
	%y1 = reshape %y0 {{shape=[{n},{k},{h}]}}"""
    if turned:
        text += """
	%b3 = gather %down_bias, %i {axis=0}
	%y2 = add %y1, %b3"""
    last = "%y2" if turned else "%y1"
    if kept:
        last = "%y3"
        text += f"""
	const %kept: f32[{n},1,1] = {{{",".join(map(str, kept))}}}
	%y3 = mul %y1, %kept"""
    text += f"""
	%g4 = reshape %g {{shape=[{n},{k},1]}}
	%z0 = mul {last}, %g4
	%z = reduce_sum %z0 {{axes=[1], keepdims=0}}"""
    if kind in ("qwen", "deepseek"):
        params |= {"shared": [h, h], "shared_gate": [h, 1]}
        text += """
	%h0 = matmul %n, %shared
	%h1 = silu %h0
	%h2 = matmul %n, %shared_gate
	%h3 = sigmoid %h2
	%h4 = mul %h1, %h3
	%z1 = add %z, %h4"""
    out = "%z1" if kind in ("qwen", "deepseek") else "%z"
    lines = [f"\tparam %{k}: f32[{','.join(map(str, v))}] = splat 0" for k, v in params.items()]
    return (
        f"""graph @mixture {{
	input %x: f32[{b},{TOKENS},{h}]
	input %labels: i64[{b},{TOKENS}]
"""
        + "\n".join(lines)
        + f"""
	%m0 = rmsnorm %x, %scale {{axis=2, eps=1e-6}}
	%n = reshape %m0 {{shape=[{n},{h}]}}
	%r = reshape %x {{shape=[{n},{h}]}}
	%l = reshape %labels {{shape=[{n}]}}{text}
	%out = add %r, {out}
	%logits = matmul %out, %head
	%loss: f32[] output, _, _ = sce %logits, %l {{reduction=1, ignore=-100}}
}}
""",
        params,
    )


def typed(values):
    return {
        k: ("I64" if v.dtype == np.int64 else "F32", list(v.shape), v.ravel().tolist())
        for k, v in values.items()
    }


class Experts(ck.Bench):
    def model(self, kind, b, kept=None):
        path = self.path(f"{kind}{b}{'-kept' if kept else ''}.ck")
        text, params = mixture(kind, b, kept)
        with open(path, "w") as f:
            f.write(text)
        if not os.path.exists(self.path(kind + ".st")):
            rng = np.random.default_rng(len(kind))
            init = {k: np.float32(rng.normal(0, 0.5, v)) for k, v in params.items()}
            files.st_write(self.path(kind + ".st"), typed(init))
        return path

    def train(self, kind, shape, *more, steps=3, launch=(), name="got"):
        flags, b = shape
        so, log = self.path(f"{kind}.so"), self.path("log")
        if os.path.exists(log):
            os.remove(log)
        build = self.ckc(
            *(self.model(kind, b), "-o", so, "--json", self.path("plan"), "--quiet", *flags, *FLAGS)
        )
        begin = [] if "--resume" in more else ["--init", kind + ".st"]
        run = [*launch, self.ckrun_path, so, "--inputs", f"in{samples(shape)}.st", *begin]
        save = ["--save", name + ".s", "--grads", name + ".g", "--log", log]
        if not self.must(build, f"{kind} {flags}: compile") or not self.must(
            self.run([*run, "--steps", steps, *TRAIN, *save, *more]), f"{kind} {flags}: run"
        ):
            return None
        return np.array(ck.losses(log))

    def right(self, kind, shape, *more, steps=3, kept=None):
        """Of one rank, which has the samples of a step in one batch."""
        flags, n = shape[0], samples(shape)
        keep = {"--optimizer", "--freeze", "--lora"}
        at = [i for i, x in enumerate(flags) if x in keep]
        own = [x for i in at for x in flags[i : i + 2]]
        run = ["--steps", steps, *TRAIN[:-3], *more]
        return Truth(
            *(self, self.model(kind, n, kept), own, self.path(f"in{n}.st"), *run),
            init=self.path(kind + ".st"),
        )

    def shares(self, kind, flags, what):
        """Of parameters, gradients and states of experts a replica has one of E parts; of states of
        others, with --zero, one of as many as its group has replicas."""
        plan, ep = ck.plan(self.path("plan")), flags[flags.index("--ep") + 1]
        group = flags[flags.index("--zero-group" if "--zero-group" in flags else "--dp") + 1]
        if "--cp" in flags and "--zero-group" not in flags:
            group *= flags[flags.index("--cp") + 1]
        faults = replay.Replay(plan).faults
        self.check(not faults, f"{what}: replay: {faults[:3]}")
        ranks = flags[flags.index("--tp") + 1] if "--tp" in flags else 1
        for t in plan["tensors"]:
            of = t["name"] if t["kind"] == "param" else t.get("param")
            if of == "head" and t["kind"] == "state" and "--zero" in flags and ranks == 1:
                n = int(np.prod(t["shape"]))
                part = -(-WIDTH * CLASSES // group)
                self.check("adafactor" in flags or n == part, f"{what}: {t['name']} {t['shape']}")
            whole = SIZES.get(of)
            if not whole or "adafactor" in flags or t["kind"] not in ("param", "state", "temp"):
                continue
            n, all_ = int(np.prod(t["shape"])), experts_of(kind) * whole
            self.check(n * ep in (all_, all_ // ranks), f"{what}: {t['name']} {t['shape']}")

    def one(self, kind, name, shape, near=NEAR, *more):
        got = self.train(kind, shape, *more)
        if got is None:
            return
        self.shares(kind, shape[0], f"{kind}, {name}")
        self.right(kind, shape, *more).check(f"{kind}, {name}", near, got, "got.g", "got.s")

    def models(self):
        for kind in ("mixtral", "qwen", "deepseek", "gptoss"):
            for name, shape in SHAPES.items():
                self.one(kind, name, shape)

    def some(self):
        for kind, shape in zip(("mixtral", "qwen", "deepseek", "gptoss"), SHAPES.values()):
            self.one(kind, str(shape), shape)
        bf16 = (["--dp", 4, "--ep", 2, "--zero", 3, "--dtype", "bf16"], 1)
        self.one("gptoss", "16 bits", bf16, ADAM16)
        self.one("gptoss", "capacity", CAPACITIES["2 of 4"])
        self.dropped("two of three")

    def evaluation(self):
        rng, got = np.random.default_rng(1), {}
        x = np.float32(rng.normal(0, 1, (23, TOKENS, WIDTH)))
        np.savez(self.path("d.npz"), x=x, labels=rng.integers(0, CLASSES, (23, TOKENS)))
        for shape in ([], 8), SHAPES["ep2"], (["--dp", 4, "--ep", 2, "--zero", 3], 2):
            so = self.path("e.so")
            build = self.ckc(self.model("deepseek", shape[1]), "-o", so, "--quiet", *shape[0])
            if self.must(build, f"{shape}: compile"):
                run = self.ckrun("eval", so, "--init", "deepseek.st", "--data", "d.npz")
                found = re.search(r"23 samples +loss ([0-9.]+)", run.stdout)
                got[str(shape)] = float(found[1]) if found else None
        want = list(got.values())[0]
        same = want and all(x and abs(x / want - 1) < 1e-6 for x in got.values())
        self.check(same, f"evaluation: {got}")

    def capacity(self):
        for kind in ("mixtral", "deepseek", "gptoss", "few"):
            for name, shape in CAPACITIES.items():
                self.one(kind, f"capacity {name}", shape)
        flags, b = CAPACITIES["2"]
        self.one("gptoss", "capacity, bf16", ([*flags, "--dtype", "bf16"], b), ADAM16)
        for name in DROPS:
            self.dropped(name)

    def dropped(self, name):
        flags, b, room = DROPS[name]
        shape = [*flags, "--expert-overflow", "drop"], b
        got = self.train("one", shape)
        rows = b * TOKENS
        kept = [int(i % rows < room) for i in range(samples(shape) * TOKENS)]
        if got is not None:
            right = self.right("one", shape, kept=kept)
            right.check(f"drop {name}", NEAR, got, "got.g", "got.s")
        so = self.path("one.so")
        self.must(self.ckc(self.model("one", b), "-o", so, "--quiet", *flags, *FLAGS), name)
        done = self.ckrun(so, "--inputs", "in4.st", "--init", "one.st", "--steps", 2)
        ep = flags[flags.index("--ep") + 1]
        words = f"--expert-capacity is too small: expected at least {ep}.00; try: ckc --expert"
        self.check(
            done.returncode == 1
            and "step 1: node '" in done.stderr
            and f"' (expert_slots): {words}" in done.stderr,
            f"{name}: {done.returncode} {done.stderr}",
        )

    def forms(self):
        for name, shape in FORMS.items():
            # Qwen2-MoE's experts with few rows have mean squares below eps
            mixtral = "means" in name and "few" not in name and "biases" not in name
            qwen = "ranks" in name or "few" in name
            kind = "mixtral" if mixtral else "qwen" if qwen else "gptoss"
            self.one(kind, name, shape)
        for name in "ep2 of 4", "ranks", "zero 2, groups", "zero 3 of 4":
            shape = {**SHAPES, **FORMS}[name]
            self.one("mixtral", name + ", clipped", shape, NEAR, "--clip", 0.1)
        for flags in (["--dtype", "bf16"], ["--dtype", "bf16", "--master-weights", "off"]):
            for at in SHAPES["ep2 of 4"], FORMS["zero 3"], FORMS["micro"]:
                self.one("gptoss", str(flags), ([*at[0], *flags], at[1]), ADAM16)

    def routing(self):
        for kind in ("one", "few"):
            for name, shape in SHAPES.items():
                self.one(kind, name, shape)

    def files(self):
        """20 steps over changes of shape."""
        shapes = [
            SHAPES["ep2"],
            SHAPES["ranks"],
            (["--dp", "auto"], 2),
            FORMS["zero 3"],
            SHAPES["ep2 of 4"],
            ([], 4),
            FORMS["zero 2, groups"],
        ]
        got, form = [], None
        for i, shape in enumerate(shapes):
            more = ["--resume", f"{i - 1}.s"] if i else []
            more += ["--ranks", 2] if "auto" in shape[0] else []
            part = self.train("qwen", shape, *more, steps=min(3 * i + 3, 20), name=str(i))
            if part is None:
                return
            got += list(part)
            now = {k: (v.shape, v.dtype) for k, v in compare.load(self.path(f"{i}.s")).items()}
            form = form or now
            self.check(now == form, f"{shape}: form of the file")
        self.right("qwen", ([], 4), steps=20).check(
            "over changes of shape", NEAR, got, save=f"{len(shapes) - 1}.s"
        )

    def search(self):
        """--auto with --ep plans other options, and keeps it."""
        of = ["--auto", "--devices", 4, "--global-batch", 8, "--dp", 4, "--ep", 2]
        done = self.ckc(self.model("mixtral", 2), *of)
        lines = [line for line in done.stdout.splitlines() if " --ep 2" in line]
        self.check(done.returncode == 0 and lines, f"{of}: {done.stdout} {done.stderr}")

    def processes(self):
        start = ["env", "ASAN_OPTIONS=detect_leaks=0"]
        sockets = [*start, sys.executable, os.path.join(ck.TOOLS, "spread.py")]
        self.apart(sockets, FORMS["zero 2, groups"], CAPACITIES["2 of 4"])
        mpirun = shutil.which("mpirun")
        if not mpirun or not os.path.exists(
            os.path.join(os.path.dirname(self.ckrun_path), "ckr_mpi.so")
        ):
            print("skipped: processes, which need mpirun and ckr_mpi.so")
            return
        self.apart(
            [*start, mpirun, "--allow-run-as-root", "--oversubscribe", "-n"],
            SHAPES["ep2 of 4"],
            SHAPES["ranks"],
            FORMS["zero 3, ranks"],
            FORMS["zero 2, groups"],
            FORMS["zero 3 of 4"],
            CAPACITIES["2 of 4"],
            CAPACITIES["ranks"],
        )

    def apart(self, launch, *shapes):
        """Processes, started by that command, write what virtual ranks write."""
        for shape in shapes:
            n = shape[0][1] * (2 if "--tp" in shape[0] else 1)
            want = self.train("gptoss", shape, name="virtual")
            got = self.train("gptoss", shape, name="apart", launch=[*launch, n])
            self.check(np.array_equal(got, want), f"{shape}: losses {got}, virtual ranks' {want}")
            a, b = (compare.load(self.path(x + ".s")) for x in ("apart", "virtual"))
            self.check(all(a[k].tobytes() == b[k].tobytes() for k in b), f"{shape}: files differ")

    def slots(self, model, flags):
        """Rows that a replica can send to each replica."""
        plan = self.path("slots")
        self.must(self.ckc(model, "--plan-only", "--quiet", "--json", plan, *flags), f"{flags}")
        sizes = [
            t["shape"][0] for t in ck.plan(plan)["tensors"] if t["name"] == "u.expert_matmul.rows"
        ]
        return sizes[0] // 2 if sizes else 0

    def refusals(self):
        def no(model, flags, *words):
            done = self.ckc(model, "-o", self.path("no.so"), "--quiet", *flags)
            self.check(
                done.returncode in (1, 2) and all(w in done.stderr for w in words),
                f"{flags}: {done.returncode} {done.stderr}",
            )

        model = self.model("mixtral", 2)
        no(model, ["--ep", 2], "found no --dp; try: --ep 2 --dp 2")
        no(model, ["--ep", 2, "--dp", "auto"], "found --dp auto; try: --ep 2 --dp 2")
        no(model, ["--ep", 3, "--dp", 4], "a divisor of --dp 4; try: --ep 2")
        no(model, ["--ep", 8, "--dp", 4], "a divisor of --dp 4; try: --ep 2")
        no(model, ["--ep", 2, "--dp", 2, "--halves", "on"], "try: --halves off")
        no(model, ["--ep", 8, "--dp", 8], "'u", "of the 4 experts of parameter 'up'", "--ep 4")
        no(model, ["--ep", 3, "--dp", 3], "of the 4 experts of parameter 'up'", "--dp 4 --ep 4")
        no(model, ["--dp", 2, "--expert-capacity", 2], "expected --ep E", "try: --dp 2 --ep 2")
        both = ["--dp", 2, "--ep", 2, "--expert-capacity"]
        no(model, [*both, 0], "expected a number above 0; try: --expert-capacity 1.25")
        for text in "x", "nan", "inf", "-1", "1e-400", "1e400":
            no(model, [*both, text], "expected a number above 0")
        rooms = {F: self.slots(model, [*both, F]) for F in (1e-30, 1, 2, 1e30, 1e308)}
        # of 2 * TOKENS tokens with two choices each, for one replica
        self.check(list(rooms.values()) == [1, 6, 12, 12, 12], f"slots by capacity: {rooms}")
        no(model, [*WHOLE, "--expert-capacity", 2], "a part of them; leave out --sp")
        plain = self.path("plain.ck")
        text = mixture("mixtral", 2)[0]
        with open(plain, "w") as f:
            f.write(
                "graph @g {\n\tinput %x: f32[2,3]\n\tparam %w: f32[3,4] = splat 1\n"
                "\t%y = matmul %x, %w\n\t%loss: f32[] output = reduce_sum %y {axes=[0,1], "
                "keepdims=0}\n}\n"
            )
        no(plain, ["--ep", 2, "--dp", 2], "no products of rows with matrices", "batched_mm")
        read = text.replace("%loss: f32[] output, _, _", "%l1, _, _").replace(
            "\n}",
            "\n\t%sq = mul %up, %up\n\t%pen = reduce_sum %sq {axes=[0,1,2], keepdims=0}\n"
            "\t%loss: f32[] output = add %l1, %pen\n}",
        )
        with open(self.path("read.ck"), "w") as f:
            f.write(read)
        no(self.path("read.ck"), ["--ep", 2, "--dp", 2], "reads 'up', matrices of experts")
        self.train("mixtral", SHAPES["ep2"])
        done = self.ckrun("mixtral.so", "--ranks", 4, "--inputs", "in4.st")
        self.check(
            done.returncode == 1 and "compiled for 2 replicas" in done.stderr, f"{done.stderr}"
        )


def main():
    bench = Experts()
    rng = np.random.default_rng(0)
    for n in 4, 8:
        x = np.float32(rng.normal(0, 1, (n, TOKENS, WIDTH)))
        labels = rng.integers(0, CLASSES, (n, TOKENS))
        labels[0] = -100
        files.st_write(bench.path(f"in{n}.st"), typed({"x": x, "labels": labels}))
    parts = ["models", "forms", "routing", "files", "evaluation", "capacity", "processes"]
    parts += ["refusals", "search"]
    for part in bench.names or parts:
        getattr(bench, part)()
    bench.finish()


if __name__ == "__main__":
    main()
