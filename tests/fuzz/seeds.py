#!/usr/bin/env python3
"""Write the seeds of the fuzz targets: small valid files and some that are damaged on purpose.

    seeds.py OUT [--models DIR] [--ck DIR]

OUT/onnx gets one small training graph per operator and form, and the models of DIR without their
weights; OUT/ck the inputs of the pass tests; the others what their formats can hold.  Only Python's
own library is used.
"""

import argparse
import base64
import glob
import json
import os
import struct
import sys
import zipfile
import zlib
import io

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
from wire import field, fields, varint  # noqa: E402

# 6x8, grey
JPEG = """
/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAAUDBAQEAwUEBAQFBQUGBwwIBwcHBw8LCwkMEQ8SEhEPERETFhwXExQaFRERGCEYGh0dHx8fExciJCIeJBweHx7/
wAALCAAIAAYBAREA/8QAFAABAAAAAAAAAAAAAAAAAAAABP/EABkQAAEFAAAAAAAAAAAAAAAAAAEACDZzsf/aAAgBAQAAPwBbQYqaRoX/2Q=="""
F32, U8, I32, I64, BOOL, F16 = 1, 2, 6, 7, 9, 10


# ---- protobuf ----


def tensor(name, dtype, dims, values, raw=True):
    out = b"".join(field(1, d) for d in dims) + field(2, dtype) + (field(8, name) if name else b"")
    code = {F32: "f", U8: "B", I32: "i", I64: "q", BOOL: "?", F16: "e"}[dtype]
    if raw:
        return out + field(9, struct.pack(f"<{len(values)}{code}", *values))
    if dtype == F32:
        return out + field(4, struct.pack(f"<{len(values)}f", *values))
    return out + field(7 if dtype == I64 else 5, b"".join(varint(int(v)) for v in values))


class Graph(bytes):
    """A subgraph as an attribute."""


class Tensor(bytes):
    """A tensor as an attribute."""


def attribute(name, v):
    out = field(1, name)
    if isinstance(v, float):
        return out + field(2, v) + field(20, 1)
    if isinstance(v, int):
        return out + field(3, v) + field(20, 2)
    if isinstance(v, str):
        return out + field(4, v) + field(20, 3)
    if isinstance(v, Tensor):
        return out + field(5, bytes(v)) + field(20, 4)
    if isinstance(v, Graph):
        return out + field(6, bytes(v)) + field(20, 5)
    if v and isinstance(v[0], float):
        return out + b"".join(field(7, x) for x in v) + field(20, 6)
    return out + b"".join(field(8, x) for x in v) + field(20, 7)


def node(op, inputs, outputs, domain="", name="", **attributes):
    out = (
        b"".join(field(1, x) for x in inputs)
        + b"".join(field(2, x) for x in outputs)
        + (field(3, name) if name else b"")
        + field(4, op)
    )
    out += b"".join(field(5, attribute(k, v)) for k, v in attributes.items())
    return out + (field(7, domain) if domain else b"")


def dim(d):
    return field(1, field(2, d) if isinstance(d, str) else field(1, d))


def info(name, dtype, dims):
    shape = b"" if dims is None else field(2, b"".join(dim(d) for d in dims))
    return field(1, name) + field(2, field(1, field(1, dtype) + shape))


def graph(nodes, initializers=(), inputs=(), outputs=(), name="g"):
    out = (
        b"".join(field(1, n) for n in nodes)
        + field(2, name)
        + b"".join(field(5, t) for t in initializers)
    )
    return out + b"".join(field(11, i) for i in inputs) + b"".join(field(12, o) for o in outputs)


def model(g, opset=17, extra=b"", functions=()):
    out = (
        field(1, 8)
        + field(2, "seeds")
        + field(8, field(1, "") + field(2, opset))
        + field(8, field(1, "com.microsoft") + field(2, 1))
    )
    return out + field(7, g) + b"".join(field(25, f) for f in functions) + extra


# ---- one graph per operator ----


def values(n):
    return [((i * 37 + 11) % 64 - 31) / 32 for i in range(n)]


def product(dims):
    n = 1
    for d in dims:
        n *= d
    return n


def operand(spec):
    """(name, what it adds to initializers, what to inputs): "x:2x3" an input behind a parameter, so
    that a gradient passes through the operator, "W:2x3" a parameter, "i:[1,2]" and "i:3" constants,
    "n:2x3" an input of integers, "m:2x3" one of truth values, "h:2x3" one of halves."""
    if spec == "":
        return "", None, None
    name, _, form = spec.partition(":")
    if name[0] == "i":
        listed = form.startswith("[")
        xs = [int(x) for x in form.strip("[]").split(",") if x]
        return name, tensor(name, I64, [len(xs)] if listed else [], xs), None
    if name[0] == "f":
        return name, tensor(name, F32, [], [float(form)]), None
    if name[0] == "b":
        return name, tensor(name, BOOL, [], [form == "1"]), None
    dims = [] if form == "" else [int(x) if x.isdigit() else x for x in form.split("x")]
    if name[0].isupper():
        return name, tensor(name, F32, dims, values(product(dims)), raw=len(dims) != 1), None
    dtype = {"n": I64, "m": BOOL, "h": F16}.get(name[0], F32)
    return name, None, info("in." + name if name[0] == "x" else name, dtype, dims)


