#!/usr/bin/env python3
"""ckrun A.so --against B.so: what differs between two libraries of a model, and what does not
count.

    against.py CKC CKRUN

Graphs whose gradients a formula gives: factors between them are found at the right element, and
named is what only one has.  Models cut over ranks: what is told is what numpy makes of the files
that single runs write.  A key's bias, whose gradient is rounding noise, of which AdamW makes steps
as large as any, fails nothing.
"""

import os
import re
import sys

import numpy as np

import ck

sys.path.insert(0, ck.TOOLS)
import compare

LINE = re.compile(
    r"^  (\S+) +(gradient|param|buffer) '(.+?)' (?:\w+ vs )?\w+\[[\d,]*\](?: at \[([\d,]+)\])?",
    re.M,
)


def graph(factor="1", w="0.5", more=False, dims=(3, 4), rows=2):
    """loss = factor * mean((x w)^2), and more parameters that add nothing to it."""
    numbers = ", ".join(f"{float(w) + i / 16}" for i in range(int(np.prod(dims))))
    extra = (
        "\tparam %more: f32[2] = { 1, -1 }\n\t%sum = reduce_sum %more {axes=[0], keepdims=0}\n"
        if more
        else ""
    )
    loss = (
        "\t%both = mul %m, %f\n\t%loss output = add %both, %sum"
        if more
        else "\t%loss output = mul %m, %f"
    )
    return f"""graph @g {{
	input %x: f32[{rows},3]
	param %w: f32[{dims[0]},{dims[1]}] = {{ {numbers} }}
{extra}	%z = matmul %x, %w
	%s = mul %z, %z
	const %f: f32[] = {{ {factor} }}
	%m = reduce_mean %s {{axes=[0,1], keepdims=0}}
{loss}
}}
"""


def normed(added="0"):
    """A bias in front of a norm over the batch, whose gradient is zero but for rounding, beside
    what is added to its part of the loss."""
    return f"""graph @g {{
	input %x: f32[64,16]
	input %t: f32[64,8]
	param %w: f32[16,32] = splat 0
	param %b: f32[32] = splat 0
	param %g: f32[32] = splat 0
	param %c: f32[32] = splat 0
	param %v: f32[32,8] = splat 0
	%z = matmul %x, %w
	%a = add %z, %b
	%n, %m, %r = batchnorm %a, %g, %c
	%h = relu %n
	%y = matmul %h, %v
	%d = sub %y, %t
	%s = mul %d, %d
	%q = reduce_mean %s {{axes=[0,1], keepdims=0}}
	const %f: f32[] = {{ {added} }}
	%u = reduce_sum %b {{axes=[0], keepdims=0}}
	%p = mul %u, %f
	%loss output = add %q, %p
}}
"""


