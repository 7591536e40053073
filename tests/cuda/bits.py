#!/usr/bin/env python3
"""Parameters and states after steps on a GPU have the CPU's bits where no sum has gone into them.

    bits.py CKC CKRUN NVCC

The gradients of a sum over what is computed element by element are computed so, too, and so are
updates, random rounding included.  Checkpoints are written beside training on the GPU.  States and
values in host memory (--offload) have the same bits, whenever a driver copies them
(CKR_FAKE_GPU_LATE).  A profile has the rate of copies to host memory, whose measurement changes no
bits.  A NaN of 16 bits is 0x7fff, whatever the NaN that was rounded: instructions of GPUs give that
(PTX ISA, cvt: "canonical NaN").
"""

import json
import os
import sys

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "e2e"))
import ck  # noqa: E402

GRAPH = """graph @bits {{
	input %x: f32[{shape}]
	param %w: f32[{shape}] = splat 0.375
	param %v: f32[{shape}] = splat -1.25
	%a = mul %x, %w
	%b = gelu %a
	%c = add %b, %v
	%d = tanh %c
	%e = dropout %d {{ratio=0.3}}
	%f = exp %e
	%g = sigmoid %a
	%h = mul %f, %g
	%loss: f32[] output = reduce_sum %h {{axes=[0,1], keepdims=0}}
	loss %loss
}}
"""
# States of the larger one are offloaded, in 16 bits, too.
SMALL, LARGE = (33, 37), (131, 257)
# Large enough for the rate of copies to be measured.
HUGE = 1024, 1024
SETTINGS = (
    ["--optimizer", "adamw", "--ema"],
    ["--optimizer", "sgdm"],
    ["--optimizer", "lion"],
    ["--dtype", "bf16", "--master-weights", "off", "--state-dtype", "bf16", "--ema"],
    ["--dtype", "f16", "--optimizer", "sgd"],
)

# NaNs, quiet and not, whose upper 16 bits are those of an infinity, too.
NANS = 0x7F800001, 0xFF800001, 0x7FC12345, 0xFFFFFFFF, 0x7F80FFFF, 0x7FBFFFFF
ROUNDED = (
    ["--dtype", "bf16", "--master-weights", "off", "--state-dtype", "bf16"],
    ["--dtype", "f16", "--master-weights", "off", "--optimizer", "sgdm"],
)

STATE = "--offload", "state"
VALUES = "--offload", "auto", "--offload-values", "*"
OFFLOADED = (
    SETTINGS[0],
    SETTINGS[3],
    ["--grad-accum", "2", "--optimizer", "lion"],
    ["--update-in-backward", "on", "--optimizer", "sgdm"],
)


def compiled(bench, model, name, *flags):
    so = bench.path(name + ".so")
    bench.must(bench.ckc(model, "-o", so, "--quiet", *flags), f"compile {flags}")
    return so


def trained(bench, so, inputs, *how, env=None):
    """The files that a run saves."""
    save = bench.path("saved")
    names = [f"{save}.{step}" for step in (1, 2, 3)]
    for name in (save, *names):
        if os.path.exists(name):
            os.unlink(name)
    run = so, "--data", inputs, "--steps", 3, "--save", save, "--save-every", 1, "--keep", 3
    bench.must(bench.ckrun(*run, *how, env=env), f"run {so} {env}")
    return [ck.content(x) if os.path.exists(x) else None for x in names]


def model_of(bench, shape):
    model, inputs = bench.path(f"bits{shape[0]}.ck"), bench.path(f"x{shape[0]}.npy")
    with open(model, "w", encoding="utf-8") as f:
        f.write(GRAPH.format(shape=f"{shape[0]},{shape[1]}"))
    x = np.random.default_rng(1).uniform(-1, 1, (6 * shape[0], shape[1]))
    np.save(inputs, x.astype(np.float32))
    return model, inputs


def check_rate(bench, cuda):
    model, inputs = model_of(bench, HUGE)
    so, profile = compiled(bench, model, "gpu", *cuda), bench.path("profile")
    plain = trained(bench, so, inputs)
    bench.check(plain == trained(bench, so, inputs, "--profile", profile), "--profile: other bits")
    with open(profile, encoding="utf-8") as f:
        rate = json.load(f).get("host_bytes_per_second", 0)
    bench.check(1e6 < rate < 1e12, f"--profile: {rate} bytes per second to host memory")
    compiled(bench, model, "gpu", *cuda, "--offload", "state", "--device", profile)


def check_nans(bench, cuda):
    model, inputs = model_of(bench, SMALL)
    x = np.load(inputs)
    x.view(np.uint32)[:, 0] = np.resize(NANS, len(x))  # whatever the order of samples
    np.save(inputs, x)
    for flags in ROUNDED:
        files = [
            trained(bench, compiled(bench, model, to, *flags, *more), inputs, "--on-nan", "go")
            for to, more in (("cpu", []), ("gpu", cuda))
        ]
        bench.check(all(files[0]) and files[0] == files[1], f"{flags}, NaNs: other than the CPU's")
        for name, (kind, _, raw) in ck.tensors(bench.path("saved.1")).items():
            if kind not in ("BF16", "F16"):
                continue
            bits = np.frombuffer(raw, np.uint16)
            nan = bits[(bits & 0x7FFF) > (0x7F80 if kind == "BF16" else 0x7C00)]
            bench.check(
                len(nan) == SMALL[0] and set(nan) == {0x7FFF},
                f"{flags}: NaNs of '{name}' are {sorted(set(nan))}, of {len(nan)}",
            )


def main():
    nvcc = sys.argv.pop()
    bench = ck.Bench()
    cuda = ["--target", "cuda", "--nvcc", nvcc]
    model, inputs = model_of(bench, SMALL)
    for flags in SETTINGS:
        cpu = trained(bench, compiled(bench, model, "cpu", *flags), inputs)
        gpu = compiled(bench, model, "gpu", *flags, *cuda)
        gpu = trained(bench, gpu, inputs, "--save-async", env={"CKR_FAKE_GPU_LATE": "1"})
        bench.check(all(cpu) and cpu == gpu, f"{flags}: other bits than the CPU's")
    model, inputs = model_of(bench, LARGE)
    for flags in OFFLOADED:
        cpu = trained(bench, compiled(bench, model, "cpu", *flags), inputs)
        plan = ["--json", bench.path("plan.json")]
        for what in STATE, VALUES:
            so = compiled(bench, model, "gpu", *flags, *cuda, *plan, *what)
            bench.check(ck.plan(plan[1]).get("host"), f"{flags} {what}: nothing is offloaded")
            for late in "", "1", "2", "3":
                env = {"CKR_FAKE_GPU_LATE": late} if late else {}
                gpu = trained(bench, so, inputs, "--save-async", env=env)
                bench.check(all(cpu) and cpu == gpu, f"{flags} {what}, late {late}: other bits")
    check_rate(bench, cuda)
    check_nans(bench, cuda)
    bench.finish()


if __name__ == "__main__":
    main()
