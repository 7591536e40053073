#!/usr/bin/env python3
"""Graphs of samples/gpt with weights train: the first loss is that of equal
odds, and some steps on one batch lower it.

    train.py CKC CKRUN GPT
"""

import json
import math
import os
import subprocess
import sys
import tempfile

VOCAB = 512


def losses(tools, folder, name, flags):
    ckc, ckrun, gpt = tools
    path = os.path.join(folder, name)
    subprocess.run(
        [
            gpt,
            "--layers",
            "2",
            "--hidden",
            "64",
            "--heads",
            "4",
            "--seq",
            "32",
            "--batch",
            "2",
            "--vocab",
            str(VOCAB),
            "--weights",
            "-o",
            path + ".onnx",
            *flags,
        ],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    subprocess.run([ckc, path + ".onnx", "-o", path + ".so", "--quiet"], check=True)
    subprocess.run(
        [
            ckrun,
            path + ".so",
            "--data",
            os.path.join(folder, "tokens"),
            "--tokens",
            "bytes",
            "--steps",
            "20",
            "--lr",
            "1e-2",
            "--log",
            path + ".log",
            "--quiet",
        ],
        check=True,
    )
    with open(path + ".log", encoding="utf-8") as f:
        rows = [json.loads(line) for line in f]
    return [r["loss"] for r in rows if "loss" in r]


def main():
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "tokens"), "wb") as f:
            f.write(b"the quick brown fox jumps over the lazy dog. " * 64)
        for name, flags in (
            ("gpt", ["--dropout", "0"]),
            ("relu", ["--activation", "relu"]),
            ("llama", ["--like", "llama", "--kv-heads", "2", "--untied"]),
        ):
            loss = losses(sys.argv[1:4], folder, name, flags)
            good = (
                len(loss) == 20 and abs(loss[0] - math.log(VOCAB)) < 0.2 and loss[-1] < loss[0] - 1
            )
            failed += not good
            print(name, loss[0], loss[-1], "" if good else "FAILED")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
