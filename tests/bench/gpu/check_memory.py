"""Memory as others see it: NVIDIA's sanitizer, and what the driver says is used."""

import re
import shutil
import subprocess
import time

from work import Skipped, Wrong, said

# What a tool looks at: all kernels, or ours.  Hazards of NVIDIA's libraries are theirs, and all of
# our kernels have ckr in their mangled names (tests/cuda/registers.py).
OURS = "--kernel-name", "kns=ckr"
TOOLS = {"memcheck": (), "racecheck": OURS, "initcheck": OURS}
# While nothing else runs on the device.
ALONE = ("peak as the driver says",)
# What the driver counts beside a plan's bytes: context, code, the library of products.
BESIDE = 2 << 30
# Pages of a process that are touched late, where it is the device.
HOST = 16 << 20
SUMMARY = re.compile(r"(?:ERROR SUMMARY|RACECHECK SUMMARY): (\d+) (?:error|hazard)")


def sanitized(w, gpt, tool):
    """A step, kernel by kernel, that the sanitizer has nothing to say of."""
    if not shutil.which("compute-sanitizer"):
        raise Skipped("no compute-sanitizer")
    so, _ = w.library(gpt)
    done = w.call(
        "compute-sanitizer",
        "--tool",
        tool,
        *TOOLS[tool],
        "--error-exitcode",
        9,
        w.tool("ckrun"),
        so,
        *w.feed(gpt),
        "--steps",
        2,
        "--quiet",
        CKR_GRAPHS="0",
    )
    found = SUMMARY.search(done.stdout + done.stderr)
    if done.returncode or not found or int(found[1]):
        raise Wrong(f"status {done.returncode}: {said(done.stdout + done.stderr)}")
    return "two steps, clean" + (" (a stand-in: nothing was looked for)" if w.o.emulated else "")


def used(w):
    """Bytes in use on the first device."""
    return (
        int(
            w.must(
                "nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"
            ).stdout.split()[0]
        )
        << 20
    )


def as_the_driver_says(w, gpt, numbers):
    """A run takes the plan's bytes, what the context takes, and no more from its second step on."""
    so, plan = w.library(gpt)
    planned, before, seen = plan["summary"]["peak_bytes"], used(w), []
    child = subprocess.Popen(
        [w.tool("ckrun"), so, *w.feed(gpt), "--steps", "1000000", "--log", w.path("driver.log")],
        cwd=w.models,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        for line in child.stdout:
            if line.startswith("step 2/"):
                break
        for _ in range(5):
            seen.append(used(w) - before)
            time.sleep(0.2)
    finally:
        child.kill()
        child.wait()
        child.stdout.close()
    numbers.update(planned=planned, used=seen)
    if not planned <= seen[-1] <= planned + BESIDE:
        raise Wrong(f"planned {planned}, the driver says {seen[-1]}")
    if seen[-1] > seen[0] + (HOST if w.o.emulated else 0):
        raise Wrong(f"grew from {seen[0]} to {seen[-1]} B behind the second step")
    return f"planned {planned >> 20} MiB, used {seen[-1] >> 20}, no growth behind the second step"


def items(w, gpt):
    return [(f"sanitizer: {tool}", lambda n, t=tool: sanitized(w, gpt, t)) for tool in TOOLS] + [
        (ALONE[0], lambda n: as_the_driver_says(w, gpt, n))
    ]
