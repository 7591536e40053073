#!/usr/bin/env python3
"""Optimizer state, gradients and parameters sharded over replicas (--zero), beside replicas that
hold all of them, beside one rank and beside the interpreter.

    zero.py CKC CKRUN [bits] [files] [processes] [many] [models] [auto] [refusals]

Two products of odd widths, so that no piece divides.  bits: a piece is updated by the same numbers
as the whole is, so losses, gradients and checkpoints are to the bit those of the same replicas
without --zero (by 16-bit masters, rounding at random, micro-batches), and close to those of one
rank with the whole batch, clipped too.  Bytes of the optimizer's state are those of a formula, the
plan replays, the measured peak is the planned one.  files: a run changes its shape every few steps
and goes on as one that did not.  processes: the same files as virtual ranks leave.  many: 128 and
1,024 replicas of a sample each, by numpy.  auto: the stage that is taken, by plans of each.  What
has no sense is refused with the line to type.
"""

import json
import os
import re
import shutil
import sys

import numpy as np

import ck
import files
from truth import ADAM16, BF16, SHALLOW, Truth

sys.path.insert(0, ck.TOOLS)
import compare
import replay

WHOLE = 64  # parameters of less than 1/64 of all elements together stay whole
GRAPH = """graph @g {{
	input %x: f32[{b},6]
	input %labels: i64[{b}]
	param %w1: f32[6,21] = splat 0
	param %b1: f32[21] = splat 0
	param %w2: f32[21,7] = splat 0
	param %scale: f32[] = splat 1
	const %one: f32[] = {{1}}
	%a = matmul %x, %w1
	%c = add %a, %b1
	%h = tanh %c
	%z = matmul %h, %w2
	%y = mul %z, %scale
	%l, _, _ = sce %y, %labels {{reduction=1, ignore=-100}}
	%loss: f32[] output = mul %l, %one
}}
"""
MANY = """graph @g {
	input %x: f32[1,3]
	input %t: f32[1,4]
	param %w: f32[3,4] = splat 0
	%z = matmul %x, %w
	%d = sub %z, %t
	%s = mul %d, %d
	%loss: f32[] output = reduce_mean %s {axes=[0,1], keepdims=0}
}
"""
LION = [
    "--optimizer",
    "lion",
    "--dtype",
    "bf16",
    "--master-weights",
    "off",
    "--state-dtype",
    "bf16",
    "--update-in-backward",
    "on",
]
MICRO = ["--dtype", "bf16", "--grad-accum", 3, "--no-decay", "w1"]
# name: samples of a replica's micro-batch, flags
LIBRARIES = {
    "one": (4, []),
    "whole": (2, ["--dp", "auto"]),
    "two": (2, ["--dp", 2, "--zero", 1]),
    "two-2": (2, ["--dp", 2, "--zero", 2]),
    "two-3": (2, ["--dp", 2, "--zero", 3]),
    "four": (1, ["--dp", 4, "--zero", 1]),
    "three-3": (4, ["--dp", 3, "--zero", 3]),
    "three-whole": (4, ["--dp", 3]),
    "five-3": (1, ["--dp", 5, "--zero", 3, "--grad-accum", 3]),
    "five-2": (1, ["--dp", 5, "--zero", 2, "--grad-accum", 3]),
    "sgdm-3": (2, ["--dp", 2, "--zero", 3, "--optimizer", "sgdm"]),
    "sgdm-whole": (2, ["--dp", 2, "--optimizer", "sgdm"]),
    "group-1": (1, ["--dp", 4, "--zero", 1, "--zero-group", 2]),
    "group-2": (1, ["--dp", 4, "--zero", 2, "--zero-group", 2]),
    "group-3": (1, ["--dp", 4, "--zero", 3, "--zero-group", 2]),
    "group-micro-2": (1, ["--dp", 4, "--zero", 2, "--zero-group", 2, *MICRO]),
    "group-micro-3": (1, ["--dp", 4, "--zero", 3, "--zero-group", 2, *MICRO]),
    "group-of-3": (2, ["--dp", 6, "--zero", 3, "--zero-group", 3]),
    "group-ranks": (1, ["--dp", 4, "--tp", 2, "--zero", 3, "--zero-group", 2]),
    "ranks": (2, ["--dp", 2, "--tp", 2, "--zero", 1]),
    "ranks-3": (2, ["--dp", 2, "--tp", 2, "--zero", 3]),
    "ranks4": (2, ["--dp", 2, "--tp", 4, "--zero", 1]),
    "narrow": (2, ["--dp", 2, "--tp", 2, "--zero", 1, *LION]),
    "narrow-3": (2, ["--dp", 2, "--tp", 2, "--zero", 3, *LION]),
    "narrow-whole": (2, ["--dp", 2, "--tp", 2, *LION]),
    "micro": (2, ["--dp", 2, "--zero", 1, *MICRO]),
    "micro-2": (2, ["--dp", 2, "--zero", 2, *MICRO]),
    "micro-3": (2, ["--dp", 2, "--zero", 3, *MICRO]),
    "micro-whole": (2, ["--dp", 2, *MICRO]),
    "ranks32-2": (2, ["--dp", 2, "--zero", 2, "--tp", 2, "--grad-accum", 3]),
    "ranks32-3": (2, ["--dp", 2, "--zero", 3, "--tp", 2, "--grad-accum", 3]),
    "loud": (2, ["--dp", 2, "--zero", 1, "--dtype", "f16"]),
    "loud-3": (2, ["--dp", 2, "--zero", 3, "--dtype", "f16"]),
    "loud-whole": (2, ["--dp", 2, "--dtype", "f16"]),
    "frozen16": (2, ["--dp", 2, "--zero", 3, "--lora", "w*=2:4", "--dtype", "bf16"]),
    "frozen16-whole": (2, ["--dp", 2, "--lora", "w*=2:4", "--dtype", "bf16"]),
}
# Two that leave the same losses and checkpoints, by how many ranks.  Stages 2 and 3 sum the
# gradients of a micro-batch over replicas first, stage 1 those of all micro-batches.
SAME_BITS = [
    ("three-3", "three-whole", 3),
    ("five-3", "five-2", 5),
    ("group-1", "group-3", 4),
    ("group-2", "group-3", 4),
    ("group-micro-2", "group-micro-3", 4),
    ("sgdm-3", "sgdm-whole", 2),
    ("narrow", "narrow-whole", 4),
    ("narrow-3", "narrow-whole", 4),
    ("micro", "micro-whole", 2),
    ("micro-2", "micro-3", 2),
    ("ranks32-2", "ranks32-3", 4),
    ("loud", "loud-whole", 2),
    ("loud-3", "loud-whole", 2),
    ("frozen16", "frozen16-whole", 2),
]
STATES = {"lion": 1, "sgdm": 1, "sgd": 0}  # of a parameter
TRAIN = ["--lr", 0.01, "--weight-decay", 0.1, "--seed", 5, "--threads", 1, "--quiet"]


