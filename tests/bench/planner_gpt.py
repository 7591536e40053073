#!/usr/bin/env python3
"""Planning of GPT training steps: quality, proven gap, CPU seconds and memory over budgets, as one
table.

    planner_gpt.py [--build build] [--export GPT2.onnx] [--layers 2,4,12,96,128] [--percent
    90,75,50,35,25,15,10,5] [--out FILE.md]

Graphs come from samples/gpt (hidden 768, 12 heads, sequence 1,024, batch 4, vocabulary 50,257) and
its presets 1T and llama-70B;
--export adds an export with symbolic `batch` (4) and `seq` (256).  A budget of P % of the
activations is keep-everything's peak less (100 - P) % of the bytes saved for backward.  Seconds are
user and system time of the whole command `ckc --plan-only`, the least of --repeat runs, without the
JSON file that the other numbers are read from.
"""

import argparse
import datetime
import os
import sys
import tempfile

from planner_rows import HEAD, Failed, Graph, Table, options, rows, run


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--export")
    p.add_argument("--layers", default="2,4,12,96,128")
    p.add_argument("--presets", default="llama-70B,1T")
    options(p, "90,75,50,35,25,15,10,5")
    o = p.parse_args()
    table = Table(
        f"# Planning of GPT training steps, {datetime.date.today()}",
        "",
        "Overhead and gap in per cent of the step that keeps everything; the gap is to the printed lower bound, which holds for the class named.",
    )
    table.head(HEAD)
    with tempfile.TemporaryDirectory(prefix="ckc-planner-") as work:
        jobs = [
            (
                f"GPT, {n} layers",
                [
                    "--layers",
                    n,
                    "--hidden",
                    768,
                    "--heads",
                    12,
                    "--seq",
                    1024,
                    "--vocab",
                    50257,
                    "--batch",
                    4,
                ],
            )
            for n in o.layers.split(",")
            if n
        ]
        jobs += [(name, ["--model", name]) for name in o.presets.split(",") if name]
        graphs = (
            [("GPT-2 export", o.export, ["--dim", "batch=4", "--dim", "seq=256"])]
            if o.export
            else []
        )
        for i, (name, flags) in enumerate(jobs):
            path = os.path.join(work, f"{i}.onnx")
            status, _, _, err = run([os.path.join(o.build, "gpt"), *flags, "-o", path])
            if status:
                sys.exit(err)
            graphs.append((name, path, []))
        for name, path, flags in graphs:
            try:
                for cells in rows(Graph(o, path, flags, work), name, o.percent):
                    table.row(cells)
            except Failed as e:
                sys.exit(f"{name}: {e}")
    table.write(o.out)


main()
