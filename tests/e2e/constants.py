#!/usr/bin/env python3
"""Zero is a value, and what is constant costs what it is worth.

    constants.py CKC CKRUN

Parameters that start at zero are trained where their names are their own: one step of SGD is
compared with the formula.  Weights of zeros plan as others do, and as none.  A model whose 24
layers each build a causal mask of 8192 x 8192 is planned in little memory, with attention that
needs no mask; one whose constants nobody could hold is refused in words.
"""

import json

import numpy as np

import ck
import external
import large_weights
import wire
from wire import field

ROWS, WIDTH, RATE = 4, 6, 0.5
OWN = ["_pos", "_net.bias", "val_net.bias", "val_table", "m._gate", "lora_B", "0.scale"]
MADE_UP = [
    "val_12",
    "onnx::Add_3",
    "17",
    "/net/Constant_output_0",
    "_to_copy",
    "_to_copy_2",
    "lifted_tensor_0",
]
KEYS, LAYERS = 8192, 24


def sums(names, signature=None):
    """mean((x + the sum of all)^2), as PyTorch wrote it."""
    nodes, last = [], "x"
    for i, name in enumerate(names):
        nodes.append(wire.node("Add", [last, name], f"sum{i}"))
        last = f"sum{i}"
    nodes += [
        wire.node("Mul", [last, last], "square"),
        wire.node("ReduceMean", ["square"], "loss", keepdims=0),
    ]
    held = [wire.floats(name, [ROWS, WIDTH], [0.0] * (ROWS * WIDTH)) for name in names]
    model = wire.graph(nodes, held, {"x": (1, [ROWS, WIDTH])}, ["loss"]) + field(2, "pytorch")
    if signature:
        model += field(
            14, field(1, "pkg.torch.export.ExportedProgram.graph_signature") + field(2, signature)
        )
    return model


def check_zeros(b, what, model, trained, not_trained):
    """One step from zero moves what is trained by its gradient, 2 x / N, and nothing else."""
    path, so, out, x = (
        b.path(n) for n in ("z.onnx", "z.so", "trained.safetensors", "x.safetensors")
    )
    with open(path, "wb") as f:
        f.write(model)
    values = np.random.default_rng(3).normal(size=(ROWS, WIDTH)).astype("<f4")
    head = json.dumps(
        {"x": {"dtype": "F32", "shape": [ROWS, WIDTH], "data_offsets": [0, values.nbytes]}}
    ).encode()
    with open(x, "wb") as f:
        f.write(len(head).to_bytes(8, "little") + head + values.tobytes())
    done = b.ckc(path, "-o", so, "--optimizer", "sgd", "--cc", "cc -O1")
    if not b.must(done, what) or not b.must(
        b.ckrun(so, "--inputs", x, "--steps", "1", "--lr", str(RATE), "--save", out), what
    ):
        return
    saved = {
        name: np.frombuffer(raw, "<f4").reshape(shape)
        for name, (_, shape, raw) in ck.tensors(out).items()
        if shape == [ROWS, WIDTH]
    }
    for name in trained:
        got = saved.get(name)
        b.check(
            got is not None
            and np.allclose(got, -RATE * 2 * values / values.size, rtol=1e-5, atol=1e-8),
            f"{what}: '{name}' is not trained as it should be: {got}",
        )
    for name in not_trained:
        b.check(
            name not in saved and f"'{name}'" in done.stderr + b.ckc("inspect", path).stdout,
            f"{what}: '{name}' is trained, or frozen without a word",
        )


def weights(b):
    """Weights of zeros, of any numbers, and none at all: one plan."""
    path, plans, said = b.path("w.onnx"), [], []
    external.attention(path)
    data = path + ".data"
    with open(data, "rb") as f:
        whole = f.read()
    mask = external.ROWS**2 * 4  # contents of the mask and the norms say what the model is
    head = mask + 2 * external.WIDTH * 4
    for contents in (whole, whole[:head] + b"\0" * (len(whole) - head)):
        with open(data, "wb") as f:
            f.write(contents)
        done = b.ckc(path, "--plan-only", "--dump=plan")
        b.must(done, "weights")
        plans.append(done.stdout)
        said.append(done.stderr.replace(path, ""))
    b.check(plans[0] == plans[1] and said[0] == said[1], f"weights of zeros plan otherwise: {said}")


def masks(layers, keys):
    """Attention by a mask that each layer makes of numbers of its own."""
    nodes, held, x = [], [wire.ints("rows", [1]), wire.ints("cols", [0])], "x"
    for i in range(layers):
        n = {
            k: f"{k}{i}"
            for k in (
                "from",
                "to",
                "by",
                "range",
                "row",
                "col",
                "see",
                "zero",
                "low",
                "mask",
                "turned",
                "scores",
                "masked",
                "p",
                "y",
            )
        }
        for k, value in (("from", 0), ("to", keys), ("by", 1)):
            held.append(field(5, field(2, 7) + field(8, n[k]) + field(7, wire.varint(value))))
        for k, value in (("zero", 0.0), ("low", -3.4028234663852886e38)):
            held.append(wire.floats(n[k], [], [value]))
        nodes += [
            wire.node("Range", [n["from"], n["to"], n["by"]], n["range"]),
            wire.node("Unsqueeze", [n["range"], "rows"], n["row"]),
            wire.node("Unsqueeze", [n["range"], "cols"], n["col"]),
            wire.node("LessOrEqual", [n["col"], n["row"]], n["see"]),
            wire.node("Where", [n["see"], n["zero"], n["low"]], n["mask"]),
            wire.node("Transpose", [x], n["turned"], perm=[0, 2, 1]),
            wire.node("MatMul", [x, n["turned"]], n["scores"]),
            wire.node("Add", [n["scores"], n["mask"]], n["masked"]),
            wire.node("Softmax", [n["masked"]], n["p"], axis=-1),
            wire.node("MatMul", [n["p"], x], n["y"]),
        ]
        x = n["y"]
    nodes += [
        wire.node("MatMul", [x, "w"], "z"),
        wire.node("ReduceMean", ["z"], "loss", keepdims=0),
    ]
    held.append(wire.floats("w", [8, 1], [0.1] * 8))
    return wire.graph(nodes, held, {"x": (1, [1, keys, 8])}, ["loss"])


def bounded(b):
    path = b.path("m.onnx")
    with open(path, "wb") as f:
        f.write(masks(LAYERS, KEYS))
    status, said, _, most = large_weights.anonymous(
        [b.ckc_path, path, "--plan-only", "--train", "w", "--json", b.path("m.json")], b.work
    )
    if not b.check(status == 0, f"masks: status {status}: {said}"):
        return
    plan = ck.plan(b.path("m.json"))
    peak = plan["summary"]["peak_bytes"]
    b.check(most < 150 << 20, f"masks: planning takes {most >> 20} MiB")
    b.check(peak < KEYS * KEYS, f"masks: a step owns {peak} bytes, a mask of bits {KEYS * KEYS}")


def main():
    b = ck.Bench()
    check_zeros(b, "TorchScript", sums(OWN + MADE_UP), OWN, MADE_UP)
    check_zeros(
        b,
        "dynamo",
        sums(
            ["gate", "m.scale", "val_3", "expand"],
            "p_gate: PARAMETER target='gate'\np_s: PARAMETER target='m.scale'\n",
        ),
        ["gate", "m.scale"],
        ["val_3", "expand"],
    )
    weights(b)
    bounded(b)
    b.finish()


if __name__ == "__main__":
    main()
