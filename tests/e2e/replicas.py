#!/usr/bin/env python3
"""Replicas, and halves, that partition the samples of a step, beside the interpreter, which takes
them all.

    replicas.py CKC CKRUN GPT [small] [gpt]

Small graphs with every form of loss, with what depends on more than one sample and with random
numbers: losses, gradients, parameters and running statistics of some steps of two and three
replicas, and of one rank, are the interpreter's of the whole batch; where numpy can say them, those
(gradients by finite differences).  All labels of the first replica are ignored, and dropout is on.
A small GPT with dropout besides: micro-batches, ranks that share a model, updates in the backward
pass, budgets, bfloat16, --check, data that a run of another number of replicas goes on with, the
outside replay of the plan.  What cannot be partitioned is refused by name.
"""

import os
import sys

import numpy as np

import ck
import files
from truth import BF16, SHALLOW, Truth

sys.path.insert(0, ck.TOOLS)
import compare
import replay

B, STEPS = 12, 3
BAGS = """graph @bags {
	input %i: i64[2,2]
	param %w: f32[3,1] = splat 1
	%f = reshape %i {shape=[4]}
	%s0: i64[2] = slice %f {start=[0], step=[1]}
	%s1: i64[2] = slice %f {start=[2], step=[1]}
	%g0 = gather %w, %s0 {axis=0}
	%g1 = gather %w, %s1 {axis=0}
	%b0 = reduce_sum %g0 {axes=[0]}
	%b1 = reduce_sum %g1 {axes=[0]}
	%b = concat %b0, %b1 {axis=0}
	%q = mul %b, %b
	%loss: f32[] output = reduce_mean %q {axes=[0,1], keepdims=0}
}
"""
HEAD = """graph @g {{
	input %x: f32[{b},6]
	input %labels: i64[{b}]
	input %t: f32[{b},5]
	param %w: f32[6,5] = splat 0
	param %c: f32[5] = splat 0
	const %weights: f32[5] = {{0.5, 1, 2, 0.25, 3}}
	const %decay: f32[] = {{0.01}}
	%a = matmul %x, %w
	%z = add %a, %c
	%d = sub %z, %t
	%q = mul %d, %d
{rest}}}
"""
ALL, ROWS = "{axes=[0,1], keepdims=0}", "{axes=[0], keepdims=0}"
# name: what makes the loss; %1 and so on are added up
REST = {
    # over labels that count, by weight, summed, over all labels, elements, samples
    "linear": f"""
	%1, _, _ = sce %z, %labels {{reduction=1, ignore=-100}}
	%2, _, _ = sce %z, %labels, %weights {{reduction=1, ignore=-100}}
	%p = log_softmax %z {{axis=1}}
	%3, _ = nll %p, %labels, %weights {{reduction=1, ignore=-100}}
	%4, _, _ = sce %z, %labels {{reduction=2, ignore=-100}}
	%l, _, _ = sce %z, %labels {{reduction=0, ignore=-100}}
	%5 = reduce_mean %l {ROWS}
	%6 = reduce_mean %q {ALL}
	%k = abs %d
	%7 = reduce_sum %k {ALL}
	%s = softplus %z
	%m = mul %z, %t
	%b = sub %s, %m
	%8 = reduce_mean %b {ALL}
""",
    # the root of a mean, what depends on parameters alone, the product of two means as experts'
    # losses have it
    "bent": f"""
	%r = reduce_sum %q {{axes=[1], keepdims=0}}
	%m = reduce_mean %r {ROWS}
	%1 = sqrt %m
	%v = mul %w, %w
	%s = reduce_sum %v {ALL}
	%2 = mul %s, %decay
	%p = softmax %z {{axis=1}}
	%n = reduce_mean %p {ROWS}
	%f = reduce_mean %t {ROWS}
	%o = mul %n, %f
	%3 = reduce_sum %o {ROWS}
""",
    # random numbers, statistics of the batch, each sample against the mean of all, what is the same
    # for every sample
    "mixed": f"""
	param %scale: f32[5] = splat 1
	param %bias: f32[5] = splat 0
	buffer %mean: f32[5] = splat 0
	buffer %var: f32[5] = splat 1
	const %same: f32[1,5] = {{1, -1, 2, 0.5, 3}}
	%h = dropout %z {{ratio=0.4, stream=1}}
	%n: f32[BATCH,5] = random {{shape=[BATCH,5], dt=1, kind=1, stream=2}}
	%i = add %h, %n
	%y, %m, %v = batchnorm %i, %scale, %bias
	%mean1 = bn_update %mean, %m
	%var1 = bn_update %var, %v
	%u = tanh %y
	%o = reduce_mean %u {{axes=[0], keepdims=1}}
	%k = sub %u, %o
	%e = expand %same {{shape=[BATCH,5]}}
	%j = concat %k, %e {{axis=1}}
	%g = tanh %j
	%f = reduce_mean %g {{axes=[1], keepdims=1}}
	%1 = mul %f, %t
	%2 = reduce_mean %1 {ALL}
	%3 = reduce_mean %q {ALL}
""".replace("%1 = mul", "%a1 = mul").replace("reduce_mean %1", "reduce_mean %a1"),
    # time first: rows that have the samples in 12 stretches, one step of them, all steps, as
    # attention and recurrences have them
    "time": f"""
	param %u: f32[5,5] = splat 0
	%xs = reshape %x {{shape=[BATCH,6,1]}}
	%zs = reshape %z {{shape=[BATCH,1,5]}}
	%o = mul %xs, %zs
	%oo = mul %o, %xs
	%both = concat %o, %oo {{axis=1}}
	%first = transpose %both {{perm=[1,0,2]}}
	%rows = reshape %first {{shape=[ROWS,5]}}
	%h = matmul %rows, %u
	%g = tanh %h
	%steps = reshape %g {{shape=[12,BATCH,5]}}
	%step: f32[1,BATCH,5] = slice %steps {{start=[3,0,0], step=[1,1,1]}}
	%s = reshape %step {{shape=[BATCH,5]}}
	%v = mul %s, %t
	%1 = reduce_mean %v {ALL}
	%n = reduce_sum %steps {{axes=[0], keepdims=0}}
	%nn = mul %n, %n
	%2 = reduce_mean %nn {ALL}
""",
    # heads beside samples in one dim, each with its mask; images that are channels, each with a
    # filter of its own
    "heads": f"""
	const %each: f32[1,2,1] = {{1, -2}}
	%four: f32[BATCH,4] = slice %z {{start=[0,0], step=[1,1]}}
	%q2 = reshape %four {{shape=[TWICE,2]}}
	%e = expand %each {{shape=[BATCH,2,1]}}
	%m = reshape %e {{shape=[TWICE,1]}}
	%k = mul %q2, %m
	%p = softmax %k {{axis=1}}
	%pt = reshape %p {{shape=[BATCH,4]}}
	%tt: f32[BATCH,4] = slice %t {{start=[0,0], step=[1,1]}}
	%v = mul %pt, %tt
	%1 = reduce_mean %v {ALL}
	%image = reshape %x {{shape=[1,BATCH,6]}}
	%three: f32[BATCH,3] = slice %z {{start=[0,1], step=[1,1]}}
	%filter = reshape %three {{shape=[BATCH,1,3]}}
	%y: f32[1,BATCH,4] = conv %image, %filter {{group=BATCH}}
	%yy = mul %y, %y
	%2 = reduce_mean %yy {{axes=[0,1,2], keepdims=0}}
""",
    # experts' weights by each sample's index, an element of each sample's row, a column written by
    # number, a table for all, places of the largest
    "index": f"""
	const %rows: i64[BATCH,1] = {{NUMBERS}}
	const %column: i64[BATCH,1] = splat 0
	const %table: f32[1,5] = {{1, -1, 2, 0.5, 3}}
	const %none: f32[BATCH,5] = splat 0
	%i = argmax %x {{axis=1}}
	%w2 = gather_nd %w, %i
	%e = mul %w2, %t
	%1 = reduce_mean %e {ALL}
	%j = argmax %t {{axis=1}}
	%at = concat %rows, %j {{axis=1}}
	%own = gather_nd %z, %at
	%oo = mul %own, %own
	%2 = reduce_mean %oo {ROWS}
	%front = concat %rows, %column {{axis=1}}
	%last: f32[BATCH,1] = slice %t {{start=[0,4], step=[1,1]}}
	%upd = reshape %last {{shape=[BATCH]}}
	%set = scatter_nd %z, %front, %upd
	%ss = mul %set, %set
	%3 = reduce_mean %ss {ALL}
	%top, %place = topk %t {{k=2, axis=1}}
	%all = expand %table {{shape=[BATCH,5]}}
	%picked = gather_elements %all, %place {{axis=1}}
	%two: f32[BATCH,2] = slice %z {{start=[0,0], step=[1,1]}}
	%pz = mul %picked, %two
	%put = scatter_elements %none, %place, %pz {{axis=1, add=1}}
	%pp = mul %put, %t
	%4 = reduce_sum %pp {ALL}
""",
    # words of dropout and noise by their place in the whole batch, wherever the samples are
    "drawn": f"""
	param %u: f32[5,5] = splat 0
	%xs = reshape %x {{shape=[BATCH,6,1]}}
	%zs = reshape %z {{shape=[BATCH,1,5]}}
	%o = mul %xs, %zs
	%first = transpose %o {{perm=[1,0,2]}}
	%rows = reshape %first {{shape=[SIXFOLD,5]}}
	%h = matmul %rows, %u
	%g = dropout %h {{ratio=0.4, stream=1}}
	%gg = mul %g, %g
	%1 = reduce_mean %gg {ALL}
	%turned = transpose %z {{perm=[1,0]}}
	%noise: f32[5,BATCH] = random {{shape=[5,BATCH], dt=1, kind=1, stream=2}}
	%noisy = add %turned, %noise
	%f = dropout %noisy {{ratio=0.3, stream=3}}
	%ff = mul %f, %f
	%2 = reduce_mean %ff {ALL}
	const %wide: f32[375] = splat 1
	%side = reshape %x {{shape=[BATCH,6,1]}}
	%many = mul %side, %wide
	%across = transpose %many {{perm=[1,0,2]}}
	%row = reshape %across {{shape=[6,ACROSS]}}
	%kept = dropout %row {{ratio=0.5, stream=4}}
	%kk = mul %kept, %kept
	%3 = reduce_mean %kk {ALL}
""",
}
# what has no samples: numbers, a row, flags, positions; all of them one replica's as any other's
EQUAL = f"""
	input %weight: f32[]
	input %once: f32[1]
	input %row: f32[1,5]
	input %flags: bool[1,5]
	input %ids: i64[1,5]
	const %table: f32[6] = {{1, -1, 2, 0.5, 3, 4}}
	%g = gather %table, %ids {{axis=0}}
	%r = where %flags, %row, %g
	%k = mul %q, %r
	%o = mul %k, %once
	%m = reduce_mean %o {ALL}
	%1 = mul %m, %weight
"""
REFUSED = {
    "topk": f"\t%y, %i = topk %z {{k=2, axis=0}}\n\t%1 = reduce_mean %y {ALL}\n",
    "matmul": f"\t%y = matmul %z, %z {{tb=1}}\n\t%1 = reduce_mean %y {ALL}\n",
}


