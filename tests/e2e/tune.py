#!/usr/bin/env python3
"""Fine-tuning: weights of other files, rates and decay by parameter, adapters.

    tune.py CKC CKRUN

What is expected is written down here, in double precision, from the formulas.
"""

import json
import os
import pickle
import re
import sys
import zipfile

import numpy as np

import ck
import optimizers

sys.path.insert(0, os.path.join(ck.HERE, "..", "runtime"))
import files

TWO = """graph @two {
	input %x: f32[2,3]
	param %enc.a.weight: f32[3,4] = {%s}
	param %enc.b.weight: f32[4,4] = {%s}
	param %head.weight: f32[4,2] = {1, 2, 3, 4, 5, 6, 7, 8}
	%p = matmul %x, %enc.a.weight
	%q = matmul %p, %enc.b.weight
	%r = matmul %q, %head.weight
	%loss: f32[] output = reduce_sum %r {axes=[0,1], keepdims=0}
}
""".replace("{%s}", "{" + ", ".join(["1"] * 12) + "}", 1).replace(
    "{%s}", "{" + ", ".join(["1"] * 16) + "}"
)
A, B, HEAD = [0.5, -1, 2, 0.25] * 3, [1, 0.5, -0.25, 2] * 4, [3.0] * 8
X = [1, 2, 3, -1, -2, 0.5]
WEIGHTS = {
    "enc.a.weight": ("F32", [3, 4], A),
    "enc.b.weight": ("F32", [4, 4], B),
    "head.weight": ("F32", [4, 2], HEAD),
}


def loss_of(a, b, head, x=X):
    """Of @two."""

    def times(p, q, n, k, m):
        return [
            sum(p[i * k + l] * q[l * m + j] for l in range(k)) for i in range(n) for j in range(m)
        ]

    return sum(times(times(times(x, a, 2, 3, 4), b, 2, 4, 4), head, 2, 4, 2))


