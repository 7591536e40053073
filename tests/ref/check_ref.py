#!/usr/bin/env python3
"""Trains reference models by interpretation and compares with their references.

    check_ref.py --tool build/ref_model [--models DIR] [--flags="--recompute full"] [--steps N]
    [NAME-GLOB...]

For each NAME.json in DIR (default: ../models beside this file): ref_model with the dims, loss and
optimizer of the file and dropout off, then losses, first gradients and parameters against
NAME.ref.safetensors by compare.py; with --steps the gradients alone.  --against compares two forms
of each model with each other instead, dropout on, two steps.  One line per model; exit status 0
when all agree, 77 without numpy, which compare.py needs.
"""

import argparse
import fnmatch
import glob
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tools"))
try:
    import numpy as np
    import compare
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(77)


def call(argv, timeout):
    """None, or the reason why a command did not end with status 0."""
    try:
        done = subprocess.run(
            argv,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=timeout,
            text=True,
            errors="replace",
        )
    except subprocess.TimeoutExpired:
        return f"no answer in {timeout} s"
    if done.returncode:
        return f"status {done.returncode}: " + " | ".join(done.stdout.strip().splitlines()[-6:])
    return None


def write_setup(stem, meta, steps, work, eps=True):
    o = meta["optimizer"]
    with open(os.path.join(work, "setup"), "w") as f:
        print("steps", steps, file=f)
        print("lr", o["lr"], file=f)
        print("weight_decay", o.get("weight_decay", 0), file=f)
        if o["kind"] == "adamw":
            print("beta1", o["betas"][0], file=f)
            print("beta2", o["betas"][1], file=f)
            if eps:
                print("eps", o["eps"], file=f)
        for i, (name, x) in enumerate(compare.load(stem + ".inputs.safetensors").items()):
            path = os.path.join(work, f"input{i}")
            np.ascontiguousarray(x).tofile(path)
            print("input", name, path, file=f)


def flags_of(meta, name):
    flags = [x for dim, size in meta.get("dims", {}).items() for x in ("--dim", f"{dim}={size}")]
    loss = meta["loss"]
    flags += [
        "--loss",
        loss
        if isinstance(loss, str)
        else f"{loss['kind']}:{loss.get('logits') or loss.get('output')}",
    ]
    if "tied" in name or "eval" in name:
        flags += ["--untie=off"]  # the reference trains what the file says
    return flags + meta.get("flags", []) + ["--optimizer", meta["optimizer"]["kind"]]


def check(stem, o, work):
    meta = json.load(open(stem + ".json"))
    ref = stem + ".ref.safetensors"
    steps = o.steps or (2 if o.against else meta["optimizer"]["steps"])
    write_setup(stem, meta, steps, work, eps=not o.against)
    argv = [
        o.tool,
        work,
        stem + ".onnx",
        *flags_of(meta, os.path.basename(stem)),
        *shlex.split(o.flags),
    ]
    if o.against:
        return call(argv + ["--", *shlex.split(o.against)], o.timeout)
    fault = call(argv + ["--dropout", "off"], o.timeout)
    if fault:
        return fault
    parts = [("gradients", ["grads.safetensors", ref, "--prefix", "grad."])]
    if not o.steps:
        parts += [
            ("losses", ["log.jsonl", ref]),
            ("parameters", ["params.safetensors", ref, "--prefix", "param."]),
        ]
    for what, (ours, *rest) in parts:
        fault = compare.fault(os.path.join(work, ours), *rest, "--meta", stem + ".json")
        if fault:
            return f"{what}: {fault}"
    return None


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--tool", required=True)
    p.add_argument("--models", default=os.path.join(HERE, "..", "models"))
    p.add_argument("--flags", default="")
    p.add_argument(
        "--against", default="", help="flags of a second form; --tool is ref_compare then"
    )
    p.add_argument("--steps", type=int)
    p.add_argument("--timeout", type=int, default=120)
    p.add_argument("names", nargs="*")
    o = p.parse_args()
    failed = ran = 0
    for path in sorted(glob.glob(os.path.join(o.models, "*.json"))):
        name = os.path.basename(path)[: -len(".json")]
        if not any(fnmatch.fnmatch(name, g) for g in o.names or ["*"]):
            continue
        with open(path) as f:
            if not o.names and json.load(f).get("flags"):
                continue  # flags of the import: e2e-models has them
        start = time.time()
        with tempfile.TemporaryDirectory() as work:
            fault = check(path[: -len(".json")], o, work)
        ran += 1
        failed += fault is not None
        print(
            f"{'FAIL' if fault else 'ok  '} {name} {time.time() - start:.1f} s {fault or ''}",
            flush=True,
        )
    print(f"{ran - failed} passed, {failed} failed")
    return failed > 0 or ran == 0


if __name__ == "__main__":
    sys.exit(main())
