#!/usr/bin/env python3
"""Positions that replicas share, of random transformers, in double precision beside one rank.

    check_context.py TOOL [FIRST LAST]      TOOL: ref_experts; seeds FIRST..LAST-1

Of odd seeds heads are exchanged (--cp-attention heads), of others keys and values gathered, or what
takes less time.

Embeddings of positions by slices, by constant or computed numbers, or rotary tables; causal or not;
masks of keys, of queries and keys, added or boolean; grouped heads; dropout; means and sums of
losses over labels, shifted in the graph or given, some of which do not count, by weight; what takes
one position or a mean over all.  Loss, gradients and updates are those of one rank to 1e-12, for
C = 2, 3, 4, with more samples, ranks and forms of the graph.
"""

import os
import random
import subprocess
import sys
import tempfile

VOCAB = 7
FORMS = [
    [],
    ["--attention=unfused"],
    ["--tp=2"],
    ["--tp=2", "--sp"],
    ["--stop-after=fuse"],
    ["--stop-after=place"],
]


class Transformer:
    """Of b samples; whatever is random is the same for any b."""

    def __init__(self, seed, b, ranks=0):
        """ranks: all key heads can be shared out over them and the replicas."""
        self.r, self.b = random.Random(seed), b
        self.c = self.r.choice([2, 3, 4])
        self.nheads, self.groups = 4, [1, 2, 4]
        if ranks:
            one = self.c * ranks
            self.nheads = one * (1 + (one < 4 and seed // 2 % 2))
            self.groups = [one, self.nheads]
        self.width = 2 * self.nheads
        self.t = self.c * self.r.choice([1, 2, 3])
        self.lines, self.params, self.inputs, self.n = [], {}, {}, 0

    def put(self, text):
        self.n += 1
        self.lines.append(f"\t%v{self.n}{text}")
        return f"%v{self.n}"

    def op(self, op, *operands, **attrs):
        text = ", ".join(
            f"{k}=[{','.join(map(str, x))}]" if isinstance(x, list) else f"{k}={x}"
            for k, x in attrs.items()
        )
        return self.put(f" = {op} {', '.join(operands)}" + (f" {{{text}}}" if text else ""))

    def param(self, *shape):
        name = f"p{len(self.params)}"
        self.params[name] = list(shape)
        return "%" + name

    def const(self, dt, shape, values):
        self.n += 1
        body = ",".join(str(x) for x in values)
        shape = ",".join(map(str, shape))
        self.lines.append(f"\tconst %v{self.n}: {dt}[{shape}] = {{{body}}}")
        return f"%v{self.n}"

    def ids(self, name, extent):
        self.inputs[name] = extent
        return "%" + name

    def positions(self):
        """[1,t,h] or [t,h]."""
        how = self.r.choice(["none", "slice", "const", "computed"])
        if how == "none":
            return None
        table = self.param(self.t + 2, self.width)
        if how == "slice":
            return self.op("slice", table, start=[0, 0], step=[1, 1]).replace(
                "%", "%"
            ), f"f32[{self.t},{self.width}]"
        if how == "const":
            at = self.const("i64", [1, self.t], range(self.t))
            return self.op("gather", table, at, axis=0), None
        ones = self.op("ge", "%ids", self.const("i64", [], [-1]))
        sums = self.op("cumsum", self.op("cast", ones, to="i64"), axis=1)
        at = self.op("sub", sums, self.const("i64", [], [1]))
        return self.op("gather", table, at, axis=0), None

    def embed(self):
        x = self.op("gather", self.param(VOCAB, self.width), self.tokens, axis=0)
        found = self.positions()
        if found and found[1]:  # a slice needs its shape
            at = self.lines.pop()
            self.lines.append(at.replace(" = slice", f": {found[1]} = slice"))
        if found:
            x = self.op("add", x, found[0])
        return self.dropout(x) if self.r.random() < 0.3 else x

    def dropout(self, x):
        self.n += 1
        return self.op("dropout", x, ratio=0.4, stream=self.n)

    def linear(self, x, k, n, bias=True):
        """Rows of 2-D products, as canon has them."""
        rows = self.op("reshape", x, shape=[self.b * self.t, k])
        args = [rows, self.param(k, n)] + ([self.param(n)] if bias else [])
        return self.op("matmul", *args)

    def heads(self, x, g, k, bias):
        """Without a bias of keys, whose gradient is rounding."""
        y = self.linear(x, self.width, g * k, bias)
        y = self.op("reshape", y, shape=[self.b, self.t, g, k])
        return self.op("transpose", y, perm=[0, 2, 1, 3])

    def rotary(self, x, g, k):
        angles = [0.1 * (i + 1) * (j + 1) for i in range(self.t) for j in range(k)]
        table = self.const("f32", [1, 1, self.t, k], angles)
        half = k // 2
        cut = []
        for at in 0, half:
            y = self.op("slice", x, start=[0, 0, 0, at], step=[1, 1, 1, 1])
            line = self.lines.pop()
            shape = f"f32[{self.b},{g},{self.t},{half}]"
            self.lines.append(line.replace(" = slice", f": {shape} = slice"))
            cut.append(y)
        turned = self.op("concat", self.op("neg", cut[1]), cut[0], axis=3)
        cos, sin = self.op("cos", table), self.op("sin", table)
        return self.op("add", self.op("mul", x, cos), self.op("mul", turned, sin))

    def mask(self):
        how = self.r.choice(["none", "none", "keys", "both", "bool"])
        if how == "none":
            return None
        keys = self.op("reshape", self.ids("keys", self.t), shape=[self.b, 1, 1, self.t])
        if how == "keys":
            return self.op("mul", self.op("cast", keys, to="f32"), self.const("f32", [], [-3]))
        grid = [int(j <= i + 1) for i in range(self.t) for j in range(self.t)]
        both = self.const("bool", [1, 1, self.t, self.t], grid)
        seen = self.op("and", both, self.op("eq", keys, self.const("i64", [], [0])))
        if how == "bool":
            return seen
        zero, less = self.const("f32", [], [0]), self.const("f32", [], [-2])
        return self.op("where", seen, zero, less)

    def attend(self, x):
        k, g = 2, self.r.choice(self.groups)
        q, key, v = (self.heads(x, n, k, i != 1) for i, n in enumerate((self.nheads, g, g)))
        if self.turns:
            q, key = self.rotary(q, self.nheads, k), self.rotary(key, g, k)
        args = [q, key, v] + ([self.attention_mask] if self.attention_mask else [])
        drop = 0.3 if self.drops else 0
        self.n += 1
        lse = f"%l{self.n}"
        y = f"%v{self.n}"
        self.lines.append(
            f"\t{y}, {lse} = attention {', '.join(args)} {{scale=0.7, causal={self.causal}, "
            f"ratio={drop}, stream={self.n}}}"
        )
        y = self.op("transpose", y, perm=[0, 2, 1, 3])
        y = self.op("reshape", y, shape=[self.b, self.t, self.width])
        y = self.linear(y, self.width, self.width)
        return self.op("reshape", y, shape=[self.b, self.t, self.width])

    def norm(self, x):
        self.n += 1
        args = f"{x}, {self.param(self.width)}, {self.param(self.width)}"
        self.lines.append(f"\t%v{self.n}, _, _ = layernorm {args} {{axis=2}}")
        return f"%v{self.n}"

    def block(self, x):
        y = self.attend(self.norm(x) if self.r.random() < 0.7 else x)
        x = self.op("add", x, self.dropout(y) if self.r.random() < 0.3 else y)
        y = self.op("tanh", self.linear(x, self.width, 6))
        w = self.op("matmul", y, self.param(6, self.width))
        return self.op("add", x, self.op("reshape", w, shape=[self.b, self.t, self.width]))

    def labels(self):
        if not self.shifted:
            return self.ids("labels", self.t)
        y = self.op("slice", "%ids", start=[0, 1], step=[1, 1])
        self.lines.append(self.lines.pop().replace(" = ", f": i64[{self.b},{self.t}] = ", 1))
        return y

    def loss(self, x):
        how = self.r.choice(["mean", "mean", "some", "weights", "sum", "rows", "one", "pool"])
        # the share of an element is a number of float32
        mean = "reduce_mean" if self.t & (self.t - 1) == 0 else "reduce_sum"
        if how in ("one", "pool"):
            if how == "one":
                y = self.op("slice", x, start=[0, 0, 0], step=[1, 1, 1])
                shape = f"f32[{self.b},1,{self.width}]"
                self.lines.append(self.lines.pop().replace(" = ", f": {shape} = ", 1))
            else:
                y = self.op(mean, x, axes=[1], keepdims=1)
            y = self.op("reshape", y, shape=[self.b, self.width])
            y = self.op("tanh", self.op("matmul", y, self.param(self.width, 3)))
            return self.op("reduce_mean", self.op("mul", y, y), axes=[0, 1], keepdims=0)
        z = self.linear(x, self.width, VOCAB)
        y = self.op("reshape", self.labels(), shape=[self.b * self.t])
        args, attrs = [z, y], {"reduction": {"sum": 2, "rows": 0}.get(how, 1)}
        if how == "weights":
            args.append(self.const("f32", [VOCAB], [1 + i for i in range(VOCAB)]))
        if how in ("some", "weights"):
            attrs["ignore"] = 1
        text = ", ".join(f"{k}={v}" for k, v in attrs.items())
        self.n += 1
        one = f"%v{self.n}"
        self.lines.append(f"\t{one}, _, _ = sce {', '.join(args)} {{{text}}}")
        if how == "rows":
            one = self.op(mean if self.b in (1, 2, 4) else "reduce_sum", one, axes=[0], keepdims=0)
        if self.r.random() < 0.3:  # of parameters alone
            w = self.op("reduce_sum", self.op("mul", "%p0", "%p0"), axes=[0, 1], keepdims=0)
            one = self.op("add", one, self.op("mul", w, self.const("f32", [], [0.01])))
        return one

    def text(self):
        r = self.r
        self.shifted = r.random() < 0.5
        self.turns, self.causal, self.drops = (r.random() < 0.4 for _ in range(3))
        self.causal = int(self.causal)
        extent = self.t + 1 if self.shifted else self.t
        self.tokens = self.ids("ids", extent)
        if self.shifted:
            self.tokens = self.op("slice", "%ids", start=[0, 0], step=[1, 1])
            shape = f"i64[{self.b},{self.t}]"
            self.lines.append(self.lines.pop().replace(" = ", f": {shape} = ", 1))
            # whole ids are one longer than positions
            self.ids_of_positions = self.tokens
        self.attention_mask = self.mask()
        lines, self.lines = self.lines, []
        x = self.embed()
        body = "\n".join(self.lines)
        if self.shifted:
            body = body.replace("ge %ids", f"ge {self.tokens}")
        self.lines = lines + [body]
        for _ in range(r.choice([1, 2])):
            x = self.block(x)
        loss = self.loss(x)
        at = "\n".join(self.lines).replace(f"\t{loss} = ", f"\t{loss}: f32[] output = ")
        at = at.replace(f"\t{loss}, ", f"\t{loss}: f32[] output, ")
        head = ["graph @context {", f"\tstreams {self.n + 1}"]
        head += [f"\tinput %{k}: i64[{self.b},{n}]" for k, n in self.inputs.items()]
        head += [f"\tparam %{k}: f32[{','.join(map(str, s))}]" for k, s in self.params.items()]
        return "\n".join([*head, at, f"\tloss {loss}", "}", ""])


def run(tool, work, seed):
    r = random.Random(seed)
    b, dp = r.choice([1, 2, 3]), r.choice([1, 1, 2])
    if dp > 1 and b == 1:
        b = 2
    form, heads = list(FORMS[seed // 2 % len(FORMS)]), seed % 2
    if "--attention=unfused" in form:
        heads = 0
    if "--stop-after=fuse" not in form and "--stop-after=place" not in form:
        form.insert(0, "--stop-after=optim")
    if "--stop-after=place" in form or "--stop-after=fuse" in form:
        form.sort(key=lambda x: not x.startswith("--stop"))
    ranks = heads and (2 if "--tp=2" in form else 1)
    whole, part = Transformer(seed, b * dp, ranks), Transformer(seed, b, ranks)
    paths = [os.path.join(work, f"{x}.ck") for x in ("whole", "part")]
    for path, of in zip(paths, (whole, part)):
        with open(path, "w") as f:
            f.write(of.text())
    flags = [*form, "--optimizer=sgd", f"--cp={part.c}", "--cp-dim=ids=1"]
    flags += [f"--dp={dp}"] if dp > 1 else []
    flags += [f"--cp-attention={'heads' if heads else r.choice(['gather', 'auto'])}"]
    done = subprocess.run([tool, *paths, *flags], capture_output=True, text=True)
    if done.returncode == 0:
        return True, done.stdout
    print(f"seed {seed}: {' '.join(flags)}: {done.returncode}\n{done.stdout}{done.stderr[-600:]}")
    return False, done.stdout


def main():
    tool = os.path.abspath(sys.argv[1])
    first, last = (int(x) for x in sys.argv[2:4]) if len(sys.argv) > 3 else (260, 420)
    failed = 0
    with tempfile.TemporaryDirectory() as work:
        for seed in range(first, last):
            failed += not run(tool, work, seed)[0]
    print(f"{last - first} graphs, {failed} failed")
    sys.exit(failed > 0)


main()
