#!/usr/bin/env python3
"""More memory is never slower, less never takes more, and the planner's price is that of the plan.

    monotone.py CKC CKRUN [--budgets N] [--part I/N] [--flags "..."] [MODEL...]

Each model is planned for N budgets (3) from its least one to keep-everything, every time by a
process of its own: the outside replay accepts the plan, it fits, its bound is no more than its
time, its time no more than that of any smaller budget and its peak no less. Then, for the models of
CURVES, a point in the middle of its curve, which shows what the planner reckoned without making the
plan: the plan at that budget has just this peak and these seconds. All reference models by default,
or every N-th one from the I-th on.
"""

import glob
import os
import shlex
import sys

import ck

sys.path.insert(0, ck.TOOLS)
from planfiles import read_json  # noqa: E402
from replay import Replay  # noqa: E402

# One of each kind whose curve takes seconds, not a minute (T5's, with hardly two equal layers).
CURVES = ("mlp-mse", "gpt2-ts14", "resnet-dynamo", "moe-dynamo", "chargpt-dyn-o24", "vit-dynamo")
MANY = ("mlp-mse", "chargpt-dyn-o24")  # are planned for more budgets: 60


class Model:
    def __init__(self, bench, stem, flags):
        self.bench, self.stem, self.name = bench, stem, os.path.basename(stem)
        self.flags = ck.model_flags(stem)[0] + flags

    def ckc(self, *flags):
        return self.bench.ckc(self.stem + ".onnx", "--plan-only", *self.flags, *flags)

    def planned(self, budget, *flags):
        """The plan, which is replayed; None after a fault."""
        js = self.bench.path("one.json")
        done = self.ckc("--json", js, *(["--memory-budget", budget] if budget else []), *flags)
        if not self.bench.must(done, f"{self.name}: {budget} B"):
            return None
        plan = read_json(js)
        faults = Replay(plan).faults
        self.bench.check(not faults, f"{self.name}: {budget} B: replay: {faults[:3]}")
        return plan

    def ladder(self, n):
        check, full = self.bench.check, self.planned(None)["summary"]
        refused = self.ckc("--memory-budget", "1B")
        found = ck.ERRORS.search(refused.stderr)
        if not check(found, f"{self.name}: {refused.stderr.strip()[:300]}"):
            return
        least, top = int(found.group(1)), full["peak_bytes"]
        before = {"step_seconds": float("inf"), "peak_bytes": 0}
        for i in range(n):
            budget = least + (top - least) * i // (n - 1)
            plan = self.planned(budget)
            if not plan:
                continue
            s, what = plan["summary"], f"{self.name}: {budget} B"
            check(s["peak_bytes"] <= budget, f"{what}: peak {s['peak_bytes']}")
            check(
                s["bound_seconds"] <= s["step_seconds"] * (1 + 1e-12),
                f"{what}: bound {s['bound_seconds']}",
            )
            check(
                s["step_seconds"] <= before["step_seconds"] * (1 + 1e-12),
                f"{what}: {s['step_seconds']} s, with less memory {before['step_seconds']}",
            )
            check(
                s["peak_bytes"] >= before["peak_bytes"]
                or s["step_seconds"] < before["step_seconds"] * (1 - 1e-12),
                f"{what}: no faster than with less memory, which peaked at {before['peak_bytes']}, not {s['peak_bytes']}",
            )
            before = s
        check(
            before["step_seconds"] <= full["step_seconds"] * (1 + 1e-9),
            f"{self.name}: everything fits, but takes {before} s",
        )

    def curve(self):
        whole = self.planned(None, "--curve")
        points = whole["curve"] if whole else []
        for point in points[len(points) // 2 :][:1]:
            plan = self.planned(point["budget_bytes"])
            if not plan:
                continue
            for key in "peak_bytes", "recompute_seconds", "step_seconds":
                claimed, found = point[key], plan["summary"][key]
                self.bench.check(
                    abs(claimed - found) <= 1e-9 * abs(found) + 1e-15,
                    f"{self.name}: {point['budget_bytes']} B: {key} was reckoned to be {claimed}, is {found}",
                )


def main():
    n, part = int(ck.option("--budgets", 3)), ck.option("--part", "0/1").split("/")
    flags = shlex.split(ck.option("--flags", ""))
    bench = ck.Bench()
    stems = sorted(
        path[: -len(".onnx")]
        for path in glob.glob(os.path.join(ck.MODELS, "**", "*.onnx"), recursive=True)
    )
    if bench.names:
        stems = [stem for stem in stems if os.path.basename(stem) in bench.names]
    for stem in stems[int(part[0]) :: int(part[1])]:
        model = Model(bench, stem, flags)
        model.ladder(60 if model.name in MANY and not bench.names else n)
        if model.name in CURVES:
            model.curve()
    bench.finish()


if __name__ == "__main__":
    main()
