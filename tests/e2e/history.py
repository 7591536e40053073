#!/usr/bin/env python3
"""ckrun report: the page holds what the log holds, whatever state the log is in.

    history.py CKC CKRUN

The page is read as XML and laid beside the log: a point for each row that has a number, at a place
that is an affine function of step and value (or its logarithm); means over as many rows as the page
says; last and best values.  Where Chromium is installed it draws the page.
"""

import csv
import json
import math
import os
import re
import shutil
import subprocess
import xml.etree.ElementTree as ET

import ck
import numpy as np

SVG = "{http://www.w3.org/2000/svg}"
CHARTS = {
    "loss": "loss",
    "validation accuracy, %": "valid_accuracy",
    "validation perplexity": "valid_perplexity",
    "gradient norm, before clipping": "grad_norm",
    "learning rate": "lr",
    "loss scale": "loss_scale",
}
LOWEST, HIGHEST = (
    {"loss", "validation loss", "validation perplexity"},
    {"validation accuracy, %", "samples per second", "tokens per second"},
)


class Page:
    def __init__(self, path):
        self.root = ET.parse(path).getroot()
        self.charts = {svg.find(SVG + "title").text: svg for svg in self.root.iter(SVG + "svg")}
        self.text = "".join(self.root.itertext())

    def table(self, name):
        rows = next(t for t in self.root.iter("table") if t.get("id") == name).findall("tr")
        return [["".join(cell.itertext()).strip() for cell in row] for row in rows][1:]

    def points(self, chart, kind):
        lines = [p for p in self.charts[chart].iter(SVG + "polyline") if p.get("class") == kind]
        return [
            tuple(map(float, point.split(","))) for p in lines for point in p.get("points").split()
        ]

    def is_log(self, chart):
        return any("(logarithmic)" in (t.text or "") for t in self.charts[chart].iter(SVG + "text"))


def make(bench, logs, out="page.html"):
    done = bench.ckrun("report", *logs, "-o", bench.path(out))
    return done, Page(bench.path(out)) if done.returncode == 0 else None


def number(x):
    return isinstance(x, (int, float)) and not isinstance(x, bool) and math.isfinite(x)


def series(rows, key):
    return [(r["step"], r[key]) for r in rows if number(r.get(key))]


def affine(x, y):
    """How far y is from the best line through it."""
    a = np.stack([np.asarray(x, float), np.ones(len(x))], 1)
    scale = np.abs(a[:, 0]).max() or 1
    a[:, 0] /= scale
    return np.abs(a @ np.linalg.lstsq(a, np.asarray(y, float), rcond=None)[0] - y).max()


def drawn_as(bench, page, chart, kind, want, what):
    """A point for each, where it belongs."""
    points = page.points(chart, kind)
    if (
        not bench.check(
            len(points) == len(want), f"{what}: {chart}: {len(points)} points for {len(want)} rows"
        )
        or len(want) < 3
    ):
        return
    steps, values = zip(*want)
    values = np.log(values) if page.is_log(chart) else values
    x, y = zip(*points)
    bench.check(
        affine(steps, x) < 0.02 and affine(values, y) < 0.02,
        f"{what}: {chart}: off by {affine(steps, x)}, {affine(values, y)}",
    )
    if len(set(values)) > 1:
        bench.check(
            (values[np.argmin(values)] - values[np.argmax(values)])
            * (y[np.argmin(values)] - y[np.argmax(values)])
            < 0,
            f"{what}: {chart}: upside down",
        )


