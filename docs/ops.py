#!/usr/bin/env python3
"""Writes the table of ops in docs/ir.md from ir/ops.h.

ops.py            print the table
ops.py --write    put it between the marks in docs/ir.md
ops.py --check    exit status 1 if docs/ir.md differs
"""

import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
OPS, PAGE = os.path.join(HERE, "..", "ir", "ops.h"), os.path.join(HERE, "ir.md")
BEGIN, END = "<!-- ops.py: begin -->\n", "<!-- ops.py: end -->\n"
SECTION = re.compile(r"/\* -{4} (.*?)[ -]*\n(.*?)\*/", re.S)
ATTRIBUTE = re.compile(r"([IFL])\((\w+)(?:, ([^)]*))?\)")
GRADIENT = {"none": "no", "zero": "zero"}
UNBOUNDED = "VARIADIC"


def arguments(text):
    """Of a macro call: what stands between its outer commas."""
    parts, depth = [""], 0
    for c in text:
        depth += {"(": 1, ")": -1}.get(c, 0)
        if c == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += c
    return [part.strip() for part in parts]


def inside(call):
    return arguments(call[call.index("(") + 1 : call.rindex(")")])


def count(least, most):
    if most == UNBOUNDED:
        return f"{least} or more"
    return least if least == most else f"{least} to {most}"


def attributes(text, macros):
    for name, body in macros.items():
        text = re.sub(rf"\b{name}\b", body, text)
    found = []
    for kind, name, default in ATTRIBUTE.findall(text):
        default = {"INT64_MAX": "max", "INT64_MIN": "min"}.get(default, default)
        found.append(f"{name}=[]" if kind == "L" else f"{name}={default}")
    return ", ".join(found)


def row(line, macros):
    _, text, sig, attr, rules, emit = arguments(line[line.index("(") + 1 : line.rindex(")")])
    least, most, outputs, static, _ = inside(sig)
    _, folded, _, _, grad, shard = inside(rules)
    fixed = "" if static == "NOSTAT" else f", constant from {static}"
    return [
        f"`{text.strip(chr(34))}`",
        count(least, most) + fixed,
        "any" if outputs == UNBOUNDED else outputs,
        attributes(attr, macros),
        GRADIENT.get(grad, "yes"),
        "no" if folded == "none" else "yes",
        "no" if shard == "none" else "yes",
        "no" if inside(emit)[0] == "fail" else "yes",
    ]


def table():
    with open(OPS, encoding="utf-8") as f:
        source = f.read()
    macros = dict(re.findall(r"^#define (CUT) (.*)$", source, re.M))
    starts = list(SECTION.finditer(source))
    out = []
    for here, after in zip(starts, starts[1:] + [None]):
        words = re.sub(r"^ \* ?", "", here.group(2), flags=re.M).rstrip()
        rows = [
            row(line, macros)
            for line in source[here.end() : after.start() if after else len(source)].splitlines()
            if line.startswith("OP(")
        ]
        title = here.group(1).strip()
        out += [
            f"### {title[0].upper()}{title[1:]}",
            "",
            "```text",
            words,
            "```",
            "",
            "| op | inputs | outputs | attributes | gradient | folded | sharded | reaches code |",
            "|---|---|---|---|---|---|---|---|",
        ]
        out += ["| " + " | ".join(cells) + " |" for cells in rows]
        out.append("")
    return "\n".join(out).rstrip() + "\n"


def main():
    made = table()
    if len(sys.argv) < 2:
        print(made, end="")
        return 0
    with open(PAGE, encoding="utf-8") as f:
        page = f.read()
    head, tail = page.split(BEGIN)[0], page.split(END)[1]
    wanted = head + BEGIN + "\n" + made + "\n" + END + tail
    if sys.argv[1] == "--write":
        with open(PAGE, "w", encoding="utf-8") as f:
            f.write(wanted)
        return 0
    if wanted != page:
        print(
            "docs/ir.md: the table of ops differs from ir/ops.h; try: python3 docs/ops.py --write",
            file=sys.stderr,
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
