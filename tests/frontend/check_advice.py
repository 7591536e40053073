#!/usr/bin/env python3
"""What `ckc inspect` finds in small files made here, and whether advice does what it says: each
line behind `try:` is typed.

    check_advice.py --ckc PATH

Findings: of several scatters, masks, tables and teachers in one file exactly those are named that
an export damages. Advice: `try: OPTIONS` at the end of a message, typed behind the same command,
takes the message away, or lowers the least budget.
"""

import argparse
import itertools
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
import wire  # noqa: E402

FLOAT, INT64, BOOL = 1, 7, 9
TRY = re.compile(r"try: (--.*)$", re.M)
LEAST = re.compile(r"smallest budget that works[^:]*: (\d+) B")
SIGNATURE = "pkg.torch.export.ExportedProgram.graph_signature"


class File:
    """An ONNX file in the making."""

    def __init__(self, producer=""):
        self.nodes, self.held, self.inputs, self.outputs, self.metadata, self.producer = (
            [],
            [],
            [],
            [],
            {},
            producer,
        )

    def node(self, op, inputs, output, name=None, note=None, **attributes):
        made = (
            b"".join(wire.field(1, x) for x in inputs)
            + b"".join(wire.field(2, y) for y in output.split())
            + wire.field(3, name or "n_" + output)
            + wire.field(4, op)
        )
        for k, v in attributes.items():
            made += (
                wire.field(5, wire.field(1, k) + wire.field(4, v) + wire.field(20, 3))
                if isinstance(v, str)
                else wire.field(5, wire.field(1, k) + wire.field(6, v.graph()) + wire.field(20, 5))
                if isinstance(v, File)
                else wire.attribute(k.encode(), v)
            )
        if note:
            made += wire.field(
                9,
                wire.field(1, "pkg.torch.onnx.fx_node")
                + wire.field(2, f"%y : call_function[target=torch.ops.{note}"),
            )
        self.nodes.append(wire.field(1, made))
        return output.split()[0]

    def hold(self, name, array):
        array = np.asarray(array)
        kind = {"f": FLOAT, "i": INT64, "b": BOOL}[array.dtype.kind]
        array = array.astype({FLOAT: "<f4", INT64: "<i8", BOOL: "?"}[kind])
        self.held.append(
            wire.field(
                5,
                b"".join(wire.field(1, d) for d in array.shape)
                + wire.field(2, kind)
                + wire.field(8, name)
                + wire.field(9, array.tobytes()),
            )
        )
        return name

    def input(self, name, kind, dims):
        """dims: numbers, names, or None where nothing is known."""
        shape = b"".join(
            wire.field(1, wire.field(1 if isinstance(d, int) else 2, d) if d is not None else b"")
            for d in dims
        )
        self.inputs.append(
            wire.field(
                11,
                wire.field(1, name)
                + wire.field(2, wire.field(1, wire.field(1, kind) + wire.field(2, shape))),
            )
        )
        return name

    def output(self, name, kind=FLOAT, dims=()):
        self.outputs.append(wire.field(12, wire.value_info(name.encode(), kind, list(dims))))

    def linear(self, x, name, rows, columns, seed=0):
        w = np.random.default_rng(len(name) + seed).standard_normal((rows, columns)) / 4
        return self.node("MatMul", [x, self.hold(name, w)], name + ".y")

    def mean(self, x, output):
        return self.node(
            "ReduceMean", [self.node("Mul", [x, x], output + ".q")], output, keepdims=0
        )

    def graph(self):
        return (
            b"".join(self.nodes)
            + wire.field(2, b"g")
            + b"".join(self.held + self.inputs + self.outputs)
        )

    def write(self, path, opset=17):
        with open(path, "wb") as f:
            f.write(
                wire.field(1, 8)
                + wire.field(2, self.producer)
                + wire.field(8, wire.field(1, b"") + wire.field(2, opset))
                + wire.field(7, self.graph())
                + b"".join(
                    wire.field(14, wire.field(1, k) + wire.field(2, v))
                    for k, v in self.metadata.items()
                )
            )


def sincos(rows, width, at=None):
    angle = (np.arange(rows) if at is None else at)[:, None] / 10000 ** (
        np.arange(0, width, 2) / width
    )
    return np.stack([np.sin(angle), np.cos(angle)], -1).reshape(rows, width)


def added(f, values, loss="loss"):
    """The sum of scalars as the loss."""
    f.node("Sum", values, loss)
    f.output(loss)


# ---- scatters ----