def look(bench, page, rows, what):
    for chart, key in CHARTS.items():
        want = series(rows, key)
        bench.check(
            (chart in page.charts) == bool(want),
            f"{what}: {chart}: {sorted(page.charts)}, {len(want)} numbers",
        )
        if want:
            drawn_as(bench, page, chart, "rows", want, what)
    if series(rows, "valid_loss"):
        drawn_as(bench, page, "loss", "valid", series(rows, "valid_loss"), what)
    unit = "tokens" if "tokens" in rows[0] else "samples"
    speed = [(r["step"], r[unit] / r["seconds"]) for r in rows]
    drawn_as(bench, page, unit + " per second", "rows", speed, what)
    tabled(
        bench,
        page,
        rows,
        {
            **{k: k2 for k, k2 in CHARTS.items() if k != "gradient norm, before clipping"},
            "validation loss": "valid_loss",
            "gradient norm": "grad_norm",
        },
        what,
    )


def tabled(bench, page, rows, keys, what):
    got = {row[0]: row[2:] for row in page.table("values")}
    for name, key in keys.items():
        want = series(rows, key)
        if (
            not bench.check((name in got) == bool(want), f"{what}: table: {name}: {got.get(name)}")
            or not want
        ):
            continue
        factor = 100 if "%" in name else 1
        last = want[-1]
        best = (
            min(want, key=lambda w: w[1])
            if name in LOWEST
            else max(want, key=lambda w: w[1])
            if name in HIGHEST
            else None
        )
        text = [f"{last[1] * factor:.6g}", str(last[0])] + (
            [f"{best[1] * factor:.6g}", str(best[0])] if best else ["-", ""]
        )
        bench.check(
            all(
                a == b or abs(float(a) - float(b)) < 2e-6 * abs(float(b))
                for a, b in zip(got[name], text)
            ),
            f"{what}: {name}: {got[name]}, the log has {text}",
        )


def mean(bench, page, rows, what):
    """Thick lines are means over as many rows as the page says."""
    said = re.search(r"the mean of (\d+) neighbouring rows", page.text)
    if not bench.check(said, f"{what}: nothing is said of means"):
        return
    half, want = int(said.group(1)) // 2, series(rows, "loss")
    values = [v for _, v in want]
    smooth = [
        (s, float(np.mean(values[max(0, i - half) : i + half + 1])))
        for i, (s, _) in enumerate(want)
    ]
    drawn_as(bench, page, "loss", "mean", smooth, what)


def real(bench):
    """Of a run, with what it logs, in both forms."""
    so, flags = bench.path("m.so"), ck.model_flags(os.path.join(ck.MODELS, "gpt2-logits"))[0]
    stem = os.path.join(ck.MODELS, "gpt2-logits")
    if not bench.must(bench.ckc(stem + ".onnx", *flags, "-o", so, "--dtype", "f16"), "compile"):
        return
    for name in ("run.jsonl", "run.csv"):
        log = bench.path(name)
        bench.must(
            bench.ckrun(
                so,
                "--inputs",
                stem + ".inputs.safetensors",
                "--steps",
                60,
                "--lr",
                0.003,
                "--warmup",
                9,
                "--schedule",
                "cosine",
                "--log",
                log,
                "--quiet",
            ),
            "train",
        )
        done, page = make(bench, [log])
        if bench.must(done, name):
            rows = ck.log_rows(log) if name.endswith("jsonl") else table_rows(log)
            look(bench, page, rows, name)
            mean(bench, page, rows, name)
            bench.check(not done.stderr, f"{name}: {done.stderr}")


def table_rows(path):
    with open(path) as f:
        return [
            {k: int(v) if k == "step" else float(v) for k, v in row.items() if v and k != "skipped"}
            for row in csv.DictReader(f)
        ]


def write(bench, name, rows):
    with open(bench.path(name), "w") as f:
        f.write("".join((r if isinstance(r, str) else json.dumps(r)) + "\n" for r in rows))
    return bench.path(name)


def made(n, scale=1.0):
    rng = np.random.default_rng(n)
    rows = [
        {
            "step": i + 1,
            "loss": float(scale * np.exp(-i / n * 4) + rng.uniform(0, 0.01)),
            "lr": 1e-3,
            "seconds": 0.5,
            "tokens": 100 + i % 7,
        }
        for i in range(n)
    ]
    for i in range(9, n, 10):
        rows[i].update(
            valid_loss=rows[i]["loss"] + 0.1,
            valid_accuracy=0.5 + i / n / 2,
            valid_perplexity=math.exp(rows[i]["loss"]),
        )
    return rows


