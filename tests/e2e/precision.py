#!/usr/bin/env python3
"""Mixed precision: gradients near float64's, losses near float32's, one kind of file, the same bits under every plan.

    precision.py CKC CKRUN [PART...]
"""
import json
import os
import random
import sys

import numpy as np

import ck

sys.path.insert(0, os.path.join(ck.HERE, os.pardir, "tools"))
import compare  # noqa: E402

MODELS = os.path.join(ck.HERE, os.pardir, "models")
# Of the norm, over a model's tensors.  The least says that 16 bits were used at all.
ERROR = {"bf16": (1e-3, 3e-2), "f16": (1e-4, 1e-2)}
NAMES = ("gpt2-logits", "llama-dynamo", "bert-mlm-dynamo-dyn", "mlp-mse", "cnn-bn-running")
STEPS = 40


def flags_of(name):
    with open(os.path.join(MODELS, name + ".json"), encoding="utf-8") as f:
        meta = json.load(f)
    loss = meta["loss"]
    flags = [x for dim, size in meta.get("dims", {}).items() for x in ("--dim", f"{dim}={size}")]
    flags += ["--loss", loss if isinstance(loss, str) else f"{loss['kind']}:{loss.get('logits') or loss.get('output')}"]
    return flags + meta.get("flags", []) + ["--dropout", "off", "--optimizer", "sgd"]


def gradients(bench, name, dtype, masters):
    """Median over the tensors of the error's norm, relative to the norm."""
    so, grads = bench.path(f"{name}.so"), bench.path("grads.safetensors")
    model = os.path.join(MODELS, name + ".onnx")
    what = f"{name} in {dtype}, masters {masters}"
    if not (bench.must(bench.ckc(model, "-o", so, "--dtype", dtype, "--master-weights", masters, *flags_of(name)), what)
            and bench.must(bench.ckrun(so, "--inputs", os.path.join(MODELS, name + ".inputs.safetensors"), "--steps", 1,
                                       "--grads", grads), what)):
        return
    ours, ref = compare.load(grads), compare.load(os.path.join(MODELS, name + ".ref.safetensors"))
    want = {k[5:]: v.astype(float) for k, v in ref.items() if k.startswith("grad.")}
    errors = [np.linalg.norm(ours[k].astype(float) - v) / np.linalg.norm(v) for k, v in want.items()
              if np.linalg.norm(v) > 1e-6]
    bench.check(len(errors) >= len(want) - 4 and len(errors) > 3, f"{what}: {len(errors)} of {len(want)} gradients")
    least, most = ERROR[dtype]
    bench.check(least < np.median(errors) < most, f"{what}: median error {np.median(errors):.2e}")


def dtypes(path):
    with open(path, "rb") as f:
        head = json.loads(f.read(int.from_bytes(f.read(8), "little")))
    return {t["dtype"] for name, t in head.items() if name != "__metadata__" and not name.startswith("rng")}


def train(bench, tag, text, compile_flags=(), run_flags=()):
    so, log = bench.path(tag + ".so"), bench.path(tag + ".jsonl")
    if not bench.must(bench.ckc(ck.SAMPLE, "-o", so, "--dim", "batch=2", "--dim", "seq=32", *compile_flags), tag):
        return [float("nan")]
    bench.must(bench.ckrun(so, "--data", text, "--tokens", "bytes", "--lr", "1e-3", "--steps", STEPS, "--log", log,
                           "--seed", 3, *run_flags), tag)
    return ck.losses(log)


