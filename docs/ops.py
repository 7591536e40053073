#!/usr/bin/env python3
"""Writes the tables of two pages: ops in docs/ir.md from ir/ops.h, and ONNX operators in
docs/operators.md from frontend/import/operators.h.

ops.py            print the tables
ops.py --write    put them between the marks in the pages
ops.py --check    exit status 1 if a page differs
"""

import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..")
OPS, OPERATORS, FLAT = "ir/ops.h", "frontend/import/operators.h", "frontend/onnx/flat.h"
UPDATES = "runtime/support/optimizers.h"
BEGIN, END = "<!-- ops.py: begin -->\n", "<!-- ops.py: end -->\n"
SECTION = re.compile(r"/\* -{4} (.*?)[ -]*\n(.*?)\*/", re.S)
ATTRIBUTE = re.compile(r"([IFL])\((\w+)(?:, ([^)]*))?\)")
GRADIENT = {"none": "no", "zero": "zero"}
UNBOUNDED = "VARIADIC"
DOMAINS = {'""': "", "MS": "com.microsoft."}
OPERATOR = re.compile(r"^(ONNX|REFUSED)\((.*?)\)\n(?=\w+\(|\n)", re.S | re.M)
STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')


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


def source_of(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as f:
        return f.read()


def ops_source():
    """ops.h, with the rows of the updates that it includes."""
    source = source_of(OPS)
    names, body = re.search(
        r"^#define UPDATE\((.*?)\) (OP\(.*)\n#include.*$", source, re.M
    ).groups()
    rows = ""
    for values in re.findall(r"^UPDATE\((.*)\)$", source_of(UPDATES), re.M):
        line = body
        for name, value in zip(arguments(names), arguments(values)):
            line = re.sub(rf"\b{name}\b", value, line)
        rows += re.sub(r"(\d+) \+ (\d+)", lambda m: str(int(m[1]) + int(m[2])), line) + "\n"
    return re.sub(r"^#define UPDATE.*\n#include.*\n", rows, source, flags=re.M)


def table():
    source = ops_source()
    macros = dict(re.findall(r"^#define (SHARDED) (.*)$", source, re.M))
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


def field(text, name):
    """The bits or the name that a row gives a field; "0" without."""
    if name == "stop" and re.search(r"\bALL\b", text):
        return "ALL_INPUTS"
    found = re.search(rf"\.{name} = (\w+)", text)
    return found[1] if found else "0"


def inputs_of(bits, most):
    """The numbers of inputs, from 1, of a row's bits; "all" or "" where it is so."""
    if bits == "ALL_INPUTS":
        return "all"
    n = int(bits, 0)
    numbers = [i + 1 for i in range(32) if n >> i & 1]
    return "all" if 0 < len(numbers) == most else ", ".join(map(str, numbers))


def kinds(text, most):
    """What a row says of the types of inputs."""
    said = []
    for name, words in ("floats", "float"), ("numbers", "not bool"):
        which = inputs_of(field(text, name), most)
        said += [words if which == "all" else f"{words}: {which}"] if which else []
    return "; ".join(said)


def by_name(cells):
    return "." in cells[0], cells[0].strip("`").lower()


def operators():
    newest = re.search(r"NEWEST_OPSET = (\d+)", source_of(FLAT))[1]
    source = source_of(OPERATORS)
    no_gradient = {
        row[0].strip("`").upper()
        for row in (row(line, {}) for line in source_of(OPS).splitlines() if line.startswith("OP("))
        if row[4] == "no" and row[7] == "yes"
    }
    known, refused = [], []
    for macro, text in OPERATOR.findall(source):
        name, domain, since, least, most = arguments(text)[:5]
        name = f"`{DOMAINS[domain]}{name.strip(chr(34))}`"
        hint = "".join(STRING.findall(text.partition(".hint =")[2]))
        if macro == "REFUSED":
            refused.append([name, hint])
            continue
        stop = inputs_of(field(text, "stop"), int(most))
        if field(text, "ir").removeprefix("OP_") in no_gradient or stop == "all" or most == "0":
            gradient = "none"
        else:
            gradient = f"all but {stop}" if stop else "all"
        count_ = count(least, UNBOUNDED if most == "-1" else most)
        opset = f"version {since}" if domain == "MS" else f"{since} to {newest}"
        known.append([name, opset, count_, gradient, kinds(text, int(most))])
    rows = source.count("\nONNX(") + source.count("\nREFUSED(")
    assert len(known) + len(refused) == rows, "a row of operators.h is not understood"
    out = [
        "| operator | opset | inputs | inputs with a gradient | types of inputs |",
        "|---|---|---|---|---|",
        *("| " + " | ".join(cells) + " |" for cells in sorted(known, key=by_name)),
        "",
        "ckc imports these operators only under the stated condition, or not at all:",
        "",
        "| operator | condition or remedy |",
        "|---|---|",
        *("| " + " | ".join(cells) + " |" for cells in sorted(refused, key=by_name)),
    ]
    return "\n".join(out) + "\n"


PAGES = (("ir.md", "ops", OPS, table), ("operators.md", "operators", OPERATORS, operators))


def main():
    wrong = 0
    for name, what, source, make in PAGES:
        made = make()
        if len(sys.argv) < 2:
            print(made, end="")
            continue
        path = os.path.join(HERE, name)
        with open(path, encoding="utf-8") as f:
            page = f.read()
        head, tail = page.split(BEGIN)[0], page.split(END)[1]
        wanted = head + BEGIN + "\n" + made + "\n" + END + tail
        if sys.argv[1] == "--write":
            with open(path, "w", encoding="utf-8") as f:
                f.write(wanted)
        elif wanted != page:
            print(
                f"docs/{name}: the table of {what} differs from {source}; "
                "try: python3 docs/ops.py --write",
                file=sys.stderr,
            )
            wrong = 1
    return wrong


if __name__ == "__main__":
    sys.exit(main())