class Against(ck.Bench):
    def text(self, name, source, *flags):
        with open(self.path(name + ".ck"), "w") as f:
            f.write(source)
        self.must(
            self.ckc(
                self.path(name + ".ck"),
                "-o",
                self.path(name + ".so"),
                "--quiet",
                "--optimizer",
                "sgd",
                *flags,
            ),
            name,
        )

    def model(self, name, model, *flags):
        stem = os.path.join(ck.MODELS, model)
        self.must(
            self.ckc(
                stem + ".onnx",
                "-o",
                self.path(name + ".so"),
                *ck.model_flags(stem)[0],
                "--quiet",
                *flags,
            ),
            f"{model} {flags}",
        )
        return os.path.join(ck.MODELS, model + ".inputs.safetensors")

    def against(self, a, b, inputs, *more, status=0, **kw):
        tmp = self.path("tmp")
        os.makedirs(tmp, exist_ok=True)
        done = self.ckrun(
            a + ".so", "--against", b + ".so", "--inputs", inputs, *more, env={"TMPDIR": tmp}
        )
        self.check(
            done.returncode == status,
            f"{a} {b} {more}: status {done.returncode}: {done.stdout[-900:]} {done.stderr[-300:]}",
        )
        self.check(os.listdir(tmp) == [], f"{a} {b} {more}: left behind: {os.listdir(tmp)}")
        return done

    def says(self, done, *words):
        for w in words:
            self.check(
                w in done.stdout + done.stderr,
                f"expected '{w}' in: {done.stdout[-1500:]} {done.stderr[-400:]}",
            )

    def formula(self):
        rng = np.random.default_rng(1)
        x = rng.normal(0, 1, (2, 3)).astype(np.float32)
        np.savez(self.path("x.npz"), x=x)
        self.text("a", graph())
        self.text("b", graph("1.001", w="2"))
        self.text("none", graph(dims=(3, 5)))
        self.text("more", graph(more=True))
        same = self.against("a", "a", "x.npz", "--steps", 3)
        self.says(
            same,
            "step 3  loss",
            "2 tensors compared; tolerance 1e-05",
            "(f32)",
            "all tensors and losses are within the tolerance",
        )
        self.check(
            [float(v[0]) for v in LINE.findall(same.stdout)] == [0, 0],
            f"one library beside itself: {same.stdout}",
        )
        done = self.against("a", "b", "x.npz", "--lr", 0.1, status=1)
        self.says(
            done,
            "2 of 2 tensors and the losses differ by more than 1e-05",
            "relative difference 0.001",
        )
        found = {what: (float(far), at) for far, what, _, at in LINE.findall(done.stdout)}
        # from a's parameters: b's gradient is 1.001 times a's
        w = (0.5 + np.arange(12) / 16).reshape(3, 4)
        g = 2 * x.T.astype(float) @ (x @ w) / 8
        self.near(found["gradient"][0], 0.001 / 1.001, "gradient")
        place = np.unravel_index(np.argmax(np.abs(g)), g.shape)
        self.check(
            found["gradient"][1] == ",".join(map(str, place)), f"gradient at {place}: {found}"
        )
        self.near(
            found["param"][0], np.abs(0.0001 * g).max() / np.abs(w - 0.1001 * g).max(), "parameter"
        )
        self.against("a", "b", "x.npz", "--lr", 0.1, "--rtol", 0.01)
        self.says(
            self.against("a", "none", "x.npz", status=1),
            "only in a.so: param 'w' f32[3,4]",
            "only in none.so: gradient 'w' f32[3,5]",
            "the two libraries have no gradient, parameter or buffer in common",
        )
        self.says(
            self.against("a", "more", "x.npz"),
            "only in more.so: param 'more' f32[2]",
            "only in more.so: gradient 'more'",
            "2 tensors compared",
            "are within the tolerance",
        )
        # a loss that only one of them has
        self.text(
            "nan",
            graph().replace(
                "%loss output = mul %m, %f",
                "%p = mul %m, %f\n\tconst %n: f32[] = { nan }\n\t%loss output = add %p, %n",
            ),
        )
        for a, b in ("a", "nan"), ("nan", "a"):
            self.says(
                self.against(a, b, "x.npz", "--on-nan", "go", status=1),
                "0 of 2 tensors and the losses differ by more than 1e-05",
            )
        self.against("nan", "nan", "x.npz", "--on-nan", "go")
        self.refused()

    def refused(self):
        self.text("adam", graph(), "--optimizer", "adam")
        self.text("rows", graph(rows=4))
        np.savez(self.path("rows.npz"), x=np.zeros((8, 3), np.float32))
        self.says(
            self.against("a", "adam", "x.npz", status=1),
            "a.so uses optimizer sgd, adam.so uses adam",
        )
        done = self.ckrun("a.so", "--against", "rows.so", "--data", "rows.npz")
        self.says(
            done,
            "a step takes 2 samples in a.so and 4 in rows.so: compile both with the same input shapes",
        )
        self.says(self.against("a", "missing", "x.npz", status=1), "ckrun: missing.so: cannot read")
        for option in (
            "--save",
            "--outputs",
            "--grads",
            "--log",
            "--export-onnx",
            "--trace",
            "--profile",
        ):
            self.says(
                self.against("a", "a", "x.npz", option, "f", status=2),
                f"{option} cannot be used with --against",
            )
        for option in "--check", "--stats":
            self.says(
                self.against("a", "a", "x.npz", option, status=2),
                f"{option} cannot be used with --against",
            )
        done = self.ckrun("a.so", "--inputs", "x.npz", "--rtol", 1)
        self.check(
            done.returncode == 2 and "--rtol needs --against" in done.stderr,
            f"--rtol alone: {done.stderr}",
        )
        self.against("a", "a", "x.npz", "--quiet")
        self.must(
            self.ckrun("a.so", "--inputs", "x.npz", "--steps", 2, "--save", "two.st"), "two steps"
        )
        self.says(
            self.against("a", "b", "x.npz", "--resume", "two.st", "--steps", 2, status=2),
            "none is left",
        )
        self.says(self.against("a", "a", "x.npz", "--resume", "two.st"), "step 3  loss")
        self.says(
            self.against("a", "b", "x.npz", "--init", "two.st", status=1),
            "relative difference 0.001",
        )

    def near(self, a, b, what):
        # two digits are told
        self.check(abs(a - b) <= 0.06 * abs(b), f"{what}: {a}, expected {b}")

    def files(self, inputs, run):
        """What numpy makes of the gradients and parameters that single runs write."""
        weights, far = ["--init", self.path("a.safetensors")], {}
        for name in "a", "b":
            self.must(
                self.ckrun(
                    name + ".so",
                    "--inputs",
                    inputs,
                    "--grads",
                    f"{name}.g",
                    "--steps",
                    1,
                    *weights,
                    *run,
                ),
                f"{name} alone",
            )
            self.must(
                self.ckrun(
                    name + ".so",
                    "--inputs",
                    inputs,
                    "--save",
                    f"{name}.p",
                    "--steps",
                    3,
                    *weights,
                    *run,
                ),
                f"{name} alone",
            )
        for suffix in "g", "p":
            a, b = (compare.load(self.path(f"{n}.{suffix}")) for n in "ab")
            for k in a:
                if ".m." not in k and ".v." not in k:
                    x, y = (np.asarray(v[k], np.float64) for v in (a, b))
                    far[suffix, k] = np.abs(x - y).max() / np.abs(y).max() if np.any(x != y) else 0
        return far

    def ranks(self):
        run = ["--lr", "0.01", "--seed", 5]
        inputs = self.model("a", "gpt2-dropout-ts17", "--optimizer", "sgd")
        self.model(
            "b",
            "gpt2-dropout-ts17",
            "--optimizer",
            "sgd",
            "--tp",
            2,
            "--sp",
            "--memory-budget",
            "95%",
        )
        done = self.against("a", "b", inputs, "--steps", 3, *run)
        self.says(done, "against b.so: 2 ranks", "all tensors and losses are within the tolerance")
        far, lines = self.files(inputs, run), LINE.findall(done.stdout)
        self.check(
            len(lines) == 20 and f"and {len(far) - 20} more, largest difference" in done.stdout,
            f"{len(lines)} lines of {len(far)}",
        )
        for x, what, name, _ in lines:
            self.near(float(x), far["g" if what == "gradient" else "p", name], f"{what} '{name}'")
        self.check(
            [float(x[0]) for x in lines] == sorted((float(x[0]) for x in lines), reverse=True),
            f"not the worst first: {lines}",
        )
        worst = sorted(far.values(), reverse=True)[:20]
        self.near(float(lines[-1][0]), worst[-1], "the least of 20")

    def replicas(self):
        """A side without a fixed number of replicas has as many as the batch of the other."""
        self.text("whole", graph(), "--dp", "auto")
        self.text("shards", graph(), "--dp", 4, "--zero", 3, "--zero-group", 2)
        x = np.random.default_rng(3).standard_normal((8, 3)).astype(np.float32)
        np.savez(self.path("x8.npz"), x=x)
        for a, b in ("shards", "whole"), ("whole", "shards"):
            done = self.against(a, b, "x8.npz", "--ranks", 4, "--steps", 2)
            self.says(done, f"against {b}.so: 4 ranks", "all tensors and losses are within")

    def noise(self):
        inputs = self.model("a", "bert-cls-dynamo")
        self.model("b", "bert-cls-dynamo", "--tp", 3, "--sp")
        done = self.against("a", "b", inputs, "--steps", 2)
        self.says(done, "within rounding error", "are within the tolerance")
        key = [line for line in done.stdout.splitlines() if "param" in line and "key.bias" in line]
        self.check(
            key and all(line.endswith("within rounding error") for line in key),
            f"keys' biases: {key}",
        )

    def bias(self):
        """Rounding of a gradient's terms is no difference, in either order; a gradient of 2e-4 of
        the largest is."""
        rng = np.random.default_rng(3)
        np.savez(
            self.path("in.npz"),
            x=np.float32(rng.normal(0, 0.05, (64, 16))),
            t=np.float32(rng.normal(0, 1, (64, 8))),
        )
        np.savez(
            self.path("init.npz"),
            w=np.float32(rng.normal(0, 0.3, (16, 32))),
            b=np.float32(rng.normal(0, 1, 32)),
            g=np.ones(32, np.float32),
            c=np.float32(rng.normal(0, 1, 32)),
            v=np.float32(rng.normal(0, 0.2, (32, 8))),
        )
        for optimizer in "sgd", "adamw":
            run = ["--init", self.path("init.npz"), "--lr", 0.01]
            self.text("a", normed(), "--optimizer", optimizer)
            self.text("b", normed(), "--optimizer", optimizer, "--tp", 2)
            self.text("c", normed("1e-4"), "--optimizer", optimizer)
            for a, b in ("a", "b"), ("b", "a"):
                done = self.against(a, b, "in.npz", *run, "--steps", 1 if optimizer == "sgd" else 3)
                self.says(done, "within rounding error", "are within the tolerance")
            for a, b in ("a", "c"), ("c", "a"), ("b", "c"):
                done = self.against(a, b, "in.npz", *run, "--rtol", 1e-4, status=1)
                first = [
                    line.split("'")[1]
                    for line in done.stdout.splitlines()
                    if " gradient '" in line and "within rounding error" not in line
                ]
                self.check(first[:1] == ["b"], f"{optimizer}: {a} beside {b}: {done.stdout[-900:]}")

    def narrow(self):
        """Of mixed precision no file tells: parameters and gradients are float32 as ever."""
        inputs = self.model("a", "gpt2-logits", "--optimizer", "sgd")
        for dtype, told in (
            ("bf16", "0.031 of a tensor's largest magnitude (bf16)"),
            ("f16", "0.0039 of a tensor's largest magnitude (f16)"),
        ):
            self.model("b", "gpt2-logits", "--optimizer", "sgd", "--dtype", dtype)
            for a, b in ("a", "b"), ("b", "a"):
                self.says(
                    self.against(a, b, inputs),
                    f"tolerance {told}",
                    "all tensors and losses are within the tolerance",
                )
        self.says(
            self.against("a", "b", inputs, "--rtol", 1e-5, status=1), "differ by more than 1e-05"
        )

    def buffers(self):
        inputs = self.model("a", "cnn-bn-batch", "--optimizer", "sgd")
        self.model(
            "b",
            "cnn-bn-batch",
            "--optimizer",
            "sgd",
            "--recompute",
            "full",
            "--update-in-backward",
            "on",
        )
        done = self.against("a", "b", inputs, "--steps", 2)
        self.check({x for x, *_ in LINE.findall(done.stdout)} == {"0"}, f"plans: {done.stdout}")


def main():
    bench = Against()
    bench.formula()
    bench.ranks()
    bench.replicas()
    bench.noise()
    bench.bias()
    bench.narrow()
    bench.buffers()
    bench.finish()


if __name__ == "__main__":
    main()
