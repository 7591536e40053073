#!/usr/bin/env python3
"""Moving averages of parameters (ckc --ema), beside NumPy's float32 and beside runs without them.

    ema.py CKC CKRUN [--flags "..."] [PART...]

rules: optimizers of each kind of state, and every way to lay out a step.  After each step the
averages are to the bit lerp(average, parameter, 1 - decay) of the parameters that the checkpoints
of the steps hold, and losses, parameters and other states are to the bit those of a library without
averages.  Each parameter takes 4 bytes per element, padded.  skips: steps without an update.  use:
evaluation, validation and exports with averages are those of a library whose parameters have these
values.  processes: as virtual ranks, where mpirun is installed.  words: errors and
warnings.

--flags: more of them for ckc, for another target.
"""

import os
import shlex
import shutil
import sys

import numpy as np

import ck
import optimizers

sys.path.insert(0, ck.TOOLS)
import compare
import replay

STEPS, DECAY = 4, 0.75
GRAPH = """graph @g {{
	input %x: f32[{b},6]
	input %t: f32[{b},7]
	param %w1: f32[6,21] = splat 0
	param %b1: f32[21] = splat 0
	param %w2: f32[21,7] = splat 0
	param %scale: f32[] = splat 1
	const %loud: f32[] = {{{loud}}}
	%a = matmul %x, %w1
	%c = add %a, %b1
	%h = tanh %c
	%z = matmul %h, %w2
	%y output = mul %z, %scale
	%d = sub %y, %t
	%s = mul %d, %d
	%l: f32[] = reduce_mean %s {{axes=[0,1], keepdims=0}}
	%loss: f32[] output = mul %l, %loud
	loss %loss
}}
"""
NARROW = ["--dtype", "bf16", "--master-weights", "off", "--state-dtype", "bf16"]
# name: flags of ckc; samples of a replica's micro-batch are 24 / (replicas * micro-batches)
SETTINGS = {
    "sgd": ["--optimizer", "sgd"],
    "adamw": [],
    "lion": ["--optimizer", "lion", "--state-dtype", "bf16"],
    "adafactor": ["--optimizer", "adafactor"],
    "backward": ["--update-in-backward", "on"],
    "recompute": ["--recompute", "full"],
    "bf16": ["--dtype", "bf16"],
    "copies": ["--dtype", "bf16", "--resident-copies", "on"],
    "narrow": NARROW,
    "f16": ["--dtype", "f16"],
    "lora": ["--lora", "w*=2:4"],
    "accum": ["--grad-accum", 3],
    "two": ["--dp", 2],
    "two-early": ["--dp", 2, "--update-in-backward", "on"],
    "zero-1": ["--dp", 2, "--zero", 1],
    "zero-2": ["--dp", 3, "--zero", 2, "--grad-accum", 2],
    "zero-3": ["--dp", 3, "--zero", 3],
    "zero-early": ["--dp", 2, "--zero", 3, "--update-in-backward", "on"],
    "zero-narrow": ["--dp", 2, "--zero", 3, *NARROW],
    "zero-adafactor": ["--dp", 2, "--zero", 2, "--optimizer", "adafactor"],
    "zero-group": ["--dp", 4, "--zero", 3, "--zero-group", 2],
    "tp": ["--tp", 2],
    "tp-zero": ["--tp", 2, "--dp", 2, "--zero", 3],
}
USED = "adamw", "narrow", "copies", "lora", "two", "zero-1", "zero-3", "zero-narrow", "tp-zero"
USED_ON_GPU = "adamw", "narrow", "copies", "zero-1"


def value(flags, option, default):
    return flags[flags.index(option) + 1] if option in flags else default


def is_average(name):
    return ".ema." in name


def lerp(average, p, weight):
    """As torch.lerp in float32."""
    w, one = np.float32(weight), np.float32(1)
    return average + w * (p - average) if w < 0.5 else p - (p - average) * (one - w)


