#!/usr/bin/env python3
"""Every optimizer over ten updates against its formula in double precision: decay, clipping,
parameters without decay, resuming.

    optimizers.py CKC CKRUN

The formulas are those of torch.optim (SGD, Adam, AdamW, Adafactor, which they were compared with)
and of the paper (Lion, algorithm 2). The loss is sum of (w - x)^2 / 2 over all parameters, so that
a gradient is w - x.
"""

import json
import os
import struct
import sys

import numpy as np

import ck
import wire

sys.path.insert(0, ck.TOOLS)
import compare
import replay

STEPS = 10
SHAPES = {
    "scalar": (),
    "bias": (37,),
    "matrix": (5, 7),
    "conv": (4, 3, 3, 3),
    "batch": (2, 3, 4),
    "tall": (300, 2),
    "wide": (3, 5000),
    "big": (130, 200),
}
NO_DECAY = "bias"
DEFAULTS = {
    "sgd": dict(lr=1e-3, decay=0.01),
    "sgdm": dict(lr=1e-3, decay=0.01, momentum=0.9),
    "adam": dict(lr=1e-3, decay=0),
    "adamw": dict(lr=1e-3, decay=0.01),
    "lion": dict(lr=1e-4, decay=0.01),
    "adafactor": dict(lr=1e-2, decay=0.01),
}


# ---- the formulas: p after step t (from 1) with gradient g; s: what the parameter keeps, empty at
# first


def sgd(p, g, s, t, lr, decay):
    return p - lr * (g + decay * p)


def sgdm(p, g, s, t, lr, decay, momentum, nesterov=False):
    g = g + decay * p
    s["m"] = momentum * s["m"] + g if s else g
    return p - lr * (g + momentum * s["m"] if nesterov else s["m"])


def adam(p, g, s, t, lr, decay, b1=0.9, b2=0.999, eps=1e-8):
    return adamw(p, g + decay * p, s, t, lr, 0, b1, b2, eps)


def adamw(p, g, s, t, lr, decay, b1=0.9, b2=0.999, eps=1e-8):
    s["m"] = b1 * s.get("m", 0) + (1 - b1) * g
    s["v"] = b2 * s.get("v", 0) + (1 - b2) * g * g
    return p * (1 - lr * decay) - lr * s["m"] / (1 - b1**t) / (np.sqrt(s["v"] / (1 - b2**t)) + eps)


def lion(p, g, s, t, lr, decay, b1=0.9, b2=0.99):
    m = s.get("m", np.zeros_like(p))
    c = b1 * m + (1 - b1) * g
    s["m"] = b2 * m + (1 - b2) * g
    s["near"] = np.minimum(
        s.get("near", np.inf), abs(c) / rms(c)
    )  # to a sign that rounding may turn
    return p - lr * (np.sign(c) + decay * p)


def adafactor(p, g, s, t, lr, decay, beta2_decay=-0.8, eps=2.0**-23, eps2=1e-3, threshold=1.0):
    fresh, rate = t**beta2_decay, min(lr, t**-0.5) * max(eps2, rms(p))

    def mean(name, new):
        s[name] = s.get(name, 0) * (1 - fresh) + fresh * new
        return s[name]

    if p.ndim < 2:
        v = mean("v", g * g)
    else:
        row, col = mean("row", (g * g).mean(-1)), mean("col", (g * g).mean(-2))
        v = row[..., :, None] * col[..., None, :] / np.maximum(row.mean(-1), eps)[..., None, None]
    u = g / np.sqrt(np.maximum(v, eps * eps))
    return p * (1 - lr * decay) - rate / max(1, rms(u) / threshold) * u


def rms(x):
    return np.sqrt((x * x).mean())


def reference(rule, weights, target, clip=0, **hyper):
    """Parameters and what they keep after STEPS."""
    p, state = {k: v.astype(float) for k, v in weights.items()}, {k: {} for k in weights}
    for t in range(1, STEPS + 1):
        g = {k: p[k] - target[k] for k in p}
        norm = np.sqrt(sum((x * x).sum() for x in g.values()))
        scale = clip / norm if 0 < clip < norm else 1
        for k in p:
            decay = 0 if k == NO_DECAY else hyper["decay"]
            p[k] = rule(p[k], g[k] * scale, state[k], t, **{**hyper, "decay": decay})
    return p, state


# ---- the model


