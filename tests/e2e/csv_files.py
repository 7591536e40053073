#!/usr/bin/env python3
"""CSV files of numbers: every number where it belongs, as Python reads it, or a line that says
which one is none.

csv_files.py CKC CKRUN
"""

import random
import struct

import ck
import numpy as np
import seen

BATCH, N = 4, 12


def text(bench, name, content, encoding="utf-8"):
    path = bench.path(name)
    with open(path, "wb") as f:
        f.write(content.encode(encoding) if isinstance(content, str) else content)
    return path


def table(rows, header=None, sep=",", end="\n"):
    lines = ([sep.join(header)] if header else []) + [sep.join(r) for r in rows]
    return end.join(lines) + end


def number(rng):
    """A float32's digits in some form, and the number."""
    x = struct.unpack(
        "<f",
        struct.pack(
            "<f",
            rng.choice((rng.uniform(-5, 5), rng.gauss(0, 1e-20), rng.randrange(-99, 99), 3e30)),
        ),
    )[0]
    return rng.choice((f"{x!r}", f"{x:.9e}", f"{x:+.12g}", f" {x:.9g} ", f'"{x!r}"')), np.float32(x)


def check(bench, so, want, path, *args, told=()):
    x, y = want
    for step in 1, 2, 3:
        got = seen.batch(bench, so, "--data", path, *args, "--steps", step)
        if got:
            at = [y.tolist().index(k) for k in got["y"]]
            bench.check((got["x"] == x[at]).all(), f"{args}: {got}, expected {x[at]}")
    done = bench.ckrun(so, "--data", path, *args)
    for line in told:
        bench.check(
            f"\n  {line}\n" in done.stdout,
            f"{args}: not told '{line}':\n{done.stdout}{done.stderr}",
        )


def forms(bench, so):
    rng = random.Random(4)
    cells = [[number(rng) for _ in range(3)] for _ in range(N)]
    cells[0][0] = ("0.5", np.float32(0.5))
    want = np.array([[v for _, v in r] for r in cells]), np.arange(N) + 70
    rows = [[*(t for t, _ in r), str(70 + i)] for i, r in enumerate(cells)]
    told = [f"x f32[{BATCH},3] = rows of 'x' f64[{N},3]", f"y i64[{BATCH}] = rows of 'y' i64[{N}]"]
    for header in (
        ["x0", "x1", "x2", "y"],
        ["x_7", "x_8", "x_9", "y"],
        [" x.1", '"x.2"', "x.3 ", '"y"'],
    ):
        for sep in ",;\t":
            for end in "\n", "\r\n", "\n\n":
                path = text(bench, "table.csv", table(rows, header, sep, end))
                check(bench, so, want, path, told=told if (sep, end) == (",", "\n") else ())
    path = text(
        bench, "t.csv", b"\xef\xbb\xbf" + table(rows, ["x0", "x1", "x2", "y"]).rstrip("\n").encode()
    )
    check(bench, so, want, path, told=told)
    odd = text(
        bench,
        "odd.tsv",
        table(
            [[r[3], r[1], r[0], "7", r[2]] for r in rows], ["label", "b", "a", "idle", "c"], "\t"
        ),
    )
    lists = ["--columns", "x=a,2,5", "--feed", "y=label"]
    check(bench, so, want, odd, *lists, told=[told[0], f"not used: 'idle' i64[{N}]"])
    bare = text(bench, "bare.csv", table(rows))
    check(bench, so, want, bare, "--columns=x=1-3", "--columns=y=4", told=told)
    xs, ys = (
        text(bench, k + ".csv", table(c))
        for k, c in (("xs", [r[:3] for r in rows]), ("ys", [r[3:] for r in rows]))
    )
    check(bench, so, want, "x=" + xs, "--data", "y=" + ys, told=told)
    halves = [
        text(bench, f"half{k}.csv", table(part, ["x0", "x1", "x2", "y"]))
        for k, part in enumerate((rows[:5], rows[5:]))
    ]
    check(bench, so, want, halves[0], "--data", halves[1], told=told)


