"""Seconds: a step beside PyTorch's in alternation, ops beside what was predicted, budgets.

Model FLOPs utilisation is (6 N + 6 L C T) tokens / seconds / PEAK, N the parameters, L layers of C
columns, T tokens of a sequence: products and causal attention, forward and backward.
"""

import json
import os
import shutil
import statistics

from models import FULL, XL, timed_models
from work import HERE, STAND_INS, Skipped, Wrong, as_planned, ck, digest

PEAK = 989e12  # bf16 of an H100 and H200, dense
WARM, BLOCKS, STEPS = 5, 3, 20
LAYERS = {FULL.name: (12, 768, 12), XL.name: (48, 1600, 25), "small": (2, 64, 2)}
# name; flags of peer.py.  The likely best first: what comes last may be cut.
SETTINGS = (
    ("cuDNN, padded", ["--sdpa", "cudnn", "--pad"]),
    ("default", []),
    ("cuDNN", ["--sdpa", "cudnn"]),
    ("default, padded", ["--pad"]),
)


def tell(numbers):
    t, all_ = numbers["step_seconds"], numbers["blocks"]
    return f"{t * 1e3:.2f} ms (blocks {min(all_) * 1e3:.2f} to {max(all_) * 1e3:.2f}), {numbers['tokens_per_second']:.4g} tokens/s, MFU {100 * numbers['mfu']:.1f} %"


def judge(gpt, blocks):
    """What a step's seconds come to."""
    layers, width, _ = LAYERS[gpt.name]
    parameters = 12 * layers * width * width + (gpt.vocab + gpt.seq) * width
    seconds, tokens = statistics.median(blocks), gpt.batch * gpt.seq
    return {
        "step_seconds": seconds,
        "blocks": blocks,
        "tokens_per_second": tokens / seconds,
        "mfu": (6 * parameters + 6 * layers * width * gpt.seq) * tokens / seconds / PEAK,
    }


def steps_in_block(w, gpt):
    """Fewer where a step takes long."""
    return 2 if w.o.emulated else 7 if gpt is XL else STEPS


def steps(w, so, gpt, tag):
    """Rows of the log of a run: warm-up, then blocks of steps."""
    log = w.path(tag + ".log")
    w.must(
        w.tool("ckrun"),
        so,
        *w.feed(gpt),
        "--steps",
        WARM + BLOCKS * steps_in_block(w, gpt),
        "--lr",
        "1e-4",
        "--weight-decay",
        "0.01",
        "--quiet",
        "--log",
        log,
    )
    return ck.log_rows(log)


def blocks_of(rows):
    """Means of blocks; steps end in the order they began, so that a block's rows add up to its
    time."""
    seconds = [r["seconds"] for r in rows[WARM:]]
    n = len(seconds) // BLOCKS
    if not n or len(seconds) % BLOCKS:
        raise Wrong(f"{len(rows)} steps in the log: {WARM} and {BLOCKS} blocks were asked for")
    return [sum(seconds[i : i + n]) / n for i in range(0, len(seconds), n)]


def ours(w, gpt, numbers):
    so, plan = w.library(gpt)
    rows = steps(w, so, gpt, gpt.name)
    numbers.update(judge(gpt, blocks_of(rows)))
    numbers["losses"] = digest([r["loss"] for r in rows[:10]])
    numbers["peak_bytes"], planned = rows[-1]["peak_bytes"], plan["summary"]["peak_bytes"]
    numbers["planned_seconds"] = plan["summary"]["step_seconds"]
    as_planned(numbers["peak_bytes"], plan)
    return f"{tell(numbers)}, predicted {numbers['planned_seconds'] * 1e3:.2f} ms, peak {planned / 2**20:.0f} MiB, losses {numbers['losses']}"


def peer(w, gpt, flags, numbers, pace=None):
    """PyTorch's side, a process of its own; pace: warm-up, blocks, steps of each."""
    if w.o.peer_stand_in:
        program = os.path.join(STAND_INS, "peer.py")
    elif w.call(w.o.python, "-c", "import torch; assert torch.cuda.is_available()").returncode:
        raise Skipped(f"{w.o.python} has no torch that sees a GPU: give --python")
    else:
        program = os.path.join(HERE, "peer.py")
    layers, width, heads = LAYERS[gpt.name]
    warm, blocks, steps = pace or (WARM, BLOCKS, steps_in_block(w, gpt))
    done = w.must(
        w.o.python,
        program,
        "--layers",
        layers,
        "--hidden",
        width,
        "--heads",
        heads,
        "--vocab",
        gpt.vocab,
        "--batch",
        gpt.batch,
        "--seq",
        gpt.seq,
        "--tokens",
        w.tokens(gpt.vocab),
        "--warm",
        warm,
        "--blocks",
        blocks,
        "--steps",
        steps,
        *flags,
        TORCHINDUCTOR_CACHE_DIR=w.path("inductor"),
    )
    said = json.loads(done.stdout.splitlines()[-1])
    if "out_of_memory" in said:
        numbers.update(said)
        return f"PyTorch has too little memory: {said['out_of_memory']}"
    numbers.update(
        judge(gpt, said["step_seconds"]),
        **{k: said[k] for k in ("peak_bytes", "reserved_bytes", "torch", "cudnn")},
    )
    return f"{tell(numbers)}, peak {said['peak_bytes'] / 2**20:.0f} MiB, torch {said['torch']}" + (
        " (nothing was trained)" if w.o.peer_stand_in else ""
    )