def graph(rest, b):
    terms = [k for k in range(1, 9) if f"\t%{k}" in rest]
    total = f"%{terms[0]}"
    for i, k in enumerate(terms[1:]):
        rest += f"\t%sum{i} = add {total}, %{k}\n"
        total = f"%sum{i}"
    rest += f"\t%loss: f32[] output = mul {total}, %one\n"
    for word, text in {
        "BATCH": b,
        "ROWS": 12 * b,
        "TWICE": 2 * b,
        "SIXFOLD": 6 * b,
        "ACROSS": 375 * b,
        "NUMBERS": ", ".join(map(str, range(b))),
    }.items():
        rest = rest.replace(word, str(text))
    return HEAD.format(b=b, rest="\tconst %one: f32[] = {1}\n" + rest.lstrip("\n"))


def numbers():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 5, B)
    labels[:6] = -100  # all of the first of two replicas, and of three
    labels[8] = -100
    return {
        "x": np.float32(rng.normal(0, 1, (B, 6))),
        "labels": labels,
        "t": np.float32(rng.uniform(0, 1, (B, 5))),
    }, {
        "w": np.float32(rng.normal(0, 0.5, (6, 5))),
        "c": np.float32(rng.normal(0, 0.5, 5)),
        "scale": np.float32(rng.normal(1, 0.1, 5)),
        "u": np.float32(rng.normal(0, 0.5, (5, 5))),
        "bias": np.float32(rng.normal(0, 0.1, 5)),
        "mean": np.float32(np.zeros(5)),
        "var": np.float32(np.ones(5)),
    }


