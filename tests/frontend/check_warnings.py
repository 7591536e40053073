#!/usr/bin/env python3
"""What exporters damage silently, `ckc inspect` says, and names the option that avoids it; of what
is whole it says nothing.  Compiling says the same.

    check_warnings.py --ckc PATH [--page exporting.md] FOLDER MODELS

FOLDER holds the files that exports.py makes, MODELS those with references.
"""

import argparse
import fnmatch
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
import wire  # noqa: E402

# file: what its warnings must say, one list of words per warning that is looked for; no list: no
# warnings at all
EXPECTED = {
    "ts-plain": [],
    "ts-positions": [],
    "dynamo-plain": [],
    "dynamo-positions": [],
    "dynamo-norms": [],
    "ts-baked": [["'batch' is symbolic", "works with size 2 and not with 3", "dynamic_axes"]],
    "ts-baked-state": [["'batch' is symbolic", "works with size 2 and not with 3", "dynamic_axes"]],
    "ts-sines": [["'pos' looks like a fixed sinusoidal table", "--freeze 'pos'"]],
    "ts-buffers": [
        ["'pe' looks like a fixed sinusoidal table", "--freeze 'pe'"],
        [
            "'shift' and 1 more are trained as parameters only because of their names",
            "try: --freeze 'shift' --freeze '",
        ],
    ],
    "ts-fixed": [
        [
            "'adj' and 3 more are trained as parameters only because of their names",
            "try: --freeze 'adj' --freeze '",
        ]
    ],
    "ts-eval-names": [
        ["2 parameters lost their names", "onnx::MatMul_", "do_constant_folding=False"]
    ],
    "ts-eval-norms": [["'n.weight' and 1 more replace 4 parameters", "training mode"]],
    "ts-eval-tied": [
        ["is the transpose of 'e.weight'", "split a tied weight", "do_constant_folding=False"]
    ],
    "dynamo-batchnorm": [
        [
            "1 BatchNormalization node is in inference form",
            "--batchnorm batch",
            "training=TRAINING",
            "custom translation",
        ]
    ],
    "dynamo-recipe-plain": [],
    "dynamo-dropout": [["1 Dropout node is inactive", "eager attention"]],
    "dynamo-cross-entropy": [],
    "dynamo-smoothing": [["label_smoothing=0.1", "log_softmax"]],
    "dynamo-padding": [
        ["'node_embedding': the exporter dropped padding_idx=2", "emb(ids) * (ids != 2)"]
    ],
    "dynamo-frequency": [["'node_embedding': the exporter dropped scale_grad_by_freq"]],
    "dynamo-detach": [["'node_detach'", "detach() was lost"]],
    "dynamo-detach-input": [],
    "dynamo-optimized-names": [
        ["2 parameters lost their names", "optimize=False"],
        ["2 parameters of the module", "'a.weight', 'b.weight'"],
    ],
    "dynamo-optimized-positions": [
        ["is added to an embedding", "12 rows of a position table", "optimize=False"],
        ["'l.weight', 'p.weight'"],
    ],
    "dynamo-optimized-norms": [["'n.weight' and 1 more replace 4 parameters", "optimize=False"]],
    "dynamo-optimized-tied": [["is the transpose of", "split a tied weight", "optimize=False"]],
    "dynamo-optimized-scale": [
        ["part of a folded parameter", "optimize=False"],
        ["1 parameter of the module", "'t'"],
    ],
    "dynamo-optimized-batchnorm": [
        [
            "2 parameters of the module",
            "'b.bias', 'b.weight'",
            "1 BatchNorm folded",
            "optimize=False",
        ]
    ],
    "dynamo-optimized-token": [
        ["'expand' holds copies of one stored value", "would train each copy", "optimize=False"],
        ["'cls', 'l.weight'"],
    ],
    "dynamo-optimized-fresh-token": [
        ["'expand' holds copies of one stored value"],
        ["'cls', 'l.weight'"],
    ],
    "dynamo-optimized-tables": [["4 parameters lost their names"], ["5 parameters of the module"]],
    "dynamo-optimized-sines": [["1 parameter lost its name"], ["2 parameters of the module"]],
    "dynamo-optimized-expanded": [
        ["holds copies of one stored value"],
        ["2 parameters of the module"],
    ],
    "dynamo-shared": [],
    "dynamo-optimized-shared": [["'n.weight' and 1 more replace 4 parameters", "optimize=False"]],
    "dynamo-optimized-penalty": [["'mul_1' is a number added to the loss", "optimize=False"]],
    "dynamo-penalty": [],
    "dynamo-optimized-divided": [],
    "dynamo-optimized-computed": [
        ["and 1 more", "computed them from parameters (the first is 'l.weight')", "optimize=False"],
        ["was computed from 'l.weight'", "trained separately"],
    ],
    "dynamo-computed": [],
    "dynamo-optimized-towers": [
        ["'exp': the exporter computed it from 't'", "optimize=False"],
        ["2 parameters of the module", "missing: 'one', 't'"],
    ],
    "dynamo-towers": [],
    "dynamo-optimized-siamese": [
        ["was computed from 'l.weight'", "the file holds another copy", "trained separately"]
    ],
    "dynamo-optimized-factors": [
        ["1 parameter of the module is not in the file", "missing: 'm.scale'"]
    ],
    "dynamo-lora": [
        ["2 parameters are trained in addition to 2 of LoRA", "try: --freeze '*' --train '*lora_*'"]
    ],
}
# what must not be advised: --train of the name would harm
NEVER = {
    "dynamo-optimized-token": "expand",
    "dynamo-optimized-fresh-token": "expand",
    "dynamo-optimized-tables": "",
    "dynamo-optimized-sines": "",
    "dynamo-optimized-expanded": "",
}
# the models with references that are damaged, or not in training form; the others are whole
DAMAGED = {
    "bert-cls-dynamo": ["2 Dropout nodes are inactive", "padding_idx=0"],
    "bert-mlm-dynamo-dyn": ["padding_idx=0"],
    "llama-dynamo": ["padding_idx=0"],
    "qwen2-moe-dyn": ["padding_idx=0"],
    "cnn-bn-batch": ["3 BatchNormalization nodes"],
    "cnn-bn-merged": ["3 BatchNormalization nodes"],
    "cnn-bn-mixed": ["3 BatchNormalization nodes"],
    "gpt2-tied-by-accident": [
        "replace 18 parameters",
        "is the transpose of",
        "1 parameter lost its name",
    ],
    "tie-[!ms]*": ["missing: 'net.w'"],
    "crf-ts17": ["'trans' is trained as a parameter only because of its name"],
    "clip-learnt-ts14": ["'low' and 1 more are trained as parameters only because of their names"],
}


