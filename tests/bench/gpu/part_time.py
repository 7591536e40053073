"""Seconds: a step beside PyTorch's in alternation, ops beside what was predicted, budgets.

Model FLOPs utilisation is (6 N + 6 L C T) tokens / seconds / PEAK, N the parameters, L layers of C columns, T tokens of a sequence: products and
causal attention, forward and backward.
"""
import json
import os
import shutil
import statistics

from part_build import FULL, XL, timed_models
from work import HERE, STAND_INS, Skipped, Wrong, ck, digest

PEAK = 989e12                                   # bf16 of an H100 and H200, dense
WARM, BLOCKS, STEPS, ROUNDS = 5, 3, 20, 2
LAYERS = {FULL.name: (12, 768, 12), XL.name: (48, 1600, 25), "small": (2, 64, 2)}
# name; flags of peer.py
SETTINGS = (("default", []), ("default, padded", ["--pad"]), ("cuDNN", ["--sdpa", "cudnn"]), ("cuDNN, padded", ["--sdpa", "cudnn", "--pad"]))


def tell(numbers):
    t, all_ = numbers["step_seconds"], numbers["blocks"]
    return f"{t * 1e3:.2f} ms (blocks {min(all_) * 1e3:.2f} to {max(all_) * 1e3:.2f}), {numbers['tokens_per_second']:.4g} tokens/s, MFU {100 * numbers['mfu']:.1f} %"


def judge(gpt, blocks):
    """What a step's seconds come to."""
    layers, width, _ = LAYERS[gpt.name]
    parameters = 12 * layers * width * width + gpt.vocab * width
    seconds, tokens = statistics.median(blocks), gpt.batch * gpt.seq
    return {"step_seconds": seconds, "blocks": blocks, "tokens_per_second": tokens / seconds,
            "mfu": (6 * parameters + 6 * layers * width * gpt.seq) * tokens / seconds / PEAK}


def steps(w, so, gpt, tag):
    """Rows of the log of a run: warm-up, then blocks of steps."""
    log = w.path(tag + ".log")
    w.must(w.tool("ckrun"), so, *w.feed(gpt), "--steps", WARM + BLOCKS * STEPS, "--lr", "1e-4", "--weight-decay", "0.01", "--quiet", "--log", log)
    return ck.log_rows(log)


def blocks_of(rows):
    """Means of blocks; steps end in the order they began, so that a block's rows add up to its time."""
    seconds = [r["seconds"] for r in rows[WARM:]]
    if len(seconds) != BLOCKS * STEPS:
        raise Wrong(f"{len(rows)} steps in the log, expected {WARM + BLOCKS * STEPS}")
    return [sum(seconds[i:i + STEPS]) / STEPS for i in range(0, len(seconds), STEPS)]


def ours(w, gpt, numbers):
    so, plan = w.library(gpt)
    rows = steps(w, so, gpt, gpt.name)
    numbers.update(judge(gpt, blocks_of(rows)))
    numbers["losses"] = digest([r["loss"] for r in rows[:10]])
    numbers["peak_bytes"], planned = rows[-1]["peak_bytes"], plan["summary"]["peak_bytes"]
    numbers["planned_seconds"] = plan["summary"]["step_seconds"]
    if numbers["peak_bytes"] != planned:
        raise Wrong(f"peak {numbers['peak_bytes']} B, planned {planned}")
    return f"{tell(numbers)}, predicted {numbers['planned_seconds'] * 1e3:.2f} ms, peak {planned / 2**20:.0f} MiB, losses {numbers['losses']}"


def peer(w, gpt, flags, numbers):
    if w.o.peer_stand_in:
        program = os.path.join(STAND_INS, "peer.py")
    elif w.call(w.o.python, "-c", "import torch; assert torch.cuda.is_available()").returncode:
        raise Skipped(f"{w.o.python} has no torch that sees a GPU: give --python")
    else:
        program = os.path.join(HERE, "peer.py")
    layers, width, heads = LAYERS[gpt.name]
    done = w.must(w.o.python, program, "--layers", layers, "--hidden", width, "--heads", heads, "--vocab", gpt.vocab, "--batch", gpt.batch, "--seq", gpt.seq,
                  "--tokens", w.tokens(gpt.vocab), "--warm", WARM, "--blocks", BLOCKS, "--steps", STEPS, *flags,
                  TORCHINDUCTOR_CACHE_DIR=w.path("inductor"))
    said = json.loads(done.stdout.splitlines()[-1])
    numbers.update(judge(gpt, said["step_seconds"]), **{k: said[k] for k in ("peak_bytes", "reserved_bytes", "torch", "cudnn")})
    return f"{tell(numbers)}, peak {said['peak_bytes'] / 2**20:.0f} MiB, torch {said['torch']}" + (" (nothing was trained)" if w.o.peer_stand_in else "")


