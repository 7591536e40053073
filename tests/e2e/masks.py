#!/usr/bin/env python3
"""Attention whose masks hide some or all keys from a query, against a formula.

    masks.py CKC CKRUN

A query that sees no key looks at all of them alike where scores were replaced, and no gradient
passes there; where a number was added it still compares them; where that is -inf it gets zeros.
Losses and gradients are compared with numpy's, of attention in one piece and op by op.
"""

import os
import struct
import sys

import numpy as np

import ck
import wire

sys.path.insert(0, os.path.join(ck.HERE, "..", "runtime"))
import files

BATCH, TIME, SIZE = 3, 4, 6
WEIGHTS = ("m.q", "m.k", "m.v")
BOOL, FLOAT = 9, 1


def scalar(name, value):
    return wire.field(
        5,
        wire.field(2, FLOAT)
        + wire.field(8, name.encode())
        + wire.field(9, struct.pack("<f", value)),
    )


def constant(name, mask):
    dims = b"".join(wire.field(1, d) for d in mask.shape)
    return wire.field(
        5,
        dims
        + wire.field(2, BOOL)
        + wire.field(8, name.encode())
        + wire.field(9, mask.astype("u1").tobytes()),
    )


def model(scores, held, mask):
    """loss = mean(y^2), y = softmax(masked(s)) v; the nodes in `scores` make m of s."""
    nodes = [wire.node("MatMul", ["x", w], w[2:]) for w in WEIGHTS]
    nodes += [transpose("k", "kt"), wire.node("MatMul", ["q", "kt"], "s")]
    nodes += scores + [
        wire.node("Softmax", ["m"], "p", axis=-1),
        wire.node("MatMul", ["p", "v"], "y"),
        wire.node("Mul", ["y", "y"], "yy"),
        wire.node("ReduceMean", ["yy"], "loss", keepdims=0),
    ]
    inputs = {"x": (FLOAT, [BATCH, TIME, SIZE])}
    if mask is not None:
        inputs["mask"] = (BOOL if mask.dtype == bool else FLOAT, list(mask.shape))
    return wire.graph(nodes, held, inputs, ["loss"])


def transpose(x, y):
    perm = (
        wire.field(1, b"perm") + b"".join(wire.field(8, i) for i in (0, 2, 1)) + wire.field(20, 7)
    )
    return wire.field(
        1,
        wire.field(1, x.encode())
        + wire.field(2, y.encode())
        + wire.field(4, b"Transpose")
        + wire.field(5, perm),
    )


def reference(x, w, hide):
    """Loss and gradients; hide(s): the masked scores, and where their gradient passes."""
    q, k, v = (x @ w[name] for name in WEIGHTS)
    m, passes = hide(q @ k.transpose(0, 2, 1))
    top = m.max(-1, keepdims=True)
    p = np.where(np.isinf(top), 0, np.exp(m - np.where(np.isinf(top), 0, top)))
    p /= np.maximum(p.sum(-1, keepdims=True), 1e-300)
    y = p @ v
    dy = 2 * y / y.size
    dp = dy @ v.transpose(0, 2, 1)
    ds = p * (dp - (dp * p).sum(-1, keepdims=True)) * passes
    grads = (ds @ k, ds.transpose(0, 2, 1) @ q, p.transpose(0, 2, 1) @ dy)
    return (y * y).mean(), {name: np.einsum("bti,btj->ij", x, g) for name, g in zip(WEIGHTS, grads)}


def both(bench, what, *case):
    for form in "fused", "unfused":
        check(bench, f"{what}, {form}", *case, form=form)


