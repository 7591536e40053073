#!/usr/bin/env python3
"""Gradients that f16 cannot hold: too small without a loss scale, too large with one.

    loss_scale.py CKC CKRUN

mean((x w v - t)^2) c, whose gradients numpy computes in double precision: an input c makes them as
small or large as is wanted.  Parameters must be what the optimizers' formulas (optimizers.py) make
of these; steps that overflow are those that the largest number says.
"""

import os
import sys

import numpy as np

import ck
import optimizers

sys.path.insert(0, ck.TOOLS)
import compare

ROWS, K, H, N = 64, 32, 24, 16
FIRST, LARGEST = 65536, 65504
SMALL = 1e-5  # c for which the first f16 adjoint is 1e-8: mostly 0
TEXT = f"""graph @scaled {{
	input %x: f32[{ROWS},{K}]
	input %t: f32[{ROWS},{N}]
	input %c: f32[]
	param %w: f32[{K},{H}] = splat 0
	param %v: f32[{H},{N}] = splat 0
	%h = matmul %x, %w
	%y = matmul %h, %v
	%d = sub %y, %t
	%q = mul %d, %d
	%m = reduce_mean %q {{axes=[0,1], keepdims=0}}
	%loss: f32[] output = mul %m, %c
	loss %loss
}}
"""
CLASSES = f"""graph @classes {{
	input %x: f32[{ROWS},{K}]
	input %labels: i64[{ROWS}]
	param %w: f32[{K},{N}] = splat 0
	%z = matmul %x, %w
	%loss: f32[] output, %lse, %den = sce %z, %labels
	loss %loss
}}
"""
RATES = {"sgd": 3e3, "sgdm": 1e3, "adam": 1e-2, "adamw": 1e-2, "lion": 1e-3, "adafactor": 1e-2}


def adjoints(x, t, p):
    """Of everything that is f16, and of the parameters, for c = 1."""
    h = x @ p["w"]
    d = h @ p["v"] - t
    dy = 2 * d / d.size
    dh = dy @ p["v"].T
    return {"w": x.T @ dh, "v": h.T @ dy}, max(abs(dy).max(), abs(dh).max(), 1 / d.size)


def largest(grads, other, c):
    return c * max(other, *(abs(g).max() for g in grads.values()))