def case(op, specs, nout=1, opset=17, cast=False, domain="", **attributes):
    operands = [operand(s) for s in specs]
    outputs = ["y"] + [f"y{i}" for i in range(1, nout)]
    nodes = [
        node("Add", ["in." + o[0], "p.weight"], [o[0]]) for o in operands if o[0].startswith("x")
    ]
    nodes += [node(op, [o[0] for o in operands], outputs, domain, "the_node", **attributes)]
    last = "y"
    if cast:
        nodes.append(node("Cast", [last], ["c"], to=F32))
        last = "c"
    nodes += [
        node("Mul", [last, "p.weight"], ["scaled"]),
        node("ReduceSum", ["scaled"], ["loss"], keepdims=0),
    ]
    inits = [o[1] for o in operands if o[1]] + [tensor("p.weight", F32, [1], [0.5])]
    return model(
        graph(nodes, inits, [o[2] for o in operands if o[2]], [info("loss", F32, [])]), opset
    )


def body_loop():
    g = graph(
        [
            node("Add", ["s", "step"], ["s2"]),
            node("Identity", ["cond"], ["cond2"]),
            node("Identity", ["s2"], ["scan"]),
        ],
        [tensor("step", F32, [], [0.5])],
        [info("it", I64, []), info("cond", BOOL, []), info("s", F32, [2, 3])],
        [info("cond2", BOOL, []), info("s2", F32, [2, 3]), info("scan", F32, [2, 3])],
        "body",
    )
    return case("Loop", ["i:3", "b:1", "W:2x3"], nout=2, body=Graph(g))


def body_scan():
    g = graph(
        [node("Add", ["s", "e"], ["s2"]), node("Mul", ["s2", "e"], ["o"])],
        [],
        [info("s", F32, [3]), info("e", F32, [3])],
        [info("s2", F32, [3]), info("o", F32, [3])],
        "body",
    )
    return case("Scan", ["W:3", "x:4x3"], nout=2, body=Graph(g), num_scan_inputs=1)


def body_if():
    then = graph([node("Relu", ["x"], ["t"])], [], [], [info("t", F32, [2, 3])], "then")
    other = graph([node("Neg", ["x"], ["e"])], [], [], [info("e", F32, [2, 3])], "else")
    g = graph(
        [
            node("If", ["b"], ["y"], then_branch=Graph(then), else_branch=Graph(other)),
            node("Mul", ["y", "p.weight"], ["s"]),
            node("ReduceSum", ["s"], ["loss"], keepdims=0),
        ],
        [tensor("b", BOOL, [], [True]), tensor("p.weight", F32, [2, 3], values(6))],
        [info("x", F32, [2, 3])],
        [info("loss", F32, [])],
    )
    return model(g)


def with_function():
    f = (
        field(1, "Twice")
        + field(4, "a")
        + field(5, "b")
        + field(7, node("Add", ["a", "a"], ["s"]))
        + field(6, "alpha")
    )
    f += field(
        7,
        field(1, "s")
        + field(2, "b")
        + field(4, "LeakyRelu")
        + field(5, field(1, "alpha") + field(20, 1) + field(21, "alpha")),
    )
    f += field(9, field(1, "") + field(2, 17)) + field(10, "local")
    g = graph(
        [
            node("Twice", ["x"], ["u"], "local", "first", alpha=0.25),
            node("Twice", ["u"], ["v"], "local", "second", alpha=0.5),
            node("Mul", ["v", "p.weight"], ["s"]),
            node("ReduceSum", ["s"], ["loss"], keepdims=0),
        ],
        [tensor("p.weight", F32, [3], values(3))],
        [info("x", F32, ["batch", 3])],
        [info("loss", F32, [])],
    )
    return model(g, extra=field(8, field(1, "local") + field(2, 1)), functions=[f])


def sparse():
    s = (
        field(1, tensor("W", F32, [2], [1.0, 2.0]))
        + field(2, tensor("", I64, [2], [1, 5]))
        + field(3, 2)
        + field(3, 3)
    )
    g = graph(
        [
            node("MatMul", ["x", "W"], ["y"]),
            node("Mul", ["y", "p.weight"], ["s"]),
            node("ReduceSum", ["s"], ["loss"], keepdims=0),
        ],
        [tensor("p.weight", F32, [3], values(3))],
        [info("x", F32, [4, 2])],
        [info("loss", F32, [])],
    )
    return model(g + field(15, s))


def sequences():
    g = graph(
        [
            node("SplitToSequence", ["x", "i"], ["q"], axis=1),
            node("SequenceAt", ["q", "i1"], ["y"]),
            node("Mul", ["y", "p.weight"], ["s"]),
            node("ReduceSum", ["s"], ["loss"], keepdims=0),
        ],
        [
            tensor("p.weight", F32, [1], [1.0]),
            tensor("i", I64, [], [2]),
            tensor("i1", I64, [], [1]),
        ],
        [info("x", F32, [2, 6])],
        [info("loss", F32, [])],
    )
    return model(g)


