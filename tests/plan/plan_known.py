#!/usr/bin/env python3
"""No budget is refused that a known method meets, however little time there is for a search.

    plan_known.py CKC

Of a chain of N equal values the known methods have closed formulas: every k-th value in memory,
with k = sqrt(N), takes about 2 sqrt(N) values and runs forward once more (Chen et al., 2016); c
values in memory and r further runs serve (c + r over c) nodes (Griewank and Walther, 2000).  Of
other graphs every k-th value is kept here, for every k, and the rest is run again on demand.
"""

import json
import math
import os
import random
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, os.pardir, "tools")]
import gen_graphs  # noqa: E402
from planfiles import Workload  # noqa: E402
from replay import check_plan  # noqa: E402

BESIDE = 4  # values beside the states: two gradients, and a value on its way to the next
RUNS = (2, 3, 4, 6)


def chain(n, costs=None):
    """n forward nodes, n backward; backward k reads the value of forward node n - 2 - k."""
    cost = (
        (lambda i: (1, 1))
        if not costs
        else lambda i: (costs.choice((1, 2, 4, 8)), costs.choice((1, 3, 10)))
    )
    nodes = [
        dict(zip(("cost_ram", "cost_cpu"), cost(i)), id=i, backward=i >= n) for i in range(2 * n)
    ]
    links = {(i, i + 1) for i in range(2 * n - 1)} | {(max(n - 2 - k, 0), n + k) for k in range(n)}
    return {"nodes": nodes, "links": [{"source": a, "target": b} for a, b in sorted(links)]}


class Check:
    def __init__(self, ckc, folder):
        self.ckc, self.folder, self.faults, self.asked = ckc, folder, [], 0

    def write(self, name, document):
        self.name, self.path = name, os.path.join(self.folder, "graph.json")
        self.graph = None
        with open(self.path, "w", encoding="utf-8") as sink:
            json.dump(document, sink)

    def plan(self, budget, *flags):
        """Cost of the plan, or None; the least budget, or None."""
        self.asked += 1
        done = subprocess.run(
            [self.ckc, "plan", self.path, "--budget", str(budget), "--plan-time", "0.001", *flags],
            capture_output=True,
            text=True,
            timeout=500,
        )
        cost, least = (
            re.search(r"cost ([0-9.e+]+),", done.stdout),
            re.search(r"least budget (?:found )?(\d+) B", done.stderr),
        )
        if (done.returncode == 0) != bool(cost) or (done.returncode == 1) != bool(least):
            self.faults.append(
                f"{self.name}, {budget}: status {done.returncode}: {done.stdout}{done.stderr}"
            )
        return float(cost[1]) if cost else None, int(least[1]) if least else None

    def meets(self, budget, cost, what):
        """A plan within the budget that costs no more, and passes the replay."""
        out = os.path.join(self.folder, "plan.json")
        replayed = len(self.graph.ram) <= 2000 if self.graph else False
        got, least = self.plan(budget, *(["--json", out] if replayed else []))
        if got is None or got > cost:
            self.faults.append(
                f"{self.name}, budget {budget}: {what} costs {cost}; found {got}, least {least}"
            )
        elif replayed:
            with open(out, encoding="utf-8") as source:
                self.faults += check_plan(self.graph, json.load(source), budget).faults


def states_for(n, runs):
    c = 1
    while math.comb(c + runs, c) < n:
        c += 1
    return c


def check_chain(check, n):
    document = chain(n)
    check.write(f"chain of {n}", document)
    check.graph = Workload(document, "chain") if n <= 1000 else None
    root = math.isqrt(n - 1) + 1
    check.meets(2 * root + BESIDE, 3 * n, "every sqrt(n)-th value")
    for runs in RUNS:
        check.meets(states_for(n, runs) + BESIDE, (2 + runs) * n, f"{runs} runs from nested states")
    check.meets(math.ceil(0.9 * (n + 1)), 2.15 * n, "a tenth run again")
    _, least = check.plan(2)
    if least is None or least > states_for(n, RUNS[-1]) + BESIDE:
        check.faults.append(f"{check.name}: least budget {least}")


def measured(graph, sequence):
    """Peak and cost: a value lives from its step to the last one that reads it before it is made
    again."""
    last, made = {}, {}
    for t, v in enumerate(sequence):
        for p in graph.inputs[v]:
            last[made[p]] = t
        made[v] = last[t] = t
    change = [0] * (len(sequence) + 1)
    for t, v in enumerate(sequence):
        change[t] += graph.ram[v]
        change[last[t] + 1] -= graph.ram[v]
    live = peak = 0
    for x in change:
        live += x
        peak = max(peak, live)
    return peak, sum(graph.cpu[v] for v in sequence)


def every(graph, turn, k):
    """Keep every k-th forward value; the others run again before the first node behind the turn
    that reads them, and stay."""
    sequence, here = list(range(turn)), {i for i in range(turn) if i % k == 0}

    def need(v):
        if v in here:
            return
        for p in graph.inputs[v]:
            need(p)
        here.add(v)
        sequence.append(v)

    for b in range(turn, len(graph.ram)):
        for p in graph.inputs[b]:
            need(p)
        here.add(b)
        sequence.append(b)
    return measured(graph, sequence)


def check_every(check, name, document):
    graph = check.graph = Workload(document, name)
    turn = next(node["id"] for node in document["nodes"] if node.get("backward"))
    check.write(name, document)
    plans = [every(graph, turn, k) for k in range(1, turn)]
    smallest = min(plans)
    _, least = check.plan(max(2, graph.working_set - 1))
    if least is None or least > smallest[0]:
        check.faults.append(f"{name}: least budget {least}; every k-th value needs {smallest[0]}")


def main():
    with tempfile.TemporaryDirectory() as folder:
        check = Check(sys.argv[1], folder)
        for n in (3, 30, 1000, 5000):
            check_chain(check, n)
        check.write("chain of 50000", chain(50000))
        check.graph = None
        check.meets("0.05", 150000, "every sqrt(n)-th value")
        sys.setrecursionlimit(10000)
        for seed in range(1, 6):
            check_every(check, f"chain {seed}", chain(40 * seed, random.Random(seed)))
            check_every(check, f"resnet {seed}", gen_graphs.KINDS["resnet"](60 * seed, seed).json())
            check_every(check, f"unet {seed}", gen_graphs.KINDS["unet"](seed, seed).json())
    for fault in check.faults[:20]:
        print("fault:", fault)
    print(f"{check.asked} plans, {len(check.faults)} faults")
    return 1 if check.faults else 0


if __name__ == "__main__":
    sys.exit(main())
