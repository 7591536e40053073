#!/usr/bin/env python3
"""Ranks as processes under mpirun train as virtual ranks do, to the bit, and end together.

    processes.py CKC CKRUN [--gpt GPT] [PART...]

Losses, gradients, outputs, checkpoints and the ONNX file are equal byte by byte, at 2 and 4 ranks,
whether files are shared or go through the first process, between steps or beside them, over a
transport that delivers as late as it may, and are the interpreter's; runs go on as processes or in
one.  A run that one process cannot carry on ends on all of them with one message; killed, stopped
or without room on its disk, the others end in time, the last checkpoint is whole, and nobody is
left.
"""

import concurrent.futures
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import numpy as np

import ck
import ranks
from truth import ADAM16, DEEP, Truth

sys.path.insert(0, ck.TOOLS)
import compare

MODEL = os.path.join(ck.MODELS, "gpt2-dropout-ts17")
MPIRUN = ("mpirun", "--allow-run-as-root", "--oversubscribe")
INPUTS = ("--inputs", MODEL + ".inputs.safetensors")
# Seconds: what is given up after, and what is no longer in time.
PATIENCE, IN_TIME = 8, 30
# A step of the run that is killed writes its checkpoint, or every tenth does.
NEVER_ENDS = ("--steps", 1000000, "--quiet", "--comm-timeout", PATIENCE)


def children(pid):
    """Of all its threads, with the rank each has."""
    out = {}
    for name in os.listdir("/proc"):
        try:
            with open(f"/proc/{name}/stat") as f:
                parent = int(f.read().rpartition(")")[2].split()[1])
            if parent != pid:
                continue
            with open(f"/proc/{name}/environ") as f:
                rank = re.search("OMPI_COMM_WORLD_RANK=(\\d+)", f.read())
            if rank:
                out[int(rank.group(1))] = int(name)
        except (OSError, ValueError):
            pass
    return out


