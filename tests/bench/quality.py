#!/usr/bin/env python3
"""Quality and time of the planner over many graphs and budgets, for comparing two builds of it.

    quality.py measure BUILD --out FILE.json [--like BASE.json] [--models DIR] [--graphs DIR]
    [--kind KIND]... [--only GLOB]... [--large] quality.py compare BASE.json NEW.json [--all]
    quality.py ablate BUILD --work DIR --base BASE.json [--models DIR] [--graphs DIR] [--name
    GLOB]... [--table FILE.md]

measure plans every workload at keep-everything, five budgets spread evenly down to its least, and
the least itself, and writes a cell for each: what is recomputed and the bound in per cent of a
step, and CPU seconds of the whole command.  Workloads are of the kinds
  gpt      training steps of samples/gpt with 2, 4, 12, 96 and 128 layers
  model    every NAME.onnx with a NAME.json beside it in --models (reference models)
  graph    planning graphs of --graphs and generated ones: `ckc plan`; larger ones with --large
With --like the budgets in bytes are those of BASE, so that cells can be compared.  Only `ckc plan`
is asked for other plans than `ckc` makes by default.

compare prints cells that differ by more than 0.02 % of a step, least budgets that differ, and sums.

ablate copies the tree to DIR, takes one means after the other away as ablations.txt beside this
file says (same form as tests/mutants/mutants.txt), builds, measures and compares; --table writes
what each means is worth.
"""

import argparse
import fnmatch
import glob
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.dirname(HERE)
sys.path[:0] = [
    os.path.join(TESTS, "plan"),
    os.path.join(TESTS, "tools"),
    os.path.join(TESTS, "mutants"),
]
import gen_graphs  # noqa: E402
import run as mutants  # noqa: E402
from check_models import compile_flags  # noqa: E402

STEPS = 5  # budgets between keep-everything and the least
MADE = (
    ("resnet", 350),
    ("unet", 6),
    ("skipping", 100),
    ("stacked", 100),
    ("layered", 100),
    ("layered", 250),
    ("parallel", 300),
    ("chain", 1000),
    ("wide", 60),
)
LARGE = (("stacked", 250), ("stacked", 1000), ("skipping", 1000), ("layered", 1000))
NOTABLE = 0.02  # per cent of a step
LIMIT = 900


