#!/usr/bin/env python3
"""Checks the pages: their links, the options that they name, and the examples that run.

    check_docs.py ROOT --ckc CKC --ckrun CKRUN [--no-run]

  * links lead to files that exist, and to headings that exist
  * paths of the repository that a sentence names exist
  * names of code in the cell after a source file's are in that file
  * options of ckc and ckrun, in blocks and between backquotes, are in --help
  * keywords of ckc.compile and ckc.Trainer in Python blocks are options, too
  * no paragraph has more than six lines
  * blocks marked ```sh in README.md and docs run, page by page, in one folder that has the samples'
  models, data and a text

Blocks marked ```console or ```python do not run: they need PyTorch, a GPU, several machines or
other files.  Standard library only. Prints one line per fault; exit status 1 if there is any.
"""

import argparse
import ast
import os
import re
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import zipfile

PARAGRAPH = 6  # lines
LINK = re.compile(r"\[[^\]]*\]\(([^()\s]+)\)")
SPAN = re.compile(r"`([^`]+)`")
PATH = re.compile(
    r"(?<![\w/.`*-])((?:codegen|docs|frontend|ir|passes|runtime|samples|tests)/[\w./-]*\w)(?![\w/*-]|\.\w)"
)
SOURCE = re.compile(r"[\w/.-]+\.[ch]")
OPTION = re.compile(r"--[a-z][a-z0-9-]*")
VERBS = {
    "ckc": ("inspect", "advise", "plan", "pack", "doctor"),
    "ckrun": ("eval", "predict", "report", "merge"),
}
KEYWORDS = {"budget": "memory-budget", "weights": "init"}
TEXT = "A step owns its parameters, its gradients and what it keeps of forward. "


class Block:
    def __init__(self, kind, line):
        self.kind, self.line, self.text = kind, line, ""


class Page:
    """A page of Markdown: prose by line, blocks, anchors."""

    def __init__(self, root, path):
        self.path, self.prose, self.blocks, self.anchors = path, [], [], set()
        with open(os.path.join(root, path), encoding="utf-8") as f:
            lines = f.read().splitlines()
        block = None
        for number, line in enumerate(lines, 1):
            if line.startswith("```"):
                if block is None:
                    block = Block(line[3:].strip(), number + 1)
                    self.blocks.append(block)
                else:
                    block = None
                self.prose.append("")
            elif block is not None:
                block.text += line + "\n"
                self.prose.append("")
            else:
                self.prose.append(line)
                if line.startswith("#"):
                    self.anchors.add(anchor(line))


def anchor(heading):
    """The name that GitHub gives a heading."""
    words = re.sub(r"[^\w\- ]", "", heading.lstrip("#").strip().lower())
    return words.replace(" ", "-")


def pages_of(root):
    """README.md and docs in the order of their table first; then what only has links."""
    run = ["README.md", "docs/README.md"]
    with open(os.path.join(root, "docs", "README.md"), encoding="utf-8") as f:
        run += [
            "docs/" + name
            for name in dict.fromkeys(
                re.findall(r"^\| \[[^\]]*\]\((\w[\w-]*\.md)\)", f.read(), re.M)
            )
        ]
    missing = [
        name
        for name in sorted(os.listdir(os.path.join(root, "docs")))
        if name.endswith(".md") and "docs/" + name not in run
    ]
    others = [name for name in ("CONTRIBUTING.md",) if os.path.exists(os.path.join(root, name))]
    for base, _, files in os.walk(os.path.join(root, "samples")):
        others += [
            os.path.relpath(os.path.join(base, name), root)
            for name in sorted(files)
            if name.endswith(".md")
        ]
    return run, others, [f"docs/{name}: not in the table of docs/README.md" for name in missing]


