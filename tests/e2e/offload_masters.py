#!/usr/bin/env python3
"""Float32 master weights of 16-bit training in host memory (ckc --offload state): the bits of a
run without it.

    offload_masters.py CKC CKRUN --gpt=GPT [bits] [ranks] [resume] [parts] [evaluation] [room]
                       [folder] [stopped]

bits, ranks: a GPT and a LLaMA in bf16 and f16, with a scaled loss that overflows, clipping,
micro-batches, averages, updates in backward, over virtual ranks; delivered late (CKR_LATE), and
with NaN in dead memory (CKR_POISON).  All weights but those that another node reads in float32 are
in host memory, whose bytes are those of a formula.  resume: a checkpoint of one goes on in the
other.  parts: a weight above 64 MiB.  evaluation: losses and exports, of averages too.  folder,
stopped: faults of the file.
"""

import os
import re

import ck
import numpy as np
import offload

SIZES = "--layers 1 --hidden 128 --heads 4 --seq 12 --vocab 160 --batch 4 --dropout 0".split()
MODELS = {"gpt": [], "llama": ["--like", "llama", "--kv-heads", 4]}
# their biases, norms and tables are read in float32
READ_IN_FLOAT32 = re.compile(r"bias$|norm|embed|head")
# beside the loss; the sum is 160
SUMS = """	%q1 = mul %w3, %w3
	%q2 = reduce_sum %q1 {axes=[0,1], keepdims=0}
	%aux: f32[4,160] output = add %h6, %q2
"""
# 77 MB
LARGE = """graph @large {
	input %x: f32[2,4400]
	param %w: f32[4400,4400] = splat 0.03125
	%h = matmul %x, %w
	%t = tanh %h
	%s = mul %t, %t
	%loss: f32[] output = reduce_mean %s {axes=[0,1], keepdims=0}
	loss %loss
}
"""
TOKENS = ["--data", "tokens.npy", "--threads", 1, "--quiet"]
BF16, F16 = ["--dtype", "bf16"], ["--dtype", "f16"]
OVERFLOW = ["--on-nan", "skip", "--loss-scale", "3e5"]  # in some steps
# flags of ckc, flags of ckrun
RUNS = (
    (BF16, []),
    (F16, []),
    (F16, OVERFLOW),
    ([*BF16, "--grad-accum", 2], ["--clip", 0.1]),
    ([*F16, "--grad-accum", 2, "--optimizer", "lion"], []),
    ([*BF16, "--optimizer", "sgd"], []),
    ([*BF16, "--optimizer", "sgdm", "--update-in-backward", "on"], []),
    ([*BF16, "--state-dtype", "bf16"], []),
    ([*BF16, "--ema"], ["--ema-decay", 0.9]),
    (BF16, ["--lr-scale", "*attn*=0.5", "--decay", "*up*=0.3"]),
)
RANKS = (
    [*BF16, "--dp", 2, "--zero", 1],
    [*F16, "--dp", 2, "--zero", 1, "--optimizer", "sgdm"],
    [*BF16, "--dp", 2, "--zero", 2, "--grad-accum", 2],
    [*BF16, "--dp", 3, "--zero", 3],
    [*BF16, "--dp", 2],
    [*BF16, "--tp", 2],
    [*F16, "--tp", 2, "--dp", 2, "--zero", 1],
)
PARTS = "bits ranks resume parts evaluation room folder stopped".split()


