#!/usr/bin/env python3
"""Planning of training steps of large models: quality, proven gap, CPU seconds and memory over
budgets, as one table.

    planner_large.py --models DIR [--build build] [--percent 40,25,10] [--out FILE.md] [NAME ...]

DIR holds what tests/bench/large_models.py exported; names are globs.  Plans are for an H100 in
bf16 with AdamW.  A budget of P % of the activations is keep-everything's peak less (100 - P) % of
the bytes saved for backward.  Half of the memory outside the arena is refused; the refusal prints
the least budget, which is the last row of a model.  It may be below 0 %: ckc then applies updates
in backward, or keeps no 16-bit copies of parameters.  Seconds are user and system time of the whole
command `ckc --plan-only`, without the JSON file that tests/tools/replay.py checks.
"""

import argparse
import datetime
import fnmatch
import os
import tempfile

import planner_rows

FLAGS = ["--target", "cuda", "--device", "H100", "--dtype", "bf16", "--optimizer", "adamw"]
FLAGS += ["--batchnorm", "batch"]  # the exporter writes the form of inference


def rows(graph, name, percent):
    yield from planner_rows.rows(graph, name, percent)
    cells, least = graph.row(graph.full["resident_bytes"] // 2)
    yield [name, "refusal", *cells]
    if least is not None:
        yield [name, f"least: {graph.percent(least):.1f} %", *graph.row(least)[0]]


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("names", nargs="*", default=["*"])
    p.add_argument("--models", required=True)
    planner_rows.options(p, "40,25,10")
    o = p.parse_args()
    table = planner_rows.Table(
        f"# Planning of training steps of large models, {datetime.date.today()}",
        "",
        "Graphs of tests/bench/large_models.py, planned for one H100 in bf16 with AdamW. Overhead and gap in per",
        "cent of the step that keeps everything. Overhead is recomputation, and conversions of parameters whose",
        "16-bit copies do not stay. The gap is to the printed lower bound, which holds for the class named and the",
        "form of the step that was chosen. Replay is the verdict of tests/tools/replay.py on the plan.",
    )
    table.head([*planner_rows.HEAD, "replay"])
    with tempfile.TemporaryDirectory(prefix="ckc-planner-") as work:
        for file in sorted(os.listdir(o.models)):
            name, path = file[:-5], os.path.join(o.models, file)
            if not file.endswith(".onnx") or not any(fnmatch.fnmatch(name, g) for g in o.names):
                continue
            try:
                graph = planner_rows.Graph(o, path, FLAGS, work, replay=True)
                for cells in rows(graph, name, o.percent):
                    table.row(cells + [""] * (len(planner_rows.HEAD) + 1 - len(cells)))
                    table.write(o.out)
            except planner_rows.Failed as e:
                lines = [s for s in str(e).splitlines() if "warning:" not in s]
                table.row([name, "failed", lines[0] if lines else "", *[""] * 5])


main()
