#!/usr/bin/env python3
"""The fastest configuration (--auto), beside plans of all configurations.

    auto.py CKC CKRUN [brute=MODEL] [lines=MODEL] [layers=MODEL] [monotone=N] [refusals] [paper]
            [memory] [--gpt=GPT]

brute: every configuration of eight devices, listed here, is planned by a process of its own, and
the seconds of its step are computed from its instructions.  The choice is the fastest of them;
those that --auto planned have these seconds, those that it calls slower are slower than the ten
runners-up, those that it refuses are refused.  lines: what it prints is typed: each line compiles,
its plan fits, and the library trains on as many virtual ranks.  layers: seconds and bytes that
are predicted from models with fewer layers are within 3 % of those of all layers' plans (6 % for
pipelines within a budget), and the choice within 1 % of the best; GPT writes the models
(samples/gpt).  monotone:
under N random devices more of them, more memory or faster links never make the choice slower.
paper: predicted seconds of Korthikanti et al.'s eight rows (MLSys 2023, table 5) have the order of
the published ones, and full recomputation takes as many percent more.  memory: no process takes
more than a third of a gigabyte for 22B parameters, so that two of them and ckc take less than one.
"""

import itertools
import json
import os
import random
import re
import resource
import shlex
import sys

import ck

sys.path.insert(0, ck.TOOLS)
sys.path.insert(0, os.path.join(ck.TOOLS, "..", "..", "samples", "paper"))
import paper  # noqa: E402
from planfiles import schedule_seconds  # noqa: E402

PLAN = os.path.join(ck.MODELS, "plan")
# name: file, options of all calls, samples of a step, inputs of ckrun
MODELS = {
    "gpt": ("gpt2-dynamo-dyn", ["--dim", "seq=12"], 8),
    "llama": ("llama-ts17-dyn", ["--dim", "seq=12"], 8),
    "vit": ("plan/vit-ts17-dyn", [], 8),
    "unet": ("unet-dynamo", [], 16),
    "mlp": ("mlp-mse", [], 24),
    "stages": ("mlp-mse", [], 8),
    "network": ("mlp-mse", [], 12),
    "halves": ("gpt2-dynamo-dyn", ["--dim", "seq=12"], 4),
    "moe": ("qwen2-moe-dyn", [], 4),
}
DEVICES = {"moe": 4, "halves": 4}  # of brute; 8, if not here
NODE = {"network": 2, "halves": 2}  # ranks, if the device is to have a slow network between nodes
EXPERTS = {"moe": 6}
CASES = {  # of brute: options of --auto
    "gpt": [[]],
    "llama": [["--device", "A100-80GB"]],
    "vit": [["--device", "H100"]],
    "unet": [[]],
    "mlp": [
        [],
        ["--memory-budget", "300KiB"],
        ["--zero", "1"],
        ["--tp", "2", "--sp"],
        ["--pp", "2"],
    ],
    "stages": [
        ["--pp", "2", "--schedule", "interleaved=2"],
        ["--pp", "2", "--schedule", "zb-h1"],
    ],
    "network": [["--dtype", "bf16"], ["--dtype", "bf16", "--zero", "3"], []],
    "halves": [["--dtype", "bf16", "--tp", "1"], ["--dtype", "bf16", "--dp", "1"]],
    "moe": [["--halves", "off"], ["--halves", "off", "--ep", "2"]],
}
LAYERS = {  # of layers: options of GPT, options of --auto for each search
    "gpt": (["--layers", 8, "--hidden", 64], [[], ["--memory-budget", "5MB"]]),
    "llama": (
        ["--like", "llama", "--layers", 7, "--hidden", 64, "--kv-heads", 2],
        [[], ["--memory-budget", "4MB"]],
    ),
    "untied": (["--layers", 12, "--hidden", 48, "--untied"], [[]]),
    # two slots, and two layers that fill none
    "deep": (
        ["--layers", 26, "--hidden", 48, "--untied"],
        [["--tp", "1", "--pp", "1", "--memory-budget", "7500KB"]],
    ),
}
SIZES = ["--heads", 4, "--seq", 64, "--vocab", 200, "--batch", 1]
KEPT = "--device", "--target", "--dtype", "--schedule"  # options of single plans, too
SHOWN = 11


