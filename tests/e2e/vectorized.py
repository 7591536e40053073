#!/usr/bin/env python3
"""Compiled kernels compute in vectors: nothing in a loop is called, neither of the mathematics
library nor of our own arithmetic.

    vectorized.py CKC CKRUN

Every op of one element with an own formula, and dropout, is compiled with its gradient; then the
machine code is read.
"""

import os
import re
import shutil
import sys

import ck

UNARY = [
    "exp",
    "log",
    "sqrt",
    "recip",
    "sin",
    "cos",
    "atan",
    "asinh",
    "tanh",
    "sigmoid",
    "erf",
    "relu",
    "softplus",
    "floor",
    "ceil",
    "round",
    "gelu",
    "gelu_tanh",
    "silu",
    "dropout",
    "pow",
    "max",
]
OPERANDS = {
    "gelu_tanh": "gelu %p {tanh=1}",
    "dropout": "dropout %p {ratio=0.25, stream=3}",
    "pow": "pow %p, %half",
    "max": "max %p, %half",
}
# What a library may ask of others: OpenMP, the dynamic loader, moving bytes.
ASKED = re.compile(r"(GOMP|omp|__kmpc|_ITM|__cxa|__gmon|_GLOBAL)_?\w*$|mem(cpy|set|move|cmp)$")
PACKED = re.compile(r"\s(?!v?mov|vzero|vbroadcast|vpbroadcast)\S+\s.*%[yz]mm")  # more than moved


def model(path):
    """The sum of every op over a parameter of its own."""
    lines = [f"\tparam %p_{op}: f32[64,256] = splat 0.5" for op in UNARY] + [
        "\tconst %half: f32[] = {0.7}"
    ]
    for i, op in enumerate(UNARY):
        lines += [
            f"\t%y_{op} = " + OPERANDS.get(op, f"{op} %p").replace("%p", f"%p_{op}"),
            f"\t%s_{op} = reduce_sum %y_{op} {{keepdims=0}}",
            f"\t%t{i} = add %t{i - 1}, %s_{op}" if i else f"\t%t0 = neg %s_{op}",
        ]
    with open(path, "w") as f:
        f.write(
            "graph @vectors {\n"
            + "\n".join(lines)
            + f"\n\t%loss: f32[] output = neg %t{len(UNARY) - 1}\n}}\n"
        )


def lane_functions(src):
    """What emitted sources define to be run in lanes."""
    text = "".join(open(os.path.join(src, f)).read() for f in os.listdir(src) if f.endswith(".h"))
    return set(re.findall(r"CKR_LANE [\w ]+\n(ckr_\w+)\(", text))


def callers(src, lanes):
    """Functions of kernels.c that call some of them."""
    found = {}
    for f in re.finditer(
        r"^(\w+)\([^;]*?\)\n\{\n(.*?)^\}", open(os.path.join(src, "kernels.c")).read(), re.M | re.S
    ):
        called = lanes & set(re.findall(r"\b(ckr_\w+)\(", f[2]))
        if called:
            found[f[1]] = called
    return found


def machine_code(bench, so):
    """Instructions by function; parts that a compiler took out for threads belong to their
    function."""
    code, name = {}, None
    for line in bench.run(["objdump", "-d", "--no-show-raw-insn", so]).stdout.splitlines():
        head = re.match(r"[0-9a-f]+ <(\w+)[^>]*>:", line)
        if head:
            name = head[1]
        elif name:
            code.setdefault(name, []).append(line)
    return code


def read(bench, so, src, what):
    lanes = lane_functions(src)
    asked = [
        line.split()[-1].split("@")[0]
        for line in bench.run(["nm", "-D", "--undefined-only", so]).stdout.splitlines()
    ]
    bench.check(
        asked and all(map(ASKED.match, asked)),
        f"{what}: asks for {[a for a in asked if not ASKED.match(a)]}",
    )
    code, found = machine_code(bench, so), callers(src, lanes)
    bench.check(
        len(lanes) > 20 and len(found) >= len(UNARY) // 2,
        f"{what}: {len(lanes)} lane functions, {len(found)} callers",
    )
    bench.check(not lanes & set(code), f"{what}: called out of line: {sorted(lanes & set(code))}")
    for name, called in found.items():
        bench.check(
            any(map(PACKED.search, code.get(name, []))),
            f"{what}: {name} runs {sorted(called)} one by one",
        )


def main():
    bench = ck.Bench()
    if not shutil.which("objdump") or os.uname().machine != "x86_64":
        print("vectors: needs objdump and an x86-64")
        sys.exit(77)
    model(bench.path("m.ck"))
    for cc in filter(shutil.which, ("gcc", "clang")):
        for march in ("x86-64-v3", "x86-64-v4"):
            for more in ([], ["--dtype", "bf16"]):
                what = " ".join([cc, march, *more])
                so, src = bench.path("m.so"), bench.path(what.replace(" ", "-"))
                if bench.must(
                    bench.ckc(
                        bench.path("m.ck"),
                        "-o",
                        so,
                        "--emit-c",
                        src,
                        "--cc",
                        cc,
                        "--march",
                        march,
                        "--quiet",
                        *more,
                    ),
                    what,
                ):
                    read(bench, so, src, what)
    bench.finish()


if __name__ == "__main__":
    main()
