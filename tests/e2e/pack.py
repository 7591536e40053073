#!/usr/bin/env python3
"""ckc pack: what it reads and refuses, what it writes, and Ctrl-C.

pack.py CKC CKRUN
"""

import os
import random
import signal
import subprocess
import sys
import time

import ck

sys.path.insert(0, ck.TOOLS)
from planfiles import check_pack, peak_of, read_buffers  # noqa: E402

HEAD = "id,lower,upper,size"
# "never" takes no byte at any time, but its end must be within a capacity, as the referee has it.
ROWS = ["a,0,4,64", "b,4,9,64", "c,2,6,128", "zero,0,9,0", "never,5,5,192", "last,8,9,128"]


def write(path, rows, head=HEAD, end="\n"):
    with open(path, "w", newline="") as f:
        f.write(end.join([head, *rows]) + end)
    return path


def pack(bench, source, *flags, out=None, **more):
    return bench.ckc("pack", source, "-o", out or bench.path("out.csv"), *flags, **more)


def good(bench, what, source, rows, height, *flags):
    """Packs to this height; the result has the rows in their order and no overlap."""
    out = bench.path("out.csv")
    if os.path.exists(out):
        os.unlink(out)
    done = pack(bench, source, *flags)
    if not bench.must(done, what):
        return
    with open(out) as f:
        lines = f.read().splitlines()
    bench.check(lines[0] == HEAD + ",offset", f"{what}: first line {lines[0]}")
    bench.check(
        [line.rsplit(",", 1)[0] for line in lines[1:]] == rows,
        f"{what}: rows or their order changed",
    )
    faults, reached, _ = check_pack(
        read_buffers(write(bench.path("plain.csv"), rows), False), read_buffers(out, True)
    )
    bench.check(not faults, f"{what}: {faults[:3]}")
    bench.check(reached == height, f"{what}: height {reached}, not {height}")
    bench.check(f"height {height}," in done.stdout, f"{what}: {done.stdout}")


def bad(bench, what, source, *words, flags=()):
    out = bench.path("none.csv")
    done = pack(bench, source, *flags, out=out)
    bench.check(done.returncode == 1, f"{what}: status {done.returncode}")
    for word in words:
        bench.check(word in done.stderr, f"{what}: '{word}' is not in {done.stderr.strip()}")
    bench.check(not os.path.exists(out), f"{what}: a file was written")


def files(bench):
    p = bench.path("in.csv")
    good(bench, "plain", write(p, ROWS), ROWS, 192)
    good(bench, "CRLF", write(p, ROWS, end="\r\n"), ROWS, 192)
    good(bench, "no rows", write(p, []), [], 0)
    good(bench, "capacity", write(p, ROWS), ROWS, 192, "--capacity", "192")
    good(
        bench,
        "an empty buffer fits nowhere else",
        write(p, ["a,3,3,0"]),
        ["a,3,3,0"],
        0,
        "--capacity",
        "0",
    )
    far = [f"x,{-(2**63)},{2**63 - 1},64", f"y,{-(2**63)},0,64", f"z,0,{2**63 - 1},64"]
    good(bench, "the longest times", write(p, far), far, 128)
    bad(bench, "header", write(p, ROWS, head="id,upper,lower,size"), "first line")
    bad(bench, "more columns", write(p, ROWS, head=HEAD + ",offset"), "first line")
    bad(bench, "a row of more", write(p, ROWS + ["d,1,2,3,4"]), "line 8", "4 columns, found 5")
    bad(bench, "a row of less", write(p, ["d,1,2"]), "line 2", "found 3")
    bad(bench, "twice", write(p, ROWS + ["a,1,2,3"]), "'a' occurs twice")
    bad(bench, "backwards", write(p, ["a,2,1,3"]), "lower <= upper")
    bad(bench, "negative", write(p, ["a,1,2,-3"]), "size >= 0")
    for number in ("1.5", "", " 1", "0x10", "9223372036854775808", "1e3"):
        bad(bench, f"number '{number}'", write(p, [f"a,0,{number},3"]), "64-bit integers")
    bad(bench, "sum", write(p, [f"a,0,1,{2**62}", f"b,0,1,{2**62}"]), "add up")
    bad(
        bench,
        "never alive, but too large",
        write(p, ["a,3,3,64"]),
        "no placement exists",
        flags=["--capacity", "63"],
    )
    bad(
        bench,
        "capacity",
        write(p, ROWS),
        "no placement exists",
        "live bound 192",
        "least height found 192",
        flags=["--capacity", "191"],
    )
    bad(bench, "a folder", bench.work, "regular file")
    bad(bench, "no file", bench.path("absent.csv"), "cannot read")
    with open(p, "wb") as f:
        f.write(HEAD.encode() + b"\na\0,1,2,3\n")
    bad(bench, "binary", p, "text file")


def many(bench):
    """A hundred thousand rows, in whatever order."""
    seed = random.Random(1)
    rows = []
    for i in range(100000):
        lower = seed.randrange(400000)
        rows.append(f"{i},{lower},{lower + 1 + seed.randrange(40)},{64 * seed.randrange(1, 100)}")
    source = write(bench.path("many.csv"), rows)
    done = pack(bench, source, timeout=120)
    bench.must(done, "100,000 rows")


def hard(path):
    """Rows for which the live bound is not reached within the counted work, some seconds."""
    seed = random.Random(3)
    rows = []
    for i in range(800):
        lower = seed.randrange(200)
        rows.append(f"{i},{lower},{lower + 2 + seed.randrange(60)},{seed.randrange(1, 200) ** 2}")
    return write(path, rows)


def interrupt(bench):
    """Ctrl-C ends a long search: status 1 and no file."""
    source, out = hard(bench.path("hard.csv")), bench.path("best.csv")
    bound = peak_of(read_buffers(source, False).values())
    for flags in [], ["--capacity", str(bound)]:
        job = subprocess.Popen(
            [bench.ckc_path, "pack", source, "-o", out, *flags],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        time.sleep(0.7)
        bench.check(job.poll() is None, f"interrupt {flags}: it was over before Ctrl-C")
        job.send_signal(signal.SIGINT)
        began = time.monotonic()
        _, err = job.communicate(timeout=60)
        bench.check(time.monotonic() - began < 20, f"interrupt {flags}: it went on")
        bench.check(
            job.returncode == 1 and "interrupted" in err,
            f"interrupt {flags}: status {job.returncode}, {err}",
        )
        bench.check(not os.path.exists(out), f"interrupt {flags}: a file")
    bench.check(
        not [f for f in os.listdir(bench.work) if "-tmp" in f], "interrupt: something is left"
    )
    # under nohup a hangup is no interruption
    job = subprocess.Popen(
        [bench.ckc_path, "pack", source, "-o", out],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
    )
    time.sleep(0.5)
    job.send_signal(signal.SIGHUP)
    time.sleep(0.2)
    bench.check(job.poll() is None, "interrupt: a hangup that was to be ignored")
    job.send_signal(signal.SIGINT)
    job.communicate(timeout=60)


def main():
    bench = ck.Bench()
    files(bench)
    many(bench)
    interrupt(bench)
    bench.finish()


if __name__ == "__main__":
    main()
