#!/usr/bin/env python3
"""Experts that replicas share, of random mixtures, in double precision beside one rank.

    check_experts.py TOOL [FIRST LAST]      TOOL: ref_experts; seeds FIRST..LAST-1

What stands between the products, and behind them, treats rows alone or does not, is read elsewhere
too, needs what other rows have, or is not finite at zero; tokens go to some of the experts.  Loss,
gradients and updates are those of the whole batch to 1e-12, in every form of the graph.  Without
room for all rows those behind it give zeros, or are a fault.
"""

import os
import random
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

FLAGS = [
    [],
    ["--tp=2"],
    ["--tp=2", "--sp"],
    ["--tp=2", "--sp", "--shard=w*=R"],  # experts are whole on ranks
    ["--optimizer=sgdm"],
    ["--optimizer=sgd"],
    ["--expert-capacity=4"],  # room for all rows
    ["--expert-capacity=4", "--tp=2"],
    ["--expert-capacity=4", "--optimizer=sgd"],
]
# Random indices are 0 and 1, whose experts the first replica has: it has room for the first rows of
# each replica, and those behind them give zeros.
DROPPED = """graph @dropped {{
	input %x: f32[{n},3]
	input %i: i64[{n}]
	input %t: f32[{n},5]
	param %up: f32[{e},3,6]
	param %bias: f32[{e},6]
	param %down: f32[{e},6,5]
	const %kept: f32[{n},1] = {{{kept}}}
	%w = gather %up, %i {{axis=0}}
	%x1 = reshape %x {{shape=[{n},1,3]}}
	%u = matmul %x1, %w
	%u1 = reshape %u {{shape=[{n},6]}}
	%b = gather %bias, %i {{axis=0}}
	%h = add %u1, %b
	%a = sigmoid %h
	%v = gather %down, %i {{axis=0}}
	%a1 = reshape %a {{shape=[{n},1,6]}}
	%d = matmul %a1, %v
	%y = reshape %d {{shape=[{n},5]}}
	%z = mul %y, %kept
	%e = sub %z, %t
	%s = mul %e, %e
	%loss: f32[] output = reduce_mean %s {{axes=[0,1], keepdims=0}}
	loss %loss
}}
"""


class Mixture:
    """The text of a graph for b samples; equal seeds make equal graphs but for that."""

    def __init__(self, seed, b):
        self.r, self.b = random.Random(seed), b
        r = self.r
        self.tokens, self.width = r.choice((1, 2, 3)), 4 * r.randint(1, 2)
        self.hidden, self.experts = 2 * r.randint(1, 4), r.choice((4, 8))
        self.choices, self.turned = r.randint(1, 3), r.random() < 0.5
        self.n, self.lines, self.count = b * self.tokens, [], 0
        self.params = []

    def new(self, text):
        self.count += 1
        self.lines.append(text.replace("$", f"%v{self.count}", 1))
        return f"%v{self.count}"

    def param(self, *shape):
        name = f"%w{len(self.params)}"
        self.params.append(f"param {name}: f32[{','.join(map(str, shape))}]")
        return name

    def product(self, x, inner, outer):
        """One product of rows with matrices of experts, by the gathered form."""
        rows, k = self.n * self.choices, self.choices
        shape = [inner, outer] if self.turned else [outer, inner]
        w = self.new(f"$ = gather {self.param(self.experts, *shape)}, %i {{axis=0}}")
        vector = [1, inner] if self.turned else [inner, 1]
        x = self.new(f"$ = reshape {x} {{shape={[self.n, k, *vector]}}}")
        y = self.new(f"$ = matmul {x}, {w}" if self.turned else f"$ = matmul {w}, {x}")
        return self.new(f"$ = reshape {y} {{shape={[rows, outer]}}}")

    def bias(self, width):
        b = self.new(f"$ = gather {self.param(self.experts, width)}, %i {{axis=0}}")
        return self.new(f"$ = reshape {b} {{shape={[self.n * self.choices, width]}}}")

    def rows(self, x, width):
        """An op on rows of that width; some of them mix rows, or look at others."""
        n, r = self.n * self.choices, self.r
        kind = r.randrange(14)
        if kind < 3:
            return self.new(f"$ = {r.choice(('silu', 'gelu', 'tanh', 'sigmoid'))} {x}")
        if kind == 3:
            return self.new(f"$ = add {x}, {self.bias(width)}")
        if kind == 4:
            return self.new(f"$ = mul {x}, {self.param(width)}")
        if kind == 5:
            y = self.new(f"$ = silu {x}")
            return self.new(f"$ = {r.choice(('mul', 'add', 'sub'))} {y}, {x}")
        if kind == 6:
            return self.new(f"$ = softmax {x} {{axis=1}}")
        if kind == 7:  # not finite at zeros
            y = self.new(f"$ = mul {x}, {x}")
            y = self.new(f"$ = add {y}, %tiny")
            return self.new(f"$ = {r.choice(('log', 'sqrt', 'recip'))} {y}")
        if kind == 8:  # of each sample, whatever its row
            y = self.new(f"$ = reshape {x} {{shape={[self.b, n // self.b * width]}}}")
            y = self.new(f"$ = mul {y}, %each")
            return self.new(f"$ = reshape {y} {{shape={[n, width]}}}")
        if kind == 9:  # read by something else, too
            self.aside(x)
            return x
        if kind == 10:
            y = self.new(f"$ = transpose {x} {{perm=[1,0]}}")
            y = self.new(f"$ = tanh {y}")
            return self.new(f"$ = transpose {y} {{perm=[1,0]}}")
        if kind == 11:
            half = width // 2
            a = self.new(f"$: f32[{n},{half}] = slice {x} {{start=[0,0], step=[1,1]}}")
            b = self.new(f"$: f32[{n},{width - half}] = slice {x} {{start=[0,{half}], step=[1,1]}}")
            return self.new(f"$ = concat {b}, {a} {{axis=1}}")
        if kind == 12:
            return self.new(f"$ = add {x}, {self.param(width)}")
        return self.new(f"$ = mul {x}, %half")

    def aside(self, x):
        y = self.new(f"$ = mul {x}, {x}")
        y = self.new(f"$ = reduce_mean {y} {{axes=[0,1], keepdims=0}}")
        self.extra = self.new(f"$ = add {self.extra}, {y}") if self.extra else y

    def layer(self, x, number):
        r, n, k, h = self.r, self.n, self.choices, self.width
        s = self.new(f"$ = matmul {x}, {self.param(h, self.experts)}")
        p = self.new(f"$ = {r.choice(('sigmoid %s', 'softmax %s {axis=1}')) % s}")
        i = f"%i{number}"
        self.lines.append(f"%q{number}, {i} = topk {p} {{k={k}, axis=1}}")
        at = len(self.lines)
        y = self.new(f"$ = reshape {x} {{shape={[n, 1, h]}}}")
        y = self.new(f"$ = expand {y} {{shape={[n, k, h]}}}")
        y = self.new(f"$ = reshape {y} {{shape={[n * k, h]}}}")
        for width in [self.hidden] * r.randint(0, 2) + [h]:
            y = self.product(y, self.last if width != h or self.last != h else h, width)
            self.last = width
            for _ in range(r.randint(0, 3)):
                y = self.rows(y, width)
        self.lines[at:] = [line.replace("%i ", i + " ") for line in self.lines[at:]]
        y = self.new(f"$ = reshape {y} {{shape={[n, k, h]}}}")
        q = self.new(f"$ = reshape %q{number} {{shape={[n, k, 1]}}}")
        y = self.new(f"$ = mul {y}, {q}")
        y = self.new(f"$ = reduce_sum {y} {{axes=[1], keepdims=0}}")
        return self.new(f"$ = add {x}, {y}")

    def text(self):
        n, h, self.extra, self.last = self.n, self.width, None, self.width
        x = self.new(f"$ = reshape %x {{shape={[n, h]}}}")
        for number in range(self.r.randint(1, 2)):
            self.last = h
            x = self.layer(x, number)
        y = self.new(f"$ = matmul {x}, {self.param(h, 3)}")
        y = self.new(f"$ = mul {y}, {y}")
        y = self.new(f"$ = reduce_mean {y} {{axes=[0,1], keepdims=0}}")
        loss = f"add {y}, {self.extra}" if self.extra else f"mul {y}, %half"
        lines = [
            f"input %x: f32[{self.b},{self.tokens},{h}]",
            f"input %each: f32[{self.b},1]",
            *self.params,
            "const %half: f32[] = {0.5}",
            "const %tiny: f32[] = {0.25}",
            *self.lines,
            f"%loss: f32[] output = {loss}",
        ]
        return "graph @mixture {\n\t" + "\n\t".join(lines) + "\n\tloss %loss\n}\n"


