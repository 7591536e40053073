#!/usr/bin/env python3
"""A character GPT cut over ranks: six heads, 65 characters, which no number of ranks divides,
dropout, momentum.

    sharded.py CKC CKRUN GPT

Losses and parameters of five steps at two, three and six ranks, with rows whole and cut, are the
interpreter's and one rank's; a run of three ranks goes on at two, six and one; what it exports to
ONNX is what one rank exports of it; after fifty steps what is whole on all ranks is the same bits
on each, of bfloat16 parameters too, which are rounded at random; what is sent is measured as what
it is.
"""

import json
import os
import sys

import numpy as np

import ck
import files
from truth import SHALLOW, Truth

sys.path.insert(0, ck.TOOLS)
import compare

STEPS = 5
WAYS = (2, []), (3, ["--sp"]), (6, []), (6, ["--sp"])


class Sharded(ck.Bench):
    def build(self, model, name, *flags):
        done = self.ckc(
            model,
            "-o",
            self.path(name + ".so"),
            "--loss",
            "loss",
            "--quiet",
            "--json",
            self.path(name + ".json"),
            *flags,
        )
        return self.must(done, f"{name}: {flags}")

    def train(self, name, *more, steps=STEPS):
        log = self.path("log")
        open(log, "w").close()  # a run that is resumed adds to it
        done = self.ckrun(
            name + ".so",
            "--inputs",
            "inputs.safetensors",
            "--steps",
            steps,
            "--lr",
            "0.05",
            "--seed",
            3,
            "--log",
            log,
            *more,
        )
        self.must(done, f"{name} {more}")
        return np.array(ck.losses(log))

    def close(self, a, b, what):
        """Tensors of two files, within 1e-5 of the largest of each."""
        a, b = compare.load(self.path(a)), compare.load(self.path(b))
        self.check(sorted(a) == sorted(b), f"{what}: tensors {sorted(set(a) ^ set(b))}")
        for k in set(a) & set(b):
            far = np.abs(np.float64(a[k]) - b[k]).max(initial=0)
            self.check(
                a[k].shape == b[k].shape and far <= 1e-5 * np.abs(b[k]).max(initial=0),
                f"{what}: {k} is off by {far:.2g}",
            )

    def near(self, a, b, what):
        self.check(
            np.shape(a) == np.shape(b) and np.allclose(a, b, rtol=1e-5, atol=0),
            f"{what}: losses {a}, expected {b}",
        )

    def apart(self, name, inputs):
        """Fifty steps leave the same bits on every rank."""
        seen = self.run([self.measure_path, self.path(name + ".so"), inputs, 50])
        self.check('"apart": 0,' in seen.stdout, f"{name}: {seen.stdout} {seen.stderr}")

    def timed(self):
        """What is sent has rows of its own, with the plan's bytes; rates of memory and kernels know
        nothing of it, the link is its own."""
        self.train("gpt3--sp", "--profile", "profile", "--trace", "trace")
        plan, profile = ck.plan(self.path("gpt3--sp.json")), ck.plan(self.path("profile"))
        sent = {
            i: s["sent_bytes"] for i, s in enumerate(plan["schedule"]) if s.get("sent_bytes", 0) > 0
        }
        rows = {o["index"]: o for o in profile["ops"]}
        self.check(
            len(sent) > 10
            and {i: o["sent_bytes"] for i, o in rows.items() if "sent_bytes" in o} == sent,
            "profile: bytes sent",
        )
        self.check(
            not any("bytes" in rows[i] or "flops" in rows[i] for i in sent),
            "profile: a collective has work",
        )
        own = [
            i
            for i, o in rows.items()
            if o["op"] in ("own", "own_grad") or (o["op"] == "all_reduce" and i not in sent)
        ]  # replicas: one
        rates = [
            (o["flops"] / o["seconds"], o["bytes"] / o["seconds"])
            for i, o in rows.items()
            if i not in sent and i not in own and o["seconds"] >= 20e-6
        ]
        for k, (key, found) in enumerate(
            (("flops", profile["peak_flops"]["f32"]), ("bytes", profile["bandwidth"]))
        ):
            best = max((r[k] for r in rates), default=0)
            self.check(
                abs(found - best) <= 1e-5 * best,
                f"profile: best rate of {key} is {found}, expected {best}",
            )
        link, latency = profile["link_bytes_per_second"], profile["link_latency_seconds"]
        told, took = (
            sum(x)
            for x in (
                [2 * latency + n / link for n in sent.values()],
                [rows[i]["seconds"] for i in sent],
            )
        )
        self.check(
            link > 0 and abs(told / took - 1) < 1e-3,
            f"profile: by the link {told} s, measured {took}",
        )
        self.traced(sent, own)
        done = self.ckc(
            "gpt.onnx",
            "--loss",
            "loss",
            "--tp",
            3,
            "--plan-only",
            "--device",
            "profile",
            "--json",
            "device.json",
        )
        self.must(done, "a plan by what was measured")
        found = ck.plan(self.path("device.json"))["device"]["link_bytes_per_second"]
        self.check(abs(found / link - 1) < 1e-5, f"a plan's link {found}, measured {link}")

    def traced(self, sent, own):
        with open(self.path("trace")) as f:
            events = json.load(f)["traceEvents"]
        lanes = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
        self.check(
            lanes == {1: "rank 0", 2: "rank 1", 3: "rank 2", 4: "between ranks"},
            f"trace: rows {lanes}",
        )
        first = [e for e in events if e["ph"] == "X" and e["args"]["step"] == 1]
        self.check(
            {
                e["args"]["index"]: e["args"]["sent_bytes"]
                for e in first
                if "sent_bytes" in e["args"]
            }
            == sent,
            "trace: bytes sent",
        )
        between = [e for e in first if e["tid"] == 4]
        moved = [e["args"]["index"] for e in between if not e["args"].get("waits")]
        self.check(
            sorted(moved) == sorted([*sent, *own]), "trace: each collective once, between ranks"
        )
        self.waited(between)

    def waited(self, between):
        """Each that only begins is waited for once, where the plan says."""
        plan = ck.plan(self.path("gpt3--sp.json"))["schedule"]
        ends = {b: s["id"] for s in plan for b in s.get("waits", [])}
        self.check(
            len(ends) > 5 and sorted(ends) == [s["id"] for s in plan if s.get("begins")],
            f"{len(ends)} waits in the plan",
        )
        begun = {e["args"]["index"]: e for e in between if e["name"].startswith("begin ")}
        waits = {e["args"]["index"]: e for e in between if e["name"].startswith("wait for ")}
        self.check(
            begun.keys() == waits.keys() == ends.keys(),
            f"trace: begun {sorted(begun)}, waited for {sorted(waits)}, planned {ends}",
        )
        self.check(
            all(waits[i]["ts"] >= begun[i]["ts"] + begun[i]["dur"] for i in ends),
            "trace: it waits before it begins",
        )
        timed = {o["index"] for o in ck.plan(self.path("profile"))["ops"] if "wait_seconds" in o}
        self.check(timed == ends.keys(), f"profile: waits of {timed}, planned {ends}")

    def narrow(self):
        stem = os.path.join(ck.MODELS, "ranks", "gpt2-bf16")
        inputs = stem + ".inputs.safetensors"
        if not self.build(stem + ".onnx", "narrow", "--tp", 4, "--sp") or not self.build(
            stem + ".onnx", "narrow1"
        ):
            return
        self.apart("narrow", inputs)
        for more, status in ([], 0), (["--rtol", 1e-3], 1):
            done = self.ckrun(
                "narrow.so", "--against", "narrow1.so", "--inputs", inputs, "--steps", STEPS, *more
            )
            self.check(
                done.returncode == status,
                f"bfloat16 against one rank {more}: {done.stdout[-600:]} {done.stderr}",
            )
            self.check(
                more or "tolerance 0.031 of a tensor's largest magnitude (bf16)" in done.stdout,
                f"bfloat16: {done.stdout[-300:]}",
            )

    def gpt(self):
        """What one rank's losses are."""
        self.build("gpt.onnx", "gpt1", "--optimizer", "sgdm")
        losses = self.train("gpt1", "--save", "1.st")
        self.right = Truth(
            self,
            "gpt.onnx",
            ["--loss", "loss", "--optimizer", "sgdm"],
            self.path("inputs.safetensors"),
            "--steps",
            STEPS,
            "--lr",
            0.05,
            "--seed",
            3,
        )
        self.right.check("one rank", SHALLOW, losses, save="1.st")
        for t, sp in WAYS:
            name = f"gpt{t}{''.join(sp)}"
            if not self.build("gpt.onnx", name, "--optimizer", "sgdm", "--tp", t, *sp):
                continue
            found = self.train(name, "--save", "many.st")
            self.right.check(name, SHALLOW, found, save="many.st")
            self.near(found, losses, name)
            self.close("many.st", "1.st", name)
            self.apart(name, "inputs.safetensors")
        return losses

    def resumed(self, losses):
        """Three ranks save what any number goes on from."""
        self.train("gpt3--sp", "--save", "half.st", steps=2)
        for name in "gpt1", "gpt2", "gpt6--sp":
            self.near(
                self.train(name, "--resume", "half.st", "--save", "end.st"),
                losses[2:],
                f"from three ranks to {name}",
            )
            self.right.check(f"from three ranks to {name}", SHALLOW, save="end.st")
            self.close("end.st", "1.st", f"from three ranks to {name}")

    def exported(self):
        """The bytes that one rank exports of the same values; compiled again it begins with
        them."""
        self.train("gpt3--sp", "--save", "end.st", "--export-onnx", "many.onnx")
        self.train("gpt1", "--resume", "end.st", "--export-onnx", "one.onnx")
        self.check(
            ck.content(self.path("many.onnx")) == ck.content(self.path("one.onnx")),
            "exported: other bytes than one rank's",
        )
        if not self.build("many.onnx", "again", "--optimizer", "sgdm"):
            return
        ours, one = (compare.load(self.path(x)) for x in ("again.safetensors", "1.st"))
        for k in ours:
            self.check(
                np.abs(ours[k] - one[k]).max() <= 1e-5 * np.abs(one[k]).max(), f"exported: {k}"
            )
        self.near(
            self.train("again", steps=1),
            self.train("gpt1", "--init", "end.st", steps=1),
            "exported and compiled again",
        )


def main():
    gpt = os.path.abspath(sys.argv.pop(3))
    bench = Sharded()
    made = bench.run(
        [
            gpt,
            "--layers",
            1,
            "--hidden",
            48,
            "--heads",
            6,
            "--seq",
            24,
            "--batch",
            2,
            "--vocab",
            65,
            "--weights",
            "-o",
            "gpt.onnx",
        ]
    )
    bench.must(made, "gpt")
    rng = np.random.default_rng(1)
    tokens = rng.integers(0, 65, (2, 25))
    files.st_write(
        bench.path("inputs.safetensors"),
        {
            name: ("I64", [2, 24], x.ravel().tolist())
            for name, x in (("input_ids", tokens[:, :-1]), ("labels", tokens[:, 1:]))
        },
    )
    losses = bench.gpt()
    bench.resumed(losses)
    bench.exported()
    bench.timed()
    bench.narrow()
    bench.finish()


if __name__ == "__main__":
    main()
