#!/usr/bin/env python3
"""The recipes of README.md and of samples do what they say, in few commands.

    recipes.py CKC CKRUN [NAME...]

Commands are read out of the pages and run in a copy of the sample's folder.  Where PyTorch (and
transformers) can be imported the export is run, too; else the file in the repository takes its
place.  Then: the model is better on data it has not seen than one that knows nothing can be, says
the same from its predictions, and an untrained one is not.  Scripts of samples/python reach as much
in sixteen statements.
"""

import ast
import importlib.util
import os
import re
import shutil
import sys

import ck
import numpy as np

ROOT = os.path.join(ck.HERE, "..", "..")
LICENCES = "/usr/share/common-licenses/"
COMMANDS, STATEMENTS = 6, 16

# page, heading, what an export needs, loss below, accuracy above, what of a script's last line is a
# percentage above
RECIPES = {
    "digits": ("README.md", "Five minutes", ["torch", "onnxscript"], 0.3, 0.9, None),
    "segmentation": (
        "samples/segmentation/README.md",
        "Segmentation",
        ["torch", "onnxscript"],
        0.25,
        0.89,
        r"(\d+) % of unseen pixels",
    ),
    "text": (
        "samples/text/README.md",
        "Text classification",
        ["torch", "onnxscript", "transformers"],
        0.2,
        0.95,
        r"(\d+) % of unseen reviews",
    ),
    "chargpt": (
        "samples/chargpt/README.md",
        "A decoder over bytes",
        ["torch", "onnxscript"],
        3.0,
        0.2,
        r"of unseen text ([\d.]+)",
    ),
}


def commands(page, heading):
    """Of the first block of commands under a heading, one a line."""
    with open(os.path.join(ROOT, page), encoding="utf-8") as f:
        part = re.split(rf"^#+ {re.escape(heading)}$", f.read(), flags=re.M)[1]
    block = re.search(r"```(?:sh|console)\n(.*?)```", part, re.S).group(1)
    return [line.split("   #")[0].strip() for line in block.replace("\\\n", " ").splitlines()]


def kitchen(bench, name):
    """A copy of the folder, and a PATH where ckc, ckrun and python3 are those of this test."""
    folder, tools = bench.path(name), bench.path("tools")
    shutil.copytree(os.path.join(ROOT, "samples", name), folder)
    os.makedirs(tools, exist_ok=True)
    for tool, path in (
        ("ckc", bench.ckc_path),
        ("ckrun", bench.ckrun_path),
        ("python3", sys.executable),
    ):
        with open(os.path.join(tools, tool), "w") as f:
            f.write(f"#!/bin/sh\nexec '{path}' \"$@\"\n")
        os.chmod(os.path.join(tools, tool), 0o755)
    return folder, {"PATH": tools + os.pathsep + os.environ["PATH"]}


def can_export(needs):
    return all(importlib.util.find_spec(module) for module in needs)


def score(bench, done, what):
    """Of `ckrun eval`: loss and accuracy."""
    found = re.search(r"loss (\S+)  accuracy (\S+) %", done.stdout)
    bench.check(found, f"{what}: {done.stdout[-200:]}")
    return (float(found.group(1)), float(found.group(2)) / 100) if found else (np.inf, 0.0)


def predicted(bench, name, folder, accuracy):
    """What is predicted has the accuracy that eval tells."""
    labels = np.load(os.path.join(folder, "test.npz"))["labels"]
    scores = np.load(os.path.join(folder, "scores.npy"))
    got = np.mean(scores.argmax(1) == labels)
    bench.check(
        abs(got - accuracy) < 1e-6, f"{name}: predictions are right in {got}, eval says {accuracy}"
    )


def recipe(bench, name):
    page, heading, needs, loss_below, accuracy_above, _ = RECIPES[name]
    lines, (folder, env) = commands(page, heading), kitchen(bench, name)
    bench.check(3 <= len(lines) <= COMMANDS, f"{name}: {len(lines)} commands")
    bench.check(any("ckrun eval" in line for line in lines), f"{name}: nothing is evaluated")
    for line in lines:
        if "export.py" in line and not can_export(needs):
            print(f"{name}: {line} not run: no {', '.join(needs)}")
            continue
        done = bench.run(["sh", "-c", f"cd '{folder}' && {line}"], env=env, timeout=600)
        if not bench.must(done, f"{name}: {line}"):
            return
        if line.startswith("ckrun eval"):
            loss, accuracy = score(bench, done, name)
            bench.check(
                loss < loss_below and accuracy > accuracy_above,
                f"{name}: loss {loss}, accuracy {accuracy}",
            )
            fresh = bench.run(
                ["sh", "-c", f"cd '{folder}' && {re.sub(r'--init [^ ]+', '', line)}"], env=env
            )
            loss, other = score(bench, fresh, name + " untrained")
            bench.check(
                loss > loss_below and other < accuracy_above,
                f"{name}: untrained, loss {loss}, accuracy {other}",
            )
    if any("ckrun predict" in line for line in lines):
        predicted(bench, name, folder, accuracy)
    bench.must(
        bench.run(["sh", "-c", f"cd '{folder}' && ckrun report run.jsonl -o run.html"], env=env),
        f"{name}: report",
    )


def script(bench, name):
    """samples/python/NAME.py in the same folder."""
    pattern, path = RECIPES[name][5], os.path.join(ROOT, "samples", "python", name + ".py")
    with open(path, encoding="utf-8") as f:
        code = ast.parse(f.read())
    count = sum(isinstance(node, ast.stmt) for node in ast.walk(code)) - 1  # but the docstring
    bench.check(count <= STATEMENTS, f"{name}.py: {count} statements")
    home = os.path.dirname(bench.ckc_path)
    if name == "digits" and not can_export(["torch"]):
        print("digits.py not run: no torch")
        return
    if not os.path.exists(os.path.join(home, "libckr.so")):
        print(f"{name}.py not run: no libckr.so was built")
        return
    env = {
        "PYTHONPATH": os.path.abspath(os.path.join(ROOT, "frontend", "python")),
        "CKC_HOME": home,
    }
    done = bench.run(
        [
            "sh",
            "-c",
            f"cd '{bench.path(name)}' && exec '{sys.executable}' '{os.path.abspath(path)}'",
        ],
        env=env,
        timeout=600,
    )
    if not bench.must(done, f"{name}.py") or not pattern:
        return
    reached = float(re.search(pattern, done.stdout).group(1))
    good = reached < RECIPES[name][3] if name == "chargpt" else reached > 100 * RECIPES[name][4]
    bench.check(good, f"{name}.py: {done.stdout}")


def main():
    bench = ck.Bench()
    for name in bench.names or RECIPES:
        if name == "chargpt" and not os.path.exists(LICENCES + "LGPL-2.1"):
            print(f"chargpt not run: no text in {LICENCES}")
            continue
        recipe(bench, name)
        script(bench, name)
    bench.finish()


if __name__ == "__main__":
    main()
