#!/usr/bin/env python3
"""Optimizer states in host memory (ckc --offload state): the bits of a run without it.

    offload.py CKC CKRUN [bits] [trace] [ranks] [resume] [parts] [peak] [python] [shared] [broken]
               [refusals] [folder] [stopped]

bits, ranks: losses, gradients and checkpoints are those of the same library without --offload, by
each optimizer, in 16 bits, over micro-batches, with adapters, over virtual ranks and processes;
delivered as late as they may be (CKR_LATE), with NaN at the destination meanwhile and in all dead
memory (CKR_POISON).  The plan replays, and its host memory is that of a formula.  resume: a
checkpoint of one goes on in the other.  parts: a parameter above 64 MiB, with a learning rate and a
decay of its own.  peak: device memory shrinks.  broken: plans that access the wrong memory are
refused.  The rest are faults of options, folders and disks, each with one message.
"""

import copy
import json
import os
import resource
import signal
import subprocess
import sys
import time

import numpy as np

import ck

sys.path.insert(0, ck.TOOLS)
import replay
import spread

SMALL, ALIGN = 1 << 16, 64
SHAPES = {"w1": (256, 192), "b1": (192,), "w2": (192, 256), "w3": (256, 160)}
GRAPH = """graph @offload {{
	input %x: f32[{rows},256]
	param %w1: f32[256,192] = splat 0.0625
	param %b1: f32[192] = splat 0
	param %w2: f32[192,256] = splat 0.03125
	param %w3: f32[256,160] = splat -0.0625
	%h1 = matmul %x, %w1
	%h2 = add %h1, %b1
	%h3 = tanh %h2
	%h4 = matmul %h3, %w2
	%h5 = tanh %h4
	%h6 = matmul %h5, %w3
	%h7 = mul %h6, %h6
	%loss: f32[] output = reduce_mean %h7 {{axes=[0,1], keepdims=0}}
	loss %loss
}}
"""
# 80 MB: two parts; few rows have a gradient, but all decay.
TABLE = """graph @table {
	input %ids: i64[4,8]
	param %table: f32[40000,500] = splat 0.125
	param %w: f32[500,40] = splat 0.0625
	%e = gather %table, %ids {axis=0}
	%h = matmul %e, %w
	%t = tanh %h
	%s = mul %t, %t
	%loss: f32[] output = reduce_mean %s {axes=[0,1,2], keepdims=0}
	loss %loss
}
"""
OFFLOAD = ["--offload", "state"]
# flags of ckc, flags of ckrun
RUNS = (
    ([], []),
    (["--optimizer", "adam"], ["--weight-decay", 0.1]),
    (["--optimizer", "sgdm"], ["--nesterov"]),
    (["--optimizer", "lion"], []),
    (["--dtype", "bf16"], []),
    (["--dtype", "bf16", "--resident-copies", "on"], []),
    (["--dtype", "bf16", "--master-weights", "off", "--state-dtype", "bf16"], []),
    (["--dtype", "f16"], ["--on-nan", "skip"]),
    (["--state-dtype", "bf16"], []),
    (["--grad-accum", 2], []),
    (["--grad-accum", 2, "--dtype", "bf16", "--optimizer", "lion"], []),
    ([], ["--clip", 0.1]),
    (["--ema"], ["--ema-decay", 0.9]),
    (["--lora", "w*=64:64"], []),
    (["--host-memory", "500KiB"], []),
    (["--update-in-backward", "on"], []),
    (["--update-in-backward", "on", "--optimizer", "sgdm", "--memory-budget", "100%"], []),
    (["--no-decay", "w1"], ["--lr-scale", "w2=0.5", "--decay", "w3=0.3"]),
)
RANKS = (
    ["--tp", 2],
    ["--dp", 2],
    ["--dp", 2, "--zero", 1],
    ["--dp", 2, "--zero", 2, "--grad-accum", 2],
    ["--dp", 2, "--zero", 3],
    ["--dp", 2, "--tp", 2, "--dtype", "bf16"],
    ["--dp", 4, "--zero", 2, "--zero-group", 2, "--optimizer", "sgdm"],
)
WAYS = {}, {"CKR_LATE": "1"}, {"CKR_LATE": "1", "CKR_POISON": "1"}
RUN = ["--data", "x.npy", "--threads", 1, "--quiet"]
PARTS = "bits trace ranks resume parts peak python shared broken refusals folder stopped".split()


