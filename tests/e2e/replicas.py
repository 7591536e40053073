#!/usr/bin/env python3
"""Replicas that share out the samples of a step, beside one rank that takes them all.

    replicas.py CKC CKRUN

Small graphs with every form of loss, with what depends on more than one sample and with random numbers: losses, gradients, parameters
and running statistics of some steps of one, two and three replicas are those of one rank with the whole batch, and where numpy can say
them those.  So with labels of which one replica's are all ignored, micro-batches, ranks that share a model, updates in the backward
pass, budgets, types and files.  What cannot be dealt is refused by name.
"""
import json
import os
import sys

import numpy as np

import ck
import files

sys.path.insert(0, ck.TOOLS)
import compare

B, STEPS = 12, 3
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
"""
REST = {
    "ce": "%loss: f32[] output, _, _ = sce %z, %labels {{reduction=1, ignore=-100}}",
    "ce-weights": "%loss: f32[] output, _, _ = sce %z, %labels, %weights {{reduction=1, ignore=-100}}",
    "nll": "%p = log_softmax %z {{axis=1}}\n\t%loss: f32[] output, _ = nll %p, %labels, %weights {{reduction=1, ignore=-100}}",
    "ce-sum": "%loss: f32[] output, _, _ = sce %z, %labels {{reduction=2, ignore=-100}}",
    "ce-rows": "%l, _, _ = sce %z, %labels {{reduction=0, ignore=-100}}\n\t%loss: f32[] output = reduce_mean %l {{axes=[0], keepdims=0}}",
    "mse": "%d = sub %z, %t\n\t%q = mul %d, %d\n\t%loss: f32[] output = reduce_mean %q {{axes=[0,1], keepdims=0}}",
    "l1-sum": "%d = sub %z, %t\n\t%q = abs %d\n\t%loss: f32[] output = reduce_sum %q {{axes=[0,1], keepdims=0}}",
    "bce": "%s = softplus %z\n\t%m = mul %z, %t\n\t%d = sub %s, %m\n\t%loss: f32[] output = reduce_mean %d {{axes=[0,1], keepdims=0}}",
    # a mean of a part of the dims first, then of samples; what is not linear in a mean
    "rmse": "%d = sub %z, %t\n\t%q = mul %d, %d\n\t%r = reduce_sum %q {{axes=[1], keepdims=0}}\n"
            "\t%m = reduce_mean %r {{axes=[0], keepdims=0}}\n\t%loss: f32[] output = sqrt %m",
    # what depends on parameters alone counts once
    "decay": "%l, _, _ = sce %z, %labels {{reduction=1, ignore=-100}}\n\t%v = mul %w, %w\n"
             "\t%s = reduce_sum %v {{axes=[0,1], keepdims=0}}\n\t%u = mul %s, %decay\n\t%loss: f32[] output = add %l, %u",
    # the product of two means, as experts' losses have it
    "balance": "%l, _, _ = sce %z, %labels {{reduction=1, ignore=-100}}\n\t%p = softmax %z {{axis=1}}\n"
               "\t%m = reduce_mean %p {{axes=[0], keepdims=0}}\n\t%f = reduce_mean %t {{axes=[0], keepdims=0}}\n\t%o = mul %m, %f\n"
               "\t%s = reduce_sum %o {{axes=[0], keepdims=0}}\n\t%loss: f32[] output = add %l, %s",
    # each sample against the mean of all
    "centred": "%m = reduce_mean %z {{axes=[0], keepdims=1}}\n\t%k = sub %z, %m\n\t%h = tanh %k\n\t%d = sub %h, %t\n\t%q = mul %d, %d\n"
               "\t%loss: f32[] output = reduce_mean %q {{axes=[0,1], keepdims=0}}",
    "dropout": "%h = dropout %z {{ratio=0.4, stream=1}}\n\t%n: f32[{b},5] = random {{shape=[{b},5], dt=1, kind=1, stream=2}}\n"
               "\t%k = mul %h, %n\n\t%d = sub %k, %t\n\t%q = mul %d, %d\n\t%loss: f32[] output = reduce_mean %q {{axes=[0,1], keepdims=0}}",
    # a constant of each sample, which is the same for all
    "constant": "const %k: f32[1,5] = {{1, -1, 2, 0.5, 3}}\n\t%e = expand %k {{shape=[{b},5]}}\n\t%j = concat %z, %e {{axis=1}}\n\t%h = tanh %j\n"
                "\t%loss: f32[] output = reduce_mean %h {{axes=[0,1], keepdims=0}}",
    "batchnorm": "param %scale: f32[5] = splat 1\n\tparam %bias: f32[5] = splat 0\n\tbuffer %mean: f32[5] = splat 0\n\tbuffer %var: f32[5] = splat 1\n"
                 "\t%y, %m, %v = batchnorm %z, %scale, %bias\n\t%mean1 = bn_update %mean, %m\n\t%var1 = bn_update %var, %v\n\t%h = tanh %y\n"
                 "\t%d = sub %h, %t\n\t%q = mul %d, %d\n\t%loss: f32[] output = reduce_mean %q {{axes=[0,1], keepdims=0}}",
}
REFUSED = {
    "sort": ("%y, %i = topk %z {{k=2, axis=0}}\n\t%loss: f32[] output = reduce_mean %y {{axes=[0,1], keepdims=0}}", "topk"),
    "pairs": ("%y = matmul %z, %z {{tb=1}}\n\t%loss: f32[] output = reduce_mean %y {{axes=[0,1], keepdims=0}}", "matmul"),
}


def graph(rest, b):
    return (HEAD + "\t" + rest + "\n}}\n").format(b=b)


def numbers(seed=0):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 5, B)
    labels[:6] = -100                           # all of the first of two replicas, and of three
    labels[8] = -100
    return {"x": np.float32(rng.normal(0, 1, (B, 6))), "labels": labels, "t": np.float32(rng.uniform(0, 1, (B, 5)))}, \
        {"w": np.float32(rng.normal(0, .5, (6, 5))), "c": np.float32(rng.normal(0, .5, 5)), "scale": np.float32(rng.normal(1, .1, 5)),
         "bias": np.float32(rng.normal(0, .1, 5)), "mean": np.float32(np.zeros(5)), "var": np.float32(np.ones(5))}


def tensors(values):
    return {k: ("I64" if v.dtype == np.int64 else "F32", list(v.shape), v.ravel().tolist()) for k, v in values.items()}


def by_numpy(name, x, p):
    """The loss, in double precision; None: it is not worked out here."""
    z = np.float64(x["x"]) @ p["w"] + p["c"]
    logp = z - np.log(np.exp(z).sum(1, keepdims=True))
    counts, at = x["labels"] >= 0, np.maximum(x["labels"], 0)
    rows = -logp[np.arange(B), at] * counts
    weights = np.array([0.5, 1, 2, 0.25, 3])[at] * counts
    d = z - x["t"]
    return {"ce": rows.sum() / counts.sum(), "ce-weights": (rows * weights).sum() / weights.sum(),
            "nll": (rows * weights).sum() / weights.sum(), "ce-sum": rows.sum(), "ce-rows": rows.mean(), "mse": (d * d).mean(),
            "l1-sum": np.abs(d).sum(), "bce": (np.log1p(np.exp(z)) - z * x["t"]).mean(), "rmse": np.sqrt((d * d).sum(1).mean()),
            "decay": rows.sum() / counts.sum() + .01 * (np.float64(p["w"]) ** 2).sum()}.get(name)


class Replicas(ck.Bench):
    def build(self, name, rest, b, *flags):
        with open(self.path(name + ".ck"), "w") as f:
            f.write(graph(rest, b))
        return self.ckc(self.path(name + ".ck"), "-o", self.path(name + ".so"), "--quiet", "--json", self.path(name + ".json"), *flags)

    def train(self, name, ranks, *more, steps=STEPS, inputs="x.st"):
        log = self.path("log")
        open(log, "w").close()
        done = self.ckrun(name + ".so", "--init", "p.st", "--inputs", inputs, "--ranks", ranks, "--steps", steps, "--lr", "0.1", "--seed", 5,
                          "--log", log, "--grads", f"{name}.g{ranks}", "--save", f"{name}.s{ranks}", "--quiet", *more)
        self.must(done, f"{name} {ranks} {more}")
        return np.array(ck.losses(log))

    def close(self, a, b, what, rtol=1e-5):
        a, b = compare.load(self.path(a)), compare.load(self.path(b))
        self.check(sorted(a) == sorted(b), f"{what}: tensors {sorted(set(a) ^ set(b))}")
        for k in set(a) & set(b):
            far = np.abs(np.float64(a[k]) - b[k]).max(initial=0)
            self.check(a[k].shape == b[k].shape and far <= rtol * (np.abs(b[k]).max(initial=0) + 1e-3), f"{what}: {k} is off by {far:.2g}")

    def alike(self, name, n, want, what, *more, rtol=1e-5):
        """Library `name` at n ranks beside what one rank of library "one" gave."""
        got = self.train(name, n, *more)
        self.check(np.allclose(got, want, rtol=rtol, atol=1e-7), f"{what}: losses {got}, expected {want}")
        ranks = 1
        self.close(f"{name}.g{n}", f"one.g{ranks}", what + " gradients", rtol)
        self.close(f"{name}.s{n}", f"one.s{ranks}", what + " parameters", rtol)

    def trial(self, loss, x, p):
        rest = REST[loss]
        self.must(self.build("one", rest, B, "--optimizer", "sgd"), loss)
        want = self.train("one", 1)
        known = by_numpy(loss, x, p)
        self.check(known is None or np.isclose(want[0], known, rtol=1e-5), f"{loss}: loss {want[0]}, expected {known}")
        for n in 2, 3:
            if self.must(self.build(f"dp{n}", rest, B // n, "--optimizer", "sgd", "--dp", "auto"), f"{loss} {n}"):
                self.alike(f"dp{n}", n, want, f"{loss} {n} replicas")

    def refusals(self):
        for name, (rest, op) in REFUSED.items():
            done = self.build("no", rest, B, "--dp", "auto")
            self.check(done.returncode == 1 and f"({op}): cannot deal its samples to replicas" in done.stderr, f"{name}: {done.stderr}")
        self.must(self.build("one", REST["mse"], B), "one")
        done = self.ckrun("one.so", "--init", "p.st", "--inputs", "x.st", "--ranks", 2)
        self.check(done.returncode == 1 and "compile it with ckc --dp auto" in done.stderr, f"one alone: {done.stderr}")


def main():
    bench = Replicas()
    x, p = numbers()
    files.st_write(bench.path("x.st"), tensors(x))
    files.st_write(bench.path("p.st"), tensors(p))
    for loss in REST:
        bench.trial(loss, x, p)
    bench.refusals()
    bench.finish()


main()
