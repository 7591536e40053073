#!/usr/bin/env python3
"""What plans of ZeRO's stages claim, beside closed formulas.

    check_zero.py CKC GPT [states] [sent] [links] [groups] [messages] [exposed] [forms]

states: bytes of a parameter in 16 bits with Adam, by stage, as in figure 1 of Rajbhandari et al.
2020 (7.5B, 64 replicas: 120, 31.4, 16.6 and 1.9 GB), counted from the tensors of plans.  sent: a
step sends 2 (d - 1) / d elements a parameter, and 3 (d - 1) / d where all are gathered again.
links: seconds of each transfer, inside nodes and between them.  groups: shards over nodes of eight
(--zero-group), which are added up between nodes.  messages: neighbouring gathers, and neighbouring
sums of shards, begin together.  exposed: most transfers are hidden, more budget never exposes more
seconds but for a few percent, and plans replay.  forms: of steps that update in backward and
those that do not, the faster one is planned; near the least budget of the latter, that is the
former.
"""

import math
import re
import sys

from plan_check import PlanCheck, run_parts

ELEMENT = {"f32": 4, "bf16": 2}
# H100 of known_devices.c: devices of a node; bytes/s and seconds of a message inside and between
NODE, INSIDE, BETWEEN = 8, (450e9, 3.4e-6), (50e9, 14e-6)
GIB = 2**30


def count(tensor):
    return math.prod(tensor["shape"])