def round_up(n):
    return (n + ALIGN - 1) // ALIGN * ALIGN


def in_file(pid, folder):
    """Descriptors of a process's unnamed files in a folder."""
    found = []
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            to = os.readlink(f"/proc/{pid}/fd/{fd}")
        except OSError:
            continue
        if to.startswith(os.path.realpath(folder)) and to.endswith("(deleted)"):
            found.append(fd)
    return found


class Offload(ck.Bench):
    def __init__(self):
        super().__init__()
        self.run_flags = RUN
        for rows in 2, 4, 8:
            self.write(f"m{rows}.ck", GRAPH.format(rows=rows))
        rng = np.random.default_rng(1)
        np.save(self.path("x.npy"), rng.normal(size=(64, 256)).astype("f4"))

    def write(self, name, text):
        with open(self.path(name), "w") as f:
            f.write(text)
        return self.path(name)

    def library(self, name, *flags, model="m4.ck"):
        so, plan = self.path(name + ".so"), self.path(name + ".json")
        done = self.ckc(self.path(model), "-o", so, "--quiet", "--json", plan, *flags)
        self.must(done, f"{model} {flags}")
        return so

    def pair(self, *flags, model="m4.ck"):
        """Without and with --offload.  What fits no budget without is compiled without one."""
        flags = list(flags)
        with_it = self.library("off", *flags, *OFFLOAD, model=model)
        if "--memory-budget" in flags:
            at = flags.index("--memory-budget")
            del flags[at : at + 2]
        return self.library("plain", *flags, model=model), with_it

    def outcome(self, so, *args, env=None, start=()):
        """What a run leaves: losses, checkpoint, gradients; and its log."""
        names = {x: self.path("out." + x) for x in ("log", "save", "grads")}
        for path in names.values():
            if os.path.exists(path):
                os.unlink(path)
        command = list(start) + [self.ckrun_path, so, *self.run_flags, *args]
        for flag, path in names.items():
            command += ["--" + flag, path]
        if not self.must(self.run(command, env=env), f"{so} {args} {env}"):
            return None, []
        rows = ck.log_rows(names["log"])
        kept = [
            {k: x for k, x in row.items() if k not in ("seconds", "peak_bytes")} for row in rows
        ]
        left = [ck.content(names["save"])]  # a run that skips all steps has no gradients
        left += [ck.content(names["grads"])] if os.path.exists(names["grads"]) else []
        return [kept, *left], rows

    def replayed(self, what, name="off"):
        plan = ck.plan(self.path(name + ".json"))
        faults = replay.Replay(copy.deepcopy(plan)).faults
        self.check(not faults, f"{what}: {faults[:3]}")
        return plan

    def same(self, flags, run, ways=WAYS, steps=4, model="m4.ck"):
        plain, so = self.pair(*flags, model=model)
        plan = self.replayed(flags)
        self.check(plan.get("host", {}).get("bytes"), f"{flags}: nothing is offloaded")
        args = ["--steps", steps, "--lr", 0.01, *run]
        expected, _ = self.outcome(plain, *args)
        for env in ways:
            found, rows = self.outcome(so, *args, env=env)
            self.check(found == expected, f"{flags} {run} {env}: other bits than without --offload")
            # a step that is skipped fetches nothing
            self.peak(max((r["peak_bytes"] for r in rows), default=0), plan, f"{flags} {env}")
        return plan

    # ---- bits ----

    def bits(self):
        for flags, run in RUNS:
            self.same(flags, run)
        plan = self.same([], ["--check"], ways=WAYS[:1])
        states = [4 * int(np.prod(s)) for s in SHAPES.values()]
        expected = 2 * sum(round_up(n) for n in states if n >= SMALL)
        for key in "bytes", "fetched_bytes", "offloaded_bytes":
            self.check(plan["host"][key] == expected, f"host.{key}: {plan['host']} {expected}")
        self.check(
            plan["summary"]["optimizer_bytes"] == 2 * sum(n for n in states if n < SMALL),
            f"states in device memory: {plan['summary']['optimizer_bytes']}",
        )
        self.on_nan()

    def trace(self):
        """A wait has the name of the transfer that it is for."""
        so = self.library("off", *OFFLOAD)
        self.must(self.ckrun(so, *RUN, "--steps", 3, "--trace", "trace.json"), "--trace")
        with open(self.path("trace.json")) as f:
            names = {e["name"] for e in json.load(f)["traceEvents"]}
        waits = {name for name in names if name.startswith("wait for ")}
        self.check(waits and waits <= {"wait for fetch", "wait for offload_into"}, f"{waits}")
        begun = {name for name in names if name.startswith("begin ")}
        self.check(begun == {"begin fetch", "begin offload_into"}, f"{begun}")

    def on_nan(self):
        """A step that is skipped, or fails, changes no state."""
        x = np.load(self.path("x.npy"))
        x[10, 3] = np.nan
        np.save(self.path("nan.npy"), x)
        plain, so = self.pair()
        for how in "skip", "go":
            args = ["--data", "nan.npy", "--on-nan", how, "--steps", 6, "--save"]
            for name, library in ("a", plain), ("b", so):
                self.must(
                    self.ckrun(library, *args, name, "--quiet", env={"CKR_LATE": "1"}), f"NaN {how}"
                )
            self.check(ck.content(self.path("a")) == ck.content(self.path("b")), f"NaN, {how}")

    def ranks(self):
        for flags in RANKS:
            dp = flags[flags.index("--dp") + 1] if "--dp" in flags else 1
            self.same(flags, [], ways=WAYS[::2], model="m8.ck" if dp == 1 else "m2.ck")
        flags = ["--dp", 2, "--zero", 2]
        plain, so = self.pair(*flags, model="m4.ck")
        args = ["--steps", 4, "--lr", 0.01]
        expected = self.outcome(plain, *args)[0]
        for env in WAYS[:2]:
            for f in "save", "grads":
                os.unlink(self.path("out." + f))
            children = spread.start(
                2,
                [self.ckrun_path, so, *RUN, *args]
                + ["--save", self.path("out.save"), "--grads", self.path("out.grads")],
                env=env,
                cwd=self.work,
                stdout=subprocess.DEVNULL,
            )
            status = [child.wait(300) for child in children]
            found = [
                ck.content(self.path(f)) if os.path.exists(self.path(f)) else None
                for f in ("out.save", "out.grads")
            ]
            self.check(status == [0, 0] and found == expected[1:], f"processes {env}: {status}")

    def resume(self):
        for flags in [], ["--dtype", "bf16", "--optimizer", "lion"], ["--dp", 2, "--zero", 3]:
            self.resumed(flags, 3, model="m2.ck")

    def resumed(self, flags, steps, model):
        """Checkpoints of either library go on in both, and have the bits of a run at one go."""
        plain, so = self.pair(*flags, model=model)
        libraries = {"plain": plain, "off": so}
        for name, library in libraries.items():
            run = [*self.run_flags, "--steps", steps, "--save", name + ".half"]
            self.must(self.ckrun(library, *run), f"half {flags}")
        whole = self.outcome(plain, "--steps", 2 * steps)[0][1]
        for first in libraries:
            for second, library in libraries.items():
                run = ["--steps", 2 * steps, "--resume", first + ".half"]
                found = self.outcome(library, *run)[0]
                self.check(
                    found and found[1] == whole, f"{flags}: {first}, then {second}: other bits"
                )
        return libraries

    def parts(self):
        """The parameter passes in two parts, with what its group says."""
        self.write("table.ck", TABLE)
        rng = np.random.default_rng(2)
        np.save(self.path("ids.npy"), rng.integers(0, 40000, (16, 8)))
        settings = ["--lr-scale", "table=0.5", "--decay", "table=0.3"]
        for optimizer in "adamw", "sgdm":
            plain, so = self.pair("--optimizer", optimizer, model="table.ck")
            plan = self.replayed("parts")
            updates = [s["op"] for s in plan["schedule"]].count(optimizer)
            self.check(updates == 3, f"{updates} updates, expected two of 'table' and one of 'w'")
            found = []
            for library, env in (
                (plain, {}),
                (so, {"CKR_LATE": "1"} if optimizer == "adamw" else {}),
            ):
                done = self.ckrun(
                    library,
                    "--data",
                    "ids.npy",
                    *("--steps", 3, "--lr", 0.01, "--threads", 2, "--quiet", "--save", "parts.st"),
                    *settings,
                    env=env,
                )
                self.must(done, f"parts {optimizer} {env}")
                found.append(ck.content(self.path("parts.st")))
                os.unlink(self.path("parts.st"))
            self.check(found[0] == found[1], f"parts {optimizer}: other bits")

    # ---- memory ----

    def peak_of(self, name):
        return ck.plan(self.path(name + ".json"))["summary"]["peak_bytes"]

    def peak_drops(self, flags, least):
        """By at least so large a share of the states' bytes; as measured from outside."""
        plain, so = self.pair(*flags)
        found = self.peak_of("plain") - self.peak_of("off")
        host = ck.plan(self.path("off.json"))["host"]["bytes"]
        self.check(found >= least * host, f"{flags}: {found} of {host} bytes are freed")
        np.savez(self.path("x.npz"), x=np.load(self.path("x.npy"))[:4])
        self.measured(so, self.path("x.npz"), ck.plan(self.path("off.json")), f"{flags}")

    def peak(self, *args):
        if args:  # of a run: ck.Bench
            return super().peak(*args)
        # what an update needs of its states is back: a third of all for the largest parameter
        self.peak_drops([], 0.5)
        self.peak_drops(["--memory-budget", "80%"], 0.6)
        done = self.ckc(self.path("m4.ck"), "--plan-only", *OFFLOAD, "--memory-budget", "20%")
        self.check(
            done.returncode == 1 and " 1536 B  optimizer state\n" in done.stderr,
            f"states in host memory count as device memory: {done.stderr}",
        )

    # ---- the package, libraries that share a model ----

    def package(self):
        os.environ["CKC_HOME"] = os.path.dirname(self.ckc_path)
        sys.path.insert(0, os.path.join(ck.HERE, "..", "..", "frontend", "python"))
        import ckc

        return ckc if os.path.exists(os.path.join(os.environ["CKC_HOME"], "libckr.so")) else None

    def python(self):
        ckc = self.package()
        if not ckc:
            print("offload: no libckr.so was built: no tests of the package")
            return
        folder = self.path("here")
        os.mkdir(folder)
        x = np.load(self.path("x.npy"))
        losses = []
        for more in {}, {"offload": "state"}:
            model = ckc.compile(self.path("m4.ck"), self.path("py.so"), **more)
            with ckc.Trainer(model, lr=0.01, offload_dir=folder, threads=1) as t:
                losses.append([t.step(x=x[4 * k : 4 * k + 4]) for k in range(4)])
                held = in_file(os.getpid(), folder)
                self.check(len(held) == len(more), f"{held} files in offload_dir, {more}")
                t.save(self.path(f"py{len(losses)}"))
            self.check(not in_file(os.getpid(), folder), "a closed trainer keeps its file")
        self.check(losses[0] == losses[1], f"Trainer: {losses}")
        saved = [ck.tensors(self.path(f"py{k}")) for k in (1, 2)]
        self.check(saved[0] == saved[1], "Trainer: another checkpoint")
        self.states(ckc)
        try:
            ckc.Trainer(model, offload_dir=self.path("none"))
            self.check(False, "offload_dir that is missing: no error")
        except ckc.Error as e:
            self.check("none: cannot create a file for offloaded values" in str(e), str(e))

    def states(self, ckc):
        """States in host memory are read and written by their names."""
        x, found = np.load(self.path("x.npy")), []
        for more in {}, {"offload": "state"}:
            model = ckc.compile(self.path("m4.ck"), self.path("set.so"), **more)
            with ckc.Trainer(model, lr=0.01) as t:
                t.step(x=x[:4])
                values = []
                for name in b"adamw.m.w1", b"adamw.v.w3", b"adamw.m.b1":
                    value = np.empty(t._tensors[name.decode()].nbytes // 4, "f4")
                    at = value.ctypes.data, value.nbytes
                    self.check(not t._call.ckr_get(t._ctx, name, *at), f"get {name}")
                    values.append(value.tobytes())
                    value *= 0.5
                    self.check(not t._call.ckr_set(t._ctx, name, *at), f"set {name}")
                found.append([values, [t.step(x=x[k : k + 4]) for k in (4, 8, 12)]])
        self.check(found[0] == found[1], f"states by name: {found[0][1]}, {found[1][1]}")

    def shared(self):
        ckc = self.package()
        if not ckc:
            return
        with_it, without = (
            [ckc.compile(self.path(f"m{n}.ck"), self.path(f"{name}{n}.so"), **more) for n in (4, 8)]
            for name, more in (("with", {"offload": "state"}), ("out", {}))
        )
        rng = np.random.default_rng(3)
        with ckc.Trainer(with_it[0], lr=0.01) as t, ckc.Trainer(without[0], lr=0.01) as u:
            t.add(with_it[1])
            u.add(without[1])
            for k in range(6):
                x = rng.normal(size=((4, 8)[k % 2], 256)).astype("f4")
                a, b = t.step(x=x), u.step(x=x)
                self.check(a == b, f"two lengths, step {k}: {a}, {b}")
            for trainer, other, expected, found in (
                (t, without[1], " in host memory", ""),
                (u, with_it[1], "", " in host memory"),
            ):
                try:
                    trainer.add(other)
                    self.check(False, "one with and one without --offload share a model")
                except ckc.Error as e:
                    text = "expected 'adamw.m.w3', f32 [256, 160]%s, found 'adamw.m.w3', f32"
                    text = (text + " [256, 160]%s;") % (expected, found)
                    self.check(text in str(e), str(e))

    # ---- faults ----

    def broken(self):
        """Each rule of host memory by itself."""
        self.library("off", *OFFLOAD)
        plan = self.replayed("the plan itself")
        tensors, steps = plan["tensors"], plan["schedule"]
        fetch = next(s["id"] for s in steps if s.get("lane") == "fetch")
        put = next(s["id"] for s in steps if s.get("lane") == "offload")
        update = next(s["id"] for s in steps if s["op"] == "adamw" and s["id"] < put)
        here = next(t["id"] for t in tensors if t["kind"] == "param")
        for what, rule, change in (
            ("an update reads it", "host", lambda p: p[update]["reads"].append(p[put]["reads"][0])),
            ("a fetch of device memory", "host", lambda p: p[fetch].update(reads=[here])),
            ("an offload of host memory", "host", lambda p: p[put].update(reads=p[fetch]["reads"])),
            ("no transfer", "host", lambda p: p[fetch].pop("lane")),
            ("the other direction", "host", lambda p: p[fetch].update(lane="offload")),
            ("fewer bytes", "host", lambda p: p[fetch].update(sent_bytes=1)),
        ):
            wrong = copy.deepcopy(plan)
            change(wrong["schedule"])
            faults = replay.Replay(wrong).faults
            self.check(any(f.startswith(rule + ": ") for f in faults), f"{what}: {faults[:3]}")
        for what, rule, change in (
            ("more host memory", "host", lambda p: p["host"].update(bytes=p["host"]["bytes"] - 64)),
            ("in device memory", "peak", lambda p: [t.pop("host", 0) for t in p["tensors"]]),
            ("two homes", "alias", lambda p: p["tensors"][steps[put]["writes"][0]].pop("host")),
        ):
            wrong = copy.deepcopy(plan)
            change(wrong)
            faults = replay.Replay(wrong).faults
            self.check(any(f.startswith(rule + ": ") for f in faults), f"{what}: {faults[:3]}")
        early = [s for s in steps if s.get("begins") and s.get("lane")]
        self.check(len(early) > 3, f"{len(early)} transfers run beside computation")
        ends = {b: s["id"] for s in steps for b in s.get("waits", [])}
        for s in early:
            wrong = copy.deepcopy(plan)
            step = wrong["schedule"][ends[s["id"]]]
            step["reads"].append(s["writes"][0])
            faults = replay.Replay(wrong).faults
            self.check(any(f.startswith("wait: ") for f in faults), f"step {s['id']} is touched")

    def says(self, done, status, text, what):
        """One message, beside the summary of what was compiled."""
        said = [line for line in done.stderr.splitlines() if not line.startswith("offload: ")]
        self.check(
            done.returncode == status and text in done.stderr and len(said) == 1,
            f"{what}: {done.returncode}: {done.stderr}",
        )

    def refusals(self):
        model = self.path("m4.ck")
        for flags, status, text in (
            (["--offload", "states"], 2, "state|off, found 'states'"),
            (["--offload", ""], 2, "--offload: expected "),
            ([*OFFLOAD, "--host-memory", "0"], 2, "--host-memory: expected a size such as"),
            ([*OFFLOAD, "--host-memory", "x"], 2, "--host-memory: expected a size such as"),
            ([*OFFLOAD, "--host-memory", "-1GiB"], 2, "--host-memory: expected a size such as"),
            (
                ["--host-memory", "1GiB"],
                0,
                "warning: --host-memory does nothing without --offload",
            ),
            (
                [*OFFLOAD, "--optimizer", "sgd"],
                0,
                "warning: --offload does nothing with --optimizer sgd, adafactor or none",
            ),
            (
                [*OFFLOAD, "--host-memory", "500KiB"],
                0,
                "note: --host-memory 500.0 KiB: 2 of 6 optimizer states are offloaded",
            ),
        ):
            done = self.ckc(model, "-o", self.path("no.so"), *flags)
            self.says(done, status, text, flags)

    def folder(self):
        so = self.library("off", *OFFLOAD)
        bytes_ = ck.plan(self.path("off.json"))["host"]["bytes"]
        run = [so, *RUN, "--steps", 2, "--save", "no.st"]
        text = "cannot create a file for offloaded values"
        for folder in self.path("none"), self.path("x.npy"), "/proc", "":
            done = self.ckrun(*run, "--offload-dir", folder)
            self.says(done, 1, text, f"--offload-dir {folder}")
        os.mkdir(self.path("locked"), 0o500)
        if os.geteuid():
            self.says(self.ckrun(*run, "--offload-dir", "locked"), 1, text, "read-only folder")
        full = subprocess.run(
            [str(a) for a in (self.ckrun_path, *run, "--offload-dir", self.work)],
            cwd=self.work,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20)),
        )
        self.says(full, 1, f"cannot allocate {bytes_} bytes for offloaded values: ", "a full disk")
        self.check(not os.path.exists(self.path("no.st")), "a run that did not start left a file")
        os.mkdir(self.path("other"))
        self.must(self.ckrun(*run, "--offload-dir", "other"), "--offload-dir other")
        self.check(not os.listdir(self.path("other")), "a run leaves a file in --offload-dir")

    def started(self, so, folder, *more):
        """A run without an end, once it has saved."""
        save = self.path("run.st")
        if os.path.exists(save):
            os.unlink(save)
        child = subprocess.Popen(
            [str(a) for a in (self.ckrun_path, so, *RUN, "--steps", 10**9)]
            + ["--save", save, "--save-every", "5", "--offload-dir", folder, *more],
            cwd=self.work,
            stderr=subprocess.PIPE,
            text=True,
        )
        deadline = time.monotonic() + 60
        while not os.path.exists(save) and child.poll() is None and time.monotonic() < deadline:
            time.sleep(0.005)
        return child, save

    def whole(self, so, plain, save, what):
        """The checkpoint is one of a run, which goes on."""
        self.must(
            self.ckrun(plain, *RUN, "--steps", 0, "--resume", save, "--save", "again.st"), what
        )

    def stopped(self):
        """A file that is cut under the run, a kill, a signal."""
        plain, so = self.pair()
        folder = self.path("stop")
        os.mkdir(folder)
        child, save = self.started(so, folder)
        held = in_file(child.pid, folder)
        self.check(len(held) == 1, f"{held} in the folder")
        deadline = time.monotonic() + 60
        while child.poll() is None and time.monotonic() < deadline:
            for fd in held:
                try:
                    os.truncate(f"/proc/{child.pid}/fd/{fd}", 0)
                except OSError:
                    break  # it has ended
        text = child.communicate(timeout=60)[1]
        self.check(
            child.returncode == 1
            and text.count("\n") == 1
            and f"{folder}: cannot read offloaded values: the file is too short" in text,
            f"a file cut short: {child.returncode}: {text}",
        )
        self.whole(so, plain, save, "a file cut short: the checkpoint")
        child, save = self.started(so, folder)
        child.send_signal(signal.SIGKILL)
        child.communicate()
        self.check(not os.listdir(folder), f"after a kill: {os.listdir(folder)}")
        self.whole(so, plain, save, "a kill: the checkpoint")
        child, save = self.started(so, folder)
        child.send_signal(signal.SIGTERM)
        text = child.communicate(timeout=60)[1]
        self.check(
            child.returncode == 1 and "stopped after step" in text and not os.listdir(folder),
            f"a signal: {child.returncode}: {text} {os.listdir(folder)}",
        )
        step = int(text.split("stopped after step ")[1].split()[0].strip(",;.:"))
        self.must(self.ckrun(plain, *RUN, "--steps", step, "--save", "straight.st"), "straight")
        self.check(ck.content(save) == ck.content(self.path("straight.st")), "a signal: other bits")


def main():
    bench = Offload()
    for part in bench.names or PARTS:
        at = time.monotonic()
        getattr(bench, part)()
        print(f"{part}: {time.monotonic() - at:.1f} s", flush=True)
    bench.finish()


if __name__ == "__main__":
    main()