def value(flags, name, default):
    return flags[flags.index(name) + 1] if name in flags else default


def tensors(values):
    return {
        k: ("I64" if v.dtype == np.int64 else "F32", list(v.shape), v.ravel().tolist())
        for k, v in values.items()
    }


def exposed(plan, n):
    """Seconds of n micro-batches, the last one with the update, beside which transfers run."""
    ends = {b: s["id"] for s in plan["schedule"] for b in s.get("waits", [])}
    total = 0
    for last in [False] * (n - 1) + [True]:
        clock, link, due = 0.0, 0.0, {}
        for s in plan["schedule"]:
            if not last and s["phase"] == "update":
                pass
            elif s.get("sent_bytes"):
                end = ends.get(s["id"], s["id"])
                link = max(clock, link) + s.get("lane_seconds", s["seconds"])
                due[end] = max(due.get(end, 0), link)
            else:
                clock += s["seconds"]
            clock = max(clock, due.get(s["id"], 0))
        total += clock
    return total


class Zero(ck.Bench):
    def model(self, name, b):
        path = self.path(f"m{b}.ck")
        with open(path, "w") as f:  # four times as large a loss overflows in 16 bits
            f.write(GRAPH.format(b=b).replace("{1}", "{4}" if "loud" in name else "{1}"))
        return path

    def right(self, name, *more, steps=3):
        """Of one rank with all samples of a step."""
        inputs = self.inputs(name)
        flags = ["--no-decay", "w1"] if name.startswith("micro") else []
        model = self.model(name, len(compare.load(self.path(inputs))["x"]))
        return Truth(
            self,
            model,
            flags,
            self.path(inputs),
            "--steps",
            steps,
            *TRAIN[:-3],
            *more,
            init=self.path("init.st"),
        )

    def library(self, name):
        """Built when it is asked for."""
        b, flags = LIBRARIES[name]
        if os.path.exists(self.path(name + ".so")):
            return name + ".so"
        self.model(name, b)
        if (
            self.must(
                self.ckc(
                    self.path(f"m{b}.ck"),
                    "-o",
                    self.path(name + ".so"),
                    "--quiet",
                    "--json",
                    self.path(name + ".json"),
                    *flags,
                ),
                name,
            )
            and "--zero" in flags
        ):
            self.accounts(name, flags)
        return name + ".so"

    def inputs(self, name):
        b, flags = LIBRARIES[name]
        replicas = value(flags, "--dp", 1)
        replicas = 2 if replicas == "auto" else replicas
        return f"in{b * replicas * value(flags, '--grad-accum', 1)}.st"

    def train(self, name, *more, steps=3, launch=()):
        log = self.path("log")
        if os.path.exists(log):
            os.remove(log)
        begin = [] if "--resume" in more else ["--init", "init.st"]
        self.must(
            self.run(
                [
                    *launch,
                    self.ckrun_path,
                    self.library(name),
                    "--inputs",
                    self.inputs(name),
                    "--steps",
                    steps,
                    *TRAIN,
                    *begin,
                    "--log",
                    log,
                    *more,
                ]
            ),
            f"{name} {more}",
        )
        return np.array(ck.losses(log)) if os.path.exists(log) else np.zeros(0)

    def skipped(self):
        with open(self.path("log")) as f:
            return sum(json.loads(line).get("skipped", False) for line in f)

    def same(self, a, b, what):
        a, b = compare.load(self.path(a)), compare.load(self.path(b))
        self.check(sorted(a) == sorted(b), f"{what}: tensors {sorted(set(a) ^ set(b))[:4]}")
        bad = [
            k
            for k in set(a) & set(b)
            if a[k].shape != b[k].shape or a[k].tobytes() != b[k].tobytes()
        ]
        self.check(not bad, f"{what}: {len(bad)} tensors differ: {bad[:4]}")

    def accounts(self, name, flags):
        """Of each parameter that is cut a replica has state for ceil(n / dp) elements, where dp is
        that of its zero group, from stage 2 on a gradient of micro-batches, in stage 3 a piece;
        places are multiples of 64 bytes."""
        plan = ck.plan(self.path(name + ".json"))
        dp = value(flags, "--zero-group", value(flags, "--dp", 1))
        states = STATES.get(value(flags, "--optimizer", ""), 2)
        stage, micro = value(flags, "--zero", 0), "--grad-accum" in flags
        width = 2 if "--state-dtype" in flags else 4
        param = {
            t["name"]: t for t in plan["tensors"] if t["kind"] == "param" and t["alias_of"] is None
        }
        size = {k: int(np.prod(t.get("piece", t["shape"]))) for k, t in param.items()}
        adapters = {k for k in size if ".lora" in k}
        state = grad = so_far = 0
        cut = set()
        for k in sorted(size, key=size.get):
            so_far += size[k]
            own = -(-size[k] // dp) if so_far > sum(size.values()) // WHOLE else size[k]
            cut |= {k} if own < size[k] else set()
            if not adapters or k in adapters:
                state += states * -(-own * width // 64) * 64
                grad += micro * -(-(own if stage >= 2 else size[k]) * 4 // 64) * 64
            if "piece" in param[k]:
                self.check(
                    int(np.prod(param[k]["shape"])) == own < size[k],
                    f"{name}: {k}: shape {param[k]['shape']}, a piece has {own}",
                )
        got = plan["summary"]["optimizer_bytes"]
        self.check(got == state, f"{name}: {got} B of state, expected {state}")
        if micro:
            got = plan["summary"]["grad_bytes"]
            self.check(got == grad, f"{name}: {got} B of gradients, expected {grad}")
        masters = "--dtype" in flags and "--master-weights" not in flags
        pieces = {k for k in param if "piece" in param[k]}
        want = cut if masters or stage == 3 else set()
        self.check(pieces == want and len(cut) > 2, f"{name}: pieces {pieces}, expected {want}")
        faults = replay.Replay(plan).faults
        self.check(not faults, f"{name}: replay: {faults[:3]}")

    def bits(self):
        one, whole = (
            self.train("one", "--save", "one.s"),
            self.train("whole", "--ranks", 2, "--save", "whole.s", "--grads", "whole.g"),
        )
        two = self.train("two", "--check", "--save", "two.s", "--grads", "two.g")
        right = self.right("one")
        right.check("one rank", SHALLOW, one, save="one.s")
        right.check("two replicas", SHALLOW, two, "two.g", "two.s")
        self.check(np.array_equal(two, whole), f"losses {two}, of replicas that hold all {whole}")
        self.same("two.s", "whole.s", "checkpoint")
        self.same("two.g", "whole.g", "gradients")
        for name in "micro", "micro-2", "micro-3":
            self.train(name, "--check")
        for name in "two-2", "two-3":
            got = self.train(name, "--check", "--save", "got.s", "--grads", "got.g")
            self.check(np.array_equal(got, two), f"{name}: losses {got}, of stage 1 {two}")
            self.same("got.s", "two.s", f"{name}: checkpoint")
            self.same("got.g", "two.g", f"{name}: gradients")
        self.check(np.allclose(two, one, rtol=1e-5), f"losses {two}, one rank's {one}")
        clipped = self.train("one", "--clip", 0.1, "--save", "one.s")
        right = self.right("one", "--clip", 0.1)
        right.check("one rank, clipped", SHALLOW, clipped, save="one.s")
        self.check(not np.allclose(clipped, one, rtol=1e-5), "nothing was clipped")
        for name in "two", "four", "group-2", "group-ranks", "ranks", "ranks-3":
            got = self.train(name, "--clip", 0.1, "--save", "got.s")
            right.check(f"{name}, clipped", SHALLOW, got, save="got.s")
            self.check(
                np.allclose(got, clipped, rtol=1e-5),
                f"{name}, clipped: losses {got}, one rank's {clipped}",
            )
            a, b = compare.load(self.path("got.s")), compare.load(self.path("one.s"))
            self.check(
                all(np.allclose(a[k], b[k], rtol=1e-4, atol=1e-6) for k in b),
                f"{name}, clipped: checkpoint",
            )
        for name, as_of, ranks in SAME_BITS:
            got, want = (
                self.train(k, "--ranks", ranks, "--save", k + ".s", steps=8) for k in (name, as_of)
            )
            self.check(
                not name.startswith("loud") or 0 < self.skipped() < 8,
                f"{name}: {self.skipped()} steps are skipped",
            )
            if "--grad-accum" in LIBRARIES[name][1]:
                near = ADAM16 if "--dtype" in LIBRARIES[name][1] else SHALLOW
                self.right(name, steps=8).check(name, near, got, save=name + ".s")
            if name == "loud":
                self.right(name, steps=8 - self.skipped()).check(name, BF16, save=name + ".s")
            self.check(np.array_equal(got, want), f"{name}: losses {got}, of {as_of} {want}")
            self.same(name + ".s", as_of + ".s", name)
        self.measured(
            self.path("two.so"), self.path("in4.st"), ck.plan(self.path("two.json")), "two"
        )

    def files(self):
        """20 steps over changes of shape; files are whole, nobody can tell who has written them."""
        shapes = [
            "two",
            "ranks-3",
            "whole",
            "group-ranks",
            "four",
            "group-1",
            "ranks4",
            "two-3",
            "one",
            "two",
        ]
        want, got, form = self.train("one", steps=20), [], None
        for i, name in enumerate(shapes):
            more = ["--resume", f"{i - 1}.s"] if i else []
            got += list(
                self.train(
                    name,
                    *more,
                    "--save",
                    f"{i}.s",
                    *(["--ranks", 2] if name == "whole" else []),
                    steps=min(2 * i + 3, 20),
                )
            )
            now = {k: (v.shape, v.dtype) for k, v in compare.load(self.path(f"{i}.s")).items()}
            form = form or now
            self.check(now == form, f"{name}: form of the file")
        self.right("one", steps=20).check(
            "over changes of shape", SHALLOW, got, save=f"{len(shapes) - 1}.s"
        )
        self.check(
            len(got) == 20 and np.allclose(got, want, rtol=1e-5),
            f"over changes of shape: {got}, expected {want}",
        )

    def processes(self):
        mpirun = shutil.which("mpirun")
        if not mpirun or not os.path.exists(
            os.path.join(os.path.dirname(self.ckrun_path), "ckr_mpi.so")
        ):
            print("skipped: processes, which need mpirun and ckr_mpi.so")
            return
        for name, n, how in (
            ("micro", 2, ""),
            ("micro-3", 2, ""),
            ("group-3", 4, ""),
            ("loud", 2, ""),
            ("ranks-3", 4, "CKR_FILES=first"),
        ):
            launch = [
                "env",
                "ASAN_OPTIONS=detect_leaks=0",
                *how.split(),
                mpirun,
                "--allow-run-as-root",
                "--oversubscribe",
                "-n",
                n,
            ]
            want = self.train(name, "--save", "virtual.s")
            got = self.train(name, "--save", "apart.s", launch=launch)
            self.check(
                np.array_equal(got, want), f"{n} processes: losses {got}, virtual ranks' {want}"
            )
            self.same("apart.s", "virtual.s", f"{n} processes")
            want, got = (
                self.train(name, "--resume", "apart.s", steps=5, launch=by) for by in ((), launch)
            )
            self.check(
                len(got) == 2 and np.array_equal(got, want),
                f"{n} processes: losses {got} behind a checkpoint, expected {want}",
            )

    def many(self):
        """Steps of one sample on each of n replicas are those of gradient descent by n samples, in
        double precision."""
        rng = np.random.default_rng(2)
        with open(self.path("many.ck"), "w") as f:
            f.write(MANY)
        for n, flags in (128, ["--dp", "auto"]), (1024, ["--dp", 1024, "--zero", 1]):
            x, t, w = (rng.normal(0, 1, s) for s in ((n, 3), (n, 4), (3, 4)))
            files.st_write(self.path("many.st"), tensors({"x": np.float32(x), "t": np.float32(t)}))
            files.st_write(self.path("w.st"), tensors({"w": np.float32(w)}))
            self.must(
                self.ckc(
                    self.path("many.ck"),
                    "-o",
                    self.path("many.so"),
                    "--optimizer",
                    "sgdm",
                    "--quiet",
                    *flags,
                ),
                f"{flags}",
            )
            self.must(
                self.ckrun(
                    "many.so",
                    "--ranks",
                    n,
                    "--inputs",
                    "many.st",
                    "--init",
                    "w.st",
                    "--steps",
                    3,
                    "--lr",
                    0.1,
                    "--momentum",
                    0.5,
                    "--weight-decay",
                    0,
                    "--log",
                    "many.log",
                    "--save",
                    "many.out",
                    "--quiet",
                ),
                f"{n} replicas",
            )
            want, m = [], 0
            for _ in range(3):
                d = x @ w - t
                want.append(np.mean(d * d))
                m = 0.5 * m + 2 * x.T @ d / d.size
                w = w - 0.1 * m
            got = ck.losses(self.path("many.log"))
            self.check(
                np.allclose(got, want, rtol=1e-5, atol=0),
                f"{n} replicas: losses {got}, expected {want}",
            )
            self.check(
                np.allclose(compare.load(self.path("many.out"))["w"], w, rtol=1e-5, atol=1e-6),
                f"{n} replicas: w",
            )
            os.remove(self.path("many.log"))

    def models(self):
        """Whole models: the bits of replicas that hold all, also where a budget gathers parameters
        again."""
        for name in "cnn-bn-batch", "gpt2-dropout-ts17":
            stem = os.path.join(ck.MODELS, name)
            flags = ck.model_flags(stem)[0]
            x = compare.load(stem + ".inputs.safetensors")
            files.st_write(
                self.path("x.st"),
                tensors({k: np.concatenate([v, v[::-1]]) if v.ndim else v for k, v in x.items()}),
            )
            runs = []
            for more in [], ["--zero", 3, "--memory-budget", "85%"]:
                so, log, saved = self.path("w.so"), self.path("w.log"), self.path(f"w{len(runs)}")
                build = self.ckc(stem + ".onnx", "-o", so, *flags, "--dp", 2, *more, "--quiet")
                train = ["--steps", 3, "--lr", 0.01, "--ranks", 2, "--log", log, "--save", saved]
                if os.path.exists(log):
                    os.remove(log)
                if self.must(build, f"{name} {more}") and self.must(
                    self.ckrun("w.so", "--inputs", "x.st", *train, "--quiet"), f"{name} {more}"
                ):
                    runs.append(ck.losses(log))
                    self.check(runs[-1] == runs[0], f"{name} {more}: {runs[-1]}, of all {runs[0]}")
                    self.same(saved, "w0", f"{name} {more}")

    def auto(self):
        """--zero auto takes the stage with the least exposed seconds of all that fit, by plans of
        each, and the least of equal ones; a budget in percent is one of replicas that hold all."""
        stem = os.path.join(ck.MODELS, "gpt2-logits")
        out = self.path("auto.json")
        plan = [stem + ".onnx", "--plan-only", *ck.model_flags(stem)[0], "--dp", 2, "--json", out]
        for more in [], ["--grad-accum", 8]:
            top = 0
            for percent in None, 80, 50:
                if percent and not top:
                    continue
                budget = ["--memory-budget", f"{top * percent // 100}B"] if percent else []
                seconds = {}
                for stage in range(4):
                    done = self.ckc(*plan, *more, "--zero", stage, *budget, "--quiet")
                    if done.returncode == 0:
                        built = ck.plan(out)
                        seconds[stage] = exposed(built, value(more, "--grad-accum", 1))
                        top = top or built["summary"]["peak_bytes"]
                if percent:
                    budget[1] = f"{percent}%"
                done = self.ckc(*plan, *more, "--zero", "auto", *budget)
                found = re.search(r"--zero auto takes stage (\d)", done.stderr)
                what = f"auto {more} {percent}: {done.stderr}; {seconds}"
                if not self.check(found, what):
                    continue
                stage, least = int(found[1]), min(seconds.values(), default=0)
                self.check((done.returncode == 0) == bool(seconds), what)
                if seconds:
                    self.check(seconds.get(stage, 1) <= least * 1.03, what)
                    # the budget's bytes are the same
                    now = exposed(ck.plan(out), value(more, "--grad-accum", 1))
                    self.check(now == seconds.get(stage), what)

    def refusals(self):
        with open(self.path("no.ck"), "w") as f:
            f.write(GRAPH.format(b=2))

        def no(flags, *words):
            done = self.ckc(self.path("no.ck"), "-o", self.path("no.so"), "--quiet", *flags)
            self.check(
                done.returncode in (1, 2) and all(w in done.stderr for w in words),
                f"{flags}: {done.returncode} {done.stderr}",
            )

        no(["--zero", 1], "found no --dp", "try: --zero 1 --dp 2")
        no(["--zero", 1, "--dp", "auto"], "found --dp auto", "try: --zero 1 --dp 2")
        no(["--zero", 2], "found no --dp", "try: --zero 2 --dp 2")
        no(["--zero", 4, "--dp", 2], "--zero", "expected 0, 1, 2, 3 or auto")
        for n, group, words in (
            (15, 10, "expected a divisor of --dp 15; try: --zero-group 5"),
            (64, 12, "try: --zero-group 8"),
            (5, 2, "--dp 5 has no divisors, so that replicas form no groups"),
            (1, 2, "--dp 1 has no divisors"),
        ):
            no(["--zero", 2, "--dp", n, "--zero-group", group], words)
        done = self.ckc(self.path("no.ck"), "--plan-only", "--dp", 1, "--zero", 3)
        self.check("--zero does nothing with --dp 1" in done.stderr, f"--dp 1: {done.stderr}")
        for n in (["--dp", 1025, "--zero", 1], ["--tp", 1025]):
            for verb in (["-o", self.path("no.so")], ["--plan-only"], ["--curve"]):
                done = self.ckc(self.path("no.ck"), *verb, *n)
                self.check(
                    done.returncode == 2
                    and "from 1 to 1024" in done.stderr
                    and "1025" in done.stderr,
                    f"{verb} {n}: {done.stderr}",
                )
            done = self.ckc("inspect", self.path("no.ck"), *n)
            self.check(
                done.returncode == 2 and "from 1 to 1024" in done.stderr,
                f"inspect {n}: {done.stderr}",
            )
        # a small arena whose least plan keeps nearly everything
        stem = os.path.join(ck.MODELS, "clip-learnt-ts14")
        done = self.ckc(
            *(stem + ".onnx", *ck.model_flags(stem)[0], "--plan-only", "--dp", 2, "--zero", 3),
            *("--dtype", "bf16", "--memory-budget", "90%", "--quiet"),
        )
        self.check(done.returncode in (0, 1), f"clip-learnt: {done.returncode} {done.stderr}")
        # a budget that only the layout found with it meets
        stem = os.path.join(ck.MODELS, "gpt2-logits")
        for percent in range(50, 100, 5):
            done = self.ckc(
                *(stem + ".onnx", *ck.model_flags(stem)[0], "--plan-only", "--dp", 2),
                *("--zero", 3, "--memory-budget", f"{percent}%", "--quiet"),
            )
            self.check("internal" not in done.stderr, f"{percent} %: {done.stderr}")
        # the time limit of one stage's plan is not that of the others
        stem = os.path.join(ck.MODELS, "gpt2-logits")
        done = self.ckc(
            *(stem + ".onnx", *ck.model_flags(stem)[0], "-o", self.path("late.so"), "--dp", 2),
            *("--tp", 2, "--zero", "auto", "--memory-budget", "80%", "--plan-time", 0.05),
        )
        self.check(
            done.returncode == 0 and "cannot evaluate" not in done.stderr, f"late: {done.stderr}"
        )
        done = self.ckrun(self.library("two"), "--ranks", 3, "--inputs", "in4.st")
        self.check(
            done.returncode == 1
            and "compiled for 2 replicas" in done.stderr
            and "the same --zero or --ep and --dp 3" in done.stderr,
            done.stderr,
        )


def main():
    bench = Zero()
    rng = np.random.default_rng(0)
    x, labels = np.float32(rng.normal(0, 1, (15, 6))), rng.integers(0, 7, 15)
    labels[:2] = -100  # all of one replica
    for n in 4, 12, 15:
        files.st_write(bench.path(f"in{n}.st"), tensors({"x": x[:n], "labels": labels[:n]}))
    files.st_write(
        bench.path("init.st"),
        tensors(
            {
                "w1": np.float32(rng.normal(0, 0.5, (6, 21))),
                "b1": np.float32(rng.normal(0, 0.5, 21)),
                "w2": np.float32(rng.normal(0, 0.5, (21, 7))),
                "scale": np.float32(1.5),
            }
        ),
    )
    for part in bench.names or ["bits", "files", "processes", "many", "models", "auto", "refusals"]:
        getattr(bench, part)()
    bench.finish()


main()