class Ema(ck.Bench):
    def __init__(self):
        flags = ck.option("--flags", "")
        super().__init__()
        self.flags = shlex.split(flags)
        rng = np.random.default_rng(7)
        shapes = {"w1": (6, 21), "b1": (21,), "w2": (21, 7), "scale": ()}
        self.init = self.path("init.st")
        weights = {k: rng.normal(size=s).astype("f4") for k, s in shapes.items()}
        optimizers.write_tensors(self.init, weights)
        self.data = self.path("data.safetensors")
        rows = {"x": (96, 6), "t": (96, 7)}
        arrays = {k: rng.normal(size=s).astype("f4") for k, s in rows.items()}
        optimizers.write_tensors(self.data, arrays)

    def compile(self, name, *more, loud=1, out=None):
        flags = [str(x) for x in [*SETTINGS[name], *more]]
        out = out or name
        n = int(value(flags, "--dp", 1)) * int(value(flags, "--grad-accum", 1))
        model, so, plan = (self.path(out + end) for end in (".ck", ".so", ".json"))
        with open(model, "w", encoding="utf-8") as f:
            f.write(GRAPH.format(b=24 // n, loud=loud))
        done = self.ckc(model, "-o", so, "--quiet", "--json", plan, *flags, *self.flags)
        self.must(done, f"compile {flags}")
        return so

    def train(self, so, name, *more, steps=STEPS, data=None, launch=()):
        """Losses, and the checkpoints behind all steps, the first one's being 1."""
        save, log = self.path(name), self.path("log")
        begin = () if "--resume" in more else ("--init", self.init)
        run = [*launch, self.ckrun_path, so, "--data", data or self.data, "--steps", steps, *begin]
        files = ["--save", save, "--save-every", 1, "--keep", 99, "--log", log]
        done = self.run([*run, *files, "--lr", 0.05, "--quiet", *more])
        self.must(done, f"{so} {more}")
        return ck.log_rows(log), {
            t: compare.load(f"{save}.{t}")
            for t in range(1, steps + 1)
            if os.path.exists(f"{save}.{t}")
        }

    def evaluate(self, so, *more, launch=()):
        run = [*launch, self.ckrun_path, "eval", so, "--data", self.data, *more]
        done = self.run([*run, "--log", self.path("eval")])
        self.must(done, f"eval {so} {more}")
        self.check("warning" not in done.stderr, f"eval {so} {more}: {done.stderr}")
        return ck.log_rows(self.path("eval"))[-1]["loss"]

    # ---- rules ----

    def follow(self, what, saved, updated, decay=DECAY):
        """The averages of all checkpoints; updated: which steps are updates."""
        average, first = {}, True
        for t, now in sorted(saved.items()):
            names = {k for k in now if is_average(k)}
            self.check(names, f"{what}: no averages")
            for k in names:
                p = now[k.split(".ema.")[1]]
                if updated[t]:
                    average[k] = p if first else lerp(average[k], p, 1 - decay)
                want = average.get(k, np.zeros_like(p))
                self.check(
                    now[k].dtype == np.float32 and now[k].tobytes() == want.tobytes(),
                    f"{what}: step {t}: {k} is off by {abs(now[k] - want).max()}",
                )
            first &= not updated[t]

    def account(self, name):
        """Of every state of a parameter's shape in float32 the average has the bytes."""
        plan, bare = (ck.plan(self.path(n + ".json")) for n in (name, name + "-bare"))
        for p in plan, bare:
            faults = replay.Replay(p).faults
            self.check(not faults, f"{name}: replay: {faults[:3]}")
        averages = [t for t in plan["tensors"] if is_average(t["name"]) and t["alias_of"] is None]
        want = sum(-(-4 * int(np.prod(t["shape"])) // 64) * 64 for t in averages)
        for key in "resident_bytes", "optimizer_bytes":
            more = plan["summary"][key] - bare["summary"][key]
            self.check(more == want > 0, f"{name}: {key} grows by {more}, expected {want}")
        elements = sum(int(np.prod(t["shape"])) for t in averages)
        params = {
            t["name"]: int(np.prod(t["shape"]))
            for t in plan["tensors"]
            if t["kind"] == "param" and t["alias_of"] is None and "frozen" not in t
        }
        if not {"--zero", "--lora"} & set(SETTINGS[name]):
            self.check(elements == sum(params.values()), f"{name}: averages of {elements} elements")

    def rule(self, name):
        so, bare = self.compile(name, "--ema"), self.compile(name, out=name + "-bare")
        rows, saved = self.train(so, "s", "--ema-decay", DECAY)
        self.follow(name, saved, {t: not r.get("skipped") for t, r in enumerate(rows, 1)})
        self.check(len(saved) == STEPS, f"{name}: checkpoints {sorted(saved)}")
        other, plain = self.train(bare, "b")
        self.check([r["loss"] for r in rows] == [r["loss"] for r in other], f"{name}: other losses")
        for t, tensors in plain.items():
            kept = {k: v for k, v in saved[t].items() if not is_average(k)}
            same = kept.keys() == tensors.keys() and all(
                kept[k].tobytes() == v.tobytes() for k, v in tensors.items()
            )
            self.check(same, f"{name}: step {t}: other parameters or states")
        self.account(name)
        self.train(so, "r", "--ema-decay", DECAY, "--threads", 1, steps=2)
        self.train(so, "e", "--ema-decay", DECAY, "--resume", self.path("r.2"))
        self.check(
            ck.tensors(self.path("e")) == ck.tensors(self.path("s")),
            f"{name}: a resumed run ends elsewhere",
        )

    def rules(self):
        for name in SETTINGS:
            self.rule(name)
        so = self.path("adamw.so")
        _, saved = self.train(so, "s")
        self.follow("the default decay", saved, dict.fromkeys(saved, True), 0.999)
        _, saved = self.train(so, "s", "--ema-decay", 0)
        self.follow("decay 0", saved, dict.fromkeys(saved, True), 0)

    # ---- skips ----

    def skips(self):
        """Rows with NaN, in a data set of four batches, the first one's too; gradients of f16 that
        overflow."""
        so = self.compile("adamw", "--ema")
        raw = compare.load(self.data)
        for seed in range(1, 9):
            x = raw["x"].copy()
            x[seed * 11] = np.nan
            bad = self.path("bad.safetensors")
            optimizers.write_tensors(bad, {"x": x, "t": raw["t"]})
            rows, saved = self.train(
                so, "s", "--ema-decay", DECAY, "--on-nan", "skip", "--seed", seed, data=bad
            )
            left_out = [t for t, r in enumerate(rows, 1) if r.get("skipped")]
            self.check(len(left_out) == 1, f"seed {seed}: steps {left_out} are skipped")
            self.follow(f"skipped {left_out}", saved, {t: t not in left_out for t in saved})
        so = self.compile("f16", "--ema", loud=2)
        rows, saved = self.train(so, "s", "--ema-decay", DECAY, steps=8)
        updated = {t: not r.get("skipped") for t, r in enumerate(rows, 1)}
        self.check(not updated[1] and any(updated.values()), f"f16: updates {updated}")
        self.follow("f16", saved, updated)

    # ---- use ----

    def averages_of(self, checkpoint, path):
        """A file of weights that are the averages, as a library can hold them."""
        now = compare.load(checkpoint)
        weights = {k: v for k, v in now.items() if not k.startswith("adamw.")}
        for k in now:
            if is_average(k):
                weights[k.split(".ema.")[1]] = now[k]
        optimizers.write_tensors(path, {k: np.asarray(v, "f4") for k, v in weights.items()})

    def use(self):
        for name in USED_ON_GPU if self.flags else USED:
            self.use_one(name)
        self.exported()
        self.evaluated()

    def use_one(self, name):
        so = self.compile(name, "--ema")
        valid = ("--valid", self.data, "--valid-every", 2, "--ema-decay", DECAY)
        rows, plain = self.train(so, "s", *valid)
        averaged, saved = self.train(so, "a", *valid, "--ema", "--save-best", self.path("best"))
        for t in saved:
            same = ck.tensors(self.path(f"s.{t}")) == ck.tensors(self.path(f"a.{t}"))
            self.check(same, f"{name}: step {t}: validation by averages changes the run")
        for t in 2, 4:
            at, weights = self.path(f"s.{t}"), self.path("averages.st")
            self.averages_of(at, weights)
            right = self.evaluate(so, "--init", weights)
            self.check(
                averaged[t - 1]["valid_loss"] == right != rows[t - 1]["valid_loss"],
                f"{name}: validation {averaged[t - 1]}, by these weights {right}",
            )
            for option in "--resume", "--init":
                got = self.evaluate(so, option, at, "--ema")
                self.check(got == right, f"{name}: eval {option} {got}, by these weights {right}")
        best = ck.tensors(self.path("best"))
        same = [t for t in saved if best == ck.tensors(self.path(f"a.{t}"))]
        self.check(same, f"{name}: --save-best is the state behind no step")

    def exported(self):
        weights = {"w": np.linspace(-1, 1, 6, dtype="f4").reshape(2, 3)}
        model, inputs = self.path("m.onnx"), self.path("i.st")
        optimizers.make_model(model, weights)
        optimizers.write_tensors(inputs, {"x_w": np.ones((2, 3), "f4")})
        so, end, onnx = (self.path(n) for n in ("m.so", "end", "avg.onnx"))
        done = self.ckc(model, "-o", so, "--ema", "--train", "w", "--quiet", *self.flags)
        self.must(done, "ONNX")
        run = ("--inputs", inputs, "--ema-decay", DECAY, "--quiet")
        done = self.ckrun(so, *run, "--steps", 3, "--ema", "--save", end, "--export-onnx", onnx)
        self.must(done, "export")
        want = compare.load(end)["adamw.ema.w"]
        self.check(want.tobytes() in ck.content(onnx), "the ONNX file does not hold the averages")
        self.check(
            compare.load(end)["w"].tobytes() not in ck.content(onnx), "it holds the parameters"
        )

    def evaluated(self):
        """By a library that trains nothing, and has no states."""
        self.train(self.compile("adamw", "--ema"), "s")
        still, weights = self.compile("adamw", "--forward-only", out="still"), self.path("avg.st")
        self.averages_of(self.path("s"), weights)
        plain, right = (self.evaluate(still, "--init", x) for x in (self.path("s"), weights))
        got = self.evaluate(still, "--resume", self.path("s"), "--ema")
        self.check(got == right != plain, f"forward only: {got}, by these weights {right}")

    # ---- processes ----

    def processes(self):
        """Ranks that hold shards of averages exchange them with parameters."""
        module = os.path.join(os.path.dirname(self.ckrun_path), "ckr_mpi.so")
        if not shutil.which("mpirun") or not os.path.exists(module):
            print("skipped: processes, which need mpirun and ckr_mpi.so")
            return
        # the leak checker sees Open MPI's memory
        leaks = ("-x", "ASAN_OPTIONS=detect_leaks=0")
        launch = ("mpirun", "--allow-run-as-root", "--oversubscribe", *leaks, "-n", "2")
        valid = ("--valid", self.data, "--valid-every", 2, "--ema", "--ema-decay", DECAY)
        for name in "zero-1", "zero-narrow", "tp":
            so = self.compile(name, "--ema")
            virtual, _ = self.train(so, "v", *valid)
            apart, _ = self.train(so, "p", *valid, launch=launch)
            for row, other in zip(virtual, apart):
                keys = [k for k in row if k.endswith("loss")]
                same = [row[k] for k in keys] == [other.get(k) for k in keys]
                self.check(same, f"{name}: processes {other}, virtual ranks {row}")
            same = ck.tensors(self.path("v")) == ck.tensors(self.path("p"))
            self.check(same, f"{name}: other checkpoints of processes")
            read = ("--resume", self.path("v"), "--ema")
            one, two = self.evaluate(so, *read), self.evaluate(so, *read, launch=launch)
            self.check(one == two, f"{name}: eval of processes {two}, of virtual ranks {one}")

    # ---- words ----

    def says(self, done, status, *words):
        text = done.stderr + done.stdout
        self.check(
            done.returncode == status and all(w in text for w in words),
            f"expected {words}, found {done.returncode}: {text.strip()[-400:]}",
        )

    def words(self):
        so, bare = self.compile("adamw", "--ema"), self.compile("adamw", out="bare")
        run = ("--data", self.data, "--steps", 1, "--init", self.init)
        self.train(bare, "b", steps=1)
        for lib in so, bare:
            more = ("--ema-decay", 1)
            self.says(self.ckrun(lib, *run, *more), 1, "ema-decay must be at least 0 and below 1")
        self.says(
            self.ckrun(bare, *run, "--ema-decay", 0.9),
            0,
            "warning: --ema-decay has no effect: the library keeps no averages",
            "ckc --ema",
        )
        self.says(
            self.ckrun(so, *run, "--ema"),
            0,
            "--ema has no effect: nothing is validated or exported",
        )
        self.says(self.ckrun(bare, *run, "--ema"), 1, "keeps no moving averages", "ckc --ema")
        again = ("--data", self.data, "--steps", 2, "--resume", self.path("b"))
        self.says(
            self.ckrun(so, *again),
            1,
            "4 of 12 tensors of optimizer state are missing",
            "the run kept no moving averages",
            "compile without --ema",
        )
        self.train(so, "a", steps=2)  # after one step averages are the parameters
        again = ("--data", self.data, "--steps", 3, "--resume", self.path("a"))
        done = self.ckrun(bare, *again)
        self.says(done, 0, "4 of 16 tensors are not used by the model: 'adamw.ema.")
        self.check("constant" not in done.stderr, f"averages are no constants: {done.stderr}")
        evaluate = ("eval", so, "--data", self.data, "--ema")
        self.says(self.ckrun(*evaluate), 2, "--ema needs --resume or --init")
        self.says(
            self.ckrun(*evaluate, "--init", self.path("b")), 1, "no moving averages of parameters"
        )
        model = self.path("adamw.ck")
        for more, why in (
            (("--optimizer", "none"), "nothing is updated"),
            (("--forward-only",), "nothing is trained"),
        ):
            done = self.ckc(model, "--plan-only", "--ema", *more)
            self.says(done, 0, "--ema does nothing", why)
        done = self.ckc(model, "--plan-only", "--ema", "--memory-budget", 1000)
        self.says(done, 1, "no moving averages of parameters; try: the same without --ema")


def main():
    ema = Ema()
    for part in ema.names or ["rules", "skips", "use", "processes", "words"]:
        getattr(ema, part)()
    ema.finish()


if __name__ == "__main__":
    main()
