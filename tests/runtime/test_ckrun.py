#!/usr/bin/env python3
"""ckrun on models written by hand: test_ckrun.py CKRUN FOLDER-OF-MODELS"""

import contextlib
import fcntl
import json
import math
import os
import pty
import random
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest
import zipfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import files

CKRUN, MODELS = map(os.path.abspath, sys.argv[1:3])


def reals(n):
    return [random.uniform(-1, 1) for _ in range(n)]


class Case(unittest.TestCase):
    def setUp(self):
        random.seed(1)
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        os.chdir(self.folder.name)
        self.addCleanup(os.chdir, "/")
        self.weights = {
            "w": ("F32", [3, 2], reals(6)),
            "b": ("F32", [2], reals(2)),
            "count": ("I64", [], [0]),
        }
        files.st_write("w.st", self.weights)
        self.x, self.t = reals(12), reals(8)
        files.st_write("in.st", {"x": ("F32", [4, 3], self.x), "target": ("F32", [4, 2], self.t)})
        files.st_write("table.st", {"table": ("F32", [16], [i / 16 for i in range(16)])})

    def run_it(self, model, *args, status=0, env=None):
        done = subprocess.run(
            [CKRUN, os.path.join(MODELS, model + ".so"), *map(str, args)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            env=None if env is None else {**os.environ, **env},
        )
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        self.err = done.stderr
        if status == 1:
            self.assertTrue(done.stderr.startswith("ckrun: "), done.stderr)
        return done.stdout if status == 0 else done.stderr

    def linear(self, *args, model="linear", status=0, env=None):
        return self.run_it(
            model, "--init", "w.st", "--inputs", "in.st", *args, status=status, env=env
        )

    def tokens(self, *args, model="tokens", status=0):
        return self.run_it(model, "--init", "table.st", *args, status=status)

    def seen(self, *args, model="tokens"):
        self.tokens(*args, "--outputs", "seen.st", "--quiet", model=model)
        return {k: v[2] for k, v in files.st_read("seen.st")[0].items()}


def adamw(weights, x, t, steps, lr, decay=0.01, b1=0.9, b2=0.999, eps=1e-8, scale=1.5):
    """The linear model in double precision: losses, first gradients, end."""
    w, b = list(weights["w"][2]), list(weights["b"][2])
    p, m, v, losses, first = w + b, [0] * 8, [0] * 8, [], None
    for step in range(1, steps + 1):
        e = [
            [
                sum(x[i * 3 + k] * p[k * 2 + j] for k in range(3)) + p[6 + j] - t[i * 2 + j]
                for j in range(2)
            ]
            for i in range(4)
        ]
        losses.append(scale * sum(c * c for r in e for c in r) / 8)
        g = [
            sum(2 * scale * e[i][j] / 8 * x[i * 3 + k] for i in range(4))
            for k in range(3)
            for j in range(2)
        ]
        g += [sum(2 * scale * e[i][j] / 8 for i in range(4)) for j in range(2)]
        first = first or g
        for i in range(8):
            p[i] *= 1 - lr * decay
            m[i] = b1 * m[i] + (1 - b1) * g[i]
            v[i] = b2 * v[i] + (1 - b2) * g[i] * g[i]
            p[i] -= lr * (m[i] / (1 - b1**step)) / (math.sqrt(v[i] / (1 - b2**step)) + eps)
    return losses, first, p


class Training(Case):
    def close(self, a, b, tol=2e-5):
        self.assertEqual(len(a), len(b))
        for x, y in zip(a, b):
            self.assertLess(abs(x - y), tol * (1 + abs(y)))

    def test_terminals(self):
        """Lines replace each other on a terminal, but not on that of a launcher."""
        run = [CKRUN, os.path.join(MODELS, "linear.so"), "--init", "w.st", "--inputs", "in.st"]
        launched = {"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "1"}
        for env, replaced in ({}, True), (launched, False):
            mine, its = pty.openpty()
            process = subprocess.Popen(
                [*run, "--steps", "3"], stdout=its, stderr=its, env={**os.environ, **env}
            )
            os.close(its)
            text = b""
            with contextlib.suppress(OSError):  # the end of a terminal
                while part := os.read(mine, 4096):
                    text += part
            os.close(mine)
            self.assertEqual(process.wait(60), 0, text)
            self.assertEqual(b"\x1b" in text, replaced, text)
            self.assertIn(b"step 3/3", text)

    def test_adamw(self):
        for model in "linear", "linear_accum":
            out = self.linear(
                "--steps",
                10,
                "--lr",
                0.05,
                "--log",
                "log",
                "--grads",
                "g.st",
                "--save",
                "s.st",
                model=model,
            )
            losses, grads, end = adamw(self.weights, self.x, self.t, 10, 0.05)
            rows = [json.loads(line) for line in open("log")]
            self.close([r["loss"] for r in rows], losses)
            self.assertEqual([r["step"] for r in rows], list(range(1, 11)))
            micro = 2 if model == "linear_accum" else 1
            self.assertEqual({r["samples"] for r in rows}, {4 * micro})
            self.assertEqual({r["peak_bytes"] for r in rows}, {384 + 768})
            self.assertTrue(all(r["seconds"] > 0 for r in rows))
            for r in rows:
                self.assertIn(f"loss {r['loss']:.9g}  ", out)
            g, _ = files.st_read("g.st")
            self.assertEqual(g["w"][1], [3, 2])
            self.close(g["w"][2] + g["b"][2], grads)
            s, meta = files.st_read("s.st")
            self.close(s["w"][2] + s["b"][2], end)
            self.assertEqual(s["count"][2], [10])
            self.assertEqual(meta["step"], "10")
            self.assertEqual(
                set(s), {"w", "b", "count", "adamw.m.w", "adamw.v.w", "adamw.m.b", "adamw.v.b"}
            )

    def test_options_reach_the_kernels(self):
        self.linear(
            "--steps",
            5,
            "--lr=0.1",
            "--weight-decay",
            0.3,
            "--beta1",
            0.8,
            "--beta2",
            0.9,
            "--eps",
            1e-3,
            "--save",
            "s.st",
        )
        _, _, end = adamw(self.weights, self.x, self.t, 5, 0.1, 0.3, 0.8, 0.9, 1e-3)
        s, _ = files.st_read("s.st")
        self.close(s["w"][2] + s["b"][2], end)

    def test_schedule(self):
        self.linear(
            "--steps",
            20,
            "--lr",
            1,
            "--schedule",
            "cosine",
            "--warmup",
            4,
            "--min-lr",
            0.5,
            "--log",
            "log",
        )
        lr = [json.loads(line)["lr"] for line in open("log")]
        self.close(lr[:5], [0.25, 0.5, 0.75, 1, 1])
        self.close(lr[12:13], [0.75])

    def test_schedules(self):
        """Against torch.optim.lr_scheduler's StepLR and CosineAnnealingWarmRestarts (with
        torch 2.15), after warmup; wsd by hand."""

        def rates(*flags, steps=20):
            self.linear("--steps", steps, "--lr", 1, "--warmup", 2, "--log", "log", *flags)
            return [json.loads(line)["lr"] for line in open("log")]

        self.close(rates("--schedule", "step:5")[5:14:4], [1, 0.1, 0.01])
        self.close(rates("--schedule", "step:5,0.5", "--min-lr", 0.2)[7::5], [0.5, 0.25, 0.2])
        self.close(
            rates("--schedule", "restarts:4,2", "--min-lr", 0.5)[2:],
            [
                *[1, 0.9267766952966369, 0.75, 0.5732233047033631],
                *[1, 0.9809698831278217, 0.9267766952966369, 0.8456708580912725],
                *[0.75, 0.6543291419087276, 0.5732233047033631, 0.5190301168721783],
                *[1, 0.9951963201008076, 0.9809698831278217, 0.9578674030756363],
                *[0.9267766952966369, 0.8888925582549005],
            ],
        )
        self.close(rates("--schedule", "restarts:3")[2:9:3], [1, 1, 1])
        self.close(rates("--schedule", "wsd:4")[14:], [1, 1, 1, 0.75, 0.5, 0.25])
        self.close(rates("--schedule", "wsd:4", "--schedule-steps", 30), [0.5] + 19 * [1])
        self.close(rates("--schedule", "wsd")[14:], [1, 1, 1, 0.75, 0.5, 0.25])

    def test_schedule_of_resumed_run(self):
        """A run goes on with the schedule of its checkpoint if it is told to, and says otherwise
        that it is another."""
        flags = ["--lr", 0.1, "--schedule", "linear"]

        def resume(*args):
            self.run_it("linear", "--inputs", "in.st", *args, "--resume", "s.st", "--log", "log")

        def rates():
            return [json.loads(line)["lr"] for line in open("log")]

        self.linear("--steps", 12, *flags, "--log", "log")
        whole = rates()
        self.linear("--steps", 6, "--schedule-steps", 12, *flags, "--save", "s.st")
        resume("--steps", 12, *flags)
        self.assertEqual(self.err, "")
        self.close(rates()[-6:], whole[6:])
        resume("--steps", 18, *flags)
        self.assertIn("ends at step 18, that of s.st at step 12", self.err)
        self.assertIn("to keep its end: --schedule-steps 12", self.err)
        resume("--steps", 18, *flags, "--schedule-steps", 12)
        self.assertIn("--schedule-steps 12 ends before step 18", self.err)
        self.close(rates()[-12:], whole[6:] + 6 * [0])
        resume("--steps", 18, "--lr", 0.1)
        self.assertIn("was to fall until step 12, now it is that of --schedule constant", self.err)

    def test_resume_is_exact(self):
        self.linear(
            "--steps",
            9,
            "--save",
            "a.st",
            "--log",
            "a.log",
            "--lr",
            0.1,
            "--schedule",
            "constant",
            "--seed",
            7,
        )
        self.linear("--steps", 4, "--save", "b.st", "--log", "b.log", "--lr", 0.1, "--seed", 7)
        self.run_it(
            "linear",
            "--resume",
            "b.st",
            "--inputs",
            "in.st",
            "--steps",
            9,
            "--lr",
            0.1,
            "--save",
            "b.st",
            "--log",
            "b.log",
        )
        self.assertEqual(open("a.st", "rb").read(), open("b.st", "rb").read())
        self.assertEqual(files.losses("a.log"), files.losses("b.log"))
        out = self.run_it("linear", "--resume", "b.st", "--inputs", "in.st", "--steps", 9)
        self.assertIn("nothing to do", out)

    def test_check(self):
        out = self.linear("--steps", 3, "--check")
        self.assertIn("all bits equal", out)
        self.linear("--steps", 1, "--grads", "a.st")
        self.linear("--steps", 1, "--check", "--grads", "b.st")
        self.assertEqual(open("a.st", "rb").read(), open("b.st", "rb").read())
        self.assertIn("6 of them recomputed", out)
        err = self.linear("--steps", 3, "--check", model="linear_slip", status=1)
        self.assertIn("'pred.again'", err)
        err = self.linear("--steps", 3, "--check", model="linear_slip2", status=1)
        self.assertIn("'pred.again.2'", err)

    def test_trace_and_profile_of_a_check(self):
        """Those of the plan's run, as without --check."""
        for more in [], ["--check"]:
            self.linear("--steps", 4, "--trace", "t.json", "--profile", "p.json", *more)
            ops = [e for e in json.load(open("t.json"))["traceEvents"] if e["ph"] == "X"]
            self.assertEqual(
                [(e["args"]["step"], e["args"]["index"]) for e in ops],
                [(s, i) for s in (1, 2, 3) for i in range(10)],
            )
            self.assertEqual(
                [o["index"] for o in json.load(open("p.json"))["ops"]], list(range(10))
            )

    def test_momentum_is_not_ignored(self):
        err = self.linear("--steps", 1, "--momentum", 0.9, status=1)
        self.assertIn(
            "optimizer is adamw, which keeps no momentum; compile it with --optimizer sgdm", err
        )

    def test_resume_of_another_optimizer(self):
        self.linear("--steps", 2, "--save", "s.st")
        s, meta = files.st_read("s.st")
        for was, words in (
            ("sgd", "the run's optimizer was sgd, the library's is adamw"),
            ("adamw", None),
        ):
            files.st_write("t.st", s, {**meta, "optimizer": was})
            out = self.run_it(
                "linear",
                "--resume",
                "t.st",
                "--inputs",
                "in.st",
                "--steps",
                3,
                status=1 if words else 0,
            )
            self.assertIn(words or "step 3/3", out)

    def test_resume_of_an_edited_checkpoint(self):
        self.linear("--steps", 2, "--save", "s.st")
        s, meta = files.st_read("s.st")
        most = str(2**64 - 1)

        def resume(words, **more):
            files.st_write("t.st", s, {**meta, **more})
            out = self.run_it(
                "linear",
                "--resume",
                "t.st",
                "--inputs",
                "in.st",
                "--steps",
                3,
                status=1 if words else 0,
            )
            self.assertIn(words or "peak", out)

        for key, text in (
            ("step", str(2**64)),
            ("seed", str(2**70)),
            ("seed", "-1"),
            ("step", "2 "),
            ("skipped", "x"),
        ):
            resume(
                f"t.st: not a checkpoint: {key}: expected a whole number below 2^64, found '{text}'",
                **{key: text},
            )
        resume(
            "t.st: the run's random number generator was 'mt19937', expected philox4x32-10",
            rng="mt19937",
        )
        resume(None, seed=most, skipped="2", rng="philox4x32-10")
        resume(None, step=most)
        with open("t.st", "wb") as f:
            f.write(files.st_bytes(s, meta) + b"more!")
        size = sum(
            files.count(shape) * (8 if dtype == "I64" else 4) for dtype, shape, _ in s.values()
        )
        for option in "--resume", "--init":
            out = self.run_it("linear", option, "t.st", "--inputs", "in.st", "--steps", 3, status=1)
            self.assertIn(f"t.st: data bytes {size}..{size + 5} belong to no tensor", out)

    def test_options_of_other_optimizers(self):
        done = subprocess.run(
            [
                CKRUN,
                f"{MODELS}/linear.so",
                "--init",
                "w.st",
                "--inputs",
                "in.st",
                "--steps",
                "1",
                "--nesterov",
                "--eps2",
                "1",
                "--clip-threshold",
                "2",
                "--beta2-decay",
                "-1",
                "--eps",
                "1e-8",
            ],
            capture_output=True,
            text=True,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(
            done.stderr,
            "".join(
                f"ckrun: warning: --{x} has no effect: the library's optimizer is adamw\n"
                for x in ("nesterov", "beta2-decay", "clip-threshold", "eps2")
            ),
        )

    def test_poison_changes_nothing(self):
        self.linear("--steps", 3, "--log", "a")
        self.linear("--steps", 3, "--log", "b", env={"CKR_POISON": "1"})
        self.assertEqual(files.losses("a"), files.losses("b"))

    def test_blas_and_threads(self):
        logs = []
        for blas in "own", "onednn", "openblas":
            for threads in 1, 2:
                args = ("--steps", 3, "--blas", blas, "--threads", threads, "--log", "log")
                done = subprocess.run(
                    [
                        CKRUN,
                        f"{MODELS}/linear.so",
                        "--init",
                        "w.st",
                        "--inputs",
                        "in.st",
                        *map(str, args),
                    ],
                    capture_output=True,
                    text=True,
                )
                if done.returncode and "cannot be loaded" in done.stderr and blas != "own":
                    continue
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn("products by " + blas, done.stdout)
                logs.append(files.losses("log"))
        for log in logs:
            self.close(log, logs[0], 1e-6)

    def test_export(self):
        self.linear("--steps", 1, "--save", "s.st", "--export-onnx", "e.onnx")
        s, _ = files.st_read("s.st")
        raw = open("e.onnx", "rb").read()
        want = (
            b"HEAD"
            + struct.pack("<6f", *s["w"][2])
            + b"mi"
            + struct.pack("<2e", *s["b"][2])
            + b"TAIL"
        )
        self.assertEqual(raw, want)

    def test_export_needs_the_file(self):
        open("t", "wb").write(bytes(40))
        err = self.tokens("--data", "t", "--tokens", "bytes", "--export-onnx", "e", status=1)
        self.assertIn("does not contain its ONNX file", err)

    def test_trace_and_profile(self):
        self.linear("--steps", 5, "--trace", "t.json", "--profile", "p.json")
        trace = json.load(open("t.json"))["traceEvents"]
        ops = [e for e in trace if e["ph"] == "X"]
        self.assertEqual(len(ops), 3 * 10)
        memory = [e["args"]["arena in use"] for e in trace if e["ph"] == "C"]
        self.assertTrue(0 < max(memory) <= 384)
        self.assertEqual({e["cat"] for e in ops}, {"forward", "recompute", "backward", "update"})
        profile = json.load(open("p.json"))
        self.assertEqual(profile["steps"], 5)
        self.assertEqual(len(profile["ops"]), 10)
        self.linear("--steps", 1, env={"CKR_TRACE": "u.json"})
        json.load(open("u.json"))

    def test_profile_table(self):
        """What is printed are sums over the file's ops, those of most time first."""
        said = self.linear("--steps", 5, "--profile", "p.json")
        profile = json.load(open("p.json"))
        flops, bandwidth, kinds = profile["peak_flops"]["f32"], profile["bandwidth"], {}
        for op in profile["ops"]:
            roof = max(
                op["flops"] / flops if flops else 0, op["bytes"] / bandwidth if bandwidth else 0
            )
            self.assertTrue(math.isclose(op["roof"], roof, rel_tol=1e-5), op)
            for i, x in enumerate((1, op["least"])):
                kinds.setdefault((op["op"], op["phase"]), [0, 0])[i] += x
        rows = said[said.index("of roof\n") + 8 :].splitlines()[:-1]
        whole, order = sum(s for _, s in kinds.values()), []
        for op, phase, count, seconds, share, *_ in map(str.split, rows):
            n, s = kinds.pop((op, phase))
            self.assertEqual(
                (int(count), seconds, share), (n, f"{s:.6f}", f"{100 * s / whole:.0f}")
            )
            order.append(s)
        self.assertEqual(order, sorted(order, reverse=True))
        self.assertTrue(all(s <= 0.0101 * whole for _, s in kinds.values()), kinds)

    def test_profile_leaves_the_first_step_out(self):
        """Of two steps one is measured; of one step that one, which is said."""
        self.linear("--steps", 2, "--profile", "p.json")
        profile = json.load(open("p.json"))
        self.assertEqual(
            [op["seconds"] for op in profile["ops"]], [op["least"] for op in profile["ops"]]
        )
        self.assertEqual(profile["cold"], 0)
        self.assertEqual(self.err, "")
        self.linear("--steps", 1, "--profile", "p.json")
        profile = json.load(open("p.json"))
        self.assertTrue(all(op["seconds"] > 0 for op in profile["ops"]))
        self.assertEqual(profile["cold"], len(profile["ops"]))
        self.assertIn("--profile measured only the first step", self.err)

    def test_interrupt(self):
        args = [
            CKRUN,
            f"{MODELS}/linear.so",
            "--init",
            "w.st",
            "--inputs",
            "in.st",
            "--steps",
            "100000000",
            "--save",
            "s.st",
        ]
        p = subprocess.Popen(args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(10):
            p.stdout.readline()
        p.send_signal(signal.SIGINT)
        out, err = p.communicate(timeout=30)
        self.assertEqual(p.returncode, 1)
        self.assertIn("stopped after step", err)
        step = int(err.split("step")[1])
        self.assertEqual(files.st_read("s.st")[1]["step"], str(step))

    def test_hangup(self):
        """A lost terminal ends a run as Ctrl-C does, unless it was begun under nohup."""
        args = [
            CKRUN,
            f"{MODELS}/linear.so",
            "--init",
            "w.st",
            "--inputs",
            "in.st",
            "--steps",
            "100000000",
            "--save",
            "s.st",
        ]
        for ignored in False, True:
            p = subprocess.Popen(
                args,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                preexec_fn=lambda: signal.signal(
                    signal.SIGHUP, signal.SIG_IGN if ignored else signal.SIG_DFL
                ),
            )
            p.stdout.readline()
            p.send_signal(signal.SIGHUP)
            if ignored:
                for _ in range(2000):
                    self.assertTrue(p.stdout.readline())
                p.terminate()
            out, err = p.communicate(timeout=30)
            self.assertEqual(p.returncode, 1)
            self.assertIn("stopped after step", err)
            step = int(err.split("step")[1])
            self.assertEqual(files.st_read("s.st")[1]["step"], str(step))
            self.assertTrue(not ignored or step >= 1000, step)

    def test_limit_of_files(self):
        """ulimit -f is an error that is said, not the end by a signal."""
        p = subprocess.run(
            [
                CKRUN,
                f"{MODELS}/linear.so",
                "--init",
                "w.st",
                "--inputs",
                "in.st",
                "--steps",
                "1",
                "--save",
                "s.st",
            ],
            capture_output=True,
            text=True,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (16, 16)),
        )
        self.assertEqual(p.returncode, 1, p.stderr)
        self.assertIn("s.st: cannot write: File too large", p.stderr)
        self.assertFalse(os.path.exists("s.st"))

    def test_kill_while_saving(self):
        """kill -9 at any moment leaves a whole checkpoint; what one killed between name and rename
        leaves, the next save takes away."""
        self.linear("--steps", 1, "--save", "s.st", "--lr", 0.001)
        self.linear("--steps", 400, "--log", "all.log", "--lr", 0.001)
        whole = files.losses("all.log")
        args = [
            CKRUN,
            f"{MODELS}/linear.so",
            "--inputs",
            "in.st",
            "--save",
            "s.st",
            "--save-every",
            "1",
            "--quiet",
            "--lr",
            "0.001",
            "--steps",
            "100000000",
            "--resume",
            "s.st",
        ]
        for i in range(25):
            p = subprocess.Popen(args)
            time.sleep(0.02 + random.random() * 0.08)
            p.kill()
            p.wait()
            step = int(files.st_read("s.st")[1]["step"])
            if step < 399:
                self.run_it(
                    "linear",
                    "--resume",
                    "s.st",
                    "--inputs",
                    "in.st",
                    "--steps",
                    step + 1,
                    "--lr",
                    0.001,
                    "--log",
                    f"log{i}",
                )
                self.assertEqual(files.losses(f"log{i}"), [whole[step]])
        open("s.st.ckc-tmp1", "w").close()
        with open("s.st.ckc-tmp0", "w") as other:
            fcntl.flock(other, fcntl.LOCK_EX)  # somebody still writes this one
            self.linear("--steps", 1, "--save", "s.st", "--lr", 0.001)
            self.assertEqual(
                sorted(f for f in os.listdir(".") if f.startswith("s.st")),
                ["s.st", "s.st.ckc-tmp0"],
            )


class Errors(Case):
    def test_usage(self):
        for args in (
            [],
            ["--bogus"],
            ["--steps"],
            ["--steps", "x"],
            ["--steps", "-1"],
            ["--lr", "fast"],
            ["--quiet=1"],
            ["--tokens", "u16"],
            ["--save-every", "2"],
            ["--data", "a", "--inputs", "b"],
            ["--schedule", "sometimes"],
            ["--schedule", "co"],
            ["--schedule", "step"],
            ["--schedule", "step:0"],
            ["--schedule", "step:3,"],
            ["--schedule", "wsd:3,0.5"],
            ["--schedule", "restarts:3,0.5"],
            ["--schedule", "restarts:3,1e308"],
            ["--schedule", "step:3,1.5"],
            ["--schedule", "linear", "--schedule-steps", "5", "--warmup", "5"],
            ["--schedule", "linear:3"],
            ["--schedule-steps", "0"],
            ["--init", "a", "--resume", "b"],
            ["--lr", "-1"],
            ["--min-lr", "-1"],
            ["--weight-decay", "-1"],
            ["--clip", "-1"],
            ["--threads", "0"],
            ["--threads", "65537"],
        ):
            done = subprocess.run(
                [CKRUN] + ([f"{MODELS}/linear.so"] if args else []) + args,
                capture_output=True,
                text=True,
            )
            self.assertEqual(done.returncode, 2, args)
            self.assertTrue(done.stderr.startswith("ckrun: "), done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1)
        self.assertIn("--steps", self.linear(status=2))
        done = subprocess.run([CKRUN, "--help"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0)
        for option in (
            "--data",
            "--grads",
            "--export-onnx",
            "--save-every",
            "tokens:A",
            "float, int",
        ):
            self.assertIn(option, done.stdout)
        self.assertEqual(subprocess.run([CKRUN, "--version"], capture_output=True).returncode, 0)
        with open("/dev/full", "wb") as full:
            for flag in "--help", "--version":
                self.assertEqual(
                    subprocess.run(
                        [CKRUN, flag], stdout=full, stderr=subprocess.DEVNULL
                    ).returncode,
                    1,
                )

    def test_a_file_given_twice(self):
        for option in (
            "--inputs",
            "--resume",
            "--save",
            "--outputs",
            "--grads",
            "--log",
            "--export-onnx",
            "--trace",
            "--profile",
        ):
            done = self.both(f"{MODELS}/linear.so", option, "a", option, "b")
            self.assertEqual(done.returncode, 2)
            self.assertIn(f"{option} is given twice", done.stderr)
        self.linear(
            "--inputs", "in.st", "--init=w.st", "--steps", 2, "--steps", 1, "--lr", 1, "--lr", 2
        )

    def test_names_of_other_formats(self):
        for option in "--save", "--outputs", "--grads":
            for name in "out.npz", "out.npy":
                done = self.both(
                    f"{MODELS}/linear.so",
                    "--init",
                    "w.st",
                    "--inputs",
                    "in.st",
                    "--steps",
                    1,
                    option,
                    name,
                )
                self.assertEqual(done.returncode, 2)
                self.assertIn(f"{option} writes safetensors, not NumPy files", done.stderr)
                self.assertFalse(os.path.exists(name))

    def test_models_that_are_none(self):
        open("m.onnx", "wb").write(b"\x08\x08\x12\x07pytorch")
        files.st_write("m.st", self.weights)
        open("empty", "wb").close()
        for path, want in (
            ("m.onnx", "expected a compiled model, found an ONNX file; try: ckc m.onnx -o m.so"),
            ("m.st", "not a compiled model"),
            ("empty", "not a compiled model"),
        ):
            done = self.both(path, "--inputs", "in.st", "--steps", 1)
            self.assertEqual(done.returncode, 1)
            self.assertIn(f"{path}: ", done.stderr)
            self.assertIn(want, done.stderr)

    def both(self, *args):
        """The model beside its weights, both in this folder."""
        return subprocess.run([CKRUN, *map(str, args)], capture_output=True, text=True, timeout=60)

    def test_inputs_are_never_written(self):
        shutil.copy(f"{MODELS}/linear.so", "m.so")
        files.st_write("m.safetensors", self.weights)
        files.st_write("other.st", self.weights)
        os.symlink("in.st", "link.st")
        os.mkdir("d")
        os.symlink("..", "d/up")
        before = {f: open(f, "rb").read() for f in ("m.so", "m.safetensors", "in.st", "other.st")}
        outputs = "--save", "--outputs", "--grads", "--log", "--export-onnx", "--trace", "--profile"
        cases = [[flag, path] for flag in outputs for path in before]
        cases += [
            ["--save", path]
            for path in ("./in.st", "link.st", "d/up/in.st", os.path.abspath("m.so"))
        ]
        cases += [["--save", "new", "--log", "./new"], ["--grads", "d/up/new", "--outputs", "new"]]
        for case in cases:
            done = self.both("m.so", "--inputs", "in.st", "--init", "other.st", "--steps", 1, *case)
            self.assertEqual(done.returncode, 1, case)
            self.assertIn("is both", done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1)
            self.assertFalse(os.path.exists("new"))
        for f, content in before.items():
            self.assertEqual(open(f, "rb").read(), content, f)

    def test_models_that_are_cut_off(self):
        whole = open(f"{MODELS}/linear.so", "rb").read()
        for n in 10, 1000, len(whole) // 2, len(whole) - 1:
            with open("cut.so", "wb") as f:
                f.write(whole[:n])
            done = self.both("cut.so", "--inputs", "in.st", "--init", "w.st", "--steps", 1)
            self.assertEqual(done.returncode, 1, n)
            self.assertTrue(n < 64 or "cut off" in done.stderr, done.stderr)

    def test_a_checkpoint_may_go_on(self):
        self.linear("--steps", 1, "--save", "s.st")
        self.run_it(
            "linear", "--inputs", "in.st", "--steps", 2, "--resume", "s.st", "--save", "./s.st"
        )
        self.assertEqual(files.st_read("s.st")[1]["step"], "2")
        err = self.run_it(
            "linear",
            "--inputs",
            "in.st",
            "--steps",
            3,
            "--resume",
            "s.st",
            "--save",
            "s.st",
            "--log",
            "s.st",
            status=1,
        )
        self.assertIn("is both --resume and --log", err)
        self.run_it(
            "linear", "--inputs", "in.st", "--steps", 3, "--resume", "s.st", "--log", "/dev/null"
        )

    def warned(self, *args, status=0):
        done = self.both(
            f"{MODELS}/linear.so", "--init", "w.st", "--inputs", "in.st", "--quiet", *args
        )
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stderr

    def test_weights_without_a_place(self):
        """What a file of weights holds in vain is told once, whether it is a checkpoint or not;
        what is not for the graph is not told."""
        self.linear("--steps", 1, "--save", "s.st")
        self.assertEqual(self.err, "")
        more = {f"m.{i}": ("F32", [1], [0.0]) for i in range(4)}
        files.st_write(
            "more.st", {**self.weights, **more, "bn.num_batches_tracked": ("I64", [], [7])}
        )
        run = "linear", "--inputs", "in.st", "--steps", 2
        self.run_it(*run, "--init", "more.st")
        self.assertIn(
            "more.st: 4 of 8 tensors are not used by the model: 'm.0', 'm.1', 'm.2', ...; ",
            self.err,
        )
        self.assertEqual(self.err.count("not used by"), 1)
        self.run_it(*run, "--init", "more.st", "--quiet")
        self.assertEqual(self.err, "")
        for option in (
            "--init",
            "--resume",
        ):  # states of an optimizer are for --resume, and known to --init
            self.run_it(*run, option, "s.st")
            self.assertEqual(self.err, "")
        arrays, meta = files.st_read("s.st")
        files.st_write("s.st", {**arrays, "old": ("F32", [1], [0.0])}, meta)
        self.run_it(*run, "--resume", "s.st")
        self.assertIn("s.st: 1 of ", self.err)
        self.assertIn("is not used by the model: 'old'; ", self.err)

    def test_warnings(self):
        self.assertEqual(self.warned("--steps", 2), "")
        self.assertIn(
            "--min-lr 1 is above --lr 0.1",
            self.warned("--steps", 2, "--lr", 0.1, "--min-lr", 1, "--schedule", "cosine"),
        )
        self.assertIn(
            "--warmup 9 is longer than the run of 2 steps", self.warned("--steps", 2, "--warmup", 9)
        )
        self.assertIn("cannot use 64", self.warned("--steps", 1, "--threads", 64))

    def test_loss_that_is_not_finite(self):
        x = [math.inf] + self.x[1:]
        files.st_write("in.st", {"x": ("F32", [4, 3], x), "target": ("F32", [4, 2], self.t)})
        err = self.warned("--steps", 5, "--save", "s.st", "--on-nan", "go")
        self.assertEqual(err, "ckrun: warning: loss is not finite at step 1\n")
        self.assertEqual(files.st_read("s.st")[1]["step"], "5")
        for more in [], ["--on-nan", "stop"], ["--check"]:
            err = self.warned("--steps", 5, "--save", "t.st", *more, status=1)
            self.assertEqual(
                err,
                "ckrun: step 1: the loss is not finite: inf; no checkpoint holds a good state; try: "
                "--save-every N\n",
            )
            self.assertFalse(os.path.exists("t.st"))
        self.assertEqual(
            self.warned("--steps", 5, status=1), "ckrun: step 1: the loss is not finite: inf\n"
        )
        self.assertIn("is not stop, skip or go", self.warned("--on-nan", "ignore", status=2))

    def test_good_checkpoints_stay(self):
        """A learning rate of 1e30 makes parameters whose loss overflows; one of 1e39 makes infinite
        ones."""
        err = self.linear(
            "--steps",
            5,
            "--lr",
            1e30,
            "--save",
            "s.st",
            "--save-every",
            1,
            "--log",
            "log",
            status=1,
        )
        self.assertEqual(
            err, "ckrun: step 2: the loss is not finite: inf; 's.st' holds the state after step 1\n"
        )
        self.assertEqual(files.st_read("s.st")[1]["step"], "1")
        rows = [json.loads(line) for line in open("log")]
        self.assertEqual([(r["step"], r["loss"] is None) for r in rows], [(1, False), (2, True)])
        before = open("s.st", "rb").read()
        err = self.run_it(
            "linear",
            "--inputs",
            "in.st",
            "--steps",
            5,
            "--resume",
            "s.st",
            "--save",
            "s.st",
            status=1,
        )
        self.assertIn(
            "step 2: the loss is not finite: inf; the last good state is the checkpoint 's.st'", err
        )
        self.assertEqual(open("s.st", "rb").read(), before)
        for every in ["--save-every", 1], []:
            err = self.linear("--steps", 1, "--lr", 1e39, "--save", "t.st", *every, status=1)
            self.assertIn("after step 1 'w' is not finite: ", err)
            self.assertIn("no checkpoint holds a good state", err)
            self.assertFalse(os.path.exists("t.st"))
        self.linear("--steps", 1, "--lr", 1e39, "--save", "t.st", "--on-nan", "go")
        self.assertTrue(os.path.exists("t.st"))

    def test_skipping(self):
        """One sample of twelve is bad: each third step is skipped, the same ones again, resumed or
        not."""
        x, t = reals(36), reals(24)
        x[13] = math.nan
        files.st_write("d.st", {"x": ("F32", [12, 3], x), "target": ("F32", [12, 2], t)})

        def run(*args):
            return self.run_it("linear", "--data", "d.st", "--seed", 3, "--on-nan", "skip", *args)

        out = run("--init", "w.st", "--steps", 9, "--save", "a.st", "--log", "a.log")
        self.assertIn("3 steps skipped", out)
        rows = [json.loads(line) for line in open("a.log")]
        self.assertEqual(sum("skipped" in r for r in rows), 3)
        self.assertTrue(all(("skipped" in r) == (r["loss"] is None) for r in rows))
        run("--init", "w.st", "--steps", 4, "--save", "b.st")
        run("--resume", "b.st", "--steps", 9, "--save", "b.st")
        self.assertEqual(open("a.st", "rb").read(), open("b.st", "rb").read())
        s, meta = files.st_read("a.st")
        self.assertEqual((meta["step"], meta["skipped"], s["count"][2]), ("9", "3", [6]))
        self.weights["w"][2][0] = math.inf
        files.st_write("w.st", self.weights)
        err = self.run_it(
            "linear", "--data", "d.st", "--init", "w.st", "--on-nan", "skip", "--steps", 9, status=1
        )
        self.assertIn("after step 1 'w' is not finite: inf", err)

    def test_files(self):
        missing = self.run_it("linear", "--inputs", "in.st", "--steps", 1, status=1)
        self.assertIn("is missing", missing)
        for flag in "--init", "--resume", "--inputs":
            args = {"--init": "w.st", "--inputs": "in.st"}
            if flag == "--resume":
                del args["--init"]
            args[flag] = "none.st"
            err = self.run_it(
                "linear", *sum(([k, v] for k, v in args.items()), []), "--steps", 1, status=1
            )
            self.assertIn("none.st: cannot read: No such file", err)
        for flag in (
            "--save",
            "--outputs",
            "--grads",
            "--log",
            "--trace",
            "--profile",
            "--export-onnx",
        ):
            err = self.linear("--steps", 1, flag, "no/folder/x", status=1)
            self.assertIn("no/folder/x: cannot write", err)
            self.assertEqual(
                os.listdir("."), [f for f in os.listdir(".") if not f.startswith("no")]
            )
        # one that is written late is tried early
        for flag in "--save", "--save-best", "--outputs", "--export-onnx", "--profile":
            open("log", "w").close()
            err = self.linear(
                "--steps",
                2,
                "--valid",
                "in.st",
                "--valid-every",
                2,
                flag,
                "no/folder/x",
                "--log",
                "log",
                status=1,
            )
            self.assertIn("no/folder/x: cannot write", err)
            self.assertEqual(os.path.getsize("log"), 0, flag)
        err = self.linear("--steps", 1, "--save", "/dev/null", status=1)
        self.assertIn("not a regular file", err)
        self.assertTrue(os.path.exists("/dev/null") and not os.path.isfile("/dev/null"))
        done = subprocess.run([CKRUN, "none.so"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)

    def test_wrong_arrays(self):
        files.st_write("in.st", {"x": ("F32", [4, 3], self.x)})
        err = self.linear("--steps", 1, status=1)
        self.assertIn("'target'", err)
        self.assertIn("x f32[4,3]", err)
        files.st_write("in.st", {"x": ("F32", [3, 4], self.x), "target": ("F32", [4, 2], self.t)})
        err = self.linear("--steps", 1, status=1)
        self.assertIn("f32[3,4]", err)
        files.st_write("w.st", {**self.weights, "w": ("F32", [2, 3], reals(6))})
        self.assertIn("expected f32[3,2], found f32[2,3]", self.linear("--steps", 1, status=1))
        # a quantised model's codes
        files.st_write("w.st", {**self.weights, "w": ("I8", [3, 2], [1, 2, 3, 4, 5, 6])})
        self.assertIn("'w': expected f32[3,2], found i8[3,2]", self.linear("--steps", 1, status=1))
        del self.weights["b"]
        files.st_write("w.st", self.weights)
        self.assertIn(
            "1 of 3 parameters and buffers are missing", self.linear("--steps", 1, status=1)
        )

    def test_no_output_on_failure(self):
        files.st_write(
            "in.st", {"x": ("F32", [4, 3], self.x), "target": ("F32", [4, 2], [1e9] * 8)}
        )
        before = set(os.listdir("."))
        err = self.linear(
            "--steps", 1, "--save", "s", "--grads", "g", "--outputs", "o", "--trace", "t", status=1
        )
        self.assertIn("target out of range: 0", err)
        self.assertLessEqual(set(os.listdir(".")) - before, {"t"})


class Feeding(Case):
    def stream(self, n=40):
        with open("t.u16", "wb") as f:
            f.write(struct.pack(f"<{n}H", *[i % 16 for i in range(n)]))

    def check_windows(self, seen):
        for row in 0, 4:
            first = seen["seen_ids"][row]
            self.assertEqual(seen["seen_ids"][row : row + 4], [(first + i) % 16 for i in range(4)])
            self.assertEqual(
                seen["seen_labels"][row : row + 4], [(first + 1 + i) % 16 for i in range(4)]
            )
        self.assertEqual(seen["seen_mask"], [1] * 8)
        self.assertEqual(seen["seen_positions"], [0, 1, 2, 3])

    def test_streams(self):
        self.stream()
        values = [i % 16 for i in range(40)]
        open("t.u32", "wb").write(struct.pack("<40I", *values))
        open("t.txt", "wb").write(bytes(values))
        open("t.npy", "wb").write(files.npy_bytes("<i8", [40], values))
        open("t2.npy", "wb").write(files.npy_bytes("<u2", [40], values, version=2))
        files.st_write("t.st", {"anything": ("U8", [40], values)})
        with zipfile.ZipFile("t.npz", "w") as z:
            z.writestr("tokens.npy", files.npy_bytes("<i4", [40], values))
            z.writestr("other.npy", files.npy_bytes("<i4", [3], [1, 2, 3]))
        want = self.seen("--data", "t.u16", "--tokens", "u16")
        self.check_windows(want)
        for args in (
            ["t.u32", "--tokens", "u32"],
            ["t.txt", "--tokens", "bytes"],
            ["t.npy"],
            ["t2.npy"],
            ["t.st"],
            ["t.npz"],
        ):
            self.assertEqual(self.seen("--data", *args), want, args)

    def test_seed_and_steps_choose_windows(self):
        self.stream(4000)
        args = ["--data", "t.u16", "--tokens", "u16"]
        a = self.seen(*args, "--steps", 2)
        self.assertEqual(a, self.seen(*args, "--steps", 2))
        self.assertNotEqual(a, self.seen(*args, "--steps", 3))
        self.assertNotEqual(a, self.seen(*args, "--steps", 2, "--seed", 1))

    def test_shortest_stream(self):
        self.stream(5)
        self.check_windows(self.seen("--data", "t.u16", "--tokens", "u16", "--steps", 5))
        self.stream(4)
        err = self.tokens("--data", "t.u16", "--tokens", "u16", status=1)
        self.assertIn("4 tokens are too few for windows of 5", err)

    def test_shifted_labels(self):
        self.stream()
        seen = self.seen("--data", "t.u16", "--tokens", "u16", model="tokens_shifted")
        self.assertEqual(seen["seen_ids"], seen["seen_labels"])

    def test_feed(self):
        self.stream()
        args = ["--data", "t.u16", "--tokens", "u16"]
        seen = self.seen(
            *args,
            "--feed",
            "labels=zeros",
            "--feed",
            "attention_mask=next",
            "--feed",
            "position_ids=ones",
        )
        self.assertEqual(seen["seen_labels"], [0] * 8)
        self.assertEqual(seen["seen_positions"], [1] * 4)
        self.assertEqual(seen["seen_mask"][0], (seen["seen_ids"][0] + 1) % 16)
        for bad in "labels", "labels=", "nothing=ones", "labels=thing":
            self.tokens(*args, "--feed", bad, status=1)

    def test_replicas(self):
        """They share out the samples that one of them would take in as many steps."""
        self.stream(2001)
        os.rename("t.u16", "0.u16")
        self.stream(1999)
        args = ["--data", "0.u16", "--data", "t.u16", "--tokens", "u16"]
        one = [self.seen(*args, "--steps", k + 1) for k in range(6)]
        for step in 1, 2:
            all3 = self.seen(*args, "--ranks", 3, "--steps", step, model="tokens_replicas")
            part = one[3 * step - 3 : 3 * step]
            for name in "seen_ids", "seen_labels":
                self.assertEqual(all3[name], [x for p in part for x in p[name]])
            self.assertEqual(all3["seen_positions"], one[0]["seen_positions"])
            self.assertAlmostEqual(all3["loss"][0], sum(p["loss"][0] for p in part) / 3, 6)
        out = self.tokens(*args, "--ranks", 3, "--steps", 1, model="tokens_replicas")
        self.assertIn("3 virtual ranks (data parallel)", out)
        self.assertIn("\n  an epoch is 999 windows, 166.5 steps\n", out)
        out = self.tokens(*args, "--ranks", 3, "--epochs", 1, model="tokens_replicas")
        self.assertIn("step 167/167 ", out)
        self.assertEqual(self.seen(*args, model="tokens_replicas"), one[0])
        self.seen(*args, "--ranks", 2, "--steps", 2, "--save", "c.st", model="tokens_replicas")
        self.assertEqual(files.st_read("c.st")[1]["samples"], "8")
        out = self.run_it(
            "tokens_replicas", *args, "--resume", "c.st", "--steps", 3, "--outputs", "seen.st"
        )
        self.assertEqual(files.st_read("seen.st")[0]["seen_ids"][2], one[4]["seen_ids"], out)

    def test_ranks_refused(self):
        self.stream()
        args = ["--data", "t.u16", "--tokens", "u16"]
        err = self.tokens(*args, "--ranks", 2, status=1)
        self.assertIn(
            "compiled for one replica (1 ranks), got 2 ranks; compile it with ckc --dp", err
        )
        err = self.tokens(*args, "--ranks", 1025, model="tokens_replicas", status=1)
        self.assertIn("at most 1024 replicas, got 1025", err)

    def test_unclear(self):
        self.stream()
        args = ["--data", "t.u16", "--tokens", "u16"]
        err = self.tokens(*args, model="tokens_unclear", status=1)
        self.assertIn("more than one input could take the tokens", err)
        self.assertIn("other i32[2,4]", err)
        self.seen(*args, "--feed", "other=next", model="tokens_unclear")

    def test_samples(self):
        n = 10
        rows = [[100 * i + k for k in range(4)] for i in range(n)]
        files.st_write(
            "d.st",
            {
                "input_ids": ("I64", [n, 4], [i for i in range(n) for _ in range(4)]),
                "labels": ("I16", [n, 4], sum(rows, [])),
                "attention_mask": ("BOOL", [n, 4], [True] * 40),
            },
        )
        args = ["--data", "d.st", "--feed", "position_ids=positions"]
        count = [0] * n
        for step in range(1, 11):  # two epochs of ten samples
            seen = self.seen(*args, "--steps", step)
            for row in 0, 4:
                i = seen["seen_ids"][row]
                count[i] += 1
                self.assertEqual(seen["seen_labels"][row : row + 4], rows[i])
            if step == 5:
                self.assertEqual(count, [1] * n)
        self.assertEqual(count, [2] * n)
        files.st_write(
            "d.st",
            {
                "input_ids": ("I64", [9, 4], [0] * 36),
                "labels": ("I16", [8, 4], [0] * 32),
                "attention_mask": ("BOOL", [9, 4], [True] * 36),
            },
        )
        self.assertIn(" samples, but the array of '", self.tokens(*args, status=1))

    def test_one_array_one_input_needs_a_name(self):
        open("t.npy", "wb").write(files.npy_bytes("<f4", [3, 4], [0] * 12))
        err = self.tokens("--data", "t.npy", status=1)
        self.assertIn("f32[3,4]", err)
        open("t.npy", "wb").write(files.npy_bytes("<i4", [40], [99] * 40))
        self.assertIn("vocabulary of 16: 99", self.tokens("--data", "t.npy", status=1))
        open("t.npy", "wb").write(files.npy_bytes("<u8", [40], [2**63] * 40))
        err = self.tokens("--data", "t.npy", status=1)
        self.assertRegex(
            err, r"^ckrun: t.npy: element \d+ is 9.2\d*e\+18, which does not fit i64\n"
        )
        open("t.npy", "wb").write(files.npy_bytes("<i4", [40], [0] * 40)[:-1])
        self.assertIn("cut off", self.tokens("--data", "t.npy", status=1))

    def test_npz(self):
        with zipfile.ZipFile("c.npz", "w", zipfile.ZIP_BZIP2) as z:
            z.writestr("tokens.npy", files.npy_bytes("<i4", [400], [0] * 400))
        err = self.tokens("--data", "c.npz", status=1)
        self.assertIn(
            "'tokens' is compressed by method 12; save it with numpy.savez: np.savez('new.npz', **np.load('c.npz'))\n",
            err,
        )
        with zipfile.ZipFile("c.npz", "w") as z:
            with z.open("tokens.npy", "w", force_zip64=True) as f:
                f.write(files.npy_bytes("<i4", [40], [0] * 40))
        self.seen("--data", "c.npz")
        raw = open("c.npz", "rb").read()
        for i in range(0, len(raw), 7):  # cut, and with a byte changed
            for text in raw[:i], raw[:i] + bytes([raw[i] ^ 0x55]) + raw[i + 1 :]:
                open("m.npz", "wb").write(text)
                done = subprocess.run(
                    [CKRUN, f"{MODELS}/tokens.so", "--init", "table.st", "--data", "m.npz"],
                    capture_output=True,
                    text=True,
                )
                self.assertIn(done.returncode, (0, 1), done.stderr)
        at = raw.index(b"NUMPY") - 1
        for i in range(at, raw.index(b"PK\1\2"), 5):  # any byte of the member
            open("m.npz", "wb").write(raw[:i] + bytes([raw[i] ^ 0x10]) + raw[i + 1 :])
            self.tokens("--data", "m.npz", status=1)
        self.assertIn(
            "m.npz: array 'tokens' is damaged: its checksum is ",
            self.tokens("--data", "m.npz", status=1),
        )
        long = [
            i * 7919 % 16 for i in range(9973)
        ]  # not a whole number of pieces, nor of eight bytes
        with zipfile.ZipFile("c.npz", "w") as z:
            z.writestr("tokens.npy", files.npy_bytes("|u1", [9973], long))
        self.seen("--data", "c.npz")

    def test_whole_inputs_convert(self):
        """Integers and truth values of any size; floats only if told to, and then whole numbers."""

        def write(label):
            files.st_write(
                "in.st",
                {
                    "input_ids": ("I32", [2, 4], [1] * 8),
                    "labels": ("F32", [2, 4], [label] * 8),
                    "attention_mask": ("BOOL", [2, 4], [True] * 8),
                    "position_ids": ("U8", [4], [0, 1, 2, 3]),
                    "unused": ("F32", [1], [0]),
                },
            )

        write(2.0)
        err = self.tokens("--inputs", "in.st", status=1)
        self.assertIn("'labels' i32[2,4]: the assigned array is f32[2,4], of another kind", err)
        self.assertIn("\n    --feed labels=int:labels\n", err)
        seen = self.seen("--inputs", "in.st", "--feed", "labels=int:labels")
        self.assertEqual(seen["seen_labels"], [2] * 8)
        self.assertEqual(seen["seen_mask"], [1] * 8)
        write(2.5)
        self.assertIn(
            "2.5, which does not fit i32",
            self.tokens("--inputs", "in.st", "--feed", "labels=int:labels", status=1),
        )

    def test_told(self):
        """Who gets what, what is guessed, and which arrays nobody reads."""
        with zipfile.ZipFile("t.npz", "w") as z:
            z.writestr("tokens.npy", files.npy_bytes("<i4", [40], [0] * 40))
            z.writestr("other.npy", files.npy_bytes("<f4", [3, 2], [1] * 6))
        out = self.tokens("--data", "t.npz")
        for line in (
            "input_ids i64[2,4] = token windows, 'tokens' i32[40]",
            "labels i32[2,4] = the same windows, shifted by one token",
            "attention_mask i64[2,4] = ones (a guess)",
            "position_ids i64[4] = positions 0 1 2 ... (a guess)",
            "not used: 'other' f32[3,2]",
        ):
            self.assertIn(f"\n  {line}\n", out)

    def test_raw_files(self):
        """Files with a header of their own are no raw tokens, whatever they are called."""
        values = [i % 16 for i in range(40)]
        open("a.txt", "wb").write(files.npy_bytes("<u2", [40], values))
        with zipfile.ZipFile("b.txt", "w") as z:
            z.writestr("tokens.npy", files.npy_bytes("<u2", [40], values))
        files.st_write("c.txt", {"tokens": ("U16", [40], values)})
        for name in "a.txt", "b.txt", "c.txt":
            for kind in "u16", "u32", "bytes":
                err = self.tokens("--data", name, "--tokens", kind, status=1)
                self.assertIn("gives its type; omit --tokens", err)
            self.seen("--data", name)
        open("d", "wb").write(b"12345678{0}" + bytes(30))  # its ninth byte is that of .safetensors
        self.assertIn(
            "vocabulary of 16: ",
            self.tokens("--data", "d", "--tokens", "bytes", "--steps", 40, status=1),
        )
        open("d", "wb").write(bytes(41))
        self.assertIn(
            "41 bytes are not a whole number of u16 tokens",
            self.tokens("--data", "d", "--tokens", "u16", status=1),
        )
        open("d", "wb").close()
        self.assertIn(
            "d: 0 tokens are too few for windows of 5",
            self.tokens("--data", "d", "--tokens", "u16", status=1),
        )
        self.assertIn("d: the file is empty", self.tokens("--data", "d", status=1))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], warnings="ignore")
