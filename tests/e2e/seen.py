"""A model that gives back what it is fed, so that tests see which samples come."""

import os
import struct

import ck
import numpy as np
import wire

TYPES = {"f4": (1, "F32"), "i8": (7, "I64"), "i4": (6, "I32")}
NUMPY = {"F32": "<f4", "I64": "<i8", "I32": "<i4"}


def compiled(bench, name, **inputs):
    """inputs: NAME=(type, shape) of numpy; outputs are their negatives."""
    nodes = b"".join(wire.node("Neg", [k], "seen_" + k) for k in inputs) + wire.field(2, b"g")
    nodes += b"".join(
        wire.field(11, wire.value_info(k, TYPES[t][0], s)) for k, (t, s) in inputs.items()
    )
    nodes += b"".join(
        wire.field(12, wire.value_info("seen_" + k, TYPES[t][0], s)) for k, (t, s) in inputs.items()
    )
    path = bench.path(name + ".onnx")
    with open(path, "wb") as f:
        f.write(wire.a_model(nodes))
    bench.must(
        bench.ckc(path, "-o", path[:-5] + ".so", "--quiet", "--threads", 1, "--forward-only"),
        f"compile {path}",
    )
    return path[:-5] + ".so"


def batch(bench, so, *args):
    """What the last step is fed: {input: array}, {} after a failure."""
    out = bench.path("seen.st")
    if not bench.must(
        bench.ckrun(so, *args, "--outputs", out, "--quiet"), f"{os.path.basename(so)} {args}"
    ):
        return {}
    return {
        k[5:]: -np.frombuffer(raw, NUMPY[t]).reshape(shape)
        for k, (t, shape, raw) in ck.tensors(out).items()
    }


def batches(bench, so, first, last, *args):
    return [batch(bench, so, *args, "--steps", k) for k in range(first, last + 1)]


def refused(bench, so, *args, told=(), status=1, env=None):
    """A message, one, with these texts in it."""
    done = bench.ckrun(so, *args, env=env)
    bench.check(
        done.returncode == status, f"{args}: status {done.returncode}: {done.stdout}{done.stderr}"
    )
    bench.check(done.stderr.count("ckrun: ") == 1, f"{args}: {done.stderr}")
    for text in told:
        bench.check(text in done.stderr, f"{args}: not said '{text}':\n{done.stderr}")


def write_raw(path, code, values):
    with open(path, "wb") as f:
        f.write(struct.pack(f"<{len(values)}{code}", *values))
