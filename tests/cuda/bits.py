#!/usr/bin/env python3
"""Parameters and states after steps on a GPU have the CPU's bits where no sum has gone into them.

    bits.py CKC CKRUN NVCC

The gradients of a sum over what is computed element by element are computed so, too, and so are
updates, random rounding included.  Checkpoints are written beside training on the GPU.
"""

import os
import sys

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "e2e"))
import ck  # noqa: E402

GRAPH = """graph @bits {
	input %x: f32[33,37]
	param %w: f32[33,37] = splat 0.375
	param %v: f32[33,37] = splat -1.25
	%a = mul %x, %w
	%b = gelu %a
	%c = add %b, %v
	%d = tanh %c
	%e = dropout %d {ratio=0.3}
	%f = exp %e
	%g = sigmoid %a
	%h = mul %f, %g
	%loss: f32[] output = reduce_sum %h {axes=[0,1], keepdims=0}
	loss %loss
}
"""
SETTINGS = (
    ["--optimizer", "adamw", "--ema"],
    ["--optimizer", "sgdm"],
    ["--optimizer", "lion"],
    ["--dtype", "bf16", "--master-weights", "off", "--state-dtype", "bf16", "--ema"],
    ["--dtype", "f16", "--optimizer", "sgd"],
)


def trained(bench, model, inputs, name, how, flags, **env):
    """The files that a run saves."""
    so, save = bench.path(name + ".so"), bench.path(name)
    bench.must(bench.ckc(model, "-o", so, "--quiet", *flags), f"compile {flags}")
    run = so, "--data", inputs, "--steps", 3, "--save", save, "--save-every", 1, "--keep", 3
    bench.must(bench.ckrun(*run, *how, env=env), f"run {flags}")
    names = [f"{save}.{step}" for step in (1, 2, 3)]
    return [ck.content(x) if os.path.exists(x) else None for x in names]


def main():
    nvcc = sys.argv.pop()
    bench = ck.Bench()
    model, inputs = bench.path("bits.ck"), bench.path("x.npy")
    with open(model, "w", encoding="utf-8") as f:
        f.write(GRAPH)
    np.save(inputs, np.random.default_rng(1).uniform(-1, 1, (99, 37)).astype(np.float32))
    for flags in SETTINGS:
        cpu = trained(bench, model, inputs, "cpu", (), flags)
        gpu = [*flags, "--target", "cuda", "--nvcc", nvcc]
        gpu = trained(bench, model, inputs, "gpu", ["--save-async"], gpu, CKR_FAKE_GPU_LATE="1")
        bench.check(all(cpu) and cpu == gpu, f"{flags}: other bits than the CPU's")
    bench.finish()


if __name__ == "__main__":
    main()