def divisors(n, most=None):
    return [d for d in range(1, (most or n) + 1) if n % d == 0]


def is_smooth(n):
    for f in 2, 3, 5:
        while n % f == 0:
            n //= f
    return n == 1


def step_seconds(plan, accum):
    """Of all micro-batches."""
    return sum(schedule_seconds(plan["schedule"], i == accum - 1) for i in range(accum))


def turn_seconds(stage, micro):
    """Of a micro-batch, on average of those with the first and the second plan."""
    other = stage.get("second_plan", dict(stage, slots=[]))
    first, second = (step_seconds(s, 2) - step_seconds(s, 1) for s in (stage, other))
    share = sum(m % stage["slots"] in other["slots"] for m in range(micro)) / micro
    return first + share * (second - first)


def pipeline_seconds(stages, micro):
    """Of a step: sum T + (N - 1) max T, and the longest update."""
    turns = [turn_seconds(s, micro) for s in stages]
    update = max(2 * step_seconds(s, 1) - step_seconds(s, 2) for s in stages)
    return sum(turns) + (micro - 1) * max(turns) + update


def split_turns(stage, micro):
    """Seconds of a stage's forward, backward and weight turns: the turns' seconds by what their
    instructions compute."""
    turn = step_seconds(stage, 2) - step_seconds(stage, 1)
    steps = [s for s in stage["schedule"] if s["phase"] != "update"]
    last = max(i for i, s in enumerate(steps) if s["phase"] in ("forward", "backward"))
    weight = sum(s["seconds"] for s in steps[last + 1 :])
    forward = sum(s["seconds"] for s in steps if s["phase"] == "forward")
    one = turn / sum(s["seconds"] for s in steps)
    return {"forward": one * forward, "weight": one * weight}, turn


def scheduled_seconds(plan, micro):
    """Of a step: each rank runs its turns in their order, as soon as what they receive is there."""
    stages, ranks = plan["stages"], plan["pipeline"]["ranks"]
    took, over, clock = [], {}, [0.0] * ranks
    for stage in stages:
        parts, turn = split_turns(stage, micro)
        if not any(t["kind"] == "weight" for t in stage["turns"]):
            parts["weight"] = 0
        took.append(dict(parts, backward=turn - sum(parts.values())))
    todo = [
        sorted(
            (t["order"], t["kind"], k, t["micro_batch"]) for k in own for t in stages[k]["turns"]
        )
        for own in (range(r, len(stages), ranks) for r in range(ranks))
    ]
    while any(todo):
        for rank, turns in enumerate(todo):
            while turns:
                _, kind, k, m = turns[0]
                before = (kind, k + {"forward": -1, "backward": 1}.get(kind, 0), m)
                if kind in ("forward", "backward") and 0 <= before[1] < len(stages):
                    if before not in over:
                        break
                    clock[rank] = max(clock[rank], over[before])
                clock[rank] += took[k].get(kind, 0)
                over[kind, k, m] = clock[rank]
                turns.pop(0)
    update = [2 * step_seconds(s, 1) - step_seconds(s, 2) for s in stages]
    return max(clock) + max(sum(update[r::ranks]) for r in range(ranks))


def measure(plan, micro):
    if "stages" not in plan:
        return step_seconds(plan, micro)
    if plan["pipeline"]["schedule"] != "1f1b":
        return scheduled_seconds(plan, micro)
    return pipeline_seconds(plan["stages"], micro)


def computation(plan, accum):
    """Seconds of all micro-batches in which ops compute, recomputation included."""
    sums = {True: 0.0, False: 0.0}
    for s in plan["schedule"]:
        sums[s["phase"] == "update"] += 0 if s.get("sent_bytes") else s["seconds"]
    return accum * sums[False] + sums[True]


