#!/usr/bin/env python3
"""Micro-batches of a step beside the whole batch.

    accum.py CKC CKRUN [forms] [kinds] [outputs]

forms   losses of tests/tools/lossforms.py, each with a weight of its own: loss and gradients of 1,
2, 3, 4 and 8 micro-batches are those
        of all rows, in closed form in double precision.  Micro-batches have different numbers of
        labels, and of weights; one has all, one none.  So they are with replicas, with states
        shared out, on ranks, on an emulated GPU's kernels, clipped, in f16, with adapters, under a
        budget and as --check compares plans.
kinds   what --loss adds, with all its settings.
outputs --outputs has the loss of all micro-batches, and of other outputs those of the last one,
which a note says.
"""

import sys

import numpy as np

import ck
import files

sys.path.insert(0, ck.TOOLS)
import compare
import lossforms as forms
import replay

SPLITS = (1, 2, 3, 4, 8)


def tensors(values):
    return {
        k: ("I64" if v.dtype == np.int64 else "F32", list(v.shape), v.ravel().tolist())
        for k, v in values.items()
    }


class Accum(ck.Bench):
    def text(self, name, text):
        with open(self.path(name), "w") as f:
            f.write(text)
        return self.path(name)

    def built(self, kinds, n, *flags, parts=1):
        """A library of the kinds' losses for n micro-batches on so many replicas."""
        model = self.text("m.ck", forms.graph(kinds, forms.ROWS // n // parts))
        done = self.ckc(
            model,
            "-o",
            self.path("m.so"),
            "--loss",
            "loss",
            "--optimizer",
            "sgd",
            "--grad-accum",
            n,
            *flags,
        )
        self.must(done, f"{n} micro-batches {flags}")
        return done

    def step(self, half, *flags):
        done = self.ckrun(
            "m.so",
            "--inputs",
            f"half{half:d}.st",
            "--init",
            "w.st",
            "--steps",
            1,
            "--lr",
            0,
            "--log",
            self.path("log"),
            "--grads",
            "g.st",
            "--quiet",
            *flags,
        )
        if not self.must(done, f"a step {flags}"):
            return None, {}
        return ck.log_rows(self.path("log"))[-1], compare.load(self.path("g.st"))

    def right(self, kinds, half, what, rtol=1e-5, **run):
        row, got = self.step(half, *run.get("flags", []))
        if row is None:
            return
        x, w = forms.batch(half), forms.weights(kinds)
        want = sum(forms.loss(k, x, w[f"w.{k}"]) for k in kinds)
        self.check(
            abs(row["loss"] - want) <= rtol * abs(want),
            f"{what}: loss {row['loss']}, expected {want}",
        )
        for k in kinds:
            g = self.truth(k, half)
            far = np.abs(got[f"w.{k}"] - g).max() / np.abs(g).max()
            self.check(far <= rtol, f"{what}: gradient of '{k}' is off by {far:.2g} of the largest")

    def truth(self, kind, half):
        if (kind, half) not in self.known:
            self.known[kind, half] = forms.gradient(
                kind, forms.batch(half), forms.weights([kind])[f"w.{kind}"]
            )
        return self.known[kind, half]

    def forms(self):
        self.known = {}
        kinds = list(forms.TEXT)
        files.st_write(self.path("w.st"), tensors(forms.weights(kinds)))
        for half in False, True:
            files.st_write(self.path(f"half{half:d}.st"), tensors(forms.batch(half)))
        for n in SPLITS:
            done = self.built(kinds, n)
            self.check(
                ("one more forward pass over all micro-batches" in done.stderr) == (n > 1),
                f"{n}: {done.stderr}",
            )
            for half in False, True:
                self.right(kinds, half, f"{n} micro-batches, half {half:d}")
        self.replayed(kinds)
        for n, parts, flags, run, rtol in WAYS:
            if self.built(kinds, n, *flags, parts=parts).returncode == 0:
                for half in False, True:
                    self.right(
                        kinds,
                        half,
                        f"{n} micro-batches {flags} {run}, half {half:d}",
                        rtol,
                        flags=run,
                    )
        self.clipped()
        self.adapted(kinds)

    def adapted(self, kinds):
        """Adapters: w + ALPHA / RANK (B A)^T, whose gradients follow from that of the whole
        product."""
        rank, alpha, rng, base = 2, 6, np.random.default_rng(8), forms.weights(kinds)
        adapter = {}
        for k in kinds:
            rows, cols = base[f"w.{k}"].shape
            adapter[k] = (
                np.float32(rng.normal(0, 0.3, (rank, rows))),
                np.float32(rng.normal(0, 0.3, (cols, rank))),
            )
        files.st_write(
            self.path("a.st"),
            tensors(
                {
                    f"base_model.model.w.{k}.lora_{x}.weight": v
                    for k in kinds
                    for x, v in zip("AB", adapter[k])
                }
            ),
        )
        truth = {}
        for n in 2, 4:
            done = self.built(kinds, n, "--lora", f"w.*={rank}:{alpha}")
            for half in (False, True) if done.returncode == 0 else ():
                row, got = self.step(half, "--init", "a.st")
                want, x = 0, forms.batch(half)
                for k in kinds if row else ():
                    a, b = (np.float64(v) for v in adapter[k])
                    alone = f"w.{k}.lora_A.weight" in got  # by products
                    w = base[f"w.{k}"] + alone * alpha / rank * (b @ a).T
                    want += forms.loss(k, x, w)
                    if not alone:
                        continue
                    if (k, half) not in truth:
                        truth[k, half] = forms.gradient(k, x, w)
                    dw = alpha / rank * truth[k, half].T
                    for name, g in ("A", b.T @ dw), ("B", dw @ a.T):
                        far = np.abs(got[f"w.{k}.lora_{name}.weight"] - g).max() / np.abs(g).max()
                        self.check(
                            far <= 1e-5,
                            f"adapters of '{k}', {n} micro-batches, half {half:d}: gradient of {name} is off by {far:.2g}",
                        )
                if row:
                    self.check(len(got) >= len(kinds), f"adapters: {sorted(got)}")
                    self.check(
                        abs(row["loss"] - want) <= 1e-5 * abs(want),
                        f"adapters, {n} micro-batches, half {half:d}: loss {row['loss']}, expected {want}",
                    )

    def replayed(self, kinds):
        """Bytes are those planned, as an outside program and the process see them; a plan changes
        no number."""
        self.built(kinds, 2, "--json", self.path("m.json"), "--memory-budget", "95%")
        plan = ck.plan(self.path("m.json"))
        faults = replay.Replay(plan).faults
        self.check(not faults, f"replay: {faults[:3]}")
        row, _ = self.step(True, "--check")
        if row:
            self.peak(row["peak_bytes"], plan, "micro-batches")

    def clipped(self):
        """By the norm over the whole batch."""
        kinds, lr, most = ["weights", "terms"], 0.5, 0.1
        w = forms.weights(kinds)
        self.built(kinds, 4)
        self.must(
            self.ckrun(
                "m.so",
                "--inputs",
                "half1.st",
                "--init",
                "w.st",
                "--steps",
                1,
                "--lr",
                lr,
                "--clip",
                most,
                "--weight-decay",
                0,
                "--save",
                "s.st",
                "--quiet",
                "--log",
                self.path("clip"),
            ),
            "clipped",
        )
        g = {k: self.truth(k, True) for k in kinds}
        norm = np.sqrt(sum((v * v).sum() for v in g.values()))
        self.check(
            norm > most
            and abs(ck.log_rows(self.path("clip"))[-1]["grad_norm"] - norm) < 1e-5 * norm,
            f"norm, expected {norm}",
        )
        got = compare.load(self.path("s.st"))
        for k in kinds:
            want = w[f"w.{k}"] - lr * most / norm * g[k]
            self.check(
                np.abs(got[f"w.{k}"] - want).max() < 1e-6,
                f"clipped: parameter of '{k}' is off by {np.abs(got[f'w.{k}'] - want).max()}",
            )

    # ---- --loss ----

    def kinds(self):
        x, n = forms.batch(False), 4
        rng = np.random.default_rng(5)
        w = np.float32(rng.normal(0, 0.5, (forms.WIDE, forms.CLASSES)))
        soft = np.float32(rng.dirichlet(np.ones(forms.CLASSES), forms.ROWS))
        self.text(
            "k.ck",
            f"graph @k {{\n\tinput %x: f32[{forms.ROWS // n},6]\n\tparam %w: f32[6,5] = splat 0\n"
            "\t%z output = matmul %x, %w\n}\n",
        )
        files.st_write(self.path("kw.st"), tensors({"w": w}))
        for words, data, loss in KINDS:
            given = {
                "x": x["x"],
                **({"labels": x["labels"]} if data == "labels" else {"target": soft}),
            }
            files.st_write(self.path("k.st"), tensors(given))
            done = self.ckc(
                "k.ck",
                "-o",
                self.path("k.so"),
                "--loss",
                words.replace(":", ":z,", 1) if ":" in words else words + ":z",
                "--optimizer",
                "sgd",
                "--grad-accum",
                n,
                "--quiet",
            )
            if not self.must(done, words):
                continue
            run = self.ckrun(
                "k.so",
                "--inputs",
                "k.st",
                "--init",
                "kw.st",
                "--steps",
                1,
                "--lr",
                0,
                "--log",
                self.path("log"),
                "--grads",
                "g.st",
                "--quiet",
            )
            if not self.must(run, words):
                continue

            def of(v):
                return loss(
                    np.float64(given["x"]) @ v,
                    given["labels"] if data == "labels" else np.float64(soft),
                )

            want, got = of(np.float64(w)), ck.losses(self.path("log"))[-1]
            self.check(abs(got - want) <= 1e-5 * abs(want), f"{words}: loss {got}, expected {want}")
            g = forms.slopes(of, w)
            far = np.abs(compare.load(self.path("g.st"))["w"] - g).max() / np.abs(g).max()
            self.check(far <= 1e-5, f"{words}: gradient is off by {far:.2g} of the largest")

    def outputs(self):
        rng = np.random.default_rng(0)
        x, w = np.float32(rng.normal(0, 1, (12, 3))), np.float32(rng.normal(0, 1, (3, 2)))
        files.st_write(self.path("x.st"), tensors({"x": x}))
        files.st_write(self.path("w.st"), tensors({"w": w}))
        z = np.float64(x) @ w
        # the last has products of two samples, so that it is the mean over micro-batches
        forms_of = (
            (
                "mean",
                "%loss: f32[] output = reduce_mean %q {axes=[0,1], keepdims=0}",
                lambda z: (z * z).mean(),
            ),
            (
                "sum",
                "%loss: f32[] output = reduce_sum %q {axes=[0,1], keepdims=0}",
                lambda z: (z * z).sum(),
            ),
            (
                "pairs",
                "%p = matmul %z, %z {tb=1}\n\t%loss: f32[] output = reduce_mean %p {axes=[0,1], keepdims=0}",
                None,
            ),
        )
        for what, end, whole in forms_of:
            for micro, dp in (1, 1), (3, 1), (3, 2):
                if not whole and dp > 1:
                    continue
                b = 12 // micro // dp
                want = (
                    whole(z) if whole else np.mean([(m @ m.T).mean() for m in np.split(z, micro)])
                )
                text = (
                    f"graph @g {{\n\tinput %x: f32[{b},3]\n\tparam %w: f32[3,2] = splat 0\n"
                    f"\t%z: f32[{b},2] output = matmul %x, %w\n\t%q = mul %z, %z\n\t{end}\n}}\n"
                )
                model = self.text("m.ck", text)
                flags = [
                    "--output",
                    "z",
                    "--loss",
                    "loss",
                    "--optimizer",
                    "sgd",
                    *(["--grad-accum", micro] if micro > 1 else []),
                    *(["--dp", dp] if dp > 1 else []),
                ]
                said = f"{what}, {micro} micro-batches, {dp} replicas"
                if not self.must(self.ckc(model, "-o", self.path("m.so"), *flags), said):
                    continue
                done = self.ckrun(
                    "m.so",
                    "--inputs",
                    "x.st",
                    "--init",
                    "w.st",
                    "--steps",
                    1,
                    "--outputs",
                    "o.st",
                    "--ranks",
                    dp,
                    "--quiet",
                )
                if not self.must(done, said):
                    continue
                got = compare.load(self.path("o.st"))
                note = "note: --outputs holds the outputs of the last of 3 micro-batches, and the loss of all"
                self.check((note in done.stderr) == (micro > 1), f"{said}: {done.stderr}")
                last = z[12 - 12 // micro :]
                self.check(
                    got["z"].shape == last.shape and np.allclose(got["z"], last, rtol=1e-5),
                    f"{said}: outputs {got['z']}, expected {last}",
                )
                self.check(
                    np.allclose(got["loss"], want, rtol=1e-5),
                    f"{said}: loss {got['loss']}, expected {want}",
                )

    def statistics(self):
        """Those of a batch are noted, those within a sample are not."""
        # samples in front of channels, among them, and among groups of channels
        for shape, noted in ([4, 6, 8], True), ([1, 24, 8], False), ([1, 8, 24], False):
            model = self.text(
                "s.ck",
                "graph @g {\n\tinput %x: f32[4,6,8]\n\tparam %w: f32[8,8] = splat 1\n"
                f"\t%h = matmul %x, %w\n\t%a = reshape %h {{shape={shape}}}\n"
                "\t%y, %m, %v = batchnorm %a\n\t%z = mul %y, %y\n"
                "\t%loss: f32[] output = reduce_mean %z {axes=[0,1,2], keepdims=0}\n}\n",
            )
            done = self.ckc(model, "-o", self.path("s.so"), "--optimizer", "sgd", "--grad-accum", 2)
            note = "batch normalization uses the statistics of each micro-batch"
            if self.must(done, f"statistics of {shape}"):
                self.check((note in done.stderr) == noted, f"{shape}: {done.stderr}")


def log_softmax(z):
    z = z - z.max(1, keepdims=True)
    return z - np.log(np.exp(z).sum(1, keepdims=True))


def ce(ignore=-100, smoothing=0, weights=(1, 1, 1, 1, 1), mean=True):
    def loss(z, labels):
        logp, w = log_softmax(z), np.array(weights)
        counts, at = labels != ignore, np.where(labels < 0, 0, labels)
        of = w[at] * counts
        hard = (-logp[np.arange(len(z)), at] * of).sum()
        soft = (-(logp * w).sum(1) * counts).sum() / forms.CLASSES
        return ((1 - smoothing) * hard + smoothing * soft) / (of.sum() if mean else 1)

    return loss


def elementwise(f, mean=True):
    return lambda z, t: f(z, t).mean() if mean else f(z, t).sum()


def huber(z, t):
    d = np.abs(z - t)
    return np.where(d < 0.5, d * d / 2, 0.5 * (d - 0.25))


W = (0.5, 1, 2, 0.25, 3)
KINDS = [
    ("ce", "labels", ce()),
    ("ce:reduction=sum", "labels", ce(mean=False)),
    ("ce:smoothing=0.1", "labels", ce(smoothing=0.1)),
    ("ce:weights=0.5/1/2/0.25/3", "labels", ce(weights=W)),
    ("ce:smoothing=0.2,weights=0.5/1/2/0.25/3", "labels", ce(smoothing=0.2, weights=W)),
    ("ce:smoothing=0.2,reduction=sum", "labels", ce(smoothing=0.2, mean=False)),
    ("bce", "target", elementwise(lambda z, t: np.log1p(np.exp(z)) - z * t)),
    (
        "bce:pos_weight=3",
        "target",
        elementwise(lambda z, t: (1 - t) * z + (1 + 2 * t) * np.log1p(np.exp(-z))),
    ),
    ("kl", "target", lambda z, t: (t * (np.log(t) - log_softmax(z))).sum(1).mean()),
    ("mse", "target", elementwise(lambda z, t: (z - t) ** 2)),
    ("mse:reduction=sum", "target", elementwise(lambda z, t: (z - t) ** 2, False)),
    ("l1", "target", elementwise(lambda z, t: np.abs(z - t))),
    ("huber:delta=0.5", "target", elementwise(huber)),
]
S1 = ["--shard", "w.*=S1"]
# micro-batches, replicas, flags of ckc, flags of ckrun, tolerance
WAYS = [
    (2, 2, ["--dp", "auto"], ["--ranks", 2], 1e-5),
    (2, 2, ["--dp", 2, "--zero", 1], [], 1e-5),
    (2, 1, ["--tp", 2, *S1], [], 1e-5),
    (2, 2, ["--tp", 2, "--dp", 2, "--zero", 1, *S1], [], 1e-5),
    (4, 1, ["--dtype", "f16"], [], 1e-2),
]


def main():
    bench = Accum()
    parts = bench.names or ["forms", "kinds", "outputs", "statistics"]
    if "forms" in parts:
        bench.forms()
    if "kinds" in parts:
        bench.kinds()
    if "outputs" in parts:
        bench.outputs()
    if "statistics" in parts:
        bench.statistics()
    bench.finish()


main()
