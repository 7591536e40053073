#!/usr/bin/env python3
"""The loss of a data set, which is not that of its batches: the same whatever their size, and by
PyTorch's formulas of all samples at once.

    totals.py CKC CKRUN [--flags "--target cuda ..."]

Ten samples in batches of 3, 4 and 7, by losses that --loss adds, by those a graph brings along, and
by formulas of several sums.  What mixes the samples of a batch is told of, once, and in the log.
"""

import math
import os
import sys

import ck

sys.path.insert(0, os.path.join(ck.HERE, "..", "runtime"))
import files

FLAGS = ck.option("--flags", "").split()
N, WIDE, CLASSES = 10, 3, 5
SIZES = 3, 4, 7
IGNORED = 2
WEIGHTS = [0.5, 2, 0, 1, 1.5]
HEAD = """graph @f {{
	input %x: f32[{b},3]
{inputs}	param %w: f32[3,5] = {{{w}}}
	%z output = matmul %x, %w
{body}}}
"""


def numbers(n, seed):
    return [((seed + 7 * i) * 31 % 97 - 48) / 32 for i in range(n)]


def fractions(n, seed):
    return [((seed + 5 * i) * 29 % 64 + 1) / 80 for i in range(n)]


W = numbers(WIDE * CLASSES, 10)
X = numbers(N * WIDE, 4)
Z = [
    [sum(X[i * WIDE + k] * W[k * CLASSES + j] for k in range(WIDE)) for j in range(CLASSES)]
    for i in range(N)
]
LABELS = [3, 1, IGNORED, 0, 4, IGNORED, 4, 4, IGNORED, 1]
TARGET = [fractions(CLASSES, 3 * i) for i in range(N)]
SHARES = fractions(N, 7)
ROWS = range(N)
FLAT = [(z, t) for row, targets in zip(Z, TARGET) for z, t in zip(row, targets)]


def lse(row):
    return math.log(sum(map(math.exp, row)))


def ce(weights=None, smoothing=0.0, mean=True, ignore=None):
    w = weights or [1] * CLASSES
    rows = [(z, y) for z, y in zip(Z, LABELS) if y != ignore]
    over = sum(w[y] for _, y in rows) if mean else 1
    hard = sum(w[y] * (lse(z) - z[y]) for z, y in rows)
    soft = sum(w[c] * (lse(z) - z[c]) for z, _ in rows for c in range(CLASSES))
    return ((1 - smoothing) * hard + smoothing / CLASSES * soft) / over


def softplus(z):
    return max(z, 0) + math.log1p(math.exp(-abs(z)))


def bce(pos):
    return [pos * t * softplus(-z) + (1 - t) * softplus(z) for z, t in FLAT]


def kl():
    return (
        sum(
            t * (math.log(t) - z + lse(row))
            for row, targets in zip(Z, TARGET)
            for z, t in zip(row, targets)
        )
        / N
    )


def mean(x):
    return sum(x) / len(x)


def squares():
    return [(z - t) ** 2 for z, t in FLAT]


def per_sample():
    return [sum((z - t) ** 2 for z, t in zip(*pair)) for pair in zip(Z, TARGET)]