def states(bench):
    """Not a number, lines that broke off, runs that resumed, many rows."""
    rows = made(100)
    for i in (30, 31, 60):
        rows[i]["loss"] = None
    done, page = make(bench, [write(bench, "nan.jsonl", rows)])
    if bench.must(done, "not a number"):
        look(bench, page, rows, "not a number")
        holes = [p for p in page.charts["loss"].iter(SVG + "path") if p.get("class") == "hole"]
        lines = [p for p in page.charts["loss"].iter(SVG + "polyline") if p.get("class") == "rows"]
        bench.check(
            len(holes) == 2 and len(lines) == 3,
            f"not a number: {len(holes)} marks, {len(lines)} pieces",
        )
        bench.check(
            "not a number in 3 rows, first at step 31" in page.text, "not a number: no note"
        )
    rows = made(100)
    rows[20]["loss"] = 1e37
    done, page = make(bench, [write(bench, "spike.jsonl", rows)])
    if bench.must(done, "a spike"):
        look(bench, page, rows, "a spike")
        mean(bench, page, rows, "a spike")
    rows = made(50)
    done, page = make(
        bench,
        [
            write(
                bench,
                "broken.jsonl",
                rows[:20] + ['{"step":21,"lo', "", "[1]"] + rows[20:] + ['{"step":51,"loss":0.'],
            )
        ],
    )
    if bench.must(done, "broken lines"):
        look(bench, page, rows, "broken lines")
        bench.check(
            "skipped 3 malformed lines, the first at line 21" in done.stderr
            and "skipped 3 malformed lines" in page.text,
            f"broken lines: {done.stderr}",
        )
    done, page = make(
        bench, [write(bench, "again.jsonl", made(50) + [{**r, "loss": 0.5} for r in made(70)[30:]])]
    )
    if bench.must(done, "resumed"):
        look(bench, page, made(50)[:30] + [{**r, "loss": 0.5} for r in made(70)[30:]], "resumed")
        bench.check("20 rows were repeated" in page.text, "resumed: no note")
    rows = [{k: v for k, v in row.items() if "valid" not in k} for row in made(30000)]
    done, page = make(bench, [write(bench, "long.jsonl", rows)])
    if bench.must(done, "many rows"):
        points, losses = page.points("loss", "rows"), [r["loss"] for r in rows]
        bench.check(
            1000 <= len(points) <= 2000 and os.path.getsize(bench.path("page.html")) < 400000,
            f"many rows: {len(points)} points",
        )
        bench.check(
            "the minimum and maximum of every 30 rows" in page.text, "many rows: nothing is said"
        )
        y = [p[1] for p in points]
        whole = make(
            bench,
            [
                write(
                    bench,
                    "two.jsonl",
                    [{**rows[0], "loss": min(losses)}, {**rows[-1], "loss": max(losses)}],
                )
            ],
        )[1].points("loss", "rows")
        bench.check(
            abs(max(y) - whole[0][1]) < 0.02 and abs(min(y) - whole[1][1]) < 0.02,
            f"many rows: {min(y)} to {max(y)}, ends are {whole}",
        )
    one(bench)


def one(bench):
    """A single row, values that are all alike, a step of its own."""
    done, page = make(bench, [write(bench, "one.jsonl", made(1))])
    bench.check(
        done.returncode == 0 and len(page.points("loss", "rows")) == 1, f"one row: {done.stderr}"
    )
    bench.check(
        "nan" not in page.text.lower() and "inf" not in page.text.lower(),
        "one row: no number on the page",
    )