def make_model(path, weights):
    nodes, total = [], None
    for k in weights:
        nodes += [
            wire.node("Sub", [k, "x_" + k], "d_" + k),
            wire.node("Mul", ["d_" + k, "d_" + k], "q_" + k),
            wire.node("ReduceSum", ["q_" + k], "s_" + k, keepdims=0),
        ]
        if total:
            nodes.append(wire.node("Add", [total, "s_" + k], "a_" + k))
        total = "a_" + k if total else "s_" + k
    nodes.append(wire.node("Mul", [total, "half"], "loss"))
    inits = [wire.floats(k, v.shape, v.ravel()) for k, v in weights.items()] + [
        wire.floats("half", (), [0.5])
    ]
    with open(path, "wb") as f:
        f.write(
            wire.graph(nodes, inits, {"x_" + k: (1, v.shape) for k, v in weights.items()}, ["loss"])
        )


def write_tensors(path, tensors):
    head, at = {}, 0
    for k, v in tensors.items():
        head[k] = {
            "dtype": {"float32": "F32", "int64": "I64"}[v.dtype.name],
            "shape": v.shape,
            "data_offsets": [at, at + v.nbytes],
        }
        at += v.nbytes
    text = json.dumps(head).encode()
    with open(path, "wb") as f:
        f.write(
            struct.pack("<Q", len(text)) + text + b"".join(v.tobytes() for v in tensors.values())
        )


