"""Losses over a batch, in the text form of graphs and in closed form, in double precision.

Every loss has a weight of its own, so that one graph that adds them up tells by the gradient of
each which one is wrong.
"""

import numpy as np

ROWS, WIDE, CLASSES = 24, 6, 5
WEIGHTS = np.array([0.5, 1, 2, 0.25, 3])
ALL, OVER = "{axes=[0,1], keepdims=0}", "{axes=[0], keepdims=0}"

# kind: what comes behind %z, the scores, with %m, weights of samples, %t, targets in 0..1, %f,
# which of their elements count
TEXT = {
    "mean": "%loss.KIND, _, _ = sce %z, %labels {reduction=1, ignore=-100}",
    "weights": "%loss.KIND, _, _ = sce %z, %labels, %weights {reduction=1, ignore=-100}",
    "nll": """%p = log_softmax %z {axis=1}
        %loss.KIND, _ = nll %p, %labels, %weights {reduction=1, ignore=-100}""",
    "sum": "%loss.KIND, _, _ = sce %z, %labels {reduction=2, ignore=-100}",
    "all": "%loss.KIND, _, _ = sce %z, %classes {reduction=1}",
    "masked": f"""%l, _, _ = sce %z, %labels {{reduction=0, ignore=-100}}
        %w = mul %l, %m
        %a = reduce_sum %w {OVER}
        %b = reduce_sum %m {OVER}
        %loss.KIND = div %a, %b""",
    "normalised": f"""%l, _, _ = sce %z, %labels {{reduction=0, ignore=-100}}
        %b = reduce_sum %m {OVER}
        %n = div %m, %b
        %w = mul %l, %n
        %loss.KIND = reduce_sum %w {OVER}""",
    "clamped": f"""%l, _, _ = sce %z, %labels {{reduction=0, ignore=-100}}
        %w = mul %l, %m
        %a = reduce_sum %w {OVER}
        %b = reduce_sum %m {OVER}
        %c = max %b, %one
        %e = add %c, %small
        %loss.KIND = div %a, %e""",
    "smooth": f"""%h, _, _ = sce %z, %labels {{reduction=1, ignore=-100}}
        %p = log_softmax %z {{axis=1}}
        %r = reduce_mean %p {{axes=[1], keepdims=0}}
        %i = eq %labels, %ignored
        %o = not %i
        %c = cast %o {{to=f32}}
        %k = mul %r, %c
        %a = reduce_sum %k {OVER}
        %b = reduce_sum %c {OVER}
        %u = div %a, %b
        %v = mul %u, %small
        %loss.KIND = sub %h, %v""",
    "integers": f"""%l, _, _ = sce %z, %labels {{reduction=2, ignore=-100}}
        %c = lt %ignored, %labels
        %i = cast %c {{to=i64}}
        %n = reduce_sum %i {OVER}
        %k = max %n, %unit
        %h = cast %k {{to=f32}}
        %loss.KIND = div %l, %h""",
    "mse": f"""%d = sub %z, %t
        %q = mul %d, %d
        %loss.KIND = reduce_mean %q {ALL}""",
    "squares": f"""%d = sub %z, %t
        %q = mul %d, %d
        %loss.KIND = reduce_sum %q {ALL}""",
    "elements": f"""%s = softplus %z
        %zt = mul %z, %t
        %l = sub %s, %zt
        %w = mul %l, %f
        %a = reduce_sum %w {ALL}
        %b = reduce_sum %f {ALL}
        %loss.KIND = div %a, %b""",
    "penalty": f"""%h, _, _ = sce %z, %labels {{reduction=1, ignore=-100}}
        %v = mul %w.KIND, %w.KIND
        %s = reduce_sum %v {ALL}
        %y = mul %s, %small
        %loss.KIND = add %h, %y""",
    "terms": f"""%h, _, _ = sce %z, %labels {{reduction=1, ignore=-100}}
        %d = sub %z, %t
        %q = mul %d, %d
        %w = mul %q, %f
        %a = reduce_sum %w {ALL}
        %b = reduce_sum %f {ALL}
        %g = div %a, %b
        %k = mul %g, %small
        %e = reduce_mean %q {ALL}
        %j = add %h, %k
        %loss.KIND = add %j, %e""",
    # weights of classes by how often the batch has them, whose sum is counted when they are known
    "balanced": f"""%l, _, _ = sce %z, %classes {{reduction=0}}
        %col = reshape %classes {{shape=[ROWS,1]}}
        %hit = eq %col, %five
        %one_hot = cast %hit {{to=f32}}
        %often = reduce_sum %one_hot {OVER}
        %more = add %often, %one
        %rare = recip %more
        %rel = gather %rare, %classes
        %w = mul %l, %rel
        %a = reduce_sum %w {OVER}
        %b = reduce_sum %rel {OVER}
        %loss.KIND = div %a, %b""",
    # rows, and elements, that a mask selects: looked up, written back, and added up by the number
    # of their row
    "selected": """%c = lt %ignored, %labels
        %n = nonzero %c
        %at = transpose %n {perm=[1,0]}
        %g = gather_nd %z, %at
        %b = gather_nd %labels, %at
        %loss.KIND, _, _ = sce %g, %b {reduction=1}""",
    "written": f"""%n = nonzero %f
        %at = transpose %n {{perm=[1,0]}}
        %g = gather_nd %z, %at
        %u = tanh %g
        %y = scatter_nd %z, %at, %u
        %q = mul %y, %y
        %a = reduce_mean %q {ALL}
        %h = gather_nd %t, %at
        %k = mul %u, %h
        %r = part %n {{axis=0, index=0, count=2, keepdims=0}}
        %i = unsqueeze %r, %last
        %o = sub %m, %m
        %e = scatter_nd %o, %i, %k {{add=1}}
        %v = mul %e, %m
        %b = reduce_mean %v {OVER}
        %loss.KIND = add %a, %b""",
    # what integers make of counts: with a number added, cut off, as truth values, divided
    "counts": f"""%h, _, _ = sce %z, %classes {{reduction=2}}
        %i = lt %ignored, %labels
        %c = cast %i {{to=i64}}
        %n = reduce_sum %c {OVER}
        %k = add %n, %unit
        %a = cast %k {{to=f32}}
        %u = div %h, %a
        %j = lt %zero, %m
        %b = cast %j {{to=i64}}
        %s = reduce_sum %b {OVER}
        %y = cast %s {{to=bool}}
        %e = cast %y {{to=f32}}
        %v = add %u, %e
        %q = mul %m, %m
        %r = reduce_sum %q {OVER}
        %o = cast %r {{to=i64}}
        %g = div %n, %four
        %d = add %o, %g
        %w = cast %d {{to=f32}}
        %x2 = mul %v, %w
        %loss.KIND = mul %x2, %small""",
    # numbers of the whole batch: elements that a mask leaves out; one sample less than there are,
    # by a bound and by the root
    "numel": f"""%d = sub %z, %t
        %q = mul %d, %d
        %g = reduce_mean %q {ALL}
        %b = reduce_sum %f {ALL}
        %i = size %z
        %n = cast %i {{to=f32}}
        %o = sub %n, %b
        %v = mul %g, %o
        %y = div %v, %n
        %loss.KIND = add %y, %g""",
    "unbiased": f"""%d = sub %z, %t
        %q = mul %d, %d
        %a = reduce_sum %q {ALL}
        %s = shape %x
        %i = gather %s, %first
        %n = cast %i {{to=f32}}
        %o = sub %n, %one
        %g = div %a, %o
        %c = max %n, %twenty
        %h = div %a, %c
        %r = sqrt %n
        %k = recip %r
        %u = mul %a, %k
        %e = add %g, %h
        %loss.KIND = add %e, %u""",
    # a weight of 1 / n for every sample
    "inverse": """%d = sub %z, %t
        %q = mul %d, %d
        %u = reduce_sum %q {axes=[1], keepdims=0}
        %s = shape %x
        %i = gather %s, %first
        %n = cast %i {to=f32}
        %v = div %one, %n
        %o = reshape %i {shape=[1]}
        %e = expand %v, %o
        %r = mul %u, %e
        %loss.KIND = reduce_sum %r {axes=[0], keepdims=0}""",
    # formulas of sums that parameters decide
    "root": f"""%d = sub %z, %t
        %q = mul %d, %d
        %g = reduce_mean %q {ALL}
        %loss.KIND = sqrt %g""",
    # ReduceL2 over samples, whose gradient at 0 is 0
    "norm": f"""%d = sub %z, %t
        %q = mul %d, %d
        %a = reduce_sum %q {ALL}
        %c = le %a, %zero
        %b = where %c, %one, %a
        %r = sqrt %b
        %loss.KIND = where %c, %zero, %r""",
    "dice": f"""%p = sigmoid %z
        %i = mul %p, %t
        %a = reduce_sum %i {ALL}
        %b = reduce_sum %p {ALL}
        %c = reduce_sum %t {ALL}
        %e = add %b, %c
        %loss.KIND = div %a, %e""",
}
LINEAR = [k for k in TEXT if k not in ("root", "norm", "dice")]