def shape_chain():
    g = graph(
        [
            node("Shape", ["x"], ["sh"]),
            node("Gather", ["sh", "i0"], ["n"], axis=0),
            node("Unsqueeze", ["n", "ax"], ["n1"]),
            node("Constant", [], ["minus"], value=Tensor(tensor("", I64, [1], [-1]))),
            node("Concat", ["n1", "minus"], ["to"], axis=0),
            node("Reshape", ["x", "to"], ["r"]),
            node("MatMul", ["r", "W"], ["y"]),
            node("Tanh", ["y"], ["t"]),
            node("ReduceMean", ["t"], ["loss"], keepdims=0),
        ],
        [
            tensor("i0", I64, [], [0]),
            tensor("ax", I64, [1], [0]),
            tensor("W", F32, [6, 2], values(12)),
        ],
        [info("x", F32, ["batch", 2, 3])],
        [info("loss", F32, [])],
    )
    return model(g)


def external():
    w = field(1, 4) + field(1, 2) + field(2, F32) + field(8, "W") + field(14, 1)
    w += b"".join(
        field(13, field(1, k) + field(2, v))
        for k, v in (("location", "weights"), ("offset", "0"), ("length", "32"))
    )
    g = graph(
        [node("MatMul", ["x", "W"], ["y"]), node("ReduceSum", ["y"], ["loss"], keepdims=0)],
        [w],
        [info("x", F32, [3, 4])],
        [info("loss", F32, [])],
    )
    return model(g)


