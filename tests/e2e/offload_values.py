#!/usr/bin/env python3
"""Values offloaded between forward and backward never show in a number.

    offload_values.py CKC CKRUN [MODEL...]

Each model is compiled without a budget, and with budgets and --offload auto.  Something is
offloaded, the referee accepts the plan, and three steps leave losses, gradients and parameters of
the same bits: also if transfers run as late as they may (CKR_LATE), and if bytes that nobody needs
are NaN (CKR_POISON).  --check compares every tensor with the plan that keeps everything.
"""

import json
import os
import sys

import budgets
import ck

MODELS = "gpt2-dropout-ts17", "cnn-bn-batch", "unet-dynamo"
# of models so small latencies would be all that counts
DEVICE = {
    "name": "slow",
    "product_flops": 2e9,
    "vector_flops": 2e9,
    "bandwidth": 1e10,
    "host_bytes_per_second": 2e10,
    "host_latency_seconds": 0,
}
WAYS = ({}, {"CKR_LATE": "1"}, {"CKR_LATE": "1", "CKR_POISON": "1"})
FORMS = (
    ("gpt2-dropout-ts17", ["--dtype", "bf16"]),
    ("gpt2-dropout-ts17", ["--grad-accum", 2]),
    ("gpt2-dropout-ts17", ["--update-in-backward", "on"]),
    ("gpt2-dropout-ts17", ["--tp", 2]),
    ("gpt2-dropout-ts17", ["--tp", 2, "--sp", "--grad-accum", 2]),
    ("cnn-bn-batch", ["--dtype", "bf16"]),
)


class Values(ck.Bench):
    def __init__(self):
        super().__init__()
        with open(self.path("device.json"), "w", encoding="utf-8") as sink:
            json.dump(DEVICE, sink)

    def library(self, model, flags, tag):
        stem = os.path.join(ck.MODELS, model)
        so, plan = self.path(tag + ".so"), self.path(tag + ".json")
        device = ("--device", self.path("device.json"))
        done = self.ckc(stem + ".onnx", "-o", so, "--quiet", "--json", plan, *device, *flags)
        if done.returncode and "is too small" in done.stderr:
            return None
        self.must(done, f"{model} {flags}")
        return so, plan

    def outcome(self, so, model, *args, env=None):
        inputs = os.path.join(ck.MODELS, model + ".inputs.safetensors")
        names = [self.path("out." + x) for x in ("log.jsonl", "grads", "save")]
        for name in names:
            if os.path.exists(name):
                os.unlink(name)
        log, grads, save = names
        files = "--log", log, "--grads", grads, "--save", save
        done = self.ckrun(so, "--inputs", inputs, "--steps", 3, *files, *args, env=env)
        if not self.must(done, f"{model} {args} {env}"):
            return None
        return ck.losses(log), ck.content(grads), ck.content(save)

    def compare(self, model, flags, shares):
        ranks = ["--ranks", 2] if "--tp" in flags else []
        plain, plan = self.library(model, flags, "plain")
        full = ck.plan(plan)["summary"]
        want = self.outcome(plain, model, *ranks)
        some = False
        for share in shares:
            budget = full["resident_bytes"] + int(share * full["arena_bytes"])
            more = ["--memory-budget", f"{budget}B", "--offload", "auto"]
            made = self.library(model, [*flags, *more], "off")
            if not made:
                continue
            so, plan = made
            what = f"{model} {flags} {share}"
            budgets.referee(self, plan, what)
            some |= any(t["decision"] == "offload" for t in ck.plan(plan)["tensors"])
            for env in WAYS:
                got = self.outcome(so, model, *ranks, env=env)
                self.check(want and got == want, f"{what} {env}: other bits")
            got = self.outcome(so, model, "--threads", 1, *ranks)
            self.check(want and got == want, f"{what}, 1 thread: other bits")
            for env in WAYS[0], WAYS[2]:
                self.outcome(so, model, "--check", *ranks, env=env)
        self.check(some, f"{model} {flags}: nothing is offloaded")

    def named(self):
        """--offload-values without a budget; a name that nothing has is said."""
        flags = ["--offload", "auto", "--offload-values", "*"]
        so, plan = self.library("gpt2-dropout-ts17", flags, "named")
        rows = ck.plan(plan)["tensors"]
        self.check(sum(t["decision"] == "offload" for t in rows) > 5, "*: little is offloaded")
        plain, _ = self.library("gpt2-dropout-ts17", [], "plain")
        want = self.outcome(plain, "gpt2-dropout-ts17")
        for env in WAYS:
            got = self.outcome(so, "gpt2-dropout-ts17", env=env)
            self.check(got == want, f"all values offloaded, {env}: other bits")
        model = os.path.join(ck.MODELS, "gpt2-dropout-ts17.onnx")
        none = ["--plan-only", "--offload", "auto", "--offload-values", "nobody"]
        done = self.ckc(model, *none)
        self.check(
            done.returncode == 0 and "--offload-values 'nobody'" in done.stderr,
            f"nobody: {done.stderr}",
        )


def main():
    names = sys.argv[3:]
    del sys.argv[3:]
    bench = Values()
    for model in names or MODELS:
        bench.compare(model, [], (0.9, 0.7, 0.5))
    for model, flags in FORMS if not names else ():
        bench.compare(model, flags, (0.85, 0.6, 0.3))
    if not names:
        bench.named()
    bench.finish()


if __name__ == "__main__":
    main()
