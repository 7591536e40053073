#!/usr/bin/env python3
"""Selections whose number is known only at run time.

    data_dependent.py CKC CKRUN

A graph that selects by a mask is compiled twice: with the mask as an input, where ckc has to leave
room for all elements and mask what does not count, and with the mask as a constant, where the
extents are those of the selection.  Every result and gradient must be the same but for rounding.
Then what is refused, and with which words.
"""

import math
import os
import re
import sys

import ck

sys.path.insert(0, os.path.join(ck.HERE, "..", "runtime"))
import files

HEAD = """graph @padded {
	MASK %m: bool[4,3] CONTENTS
	input %y: i64[4,3]
	param %x: f32[4,3,6] = {@72}
	param %w: f32[6,5] = {@30}
	param %b: f32[6] = {@6}
	const %zero: i64[1] = {0}
	const %one: i64[1] = {1}
	const %two: i64[1] = {2}
	const %all: i64[1] = {-1}
	const %far: i64[1] = {9223372036854775807}
	const %deep: i64[1] = {6}
	const %i0: i64[] = {0}
	const %i1: i64[] = {1}
	const %i3: i64[] = {3}
	const %in1: i64[] = {-1}
	const %ends: i64[3,6] = {0, -1, 0, -1, 0, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0, -1}
	const %spots: i64[3,2] = {0, 1, -1, 2, 0, -6}
	const %half: f32[] = {0.5}
	const %off: f32[2] = {0, 1}
	const %flat: i64[2] = {12, 6}
	const %split: i64[3] = {-1, 2, 3}
	const %turned: i64[3] = {-1, 3, 2}
	const %ones: i64[2] = {1, 1}
	const %grid: f32[12,6] = splat 0.25
	const %space: f32[4,3,6] = splat 0.25
	%nz = nonzero %m
	%at = transpose %nz {perm=[1, 0]}
	%g = gather_nd %x, %at
	%lab = gather_nd %y, %at
	%t = tanh %g
	%extents = shape %g
	%h0 = matmul %t, %w
	%h = tanh %h0
"""
# Each gives a scalar of its name.
CASES = {
    "sum": "%{n} = reduce_sum %t {{keepdims=0}}",
    "mean": "%{n}0 = reduce_mean %t {{axes=[0], keepdims=1}}\n%{n}1 = mul %{n}0, %b\n%{n} = reduce_sum %{n}1 {{keepdims=0}}",
    "mean_all": "%{n} = reduce_mean %h {{keepdims=0}}",
    "mean_other": "%{n}0 = reduce_mean %t {{axes=[1], keepdims=1}}\n%{n}1 = mul %{n}0, %t\n%{n} = reduce_sum %{n}1 {{keepdims=0}}",
    "max": "%{n}0 = reduce_max %t {{axes=[0], keepdims=0}}\n%{n}1 = mul %{n}0, %b\n%{n} = reduce_sum %{n}1 {{keepdims=0}}",
    "min": "%{n}0 = reduce_min %t {{axes=[0], keepdims=0}}\n%{n} = reduce_mean %{n}0 {{keepdims=0}}",
    "prod": "%{n}0 = reduce_prod %t {{axes=[0], keepdims=0}}\n%{n} = reduce_mean %{n}0 {{keepdims=0}}",
    "contract": "%{n}0 = transpose %t {{perm=[1, 0]}}\n%{n}1 = matmul %{n}0, %h\n%{n}2 = mul %{n}1, %w\n%{n} = reduce_mean %{n}2 {{keepdims=0}}",
    "batch": "%{n}0 = reshape %t, %split\n%{n}1 = reshape %t, %turned\n%{n}2 = matmul %{n}0, %{n}1\n%{n} = reduce_mean %{n}2 {{keepdims=0}}",
    "softmax": "%{n}0 = softmax %g {{axis=0}}\n%{n}1 = mul %{n}0, %t\n%{n} = reduce_sum %{n}1 {{keepdims=0}}",
    "log_softmax": "%{n}0 = log_softmax %g {{axis=1}}\n%{n}1 = mul %{n}0, %t\n%{n} = reduce_mean %{n}1 {{keepdims=0}}",
    "norm": "%{n}0, %{n}m, %{n}r = layernorm %g, %b, %b {{axis=-1}}\n%{n}1 = tanh %{n}0\n%{n} = reduce_sum %{n}1 {{keepdims=0}}",
    "rms": "%{n}0, %{n}r = rmsnorm %g, %b {{axis=1}}\n%{n}1 = tanh %{n}0\n%{n} = reduce_sum %{n}1 {{keepdims=0}}",
    "sce": "%{n}, %{n}l, %{n}d = sce %h, %lab {{reduction=1}}",
    "sce_ignore": "%{n}, %{n}l, %{n}d = sce %h, %lab {{reduction=2, ignore=2}}",
    "sce_rows": "%{n}0, %{n}l, %{n}d = sce %h, %lab {{reduction=0}}\n%{n}1 = tanh %{n}0\n%{n} = reduce_mean %{n}1 {{keepdims=0}}",
    "nll": "%{n}0 = log_softmax %h {{axis=1}}\n%{n}, %{n}d = nll %{n}0, %lab {{reduction=1}}",
    "add_nd": "%{n}0 = scatter_nd %space, %at, %t {{add=1}}\n%{n}1 = mul %{n}0, %x\n%{n} = reduce_sum %{n}1 {{keepdims=0}}",
    "set_nd": "%{n}0 = scatter_nd %x, %at, %t\n%{n}1 = mul %{n}0, %{n}0\n%{n} = reduce_sum %{n}1 {{keepdims=0}}",
    "add_rows": "%{n}r = gather %nz, %i0 {{axis=0}}\n%{n}u = unsqueeze %{n}r, %one\n%{n}e = expand %{n}u, %extents\n"
    "%{n}0 = scatter_elements %grid, %{n}e, %t {{axis=0, add=1}}\n%{n}1 = mul %{n}0, %{n}0\n%{n} = reduce_sum %{n}1 {{keepdims=0}}",
    "set_rows": "%{n}r = gather %nz, %i0 {{axis=0}}\n%{n}c = gather %nz, %i1 {{axis=0}}\n%{n}p = mul %{n}r, %i3\n%{n}q = add %{n}p, %{n}c\n"
    "%{n}u = unsqueeze %{n}q, %one\n%{n}e = expand %{n}u, %extents\n%{n}x = reshape %x, %flat\n"
    "%{n}0 = scatter_elements %{n}x, %{n}e, %t {{axis=0}}\n%{n}1 = mul %{n}0, %{n}0\n%{n} = reduce_sum %{n}1 {{keepdims=0}}",
    "max_rows": "%{n}r = gather %nz, %i0 {{axis=0}}\n%{n}u = unsqueeze %{n}r, %one\n%{n}e = expand %{n}u, %extents\n"
    "%{n}0 = scatter_elements %grid, %{n}e, %t {{axis=0, add=3}}\n%{n}1 = mul %{n}0, %{n}0\n%{n} = reduce_sum %{n}1 {{keepdims=0}}",
    "rows": "%{n}r = gather %nz, %i0 {{axis=0}}\n%{n}x = reshape %x, %flat\n%{n}0 = gather %{n}x, %{n}r {{axis=0}}\n%{n}1 = mul %{n}0, %t\n"
    "%{n} = reduce_mean %{n}1 {{keepdims=0}}",
    "inner": "%{n}r = gather %nz, %i1 {{axis=0}}\n%{n}0 = gather %x, %{n}r {{axis=1}}\n%{n}1 = tanh %{n}0\n%{n}2 = reduce_mean %{n}1 {{axes=[1], keepdims=0}}\n"
    "%{n}3 = mul %{n}2, %b\n%{n} = reduce_sum %{n}3 {{keepdims=0}}",
    "filled": "%{n}o = constant_of_shape %extents {{dt=f32, value=0.5}}\n%{n}0 = mul %{n}o, %g\n%{n}1 = tanh %{n}0\n%{n} = reduce_sum %{n}1 {{keepdims=0}}",
    "count": "%{n}o = constant_of_shape %extents {{dt=f32, value=0.5}}\n%{n}0 = reduce_sum %{n}o {{keepdims=0}}\n%{n}1 = reduce_sum %b {{keepdims=0}}\n%{n} = mul %{n}0, %{n}1",
    "spread": "%{n}0 = expand %b, %extents\n%{n}1 = mul %{n}0, %t\n%{n} = reduce_mean %{n}1 {{keepdims=0}}",
    "numbered": "%{n}e = shape %lab\n%{n}k = squeeze %{n}e, %zero\n%{n}r = range %i0, %{n}k, %i1\n%{n}f = cast %{n}r {{to=f32}}\n%{n}u = unsqueeze %{n}f, %one\n"
    "%{n}0 = mul %{n}u, %t\n%{n} = reduce_sum %{n}0 {{keepdims=0}}",
    "beside": "%{n}c = concat %t, %g {{axis=1}}\n%{n}0 = slice %{n}c, %two, %far, %one\n%{n}1 = tanh %{n}0\n%{n} = reduce_sum %{n}1 {{keepdims=0}}",
    "whole": "%{n}0 = slice %g, %zero, %far, %zero\n%{n}1 = tanh %{n}0\n%{n} = reduce_sum %{n}1 {{keepdims=0}}",
    "parts": "%{n}a = part %g {{axis=1, index=0, count=2}}\n%{n}b = part %g {{axis=1, index=1, count=2}}\n%{n}0 = mul %{n}a, %{n}b\n%{n} = reduce_sum %{n}0 {{keepdims=0}}",
    "best": "%{n}v, %{n}i = topk %g, %two {{axis=1}}\n%{n}0 = gather_elements %t, %{n}i {{axis=1}}\n%{n}1 = mul %{n}0, %{n}v\n%{n} = reduce_mean %{n}1 {{keepdims=0}}",
    "first": "%{n}i = argmax %g {{axis=1, keepdims=0}}\n%{n}o = one_hot %{n}i, %deep, %off {{axis=-1}}\n%{n}0 = mul %{n}o, %t\n%{n} = reduce_sum %{n}0 {{keepdims=0}}",
    "running": "%{n}0 = cumsum %t, %i1 {{axis=1}}\n%{n}1 = mul %{n}0, %g\n%{n} = reduce_mean %{n}1 {{keepdims=0}}",
    "where": "%{n}c = gt %g, %half\n%{n}0 = where %{n}c, %g, %half\n%{n}1 = mul %{n}0, %b\n%{n} = reduce_mean %{n}1 {{keepdims=0}}",
    "views": "%{n}u = unsqueeze %g, %one\n%{n}t = transpose %{n}u {{perm=[2, 1, 0]}}\n%{n}s = squeeze %{n}t, %one\n%{n}0 = tanh %{n}s\n%{n}1 = reduce_mean %{n}0 {{axes=[1], keepdims=0}}\n"
    "%{n}2 = mul %{n}1, %b\n%{n} = reduce_sum %{n}2 {{keepdims=0}}",
    "vector": "%{n}0 = matmul %t, %b\n%{n}1 = tanh %{n}0\n%{n} = reduce_sum %{n}1 {{keepdims=0}}",
    # along the padded dim: at numbers, from the end too, and at what was selected
    "row": "%{n}0 = gather %t, %in1 {{axis=0}}\n%{n}1 = gather %t, %i0 {{axis=0}}\n%{n}2 = mul %{n}0, %{n}1\n%{n}3 = mul %{n}2, %b\n%{n} = reduce_sum %{n}3 {{keepdims=0}}",
    "row_elements": "%{n}0 = gather_elements %t, %ends {{axis=0}}\n%{n}1 = mul %{n}0, %b\n%{n} = reduce_sum %{n}1 {{keepdims=0}}",
    "row_nd": "%{n}0 = gather_nd %t, %spots\n%{n}1 = tanh %{n}0\n%{n} = reduce_sum %{n}1 {{keepdims=0}}",
    "again": "%{n}c = gt %g, %half\n%{n}n = nonzero %{n}c\n%{n}p = transpose %{n}n {{perm=[1, 0]}}\n%{n}0 = gather_nd %t, %{n}p\n"
    "%{n}1 = tanh %{n}0\n%{n} = reduce_sum %{n}1 {{keepdims=0}}",
    "again_rows": "%{n}c = gt %g, %half\n%{n}n = nonzero %{n}c\n%{n}p = gather %{n}n, %i0 {{axis=0}}\n%{n}0 = gather %t, %{n}p {{axis=0}}\n%{n}l = gather %lab, %{n}p {{axis=0}}\n"
    "%{n}h = matmul %{n}0, %w\n%{n}, %{n}x, %{n}d = sce %{n}h, %{n}l {{reduction=2}}",
    # indices of selected rows as numbers, as rows of something else
    "again_number": "%{n}c = gt %g, %half\n%{n}s = part %{n}c {{axis=1,index=0,count=6}}\n%{n}r = reshape %{n}s, %all\n%{n}n = nonzero %{n}r\n"
    "%{n}f = cast %{n}n {{to=f32}}\n%{n}a = reduce_sum %{n}f {{keepdims=0}}\n%{n}b = reduce_sum %b {{keepdims=0}}\n%{n} = mul %{n}a, %{n}b",
    "again_table": "%{n}c = gt %g, %half\n%{n}s = part %{n}c {{axis=1,index=0,count=6}}\n%{n}r = reshape %{n}s, %all\n%{n}n = nonzero %{n}r\n"
    "%{n}p = transpose %{n}n {{perm=[1, 0]}}\n%{n}x = reshape %x, %flat\n%{n}0 = gather_nd %{n}x, %{n}p\n%{n}1 = tanh %{n}0\n%{n} = reduce_sum %{n}1 {{keepdims=0}}",
    "again_put": "%{n}c = gt %g, %half\n%{n}s = part %{n}c {{axis=1,index=0,count=6}}\n%{n}r = reshape %{n}s, %all\n%{n}n = nonzero %{n}r\n%{n}p = transpose %{n}n {{perm=[1, 0]}}\n"
    "%{n}0 = gather_nd %t, %{n}p\n%{n}x = reshape %x, %flat\n%{n}1 = scatter_nd %{n}x, %{n}p, %{n}0\n%{n}2 = mul %{n}1, %{n}x\n%{n} = reduce_sum %{n}2 {{keepdims=0}}",
    "joined": "%{n}0 = concat %t, %g {{axis=0}}\n%{n}1 = mul %{n}0, %b\n%{n}2 = tanh %{n}1\n%{n} = reduce_sum %{n}2 {{keepdims=0}}",
    "joined_rows": "%{n}0 = concat %grid, %t {{axis=0}}\n%{n}1 = concat %{n}0, %g {{axis=0}}\n%{n}2 = mul %{n}1, %b\n%{n} = reduce_mean %{n}2 {{keepdims=0}}",
    "joined_labels": "%{n}0 = concat %h, %h0 {{axis=0}}\n%{n}1 = concat %lab, %lab {{axis=0}}\n%{n}, %{n}l, %{n}d = sce %{n}0, %{n}1 {{reduction=1}}",
    # h[mask] = value, element by element
    "set_flat": "%{n}u = unsqueeze %m, %two\n%{n}s = shape %x\n%{n}m = expand %{n}u, %{n}s\n%{n}n = nonzero %{n}m\n%{n}p = transpose %{n}n {{perm=[1, 0]}}\n%{n}r = reshape %t, %all\n"
    "%{n}0 = scatter_nd %x, %{n}p, %{n}r\n%{n}1 = mul %{n}0, %{n}0\n%{n} = reduce_sum %{n}1 {{keepdims=0}}",
    "set_counted": "%{n}u = unsqueeze %m, %two\n%{n}s = shape %x\n%{n}m = expand %{n}u, %{n}s\n%{n}n = nonzero %{n}m\n%{n}p = transpose %{n}n {{perm=[1, 0]}}\n%{n}l = reshape %m, %all\n"
    "%{n}i = cast %{n}l {{to=i64}}\n%{n}k = reduce_sum %{n}i {{axes=[0], keepdims=1}}\n%{n}e = concat %{n}k, %deep {{axis=0}}\n%{n}b = expand %b, %{n}e\n%{n}r = reshape %{n}b, %all\n"
    "%{n}0 = scatter_nd %x, %{n}p, %{n}r\n%{n}1 = mul %{n}0, %{n}0\n%{n} = reduce_sum %{n}1 {{keepdims=0}}",
    "set_first": "%{n}u = unsqueeze %m, %two\n%{n}s = shape %x\n%{n}m = expand %{n}u, %{n}s\n%{n}n = nonzero %{n}m\n%{n}p = transpose %{n}n {{perm=[1, 0]}}\n%{n}v = shape %{n}p\n%{n}k = slice %{n}v, %zero, %one, %zero\n"
    "%{n}f = tanh %x\n%{n}l = reshape %{n}f, %all\n%{n}r = slice %{n}l, %zero, %{n}k, %zero\n%{n}0 = scatter_nd %x, %{n}p, %{n}r\n%{n}1 = mul %{n}0, %{n}0\n%{n} = reduce_sum %{n}1 {{keepdims=0}}",
    # only what is selected has a logarithm
    "log": "%{n}p = abs %g\n%{n}0 = log %{n}p\n%{n} = reduce_sum %{n}0 {{keepdims=0}}",
}
# Those that read row indices.
COMPACT = [
    "numbered",
    "row",
    "row_elements",
    "row_nd",
    "again_rows",
    "again_number",
    "again_table",
    "again_put",
    "set_first",
]
# What is right where nothing is selected: no mean, no largest.
OF_NONE = [
    "sum",
    "norm",
    "rms",
    "add_nd",
    "set_nd",
    "add_rows",
    "set_rows",
    "max_rows",
    "filled",
    "count",
    "numbered",
    "beside",
    "whole",
    "parts",
    "first",
    "vector",
    "log",
    "joined",
    "joined_rows",
    "set_flat",
    "set_counted",
    "set_first",
]
REFUSED = {
    "half of them": (
        "%z0 = part %g {axis=0, index=0, count=2}",
        "splits a dim of data-dependent size",
    ),
    "some of them": (
        "%z0 = part %g, %two {axis=0, index=0, count=1}",
        "splits a dim of data-dependent size",
    ),
    "in arithmetic": (
        "%z0 = size %lab\n%z1 = cast %z0 {to=f32}\n%z = mul %z1, %b",
        "computes with a data-dependent size",
    ),
    "a fixed extent": (
        "%z0 = reshape %g, %flat\n%z = tanh %z0",
        "reshapes a dim of data-dependent size to a fixed size",
    ),
    "meets a fixed extent": (
        "%z0 = reshape %x, %flat\n%z = add %z0, %g",
        "combines a dim of data-dependent size with one of fixed size",
    ),
    "another selection": (
        "%zm = reduce_mean %x {axes=[2], keepdims=0}\n%zc = gt %zm, %half\n%zn = nonzero %zc\n%zt = transpose %zn {perm=[1, 0]}\n"
        "%zg = gather_nd %x, %zt\n%z = add %zg, %g",
        "combines two different data-dependent sizes",
    ),
    "two at once": ("%z0 = matmul %g, %gt", "multiplies along a dim of data-dependent size"),
    "flat": ("%z0 = reshape %g, %all\n%z = tanh %z0", "works across a dim of data-dependent size"),
    "joined across": (
        "%z = concat %g, %grid {axis=1}",
        "concatenates a dim of data-dependent size",
    ),
    "flat, picked": (
        "%z0 = reshape %g, %all\n%z = gather %z0, %i0 {axis=0}",
        "works across a dim of data-dependent size",
    ),
    "along": ("%z = cumsum %g, %i0 {axis=0}", "works along a dim of data-dependent size"),
    "normalised": ("%z, %zm, %zr = layernorm %g, %t, %t {axis=0}", "not supported"),
}


