#!/usr/bin/env python3
"""One training step of twelve networks that people train: ckc beside PyTorch, alternating, in one
run.

    steps.py --python PYTHON-WITH-TORCH [--build build] [--models gpt2,bert,...] [--dtype bf16]
             [--steps 3] [--rounds 3] [--threads N] [--keep FOLDER] [--no-compile] [--ops]
             [--out results/steps.md]

step_models.py defines the networks, steps_peer.py exports them and times PyTorch: eager, eager with
an allocator told to keep its memory (no page faults), channels last for convolutions, compiled.
Both sides take the same batch and AdamW, in float32 or bf16, which is autocast in PyTorch. Every
run is a process of its own, rounds are interleaved, figures are medians; the first losses must
agree. --keep leaves exports in FOLDER and uses those it finds.

Roof: for every op the larger of its FLOPs over this machine's products per second and its bytes
over its memory's speed (`ckc --device host`, measured in this run), summed.  --ops lists the ops of
each network that take over 3 % of its step, with their share and the part of their roof that they
reach (`ckrun --profile`, least of the steps).

Networks in BUDGETS are compiled a second time, under a budget, and that runs in the same rounds: a
table of its own says what it costs.
"""

import argparse
import datetime
import json
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
KEEP_MEMORY = {
    "MALLOC_TOP_PAD_": str(1 << 30),
    "MALLOC_MMAP_THRESHOLD_": str(1 << 33),
    "MALLOC_TRIM_THRESHOLD_": str(1 << 40),
}
ORDER = [
    "gpt2",
    "bert",
    "vit",
    "convnext",
    "resnet50",
    "efficientnet",
    "unet",
    "llama",
    "t5",
    "whisper",
    "lstm",
    "dlrm",
]
TITLES = {
    "gpt2": "GPT-2 124M, 4 x 256",
    "bert": "BERT-base, 8 x 128",
    "vit": "ViT-B/16, 8 x 224^2",
    "convnext": "ConvNeXt-T, 8 x 224^2",
    "resnet50": "ResNet-50, 16 x 224^2",
    "efficientnet": "EfficientNet-B0, 8 x 224^2",
    "unet": "U-Net, 32 to 512 channels, 4 x 256^2",
    "llama": "LLaMA, 8 layers of 768, 2 x 512",
    "t5": "T5-small, 8 x 128 to 64",
    "whisper": "Whisper-tiny, 2 x 30 s to 64",
    "lstm": "LSTM, 2 layers of 512, 32 x 128",
    "dlrm": "DLRM: 8 embeddings and MLPs, 512",
    "mobilenet": "MobileNetV2, 16 x 224^2",
    "gpt1m": "GPT, 1.04M parameters, 8 x 64",
    "mlp": "MLP 784, 128, 128, 10, 64",
    "lstm64": "LSTM of 64, 16 x 32",
}
BUDGETS = {
    "bert": "1880MiB",
    "vit": "1785MiB",
    "llama": "1660MiB",
}  # of a step; the process takes some 20 MiB more
IMAGES = {
    "convnext",
    "resnet50",
    "efficientnet",
    "unet",
    "mobilenet",
}  # convolutions: channels last may help PyTorch
PRODUCTS = {
    "matmul",
    "conv",
    "conv_dx",
    "conv_dw",
    "attention",
    "attention_grad",
    "classifier",
    "rnn",
    "rnn_grad",
}


def call(argv, more=None):
    """Runs to the end; what it prints on both streams, seconds, peak resident bytes of the
    process."""
    env = {
        k: v for k, v in os.environ.items() if k not in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")
    }
    env.update(more or {})
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        start = time.monotonic()
        pid = subprocess.Popen([str(a) for a in argv], stdout=out, stderr=err, env=env).pid
        _, status, use = os.wait4(pid, 0)
        seconds = time.monotonic() - start
        out.seek(0)
        err.seek(0)
        if status:
            sys.exit(f"{' '.join(map(str, argv))}: status {status}\n{err.read()[-2000:]}")
        return out.read(), err.read(), seconds, use.ru_maxrss * 1024


