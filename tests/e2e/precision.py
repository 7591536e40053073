#!/usr/bin/env python3
"""Mixed precision: steps near float64's, losses near float32's, one kind of file, the same bits
under every plan.  Gradients: tests/tools/rounded.py.

precision.py CKC CKRUN [PART...]
"""

import json
import math
import os
import random
import sys

import numpy as np

import ck
import optimizers
from truth import BF16, F16, Truth

sys.path.insert(0, os.path.join(ck.HERE, os.pardir, "tools"))
import compare  # noqa: E402

STEPS, LONG, LAST = 40, 200, 8


def dtypes(path):
    with open(path, "rb") as f:
        head = json.loads(f.read(int.from_bytes(f.read(8), "little")))
    return {
        t["dtype"]
        for name, t in head.items()
        if name != "__metadata__" and not name.startswith("rng")
    }


def train(bench, tag, text, compile_flags=(), run_flags=(), steps=STEPS):
    so, log = bench.path(tag + ".so"), bench.path(tag + ".jsonl")
    if not bench.must(
        bench.ckc(ck.SAMPLE, "-o", so, "--dim", "batch=2", "--dim", "seq=32", *compile_flags), tag
    ):
        return [float("nan")]
    bench.must(
        bench.ckrun(
            so,
            "--data",
            text,
            "--tokens",
            "bytes",
            "--lr",
            "1e-3",
            "--steps",
            steps,
            "--log",
            log,
            "--seed",
            3,
            *run_flags,
        ),
        tag,
    )
    return ck.losses(log)


def exported(bench, tag, text, saved, onnx):
    """The exported model has the weights of the checkpoint, whatever type they are held in."""
    so, losses = bench.path(tag + "-onnx.so"), []
    sizes = ("--dim", "batch=2", "--dim", "seq=32")
    if not bench.must(bench.ckc(onnx, "-o", so, *sizes), f"{tag}: exported"):
        return
    for of, init in ((so, ()), (bench.path("f32.so"), ("--init", saved))):
        done = bench.ckrun("eval", of, "--data", text, "--tokens", "bytes", "--quiet", *init)
        bench.must(done, f"{tag}: eval of {of}")
        losses.append(done.stdout)
    bench.check(losses[0] == losses[1], f"{tag}: exported {losses[0]}, saved {losses[1]}")


