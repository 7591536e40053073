#!/usr/bin/env python3
"""Rare forms of operators against formulas; inputs that nothing needs; names that occur twice.

op_forms.py CKC CKRUN
"""

import itertools
import os
import re
import struct
import sys

import numpy as np

import ck
import wire

sys.path.insert(0, os.path.join(ck.HERE, "..", "runtime"))
import files

FLOAT, INT64 = 1, 7


def model(nodes, held, inputs, outputs, opset):
    info = b"".join(
        wire.field(11, wire.value_info(k.encode(), *v) if v[1] is not None else shapeless(k, v[0]))
        for k, v in inputs.items()
    )
    info += b"".join(
        wire.field(12, wire.value_info(k.encode(), *v) if v[1] is not None else shapeless(k, v[0]))
        for k, v in outputs.items()
    )
    graph = b"".join(nodes) + wire.field(2, b"g") + b"".join(held) + info
    return (
        wire.field(1, 10)
        + wire.field(8, wire.field(1, b"") + wire.field(2, opset))
        + wire.field(7, graph)
    )


def shapeless(name, dtype):
    return wire.field(1, name) + wire.field(2, wire.field(1, wire.field(1, dtype)))


def node(op, inputs, outputs, attributes=b""):
    return wire.field(
        1,
        b"".join(wire.field(1, x) for x in inputs)
        + b"".join(wire.field(2, y) for y in outputs)
        + wire.field(4, op)
        + attributes,
    )


def ints(name, value):
    """An initializer of one number without axes."""
    return wire.field(
        5, wire.field(2, INT64) + wire.field(8, name) + wire.field(9, struct.pack("<q", value))
    )


def text(name, value):
    return wire.field(5, wire.field(1, name) + wire.field(4, value) + wire.field(20, 3))


def run(bench, what, data, given, *flags):
    """The outputs of one forward run, or None."""
    path, so, out = bench.path("m.onnx"), bench.path("m.so"), bench.path("out.st")
    with open(path, "wb") as f:
        f.write(data)
    files.st_write(bench.path("in.st"), given)
    if not bench.must(
        bench.ckc(path, "-o", so, "--quiet", "--forward-only", *flags), f"{what}: compile"
    ):
        return None
    done = bench.ckrun(
        so, "--inputs", bench.path("in.st"), "--steps", 1, "--outputs", out, "--quiet"
    )
    return files.st_read(out)[0] if bench.must(done, f"{what}: run") else None


def shifts(bench):
    """Signed numbers keep their sign, however far they go; the same folded and computed."""
    x, n = [-64, -1, 5, -(1 << 62), 7, -3], [3, 70, 1, 62, 64, 1]
    want = {
        "RIGHT": [a >> min(b, 63) for a, b in zip(x, n)],
        "LEFT": [
            (((a << b) + (1 << 63)) % (1 << 64)) - (1 << 63) if b < 64 else 0 for a, b in zip(x, n)
        ],
    }
    for way in want:
        nodes = [
            node("BitShift", ["x", "n"], ["y"], text("direction", way)),
            node("BitShift", ["c", "n"], ["z"], text("direction", way)),
        ]
        six = (INT64, [6])
        got = run(
            bench,
            way,
            model(
                nodes, [wire.ints("c", x), wire.ints("n", n)], {"x": six}, {"y": six, "z": six}, 28
            ),
            {"x": ("I64", [6], x)},
        )
        for name in "yz" if got else "":
            bench.check(
                got[name][2] == want[way], f"{way} {name}: {got[name][2]}, expected {want[way]}"
            )


def scores(bench):
    """Output 3 of Attention: before the softcap (mode 0) or after it (mode 1)."""
    rng = np.random.default_rng(2)
    q, k, v = (rng.standard_normal((1, 1, 3, 4)).astype("f4") for _ in range(3))
    raw = q[0, 0] @ k[0, 0].T / 2
    for mode, want in ((0, raw), (1, 0.5 * np.tanh(raw / 0.5))):
        cap = wire.field(5, wire.field(1, b"softcap") + wire.field(2, 0.5) + wire.field(20, 1))
        nodes = [
            node(
                "Attention",
                "qkv",
                ["y", "", "", "s"],
                cap + wire.attribute(b"qk_matmul_output_mode", mode),
            )
        ]
        four, three = (FLOAT, [1, 1, 3, 4]), (FLOAT, [1, 1, 3, 3])
        got = run(
            bench,
            f"mode {mode}",
            model(nodes, [], dict.fromkeys("qkv", four), {"y": four, "s": three}, 23),
            {name: ("F32", [1, 1, 3, 4], a.ravel().tolist()) for name, a in zip("qkv", (q, k, v))},
        )
        if got:
            bench.check(
                np.allclose(np.array(got["s"][2]).reshape(3, 3), want, atol=1e-5),
                f"mode {mode}: {got['s'][2]}, expected {want.ravel()}",
            )


def corners(bench):
    """Aligned corners: the ends lie on the ends, also where a scale is given that makes no whole
    extent."""
    rng = np.random.default_rng(3)
    for n, scale in ((6, 0.6), (5, 1.3), (6, 0.5), (5, 2.0), (5, 0.3)):
        x, to = rng.standard_normal(n).astype("f4"), int(n * scale)
        nodes = [
            node(
                "Resize",
                ["x", "", "s"],
                ["y"],
                text("mode", "linear") + text("coordinate_transformation_mode", "align_corners"),
            )
        ]
        got = run(
            bench,
            f"corners {n} {scale}",
            model(
                nodes,
                [wire.floats("s", [3], [1, 1, scale])],
                {"x": (FLOAT, [1, 1, n])},
                {"y": (FLOAT, [1, 1, to])},
                13,
            ),
            {"x": ("F32", [1, 1, n], x.tolist())},
        )
        want = np.interp(np.linspace(0, n - 1, to), np.arange(n), x)
        if got:
            bench.check(
                np.allclose(got["y"][2], want, atol=1e-5),
                f"{n} by {scale}: {got['y'][2]}, expected {want}",
            )


def decimals(bench):
    """Scales that floats hold not quite: extents are whole that are so by the decimal number, and
    an element that lies on a whole position is that one, whichever way others are rounded."""
    sizes = [(10, 0.7, 7), (20, 2.6, 52), (5, 1.4, 7), (100, 0.29, 29), (6, 0.99, 5)]
    nodes = [
        node("Resize", [f"x{i}", "", f"s{i}"], [f"y{i}"], text("mode", "linear"))
        for i in range(len(sizes))
    ]
    got = run(
        bench,
        "extents",
        model(
            nodes,
            [wire.floats(f"s{i}", [2], [1, s]) for i, (_, s, _) in enumerate(sizes)],
            {f"x{i}": (FLOAT, [1, n]) for i, (n, _, _) in enumerate(sizes)},
            {f"y{i}": (FLOAT, [1, m]) for i, (_, _, m) in enumerate(sizes)},
            13,
        ),
        {f"x{i}": ("F32", [1, n], [1] * n) for i, (n, _, _) in enumerate(sizes)},
    )
    for i, (n, s, m) in enumerate(sizes if got else ()):
        bench.check(got[f"y{i}"][1] == [1, m], f"{n} by {s}: {got[f'y{i}'][1]}, expected {m}")
    x = np.arange(1, 21, dtype="f4")
    for scale, way, want in (
        (0.6, "floor", [int(np.floor((2 * o + 1) * 5 / 6 - 0.5 + 1e-9)) for o in range(12)]),
        (2.6, "ceil", [int(np.ceil((2 * o + 1) * 5 / 26 - 0.5 - 1e-9)) for o in range(52)]),
    ):
        nodes = [
            node(
                "Resize", ["x", "", "s"], ["y"], text("mode", "nearest") + text("nearest_mode", way)
            )
        ]
        data = model(
            nodes,
            [wire.floats("s", [3], [1, 1, scale])],
            {"x": (FLOAT, [1, 1, 20])},
            {"y": (FLOAT, [1, 1, len(want)])},
            13,
        )
        got = run(bench, f"nearest by {scale}", data, {"x": ("F32", [1, 1, 20], x.tolist())})
        if got:
            bench.check(
                got["y"][2] == x[np.clip(want, 0, 19)].tolist(),
                f"nearest by {scale}, {way}: {got['y'][2]}, expected {x[np.clip(want, 0, 19)]}",
            )