def run(*argv):
    return subprocess.run(
        argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60
    )


def compiled(ckc, path, flags):
    """The warnings of the compiler, or a string that says what is wrong."""
    done, quiet = (
        run(ckc, path, "--plan-only", *flags),
        run(ckc, path, "--plan-only", "--quiet", *flags),
    )
    if done.returncode or quiet.returncode:
        return f"compiling: status {done.returncode}, with --quiet {quiet.returncode}: {done.stderr.strip()}"
    if quiet.stderr:
        return f"--quiet is not: {quiet.stderr.strip()}"
    begin = f"ckc: {path}: warning: "
    return [line[len(begin) :] for line in done.stderr.splitlines() if line.startswith(begin)]


def check_same(ckc, path, found):
    """Compiling warns of what the inspection found, but for what it can only know of a batch of
    another size."""
    flags = [x for dim in found["dims"] for x in dim["flag"].replace("=N", "=2").split()]
    told = compiled(ckc, path, flags)
    wanted = [line for line in found["warnings"] if "is symbolic" not in line]
    return (
        told
        if isinstance(told, str)
        else None
        if told == wanted
        else f"compiling says {told}, not {wanted}"
    )


def check_model(ckc, stem):
    """What is said of a model with a reference, by both verbs, with its own flags for the extents
    and the loss alone."""
    with open(stem + ".json") as f:
        meta = json.load(f)
    loss = meta["loss"]
    loss = [
        "--loss",
        loss
        if isinstance(loss, str)
        else f"{loss['kind']}:{loss.get('logits') or loss.get('output')}",
    ]
    dims = [x for dim, size in meta["dims"].items() for x in ("--dim", f"{dim}={size}")]
    name = os.path.basename(stem)
    wanted = next(
        (words for pattern, words in DAMAGED.items() if fnmatch.fnmatch(name, pattern)), []
    )
    told = compiled(ckc, stem + ".onnx", dims + loss)
    if isinstance(told, str):
        return told
    if len(told) != len(wanted) or not all(word in line for word, line in zip(wanted, told)):
        return f"expected {wanted}, said: {told}"
    page = run(ckc, "inspect", stem + ".onnx", *dims, *loss).stdout
    missing = [line for line in told if line not in page]
    return f"not on the page: {missing}" if missing else None


