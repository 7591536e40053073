#!/usr/bin/env python3
"""Every setting of the optimizers and schedules, against their formulas.

    updates.py CKC CKRUN

The loss is a product of parameters and inputs, so that gradients are the inputs whatever the
parameters are and what some steps do can be written down. No setting has its default's value.
"""

import os
import sys
from math import cos, pi, sqrt

import ck

sys.path.insert(0, os.path.join(ck.HERE, "..", "runtime"))
import files

STEPS = 6
LR, MIN, WARMUP, DECAY, BETA1, BETA2, EPS = 0.05, 0.01, 2, 0.3, 0.7, 0.95, 1e-2
START = {"w": [0.5, -1.25, 2.0, 0.125], "bias": [1.5, -0.75]}
X = {"x": [0.25, -0.5, 1.5, -0.01], "y": [-2.0, 0.75]}
GRAD = {"w": X["x"], "bias": X["y"]}
GRAPH = """graph @line {
	input %x: f32[4]
	input %y: f32[2]
	param %w: f32[4] = {0.5, -1.25, 2, 0.125}
	param %bias: f32[2] = {1.5, -0.75}
	%a = mul %w, %x
	%s = reduce_sum %a {axes=[0], keepdims=0}
	%b = mul %bias, %y
	%t = reduce_sum %b {axes=[0], keepdims=0}
	%loss: f32[] output = add %s, %t
}
"""


def rate(schedule, step):
    if step < WARMUP:
        return LR * (step + 1) / WARMUP
    x = (step - WARMUP) / (STEPS - WARMUP)
    if schedule == "linear":
        return LR + (MIN - LR) * x
    return MIN + (LR - MIN) * (1 + cos(pi * x)) / 2 if schedule == "cosine" else LR


def expected(optimizer, schedule, undecayed):
    """Parameters after all steps."""
    p = {k: list(v) for k, v in START.items()}
    m = {k: [0.0] * len(v) for k, v in p.items()}
    v = {k: [0.0] * len(x) for k, x in p.items()}
    for step in range(STEPS):
        lr = rate(schedule, step)
        for k in p:
            for i, g in enumerate(GRAD[k]):
                keep = 1 if k in undecayed else 1 - lr * DECAY
                m[k][i] = BETA1 * m[k][i] + (1 - BETA1) * g
                v[k][i] = BETA2 * v[k][i] + (1 - BETA2) * g * g
                mean, root = (
                    m[k][i] / (1 - BETA1 ** (step + 1)),
                    sqrt(v[k][i] / (1 - BETA2 ** (step + 1))),
                )
                p[k][i] = p[k][i] * keep - lr * (mean / (root + EPS) if optimizer == "adamw" else g)
    return p


def trial(bench, optimizer, schedule, *flags, undecayed=()):
    what = " ".join(["updates", optimizer, schedule, *flags])
    source, so, inputs, save = (bench.path(x) for x in ("m.ck", "m.so", "x.st", "save.st"))
    with open(source, "w") as f:
        f.write(GRAPH)
    files.st_write(inputs, {k: ("F32", [len(v)], v) for k, v in X.items()})
    if not bench.must(
        bench.ckc(source, "-o", so, "--optimizer", optimizer, "--quiet", *flags), what
    ):
        return
    run = [
        so,
        "--inputs",
        inputs,
        "--steps",
        STEPS,
        "--lr",
        LR,
        "--min-lr",
        MIN,
        "--warmup",
        WARMUP,
        "--schedule",
        schedule,
        "--weight-decay",
        DECAY,
        "--beta1",
        BETA1,
        "--beta2",
        BETA2,
        "--eps",
        EPS,
        "--save",
        save,
        "--save-every",
        2,
        "--quiet",
    ]
    if not bench.must(bench.ckrun(*run), what):
        return
    got, want = files.st_read(save)[0], expected(optimizer, schedule, undecayed)
    for k in want:
        far = max(abs(a - b) for a, b in zip(got[k][2], want[k]))
        bench.check(far < 3e-6, f"{what}: {k} is {got[k][2]}, expected {want[k]}")


def kept_views(bench):
    """An output that is a piece of a trained parameter is what forward saw of it, whatever the
    update makes of the parameter."""
    source, so, inputs, out = (bench.path(x) for x in ("v.ck", "v.so", "x.st", "out.st"))
    with open(source, "w") as f:
        f.write(
            GRAPH[:-2]
            + "\t%back: f32[2] output = slice %w {start=[1], step=[2]}\n\t%square: f32[2,2] output = reshape %w {shape=[2,2]}\n}\n"
        )
    for flags in (), ("--update-in-backward", "on"):
        if bench.must(
            bench.ckc(
                source,
                "-o",
                so,
                "--optimizer",
                "sgd",
                "--output",
                "back",
                "--output",
                "square",
                "--quiet",
                *flags,
            ),
            f"views of a parameter {flags}",
        ) and bench.must(
            bench.ckrun(
                so, "--inputs", inputs, "--steps", 1, "--lr", 1, "--outputs", out, "--quiet"
            ),
            "a step",
        ):
            got, w = files.st_read(out)[0], START["w"]
            bench.check(
                list(got["square"][2]) == w and list(got["back"][2]) == w[1::2],
                f"views {flags}: {got}",
            )
    done = bench.ckrun(so, "--inputs", inputs, "--steps", 1, "--clip", 0.5)
    bench.check(
        done.returncode == 1 and "cannot clip" in done.stderr,
        f"--clip of updates in backward: {done.returncode} {done.stderr}",
    )


def main():
    bench = ck.Bench()
    trial(bench, "adamw", "constant")
    trial(bench, "adamw", "cosine", "--no-decay", "bias", undecayed=["bias"])
    trial(bench, "adamw", "linear", "--grad-accum", "2")
    trial(bench, "sgd", "linear", "--no-decay", "w", undecayed=["w"])
    trial(bench, "sgd", "cosine", "--update-in-backward", "on")
    kept_views(bench)
    bench.finish()


if __name__ == "__main__":
    main()
