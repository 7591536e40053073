#!/usr/bin/env python3
"""A classifier learns from whatever file holds its samples, or ckrun says why not.

    data.py CKC CKRUN

Three classes around three points, far enough apart for a loss below 0.1; labels that have nothing
to do with their rows end near log 3 = 1.1.  Whatever the arrays are called, in .npz and
.safetensors, a run ends below 0.3 or is refused with the lines to choose from.
"""

import os
import re
import sys

import ck
import numpy as np
import wire

sys.path.insert(0, os.path.join(ck.HERE, "..", "runtime"))
import files

BATCH, WIDTH, HIDDEN, CLASSES, N = 32, 20, 16, 3, 2000
FLOAT, INT = 1, 7
STEPS = ["--steps", 150, "--lr", "0.01"]
KINDS = {"f": "F", "i": "I", "u": "U", "b": "BOOL"}


def model(bench, name, shape, labels=None):
    """A perceptron of x; with the loss inside, if labels has a name, else ending in logits."""
    rng = np.random.default_rng(5)
    weight = {"w1": (WIDTH, HIDDEN), "w2": (HIDDEN, CLASSES)}
    held = [
        wire.floats(k, d, rng.normal(0, 0.3, d).ravel().tolist()) for k, d in weight.items()
    ] + [wire.ints("flat", [BATCH, WIDTH])]
    nodes = [
        wire.node("Reshape", ["x", "flat"], "r"),
        wire.node("MatMul", ["r", "w1"], "h"),
        wire.node("Relu", ["h"], "a"),
        wire.node("MatMul", ["a", "w2"], "logits"),
    ]
    inputs, outputs = (
        {"x": (FLOAT, [BATCH, *shape])},
        [wire.value_info("logits", FLOAT, [BATCH, CLASSES])],
    )
    if labels:
        nodes.append(wire.node("SoftmaxCrossEntropyLoss", ["logits", labels], "loss"))
        inputs[labels], outputs = (INT, [BATCH]), [wire.value_info("loss", FLOAT, [])]
    graph = b"".join(nodes + [wire.field(2, b"g")] + held) + b"".join(
        wire.field(11, wire.value_info(k, *v)) for k, v in inputs.items()
    )
    path = bench.path(name + ".onnx")
    with open(path, "wb") as f:
        f.write(wire.a_model(graph + b"".join(wire.field(12, o) for o in outputs)))
    return path


def compiled(bench, path, *flags):
    so = path[:-5] + "".join(re.findall(r"\w", "".join(map(str, flags)))) + ".so"
    bench.must(bench.ckc(path, "-o", so, "--quiet", "--threads", 1, *flags), f"compile {path}")
    return so


def samples():
    rng = np.random.default_rng(1)
    y = rng.integers(0, CLASSES, N)
    x = rng.normal(0, 0.5, (N, WIDTH)) + np.eye(CLASSES, WIDTH)[y] * 3
    return x.astype("f4"), y


def save(bench, name, **arrays):
    path = bench.path(name)
    if name.endswith(".npz"):
        np.savez(path, **arrays)
    else:
        files.st_write(
            path,
            {
                k: (
                    "BOOL" if a.dtype == bool else KINDS[a.dtype.kind] + str(8 * a.itemsize),
                    a.shape,
                    a.ravel().tolist(),
                )
                for k, a in arrays.items()
            },
        )
    return path


def learns(bench, so, data, *flags, told=(), most=0.3):
    what = f"{os.path.basename(so)}, {os.path.basename(data)}, {flags}"
    log = bench.path("log")
    done = bench.ckrun(so, "--data", data, *STEPS, *flags, "--log", log)
    if bench.must(done, what):
        loss = np.mean(ck.losses(log)[-10:])
        bench.check(loss < most, f"{what}: a loss of {loss}")
        for line in told:
            bench.check(
                f"\n  {line}\n" in done.stdout, f"{what}: not told '{line}':\n{done.stdout[:600]}"
            )


