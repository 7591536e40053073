#!/usr/bin/env python3
"""What makes a model fit (ckc advise), typed.

    advise.py CKC CKRUN

Each line that is printed is typed: its plan fits and takes the milliseconds and bytes printed, and
the library trains.  What does not help enough works with the bytes that it is said to need, and not
with less.  Lines of one kind come by seconds a sample, and one device is told before several.
"""

import json
import os
import re
import shlex

import ck
from auto import step_seconds

KINDS = (
    "the same training on one device:",
    "values rounded to 16 bits:",
    "more devices:",
    "another training:",
)
GPT = os.path.join(ck.MODELS, "gpt2-dynamo-dyn.onnx")
FLAGS = ["--dim", "seq=12", "--dim", "batch=4", "--device", "H100"]


def least_of(done):
    found = ck.ERRORS.search(done.stderr)
    return int(found[1]) if found else 0


class Test(ck.Bench):
    def plan(self, *words):
        out = self.path("one.json")
        done = self.ckc(*words, "--plan-only", "--json", out, "--quiet")
        if done.returncode:
            return None, done
        with open(out, encoding="utf-8") as f:
            return json.load(f), done

    def advice(self, memory, status):
        done = self.ckc("advise", GPT, *FLAGS, "--memory", memory, timeout=900)
        self.check(done.returncode == status, f"{memory}: {done.returncode}: {done.stderr[:300]}")
        return done.stdout

    def lines(self, text):
        """(kind, what is printed above the line, words of the line)"""
        kind, above, found = None, None, []
        for line in text.splitlines():
            if line in KINDS:
                kind = KINDS.index(line)
            elif line.startswith("    ckc "):
                found.append((kind, above, shlex.split(line)[1:]))
            above = line
        return found

    def typed(self, memory, limit):
        text = self.advice(memory, 0)
        found = self.lines(text)
        self.check(len(found) > 1, f"{memory}: {text}")
        self.check([x[0] for x in found] == sorted(x[0] for x in found), f"{memory}: {text}")
        costs = {}
        for kind, above, words in found:
            at = words.index("-o")
            plan, done = self.plan(*words[:at], *words[at + 2 :])
            what = f"{memory}: {words}"
            if not self.check(plan, f"{what}: {done.stderr[:300]}"):
                continue
            s = plan["summary"]
            self.check(s["peak_bytes"] <= limit, f"{what}: {s['peak_bytes']} B")

            def value(option, words=words):
                return int(words[words.index(option) + 1]) if option in words else 1

            sec = step_seconds(plan, value("--grad-accum"))
            said = float(re.search(r"^  ([\d.e+-]+) ms", above)[1]) * 1e-3
            self.check(abs(sec - said) <= 1e-3 * sec, f"{what}: {above}: {sec} s")
            rate = float(re.search(r"([\d.e+-]+) samples/s", above)[1])
            samples = 4 * value("--dp")
            self.check(
                abs(samples / sec - rate) <= 1e-3 * rate, f"{what}: {above}, {samples / sec}"
            )
            devices = value("--tp") * value("--dp")
            costs.setdefault(kind, []).append((devices, sec / samples))
        for kind, rows in costs.items():
            rounded = [(n, float(f"{sec:.6g}")) for n, sec in rows]
            self.check(rounded == sorted(rounded), f"{memory}: {KINDS[kind]} {rows}")
        return found

    def needs(self, text):
        """What is said not to help enough, at the bytes that it is said to need."""
        rows = re.findall(r"^  (.*): needs (\d+) B$", text, re.M)
        self.check(rows, f"nothing is listed: {text}")
        for options, least in rows:
            words = [] if options == "recomputation alone" else options.split()
            if "--grad-accum" in words:
                at = words.index("--grad-accum")
                flags = ["--dim", "seq=12", "--dim", f"batch={4 // int(words[at + 1])}"]
                flags += ["--device", "H100"]
            else:
                flags = FLAGS
            plan, done = self.plan(GPT, *flags, *words, "--memory-budget", f"{least}B")
            self.check(plan, f"{options} with {least} B: {done.stderr[:200]}")
            plan, _ = self.plan(GPT, *flags, *words, "--memory-budget", f"{int(least) - 64}B")
            self.check(not plan, f"{options} with less than {least} B fits")

    def all(self):
        full, _ = self.plan(GPT, *FLAGS)
        peak = full["summary"]["peak_bytes"]
        text = self.advice(f"{peak}B", 0)
        self.check("it fits as it is" in text and "    ckc" not in text, text)
        limit = peak * 2 // 3
        found = self.typed(f"{limit}B", limit)
        words = min(found, key=lambda x: x[0])[2]
        so = self.path("fits.so")
        words[words.index("-o") + 1] = so
        feed = ["--feed", "input_ids=positions", "--feed", "labels=zeros"]
        if self.must(self.ckc(*words, "--threads", 1), f"{words}"):
            self.must(self.ckrun(so, "--steps", 2, *feed), f"{words}: training")
        self.typed(f"{peak // 3}B", peak // 3)
        text = self.advice("20KiB", 1)
        self.check("    ckc" not in text, text)
        self.needs(text)
        refused = [GPT, *FLAGS, "--optimizer", "sgd", "--memory-budget"]
        least = least_of(self.ckc(*refused, "20KiB"))
        done = self.ckc(*refused, f"{least * 9 // 10}B")
        line = re.search(r"try: (ckc advise .*)$", done.stderr, re.M)
        if self.check(line, f"no advice: {done.stderr}"):
            words = shlex.split(line[1])[1:]
            self.check(words[1:2] == [GPT] and words[-2] == "--memory", f"{words}")
            self.check("sgd" in words, f"{words}: an option is lost")
            self.must(self.ckc(*words), f"{words}")
        for args, word, status in (
            ([GPT], "missing --memory SIZE", 2),
            ([GPT, "--memory", "0"], "expected a size", 2),
            ([GPT, "--memory", "1GB"], "try: --dim", 1),
            ([GPT, "--memory", "1GB", "--memory-budget", "1GB"], "unknown option of advise", 2),
            (["none.onnx", "--memory", "1GB"], "none.onnx", 1),
        ):
            done = self.ckc("advise", *args)
            self.check(
                done.returncode == status and word in done.stderr,
                f"{args}: {done.returncode}: {done.stderr[:300]}",
            )


if __name__ == "__main__":
    test = Test()
    test.all()
    test.finish()
