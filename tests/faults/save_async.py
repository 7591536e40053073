#!/usr/bin/env python3
"""ckrun --save-async: checkpoints that a thread writes while training goes on.

    save_async.py CKC CKRUN FAULT_LIBRARY [PART...]

They have the bits of plain ones at the same step: for several optimizers, in 16 bits, with
adapters, averages and ranks in one process, with --keep and --save-best.  fault.c makes the disk
slow, so that steps run while a file is written.  A run that is killed then leaves the file before
or the new one, whole; a signal is followed by the usual last save.  If the disk is full, or the
n-th allocation, read or write fails, the run ends with the message of a plain one, and nothing is
torn or left over.  What memory is short for is refused before training.
"""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
import ck

GPT = (ck.SAMPLE, "--dim", "batch=2", "--dim", "seq=16")
MLP = os.path.join(ck.MODELS, "mlp-mse")
KILLS = int(os.environ.get("KILLS", 12))
THREE = ("--steps", 3, "--save-every", 1, "--threads", 1, "--quiet")
STEPS = 8  # of runs that are compared file by file
ONE_ARENA = {"MALLOC_ARENA_MAX": "1"}  # the others' address space comes and goes
SECONDS = 60  # in which what is waited for must happen


def step_of(data):
    head = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    return int(head["__metadata__"]["step"])


def at_step(data, step):
    """The checkpoint of an earlier step as if it were of this one."""
    end = 8 + int.from_bytes(data[:8], "little")
    head = data[8:end].replace(b'"step":"%d"' % step_of(data), b'"step":"%d"' % step)
    return len(head).to_bytes(8, "little") + head + data[end:]


def data_bytes(data):
    return len(data) - 8 - int.from_bytes(data[:8], "little")


def tasks():
    """{thread of this process: its CPU seconds}."""
    found = {}
    for task in os.listdir("/proc/self/task"):
        try:
            with open(f"/proc/self/task/{task}/schedstat") as f:
                found[task] = int(f.read().split()[0]) / 1e9
        except OSError:
            pass  # it has ended
    return found


