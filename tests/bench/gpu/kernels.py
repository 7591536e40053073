#!/usr/bin/env python3
"""A table of a model's GPU kernels and an estimate of its step, without a GPU.

    kernels.py [--arch sm_90a] [--limits] CKC NVCC MODEL.onnx [ckc's flags...]

Kernels: registers, spills, instructions in all and of one way round each loop (sass.py).  Calls:
those of a training step, what each launches (record.h), bytes, estimated microseconds beside ckc's.
Nothing was measured on a GPU: RATES says what is assumed of one.  --limits: status 1 if a kernel
spills or a loop of attention is too long.
"""

import argparse
import collections
import math
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.abspath(os.path.join(HERE, "..", "..", ".."))
sys.path.append(HERE)
import sass  # noqa: E402

# An H100: cycles of all schedulers; bytes and FLOPs a second that large copies and products of 16
# and 32 bits reach; microseconds of a launch in a graph.  Of the schedulers' cycles kernels use
# ISSUE.  Attention waits more: it uses ATTENTION of them, and its tensor cores CORES of those that
# a product of 16 x 8 x 16 takes at least, so that its forward pass comes to what FlashAttention-2
# reaches on an H100 at this length (about 230 TFLOP/s).
CYCLES = 132 * 4 * 1.755e9
RATES = {"bytes": 3.0e12, 2: 700e12, 4: 50e12, "launch": 1.5}
START = 128  # elements of k whose time a product's start and end take
ISSUE, ATTENTION, CORES = 0.7, 0.45, 0.40
HMMA_CYCLES = 6.2
LIMITS = {"ckr_flash_kernel": 600, "ckr_flash_dq": 800, "ckr_flash_dkv": 800}
# Vectors are not for kernels that walk an axis or read places, and not for a few numbers.
NARROW = re.compile("argmax|resize|reshape|topk|ckr_batch_finish|ckr_expert_dw")
VECTORS = re.compile("ckr_(update|update_joined|accumulate|ema|convert|finite|round)_")

SIZES = {"f32": 4, "bf16": 2, "f16": 2, "i64": 8, "f64": 8, "i32": 4, "bool": 1}
JOINED = 360  # updates that a launch applies
Call = collections.namedtuple("Call", "function op count flops bytes planned joins shapes launches")


def emit(ckc, model, flags, folder):
    """The model's sources in a folder; a stand-in for nvcc compiles nothing."""
    stand_in = os.path.join(folder, "nvcc")
    with open(stand_in, "w") as f:
        f.write('#!/bin/sh\nwhile [ $# -gt 0 ]; do [ "$1" = -o ] && : >"$2"; shift; done\n')
    os.chmod(stand_in, 0o755)
    where = ["-o", os.path.join(folder, "model.so"), "--emit-c", folder, "--quiet"]
    run([ckc, model, *where, "--target", "cuda", "--nvcc", stand_in, *flags])


