#!/usr/bin/env python3
"""What ckrun says where somebody asks for what cannot be, or data are not what they should be:
whose fault it is, in which file and row.

run_errors.py CKC CKRUN
"""

import math
import os
import resource
import signal
import subprocess
import sys
import time

import ck

sys.path.insert(0, os.path.join(ck.HERE, "..", "runtime"))
import files

NET = """graph @net {
	input %x: f32[4,3]
	input %y: i64[4]
	param %w: f32[3,5] = splat 0.5
	%z output = matmul %x, %w
	%loss: f32[] output, %lse, %den = sce %z, %y
}
"""


class Told(ck.Bench):
    def samples(self, name, n=8, x=None, y=None):
        """A file of n samples; x, y: the element, and what it is instead."""
        xs, ys = [i % 7 / 4 for i in range(3 * n)], [i % 5 for i in range(n)]
        for of, one in (xs, x), (ys, y):
            if one:
                of[one[0]] = one[1]
        files.st_write(self.path(name), {"x": ("F32", [n, 3], xs), "y": ("I64", [n], ys)})
        return name

    def says(self, status, words, *args, env=None, limit=None):
        start = time.time()
        done = self.ckrun(*args, env=env)
        took = time.time() - start
        self.check(
            done.returncode == status
            and all(w in done.stderr for w in words)
            and (limit is None or took < limit),
            f"{args}: {done.returncode} after {took:.1f} s: {done.stderr}, expected {words}",
        )
        return done

    def counts(self, so, data):
        run = [so, "--data", data, "--steps", 2]
        for option, more in (
            ("patience", ["--valid", data, "--valid-every", 1]),
            ("valid-every", ["--valid", data]),
            ("keep", ["--save", "k.st", "--save-every", 1]),
            ("save-every", ["--save", "k.st"]),
        ):
            self.says(2, [f"--{option} must be at least 1"], *run, *more, f"--{option}=0")
        self.says(2, ["--epochs must be at least 1"], so, "--data", data, "--epochs", 0)
        self.must(self.ckrun(so, "--data", data, "--steps", 0, "--save", "none.st"), "--steps 0")
        self.check(os.path.exists(self.path("none.st")), "--steps 0 writes no file")

    def launch(self, so, data):
        env = {"RANK": "0", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29533"}
        self.says(
            1,
            ["WORLD_SIZE: expected at most 65536 processes, found process 0 of 4000000000"],
            so,
            "--data",
            data,
            "--steps",
            1,
            env={**env, "WORLD_SIZE": "4000000000"},
            limit=20,
        )
        self.says(
            3,
            ["cannot resolve the address", "MASTER_ADDR"],
            so,
            "--data",
            data,
            "--steps",
            1,
            env={**env, "WORLD_SIZE": "2", "RANK": "1", "MASTER_ADDR": "no-such-host.invalid"},
            limit=20,
        )

    def signals(self, so):
        """A file that may not grow is an error in words; Ctrl-C leaves no half of one."""
        data = self.samples("many.st", 4000)
        done = subprocess.run(
            [self.ckrun_path, "predict", so, "--data", data, "-o", "cut.npy"],
            cwd=self.work,
            stderr=subprocess.PIPE,
            text=True,
            stdout=subprocess.PIPE,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192)),
        )
        self.check(
            done.returncode == 1 and "cut.npy" in done.stderr and done.stderr.count("\n") == 1,
            f"a limit of files: {done.returncode} {done.stderr}",
        )
        data = self.samples("more.st", 400000)
        for verb, more in ("predict", ["-o", "stopped.npy"]), ("eval", []):
            with subprocess.Popen(
                [self.ckrun_path, verb, so, "--data", data, *more],
                cwd=self.work,
                stderr=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            ) as p:
                p.stdout.readline()
                p.send_signal(signal.SIGINT)
                _, err = p.communicate(timeout=60)
            self.check(
                p.returncode == 1 and "stopped by a signal" in err,
                f"{verb}, Ctrl-C: {p.returncode} {err}",
            )
        left = [f for f in os.listdir(self.work) if f.startswith(("cut", "stopped"))]
        self.check(not left, f"left behind: {left}")

    def reasons(self, net, data):
        so = self.path("off.so")
        if self.must(self.ckc(net, "-o", so, "--quiet", "--eval", "off"), "--eval off"):
            self.says(
                1,
                ["no output besides its loss: it was compiled with --eval off"],
                "predict",
                so,
                "--data",
                data,
                "-o",
                "y.npy",
            )
        with open(plain := self.path("plain.ck"), "w") as f:
            f.write("".join(line for line in NET.splitlines(True) if "%loss" not in line))
        so = self.path("plain.so")
        if self.must(self.ckc(plain, "-o", so, "--quiet", "--forward-only"), "--forward-only"):
            self.says(1, ["has no loss to evaluate"], "eval", so, "--data", data)

    def blames(self, so, data):
        """A label that is no class, and a NaN, by file, row and input."""
        bad = self.samples("bad.st", y=(6, 9))
        words = ["bad.st: 'y', row 6 (input 'y')", ": 9"]
        self.says(
            1,
            ["--valid, ", *words],
            so,
            "--data",
            data,
            "--steps",
            3,
            "--valid",
            bad,
            "--valid-every",
            1,
        )
        self.says(1, ["--data, ", *words], "eval", so, "--data", data, "--data", bad)
        # the first number of a batch; an index that is the model's first input
        bad = self.samples("first.st", y=(4, 9))
        self.says(1, ["first.st: 'y', row 4 (input 'y')"], "eval", so, "--data", bad)
        table, rows = self.path("table.ck"), self.path("table.so")
        with open(table, "w") as f:
            f.write(
                NET.replace("%x: f32[4,3]", "%x: i64[4]").replace("matmul %x, %w", "gather %w, %x")
            )
        files.st_write(
            self.path("far.st"), {k: ("I64", [4], [0, 1, 2 + 7 * (k == "x"), 0]) for k in "xy"}
        )
        if self.must(self.ckc(table, "-o", rows, "--quiet"), "a table of rows"):
            self.says(1, ["far.st: 'x', row 2 (input 'x')"], "eval", rows, "--data", "far.st")
        bad = self.samples("nan.st", x=(13, math.nan))
        self.says(
            1,
            ["loss is not finite: nan; nan.st: 'x', row 4 (input 'x') contains"],
            so,
            "--data",
            data,
            "--data",
            bad,
            "--steps",
            9,
        )

    def numbers(self, so, data):
        bad = self.samples("nan.st", x=(13, math.nan))
        done = self.ckrun("eval", so, "--data", bad)
        self.check("loss nan" in done.stdout, f"eval of NaN: {done.stdout}")
        row = "nan.st: 'x', row 4 (input 'x') contains a non-finite value"
        self.check(f"loss of --data is not finite; {row}" in done.stderr, f"eval: {done.stderr}")
        done = self.ckrun("predict", so, "--data", bad, "-o", self.path("nan.npy"))
        told = f"1 of 8 rows of output 'z' contain NaN; the first is row 4; {row}"
        self.check(told in done.stderr, f"predict: {done.stderr}")
        steps = ("--steps", 9, "--save", (end := self.path("nan.safetensors")))
        done = self.ckrun(so, "--data", bad, *steps, "--on-nan", "skip")
        self.check(f"its update is skipped; {row}" in done.stderr, f"skip: {done.stderr}")
        done = self.ckrun(
            so, "--data", data, "--data", bad, "--valid", bad, *steps, "--on-nan", "go"
        )
        for told in (f"loss of --valid is not finite; {row}", f"at step 3; {row}"):
            self.check(told in done.stderr, f"go: {done.stderr}")
        done = self.ckrun(so, "--data", data, "--resume", end, "--steps", 10, "--on-nan", "go")
        self.check("warning: --resume: " in done.stderr, f"resume: {done.stderr}")
        log = self.path("nan.csv")
        self.ckrun(so, "--data", bad, "--steps", 2, "--on-nan", "go", "--log", log)
        with open(log) as f:
            self.check("nan" in (text := f.read()) and "-nan" not in text, f"a log of NaN: {text}")


def main():
    bench = Told()
    net, so = bench.path("net.ck"), bench.path("net.so")
    with open(net, "w") as f:
        f.write(NET)
    data = bench.samples("d.st")
    if bench.must(bench.ckc(net, "-o", so, "--quiet"), "compile"):
        bench.counts(so, data)
        bench.launch(so, data)
        bench.signals(so)
        bench.reasons(net, data)
        bench.numbers(so, data)
        bench.blames(so, data)
    bench.finish()


if __name__ == "__main__":
    main()