def graph(kinds, rows):
    """The sum of the kinds' losses over so many rows."""
    lines = [
        f"input %x: f32[{rows},{WIDE}]",
        f"input %labels: i64[{rows}]",
        f"input %classes: i64[{rows}]",
        f"input %m: f32[{rows}]",
        f"input %t: f32[{rows},{CLASSES}]",
        f"input %f: f32[{rows},{CLASSES}]",
        f"const %weights: f32[5] = {{{', '.join(map(str, WEIGHTS))}}}",
        "const %one: f32[] = {1}",
        "const %small: f32[] = {0.1}",
        "const %ignored: i64[] = {-100}",
        "const %unit: i64[] = {1}",
        "const %first: i64[] = {0}",
        "const %twenty: f32[] = {20}",
        "const %last: i64[1] = {-1}",
        "const %zero: f32[] = {0}",
        "const %four: i64[] = {4}",
        "const %five: i64[1,5] = {0, 1, 2, 3, 4}",
    ]
    lines += [f"param %w.{kind}: f32[{WIDE},{CLASSES}] = splat 0" for kind in kinds]
    given = {
        "x",
        "labels",
        "classes",
        "m",
        "t",
        "f",
        "weights",
        "one",
        "small",
        "ignored",
        "five",
        "unit",
        "last",
        "zero",
        "four",
        "first",
        "twenty",
    }
    total = None
    for kind in kinds:
        text = f"%z = matmul %x, %w.{kind}\n" + TEXT[kind].replace("KIND", kind).replace(
            "ROWS", str(rows)
        )
        for line in text.splitlines():
            words = [
                f"%{kind}.{w[1:].rstrip(',')}{',' if w[-1] == ',' else ''}"
                if w[0] == "%" and w[1:].rstrip(",") not in given and "." not in w
                else w
                for w in line.split()
            ]
            lines.append(" ".join(words))
        last = f"%loss.{kind}"
        if total:
            lines.append(f"%sum.{kind} = add {total}, {last}")
            last = f"%sum.{kind}"
        total = last
    lines.append(f"%loss: f32[] output = mul {total}, %one")
    return "graph @g {\n\t" + "\n\t".join(lines) + "\n}\n"


