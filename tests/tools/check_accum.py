#!/usr/bin/env python3
"""Trains reference models in micro-batches and compares with the whole batch, some of whose labels
are ignored.

    check_accum.py --ckc build/ckc --ckrun build/ckrun [--models DIR] [--flags "--dp 2"]
    [NAME-GLOB...]

For each NAME.json in DIR (default: ../models beside this file) that has labels of classes: loss and
gradients of one step of four micro-batches, of which the first has all labels, the second none, the
third some and the last one alone.  What is right, by the interpreter of tests/ref: with a dim
`batch` the step of all samples at once, else, and with statistics of batches, those of the
micro-batches by themselves, weighed by the labels that numpy counts.  One line per model; exit
status 0 when all agree.
"""

import argparse
import fnmatch
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "runtime"), os.path.join(HERE, "..", "e2e")]
import check_models
import compare
import files
from truth import Truth

MICRO, IGNORED = 4, -100


def tensors(values):
    types = {"int64": "I64", "float32": "F32", "bool": "BOOL"}
    return {k: (types[str(v.dtype)], list(v.shape), v.ravel().tolist()) for k, v in values.items()}


def batches(given, rng):
    """Micro-batches like the one given: floats nearby, integers of the same range, masks as they
    are."""
    out = []
    for m in range(MICRO):
        x = {}
        for name, v in given.items():
            if v.dtype.kind == "f":
                x[name] = np.float32(v + rng.normal(0, 0.3, v.shape))
            elif name.startswith("attention_mask"):
                x[name] = v
            else:
                x[name] = rng.integers(0, v.max() + 1, v.shape)
        labels = x["labels"].reshape(-1)
        if m == 1:
            labels[:] = IGNORED
        elif m == 2:
            labels[::2] = IGNORED
        elif m == 3:
            kept = labels[-1]
            labels[:] = IGNORED
            labels[-1] = kept
        out.append(x)
    return out


def counted(labels, shifted):
    return int(
        (labels[..., 1:] if shifted else labels).size
        - ((labels[..., 1:] if shifted else labels) == IGNORED).sum()
    )