class Init:
    """--init of files that differ from the model."""

    def __init__(self, bench):
        self.bench = bench
        self.so, self.log = bench.path("two.so"), bench.path("log")
        source = bench.path("two.ck")
        with open(source, "w") as f:
            f.write(TWO)
        files.st_write(bench.path("x.st"), {"x": ("F32", [2, 3], X)})
        bench.must(bench.ckc(source, "-o", self.so, "--optimizer", "sgd", "--quiet"), "two")

    def start(self, path, *flags):
        return self.bench.ckrun(
            self.so,
            "--inputs",
            self.bench.path("x.st"),
            "--init",
            self.bench.path(path),
            "--steps",
            1,
            "--log",
            self.log,
            *flags,
        )

    def loads(self, path, a, b, head, what, *flags, says=None):
        done = self.start(path, *flags)
        if self.bench.must(done, what):
            want = loss_of(a, b, head)
            got = ck.losses(self.log)[0]
            self.bench.check(
                abs(got - want) <= 1e-5 * abs(want), f"{what}: loss {got}, expected {want}"
            )
            self.bench.check(
                not says or says in done.stdout, f"{what}: expected '{says}' in {done.stdout}"
            )

    def refuses(self, path, what, *flags, says, status=1):
        done = self.start(path, *flags)
        self.bench.check(
            done.returncode == status and all(s in done.stderr for s in says),
            f"{what}: expected {says}, found {done.stderr[:500]}",
        )

    def mapped(self):
        path, under = self.bench.path, {"model." + k: v for k, v in WEIGHTS.items()}
        files.st_write(path("under.st"), under)
        self.refuses(
            "under.st",
            "another prefix",
            says=[
                "3 of 3",
                "missing; the first is 'enc.a.weight'; the file has 3 of 3 tensors under other names; try: --init-map 'model.='\n",
            ],
        )
        self.loads("under.st", A, B, HEAD, "a prefix taken away", "--init-map", "model.=")
        files.st_write(
            path("bare.st"), {k[4:] if k.startswith("enc.") else k: v for k, v in WEIGHTS.items()}
        )
        self.refuses(
            "bare.st",
            "names without a prefix",
            says=[
                "2 of 3",
                "; the file has 2 of 3 tensors under other names; try: --init-map '=enc.' or ",
                " --init-partial\n",
            ],
        )
        self.loads(
            "bare.st",
            A,
            B,
            HEAD,
            "two mappings",
            "--init-map",
            "a.=enc.a.",
            "--init-map",
            "b.=enc.b.",
        )
        files.st_write(path("body.st"), {k.replace("enc.", "body."): v for k, v in WEIGHTS.items()})
        self.refuses(
            "body.st",
            "two other names",
            says=[
                "2 of 3",
                "; the file has 2 of 3 tensors under other names; try: --init-map 'body.=enc.'\n",
            ],
        )
        self.loads("body.st", A, B, HEAD, "what that says", "--init-map", "body.=enc.")
        # of mappings that fit a name the last counts
        files.st_write(
            path("deep.st"),
            {
                "m.x.a.weight": WEIGHTS["enc.a.weight"],
                "m.x.b.weight": WEIGHTS["enc.b.weight"],
                "m.head.weight": WEIGHTS["head.weight"],
            },
        )
        self.loads(
            "deep.st",
            A,
            B,
            HEAD,
            "the last mapping",
            "--init-map",
            "m.=",
            "--init-map",
            "m.x.=enc.",
        )
        both = dict(under, **{"ema." + k: v for k, v in WEIGHTS.items()})
        files.st_write(path("both.st"), both)
        self.refuses("both.st", "two prefixes", says=["--init-map 'model.=' or --init-map 'ema.='"])
        self.refuses(
            "under.st",
            "an idle mapping",
            "--init-map",
            "no.=",
            says=["no tensor name begins with 'no.'", "model.enc.a.weight"],
        )
        self.refuses(
            "both.st",
            "two of one name",
            "--init-map",
            "model.=",
            "--init-map",
            "ema.=",
            says=["two arrays are called"],
        )
        self.refuses("under.st", "no mapping", "--init-map", "model.", says=["OLD=NEW"], status=2)
        self.refuses("x.st", "nothing alike", says=["3 of 3", "--init-partial"])
        # a head of another shape, or none, beside another prefix: the line to type is whole
        other = dict(under, **{"model.head.weight": ("F32", [4, 5], [1.0] * 20)})
        files.st_write(path("other.st"), other)
        self.refuses(
            "other.st",
            "a prefix and another shape",
            says=[
                "3 of 3",
                "; the file has 3 of 3 tensors under other names, 1 with another shape; try: --init-map 'model.=' --init-skip 'head.weight'\n",
            ],
        )
        self.loads(
            "other.st",
            A,
            B,
            range(1, 9),
            "what that says",
            "--init-map",
            "model.=",
            "--init-skip",
            "head.weight",
        )
        files.st_write(path("body.st"), {k: v for k, v in under.items() if "head" not in k})
        self.refuses(
            "body.st",
            "a prefix and no head",
            says=[
                "3 of 3",
                "; the file has 2 of 3 tensors under other names; try: --init-map 'model.=' --init-partial\n",
            ],
        )
        self.loads(
            "body.st",
            A,
            B,
            range(1, 9),
            "what that says",
            "--init-map",
            "model.=",
            "--init-partial",
        )

    def partial(self):
        path = self.bench.path
        files.st_write(path("part.st"), {k: v for k, v in WEIGHTS.items() if k != "head.weight"})
        self.refuses("part.st", "a part", says=["1 of 3", "'head.weight'", "--init-partial"])
        self.loads(
            "part.st",
            A,
            B,
            range(1, 9),
            "a part is enough",
            "--init-partial",
            says="1 of 3 parameters and buffers keep their compiled values: head.weight\n",
        )
        files.st_write(
            path("wide.st"), dict(WEIGHTS, **{"head.weight": ("F32", [4, 5], [1.0] * 20)})
        )
        self.refuses(
            "wide.st",
            "another shape",
            "--init-partial",
            says=["head.weight", "f32[4,2]", "f32[4,5]"],
        )
        self.loads(
            "wide.st",
            A,
            B,
            range(1, 9),
            "a head of another shape",
            "--init-skip",
            "head.*",
            says="head.weight",
        )
        self.refuses(
            "wide.st",
            "an idle glob",
            "--init-skip",
            "haed.*",
            says=["'haed.*' matches no parameter"],
        )

    def several(self):
        """Files that hold all together: of two of one name the later."""
        path, two = (
            self.bench.path,
            {k: (v[0], v[1], [2 * x for x in v[2]]) for k, v in WEIGHTS.items()},
        )
        part = lambda of, *names: {k: of[k] for k in of if k.split(".")[-2] in names}
        files.st_write(path("ab.st"), part(WEIGHTS, "a", "b"))
        files.st_write(path("bh.st"), part(two, "b", "head"))
        files.st_write(path("h.st"), part(WEIGHTS, "head"))
        files.st_write(
            path("under.st"), {"model." + k: v for k, v in part(WEIGHTS, "a", "b").items()}
        )
        self.loads("ab.st", A, B, HEAD, "two files", "--init", path("h.st"))
        self.loads(
            "ab.st",
            A,
            two["enc.b.weight"][2],
            two["head.weight"][2],
            "b of the later",
            "--init",
            path("bh.st"),
        )
        self.loads(
            "bh.st",
            A,
            B,
            two["head.weight"][2],
            "b of the later, turned round",
            "--init",
            path("ab.st"),
        )
        self.loads(
            "ab.st",
            A,
            B,
            two["head.weight"][2],
            "b of the later, which was given before, too",
            "--init",
            path("bh.st"),
            "--init",
            path("ab.st"),
        )
        done = self.start("ab.st", "--init", path("bh.st"))
        self.bench.check(
            "ab.st: 'enc.b.weight' is also in a later file, which takes precedence\n" in done.stderr
            and "bh.st:" not in done.stderr,
            done.stderr,
        )
        self.loads(
            "under.st",
            A,
            B,
            HEAD,
            "a mapping for one of them",
            "--init",
            path("h.st"),
            "--init-map",
            "model.=",
        )
        self.refuses(
            "under.st",
            "a mapping for none",
            "--init",
            path("h.st"),
            "--init-map",
            "no.=",
            says=["--init-map 'no.=': no tensor name in the 2 files begins with 'no.'\n"],
        )
        # h.st has the model's names and is not mapped
        self.refuses(
            "under.st",
            "a mapping for names of the model",
            "--init",
            path("h.st"),
            "--init-map",
            "head.=x.",
            "--init-map",
            "model.=",
            says=["h.st: --init-map 'head.=x.' changes nothing"],
        )
        self.refuses(
            "ab.st",
            "a glob for none",
            "--init",
            path("h.st"),
            "--init-skip",
            "haed.*",
            says=["and no tensor of the 2 files\n"],
        )
        self.refuses(
            "under.st",
            "names of one",
            "--init",
            path("h.st"),
            says=["under.st: 2 of 3", "--init-map 'model.='"],
        )
        self.refuses(
            "bh.st",
            "what none has",
            "--init",
            path("h.st"),
            says=["bh.st: 1 of 3 parameters and buffers are missing; the first is 'enc.a.weight'"],
        )
        self.loads(
            "bh.st",
            [1.0] * 12,
            two["enc.b.weight"][2],
            HEAD,
            "what none has",
            "--init",
            path("h.st"),
            "--init-partial",
            says="1 of 3 parameters and buffers keep",
        )
        self.refuses("bh.st", "a missing file", "--init", path("none.st"), says=["none.st"])
        files.st_write(path("nan.st"), {"head.weight": ("F32", [4, 2], [1.0, float("nan")] * 4)})
        done = self.start("ab.st", "--init", path("nan.st"), "--on-nan", "go")
        self.bench.check(
            "warning: --init: after step 0 'head.weight' is not finite: nan" in done.stderr,
            f"a NaN: {done.stderr}",
        )

    def shards(self):
        path, whole = self.bench.path, {"metadata": {"total_size": 144}, "weight_map": {}}
        for i, names in enumerate((["enc.a.weight"], ["enc.b.weight", "head.weight"])):
            files.st_write(path(f"model-{i}.safetensors"), {k: WEIGHTS[k] for k in names})
            whole["weight_map"].update({k: f"model-{i}.safetensors" for k in names})
        index = path("model.safetensors.index.json")

        def write(text):
            with open(index, "w") as f:
                f.write(text)

        write(json.dumps(whole, indent=2))
        self.loads(index, A, B, HEAD, "shards")
        write(json.dumps(whole, separators=(",", ":")))
        self.loads(index, A, B, HEAD, "shards, in one line")
        moved = dict(
            whole, weight_map=dict(whole["weight_map"], **{"head.weight": "model-0.safetensors"})
        )
        write(json.dumps(moved))
        self.refuses(
            index,
            "a tensor elsewhere",
            says=["tensor 'head.weight' is missing from its shard", "model-0.safetensors"],
        )
        for text, says in (
            ('{"weight_map": {"a": "../x"}}', "in the same directory"),
            ('{"weight_map": {"a": "x\\ny"}}', "in the same directory"),
            ('{"weight_map": {"a": "gone"}}', "gone"),
            ('{"weight_map": {"a": "model.safetensors.index.json"}}', "found an index of shards"),
            ('{"weight_map": {}}', "weight_map"),
            ('{"weight_map": [', "weight_map"),
            ("{", "weight_map"),
        ):
            write(text)
            self.refuses(index, text, says=[says])

    def pickles(self):
        path = self.bench.path
        with zipfile.ZipFile(path("net.pth"), "w") as z:
            z.writestr("archive/data.pkl", pickle.dumps({}, protocol=2))
        with open(path("old.bin"), "wb") as f:
            f.write(pickle.dumps({"a": [1.0]}, protocol=2))
        for name in "net.pth", "old.bin":
            stem = path(name.split(".")[0])
            self.refuses(
                name,
                name,
                says=[
                    "a pickle of torch.save",
                    "python3 -c",
                    f"'{path(name)}' '{stem}.safetensors'",
                ],
            )

    def run(self):
        self.mapped()
        self.partial()
        self.several()
        self.shards()
        self.pickles()


