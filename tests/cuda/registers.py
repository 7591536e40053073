#!/usr/bin/env python3
"""A block of each launch has registers for all its threads, as NVIDIA's assembler counts them.

    registers.py CKC CKRUN GPT [NVCC]

Skipped (status 77) where there is no nvcc; the script toolkit beside this file gets one, NVCC.  GPT
writes the models.  Launches are those of the emulated GPU.
"""

import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "e2e"))
import ck
from real import nvcc


def launches(bench, dtype, log):
    """Kernels of a step are in the assembler's log, and a block has registers for all its threads.
    Too many in the log are noticed."""
    so = bench.path("emulated.so")
    emulated = os.path.join(HERE, "nvcc")
    flags = ["--loss", "loss", "--target", "cuda", "--dtype", dtype, "--nvcc", emulated]
    bench.must(bench.ckc("gpt.onnx", "-o", so, *flags), f"ckc {dtype}, emulated")
    with open(bench.path("tokens"), "wb") as f:
        f.write(bytes(4096))
    many = re.sub(r"Used \d+ registers", "Used 80 registers", log)
    for text, ok in (log, True), (many, False):
        with open(bench.path("registers"), "w", encoding="utf-8") as f:
            f.write(text)
        done = bench.ckrun(
            so,
            "--data",
            bench.path("tokens"),
            "--tokens",
            "u16",
            "--steps",
            1,
            env={"CKR_EMULATE_REGISTERS": bench.path("registers")},
        )
        bench.check(
            done.returncode == 0 if ok else "1024 threads of 80 registers" in done.stderr,
            f"{dtype}: registers, {ok}: {done.returncode} {done.stderr[-300:]}",
        )


def main():
    gpt = os.path.abspath(sys.argv[3])
    compiler = nvcc(sys.argv[4:])
    del sys.argv[3:]
    if not compiler:
        print("no nvcc: what is emitted was not compiled for a GPU; tests/cuda/toolkit gets one")
        sys.exit(77)
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
        log = ck.content(bench.path("log")).decode()
        for kernel in re.findall(r"Compiling entry function '(\S+)'", log):
            bench.check("ckr" in kernel, f"{dtype}: {kernel}: tools select our kernels by ckr")
        launches(bench, dtype, log)
    bench.finish()


if __name__ == "__main__":
    main()