def summary(plan):
    """Of a pipeline: of the stage that needs most; bytes are those of a rank."""
    if "stages" not in plan:
        return plan["summary"]
    of, ranks = [s["summary"] for s in plan["stages"]], plan["pipeline"]["ranks"]
    found = {k: max(s[k] or 0 for s in of) for k in ("overhead", "budget_bytes")}
    peaks = [s["peak_bytes"] for s in of]
    return dict(found, peak_bytes=max(sum(peaks[r::ranks]) for r in range(ranks)))


class Test(ck.Bench):
    def auto(self, name, devices, *more):
        """The JSON of a search, and what was printed."""
        file, flags, samples = MODELS[name]
        out = self.path("auto.json")
        if os.path.exists(out):
            os.remove(out)
        done = self.ckc(
            os.path.join(ck.MODELS, file) + ".onnx",
            *flags,
            *("--auto", "--devices", devices, "--global-batch", samples, "--json", out, *more),
            timeout=1200,
        )
        if not self.must(done, f"{name} {more}"):
            return None, done
        with open(out, encoding="utf-8") as f:
            return json.load(f), done

    def configurations(self, devices, samples, fixed, given, experts=0):
        """All, as options; given: options that are kept."""

        def value(option):
            return int(given[given.index(option) + 1]) if option in given else None

        for tp, dp, pp in itertools.product(range(1, devices + 1), repeat=3):
            if tp * dp * pp > devices or samples % dp or not is_smooth(tp) or not is_smooth(pp):
                continue
            given_sizes = value("--tp"), value("--dp"), value("--pp")
            if any(g not in (n, None) for g, n in zip(given_sizes, (tp, dp, pp))):
                continue
            if "--ep" in given and pp > 1:
                continue
            stages = [0] if dp == 1 else range(2 if pp > 1 else 4)
            if value("--zero") is not None:
                stages = [value("--zero")] if value("--zero") in stages and dp > 1 else []
            for batch in divisors(samples // dp):
                micro = samples // dp // batch
                few = micro < pp and "--pp" not in given
                uneven = "interleaved=2" in given and micro % pp
                if (fixed and batch != fixed) or few or uneven:
                    continue
                both = tp > 1 and batch % 2 == 0 and pp == 1 and "--halves" not in given
                shares = [e for e in divisors(dp) if pp == 1 and e > 1 and experts % e == 0]
                shares = [value("--ep")] if "--ep" in given else [1, *(shares if experts else [])]
                shares = [e for e in shares if dp % e == 0]
                for sp in [False] if tp == 1 else [True] if "--sp" in given else [False, True]:
                    for halves in [False, True] if both else [False]:
                        for zero in stages:
                            groups = [g for g in divisors(dp) if 1 < g < dp] if zero else []
                            for group, ep in itertools.product([0, *groups], shares):
                                if ep == 1 or not halves:
                                    yield tp, sp, halves, dp, zero, group, batch, pp, ep

    def words(self, x, samples, fixed):
        tp, sp, halves, dp, zero, group, batch, pp, ep = x
        accum = "--microbatches" if pp > 1 else "--grad-accum"
        return [
            *([] if fixed else ["--dim", f"batch={batch}"]),
            *([accum, samples // dp // batch] if samples > dp * batch or pp > 1 else []),
            *(["--pp", pp] if pp > 1 else []),
            *(["--tp", tp] if tp > 1 else []),
            *(["--sp"] if sp else []),
            *(["--halves", "on"] if halves else []),
            *(["--dp", dp] if dp > 1 else ["--dp", "off"] if tp > 1 else []),
            *(["--ep", ep] if ep > 1 else []),
            *(["--zero", zero] if zero else []),
            *(["--zero-group", group] if group else []),
        ]

    def planned(self, name, words, accum, *more):
        """Seconds of a step, and the plan's summary; None if it is refused."""
        file, flags, _ = MODELS[name]
        out = self.path("one.json")
        model = os.path.join(ck.MODELS, file) + ".onnx"
        done = self.ckc(model, "--plan-only", *flags, *words, *more, "--json", out, "--quiet")
        if done.returncode:
            return None, done
        with open(out, encoding="utf-8") as f:
            plan = json.load(f)
        found = dict(summary(plan))
        if "stages" not in plan:
            found["computation"] = computation(plan, accum)
        return measure(plan, accum), found

    def brute(self, name):
        for more in CASES[name]:
            self.compare(name, more)

    def compare(self, name, more):
        what, samples = f"{name} {more}", MODELS[name][2]
        if name in NODE:
            profile = self.profile(name)
            slow = {"node_ranks": NODE[name], "net_bytes_per_second": 1e8}
            device = self.write("slow.json", dict(profile, **slow))
            more = [*more, "--device", device, "--target", "cuda"]
        fixed = 2 if name == "unet" else 0
        devices, experts = DEVICES.get(name, 8), EXPERTS.get(name, 0)
        found, _ = self.auto(name, devices, *more)
        if not found:
            return
        budget = ["--memory-budget", f"{found['budget_bytes']}B"] if found["budget_bytes"] else []
        at = [i for i, x in enumerate(more) if x in KEPT]
        kept = [x for i in at for x in more[i : i + 2]]
        rows = {r["options"]: r for r in found["candidates"] if not r["offload"]}
        seconds = {}
        for x in self.configurations(devices, samples, fixed, more, experts):
            words = [str(w) for w in self.words(x, samples, fixed)]
            text = " ".join(words) or "(no option)"
            if not self.check(text in rows, f"{what}: {text} is no candidate"):
                continue
            sec, plan = self.planned(name, words, samples // x[3] // x[6], *kept, *budget)
            if sec is not None:
                seconds[text] = sec
            row = rows.pop(text)
            self.check(
                (row["state"] == "refused") == (sec is None) or row["state"] == "slower",
                f"{what}: {text}: {row}, by itself {sec}",
            )
            if row["state"] == "planned" and sec is not None:
                self.check(
                    abs(row["seconds"] - sec) <= 1e-9 * sec,
                    f"{what}: {text}: {row['seconds']} s, by itself {sec}",
                )
                self.check(
                    row["peak_bytes"] == plan["peak_bytes"],
                    f"{what}: {text}: {row['peak_bytes']} B",
                )
                parts = ("compute_seconds", "recompute_seconds", "idle_seconds")
                whole = sum(row[k] for k in parts)
                self.check(
                    abs(whole + row["exposed_communication_seconds"] - sec) <= 1e-6 * sec
                    or row["offload"],
                    f"{what}: {text}: parts of a step, {row}",
                )
        self.check(not rows, f"{what}: candidates that are none: {list(rows)[:3]}")
        self.typed(what, found)
        self.judge(what, found, seconds)

    def typed(self, what, found):
        """The line has the plan that the search found."""
        best = found["candidates"][found["best"]]
        words = shlex.split(found["compile"])[1:]
        out = self.path("typed.json")
        at = words.index("-o")
        done = self.ckc(*words[:at], *words[at + 2 :], "--plan-only", "--json", out, "--quiet")
        if not self.must(done, f"{what}: {words}"):
            return
        with open(out, encoding="utf-8") as f:
            plan = json.load(f)
        sec = measure(plan, best["grad_accum"])
        self.check(
            abs(sec - best["seconds"]) <= 1e-9 * sec
            and (summary(plan)["budget_bytes"] or None) == found["budget_bytes"],
            f"{what}: {found['compile']}: {sec} s, budget {summary(plan)['budget_bytes']}, "
            f"found {best}",
        )

    def judge(self, what, found, seconds):
        """The choice, and that none of those left out is among the first."""
        rows = found["candidates"]
        best, order = rows[found["best"]], sorted(seconds.values())
        self.check(
            best["seconds"] <= order[0] * (1 + 1e-6),
            f"{what}: {best['options']} takes {best['seconds']} s, the best {order[0]}",
        )
        last = sorted(r["seconds"] for r in rows if r["state"] == "planned")[:SHOWN][-1]
        for row in rows:
            if row["state"] == "slower" and row["options"] in seconds:
                self.check(
                    seconds[row["options"]] >= last * 0.99,
                    f"{what}: {row['options']} is left out, but takes "
                    f"{seconds[row['options']]} s, the last one shown {last}",
                )
            if row["options"] in seconds:
                self.check(
                    row["bound_seconds"] <= seconds[row["options"]] * (1 + 1e-6),
                    f"{what}: {row['options']}: bound {row['bound_seconds']} s, takes "
                    f"{seconds[row['options']]}",
                )
        print(
            f"{what}: {len(rows)} configurations, {len(seconds)} can be planned; best {best['options']}"
        )

    def layers(self, name):
        options, searches = LAYERS[name]
        file = self.path(name)
        made = self.run([self.gpt_path, *options, *SIZES, "-o", file + ".onnx"])
        if not self.must(made, f"gpt {options}"):
            return
        MODELS[file] = (file, ["--device", "A100-80GB"], 4)
        for more in searches:
            self.predicted(file, more)

    def predicted(self, name, more):
        """What is predicted, beside plans of all layers."""
        what = f"{os.path.basename(name)} {more}"
        found, done = self.auto(name, 4, *more)
        if not found:
            return
        rows = {r["options"]: r for r in found["candidates"] if not r["offload"]}
        budget = ["--memory-budget", f"{found['budget_bytes']}B"]
        best, close = float("inf"), 0
        for x in self.configurations(4, 4, 1, more):
            text = " ".join(str(w) for w in self.words(x, 4, 1)) or "(no option)"
            sec, plan = self.planned(name, self.words(x, 4, 1), 4 // x[3], *budget)
            row = rows[text]
            if sec is None:
                self.check(row["state"] != "planned", f"{what}: {text}: {row}")
                continue
            best = min(best, sec)
            self.check(
                row["bound_seconds"] <= sec * (1 + 1e-6),
                f"{what}: {text}: bound {row['bound_seconds']} s, by itself {sec}",
            )
            self.check(
                row["state"] != "planned" or abs(row["seconds"] - sec) <= 1e-9 * sec,
                f"{what}: {text}: {row}, by itself {sec} s",
            )
            if row["state"] not in ("planned", "predicted"):
                continue
            self.check("predicted_seconds" in row, f"{what}: {text}: no prediction, {row}")
            # near the smallest budget seconds rise steeply
            steep = plan["overhead"] > 0.4
            close += not steep
            part = 0.06 if more and "--pp" in text else 0.03
            if row["state"] == "predicted" and "computation" in plan:
                both = row["compute_seconds"] + row["recompute_seconds"]
                self.check(
                    abs(both - plan["computation"]) <= (0.25 if steep else 0.03) * both,
                    f"{what}: {text}: computes for {both} s, by itself {plan['computation']}",
                )
            for key, is_there, most in (
                ("predicted_seconds", sec, 0.25 if steep else part),
                ("predicted_peak_bytes", plan["peak_bytes"], part),
            ):
                self.check(
                    abs(row.get(key, 0) - is_there) <= most * is_there,
                    f"{what}: {text}: {key} {row.get(key)}, by itself {is_there}",
                )
        first = found["candidates"][found["best"]]
        self.check(first["state"] == "planned", f"{what}: the first is {first}")
        self.check(first["seconds"] <= best * 1.01, f"{what}: {first}, the best takes {best} s")
        self.check(close >= (2 if more else 4), f"{what}: only {close} predictions")
        states = [r["state"] for r in found["candidates"]]
        said, predicted = f"{states.count('planned')} planned, ", states.count("predicted")
        said += f"{predicted} predicted, " if predicted else ""
        self.check(said in done.stdout, f"{what}: expected '{said}', found {done.stdout[:300]}")
        print(f"{what}: {close} predictions, {len(rows)} configurations")

    def lines(self, name):
        """The choice and runners-up, typed."""
        found, done = self.auto(name, 4, "--memory-budget", "20MiB", "--device", "H100")
        if not found:
            return
        printed = re.findall(r"^  (ckc .*)\n  (ckrun .*)$", done.stdout, re.M)
        if not self.check(
            printed == [(found["compile"], found["run"])], f"{name}: lines {done.stdout}"
        ):
            return
        rest = re.findall(r"^ +\+[0-9.]+ %  (--.*): ", done.stdout, re.M)
        self.check(rest, f"{name}: no runners-up: {done.stdout}")
        _, flags, _ = MODELS[name]
        self.train(name, found, shlex.split(found["compile"])[1:], found["run"])
        model = shlex.split(found["compile"])[1]
        for text in rest[: 10 if name == "mlp" else 2]:
            words = shlex.split(text)
            ranks = 1
            for option in "--tp", "--dp", "--pp":
                if option in words and words[words.index(option) + 1] != "off":
                    ranks *= int(words[words.index(option) + 1])
            self.train(
                name,
                found,
                [model, *flags, *words, "--memory-budget", "20MiB", "-o", "rest.so"],
                f"ckrun rest.so --ranks {ranks}" if ranks > 1 else "ckrun rest.so",
            )
        self.staged(name)

    def staged(self, name):
        """The choice among pipelines, typed."""
        found, _ = self.auto(name, 4, "--pp", 2, "--memory-budget", "20MiB", "--device", "H100")
        if not found:
            return
        words = shlex.split(found["compile"])[1:]
        self.check(
            words[words.index("--pp") + 1] == "2"
            and all(r["pp"] == 2 for r in found["candidates"]),
            f"{name}: --pp 2: {found['compile']}",
        )
        self.train(name, found, words, found["run"])

    def train(self, name, found, compile_words, run):
        feed = {
            "gpt": ["input_ids=positions", "labels=zeros"],
            "llama": ["input_ids=positions", "labels=zeros"],
            "vit": ["pixel_values=ones", "labels=zeros"],
            "unet": ["image=ones", "labels=zeros"],
            "mlp": ["image=ones", "target=ones"],
        }[name]
        build = self.ckc(*compile_words, "--threads", 1)
        if not self.must(build, f"{name}: {compile_words}"):
            return
        log = self.path("log")
        if os.path.exists(log):
            os.remove(log)
        feeds = [w for f in feed for w in ("--feed", f)]
        done = self.ckrun(*shlex.split(run)[1:], "--steps", 2, *feeds, "--log", log)
        if self.must(done, f"{name}: {run}"):
            losses = ck.losses(log)
            self.check(
                len(losses) == 2 and all(x == x for x in losses), f"{name}: {run}: losses {losses}"
            )

    def seconds(self, what, name, devices, *more):
        """Of the choice; infinite if nothing fits."""
        file, flags, samples = MODELS[name][0], ["--halves", "off"], 8
        out = self.path("mono.json")
        done = self.ckc(
            os.path.join(ck.MODELS, file) + ".onnx",
            *flags,
            *("--auto", "--devices", devices, "--global-batch", samples, "--json", out, *more),
        )
        if done.returncode == 1 and "no configuration fits" in done.stderr:
            return float("inf")
        if not self.must(done, what):
            return float("inf")
        with open(out, encoding="utf-8") as f:
            found = json.load(f)
        return found["candidates"][found["best"]]["seconds"]

    def falls(self, what, rows):
        for (a, before), (b, after) in zip(rows, rows[1:]):
            self.check(
                after <= before * (1 + 1e-9), f"{what}: {a} takes {before} s, {b} takes {after} s"
            )

    def monotone(self, n):
        """More of what helps is never slower."""
        draw = random.Random(7)
        profile = self.profile("mlp")
        for i in range(int(n)):
            d = dict(profile, name=f"random-{i}")
            for key in d:
                if key.endswith(("_per_second", "_seconds")) and isinstance(d[key], (int, float)):
                    d[key] *= 10 ** draw.uniform(-1.5, 1.5)
            d["node_ranks"] = draw.choice([0, 2, 4, 8])
            d["net_bytes_per_second"] = d["link_bytes_per_second"] * draw.uniform(0.05, 1)
            d["net_latency_seconds"] = d["link_latency_seconds"] * draw.uniform(1, 10)
            device = self.write("random.json", d)
            what = f"profile {i}"
            counts = sorted(draw.sample(range(1, 9), 3))
            self.falls(
                f"{what}, devices",
                [(k, self.seconds(what, "mlp", k, "--device", device)) for k in counts],
            )
            sizes = [f"{2**k * draw.uniform(0.7, 1.4):.0f}KiB" for k in (6, 7, 8, 9)]
            self.falls(
                f"{what}, budget",
                [
                    (b, self.seconds(what, "mlp", 4, "--device", device, "--memory-budget", b))
                    for b in sizes
                ],
            )
            rows = []
            for times in 1, 3, 10:
                more = dict(d)
                for key in "link_bytes_per_second", "net_bytes_per_second":
                    more[key] *= times
                at = self.write("faster.json", more)
                rows.append((f"links x {times}", self.seconds(what, "mlp", 4, "--device", at)))
            self.falls(f"{what}, links", rows)
            print(f"{what}: {self.failed} failed", flush=True)

    def profile(self, name):
        """Of an H100."""
        file, flags, _ = MODELS[name]
        out = self.path("device.json")
        done = self.ckc(
            os.path.join(ck.MODELS, file) + ".onnx",
            *("--plan-only", *flags, "--dim", "batch=4", "--device", "H100", "--json", out),
        )
        if not self.must(done, "a device profile"):
            return {}
        with open(out, encoding="utf-8") as f:
            return json.load(f)["device"]

    def write(self, name, what):
        with open(self.path(name), "w", encoding="utf-8") as f:
            json.dump(what, f)
        return self.path(name)

    def paper(self):
        """The rows of table 5: 1F1B where the paper interleaves, and no limit of memory."""
        rows = []
        for name, c in paper.MODELS.items():
            file = self.path(name + ".onnx")
            if not self.must(self.run([self.gpt_path, "--model", name, "-o", file]), name):
                return
            for mode, sp, published in ("selective", True, c["best"]), ("full", False, c["full"]):
                sec = self.predict(file, c, mode, sp)
                rows.append((published, sec, f"{name}, {mode}"))
            more, said = rows[-1][1] / rows[-2][1], c["full"] / c["best"]
            self.check(abs(more - said) <= 0.05 * said, f"{name}: full takes {more}, paper {said}")
        for (_, a, one), (_, b, other) in zip(sorted(rows), sorted(rows)[1:]):
            self.check(a < b, f"paper: {one} takes {a} s, {other} {b} s")

    def predict(self, file, c, mode, sp):
        """Seconds of a row's configuration."""
        out = self.path("paper.json")
        done = self.ckc(
            *(file, "--auto", "--plan-only", "--device", "A100-80GB", "--target", "cuda"),
            *("--devices", c["gpus"], "--global-batch", c["batch"], "--dtype", "bf16"),
            *("--tp", c["t"], "--pp", c["p"], "--dp", 1, *(["--sp"] if sp else [])),
            *("--halves", "off", "--offload", "off", "--memory-budget", "2TB"),
            *(*paper.ASSUMED, f"--recompute={mode}", "--json", out),
        )
        if not self.must(done, f"{file} {mode}"):
            return 0
        with open(out, encoding="utf-8") as f:
            found = [x for x in json.load(f)["candidates"] if x["sp"] == sp]
        self.check(len(found) == 1, f"{file} {mode}: {found}")
        return found[0]["predicted_seconds"]

    def memory(self):
        """Of the largest process of a search."""
        file = self.path("22B.onnx")
        if not self.must(self.run([self.gpt_path, "--model", "22B", "-o", file]), "22B"):
            return
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        done = self.ckc(
            *(file, "--auto", "--device", "A100-80GB", "--target", "cuda", "--dtype", "bf16"),
            *("--devices", 8, "--global-batch", 4, "--plan-time", 200),
        )
        most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
        self.must(done, "22B")
        self.check(before * 1024 < 333e6, f"memory: the writer of the model takes {before} KiB")
        self.check(50e6 < most < 333e6, f"memory: a process of the search takes {most} B")
        print(f"22B: {most / 1e6:.0f} MB for the largest process")

    def refusals(self):
        """One message, which says what to type, and no file."""
        gpt = os.path.join(ck.MODELS, "gpt2-dynamo-dyn.onnx")
        mlp = os.path.join(ck.MODELS, "mlp-mse.onnx")
        unet = os.path.join(ck.MODELS, "unet-dynamo.onnx")
        seq = ["--dim", "seq=12"]
        ask = ["--auto", "--devices", 4, "--global-batch", 8]
        for model, flags, *words in (
            (gpt, ["--auto", "--devices", 0], "expected a number from 1 to 1024"),
            (gpt, ["--auto", "--devices", 2], "try: --global-batch 32"),
            (gpt, [*seq, *ask, "--tp", 4, "--dp", 2], "take 8 devices", "try: --devices 8"),
            (gpt, [*seq, *ask, "--dp", 3], "multiple of 3", "try: --global-batch 9"),
            (gpt, [*seq, *ask, "--grad-accum", 3], "try: --global-batch 9"),
            (gpt, [*seq, *ask, "--memory-budget", "50%"], "--memory-budget as a size"),
            (mlp, [*ask, "--memory-budget", "9KiB"], "fits into 9216 B", "--memory-budget "),
            (gpt, [*seq, *ask, "--device", "X100"], "--device 'X100'", "H100"),
            (gpt, [*seq, *ask, "--forward-only"], "--auto does not go with --forward-only"),
            (gpt, [*seq, *ask, "--curve"], "--auto does not go with --curve"),
            (gpt, [*seq, *ask, "--dump=plan"], "--auto does not go with --dump"),
            (gpt, [*seq, *ask, "--zero", 2, "--dp", "off"], "leave out --zero"),
            (gpt, [*seq, *ask[:-1], 8, "--dim", "batch=3"], "try: --global-batch 9"),
            (gpt, ask, "'batch' and 'seq'", "two names")[:2] + ("'seq'",),
            (gpt, [*ask, "--dim", "nothing=?", *seq], "no such dim"),
            (gpt, ["--dim", "batch=?", *seq], "expected a size, or --auto"),
            (unet, [*ask[:-1], 9], "axis 0 of input", "try: --global-batch 10"),
            (gpt, [*seq, *ask, "-o", "none/x.so"], "cannot write 'none/x.so'"),
            (gpt, [*seq, *ask, "--plan-time", "0.001"], "within --plan-time", "a longer one"),
            (unet, [*ask, "--dp", 8, "--devices", 8], "no configuration has the options given"),
            (
                gpt,
                [*seq, *ask, "--pp", 2, "--schedule", "interleaved=2", "--microbatches", 1],
                "no configuration has the options given",
            ),
        ):
            out = [] if "-o" in flags else ["-o", "no.so"]
            done = self.ckc(model, *flags, "--json", "no.json", *out)
            what = f"{flags}: {done.returncode}: {done.stderr.strip()[:300]}"
            self.check(done.returncode in (1, 2), what)
            self.check(all(w in done.stderr for w in words), f"{what}: expected {words}")
            errors = [x for x in done.stderr.split("\n") if x.startswith("ckc: ")]
            # of a library there are two files
            errors = [x for x in errors if "warning" not in x and ".safetensors" not in x]
            self.check(len(errors) == 1, what)
            self.check(not os.path.exists(self.path("no.so")), f"{what}: no.so")


def main():
    gpt = os.path.abspath(ck.option("--gpt", "gpt"))
    test = Test()
    test.gpt_path = gpt
    for name in test.names or ["lines=mlp"]:
        part, _, value = name.partition("=")
        getattr(test, part)(*([value] if value else []))
    test.finish()


if __name__ == "__main__":
    main()
