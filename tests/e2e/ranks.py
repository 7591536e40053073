#!/usr/bin/env python3
"""Graphs that are cut over ranks by hand train as the same graphs on one rank, and as the
interpreter trains those.

    ranks.py CKC CKRUN [GRAPH...]

Losses, gradients, parameters and optimizer state after five steps; runs that go on at another
number of ranks; values that are whole are equal to the bit on all ranks; memory is what was planned
for a rank.
"""

import json
import os
import re
import sys

import numpy as np

import ck
from truth import HALF_ULP, SHALLOW, Truth

sys.path.insert(0, ck.TOOLS)
import compare

STEPS = 5
RUN = "--lr", "0.01", "--seed", 7, "--weight-decay", "0.1"


class Text:
    """A graph in text form for t ranks; 1: as it is without any."""

    def __init__(self, name, t):
        self.t, self.name, self.lines = t, name, []
        self.rng = np.random.default_rng(len(name))
        self.add("props bound static canon")
        if t > 1:
            self.add(f"ranks {t}")

    def add(self, line):
        self.lines.append("\t" + line)

    def per(self, n, shared=1):
        return -(-n // (self.t // shared if self.t > 1 else 1))

    def cut(self, axis, *parts, lead=None, shared=1):
        """What a value's mark says, and what a collective's attributes."""
        self.attrs = (
            f"axis={axis}, part=[{','.join(map(str, parts))}]"
            + f", lead={axis if lead is None else lead}"
            + (f", shared={shared}" if shared > 1 else "")
        )
        if self.t == 1:
            return ""
        return (
            f" split {axis} [{','.join(map(str, parts))}]"
            + ("" if lead is None else f" from {lead}")
            + (f" shared {shared}" if shared > 1 else "")
        )

    def param(self, name, whole, local=None, split="", dt="f32", kind="param"):
        data = self.rng.uniform(-0.5, 0.5, int(np.prod(whole)))
        dims = ",".join(map(str, (local or whole) if self.t > 1 else whole))
        self.add(
            f"{kind} %{name}: {dt}[{dims}]{split} = {{ {', '.join('%.4f' % x for x in data)} }}"
        )

    def comm(self, to, dims, split, op, x, attrs=""):
        """A step between ranks, %x under its new name; on one rank nothing happens."""
        if self.t == 1:
            return x
        self.add(
            f"%{to}: f32[{','.join(map(str, dims))}]{split} = {op} %{x}"
            + (f" {{{attrs}}}" if attrs else "")
        )
        return to

    def whole(self, x, dims):
        """A value that cut steps read: its gradient is added up."""
        return self.comm(x + ".r", dims, " split r", "replicate", x)

    def text(self):
        return f"graph @{self.name} {{\n" + "\n".join(self.lines) + "\n\tloss %loss\n}\n"

    def squared(self, x, y):
        self.add(f"%diff = sub %{x}, %{y}")
        self.add("%square = mul %diff, %diff")
        axes = "0,1,2" if self.three else "0,1"
        self.add(f"%loss output = reduce_mean %square {{axes=[{axes}], keepdims=0}}")


def mlp(t):
    """Columns, then rows: one sum."""
    g, n = Text("mlp", t), 12
    g.three = False
    g.add("input %x: f32[6,8]")
    g.add("input %y: f32[6,8]")
    m = g.per(n)
    g.param("w1", (8, n), (8, m), g.cut(1, n))
    g.param("b1", (n,), (m,), g.cut(0, n))
    g.param("w2", (n, 8), (m, 8), g.cut(0, n))
    g.param("b2", (8,))
    x = g.whole("x", (6, 8))
    c = g.cut(1, n)
    g.add(f"%h: f32[6,{m}]{c} = matmul %{x}, %w1")
    g.add(f"%hb: f32[6,{m}]{c} = add %h, %b1")
    g.add(f"%a: f32[6,{m}]{c} = gelu %hb")
    g.add(f"%z: f32[6,8]{' split p' if t > 1 else ''} = matmul %a, %w2")
    z = g.comm("sum", (6, 8), "", "all_reduce", "z")
    g.add(f"%o = add %{z}, %b2")
    g.squared("o", "y")
    return g.text()


def rows(t):
    """34 rows cut unevenly: norm, gather, product by columns and rows, scatter, dropout,
    residual."""
    g, n = Text("rows", t), 12
    g.three = True
    g.add("input %x: f32[1,34,8]")
    g.add("input %y: f32[1,34,8]")
    g.param("pos", (1, 34, 8))
    for name in "scale", "bias", "b2":
        g.param(name, (8,))
    m, r = g.per(n), g.per(34)
    g.param("w1", (8, n), (8, m), g.cut(1, n))
    g.param("w2", (n, 8), (m, 8), g.cut(0, n))
    g.add("%xp = add %x, %pos")
    row = g.cut(1, 34, lead=0)
    attrs = g.attrs
    xs = g.comm("xs", (1, r, 8), row, "own", "xp", attrs)
    scale, bias, b2 = (g.whole(p, (8,)) for p in ("scale", "bias", "b2"))
    g.add(f"%n: f32[1,{r},8]{row}, _, _ = layernorm %{xs}, %{scale}, %{bias} {{axis=2}}")
    n1 = g.comm("all", (1, 34, 8), " split r", "all_gather", "n", attrs + ", side=1")
    c = g.cut(2, n)
    g.add(f"%h: f32[1,34,{m}]{c} = matmul %{n1}, %w1")
    g.add(f"%a: f32[1,34,{m}]{c} = gelu %h")
    g.add(f"%z: f32[1,34,8]{' split p' if t > 1 else ''} = matmul %a, %w2")
    z = g.comm("zs", (1, r, 8), row, "reduce_scatter", "z", attrs)
    g.add(f"%zb: f32[1,{r},8]{row} = add %{z}, %{b2}")
    g.add(f"%d: f32[1,{r},8]{row} = dropout %zb {{ratio=0.25, stream=3}}")
    g.add(f"%o: f32[1,{r},8]{row} = add %d, %{xs}")
    o = g.comm("out", (1, 34, 8), "", "all_gather", "o", attrs)
    g.squared(o, "y")
    return g.text()


def heads(t, packed):
    """Attention with its heads cut, dropout within: packed q|k|v, or two key heads that ranks
    share."""
    g = Text("packed" if packed else "grouped", t)
    g.three = True
    groups, share = (4, 1) if packed else (2, max(1, t // 2))
    b, s, w, wk = 2, 6, 16, 4 * groups
    m, mk = g.per(w), g.per(wk, share)
    g.add(f"input %x: f32[{b},{s},{w}]")
    g.add(f"input %y: f32[{b},{s},{w}]")
    g.param("pos", (1, s, w))
    g.add("%xp = add %x, %pos")
    x, own = g.whole("xp", (b, s, w)), {}
    if packed:
        g.param("wqkv", (w, 3 * w), (w, 3 * m), g.cut(1, w, w, w))
        g.add(f"%qkv: f32[{b},{s},{3 * m}]{g.cut(2, w, w, w)} = matmul %{x}, %wqkv")
        for i, name in enumerate("qkv"):
            g.add(
                f"%{name}: f32[{b},{s},{m}]{g.cut(2, w)} = slice %qkv {{start=[0,0,{i * m}], step=[1,1,1]}}"
            )
    else:
        g.param("wq", (w, w), (w, m), g.cut(1, w))
        g.add(f"%q: f32[{b},{s},{m}]{g.cut(2, w)} = matmul %{x}, %wq")
        for name in "kv":
            g.param("w" + name, (w, wk))
            g.add(f"%{name}.all = matmul %xp, %w{name}")
            whole = g.whole(f"{name}.all", (b, s, wk))
            split = g.cut(2, wk, shared=share)
            own[name] = g.comm(f"{name}.own", (b, s, mk), split, "own", whole, g.attrs + ", from=1")
    for name, h, sh in ("q", 4, 1), ("k", groups, share), ("v", groups, share):
        n = g.per(4 * h, sh) // 4
        g.add(
            f"%{name}4: f32[{b},{s},{n},4]{g.cut(2, h, shared=sh)} = reshape %{own.get(name, name)} "
            f"{{shape=[{b},{s},{n},4]}}"
        )
        g.add(
            f"%{name}t: f32[{b},{n},{s},4]{g.cut(1, h, shared=sh)} = transpose %{name}4 {{perm=[0,2,1,3]}}"
        )
    n = m // 4
    g.add(
        f"%o: f32[{b},{n},{s},4]{g.cut(1, 4)}, %lse: f32[{b},{n},{s}]{g.cut(1, 4)} = attention %qt, %kt, %vt "
        "{scale=0.5, causal=1, ratio=0.25, stream=5}"
    )
    g.add(f"%ot: f32[{b},{s},{n},4]{g.cut(2, 4)} = transpose %o {{perm=[0,2,1,3]}}")
    g.add(f"%flat: f32[{b},{s},{m}]{g.cut(2, w)} = reshape %ot {{shape=[{b},{s},{m}]}}")
    g.param("wo", (w, w), (m, w), g.cut(0, w))
    g.add(f"%z: f32[{b},{s},{w}]{' split p' if t > 1 else ''} = matmul %flat, %wo")
    z = g.comm("sum", (b, s, w), "", "all_reduce", "z")
    g.squared(z, "y")
    return g.text()


def vocabulary(t):
    """A tied table of 65 rows: embedding and cross entropy, one label ignored."""
    g, v = Text("vocabulary", t), 65
    m = g.per(v)
    g.add("input %ids: i64[12]")
    g.add("input %labels: i64[12]")
    g.param("table", (v, 8), (m, 8), g.cut(0, v))
    g.param("w", (8, 8))
    part = f", part={v}" if t > 1 else ""
    g.add(f"%e: f32[12,8]{' split p' if t > 1 else ''} = gather %table, %ids {{axis=0{part}}}")
    e = g.comm("es", (12, 8), "", "all_reduce", "e")
    g.add(f"%h = matmul %{e}, %w")
    g.add("%a = gelu %h")
    a = g.whole("a", (12, 8))
    g.add(f"%logits: f32[12,{m}]{g.cut(1, v)} = matmul %{a}, %table {{tb=1}}")
    stats = ""
    if t > 1:
        g.add(f"%mine: f32[1,12,3]{g.cut(0, t)} = vocab_stats %logits, %labels {{part={v}}}")
        stats = ", _, %" + g.comm("stats", (t, 12, 3), "", "all_gather", "mine", g.attrs)
    g.add(
        f"%loss output, %lse, %denom = sce %logits, %labels{stats} {{reduction=1, ignore=-100{part}}}"
    )
    return g.text()


def classes(t):
    """Cross entropy of what is trained itself, which no chunks are made of; one label ignored."""
    g, v = Text("classes", t), 65
    g.add("input %labels: i64[12]")
    split = g.cut(1, v)
    g.param("w", (12, v), (12, g.per(v)), split)
    part, stats = (f", part={v}", ", _, %stats") if t > 1 else ("", "")
    if t > 1:
        g.add(f"%mine: f32[1,12,3]{g.cut(0, t)} = vocab_stats %w, %labels {{part={v}}}")
        g.comm("stats", (t, 12, 3), "", "all_gather", "mine", g.attrs)
    g.add(f"%loss output, %lse, %denom = sce %w, %labels{stats} {{reduction=1, ignore=-100{part}}}")
    return g.text()


def draws(t):
    """Masks of pieces: uneven, of one column, moved from rows to columns; the largest over
    ranks."""
    g = Text("draws", t)
    g.add("input %x: f32[6,10]")
    g.param("u", (6, 10), (g.per(6), 10), g.cut(0, 6))
    g.param("w", (6, 10), (6, g.per(10)), g.cut(1, 10))
    g.param("v", (6, 4), (6, g.per(4)), g.cut(1, 4))
    col = g.cut(1, 10)
    x = g.comm("xo", (6, g.per(10)), col, "own", "x", g.attrs)
    g.add(f"%ud: f32[{g.per(6)},10]{g.cut(0, 6)} = dropout %u {{ratio=0.5, stream=1}}")
    u = g.comm(
        "uc",
        (6, g.per(10)),
        col,
        "all_to_all",
        "ud",
        "axis=0, part=[6], to_axis=1, to_lead=1, to_part=[10]",
    )
    g.add(f"%wd: f32[6,{g.per(10)}]{col} = dropout %w {{ratio=0.5, stream=2}}")
    g.add(f"%vd: f32[6,{g.per(4)}]{g.cut(1, 4)} = dropout %v {{ratio=0.5, stream=4}}")
    g.add(f"%uw: f32[6,{g.per(10)}]{col} = mul %{u}, %wd")
    g.add(f"%uwx: f32[6,{g.per(10)}]{col} = mul %uw, %{x}")
    g.add(f"%vv: f32[6,{g.per(4)}]{g.cut(1, 4)} = mul %vd, %vd")
    g.cut(1, 10)
    uwx = g.comm("uwx.all", (6, 10), "", "all_gather", "uwx", g.attrs)
    g.cut(1, 4)
    vv = g.comm("vv.all", (6, 4), "", "all_gather", "vv", g.attrs)
    g.add(f"%s1 = reduce_sum %{uwx} {{axes=[0,1], keepdims=0}}")
    g.add(f"%s2 = reduce_sum %{vv} {{axes=[0,1], keepdims=0}}")
    g.add("%loss output = add %s1, %s2")
    return g.text()


def narrow(t):
    """bf16 parameters, of two stretches, rounded at random."""
    g = Text("narrow", t)
    g.add("input %x: f32[6,10]")
    split = g.cut(1, 4, 6)
    g.param("w", (6, 10), (6, g.per(4) + g.per(6)), split, "bf16")
    split = g.cut(1, 4, 6)
    dims = f"f32[6,{g.per(4) + g.per(6)}]{split}"
    x = g.comm("xo", (6, g.per(4) + g.per(6)), split, "own", "x", g.attrs)
    g.add(f"%f: {dims} = cast %w {{to=1}}")
    g.add(f"%fx: {dims} = mul %f, %{x}")
    fx = g.comm("fx.all", (6, 10), "", "all_gather", "fx", g.attrs)
    g.add(f"%loss output = reduce_sum %{fx} {{axes=[0,1], keepdims=0}}")
    return g.text()


def numberless(t):
    """A gradient that is no number in the last piece alone, where x is 0, and a running statistic,
    of a finite loss."""
    g, n = Text("numberless", t), 8
    g.add("input %x: f32[4,8]")
    c = g.cut(0, n)
    g.param("w", (n,), (g.per(n),), c)
    g.param("r", (n,), (g.per(n),), c, kind="buffer")
    split = g.cut(1, n)
    x = g.comm("xo", (4, g.per(n)), split, "own", "x", g.attrs)
    g.add(f"%h: f32[4,{g.per(n)}]{split} = mul %{x}, %w")
    g.add(f"%m: f32[{g.per(n)}]{c} = reduce_mean %h {{axes=[0], keepdims=0}}")
    g.add(f"%u: f32[{g.per(n)}]{c} = bn_update %r, %m {{momentum=0.75}}")
    g.add(f"%a: f32[4,{g.per(n)}]{split} = abs %h")
    g.add(f"%s: f32[4,{g.per(n)}]{split} = sqrt %a")
    s = g.comm("all", (4, n), "", "all_gather", "s", g.attrs)
    g.add(f"%loss output = reduce_sum %{s} {{axes=[0,1], keepdims=0}}")
    return g.text()


def wide(t):
    """An input beside which all else is small."""
    g = Text("wide", t)
    g.add("input %x: f32[512,2048]")
    g.param("w", (2,))
    g.add("%s = reduce_sum %x {axes=[0,1], keepdims=0}")
    g.add("%p = mul %w, %s")
    g.add("%loss output = reduce_sum %p {axes=[0], keepdims=0}")
    return g.text()


def inputs(text):
    rng, out = np.random.default_rng(1), {}
    for name, dt, dims in re.findall(r"input %(\w+): (\w+)\[([\d,]+)\]", text):
        dims = [int(d) for d in dims.split(",")]
        out[name] = (
            rng.standard_normal(dims, dtype=np.float32)
            if dt == "f32"
            else rng.integers(0, 65, dims)
        )
    if "numberless" in text:
        out["x"][:, -1] = 0
    if "labels" in out:
        out["labels"][3] = -100
    if "ids" in out:
        out["ids"][5] = -1
    return out


def losses(done):
    return [float(x) for x in re.findall(r"loss (\S+)", done.stdout)]


class Ranks(ck.Bench):
    def build(self, make, t):
        path, text = self.path(f"{make.__name__}{t}.ck"), make(t)
        with open(path, "w") as f:
            f.write(text)
        np.savez(self.path(make.__name__ + ".npz"), **inputs(text))
        so = path[:-3] + ".so"
        return so if self.must(self.ckc(path, "-o", so), path) else None

    def train(self, make, so, *more, steps=STEPS, **kw):
        done = self.ckrun(
            so,
            "--inputs",
            self.path(make.__name__ + ".npz"),
            "--steps",
            steps,
            *RUN,
            *more,
            **kw,
        )
        self.must(done, f"{os.path.basename(so)} {more}")
        return done

    def near(self, a, b, what, rtol=1e-5, atol=1e-7):
        self.check(
            np.shape(a) == np.shape(b) and np.allclose(a, b, rtol=rtol, atol=atol),
            f"{what}: {a} is not {b}",
        )

    def same_file(self, a, b, what, exact=False):
        a, b = compare.load(self.path(a)), compare.load(self.path(b))
        self.check(sorted(a) == sorted(b), f"{what}: tensors {sorted(a)}, {sorted(b)}")
        for name in a:
            if exact:
                self.check(np.array_equal(a[name], b.get(name)), f"{what}: bits of {name}")
            else:
                self.near(a[name], b.get(name), f"{what}: {name}")

    def model(self, make, ranks, exact=False):
        name, sos, clip = make.__name__, {}, () if exact else ("--clip", "0.05")
        for t in (1, *ranks):
            sos[t] = self.build(make, t)
            if not sos[t]:
                return
        one = self.train(make, sos[1], "--save", "1.st", "--grads", "g1.st", *clip)
        right = Truth(
            self, sos[1][:-3] + ".ck", [], self.path(name + ".npz"), "--steps", STEPS, *RUN, *clip
        )
        # the gradient of a bf16 parameter is rounded once
        limits = (HALF_ULP["bf16"],) * 3 if exact else SHALLOW
        of = dict(dtype="bf16" if exact else "f32")
        right.check(name, limits, losses(one), "g1.st", "1.st", **of)
        for t in ranks:
            what = f"{name} on {t}"
            done = self.train(
                make, sos[t], "--save", f"{t}.st", "--grads", f"g{t}.st", "--check", *clip
            )
            self.check(
                f"{t} virtual ranks (tensor parallel)" in done.stdout,
                f"{what}: not said: {done.stdout}",
            )
            right.check(what, limits, losses(done), f"g{t}.st", f"{t}.st", **of)
            self.near(losses(done), losses(one), f"{what}: losses")
            self.same_file(f"{t}.st", "1.st", what, exact)
            self.same_file(f"g{t}.st", "g1.st", f"{what}: gradients")
            peak, planned = re.search(
                r"peak (\d+) bytes per rank, planned (\d+)", done.stdout
            ).groups()
            self.check(peak == planned, f"{what}: peak {peak}, planned {planned}")
            self.near(
                losses(self.train(make, sos[t], *clip, env={"CKR_POISON": "1"})),
                losses(done),
                f"{what}: poisoned",
                0,
                0,
            )
            seen = self.run([self.measure_path, sos[t], self.path(name + ".npz"), 8])
            self.check('"apart": 0,' in seen.stdout, f"{what}: {seen.stdout} {seen.stderr}")
        if make in (rows, vocabulary):
            self.go_on(make, sos, one, clip)

    def once(self):
        """What no step writes is in memory once, however many ranks there are."""
        so = self.build(wide, 8)
        done = so and self.run([self.measure_path, so, "-", 2])
        if so and self.must(done, "wide"):
            m = json.loads(done.stdout)
            self.check(
                m["sanitized"] or m["resident"] <= m["anon"][-1] < 1.5 * m["resident"], f"wide: {m}"
            )

    def not_numbers(self):
        """Seen wherever it is; a step that is left out leaves nothing behind on any rank."""
        for t in 1, 4:
            so = self.build(numberless, t)
            if not so:
                continue
            run = so, "--inputs", self.path("numberless.npz"), "--steps", 1
            self.must(
                self.ckrun(
                    so, "--inputs", self.path("numberless.npz"), "--steps", 0, "--save", "0.st"
                ),
                "numberless",
            )
            done = self.ckrun(*run)
            self.check(
                done.returncode == 1 and "the gradient of 'w' is not finite: nan" in done.stderr,
                f"on {t}: {done.stderr}",
            )
            self.must(self.ckrun(*run, "--on-nan", "skip", "--save", "1.st"), "numberless, skipped")
            self.same_file("1.st", "0.st", f"a step that {t} ranks leave out", True)

    def go_on(self, make, sos, one, clip):
        """Two steps on two ranks, the others on any."""
        self.train(make, sos[2], "--save", "half.st", *clip, steps=2)
        for t, so in sos.items():
            done = self.train(make, so, "--resume", "half.st", "--save", "end.st", *clip)
            self.near(losses(done), losses(one)[2:], f"{make.__name__}: from 2 ranks to {t}")
            self.same_file("end.st", "1.st", f"{make.__name__}: from 2 ranks to {t}")


def packed(t):
    return heads(t, True)


def grouped(t):
    return heads(t, False)


GRAPHS = (
    (mlp, (4,)),
    (rows, (2, 4)),
    (packed, (2,)),
    (grouped, (4,)),
    (vocabulary, (2, 3, 6)),
    (classes, (3,)),
    (draws, (4,)),
    (narrow, (2,)),
)


def main():
    bench = Ranks()
    for make, ranks in GRAPHS:
        if make.__name__ in (bench.names or [make.__name__]):
            bench.model(make, ranks, make is narrow)
    for make, part in (wide, bench.once), (numberless, bench.not_numbers):
        if make.__name__ in (bench.names or [make.__name__]):
            part()
    bench.finish()


if __name__ == "__main__":
    main()
