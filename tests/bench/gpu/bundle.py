#!/usr/bin/env python3
"""Makes a bundle for a machine with a GPU that needs no compiler there: libraries of models,
programs with the libraries that they need beside libc's, and the losses of the CPU.

    bundle.py --build BUILD --out FILE.tar.xz [--arch sm_90] [--nvcc CMD] [--emulated] [--quick]

BUILD has ckc, ckrun and gpt.  There: sh tests/bench/gpu/run --bundle FILE.tar.xz.  Weights of more
than 1 MiB are left out, and their rule is in the bundle.  --emulated: for the stand-ins of
tests/cuda.
"""

import argparse
import glob
import json
import os
import re
import shutil
import sys
import tarfile
import tempfile

import bench
import part_build
import part_losses
import weights
from models import ONE, cases, timed_models
from work import Work

PROGRAMS = ("ckc", "ckrun")
# Bytes of the bundle, which goes along with the sources in 64 MiB.
MOST = 32 << 20
CARRIED = 1 << 20  # bytes of a file of weights
# Of the machine: not to be mixed with those of another.
SYSTEM = re.compile(r"/(libc|libm|libdl|libpthread|librt)\.so")


def options():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--build", required=True, help="folder with ckc, ckrun and gpt")
    p.add_argument("--out", required=True, help="the bundle, .tar.xz")
    bench.add_compiler_options(p)
    p.add_argument("--emulated", action="store_true", help="for an emulated GPU")
    p.add_argument("--quick", action="store_true", help="the smallest models alone")
    o = p.parse_args()
    o.nvcc = o.nvcc or bench.find_nvcc()
    o.build, o.bundle = os.path.abspath(o.build), None
    return o


def copy_programs(w):
    """Programs without symbols."""
    for name in PROGRAMS:
        w.must("strip", "-o", w.path(name), w.tool(name))
    if w.o.emulated:
        shutil.copytree(os.path.join(w.build, "gpu"), w.path("gpu"))


def make_weights(w, gpt, others):
    """Replace the weights of a model, and of others with the same ones, by those of a rule, which
    is in the bundle."""
    path = w.path(gpt.name + ".safetensors")
    rule = {"tensors": weights.describe(path), "models": [gpt.name, *others]}
    with open(w.path(w.RULE), "w", encoding="utf-8") as f:
        json.dump(rule, f)
    for name in rule["models"]:
        os.unlink(w.path(name + ".safetensors"))
    w.make_weights()


def copy_libraries(w):
    """What the loader would look for, beside the programs."""
    os.makedirs(w.path("lib"))
    for file in [*PROGRAMS, *glob.glob(w.path("*.so"))]:
        for line in w.must("ldd", w.path(file)).stdout.splitlines():
            found = re.search(r"=> (/\S+)", line)
            if found and not SYSTEM.search(found[1]):
                if not os.path.exists(w.path(os.path.join("lib", os.path.basename(found[1])))):
                    shutil.copy(found[1], w.path("lib"))


def compile_models(w):
    """Libraries and weights of all models."""
    for case in cases(w):
        part_losses.library(w, case)
    gpt = timed_models(w.o)[0]
    w.library(gpt)
    for size in "half", "least":
        part_build.budget(w, gpt, size, {})
    if not w.o.emulated:
        make_weights(w, gpt, [f"{gpt.name}-half", f"{gpt.name}-least", *(one.name for one in ONE)])


def toolkit(w):
    """[major, minor] of the compiler."""
    if w.o.emulated:
        return [13, 0]
    found = re.search(r"release (\d+)\.(\d+)", w.must(w.o.nvcc, "--version").stdout)
    return [int(x) for x in found.groups()]


def pack(w, out):
    """Programs and models as an archive; its bytes."""
    names = [*PROGRAMS, "lib", w.FACTS]
    names += ["gpu"] if w.o.emulated else []
    for case in glob.glob(w.path("*.so.json")):
        stem = os.path.basename(case)[: -len(".so.json")]
        if stem.endswith("-cpu"):
            continue
        names += [stem + ".so", stem + ".so.json"]
        if os.path.getsize(w.path(stem + ".safetensors")) <= CARRIED:
            names.append(stem + ".safetensors")
    names += [w.RULE] if os.path.exists(w.path(w.RULE)) else []
    with tarfile.open(out, "w:xz", preset=1) as tar:
        for name in names:
            tar.add(w.path(name), name)
    return os.path.getsize(out)


def main():
    o = options()
    with tempfile.TemporaryDirectory(prefix="ckc-bundle-") as folder:
        o.out, o.work, out = folder, folder, os.path.abspath(o.out)
        w = Work(o)
        copy_programs(w)
        compile_models(w)
        copy_libraries(w)
        facts = {
            "toolkit": toolkit(w),
            "losses": {c.name: part_losses.expected(w, c) for c in cases(w)},
        }
        with open(w.path(w.FACTS), "w", encoding="utf-8") as f:
            json.dump(facts, f)
        size = pack(w, out)
    print(f"{out}: {size} B, models {', '.join(facts['losses'])}")
    if size > MOST:
        sys.exit(f"bundle: {size} B, at most {MOST} travel with the sources")


if __name__ == "__main__":
    main()