def scatters(f):
    """Those whose indices may repeat."""
    x = f.linear(f.input("x", FLOAT, [6, 4]), "l.w", 4, 3)
    ids, zero, total = f.input("ids", INT64, [6]), f.hold("zero", np.zeros((6, 3))), []
    one, wide = f.hold("one", np.array([1])), f.hold("wide", np.array([6, 3]))
    two, seven = f.hold("two", np.array([2])), f.hold("seven", np.array([6]))
    f.node("Unsqueeze", [ids, one], "column")
    f.node("TopK", [x, two], "tops which", axis=-1)
    f.node("TopK", [x, f.hold("three", np.array([3]))], "sorted order", axis=-1)
    f.node("ArgMax", [x], "best", axis=1, keepdims=1)
    f.node(
        "Range",
        [f.hold("i0", np.array(0)), f.hold("i6", np.array(6)), f.hold("i1", np.array(1))],
        "range",
    )
    f.node("Unsqueeze", ["range", one], "range.column")
    f.node("Div", ["range.column", f.hold("i2", np.array(2))], "halves")
    f.node("Mod", ["range.column", f.hold("i4", np.array(4))], "wrapped")
    f.node(
        "Sub",
        [
            f.hold("i5.r", np.array([[5], [4], [3], [2], [1], [0]])),
            f.node("Neg", ["range.column"], "minus"),
        ],
        "mirror",
    )
    f.node("Mul", ["range.column", f.hold("i0.m", np.array(0))], "zeros")
    f.node("Mul", ["range.column", "i1"], "stretched")
    f.node("Sub", [f.hold("i5", np.array(5)), "range.column"], "reversed")
    f.node(
        "Range",
        [f.hold("f0", np.float32(0)), f.hold("f3", np.float32(3)), f.hold("fh", np.float32(0.5))],
        "fractions",
    )
    f.node("Unsqueeze", [f.node("Cast", ["fractions"], "cut", to=INT64), one], "cut.column")
    f.node("Unsqueeze", [f.node("Cast", ["range"], "kept", to=INT64), one], "kept.column")
    f.node(
        "Unsqueeze",
        [
            f.node("Range", ["i0", f.hold("i3", np.array(3)), "i1"], "three.range"),
            f.hold("zeroth", np.array([0])),
        ],
        "three.row",
    )
    f.node("Less", ["column", f.hold("negative", np.array(0))], "below")
    lines = np.array([[0, 1, 2], [1, 0, 0], [2, 2, 1]])
    for name, index, axis, repeats in (
        ("input", "column", 0, True),
        ("input-line", "column", 1, False),
        ("twice", f.hold("c2", np.array([[0], [0], [1], [2], [2], [3]])), 0, True),
        ("permuted", f.hold("c1", np.array([[4], [2], [0], [1], [5], [3]])), 0, False),
        ("range", "range.column", 0, False),
        ("halves", "halves", 0, True),
        ("wrapped", "wrapped", 0, True),
        ("top", "which", -1, False),
        ("order", "order", 1, False),
        ("best", "best", 1, False),
        ("both-names", f.hold("c6", np.array([[-1], [5], [0], [1], [2], [3]])), 0, True),
        ("from-end", f.hold("c7", np.array([[-1], [-5], [-2], [-6], [-3], [-4]])), 0, False),
        ("mirror", "mirror", 0, True),
        ("zeros", "zeros", 0, True),
        ("stretched", "stretched", 0, False),
        ("reversed", "reversed", 0, False),
        ("cut", "cut.column", 0, True),
        ("kept", "kept.column", 0, False),
        ("row", "three.row", 0, True),
        ("row-line", "three.row", 1, False),
        ("lines", f.hold("c3", lines), 0, False),
        ("no-lines", f.hold("c4", lines.T), 0, True),
    ):
        values = x
        if index not in ("which", "order", "best", "c3", "c4") and (axis == 0 or "row" in index):
            index = f.node("Expand", [index, wide], name + ".index")
        elif index in ("column", "best"):
            values = f.node("Slice", [x, f.hold(name + ".a", np.array([0])), one, one], name + ".x")
        elif index == "which":
            values = "tops"
        elif index in ("c3", "c4"):
            values = f.node(
                "Slice",
                [
                    x,
                    f.hold(name + ".a", np.array([0])),
                    f.hold(name + ".e", np.array([3])),
                    f.hold(name + ".x0", np.array([0])),
                ],
                name + ".x",
            )
        total.append(
            (
                name,
                repeats,
                f.node("ScatterElements", [zero, index, values], name + ".y", name=name, axis=axis),
            )
        )
    ones = f.node("Expand", [f.hold("one.f", np.array([[1.0]])), wide], "ones")
    total.append(
        (
            "uniform",
            False,
            f.node(
                "ScatterElements",
                [zero, f.node("Expand", ["column", wide], "uniform.index"), ones],
                "uniform.y",
                name="uniform",
                axis=0,
            ),
        )
    )
    total.append(
        (
            "added",
            False,
            f.node(
                "ScatterElements",
                [zero, "uniform.index", x],
                "added.y",
                name="added",
                axis=0,
                reduction="add",
            ),
        )
    )
    grid = np.stack(np.meshgrid(range(6), range(3), indexing="ij"), -1)
    for name, index, repeats in (
        ("nd-input", "column", True),
        ("nd-range", "range.column", False),
        ("nd-grid", f.hold("grid", grid), False),
        ("nd-twice", f.hold("c5", np.array([[0], [1], [1], [2], [3], [4]])), True),
        ("nd-mixed", f.node("Where", ["below", "reversed", "range.column"], "either"), True),
        ("nd-zero", f.node("Where", ["below", "i0", "range.column"], "some"), True),
        (
            "nd-where",
            f.node(
                "Where",
                ["below", f.node("Add", ["range.column", seven], "shifted"), "range.column"],
                "cyclic",
            ),
            False,
        ),
    ):
        total.append((name, repeats, f.node("ScatterND", [zero, index, x], name + ".y", name=name)))
    added(f, [f.mean(y, name + ".loss") for name, _, y in total])
    return "values with the same index", {name for name, repeats, _ in total if repeats}


