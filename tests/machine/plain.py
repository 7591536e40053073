#!/usr/bin/env python3
"""A third machine: models compiled for it train as on the CPU.

plain.py CKC_PLAIN CKRUN
"""

import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tools"))
from check_models import compile_flags, run_flags

CKC, CKRUN = sys.argv[1:3]
MODELS = os.path.join(HERE, "..", "models")
# name: flags
CASES = {
    "mlp-mse": [],
    "gpt2-ts14": ["--attention", "unfused"],
    "gpt2-dropout-ts17": ["--attention", "unfused", "--dropout", "on"],
    "llama-dynamo": ["--attention", "unfused", "--memory-budget", "80%"],
}


def call(*argv, status=0):
    done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == status, f"{' '.join(argv)}: {done.returncode}\n{done.stdout}"
    return done.stdout


def losses(work, name, target, flags):
    stem = os.path.join(MODELS, name)
    meta = json.load(open(stem + ".json"))
    library, log = os.path.join(work, target + ".so"), os.path.join(work, target + ".log")
    code = os.path.join(work, target)
    flags = compile_flags(meta, name) + flags
    call(CKC, stem + ".onnx", *flags, "--target", target, "--emit-c", code, "-o", library)
    inputs = ["--inputs", stem + ".inputs.safetensors"]
    call(CKRUN, library, *inputs, *run_flags(meta), "--steps", "5", "--log", log)
    assert os.path.exists(os.path.join(code, "plain.c")) == (target == "plain")
    return [json.loads(line)["loss"] for line in open(log) if '"loss"' in line]


def check_training():
    for name, flags in CASES.items():
        with tempfile.TemporaryDirectory() as work:
            cpu, plain = (losses(work, name, t, flags) for t in ("cpu", "plain"))
        print(f"{name}: {cpu[0]:.6f} to {cpu[-1]:.6f}, plain {plain[-1]:.6f}")
        assert len(cpu) == len(plain) == 5 and cpu[0] != cpu[-1]
        for a, b in zip(cpu, plain):
            assert abs(a - b) <= 1e-4 * abs(a), (name, cpu, plain)


def check_options():
    assert "cpu|plain" in call(CKC, "--help") and "--plain-cc" in call(CKC, "doctor", "--help")
    stem = os.path.join(MODELS, "mlp-mse")
    model = stem + ".onnx"
    assert "expected cpu or plain" in call(CKC, model, "--target", "cuda", status=2)
    with tempfile.TemporaryDirectory() as work:
        library = os.path.join(work, "m.so")
        flags = [*compile_flags(json.load(open(stem + ".json")), "mlp-mse"), "-o", library]
        found = call(CKC, model, *flags, "--plain-cc", "cc")
        assert "--plain-cc does nothing without --target plain" in found, found
        found = call(CKC, model, *flags, "--target", "plain", "--cc", "cc")
        assert "--cc does nothing with --target plain" in found, found
        flags += ["--target", "plain", "--plain-cc", "/none"]
        assert "cannot run the compiler of plain C '/none'" in call(CKC, model, *flags, status=1)
    # a rule that it does not have
    model = os.path.join(MODELS, "gpt2-ts14.onnx")
    found = call(CKC, model, "--loss", "loss", "--target", "plain", status=1)
    assert "op attention has no kernel on this target" in found, found


check_training()
check_options()
