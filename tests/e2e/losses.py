#!/usr/bin/env python3
"""Losses that --loss adds: their values beside PyTorch's formulas in double precision, and
gradients beside finite differences of those.

    losses.py CKC CKRUN

The formulas are those of torch.nn's losses, which they were compared with.  Two replicas have the
loss of one rank with all samples. What cannot be asked for is refused with what can.
"""

import os
import sys

import numpy as np

import ck
import files

sys.path.insert(0, ck.TOOLS)
import compare

B, C, H = 4, 5, 3
GRAPH = """graph @f {{
	input %x: f32[{b},6]
	param %w: f32[6,15] = splat 0
	param %c: f32[15] = splat 0
	%a = matmul %x, %w
	%y = add %a, %c
	%z output = reshape %y {{shape=[{b},{shape}]}}
	%p output = sigmoid %y
}}
"""
CLASSES, PIXELS = "15", f"{C},{H}"
FIVE = [0.5, 2, 0, 1, 1.5]


def log_softmax(z, axis):
    m = z.max(axis, keepdims=True)
    return z - m - np.log(np.exp(z - m).sum(axis, keepdims=True))


def softplus(z):
    return np.maximum(z, 0) + np.log1p(np.exp(-abs(z)))


def ce(z, t, axis=-1, weights=None, smoothing=0, ignore=-100, mean=True):
    lp = np.moveaxis(log_softmax(z, axis), axis, -1)
    lp, t = lp.reshape(-1, lp.shape[-1]), t.ravel()
    lp, t = lp[t != ignore], t[t != ignore]
    w = np.ones(lp.shape[1]) if weights is None else np.array(weights)
    over = w[t].sum() if mean else 1
    return (1 - smoothing) * -(w[t] * lp[np.arange(len(t)), t]).sum() / over + smoothing / lp.shape[
        1
    ] * -(w * lp).sum() / over


def bce(z, t, pos=1, mean=True):
    each = np.array(pos) * t * softplus(-z) + (1 - t) * softplus(z)
    return each.mean() if mean else each.sum()


def kl(z, t, axis=-1):
    rows = z.size // z.shape[axis]
    return (t * (np.log(np.maximum(t, 1e-30)) - log_softmax(z, axis))).sum() / rows


def huber(d, delta):
    return np.where(abs(d) <= delta, d * d / 2, delta * (abs(d) - delta / 2)).mean()


# --loss, shape of z behind the samples, what it is compared with, the formula
CASES = [
    ("ce:z,ignore=3", CLASSES, "classes", lambda z, t: ce(z, t, ignore=3)),
    ("ce:z,axis=1,smoothing=0.2", PIXELS, "pixels", lambda z, t: ce(z, t, 1, smoothing=0.2)),
    (
        "ce:z,axis=-2,smoothing=0.1,weights=0.5/2/0/1/1.5",
        PIXELS,
        "pixels",
        lambda z, t: ce(z, t, 1, FIVE, 0.1),
    ),
    (
        "ce:z,axis=1,weights=0.5/2/0/1/1.5,reduction=sum",
        PIXELS,
        "pixels",
        lambda z, t: ce(z, t, 1, FIVE, mean=False),
    ),
    ("bce:z", CLASSES, "soft", bce),
    ("bce:z,pos_weight=3,reduction=sum", PIXELS, "soft", lambda z, t: bce(z, t, 3, False)),
    ("bce:z,pos_weight=0.5/2/3", PIXELS, "soft", lambda z, t: bce(z, t, [0.5, 2, 3])),
    ("kl:z", CLASSES, "soft", kl),
    ("kl:z,axis=1", PIXELS, "soft", lambda z, t: kl(z, t, 1)),
    ("mse:z,reduction=sum", PIXELS, "soft", lambda z, t: ((z - t) ** 2).sum()),
    ("l1:z", CLASSES, "soft", lambda z, t: abs(z - t).mean()),
    ("huber:z,delta=0.4", PIXELS, "soft", lambda z, t: huber(z - t, 0.4)),
]
REFUSED = [
    (
        "ce:z,smooth=1",
        "expected axis=N, ignore=K, smoothing=E (0 <= E < 1), weights=W/W/..., reduction=mean|sum, found 'smooth=1'",
    ),
    ("ce:z,smoothing=1", "found 'smoothing=1'"),
    ("huber:z,delta=0", "expected delta=D (above 0), reduction=mean|sum, found 'delta=0'"),
    ("ce:z,weights=1/2", "expected 15 weights, one per class, found 2"),
    ("ce:z,weights=1/x", "found 'weights=1/x'"),
    ("ce:z,axis=2", "has no axis 2"),
    (
        "bce:z,pos_weight=1/2",
        "expected one pos_weight, or one per element of the last axis of 'z', found 2",
    ),
    ("ce:z,weights=1e39/1", "found 'weights=1e39/1'"),
    ("bce:z,pos_weight=1e39", "found 'pos_weight=1e39'"),
    ("huber:z,delta=1e-60", "found 'delta=1e-60'"),
    ("l1:q", "no output and no kind of loss is named 'q'"),
    ("l2:z", "no output and no kind of loss is named 'l2:z'"),
    ("kl:z,", "found ''"),
    ("l1", "several outputs match"),
]