class Tensor(np.ndarray):
    """What formulas in warnings call of torch's."""

    def scatter_add(self, axis, index, source):
        y = self.copy()
        assert axis == 0
        for at in np.ndindex(index.shape):
            y[(index[at], *at[1:])] += source[at]
        return y

    def clamp(self, min):
        return np.maximum(self, min)

    def float(self):
        return self.astype(np.float64)

    def numel(self):
        return len(self)

    def movedim(self, a, b):
        return np.moveaxis(self, a, b)


def log_softmax(z, axis):
    z = z - z.max(axis, keepdims=True)
    return z - np.log(np.exp(z).sum(axis, keepdims=True))


def nll_loss(p, y, w=None, ignore_index=-100, reduction="mean"):
    w = np.ones(p.shape[1]) if w is None else w
    losses, weights = np.zeros(y.shape), np.zeros(y.shape)
    for at in np.ndindex(y.shape):
        if y[at] != ignore_index:
            losses[at], weights[at] = -w[y[at]] * p[(at[0], y[at], *at[1:])], w[y[at]]
    return (
        losses
        if reduction == "none"
        else losses.sum() / (weights.sum() if reduction == "mean" else 1)
    )


def formula_value(text, **of):
    """Statements, then an expression."""
    names = {
        "zeros_like": lambda t: t * 0,
        "ones_like": lambda t: t * 0 + 1,
        "where": np.where,
        "log_softmax": log_softmax,
        "nll_loss": nll_loss,
        **{name: np.asarray(x).view(Tensor) if np.ndim(x) else x for name, x in of.items()},
    }
    *before, last = text.split("; ")
    exec("; ".join(before), names)
    return np.asarray(eval(last, names))


def smoothed(z, y, w, s, ignore, reduction):
    """The definition: each label is 1 - s + s / K of its class and s / K of each other one."""
    p, k, losses, weights = log_softmax(z, 1), z.shape[1], np.zeros(y.shape), np.zeros(y.shape)
    for at in np.ndindex(y.shape):
        if y[at] != ignore:
            losses[at] = -sum(
                (s / k + (1 - s) * (c == y[at])) * w[c] * p[(at[0], c, *at[1:])] for c in range(k)
            )
            weights[at] = w[y[at]]
    return (
        losses
        if reduction == "none"
        else losses.sum() / (weights.sum() if reduction == "mean" else 1)
    )


def reduced_mean(z, i, x, with_self):
    y = np.array(z, np.float64)
    for row, col in np.ndindex(*y.shape):
        put = [x[k, col] for k in range(len(x)) if i[k, col] == row]
        if put:
            y[row, col] = np.mean(put + [z[row, col]] * with_self)
    return y


REDUCE = "aten.scatter_reduce.two](args = (%z, 0, %i, %x, mean), kwargs = {"
# how PyTorch's exporters spell it: the node and its name, whether it writes into zeros that are
# added to the rest, the dynamo exporter's note; what is said
SCATTERS = [
    (
        "ScatterElements",
        "node_scatter_reduce",
        False,
        REDUCE + "})",
        "the exporter dropped scatter_reduce's 'mean': ",
    ),
    (
        "ScatterElements",
        "node_scatter_reduce",
        False,
        REDUCE + "include_self: False})",
        "the exporter dropped scatter_reduce's 'mean', include_self=False: ",
    ),
    (
        "ScatterND",
        "/ScatterND",
        True,
        None,
        "the exporter dropped the sum of index_put(accumulate=True): ",
    ),
    (
        "ScatterElements",
        "/m/ScatterElements",
        True,
        None,
        "the exporter dropped the sum of index_add or scatter_add: ",
    ),
    ("ScatterElements", "scatter", False, None, "no reduction, and indices may repeat: "),
    # PyTorch overwrites, too
    ("ScatterND", "/ScatterND", False, None, None),
    ("ScatterElements", "/ScatterElements", False, None, None),
    (
        "ScatterElements",
        "node_scatter",
        False,
        "aten.scatter.src](args = (%z, 0, %i, %x), kwargs = {})",
        None,
    ),
    (
        "ScatterND",
        "node_ScatterND_16",
        False,
        "aten.index_put.default](args = (%clone, [%i], %linear), kwargs = {})",
        None,
    ),
]


# ---- masks ----


