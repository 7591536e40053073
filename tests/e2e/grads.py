#!/usr/bin/env python3
"""--grads: the gradients that the optimizer gets.

    grads.py CKC CKRUN

The same inputs in every micro-batch have the same gradients as one batch.
"""

import os
import sys

import ck

sys.path.insert(0, os.path.join(ck.HERE, "..", "runtime"))
import files


def gradients(bench, name, inputs, *flags):
    stem = os.path.join(ck.MODELS, "mlp-mse")
    so, out = bench.path(name + ".so"), bench.path(name + ".safetensors.g")
    bench.must(
        bench.ckc(stem + ".onnx", "-o", so, "--quiet", *ck.model_flags(stem)[0], *flags),
        f"{name}: compile",
    )
    if not bench.must(
        bench.ckrun(so, "--inputs", inputs, "--steps", 2, "--grads", out, "--check", "--quiet"),
        f"{name}: run",
    ):
        return {}
    return files.st_read(out)[0]


def main():
    bench = ck.Bench()
    inputs = os.path.join(ck.MODELS, "mlp-mse.inputs.safetensors")
    want = gradients(bench, "one", inputs)
    bench.check(want, "no gradients")
    for n in 2, 5:
        got = gradients(bench, f"accum{n}", inputs, "--grad-accum", n)
        bench.check(
            set(got) == set(want),
            f"{n} micro-batches: gradients of {sorted(got)}, expected {sorted(want)}",
        )
        for name in want:
            bench.check(
                name in got
                and all(
                    abs(a - b) <= 1e-6 + 1e-5 * abs(b) for a, b in zip(got[name][2], want[name][2])
                ),
                f"{n} micro-batches: gradient of {name} differs",
            )
    bench.finish()


if __name__ == "__main__":
    main()