def tensors(values):
    return {
        k: ({"i": "I64", "b": "BOOL"}.get(v.dtype.kind, "F32"), list(v.shape), v.ravel().tolist())
        for k, v in values.items()
    }


def by_numpy(name, x, p):
    """The loss, in double precision."""
    z = np.float64(x["x"]) @ p["w"] + p["c"]
    logp = z - np.log(np.exp(z).sum(1, keepdims=True))
    counts, at = x["labels"] >= 0, np.maximum(x["labels"], 0)
    rows = -logp[np.arange(B), at] * counts
    weights = np.array([0.5, 1, 2, 0.25, 3])[at] * counts
    d = z - x["t"]
    if name == "linear":
        return (
            rows.sum() / counts.sum()
            + 2 * (rows * weights).sum() / weights.sum()
            + rows.sum()
            + rows.mean()
            + (d * d).mean()
            + np.abs(d).sum()
            + (np.log1p(np.exp(z)) - z * x["t"]).mean()
        )
    if name == "time":
        o = x["x"][:, :, None] * z[:, None]
        steps = np.tanh(np.concatenate([o, o * x["x"][:, :, None]], 1) @ p["u"])
        return (steps[:, 3] * x["t"]).mean() + (steps.sum(1) ** 2).mean()
    if name == "heads":
        e = np.exp(z[:, :4].reshape(B, 2, 2) * np.array([[1], [-2]]))
        y = np.array([np.correlate(a, f) for a, f in zip(x["x"], z[:, 1:4])])
        return ((e / e.sum(2, keepdims=True)).reshape(B, 4) * x["t"][:, :4]).mean() + (y * y).mean()
    if name == "index":
        best, two, table = (
            x["t"].argmax(1),
            np.argsort(-x["t"], 1)[:, :2],
            np.array([1, -1, 2, 0.5, 3]),
        )
        written = np.concatenate([x["t"][:, 4:], z[:, 1:]], 1)
        return (
            (p["w"][x["x"].argmax(1)] * x["t"]).mean()
            + (z[np.arange(B), best] ** 2).mean()
            + (written**2).mean()
            + (table[two] * z[:, :2] * np.take_along_axis(x["t"], two, 1)).sum()
        )
    return (
        np.sqrt((d * d).sum(1).mean())
        + 0.01 * (np.float64(p["w"]) ** 2).sum()
        + np.exp(logp).mean(0) @ x["t"].mean(0)
    )


