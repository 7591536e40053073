#!/usr/bin/env python3
"""What plans with --halves claim, beside closed formulas.

    check_halves.py CKC GPT [chain] [model]

chain: of equal layers on two ranks, each with two transfers of x seconds and products of y, a
layer more costs 2 x + y, and with halves max(2 x, y), where nothing else takes time.  model: of
layers as wide as those of a 22B model on eight ranks (--tp 8 --sp), three quarters of the seconds
of transfers in forward are hidden, and --halves auto takes what exposes less.
"""

import json
import math
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, os.pardir, "tools"))
from replay import Replay  # noqa: E402

BATCH, ROWS, WIDTH = 4, 8, 128  # weights are larger than activations
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
            free[link] = max(clock, free.get(link, 0.0)) + s["seconds"]
            due[end] = max(due.get(end, 0.0), free[link])
            sent += s["seconds"]
        else:
            clock += s["seconds"]
        shown += max(0.0, due.get(s["id"], 0.0) - clock)
        clock = max(clock, due.get(s["id"], 0.0))
    return clock, sent, shown


class Check:
    def __init__(self, ckc, gpt, folder):
        self.ckc, self.gpt, self.folder, self.faults = ckc, gpt, folder, []

    def fault(self, ok, text):
        if not ok:
            self.faults.append(text)

    def path(self, name):
        return os.path.join(self.folder, name)

    def plan(self, model, *flags):
        """The plan, which replays, and what ckc says."""
        command = [self.ckc, model, "--plan-only", "--json", self.path("p.json"), *map(str, flags)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"{flags}: {done.stderr}")
        with open(self.path("p.json"), encoding="utf-8") as source:
            plan = json.load(source)
        faults = Replay(plan).faults
        self.fault(not faults, f"{flags}: {faults[:2]}")
        return plan, done.stderr

    def layer(self, halves, product):
        """Seconds that one layer more takes in forward."""
        clocks = []
        flops = 2 * 2 * BATCH * ROWS * WIDTH * WIDTH / 2  # of a layer, on each of two ranks
        with open(self.path("d.json"), "w", encoding="utf-8") as f:
            json.dump({**DEVICE, "product_flops": flops / product}, f)
        for layers in 8, 16:
            with open(self.path("chain.ck"), "w", encoding="utf-8") as f:
                f.write(chain(layers))
            plan, _ = self.plan(
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

    def model(self):
        model = self.path("g.onnx")
        sizes = ["--layers", 24, "--hidden", 6144, "--heads", 64, "--seq", 2048, "--batch", 4]
        command = [self.gpt, *map(str, sizes), "-o", model]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        flags = ["--device", "H100", "--target", "cuda", "--dtype", "bf16", "--tp", 8, "--sp"]
        flags += ["--dp", 8]
        off, _ = self.plan(model, *flags)
        on, _ = self.plan(model, *flags, "--halves", "on")
        _, sent, shown = forward(off)
        self.fault(shown > 0.9 * sent, f"without halves {shown} of {sent} s show")
        _, sent, shown = forward(on)
        # transfers take longer than what computes: no order hides more than 89 %
        self.fault(shown < 0.25 * sent, f"with halves {shown} of {sent} s show")
        auto, said = self.plan(model, *flags, "--halves", "auto")
        seconds = [p["summary"]["exposed_seconds"] for p in (off, on, auto)]
        self.fault(
            seconds[1] < seconds[0] and math.isclose(seconds[2], seconds[1], rel_tol=1e-9),
            f"exposed seconds off, on, auto: {seconds}",
        )
        found = re.search(r"--halves auto takes (\w+); on: (\S+) s a step, off: (\S+) s", said)
        self.fault(found and found[1] == "on", f"auto said {said}")


def main():
    parts = sys.argv[3:] or ["chain", "model"]
    with tempfile.TemporaryDirectory() as folder:
        check = Check(sys.argv[1], sys.argv[2], folder)
        for part in parts:
            getattr(check, part)()
    print(*check.faults, f"{len(check.faults)} faults", sep="\n")
    return 1 if check.faults else 0


if __name__ == "__main__":
    sys.exit(main())
