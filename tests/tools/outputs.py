#!/usr/bin/env python3
"""Fingerprints of what ckc writes, to show that a refactoring changes nothing.

    outputs.py --ckc build/ckc [--ckrun build/ckrun] [--models DIR]... [--keep DIR] [NAME-GLOB...]

Every reference model of each DIR is compiled at its full, middle and least budget, and under other
options (VARIANTS); where a budget is refused, the smallest one follows.  With --graphs the graphs
of `ckc plan` in that folder are planned, too.  One line for each: a hash of the plan (JSON) and the
messages, without measured times, and one of the generated code (model.c, kernels.c or model.cu).
No compiler runs.  Record the lines before a change and compare them after it:

    outputs.py --ckc OLD > old; outputs.py --ckc NEW > new; diff old new

With --ckrun the models are also compiled and trained for three steps, on one thread: hashes of the
losses and of the parameters after them. --keep keeps the texts behind the hashes in DIR.
"""

import argparse
import concurrent.futures
import fnmatch
import hashlib
import json
import os
import re
import subprocess
import tempfile

from check_models import HERE, compile_flags, least_budget, run_flags, whole_budget

GENERATED = ("model.c", "kernels.c", "model.cu")
VARIANTS = {
    "accum": ["--grad-accum", "2"],
    "bf16": ["--dtype", "bf16", "--memory-budget", "60%"],
    "curve": ["--curve"],
    "cuda": ["--target", "cuda"],
    "cuda-bf16": ["--target", "cuda", "--dtype", "bf16", "--memory-budget", "70%"],
    "dp": ["--dp", "2", "--zero", "1"],
    "dump": ["--dump", "plan,memory,shard,precision"],
    "forward": ["--forward-only"],
    "full": ["--recompute", "full"],
    "lora": ["--lora", "*=2", "--optimizer", "sgdm"],
    "save": ["--save-dtype", "bf16", "--memory-budget", "60%"],
    "tp": ["--tp", "2", "--sp", "--optimizer", "adafactor", "--explain", "loss"],
}
UNTIMED = re.compile(r"(\d+(\.\d+)?) (s|ms|seconds)\b|in \d+ s")


def read_if_there(path):
    return open(path, errors="replace").read() if os.path.exists(path) else ""


def fake_compiler(work):
    """A compiler that makes empty files: only the text that it is given counts."""
    path = os.path.join(work, "cc")
    with open(path, "w") as f:
        f.write('#!/bin/sh\nwhile [ $# -gt 0 ]; do [ "$1" = -o ] && : >"$2"; shift; done\n')
    os.chmod(path, 0o755)
    return path


def compiled(options, stem, flags):
    """The plan with the messages, and the code that one compilation writes."""
    with tempfile.TemporaryDirectory() as work:
        code, plan = os.path.join(work, "code"), os.path.join(work, "plan.json")
        cc = fake_compiler(work)
        done = subprocess.run(
            [os.path.abspath(options.ckc), stem + ".onnx", *flags, "--cc", cc, "--nvcc", cc]
            + ["--emit-c", code, "--json", plan, "-o", os.path.join(work, "out.so")],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=options.timeout,
        )
        text = f"status {done.returncode}\n" + done.stdout + read_if_there(plan)
        made = "".join(read_if_there(os.path.join(code, f)) for f in GENERATED)
    made = made.replace(work, "")
    text = text.replace(work, "").replace(os.path.dirname(stem) + "/", "")
    smallest = re.search(r"smallest budget that works: (\d+) B", text)
    if done.returncode and smallest and "--memory-budget" in flags:
        budget = flags.index("--memory-budget") + 1
        more = [*flags[:budget], smallest.group(1) + "B", *flags[budget + 1 :]]
        if more != flags:
            at_least = compiled(options, stem, more)
            return text + at_least[0], made + at_least[1]
    return text, made