def equal_numbers():
    return {
        "weight": np.float32(2.5),
        "once": np.float32([-0.75]),
        "row": np.float32([[0.5, 1, -2, 3, 1.5]]),
        "flags": np.array([[True, False, True, True, False]]),
        "ids": np.array([[2, 4, 0, 1, 5]]),
    }


def equal_loss(x, e, p):
    """Of EQUAL: the loss and the gradients, in double precision."""
    r = (
        np.where(e["flags"], e["row"], np.array([1, -1, 2, 0.5, 3, 4])[e["ids"]])
        * np.float64(e["once"])
        * e["weight"]
    )
    d = np.float64(x["x"]) @ p["w"] + p["c"] - x["t"]
    g = 2 * d * r / d.size
    return (d * d * r).mean(), {"w": x["x"].T @ g, "c": g.sum(0)}


def differences(name, x, p):
    """Its gradients."""
    g = {}
    for k in "wcu" if name == "time" else "wc":
        v = np.float64(p[k])
        g[k] = np.zeros(v.shape)
        for i in np.ndindex(v.shape):
            lo, hi = v.copy(), v.copy()
            lo[i] -= 1e-5
            hi[i] += 1e-5
            g[k][i] = (by_numpy(name, x, {**p, k: hi}) - by_numpy(name, x, {**p, k: lo})) / 2e-5
    return g


