#!/usr/bin/env python3
"""What a training step does to memory, measured from outside, against what was planned.

    measure.py MEASURE FOLDER-OF-MODELS

run on models written by hand, one of which misuses memory on purpose: every misuse must be seen.
Other tests import measure and complaints.
"""

import json
import os
import subprocess
import sys

# Beyond the two blocks: the last pages of them, tables of pointers, what the system keeps for
# threads.
SLACK = 128 << 10
# Between steps: pages that the system or OpenMP's run time touch when they come to it.
NOISE = 32 << 10


def measure(program, so, inputs="-", steps=6, env=None):
    """Numbers of measure.c, or None.  Waiting is settled: on a crowded machine idle threads would
    come and go, and what they take with them."""
    done = subprocess.run(
        [program, so, inputs, str(steps)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={"OMP_WAIT_POLICY": "passive", **os.environ, **(env or {})},
        timeout=300,
    )
    return json.loads(done.stdout) if done.returncode == 0 else None


def complaints(m, scratch=None):
    """What is not as promised.  scratch: where in the arena workspace begins that nothing else
    reaches beyond, if there is some: its end may stay unwritten."""
    if m is None:
        return ["the step failed"]
    bad = []
    end = (m["highest"] + 63) // 64 * 64
    least = m["arena"] if scratch is None else scratch
    if not least <= end <= m["arena"]:
        bad.append(f"the highest byte written is {m['highest']}, planned {m['arena']}")
    if not m["resident"] + least <= m["peak"] <= m["planned"]:
        bad.append(f"the run time says {m['peak']}, planned {m['planned']}")
    if m["outside"]:
        bad.append(f"{m['outside']} bytes outside the blocks were written")
    if not m["pure"]:
        bad.append("results depend on what the arena held before")
    if m["allocs"]:
        bad.append(f"{m['allocs']} allocations in the steps")
    if not m["sanitized"]:
        if m["anon"][-1] - m["anon"][1] > NOISE:
            bad.append(f"anonymous memory grows from step to step: {m['anon'][1:]}")
        if not 0 <= m["anon"][-1] - m["planned"] - m["held"] <= SLACK:
            bad.append(
                f"anonymous memory is {m['anon'][-1]} after the steps, planned {m['planned']}"
            )
    return bad


FAULTS = {
    "leak": "allocations",
    "small leak": "allocations",
    "scratch": "allocations",
    "map": "allocations",
    "static": "anonymous memory is",
    "late": "grows",
    "stack": "anonymous memory is",
    "behind": "outside",
}


def main():
    program, folder = sys.argv[1:3]
    failed = 0
    so = os.path.join(folder, "linear_faulty.so")
    for name in "linear", "linear_accum", "linear_faulty":
        for text in complaints(measure(program, os.path.join(folder, name + ".so"))):
            print(f"FAIL {name}: {text}")
            failed += 1
    sanitized = measure(program, so)["sanitized"]
    if sanitized:
        print(
            "under AddressSanitizer: allocations and pages are the sanitizer's, too; not looked at"
        )
    for fault, says in FAULTS.items():
        got = complaints(measure(program, so, env={"FAULT": fault}))
        if not any(says in text for text in got) and not sanitized:
            print(f"FAIL {fault}: not seen: {got}")
            failed += 1
    print(f"{len(FAULTS)} faults, {failed} failed")
    sys.exit(failed != 0)


if __name__ == "__main__":
    main()
