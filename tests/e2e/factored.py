#!/usr/bin/env python3
"""Adafactor where parameters are cut, over ranks (--tp) and over replicas (--zero 1), against its
formula in double precision.

    factored.py CKC CKRUN [--flags="..."] [ranks] [files] [types] [LIBRARY...]

The model has matrices that are cut along columns, along rows and in two stretches, stacks of
matrices, cut vectors and widths that no number of ranks divides; its gradients are worked out in
numpy.  ranks: every way of cutting, with weight decay, clipping, micro-batches and updates in
backward, ends where one rank does; means of one rank's piece alone would not.  files: a run changes
its ranks every few steps and goes on as one that did not.  types: pieces of float32 masters train
as whole ones do.  --flags: more flags for ckc.
"""

import os
import sys

import numpy as np

import ck
import files

sys.path.insert(0, ck.TOOLS)
import compare
import replay
from optimizers import DEFAULTS, adafactor

STEPS = 6
SHAPES = {
    "w1": (6, 21),
    "b1": (21,),
    "w2": (21, 7),
    "b2": (7,),
    "wp": (6, 16),
    "w3": (8, 7),
    "e": (4, 5, 8),
    "f": (4, 8, 7),
    "wz": (6, 12),
    "k": (4, 3, 7),
}
GRAPH = """graph @g {{
	input %x: f32[{b},6]
	input %z: f32[{b},4,5]
	input %t: f32[{b},7]
	param %w1: f32[6,21] = splat 0
	param %b1: f32[21] = splat 0
	param %w2: f32[21,7] = splat 0
	param %b2: f32[7] = splat 0
	param %wp: f32[6,16] = splat 0
	param %w3: f32[8,7] = splat 0
	param %e: f32[4,5,8] = splat 0
	param %f: f32[4,8,7] = splat 0
	param %wz: f32[6,12] = splat 0
	param %k: f32[4,3,7] = splat 0
	%h0 = matmul %x, %w1
	%h1 = add %h0, %b1
	%h = tanh %h1
	%y0 = matmul %h, %w2
	%y1 = add %y0, %b2
	%p = matmul %x, %wp
	%pa: f32[{b},8] = slice %p {{start=[0,0], step=[1,1]}}
	%pb: f32[{b},8] = slice %p {{start=[0,8], step=[1,1]}}
	%q = mul %pa, %pb
	%y2 = matmul %q, %w3
	%zt = transpose %z {{perm=[1,0,2]}}
	%s0 = matmul %zt, %e
	%s = tanh %s0
	%r = matmul %s, %f
	%y3 = reduce_sum %r {{axes=[0], keepdims=0}}
	%u0 = matmul %x, %wz
	%u1: f32[{b},4,3] = reshape %u0 {{shape=[{b},4,3]}}
	%u = transpose %u1 {{perm=[1,0,2]}}
	%v = matmul %u, %k
	%y4 = reduce_sum %v {{axes=[0], keepdims=0}}
	%y5 = add %y1, %y2
	%y6 = add %y3, %y4
	%y = add %y5, %y6
	%d = sub %y, %t
	%dd = mul %d, %d
	%loss: f32[] output = reduce_mean %dd {{axes=[0,1], keepdims=0}}
}}
"""
BATCH = 24
FLAGS = ck.option("--flags", "").split()
DP, ZERO = ["--dp", 2], ["--zero", 1]
# name: samples of a replica's micro-batch, flags, what the plan says of some parameters: the dim
# that is cut, or that it is a piece
LIBRARIES = {
    "one": (24, [], {}),
    "tp2": (24, ["--tp", 2], {"w1": 1, "b1": 0, "w2": 0, "wp": 1, "w3": 0, "e": 2, "f": 1, "k": 0}),
    "tp4": (24, ["--tp", 4], {"w1": 1, "b1": 0, "w2": 0, "wp": 1, "k": 0}),
    "turned": (
        24,
        ["--tp", 2, *(x for k in ("w1=S0", "w2=S1", "f=S2", "k=S2") for x in ("--shard", k))],
        {"w1": 0, "w2": 1, "f": 2, "k": 2},
    ),
    "both": (12, ["--tp", 2, *DP], {"w1": 1, "w2": 0}),
    "micro": (8, ["--tp", 2, "--grad-accum", 3], {"w1": 1, "w2": 0}),
    "early": (24, ["--tp", 2, "--update-in-backward", "on"], {"w1": 1, "w2": 0}),
    "zero2": (12, [*DP, *ZERO], {}),
    "zero12": (2, ["--dp", 12, *ZERO], {}),
    "zero-group": (6, ["--dp", 4, *ZERO, "--zero-group", 2], {}),
    "zero-ranks": (12, ["--tp", 2, *DP, *ZERO], {"w1": 1, "w2": 0}),
    "zero3": (12, [*DP, "--zero", 3], {}),
    "zero3-micro": (4, [*DP, "--zero", 3, "--grad-accum", 3], {}),
    "zero-micro": (4, [*DP, *ZERO, "--grad-accum", 3], {}),
    "zero-early": (12, ["--tp", 2, *DP, *ZERO, "--update-in-backward", "on"], {}),
}