class Masters(offload.Offload):
    def __init__(self):
        gpt = os.path.abspath(ck.option("--gpt", "gpt"))
        super().__init__()
        self.run_flags = TOKENS
        self.dtype = []
        for name, like in MODELS.items():
            made = self.run([gpt, *like, *SIZES, "--weights", "-o", self.path(name + ".onnx")])
            self.must(made, "gpt")
        rng = np.random.default_rng(1)
        np.save(self.path("tokens.npy"), rng.integers(0, 160, 2000))

    def library(self, name, *flags, model="m4.ck"):
        return super().library(name, *self.dtype, *flags, model=model)

    def trained(self, flags, run, ways, name):
        plan = self.same(flags, run, ways=ways, steps=3, model=name + ".onnx")
        there = {t["name"] for t in plan["tensors"] if t["kind"] == "param" and t.get("host")}
        params = {t["name"]: t for t in plan["tensors"] if t["kind"] == "param"}
        shards = "--tp" in flags or "--zero" in flags
        for param, t in params.items():
            if t.get("alias_of") is None and not param.endswith(".next"):
                large = t["bytes"] >= offload.SMALL and not READ_IN_FLOAT32.search(param)
                self.check(
                    (param in there) == large,
                    f"{name} {flags}: {param} of {t['bytes']} bytes, host: {param in there}",
                )
        self.check(shards or len(there) >= 4, f"{name} {flags}: host: {sorted(there)}")
        return plan

    # ---- bits ----

    def bits(self):
        for name in MODELS:
            for flags, run in RUNS:
                ways = offload.WAYS if flags is BF16 and not run else offload.WAYS[2:]
                self.trained(flags, run, ways, name)
        plan = self.trained(BF16, ["--check"], offload.WAYS[:1], "gpt")
        kept = [t for t in plan["tensors"] if t.get("host") and t["kind"] in ("param", "state")]
        sizes = {128 * n * 128 * 4 for n in (1, 3, 4)}
        self.check({t["bytes"] for t in kept} >= sizes, f"{[t['bytes'] for t in kept]}")
        total = sum(offload.round_up(t["bytes"]) for t in kept if t["alias_of"] is None)
        for key in "bytes", "fetched_bytes", "offloaded_bytes":
            self.check(plan["host"][key] == total, f"host.{key}: {plan['host']}, {total}")

    def ranks(self):
        for flags in RANKS:
            self.trained(flags, [], offload.WAYS[2:], "gpt")
        self.trained(RANKS[0], ["--clip", 0.1], offload.WAYS[2:], "llama")

    def resume(self):
        for flags in BF16, F16, [*BF16, "--dp", 2, "--zero", 1]:
            libraries = self.resumed(flags, 2, model="gpt.onnx")
            for first in libraries:
                for library in libraries.values():
                    init = self.outcome(library, "--steps", 1, "--init", first + ".half")[0]
                    self.check(init, f"{flags}: --init {first}.half")

    def parts(self):
        """A parameter above 64 MiB passes in two parts, with the settings of its group, and its
        copy is made in pieces."""
        self.write("large.ck", LARGE)
        flags = ["--data", "large.npy", "--threads", 2, "--quiet", "--lr", 10]
        flags += ["--lr-scale", "w=0.5", "--decay", "w=0.3"]
        rng = np.random.default_rng(2)
        np.save(self.path("large.npy"), rng.normal(size=(16, 4400)).astype("f4"))
        plain, so = self.pair(*BF16, "--optimizer", "sgdm", model="large.ck")
        updates = [s["op"] for s in self.replayed("parts")["schedule"]].count("sgdm")
        self.check(updates == 2, f"{updates} updates, expected two")
        found = []
        for library, start, steps in (plain, [], 3), (so, [], 2), (so, ["--resume", "part.st"], 3):
            save = ["--steps", steps, "--save", self.path("part.st")]
            self.must(self.ckrun(library, *flags, *start, *save), f"parts {start}")
            found.append(ck.content(self.path("part.st")))
        self.check(found[0] == found[2], "parts: other bits")
        os.unlink(self.path("part.st"))

    # ---- evaluation ----

    def evaluation(self):
        for flags in BF16, [*BF16, "--ema"], [*F16, "--dp", 2, "--zero", 1]:
            plain, so = self.pair(*flags, model="gpt.onnx")
            found = []
            for library in plain, so:
                onnx, last = self.path("out.onnx"), self.path("out.save")
                if os.path.exists(onnx):
                    os.unlink(onnx)
                more = ["--valid", "tokens.npy", "--valid-every", 1, "--export-onnx", onnx]
                kept, _ = self.outcome(library, "--steps", 3, "--lr", 0.01, *more)
                self.check(
                    any("valid_loss" in row for row in kept[0]), f"{flags}: nothing was evaluated"
                )
                found.append([kept[0], ck.content(onnx), self.evaluated(library, last)])
            self.check(found[0] == found[1], f"{flags}: other evaluations: {found}"[:600])

        self.other_reader()

    def other_reader(self):
        """A node of evaluation alone reads a parameter in float32."""
        text = offload.GRAPH.format(rows=4).replace("\tloss %loss", SUMS + "\tloss %loss")
        self.write("aux.ck", text)
        found = []
        for library in self.pair(*BF16, model="aux.ck"):
            out = self.path("aux.npy")
            done = self.ckrun(
                *("predict", library, "--data", "x.npy", "-o", out, "--name", "aux"),
                env={"CKR_LATE": "1"},
            )
            self.must(done, "predict")
            found.append(np.load(out))
        self.check(found[0].tobytes() == found[1].tobytes(), "predict: other bits")
        middle = np.median(found[1])
        self.check(found[1].shape == (64, 160) and abs(middle - 160) < 16, f"{middle}")

    def evaluated(self, library, file):
        done = self.ckrun("eval", library, "--init", file, *TOKENS[:4])
        self.must(done, "eval")
        return re.findall(r"loss \S+", done.stdout + done.stderr)

    # ---- which ----

    def room(self):
        """Without copies parameters stay, and without room for all there are no copies."""
        for flags in (
            ["--resident-copies", "off"],
            ["--host-memory", "1MiB"],
            ["--master-weights", "off"],
        ):
            self.library("off", *BF16, *flags, *offload.OFFLOAD, model="gpt.onnx")
            plan = self.replayed(flags)
            there = [t["name"] for t in plan["tensors"] if t["kind"] == "param" and t.get("host")]
            copies = [t["name"] for t in plan["tensors"] if t["name"].startswith("copy.")]
            self.check(not there and not copies, f"{flags}: {there} {copies}")
            self.check(plan["host"]["bytes"], f"{flags}: no states in host memory")

        name = "h.0.mlp.down.weight"
        explain = ["--plan-only", *BF16, "--explain", name, "--offload", "state"]
        done = self.ckc(self.path("gpt.onnx"), *explain)
        self.check(
            f"{name}: parameter f32[512,128]" in done.stdout
            and "allocated for the whole step, in host memory" in done.stdout,
            f"--explain: {done.stdout[:300]}",
        )
        done = self.ckc(self.path("gpt.onnx"), "--plan-only", *BF16, "--memory-budget", "10%")
        less = [
            int(x)
            for x in re.findall(r"about (\d+) B less[^\n]*: optimizer state, and", done.stderr)
        ]
        kept = 3 * 4 * 128 * 128 * (3 + 1 + 4 + 4)  # of layers' weights
        self.check(less and less[0] > kept * 0.8, f"a refusal: {less}, {kept}")

    def folder(self):
        self.dtype = BF16
        super().folder()
        self.dtype = []

    def stopped(self):
        self.dtype = BF16
        super().stopped()
        self.dtype = []


def main():
    bench = Masters()
    for part in bench.names or PARTS:
        getattr(bench, part)()
    bench.finish()


if __name__ == "__main__":
    main()