class Optimizers:
    def __init__(self):
        rng = np.random.default_rng(4)
        self.bench = ck.Bench()
        self.weights = {k: rng.normal(size=s).astype(np.float32) for k, s in SHAPES.items()}
        self.target = {k: rng.normal(size=s).astype(np.float32) for k, s in SHAPES.items()}
        self.target["matrix"][2] = self.weights["matrix"][2]  # a gradient of 0
        self.target["bias"][3] = self.weights["bias"][3]
        self.model, self.inputs = self.bench.path("m.onnx"), self.bench.path("x.safetensors")
        make_model(self.model, self.weights)
        write_tensors(self.inputs, {"x_" + k: v for k, v in self.target.items()})

    def compile(self, name, optimizer, *flags):
        so, plan = self.bench.path(name + ".so"), self.bench.path(name + ".json")
        train = [x for k in SHAPES for x in ("--train", k)]
        self.bench.must(
            self.bench.ckc(
                self.model,
                "-o",
                so,
                *train,
                "--no-decay",
                NO_DECAY,
                "--threads",
                2,
                "--json",
                plan,
                "--optimizer",
                optimizer,
                *flags,
            ),
            f"compile {name}",
        )
        return so, plan

    def train(self, so, *flags, steps=STEPS):
        save = self.bench.path("save")
        done = self.bench.ckrun(
            so, "--inputs", self.inputs, "--steps", steps, "--save", save, "--quiet", *flags
        )
        self.bench.must(done, f"{so} {flags}")
        self.bench.check(not done.stderr, f"{so} {flags}: {done.stderr}")
        return ck.content(save), compare.load(save)

    def compare(self, what, optimizer, got, weights, state, slack):
        """Parameters and states, to a few units in the last place; slack: times as many."""
        for k, want in weights.items():
            sure = state[k].pop("near", np.inf) > 1e-5
            close = abs(got[k] - want) <= 2e-6 * slack * (1 + abs(want))
            self.bench.check(
                (close | ~np.broadcast_to(sure, close.shape)).all() and np.mean(sure) > 0.75,
                f"{what}: {k} is off by {abs(got[k] - want).max()}",
            )
            for s, want in state[k].items():
                have = got[f"{optimizer}.{s}.{k}"]
                self.bench.check(
                    have.shape == want.shape
                    and (abs(have - want) <= slack * (1e-5 * abs(want) + 2e-6)).all(),
                    f"{what}: {s} of {k}",
                )
        names = set(weights) | {f"{optimizer}.{s}.{k}" for k in state for s in state[k]}
        self.bench.check(set(got) == names, f"{what}: tensors {sorted(set(got) ^ names)}")

    def check_rule(self, name, so, rule, flags, slack=1, **hyper):
        """flags and hyper say the same."""
        raw, got = self.train(so, *flags)
        self.compare(
            f"{name} {flags}",
            name,
            got,
            *reference(rule, self.weights, self.target, **{**DEFAULTS[name], **hyper}),
            slack,
        )
        return raw

    def check_optimizer(self, name, rule):
        so, plan = self.compile(name, name)
        self.bench.check(
            not replay.Replay(ck.plan(plan)).faults, f"{name}: the plan does not replay"
        )
        whole = self.check_rule(name, so, rule, ())
        more = {"lion": ("--lr", 0.05), "sgd": ("--lr", 0.05)}.get(name, ("--lr", 0.01))
        self.check_rule(
            name,
            so,
            rule,
            (*more, "--weight-decay", 0.2, "--clip", 1.5),
            lr=more[1],
            decay=0.2,
            clip=1.5,
        )
        self.check_resume(name, so, whole)
        return so

    def check_resume(self, name, so, whole):
        """Also with another number of threads."""
        half = self.bench.path("half")
        self.train(so, "--threads", 1, steps=STEPS // 2)
        os.rename(self.bench.path("save"), half)
        self.bench.check(
            self.train(so, "--resume", half)[0] == whole, f"{name}: resuming ends elsewhere"
        )

    def check_more(self, so):
        """What one optimizer alone has."""
        self.check_rule(
            "sgdm",
            so["sgdm"],
            sgdm,
            ("--lr", 0.05, "--momentum", 0.8, "--nesterov", "--weight-decay", 0.1),
            lr=0.05,
            momentum=0.8,
            nesterov=True,
            decay=0.1,
        )
        self.check_rule("sgdm", so["sgdm"], sgdm, ("--momentum", 0), momentum=0)
        self.check_rule(
            "adam",
            so["adam"],
            adam,
            ("--beta1", 0.8, "--beta2", 0.9, "--eps", 1e-3),
            b1=0.8,
            b2=0.9,
            eps=1e-3,
        )
        self.check_rule(
            "lion",
            so["lion"],
            lion,
            ("--beta1", 0.95, "--beta2", 0.98, "--lr", 0.2),
            b1=0.95,
            b2=0.98,
            lr=0.2,
        )
        self.check_rule(
            "adafactor",
            so["adafactor"],
            adafactor,
            (
                "--lr",
                0.5,
                "--beta2-decay",
                -0.5,
                "--clip-threshold",
                1.1,
                "--eps",
                0.1,
                "--eps2",
                2,
            ),
            slack=100,
            lr=0.5,
            beta2_decay=-0.5,
            threshold=1.1,
            eps=0.1,
            eps2=2,
        )  # steps as large as the weights

    def check_plans(self, so):
        """Updates in backward, or over micro-batches (of equal data, so of the same mean), are the
        same updates."""
        for name, rule in ("adafactor", adafactor), ("sgdm", sgdm):
            early, plan = self.compile("early", name, "--update-in-backward", "on")
            self.bench.check(
                not replay.Replay(ck.plan(plan)).faults,
                f"{name} in backward: the plan does not replay",
            )
            self.bench.check(
                self.train(early)[0] == self.train(so[name])[0], f"{name}: other bits in backward"
            )
        shared, _ = self.compile("accum", "lion", "--grad-accum", "2")
        self.check_rule("lion", shared, lion, ("--clip", 1.5), clip=1.5)

    def refused(self, words, *args):
        done = self.bench.ckrun(*args, "--inputs", self.inputs, "--steps", STEPS)
        self.bench.check(
            done.returncode == 1 and words in done.stderr,
            f"{args}: status {done.returncode}: {done.stderr}",
        )

    def check_refusals(self, so):
        self.refused("compile it with --optimizer sgdm", so["sgd"], "--momentum", 0.9)
        self.refused("nesterov needs momentum", so["sgdm"], "--momentum", 0, "--nesterov")
        self.refused("clip-threshold must be at least 1", so["adafactor"], "--clip-threshold", 0.5)
        self.refused("beta2-decay must be 0 or less", so["adafactor"], "--beta2-decay", 0.5)
        self.train(so["adam"])
        self.refused(
            "the run's optimizer was adam, the library's is adamw; compile with --optimizer adam",
            so["adamw"],
            "--resume",
            "save",
        )
        for name, option in (
            ("lion", "eps"),
            ("sgd", "nesterov"),
            ("adamw", "eps2"),
            ("adafactor", "beta1"),
            ("sgdm", "beta2"),
        ):
            done = self.bench.ckrun(
                so[name],
                "--inputs",
                self.inputs,
                "--steps",
                1,
                "--" + option,
                *[1e-3] * (option != "nesterov"),
            )
            self.bench.check(
                f"--{option} has no effect: the library's optimizer is {name}\n" in done.stderr,
                f"{name} --{option}: {done.stderr}",
            )

    def run(self):
        so = {
            rule.__name__: self.check_optimizer(rule.__name__, rule)
            for rule in (sgd, sgdm, adam, adamw, lion, adafactor)
        }
        self.check_more(so)
        self.check_plans(so)
        self.check_refusals(so)
        self.bench.finish()


if __name__ == "__main__":
    Optimizers().run()
