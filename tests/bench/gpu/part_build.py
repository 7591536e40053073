"""From sources to programs and libraries of models, side by side: seconds, registers and spills."""

import os
import re
import shutil

import check_models
import part_time
from models import DTYPES, XL, timed_models, tiny
from work import ROOT, Skipped, Wrong, ck

TARGETS = (
    "ckc",
    "ckrun",
    "gpt",
    "ref_model",
    "fake_cuda",
    "fake_cublaslt",
    "fake_cudnn",
    "fake_nccl",
)
PROGRAMS = ("ckc", "ckrun", "gpt")
# what the assembler says of a kernel
KERNEL = re.compile(
    r"Compiling entry function '(\S+)'.*?(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads.*?Used (\d+) registers",
    re.S,
)


def programs(w, numbers):
    """Programs from sources, unless --build brings them."""
    if not w.o.own_build:
        missing = [p for p in PROGRAMS if not os.access(w.tool(p), os.X_OK)]
        if missing:
            raise Wrong(f"{w.build} has no {', '.join(missing)}")
        return f"those of {w.build}"
    for tool in ("cmake", "ninja"):
        if not shutil.which(tool):
            raise Wrong(f"no {tool}; run a bundle instead: tests/bench/gpu/bundle.py")
    w.must("cmake", "-S", ROOT, "-B", w.build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release")
    w.must("ninja", "-C", w.build, *TARGETS)
    return "from sources"


def kernels(log):
    """{kernel: (stack, stores, loads in bytes, registers)} of what the assembler says."""
    return {m[1]: tuple(int(x) for x in m.groups()[1:]) for m in KERNEL.finditer(log)}


def telling(w, nvcc, log):
    """A compiler that writes what its assembler says into a log."""
    path = log + ".nvcc"
    with open(path, "w", encoding="utf-8") as f:
        f.write(f"#!/bin/sh\nexec '{nvcc}' -Xptxas=-v \"$@\" 2>>'{log}'\n")
    os.chmod(path, 0o755)
    open(log, "w", encoding="utf-8").close()
    return path


def judge(log, numbers):
    """Registers of a model's kernels; no kernel spills."""
    found = kernels(log)
    if not found:
        raise Wrong("the assembler tells of no kernel")
    most = max(found.values(), key=lambda k: k[3])
    numbers["kernels"], numbers["registers"] = len(found), most[3]
    numbers["of_kernels"] = {
        name: dict(zip(("stack", "stores", "loads", "registers"), k)) for name, k in found.items()
    }
    spilled = {name: k for name, k in found.items() if k[1] or k[2]}
    if spilled:
        raise Wrong("spills: " + ", ".join(f"{name} {k[1]} B" for name, k in spilled.items()))
    framed = [name for name, k in found.items() if k[0]]
    return f"{len(found)} kernels, at most {most[3]} registers, no spills" + (
        f", stack frames: {', '.join(framed)}" if framed else ""
    )


def model(w, gpt, numbers):
    """A model compiled for the device, by a compiler that tells of registers."""
    so, log = w.path(gpt.name + ".so"), w.path(gpt.name + ".ptxas")
    target = None if w.o.emulated else w.target(telling(w, w.o.nvcc, log))
    plan = w.compile(w.onnx(gpt), so, "--loss", "loss", *gpt.flags, target=target)["summary"]
    numbers["peak_bytes"], numbers["planned_seconds"] = plan["peak_bytes"], plan["step_seconds"]
    text = f"peak {plan['peak_bytes'] / 2**20:.0f} MiB, planned step {plan['step_seconds']:.3g} s"
    return text if w.o.emulated else text + "; " + judge(ck.content(log).decode(), numbers)


def registers(w, gpt, numbers):
    """Under emulation: NVIDIA's compiler, where it is, takes what is emitted."""
    if not os.access(w.o.nvcc, os.X_OK):
        raise Skipped(f"no nvcc at {w.o.nvcc}")
    log = w.path(gpt.name + ".real.ptxas")
    w.compile(
        w.onnx(gpt),
        w.path(gpt.name + ".real.so"),
        "--loss",
        "loss",
        *gpt.flags,
        target=["--target", "cuda", "--arch", w.o.arch, "--nvcc", telling(w, w.o.nvcc, log)],
    )
    return judge(ck.content(log).decode(), numbers)


def budget(w, gpt, which, numbers):
    """The same model in half of the bytes, or in the least."""
    full = model_plan(w, gpt)["summary"]["peak_bytes"]
    size = full // 2
    flags = ["--loss", "loss", *gpt.flags, "--target", "cuda", "--arch", w.o.arch]
    least = check_models.least_budget(w.path(gpt.name), [str(x) for x in flags], Quiet(w))
    if not least:
        raise Wrong("ckc names no smallest budget")
    size = least if which == "least" else max(size, least)
    numbers["budget"] = size
    plan = w.compile(
        w.onnx(gpt),
        w.path(f"{gpt.name}-{which}.so"),
        "--loss",
        "loss",
        *gpt.flags,
        "--memory-budget",
        size,
    )["summary"]
    return f"peak {plan['peak_bytes'] / 2**20:.0f} of {full / 2**20:.0f} MiB, planned step {plan['step_seconds']:.3g} s"


def model_plan(w, gpt):
    plan = w.path(gpt.name + ".plan.json")
    w.must(
        w.tool("ckc"),
        w.onnx(gpt),
        "--plan-only",
        "--quiet",
        "--json",
        plan,
        "--loss",
        "loss",
        *gpt.flags,
        "--target",
        "cuda",
        "--arch",
        w.o.arch,
    )
    return ck.plan(plan)


def warm_peer(w, models, numbers):
    """PyTorch's compiler, whose cache the part `time` finds."""
    for gpt in models:
        part_time.peer(w, gpt, part_time.SETTINGS[0][1], {}, pace=(1, 1, 1))
    return f"{len(models)} of its programs, {part_time.SETTINGS[0][0]}"


class Quiet:
    """What check_models.least_budget asks of its options."""

    def __init__(self, w):
        self.ckc, self.timeout = w.tool("ckc"), 100


def carry_out(w, rows):
    jobs = 1 if w.o.emulated else max(1, (os.cpu_count() or 1) - 2)
    rows.carry_out_all([("programs", lambda n: programs(w, n))])
    small = [tiny(t) for t in (DTYPES[:1] if w.o.quick else DTYPES)]
    big = [] if w.o.quick else timed_models(w.o)
    for gpt in small + big:  # a file is written once, before any two ask for it
        if os.access(w.tool("gpt"), os.X_OK) and gpt is not XL:
            w.onnx(gpt)
    items = [(f"compile {g.name}", lambda n, g=g: model(w, g, n)) for g in reversed(small + big)]
    items += [
        (f"compile {g.name}, {b}", lambda n, g=g, b=b: budget(w, g, b, n))
        for g in big[:1]
        for b in ("half", "least")
    ]
    if not w.o.quick:
        items.append(("PyTorch compiles", lambda n: warm_peer(w, big, n)))
    if w.o.emulated:
        items += [(f"registers {g.name}", lambda n, g=g: registers(w, g, n)) for g in small]
    rows.carry_out_all(items, jobs)
