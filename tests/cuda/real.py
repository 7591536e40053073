#!/usr/bin/env python3
"""NVIDIA's own compiler takes what is emitted: no register spills and no stack frames, tensor cores
and vector loads used, loops of attention within their limits, and ckc's estimate of a step near
that of its machine code (tests/bench/gpu/kernels.py).

    real.py [--all] [--only REGEX] [--table FILE] CKC CKRUN GPT [NVCC [MODEL.onnx...]]

Each model is compiled for one GPU and type of floats, with --all for all of them; --only takes
those whose "MODEL FLOATS GPU" matches; --table adds the rows of tests/bench/results/kernels.md to
FILE, as they come.  MODEL.onnx has an output `loss`, or flags beside it as tests/models has.
Skipped (status 77) where there is no nvcc; the script toolkit beside this file gets one, NVCC, and
a disassembler, which an nvcc of the machine uses, too.  Without one (CUOBJDUMP, cuobjdump on the
path or beside nvcc) only ptxas is asked.  Nothing runs: that takes a GPU.
"""

import argparse
import json
import os
import re
import shutil
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
for folder in ("../e2e", "../tools", "../bench/gpu"):
    sys.path.insert(0, os.path.join(HERE, folder))
import check_models
import ck
import kernels
import sass

MODELS = os.path.join(HERE, "..", "models")
ARCHS, DTYPES = ("sm_80", "sm_90a", "sm_100"), ("f32", "bf16", "f16")
CASES = [
    ("gpt", "bf16", "sm_80"),
    ("gpt", "bf16", "sm_90a"),
    ("gpt", "f16", "sm_100"),
    ("wide", "bf16", "sm_90a"),
    ("gpt2-dropout-ts17", "f32", "sm_90a"),
    ("llama-dynamo", "bf16", "sm_80"),
    ("bert-cls-dynamo", "f16", "sm_90a"),
    ("resnet-dynamo-bn", "bf16", "sm_90a"),
    ("unet-dynamo", "f32", "sm_100"),
    ("qwen2-moe-dyn", "bf16", "sm_90a"),
    ("qwen2-moe-dyn", "f32", "sm_80"),
]
GPTS = {  # heads of 64 and of 128 columns; a step whose estimate counts
    "gpt": ["--hidden", 256, "--heads", 4, "--seq", 128, "--batch", 2, "--vocab", 65],
    "wide": ["--hidden", 256, "--heads", 2, "--seq", 128, "--batch", 2, "--vocab", 65],
    "step": ["--hidden", 768, "--heads", 12, "--seq", 1024, "--batch", 32, "--vocab", 8192],
}


def nvcc(other):
    for at in (os.environ.get("NVCC"), shutil.which("nvcc"), "/usr/local/cuda/bin/nvcc", *other):
        if at and os.access(at, os.X_OK):
            return at
    return None


def model(bench, gpt, name):
    """Path and ckc's flags."""
    if name in GPTS:
        path = bench.path(name + ".onnx")
        layers = 2 if name == "step" else 1
        argv = [gpt, "--layers", layers, *GPTS[name], "--weights", "-o", path]
        if not os.path.exists(path):
            bench.must(bench.run(argv), "gpt")
        return path, ["--loss", "loss"]
    stem = os.path.splitext(name)[0] if name.endswith(".onnx") else os.path.join(MODELS, name)
    if not os.path.exists(stem + ".json"):
        return stem + ".onnx", ["--loss", "loss"]
    with open(stem + ".json", encoding="utf-8") as f:
        return stem + ".onnx", check_models.compile_flags(json.load(f), os.path.basename(stem))


def add_row(table, path, dtype, arch, found):
    name = os.path.splitext(os.path.basename(path))[0]
    spills = sum(bool(k.spills or k.frame) for k in found)
    most = max(k.registers for k in found)
    narrow = len(list(kernels.narrow(found)))
    with open(table, "a", encoding="utf-8") as f:
        row = name, dtype, arch, len(found), most, spills, narrow
        f.write(f"| {' | '.join(str(x) for x in row)} |\n")


def check(bench, ckc, compiler, gpt, case, table):
    name, dtype, arch = case
    path, flags = model(bench, gpt, name)
    what = f"{os.path.basename(path)} {dtype} {arch}"
    with tempfile.TemporaryDirectory() as folder:
        kernels.emit(ckc, path, [*flags, "--dtype", dtype], folder)
        found, text = kernels.compiled(compiler, arch, folder)
        bench.check(len(found) > 10, f"{what}: {len(found)} kernels")
        if table:
            add_row(table, path, dtype, arch, found)
        for fault in kernels.faults(found):
            bench.check(False, f"{what}: {fault}")
        if text:
            bench.check("LDG.E.128" in text, f"{what}: no loads of 128 bits")
        if text and name == "gpt":
            bench.check("HMMA" in text, f"{what}: no tensor cores")


def check_estimate(bench, ckc, compiler, gpt):
    path, flags = model(bench, gpt, "step")
    with tempfile.TemporaryDirectory() as folder:
        kernels.emit(ckc, path, [*flags, "--dtype", "bf16", "--device", "H100"], folder)
        found, _ = kernels.compiled(compiler, "sm_90a", folder)
        here, ours = kernels.print_calls(kernels.calls(folder), found)
        bench.check(abs(ours / here - 1) < 0.1, f"ckc says {ours} s of a step, the code {here} s")


def main():
    p = argparse.ArgumentParser(add_help=False)
    p.add_argument("--all", action="store_true")
    p.add_argument("--only", default="")
    p.add_argument("--table")
    o, argv = p.parse_known_args(sys.argv)
    ckc, gpt = (os.path.abspath(x) for x in (argv[1], argv[3]))
    compiler = nvcc(argv[4:5])
    if not compiler:
        print("no nvcc: what is emitted was not compiled for a GPU; tests/cuda/toolkit gets one")
        sys.exit(77)
    tool = os.path.join(os.path.dirname(argv[4]), "cuobjdump") if len(argv) > 4 else ""
    if not sass.disassembler(compiler) and os.access(tool, os.X_OK):
        os.environ["CUOBJDUMP"] = tool
    sys.argv = argv[:3]
    bench = ck.Bench()
    cases = CASES + [(x, d, "sm_90a") for x in argv[5:] for d in ("bf16",)]
    if o.all:
        names = dict.fromkeys(name for name, _, _ in cases)
        cases = [(name, d, a) for name in names for d in DTYPES for a in ARCHS]
    for case in cases:
        if not re.search(o.only, " ".join(case)):
            continue
        check(bench, ckc, compiler, gpt, case, o.table)
    if not sass.disassembler(compiler):
        print("no cuobjdump: instructions of loops were not counted")
    elif not o.only:
        check_estimate(bench, ckc, compiler, gpt)
    bench.finish()


if __name__ == "__main__":
    main()