def runs(bench):
    text = bench.path("text")
    rng = random.Random(1)
    words = ["".join(rng.choices("abcdefgh", k=rng.randint(2, 7))) for _ in range(40)]
    with open(text, "w", encoding="ascii") as f:
        f.write(" ".join(rng.choices(words, k=4000)))
    whole = train(bench, "f32", text, run_flags=["--save", bench.path("f32.ckpt")], steps=LONG)
    bench.check(
        np.mean(whole[-LAST:]) < 0.5 * whole[0],
        f"nothing is learnt: {whole[0]} to {np.mean(whole[-LAST:])}",
    )
    for dtype, masters in (("bf16", "on"), ("bf16", "off"), ("f16", "off"), ("f16", "on")):
        tag = f"{dtype}-{masters}"
        typed = ["--dtype", dtype, "--master-weights", masters]
        saved, onnx = bench.path(tag + ".ckpt"), bench.path(tag + ".onnx")
        steps = LONG if dtype == "bf16" else STEPS
        got = train(bench, tag, text, typed, ["--save", saved, "--export-onnx", onnx], steps)
        exported(bench, tag, text, saved, onnx)
        ends = np.mean(got[-LAST:]), np.mean(whole[:steps][-LAST:])
        bench.check(
            abs(ends[0] / ends[1] - 1) < 0.005 and got != whole[:steps],
            f"{tag}: the loss ends at {ends[0]}, float32's at {ends[1]}",
        )
        if masters == "on":
            bench.check(dtypes(saved) <= {"F32", "I64"}, f"{tag}: {dtypes(saved)} in the file")
        # f16 does not update in the backward pass
        tight = train(
            bench,
            tag + "-tight",
            text,
            typed + ["--memory-budget", "95%" if dtype == "f16" else "88%"],
        )
        bench.check(tight == got[:STEPS], f"{tag}: other losses under a budget")
        # a run saved at one type goes on at another
        for to in ("f32", "bf16-on", "bf16-off"):
            so = bench.path(to + ".so")
            if os.path.exists(so):
                log = bench.path(f"{tag}-{to}.jsonl")
                done = bench.ckrun(
                    so,
                    "--data",
                    text,
                    "--tokens",
                    "bytes",
                    "--steps",
                    steps + 5,
                    "--resume",
                    saved,
                    "--log",
                    log,
                )
                if bench.must(done, f"{tag} resumed as {to}"):
                    more = ck.losses(log)
                    bench.check(
                        len(more) == 5 and abs(np.mean(more) / ends[1] - 1) < 0.1,
                        f"{tag} resumed as {to}: {more}",
                    )
    for optimizer in ("adamw", "sgdm", "lion"):
        rate = ["--lr", {"adamw": "1e-3", "sgdm": "0.1", "lion": "1e-4"}[optimizer]]
        tag, saved = "state-" + optimizer, bench.path(optimizer + ".ckpt")
        want = np.mean(train(bench, tag + "-f32", text, ["--optimizer", optimizer], rate)[-LAST:])
        got = train(
            bench,
            tag,
            text,
            ["--optimizer", optimizer, "--state-dtype", "bf16"],
            rate + ["--save", saved],
        )
        bench.check(
            abs(np.mean(got[-LAST:]) / want - 1) < 0.01,
            f"{tag}: the loss ends at {np.mean(got[-LAST:])}, float32's at {want}",
        )
        bench.check("BF16" in dtypes(saved), f"{tag}: {dtypes(saved)} in the file")
        log = bench.path(tag + "-more.jsonl")
        done = bench.ckrun(
            bench.path(tag + "-f32.so"),
            "--data",
            text,
            "--tokens",
            "bytes",
            *rate,
            "--steps",
            STEPS + 5,
            "--resume",
            saved,
            "--log",
            log,
        )
        if bench.must(done, f"{tag} resumed with float32 states"):
            bench.check(
                len(ck.losses(log)) == 5 and abs(np.mean(ck.losses(log)) / want - 1) < 0.1,
                f"{tag}: {ck.losses(log)}",
            )
    checked = bench.ckrun(
        bench.path("bf16-on-tight.so"), "--data", text, "--tokens", "bytes", "--check"
    )
    bench.must(checked, "--check")


def float64(bench):
    """Losses, gradients and parameters beside the interpreter's."""
    stem, run = os.path.join(ck.MODELS, "chargpt-dyn-o24"), ("--steps", 6, "--lr", 0.1)
    flags, inputs = ck.model_flags(stem)[0] + ["--optimizer", "sgdm"], stem + ".inputs.safetensors"
    right = Truth(bench, stem + ".onnx", flags, inputs, *run)
    for dtype, masters in (("bf16", "on"), ("bf16", "off"), ("f16", "off"), ("f16", "on")):
        what = f"{dtype}, masters {masters}"
        typed = "--dtype", dtype, "--master-weights", masters
        files = "--log", "t.jsonl", "--grads", "t.grads", "--save", "t.save"
        if bench.must(
            bench.ckc(stem + ".onnx", "-o", bench.path("t.so"), *flags, *typed), what
        ) and bench.must(bench.ckrun("t.so", "--inputs", inputs, *run, *files), what):
            losses = ck.losses(bench.path("t.jsonl"))[-run[1] :]
            of = "f32" if masters == "on" else dtype
            right.check(
                what, BF16 if dtype == "bf16" else F16, losses, "t.grads", "t.save", dtype=of
            )


