#!/usr/bin/env python3
"""ckrun --augment: each image of a batch is its row of the data, flipped or shifted, nothing else.

    augment.py CKC CKRUN

The model gives its input as an output; what --outputs writes is searched among all moves of the
image, made by numpy.
"""

import json
import struct

import numpy as np

import ck

MODEL = """graph @same {
	input %%image: f32[%s]
	input %%labels: i64[4]
	param %%w: f32[] = {1}
	%%y output = mul %%image, %%w
	%%s = reduce_mean %%y {axes=[%s], keepdims=0}
	%%l = cast %%labels {to=f32}
	%%d = sub %%s, %%l
	%%q = mul %%d, %%d
	%%loss: f32[] output = reduce_mean %%q {axes=[0], keepdims=0}
}
"""
ROWS = 12


def read(path, name):
    with open(path, "rb") as f:
        raw = f.read()
    size = struct.unpack("<Q", raw[:8])[0]
    t = json.loads(raw[8 : 8 + size])[name]
    lo, hi = (8 + size + at for at in t["data_offsets"])
    return np.frombuffer(raw[lo:hi], "<f4").reshape(t["shape"])


def moves(x, flips, crop):
    """{(flipped, down, right): image}; x is [height, width, ...]."""
    out = {}
    for flip in (False, True) if flips else (False,):
        y = x[:, ::-1] if flip else x
        padded = np.zeros((y.shape[0] + 2 * crop, y.shape[1] + 2 * crop, *y.shape[2:]), x.dtype)
        padded[crop : crop + y.shape[0], crop : crop + y.shape[1]] = y
        for down in range(2 * crop + 1):
            for right in range(2 * crop + 1):
                part = padded[down : down + x.shape[0], right : right + x.shape[1]]
                out[flip, down - crop, right - crop] = part
    return out


class Augment(ck.Bench):
    def build(self, dims):
        axes = ",".join(str(i) for i in range(1, len(dims) + 1))
        with open(self.path("s.ck"), "w") as f:
            f.write(MODEL % (",".join(str(x) for x in (4, *dims)), axes))
        done = self.ckc(
            "s.ck", "-o", self.path("s.so"), "--loss", "loss", "--output", "y", "--quiet"
        )
        return self.must(done, f"build {dims}")

    def batches(self, steps, *flags):
        """What the model gets in steps 1 .. `steps`; each run has one more step."""
        out = []
        for n in range(1, steps + 1):
            done = self.ckrun(
                self.path("s.so"),
                *("--data", self.path("d.npz"), "--steps", n, "--lr", 0, "--seed", 5),
                *("--outputs", self.path("out"), *flags),
            )
            if not self.must(done, f"{flags}"):
                return []
            out.append(read(self.path("out"), "y"))
        return out

    def moved(self, shape, dims, flips, crop, to_array):
        """to_array: from [rows, height, width, channels] to the data's order; the input's order
        is channels first."""
        rng = np.random.default_rng(2)
        images = rng.integers(1, 256, (ROWS, *shape)).astype(np.uint8)
        np.savez(self.path("d.npz"), image=to_array(images), labels=np.arange(ROWS))
        if not self.build(dims):
            return
        text = ",".join(["flip"] * flips + [f"crop={crop}"] * (crop > 0))
        plain = self.batches(6, "--normalize", "0,1")
        got = self.batches(6, "--normalize", "0,1", "--augment", text)
        again = self.batches(6, "--normalize", "0,1", "--augment", text)
        seen = set()
        for before, after, same in zip(plain, got, again):
            self.check((after == same).all(), f"{text}: the same seed")
            for x, y in zip(before, after):
                if len(dims) == 3:
                    x, y = x.transpose(1, 2, 0), y.transpose(1, 2, 0)
                hits = [k for k, z in moves(x, flips, crop).items() if (z == y).all()]
                self.check(len(hits) == 1, f"{text}: an image that is {len(hits)} moves of its row")
                seen |= set(hits)
        self.check(
            {k[0] for k in seen} == ({False, True} if flips else {False})
            and {abs(k[1]) for k in seen} | {abs(k[2]) for k in seen} == set(range(crop + 1)),
            f"{text}: moves {sorted(seen)}",
        )

    def refused(self):
        rng = np.random.default_rng(2)
        images = rng.integers(1, 256, (ROWS, 3, 8, 8)).astype(np.uint8)
        np.savez(self.path("d.npz"), image=images, labels=np.arange(ROWS))
        self.build((3, 8, 8))
        run = [self.path("s.so"), "--data", self.path("d.npz"), "--normalize", "0,1", "--steps", 1]
        for flags, what in (
            (["--augment", "spin"], "expected flip, crop=N or both"),
            (["--augment", "crop=999"], "--augment crop=999: images of input"),
            (["--augment", "crop=0"], "expected flip, crop=N or both"),
            (["--augment", ""], "expected flip, crop=N or both"),
        ):
            done = self.ckrun(*run, *flags)
            self.check(done.returncode == 1 and what in done.stderr, f"{flags}: {done.stderr}")
        np.savez(self.path("d.npz"), image=images.astype(np.float32), labels=np.arange(ROWS))
        run = [self.path("s.so"), "--data", self.path("d.npz"), "--steps", 1]
        done = self.ckrun(*run, "--augment", "flip")
        self.check("no float input reads images" in done.stderr, f"floats: {done.stderr}")
        done = self.ckrun("eval", *run[:3], "--augment", "flip")
        self.check("--augment is only valid for training" in done.stderr, done.stderr)


def main():
    b = Augment()
    b.moved((8, 9, 3), (3, 8, 9), True, 2, lambda x: x.transpose(0, 3, 1, 2))
    b.moved((8, 9, 3), (3, 8, 9), True, 1, lambda x: x)
    b.moved((7, 6, 1), (7, 6), False, 3, lambda x: x[..., 0])
    b.moved((7, 6, 1), (1, 7, 6), True, 0, lambda x: x[..., 0])
    b.refused()
    b.finish()


main()
