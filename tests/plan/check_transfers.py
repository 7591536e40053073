#!/usr/bin/env python3
"""What transfers hide does not fall to nothing where one of them does not fit.

    check_transfers.py CKC

One large transfer, whose operand has to stay beside the peak, and small ones behind it.  At every
budget that has no room for the large one all of the small ones are hidden: as many seconds as with
room for all, less what the large one hides alone.  More bytes never hide less.
"""

import json
import os
import re
import subprocess
import sys
import tempfile

SMALL, STEP = 6, 16384
# Products of 64 x 64 that last longer than a message, as their start does
DEVICE = {
    "name": "links",
    "product_flops": 67e12,
    "vector_flops": 67e12,
    "bandwidth": 3.35e12,
    "launch_seconds": 5e-6,
    "link_bytes_per_second": 450e9,
    "link_latency_seconds": 3.4e-6,
}
HEAD = """graph @f {
	replicas 2 exactly
	props canon loss bwd upd fused
	input %x: f32[256,256]
	input %z: f32[64,64]
	param %w: f32[256,256]
	%y: f32[256,256] = matmul %x, %w
	%loss: f32[] output = reduce_sum %y {axes=[0,1], keepdims=0}
	%big: f32[256,256] = matmul %x, %x {ta=1} @backward
	%big.sum: f32[128,256] output = reduce_scatter %big {part=[256], group=1} @backward
	%u: f32[256,256] = matmul %x, %x @backward
	%v: f32[256,256] output = matmul %x, %u @backward
"""
EACH = """	%s{0}: f32[64,64] = matmul %z, %z @backward
	%s{0}.sum: f32[32,64] output = reduce_scatter %s{0} {{part=[64], group=1}} @backward
	%t{0}: f32[64,64] output = matmul %z, %z {{ta=1}} @backward
"""


def plan(ckc, folder, small, budget=None):
    graph, out, device = (os.path.join(folder, x) for x in ("g.ck", "p.json", "device.json"))
    with open(device, "w", encoding="utf-8") as sink:
        json.dump(DEVICE, sink)
    with open(graph, "w", encoding="utf-8") as sink:
        sink.write(HEAD + "".join(EACH.format(i) for i in range(small)) + "\tloss %loss\n}\n")
    command = [
        ckc,
        graph,
        "--optimizer",
        "none",
        "--plan-only",
        "--device",
        device,
        "--quiet",
        "--json",
        out,
    ]
    done = subprocess.run(
        [*command, *(["--memory-budget", f"{budget}B"] if budget else [])],
        capture_output=True,
        text=True,
    )
    if done.returncode:
        return done.stderr
    with open(out, encoding="utf-8") as source:
        return json.load(source)


def main():
    ckc, faults, found = sys.argv[1], [], []
    with tempfile.TemporaryDirectory() as folder:
        every, large = plan(ckc, folder, SMALL), plan(ckc, folder, 0)
        least = int(re.search(r"works: (\d+) B", plan(ckc, folder, SMALL, 1024))[1])
        top = every["summary"]["peak_bytes"]
        hidden, alone = every["comm"]["hidden_seconds"], large["comm"]["hidden_seconds"]
        for budget in [*range(least, top, STEP), top]:
            p = plan(ckc, folder, SMALL, budget)
            found.append(p["comm"]["hidden_seconds"])
            if p["summary"]["peak_bytes"] > budget:
                faults.append(f"{budget} B: peak {p['summary']['peak_bytes']} B")
    if not (0 < alone < hidden and top - least > 10 * STEP):
        faults.append(f"all hide {hidden} s, the large one {alone} s, {least} to {top} B")
    if any(abs(s - (hidden - alone)) > 1e-9 * hidden for s in found[:5]):
        faults.append(f"without the large one {found[:5]} s, expected {hidden - alone}")
    if found != sorted(found) or found[-1] != hidden:
        faults.append(f"by budget {found} s, expected rising to {hidden}")
    print(*faults, f"{len(faults)} faults", sep="\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
