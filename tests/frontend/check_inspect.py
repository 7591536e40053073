#!/usr/bin/env python3
"""Compare the verdicts of `ckc inspect` with what is known of the models.

    check_inspect.py --ckc PATH DIR [NAME...]

DIR holds NAME.onnx and NAME.json with `parameters`, `buffers` and `loss`.
Parameters must agree exactly; buffers must be found.  No model in DIR at all
is a failure too: a test that looks at nothing proves nothing.
"""

import argparse
import glob
import json
import os
import subprocess
import sys
import tempfile


def loss_flag(meta):
    loss = meta["loss"]
    if isinstance(loss, str):
        return loss
    return f"{loss['kind']}:{loss.get('logits') or loss.get('output')}"


def check(ckc, stem, report):
    with open(stem + ".json") as f:
        meta = json.load(f)
    argv = [
        ckc,
        "inspect",
        stem + ".onnx",
        "--loss",
        loss_flag(meta),
        "--untie=off",
        "--json",
        report,
    ]
    done = subprocess.run(
        argv, stdout=subprocess.PIPE, timeout=60, stderr=subprocess.STDOUT, text=True
    )
    if done.returncode:
        return f"status {done.returncode}: {done.stdout.strip()}"
    with open(report) as f:
        found = json.load(f)
    verdict = {}
    for init in found["initializers"]:
        verdict.setdefault(init["verdict"], set()).add(init["name"])
    parameters = verdict.get("parameter", set())
    wanted = set(meta["parameters"])
    if parameters != wanted:
        return f"missing {sorted(wanted - parameters)}, extra {sorted(parameters - wanted)}"
    missing = set(meta.get("buffers", ())) - verdict.get("buffer", set())
    if missing:
        return f"missing buffers {sorted(missing)}"
    with open(stem + ".onnx", "rb") as f:
        unrolled = b"Loop" in f.read()
    if not unrolled and sum(op["nodes"] for op in found["operators"]) > meta["nodes"]:
        return "more nodes than the file has"
    lost = meta.get("parameters_lost_by_exporter")
    if lost and not found["warnings"]:
        return f"no warning although {lost} are lost"
    return None


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--ckc", required=True)
    p.add_argument("dir")
    p.add_argument("names", nargs="*")
    o = p.parse_args()
    stems = [os.path.join(o.dir, n) for n in o.names] or sorted(
        f[:-5] for f in glob.glob(os.path.join(o.dir, "*.onnx")) if os.path.exists(f[:-5] + ".json")
    )
    failed = 0
    with tempfile.TemporaryDirectory() as work:
        for stem in stems:
            fault = check(o.ckc, stem, os.path.join(work, "report.json"))
            if fault:
                failed += 1
                print(f"FAIL {os.path.basename(stem)}: {fault}")
    print(f"{len(stems) - failed} passed, {failed} failed")
    return 1 if failed or not stems else 0


if __name__ == "__main__":
    sys.exit(main())
