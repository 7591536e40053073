#!/usr/bin/env python3
"""Clipping by the norm of all gradients, against the formula.

    clip.py CKC CKRUN

A chain of tanh(h w + b) whose gradients numpy computes: what one step does to every parameter (SGD)
or to every average (AdamW) must be what gradients scaled by min(1, clip / norm) do, for parameters
of one element and of more than one block, with and without clipping, under any budget, plan, number
of threads and micro-batches.  Every parameter has so large a share of the norm that leaving one out
shows.  The norm itself is in the log, clipped or not, and changes no bit.
"""

import os
import sys

import numpy as np

import ck

sys.path.insert(0, os.path.join(ck.HERE, "..", "runtime"))
import files

LAYERS, LR = 3, 1e3
SIZES = {
    "small": (64, 8),
    "wide": (4, 301),
}  # rows and columns; 301 * 301 elements are more than a block


def text(name, rows, n):
    layers, h = "", "x"
    for i in range(LAYERS):
        layers += (
            f"\t%z{i} = matmul %{h}, %w{i}\n\t%s{i} = add %z{i}, %b{i}\n\t%h{i} = tanh %s{i}\n"
        )
        h = f"h{i}"
    params = "".join(
        f"\tparam %w{i}: f32[{n},{n}] = splat 0\n\tparam %b{i}: f32[{n}] = splat 0\n"
        for i in range(LAYERS)
    )
    return f"""graph @{name} {{
	input %x: f32[{rows},{n}]
{params}	param %scale: f32[] = splat 0
{layers}	%y = mul %{h}, %scale
	%q = mul %y, %y
	%loss: f32[] output = reduce_mean %q {{axes=[0,1], keepdims=0}}
}}
"""


def gradients(x, p):
    """Of mean(y^2) by every parameter, in double precision."""
    h = [x]
    for i in range(LAYERS):
        h.append(np.tanh(h[-1] @ p[f"w{i}"] + p[f"b{i}"]))
    y = h[-1] * p["scale"]
    dy = 2 * y / y.size
    g = {"scale": np.sum(dy * h[-1])}
    d = dy * p["scale"]
    for i in reversed(range(LAYERS)):
        d = d * (1 - h[i + 1] ** 2)
        g[f"w{i}"], g[f"b{i}"] = h[i].T @ d, d.sum(0)
        d = d @ p[f"w{i}"].T
    return g


def numbers(rows, n):
    """Input and parameters.  Biases are large enough to count in the norm."""
    rng = np.random.default_rng(n)
    p = {f"w{i}": rng.normal(0, 1 / np.sqrt(n), (n, n)) for i in range(LAYERS)}
    p.update({f"b{i}": rng.normal(0, 0.3, n) for i in range(LAYERS)})
    p["scale"] = np.array(1.5)
    return [np.float64(np.float32(v)) for v in (rng.normal(0, 1, (rows, n)),)][0], {
        k: np.float64(np.float32(v)) for k, v in p.items()
    }


def tensors(values):
    return {k: ("F32", list(np.shape(v)), np.ravel(v).tolist()) for k, v in values.items()}


def expected(optimizer, p, g, norm, clip):
    """The checkpoint's tensors after the first step."""
    scale = min(1, clip / norm) if clip else 1
    if optimizer == "sgd":
        return {k: p[k] - LR * scale * g[k] for k in g}
    return {
        **{f"adamw.m.{k}": 0.1 * scale * g[k] for k in g},
        **{f"adamw.v.{k}": 0.001 * (scale * g[k]) ** 2 for k in g},
    }