class Processes(ck.Bench):
    def build(self, name, *flags, model=MODEL, loss=("--loss", "loss")):
        so = self.path(name + ".so")
        done = self.ckc(model + ".onnx", "-o", so, *loss, *flags)
        return so if self.must(done, f"{name}: {flags}") else sys.exit(1)

    def virtual(self, so, *more, **kw):
        return self.ckrun(so, *INPUTS, "--threads", 1, *more, **kw)

    def mpirun(self, n, so, *more, inputs=INPUTS, **kw):
        return self.run(
            [*MPIRUN, "-n", n, self.ckrun_path, so, *inputs, "--threads", 1, *more], **kw
        )

    def part(self, name):
        at = time.monotonic()
        getattr(self, name)()
        print(f"{name}: {time.monotonic() - at:.1f} s", flush=True)

    def parts(self, first, rest):
        """Those that leave files for others, in order, then those that mostly wait, a few at a
        time; or those that the command line names, in order."""
        for name in self.names or first:
            self.part(name)
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            list(pool.map(self.part, () if self.names else rest))

    def each(self, *commands, **kw):
        """Every rank with a command of its own."""
        line = [*MPIRUN]
        for i, command in enumerate(commands):
            line += [*([":"] if i else []), "-n", 1, *command]
        return self.run(line, **kw)

    def files(self, name):
        """Options that write whatever can be written."""
        return [
            x
            for flag in ("save", "grads", "outputs", "export-onnx", "log")
            for x in ("--" + flag, self.path(f"{name}.{flag}"))
        ]

    def same(self, a, b, what):
        for flag in "save", "grads", "outputs", "export-onnx":
            x, y = (ck.content(self.path(f"{n}.{flag}")) for n in (a, b))
            self.check(x == y, f"{what}: --{flag} differs")
        x, y = (
            [
                {k: v for k, v in row.items() if k != "seconds"}
                for row in ck.log_rows(self.path(n + ".log"))
            ]
            for n in (a, b)
        )
        self.check(x == y, f"{what}: --log: {x}, {y}")

    def right(self, name, stem, inputs, what, *run, batches=1, limits=DEEP):
        """What same() has compared is right, too."""
        flags = ck.model_flags(stem, batches)[0]
        losses = [row["loss"] for row in ck.log_rows(self.path(name + ".log"))]
        Truth(self, stem + ".onnx", flags, inputs[1], *run).check(
            what, limits, losses[-run[1] :], name + ".grads", name + ".save"
        )

    def once(self, done, text, what, status=1):
        """It ended so, and said that once."""
        told = re.findall("^ckrun: .*", done.stderr, re.M)
        self.check(
            done.returncode == status and len(told) == 1 and text in told[0],
            f"{what}: {done.returncode}, {told}",
        )

    # ---- bits ----

    def same_bits(self):
        for n in 2, 4:
            so = self.build(f"tp{n}", "--tp", n, "--sp")
            self.must(self.virtual(so, "--steps", 4, *self.files(f"v{n}")), f"{n} virtual")
            done = self.mpirun(n, so, "--steps", 4, *self.files(f"p{n}"))
            self.must(done, f"{n} processes")
            self.check(
                done.stdout.count("ranks in separate processes") == 1,
                f"{n} processes: {done.stdout}",
            )
            self.same(f"v{n}", f"p{n}", f"{n} processes")
            self.right(f"p{n}", MODEL, INPUTS, f"{n} processes", "--steps", 4)

    def bits(self):
        self.same_bits()
        so = self.path("tp2.so")
        for how in "name", "first":
            self.must(
                self.mpirun(2, so, "--steps", 4, *self.files(how), env={"CKR_FILES": how}), how
            )
            self.same("v2", how, f"files by {how}")
        self.must(self.mpirun(2, so, "--steps", 4, *self.files("late"), env=self.late()), "late")
        self.same("v2", "late", "a late transport")

    def late(self):
        build = os.path.dirname(self.ckrun_path)
        return {
            "CKR_MPI": os.path.join(build, "tests", "runtime", "late_transport.so"),
            "LATE_LINK": os.path.join(build, "ckr_mpi.so"),
        }

    def crossed(self):
        """Replicas of two ranks: what moves in one group does not wait for the other."""
        model = os.path.join(ck.MODELS, "gpt2-dynamo-dyn")
        so = self.build("crossed", "--tp", 2, "--sp", model=model, loss=ck.model_flags(model)[0])
        x = compare.load(model + ".inputs.safetensors")
        np.savez(
            self.path("two.npz"),
            **{k: np.concatenate([v, np.roll(v, 1, -1)]) for k, v in x.items()},
        )
        inputs = "--inputs", self.path("two.npz")
        self.must(
            self.ckrun(so, *inputs, "--ranks", 4, "--threads", 1, "--steps", 3, *self.files("vc")),
            "crossed, virtual",
        )
        for env in {}, self.late():
            self.must(
                self.mpirun(4, so, "--steps", 3, *self.files("pc"), inputs=inputs, env=env),
                f"crossed {env}",
            )
            self.same("vc", "pc", f"crossed {env}")
        self.right("pc", model, inputs, "crossed", "--steps", 3, batches=2)

    def go_on(self):
        """From a file that only the first process sees, too."""
        so, other = self.path("tp2.so"), self.path("elsewhere")
        os.mkdir(other)
        self.must(
            self.virtual(so, "--steps", 7, "--resume", self.path("p2.save"), *self.files("v7")),
            "resumed virtual",
        )
        self.must(
            self.mpirun(2, so, "--steps", 7, "--resume", self.path("v2.save"), *self.files("p7")),
            "resumed processes",
        )
        self.same("v7", "p7", "resumed")
        rank = [
            self.ckrun_path,
            so,
            *INPUTS,
            "--threads",
            1,
            "--steps",
            7,
            "--resume",
            "p2.save",
            "--save",
            "far.save",
            "--quiet",
        ]
        self.must(self.each(rank, ["--wdir", other, *rank]), "resumed from afar")
        self.check(
            ck.content(self.path("far.save")) == ck.content(self.path("v7.save")),
            "resumed from afar",
        )
        self.check(not os.listdir(other), f"written elsewhere: {os.listdir(other)}")

    def wide(self):
        """Weights of more than one range of what is read, written or gathered."""
        if not self.gpt:
            return
        made = self.run(
            [
                self.gpt,
                "--layers",
                1,
                "--hidden",
                512,
                "--heads",
                4,
                "--seq",
                16,
                "--batch",
                2,
                "--vocab",
                1500,
                "--weights",
                "-o",
                "wide.onnx",
            ]
        )
        self.must(made, "gpt")
        rng = np.random.default_rng(1)
        tokens = rng.integers(0, 1500, (2, 17))
        np.savez(self.path("wide.npz"), input_ids=tokens[:, :-1], labels=tokens[:, 1:])
        so, inputs = (
            self.build("wide", "--tp", 2, "--sp", "--optimizer", "sgdm", model=self.path("wide")),
            ("--inputs", self.path("wide.npz")),
        )
        self.must(
            self.ckrun(so, *inputs, "--threads", 1, "--steps", 2, *self.files("vw")), "wide virtual"
        )
        for how in "as it is", "first":
            done = self.mpirun(
                2, so, "--steps", 2, *self.files("pw"), inputs=inputs, env={"CKR_FILES": how}
            )
            self.must(done, f"wide, files by {how}")
            self.same("vw", "pw", f"wide, files by {how}")
        other = self.path("far")
        os.mkdir(other)
        rank = [
            self.ckrun_path,
            so,
            *inputs,
            "--threads",
            1,
            "--steps",
            2,
            "--resume",
            "vw.save",
            "--save",
            "again.save",
            "--quiet",
        ]
        self.must(self.each(rank, ["--wdir", other, *rank]), "wide, from afar")
        self.check(
            ck.content(self.path("again.save")) == ck.content(self.path("vw.save")),
            "wide, from afar: it is not as it was",
        )

    def narrow(self):
        """Losses that are scaled: all skip the same steps."""
        so = self.build("f16", "--tp", 2, "--sp", "--dtype", "f16")
        more = "--steps", 6, "--clip", 0.5
        self.must(self.virtual(so, *more, *self.files("vn")), "f16 virtual")
        self.must(self.mpirun(2, so, *more, *self.files("pn")), "f16 processes")
        self.same("vn", "pn", "f16")
        self.right("pn", MODEL, INPUTS, "f16", "--steps", 6, "--clip", 0.5, limits=ADAM16)

    def looks(self):
        """--check, --trace, --profile."""
        so, trace, profile = self.path("tp2.so"), self.path("trace"), self.path("profile")
        done = self.mpirun(
            2, so, "--steps", 3, "--check", "--trace", trace, "--profile", profile, "--stats"
        )
        self.must(done, "--check")
        self.check("all bits equal" in done.stdout, f"--check: {done.stdout}")
        self.check(
            "transfer buffers between processes 8388608" in done.stdout, f"--stats: {done.stdout}"
        )
        with open(trace) as f:
            events = json.load(f)["traceEvents"]
        steps = [
            [e["args"]["index"] for e in events if e["ph"] == "X" and e["tid"] == r] for r in (1, 2)
        ]
        self.check(steps[0] and steps[0] == steps[1], "--trace: ranks have other steps")
        names = [e["args"]["name"] for e in events if e["name"] == "thread_name"]
        self.check(names == ["rank 0", "rank 1"], f"--trace: rows {names}")
        with open(profile) as f:
            self.check(
                any("sent_bytes" in op for op in json.load(f)["ops"]), "--profile: nothing is sent"
            )

    # ---- one fails ----

    def refused(self):
        so, one = self.path("tp2.so"), self.build("one")
        self.once(self.mpirun(3, so, "--steps", 1), "a multiple of 2 ranks, found 3", "3 ranks")
        self.once(
            self.mpirun(2, one, "--steps", 1), "1 ranks), got 2 ranks", "a library for one rank"
        )
        done = self.mpirun(2, so, "--steps", 1, env={"CKR_MPI": "/nix.so"})
        self.check(
            done.returncode == 1 and "need ckr_mpi.so: /nix.so" in done.stderr,
            f"no module: {done.stderr}",
        )
        other = self.build("other", "--tp", 2)
        self.once(
            self.mpirun(2, so, "--against", other, "--steps", 1),
            "--against runs all ranks in one process",
            "--against",
            status=2,
        )
        run = [self.ckrun_path, so, *INPUTS, "--threads", 1, "--steps", 1]
        self.once(
            self.each(run, [run[0], other, *run[2:]]),
            "rank 1 and rank 0 differ in their compiled model",
            "another library",
        )
        self.once(
            self.each(run, [*run, "--seed", 9]), "differ in their seed: '9' and '0'", "another seed"
        )
        self.once(
            self.each(run, [*run, "--blas", "onednn"]),
            "differ in their BLAS library",
            "other products",
        )
        self.once(
            self.mpirun(2, so, "--steps", 1, inputs=("--inputs", "nix")),
            "nix: cannot read",
            "no data",
        )

    def bad(self):
        """An index out of range, and room on the disk, on one rank alone."""
        so = self.path("tp2.so")
        ids = {k: np.array(v) for k, v in compare.load(INPUTS[1]).items()}
        ids["input_ids"] = ids["input_ids"].astype(np.int64)
        ids["labels"] = ids["labels"].astype(np.int64)
        ids["input_ids"][1, 5] = 4711
        np.savez(self.path("bad.npz"), **ids)
        run = [
            self.ckrun_path,
            so,
            *INPUTS,
            "--threads",
            1,
            "--steps",
            2,
            "--save",
            self.path("bad.save"),
        ]
        wrong = [*run[:3], self.path("bad.npz"), *run[4:]]
        for commands in (run, wrong), (wrong, run):
            self.once(self.each(*commands), "4711", "an index out of range")
        shutil.copy(self.path("v2.save"), self.path("bad.save"))
        small = ["sh", "-c", 'ulimit -f 20; exec "$@"', "sh", *run]
        for commands in (run, small), (small, run):
            self.once(self.each(*commands), "cannot write", "a full disk")
        self.check(
            ck.content(self.path("bad.save")) == ck.content(self.path("v2.save")),
            "a full disk: the file before is gone",
        )
        left = [x for x in os.listdir(self.work) if x.startswith("bad.save.")]
        self.check(not left, f"a full disk: {left} are left")

    def fault(self, what):
        """None with sanitizers."""
        library = os.path.join(os.path.dirname(self.ckrun_path), "tests", "faults", "libfault.so")
        return os.path.exists(library) and {
            "LD_PRELOAD": library,
            "CKC_FAULT_PROGRAM": "ckrun",
            "CKC_FAULT": what,
        }

    def every_step(self, start, name, *how, **kw):
        """Files of a run that saves at each step."""
        at = self.path(name)
        os.mkdir(at)
        save = "--steps", 5, "--save", f"{at}/s", "--save-every", 1, "--keep", 3, *how
        self.must(start(*save, **kw), f"{name} {how}")
        return {x: ck.content(os.path.join(at, x)) for x in sorted(os.listdir(at))}

    def beside(self):
        """--save-async: the bits of plain saves, and one message about a full disk."""
        so = self.path("tp2.so")
        expected = self.every_step(lambda *x: self.virtual(so, *x), "plain")
        slow, name, first = (
            self.fault("slow:300") or {},
            {"CKR_FILES": "name"},
            {"CKR_FILES": "first"},
        )
        for i, env in enumerate(({}, name, first, slow, {**first, **slow})):
            found = self.every_step(
                lambda *x, **kw: self.mpirun(2, so, *x, **kw), f"beside{i}", "--save-async", env=env
            )
            self.check(found == expected, f"--save-async, {env}: other files")
        save = self.path("bad2.save")
        run = [self.ckrun_path, so, *INPUTS, "--threads", 1, "--steps", 6]
        run += ["--save", save, "--save-every", 2, "--save-async"]
        for n in (1000, 60000) if slow else ():
            full = ["env", *(f"{k}={v}" for k, v in self.fault(f"full:{n}").items()), *run]
            for commands in (run, full), (full, run):
                shutil.copy(self.path("v2.save"), save)
                what = f"--save-async, a disk that is full after {n} bytes"
                self.once(self.each(*commands), "cannot write: No space left on device", what)
                self.whole(save, what)

    def numberless(self):
        """A loss that is no number stops all, or all skip the step."""
        model = os.path.join(ck.MODELS, "mlp-mse")
        flags, _ = ck.model_flags(model)
        so = self.build("mlp", "--tp", 2, *flags, model=model, loss=())
        x = {k: np.array(v) for k, v in compare.load(model + ".inputs.safetensors").items()}
        first = sorted(x)[-1]
        np.savez(self.path("x.npz"), **x)
        x[first].flat[3] = np.nan
        np.savez(self.path("nan.npz"), **x)
        run = [
            [self.ckrun_path, so, "--inputs", self.path(n), "--threads", 1, "--steps", 3]
            for n in ("x.npz", "nan.npz")
        ]
        for commands in run, run[::-1]:
            self.once(self.each(*commands), "step 1: ", "no number")
        done = self.each(*([*r, "--on-nan", "skip", "--save", self.path("skip.save")] for r in run))
        self.check("3 steps skipped" in done.stdout, f"skipped: {done.stdout}, {done.stderr}")
        self.one_gradient()

    def one_gradient(self):
        """A gradient that is no number on the last rank alone: nobody updates anything."""
        text, path = ranks.numberless(2), self.path("gradient.ck")
        with open(path, "w") as f:
            f.write(text)
        np.savez(self.path("gradient.npz"), **ranks.inputs(text))
        so = path[:-3] + ".so"
        self.must(self.ckc(path, "-o", so), "gradient.ck")
        inputs, saved = ("--inputs", self.path("gradient.npz")), []
        self.once(
            self.mpirun(2, so, "--steps", 1, inputs=inputs),
            "the gradient of 'w' is not finite: nan",
            "a gradient",
        )
        for steps in 0, 1:
            path = self.path(f"gradient{steps}.save")
            self.must(
                self.mpirun(
                    2, so, "--steps", steps, "--on-nan", "skip", "--save", path, inputs=inputs
                ),
                "a gradient, skipped",
            )
            saved.append(compare.load(path))
        for name in saved[0]:
            self.check(
                np.array_equal(saved[0][name], saved[1].get(name)),
                f"a gradient, skipped: {name} has changed",
            )

    # ---- one is gone ----

    def start(self, *more):
        run = subprocess.Popen(
            [
                str(x)
                for x in (
                    *MPIRUN,
                    "-n",
                    2,
                    self.ckrun_path,
                    self.path("tp2.so"),
                    *INPUTS,
                    "--threads",
                    1,
                    *more,
                )
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.work,
        )
        return run

    def ranks(self, run, n=2):
        end = time.monotonic() + IN_TIME
        while time.monotonic() < end:
            found = children(run.pid)
            if len(found) == n:
                return found
            time.sleep(0.01)
        self.check(False, "ranks did not start")
        return {}

    def wait_for(self, path, than=None):
        """Until it is there, or newer than it was."""
        end = time.monotonic() + IN_TIME
        while time.monotonic() < end:
            if os.path.exists(path) and os.stat(path).st_ino != than:
                return os.stat(path).st_ino
            time.sleep(0.005)
        return None

    def ends(self, run, what):
        try:
            out, err = run.communicate(timeout=IN_TIME)
        except subprocess.TimeoutExpired:
            self.check(False, f"{what}: goes on")
            run.kill()
            out, err = run.communicate()
        return err

    def nobody(self, pids, what):
        end = time.monotonic() + 10
        while any(os.path.exists(f"/proc/{p}") for p in pids) and time.monotonic() < end:
            time.sleep(0.05)
        left = [p for p in pids if os.path.exists(f"/proc/{p}")]
        self.check(not left, f"{what}: {left} live on")
        for p in left:
            os.kill(p, signal.SIGKILL)

    def whole(self, path, what):
        if os.path.exists(path):
            self.check(
                sorted(compare.load(path)) == sorted(compare.load(self.path("v2.save"))),
                f"{what}: the checkpoint is not whole",
            )
        name = os.path.basename(path)
        left = [x for x in os.listdir(os.path.dirname(path)) if x.startswith(name) and "-tmp" in x]
        self.check(not left, f"{what}: {left} are left")

    def gone(self, sig, when, delay=0.0, victim=1, how=()):
        """when: what is waited for before rank `victim` gets the signal."""
        path = os.path.join(tempfile.mkdtemp(dir=self.work), "gone.save")
        what = f"signal {sig} to rank {victim} while {when}, {delay:.3f} s"
        save = "--save", path, "--save-every", 1 if when == "saving" else 1000000
        run = self.start(*NEVER_ENDS, *save, *how)
        pids = self.ranks(run)
        if when == "saving":
            self.wait_for(path)
        elif when == "training":
            delay += 1
        time.sleep(delay)
        try:
            os.kill(pids[victim], sig)
        except ProcessLookupError:
            self.check(False, f"{what}: it ended before")
        err = self.ends(run, what)
        self.nobody(pids.values(), what)
        self.whole(path, what)
        if sig == signal.SIGSTOP:
            self.check(run.returncode == 3, f"{what}: status {run.returncode}, {err}")
            if when != "loading":
                self.check(
                    re.search(
                        f"ckrun: .*rank {victim}: stopped or gone.*rank {1 - victim} waited", err
                    )
                    is not None,
                    f"{what}: {err}",
                )
        else:
            self.check(run.returncode != 0, f"{what}: status 0")

    def orphaned(self):
        """A rank that is stopped when mpirun is killed cannot notice that."""
        run = self.start(*NEVER_ENDS)
        pids = self.ranks(run)
        time.sleep(1)
        os.kill(pids[1], signal.SIGSTOP)
        run.kill()
        self.ends(run, "mpirun is killed")
        self.nobody(pids.values(), "mpirun is killed")

    def killed(self):
        self.gone(signal.SIGKILL, "loading", 0.15)
        self.gone(signal.SIGKILL, "training", 0, 0)
        self.gone(signal.SIGKILL, "saving", 0.02)
        self.gone(signal.SIGKILL, "saving", 0.02, how=["--save-async"])
        self.orphaned()

    def stopped_training(self):
        self.gone(signal.SIGSTOP, "training")

    def stopped_saving(self):
        self.gone(signal.SIGSTOP, "saving", 0.01, 0)

    def stopped_loading(self):
        self.gone(signal.SIGSTOP, "loading", 0.1)

    def many(self):
        """By hand: as often as KILLS says."""
        rng = np.random.default_rng(int(os.environ.get("SEED", 1)))
        for _ in range(int(os.environ.get("KILLS", 50))):
            sig = [signal.SIGKILL, signal.SIGSTOP][rng.integers(2)]
            when = ["loading", "training", "saving"][rng.integers(3)]
            self.gone(
                sig, when, rng.uniform(0, 0.5 if when == "loading" else 0.1), int(rng.integers(2))
            )
            print(sig, when, self.failed, flush=True)

    def interrupted(self):
        """Ctrl-C on one rank, or what mpirun passes on to all: they end after the same step, and
        save it."""
        for victim in 0, 1, None:
            path, log = self.path(f"int{victim}.save"), self.path(f"int{victim}.log")
            run = self.start("--steps", 1000000, "--save", path, "--log", log)
            pids = self.ranks(run)
            end = time.monotonic() + IN_TIME
            while not (os.path.exists(log) and ck.log_rows(log)) and time.monotonic() < end:
                time.sleep(0.05)
            os.kill(
                run.pid if victim is None else pids[victim],
                signal.SIGUSR1 if victim is None else signal.SIGINT,
            )
            err = self.ends(run, "interrupted")
            told = re.findall("ckrun: stopped after step (\\d+)", err)
            self.check(
                run.returncode == 1 and len(told) == 1, f"interrupted: {run.returncode}, {err}"
            )
            self.check(
                told and int(told[0]) == ck.log_rows(log)[-1]["step"],
                "interrupted: the log ends elsewhere",
            )
            self.whole(path, "interrupted")
            self.nobody(pids.values(), "interrupted")


# The longest waits first; all of them need files of bits().
REST = (
    "stopped_training",
    "stopped_saving",
    "stopped_loading",
    "killed",
    "interrupted",
    "crossed",
    "go_on",
    "wide",
    "narrow",
    "looks",
    "refused",
    "bad",
    "beside",
    "numberless",
)


def main():
    if not shutil.which("mpirun") or not os.path.exists(
        os.path.join(os.path.dirname(os.path.abspath(sys.argv[2])), "ckr_mpi.so")
    ):
        print("skipped: no mpirun, or built without MPI (libopenmpi-dev, openmpi-bin)")
        sys.exit(77)
    gpt = ck.option("--gpt", None)
    # MPI leaves memory to the end of the process
    os.environ["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
    bench = Processes()
    bench.gpt = gpt and os.path.abspath(gpt)
    bench.parts(["bits"], REST)
    bench.finish()


if __name__ == "__main__":
    main()
