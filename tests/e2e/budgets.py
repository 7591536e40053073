#!/usr/bin/env python3
"""Budgets: what is kept or recomputed never shows in a number, and the promised bytes are kept.

    budgets.py CKC CKRUN [--flags "..."] [MODEL...]

For each model, from keep-everything down to the least feasible budget: the referee accepts the
plan, its peak is within the budget, its predicted time is monotone, the process measures the
predicted peak, and losses, gradients and parameters are the same bits as those of keep-everything,
dropout on, at one thread and at two; those are the interpreter's.  Below the least budget ckc
refuses and names it.
"""

import json
import os
import re
import shlex
import sys

import ck
from truth import ADAM16, DEEP, Truth

sys.path.insert(0, ck.TOOLS)
from planfiles import read_json  # noqa: E402
from replay import Replay  # noqa: E402

# models with results of loops that one loop of backward reads: recomputing them takes no memory
INLINES = ("resnet-dynamo-bn", "unet-dynamo")
# models that ranks help
RANKS = ("gpt2-ts14", "gpt2-dropout-ts17", "llama-dynamo", "bert-cls-dynamo")
FRACTIONS = (1.0, 0.95, 0.9, 0.85, 0.8, 0.75)


def referee(bench, path, what):
    faults = Replay(read_json(path)).faults
    bench.check(not faults, f"{what}: the referee says {faults[:3]}")


def train(bench, so, inputs, threads, tag):
    """Bytes of losses, gradients and parameters of three steps, by what computes larger models."""
    library = () if bench.gpu else ("--blas", "onednn")
    log, grads, params = (bench.path(f"{tag}.{x}") for x in ("jsonl", "grads", "params"))
    done = bench.ckrun(
        so,
        "--inputs",
        inputs,
        "--steps",
        3,
        "--lr",
        "1e-3",
        "--log",
        log,
        "--grads",
        grads,
        "--save",
        params,
        "--threads",
        threads,
        *library,
    )
    if not bench.must(done, f"ckrun {tag}"):
        return None, None
    return (ck.losses(log), ck.content(grads), ck.content(params)), max(
        r["peak_bytes"] for r in ck.log_rows(log) if "peak_bytes" in r
    )


def compile_plan(bench, stem, flags, budget, tag):
    so, js = bench.path(tag + ".so"), bench.path(tag + ".plan.json")
    more = [] if budget is None else ["--memory-budget", budget]
    return bench.ckc(stem + ".onnx", "-o", so, "--json", js, *flags, *more), so, js


def again(plan):
    """What --check says of values computed again: it compares each of them, views of them too."""
    made = {
        t
        for step in plan["schedule"]
        if step["phase"] == "recompute"
        for t in step["writes"]
        if t is not None
    }
    return f"{sum(plan['tensors'][t]['kind'] != 'workspace' for t in made)} of them recomputed"


def with_nan(path, to):
    """A copy of a safetensors file with NaN in its first float32 tensor; whether there is one."""
    raw = bytearray(ck.content(path))
    data = 8 + int.from_bytes(raw[:8], "little")
    at = [
        t["data_offsets"][0]
        for n, t in json.loads(raw[8:data]).items()
        if n != "__metadata__" and t["dtype"] == "F32"
    ]
    if not at:
        return False
    raw[data + at[0] : data + at[0] + 4] = b"\0\0\xc0\x7f"
    with open(to, "wb") as f:
        f.write(raw)
    return True


def skips(bench, so, inputs, name):
    """A step whose loss is NaN leaves parameters, running statistics and optimizer state as they
    were."""
    bad, end = bench.path("nan.safetensors"), bench.path("skipped.safetensors")
    if not with_nan(inputs, bad):
        return
    done = bench.ckrun(so, "--inputs", bad, "--steps", 2, "--on-nan", "skip", "--save", end)
    if not bench.must(done, f"{name}: --on-nan skip"):
        return
    bench.check("2 steps skipped" in done.stdout, f"{name}: not skipped: {done.stdout[-200:]}")
    before, after = ck.tensors(so[:-3] + ".safetensors"), ck.tensors(end)
    changed = [n for n, t in after.items() if (t != before[n] if n in before else any(t[2]))]
    bench.check(not changed, f"{name}: skipped steps have changed {changed[:5]}")
    stopped = bench.ckrun(so, "--inputs", bad, "--steps", 2)
    bench.check(
        stopped.returncode == 1 and "the loss is not finite" in stopped.stderr,
        f"{name}: NaN does not stop: {stopped.stderr}",
    )


def ranks(bench, stem, flags, budgets, name):
    """A --tp that a refusal offers does what it promises."""
    offered = 0
    for budget in budgets:
        refused = bench.ckc(
            stem + ".onnx", "-o", bench.path("no.so"), *flags, "--memory-budget", budget
        )
        offer = re.search(
            r"(\d+) B per rank on \d ranks, which is enough: .*; try: --tp (\d)", refused.stderr
        )
        if not offer:
            continue
        offered += 1
        js = bench.path("offered.plan.json")
        done = bench.ckc(
            stem + ".onnx",
            "--plan-only",
            *flags,
            "--memory-budget",
            budget,
            "--tp",
            offer[2],
            "--json",
            js,
        )
        if bench.must(done, f"{name}: --tp {offer[2]}, which was offered for {budget} B"):
            peak = ck.plan(js)["summary"]["peak_bytes"]
            bench.check(
                peak == int(offer[1]) <= budget,
                f"{name}: --tp {offer[2]} takes {peak} B, {offer[1]} were said",
            )
    bench.check(offered > 0 or name not in RANKS, f"{name}: ranks are not offered")