class Saves(ck.Bench):
    def __init__(self):
        super().__init__()
        self.library = os.path.abspath(self.names.pop(0))
        self.text = self.path("text")
        with open(self.text, "wb") as f:
            f.write(bytes(random.Random(1).choices(b"abcdefgh \n", k=20000)))

    # ---- runs ----

    def compile(self, name, *args):
        so = self.path(name + ".so")
        return so if self.must(self.ckc(*args, "-o", so), name) else sys.exit(1)

    def gpt(self, name="gpt", *flags):
        return [self.compile(name, *GPT, *flags), "--data", self.text, "--tokens", "bytes"]

    def mlp(self, name="mlp", *flags):
        so = self.compile(name, MLP + ".onnx", *ck.model_flags(MLP)[0], *flags)
        return [so, "--inputs", MLP + ".inputs.safetensors"]

    def fault(self, what):
        return {
            "LD_PRELOAD": self.library,
            "CKC_FAULT_PROGRAM": os.path.basename(self.ckrun_path),
            "CKC_FAULT": what,
            "OMP_NUM_THREADS": "1",
        }

    def folder(self, name):
        """An empty one, beside which nothing is left over."""
        path = self.path(name)
        shutil.rmtree(path, ignore_errors=True)
        os.mkdir(path)
        return path

    def start(self, run, *more, fault="slow:200"):
        return subprocess.Popen(
            [self.ckrun_path, *(str(x) for x in (*run, *more))],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.work,
            env={**os.environ, **self.fault(fault)},
        )

    def every_step(self, run, name, *more, steps=STEPS, fault=None):
        """{step: its checkpoint} of a run that saves each."""
        at = os.path.join(self.folder(name), "s")
        done = self.ckrun(
            *(*run, "--steps", steps, "--save", at, "--save-every", 1, "--keep", steps),
            *more,
            env=self.fault(fault) if fault else None,
        )
        self.must(done, f"{name}, {more}")
        names = os.listdir(os.path.dirname(at))
        return {n.rpartition(".")[2]: ck.content(os.path.join(self.path(name), n)) for n in names}

    # ---- bits ----

    def compared(self, name, run, *more):
        plain = self.every_step(run, "plain", *more)
        for fault in None, "slow:20":
            beside = self.every_step(run, "beside", *more, "--save-async", fault=fault)
            self.check(len(plain) == STEPS + 1 and plain.keys() == beside.keys(), f"{name}: files")
            wrong = [k for k in plain if plain[k] != beside.get(k)]
            self.check(not wrong, f"{name}, {fault}: other bits in {wrong}")

    def bits(self):
        for optimizer in "adamw", "sgd", "lion", "adafactor":
            self.compared(optimizer, self.mlp(optimizer, "--optimizer", optimizer))
        for name, *flags in (
            ("bf16", "--dtype", "bf16"),
            ("lora", "--lora", "*.qkv.*=4"),
            ("ema", "--ema"),
            ("tp", "--tp", "2"),
            ("dp", "--dp", "2"),
            ("zero", "--dp", "2", "--zero", "3"),
        ):
            self.compared(name, self.gpt(name, *flags))

    def best(self):
        """--save-best, alone and beside --save."""
        run, found = self.gpt(), []
        for how in (), ("--save-async",):
            at = self.folder("best")
            more = ["--valid", self.text, "--valid-every", 2, "--save-best", f"{at}/b", *how]
            self.must(self.ckrun(*run, "--steps", 7, *more), f"--save-best {how}")
            alone = ck.content(f"{at}/b")
            more += ["--save", f"{at}/s", "--save-every", 2, "--keep", 2]
            self.must(self.ckrun(*run, "--steps", 7, *more), f"--save-best and --save {how}")
            found.append([alone, {n: ck.content(f"{at}/{n}") for n in sorted(os.listdir(at))}])
        self.check(found[0] == found[1], "--save-best: other bits")

    def resumed(self):
        """A run goes on in the file that it came from."""
        run, at = self.mlp(), self.folder("again")
        plain = self.every_step(run, "plain")
        save = ["--save", f"{at}/s", "--save-every", 1, "--save-async"]
        self.must(self.ckrun(*run, "--steps", 3, *save), "three steps")
        self.must(self.ckrun(*run, "--steps", STEPS, "--resume", f"{at}/s", *save), "all steps")
        self.check(ck.content(f"{at}/s") == plain[str(STEPS)], "resumed: other bits")

    # ---- while steps run ----

    def goes_on(self):
        """Steps end before the file of an earlier one is there."""
        at = self.folder("on")
        child = self.start(
            self.gpt(),
            *("--steps", 1000000, "--save", f"{at}/s", "--save-every", 5, "--save-async"),
            *("--log", f"{at}/log"),
            fault="slow:4000",
        )
        end, steps = time.monotonic() + SECONDS, 0
        while steps < 8 and time.monotonic() < end:
            time.sleep(0.01)
            if os.path.exists(f"{at}/log"):
                with open(f"{at}/log") as f:
                    steps = f.read().count('"loss"')
        self.check(steps >= 8 and not os.path.exists(f"{at}/s"), f"no file, but {steps} steps")
        child.kill()
        child.communicate()
        self.check(not os.path.exists(f"{at}/s"), "killed: a file was to be written for 2 s")

    def killed(self):
        """At any time there is a whole file, and it loads."""
        run, steps = self.gpt(), 40
        plain = self.every_step(run, "plain", steps=steps)
        rng, seen = random.Random(int(os.environ.get("SEED", 3))), set()
        for i in range(KILLS):
            at = self.folder("killed") + "/s"
            with open(at, "wb") as f:
                f.write(plain["1"])
            child = self.start(
                run, "--steps", steps, "--save", at, "--save-every", 1, "--save-async"
            )
            time.sleep(rng.uniform(0, 2))
            child.kill()
            child.communicate()
            data = ck.content(at)
            found = [k for k, x in plain.items() if x == data]
            if self.check(found, f"kill {i}: {len(data)} bytes of no step"):
                seen.add(found[0])
                done = self.ckrun(*run, "--resume", at, "--steps", int(found[0]) + 1)
                self.must(done, f"kill {i}: resume at {found[0]}")
        print(f"killed in {KILLS} runs, files of steps {sorted(seen, key=int)}")

    def killed_each(self):
        """Before each write, flush, rename and deletion, also without --save-async."""
        run, count = self.mlp(), self.path("count")
        plain = self.every_step(run, "plain")
        whole = [plain["1"], plain["2"], plain["3"]]

        def killed(fault, *how, env=()):
            at = self.folder("each") + "/s"
            with open(at, "wb") as f:
                f.write(plain["1"])
            words = (*run, "--resume", at, "--steps", 3, "--save", at, "--save-every", 1, *how)
            done = self.ckrun(*words, "--quiet", env={**self.fault(fault), **dict(env)})
            return done, at

        for how in (), ("--save-async",):
            self.must(killed("none:0", *how, env={"CKC_FAULT_COUNT": count})[0], f"{how}: count")
            with open(count) as f:
                changes, seen = int(f.read().split()[2]), set()
            for n in range(1, changes + 1):
                done, at = killed(f"kill:{n}", *how)
                data = ck.content(at)
                self.check(done.returncode < 0, f"{how}, change {n}: status {done.returncode}")
                if self.check(data in whole, f"{how}, change {n}: {len(data)} bytes of no step"):
                    seen.add(whole.index(data))
            self.check(len(seen) > 1, f"{how}: files of steps {seen}")
            print(f"{how}: killed before each of {changes} changes, files of steps {seen}")

    def stopped(self):
        """SIGTERM while a file is written: the state after the last step is saved."""
        run, steps = self.gpt(), 60
        plain = self.every_step(run, "plain", steps=steps)
        at = self.folder("stopped") + "/s"
        child = self.start(
            run, "--steps", steps, "--save", at, "--save-every", 1, "--save-async", fault="slow:500"
        )
        end = time.monotonic() + SECONDS
        while not os.path.exists(at) and time.monotonic() < end:
            time.sleep(0.01)
        time.sleep(0.1)
        child.send_signal(signal.SIGTERM)
        _, err = child.communicate()
        self.check(child.returncode == 1 and err.count("\n") == 1, f"stopped: {err}")
        last = err.strip().rpartition(" ")[2]
        self.check(ck.content(at) == plain.get(last), f"stopped after step {last}: another file")
        self.check(os.listdir(os.path.dirname(at)) == ["s"], "stopped: files are left over")

    def paced(self):
        """The thread takes 1 % of a core; who waits for the file gets it sooner."""
        os.environ["CKC_HOME"] = home = os.path.dirname(os.path.abspath(self.ckrun_path))
        if not os.path.exists(os.path.join(home, "libckr.so")):
            print("skipped: paced, which needs libckr.so")
            return
        sys.path.insert(0, os.path.join(ck.HERE, "..", "..", "frontend", "python"))
        import ckc
        import numpy as np

        so, at = self.wide(2048)[0], self.folder("paced") + "/s"
        with ckc.Trainer(so) as t:
            batch = {"x": np.ones((1, 2048), "f4")}
            t.step(**batch)
            t.save_async(at)  # allocates
            t.save_wait()
            before, used, begun = tasks(), 0, time.monotonic()
            t.save_async(at)
            while not t.save_done():
                t.step(**batch)
                used = max([used, *(x for k, x in tasks().items() if k not in before)])
            seconds = time.monotonic() - begun
            print(f"{os.path.getsize(at) / 1e6:.0f} MB: {seconds:.2f} s, {used:.3f} s of a core")
            self.check(0.1e-2 * seconds < used < 2e-2 * seconds, "paced: CPU time of the thread")
            begun = time.monotonic()
            t.save_async(at)
            t.step(**batch)
            t.save_wait()
            waited = time.monotonic() - begun
            self.check(waited < seconds / 2, f"paced: waited for {waited:.2f} s")

    # ---- faults ----

    def after(self, fault, run, *how):
        """(status, message, files) of a run with it."""
        at = self.folder("fault")
        with open(f"{at}/s", "wb") as f:
            f.write(b"from before")
        done = self.ckrun(
            *(*run, *THREE, "--save", f"{at}/s"),
            *how,
            env=self.fault(fault),
        )
        files = {name: ck.content(f"{at}/{name}") for name in os.listdir(at)}
        return done.returncode, done.stderr, files

    def full(self):
        """The message is that of a plain run, and the last file is whole."""
        run = self.mlp()
        plain = self.every_step(run, "plain")
        size = len(plain["1"])
        for kind, text in ("full", "No space left on device"), ("quota", "Disk quota exceeded"):
            for n in (1, size // 3, size - 1, 2 * size + 1, 3 * size - 2000):
                fault = f"{kind}:{n}"
                usual = self.after(fault, run)[1]
                status, told, files = self.after(fault, run, "--save-async")
                self.check(
                    status == 1 and told == usual and f"cannot write: {text}" in told,
                    f"{fault}: status {status}, {told!r}, expected {usual!r}",
                )
                whole = [b"from before", *plain.values()]
                self.check(
                    list(files) == ["s"] and files["s"] in whole,
                    f"{fault}: {[(k, len(x)) for k, x in files.items()]}",
                )

    def soon(self):
        """A run does not go on until its next save."""
        every, at = 1000000, self.folder("soon") + "/s"
        before = self.path("before")
        data = at_step(self.every_step(self.mlp(), "plain")["1"], every - 1)
        with open(before, "wb") as f:
            f.write(data)
        heads = 2 * (len(data) - data_bytes(data))  # the first when the run begins
        child = self.start(
            *(self.mlp(), "--resume", before, "--steps", 100 * every, "--save", at),
            *("--save-every", every, "--save-async"),
            fault=f"full:{heads + 100}",
        )
        try:
            _, told = child.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            child.kill()
            _, told = child.communicate()
        self.check(
            child.returncode == 1 and told.count("\n") == 1 and "No space left" in told,
            f"a full disk: status {child.returncode}, {told!r}",
        )

    def any_fault(self):
        """The n-th allocation, read or write."""
        run, count = self.mlp(), self.path("count")
        plain = self.every_step(run, "plain", steps=3)
        whole = [b"from before", *plain.values()]
        env = {**self.fault("none:0"), "CKC_FAULT_COUNT": count}
        at = self.path("count.s")
        save = [*THREE, "--save", at, "--save-async"]
        self.must(self.ckrun(*run, *save, env=env), "count")
        with open(count) as f:
            totals = [int(x) for x in f.read().split()]
        for kind, total in zip(("alloc", "io"), totals):
            for n in range(max(1, total - 40), total + 1):
                status, told, files = self.after(f"{kind}:{n}", run, "--save-async")
                # a run does without some memory, and notices each transfer
                ends = ((1, 1),) if kind == "io" else ((0, 0), (1, 1))
                self.check(
                    (status, told.count("\n")) in ends and "internal" not in told,
                    f"{kind}:{n}: status {status}, {told!r}",
                )
                self.check(
                    list(files) == ["s"]
                    and files["s"] in whole
                    and (status or files["s"] == plain["3"]),
                    f"{kind}:{n}: {[(k, len(x)) for k, x in files.items()]}",
                )

    # ---- words ----

    def wide(self, n=4096):
        """12 n^2 bytes of parameters and states."""
        with open(self.path("wide.ck"), "w") as f:
            f.write(
                f"graph @wide {{\n\tprops bound static canon\n\tinput %x: f32[1,{n}]\n"
                f"\tparam %w: f32[{n},{n}] = splat 0.5\n\t%y = matmul %x, %w\n"
                "\t%loss output = reduce_mean %y {axes=[0,1], keepdims=0}\n\tloss %loss\n}\n"
            )
        head = json.dumps(
            {"x": {"dtype": "F32", "shape": [1, n], "data_offsets": [0, 4 * n]}}
        ).encode()
        with open(self.path("wide.in"), "wb") as f:
            f.write(len(head).to_bytes(8, "little") + head + bytes(4 * n))
        return [self.compile("wide", self.path("wide.ck")), "--inputs", self.path("wide.in")]

    def address_space(self, run):
        """Bytes of it that a run takes."""
        child = subprocess.Popen(
            [self.ckrun_path, *(str(x) for x in (*run, "--steps", 10**9, "--quiet"))],
            cwd=self.work,
            env={**os.environ, **ONE_ARENA},
        )
        time.sleep(2)
        with open(f"/proc/{child.pid}/status") as f:
            most = next(int(line.split()[1]) for line in f if line.startswith("VmPeak"))
        child.kill()
        child.wait()
        return 1024 * most

    def memory(self):
        """--stats has the bytes; without them the run does not begin."""
        run, at = [*self.wide(), "--threads", 1], self.path("m.s")
        save = ["--steps", 2, "--save", at, "--save-every", 1]
        done = self.ckrun(*run, *save, "--save-async", "--stats")
        n = data_bytes(ck.content(at))
        self.check(f"copy for --save-async {n}\n" in done.stdout, f"--stats: {done.stdout}")
        limit = self.address_space(run) + n // 8
        for how, status in ((), 0), (("--save-async",), 1):
            limited = ["prlimit", f"--as={limit}", self.ckrun_path, *run, *save, *how]
            done = self.run(limited, env=ONE_ARENA)
            self.check(done.returncode == status, f"{how}: status {done.returncode}: {done.stderr}")
        self.check(
            f"saving beside training needs {n} bytes" in done.stderr
            and done.stderr.count("\n") == 1
            and "step" not in done.stdout,
            f"too little memory: {done.stderr}, {done.stdout}",
        )

    def options(self):
        run = self.mlp()
        for more, text in (
            (["--steps", 1, "--save", "o.s"], "--save-async needs --save-every or --save-best"),
            (["--against", run[0]], "--save-async cannot be used with --against"),
        ):
            done = self.ckrun(*run, *more, "--save-async")
            self.check(
                done.returncode == 2 and text in done.stderr,
                f"{more}: {done.returncode}: {done.stderr}",
            )


PARTS = (
    "bits",
    "best",
    "resumed",
    "goes_on",
    "killed",
    "killed_each",
    "stopped",
    "full",
    "soon",
    "paced",
    "any_fault",
    "memory",
    "options",
)


def main():
    bench = Saves()
    for name in bench.names or PARTS:
        at = time.monotonic()
        getattr(bench, name)()
        print(f"{name}: {time.monotonic() - at:.1f} s", flush=True)
    bench.finish()


if __name__ == "__main__":
    main()
