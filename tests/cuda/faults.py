#!/usr/bin/env python3
"""A GPU that is not there, does not fit or fails: one clear message, exit status 1, nothing left.

    faults.py CKC CKRUN NVCC FOLDER FOLDERS

NVCC compiles kernels for the host, FOLDER holds the stand-ins for NVIDIA's libraries, FOLDERS is
folders.c.
"""

import os
import re
import shutil
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "e2e"))
import numpy as np

import ck
import optimizers

TEXT = """graph @lookup {
	input %x: i64[4]
	input %labels: i64[4]
	param %table: f32[10,6] = splat 0.5
	%y = gather %table, %x {axis=0}
	%loss: f32[] output, %lse, %den = sce %y, %labels
	loss %loss
}
"""


def doctor(bench, folder):
    """ckc doctor describes driver, GPUs and libraries, or lists the folders that it searched."""
    lone = bench.path("lone")
    os.mkdir(lone)
    os.symlink(os.path.join(folder, "libcuda.so.1"), os.path.join(lone, "libcuda.so.1"))
    for name in "libcublasLt.so.13", "libcublasLt.so.12":
        # the system's would be found otherwise
        open(os.path.join(lone, name), "w").close()
    for env, words in (
        (
            {"LD_LIBRARY_PATH": folder, "CKR_FAKE_GPUS": "2"},
            ("for CUDA 13.0", "GPU        1: emulated GPU, sm_90", f"{folder}/libnccl.so.2"),
        ),
        (
            {"LD_LIBRARY_PATH": lone, "CKR_GPU_LIBRARIES": "/nosuch:/nor/this"},
            (
                "cuBLASLt   libcublasLt.so.13 not found: ",
                "searched   the loader's path, /nosuch, /nor/this\n",
            ),
        ),
        (
            {"LD_LIBRARY_PATH": folder, "CKR_FAKE_GPU": "none"},
            ("none found; CUDA_VISIBLE_DEVICES",),
        ),
    ):
        done = bench.ckc("doctor", env=env)
        for word in words:
            bench.check(word in done.stdout, f"doctor, {env}: no '{word}' in: {done.stdout}")


def installed(bench, folder, program):
    """Libraries in toolkits and Python packages, which no loader knows."""
    name, packages = "libfound.so.1", "lib/python3.11/site-packages/nvidia/cudnn/lib"
    for variable, below in (
        ("CUDA_HOME", "lib64"),
        ("CUDA_PATH", "lib64"),
        ("CONDA_PREFIX", "lib"),
        ("VIRTUAL_ENV", packages),
        ("HOME", ".local/" + packages),
        ("PATH", packages),
    ):
        root, value = bench.path("at-" + variable), bench.path("at-" + variable)
        os.makedirs(os.path.join(root, below))
        shutil.copy(os.path.join(folder, "libcudnn.so.9"), os.path.join(root, below, name))
        if variable == "PATH":  # of the program python3
            value = os.path.join(root, "bin")
            os.mkdir(value)
            os.symlink(sys.executable, os.path.join(value, "python3"))
            value += ":" + os.environ["PATH"]
        env = "env", "-u", "CKR_GPU_LIBRARIES"
        found = bench.run([*env, program, name], env={variable: value}).stdout.strip()
        want = os.path.join(root, below, name)
        bench.check(found == want, f"{variable}: found '{found}', expected {want}")
    done = bench.run([*env, program, name])
    bench.check(done.returncode == 1, f"a library that is nowhere: {done.stdout}")


