#!/usr/bin/env python3
"""A run that is killed at any moment resumes from a whole checkpoint with the same losses.

resume.py CKC CKRUN [--flags "..."] [--kills N]
"""

import json
import os
import random
import shlex
import signal
import subprocess
import time

import ck
from truth import ADAM16, DEEP, Truth

STEPS = 24


def main():
    flags, kills = shlex.split(ck.option("--flags", "")), int(ck.option("--kills", 8))
    bench = ck.Bench()
    so, text = bench.path("m.so"), bench.path("text")
    with open(text, "wb") as f:
        f.write(bytes(random.Random(1).choices(b"abcdefgh \n", k=20000)))
    done = bench.ckc(
        ck.SAMPLE, "-o", so, "--dim", "batch=2", "--dim", "seq=32", "--memory-budget", "95%", *flags
    )
    if not bench.must(done, "compile"):
        bench.finish()
    common = [so, "--data", text, "--tokens", "bytes", "--lr", "1e-3"]
    whole, log = bench.path("whole"), bench.path("whole.jsonl")
    seed = ["--seed", 5]  # a checkpoint knows its own
    bench.must(
        bench.ckrun(*common, *seed, "--steps", STEPS, "--save", whole, "--log", log),
        "the whole run",
    )
    expected = ck.losses(log)
    bench.check(len(expected) == STEPS and len(set(expected)) == STEPS, f"losses {expected}")

    half, log = bench.path("half"), bench.path("half.jsonl")
    bench.must(bench.ckrun(*common, *seed, "--steps", STEPS // 2, "--save", half), "the first half")
    bench.must(
        bench.ckrun(*common, "--steps", STEPS, "--resume", half, "--save", half, "--log", log),
        "the second half",
    )
    bench.check(ck.losses(log) == expected[STEPS // 2 :], "the second half has other losses")
    bench.check(ck.content(half) == ck.content(whole), "two halves end in another checkpoint")

    rng, seen = random.Random(2), {}
    for i in range(kills):
        save = bench.path(f"k{i}")
        child = subprocess.Popen(
            [bench.ckrun_path, *common, "--steps", "100000", "--save", save, "--save-every", "1"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=bench.work,
        )
        deadline = time.monotonic() + 60
        while not os.path.exists(save) and time.monotonic() < deadline and child.poll() is None:
            time.sleep(0.002)
        time.sleep(rng.uniform(0, 0.1))
        child.send_signal(signal.SIGKILL)
        child.wait()
        if not bench.check(os.path.exists(save), f"kill {i}: no checkpoint"):
            continue
        resumed(bench, common, save, i, seen)
    two_halves(bench, flags)
    bench.check(len(seen) > 0, "no checkpoint could be compared")
    bench.finish()


def two_halves(bench, flags):
    """Of a model with dropout, on one batch: what the interpreter has after all steps."""
    stem, so = os.path.join(ck.MODELS, "gpt2-dropout-ts17"), bench.path("t.so")
    known, inputs = ck.model_flags(stem)[0], stem + ".inputs.safetensors"
    if not bench.must(bench.ckc(stem + ".onnx", "-o", so, *known, *flags), "compile"):
        return
    run = so, "--inputs", inputs, "--save", "t.save"
    bench.must(bench.ckrun(*run, "--seed", 5, "--steps", 3), "three steps")
    done = bench.ckrun(*run, "--steps", 6, "--resume", "t.save", "--log", "t.log")
    if bench.must(done, "three more"):
        of = flags[flags.index("--dtype") + 1] if "--master-weights" in flags else "f32"
        Truth(bench, stem + ".onnx", known, inputs, "--steps", 6, "--seed", 5).check(
            "two halves",
            (*ADAM16[:2], 0.05) if flags else DEEP,  # at a rate at which few signs turn
            ck.losses(bench.path("t.log")),
            save="t.save",
            dtype=of,
        )


def resumed(bench, common, save, i, seen):
    """Resume for three steps and compare with a straight run of that length."""
    step = checkpoint_step(save)
    log, straight = bench.path(f"r{i}.jsonl"), bench.path(f"s{i}.jsonl")
    if not bench.must(
        bench.ckrun(*common, "--steps", step + 3, "--resume", save, "--log", log),
        f"kill {i}: resume at {step}",
    ):
        return
    bench.must(
        bench.ckrun(*common, "--steps", step + 3, "--log", straight), f"kill {i}: straight run"
    )
    bench.check(
        ck.losses(log) == ck.losses(straight)[step:], f"kill {i}: other losses after step {step}"
    )
    seen[step] = True


def checkpoint_step(path):
    raw = ck.content(path)
    n = int.from_bytes(raw[:8], "little")
    return int(json.loads(raw[8 : 8 + n])["__metadata__"]["step"])


if __name__ == "__main__":
    main()
