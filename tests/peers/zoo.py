#!/usr/bin/env python3
"""Exports small models of many families with PyTorch's own numbers, for tests/tools/check_models.py
to train and compare.

    zoo.py --out DIR                     every model by both exporters
    zoo.py --out DIR --exporter ts lstm* those that match, by one exporter
    zoo.py --list
    zoo.py --out DIR --replicas 2        inputs and reference are of twice the batch that the file
    has, which check_models.py shares out to two replicas

For NAME and exporter E the files are
DIR/NAME-E<opset>.{onnx,inputs.safetensors,ref.safetensors,json}.  The reference is the module
itself, trained in float64 by torch.optim.AdamW on one fixed batch, dropout off.  Opsets go round:
TorchScript 11 to 17, dynamo 18 to 24.  A file that is there is kept.

    check_models.py --ckc ckc --ckrun ckrun --models DIR --table

Needs torch, onnx, onnxscript, safetensors; models of zoo_transformers.py need transformers as well.
"""

import argparse
import contextlib
import copy
import fnmatch
import io
import json
import os
import sys
import time
import traceback
import warnings
import zlib

import onnx
import torch
from safetensors.torch import save_file

import zoo_modules

OPTIMIZER = dict(kind="adamw", lr=1e-3, weight_decay=0.01, betas=[0.9, 0.999], eps=1e-8, steps=3)
TOLERANCE = dict(loss_rtol=1e-5, rtol=1e-4, atol=1e-6, noise=1e-5)


def batch_norm_training(x, weight, bias, mean, var, training=True, momentum=0.1, eps=1e-5):
    """The dynamo exporter translates every BatchNorm to inference form; this keeps the training
    form."""
    from onnxscript import opset18 as op

    y, m, v = op.BatchNormalization(
        x, weight, bias, mean, var, epsilon=eps, momentum=1.0 - momentum, training_mode=1
    )
    return y, m, v, m, v


def export(module, inputs, path, exporter, opset):
    args, kw = (
        tuple(inputs.values()),
        dict(input_names=list(inputs), output_names=["loss"], opset_version=opset),
    )
    if exporter == "dyn":
        kw.update(
            dynamo=True,
            optimize=False,
            external_data=False,
            verbose=False,
            custom_translation_table={
                torch.ops.aten._native_batch_norm_legit_functional.default: batch_norm_training
            },
        )
    else:
        kw.update(
            dynamo=False, training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False
        )
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        torch.onnx.export(module, args, path, **kw)


def reference(module, inputs, known):
    """What training in float64 gives: first gradients, last parameters and losses."""
    m = copy.deepcopy(module).double()
    inputs = [x.double() if x.is_floating_point() else x for x in inputs.values()]
    params = {}
    for n, p in m.named_parameters(
        remove_duplicate=False
    ):  # tied ones go by the name that the file has
        if p.requires_grad and n in known and all(p is not q for q in params.values()):
            params[n] = p
    o = OPTIMIZER
    opt = torch.optim.AdamW(
        params.values(), lr=o["lr"], betas=o["betas"], eps=o["eps"], weight_decay=o["weight_decay"]
    )
    losses, first = [], None
    for _ in range(o["steps"]):
        opt.zero_grad()
        loss = m(*inputs)
        loss.backward()
        losses.append(loss.item())
        first = first or {n: p.grad.clone() for n, p in params.items() if p.grad is not None}
        opt.step()
    return first, {n: params[n].detach() for n in first}, losses


def more_samples(inputs, replicas):
    """As many batches behind one another, no two alike: values of the first one, moved along the
    last dim."""
    batch = next(len(x) for x in inputs.values() if x.dim())

    def others(x):
        rows = [x] + [
            torch.roll(x, r, -1) * (1 - 0.1 * r if x.is_floating_point() else 1)
            for r in range(1, replicas)
        ]
        return torch.cat(rows).to(x.dtype)

    return {k: others(x) if x.dim() and len(x) == batch else x for k, x in inputs.items()}