ADDED = [
    ("ce", ce()),
    ("ce:z,ignore=2", ce(ignore=IGNORED)),
    ("ce:z,weights=0.5/2/0/1/1.5", ce(WEIGHTS)),
    ("ce:z,weights=0.5/2/0/1/1.5,smoothing=0.2,ignore=2", ce(WEIGHTS, 0.2, ignore=IGNORED)),
    ("ce:z,smoothing=0.1", ce(smoothing=0.1)),
    ("ce:z,weights=0.5/2/0/1/1.5,reduction=sum", ce(WEIGHTS, mean=False)),
    ("bce:z,pos_weight=3", mean(bce(3))),
    ("bce:z,reduction=sum", sum(bce(1))),
    ("kl", kl()),
    ("mse", mean(squares())),
    ("mse:z,reduction=sum", sum(squares())),
    ("l1:z,reduction=sum", sum(abs(z - t) for z, t in FLAT)),
]
Y, T, S = (
    "\tinput %labels: i64[{b}]\n",
    "\tinput %target: f32[{b},5]\n",
    "\tinput %share: f32[{b}]\n",
)
SCE = "\t%loss: f32[] output, %lse, %den = sce %z, %labels"
EACH = "\t%d = sub %z, %target\n\t%q = mul %d, %d\n"
COUNT = (
    EACH
    + "\t%s = reduce_sum %q {{axes=[0,1], keepdims=0}}\n\tconst %two: i64[] = {{2}}\n\tconst %one: i64[] = {{1}}\n\t%e = eq %labels, %two\n"
    "\t%k = cast %e {{to=i64}}\n\t%c = reduce_sum %k {{axes=[0], keepdims=0}}\n"
)
BY_COUNT = "\t%f = cast %n {{to=f32}}\n\t%loss: f32[] output = div %s, %f\n"
ROW = EACH + "\t%l = reduce_sum %q {{axes=[1], keepdims=0}}\n"
DECAY = "\t%ww = mul %w, %w\n\t%r = reduce_sum %ww {{axes=[0,1], keepdims=0}}\n"
# name, inputs, the rest of the graph, the loss of all samples
OWN = [
    ("sce mean", Y, SCE + " {{ignore=2}}\n", ce(ignore=IGNORED)),
    ("sce mean of all", Y, SCE + "\n", ce()),
    (
        "sce of weights",
        Y,
        "\tconst %k: f32[5] = {{0.5,2,0,1,1.5}}\n" + SCE + ", %k {{ignore=2}}\n",
        ce(WEIGHTS, ignore=IGNORED),
    ),
    ("sce sum", Y, SCE + " {{ignore=2, reduction=2}}\n", ce(mean=False, ignore=IGNORED)),
    (
        "nll of weights",
        Y,
        "\tconst %k: f32[5] = {{0.5,2,0,1,1.5}}\n\t%p = log_softmax %z {{axis=1}}\n\t%loss: f32[] output, %den = nll %p, %labels, %k\n",
        ce(WEIGHTS),
    ),
    (
        "sce beside a penalty",
        Y,
        SCE.replace("%loss: f32[] output", "%ce")
        + " {{ignore=2}}\n"
        + DECAY
        + "\t%loss: f32[] output = add %ce, %r\n",
        ce(ignore=IGNORED) + sum(w * w for w in W),
    ),
    (
        "sum",
        T,
        EACH + "\t%loss: f32[] output = reduce_sum %q {{axes=[0,1], keepdims=0}}\n",
        sum(squares()),
    ),
    (
        "sum beside a penalty",
        T,
        EACH
        + "\t%s = reduce_sum %q {{axes=[0,1], keepdims=0}}\n"
        + DECAY
        + "\t%loss: f32[] output = add %s, %r\n",
        sum(squares()) + sum(w * w for w in W),
    ),
    (
        "sum by the number of elements less one",
        T,
        EACH
        + "\t%s = reduce_sum %q {{axes=[0,1], keepdims=0}}\n\t%i = size %z\n\t%n = cast %i {{to=f32}}\n"
        "\tconst %one: f32[] = {{1}}\n\t%k = sub %n, %one\n\t%loss: f32[] output = div %s, %k\n",
        sum(squares()) / (len(squares()) - 1),
    ),
    (
        "mean by samples first",
        T,
        EACH
        + "\t%m = reduce_mean %q {{axes=[0], keepdims=0}}\n\t%loss: f32[] output = reduce_sum %m {{axes=[0], keepdims=0}}\n",
        mean(per_sample()),
    ),
    (
        "root of a mean",
        T,
        EACH
        + "\t%m = reduce_mean %q {{axes=[0,1], keepdims=0}}\n\t%loss: f32[] output = sqrt %m\n",
        math.sqrt(mean(squares())),
    ),
    (
        "shares of samples",
        T + S,
        ROW
        + "\t%sl = mul %l, %share\n\t%a = reduce_sum %sl {{axes=[0], keepdims=0}}\n\t%c = reduce_sum %share {{axes=[0], "
        "keepdims=0}}\n\t%loss: f32[] output = div %a, %c\n",
        sum(a * b for a, b in zip(per_sample(), SHARES)) / sum(SHARES),
    ),
    (
        "mean of shares",
        T + S,
        ROW
        + "\t%sl = mul %l, %share\n\t%loss: f32[] output = reduce_mean %sl {{axes=[0], keepdims=0}}\n",
        mean([a * b for a, b in zip(per_sample(), SHARES)]),
    ),
    (
        "overlap",
        T,
        "\t%p = sigmoid %z\n\t%pt = mul %p, %target\n\t%a = reduce_sum %pt {{axes=[0,1], keepdims=0}}\n\t%b = reduce_sum %p {{axes=[0,1], "
        "keepdims=0}}\n\t%c = reduce_sum %target {{axes=[0,1], keepdims=0}}\n\t%bc = add %b, %c\n\t%q = div %a, %bc\n\tconst %two: f32[] = splat -2\n"
        "\t%loss: f32[] output = mul %two, %q\n",
        -2
        * sum(t / (1 + math.exp(-z)) for z, t in FLAT)
        / sum(t + 1 / (1 + math.exp(-z)) for z, t in FLAT),
    ),
    (
        "a count of at least one",
        Y + T,
        COUNT + "\t%n = max %c, %one\n" + BY_COUNT,
        sum(squares()) / LABELS.count(2),
    ),
    (
        "a count, clamped",
        Y + T,
        COUNT + "\t%b = le %c, %one\n\t%n = where %b, %one, %c\n" + BY_COUNT,
        sum(squares()) / LABELS.count(2),
    ),
    (
        "a count, clamped to a least that is more",
        Y + T,
        COUNT
        + "\tconst %five: i64[] = {{5}}\n\t%b = lt %five, %c\n\t%n = where %b, %c, %five\n"
        + BY_COUNT,
        sum(squares()) / 5,
    ),
    (
        "a sum, clamped from above",
        Y + T,
        COUNT
        + "\tconst %most: f32[] = {{7}}\n\t%b = gt %s, %most\n\t%loss: f32[] output = where %b, %most, %s\n",
        7,
    ),
    (
        "a count and one",
        Y + T,
        COUNT + "\t%n = add %c, %one\n" + BY_COUNT,
        sum(squares()) / (LABELS.count(2) + 1),
    ),
    (
        "at most infinity",
        T,
        EACH
        + "\t%m = reduce_mean %q {{axes=[0,1], keepdims=0}}\n\tconst %most: f32[] = {{inf}}\n\t%loss: f32[] output = min %m, %most\n",
        mean(squares()),
    ),
]
# A sample among those of its batch, and the deviation of a batch.
MIXED = [
    (
        "contrast",
        Y,
        "\t%zt = transpose %z {{perm=[1,0]}}\n\t%s = matmul %z, %zt\n\t%p = log_softmax %s {{axis=1}}\n"
        "\t%loss: f32[] output = reduce_mean %p {{axes=[0,1], keepdims=0}}\n",
        "mixes samples",
    ),
    (
        "by the batch",
        T,
        "\t%m = reduce_mean %z {{axes=[0], keepdims=1}}\n\t%d = sub %z, %m\n\t%q = mul %d, %d\n"
        "\t%loss: f32[] output = reduce_mean %q {{axes=[0,1], keepdims=0}}\n",
        "mixes samples",
    ),
    (
        "by a truth",
        T,
        EACH
        + "\t%m = reduce_mean %q {{axes=[0,1], keepdims=0}}\n\t%s = reduce_sum %target {{axes=[0,1], keepdims=0}}\n\t%b = cast %s {{to=bool}}\n"
        "\t%f = cast %b {{to=f32}}\n\t%loss: f32[] output = mul %m, %f\n",
        "mixes samples",
    ),
    (
        "by a whole number",
        T,
        EACH
        + "\t%m = reduce_mean %q {{axes=[0,1], keepdims=0}}\n\t%s = reduce_sum %target {{axes=[0,1], keepdims=0}}\n\t%i = cast %s {{to=i64}}\n"
        "\t%f = cast %i {{to=f32}}\n\t%loss: f32[] output = mul %m, %f\n",
        "mixes samples",
    ),
    # of two full batches; the third one, of two samples, does not count
    (
        "by half of a count",
        Y + T,
        COUNT + "\t%h = div %c, %two\n\t%n = max %h, %one\n" + BY_COUNT,
        "mixes samples",
    ),
    (
        "by a number",
        T,
        EACH
        + '\tconst %n: f32[] = splat {b}\n\t%s = reduce_sum %q {{axes=[0,1], keepdims=0}}\n\t%loss: f32[] output = div %s, %n from "d" Div\n',
        "batch size",
        sum(squares()[: 8 * len(squares()) // 10]) / 8,
    ),
]
# What mixes samples and leaves no trace at one batch size: where a batch has one, or as many as a
# shape in the file.
ALONE = [
    (
        "rows of four",
        "\tconst %s: i64[] = {{4}}\n\t%r: f32[4,5] = reshape %z {{shape=[4,-1]}}\n\t%a = reduce_sum %r {{axes=[1], keepdims=0}}\n\t%d = mul %a, %a\n",
        "'r'",
        4,
    ),
    ("mean", "\t%m = reduce_mean %z {{axes=[0], keepdims=1}}\n\t%d = sub %z, %m\n", "'m'", 1),
    ("greatest", "\t%m = reduce_max %z {{axes=[0], keepdims=1}}\n\t%d = sub %z, %m\n", "'m'", 1),
    (
        "first",
        "\tconst %s: i64[] = {{0}}\n\tconst %e: i64[] = {{1}}\n\t%m = slice %z, %s, %e\n\t%d = sub %z, %m\n",
        "'m'",
        1,
    ),
    (
        "pairs",
        "\tconst %i: i64[] = {{0}}\n\tconst %k: i64[] = {{1}}\n\t%a = unsqueeze %z, %k\n\t%b = unsqueeze %z, %i\n\t%d = sub %a, %b\n",
        "'d'",
        1,
    ),
    (
        "mean, added up",
        "\t%m = reduce_mean %z {{axes=[0], keepdims=1}}\n\t%d = sub %m, %m\n\t%l = reduce_sum %m {{axes=[0,1], keepdims=0}}\n",
        "'m'",
        1,
    ),
]


def near(a, b):
    return abs(a - b) <= 5e-6 * max(1, abs(b))


class Totals(ck.Bench):
    def model(self, name, b, inputs="", body="", *flags):
        path, so = self.path("m.ck"), self.path("m.so")
        with open(path, "w") as f:
            f.write(
                HEAD.format(
                    b=b, inputs=inputs.format(b=b), body=body.format(b=b), w=",".join(map(str, W))
                )
            )
        return (
            so
            if self.must(
                self.ckc(*FLAGS, path, "-o", so, "--quiet", *flags), f"{name}, {b}: compile"
            )
            else None
        )

    def loss(self, name, so, *more):
        log = self.path("log")
        done = self.ckrun("eval", so, "--data", "d.st", "--log", log, *more)
        if not self.must(done, f"{name}: eval"):
            return math.nan, {}, done
        row = ck.log_rows(log)[0]
        return row["loss"], row, done

    def right(self, name, want, *model):
        for b in SIZES:
            so = self.model(name, b, *model)
            if so:
                got, row, done = self.loss(name, so)
                self.check(
                    near(got, want) and "by_batch" not in row and "note" not in done.stderr,
                    f"{name}: in batches of {b} {got}, expected {want}; {done.stderr}",
                )

    def mixed(self, name, inputs, body, word, want=None):
        so = self.model(name, 4, inputs, body)
        if not so:
            return
        got, row, done = self.loss(name, so)
        self.check(want is None or near(got, want), f"{name}: {got}, expected {want}")
        self.check(
            row.get("by_batch") is True
            and done.stderr.count("note:") == 1
            and word in done.stderr
            and "here 4" in done.stderr,
            f"{name}: {row} {done.stderr}",
        )
        log = self.path("log")
        done = self.ckrun(
            so, "--data", "d.st", "--steps", 4, "--valid", "d.st", "--valid-every", 1, "--log", log
        )
        self.check(
            done.stderr.count("note:") == 1
            and all(r["valid_by_batch"] is True for r in ck.log_rows(log)),
            f"{name}: --valid: {done.stderr}",
        )

    def replicas(self):
        """Half of a batch each; the program that evaluates, and training's own."""
        for wish, want in ADDED[:4]:
            so = self.model(wish, 2, "", "", "--loss", wish, "--dp", "auto")
            for ranks in (2, 3) if so else ():
                got = self.loss(wish, so, "--ranks", ranks)[0]
                self.check(near(got, want), f"{wish}: of {ranks} replicas {got}, expected {want}")

    def alone(self):
        """Batches of one sample, of a file that has a name for their size."""
        for name, want in ADDED[0], ADDED[4], ADDED[9]:
            so = self.model(name, "b=1", "", "", "--loss", name)
            if so:
                got, row, done = self.loss(name, so)
                self.check(
                    near(got, want) and "by_batch" not in row and "note" not in done.stderr,
                    f"{name}, one by one: {got}, {want} {done.stderr}",
                )
        for name, body, node, b in ALONE:
            if "%l =" not in body:
                body += "\t%q = mul %d, %d\n\t%l = reduce_mean %q {{keepdims=0}}\n"
            body += "\t%loss: f32[] output = copy %l\n"
            so = self.model(name, f"b={b}", T, body)
            if so:
                _, row, done = self.loss(name, so)
                self.check(
                    row.get("by_batch") is True and f"node {node}" in done.stderr,
                    f"{name} of {b}: {row} {done.stderr}",
                )
            for flag in "--dp", "--grad-accum":
                done = self.ckc(*FLAGS, self.path("m.ck"), "-o", so, "--loss", "loss", flag, 4)
                self.check(
                    (done.returncode == (flag == "--dp")) and f"node {node}" in done.stderr,
                    f"{name} of {b}, {flag}: {done.stderr}",
                )

    def without(self):
        """A library without a program that evaluates: plain sums and means all the same, of others
        a word."""
        for wish, want in (
            ("mse", mean(squares())),
            ("bce:z,reduction=sum", sum(bce(1))),
            ("ce:z,weights=0.5/2/0/1/1.5", None),
        ):
            so = self.model(wish, 4, "", "", "--loss", wish, "--eval", "off")
            if not so:
                continue
            got, row, done = self.loss(wish, so)
            self.check(
                near(got, want) and "by_batch" not in row
                if want
                else row.get("by_batch") is True and "cannot evaluate" in done.stderr,
                f"{wish}: {row} {done.stderr}",
            )

    def sharded(self):
        """Each rank or replica has shards of the parameters."""
        for wish, want in ADDED:
            for flags in ["--tp", 2, "--sp"], ["--dp", 2, "--zero", 3]:
                so = self.model(wish, 2, "", "", "--loss", wish, *flags)
                if so:
                    got, row, done = self.loss(wish, so)
                    self.check(
                        near(got, want) and "by_batch" not in row and "note" not in done.stderr,
                        f"{wish} {flags}: {got}, expected {want}; {done.stderr}",
                    )


def main():
    bench = Totals()
    files.st_write(
        bench.path("d.st"),
        {
            "x": ("F32", [N, WIDE], X),
            "labels": ("I64", [N], LABELS),
            "target": ("F32", [N, CLASSES], [t for row in TARGET for t in row]),
            "share": ("F32", [N], SHARES),
        },
    )
    for wish, want in ADDED:
        bench.right(wish, want, "", "", "--loss", wish)
    for name, inputs, body, want in OWN:
        bench.right(name, want, inputs, body, "--loss", "loss")
    for case in MIXED:
        bench.mixed(*case)
    bench.replicas()
    bench.without()
    bench.sharded()
    bench.alone()
    bench.finish()


if __name__ == "__main__":
    main()
