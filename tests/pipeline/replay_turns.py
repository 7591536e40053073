#!/usr/bin/env python3
"""Runs the turns of planned pipelines over their memory, cell by cell.

    replay_turns.py CKC [MODEL.onnx FLAG...]

Each write stamps the cells of its tensor with the tensor's owner and the micro-batch; each read
must find that stamp, whatever other turns have run in between.  No write may reach beyond the
claimed arena.  Messages and turns are counted by formulas of their own.  Without a model, some
models of tests/models, also within budgets under which stages have two plans.  Exit status 0 if all
is right.

Under zb-h1 backward is two turns.  This script walks back from the messages itself: no weight turn
may have what a message reads, and no backward turn anything else, but for what writes the memory of
the former.
"""

import json
import os
import subprocess
import sys
import tempfile

TESTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
MODELS = os.path.join(TESTS, "models")
sys.path.insert(0, os.path.join(TESTS, "tools"))
from planfiles import schedule_seconds  # noqa: E402

CASES = [
    ("gpt2-dynamo-dyn", "--dim batch=2 --dim seq=12"),
    ("gpt2-dynamo-dyn", "--dim batch=2 --dim seq=12 --tp 2 --sp"),
    ("gpt2-dynamo-dyn", "--dim batch=4 --dim seq=16 --recompute full"),
    ("gpt2-dynamo-dyn", "--dim batch=4 --dim seq=16 --dtype bf16"),
    ("unet-dynamo", "--loss loss"),
]
PIPELINES = [(2, 1, 1), (2, 1, 5), (3, 1, 4), (4, 1, 9), (2, 2, 6), (3, 2, 3), (2, 3, 4)]
ZB = "zb-h1"
PIPELINES += [(2, ZB, 1), (2, ZB, 5), (3, ZB, 2), (3, ZB, 4), (4, ZB, 9)]
BUDGETS = [
    ("gpt2-dynamo-dyn", "--dim batch=8 --dim seq=32", (4, 1, 9)),
    ("gpt2-dynamo-dyn", "--dim batch=8 --dim seq=32 --tp 2 --sp", (3, 1, 7)),
    ("gpt2-dynamo-dyn", "--dim batch=4 --dim seq=16", (2, 2, 6)),
]
CELL = 64


def fail(text):
    print("FAIL", text)
    sys.exit(1)


def order_of_turns(stage, stages, micro):
    """1F1B, written down from the paper."""
    ahead = min(stages - stage - 1, micro)
    turns = [("forward", m) for m in range(ahead)]
    for m in range(micro - ahead):
        turns += [("forward", m + ahead), ("backward", m)]
    return turns + [("backward", m) for m in range(micro - ahead, micro)]


def zero_bubble_turns(rank, ranks, micro):
    """ZB-H1 (Qi et al. 2023): 1F1B; weight turns lag as many micro-batches as the rank's number."""
    turns, weights = [], 0
    for kind, m in order_of_turns(rank, ranks, micro):
        turns.append((kind, m))
        if kind == "backward" and m >= rank:
            turns.append(("weight", weights))
            weights += 1
    return turns + [("weight", m) for m in range(weights, micro)]


def in_flight(turns, begin, end):
    """Most micro-batches between the begin of one turn and the end of another."""
    most = at = 0
    for kind, _ in turns:
        at += kind == begin
        most = max(most, at)
        at -= kind == end
    return most


def order_of_rank(rank, ranks, chunks, micro):
    """Interleaved, written down from the paper: groups of `ranks` micro-batches go through the
    chunks in turn, forward from the first and backward from the last."""
    groups = range(0, micro, ranks)
    forward = [(c, g + i) for g in groups for c in range(chunks) for i in range(ranks)]
    backward = [(chunks - 1 - c, m) for c, m in forward]
    ahead = min(2 * (ranks - rank - 1) + (chunks - 1) * ranks, micro * chunks)
    turns = [("forward", *x) for x in forward[:ahead]]
    for f, b in zip(forward[ahead:], backward):
        turns += [("forward", *f), ("backward", *b)]
    turns += [("backward", *x) for x in backward[len(forward) - ahead :]]
    return turns + [("update", c, micro - 1) for c in range(chunks)]


