#!/usr/bin/env python3
"""--grads: the gradients that the optimizer gets.

    grads.py CKC CKRUN

The same inputs in every micro-batch have the same gradients as one batch: the interpreter's.
"""

import os

import ck
from truth import SHALLOW, Truth


def main():
    bench = ck.Bench()
    stem = os.path.join(ck.MODELS, "mlp-mse")
    flags, inputs = ck.model_flags(stem)[0], stem + ".inputs.safetensors"
    right = Truth(bench, stem + ".onnx", flags, inputs, "--steps", 2)
    for n in 1, 2, 5:
        done = bench.ckc(
            stem + ".onnx", "-o", bench.path("m.so"), "--quiet", *flags, "--grad-accum", n
        )
        run = "m.so", "--inputs", inputs, "--steps", 2, "--grads", "m.g", "--check", "--quiet"
        if bench.must(done, f"{n} micro-batches: compile") and bench.must(
            bench.ckrun(*run), f"{n} micro-batches: run"
        ):
            right.check(f"{n} micro-batches", SHALLOW, grads="m.g")
    bench.finish()


if __name__ == "__main__":
    main()