def onnx_seeds():
    for op in (
        "Abs",
        "Relu",
        "Neg",
        "Sqrt",
        "Reciprocal",
        "Exp",
        "Log",
        "Tanh",
        "Sigmoid",
        "Erf",
        "Sin",
        "Cos",
        "Floor",
        "Ceil",
        "Round",
        "Sign",
        "Identity",
        "Softplus",
        "Softsign",
        "Mish",
        "HardSwish",
        "HardSigmoid",
        "Elu",
        "Selu",
        "Celu",
        "LeakyRelu",
        "ThresholdedRelu",
        "Atan",
        "Tan",
        "Asin",
        "Acos",
        "Sinh",
        "Cosh",
        "Asinh",
        "Acosh",
        "Atanh",
    ):
        yield op.lower(), case(op, ["x:2x3"], opset=18)
    for op in ("Add", "Sub", "Mul", "Div", "Pow", "Max", "Min", "PRelu"):
        yield op.lower(), case(op, ["x:2x4x3", "W:3"])
        yield op.lower() + "-column", case(op, ["W:2x4x3", "x:4x1"])
    for op in ("Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual"):
        yield op.lower(), case(op, ["n:2x3", "i:[1,2,3]"], cast=True)
    for op in ("And", "Or", "Xor"):
        yield op.lower(), case(op, ["m:2x3", "m2:3"], cast=True)
    yield "not", case("Not", ["m:2x3"], cast=True)
    yield "isnan", case("IsNaN", ["x:2x3"], cast=True)
    yield "mod", case("Mod", ["n:2x3", "i:[2,3,4]"], cast=True)
    yield "where", case("Where", ["m:2x3", "W:3", "x:2x1"])
    yield "clip", case("Clip", ["x:2x3", "f:-0.5", "f1:0.5"])
    yield "clip6", case("Clip", ["x:2x3"], opset=10, min=0.0, max=6.0)
    yield "sum", case("Sum", ["x:2x3", "W:3", "x2:2x1"])
    yield "mean", case("Mean", ["x:2x3", "W:3"])
    yield "cast", case("Cast", ["n:2x3"], to=F32)
    yield "half", case("Cast", ["h:2x3"], to=F32)
    yield "gelu", case("Gelu", ["x:2x3"], opset=20, approximate="tanh")
    yield "swish", case("Swish", ["x:2x3"], opset=24)
    yield "msgelu", case("Gelu", ["x:2x3"], domain="com.microsoft")
    yield "biasgelu", case("BiasGelu", ["x:2x3", "W:3"], domain="com.microsoft")
    yield "dropout", case("Dropout", ["x:2x3", "f:0.5", "b:1"], nout=2)
    yield "dropout7", case("Dropout", ["x:2x3"], opset=7, ratio=0.5)
    yield "matmul", case("MatMul", ["x:2x3x4", "W:4x5"])
    yield "matmul1", case("MatMul", ["x:4", "W:4x5"])
    yield "gemm", case("Gemm", ["x:2x3", "W:4x3", "V:4"], transB=1, alpha=0.5)
    yield "einsum", case("Einsum", ["x:2x3x4", "W:5x4"], equation="bij,kj->bik")
    yield "softmax", case("Softmax", ["x:2x3x4"], axis=-1)
    yield "softmax11", case("Softmax", ["x:2x3x4"], opset=11, axis=1)
    yield "logsoftmax", case("LogSoftmax", ["x:2x3x4"], axis=1)
    yield (
        "layernorm",
        case("LayerNormalization", ["x:2x3x4", "W:4", "V:4"], nout=1, axis=-1, epsilon=1e-5),
    )
    yield "rmsnorm", case("RMSNormalization", ["x:2x3x4", "W:4"], opset=23, axis=-1)
    yield (
        "skipnorm",
        case(
            "SkipLayerNormalization", ["x:2x3x4", "x2:2x3x4", "W:4", "V:4"], domain="com.microsoft"
        ),
    )
    yield "instancenorm", case("InstanceNormalization", ["x:2x3x4x4", "W:3", "V:3"])
    yield (
        "groupnorm",
        case("GroupNormalization", ["x:2x4x4x4", "W:4", "V:4"], opset=21, num_groups=2),
    )
    yield (
        "batchnorm",
        case(
            "BatchNormalization", ["x:2x3x4x4", "W:3", "V:3", "M:3", "U:3"], nout=3, training_mode=1
        ),
    )
    yield "batchnorm-eval", case("BatchNormalization", ["x:2x3x4x4", "W:3", "V:3", "M:3", "U:3"])
    yield "conv", case("Conv", ["x:2x3x8x8", "W:4x3x3x3", "V:4"], pads=[1, 1, 1, 1], strides=[2, 2])
    yield (
        "conv-group",
        case("Conv", ["x:1x4x6x6", "W:4x1x3x3"], group=4, dilations=[2, 2], auto_pad="SAME_UPPER"),
    )
    yield "conv1d", case("Conv", ["x:2x3x9", "W:4x3x3"])
    yield (
        "convtranspose",
        case("ConvTranspose", ["x:1x3x4x4", "W:3x2x2x2"], strides=[2, 2], output_padding=[1, 1]),
    )
    yield (
        "maxpool",
        case(
            "MaxPool",
            ["x:1x2x7x7"],
            kernel_shape=[3, 3],
            strides=[2, 2],
            pads=[1, 1, 1, 1],
            ceil_mode=1,
        ),
    )
    yield (
        "avgpool",
        case(
            "AveragePool", ["x:1x2x7x7"], kernel_shape=[2, 2], strides=[2, 2], count_include_pad=1
        ),
    )
    yield "lppool", case("LpPool", ["x:1x2x6x6"], kernel_shape=[2, 2])
    yield "gap", case("GlobalAveragePool", ["x:2x3x4x4"])
    yield "gmp", case("GlobalMaxPool", ["x:2x3x4x4"])
    yield "lrn", case("LRN", ["x:1x5x3x3"], size=3)
    yield (
        "resize",
        case(
            "Resize",
            ["x:1x2x3x3", "", "", "i:[1,2,6,6]"],
            mode="linear",
            coordinate_transformation_mode="half_pixel",
        ),
    )
    yield (
        "upsample",
        case("Resize", ["x:1x2x3x3", "", "", "i:[1,2,5,7]"], mode="nearest", nearest_mode="floor"),
    )
    yield "pad", case("Pad", ["x:2x3", "i:[0,1,0,2]", "f:1.5"], mode="constant")
    yield "pad-reflect", case("Pad", ["x:2x5", "i:[0,2,0,3]"], mode="reflect")
    yield "depthtospace", case("DepthToSpace", ["x:1x8x2x3"], blocksize=2, mode="CRD")
    yield "spacetodepth", case("SpaceToDepth", ["x:1x2x4x6"], blocksize=2)
    yield "reshape", case("Reshape", ["x:2x3x4", "i:[0,-1]"])
    yield "reshape5", case("Reshape", ["x:2x3x4", "i:[4,6]"], allowzero=1)
    yield "flatten", case("Flatten", ["x:2x3x4"], axis=2)
    yield "squeeze", case("Squeeze", ["x:2x1x3", "i:[1]"])
    yield "unsqueeze", case("Unsqueeze", ["x:2x3", "i:[0,-1]"])
    yield "squeeze11", case("Squeeze", ["x:2x1x3"], opset=11, axes=[1])
    yield "transpose", case("Transpose", ["x:2x3x4"], perm=[2, 0, 1])
    yield "concat", case("Concat", ["x:2x3", "W:2x2"], axis=1)
    yield "split", case("Split", ["x:2x6", "i:[2,4]"], nout=2, axis=1)
    yield "split18", case("Split", ["x:2x7"], nout=3, opset=18, axis=1, num_outputs=3)
    yield "slice", case("Slice", ["x:4x6", "i1:[1,5]", "i2:[4,-7]", "i3:[0,1]", "i4:[2,-2]"])
    yield "slice9", case("Slice", ["x:4x6"], opset=9, starts=[1], ends=[3], axes=[1])
    yield "expand", case("Expand", ["x:3x1", "i:[2,1,4]"])
    yield "tile", case("Tile", ["x:2x3", "i:[2,2]"])
    yield "trilu", case("Trilu", ["x:3x4x5", "i:1"], upper=0)
    yield "gather", case("Gather", ["W:5x4", "n:2x3"], axis=0)
    yield "gatherelements", case("GatherElements", ["x:3x4", "n:3x2"], axis=1)
    yield "gathernd", case("GatherND", ["W:4x3x2", "n:2x2"])
    yield (
        "scatterelements",
        case("ScatterElements", ["x:3x4", "n:3x2", "W:3x2"], axis=1, reduction="add"),
    )
    yield "scatternd", case("ScatterND", ["W:4x3", "n:2x1", "x:2x3"])
    yield "onehot", case("OneHot", ["n:2x3", "i:5", "F:2"], axis=-1)
    yield "cumsum", case("CumSum", ["x:2x3", "i:1"], exclusive=1, reverse=1)
    yield "argmax", case("ArgMax", ["x:2x3"], axis=1, cast=True)
    yield "topk", case("TopK", ["x:2x5", "i:[2]"], nout=2)
    yield "hardmax", case("Hardmax", ["x:2x5"])
    yield "range", case("Range", ["i1:0", "i2:6", "i3:2"], cast=True)
    yield (
        "constantofshape",
        case("ConstantOfShape", ["i:[2,3]"], value=Tensor(tensor("", F32, [1], [2.0]))),
    )
    yield "eyelike", case("EyeLike", ["x:3x4"], k=1)
    yield "compress", case("Compress", ["x:4x3", "n:4"], axis=0)
    yield "reversesequence", case("ReverseSequence", ["x:4x2x3", "n:2"], time_axis=0, batch_axis=1)
    for op in (
        "ReduceSum",
        "ReduceMean",
        "ReduceMax",
        "ReduceMin",
        "ReduceProd",
        "ReduceL1",
        "ReduceL2",
        "ReduceSumSquare",
        "ReduceLogSum",
        "ReduceLogSumExp",
    ):
        yield op.lower(), case(op, ["x:2x3x4", "i:[1,-1]"], opset=18, keepdims=1)
        yield op.lower() + "-attr", case(op, ["x:2x3x4"], opset=11, axes=[0, 2], keepdims=0)
    yield (
        "sce",
        case(
            "SoftmaxCrossEntropyLoss", ["x:4x5", "n:4"], nout=2, ignore_index=-100, reduction="mean"
        ),
    )
    yield "sce-none", case("SoftmaxCrossEntropyLoss", ["x:2x5x3", "n:2x3", "W:5"], reduction="none")
    yield "nll", case("NegativeLogLikelihoodLoss", ["x:4x5", "n:4"], reduction="sum")
    yield (
        "attention",
        case("Attention", ["x:1x2x4x8", "x2:1x2x4x8", "x3:1x2x4x8"], opset=23, is_causal=1),
    )
    yield (
        "attention3",
        case(
            "Attention",
            ["x:1x4x16", "x2:1x6x8", "x3:1x6x8", "m:4x6"],
            opset=23,
            q_num_heads=4,
            kv_num_heads=2,
            softcap=2.0,
        ),
    )
    yield "rotary", case("RotaryEmbedding", ["x:1x2x4x8", "C:1x4x4", "S:1x4x4"], opset=23)
    for op, gates in (("RNN", 1), ("GRU", 3), ("LSTM", 4)):
        yield (
            op.lower(),
            case(
                op,
                ["x:3x2x4", f"W:1x{gates * 2}x4", f"R:1x{gates * 2}x2", f"B:1x{gates * 4}"],
                nout=2,
                hidden_size=2,
            ),
        )
        yield (
            op.lower() + "-two",
            case(
                op,
                ["x:3x2x4", f"W:2x{gates * 2}x4", f"R:2x{gates * 2}x2"],
                nout=2,
                hidden_size=2,
                direction="bidirectional",
            ),
        )
    yield "unknown", case("NoSuchOperator", ["x:2x3"])
    yield "loop", body_loop()
    yield "scan", body_scan()
    yield "if", body_if()
    yield "function", with_function()
    yield "sparse", sparse()
    yield "sequences", sequences()
    yield "shapes", shape_chain()
    yield "external", external()
    yield "dynamic", case("MatMul", ["x:batchxseqx4", "W:4x5"])
    yield "empty", b""
    yield "nothing", model(graph([]))


