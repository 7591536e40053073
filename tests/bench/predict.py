#!/usr/bin/env python3
"""Predicted step time beside measured step time, per model, in one run.

    predict.py [--build build] [--threads N] [--rounds 3] [--cpu-clock] [--out results/predict.md]
    [MODEL...]

Every round measures this machine afresh (`ckc --device host`, its cache in a folder of the run),
then compiles and trains each model right after; the ratio is that of one round, and the table gives
the median.  --cpu-clock counts the CPU time of one thread instead of time on the wall, for machines
that others use at the same moment.
"""

import argparse
import array
import datetime
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile

import steps

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "e2e"))
from wire import a_model, field, value_info  # noqa: E402

GPT = {
    "GPT-2 124M, 1 x 256": ["--model", "gpt2", "--seq", "256", "--batch", "1"],
    "GPT-2 124M, 2 x 256": ["--model", "gpt2", "--seq", "256", "--batch", "2"],
    "GPT-2 124M, 4 x 256": ["--model", "gpt2", "--seq", "256", "--batch", "4"],
    "LLaMA 20M, 2 x 256": "--like llama --layers 4 --hidden 512 --heads 8 --kv-heads 2 --ffn 1376 --seq 256 --vocab 8000 --batch 2".split(),
}
CNN = {
    "ResNet-18 shape, 4 x 224": (4, 224, (64, 128, 256, 512), 2),
    "small CNN, 16 x 64": (16, 64, (32, 64, 128), 1),
}


