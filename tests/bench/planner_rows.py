"""Rows of the tables of planner_gpt.py and planner_large.py: what planning one graph within some
budgets costs, and how good the plans are."""

import json
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
REPLAY = os.path.join(HERE, "..", "tools", "replay.py")
HEAD = ["work", "budget, of the activations", "overhead", "gap", "bound", "CPU s", "MiB"]


def options(parser, percent):
    parser.add_argument("--build", default=os.path.join(HERE, "..", "..", "build"))
    parser.add_argument("--percent", default=percent)
    parser.add_argument(
        "--repeat",
        type=int,
        default=2,
        help="timed runs; 0: time the run that writes the JSON file",
    )
    parser.add_argument("--out")


def run(argv):
    """Exit status, CPU seconds, peak MiB and stderr of a process of its own."""
    with tempfile.TemporaryFile() as err:
        pid = os.fork()
        if pid == 0:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            os.dup2(err.fileno(), 2)
            os.execv(argv[0], [str(a) for a in argv])
        _, status, use = os.wait4(pid, 0)
        err.seek(0)
        return (
            status,
            use.ru_utime + use.ru_stime,
            use.ru_maxrss / 1024,
            err.read().decode(errors="replace"),
        )


class Failed(Exception):
    """ckc fails for another reason than the budget; the text is what it prints."""


class Graph:
    """A graph to plan; `replay`: an outside program checks each plan."""

    def __init__(self, o, path, flags, work, replay=False):
        self.command = [os.path.join(o.build, "ckc"), path, "--plan-only", "--quiet", *flags]
        self.repeat, self.replay = o.repeat, replay
        self.file = os.path.join(work, "plan.json")
        self.full, self.costs = self.plan()

    def plan(self, budget=None):
        """The plan's summary, or what a refusal prints; the cells of costs."""
        flags = [] if budget is None else ["--memory-budget", budget]
        status, cpu, rss, err = run([*self.command, "--json", self.file, *flags])
        if status:
            if not re.search("smallest budget that works", err):
                raise Failed(err)
            return err, [f"{cpu:.2f}", f"{rss:.0f}"]
        runs = [run([*self.command, *flags]) for _ in range(self.repeat)] or [(0, cpu, rss, err)]
        cells = [f"{min(r[1] for r in runs):.2f}", f"{min(r[2] for r in runs):.0f}"]
        with open(self.file) as f:
            summary = json.load(f)["summary"]
        if budget is not None and summary["peak_bytes"] > budget:
            raise Failed(f"{summary['peak_bytes']} B are over the budget of {budget} B")
        if self.replay:
            check = [sys.executable, REPLAY, "model", self.file]
            done = subprocess.run(check, capture_output=True, text=True)
            cells.append("fault" if done.returncode else "ok")
        return summary, cells

    def budget(self, percent):
        return self.full["peak_bytes"] - self.full["saved_bytes"] * (100 - percent) // 100

    def percent(self, budget):
        return 100 - 100 * (self.full["peak_bytes"] - budget) / self.full["saved_bytes"]

    def row(self, budget):
        """Cells of a budget, and the least budget if it is refused."""
        s, cells = self.plan(budget)
        if isinstance(s, str):
            least = int(re.search(r"smallest budget that works: (\d+)", s)[1])
            return ["refused", "", f"least {self.percent(least):.1f} %", *cells], least
        base = self.full["step_seconds"]
        more, gap = s["step_seconds"] - base, s["step_seconds"] - s["bound_seconds"]
        cells = [
            f"{100 * more / base:.2f}",
            f"{100 * gap / base:.2f}",
            s["bound_class"],
        ] + cells
        return cells, None


def rows(graph, name, percent):
    yield [name, "keep everything", "0.00", "0.00", "any", *graph.costs]
    for pct in (int(x) for x in percent.split(",")):
        yield [name, f"{pct} %", *graph.row(graph.budget(pct))[0]]


class Table:
    """Lines of Markdown, printed as they come; written to a file at the end."""

    def __init__(self, *head):
        self.lines = [*head, ""]

    def row(self, cells):
        self.lines.append("| " + " | ".join(cells) + " |")
        print(self.lines[-1], flush=True)

    def head(self, cells):
        self.lines += ["| " + " | ".join(cells) + " |", "|---" * len(cells) + "|"]

    def write(self, path):
        if path:
            with open(path, "w") as f:
                f.write("\n".join(self.lines) + "\n")