def masks(f):
    """Softmaxes with a row that may see nothing, and that PyTorch would make zeros."""
    x, total, found = f.linear(f.input("x", FLOAT, [2, 5, 5]), "l.w", 5, 5), [], set()
    low, high, zero = (
        f.hold("low", np.float32(-3.4028234663852886e38)),
        f.hold("high", np.float32(-1e4)),
        f.hold("zero", np.float32(0)),
    )
    eye, causal = f.hold("eye", np.eye(5) > 0), f.hold("causal", np.tril(np.ones((5, 5))) > 0)
    one, two, none = (f.hold(f"axis{i}", np.array([i])) for i in (1, 2, 0))
    f.node(
        "Range",
        [f.hold("i0", np.array(0)), f.hold("i5", np.array(5)), f.hold("i1", np.array(1))],
        "keys",
    )
    rows = f.node("Unsqueeze", ["keys", one], "queries")
    below = f.node("LessOrEqual", ["keys", rows], "below")
    window = f.node(
        "And",
        [
            below,
            f.node(
                "Greater",
                [f.node("Add", ["keys", f.hold("i2", np.array(2))], "keys.2"), rows],
                "near",
            ),
        ],
        "window",
    )
    triangle = f.node(
        "Trilu",
        [
            f.node(
                "Expand",
                [f.hold("yes", np.array(True)), f.hold("five.five", np.array([5, 5]))],
                "ones",
            )
        ],
        "triangle",
        upper=0,
    )
    above = f.node("Trilu", ["ones", "i1"], "above", upper=1)

    def padding(name, kind=INT64, axis=one):
        ids = f.input(name, kind, [2, 5])
        return f.node(
            "Unsqueeze",
            [ids if kind == BOOL else f.node("Cast", [ids], name + ".b", to=BOOL), axis],
            name + ".p",
        )

    def lengths(name, op, left, right):
        f.node("Unsqueeze", [f.input(name, INT64, [2]), one], name + ".n")
        return f.node("Unsqueeze", [f.node(op, [left, right], name + ".k"), one], name + ".p")

    def both(name, a, b, op="And"):
        return f.node(op, [a, b], name + ".m")

    def packed(name):
        ids = f.input(name, INT64, [2, 5])
        return f.node(
            "Equal",
            [
                f.node("Unsqueeze", [ids, one], name + ".c"),
                f.node("Unsqueeze", [ids, two], name + ".r"),
            ],
            name + ".e",
        )

    def rows_of(name):
        return f.input(name, BOOL, [2, 5, 5])

    # name: what is visible, and whether a row may see nothing
    cases = {
        "rows": (rows_of, True),
        "eye": (lambda n: both(n, rows_of(n), eye, "Or"), False),
        "asked": (rows_of, False),
        "unchecked": (rows_of, False),
        "moderate": (rows_of, False),
        "constant": (lambda n: causal, False),
        "and": (lambda n: both(n, rows_of(n), causal), True),
        "square": (lambda n: f.input(n, BOOL, [5, 5]), True),
        # padding alone hides whole samples, behind a causal mask rows
        "samples": (padding, False),
        "bool-samples": (lambda n: padding(n, BOOL), False),
        "wide": (
            lambda n: f.node(
                "Expand", [padding(n), f.hold(n + ".to", np.array([2, 5, 5]))], n + ".m"
            ),
            False,
        ),
        "left": (lambda n: both(n, padding(n), causal), True),
        "bool-left": (lambda n: both(n, padding(n, BOOL), causal), True),
        "left-triangle": (lambda n: both(n, triangle, padding(n)), True),
        "left-range": (lambda n: both(n, padding(n), below), True),
        "hidden": (lambda n: both(n, f.node("Not", [padding(n)], n + ".not"), above, "Or"), True),
        "both-ways": (lambda n: both(n, padding(n), padding(n + ".q", axis=two)), True),
        "nothing": (
            lambda n: both(n, padding(n), f.node("GreaterOrEqual", [rows, "i0"], n + ".all")),
            False,
        ),
        # each row sees the first key, or itself
        "lengths": (lambda n: both(n, lengths(n, "Less", "keys", n + ".n"), causal), False),
        "lengths-range": (lambda n: both(n, lengths(n, "Greater", n + ".n", "keys"), below), False),
        "lengths-left": (
            lambda n: both(n, lengths(n, "GreaterOrEqual", "keys", n + ".n"), below),
            True,
        ),
        "lengths-window": (lambda n: both(n, lengths(n, "Less", "keys", n + ".n"), window), True),
        "packed": (lambda n: both(n, packed(n), below), False),
        "packed-triangle": (lambda n: both(n, triangle, packed(n)), False),
        "packed-hidden": (
            lambda n: both(n, f.node("Not", [packed(n)], n + ".not"), above, "Or"),
            False,
        ),
        "packed-window": (lambda n: both(n, packed(n), window), False),
        "packed-left": (
            lambda n: both(n, packed(n), both(n + ".l", padding(n + ".i"), below)),
            True,
        ),
    }
    for name, (make, dead) in cases.items():
        mask = make(name)
        operands = (
            [mask, low, zero]
            if "hidden" in name
            else [mask, zero, high if name == "moderate" else low]
        )
        w = f.node("Where", operands, name + ".w")
        s = f.node("Softmax", [f.node("Add", [x, w], name + ".a")], name + ".s", name=name, axis=-1)
        if name != "unchecked":
            s = f.node("Where", [f.node("IsNaN", [s], name + ".n?"), zero, s], name + ".z")
        y = f.node("MatMul", [s, x], name + ".y")
        if name == "asked":
            any_ = f.node(
                "ReduceMax",
                [f.node("Cast", [mask], name + ".f", to=FLOAT)],
                name + ".any",
                axes=[-1],
                keepdims=1,
            )
            y = f.node("Mul", [y, any_], name + ".k?")
        total.append(f.mean(y, name + ".loss"))
        found |= {name} if dead else set()
    added(f, total)
    return "a fully masked row", found