def run(argv):
    done = subprocess.run(
        [str(x) for x in argv], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    if done.returncode:
        sys.exit(f"{os.path.basename(argv[0])}: {done.stderr.strip()[-2000:]}")
    return done


def compiled(nvcc, arch, folder):
    """[sass.Kernel], machine code; without a disassembler what ptxas says, and ''."""
    cubin = os.path.join(folder, f"{arch}.cubin")
    flags = ["-std=c++20", "-O3", "--fmad=false", "-Xptxas=-v", "-cubin", f"-arch={arch}"]
    log = run([nvcc, *flags, "-o", cubin, os.path.join(folder, "model.cu")]).stderr
    tool = sass.disassembler(nvcc)
    text = run([tool, "-sass", cubin]).stdout if tool else ""
    return sass.kernels(text, log), text


def functions(folder):
    """{function: the shapes that its comment says, [(dtype, extents)]}."""
    with open(os.path.join(folder, "model.cu")) as f:
        text = f.read()
    found = {}
    for part in re.split(r"\n(?=CKR_GLOBAL|extern \"C\" void)", text):
        shapes = re.search(r"/\* (.*?->.*?) \*/", part)
        for name in re.findall(r"^(\w+)_device\(|^(\w+)\(void \*const", part, re.M):
            if shapes:
                found["".join(name)] = [
                    (t, [int(x) for x in dims.split(",") if x])
                    for t, dims in re.findall(r"(\w+)\[([\d,]*)\]", shapes[1])
                ]
            found.setdefault("".join(name), [])
    return found


def launches(folder, names):
    """{function: [fields of a line of record.h]}."""
    source = os.path.join(folder, "record.cpp")
    with open(source, "w") as f:
        f.write('#include "model.cu"\nint main() {\nRECORD_ENVIRONMENT(env, ckr_env, ckr_gemm);\n')
        f.write("void *p[256]; int64_t c[4096] = {};\n")
        f.write("for (auto &x : p) x = (void *)0x10000000;\n")
        for name in names:
            f.write(f'printf("= {name}\\n"); {name}(p, c, &env);\n')
        f.write("}\n")
    program = os.path.join(folder, "record")
    cuda = os.path.join(ROOT, "tests", "cuda")
    include = [
        "-include",
        os.path.join(cuda, "emulate.h"),
        "-include",
        os.path.join(HERE, "record.h"),
    ]
    run(["g++", "-std=c++20", "-O0", "-w", "-I", cuda, *include, "-o", program, source])
    found = collections.defaultdict(list)
    for line in run([program]).stdout.splitlines():
        if line.startswith("= "):
            name = line[2:]
        else:
            found[name].append(line.replace("]\t", "\t").split("\t"))
    return found


def calls(folder):
    """[Call] of a training step, in the order of their first."""
    with open(os.path.join(folder, "model.c")) as f:
        text = f.read()
    program = re.search(r"struct ckr_instr instr0\[\] = \{\n(.*?)\n\};", text, re.S)[1]
    number = r"([\d.e+-]+), "
    rows = re.findall(
        r"\{ (\w+), \"(\w+)\", .*?\n\t  [\d, -]+?, " + 3 * number + r"NULL, \d+, (\d) \}", program
    )
    if not rows:
        sys.exit("model.c: no instructions: struct ckr_instr has other members")
    count = collections.Counter(r[0] for r in rows)
    shapes = functions(folder)
    told = launches(folder, [name for name in count if name != "NULL"])
    once = {r[0]: r for r in rows if r[0] != "NULL"}
    return [
        Call(name, op, count[name], *(float(x) for x in numbers), shapes[name], told[name])
        for name, op, *numbers in once.values()
    ]


def loop_of(kernel):
    """Instructions of the longest inner loop, of the whole kernel if it has none."""
    return max((x.usual for x in kernel.loops if x.inner), default=kernel.count)


def attention_cycles(kernel):
    """Of a warp's tile of 16 rows."""
    loop = attention_loop(kernel)
    return max(loop.usual / ATTENTION, loop.opcodes["HMMA"] * HMMA_CYCLES / CORES)


def tiles(call):
    """Warps' tiles of all heads: half of them under a causal mask, and those on its edge."""
    q = call.shapes[1 if call.op == "attention_grad" else 0][1]
    k = call.shapes[2 if call.op == "attention_grad" else 1][1]
    scores = q[0] * q[1] * q[2] * k[2]
    causal = call.flops < 3.5 * scores * q[3] * (2.5 if call.op == "attention_grad" else 1)
    return scores / (16 * 64) * (0.5 + 32 / k[2] if causal else 1)


def product_seconds(fields):
    m, n, k, batch, size, y, c = (int(x) for x in fields[1:])
    moved = batch * (size * (m * k + k * n) + (y + c) * m * n)
    return max(2.0 * m * n * (k + START) * batch / RATES[size], moved / RATES["bytes"])


def seconds(call, kernels):
    """What is assumed of a call, in seconds."""
    products = sum(product_seconds(x) for x in call.launches if x[0] == "gemm")
    own = [kernels[x[0]] for x in call.launches if x[0] in kernels]
    used = {k.name: k for k in own}.values()
    flash = [k for k in used if "flash" in k.name and k.loops]
    start = RATES["launch"] * 1e-6 * len(call.launches) / (JOINED if call.joins else 1)
    moved = call.bytes / RATES["bytes"]
    if flash:
        cycles = sum(attention_cycles(k) for k in flash) * tiles(call)
        o = numel(call.shapes[0][1]) * SIZES[call.shapes[0][0]]
        rows = 2 * o / RATES["bytes"] if call.op == "attention_grad" else 0
        return cycles / CYCLES + rows + start
    if call.op == "classifier":
        rows = next(k for k in used if "classifier_rows" in k.name)
        logits = call.shapes[0][1][0] * call.shapes[1][1][0]
        per = sum(
            x.usual for x in rows.loops if x.inner and (x.opcodes["LDG"] or x.opcodes["MUFU"] >= 4)
        )
        size = SIZES[call.shapes[0][0]]
        each = max(
            2 * size * logits / RATES["bytes"], logits / (16 / size) / 32 * per / CYCLES / ISSUE
        )
        return products + each + start
    if products:
        return products + start
    elements = max((numel(s) for _, s in call.shapes), default=0)
    most = max(used, key=loop_of, default=None)
    issue = 0.0
    if most and elements:
        issue = elements / 8 / 32 * loop_of(most) / CYCLES / ISSUE
    return max(moved, issue) + start


def numel(shape):
    n = 1
    for x in shape:
        n *= x
    return n


def print_kernels(kernels):
    print("| kernel | registers | spilled B | instructions | a way round each loop |")
    print("|---|---:|---:|---:|---|")
    for k in sorted(kernels, key=lambda k: k.name):
        ways = ", ".join(str(x.usual) for x in k.loops) or "-"
        print(f"| {k.name} | {k.registers} | {k.spills + k.frame} | {k.count} | {ways} |")


def print_calls(found, kernels):
    """Returns the estimated and the planned seconds of a step."""
    by = {k.name: k for k in kernels}
    total = planned = 0.0
    rows = collections.defaultdict(lambda: [0, 0, 0.0, 0.0, 0.0])
    for c in found:
        t = seconds(c, by)
        r = rows[c.op]
        r[0] += c.count
        r[1] += c.count * len(c.launches) / (JOINED if c.joins else 1)
        for i, x in enumerate((c.bytes / 1e6, t * 1e6, c.planned * 1e6)):
            r[2 + i] += c.count * x
        total += c.count * t
        planned += c.count * c.planned
    print("\n| op | calls | launches | MB | estimated us | ckc's us |")
    print("|---|---:|---:|---:|---:|---:|")
    for op, r in sorted(rows.items(), key=lambda x: -x[1][3]):
        print(f"| {op} | {r[0]} | {math.ceil(r[1])} | {r[2]:.0f} | {r[3]:.0f} | {r[4]:.0f} |")
    print(f"| all | | | | {total * 1e6:.0f} | {planned * 1e6:.0f} |")
    return total, planned


def faults(kernels):
    """What breaks a limit."""
    for k in kernels:
        if k.spills or k.frame:
            yield f"{k.name}: {k.frame} bytes of stack, {k.spills} of spills"
        limit = next((n for name, n in LIMITS.items() if k.name.startswith(name)), None)
        if limit and k.loops:
            yield from attention_faults(k, limit)
    yield from narrow(kernels)


def attention_faults(kernel, limit):
    """Of a tile that takes the usual way, without masks."""
    loop = attention_loop(kernel)
    if loop.usual > limit:
        yield f"{kernel.name}: {loop.usual} instructions for a tile, expected at most {limit}"
    if any(re.match(r"ISETP\..*\.EX", op) for op in loop.way):
        yield f"{kernel.name}: compares 64 bits in each tile"
    # of a thread's 16 scores at least, two to a conversion
    for op, least, what in (("MUFU.EX2", 16, "exponentials"), ("F2FP", 8, "conversions")):
        n = sum(n for x, n in loop.way.items() if x.startswith(op))
        if n < least:
            yield f"{kernel.name}: {n} {what} by {op} in each tile, expected {least} or more"


def narrow(kernels):
    """Kernels whose accesses of global memory should have 128 bits."""
    for k in kernels:
        if k.wide is None or NARROW.search(k.name):
            continue
        for kind in sorted(k.split):
            yield f"{k.name}: {kind} of neighbours that could be one of 128 bits"
        if VECTORS.match(k.name) and "LDG" not in k.wide:
            yield f"{k.name}: no loads of 128 bits"


def attention_loop(kernel):
    return max(kernel.loops, key=lambda x: x.opcodes["HMMA"])


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--arch", default="sm_90a")
    p.add_argument("--limits", action="store_true")
    p.add_argument("ckc")
    p.add_argument("nvcc")
    p.add_argument("model")
    o, flags = p.parse_known_args()
    with tempfile.TemporaryDirectory() as folder:
        emit(os.path.abspath(o.ckc), o.model, flags, folder)
        kernels, _ = compiled(o.nvcc, o.arch, folder)
        print_kernels(kernels)
        print_calls(calls(folder), kernels)
    broken = list(faults(kernels)) if o.limits else []
    print(*broken, sep="\n", file=sys.stderr)
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()
