#!/usr/bin/env python3
"""Frozen weights in fewer bits: --frozen-dtype.

    frozen.py CKC CKRUN --gpt=GPT

GPT writes the model: samples/gpt.

What a library of blocks or of 16 bits computes is what one of float32 computes from weights that
numpy has rounded here, by the formats' definitions; files hold the blocks byte by byte.
"""

import json
import os
import struct
import sys

import numpy as np

import ck

sys.path[:0] = [os.path.join(ck.HERE, "..", "runtime"), ck.TOOLS]
import files
import spread

GPT = "--like llama --layers 2 --hidden 128 --heads 2 --kv-heads 1 --ffn 192 --seq 24 --vocab 96 --batch 4"
LORA = ["--lora", "*.attn.*.weight=4:8", "--lora", "*.mlp.*.weight=4:8"]
HEAD = "head.weight"
LEVELS = [-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453]
LEVELS += [-0.28444138169288635, -0.18477343022823334, -0.09105003625154495, 0.0]
LEVELS += [0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224]
LEVELS += [0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0]
LEVELS = np.array(LEVELS, np.float32)


def blocks(w, kind):
    """(bytes as ckc has them, the weights that they hold)"""
    x = w.reshape(-1, 64)
    most = np.abs(x).max(1, keepdims=True)
    if kind == "int8":
        scale = most / np.float32(127)
        codes = np.rint(x * (np.float32(127) / most)).astype(np.int8)
        held, codes = codes * scale, codes.view(np.uint8)
    else:
        scale = most
        codes = np.abs((x / most)[..., None].astype(np.float64) - LEVELS).argmin(-1)
        held, codes = LEVELS[codes] * scale, (codes[:, ::2] << 4 | codes[:, 1::2]).astype(np.uint8)
    raw = np.concatenate([scale.astype("<f4").view(np.uint8), codes], 1)
    return raw.reshape(w.shape[0], -1), held.astype(np.float32).reshape(w.shape)


def bf16(w):
    """To the nearest, ties to even."""
    bits = w.astype("<f4").view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32)


ROUNDED = {
    "nf4": lambda w: blocks(w, "nf4")[1],
    "int8": lambda w: blocks(w, "int8")[1],
    "bf16": bf16,
    "f16": lambda w: w.astype(np.float16).astype(np.float32),
}


def read(path):
    """{name: array} of a safetensors file."""
    kinds = {"F32": "<f4", "BF16": "<u2", "F16": "<f2", "U8": "u1", "I64": "<i8"}
    with open(path, "rb") as f:
        raw = f.read()
    size = struct.unpack("<Q", raw[:8])[0]
    head = json.loads(raw[8 : 8 + size])
    out = {}
    for name, t in head.items():
        if name == "__metadata__":
            continue
        lo, hi = (8 + size + at for at in t["data_offsets"])
        x = np.frombuffer(raw[lo:hi], kinds[t["dtype"]]).reshape(t["shape"])
        out[name] = (x.astype(np.uint32) << 16).view(np.float32) if t["dtype"] == "BF16" else x
    return out


def types(path):
    """The types of a safetensors file's tensors."""
    with open(path, "rb") as f:
        size = struct.unpack("<Q", f.read(8))[0]
        head = json.loads(f.read(size))
    return {
        t["dtype"] for name, t in head.items() if name != "__metadata__" and "lora_" not in name
    }


def write(path, tensors):
    files.st_write(path, {k: ("F32", x.shape, x.ravel().tolist()) for k, x in tensors.items()})