class Calls:
    """Stands for onnxscript's operators; keeps what they are called with."""

    def __init__(self):
        self.of = {}

    def __getattr__(self, name):
        def call(*args, **attributes):
            self.of[name] = args
            return (name, name, name) if name == "BatchNormalization" else name

        return call


def serves_plain(recipe):
    """A module without weight and bias gets a node with both, as ONNX wants."""
    defined = recipe[recipe.index("def batch_norm") : recipe.index("table =")]
    op = Calls()
    names = {"op": op}
    exec(defined, names)
    names["batch_norm"]("x", None, None, "mean", "var")
    return None not in op.of["BatchNormalization"]


def check_recipe(ckc, folder, recipes):
    """The lines that export BatchNorm in training form are Python, and the same in
    docs/exporting.md as in the inspection."""
    path = os.path.join(folder, "dynamo-batchnorm.onnx")
    details = json.loads(run(ckc, "inspect", path, "--json", "-").stdout)["details"]
    recipe = "\n".join(next(iter(details.values()), []))
    try:
        compile(recipe, "recipe", "exec")
    except SyntaxError as e:
        return f"no Python: {e}"
    if not serves_plain(recipe):
        return f"None goes into the node where affine=False: {recipe}"
    if "custom_translation_table" not in recipe or "training_mode=1" not in recipe:
        return f"no recipe: {details}"
    page = run(ckc, "inspect", path).stdout
    missing = [line for line in recipe.splitlines() if line not in page]
    if missing:
        return f"not on the page: {missing}"
    with open(recipes) as f:
        return None if f"```python\n{recipe}\n```" in f.read() else f"not in {recipes}: {recipe}"


def check_silenced(ckc, folder, models):
    """Who says what is meant is not warned; nor who trains nothing."""
    for path, flags, words in (
        (f"{models}/cnn-bn-batch.onnx", ["--batchnorm", "batch"], "3 nodes use batch statistics"),
        (
            f"{models}/cnn-bn-batch.onnx",
            ["--batchnorm", "running"],
            "--batchnorm running does nothing",
        ),
        (
            f"{models}/cnn-bn-running.onnx",
            ["--batchnorm", "running"],
            "3 nodes use the running statistics",
        ),
        (
            f"{models}/cnn-bn-batch.onnx",
            ["--batchnorm", "batch", "--batchnorm", "b3.*=running"],
            "2 nodes use batch statistics",
        ),
        (
            f"{models}/cnn-bn-batch.onnx",
            ["--batchnorm", "b1.*=batch", "--batchnorm", "running"],
            "--batchnorm b1.*=batch does nothing: a later --batchnorm counts for all its nodes",
        ),
        (
            f"{models}/cnn-bn-running.onnx",
            ["--batchnorm", "b4.*=running"],
            "--batchnorm b4.*=running does nothing",
        ),
        (
            f"{models}/crf-ts17.onnx",
            ["--batchnorm", "batch", "--train", "trans"],
            "--batchnorm batch does nothing",
        ),
        (f"{models}/bert-cls-dynamo.onnx", ["--dropout", "off"], "padding_idx=0"),
        (
            f"{folder}/ts-plain.onnx",
            ["--dim", "batch=2", "--dropout", "off"],
            "--dropout off does nothing",
        ),
        (f"{models}/bert-cls-dynamo.onnx", ["--forward-only"], ""),
        (
            f"{folder}/ts-fixed.onnx",
            [
                "--dim",
                "batch=2",
                *(x for name in ("adj", "bank", "kernel", "l.codes") for x in ("--freeze", name)),
            ],
            "",
        ),
        (
            f"{folder}/dynamo-lora.onnx",
            ["--dim", "batch=2", "--freeze", "*", "--train", "*lora_*"],
            "",
        ),
    ):
        done = run(ckc, path, "--plan-only", *flags)
        said = [line for line in done.stderr.splitlines() if "warning" in line or "note" in line]
        if done.returncode or (len(said) != 1 or words not in said[0] if words else said):
            return f"{path} {flags}: status {done.returncode}: {done.stderr.strip()}"
    done = run(ckc, f"{folder}/dynamo-optimized-token.onnx", "--plan-only", "--train", "expand")
    return (
        None
        if "'expand' holds copies of one stored value: --train trains each copy" in done.stderr
        else f"--train of copies: {done.stderr.strip()}"
    )


