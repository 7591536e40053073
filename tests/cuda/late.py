#!/usr/bin/env python3
"""Steps that a GPU is given before the one in front has ended, by a driver that does them as late
as it may, or in any order it may.

    late.py CKC CKRUN NVCC FOLDER LATE THREADS

FOLDER holds the stand-ins for NVIDIA's libraries, LATE is late.c, THREADS is threads.c.  Losses,
norms, scales, messages, counts and checkpoints must be those of steps that are carried out one by
one and looked at after every kernel (CKR_POISON=1), messages and counts those of the CPU, and a
step that fails must leave the checkpoint of the one before it.  Calls that stop the GPU are
counted.
"""

import json
import os
import re
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "e2e"))
import ck

TEXT = """graph @late {
	input %x: f32[8,16]
	input %ids: i64[8]
	input %labels: i64[8]
	input %c: f32[]
	param %table: f32[10,16] = splat 0.5
	param %w: f32[16,64] = splat 0.25
	param %v: f32[64,4] = splat 0.125
	param %b: f32[4] = splat 0.5
	%e = gather %table, %ids {axis=0}
	%a = mul %e, %x
	%h = matmul %a, %w
	%g = tanh %h
	%p = matmul %g, %v
	%y = add %p, %b
	%ce: f32[], %lse, %den = sce %y, %labels {ignore=3}
	%loss: f32[] output = add %ce, %c
	loss %loss
}
"""
# A matrix of 64 KiB, whose states are offloaded.
LARGE = TEXT.replace("16,64]", "16,1024]").replace("64,4]", "1024,4]")
STEPS, BAD = 7, 5
BN = os.path.join(ck.MODELS, "cnn-bn-batch.onnx")
# name: model, flags, what may be wrong with inputs
MODELS = {
    "adamw": ("text", [], ["nan", "loss", "index", "feed"]),
    "accumulated": (
        "text",
        ["--grad-accum", "3", "--optimizer", "lion"],
        ["nan", "index", "early", "feed"],
    ),
    "f16": ("text", ["--dtype", "f16", "--optimizer", "sgd"], ["nan", "big", "index"]),
    "bf16": ("text", ["--dtype", "bf16", "--optimizer", "sgdm", "--state-dtype", "bf16"], ["nan"]),
    "adafactor": ("text", ["--optimizer", "adafactor"], ["nan"]),
    "in backward": ("text", ["--update-in-backward", "on"], ["nan", "index"]),
    "statistics": (BN, ["--batchnorm", "batch"], ["nan"]),
    "two ranks": ("text", ["--tp", "2"], ["index"]),
    "offloaded": ("large", ["--offload", "state"], ["nan", "index", "feed"]),
    "masters": ("large", ["--offload", "state", "--dtype", "bf16"], ["nan", "index"]),
    "offloaded, accumulated": (
        "large",
        ["--offload", "state", "--grad-accum", "3", "--optimizer", "lion"],
        ["nan"],
    ),
    "offloaded in backward": (
        "large",
        ["--offload", "state", "--update-in-backward", "on", "--optimizer", "sgdm"],
        ["nan"],
    ),
}
# CKR_FAKE_GPU_LATE, CKR_GRAPHS, depth, fed
WAYS = [
    ("0", "1", 2, 1),
    ("1", "1", 2, 1),
    ("1", "0", 2, 0),
    ("1", "1", 1, 1),
    ("2", "1", 2, 0),
    ("3", "0", 2, 1),
]


