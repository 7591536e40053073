#!/usr/bin/env python3
"""Files made to do harm: names that want to be code, shapes that want all memory, structures
without end, paths that lead out.

    hostile.py CKC CKRUN

Each is refused with a message and status 1, or compiled to something whose every output is sound;
in bounded time and memory, and nothing is left behind.
"""

import json
import os
import resource
import struct
import subprocess
import sys
import xml.dom.minidom
import xml.parsers.expat

import ck

for folder in "fuzz", "sanitize":
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", folder))
import seeds
from sanitized import sanitized
from seeds import BOOL, F32, I64, Graph, field, graph, info, model, node, tensor, values

MEMORY = 2 << 30
SECONDS = 30


def limited():
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def used():
    """Processor seconds of children: other work on the machine does not count."""
    r = resource.getrusage(resource.RUSAGE_CHILDREN)
    return r.ru_utime + r.ru_stime


def ckc(bench, *argv):
    """ckc with little memory (a sanitizer needs more addresses than there is memory): (status,
    stderr)."""
    begun = used()
    try:
        done = subprocess.run(
            [bench.ckc_path, *argv],
            cwd=bench.work,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=10 * SECONDS,
            preexec_fn=None if bench.sanitized else limited,
        )
    except subprocess.TimeoutExpired:
        return -1, "no end"
    said = done.stderr.decode(errors="replace")
    if used() - begun > (4 if bench.sanitized else 1) * SECONDS:
        return -2, f"{used() - begun:.0f} seconds; {said}"
    return done.returncode, said