def text(names, mask, extra=""):
    numbers = iter(math.sin(1.7 * i + 0.3) for i in range(10**6))
    out = HEAD.replace("MASK", "input" if mask is None else "const")
    out = out.replace(
        "CONTENTS", "" if mask is None else "= {" + ", ".join(str(int(x)) for x in mask) + "}"
    )
    while "{@" in out:
        head, tail = out.split("{@", 1)
        n, tail = tail.split("}", 1)
        out = head + "{" + ", ".join(f"{next(numbers):.5f}" for _ in range(int(n))) + "}" + tail
    for name in names:
        out += "".join("\t" + line + "\n" for line in CASES[name].format(n=name).split("\n"))
    out += extra
    total = None
    for i, name in enumerate(names):
        out += f"\tconst %k{i}: f32[] = {{{0.3 + 0.1 * (i % 7)}}}\n\t%p{i} = mul %{name}, %k{i}\n"
        if total:
            out += f"\t%q{i} = add {total}, %p{i}\n"
        total = f"%q{i}" if total else f"%p{i}"
    return out + f"\t%loss: f32[] output = mul {total}, %half\n}}\n"


def near(a, b):
    return len(a) == len(b) and all(abs(x - y) <= 1e-4 * (1 + abs(y)) for x, y in zip(a, b))