def small_steps(bench):
    """Steps of 0.001 from 1, a quarter of the distance to the next bfloat16: rounded to nearest,
    none would be taken.  Of 40, each element takes what rounding at random gives it; of 4096, the
    mean's deviation is 0.0107 / 64."""
    path, saved = bench.path("steps.ck"), bench.path("steps.ckpt")
    with open(path, "w", encoding="utf-8") as f:
        f.write(
            "graph @steps {\n\tprops bound static canon\n\tparam %w: bf16[4096] = splat 1\n\t%f: f32[4096] = cast %w {to=f32}\n"
            "\t%loss output = reduce_sum %f {axes=[0], keepdims=0}\n\tloss %loss\n}\n"
        )
    if bench.must(
        bench.ckc(path, "-o", bench.path("steps.so"), "--optimizer", "sgd"), "small steps"
    ) and bench.must(
        bench.ckrun(
            bench.path("steps.so"),
            "--steps",
            40,
            "--lr",
            "0.001",
            "--weight-decay",
            0,
            "--save",
            saved,
        ),
        "small steps",
    ):
        w = compare.load(saved)["w"].astype(float)
        bench.check(
            abs(w.mean() - 0.96) < 1e-3 and 0.005 < w.std() < 0.02,
            f"small steps: mean {w.mean()}, deviation {w.std()}",
        )


# by name: of scores z and targets y, in the text form and in numpy
LOSSES = {
    "logistic": (
        "\t%p = sigmoid %z\n\t%n = sub %one, %p\n\t%pe = add %p, %eps\n\t%ne = add %n, %eps\n\t%a = log %pe\n\t%b = log %ne\n"
        "\t%ya = mul %y, %a\n\t%u = sub %one, %y\n\t%ub = mul %u, %b\n\t%t = add %ya, %ub\n",
        lambda z, y: (
            y * np.log(1 / (1 + np.exp(-z)) + 1e-8) + (1 - y) * np.log(1 / (1 + np.exp(z)) + 1e-8)
        ),
    ),
    "clamped": (
        "\t%p = sigmoid %z\n\t%low = max %p, %eps\n\t%n = sub %one, %low\n\t%ne = max %n, %eps\n\t%b = log %ne\n\t%t = mul %y, %b\n",
        lambda z, y: y * np.log(np.maximum(1 / (1 + np.exp(z)), 1e-8)),
    ),
    "chosen": (
        "\t%p = softmax %z {axis=1}\n\t%n = sub %one, %p\n\t%m = transpose %n {perm=[1,0]}\n\t%k = transpose %m {perm=[1,0]}\n\t%ne = add %k, %eps\n"
        "\t%b = log %ne\n\t%t = mul %y, %b\n",
        lambda z, y: (
            y
            * np.log(
                1
                - np.exp(z - z.max(1, keepdims=True))
                / np.exp(z - z.max(1, keepdims=True)).sum(1, keepdims=True)
                + 1e-8
            )
        ),
    ),
    "squashed": (
        "\t%p = tanh %z\n\t%pp = mul %p, %p\n\t%n = sub %one, %pp\n\t%ne = add %n, %eps\n\t%b = log %ne\n\t%t = mul %y, %b\n",
        lambda z, y: y * np.log(1 - np.tanh(z) ** 2 + 1e-8),
    ),
    # targets that bfloat16 rounds down, and squares that end float16
    "distance": (
        "\tconst %k: f32[] = {0.25}\n\tconst %c: f32[] = {256.75}\n"
        "\t%yk = mul %y, %k\n\t%far = add %yk, %c\n"
        "\t%d = sub %far, %z\n\t%dd = mul %d, %d\n\t%t = mul %dd, %dd\n",
        lambda z, y: (y * 0.25 + 256.75 - z) ** 4,
    ),
}


