#!/usr/bin/env python3
"""How long the tests take: runs all of them and writes the table of tests/README.md.

    times.py BUILD [--jobs N] [--write FILE]

Every test runs once, N at a time, as `sh tests/run.sh` does it.  The table has the seconds of each
test, wall time on a machine that does nothing else, slowest first; FILE gets it between its two
marks.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as xml

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BEGIN, END = "<!-- times -->\n", "<!-- end of times -->\n"


def processor():
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        names = re.findall(r"^model name\s*: (.*)$", f.read(), re.M)
    return f"{len(names)} cores of {names[0]}" if names else f"{os.cpu_count()} cores"


def commit():
    done = subprocess.run(
        ["git", "-C", ROOT, "log", "-1", "--format=%cs, %h"], capture_output=True, text=True
    )
    return done.stdout.strip() or "an unknown commit"


def run_all(build, jobs, junit):
    """Wall seconds of the whole suite; the tests' own are in the file."""
    began = time.monotonic()
    subprocess.run(
        ["ctest", "--test-dir", build, "-j", str(jobs), "--output-junit", junit, "-Q"], check=False
    )
    return time.monotonic() - began


def read_labels(build):
    """Labels of each test, joined."""
    shown = subprocess.run(
        ["ctest", "--test-dir", build, "--show-only=json-v1"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return {
        test["name"]: ", ".join(
            label
            for p in test.get("properties", ())
            if p["name"] == "LABELS"
            for label in p["value"]
        )
        for test in json.loads(shown)["tests"]
    }


def read_times(junit, labels):
    """(seconds, name, labels, status) of each test, slowest first."""
    rows = [
        (float(case.get("time")), case.get("name"), labels[case.get("name")], case.get("status"))
        for case in xml.parse(junit).getroot().iter("testcase")
    ]
    return sorted(rows, key=lambda r: (-r[0], r[1]))


def table(rows, wall, jobs, load):
    of_label = {}
    for sec, _, labels, _ in rows:
        for label in labels.split(", "):
            count, total = of_label.get(label, (0, 0))
            of_label[label] = count + 1, total + sec
    skipped = [name for _, name, _, status in rows if status in ("notrun", "disabled")]
    out = [
        f"`python3 tests/tools/times.py build --write tests/README.md` of {commit()}, on "
        f"{processor()}, {jobs} tests at a time: {len(rows)} tests in {wall:.0f} s."
        + (f" Other work ran beside them (load {load:.1f} before)." if load > 0.5 else ""),
        "",
    ]
    if skipped:
        out += ["Skipped, because a program or package is missing: " + ", ".join(skipped) + ".", ""]
    out += ["| label | tests | sum of s |", "|---|---:|---:|"]
    out += [f"| {k or 'none'} | {n} | {s:.0f} |" for k, (n, s) in sorted(of_label.items())]
    out += ["", "| test | label | s |", "|---|---|---:|"]
    out += [f"| {name} | {labels} | {sec:.1f} |" for sec, name, labels, _ in rows]
    return "\n".join(out) + "\n"


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("build")
    p.add_argument("--jobs", type=int, default=os.cpu_count() * 3 // 2)  # as tests/run.sh
    p.add_argument("--write", metavar="FILE")
    o = p.parse_args()
    with tempfile.TemporaryDirectory() as work:
        junit = os.path.join(work, "times.xml")
        load = os.getloadavg()[0]
        wall = run_all(o.build, o.jobs, junit)
        rows = read_times(junit, read_labels(o.build))
    failed = [name for _, name, _, status in rows if status == "fail"]
    text = table(rows, wall, o.jobs, load)
    if failed:
        sys.exit("failed: " + ", ".join(failed))
    if not o.write:
        print(text, end="")
        return
    with open(o.write, encoding="utf-8") as f:
        page = f.read()
    if page.count(BEGIN) != 1 or page.count(END) != 1:
        sys.exit(f"{o.write}: expected one line each of {BEGIN.strip()} and {END.strip()}")
    head, tail = page.split(BEGIN)[0], page.split(END)[1]
    with open(o.write, "w", encoding="utf-8") as f:
        f.write(head + BEGIN + text + END + tail)


if __name__ == "__main__":
    main()
