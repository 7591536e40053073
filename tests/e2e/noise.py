#!/usr/bin/env python3
"""Random numbers that a graph draws: their distribution, and that they are the same whenever they
are the same.

    noise.py CKC CKRUN

Mean, variance and the greatest distance between the distributions (Kolmogorov and Smirnov) of large
samples; no two nodes, steps or seeds draw the same; the same seed gives the same bits, for any
number of threads and any plan.  Dropping whole samples (DropPath) trains.
"""

import math
import os
import statistics
import sys

import ck

sys.path.insert(0, os.path.join(ck.HERE, "..", "runtime"))
import files

N = 100000
SAMPLES = f"""graph @samples {{
	const %p: f32[{N}] = splat 0.3
	%a: f32[{N}] output = random {{shape=[{N}], dt=f32, kind=0, a=-1, b=3}}
	%b: f32[{N}] output = random {{shape=[{N}], dt=f32, kind=0, a=-1, b=3}}
	%n: f32[{N}] output = random {{shape=[{N}], dt=f32, kind=1, a=5, b=2}}
	%d: f64[{N}] output = random {{shape=[{N}], dt=f64, kind=1, a=5, b=2}}
	%k: f32[{N}] output = bernoulli %p
}}
"""
# Two blocks whose branches are dropped by sample, as timm's DropPath does.
PATH = """graph @path {
	const %keep: f32[] = {0.75}
	const %like: i64[2] = {6, 1}
	input %x: f32[6,8]
	param %w1: f32[8,8] = {@}
	param %w2: f32[8,8] = {@}
	%h1 = matmul %x, %w1
	%t1 = tanh %h1
	%u1 = random %like {dt=f32, kind=0, a=0, b=1}
	%s1 = add %u1, %keep
	%m1: f32[6,1] output = floor %s1
	%d1 = div %t1, %keep
	%e1 = mul %d1, %m1
	%r1 = add %x, %e1
	%h2 = matmul %r1, %w2
	%t2 = tanh %h2
	%u2 = random %like {dt=f32, kind=0, a=0, b=1}
	%s2 = add %u2, %keep
	%m2: f32[6,1] output = floor %s2
	%d2 = div %t2, %keep
	%e2 = mul %d2, %m2
	%r2 = add %r1, %e2
	%q = mul %r2, %r2
	%loss: f32[] output = reduce_mean %q {axes=[0,1], keepdims=0}
}
"""


def write(bench, name, text):
    path = bench.path(name)
    with open(path, "w") as f:
        f.write(text)
    return path


def distance(xs, cdf):
    """The greatest difference of the distributions times sqrt(n): above 2 once in 1,500 samples."""
    n, most = len(xs), 0
    for i, x in enumerate(sorted(xs)):
        c = cdf(x)
        most = max(most, c - i / n, (i + 1) / n - c)
    return most * math.sqrt(n)


def correlation(x, y):
    return statistics.correlation(x, y)


