#!/usr/bin/env python3
"""What plans with --halves claim, beside closed formulas.

    check_halves.py CKC GPT [chain] [wide] [percent] [dumps]

chain: of equal layers on two ranks, each with two transfers of x seconds and products of y, a
layer more costs 2 x + y, and with halves max(2 x, y), where nothing else takes time.  wide: of
layers as wide as those of a 22B model on eight ranks (--tp 8 --sp), four fifths of the seconds of
transfers in forward are hidden, and --halves auto takes what exposes less.  percent:
of a budget are those of the whole batch.  dumps: the graph after each pass can be compiled, and
its plan costs the same.
"""

import glob
import json
import math
import os
import re
import sys

from plan_check import PlanCheck, run_parts

BATCH, ROWS, WIDTH = 4, 8, 128  # weights are larger than activations
WIDE = "--hidden", 6144, "--heads", 64, "--seq", 2048, "--batch", 4
FLAGS = "--device", "H100", "--target", "cuda", "--dtype", "bf16", "--tp", 8, "--sp", "--dp", 8
FREE = 1e30  # of a second
DEVICE = {
    "name": "links",
    "vector_flops": FREE,
    "bandwidth": FREE,
    "launch_seconds": 0,
    "link_bytes_per_second": 1e6,
    "link_latency_seconds": 0,
}


def chain(layers):
    """Two products a layer, whose weights ranks share by columns and by rows."""
    lines = [f"input %x: f32[batch,{ROWS},{WIDTH}]"]
    for i in range(layers):
        lines += [f"param %up{i}: f32[{WIDTH},{WIDTH}]", f"param %down{i}: f32[{WIDTH},{WIDTH}]"]
    at = "x"
    for i in range(layers):
        lines += [
            f"%h{i} = matmul %{at}, %up{i}",
            f"%r{i} = relu %h{i}",
            f"%y{i} = matmul %r{i}, %down{i}",
            f"%x{i} = tanh %y{i}",
        ]
        at = f"x{i}"
    lines += [f"%q = mul %{at}, %{at}"]
    lines += ["%loss: f32[] output = reduce_mean %q {axes=[0,1,2], keepdims=0}"]
    return "graph @chain {\n\t" + "\n\t".join(lines) + "\n}\n"


def forward(plan):
    """Seconds until forward is over; those of its transfers, and of them what shows."""
    clock = sent = shown = 0.0
    free, due = {}, {}
    ends = {begun: s["id"] for s in plan["schedule"] for begun in s.get("waits", [])}
    for s in plan["schedule"]:
        if s["phase"] != "forward":
            break
        if s.get("sent_bytes"):
            link, end = s.get("network", False), ends.get(s["id"], s["id"])
            free[link] = max(clock, free.get(link, 0.0)) + s.get("lane_seconds", s["seconds"])
            due[end] = max(due.get(end, 0.0), free[link])
            sent += s["seconds"]
        else:
            clock += s["seconds"]
        shown += max(0.0, due.get(s["id"], 0.0) - clock)
        clock = max(clock, due.get(s["id"], 0.0))
    return clock, sent, shown


class Check(PlanCheck):
    def layer(self, halves, product):
        """Seconds that one layer more takes in forward."""
        clocks = []
        flops = 2 * 2 * BATCH * ROWS * WIDTH * WIDTH / 2  # of a layer, on each of two ranks
        with open(self.path("d.json"), "w", encoding="utf-8") as f:
            json.dump({**DEVICE, "product_flops": flops / product}, f)
        for layers in 8, 16:
            with open(self.path("chain.ck"), "w", encoding="utf-8") as f:
                f.write(chain(layers))
            plan = self.plan(
                self.path("chain.ck"),
                *("--device", self.path("d.json"), "--tp", 2, "--sp", "--halves", halves),
                *("--shard", "up*=S1", "--shard", "down*=S0", "--dp", "off"),
                *("--dim", f"batch={BATCH}"),
            )
            clocks.append(forward(plan)[0])
        return (clocks[1] - clocks[0]) / 8

    def chain(self):
        sent = BATCH * ROWS * WIDTH * 4 / 2  # bytes that a rank sends to the other one
        transfer = sent / DEVICE["link_bytes_per_second"]
        for ratio in 0.5, 1, 1.75, 2, 2.5, 4:
            product = ratio * transfer
            for halves, want in (
                ("off", 2 * transfer + product),
                ("on", max(2 * transfer, product)),
            ):
                found = self.layer(halves, product)
                self.fault(
                    math.isclose(found, want, rel_tol=1e-9),
                    f"products of {ratio} transfers, halves {halves}: a layer takes {found} s, "
                    f"expected {want}",
                )

    def wide(self):
        model = self.model(*WIDE, "--layers", 24)
        off = self.plan(model, *FLAGS)
        on = self.plan(model, *FLAGS, "--halves", "on")
        _, sent, shown = forward(off)
        self.fault(shown > 0.9 * sent, f"without halves {shown} of {sent} s show")
        _, sent, shown = forward(on)
        self.fault(shown < 0.2 * sent, f"with halves {shown} of {sent} s show")
        auto = self.plan(model, *FLAGS, "--halves", "auto")
        seconds = [p["summary"]["exposed_seconds"] for p in (off, on, auto)]
        self.fault(
            seconds[1] < seconds[0] and math.isclose(seconds[2], seconds[1], rel_tol=1e-9),
            f"exposed seconds off, on, auto: {seconds}",
        )
        found = re.search(r"--halves auto takes (\w+); on: (\S+) s a step; off: (\S+) s", self.said)
        self.fault(found and found[1] == "on", f"auto said {self.said}")

    def percent(self):
        """Of what the whole batch takes, whatever is chosen."""
        model = self.model(*WIDE, "--layers", 2)
        budgets = [
            self.plan(model, *FLAGS, "--memory-budget", "95%", "--halves", halves)["summary"][
                "budget_bytes"
            ]
            for halves in ("off", "auto")
        ]
        self.fault(
            budgets[0] == budgets[1] and "auto takes on" in self.said, f"{budgets}: {self.said}"
        )

    def dumps(self):
        model = self.model("--layers", 2, "--hidden", 64, "--heads", 4, "--seq", 16, "--batch", 4)
        flags = ["--tp", 2, "--sp", "--halves", "on"]
        whole = self.plan(model, *flags, "--dump", "all", "--dump-dir", self.path("dumps"))
        dumps = sorted(glob.glob(self.path("dumps/*.ck")))
        self.fault(len(dumps) > 15, f"{len(dumps)} passes left dumps")
        for dump in dumps:
            again = self.plan(dump, *flags)
            for key in "step_seconds", "peak_bytes":
                found, want = again["summary"][key], whole["summary"][key]
                self.fault(
                    math.isclose(found, want, rel_tol=1e-9),
                    f"{os.path.basename(dump)}: {key} {found}, expected {want}",
                )
        # what fitted into a budget stays as it was
        whole = self.plan(
            model, *flags, "--memory-budget", "99%", "--dump", "overlap", "--dump-dir", self.folder
        )
        again = self.plan(*glob.glob(self.path("*overlap.ck")), *flags)
        for key in "exposed_seconds", "peak_bytes":
            found, want = again["summary"][key], whole["summary"][key]
            self.fault(
                math.isclose(found, want, rel_tol=1e-9),
                f"within a budget: {key} {found}, expected {want}",
            )


if __name__ == "__main__":
    sys.exit(run_parts(Check, ["chain", "wide", "percent", "dumps"]))
