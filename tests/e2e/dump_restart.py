#!/usr/bin/env python3
"""A dump of any stage is a model like another: going on from it gives the same plan.

dump_restart.py CKC CKRUN
"""

import os

import ck

SUMS = (
    "peak_bytes",
    "arena_bytes",
    "resident_bytes",
    "workspace_bytes",
    "optimizer_bytes",
    "grad_bytes",
    "step_flops",
    "recompute_flops",
)


def planned(path):
    plan = ck.plan(path)
    return [plan["summary"][k] for k in SUMS], [(s["op"], s["phase"]) for s in plan["schedule"]]


def check(bench, model, *extra):
    stem = os.path.join(ck.MODELS, model)
    flags, _ = ck.model_flags(stem)
    flags += extra
    name = model + "".join(extra)
    dumps, js = bench.path(name + ".d"), bench.path("p.json")
    done = bench.ckc(
        stem + ".onnx",
        *flags,
        "--plan-only",
        "--quiet",
        "--json",
        js,
        "--dump=all",
        "--dump-dir",
        dumps,
    )
    if not bench.must(done, name):
        return
    want = planned(js)
    stages = sorted(os.listdir(dumps))
    bench.check(len(stages) >= 13, f"{name}: dumps {stages}")
    for stage in stages:
        done = bench.ckc(os.path.join(dumps, stage), *flags, "--plan-only", "--quiet", "--json", js)
        if bench.must(done, f"{name}: {stage}"):
            bench.check(
                planned(js) == want,
                f"{name}: {stage} gives another plan: {planned(js)[0]}, expected {want[0]}",
            )


def main():
    bench = ck.Bench()
    check(bench, "mlp-mse")
    check(bench, "mlp-mse", "--optimizer", "sgd", "--update-in-backward", "on")
    check(bench, "mlp-mse", "--grad-accum", "2")
    check(bench, "gpt2-ts14", "--recompute", "full")
    bench.finish()


if __name__ == "__main__":
    main()