def batch(half, seed=0):
    """A batch whose labels are ignored, and weights 0, in all of a stretch of rows, and here and
    there; half: in all of the second half."""
    rng = np.random.default_rng(seed)
    labels, classes = rng.integers(0, CLASSES, ROWS), rng.integers(0, CLASSES, ROWS)
    labels[15:][rng.uniform(size=ROWS - 15) < 0.5] = -100
    m = np.float32(rng.uniform(0, 2, ROWS))
    m[[2, 14, 19]] = 0
    f = np.float32(rng.uniform(size=(ROWS, CLASSES)) < 0.4)
    f[20:] = 1
    gone = slice(ROWS // 2, ROWS) if half else slice(6, 12)
    labels[gone], m[gone], f[gone] = -100, 0, 0
    return {
        "x": np.float32(rng.normal(0, 1, (ROWS, WIDE))),
        "labels": labels,
        "classes": classes,
        "m": m,
        "t": np.float32(rng.uniform(0, 1, (ROWS, CLASSES))),
        "f": f,
    }


def weights(kinds):
    order = list(TEXT)
    return {
        f"w.{kind}": np.float32(
            np.random.default_rng(order.index(kind)).normal(0, 0.5, (WIDE, CLASSES))
        )
        for kind in kinds
    }


def loss(kind, x, w):
    """Of the whole batch, in double precision."""
    small, w = float(np.float32(0.1)), np.float64(w)
    z = np.float64(x["x"]) @ w
    m, t, f = (np.float64(x[k]) for k in "mtf")
    logp = z - z.max(1, keepdims=True)
    logp = logp - np.log(np.exp(logp).sum(1, keepdims=True))
    each = np.arange(len(z))
    counts, at = x["labels"] >= 0, np.maximum(x["labels"], 0)
    rows, all_rows = -logp[each, at] * counts, -logp[each, x["classes"]]
    of = WEIGHTS[at] * counts
    d = z - t
    entropy, squares = rows.sum() / counts.sum(), d * d
    if kind == "balanced":
        rare = 1 / (np.bincount(x["classes"], minlength=CLASSES) + 1)[x["classes"]]
        return (all_rows * rare).sum() / rare.sum()
    p = 1 / (1 + np.exp(-z))
    counted = f > 0
    written = np.where(counted, np.tanh(z), z)
    if kind == "counts":
        factor = int((m * m).sum()) + counts.sum() // 4
        return small * factor * (all_rows.sum() / (counts.sum() + 1) + 1)
    sizes = {
        "numel": squares.mean() * ((z.size - f.sum()) / z.size + 1),
        "inverse": squares.sum() / len(z),
        "unbiased": squares.sum() * (1 / (len(z) - 1) + 1 / max(len(z), 20) + 1 / np.sqrt(len(z))),
    }
    return {
        **sizes,
        "mean": entropy,
        "integers": entropy,
        "selected": entropy,
        "written": (written * written).mean() + ((np.tanh(z) * t * counted).sum(1) * m).mean(),
        "weights": (rows * of).sum() / of.sum(),
        "nll": (rows * of).sum() / of.sum(),
        "sum": rows.sum(),
        "all": all_rows.mean(),
        "masked": (rows * m).sum() / m.sum(),
        "normalised": (rows * m).sum() / m.sum(),
        "clamped": (rows * m).sum() / (max(m.sum(), 1) + small),
        "smooth": entropy - small * (logp.mean(1) * counts).sum() / counts.sum(),
        "mse": squares.mean(),
        "squares": squares.sum(),
        "elements": ((np.log1p(np.exp(z)) - z * t) * f).sum() / f.sum(),
        "penalty": entropy + small * (w * w).sum(),
        "terms": entropy + small * (squares * f).sum() / f.sum() + squares.mean(),
        "root": np.sqrt(squares.mean()),
        "norm": np.sqrt(squares.sum()),
        "dice": (p * t).sum() / (p.sum() + t.sum()),
    }[kind]


def slopes(f, w):
    """By central differences with Richardson's extrapolation: of order h^4, and rounding of about
    1e-11."""
    w, g = np.float64(w), np.zeros(w.shape)
    for i in np.ndindex(w.shape):

        def slope(h):
            ends = []
            for step in h, -h:
                v = w.copy()
                v[i] += step
                ends.append(f(v))
            return (ends[0] - ends[1]) / (2 * h)

        g[i] = (4 * slope(5e-4) - slope(1e-3)) / 3
    return g


def gradient(kind, x, w):
    return slopes(lambda v: loss(kind, x, v), w)