def run(tool, folder, seed):
    r = random.Random(seed)
    dp = r.choice((2, 4))
    ep = r.choice([e for e in (2, 4) if dp % e == 0])
    b = r.randint(1, 2)
    paths = [os.path.join(folder, f"{seed}-{name}.ck") for name in ("whole", "part")]
    for path, samples in zip(paths, (b * dp, b)):
        with open(path, "w") as f:
            f.write(Mixture(seed, samples).text())
    done = subprocess.run(
        [tool, *paths, "--stop-after=optim", f"--dp={dp}", f"--ep={ep}", "--quiet"]
        + r.choice(FLAGS),
        capture_output=True,
        text=True,
    )
    if done.returncode == 0:
        return None
    return f"seed {seed}: {' '.join(done.args[3:])}: {done.stdout[-600:]}{done.stderr[-600:]}"


def dropped(tool, folder):
    """Capacities of a part of the rows, of replicas of two rows and more."""
    faults = []
    for rows, dp, ep, capacity in (2, 2, 2, 1.0), (5, 4, 2, 0.7), (6, 4, 4, 1.5), (4, 2, 2, 0.5):
        room = -(-capacity * rows // ep)
        kept = ["1" if i % rows < room else "0" for i in range(rows * dp)]
        paths = [os.path.join(folder, f"{name}.ck") for name in ("all", "own")]
        for path, n, mask in (paths[0], rows * dp, kept), (paths[1], rows, ["1"] * rows):
            with open(path, "w") as f:
                f.write(DROPPED.format(n=n, e=2 * ep, kept=",".join(mask)))
        flags = [f"--dp={dp}", f"--ep={ep}", f"--expert-capacity={capacity}", "--quiet"]
        run = [tool, *paths, "--stop-after=optim", *flags]
        for more, words in (["--expert-overflow=drop"], " 0 faults"), ([], "a row has no room"):
            done = subprocess.run([*run, *more], capture_output=True, text=True)
            if words not in done.stdout or (not more) == (done.returncode == 0):
                faults.append(f"{flags} {more}: {done.stdout}{done.stderr}")
    return faults


def main():
    first, last = (int(sys.argv[2]), int(sys.argv[3])) if len(sys.argv) > 3 else (0, 300)
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(2) as pool:
        faults = [
            x for x in pool.map(lambda s: run(sys.argv[1], folder, s), range(first, last)) if x
        ]
        faults += dropped(sys.argv[1], folder)
    for fault in faults[:5]:
        print(fault)
    print(f"{last - first - len(faults)} passed, {len(faults)} failed")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
