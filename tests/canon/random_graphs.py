#!/usr/bin/env python3
"""Pass canon on random graphs of views, broadcasts, products and element-wise
ops: canon_same must find no difference.

usage: random_graphs.py CANON_SAME [FIRST LAST]     seeds FIRST..LAST-1
"""

import os
import random
import subprocess
import sys
import tempfile

UNARY = ("tanh", "sigmoid", "neg", "erf", "abs")
SCALARS = (2, 3, 0.5, 1, 0, -1, 0.25, 5, 8)


def product(shape):
    n = 1
    for d in shape:
        n *= d
    return n


class Maker:
    def __init__(self, seed):
        self.r = random.Random(seed)
        self.head, self.body, self.values = [], [], []
        self.constants = {}
        extents = [self.r.randint(1, 4) for _ in range(self.r.randint(2, 4))]
        for kind in ("input", "param"):
            shape = [self.r.choice((1, d)) for d in extents]
            self.head.append("\t%s %%%s: %s" % (kind, self.add(shape), self.type(shape)))
        for _ in range(self.r.randint(6, 24)):
            name, shape = self.r.choice(self.values[-6:])
            self.r.choice(
                (
                    self.unary,
                    self.scalar,
                    self.binary,
                    self.binary,
                    self.reshape,
                    self.transpose,
                    self.transpose,
                    self.expand,
                    self.slice,
                    self.product,
                    self.softmax,
                )
            )(name, shape)

    @staticmethod
    def type(shape):
        return "f32[%s]" % ",".join(map(str, shape))

    def add(self, shape):
        self.values.append(("v%d" % len(self.values), tuple(shape)))
        return self.values[-1][0]

    def emit(self, shape, op, operands, attrs=""):
        self.body.append(
            (
                self.add(shape),
                self.type(shape),
                "%s %s%s"
                % (op, ", ".join("%" + x for x in operands), " {%s}" % attrs if attrs else ""),
            )
        )

    def pick(self, fits):
        found = [(n, s) for n, s in self.values if fits(s)]
        return self.r.choice(found) if found else (None, None)

    def unary(self, name, shape):
        self.emit(shape, self.r.choice(UNARY), [name])

    def scalar(self, name, shape):
        x = self.r.choice(SCALARS)
        c = self.constants.setdefault(x, "c%d" % len(self.constants))
        op = self.r.choice(("add", "sub", "mul", "div" if x else "mul"))
        pair = [name, c]
        if op != "div" and self.r.random() < 0.4:
            pair.reverse()
        self.emit(shape, op, pair)

    def binary(self, name, shape):
        other, s = self.pick(
            lambda s: len(s) == len(shape) and all(a == b or 1 in (a, b) for a, b in zip(s, shape))
        )
        self.emit(
            [max(a, b) for a, b in zip(s, shape)],
            self.r.choice(("add", "sub", "mul")),
            [name, other],
        )

    def reshape(self, name, shape):
        left, to = product(shape), []
        while left > 1 and len(to) < 3:
            to.append(self.r.choice([d for d in range(1, left + 1) if left % d == 0]))
            left //= to[-1]
        to.append(left)
        self.emit(to, "reshape", [name], "shape=[%s]" % ",".join(map(str, to)))

    def transpose(self, name, shape):
        perm = list(range(len(shape)))
        self.r.shuffle(perm)
        self.emit(
            [shape[i] for i in perm], "transpose", [name], "perm=[%s]" % ",".join(map(str, perm))
        )

    def expand(self, name, shape):
        to = [self.r.randint(1, 3) if d == 1 else d for d in shape]
        self.emit(to, "expand", [name], "shape=[%s]" % ",".join(map(str, to)))

    def slice(self, name, shape):
        start = [self.r.randrange(d) for d in shape]
        to = [self.r.randint(1, d - s) for d, s in zip(shape, start)]
        self.emit(
            to,
            "slice",
            [name],
            "start=[%s], step=[%s]" % (",".join(map(str, start)), ",".join("1" for _ in to)),
        )

    def product(self, name, shape):
        if len(shape) < 2:
            return
        other, s = self.pick(lambda s: len(s) == 2 and s[0] == shape[-1])
        if other:
            self.emit(shape[:-1] + s[1:], "matmul", [name, other])
        other, s = self.pick(
            lambda s: len(s) == len(shape) and s[:-2] == shape[:-2] and s[-1] == shape[-1]
        )
        self.emit(shape[:-1] + (s[-2],), "matmul", [name, other], "tb=1")

    def softmax(self, name, shape):
        self.emit(shape, "softmax", [name], "axis=%d" % self.r.randrange(len(shape)))

    def text(self):
        names = [name for name, _, _ in self.body]
        outputs = set(self.r.sample(names, min(len(names), 2)))
        outputs.add(names[-1])
        lines = ["\tconst %%%s: f32[] = {%g}" % (c, x) for x, c in self.constants.items()]
        for name, kind, rest in self.body:
            lines.append(
                "\t%%%s: %s%s = %s" % (name, kind, " output" if name in outputs else "", rest)
            )
        return "\n".join(["graph @random {"] + self.head + lines + ["}", ""])


def main():
    first, last = (int(sys.argv[2]), int(sys.argv[3])) if len(sys.argv) > 3 else (0, 400)
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for seed in range(first, last):
            maker = Maker(seed)
            if maker.body:
                paths.append(os.path.join(folder, "seed%d.ck" % seed))
                with open(paths[-1], "w", encoding="utf-8") as f:
                    f.write(maker.text())
        return subprocess.run([sys.argv[1]] + paths, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