class Cnn:
    """A residual network with batch normalisation in training mode."""

    def __init__(self):
        self.nodes, self.weights, self.n = [], [], 0
        rng = random.Random(1)
        self.noise = array.array("f", (rng.gauss(0, 1) for _ in range(4096)))

    def weight(self, dims, scale, mean=0.0):
        name = f"w{len(self.weights)}"
        n = 1
        for d in dims:
            n *= d
        block = array.array("f", (mean + scale * x for x in self.noise)).tobytes()
        raw = (block * (n // 4096 + 1))[: 4 * n]
        self.weights.append(
            field(
                5,
                b"".join(field(1, d) for d in dims)
                + field(2, 1)
                + field(8, name.encode())
                + field(9, raw),
            )
        )
        return name

    def op(self, op, inputs, outputs=1, **attributes):
        self.n += 1
        names = [f"t{self.n}_{i}" for i in range(outputs)]
        out = b"".join(field(1, x.encode()) for x in inputs) + b"".join(
            field(2, x.encode()) for x in names
        )
        out += field(3, f"n{self.n}".encode()) + field(4, op.encode())
        for k, v in attributes.items():
            if isinstance(v, list):
                out += field(
                    5, field(1, k.encode()) + b"".join(field(8, x) for x in v) + field(20, 7)
                )
            else:
                out += field(5, field(1, k.encode()) + field(3, v) + field(20, 2))
        self.nodes.append(field(1, out))
        return names[0]

    def conv(self, x, cin, cout, k, stride, relu=True):
        y = self.op(
            "Conv",
            [x, self.weight([cout, cin, k, k], (2 / (cin * k * k)) ** 0.5)],
            strides=[stride, stride],
            pads=[k // 2] * 4,
        )
        y = self.op(
            "BatchNormalization",
            [
                y,
                self.weight([cout], 0.01, 1.0),
                self.weight([cout], 0.01),
                self.weight([cout], 0.0),
                self.weight([cout], 0.0, 1.0),
            ],
            3,
            training_mode=1,
        )
        return self.op("Relu", [y]) if relu else y

    def block(self, x, cin, cout, stride):
        y = self.conv(self.conv(x, cin, cout, 3, stride), cout, cout, 3, 1, relu=False)
        if stride > 1 or cin != cout:
            x = self.conv(x, cin, cout, 1, stride, relu=False)
        return self.op("Relu", [self.op("Add", [x, y])])

    def write(self, path, batch, side, widths, depth):
        x = self.conv("image", 3, widths[0], 7, 2)
        x = self.op("MaxPool", [x], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
        cin = widths[0]
        for i, width in enumerate(widths):
            for k in range(depth):
                x = self.block(x, cin, width, 2 if i and not k else 1)
                cin = width
        x = self.op("Flatten", [self.op("GlobalAveragePool", [x])], axis=1)
        x = self.op("MatMul", [x, self.weight([cin, 1000], cin**-0.5)])
        loss = self.op("SoftmaxCrossEntropyLoss", [x, "labels"])
        graph = b"".join(self.nodes) + field(2, b"cnn") + b"".join(self.weights)
        graph += field(11, value_info(b"image", 1, [batch, 3, side, side])) + field(
            11, value_info(b"labels", 7, [batch])
        )
        graph += field(12, value_info(loss.encode(), 1, []))
        with open(path, "wb") as f:
            f.write(a_model(graph))


class Bench:
    def __init__(self, args, work):
        self.args, self.work = args, work
        self.env = dict(os.environ)
        for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
            self.env.pop(name, None)
        if args.cpu_clock:
            lib = os.path.join(work, "cpu_clock.so")
            subprocess.run(
                [
                    "cc",
                    "-O2",
                    "-D_GNU_SOURCE",
                    "-shared",
                    "-fPIC",
                    "-o",
                    lib,
                    os.path.join(HERE, "cpu_clock.c"),
                ],
                check=True,
            )
            self.env["LD_PRELOAD"] = lib

    def call(self, tool, *argv):
        argv = [os.path.join(self.args.build, tool), *map(str, argv)]
        done = subprocess.run(
            argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self.env
        )
        if done.returncode:
            sys.exit(f"{' '.join(argv)}: status {done.returncode}\n{done.stderr[-2000:]}")
        return done.stderr

    def path(self, i, suffix):
        return os.path.join(self.work, f"m{i}.{suffix}")

    def write(self, i, name):
        if name in GPT:
            self.call("gpt", *GPT[name], "--dropout", 0, "--weights", "-o", self.path(i, "onnx"))
        else:
            Cnn().write(self.path(i, "onnx"), *CNN[name])

    def measure(self, i, name):
        feed = ["--data", os.path.join(self.work, "tokens"), "--tokens", "u16"]
        if name in CNN:
            feed = ["--feed", "image=ones", "--feed", "labels=zeros"]
        threads = ["--threads", self.args.threads]
        self.call(
            "ckc",
            self.path(i, "onnx"),
            "-o",
            self.path(i, "so"),
            "--device",
            "host",
            "--quiet",
            "--json",
            self.path(i, "json"),
            *threads,
        )
        self.call(
            "ckrun",
            self.path(i, "so"),
            *feed,
            "--steps",
            self.args.steps + 1,
            "--log",
            self.path(i, "log"),
            "--quiet",
            *threads,
        )
        with open(self.path(i, "json")) as f:
            predicted = json.load(f)["summary"]["step_seconds"]
        with open(self.path(i, "log")) as f:
            seconds = [json.loads(line)["seconds"] for line in f if '"loss"' in line]
        return predicted, statistics.median(seconds[1:])

    def profile(self):
        """This machine, measured now."""
        self.env["XDG_CACHE_HOME"] = tempfile.mkdtemp(dir=self.work)
        said = self.call(
            "ckc",
            self.path(0, "onnx"),
            "--plan-only",
            "--quiet",
            "--device",
            "host",
            "--threads",
            self.args.threads,
        )
        return re.search(r"measured now: (.*)", said).group(1)


def report(args, rows, profiles):
    clock = "CPU seconds of one thread" if args.cpu_clock else "seconds on the wall"
    out = [
        f"# Predicted and measured step time, {datetime.date.today()}",
        "",
        f"{steps.processor()}, {os.cpu_count()} cores, {args.threads} thread"
        f"{'s' if args.threads > 1 else ''}; {clock}; medians of {args.rounds} rounds, each with a profile of its own:",
        "",
    ]
    out += [f"- {p}" for p in profiles]
    out += [
        "",
        "| model | predicted | measured | ratio | ratios of the rounds |",
        "|---|---|---|---|---|",
    ]
    for name, pairs in rows.items():
        ratios = [p / m for p, m in pairs]
        out.append(
            f"| {name} | {statistics.median(p for p, _ in pairs):.3f} | {statistics.median(m for _, m in pairs):.3f} | "
            f"{statistics.median(ratios):.2f} | {', '.join(f'{r:.2f}' for r in ratios)} |"
        )
    return "\n".join(out) + "\n"


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--build", default=os.path.join(HERE, "..", "..", "build"))
    p.add_argument("--threads", type=int, default=os.cpu_count())
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--steps", type=int, default=4)
    p.add_argument("--cpu-clock", action="store_true")
    p.add_argument("--out")
    p.add_argument("models", nargs="*", metavar="MODEL", help="; ".join([*GPT, *CNN]))
    args = p.parse_args()
    if args.cpu_clock:
        args.threads = 1
    with tempfile.TemporaryDirectory(prefix="ckc-bench-") as work:
        names = args.models or [*GPT, *CNN]
        b = Bench(args, work)
        with open(os.path.join(work, "tokens"), "wb") as f:
            rng = random.Random(0)
            f.write(array.array("H", (rng.randrange(8000) for _ in range(100000))).tobytes())
        for i, name in enumerate(names):
            b.write(i, name)
        rows, profiles = {name: [] for name in names}, []
        for _ in range(args.rounds):
            profiles.append(b.profile())
            for i, name in enumerate(names):
                rows[name].append(b.measure(i, name))
                print(name, *(f"{x:.3f}" for x in rows[name][-1]), file=sys.stderr)
    text = report(args, rows, profiles)
    print(text)
    if args.out:
        with open(args.out, "w") as f:
            f.write(text)


if __name__ == "__main__":
    main()