def lowest(bench):
    """The least of integers, whose negatives overflow; whole numbers to powers that are none; an
    acosh whose square would overflow."""
    cases = {
        "u": ("U8", 2, [3, 0, 2]),
        "i": ("I32", 6, [-(2**31), 5, 7]),
        "b": ("I32", 6, [4, 9, 2]),
        "w": ("I64", INT64, [16777217, 3, -5]),
        "c": ("F32", 1, [1e20, 2, 1]),
    }
    nodes = [node("ArgMin", [k], ["y" + k], wire.attribute(b"keepdims", 0)) for k in "ui"] + [
        node("Pow", ["b", "half"], ["yb"]),
        node("Pow", ["w", "one"], ["yw"]),
        node("Acosh", ["c"], ["yc"]),
    ]
    want = {
        "yu": [1],
        "yi": [0],
        "yb": [2, 3, 1],
        "yw": cases["w"][2],
        "yc": np.arccosh(np.float64(cases["c"][2])).tolist(),
    }
    outputs = {
        "yu": (INT64, []),
        "yi": (INT64, []),
        "yb": (6, [3]),
        "yw": (INT64, [3]),
        "yc": (FLOAT, [3]),
    }
    got = run(
        bench,
        "lowest",
        model(
            nodes,
            [wire.floats("half", [], [0.5]), wire.floats("one", [], [1])],
            {k: (v[1], [3]) for k, v in cases.items()},
            outputs,
            15,
        ),
        {k: (v[0], [3], v[2]) for k, v in cases.items()},
    )
    for name, y in want.items() if got else ():
        bench.check(
            np.allclose(got[name][2], y, 0 if name == "yw" else 1e-5),
            f"lowest: {name} is {got[name][2]}, expected {y}",
        )


def needless(bench):
    """An input that only says a type may be given a shape."""
    nodes = [node("CastLike", ["x", "like"], ["y"]), node("Neg", ["y"], ["z"])]
    path = bench.path("like.onnx")
    with open(path, "wb") as f:
        f.write(
            model(nodes, [], {"x": (FLOAT, [2]), "like": (FLOAT, None)}, {"z": (FLOAT, [2])}, 19)
        )
    bench.must(
        bench.ckc(
            path, "-o", bench.path("like.so"), "--quiet", "--forward-only", "--shape", "like=3x4"
        ),
        "--shape like=3x4",
    )


def twice(bench):
    """Two arrays of one name in a file of weights."""
    so = bench.path("like.so")
    part = '"%s":{"dtype":"F32","shape":[2],"data_offsets":[%d,%d]}'
    head = ("{" + ",".join((part % ("x", 0, 8), part % ("\\u0078", 8, 16))) + "}").encode()
    with open(bench.path("twice.st"), "wb") as f:
        f.write(struct.pack("<Q", len(head)) + head + struct.pack("<4f", 1, 2, 3, 4))
    done = bench.ckrun(so, "--inputs", bench.path("twice.st"), "--steps", 1)
    bench.check(
        done.returncode == 1 and "two arrays are called 'x'" in done.stderr,
        f"twice: {done.returncode} {done.stderr}",
    )


def statistics(bench):
    """Running statistics as outputs: of one batch, in training and without; without, they stay, and
    so does the next step's."""
    rng = np.random.default_rng(4)
    x, given = (
        rng.standard_normal((5, 3, 2)).astype("f4"),
        {"bn.mean": [0.5, -1, 2], "bn.var": [1, 2, 0.5]},
    )
    ones = [wire.floats(name, [3], [1, 1, 1]) for name in ("bn.weight", "bn.bias")]
    path, so, out, save = (bench.path(name) for name in ("bn.onnx", "bn.so", "bn.out", "bn.st"))
    attributes = wire.attribute(b"training_mode", 1) + wire.attribute(b"momentum", 0.75)
    nodes = [
        node(
            "BatchNormalization",
            ["x", "bn.weight", "bn.bias", *given],
            ["y", "mean", "var"],
            attributes,
        ),
        node("Mul", ["mean", "two"], ["twice"]),
        node("ReduceMean", ["y"], ["loss"], wire.attribute(b"keepdims", 0)),
    ]
    with open(path, "wb") as f:
        f.write(
            model(
                nodes,
                ones
                + [wire.floats(k, [3], v) for k, v in given.items()]
                + [wire.floats("two", [], [2])],
                {"x": (FLOAT, [5, 3, 2])},
                {"loss": (FLOAT, []), **{k: (FLOAT, [3]) for k in ("mean", "var", "twice")}},
                17,
            )
        )
    files.st_write(bench.path("in.st"), {"x": ("F32", [5, 3, 2], x.ravel().tolist())})
    want = {
        k: 0.75 * np.array(given["bn." + k]) + 0.25 * v
        for k, v in (("mean", x.mean((0, 2))), ("var", x.var((0, 2))))
    }
    want["twice"] = 2 * want["mean"]
    for what, flags, steps in (
        ("training", [], 1),
        ("forward only", ["--forward-only"], 1),
        ("two steps forward", ["--forward-only"], 2),
    ):
        if not bench.must(
            bench.ckc(path, "-o", so, "--quiet", "--output", "*", *flags),
            f"statistics, {what}: compile",
        ):
            continue
        bench.must(
            bench.ckrun(
                so,
                "--inputs",
                bench.path("in.st"),
                "--steps",
                steps,
                "--outputs",
                out,
                "--save",
                save,
                "--quiet",
            ),
            f"statistics, {what}: run",
        )
        got, after = files.st_read(out)[0], files.st_read(save)[0]
        for name in want:
            bench.check(
                np.allclose(got[name][2], want[name], atol=1e-5),
                f"{what}: {name} {got[name][2]}, expected {want[name]}",
            )
        for name in "mean", "var":
            held = after["bn." + name][2] if "bn." + name in after else given["bn." + name]
            bench.check(
                np.allclose(held, given["bn." + name] if flags else want[name], atol=1e-5),
                f"{what}: {name} is held as {held}",
            )


def everything(bench):
    """--train '*' trains what a gradient reaches: a ratio of dropout stays a number; to name it
    alone does nothing, and that is said."""
    path, report = bench.path("ratio.onnx"), bench.path("ratio.json")
    true = wire.field(5, wire.field(2, 9) + wire.field(8, b"t") + wire.field(9, b"\1"))
    nodes = [
        node("Mul", ["x", "w"], ["a"]),
        node("Dropout", ["a", "r", "t"], ["d"]),
        node("ReduceMean", ["d"], ["loss"], wire.attribute(b"keepdims", 0)),
    ]
    with open(path, "wb") as f:
        f.write(
            model(
                nodes,
                [wire.floats("w", [2], [1, 2]), wire.floats("r", [], [0.5]), true],
                {"x": (FLOAT, [2])},
                {"loss": (FLOAT, [])},
                17,
            )
        )
    for flags, trained in (["--train", "*"], ["w"]), (["--train", "r", "--train", "w"], ["w"]):
        done = bench.ckc(path, "--plan-only", "--json", report, *flags)
        if bench.must(done, f"a ratio, {flags}"):
            found = [
                t["name"]
                for t in ck.plan(report)["tensors"]
                if t["kind"] == "param" and "." not in t["name"]
            ]
            bench.check(found == trained, f"{flags}: {found} trained")
            bench.check(
                ("--train 'r' does nothing" in done.stderr) == ("r" in flags),
                f"{flags}: {done.stderr}",
            )


def unmoved(bench):
    """Axes that keep their extent are not resampled, also where tf_half_pixel_for_nn read literally
    would move them by half an element; as ONNX Runtime."""
    x = np.arange(8, dtype="f4").reshape(2, 2, 2)
    at = np.clip((np.arange(4) + 0.5) / 2, 0, 1)
    words = text("mode", "linear") + text("coordinate_transformation_mode", "tf_half_pixel_for_nn")
    data = model(
        [node("Resize", ["x", "", "s"], ["y"], words)],
        [wire.floats("s", [3], [1, 1, 2])],
        {"x": (FLOAT, [2, 2, 2])},
        {"y": (FLOAT, [2, 2, 4])},
        11,
    )
    got = run(bench, "a half pixel further", data, {"x": ("F32", [2, 2, 2], x.ravel().tolist())})
    if got:
        want = x[..., :1] * (1 - at) + x[..., 1:] * at
        bench.check(
            np.allclose(np.array(got["y"][2]).reshape(want.shape), want),
            f"a half pixel further: {got['y'][2]}, expected {want.ravel()}",
        )


