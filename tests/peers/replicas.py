#!/usr/bin/env python3
"""Table of the exports whose batch `ckc --dp auto` splits over replicas, and of those it refuses.

    zoo.py --out ZOO; zoo.py --out TWICE --replicas 2
    check_models.py --ckc ckc --ckrun ckrun --models TWICE > LOG
    replicas.py --ckc ckc --log LOG ZOO > tests/bench/results/replicas.md

An export that ckc does not compile for one rank either is left out.  LOG adds which exports two
replicas train as PyTorch trains the whole batch.
"""

import argparse
import datetime
import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
import check_models


def verdict(ckc, stem, *more):
    """None, or the message of a refusal."""
    flags = check_models.compile_flags(json.load(open(stem + ".json")), os.path.basename(stem))
    try:
        done = subprocess.run(
            [ckc, stem + ".onnx", "--plan-only", "--quiet", "--plan-time", "1", *flags, *more],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=120,
        )
    except subprocess.TimeoutExpired:
        return "no answer in 120 s"
    lines = [
        s.split(".onnx: ", 1)[-1]
        for s in done.stderr.splitlines()
        if not re.search(": (warning|note): ", s)
    ]
    return " ".join(lines) or "?" if done.returncode else None


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("folders", nargs="+", metavar="DIR")
    p.add_argument("--ckc", required=True)
    p.add_argument("--log", help="what check_models.py says of exports made with --replicas")
    o = p.parse_args()
    stems = [
        os.path.join(d, f[:-5])
        for d in o.folders
        for f in sorted(os.listdir(d))
        if f.endswith(".json") and os.path.exists(os.path.join(d, f[:-5] + ".onnx"))
    ]
    agree = set(re.findall(r"^ok +[\d.]+ s +(\S+)", open(o.log).read(), re.M)) if o.log else set()
    split, refused = [], []
    for stem in stems:
        why = verdict(o.ckc, stem, "--dp", "auto")
        if not why:
            split.append(os.path.basename(stem))
        elif not verdict(o.ckc, stem):
            refused.append((os.path.basename(stem), why))
    print(
        f"# Exports whose batch `--dp` splits\n\n{len(split)} of {len(split) + len(refused)} exports, {datetime.date.today()}. "
        f"{len(agree & set(split))} of them were trained by two replicas and compared with PyTorch's losses, gradients and parameters of the whole batch (*).\n\n"
        f"How to make this page: see `tests/peers/replicas.py --help`.\n\n## Refused\n\n| export | message |\n|---|---|"
    )
    for name, why in refused:
        print(f"| {name} | {why.replace('|', ' ')} |")
    print("\n## Split\n\n" + ", ".join(name + " *" * (name in agree) for name in split))
    return 0


if __name__ == "__main__":
    sys.exit(main())