class Network:
    def __init__(self, o, name, folder):
        self.o, self.name = o, name
        self.onnx, self.so, self.lean, self.json = (
            os.path.join(folder, name + x) for x in (".onnx", ".so", ".lean.so", ".json")
        )
        self.log, self.profile = (os.path.join(folder, name + x) for x in (".log", ".profile"))
        self.rows = {}
        self.lean_too = name in BUDGETS and o.dtype == "f32"
        if not os.path.exists(self.onnx + ".safetensors"):
            call([o.python, os.path.join(HERE, "steps_peer.py"), name, "--export", self.onnx])

    def compile(self):
        _, self.said, self.compile_seconds, _ = call(
            [
                os.path.join(self.o.build, "ckc"),
                self.onnx,
                "-o",
                self.so,
                "--device",
                "host",
                "--json",
                self.json,
                "--threads",
                self.o.threads,
                "--dtype",
                self.o.dtype,
            ]
        )
        with open(self.json) as f:
            self.predicted = json.load(f)["summary"]["step_seconds"]
        if self.lean_too:
            call(
                [
                    os.path.join(self.o.build, "ckc"),
                    self.onnx,
                    "-o",
                    self.lean,
                    "--quiet",
                    "--device",
                    "host",
                    "--json",
                    self.json,
                    "--memory-budget",
                    BUDGETS[self.name],
                    "--threads",
                    self.o.threads,
                ]
            )
            with open(self.json) as f:
                self.predicted_lean = json.load(f)["summary"]["step_seconds"]

    def ckrun(self, *more, steps, so=None):
        argv = [
            os.path.join(self.o.build, "ckrun"),
            so or self.so,
            "--inputs",
            self.onnx + ".safetensors",
            "--steps",
            steps,
            "--lr",
            1e-4,
            "--log",
            self.log,
            "--quiet",
            "--threads",
            self.o.threads,
            *more,
        ]
        _, _, _, peak = call(argv)
        with open(self.log) as f:
            rows = [json.loads(line) for line in f if '"loss"' in line]
        return {
            "step_seconds": statistics.median(r["seconds"] for r in rows[1:]),
            "peak_bytes": peak,
            "losses": [r["loss"] for r in rows],
        }

    def peer(self, *more, env=None):
        out, _, _, peak = call(
            [
                self.o.python,
                os.path.join(HERE, "steps_peer.py"),
                self.name,
                "--steps",
                self.o.steps,
                "--threads",
                self.o.threads,
                "--dtype",
                self.o.dtype,
                *more,
            ],
            env,
        )
        return {**json.loads(out.splitlines()[-1]), "peak_bytes": peak}

    def round(self, images):
        kinds = {
            "ckc": lambda: self.ckrun(steps=self.o.steps + 1),
            "eager": self.peer,
            "eager, memory kept": lambda: self.peer(env=KEEP_MEMORY),
        }
        if self.lean_too:
            kinds["ckc, budget"] = lambda: self.ckrun(steps=self.o.steps + 1, so=self.lean)
        if images:
            kinds["channels last"] = lambda: self.peer("--channels-last")
        if not self.o.no_compile:
            kinds["compiled"] = lambda: self.peer("--compile")
        for kind, run in kinds.items():
            self.rows.setdefault(kind, []).append(run())
            print(
                f"{self.name}: {kind} {self.rows[kind][-1]['step_seconds']:.3f} s", file=sys.stderr
            )

    def read_profile(self, flops, bandwidth):
        self.ckrun("--profile", self.profile, steps=self.o.steps + 2)
        with open(self.profile) as f:
            ops = json.load(f)["ops"]
        for op in ops:
            op["roof"] = max(op["flops"] / flops, op["bytes"] / bandwidth)
        self.ops = ops
        self.roof = sum(op["roof"] for op in ops)
        self.products = sum(op["least"] for op in ops if op["op"] in PRODUCTS)
        call(
            [
                os.path.join(self.o.build, "ckc"),
                self.onnx,
                "--plan-only",
                "--quiet",
                "--device",
                self.profile,
                "--json",
                self.json,
                "--threads",
                self.o.threads,
                "--dtype",
                self.o.dtype,
            ]
        )
        with open(self.json) as f:
            self.predicted_profile = json.load(f)["summary"]["step_seconds"]

    def median(self, kind, key="step_seconds"):
        return statistics.median(r[key] for r in self.rows[kind])

    def best(self):
        return min((k for k in self.rows if not k.startswith("ckc")), key=self.median)

    def least_peak(self):
        return min(self.median(k, "peak_bytes") for k in self.rows if not k.startswith("ckc"))

    def check_losses(self):
        ours, theirs = self.rows["ckc"][0]["losses"][0], self.rows["eager"][0]["losses"][0]
        if abs(ours - theirs) > (1e-4 if self.o.dtype == "f32" else 1e-2) * abs(theirs):
            sys.exit(f"{self.name}: first loss {ours}, PyTorch's {theirs}")

    def over_three_percent(self):
        whole = sum(op["least"] for op in self.ops)
        kinds = {}
        for op in self.ops:
            kind = kinds.setdefault((op["op"], op["phase"]), [0, 0, 0])
            for i, x in enumerate((1, op["least"], op["roof"])):
                kind[i] += x
        return [
            (op, phase, n, s, s / whole, roof / s)
            for (op, phase), (n, s, roof) in sorted(kinds.items(), key=lambda k: -k[1][1])
            if s > 0.03 * whole
        ]


def processor():
    """Its name."""
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        name = re.search(r"model name\s*: (.*)", f.read())
    return name.group(1) if name else platform.processor() or "unknown"


def digits(seconds):
    return f"{seconds:.3f}" if seconds >= 0.03 else f"{seconds:.5f}"