NET = """graph @net {{
	input %x: f32[{b},6]
	input %labels: i64[{b}]
	param %w1: f32[6,21] = splat 0
	param %b1: f32[21] = splat 0
	param %w2: f32[21,7] = splat 0
	param %scale: f32[] = splat 1
	%a = matmul %x, %w1
	%c = add %a, %b1
	%h = tanh %c
	%z = matmul %h, %w2
	%y = mul %z, %scale
	%l, _, _ = sce %y, %labels {{reduction=1, ignore=-100}}
	%loss: f32[] output = mul %l, %l
}}
"""
STEPS = 4
HYPER = {
    "sgd": [],
    "sgdm": ["--momentum", 0.8],
    "adam": [],
    "adamw": [],
    "lion": [],
    "adafactor": [],
}
RULES = {"sgdm": lambda *a: optimizers.sgdm(*a, momentum=0.8)}


class Groups:
    """--lr-scale and --decay: every optimizer by its formula, with a rate and a decay for each
    parameter."""

    # a 16-bit parameter is rounded at random; the shapes are cut over ranks
    SHAPES = {"enc.w": (4, 6), "enc.b": (6,), "head.w": (6, 2), "head.b": (2,)}
    FLAGS = [
        "--lr-scale",
        "*=0.5",
        "--lr-scale",
        "head.*=3",
        "--lr-scale",
        "enc.b=0",
        "--decay",
        "*.b=0",
        "--decay",
        "head.w=0.4",
    ]
    OWN = {"enc.w": (0.5, None), "enc.b": (0, 0), "head.w": (3, 0.4), "head.b": (3, 0)}
    LR, DECAY = 2e-2, 0.1

    def __init__(self, bench, flags=()):
        self.bench, self.flags = bench, list(flags)
        rng = np.random.default_rng(5)
        self.weights = {k: rng.normal(size=s).astype(np.float32) for k, s in self.SHAPES.items()}
        self.target = {k: rng.normal(size=s).astype(np.float32) for k, s in self.SHAPES.items()}
        optimizers.make_model(bench.path("g.onnx"), self.weights)
        optimizers.write_tensors(bench.path("g.st"), {"x_" + k: v for k, v in self.target.items()})

    def expected(self, optimizer, own):
        rule = RULES.get(optimizer, getattr(optimizers, optimizer))
        p = {k: v.astype(float) for k, v in self.weights.items()}
        state = {k: {} for k in p}
        for t in range(1, STEPS + 1):
            for k in p:
                factor, decay = own.get(k, (1, None))
                p[k] = rule(
                    p[k],
                    p[k] - self.target[k],
                    state[k],
                    t,
                    self.LR * factor,
                    self.DECAY if decay is None else decay,
                )
        return p

    def compile(self, optimizer, *flags):
        so = self.bench.path(f"g-{optimizer}.so")
        return (
            so
            if self.bench.must(
                self.bench.ckc(
                    self.bench.path("g.onnx"),
                    "-o",
                    so,
                    "--optimizer",
                    optimizer,
                    "--quiet",
                    *self.flags,
                    *flags,
                ),
                optimizer,
            )
            else None
        )

    def train(self, so, optimizer, *flags):
        return self.bench.ckrun(
            so,
            "--inputs",
            self.bench.path("g.st"),
            "--steps",
            STEPS,
            "--lr",
            self.LR,
            "--weight-decay",
            self.DECAY,
            "--save",
            self.bench.path("g.out"),
            *HYPER[optimizer],
            *flags,
        )

    def trial(self, optimizer, own, compiled, run, what):
        so = self.compile(optimizer, *compiled)
        done = so and self.train(so, optimizer, *run)
        what = f"{what}: {optimizer} {' '.join(self.flags)}"
        if not done or not self.bench.must(done, what):
            return ""
        got, want = files.st_read(self.bench.path("g.out"))[0], self.expected(optimizer, own)
        for k in want:
            far = abs(np.array(got[k][2]).reshape(want[k].shape) - want[k]).max()
            self.bench.check(far < 5e-6, f"{what}: {k} is off by {far}")
        return done.stdout

    def all(self, optimizer, compiled=(), run=()):
        told = self.trial(optimizer, self.OWN, compiled, [*self.FLAGS, *run], "groups")
        for line in (
            "--lr-scale '*=0.5': 4 parameters",
            "--lr-scale 'head.*=3': 2 parameters",
            "--lr-scale 'enc.b=0': 1 parameter\n",
            "--decay '*.b=0': 2 parameters",
        ):
            self.bench.check(line in told, f"{optimizer}: expected '{line}' in {told}")

    def ranks(self, optimizer):
        """Parameters and states that are cut go by the same numbers: as one rank, which formulas
        have been compared with."""
        rng, bench = np.random.default_rng(6), self.bench
        weights = {
            "w1": rng.normal(size=(6, 21)),
            "b1": rng.normal(size=21),
            "w2": rng.normal(size=(21, 7)),
            "scale": rng.normal(size=()),
        }
        optimizers.write_tensors(
            bench.path("r.st"), {k: v.astype(np.float32) for k, v in weights.items()}
        )
        optimizers.write_tensors(
            bench.path("in.st"),
            {"x": rng.normal(size=(4, 6)).astype(np.float32), "labels": np.array([0, 3, 6, 2])},
        )
        saved = {}
        for name, b, flags in (
            ("one", 4, []),
            ("two", 2, ["--dp", 2, "--zero", 1]),
            ("ranks", 2, ["--dp", 2, "--tp", 2, "--zero", 1]),
            ("cut", 4, ["--tp", 2]),
        ):
            so, out = bench.path(f"{name}-{optimizer}.so"), bench.path(name + ".out")
            with open(bench.path("r.ck"), "w") as f:
                f.write(NET.format(b=b))
            if bench.must(
                bench.ckc(
                    bench.path("r.ck"), "-o", so, "--optimizer", optimizer, "--quiet", *flags
                ),
                name,
            ) and bench.must(
                bench.ckrun(
                    so,
                    "--init",
                    bench.path("r.st"),
                    "--inputs",
                    bench.path("in.st"),
                    "--steps",
                    3,
                    "--lr",
                    0.01,
                    "--save",
                    out,
                    "--lr-scale",
                    "w1=5",
                    "--lr-scale",
                    "w2=0",
                    "--decay",
                    "w1=0.5",
                    "--decay",
                    "b1=3",
                    *HYPER[optimizer],
                ),
                name,
            ):
                saved[name] = {
                    k: np.array(v[2]) for k, v in files.st_read(out)[0].items() if k in weights
                }
        one = saved.pop("one")
        moved = {k: abs(one[k] - weights[k].astype(np.float32).ravel()).max() for k in weights}
        bench.check(moved["w2"] == 0 and moved["w1"] > 0.05, f"{optimizer}: moved by {moved}")
        for name, x in saved.items():
            far = max(abs(x[k] - one[k]).max() for k in one)
            bench.check(far < 2e-6, f"{optimizer} on {name}: off by {far}")

    def refuses(self):
        so, bench = self.compile("sgd"), self.bench
        for flags, status, says in (
            (["--lr-scale", "haed.*=2"], 1, "--lr-scale: 'haed.*' matches no trainable parameter"),
            (["--decay", "x=0"], 1, "--decay: 'x' matches no"),
            (["--lr-scale", "head.*"], 2, "GLOB=F"),
            (["--lr-scale", "head.*=-1"], 2, "GLOB=F"),
            (["--decay", "=1"], 2, "GLOB=F"),
        ):
            done = self.train(so, "sgd", *flags)
            bench.check(
                done.returncode == status and says in done.stderr, f"{flags}: {done.stderr}"
            )

    def run(self):
        for optimizer in HYPER:
            self.all(optimizer)
        # a decay of its own counts with --no-decay, too
        self.trial(
            "adamw",
            {"head.w": (1, 0.4), "enc.w": (1, 0), "enc.b": (1, 0), "head.b": (1, 0)},
            ["--no-decay", "*"],
            ["--decay", "head.w=0.4"],
            "no decay",
        )
        self.all("sgd", ["--update-in-backward", "on"])
        self.all("adamw", ["--grad-accum", 2])
        for optimizer in "sgd", "sgdm", "adamw", "lion":
            self.ranks(optimizer)
        self.all("adamw", run=["--check"])
        self.refuses()


