#!/usr/bin/env python3
"""Budgets below what one recompute reaches: nodes are repeated again and again, and the bits stay.

    recursive.py CKC CKRUN GPT

A GPT of eight layers with dropout, updates after backward and in it.  At the least budget that ckc
names and at some above: the referee accepts the plan, some node runs three times or more, the
process measures the predicted peak, and losses, gradients and parameters are the same bits as those
of keep-everything, at one thread and at two.
"""

import collections
import json
import os
import random
import struct
import sys

import budgets
import ck
from truth import DEEP, Truth

LAYERS, SEQ, BATCH, VOCAB = 8, 32, 2, 64


def write_inputs(path):
    """Token ids and labels as safetensors."""
    rnd = random.Random(5)
    size = BATCH * SEQ * 8
    head = {
        name: {"dtype": "I64", "shape": [BATCH, SEQ], "data_offsets": [i * size, (i + 1) * size]}
        for i, name in enumerate(("input_ids", "labels"))
    }
    text = json.dumps(head).encode()
    with open(path, "wb") as sink:
        sink.write(struct.pack("<Q", len(text)) + text)
        for _ in head:
            sink.write(
                struct.pack(f"<{BATCH * SEQ}q", *(rnd.randrange(VOCAB) for _ in range(BATCH * SEQ)))
            )


def runs(plan):
    """How often the node that runs most often does so."""
    count = collections.Counter(step["of"] for step in plan["schedule"] if step["of"] is not None)
    return 1 + max(count.values(), default=0)


def one(bench, model, inputs, form):
    flags = ["--update-in-backward", form]
    done, so, js = budgets.compile_plan(bench, model, flags, None, f"all-{form}")
    if not bench.must(done, f"{form}: keep everything"):
        return
    full = ck.plan(js)["summary"]["peak_bytes"]
    reference = {t: budgets.train(bench, so, inputs, t, f"all-{form}-{t}")[0] for t in (1, 2)}
    Truth(bench, model + ".onnx", [], inputs, "--steps", 3).check(
        f"{form}: keep everything",
        DEEP,
        reference[1][0],
        f"all-{form}-1.grads",
        f"all-{form}-1.params",
    )
    refused = bench.ckc(model + ".onnx", "-o", bench.path("no.so"), *flags, "--memory-budget", "1B")
    found = ck.ERRORS.search(refused.stderr)
    if not bench.check(
        refused.returncode == 1 and found,
        f"{form}: a budget of 1 byte: {refused.stderr.strip()[:300]}",
    ):
        return
    least, before = int(found.group(1)), None
    below = bench.ckc(
        model + ".onnx", "-o", bench.path("no.so"), *flags, "--memory-budget", least - 1
    )
    bench.check(
        below.returncode == 1 and str(least) in below.stderr,
        f"{form}: one byte less than {least} is not refused",
    )
    for budget in (least, least + (full - least) // 50, least + (full - least) // 20):
        tag = f"{form}-{budget}"
        done, so, js = budgets.compile_plan(bench, model, flags, budget, tag)
        if not bench.must(done, tag):
            continue
        budgets.referee(bench, js, tag)
        plan = ck.plan(js)
        s = plan["summary"]
        bench.check(s["peak_bytes"] <= budget, f"{tag}: peak {s['peak_bytes']}")
        bench.check(
            before is None or s["step_seconds"] <= before, f"{tag}: slower than with less memory"
        )
        bench.check(budget > least or runs(plan) > 2, f"{tag}: no node runs more than twice")
        before = s["step_seconds"]
        for t in (1, 2):
            numbers, peak = budgets.train(bench, so, inputs, t, f"{tag}-{t}")
            bench.peak(peak or 0, plan, tag)
            bench.check(
                numbers is not None and numbers == reference[t], f"{tag}: other bits at {t} threads"
            )
        checked = bench.ckrun(so, "--inputs", inputs, "--check")
        bench.check(
            budgets.again(plan) in checked.stdout,
            f"{tag}: expected '{budgets.again(plan)}' in: {checked.stdout[-200:]}{checked.stderr}",
        )


def main():
    gpt = os.path.abspath(sys.argv.pop(3))
    bench = ck.Bench()
    model, inputs = bench.path("gpt"), bench.path("inputs.safetensors")
    made = bench.run(
        [
            gpt,
            "--layers",
            LAYERS,
            "--hidden",
            32,
            "--heads",
            2,
            "--seq",
            SEQ,
            "--batch",
            BATCH,
            "--vocab",
            VOCAB,
            "--dropout",
            0.1,
            "--weights",
            "-o",
            model + ".onnx",
        ]
    )
    if bench.must(made, "gpt"):
        write_inputs(inputs)
        for form in ("off", "on"):
            one(bench, model, inputs, form)
    bench.finish()


if __name__ == "__main__":
    main()