def beside(found, gpt, numbers):
    """Our median of rounds over the best of each peer's setting."""
    us = [
        n["step_seconds"] for name, n in found.items() if name.startswith(f"{gpt.name}: ckc") and n
    ]
    peers = {k: n for k, n in found.items() if k.startswith(f"{gpt.name}: PyTorch")}
    them = {k: n["step_seconds"] for k, n in peers.items() if "step_seconds" in n}
    if us and not them and any("out_of_memory" in n for n in peers.values()):
        return "PyTorch has too little memory in each of its settings"
    if not us or not them:
        raise Skipped("one of the sides was not timed")
    best = min(them, key=them.get)
    numbers["of_best"] = them[best] / statistics.median(us)
    return (
        f"{numbers['of_best']:.3f} times as fast as the best setting ({best.split('PyTorch, ')[1]})"
    )


def profile(w, gpt, numbers):
    """Seconds by op beside those predicted; the profile is kept as a file for `ckc --device`."""
    so, _ = w.library(gpt)
    path = w.path(gpt.name + ".profile")
    w.must(w.tool("ckrun"), so, *w.feed(gpt), "--steps", 6, "--quiet", "--profile", path)
    shutil.copy(path, os.path.join(w.o.out, f"profile-{gpt.name}.json"))
    found = ck.plan(path)
    sums = {}
    for op in found["ops"]:
        row = sums.setdefault(
            f"{op['op']} {op['phase']}", {"n": 0, "seconds": 0, "planned": 0, "flops": 0}
        )
        for key in ("seconds", "planned", "flops"):
            row[key] += op.get(key, 0)
        row["n"] += 1
    if not sums:
        raise Wrong("the profile tells of no op")
    numbers["ops"] = sums
    top = sorted(sums.items(), key=lambda x: -x[1]["seconds"])[:8]
    return "; ".join(
        f"{name} x {r['n']}: {r['seconds'] * 1e3:.3g} ms, predicted {r['planned'] * 1e3:.3g}"
        + (f", {r['flops'] / r['seconds'] / 1e12:.0f} TFLOP/s" if name.startswith("matmul") else "")
        for name, r in top
    )


def less(w, gpt, which, numbers):
    """A step in less memory, which the part `build` has compiled."""
    so = w.path(f"{gpt.name}-{which}.so")
    if not os.path.exists(so):
        raise Skipped("not compiled")
    plan = ck.plan(so + ".json")
    rows = steps(w, so, gpt, f"{gpt.name}-{which}")
    numbers.update(judge(gpt, blocks_of(rows)), peak_bytes=rows[-1]["peak_bytes"])
    as_planned(numbers["peak_bytes"], plan)
    plan = plan["summary"]
    numbers["losses"] = digest([r["loss"] for r in rows[:10]])
    return f"{tell(numbers)}, predicted {plan['step_seconds'] * 1e3:.2f} ms, peak {plan['peak_bytes'] / 2**20:.0f} MiB, losses {numbers['losses']}"


def kept(found, name, function):
    """An item whose numbers later ones read."""

    def item(numbers):
        text = function(numbers)
        found[name] = numbers
        return text

    return name, item


def same_losses(found, gpt, numbers):
    """The first ten losses are the same bits in every run of ours."""
    seen = {n["losses"] for name, n in found.items() if name.startswith(gpt.name) and "losses" in n}
    numbers["losses"] = sorted(seen)
    if len(seen) != 1:
        raise Wrong(f"{len(seen)} different: {', '.join(sorted(seen))}")
    return seen.pop()


def one_model(w, gpt, found):
    """(urgent items, the rest): ours and the peer's settings in alternation."""

    def us(at):
        return kept(found, f"{gpt.name}: ckc, run {at}", lambda n: ours(w, gpt, n))

    def them(at):
        name, flags = SETTINGS[at]
        return kept(found, f"{gpt.name}: PyTorch, {name}", lambda n: peer(w, gpt, flags, n))

    verdict = (f"{gpt.name}: beside PyTorch", lambda n: beside(found, gpt, n))
    ops = (f"{gpt.name}: seconds by op", lambda n: profile(w, gpt, n))
    if gpt is XL:
        return [us(1), them(0), verdict, ops], []
    budgets = [
        kept(found, f"{gpt.name}: {b} of the bytes", lambda n, b=b: less(w, gpt, b, n))
        for b in ("half", "least")
    ]
    return [us(1), them(0), us(2), them(1), ops], [
        *budgets,
        them(2),
        us(3),
        them(3),
        verdict,
        (f"{gpt.name}: same losses in every run", lambda n: same_losses(found, gpt, n)),
    ]


def carry_out(w, rows):
    w.make_weights()
    found, parts = {}, []
    for gpt in timed_models(w.o):
        parts.append(one_model(w, gpt, found))
    rows.carry_out_all(
        [x for urgent, _ in parts for x in urgent] + [x for _, rest in parts for x in rest]
    )