def refused(bench, so, data, *flags, told=(), lines=(), status=1):
    what = f"{os.path.basename(so)}, {os.path.basename(data)}, {flags}"
    log = bench.path("none")
    done = bench.ckrun(so, "--data", data, *STEPS, *flags, "--log", log)
    bench.check(
        done.returncode == status and not os.path.exists(log), f"{what}: status {done.returncode}"
    )
    for text in told:
        bench.check(text in done.stderr, f"{what}: not said '{text}':\n{done.stderr}")
    found = re.findall(r"^    (--feed .*)$", done.stderr, re.M)
    if status == 1:
        bench.check(found == list(lines), f"{what}: lines {found}")


def names(bench, so, label, x, y):
    """All ways of calling two arrays."""
    told = [f"x f32[{BATCH},{WIDTH}] = rows of 'x' f32[{N},{WIDTH}]"]
    for suffix in ("npz", "safetensors"):
        learns(
            bench,
            so,
            save(bench, "xy." + suffix, x=x, y=y),
            told=told + [f"{label} i64[{BATCH}] = rows of 'y' i64[{N}]"],
        )
        both = save(bench, "both." + suffix, inputs=x, labels=y)
        learns(
            bench, so, both, told=[f"x f32[{BATCH},{WIDTH}] = rows of 'inputs' f32[{N},{WIDTH}]"]
        )
    for feed in (["x=inputs"], [label + "=labels"], ["x=inputs", label + "=labels"]):
        learns(bench, so, both, *[a for f in feed for a in ("--feed", f)])
    learns(bench, so, save(bench, "small.npz", b=y.astype("u1"), a=x.astype("f8")))
    learns(
        bench,
        so,
        save(bench, "unused.npz", x=x, y=y, x_test=x[:90], y_test=y[:90], epoch=np.array(3)),
        told=told
        + [
            f"not used: 'x_test' f32[90,{WIDTH}]",
            "not used: 'y_test' i64[90]",
            "not used: 'epoch' i64[]",
        ],
    )


def refusals(bench, so, x, y):
    split = save(bench, "split.npz", x_train=x, y_train=y, x_test=x[:90], y_test=y[:90])
    refused(
        bench,
        so,
        split,
        told=["more than one array fits"],
        lines=["--feed x=x_train", "--feed x=x_test"],
    )
    learns(bench, so, split, "--feed", "x=x_train")
    refused(
        bench,
        so,
        save(bench, "three.npz", x=x, a=y, b=y[::-1].copy()),
        told=["input 'labels' i64[32]: more than one array"],
        lines=["--feed labels=a", "--feed labels=b"],
    )
    refused(
        bench,
        so,
        save(bench, "short.npz", x=x, y=y[:-1]),
        told=["another number of samples", "no array of the file fits"],
    )
    refused(
        bench,
        so,
        save(bench, "shape.npz", x=x[:, :-1], y=y),
        told=[f"assigned array is f32[{N},{WIDTH - 1}]"],
    )
    refused(
        bench,
        so,
        save(bench, "hot.npz", x=x, labels=np.eye(CLASSES)[y], y=y),
        told=[f"assigned array is f64[{N},{CLASSES}]"],
        lines=["--feed labels=y"],
    )
    refused(
        bench,
        so,
        save(bench, "none.npz", x=x),
        told=["input 'labels' i64[32]: no data are assigned to the input"],
    )
    floats = save(bench, "floats.npz", x=x, y=y.astype("f8"))
    refused(bench, so, floats, lines=["--feed labels=int:y"])
    refused(
        bench,
        so,
        floats,
        "--feed",
        "labels=y",
        told=["of another kind: floats are not integers"],
        lines=["--feed labels=int:y"],
    )
    learns(
        bench,
        so,
        floats,
        "--feed",
        "labels=int:y",
        told=[f"labels i64[{BATCH}] = rows of 'y' f64[{N}], converted"],
    )
    half = save(bench, "half.npz", x=x, y=y + 0.5)
    refused_late = bench.ckrun(so, "--data", half, "--feed", "labels=int:y", *STEPS)
    bench.check(
        refused_late.returncode == 1 and ".5, which does not fit i64" in refused_late.stderr,
        refused_late.stderr,
    )
    learns(
        bench,
        so,
        save(bench, "xy.npz", x=x, y=y),
        "--feed",
        "labels=next",
        most=9,
        told=[f"labels i64[{BATCH}] = token windows, shifted by one token, 'y' i64[{N}]"],
    )