# ---- real models without their weights ----


def strip_tensor(raw):
    parts = list(fields(raw))
    data = [body for number, body, _ in parts if number == 9]
    if not data or len(data[0]) <= 64:
        return raw
    rest = b"".join(whole for number, _, whole in parts if number not in (9, 13, 14))
    return rest + field(14, 1) + field(13, field(1, "location") + field(2, "weights"))


def strip(raw):
    """The model with large initializers outside."""
    out = b""
    for number, body, whole in fields(raw):
        if number == 7:
            g = b"".join(
                field(5, strip_tensor(b)) if n == 5 else w
                for n, b, w in fields(body)
                if n not in (10, 13)
            )
            whole = field(7, g)
        out += whole
    return out


# ---- the other formats ----


def safetensors(header, data=b""):
    text = json.dumps(header).encode() if not isinstance(header, bytes) else header
    return struct.pack("<Q", len(text)) + text + data


def npy(descr, shape, data, version=1):
    text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    head = 10 if version == 1 else 12
    text += b" " * (-(head + len(text) + 1) % 64) + b"\n"
    return (
        b"\x93NUMPY"
        + bytes([version, 0])
        + struct.pack("<H" if version == 1 else "<I", len(text))
        + text
        + data
    )


def npz(method=zipfile.ZIP_STORED):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as z:
        z.writestr("x.npy", npy("<f4", "(2, 3)", bytes(24)))
        z.writestr("folder/ids.npy", npy("<i8", "(4,)", bytes(32)))
    return out.getvalue()