class Losses(ck.Bench):
    def write(self, b, shape):
        with open(self.path(f"m{b}.ck"), "w") as f:
            f.write(GRAPH.format(b=b, shape=shape))
        return self.path(f"m{b}.ck")

    def train(self, so, *more):
        log = self.path("log")
        done = self.ckrun(
            so,
            "--inputs",
            "in.st",
            "--init",
            "p.st",
            "--steps",
            1,
            "--grads",
            "g.st",
            "--log",
            log,
            "--quiet",
            *more,
        )
        return ck.losses(log)[0] if self.must(done, f"{so} {more}") else np.nan

    def case(self, wish, shape, kind, formula, x, p, targets):
        dims = tuple(int(n) for n in shape.split(","))
        t = targets[kind] if kind != "soft" else targets[kind].reshape(B, *dims)
        if kind == "soft" and wish.startswith("kl") and "axis" in wish:
            t = t / t.sum(1, keepdims=True)
        done = self.ckc(self.write(B, shape), "-o", "m.so", "--optimizer", "sgd", "--loss", wish)
        name = "labels" if t.dtype == np.int64 else "target"
        if not self.must(done, wish) or not self.check(
            f"adds the input '{name}'" in done.stderr, f"{wish}: {done.stderr}"
        ):
            return
        x = np.float64(np.float32(x))
        t = t if t.dtype == np.int64 else np.float64(np.float32(t))
        files.st_write(self.path("in.st"), tensors({"x": x, name: t}))

        def at(p):
            return formula((x @ p["w"] + p["c"]).reshape(B, *dims), t)

        found, want = self.train("m.so"), at(p)
        self.check(np.isclose(found, want, rtol=2e-6), f"{wish}: loss {found}, expected {want}")
        g = compare.load(self.path("g.st"))
        for k in p:
            d = differences(at, p, k)
            self.check(
                np.allclose(g[k], d, rtol=1e-4, atol=1e-6),
                f"{wish}: gradient of {k} is off by {abs(g[k] - d).max()}",
            )
        if "smoothing" in wish or "pos" in wish:
            if self.must(
                self.ckc(
                    self.write(B // 2, shape),
                    "-o",
                    "m2.so",
                    "--optimizer",
                    "sgd",
                    "--loss",
                    wish,
                    "--dp",
                    "auto",
                ),
                wish,
            ):
                two = self.train("m2.so", "--ranks", 2)
                self.check(
                    np.isclose(two, found, rtol=1e-5),
                    f"{wish}: of two replicas {two}, of one {found}",
                )

    def beyond_f16(self, x, p, labels):
        """Weights of classes that an output of 16 bits could not hold."""
        with open(self.path("half.ck"), "w") as f:
            f.write(
                GRAPH.format(b=B, shape=CLASSES)
                .replace("reshape %y", "reshape %h")
                .replace("%z", "%h = cast %y {to=f16}\n\t%z")
            )
        wish = "ce:z,weights=" + "/".join(["1e6"] * 15)
        if self.must(
            self.ckc("half.ck", "-o", "half.so", "--optimizer", "sgd", "--loss", wish), wish
        ):
            files.st_write(self.path("in.st"), tensors({"x": x, "labels": labels}))
            found, want = self.train("half.so"), ce(x @ p["w"] + p["c"], labels)
            self.check(
                np.isclose(found, want, rtol=1e-3), f"{wish} of f16: loss {found}, expected {want}"
            )

    def refusals(self):
        m = self.write(B, CLASSES)
        for wish, said in REFUSED:
            done = self.ckc(m, "-o", "no.so", "--loss", wish)
            self.check(
                done.returncode == 1 and said in done.stderr and done.stderr.count("\n") < 5,
                f"{wish}: {done.returncode} {done.stderr}",
            )
        done = self.ckc(m, "--plan-only", "--loss", "bce:p")
        self.check(
            "'p' is a sigmoid, but bce applies sigmoid again" in done.stderr,
            f"bce of a sigmoid: {done.stderr}",
        )
        done = self.ckc(m, "-o", "no.so", "--loss", "nothing")
        self.check(not os.path.exists(self.path("no.so")), "a library is left")


def tensors(values):
    return {
        k: ("I64" if v.dtype == np.int64 else "F32", list(v.shape), v.ravel().tolist())
        for k, v in values.items()
    }


def differences(f, p, k, h=1e-6):
    d = np.zeros_like(p[k])
    for i in np.ndindex(*p[k].shape):
        q = {n: v.copy() for n, v in p.items()}
        q[k][i] += h
        up = f(q)
        q[k][i] -= 2 * h
        d[i] = (up - f(q)) / (2 * h)
    return d


def main():
    bench = Losses()
    rng = np.random.default_rng(3)
    x = rng.normal(0, 1, (B, 6))
    p = {
        "w": np.float64(np.float32(rng.normal(0, 0.7, (6, 15)))),
        "c": np.float64(np.float32(rng.normal(0, 0.5, 15))),
    }
    files.st_write(bench.path("p.st"), tensors(p))
    soft = rng.uniform(0, 1, (B, 15))
    soft[:, 4] = 0  # 0 log 0 is 0
    pixels = rng.integers(0, C, (B, H))
    pixels[0] = -100  # of the first replica half, of the others all count
    targets = {
        "classes": np.array([3, 0, 14, 7]),
        "pixels": pixels,
        "soft": soft / soft.sum(1, keepdims=True),
    }
    for case in CASES:
        bench.case(*case, x, p, targets)
    bench.beyond_f16(x, p, targets["classes"])
    bench.refusals()
    bench.finish()


if __name__ == "__main__":
    main()
