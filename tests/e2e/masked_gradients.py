#!/usr/bin/env python3
"""Branches that a Where, Max or Min does not take: no gradient comes out of them, however steep
they are.

    masked_gradients.py CKC CKRUN

loss = sum of k * where(m, f(w, x), 0), where f and its slopes are infinite or no number at some of
the hidden elements.  Gradients are those of the elements that are shown, by formula, and zero
elsewhere.  What mixes elements lets them out, as PyTorch does; a number stays one where nothing is
hidden.
"""

import os
import sys

import numpy as np

import ck
import wire

sys.path.insert(0, os.path.join(ck.HERE, "..", "runtime"))
import files

BOOL, FLOAT = 9, 1
MASK = np.array([True, False, False, True, False, False])
C = np.array([1.5, 0, 0, 0.5, 0, 0], "f4")
W = np.array([0.5, 0, -1, 0.7, 0, 0.25], "f4")
X = np.array([1.5, 0, 2, 0.5, np.nan, np.inf], "f4")
K = np.array([0.3, 1, 2, 0.5, 0.1, 0.9], "f4")

# name: nodes that make f of w, x and numbers; the slope df/dw
CASES = {
    "log": ([("Log", "w", "f")], lambda w, x: 1 / w),
    "sqrt": ([("Sqrt", "w", "f")], lambda w, x: 0.5 / np.sqrt(w)),
    "w / x": ([("Div", "w x", "f")], lambda w, x: 1 / x),
    "x / w": ([("Div", "x w", "f")], lambda w, x: -x / w**2),
    "w (1 / x)": ([("Reciprocal", "x", "r"), ("Mul", "w r", "f")], lambda w, x: 1 / x),
    "w (1 / constant)": ([("Reciprocal", "c", "r"), ("Mul", "w r", "f")], lambda w, x: 1 / x),
    "w^-1.5": ([("Pow", "w -1.5", "f")], lambda w, x: -1.5 * w**-2.5),
    "w^0.5": ([("Pow", "w 0.5", "f")], lambda w, x: 0.5 * w**-0.5),
    "w^x": ([("Pow", "w x", "f")], lambda w, x: x * w ** (x - 1)),
    "w^w": ([("Pow", "w w", "f")], lambda w, x: w**w * (np.log(w) + 1)),
    "w log w^2": (
        [("Mul", "w w", "s"), ("Log", "s", "l"), ("Mul", "l w", "f")],
        lambda w, x: np.log(w * w) + 2,
    ),
    "exp 10 / x": (
        [
            ("Div", "10 x", "s"),
            ("Mul", "s w", "t"),
            ("Exp", "t", "e"),
            ("Log", "e", "l"),
            ("Mul", "l w", "f"),
        ],
        lambda w, x: 20 * w / x,
    ),
    "tanh sqrt": (
        [("Sqrt", "w", "s"), ("Tanh", "s", "f")],
        lambda w, x: (1 - np.tanh(np.sqrt(w)) ** 2) / (2 * np.sqrt(w)),
    ),
    "acos": ([("Acos", "w", "f")], lambda w, x: -1 / np.sqrt(1 - w**2)),
    "a reshape between": (
        [("Log", "w", "l"), ("Unsqueeze", "l zero", "u"), ("Squeeze", "u zero", "f")],
        lambda w, x: 1 / w,
    ),
}

# the same of bounds, where the number is taken instead of f
BOUNDS = {
    "max(sqrt w, 0.6)": (
        [("Sqrt", "w", "s"), ("Max", "s 0.6", "f")],
        lambda w, x: np.where(w > 0.36, 0.5 / np.sqrt(w), 0),
    ),
    "min(w^-1.5, 2.5)": (
        [("Pow", "w -1.5", "p"), ("Min", "p 2.5", "f")],
        lambda w, x: np.where(w**-1.5 < 2.5, -1.5 * w**-2.5, 0),
    ),
}


def scalar(name, value):
    return wire.field(
        5, wire.field(2, FLOAT) + wire.field(8, name) + wire.field(9, np.float32(value).tobytes())
    )


