#!/usr/bin/env python3
"""Does a test notice?  Puts one plausible bug after the other into the source and runs the test
that must fail then.

    run.py [--only GLOB]... [--area AREA] [--jobs N] [--table FILE] [--work DIR] [--limit S]
    [--pending] run.py --check BUILD

The bugs stand in mutants.txt beside this file.  The tree is copied, without .git and build folders,
and built, once for each of --jobs; every named test must pass there.  Then each mutant is put in,
what its test needs is built again, the test is run, and the source is put back.  A mutant is
  killed     the test failed (or ran for longer than its time limit)
  survived   the test passed: a test is missing
  stale      its text is no longer found exactly once: the table wants a look
  broken     it does not compile, or the named test does not exist, is skipped or fails without it
  pending    the table says so: its test is still to be written; run with --pending only
Exit status 0 when all others are killed.  --work keeps the copies and their builds in DIR, and a
later run goes on from there; --table keeps what FILE says of mutants that are not run.
--check looks for stale texts and missing tests alone, in this tree and its build folder; nothing is
built.
"""

import argparse
import contextlib
import fnmatch
import json
import os
import queue
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
ABLATIONS = os.path.join(ROOT, "tests", "bench", "ablations.txt")  # same form; test: workloads
TABLE = os.path.join(HERE, "mutants.txt")
SOURCE = (".c", ".h", ".py", ".ck")
WORDS = ("mutant", "area", "what", "test", "pending", "file")
SKIPPED = 77


class Mutant:
    def __init__(self, name, line):
        self.name, self.line = name, line
        self.area = self.what = self.test = self.file = self.pending = ""
        self.old, self.new = [], []