def save(bench, name, data):
    path = bench.path(name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(data)
    return path


def refused(bench, what, words, data, flags=()):
    """One of the words at least is in the message; words None: it may also be compiled."""
    before = set(os.listdir(bench.work))
    path = save(bench, "hostile.onnx", data)
    for verb in ([path, "--plan-only"], ["inspect", path]):
        status, said = ckc(bench, *verb, *flags)
        must = (1,) if words and verb[0] != "inspect" else (0, 1)
        bench.check(
            status in must,
            f"{what}: {verb[0] == 'inspect' and 'inspect: ' or ''}status {status}: {said[-300:]}",
        )
        bench.check(
            "internal" not in said and (status != 1 or said.startswith("ckc: ")),
            f"{what}: {said[-300:]}",
        )
        bench.check(
            status != 1 or not words or verb[0] == "inspect" or any(w in said for w in words),
            f"{what}: none of {words} in: {said[-400:]}",
        )
    left = set(os.listdir(bench.work)) - before - {"hostile.onnx"}
    bench.check(not left, f"{what}: left {sorted(left)}")


# ---- names ----

NAMES = [
    '"; system("touch owned"); char *s = "',
    "*/ int main(void) { return 1; } /*",
    "%s%s%n%d",
    "a??/",
    "a\\",
    "line\n#error broken",
    "// \\",
    "',\"',",
    '{"x": 1}',
    "](javascript:alert(1))<script>",
    "../../owned",
    "/etc/passwd",
    "$(touch owned)`touch owned`",
    "__metadata__",
    "ckr_library",
    "int",
    "\u202eevil\u2066",
    "\x1b[2J\x07",
    "x" * 60000,
    "\u00e9\u4e2d\U0001f600",
    " ",
    "adamw.m.w",
    "loss.next",
    "null",
    "%x: f32[2]\n}",
    "w/../w",
    "a,b",
    "a=b",
]


def named(name, alone):
    """A small training graph that uses the name wherever there is one."""
    other = "h.weight" if alone != "param" else name
    x = name if alone == "input" else "x"
    dim = name if alone == "dim" else "batch"
    nodes = [
        node("MatMul", [x, other], ["y"], name=name if alone == "node" else "n"),
        node("Mul", ["y", "y"], [name if alone == "value" else "z"]),
        node(
            "ReduceMean",
            [name if alone == "value" else "z"],
            [name if alone == "output" else "loss"],
            keepdims=0,
        ),
    ]
    g = graph(
        nodes,
        [tensor(other, F32, [3, 2], values(6))],
        [info(x, F32, [dim, 3])],
        [info(name if alone == "output" else "loss", F32, [])],
        name if alone == "graph" else "g",
    )
    return model(g), x, other, dim


def safetensors_names(path):
    with open(path, "rb") as f:
        n = struct.unpack("<Q", f.read(8))[0]
        return set(json.loads(f.read(n))) - {"__metadata__"}


def names(bench):
    for i, name in enumerate(NAMES):
        for alone in ("param", "input", "output", "node", "value", "graph", "dim"):
            data, x, other, dim = named(name, alone)
            what = f"{alone} named {name[:40]!r}"
            path = save(bench, "named.onnx", data)
            status, said = ckc(
                bench,
                path,
                "--plan-only",
                "--quiet",
                "--dim",
                f"{dim}=2",
                "--json",
                "plan.json",
                "--dump=plan,memory",
            )
            if not bench.check(status in (0, 1), f"{what}: status {status}: {said[-300:]}"):
                continue
            bench.check(
                not any(ord(c) < 32 and c != "\n" for c in said),
                f"{what}: a control character in {said[-300:]!r}",
            )
            if status == 1:
                bench.check(
                    said.startswith("ckc: ") and "internal" not in said, f"{what}: {said[-300:]}"
                )
                continue
            with open(bench.path("plan.json"), encoding="utf-8") as f:
                plan = json.load(f)
            if alone == "param":
                bench.check(
                    name
                    in {t["name"] for t in plan["tensors"]} | {t["onnx"] for t in plan["tensors"]},
                    f"{what}: not in the plan",
                )
            status, said = ckc(bench, "inspect", path, "--json", "page.json")
            bench.check(status == 0, f"{what}: inspect: {said[-300:]}")
            with open(bench.path("page.json"), encoding="utf-8") as f:
                json.load(f)
            for made in ("plan.json", "page.json"):
                os.unlink(bench.path(made))
    bench.check(not os.path.exists(bench.path("owned")), "a name was executed")


def compiled_names(bench):
    """All names at once, through the C compiler, a step, a checkpoint and the way back to ONNX."""
    usable = [n for n in NAMES if n not in ("__metadata__", "adamw.m.w")]
    # as parameters p + name, inputs i + name, nodes n + name, values v + name
    nodes, weights, sums = [], [], []
    for k, name in enumerate(usable):
        weights.append(tensor("p" + name, F32, [3], values(3)))
        nodes.append(node("Mul", ["i" + usable[0], "p" + name], ["v" + name], name="n" + name))
        nodes.append(node("ReduceSum", ["v" + name], [f"s{k}"], keepdims=0))
        sums.append(f"s{k}")
    nodes += [node("Sum", sums, ["total"]), node("Mul", ["total", "total"], ["o" + usable[1]])]
    data = model(
        graph(
            nodes,
            weights,
            [info("i" + usable[0], F32, [2, 3])],
            [info("o" + usable[1], F32, [])],
            usable[2],
        )
    )
    path = save(bench, "evil.onnx", data)
    done = bench.ckc(path, "-o", "evil.so", "--emit-c", "src", "--train", "*")
    if not bench.must(done, "compile all names"):
        return
    bench.check(
        safetensors_names(bench.path("evil.safetensors")) == {"p" + n for n in usable},
        "names of the weights",
    )
    head = json.dumps(
        {"i" + usable[0]: {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}}
    ).encode()
    save(
        bench, "x.safetensors", struct.pack("<Q", len(head)) + head + struct.pack("<6f", *values(6))
    )
    done = bench.ckrun(
        "evil.so",
        "--inputs",
        "x.safetensors",
        "--steps",
        2,
        "--save",
        "c.safetensors",
        "--export-onnx",
        "back.onnx",
        "--grads",
        "g.safetensors",
        "--log",
        "log.jsonl",
        "--trace",
        "trace.json",
    )
    bench.must(done, "train all names")
    bench.check(
        not any(ord(c) < 32 and c not in "\n\r" for c in done.stderr + done.stdout),
        "control characters on the terminal",
    )
    if done.returncode == 0:
        bench.check(
            {"p" + n for n in usable} <= safetensors_names(bench.path("c.safetensors")),
            "names in the checkpoint",
        )
        bench.check(
            safetensors_names(bench.path("g.safetensors")) == {"p" + n for n in usable},
            "names of the gradients",
        )
        with open(bench.path("trace.json"), encoding="utf-8") as f:
            json.load(f)
        status, said = ckc(bench, "back.onnx", "--plan-only")
        bench.check(status == 0, f"the exported model: {said[-300:]}")
    bench.check(not os.path.exists(bench.path("owned")), "a name was executed")


def pictures(bench):
    """A drawing is XML whatever the file and the graph are called."""
    data = named("<script>&\x1b]]>", "graph")[0]
    for name in (
        b"<b>&'c\".onnx",
        b"x\x1b[2J.onnx",
        b"\xff\xfe.onnx",
        b"]]>.onnx",
        "\u202e.onnx".encode(),
        b"n\nm.onnx",
    ):
        with open(os.path.join(bench.work.encode(), name), "wb") as f:
            f.write(data)
        status, said = ckc(
            bench, name, "--plan-only", "--quiet", "--dim", "batch=2", "--curve-svg", "curve.svg"
        )
        bench.check(status == 0, f"a drawing of {name!r}: status {status}: {said[-300:]}")
        try:
            xml.dom.minidom.parse(bench.path("curve.svg"))
        except (OSError, xml.parsers.expat.ExpatError) as e:
            bench.check(False, f"the drawing of {name!r}: {e}")


# ---- sizes ----


def sized(op, constants, inputs=("x",), **attributes):
    """An operator behind a constant that wants too much."""
    inits = [
        tensor(
            f"c{i}", I64, [len(c)] if isinstance(c, list) else [], c if isinstance(c, list) else [c]
        )
        for i, c in enumerate(constants)
    ]
    nodes = [
        node(op, list(inputs) + [f"c{i}" for i in range(len(constants))], ["y"], **attributes),
        node("Cast", ["y"], ["f"], to=F32),
        node("Mul", ["f", "p.weight"], ["s"]),
        node("ReduceMean", ["s"], ["loss"], keepdims=0),
    ]
    return model(
        graph(
            nodes,
            inits + [tensor("p.weight", F32, [1], [0.5])],
            [info(i, F32, [2, 3]) for i in inputs],
            [info("loss", F32, [])],
        )
    )


def sizes(bench):
    big = 1 << 40
    for what, data in (
        ("ConstantOfShape", sized("ConstantOfShape", [[big, big]], ())),
        ("ConstantOfShape of 64 GB", sized("ConstantOfShape", [[1 << 17, 1 << 17]], ())),
        ("Expand", sized("Expand", [[big, 2, 3]])),
        ("Expand over", sized("Expand", [[1 << 62, 2, 3]])),
        ("Tile", sized("Tile", [[big, big]])),
        (
            "Tile of a constant",
            model(
                graph(
                    [
                        node("Tile", ["c", "r"], ["y"]),
                        node("Mul", ["y", "p.weight"], ["s"]),
                        node("ReduceMean", ["s"], ["loss"], keepdims=0),
                    ],
                    [
                        tensor("c", F32, [1], [1.0]),
                        tensor("r", I64, [1], [1 << 36]),
                        tensor("p.weight", F32, [1], [1.0]),
                    ],
                    [],
                    [info("loss", F32, [])],
                )
            ),
        ),
        ("Pad", sized("Pad", [[0, big, 0, big]])),
        ("Range", sized("Range", [0, 1 << 62, 1], ())),
        ("Range of step 0", sized("Range", [0, 5, 0], ())),
        ("Range of 2^40", sized("Range", [0, big, 1], ())),
        ("Reshape over", sized("Reshape", [[1 << 62, 1 << 62]])),
        ("Reshape -1 twice", sized("Reshape", [[-1, -1]])),
        ("Reshape negative", sized("Reshape", [[-7, 6]])),
        ("OneHot", sized("OneHot", [big], ("x",))),
        ("Slice step 0", sized("Slice", [[0], [2], [0], [0]])),
    ):
        refused(bench, what, None, data)
    # declared sizes
    for what, dims in (
        ("2^62", [1 << 31, 1 << 31]),
        ("2^64", [1 << 32, 1 << 32]),
        ("2^80", [big, big]),
        ("negative", [-5, 3]),
        ("2^63-1", [(1 << 63) - 1]),
    ):
        g = graph(
            [
                node("Mul", ["x", "w.weight"], ["y"]),
                node("ReduceMean", ["y"], ["loss"], keepdims=0),
            ],
            [tensor("w.weight", F32, dims, values(6))],
            [info("x", F32, dims)],
            [info("loss", F32, [])],
        )
        refused(
            bench,
            f"extents of {what}",
            ["elements", "bytes", "negative", "too large", "shape"],
            model(g),
        )
        g = graph(
            [
                node("Mul", ["x", "w.weight"], ["y"]),
                node("ReduceMean", ["y"], ["loss"], keepdims=0),
            ],
            [tensor("w.weight", F32, [1], [1.0])],
            [info("x", F32, dims)],
            [info("loss", F32, [])],
        )
        refused(bench, f"an input of {what}", None, model(g))
    for what, n in (("one byte more", 25), ("one less", 23), ("no multiple", 10), ("none", 0)):
        w = field(1, 2) + field(1, 3) + field(2, F32) + field(8, "w.weight") + field(9, bytes(n))
        refused(
            bench,
            f"raw data, {what}",
            ["bytes stored", "elements stored"],
            model(
                graph(
                    [node("Mul", ["x", "w.weight"], ["y"]), node("ReduceMean", ["y"], ["loss"])],
                    [w],
                    [info("x", F32, [2, 3])],
                    [info("loss", F32, [])],
                )
            ),
        )


# ---- forms that operators do not have ----


def forms(bench):
    case = seeds.case
    for what, data in (
        ("Conv of rank 2", case("Conv", ["x:2x3", "W:4x3x3x3"])),
        ("Conv weight of rank 1", case("Conv", ["x:1x3x8x8", "W:4"])),
        ("Conv group 0", case("Conv", ["x:1x3x8x8", "W:4x3x3x3"], group=0)),
        ("Conv group 2 of 3", case("Conv", ["x:1x3x8x8", "W:4x3x3x3"], group=2)),
        ("Conv stride 0", case("Conv", ["x:1x3x8x8", "W:4x3x3x3"], strides=[0, 1])),
        ("Conv pads", case("Conv", ["x:1x3x8x8", "W:4x3x3x3"], pads=[-9, 0, 0, 0])),
        ("Conv huge pads", case("Conv", ["x:1x3x8x8", "W:4x3x3x3"], pads=[1 << 62, 0, 1 << 62, 0])),
        ("Conv kernel larger", case("Conv", ["x:1x3x2x2", "W:4x3x3x3"])),
        ("Conv dilation", case("Conv", ["x:1x3x8x8", "W:4x3x3x3"], dilations=[1 << 62, 1])),
        ("ConvTranspose group", case("ConvTranspose", ["x:1x3x4x4", "W:3x2x2x2"], group=2)),
        (
            "ConvTranspose padding",
            case("ConvTranspose", ["x:1x3x4x4", "W:3x2x2x2"], output_padding=[1 << 40, 1]),
        ),
        ("MaxPool kernel 0", case("MaxPool", ["x:1x2x7x7"], kernel_shape=[0, 3])),
        ("MaxPool kernel", case("MaxPool", ["x:1x2x7x7"], kernel_shape=[1 << 62, 3])),
        ("MaxPool no kernel", case("MaxPool", ["x:1x2x7x7"])),
        ("AveragePool rank", case("AveragePool", ["x:3"], kernel_shape=[2])),
        ("LSTM rank", case("LSTM", ["x:3x4", "W:1x8x4", "R:1x8x2"], hidden_size=2)),
        ("GRU shapes", case("GRU", ["x:3x2x4", "W:1x5x4", "R:1x6x2"], hidden_size=2)),
        ("RNN hidden", case("RNN", ["x:3x2x4", "W:1x2x4", "R:1x2x2"], hidden_size=-2)),
        ("Slice of nothing", case("Slice", ["x:0x3", "i1:[0]", "i2:[5]", "i3:[0]", "i4:[-1]"])),
        ("Slice axes", case("Slice", ["x:4x6", "i1:[0]", "i2:[5]", "i3:[7]"])),
        ("Einsum scalar", case("Einsum", ["x:", "W:"], equation=",->")),
        ("Einsum empty", case("Einsum", ["x:2x3"], equation="")),
        ("Einsum letters", case("Einsum", ["x:2x3", "W:3"], equation="ijklmnopqrstuvwxyz,j->i")),
        ("Transpose perm", case("Transpose", ["x:2x3"], perm=[0, 0])),
        ("Transpose perm out", case("Transpose", ["x:2x3"], perm=[0, 9])),
        ("Softmax axis", case("Softmax", ["x:2x3"], axis=1 << 62)),
        ("Gather axis", case("Gather", ["W:5x4", "n:2"], axis=-9)),
        ("Split uneven", case("Split", ["x:2x6", "i:[2,5]"], nout=2, axis=1)),
        ("Split negative", case("Split", ["x:2x6", "i:[8,-2]"], nout=2, axis=1)),
        ("Split of none", case("Split", ["x:2x7"], nout=2, opset=18, axis=1, num_outputs=0)),
        ("Concat rank", case("Concat", ["x:2x3", "W:2"], axis=0)),
        (
            "GroupNormalization",
            case("GroupNormalization", ["x:2x4x4x4", "W:4", "V:4"], opset=21, num_groups=0),
        ),
        ("InstanceNormalization", case("InstanceNormalization", ["x:3", "W:3", "V:3"])),
        ("DepthToSpace", case("DepthToSpace", ["x:1x8x2x3"], blocksize=0)),
        ("SpaceToDepth", case("SpaceToDepth", ["x:1x2x4x6"], blocksize=1 << 40)),
        ("TopK", case("TopK", ["x:2x5", "i:[9]"], nout=2)),
        ("TopK negative", case("TopK", ["x:2x5", "i:[-1]"], nout=2)),
        ("Resize", case("Resize", ["x:1x2x3x3", "", "", "i:[1,2,-6,6]"], mode="linear")),
        (
            "Resize huge",
            case("Resize", ["x:1x2x3x3", "", "", f"i:[1,2,{1 << 40},{1 << 40}]"], mode="linear"),
        ),
        (
            "Attention heads",
            case(
                "Attention",
                ["x:1x4x16", "x2:1x6x8", "x3:1x6x8"],
                opset=23,
                q_num_heads=3,
                kv_num_heads=0,
            ),
        ),
        ("LRN size", case("LRN", ["x:1x5x3x3"], size=-1)),
        ("Dropout ratio", case("Dropout", ["x:2x3", "f:2", "b:1"])),
        ("MatMul", case("MatMul", ["x:2x3", "W:4x5"])),
        ("Gemm rank", case("Gemm", ["x:2x3x4", "W:4x3"])),
        ("Unsqueeze", case("Unsqueeze", ["x:2x3", "i:[0,0]"])),
        ("Div by zero", sized("Mod", [[0, 0, 0]], ("x",))),
        ("Eye", case("EyeLike", ["x:3x4"], k=1 << 62)),
        ("Flatten", case("Flatten", ["x:2x3"], axis=5)),
        ("ReduceSum", case("ReduceSum", ["x:2x3", "i:[5]"])),
        ("Cast", case("Cast", ["x:2x3"], to=99)),
        ("OneHot depth", case("OneHot", ["n:2x3", "i:-5", "F:2"])),
        ("BatchNormalization", case("BatchNormalization", ["x:2", "W:3", "V:3", "M:3", "U:3"])),
        ("SCE rank", case("SoftmaxCrossEntropyLoss", ["x:4", "n:4"])),
        ("Squeeze", case("Squeeze", ["x:2x3", "i:[0]"])),
    ):
        refused(bench, what, None, data)


# ---- structures without end ----


def function(name, calls, inputs=("a",)):
    f = field(1, name) + b"".join(field(4, i) for i in inputs) + field(5, f"b{len(calls) - 1}")
    for k, callee in enumerate(calls):
        f += field(
            7,
            node(
                callee,
                ["a" if k == 0 else f"b{k - 1}"],
                [f"b{k}"],
                "own" if callee.startswith("F") else "",
            ),
        )
    return (
        f
        + field(9, field(1, "own") + field(2, 1))
        + field(9, field(1, "") + field(2, 17))
        + field(10, "own")
    )


def calling(functions):
    g = graph(
        [
            node("F0", ["x"], ["y"], "own"),
            node("Mul", ["y", "p.weight"], ["s"]),
            node("ReduceMean", ["s"], ["loss"], keepdims=0),
        ],
        [tensor("p.weight", F32, [1], [1.0])],
        [info("x", F32, [2])],
        [info("loss", F32, [])],
    )
    return model(g, extra=field(8, field(1, "own") + field(2, 1)), functions=functions)


def nested(depth, wrap, inner):
    for _ in range(depth):
        inner = wrap(inner)
    return inner


def structures(bench):
    refused(
        bench, "a function that calls itself", ["calls itself"], calling([function("F0", ["F0"])])
    )
    refused(
        bench,
        "functions in a circle",
        ["calls itself"],
        calling([function("F0", ["F1"]), function("F1", ["F2"]), function("F2", ["F0"])]),
    )
    refused(
        bench,
        "functions that double",
        ["function calls", "nodes"],
        calling(
            [function(f"F{i}", [f"F{i + 1}"] * 2) for i in range(40)] + [function("F40", ["Relu"])]
        ),
    )
    refused(
        bench,
        "a chain of functions",
        ["nested deeper"],
        calling(
            [function(f"F{i}", [f"F{i + 1}"]) for i in range(200)] + [function("F200", ["Relu"])]
        ),
    )
    refused(
        bench,
        "a function twice",
        ["defined twice"],
        calling([function("F0", ["Relu"]), function("F0", ["Relu"])]),
    )
    for depth in (99, 1000, 10000):
        inner = nested(
            depth // 3,
            lambda g: graph(
                [field(4, "If") + field(5, field(1, "then_branch") + field(6, g) + field(20, 5))]
            ),
            graph([]),
        )
        refused(
            bench,
            f"{depth} messages deep",
            None if depth < 100 else ["nested deeper"],
            model(inner),
        )
    inner = nested(10000, lambda t: field(4, field(1, t)), field(1, field(1, F32)))
    refused(
        bench,
        "a type of types",
        ["nested deeper", "element type"],
        model(
            graph(
                [node("Relu", ["x"], ["y"])],
                [],
                [field(1, "x") + field(2, inner)],
                [info("y", F32, [])],
            )
        ),
    )
    # loops: of loops, without end, of nothing
    for what, trips, depth in (
        ("a loop of 2^40", 1 << 40, 1),
        ("loops in loops", 1000, 4),
        ("a loop of -1", -1, 1),
    ):
        body = graph(
            [node("Identity", ["cond"], ["cond2"]), node("Add", ["s", "s"], ["s2"])],
            [],
            [info("it", I64, []), info("cond", BOOL, []), info("s", F32, [2, 3])],
            [info("cond2", BOOL, []), info("s2", F32, [2, 3])],
            "body",
        )
        for _ in range(depth - 1):
            body = graph(
                [
                    node("Identity", ["cond"], ["cond2"]),
                    node("Loop", ["n", "cond", "s"], ["s2"], body=Graph(body)),
                ],
                [tensor("n", I64, [], [trips])],
                [info("it", I64, []), info("cond", BOOL, []), info("s", F32, [2, 3])],
                [info("cond2", BOOL, []), info("s2", F32, [2, 3])],
                "body",
            )
        refused(
            bench, what, None, seeds.case("Loop", [f"i:{trips}", "b:1", "W:2x3"], body=Graph(body))
        )
    for count in (-1, 0, 5, 1 << 40):
        body = graph(
            [node("Add", ["s", "e"], ["s2"])],
            [],
            [info("s", F32, [3]), info("e", F32, [3])],
            [info("s2", F32, [3])],
            "body",
        )
        refused(
            bench,
            f"Scan of {count} inputs",
            None,
            seeds.case("Scan", ["W:3", "x:4x3"], body=Graph(body), num_scan_inputs=count),
        )
    refused(
        bench,
        "a circle of nodes",
        ["cycle"],
        model(
            graph(
                [node("Relu", ["b"], ["a"]), node("Neg", ["a"], ["b"])],
                [],
                [],
                [info("b", F32, [])],
            )
        ),
    )
    many = field(1, b"") * 3000000
    refused(bench, "three million empty nodes", ["million messages"], model(many))
    long = graph(
        [node("Neg", ["x" if i == 0 else f"v{i - 1}"], [f"v{i}"]) for i in range(200000)],
        [],
        [info("x", F32, [1])],
        [info("v199999", F32, [1])],
    )
    refused(bench, "a chain of 200,000 nodes", None, model(long))
    refused(
        bench,
        "NUL in a name",
        ["NUL"],
        model(
            graph([node("Relu", ["x\0y"], ["y"])], [], [info("x", F32, [1])], [info("y", F32, [1])])
        ),
    )
    refused(bench, "two graphs", ["occurs twice"], model(graph([])) + field(7, graph([])))


def doubled(bench):
    """Sums of a value and its own image, one after the other: a walk back that does not remember
    where it was doubles at each."""
    # what is looked for: zeros in the padding of shards, and values that all samples share, along
    # one dim or in turns along two
    products = """
        input %x: f32[4,13]
        param %w: f32[13,15] = splat 0.1
        param %q: f32[15,7] = splat 0.1
        %h = tanh %x
        %v0 = matmul %h, %w"""
    shared = """
        input %x: f32[4,13]
        param %w: f32[13,15] = splat 0.1
        param %p: f32[1,13] = splat 0.1
        param %u: f32[13,13] = splat 0.1
        %e = expand %p {shape=[4,13]}
        %v0 = matmul %e, %u"""
    square = """
        input %x: f32[4,4]
        param %w: f32[4,4] = splat 0.1
        param %p: f32[1,1] = splat 0.1
        %v0 = expand %p {shape=[4,4]}"""
    level = """
        %t{0} = tanh %v{0}
        %v{1} = add %v{0}, %t{0}"""
    turned = """
        %t{0} = transpose %v{0} {{perm=[1,0]}}
        %a{0} = add %v{0}, %t{0}
        %v{1} = mul %a{0}, %v{0}"""
    product = """
        %y = matmul %v60, %q"""
    added = """
        %z = add %v60, %x
        %y = matmul %z, %w"""
    for flags, first, one, last in (
        (["--tp", "2"], products, level, product),
        (["--dp", "2"], shared, level, added),
        (["--dp", "2"], square, turned, added),
        (["--grad-accum", "2"], square, turned, added),
    ):
        body = "".join(one.format(i, i + 1) for i in range(60))
        loss = "\n\t%loss output = reduce_mean %y {keepdims=0}\n}\n"
        text = "graph @doubled {" + first + body + last + loss
        path = save(bench, "doubled.ck", text.encode())
        status, said = ckc(bench, path, "--plan-only", "--quiet", "--loss", "loss", *flags)
        bench.check(status == 0, f"doubled, {flags}: status {status}: {said[-300:]}")


def constants(bench):
    """Nodes of constants, each of them small: all together are computed up to a limit, and stay ops
    beyond it."""
    count = 6000
    lines = [f"\t%a{i} = mul %a{i - 1}, %b" for i in range(1, count + 1)]
    text = (
        "graph @f {\n\tconst %a0: f32[128,128] = splat 1\n\tconst %b: f32[128,128] = splat 1.0001\n\tinput %x: f32[128,128]\n"
        + "\n".join(lines)
        + f"\n\t%y output = add %x, %a{count}\n}}\n"
    )
    path = save(bench, "constants.ck", text.encode())
    for limit, least, most in ("4MiB", 1000, 3000), ("64KiB", 5000, 5900):
        done = subprocess.run(
            [bench.ckc_path, path, "--passes=fold", "--fold-limit", limit],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            timeout=10 * SECONDS,
        )
        left = done.stdout.count(" = mul ")
        bench.check(
            done.returncode == 0 and least < left < most,
            f"{count} nodes of constants, --fold-limit {limit}: {left} stay ops, expected {least} to {most}; {done.stderr}",
        )


# ---- files beside the model ----


def external(entries):
    w = (
        field(1, 4)
        + field(2, F32)
        + field(8, "w.weight")
        + field(14, 1)
        + b"".join(field(13, field(1, k) + field(2, v)) for k, v in entries)
    )
    g = graph(
        [node("Mul", ["x", "w.weight"], ["y"]), node("ReduceMean", ["y"], ["loss"], keepdims=0)],
        [w],
        [info("x", F32, [4])],
        [info("loss", F32, [])],
    )
    return model(g)


def paths(bench):
    save(bench, "w.data", struct.pack("<4f", 1, 2, 3, 4))
    save(bench, "sub/w.data", struct.pack("<4f", 1, 2, 3, 4))
    outside = os.path.join(os.path.dirname(bench.work), os.path.basename(bench.work) + "-outside")
    os.makedirs(outside)
    with open(os.path.join(outside, "w.data"), "wb") as f:
        f.write(bytes(16))
    os.symlink("w.data", bench.path("link.data"))
    os.symlink("sub", bench.path("linked"))
    os.symlink(outside, bench.path("out"))
    os.link(bench.path("sub/w.data"), bench.path("hard.data"))
    os.mkfifo(bench.path("pipe"))
    os.mkdir(bench.path("folder"))
    where = "../" + os.path.basename(outside) + "/w.data"

    def compile_of(entries):
        path = save(bench, "e.onnx", external(entries))
        status, said = ckc(bench, path, "-o", "e.so", "--cc", "false")
        return status, said.replace("false", "")

    for what, location in (
        ("..", where),
        (".. inside", "sub/../w.data"),
        ("a/../..", "sub/../" + where),
        ("absolute", os.path.join(outside, "w.data")),
        ("absolute of /", "/"),
        ("a link", "link.data"),
        ("a linked folder", "linked/w.data"),
        ("a folder that leads out", "out/w.data"),
        ("a hard link", "hard.data"),
        ("a pipe", "pipe"),
        ("a folder", "folder"),
        ("nothing", ""),
        ("a backslash", "..\\w.data"),
        ("a device", "/dev/zero"),
        ("proc", "/proc/self/mem"),
        ("a dot", "."),
        ("dots", ".."),
        ("missing", "gone.data"),
        ("the end is a slash", "w.data/"),
        ("a URL", "file:///etc/passwd"),
    ):
        status, said = compile_of([("location", location)])
        bench.check(
            status == 1 and "w.weight" in said,
            f"external data in {what}: status {status}: {said[-300:]}",
        )
    for what, entries in (
        ("offset -1", [("offset", "-1")]),
        ("offset 2^64", [("offset", str(1 << 64))]),
        ("offset behind", [("offset", "17")]),
        ("length behind", [("length", "32")]),
        ("both over", [("offset", str((1 << 63) - 8)), ("length", str((1 << 63) - 8))]),
        ("length short", [("length", "8")]),
        ("words", [("offset", "0x0")]),
        ("spaces", [("offset", " 0")]),
        ("twice", [("location", "link.data")]),
    ):
        status, said = compile_of([("location", "w.data")] + entries)
        bench.check(
            status == 1 and "w.weight" in said,
            f"external data with {what}: status {status}: {said[-300:]}",
        )

    def files(n):
        many = [
            field(1, 1)
            + field(2, F32)
            + field(8, f"w{i}.weight")
            + field(14, 1)
            + field(13, field(1, "location") + field(2, f"gone/{i}"))
            for i in range(n)
        ]
        sums = [
            node("Add", ["x" if i == 0 else f"s{i - 1}", f"w{i}.weight"], [f"s{i}"])
            for i in range(n)
        ]
        return model(
            graph(
                sums + [node("ReduceMean", [f"s{n - 1}"], ["loss"])],
                many,
                [info("x", F32, [1])],
                [info("loss", F32, [])],
            )
        )

    status, said = ckc(bench, save(bench, "many.onnx", files(40000)), "-o", "e.so")
    bench.check(
        status == 1 and "cannot be opened" in said, f"40,000 files: status {status}: {said[-300:]}"
    )
    # keys that other readers made attributes of are nothing here
    status, said = compile_of(
        [("location", "w.data"), ("__class__", "x"), ("basepath", "/etc"), ("checksum", "0")]
    )
    bench.check(
        status == 1 and ("basepath" in said or "__class__" in said or "cc" in said),
        f"odd keys: status {status}: {said[-300:]}",
    )
    bench.check(sorted(os.listdir(outside)) == ["w.data"], "something was written outside")
    os.unlink(os.path.join(outside, "w.data"))
    os.rmdir(outside)


def main():
    bench = ck.Bench()
    bench.sanitized = sanitized(bench.ckc_path, "ckc's addresses are not limited")
    names(bench)
    compiled_names(bench)
    pictures(bench)
    sizes(bench)
    forms(bench)
    structures(bench)
    doubled(bench)
    constants(bench)
    paths(bench)
    bench.finish()


if __name__ == "__main__":
    main()
