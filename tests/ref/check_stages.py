#!/usr/bin/env python3
"""Pipelines of the reference models against one rank, in double precision.

    check_stages.py --tool build/ref_stages [--models DIR] [--flags="--tp 2"] [NAME-GLOB...]

Each model is cut into several numbers of stages, with several numbers of micro-batches of different
inputs; losses, gradients, parameters and states must have the same bits as on one rank.  One line
per pipeline; exit status 0 when all are right, 77 without numpy.
"""

import argparse
import fnmatch
import glob
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tools"))
try:
    import numpy as np
    import compare
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(77)


def write_setup(stem, micro, work):
    """Inputs of so many micro-batches: the first is the file's, others have its rows, and rows of
    its rows, in another order."""
    with open(os.path.join(work, "setup"), "w") as f:
        for i, (name, x) in enumerate(compare.load(stem + ".inputs.safetensors").items()):
            path = os.path.join(work, f"input{i}")
            x = np.ascontiguousarray(x)
            axis = 1 if x.ndim > 1 else 0
            with open(path, "wb") as out:
                for m in range(micro):
                    out.write(np.roll(x, m, axis).tobytes() if x.ndim else x.tobytes())
            print("input", name, path, file=f)


def flags_of(meta):
    flags = [f"--dim={dim}={size}" for dim, size in meta.get("dims", {}).items()]
    loss = meta["loss"]
    if not isinstance(loss, str):
        loss = f"{loss['kind']}:{loss.get('logits') or loss.get('output')}"
    return flags + ["--loss", loss, *meta.get("flags", []), "--plan-only", "--quiet"]


NO_SECOND = 3  # exit status


def run(argv):
    return subprocess.run(
        argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300
    )


def run_second(tool, argv):
    """Within the first of some budgets under which a stage has two plans."""
    done = run([tool[0], "--peak", *argv])
    peak = int(done.stdout) if done.returncode == 0 else 0
    for k in range(1, 40) if peak else ():
        done = run([*tool, "--second", *argv, f"--memory-budget={int(peak * (1 - k / 80))}B"])
        if done.returncode != NO_SECOND:
            break
    return done


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--tool", required=True)
    p.add_argument("--models", default=os.path.join(HERE, "..", "models"))
    p.add_argument("--flags", default="", help="further flags of ckc")
    p.add_argument("--tolerance", help="relative; default: the same bits")
    p.add_argument(
        "--pipelines",
        default="2x2,2x5,3x4,4x4,4x9",
        help="stages x micro-batches, or ranks x chunks x micro-batches; chunks zb: zb-h1",
    )
    p.add_argument(
        "--second", action="store_true", help="within budgets under which a stage has two plans"
    )
    p.add_argument("names", nargs="*")
    o = p.parse_args()
    ran = failed = 0
    for path in sorted(glob.glob(os.path.join(o.models, "*.json"))):
        stem = path[: -len(".json")]
        name = os.path.basename(stem)
        if not any(fnmatch.fnmatch(name, g) for g in o.names or ["*"]):
            continue
        with open(path) as f:
            meta = json.load(f)
        for pipeline in o.pipelines.split(","):
            stages, *chunks, micro = pipeline.split("x")
            schedules = ["zb-h1" if c == "zb" else f"interleaved={c}" for c in chunks]
            with tempfile.TemporaryDirectory() as work:
                write_setup(stem, int(micro), work)
                tool = [o.tool]
                tool += ["--tolerance", o.tolerance] if o.tolerance else []
                tool += ["--clip"] if "--clip" in o.flags.split() else []
                argv = [work, stem + ".onnx", *flags_of(meta)]
                argv += [x for x in o.flags.split() if x != "--clip"]
                argv += [f"--pp={stages}", f"--microbatches={micro}"]
                argv += [f"--schedule={c}" for c in schedules]
                done = run_second(tool, argv) if o.second else run([*tool, *argv])
            ran += 1
            failed += done.returncode != 0
            lines = done.stdout.strip().splitlines() or [""]
            print(
                f"{'FAIL' if done.returncode else 'ok  '} {name} {pipeline} "
                f"{' | '.join(lines[-1 if done.returncode == 0 else -3 :])}",
                flush=True,
            )
    print(f"{ran - failed} passed, {failed} failed")
    return failed > 0 or ran == 0


if __name__ == "__main__":
    sys.exit(main())
