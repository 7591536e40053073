#!/usr/bin/env python3
"""The loss of a batch without training: ckc beside onnxruntime, alternating, in one run.

    inference.py --python PYTHON [--build build] [--models gpt2,bert,...] [--rounds 3] [--threads N]
                 [--keep FOLDER] [--out results/inference.md]

PYTHON has torch, which exports the networks of step_models.py in evaluation mode, and onnxruntime.
Both sides compute the exported graph on the same batch, float32, called from Python, a process for
each run; onnxruntime with all of its graph optimisations.  Figures are medians over rounds of the
median call of a second or more; losses must agree.
"""

import argparse
import datetime
import json
import os
import statistics
import sys
import tempfile
import time

import steps

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))


def timed(call):
    loss, seconds = float(call()), []
    while len(seconds) < 3 or (sum(seconds) < 1 and len(seconds) < 1000):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    print(json.dumps({"loss": loss, "seconds": statistics.median(seconds)}))


def run_ckc(path, threads):
    import ckc
    from safetensors.numpy import load_file

    inputs = load_file(path + ".safetensors")
    with ckc.Trainer(path.replace(".onnx", ".so"), threads=threads) as t:
        timed(lambda: t.eval(**inputs))


def run_onnxruntime(path, threads):
    import onnxruntime
    from safetensors.numpy import load_file

    inputs = load_file(path + ".safetensors")
    how = onnxruntime.SessionOptions()
    how.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(path, how, providers=["CPUExecutionProvider"])
    inputs = {i.name: inputs[i.name] for i in session.get_inputs()}
    timed(lambda: session.run(["loss"], inputs)[0])


RUN = {"ckc": run_ckc, "onnxruntime": run_onnxruntime}


def child(o, kind, path):
    argv = [o.python, os.path.abspath(__file__), "--run", kind, path, "--threads", o.threads]
    out = steps.call(
        argv, {"PYTHONPATH": os.path.join(ROOT, "frontend", "python"), "CKC_HOME": o.build}
    )[0]
    return json.loads(out.splitlines()[-1])


def measure(o, name, folder):
    path = os.path.join(folder, name + ".eval.onnx")
    if not os.path.exists(path + ".safetensors"):
        peer = os.path.join(HERE, "steps_peer.py")
        steps.call([o.python, peer, name, "--export", path, "--inference"])
    ckc = os.path.join(o.build, "ckc")
    so = path.replace(".onnx", ".so")
    steps.call([ckc, path, "-o", so, "--quiet", "--threads", o.threads])
    rows = {kind: [] for kind in RUN}
    for _ in range(o.rounds):
        for kind in RUN:
            rows[kind].append(child(o, kind, path))
            print(f"{name}: {kind} {rows[kind][-1]['seconds']:.4f} s", file=sys.stderr)
    ours, theirs = (rows[kind][0]["loss"] for kind in RUN)
    if abs(ours - theirs) > 1e-4 * abs(theirs):
        sys.exit(f"{name}: loss {ours}, onnxruntime's {theirs}")
    return [statistics.median(r["seconds"] for r in rows[kind]) for kind in RUN]


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--python")
    p.add_argument("--build", default=os.path.join(ROOT, "build"))
    p.add_argument("--models", default=",".join(steps.ORDER))
    p.add_argument("--threads", type=int, default=os.cpu_count())
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--keep")
    p.add_argument("--out")
    p.add_argument("--run", nargs=2, help=argparse.SUPPRESS)
    o = p.parse_args()
    o.build = os.path.abspath(o.build)
    if o.run:
        RUN[o.run[0]](o.run[1], o.threads)
        return
    folder = o.keep or tempfile.mkdtemp(prefix="ckc-bench-")
    os.makedirs(folder, exist_ok=True)
    version = steps.call([o.python, "-c", "import onnxruntime; print(onnxruntime.__version__)"])[0]
    out = [
        f"# The loss of a batch without training, float32, {datetime.date.today()}",
        "",
        f"{steps.processor()}, {o.threads} threads; onnxruntime {version.strip()}; medians of {o.rounds} interleaved rounds.",
        "",
        "| network | ckc s | onnxruntime s | ckc / onnxruntime |",
        "|---|---|---|---|",
    ]
    for name in o.models.split(","):
        ours, theirs = measure(o, name, folder)
        out.append(f"| {steps.TITLES[name]} | {ours:.4f} | {theirs:.4f} | {ours / theirs:.2f} |")
    text = "\n".join(out) + "\n"
    print(text)
    if o.out:
        with open(o.out, "w") as f:
            f.write(text)


if __name__ == "__main__":
    main()