def array_seeds():
    one = {"w": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}}
    types = {
        f"t{i}": {"dtype": t, "shape": [2], "data_offsets": [0, 2 * n]}
        for i, (t, n) in enumerate(
            (("BF16", 2), ("F16", 2), ("F64", 8), ("I64", 8), ("I32", 4), ("U8", 1), ("BOOL", 1))
        )
    }
    yield (
        "one",
        safetensors(
            {"__metadata__": {"step": "3", "seed": "5"}, **one}, struct.pack("<6f", *values(6))
        ),
    )
    yield "types", safetensors(types, bytes(range(16)))
    yield (
        "scalar",
        safetensors(
            {
                "s": {"dtype": "F32", "shape": [], "data_offsets": [0, 4]},
                "e": {"dtype": "F32", "shape": [0, 5], "data_offsets": [4, 4]},
            },
            bytes(4),
        ),
    )
    yield (
        "escapes",
        safetensors(
            b'{"a\\u00e9\\n\\ud83d\\ude00":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"more":[{"x":[1,2,{}]},null,1e3]}}',
            bytes(4),
        ),
    )
    yield "cut", safetensors(one, bytes(20))
    yield (
        "overflow",
        safetensors(
            {"w": {"dtype": "F32", "shape": [1 << 62, 1 << 62], "data_offsets": [0, 24]}}, bytes(24)
        ),
    )
    yield "none", safetensors({})
    yield "npy1", npy("<f4", "(2, 3)", struct.pack("<6f", *values(6)))
    yield "npy2", npy("<i8", "(3,)", struct.pack("<3q", 1, -2, 3), 2)
    yield "npy0", npy("|u1", "()", b"\x07")
    yield "npybool", npy("|b1", "(4,)", b"\x00\x01\x01\x00")
    yield "npybad", npy(">f4", "(2,)", bytes(8))
    yield "npz", npz()
    yield "npzdeflated", npz(zipfile.ZIP_DEFLATED)
    yield "tokens", struct.pack("<256i", 20240520, 1, 4, *[0] * 253) + bytes(8)
    yield "raw", bytes(range(64))


def data_seeds():
    def chunk(kind, data):
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    def png(depth, color, rows, more=b""):
        head = chunk(b"IHDR", struct.pack(">IIBBBBB", 2, 2, depth, color, 0, 0, 0))
        return (
            b"\x89PNG\r\n\x1a\n"
            + head
            + more
            + chunk(b"IDAT", zlib.compress(rows))
            + chunk(b"IEND", b"")
        )

    yield "csv", b"x0,x1,label\n1,2.5,0\n-3,4e-2,1\n"
    yield "bare", b"1;2;3\r\n4;5;6\r\n"
    yield "quotes", b'\xef\xbb\xbf"a"\t b \tc\n"1"\t 2 \t3\n\n'
    yield "list", b"none.ppm 1\nother file.png 2\n"
    yield "ppm", b"P6\n# two\n2 2\n255\n" + bytes(range(12))
    yield "pgm", b"P5 2 2 255\n" + bytes(4)
    yield "rgb", png(8, 2, b"\0" + bytes(6) + b"\1" + bytes(6))
    yield "palette", png(4, 3, b"\0\1\2\3", chunk(b"PLTE", bytes(range(12))))
    yield "jpeg", base64.b64decode(JPEG)


