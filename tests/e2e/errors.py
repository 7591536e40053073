#!/usr/bin/env python3
"""Bad input: one clear message, exit status 1, no file left.

errors.py CKC CKRUN
"""

import os
import random
import zipfile

import ck
import wire
from wire import a_model, field, value_info


def model(name):
    return os.path.join(ck.MODELS, name + ".onnx")


def refuse(bench, what, words, argv, status=1, env=None, run=None, lines=None):
    """The command ends with this status, a message that holds all words, and none of these
    files."""
    before = set(os.listdir(bench.work))
    done = (run or bench.ckc)(*argv, env=env)
    bench.check(
        done.returncode == status,
        f"{what}: status {done.returncode}, expected {status}: {done.stderr.strip()[:300]}",
    )
    for word in words:
        bench.check(word in done.stderr, f"{what}: no '{word}' in: {done.stderr.strip()[:300]}")
    if lines:
        bench.check(
            done.stderr.count("\n") == lines,
            f"{what}: expected {lines} lines: {done.stderr.strip()[:600]}",
        )
    left = set(os.listdir(bench.work)) - before
    bench.check(not left, f"{what}: left {sorted(left)}")
    bench.check(
        "internal" not in done.stderr, f"{what}: internal error: {done.stderr.strip()[:300]}"
    )


def broken(bench, name, data):
    path = bench.path(name)
    with open(path, "wb") as f:
        f.write(data)
    return path


