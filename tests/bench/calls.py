#!/usr/bin/env python3
"""Calls and bytes of a layer, counted over the plan of one training step: what a GPU is asked to do
besides arithmetic.

    calls.py --ckc ckc --gpt gpt [--model gpt2] [--batch 8] [--seq 1024] [--flags "--target cuda
    --dtype bf16"]
             [--forward N --backward N --bytes N --ms N --gib N] [--out results/NAME.md]

The model is samples/gpt's of that size without dropout, planned with everything kept.  A call is a
step of the schedule that is no view and belongs to a layer, whose number stands in the names of the
ONNX nodes that it carries out; first and last layers have other ends, so a layer is one from the
middle.  Bytes are those of the operands that a call reads and writes, each once, over tokens and
the width C; products and attention, whose time is arithmetic, are left out.  --ms and --gib
are the time and the peak of the planned step.  With limits: status 1 beyond one.  The standard
library is enough.
"""

import argparse
import collections
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile

ARITHMETIC = {"matmul", "matmul_end", "attention", "attention_grad", "classifier"}
SIZE = {"f32": 4, "bf16": 2, "f16": 2, "i64": 8, "i32": 4, "f64": 8, "bool": 1, "i8": 1, "u8": 1}


def must(argv):
    done = subprocess.run(
        [str(a) for a in argv],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
    )
    if done.returncode:
        sys.exit(f"{' '.join(map(str, argv))}: status {done.returncode}\n{done.stdout[-2000:]}")


def plan_of(o):
    with tempfile.TemporaryDirectory() as work:
        model, plan = os.path.join(work, "m.onnx"), os.path.join(work, "plan.json")
        must(
            [
                o.gpt,
                "--model",
                o.model,
                "--batch",
                o.batch,
                "--seq",
                o.seq,
                "--dropout",
                0,
                "-o",
                model,
            ]
        )
        must([o.ckc, model, "--plan-only", "--quiet", "--json", plan, *shlex.split(o.flags)])
        with open(plan, encoding="utf-8") as f:
            return json.load(f)


def nbytes(plan, ids):
    """Of values: a tensor without a type is scratch."""
    total = 0
    for i in ids:
        t = plan["tensors"][i] if i is not None else None
        if t and t["shape"] is not None:
            n = SIZE[t["dtype"]]
            for extent in t["shape"]:
                n *= extent
            total += n
    return total


def layer_of(step):
    """By the first ONNX node; the second of a norm in front of a layer is that layer's, too."""
    found = re.match(r"h\.(\d+)\.", step["onnx"][0]) if step["onnx"] else None
    return int(found.group(1)) if found else None


def count(plan, layer):
    """{(phase, op): [calls, bytes]} of the layer."""
    rows = collections.defaultdict(lambda: [0, 0])
    for step in plan["schedule"]:
        if not step["view"] and layer_of(step) == layer and step["phase"] != "update":
            row = rows[step["phase"], step["op"]]
            row[0] += 1
            row[1] += nbytes(plan, step["reads"] + step["writes"])
    return rows


def table(rows, per):
    lines = ["| phase | op | calls | bytes per token, in C |", "|---|---|---|---|"]
    for (phase, op), (calls, size) in sorted(
        rows.items(), key=lambda r: (r[0][0] != "forward", r[0][1])
    ):
        lines.append(
            f"| {phase} | {op} | {calls} | {'' if op in ARITHMETIC else f'{size / per:.1f}'} |"
        )
    return lines


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--ckc", required=True)
    p.add_argument("--gpt", required=True)
    p.add_argument("--model", default="gpt2")
    p.add_argument("--batch", type=int, default=8)
    p.add_argument("--seq", type=int, default=1024)
    p.add_argument("--flags", default="--target cuda --dtype bf16")
    for name in ("forward", "backward", "bytes", "ms", "gib"):
        p.add_argument("--" + name, type=float)
    p.add_argument("--out")
    o = p.parse_args()
    plan = plan_of(o)
    layers = {layer_of(s) for s in plan["schedule"]} - {None}
    layer = max(layers) // 2
    width = next(
        t["shape"][-1]
        for t in plan["tensors"]
        if t["kind"] == "param" and t["name"] == f"h.{layer}.norm1.weight"
    )
    rows, per = count(plan, layer), o.batch * o.seq * width
    found = {
        phase: sum(calls for (at, _), (calls, _) in rows.items() if at == phase)
        for phase in ("forward", "backward")
    }
    found["bytes"] = sum(size for (_, op), (_, size) in rows.items() if op not in ARITHMETIC) / per
    found["ms"] = plan["summary"]["step_seconds"] * 1e3
    found["gib"] = plan["summary"]["peak_bytes"] / 2**30
    lines = [
        f'`calls.py --model {o.model} --batch {o.batch} --seq {o.seq} --flags "{o.flags}"`: layer {layer} of {len(layers)}, C {width}.',
        "",
        *table(rows, per),
        "",
        f"{found['forward']} calls forward, {found['backward']} backward; {found['bytes']:.1f} C bytes per token outside of "
        f"products and attention.  Planned: {found['ms']:.1f} ms, {found['gib']:.1f} GiB.",
    ]
    print("\n".join(lines))
    if o.out:
        with open(o.out, "w", encoding="utf-8") as f:
            f.write("# Calls and bytes of a layer\n\n" + "\n".join(lines) + "\n")
    beyond = [
        name for name in found if getattr(o, name) is not None and found[name] > getattr(o, name)
    ]
    for name in beyond:
        print(f"FAIL {name}: {found[name]:.1f}, at most {getattr(o, name):g}")
    return 1 if beyond or not found["forward"] else 0


if __name__ == "__main__":
    sys.exit(main())