class Check(PlanCheck):
    FLAGS = "--device", "H100", "--target", "cuda", "--quiet", "--dtype", "bf16"

    def model(self, *sizes):
        return super().model(*sizes, "--batch", 1)

    def transfers(self, plan, op):
        """(step, smaller tensor, larger one) of matrices, which are sent in 16 bits."""
        tensors = plan["tensors"]
        for s in plan["schedule"]:
            if s["op"] == op:
                pair = [tensors[s["reads"][0]], tensors[s["writes"][0]]]
                if pair[0]["dtype"] == pair[1]["dtype"] == "bf16":
                    yield (s, *sorted(pair, key=count))

    def states(self):
        """12 of masters and states, of which a replica has its share from stage 1 on, 2 of a
        gradient from stage 2 on, 2 of a copy in stage 3.  Whole copies and gradients, which stages
        below keep, are in each plan beside the shards."""
        replicas = 64
        model = self.model("--layers", 36, "--hidden", 4096, "--heads", 32)
        for stage in 1, 2, 3:
            plan = self.plan(model, "--dp", replicas, "--zero", stage)
            tensors = plan["tensors"]
            made = {w: s for s in plan["schedule"] for w in s["writes"]}
            copies = list(self.transfers(plan, "gather_pieces"))
            grads = list(self.transfers(plan, "reduce_scatter"))
            names = {tensors[made[s["reads"][0]]["reads"][0]]["name"] for s, _, _ in copies}
            names |= {f"adamw.{k}.{n}" for n in names for k in "mv"}
            n = sum(count(large) for _, _, large in copies)
            state = sum(t["bytes"] for t in tensors if t["name"] in names)
            copy, copy_shard = 2 * n, sum(2 * count(small) for _, small, _ in copies)
            grad = sum(2 * count(large) for _, _, large in grads)
            grad_shard = sum(2 * count(small) for _, small, _ in grads)
            for of, found, want in (
                (1, state + copy + grad, 4 + 12 / replicas),
                (2, state + copy + grad_shard, 2 + 14 / replicas),
                (3, state + copy_shard + grad_shard, 16 / replicas),
            ):
                self.fault(
                    n > 7e9 and abs(found / n - want) < 1e-6,
                    f"plan of stage {stage}: {found / n} B a parameter in {of}, expected {want}",
                )

    def sent(self):
        replicas = 8
        share = (replicas - 1) / replicas
        model = self.model("--layers", 6, "--hidden", 2048, "--heads", 16)
        for stage, more, again in (
            (1, [], 0),
            (2, [], 0),
            (3, [], 0),
            (3, ["--recompute", "full"], 1),
            (2, ["--grad-accum", 4], 0),
        ):
            plan = self.plan(model, "--dp", replicas, "--zero", stage, *more)
            found = {"forward": 0, "recompute": 0, "backward": 0}
            n = 0
            for op in "gather_pieces", "reduce_scatter":
                for s, _, large in self.transfers(plan, op):
                    found[s["phase"]] += s["sent_bytes"] / 2
                    n += count(large) if s["phase"] == "forward" else 0
            # biases and norms stay whole, whose messages are mostly latency
            gathers = sum(
                s["op"] == "gather_pieces" and s["phase"] == "forward" for s in plan["schedule"]
            )
            self.fault(
                gathers == 6 * 4 + (stage == 3), f"{stage} {more}: {gathers} gathers in forward"
            )
            want = {"forward": n * share, "recompute": again * n * share, "backward": n * share}
            if not more or stage == 3:
                self.fault(n > 0 and found == want, f"{stage} {more}: {found}, expected {want}")

    def links(self):
        model = self.model("--layers", 2, "--hidden", 1024, "--heads", 16)
        for tp, dp in (1, 8), (8, 8), (4, 4), (2, 16):
            flags = ["--tp", tp, "--sp"] if tp > 1 else []
            plan = self.plan(model, "--dp", dp, "--zero", 1, *flags)
            groups = set()
            for s in plan["schedule"]:
                if not s.get("sent_bytes"):
                    continue
                for name, ranks, stride in ("tp", tp, 1), ("dp", dp, tp):
                    here = min(ranks, max(1, NODE // stride))
                    rate, latency = INSIDE
                    if here < ranks:
                        rate, latency = min(rate, BETWEEN[0] * here), BETWEEN[1]
                    want = latency * (ranks - 1) + s["sent_bytes"] / rate
                    leaves = here < ranks
                    if math.isclose(s["seconds"], want, rel_tol=1e-9) and leaves == s.get(
                        "network", False
                    ):
                        groups.add(name)
                        break
                else:
                    self.fault(False, f"tp {tp} dp {dp}: {s['op']} takes {s['seconds']} s")
            self.fault(
                groups == ({"tp", "dp"} if tp > 1 else {"dp"}), f"tp {tp} dp {dp}: groups {groups}"
            )

    def groups(self):
        """Groups of eight in nodes of eight: all shards are gathered inside nodes, and what goes
        between them, a shard of each gradient, hides mostly behind backward."""
        model = self.model("--layers", 8, "--hidden", 6144, "--heads", 64, "--seq", 2048)
        whole = self.plan(model, "--dp", 64, "--zero", 3)["summary"]["exposed_seconds"]
        plan = self.plan(model, "--dp", 64, "--zero", 3, "--zero-group", 8)
        sent = {}
        for s in plan["schedule"]:
            large = s.get("sent_bytes", 0) > 2**20
            if large:
                key = s["op"], s.get("network", False)
                sent[key] = sent.get(key, 0) + s["sent_bytes"]
        gathered, between = sent["gather_pieces", False], sent["all_reduce", True]
        self.fault(len(sent) == 3, f"zero groups: {sent}")
        # 7/8 of a parameter arrive in a gather; 7/8 of a shard, an eighth, are sent twice; small
        # parameters are whole
        self.fault(
            math.isclose(between, 2 * gathered / 8, rel_tol=5e-3),
            f"zero groups: {between} B between nodes, {gathered} inside",
        )
        seconds = plan["summary"]["exposed_seconds"]
        self.fault(seconds < whole, f"zero groups: {seconds} s, without {whole}")

    def messages(self):
        """Gathers and sums of shards over 64 replicas begin together, whose latencies would be 1.5
        times what their bytes take; and every message takes what the ring's formula says."""
        model = self.model("--layers", 12, "--hidden", 6144, "--heads", 64, "--seq", 1024)
        latency, rate = 63 * BETWEEN[1], NODE * BETWEEN[0]
        for more in [], ["--grad-accum", 4]:
            plan = self.plan(model, "--dp", 64, "--zero", 3, *more)
            for op in "gather_pieces", "reduce_scatter":
                steps = [s for s in plan["schedule"] if s["op"] == op]
                messages = []
                for s in steps:
                    if s.get("lane_seconds", 1) > 0:
                        messages.append([])
                    messages[-1].append(s)
                for m in messages:
                    want = latency + sum(s["sent_bytes"] for s in m) / rate
                    found = m[0].get("lane_seconds", m[0]["seconds"])
                    self.fault(
                        math.isclose(found, want, rel_tol=1e-9), f"{op}: {found} s, not {want}"
                    )
                ids = [s["id"] for s in steps]
                runs = sum(i - 1 not in ids for i in ids)
                self.fault(len(messages) == runs, f"{op}: {len(messages)} of {runs} neighbourhoods")
                share = len(messages) * latency / sum(s["sent_bytes"] for s in steps) * rate
                self.fault(share < 0.3, f"{op} {more}: latency is {share:.3f} of the bytes' time")

    def exposed(self):
        """Of layers as wide as those of a 22B model."""
        model = self.model("--layers", 4, "--hidden", 6144, "--heads", 64, "--seq", 2048)
        for stage in 1, 3:
            flags = ["--dp", 8, "--zero", stage]
            top = self.plan(model, *flags)["summary"]["peak_bytes"]
            said = self.ask(model, *flags, "--memory-budget", "1GiB").stderr
            least = int(re.search(r"works: (\d+) B", said)[1])
            lowest = math.inf
            for k in range(11):
                budget = least + (top - least) * k // 10
                plan = self.plan(model, *flags, "--memory-budget", f"{budget}B")
                summary = plan["summary"]
                hidden = plan["comm"]["hidden_seconds"] / plan["comm"]["seconds"]
                what = f"stage {stage}, {budget / GIB:.2f} GiB:"
                self.fault(summary["peak_bytes"] <= budget, f"{what} {summary['peak_bytes']} B")
                seconds = summary["exposed_seconds"]
                self.fault(seconds < 1.01 * lowest, f"{what} {seconds} s, with less {lowest}")
                self.fault(
                    hidden > (0.7 if k > 4 else 0.4 if k > 1 else 0), f"{what} {hidden} are hidden"
                )
                lowest = min(lowest, seconds)

    def forms(self):
        sizes = "--layers", 6, "--hidden", 1024, "--heads", 4, "--vocab", 300, "--seq", 1024
        model = self.model(*sizes)
        flags = ["--dp", 2, "--dtype", "f32"]
        off = [*flags, "--update-in-backward", "off"]
        said = self.ask(model, *off, "--memory-budget", "1MB").stderr
        least = int(re.search(r"works: (\d+) B", said)[1])
        first = []
        for k in 0, 1, 2, 4, 8, 16, 32:
            budget = ["--memory-budget", f"{least + least * k // 400}B"]
            seconds = {}
            for form in "off", "on", "auto":
                plan = self.plan(model, *flags, *budget, "--update-in-backward", form)
                seconds[form] = plan["summary"]["exposed_seconds"]
            fastest = min(seconds.values())
            self.fault(seconds["auto"] <= fastest * (1 + 1e-9), f"{budget}: {seconds}")
            first.append("on" if seconds["on"] < seconds["off"] else "off")
        self.fault(len(set(first)) == 2, f"the faster forms: {first}")


if __name__ == "__main__":
    parts = ["states", "sent", "links", "groups", "messages", "exposed", "forms"]
    sys.exit(run_parts(Check, parts))