def trial(bench, size, optimizer, flags, runs):
    what = " ".join(["clip", size, optimizer, *flags])
    rows, n = SIZES[size]
    x, p = numbers(rows, n)
    g = gradients(x, p)
    norm = np.sqrt(sum(np.sum(v**2) for v in g.values()))
    for k, v in g.items():
        bench.check(np.sum(v**2) > 3e-4 * norm**2, f"{what}: {k} has no say in the norm")
    source, so, save = bench.path("m.ck"), bench.path("m.so"), bench.path("m.st")
    with open(source, "w") as f:
        f.write(text("clip", rows, n))
    files.st_write(bench.path("p.st"), tensors(p))
    files.st_write(bench.path("x.st"), tensors({"x": x}))
    if not bench.must(
        bench.ckc(source, "-o", so, "--optimizer", optimizer, "--quiet", "--threads", 3, *flags),
        what,
    ):
        return
    for share, threads in runs:
        clip = share * norm
        done = bench.ckrun(
            so,
            "--inputs",
            bench.path("x.st"),
            "--init",
            bench.path("p.st"),
            "--save",
            save,
            "--steps",
            1,
            "--lr",
            LR,
            "--weight-decay",
            0,
            "--clip",
            repr(float(clip)),
            "--threads",
            threads,
            "--quiet",
            "--log",
            bench.path("log"),
        )
        if not bench.must(done, what):
            return
        logged = ck.log_rows(bench.path("log"))[0].get("grad_norm")
        bench.check(
            logged and abs(logged / norm - 1) < 2e-6,
            f"{what}, clip at {share} of the norm: {logged} is logged, expected {norm}",
        )
        got = files.st_read(save)[0]
        for k, want in expected(optimizer, p, g, norm, clip).items():
            have = np.reshape(got[k][2], np.shape(want))
            far = np.max(np.abs(have - want)) / np.max(np.abs(want))
            bench.check(
                far < 2e-5,
                f"{what}, clip at {share} of the norm, {threads} threads: {k} is off by {far:.2g}",
            )


def unlogged(bench):
    """The norm is computed where it is asked for, and nothing else changes; what updates in
    backward has none."""
    so, log = bench.path("m.so"), bench.path("log")
    common = [
        so,
        "--inputs",
        bench.path("x.st"),
        "--init",
        bench.path("p.st"),
        "--steps",
        3,
        "--lr",
        1e-3,
    ]
    for flags, has in (["off"], True), (["on"], False):
        bench.must(
            bench.ckc(bench.path("m.ck"), "-o", so, "--quiet", "--update-in-backward", *flags),
            f"{flags}",
        )
        saved, said = [], []
        for more in [], ["--log", log]:
            done = bench.ckrun(*common, "--save", bench.path("m.st"), *more)
            bench.must(done, f"{flags} {more}")
            saved.append(ck.content(bench.path("m.st")))
            said.append("  norm " in done.stdout)
        bench.check(saved[0] == saved[1], f"update in backward {flags}: --log changes bits")
        bench.check(said == [False, has], f"update in backward {flags}: norms are said: {said}")
        bench.check(
            all(("grad_norm" in row) == has for row in ck.log_rows(log)),
            f"update in backward {flags}: {ck.log_rows(log)[0]}",
        )


def main():
    bench = ck.Bench()
    trial(
        bench,
        "small",
        "sgd",
        ["--update-in-backward", "off"],
        [(0, 1), (0.5, 1), (0.5, 3), (1e-3, 2), (0.98, 1), (1.02, 1)],
    )
    trial(bench, "small", "sgd", ["--recompute", "full"], [(0.5, 1), (0.98, 3)])
    trial(bench, "small", "sgd", ["--grad-accum", "2"], [(0.5, 1), (0.98, 2)])
    trial(
        bench,
        "small",
        "adamw",
        ["--memory-budget", "90%", "--update-in-backward", "off"],
        [(0.5, 1), (1.02, 2)],
    )
    trial(bench, "wide", "sgd", [], [(0.5, 1), (0.98, 3), (1.02, 1)])
    trial(bench, "wide", "adamw", ["--recompute", "every=1"], [(0.5, 2)])
    unlogged(bench)
    bench.finish()


if __name__ == "__main__":
    main()