class Padded:
    def __init__(self, bench):
        self.bench = bench

    def compile(self, name, source, *flags):
        path = self.bench.path(name + ".ck")
        with open(path, "w") as f:
            f.write(source)
        return self.bench.ckc(
            path, "-o", self.bench.path(name + ".so"), "--quiet", "--loss", "loss", *flags
        )

    def run(self, name, mask, seed):
        b = self.bench
        inputs = {"y": ("I64", [4, 3], [(i * 7 + seed) % 5 for i in range(12)])}
        if mask is not None:
            inputs["m"] = ("BOOL", [4, 3], mask)
        files.st_write(b.path("in.st"), inputs)
        done = b.ckrun(
            b.path(name + ".so"),
            "--steps",
            1,
            "--quiet",
            "--inputs",
            b.path("in.st"),
            "--grads",
            b.path("grads.st"),
            "--log",
            b.path("log"),
            "--threads",
            1 + seed % 2,
        )
        if not b.must(done, f"{name}: run"):
            return None
        with open(b.path("log")) as f:
            loss = float(f.read().split('"loss":')[1].split(",")[0].replace("null", "nan"))
        return loss, {k: v[2] for k, v in files.st_read(b.path("grads.st"))[0].items()}

    def same(self, what, names, masks, *flags):
        """The gradient of the sum tells of each case; a case that differs is then looked for."""
        b = self.bench
        if not b.must(self.compile("open", text(names, None), *flags), f"{what}: compile"):
            return
        for k, mask in enumerate(masks):
            if not b.must(self.compile("known", text(names, mask)), f"{what}: compile with {mask}"):
                continue
            got, want = self.run("open", mask, k), self.run("known", None, k)
            if (
                got
                and want
                and (
                    near([got[0]], [want[0]]) and all(near(got[1][n], want[1][n]) for n in want[1])
                )
            ):
                b.check(True, "")
                continue
            if len(names) == 1:
                b.check(False, f"{names[0]}, {mask}: {got} instead of {want}")
            else:
                b.check(False, f"{what}, {mask}: differs")
                for name in names:
                    self.same(what, [name], [mask], *flags)


