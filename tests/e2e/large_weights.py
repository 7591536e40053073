#!/usr/bin/env python3
"""Weights of any size: beside the mapping of the file, ckc needs little memory, and ckrun holds
them once.

    large_weights.py CKC CKRUN [BYTES]

A model of three products whose weights lie in an external file of 2.25 GiB, more than 31 bits
count, is compiled for inference.  The file is sparse, so that it costs no disk; the library's
weights do cost it, so the test is skipped (77) where 6.5 GiB are not free.  Memory is what /proc
says of the process while it runs: RssAnon, pages that belong to no file.
"""

import os
import shutil
import struct
import subprocess
import sys
import time

import ck
import wire
from wire import field

LAYERS = 3
LIMIT = 200 << 20


def anonymous(argv, cwd):
    """(exit status, stderr, most anonymous bytes seen, most bytes of any kind); with children."""
    said = os.path.join(cwd, "said")
    with open(said, "w") as err:
        process = subprocess.Popen(
            [str(a) for a in argv], cwd=cwd, stdout=subprocess.DEVNULL, stderr=err
        )
    most = 0
    while True:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            break
        try:
            with open(f"/proc/{process.pid}/status") as f:
                most = max(
                    [most]
                    + [int(line.split()[1]) << 10 for line in f if line.startswith("RssAnon:")]
                )
        except OSError:
            pass
        time.sleep(0.002)
    with open(said) as f:
        # of a process too short to be looked at, all pages are an upper bound
        return (
            os.waitstatus_to_exitcode(status),
            f.read(),
            most or usage.ru_maxrss << 10,
            usage.ru_maxrss << 10,
        )


def weight(name, dims, offset):
    n = 4 * dims[0] * dims[1]
    entries = {"location": "big.data", "offset": str(offset), "length": str(n)}
    return field(
        5,
        b"".join(field(1, d) for d in dims)
        + field(2, 1)
        + field(8, name.encode())
        + b"".join(
            field(13, field(1, k.encode()) + field(2, v.encode())) for k, v in entries.items()
        )
        + field(14, 1),
    ), n


def main():
    bench = ck.Bench()
    size = int(bench.names[0]) if bench.names else 9 << 28
    if shutil.disk_usage(bench.work).free < 2 * size + (2 << 30):
        print("skipped: too little disk")
        shutil.rmtree(bench.work)
        sys.exit(77)
    width = int((size / LAYERS / 4) ** 0.5) // 16 * 16
    nodes, weights, at, value = [], [], 0, "x"
    for i in range(LAYERS):
        raw, n = weight(f"layer.{i}.weight", [width, width], at)
        weights.append(raw)
        at += n
        nodes.append(wire.node("MatMul", [value, f"layer.{i}.weight"], f"v{i}"))
        value = f"v{i}"
    nodes.append(wire.node("ReduceMean", [value], "loss", keepdims=0))
    with open(bench.path("big.onnx"), "wb") as f:
        f.write(wire.graph(nodes, weights, {"x": (1, [4, width])}, ["loss"]))
    with open(bench.path("big.data"), "wb") as f:
        f.truncate(at)
        for i in range(LAYERS):  # a few real pages
            f.seek(i * (at // LAYERS))
            f.write(struct.pack("<f", 1.0) * 1024)
    print(f"weights: {at} bytes")
    for what, argv in (
        ("inspect", ["inspect", "big.onnx"]),
        ("plan", ["big.onnx", "--plan-only"]),
        ("train", ["big.onnx", "--plan-only", "--memory-budget", "100%"]),
        ("bf16", ["big.onnx", "--plan-only", "--dtype", "bf16"]),
        ("compile", ["big.onnx", "-o", "big.so", "--forward-only"]),
    ):
        status, said, most, peak = anonymous([bench.ckc_path, *argv], bench.work)
        bench.check(status == 0, f"{what}: status {status}: {said[-300:]}")
        bench.check(0 < most < LIMIT, f"{what}: {most >> 20} MiB beside the mapping")
        print(f"{what}: anonymous {most / 2**20:.1f} MiB, all pages {peak / 2**20:.1f} MiB")
    out = bench.path("big.safetensors")
    if bench.check(os.path.exists(out) and os.path.getsize(out) >= at, "the weights are written"):
        with open(bench.path("x.safetensors"), "wb") as f:
            head = b'{"x":{"dtype":"F32","shape":[4,%d],"data_offsets":[0,%d]}}' % (
                width,
                16 * width,
            )
            f.write(struct.pack("<Q", len(head)) + head + bytes(16 * width))
        status, said, most, peak = anonymous(
            [bench.ckrun_path, "big.so", "--inputs", "x.safetensors", "--blas", "own"], bench.work
        )
        bench.check(status == 0, f"run: status {status}: {said[-300:]}")
        bench.check(at <= most < at + LIMIT, f"run: {most >> 20} MiB for {at >> 20} MiB of weights")
        print(f"run: anonymous {most / 2**20:.1f} MiB, all pages {peak / 2**20:.1f} MiB")
    bench.finish()


if __name__ == "__main__":
    main()
