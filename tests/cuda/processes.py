#!/usr/bin/env python3
"""Processes on GPUs of their own, with a stand-in for NCCL, train as virtual ranks on one GPU do,
to the bit, and end together.

    processes.py CKC CKRUN NVCC FOLDER [PART...]

NVCC compiles kernels for the host, FOLDER holds the stand-ins for NVIDIA's libraries.  Losses,
gradients and checkpoints are equal byte by byte over tensor and data parallelism, also where what
is sent is read, and what is received is there, as late as may be.  Without NCCL, with too few GPUs,
with one that fails, with a call that never ends, and with a process that is stopped or killed, all
end in time and say so once.
"""

import concurrent.futures
import os
import re
import shutil
import signal
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "e2e"))
import numpy as np

import ck
import processes
from truth import ADAM16, DEEP

sys.path.insert(0, ck.TOOLS)
import compare
import spread

MODEL = "gpt2-dynamo-dyn"
# Ranks, flags, and whether replicas are asked for when it runs.
RUNS = (
    (2, ("--tp", 2)),
    (2, ("--tp", 2, "--sp", "--dtype", "bf16")),
    (4, ("--tp", 4, "--sp")),
    (2, ("--dp", "auto")),
    (2, ("--dp", 2, "--zero", 1)),
    (4, ("--tp", 2, "--dp", "auto")),
    (4, ("--tp", 2, "--dp", 2, "--zero", 3, "--grad-accum", 2)),
    (4, ("--dp", 4, "--zero", 3, "--zero-group", 2)),
    (4, ("--cp", 2, "--dp", 2, "--zero", 2)),
)
# Heads that ranks share; experts that replicas do.
SHARED = (
    ("llama-dynamo", 4, ("--tp", 4, "--sp")),
    ("qwen2-moe-dyn", 4, ("--dp", 4, "--ep", 2, "--zero", 3)),
    ("qwen2-moe-dyn", 4, ("--dp", 4, "--ep", 2, "--expert-capacity", 2)),
)


