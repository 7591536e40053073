#!/usr/bin/env python3
"""Convolutions by cuDNN's stand-in: the numbers of unfolded ones, the same bits in every run, and a
way on without it.

    cudnn.py CKC CKRUN NVCC FOLDER [MODEL:TYPE...]

NVCC compiles kernels for the host, FOLDER holds the stand-ins for NVIDIA's libraries.  With models
only their numbers are looked at.
"""

import os
import re
import shutil
import sys

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "e2e"))
import ck  # noqa: E402
import optimizers  # noqa: E402

# gradients by types: largest distance over the norm; a 16-bit bias is rounded once more
FAR = {"f32": 1e-5, "bf16": 3e-2, "f16": 4e-3}
# paddings before and behind, groups, dilation, a transposed one, one and three dims, a view that
# starts anywhere
SHAPES = """graph @shapes {
	input %all: f32[4,18,7,9]
	input %line: f32[2,16,33]
	input %room: f32[2,4,5,6,7]
	param %a: f32[20,9,3,3] = splat 0.02
	param %b: f32[20] = splat 0.1
	param %c: f32[24,20,2,3] = splat -0.03
	param %e: f32[24] = splat 0.1
	param %d: f32[24,1,3,3] = splat 0.04
	param %t: f32[24,17,3,2] = splat 0.01
	param %u: f32[17] = splat 0.2
	param %l: f32[17,16,4] = splat 0.05
	param %r: f32[18,4,2,3,2] = splat 0.03
	%x: f32[3,18,7,9] = slice %all {start=[1,0,0,0], step=[1,1,1,1]}
	%y1 = conv %x, %a, %b {stride=[2,1], dilation=[1,2], begin=[0,2], end=[1,2], group=2}
	%y2 = conv %y1, %c, %e {begin=[1,0], end=[0,2]}
	%y3 = gelu %y2
	%y4 = conv %y3, %d {begin=[1,1], end=[1,1], group=24}
	%y5 = conv_dx %y4, %t, %u {stride=[2,2], dilation=[1,1], begin=[1,0], end=[0,1], out=[6,17], extra=[0,0]}
	%y6 = mul %y5, %y5
	%z1 = conv %line, %l {stride=[3], begin=[1], end=[2]}
	%z2 = mul %z1, %z1
	%v1 = conv %room, %r {stride=[1,2,1], dilation=[2,1,1], begin=[1,0,1], end=[1,1,0]}
	%v2 = mul %v1, %v1
	%s1: f32[] = reduce_sum %y6 {axes=[0,1,2,3], keepdims=0}
	%s2: f32[] = reduce_sum %z2 {axes=[0,1,2], keepdims=0}
	%s3: f32[] = reduce_sum %v2 {axes=[0,1,2,3,4], keepdims=0}
	%s4 = add %s1, %s2
	%loss: f32[] output = add %s4, %s3
	loss %loss
}
"""
BY = re.compile(r"cublas, (.*)")


def written(bench):
    """SHAPES as a file, the flags it takes and inputs."""
    rng, model, inputs = (
        np.random.default_rng(7),
        bench.path("shapes.ck"),
        bench.path("shapes.inputs"),
    )
    with open(model, "w", encoding="utf-8") as f:
        f.write(SHAPES)
    shapes = {
        name: [int(n) for n in dims.split(",")]
        for name, dims in re.findall(r"input %(\w+): f32\[(.*)\]", SHAPES)
    }
    optimizers.write_tensors(
        inputs,
        {name: rng.standard_normal(dims).astype(np.float32) for name, dims in shapes.items()},
    )
    return model, [], inputs


