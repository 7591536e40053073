#!/usr/bin/env python3
"""What a checkpoint costs a run: a GPT of 17 million parameters, or GPT-2 124M, with AdamW.

    saves.py [--build build] [--gpt2] [--rounds 9] [--steps 8] [--batch 4] [--out results/saves.md]

In each round: Trainer.save, some steps, Trainer.save_async, steps until its file is complete.  A
run waits for the whole of save, but only for the copy of save_async.  CPU seconds, of the thread
that writes and of the steps, tell what a file costs also where other programs use the cores.
"""

import argparse
import datetime
import os
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
SMALL = ("--layers", 4, "--hidden", 512, "--heads", 8, "--vocab", 8192)
SEQ = 128


def timed(call, *args, **more):
    start = time.monotonic()
    call(*args, **more)
    return time.monotonic() - start


def timed_step(trainer, batch):
    """Of the clock, and CPU time of all threads."""
    start = time.process_time()
    return timed(trainer.step, **batch), time.process_time() - start


def task_seconds():
    """{thread: its CPU seconds}."""
    found = {}
    for task in os.listdir("/proc/self/task"):
        try:
            with open(f"/proc/self/task/{task}/schedstat", encoding="ascii") as f:
                found[task] = int(f.read().split()[0]) / 1e9
        except OSError:
            pass  # it has ended
    return found


def measure(args, folder):
    os.environ["CKC_HOME"] = build = os.path.abspath(args.build)
    sys.path.insert(0, os.path.join(ROOT, "frontend", "python"))
    import ckc
    import numpy as np

    onnx, save = os.path.join(folder, "g.onnx"), os.path.join(folder, "save")
    model = ("--model", "gpt2") if args.gpt2 else SMALL
    sizes = [*model, "--seq", SEQ, "--batch", args.batch, "--weights", "--dropout", 0]
    subprocess.run([str(x) for x in (f"{build}/gpt", *sizes, "-o", onnx)], check=True)
    names = "save save_async alone beside alone_cpu beside_cpu written cpu"
    seconds = {name: [] for name in names.split()}
    ids = np.arange(args.batch * SEQ, dtype="i8").reshape(args.batch, SEQ)
    with ckc.Trainer(ckc.compile(onnx, os.path.join(folder, "g.so"), eval="off")) as t:
        batch = {"input_ids": ids, "labels": ids}
        t.step(**batch)
        t.save_async(save)  # allocates
        t.save_wait()
        for _ in range(args.rounds):
            seconds["save"].append(timed(t.save, save))
            alone = [timed_step(t, batch) for _ in range(args.steps)]
            before, used, beside = task_seconds(), 0, []
            start = time.monotonic()
            seconds["save_async"].append(timed(t.save_async, save))
            while not t.save_done():
                step, last = timed_step(t, batch), used
                used = max([used, *(x for k, x in task_seconds().items() if k not in before)])
                beside.append((step[0], step[1] - (used - last)))
            seconds["written"].append(time.monotonic() - start)
            seconds["cpu"].append(used)
            for name, steps in ("alone", alone), ("beside", beside):
                seconds[name] += [x[0] for x in steps]
                seconds[name + "_cpu"] += [x[1] for x in steps]
    return os.path.getsize(save), seconds


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--build", default=os.path.join(ROOT, "build"))
    p.add_argument("--gpt2", action="store_true")
    p.add_argument("--rounds", type=int, default=9)
    p.add_argument("--steps", type=int, default=8)
    p.add_argument("--batch", type=int, default=4)
    p.add_argument("--out", default=os.path.join(HERE, "results", "saves.md"))
    args = p.parse_args()
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        size, seconds = measure(args, folder)
    of = {k: statistics.median(x) for k, x in seconds.items()}
    told = (
        ("a run waits for `save`", "save"),
        ("a run waits for `save_async`", "save_async"),
        ("until that file is complete", "written"),
        ("CPU time of the thread that writes it", "cpu"),
        ("a step while it is written", "beside"),
        ("a step while no file is written", "alone"),
        ("CPU time of a step while it is written, without that of the thread", "beside_cpu"),
        ("CPU time of a step while no file is written", "alone_cpu"),
    )
    lines = [
        f"# Checkpoints beside training, {os.cpu_count()} cores",
        "",
        f"`saves.py --rounds {args.rounds} --steps {args.steps} --batch {args.batch}`, "
        f"{datetime.date.today()}. A file has {size / 1e9:.2f} GB. The load average was {load:.1f} "
        "when the script began.",
        "",
        "| seconds | median | least | most | of |",
        "|---|---:|---:|---:|---:|",
    ]
    for text, key in told:
        x = seconds[key]
        lines.append(f"| {text} | {of[key]:.3f} | {min(x):.3f} | {max(x):.3f} | {len(x)} |")
    longer = [100 * (of["beside" + k] / of["alone" + k] - 1) for k in ("", "_cpu")]
    share = sum(seconds["cpu"]) / sum(seconds["written"])
    lines += [
        "",
        f"While a file is written, a step takes {longer[0]:+.1f} % of time and {longer[1]:+.1f} % of "
        f"CPU time (medians). The thread takes {100 * share:.1f} % of a core.",
    ]
    print("\n".join(lines))
    with open(args.out, "w", encoding="utf-8") as f:
        f.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
