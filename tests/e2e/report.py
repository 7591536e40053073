#!/usr/bin/env python3
"""--report: the page holds what the plan file holds, and nothing but text and shapes.

    report.py CKC CKRUN

The page is read by Python's own parser and laid beside --json of the same call: totals, a rectangle
for each tensor of the arena where and when it lies there, a cell for each place of forward with
what became of it, the largest. Where Chromium is installed it draws the page.
"""

import html.parser
import os
import re
import shutil
import subprocess

import ck

LEFT, WIDTH, BOTTOM, TOP = 70.0, 1080.0, 434.0, 18.0  # of the picture's plane
VOID = {"meta", "rect", "path", "circle"}  # of these only rect may have something in it
LOOSE = {"p", "tr", "td", "th"}  # end where the next begins
MODELS = (
    ("tie-elu-dyn22", None),
    ("mlp-mse", None),
    ("resnet-dynamo-bn", "95%"),
    ("gpt2-ts14", "90%"),
)


class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.cell, self.texts = [], [], [], []
        self.rects, self.tables, self.table = [], {}, None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.tags.append((tag, attrs))
        if tag == "rect":
            self.rects.append(attrs)
        if tag == "i" and "title" in attrs:
            self.cell.append((attrs["class"], attrs["title"]))
        if tag == "table":
            self.table = self.tables.setdefault(attrs.get("id"), [])
        if tag == "tr":
            self.table.append([])
        if tag in ("td", "th"):
            self.table[-1].append("")
        if (
            tag not in VOID - {"rect"}
            and tag not in LOOSE
            and f"<{tag}" != self.get_starttag_text()[:-2].rstrip()
        ):
            if not self.get_starttag_text().endswith("/>"):
                self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag):
        if self.open and self.open[-1] == tag:
            self.open.pop()
        else:
            self.open.append(f"/{tag}")
        if tag == "table":
            self.table = None

    def handle_data(self, data):
        self.texts.append(data)
        if self.table and self.table[-1]:
            self.table[-1][-1] += data


def near(a, b):
    return abs(a - b) <= 0.011


def arena(bench, what, page, plan):
    """Every rectangle is a tensor's, every tensor has one."""
    tensors = [t for t in plan["tensors"] if not t["resident"] and t["bytes"]]
    rects = [r for r in page.rects if "class" in r]
    if not bench.check(
        len(rects) == len(tensors), f"{what}: {len(rects)} rectangles for {len(tensors)} tensors"
    ):
        return
    x = (WIDTH - LEFT) / len(plan["schedule"])
    y = (BOTTOM - TOP) / plan["summary"]["arena_bytes"]
    for t, r in zip(tensors, rects):
        place = [float(r[k]) for k in ("x", "y", "width", "height")]
        want = [
            LEFT + t["first"] * x,
            BOTTOM - (t["offset"] + t["bytes"]) * y,
            (t["last"] - t["first"] + 1) * x,
            t["bytes"] * y,
        ]
        bench.check(all(map(near, place, want)), f"{what}: {t['name']}: {place}, expected {want}")


def cells(bench, what, page, plan):
    """By place of forward: the strongest of what the tensors in it are."""
    word = {"keep": "keep", "recompute": "drop", "free": "free"}
    best = {}
    for t in plan["tensors"]:
        if t["decision"] and not t["resident"]:
            owner = t["id"] if t["alias_of"] is None else t["alias_of"]
            best[owner] = min(
                best.get(owner, "recompute" if t["decision"] == "recompute" else t["decision"]),
                t["decision"],
                key=["keep", "recompute", "free"].index,
            )
    owners = [
        t
        for t in plan["tensors"]
        if t["kind"] == "activation" and not t["resident"] and t["alias_of"] is None
    ]
    want = sorted((word[best[t["id"]]], t["onnx"] or t["name"]) for t in owners)
    rows = page.tables["layers"][1:]
    if all("each" not in row[0] for row in rows):
        got = sorted((c, re.split(r" [a-z0-9]+\[", title)[0]) for c, title in page.cell)
        bench.check(
            got == want,
            f"{what}: cells {[(g, w) for g, w in zip(got, want) if g != w][:3]}, {len(got)} for {len(want)}",
        )
    else:
        bench.check(0 < len(page.cell) < len(want), f"{what}: {len(page.cell)} cells")


