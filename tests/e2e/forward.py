#!/usr/bin/env python3
"""The program that evaluates: eval, predict, validation beside training.

    forward.py CKC CKRUN [--flags "--target cuda ..."]

What a trained net says of samples is computed here anew, by the formulas, from
the weights and running statistics of a checkpoint: losses, accuracies,
perplexities and predictions of sample counts that fill no batch.  Training
beside --valid comes to the same bits as without.
"""

import math
import os
import re
import struct
import sys

import ck

sys.path.insert(0, os.path.join(ck.HERE, "..", "runtime"))
import files

FLAGS = ck.option("--flags", "").split()
BATCH, WIDE, CLASSES, EPS, IGNORED = 4, 3, 5, 1e-5, 2
# Its training form drops half of the values and goes by the batch's statistics; what comes of %mix
# it does not compute.
NET = """graph @net {
	input %x: f32[4,3]
	input %y: i64[4]
	param %w: f32[3,3] = {@W}
	param %u: f32[3,5] = {@U}
	buffer %m: f32[3] = splat 0
	buffer %v: f32[3] = splat 1
	%h = matmul %x, %w
	%n, %mean, %var = batchnorm %h {eps=1e-05}
	%m2: f32[3] output = bn_update %m, %mean {momentum=0.75}
	const %k: f32[] = splat 1.25
	const %mix: f32[5,5] = {@X}
	%more = mul %var, %k
	%v2: f32[3] output = bn_update %v, %more {momentum=0.75}
	%d = dropout %n {ratio=0.5}
	%scores: f32[4,5] output = matmul %d, %u
	%loss: f32[] output, %lse, %den = sce %scores, %y {ignore=2}
	%mixed: f32[4,5] output = matmul %scores, %mix
}
"""
# A mean of squares, and no output beside it that has rows of samples.
MEAN = """graph @mean {
	input %x: f32[4,3]
	input %t: f32[4,3]
	param %w: f32[3,3] = {@W}
	%h = matmul %x, %w
	%e = sub %h, %t
	%q = mul %e, %e
	%all: f32[3] output = reduce_mean %h {axes=[0], keepdims=0}
	%loss: f32[] output = reduce_mean %q {axes=[0,1], keepdims=0}
}
"""

ROWS = """graph @rows {
	input %x: f32[2,3]
	input %t: f32[2,3]
	param %w: f32[3,3] = {@W}
	%h: f32[2,3] output = matmul %x, %w
	%g: f32[1,2,3] = reshape %h {shape=[1,2,3]}
	%first: f32[4,2,3] output = expand %g {shape=[4,2,3]}
	%m: f32[1,3] = reduce_mean %h {axes=[0]}
	%apart: f32[2,3] output = sub %h, %m
	%all: f32[4,3] output = expand %m {shape=[4,3]}
	%e = sub %h, %t
	%q = mul %e, %e
	%loss: f32[] output = reduce_mean %q {axes=[0,1], keepdims=0}
}
"""

# In a batch of one, of a file that has a name for its size.
ROWS_OF_ONE = """graph @one {
	input %x: f32[b=1,3]
	input %t: f32[b=1,3]
	param %w: f32[3,3] = {@W}
	%h output = matmul %x, %w
	%first output = transpose %h {perm=[1,0]}
	%all output = reduce_sum %h {axes=[0], keepdims=0}
	%m = reduce_mean %h {axes=[0]}
	%apart output = sub %h, %m
	%e = sub %h, %t
	%q = mul %e, %e
	%loss: f32[] output = reduce_mean %q {axes=[0,1], keepdims=0}
}
"""


def numbers(n, seed):
    return [((seed + 7 * i) * 31 % 97 - 48) / 32 for i in range(n)]


def write_net(bench, name, text):
    for key, n in ("W", WIDE * WIDE), ("U", WIDE * CLASSES), ("X", CLASSES * CLASSES):
        text = text.replace("@" + key, ",".join(map(str, numbers(n, len(key) + n))))
    path = bench.path(name + ".ck")
    with open(path, "w") as f:
        f.write(text)
    return path