def samples(bench):
    so = bench.path("samples.so")
    if not bench.must(
        bench.ckc(write(bench, "samples.ck", SAMPLES), "-o", so, "--forward-only", "--quiet"),
        "samples: compile",
    ):
        return
    raw = {}
    for name, seed, threads in (("one", 7, 1), ("again", 7, 2), ("other", 8, 1)):
        out = bench.path(name)
        done = bench.ckrun(
            so, "--seed", seed, "--threads", threads, "--quiet", "--steps", 1, "--outputs", out
        )
        if not bench.must(done, "samples: run"):
            return
        raw[name] = {key: value[2] for key, value in files.st_read(out)[0].items()}
    one = raw["one"]
    bench.check(one == raw["again"], "samples: another number of threads gives other numbers")
    normal = statistics.NormalDist(5, 2)
    for key, mean, sd, cdf in (
        ("a", 1, 4 / math.sqrt(12), lambda x: (x + 1) / 4),
        ("n", 5, 2, normal.cdf),
        ("d", 5, 2, normal.cdf),
    ):
        x = one[key]
        bench.check(
            abs(statistics.fmean(x) - mean) < 4 * sd / math.sqrt(N),
            f"{key}: mean {statistics.fmean(x)}",
        )
        bench.check(
            abs(statistics.pstdev(x) / sd - 1) < 0.01, f"{key}: deviation {statistics.pstdev(x)}"
        )
        bench.check(distance(x, cdf) < 2, f"{key}: distance {distance(x, cdf)}")
        bench.check(abs(correlation(x[1:], x[:-1])) < 0.015, f"{key}: neighbours go together")
        bench.check(abs(correlation(x, raw["other"][key])) < 0.015, f"{key}: seeds go together")
    bench.check(min(one["a"]) >= -1 and max(one["a"]) < 3, "a: out of range")
    bench.check(abs(correlation(one["a"], one["b"])) < 0.015, "two nodes go together")
    bench.check(
        set(one["k"]) == {0, 1} and abs(statistics.fmean(one["k"]) - 0.3) < 4 * math.sqrt(0.21 / N),
        "bernoulli",
    )


def drop_path(bench):
    numbers = iter((7 * i % 11 - 5) / 8 for i in range(10**6))
    text = PATH
    while "@}" in text:
        text = text.replace("@}", ",".join(str(next(numbers)) for _ in range(64)) + "}", 1)
    source, inputs = write(bench, "path.ck", text), bench.path("x.st")
    files.st_write(inputs, {"x": ("F32", [6, 8], [(5 * i % 13 - 6) / 6 for i in range(48)])})
    results = []
    for k, flags in enumerate(
        (["--recompute", "none"], ["--recompute", "full"], ["--memory-budget", "1%"])
    ):
        so = bench.path(f"path{k}.so")
        done = bench.ckc(source, "-o", so, "--quiet", *flags)
        if flags[0] == "--memory-budget":  # the least that works
            least = ck.ERRORS.search(done.stderr)
            if not bench.check(least, f"path: {done.stderr}"):
                return
            done = bench.ckc(source, "-o", so, "--quiet", "--memory-budget", least[1] + "B")
        bench.must(done, "path: compile")
        log, grads, masks = bench.path(f"log{k}"), bench.path(f"grads{k}"), bench.path(f"masks{k}")
        done = bench.ckrun(
            so,
            "--inputs",
            inputs,
            "--steps",
            20,
            "--seed",
            3,
            "--quiet",
            "--log",
            log,
            "--grads",
            grads,
            "--lr",
            "0.01",
        )
        bench.must(done, "path: train")
        bench.must(
            bench.ckrun(
                so, "--inputs", inputs, "--steps", 1, "--quiet", "--seed", 3, "--outputs", masks
            ),
            "path: masks",
        )
        bench.must(
            bench.ckrun(so, "--inputs", inputs, "--check", "--seed", 3, "--quiet"), "path: check"
        )
        with open(log) as f:
            losses = [line.split('"loss":')[1].split(",")[0] for line in f]
        results.append((losses, files.st_read(grads)[0]))
    bench.check(len(results[0][0]) == 20 and len(set(results[0][0])) == 20, "path: losses")
    bench.check(all(r == results[0] for r in results), "path: plans differ in numbers")


def switched_off(bench):
    source = write(bench, "off.ck", SAMPLES)
    for flag, told in (("off", True), ("on", False)):
        done = bench.ckc(source, "--forward-only", "--plan-only", "--quiet", "--dropout", flag)
        bench.check(
            done.returncode == 0 and ("5 ops still draw random numbers" in done.stderr) == told,
            f"--dropout {flag}: {done.stderr}",
        )


def main():
    bench = ck.Bench()
    switched_off(bench)
    samples(bench)
    drop_path(bench)
    bench.finish()


if __name__ == "__main__":
    main()