def main():
    bench = ck.Bench()
    padded = Padded(bench)
    some = [
        [1, 0, 1, 1, 0, 0, 1, 0, 1, 0, 0, 1],
        [0] * 7 + [1] + [0] * 4,
        [1] * 12,
        [1] + [0] * 11,
        [0] * 10 + [1, 1],
    ]
    of_several = [
        x for x in COMPACT if x in ("again_number", "again_table", "again_put")
    ]  # a constant mask has to find two at least
    padded.same("compact", [x for x in COMPACT if x not in of_several], some)
    padded.same("row indices", of_several, [some[0], some[2], some[4]])
    padded.same("in place", [x for x in CASES if x not in COMPACT], some)
    for name in CASES:
        with open(bench.path("one.ck"), "w") as f:
            f.write(text([name], None))
        compact = bool(
            re.search(
                r"= selected %\w+$", bench.ckc(bench.path("one.ck"), "--passes=fold").stdout, re.M
            )
        )
        bench.check(compact == (name in COMPACT), f"{name}: compact: {compact}")
    padded.same("beside each other", list(CASES), some[:1])
    padded.same("recomputed", list(CASES), some[:1], "--recompute", "full")
    padded.same("none selected", OF_NONE, [[0] * 12])
    turned = "\t%gt = transpose %g {perm=[1, 0]}\n"
    for what, (lines, message) in REFUSED.items():
        done = padded.compile(
            "refused",
            text(
                ["sum"],
                None,
                turned
                + "".join("\t" + x + "\n" for x in lines.split("\n"))
                + ("" if "%z " not in lines else ""),
            ).replace("%z =", "%z output ="),
        )
        bench.check(
            message in done.stderr,
            f"refused, {what}: status {done.returncode}: {done.stderr[:400]}",
        )
    done = padded.compile("output", text(["sum"], None).replace("%t = tanh", "%t output = tanh"))
    bench.check(
        done.returncode == 0 and "output 't' is dropped" in done.stderr, f"output: {done.stderr}"
    )
    done = padded.compile(
        "output", text(["sum"], None).replace("%t = tanh", "%t output = tanh"), "--forward-only"
    )
    bench.check(
        done.returncode == 1 and "depends on the contents of 'm'" in done.stderr,
        f"output: {done.stderr}",
    )
    bench.finish()


if __name__ == "__main__":
    main()
