#!/usr/bin/env python3
"""Values that are read where they lie: reversed, repeated, cut; remainders.

    strided_views.py CKC CKRUN

Losses and gradients of small models are compared with sums done here.
"""

import os
import random
import sys
from math import fmod, tanh

import ck
import wire

sys.path.insert(0, os.path.join(ck.HERE, "..", "runtime"))
import files

ROWS, COLS = 4, 6
W = "m.weight"
START, END, AXIS, STEP = "start", "end", "axis", "step"


def near(a, b):
    return len(a) == len(b) and all(abs(x - y) <= 1e-5 * (1 + abs(y)) for x, y in zip(a, b))


def build(bench, name, nodes, constants):
    """loss = mean(y^2) of what the nodes make of x [ROWS, COLS] and w [ROWS, COLS]."""
    random.seed(5)
    w, x = ([random.uniform(-1, 1) for _ in range(ROWS * COLS)] for _ in range(2))
    nodes = nodes + [
        wire.node("Mul", ["y", "y"], "yy"),
        wire.node("ReduceMean", ["yy"], "loss", keepdims=0),
    ]
    held = [wire.floats(W, [ROWS, COLS], w)] + [wire.ints(k, v) for k, v in constants.items()]
    path = bench.path(name + ".onnx")
    with open(path, "wb") as f:
        f.write(wire.graph(nodes, held, {"x": (1, [ROWS, COLS])}, ["loss"]))
    files.st_write(bench.path(name + ".st"), {"x": ("F32", [ROWS, COLS], x)})
    return path, w, x


def train(bench, name, path, want_loss, want_grad, *flags):
    so, log, grads = (bench.path(name + e) for e in (".so", ".log", ".g"))
    if not bench.must(bench.ckc(path, "-o", so, "--quiet", *flags), f"{name}: compile"):
        return
    done = bench.ckrun(
        so,
        "--inputs",
        bench.path(name + ".st"),
        "--steps",
        2,
        "--lr",
        0,
        "--log",
        log,
        "--grads",
        grads,
        "--check",
        "--quiet",
    )
    if not bench.must(done, f"{name}: run"):
        return
    bench.check(
        near(ck.losses(log), [want_loss] * 2),
        f"{name}: loss {ck.losses(log)}, expected {want_loss}",
    )
    got = files.st_read(grads)[0][W][2]
    bench.check(near(got, want_grad), f"{name}: gradient {got}, expected {want_grad}")


def picked(bench, name, pick, start, end, step):
    """y = x * w[cut], where pick lists the elements of w that the cut names."""
    constants = {START: start, END: end, AXIS: [0, 1], STEP: step}
    nodes = [
        wire.node("Tanh", [W], "t"),
        wire.node("Slice", ["t", START, END, AXIS, STEP], "cut"),
        wire.node("Mul", ["x", "cut"], "y"),
    ]
    path, w, x = build(bench, name, nodes, constants)
    n = ROWS * COLS
    y = [x[i] * tanh(w[pick[i]]) for i in range(n)]
    grad = [0.0] * n
    for i in range(n):
        grad[pick[i]] += 2 * y[i] / n * x[i] * (1 - tanh(w[pick[i]]) ** 2)
    train(bench, name, path, sum(v * v for v in y) / n, grad)


def repeated(bench, name, axes):
    """A sum over w beside the rest of the loss: its gradient is one number, or one row or column,
    seen often."""
    nodes = [
        wire.node("Mul", [W, W], "ww"),
        wire.node("ReduceSum", ["ww", AXIS], "s", keepdims=1),
        wire.node("Mul", ["x", W], "xw"),
        wire.node("Add", ["xw", "s"], "y"),
    ]
    path, w, x = build(bench, name, nodes, {AXIS: axes})
    n = ROWS * COLS
    group = [(0 if 0 in axes else i // COLS, 0 if 1 in axes else i % COLS) for i in range(n)]
    total, back = {}, {}
    for i in range(n):
        total[group[i]] = total.get(group[i], 0) + w[i] * w[i]
    y = [x[i] * w[i] + total[group[i]] for i in range(n)]
    for i in range(n):
        back[group[i]] = back.get(group[i], 0) + 2 * y[i] / n
    grad = [2 * y[i] / n * x[i] + back[group[i]] * 2 * w[i] for i in range(n)]
    train(bench, name, path, sum(v * v for v in y) / n, grad)


def penalty(bench, name):
    """loss = sum(w^2): nothing but a number repeated on the way back."""
    nodes = [
        wire.node("Mul", [W, W], "ww"),
        wire.node("ReduceSum", ["ww"], "y", keepdims=0),
        wire.node("ReduceMean", ["x"], "unused", keepdims=0),
    ]
    path, w, _ = build(bench, name, nodes, {})
    total = sum(v * v for v in w)
    train(bench, name, path, total * total, [4 * total * v for v in w])


def remainder(bench, name):
    """y = mod(w, x), whose slope is 1 but at jumps."""
    nodes = [wire.node("Mod", [W, "x"], "y", fmod=1)]
    path, w, x = build(bench, name, nodes, {})
    y = [fmod(a, b) for a, b in zip(w, x)]
    train(bench, name, path, sum(v * v for v in y) / len(y), [2 * v / len(y) for v in y])


def main():
    bench = ck.Bench()
    rows, cols, low = range(ROWS), range(COLS), -(1 << 62)
    at = lambda r, c: r * COLS + c
    picked(
        bench,
        "rows",
        [at(ROWS - 1 - r, c) for r in rows for c in cols],
        [-1, 0],
        [low, COLS],
        [-1, 1],
    )
    picked(
        bench,
        "columns",
        [at(r, COLS - 1 - c) for r in rows for c in cols],
        [0, -1],
        [ROWS, low],
        [1, -1],
    )
    picked(
        bench,
        "both",
        [at(ROWS - 1 - r, COLS - 1 - c) for r in rows for c in cols],
        [-1, -1],
        [low, low],
        [-1, -1],
    )
    for axes in [0], [1], [0, 1]:
        repeated(bench, "repeated" + "".join(map(str, axes)), axes)
    penalty(bench, "penalty")
    remainder(bench, "remainder")
    bench.finish()


if __name__ == "__main__":
    main()
