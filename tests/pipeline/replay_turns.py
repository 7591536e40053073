#!/usr/bin/env python3
"""Runs the turns of planned pipelines over their memory, cell by cell.

    replay_turns.py CKC [MODEL.onnx FLAG...]

Each write stamps the cells of its tensor with the tensor's owner and the micro-batch; each read
must find that stamp, whatever other turns have run in between.  No write may reach beyond the
claimed arena.  Messages and turns are counted by formulas of their own.  Without a model, some
models of tests/models, also within budgets under which stages have two plans.  Exit status 0 if all
is right.
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


def steps_of_turns(schedule):
    """By kind: the instructions of a turn."""
    last = max(i for i, s in enumerate(schedule) if s["phase"] == "forward")
    update = min([i for i, s in enumerate(schedule) if s["phase"] == "update"] or [len(schedule)])
    if update <= last or any(s["phase"] != "update" for s in schedule[update:]):
        fail("turns are not one behind the other")
    return {
        "forward": schedule[: last + 1],
        "backward": schedule[last + 1 : update],
        "update": schedule[update:],
    }


class Stage:
    """The memory of a stage, and its plans by slot."""

    def __init__(self, stage):
        other = stage.get("second_plan")
        self.plan = [stage] * stage["slots"]
        for slot in other["slots"] if other else ():
            self.plan[slot] = other
        self.plans = [stage] + ([other] if other else [])
        self.at = [sum(p["slot_bytes"] for p in self.plan[:k]) for k in range(stage["slots"] + 1)]
        self.cells, self.ends = {}, [0] * len(self.plans)
        self.steps = [steps_of_turns(p["schedule"]) for p in self.plans]

    def place(self, t, slot):
        plan = self.plan[slot]
        x = plan["tensors"][t]
        if x["resident"] or x["offset"] is None:
            return None
        owner = t if x["alias_of"] is None else x["alias_of"]
        first = plan["tensors"][owner]["offset"]
        saved = len(self.plan) > 1 and first < plan["slot_bytes"]
        at = x["offset"] + (self.at[slot] if saved else 0)
        return owner, at, x["bytes"]

    def run(self, kind, micro, slot, where):
        plan = self.plan[slot]
        which = next(i for i, p in enumerate(self.plans) if p is plan)
        for s in self.steps[which][kind]:
            for t in s["reads"]:
                p = self.place(t, slot)
                for c in range(p[1] // CELL, -(-(p[1] + p[2]) // CELL)) if p else ():
                    if self.cells.get(c) != (p[0], micro):
                        fail(
                            f"{where}: {s['op']} reads {plan['tensors'][t]['name']}, whose bytes "
                            f"hold {self.cells.get(c)}"
                        )
            for t in s["writes"]:
                p = self.place(t, slot) if t is not None and t >= 0 else None
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


def seconds_of(stage, micro):
    """Of a turn of each kind of an average micro-batch."""
    memory, sums = Stage(stage), {"forward": 0, "backward": 0}
    for m in range(micro):
        plan = memory.plan[m % stage["slots"]]
        s, turn = plan["summary"], schedule_seconds(plan["schedule"], False)
        computed = s["forward_seconds"] + s["backward_seconds"] + s["recompute_seconds"]
        sums["forward"] += turn * s["forward_seconds"] / computed / micro
        sums["backward"] += turn * (1 - s["forward_seconds"] / computed) / micro
    return sums


def check_stage(stage, where):
    memory, busy = Stage(stage), {}
    kept = [check_plan(p, where) for p in memory.plans]
    if kept.count(kept[0]) != len(kept):
        fail(f"{where}: two plans differ in what is resident")
    if len(memory.plans) > 1 and memory.plan[stage["turns"][-1]["slot"]] is not stage:
        fail(f"{where}: the update does not follow a micro-batch of the first plan")
    for t in stage["turns"]:
        at = f"{where}, {t['kind']} of {t['micro_batch']}"
        if t["kind"] == "forward":
            if t["slot"] in busy:
                fail(f"{at}: slot {t['slot']} is not free")
            busy[t["slot"]] = t["micro_batch"]
        elif t["kind"] == "backward" and busy.pop(t["slot"], None) != t["micro_batch"]:
            fail(f"{at}: slot {t['slot']} has another micro-batch")
        memory.run(t["kind"], t["micro_batch"], t["slot"], at)
    for plan, end in zip(memory.plans, memory.ends):
        end = max(end, memory.at[-1] if stage["slots"] > 1 else 0)
        arena = plan["summary"]["arena_bytes"]
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
                before = (kind, k + (1 if kind == "backward" else -1), m)
                if 0 <= before[1] < len(stages) and before not in over:
                    break
                clock[r] = max(clock[r], over.get(before, 0)) + seconds[k][kind]
                over[kind, k, m] = clock[r]
                order[r] += 1
    return max(clock)


def check_interleaved_seconds(plan, ranks, where):
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
    where = f"{os.path.basename(model)} {' '.join(flags)} {ranks}x{chunks}x{micro}"
    split = [f"--pp={ranks}", f"--microbatches={micro}"]
    split += [f"--schedule=interleaved={chunks}"] if chunks > 1 else []
    plan = plan_of(ckc, model, [*flags, *split], path)
    p = plan["pipeline"]
    if len(plan["stages"]) != ranks * chunks or p["micro_batches"] != micro or p["ranks"] != ranks:
        fail(f"{where}: {p}")
    for k, stage in enumerate(plan["stages"]):
        if chunks == 1:
            check_1f1b(stage, k, ranks, micro, f"{where}, stage {k}")
        check_stage(stage, f"{where}, stage {k}")
    check_peak(plan, ranks, where)
    if chunks == 1:
        check_seconds(plan, where)
    else:
        check_ranks(plan["stages"], ranks, micro, where)
        check_interleaved_seconds(plan, ranks, where)
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
