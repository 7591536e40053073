#!/usr/bin/env python3
"""The system fails: memory, files, signals.

    faults.py CKC CKRUN FAULT_LIBRARY [--all]

Planning and running three models under every fault of fault.c: the n-th
allocation without memory, the n-th read or write with an error, short and interrupted reads and
writes, a signal at the n-th of them, a disk that is full after n bytes, an output pipe that nobody
reads.  A command either does its work, as if nothing had been, or ends with exit status 1 and a
message; what it was to write is whole or as it was before, and nothing is left beside it.  A pipe
that nobody reads may end it by SIGPIPE.

Of the many n of a command SAMPLE are tried, evenly, and the LAST ones, where files are written;
--all tries each of them.
"""

import json
import os
import resource
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
import ck

MODELS = {"mlp-mse": "100%", "cnn-bn-batch": "90%", "gpt2-logits": "90%"}  # budgets
# A state and a master weight, in a file (ckc --offload).
OFFLOADED = """graph @offloaded {
	input %x: f32[4,128]
	param %w: f32[128,128] = splat 0.0625
	%h = matmul %x, %w
	%s = mul %h, %h
	%loss: f32[] output = reduce_mean %s {axes=[0,1], keepdims=0}
	loss %loss
}
"""
SAMPLE, LAST = 8, 12
OLD = b"from before"
LINES = 3  # of messages that one fault may have


class Command:
    """A command, files that it needs, and files that it writes."""

    def __init__(self, name, argv, outputs):
        self.name, self.argv, self.outputs = name, argv, outputs
        self.program = os.path.basename(argv[0])
        self.expected = {}


def limited(size):
    def set_limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    return set_limit


class Faults(ck.Bench):
    def __init__(self):
        self.every = "--all" in sys.argv
        if self.every:
            sys.argv.remove("--all")
        super().__init__()
        self.library = os.path.abspath(self.names[0])
        self.folder = self.path("run")

    def start(self, command, fault="", count=None, limit=None, stdout=subprocess.PIPE):
        """Run it in a folder of its own, where what it writes is there from before."""
        shutil.rmtree(self.folder, ignore_errors=True)
        os.mkdir(self.folder)
        for name in command.outputs:
            with open(os.path.join(self.folder, name), "wb") as f:
                f.write(OLD)
        env = {
            **os.environ,
            "LD_PRELOAD": self.library,
            "CKC_FAULT_PROGRAM": command.program,
            "CKC_FAULT": fault,
            "TMPDIR": self.folder,
            "OMP_NUM_THREADS": "1",
        }
        if count:
            env["CKC_FAULT_COUNT"] = count
        return subprocess.run(
            command.argv,
            cwd=self.folder,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            timeout=300,
            preexec_fn=limited(limit) if limit is not None else None,
        )

    def contents(self, command):
        found = {}
        for name in sorted(os.listdir(self.folder)):
            with open(os.path.join(self.folder, name), "rb") as f:
                found[name] = f.read()
        return found

    def is_whole(self, command, name, data):
        if data == OLD:
            return True
        if name.endswith(".json"):
            try:
                return bool(json.loads(data))
            except ValueError:
                return False
        return data == command.expected[name]

    def judge(self, command, done, fault, dies_by=None):
        what = f"{command.name}, {fault}"
        found = self.contents(command)
        text = done.stderr.strip()
        status = done.returncode
        killed = dies_by is not None and status == -dies_by
        self.check(status in (0, 1) or killed, f"{what}: status {status}: {text[:300]}")
        if status == 1:
            self.check(
                text and text.count("\n") < LINES and "internal" not in text,
                f"{what}: expected a message, found {text[:600]!r}",
            )
        left = set(found) - set(command.outputs)
        self.check(not left, f"{what}: left behind: {sorted(left)}")
        for name in command.outputs:
            data = found.get(name, OLD)
            self.check(
                self.is_whole(command, name, data) and (data != OLD or status != 0),
                f"{what}: status {status}, {name} has {len(data)} bytes: {data[:40]!r}",
            )

    def some(self, total):
        step = 1 if self.every else max(1, total // SAMPLE)
        return sorted({*range(1, total + 1, step), *range(max(1, total - LAST), total + 1)})

    def faults(self, command, memory=True):
        count = self.path("count")
        done = self.start(command, count=count)
        if not self.must(done, command.name):
            return
        command.expected = self.contents(command)
        with open(count) as f:
            allocations, transfers, _ = (int(x) for x in f.read().split())
        self.check(allocations > 0, f"{command.name}: no allocation was counted")
        for n in self.some(allocations) if memory else ():
            self.judge(command, self.start(command, f"alloc:{n}"), f"allocation {n}")
        for n in self.some(transfers):
            self.judge(command, self.start(command, f"io:{n}"), f"read or write {n}")
        for n in self.some(allocations + transfers):
            self.judge(command, self.start(command, f"signal:{n}"), f"signal at {n}")
        for kind, n in ("short", 1), ("short", 100), ("eintr", 2):
            done = self.start(command, f"{kind}:{n}")
            self.must(done, f"{command.name}, {kind}:{n}")
            self.judge(command, done, f"{kind}:{n}")
        size = max(len(x) for x in command.expected.values())
        for n in (0, 1, 100, 4096, size // 2, size - 1):
            self.judge(command, self.start(command, limit=n), f"a disk of {n} bytes")
        gone, pipe = os.pipe()
        os.close(gone)
        # as every filter: `ckrun ... | head` ends with head
        self.judge(command, self.start(command, stdout=pipe), "a closed pipe", signal.SIGPIPE)
        os.close(pipe)


def main():
    bench = Faults()
    for name, budget in MODELS.items():
        stem = os.path.abspath(os.path.join(ck.MODELS, name))
        flags, _ = ck.model_flags(stem)
        so = bench.path(name + ".so")
        bench.faults(
            Command(
                f"plan {name}",
                [bench.ckc_path, stem + ".onnx", *flags, "--plan-only"]
                + ["--memory-budget", budget, "--json", "plan.json"],
                ["plan.json"],
            )
        )
        if not bench.must(bench.ckc(stem + ".onnx", "-o", so, *flags), f"compile {name}"):
            continue
        bench.faults(
            Command(
                f"run {name}",
                [bench.ckrun_path, so, "--inputs", stem + ".inputs.safetensors", "--steps", "2"]
                + ["--threads", "1", "--save", "out.safetensors"],
                ["out.safetensors"],
            )
        )
    so, model = bench.path("offloaded.so"), bench.path("offloaded.ck")
    with open(model, "w") as f:
        f.write(OFFLOADED)
    flags = ["--offload", "state", "--optimizer", "sgdm", "--dtype", "bf16"]
    if bench.must(bench.ckc(model, "-o", so, *flags), "compile offloaded"):
        bench.faults(
            Command(
                "run offloaded",
                [bench.ckrun_path, so, "--feed", "x=ones", "--steps", "2", "--threads", "1"]
                + ["--offload-dir", ".", "--save", "out.safetensors"],
                ["out.safetensors"],
            )
        )
    bench.finish()


if __name__ == "__main__":
    main()
