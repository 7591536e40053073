#!/usr/bin/env python3
"""Ctrl-C and --plan-time while a plan is searched for.

    plan_stop.py CKC GPT

Ctrl-C: soon after, status 1, the word "interrupted" and no file. --plan-time: the best plan so far,
soon after. Both in seconds of the process's own time, so that a busy machine changes nothing; a
signal is sent when the process has worked for so long.
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
from replay import Replay, check_plan  # noqa: E402

SOON = 0.5
TICK = os.sysconf("SC_CLK_TCK")
# when to interrupt: reading, the parts' configurations, the search
MOMENTS = (0.03, 0.15, 0.4, 1.0)


def worked(pid):
    """Seconds of processor time."""
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as source:
        fields = source.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK, fields[0]


def ended(run):
    """Standard error, status, seconds of processor time."""
    text = run.stderr.read()
    _, status, usage = os.wait4(run.pid, 0)
    run.returncode = os.waitstatus_to_exitcode(status)
    return text, run.returncode, usage.ru_utime + usage.ru_stime


def start(arguments):
    return subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def interrupted(folder, arguments, moment):
    """Faults of a run that is interrupted once it has worked for so long."""
    before = sorted(os.listdir(folder))
    run, base = start(arguments), None
    while True:
        used, state = worked(run.pid)
        # what the process worked before it became ckc counts for nothing
        if base is None and state != "Z" and os.path.samefile(f"/proc/{run.pid}/exe", arguments[0]):
            base = used
        if state == "Z" or (base is not None and used >= base + moment):
            break
        time.sleep(0.002)
    run.send_signal(signal.SIGINT)
    text, status, total = ended(run)
    what = f"{arguments[1:]} after {moment} s"
    if state == "Z":
        return [f"{what}: it had ended before"]
    faults = (
        []
        if status == 1 and "interrupted" in text
        else [f"{what}: status {status}, {text[-200:]!r}"]
    )
    if total - used > SOON:
        faults.append(f"{what}: went on for {total - used:.2f} s")
    if sorted(os.listdir(folder)) != before:
        faults.append(f"{what}: leaves {sorted(os.listdir(folder))}")
    return faults


def in_time(arguments, seconds, base):
    """Faults of a search with so much time, where all the rest takes `base` seconds; whether it
    found a plan."""
    text, status, total = ended(start(arguments + ["--plan-time", str(seconds)]))
    faults = []
    if status != 0 and "no plan was found" not in text:
        faults.append(f"{arguments[1:]}: status {status}, {text[-200:]!r}")
    if total > seconds + SOON + base:
        faults.append(
            f"{arguments[1:]}: {total:.2f} s, but {seconds} s are given and {base:.2f} s needed"
        )
    return faults, status == 0


def replayed(plan, workload=None, budget=None):
    with open(plan, encoding="utf-8") as source:
        document = json.load(source)
    return (check_plan(workload, document, budget) if workload else Replay(document)).faults


def main():
    ckc, gpt = sys.argv[1:3]
    faults = []
    with tempfile.TemporaryDirectory() as folder:
        graph, model, out = (
            os.path.join(folder, n) for n in ("graph.json", "model.onnx", "plan.json")
        )
        document = gen_graphs.skipping(1000, 1).json()
        with open(graph, "w", encoding="utf-8") as sink:
            json.dump(document, sink)
        subprocess.run(
            [
                gpt,
                "--layers",
                "128",
                "--hidden",
                "256",
                "--heads",
                "8",
                "--seq",
                "256",
                "--vocab",
                "1000",
                "--batch",
                "4",
                "-o",
                model,
            ],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        bare = [ckc, "plan", graph, "--budget", "0.95", "--json", out]
        tight = [ckc, model, "--plan-only", "--memory-budget", "39%", "--json", out]
        curve = [ckc, model, "--plan-only", "--curve", "--json", out]
        for moment in MOMENTS:
            for arguments in (bare, tight) if moment < 1 else (bare, tight, curve):
                faults += interrupted(folder, arguments, moment)
        _, _, base = ended(start([ckc, model, "--plan-only", "--json", out]))
        for seconds in (0.02, 0.2):
            workload = Workload(document, graph)
            late, found = in_time(bare, seconds, 0)
            faults += late + (replayed(out, workload, workload.budget("0.95")) if found else [])
            # planned twice: with updates after backward, and in it
            late, found = in_time(
                [ckc, model, "--plan-only", "--memory-budget", "60%", "--json", out],
                seconds,
                2 * base,
            )
            faults += late + (replayed(out) if found else ["60%: no plan"])
    for fault in faults:
        print("fault:", fault)
    print(f"{len(MOMENTS)} moments, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