def whole(bench, so):
    """Whole numbers are integers as far as these go, and floats beyond."""
    big = [
        ["1" * 18, "2", "3", "71"],
        ["-" + "9" * 18, "0", "0", "72"],
        ["9" * 19, "1", "18446744073709551616", "73"],
        ["-" + "9" * 19, "4", "5", "74"],
    ] * 3
    for n, kind in (2, "i64"), (4, "f64"):
        rows = [[*r[:3], str(70 + i)] for i, r in enumerate(big[:n] * (N // n))]
        x = np.array([[np.float32(int(c)) for c in r[:3]] for r in rows])
        path = text(bench, "big.csv", table(rows, ["x0", "x1", "x2", "y"]))
        feed = ["--feed", "x=float:x"] if kind == "i64" else []
        check(
            bench,
            so,
            (x, np.arange(N) + 70),
            path,
            *feed,
            told=[
                f"x f32[{BATCH},3] = rows of 'x' {kind}[{N},3]" + (", converted" if feed else "")
            ],
        )


def long(bench, so):
    """More numbers than are held at once."""
    n, wide = 3001, 200
    cells = np.random.default_rng(2).integers(-(2**40), 2**40, (n, wide))
    rows = [[*map(str, r), str(i)] for i, r in enumerate(cells)]
    path = text(bench, "long.csv", table(rows, [f"a{k}" for k in range(wide)] + ["y"]))
    wide_so = seen.compiled(bench, "wide", x=("i8", [BATCH, wide]), y=("i8", [BATCH]))
    for step in 1, 99, 750:
        got = seen.batch(bench, wide_so, "--data", path, "--steps", step)
        if got:
            bench.check((got["x"] == cells[got["y"]]).all(), f"long: {step}")
    done = bench.ckrun(so, "--data", path, "--feed", "x=ones", env={"TMPDIR": "/nowhere"})
    bench.check(
        "long.csv: cannot create a temporary file in '/nowhere'" in done.stderr, done.stderr
    )


def wrong(bench, so):
    head = "x0,x1,x2,y\n"
    row = "1.5,2,3,4\n"
    for content, told in (
        ("", "is empty"),
        ("\n\n", "is empty"),
        (head, "has no row of numbers"),
        (head + row + "1,2,3\n", ":3: expected 4 fields, as in the first line, found 3"),
        (
            head + row + "1,2,3,4,5\n",
            ":3: expected 4 fields, as in the first line, found more than 4",
        ),
        (head + row + "1,,3,4\n", ":3: column 2 ('x1'): expected a number, found ''"),
        (head + row + "1,nan,3,4\n", "expected a number, found 'nan'"),
        (head + row + "1,inf,3,4\n", "found 'inf'"),
        (head + row + "1,1e999,3,4\n", "found '1e999'"),
        (head + row + "1,0x10,3,4\n", "found '0x10'"),
        (head + row + "1,2,3,cat\n", ":3: column 4 ('y'): expected a number, found 'cat'"),
        (row + "1,2,three,4\n", ":2: column 3: expected a number, found 'three'"),
        (head + '1,2,3,"4\n', ":2: a quoted field does not end in its line"),
        (head + '1,2,"3"3,4\n', "text follows the closing quote"),
        (head + "1,2,3,4\0\n", ":2: found a NUL byte; the file is not text"),
        (head + "1,2,3," + "4" * 300, "more than 255 characters"),
        ("a,b,a\n1,2,3\n", "have the name 'a'; try: --columns NAME=NUMBER"),
        ("x,x1,x2,y\n1,2,3,4\n", "have the name 'x'"),
        (
            ",a,b\n0,1,2\n",
            "column 1 of the header has no name; in pandas, try: to_csv(..., index=False)",
        ),
        (
            "1,2,NA\n0,1,2\n",
            ":1: column 3: expected a number or the name of the column, found 'NA'",
        ),
        ("nan\n1\n2\n", ":1: column 1: expected a number or the name of the column, found 'nan'"),
        ("0,1,2\n5,6,7\n", ":1: the first line counts 0 1 2 ..., as a header without names"),
        ("1," * 65536 + "1\n", "more than 65536 columns"),
        (b"\x00\x01" * 99, "not text"),
    ):
        seen.refused(bench, so, "--data", text(bench, "wrong.csv", content), told=[told])
    path = text(bench, "right.csv", head + row * 5)
    for spec, told in (
        ("x=1-5", "has no column '1-5'; expected a column name, a number from 1 to 4, or a range"),
        ("x=0", "no column '0'"),
        ("x=3-1", "no column '3-1'"),
        ("x=z", "no column 'z'"),
        ("x=1-3,2", "column 2 of '"),
        ("x", "expected NAME=LIST"),
        ("x=", "expected NAME=LIST"),
        ("=1", "expected NAME=LIST"),
        ("y=1", "have the name 'y'"),
        ("x=1,,2", "no column ''"),
        ("x=99999999999999999999", "no column '9"),
    ):
        seen.refused(bench, so, "--data", path, "--columns", spec, told=[told])
    seen.refused(bench, so, "--columns", "x=1", status=2, told=["--columns needs --data"])
    np.savez(bench.path("a.npz"), x=np.zeros((5, 3), "f4"), y=np.arange(5))
    seen.refused(
        bench,
        so,
        "--data",
        bench.path("a.npz"),
        "--columns",
        "x=1",
        told=["a.npz' has no columns; expected a file *.csv or *.tsv"],
    )
    seen.refused(
        bench, so, "--data", "x=" + path, told=["the arrays of the file already have names"]
    )


def main():
    bench = ck.Bench()
    so = seen.compiled(bench, "xy", x=("f4", [BATCH, 3]), y=("i8", [BATCH]))
    forms(bench, so)
    whole(bench, so)
    long(bench, so)
    wrong(bench, so)
    bench.finish()


if __name__ == "__main__":
    main()
