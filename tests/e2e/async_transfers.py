#!/usr/bin/env python3
"""Transfers between ranks begin at one step and end behind a later one: their bits, and the rule
that replay has for them.

    async_transfers.py CKC CKRUN

Delivered at the end alone, from what lies at the source then or lay there in the beginning, with
NaN at the destination meanwhile, they change no bit of gradients and parameters, and each rank's
peak is the planned one; plans that break the rule in one way each are refused by its name; a plan
within a budget hides transfers too and never takes more than it.
"""

import copy
import os
import sys

import numpy as np

import ck
from truth import DEEP, Truth

sys.path.insert(0, ck.TOOLS)
import compare
import replay

# model, flags of ckc, flags of ckrun
RUNS = (
    ("gpt2-dropout-ts17", ["--tp", 4, "--sp", "--update-in-backward", "on"], []),
    ("llama-dynamo", ["--tp", 2, "--sp", "--memory-budget", "85%"], []),
    ("mlp-mse", ["--dp", "auto", "--grad-accum", 2], ["--ranks", 2]),
    ("gpt2-dynamo-dyn", ["--tp", 2, "--dp", "auto", "--memory-budget", "90%"], ["--ranks", 4]),
    (
        "gpt2-logits",
        ["--dp", 2, "--tp", 2, "--zero", 3, "--grad-accum", 2, "--memory-budget", "92%"],
        [],
    ),
    ("gpt2-logits", ["--dp", 4, "--zero", 2, "--zero-group", 2], []),
    ("gpt2-dynamo-dyn", ["--tp", 2, "--sp", "--halves", "on", "--memory-budget", "95%"], []),
)
LATE = "0", "1", "2"


