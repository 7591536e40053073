#!/usr/bin/env python3
"""Plans of random graphs: replayed, within budget, no dearer with more memory, optimal when small.

    plan_random.py CKC OPTIMUM [GRAPHS] [FIRST_SEED]

Graphs of up to SEARCHED nodes are compared with OPTIMUM, a search for the least cost (optimum.c);
larger ones are checked for everything but optimality. Exit status 1 after any fault.
"""

import heapq
import json
import math
import os
import random
import subprocess
import sys
import tempfile

SEARCHED = 20  # nodes
HARD = {300040: ("random", 19, 22)}  # by seed: kind, nodes and a budget that takes many states
KINDS = "chain mirror fan layered skipping stacked parallel wide random".split()
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(HERE, os.pardir, "tools"))
import gen_graphs  # noqa: E402
from planfiles import Workload  # noqa: E402
from replay import check_plan  # noqa: E402


def optima(program, graph, budgets):
    """By budget: the least cost of any sequence within it, or None."""
    lines = [str(len(graph.ram))]
    for ram, cpu, inputs in zip(graph.ram, graph.cpu, graph.inputs):
        lines.append(" ".join(map(str, [ram, cpu, len(inputs), *inputs])))
    done = subprocess.run(
        [program],
        input="\n".join(lines + [str(budget) for budget in budgets]),
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
    )
    found = [None if line == "none" else float(line) for line in done.stdout.split()]
    return dict(zip(budgets, found))


def check_optimum(program, seed, faults):
    """The search itself, in graphs so small that all states can be looked at."""
    rnd = random.Random(seed)
    document = gen_graphs.KINDS["random"](rnd.randint(4, 7), seed).json()
    graph = Workload(document, "graph")
    budgets = range(graph.working_set - 1, graph.peak + 1)
    for budget, cost in optima(program, graph, budgets).items():
        least = least_of_all(graph, budget)
        if cost != least:
            faults.append(
                f"seed {seed}, budget {budget}: the search has {cost}, the optimum is {least}"
            )


def least_of_all(graph, budget):
    """Dijkstra's algorithm over (ran, in memory), in which any value may leave at any time."""
    n = len(graph.ram)
    need = [sum(1 << p for p in inputs) for inputs in graph.inputs]
    best, heap = {(0, 0): 0}, [(0, 0, 0)]
    while heap:
        cost, ran, held = heapq.heappop(heap)
        if ran + 1 == 1 << n:
            return cost
        used = sum(graph.ram[i] for i in range(n) if held >> i & 1)
        for i in range(n):
            if held >> i & 1:
                new = (cost, ran, held & ~(1 << i))
            elif need[i] & ~held == 0 and used + graph.ram[i] <= budget:
                new = (cost + graph.cpu[i], ran | 1 << i, held | 1 << i)
            else:
                continue
            if new[0] < best.get(new[1:], math.inf):
                best[new[1:]] = new[0]
                heapq.heappush(heap, new)
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


def check(ckc, program, folder, seed, faults):
    rnd = random.Random(seed)
    kind = KINDS[seed % len(KINDS)]
    n = rnd.randint(SEARCHED + 1, 30) if seed % 5 == 0 else rnd.randint(8, SEARCHED)
    kind, n, *hard = HARD.get(seed, (kind, n))
    document = gen_graphs.KINDS[kind](n // 2 if kind == "chain" else n, seed).json()
    n = len(document["nodes"])
    with open(os.path.join(folder, "graph.json"), "w", encoding="utf-8") as sink:
        json.dump(document, sink)
    graph = Workload(document, "graph")
    low, high = graph.working_set, graph.peak
    budgets = {low - 1, low, high} | {rnd.randint(low, high - (high - low) // k) for k in (2, 2, 4)}
    budgets = hard or sorted(b for b in budgets if b > 1)
    best = optima(program, graph, budgets) if n <= SEARCHED else {}
    last = math.inf
    for budget in budgets:
        plan = run(ckc, folder, graph, budget)
        where = f"seed {seed}, {kind}, {n} nodes, budget {budget} of {graph.peak}"
        if plan is None:
            if best.get(budget) is not None or budget >= graph.peak:
                faults.append(f"{where}: no plan found, one costs {best.get(budget)}")
            if last < math.inf:
                faults.append(f"{where}: no plan, but a smaller budget has one")
            continue
        replay = check_plan(graph, plan, budget)
        faults += [f"{where}: {fault}" for fault in replay.faults]
        least, bound = best.get(budget, replay.cost), plan["summary"]["bound_seconds"]
        if least is None or not math.isclose(replay.cost, least):
            faults.append(f"{where}: cost {replay.cost}, the optimum is {least}")
        elif bound > least * (1 + 1e-9):
            faults.append(f"{where}: bound {bound}, the optimum is {least}")
        if replay.cost > last * (1 + 1e-9):
            faults.append(f"{where}: cost {replay.cost}, with less memory {last}")
        last = min(last, replay.cost)
    return len(budgets)


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 60
    first = int(sys.argv[4]) if len(sys.argv) > 4 else 1
    faults, plans = [], 0
    with tempfile.TemporaryDirectory() as folder:
        for seed in [*range(first, first + count), *HARD]:
            plans += check(*sys.argv[1:3], folder, seed, faults)
            check_optimum(sys.argv[2], seed, faults)
    for fault in faults[:20]:
        print("fault:", fault)
    print(f"{count + len(HARD)} graphs, {plans} plans, {len(faults)} faults")
    return 1 if faults or not plans else 0


if __name__ == "__main__":
    sys.exit(main())