def constant_output(bench):
    """An output that is constant is written like the others when the model trains."""
    path, so, out = bench.path("same.onnx"), bench.path("same.so"), bench.path("same.st")
    nodes = [
        node("Mul", ["x", "m.w"], ["a"]),
        node("ReduceSum", ["a"], ["loss"], wire.attribute(b"keepdims", 0)),
        node("Add", ["c", "c"], ["y"]),
    ]
    with open(path, "wb") as f:
        f.write(
            model(
                nodes,
                [wire.floats("m.w", [2], [1, 2]), wire.floats("c", [2], [3, 4])],
                {"x": (FLOAT, [2])},
                {"loss": (FLOAT, []), "y": (FLOAT, [2])},
                17,
            )
        )
    files.st_write(bench.path("in.st"), {"x": ("F32", [2], [1, 1])})
    bench.must(
        bench.ckc(path, "-o", so, "--quiet", "--loss", "loss", "--output", "y"),
        "a constant output: compile",
    )
    if bench.must(
        bench.ckrun(so, "--inputs", bench.path("in.st"), "--steps", 1, "--outputs", out, "--quiet"),
        "a constant output: run",
    ):
        got = files.st_read(out)[0]
        bench.check(
            got["loss"][2] == [3] and "y" in got and got["y"][2] == [6, 8],
            f"a constant output: {got}",
        )


def shared_statistics(bench):
    """A BatchNormalization that is applied twice updates its statistics twice; dynamo names those
    of the second call after a result of the first."""
    path, so, save = bench.path("twice.onnx"), bench.path("twice.so"), bench.path("twice.st")
    x = np.random.default_rng(4).standard_normal((5, 2)).astype("f4")
    held = {"b.weight": [1, 1], "b.bias": [0, 0], "b.running_mean": [0, 0], "b.running_var": [1, 1]}
    nodes = [
        node("Identity", ["b.running_mean"], ["getitem_3"]),
        node("Identity", ["b.running_var"], ["getitem_4"]),
        node("Add", ["x", "x"], ["x2"]),
        node("BatchNormalization", ["x", *held], ["y1"]),
        node("BatchNormalization", ["x2", "b.weight", "b.bias", "getitem_3", "getitem_4"], ["y2"]),
        node("Mul", ["y1", "y2"], ["y"]),
        node("ReduceSum", ["y"], ["loss"], wire.attribute(b"keepdims", 0)),
    ]
    with open(path, "wb") as f:
        f.write(
            model(
                nodes,
                [wire.floats(k, [2], v) for k, v in held.items()],
                {"x": (FLOAT, [5, 2])},
                {"loss": (FLOAT, [])},
                15,
            )
        )
    files.st_write(bench.path("in.st"), {"x": ("F32", [5, 2], x.ravel().tolist())})
    bench.must(
        bench.ckc(path, "-o", so, "--quiet", "--loss", "loss", "--batchnorm", "batch"),
        "two applications: compile",
    )
    if bench.must(
        bench.ckrun(
            so, "--inputs", bench.path("in.st"), "--steps", 1, "--lr", 0, "--quiet", "--save", save
        ),
        "two applications: run",
    ):
        got, mean, var = files.st_read(save)[0], np.zeros(2), np.ones(2)
        for y in x.astype("f8"), 2 * x.astype("f8"):
            mean, var = 0.9 * mean + 0.1 * y.mean(0), 0.9 * var + 0.1 * y.var(0, ddof=1)
        for name, want in ("mean", mean), ("var", var):
            have = got[f"b.running_{name}"][2]
            bench.check(
                np.allclose(have, want, atol=1e-6),
                f"two applications: {name} {have}, expected {want}",
            )


def computed_statistics(bench):
    """Running statistics that the graph computes, as InstanceNorm's, are not updated: a warning."""
    path, so = bench.path("instance.onnx"), bench.path("instance.so")
    nodes = [
        node("Concat", ["mean", "mean"], ["means"], wire.attribute(b"axis", 0)),
        node("Concat", ["var", "var"], ["vars"], wire.attribute(b"axis", 0)),
        node("BatchNormalization", ["x", "b.weight", "b.bias", "means", "vars"], ["y"]),
        node("ReduceSum", ["y"], ["loss"], wire.attribute(b"keepdims", 0)),
    ]
    held = {"b.weight": [1] * 4, "b.bias": [0] * 4, "mean": [0, 1], "var": [1, 1]}
    with open(path, "wb") as f:
        f.write(
            model(
                nodes,
                [wire.floats(k, [len(v)], v) for k, v in held.items()],
                {"x": (FLOAT, [3, 4])},
                {"loss": (FLOAT, [])},
                15,
            )
        )
    done = bench.ckc(path, "-o", so, "--loss", "loss", "--batchnorm", "batch")
    bench.check(
        "1 node uses batch statistics (the first is '" in done.stderr
        and "they are not updated" in done.stderr
        and "update the running" not in done.stderr,
        f"computed statistics: {done.stderr}",
    )


def state(bench):
    """What the module does in forward, or only in training, and the file cannot say, is a
    warning."""
    path, so = bench.path("state.onnx"), bench.path("state.so")
    signature = "c: BUFFER target='centre' persistent=True\nw: PARAMETER target='m.w'\n\n# outputs\nadd: BUFFER_MUTATION target='centre'\nl: USER_OUTPUT\n"
    entry = wire.field(
        14,
        wire.field(1, "pkg.torch.export.ExportedProgram.graph_signature")
        + wire.field(2, signature),
    )
    centred = [
        node("Sub", ["x", "centre"], ["z"]),
        node("Mul", ["z", "m.w"], ["y"]),
        node("ReduceSum", ["y"], ["loss"], wire.attribute(b"keepdims", 0)),
    ]
    drawn = [node("Bernoulli", ["half"], ["keep"]), node("Mul", ["x", "keep"], ["z"]), *centred[1:]]
    norm = [
        node(
            "BatchNormalization",
            ["x2", *"abcd"],
            ["n", "e", "f"],
            wire.attribute(b"training_mode", 1)
            + wire.field(5, wire.field(1, "momentum") + wire.field(2, 0.0) + wire.field(20, 1)),
        ),
        node("Mul", ["n", "m.w"], ["y"]),
        centred[2],
    ]
    held = [
        wire.floats("m.w", [2], [1, 2]),
        wire.floats("centre", [2], [3, 4]),
        wire.floats("half", [2], [0.5, 0.5]),
        *(wire.floats(k, [2], [1, 1]) for k in "abcd"),
    ]
    for nodes, more, told in (
        (centred, entry, "'centre': the module's forward updates this buffer"),
        (drawn, b"", "evaluation draws random numbers in 1 op,"),
        (norm, b"", "momentum 0: each step replaces the running statistics"),
        (centred, b"", None),
    ):
        with open(path, "wb") as f:
            f.write(
                model(
                    nodes,
                    held,
                    {"x": (FLOAT, [2])} if nodes is not norm else {"x2": (FLOAT, [3, 2])},
                    {"loss": (FLOAT, [])},
                    15,
                )
                + more
            )
        done = bench.ckc(path, "-o", so, "--loss", "loss")
        if bench.must(done, f"{told}: compile"):
            words = ("updates this buffer", "draws random numbers", "momentum 0")
            bench.check(
                told in done.stderr if told else not any(w in done.stderr for w in words),
                f"{told}: {done.stderr}",
            )


def merged(bench):
    """A weight without a name that two modules read may have been two; one that a module reads
    twice is one."""
    path, named = bench.path("merged.onnx"), lambda name: wire.field(3, name)
    for second, told in ("/b/MatMul", True), ("/a_1/MatMul", False):
        nodes = [
            node("MatMul", ["x", "onnx::MatMul_1"], ["y"], named("/a/MatMul")),
            node("MatMul", ["y", "onnx::MatMul_1"], ["z"], named(second)),
            node("ReduceSum", ["z"], ["loss"], wire.attribute(b"keepdims", 0)),
        ]
        held = [wire.floats("onnx::MatMul_1", [2, 2], [1, 2, 3, 4])]
        with open(path, "wb") as f:
            f.write(model(nodes, held, {"x": (FLOAT, [3, 2])}, {"loss": (FLOAT, [])}, 15))
        done = bench.ckc(path, "--plan-only")
        bench.must(done, f"a weight of /a and {second}: compile")
        bench.check(
            ("several modules read 'onnx::MatMul_1'" in done.stderr) == told,
            f"a weight of /a and {second}: {done.stderr}",
        )


