#!/usr/bin/env python3
"""Packing of model plans: arena against live bound, one row per model.

    pack.py BUILD [--models DIR] [MODEL.onnx [FLAGS]]...

BUILD holds ckc, gpt and bench/bench_pack.  Each model is planned at many budgets between
keep-everything and the least that works; every plan's buffers are packed again by bench_pack, alone
and timed.  Models: those of tests/models, GPT and LLaMA shapes up to 128 layers, and what the
arguments name.  A row has the number of plans, the largest number of buffers, in how many plans the
arena is the live bound, the worst waste, and the longest packing in milliseconds of processor time.
"""

import argparse
import glob
import json
import os
import shlex
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, os.pardir, "e2e"))
SHAPES = {
    "gpt, 12 layers": "--layers 12 --hidden 768 --heads 12 --seq 256 --batch 4 --vocab 50257",
    "gpt, 96 layers": "--layers 96 --hidden 768 --heads 12 --seq 256 --batch 4 --vocab 50257",
    "gpt, 128 layers": "--layers 128 --hidden 768 --heads 12 --seq 256 --batch 4 --vocab 50257",
    "llama, 32 layers": "--like llama --layers 32 --hidden 1024 --heads 16 --kv-heads 4 --seq 512 --batch 2 --vocab 32000",
}
STEPS = 12


def write_buffers(plan, path):
    """The places of owners in the arena, as live ranges; returns arena and live bound."""
    first, last = {}, {}
    for t in plan["tensors"]:
        owner = t["id"] if t["alias_of"] is None else t["alias_of"]
        first[owner] = min(first.get(owner, t["first"]), t["first"])
        last[owner] = max(last.get(owner, t["last"]), t["last"])
    with open(path, "w") as f:
        print("id,lower,upper,size", file=f)
        for t in plan["tensors"]:
            if t["alias_of"] is None and not t["resident"] and t["bytes"]:
                print(t["id"], first[t["id"]], last[t["id"]] + 1, t["bytes"], sep=",", file=f)
    return plan["summary"]["arena_bytes"], plan["summary"]["live_bound_bytes"]


def plans(ckc, model, flags, folder):
    """CSV files of this model's plans, from keep-everything to the least budget; and plans whose
    arena is not the live bound."""
    js = os.path.join(folder, "plan.json")

    def run(*more):
        done = subprocess.run(
            [ckc, model, *flags, "--plan-only", "--quiet", "--json", js, *more],
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise RuntimeError(f"{model} {more}: {done.stderr.strip()[-300:]}")
        with open(js) as f:
            return json.load(f)

    points = run("--curve")["curve"]
    budgets = sorted(
        {points[i * (len(points) - 1) // STEPS]["budget_bytes"] for i in range(STEPS + 1)}
    )
    files, above = [], 0
    for budget in budgets:
        files.append(os.path.join(folder, f"{budget}.csv"))
        arena, bound = write_buffers(run("--memory-budget", f"{budget}B"), files[-1])
        above += arena > bound
    return files, above


def row(tools, name, model, flags):
    with tempfile.TemporaryDirectory() as folder:
        try:
            files, above = plans(tools["ckc"], model, flags, folder)
        except RuntimeError as error:
            print(f"| {name} | {error} |", flush=True)
            return
        out = subprocess.run(
            [tools["bench"], *files], capture_output=True, text=True, check=True
        ).stdout.split("\n")
        rows = [line.split() for line in out if line]
    reached = sum(r[5] == "optimal" for r in rows)
    print(
        f"| {name} | {len(rows)} | {max(int(r[1]) for r in rows):,} | {reached} | {max(float(r[4]) for r in rows):.4f} | "
        f"{len(rows) - above} | {max(float(r[6]) for r in rows):.1f} |",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument(
        "--models", action="append", default=[os.path.join(HERE, os.pardir, "models")]
    )
    parser.add_argument("more", nargs="*", help="'MODEL.onnx FLAGS' in one word")
    args = parser.parse_args()
    tools = {
        "ckc": os.path.join(args.build, "ckc"),
        "gpt": os.path.join(args.build, "gpt"),
        "bench": os.path.join(args.build, "bench", "bench_pack"),
    }
    sys.argv = sys.argv[:1] + ["-", "-"]
    import ck

    print(
        "| model | plans | buffers, at most | packed to the live bound | worst waste, % | so in ckc's plan | longest, ms |"
    )
    print("|---|---|---|---|---|---|---|")
    for folder in args.models:
        for path in sorted(glob.glob(os.path.join(folder, "*.onnx"))):
            if os.path.exists(path[:-5] + ".json"):
                row(tools, os.path.basename(path)[:-5], path, ck.model_flags(path[:-5])[0])
    with tempfile.TemporaryDirectory() as folder:
        for name, shape in SHAPES.items():
            path = os.path.join(folder, "shape.onnx")
            subprocess.run(
                [tools["gpt"], *shlex.split(shape), "-o", path], check=True, capture_output=True
            )
            row(tools, name, path, [])
    for words in map(shlex.split, args.more):
        row(tools, os.path.basename(words[0]), words[0], words[1:])


if __name__ == "__main__":
    main()
