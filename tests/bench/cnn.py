#!/usr/bin/env python3
"""Training steps of convolutional networks: ckc beside PyTorch on the same threads, in one run.

    cnn.py --python PYTHON-WITH-TORCH [--build build] [--models resnet50,mobilenet,unet] [--batch 16] [--size 224]
           [--threads 1,2] [--steps 3] [--rounds 3] [--out results/NAME.md]

cnn_peer.py defines the networks, exports them and times PyTorch.  Both sides take the same batch, AdamW and float32.  Every run is a
process of its own, rounds are interleaved, figures are medians.  PyTorch runs as it is and with an allocator told to keep its memory
(no page faults).  CPU seconds are those of a step, all threads: on a busy machine they say more than seconds.
"""
import argparse
import datetime
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
KEEP_MEMORY = {"MALLOC_TOP_PAD_": str(1 << 30), "MALLOC_MMAP_THRESHOLD_": str(1 << 33), "MALLOC_TRIM_THRESHOLD_": str(1 << 40)}


def call(argv, threads=0, more=None):
    """Runs to the end; standard output, CPU seconds and peak resident bytes of the process."""
    env = {k: v for k, v in os.environ.items() if k not in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")}
    env.update(more or {})
    if threads:
        env["OMP_NUM_THREADS"] = str(threads)
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        pid = subprocess.Popen([str(a) for a in argv], stdout=out, stderr=err, env=env).pid
        _, status, use = os.wait4(pid, 0)
        out.seek(0)
        err.seek(0)
        if status:
            sys.exit(f"{' '.join(map(str, argv))}: status {status}\n{err.read()[-2000:]}")
        return out.read(), use.ru_utime + use.ru_stime, use.ru_maxrss * 1024


def ckrun_step(ckrun, so, inputs, steps, threads, work):
    """Seconds (median) and CPU seconds of a step, planned and process bytes; a run of one step tells what opening costs."""
    log, cpu, process = os.path.join(work, "log"), {}, 0
    for n in (1, steps + 1):
        _, cpu[n], process = call([ckrun, so, "--inputs", inputs, "--steps", n, "--lr", 1e-4, "--log", log, "--quiet"], threads)
    with open(log) as f:
        rows = [json.loads(line) for line in f if '"loss"' in line]
    return {"step_seconds": statistics.median(r["seconds"] for r in rows[1:]), "cpu_seconds": (cpu[steps + 1] - cpu[1]) / steps,
            "planned_bytes": rows[-1]["peak_bytes"], "peak_bytes": process, "losses": [rows[0]["loss"]]}


def peer_step(argv, threads, more=None):
    out, _, process = call(argv, threads, more)
    return {**json.loads(out), "peak_bytes": process}


def measure(o, model, work):
    ckc, ckrun = (os.path.join(o.build, x) for x in ("ckc", "ckrun"))
    onnx, so = os.path.join(work, model + ".onnx"), os.path.join(work, model + ".so")
    peer = [o.python, os.path.join(HERE, "cnn_peer.py"), model, "--batch", o.batch, "--size", o.size]
    call(peer + ["--export", onnx])
    call([ckc, onnx, "-o", so, "--quiet"])
    rows = {}
    for _ in range(o.rounds):
        for threads in o.threads:
            timed = peer + ["--steps", o.steps, "--threads", threads]
            for what, run in (
                    ("ckc", lambda: ckrun_step(ckrun, so, onnx + ".safetensors", o.steps, threads, work)),
                    ("PyTorch eager", lambda: peer_step(timed, threads)),
                    ("PyTorch eager, memory kept", lambda: peer_step(timed, threads, KEEP_MEMORY)),
                    ("PyTorch eager, channels last", lambda: peer_step(timed + ["--channels-last"], threads))):
                rows.setdefault((threads, what), []).append(run())
    return rows


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--python", required=True)
    p.add_argument("--build", default=os.path.join(HERE, "..", "..", "build"))
    p.add_argument("--models", default="resnet50")
    p.add_argument("--threads", default="1,2", type=lambda s: [int(x) for x in s.split(",")])
    for name, default in (("batch", 16), ("size", 224), ("steps", 3), ("rounds", 3)):
        p.add_argument("--" + name, type=int, default=default)
    p.add_argument("--out")
    o = p.parse_args()
    work = tempfile.mkdtemp(prefix="ckc-bench-")
    cpu = re.search(r"model name\s*: (.*)", open("/proc/cpuinfo").read())
    lines = [f"# Convolutional networks, batch {o.batch} x {o.size}^2, float32, one training step, {datetime.date.today()}", "",
             f"{cpu.group(1) if cpu else 'unknown'}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the start; medians of "
             f"{o.rounds} interleaved rounds of {o.steps} steps. Process MiB: peak resident size, Python and libraries included.", ""]
    for model in o.models.split(","):
        rows = measure(o, model, work)
        version = rows[o.threads[0], "PyTorch eager"][0]["torch"]
        lines += [f"## {model} (PyTorch {version})", "", "| threads | what | step s | CPU s | over ckc's s | over ckc's CPU s | process MiB | planned MiB | "
                  "first loss |", "|---|---|---|---|---|---|---|---|---|"]
        for (threads, what), runs in sorted(rows.items(), key=lambda r: r[0][0]):
            s, c = (statistics.median(r[k] for r in runs) for k in ("step_seconds", "cpu_seconds"))
            base, cbase = (statistics.median(r[k] for r in rows[threads, "ckc"]) for k in ("step_seconds", "cpu_seconds"))
            planned = f"{runs[0]['planned_bytes'] / 2**20:.0f}" if "planned_bytes" in runs[0] else ""
            lines.append(f"| {threads} | {what} | {s:.2f} | {c:.2f} | {s / base:.2f} | {c / cbase:.2f} | "
                         f"{max(r['peak_bytes'] for r in runs) / 2**20:.0f} | {planned} | {runs[0]['losses'][0]:.5f} |")
        lines.append("")
    lines.append(f"Load at the end: {os.getloadavg()[0]:.1f}.")
    text = "\n".join(lines) + "\n"
    print(text)
    if o.out:
        with open(o.out, "w") as f:
            f.write(text)
    shutil.rmtree(work)


if __name__ == "__main__":
    main()