def folded_number(bench):
    """A number that TorchScript folded may have been a parameter; one that it wrote down is not."""
    path = bench.path("folded.onnx")
    for name, told in ("onnx::Mul_3", True), ("val_3", False):
        nodes = [
            node("Mul", ["x", "m.w"], ["y"]),
            node("Mul", ["y", name], ["z"]),
            node("ReduceSum", ["z"], ["loss"], wire.attribute(b"keepdims", 0)),
        ]
        held = [wire.floats("m.w", [2], [1, 2]), wire.floats(name, [], [0.5])]
        with open(path, "wb") as f:
            f.write(model(nodes, held, {"x": (FLOAT, [2])}, {"loss": (FLOAT, [])}, 15))
        done = bench.ckc(path, "--plan-only")
        bench.must(done, f"the number {name}: compile")
        bench.check(
            (f"'{name}' would get a gradient" in done.stderr) == told, f"{name}: {done.stderr}"
        )


def left_out(bench):
    """A checkpoint holds what steps use, the exported model every parameter; --param makes a weight
    of one without a gradient."""
    path, so, out, save = (
        bench.path(name) for name in ("out.onnx", "out.so", "again.onnx", "out.st")
    )
    nodes = [
        node("Mul", ["x", "m.w"], ["a"]),
        node("Floor", ["m.f"], ["f"]),
        node("Add", ["a", "f"], ["b"]),
        node("ReduceMean", ["b"], ["loss"], wire.attribute(b"keepdims", 0)),
    ]
    held = {"m.w": [1, 2], "m.f": [1.5, 2.5], "m.v": [7, 9]}
    with open(path, "wb") as f:
        f.write(
            model(
                nodes,
                [wire.floats(k, [2], v) for k, v in held.items()],
                {"x": (FLOAT, [2])},
                {"loss": (FLOAT, [])},
                17,
            )
        )
    files.st_write(bench.path("in.st"), {"x": ("F32", [2], [1, 1])})
    for flags, kept in ([], {"m.w"}), (["--param", "m.f"], {"m.w", "m.f"}):
        done = bench.ckc(path, "-o", so, *flags)
        bench.must(done, f"left out, {flags}: compile")
        bench.check(
            "checkpoints leave" in done.stderr and "--export-onnx" in done.stderr,
            f"left out, {flags}: {done.stderr}",
        )
        bench.must(
            bench.ckrun(
                so,
                "--inputs",
                bench.path("in.st"),
                "--steps",
                1,
                "--lr",
                0,
                "--save",
                save,
                "--export-onnx",
                out,
            ),
            f"left out, {flags}: run",
        )
        bench.check(
            set(held) & set(files.st_read(save)[0]) == kept,
            f"{flags}: the checkpoint holds {list(files.st_read(save)[0])}",
        )
        bench.must(
            bench.ckc(out, "-o", so, "--quiet", "--forward-only", "--output", "loss"),
            f"left out, {flags}: the export",
        )
        raw = ck.content(out)
        for name, values in held.items():
            bench.check(
                name.encode() in raw and struct.pack("<2f", *values) in raw,
                f"{flags}: the export lacks {name}",
            )


def dots(bench):
    """Dims of 1 broadcast, also of operands that are computed, and where an ellipsis lacks them."""
    rng = np.random.default_rng(6)
    for equation, *shapes in (
        ("...ij,...jk->...ik", [1, 3, 2, 4], [5, 1, 4, 2]),
        ("...ij,...jk->...ik", [5, 3, 2, 4], [5, 3, 4, 2]),
        ("...i,...i", [3, 1, 4], [2, 4]),
        ("...i,i...,...->i...", [2, 1, 3], [3, 2, 5], [5]),
        ("ij,ij->ij", [3, 4], [3, 1]),
        ("ij,ij->i", [3, 1], [1, 4]),
        ("bij,bjk->bik", [1, 3, 4], [2, 4, 5]),
        ("bij,bjk->ik", [2, 3, 1], [1, 4, 5]),
        ("i,i,i->i", [1], [1], [4]),
        ("i,i->", [1], [1]),
    ):
        given = {f"x{i}": rng.standard_normal(shape).astype("f4") for i, shape in enumerate(shapes)}
        want = np.einsum(equation, *given.values())
        data = model(
            [node("Neg", [k], ["m" + k]) for k in given]
            + [node("Neg", ["m" + k], ["n" + k]) for k in given]
            + [node("Einsum", list(given), ["y"], text("equation", equation))]
            + [node("Einsum", ["n" + k for k in given], ["z"], text("equation", equation))],
            [],
            {k: (FLOAT, list(v.shape)) for k, v in given.items()},
            dict.fromkeys("yz", (FLOAT, list(want.shape))),
            17,
        )
        got = run(
            bench,
            equation,
            data,
            {k: ("F32", list(v.shape), v.ravel().tolist()) for k, v in given.items()},
        )
        for name in "yz" if got else "":
            bench.check(
                np.allclose(np.array(got[name][2]).reshape(want.shape), want, atol=1e-5),
                f"{equation} of {shapes}: {name} {got[name][2]}, expected {want}",
            )


def heads(bench):
    """Heads are in dim 1 of rank 4, side by side in rank 3, also of operands that are computed."""
    rng = np.random.default_rng(8)
    given = {k: rng.standard_normal((2, 3, 4, 6)).astype("f4") for k in "qkv"}
    turn = {
        "q": given["q"],
        "c": rng.standard_normal((2, 4, 3)).astype("f4"),
        "s": rng.standard_normal((2, 4, 3)).astype("f4"),
    }
    score = np.einsum("bhqd,bhkd->bhqk", given["q"], given["k"]) / 6**0.5
    share = np.exp(score - score.max(-1, keepdims=True))
    c, s, x1, x2 = turn["c"][:, None], turn["s"][:, None], given["q"][..., :3], given["q"][..., 3:]
    wanted = {
        "Attention": (
            given,
            np.einsum("bhqk,bhkd->bhqd", share / share.sum(-1, keepdims=True), given["v"]),
            ["q_num_heads", "kv_num_heads"],
        ),
        "RotaryEmbedding": (
            turn,
            np.concatenate([x1 * c - x2 * s, x1 * s + x2 * c], -1),
            ["num_heads"],
        ),
    }
    merge = lambda v: v.transpose(0, 2, 1, 3).reshape(2, 4, 18)
    for (op, (inputs, want, names)), rank, computed in itertools.product(
        wanted.items(), (3, 4), (False, True)
    ):
        shape = lambda k, v: merge(v) if rank == 3 and k not in "cs" else v
        inputs = {k: shape(k, v) for k, v in inputs.items()}
        want = merge(want) if rank == 3 else want
        heads_of = b"".join(wire.attribute(n.encode(), 3) for n in names)
        first = ["q2" if computed and k == "q" else k for k in inputs]
        data = model(
            [
                node("Neg", ["q"], ["q1"]),
                node("Neg", ["q1"], ["q2"]),
                node(op, first, ["y"], heads_of),
            ],
            [],
            {k: (FLOAT, list(v.shape)) for k, v in inputs.items()},
            {"y": (FLOAT, list(want.shape))},
            23,
        )
        got = run(
            bench,
            op,
            data,
            {k: ("F32", list(v.shape), v.ravel().tolist()) for k, v in inputs.items()},
        )
        if got:
            bench.check(
                np.allclose(np.array(got["y"][2]).reshape(want.shape), want, atol=1e-5),
                f"{op} of rank {rank}, computed {computed}: {got['y'][2][:6]}",
            )


def not_exportable(bench):
    """A parameter that is stored sparse has no place in the file: said by ckc, and refused before
    the first step."""
    path, so, save = bench.path("sparse.onnx"), bench.path("sparse.so"), bench.path("sparse.st")
    values = next(wire.fields(wire.floats("p.weight", [2], [1, 2])))[1]
    at = wire.field(1, 2) + wire.field(2, INT64) + wire.field(9, struct.pack("<2q", 0, 2))
    held = wire.field(15, wire.field(1, values) + wire.field(2, at) + wire.field(3, 3))
    nodes = [
        node("Mul", ["x", "p.weight"], ["y"]),
        node("ReduceSum", ["y"], ["loss"], wire.attribute(b"keepdims", 0)),
    ]
    with open(path, "wb") as f:
        f.write(model(nodes, [held], {"x": (FLOAT, [3])}, {"loss": (FLOAT, [])}, 17))
    files.st_write(bench.path("in.st"), {"x": ("F32", [3], [1, 1, 1])})
    done = bench.ckc(path, "-o", so)
    told = "--export-onnx cannot write this model: a parameter lies in a subgraph or is stored"
    bench.check(bench.must(done, "sparse: compile") and told in done.stderr, done.stderr)
    run = (so, "--inputs", bench.path("in.st"), "--steps", 1, "--save", save)
    done = bench.ckrun(*run, "--export-onnx", bench.path("out.onnx"))
    bench.check(
        done.returncode == 1 and "does not contain" in done.stderr and not os.path.exists(save),
        f"sparse: {done.returncode} {done.stderr}",
    )
    bench.must(bench.ckrun(*run), "sparse: without the export")
    bench.check(os.path.exists(save), "sparse: no checkpoint")


