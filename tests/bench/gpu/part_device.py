"""The device as it is found (nothing is set), versions, and what it can do at most."""

import json
import os
import platform
import re

from work import HERE, Skipped, Wrong

FIELDS = (
    "name",
    "driver_version",
    "memory.total",
    "memory.used",
    "clocks.sm",
    "clocks.mem",
    "clocks.max.sm",
    "power.limit",
    "compute_cap",
)


def device(w, numbers):
    values = (
        w.must("nvidia-smi", "--query-gpu=" + ",".join(FIELDS), "--format=csv,noheader,nounits")
        .stdout.splitlines()[0]
        .split(", ")
    )
    if len(values) != len(FIELDS):
        raise Wrong(f"nvidia-smi: {len(values)} values, expected {len(FIELDS)}")
    numbers.update(zip(FIELDS, values))
    arch = "sm_" + numbers["compute_cap"].replace(".", "")
    if arch != w.o.arch:
        raise Wrong(f"the device is {arch}, models are compiled for {w.o.arch}: give --arch {arch}")
    return ", ".join(f"{k} {v}" for k, v in numbers.items())


def versions(w, numbers):
    numbers["host"] = f"{platform.machine()}, {os.cpu_count()} cores, {platform.platform()}"
    numbers["compiler"] = w.must("cc", "--version").stdout.splitlines()[0]
    if os.access(w.o.nvcc, os.X_OK):
        numbers["nvcc"] = re.search(r"release \S+ \S+", w.must(w.o.nvcc, "--version").stdout)[0]
    elif not w.o.emulated:
        raise Wrong(f"no nvcc at {w.o.nvcc}: give --nvcc")
    return "; ".join(numbers.values())


def ceilings(w, numbers):
    if not os.access(w.o.nvcc, os.X_OK):
        raise Skipped("no nvcc")
    program, source = w.path("ceilings"), os.path.join(HERE, "ceilings.cu")
    arch = "-arch=" + w.o.arch
    if w.o.emulated:
        w.must(w.o.nvcc, "-std=c++17", arch, "-c", "-o", program + ".o", source)
        raise Skipped("compiled, not run: no GPU")
    w.must(w.o.nvcc, "-O2", "-std=c++17", arch, "-o", program, source, "-lcublasLt")
    done = json.loads(w.must(program, timeout=60).stdout)
    numbers.update(done)
    if not (done["copy_bytes_per_second"] > 1e11 and done["product_flops_per_second"] > 1e12):
        raise Wrong(f"not the speed of any such device: {done}")
    return f"copy {done['copy_bytes_per_second'] / 1e12:.2f} TB/s read and written; product {done['product_flops_per_second'] / 1e12:.0f} TFLOP/s (bf16)"


def carry_out(w, rows):
    items = [("device and clocks", lambda n: device(w, n)), ("versions", lambda n: versions(w, n))]
    if not w.o.quick:
        items += [("ceilings", lambda n: ceilings(w, n))]
    rows.carry_out_all(items)