def check_links(root, page, pages, faults):
    for number, line in enumerate(page.prose, 1):
        for target in LINK.findall(SPAN.sub("", line)):
            if re.match(r"[a-z]+:", target):
                continue
            path, _, name = target.partition("#")
            path = (
                os.path.normpath(os.path.join(os.path.dirname(page.path), path))
                if path
                else page.path
            )
            if not os.path.exists(os.path.join(root, path)):
                faults.append(f"{page.path}:{number}: link to {path}, which does not exist")
            elif name:
                other = pages.get(path) or Page(root, path)
                if name not in other.anchors:
                    faults.append(f"{page.path}:{number}: link to {path}#{name}: no such heading")
        for path in PATH.findall(LINK.sub("", line)):
            if not os.path.exists(os.path.join(root, path)) and not os.path.exists(
                os.path.join(root, os.path.dirname(page.path), path)
            ):
                faults.append(f"{page.path}:{number}: {path} does not exist")


def check_names(root, page, faults):
    for number, line in enumerate(page.prose, 1):
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line[:1] == "|" else []
        for path, names in zip(cells, cells[1:]):
            if not SOURCE.fullmatch(path) or not os.path.exists(os.path.join(root, path)):
                continue
            with open(os.path.join(root, path), encoding="utf-8") as f:
                words = set(re.findall(r"\w+", f.read()))
            faults += [
                f"{page.path}:{number}: {path} has no {name}"
                for name in SPAN.findall(names)
                if name.isidentifier() and name not in words
            ]


def check_paragraphs(page, faults):
    length = 0
    for number, line in enumerate(page.prose + [""], 1):
        text = line.strip()
        length = (
            length + 1
            if text
            and not text.startswith(("|", "#", "!["))
            and not re.match(r"([-*]|\d+\.) ", text)
            else bool(re.match(r"([-*]|\d+\.) ", text))
        )
        if length == PARAGRAPH + 1:
            faults.append(f"{page.path}:{number}: a paragraph of more than {PARAGRAPH} lines")


class Help:
    """The options that --help of a tool and of its verbs list."""

    def __init__(self, paths):
        self.options = {}
        for tool, verbs in VERBS.items():
            for verb in (None, *verbs):
                done = subprocess.run(
                    [paths[tool], *([verb] if verb else []), "--help"],
                    stdout=subprocess.PIPE,
                    text=True,
                    timeout=60,
                )
                self.options[tool, verb] = set(OPTION.findall(done.stdout)) | {
                    "--help",
                    "--version",
                }

    def unknown(self, words):
        """Of a command's words, options that its ckc or ckrun does not have."""
        at = next((i for i, word in enumerate(words) if os.path.basename(word) in VERBS), None)
        if at is None:
            return []
        tool = os.path.basename(words[at])
        verb = words[at + 1] if at + 1 < len(words) and words[at + 1] in VERBS[tool] else None
        return [
            found.group()
            for found in map(OPTION.match, words[at + 1 :])
            if found and found.group() not in self.options[tool, verb]
        ]

    def anywhere(self, option):
        return any(option in options for options in self.options.values())


def commands(text):
    """The words of each command of a shell block."""
    lexer = shlex.shlex(text.replace("\\\n", " "), posix=True, punctuation_chars=";&|\n")
    lexer.whitespace, lexer.commenters, lexer.whitespace_split = " \t\r", "#", True
    words = []
    try:
        for word in lexer:
            if word.strip(";&|\n"):
                words.append(word)
            elif words:
                yield words
                words = []
    except ValueError:  # a here-document's quotes
        pass
    if words:
        yield words


def keywords(text):
    """Options that Python hands to ckc.compile (but for output, which is -o) and ckc.Trainer."""
    for node in ast.walk(ast.parse(text)):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Name)
            and node.func.value.id == "ckc"
        ):
            tool = {"compile": "ckc", "Trainer": "ckrun"}.get(node.func.attr)
            for word in (word for word in node.keywords if tool and word.arg != "output"):
                yield tool, "--" + KEYWORDS.get(word.arg, word.arg).replace("_", "-")


