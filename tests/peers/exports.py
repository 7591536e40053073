#!/usr/bin/env python3
"""Exports models of many families by ckc.torch.export, which proves each file against the module in
float64, and trains them in bf16; one row of a table for each.

    exports.py --ckc build/ckc --out FILE.md [NAME ...]     names are globs of zoo.py --list

A cell is `equal` or why the export was refused.  The last column is how far the loss and the norm
of the gradient of a step in bf16 are from the module's in float64, in per cent.

Needs torch, onnx, onnxscript and transformers.
"""

import argparse
import copy
import datetime
import fnmatch
import os
import sys
import tempfile
import warnings
import zlib

import torch

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "frontend", "python"))
import zoo_modules
import zoo_transformers

MODELS = {**zoo_modules.MODELS, **zoo_transformers.MODELS}


def named(module, names):
    """forward with these parameters, in place of *args."""

    class Named(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.module = module

    scope = {}
    args = ", ".join(names)
    exec(f"def forward(self, {args}): return self.module({args})", scope)
    Named.forward = scope["forward"]
    return Named()


def made(name):
    torch.manual_seed(zlib.crc32(name.encode()))
    module, inputs = MODELS[name]()
    module = named(module, list(inputs)).train()
    for m in module.modules():
        if isinstance(m, torch.nn.modules.dropout._DropoutNd):
            m.p = 0.0
    return module, list(inputs.values())


def exported(export, name, path, dynamo):
    module, inputs = made(name)
    try:
        export(module, inputs, path, dynamo=dynamo)
    except Exception as e:  # a row of the table
        return str(e).splitlines()[0][:160] if str(e) else type(e).__name__
    return "equal"


def norm(tensors):
    return sum(float((x.double() ** 2).sum()) for x in tensors) ** 0.5


def in_bf16(ckc, name, path):
    """Of one step: per cent by which loss and norm of the gradient differ."""
    module, inputs = made(name)
    exact = copy.deepcopy(module).double()
    result = exact(*[x.double() if x.is_floating_point() else x for x in inputs])
    loss = result[0] if isinstance(result, tuple) else result
    loss.backward()
    want = norm(p.grad for p in exact.parameters() if p.grad is not None)
    model = ckc.compile(path, dtype="bf16", update_in_backward="off")
    with ckc.Trainer(model, lr=0.0, clip=1e9) as t:  # which makes the norm
        got = t.step(**dict(zip(t.inputs, inputs)))
        grad = t.grad_norm
    return f"{100 * abs(got / float(loss) - 1):.2f}, {100 * abs(grad / want - 1):.2f}"


def row(ckc, export, name, folder):
    cells = []
    path = os.path.join(folder, name + ".onnx")
    for dynamo in (False, True):
        cells.append(exported(export, name, path, dynamo))
        if cells[-1] == "equal" and len(cells) < 3:
            good = path + ".good"
            os.replace(path, good)
    if "equal" not in cells:
        return [*cells, ""]
    os.replace(good, path)
    try:
        return [*cells, in_bf16(ckc, name, path)]
    except Exception as e:
        return [*cells, str(e).splitlines()[0][:160]]


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("names", nargs="*", default=["*"])
    p.add_argument("--ckc", required=True)
    p.add_argument("--out", required=True)
    o = p.parse_args()
    os.environ["CKC_HOME"] = os.path.dirname(os.path.abspath(o.ckc))
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    import ckc
    import ckc.torch

    lines = [
        f"# Exports by ckc.torch.export, {datetime.date.today()}",
        "",
        f"torch {torch.__version__}; each file is compared with the module in float64 by the export itself.",
        "bf16: loss and norm of the gradient of a step, difference to float64 in per cent.",
        "",
        "| model | TorchScript | dynamo | bf16 |",
        "|---|---|---|---|",
    ]
    with tempfile.TemporaryDirectory(prefix="ckc-exports-") as folder:
        for name in MODELS:
            if not any(fnmatch.fnmatch(name, g) for g in o.names):
                continue
            cells = [x.replace("|", "\\|") for x in row(ckc, ckc.torch.export, name, folder)]
            lines.append(f"| {name} | {' | '.join(cells)} |")
            print(lines[-1], flush=True)
            with open(o.out, "w") as f:
                f.write("\n".join(lines) + "\n")


main()