def checkpoint_seeds():
    """For the model of tests/runtime: w f32[3,2], b f32[2] and their two moments, with whatever
    names it gives them."""

    def tensors(rows):
        at, header = 0, {}
        for name, shape in rows:
            n = 4 * product(shape)
            header[name] = {"dtype": "F32", "shape": list(shape), "data_offsets": [at, at + n]}
            at += n
        return header, struct.pack(f"<{at // 4}f", *values(at // 4))

    weights = [("w", (3, 2)), ("b", (2,)), ("count", (1,))]
    states = [(f"adamw.{k}.{n}", s) for n, s in weights[:2] for k in "mv"]
    for name, rows, meta in (
        ("weights", weights, {}),
        ("all", weights + states, {"step": "7", "seed": "5", "optimizer": "adamw"}),
        ("step", weights + states, {"step": "18446744073709551615", "seed": "0"}),
        ("lacking", weights[1:], {"step": "1", "seed": "1"}),
    ):
        header, data = tensors(rows)
        yield name, safetensors({"__metadata__": {"format": "ckc", **meta}, **header}, data)
    header, data = tensors(weights)
    header["w"]["shape"] = [2, 3]
    yield "shape", safetensors(header, data)


def tensor_seeds():
    yield "raw", tensor("c", I64, [2], [6, 4])
    yield "minus", tensor("c", I64, [2], [-1, 3])
    yield "typed", tensor("c", I64, [2], [2, 12], raw=False)
    yield "int32", tensor("c", I32, [2], [2, 12], raw=False)
    yield "float", tensor("c", F32, [2], [2.0, 12.0], raw=False)
    yield "large", tensor("c", I64, [1 << 40, 1 << 40], [1])
    yield "pieces", field(1, 2) + field(2, I64) + field(7, 6) + field(7, 4)
    yield (
        "external",
        field(1, 2)
        + field(2, I64)
        + field(14, 1)
        + field(13, field(1, "location") + field(2, "../x")),
    )
    yield "npy", npy("<i8", "(2,)", struct.pack("<2q", 8, 3))
    yield "npy32", npy("<i4", "(2,)", struct.pack("<2i", 8, 3))
    yield "npycut", npy("<i8", "(2,)", bytes(9))


def dag_seeds():
    def text(n, links, back=None):
        nodes = [
            {
                "id": i,
                "name": f"n{i}",
                "backward": back is not None and i >= back,
                "cost_ram": 8 * (1 + i % 3),
                "cost_cpu": 1 + i % 4,
            }
            for i in range(n)
        ]
        return json.dumps(
            {"nodes": nodes, "links": [{"source": a, "target": b} for a, b in links]}
        ).encode()

    chain = [(i, i + 1) for i in range(9)] + [(i, 9 - i) for i in range(5)]
    yield "chain", text(10, chain, 5)
    yield "wide", text(8, [(0, i) for i in range(1, 7)] + [(i, 7) for i in range(1, 7)])
    yield "long", text(30, [(i, i + 1) for i in range(29)] + [(i, 29 - i) for i in range(15)], 15)
    yield "one", text(1, [])
    yield (
        "more",
        b'{"version": [1, {"a": null}], "nodes": [{"id": 0, "cost_ram": 4, "cost_cpu": 1.5e0, "name": "\\u00e9\\"\\\\"}], "links": []}',
    )
    yield "back", text(3, [(2, 1), (1, 1)])
    yield (
        "large",
        b'{"nodes": [{"id": 0, "cost_ram": 9223372036854775807, "cost_cpu": 1e300}, {"id": 1, "cost_ram": 9223372036854775807, "cost_cpu": 1e300}], "links": [{"source": 0, "target": 1}]}',
    )
    yield "none", b'{"nodes": [], "links": []}'


def pack_seeds():
    head = "id,lower,upper,size\n"
    yield "some", (head + "a,0,3,10\nb,1,4,7\nc,3,6,12\nd,0,6,1\ne,2,5,8\n").encode()
    yield "crlf", (head + "a,0,3,10\nb,1,4,7\n").replace("\n", "\r\n").encode()
    yield "negative", (head + "a,-5,3,10\nb,1,1,7\nc,3,6,0\n").encode()
    yield (
        "large",
        (
            head + "a,-9223372036854775808,9223372036854775807,1\nb,0,1,4611686018427387903\n"
        ).encode(),
    )
    yield "twice", (head + "a,0,3,10\na,1,4,7\n").encode()
    yield (
        "many",
        (head + "".join(f"r{i},{i},{i + i % 7 + 1},{i * 13 % 31}\n" for i in range(60))).encode(),
    )
    yield "none", head.encode()


def device_seeds():
    whole = {
        "name": "a",
        "product_flops": 4e11,
        "product_flops16": 8e11,
        "vector_flops": 6e10,
        "bandwidth": 4e10,
        "launch_seconds": 1e-6,
        "memory_bytes": 1e9,
    }
    yield "whole", json.dumps(whole).encode()
    yield "least", b'{"name":"b","product_flops":1,"vector_flops":2e0,"bandwidth":0x1p3}'
    yield "zero", b'{"name":"b","product_flops":0,"vector_flops":2,"bandwidth":3}'
    yield "cut", b'{"name":"b","product_flops":1'
    ops = [
        {
            "index": i,
            "op": op,
            "phase": "forward",
            "onnx": ["n"],
            "seconds": 2e-3 * (i + 1),
            "least": 1e-3,
            "flops": 1e6 * (i % 3),
            "bytes": 1e5,
        }
        for i, op in enumerate(["matmul", "loop", "matmul", "softmax", "nosuch"])
    ]
    yield (
        "profile",
        json.dumps(
            {
                "format": "ckc-profile",
                "version": 1,
                "name": "measured",
                "steps": 3,
                "peak_flops": {"f32": 1e11},
                "bandwidth": 2e10,
                "ops": ops,
            }
        ).encode(),
    )
    yield (
        "scales",
        json.dumps(
            {**whole, "name": "s", "scale": {"matmul": 1.5, "nosuch": 2, "loop": 0}}
        ).encode(),
    )


CK_MARKS = b"""graph @g {
	props bound
	streams 2
	input %ids: i64[batch,12]
	param %w: f32[4,8] frozen onnx "wte"
	state %m: f32[4,8] param %w state m
	const %c: f32[3] = {0, -1.5, nan}
	const %h: u8[4] = hex "00ff7f01"
	const %s: i64[70] = splat 3
	%e = gather %w, %ids {axis=0} from "a/b" Gather, "c" Add
	%y: f32[?,12,8] output = loop %e, %e @recompute again %e [
		t0: f32 = add a0, a1
		t1: f32 = gelu t0 {tanh=1}
		give t1
	]
	loss %y
}
"""

CK_LAYOUT = b"""graph @g {
	input %x: f32[2,3] bytes 64
	const %i: i64[2] = {0, 1} bytes 64
	%y: f32[3,2] strides [1,3] in %x = transpose %x {perm=[1,0]}
	%z: f32[1,3] start 3 in %x = slice %x {start=[1,0], step=[1,1]}
	%a, _, %b = layernorm %z, %z {axis=0, eps=1e-05} @backward
	%p = part %x, %i {index=1, axis=0}
	%r = reshape %x, %i
	%t = pad %x, %i, _, %i
}
"""

CK_OPS = b"""graph @g {
	input %q: f32[2,4,6,8]
	input %k: f32[2,2,6,8]
	const %a: i64[2] = {1, 2}
	const %h: u8[4] = hex "00ff7f01"
	const %s: i64[70] = splat 3
	%o, %l = attention %q, %k, %k {causal=1, scale=0.5}
	%d = attention_grad %o, %q, %k, %k, %o, %l {packed=1}
	%s1 = slice %q, %a, %a, %a, %a
	%u = squeeze %q, %a
	%v = unsqueeze %q, %a
	%e = expand %q, %a
	%t = tile %a, %a
	%r = range %a, %a, %a
	%c = constant_of_shape %a {dt=i64}
	%f = reduce_sum %q, %a {keepdims=0}
	%h1 = one_hot %a, %a, %a
	%g = gather_nd %q, %a {batch=0}
}
"""

CK_TRAIN = b"""graph @g {
	input %x: f32[batch=4,6]
	input %n: i64[batch=4]
	param %w: f32[6,5]
	param %b: f32[5]
	%h = matmul %x, %w from "a/b" MatMul
	%y = add %h, %b
	%z = gelu %y {tanh=1}
	%s = softmax %z {axis=-1}
	%m = mul %s, %z
	%l = reduce_sum %m {axes=[0,1], keepdims=0}
	loss %l
}
"""


def log_seeds():
    rows = [
        {"step": s, "loss": 2.5 / s, "lr": 1e-3, "seconds": 0.1 * s, "samples": 8, "norm": 1.0}
        for s in (1, 2, 3, 3, 7)
    ]
    rows[1]["valid_loss"], rows[2]["accuracy"], rows[3]["perplexity"] = 2.0, 0.5, 7.4
    lines = [json.dumps(r) for r in rows]
    yield "lines", "\n".join(lines).encode() + b"\n"
    yield "cut", "\n".join(lines).encode()[:-9]
    yield "odd", b'{"step": 1, "loss": NaN}\n{"step": 2, "loss": 1e999}\n{"loss": 1}\n[]\n\n'
    yield "csv", b'step,loss,lr,note\n1,2.5,0.1,a\n2,,0.1,"b,c"\n5,nan,0.1,\n'


def index_seeds():
    def config(**more):
        return json.dumps({"peft_type": "LORA", "r": 8, "lora_alpha": 16, **more}).encode()

    yield "index", b'{"metadata": {"total_size": 12}, "weight_map": {"w": "a", "b": "a"}}'
    yield "one", b'{"weight_map": {"b": "a"}}'
    yield "twice", b'{"weight_map": {"w": "a", "w": "a"}}'
    yield "elsewhere", b'{"weight_map": {"w": "../a", "b": "none"}}'
    yield "itself", b'{"weight_map": {"w": "index.json"}}'
    yield "lacking", b'{"weight_map": {"c": "a"}}'
    yield "config", config(target_modules=["q", "v"], use_rslora=True)
    yield "patterns", config(rank_pattern={"^.*\\.0\\.q$": 4, "w": 2}, alpha_pattern={"v": 1.5})
    yield "zero", config(r=0, lora_alpha=1e308)
    yield "dora", config(use_dora=True)


def parts_seeds():
    """Headers of the part beside the one that fuzz_parts.c has, and indices."""

    def head(cut, n=3, **more):
        w = {"dtype": "F32", "shape": [n], "data_offsets": [0, 4 * n]}
        b = {"dtype": "F32", "shape": [0], "data_offsets": [4 * n, 4 * n]}
        meta = {"ckc.cut.w": cut, "ckc.cut.b": "1;", **more}
        return json.dumps({"__metadata__": meta, "w": w, "b": b}).encode()

    yield "row", head("2,3; 3+3")
    yield "rows", head("2,3; 3+1, 4+1, 5+1")
    yield "steps", head("2,3; 3+1/1*3", step="1")
    yield "overlap", head("2,3; 2+3")
    yield "columns", head("2,3; 1+1/2*3")
    yield "huge", head("2,3; 3+1/1152921504606846975*3")
    yield (
        "index",
        json.dumps(
            {
                "format": "ckc parts 1",
                "save": 1,
                "step": 1,
                "parts": [{"bytes": 9, "header": "0" * 16, "data": "f" * 16}] * 2,
            }
        ).encode(),
    )


def ck_seeds(folder):
    yield "ops", CK_OPS
    yield "train", CK_TRAIN
    yield "marks", CK_MARKS
    yield "layout", CK_LAYOUT
    for path in sorted(glob.glob(os.path.join(folder, "*", "*.ck"))) if folder else ():
        name = os.path.basename(os.path.dirname(path)) + "-" + os.path.basename(path)[:-3]
        with open(path, "rb") as f:
            text = f.read()
        # a placement is believed until replay, which takes a false one for ckc's own fault
        if len(text) < 20000 and not name.startswith("replay-"):
            yield name, text


def main():
    p = argparse.ArgumentParser()
    p.add_argument("out")
    p.add_argument("--models")
    p.add_argument("--ck")
    o = p.parse_args()
    models = sorted(glob.glob(os.path.join(o.models, "*.onnx"))) if o.models else []
    stripped = []
    for path in models:
        with open(path, "rb") as f:
            stripped.append(("model-" + os.path.basename(path)[:-5], strip(f.read())))
    targets = {
        "onnx": list(onnx_seeds()) + stripped,
        "ck": ck_seeds(o.ck),
        "array": array_seeds(),
        "checkpoint": checkpoint_seeds(),
        "tensor": tensor_seeds(),
        "dag": dag_seeds(),
        "pack": pack_seeds(),
        "device": device_seeds(),
        "data": data_seeds(),
        "log": log_seeds(),
        "index": index_seeds(),
        "parts": parts_seeds(),
    }
    total = 0
    for target, seeds in targets.items():
        folder = os.path.join(o.out, target)
        os.makedirs(folder, exist_ok=True)
        for old in os.listdir(folder):
            os.unlink(os.path.join(folder, old))
        for name, data in seeds:
            with open(os.path.join(folder, name), "wb") as f:
                f.write(data)
            total += 1
    print(f"{total} seeds")


if __name__ == "__main__":
    main()
