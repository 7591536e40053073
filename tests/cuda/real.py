#!/usr/bin/env python3
"""NVIDIA's own compiler takes what is emitted: no spills and no stack frames in hot kernels, tensor
cores and vector loads used.

    real.py CKC GPT [NVCC]

Skipped (status 77) where there is no nvcc; the script toolkit beside this file gets one, NVCC.  GPT
writes the models.  Nothing runs: that takes a GPU.
"""

import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "e2e"))
import ck

HOT = re.compile(r"flash|layernorm|norm_grad|classifier_rows|adamw|loop_|softmax")


def nvcc(other):
    for at in (os.environ.get("NVCC"), shutil.which("nvcc"), "/usr/local/cuda/bin/nvcc", *other):
        if at and os.access(at, os.X_OK):
            return at
    return None


def frames(log):
    """{kernel: (bytes of stack frame, bytes of spills)} of what ptxas says."""
    found, kernel = {}, None
    for line in log.splitlines():
        at = re.search(r"Compiling entry function '(\S+)'", line)
        kernel = at[1] if at else kernel
        m = re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores", line)
        if m and kernel:
            found[kernel] = (int(m[1]), int(m[2]))
    return found


def main():
    gpt = os.path.abspath(sys.argv[2])
    compiler = nvcc(sys.argv[3:])
    del sys.argv[2:]
    if not compiler:
        print("no nvcc: what is emitted was not compiled for a GPU; tests/cuda/toolkit gets one")
        sys.exit(77)
    sys.argv.append("")  # ckrun is not needed
    bench = ck.Bench()
    bench.must(
        bench.run(
            [
                gpt,
                "--layers",
                1,
                "--hidden",
                256,
                "--heads",
                4,
                "--seq",
                128,
                "--batch",
                2,
                "--vocab",
                65,
                "--weights",
                "-o",
                "gpt.onnx",
            ]
        ),
        "gpt",
    )
    with open(bench.path("nvcc"), "w") as f:
        f.write(f"#!/bin/sh\nexec '{compiler}' -Xptxas=-v \"$@\" 2>>'{bench.path('log')}'\n")
    os.chmod(bench.path("nvcc"), 0o755)
    for dtype in "bf16", "f32":
        open(bench.path("log"), "w").close()
        done = bench.ckc(
            "gpt.onnx",
            "-o",
            "gpt.so",
            "--loss",
            "loss",
            "--target",
            "cuda",
            "--dtype",
            dtype,
            "--nvcc",
            bench.path("nvcc"),
        )
        if not bench.must(done, f"ckc {dtype}"):
            continue
        found = frames(ck.content(bench.path("log")).decode())
        bench.check(len(found) > 10, f"{dtype}: ptxas tells of {len(found)} kernels")
        for kernel, (frame, spills) in found.items():
            bench.check("ckr" in kernel, f"{dtype}: {kernel}: tools select our kernels by ckr")
            if HOT.search(kernel):
                bench.check(
                    frame == 0 and spills == 0,
                    f"{dtype}: {kernel}: {frame} bytes of stack, {spills} of spills",
                )
        tool = os.path.join(os.path.dirname(compiler), "cuobjdump")
        if os.access(tool, os.X_OK):
            sass = subprocess.run(
                [tool, "-sass", bench.path("gpt.so")], stdout=subprocess.PIPE, text=True
            ).stdout
            bench.check("LDG.E.128" in sass, f"{dtype}: no loads of 128 bits")
            if dtype == "bf16":
                bench.check("HMMA" in sass, "bf16: no tensor cores")
    bench.finish()


if __name__ == "__main__":
    main()