def main():
    bench = ck.Bench()
    out = ["-o", bench.path("x.so")]
    dyn = model("gpt2-dynamo-dyn")
    static = model("gpt2-ts14")
    refuse(bench, "missing dims", ["batch", "--dim"], [dyn, *out])
    refuse(
        bench,
        "unknown dim",
        ["nosuch"],
        [dyn, *out, "--dim", "batch=2", "--dim", "seq=12", "--dim", "nosuch=3"],
    )
    refuse(bench, "no file", ["nosuch.onnx"], ["nosuch.onnx", *out])
    refuse(
        bench, "unknown loss", ["nosuch", "kinds are ce, bce"], [static, *out, "--loss", "nosuch"]
    )
    slow = broken(
        bench,
        "slow.json",
        b'{"name": "slow", "product_flops": 1e-300, "vector_flops": 1e-300, "bandwidth": 1e-300}',
    )
    refuse(
        bench,
        "a step that takes for ever",
        ["device 'slow'", "expected at most"],
        [static, "--plan-only", "--device", slow],
    )
    refuse(
        bench,
        "budget",
        ["smallest budget that works", "KiB, 82 %)"],
        [static, *out, "--memory-budget", "1KiB"],
    )
    refuse(
        bench,
        "budget beside --keep",
        ["drop --keep"],
        [static, *out, "--memory-budget", "1KiB", "--keep", "*"],
    )
    done = bench.ckc(static, *out, "--memory-budget", "1KiB")
    bench.check(
        "drop --keep" not in done.stderr, f"--keep is blamed that was not given: {done.stderr}"
    )
    refuse(
        bench,
        "a name like others",
        ["the plan has no value named 'nosuch'"],
        [static, "--plan-only", "--explain", "nosuch"],
        lines=1,
    )
    bench.must(bench.ckc(static, "--plan-only", "--json", bench.path("near.json")), "a plan")
    near = next(
        t["name"] for t in ck.plan(bench.path("near.json"))["tensors"] if t["kind"] == "activation"
    )
    refuse(
        bench,
        "a name like another",
        [f"'{near}'"],
        [static, "--plan-only", "--explain", near + "?"],
    )
    with zipfile.ZipFile(bench.path("w.pt"), "w") as z:
        z.writestr("w/data.pkl", b"\x80\x02}q\x00.")
    bench.must(
        bench.ckc(model("mlp-mse"), "--dim", "batch=8", "-o", bench.path("w.so")), "a library"
    )
    refuse(
        bench,
        "torch.save",
        ["torch.save", "safetensors"],
        [bench.path("w.so"), "--init", bench.path("w.pt"), "--steps", "1"],
        run=bench.ckrun,
    )
    refuse(bench, "unwritable", ["nosuch"], [static, "-o", "/nosuch/dir/x.so"])
    for n in (240, 245, 260):
        refuse(
            bench,
            f"name of {n} bytes",
            ["File name too long"],
            [static, "-o", bench.path("x" * n + ".so")],
        )
    refuse(bench, "no compiler", ["--cc"], [static, *out, "--cc", "/nosuch/cc"])
    refuse(bench, "failing compiler", ["false"], [static, *out, "--cc", "false"])
    refuse(bench, "--keep without effect", ["nosuch"], [static, *out, "--keep", "nosuch*"])
    refuse(bench, "unknown option", ["--nosuch"], [static, *out, "--nosuch"], status=2)
    refuse(
        bench,
        "bad size",
        ["--memory-budget"],
        [static, *out, "--memory-budget", "6 potatoes"],
        status=2,
    )
    refuse(bench, "no model", [], [], status=2)
    data = ck.content(static)
    for n in (0, 1, 10, len(data) // 3, len(data) - 1):
        path = broken(bench, "cut.onnx", data[:n])
        refuse(bench, f"cut at {n}", ["cut.onnx"], [path, *out])
    random.seed(7)
    for i in range(40):
        bad = bytearray(data)
        for _ in range(random.choice((1, 3, 30))):
            bad[random.randrange(len(bad))] = random.randrange(256)
        path = broken(bench, "bad.onnx", bytes(bad))
        done = bench.ckc(path, "--plan-only", "--quiet")
        bench.check(done.returncode in (0, 1), f"mutation {i}: status {done.returncode}")
    # missing external data: references to a file that is not there
    path = broken(bench, "ext.onnx", external(b"nosuch.data"))
    refuse(bench, "external data", ["nosuch.data"], [path, *out])
    path = broken(bench, "ext.onnx", external(b"../x.data"))
    refuse(bench, "path traversal", ["../x.data"], [path, *out])
    path = broken(bench, "ext.onnx", external(b"\xff.data"))
    refuse(bench, "name in no UTF-8", ["a name is not UTF-8"], [path, *out])
    path = broken(bench, "op.onnx", one_node(b"NoSuchOp", 1))
    refuse(bench, "unknown op", ["NoSuchOp", "not supported"], [path, *out])
    path = broken(bench, "type.onnx", one_node(b"Erf", 7))
    refuse(bench, "wrong type", ["type.onnx"], [path, *out])
    for words, data in (
        (["(Reshape)", "[3,5]"], after("Reshape", ["s"], {"s": [3, 5]})),
        (["(Tile)", "found 3"], after("Tile", ["s"], {"s": [3, 5, 6]})),
        (["(Pad)", "found 3 pad widths"], after("Pad", ["s"], {"s": [3, 5, 6]})),
        (["(Softmax)", "axis 5"], after("Softmax", [], {}, axis=5)),
        (["(Concat)", "axis 7"], after("Concat", ["y"], {}, axis=7)),
        (["(ReduceSum)", "axis 9"], after("ReduceSum", ["s"], {"s": [9]})),
        (["function 'F' calls itself"], recursive(9)),
    ):
        refuse(bench, "one message", words, [broken(bench, "one.onnx", data), *out], lines=1)
    path = broken(bench, "double.onnx", in_double("Softmax"))
    refuse(
        bench,
        "no kernel",
        ["node 'n_p' (Softmax)", "softmax is not supported for f64", "float32"],
        [path, *out],
        lines=1,
    )
    so = bench.path("good.so")
    if bench.must(bench.ckc(static, "-o", so), "compile"):
        refuse(bench, "no data", ["input_ids"], [so, "--steps", 1], run=bench.ckrun)
        refuse(
            bench,
            "no such data",
            ["nosuch"],
            [so, "--data", "nosuch.npy", "--steps", 1],
            run=bench.ckrun,
        )
        refuse(bench, "unknown library", ["nosuch.so"], ["nosuch.so"], run=bench.ckrun)
        refuse(bench, "not a library", ["cut.onnx"], [bench.path("cut.onnx")], run=bench.ckrun)
        inputs = os.path.join(ck.MODELS, "gpt2-ts14.inputs.safetensors")
        refuse(
            bench,
            "unwritable save",
            ["/nosuch"],
            [so, "--inputs", inputs, "--steps", 1, "--save", "/nosuch/x"],
            run=bench.ckrun,
        )
        refuse(
            bench,
            "other weights",
            ["other"],
            [so, "--inputs", inputs, "--init", broken(bench, "other", b"\0" * 64)],
            run=bench.ckrun,
        )
        refuse(
            bench, "unknown run option", ["--nosuch"], [so, "--nosuch"], status=2, run=bench.ckrun
        )
    bench.finish()


# ---- a few ONNX bytes by hand ----


def one_node(op, dtype):
    node = field(1, field(1, b"x") + field(2, b"loss") + field(3, b"the_node") + field(4, op))
    return a_model(
        node
        + field(2, b"g")
        + field(11, value_info(b"x", dtype, [1]))
        + field(12, value_info(b"loss", 1, [1]))
    )


def after(op, inputs, constants, **attributes):
    """A node behind x * m.weight, both [4, 4]."""
    nodes = [
        wire.node("Mul", ["x", "m.weight"], "y"),
        wire.node(op, ["y"] + inputs, "z", **attributes),
        wire.node("ReduceMean", ["z"], "loss", keepdims=0),
    ]
    held = [wire.floats("m.weight", [4, 4], [0.5] * 16)] + [
        wire.ints(k, v) for k, v in constants.items()
    ]
    return wire.graph(nodes, held, {"x": (1, [4, 4])}, ["loss"])


def recursive(calls):
    """A function that calls itself that often."""
    body = b"".join(
        field(7, field(1, b"a") + field(2, b"b%d" % i) + field(4, b"F") + field(7, b"own"))
        for i in range(calls)
    )
    function = (
        field(1, b"F")
        + field(4, b"a")
        + field(5, b"b0")
        + body
        + field(9, field(1, b"own") + field(2, 1))
        + field(10, b"own")
    )
    top = field(1, field(1, b"x") + field(2, b"loss") + field(4, b"F") + field(7, b"own"))
    return a_model(
        top
        + field(2, b"g")
        + field(11, value_info(b"x", 1, [1]))
        + field(12, value_info(b"loss", 1, [1]))
    ) + field(25, function)


def in_double(op):
    """Something in f64 between parts in f32."""
    nodes = [
        wire.node("Mul", ["x", "m.weight"], "y"),
        wire.node("Cast", ["y"], "d", to=11),
        wire.node(op, ["d"], "p"),
        wire.node("Cast", ["p"], "f", to=1),
        wire.node("Mul", ["f", "f"], "ff"),
        wire.node("ReduceMean", ["ff"], "loss", keepdims=0),
    ]
    return wire.graph(
        nodes, [wire.floats("m.weight", [4, 4], [0.5] * 16)], {"x": (1, [4, 4])}, ["loss"]
    )


def external(location):
    entry = field(1, b"location") + field(2, location)
    tensor = field(1, 4) + field(2, 1) + field(8, b"m.w") + field(13, entry) + field(14, 1)
    node = field(1, field(1, b"x") + field(1, b"m.w") + field(2, b"y") + field(4, b"Mul"))
    node += field(1, field(1, b"y") + field(2, b"loss") + field(4, b"ReduceMean"))
    return a_model(
        node
        + field(2, b"g")
        + field(5, tensor)
        + field(11, value_info(b"x", 1, [4]))
        + field(12, value_info(b"loss", 1, [1]))
    )


if __name__ == "__main__":
    main()