def timed(argv):
    """Status, what was said, CPU seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    try:
        done = subprocess.run(
            [str(x) for x in argv], capture_output=True, text=True, errors="replace", timeout=LIMIT
        )
    except subprocess.TimeoutExpired:
        return 124, "", LIMIT
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (
        done.returncode,
        done.stdout + done.stderr,
        after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
    )


class Job:
    """Something to plan: a command, the flag and the word that ask it for everything kept, and what
    a refusal says of the least budget."""

    def __init__(self, argv, budget, whole, least):
        self.argv, self.budget, self.whole, self.least = [*argv, "--quiet"], budget, whole, least

    def plan(self, budget, out):
        """Recompute and bound in per cent, or None; CPU seconds; peak."""
        status, said, cpu = timed(
            [*self.argv, "--json", out] + ([self.budget, f"{budget}B"] if budget else self.whole)
        )
        if status:
            least = re.search(self.least, said)
            return None, cpu, int(least[1]) if least else -1
        with open(out) as f:
            s = json.load(f)["summary"]
        base = s["step_seconds"] - s["recompute_seconds"]
        scale = 100 / base if base > 0 else 0
        return (
            (scale * s["recompute_seconds"], scale * (s["bound_seconds"] - base)),
            cpu,
            s["peak_bytes"],
        )


def model(ckc, path, flags):
    return Job(
        [ckc, path, "--plan-only", *flags],
        "--memory-budget",
        [],
        r"smallest budget that works[^:]*: (\d+)",
    )


def graph(ckc, path):
    return Job(
        [ckc, "plan", path], "--budget", ["--budget", "1.0"], r"least budget (?:found )?(\d+) B"
    )


def workloads(o, work):
    """Name and kind, and what makes the workload, in order."""
    ckc = os.path.join(o.build, "ckc")
    kinds = o.kind or ["gpt", "model", "graph"]
    if "gpt" in kinds:
        for n in (2, 4, 12, 96, 128):
            path = os.path.join(work, f"gpt{n}.onnx")
            argv = [
                os.path.join(o.build, "gpt"),
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
                "-o",
                path,
            ]
            yield f"gpt-{n}", lambda path=path, argv=argv: timed(argv)[0] or model(ckc, path, [])
    if "model" in kinds and o.models:
        for meta in sorted(glob.glob(os.path.join(o.models, "*.json"))):
            name = os.path.basename(meta)[:-5]
            with open(meta) as f:
                data = json.load(f)
            if "optimizer" in data:
                yield (
                    name,
                    lambda data=data, name=name, meta=meta: model(
                        ckc, meta[:-5] + ".onnx", compile_flags(data, name)
                    ),
                )
    if "graph" in kinds:
        for path in sorted(glob.glob(os.path.join(o.graphs, "*.json"))) if o.graphs else []:
            yield os.path.basename(path)[:-5], lambda path=path: graph(ckc, path)
        for kind, n in MADE + (LARGE if o.large else ()):
            path = os.path.join(work, f"{kind}-{n}.json")

            def make(kind=kind, n=n, path=path):
                with open(path, "w", encoding="utf-8") as f:
                    json.dump(gen_graphs.KINDS[kind](n, 1).json(), f)
                return graph(ckc, path)

            yield f"{kind}-{n}", make


def measure(o, progress=True):
    like = json.load(open(o.like)) if o.like else {}
    cells = {}
    with tempfile.TemporaryDirectory(prefix="ckc-quality-") as work:
        out = os.path.join(work, "plan.json")
        for name, make in workloads(o, work):
            if o.only and not any(fnmatch.fnmatch(name, g) for g in o.only):
                continue
            job = make()
            whole, cpu, top = job.plan(None, out)
            _, cpu0, least = job.plan(2, out)
            if whole is None or least < 0:
                print(f"{name}: no plan", file=sys.stderr)
                continue
            base = like.get(name, {})
            rows = {"least": least, "whole": top, "cells": {}}
            at = base.get("budgets") or [
                least + (top - least) * k // STEPS for k in range(STEPS - 1, -1, -1)
            ]
            rows["budgets"] = at
            rows["cells"]["refused"] = [None, None, cpu0]
            for budget in at:
                plan, cpu, peak = job.plan(budget, out)
                if plan and peak > budget:
                    sys.exit(f"{name}: {peak} B are over the budget of {budget} B")
                rows["cells"][str(budget)] = [*(plan or (None, None)), cpu]
            cells[name] = rows
            if progress:
                print(
                    f"{name:28} least {100 * least / top:5.1f} %  "
                    + "  ".join(
                        "   --      " if c[0] is None else f"{c[0]:6.2f} ({c[0] - c[1]:.2f})"
                        for c in list(rows["cells"].values())[1:]
                    )
                    + f"  {sum(c[2] for c in rows['cells'].values()):6.2f} s",
                    flush=True,
                )
            with open(o.out, "w") as f:
                json.dump(cells, f, indent=1)
    return cells


def compare(base, new, every=False, say=print):
    """Sums: cells worse and better by more than NOTABLE, the worst and the best, seconds of both,
    least budgets that rose and fell."""
    worse = better = rose = fell = 0
    low = high = gain = 0.0
    sec = [0.0, 0.0]
    for name, b in base.items():
        n = new.get(name)
        if not n:
            continue
        if n["least"] != b["least"]:
            rose += n["least"] > b["least"]
            fell += n["least"] < b["least"]
            say(
                f"{name}: least {b['least']} -> {n['least']} ({100 * (n['least'] / b['least'] - 1):+.2f} %)"
            )
        cpu = [sum(c[2] for c in x["cells"].values()) for x in (b, n)]
        sec = [x + y for x, y in zip(sec, cpu)]
        if cpu[1] > 1.3 * cpu[0] + 0.1 or (every and cpu[1] < 0.7 * cpu[0]):
            say(f"{name}: {cpu[0]:.2f} -> {cpu[1]:.2f} s")
        for budget, x in b["cells"].items():
            y = n["cells"].get(budget)
            if budget == "refused" or y is None or (x[0] is None and y[0] is None):
                continue
            more = (200 if y[0] is None else y[0]) - (200 if x[0] is None else x[0])
            bound = (y[1] or 0) - (x[1] or 0)
            low, high, gain = min(low, more), max(high, more), gain + more
            worse += more > NOTABLE
            better += more < -NOTABLE
            if abs(more) > NOTABLE or (every and abs(bound) > NOTABLE):
                shown = [
                    "none" if z[0] is None else f"{z[0]:.3f} (bound {z[1]:.3f})" for z in (x, y)
                ]
                say(f"{name} at {100 * int(budget) / b['whole']:.1f} %: {shown[0]} -> {shown[1]}")
    return {
        "worse": worse,
        "better": better,
        "most worse": high,
        "most better": low,
        "sum": gain,
        "sec": sec,
        "least rose": rose,
        "least fell": fell,
    }


def say_sums(s):
    return (
        f"{s['worse']} cells worse (at most {s['most worse']:+.3f}), {s['better']} better (at most {s['most better']:+.3f}), sum {s['sum']:+.3f} % of a step; "
        f"least rose {s['least rose']}, fell {s['least fell']}; CPU {s['sec'][0]:.1f} -> {s['sec'][1]:.1f} s"
    )


def ablate(o):
    list_ = [
        m
        for m in mutants.read_table(os.path.join(HERE, "ablations.txt"))
        if not o.name or any(fnmatch.fnmatch(m.name, g) for g in o.name)
    ]
    copy = mutants.Copy(os.path.abspath(o.work), LIMIT, ("ckc", "gpt"))
    base, text = json.load(open(o.base)), []
    for m in list_:
        path, why = mutants.locate(m, copy.found)
        if not path:
            sys.exit(f"{m.name}: {why}")
        with open(path, encoding="utf-8") as f:
            whole = f.read()
        try:
            mutants.write(path, whole.replace("\n".join(m.old), "\n".join(m.new)))
            copy.call(["cmake", "--build", copy.build, "--target", "ckc", "gpt"])
            o.build, o.like, o.kind, o.out = (
                copy.build,
                o.base,
                m.test.split(),
                f"{o.work}-{m.name}.json",
            )
            new = measure(o, progress=False)
        finally:
            mutants.write(path, whole)
        print(f"== {m.name}: {m.what}")
        s = compare(base, new)
        print("   " + say_sums(s), flush=True)
        text.append(
            f"| {m.name} | {m.what} | {m.test} | {s['worse']} | {s['most worse']:+.2f} | {s['better']} | {s['most better']:+.2f} | {s['least rose']} | "
            f"{s['least fell']} | {s['sec'][0]:.1f} | {s['sec'][1]:.1f} |"
        )
        if o.table:
            with open(o.table, "w", encoding="utf-8") as f:
                f.write(
                    f"# What each means of the planner is worth\n\nWritten by `tests/bench/quality.py ablate` on {time.strftime('%Y-%m-%d')}: the planner without one of them against the "
                    "planner as it is.\nCells are workloads at five budgets; worse and better by more than 0.02 % of a step, the most in % of a step;\nleast budgets that rose or fell; "
                    "CPU seconds with it and without.\n\n| without | what it does | kinds | worse | most | better | most | least rose | fell | s with | s without |\n"
                    "|---|---|---|---:|---:|---:|---:|---:|---:|---:|---:|\n"
                    + "\n".join(text)
                    + "\n"
                )


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    sub = p.add_subparsers(dest="verb", required=True)
    for verb in ("measure", "ablate"):
        q = sub.add_parser(verb)
        q.add_argument("build")
        q.add_argument("--models")
        q.add_argument("--graphs")
        q.add_argument("--only", action="append")
        q.add_argument("--large", action="store_true")
        if verb == "measure":
            q.add_argument("--out", required=True)
            q.add_argument("--like")
            q.add_argument("--kind", action="append")
        else:
            q.add_argument("--work", required=True)
            q.add_argument("--base", required=True)
            q.add_argument("--name", action="append")
            q.add_argument("--table")
    q = sub.add_parser("compare")
    q.add_argument("base")
    q.add_argument("new")
    q.add_argument("--all", action="store_true")
    o = p.parse_args()
    if o.verb == "measure":
        measure(o)
    elif o.verb == "compare":
        print(say_sums(compare(json.load(open(o.base)), json.load(open(o.new)), o.all)))
    else:
        ablate(o)


if __name__ == "__main__":
    main()
