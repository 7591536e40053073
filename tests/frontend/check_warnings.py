#!/usr/bin/env python3
"""What exporters damage silently, `ckc inspect` says, and names the option that avoids it; of what is whole it says nothing.

    check_warnings.py --ckc PATH FOLDER

FOLDER holds the files that exports.py makes.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

# file: what its warnings must say, one list of words per warning that is looked for; no list: no warnings at all
EXPECTED = {
    "ts-plain": [], "ts-positions": [], "dynamo-plain": [], "dynamo-positions": [], "dynamo-norms": [],
    "ts-baked": [["'batch' is symbolic", "fits 2 and not 3", "dynamic_axes"]],
    "ts-baked-state": [["'batch' is symbolic", "fits 2 and not 3", "dynamic_axes"]],
    "ts-sines": [["'pos' is a table of sines", "--freeze 'pos'"]],
    "ts-eval-names": [["2 parameters lost their names", "onnx::MatMul_", "do_constant_folding=False"]],
    "ts-eval-norms": [["'n.weight' stands for 2 norms", "training mode"], ["'n.bias' stands for 2 norms"]],
    "ts-eval-tied": [["is 'e.weight' transposed", "split a tied weight", "do_constant_folding=False"]],
    "dynamo-batchnorm": [["1 BatchNormalization node is in inference form", "training=TRAINING", "custom translation"]],
    "dynamo-dropout": [["1 Dropout node is inactive", "eager attention"]],
    "dynamo-cross-entropy": [],
    "dynamo-smoothing": [["label_smoothing=0.1", "log_softmax"]],
    "dynamo-optimized-names": [["2 parameters lost their names", "optimize=False"], ["2 parameters of the module", "'a.weight', 'b.weight'"]],
    "dynamo-optimized-positions": [["is added to an embedding", "12 rows cut from a position table", "optimize=False"], ["'l.weight', 'p.weight'"]],
    "dynamo-optimized-norms": [["'n.weight' stands for 2 norms", "optimize=False"]],
    "dynamo-optimized-tied": [["transposed", "split a tied weight", "optimize=False"]],
    "dynamo-optimized-scale": [["part of a folded parameter", "optimize=False"], ["1 parameter of the module", "'t'"]],
    "dynamo-optimized-batchnorm": [["2 parameters of the module", "'b.bias', 'b.weight'", "optimize=False"]],
}


def check(ckc, path, lists, report):
    done = subprocess.run([ckc, "inspect", path, "--json", report], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
    if done.returncode:
        return f"status {done.returncode}: {done.stdout.strip()}"
    with open(report) as f:
        found = json.load(f)
    said = found["warnings"]
    for words in lists:
        if not any(all(word in line for word in words) for line in said):
            return f"nothing says {words}; said: {said}"
    if not lists and said:
        return f"nothing is damaged, but said: {said}"
    page = subprocess.run([ckc, "inspect", path], stdout=subprocess.PIPE, text=True, timeout=60).stdout
    missing = [line for line in said if line.replace('"', '\\"') not in page]
    return f"not on the page: {missing}" if missing else None


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--ckc", required=True)
    p.add_argument("folder")
    o = p.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory() as work:
        for name, lists in EXPECTED.items():
            fault = check(o.ckc, os.path.join(o.folder, name + ".onnx"), lists, os.path.join(work, "report.json"))
            if fault:
                failed += 1
                print(f"FAIL {name}: {fault}")
    unknown = {f[:-5] for f in os.listdir(o.folder)} - set(EXPECTED)
    if unknown:
        failed += 1
        print(f"FAIL nothing is expected of {sorted(unknown)}")
    print(f"{len(EXPECTED) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
