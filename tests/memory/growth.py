#!/usr/bin/env python3
"""Training takes no memory from step to step: the anonymous memory of ckrun stands still in one of
three thirds of a thousand steps at least, for every optimizer, source of data and transport.

    growth.py CKC CKRUN

A leak of 64 bytes a step is seen in all thirds. What comes once, such as pages of a thread's stack
when it first waits long, is in one.
"""

import itertools
import os
import shutil
import signal
import subprocess
import sys
import time

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "e2e"), os.path.join(HERE, "..", "tools")]
import ck
import processes
import spread

MARKS, SLACK = (20, 350, 680, 1010), 12 << 10
ROWS = 40
HEAD = """graph @g {{
	input %x: f32[{b},{shape}]
	input %labels: i64[{b}]
	param %w: f32[12,8] = splat 0.1
	param %v: f32[8,5] = splat 0.2
	%r = reshape %x {{shape=[{b},12]}}
	%h = matmul %r, %w
	%t = tanh %h
	%y = matmul %t, %v
	%loss: f32[] output, _, _ = sce %y, %labels {{reduction=1, ignore=-100}}
}}
"""
TOKENS = """graph @t {
	input %ids: i64[2,8]
	input %labels: i64[2,8]
	param %w: f32[256,4] = splat 0.1
	%i = reshape %ids {shape=[16]}
	%l = reshape %labels {shape=[16]}
	%e = gather %w, %i {axis=0}
	%y = matmul %e, %w {tb=1}
	%loss: f32[] output, _, _ = sce %y, %l {reduction=1, ignore=-100}
}
"""


def anonymous(pid):
    with open(f"/proc/{pid}/status") as f:
        return next(int(line.split()[1]) << 10 for line in f if line.startswith("RssAnon"))


class Growth(ck.Bench):
    def model(self, name, text, *flags):
        with open(self.path("m.ck"), "w") as f:
            f.write(text)
        done = self.ckc("m.ck", "-o", self.path(name), "--quiet", "--threads", 2, *flags)
        self.must(done, f"{name} {flags}")
        return name

    def files(self):
        """Options for each source."""
        rng = np.random.default_rng(0)
        x, labels = rng.normal(0, 1, (ROWS, 12)).astype("f4"), rng.integers(0, 5, ROWS)
        with open(self.path("list.lst"), "w") as f:
            for i, label in enumerate(labels):
                with open(self.path(f"{i}.ppm"), "wb") as image:
                    image.write(b"P6 2 2 255\n" + rng.bytes(12))
                f.write(f"{i}.ppm {label}\n")
        np.savez(self.path("x.npz"), x=x, labels=labels)
        np.savez_compressed(self.path("small.npz"), x=x, labels=labels)
        np.savez(self.path("batch.npz"), x=x[:4], labels=labels[:4])
        np.save(self.path("x.npy"), x)
        np.save(self.path("y.npy"), labels)
        names = ",".join([f"x{i}" for i in range(12)] + ["labels"])
        table = np.concatenate([x, labels[:, None]], 1)
        formats = ["%.4f"] * 12 + ["%d"]
        np.savetxt(self.path("x.csv"), table, formats, ",", header=names, comments="")
        rng.integers(0, 256, 1000).astype("u2").tofile(self.path("tokens"))
        np.save(self.path("tokens.npy"), rng.integers(0, 256, 1000))
        pixels = "--normalize", "0.5,0.5"
        return {
            "npz": ("flat.so", "--data", "x.npz"),
            "compressed": ("flat.so", "--data", "small.npz"),
            "npy": ("flat.so", "--data", "x=x.npy", "--data", "labels=y.npy"),
            "csv": ("flat.so", "--data", "x.csv"),
            "inputs": ("flat.so", "--inputs", "batch.npz"),
            "validation": ("flat.so", "--data", "x.npz", "--valid", "x.npz", "--valid-every", 1),
            "checkpoints": ("flat.so", "--data", "x.npz", "--save", "save", "--save-every", 10),
            "events": ("flat.so", "--data", "x.npz", "--tensorboard", "events"),
            "images": ("image.so", "--data", "list.lst", *pixels),
            "tokens": ("tokens.so", "--data", "tokens", "--tokens", "u16"),
            "stream": ("tokens.so", "--data", "tokens.npy"),
        }

    def start(self, how, so, *args):
        argv = [self.ckrun_path, so, *args, "--steps", 10**8, "--log", "log", "--quiet"]
        argv = [str(a) for a in argv]
        quiet = dict(cwd=self.work, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        if how == "sockets":
            return spread.start(2, argv, **quiet)
        launch = [*processes.MPIRUN, "-n", "2"] if how == "MPI" else []
        return [subprocess.Popen(launch + argv, stdin=subprocess.DEVNULL, **quiet)]

    def reached(self, step, started):
        """Whether the log has come to it."""
        end = time.monotonic() + 120
        while time.monotonic() < end and all(p.poll() is None for p in started):
            if (
                os.path.exists(self.path("log"))
                and ck.content(self.path("log")).count(b"\n") > step
            ):
                return True
            time.sleep(0.005)
        return False

    def flat(self, what, how, *args):
        if os.path.exists(self.path("log")):
            os.remove(self.path("log"))
        started, sizes = self.start(how, *args), []
        try:
            for step in MARKS:
                if not self.reached(step, started):
                    break
                pids = [p.pid for p in started]
                if how == "MPI":
                    pids = list(processes.children(pids[0]).values())
                sizes.append([anonymous(pid) for pid in pids])
        finally:
            for p in started:
                p.send_signal(signal.SIGTERM if how == "MPI" else signal.SIGKILL)
            told = [p.communicate()[1].decode() for p in started]
        if self.check(len(sizes) == len(MARKS), f"{what}: ended before step {MARKS[-1]}: {told}"):
            for rank, size in enumerate(zip(*sizes)):
                grown = [b - a for a, b in itertools.pairwise(size)]
                self.check(
                    min(grown) <= SLACK,
                    f"{what}: rank {rank} takes {grown} B of anonymous memory between steps {MARKS}",
                )


def main():
    bench = Growth()
    flat = HEAD.format(b=4, shape=12)
    sources = bench.files()
    for optimizer in "sgd", "sgdm", "adam", "adamw", "lion", "adafactor":
        so = bench.model("optimizer.so", flat, "--eval", "off", "--optimizer", optimizer)
        bench.flat(optimizer, "threads", so, *sources["npz"][1:])
    bench.model("flat.so", flat)
    bench.model("image.so", HEAD.format(b=4, shape="3,2,2"))
    bench.model("tokens.so", TOKENS)
    for source, args in sources.items():
        bench.flat(source, "threads", *args)
    bench.model("ranks.so", HEAD.format(b=2, shape=12), "--dp", 2, "--zero", 1)
    for how in "threads", "sockets", "MPI":
        if how == "MPI" and not (
            shutil.which("mpirun")
            and os.path.exists(os.path.join(os.path.dirname(bench.ckrun_path), "ckr_mpi.so"))
        ):
            print("skipped: MPI, which needs mpirun and ckr_mpi.so")
            continue
        bench.flat(f"2 ranks by {how}", how, "ranks.so", "--inputs", "batch.npz")
    bench.finish()


if __name__ == "__main__":
    main()