class Model:
    def __init__(self, stem, options, work):
        self.stem, self.o, self.work = stem, options, work
        self.name = os.path.basename(stem)
        self.ref_path = os.path.join(os.path.dirname(options.ckc), "ref_model")
        with open(stem + ".json") as f:
            self.meta = json.load(f)

    def path(self, name):
        return os.path.join(self.work, name)

    def run(self, argv):
        return subprocess.run(
            [str(a) for a in argv],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            timeout=self.o.timeout,
            text=True,
            errors="replace",
        )

    def must(self, done, what):
        if done.returncode:
            raise RuntimeError(
                f"{what}: status {done.returncode}: "
                + " | ".join(done.stderr.strip().splitlines()[-3:])
            )

    def flags(self, batch=1):
        dims = {k: v * (batch if k == "batch" else 1) for k, v in self.meta.get("dims", {}).items()}
        return check_models.compile_flags(
            {**self.meta, "dims": dims, "optimizer": {"kind": "sgd"}}, self.name
        )

    def build(self, so, *flags):
        """What ckc says."""
        done = self.run(
            [
                self.o.ckc,
                self.stem + ".onnx",
                "-o",
                self.path(so),
                "--eval",
                "off",
                *self.flags(),
                *flags,
            ]
        )
        self.must(done, "ckc")
        return done.stderr

    def step(self, so, inputs):
        files.st_write(self.path("in.st"), tensors(inputs))
        log = self.path("log.jsonl")
        if os.path.exists(log):
            os.remove(log)
        done = self.run(
            [
                self.o.ckrun,
                self.path(so),
                "--inputs",
                self.path("in.st"),
                "--steps",
                1,
                "--lr",
                0,
                "--log",
                log,
                "--quiet",
                "--grads",
                self.path("g.st"),
                *shlex.split(self.o.run),
            ]
        )
        self.must(done, "ckrun")
        with open(log) as f:
            loss = json.loads(f.read().splitlines()[-1])["loss"]
        return loss, {k: np.float64(v) for k, v in compare.load(self.path("g.st")).items()}

    def truth(self, inputs, batch=1):
        t = Truth(self, self.stem + ".onnx", self.flags(batch), inputs, "--lr", 0)
        return t.losses[0], t.grads

    def whole(self, parts, statistics):
        """Loss and gradients, in one way or the other; statistics: of micro-batches are in them."""
        joined = {k: np.concatenate([x[k] for x in parts]) for k in parts[0]}
        if "batch" in self.meta.get("dims", {}) and not statistics:
            return self.truth(joined, MICRO)
        shifted = isinstance(self.meta["loss"], str) and self.name.split("-")[0] in (
            "gpt2",
            "llama",
            "mixtral",
        )
        loss, grads, n = 0, {}, [counted(x["labels"], shifted) for x in parts]
        for x, count in zip(parts, n):
            if count:
                one, g = self.truth(x)
                loss += count / sum(n) * one
                grads = {k: grads.get(k, 0) + count / sum(n) * v for k, v in g.items()}
        return loss, grads

    def check(self):
        """None, or what is wrong."""
        half = self.name.endswith(("f16", "bf16"))
        rtol = 3e-2 if half else self.o.rtol
        parts = batches(compare.load(self.stem + ".inputs.safetensors"), np.random.default_rng(3))
        said = self.build("many.so", "--grad-accum", MICRO, *shlex.split(self.o.flags))
        loss, grads = self.step(
            "many.so", {k: np.concatenate([x[k] for x in parts]) for k in parts[0]}
        )
        want, right = self.whole(parts, "batch normalization uses the statistics" in said)
        if not abs(loss - want) <= rtol * abs(want):
            return f"loss {loss}, expected {want}"
        if sorted(grads) != sorted(right):
            return f"gradients of {sorted(set(grads) ^ set(right))[:3]}"
        most = max(np.abs(v).max(initial=0) for v in right.values())
        for k, v in right.items():
            far = np.abs(grads[k] - v).max(initial=0)
            if not far <= rtol * max(np.abs(v).max(initial=0), most / 10):
                return f"gradient of {k} is off by {far:.3g}, its largest is {np.abs(v).max():.3g}"
        return None


def has_labels(stem):
    inputs = compare.load(stem + ".inputs.safetensors")
    return "labels" in inputs and inputs["labels"].dtype.kind == "i"


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("names", nargs="*", default=["*"], metavar="NAME-GLOB")
    p.add_argument("--ckc", required=True)
    p.add_argument("--ckrun", required=True)
    p.add_argument("--models", default=os.path.join(HERE, "..", "models"))
    p.add_argument("--flags", default="", help="more flags for ckc, of micro-batches")
    p.add_argument("--run", default="", help="more flags for ckrun")
    p.add_argument(
        "--rtol",
        type=float,
        default=1e-5,
        help="of losses, and of gradients beside the largest of a parameter",
    )
    p.add_argument("--timeout", type=float, default=300, help="seconds for one command")
    o = p.parse_args()
    stems = sorted(
        os.path.join(o.models, f[:-5]) for f in os.listdir(o.models) if f.endswith(".json")
    )
    stems = [
        s
        for s in stems
        if any(fnmatch.fnmatch(os.path.basename(s), g) for g in o.names) and has_labels(s)
    ]
    wrong = 0
    for stem in stems:
        start = time.monotonic()
        with tempfile.TemporaryDirectory() as work:
            try:
                fault = Model(stem, o, work).check()
            except RuntimeError as e:
                fault = str(e)
        wrong += fault is not None
        print(
            f"{'FAIL' if fault else 'ok  '} {time.monotonic() - start:6.1f} s  {os.path.basename(stem)}{': ' + fault if fault else ''}",
            flush=True,
        )
    print(f"{len(stems) - wrong} of {len(stems)} models agree")
    return 1 if wrong or not stems else 0


if __name__ == "__main__":
    sys.exit(main())