# ---- tables of positions ----


def tables(f):
    """Those that are sines, as they are or scaled, by rows or by places in a picture."""
    rng, x = np.random.default_rng(5), f.input("x", FLOAT, [9, 8])
    wave, place = sincos(9, 8), sincos(3, 4)
    grid = np.concatenate([np.repeat(place, 3, 0), np.tile(place, (3, 1))], 1)
    fixed = {
        "pairs": wave,
        "halves": np.concatenate([wave[:, ::2], wave[:, 1::2]], 1),
        "scaled": wave * 0.2 - 0.03,
        "places": grid,
        "padded": np.concatenate([wave[1:2] * 0, wave[1:]]),
    }
    learnt = {
        "normal": rng.normal(0, 0.02, (9, 8)),
        "zeros": np.zeros((9, 8)),
        "same": np.full((9, 8), 0.5),
        "rows": np.tile(rng.normal(0, 1, 8), (9, 1)),
        "uniform": rng.uniform(-1, 1, (9, 8)),
        "unit": np.eye(9)[:, :8],
    }
    total = []
    for name, table in (fixed | learnt).items():
        total.append(
            f.mean(
                f.node("Add", [f.linear(x, f"l.{name}", 8, 8), f.hold("pos." + name, table)], name),
                name + ".loss",
            )
        )
    added(f, total)
    return "sinusoidal table", {"pos." + name for name in fixed}


FINDINGS = [scatters, masks, tables]


# ---- teachers ----


def tower(f, x, name):
    return f.linear(
        f.node("Relu", [f.linear(x, name + ".0", 8, 6)], name + ".r"), name + ".1", 6, 5
    )


def teachers(how):
    """A file, and the group that looks like a teacher."""
    f = File()
    x, y = f.input("x", FLOAT, [6, 8]), f.input("y", INT64, [6])
    a, b = {"named": ("m.policy", "m.ref")}.get(how, ("m.big", "m.small"))
    p, q = tower(f, x, a), tower(f, x, b)
    terms, teacher = [], None
    if how in ("distill", "tasks", "mutual", "features"):
        terms.append(f.node("SoftmaxCrossEntropyLoss", [q, y], "ce"))
    if how in ("tasks", "mutual"):
        terms.append(f.node("SoftmaxCrossEntropyLoss", [p, y], "ce2"))
    if how in ("distill", "mutual", "alone"):
        kl = f.node(
            "Mul",
            [
                f.node("Softmax", [p], "chances", axis=-1),
                f.node("LogSoftmax", [q], "logs", axis=-1),
            ],
            "kl",
        )
        terms.append(f.node("Neg", [f.node("ReduceMean", [kl], "kl.m", keepdims=0)], "kl.n"))
    if how == "soft":
        terms.append(
            f.node("SoftmaxCrossEntropyLoss", [q, f.node("Softmax", [p], "chances", axis=-1)], "ce")
        )
    if how == "features":
        terms.append(f.mean(f.node("Sub", [p, q], "difference"), "mse"))
    if how == "named":
        terms.append(f.mean(f.node("Sub", [p, q], "margin"), "dpo"))
    if how == "towers":
        f.node("Transpose", [p], "turned", perm=[1, 0])
        terms.append(
            f.node("SoftmaxCrossEntropyLoss", [f.node("MatMul", [q, "turned"], "alike"), y], "ce")
        )
    if how == "ensemble":
        terms.append(f.node("SoftmaxCrossEntropyLoss", [f.node("Add", [p, q], "both"), y], "ce"))
    if how == "stacked":
        joint = f.node("Sub", [p, q], "difference")
        terms = [
            f.node("SoftmaxCrossEntropyLoss", [q, y], "ce"),
            f.mean(f.linear(joint, "m.small.2", 5, 5), "head"),
        ]
    added(f, terms)
    return f, {
        "distill": "m.big",
        "alone": "m.big",
        "soft": "m.big",
        "features": "m.big",
        "named": "m.ref",
    }.get(how, teacher)


TEACHERS = [
    "distill",
    "alone",
    "soft",
    "features",
    "named",
    "tasks",
    "mutual",
    "towers",
    "ensemble",
    "stacked",
]


# ---- what advice is typed for ----


def lora(f):
    x = f.linear(f.input("x", FLOAT, [6, 4]), "m.lora_A", 4, 3)
    added(f, [f.mean(f.linear(x, "m.base", 3, 3), "l")])


def buffers(f):
    """TorchScript's names, which tell nothing."""
    f.producer = "pytorch"
    x = f.linear(f.input("x", FLOAT, [6, 4]), "m.weight", 4, 3)
    for name in "shift", "scale", "grid":
        x = f.node(
            "Add",
            [x, f.hold("m." + name, np.random.default_rng(len(name)).standard_normal(3))],
            name,
        )
    added(f, [f.mean(x, "l")])


