#!/usr/bin/env python3
"""A classifier whose row of logits fits the shared memory of some GPUs alone runs on others, too.

    classifier.py CKC CKRUN NVCC

Blocks of sm_86 have 99 KiB, those of sm_90 have 227 KiB (CUDA C++ Programming Guide, "Technical
Specifications per Compute Capability"), and the emulated GPU refuses what is larger.  Losses are
those of the CPU, and parameters have the same bits on both GPUs.
"""

import os
import sys

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "e2e"))
import ck  # noqa: E402
import optimizers  # noqa: E402

TEXT = """graph @head {{
	input %x: f32[{rows},8]
	input %labels: i64[{rows}]
	param %w: f32[{classes},8] = splat 0.125
	%z = matmul %x, %w {{tb=1}}
	%loss: f32[] output, %lse, %den = sce %z, %labels
	loss %loss
}}
"""
ROWS = 5
# 104000 bytes of a row, which the kernel holds up to 112 KiB.
CASES = ("bf16", 52000, 2e-3), ("f32", 26000, 1e-5)


def written(bench, classes):
    model, inputs = bench.path("head.ck"), bench.path("in.safetensors")
    with open(model, "w", encoding="utf-8") as f:
        f.write(TEXT.format(rows=ROWS, classes=classes))
    rng = np.random.default_rng(1)
    x = rng.uniform(-1, 1, (ROWS, 8)).astype(np.float32)
    labels = np.array([0, 1, classes // 2, classes - 2, classes - 1])
    optimizers.write_tensors(inputs, {"x": x, "labels": labels})
    return model, inputs


def main():
    nvcc = os.path.abspath(sys.argv[3])
    del sys.argv[3]
    bench = ck.Bench()
    for dtype, classes, limit in CASES:
        model, inputs = written(bench, classes)
        found = {}
        for arch in "", "86", "90":
            so, log, save = (bench.path(f"{dtype}{arch}.{x}") for x in ("so", "log", "save"))
            to = ["--target", "cuda", "--nvcc", nvcc, "--arch", "sm_" + arch] if arch else []
            bench.must(bench.ckc(model, "-o", so, "--dtype", dtype, *to), f"ckc {dtype} {arch}")
            run = so, "--inputs", inputs, "--steps", 3, "--lr", 0.1, "--log", log, "--save", save
            bench.must(
                bench.ckrun(*run, env={"CKR_FAKE_GPU_ARCH": arch} if arch else {}),
                f"{dtype}, {classes} classes, sm_{arch}",
            )
            found[arch] = ck.losses(log), ck.content(save)
        bench.check(found["86"] == found["90"], f"{dtype}: other bits on sm_86 than on sm_90")
        far = max(abs(a / b - 1) for a, b in zip(found["86"][0], found[""][0]))
        bench.check(far <= limit, f"{dtype}: losses are {far:.1e} from the CPU's")
    bench.finish()


if __name__ == "__main__":
    main()
