#!/usr/bin/env python3
"""Whole training runs in mixed precision beside float32's: where the loss ends.

    precision_runs.py [--build build] [--steps 1000] [--seeds 1,2,3] [--lr 1e-3] [--batch 4] [--seq
    64] [--data FILE] [--dtypes bf16,f16]
                      [--max 0.01] [--out FILE] [-- CKC-FLAGS...]

The character GPT of samples/chargpt learns FILE's bytes (the GPL, if it is not given), the same
batches in the same order for one seed, in float32 and in each of the 16-bit types, with float32
masters and without.  A run's end is the mean loss of its last 50 steps.  Exit status 1 if one of
them is further than --max from float32's of the same seed, relative.  A second float32 run, at a
learning rate a thousandth higher, shows what such a distance means: two runs that differ at all
drift apart.  Flags behind -- are for the 16-bit libraries.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SAMPLE = os.path.join(HERE, os.pardir, os.pardir, "samples", "chargpt", "chargpt.onnx")
LAST = 50


def must(argv):
    done = subprocess.run(
        [str(a) for a in argv],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    if done.returncode:
        sys.exit(f"{argv[0]}: status {done.returncode}: {done.stdout.strip()[-400:]}")


def settings(o):
    """Name, flags for ckc, factor of the learning rate."""
    yield "f32", [], 1
    yield "f32, lr 0.1 % higher", [], 1.001
    for dtype in o.dtypes.split(","):
        for masters in "on", "off":
            yield (
                f"{dtype}, masters {masters}",
                ["--dtype", dtype, "--master-weights", masters, *o.flags],
                1,
            )


def end_of(o, so, seed, rate, work):
    log = os.path.join(work, "log")
    must(
        [
            os.path.join(o.build, "ckrun"),
            so,
            "--data",
            o.data,
            "--tokens",
            "bytes",
            "--steps",
            o.steps,
            "--lr",
            rate,
            "--seed",
            seed,
            "--log",
            log,
            "--quiet",
        ]
    )
    with open(log, encoding="utf-8") as f:
        losses = [json.loads(line)["loss"] for line in f if '"loss"' in line]
    return statistics.fmean(losses[-LAST:])


def rows(o, work):
    so = os.path.join(work, "m.so")
    for name, flags, factor in settings(o):
        must(
            [
                os.path.join(o.build, "ckc"),
                SAMPLE,
                "-o",
                so,
                "--dim",
                f"batch={o.batch}",
                "--dim",
                f"seq={o.seq}",
                "--quiet",
                *flags,
            ]
        )
        ends = [end_of(o, so, seed, factor * o.lr, work) for seed in o.seeds.split(",")]
        print(name, *(f"{x:.4f}" for x in ends), flush=True)
        yield name, ends


def text(o, table):
    seeds = o.seeds.split(",")
    lines = [
        "| type |" + "".join(f" seed {s} |" for s in seeds) + " furthest from f32 |",
        "|---|" + "---|" * (len(seeds) + 1),
    ]
    whole = table["f32"]
    for name, ends in table.items():
        far = max((a / b - 1 for a, b in zip(ends, whole)), key=abs)
        lines.append(
            f"| {name} |" + "".join(f" {x:.4f} |" for x in ends) + f" {100 * far:+.2f} % |"
        )
    return "\n".join(lines) + "\n"


def main():
    argv, more = sys.argv[1:], []
    if "--" in argv:
        argv, more = argv[: argv.index("--")], argv[argv.index("--") + 1 :]
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--build", default="build")
    p.add_argument("--steps", type=int, default=1000)
    p.add_argument("--seeds", default="1,2,3")
    p.add_argument("--lr", type=float, default=1e-3)
    p.add_argument("--batch", type=int, default=4)
    p.add_argument("--seq", type=int, default=64)
    p.add_argument("--data", default="/usr/share/common-licenses/GPL-3")
    p.add_argument("--dtypes", default="bf16,f16")
    p.add_argument("--max", type=float, default=0.01)
    p.add_argument("--out", help="write the table there, too")
    o = p.parse_args(argv)
    o.flags = more
    with tempfile.TemporaryDirectory() as work:
        table = dict(rows(o, work))
    print(text(o, table), end="")
    if o.out:
        with open(o.out, "w", encoding="utf-8") as f:
            f.write(text(o, table))
    return any(
        abs(a / b - 1) > o.max for ends in table.values() for a, b in zip(ends, table["f32"])
    )


if __name__ == "__main__":
    sys.exit(main())
