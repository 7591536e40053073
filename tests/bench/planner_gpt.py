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
import json
import os
import re
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))


def run(argv):
    """Exit status, CPU seconds, peak MiB and stderr of a process of its own."""
    with tempfile.TemporaryFile() as err:
        pid = os.fork()
        if pid == 0:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            os.dup2(err.fileno(), 2)
            os.execv(argv[0], [str(a) for a in argv])
        _, status, use = os.wait4(pid, 0)
        err.seek(0)
        return (
            status,
            use.ru_utime + use.ru_stime,
            use.ru_maxrss / 1024,
            err.read().decode(errors="replace"),
        )


def timed(o, argv):
    """The least CPU seconds of some runs, and their peak MiB."""
    runs = [run(argv) for _ in range(o.repeat)]
    return min(r[1] for r in runs), min(r[2] for r in runs)


def rows(o, name, path, flags, work):
    ckc, out = os.path.join(o.build, "ckc"), os.path.join(work, "plan.json")
    status, _, _, err = run([ckc, path, "--plan-only", "--quiet", "--json", out, *flags])
    if status:
        sys.exit(err)
    cpu, rss = timed(o, [ckc, path, "--plan-only", "--quiet", *flags])
    with open(out) as f:
        full = json.load(f)["summary"]
    yield [name, "keep everything", "0.00", "0.00", "any", f"{cpu:.2f}", f"{rss:.0f}"]
    for pct in (int(x) for x in o.percent.split(",")):
        budget = full["peak_bytes"] - full["saved_bytes"] * (100 - pct) // 100
        status, cpu, rss, err = run(
            [ckc, path, "--plan-only", "--quiet", "--json", out, "--memory-budget", budget, *flags]
        )
        if status:
            least = re.search(r"smallest budget that works: (\d+)", err)
            if not least:
                sys.exit(err)
            over = 100 - 100 * (full["peak_bytes"] - int(least[1])) / full["saved_bytes"]
            yield [
                name,
                f"{pct} %",
                "refused",
                "",
                f"least {over:.1f} %",
                f"{cpu:.2f}",
                f"{rss:.0f}",
            ]
            continue
        with open(out) as f:
            s = json.load(f)["summary"]
        if s["peak_bytes"] > budget:
            sys.exit(f"{name}: {s['peak_bytes']} B are over the budget of {budget} B")
        cpu, rss = timed(
            o, [ckc, path, "--plan-only", "--quiet", "--memory-budget", budget, *flags]
        )
        base = s["step_seconds"] - s["recompute_seconds"]
        yield [
            name,
            f"{pct} %",
            f"{100 * s['recompute_seconds'] / base:.2f}",
            f"{100 * (s['step_seconds'] - s['bound_seconds']) / base:.2f}",
            s["bound_class"],
            f"{cpu:.2f}",
            f"{rss:.0f}",
        ]


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--build", default=os.path.join(HERE, "..", "..", "build"))
    p.add_argument("--export")
    p.add_argument("--layers", default="2,4,12,96,128")
    p.add_argument("--presets", default="llama-70B,1T")
    p.add_argument("--percent", default="90,75,50,35,25,15,10,5")
    p.add_argument("--repeat", type=int, default=2)
    p.add_argument("--out")
    o = p.parse_args()
    lines = [
        f"# Planning of GPT training steps, {datetime.date.today()}",
        "",
        "Recompute and gap in per cent of a step; the gap is to the printed lower bound, which holds for the class named.",
        "",
        "| work | budget, of the activations | recompute | gap | bound | CPU s | MiB |",
        "|---|---|---|---|---|---|---|",
    ]
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
            for row in rows(o, name, path, flags, work):
                lines.append("| " + " | ".join(row) + " |")
                print(lines[-1], flush=True)
    if o.out:
        with open(o.out, "w") as f:
            f.write("\n".join(lines) + "\n")


main()
