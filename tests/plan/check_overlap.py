#!/usr/bin/env python3
"""The outside replay sees every overlap of places, however small, and no other.

    check_overlap.py CKC

All ways that two boxes may lie, random sets of some, and a plan of ckc in which a tensor is moved;
each against a look at every unit.
"""

import copy
import itertools
import json
import os
import random
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, os.pardir, "tools")]
import gen_graphs  # noqa: E402
from planfiles import overlaps  # noqa: E402
from replay import Replay  # noqa: E402


def units(box):
    begin, end, low, size = box[:4]
    return set(itertools.product(range(begin, end), range(low, low + size)))


def any_shared(boxes):
    return any(units(a) & units(b) for a, b in itertools.combinations(boxes, 2))


def check_boxes(faults):
    lives = [(b, e) for b in range(4) for e in range(b + 1, 5)]
    places = [(low, size) for low in range(4) for size in range(1, 5 - low)]
    every = [life + place for life in lives for place in places]
    rnd = random.Random(5)
    some = [rnd.sample(every, 2 + k % 5) for k in range(4000)]
    for boxes in itertools.chain(itertools.combinations_with_replacement(every, 2), some):
        named = [box + (i,) for i, box in enumerate(boxes)]
        if bool(overlaps(named)) != any_shared(boxes):
            faults.append(f"{boxes}: seen {overlaps(named)}")


def check_moved(ckc, folder, faults):
    """A tensor of a placed plan at every other offset."""
    graph, out = os.path.join(folder, "graph.json"), os.path.join(folder, "plan.json")
    document = gen_graphs.chain(8, 3).json()
    for k, node in enumerate(document["nodes"]):
        node["cost_ram"] = 2 + k % 3
    with open(graph, "w", encoding="utf-8") as sink:
        json.dump(document, sink)
    subprocess.run(
        [ckc, "plan", graph, "--budget", "1", "--place", "--json", out],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    with open(out, encoding="utf-8") as source:
        plan = json.load(source)
    seen = 0
    for i, offset in itertools.product(range(len(plan["tensors"])), range(12)):
        moved = copy.deepcopy(plan)
        moved["tensors"][i]["offset"] = offset
        boxes = [(t["first"], t["last"] + 1, t["offset"], t["bytes"]) for t in moved["tensors"]]
        found = any("overlap" in fault for fault in Replay(moved).faults)
        if found != any_shared(boxes):
            faults.append(f"tensor {i} at {offset}: overlap {found}")
        seen += found
    if not seen:
        faults.append("nothing ever overlapped")


def main():
    faults = []
    check_boxes(faults)
    with tempfile.TemporaryDirectory() as folder:
        check_moved(sys.argv[1], folder, faults)
    for fault in faults[:20]:
        print("fault:", fault)
    print(f"{len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
