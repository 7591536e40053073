#!/usr/bin/env python3
"""Plans of pipelines: places to cut, and budgets that a stage cannot meet.

    pipeline_plans.py CKC CKRUN [cuts] [budgets] [notes]

cuts: --stage with the values that ckc chose gives the same stages, with others stages that hold the
parameters read up to there; names that are no place are refused with places nearby.  budgets: a
refusal names the stage and its least bytes, which work for it, and the least bytes for all, which
work; what it says to type compiles.  notes: what is chosen, and why a library cannot evaluate.
"""

import os
import re
import shlex
import sys

import ck

STEM = "gpt2-dynamo-dyn"
DIMS = ["--dim", "batch=2", "--dim", "seq=16"]
PP = ["--pp", 3, "--microbatches", 4]
EACH = re.compile(r"for stage (\d) of 3; smallest budget that works: (\d+) B")
ALL = re.compile(r", for all stages: (\d+) B")


class Plans(ck.Bench):
    def plan(self, *flags):
        """What ckc does, and the plan; None if it refuses."""
        model, out = os.path.join(ck.MODELS, STEM + ".onnx"), self.path("p.json")
        if os.path.exists(out):
            os.remove(out)
        flags = [*map(str, flags)]
        dims = DIMS[2:] if any(x.startswith("batch=") for x in flags) else DIMS
        done = self.ckc(model, *dims, "--plan-only", "--json", out, *flags)
        return done, ck.plan(out) if done.returncode == 0 else None

    def refused(self, words, *flags):
        done, _ = self.plan(*flags)
        one = done.stderr.count("error") <= 1 and done.returncode in (1, 2)
        self.check(one and re.search(words, done.stderr), f"{flags}: {done.stderr[-500:]}")
        return done.stderr

    def cuts(self):
        done, plan = self.plan(*PP)
        if not self.must(done, "cuts: --pp 3"):
            return
        cut = plan["pipeline"]["cut_after"]
        self.check(len(cut) == 2, f"cuts: {cut}")
        flags = [x for name in reversed(cut) for x in ("--stage", name)]
        done, again = self.plan(*PP, *flags)
        self.must(done, f"cuts: {flags}")
        same = again and all(
            a["summary"] == b["summary"] for a, b in zip(again["stages"], plan["stages"])
        )
        self.check(same, f"cuts: {flags}: other stages than without")
        text = self.refused(
            "no node of forward computes", *PP, "--stage", "nobody", "--stage", cut[0]
        )
        near = re.findall(r"'([^']+)'", text.split("places to cut", 1)[1])
        self.check(len(near) >= 3, f"cuts: places: {text}")
        done, moved = self.plan(*PP, "--stage", near[0], "--stage", near[-1])
        self.must(done, f"cuts: at {near}")
        if moved:
            self.check(moved["pipeline"]["cut_after"] == [near[0], near[-1]], f"cuts: {near}")
            params = [s["summary"]["param_bytes"] for s in moved["stages"]]
            self.check(params[1] > params[2], f"cuts: at {near}: parameters {params}")
        self.refused("expected another place", *PP, "--stage", cut[0], "--stage", cut[0])
        self.refused("expected 2 --stage, or none, found 1", *PP, "--stage", cut[0])
        self.refused("which plan no stages", "--pp", 2, "--stage", cut[0], "--dump=memory")
        done, _ = self.plan("--stage", cut[0])
        self.check("without --pp P" in done.stderr, f"cuts: without --pp: {done.stderr}")
        done, _ = self.plan(*PP, "--dump=plan")
        self.check(f"cut after '{cut[0]}', '{cut[1]}'" in done.stdout, f"cuts: {done.stdout}")

    def percent(self):
        """What works for all stages, typed in percent, and not one percent less."""
        more = [*PP, "--optimizer", "sgd"]
        text = self.refused("for all stages", *more, "--memory-budget", "20%")
        least = int(re.search(r"for all stages: (\d+) %", text)[1])
        self.must(self.plan(*more, "--memory-budget", f"{least}%")[0], f"percent: {least}")
        self.refused("is too small", *more, "--memory-budget", f"{least - 1}%")

    def budgets(self):
        done, plan = self.plan(*PP)
        peaks = [s["summary"]["peak_bytes"] for s in plan["stages"]]
        text = self.refused(EACH.pattern, *PP, "--memory-budget", "1kB")
        line = next(x for x in text.splitlines() if "is too small" in x)
        each, every = EACH.search(line), ALL.search(line)
        if not self.check(each and every and int(each[1]) == 0, f"budgets: {text}"):
            return
        least = int(every[1])
        self.check(least > int(each[2]), f"budgets: no other stage needs more: {line}")
        self.check(int(each[2]) <= peaks[0] and least <= max(peaks), f"budgets: {least}: {peaks}")
        done, _ = self.plan(*PP, "--memory-budget", f"{least}B")
        self.must(done, f"budgets: least of all, {least}")
        self.refused(r"for stage \d of 3", *PP, "--memory-budget", f"{least - 1}B")
        text = self.refused(EACH.pattern, *PP, "--memory-budget", f"{each[2]}B")
        self.check(EACH.search(text)[1] != "0", f"budgets: stage 0 again: {text}")
        self.check("--update-in-backward" not in text and "--offload" not in text, text)
        tries = re.findall(r"try: (--(?:pp|stage|microbatches|dim).*)", text)
        self.check(any("--pp 6" in t for t in tries), f"budgets: {text}")
        self.check(any("--stage" in t for t in tries), f"budgets: {text}")
        self.check(any("--microbatches 8" in t for t in tries), f"budgets: {text}")
        for line in tries:
            words = shlex.split(line)
            own = [] if "--pp" in words else PP[:2]
            more = [] if "--microbatches" in words else PP[2:]
            done, _ = self.plan(*own, *more, *words)
            self.must(done, f"budgets: {line}")

    def notes(self):
        done, _ = self.plan(*PP, "--tp", 2, "--halves", "auto")
        self.must(done, "notes: --halves auto")
        self.check("--halves auto takes off: stages" in done.stderr, f"notes: {done.stderr}")
        self.refused("--halves on cannot be combined", *PP, "--tp", 2, "--halves", "on")
        # replicas have pieces of masters in float32, and whole copies in 16 bits
        model, so = os.path.join(ck.MODELS, STEM + ".onnx"), self.path("n.so")
        done = self.ckc(
            *(model, *DIMS, *PP, "--dp", 2, "--zero", 1, "--dtype", "bf16", "-o", so),
        )
        named = re.search(r"cannot evaluate: evaluation needs '([^']+)', which", done.stderr)
        self.must(done, "notes: --zero 1")
        self.check(named and named[1].endswith("weight"), f"notes: {done.stderr}")


def main():
    bench = Plans()
    for part in bench.names or ["cuts", "budgets", "percent", "notes"]:
        getattr(bench, part)()
    bench.finish()


if __name__ == "__main__":
    sys.exit(main())
