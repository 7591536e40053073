#!/usr/bin/env python3
"""What --auto predicts for a configuration, beside the plan of all its layers.

    predictions.py CKC CKRUN [FAMILY...] [--gpt=GPT] [--rows]

Each case is a search with one or two configurations, whose seconds and bytes ckc predicts from a
model with fewer layers, then plans.  The table has, for each family, the median and the largest
deviation of the seconds and of the peak.  MOST has the limits.  Budgets are steep if recomputation
takes more than STEEP of the computation.  --rows prints each case.
"""

import json
import os
import statistics
import sys

import ck

MODELS = {  # options of samples/gpt
    "gpt8": ["--layers", 8, "--hidden", 64, "--heads", 4, "--seq", 64, "--vocab", 200],
    "llama7": ["--like", "llama", "--layers", 7, "--hidden", 64, "--heads", 4, "--kv-heads", 2]
    + ["--seq", 64, "--vocab", 200],
    "untied12": ["--layers", 12, "--hidden", 48, "--heads", 4, "--seq", 64, "--vocab", 200]
    + ["--untied"],
    # large ones, whose seconds are those of products
    "gpt16": ["--layers", 16, "--hidden", 1024, "--heads", 16, "--seq", 512, "--vocab", 8000],
    "llama24": ["--like", "llama", "--layers", 24, "--hidden", 2048, "--heads", 16, "--seq", 1024]
    + ["--vocab", 32000],
}
RANKS = {  # devices, options
    "tp": (2, ["--tp", 2, "--halves", "off"]),
    "zero": (2, ["--dp", 2, "--zero", 1]),
    "zero3": (2, ["--dp", 2, "--zero", 3]),
    "one": (1, []),
}
SCHEDULES = {
    "1f1b": [],
    "interleaved": ["--schedule", "interleaved=2"],
    "zb": ["--schedule", "zb-h1"],
}
BUDGETS = (95, 90, 80, 70, 60)  # percent of the peak without a budget
STEEP = 0.04  # recomputation as a share of computation, close to the smallest budget


def cases():
    """Family: searches (model, devices, options, samples, whether within budgets)."""
    found = {}
    for model in MODELS:
        for name, (devices, options) in RANKS.items():
            found.setdefault("ranks", []).append((model, devices, options, 4, False))
            if name != "zero":
                found.setdefault("ranks-budget", []).append((model, devices, options, 4, True))
        for n in 2, 4:
            for name, schedule in SCHEDULES.items():
                for within in False, True:
                    for samples in (8,) if within else (4, 16):
                        row = (model, n, ["--pp", n, *schedule], samples, within)
                        found.setdefault(name + within * "-budget", []).append(row)
    for end, within in ("", False), ("-budget", True):
        rows = found.setdefault("mixed" + end, [])
        for model in "gpt8", "gpt16":
            rows.append((model, 4, ["--pp", 2, *RANKS["tp"][1]], 8, within))
            rows.append((model, 4, ["--pp", 2, *RANKS["zero"][1]], 16, within))
    return found


# largest deviations in percent: seconds, peak
MOST = {
    "ranks": (0.5, 0.5),
    "ranks-budget": (0.5,),
    "ranks-budget-steep": (3,),
    "1f1b": (2, 1.5),
    "1f1b-budget": (2.5,),
    "1f1b-budget-steep": (11.5,),
    "interleaved": (1.5, 1.5),
    "interleaved-budget": (1.5,),
    "interleaved-budget-steep": (21.5,),
    "zb": (2, 2.5),
    "zb-budget": (4,),
    "zb-budget-steep": (30,),
    "mixed": (1.5, 1.5),
    "mixed-budget": (2,),
    "mixed-budget-steep": (4.5,),
}
MEDIAN = 1.5  # the same of medians, but where budgets are steep, with a few cases


class Test(ck.Bench):
    def search(self, model, devices, options, samples, budget=None):
        """The row of the only configuration, and the reason if there is none."""
        out = self.path("auto.json")
        if os.path.exists(out):
            os.remove(out)
        done = self.ckc(
            *(self.path(model) + ".onnx", "--auto", "--devices", devices, "--device", "A100-80GB"),
            # no plan may be late on a slow machine
            *("--global-batch", samples, "--offload", "off", "--plan-time", 600),
            *("--json", out, *options),
            *(["--memory-budget", f"{budget}B"] if budget else []),
            timeout=600,
        )
        if not os.path.exists(out):
            return [], done.stderr
        with open(out, encoding="utf-8") as f:
            return [c for c in json.load(f)["candidates"] if c["state"] == "planned"], done.stderr

    def family(self, name, rows, show):
        seconds, peaks, steep = [], [], []
        for model, devices, options, samples, within in rows:
            whole, why = self.search(model, devices, options, samples)
            what = f"{model} {' '.join(str(w) for w in options)}, {samples} samples"
            if not self.check(whole, f"{what}: no plan: {why[-300:]}"):
                continue
            todo = [(what, 0, whole)]
            if within:
                peak = min(c["peak_bytes"] for c in whole)
                todo = []
                for part in BUDGETS:
                    found, _ = self.search(model, devices, options, samples, peak * part // 100)
                    todo.append((f"{what}, {part} %", peak * part // 100, found))
            for text, budget, found in todo:
                for c in found:
                    if "predicted_seconds" not in c:
                        print(f"{text}: no prediction of {c['options']}")
                        continue
                    sec = c["predicted_seconds"] / c["seconds"] - 1
                    peak = c["predicted_peak_bytes"] / c["peak_bytes"] - 1
                    share = c["recompute_seconds"] / c["compute_seconds"]
                    (steep if share > STEEP else seconds).append(abs(sec))
                    if not budget:
                        peaks.append(abs(peak))
                    if show:
                        print(
                            f"  {sec:+7.2%} {peak:+7.2%}  recomputes {share:.1%}  {text}"
                            f"{' --sp' if c['sp'] else ''}",
                            flush=True,
                        )
        self.judge(name, seconds, peaks)
        if steep:
            self.judge(name + "-steep", steep, [])

    def judge(self, name, seconds, peaks):
        text = f"{name:20} {len(seconds):4}"
        for what, found, most in zip(("seconds", "peak"), (seconds, peaks), MOST[name]):
            if not found:
                continue
            median, largest = statistics.median(found), max(found)
            text += f"   {what}: median {median:6.2%}, largest {largest:6.2%}"
            self.check(largest * 100 <= most, f"{name}: {what} deviate by {largest:.2%}")
            self.check(
                median * 100 <= MEDIAN or name.endswith("-steep"),
                f"{name}: {what} deviate by {median:.2%} on median",
            )
        print(text, flush=True)


def main():
    gpt = os.path.abspath(ck.option("--gpt", "gpt"))
    show = "--rows" in sys.argv
    sys.argv = [a for a in sys.argv if a != "--rows"]
    test = Test()
    for name, options in MODELS.items():
        test.must(test.run([gpt, *options, "--batch", 1, "-o", test.path(name) + ".onnx"]), name)
    for name, rows in cases().items():
        if not test.names or name in test.names:
            test.family(name, rows, show)
    test.finish()


if __name__ == "__main__":
    main()