def one(bench, name, budget):
    flags, _ = ck.model_flags(os.path.join(ck.MODELS, name))
    path, js = bench.path("page.html"), bench.path("page.json")
    flags = [*flags, "--plan-only", *(["--memory-budget", budget] if budget else [])]
    if not bench.must(
        bench.ckc(os.path.join(ck.MODELS, name) + ".onnx", *flags, "--report", path, "--json", js),
        name,
    ):
        return
    text, plan = open(path, encoding="utf-8").read(), ck.plan(js)
    page, s = Page(text), plan["summary"]
    bench.check(not page.open, f"{name}: not closed, or too often: {page.open[:5]}")
    tags = {tag for tag, _ in page.tags}
    bench.check(
        not tags & {"script", "img", "link", "iframe", "object"}
        and "url(" not in text
        and not any(k in a for _, a in page.tags for k in ("src", "href", "onload", "onclick")),
        f"{name}: something is loaded or run: {sorted(tags)}",
    )
    facts = {row[0]: int(row[2].split()[0]) for row in page.tables["totals"]}
    for what, key in (
        ("peak", "peak_bytes"),
        ("arena", "arena_bytes"),
        ("budget", "budget_bytes"),
        ("parameters", "param_bytes"),
        ("optimizer state", "optimizer_bytes"),
        ("... of that saved for backward", "saved_bytes"),
    ):
        bench.check(
            facts.get(what, 0) == (s[key] or 0),
            f"{name}: {what} {facts.get(what)}, the plan has {s[key]}",
        )
    arena(bench, name, page, plan)
    cells(bench, name, page, plan)
    large = [int(row[0]) for row in page.tables["largest"][1:]]
    want = sorted(
        (t["bytes"] for t in plan["tensors"] if not t["resident"] and t["alias_of"] is None),
        reverse=True,
    )
    bench.check(
        large == want[: len(large)] and len(large) == min(24, len(want)),
        f"{name}: largest {large[:3]}, expected {want[:3]}",
    )
    budgets = [
        int(re.search(r"--memory-budget (\d+)", row[0]).group(1))
        for row in page.tables["budgets"][1:]
    ]
    points = [q["budget_bytes"] for q in plan["curve"]]
    bench.check(facts["smallest budget that works"] == min(points), f"{name}: least budget {facts}")
    bench.check(
        set(budgets) <= set(points) and {points[0], points[-1]} <= set(budgets),
        f"{name}: budgets {budgets}, curve {points}",
    )
    bench.check(
        all(any(q["name"] in t for t in page.texts) for q in plan["presets"]),
        f"{name}: a preset is missing",
    )
    again = bench.path("again.html")
    bench.must(
        bench.ckc(os.path.join(ck.MODELS, name) + ".onnx", *flags, "--report", again, "--json", js),
        f"{name}: again",
    )
    bench.check(
        ck.content(again).replace(b"again.html", b"page.html") == ck.content(path),
        f"{name}: another page",
    )


def library(bench):
    """A report changes neither what is made nor the plan."""
    stem = os.path.join(ck.MODELS, "mlp-mse")
    flags, _ = ck.model_flags(stem)
    so, page = bench.path("with.so"), bench.path("with.html")
    js, alone = bench.path("with.json"), bench.path("alone.json")
    bench.must(
        bench.ckc(stem + ".onnx", *flags, "-o", so, "--report", page, "--json", js),
        "a page and a library",
    )
    bench.check(os.path.exists(so) and os.path.exists(page), "no library, or no page")
    bench.must(bench.ckc(stem + ".onnx", *flags, "--plan-only", "--json", alone), "alone")
    bench.check(
        ck.plan(js)["schedule"] == ck.plan(alone)["schedule"], "another plan beside a report"
    )


def hostile(bench):
    stem = os.path.join(ck.MODELS, "mlp-mse")
    flags, _ = ck.model_flags(stem)
    path, page = bench.path("<script>&\"'.onnx"), bench.path("h.html")
    shutil.copy(stem + ".onnx", path)
    if bench.must(bench.ckc(path, *flags, "--plan-only", "--report", page), "a name with marks"):
        got = Page(open(page, encoding="utf-8").read())
        bench.check(
            all(tag != "script" for tag, _ in got.tags)
            and any("<script>&\"'.onnx" in t for t in got.texts),
            "marks in a name",
        )
    for argv, said in (
        (["--report", bench.path("no/such.html")], "cannot write"),
        (["--passes=bind", "--report", page], "there is no plan"),
        (["--report", page, "--json", page], "two outputs"),
    ):
        done = bench.ckc(stem + ".onnx", *flags, "--plan-only", *argv)
        bench.check(done.returncode == 1 and said in done.stderr, f"{argv}: {done.stderr}")
    done = bench.ckc(stem + ".onnx", *flags, "--plan-only", "--report", "-")
    bench.check(
        done.returncode == 0 and done.stdout.rstrip().endswith("</html>"),
        f"to standard output: {done.stdout[-60:]}",
    )


def drawn(bench):
    """Chromium makes a picture of it that is not one colour."""
    browser = next(
        (b for b in ("chromium", "chromium-browser", "google-chrome") if shutil.which(b)), None
    )
    if not browser:
        print("no Chromium: the page was not drawn")
        return
    png = bench.path("page.png")
    argv = [
        browser,
        "--headless=new",
        "--no-sandbox",
        "--disable-dev-shm-usage",
        "--disable-gpu",
        "--window-size=1160,1400",
        f"--user-data-dir={bench.path('profile')}",
        f"--screenshot={png}",
        "file://" + bench.path("page.html"),
    ]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120)
    bench.check(
        os.path.exists(png) and os.path.getsize(png) > 20000,
        f"{browser}: {done.returncode} {done.stderr[-300:]}",
    )


def main():
    bench = ck.Bench()
    for name, budget in MODELS:
        one(bench, name, budget)
    drawn(bench)
    library(bench)
    hostile(bench)
    bench.finish()


if __name__ == "__main__":
    main()
