#!/usr/bin/env python3
"""Axes counted from the front and from the end, of operands of ranks 1 to 4.

    axes.py CKC CKRUN

Every op that has an axis, against numpy: once on a graph's input, whose rank the file says, and
once on a value inside the graph, whose rank only folding tells.
"""

import os
import sys

import numpy as np

import ck
import wire
from attribute_defaults import attribute, softmax, spread

sys.path.insert(0, os.path.join(ck.HERE, "..", "runtime"))
import files

SHAPE = [2, 3, 4, 2]
TYPES = {"float32": ("F32", 1), "int64": ("I64", 7)}
rng = np.random.default_rng(5)


def normal(*shape):
    return rng.standard_normal(shape).astype("f4")


def rows(x, axis):
    """Below opset 13: a matrix with the dims from the axis on as columns."""
    return x.reshape(int(np.prod(x.shape[: axis % x.ndim])), -1)


def hardmax(x, axis):
    return np.float32(
        np.expand_dims(x.argmax(axis), axis)
        == np.arange(x.shape[axis]).reshape(
            [-1 if i == axis % x.ndim else 1 for i in range(x.ndim)]
        )
    )


def squash(opset, x, axis):
    """Softmax and its kin: of a matrix before opset 13."""
    flat, at = (rows(x, axis), 1) if opset < 13 else (x, axis)
    for op, y in (
        ("Softmax", softmax(flat, at)),
        ("LogSoftmax", np.log(softmax(flat, at))),
        ("Hardmax", hardmax(flat, at)),
    ):
        yield op, ["x"], {"axis": axis}, [y.reshape(x.shape)]


def one_hot(ids, depth, axis):
    y = np.full(ids.shape + (depth,), 2, "f4")
    np.put_along_axis(y, (ids % depth)[..., None], 5, -1)
    return np.moveaxis(y, -1, axis)


def cumsum(x, axis, exclusive, reverse):
    x = np.flip(x, axis) if reverse else x
    y = np.cumsum(x, axis)
    y = y - x if exclusive else y
    return np.flip(y, axis) if reverse else y


def moves(opset, x, axis):
    n, ones = x.shape[axis], [1] * x.ndim
    lists = opset < 13

    def axes(op, operand, want):
        return (
            (op, [operand], {"axes": [axis]}, [want])
            if lists
            else (op, [operand, np.int64([axis])], {}, [want])
        )

    yield "ArgMax", ["x"], {"axis": axis, "keepdims": 0}, [x.argmax(axis)]
    yield "ArgMin", ["x"], {"axis": axis}, [np.expand_dims(x.argmin(axis), axis)]
    yield "Concat", ["x", "x"], {"axis": axis}, [np.concatenate([x, x], axis)]
    yield (
        "Gather",
        ["x", np.int64([[0, -1], [1, 0]])],
        {"axis": axis},
        [np.take(x, [[0, n - 1], [1, 0]], axis)],
    )
    ids = rng.integers(-2, 2, x.shape)
    yield "GatherElements", ["x", ids], {"axis": axis}, [np.take_along_axis(x, ids % n, axis)]
    put = x.copy()
    put[tuple(n - 1 if i == axis % x.ndim else 0 for i in range(x.ndim))] = 9
    yield "ScatterElements", ["x", np.full(ones, -1), np.full(ones, 9, "f4")], {"axis": axis}, [put]
    for way in ({"exclusive": 1}, {"reverse": 1}):
        yield (
            "CumSum",
            ["x", np.int64(axis)],
            way,
            [cumsum(x, axis, "exclusive" in way, "reverse" in way)],
        )
    yield (
        "TopK",
        ["x", np.int64([2])],
        {"axis": axis},
        [
            np.flip(np.sort(x, axis), axis).take(range(2), axis),
            np.flip(np.argsort(x, axis), axis).take(range(2), axis),
        ],
    )
    yield "LpNormalization", ["x"], {"axis": axis, "p": 1}, [x / np.abs(x).sum(axis, keepdims=True)]
    yield "OneHot", [ids, np.int64(4), np.float32([2, 5])], {"axis": axis}, [one_hot(ids, 4, axis)]
    yield (
        "Slice",
        ["x", *(np.int64([k]) for k in (-1, -99, axis, -2))],
        {},
        [np.flip(x, axis).take(range(0, n, 2), axis)],
    )
    if x.ndim > 1:
        yield "Flatten", ["x"], {"axis": axis}, [rows(x, axis)]
    parts = np.split(x, [1], axis)
    yield (
        ("Split", ["x"], {"axis": axis, "split": [1, n - 1]}, parts)
        if lists
        else ("Split", ["x", np.int64([1, n - 1])], {"axis": axis}, parts)
    )
    yield axes("Unsqueeze", "x", np.expand_dims(x, axis))
    yield axes("Squeeze", np.expand_dims(x, axis), x)
    for name, f in (
        ("Sum", np.sum),
        ("Mean", np.mean),
        ("Max", np.max),
        ("Prod", np.prod),
        ("L2", lambda x, a, keepdims: np.sqrt((x * x).sum(a, keepdims=keepdims))),
    ):
        late = opset >= (13 if name == "Sum" else 18)
        for keep in (0, 1):
            yield (
                "Reduce" + name,
                ["x", np.int64([axis])] if late else ["x"],
                {"keepdims": keep, **({} if late else {"axes": [axis]})},
                [f(x, axis, keepdims=bool(keep))],
            )
    if opset >= 17:
        scale, over, wide = (
            normal(*x.shape[axis:]),
            tuple(range(axis % x.ndim, x.ndim)),
            np.float64(x),
        )
        yield (
            "LayerNormalization",
            ["x", scale],
            {"axis": axis},
            [
                spread(wide, over, 1e-5) * scale,
                wide.mean(over, keepdims=True),
                1 / np.sqrt(wide.var(over, keepdims=True) + 1e-5),
            ],
        )
    if opset >= 18:
        yield (
            "Pad",
            ["x", np.int64([1, 2]), "", np.int64([axis])],
            {},
            [np.pad(x, [(1, 2) if i == axis % x.ndim else (0, 0) for i in range(x.ndim)])],
        )
        yield "Split", ["x"], {"axis": axis, "num_outputs": 2}, np.array_split(x, 2, axis)


