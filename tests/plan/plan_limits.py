#!/usr/bin/env python3
"""`ckc plan` under a time limit, and graphs that are none: status 1 and a message, no file.

plan_limits.py CKC
"""

import json
import os
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, os.pardir, "tools")]
import gen_graphs  # noqa: E402
from planfiles import Workload  # noqa: E402
from replay import check_plan  # noqa: E402

NODE = '{"id": 0, "cost_ram": 1, "cost_cpu": 1}'
PAIR = '[%s, {"id": 1, "cost_ram": 1, "cost_cpu": 1}]' % NODE
HOSTILE = {
    "empty file": "",
    "no nodes": '{"nodes": [], "links": []}',
    "cut off": '{"nodes": [%s' % NODE,
    "no cost": '{"nodes": [{"id": 0, "cost_ram": 1}]}',
    "NaN": '{"nodes": [{"id": 0, "cost_ram": 1, "cost_cpu": NaN}]}',
    "infinite": '{"nodes": [{"id": 0, "cost_ram": 1, "cost_cpu": 1e999}]}',
    "negative time": '{"nodes": [{"id": 0, "cost_ram": 1, "cost_cpu": -1}]}',
    "negative bytes": '{"nodes": [{"id": 0, "cost_ram": -1, "cost_cpu": 1}]}',
    "part of a byte": '{"nodes": [{"id": 0, "cost_ram": 0.5, "cost_cpu": 1}]}',
    "bytes beyond 64 bits": '{"nodes": [{"id": 0, "cost_ram": 99999999999999999999, "cost_cpu": 1}]}',
    "sum beyond 64 bits": '{"nodes": %s}'
    % PAIR.replace('"cost_ram": 1', '"cost_ram": 9000000000000000000'),
    "times beyond doubles": '{"nodes": %s}' % PAIR.replace('"cost_cpu": 1', '"cost_cpu": 1e308'),
    "huge time": '{"nodes": [{"id": 0, "cost_ram": 1, "cost_cpu": 1e300}]}',
    "same id twice": '{"nodes": [%s, %s]}' % (NODE, NODE),
    "huge id": '{"nodes": [{"id": 4000000000, "cost_ram": 1, "cost_cpu": 1}]}',
    "cycle": '{"nodes": %s, "links": [{"source": 0, "target": 1}, {"source": 1, "target": 0}]}'
    % PAIR,
    "link to itself": '{"nodes": %s, "links": [{"source": 1, "target": 1}]}' % PAIR,
    "link to nowhere": '{"nodes": %s, "links": [{"source": 0, "target": 7}]}' % PAIR,
    "link from below zero": '{"nodes": %s, "links": [{"source": -1, "target": 1}]}' % PAIR,
    "deep": '{"x": %s' % ("[" * 1000000),
}


def check_hostile(ckc, folder, faults):
    path, out = os.path.join(folder, "bad.json"), os.path.join(folder, "bad.plan")
    for name, text in HOSTILE.items():
        with open(path, "w", encoding="utf-8") as sink:
            sink.write(text)
        run = subprocess.run(
            [ckc, "plan", path, "--budget", "0.9", "--json", out],
            capture_output=True,
            text=True,
            timeout=60,
        )
        if run.returncode != 1 or not run.stderr.strip() or os.path.exists(out):
            faults.append(
                f"{name}: status {run.returncode}, {run.stderr[:200]!r}, file {os.path.exists(out)}"
            )
    # names are for people, ids tell nodes apart; 16 nodes fill the arrays of the reader
    twins = [dict(node, name="same") for node in json.loads(PAIR)]
    full = [{"id": i, "cost_ram": 1, "cost_cpu": 1} for i in range(16)]
    for name, nodes in ("equal names", twins), ("16 nodes", full):
        with open(path, "w", encoding="utf-8") as sink:
            json.dump({"nodes": nodes}, sink)
        run = subprocess.run(
            [ckc, "plan", path, "--budget", "1", "--json", out], capture_output=True, timeout=60
        )
        if run.returncode:
            faults.append(f"{name}: status {run.returncode}, {run.stderr[:200]!r}")


def check_time(ckc, folder, kind, size, budget, faults):
    path, out = os.path.join(folder, "graph.json"), os.path.join(folder, "plan.json")
    document = gen_graphs.KINDS[kind](size, 1).json()
    with open(path, "w", encoding="utf-8") as sink:
        json.dump(document, sink)
    graph = Workload(document, path)
    took = {}
    for limit in ("0.5", None):
        began = time.monotonic()
        command = [ckc, "plan", path, "--budget", budget, "--json", out, "--quiet"]
        run = subprocess.run(
            command + (["--plan-time", limit] if limit else []),
            capture_output=True,
            text=True,
            timeout=300,
        )
        took[limit] = time.monotonic() - began
        if run.returncode:
            faults.append(f"{kind} {limit}: status {run.returncode}, {run.stderr!r}")
            continue
        with open(out, encoding="utf-8") as source:
            faults += check_plan(graph, json.load(source), graph.budget(budget)).faults
    if took["0.5"] > took[None] / 2:
        faults.append(
            f"{kind}: {took['0.5']:.1f} s with a limit of 0.5 s, {took[None]:.1f} s without"
        )
    return took["0.5"]


def check_more_time(ckc, folder, faults):
    """More time never ends with a dearer plan."""
    path, out, last = (
        os.path.join(folder, "graph.json"),
        os.path.join(folder, "plan.json"),
        float("inf"),
    )
    with open(path, "w", encoding="utf-8") as sink:
        json.dump(gen_graphs.KINDS["unet"](8, 1).json(), sink)
    for limit in ("0.001", "0.1", "0.4", "1.5"):
        subprocess.run(
            [ckc, "plan", path, "--budget", "0.5", "--json", out, "--quiet", "--plan-time", limit],
            check=True,
            timeout=300,
        )
        with open(out, encoding="utf-8") as source:
            cost = json.load(source)["summary"]["step_seconds"]
        if cost > last:
            faults.append(f"{limit} s: cost {cost}, in less time {last}")
        last = min(last, cost)


def main():
    faults = []
    with tempfile.TemporaryDirectory() as folder:
        check_hostile(sys.argv[1], folder, faults)
        check_more_time(sys.argv[1], folder, faults)
        took = check_time(sys.argv[1], folder, "skipping", 500, "0.95", faults)
    for fault in faults:
        print("fault:", fault)
    print(f"{len(HOSTILE) + 2} graphs, {took:.1f} s for 0.5 s, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
