#!/usr/bin/env python3
"""What steps leave alone: evaluation and parameters, faults and threads.

    eval.py CKC CKRUN EVAL

Evaluating a model changes no parameter, also where updates run within the
backward pass.  Of several bad indices the first is told, whatever thread meets
it.  Far more threads than processors come to the same bits.
"""

import os
import sys

import ck

sys.path.insert(0, os.path.join(ck.HERE, "..", "runtime"))
import files

# Two losses with two heads: the first head's gradient and update could come
# before the second loss.
HEADS = """graph @heads {
	input %x: f32[8,4]
	input %la: i64[8]
	input %lb: i64[8]
	param %a: f32[4,4] = {@A}
	param %b: f32[4,4] = {@B}
	%h = matmul %x, %a
	%ya = matmul %h, %b
	%yb = matmul %x, %b
	%p = log_softmax %ya {axis=1}
	%q = log_softmax %yb {axis=1}
	%s = mul %p, %q
	%loss: f32[] output = reduce_mean %s {axes=[0,1], keepdims=0}
}
"""
# Drops half of its values, and keeps running statistics, in training.
DROP = """graph @drop {
	input %x: f32[8,16]
	param %w: f32[16,16] = {@W}
	param %b: f32[8,16] = {@B}
	buffer %m: f32[16] = splat 0
	%h = matmul %x, %w
	%s = add %h, %b
	%d = dropout %s {ratio=0.5}
	%n, %mean, %var = batchnorm %s
	%now: f32[16] output = bn_update %m, %mean {momentum=0.75}
	%q = mul %d, %d
	%loss: f32[] output = reduce_mean %q {axes=[0,1], keepdims=0}
}
"""
N, BAD = 1 << 16, {60000: 77, 100: -99, 70: 5000, 4711: -400, 65535: 16}
PICK = (
    """graph @pick {
	input %%i: i64[%d]
	param %%w: f32[16,8] = {@W}
	%%y = gather %%w, %%i {axis=0}
	%%z = mul %%y, %%y
	%%loss: f32[] output = reduce_mean %%z {axes=[0,1], keepdims=0}
}
"""
    % N
)


def numbers(n):
    return ",".join(str((7 * i % 11 - 5) / 8) for i in range(n))


def source(bench, name, text, **values):
    for key, n in values.items():
        text = text.replace("@" + key, numbers(n))
    path = bench.path(name + ".ck")
    with open(path, "w") as f:
        f.write(text)
    return path


def evaluates(bench, name, path, *flags):
    for early in ("on", "off"):
        so = bench.path(f"{name}-{early}.so")
        if bench.must(
            bench.ckc(path, "-o", so, "--quiet", "--update-in-backward", early, *flags),
            f"{name}: compile, {early}",
        ):
            bench.must(
                bench.run([bench.names[0], so]), f"{name}: evaluate, update in backward {early}"
            )


def drops(bench):
    """Evaluation is what the model is without dropout; every step of training drops others."""
    path, told = source(bench, "drop", DROP, W=256, B=128), {}
    for dropout in ("on", "off"):
        so = bench.path(f"drop-{dropout}.so")
        if not bench.must(
            bench.ckc(path, "-o", so, "--quiet", "--dropout", dropout, "--output", "now"),
            f"drop: compile, {dropout}",
        ):
            return
        done = bench.run([bench.names[0], so])
        if bench.must(done, f"drop: evaluate, dropout {dropout}"):
            told[dropout] = float(done.stdout)
    bench.check(
        len(told) == 2 and abs(told["on"] - told["off"]) < 1e-6 * told["off"],
        f"drop: evaluation gives {told}",
    )
    # a library without a program for it runs training's, which knows no running statistics
    lines = [
        x for x in DROP.split("\n") if not any(w in x for w in ("batchnorm", "bn_update", "buffer"))
    ]
    plain, so = source(bench, "plain", "\n".join(lines), W=256, B=128), bench.path("plain.so")
    if bench.must(
        bench.ckc(plain, "-o", so, "--quiet", "--eval", "off"), "drop: compile, --eval off"
    ):
        done = bench.run([bench.names[0], so])
        bench.check(
            done.returncode == 0 and abs(float(done.stdout) - told["off"]) < 1e-6 * told["off"],
            f"drop: --eval off: {done.stdout}, {told}",
        )
    inputs, log = bench.path("drop.st"), bench.path("drop.log")
    files.st_write(inputs, {"x": ("F32", [8, 16], [0.0] * 128)})
    done = bench.ckrun(
        bench.path("drop-on.so"),
        "--inputs",
        inputs,
        "--steps",
        4,
        "--lr",
        0,
        "--log",
        log,
        "--quiet",
    )
    if bench.must(done, "drop: train"):
        bench.check(len(set(ck.losses(log))) == 4, f"drop: steps drop the same: {ck.losses(log)}")


def many_threads(bench, model="resnet-ts17"):
    """Threads that keep each other from processors."""
    stem, so, got = os.path.join(ck.MODELS, model), bench.path("many.so"), {}
    flags, _ = ck.model_flags(stem)
    if not bench.must(
        bench.ckc(stem + ".onnx", "-o", so, "--quiet", "--threads", 12, *flags), "many: compile"
    ):
        return
    for threads in (1, 12):
        log, save = bench.path("many.log"), bench.path("many.st")
        done = bench.ckrun(
            so,
            "--inputs",
            stem + ".inputs.safetensors",
            "--steps",
            6,
            "--lr",
            1e-3,
            "--log",
            log,
            "--save",
            save,
            "--quiet",
            "--threads",
            threads,
        )
        if bench.must(done, f"many: {threads} threads"):
            got[threads] = ck.losses(log), ck.content(save)
    bench.check(len(got) == 2 and got[1] == got[12], "many: 12 threads come to other bits")


def main():
    bench = ck.Bench()
    drops(bench)
    many_threads(bench)
    evaluates(bench, "heads", source(bench, "heads", HEADS, A=16, B=16))
    for model in ("mlp-mse", "gpt2-ts14"):
        flags, _ = ck.model_flags(os.path.join(ck.MODELS, model))
        evaluates(bench, model, os.path.join(ck.MODELS, model + ".onnx"), *flags)
        evaluates(
            bench,
            model + "-sgd",
            os.path.join(ck.MODELS, model + ".onnx"),
            "--ema",
            "--optimizer",
            "sgd",
            "--recompute",
            "full",
            *flags,
        )

    so, inputs = bench.path("pick.so"), bench.path("pick.st")
    if bench.must(
        bench.ckc(source(bench, "pick", PICK, W=128), "-o", so, "--quiet", "--threads", 2),
        "pick: compile",
    ):
        files.st_write(inputs, {"i": ("I64", [N], [BAD.get(i, i % 16) for i in range(N)])})
        for _ in range(5):
            done = bench.ckrun(so, "--inputs", inputs, "--steps", 1, "--quiet")
            first = BAD[min(BAD)]
            bench.check(
                done.returncode == 1 and f"index out of range: {first}\n" in done.stderr,
                f"pick: {done.stderr}",
            )
    bench.finish()


if __name__ == "__main__":
    main()
