#!/usr/bin/env python3
"""Generated code as units that are compiled side by side: what of it is the same from budget to
budget, what the compiler is told, how a compile ends.

    compile_units.py CKC CKRUN
"""

import os
import re
import signal
import subprocess
import time
from concurrent import futures

import ck

MODEL = os.path.join(ck.MODELS, "gpt2-ts14.onnx")
# The first argument behind -o is what is made: attention.c.o.
MAKES = 'for word; do [ "$last" = -o ] && makes=$word; last=$word; done\n'


def compiler(bench, name, text):
    path = bench.path(name)
    with open(path, "w") as f:
        f.write("#!/bin/sh\n" + MAKES + text)
    os.chmod(path, 0o755)
    return path


def folder(bench, name):
    path = bench.path(name)
    os.mkdir(path)
    return path


def gone(pids):
    """Whether none of these processes is left, zombies aside."""

    def runs(pid):
        try:
            with open(f"/proc/{pid}/stat") as f:
                return f.read().rpartition(")")[2].split()[0] != "Z"
        except OSError:
            return False

    end = time.monotonic() + 5
    while any(map(runs, pids)) and time.monotonic() < end:
        time.sleep(0.05)
    return not any(map(runs, pids))


def sources(bench, name, *flags):
    src = bench.path(name)
    bench.must(bench.ckc(MODEL, "-o", bench.path("m.so"), "--emit-c", src, *flags), name)
    return {f: ck.content(os.path.join(src, f)) for f in os.listdir(src)}


def same_text(bench):
    """Of two budgets that want the same kernels, all but the tables is the same text, wherever in
    the plan they stand."""
    a, b = (
        sources(bench, f"src{i}", "--memory-budget", budget)
        for i, budget in enumerate(("98%", "90%"))
    )
    bench.check(
        {f for f in a if a[f] != b.get(f)} == {"model.c"} and set(a) == set(b),
        f"another budget: {sorted(f for f in {**a, **b} if a.get(f) != b.get(f))} differ",
    )
    bench.check(b"bytes arena" not in a["kernels.c"], "the kernels' file tells of the plan")
    names = re.findall(rb"^(\w+)\(void \*const", a["kernels.c"], re.M)
    bench.check(
        len(names) > 20 and names == sorted(names), f"the kernels' order is the plan's: {names[:5]}"
    )
    every = sources(bench, "src2")
    bench.check(
        all(every[f] == a[f] for f in every if f not in ("model.c", "kernels.c", "onnx.bin")),
        "units differ without a budget",
    )
    for f, text in every.items():
        for name in re.findall(rb'^#include "(.*)"', text, re.M):
            bench.check(name.decode() in every, f"{f} includes {name}, which is not there")


def commands(bench):
    """What is compiled apart, each unit once; no argument names a place, so that a cache knows it
    elsewhere."""
    log = bench.path("calls")
    cc = compiler(bench, "telling", f'echo "$@" >>"{log}"\nexec cc "$@"\n')
    src = bench.path("told")
    bench.must(
        bench.ckc(MODEL, "-o", bench.path("m.so"), "--cc", cc, "--emit-c", src),
        "a compiler that tells",
    )
    calls = [line.split() for line in ck.content(log).decode().splitlines()]
    units = sorted(f for f in os.listdir(src) if f.endswith(".c") and f != "model.c")
    made = sorted(x for words in calls if "-c" in words for x in words if x.endswith(".c"))
    bench.check(len(units) > 5 and made == units, f"compiled {made}, of {units}")
    linked = calls[-1]
    bench.check(
        sum("-shared" in words for words in calls) == 1 and "-shared" in linked, f"linked: {linked}"
    )
    bench.check(
        sorted(x for x in linked if x.endswith((".o", ".c")))
        == sorted(["model.c"] + [f + ".o" for f in units]),
        f"linked: {linked}",
    )
    bench.check(
        not any("/" in x for words in calls for x in words),
        f"a place is named: {[x for words in calls for x in words if '/' in x]}",
    )


def one_fails(bench):
    """Of several compilers one fails: one message, with what it said, and the others are ended."""
    tmp, pids = folder(bench, "tmp-fails"), folder(bench, "pids-fails")
    cc = compiler(
        bench,
        "failing",
        f"""if mkdir "{pids}/first" 2>&-; then
	sleep 60 & echo $! >"{pids}/sleep"; echo $$ >"{pids}/self"
	wait
fi
sleep 0.5; echo 'no such luck'; exit 1
""",
    )
    if len(os.sched_getaffinity(0)) == 1:
        print("one processor: no two compilers at a time")
        return
    began = time.monotonic()
    done = bench.ckc(MODEL, "-o", bench.path("f.so"), "--cc", cc, env={"TMPDIR": tmp}, timeout=30)
    bench.check(
        done.returncode == 1 and time.monotonic() - began < 20,
        f"one fails: status {done.returncode} after {time.monotonic() - began:.1f} s",
    )
    bench.check(
        done.stderr.count("failed (status 1)") == 1
        and done.stderr.count("no such luck") == 1
        and "interrupted" not in done.stderr,
        f"one fails: {done.stderr}",
    )
    bench.check(
        gone([ck.content(os.path.join(pids, f)).decode().strip() for f in ("sleep", "self")]),
        "one fails: the others go on",
    )
    bench.check(
        not os.listdir(tmp) and not os.path.exists(bench.path("f.so")),
        f"one fails: left {os.listdir(tmp)}",
    )