def one(bench, name, more):
    stem = os.path.join(ck.MODELS, name)
    flags = ck.model_flags(stem)[0] + more
    inputs = stem + ".inputs.safetensors"
    done, so, js = compile_plan(bench, stem, flags, None, name + "-all")
    if not bench.must(done, f"{name}: keep everything"):
        return
    referee(bench, js, name)
    whole = ck.plan(js)
    full = whole["summary"]
    bench.check(full["recompute_seconds"] == 0, f"{name}: keep-everything recomputes")
    refused = bench.ckc(stem + ".onnx", "-o", bench.path("no.so"), *flags, "--memory-budget", "1B")
    found = ck.ERRORS.search(refused.stderr)
    if not bench.check(
        refused.returncode == 1 and found,
        f"{name}: a budget of 1 byte: {refused.stderr.strip()[:300]}",
    ):
        return
    help = (
        r"about \d+ B less: fewer samples; try: --dim \w+=\d+"
        if ck.model_flags(stem)[1].get("dims")
        else "a smaller batch: the file fixes the batch size"
    )
    bench.check(
        re.search(help, refused.stderr),
        f"{name}: no offer of '{help}' in: {refused.stderr.strip()[-600:]}",
    )
    bench.check(
        "--tp" not in refused.stderr, f"{name}: ranks fit one byte: {refused.stderr.strip()[-600:]}"
    )
    least = int(found.group(1))
    bench.check(not os.path.exists(bench.path("no.so")), f"{name}: a refusal left a file")
    bench.check(
        least <= full["peak_bytes"],
        f"{name}: the least budget {least} is above everything, {full['peak_bytes']}",
    )
    below = bench.ckc(
        stem + ".onnx", "-o", bench.path("no.so"), *flags, "--memory-budget", least - 1
    )
    bench.check(
        below.returncode == 1 and str(least) in below.stderr,
        f"{name}: one byte less than {least} is not refused",
    )
    ranks(bench, stem, flags, (least - 1, least // 2, least // 4), name)
    reference = {t: train(bench, so, inputs, t, f"{name}-all-{t}") for t in (1, 2)}
    optimizer = more[more.index("--optimizer") :][:2] if "--optimizer" in more else []
    Truth(
        bench, stem + ".onnx", [*ck.model_flags(stem)[0], *optimizer], inputs, "--steps", 3
    ).check(
        f"{name}: keep everything",
        # Adam turns more of some models' gradients near zero
        ADAM16 if "--dtype" in more else (*DEEP[:2], 1e-4),
        reference[1][0][0],
        f"{name}-all-1.grads",
        f"{name}-all-1.params",
        dtype="f16" if "--master-weights" in more else "f32",
    )
    for t in (1, 2):
        bench.peak(reference[t][1], whole, name)
    bench.measured(so, inputs, whole, name)
    skips(bench, so, inputs, name)
    budgets = [int(full["peak_bytes"] * f) for f in FRACTIONS if full["peak_bytes"] * f > least]
    budgets += [(least + full["peak_bytes"]) // 2, least]
    before, inlined = None, 0
    for budget in sorted(set(budgets), reverse=True):
        tag = f"{name}-{budget}"
        done, so, js = compile_plan(bench, stem, flags, budget, tag)
        if not bench.must(done, tag):
            continue
        referee(bench, js, tag)
        plan = ck.plan(js)
        s = plan["summary"]
        inlined += sum(len(step["inlined"]) for step in plan["schedule"])
        bench.check(s["peak_bytes"] <= budget, f"{tag}: peak {s['peak_bytes']}")
        bench.check(
            s["baseline_peak_bytes"] == full["peak_bytes"],
            f"{tag}: baseline {s['baseline_peak_bytes']}",
        )
        bench.check(
            before is None or s["step_seconds"] >= before - 1e-12,
            f"{tag}: faster than with more memory",
        )
        before = s["step_seconds"]
        for t in (1, 2):
            numbers, peak = train(bench, so, inputs, t, f"{tag}-{t}")
            if numbers is None:
                continue
            bench.peak(peak, plan, tag)
            for what, a, b in zip(
                ("losses", "gradients", "parameters"), numbers, reference[t][0] or (None,) * 3
            ):
                bench.check(a == b, f"{tag}: {what} differ from keep-everything at {t} threads")
        bench.measured(so, inputs, plan, tag)
        checked = bench.ckrun(so, "--inputs", inputs, "--check")
        bench.must(checked, f"{tag}: ckrun --check")
        bench.check(
            again(plan) in checked.stdout,
            f"{tag}: expected '{again(plan)}' in: {checked.stdout[-200:]}",
        )
    bench.check(
        inlined > 0 or name not in INLINES, f"{name}: no budget made a loop take in another one"
    )


def main():
    more = shlex.split(ck.option("--flags", ""))
    bench = ck.Bench()
    bench.gpu = "cuda" in more
    for name in bench.names:
        one(bench, name, more)
    bench.finish()


if __name__ == "__main__":
    main()
