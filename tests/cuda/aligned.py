#!/usr/bin/env python3
"""Operands of 16-bit products are such as tensor cores load fastest, with an odd vocabulary, too.

    aligned.py CKC CKRUN NVCC GPT

The emulated library has no algorithm for operands whose columns do not begin at multiples of 16
bytes.  The logits are padded in the classifier's workspace; the tied weight has rows of the
model's width.  An untied weight has rows of the vocabulary, which only the user can pad.
"""

import os
import re
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
for folder in ("../e2e", "../bench/gpu"):
    sys.path.insert(0, os.path.join(HERE, folder))
import ck
import kernels

WIDTH = 64
SHAPE = f"--layers 2 --hidden {WIDTH} --heads 2 --seq 64 --batch 4 --vocab 1031 --weights".split()


def log_of(bench):
    with open(bench.path("launches"), encoding="utf-8") as f:
        return f.read()


def refused(bench, data, flags):
    """Epilogues that the library has no algorithm for are named, once each.  Sums of columns have
    blocks for 8 columns each."""
    so = bench.path("gpt.so")
    bench.must(bench.ckc("gpt.onnx", "-o", so, *flags), "ckc gpt")
    for env, n in ({}, 0), ({"CKR_FAKE_NO_EPILOGUE": "1"}, 1):
        launches = {"CKR_EMULATE_LAUNCHES": bench.path("launches")}
        done = bench.ckrun(so, *data[:-1], 3, env={**env, **launches})
        bench.must(done, f"{env}")
        columns = [int(x) for x in re.findall(r"ckr_columns_kernel\S*\t(\d+)", log_of(bench))]
        bench.check(
            columns and min(columns) >= WIDTH // 8,
            f"sums of columns have {columns} blocks, expected one for each 8 of at least {WIDTH}",
        )
        for name in "bgrada", "dgelu-bgrad":
            text = f"without epilogue {name}"
            bench.check(
                len(re.findall(text + r"\b(?!-)", done.stdout)) == n,
                f"{env}: expected '{text}' {n} times in: {done.stdout}",
            )


def recorded(bench):
    """kernels.py finds all calls of a step in what is emitted: their times are the planned step."""
    plan = bench.path("plan.json")
    with tempfile.TemporaryDirectory() as folder:
        flags = ["--loss", "loss", "--dtype", "bf16", "--json", plan]
        kernels.emit(bench.ckc_path, bench.path("gpt.onnx"), flags, folder)
        calls = kernels.calls(folder)
    found, want = sum(c.count * c.planned for c in calls), ck.plan(plan)["summary"]["step_seconds"]
    bench.check(abs(found / want - 1) < 0.01, f"calls take {found} s of a step of {want} s")
    bench.check(any(c.launches for c in calls), "no launches were recorded")


def main():
    nvcc, gpt = (os.path.abspath(x) for x in sys.argv[3:5])
    del sys.argv[3:5]
    bench = ck.Bench()
    for name, *more in ("gpt",), ("untied", "--untied"):
        bench.must(bench.run([gpt, *SHAPE, *more, "-o", name + ".onnx"]), name)
    with open(bench.path("tokens"), "wb") as f:
        f.write(bytes(4096))
    data = ["--data", bench.path("tokens"), "--tokens", "u16", "--steps", 1]
    for dtype in "bf16", "f16":
        flags = ["--loss", "loss", "--target", "cuda", "--dtype", dtype, "--nvcc", nvcc]
        for name, ok in ("gpt", True), ("untied", False):
            so = bench.path(name + ".so")
            bench.must(bench.ckc(name + ".onnx", "-o", so, *flags), f"ckc {name} {dtype}")
            done = bench.ckrun(so, *data, env={"CKR_FAKE_ALIGNED": "1"})
            bench.check(
                done.returncode == 0 if ok else "no algorithm" in done.stderr,
                f"{name}, {dtype}: {done.returncode} {done.stderr[-300:]}",
            )
    refused(bench, data, flags)
    recorded(bench)
    bench.finish()


if __name__ == "__main__":
    main()