def report(o, networks, machine):
    out = [
        f"# {len(networks)} networks, {o.dtype}, one training step, {datetime.date.today()}",
        "",
        f"{processor()}, {os.cpu_count()} cores, {o.threads} threads, load {machine['load']:.1f} at the start and "
        f"{os.getloadavg()[0]:.1f} at the end; PyTorch {networks[0].rows['eager'][0]['torch']}; medians of {o.rounds} interleaved round{'s' if o.rounds > 1 else ''} of {o.steps} steps. "
        f"Roof: products {machine['flops'] / 1e9:.0f} GFLOP/s, memory {machine['bandwidth'] / 1e9:.0f} GB/s. Peaks are of the whole process. Predicted: "
        "from this machine's speeds (`--device host`), and from one `ckrun --profile`.",
        "",
        "| network | ckc s | best PyTorch s | which | ckc / best | products s | ckc / roof | peak MiB | PyTorch's least MiB | ratio | compile s | predicted / s | by profile / s |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for n in networks:
        s, best = n.median("ckc"), n.best()
        peak, other = n.median("ckc", "peak_bytes"), n.least_peak()
        out.append(
            f"| {TITLES[n.name]} | {digits(s)} | {digits(n.median(best))} | {best} | {s / n.median(best):.2f} | {digits(n.products)} | {s / n.roof:.2f} | {peak / 2**20:.0f} | "
            f"{other / 2**20:.0f} | {peak / other:.2f} | {n.compile_seconds:.1f} | {n.predicted / s:.2f} | {n.predicted_profile / s:.2f} |"
        )
    lean = [n for n in networks if n.lean_too]
    if lean:
        out += [
            "",
            "Under a budget, in the same rounds:",
            "",
            "| network | budget | ckc s | of ckc's s above | predicted | peak MiB | of PyTorch's least |",
            "|---|---|---|---|---|---|---|",
        ]
    for n in lean:
        s, peak = n.median("ckc, budget"), n.median("ckc, budget", "peak_bytes")
        out.append(
            f"| {TITLES[n.name]} | {BUDGETS[n.name]} | {s:.3f} | {s / n.median('ckc'):.3f} | {n.predicted_lean / n.predicted:.4f} | {peak / 2**20:.0f} | "
            f"{peak / n.least_peak():.2f} |"
        )
    out += [
        "",
        "All of PyTorch's medians, s:",
        "",
        "| network | eager | eager, memory kept | channels last | compiled |",
        "|---|---|---|---|---|",
    ]
    for n in networks:
        cells = (
            digits(n.median(k)) if k in n.rows else ""
            for k in ("eager", "eager, memory kept", "channels last", "compiled")
        )
        out.append(f"| {TITLES[n.name]} | {' | '.join(cells)} |")
    if o.ops:
        out += [
            "",
            "Ops that take over 3 % of a step, by kind:",
            "",
            "| network | op | phase | ops | s | share | of roof |",
            "|---|---|---|---|---|---|---|",
        ]
        for n in networks:
            out += [
                f"| {n.name} | {op} | {phase} | {k} | {s:.4f} | {100 * share:.0f} % | {of:.2f} |"
                for op, phase, k, s, share, of in n.over_three_percent()
            ]
    return "\n".join(out) + "\n"


def measure_machine(o, onnx):
    said = call(
        [
            os.path.join(o.build, "ckc"),
            onnx,
            "--plan-only",
            "--device",
            "host",
            "--threads",
            o.threads,
        ],
        {"XDG_CACHE_HOME": tempfile.mkdtemp()},
    )[1]
    f32, bf16, bandwidth = re.search(
        r"products ([\d.]+) GFLOP/s, of bf16 ([\d.]+),.* memory ([\d.]+) GB/s", said
    ).groups()
    flops = bf16 if o.dtype == "bf16" else f32
    return {
        "flops": float(flops) * 1e9,
        "bandwidth": float(bandwidth) * 1e9,
        "load": os.getloadavg()[0],
    }


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--python", required=True)
    p.add_argument("--build", default=os.path.join(HERE, "..", "..", "build"))
    p.add_argument("--models", default=",".join(ORDER))
    p.add_argument("--dtype", choices=["f32", "bf16"], default="f32")
    p.add_argument("--threads", type=int, default=os.cpu_count())
    p.add_argument("--steps", type=int, default=3)
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--keep")
    p.add_argument("--no-compile", action="store_true")
    p.add_argument("--ops", action="store_true")
    p.add_argument("--out")
    o = p.parse_args()
    folder = o.keep or tempfile.mkdtemp(prefix="ckc-bench-")
    os.makedirs(folder, exist_ok=True)
    networks = [Network(o, name, folder) for name in o.models.split(",")]
    machine = measure_machine(o, networks[0].onnx)
    call(
        [
            os.path.join(o.build, "ckc"),
            networks[0].onnx,
            "--plan-only",
            "--quiet",
            "--device",
            "host",
            "--threads",
            o.threads,
        ]
    )  # kept: no compile measures
    for n in networks:
        n.compile()
    for _ in range(o.rounds):
        for n in networks:
            n.round(n.name in IMAGES)
    for n in networks:
        n.check_losses()
        n.read_profile(machine["flops"], machine["bandwidth"])
    text = report(o, networks, machine)
    print(text)
    if o.out:
        with open(o.out, "w") as f:
            f.write(text)
    if not o.keep:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
