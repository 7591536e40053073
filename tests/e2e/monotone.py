#!/usr/bin/env python3
"""More memory is never slower.

    monotone.py CKC CKRUN [--budgets N] [MODEL...]

Each model is planned for N budgets (100) from its least one to keep-everything, every time by a process of its own: the plan
fits, its bound is no more than its time, and its time no more than that of any smaller budget.
"""
import os
import sys

import ck

MODELS = ("mlp-mse", "chargpt-dyn-o24")


def one(bench, name, n):
    stem = os.path.join(ck.MODELS, name)
    flags, _ = ck.model_flags(stem)
    js = bench.path("one.json")

    def planned(budget):
        done = bench.ckc(stem + ".onnx", "--plan-only", "--json", js, *flags, *(["--memory-budget", budget] if budget else []))
        return ck.plan(js)["summary"] if bench.must(done, f"{name}: {budget} B") else None

    full = planned(None)
    refused = bench.ckc(stem + ".onnx", "--plan-only", *flags, "--memory-budget", 1)
    found = ck.ERRORS.search(refused.stderr)
    if not bench.check(full and found, f"{name}: {refused.stderr.strip()[:300]}"):
        return
    least, top = int(found.group(1)), full["peak_bytes"]
    before = None
    for i in range(n):
        budget = least + (top - least) * i // (n - 1)
        s = planned(budget)
        if not s:
            continue
        what = f"{name}: {budget} B"
        bench.check(s["peak_bytes"] <= budget, f"{what}: peak {s['peak_bytes']}")
        bench.check(s["bound_seconds"] <= s["step_seconds"], f"{what}: bound {s['bound_seconds']}")
        bench.check(before is None or s["step_seconds"] <= before * (1 + 1e-12),
                    f"{what}: {s['step_seconds']} s, with less memory {before}")
        before = s["step_seconds"]
    bench.check(before is not None and before <= full["step_seconds"] * (1 + 1e-9), f"{name}: everything fits, but takes {before} s")


def main():
    n = 100
    if "--budgets" in sys.argv:
        at = sys.argv.index("--budgets")
        n = int(sys.argv[at + 1])
        del sys.argv[at:at + 2]
    bench = ck.Bench()
    for name in bench.names or MODELS:
        one(bench, name, n)
    bench.finish()


if __name__ == "__main__":
    main()