def tensors(values):
    return {k: ("F32", list(v.shape), v.ravel().tolist()) for k, v in values.items()}


def value(flags, name, default):
    return flags[flags.index(name) + 1] if name in flags else default


# ---- the model in double precision


def gradients(p, data):
    x, z, t = (data[k].astype(float) for k in "xzt")
    h = np.tanh(x @ p["w1"] + p["b1"])
    a, b = (x @ p["wp"])[:, :8], (x @ p["wp"])[:, 8:]
    zt = z.transpose(1, 0, 2)
    s, u = np.tanh(zt @ p["e"]), (x @ p["wz"]).reshape(-1, 4, 3).transpose(1, 0, 2)
    d = h @ p["w2"] + p["b2"] + (a * b) @ p["w3"] + (s @ p["f"]).sum(0) + (u @ p["k"]).sum(0) - t
    dy = 2 * d / d.size
    dh, dq = dy @ p["w2"].T * (1 - h * h), dy @ p["w3"].T
    ds = dy @ p["f"].transpose(0, 2, 1) * (1 - s * s)
    return (d * d).mean(), {
        "w1": x.T @ dh,
        "b1": dh.sum(0),
        "w2": h.T @ dy,
        "b2": dy.sum(0),
        "wp": x.T @ np.hstack([dq * b, dq * a]),
        "w3": (a * b).T @ dy,
        "e": zt.transpose(0, 2, 1) @ ds,
        "f": s.transpose(0, 2, 1) @ dy,
        "k": u.transpose(0, 2, 1) @ dy,
        "wz": x.T @ (dy @ p["k"].transpose(0, 2, 1)).transpose(1, 0, 2).reshape(-1, 12),
    }


def reference(weights, data, clip=0, **hyper):
    """Parameters, what they keep and losses of STEPS steps."""
    p, state, losses = (
        {k: v.astype(float) for k, v in weights.items()},
        {k: {} for k in weights},
        [],
    )
    for t in range(1, STEPS + 1):
        loss, g = gradients(p, data)
        norm = np.sqrt(sum((x * x).sum() for x in g.values()))
        scale = clip / norm if 0 < clip < norm else 1
        p = {
            k: adafactor(p[k], g[k] * scale, state[k], t, **{**DEFAULTS["adafactor"], **hyper})
            for k in p
        }
        losses.append(loss)
    return p, state, losses