def idle(f):
    x = f.linear(f.input("x", FLOAT, [6, 4]), "m.weight", 4, 3)
    added(f, [f.mean(x, "l")])
    for name in "m.unused", "m.other":
        f.node("Floor", [f.hold(name, np.ones(3))], name + ".f")
        f.output(name + ".f", dims=[3])


def folded(f):
    """A bias that lost its name, and rows of positions."""
    x = f.node(
        "Gather",
        [
            f.hold("m.table.weight", np.random.default_rng(1).standard_normal((9, 4))),
            f.input("ids", INT64, [2, 6]),
        ],
        "rows",
    )
    x = f.node("Add", [x, f.hold("val_1", np.random.default_rng(2).standard_normal((6, 4)))], "sum")
    x = f.node(
        "Mul",
        [
            f.linear(x, "m.weight", 4, 3),
            f.hold("val_2", np.random.default_rng(3).standard_normal(3)),
        ],
        "scaled",
    )
    added(f, [f.mean(x, "l")])


def branch_of_trip(f):
    """A bias of a branch whose condition is known once its Loop is unrolled."""
    f.producer = "pytorch"
    then, other, body = File(), File(), File()
    bias = then.hold("bias", np.random.default_rng(3).standard_normal(3))
    then.output(then.node("Add", ["in", bias], "then"), dims=[6, 3])
    other.output(other.node("Identity", ["in"], "other"), dims=[6, 3])
    body.input("trip", INT64, [])
    body.input("go_in", BOOL, [])
    body.input("in", FLOAT, [6, 3])
    first = body.node("Less", ["trip", body.hold("one", np.int64(1))], "first")
    body.output(body.node("Identity", ["go_in"], "go_out"), BOOL)
    body.output(body.node("If", [first], "out", then_branch=then, else_branch=other), dims=[6, 3])
    x = f.linear(f.input("x", FLOAT, [6, 4]), "m.weight", 4, 3)
    trips, go = f.hold("trips", np.int64(2)), f.hold("go", np.bool_(True))
    x = f.node("Loop", [trips, go, x], "looped", body=body)
    added(f, [f.mean(x, "l")])


def symbolic(f):
    x = f.linear(f.input("x", FLOAT, ["batch", None, "2*n"]), "m.weight", 8, 8)
    added(f, [f.mean(f.node("Relu", [x], "r"), "l")])


def norms(f):
    x = f.linear(f.input("x", FLOAT, [6, 4]), "m.weight", 4, 3)
    for name in "weight", "bias", "running_mean", "running_var":
        f.hold("n." + name, np.array([1, 2, 3.0]))
    added(
        f,
        [
            f.mean(
                f.node(
                    "BatchNormalization",
                    [x, "n.weight", "n.bias", "n.running_mean", "n.running_var"],
                    "n",
                ),
                "l",
            )
        ],
    )


def batches(f):
    x = f.input("x", FLOAT, ["batch", 16])
    for i in range(6):
        x = f.node("Relu", [f.linear(x, f"m.{i}", 16, 16)], f"r{i}")
    added(f, [f.mean(x, "l")])


def fixed(f):
    x = f.input("x", FLOAT, [2, 16])
    for i in range(6):
        x = f.node("Relu", [f.linear(x, f"m.{i}", 16, 16)], f"r{i}")
    added(f, [f.mean(x, "l")])


def scores(f):
    f.output(f.linear(f.input("x", FLOAT, [6, 4]), "m.weight", 4, 3), dims=[6, 3])


BATCH = ["--dim", "batch=64"]
# what makes the file, its options, the least number of lines of advice
ADVICE = [
    (tables, [], 1),
    (lora, [], 1),
    (buffers, [], 1),
    (idle, [], 1),
    (folded, [], 2),
    (branch_of_trip, [], 1),
    (symbolic, [], 3),
    (symbolic, ["--dim", "batch=2", "--dim", "n=4"], 1),
    (batches, BATCH + ["--memory-budget", "10KiB"], 4),
    (batches, BATCH + ["--memory-budget", "30000"], 4),
    (batches, BATCH + ["--memory-budget", "10KiB", "--dp", "4"], 2),
    (batches, ["--dim", "x.0=6", "--memory-budget", "8KiB", "--optimizer", "sgd"], 1),
    (batches, ["--dim", "batch=1", "--memory-budget", "10KiB"], 2),
    (batches, BATCH + ["--memory-budget", "10KiB", "--recompute", "none"], 4),
    (fixed, ["--memory-budget", "10KiB"], 2),
    (scores, ["--loss", "m.weight.y"], 1),
    (batches, BATCH + ["--zero", "1"], 1),
    (batches, BATCH + ["--dtype", "f16", "--update-in-backward", "on"], 1),
]