class Model:
    """A model of tests/models, or SHAPES, compiled for a GPU."""

    def __init__(self, bench, name, dtype):
        self.bench, self.name = bench, f"{name}-{dtype}"
        stem = os.path.join(ck.MODELS, name)
        model, flags, self.inputs = (
            written(bench)
            if name == "shapes"
            else (stem + ".onnx", ck.model_flags(stem)[0], stem + ".inputs.safetensors")
        )
        self.so = bench.path(self.name + ".so")
        more = [] if dtype == "f32" else ["--dtype", dtype]
        bench.must(
            bench.ckc(model, "-o", self.so, *flags, *more, "--target", "cuda", "--nvcc", nvcc),
            f"compile {self.name}",
        )
        if name == "shapes":
            self.randomise()

    def randomise(self):
        """Weights, of which a text can say one number alone."""
        rng, path = np.random.default_rng(8), self.so[:-3] + ".safetensors"
        optimizers.write_tensors(
            path,
            {
                n: rng.uniform(-0.2, 0.2, t[1]).astype(np.float32)
                for n, t in ck.tensors(path).items()
            },
        )

    def run(self, *flags, **env):
        log, grads, save = (
            self.bench.path(f"{self.name}.{x}") for x in ("jsonl", "grads", "params")
        )
        return self.bench.ckrun(
            self.so,
            "--inputs",
            self.inputs,
            "--steps",
            3,
            "--log",
            log,
            "--grads",
            grads,
            "--save",
            save,
            *flags,
            env={"LD_LIBRARY_PATH": folder, **env},
        )

    def trained(self, *flags, **env):
        """What computed convolutions, all numbers as bytes, gradients, peaks."""
        done = self.run(*flags, **env)
        if not self.bench.must(done, f"{self.name} {flags} {env}"):
            return None, None, {}, None
        log, grads, save = (
            self.bench.path(f"{self.name}.{x}") for x in ("jsonl", "grads", "params")
        )
        by = BY.search(done.stdout)
        return (
            by and by[1],
            (ck.losses(log), ck.content(grads), ck.content(save)),
            ck.tensors(grads),
            [r["peak_bytes"] for r in ck.log_rows(log) if "peak_bytes" in r],
        )


def array(tensor):
    kind, _, raw = tensor
    if kind == "BF16":
        return (
            (np.frombuffer(raw, np.uint16).astype(np.uint32) << 16)
            .view(np.float32)
            .astype(np.float64)
        )
    return np.frombuffer(raw, {"F32": np.float32, "F16": np.float16}[kind]).astype(np.float64)


def distance(one, other):
    """The largest of all gradients, by norms: of all for those that are nearly 0."""
    scale = max(np.linalg.norm(array(t)) for t in other.values())
    return max(
        np.linalg.norm(array(t) - array(other[n]))
        / max(np.linalg.norm(array(other[n])), 1e-3 * scale)
        for n, t in one.items()
    )


def same_numbers(bench, name, dtype):
    m = Model(bench, name, dtype)
    by, bits, grads, peaks = m.trained()
    bench.check(by == "convolutions by cudnn 9.19.0", f"{m.name}: convolutions are {by}")
    for what, env in (
        ("again", {}),
        ("kernel by kernel", {"CKR_GRAPHS": "0"}),
        ("late", {"CKR_FAKE_GPU_LATE": "5"}),
    ):
        bench.check(m.trained(**env)[1] == bits, f"{m.name}: other bits {what}")
    by, other, unfolded, rest = m.trained("--blas", "cublas")
    bench.check(by == "im2col convolutions", f"{m.name} --blas cublas: convolutions are {by}")
    bench.check(rest == peaks, f"{m.name}: peaks {peaks} by cudnn, {rest} unfolded")
    far = distance(grads, unfolded)
    bench.check(
        0 < far < FAR[dtype],
        f"{m.name}: gradients differ by {far} of their norm from unfolded ones, at most {FAR[dtype]}",
    )
    checked = bench.ckrun(
        m.so, "--inputs", m.inputs, "--steps", 2, "--check", env={"LD_LIBRARY_PATH": folder}
    )
    bench.check(
        checked.returncode == 0 and "all bits equal" in checked.stdout,
        f"{m.name} --check: {checked.stderr[:300]}",
    )
    return m, other


