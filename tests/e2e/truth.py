"""Losses, gradients and parameters that no generated code has computed: the interpreter of
tests/ref trains the model as it was imported, in float64.

Its graph ends at pass optim: it has the gradients and the updates, which the interpreter computes
by its own formulas, and none of ranks, replicas, 16-bit types, recomputation, fused ops and
kernels.  It has micro-batches only where `flags` ask for them.
"""

import os
import sys

import numpy as np

import ck

sys.path.insert(0, ck.TOOLS)
from compare import load, load_log

# Defaults of ckrun that are not those of the interpreter.
DEFAULTS = {"weight_decay": 0.01, "momentum": 0.9}
OPTIMIZER_DEFAULTS = {"adafactor": {"eps": 2.0**-23}}
# A gradient that is this small beside the model's largest is zero in float64: a key's bias, or a
# bias in front of a norm.  Adam and Lion make steps of its rounding error.
ZERO = 1e-6
# What cancels in float32, such as that gradient, keeps the error of what it is made of.
CANCELS = 1e-2
# What one rounding to nearest changes at most, as a share.
HALF_ULP = {"f32": 2.0**-24, "f16": 2.0**-11, "bf16": 2.0**-8}

# Tolerances of losses, gradients and the way that a parameter has come.  Twice to four times what
# was measured, which the reason explains.
# Roundings of 2^-24 in sums over some ten elements; over layers of sums of a hundred.
SHALLOW = 5e-7, 1e-6, 1e-6
DEEP = 1e-5, 1e-5, 2e-5
# Eight roundings of 2^-8 between the loss and a gradient, of 2^-11 in f16 (where some layers have
# more of them).  Errors cancel in the loss, a mean.
BF16 = 1e-3, 2.0**-5, 2.0**-5
F16 = 3e-4, 2.0**-8, 2.0**-8
# Adam takes whole steps by gradients near zero, whose sign 16 bits turn: one element in a hundred
# goes the other way.  The loss follows.  Gradients through two layers are rounded 16 times.
ADAM16 = 4e-3, 2.0**-4, 0.25


def arrays(x):
    if isinstance(x, dict):
        return x
    return dict(np.load(x)) if x.endswith(".npz") else load(x)


class Truth:
    """What the steps of `ckrun RUN...` leave of a model that `ckc FLAGS...` compiled.  inputs: the
    samples of a step; init: parameters; both are a file's or a dict.  TRUTH=1 shows all errors."""

    def __init__(self, bench, model, flags, inputs, *run, init=None):
        work = bench.path("truth")
        os.makedirs(work, exist_ok=True)
        own = next((v for k, v in OPTIMIZER_DEFAULTS.items() if k in flags), {})
        options = {k[2:].replace("-", "_"): v for k, v in zip(run[::2], run[1::2])}
        with open(os.path.join(work, "setup"), "w") as f:
            for k, v in {**DEFAULTS, **own, **options}.items():
                print(k, v, file=f)
            for i, (k, v) in enumerate({**arrays(inputs), **arrays(init or {})}.items()):
                v.tofile(os.path.join(work, f"x{i}"))
                print("input", k, os.path.join(work, f"x{i}"), file=f)
        done = bench.run([bench.ref_path, work, model, "--stop-after=optim", *flags])
        bench.must(done, f"interpreting {model} {flags}")
        self.bench, self.losses = bench, load_log(os.path.join(work, "log.jsonl"))["loss"]
        self.start, self.grads, self.end = (
            {k: np.float64(v) for k, v in load(os.path.join(work, x + ".safetensors")).items()}
            for x in ("start", "grads", "params")
        )
        self.most = max(np.abs(g).max(initial=0) for g in self.grads.values())

    def gradient(self, k, got):
        g = self.grads[k]
        scale = max(np.abs(g).max(initial=0), CANCELS * self.most)
        return np.abs(got - g).max(initial=0) / scale

    def way(self, k, got, half_ulp):
        """The error of a parameter, beyond what rounding it in each step explains, as a share of
        how far it has come."""
        p, g = self.end[k], np.abs(self.grads.get(k, np.zeros(self.end[k].shape)))
        sure = (g == 0) | (g > ZERO * self.most)
        far, size, way = (np.linalg.norm(x[sure]) for x in (got - p, p, p - self.start[k]))
        rounded = half_ulp * len(self.losses) ** 0.5 * size
        return np.maximum(0, far - rounded) / (way + rounded + 1e-30)

    def check(self, what, limits, losses=None, grads=None, save=None, dtype="f32"):
        """losses: of all steps or the last ones; grads, save: files of ckrun; dtype: of
        parameters."""
        if losses is not None:
            want = self.losses[-len(losses) :]
            far = np.abs(np.array(losses) - want).max() / np.abs(want).max()
            self.worst(f"{what}: losses", {"the loss": far}, limits[0])
        if grads:
            found = self.file(what, grads, self.grads)
            errors = {k: self.gradient(k, x) for k, x in found.items()}
            self.worst(f"{what}: gradients", errors, limits[1])
        if save:
            found = self.file(what, save, self.end)
            errors = {k: self.way(k, x, HALF_ULP[dtype]) for k, x in found.items()}
            self.worst(f"{what}: parameters", errors, limits[2])

    def file(self, what, path, wanted):
        found = load(self.bench.path(path))
        lost = [k for k, x in wanted.items() if k not in found or found[k].shape != x.shape]
        self.bench.check(not lost, f"{what}: {path} lacks {lost[:4]}")
        return {k: np.float64(found[k]) for k in wanted if k not in lost}

    def worst(self, what, errors, limit):
        errors = {k: np.inf if np.isnan(e) else e for k, e in errors.items()}
        k = max(errors, key=errors.get)
        if "TRUTH" in os.environ:  # shows the room that is left
            print(f"{errors[k]:.2g} of {limit:.2g}: {what}: {k}")
        self.bench.check(
            errors[k] <= limit, f"{what}: {k} is off by {errors[k]:.3g}, allowed {limit:.3g}"
        )
