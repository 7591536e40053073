#!/usr/bin/env python3
"""Which compiler made a library does not show in what it trains: losses and parameters of gcc's and
clang's have the same bits.

    compilers.py CKC CKRUN

A compiler brings an OpenMP of its own, which need not be the run time's: with two threads,
convolutions, attention, a recurrence and 16-bit products are called from threads that the run
time's OpenMP never saw.  Products of bf16 are oneDNN's where it has them.  Skipped where one of the
two cannot make a library.
"""

import hashlib
import os
import re
import shutil
import sys

import ck

MODELS = ["unet-dynamo", "resnet-dynamo-bn", "bert-cls-dynamo", "gpt2-dropout-ts17", "llama-dynamo"]
CASES = [(name, []) for name in MODELS] + [
    ("unet-dynamo", ["--dtype", "bf16"]),
    ("bert-cls-dynamo", ["--dtype", "bf16"]),
    ("gpt2-dropout-ts17", ["--dtype", "bf16"]),
]


def blas_of(bench, so, name, flags):
    """ckrun's flags for oneDNN's products of bf16, if the library has them here."""
    blas = ["--blas", "onednn-bf16"]
    inputs = os.path.join(ck.MODELS, name + ".inputs.safetensors")
    tried = bench.ckrun(so, "--inputs", inputs, "--steps", 1, *blas) if flags else None
    return blas if tried and tried.returncode == 0 else []


def trained(bench, so, name, threads, what, blas):
    """Losses as they are printed and a hash of the checkpoint, which holds every bit of parameters
    and moments."""
    saved = bench.path("trained")
    done = bench.ckrun(
        so,
        "--inputs",
        os.path.join(ck.MODELS, name + ".inputs.safetensors"),
        "--steps",
        4,
        "--threads",
        threads,
        "--save",
        saved,
        *blas,
    )
    if not bench.must(done, what):
        return None
    with open(saved, "rb") as f:
        return re.findall(r"loss (\S+)", done.stdout + done.stderr), hashlib.sha256(
            f.read()
        ).hexdigest()


def main():
    bench = ck.Bench()
    for cc in ("gcc", "clang"):
        with open(bench.path("try.c"), "w") as f:
            f.write(
                "int omp_get_thread_num(void);\nint f(void)\n{\n\tint n = 0;\n#pragma omp parallel reduction(+:n)\n\tn += omp_get_thread_num();\n"
                "\treturn n;\n}\n"
            )
        if (
            not shutil.which(cc)
            or bench.run(
                [
                    cc,
                    "-fopenmp",
                    "-fPIC",
                    "-shared",
                    "-o",
                    bench.path("try.so"),
                    bench.path("try.c"),
                ]
            ).returncode
        ):
            shutil.rmtree(bench.work, ignore_errors=True)
            print(f"compilers: {cc} with OpenMP is not installed (Debian: gcc, clang, libomp-dev)")
            sys.exit(77)
    for name, more in CASES:
        want = blas = None
        for cc in ("gcc", "clang"):
            what = " ".join([name, *more, cc])
            so = bench.path("m.so")
            if not bench.must(
                bench.ckc(
                    os.path.join(ck.MODELS, name + ".onnx"), "-o", so, "--cc", cc, "--quiet", *more
                ),
                what,
            ):
                continue
            if blas is None:
                blas = blas_of(bench, so, name, more)
            for threads in (1, 2, 2, 2, 3):
                got = trained(bench, so, name, threads, f"{what}, {threads} threads", blas)
                want = want or got
                bench.check(
                    got == want, f"{what}, {threads} threads: {got}, gcc's on one thread {want}"
                )
        bench.check(want and len(want[0]) == 4, f"{name}: losses {want}")
    bench.finish()


if __name__ == "__main__":
    main()
