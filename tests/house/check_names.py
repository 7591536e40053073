#!/usr/bin/env python3
"""Checks that what a file exports, another file uses.

    check_names.py ROOT BUILD [NM]

Reads the symbols of all object files below BUILD.  A name that one of the product's files defines
for the others must be used by another file of the product or of the tests.  Excepted are the
functions of runtime/ckr.h, which are for users, what a module exports for who loads it, and the
rules that ir/ops.h names, which their tables declare alike wherever they stand.

Prints one line per fault; exit status 1 if there is any.
"""

import collections
import os
import re
import subprocess
import sys

BATCH = 400  # files of one command
FOLDERS = ("ir", "frontend", "passes", "codegen", "runtime")


def objects(build):
    for base, _, names in os.walk(build):
        for name in names:
            if name.endswith(".o"):
                yield os.path.relpath(os.path.join(base, name), build)


def source(path):
    """The source that an object file was made of, if it is one of ours:
    TOP/CMakeFiles/TARGET.dir/ROOM/FILE.c.o."""
    top, _, rest = path.partition("/CMakeFiles/")
    return os.path.join(top, rest.partition(".dir/")[2])[:-2]


def symbols(nm, build, paths):
    """Names defined and names used, per object file."""
    defined, used = {path: set() for path in paths}, {path: set() for path in paths}
    for at in range(0, len(paths), BATCH):
        text = subprocess.run(
            [nm, "-A", "-P", "-g", *paths[at : at + BATCH]],
            cwd=build,
            check=True,
            text=True,
            stdout=subprocess.PIPE,
        ).stdout
        for line in text.splitlines():
            path, _, row = line.partition(": ")
            name, kind = row.split()[:2]
            if kind in "Uw":
                used[path].add(name)
            elif kind in "TDRBC":
                defined[path].add(name)
    return defined, used


def excepted(root):
    with open(os.path.join(root, "runtime/ckr.h"), encoding="utf-8") as f:
        names = set(re.findall(r"\b(ckr_\w+)\(", f.read()))
    with open(os.path.join(root, "ir/ops.h"), encoding="utf-8") as f:
        for rules, emit in re.findall(r"RULES\(([^()]*)\),\s*EMIT\(([^()]*)\)", f.read()):
            columns = zip(
                ("infer", "eval", "dynamic", "cost", "grad", "sharding", "emit"),
                (rules + "," + emit).split(","),
            )
            names |= {f"{column}_{rule.strip()}" for column, rule in columns}
    return names | {"ckr_transport"}


def main():
    root, build, nm = sys.argv[1], sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else "nm"
    defined, used = symbols(nm, build, sorted(objects(build)))
    product = {
        path
        for path in defined
        if path.split("/")[0] in FOLDERS and os.path.exists(os.path.join(root, source(path)))
    }
    fine = excepted(root) | {"main"}
    users = collections.Counter(name for names in used.values() for name in names)
    faults = [
        f"{source(path)}: nobody else uses {name}"
        for path in sorted(product)
        for name in sorted(defined[path] - fine)
        if users[name] == (name in used[path]) and not name.startswith("_")
    ]
    print("\n".join(faults))
    print(f"{len(product)} files, {len(faults)} faults")
    return 1 if faults or not product else 0


if __name__ == "__main__":
    sys.exit(main())