def runs(bench):
    text = bench.path("text")
    with open(text, "wb") as f:
        f.write(bytes(random.Random(1).choices(b"abcdefgh \n", k=20000)))
    whole = train(bench, "f32", text, run_flags=["--save", bench.path("f32.ckpt")])
    for dtype, masters in (("bf16", "on"), ("bf16", "off"), ("f16", "on")):
        tag = f"{dtype}-{masters}"
        typed = ["--dtype", dtype, "--master-weights", masters]
        saved = bench.path(tag + ".ckpt")
        got = train(bench, tag, text, typed, ["--save", saved])
        ends = np.mean(got[-8:]), np.mean(whole[-8:])
        bench.check(abs(ends[0] / ends[1] - 1) < 0.01 and got != whole, f"{tag}: the loss ends at {ends[0]}, float32's at {ends[1]}")
        if masters == "on":
            bench.check(dtypes(saved) <= {"F32", "I64"}, f"{tag}: {dtypes(saved)} in the file")
        # f16 does not update in the backward pass
        tight = train(bench, tag + "-tight", text, typed + ["--memory-budget", "90%" if dtype == "f16" else "85%"])
        bench.check(tight == got, f"{tag}: other losses under a budget")
        # a run saved at one type goes on at another
        for to in ("f32", "bf16-on", "bf16-off"):
            so = bench.path(to + ".so")
            if os.path.exists(so):
                log = bench.path(f"{tag}-{to}.jsonl")
                done = bench.ckrun(so, "--data", text, "--tokens", "bytes", "--steps", STEPS + 5, "--resume", saved, "--log", log)
                if bench.must(done, f"{tag} resumed as {to}"):
                    more = ck.losses(log)
                    bench.check(len(more) == 5 and abs(np.mean(more) / ends[1] - 1) < 0.1, f"{tag} resumed as {to}: {more}")
    for optimizer in ("adamw", "sgdm", "lion"):
        rate = ["--lr", {"adamw": "1e-3", "sgdm": "0.1", "lion": "1e-4"}[optimizer]]
        tag, saved = "state-" + optimizer, bench.path(optimizer + ".ckpt")
        want = np.mean(train(bench, tag + "-f32", text, ["--optimizer", optimizer], rate)[-8:])
        got = train(bench, tag, text, ["--optimizer", optimizer, "--state-dtype", "bf16"], rate + ["--save", saved])
        bench.check(abs(np.mean(got[-8:]) / want - 1) < 0.01, f"{tag}: the loss ends at {np.mean(got[-8:])}, float32's at {want}")
        bench.check("BF16" in dtypes(saved), f"{tag}: {dtypes(saved)} in the file")
        log = bench.path(tag + "-more.jsonl")
        done = bench.ckrun(bench.path(tag + "-f32.so"), "--data", text, "--tokens", "bytes", *rate, "--steps", STEPS + 5,
                           "--resume", saved, "--log", log)
        if bench.must(done, f"{tag} resumed with float32 states"):
            bench.check(len(ck.losses(log)) == 5 and abs(np.mean(ck.losses(log)) / want - 1) < 0.1, f"{tag}: {ck.losses(log)}")
    checked = bench.ckrun(bench.path("bf16-on-tight.so"), "--data", text, "--tokens", "bytes", "--check")
    bench.must(checked, "--check")


def models(bench):
    for name in NAMES:
        for dtype, masters in (("bf16", "on"), ("f16", "on"), ("bf16", "off")):
            gradients(bench, name, dtype, masters)


def small_steps(bench):
    """Steps of 0.001 from 1, a quarter of the distance to the next bfloat16: rounded to nearest, none would be taken.  Of 40, each
    element takes what rounding at random gives it; of 4096, the mean's deviation is 0.0107 / 64."""
    path, saved = bench.path("steps.ck"), bench.path("steps.ckpt")
    with open(path, "w", encoding="utf-8") as f:
        f.write("graph @steps {\n\tprops bound static canon\n\tparam %w: bf16[4096] = splat 1\n\t%f: f32[4096] = cast %w {to=f32}\n"
                "\t%loss output = reduce_sum %f {axes=[0], keepdims=0}\n\tloss %loss\n}\n")
    if bench.must(bench.ckc(path, "-o", bench.path("steps.so"), "--optimizer", "sgd"), "small steps") and bench.must(
            bench.ckrun(bench.path("steps.so"), "--steps", 40, "--lr", "0.001", "--weight-decay", 0, "--save", saved), "small steps"):
        w = compare.load(saved)["w"].astype(float)
        bench.check(abs(w.mean() - 0.96) < 1e-3 and 0.005 < w.std() < 0.02, f"small steps: mean {w.mean()}, deviation {w.std()}")


def main():
    bench = ck.Bench()
    for part in models, small_steps, runs:
        if part.__name__ in (bench.names or [part.__name__]):
            part(bench)
    bench.finish()


if __name__ == "__main__":
    main()