def spelt(name, *values):
    """A Constant in the attribute that the values ask for: a number, a list, a list with zeros left
    out."""
    v = values[0]
    if name == "sparse_value":
        part = lambda data: (
            wire.field(1, len(data))
            + wire.field(2, INT64)
            + wire.field(9, struct.pack(f"<{len(data)}q", *data))
        )
        at = [i for i, x in enumerate(v) if x]
        inner = (
            wire.field(1, part([v[i] for i in at]))
            + wire.field(2, part(at))
            + wire.field(3, len(v))
        )
        return wire.field(5, wire.field(1, name) + wire.field(22, inner) + wire.field(20, 11))
    if name == "value_floats":
        return wire.field(
            5,
            wire.field(1, name) + b"".join(wire.field(7, float(x)) for x in v) + wire.field(20, 6),
        )
    return wire.attribute(name.encode(), v)


def training_form(bench):
    """An exported model keeps its form; ckrun says so where that is the one for training."""
    path, so, out = (bench.path("form" + end) for end in (".onnx", ".so", ".out.onnx"))
    held = [wire.floats(k, [2], [1, 1]) for k in "abcd"] + [wire.floats("half", [], [0.5])]
    true = wire.field(5, wire.field(2, 9) + wire.field(8, b"true") + wire.field(9, b"\1"))
    norm = ["BatchNormalization", ["x", *"abcd"], ["y", "e", "f"]]
    for one, trains in (
        (node(*norm, wire.attribute(b"training_mode", 1)), True),
        (node(*norm[:2], ["y"]), False),
        (node("Dropout", ["z", "half", "true"], ["y"]), True),
        (node("Dropout", ["z", "half"], ["y"]), False),
    ):
        nodes = [
            node("Mul", ["x", "a"], ["z"]),
            one,
            node("ReduceSum", ["y"], ["loss"], wire.attribute(b"keepdims", 0)),
        ]
        with open(path, "wb") as f:
            f.write(model(nodes, [*held, true], {"x": (FLOAT, [3, 2])}, {"loss": (FLOAT, [])}, 15))
        files.st_write(bench.path("in.st"), {"x": ("F32", [3, 2], [1] * 6)})
        only = bench.ckc(path, "-o", so, "--forward-only", "--output", "*")
        bench.check(
            ("uses batch statistics" in only.stderr) == (trains and one[:60].count(b"Batch") > 0),
            f"form, --forward-only: {only.stderr}",
        )
        bench.must(bench.ckc(path, "-o", so, "--quiet", "--param", "a"), "form: compile")
        run = ("--inputs", bench.path("in.st"), "--steps", 1, "--export-onnx", out)
        done = bench.ckrun(so, *run)
        if bench.must(done, "form: run"):
            bench.check(("in training form" in done.stderr) == trains, f"form: {done.stderr}")


def margin(bench):
    """Scores that were made of the labels, as those with a margin, predict nothing: no accuracy.
    Those of a decoder that reads shifted labels do."""
    path, so = bench.path("margin.onnx"), bench.path("margin.so")
    held = [
        wire.floats("m.w", [2, 3], [1, 0, 0, 0, 1, 0]),
        wire.floats("onoff", [2], [0, 1]),
        wire.ints("depth", [3]),
        wire.ints("axis", [1]),
    ]
    hot = [
        node("OneHot", ["y", "depth", "onoff"], ["hot"]),
        node("MatMul", ["x", "m.w"], ["z"]),
        node("Sub", ["z", "hot"], ["s"]),
    ]
    for nodes, known in ((hot, False), ([node("MatMul", ["x", "m.w"], ["s"])], True)):
        loss = node("SoftmaxCrossEntropyLoss", ["s", "y"], ["loss"])
        with open(path, "wb") as f:
            f.write(
                model(
                    [*nodes, loss],
                    held,
                    {"x": (FLOAT, [2, 2]), "y": (INT64, [2])},
                    {"loss": (FLOAT, [])},
                    17,
                )
            )
        files.st_write(
            bench.path("in.st"), {"x": ("F32", [2, 2], [1, 0, 0, 1]), "y": ("I64", [2], [0, 2])}
        )
        bench.must(bench.ckc(path, "-o", so, "--quiet"), "margin: compile")
        done = bench.ckrun("eval", so, "--data", bench.path("in.st"))
        told = re.search(r"accuracy (\S+) %", done.stdout)
        bench.check(
            bench.must(done, "margin") and (told and told.group(1)) == ("50" if known else None),
            f"margin: {done.stdout}",
        )


def computed_constants(bench):
    """A matrix that PyTorch's optimizer computed of constants alone stays as it is; one that it
    computed of a parameter is trained, as is one without a note."""
    path, so, save = bench.path("noted.onnx"), bench.path("noted.so"), bench.path("noted.st")
    signature = "p_w: PARAMETER target='o.w'\nx: USER_INPUT\n"
    key = "pkg.torch.export.ExportedProgram.graph_signature"
    notes = {"div": "['tril', 'val_0', 'ones']", "val_6": "['scale', 'o.w', 'val_1']"}
    info = b"".join(
        wire.field(
            13,
            wire.value_info(name.encode(), FLOAT, [2, 2])
            + wire.field(
                4,
                wire.field(1, "pkg.onnxscript.optimizer.folded_from") + wire.field(2, note),
            ),
        )
        for name, note in notes.items()
    )
    names = ("div", "val_6", "mul")
    nodes = [
        node("MatMul", ["x", "div"], ["a"]),
        node("MatMul", ["a", "val_6"], ["b"]),
        node("MatMul", ["b", "mul"], ["c"]),
        node("ReduceSum", ["c"], ["loss"], wire.attribute(b"keepdims", 0)),
    ]
    held = [wire.floats(name, [2, 2], [1, 2, 3, 4]) for name in names]
    with open(path, "wb") as f:
        f.write(
            model(nodes, [*held, info], {"x": (FLOAT, [3, 2])}, {"loss": (FLOAT, [])}, 17)
            + wire.field(14, wire.field(1, key) + wire.field(2, signature))
        )
    files.st_write(bench.path("in.st"), {"x": ("F32", [3, 2], [1] * 6)})
    for flags, want in (((), {"val_6", "mul"}), (("--train", "div"), set(names))):
        bench.must(bench.ckc(path, "-o", so, *flags), "computed constants: compile")
        run = ("--steps", 1, "--quiet", "--save", save)
        bench.must(bench.ckrun(so, "--inputs", bench.path("in.st"), *run), "computed constants")
        got = {k for k in files.st_read(save)[0] if k in names}
        bench.check(got == want, f"computed constants, {flags}: {got}, expected {want}")


def body_weights(bench):
    """A weight that is an initializer of a loop's body is one weight in all trips: h of three trips
    is h U^3, and the gradient of its sum 3 U^2 h."""
    path, so, save = bench.path("body.onnx"), bench.path("body.so"), bench.path("body.st")
    body = node("Mul", ["h", "U"], ["h2"]) + node("Identity", ["on"], ["on2"])
    body += wire.field(2, b"body") + wire.floats("U", [2], [2, 1])
    for number, name, dtype, dims in (
        (11, b"i", INT64, []),
        (11, b"on", 9, []),
        (11, b"h", FLOAT, [2]),
        (12, b"on2", 9, []),
        (12, b"h2", FLOAT, [2]),
    ):
        body += wire.field(number, wire.value_info(name, dtype, dims))
    loop = wire.field(5, wire.field(1, b"body") + wire.field(6, body) + wire.field(20, 5))
    nodes = [
        node("Constant", [], ["three"], spelt("value_int", 3)),
        node("Loop", ["three", "", "x"], ["y"], loop),
        node("ReduceSum", ["y"], ["loss"], wire.attribute(b"keepdims", 0)),
    ]
    with open(path, "wb") as f:
        f.write(model(nodes, [], {"x": (FLOAT, [2])}, {"loss": (FLOAT, [])}, 17))
    files.st_write(bench.path("in.st"), {"x": ("F32", [2], [1, 3])})
    done = bench.ckc(path, "-o", so, "--optimizer", "sgd", "--param", "#1/0/U")
    bench.check(bench.must(done, "body: compile") and "modules" not in done.stderr, done.stderr)
    run = ("--steps", 1, "--lr", 1, "--weight-decay", 0, "--quiet", "--save", save)
    if bench.must(bench.ckrun(so, "--inputs", bench.path("in.st"), *run), "body: run"):
        held = {k: v[2] for k, v in files.st_read(save)[0].items() if k.endswith("U")}
        bench.check(list(held.values()) == [[2 - 12, 1 - 9]], f"body: trained {held}")