def check_ranks(stages, ranks, micro, where):
    """Stage k is chunk k // ranks of rank k % ranks."""
    for r in range(ranks):
        turns = [
            (t["order"], t["kind"], c, t["micro_batch"])
            for c, stage in enumerate(stages[r::ranks])
            for t in stage["turns"]
        ]
        want = order_of_rank(r, ranks, len(stages) // ranks, micro)
        if [t[1:] for t in sorted(turns)] != want or {t[0] for t in turns} != set(range(len(want))):
            fail(f"{where}, rank {r}: turns {sorted(turns)}")


def steps_of_turns(schedule, two):
    """By kind: the instructions of a turn.  two: backward is two turns."""
    last = max(i for i, s in enumerate(schedule) if s["phase"] == "forward")
    update = min([i for i, s in enumerate(schedule) if s["phase"] == "update"] or [len(schedule)])
    if update <= last or any(s["phase"] != "update" for s in schedule[update:]):
        fail("turns are not one behind the other")
    back = [i for i, s in enumerate(schedule) if s["phase"] == "backward"]
    weight = max([last, *back]) + 1 if two else update
    if any(s["phase"] == "weight" for s in schedule[:weight]):
        fail("turns are not one behind the other")
    return {
        "forward": schedule[: last + 1],
        "backward": schedule[last + 1 : weight],
        "weight": schedule[weight:update],
        "update": schedule[update:],
    }


def check_weight_turns(stage, where):
    """What messages of backward depend on, and what writes the same memory, is in backward turns;
    all else of backward is in weight turns."""
    turns, tensors = steps_of_turns(stage["schedule"], True), stage["tensors"]
    steps = turns["backward"] + turns["weight"]
    writes = [[t for t in s["writes"] if t is not None and t >= 0] for s in steps]
    needed, memory, waits = set(), set(), [False] * len(steps)

    def resident(t):
        t = t if tensors[t]["alias_of"] is None else tensors[t]["alias_of"]
        return t if tensors[t]["resident"] and tensors[t]["kind"] != "workspace" else None

    while True:
        before = list(waits)
        for i in reversed(range(len(steps))):
            s = steps[i]
            here = {resident(t) for t in writes[i]} - {None}
            if s["op"] in ("send", "receive") or needed & set(writes[i]) or memory & here:
                waits[i] = True
                needed |= set(s["reads"])
                memory |= here
        if waits == before:
            break
    for i, s in enumerate(steps):
        late = i >= len(turns["backward"])
        if waits[i] == late and s["phase"] != "recompute" and not s["view"]:
            fail(f"{where}: {s['op']} of {s['onnx']} is in the wrong turn")
        if s["op"] in ("send", "receive") and late:
            fail(f"{where}: a message in a weight turn")
    return turns


class Stage:
    """The memory of a stage, and its plans by slot."""

    def __init__(self, stage):
        other = stage.get("second_plan")
        self.plan = [stage] * stage["slots"]
        for slot in other["slots"] if other else ():
            self.plan[slot] = other
        self.plans = [stage] + ([other] if other else [])
        self.cells, self.ends = {}, [0] * len(self.plans)
        self.steps = [steps_of_turns(p["schedule"], "weight_slots" in stage) for p in self.plans]
        # where the slots of each pool begin, and where the last one ends
        sizes = [[p["slot_bytes"] for p in self.plan]]
        sizes += [[bytes_] * n for n, bytes_ in pools_of(stage)[1:]]
        self.pools, at = [], 0
        for size in sizes:
            if len(size) > 1:
                self.pools.append([at + sum(size[:k]) for k in range(len(size) + 1)])
                at += sum(size)
        self.slots_end = at

    def plan_of(self, micro):
        return self.plan[micro % len(self.plan)]

    def place(self, t, micro):
        plan = self.plan_of(micro)
        x = plan["tensors"][t]
        if x["resident"] or x["offset"] is None:
            return None
        owner = t if x["alias_of"] is None else x["alias_of"]
        first, at = plan["tensors"][owner]["offset"], x["offset"]
        for k, begin in enumerate(self.pools):
            own = plan["slot_bytes"] if k == 0 and len(self.plan) > 1 else begin[1] - begin[0]
            if begin[0] <= first < begin[0] + own:
                at += begin[micro % (len(begin) - 1)] - begin[0]
        return owner, at, x["bytes"]

    def run(self, kind, micro, where):
        plan = self.plan_of(micro)
        which = next(i for i, p in enumerate(self.plans) if p is plan)
        for s in self.steps[which][kind]:
            for t in s["reads"]:
                p = self.place(t, micro)
                for c in range(p[1] // CELL, -(-(p[1] + p[2]) // CELL)) if p else ():
                    if self.cells.get(c) != (p[0], micro):
                        fail(
                            f"{where}: {s['op']} reads {plan['tensors'][t]['name']}, whose bytes "
                            f"hold {self.cells.get(c)}"
                        )
            for t in s["writes"]:
                p = self.place(t, micro) if t is not None and t >= 0 else None
                if not p:
                    continue
                if p[1] + p[2] > plan["summary"]["arena_bytes"]:
                    fail(f"{where}: {s['op']} writes beyond the arena")
                self.ends[which] = max(self.ends[which], p[1] + p[2])
                for c in range(p[1] // CELL, -(-(p[1] + p[2]) // CELL)):
                    self.cells[c] = (p[0], micro)


def check_1f1b(stage, number, stages, micro, where):
    turns = [(t["kind"], t["micro_batch"]) for t in stage["turns"]]
    if turns != order_of_turns(number, stages, micro) + [("update", micro - 1)]:
        fail(f"{where}: turns {turns}")
    if [t["order"] for t in stage["turns"]] != list(range(len(turns))):
        fail(f"{where}: order of turns")
    if stage["slots"] != min(stages - number, micro):
        fail(f"{where}: {stage['slots']} slots")


def pools_of(stage):
    """Slots and their bytes: from forward to backward, from forward to weight, from backward to
    weight."""
    pools = [(stage["slots"], stage["slot_bytes"])]
    if "weight_slots" in stage:
        pools += [(stage[f"{x}_slots"], stage[f"{x}_bytes"]) for x in ("through", "weight")]
    return pools


def owners_across(stage, end):
    """Places taken behind instruction `end`: by owner, its bytes."""
    span, tensors = {}, stage["tensors"]
    for i, t in enumerate(tensors):
        owner = i if t["alias_of"] is None else t["alias_of"]
        if not t["resident"] and t["first"] is not None:
            a, b = span.get(owner, (t["first"], t["last"]))
            span[owner] = min(a, t["first"]), max(b, t["last"])
    found = {o: tensors[o]["bytes"] for o, (a, b) in span.items() if a <= end < b}
    return found, span


def check_zero_bubble(stage, rank, ranks, micro, where):
    """The turns, the slots and the bytes of the paper: rank r (from 0) has P - r micro-batches up
    to backward, and r more up to their weight turns."""
    want = zero_bubble_turns(rank, ranks, micro)
    turns = [(t["kind"], t["micro_batch"]) for t in stage["turns"]]
    if turns != want + [("update", micro - 1)]:
        fail(f"{where}: turns {turns}")
    if [t["order"] for t in stage["turns"]] != list(range(len(turns))):
        fail(f"{where}: order of turns")
    slots = [stage[x] for x in ("slots", "through_slots", "weight_slots")]
    kinds = ("forward", "backward"), ("forward", "weight"), ("backward", "weight")
    if slots != [in_flight(want, *x) for x in kinds]:
        fail(f"{where}: slots {slots}")
    if micro >= ranks and slots != [ranks - rank, ranks, rank + 1]:
        fail(f"{where}: slots {slots} of {ranks} ranks")
    steps = check_weight_turns(stage, where)
    ends = [len(steps["forward"]) - 1]
    ends.append(ends[0] + len(steps["backward"]))
    (kept, span), (late, _) = owners_across(stage, ends[0]), owners_across(stage, ends[1])
    # M_B: what forward leaves to others; M_W: what backward leaves to weight turns
    m_b, m_w = sum(kept.values()), sum(late.values())
    both = sum(b for o, b in kept.items() if o in late)
    found = stage["slot_bytes"], stage["through_bytes"], stage["weight_bytes"]
    if found != (m_b - both, both, m_w - both):
        fail(f"{where}: bytes of slots {found}, expected M_B {m_b}, M_W {m_w}, both {both}")
    live = [0] * (len(stage["schedule"]) + 1)
    for o, (a, b) in span.items():
        live[a] += stage["tensors"][o]["bytes"]
        live[b + 1] -= stage["tensors"][o]["bytes"]
    one = most = 0
    for x in live:
        one += x
        most = max(most, one)
    if micro >= ranks:
        others = (ranks - rank - 1) * m_b + rank * m_w
        if stage["summary"]["live_bound_bytes"] != others + most:
            fail(f"{where}: live bytes, expected {others} + {most}")
    if stage["summary"]["saved_bytes"] != m_b:
        fail(f"{where}: saved bytes, expected {m_b}")


def check_slots_free(stage, where):
    """No turn finds its slot taken, in any pool."""
    kinds = ("forward", "backward"), ("forward", "weight"), ("backward", "weight")
    for (n, _), (begin, end) in zip(pools_of(stage), kinds):
        busy = {}
        for t in stage["turns"]:
            m = t["micro_batch"]
            if t["kind"] == begin and m % n in busy:
                fail(f"{where}, {begin} of {m}: slot {m % n} is not free")
            if t["kind"] == begin:
                busy[m % n] = m
            elif t["kind"] == end and busy.pop(m % n, None) != m:
                fail(f"{where}, {end} of {m}: slot {m % n} has another micro-batch")


def check_plan(plan, where):
    """Its peak; what outlives a micro-batch, by name."""
    s = plan["summary"]
    whole = [t for t in plan["tensors"] if t["resident"] and t["alias_of"] is None]
    resident = sum(t["bytes"] for t in whole)
    if s["peak_bytes"] != resident + s["arena_bytes"]:
        fail(f"{where}: peak {s['peak_bytes']}, found {resident} + {s['arena_bytes']}")
    if s["budget_bytes"] is not None and s["peak_bytes"] > s["budget_bytes"]:
        fail(f"{where}: peak {s['peak_bytes']} beyond {s['budget_bytes']}")
    return {t["name"]: t["bytes"] for t in whole}


def seconds_of_plan(plan, two):
    """Of a turn of each kind."""
    s, turn = plan["summary"], schedule_seconds(plan["schedule"], False)
    weight = 0
    computed = s["forward_seconds"] + s["backward_seconds"] + s["recompute_seconds"]
    if two:
        computed += s.get("weight_seconds", 0)
        weight = sum(x["seconds"] for x in steps_of_turns(plan["schedule"], True)["weight"])
        weight *= turn / computed
    forward = turn * s["forward_seconds"] / computed
    return {"forward": forward, "backward": turn - forward - weight, "weight": weight}


def seconds_of(stage, micro):
    """Of a turn of each kind of an average micro-batch."""
    memory, sums = Stage(stage), {"forward": 0, "backward": 0, "weight": 0}
    for m in range(micro):
        for kind, x in seconds_of_plan(memory.plan_of(m), "weight_slots" in stage).items():
            sums[kind] += x / micro
    return sums


def check_stage(stage, where):
    memory = Stage(stage)
    kept = [check_plan(p, where) for p in memory.plans]
    if kept.count(kept[0]) != len(kept):
        fail(f"{where}: two plans differ in what is resident")
    last = stage["turns"][-1]["micro_batch"]
    if len(memory.plans) > 1 and memory.plan_of(last) is not stage:
        fail(f"{where}: the update does not follow a micro-batch of the first plan")
    check_slots_free(stage, where)
    slots = stage["through_slots"] if "weight_slots" in stage else stage["slots"]
    for t in stage["turns"]:
        at = f"{where}, {t['kind']} of {t['micro_batch']}"
        if t["slot"] != t["micro_batch"] % slots:
            fail(f"{at}: slot {t['slot']}")
        memory.run(t["kind"], t["micro_batch"], at)
    for plan, end in zip(memory.plans, memory.ends):
        end, arena = max(end, memory.slots_end), plan["summary"]["arena_bytes"]
        if end != arena:
            fail(f"{where}: the arena has {arena} bytes, and {end} are used")


def last_end(stages, ranks, seconds):
    """When the last turn ends; seconds: by stage, of a turn of each kind."""
    over, clock, order = {}, [0] * ranks, [0] * ranks
    turns = [
        {
            t["order"]: (k, t["kind"], t["micro_batch"])
            for k in range(r, len(stages), ranks)
            for t in stages[k]["turns"]
            if t["kind"] != "update"
        }
        for r in range(ranks)
    ]
    while any(order[r] in turns[r] for r in range(ranks)):
        for r in range(ranks):
            while order[r] in turns[r]:
                k, kind, m = turns[r][order[r]]
                before = (kind, k + {"forward": -1, "backward": 1, "weight": len(stages)}[kind], m)
                if 0 <= before[1] < len(stages) and before not in over:
                    break
                clock[r] = max(clock[r], over.get(before, 0)) + seconds[k][kind]
                over[kind, k, m] = clock[r]
                order[r] += 1
    return max(clock)


def check_turn_seconds(plan, ranks, where):
    seconds, update = [], [0] * ranks
    for k, stage in enumerate(plan["stages"]):
        seconds.append(seconds_of(stage, plan["pipeline"]["micro_batches"]))
        turn = schedule_seconds(stage["schedule"], False)
        update[k % ranks] += schedule_seconds(stage["schedule"], True) - turn
    end = last_end(plan["stages"], ranks, seconds)
    near(plan["pipeline"]["step_seconds"], end + max(update), f"{where}: seconds of a step")
    for k, stage in enumerate(plan["stages"]):
        busy = sum(sum(x.values()) for x in seconds[k % ranks :: ranks])
        idle = 1 - plan["pipeline"]["micro_batches"] * busy / end
        near(stage["idle"], idle, f"{where}, stage {k}: idle")


def check_equal_stages(plan, ranks, micro, where):
    """Idle for (P - 1)(F + B - W) if all stages take equally long."""
    for f, b, w in ((1, 1, 1), (3, 3.25, 2.5), (1, 2, 1)):
        seconds = [{"forward": f, "backward": b, "weight": w}] * ranks
        idle = last_end(plan["stages"], ranks, seconds) - micro * (f + b + w)
        near(idle, (ranks - 1) * (f + b - w), f"{where}: idle time of equal stages")


def near(found, want, what):
    if abs(found - want) > 1e-8 * max(abs(want), 1e-3):
        fail(f"{what}: {found}, expected {want}")


def check_peak(plan, ranks, where):
    peaks = [max(p["summary"]["peak_bytes"] for p in Stage(s).plans) for s in plan["stages"]]
    most = max(sum(peaks[r::ranks]) for r in range(ranks))
    if plan["pipeline"]["peak_bytes"] != most:
        fail(f"{where}: peak {plan['pipeline']['peak_bytes']}, expected {most}")


def check_seconds(plan, where):
    turns, update = [], 0
    for stage in plan["stages"]:
        turns.append(sum(seconds_of(stage, plan["pipeline"]["micro_batches"]).values()))
        turn = schedule_seconds(stage["schedule"], False)
        update = max(update, schedule_seconds(stage["schedule"], True) - turn)
    want = sum(turns) + (plan["pipeline"]["micro_batches"] - 1) * max(turns) + update
    near(plan["pipeline"]["step_seconds"], want, f"{where}: seconds of a step")


def plan_of(ckc, model, flags, path):
    done = subprocess.run(
        [ckc, model, *flags, "--plan-only", "--quiet", "--json", path],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode:
        fail(f"{model} {' '.join(flags)}: {done.stdout}")
    with open(path) as f:
        return json.load(f)


def check(ckc, model, flags, ranks, chunks, micro, path):
    """chunks: stages of a rank, or ZB."""
    where = f"{os.path.basename(model)} {' '.join(flags)} {ranks}x{chunks}x{micro}"
    split = [f"--pp={ranks}", f"--microbatches={micro}"]
    if chunks != 1:
        split.append(f"--schedule={chunks if chunks == ZB else f'interleaved={chunks}'}")
    plan = plan_of(ckc, model, [*flags, *split], path)
    p, stages = plan["pipeline"], ranks * (1 if chunks == ZB else chunks)
    if len(plan["stages"]) != stages or p["micro_batches"] != micro or p["ranks"] != ranks:
        fail(f"{where}: {p}")
    for k, stage in enumerate(plan["stages"]):
        if chunks == 1:
            check_1f1b(stage, k, ranks, micro, f"{where}, stage {k}")
        if chunks == ZB:
            check_zero_bubble(stage, k, ranks, micro, f"{where}, stage {k}")
        check_stage(stage, f"{where}, stage {k}")
    check_peak(plan, ranks, where)
    if chunks == 1:
        check_seconds(plan, where)
    else:
        check_turn_seconds(plan, ranks, where)
    if chunks == ZB and micro >= 2 * ranks - 1:
        check_equal_stages(plan, ranks, micro, where)
    if chunks not in (1, ZB):
        check_ranks(plan["stages"], ranks, micro, where)
    two = sum("second_plan" in stage for stage in plan["stages"])
    print("ok  ", where, plan["pipeline"]["peak_bytes"], f"{two} with two plans" if two else "")
    return plan["pipeline"]["peak_bytes"], two


def check_budgets(ckc, path):
    """Budgets below what is taken without one, until a stage has two plans a few times."""
    found = 0
    for name, flags, (ranks, chunks, micro) in BUDGETS:
        model = os.path.join(MODELS, name + ".onnx")
        peak, _ = check(ckc, model, flags.split(), ranks, chunks, micro, path)
        for k in range(1, 9):
            budget = f"--memory-budget={int(peak * (1 - k / 40))}B"
            _, two = check(ckc, model, [*flags.split(), budget], ranks, chunks, micro, path)
            found += two
    if found < 8:
        fail(f"only {found} stages have two plans")


def main():
    ckc, *rest = sys.argv[1:]
    cases = [(rest[0], rest[1:])] if rest else []
    for name, flags in [] if rest else CASES:
        cases.append((os.path.join(MODELS, name + ".onnx"), flags.split()))
    with tempfile.TemporaryDirectory() as work:
        for model, flags in cases:
            for ranks, chunks, micro in PIPELINES:
                path = os.path.join(work, "plan.json")
                check(ckc, model, flags, ranks, chunks, micro, path)
        if not rest:
            check_budgets(ckc, os.path.join(work, "plan.json"))


if __name__ == "__main__":
    main()
