#!/usr/bin/env python3
"""clang-tidy, by the list of checks in .clang-tidy, over every product file that a build compiles.

    check_tidy.py BUILD

BUILD has compile_commands.json.  Exit status 77 without clang-tidy.
"""

import concurrent.futures
import json
import os
import re
import shutil
import subprocess
import sys

ROOMS = ("ir/", "frontend/", "passes/", "codegen/", "runtime/")
FEW = 8  # files of one process


def main():
    root = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
    tidy = shutil.which("clang-tidy")
    if not tidy:
        print("skipped: clang-tidy is not installed")
        sys.exit(77)
    with open(os.path.join(sys.argv[1], "compile_commands.json")) as f:
        files = {os.path.relpath(c["file"], root) for c in json.load(f)}
    files = sorted(p for p in files if p.startswith(ROOMS) and p.endswith(".c"))
    if not files:
        sys.exit("no product files in compile_commands.json")

    def run(i):
        command = [tidy, "--quiet", "-p", sys.argv[1], *files[i : i + FEW]]
        return subprocess.run(command, cwd=root, capture_output=True, text=True)

    faults = set()
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for done in pool.map(run, range(0, len(files), FEW)):
            found = re.findall(r"^\S+: (?:error|warning): .*$", done.stdout, re.M)
            faults.update(found or [done.stderr.strip()] * (done.returncode != 0))
    for line in sorted(faults):
        print(line.removeprefix(root + "/"))
    print(f"{len(files)} files, {len(faults)} faults")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