def logarithms(bench):
    """Losses written by hand, of 1 - p near 1 or of targets far off: of scores in 16 bits, and of
    nothing else that is."""
    rng = np.random.default_rng(2)
    x, w, y = (
        rng.standard_normal((64, 16)),
        rng.standard_normal((16, 8)),
        rng.uniform(0, 1, (64, 8)),
    )
    inputs = bench.path("logs.safetensors")
    optimizers.write_tensors(inputs, {"x": x.astype(np.float32), "y": y.astype(np.float32)})
    optimizers.write_tensors(bench.path("logs.w.safetensors"), {"w": w.astype(np.float32)})
    for name, (text, formula) in LOSSES.items():
        path = bench.path(name + ".ck")
        with open(path, "w", encoding="utf-8") as f:
            f.write(
                "graph @f {\n\tinput %x: f32[64,16]\n\tinput %y: f32[64,8]\n\tparam %w: f32[16,8] = splat 0\n\tconst %one: f32[] = {1}\n\tconst %eps: f32[] = {1e-8}\n"
                f"\t%z = matmul %x, %w\n{text}\t%loss: f32[] output = reduce_mean %t {{axes=[0,1], keepdims=0}}\n\tloss %loss\n}}\n"
            )
        want = formula(x @ w, y).mean()
        # of tanh, 1 - p^2 cancels in float32, too
        for dtype, most in ("bf16", 1e-2), ("f16", 5e-3 if name == "squashed" else 2e-3):
            so, log = bench.path(name + ".so"), bench.path(name + ".jsonl")
            if bench.must(
                bench.ckc(path, "-o", so, "--dtype", dtype, "--optimizer", "sgd"), f"{name} {dtype}"
            ) and bench.must(
                bench.ckrun(
                    so,
                    "--inputs",
                    inputs,
                    "--init",
                    bench.path("logs.w.safetensors"),
                    "--steps",
                    1,
                    "--lr",
                    0,
                    "--log",
                    log,
                ),
                f"{name} {dtype}",
            ):
                got = ck.losses(log)[0]
                bench.check(
                    abs(got / want - 1) < most,
                    f"{name} {dtype}: the loss is {got}, expected {want}",
                )


MASKED = """graph @masked {
	input %%x: f32[4,8]
	input %%keep: f32[4,4]
	param %%wq: f32[8,8] = {%s}
	param %%wv: f32[8,8] = {%s}
	const %%one: f32[] = {1}
	const %%least: f32[] = {-3.4028235e38}
	const %%zero: f32[] = {0.5}
	%%q = matmul %%x, %%wq
	%%k = matmul %%q, %%x {tb=1}
	%%g = gelu %%k
	%%s = add %%k, %%g
	%%hide = sub %%one, %%keep
	%%m = mul %%hide, %%least
	%%b = lt %%keep, %%zero
	%%z = %s
	%%p = softmax %%z {axis=-1}
	%%v = matmul %%x, %%wv
	%%y = matmul %%p, %%v
	%%t = mul %%y, %%y
	%%loss: f32[] output = reduce_mean %%t {axes=[0,1], keepdims=0}
}
"""


def masked_rows(bench):
    """A row of scores that is masked as a whole has equal shares, as in float32."""
    rng = np.random.default_rng(4)
    x, wq, wv = (rng.normal(0, 0.5, s).astype(np.float32) for s in ((4, 8), (8, 8), (8, 8)))
    keep = np.array([[1, 0, 0, 1], [0, 0, 0, 0], [1, 1, 1, 1], [0, 1, 0, 0]], np.float32)
    np.savez(bench.path("m.npz"), x=x, keep=keep)
    k = (x @ wq) @ x.T
    erf = np.vectorize(math.erf)(k / 2**0.5)
    z = np.where(keep > 0, k + 0.5 * k * (1 + erf), -3e38)
    p = np.exp(z - z.max(1, keepdims=True))
    want = float((((p / p.sum(1, keepdims=True)) @ (x @ wv)) ** 2).mean())
    numbers = [", ".join(repr(float(a)) for a in w.ravel()) for w in (wq, wv)]
    for way in ("add %s, %m", "where %b, %least, %s"):
        with open(bench.path("m.ck"), "w") as f:
            f.write(MASKED % (*numbers, way))
        for dtype, tolerance in (("f32", 1e-5), ("bf16", 0.03), ("f16", 0.003)):
            tag = f"{way}, {dtype}"
            so, log = bench.path("m.so"), bench.path("m.jsonl")
            flags = ["--loss", "loss", "--dtype", dtype]
            bench.must(bench.ckc(bench.path("m.ck"), "-o", so, *flags), tag)
            run = ["--inputs", bench.path("m.npz"), "--steps", 1, "--log", log]
            if not bench.must(bench.ckrun(so, *run), tag):
                continue
            got = ck.losses(log)[0]
            bench.check(abs(got / want - 1) < tolerance, f"{tag}: loss {got}, expected {want}")


def main():
    bench = ck.Bench()
    for part in float64, small_steps, logarithms, masked_rows, runs:
        if part.__name__ in (bench.names or [part.__name__]):
            part(bench)
    bench.finish()


if __name__ == "__main__":
    main()