def images(bench, so, x, y):
    """Pixels are not taken for what a model wants, unless that is said."""
    pixels = np.clip(x * 40 + 100, 0, 255).astype("u1").reshape(N, 4, 5)
    data = save(bench, "images.npz", images=pixels, y=y)
    why = ["integers would stay unscaled, pixels from 0 to 255"]
    refused(bench, so, data, lines=["--feed x=float:images"])
    refused(bench, so, data, "--feed", "x=images", told=why, lines=["--feed x=float:images"])
    refused(
        bench,
        so,
        save(bench, "same.npz", x=pixels.astype("i4"), y=y),
        told=why,
        lines=["--feed x=float:x"],
    )
    learns(
        bench,
        so,
        data,
        "--feed",
        "x=float:images",
        most=9,
        told=[f"x f32[{BATCH},4,5] = rows of 'images' u8[{N},4,5], converted"],
    )
    learns(bench, so, save(bench, "scaled.npz", images=pixels / 40 - 2.5, y=y))


def below_zero(bench):
    """Ids below 0 count from the end, as ONNX has it: said once, of the first one.  Labels are no
    ids."""
    nodes = [
        wire.node("Gather", ["m.weight", "ids"], "rows"),
        wire.node("Transpose", ["rows"], "t", perm=[0, 2, 1]),
        wire.node("SoftmaxCrossEntropyLoss", ["t", "labels"], "loss", ignore_index=-100),
    ]
    inputs = {"ids": (INT, [2, 3]), "labels": (INT, [2, 3])}
    weight = np.random.default_rng(6).normal(0, 1, (5, CLASSES))
    graph = (
        b"".join(nodes)
        + wire.field(2, b"g")
        + wire.floats("m.weight", weight.shape, weight.ravel().tolist())
    )
    graph += b"".join(
        wire.field(11, wire.value_info(k, *v)) for k, v in inputs.items()
    ) + wire.field(12, wire.value_info("loss", FLOAT, []))
    path = bench.path("ids.onnx")
    with open(path, "wb") as f:
        f.write(wire.a_model(graph))
    so = compiled(bench, path)
    ids, labels = np.arange(6).reshape(2, 3) % 5, np.array([[0, -100, 1], [2, 0, -100]])
    wrapped = ids.copy()
    wrapped[0, 1] -= 5
    wrapped[1, 2] -= 5
    losses = []
    for name, given, said in (
        ("plain", ids, ""),
        (
            "wrapped",
            wrapped,
            "ckrun: warning: {}: 'ids': element 1 is -4: negative ids index from the end\n",
        ),
    ):
        data = save(bench, name + ".npz", ids=given, labels=labels)
        for option in "--inputs", "--data":
            done = bench.ckrun(so, option, data, "--steps", 3, "--log", bench.path("log"))
            bench.must(done, f"{name} {option}")
            if option == "--inputs":
                bench.check(done.stderr == said.format(data), f"{name} {option}: {done.stderr}")
                losses.append(ck.losses(bench.path("log")))
            else:
                bench.check(
                    done.stderr.count("negative ids") == (said != ""),
                    f"{name} {option}: {done.stderr}",
                )
    bench.check(losses[0] == losses[1], f"the same rows, other losses: {losses}")


def main():
    bench = ck.Bench()
    x, y = samples()
    logits = model(bench, "logits", [WIDTH])
    so = compiled(bench, logits, "--loss", "ce")
    names(bench, so, "labels", x, y)
    refusals(bench, so, x, y)
    names(bench, compiled(bench, model(bench, "inside", [WIDTH], "y"), "--loss", "loss"), "y", x, y)
    learns(
        bench,
        compiled(bench, logits, "--loss", "ce", "--grad-accum", 3),
        save(bench, "both.npz", inputs=x, labels=y),
    )
    below_zero(bench)
    images(bench, compiled(bench, model(bench, "images", [4, 5]), "--loss", "ce"), x, y)
    bench.finish()


if __name__ == "__main__":
    main()
