#!/usr/bin/env python3
"""External data: a plan without code is the plan of a compile.

    external.py CKC CKRUN

A model whose plan depends on contents: a causal mask too large to be taken for a shape, and a
norm's scale that the exporter merged with another one's. All of it lies in a file beside the model.
With the file, --plan-only, --curve, inspect and a compile tell of one plan; without it, planning
says what it assumes instead, and a compile is refused.
"""

import os
import re
import shutil

import numpy as np

import ck
import wire
from wire import field

ROWS, WIDTH = 160, 16  # a mask of 100 KiB


class Data:
    """Tensors that lie in a file of their own."""

    def __init__(self, path):
        self.path, self.bytes = path, b""

    def tensor(self, name, array):
        array = np.ascontiguousarray(array, "<f4")
        entries = {
            "location": os.path.basename(self.path),
            "offset": len(self.bytes),
            "length": array.nbytes,
        }
        self.bytes += array.tobytes()
        return field(
            5,
            b"".join(field(1, d) for d in array.shape)
            + field(2, 1)
            + field(8, name)
            + b"".join(field(13, field(1, k) + field(2, str(v))) for k, v in entries.items())
            + field(14, 1),
        )

    def write(self):
        with open(self.path, "wb") as f:
            f.write(self.bytes)


def attention(path):
    """Two layers of normed attention; the second norm's scale is in the file under the first one's
    name."""
    rng, data = np.random.default_rng(1), Data(path + ".data")
    held = [
        data.tensor("mask", np.triu(np.full((ROWS, ROWS), -1e30), 1)),
        data.tensor("a.norm.weight", np.ones(WIDTH)),
        data.tensor("a.norm.bias", np.arange(WIDTH) / 9.0),
        wire.ints("axes", [1]),
    ]
    nodes, x = [], "x"
    for layer in "ab":
        norm = ["a.norm.weight" if layer == "a" else "b.norm.weight", "a.norm.bias"]
        if layer == "b":
            nodes.append(wire.node("Identity", ["a.norm.weight"], "b.norm.weight"))
        held += [
            data.tensor(f"{layer}.{w}.weight", rng.normal(0, 0.2, (WIDTH, WIDTH))) for w in "qkv"
        ]
        n = [f"{layer}_{what}" for what in ("n", "q", "k", "v", "t", "s", "m", "p", "y", "r")]
        nodes += [wire.node("LayerNormalization", [x] + norm, n[0])] + [
            wire.node("MatMul", [n[0], f"{layer}.{w}.weight"], n[1 + i])
            for i, w in enumerate("qkv")
        ]
        nodes += [
            wire.node("Transpose", [n[2]], n[4], perm=[0, 2, 1]),
            wire.node("MatMul", [n[1], n[4]], n[5]),
            wire.node("Add", [n[5], "mask"], n[6]),
            wire.node("Softmax", [n[6]], n[7], axis=-1),
            wire.node("MatMul", [n[7], n[3]], n[8]),
            wire.node("Add", [x, n[8]], n[9]),
        ]
        x = n[9]
    nodes.append(wire.node("ReduceMean", [x], "loss", keepdims=0))
    with open(path, "wb") as f:
        f.write(wire.graph(nodes, held, {"x": (1, [2, ROWS, WIDTH])}, ["loss"]))
    data.write()


def tables(path):
    """What a damaged export holds: a table of sines, a matrix and the same transposed under a
    made-up name."""
    rng, data = np.random.default_rng(2), Data(path + ".data")
    angle = np.arange(8)[:, None] / 100.0 ** (np.arange(0, 8, 2) / 8)
    sines = np.stack([np.sin(angle), np.cos(angle)], 2).reshape(8, 8)
    w = rng.normal(0, 1, (8, 8))
    held = [
        data.tensor("positions.weight", sines),
        data.tensor("head.weight", w),
        data.tensor("onnx::MatMul_7", w.T),
    ]
    nodes = [
        wire.node("Add", ["x", "positions.weight"], "a"),
        wire.node("MatMul", ["a", "head.weight"], "b"),
        wire.node("MatMul", ["b", "onnx::MatMul_7"], "c"),
        wire.node("ReduceMean", ["c"], "loss", keepdims=0),
    ]
    with open(path, "wb") as f:
        f.write(wire.graph(nodes, held, {"x": (1, [8, 8])}, ["loss"]))
    data.write()