class Lora:
    """ckc --lora: by hand with numpy, and what files hold of it."""

    RANK, ALPHA, LR = 3, 6, 0.05

    def __init__(self, bench, flags=()):
        self.bench, self.flags = bench, list(flags)
        rng = np.random.default_rng(7)
        self.base = {
            k: rng.normal(size=s).astype(np.float32)
            for k, s in (("w1", (6, 21)), ("b1", (21,)), ("w2", (21, 7)), ("scale", ()))
        }
        optimizers.write_tensors(bench.path("base.st"), self.base)
        self.x, self.labels = rng.normal(size=(4, 6)).astype(np.float32), np.array([0, 3, 6, 2])
        optimizers.write_tensors(bench.path("l.st"), {"x": self.x, "labels": self.labels})

    def library(self, name, *flags, b=4):
        text, so = self.bench.path(f"l{b}.ck"), self.bench.path(name + ".so")
        with open(text, "w") as f:
            f.write(NET.format(b=b))
        return (
            so
            if self.bench.must(
                self.bench.ckc(
                    text, "-o", so, "--optimizer", "sgd", "--quiet", *flags, *self.flags
                ),
                name,
            )
            else None
        )

    def lora(self, name, *flags, b=4):
        return self.library(name, "--lora", f"w?={self.RANK}:{self.ALPHA}", *flags, b=b)

    def run_it(self, so, steps, *flags, verb=()):
        done = self.bench.ckrun(
            *verb,
            so,
            "--inputs",
            self.bench.path("l.st"),
            "--log",
            self.bench.path("log"),
            "--quiet",
            *flags,
            *([] if verb else ["--steps", steps, "--lr", self.LR, "--weight-decay", 0]),
        )
        return ck.losses(self.bench.path("log")) if self.bench.must(done, f"{so} {flags}") else []

    def step(self, p, lora):
        """The loss, and an SGD step of the adapters in double precision."""
        s = self.ALPHA / self.RANK
        w = {k: p[k] + s * (lora[k][1] @ lora[k][0]).T for k in lora}
        h = np.tanh(self.x @ w["w1"] + p["b1"])
        z = h @ w["w2"]
        y = z * p["scale"]
        e = np.exp(y - y.max(1, keepdims=True))
        prob = e / e.sum(1, keepdims=True)
        ce = -np.log(prob[range(4), self.labels]).mean()
        dy = (prob - np.eye(7)[self.labels]) / 4 * 2 * ce  # the loss is the square
        dz = dy * p["scale"]
        da = (dz @ w["w2"].T) * (1 - h * h)
        for k, x, d in ("w1", self.x, da), ("w2", h, dz):
            a, b = lora[k]
            dw = (x.T @ d).T * s  # of B A
            lora[k] = (a - self.LR * b.T @ dw, b - self.LR * dw @ a.T)
        return ce * ce

    def arrays(self, path):
        return {
            k: np.array(v[2]).reshape(v[1])
            for k, v in files.st_read(self.bench.path(path))[0].items()
        }

    def formula(self):
        """Losses and adapters of four steps, and all files."""
        bench, path = self.bench, self.bench.path
        plain, so = self.library("plain"), self.lora("lora")
        first = self.run_it(plain, 1, "--init", path("base.st"))
        got = self.run_it(
            so,
            4,
            "--init",
            path("base.st"),
            "--save",
            path("all.st"),
            "--save-lora",
            path("lora.st"),
            "--save-merged",
            path("merged.st"),
        )
        bench.check(
            got and got[0] == first[0], f"the first loss is {got[:1]}, without adapters {first}"
        )
        begun, p = (
            self.arrays("lora.safetensors"),
            {k: v.astype(float) for k, v in self.base.items()},
        )
        lora = {k: (begun[k + ".lora_A.weight"], begun[k + ".lora_B.weight"]) for k in ("w1", "w2")}
        for k, (a, b) in lora.items():
            n = self.base[k].shape[0]
            bench.check(
                not b.any()
                and 0 < abs(a).max() <= 1 / np.sqrt(n)
                and abs(a).max() > 0.7 / np.sqrt(n),
                f"{k} begins with {a} {b}",
            )
        want = [self.step(p, lora) for _ in range(4)]
        bench.check(
            len(got) == 4 and np.allclose(got, want, rtol=2e-6), f"losses {got}, expected {want}"
        )
        saved, alone, merged = (
            self.arrays("all.st"),
            self.arrays("lora.st"),
            self.arrays("merged.st"),
        )
        bench.check(
            sorted(alone)
            == sorted(f"base_model.model.{k}.lora_{x}.weight" for k in lora for x in "AB"),
            f"adapters: {sorted(alone)}",
        )
        bench.check(sorted(merged) == sorted(self.base), f"merged: {sorted(merged)}")
        for k, (a, b) in lora.items():
            for x, v in ("A", a), ("B", b):
                bench.check(np.allclose(saved[f"{k}.lora_{x}.weight"], v, atol=2e-6), f"{k} {x}")
                bench.check(
                    (
                        alone[f"base_model.model.{k}.lora_{x}.weight"]
                        == saved[f"{k}.lora_{x}.weight"]
                    ).all(),
                    f"{k} {x}: alone",
                )
            bench.check(
                np.allclose(merged[k], p[k] + self.ALPHA / self.RANK * (b @ a).T, atol=3e-6),
                f"{k}: merged",
            )
        bench.check(
            all((saved[k] == self.base[k]).all() for k in self.base), "the base has changed"
        )
        return got

    def again(self):
        """Adapters go back beside the base, and merged weights into a library without."""
        bench, path = self.bench, self.bench.path
        so, base = path("lora.so"), path("base.st")
        on = self.run_it(so, 5, "--resume", path("all.st"))
        # the base lies beside the library
        files.st_write(
            path("lora.safetensors"),
            dict(files.st_read(path("lora.safetensors"))[0], **files.st_read(base)[0]),
        )
        bench.check(
            self.run_it(so, 1, "--init", path("lora.st")) == on[-1:], "adapters beside the base"
        )
        if other := self.library("other", "--lora", f"w?={self.RANK}:{2 * self.ALPHA}"):
            for how, file in (("--resume", "all.st"), ("--init", "lora.st")):
                done = bench.ckrun(
                    other, "--inputs", path("l.st"), "--steps", 9, "--lr", 0, how, path(file)
                )
                bench.check(
                    done.returncode == 1
                    and "the scales ALPHA/RANK of its adapters do not match" in done.stderr,
                    f"{how} of another ALPHA: {done.stderr}",
                )
        for wish in "w?=1000000000", "w?=2:1e39", "w?=0", "w?=2:-1":
            done = bench.ckc(path("l4.ck"), "-o", path("no.so"), "--lora", wish)
            bench.check(
                done.returncode == 2 and "RANK from 1 to 65536" in done.stderr,
                f"--lora {wish}: {done.stderr}",
            )
        done = bench.ckrun(
            path("plain.so"),
            "--inputs",
            path("l.st"),
            "--steps",
            1,
            "--init",
            path("merged.st"),
            "--init-map",
            "w=v.",
        )
        bench.check(
            done.returncode == 1 and "all are there" not in done.stderr,
            f"a guess beside a map: {done.stderr}",
        )
        part, _ = files.st_read(path("lora.st"))
        for name, left in (
            ("one of them", dict(list(part.items())[1:])),
            ("another model's", {"base_model.model.no.lora_A.weight": ("F32", [1, 1], [0.0])}),
        ):
            files.st_write(path("part.st"), left)
            done = bench.ckrun(
                so, "--inputs", path("l.st"), "--steps", 1, "--lr", 0, "--init", path("part.st")
            )
            bench.check(
                done.returncode == 1 and "lora_A" in done.stderr and "step 1" not in done.stdout,
                f"adapters, {name}: {done.stderr}",
            )
        far = abs(self.run_it(path("plain.so"), 1, "--init", path("merged.st"))[0] / on[-1] - 1)
        bench.check(far < 1e-6, f"merged weights are off by {far}")
        done = bench.ckrun(
            path("plain.so"),
            "--inputs",
            path("l.st"),
            "--steps",
            1,
            "--lr",
            0,
            "--save-lora",
            path("no.st"),
        )
        bench.check(
            done.returncode == 1
            and "--lora GLOB=RANK" in done.stderr
            and "step 1" not in done.stdout,
            f"no adapters: {done.stderr}",
        )

    def beside(self):
        """Files that PEFT reads: adapters, what --train trains beside them, and the configuration;
        --init takes them back, behind the base."""
        bench, path = self.bench, self.bench.path
        so, out = path("beside.so"), path("peft")
        os.makedirs(out, exist_ok=True)
        with open(path("two.ck"), "w") as f:
            f.write(TWO)
        files.st_write(path("x.st"), {"x": ("F32", [2, 3], X)})
        files.st_write(path("two.st"), WEIGHTS)
        lora = ["--lora", "enc.a.*=3:1.1", "--lora", "enc.b.*=2:5", "--train", "head.*"]
        bench.must(
            bench.ckc(
                path("two.ck"), "-o", so, "--optimizer", "sgd", "--quiet", *lora, *self.flags
            ),
            "beside",
        )
        run = lambda *more: bench.ckrun(
            so, "--inputs", path("x.st"), "--lr", "1e-4", "--log", path("log"), "--quiet", *more
        )
        adapters = os.path.join(out, "adapter_model.safetensors")
        bench.must(
            run(
                "--init",
                path("two.st"),
                "--steps",
                3,
                "--save-lora",
                adapters,
                "--save",
                path("two.all"),
            ),
            "beside: train",
        )
        got, saved = self.arrays(adapters), self.arrays("two.all")
        want = {
            f"base_model.model.{k}"
            for k in ("head.weight", *(f"enc.{m}.lora_{x}.weight" for m in "ab" for x in "AB"))
        }
        bench.check(
            set(got) == want
            and all((v == saved[k[len("base_model.model.") :]]).all() for k, v in got.items()),
            f"beside: {sorted(got)}",
        )
        bench.check((saved["head.weight"].ravel() != HEAD).any(), "beside: the head is not trained")
        with open(os.path.join(out, "adapter_config.json")) as f:
            told = json.load(f)
        want = dict(
            peft_type="LORA",
            r=3,
            lora_alpha=1.1,
            target_modules=["enc.a", "enc.b"],
            modules_to_save=["head"],
            rank_pattern={"enc.b": 2},
            alpha_pattern={"enc.b": 5},
            fan_in_fan_out=True,
            bias="none",
            lora_dropout=0,
        )
        bench.check(
            {k: told.get(k) for k in want} == want and len(os.listdir(out)) == 2, f"beside: {told}"
        )
        p = {k[len("base_model.model.") : -len(".weight")]: v for k, v in got.items()}
        merge = lambda m, base, rank, alpha: (
            np.array(base).reshape(-1, 4)
            + alpha / rank * (p[f"enc.{m}.lora_B"] @ p[f"enc.{m}.lora_A"]).T
        )
        a, b = merge("a", A, 3, 1.1), merge("b", B, 2, 5)
        x = np.array(X).reshape(2, 3)
        first = lambda *more: (
            ck.losses(path("log"))[0]
            if bench.must(run("--steps", 1, *more), f"beside {more}")
            else 0
        )
        for files_, head in (
            ([path("two.st"), adapters], p["head"]),
            ([adapters, path("two.st")], np.array(HEAD).reshape(4, 2)),
        ):
            loss, far = first(*sum((["--init", f] for f in files_), [])), (x @ a @ b @ head).sum()
            bench.check(abs(loss / far - 1) < 1e-5, f"beside: {files_} give {loss}, expected {far}")
        done = bench.ckrun(
            so, "--inputs", path("x.st"), "--steps", 1, "--init", path("two.st"), "--init", adapters
        )
        bench.check(
            "two.st: 'head.weight' is also in a later file, which takes precedence" in done.stderr,
            f"beside: {done.stderr}",
        )
        # a module that is trained in part is saved whole, as PEFT wants it
        with open(path("part.ck"), "w") as f:
            f.write(
                TWO.replace("\t%p =", "\tparam %head.bias: f32[2] = {0, 0}\n\t%p =").replace(
                    "matmul %q, %head.weight", "matmul %q, %head.weight, %head.bias"
                )
            )
        bench.must(
            bench.ckc(
                path("part.ck"),
                "-o",
                path("part.so"),
                "--quiet",
                "--lora",
                "enc.a.*=3",
                "--train",
                "head.bias",
                *self.flags,
            ),
            "a part of a module",
        )
        part = os.path.join(bench.path("part"), "adapter_model.safetensors")
        os.makedirs(os.path.dirname(part), exist_ok=True)
        bench.must(
            bench.ckrun(
                path("part.so"),
                "--inputs",
                path("x.st"),
                "--steps",
                1,
                "--quiet",
                "--save-lora",
                part,
            ),
            "a part of a module: train",
        )
        names = {k[len("base_model.model.") :] for k in self.arrays(part)}
        bench.check(
            names == {"enc.a.lora_A.weight", "enc.a.lora_B.weight", "head.weight", "head.bias"},
            f"a part of a module: {sorted(names)}",
        )
        # names of the base are looked for as without adapters
        files.st_write(path("under.st"), {"model." + k: v for k, v in WEIGHTS.items()})
        far = (x @ a @ b @ p["head"]).sum()
        bench.check(
            "; try: --init-map 'model.='\n" in run("--steps", 1, "--init", path("under.st")).stderr,
            "beside: the hint for another prefix",
        )
        loss = first("--init", path("under.st"), "--init", adapters, "--init-map", "model.=")
        bench.check(abs(loss / far - 1) < 1e-5, f"beside: mapped {loss}, expected {far}")
        # a file of PEFT's says nothing of scales; the configuration beside it does
        files.st_write(adapters, files.st_read(adapters)[0])
        for change, says in (
            ({}, None),
            (
                {"lora_alpha": 2.2},
                "scales the adapter of 'enc.a.weight' by 0.733333, but the library by 0.366667",
            ),
            ({"r": 4}, "scales the adapter of 'enc.a.weight' by"),
            (
                {"alpha_pattern": {"b": 6}},
                "scales the adapter of 'enc.b.weight' by 3, but the library by 2.5; compile with --lora 'GLOB=2:6' for it",
            ),
            ({"alpha_pattern": {}}, "scales the adapter of 'enc.b.weight' by"),
            ({"use_rslora": True}, "scales the adapter"),
            ({"r": "x"}, "not an adapter configuration"),
        ):
            with open(os.path.join(out, "adapter_config.json"), "w") as f:
                json.dump(dict(told, **change), f)
            done = run("--steps", 1, "--init", path("two.st"), "--init", adapters)
            bench.check(
                done.returncode == (says is not None) and (says or "") in done.stderr,
                f"beside, {change}: {done.stderr}",
            )
        # keys as PEFT takes them: regular expressions, of which the first that matches counts
        for keys in (
            ["b", "enc.b"],
            ["enc.b", "b"],
            [r".*\.b"],
            [r"^b", r"^enc\.b$"],
            ["e.*.b", "b"],
            ["nc.b", "enc_b"],
            [".nc.b"],
            ["c.b", "n.*"],
        ):
            scales = {k: 6.0 + i for i, k in enumerate(keys)}
            want = (
                next((x for k, x in scales.items() if re.match(rf"(.*\.)?({k})$", "enc.b")), 1.1)
                / 2
            )
            with open(os.path.join(out, "adapter_config.json"), "w") as f:
                json.dump(dict(told, alpha_pattern=scales), f)
            done = run("--steps", 1, "--init", path("two.st"), "--init", adapters)
            bench.check(
                f"'enc.b.weight' by {want:g}, " in done.stderr,
                f"beside, {keys}: expected {want}, found {done.stderr}",
            )
        for key in "enc.(a|b)", "b+", r"enc\.\w", "[ab]", "b?", "b{1}", "b.*?", "$b":
            for which in "alpha", "rank":
                with open(os.path.join(out, "adapter_config.json"), "w") as f:
                    json.dump(dict(told, **{f"{which}_pattern": {"none": 1, key: 5}}), f)
                done = run("--steps", 1, "--init", path("two.st"), "--init", adapters)
                bench.check(
                    done.returncode == 1
                    and f"adapter_config.json: {which}_pattern: key '{key}': expected the name of a module"
                    in done.stderr,
                    done.stderr,
                )
        os.unlink(os.path.join(out, "adapter_config.json"))
        few = os.path.join(out, "few.st")
        files.st_write(
            few, {k: v for k, v in files.st_read(adapters)[0].items() if "enc.b.lora_A" not in k}
        )
        done = run("--steps", 1, "--init", path("two.st"), "--init", few)
        bench.check(
            done.returncode == 1
            and "few.st: 1 of 7 parameters and buffers are missing; the first is 'enc.b.lora_A.weight'"
            in done.stderr,
            f"beside: {done.stderr}",
        )
        done = run("--steps", 1, "--init", path("two.st"), "--save-lora", path("none/a.st"))
        bench.check(
            done.returncode == 1 and "cannot write" in done.stderr, f"beside: {done.stderr}"
        )

    def states(self):
        """AdamW's states are of adapters, and of what --train names."""
        json_path = self.bench.path("adam.json")
        self.bench.must(
            self.bench.ckc(
                self.bench.path("l4.ck"),
                "--plan-only",
                "--lora",
                "w1=2",
                "--train",
                "scale",
                "--quiet",
                "--json",
                json_path,
            ),
            "states",
        )
        got = sorted(
            t["name"]
            for t in ck.plan(json_path)["tensors"]
            if t["kind"] == "state" and t["alias_of"] is None
        )
        want = sorted(
            f"adamw.{s}.{k}"
            for s in "mv"
            for k in ("w1.lora_A.weight", "w1.lora_B.weight", "scale")
        )
        self.bench.check(got == want, f"states: {got}")

    def elsewhere(self, want):
        """The same losses on ranks; near them in 16 bits."""
        for name, b, far, flags in (
            ("tp", 4, 1e-6, ["--tp", 2]),
            ("zero", 2, 1e-6, ["--dp", 2, "--zero", 1]),
            ("bf16", 4, 0.05, ["--dtype", "bf16"]),
            ("early", 4, 1e-6, ["--update-in-backward", "on"]),
        ):
            so = self.lora("lora-" + name, *flags, b=b)
            got = so and self.run_it(
                so,
                4,
                "--init",
                self.bench.path("base.st"),
                "--save-merged",
                self.bench.path("m.st"),
            )
            self.bench.check(
                got and np.allclose(got, want, rtol=far), f"{name}: {got}, expected {want}"
            )
            m, whole = self.arrays("m.st"), self.arrays("merged.st")
            self.bench.check(
                all(np.allclose(m[k], whole[k], atol=far) for k in whole), f"{name}: merged"
            )

    def exported(self, name, glob):
        """A real export: the first loss is that of the base, and the ONNX file holds merged
        weights."""
        bench, path = self.bench, self.bench.path
        stem = os.path.join(ck.MODELS, name)
        flags, inputs, log = ck.model_flags(stem)[0], stem + ".inputs.safetensors", path("log")

        def losses(so, *more):
            return (
                ck.losses(log)
                if bench.must(
                    bench.ckrun(so, "--inputs", inputs, "--log", log, "--quiet", *more),
                    f"{name} {more}",
                )
                else [0]
            )

        for model, so, extra in (
            (stem + ".onnx", "base.so", []),
            (stem + ".onnx", "tuned.so", ["--lora", glob]),
        ):
            bench.must(
                bench.ckc(model, "-o", path(so), "--quiet", "--dropout", "off", *flags, *extra),
                f"{name} {so}",
            )
        first = losses(path("base.so"), "--steps", 1)
        got = losses(
            path("tuned.so"),
            "--steps",
            4,
            "--lr",
            0.01,
            "--save",
            path("t.st"),
            "--export-onnx",
            path("t.onnx"),
        )
        bench.check(got[0] == first[0] and got[-1] < got[0], f"{name}: {got}, base {first}")
        on = losses(path("tuned.so"), "--steps", 5, "--resume", path("t.st"))
        bench.must(
            bench.ckc(path("t.onnx"), "-o", path("t.so"), "--quiet", "--dropout", "off", *flags),
            f"{name}: exported",
        )
        far = abs(losses(path("t.so"), "--steps", 1)[0] / on[-1] - 1)
        bench.check(far < 2e-6, f"{name}: the merged export is off by {far}")

    def refuses(self):
        for value in "w", "w=", "w=0", "w=2:0", "w=x", "=2", "w=2:":
            done = self.bench.ckc(self.bench.path("l4.ck"), "--plan-only", "--lora", value)
            self.bench.check(
                done.returncode == 2 and "GLOB=RANK" in done.stderr, f"{value}: {done.stderr}"
            )

    def run(self):
        losses = self.formula()
        self.again()
        self.beside()
        self.states()
        self.elsewhere(losses)
        self.exported("llama-dynamo", "*_proj.weight=4:8")
        self.exported("gpt2-ts14", "*.attn.*.weight=2")
        self.refuses()


def main():
    cuda = ck.option("--cuda", None)
    bench = ck.Bench()
    if cuda:
        for optimizer in HYPER:
            Groups(bench, ["--target", "cuda", "--nvcc", cuda]).all(optimizer)
        Lora(bench, ["--target", "cuda", "--nvcc", cuda]).formula()
        bench.finish()
    Init(bench).run()
    Groups(bench).run()
    Lora(bench).run()
    bench.finish()


if __name__ == "__main__":
    main()