class Scale:
    def __init__(self):
        self.bench = ck.Bench()
        rng = np.random.default_rng(11)
        self.x, self.t = rng.normal(size=(2 * ROWS, K)), rng.normal(size=(2 * ROWS, N))
        self.p = {
            "w": rng.normal(0, K**-0.5, (K, H)).astype(np.float32),
            "v": rng.normal(0, H**-0.5, (H, N)).astype(np.float32),
        }
        self.init = self.bench.path("init.safetensors")
        optimizers.write_tensors(self.init, self.p)
        for name, text in ("m", TEXT), ("classes", CLASSES):
            with open(self.bench.path(name + ".ck"), "w", encoding="utf-8") as f:
                f.write(text)

    def data(self, c, batches=1):
        path = self.bench.path("inputs.safetensors")
        n = batches * ROWS
        optimizers.write_tensors(
            path,
            {
                "x": self.x[:n].astype(np.float32),
                "t": self.t[:n].astype(np.float32),
                "c": np.full((), c, np.float32),
            },
        )
        return path

    def compile(self, name, *flags, model="m", dtype="f16"):
        so = self.bench.path(name + ".so")
        self.bench.must(
            self.bench.ckc(
                self.bench.path(model + ".ck"),
                "-o",
                so,
                "--dtype",
                dtype,
                "--threads",
                1,
                "--quiet",
                *flags,
            ),
            f"compile {name}",
        )
        return so

    def run(self, so, c, steps, *flags, batches=1, start=True):
        start = ["--init", self.init] if start else []
        return self.bench.ckrun(
            so,
            "--inputs",
            self.data(c, batches),
            "--steps",
            steps,
            "--weight-decay",
            0,
            *start,
            *flags,
        )

    def train(self, so, c, steps, *flags, **how):
        """Parameters, rows of the log, what was printed."""
        save, log = self.bench.path("save"), self.bench.path("log")
        if os.path.exists(log):  # which a run that goes on would add to
            os.remove(log)
        done = self.run(so, c, steps, "--save", save, "--log", log, *flags, **how)
        self.bench.must(done, f"{os.path.basename(so)} {flags}")
        return compare.load(save), ck.log_rows(log), done.stdout

    def gradients(self, p, c, batches=1):
        parts = [
            adjoints(self.x[i * ROWS : (i + 1) * ROWS], self.t[i * ROWS : (i + 1) * ROWS], p)[0]
            for i in range(batches)
        ]
        return {k: c * sum(g[k] for g in parts) / batches for k in p}

    def formula(self, optimizer, c, steps, batches=1, clip=0):
        hyper = dict(optimizers.DEFAULTS[optimizer], lr=RATES[optimizer], decay=0)
        if optimizer in ("adam", "adamw"):
            hyper["eps"] = 1e-15
        rule, p, state = (
            getattr(optimizers, optimizer),
            {k: v.astype(float) for k, v in self.p.items()},
            {"w": {}, "v": {}},
        )
        for t in range(1, steps + 1):
            g = self.gradients(p, c, batches)
            norm = np.sqrt(sum((x * x).sum() for x in g.values()))
            for k in p:
                p[k] = rule(
                    p[k], g[k] * (clip / norm if 0 < clip < norm else 1), state[k], t, **hyper
                )
        return p

    def rates(self, optimizer):
        return [
            "--lr",
            RATES[optimizer],
            *(["--eps", 1e-15] if optimizer in ("adam", "adamw") else []),
        ]

    def moved(self, got, want, what, most=0.02):
        """By what the way from the initial parameters differs, relative to its length."""
        for k, p in self.p.items():
            way = want[k] - p
            far = np.linalg.norm(got[k] - want[k]) / np.linalg.norm(way)
            self.bench.check(far < most, f"{what}: '{k}' is off by {far:.3f} of its way")

    # ---- what is too small

    def follows(self):
        for optimizer in RATES:
            so = self.compile(optimizer, "--optimizer", optimizer)
            got, rows, _ = self.train(so, SMALL, 5, *self.rates(optimizer))
            self.moved(
                got,
                self.formula(optimizer, SMALL, 5),
                optimizer,
                0.1 if optimizer == "lion" else 0.02,
            )
            self.bench.check([r["loss_scale"] for r in rows] == [FIRST] * 5, f"{optimizer}: {rows}")
        grads = self.bench.path("grads")
        for scale in 1, "dynamic":
            self.bench.must(
                self.run(
                    self.bench.path("sgd.so"), SMALL, 1, "--grads", grads, "--loss-scale", scale
                ),
                "--grads",
            )
            got, want = compare.load(grads), self.gradients(self.p, SMALL)
            far = max(np.linalg.norm(got[k] - want[k]) / np.linalg.norm(want[k]) for k in want)
            self.bench.check(
                far > 0.3 if scale == 1 else far < 0.01,
                f"gradients by scale {scale} are off by {far}",
            )
            self.bench.check(
                all(v.dtype == np.float32 for v in got.values()), f"types of gradients: {got}"
            )

    # ---- what is too large

    def steep(self):
        """A c for which four steps overflow, with a factor of 0.7 to spare either way."""
        return (
            0.7
            * LARGEST
            / (FIRST / 16)
            / largest(*adjoints(self.x[:ROWS], self.t[:ROWS], self.p), 1)
        )

    def overflows(self):
        so, c = self.bench.path("adamw.so"), self.steep()
        scales = [FIRST / 2**i for i in range(4)] + [FIRST / 16] * 4
        rate = self.rates("adamw")
        got, rows, out = self.train(so, c, 8, *rate, "--clip", 1e9)
        self.moved(got, self.formula("adamw", c, 4), "after skipped steps")
        self.bench.check(
            [r["loss_scale"] for r in rows] == scales, f"scales {[r['loss_scale'] for r in rows]}"
        )
        self.bench.check(
            [r.get("skipped", False) for r in rows] == [True] * 4 + [False] * 4, f"skipped: {rows}"
        )
        self.bench.check(
            [r["grad_norm"] is None for r in rows] == [True] * 4 + [False] * 4, f"norms: {rows}"
        )
        self.bench.check(
            out.count("overflows: skipped") == 4
            and "\n4 steps skipped because gradients overflowed, loss scale now 4096\n" in out,
            f"what is printed: {out}",
        )
        half = self.bench.path("half")
        kept, rows, _ = self.train(so, c, 4, *rate)
        self.bench.check(
            all(np.array_equal(kept[k], self.p[k]) for k in self.p),
            "skipped steps change parameters",
        )
        os.rename(self.bench.path("save"), half)
        # taken up under another plan, bits are the same
        again = self.compile("again", "--recompute", "full")
        more, _, _ = self.train(again, c, 8, *rate, "--clip", 1e9, "--resume", half, start=False)
        self.bench.check(
            all(np.array_equal(more[k], got[k]) for k in got), "a resumed run has other bits"
        )
        return half

    def types(self, half):
        """A run goes on in another type, and comes back."""
        so = {dtype: self.compile(dtype, dtype=dtype) for dtype in ("f32", "bf16")}
        for dtype, path in so.items():
            _, rows, _ = self.train(path, 1, 5, "--resume", half, start=False)
            self.bench.check(len(rows) == 1 and "loss_scale" not in rows[0], f"in {dtype}: {rows}")
            _, rows, _ = self.train(
                self.bench.path("adamw.so"), 1, 6, "--resume", self.bench.path("save"), start=False
            )
            self.bench.check(
                [r["loss_scale"] for r in rows] == [FIRST], f"back from {dtype}: {rows}"
            )
        c = self.steep()
        done = self.run(
            self.bench.path("adamw.so"),
            c,
            2,
            "--against",
            so["f32"],
            "--rtol",
            0.02,
            "--lr",
            1e-4,
            "--eps",
            1e-15,
        )
        self.bench.must(done, "--against")
        self.bench.check("4 tensors compared" in done.stdout, f"--against: {done.stdout}")
        done = self.run(self.bench.path("again.so"), c, 1, "--check")
        self.bench.must(done, "--check")
        self.bench.check(
            "scale 4096" in done.stdout and "skipped" not in done.stdout, f"--check: {done.stdout}"
        )

    def fixed(self):
        so, c, grads = self.bench.path("adamw.so"), self.steep(), self.bench.path("first")
        done = self.run(so, c, 3, "--loss-scale", FIRST)
        self.bench.check(
            done.returncode == 1
            and "is not finite: " in done.stderr
            and "at a loss scale of 65536" in done.stderr,
            f"a fixed scale that overflows: {done.stderr}",
        )
        done = self.run(so, c, 3, "--loss-scale", FIRST, "--on-nan", "skip")
        self.bench.check(
            done.returncode == 0
            and "3 steps skipped\n" in done.stdout
            and "its update is skipped" in done.stderr,
            f"--on-nan skip: {done.stdout} {done.stderr}",
        )
        # a run of one step takes it until there are gradients
        self.bench.must(self.run(so, c, 1, "--grads", grads), "--grads of a step that overflows")
        got, want = compare.load(grads), self.gradients(self.p, c)
        self.bench.check(
            all(np.linalg.norm(got[k] - want[k]) < 0.01 * np.linalg.norm(want[k]) for k in want),
            "gradients of the first step",
        )
        # no update: no step to skip
        none = self.compile("none", "--optimizer", "none")
        done = self.bench.ckrun(
            none, "--inputs", self.data(c), "--init", self.init, "--grads", grads
        )
        self.bench.check(
            done.returncode == 0 and "scale 4096" in done.stdout,
            f"without updates: {done.stdout} {done.stderr}",
        )
        got = compare.load(grads)
        self.bench.check(
            all(np.linalg.norm(got[k] - want[k]) < 0.01 * np.linalg.norm(want[k]) for k in want),
            "gradients without updates",
        )

    def clips(self):
        """The norm that is compared and told is that of gradients as they are, whatever their
        scale."""
        so, want = self.bench.path("sgd.so"), self.formula("sgd", 1, 2, clip=1e-4)
        norm = np.sqrt(sum((g * g).sum() for g in self.gradients(self.p, 1).values()))
        for scale in 64, 1000, "dynamic":
            got, rows, _ = self.train(
                so, 1, 2, *self.rates("sgd"), "--clip", 1e-4, "--loss-scale", scale
            )
            self.moved(got, want, f"clipped at scale {scale}")
            self.bench.check(
                abs(rows[0]["grad_norm"] / norm - 1) < 0.01,
                f"norm {rows[0]['grad_norm']} at scale {scale}, not {norm}",
            )

    # ---- several batches, several ranks

    def parts(self):
        rate = self.rates("adamw")
        accum = self.compile("accum", "--grad-accum", 2)
        got, _, _ = self.train(accum, SMALL, 4, *rate, batches=2)
        self.moved(got, self.formula("adamw", SMALL, 4, batches=2), "--grad-accum")
        two = self.compile("two", "--tp", 2)
        got, rows, _ = self.train(two, SMALL, 4, *rate, "--clip", 1e9)
        self.moved(got, self.formula("adamw", SMALL, 4), "--tp 2")
        norm = np.sqrt(sum((g * g).sum() for g in self.gradients(self.p, SMALL).values()))
        self.bench.check(
            abs(rows[0]["grad_norm"] / norm - 1) < 0.01,
            f"norm over ranks {rows[0]['grad_norm']}, not {norm}",
        )
        got, rows, _ = self.train(two, self.steep(), 8, *rate)
        self.bench.check(
            [r.get("skipped", False) for r in rows] == [True] * 4 + [False] * 4,
            f"skipped of two ranks: {rows}",
        )
        self.moved(got, self.formula("adamw", self.steep(), 4), "--tp 2 after skipped steps")
        self.sums()

    def sums(self):
        """A sum over ranks that overflows where no summand does, nor anything else: w is whole, and
        a rank has some of v's columns."""
        p = {"w": self.p["w"] / 4, "v": self.p["v"] * 4}
        (grads, other), half = adjoints(self.x[:ROWS], self.t[:ROWS], p), N // 2
        dy = 2 * (self.x[:ROWS] @ p["w"] @ p["v"] - self.t[:ROWS]) / (ROWS * N)
        summands = [
            self.x[:ROWS].T @ (dy[:, at : at + half] @ p["v"][:, at : at + half].T)
            for at in (0, half)
        ]
        whole = abs(grads["w"]).max()
        self.bench.check(
            largest({"v": grads["v"], **dict(enumerate(summands))}, other, 1) < 0.9 * whole,
            "a sum is not the largest",
        )
        so, init = (
            self.compile("sums", "--tp", 2, "--shard", "w=R", "--shard", "v=S1"),
            self.bench.path("sums.init"),
        )
        optimizers.write_tensors(init, p)
        _, rows, _ = self.train(
            so, LARGEST / 0.95 / FIRST / whole, 2, "--lr", 1e-4, "--init", init, start=False
        )
        self.bench.check(
            [r.get("skipped", False) for r in rows] == [True, False],
            f"a sum that overflows: {rows}",
        )

    def classes(self):
        rng = np.random.default_rng(3)
        w, labels = rng.normal(size=(K, N)).astype(np.float32), rng.integers(0, N, ROWS)
        x = self.x[:ROWS].astype(np.float32)
        data, init = self.bench.path("classes.npz"), self.bench.path("classes.init")
        np.savez(data, x=x, labels=labels)
        optimizers.write_tensors(init, {"w": w})
        z = x.astype(float) @ w
        e = np.exp(z - z.max(1, keepdims=True))
        want = x.T @ ((e / e.sum(1, keepdims=True) - np.eye(N)[labels]) / ROWS)
        for name, flags in ("fused", ()), ("ranks", ("--tp", 2)):
            so, grads = (
                self.compile(name, *flags, model="classes"),
                self.bench.path("classes.grads"),
            )
            for scale in 128, "dynamic":
                done = self.bench.ckrun(
                    so,
                    "--inputs",
                    data,
                    "--init",
                    init,
                    "--steps",
                    1,
                    "--grads",
                    grads,
                    "--loss-scale",
                    scale,
                )
                if self.bench.must(done, f"classes {name}"):
                    far = np.linalg.norm(compare.load(grads)["w"] - want) / np.linalg.norm(want)
                    self.bench.check(
                        far < 0.01, f"classes {name}: gradients by scale {scale} are off by {far}"
                    )

    def refusals(self):
        for value, why in (
            ("0", "needs a number above 0, or dynamic"),
            ("-2", "needs a number above 0"),
            ("auto", "needs a number above 0"),
        ):
            done = self.run(self.bench.path("adamw.so"), 1, 1, "--loss-scale", value)
            self.bench.check(
                done.returncode == 2 and "--loss-scale " + why in done.stderr,
                f"--loss-scale {value}: {done.stderr}",
            )
        # to say "--dtype f16" alone would lead in a circle where there are no products
        bare = self.bench.path("bare.ck")
        with open(bare, "w", encoding="utf-8") as f:
            f.write(
                "graph @bare {\n\tinput %x: f32[4]\n\tparam %w: f32[4] = splat 1\n\t%y = mul %x, %w\n"
                "\t%loss: f32[] output = reduce_mean %y {axes=[0], keepdims=0}\n\tloss %loss\n}\n"
            )
        self.bench.must(
            self.bench.ckc(bare, "--dtype", "f16", "--quiet", "-o", self.bench.path("bare.so")),
            "a model without products",
        )
        for name, value in ("f32", "dynamic"), ("f32", "8"), ("bare", "8"):
            done = self.bench.ckrun(
                self.bench.path(name + ".so"), "--steps", 1, "--loss-scale", value
            )
            self.bench.check(
                done.returncode == 1
                and f"{name}.so has no f16 gradients, so the loss is not scaled; omit the option, or "
                "compile a model with matrix products with ckc --dtype f16"
                in done.stderr,
                f"--loss-scale {value} of {name}: {done.stderr}",
            )
        done = self.run(
            self.bench.path("f32.so"),
            1,
            1,
            "--loss-scale",
            8,
            "--against",
            self.bench.path("bf16.so"),
        )
        self.bench.check(
            done.returncode == 2
            and "--loss-scale needs a library with f16 gradients" in done.stderr,
            f"{done.stderr}",
        )
        # no budget makes updates part of the backward pass, and no hint says what would be refused
        for dtype in "f32", "f16":
            done = self.bench.ckc(
                self.bench.path("m.ck"),
                "--plan-only",
                "--dtype",
                dtype,
                "--memory-budget",
                "10KiB",
                "--update-in-backward",
                "off",
            )
            self.bench.check(
                ("--update-in-backward on" in done.stderr) == (dtype == "f32"),
                f"the hint in {dtype}: {done.stderr}",
            )
        late = {}
        for dtype, budget in ("bf16", "85%"), ("f16", "90%"):
            plan = self.bench.path("plan.json")
            self.bench.must(
                self.bench.ckc(
                    ck.SAMPLE,
                    "--plan-only",
                    "--dim",
                    "batch=2",
                    "--dim",
                    "seq=32",
                    "--dtype",
                    dtype,
                    "--memory-budget",
                    budget,
                    "--json",
                    plan,
                    "--quiet",
                ),
                f"a budget in {dtype}",
            )
            late[dtype] = any(step["op"] == "grad_norm" for step in ck.plan(plan)["schedule"])
        self.bench.check(
            late == {"bf16": False, "f16": True}, f"updates behind the backward pass: {late}"
        )

    def all(self):
        self.follows()
        self.types(self.overflows())
        self.fixed()
        self.clips()
        self.parts()
        self.classes()
        self.refusals()
        self.bench.finish()


if __name__ == "__main__":
    Scale().all()
