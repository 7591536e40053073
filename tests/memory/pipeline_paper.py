#!/usr/bin/env python3
"""Plans of pipelines beside published numbers, and beside the account of --dump=memory --pp.

    pipeline_paper.py CKC GPT [first_stage] [outputs] [account] [zero_bubble]

Korthikanti et al., "Reducing Activation Recomputation in Large Transformer Models", MLSys 2023, on
graphs of samples/gpt, planned without their weights.

first_stage: figure 7, what the first stage of 175B keeps of all micro-batches in flight.  The paper
has three parts of the model on each device, which hold 1 + (p - 1) / (p m) as much as the one part
of 1F1B, which is what is planned here.  Within 1 %, but for plans without --sp: ckc shards the
dropout masks behind products, of which Megatron has 2 s b h whole on each device and layer; with
these the numbers agree to the same 1 %.
outputs: appendix B: what stages send is freed, which is 2 s b h p bytes of the first stage of 530B,
cut behind layers: 2.73 GiB, within its last digit.
account: the arithmetic of --dump=memory --pp for all stages of 175B: what stages keep agrees within
0.5 %, and so do weights, sums of gradients and states.  The arithmetic shares out layers; a stage
of a plan may end inside one, and has its inputs and constants as well.
zero_bubble: --schedule zb-h1 on inner stages of 22B.  A layer keeps M_B = s b (34 h + 5 a s) bytes
up to backward (equation 1 of the paper above), and M_W = 32 s b h up to its weight turn: inputs and
output gradients of its four products, 2 + 6 + 2 + 2 + 2 + 8 + 8 + 2.  Within 0.1 %: a stage has some
constants.
"""

import json
import os
import subprocess
import sys
import tempfile

GIB = 2.0**30
ASSUMED = ["--attention=unfused", "--dropout-mask=store", "--dtype=bf16", "--master-weights=off"]
ASSUMED += ["--device=A100-80GB", "--plan-only", "--quiet"]
SIZES = {"175B": (96, 12288, 8, 3), "530B": (105, 20480, 35, 3)}  # layers, hidden, stages, parts
SEQ, TP = 2048, 8
POOLS = "", "through_", "weight_"
POOL_BYTES = "slot_bytes", "through_bytes", "weight_bytes"
PUBLISHED = {
    ("none", False): 66.8,
    ("none", True): 41.4,
    ("selective", False): 37.8,
    ("selective", True): 12.4,
    ("full", False): 5.8,
}


class Paper:
    def __init__(self, ckc, gpt, work):
        self.ckc, self.gpt, self.work, self.faults = ckc, gpt, work, 0
        self.written = set()

    def near(self, what, got, want, part):
        ok = abs(got - want) <= part * abs(want)
        self.faults += not ok
        print(
            f"{'ok  ' if ok else 'FAIL'} {what}: {got:.3f}, expected {want:.3f} +- {100 * part} %"
        )

    def plan(self, model, *flags, tp=TP):
        path, out = os.path.join(self.work, model + ".onnx"), os.path.join(self.work, "p.json")
        if model not in self.written:
            argv = [self.gpt, "--model", model, "-o", path]
            subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
            self.written.add(model)
        argv = [self.ckc, path, *ASSUMED, f"--tp={tp}", *map(str, flags), "--json", out]
        subprocess.run(argv, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        with open(out, encoding="utf-8") as f:
            return json.load(f)

    def first_stage(self):
        layers, hidden, p, m = SIZES["175B"]
        factor = 1 + (p - 1) / (p * m)
        masks = layers * SEQ * hidden * 2 * (1 - 1 / TP) / GIB * factor
        for (mode, rows), want in PUBLISHED.items():
            flags = ["--sp"] if rows else []
            plan = self.plan("175B", "--pp", p, "--microbatches", 64, f"--recompute={mode}", *flags)
            stage = plan["stages"][0]
            got = stage["slots"] * stage["slot_bytes"] / GIB * factor
            got += 0 if rows or mode == "full" else masks
            self.near(f"175B, {mode}{', --sp' * rows}", got, want, 0.01)

    def outputs(self):
        layers, hidden, p, _ = SIZES["530B"]
        flags = ["--pp", p, "--microbatches", 280, "--recompute=selective"]
        for k in range(layers // p - 1, layers - 1, layers // p):
            flags += ["--stage", f"h.{k}.out"]
        plan = self.plan("530B", *flags)
        stage = plan["stages"][0]
        sent = [s["reads"][0] for s in stage["schedule"] if s["op"] == "send"]
        sent = [stage["tensors"][t] for t in sent]
        sent = [t for t in sent if t["bytes"] == 2 * SEQ * hidden]
        self.near("530B, values sent by a micro-batch", len(sent), 1, 0)
        self.near("530B, of these in slots", sum(t["saved"] for t in sent), 0, 0)
        freed = stage["slots"] * sum(t["bytes"] for t in sent) / GIB
        self.near("530B, GiB of outputs freed", freed, 2.73, 0.002)

    def account(self):
        flags = ["--pp", 8, "--microbatches", 64, "--recompute=selective", "--sp"]
        plan = self.plan("175B", *flags)["stages"]
        said = self.plan("175B", *flags, "--dump=memory")["memory"]["pipeline"]["stages"]
        for k, (stage, s) in enumerate(zip(plan, said)):
            kept = stage["slots"] * stage["slot_bytes"] / GIB
            self.near(f"stage {k}, in flight", stage["slots"], s["in_flight"], 0)
            self.near(f"stage {k}, GiB kept", kept, s["saved_bytes"] / GIB, 0.005)
            weights = stage["summary"]["resident_bytes"] / GIB
            self.near(f"stage {k}, GiB of weights", weights, s["weight_bytes"] / GIB, 0.005)

    def zero_bubble(self):
        layers, hidden, heads, batch, p = 48, 6144, 64, 4, 8
        flags = ["--pp", p, "--microbatches", 16, "--schedule", "zb-h1"]
        for k in range(layers // p - 1, layers - 1, layers // p):
            flags += ["--stage", f"h.{k}.out"]
        stages = self.plan("22B", *flags, tp=1)["stages"]
        size = layers / p * SEQ * batch
        m_b, m_w = size * (34 * hidden + 5 * heads * SEQ), size * 32 * hidden
        for r in range(1, p - 1):
            s = stages[r]
            slots = [s[f"{x}slots"] * s[y] for x, y in zip(POOLS, POOL_BYTES)]
            self.near(f"22B, M_B of stage {r}", s["slot_bytes"] + s["through_bytes"], m_b, 1e-3)
            self.near(f"22B, M_W of stage {r}", s["through_bytes"] + s["weight_bytes"], m_w, 1e-3)
            # one slot more than micro-batches keep M_W: the one whose backward turn runs
            want = (p - r) * m_b + r * m_w + s["weight_bytes"]
            self.near(f"22B, bytes of all slots of rank {r}", sum(slots), want, 1e-3)


def main():
    with tempfile.TemporaryDirectory() as work:
        paper = Paper(sys.argv[1], sys.argv[2], work)
        for part in sys.argv[3:] or ["first_stage", "outputs", "account", "zero_bubble"]:
            getattr(paper, part)()
    sys.exit(1 if paper.faults else 0)


if __name__ == "__main__":
    main()