def read_table(path):
    """Mutants of the table; see its head."""
    all_ = []
    with open(path, encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            line = line.rstrip("\n")
            if line[:1] in ("-", "+"):
                (all_[-1].old if line[0] == "-" else all_[-1].new).append(line[1:])
                continue
            if not line or line[0] == "#":
                continue
            word, _, rest = line.partition(" ")
            if word not in WORDS or (word != "mutant" and not all_):
                sys.exit(f"{path}:{number}: expected one of {', '.join(WORDS)}, found '{word}'")
            if word == "mutant":
                all_.append(Mutant(rest.strip(), number))
            else:
                setattr(all_[-1], word, rest.strip())
    for m in all_:
        if not (m.area and m.what and m.test and m.file and m.old) or m.old == m.new:
            sys.exit(f"{path}:{m.line}: '{m.name}' lacks an area, what, test, file or a change")
    names = [m.name for m in all_]
    for name in names:
        if names.count(name) > 1:
            sys.exit(f"{path}: there are two mutants '{name}'")
    return all_


def sources(root):
    """Paths by base name, build folders left out."""
    found = {}
    for folder, dirs, files in os.walk(root):
        dirs[:] = [
            d
            for d in dirs
            if d != ".git" and not os.path.exists(os.path.join(folder, d, "CMakeCache.txt"))
        ]
        for name in files:
            found.setdefault(name, []).append(os.path.join(folder, name))
    return found


def locate(mutant, found):
    """The one file that holds the text; or None and why.  A file that was given another name is
    looked for by its text."""
    old, hits = "\n".join(mutant.old), []
    named = found.get(mutant.file)
    paths = named or [p for name, list_ in found.items() if name.endswith(SOURCE) for p in list_]
    for path in paths:
        with open(path, encoding="utf-8", errors="replace") as f:
            hits += [path] * f.read().count(old)
    if len(hits) == 1:
        return hits[0], None
    where = mutant.file if named else f"any file ('{mutant.file}' is gone)"
    return None, f"its text is found {len(hits)} times in {where}: {mutant.old[0].strip()}"


def read_tests(build):
    """Command, environment, folder and whether it is to fail, of every test by name."""
    done = subprocess.run(
        ["ctest", "--show-only=json-v1"], cwd=build, stdout=subprocess.PIPE, check=True, text=True
    )
    tests = {}
    for t in json.loads(done.stdout)["tests"]:
        props = {p["name"]: p["value"] for p in t.get("properties", [])}
        env = dict(x.split("=", 1) for x in props.get("ENVIRONMENT", []))
        if "command" in t:
            tests[t["name"]] = (
                t["command"],
                env,
                props.get("WORKING_DIRECTORY", build),
                props.get("WILL_FAIL", False),
            )
    return tests


def names_of(text):
    """Words that may be names: no numbers, and nothing in quotes."""
    return set(re.findall(r"(?<![\w.])[A-Za-z_]\w+", re.sub(r'"[^"]*"', "", text)))


def all_names(found):
    names = set()
    for paths in found.values():
        for path in paths:
            if path.endswith((*SOURCE, ".cuh")):
                with open(path, encoding="utf-8", errors="replace") as f:
                    names |= names_of(f.read())
    return names


def check(build):
    """Every text is there once, what takes its place names what there is, every test exists."""
    found, tests, bad = sources(ROOT), read_tests(build), 0
    names = all_names(found)
    for m in read_table(TABLE) + read_table(ABLATIONS):
        why = locate(m, found)[1]
        lost = names_of("\n".join(m.new)) - names
        why = why or (f"nothing is named {sorted(lost)}" if lost else None)
        if why:
            bad += 1
            print(f"{m.name}: stale: {why}")
    for m in read_table(TABLE):
        if not m.pending and m.test.split()[0] not in tests:
            bad += 1
            print(f"{m.name}: there is no test '{m.test.split()[0]}'")
    print(
        f"{bad} of the table's entries want a look"
        if bad
        else "all texts found once, all names and tests exist"
    )
    return bad > 0


class Copy:
    """The tree's copy and its build, of some targets or all."""

    def __init__(self, root, limit, targets=(), options=()):
        self.root, self.limit = root, limit
        self.build = os.path.join(root, "build")
        self.take()
        self.call(["cmake", "-S", root, "-B", self.build, "-G", "Ninja", *launcher(), *options])
        self.call(
            ["cmake", "--build", self.build, "-j", "1"]
            + [x for t in targets for x in ("--target", t)]
        )
        self.found, self.tests = sources(root), read_tests(self.build)
        # a mutant that does not link takes a program away
        self.programs = {
            x
            for argv, *_ in self.tests.values()
            for x in argv
            if x.startswith(self.build + "/") and os.path.isfile(x)
        }

    def take(self):
        """Files that differ are copied, so that a build of before stays good; those that are gone
        here go there."""
        here = {os.path.relpath(p, ROOT) for list_ in sources(ROOT).values() for p in list_}
        there = {
            os.path.relpath(p, self.root) for list_ in sources(self.root).values() for p in list_
        }
        for name in there - here:
            os.remove(os.path.join(self.root, name))
        for name in sorted(here):
            from_, to = os.path.join(ROOT, name), os.path.join(self.root, name)
            with open(from_, "rb") as f:
                data = f.read()
            if os.path.exists(to):
                with open(to, "rb") as f:
                    if f.read() == data:
                        continue
            os.makedirs(os.path.dirname(to), exist_ok=True)
            with open(to, "wb") as f:
                f.write(data)
            os.chmod(to, os.stat(from_).st_mode & 0o777)

    def call(self, argv):
        done = subprocess.run(
            argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
        )
        if done.returncode:
            raise RuntimeError(f"{' '.join(argv)}:\n{done.stdout[-4000:]}")

    def command(self, test):
        """What runs a test, with the arguments that the table adds; None: there is no such test."""
        name, *more = shlex.split(test)
        if name not in self.tests:
            return None
        argv, env, folder, fails = self.tests[name]
        return argv + [x.replace("{here}", HERE) for x in more], env, folder, fails

    def rebuild(self, test):
        """The programs of the build that the test is given, and the library of the Python package,
        which scripts find by themselves.  None, or what the compiler said."""
        inside = [
            os.path.relpath(x, self.build) for x in self.command(test)[0] if x in self.programs
        ]
        if os.path.exists(os.path.join(self.build, "libckr.so")):
            inside.append("libckr.so")
        done = subprocess.run(
            ["ninja", "-j", "1"] + inside,
            cwd=self.build,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        return done.stdout if done.returncode else None

    def env(self):
        """Threads that wait let others run: there may be fewer processors than threads.  Generated
        code, the same with most mutants, is compiled once, as with ctest."""
        cache = os.path.join(self.build, "tests", "ccache")
        return {
            "OMP_WAIT_POLICY": os.environ.get("OMP_WAIT_POLICY", "passive"),
            "PATH": cache + os.pathsep + os.environ["PATH"],
            "CCACHE_DIR": os.path.join(self.build, "ccache"),
            "CCACHE_NOHASHDIR": "1",
            "CKC_CACHE": os.path.join(self.build, "objects"),
        }

    def run(self, test):
        """Exit status, None for too long; what it said last.  It ends with its first failure."""
        argv, env, folder, fails = self.command(test)
        with tempfile.TemporaryDirectory(prefix="ckc-mutant-", ignore_cleanup_errors=True) as tmp:
            process = subprocess.Popen(
                argv,
                cwd=folder,
                env={**os.environ, **self.env(), "TMPDIR": tmp, **env},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                start_new_session=True,
            )
            late = threading.Event()
            timer = threading.Timer(self.limit, lambda: (late.set(), end(process)))
            timer.start()
            said = []
            for line in process.stdout:
                said.append(line)
                if line.startswith("FAIL ") and not fails:
                    end(process)
                    break
            process.stdout.close()
            status = process.wait()
            timer.cancel()
        if late.is_set():
            return None, ""
        return (int(status == 0) if fails else status), "".join(said)


def end(process):
    """The process, and what it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def launcher():
    """A compiler cache, if this tree is built with one."""
    name = os.environ.get("CMAKE_C_COMPILER_LAUNCHER")
    return [f"-DCMAKE_C_COMPILER_LAUNCHER={name}"] if name else []


def try_one(copy, mutant, passes):
    """State and a word on it."""
    path, why = locate(mutant, copy.found)
    if not path:
        return "stale", why
    if copy.command(mutant.test) is None:
        return "broken", f"there is no test '{mutant.test.split()[0]}'"
    if mutant.test not in passes:
        why = copy.rebuild(mutant.test)
        passes[mutant.test] = copy.run(mutant.test) if why is None else (-1, why)
    status, said = passes[mutant.test]
    if status != 0:
        return (
            "broken",
            "its test is skipped here"
            if status == SKIPPED
            else f"its test fails without it: {said[-300:]}",
        )
    with open(path, encoding="utf-8", newline="") as f:
        text = f.read()
    try:
        write(path, text.replace("\n".join(mutant.old), "\n".join(mutant.new)))
        why = copy.rebuild(mutant.test)
        if why is not None:
            return "broken", f"it does not compile: {why[-800:]}"
        status, said = copy.run(mutant.test)
    finally:
        write(path, text)
    if status == 0:
        return "survived", ""
    return (
        ("broken", "its test is skipped with it")
        if status == SKIPPED
        else ("killed", first_complaint(said))
    )


def side_by_side(work, jobs, folder=None):
    """work(root) in a thread for each copy of the tree; they stay if there is a folder for them."""
    with tempfile.TemporaryDirectory(prefix="ckc-mutants-") as scratch:
        base = os.path.abspath(folder or scratch)
        threads = [
            threading.Thread(target=work, args=(os.path.join(base, str(i)),)) for i in range(jobs)
        ]
        for t in threads:
            t.start()
        for t in threads:
            t.join()


def write(path, text):
    with open(path, "w", encoding="utf-8", newline="") as f:
        f.write(text)
    now = time.time() + 1  # later than what was built of the text before
    os.utime(path, (now, now))


def first_complaint(said):
    for line in said.splitlines():
        if re.search(r"fail|error|expected|differ|wrong|bad|FAULT|replay:|!=", line, re.I):
            return line.strip()[:150]
    return said.strip().splitlines()[-1][:150] if said.strip() else ""


def by_test(list_, before):
    """Lists of those that one test is for, so that it runs without a mutant once; the longest
    first."""
    groups = {}
    for m in list_:
        groups.setdefault(m.test, []).append(m)
    return sorted(groups.values(), key=lambda g: -sum(before.get(m.name, (0, 0))[1] for m in g))


def kept_rows(path):
    """State and seconds by name, as a table of before has them."""
    rows = {}
    if path and os.path.exists(path):
        with open(path, encoding="utf-8") as f:
            for line in f:
                cell = [x.strip() for x in line.strip().strip("|").split("|")]
                if len(cell) == 6 and cell[5].isdigit():
                    rows[cell[0]] = cell[4], int(cell[5])
    return rows


def table_text(all_, results):
    """A row for each mutant that was ever run."""
    states = [results[m.name][0] for m in all_ if m.name in results]
    head = ", ".join(f"{states.count(state)} {state}" for state in sorted(set(states)))
    text = [
        f"# Mutants: {head}",
        "",
        f"Written by `tests/mutants/run.py --table` on {time.strftime('%Y-%m-%d')}.  Seconds are those of building and testing one mutant, on two cores that",
        "others worked on too.",
        "",
        "| mutant | area | what it breaks | test | result | s |",
        "|---|---|---|---|---|---:|",
    ]
    for m in all_:
        if m.name in results:
            state, sec = results[m.name]
            text.append(
                f"| {m.name} | {m.area} | {m.what} | {m.test.replace('{here}/', '')} | {state} | {sec:.0f} |"
            )
    return "\n".join(text) + "\n"


def main():
    ap = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    ap.add_argument("--only", action="append", metavar="GLOB", help="mutants of these names")
    ap.add_argument("--area", help="mutants of this area")
    ap.add_argument("--jobs", type=int, default=1, help="copies of the tree (1)")
    ap.add_argument("--table", metavar="FILE", help="write the result here, in Markdown")
    ap.add_argument("--work", metavar="DIR", help="keep the copies and their builds here")
    ap.add_argument("--limit", type=int, default=600, metavar="S", help="seconds for a test (600)")
    ap.add_argument("--pending", action="store_true", help="those that are pending too")
    ap.add_argument("--check", metavar="BUILD", help="only look for stale texts and missing tests")
    a = ap.parse_args()
    if a.check:
        return check(a.check)
    all_ = read_table(TABLE)
    list_ = [
        m
        for m in all_
        if (not a.only or any(fnmatch.fnmatch(m.name, g) for g in a.only))
        and a.area in (None, m.area)
    ]
    if not list_:
        sys.exit("no mutant has such a name or area")
    results, lock, todo = {}, threading.Lock(), queue.Queue()
    for group in by_test(list_, kept_rows(a.table)):
        todo.put(group)

    def finish(m, state, why, sec):
        results[m.name] = state, sec
        print(f"{state:9} {m.name:28} {m.test:32} {sec:5.0f} s  {why}", flush=True)
        if a.table:
            text = table_text(all_, {**kept_rows(a.table), **results})
            with open(a.table, "w", encoding="utf-8") as f:
                f.write(text)

    def work(root):
        copy, passes = Copy(root, a.limit), {}
        while True:
            try:
                group = todo.get_nowait()
            except queue.Empty:
                return
            for m in group:
                begin = time.time()
                if m.pending and not a.pending:
                    state, why = "pending", m.pending
                else:
                    state, why = try_one(copy, m, passes)
                with lock:
                    finish(m, state, why, time.time() - begin)

    side_by_side(work, a.jobs, a.work)
    bad = [name for name, (state, _) in results.items() if state not in ("killed", "pending")]
    killed = sum(state == "killed" for state, _ in results.values())
    print(f"{len(results)} mutants, {killed} killed" + (f"; not: {', '.join(bad)}" if bad else ""))
    return len(bad) > 0 or len(results) < len(list_)


if __name__ == "__main__":
    sys.exit(main())