def planned(bench, *argv):
    """The plan but for the flags, or None."""
    js = bench.path("plan.json")
    if not bench.must(bench.ckc(*argv, "--quiet", "--json", js), argv):
        return None
    plan = ck.plan(js)
    plan.pop("flags")
    return plan


def least(bench, path, *flags):
    found = ck.ERRORS.search(bench.ckc(path, "--memory-budget", "1B", *flags).stderr)
    return bench.check(found, f"{path} {flags}: no least budget") and int(found[1])


def one_plan(bench, path):
    """Whichever way it is asked for."""
    code = "-o", bench.path("x.so")
    ours, compiled = planned(bench, path, "--plan-only"), planned(bench, path, *code)
    bench.check(ours and ours == compiled, f"{path}: --plan-only plans otherwise than a compile")
    if not compiled:
        return 0
    peak, need = compiled["summary"]["peak_bytes"], least(bench, path, "--plan-only")
    bench.check(need == least(bench, path, *code), f"{path}: two least budgets")
    done = bench.ckc(
        path, *code, "--memory-budget", need, "--cc", "false"
    )  # asked for when all else is done
    bench.check("C compiler 'false'" in done.stderr, f"{path}: the least budget: {done.stderr}")
    curve = planned(bench, path, "--curve")
    bench.check(
        curve
        and curve["summary"]["peak_bytes"] == peak
        and curve["curve"][0]["peak_bytes"] <= need
        and max(p["peak_bytes"] for p in curve["curve"]) == peak,
        f"{path}: the curve is of another model",
    )
    js = bench.path("inspect.json")
    bench.must(bench.ckc("inspect", path, "--json", js), "inspect")
    bench.check(
        ck.plan(js)["step_bytes"] == peak,
        f"{path}: inspect {ck.plan(js)['step_bytes']}, a compile {peak}",
    )
    return peak


def without(bench, path, spoil, said):
    """Planning goes on from shapes and says so, once; a compile is refused."""
    spoil(path + ".data")
    done = bench.ckc(path, "--plan-only")
    bench.must(done, f"{path}, {said}: plan")
    bench.check(
        done.stderr.count("external data") == 1
        and said in done.stderr
        and "several norms share as tied" in done.stderr
        and "masks" in done.stderr,
        f"{path}, {said}: {done.stderr}",
    )
    peak = int(re.search(r"\((\d+) B;", done.stderr)[1])
    done = bench.ckc(path, "-o", bench.path("no.so"))
    bench.check(
        done.returncode == 1 and said in done.stderr,
        f"{path}, {said}: a compile: {done.returncode} {done.stderr}",
    )
    bench.check(not os.path.exists(bench.path("no.so")), "a library without weights")
    done = bench.ckc("inspect", path)
    bench.check(
        done.returncode == 1
        and said in done.stderr
        and "several norms share as tied" in done.stdout,
        f"{path}, {said}: inspect: {done.returncode} {done.stderr}",
    )
    return peak


def main():
    bench = ck.Bench()
    path = bench.path("attention.onnx")
    attention(path)
    peak = one_plan(bench, path)
    shutil.copy(path + ".data", bench.path("kept"))
    for argv in ["inspect", path], [path, "--plan-only"]:
        done = bench.ckc(*argv, "--json", path + ".data")
        bench.check(
            done.returncode == 1 and "would be overwritten" in done.stderr,
            f"{argv}: a report over the weights: {done.returncode} {done.stderr}",
        )
    bench.check(
        ck.content(path + ".data") == ck.content(bench.path("kept")),
        "weights were overwritten by a report",
    )
    for spoil, said in (
        (lambda p: os.truncate(p, 1000), "ends at byte 1000"),
        (os.unlink, "No such file"),
        (lambda p: os.symlink("kept", p), "symbolic link"),
    ):
        other = without(bench, path, spoil, said)
        bench.check(other > peak, f"{said}: {other} B without contents, {peak} B with them")
    path = bench.path("tables.onnx")
    tables(path)
    page = bench.ckc("inspect", path).stdout
    bench.check(
        "'positions.weight' looks like a fixed sinusoidal table" in page,
        f"a table of sines: {page}",
    )
    bench.check(
        "'onnx::MatMul_7' is the transpose of 'head.weight'" in page, f"a tie split in two: {page}"
    )
    bench.finish()


if __name__ == "__main__":
    main()
