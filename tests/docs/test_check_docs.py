#!/usr/bin/env python3
"""check_docs.py finds one fault of each kind in pages that have it, and none in pages that have
not.

test_check_docs.py
"""

import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TOOL = "#!/bin/sh\ncase \"$*\" in *--help) echo '--good --out';; esac\n"
INDEX = "# Pages\n\n| page | after it |\n|---|---|\n| [One](one.md) | nothing |\n"
GOOD = """# One

See [two](#two-words) and [all](README.md#pages), `--good` and `ckc m.onnx --good`, in docs/one.md.

## Two words

```sh
ckc m.onnx \\
	--good | cat >made # --bad
test -e made
test -e train.npz && test -e text.txt
```

```console
mpirun -n 2 --other ckrun m.so --good
```

```python
model = ckc.compile("m.onnx", good=1, output="m.so")
```
"""
# what is put behind the page above: what the checker says of it
FAULTS = (
    ("[gone](three.md)", "link to docs/three.md, which does not exist"),
    ("[gone](#three)", "link to docs/one.md#three: no such heading"),
    ("[gone](README.md#three)", "link to docs/README.md#three: no such heading"),
    ("This is in tests/gone.py.", "tests/gone.py does not exist"),
    ("| name | tests/kept.c | `kept`, `gone` |", "tests/kept.c has no gone"),
    ("Take `--bad`.", "there is no option --bad"),
    ("Take `ckrun m.so --bad`.", "there is no option --bad"),
    ("```sh\nckc m.onnx --bad\n```", "there is no option --bad"),
    (
        "```console\nckc m.onnx --good && torchrun --else 2 ckrun m.so --bad\n```",
        "there is no option --bad",
    ),
    ("```python\nckc.compile('m.onnx', bad=1)\n```", "there is no option --bad of ckc"),
    ("```sh\nfalse\ntrue\n```", "status 1"),
    ("```sh\ntest -e absent; echo said; exit 3\n```", "status 1"),
    ("```c\nint x;\n```", "a block marked 'c'"),
    ("a\n" * 7, "a paragraph of more than 6 lines"),
)


def check(root):
    tool = os.path.join(root, "tool")
    done = subprocess.run(
        [sys.executable, os.path.join(HERE, "check_docs.py"), root, "--ckc", tool, "--ckrun", tool],
        stdout=subprocess.PIPE,
        text=True,
    )
    found = int(re.search(r"(\d+) faults$", done.stdout).group(1))
    assert (done.returncode == 1) == (found > 0), done.stdout
    return found, done.stdout


def write(root, path, text):
    os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
    with open(os.path.join(root, path), "w", encoding="utf-8") as f:
        f.write(text)


def main():
    wrong = 0
    with tempfile.TemporaryDirectory() as root:
        for path, text in (
            ("tool", TOOL),
            ("README.md", "# Top\n"),
            ("docs/README.md", INDEX),
            ("docs/one.md", GOOD),
            ("tests/kept.c", "int kept;\n"),
            ("samples/digits/digits.onnx", ""),
            ("samples/chargpt/chargpt.onnx", ""),
        ):
            write(root, path, text)
        os.chmod(os.path.join(root, "tool"), 0o755)
        for addition, said in (("", None), *FAULTS):
            write(root, "docs/one.md", GOOD + "\n" + addition + "\n")
            found, text = check(root)
            if found != (said is not None) or (said and said not in text):
                print(f"{addition!r}: expected {said}, found {text}")
                wrong += 1
        write(root, "docs/one.md", GOOD)
        write(root, "docs/two.md", "# Two\n")
        if "docs/two.md: not in the table of docs/README.md" not in check(root)[1]:
            print("a page that no table has is not found")
            wrong += 1
    print(f"{len(FAULTS) + 2} cases, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
