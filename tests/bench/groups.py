#!/usr/bin/env python3
"""Plans of a 22B model over 64 H100 in nodes of eight: halves of a batch and zero groups.

    groups.py [--build build] [--out results/groups.md]

halves: --tp 8 --sp --dp 8, four sequences a replica.  Seconds of a step in which transfers run
beside computation, of transfers in forward, and how many of those are hidden.  zero groups: --dp
64, one sequence a replica, shards over all replicas and over those of a node.
"""

import argparse
import datetime
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, os.pardir, "plan"))
from check_halves import forward  # noqa: E402
from zero import Bench  # noqa: E402

GIB = 2**30
FLAGS = ["--plan-only", "--quiet", "--device", "H100", "--target", "cuda", "--dtype", "bf16"]
HALVES = ["--tp", 8, "--sp", "--dp", 8, "--halves"]
BUDGETS = None, 50, 45, 40, 36, 33
GROUP_BUDGETS = None, 60, 50, 40, 30, 25


class GroupBench(Bench):
    def plan(self, model, *flags):
        """The plan, and seconds of ckc; None if it refuses."""
        out = self.path("p.json")
        began = time.monotonic()
        command = [self.tool("ckc"), model, *FLAGS, "--json", out, *map(str, flags)]
        if subprocess.run(command, capture_output=True).returncode:
            return None, 0
        with open(out, encoding="utf-8") as source:
            return json.load(source), time.monotonic() - began

    def halves(self):
        model = self.model("--model", "22B", batch=4)
        yield "| budget GiB | halves | peak GiB | s a step | forward: transfers s | hidden | ckc s |"
        yield "|---:|---|---:|---:|---:|---:|---:|"
        for budget in BUDGETS:
            for halves in "off", "on":
                more = ["--memory-budget", f"{budget}GiB"] if budget else []
                plan, took = self.plan(model, *HALVES, halves, *more)
                if not plan:
                    yield f"| {budget} | {halves} | refused | | | | |"
                    continue
                s, (_, sent, shown) = plan["summary"], forward(plan)
                yield (
                    f"| {budget or 'none'} | {halves} | {s['peak_bytes'] / GIB:.1f} "
                    f"| {s['exposed_seconds']:.3f} | {sent:.3f} | {100 * (1 - shown / sent):.0f} % "
                    f"| {took:.1f} |"
                )

    def groups(self):
        model = self.model("--model", "22B")
        yield "| budget GiB | stage | zero group | peak GiB | s a step | transfers s | ckc s |"
        yield "|---:|---|---:|---:|---:|---:|---:|"
        for budget, stage, group in itertools.product(GROUP_BUDGETS, (2, 3), (64, 8)):
            more = ["--memory-budget", f"{budget}GiB"] if budget else []
            more += ["--zero-group", group] if group < 64 else []
            plan, took = self.plan(model, "--dp", 64, "--zero", stage, *more)
            if not plan:
                yield f"| {budget} | {stage} | {group} | refused | | | |"
                continue
            s = plan["summary"]
            yield (
                f"| {budget or 'none'} | {stage} | {group} | {s['peak_bytes'] / GIB:.1f} "
                f"| {s['exposed_seconds']:.3f} | {plan['comm']['seconds']:.3f} | {took:.1f} |"
            )


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--build", default="build")
    p.add_argument("--out", default=os.path.join(HERE, "results", "groups.md"))
    o = p.parse_args()
    commit = subprocess.run(
        ["git", "-C", HERE, "log", "-1", "--format=%h"], capture_output=True, text=True
    ).stdout.strip()
    with tempfile.TemporaryDirectory() as folder:
        bench = GroupBench(o.build, folder)
        rows = [
            "# 22B over 64 H100 in nodes of eight",
            "",
            f"Planned, not measured: `tests/bench/groups.py` on {datetime.date.today()}, {commit}; "
            "predicted seconds.",
            "",
            "## Halves of a batch: `--tp 8 --sp --dp 8`, four sequences a replica",
            "",
            *bench.halves(),
            "",
            "## Zero groups: `--dp 64`, one sequence a replica",
            "",
            *bench.groups(),
        ]
    with open(o.out, "w", encoding="utf-8") as f:
        f.write("\n".join(rows) + "\n")


if __name__ == "__main__":
    main()
