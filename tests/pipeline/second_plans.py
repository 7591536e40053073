#!/usr/bin/env python3
"""Two plans for the micro-batches of a stage, beside all pairs of plans.

    second_plans.py CKC

Small stages are planned with every set of values recomputed, one --keep or --recompute-values for
each value.  From these plans follow what any two of them need and take in K slots: n of the first
keep n S(a) + (K - n) S(b) bytes beside the larger one of what either uses more.  Within each budget
ckc finds the fastest of these pairs, or one plan that is as fast.  Exit status 0 if all is right.
"""

import itertools
import json
import os
import subprocess
import sys
import tempfile

TESTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
sys.path.insert(0, os.path.join(TESTS, "e2e"))
import wire  # noqa: E402

BATCH, WIDTH = 64, 32
# hidden widths of a stage's products
STAGES = [(96, 160), (256, 64), (48, 192), (128, 128)]
# Of a step's seconds: less is not worth a second plan.
LEAST_GAIN = 1e-4


def fail(text):
    print("FAIL", text)
    sys.exit(1)


def write_model(path, stages):
    """Products and tanh in turns, and the value behind each stage."""
    nodes, weights, cuts, last, width = [], [], [], "x", WIDTH
    for k, hidden in enumerate(stages):
        for i, to in enumerate((*hidden, WIDTH)):
            name = f"s{k}.{i}"
            weights.append(wire.floats(f"w{name}", (width, to), [0.01] * (width * to)))
            nodes.append(wire.node("MatMul", [last, f"w{name}"], f"m{name}"))
            nodes.append(wire.node("Tanh", [f"m{name}"], f"t{name}"))
            last, width = f"t{name}", to
        cuts.append(last)
    nodes.append(wire.node("ReduceMean", [last], "loss", keepdims=0))
    with open(path, "wb") as f:
        f.write(wire.graph(nodes, weights, {"x": (1, (BATCH, WIDTH))}, ["loss"]))
    return [x for cut in cuts[:-1] for x in ("--stage", cut)]


class Brute:
    def __init__(self, ckc, ranks, micro, work):
        self.ckc, self.ranks, self.out = ckc, ranks, os.path.join(work, "p.json")
        self.model = os.path.join(work, f"m{ranks}.onnx")
        cuts = write_model(self.model, STAGES[:ranks])
        self.flags = ["--pp", ranks, "--microbatches", micro, *cuts, "--plan-only", "--quiet"]

    def plan(self, *more):
        """The stages; None: refused."""
        argv = [self.ckc, self.model, *map(str, self.flags), *more, "--json", self.out]
        done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            self.why = done.stdout
            return None
        with open(self.out, encoding="utf-8") as f:
            return json.load(f)["stages"]

    def values(self):
        """By stage: the forward values in memory that it does not receive."""
        found = []
        for stage in self.plan():
            moved = {t for s in stage["schedule"] if s["op"] == "receive" for t in s["writes"]}
            found.append(
                [
                    t["name"]
                    for i, t in enumerate(stage["tensors"])
                    if t["kind"] == "activation" and i not in moved and not t["resident"]
                ]
            )
        return found

    def all_sets(self):
        """By stage: (bytes of a slot, bytes beside slots, seconds) of every set."""
        values = self.values()
        most = max(map(len, values[:-1]))
        found = [set() for _ in values]
        for bits in itertools.product("kr", repeat=most):
            flags = []
            for names in values:
                for name, bit in zip(names, bits):
                    flags += ["--keep" if bit == "k" else "--recompute-values", name]
            for k, stage in enumerate(self.plan(*flags) or fail(f"no plan: {flags}: {self.why}")):
                s = stage["summary"]
                more = s["arena_bytes"] - stage["slots"] * stage["slot_bytes"]
                found[k].add((stage["slot_bytes"], more, s["recompute_seconds"]))
        return found


def mean_of(stage, slots):
    other, seconds = stage.get("second_plan"), stage["summary"]["recompute_seconds"]
    if not other:
        return seconds
    n = len(other["slots"])
    return ((slots - n) * seconds + n * other["summary"]["recompute_seconds"]) / slots


def best(plans, slots, arena):
    """The least mean seconds of one plan, of a pair."""
    one = min((t for s, r, t in plans if slots * s + r <= arena), default=None)
    two = min(
        (
            (n * a[2] + (slots - n) * b[2]) / slots
            for a in plans
            for b in plans
            for n in range(1, slots)
            if n * a[0] + (slots - n) * b[0] + max(a[1], b[1]) <= arena
        ),
        default=None,
    )
    return one, two


def check_budget(stage, plans, budget, where):
    """Whether it has two plans."""
    slots, s = stage["slots"], stage["summary"]
    step = s["step_seconds"] - s["recompute_seconds"]
    one, two = best(plans, slots, budget - s["resident_bytes"])
    found = mean_of(stage, slots)
    if found < min(one, two) - 1e-12:
        fail(f"{where}: {found} s, less than any pair of plans: {one}, {two}")
    want = two if two < one - LEAST_GAIN * step * (1 + 1e-6) else one
    if abs(found - want) > 1e-9 * step:
        fail(f"{where}: {found} s of recomputation, expected {want}; one plan {one}, two {two}")
    if "second_plan" in stage and found >= one:
        fail(f"{where}: two plans, and one is as fast")
    return "second_plan" in stage


def main():
    pairs = 0
    with tempfile.TemporaryDirectory() as work:
        for ranks, micro in (2, 4), (3, 7), (4, 6):
            brute = Brute(sys.argv[1], ranks, micro, work)
            plans, free = brute.all_sets(), brute.plan()
            peaks = [s["summary"]["peak_bytes"] for s in free]
            least = [
                min(s["slots"] * p[0] + p[1] for p in plans[k]) + s["summary"]["resident_bytes"]
                for k, s in enumerate(free)
            ]
            n = 0
            for i in range(20):
                budget = max(least) + (max(peaks) - max(least)) * i // 20
                stages = brute.plan(f"--memory-budget={budget}B")
                if not stages:
                    fail(f"{ranks} stages: {budget} is refused, least {least}")
                for k in range(ranks - 1):
                    where = f"{ranks} stages, budget {budget}, stage {k}"
                    n += check_budget(stages[k], plans[k], budget, where)
            print("ok  ", ranks, "stages,", [len(p) for p in plans], "plans,", n, "pairs")
            pairs += n
    if pairs < 12:
        fail(f"only {pairs} stages have two plans")


main()
