#!/usr/bin/env python3
"""Models that --tp cuts over ranks train as the interpreter trains them uncut.

    tensor_parallel.py CKC CKRUN [MODEL...]

Losses, first gradients and parameters after five steps of plain SGD (what AdamW makes of a gradient
that is rounding noise, such as that of a key's bias, is as large as any update); the same bits
under every plan; the least budget, met; the planned peak, measured; a run saved at one number of
ranks resumed at another; a plan for every number of ranks, in both types and for both targets; the
options around it and what is refused.
"""

import itertools
import json
import os
import re
import sys

import numpy as np

import ck
from truth import DEEP, Truth

sys.path.insert(0, ck.TOOLS)
import compare

STEPS = 5
TYPES, TARGETS = ("f32", "bf16"), ("cpu", "cuda")
# dropout with tied weights; two key heads of four; masks and classes that no number of ranks
# divides; packed projections; convolutions with running statistics and resampling
CASES = (
    ("gpt2-dropout-ts17", (["--tp", 2], ["--tp", 4, "--sp"])),
    ("llama-dynamo", (["--tp", 4], ["--tp", 2, "--sp"])),
    ("bert-cls-dynamo", (["--tp", 3, "--sp"],)),
    ("chargpt-dyn-o24", (["--tp", 2, "--sp"],)),
    ("gpt2-tied-by-accident", (["--tp", 2, "--sp"],)),
    ("unet-dynamo", (["--tp", 2, "--sp"],)),
)
PLANNED = ("plan/gpt2-default", "llama-dynamo", "plan/vit-dynamo", "plan/t5-dynamo")


