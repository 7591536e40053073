#!/usr/bin/env python3
"""Checks what a compiler does not: which folder includes which, who calls what, how lines look.

    check_house.py ROOT [CC]

  * includes are written from the root and point one way: ir <- frontend, passes, codegen; runtime stands alone;
    frontend/driver sees all (between the rooms of a folder the build sees to it: ckc_room in CMakeLists.txt)
  * a room of ROOMS includes what its row names, and nothing else of the project: ckrun knows models by ckr.h alone
  * no folder has more than 25 files beside each other
  * every header compiles alone
  * only the driver exits; only ilp.c sees GLPK; only the frontend sees protobuf; nobody runs a shell
  * lines are at most 80 columns with tabs of 8 (tables in ir/ops.h and option rows excepted)

Prints one line per fault; exit status 1 if there is any.
"""
import os
import re
import subprocess
import sys

FOLDERS = ("ir", "frontend", "passes", "codegen", "runtime")
MAY_SEE = {"ir": {"ir"}, "frontend": {"ir", "frontend"}, "passes": {"ir", "passes"}, "codegen": {"ir", "codegen"},
           "runtime": {"runtime"}}
DRIVER = "frontend/driver/"
# Folders and headers that a room may include beside its own.
ROOMS = {
    "runtime/base/": ("runtime/ckr.h", "runtime/ckr_abi.h"),
    "runtime/file/": ("runtime/base/",),
    "runtime/blas/": ("runtime/base/", "runtime/ckr_abi.h"),
    "runtime/model/": ("runtime/base/", "runtime/file/", "runtime/blas/", "runtime/ckr_abi.h"),
    "runtime/ckrun/": ("runtime/base/", "runtime/file/", "runtime/ckr.h"),
}
CROWD = 25  # files beside each other
# The ABI's text is the head of generated C: codegen embeds it and fills its tables, and may read its numbers.
ABI = "runtime/ckr_abi.h"
WIDE = {"ir/ops.h"}
ONLY_IN = {  # pattern: who may
    r"#include <glpk\.h>": {"passes/solve/ilp.c"},
    r"#include .*pb-c\.h": {"frontend/onnx/onnx.h"},
    r"(?<![\w.>])(exit|abort|_exit)\(": {"codegen/cc.c", "ir/base/arena.c", "ir/base/diag.c", "runtime/ckrun/ckrun.c", "passes/solve/ilp.c"},
    r"volatile int \*": set(),  # what a signal handler sets is a sig_atomic_t
    r"(?<![\w.>])(system|popen|strcpy|sprintf|gets)\(": set(),
}


# C11 7.13.1.1: setjmp is all of a condition, or compared with a constant there.
SETJMP = re.compile(r"(?<![\w.>])setjmp\(")
SETJMP_ALONE = re.compile(r"\s*(if|while|switch) \(!?setjmp\([\w.>-]+\)( [!=]= 0)?\)( \{)?$")


def sources(root):
    for folder in FOLDERS:
        for base, _, files in os.walk(os.path.join(root, folder)):
            for name in sorted(files):
                if name.endswith((".c", ".h")):
                    yield os.path.relpath(os.path.join(base, name), root)


def strip(text):
    """Comments and strings blanked, line structure kept."""
    token = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'', re.S)
    return token.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text)


def check_setjmp(path, text, faults):
    for i, line in enumerate(text.splitlines(), 1):
        if SETJMP.search(line) and not SETJMP_ALONE.match(line):
            faults.append(f"{path}:{i}: setjmp where C does not permit it")


def check_includes(path, text, faults):
    room = path.split("/")[0]
    for i, line in enumerate(text.splitlines(), 1):
        m = re.match(r'\s*#\s*include "([^"]+)"', line)
        if not m or path.startswith(DRIVER):
            continue
        target = m.group(1)
        seen = target.split("/")[0] if "/" in target else None
        if seen in FOLDERS and seen not in MAY_SEE[room] and not (target == ABI and room == "codegen"):
            faults.append(f"{path}:{i}: {room} may not include {target}")
        for folder, others in ROOMS.items():
            if path.startswith(folder) and not target.startswith((folder, *others)):
                faults.append(f"{path}:{i}: {folder[:-1]} may not include {target}")


def check_calls(path, code, text, faults):
    for pattern, allowed in ONLY_IN.items():
        where = text if pattern.startswith("#") else code
        for m in re.finditer(pattern, where):
            if path not in allowed:
                faults.append(f"{path}:{where.count(chr(10), 0, m.start()) + 1}: {m.group()} does not belong here")


def check_lines(path, text, faults):
    for i, line in enumerate(text.splitlines(), 1):
        if len(line.expandtabs(8)) > 80 and path not in WIDE:
            faults.append(f"{path}:{i}: {len(line.expandtabs(8))} columns")
        if line != line.rstrip():
            faults.append(f"{path}:{i}: blanks at the end")


def needs_generated(root, path):
    """Whether a header includes, itself or through others, what the build writes."""
    with open(os.path.join(root, path), encoding="utf-8") as f:
        text = f.read()
    return "pb-c.h" in text or any(needs_generated(root, name) for name in re.findall(r'#include "([^"]+\.h)"', text)
                                   if os.path.exists(os.path.join(root, name)))


def check_header(root, path, cc, faults):
    done = subprocess.run([cc, "-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I.", "-x", "c", "-"],
                          input=f'#include "{path}"\n', text=True, cwd=root, stderr=subprocess.PIPE)
    if done.returncode:
        faults.append(f"{path}: does not compile alone: {done.stderr.strip().splitlines()[0]}")


def check_crowds(root, faults):
    for folder in FOLDERS:
        for base, _, files in os.walk(os.path.join(root, folder)):
            if len(files) > CROWD:
                faults.append(f"{os.path.relpath(base, root)}: {len(files)} files beside each other")


def main():
    root, cc = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "cc"
    faults = []
    for path in sources(root):
        with open(os.path.join(root, path), encoding="utf-8") as f:
            text = f.read()
        rows = "#ifndef OP\n" in text or re.search(r"^DT\(", text, re.M)  # tables are included by their readers
        check_includes(path, text, faults)
        check_setjmp(path, strip(text), faults)
        check_calls(path, strip(text), text, faults)
        check_lines(path, text, faults)
        if path.endswith(".h") and not rows and "/kernels/" not in path and not needs_generated(root, path):
            check_header(root, path, cc, faults)
    check_crowds(root, faults)
    print("\n".join(faults[:60]))
    print(f"{len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
