#!/usr/bin/env python3
"""Plans of random graphs: replayed, within budget, no dearer with more memory, optimal when small.

    plan_random.py CKC [GRAPHS] [FIRST_SEED]

Graphs of up to SEARCHED nodes are compared with a search over all (ran, in memory) states; larger
ones are checked for everything but optimality. Exit status 1 after any fault.
"""

import heapq
import json
import os
import random
import subprocess
import sys
import tempfile

SEARCHED = 12  # nodes; the search takes 3^n states
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(HERE, os.pardir, "tools"))
import gen_graphs  # noqa: E402
from planfiles import Workload  # noqa: E402
from replay import check_plan  # noqa: E402


def optimum(graph, budget):
    """Least cost of any sequence within the budget, or None."""
    n = len(graph.ram)
    full = (1 << n) - 1
    need = [sum(1 << p for p in inputs) for inputs in graph.inputs]
    best, heap = {(0, 0): 0}, [(0, 0, 0)]
    while heap:
        cost, ran, held = heapq.heappop(heap)
        if ran == full:
            return cost
        if best[ran, held] < cost:
            continue
        used = sum(graph.ram[i] for i in range(n) if held >> i & 1)
        steps = []
        for i in range(n):
            if held >> i & 1:
                steps.append((cost, ran, held & ~(1 << i)))
            elif need[i] & ~held == 0 and used + graph.ram[i] <= budget:
                steps.append((cost + graph.cpu[i], ran | 1 << i, held | 1 << i))
        for c, r, h in steps:
            if c < best.get((r, h), 1e300):
                best[r, h] = c
                heapq.heappush(heap, (c, r, h))
    return None


def run(ckc, folder, graph, budget):
    """The plan file, or None where ckc says that there is no plan."""
    out = os.path.join(folder, "plan.json")
    if os.path.exists(out):
        os.unlink(out)
    done = subprocess.run(
        [
            ckc,
            "plan",
            os.path.join(folder, "graph.json"),
            "--budget",
            str(budget),
            "--json",
            out,
            "--quiet",
        ],
        capture_output=True,
        text=True,
        timeout=120,
    )
    if done.returncode == 1 and "least budget" in done.stderr and not os.path.exists(out):
        return None
    if done.returncode:
        raise RuntimeError(f"status {done.returncode}: {done.stderr}")
    with open(out, encoding="utf-8") as source:
        return json.load(source)


def check(ckc, folder, seed, faults):
    rnd = random.Random(seed)
    n = rnd.randint(2, 10) if seed % 3 else rnd.randint(13, 30)
    n = rnd.randint(11, SEARCHED) if seed % 20 == 0 else n
    kind = rnd.choice(("random", "random", "parallel", "wide") + (("skipping",) if n > 12 else ()))
    document = gen_graphs.KINDS[kind](n, seed).json()
    n = len(document["nodes"])
    with open(os.path.join(folder, "graph.json"), "w", encoding="utf-8") as sink:
        json.dump(document, sink)
    graph = Workload(document, "graph")
    if not graph.peak:
        return 0
    low = max(1, graph.working_set - 1)
    budgets = sorted(
        {low, graph.working_set, graph.peak} | {rnd.randint(low, graph.peak) for _ in range(3)}
        if graph.peak > low
        else {graph.peak}
    )
    budgets = [b for b in budgets if b > 1]
    last = None
    for budget in budgets:
        plan = run(ckc, folder, graph, budget)
        where = f"seed {seed}, {n} nodes, budget {budget} of {graph.peak}"
        best = optimum(graph, budget) if n <= SEARCHED else None
        if plan is None:
            if best is not None or budget >= graph.peak:
                faults.append(f"{where}: no plan found, one costs {best}")
            if last is not None:
                faults.append(f"{where}: no plan, but a smaller budget has one")
            continue
        replay = check_plan(graph, plan, budget)
        faults += [f"{where}: {fault}" for fault in replay.faults]
        if n <= SEARCHED and replay.cost != best:
            faults.append(f"{where}: cost {replay.cost}, the optimum is {best}")
        if last is not None and replay.cost > last:
            faults.append(f"{where}: cost {replay.cost}, with less memory {last}")
        last = replay.cost if last is None else min(last, replay.cost)
    return len(budgets)


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 60
    first = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    faults, plans = [], 0
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(first, first + count):
            plans += check(sys.argv[1], folder, seed, faults)
    for fault in faults[:20]:
        print("fault:", fault)
    print(f"{count} graphs, {plans} plans, {len(faults)} faults")
    return 1 if faults or not plans else 0


if __name__ == "__main__":
    sys.exit(main())