class Gpus(processes.Processes):
    def compile(self, name, *flags, model=MODEL):
        stem = os.path.join(ck.MODELS, model)
        return self.build(
            name,
            *flags,
            "--target",
            "cuda",
            "--nvcc",
            self.nvcc,
            model=stem,
            loss=ck.model_flags(stem)[0],
        )

    def inputs(self, model, replicas):
        """Samples of all replicas, none of them equal.  Written once: parts of the test read them
        at the same time."""
        path = self.path(f"{model}-{replicas}.npz")
        if os.path.exists(path):
            return "--inputs", path
        x = compare.load(os.path.join(ck.MODELS, model) + ".inputs.safetensors")
        np.savez(
            path,
            **{
                k: np.concatenate([np.roll(v, i, -1) for i in range(replicas)])
                for k, v in x.items()
            },
        )
        return "--inputs", path

    def compared(self, model, n, flags, late=True):
        replicas = n if "--dp" in flags else 1
        for name in ("--tp", "--cp") if "--dp" in flags else ():
            replicas //= flags[flags.index(name) + 1] if name in flags else 1
        what, inputs = f"{model} {flags}", self.inputs(model, replicas)
        so = self.compile("run", *flags, model=model)
        more = "--steps", 2
        self.must(
            self.ckrun(so, *inputs, "--threads", 1, "--ranks", n, *more, *self.files("v")),
            f"{what}, virtual",
        )
        for env in ({}, {"CKR_FAKE_NCCL": "late"}) if late else ({},):
            done = self.mpirun(n, so, *more, *self.files("p"), inputs=inputs, env=env)
            self.must(done, f"{what} {env}")
            self.check("emulated" not in done.stderr, f"{what} {env}: {done.stderr}")
            self.same("v", "p", f"{what} {env}")
        self.right(
            "p",
            os.path.join(ck.MODELS, model),
            inputs,
            what,
            *more,
            batches=replicas,
            limits=ADAM16 if "bf16" in flags else DEEP,
        )

    # ---- parts ----

    def bits(self):
        for n, flags in RUNS:
            self.compared(MODEL, n, flags)
        for model, n, flags in SHARED:
            self.compared(model, n, flags, late=False)

    def alone(self):
        """A run goes on in one process, and on the CPU."""
        stem = os.path.join(ck.MODELS, MODEL)
        so, cpu = (
            self.compile("tp2", "--tp", 2),
            self.build("cpu", "--tp", 2, model=stem, loss=ck.model_flags(stem)[0]),
        )
        inputs = self.inputs(MODEL, 1)
        self.must(
            self.mpirun(2, so, "--steps", 2, "--save", self.path("two.save"), inputs=inputs),
            "two steps",
        )
        for name, run in (
            ("gpus", lambda *a: self.mpirun(2, so, *a, inputs=inputs)),
            ("one", lambda *a: self.ckrun(so, *inputs, "--threads", 1, *a)),
        ):
            self.must(
                run(
                    "--resume",
                    self.path("two.save"),
                    "--steps",
                    4,
                    "--save",
                    self.path(name + ".save"),
                ),
                f"resumed by {name}",
            )
        self.check(
            ck.content(self.path("gpus.save")) == ck.content(self.path("one.save")),
            "resumed: files differ",
        )
        self.must(
            self.mpirun(2, cpu, "--resume", self.path("two.save"), "--steps", 4, inputs=inputs),
            "resumed on the CPU",
        )

    def torchrun(self):
        """Without MPI."""
        so, inputs = self.path("tp2.so"), self.inputs(MODEL, 1)
        argv = [
            self.ckrun_path,
            so,
            *inputs,
            "--threads",
            1,
            "--steps",
            4,
            "--save",
            self.path("torchrun.save"),
            "--quiet",
        ]
        done = spread.run(2, argv, cwd=self.work)
        self.check(done.returncode == 0, f"as torchrun: {done.stderr}")
        self.check(
            ck.content(self.path("torchrun.save")) == ck.content(self.path("gpus.save")),
            "as torchrun: files differ",
        )

    def looks(self):
        """--check, --trace and --profile."""
        so, inputs = self.path("tp2.so"), self.inputs(MODEL, 1)
        done = self.mpirun(
            2,
            so,
            "--steps",
            2,
            "--check",
            "--trace",
            self.path("trace"),
            "--profile",
            self.path("profile"),
            "--stats",
            inputs=inputs,
        )
        self.must(done, "--check")
        self.check("all bits equal" in done.stdout, f"--check: {done.stdout}")

    def refused(self):
        so, inputs = self.path("tp2.so"), self.inputs(MODEL, 1)

        def run(**env):
            return self.mpirun(2, so, "--steps", 2, inputs=inputs, env=env)

        bare = self.path("bare")
        os.mkdir(bare)
        for name in os.listdir(self.folder):
            if "nccl" not in name:
                os.symlink(os.path.join(self.folder, name), os.path.join(bare, name))
        # one that the system has would be found instead
        open(os.path.join(bare, "libnccl.so.2"), "w").close()
        self.once(
            run(LD_LIBRARY_PATH=bare), "communicate by NCCL, which cannot be loaded", "no NCCL"
        )
        self.must(
            self.ckrun(so, *inputs, "--steps", 1, env={"LD_LIBRARY_PATH": bare}),
            "no NCCL, one process",
        )
        self.once(
            run(CKR_FAKE_NCCL="old"), "too old: expected 2.10 or later, found 2.8", "an old NCCL"
        )
        self.once(
            run(CKR_FAKE_GPUS="1"),
            "ranks 0 and 1 use the same GPU (emulated GPU)",
            "one GPU for two",
        )
        self.once(run(CKR_GPU="2"), "ranks 0 and 1 use the same GPU", "CKR_GPU")
        self.once(run(CKR_FAKE_GPU="none"), "no GPU was found", "no GPU")

    def one_fails(self):
        """On rank 1 alone."""
        so, inputs = self.path("tp2.so"), self.inputs(MODEL, 1)
        run = [
            self.ckrun_path,
            so,
            *inputs,
            "--threads",
            1,
            "--steps",
            3,
            "--comm-timeout",
            processes.PATIENCE,
        ]

        def failed(what, text, env):
            at = time.monotonic()
            done = self.each(run, ["env", *(f"{k}={v}" for k, v in env.items()), *run])
            self.check(
                done.returncode == 3 and re.search(text, done.stderr),
                f"{what}: {done.returncode}, {done.stderr}",
            )
            self.check(
                time.monotonic() - at < processes.IN_TIME,
                f"{what}: took {time.monotonic() - at:.0f} s",
            )

        cases = (
            (
                "an error of NCCL",
                r"ckrun: step 1: all_reduce of '.*' \(\d+ bytes\): remote process exited",
                {"CKR_FAKE_NCCL": "error:5"},
            ),
            (
                "a call that hangs",
                r"ckrun: step 1: all_reduce of '.*' \(\d+ bytes\): deadlock: all ranks wait for"
                " each other",
                {"CKR_FAKE_NCCL": "hang:7"},
            ),
            (
                "a rank that does not join",
                "joining the GPUs by NCCL: not all processes have arrived",
                {"CKR_FAKE_NCCL": "absent"},
            ),
            ("a GPU that is lost", "unspecified launch failure", {"CKR_FAKE_GPU": "lost"}),
        )
        with concurrent.futures.ThreadPoolExecutor(len(cases)) as pool:
            list(pool.map(failed, *zip(*cases)))

    def bad_label(self):
        """In the samples of one replica alone: the node is named, and all end."""
        for flags in ("--dp", 2), ("--dp", 2, "--zero", 2, "--grad-accum", 2):
            so, inputs = self.compile("bad", *flags), self.inputs(MODEL, 4 if len(flags) > 2 else 2)
            x = dict(np.load(inputs[1]))
            for last in 0, 1:
                y = {k: v.copy() for k, v in x.items()}
                y["labels"][len(y["labels"]) - 1 if last else 0, 3] = 4711
                np.savez(self.path("bad.npz"), **y)
                done = self.mpirun(
                    *(2, so, "--steps", 1, "--comm-timeout", processes.PATIENCE),
                    inputs=("--inputs", self.path("bad.npz")),
                )
                told = re.findall("^ckrun: .*", done.stderr, re.M)
                self.check(
                    done.returncode == 1 and len(told) == 1 and "4711" in told[0],
                    f"{flags}, a label of replica {last}: {done.returncode}, {told}",
                )

    def one_step(self):
        """What checkpoints have."""
        so, processes.INPUTS = self.path("tp2.so"), self.inputs(MODEL, 1)
        self.must(
            self.mpirun(
                2, so, "--steps", 1, "--save", self.path("v2.save"), inputs=processes.INPUTS
            ),
            "one step",
        )

    def first_killed(self):
        self.gone(signal.SIGKILL, "training", 0, 0)

    def last_killed(self):
        self.gone(signal.SIGKILL, "training", 0, 1)

    def last_stopped(self):
        self.gone(signal.SIGSTOP, "training", 0.3)


# Those that need files of one another, and those that mostly wait.
FIRST = "bits", "alone", "one_step"
REST = (
    "bad_label",
    "last_stopped",
    "one_fails",
    "first_killed",
    "last_killed",
    "torchrun",
    "looks",
    "refused",
)


def main():
    nvcc, folder = (os.path.abspath(x) for x in sys.argv[3:5])
    del sys.argv[3:5]
    if not shutil.which("mpirun") or not os.path.exists(
        os.path.join(os.path.dirname(os.path.abspath(sys.argv[2])), "ckr_mpi.so")
    ):
        print("skipped: no mpirun, or built without MPI (libopenmpi-dev, openmpi-bin)")
        sys.exit(77)
    os.environ.update(LD_LIBRARY_PATH=folder, CKR_FAKE_GPUS="4")
    bench = Gpus()
    bench.nvcc, bench.folder = nvcc, folder
    os.environ["CKR_FAKE_NCCL_DIR"] = bench.work
    bench.parts(FIRST, REST)
    bench.finish()


if __name__ == "__main__":
    main()
