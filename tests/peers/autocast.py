#!/usr/bin/env python3
"""Gradients of bfloat16 libraries beside PyTorch's autocast, over several batches: who is closer to
float64?

    autocast.py --ckc ckc --ckrun ckrun --models DIR [--draws 8] [--variant "CKC-FLAGS"]... [--table
    FILE] [NAME-GLOB...]

DIR holds NAME.onnx and NAME.json (see tests/tools/check_models.py) and export.py, which makes the
modules again: CASES[name]() has `inputs`, `outputs`, `loss` and `extra`; build() and as_exported()
give the module.  For each draw of the inputs the gradients of one step are taken three times: by
PyTorch in float64, by PyTorch in float32 under autocast on the CPU, and by the library; a model's
error is the median over its tensors of the difference's norm over the norm.  One batch says little,
on a tiny model the ratio of the two errors lies anywhere between a half and three; so it is the
ratio of geometric means over the draws that is printed, and between which single ones lie. Needs
torch, safetensors and what export.py needs.
"""

import argparse
import fnmatch
import json
import os
import shlex
import subprocess
import sys
import tempfile

import numpy as np
import torch
from safetensors.numpy import load_file
from safetensors.torch import save_file

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, os.pardir, "tools"))
import check_models  # noqa: E402

ZERO = 1e-7  # gradients that are zero but for rounding


def gradients(export, case, inputs, half):
    module = export.as_exported(case, export.build(case, 0.0)).double()
    if half:
        module = module.float()
    dtype = torch.float32 if half else torch.float64
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=half):
        out = module(
            *(
                inputs[k].to(dtype) if inputs[k].is_floating_point() else inputs[k]
                for k in case.inputs
            )
        )
        out = out if isinstance(out, tuple) else (out,)
        if isinstance(case.loss, dict):
            loss = torch.nn.functional.cross_entropy(
                out[0].reshape(-1, out[0].shape[-1]), case.extra["labels"].reshape(-1)
            )
        else:
            loss = out[list(case.outputs).index(case.loss) if len(out) > 1 else 0]
    loss.backward()
    return {n: p.grad.double().numpy() for n, p in module.named_parameters() if p.grad is not None}


def error(got, want):
    return float(
        np.median(
            [
                np.linalg.norm(got[k].astype(float) - v) / np.linalg.norm(v)
                for k, v in want.items()
                if k in got and got[k].shape == v.shape and np.linalg.norm(v) > ZERO
            ]
        )
    )


def draw(case, rng):
    """Other inputs of the same kind; masks and labels that are ignored stay."""
    made = {}
    for name, x in case.inputs.items():
        if x.is_floating_point():
            made[name] = torch.randn(x.shape, generator=rng, dtype=torch.float32).to(x.dtype)
        elif "mask" in name:
            made[name] = x
        else:
            y = torch.randint(0, max(int(x.max()) + 1, 2), x.shape, generator=rng)
            made[name] = torch.where(x < 0, x, y)
    return made


def libraries(o, name, work):
    stem = os.path.join(o.models, name)
    with open(stem + ".json", encoding="utf-8") as f:
        flags = check_models.compile_flags(json.load(f), name)
    for i, variant in enumerate(o.variant or [""]):
        so = os.path.join(work, f"{i}.so")
        subprocess.run(
            [
                o.ckc,
                stem + ".onnx",
                "-o",
                so,
                "--quiet",
                *flags,
                "--dtype",
                "bf16",
                *shlex.split(variant),
            ],
            check=True,
        )
        yield so


def errors(o, export, name):
    """By draw: autocast's, then each variant's."""
    case, rng, rows = export.CASES[name](), torch.Generator().manual_seed(7), []
    with tempfile.TemporaryDirectory() as work:
        feed, out, sos = (
            os.path.join(work, "in"),
            os.path.join(work, "out"),
            list(libraries(o, name, work)),
        )
        for _ in range(o.draws):
            inputs = draw(case, rng)
            want = gradients(export, case, inputs, False)
            rows.append([error(gradients(export, case, inputs, True), want)])
            extra = {k: v for k, v in (case.extra or {}).items() if k == "labels"}
            save_file({k: v.contiguous() for k, v in {**extra, **inputs}.items()}, feed)
            for so in sos:
                subprocess.run(
                    [o.ckrun, so, "--inputs", feed, "--steps", "1", "--grads", out, "--quiet"],
                    check=True,
                )
                rows[-1].append(error(load_file(out), want))
    return np.array(rows)


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--ckc", required=True)
    p.add_argument("--ckrun", required=True)
    p.add_argument("--models", required=True)
    p.add_argument("--draws", type=int, default=8)
    p.add_argument("--variant", action="append", help="flags for ckc; one column each")
    p.add_argument("--table", help="write the figures as a table")
    p.add_argument("names", nargs="*")
    o = p.parse_args()
    torch.set_num_threads(1)
    sys.path.insert(0, os.path.abspath(o.models))
    import export

    lines = [
        "| model | autocast |"
        + "".join(f" {v or 'bf16'} | ratio (single draws) |" for v in o.variant or [""]),
        "|---|---|" + "---|---|" * len(o.variant or [""]),
    ]
    for name in sorted(f[:-5] for f in os.listdir(o.models) if f.endswith(".json")):
        if name not in export.CASES or not any(fnmatch.fnmatch(name, g) for g in o.names or ["*"]):
            continue
        rows = errors(o, export, name)
        mean, single = np.exp(np.log(rows).mean(0)), rows / rows[:, :1]
        lines.append(
            f"| {name} | {mean[0]:.2e} |"
            + "".join(
                f" {mean[i]:.2e} | {mean[i] / mean[0]:.2f} ({single[:, i].min():.2f} to {single[:, i].max():.2f}) |"
                for i in range(1, rows.shape[1])
            )
        )
        print(lines[-1], flush=True)
    if o.table:
        with open(o.table, "w", encoding="utf-8") as f:
            f.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
