#!/usr/bin/env python3
"""What 16 bits cost: gradients of a library in bf16 or f16 beside those of the same graph in
float64, rounded where its types say.

    rounded.py --ckc ckc --ckrun ckrun --ref ref_model [--models DIR]... [--dtypes bf16,f16]
    [--flags "..."] [--stage PASS] [--check] [--most 1.5]
               [--table FILE] [NAME-GLOB...]

For each NAME.json in the folders (default: ../models beside this file) three gradients of the first
step: the library's; what ref_model makes of the graph with its types and backward part, in float64
and with each value that the graph has in 16 bits rounded to nearest where it is made; and the exact
ones of NAME.ref.safetensors.  An error is the norm of the difference to the exact gradient over its
norm, of a model the median over its tensors.  The library may add what float32 and the order of
sums cost, no more, and must use the types: --check fails it where its error is beyond --most (1.5)
times that of the rounded graph or below a fifth of it, and in f16 beyond 1e-2 as well unless
rounding alone is. Gradients that are zero but for rounding (a key's bias, a bias in front of a
norm) are left out.  Needs numpy.
"""

import argparse
import fnmatch
import json
import os
import shlex
import subprocess
import sys
import tempfile

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, os.pardir, "ref")]
import check_models  # noqa: E402
import check_ref  # noqa: E402
import compare  # noqa: E402

LEAST, F16, ZERO = 0.2, 1e-2, 1e-6


def must(argv):
    done = subprocess.run(
        [str(a) for a in argv],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        timeout=300,
    )
    if done.returncode:
        raise RuntimeError(
            f"{os.path.basename(str(argv[0]))}: status {done.returncode}: {' | '.join(done.stdout.strip().splitlines()[-3:])}"
        )


def exact(stem):
    ref = compare.load(stem + ".ref.safetensors")
    grads = {k[5:]: v.astype(float) for k, v in ref.items() if k.startswith("grad.")}
    scale = max(np.abs(v).max() for v in grads.values() if v.size)
    return {k: v for k, v in grads.items() if np.linalg.norm(v) > ZERO * scale * np.sqrt(v.size)}


def median_error(path, want):
    got = compare.load(path)
    return float(
        np.median(
            [np.linalg.norm(got[k].astype(float) - v) / np.linalg.norm(v) for k, v in want.items()]
        )
    )


def library(o, stem, flags, work):
    so, grads = os.path.join(work, "m.so"), os.path.join(work, "library.safetensors")
    must([o.ckc, stem + ".onnx", "-o", so, "--quiet", *flags])
    must([o.ckrun, so, "--inputs", stem + ".inputs.safetensors", "--steps", 1, "--grads", grads])
    return grads


def rounded(o, stem, meta, flags, work):
    check_ref.write_setup(stem, meta, 1, work)
    with open(os.path.join(work, "setup"), "a", encoding="utf-8") as f:
        print("round half", file=f)
    must([o.ref, work, stem + ".onnx", f"--stop-after={o.stage}", *flags])
    return os.path.join(work, "grads.safetensors")


def errors(o, stem, dtype):
    """The library's error and that of the rounded graph."""
    with open(stem + ".json", encoding="utf-8") as f:
        meta = json.load(f)
    flags = check_models.compile_flags(meta, os.path.basename(stem)) + [
        "--dtype",
        dtype,
        *shlex.split(o.flags),
    ]
    want = exact(stem)
    with tempfile.TemporaryDirectory() as work:
        return median_error(library(o, stem, flags, work), want), median_error(
            rounded(o, stem, meta, flags, work), want
        )


def fault(o, dtype, ours, ideal):
    if not LEAST * ideal <= ours <= o.most * ideal:
        return f"{ours / ideal:.2f} times the rounded graph's error"
    if dtype == "f16" and not (ours <= F16 or ideal > F16):
        return f"more than {F16}"
    return None


def stems(o):
    for folder in o.models or [os.path.join(HERE, os.pardir, "models")]:
        for name in sorted(f[:-5] for f in os.listdir(folder) if f.endswith(".json")):
            stem = os.path.join(folder, name)
            if any(fnmatch.fnmatch(name, g) for g in o.names or ["*"]) and os.path.exists(
                stem + ".ref.safetensors"
            ):
                yield name, stem


def write_table(path, dtypes, rows):
    with open(path, "w", encoding="utf-8") as f:
        print("| model |" + "".join(f" {d} | {d}, rounded float64 |" for d in dtypes), file=f)
        print("|---|" + "---|---|" * len(dtypes), file=f)
        for name, row in rows.items():
            print(f"| {name} |" + "".join(f" {a:.2e} | {b:.2e} |" for a, b in row), file=f)


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--ckc", required=True)
    p.add_argument("--ckrun", required=True)
    p.add_argument("--ref", required=True, help="ref_model")
    p.add_argument("--models", action="append")
    p.add_argument("--dtypes", default="bf16,f16")
    p.add_argument("--flags", default="", help="more flags for ckc")
    p.add_argument(
        "--stage",
        default="optim",
        help="the pass whose graph is rounded; after fuse a loop of many ops rounds as its kernel does",
    )
    p.add_argument("--most", type=float, default=1.5)
    p.add_argument("--check", action="store_true")
    p.add_argument("--table", help="write the errors as a table")
    p.add_argument("names", nargs="*")
    o = p.parse_args()
    dtypes, rows, failed = o.dtypes.split(","), {}, 0
    for name, stem in stems(o):
        try:
            rows[name] = [errors(o, stem, d) for d in dtypes]
        except (RuntimeError, KeyError, ValueError) as e:
            failed += 1
            print(f"FAIL {name}: {e}", flush=True)
            continue
        for d, (ours, ideal) in zip(dtypes, rows[name]):
            why = fault(o, d, ours, ideal)
            failed += bool(why and o.check)
            print(
                f"{'FAIL' if why and o.check else 'ok  '} {name} {d}: {ours:.2e}, rounded float64 {ideal:.2e} {why or ''}",
                flush=True,
            )
    if o.table:
        write_table(o.table, dtypes, rows)
    print(f"{len(rows)} models, {failed} failed")
    return failed > 0 or not rows


if __name__ == "__main__":
    sys.exit(main())
