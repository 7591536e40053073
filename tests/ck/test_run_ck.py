#!/usr/bin/env python3
"""The runner of text tests must fail where it should.

A stand-in for the compiler prints the test's own lines that start with
"out: " and "err: " and exits with the status on its "status: " line.
"""

import os
import subprocess
import sys
import tempfile

FAKE = r"""#!%s
import sys
status = 0
for line in open(sys.argv[1], encoding="utf-8"):
    word, _, rest = line.rstrip("\n").partition(": ")
    if word == "out":
        print(rest)
    elif word == "err":
        print(rest, file=sys.stderr)
    elif word == "status":
        status = int(rest)
sys.exit(status)
"""

# text of a test, and whether it passes
CASES = [
    ("# run:\nout: a\n# expect:\n# a\n", True),
    ("# run:\nout: a\nout: b\n# expect:\n# a\n", False),
    ("# run:\nout: a\n# expect:\n# a\n# b\n", False),
    ("# run:\nout: a\n# expect:\n# b\n", False),
    ("# run:\nout: a\n", False),
    ("out: a\n# expect:\n# a\n", False),
    ("# run:\nout: a  b\nout: c\n# check: a b\n# check: c\n", True),
    ("# run:\nout: a\nout: c\n# check: c\n# check: a\n", False),
    ("# run:\nout: a\n# check: a\n# check: a\n", False),
    ("# run:\nout: a\nout: x\nout: b\n# check: a\n# check-not: x\n# check: b\n", False),
    ("# run:\nout: x\nout: a\nout: b\n# check: a\n# check-not: x\n# check: b\n", True),
    ("# run:\nout: a\nout: x\n# check: a\n# check-not: x\n", False),
    ("# run:\nout: a\nout: a\n# check-count: 2 a\n", True),
    ("# run:\nout: a\nout: a\n# check-count: 1 a\n", False),
    ("# run:\nerr: bad thing\nstatus: 1\n# error: bad thing\n", True),
    ("# run:\nerr: bad thing\nstatus: 1\n# error: other\n", False),
    ("# run:\nerr: bad thing\n# error: bad thing\n", False),
    ("# run:\nerr: bad thing\nstatus: 3\n# error: bad thing\n", False),
    ("# run:\nerr: bad thing\nstatus: 2\n# usage: bad thing\n", True),
    ("# run:\nerr: note\nout: a\n# stderr: note\n# check: a\n", True),
    ("# run:\nout: a\nstatus: 1\n# check: a\n", False),
    ("# run:\nout: graph @g {\n# check: graph\n", False),
]


def main():
    runner = os.path.join(os.path.dirname(os.path.abspath(__file__)), "run_ck.py")
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        fake = os.path.join(folder, "fake")
        with open(fake, "w", encoding="utf-8") as f:
            f.write(FAKE % sys.executable)
        os.chmod(fake, 0o755)

        def run(text, *flags):
            path = os.path.join(folder, "t.ck")
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
            done = subprocess.run(
                [sys.executable, runner, "--ckc", fake, path, *flags], stdout=subprocess.PIPE
            )
            with open(path, encoding="utf-8") as f:
                return done.returncode, f.read()

        for text, passes in CASES:
            if (run(text)[0] == 0) != passes:
                failed += 1
                print("expected to %s:\n%s" % ("pass" if passes else "fail", text))
        if run("# skip: why\n# run:\n")[0] != 77:
            failed += 1
            print("nothing but skipped tests: expected status 77")
        for text in ("# run:\nout: b\n# expect:\n# a\n", "# run:\nout: b\n"):
            status, after = run(text, "--bless")
            if status or run(after)[0] or "# b\n" not in after:
                failed += 1
                print("not blessed:\n" + after)
    print("%d failed" % failed)
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
