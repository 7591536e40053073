#!/usr/bin/env python3
"""All that ckc, ckrun, libckr and the Python package say to people, in one list to read and to
judge.

    check_messages.py ROOT [--bless]

messages.txt beside this file holds, by source file and in order, the strings of at least three
words: errors, warnings, notes, help and reports; not the text of generated code, not lists of
words that are looked up, and not what Python documents itself with.  The test fails where a string
is new or another one; --bless writes the list anew, and its diff is what a reader of a change looks
at.
"""

import ast
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
LIST = os.path.join(HERE, "messages.txt")
FOLDERS = ("ir", "frontend", "passes", "codegen", "runtime")
TOKEN = re.compile(
    r'"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\]|\\.)*\'|/\*.*?\*/|//[^\n]*|#\s*include[^\n]*|[A-Za-z_]\w*|\S',
    re.S,
)
WORDS = re.compile(r"[A-Za-z%]\S*\s+\S+\s+\S*[A-Za-z]")
GENERATED = re.compile(r"out_\w+|emit_\w+|EMIT_\w+|ptx_\w+|is_op_among|word_is_listed")


def of_c(text):
    """Strings beside each other are one; a macro between them is {NAME}."""
    found, calls, last, now, names = [], [], "", None, []

    def end():
        if now is not None and WORDS.search(now) and not any(GENERATED.fullmatch(c) for c in calls):
            found.append(now)

    for m in TOKEN.finditer(text):
        t = m.group()
        if t.startswith(("/*", "//", "#")):
            continue
        if t[0] == '"':
            now = t[1:-1] if now is None else now + "".join(f"{{{n}}}" for n in names) + t[1:-1]
            names = []
            continue
        if now is not None and re.fullmatch(r"[A-Z][A-Za-z0-9_]*", t):
            names.append(t)
            continue
        end()
        now, names = None, []
        if t == "(":
            calls.append(last)
        elif t == ")" and calls:
            calls.pop()
        last = t
    end()
    return found


def of_python(text):
    tree = ast.parse(text)
    docs = {
        ast.get_docstring(n, clean=False)
        for n in ast.walk(tree)
        if isinstance(n, (ast.Module, ast.FunctionDef, ast.ClassDef)) and ast.get_docstring(n)
    }
    inner = {id(v) for n in ast.walk(tree) if isinstance(n, ast.JoinedStr) for v in n.values}
    found = []
    for n in ast.walk(tree):
        if (
            isinstance(n, ast.Constant)
            and isinstance(n.value, str)
            and id(n) not in inner
            and n.value not in docs
        ):
            found.append((n.lineno, n.col_offset, n.value))
        elif isinstance(n, ast.JoinedStr):
            found.append(
                (
                    n.lineno,
                    n.col_offset,
                    "".join(v.value if isinstance(v, ast.Constant) else "{}" for v in n.values),
                )
            )
    return [s for _, _, s in sorted(found) if WORDS.search(s)]


def collect(root):
    lines = []
    for top in FOLDERS:
        for folder, dirs, names in os.walk(os.path.join(root, top)):
            dirs.sort()
            for name in sorted(names):
                if not name.endswith((".c", ".h", ".py")) or os.path.basename(folder) == "kernels":
                    continue
                path = os.path.join(folder, name)
                with open(path, encoding="utf-8") as f:
                    text = f.read()
                found = of_python(text) if name.endswith(".py") else of_c(text)
                if found:
                    lines += ["", "## " + os.path.relpath(path, root)] + [
                        s.replace("\n", "\\n") for s in found
                    ]
    return lines[1:]


def main():
    root = sys.argv[1]
    lines = collect(root)
    if "--bless" in sys.argv[2:]:
        with open(LIST, "w", encoding="utf-8") as f:
            f.write("\n".join(lines) + "\n")
        return 0
    with open(LIST, encoding="utf-8") as f:
        known = f.read().splitlines()
    for word, some, others in ("new", lines, set(known)), ("gone", known, set(lines)):
        for s in some:
            if s not in others:
                print(f"{word}: {s}")
    if lines != known:
        print("tests/house/check_messages.py . --bless writes the list anew: read its diff")
    return lines != known


if __name__ == "__main__":
    sys.exit(main())