class Factored(ck.Bench):
    def library(self, name):
        """Built when it is asked for."""
        b, flags, cut = LIBRARIES[name]
        if os.path.exists(self.path(name + ".so")):
            return name + ".so"
        with open(self.path(f"m{b}.ck"), "w") as f:
            f.write(GRAPH.format(b=b))
        done = self.ckc(
            self.path(f"m{b}.ck"),
            "-o",
            self.path(name + ".so"),
            "--optimizer",
            "adafactor",
            "--quiet",
            "--json",
            self.path(name + ".json"),
            *flags,
            *FLAGS,
        )
        if self.must(done, name):
            self.lies(name, flags, cut)
        return name + ".so"

    def lies(self, name, flags, cut):
        """Parameters are cut as the case wants them, a row's and a column's means along what is
        left of them."""
        plan = ck.plan(self.path(name + ".json"))
        self.check(not replay.Replay(plan).faults, f"{name}: the plan does not replay")
        at = {t["name"]: t.get("split", {}) for t in plan["tensors"] if t["alias_of"] is None}
        for k, axis in cut.items():
            self.check(
                at[k].get("state") == "S" and at[k]["axis"] == axis,
                f"{name}: {k} lies as {at[k]}, expected cut along {axis}",
            )
            for state, back in ("row", 1), ("col", 2):
                gone = len(SHAPES[k]) - back
                if len(SHAPES[k]) > 1:
                    got = at[f"adafactor.{state}.{k}"]
                    want = None if axis == gone else axis - (axis > gone)
                    self.check(
                        (got["axis"] if got.get("state") == "S" else None) == want,
                        f"{name}: {state} of {k} lies as {got}",
                    )
        if "--zero" in flags:
            piece = {t["name"] for t in plan["tensors"] if "piece" in t}
            self.check(
                "adafactor.v.b1" in piece and not piece & {"adafactor.row.w1", "adafactor.col.w1"},
                f"{name}: pieces {sorted(piece)}",
            )

    def train(self, name, *more, steps=STEPS):
        log = self.path("log")
        if os.path.exists(log):
            os.remove(log)
        flags = LIBRARIES[name][1]
        begin = [] if "--resume" in more else ["--init", "init.st"]
        number = value(flags, "--dp", 1) * value(flags, "--tp", 1)
        done = self.ckrun(
            self.library(name),
            "--ranks",
            number,
            "--inputs",
            "in.st",
            "--steps",
            steps,
            "--threads",
            1,
            "--seed",
            5,
            "--quiet",
            *begin,
            "--log",
            log,
            "--save",
            "save.st",
            *more,
        )
        return ck.losses(log) if self.must(done, f"{name} {more}") else []

    def compare(self, what, losses, want):
        p, state, all_losses = want
        if not losses:
            return
        got = compare.load(self.path("save.st"))
        self.check(
            np.allclose(losses, all_losses[-len(losses) :], rtol=1e-5, atol=0),
            f"{what}: losses {losses}, expected {all_losses}",
        )
        names = set(p) | {f"adafactor.{s}.{k}" for k in p for s in state[k]}
        self.check(names <= set(got), f"{what}: no {sorted(names - set(got))}")
        for k in p:
            self.check(
                got[k].shape == p[k].shape
                and np.allclose(got[k], p[k], rtol=1e-5, atol=5e-6 * max(0.2, abs(p[k]).max())),
                f"{what}: {k} is off by {abs(got[k] - p[k]).max()}",
            )
            for s, v in state[k].items():
                have = got[f"adafactor.{s}.{k}"]
                self.check(
                    have.shape == v.shape and np.allclose(have, v, rtol=1e-5, atol=1e-5 * v.max()),
                    f"{what}: {s} of {k} is off by {abs(have - v).max()} of {v.max()}",
                )

    def ranks(self):
        plain = reference(self.weights, self.data)
        hyper = {"lr": 0.05, "decay": 0.2, "clip": 0.02}
        flags = ["--lr", 0.05, "--weight-decay", 0.2, "--clip", 0.02]
        clipped = reference(self.weights, self.data, **hyper)
        self.check(
            not np.allclose(
                clipped[0]["w1"],
                reference(self.weights, self.data, **{**hyper, "clip": 0})[0]["w1"],
                rtol=1e-4,
            ),
            "nothing was clipped",
        )
        loud = {"lr": 0.05, "threshold": 1.0, "eps": 1e-3, "eps2": 0.5}
        for name in [n for n in LIBRARIES if n in self.names] or list(LIBRARIES):
            self.compare(name, self.train(name), plain)
            if "early" not in name:
                self.compare(f"{name} {flags}", self.train(name, *flags), clipped)
            if name in ("tp4", "zero12"):  # padding has no gradient, so no update
                self.compare(
                    f"{name} --eps 0",
                    self.train(name, "--eps", 0),
                    reference(self.weights, self.data, eps=0),
                )
            if name in ("turned", "zero-ranks"):
                self.compare(
                    f"{name} {loud}",
                    self.train(name, "--lr", 0.05, "--eps", 1e-3, "--eps2", 0.5),
                    reference(self.weights, self.data, **loud),
                )

    def files(self):
        """Files are whole: nobody can tell how many ranks have written them."""
        want, shapes = (
            reference(self.weights, self.data),
            ["tp2", "one", "zero-ranks", "tp4", "zero2", "tp2"],
        )
        for i, name in enumerate(shapes):
            losses = self.train(name, *(["--resume", "last.st"] if i else []), steps=i + 1)
            self.check(
                len(losses) == 1 and np.isclose(losses[0], want[2][i], rtol=1e-5),
                f"step {i} by {name}: {losses}, expected {want[2][i]}",
            )
            os.rename(self.path("save.st"), self.path("last.st"))
        os.rename(self.path("last.st"), self.path("save.st"))
        self.compare("over changes of shape", losses, want)

    def types(self):
        """In 16 bits replicas that share out masters, and those that hold all of them, do the same
        but for the order of sums."""
        for more in ["--dtype", "bf16", "--tp", 2], ["--dtype", "bf16", "--grad-dtype", "computed"]:
            got = []
            for zero in [], ZERO:
                LIBRARIES["half"] = (12, [*DP, *zero, *more], {})
                if os.path.exists(self.path("half.so")):
                    os.remove(self.path("half.so"))
                self.train("half", "--clip", 0.02)
                got.append(compare.load(self.path("save.st")))
            self.check(set(got[0]) == set(got[1]), f"{more}: tensors")
            bad = [
                k
                for k in got[0]
                if not np.allclose(
                    got[0][k], got[1][k], rtol=1e-4, atol=1e-5 * abs(got[0][k]).max()
                )
            ]
            self.check(not bad, f"{more}: pieces of masters end elsewhere: {bad}")


def main():
    bench = Factored()
    rng = np.random.default_rng(7)
    bench.weights = {
        k: np.float32(rng.normal(0, 0.5, s)) * np.float32(rng.uniform(0.2, 2, s))
        for k, s in SHAPES.items()
    }
    bench.data = {
        k: np.float32(rng.normal(0, 1, (BATCH, *s)))
        for k, s in (("x", (6,)), ("z", (4, 5)), ("t", (7,)))
    }
    # ranks differ: what one sees alone is far from the whole's
    bench.weights["w1"][:, :8] *= 4
    bench.weights["w2"][:8] *= 0.1
    files.st_write(bench.path("in.st"), tensors(bench.data))
    files.st_write(bench.path("init.st"), tensors(bench.weights))
    parts = [n for n in bench.names if n in ("ranks", "files", "types")]
    for part in parts or ["ranks", "files", "types"]:
        getattr(bench, part)()
    bench.finish()


main()