class Check:
    def __init__(self, ckc):
        self.ckc, self.work, self.passed, self.failed = (
            ckc,
            tempfile.mkdtemp(prefix="ckc-advice-"),
            0,
            0,
        )

    def that(self, ok, what):
        if ok:
            self.passed += 1
        else:
            self.failed += 1
            print(f"FAIL {what}", flush=True)
        return ok

    def run(self, *args):
        return subprocess.run(
            [self.ckc, *args],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            timeout=120,
            cwd=self.work,
            stdin=subprocess.DEVNULL,
        )

    def path(self, make):
        f = File()
        make(f)
        f.write(os.path.join(self.work, make.__name__ + ".onnx"))
        return make.__name__ + ".onnx"

    def found(self, path, *flags):
        done = self.run("inspect", path, "--json", "-", *flags)
        return (
            json.loads(done.stdout)
            if self.that(
                done.returncode == 0, f"inspect {path}: {done.returncode} {done.stderr[-400:]}"
            )
            else {"warnings": [], "details": {}}
        )

    def finding(self, make):
        f = File()
        words, want = make(f)
        f.write(os.path.join(self.work, "finding.onnx"))
        page = self.found("finding.onnx")
        got = {
            re.sub(r"^--freeze |'", "", line)
            for text, lines in page["details"].items()
            if words in text
            for line in lines
        }
        self.that(
            got == want,
            f"{make.__name__}: missed {sorted(want - got)}, false {sorted(got - want)}: {page['warnings']}",
        )

    def teacher(self, how):
        f, want = teachers(how)
        f.write(os.path.join(self.work, "teacher.onnx"))
        told = [text for text in self.found("teacher.onnx")["warnings"] if "teacher" in text]
        self.that(
            len(told) == bool(want) and all(f"try: --freeze '{want}.*'" in text for text in told),
            f"teacher {how}: {told}, expected {want}",
        )
        if told:
            after = self.found("teacher.onnx", "--freeze", want + ".*")["warnings"]
            self.that(
                not any("teacher" in text for text in after), f"teacher {how}, frozen: {after}"
            )

    def scatter(self, op, name, apart, note, words):
        """What is said of a scatter is about the call that it stands for, and a formula in it is
        right."""
        rng = np.random.default_rng(11)
        z, i, x = (
            rng.standard_normal((4, 3)),
            np.repeat(rng.integers(0, 3, 6)[:, None], 3, 1),
            rng.standard_normal((6, 3)),
        )
        f = File("pytorch")
        y, held = f.linear(f.input("x", FLOAT, [6, 4]), "l.weight", 4, 3), f.hold("z", z)
        index = f.node(
            "Unsqueeze", [f.input("i", INT64, [6]), f.hold("one", np.array([1]))], "column"
        )
        if op == "ScatterElements":
            index = f.node("Expand", [index, f.hold("to", np.array([6, 3]))], "wide")
        into = (
            f.node("ConstantOfShape", [f.node("Shape", [held], "extents")], "nought")
            if apart
            else held
        )
        y = f.node(op, [into, index, y], "written", name=name, note=note)
        added(f, [f.mean(f.node("Add", [held, y], "all") if apart else y, "l")])
        f.write(os.path.join(self.work, "scatter.onnx"))
        told = [line for line in self.found("scatter.onnx")["warnings"] if "same index" in line]
        self.that(
            len(told) == bool(words) and all(f"'{name}': {words}" in line for line in told),
            f"scatter {op} {name} {note}: {told}, expected {words}",
        )
        for line in told if "mean" in (words or "") or note is None and name == "scatter" else []:
            value = formula_value(line.split("; ", 1)[1].split("try: ")[1], z=z, i=i, x=x)
            want = reduced_mean(z, i, x, "include_self=False" not in line)
            self.that(np.allclose(value, want), f"{line}: {value}, expected {want}")

    def smoothing(self, weighted, ignore, reduction, image):
        """What is written out instead of label_smoothing is the same."""
        rng, dims = np.random.default_rng(3), (2, 3) if image else ()
        z, y, w = (
            rng.standard_normal((4, 5, *dims)),
            rng.integers(0, 5, (4, *dims)),
            rng.uniform(0.5, 2, 5),
        )
        y.reshape(-1)[1] = ignore
        f = File("pytorch")
        f.node(
            "Mul",
            [
                f.input("x", FLOAT, z.shape),
                f.hold("l.scale.weight", np.ones((5, *[1 for _ in dims]))),
            ],
            "z",
        )
        f.input("y", INT64, y.shape)
        f.node(
            "SoftmaxCrossEntropyLoss",
            ["z", "y"] + ([f.hold("w", w)] if weighted else []),
            "ce",
            ignore_index=ignore,
            reduction=reduction,
            note=f"aten.cross_entropy_loss.default](args = (%z, %y, {'%w' if weighted else None}, 1, {ignore}, 0.1), kwargs = {{}})",
        )
        added(f, [f.mean("ce", "l") if reduction == "none" else "ce"])
        f.write(os.path.join(self.work, "smoothing.onnx"))
        told = [
            line
            for line in self.found("smoothing.onnx")["warnings"]
            if "label_smoothing=0.1" in line
        ]
        what = f"smoothing {weighted} {ignore} {reduction} {image}"
        if self.that(len(told) == 1, f"{what}: {told}"):
            value = formula_value(told[0].split("write it out: ")[1], z=z, y=y, w=w, s=0.1)
            want = smoothed(z, y, w if weighted else np.ones(5), 0.1, ignore, reduction)
            self.that(np.allclose(value, want), f"{what}: {told[0]}: {value}, expected {want}")

    def lost(self):
        """A parameter that the file does not hold: an exporter that optimizes leaves no
        Constant."""
        for constant in False, True:
            f = File("pytorch")
            f.metadata = {
                SIGNATURE: "p_a: PARAMETER target='m.weight'\np_b: PARAMETER target='m.token'"
            }
            x = f.linear(f.input("x", FLOAT, [6, 4]), "m.weight", 4, 3)
            if constant:
                x = f.node("Mul", [x, f.node("Constant", [], "c", value_float=2.0)], "twice")
            added(f, [f.mean(x, "l")])
            f.write(os.path.join(self.work, "lost.onnx"))
            told = self.found("lost.onnx")["warnings"]
            self.that(
                len(told) == 1
                and "missing: 'm.token'" in told[0]
                and ("optimize=False" in told[0]) != constant
                and "the loss does not use it" in told[0],
                f"lost, {constant}: {told}",
            )
        # an LSTM with proj_size
        f.metadata = {
            SIGNATURE: "p_a: PARAMETER target='m.weight'\np_b: PARAMETER target='r.weight_hr_l0'"
        }
        f.write(os.path.join(self.work, "lost.onnx"))
        told = self.found("lost.onnx")["warnings"]
        self.that(
            len(told) == 1
            and "missing: 'r.weight_hr_l0'" in told[0]
            and "ONNX's LSTM has no projection (proj_size)" in told[0]
            and "loss does not" not in told[0],
            f"projection: {told}",
        )

    def advice(self, make, flags, least):
        path = self.path(make)
        before = self.run(path, "--plan-only", *flags)
        self.that("try -" not in before.stderr, f"advice without its colon: {before.stderr}")
        lines = [
            (line, TRY.search(line).group(1))
            for line in before.stderr.splitlines()
            if TRY.search(line)
        ]
        self.that(
            len(lines) >= least,
            f"{make.__name__} {flags}: {len(lines)} lines of advice, expected {least}: {before.stderr}",
        )
        if "--memory-budget" in flags:
            bound = any("=" in word and word != "batch=1" for word in flags)
            # the last line is the whole command again
            remedies = before.stderr.partition("try: ckc advise")[0]
            self.that(
                ("--dim" in remedies) == bound
                and ("the file fixes the batch size" in before.stderr) == (make is fixed),
                f"{make.__name__} {flags}: {before.stderr}",
            )
        every = []
        for line, typed in lines:
            words = shlex.split(re.sub(r"=N\b", "=8", typed.replace("AxBx...", "2x4x8")))
            every += words
            self.typed(path, make, flags, line, words, before.stderr)
        if "is not bound" in before.stderr:
            self.that(
                self.run(path, "--plan-only", *flags, *every).returncode == 0,
                f"{make.__name__} {flags}: all of {every}",
            )

    def typed(self, path, make, flags, line, words, before):
        """Options that stand there already are given anew."""
        old, kept = list(flags), []
        while old:
            option, value = old[:2]
            old = old[2:]
            anew = (
                option in words
                and option != "--dim"
                or option == "--dim"
                and any(w.split("=")[0] == value.split("=")[0] for w in words)
            )
            kept += [] if anew else [option, value]
        done = self.run(path, "--plan-only", *kept, *words)
        what = f"{make.__name__} {flags}, {' '.join(words)}: {done.returncode} {done.stderr}"
        was, now = LEAST.search(before), LEAST.search(done.stderr)
        if was:
            less = int(re.search(r"(\d+) B less", line).group(1)) if " B less" in line else 0
            self.that(done.returncode == 0 or (now and int(now.group(1)) < int(was.group(1))), what)
            if "which is enough" in line and "about" not in line and "up to" not in line:
                self.that(done.returncode == 0, f"it would do, but {what}")
            elif now and "about" in line:
                gone = int(was.group(1)) - int(now.group(1))
                self.that(less / 2 <= gone, f"{less} B less were told, found {gone}: {what}")
        else:
            # the same words behind the file's name, without the names of what is left
            self.that(
                line.split("; try")[0] not in done.stderr
                and (done.returncode == 0 or "is not bound" in before or "is unknown" in before),
                what,
            )
        self.that(
            "error" not in done.stderr.split("\n")[0] and "unknown option" not in done.stderr, what
        )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ckc", required=True)
    check = Check(os.path.abspath(parser.parse_args().ckc))
    for make in FINDINGS:
        check.finding(make)
    for how in TEACHERS:
        check.teacher(how)
    for row in SCATTERS:
        check.scatter(*row)
    for row in itertools.product((False, True), (-100, 2), ("mean", "sum", "none"), (False, True)):
        check.smoothing(*row)
    check.lost()
    for row in ADVICE:
        check.advice(*row)
    shutil.rmtree(check.work, ignore_errors=True)
    print(f"{check.passed} passed, {check.failed} failed")
    sys.exit(1 if check.failed else 0)


if __name__ == "__main__":
    main()
