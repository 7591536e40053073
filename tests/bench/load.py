#!/usr/bin/env python3
"""Training steps beside other busy processes: how much longer than alone, and what waiting politely
costs.

    load.py [--build build] [--busy 0,1,2] [--rounds 5] [--seconds 3] [--calm 0.1] [--tries 3]
    [--out results/load.md] [MODEL...]

A busy process is a shell that does nothing in a loop.  Every run is a process of its own that
trains for --seconds; runs as libckr does it, runs that spin as OpenMP does by itself
(GOMP_SPINCOUNT=300000, libgomp's default) and runs on one thread alternate, and figures are medians
over the rounds.  A step's time is the mean over a run, less its first fifth.  Whoever else uses the
machine spoils that: `others` says how many processors it was, and a run beside more than --calm is
tried again.  CPU time is less easily spoiled: what a step takes beyond what it does on one thread,
where nobody waits, is lost in waiting.
"""

import argparse
import datetime
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
MODELS = os.path.join(HERE, "..", "models")
sys.path.insert(0, HERE)
from predict import Cnn  # noqa: E402

GPT = "--like gpt --layers 4 --hidden 256 --heads 4 --seq 64 --vocab 2000 --batch 4 --dropout 0 --weights".split()
TEXT = ["--data", "/usr/share/common-licenses/GPL-3", "--tokens", "bytes"]
HOW = {
    "polite": ({}, []),
    "spinning": ({"GOMP_SPINCOUNT": "300000"}, []),
    "one thread": ({}, ["--threads", 1]),
}
TICK = os.sysconf("SC_CLK_TCK")


def inputs(name):
    return ["--inputs", os.path.join(MODELS, name + ".inputs.safetensors")]


# How to compile (or what writes it), and what to feed.
CASES = {
    "MLP, 8 rows": ([os.path.join(MODELS, "mlp-mse.onnx"), "--dim", "batch=8"], inputs("mlp-mse")),
    "tiny ResNet, batch 4": (
        [os.path.join(MODELS, "resnet-ts17.onnx"), "--dim", "batch=4"],
        inputs("resnet-ts17"),
    ),
    "small CNN, 16 x 64": (["cnn"], ["--feed", "image=ones", "--feed", "labels=zeros"]),
    "GPT 4 x 256, 4 x 64": (["gpt"], TEXT),
    "sample GPT, 16 x 128": (
        [
            os.path.join(HERE, "..", "..", "samples", "chargpt", "chargpt.onnx"),
            "--dim",
            "batch=16",
            "--dim",
            "seq=128",
        ],
        TEXT,
    ),
}


def compile_model(o, name, so):
    source, onnx = CASES[name][0], so[:-3] + ".onnx"
    if source == ["cnn"]:
        Cnn().write(onnx, 16, 64, (32, 64, 128), 1)
    elif source == ["gpt"]:
        subprocess.run(
            [os.path.join(o.build, "gpt"), *GPT, "-o", onnx], check=True, stderr=subprocess.DEVNULL
        )
    else:
        onnx = source[0]
    subprocess.run(
        [os.path.join(o.build, "ckc"), onnx, "-o", so, "--quiet", *source[1:]], check=True
    )


def system_time():
    """CPU seconds of all processes."""
    with open("/proc/stat") as f:
        user, nice, system, _, _, irq, softirq, *_ = map(int, f.readline().split()[1:])
    return (user + nice + system + irq + softirq) / TICK


def time_of(pid):
    with open(f"/proc/{pid}/stat") as f:
        words = f.read().rsplit(")", 1)[1].split()
    return (int(words[11]) + int(words[12])) / TICK


def run(o, name, so, busy, how):
    """Seconds on the wall and CPU seconds of a step, processors that others used meanwhile."""
    log = so[:-3] + ".log"
    argv = [
        os.path.join(o.build, "ckrun"),
        so,
        *CASES[name][1],
        "--steps",
        10**9,
        "--lr",
        1e-4,
        "--log",
        log,
        "--quiet",
        *HOW[how][1],
    ]
    beside = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(busy)]
    all_before, from_ = system_time(), time.monotonic()
    p = subprocess.Popen(
        [str(a) for a in argv], env={**o.env, **HOW[how][0]}, stderr=subprocess.DEVNULL
    )
    time.sleep(o.seconds)
    own, others = time_of(p.pid), system_time() - all_before
    took = time.monotonic() - from_
    others = (others - own - sum(time_of(b.pid) for b in beside)) / took
    for x in [p, *beside]:
        x.send_signal(signal.SIGKILL)
        x.wait()
    with open(log) as f:
        rows = [
            json.loads(line)["seconds"] for line in f if line.endswith("}\n") and '"loss"' in line
        ]
    if not rows:
        return took, own, others
    late = rows[len(rows) // 5 :]
    return sum(late) / len(late), own / (sum(rows) or 1) * sum(late) / len(late), others


def calm_run(o, *args):
    runs = []
    for _ in range(o.tries):
        runs.append(run(o, *args))
        if runs[-1][2] <= o.calm:
            break
    return min(runs, key=lambda r: r[2])


def measure(o, name, so):
    got = {(busy, how): [] for busy in o.busy for how in HOW}
    for _ in range(o.rounds):
        for (busy, how), runs in got.items():
            runs.append(calm_run(o, name, so, busy, how))
    return {k: [statistics.median(x) for x in zip(*runs)] for k, runs in got.items()}


def report(o, got):
    text = [
        f"# Steps beside busy processes, {datetime.date.today()}",
        "",
        f"{os.cpu_count()} cores and threads, medians of {o.rounds} runs of {o.seconds:g} s each; milliseconds of a step on the wall, and of",
        "CPU time in brackets.  Others: processors that neither the run nor the busy processes used.",
        "",
        "| model | busy processes | " + " | ".join(HOW) + " | others |",
        "|---|---|" + "---|" * (len(HOW) + 1),
    ]
    for name, cells in got.items():
        for busy in o.busy:
            row = [cells[busy, how] for how in HOW]
            text.append(
                f"| {name} | {busy} | "
                + " | ".join(f"{wall * 1e3:.3g} ({cpu * 1e3:.3g})" for wall, cpu, _ in row)
                + f" | {statistics.mean(r[2] for r in row):.1f} |"
            )
    return "\n".join(text) + "\n"


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--build", default=os.path.join(HERE, "..", "..", "build"))
    p.add_argument("--busy", default="0,1,2")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--seconds", type=float, default=3)
    p.add_argument("--calm", type=float, default=0.1)
    p.add_argument("--tries", type=int, default=3)
    p.add_argument("--out")
    p.add_argument("models", nargs="*", metavar="MODEL", help="; ".join(CASES))
    o = p.parse_args()
    o.busy = [int(x) for x in o.busy.split(",")]
    o.env = {
        k: v
        for k, v in os.environ.items()
        if k not in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "OMP_WAIT_POLICY", "GOMP_SPINCOUNT")
    }
    got = {}
    with tempfile.TemporaryDirectory(prefix="ckc-bench-") as work:
        for i, name in enumerate(o.models or CASES):
            so = os.path.join(work, f"m{i}.so")
            compile_model(o, name, so)
            got[name] = measure(o, name, so)
            print(name, got[name], file=sys.stderr)
    text = report(o, got)
    print(text)
    if o.out:
        with open(o.out, "w") as f:
            f.write(text)


if __name__ == "__main__":
    main()
