#!/usr/bin/env python3
"""ckrun --save DIR/ in runs that are killed, or whose disk is full.

    save_parts.py CKC CKRUN FAULT_LIBRARY [PART...]

A run over an older save is killed before each write, flush, rename and deletion that it makes, by
one process, by several, with --save-async, and with --keep: the folder then holds all of the old
save or all of the new one, and loads; the next save takes away what was left.  If the disk is full
or the n-th allocation, read or write fails, there is one message, and nothing is torn or left over.
"""

import concurrent.futures
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
import ck

MLP = os.path.join(ck.MODELS, "mlp-mse")
MPIRUN = ("mpirun", "--allow-run-as-root", "--oversubscribe")
FIRST, LAST = 2, 3  # steps of the older save and of the new one


class Faults(ck.Bench):
    def __init__(self):
        super().__init__()
        self.preload = os.path.abspath(self.names.pop(0))
        self.wholes, self.built = {}, {}

    def run_of(self, ranks):
        """Words that train as so many ranks."""
        if ranks not in self.built:
            so = self.path(f"m{ranks}.so")
            flags = [*ck.model_flags(MLP)[0], *(["--tp", ranks] if ranks > 1 else [])]
            self.must(self.ckc(MLP + ".onnx", *flags, "-o", so), f"tp {ranks}")
            self.built[ranks] = so
        so = self.built[ranks]
        return [self.ckrun_path, so, "--inputs", MLP + ".inputs.safetensors", "--threads", 1]

    def env(self, fault):
        return {
            "LD_PRELOAD": self.preload,
            "CKC_FAULT_PROGRAM": os.path.basename(self.ckrun_path),
            "CKC_FAULT": fault,
            "OMP_NUM_THREADS": "1",
        }

    def start(self, ranks, words, fault=None, victim=0, count=None):
        """A run; a fault is that of one process."""
        words = [*self.run_of(ranks), *words]
        env = self.env(fault) if fault else {}
        if count:
            env["CKC_FAULT_COUNT"] = count
        if ranks == 1:
            return self.run(words, env=env)
        line = [*MPIRUN]
        for i in range(ranks):
            mine = ["env", *(f"{k}={v}" for k, v in env.items())] if i == victim else []
            line += [*([":"] if i else []), "-n", 1, *mine, *words]
        return self.run(line)

    def merged(self, folder, what):
        """The file that its parts make."""
        with tempfile.TemporaryDirectory(dir=self.work) as at:
            out = os.path.join(at, "merged")
            done = self.run([self.ckrun_path, "merge", folder, "-o", out])
            return ck.content(out) if self.must(done, what) else None

    def whole(self, ranks, step):
        """The file of that step, by a plain save."""
        if (ranks, step) not in self.wholes:
            out = self.path("plain")
            self.must(self.start(ranks, ["--steps", step, "--save", out]), f"{ranks}: plain")
            self.wholes[ranks, step] = ck.content(out)
        return self.wholes[ranks, step]

    def old(self, ranks, name="s"):
        """A folder with the older save."""
        model = self.path(f"old{ranks}")
        if not os.path.exists(model):
            done = self.start(ranks, ["--steps", FIRST, "--save", model + "/"])
            self.must(done, f"{ranks}: the older save")
        at = self.path(name)
        shutil.rmtree(at, ignore_errors=True)
        os.mkdir(at)
        shutil.copytree(model, f"{at}/s")
        return f"{at}/s"

    def again(self, at, *how):
        """A run that goes on from the older save, and saves in its folder."""
        return ["--resume", at, "--steps", LAST, "--save", at + "/", "--quiet", *how]

    def changes(self, ranks, how, victim=0):
        """How many a run makes."""
        count, at = self.path("count"), self.old(ranks)
        done = self.start(ranks, self.again(at, *how), "none:0", victim, count)
        self.must(done, f"{ranks} {how}: count")
        with open(count) as f:
            return [int(x) for x in f.read().split()]

    # ---- killed ----

    def killed_at(self, ranks, n, how, victim=0):
        what = f"{ranks} ranks, {how}, process {victim} killed before change {n}"
        at = self.old(ranks, f"killed{n}")
        done = self.start(ranks, self.again(at, *how), f"kill:{n}", victim)
        found = self.merged(at, what)
        # either of two processes deletes an old part
        over = ranks > 1 and found == self.whole(ranks, LAST)
        self.check(done.returncode != 0 or over, f"{what}: status 0")
        steps = [s for s in (FIRST, LAST) if self.whole(ranks, s) == found]
        self.check(steps, f"{what}: neither save")
        self.kept(at, ranks, what)
        if steps and n % 3 == 0:  # takes long
            self.follows(at, ranks, what)
        return steps

    def kept(self, at, ranks, what):
        """A kept folder is one of the saves, or has no index."""
        folder = os.path.dirname(at)
        for name in os.listdir(folder):
            path = os.path.join(folder, name)
            if path != at and os.path.exists(f"{path}/complete.json"):
                found = self.merged(path, f"{what}: {name}")
                self.check(found == self.whole(ranks, int(name[2:])), f"{what}: {name}")

    def follows(self, at, ranks, what):
        done = self.start(ranks, ["--resume", at, "--steps", LAST + 1, "--save", at + "/"])
        self.must(done, f"{what}: the next run")
        self.check(len(os.listdir(at)) == ranks + 1, f"{what}: left over: {os.listdir(at)}")
        self.check(self.merged(at, what) == self.whole(ranks, LAST + 1), f"{what}: the next save")

    def killed(self):
        """One process."""
        for how in (
            (),
            ("--save-every", 1, "--save-async"),
            ("--save-every", 1, "--keep", 1),
        ):
            total = self.changes(1, how)[2]
            seen = set()
            for n in range(1, total + 1):
                seen.update(self.killed_at(1, n, how))
            self.check(seen == {FIRST, LAST}, f"{how}: saves {seen}")
            print(f"{how}: killed before each of {total} changes", flush=True)

    def killed_beside(self):
        """Either of two processes, which takes the other one along."""
        if not shutil.which("mpirun"):
            return
        for victim in range(2):
            total = self.changes(2, (), victim)[2]
            for step in FIRST, LAST, LAST + 1:
                self.whole(2, step)

            def killed(n, victim=victim):
                return self.killed_at(2, n, ("--comm-timeout", 20), victim)

            with concurrent.futures.ThreadPoolExecutor(4) as pool:  # they mostly wait
                seen = set().union(*pool.map(killed, range(1, total + 1)))
            self.check(seen == {FIRST, LAST}, f"process {victim}: saves {seen}")
            print(f"process {victim}: killed before each of {total} changes", flush=True)

    def killed_at_random(self):
        """At any time, while each step is saved."""
        rng, every = random.Random(7), ("--save-every", 1)
        for i in range(int(os.environ.get("KILLS", 10))):
            at = self.old(1)
            words = ["--resume", at, "--steps", 100000, "--save", at, *every, "--quiet"]
            how = ["--save-async"] if i % 2 else []
            child = subprocess.Popen(
                [str(x) for x in (*self.run_of(1), *words, *how)],
                env={**os.environ, **self.env("slow:20")},
                stdout=subprocess.DEVNULL,
            )
            time.sleep(rng.uniform(0.1, 1.5))
            child.kill()
            child.wait()
            out = self.path("go")
            done = self.start(1, ["--resume", at, "--steps", 0, "--save", out])
            self.must(done, f"kill {i}: --resume")
            self.check(self.merged(at, f"kill {i}") == ck.content(out), f"kill {i}: other bits")

    def read_beside(self):
        """Whoever reads a folder while a run saves there gets one of its saves."""
        at, seen = self.old(1), set()
        words = ["--resume", at, "--steps", 100000, "--save", at, "--save-every", 1, "--quiet"]
        child = subprocess.Popen([str(x) for x in (*self.run_of(1), *words)])
        for i in range(40):
            found = self.merged(at, f"read {i} beside a run")
            seen.add(hash(found))
        child.kill()
        child.wait()
        self.check(len(seen) > 3, f"{len(seen)} different saves were read")

    # ---- faults ----

    def faulty(self, ranks, fault, how=(), victim=0, ends=((1, 1),)):
        what = f"{ranks} ranks, {fault} {how}, process {victim}"
        at = self.old(ranks)
        done = self.start(ranks, self.again(at, *how), fault, victim)
        told = [x for x in done.stderr.splitlines() if x.startswith("ckrun: ")]
        self.check(
            (done.returncode, len(told)) in ends and not any("internal" in x for x in told),
            f"{what}: status {done.returncode}, {done.stderr!r}",
        )
        found = self.merged(at, what)
        self.check(
            found in (self.whole(ranks, FIRST), self.whole(ranks, LAST))
            and (done.returncode or found == self.whole(ranks, LAST)),
            f"{what}: torn",
        )
        # without memory, old parts stay until the next save
        self.check(
            len(os.listdir(at)) == ranks + 1 or (fault.startswith("alloc") and not done.returncode),
            f"{what}: left over: {os.listdir(at)}",
        )
        return told

    def full(self):
        """A disk without room, or a limit on the size of files."""
        size = len(self.whole(1, LAST))
        for how in (), ("--save-every", 1, "--save-async"):
            for kind, text in ("full", "No space left on device"), ("quota", "Disk quota exceeded"):
                for n in 1, 100, size // 2, size - 1:
                    told = self.faulty(1, f"{kind}:{n}", how)
                    self.check(told and f"cannot write: {text}" in told[0], f"{kind}:{n}: {told}")
        for victim in range(2) if shutil.which("mpirun") else ():
            for how in (), ("--save-every", 1, "--save-async"):
                for n in 1, size // 4:
                    told = self.faulty(2, f"full:{n}", how, victim)
                    self.check("No space left on device" in told[0], f"full:{n}: {told}")

    def any_fault(self):
        for how in (), ("--save-every", 1, "--save-async"):
            totals = self.changes(1, how)
            for kind, total, last in ("alloc", totals[0], 60), ("io", totals[1], 60):
                ends = ((1, 1),) if kind == "io" else ((0, 0), (1, 1))
                for n in range(max(1, total - last), total + 1):
                    self.faulty(1, f"{kind}:{n}", how, ends=ends)


PARTS = ("killed", "killed_beside", "killed_at_random", "read_beside", "full", "any_fault")


def main():
    bench = Faults()
    for name in bench.names or PARTS:
        at = time.monotonic()
        getattr(bench, name)()
        print(f"{name}: {time.monotonic() - at:.1f} s", flush=True)
    bench.finish()


if __name__ == "__main__":
    main()
