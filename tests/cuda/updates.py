#!/usr/bin/env python3
"""One launch updates or checks many tensors.

    updates.py CKC CKRUN NVCC FOLDER

A model of more parameters than a launch takes, whole vectors and not.  Launches are
counted (CKR_EMULATE_LAUNCHES); checkpoints have the bits of the CPU, of updates that are launched
one by one, which a trace wants, and of updates without graphs.
"""

import collections
import os
import re
import sys

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "e2e"))
import ck  # noqa: E402

SIZES = (1, 7, 8, 13, 64, 2048, 2049, 5000)
PARAMS, JOINED, CHECKED = 165, 44, 160  # parameters; tensors of a launch, before CUDA 13
STEPS, TRACED = 6, 3
STATES = {"sgd": 0, "sgdm": 1, "lion": 1}  # of others 2
SETTINGS = (
    ["--optimizer", "adamw"],
    ["--optimizer", "adam"],
    ["--optimizer", "sgd"],
    ["--optimizer", "sgdm", "--grad-accum", "2"],
    ["--optimizer", "lion"],
    ["--dtype", "bf16", "--master-weights", "off", "--state-dtype", "bf16"],
    ["--update-in-backward", "on"],
)
GROUPS = "--lr-scale", "w1*=0.5", "--decay", "w2*=0.25"


def graph():
    lines, total = ["graph @many {", "\tinput %x: f32[1]"], ""
    for i in range(PARAMS):
        lines.append(f"\tparam %w{i}: f32[{SIZES[i % len(SIZES)]}] = splat {0.5 + i / 256}")
    for i in range(PARAMS):
        lines.append(f"\t%a{i} = mul %w{i}, %x")
        lines.append(f"\t%t{i} = tanh %a{i}")
        lines.append(f"\t%s{i} = reduce_sum %t{i} {{axes=[0], keepdims=0}}")
        if i:
            lines.append(f"\t%n{i}: f32[]{' output' * (i == PARAMS - 1)} = add {total}, %s{i}")
        total = f"%n{i}" if i else "%s0"
    return "\n".join([*lines, f"\tloss {total}", "}", ""])


# The gradient of w is NaN where x is 0, and the loss is finite.
ROOT = """graph @root {
	input %x: f32[1,13]
	param %w: f32[13] = splat 0.5
	%a = mul %w, %x
	%b = sqrt %a
	%loss: f32[] output = reduce_sum %b {axes=[0,1], keepdims=0}
	loss %loss
}
"""


class Test:
    def __init__(self):
        self.nvcc, self.folder = (os.path.abspath(x) for x in sys.argv[3:5])
        del sys.argv[3:5]
        self.bench = ck.Bench()
        self.model = self.bench.path("many.ck")
        with open(self.model, "w", encoding="utf-8") as f:
            f.write(graph())
        self.inputs = self.bench.path("x.npy")
        np.save(self.inputs, np.linspace(-1, 1, 2 * STEPS, dtype=np.float32))

    def compiled(self, name, *flags):
        so = self.bench.path(name + ".so")
        self.bench.must(self.bench.ckc(self.model, "-o", so, "--quiet", *flags), f"{flags}")
        return so

    def trained(self, so, *args, **env):
        """The checkpoint, and how often each kernel was launched for updates."""
        save, log = self.bench.path("saved"), self.bench.path("launches")
        for x in save, log:
            if os.path.exists(x):
                os.unlink(x)
        env = {"LD_LIBRARY_PATH": self.folder, "CKR_EMULATE_LAUNCHES": log, **env}
        run = so, "--data", self.inputs, "--steps", STEPS, "--save", save, "--quiet"
        self.bench.must(self.bench.ckrun(*run, *args, env=env), f"{so} {args} {env}")
        names = collections.Counter()
        if os.path.exists(log):
            with open(log, encoding="utf-8") as f:
                names.update(re.match(r"\W*(\w+)", x)[1] for x in f)
        with open(save, "rb") as f:
            return f.read(), names

    def alike(self, flags):
        cpu = self.trained(self.compiled("cpu", *flags), *GROUPS)[0]
        so = self.compiled("gpu", *flags, "--target", "cuda", "--nvcc", self.nvcc)
        trace = "--trace", self.bench.path("trace.json")
        per, apart, tables = -(-PARAMS // JOINED), 0, -(-PARAMS // CHECKED)
        losses = 2 if "--grad-accum" in flags else 1
        if "--update-in-backward" in flags:  # between other kernels; the last gradients are checked
            per, apart, tables = 0, PARAMS, 1
        for what, together, watched, waited, args, env in (
            # the first step, for which the host waits, and recorded once
            ("graphs", 2, 0, 1, [], {}),
            ("no graphs", STEPS, 0, 1, [], {"CKR_GRAPHS": "0"}),
            ("traced", 2, TRACED, TRACED + 1, trace, {}),
            ("one by one", 0, STEPS, STEPS, [], {"CKR_POISON": "1"}),
        ):
            got, names = self.trained(so, *GROUPS, *args, **env)
            self.bench.check(got == cpu, f"{flags} {what}: other bits than the CPU's")
            want = {
                "ckr_update_joined_kernel": together * per,
                "ckr_update_kernel": watched * PARAMS + together * apart,
                # the loss is the host's to check if it waits; all is loaded once; what is saved
                "ckr_finite_kernel": waited * tables
                + PARAMS * (1 + STATES.get(flags[1], 2))
                + (together and 1 + tables + (together - 1) * (losses + tables)),
            }
            launches = {k: names[k] for k in want}
            self.bench.check(launches == want, f"{flags} {what}: {launches}, expected {want}")

    def every_element(self):
        """The check of gradients sees each of them."""
        x = np.full((14, 13), 0.25, np.float32)
        np.fill_diagonal(x, 0)
        np.save(self.inputs, x)
        with open(self.model, "w", encoding="utf-8") as f:
            f.write(ROOT)
        so = self.compiled("root", "--target", "cuda", "--nvcc", self.nvcc)
        how = "--on-nan", "skip"
        for env in {}, {"CKR_POISON": "1"}:
            got = self.trained(so, *how, "--steps", 14, **env)[0]
            cpu = self.trained(self.compiled("cpu"), *how, "--steps", 14)[0]
            self.bench.check(got == cpu, f"NaNs in gradients, {env}: other bits than the CPU's")


def main():
    t = Test()
    for flags in SETTINGS:
        t.alike(flags)
    t.every_element()
    t.bench.finish()


if __name__ == "__main__":
    main()