class Frozen(ck.Bench):
    def start(self):
        made = self.run([self.gpt_path, *GPT.split(), "--weights", "-o", self.path("m.onnx")])
        self.must(made, "gpt")
        rng = np.random.default_rng(1)
        tokens = rng.integers(0, 96, (16, 25))
        np.savez(self.path("d.npz"), input_ids=tokens[:, :-1], labels=tokens[:, 1:])
        self.build("plain")
        self.weights = read(self.path("plain.safetensors"))
        self.blocked = [
            k
            for k, x in self.weights.items()
            if x.ndim == 2 and (".attn." in k or ".mlp." in k) and "lora_" not in k
        ]
        self.check(len(self.blocked) == 14, f"weights of products: {self.blocked}")
        # adapters that do something
        for k in self.weights:
            if "lora_B" in k:
                x = rng.normal(0, 0.02, self.weights[k].shape)
                self.weights[k] = x.astype(np.float32)
        write(self.path("w.st"), self.weights)

    def build(self, name, *flags):
        done = self.ckc(self.path("m.onnx"), "-o", self.path(name + ".so"), *LORA, *flags)
        return self.must(done, f"{name}: {flags}") and done.stderr

    def train(self, name, *flags, steps=3):
        log = self.path("log")
        done = self.ckrun(
            self.path(name + ".so"),
            *("--data", self.path("d.npz"), "--steps", steps, "--lr", "0.01"),
            *("--log", log),
            *flags,
        )
        return ck.losses(log) if self.must(done, f"{name} {flags}") else [np.nan] * steps

    def rounded(self, kind):
        """The weights as the library has them; 16 bits are for all frozen parameters."""
        short = kind in ("bf16", "f16")
        return {
            k: ROUNDED[kind](x) if k in self.blocked or (short and "lora_" not in k) else x
            for k, x in self.weights.items()
        }

    def near(self, got, want, what, tolerance=2e-6):
        gap = max(abs(a - b) / abs(b) for a, b in zip(got, want))
        self.check(len(got) == len(want) and gap <= tolerance, f"{what}: {got}, expected {want}")

    def grads_near(self, got, want, what, tolerance):
        got, want = read(self.path(got)), read(self.path(want))
        self.check(got.keys() == want.keys(), f"{what}: gradients of {sorted(got)}")
        for k in want:
            most = np.abs(want[k]).max()
            gap = np.abs(got[k] - want[k]).max()
            self.check(gap <= tolerance * most, f"{what}: gradient of {k}: {gap} of {most}")

    # ---- tests ----

    def same_as_rounded(self, kind):
        flags = ["--frozen-dtype", kind]
        self.build(kind, *flags)
        write(self.path("r.st"), self.rounded(kind))
        want = self.train("plain", "--init", self.path("r.st"), "--grads", self.path("want"))
        got = self.train(kind, "--init", self.path("w.st"), "--grads", self.path("got"))
        self.near(got, want, kind)
        self.grads_near("got", "want", kind, 1e-4)
        # on 16-bit units or without
        self.build("b", *flags, "--dtype", "bf16")
        got = self.train("b", "--init", self.path("w.st"), "--grads", self.path("got"))
        self.near(got, want, f"{kind}, bf16", 2e-3)
        self.grads_near("got", "want", f"{kind}, bf16", 0.06)
        stored = types(self.path("b.safetensors"))
        want_types = {"bf16": {"BF16"}, "f16": {"F16"}}.get(kind, {"F32", "U8"})
        self.check(stored == want_types, f"{kind}, bf16: stored as {stored}")
        return want

    def forms(self, want):
        """Budgets, micro-batches and ranks; also without adapters, from which shardings follow."""
        part = ["--freeze", "*.attn.*", "--freeze", "*.mlp.*", "--frozen-dtype", "nf4"]
        plan = self.path("plan.json")
        done = self.ckc(self.path("m.onnx"), "--plan-only", *part, "--tp", 2, "--json", plan)
        if self.must(done, "--tp 2 without adapters"):
            with open(plan) as f:
                shapes = {t["name"]: t["shape"] for t in json.load(f)["tensors"]}
            whole = [k for k in self.blocked if np.prod(shapes[k]) * 64 == self.weights[k].size]
            self.check(not whole, f"--tp 2 without adapters: {whole} are not sharded")
        self.build("plain2", "--grad-accum", 2)
        want2 = self.train("plain2", "--init", self.path("r.st"))
        for flags, losses in (
            (["--memory-budget", "75%"], want),
            (["--tp", 2], want),
            (["--grad-accum", 2], want2),
            (["--dp", 2, "--zero", 3], want2),
            (["--tp", 2, "--dp", 2, "--zero", 3], want2),
        ):
            self.build("x", "--frozen-dtype", "nf4", *flags)
            self.near(self.train("x", "--init", self.path("w.st")), losses, flags, 1e-5)
        # processes, which each read a part of the file, and write one
        self.build("x", "--frozen-dtype", "nf4", "--tp", 2)
        argv = [self.ckrun_path, self.path("x.so"), "--data", self.path("d.npz"), "--steps", 3]
        argv += ["--lr", "0.01", "--threads", 1, "--init", self.path("w.st")]
        argv += ["--save", self.path("p.st")]
        done = spread.run(2, argv, cwd=self.work)
        if self.check(done.returncode == 0, f"two processes: {done.stderr}"):
            self.same_blocks("p.st", "processes")

    def same_blocks(self, file, what):
        held = read(self.path(file))
        for k in self.blocked:
            raw = blocks(self.weights[k], "nf4")[0]
            self.check(
                held[k].shape == raw.shape and (held[k] == raw).all(), f"{what}: bytes of {k}"
            )
        self.check(held[HEAD].dtype == np.float32, f"{what}: the classifier keeps its type")

    def saved(self):
        """Files: the library's own, checkpoints, merged weights, ONNX."""
        self.same_blocks("nf4.safetensors", "compiled")
        init = ["--init", self.path("w.st")]
        long = self.train("nf4", *init, steps=5)
        self.train("nf4", *init, "--save", self.path("c.st"))
        self.same_blocks("c.st", "checkpoint")
        rest = self.train("nf4", "--resume", self.path("c.st"), steps=5)
        self.check(rest == long, f"resumed: {rest}, expected {long}")
        self.train("nf4", *init, "--save-merged", self.path("merged.st"))
        merged, saved = read(self.path("merged.st")), read(self.path("c.st"))
        for k in self.blocked:
            a, b = (saved[k.replace(".weight", f".lora_{x}.weight")] for x in "AB")
            want = blocks(self.weights[k], "nf4")[1] + 2 * (b @ a).T.astype(np.float64)
            gap = np.abs(merged[k] - want).max() if merged[k].shape == want.shape else np.inf
            self.check(gap < 1e-6, f"merged {k}: differs by {gap}")
        # under other names, the mapping alone helps
        with open(self.path("c.st"), "rb") as f:
            raw = f.read()
        size = struct.unpack("<Q", raw[:8])[0]
        head = raw[8 : 8 + size].replace(b'"h.', b'"net.h.')
        with open(self.path("n.st"), "wb") as f:
            f.write(struct.pack("<Q", len(head)) + head + raw[8 + size :])
        done = self.ckrun(
            "eval", self.path("nf4.so"), "--init", self.path("n.st"), "--data", self.path("d.npz")
        )
        self.check(
            "--init-map" in done.stderr and "--init-skip" not in done.stderr,
            f"blocks under other names: {done.stderr}",
        )
        # a checkpoint of blocks does not fit float32, and says so
        done = self.ckrun(
            self.path("plain.so"), "--data", self.path("d.npz"), "--init", self.path("c.st")
        )
        self.check(
            done.returncode == 1 and "expected f32[128,128], found u8[128,72]" in done.stderr,
            f"blocks in place of float32: {done.stderr}",
        )
        done = self.ckrun(
            self.path("nf4.so"),
            *("--data", self.path("d.npz"), "--init", self.path("w.st"), "--steps", 1),
            *("--export-onnx", self.path("e.onnx")),
        )
        if self.must(done, "export"):
            self.must(self.ckc(self.path("e.onnx"), "-o", self.path("e2.so")), "compiled again")
            one = self.evaluate("e2", ())
            two = self.evaluate("nf4", ("--init", self.path("w.st")))
            self.check(np.isfinite(one) and abs(one - two) < 0.5, f"exported: {one} and {two}")

    def bitsandbytes(self):
        """Weights of 4 bits in the files of bitsandbytes, with scales of 32 or of 8 bits."""
        for nested in (False, True):
            tensors, held = {}, dict(self.weights)
            for k, w in self.weights.items():
                if k not in self.blocked:
                    tensors[k] = ("F32", w.shape, w.ravel().tolist())
                    continue
                raw = blocks(w, "nf4")[0].reshape(-1, 36)
                scale = raw[:, :4].copy().view("<f4")[:, 0]
                state = {"quant_type": "nf4", "blocksize": 64, "dtype": "float32"}
                state["shape"] = list(w.shape)
                if nested:
                    offset = np.float32(scale.mean())
                    parts = [scale[i : i + 256] - offset for i in range(0, len(scale), 256)]
                    most = [float(np.abs(p).max()) for p in parts]
                    book = np.sin(np.linspace(-np.pi / 2, np.pi / 2, 256)).astype(np.float32)
                    codes = [np.abs(p[:, None] / m - book).argmin(1) for p, m in zip(parts, most)]
                    scale = np.concatenate(
                        [book[c] * np.float32(m) + offset for c, m in zip(codes, most)]
                    ).astype(np.float32)
                    codes = np.concatenate(codes)
                    tensors[k + ".absmax"] = ("U8", codes.shape, codes.tolist())
                    tensors[k + ".nested_absmax"] = ("F32", [len(most)], most)
                    tensors[k + ".nested_quant_map"] = ("F32", [256], book.tolist())
                    state |= {"nested_blocksize": 256, "nested_offset": float(offset)}
                else:
                    tensors[k + ".absmax"] = ("F32", scale.shape, scale.tolist())
                code = raw[:, 4:].ravel()
                tensors[k] = ("U8", [len(code), 1], code.tolist())
                tensors[k + ".quant_map"] = ("F32", [16], LEVELS.tolist())
                text = json.dumps(state).encode()
                name = k + ".quant_state.bitsandbytes__nf4"
                tensors[name] = ("U8", [len(text)], list(text))
                levels = LEVELS[np.stack([code >> 4, code & 15], 1).reshape(-1, 64)]
                held[k] = (levels * scale[:, None]).astype(np.float32).reshape(w.shape)
            files.st_write(self.path("bnb.st"), tensors)
            write(self.path("held.st"), held)
            for so in "plain", "nf4":
                want = self.train(so, "--init", self.path("held.st"))
                got = self.train(so, "--init", self.path("bnb.st"))
                self.near(got, want, f"bitsandbytes, nested {nested}, {so}", 1e-6)
            done = self.ckrun(
                self.path("nf4.so"),
                "--data",
                self.path("d.npz"),
                "--init",
                self.path("bnb.st"),
                "--steps",
                1,
            )
            self.check("not used" not in done.stdout + done.stderr, f"parts: {done.stderr}")
        for name, change in (
            (".absmax", lambda t: ("F32", [3], [1.0] * 3)),
            (".quant_map", lambda t: ("F32", [15], [1.0] * 15)),
            (".quant_state.bitsandbytes__nf4", lambda t: ("U8", [2], list(b"{}"))),
            ("", lambda t: ("U8", [3], [1, 2, 3])),
        ):
            k = self.blocked[0] + name
            files.st_write(self.path("bad.st"), {**tensors, k: change(tensors[k])})
            done = self.ckrun(
                self.path("nf4.so"),
                "--data",
                self.path("d.npz"),
                "--init",
                self.path("bad.st"),
                "--steps",
                1,
            )
            self.check(
                done.returncode == 1 and "4-bit weights" in done.stderr, f"{name}: {done.stderr}"
            )

    def evaluate(self, name, flags):
        done = self.ckrun("eval", self.path(name + ".so"), "--data", self.path("d.npz"), *flags)
        text = done.stdout.split("loss ")
        return float(text[-1].split()[0]) if self.must(done, f"eval {name}") else np.nan

    def without_training(self):
        only = [self.path("m.onnx"), "--forward-only", "--loss", "loss"]
        done = self.ckc(*only, "-o", self.path("i.so"), "--frozen-dtype", "nf4")
        self.must(done, "--forward-only")
        plain = {k: x for k, x in self.rounded("nf4").items() if "lora_" not in k}
        write(self.path("i.st"), plain)
        self.must(self.ckc(*only, "-o", self.path("f.so")), "plain")
        one = self.evaluate("i", ("--init", self.path("i.st")))
        two = self.evaluate("f", ("--init", self.path("i.st")))
        # weights that are rounded already are rounded to themselves
        self.near([one], [two], "--forward-only", 1e-6)

    def mixed(self):
        """The last option that a parameter can follow counts."""
        said = self.build("mix", "--frozen-dtype", "bf16", "--frozen-dtype", "*.mlp.*=int8")
        self.check(
            "stored as bf16" in said and "6 frozen parameters stored as int8" in said,
            f"mixed: {said}",
        )
        held = read(self.path("mix.safetensors"))
        self.check(
            held["h.0.mlp.up.weight"].dtype == np.uint8 and held[HEAD].dtype == np.float32,
            "mixed: types in the file",
        )
        said = self.build("nf4", "--frozen-dtype", "nf4")
        self.check("it makes the logits" in said, f"what keeps its type: {said}")
        self.check("cannot evaluate" not in said, f"evaluation: {said}")
        said = self.build("x", "--frozen-dtype", "int8", "--frozen-dtype", "nf4")
        self.check("--frozen-dtype int8 has no effect" in said, f"overruled: {said}")
        # what is trained keeps its type in evaluation, too
        tuned = ["--freeze", "*.mlp.*", "--frozen-dtype", "nf4"]
        done = self.ckc(self.path("m.onnx"), "-o", self.path("x.so"), *tuned)
        self.check("cannot evaluate" not in done.stderr, f"partly frozen: {done.stderr}")
        done = self.ckrun("eval", self.path("x.so"), "--data", self.path("d.npz"))
        self.check("accuracy" in done.stdout, f"partly frozen: {done.stdout} {done.stderr}")

    def refused(self):
        for flags, what in (
            (["--frozen-dtype", "nf4"], "is trained, and only frozen parameters"),
            ([*LORA, "--frozen-dtype", "none.*=nf4"], "there is no such parameter"),
            ([*LORA, "--frozen-dtype", "*norm*=int8"], "it is not a matrix"),
            ([*LORA, "--frozen-dtype", f"{HEAD}=int8"], "it makes the logits"),
            ([*LORA, "--frozen-dtype", "fp4"], "expected bf16, f16, int8, nf4"),
            ([*LORA, "--frozen-dtype", "=nf4"], "expected bf16, f16, int8, nf4"),
        ):
            done = self.ckc(self.path("m.onnx"), "-o", self.path("no.so"), *flags)
            self.check(done.returncode in (1, 2) and what in done.stderr, f"{flags}: {done.stderr}")
            self.check(not os.path.exists(self.path("no.so")), f"{flags}: left a library")


def main():
    gpt = ck.option("--gpt", "gpt")
    b = Frozen()
    b.gpt_path = os.path.abspath(gpt)
    b.start()
    for kind in ("int8", "bf16", "f16"):
        b.same_as_rounded(kind)
    want = b.same_as_rounded("nf4")
    b.forms(want)
    b.mixed()
    b.saved()
    b.bitsandbytes()
    b.without_training()
    b.refused()
    b.finish()


main()
