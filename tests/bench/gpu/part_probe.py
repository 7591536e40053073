"""Whether anything works: driver, GPU, libraries as ckc doctor lists them, one training step."""

import re

import part_device
import part_losses
from models import cases
from work import Skipped, Wrong, ck

# How doctor says that something is missing.
MISSING = re.compile(r"not found|^no driver|none found|cannot be initialized")


# Seconds that doctor and the step may take where files of libraries are read for the first time.
PATIENCE = 25


def doctor(w, lines):
    """Add {title: lines} of ckc doctor."""
    for line in w.call(w.tool("ckc"), "doctor", timeout=PATIENCE).stdout.splitlines():
        lines.setdefault(line[:10].strip(), []).append(line[11:])
    return "; ".join(lines.get("ckrun", ["says nothing of ckrun"]))


def line_of(lines, title, needed):
    """What doctor says of a title."""
    text = "; ".join(lines.get(title, ["no driver"]))
    if needed and MISSING.search(text):
        raise Wrong("; ".join([text, *(f"searched {x}" for x in lines.get("searched", []))]))
    return text


def toolkit(w, lines):
    """Libraries need a driver that is as new as the toolkit that compiled them."""
    found = re.search(r"for CUDA (\d+)\.(\d+)", " ".join(lines.get("driver", [])))
    made = w.bundled()["toolkit"]
    if not found:
        raise Wrong("no driver")
    driver = [int(x) for x in found.groups()]
    text = "libraries by CUDA {}.{}, the driver is for {}.{}".format(*made, *driver)
    if driver < made:
        raise Wrong(text + ": too old")
    return text


def device(w, numbers):
    """A machine without nvidia-smi may train all the same."""
    try:
        return part_device.device(w, numbers)
    except Wrong as e:
        raise Skipped(str(e)) from None


def one_step(w, case, numbers):
    """A step, kernel by kernel."""
    so = part_losses.library(w, case)
    log = so + ".log"
    w.must(
        w.tool("ckrun"),
        so,
        *case.feed,
        "--steps",
        1,
        "--log",
        log,
        timeout=PATIENCE,
        CKR_LOG="1",
        CKR_GRAPHS="0",
    )
    numbers["losses"] = ck.losses(log)
    return part_losses.compare(numbers["losses"], part_losses.expected(w, case), case.limit)


def carry_out(w, rows):
    lines = {}
    items = [("ckc doctor", lambda n: doctor(w, lines))]
    items += [
        (title, lambda n, t=title, needed=needed: line_of(lines, t, needed))
        for title, needed in (
            ("driver", True),
            ("GPU", True),
            ("cuBLASLt", True),
            ("cuDNN", False),
            ("NCCL", False),
        )
    ]
    if w.o.bundle:
        items.append(("toolkit", lambda n: toolkit(w, lines)))
    items += [
        ("device and clocks", lambda n: device(w, n)),
        ("one step", lambda n: one_step(w, cases(w)[0], n)),
    ]
    rows.carry_out_all(items)