def spellings(bench):
    """Trip counts, axes, shapes, indices and numbers in any attribute of a Constant."""
    x = np.arange(1, 13, dtype="f4").reshape(3, 4)
    body = b"".join(
        [wire.node("Mul", ["v", "half"], "v2"), wire.node("Identity", ["on"], "on2")]
    ) + wire.field(2, b"body")
    body += b"".join(
        wire.field(11, wire.value_info(k, t, [])) for k, t in ((b"i", INT64), (b"on", 9))
    )
    body += (
        wire.field(11, wire.value_info(b"v", FLOAT, [3, 4]))
        + wire.field(12, wire.value_info(b"on2", 9, []))
        + wire.field(12, wire.value_info(b"v2", FLOAT, [3, 4]))
    )
    loop = wire.field(5, wire.field(1, b"body") + wire.field(6, body) + wire.field(20, 5))
    held = {
        "three": ("value_int", 3),
        "half": ("value_float", 0.5),
        "row": ("value_floats", [1, 2, 3, 4]),
        "shape": ("value_ints", [4, 3]),
        "axis": ("value_ints", [-2]),
        "last": ("value_int", -1),
        "back": ("value_ints", [-1]),
        "far": ("value_ints", [-99]),
        "pads": ("sparse_value", [0, 1, 0, 2]),
        "first": ("sparse_value", [0]),
    }
    nodes = [node("Constant", [], [name], spelt(*how)) for name, how in held.items()]
    nodes += [
        node("Loop", ["three", "", "x"], ["y0"], loop),
        node("Mul", ["x", "row"], ["y1"]),
        node("Reshape", ["x", "shape"], ["y2"]),
        node("Unsqueeze", ["x", "axis"], ["y3"]),
        node("Gather", ["x", "last"], ["y4"]),
        node("Slice", ["x", "back", "far", "first", "back"], ["y5"]),
        node("CumSum", ["x", "last"], ["y6"]),
        node("Mul", ["x", "half"], ["y7"]),
        node("Pad", ["x", "pads"], ["y8"]),
    ]
    want = [
        x / 8,
        x * [1, 2, 3, 4],
        x.reshape(4, 3),
        x[:, None],
        x[-1],
        x[::-1],
        np.cumsum(x, -1),
        x / 2,
        np.pad(x, [(0, 0), (1, 2)]),
    ]
    outputs = {f"y{i}": (FLOAT, list(y.shape)) for i, y in enumerate(want)}
    got = run(
        bench,
        "spellings",
        model(nodes, [], {"x": (FLOAT, [3, 4])}, outputs, 17),
        {"x": ("F32", [3, 4], x.ravel().tolist())},
    )
    for i, y in enumerate(want if got else []):
        bench.check(
            np.allclose(np.reshape(got[f"y{i}"][2], y.shape), y),
            f"spellings: y{i} is {got[f'y{i}'][2]}, expected {y.ravel()}",
        )


def sequences(bench):
    """Lists of tensors, made by splitting or one by one, with elements put in and taken out: all of
    it is settled when the model is read."""
    x = np.arange(10, dtype="f4").reshape(5, 2)
    held = [
        wire.ints("sizes", [2, 3]),
        *(
            node("Constant", [], [f"c{i}"], wire.attribute(b"value_int", i))
            for i in (-2, -1, 0, 1, 2)
        ),
    ]
    nodes = [
        node("Neg", ["x"], ["n"]),
        node("Neg", ["n"], ["h"]),
        node("Slice", ["h", "i0", "i1"], ["row"]),
        node("SplitToSequence", ["h", "c2"], ["s"]),
        node("SplitToSequence", ["h"], ["ones"]),
        node("SplitToSequence", ["h"], ["flat"], wire.attribute(b"keepdims", 0)),
        node("SplitToSequence", ["h", "sizes"], ["two"]),
        node("SequenceInsert", ["s", "row"], ["s1"]),
        node("SequenceInsert", ["s1", "row", "c-2"], ["s2"]),
        node("SequenceErase", ["s2", "c0"], ["s3"]),
        node("SequenceErase", ["ones"], ["four"]),
        node("SequenceLength", ["ones"], ["n5"]),
        node("Add", ["c-1", "c2"], ["sum"]),
        node("SequenceAt", ["s", "c-1"], ["y1"]),
        node("SequenceAt", ["two", "sum"], ["y2"]),
    ]
    cut = lambda axis, fresh=0: wire.attribute(b"axis", axis) + wire.attribute(b"new_axis", fresh)
    nodes += [
        node("ConcatFromSequence", ["s3"], ["y0"], cut(0)),
        node("ConcatFromSequence", ["four"], ["y3"], cut(0)),
        node("ConcatFromSequence", ["flat"], ["y4"], cut(-1, 1)),
        node("Cast", ["n5"], ["y5"], wire.attribute(b"to", FLOAT)),
    ]
    held += [wire.ints("i0", [0]), wire.ints("i1", [1])]
    want = [np.concatenate([x[2:4], x[:1], x[4:], x[:1]]), x[4:], x[2:], x[:4], x.T, np.float32(5)]
    outputs = {f"y{i}": (FLOAT, list(y.shape)) for i, y in enumerate(want)}
    got = run(
        bench,
        "sequences",
        model(nodes, held, {"x": (FLOAT, [5, 2])}, outputs, 17),
        {"x": ("F32", [5, 2], x.ravel().tolist())},
    )
    for i, y in enumerate(want if got else []):
        bench.check(
            list(got[f"y{i}"][1]) == list(y.shape) and np.array_equal(got[f"y{i}"][2], y.ravel()),
            f"sequences: y{i} is {got[f'y{i}']}, expected {y.tolist()}",
        )


def no_sequences(bench):
    """What a few bytes ask for is bounded; a position from an end that is not known is said to be
    one."""
    many = [node("SplitToSequence", ["x"], ["s0"])]
    for kind in "Insert", "Erase", "Concat":
        nodes = many[:]
        for i in range(40):
            nodes.append(
                node("ConcatFromSequence", ["s0"], [f"s{i + 1}"], wire.attribute(b"axis", 0))
                if kind == "Concat"
                else node(
                    "Sequence" + kind,
                    [f"s{i}" if i % 2 else "s0", "x"][: 1 + (kind == "Insert")],
                    [f"s{i + 1}"],
                )
            )
        nodes += (
            [node("Sum", [f"s{i + 1}" for i in range(40)], ["y"])]
            if kind == "Concat"
            else [node("SequenceAt", [f"s{i + 1}", "c0"], [f"y{i}"]) for i in range(40)]
        )
        outputs = (
            {"y": (FLOAT, [65000])}
            if kind == "Concat"
            else {f"y{i}": (FLOAT, [1]) for i in range(40)}
        )
        refused(
            bench,
            f"{kind} of many",
            model(nodes, [ints("c0", 0)], {"x": (FLOAT, [65000])}, outputs, 17),
            "need more than 1048576 tensors",
        )
    nodes = [
        node("SplitToSequence", ["x", "sizes"], ["s"]),
        node("SequenceAt", ["s", "last"], ["y"]),
    ]
    refused(
        bench,
        "a position from the end",
        model(
            nodes,
            [ints("last", -1)],
            {"x": (FLOAT, [6]), "sizes": (INT64, None)},
            {"y": (FLOAT, None)},
            17,
        ),
        "position -1 counts from the end, but the length of the sequence is unknown",
    )


def refused(bench, what, data, said):
    """The file is, and one line says why."""
    with open(bench.path("no.onnx"), "wb") as f:
        f.write(data)
    done = bench.ckc(bench.path("no.onnx"), "-o", bench.path("no.so"), "--forward-only")
    bench.check(
        done.returncode == 1 and said in done.stderr and done.stderr.count("\n") == 1,
        f"{what}: {done.returncode} {done.stderr[:2000]}",
    )


def slope(f, x, h=1e-5):
    """The gradient of a number by central differences."""
    g = np.zeros_like(x)
    for i in np.ndindex(x.shape):
        keep = x[i]
        x[i] = keep + h
        up = f()
        x[i] = keep - h
        g[i], x[i] = (up - f()) / (2 * h), keep
    return g