def check(ckc, path, lists, report):
    done = subprocess.run(
        [ckc, "inspect", path, "--json", report],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
    )
    if done.returncode:
        return f"status {done.returncode}: {done.stdout.strip()}"
    with open(report) as f:
        found = json.load(f)
    said = found["warnings"]
    for words in lists:
        if not any(all(word in line for word in words) for line in said):
            return f"nothing says {words}; said: {said}"
    if not lists and said:
        return f"nothing is damaged, but said: {said}"
    never = NEVER.get(os.path.basename(path)[:-5])
    if never is not None and any(f"--train '{never}" in line for line in said):
        return f"harmful advice: {said}"
    page = subprocess.run(
        [ckc, "inspect", path], stdout=subprocess.PIPE, text=True, timeout=60
    ).stdout
    missing = [line for line in said if line.replace('"', '\\"') not in page]
    return f"not on the page: {missing}" if missing else check_same(ckc, path, found)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--ckc", required=True)
    p.add_argument(
        "--page",
        default=os.path.join(
            os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "exporting.md"
        ),
    )
    p.add_argument("folder")
    p.add_argument("models")
    o = p.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory() as work:
        # written by hand: its names are what they are
        nodes = [
            wire.node("MatMul", ["x", "w"], "y"),
            wire.node("ReduceMean", ["y"], "loss", keepdims=0),
        ]
        plain = os.path.join(work, "plain.onnx")
        with open(plain, "wb") as f:
            f.write(
                wire.graph(
                    nodes,
                    [wire.floats("w", [3, 2], [1, 2, 3, 4, 5, 6])],
                    {"x": (1, [4, 3])},
                    ["loss"],
                )
            )
        wrong = check(o.ckc, plain, [], os.path.join(work, "plain.json"))
        if wrong:
            print(f"plain: {wrong}")
            failed += 1
        for name, lists in EXPECTED.items():
            fault = check(
                o.ckc,
                os.path.join(o.folder, name + ".onnx"),
                lists,
                os.path.join(work, "report.json"),
            )
            if fault:
                failed += 1
                print(f"FAIL {name}: {fault}")
    stems = sorted(f[:-5] for f in os.listdir(o.models) if f.endswith(".json"))
    faults = [(name, check_model(o.ckc, os.path.join(o.models, name))) for name in stems]
    faults += [
        ("recipe", check_recipe(o.ckc, o.folder, o.page)),
        ("flags", check_silenced(o.ckc, o.folder, o.models)),
    ]
    for name, fault in faults:
        if fault:
            failed += 1
            print(f"FAIL {name}: {fault}")
    unknown = {f[:-5] for f in os.listdir(o.folder)} - set(EXPECTED)
    if unknown:
        failed += 1
        print(f"FAIL nothing is expected of {sorted(unknown)}")
    print(f"{len(EXPECTED) + len(faults) - failed} passed, {failed} failed")
    return 1 if failed or not stems else 0


if __name__ == "__main__":
    sys.exit(main())
