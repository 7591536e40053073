#!/usr/bin/env python3
"""Sharded graphs, written by hand, against the graph of one rank.

    check_spmd.py --tool build/ref_compare [NAME-GLOB...]

Each case is a graph of one rank, the same one as a rank has it, and changes to the latter that
change a number: ref_compare must find the two equal, and every changed one different, unless ckc's
verifier rejects it before it runs.  What comes backward is made by autodiff and optim from both,
unless the text has it.  One line per case; exit status 0 when all are right.
"""

import argparse
import fnmatch
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

CASES = []
# What ref_compare says of two graphs that run and are not the same, and ckc of one that it does not
# run.
DIFFERENT = re.compile("differs by|not the same|share a piece differ")
REJECTED = re.compile(r"ranks\.ck: (node|value) |internal: pass \w+ left an invalid graph")
BACKWARD = ["--passes=autodiff,optim"]
PLANNED = ["--stop-after=place", "--recompute=full"]
# 24 rows of logits in chunks of 7; without a loss, nothing is in chunks.
CHUNKED = ["--stop-after=fuse"]
# Further ways to make an update, for cases whose gradients autodiff makes (Lion's signs would be
# those of rounding errors).
WAYS = [
    ["--grad-accum", "2"],
    ["--update-in-backward", "on", "--optimizer", "sgdm"],
    ["--optimizer", "adafactor"],
]


def case(name, plain, sharded, wrong=(), args=BACKWARD, below=()):
    """wrong: (old, new) pieces of text; below: (input, its integers are below)."""
    CASES.append((name, plain, sharded, wrong, args, below))