def main():
    nvcc, folder, folders = (os.path.abspath(x) for x in sys.argv[3:6])
    del sys.argv[3:6]
    bench = ck.Bench()
    there = {"LD_LIBRARY_PATH": folder}
    gpu = ["--target", "cuda", "--nvcc", nvcc]
    model, so, inputs = (
        bench.path("lookup.ck"),
        bench.path("lookup.so"),
        bench.path("in.safetensors"),
    )
    with open(model, "w") as f:
        f.write(TEXT)

    doctor(bench, folder)
    installed(bench, folder, folders)

    def write(x, labels):
        optimizers.write_tensors(inputs, {"x": np.array(x), "labels": np.array(labels)})

    def refused(what, words, done):
        bench.check(
            done.returncode == 1,
            f"{what}: status {done.returncode}, expected 1: {done.stderr.strip()[:300]}",
        )
        for word in words:
            bench.check(word in done.stderr, f"{what}: no '{word}' in: {done.stderr.strip()[:300]}")
        bench.check(
            done.stderr.strip().count("\n") < 4,
            f"{what}: said in too many lines: {done.stderr[:600]}",
        )

    def compiled(*more):
        return bench.ckc(model, "-o", so, "--optimizer", "sgd", *more)

    refused(
        "no nvcc",
        ["/nosuch/nvcc", "--nvcc"],
        compiled("--target", "cuda", "--nvcc", "/nosuch/nvcc"),
    )
    refused("a failing nvcc", ["false"], compiled("--target", "cuda", "--nvcc", "false"))
    bench.check(not os.path.exists(so), "a compiler that fails left a library")
    bad = compiled(*gpu, "--arch", "hopper")
    bench.check(bad.returncode == 2 and "sm_90" in bad.stderr, f"--arch hopper: {bad.stderr}")
    if not bench.must(compiled(*gpu), "ckc"):
        bench.finish()

    def run(**env):
        return bench.ckrun(
            so, "--inputs", inputs, "--steps", 3, "--save", bench.path("end"), env={**there, **env}
        )

    write([1, 2, 3, 9], [0, 1, 2, 3])
    bench.must(run(), "a GPU that is well")
    told = run(CKR_LOG="1").stderr
    bench.check(f"ckr: {folder}/libcublasLt.so.13\n" in told, f"libraries of a run: {told}")
    os.unlink(bench.path("end"))
    refused(
        "no driver",
        ["driver", "--target"],
        bench.ckrun(so, "--inputs", inputs, env={"LD_LIBRARY_PATH": "/nosuch"}),
    )
    refused("no device", ["no GPU was found", "CUDA_VISIBLE_DEVICES"], run(CKR_FAKE_GPU="none"))
    refused("another architecture", ["sm_90", "sm_80", "--arch"], run(CKR_FAKE_GPU_ARCH="80"))
    refused(
        "too little memory",
        ["memory", "of 100 are free", "--memory-budget"],
        run(CKR_FAKE_GPU_BYTES="100"),
    )
    refused("a device that is lost", ["unspecified launch failure"], run(CKR_FAKE_GPU="lost"))
    # while steps are queued: which one is known to have ended
    text = run(CKR_FAKE_GPU="lost", CKR_FAKE_GPU_LOST="100000").stderr
    bench.check(not text, f"a device that is lost later: {text}")
    os.unlink(bench.path("end"))
    found = set()
    for copies in range(30, 80, 2):
        for late in "0", "1", "5":
            lost = bench.ckrun(
                so,
                "--inputs",
                inputs,
                "--steps",
                9,
                "--quiet",
                "--log",
                bench.path("log"),
                env={
                    **there,
                    "CKR_FAKE_GPU": "lost",
                    "CKR_FAKE_GPU_LOST": str(copies),
                    "CKR_FAKE_GPU_LATE": late,
                },
            )
            refused(
                f"a device that is lost after {copies} copies", ["unspecified launch failure"], lost
            )
            for step, ended in re.findall(
                r"step (\d+): .*; (\d+) steps had completed", lost.stderr
            ):
                with open(bench.path("log")) as f:
                    rows = len(f.readlines())
                bench.check(
                    int(step) == int(ended) + 1 and rows == int(ended),
                    f"{lost.stderr}: the log has {rows} rows",
                )
                found.add(ended)
    bench.check(len(found) > 2, f"lost in too few steps: {found}")
    for launch in 0, 7, 20:
        refused(
            f"launch {launch} that fails",
            ["kernel launch failed", "too many resources"],
            run(CKR_EMULATE_FAIL=str(launch), CKR_GRAPHS="0"),
        )
    write([1, 2, 10, 11], [0, 1, 2, 3])
    refused("an index out of range", ["index out of range: 10", "step 1"], run())
    write([1, 2, 3, 4], [0, 9, 7, 3])
    refused("a label out of range", ["label out of range: 9", "step 1"], run())
    for bad in (-50, 2**40 + 3, -(2**62)):
        write([1, bad, 11, 12], [0, 1, 2, 3])
        refused(f"index {bad} of several", [f"index out of range: {bad}", "step 1"], run())
    bench.check(not os.path.exists(bench.path("end")), "a run that failed left a checkpoint")
    bench.finish()


if __name__ == "__main__":
    main()