class Test:
    def __init__(self):
        self.nvcc, self.folder, self.late, self.threads = (
            os.path.abspath(x) for x in sys.argv[3:7]
        )
        del sys.argv[3:7]
        self.bench = ck.Bench()
        self.files = {}
        for name, text in ("text", TEXT), ("large", LARGE):
            self.files[name] = self.bench.path(name + ".ck")
            with open(self.files[name], "w") as f:
                f.write(text)

    def compiled(self, name):
        model, flags, _ = MODELS[name]
        out = []
        for target in [["--target", "cuda", "--nvcc", self.nvcc], []]:
            so = self.bench.path(f"{name.replace(' ', '-')}-{len(out)}.so")
            self.bench.must(
                self.bench.ckc(self.files.get(model, model), "-o", so, "--quiet", *flags, *target),
                name,
            )
            out.append(so)
        return out

    def taken(self, so, *args, **env):
        """What late.c prints, and the checkpoint."""
        out = self.bench.path("out.safetensors")
        if os.path.exists(out):
            os.unlink(out)
        done = self.bench.run(
            [self.late, so, *args, out], env={"LD_LIBRARY_PATH": self.folder, **env}
        )
        what = f"{os.path.basename(so)} {args} {env}"
        self.bench.check(
            done.returncode == 0 and not done.stderr,
            f"{what}: {done.returncode}: {done.stderr[-300:]} {done.stdout[-300:]}",
        )
        if not self.bench.check(
            os.path.exists(out), f"{what}: no checkpoint: {done.stdout[-300:]}"
        ):
            return done.stdout, b""
        with open(out, "rb") as f:
            return done.stdout, f.read()

    def alike(self, name, gpu, cpu, bad, how, on_nan):
        """All ways of taking the steps."""
        b = self.bench
        for fed in 0, 1:
            if not fed and how == "feed":
                continue
            args = [bad, how, on_nan]
            plain = self.taken(gpu, STEPS, 1, fed, *args, CKR_POISON="1")
            there = self.taken(cpu, STEPS, 1, fed, *args)[0]
            b.check(
                facts(plain[0]) == facts(there),
                f"{name} {how} {on_nan}: the CPU says\n{there}\nand not\n{plain[0]}",
            )
            if bad and on_nan == "stop" and how != "big":
                b.check(f"step {BAD}" in plain[0], f"{name} {how}: no step {BAD} in\n{plain[0]}")
            if bad and on_nan == "stop" and how != "big":
                left = self.taken(gpu, BAD - 1, 1, fed, 0, "", on_nan, CKR_POISON="1")[1]
                b.check(left == plain[1], f"{name} {how}: a step that failed has changed something")
            for late, graphs, depth, way_fed in WAYS:
                if way_fed != fed:
                    continue
                got = self.taken(
                    gpu, STEPS, depth, fed, *args, CKR_FAKE_GPU_LATE=late, CKR_GRAPHS=graphs
                )
                what = (
                    f"{name} {how} {on_nan}, late {late}, graphs {graphs}, depth {depth}, fed {fed}"
                )
                b.check(got[0] == plain[0], f"{what}:\n{got[0]}\nis not\n{plain[0]}")
                b.check(got[1] == plain[1], f"{what}: another checkpoint")

    def scenarios(self, name):
        gpu, cpu = self.compiled(name)
        self.alike(name, gpu, cpu, 0, "", "stop")
        for how in MODELS[name][2]:
            self.alike(name, gpu, cpu, BAD, how, "stop")
            if how == "nan":
                self.alike(name, gpu, cpu, BAD, how, "skip")
                self.alike(name, gpu, cpu, BAD, how, "go")
        return gpu

    def data(self):
        import optimizers
        import numpy as np

        path, rng = self.bench.path("data.safetensors"), np.random.default_rng(1)
        optimizers.write_tensors(
            path,
            {
                "x": rng.random((64, 16), np.float32),
                "ids": rng.integers(0, 10, 64),
                "labels": rng.integers(0, 4, 64),
            },
        )
        return path

    def counted(self, so, data, steps, late, **env):
        path = self.bench.path("count.json")
        log = self.bench.path("log.jsonl")
        done = self.bench.ckrun(
            so,
            "--data",
            data,
            "--feed",
            "c=ones",
            "--steps",
            steps,
            "--log",
            log,
            "--quiet",
            env={
                "LD_LIBRARY_PATH": self.folder,
                "CKR_FAKE_GPU_LATE": late,
                "CKR_FAKE_GPU_COUNT": path,
                **env,
            },
        )
        self.bench.must(done, "counting")
        with open(log) as f:
            self.bench.check(len(f.readlines()) == steps, "a row for every step")
        with open(path) as f, open(path + ".products") as products:
            return {**json.load(f), **json.load(products)}

    def in_threads(self, so):
        """The context of the device is current in every thread that calls."""
        out = self.bench.path("threads.safetensors")
        done = self.bench.run([self.threads, so, out], env={"LD_LIBRARY_PATH": self.folder})
        self.bench.check(
            done.returncode == 0 and not done.stderr and "nan" not in done.stdout,
            f"threads: {done.returncode}: {done.stderr[-300:]} {done.stdout[-300:]}",
        )

    def every_step(self, so, data):
        """Without graphs products are looked up in every step."""
        counts = [self.counted(so, data, n, "0", CKR_GRAPHS="0")["heuristics"] for n in (2, 10)]
        self.bench.check(
            counts[0] == counts[1], f"algorithms asked for in 2 and in 10 steps: {counts}"
        )

    def counts(self, so, data, graphs, slots, launches):
        """Nothing stops the GPU once it is going; the host waits for the loss of every step, and
        for slots of micro-batches."""
        few, many = (self.counted(so, data, n, "1") for n in (5, 15))
        more = {k: many[k] - few[k] for k in few}
        self.bench.check(more["stops"] == 0, f"{more['stops']} stops in 10 steps")
        self.bench.check(
            more["waits"] == 10 * (1 + slots),
            f"{more['waits']} waits in 10 steps, expected {10 * (1 + slots)}",
        )
        self.bench.check(
            few["heuristics"] and more["heuristics"] == 0,
            f"{few['heuristics']} algorithms asked for in 5 steps, {more['heuristics']} in 10 more",
        )
        self.bench.check(many["graphs"] == graphs, f"{many['graphs']} graphs, expected {graphs}")
        self.bench.check(
            more["launches"] == 10 * launches, f"{more['launches']} launches in 10 steps"
        )

    def without_offload(self, so):
        """Master weights on the device: the same bits."""
        plain = self.bench.path("plain.so")
        flags = ["-o", plain, "--quiet", "--dtype", "bf16", "--target", "cuda", "--nvcc", self.nvcc]
        self.bench.must(self.bench.ckc(self.files["large"], *flags), "without --offload")
        steps = STEPS, 1, 1, 0, "", "stop"
        self.bench.check(
            self.taken(plain, *steps) == self.taken(so, *steps), "other bits with --offload"
        )

    def interrupted(self, so, data):
        """A signal: the steps under way end, and their state is saved."""
        saved, log = self.bench.path("stopped.safetensors"), self.bench.path("stopped.jsonl")
        env = {**os.environ, "LD_LIBRARY_PATH": self.folder, "CKR_FAKE_GPU_LATE": "1"}
        run = [
            self.bench.ckrun_path,
            so,
            "--data",
            data,
            "--feed",
            "c=ones",
            "--save",
            saved,
            "--log",
            log,
            "--quiet",
            "--steps",
        ]
        child = subprocess.Popen([*run, "1000000"], env=env, stderr=subprocess.PIPE, text=True)
        while child.poll() is None and (not os.path.exists(log) or os.path.getsize(log) < 1000):
            time.sleep(0.01)
        child.send_signal(signal.SIGINT)
        text = child.communicate()[1]
        found = re.search(r"stopped after step (\d+)", text)
        if not self.bench.check(
            child.returncode == 1 and found, f"a signal: {child.returncode}: {text}"
        ):
            return
        with open(saved, "rb") as f:
            stopped = f.read()
        with open(log) as f:
            self.bench.check(len(f.readlines()) == int(found[1]), "the log ends where the run does")
        self.bench.must(
            self.bench.run([*run, found[1]], env={"LD_LIBRARY_PATH": self.folder}), "as many steps"
        )
        with open(saved, "rb") as f:
            self.bench.check(
                f.read() == stopped,
                "a run that was stopped has another state than one that ended there",
            )


def facts(text):
    """Without numbers that two processors compute differently, and signs of what is none."""
    return re.sub(r"(loss|norm) -?0x\S+", r"\1", text).replace("-nan", "nan")


def main():
    t = Test()
    names = t.bench.names or list(MODELS)
    data = t.data()
    for name in names:
        so = t.scenarios(name)
        if name == "adamw":
            t.counts(so, data, 2, 0, 2)
            t.every_step(so, data)
            t.in_threads(so)
            t.interrupted(so, data)
        if name == "masters":
            # transfers of host memory are parts of the graphs
            t.counts(so, data, 2, 0, 2)
            t.without_offload(so)
        if name == "accumulated":
            # labels are counted first; by then one slot is free anyway
            t.counts(so, data, 4, 5, 3 + 4)
    t.bench.finish()


if __name__ == "__main__":
    main()