class Replicas(ck.Bench):
    def build(self, model, name, *flags, quiet=("--quiet",)):
        return self.ckc(
            self.path(model),
            "-o",
            self.path(name + ".so"),
            *quiet,
            "--json",
            self.path(name + ".json"),
            *flags,
        )

    def text(self, rest, b, halves=False):
        with open(self.path("m.ck"), "w") as f:
            f.write(graph(rest, b).replace("{\n", "{\n\thalves 1\n" if halves else "{\n", 1))
        return "m.ck"

    def train(self, name, ranks, *more, steps=STEPS, inputs=("--inputs", "x.st"), lr=0.1):
        log = self.path("log")
        open(log, "w").close()
        done = self.ckrun(
            name + ".so",
            *inputs,
            "--ranks",
            ranks,
            "--steps",
            steps,
            "--lr",
            lr,
            "--seed",
            5,
            "--log",
            log,
            "--grads",
            f"{name}.g",
            "--save",
            f"{name}.s",
            "--quiet",
            *more,
        )
        self.must(done, f"{name} {ranks} {more}")
        return np.array(ck.losses(log))

    def known(self, model, flags, inputs, init, steps=STEPS, lr=0.1):
        return Truth(
            self,
            self.path(model),
            flags,
            self.path(inputs),
            "--steps",
            steps,
            "--lr",
            lr,
            "--seed",
            5,
            init=init,
        )

    def right(self, known, got, name, what, limits=SHALLOW):
        known.check(what, limits, got, name + ".g", name + ".s")

    def small(self):
        x, p = numbers()
        files.st_write(self.path("x.st"), tensors(x))
        files.st_write(self.path("p.st"), tensors(p))
        for loss, rest in REST.items():
            self.must(self.build(self.text(rest, B), "one", "--optimizer", "sgd"), loss)
            want = self.train("one", 1, "--init", "p.st")
            known = self.known(
                "m.ck",
                ["--optimizer", "sgd"],
                "x.st",
                {k: v for k, v in p.items() if f" %{k}:" in graph(rest, B)},
            )
            self.right(known, want, "one", loss)
            if loss not in ("mixed", "drawn"):
                self.check(
                    np.isclose(want[0], by_numpy(loss, x, p), rtol=1e-5),
                    f"{loss}: loss {want[0]}, expected {by_numpy(loss, x, p)}",
                )
                g = compare.load(self.path("one.g"))
                for k, d in differences(loss, x, p).items():
                    self.check(
                        np.allclose(g[k], d, rtol=1e-4, atol=1e-5),
                        f"{loss}: gradient of {k} is not the finite difference",
                    )
            for n in {
                "linear": [2],
                "bent": [3],
                "mixed": [2, 3],
                "time": [2],
                "heads": [3],
                "index": [2],
                "drawn": [3],
            }[loss]:
                if self.must(
                    self.build(
                        self.text(rest, B // n), "many", "--optimizer", "sgd", "--dp", "auto"
                    ),
                    f"{loss} {n}",
                ):
                    got = self.train("many", n, "--init", "p.st")
                    self.right(known, got, "many", f"{loss}, {n} replicas")
            for parts, n, flags in (
                (2, 1, []),
                (4, 2, ["--dp", "auto"]),
                (4, 1, ["--grad-accum", 2]),
            ):
                if "--grad-accum" in flags and loss not in ("linear", "heads"):
                    continue  # a micro-batch has its own mean
                what = f"{loss}, halves, {flags}"
                model = self.text(rest, B // parts, halves=True)
                if self.must(self.build(model, "two", "--optimizer", "sgd", *flags), what):
                    self.right(known, self.train("two", n, "--init", "p.st"), "two", what)

    def equal(self):
        """Inputs without samples reach every replica."""
        x, p = numbers()
        e = equal_numbers()
        x.pop("labels")
        files.st_write(self.path("x.st"), tensors({**x, **e}))
        files.st_write(self.path("p.st"), tensors(p))
        np.savez(self.path("x.npz"), **x, weight=e["weight"])
        fed = {"once": "ones", "row": "ones", "flags": "zeros", "ids": "positions"}
        set_by_data = {
            "once": np.ones(1),
            "row": np.ones((1, 5)),
            "flags": np.zeros((1, 5), bool),
            "ids": np.arange(5)[None],
        }
        ways = (
            (("--inputs", "x.st"), equal_loss(x, e, p)),
            (
                (
                    "--data",
                    "x.npz",
                    *(w for k in {**x, **e} for w in ("--feed", f"{k}={fed.get(k, k)}")),
                ),
                equal_loss(x, {**e, **set_by_data}, p),
            ),
        )
        for batch, ranks, flags in (
            (12, 1, []),
            (6, 2, ["--dp", 2]),
            (3, 4, ["--dp", "auto"]),
            (6, 2, ["--dp", 2, "--zero", 1]),
            (12, 2, ["--tp", 2, "--shard", "w=S1"]),
            (6, 4, ["--tp", 2, "--shard", "w=S1"]),
            (2, 2, ["--dp", 2, "--grad-accum", 3]),
        ):
            with open(self.path("m.ck"), "w") as f:
                f.write(graph(EQUAL, batch).replace(f"\tinput %labels: i64[{batch}]\n", ""))
            if not self.must(
                self.build("m.ck", "equal", "--optimizer", "sgd", *flags), f"equal {flags}"
            ):
                continue
            for inputs, (loss, g) in ways:
                what = f"inputs without samples, {ranks} ranks, {flags} {inputs[0]}"
                got = self.train("equal", ranks, "--init", "p.st", steps=1, inputs=inputs)
                self.check(
                    np.allclose(got, loss, rtol=1e-5), f"{what}: loss {got}, expected {loss}"
                )
                found = compare.load(self.path("equal.g"))
                for k, v in g.items():
                    self.check(
                        np.allclose(found[k], v, rtol=1e-5, atol=1e-6),
                        f"{what}: gradient of {k} is off",
                    )

    def bags(self):
        """Bags that are looked up one by one, as an EmbeddingBag is exported: each rank has half of
        them.  The loss is the mean of squares of their sums of ones, so that the gradient of a row
        is the sum of 2 * 2 over its uses, divided by the number of bags."""
        ck_file, so, save = self.path("bags.ck"), self.path("bags.so"), self.path("bags.st")
        with open(ck_file, "w") as f:
            f.write(BAGS)
        self.must(
            self.ckc(ck_file, "-o", so, "--loss", "loss", "--dp", "2", "--optimizer", "sgd"), "bags"
        )
        uses = [[0, 0], [1, 2], [1, 1], [0, 2]]
        files.st_write(self.path("bags.in"), {"i": ("I64", [4, 2], sum(uses, []))})
        run = ("--steps", 1, "--lr", 1, "--weight-decay", 0, "--ranks", 2, "--save", save)
        if self.must(self.ckrun(so, "--inputs", self.path("bags.in"), *run), "bags: run"):
            got = files.st_read(save)[0]["w"][2]
            want = [1 - sum(u.count(r) for u in uses) for r in range(3)]
            self.check(np.allclose(got, want, atol=1e-6), f"bags: {got}, expected {want}")

    def refusals(self):
        for op, rest in REFUSED.items():
            done = self.build(self.text(rest, B), "no", "--dp", "auto")
            self.check(
                done.returncode == 1
                and f"({op}): cannot split the batch over replicas" in done.stderr,
                f"{op}: {done.stderr}",
            )
        done = self.ckrun("one.so", "--init", "p.st", "--inputs", "x.st", "--ranks", 2)
        self.check(
            done.returncode == 1 and "compile it with ckc --dp auto" in done.stderr,
            f"one alone: {done.stderr}",
        )
        self.unasked()

    def unasked(self):
        """Beside --tp, at the costs of one replica; what is refused then is made for one, and
        said."""
        for op, rest in REFUSED.items():
            done = self.build(self.text(rest, B), "alone", "--tp", 2, "--shard", "w=S1", quiet=())
            self.check(
                done.returncode == 0
                and "note: compiled for one replica only: node" in done.stderr
                and f"({op}): cannot split the batch" in done.stderr
                and "--dp" not in done.stderr,
                f"{op} beside --tp: {done.stderr}",
            )
            quiet = self.build(
                self.text(rest, B), "off", "--tp", 2, "--shard", "w=S1", "--dp", "off"
            )
            self.check(
                quiet.returncode == 0 and "replica" not in quiet.stderr,
                f"{op}, --dp off: {quiet.stderr}",
            )
            plans = [ck.plan(self.path(f"{n}.json")) for n in ("alone", "off")]
            self.check(
                plans[0]["schedule"] == plans[1]["schedule"],
                f"{op}: what was refused has changed the plan",
            )
        done = self.ckrun("alone.so", "--init", "p.st", "--inputs", "x.st", "--ranks", 4)
        self.check(
            done.returncode == 1 and "4" in done.stderr and "2" in done.stderr,
            f"two replicas of one: {done.stderr}",
        )
        costs = []
        for dp in [], ["--dp", "off"], ["--dp", 1]:
            self.must(
                self.build(self.text(REST["linear"], B), "tp", "--tp", 2, "--shard", "w=S1", *dp),
                f"--tp {dp}",
            )
            plan = ck.plan(self.path("tp.json"))
            costs.append((plan["comm"]["bytes"], plan["comm"]["seconds"]))
            self.replayed("tp")
        self.check(
            costs[0] == costs[1] == costs[2] and costs[0][0] > 0,
            f"sent with --dp unasked, off and 1: {costs}",
        )

    def replayed(self, name):
        faults = replay.Replay(ck.plan(self.path(name + ".json"))).faults
        self.check(not faults, f"{name}: replay: {faults[:3]}")

    def gpt(self, tool):
        """Four sequences a micro-batch."""
        for b in 4, 2, 1:
            self.must(
                self.run(
                    [
                        tool,
                        "--layers",
                        1,
                        "--hidden",
                        32,
                        "--heads",
                        4,
                        "--seq",
                        16,
                        "--batch",
                        b,
                        "--vocab",
                        65,
                        "--weights",
                        "-o",
                        f"gpt{b}.onnx",
                    ]
                ),
                "gpt",
            )
        tokens = np.random.default_rng(1).integers(0, 65, (12, 17))
        files.st_write(
            self.path("in.st"), tensors({"input_ids": tokens[:4, :-1], "labels": tokens[:4, 1:]})
        )
        files.st_write(
            self.path("in3.st"), tensors({"input_ids": tokens[:, :-1], "labels": tokens[:, 1:]})
        )
        inputs = {"inputs": ("--inputs", "in.st")}
        common = ["--loss", "loss", "--optimizer", "sgdm"]
        self.must(self.build("gpt4.onnx", "one", *common), "gpt")
        want = self.train("one", 1, **inputs)
        known = self.known("gpt4.onnx", common, "in.st", None)
        self.right(known, want, "one", "gpt")
        init = ("--init", "one.safetensors")
        # name, batch, flags of ckc, ranks, flags of ckrun
        for b, flags, ranks, more in (
            (1, ["--dp", "auto", "--memory-budget", "85%"], 4, ["--check"]),
            (2, ["--tp", 2, "--sp"], 4, []),
            (4, ["--halves", "on", "--tp", 2, "--sp"], 2, ["--check"]),
            (2, ["--halves", "on", "--tp", 2, "--dp", 2, "--zero", 3], 4, []),
        ):
            what = f"gpt {flags} {ranks}"
            if self.must(self.build(f"gpt{b}.onnx", "many", *common, *flags), what):
                self.replayed("many")
                got = self.train("many", ranks, *init, *more, **inputs)
                self.right(known, got, "many", what)
        self.halves()
        self.resumed()
        self.micro(common, init)
        self.narrow(common, init, known, inputs)

    def halves(self):
        """What a library with halves evaluates, and what is said of them."""
        found, logits = [], []
        stem = ck.MODELS + "/gpt2-logits"
        of = ("--inputs", stem + ".inputs.safetensors", "--ranks", 2, "--quiet")
        for halves in "off", "on":
            flags = [*ck.model_flags(stem)[0], "--output", "logits", "--tp", 2]
            self.must(self.build(stem + ".onnx", "h", "--halves", halves, *flags), halves)
            done = self.ckrun("eval", "h.so", *of)
            self.must(done, f"halves {halves}: eval")
            found.append(float(done.stdout.split("loss ")[1].split()[0]))
            self.must(self.ckrun("h.so", *of, "--steps", 1, "--outputs", "o.st"), halves)
            logits.append(compare.load(self.path("o.st"))["logits"])
        self.check(np.isclose(*found, rtol=1e-6), f"halves off and on evaluate {found}")
        self.check(np.allclose(*logits, rtol=1e-4, atol=1e-5), "halves: other logits")
        refused = "--halves on: cannot run the batch as two halves: "
        for name, b, of, dims, want in (
            ("one", 2, "f32[1,5]", [], "input 'k' has 1 rows, as half the batch has"),
            ("both", 4, "f32[batch,batch]", [], "input 'k' has the batch as dim 1"),
            ("other", 4, "f32[other,5]", ["--dim", "other=4"], ""),
        ):
            with open(self.path("k.ck"), "w") as f:
                f.write(
                    f"graph @k {{\n\tinput %x: f32[batch,5]\n\tinput %k: {of}\n"
                    "\tparam %w: f32[5] = splat 1\n\t%y = mul %x, %w\n"
                    "\t%l = reduce_mean %y {axes=[0,1], keepdims=0}\n"
                    "\t%m = reduce_mean %k {axes=[0,1], keepdims=0}\n"
                    "\t%loss: f32[] output = mul %l, %m\n}\n"
                )
            done = self.build("k.ck", "k", "--dim", f"batch={b}", *dims, "--halves", "on")
            self.check(
                done.returncode == (want != "") and want in done.stderr, f"{name}: {done.stderr}"
            )
        for model, flags, want in (
            ("gpt1.onnx", [], refused + "expected an even number of samples"),
            (self.text(REST["linear"], B), [], "--halves: expected a graph whose shapes"),
            (ck.MODELS + "/gpt2-ts14.onnx", ["--loss", "loss"], refused + "the file allows 2"),
        ):
            done = self.build(model, "no", "--halves", "on", *flags)
            self.check(
                done.returncode == 1 and want in done.stderr and "--halves off" in done.stderr,
                f"{model}: {done.stderr}",
            )
        for choice in "on", "auto":
            done = self.build("gpt4.onnx", "no", "--halves", choice, "--tp", 2, "--loss", "ce:none")
            self.check(
                done.returncode == 1
                and "no kind of loss is named 'none'" in done.stderr
                and "halves" not in done.stderr,
                f"halves {choice}, no such loss: {done.stderr}",
            )
        done = self.build("gpt4.onnx", "auto", "--halves", "auto", quiet=())
        self.check(
            done.returncode == 0 and "--halves auto takes off: without --tp" in done.stderr,
            f"halves auto: {done.stderr}",
        )

    def resumed(self):
        """Two replicas see what one rank with the whole batch does, and that goes on from there."""
        data = np.random.default_rng(2).integers(0, 65, 4000)
        np.save(self.path("data.npy"), data)
        feed = {"inputs": ("--data", "data.npy")}
        want = self.train("one", 1, steps=4, **feed)
        got = list(self.train("many", 4, "--init", "one.safetensors", steps=2, **feed))
        got += list(self.train("one", 1, "--resume", "many.s", steps=4, **feed))
        self.check(
            np.allclose(got, want, rtol=1e-5),
            f"two replicas, then one rank: losses {got}, expected {want}",
        )

    def micro(self, common, init):
        for name, b in ("one3", 4), ("many3", 2):
            self.must(
                self.build(
                    f"gpt{b}.onnx",
                    name,
                    *common,
                    "--grad-accum",
                    3,
                    *(["--dp", "auto"] if b == 2 else []),
                ),
                name,
            )
        inputs = {"inputs": ("--inputs", "in3.st")}
        want = self.train("one3", 1, *init, **inputs)
        known = self.known("gpt4.onnx", [*common, "--grad-accum", 3], "in3.st", None)
        self.right(known, want, "one3", "one3")
        got = self.train("many3", 2, *init, **inputs)
        self.right(known, got, "many3", "many3")

    def narrow(self, common, init, known, inputs):
        self.must(
            self.build(
                "gpt2.onnx",
                "narrow",
                *common,
                "--dp",
                "auto",
                "--dtype",
                "bf16",
                "--update-in-backward",
                "on",
            ),
            "bf16",
        )
        got = self.train("narrow", 2, *init, **inputs)
        self.right(known, got, "narrow", "bf16", BF16)


def main():
    tool = os.path.abspath(sys.argv.pop(3))
    bench = Replicas()
    parts = bench.names or ["small", "gpt"]
    if "small" in parts:
        bench.small()
        bench.equal()
        bench.bags()
        bench.refusals()
    if "gpt" in parts:
        bench.gpt(tool)
    bench.finish()


main()
