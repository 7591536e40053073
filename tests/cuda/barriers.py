#!/usr/bin/env python3
"""Is every barrier of a kernel needed, and would its absence be seen?  By hand.

    barriers.py [--only REGEX] [--jobs N] [--table FILE] BUILD
    barriers.py --check

Each __syncthreads, __syncwarp and wait for copies in codegen/cuda/kernels is removed in turn, and
kernels run on the emulated GPU (codegen_kernels --cuda).  The table says what notices: a race,
other bits or values, or nothing, with the reason that FILE gives.  --only: barriers whose file,
function and number match REGEX; the table keeps its rows of others.  Exit status 0 when something
notices all of those without a reason.  --check runs nothing: barriers.md has a row for each
barrier, and no other, with what notices or the reason.
"""

import argparse
import concurrent.futures
import glob
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
KERNELS = os.path.join(HERE, "..", "..", "codegen", "cuda", "kernels")
TABLE = os.path.join(HERE, "barriers.md")
GROUPS = ("experts", "tiles", "typed", "elementwise", "image", "conv", "nn")
BARRIER = re.compile(r"(__syncthreads|__syncwarp|ckr_copies_wait<\d>)\(\);")
HEAD = """# Barriers

What notices when a barrier of a kernel is removed, by
`tests/cuda/barriers.py --table tests/cuda/barriers.md build`. *Group* is that of `codegen_kernels
--cuda --only`.

| file | function | barrier | group | noticed by |
|---|---|---|---|---|
"""


class Barrier:
    def __init__(self, file, function, number, line, text):
        self.file, self.function, self.number = file, function, number
        self.line, self.text = line, text

    def name(self):
        return f"{self.function} {self.number}"

    def columns(self):
        return f"{self.file} | {self.function} | {self.number}: `{self.text}`"


def barriers_of(path):
    """A function's name begins the line, or stands behind CKR_DEVICE's type."""
    function, n = "", 0
    with open(path, encoding="utf-8") as f:
        for line, text in enumerate(f, 1):
            m = re.match(r"(?:__launch_bounds__.*\) )?(ckr_\w+)\(", text)
            if m:
                function, n = m.group(1), 0
            for b in BARRIER.findall(text):
                n += 1
                yield Barrier(os.path.basename(path), function, n, line, b)


def run(build, group, nvcc):
    return subprocess.run(
        [os.path.join(build, "codegen_kernels"), "--cuda", "--only", group, nvcc],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )


def wrapper(folder, line):
    """A compiler that carries out a line of shell beside the sources first."""
    path = os.path.join(folder, "nvcc")
    with open(path, "w") as f:
        f.write(f'#!/bin/sh\n{line}\nexec {os.path.join(HERE, "nvcc")} "$@"\n')
    os.chmod(path, 0o755)
    return path


def files_of(build, group):
    """Texts of kernels that a group's sources have."""
    with tempfile.TemporaryDirectory() as d:
        listed = os.path.join(d, "files")
        run(build, group, wrapper(d, f"ls >{listed}; exit 1"))
        with open(listed, encoding="utf-8") as f:
            return set(f.read().split())


def notices(r):
    if r.returncode == 0:
        return None
    m = re.search(r"emulated GPU: .*?: thread \d+ (\w+).*?, (which|no) (\w+)", r.stdout)
    if m:
        verb = m.group(1).rstrip("s")
        against = "unwritten bytes" if m.group(3) == "no" else f"against a {m.group(3)}"
        return f"race: {verb} {against}"
    for text, what in (("waits for ever", "hang"), ("give other bits", "other bits")):
        if text in r.stdout:
            return what
    return "values" if "faults" in r.stdout else r.stdout[-200:].replace("\n", " ")


def try_one(build, barrier, groups):
    with tempfile.TemporaryDirectory() as d:
        edit = f"sed -i '{barrier.line}s/{barrier.text}();/;/' {barrier.file}"
        nvcc = wrapper(d, edit)
        for g in groups:
            what = notices(run(build, g, nvcc))
            if what:
                return g, what
    return "", ""


def old_rows(path):
    """{columns of a barrier: (group, what)} of a table."""
    rows = {}
    if os.path.exists(path):
        with open(path, encoding="utf-8") as f:
            for line in f:
                cells = [c.strip() for c in line.strip().strip("|").split(" | ")]
                if len(cells) == 5 and cells[0] != "file":
                    rows[" | ".join(cells[:3])] = cells[3], cells[4]
    return rows


def check_table(every):
    rows, names = old_rows(TABLE), [b.columns() for b in every]
    bad = [f"no row of {x}" for x in names if x not in rows]
    bad += [f"a row of {x}, which is no barrier" for x in rows if x not in names]
    bad += [f"nothing notices {x}, and no reason" for x, (_, what) in rows.items() if not what]
    print("\n".join(bad) or f"{len(names)} barriers")
    return bool(bad)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", nargs="?")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--table")
    args = parser.parse_args()
    every = [b for p in sorted(glob.glob(os.path.join(KERNELS, "*.cuh"))) for b in barriers_of(p)]
    if args.check:
        return check_table(every)
    if not args.build:
        parser.error("no build folder")
    old = old_rows(args.table or TABLE)
    files = {g: files_of(args.build, g) for g in GROUPS}
    bad, rows = 0, []
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        runs = {
            b: pool.submit(try_one, args.build, b, [g for g in GROUPS if b.file in files[g]])
            for b in every
            if re.search(args.only, f"{b.file} {b.name()}")
        }
        for b in every:
            before = old.get(b.columns(), ("not run", ""))
            group, what = runs[b].result() if b in runs else before
            if not group:
                group, what = "none", before[1] if before[0] in ("none", "not run") else ""
                bad += not what
            rows.append(f"| {b.columns()} | {group} | {what} |\n")
            if b in runs:
                print(rows[-1], end="", flush=True)
    if args.table:
        with open(args.table, "w", encoding="utf-8") as f:
            f.write(HEAD + "".join(rows))
    return bad != 0


if __name__ == "__main__":
    sys.exit(main())
