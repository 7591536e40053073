#!/usr/bin/env python3
"""Builds, checks and times on a machine with a GPU: one table and a JSON file.

    sh tests/bench/gpu/run [--only device,build,check,time] [--out DIR] [--build DIR] [--emulated
    [--quick]] [--allow-skip]
    sh tests/bench/gpu/run --bundle FILE [--only probe,losses,time,memory] [--out DIR] ...

Each part is a process of its own with a deadline; all of them together end within nine minutes.
DIR/table.md, which grows as items end, and DIR/result.json hold what was found.  --bundle takes
what bundle.py made on a machine with a compiler.  If the probe fails, nothing else is begun.  Exit
status 0 if every check passed, 1 if one failed, was skipped or cut (--allow-skip: only if one
failed), 2 for wrong usage.  Python's standard library is needed, from sources numpy, too.
"""

import argparse
import atexit
import importlib
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time

import table
import work

# Parts from sources, and of a bundle: at most 540 seconds together.  What a part leaves, the next
# ones have.
SOURCES = "device", "build", "check", "time"
BUNDLED = "probe", "losses", "time", "memory"
DEADLINES = {
    "device": 30,
    "build": 130,
    "check": 120,
    "time": 250,
    "probe": 60,
    "losses": 110,
    "memory": 120,
}


def add_compiler_options(p):
    p.add_argument("--nvcc", help="NVIDIA's compiler (else $NVCC, nvcc, /usr/local/cuda/bin/nvcc)")
    p.add_argument("--arch", default="sm_90")


def find_nvcc():
    return os.environ.get("NVCC") or shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"


def options():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument(
        "--only",
        help=f"parts, with commas ({','.join(SOURCES)}; with --bundle {','.join(BUNDLED)})",
    )
    p.add_argument(
        "--bundle",
        help="what bundle.py made: programs and compiled models, instead of sources",
    )
    p.add_argument(
        "--work", help="folder for models (OUT/work; with --bundle, one that is removed)"
    )
    p.add_argument(
        "--out",
        default="gpu-bench",
        help="folder for results and everything in between (%(default)s)",
    )
    p.add_argument(
        "--build",
        help="a folder with ckc, ckrun, gpt and ref_model, built elsewhere (else: OUT/build, from these sources)",
    )
    add_compiler_options(p)
    p.add_argument(
        "--python",
        default=sys.executable,
        help="interpreter that has torch, for the peer (%(default)s)",
    )
    p.add_argument(
        "--peer-stand-in",
        action="store_true",
        help="a script in the place of PyTorch's side; told in the table",
    )
    p.add_argument(
        "--emulated",
        action="store_true",
        help="no GPU: stand-ins of tests/cuda and of this folder in its place",
    )
    p.add_argument("--quick", action="store_true", help="the smallest models alone")
    p.add_argument(
        "--allow-skip", action="store_true", help="status 0 although something was skipped or cut"
    )
    p.add_argument(
        "--deadline",
        type=float,
        default=1,
        help="factor on the deadlines of parts, 1 for nine minutes",
    )
    p.add_argument("--part", help=argparse.SUPPRESS)
    o = p.parse_args()
    o.parts = (o.only or ",".join(BUNDLED if o.bundle else SOURCES)).split(",")
    for part in o.parts:
        if part not in DEADLINES:
            p.error(f"--only {part}: expected one or more of {','.join(DEADLINES)}")
    o.out = os.path.abspath(o.out)
    o.own_build = o.build is None
    o.nvcc = o.nvcc or find_nvcc()
    return o


def set_folders(o):
    """Folders of models and programs; a bundle is unpacked."""
    if o.bundle and not o.work:
        o.work = tempfile.mkdtemp(prefix="ckc-gpu-")
        with tarfile.open(o.bundle) as tar:
            tar.extractall(o.work)
        atexit.register(shutil.rmtree, o.work, ignore_errors=True)
    o.work = os.path.abspath(o.work or os.path.join(o.out, "work"))
    o.build = o.work if o.bundle else os.path.abspath(o.build or os.path.join(o.out, "build"))


def environment(o):
    """Stand-ins before what they stand in for."""
    if o.emulated:
        places = os.path.join(o.build, "gpu"), os.environ.get("LD_LIBRARY_PATH", "")
        os.environ["LD_LIBRARY_PATH"] = ":".join(x for x in places if x)
        os.environ["PATH"] = work.STAND_INS + ":" + os.environ["PATH"]
    for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
        os.environ.pop(name, None)


def end_group(child):
    """The part's process and all that it has started."""
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    child.wait()


def run_part(part, argv, seconds):
    """Carries a part out in a process group of its own; the reason why it did not end by itself, or
    None."""
    child = subprocess.Popen(
        [sys.executable, os.path.abspath(__file__), *argv, "--part", part], start_new_session=True
    )
    try:
        status = child.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        return f"cut after {seconds:.0f} s"
    finally:
        end_group(child)
    return None if status == 0 else f"the part ended with status {status}"


def rows_path(o, part):
    return os.path.join(o.out, f"{part}.rows")


def main():
    o = options()
    set_folders(o)
    if o.part:
        environment(o)
        importlib.import_module("part_" + o.part).carry_out(
            work.Work(o), work.Rows(rows_path(o, o.part), table.path(o), o.part)
        )
        return 0
    os.makedirs(o.out, exist_ok=True)
    if "build" in o.parts:  # what other sources made
        shutil.rmtree(o.work, ignore_errors=True)
    table.begin(o)
    rows, start, late = [], time.monotonic(), time.monotonic()
    for part in o.parts:
        if any(x["part"] == "probe" and x["verdict"] == "fail" for x in rows):
            rows.append(table.row(part, "the part", "cut", "the probe failed"))
            continue
        late += DEADLINES[part] * o.deadline
        if os.path.exists(rows_path(o, part)):
            os.unlink(rows_path(o, part))
        ended = run_part(part, [*sys.argv[1:], "--work", o.work], late - time.monotonic())
        rows += table.read(rows_path(o, part), part, ended)
    return table.write(o, rows, time.monotonic() - start)


if __name__ == "__main__":
    sys.exit(main())
