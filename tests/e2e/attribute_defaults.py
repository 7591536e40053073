#!/usr/bin/env python3
"""What nodes mean that leave their attributes out, and that it is not what they mean with them.

    attribute_defaults.py CKC CKRUN

One forward pass of all cases of an opset, against formulas in numpy; operands are such that every
default shows: statistics are small beside an epsilon, axes have different extents, products have
all their factors.
"""

import os
import sys

import numpy as np

import ck
import wire

sys.path.insert(0, os.path.join(ck.HERE, "..", "runtime"))
import files

rng = np.random.default_rng(3)
IN = {
    name: np.float32(scale * rng.normal(0, 1, shape))
    for name, shape, scale in [
        ("x", (3, 4, 5), 2),
        ("tiny", (3, 4, 5), 3e-3),
        ("image", (2, 3, 4, 4), 2),
        ("small", (2, 3, 4, 4), 3e-3),
        ("a", (4, 5), 1),
        ("at", (5, 4), 1),
        ("b", (5, 6), 1),
        ("bt", (6, 5), 1),
        ("c", (4, 6), 1),
        ("five", (5,), 1),
        ("three", (3,), 1),
    ]
}
IN["deviation"] = np.float32(np.abs(IN["three"]) * 1e-5)
X, TINY, IMAGE, SMALL = (np.float64(IN[k]) for k in ("x", "tiny", "image", "small"))
A, B, C = (np.float64(IN[k]) for k in "abc")


def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def spread(x, axes, eps):
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps)


def flat(rows):
    """Of a matrix with the dims from axis 1 on as columns."""
    return lambda x: rows(x.reshape(len(x), -1)).reshape(x.shape)


def per_channel(v):
    return np.float64(v).reshape(3, 1, 1)


def lrn(x, size=3):
    square = np.array(
        [
            [(x[n, max(0, c - 1) : c + 2] ** 2).sum(0) for c in range(x.shape[1])]
            for n in range(len(x))
        ]
    )
    return x / (1 + 1e-4 / size * square) ** 0.75


def batchnorm(x, scale, bias, mean, var):
    return (x - per_channel(mean)) / np.sqrt(per_channel(var) + 1e-5) * per_channel(
        scale
    ) + per_channel(bias)


def averages(x):
    """Of 3 x 3 windows; the padding does not count."""
    y = np.zeros_like(x)
    for i in range(x.shape[2]):
        for j in range(x.shape[3]):
            y[:, :, i, j] = x[:, :, max(0, i - 1) : i + 2, max(0, j - 1) : j + 2].mean((2, 3))
    return y


def top(x, k):
    return np.sort(x, -1)[..., ::-1][..., :k]