def norms(bench):
    """Scales and biases of any shape that broadcasts; mean and inverse deviation as outputs, and
    what gradients they hand on."""
    rng = np.random.default_rng(8)
    shape, k = (2, 3, 4), rng.standard_normal((2, 3, 4))
    path, so, out, log = (bench.path(name) for name in ("ln.onnx", "ln.so", "ln.st", "ln.log"))
    for axis, scale, bias, statistics in (
        (-1, (4,), (4,), True),
        (-1, (3, 4), (1,), False),
        (-2, (3, 4), (4,), True),
        (1, (1,), (3, 1), False),
        (-1, (2, 1, 1), (1, 1, 4), True),
        (-2, (1, 3, 1), (2, 3, 4), True),
        (2, (), (3, 1), False),
    ):
        p = {
            "m.w": rng.standard_normal(shape),
            "m.scale": rng.standard_normal(scale),
            "m.bias": rng.standard_normal(bias),
        }
        given, over = rng.standard_normal(shape), tuple(range(axis % 3, 3))

        def loss():
            x = given * p["m.w"]
            mean, deviation = (
                x.mean(over, keepdims=True),
                np.sqrt(x.var(over, keepdims=True) + 1e-5),
            )
            y = (x - mean) / deviation * p["m.scale"] + p["m.bias"]
            return (y * k).sum() + (
                3 * (mean * mean).sum() + (1 / deviation).sum() if statistics else 0
            )

        # twice negated: inside a graph ranks are not known
        nodes = [
            node("Mul", ["x", "m.w"], ["a"]),
            node("Neg", ["a"], ["b"]),
            node("Neg", ["b"], ["h"]),
            node("Mul", ["y", "k"], ["yk"]),
            node(
                "LayerNormalization",
                ["h", "m.scale", "m.bias"],
                ["y", "mean", "dev"] if statistics else ["y"],
                wire.attribute(b"axis", axis),
            ),
            node("ReduceSum", ["yk"], ["s"], wire.attribute(b"keepdims", 0)),
        ]
        if statistics:
            nodes += [
                node("Mul", ["mean", "mean"], ["mm"]),
                node("ReduceSum", ["mm"], ["ms"], wire.attribute(b"keepdims", 0)),
                node("Mul", ["ms", "three"], ["m3"]),
                node("ReduceSum", ["dev"], ["ds"], wire.attribute(b"keepdims", 0)),
                node("Add", ["m3", "ds"], ["both"]),
            ]
        nodes.append(
            node("Add", ["s", "both"], ["loss"])
            if statistics
            else node("Identity", ["s"], ["loss"])
        )
        held = [
            wire.floats(name, list(v.shape), np.float32(v).ravel().tolist())
            for name, v in (*p.items(), ("k", k), ("three", np.float32(3)))
        ]
        with open(path, "wb") as f:
            f.write(model(nodes, held, {"x": (FLOAT, list(shape))}, {"loss": (FLOAT, [])}, 17))
        files.st_write(bench.path("in.st"), {"x": ("F32", list(shape), given.ravel().tolist())})
        what = f"norm over {over}, scale {scale}, bias {bias}"
        if not bench.must(
            bench.ckc(
                path, "-o", so, "--quiet", "--optimizer", "sgd", "--freeze", "*", "--train", "m.*"
            ),
            f"{what}: compile",
        ) or not bench.must(
            bench.ckrun(
                so,
                "--inputs",
                bench.path("in.st"),
                "--steps",
                1,
                "--grads",
                out,
                "--log",
                log,
                "--quiet",
            ),
            f"{what}: run",
        ):
            continue
        got = files.st_read(out)[0]
        bench.check(
            np.isclose(ck.losses(log)[0], loss(), rtol=1e-4),
            f"{what}: loss {ck.losses(log)[0]}, expected {loss()}",
        )
        for name, v in p.items():
            want = slope(loss, v)
            bench.check(
                np.allclose(np.reshape(got[name][2], v.shape), want, rtol=1e-3, atol=1e-3),
                f"{what}: gradient of {name} {got[name][2]}, expected {want.ravel()}",
            )


# shape of x, its pair, axis, length, inverse, one-sided
TRANSFORMS = [
    ((3, 8), 2, 1, None, 0, 0),
    ((3, 7), 2, 1, None, 1, 0),
    ((4, 3, 5), 1, 0, None, 0, 0),
    ((4, 3, 5), 2, -3, None, 0, 0),
    ((2, 6, 3), 1, 1, None, 0, 1),
    ((2, 6, 3), 1, -3, 9, 0, 1),
    ((2, 9), 1, 1, 5, 0, 1),
    ((2, 9), 2, 1, 12, 1, 0),
    ((2, 9), 2, 1, 4, 1, 0),
    ((3, 5), 2, 1, None, 1, 1),
    ((3, 5, 2), 2, 1, 9, 1, 1),
    ((3, 5), 2, 1, 6, 1, 1),
    ((3, 5), 2, 1, 13, 1, 1),
    ((6,), 1, 0, None, 0, 0),
    ((2, 1), 2, 1, None, 0, 0),
]


def transformed(x, axis, length, inverse, onesided):
    """What numpy's FFT gives of the real and imaginary parts along the last axis."""
    z = x[..., 0] + 1j * x[..., 1] if x.shape[-1] == 2 else x[..., 0]
    axis %= x.ndim
    if inverse and onesided:
        return np.fft.irfft(z, length, axis)[..., None]
    y = (np.fft.ifft if inverse else np.fft.rfft if onesided else np.fft.fft)(z, length, axis)
    return np.stack([y.real, y.imag], -1)


def transforms(bench):
    """DFT in all forms: axis as an attribute and an input, lengths that cut and pad, both halves of
    real ones; their gradients by differences."""
    rng = np.random.default_rng(7)
    for opset in 17, 20:
        nodes, held, given, want = [], [], {}, {}
        for i, (shape, pair, axis, length, inverse, onesided) in enumerate(TRANSFORMS):
            x = f"x{i}"
            given[x] = rng.standard_normal((*shape, pair))
            want[f"y{i}"] = transformed(given[x], axis, length, inverse, onesided)
            held += [ints(f"n{i}", length or 0), ints(f"a{i}", axis)]
            inputs = [x, f"n{i}" if length else ""] + [f"a{i}"] * (opset > 19)
            flags = b"".join(
                wire.attribute(k, v)
                for k, v in ((b"inverse", inverse), (b"onesided", onesided), (b"axis", axis))[
                    : 2 if opset > 19 else 3
                ]
            )
            nodes += [
                node("Neg", [x + "m"], [x]),
                node("DFT", inputs, [f"y{i}"], flags),
                node("Mul", [f"y{i}", f"y{i}"], [f"q{i}"]),
                node("ReduceSum", [f"q{i}"], [f"s{i}"], wire.attribute(b"keepdims", 0)),
            ]
        nodes.append(node("Sum", [f"s{i}" for i in range(len(TRANSFORMS))], ["loss"]))
        held += [wire.floats(k + "m", v.shape, list(-v.ravel())) for k, v in given.items()]
        data = model(
            nodes,
            held,
            {},
            {k: (FLOAT, list(v.shape)) for k, v in want.items()} | {"loss": (FLOAT, [])},
            opset,
        )
        got = run(bench, f"DFT {opset}", data, {})
        for name, y in want.items() if got else []:
            bench.check(
                got[name][1] == list(y.shape)
                and np.allclose(np.array(got[name][2]).reshape(y.shape), y, atol=1e-5),
                f"DFT {opset} {TRANSFORMS[int(name[1:])]}: {got[name]}, expected {y}",
            )
    grads = gradients(bench, "DFT")
    for (name, x), form in zip(given.items(), TRANSFORMS) if grads else []:
        slope = np.zeros_like(x)
        for at in np.ndindex(x.shape):
            for sign in 1, -1:
                z = x.copy()
                z[at] += sign
                slope[at] += sign * (transformed(z, *form[2:]) ** 2).sum() / 2
        found = -np.array(grads[name + "m"][2]).reshape(x.shape)
        bench.check(
            np.allclose(found, slope, rtol=1e-4, atol=1e-4),
            f"DFT {form}: gradient {found}, expected {slope}",
        )