def goes_on(bench, m, unfolded, why, **env):
    """Without the library: its reason in the line of what computes, and the bits of unfolded
    convolutions."""
    by, bits, _, _ = m.trained(**env)
    bench.check(by and why in by, f"{env}: convolutions are {by}, expected '{why}'")
    bench.check(bits == unfolded, f"{env}: other bits than unfolded")
    if why.startswith("0 of"):
        return
    done = m.run("--blas", "cudnn", **env)
    bench.check(
        done.returncode == 1
        and why in done.stderr
        and "--blas cublas" in done.stderr
        and done.stderr.count("\n") == 1,
        f"--blas cudnn {env}: status {done.returncode}: {done.stderr[:300]}",
    )


def folder_with(bench, name, library):
    """The stand-ins, with another file for cuDNN."""
    there = bench.path(name)
    shutil.copytree(folder, there)
    for n in "8", "9":
        shutil.copyfile(library, os.path.join(there, "libcudnn.so." + n))
    return there


def goes_on_unrecorded(bench, m):
    """An engine that no graph can record runs kernel by kernel, and a run says so."""
    bits = m.trained()[1]
    for late in "0", "5":
        env = {"CKR_FAKE_CUDNN": "unrecorded", "CKR_FAKE_GPU_LATE": late}
        bench.check(m.trained(**env)[1] == bits, f"{env}: other bits")
    done = m.run(CKR_LOG="1", **env)
    for text, words in (
        (done.stdout, "\nsteps are launched kernel by kernel: a CUDA graph cannot record them"),
        (done.stderr, "no CUDA graphs: convolutions on the GPU: cudnnBackendExecute: CUDNN_STATUS"),
    ):
        bench.check(text.count(words) == 1, f"unrecorded: no '{words}' in: {text}")


def goes_on_without(bench):
    """What there is in place of the library, or what it says, does not do."""
    m, unfolded = same_numbers(bench, "resnet-ts17", "f32")
    goes_on_unrecorded(bench, m)
    empty = bench.path("empty")
    with open(empty, "w"):
        pass
    goes_on(
        bench, m, unfolded, "no libcudnn.so.9", LD_LIBRARY_PATH=folder_with(bench, "broken", empty)
    )
    other = folder_with(bench, "other", os.path.join(folder, "libnccl.so.2"))
    goes_on(bench, m, unfolded, "libcudnn.so.9 has no cudnnGetVersion", LD_LIBRARY_PATH=other)
    goes_on(bench, m, unfolded, "cudnn 8.2.4 is older than 8.9", CKR_FAKE_CUDNN="old")
    goes_on(bench, m, unfolded, "cudnnCreate: CUDNN_STATUS_NOT_SUPPORTED", CKR_FAKE_CUDNN="none")
    goes_on(bench, m, unfolded, "0 of ", CKR_FAKE_CUDNN="greedy")
    failed = m.run(CKR_FAKE_CUDNN="fails")
    bench.check(
        failed.returncode == 1
        and "cudnnBackendExecute: CUDNN_STATUS_EXECUTION_FAILED" in failed.stderr
        and "--blas cublas" in failed.stderr
        and failed.stderr.strip().count("\n") == 0,
        f"a call that fails: status {failed.returncode}: {failed.stderr[:300]}",
    )
    wrong = m.run("--blas", "onednn")
    bench.check(
        wrong.returncode == 1 and "expected auto, cudnn or cublas" in wrong.stderr,
        f"--blas onednn: {wrong.stderr[:300]}",
    )


def main():
    bench = ck.Bench()
    if not bench.names:
        goes_on_without(bench)
    for name in bench.names or (
        "shapes:f32",
        "shapes:bf16",
        "unet-dynamo:f32",
        "cnn-bn-batch:bf16",
        "resnet-ts17:f16",
    ):
        same_numbers(bench, *name.split(":"))
    bench.finish()


if __name__ == "__main__":
    nvcc, folder = (os.path.abspath(x) for x in sys.argv[3:5])
    del sys.argv[3:5]
    main()