def trained(options, stem, flags):
    """Losses of three steps and a hash of the parameters after them."""
    meta = json.load(open(stem + ".json"))
    with tempfile.TemporaryDirectory() as work:
        library, saved, log = (os.path.join(work, f) for f in ("m.so", "p.safetensors", "log"))
        env = dict(os.environ, OMP_NUM_THREADS="1")
        text = ""
        for argv in (
            [options.ckc, stem + ".onnx", *flags, "--quiet", "--threads", "1", "-o", library],
            [options.ckrun, library, "--inputs", stem + ".inputs.safetensors", *run_flags(meta)]
            + ["--steps", "3", "--log", log, "--save", saved],
        ):
            done = subprocess.run(
                argv,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                env=env,
                timeout=options.timeout,
            )
            text += f"status {done.returncode}\n"
        if os.path.exists(log):
            text += str(re.findall(r'"loss": *[^,}]*', open(log).read()))
        if os.path.exists(saved):
            text += hashlib.sha256(open(saved, "rb").read()).hexdigest()
        return text, ""


def planned(options, path, percent):
    with tempfile.TemporaryDirectory() as work:
        out = os.path.join(work, "plan.json")
        done = subprocess.run(
            [options.ckc, "plan", path, "--budget", f"{percent / 100}", "--json", out],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=options.timeout,
        )
        text = f"status {done.returncode}\n" + done.stdout
        return (text + read_if_there(out)).replace(work, ""), ""


def cases(options):
    """(name, function that makes the text) of all cases."""
    for folder in options.models:
        for name in sorted(os.listdir(folder)):
            stem = os.path.join(folder, name[:-5])
            if not name.endswith(".json") or not os.path.exists(stem + ".onnx"):
                continue
            if not any(fnmatch.fnmatch(name[:-5], g) for g in options.names):
                continue
            meta = json.load(open(stem + ".json"))
            flags = compile_flags(meta, name[:-5], meta.get("replicas", 1))
            least = least_budget(stem, flags, options)
            budgets = {"keep": []}
            if least:
                with tempfile.TemporaryDirectory() as work:
                    middle = (least + whole_budget(stem, flags, options, work)) // 2
                budgets["middle"] = ["--memory-budget", f"{middle}B"]
                budgets["least"] = ["--memory-budget", f"{least}B"]
            for label, more in {**budgets, **VARIANTS}.items():
                yield (
                    f"{name[:-5]} {label}",
                    lambda s=stem, f=flags + more: compiled(options, s, f),
                )
            if options.ckrun:
                for label, more in budgets.items():
                    yield (
                        f"{name[:-5]} {label} trained",
                        lambda s=stem, f=flags + more: trained(options, s, f),
                    )
    for name in sorted(os.listdir(options.graphs)) if options.graphs else []:
        if name.endswith(".json"):
            path = os.path.join(options.graphs, name)
            for percent in (90, 60, 40):
                yield f"plan {name} {percent}", lambda p=path, c=percent: planned(options, p, c)


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("names", nargs="*", default=["*"], metavar="NAME-GLOB")
    p.add_argument("--ckc", required=True)
    p.add_argument("--ckrun")
    p.add_argument("--models", action="append", help="default: tests/models")
    p.add_argument("--graphs", metavar="DIR", help="graphs for ckc plan")
    p.add_argument("--keep", help="folder for the texts behind the hashes")
    p.add_argument("--jobs", type=int, default=2)
    p.add_argument("--timeout", type=float, default=600, help="seconds for one command")
    options = p.parse_args()
    options.models = options.models or [os.path.normpath(os.path.join(HERE, "..", "models"))]
    if options.keep:
        os.makedirs(options.keep, exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        jobs = [(name, pool.submit(make)) for name, make in cases(options)]
        for name, job in jobs:
            texts = [
                UNTIMED.sub("", re.sub(r'"solver_seconds": [^,]*', "", text))
                for text in job.result()
            ]
            if options.keep:
                with open(os.path.join(options.keep, name.replace(" ", "_")), "w") as f:
                    f.write("".join(texts))
            print(*(hashlib.sha256(t.encode()).hexdigest()[:16] for t in texts), name, flush=True)


if __name__ == "__main__":
    main()