def build(cases, wheres, weight=W):
    """One graph of all cases, each with a weight of its own."""
    nodes, held, sums = (
        [],
        [
            wire.ints("zero", [0]),
            wire.floats("k", [6], K),
            wire.floats("c", [6], C),
            scalar("nought", 0),
        ],
        [],
    )
    numbers = {
        word
        for steps, _ in cases.values()
        for _, inputs, _ in steps
        for word in inputs.split()
        if word[-1].isdigit()
    }
    held += [scalar(word, float(word)) for word in numbers]
    for i, (steps, _) in enumerate(cases.values()):
        held.append(wire.floats(f"weight{i}", [6], weight))
        own = {"w": f"weight{i}"}
        for op, inputs, output in steps:
            nodes.append(wire.node(op, [own.get(v, v) for v in inputs.split()], f"{output}{i}"))
            own[output] = f"{output}{i}"
        nodes += wheres(f"f{i}", f"y{i}") + [wire.node("Mul", [f"y{i}", "k"], f"z{i}")]
        sums.append(f"z{i}")
    nodes += [wire.node("Sum", sums, "all"), wire.node("ReduceSum", ["all"], "loss", keepdims=0)]
    return wire.graph(nodes, held, {"x": (FLOAT, [6]), "m": (BOOL, [6])}, ["loss"])


def gradients(bench, what, data, mask, *flags):
    path, so, out = bench.path("hidden.onnx"), bench.path("hidden.so"), bench.path("grads.st")
    with open(path, "wb") as f:
        f.write(data)
    files.st_write(
        bench.path("in.st"), {"x": ("F32", [6], X.tolist()), "m": ("BOOL", [6], mask.tolist())}
    )
    if not bench.must(
        bench.ckc(
            path,
            "-o",
            so,
            "--quiet",
            "--optimizer",
            "sgd",
            "--freeze",
            "*",
            "--train",
            "weight*",
            *flags,
        ),
        f"{what}: compile",
    ):
        return {}
    done = bench.ckrun(
        so,
        "--inputs",
        bench.path("in.st"),
        "--steps",
        1,
        "--grads",
        out,
        "--quiet",
        "--on-nan",
        "go",
    )
    return files.st_read(out)[0] if bench.must(done, f"{what}: run") else {}


def compare(bench, what, got, mask, cases=CASES, weight=W):
    with np.errstate(all="ignore"):
        for i, (name, (_, slope)) in enumerate(cases.items()):
            want = np.where(mask, K * slope(weight.astype("f8"), X.astype("f8")), 0)
            have = np.array(got.get(f"weight{i}", [0, 0, [np.nan]])[2])
            bench.check(
                have.shape == (6,) and np.allclose(have, want, rtol=1e-4, atol=1e-6),
                f"{what}: {name}: gradient {have}, expected {want}",
            )


def main():
    bench = ck.Bench()
    taken = build(CASES, lambda f, y: [wire.node("Where", ["m", f, "nought"], y)])
    compare(bench, "where(m, f, 0)", gradients(bench, "where(m, f, 0)", taken, MASK), MASK)
    turned = build(CASES, lambda f, y: [wire.node("Where", ["m", "nought", f], y)])
    compare(bench, "where(m, 0, f)", gradients(bench, "where(m, 0, f)", turned, ~MASK), MASK)
    bounded = build(BOUNDS, lambda f, y: [wire.node("Identity", [f], y)], abs(W))
    compare(
        bench, "bounds", gradients(bench, "bounds", bounded, MASK), np.ones(6, bool), BOUNDS, abs(W)
    )
    # a product with zeros hides nothing: PyTorch's gradients, no number among them
    got = gradients(
        bench,
        "m * f",
        build(
            {"log": CASES["log"]},
            lambda f, y: [
                wire.node("Cast", ["m"], y + "c", to=FLOAT),
                wire.node("Mul", [f, y + "c"], y),
            ],
        ),
        MASK,
    )
    if got:
        have = np.array(got["weight0"][2])
        bench.check(
            np.allclose(have[MASK], K[MASK] / W[MASK], rtol=1e-4) and np.isnan(have[1]),
            f"m * log w: {have}",
        )
    bench.finish()


if __name__ == "__main__":
    main()