class Parallel(ck.Bench):
    def build(self, model, name, flags):
        stem = os.path.join(ck.MODELS, model)
        done = self.ckc(
            stem + ".onnx",
            "-o",
            self.path(name),
            *ck.model_flags(stem)[0],
            "--optimizer",
            "sgd",
            *flags,
        )
        return self.must(done, f"{model} {flags}") and name

    def train(self, model, so, *more, steps=STEPS, env=None):
        done = self.ckrun(
            self.path(so),
            "--inputs",
            os.path.join(ck.MODELS, model + ".inputs.safetensors"),
            "--steps",
            steps,
            "--lr",
            "0.1",
            "--threads",
            1,
            "--log",
            self.path(so + ".jsonl"),
            *more,
            env=env,
        )
        self.must(done, f"{so} {more}")
        self.rows = ck.log_rows(self.path(so + ".jsonl"))
        return done, [row["loss"] for row in self.rows]

    def tensors(self, name):
        return {k: np.asarray(v, np.float64) for k, v in compare.load(self.path(name)).items()}

    def norm(self, grads, what):
        """The logged norm is that of the gradients written, each parameter's once."""
        norm = np.sqrt(sum(np.sum(g**2) for g in self.tensors(grads).values()))
        found = self.rows[0].get("grad_norm", 0)
        self.check(
            abs(found / norm - 1) < 2e-6, f"{what}: norm {found}, of the gradients written {norm}"
        )

    def bytes_of(self, name):
        with open(self.path(name), "rb") as f:
            return f.read()

    def plans(self, model, flags, what):
        """Every plan, the least budget among them, gives the same bits."""
        stem = os.path.join(ck.MODELS, model)
        tight = self.ckc(
            stem + ".onnx",
            "--plan-only",
            *ck.model_flags(stem)[0],
            "--optimizer",
            "sgd",
            *flags,
            "--memory-budget",
            "1KiB",
        )
        least = ck.ERRORS.search(tight.stderr)
        if not self.check(least, f"{what}: no least budget: {tight.stderr[:300]}"):
            return
        for more in (["--memory-budget", least[1] + "B"], ["--recompute", "full"]):
            so = self.build(model, "other.so", [*flags, *more])
            done, _ = so and self.train(model, so, "--save", "other.st", "--check") or (None, None)
            if done:
                self.check(
                    self.bytes_of("other.st") == self.bytes_of("many.st"),
                    f"{what} {more}: other bits",
                )
                peak, planned = re.search(
                    r"peak (\d+) bytes per rank, planned (\d+)", done.stdout
                ).groups()
                self.check(peak == planned, f"{what} {more}: peak {peak}, planned {planned}")

    def model(self, model, ways):
        one = self.build(model, "one.so", [])
        _, losses = self.train(model, one, "--save", "one.st", "--grads", "one.grads.st")
        self.norm("one.grads.st", model)
        stem = os.path.join(ck.MODELS, model)
        right = Truth(
            self,
            stem + ".onnx",
            [*ck.model_flags(stem)[0], "--optimizer", "sgd"],
            stem + ".inputs.safetensors",
            "--steps",
            STEPS,
            "--lr",
            0.1,
        )
        right.check(model, DEEP, losses, "one.grads.st", "one.st")
        for number, flags in enumerate(ways):
            what = f"{model} {' '.join(map(str, flags))}"
            many = self.build(model, "many.so", flags)
            if not many:
                continue
            done, found = self.train(model, many, "--save", "many.st", "--grads", "many.grads.st")
            self.check(f"{flags[1]} virtual ranks" in done.stdout, f"{what}: ranks are not said")
            self.norm("many.grads.st", what)
            right.check(what, DEEP, found, "many.grads.st", "many.st")
            if number == 0:
                self.plans(model, flags, what)
                self.train(model, many, "--save", "half.st", steps=2)
                self.train(model, one, "--resume", self.path("half.st"), "--save", "end.st")
                right.check(what + ", resumed on one rank", DEEP, save="end.st")

    def plan_all(self, model):
        """Every number of ranks has a plan, also where it divides nothing of the model."""
        stem = os.path.join(ck.MODELS, model)
        for ranks, dtype, target in itertools.product(range(2, 9), TYPES, TARGETS):
            flags = ["--tp", ranks, "--dtype", dtype, "--target", target]
            done = self.ckc(stem + ".onnx", "--plan-only", *ck.model_flags(stem)[0], *flags)
            self.must(done, f"{model} {flags}")

    def options(self):
        gpt, resnet = (
            os.path.join(ck.MODELS, m + ".onnx") for m in ("gpt2-ts14", "resnet-dynamo-bn")
        )
        plain = ["--plan-only", "--loss", "loss"]
        refused = self.ckc(resnet, "--plan-only", "--loss", "loss", "--tp", 64)
        self.check(
            refused.returncode == 1 and "of the bytes in matrices can be sharded" in refused.stderr,
            f"resnet: {refused.stderr}",
        )
        eight = self.ckc(gpt, *plain, "--tp", 8)
        self.check(
            "attention with 4 heads is replicated on 8 ranks; --tp 2 or 4" in eight.stderr,
            f"8 ranks: {eight.stderr}",
        )
        text = os.path.join(ck.HERE, os.pardir, "shard", "models", "key_heads.ck")
        for t, note in (
            (2, ""),
            (
                3,
                "attention with 6 heads and 2 key heads is replicated on 3 ranks; --tp 2 or 6 divides",
            ),
            (6, ""),
        ):
            told = self.ckc(text, "--passes=shard", "--tp", t)
            self.check(
                told.returncode == 0
                and note in told.stderr
                and (note or "attention" not in told.stderr),
                f"{t} ranks: {told.stderr}",
            )
        eight = self.ckc(gpt, *plain, "--tp", 8, "--quiet")
        self.check(eight.returncode == 0 and not eight.stderr, f"8 ranks, --quiet: {eight.stderr}")
        many = self.ckc(gpt, *plain, "--tp", 1000, "--quiet")
        self.check(
            many.returncode == 1 and "matrices can be sharded" in many.stderr,
            f"1000 ranks, --quiet: {many.stderr}",
        )
        done = self.ckc(
            gpt, *plain, "--tp", 2, "--sp", "--dump=shard", "--json", self.path("plan.json")
        )
        self.check(
            "reduce_scatter" in done.stdout and "one of 2 ranks" in done.stdout,
            f"--dump=shard: {done.stdout[:300]}",
        )
        with open(self.path("plan.json"), encoding="utf-8") as f:
            plan = json.load(f)
        ops = [
            s["op"]
            for s in plan["schedule"]
            if s.get("sent_bytes", 0) > 0 and s["phase"] in ("forward", "backward")
        ]
        layers = 2
        self.check(
            plan["mesh"] == {"tp": 2} and ops.count("reduce_scatter") >= 4 * layers,
            f"--json: {ops}",
        )
        wish = next(
            t["name"]
            for t in plan["tensors"]
            if t["kind"] == "param" and t.get("split", {}).get("state") == "S"
        )
        done = self.ckc(
            gpt, *plain, "--tp", 2, "--shard", wish + "=R", "--json", self.path("plan.json")
        )
        with open(self.path("plan.json"), encoding="utf-8") as f:
            state = next(
                t.get("split", {}).get("state")
                for t in json.load(f)["tensors"]
                if t["name"] == wish
            )
        self.check(state == "R", f"--shard {wish}=R: {state} {done.stderr}")
        done = self.ckc(gpt, *plain, "--shard", "x=Q", "--tp", 2)
        self.check(
            done.returncode == 2 and "VALUE=STATE" in done.stderr,
            f"--shard x=Q: {done.returncode} {done.stderr}",
        )
        # a name that nothing has is no wish that is met, and a wish that cannot be met is named
        for placed, said in (
            ("nonsense=S0", "--shard 'nonsense' matches no value"),
            (wish + "=P", f"'{wish}' cannot have this placement on 2 ranks; expected I or R or S0"),
            ("loss=S0", "'loss' cannot have this placement on 2 ranks; expected I or R"),
        ):
            done = self.ckc(gpt, *plain, "--tp", 2, "--shard", placed, "--quiet")
            self.check(
                done.returncode == 1 and said in done.stderr,
                f"--shard {placed}: {done.returncode} {done.stderr}",
            )
        done = self.ckc(gpt, *plain, "--sp")
        self.check("without --tp T" in done.stderr, f"--sp alone: {done.stderr}")


def main():
    bench = Parallel()
    for model, ways in CASES:
        if model in (bench.names or [model]):
            bench.model(model, ways)
    if not bench.names:
        for model in PLANNED:
            bench.plan_all(model)
        bench.options()
    bench.finish()


if __name__ == "__main__":
    main()