def write(name, exporter, opset, folder, replicas=1):
    stem = os.path.join(folder, f"{name}-{exporter}{opset}")
    if os.path.exists(stem + ".json") or os.path.exists(stem + ".cannot"):
        return None
    torch.manual_seed(zlib.crc32(name.encode()))
    module, inputs = zoo_modules.MODELS[name]()
    module.train()
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for p in (
            [] if getattr(module, "exact", False) else module.parameters()
        ):  # no two parameters equal by accident, no zero gradients by symmetry
            p.add_(torch.randn(p.shape, generator=generator) * 0.02)
    try:
        if not os.path.exists(stem + ".onnx"):
            export(copy.deepcopy(module), inputs, stem + ".onnx", exporter, opset)
    except Exception as e:  # the exporter's limits are not ours
        text = (str(e).strip().splitlines() or [type(e).__name__])[0][:200]
        with open(stem + ".cannot", "w") as f:
            f.write(text + "\n")
        return "not exported: " + text
    model = onnx.load(stem + ".onnx")
    known = {t.name for t in model.graph.initializer}
    inputs = more_samples(inputs, replicas)
    grads, params, losses = reference(module, inputs, known)
    tied = {id(p) for n, p in module.named_parameters(remove_duplicate=False) if n in known}
    lost = sorted(n for n, p in module.named_parameters() if p.requires_grad and id(p) not in tied)
    ref = {"loss": torch.tensor(losses, dtype=torch.float32)}
    for n in grads:
        ref["grad." + n], ref["param." + n] = (
            grads[n].float().contiguous(),
            params[n].float().contiguous(),
        )
    used = {i.name for i in model.graph.input}
    save_file(ref, stem + ".ref.safetensors")
    save_file(
        {k: v.contiguous() for k, v in inputs.items() if k in used}, stem + ".inputs.safetensors"
    )
    meta = dict(
        source=dict(exporter=exporter, opset=opset, torch=torch.__version__),
        dims={},
        loss="loss",
        parameters=sorted(grads),
        buffers=[],
        optimizer=OPTIMIZER,
        tolerance=TOLERANCE,
        nodes=len(model.graph.node),
    )
    if replicas > 1:
        meta["replicas"] = replicas
    if lost:
        meta["parameters_lost_by_exporter"] = lost
    with open(stem + ".json", "w") as f:
        json.dump(meta, f, indent=1)
    return f"{len(model.graph.node)} nodes, {len(grads)} parameters, loss {losses[0]:.6f} -> {losses[-1]:.6f}{', lost: ' + ' '.join(lost) if lost else ''}"


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("glob", nargs="*", default=["*"])
    p.add_argument("--out", default=".")
    p.add_argument("--exporter", choices=["ts", "dyn"], action="append")
    p.add_argument("--opset", type=int, help="instead of going round")
    p.add_argument("--replicas", type=int, default=1)
    p.add_argument("--list", action="store_true")
    o = p.parse_args()
    warnings.filterwarnings("ignore")
    with contextlib.suppress(ImportError):
        import zoo_transformers

        zoo_modules.MODELS.update(zoo_transformers.MODELS)
    names = [n for n in zoo_modules.MODELS if any(fnmatch.fnmatch(n, g) for g in o.glob)]
    if o.list:
        print("\n".join(names))
        return 0
    os.makedirs(o.out, exist_ok=True)
    for name in names:
        for exporter in o.exporter or ["ts", "dyn"]:
            turn = zlib.crc32(name.encode()) // 7
            opset = o.opset or (11 + turn % 7 if exporter == "ts" else 18 + turn % 7)
            start = time.time()
            try:
                said = write(name, exporter, opset, o.out, o.replicas)
            except Exception:
                said = "FAULT: " + traceback.format_exc().strip().splitlines()[-1]
            if said:
                print(f"{name}-{exporter}{opset}: {said}, {time.time() - start:.1f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
