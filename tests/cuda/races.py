#!/usr/bin/env python3
"""Faults of kernels that the emulated GPU must see, and kernels that have none: races.cu.

races.py NVCC
"""

import ctypes
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
# A read that comes too early finds what nobody has written yet.
RACE = "(no barrier orders the two|no thread has written)\n"
# case: what is said; None: nothing
CASES = {
    "block": None,
    "no_block": "no_block_kernel: block 0: thread 31 reads byte 128 of dynamic shared memory, which "
    + RACE,
    "warp": None,
    "shuffle": RACE,
    "overtaken": "overtaken_kernel.*: no barrier orders the two\nhere:\n.*races.cu:74\nthere:\n.*:75",
    "unwritten": "which no thread has written",
    "halves": None,
    "vector": RACE,
    "structure": RACE,
    "atomic": None,
    "half_atomic": RACE,
    "copy": None,
    "no_wait": "copies to: no barrier orders the two",
    "no_barrier": RACE,
    "fits": None,
    "with_static": "49152 bytes of dynamic and 256 of static shared memory",
    "unasked": "of which 49152 are allowed",
    "asked": None,
    "asked_static": "too much shared memory",
    "too_much": "of which 49152 are allowed",
    "threads": "1056 threads",
    "blocks": "4294967296 blocks",
    "no_blocks": "0 blocks",
    "global": None,
    "not_global": "a store to global memory writes shared memory",
    "arguments": None,
    "many_arguments": "32765 bytes of arguments, of which 32764 are allowed",
    "recorded": None,
    "recorded_first": "large_kernel: the first launch is recorded into a graph",
}
# the same on other GPUs
OTHERS = {("asked", "86"): "of which 49152 are allowed", ("asked", "80"): None}


def run_case(so, case):
    getattr(ctypes.CDLL(so), case)((ctypes.c_float * 1024)())


def said(so, case, **env):
    done = subprocess.run(
        [sys.executable, __file__, so, case],
        env={**os.environ, **env},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    return done.stderr if done.returncode else None


def is_right(text, expected):
    return text is None if expected is None else text is not None and re.search(expected, text)


def main():
    if len(sys.argv) == 3:
        return run_case(*sys.argv[1:])
    bad = 0
    with tempfile.TemporaryDirectory() as d:
        o, so = os.path.join(d, "races.o"), os.path.join(d, "races.so")
        source = os.path.join(HERE, "races.cu")
        env = {**os.environ, "CKR_EMULATE_RACES": "1"}
        subprocess.run([sys.argv[1], "-c", source, "-o", o], env=env, check=True)
        subprocess.run(["g++", "-shared", "-o", so, o], check=True)
        wanted = {(case, "90"): text for case, text in CASES.items()} | OTHERS
        for (case, arch), expected in wanted.items():
            text = said(so, case, CKR_FAKE_GPU_ARCH=arch)
            if not is_right(text, expected):
                bad += 1
                print(f"{case} on sm_{arch}: expected {expected}, found {text}")
        print(f"{len(wanted) - bad} passed, {bad} failed")
    return bad != 0


if __name__ == "__main__":
    sys.exit(main())