def no_transforms(bench):
    """A DFT that cannot be, or that a matrix of N x N is too large for."""
    for shape, flags, said in (
        (
            (3, 8, 2),
            {b"onesided": 1},
            "onesided with inverse=0: expected real input, found complex",
        ),
        (
            (3, 8, 1),
            {b"onesided": 1, b"inverse": 1},
            "onesided with inverse=1: expected complex input, found real",
        ),
        ((3, 8, 3), {}, "expected extent 1 or 2, found 3"),
        (
            (3, 8, 2),
            {b"axis": -1},
            "axis: expected an axis before the last, found -1; the last axis holds real and imaginary parts",
        ),
        ((3, 8, 2), {b"axis": 2}, "axis: expected an axis before the last, found 2;"),
        ((3, 8, 2), {b"axis": 5}, "axis: expected an axis before the last, found 5;"),
        ((3, 8, 2), {b"axis": 1 << 40}, "the rank is at most"),
        ((1, 9000, 1), {}, "length 9000 is not supported: expected at most 8192"),
        ((1, 0, 1), {}, "length: expected at least 1, found 0"),
    ):
        nodes = [
            node("Neg", ["x"], ["m"]),
            node("DFT", ["m"], ["y"], b"".join(wire.attribute(k, v) for k, v in flags.items())),
        ]
        with open(bench.path("no.onnx"), "wb") as f:
            f.write(model(nodes, [], {"x": (FLOAT, list(shape))}, {"y": (FLOAT, [1])}, 17))
        done = bench.ckc(bench.path("no.onnx"), "-o", bench.path("no.so"), "--forward-only")
        bench.check(
            done.returncode == 1
            and "(DFT): " in done.stderr
            and said in done.stderr
            and done.stderr.count("\n") == 1,
            f"DFT {shape} {flags}: {done.returncode} {done.stderr}",
        )
    with open(bench.path("no.onnx"), "wb") as f:
        f.write(
            model(
                [node("STFT", ["x", "n"], ["y"])],
                [ints("n", 2)],
                {"x": (FLOAT, [1, 8, 1])},
                {"y": (FLOAT, None)},
                17,
            )
        )
    done = bench.ckc(bench.path("no.onnx"), "-o", bench.path("no.so"), "--forward-only")
    bench.check(
        done.returncode == 1
        and "try: torch.fft.rfft(x.unfold(-1, n, hop) * window)" in done.stderr,
        f"STFT: {done.returncode} {done.stderr}",
    )


def soft_loss(z, y, w, reduction):
    """PyTorch's cross_entropy with probabilities of classes along axis 1."""
    m = z.max(1, keepdims=True)
    rows = -(y * w * (z - m - np.log(np.exp(z - m).sum(1, keepdims=True)))).sum(1)
    return {"mean": rows.mean(), "sum": rows.sum(), "none": rows}[reduction]


def soft_labels(bench):
    """SoftmaxCrossEntropyLoss with probabilities: reductions, class weights, axes behind the
    classes; gradients of scores and labels; labels of another shape."""
    rng = np.random.default_rng(8)
    w, nodes, held, given, want = rng.uniform(0.5, 2, 5), [], [], {}, {}
    forms = [
        ((4, 5), reduction, weights, ignore)
        for reduction in ("mean", "sum", "none")
        for weights, ignore in ((0, -100), (1, 2))
    ]
    forms += [((3, 5, 2), "mean", 1, -100), ((3, 5, 2, 2), "none", 1, -100)]
    for i, (shape, reduction, weights, ignore) in enumerate(forms):
        given[f"z{i}"], given[f"t{i}"] = rng.standard_normal(shape), rng.uniform(0, 1, shape)
        want[f"l{i}"] = soft_loss(
            given[f"z{i}"],
            given[f"t{i}"],
            (w if weights else np.ones(5)).reshape([5] + [1] * (len(shape) - 2)),
            reduction,
        )
        nodes += [node("Neg", [f"{k}{i}m"], [f"{k}{i}"]) for k in "zt"]
        nodes += [
            node(
                "SoftmaxCrossEntropyLoss",
                [f"z{i}", f"t{i}"] + ["w"] * weights,
                [f"l{i}", f"p{i}"],
                text("reduction", reduction) + wire.attribute(b"ignore_index", ignore),
            ),
            node("ReduceSum", [f"l{i}"], [f"s{i}"], wire.attribute(b"keepdims", 0)),
        ]
    nodes.append(node("Sum", [f"s{i}" for i in range(len(forms))], ["loss"]))
    held = [wire.floats(k + "m", v.shape, list(-v.ravel())) for k, v in given.items()] + [
        wire.floats("w", [5], list(w))
    ]
    data = model(
        nodes,
        held,
        {},
        {k: (FLOAT, list(v.shape)) for k, v in want.items()} | {"loss": (FLOAT, [])},
        17,
    )
    got = run(bench, "soft labels", data, {})
    for (name, y), form in zip(want.items(), forms) if got else []:
        bench.check(
            np.allclose(np.array(got[name][2]).reshape(y.shape), y, atol=1e-5),
            f"soft labels {form}: {got[name]}, expected {y}",
        )
    grads = gradients(bench, "soft labels")
    for i, (shape, reduction, weights, _) in enumerate(forms) if grads else []:
        z, t = given[f"z{i}"], given[f"t{i}"]
        v = (
            t
            * (w if weights else np.ones(5)).reshape([5] + [1] * (len(shape) - 2))
            / (z.size / 5 if reduction == "mean" else 1)
        )
        e = np.exp(z)
        slope = {
            "z": e / e.sum(1, keepdims=True) * v.sum(1, keepdims=True) - v,
            "t": -v / t * np.log(e / e.sum(1, keepdims=True)),
        }
        for k in slope:
            found = -np.array(grads[f"{k}{i}m"][2]).reshape(shape)
            bench.check(
                np.allclose(found, slope[k], atol=1e-5),
                f"soft labels {forms[i]}: gradient of {k} {found}, expected {slope[k]}",
            )
    refused = [
        (
            "NegativeLogLikelihoodLoss",
            [4, 5],
            "found f32; for class probabilities, write -(y * log_softmax(x, 1)).sum(1).mean()",
        )
    ]
    refused += [
        ("SoftmaxCrossEntropyLoss", labels, "n0")
        for labels in ([5, 4], [4], [1, 5], [4, 1], [5], [], [2, 4, 5], [20])
    ]
    for (op, labels, said), scores in ((case, scores) for case in refused for scores in "xz"):
        with open(bench.path("no.onnx"), "wb") as f:
            nodes = [
                node("Mul", ["x", "a.w"], ["z"]),
                node(op, [scores, "y"], ["l"], wire.field(3, "n0")),
            ]
            f.write(
                model(
                    nodes,
                    [wire.floats("a.w", [1], [1])],
                    {"x": (FLOAT, [4, 5]), "y": (FLOAT, labels)},
                    {"l": (FLOAT, None)},
                    17,
                )
            )
        done = bench.ckc(bench.path("no.onnx"), "-o", bench.path("no.so"), "--forward-only")
        bench.check(
            done.returncode == 1
            and said in done.stderr
            and not os.path.exists(bench.path("no.so")),
            f"labels {labels} of {op}: {done.returncode} {done.stderr}",
        )
        said = "expected f32[4,5], the shape of the scores, found f32"
        bench.check(
            scores == "z" or op[0] == "N" or said in done.stderr,
            f"labels {labels} of {op}: {done.stderr}",
        )


def gradients(bench, what):
    """Those of all parameters of the last model that was run; nothing if there are none."""
    path, so, out = bench.path("m.onnx"), bench.path("m.so"), bench.path("grads.st")
    if not bench.must(
        bench.ckc(
            path, "-o", so, "--quiet", "--loss", "loss", "--train", "*m", "--optimizer", "sgd"
        ),
        f"{what}: train",
    ):
        return {}
    files.st_write(bench.path("in.st"), {})
    done = bench.ckrun(
        so, "--inputs", bench.path("in.st"), "--steps", 1, "--lr", 0, "--grads", out, "--quiet"
    )
    return files.st_read(out)[0] if bench.must(done, f"{what}: a step") else {}


def main():
    bench = ck.Bench()
    spellings(bench)
    sequences(bench)
    no_sequences(bench)
    norms(bench)
    soft_labels(bench)
    no_transforms(bench)
    transforms(bench)
    dots(bench)
    heads(bench)
    left_out(bench)
    everything(bench)
    statistics(bench)
    shifts(bench)
    scores(bench)
    corners(bench)
    unmoved(bench)
    constant_output(bench)
    state(bench)
    merged(bench)
    folded_number(bench)
    shared_statistics(bench)
    computed_statistics(bench)
    not_exportable(bench)
    body_weights(bench)
    computed_constants(bench)
    training_form(bench)
    margin(bench)
    decimals(bench)
    lowest(bench)
    needless(bench)
    twice(bench)
    bench.finish()


if __name__ == "__main__":
    main()
