#!/usr/bin/env python3
"""NVIDIA's own cuDNN has engines for the convolutions of models: engines.c, on no GPU.  Status 77:
it is not there.

engines.py CKC CKRUN NVCC ENGINES
"""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "e2e"))
import ck  # noqa: E402

MODELS = (
    ("resnet-ts17", 64, ("f32", "bf16", "f16")),
    ("unet-dynamo", 0, ("f32", "bf16")),
    ("inception-lrn-ts14", 0, ("f32", "bf16")),
)


def main():
    nvcc, engines = (os.path.abspath(x) for x in sys.argv[3:5])
    del sys.argv[3:5]
    bench = ck.Bench()
    for name, batch, dtypes in MODELS:
        for dtype in dtypes:
            so, stem = bench.path(f"{name}-{dtype}.so"), os.path.join(ck.MODELS, name)
            flags = [
                f"batch={batch}" if batch and x.startswith("batch=") else x
                for x in ck.model_flags(stem)[0]
            ]
            flags += ["--dtype", dtype] if dtype != "f32" else []
            bench.must(
                bench.ckc(stem + ".onnx", "-o", so, *flags, "--target", "cuda", "--nvcc", nvcc),
                f"compile {name} {dtype}",
            )
            done = bench.run([engines, so])
            if done.returncode == 77:
                print(done.stdout.strip())
                sys.exit(77)
            print(name, dtype, done.stdout.strip())
            bench.check(
                done.returncode == 0,
                f"{name} {dtype}: {done.stdout.strip()} {done.stderr.strip()[:300]}",
            )
    bench.finish()


if __name__ == "__main__":
    main()