def beside(found, gpt, numbers):
    """Our median of rounds over the best of each peer's setting."""
    us = [n["step_seconds"] for name, n in found.items() if name.startswith(f"{gpt.name}: ckc") and n]
    them = {name: n["step_seconds"] for name, n in found.items() if name.startswith(f"{gpt.name}: PyTorch") and n}
    if not us or not them:
        raise Skipped("one of the sides was not timed")
    best = min(them, key=them.get)
    numbers["of_best"] = them[best] / statistics.median(us)
    return f"{numbers['of_best']:.3f} times as fast as the best setting ({best.split('PyTorch, ')[1].split(', round')[0]})"


def profile(w, gpt, numbers):
    """Seconds by op beside those predicted; the profile is kept as a file for `ckc --device`."""
    so, _ = w.library(gpt)
    path = w.path(gpt.name + ".profile")
    w.must(w.tool("ckrun"), so, *w.feed(gpt), "--steps", 6, "--quiet", "--profile", path)
    shutil.copy(path, os.path.join(w.o.out, f"profile-{gpt.name}.json"))
    found = ck.plan(path)
    sums = {}
    for op in found["ops"]:
        row = sums.setdefault(f"{op['op']} {op['phase']}", {"n": 0, "seconds": 0, "planned": 0, "flops": 0})
        for key in ("seconds", "planned", "flops"):
            row[key] += op.get(key, 0)
        row["n"] += 1
    if not sums:
        raise Wrong("the profile tells of no op")
    numbers["ops"] = sums
    top = sorted(sums.items(), key=lambda x: -x[1]["seconds"])[:8]
    return "; ".join(f"{name} x {r['n']}: {r['seconds'] * 1e3:.3g} ms, predicted {r['planned'] * 1e3:.3g}"
                     + (f", {r['flops'] / r['seconds'] / 1e12:.0f} TFLOP/s" if name.startswith("matmul") else "") for name, r in top)


def less(w, gpt, which, numbers):
    """A step in less memory, which the part `build` has compiled."""
    so = w.path(f"{gpt.name}-{which}.so")
    if not os.path.exists(so):
        raise Skipped("not compiled")
    plan = ck.plan(so + ".json")["summary"]
    rows = steps(w, so, gpt, f"{gpt.name}-{which}")
    numbers.update(judge(gpt, blocks_of(rows)), peak_bytes=rows[-1]["peak_bytes"])
    if numbers["peak_bytes"] != plan["peak_bytes"]:
        raise Wrong(f"peak {numbers['peak_bytes']} B, planned {plan['peak_bytes']}")
    numbers["losses"] = digest([r["loss"] for r in rows[:10]])
    return f"{tell(numbers)}, predicted {plan['step_seconds'] * 1e3:.2f} ms, peak {plan['peak_bytes'] / 2**20:.0f} MiB, losses {numbers['losses']}"


def kept(found, name, function):
    """An item whose numbers later ones read."""
    def item(numbers):
        text = function(numbers)
        found[name] = numbers
        return text
    return name, item


def carry_out(w, rows):
    found, items = {}, []
    for gpt in timed_models(w.o):
        settings = SETTINGS if gpt is not XL else SETTINGS[1::2]
        for r in range(ROUNDS if gpt is not XL else 1):
            for name, flags in settings:
                items.append(kept(found, f"{gpt.name}: ckc, beside {name}, round {r + 1}", lambda n, g=gpt: ours(w, g, n)))
                items.append(kept(found, f"{gpt.name}: PyTorch, {name}, round {r + 1}", lambda n, g=gpt, f=flags: peer(w, g, f, n)))
        items.append((f"{gpt.name}: beside PyTorch", lambda n, g=gpt: beside(found, g, n)))
        items.append((f"{gpt.name}: seconds by op", lambda n, g=gpt: profile(w, g, n)))
        if gpt is not XL:
            items += [kept(found, f"{gpt.name}: {b} of the bytes", lambda n, g=gpt, b=b: less(w, g, b, n)) for b in ("half", "least")]
            items.append((f"{gpt.name}: same losses in less memory", lambda n, g=gpt: same_losses(found, g, n)))
    rows.carry_out_all(items)


def same_losses(found, gpt, numbers):
    """The first ten losses are the same bits in every run of ours."""
    seen = {n["losses"] for name, n in found.items() if name.startswith(gpt.name) and "losses" in n}
    numbers["losses"] = sorted(seen)
    if len(seen) != 1:
        raise Wrong(f"{len(seen)} different: {', '.join(sorted(seen))}")
    return seen.pop()