class Waits(ck.Bench):
    def build(self, model, *flags):
        stem = os.path.join(ck.MODELS, model)
        done = self.ckc(
            stem + ".onnx",
            "-o",
            self.path("m.so"),
            "--quiet",
            "--json",
            self.path("m.json"),
            *ck.model_flags(stem)[0],
            *flags,
        )
        return stem if self.must(done, f"{model} {flags}") else None

    def inputs(self, stem, replicas):
        """Other samples for each of them."""
        path = self.path("inputs.npz")
        x = compare.load(stem + ".inputs.safetensors")
        np.savez(
            path,
            **{
                k: np.concatenate([np.roll(v, i, -1) for i in range(replicas)])
                for k, v in x.items()
            },
        )
        return path

    def late(self, model, flags, more):
        """Whatever is delivered late is the same; the plan hides some of it."""
        stem = self.build(model, *flags)
        if not stem:
            return
        plan = ck.plan(self.path("m.json"))
        begun = [s for s in plan["schedule"] if s.get("begins")]
        self.check(
            begun and plan["comm"]["hidden_seconds"] > 0,
            f"{model} {flags}: {len(begun)} begin, {plan.get('comm')}",
        )
        budget = plan["summary"]["budget_bytes"]
        self.check(
            budget is None or plan["summary"]["peak_bytes"] <= budget,
            f"{model} {flags}: over the budget",
        )
        batches = (4 if "--zero-group" in flags else 2 if "--dp" in flags else 1) * (
            2 if "--grad-accum" in flags and "--zero" in flags else 1
        )
        found, inputs = [], self.inputs(stem, batches)
        for late in LATE:
            files = [
                x
                for flag in ("save", "grads", "log")
                for x in ("--" + flag, self.path(flag + late))
            ]
            done = self.ckrun(
                self.path("m.so"),
                "--inputs",
                inputs,
                "--steps",
                3,
                "--threads",
                1,
                *more,
                *files,
                env={"CKR_LATE": late, "CKR_POISON": "1"},
            )
            self.must(done, f"{model} {flags} late {late}")
            found.append([ck.content(self.path(flag + late)) for flag in ("save", "grads")])
            rows = ck.log_rows(self.path("log" + late))
            for row in rows:
                self.peak(row["peak_bytes"], plan, f"{model} {flags}")
        whole = ck.model_flags(stem, batches)[0]
        Truth(self, stem + ".onnx", whole, inputs, "--steps", 3).check(
            f"{model} {flags}", DEEP, [r["loss"] for r in rows], "grads0", "save0"
        )
        self.check(
            found[0] == found[1] == found[2], f"{model} {flags}: bits depend on when it arrives"
        )

    def broken(self):
        """Each rule of waits by itself, over all transfers that it can be broken for."""
        stem = os.path.join(ck.MODELS, "gpt2-ts14")
        done = self.ckc(
            stem + ".onnx",
            "--plan-only",
            "--quiet",
            "--json",
            self.path("m.json"),
            *ck.model_flags(stem)[0],
            "--tp",
            2,
        )
        self.must(done, "gpt2-ts14")
        plan = ck.plan(self.path("m.json"))
        self.check(not replay.Replay(copy.deepcopy(plan)).faults, "the plan itself")
        ends = {b: s["id"] for s in plan["schedule"] for b in s.get("waits", [])}
        for begun, end in ends.items():
            step = plan["schedule"][begun]
            x, y = step["reads"][0], step["writes"][0]
            for what, change in {
                "touches": lambda s: s[end]["reads"].append(y),
                "overwrites": lambda s: s[end]["writes"].append(x),
                "nobody waits": lambda s: s[end]["waits"].remove(begun),
                "has waited for already": lambda s: s[-1].setdefault("waits", []).append(begun),
                "does not begin": lambda s: s[begun].pop("begins"),
                "which is none": lambda s: s[end]["waits"].append(len(s)),
                "is no transfer": lambda s: next(
                    t for t in s[end:] if "sent_bytes" not in t and "all_reduce" != t["op"]
                ).update(begins=True),
            }.items():
                if what == "overwrites" and plan["tensors"][y]["alias_of"] is not None:
                    what = "touches"  # in place they are the same bytes
                if what == "has waited for already" and end == len(plan["schedule"]) - 1:
                    continue
                wrong = copy.deepcopy(plan)
                change(wrong["schedule"])
                faults = [
                    f for f in replay.Replay(wrong).faults if f.startswith("wait: ") and what in f
                ]
                self.check(faults, f"step {begun}: {what} is not seen")
        self.check(len(ends) > 4, f"{len(ends)} transfers begin early")
        late = copy.deepcopy(plan)
        late["comm"]["hidden_seconds"] *= 1.5
        self.check(
            any("hidden_seconds" in f for f in replay.Replay(late).faults),
            "hidden seconds may be anything",
        )

    def gradients(self):
        """Without a budget every sum of a large gradient goes on its way where it is made, and is
        hidden but for the last."""
        text, last = (
            ["graph @wide {", "\tinput %x: f32[8,512]"]
            + [f"\tparam %w{i}: f32[512,512]" for i in range(4)],
            "x",
        )
        for i in range(4):
            text += [f"\t%y{i} = matmul %{last}, %w{i}", f"\t%a{i} = tanh %y{i}"]
            last = f"a{i}"
        text += [
            f"\t%s = mul %{last}, %{last}",
            "\t%loss: f32[] output = reduce_sum %s {axes=[0,1], keepdims=0}",
            "\tloss %loss",
            "}",
            "",
        ]
        with open(self.path("wide.ck"), "w") as f:
            f.write("\n".join(text))
        done = self.ckc(
            "wide.ck",
            "--plan-only",
            "--dp",
            "auto",
            "--json",
            self.path("wide.json"),
            "--optimizer",
            "sgd",
        )
        if not self.must(done, "wide.ck"):
            return
        steps = ck.plan(self.path("wide.json"))["schedule"]
        sums = [s for s in steps if s.get("sent_bytes", 0) >= 1 << 19]
        ends = {b: s["id"] for s in steps for b in s.get("waits", [])}
        work = [
            any(k["op"] == "matmul" for k in steps[s["id"] + 1 : ends.get(s["id"], s["id"]) + 1])
            for s in sums
        ]
        self.check(
            len(sums) == 4 and all(work[:-1]), f"{[s['op'] for s in sums]}: work behind {work}"
        )


def main():
    bench = Waits()
    for run in RUNS:
        bench.late(*run)
    bench.broken()
    bench.gradients()
    bench.finish()


if __name__ == "__main__":
    main()