def check(bench, what, scores, held, mask, hide, tolerance=1e-4, form="fused"):
    rng = np.random.default_rng(3)
    x = rng.standard_normal((BATCH, TIME, SIZE)).astype("f4")
    w = {name: rng.standard_normal((SIZE, SIZE)).astype("f4") for name in WEIGHTS}
    held = held + [wire.floats(name, [SIZE, SIZE], w[name].ravel().tolist()) for name in WEIGHTS]
    path, so, log, grads = (bench.path(n) for n in ("m.onnx", "m.so", "m.log", "m.g"))
    with open(path, "wb") as f:
        f.write(model(scores, held, mask))
    given = {"x": ("F32", list(x.shape), x.ravel().tolist())}
    if mask is not None:
        given["mask"] = (
            "BOOL" if mask.dtype == bool else "F32",
            list(mask.shape),
            mask.ravel().tolist(),
        )
    files.st_write(bench.path("in.st"), given)
    if not bench.must(
        bench.ckc(path, "-o", so, "--quiet", "--optimizer", "sgd", "--attention", form),
        f"{what}: compile",
    ):
        return
    done = bench.ckrun(
        so, "--inputs", bench.path("in.st"), "--steps", 1, "--log", log, "--grads", grads, "--quiet"
    )
    if not bench.must(done, f"{what}: run"):
        return
    loss, want = reference(x.astype("f8"), {name: a.astype("f8") for name, a in w.items()}, hide)
    got = files.st_read(grads)[0]
    bench.check(
        abs(ck.losses(log)[0] - loss) <= tolerance * loss,
        f"{what}: loss {ck.losses(log)[0]}, expected {loss}",
    )
    most = max(np.abs(g).max() for g in want.values())
    for name in WEIGHTS:
        wrong = np.abs(np.array(got[name][2]) - want[name].ravel()).max()
        bench.check(wrong <= tolerance * most, f"{what}: gradient of {name} is off by {wrong}")


def replaced(shown, number):
    """Scores where shown, the number elsewhere."""
    return lambda s: (np.where(shown, s, number), np.broadcast_to(shown, s.shape))


def main():
    bench = ck.Bench()
    rng = np.random.default_rng(1)
    some = rng.random((BATCH, TIME, TIME)) < 0.5
    some[:, :, 1] = True  # every query sees a key
    none = some.copy()
    none[0, 2] = none[2] = False  # these see none
    padding = np.array([[True] * TIME, [True, True, False, False], [False] * TIME])[:, None]
    causal = np.tri(TIME, dtype=bool)
    above = np.triu(np.ones((TIME, TIME), bool), 2)  # the last queries see none
    replace, added = (
        [wire.node("Where", ["mask", "s", "h"], "m")],
        [
            wire.node("Sub", ["one", "mask"], "no"),
            wire.node("Mul", ["no", "h"], "add"),
            wire.node("Add", ["s", "add"], "m"),
        ],
    )
    for number in (-1e4, -1e9):
        hidden = [scalar("h", number)]
        check(bench, f"where(none, s, {number:g})", replace, hidden, none, replaced(none, number))
        nested = [
            wire.node("Where", ["mask", "s", "h"], "t"),
            wire.node("Where", ["c", "t", "h"], "m"),
        ]
        both(
            bench,
            f"padding and causal, {number:g}",
            nested,
            hidden + [constant("c", causal)],
            padding,
            replaced(padding & causal, number),
        )
        # (1 - m) h: at -1e4 a float has a thousandth left for the scores
        term = (1 - none.astype("f4")) * np.float32(number)
        check(
            bench,
            f"add {number:g}",
            added,
            hidden + [scalar("one", 1)],
            none.astype("f4"),
            lambda s, t=term: ((s.astype("f4") + t).astype("f8"), np.ones_like(s)),
            5e-3,
        )
    hidden = [scalar("h", -1e4)]
    check(
        bench,
        "where(hide, -1e4, s)",
        [wire.node("Where", ["mask", "h", "s"], "m")],
        hidden,
        ~padding,
        replaced(padding, -1e4),
    )
    fixed = [wire.node("Where", ["c", "s", "h"], "m")]
    check(bench, "constant", fixed, hidden + [constant("c", above)], None, replaced(above, -1e4))
    mixed = [wire.node("Where", ["mask", "s", "h"], "t"), wire.node("Where", ["c", "t", "h2"], "m")]
    check(
        bench,
        "two numbers",
        mixed,
        [scalar("h", -1e4), scalar("h2", -1e9), constant("c", causal)],
        padding,
        lambda s: (
            np.where(causal, np.where(padding, s, -1e4), -1e9),
            np.broadcast_to(padding & causal, s.shape),
        ),
    )
    endless = [scalar("h", -np.inf)]
    check(bench, "where(some, s, -inf)", replace, endless, some, replaced(some, -np.inf))
    both(bench, "where(none, s, -inf)", replace, endless, none, replaced(none, -np.inf))
    term = np.where(none, 0, -np.inf).astype("f4")
    both(
        bench,
        "add -inf",
        [wire.node("Add", ["s", "mask"], "m")],
        [],
        term,
        lambda s: (s + term, none & np.ones_like(s, bool)),
    )
    both(
        bench,
        "constant, -inf",
        fixed,
        endless + [constant("c", above)],
        None,
        replaced(above, -np.inf),
    )
    bench.finish()


if __name__ == "__main__":
    main()