# opset: (op, inputs, attributes, results)
CASES = {
    17: [
        ("Softmax", ["x"], {}, [softmax(X)]),
        ("Softmax", ["x"], {"axis": 1}, [softmax(X, 1)]),
        ("LogSoftmax", ["x"], {}, [np.log(softmax(X))]),
        ("LayerNormalization", ["tiny", "five"], {}, [spread(TINY, -1, 1e-5) * IN["five"]]),
        (
            "LayerNormalization",
            ["tiny", "five"],
            {"epsilon": 1e-3},
            [spread(TINY, -1, 1e-3) * IN["five"]],
        ),
        (
            "InstanceNormalization",
            ["small", "three", "three"],
            {},
            [spread(SMALL, (2, 3), 1e-5) * per_channel(IN["three"]) + per_channel(IN["three"])],
        ),
        (
            "BatchNormalization",
            ["small", "three", "three", "three", "deviation"],
            {},
            [batchnorm(SMALL, IN["three"], IN["three"], IN["three"], IN["deviation"])],
        ),
        ("LRN", ["image"], {"size": 3}, [lrn(IMAGE)]),
        ("Gemm", ["a", "b", "c"], {}, [A @ B + C]),
        ("Gemm", ["a", "b", "c"], {"alpha": 0.5, "beta": 0.25}, [0.5 * A @ B + 0.25 * C]),
        ("Gemm", ["a", "b", "c"], {"beta": 0.0}, [A @ B]),
        (
            "Gemm",
            ["at", "bt", "c"],
            {"transA": 1, "transB": 1, "beta": -2.0},
            [np.float64(IN["at"]).T @ np.float64(IN["bt"]).T - 2 * C],
        ),
        ("Split", ["c"], {}, [C[:2], C[2:]]),
        ("Split", ["c"], {"axis": 1}, [C[:, :3], C[:, 3:]]),
        ("Split", ["image"], {"axis": 2}, [IMAGE[:, :, :2], IMAGE[:, :, 2:]]),
        ("Transpose", ["x"], {}, [X.T]),
        ("Flatten", ["x"], {}, [X.reshape(3, 20)]),
        ("LeakyRelu", ["x"], {}, [np.where(X < 0, 0.01 * X, X)]),
        ("Elu", ["x"], {}, [np.where(X < 0, np.expm1(X), X)]),
        ("Celu", ["x"], {"alpha": 2.0}, [np.maximum(X, 0) + np.minimum(0, 2 * np.expm1(X / 2))]),
        (
            "Selu",
            ["x"],
            {},
            [1.0507009873554805 * np.where(X < 0, 1.6732632423543772 * np.expm1(X), X)],
        ),
        ("HardSigmoid", ["x"], {}, [np.clip(0.2 * X + 0.5, 0, 1)]),
        ("HardSwish", ["x"], {}, [X * np.clip(X / 6 + 0.5, 0, 1)]),
        ("ThresholdedRelu", ["x"], {}, [np.where(X > 1, X, 0)]),
        ("Shrink", ["x"], {}, [np.where(np.abs(X) > 0.5, X, 0)]),
        ("Trilu", ["x"], {}, [np.triu(X)]),
        ("ReduceSum", ["x"], {}, [X.sum(keepdims=True)]),
        ("ReduceMean", ["x"], {"axes": [1]}, [X.mean(1, keepdims=True)]),
        ("ReduceMax", ["x"], {"axes": [0], "keepdims": 0}, [X.max(0)]),
        ("LpNormalization", ["x"], {}, [X / np.sqrt((X**2).sum(-1, keepdims=True))]),
        ("MeanVarianceNormalization", ["image"], {}, [spread(IMAGE, (0, 2, 3), 0)]),
        ("Hardmax", ["x"], {}, [np.eye(5)[X.argmax(-1)]]),
        (
            "AveragePool",
            ["image"],
            {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]},
            [averages(IMAGE)],
        ),
        ("TopK", ["x", "two"], {}, [top(X, 2)]),
    ],
    12: [
        ("Softmax", ["x"], {}, [flat(softmax)(X)]),
        ("Softmax", ["x"], {"axis": 2}, [softmax(X)]),
        ("LogSoftmax", ["x"], {}, [np.log(flat(softmax)(X))]),
        ("Hardmax", ["x"], {}, [flat(lambda x: np.eye(20)[x.argmax(-1)])(X)]),
        ("ReduceSum", ["x"], {"axes": [1]}, [X.sum(1, keepdims=True)]),
        ("Split", ["c"], {"axis": 1}, [C[:, :3], C[:, 3:]]),
    ],
}


def attribute(name, value):
    """Lists of any length."""
    if isinstance(value, list):
        return wire.field(
            5, wire.field(1, name) + b"".join(wire.field(8, x) for x in value) + wire.field(20, 7)
        )
    return wire.attribute(name, value)


def model(opset, cases):
    nodes, outputs = b"", []
    for i, (op, inputs, attributes, results) in enumerate(cases):
        names = [f"y{i}_{k}".encode() for k in range(len(results))]
        body = (
            b"".join(wire.field(1, x) for x in inputs)
            + b"".join(wire.field(2, x) for x in names)
            + wire.field(4, op)
        )
        nodes += wire.field(
            1, body + b"".join(attribute(k.encode(), v) for k, v in attributes.items())
        )
        outputs += names
    used = sorted({x for _, inputs, _, _ in cases for x in inputs} - {"two"})
    ends = b"".join(wire.field(11, wire.value_info(x.encode(), 1, IN[x].shape)) for x in used)
    ends += b"".join(
        wire.field(12, wire.field(1, x) + wire.field(2, wire.field(1, wire.field(1, 1))))
        for x in outputs
    )
    return wire.a_model(nodes + wire.field(2, b"g") + wire.ints("two", [2]) + ends, opset), used


def trial(bench, opset, cases):
    path, so, out = bench.path("m.onnx"), bench.path("m.so"), bench.path("out.st")
    data, used = model(opset, cases)
    with open(path, "wb") as f:
        f.write(data)
    files.st_write(
        bench.path("in.st"), {k: ("F32", list(IN[k].shape), IN[k].ravel().tolist()) for k in used}
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
                f"{what}: {op} {attributes or 'without attributes'}: output {k} "
                + (
                    f"is off by {far:.2g}"
                    if same
                    else f"has the shape {shape}, expected {want.shape}"
                ),
            )


def main():
    bench = ck.Bench()
    for opset, cases in CASES.items():
        trial(bench, opset, cases)
    bench.finish()


if __name__ == "__main__":
    main()
