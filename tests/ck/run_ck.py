#!/usr/bin/env python3
"""Run .ck files: text in, text out.

A test is a graph in text form; comments at the start of a line say what to do
with it.  `ckc FILE ARGS` runs in an empty folder.

  # run: ARGS          one run each; all must meet what is expected
                       {here}: the test's folder
  # expect:            the comment lines that follow are the whole output
  # check: TEXT        some later line of the output contains TEXT
  # check-not: TEXT    no line before the next check's does
  # check-count: N TEXT  N lines of the output contain TEXT
  # stderr: TEXT       standard error contains TEXT
  # error: TEXT        as stderr, and the exit status is 1
  # usage: TEXT        as stderr, and the exit status is 2
  # skip: WHY          not run

Runs of blanks compare equal in check lines.  Output that is a graph is read
back and printed again; it must stay the same.  Exit status 77 if nothing ran.
"""

import argparse
import os
import re
import shlex
import subprocess
import sys
import tempfile

WORDS = ("run", "expect", "check", "check-not", "check-count", "stderr", "error", "usage", "skip")
LINE = re.compile(r"#\s*(%s):\s?(.*)$" % "|".join(WORDS))


class Test:
    def __init__(self, path):
        self.path = path
        self.runs, self.checks, self.stderr = [], [], []
        self.expect = self.skip = None
        self.status = 0
        with open(path, encoding="utf-8") as f:
            self.lines = f.read().split("\n")
        at = 0
        while at < len(self.lines):
            m = LINE.match(self.lines[at])
            at += 1
            if not m:
                continue
            word, rest = m.group(1), m.group(2).strip()
            if word == "expect":
                self.first = at
                while (
                    at < len(self.lines)
                    and self.lines[at].startswith("#")
                    and not LINE.match(self.lines[at])
                ):
                    at += 1
                self.last = at
                self.expect = [strip(s) for s in self.lines[self.first : at]]
            else:
                self.add(word, rest)

    def add(self, word, rest):
        if word == "run":
            self.runs.append(rest)
        elif word == "skip":
            self.skip = rest
        elif word in ("stderr", "error", "usage"):
            self.stderr.append(rest)
            self.status = {"error": 1, "usage": 2}.get(word, self.status)
        else:
            self.checks.append((word, rest))

    def is_empty(self):
        return self.expect is None and not self.checks and not self.stderr

    def bless(self, output):
        text = ["# " + s if s else "#" for s in output]
        if self.expect is None:
            while self.lines and not self.lines[-1]:
                self.lines.pop()
            self.lines += ["# expect:"] + text + [""]
        else:
            self.lines[self.first : self.last] = text
        self.expect = output
        with open(self.path, "w", encoding="utf-8") as f:
            f.write("\n".join(self.lines))


def strip(comment):
    """The text of a comment line."""
    text = comment[1:]
    return (text[1:] if text.startswith(" ") else text).rstrip()


def squeeze(text):
    return " ".join(text.split())


def run(ckc, path, args):
    """Exit status, standard output, standard error."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            r = subprocess.run(
                [ckc, path] + args,
                cwd=folder,
                timeout=60,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
        except subprocess.TimeoutExpired:
            return "timeout", "", ""
    return (r.returncode, r.stdout.decode("utf-8", "replace"), r.stderr.decode("utf-8", "replace"))


def check_lines(checks, output):
    """The first unmet check, or None."""
    lines = [squeeze(s) for s in output]
    at, forbidden = 0, []

    def seen(first, last):
        for text in forbidden:
            for s in lines[first:last]:
                if squeeze(text) in s:
                    return "check-not: %s\n    found: %s" % (text, s)
        return None

    for word, text in checks:
        if word == "check-not":
            forbidden.append(text)
        elif word == "check-count":
            want, _, what = text.partition(" ")
            count = sum(squeeze(what) in s for s in lines)
            if count != int(want):
                return "check-count: %s: found %d" % (text, count)
        else:
            hit = next((i for i in range(at, len(lines)) if squeeze(text) in lines[i]), None)
            if hit is None:
                return "check: %s: not found from line %d on" % (text, at + 1)
            fault = seen(at, hit)
            if fault:
                return fault
            at, forbidden = hit + 1, []
    return seen(at, len(lines))


def differ(want, found):
    for i in range(max(len(want), len(found))):
        a = want[i] if i < len(want) else "(end)"
        b = found[i] if i < len(found) else "(end)"
        if a != b:
            return "line %d\n    expected: %s\n    found:    %s" % (i + 1, a.strip(), b.strip())
    return None


def reread(ckc, text):
    """What is wrong with the output as input, or None."""
    with tempfile.NamedTemporaryFile("w", suffix=".ck", delete=False, encoding="utf-8") as f:
        f.write(text)
    try:
        status, out, err = run(ckc, f.name, ["--passes=none"])
    finally:
        os.unlink(f.name)
    if status != 0:
        return "output does not read back: %s" % err.strip()
    fault = differ(text.split("\n"), out.split("\n"))
    return fault and "output reads back differently: " + fault


def judge(test, ckc, args, bless):
    """What is wrong with one run of a test, or None."""
    here = os.path.dirname(os.path.abspath(test.path))
    words = [w.replace("{here}", here) for w in shlex.split(args)]
    status, out, err = run(ckc, os.path.abspath(test.path), words)
    err = err.replace(here + "/", "")
    if status != test.status:
        return "exit status %s, expected %d\n    %s" % (
            status,
            test.status,
            err.strip().replace("\n", "\n    "),
        )
    for text in test.stderr:
        if squeeze(text) not in squeeze(err):
            return "standard error lacks: %s\n    found: %s" % (
                text,
                err.strip().replace("\n", "\n    "),
            )
    if "left an invalid graph" in err and not any("invalid graph" in s for s in test.stderr):
        return "a fault of the graph's is called a pass's: %s" % err.strip()
    lines = [s.rstrip() for s in out.rstrip("\n").split("\n")]
    if bless and (test.is_empty() or test.expect is not None) and test.expect != lines:
        test.bless(lines)
    elif test.expect is not None and test.expect != lines:
        return differ(test.expect, lines)
    fault = check_lines(test.checks, lines)
    if not fault and out.startswith("graph @") and "\ngraph @" not in out:
        fault = reread(ckc, out)
    return fault


def find(paths):
    for path in paths:
        if os.path.isfile(path):
            yield path
        for folder, folders, files in os.walk(path):
            folders.sort()
            for name in sorted(files):
                if name.endswith(".ck"):
                    yield os.path.join(folder, name)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--ckc", required=True, help="the compiler")
    parser.add_argument(
        "--bless",
        action="store_true",
        help="write expect blocks where they differ or where a test expects nothing",
    )
    parser.add_argument("paths", nargs="+", help="files or folders")
    args = parser.parse_args()
    ckc = os.path.abspath(args.ckc)
    passed = failed = skipped = 0
    for path in find(args.paths):
        test = Test(path)
        fault = None
        if test.skip is not None:
            skipped += 1
            continue
        if not test.runs:
            fault = "no # run: line"
        elif test.is_empty() and not args.bless:
            fault = "nothing is expected"
        for line in test.runs:
            fault = fault or judge(test, ckc, line, args.bless)
        if fault:
            failed += 1
            print("%s: %s" % (path, fault))
        else:
            passed += 1
    print("%d passed, %d failed%s" % (passed, failed, ", %d skipped" % skipped if skipped else ""))
    if failed:
        return 1
    return 0 if passed else 77


if __name__ == "__main__":
    sys.exit(main())
