#!/usr/bin/env python3
"""Ctrl-C during `ckc plan`: the best plan so far, a note, status 0 and a whole file.

    plan_stop.py CKC
"""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, os.pardir, "tools")]
import gen_graphs  # noqa: E402
from planfiles import Workload  # noqa: E402
from replay import check_plan  # noqa: E402


def stopped(path, out, seconds):
    """The process, its texts, and whether it had ended by itself."""
    run = subprocess.Popen([sys.argv[1], "plan", path, "--budget", "0.95", "--json", out],
                           stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    time.sleep(seconds)
    finished = run.poll() is not None
    run.send_signal(signal.SIGINT)
    return run, run.communicate(timeout=120), finished


def main():
    faults = []
    with tempfile.TemporaryDirectory() as folder:
        path, out = os.path.join(folder, "graph.json"), os.path.join(folder, "plan.json")
        document = gen_graphs.skipping(1000, 1).json()
        with open(path, "w", encoding="utf-8") as sink:
            json.dump(document, sink)
        for seconds in (6, 20, 60):             # how long a first plan takes is up to the machine
            run, text, finished = stopped(path, out, seconds)
            if run.returncode != 1 or finished or os.path.exists(out):
                break
        if finished:
            faults.append("the search ended before it could be stopped")
        elif "stopped early" not in text[1]:
            faults.append(f"no note on standard error: {text[1]!r}")
        if run.returncode not in (0, 1):
            faults.append(f"status {run.returncode}")
        if run.returncode == 0:
            with open(out, encoding="utf-8") as source:
                plan = json.load(source)
            graph = Workload(document, path)
            faults += check_plan(graph, plan, graph.budget("0.95")).faults
        elif os.path.exists(out):
            faults.append("refused, but a file was left")
        else:
            faults.append("no plan was found before the signal")
        if os.listdir(folder) not in (["graph.json", "plan.json"], ["plan.json", "graph.json"]):
            faults.append(f"files left: {sorted(os.listdir(folder))}")
    for fault in faults:
        print("fault:", fault)
    print(f"stopped after {seconds} s, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