def beside(bench):
    """Runs on one page, a colour each; names with marks."""
    logs = [write(bench, n, made(40, s)) for n, s in (("a.jsonl", 1), ('<b>&".jsonl', 2))]
    done, page = make(bench, logs)
    if bench.must(done, "two runs"):
        colors = {p.get("stroke") for p in page.charts["loss"].iter(SVG + "polyline")}
        bench.check(
            len(colors) == 2 and len(page.points("loss", "rows")) == 80, f"two runs: {colors}"
        )
        bench.check(
            [row[0] for row in page.table("runs")] == logs, f"two runs: {page.table('runs')}"
        )
        bench.check(
            {tag.tag.split("}")[-1] for tag in page.root.iter()}.isdisjoint(
                {"script", "img", "link", "b"}
            ),
            "something is loaded",
        )


def errors(bench):
    page = bench.path("e.html")
    empty, blank = write(bench, "empty.jsonl", []), write(bench, "blank.jsonl", ["", ""])
    text, long = (
        write(bench, "text.txt", ["hello", "a,b"]),
        write(bench, "long.txt", ["{" + "x" * 200000]),
    )
    score = write(bench, "eval.jsonl", [{"samples": 3, "loss": 1.0}])
    with open(bench.path("bytes"), "wb") as f:
        f.write(bytes(range(256)) * 300)
    good = write(bench, "good.jsonl", made(3))
    for argv, code, said in (
        ([empty], 1, "empty"),
        ([blank], 1, "empty"),
        ([text], 1, "line 1: expected '{'"),
        ([long], 1, "longer than 65536"),
        ([score], 1, "no step"),
        ([bench.path("bytes")], 1, "the log has no rows"),
        ([bench.path("none")], 1, "No such file"),
        ([bench.work], 1, "cannot read"),
        ([good, "--lr", "1"], 2, "unknown option of ckrun report: --lr"),
        ([good] * 9, 2, "8 runs"),
    ):
        done = bench.ckrun("report", *argv, "-o", page)
        bench.check(
            done.returncode == code
            and said in done.stderr
            and done.stderr.count("\n") == 1
            and not os.path.exists(page),
            f"{argv[:2]}: {done.returncode} {done.stderr}",
        )
    for argv, code, said in (
        ([good], 2, "-o FILE.html"),
        (["-o", page], 2, "no log given"),
        ([good, "-o", good], 2, "would overwrite"),
        ([good, "-o", bench.path("no/such.html")], 1, "cannot write"),
        ([good, "-o"], 2, "needs a file"),
    ):
        done = bench.ckrun("report", *argv)
        bench.check(
            done.returncode == code and said in done.stderr,
            f"{argv}: {done.returncode} {done.stderr}",
        )
    done = bench.ckrun("report", good, "-o", "-")
    bench.check(
        done.returncode == 0 and done.stdout.rstrip().endswith("</html>"), "to standard output"
    )
    bench.check("ckrun report LOG" in bench.ckrun("report", "--help").stdout, "--help")


def drawn(bench):
    browser = next(
        (b for b in ("chromium", "chromium-browser", "google-chrome") if shutil.which(b)), None
    )
    if not browser:
        print("no Chromium: the page was not drawn")
        return
    png = bench.path("page.png")
    done = subprocess.run(
        [
            browser,
            "--headless=new",
            "--no-sandbox",
            "--disable-dev-shm-usage",
            "--disable-gpu",
            "--window-size=1160,1400",
            f"--user-data-dir={bench.path('profile')}",
            f"--screenshot={png}",
            "file://" + bench.path("page.html"),
        ],
        capture_output=True,
        text=True,
        timeout=120,
    )
    bench.check(
        os.path.exists(png) and os.path.getsize(png) > 20000,
        f"{browser}: {done.returncode} {done.stderr[-300:]}",
    )


def main():
    bench = ck.Bench()
    real(bench)
    states(bench)
    beside(bench)
    errors(bench)
    drawn(bench)
    bench.finish()


if __name__ == "__main__":
    main()