def samples(bench, name, n, seed):
    """A file of n samples, one label of which does not count."""
    x = numbers(n * WIDE, seed)
    y = [(0, 1, 3, 4)[(seed + 3 * i * i + i) % 4] for i in range(n)]
    y[n // 2] = IGNORED
    path = bench.path(name)
    files.st_write(path, {"x": ("F32", [n, WIDE], x), "y": ("I64", [n], y)})
    return path, [x[i * WIDE : (i + 1) * WIDE] for i in range(n)], y


def product(rows, w, wide):
    return [[sum(r[k] * w[k * wide + j] for k in range(len(r))) for j in range(wide)] for r in rows]


def scores(state, x):
    w, u, m, v = (state[k][2] for k in "wumv")
    h = product(x, w, WIDE)
    return product(
        [[(a - m[j]) / math.sqrt(v[j] + EPS) for j, a in enumerate(r)] for r in h], u, CLASSES
    )


def expected(state, x, y):
    """Loss, accuracy and perplexity of what counts."""
    loss = hits = n = 0
    for row, label in zip(scores(state, x), y):
        if label == IGNORED:
            continue
        loss += math.log(sum(map(math.exp, row))) - row[label]
        hits += row.index(max(row)) == label
        n += 1
    return {"loss": loss / n, "accuracy": hits / n, "perplexity": math.exp(loss / n)}


def read_npy(path):
    """(shape, float32 elements)"""
    raw = ck.content(path)
    n = 10 + int.from_bytes(raw[8:10], "little")
    head = eval(raw[10:n].decode(), {})
    assert (
        raw[:8] == b"\x93NUMPY\x01\x00"
        and n % 64 == 0
        and head["descr"] == "<f4"
        and not head["fortran_order"]
    )
    return head["shape"], list(struct.unpack(f"<{(len(raw) - n) // 4}f", raw[n:]))


def near(a, b, share=2e-5):
    return abs(a - b) <= share * max(1, abs(b))


def evaluates(bench, so, saved):
    state, _ = files.st_read(saved)
    bench.check(state["m"][2] != [0] * 3, "training keeps no running statistics")
    for n in 12, 11, 9, 3, 1 + BATCH:
        data, x, y = samples(bench, f"s{n}.st", n, n)
        log, out = bench.path("e.log"), bench.path("p.npy")
        if not bench.must(
            bench.ckrun("eval", so, "--init", saved, "--data", data, "--log", log, "--quiet"),
            f"eval of {n}",
        ):
            continue
        row, want = ck.log_rows(log)[0], expected(state, x, y)
        bench.check(
            row["samples"] == n and all(near(row[k], want[k]) for k in want),
            f"eval of {n}: {row}, expected {want}",
        )
        rows = scores(state, x)
        for name, want in (
            ("scores", rows),
            ("mixed", product(rows, numbers(CLASSES**2, 1 + CLASSES**2), CLASSES)),
        ):
            done = bench.ckrun(
                "predict", so, "--init", saved, "--data", data, "-o", out, "--name", name
            )
            if not bench.must(done, f"predict {name} of {n}"):
                continue
            shape, got = read_npy(out)
            flat = [a for r in want for a in r]
            bench.check(
                shape == (n, CLASSES) and len(got) == len(flat) and all(map(near, got, flat)),
                f"predict {name} of {n}: {shape} {got[:5]}, {flat[:5]}",
            )


def whole(bench, so, saved, batches):
    """--inputs holds a batch for each micro-batch: eval and predict count their samples."""
    n = batches * BATCH
    data, _, _ = samples(bench, f"w{n}.st", n, n)
    log = bench.path("w.log")
    done = bench.ckrun("eval", so, "--init", saved, "--inputs", data, "--log", log)
    if bench.must(done, f"eval of {n} by --inputs"):
        bench.check(
            f"{n} samples  loss" in done.stdout and ck.log_rows(log)[0]["samples"] == n,
            f"eval of {n} by --inputs: {done.stdout}",
        )
    done = bench.ckrun(
        *("predict", so, "--init", saved, "--inputs", data, "--name", "scores"),
        *("-o", bench.path("w.npy")),
    )
    if bench.must(done, "predict by --inputs"):
        bench.check(f"{n} samples predicted" in done.stdout, f"predict by --inputs: {done.stdout}")
    data = bench.path("one.st")
    files.st_write(data, {"x": ("F32", [1, WIDE], numbers(WIDE, 1)), "y": ("I64", [1], [1])})
    done = bench.ckrun("eval", so, "--init", saved, "--data", data)
    bench.check("1 sample  loss" in done.stdout, f"eval of 1: {done.stdout}{done.stderr}")


def shards(bench, so, saved):
    """Samples of several files, in the files' order."""
    state, _ = files.st_read(saved)
    parts = [samples(bench, f"part{n}.st", n, n) for n in (5, 6)]
    x, y = [r for p in parts for r in p[1]], [r for p in parts for r in p[2]]
    log, out, want = bench.path("e.log"), bench.path("p.npy"), expected(state, x, y)
    data = [a for p in parts for a in ("--data", p[0])]
    if bench.must(
        bench.ckrun("eval", so, "--init", saved, *data, "--log", log), "eval of two files"
    ):
        row = ck.log_rows(log)[0]
        bench.check(
            row["samples"] == 11 and all(near(row[k], want[k]) for k in want),
            f"eval of two files: {row}, expected {want}",
        )
    if bench.must(
        bench.ckrun("predict", so, "--init", saved, *data, "-o", out, "--name", "scores"),
        "predict of two files",
    ):
        flat = [a for r in scores(state, x) for a in r]
        bench.check(all(map(near, read_npy(out)[1], flat)), "predict of two files")
    valid = [a for p in parts for a in ("--valid", p[0])]
    run = [so, "--init", saved, "--data", parts[0][0], "--steps", 1, "--lr", 0]
    if bench.must(
        bench.ckrun(
            *run, *valid, "--log", log, "--save", bench.path("same.st"), "--weight-decay", 0
        ),
        "--valid of two files",
    ):
        row, want = ck.log_rows(log)[0], expected(files.st_read(bench.path("same.st"))[0], x, y)
        bench.check(
            all(near(row["valid_" + k], want[k]) for k in want),
            f"--valid of two files: {row}, expected {want}",
        )
    done = bench.ckrun(*run, *valid, "--save", parts[1][0])
    bench.check(
        done.returncode == 1 and "is both --valid and --save" in done.stderr,
        f"a file of --valid written: {done.stderr}",
    )


def validates(bench, so):
    """Nothing of training changes; what is told of it is right; the best state is kept."""
    train, _, _ = samples(bench, "train.st", 22, 5)
    valid, x, y = samples(bench, "valid.st", 7, 3)
    run = [so, "--data", train, "--steps", 9, "--lr", 0.3, "--seed", 4]
    plain, kept, best = bench.path("plain.st"), bench.path("kept.st"), bench.path("best.st")
    logs = bench.path("plain.log"), bench.path("valid.log")
    bench.must(bench.ckrun(*run, "--save", plain, "--log", logs[0], "--quiet"), "train")
    beside = ["--valid", valid, "--valid-every", 2, "--save-best", best]
    if not bench.must(
        bench.ckrun(
            *run, "--save", kept, "--save-every", 2, "--keep", 2, "--log", logs[1], *beside
        ),
        "train with --valid",
    ):
        return
    bench.check(
        ck.tensors(plain) == ck.tensors(kept) and ck.losses(logs[0]) == ck.losses(logs[1]),
        "--valid changes training",
    )
    rows = ck.log_rows(logs[1])
    bench.check(
        [r["step"] for r in rows if "valid_loss" in r] == [2, 4, 6, 8, 9],
        "steps that are validated",
    )
    bench.check(
        sorted(f for f in os.listdir(bench.work) if f.startswith("kept.st"))
        == ["kept.st", "kept.st.6", "kept.st.8"],
        "--keep 2",
    )
    for step, name in (8, "kept.st.8"), (6, "kept.st.6"), (9, "kept.st"):
        want = expected(files.st_read(bench.path(name))[0], x, y)
        got = {k: rows[step - 1]["valid_" + k] for k in want}
        bench.check(
            all(near(got[k], want[k]) for k in want),
            f"--valid behind step {step}: {got}, expected {want}",
        )
    lowest = min(r["valid_loss"] for r in rows if "valid_loss" in r)
    state, meta = files.st_read(best)
    bench.check(near(expected(state, x, y)["loss"], lowest), "--save-best holds another state")
    done = bench.ckrun(
        *run,
        "--lr",
        5,
        "--steps",
        500,
        "--valid",
        valid,
        "--valid-every",
        1,
        "--patience",
        3,
        "--log",
        logs[1],
    )
    told = [r["valid_loss"] for r in ck.log_rows(logs[1])]
    at = told.index(min(told))
    bench.check(
        done.returncode == 0 and len(told) == at + 4 < 500 and "3 validations" in done.stdout,
        f"--patience 3: {told}",
    )


def goes_on(bench, so):
    """A run in two halves has the best state, and the patience, of one."""
    train, _, _ = samples(bench, "train.st", 22, 5)
    valid, _, _ = samples(bench, "valid.st", 7, 3)
    run = [so, "--data", train, "--lr", 0.3, "--seed", 4, "--valid", valid, "--valid-every", 1]
    whole, best, log = (
        bench.path("whole.st"),
        [bench.path("b1.st"), bench.path("b2.st")],
        bench.path("on.log"),
    )
    bench.must(
        bench.ckrun(*run, "--steps", 12, "--save-best", best[0], "--save", whole, "--log", log),
        "a run of 12 steps",
    )
    told = [r["valid_loss"] for r in ck.log_rows(log)]
    half = told.index(min(told)) + 2
    if not bench.check(
        half < 12 and told[half] > min(told), f"the best of 12 is the last, or near it: {told}"
    ):
        return
    bench.must(
        bench.ckrun(*run, "--steps", half, "--save-best", best[1], "--save", bench.path("half.st")),
        "the first half",
    )
    bench.must(
        bench.ckrun(
            *run,
            "--steps",
            12,
            "--save-best",
            best[1],
            "--resume",
            bench.path("half.st"),
            "--save",
            bench.path("on.st"),
        ),
        "the second half",
    )
    bench.check(
        ck.content(best[0]) == ck.content(best[1]), "--resume: --save-best holds another state"
    )
    bench.check(
        ck.content(whole) == ck.content(bench.path("on.st")),
        "--resume: the checkpoint is another one",
    )
    worse = 12 - 1 - told.index(min(told))
    for patience, steps in (worse, 12), (worse + 2, 14):
        done = bench.ckrun(*run, "--steps", 50, "--resume", whole, "--patience", patience)
        bench.check(
            f"stopped after step {steps}" in done.stdout,
            f"--patience {patience}: {done.stdout[-300:]}",
        )


def means(bench):
    """A loss without labels of classes: of samples that fill no batch, too."""
    so, n = bench.path("mean.so"), 6
    if not bench.must(
        bench.ckc(*FLAGS, write_net(bench, "mean", MEAN), "-o", so, "--quiet"), "mean: compile"
    ):
        return
    x, t = numbers(n * WIDE, 1), numbers(n * WIDE, 2)
    data, log = bench.path("mean.st"), bench.path("mean.log")
    files.st_write(data, {"x": ("F32", [n, WIDE], x), "t": ("F32", [n, WIDE], t)})
    h = product(
        [x[i * WIDE : (i + 1) * WIDE] for i in range(n)],
        numbers(WIDE * WIDE, 1 + WIDE * WIDE),
        WIDE,
    )
    want = sum((a - b) ** 2 for a, b in zip((a for r in h for a in r), t)) / len(t)
    if bench.must(bench.ckrun("eval", so, "--data", data, "--log", log), "mean: eval"):
        row = ck.log_rows(log)[0]
        bench.check(
            near(row["loss"], want) and set(row) == {"samples", "loss"},
            f"mean: {row}, expected {want}",
        )
    done = bench.ckrun("predict", so, "--data", data, "-o", bench.path("no.npy"))
    bench.check(
        done.returncode == 1
        and "'all' has no rows" in done.stderr
        and not os.path.exists(bench.path("no.npy")),
        f"mean: predict: {done.stderr}",
    )


# A mean of samples that is written as a sum of l, with the batch size as %n
SHARES = {
    "factor": "%r = recip %n\n\t%m = mul %l, %r\n",
    "divisor": "%m = div %l, %n\n",
    "vector": "%r = recip %n\n\t%v = expand %r {shape=[4]}\n\t%m = mul %v, %l\n",
}


def shares(bench):
    """Samples that are scaled by the batch size before they are summed: data that is no multiple of
    the batch has their mean."""
    x, t = numbers(11 * WIDE, 1), numbers(11 * WIDE, 2)
    data, so, log = bench.path("share.st"), bench.path("share.so"), bench.path("share.log")
    files.st_write(data, {"x": ("F32", [11, WIDE], x), "t": ("F32", [11, WIDE], t)})
    rows = product(
        [x[i * WIDE : (i + 1) * WIDE] for i in range(11)],
        numbers(WIDE * WIDE, 1 + WIDE * WIDE),
        WIDE,
    )
    want = sum((a - b) ** 2 for a, b in zip([a for r in rows for a in r], t)) / 11
    for name, text in SHARES.items():
        net = write_net(
            bench,
            "share",
            "graph @share {\n\tinput %x: f32[b=4,3]\n\tinput %t: f32[b=4,3]\n"
            "\tparam %w: f32[3,3] = {@W}\n\t%n = extent {dt=f32, value=4}\n"
            "\t%h = matmul %x, %w\n\t%e = sub %h, %t\n\t%q = mul %e, %e\n"
            f"\t%l = reduce_sum %q {{axes=[1], keepdims=0}}\n\t{text}"
            "\t%loss: f32[] output = reduce_sum %m {axes=[0], keepdims=0}\n}\n",
        )
        if not bench.must(bench.ckc(*FLAGS, net, "-o", so, "--quiet"), f"share {name}: compile"):
            continue
        done = bench.ckrun("eval", so, "--data", data, "--log", log)
        if bench.must(done, f"share {name}"):
            got = ck.log_rows(log)[0]["loss"]
            bench.check(
                near(got, want) and "note" not in done.stderr,
                f"share {name}: {got}, expected {want}: {done.stderr}",
            )


def rounded(bench, so, saved):
    """16-bit copies of parameters: a few hundredths, and the state of a checkpoint all the same."""
    state, _ = files.st_read(saved)
    data, x, y = samples(bench, "h.st", 9, 9)
    log, want = bench.path("h.log"), expected(state, x, y)
    if bench.must(
        bench.ckrun("eval", so, "--init", saved, "--data", data, "--log", log), "eval in bf16"
    ):
        got = ck.log_rows(log)[0]
        bench.check(
            near(got["loss"], want["loss"], 0.03) and got["loss"] != want["loss"],
            f"eval in bf16: {got}, expected {want}",
        )


def replicas(bench, net, so):
    """Half of a batch on each of two replicas is the same batch."""
    half, two = bench.path("half.ck"), bench.path("two.so")
    with open(net) as f, open(half, "w") as g:
        g.write(f.read().replace("[4,", "[2,").replace("[4]", "[2]"))
    data, _, _ = samples(bench, "d.st", 11, 7)
    if not bench.must(
        bench.ckc(*FLAGS, half, "-o", two, "--quiet", "--dp", "auto"), "compile, --dp auto"
    ):
        return
    rows = []
    for flags in [so], [two, "--ranks", 2], [two]:
        log, out = bench.path("d.log"), bench.path(f"d{len(rows)}.npy")
        bench.must(bench.ckrun("eval", *flags, "--data", data, "--log", log), f"eval {flags}")
        bench.must(
            bench.ckrun("predict", *flags, "--data", data, "-o", out, "--name", "mixed"),
            f"predict {flags}",
        )
        rows.append((ck.log_rows(log)[0], read_npy(out)))
    # a product's sums may depend on how many rows it has, so that bits are equal where all batches
    # are of two
    bench.check(rows[1][1] == rows[2][1], "one replica and two predict other bits")
    bench.check(
        rows[0][1][0] == rows[1][1][0] and all(map(near, rows[0][1][1], rows[1][1][1])),
        "a batch on two replicas predicts otherwise than on one",
    )
    bench.check(
        all(near(r[0][k], rows[0][0][k], 1e-6) for r in rows for k in r[0]),
        f"replicas: {[r[0] for r in rows]}",
    )


def outputs(bench, so):
    """What --outputs holds is the training step's, also where the state behind it was validated."""
    data, _, _ = samples(bench, "o.st", 9, 2)
    a, b = bench.path("a.st"), bench.path("b.st")
    run = [so, "--data", data, "--steps", 3, "--quiet", "--outputs"]
    bench.must(bench.ckrun(*run, a), "outputs")
    bench.must(bench.ckrun(*run, b, "--valid", data, "--valid-every", 1), "outputs beside --valid")
    bench.check(ck.content(a) == ck.content(b), "--valid changes --outputs")


def no_room(bench):
    """An output that training never computes, and has no room for."""
    text = MEAN.replace(
        "%all: f32[3] output = reduce_mean %h {axes=[0], keepdims=0}",
        "%k = transpose %x {perm=[1,0]}\n\t%big: f32[3,40000] output = matmul %k, %wide",
    ).replace("param %w", "param %wide: f32[4,40000] frozen = splat 1\n\tparam %w")
    so, data = bench.path("big.so"), bench.path("big.st")
    big = write_net(bench, "big", text)
    done = bench.ckc(*FLAGS, big, "-o", so)
    told = re.search(
        r"evaluation needs more memory than training: its peak is (\d+) B", done.stderr
    )
    if bench.must(done, "big: compile without a budget") and bench.check(
        told, f"big: without a budget: {done.stderr}"
    ):
        files.st_write(
            data, {"x": ("F32", [4, WIDE], numbers(12, 1)), "t": ("F32", [4, WIDE], numbers(12, 2))}
        )
        run = [so, "--inputs", data, "--stats"]
        for argv, evaluated in (
            (["eval", *run], True),
            ([*run, "--steps", 2], False),
            ([*run, "--steps", 2, "--valid", data], True),
        ):
            text = bench.ckrun(*argv).stdout
            peak, planned = map(int, re.search(r"peak (\d+) bytes, planned (\d+)", text).groups())
            bench.check(
                peak <= planned and (planned == int(told[1])) == evaluated,
                f"big: {argv}: {text}, expected {told[1]}",
            )
    done = bench.ckc(*FLAGS, big, "-o", so, "--memory-budget", "100%")
    if bench.must(done, "big: compile"):
        bench.check("evaluates only the loss" in done.stderr, f"big: {done.stderr}")
        files.st_write(
            data, {"x": ("F32", [4, WIDE], numbers(12, 1)), "t": ("F32", [4, WIDE], numbers(12, 2))}
        )
        done = bench.ckrun("eval", so, "--data", data)
        bench.check(
            done.returncode == 0 and "4 samples  loss" in done.stdout,
            f"big: eval: {done.stdout}{done.stderr}",
        )
        done = bench.ckrun("predict", so, "--data", data, "-o", "big.npy")
        bench.check(
            done.returncode == 1 and "no output besides its loss" in done.stderr,
            f"big: predict: {done.stderr}",
        )


def windows(bench):
    """Tokens in windows side by side: the table of a net that knows nothing but the token tells of
    which they were."""
    text = """graph @table {
	input %input_ids: i64[2,3]
	input %labels: i64[2,3]
	param %e: f32[11,11] = {@E}
	%h = gather %e, %input_ids {axis=0}
	%s = reshape %h {shape=[6,11]}
	%y = reshape %labels {shape=[6]}
	%loss: f32[] output, %lse, %den = sce %s, %y
}
"""
    table = numbers(121, 1)
    path, so, log = bench.path("table.ck"), bench.path("table.so"), bench.path("table.log")
    with open(path, "w") as f:
        f.write(text.replace("@E", ",".join(map(str, table))))
    tokens = [i * i % 11 for i in range(3 * 5 + 2)]
    with open(bench.path("t.u16"), "wb") as f:
        f.write(struct.pack(f"<{len(tokens)}H", *tokens))
    if not bench.must(bench.ckc(*FLAGS, path, "-o", so, "--quiet"), "table: compile"):
        return

    def mean(pairs):
        rows = [(table[11 * a : 11 * a + 11], b) for a, b in pairs]
        return sum(math.log(sum(map(math.exp, row))) - row[b] for row, b in rows) / len(rows)

    loss = mean(list(zip(tokens, tokens[1:]))[:15])
    if bench.must(
        bench.ckrun("eval", so, "--data", bench.path("t.u16"), "--tokens", "u16", "--log", log),
        "table: eval",
    ):
        got = ck.log_rows(log)[0]
        bench.check(
            got["samples"] == 5 and near(got["loss"], loss), f"table: {got}, expected {loss}"
        )
    # 2 windows of the first 9 tokens, 2 of the 8 behind them
    loss = mean([(tokens[i], tokens[i + 1]) for i in (*range(6), *range(9, 15))])
    for name, part in ("a.u16", tokens[:9]), ("b.u16", tokens[9:]):
        with open(bench.path(name), "wb") as f:
            f.write(struct.pack(f"<{len(part)}H", *part))
    if bench.must(
        bench.ckrun(
            "eval",
            so,
            "--data",
            bench.path("a.u16"),
            "--data",
            bench.path("b.u16"),
            "--tokens",
            "u16",
            "--log",
            log,
        ),
        "table: two files",
    ):
        got = ck.log_rows(log)[0]
        bench.check(
            got["samples"] == 4 and near(got["loss"], loss),
            f"table: two files: {got}, expected {loss}",
        )


# Parameters in shards of ranks and replicas.
CUT = (
    ["--tp", 2],
    ["--tp", 2, "--sp", "--shard", "u=I"],
    ["--dp", 2, "--zero", 1],
    ["--dp", 2, "--zero", 3],
    ["--tp", 2, "--dp", 2, "--zero", 3, "--grad-accum", 2],
    ["--dp", 3, "--zero", 3],
    ["--dp", 4, "--zero", 3, "--zero-group", 2],
)


def cut(bench, net):
    """Sharded libraries evaluate as whole ones do."""
    so, saved = bench.path("cut.so"), bench.path("cut.st")
    train, _, _ = samples(bench, "first.st", 24, 5)
    for flags in CUT:
        done = bench.ckc(*FLAGS, net, "-o", so, *flags)
        if not bench.must(done, f"cut: compile {flags}"):
            continue
        bench.check("cannot evaluate" not in done.stderr, f"cut: {flags}: {done.stderr}")
        run = [so, "--data", train, "--steps", 5, "--lr", 0.05, "--save", saved, "--quiet"]
        bench.must(bench.ckrun(*run), f"cut: train {flags}")
        evaluates(bench, so, saved)
    validates(bench, so)


def without(bench, net):
    """Without a program that evaluates the loss is a step's, where that goes by no batch."""
    so, mean = bench.path("off.so"), bench.path("off-mean.so")
    data, tables = bench.path("mean.st"), [bench.path("off0.log"), bench.path("off1.log")]
    bench.must(bench.ckc(*FLAGS, net, "-o", so, "--eval", "off"), "without: compile")
    done = bench.ckrun("eval", so, "--data", bench.path("r.st"))
    bench.check(
        done.returncode == 1 and "running statistics" in done.stderr, f"without: {done.stderr}"
    )
    if bench.must(
        bench.ckc(*FLAGS, bench.path("mean.ck"), "-o", mean, "--eval", "off", "--quiet"),
        "without: compile of a mean",
    ):
        for so, log in zip((bench.path("mean.so"), mean), tables):
            bench.must(bench.ckrun("eval", so, "--data", data, "--log", log), f"eval of {so}")
        whole, parts = (ck.log_rows(log)[0] for log in tables)
        bench.check(near(whole["loss"], parts["loss"], 1e-6), f"{parts}, expected {whole}")
        done = bench.ckrun("predict", mean, "--data", data, "-o", "off.npy")
        bench.check(
            done.returncode == 1 and "no output besides its loss" in done.stderr,
            f"without: predict: {done.stderr}",
        )


def scalars(bench):
    """A number that is no sample is each file's own."""
    text = MEAN.replace("input %t", "input %c: f32[]\n\tinput %t").replace(
        "%e = sub %h, %t", "%g = mul %h, %c\n\t%e = sub %g, %t"
    )
    so, train, valid = bench.path("scale.so"), bench.path("scale.st"), bench.path("scale-valid.st")
    if not bench.must(
        bench.ckc(*FLAGS, write_net(bench, "scale", text), "-o", so, "--quiet"), "scale: compile"
    ):
        return
    for path, c in (train, 1), (valid, 3):
        files.st_write(
            path,
            {
                "x": ("F32", [8, WIDE], numbers(24, 1)),
                "t": ("F32", [8, WIDE], numbers(24, 2)),
                "c": ("F32", [], [c]),
            },
        )
    logs = [bench.path(f"scale{i}.log") for i in range(3)]
    run = [so, "--data", train, "--steps", 6, "--quiet", "--log"]
    bench.must(bench.ckrun(*run, logs[0]), "scale: train")
    bench.must(bench.ckrun(*run, logs[1], "--valid", valid, "--valid-every", 1), "scale: --valid")
    bench.check(
        ck.losses(logs[0]) == ck.losses(logs[1]), "scale: training goes by the number of --valid"
    )
    bench.must(bench.ckrun("eval", so, "--data", valid, "--log", logs[2]), "scale: eval")
    told = ck.log_rows(logs[2])[0]["loss"]
    bench.check(
        near(ck.log_rows(logs[1])[0]["valid_loss"], told, 0.2) and told > 2 * ck.losses(logs[0])[0],
        "scale: --valid goes by training's number",
    )


def refuses(bench, net, so):
    data, _, _ = samples(bench, "r.st", 5, 2)
    for args, status, word in (
        (["eval", so, "--data", data, "--steps", 3], 2, "--steps is only valid for training"),
        (
            [so, "--data", data, "--steps", 1, "-o", "y.npy"],
            2,
            "--out is only valid for ckrun predict",
        ),
        (["predict", so, "--data", data], 2, "-o FILE.npy"),
        (["predict", so, "--data", data, "-o", data], 1, "is both"),
        (
            ["predict", so, "--data", data, "-o", "y.npy", "--name", "loss"],
            1,
            "expected one of 'scores' 'mixed'",
        ),
        (["predict", so, "--data", data, "-o", "y.npy"], 1, "several outputs"),
        ([so, "--data", data, "--steps", 1, "--save-best", "b.st"], 2, "needs --valid"),
        (
            [so, "--data", data, "--steps", 1, "--valid", data, "--patience", 2],
            2,
            "needs --valid-every",
        ),
    ):
        done = bench.ckrun(*args)
        bench.check(
            done.returncode == status and word in done.stderr,
            f"{args}: {done.returncode} {done.stderr}",
        )
    without = bench.path("without.so")
    bench.must(
        bench.ckc(*FLAGS, net, "-o", without, "--quiet", "--eval", "off"), "compile, --eval off"
    )
    done = bench.ckrun("eval", without, "--data", data)
    bench.check(
        done.returncode == 1 and "running statistics" in done.stderr,
        f"eval without a program: {done.stderr}",
    )
    bench.check(
        os.path.getsize(without) < os.path.getsize(so), "--eval off makes no smaller library"
    )


def rows(bench, text, b):
    """Outputs whose first dim is a multiple of the batch, but has no samples, or samples that
    depend on each other."""
    so, n, out = bench.path("rows.so"), 4, bench.path("rows.npy")
    if not bench.must(
        bench.ckc(*FLAGS, write_net(bench, "rows", text), "-o", so, "--quiet"), "rows: compile"
    ):
        return
    x = numbers(n * WIDE, 1)
    data = bench.path("rows.st")
    files.st_write(
        data, {"x": ("F32", [n, WIDE], x), "t": ("F32", [n, WIDE], numbers(n * WIDE, 2))}
    )
    h = product(
        [x[i * WIDE : (i + 1) * WIDE] for i in range(n)],
        numbers(WIDE * WIDE, 1 + WIDE * WIDE),
        WIDE,
    )
    done = bench.ckrun("predict", so, "--data", data, "-o", out, "--name", "h")
    if bench.must(done, "rows: h"):
        bench.check(
            "note" not in done.stderr
            and all(map(near, read_npy(out)[1], [a for r in h for a in r])),
            f"rows: h: {done.stderr}",
        )
    for name in "first", "all":
        done = bench.ckrun("predict", so, "--data", data, "-o", out, "--name", name)
        bench.check(
            done.returncode == 1 and f"'{name}' has no rows" in done.stderr,
            f"rows: {name}: {done.stderr}",
        )
    done = bench.ckrun("predict", so, "--data", data, "-o", out, "--name", "apart")
    bench.check(
        done.returncode == 0
        and f"note: rows of output 'apart' may depend on the other samples of the batch, here of {b}"
        in done.stderr,
        f"rows: apart: {done.stderr}",
    )


def main():
    bench = ck.Bench()
    net = write_net(bench, "net", NET)
    for flags in [], ["--dtype", "bf16", "--resident-copies", "on"], ["--grad-accum", 2]:
        so, saved = bench.path("net.so"), bench.path("net.st")
        train, _, _ = samples(bench, "first.st", 22, 5)
        if not bench.must(
            bench.ckc(*FLAGS, net, "-o", so, "--quiet", "--threads", 2, *flags), f"compile {flags}"
        ):
            continue
        bench.must(
            bench.ckrun(
                so, "--data", train, "--steps", 5, "--lr", 0.05, "--save", saved, "--quiet"
            ),
            f"train {flags}",
        )
        if "bf16" in flags:
            rounded(bench, so, saved)
            continue
        evaluates(bench, so, saved)
        whole(bench, so, saved, 2 if flags else 1)
        if not flags:
            validates(bench, so)
            goes_on(bench, so)
            shards(bench, so, saved)
    bench.must(bench.ckc(*FLAGS, net, "-o", so, "--quiet"), "compile")
    refuses(bench, net, so)
    replicas(bench, net, so)
    means(bench)
    shares(bench)
    rows(bench, ROWS, 2)
    rows(bench, ROWS_OF_ONE, 1)
    cut(bench, net)
    without(bench, net)
    no_room(bench)
    windows(bench)
    scalars(bench)
    bench.must(bench.ckc(*FLAGS, net, "-o", so, "--quiet", "--output", "*"), "compile, --output")
    outputs(bench, so)
    bench.finish()


if __name__ == "__main__":
    main()