def held(name, array):
    array = np.ascontiguousarray(array)
    return wire.field(
        5,
        b"".join(wire.field(1, d) for d in array.shape)
        + wire.field(2, TYPES[str(array.dtype)][1])
        + wire.field(8, name)
        + wire.field(9, array.tobytes()),
    )


def build(opset, operands, cases):
    """The file; operands: name to array, inputs of the graph under their names and hidden behind
    two nodes under "h." and their names."""
    nodes, fixed, outputs = b"", b"", []
    for name in operands:
        nodes += wire.node("Neg", [name], "n." + name) + wire.node(
            "Neg", ["n." + name], "h." + name
        )
    for i, (op, inputs, attributes, results) in enumerate(cases):
        body = b""
        for k, x in enumerate(inputs):
            if not isinstance(x, str):
                fixed += held(f"c{i}_{k}", x)
            body += wire.field(1, x if isinstance(x, str) else f"c{i}_{k}")
        names = [f"y{i}_{k}" for k in range(len(results))]
        nodes += wire.field(
            1,
            body
            + b"".join(wire.field(2, y) for y in names)
            + wire.field(4, op)
            + b"".join(attribute(k.encode(), v) for k, v in attributes.items()),
        )
        outputs += names
    ends = b"".join(
        wire.field(11, wire.value_info(k.encode(), 1, v.shape)) for k, v in operands.items()
    )
    ends += b"".join(
        wire.field(12, wire.field(1, y) + wire.field(2, wire.field(1, wire.field(1, 1))))
        for y in outputs
    )
    return wire.a_model(nodes + wire.field(2, b"g") + fixed + ends, opset)


def trial(bench, opset, makers, ranks):
    operands, cases = {f"x{rank}": normal(*SHAPE[:rank]) for rank in ranks}, []
    for rank in ranks:
        x = operands[f"x{rank}"]
        for axis in range(-rank, rank):
            for maker in makers:
                for k, (op, inputs, attributes, results) in enumerate(maker(opset, x, axis)):
                    for prefix in ("", "h.") if maker is squash else ("h.",):
                        cases.append(
                            (
                                op,
                                [
                                    prefix + f"x{rank}" if isinstance(v, str) and v == "x" else v
                                    for v in inputs
                                ],
                                attributes,
                                results,
                            )
                        )
    path, so, out = bench.path("m.onnx"), bench.path("m.so"), bench.path("out.st")
    with open(path, "wb") as f:
        f.write(build(opset, operands, cases))
    files.st_write(
        bench.path("in.st"),
        {k: ("F32", list(v.shape), v.ravel().tolist()) for k, v in operands.items()},
    )
    what = f"opset {opset}"
    if not bench.must(
        bench.ckc(path, "-o", so, "--forward-only", "--quiet"), what
    ) or not bench.must(
        bench.ckrun(so, "--inputs", bench.path("in.st"), "--outputs", out, "--quiet"), what
    ):
        return
    got = files.st_read(out)[0]
    for i, (op, inputs, attributes, results) in enumerate(cases):
        for k, want in enumerate(results):
            _, shape, values = got[f"y{i}_{k}"]
            same = tuple(shape) == want.shape
            far = np.max(np.abs(np.reshape(values, shape) - want)) if same else np.inf
            bench.check(
                far <= 1e-5 * (1 + np.max(np.abs(want))),
                f"{what}: {op} of {inputs[0]} {attributes}: output {k} "
                + (
                    f"is off by {far:.2g}"
                    if same
                    else f"has the shape {shape}, expected {want.shape}"
                ),
            )


def main():
    bench = ck.Bench()
    trial(bench, 11, (squash, moves), (1, 2, 3))
    trial(bench, 13, (squash,), (1, 2, 3, 4))
    trial(bench, 12, (squash,), (4,))
    trial(bench, 18, (moves,), (2, 4))
    bench.finish()


if __name__ == "__main__":
    main()