def ceil(n, t):
    return -(-n // t)


def graph(text, ranks=0):
    lines = (
        ["graph @f {"]
        + ["ranks %d" % ranks] * (ranks > 0)
        + text.strip().split("\n")
        + ["loss %loss", "}"]
    )
    return "\n\t".join(s.strip() for s in lines[:-1]) + "\n}\n"


TAIL = """
%sq = mul %y, %y
%loss output = reduce_mean %sq {axes=[0,1], keepdims=0}
"""


# ---- products: column, then row ----


def products(t):
    n = 8 // t
    plain = (
        """
        input %x: f32[4,6]
        param %g: f32[6]
        param %c: f32[6]
        param %w1: f32[6,8]
        param %b1: f32[8]
        param %w2: f32[8,6]
        param %b2: f32[6]
        %n, %mu, %rs = layernorm %x, %g, %c
        %h = matmul %n, %w1, %b1
        %a = gelu %h
        %o = matmul %a, %w2
        %y0 = add %o, %b2
        %y = add %y0, %n"""
        + TAIL
    )
    sharded = (
        f"""
        input %x: f32[4,6]
        param %g: f32[6]
        param %c: f32[6]
        param %w1: f32[6,{n}] split 1 [8]
        param %b1: f32[{n}] split 0 [8]
        param %w2: f32[{n},6] split 0 [8]
        param %b2: f32[6]
        %n, %mu, %rs = layernorm %x, %g, %c
        %nr split r = replicate %n
        %h split 1 [8] = matmul %nr, %w1, %b1
        %a split 1 [8] = gelu %h
        %op split p = matmul %a, %w2
        %o = all_reduce %op
        %y0 = add %o, %b2
        %y = add %y0, %n"""
        + TAIL
    )
    wrong = [
        ("%o = all_reduce %op", "%o = copy %op"),  # g missing
        ("replicate %n", "copy %n"),  # f missing: no sum in backward
        ("all_reduce %op", "all_reduce %op {side=1}"),  # doubled in backward
        ("%b2: f32[6]", "%b2: f32[6] split r"),  # a complete gradient is added up
        ("%op split p = matmul %a, %w2", "%op split p = matmul %a, %w2, %b2"),
    ]
    case(f"products-{t}", graph(plain), graph(sharded, t), wrong)


def chain(t):
    """Sums over ranks that are read by pieces at once, scattered along columns, and of both
    signs."""
    n = 8 // t
    plain = (
        """
        input %x: f32[4,6]
        param %w1: f32[6,8]
        param %w2: f32[8,6]
        param %w3: f32[6,8]
        param %w4: f32[8,8]
        param %b4: f32[8]
        %h = matmul %x, %w1
        %a = tanh %h
        %o = matmul %a, %w2
        %i = matmul %o, %w3
        %j = sigmoid %i
        %k = matmul %j, %w4
        %y = add %k, %b4"""
        + TAIL
    )
    sharded = (
        f"""
        input %x: f32[4,6]
        param %w1: f32[6,{n}] split 1 [8]
        param %w2: f32[{n},6] split 0 [8]
        param %w3: f32[6,{n}] split 1 [8]
        param %w4: f32[{n},8] split 0 [8]
        param %b4: f32[8] split r
        %h split 1 [8] = matmul %x, %w1
        %a split 1 [8] = tanh %h
        %op split p = matmul %a, %w2
        %o split r = all_reduce %op {{side=1}}
        %i split 1 [8] = matmul %o, %w3
        %j split 1 [8] = sigmoid %i
        %kp split p = matmul %j, %w4
        %k split 1 [8] = reduce_scatter %kp {{axis=1, lead=1, part=[8]}}
        %b split 0 [8] = own %b4 {{axis=0, part=[8], from=1}}
        %ys split 1 [8] = add %k, %b
        %y = all_gather %ys {{axis=1, lead=1, part=[8]}}"""
        + TAIL
    )
    case(f"chain-{t}", graph(plain), graph(sharded, t), [("{side=1}", ""), (", from=1", "")])


# ---- sequence parallel: rows of [2,5,6] cut, with and without padding ----


def rows(t):
    r, n = ceil(10, t), ceil(6, t)
    cut = "axis=1, lead=0, part=[10]"
    plain = (
        """
        input %x: f32[2,5,6]
        param %p: f32[5,6]
        param %g: f32[6]
        param %w1: f32[6,6]
        param %w2: f32[6,6]
        param %b2: f32[6]
        %e = add %x, %p
        %n, %rs = rmsnorm %e, %g
        %n2 = reshape %n {shape=[10,6]}
        %h = matmul %n2, %w1
        %a = silu %h
        %o = matmul %a, %w2
        %o3 = reshape %o {shape=[2,5,6]}
        %ob = add %o3, %b2
        %s = add %ob, %e
        %y = reshape %s {shape=[10,6]}"""
        + TAIL
    )
    sharded = (
        f"""
        input %x: f32[2,5,6]
        param %p: f32[5,6]
        param %g: f32[6] split r
        param %w1: f32[6,{n}] split 1 [6]
        param %w2: f32[{n},6] split 0 [6]
        param %b2: f32[6] split r
        %ew = add %x, %p
        %e: f32[1,{r},6] split 1 [10] from 0 = own %ew {{{cut}}}
        %n split 1 [10] from 0, %rs split 1 [10] from 0 = rmsnorm %e, %g
        %n3 split r = all_gather %n {{{cut}, side=1}}
        %n2 split r = reshape %n3 {{shape=[10,6]}}
        %h split 1 [6] = matmul %n2, %w1
        %a split 1 [6] = silu %h
        %op split p = matmul %a, %w2
        %op3 split p = reshape %op {{shape=[2,5,6]}}
        %o3 split 1 [10] from 0 = reduce_scatter %op3 {{{cut}}}
        %ob split 1 [10] from 0 = add %o3, %b2
        %s split 1 [10] from 0 = add %ob, %e
        %y3 = all_gather %s {{{cut}}}
        %y = reshape %y3 {{shape=[10,6]}}"""
        + TAIL
    )
    wrong = [
        ("{axis=1, lead=0, part=[10], side=1}", "{axis=1, lead=0, part=[10]}"),  # own in backward
        (
            "%y3 = all_gather %s {axis=1, lead=0, part=[10]}",
            "%y3 = all_gather %s {axis=1, lead=0, part=[10], side=1}",
        ),
        ("%g: f32[6] split r", "%g: f32[6]"),  # scale of the norm not added up
        ("%b2: f32[6] split r", "%b2: f32[6]"),
        ("%p: f32[5,6]", "%p: f32[5,6] split r"),
        ("own %ew {axis=1, lead=0, part=[10]}", "own %ew {axis=1, lead=0, part=[10], from=1}"),
    ]  # a summand taken as whole
    case(f"rows-{t}", graph(plain), graph(sharded, t), wrong)


# ---- packed q|k|v, heads cut, causal ----


def packed(t):
    n, d = 12 // t, 3
    plain = """
        input %x: f32[10,6]
        param %w: f32[6,36]
        param %b: f32[36]
        param %wo: f32[12,6]
        %qkv = matmul %x, %w, %b"""
    sharded = f"""
        input %x: f32[10,6]
        param %w: f32[6,{3 * n}] split 1 [12,12,12]
        param %b: f32[{3 * n}] split 0 [12,12,12]
        param %wo: f32[{n},6] split 0 [12]
        %qkv split 1 [12,12,12] = matmul %x, %w, %b"""
    for k, v in enumerate("qkv"):
        for whole in (True, False):
            width = 12 if whole else n
            mark = (
                "" if whole else "split 1 [12]",
                "" if whole else "split 2 [4]",
                "" if whole else "split 1 [4]",
            )
            text = f"""
        %{v}0: f32[10,{width}] {mark[0]} = slice %qkv {{start=[0,{k * width}], step=[1,1]}}
        %{v}1 {mark[1]} = reshape %{v}0 {{shape=[2,5,{width // d},{d}]}}
        %{v} {mark[2]} = transpose %{v}1 {{perm=[0,2,1,3]}}"""
            if whole:
                plain += text
            else:
                sharded += text
    plain += (
        """
        %o, %lse = attention %q, %k, %v {scale=0.5, causal=1}
        %o1 = transpose %o {perm=[0,2,1,3]}
        %o2 = reshape %o1 {shape=[10,12]}
        %y = matmul %o2, %wo"""
        + TAIL
    )
    sharded += (
        f"""
        %o split 1 [4], %lse split 1 [4] = attention %q, %k, %v {{scale=0.5, causal=1}}
        %o1 split 2 [4] = transpose %o {{perm=[0,2,1,3]}}
        %o2 split 1 [12] = reshape %o1 {{shape=[10,{n}]}}
        %yp split p = matmul %o2, %wo
        %y = all_reduce %yp"""
        + TAIL
    )
    wrong = [
        (
            f"%w: f32[6,{3 * n}] split 1 [12,12,12]",
            f"%w: f32[6,{3 * n}] split 1 [36]",
        ),  # cut as if it were one
        (f"%b: f32[{3 * n}] split 0 [12,12,12]", f"%b: f32[{3 * n}] split 0 [36]"),
        ("all_reduce", "copy"),
    ]
    case(f"packed-{t}", graph(plain), graph(sharded, t), wrong)


# ---- fewer key heads than ranks ----


def shared_heads():
    plain = (
        """
        input %x: f32[1,5,8]
        param %wq: f32[8,12]
        param %wk: f32[8,6]
        param %wv: f32[8,6]
        param %wo: f32[12,8]
        %x2 = reshape %x {shape=[5,8]}
        %q0 = matmul %x2, %wq
        %k0 = matmul %x2, %wk
        %v0 = matmul %x2, %wv
        %q1 = reshape %q0 {shape=[1,5,4,3]}
        %q = transpose %q1 {perm=[0,2,1,3]}
        %k1 = reshape %k0 {shape=[1,5,2,3]}
        %k = transpose %k1 {perm=[0,2,1,3]}
        %v1 = reshape %v0 {shape=[1,5,2,3]}
        %v = transpose %v1 {perm=[0,2,1,3]}
        %o, %lse = attention %q, %k, %v {scale=0.5}
        %o1 = transpose %o {perm=[0,2,1,3]}
        %o2 = reshape %o1 {shape=[5,12]}
        %y = matmul %o2, %wo"""
        + TAIL
    )
    cut = "axis=1, lead=1, shared=2, part=[2], from=1"
    sharded = (
        f"""
        input %x: f32[1,5,8]
        param %wq: f32[8,3] split 1 [12]
        param %wk: f32[8,6] split r
        param %wv: f32[8,6] split r
        param %wo: f32[3,8] split 0 [12]
        %x2 = reshape %x {{shape=[5,8]}}
        %q0 split 1 [12] = matmul %x2, %wq
        %k0 split r = matmul %x2, %wk
        %v0 split r = matmul %x2, %wv
        %q1 split 2 [4] = reshape %q0 {{shape=[1,5,1,3]}}
        %q split 1 [4] = transpose %q1 {{perm=[0,2,1,3]}}
        %k1 split r = reshape %k0 {{shape=[1,5,2,3]}}
        %kw split r = transpose %k1 {{perm=[0,2,1,3]}}
        %k split 1 [2] shared 2 = own %kw {{{cut}}}
        %v1 split r = reshape %v0 {{shape=[1,5,2,3]}}
        %vw split r = transpose %v1 {{perm=[0,2,1,3]}}
        %v split 1 [2] shared 2 = own %vw {{{cut}}}
        %o split 1 [4], %lse split 1 [4] = attention %q, %k, %v {{scale=0.5}}
        %o1 split 2 [4] = transpose %o {{perm=[0,2,1,3]}}
        %o2 split 1 [12] = reshape %o1 {{shape=[5,3]}}
        %yp split p = matmul %o2, %wo
        %y = all_reduce %yp"""
        + TAIL
    )
    wrong = [
        (
            "own %kw {axis=1, lead=1, shared=2, part=[2], from=1}",
            "own %kw {axis=1, lead=1, shared=2, part=[2], from=0}",
        ),
        ("%wv: f32[8,6] split r", "%wv: f32[8,6]"),
    ]
    case("shared-heads", graph(plain), graph(sharded, 4), wrong)


# ---- a vocabulary of 65 over ranks, head tied to the embedding ----


def vocabulary(t, reduction):
    n = ceil(65, t)
    labels = ", ".join(
        str(i * 64 // 23 if i % 5 else 3) for i in range(24)
    )  # the last one and ignored ones, too
    tail = (
        ""
        if reduction
        else """
        %s = mul %l, %m
        %loss output = reduce_sum %s {axes=[0], keepdims=0}"""
    )
    out = "loss output" if reduction else "l"
    plain = (
        f"""
        input %ids: i64[24]
        const %labels: i64[24] = {{{labels}}}
        input %m: f32[24]
        param %wte: f32[65,6]
        param %w: f32[6,6]
        param %b: f32[65]
        %e = gather %wte, %ids
        %h = matmul %e, %w
        %logits = matmul %h, %wte, %b {{tb=1}}
        %{out}, %lse, %d = sce %logits, %labels {{reduction={reduction}, ignore=3}}"""
        + tail
    )
    sharded = (
        f"""
        input %ids: i64[24]
        const %labels: i64[24] = {{{labels}}}
        input %m: f32[24]
        param %wte: f32[{n},6] split 0 [65]
        param %w: f32[6,6]
        param %b: f32[{n}] split 0 [65]
        %ep split p = gather %wte, %ids {{part=65}}
        %e = all_reduce %ep
        %h = matmul %e, %w
        %hr split r = replicate %h
        %logits split 1 [65] = matmul %hr, %wte, %b {{tb=1}}
        %mine split 0 [{t}] = vocab_stats %logits, %labels {{part=65}}
        %stats = all_gather %mine {{axis=0, part=[{t}]}}
        %{out}, %lse, %d = sce %logits, %labels, _, %stats {{reduction={reduction}, ignore=3, part=65}}"""
        + tail
    )
    wrong = [("all_reduce %ep", "copy %ep"), ("replicate %h", "copy %h")]
    if 65 % t:
        # zeros of padding in the softmax; the size is right and the whole is not
        wrong.append(
            (
                "vocab_stats %logits, %labels {part=65}",
                "vocab_stats %%logits, %%labels {part=%d}" % (n * t),
            )
        )
    case(f"vocabulary-{t}-{reduction}", graph(plain), graph(sharded, t), wrong, below=[("ids", 65)])


# ---- random numbers by whole index ----


def masks(t):
    """Rows, then columns cut; the gradient's mask is the same one."""
    r, n = ceil(10, t), ceil(6, t)

    def text(rows, cols, x3, own, mark, mark2, turn, whole, last):
        return f"""
        input %x: f32[2,5,6]
        param %w: f32[6,6]
        %x2 = reshape %x {{shape=[10,6]}}
        %h = matmul %x2, %w
        %h3 = reshape %h {{shape=[2,5,6]}}
        {own}
        %d {mark} = dropout %{x3} {{ratio=0.4, stream=1}}
        %u: f32[{rows}] {mark} = random {{shape=[{rows}], dt=f32, a=-1, b=2, stream=2}}
        %p {mark} = sigmoid %u
        %k {mark} = bernoulli %p {{stream=3}}
        %dk {mark} = mul %d, %k
        %du {mark} = mul %dk, %u
        {turn}
        %e {mark2} = dropout %c {{ratio=0.3, stream=4}}
        {whole}
        %loss output = reduce_sum %ew {{axes=[0,1,2], keepdims=0}}
        %de: f32[{cols}] {mark2} = fill {{shape=[{cols}], value=1}} @backward
        %dc {mark2} = dropout %de {{ratio=0.3, stream=4, bwd=1}} @backward
        {last}"""

    plain = text(
        "2,5,6",
        "2,5,6",
        "h3",
        "",
        "",
        "",
        "%c = copy %du",
        "%ew = copy %e",
        """
        %dm = mul %dc, %k @backward
        %dn = mul %dm, %u @backward
        %dh = dropout %dn {ratio=0.4, stream=1, bwd=1} @backward
        %dh2 = reshape %dh {shape=[10,6]} @backward
        %dw param %w = matmul %x2, %dh2 {ta=1} @backward""",
    )
    rc, cc = "split 1 [10] from 0", "split 2 [6]"
    cut, cols = "axis=1, lead=0, part=[10]", "axis=2, lead=2, part=[6]"
    sharded = text(
        f"1,{r},6",
        f"2,5,{n}",
        "o",
        f"%o {rc} = own %h3 {{{cut}}}",
        rc,
        cc,
        f"""%dw0 = all_gather %du {{{cut}}}
        %dw3 = reshape %dw0 {{shape=[2,5,6]}}
        %c {cc} = own %dw3 {{{cols}}}""",
        f"%ew = all_gather %e {{{cols}}}",
        f"""
        %dcw = all_gather %dc {{{cols}}} @backward
        %dco {rc} = own %dcw {{{cut}}} @backward
        %dm {rc} = mul %dco, %k @backward
        %dn {rc} = mul %dm, %u @backward
        %dh {rc} = dropout %dn {{ratio=0.4, stream=1, bwd=1}} @backward
        %dhw = all_gather %dh {{{cut}}} @backward
        %dh2 = reshape %dhw {{shape=[10,6]}} @backward
        %dw param %w = matmul %x2, %dh2 {{ta=1}} @backward""",
    )
    wrong = [
        (f"%d {rc}", "%d split r"),
        (f"%u: f32[1,{r},6] {rc}", f"%u: f32[1,{r},6]"),
        (f"%k {rc}", "%k split r"),
        (f"%e {cc}", "%e split r"),
        (f"%dh {rc}", "%dh split r"),
        (f"%dc {cc}", "%dc split r"),
    ]
    case(f"masks-{t}", graph(plain), graph(sharded, t), wrong, ["--passes=optim"])


def attention_mask():
    def text(h, shape, mark, own, whole, back):
        return f"""
        input %q: f32[2,4,3,5]
        input %k: f32[2,4,3,5]
        param %v: f32[2,{h},3,5] {mark}
        {own}
        %o {mark}, %lse {mark} = attention %qo, %ko, %v {{scale=0.4, ratio=0.5, stream=7}}
        {whole}
        %loss output = reduce_sum %ow {{axes=[0,1,2,3], keepdims=0}}
        %do: f32[2,{h},3,5] {mark} = fill {{shape=[2,{h},3,5], value=1}} @backward
        _, _, %dv {mark} param %v = attention_grad %do, %qo, %ko, %v, %o, %lse {{scale=0.4, ratio=0.5, stream=7}} @backward
        """

    cut = "axis=1, lead=1, part=[4]"
    mark = "split 1 [4]"
    plain = text(4, "", "", "%qo = copy %q\n\t%ko = copy %k", "%ow = copy %o", "")
    sharded = text(
        1,
        "",
        mark,
        f"%qo {mark} = own %q {{{cut}}}\n\t%ko {mark} = own %k {{{cut}}}",
        f"%ow = all_gather %o {{{cut}}}",
        "",
    )
    case(
        "attention-mask",
        graph(plain),
        graph(sharded, 4),
        [("%o split 1 [4]", "%o split r")],
        ["--passes=optim"],
    )


# ---- exchange ----


def exchange(t):
    n = ceil(7, t)
    plain = (
        """
        input %x: f32[10,7]
        param %s: f32[7]
        param %u: f32[7]
        %e = mul %x, %s
        %q = softplus %e
        %y = mul %q, %u"""
        + TAIL
    )
    sharded = (
        f"""
        input %x: f32[10,7]
        param %s: f32[7] split r
        param %u: f32[{n}] split 0 [7]
        %xo split 0 [10] = own %x {{axis=0, part=[10]}}
        %e split 0 [10] = mul %xo, %s
        %f split 0 [10] = softplus %e
        %q: f32[10,{n}] split 1 [7] = all_to_all %f {{axis=0, lead=0, part=[10], to_axis=1, to_lead=1, to_part=[7]}}
        %z split 1 [7] = mul %q, %u
        %y = all_gather %z {{axis=1, lead=1, part=[7]}}"""
        + TAIL
    )
    case(f"exchange-{t}", graph(plain), graph(sharded, t), [("%s: f32[7] split r", "%s: f32[7]")])


for t in 2, 4:
    products(t)
    chain(t)
    packed(t)
for t in 2, 3, 4, 5:
    rows(t)
for t in 2, 3, 6:
    vocabulary(t, 1)
    masks(t)
vocabulary(3, 0)
vocabulary(2, 2)
for t in 2, 4:
    exchange(t)
shared_heads()
attention_mask()


# ---- convolutions: channels out, a statistic of each, groups, channels in ----


def convolutions(t):
    n = 8 // t

    def text(n, group, one, zero, whole):
        return (
            f"""
        input %x: f32[2,3,5,5]
        param %w1: f32[{n},3,3,3] {zero}
        param %b1: f32[{n}] {zero}
        param %s: f32[{n}] {zero}
        buffer %r: f32[{n}] {zero}
        param %w2: f32[{n},1,3,3] {zero}
        param %w3: f32[4,{n},1,1] {whole and "split 1 [8]"}
        param %b3: f32[4,1,1]
        %c {one} = conv %x, %w1, %b1
        %n {one}, %m {zero}, %v {zero} = batchnorm %c, %s
        %u {zero} = bn_update %r, %m {{momentum=0.75}}
        %h {one} = tanh %n
        %p {one}, %i {one} = maxpool %h {{kernel=[2,2]}}
        %d {one} = conv %p, %w2 {{{group}, begin=[1,1], end=[1,1]}}
        %o4 = {whole or "conv %d, %w3"}
        %y4 = add %o4, %b3
        %y = reshape %y4 {{shape=[8,4]}}"""
            + TAIL
        )

    plain = text(8, "group=8", "", "", "")
    sharded = text(n, f"group={n}, part=8", "split 1 [8]", "split 0 [8]", "all_reduce %q").replace(
        "%o4 =", "%q split p = conv %d, %w3\n%o4 ="
    )
    wrong = [
        ("all_reduce", "copy"),
        ("%b3: f32[4,1,1]", "%b3: f32[4,1,1] split r"),
        (", part=8", ""),
        (", part=8", ", part=16"),
        (f"%r: f32[{n}] split 0 [8]", f"%r: f32[{n}]"),
    ]
    case(f"convolutions-{t}", graph(plain), graph(sharded, t), wrong)


for t in 2, 4:
    convolutions(t)


# ---- the run ----


def compare(tool, work, name, plain, sharded, args, below):
    """Status and output of ref_compare."""
    folder = os.path.join(work, name)
    os.mkdir(folder)
    for file, text in (("plain.ck", plain), ("ranks.ck", sharded)):
        with open(os.path.join(folder, file), "w", encoding="utf-8") as f:
            f.write(text)
    with open(os.path.join(folder, "setup"), "w", encoding="utf-8") as f:
        # the norm counts: all are clipped
        f.write("clip 0.01\n" + "".join("below %s %d\n" % b for b in below))
    states = (
        [] if args[:1] in (BACKWARD, CHUNKED, PLANNED[:1]) else ["--states"]
    )  # autodiff says of no value how it lies
    rows = ["--loss-rows", "7"] if args == CHUNKED else []
    done = subprocess.run(
        [
            tool,
            *states,
            *rows,
            folder,
            os.path.join(folder, "plain.ck"),
            *args,
            "--",
            os.path.join(folder, "ranks.ck"),
            *args,
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
    )
    return done.returncode, done.stdout


def check(tool, work, one):
    name, plain, sharded, wrong, args, below = one
    faults, rejected = [], 0
    ways = [args] + ([args + w for w in WAYS] + [PLANNED, CHUNKED] if args is BACKWARD else [])
    for i, way in enumerate(ways):
        status, out = compare(tool, work, "%s-way%d" % (name, i), plain, sharded, way, below)
        if status != 0:
            faults.append("%s: status %d\n%s" % (" ".join(way), status, out))
    for i, (old, new) in enumerate(wrong):
        if sharded.count(old) < 1:
            faults.append("nothing to change: " + old)
            continue
        status, out = compare(
            tool, work, "%s.%d" % (name, i), plain, sharded.replace(old, new), args, below
        )
        rejected += REJECTED.search(out) is not None
        if status != 1 or not (DIFFERENT.search(out) or REJECTED.search(out)):
            faults.append("%s instead of %s: status %d\n%s" % (new, old, status, out))
    return name, faults, len(wrong), rejected


def uncovered():
    """Collectives, by the states that they go between, of which no case takes the gradient."""
    text = "".join(sharded for _, _, sharded, _, args, _ in CASES if args is BACKWARD)
    found = {
        op + ("-r" if "side=1" in rest or "from=1" in rest else "")
        for op, rest in re.findall(r"= (\w+) %[^\n{]*(.*)", text)
    }
    return {
        "all_reduce",
        "all_reduce-r",
        "all_gather",
        "all_gather-r",
        "reduce_scatter",
        "all_to_all",
        "replicate",
        "own",
        "own-r",
    } - found


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--tool", required=True)
    p.add_argument("names", nargs="*")
    o = p.parse_args()
    todo = [c for c in CASES if not o.names or any(fnmatch.fnmatch(c[0], n) for n in o.names)]
    failed = len(uncovered())
    print(
        *("FAIL no case has the gradient of %s\n" % op for op in sorted(uncovered())),
        sep="",
        end="",
    )
    with tempfile.TemporaryDirectory() as work, ThreadPoolExecutor(2) as pool:
        for name, faults, changes, rejected in pool.map(lambda c: check(o.tool, work, c), todo):
            print(
                "%s %s, %d changes, %d rejected by the verifier, the rest by their numbers"
                % ("FAIL" if faults else "ok  ", name, changes, rejected),
                *faults,
                sep="\n     ",
                flush=True,
            )
            failed += bool(faults)
    print("%d passed, %d failed" % (len(todo) - failed, failed))
    return failed > 0 or not todo


if __name__ == "__main__":
    sys.exit(main())
