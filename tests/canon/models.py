#!/usr/bin/env python3
"""Pass canon on real exports: everything that has a fused op is recognised.

usage: models.py --ckc PATH [DIR]

DIR holds NAME.onnx and NAME.json (dims to bind, loss).  The counts below are
per file; what exporters write them as differs, the result may not.
"""

import argparse
import collections
import json
import os
import re
import subprocess
import sys

COUNTED = (
    "attention",
    "layernorm",
    "rmsnorm",
    "gelu",
    "silu",
    "sce",
    "dropout",
    "matmul",
    "expert_matmul",
    "gather_nd",
    "concat",
)
# No trace of these may be left, in decomposed form or as mask arithmetic.
FORBIDDEN = (
    "softmax",
    "erf",
    "sqrt",
    "pow",
    "exp",
    "isnan",
    "expand",
    "trilu",
    "sigmoid",
    "max",
    "min",
    "div",
    "recip",
)

GPT2 = dict(attention=2, layernorm=5, gelu=2, sce=1, matmul=9)
LLAMA = dict(attention=2, rmsnorm=5, silu=2, sce=1, matmul=15, concat=4)
BERT = dict(attention=2, layernorm=5, gelu=2, sce=1, matmul=14)
DEEPSEEK = dict(silu=2, matmul=4, expert_matmul=2)
GPT_OSS = dict(matmul=1, expert_matmul=2)
EXPECTED = {
    "bert-cls-dynamo": dict(BERT, dropout=6),
    "bert-cls-ts17-dyn": BERT,
    "bert-mlm-dynamo-dyn": dict(BERT, layernorm=6, gelu=3),
    "chargpt": GPT2,
    "chargpt-2m7": dict(attention=6, layernorm=13, gelu=6, sce=1, matmul=25),
    "chargpt-dyn-o24": GPT2,
    "chargpt-ts14": dict(GPT2, dropout=5),
    "encoder-dynamo": dict(attention=2, layernorm=4, gelu=2, sce=1, matmul=9, dropout=6),
    "encoder-ts17": dict(attention=2, layernorm=4, gelu=2, sce=1, matmul=9, dropout=6),
    "experts/deepseek-v3-block-dyn22": DEEPSEEK,
    "experts/deepseek-v3-block-ts15": DEEPSEEK,
    "experts/gpt-oss-block-dyn22": GPT_OSS,
    "experts/gpt-oss-block-ts15": GPT_OSS,
    "gpt2-default": GPT2,
    "gpt2-default-dyn": GPT2,
    "gpt2-dropout-dynamo": dict(GPT2, dropout=5),
    "gpt2-dropout-ts17": dict(GPT2, dropout=5),
    "gpt2-dynamo": GPT2,
    "gpt2-dynamo-dyn": GPT2,
    "gpt2-dynamo-o23-dyn": GPT2,
    "gpt2-eval": GPT2,
    "gpt2-inputs-ts14": GPT2,
    "gpt2-logits": GPT2,
    "gpt2-tied-by-accident": GPT2,
    "gpt2-ts14": GPT2,
    "gpt2-ts17-dyn": GPT2,
    "gpt2-untied-by-optimizer": GPT2,
    "llama-default": LLAMA,
    "llama-dynamo": LLAMA,
    "llama-dynamo-o23": LLAMA,
    "llama-dynamo-tied": LLAMA,
    "llama-ts17-dyn": LLAMA,
    "mlp-mse": dict(matmul=3),
    "mlp-ts13-mse": dict(matmul=3),
    "qwen2-moe-dyn": dict(
        attention=1, rmsnorm=3, silu=2, sce=1, matmul=10, concat=2, expert_matmul=2
    ),
}
# What the choice of experts is made of.
ROUTING = {
    "qwen2-moe-dyn": ("softmax", "expand", "sigmoid", "div"),
    "deepseek-v3-block-dyn22": ("expand", "sigmoid", "div"),
    "deepseek-v3-block-ts15": ("expand", "sigmoid", "div"),
    "gpt-oss-block-dyn22": ("softmax", "expand", "sigmoid"),
    "gpt-oss-block-ts15": ("softmax", "expand", "sigmoid"),
}


def canon(ckc, stem):
    """Ops of the graph after passes canon and loss, with their numbers."""
    with open(stem + ".json", encoding="utf-8") as f:
        meta = json.load(f)
    args = [ckc, stem + ".onnx", "--stop-after=loss"]
    for name, size in meta["dims"].items():
        args += ["--dim", "%s=%d" % (name, size)]
    loss = meta["loss"]
    if isinstance(loss, dict):
        args += ["--loss", "%s:%s" % (loss["kind"], loss["logits"])]
    r = subprocess.run(
        args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, check=False
    )
    if r.returncode:
        raise RuntimeError(r.stderr.decode("utf-8", "replace").strip())
    return collections.Counter(re.findall(r"^\t%.* = ([a-z_]+)\b", r.stdout.decode(), re.M))


def check(ckc, stem, expected):
    name = os.path.basename(stem)
    try:
        ops = canon(ckc, stem)
    except RuntimeError as e:
        return [str(e)]
    faults = [
        "%d %s, expected %d" % (ops[op], op, expected.get(op, 0))
        for op in COUNTED
        if ops[op] != expected.get(op, 0)
    ]
    left = [op for op in FORBIDDEN if ops[op] and op not in ROUTING.get(name, ())]
    return faults + ["%d %s left" % (ops[op], op) for op in left]


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser()
    parser.add_argument("--ckc", required=True)
    parser.add_argument("dir", nargs="?", default=os.path.join(here, "../models"))
    args = parser.parse_args()
    passed = failed = 0
    for name, expected in sorted(EXPECTED.items()):
        stem = os.path.join(args.dir, name)
        if not os.path.exists(stem + ".onnx"):
            continue
        faults = check(args.ckc, stem, expected)
        for fault in faults:
            print("%s: %s" % (name, fault))
        failed += bool(faults)
        passed += not faults
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