def check_options(page, known, faults):
    for block in page.blocks:
        if block.kind in ("sh", "console"):
            for words in commands(block.text):
                faults += [
                    f"{page.path}:{block.line}: there is no option {option}: {' '.join(words[:6])}"
                    for option in known.unknown(words)
                ]
        elif block.kind == "python":
            faults += [
                f"{page.path}:{block.line}: there is no option {option} of {tool}"
                for tool, option in keywords(block.text)
                if option not in known.options[tool, None]
            ]
        elif block.kind != "text":
            faults.append(
                f"{page.path}:{block.line}: a block marked '{block.kind}', expected sh, console, python or text"
            )
    for number, line in enumerate(page.prose, 1):
        for span in SPAN.findall(line):
            words = span.split()
            if words[0] in VERBS:
                faults += [
                    f"{page.path}:{number}: there is no option {option}: {span}"
                    for option in known.unknown(words)
                ]
            elif words[0].startswith("--"):
                faults += [
                    f"{page.path}:{number}: there is no option {found.group()}: {span}"
                    for found in map(OPTION.match, words)
                    if found and not known.anywhere(found.group())
                ]


def npy(dtype, shape, data):
    head = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}"
    head += " " * (-(len(head) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + data


def images(path, rows, seed):
    """Images of ten classes, bars at ten heights under noise, as samples/digits/data.py names
    them."""
    labels, pixels = [], bytearray()
    for _ in range(rows):
        seed = seed * 6364136223846793005 + 1442695040888963407 & (1 << 64) - 1
        label = (seed >> 33) % 10
        labels.append(label)
        image = bytearray((seed >> (i % 41)) % 61 for i in range(784))
        image[28 * (2 * label + 4) : 28 * (2 * label + 6)] = bytes([220] * 56)
        pixels += image
    with zipfile.ZipFile(path, "w") as f:
        f.writestr("image.npy", npy("|u1", (rows, 28, 28), bytes(pixels)))
        f.writestr("labels.npy", npy("<i8", (rows,), struct.pack(f"<{rows}q", *labels)))


def kitchen(root, folder, paths):
    """Files that docs/README.md promises, and the tools in the returned PATH."""
    for name in ("samples/digits/digits.onnx", "samples/chargpt/chargpt.onnx"):
        shutil.copy(os.path.join(root, name), folder)
    images(os.path.join(folder, "train.npz"), 640, 1)
    images(os.path.join(folder, "test.npz"), 200, 2)
    with open(os.path.join(folder, "text.txt"), "w") as f:
        f.write(TEXT * 100)
    tools = os.path.join(folder, ".tools")
    os.makedirs(tools)
    for tool, path in paths.items():
        with open(os.path.join(tools, tool), "w") as f:
            f.write(f"#!/bin/sh\nexec '{os.path.abspath(path)}' \"$@\"\n")
        os.chmod(os.path.join(tools, tool), 0o755)
    return dict(os.environ, PATH=tools + os.pathsep + os.environ["PATH"])


def run(root, pages, paths, faults):
    with tempfile.TemporaryDirectory() as folder:
        env = kitchen(root, folder, paths)
        for page in pages:
            begun, count = time.monotonic(), 0
            for block in (block for block in page.blocks if block.kind == "sh"):
                count += 1
                try:
                    done = subprocess.run(
                        ["sh", "-eu", "-c", block.text],
                        cwd=folder,
                        env=env,
                        stdin=subprocess.DEVNULL,
                        stdout=subprocess.PIPE,
                        stderr=subprocess.STDOUT,
                        text=True,
                        errors="replace",
                        timeout=300,
                    )
                except subprocess.TimeoutExpired:
                    faults.append(f"{page.path}:{block.line}: takes more than 300 s")
                    continue
                if done.returncode:
                    faults.append(
                        f"{page.path}:{block.line}: status {done.returncode}: {done.stdout[-600:].strip()}"
                    )
            if count:
                print(f"{page.path}: {count} blocks, {time.monotonic() - begun:.1f} s")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("root")
    p.add_argument("--ckc", required=True)
    p.add_argument("--ckrun", required=True)
    p.add_argument("--no-run", action="store_true")
    o = p.parse_args()
    paths = {"ckc": o.ckc, "ckrun": o.ckrun}
    names, others, faults = pages_of(o.root)
    known = Help(paths)
    pages = {name: Page(o.root, name) for name in names + others}
    for name, page in pages.items():
        check_links(o.root, page, pages, faults)
        check_names(o.root, page, faults)
        if name in names:
            check_paragraphs(page, faults)
            check_options(page, known, faults)
    if not o.no_run:
        run(o.root, [pages[name] for name in names], paths, faults)
    print("\n".join(faults))
    print(f"{len(pages)} pages, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
