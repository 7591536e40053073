#!/usr/bin/env python3
"""ZeRO's stages: GPT-2 124M over two processes, measured; 22B over eight H100, planned.

    zero.py [--build build] [--rounds 3] [--steps 6] [--budgets 50] [--out results/zero.md]

measured: mpirun -n 2, one thread each, a sequence of 256 tokens a process.  Libraries take turns,
seconds are medians of all steps but each run's first.  Memory is that of the first process: what
the plan says, and by how much the process grew.  planned: seconds of a step with every transfer
counted in full and with transfers beside computation, by budget.
"""

import argparse
import datetime
import json
import os
import re
import statistics
import subprocess
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
GIB = 2**30
# name, flags of ckc
STAGES = (
    ("`--zero 0`", ["--zero", "0"]),
    ("`--zero 1`", ["--zero", "1"]),
    ("`--zero 3`", ["--zero", "3"]),
    ("`--zero 3 --memory-budget 75%`", ["--zero", "3", "--memory-budget", "75%"]),
)


def run(*command, **more):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, **more)
    if done.returncode:
        raise SystemExit(f"{command}: {done.stderr}")
    return done.stdout + done.stderr


class Bench:
    def __init__(self, build, folder):
        self.build, self.folder = os.path.abspath(build), folder

    def tool(self, name):
        found = run("find", self.build, "-name", name, "-type", "f", "-executable")
        return found.split("\n")[0]

    def path(self, name):
        return os.path.join(self.folder, name)

    def model(self, *sizes, batch=1):
        run(self.tool("gpt"), *sizes, "--batch", batch, "-o", self.path("g.onnx"))
        return self.path("g.onnx")

    def measured(self, rounds, steps):
        model = self.model("--model", "gpt2", "--seq", 256, "--weights", "--dropout", 0)
        for i, (_, flags) in enumerate(STAGES):
            run(
                *(self.tool("ckc"), model, "-o", self.path(f"{i}.so"), "--dp", 2, "--threads", 1),
                *("--eval", "off", "--json", self.path(f"{i}.json"), *flags),
            )
        seconds, grown = {i: [] for i in range(len(STAGES))}, {}
        train = ["--feed", "input_ids=positions", "--feed", "labels=zeros", "--threads", 1]
        for _ in range(rounds):
            for i in seconds:
                log = self.path("log")
                if os.path.exists(log):
                    os.remove(log)
                said = run(
                    *("mpirun", "--allow-run-as-root", "--oversubscribe", "-n", 2),
                    *(self.tool("ckrun"), self.path(f"{i}.so"), *train, "--steps", steps),
                    *("--log", log),
                )
                grown[i] = int(re.search(r"grew by (\d+)", said)[1])
                with open(log, encoding="utf-8") as rows:
                    seconds[i] += [json.loads(row)["seconds"] for row in list(rows)[1:]]
        lines = [
            "| library | s a step | of stage 0 | planned GiB | process grew by GiB | sent GB a step |",
            "|---|---:|---:|---:|---:|---:|",
        ]
        first = statistics.median(seconds[0])
        for i, (name, _) in enumerate(STAGES):
            with open(self.path(f"{i}.json"), encoding="utf-8") as f:
                plan = json.load(f)
            middle = statistics.median(seconds[i])
            lines.append(
                f"| {name} | {middle:.2f} | {middle / first:.2f} "
                f"| {plan['summary']['peak_bytes'] / GIB:.2f} | {grown[i] / GIB:.2f} "
                f"| {plan['comm']['bytes'] / 1e9:.2f} |"
            )
        return lines

    def planned(self, budgets):
        model = self.model("--model", "22B")
        flags = ["--device", "H100", "--target", "cuda", "--dtype", "bf16", "--dp", 8]
        lines = [
            "| GiB | stage | s | exposed s | transfers s | hidden |",
            "|---:|---:|---:|---:|---:|---:|",
        ]
        for stage in 1, 3:
            for k in range(budgets):
                budget = 38 + (92 - 38) * k / max(1, budgets - 1)
                out = self.path("p.json")
                run(
                    *(self.tool("ckc"), model, "--plan-only", "--json", out, *flags),
                    *("--zero", stage, "--memory-budget", f"{budget:.3f}GiB"),
                )
                with open(out, encoding="utf-8") as f:
                    plan = json.load(f)
                s, comm = plan["summary"], plan["comm"]
                lines.append(
                    f"| {budget:.1f} | {stage} | {s['step_seconds']:.3f} "
                    f"| {s['exposed_seconds']:.3f} | {comm['seconds']:.3f} "
                    f"| {100 * comm['hidden_seconds'] / comm['seconds']:.0f} % |"
                )
        return lines


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--build", default=os.path.join(HERE, os.pardir, os.pardir, "build"))
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--steps", type=int, default=6)
    p.add_argument("--budgets", type=int, default=50)
    p.add_argument("--out", default=os.path.join(HERE, "results", "zero.md"))
    o = p.parse_args()
    for name in "OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE":
        os.environ.pop(name, None)
    commit = run("git", "-C", HERE, "log", "-1", "--format=%h").strip()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(o.build, folder)
        text = [
            "# ZeRO's stages",
            "",
            f"Written by `tests/bench/zero.py` on {datetime.date.today()}, {commit}, which says"
            " what the columns are.",
            "",
            "## GPT-2 124M, two processes on two cores",
            "",
            *bench.measured(o.rounds, o.steps),
            "",
            "## 22B over eight H100, one sequence each, bf16: planned",
            "",
            *bench.planned(o.budgets),
        ]
    with open(o.out, "w", encoding="utf-8") as f:
        f.write("\n".join(text) + "\n")


if __name__ == "__main__":
    main()