def interrupted(bench):
    """Ctrl-C in the midst of several compilers ends all of them, with what they have started."""
    tmp, pids = folder(bench, "tmp-stop"), folder(bench, "pids-stop")
    cc = compiler(
        bench,
        "endless",
        f'sleep 60 & echo $! >"{pids}/$makes.sleep"\necho $$ >"{pids}/$makes"\nwait\n',
    )
    job = subprocess.Popen(
        [bench.ckc_path, MODEL, "-o", bench.path("i.so"), "--cc", cc],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": tmp},
        cwd=bench.work,
    )
    most, end = 2 * len(os.sched_getaffinity(0)), time.monotonic() + 20
    while len(os.listdir(pids)) < min(most, 8) and time.monotonic() < end:
        time.sleep(0.05)
    time.sleep(0.2)
    bench.check(len(os.listdir(pids)) <= most, f"{len(os.listdir(pids)) // 2} compilers at a time")
    bench.check(job.poll() is None, "interrupt: it was over before Ctrl-C")
    began = time.monotonic()
    job.send_signal(signal.SIGINT)
    err = job.communicate(timeout=30)[1]
    bench.check(
        job.returncode == 1 and err.count("\n") == 1 and "interrupted" in err,
        f"interrupt: status {job.returncode}, {err}",
    )
    bench.check(time.monotonic() - began < 5, "interrupt: it went on")
    started = [ck.content(os.path.join(pids, f)).decode().strip() for f in os.listdir(pids)]
    bench.check(len(started) >= 2 and gone(started), f"interrupt: of {started} some go on")
    bench.check(
        not os.listdir(tmp) and not os.path.exists(bench.path("i.so")),
        f"interrupt: left {os.listdir(tmp)}",
    )


def cached(bench):
    """Objects are compiled once: for all budgets, but not for other arguments, compilers or texts.
    What is wrong with the cache costs time alone."""
    cache, so = folder(bench, "cache"), bench.path("c.so")

    def objects():
        return {f: ck.content(os.path.join(cache, f)) for f in os.listdir(cache)}

    def compiled(*flags, at=cache):
        bench.must(bench.ckc(MODEL, "-o", so, *flags, env={"CKC_CACHE": at}), f"{at}, {flags}")
        return ck.content(so)

    plain = compiled(at="off")
    bench.check(not objects() and not os.path.exists(bench.path("off")), "off: objects are kept")
    with futures.ThreadPoolExecutor(4) as pool:
        names = [bench.path(f"c{i}.so") for i in range(4)]
        run = lambda name: bench.ckc(MODEL, "-o", name, env={"CKC_CACHE": cache})
        done = list(pool.map(run, names))
    bench.check(
        not any(x.returncode for x in done) and all(ck.content(x) == plain for x in names),
        "four at a time",
    )
    first = objects()
    bench.check(len(first) > 5 and all(f.endswith(".o") for f in first), f"kept: {list(first)}")
    bench.check(compiled() == plain and objects() == first, "again: another library, or objects")
    compiled("--memory-budget", "97%")
    budget = objects()
    bench.check(len(budget) <= len(first) + 1, f"another budget: {len(budget) - len(first)} more")
    for flags in (["--cc", "gcc"], ["--march", "x86-64-v3"]):
        before = len(objects())
        compiled(*flags)
        more = len(objects()) - before
        bench.check(more == len(first), f"{flags}: {more} of {len(first)} objects are new")
    script = compiler(bench, "script", 'exec cc "$@"\n')
    before = objects()
    compiled("--cc", script)
    bench.check(objects() == before, "objects of a script are kept")
    for i, (f, data) in enumerate(first.items()):
        with open(os.path.join(cache, f), "wb") as out:
            flipped = bytearray(data)
            flipped[len(data) // 2] ^= 1
            out.write((data[: len(data) // 2], b"", flipped)[i % 3])
    bench.check(compiled() == plain, "damaged objects are used")
    bench.check({f: objects()[f] for f in first} == first, "damaged objects stay")
    for f in first:
        os.remove(os.path.join(cache, f))
    old = os.path.join(cache, "old.o")
    with open(old, "wb") as out:
        out.truncate(300 << 20)
    os.utime(old, (0, 0))
    compiled()
    bench.check(not os.path.exists(old) and set(first) <= set(objects()), "what is old stays")
    os.chmod(cache, 0o777)
    for f in first:
        os.remove(os.path.join(cache, f))
    bench.check(
        compiled() == plain and not set(first) & set(objects()), "a folder of others is used"
    )
    bench.check(compiled(at=so) == plain, "a file in place of the folder")


def main():
    bench = ck.Bench()
    same_text(bench)
    commands(bench)
    one_fails(bench)
    interrupted(bench)
    cached(bench)
    bench.finish()


if __name__ == "__main__":
    main()
