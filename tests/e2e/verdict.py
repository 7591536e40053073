#!/usr/bin/env python3
"""inspect and a compile share one verdict.

    verdict.py CKC CKRUN

Small models that ckc refuses, each for a reason of its own, and some that it takes.  With the same
options both verbs end with the same status and say the same words.  The exception is extents that
nothing binds: inspect says which, and what would follow if they were bound.
"""

import os
import struct
import subprocess

import ck
import wire
from wire import field

F32, I64, F64 = 1, 7, 11
WEIGHT = wire.floats("m.weight", [4, 4], [0.5, -1.5] * 8)


def tensor_type(name, dtype, dims):
    """Of an input or output; an extent may be a name."""
    shape = b"".join(field(1, field(1 if isinstance(d, int) else 2, d)) for d in dims)
    return field(1, name) + field(2, field(1, field(1, dtype) + field(2, shape)))


def model(nodes, held, inputs, outputs):
    graph = b"".join(nodes) + field(2, "g") + b"".join(held)
    graph += b"".join(field(11, tensor_type(k, *v)) for k, v in inputs.items()) + b"".join(
        field(12, tensor_type(k, *v)) for k, v in outputs.items()
    )
    return wire.a_model(graph)


def layer(*rest, held=(), rows=4, dtype=F32, weight=WEIGHT, outputs=None):
    """x * m.weight is y; what follows makes something of it."""
    nodes = [wire.node("MatMul", ["x", "m.weight"], "y"), *rest]
    return model(
        nodes, [weight, *held], {"x": (dtype, [rows, 4])}, outputs or {"loss": (dtype, [])}
    )


def mean(of):
    return wire.node("ReduceMean", [of], "loss", keepdims=0)


def doubles(name, dims, values):
    return field(
        5,
        b"".join(field(1, d) for d in dims)
        + field(2, F64)
        + field(8, name)
        + field(9, struct.pack(f"<{len(values)}d", *values)),
    )


def elsewhere(location):
    return field(
        5,
        field(1, 4)
        + field(1, 4)
        + field(2, F32)
        + field(8, "m.weight")
        + field(13, field(1, "location") + field(2, location))
        + field(14, 1),
    )


PLAIN = layer(mean("y"))
LOGITS = layer(outputs={"y": (F32, [4, 4])})
DOUBLE = layer(mean("y"), dtype=F64, weight=doubles("m.weight", [4, 4], [0.5] * 16))
PART = layer(
    wire.node("Cast", ["y"], "d", to=F64),
    wire.node("Softmax", ["d"], "p"),
    wire.node("Cast", ["p"], "f", to=F32),
    mean("f"),
)
DYNAMIC = layer(mean("y"), rows="batch")

REFUSED = (  # what, the file, options, words
    ("no loss", LOGITS, [], ["no output is a scalar loss", "--loss ce:LOGITS", "'y': f32[4,4]"]),
    (
        "two losses",
        layer(
            wire.node("ReduceMax", ["y"], "top", keepdims=0),
            wire.node("ReduceMin", ["y"], "least", keepdims=0),
            outputs={"top": (F32, []), "least": (F32, [])},
        ),
        [],
        ["several outputs are scalars"],
    ),
    (
        "no such loss",
        PLAIN,
        ["--loss", "nosuch"],
        ["no output and no kind of loss is named 'nosuch'"],
    ),
    ("float64", DOUBLE, [], ["'m.weight' is float64", "model.float()"]),
    ("float64 by SGD", DOUBLE, ["--optimizer", "sgd"], ["'m.weight' is float64", "model.float()"]),
    ("float64 summed", DOUBLE, ["--grad-accum", "2"], ["'m.weight' is float64", "model.float()"]),
    ("a part in float64", PART, [], ["node 'n_p' (Softmax)", "not supported for f64", "float32"]),
    (
        "an unknown operator",
        layer(wire.node("NoSuchOp", ["y"], "z"), mean("z")),
        [],
        ["op NoSuchOp is not supported", "'n_z'"],
    ),
    (
        "shapes that do not fit",
        layer(
            wire.node("MatMul", ["y", "v.weight"], "z"),
            mean("z"),
            held=[wire.floats("v.weight", [3, 4], [1.0] * 12)],
        ),
        [],
        ["node 'n_z' (MatMul)"],
    ),
    ("an unknown extent", PLAIN, ["--dim", "nosuch=2"], ["--dim nosuch=2"]),
    (
        "an unknown extent beside one that is missing",
        DYNAMIC,
        ["--dim", "nosuch=2"],
        ["--dim nosuch=2", "try: --dim batch=N"],
    ),
    (
        "an empty input",
        DYNAMIC,
        ["--shape", "x=0x4"],
        ["m.onnx: --shape x: size 0 is not between 1 and 2147483648\n"],
    ),
    ("an unknown parameter", PLAIN, ["--train", "nosuch*"], ["--train 'nosuch*'"]),
    ("nothing to train", PLAIN, ["--freeze", "*"], ["does not depend on any trained parameter"]),
    (
        "no weights",
        layer(mean("y"), weight=elsewhere("gone.data")),
        [],
        ["'m.weight'", "gone.data"],
    ),
    ("a parameter without contents", PLAIN, ["--param", "x"], ["parameter 'x' has no contents"]),
    ("too small a budget", PLAIN, ["--memory-budget", "10B"], ["smallest budget that works"]),
    (
        "too small a budget for sgd",
        PLAIN,
        ["--memory-budget", "10B", "--optimizer", "sgd"],
        ["smallest budget that works"],
    ),
    ("an unknown device", PLAIN, ["--device", "nosuch"], ["nosuch"]),
    ("nothing to keep", PLAIN, ["--keep", "nosuch"], ["nosuch"]),
    (
        "a whole number's Erf",
        model(
            [
                wire.node("Erf", ["x"], "y"),
                wire.node("Cast", ["y"], "f", to=F32),
                wire.node("Mul", ["f", "m.weight"], "z"),
                mean("z"),
            ],
            [WEIGHT],
            {"x": (I64, [4])},
            {"loss": (F32, [])},
        ),
        [],
        ["(Erf)"],
    ),
    ("half a file", PLAIN[:40], [], []),
)
ACCEPTED = (
    ("a loss", PLAIN, []),
    ("logits with cross entropy", LOGITS, ["--loss", "ce"]),
    ("an output with a target", LOGITS, ["--loss", "mse:y", "--optimizer", "sgd"]),
    ("logits for inference", LOGITS, ["--forward-only"]),
    (
        "a parameter frozen",
        layer(
            wire.node("Mul", ["y", "v.weight"], "z"),
            mean("z"),
            held=[wire.floats("v.weight", [4], [1.0] * 4)],
        ),
        ["--freeze", "m.weight"],
    ),
    ("float64 without updates", DOUBLE, ["--optimizer", "none"]),
    ("all of the bytes", PLAIN, ["--memory-budget", "100%"]),
    ("an extent bound", DYNAMIC, ["--dim", "batch=3"]),
    ("an input bound", DYNAMIC, ["--shape", "x=3x4"]),
    (
        "an unknown operator for another output",
        layer(
            wire.node("NoSuchOp", ["y"], "z"),
            mean("y"),
            outputs={"loss": (F32, []), "z": (F32, [4])},
        ),
        [],
    ),
)


def save(bench, data):
    path = bench.path("m.onnx")
    with open(path, "wb") as f:
        f.write(data)
    return path


def compile_of(bench, path, options):
    """Whether ckc takes it, and what it says if not, without notes.  A C compiler that fails stands
    for success: it is asked last."""
    done = bench.ckc(path, "-o", bench.path("m.so"), "--cc", "false", *options)
    bench.check(done.returncode == 1, f"{options}: status {done.returncode}")
    said = "".join(line for line in done.stderr.splitlines(True) if ": note: " not in line)
    return "C compiler 'false'" in said, said


def refused(bench, what, data, options, words):
    path = save(bench, data)
    taken, said = compile_of(bench, path, options)
    done = bench.ckc("inspect", path, *options)
    bench.check(not taken, f"{what}: ckc takes it")
    bench.check(
        done.returncode == 1, f"{what}: inspect ends with {done.returncode}, ckc says: {said}"
    )
    bench.check(done.stderr == said, f"{what}: inspect says\n{done.stderr}ckc says\n{said}")
    bench.check(
        said.startswith("ckc: ") and "internal" not in said and all(word in said for word in words),
        f"{what}: expected {words}: {said}",
    )
    bench.check("can be" not in done.stdout, f"{what}: {done.stdout[-200:]}")
    first = said.split("\n")[0].removeprefix("ckc: ")
    bench.check(
        not done.stdout or "  " + first in done.stdout.split("\n"),
        f"{what}: the report lacks the error: {done.stdout[-300:]}",
    )


def said_once(bench):
    """Where the report and the errors go to one place, the errors are there once."""
    path = save(bench, PLAIN)
    text = bench.path("both.txt")
    with open(text, "w") as f:
        subprocess.run(
            [bench.ckc_path, "inspect", path, "--memory-budget", "10B"], stdout=f, stderr=f
        )
    text = ck.content(text).decode()
    bench.check(text.count("is too small") == 1, f"one place: {text}")


def accepted(bench, what, data, options):
    path = save(bench, data)
    taken, said = compile_of(bench, path, options)
    done = bench.ckc("inspect", path, *options)
    bench.check(taken, f"{what}: ckc refuses it: {said}")
    bench.check(done.returncode == 0, f"{what}: inspect ends with {done.returncode}: {done.stderr}")
    bench.check(
        done.stdout.rstrip().split("\n")[-1]
        == ("can be compiled" if "--forward-only" in options else "can be trained"),
        f"{what}: {done.stdout[-300:]}",
    )


def unbound(bench):
    """Extents that are missing, and what follows."""
    nodes = [wire.node("MatMul", ["x", "m.weight"], "y"), mean("y")]
    for what, data, options, status, words in (
        ("batch", DYNAMIC, [], 0, ["--dim batch=N"]),
        ("batch under a budget", DYNAMIC, ["--memory-budget", "10B"], 0, ["--dim batch=N"]),
        (
            "one of two",
            model(nodes, [WEIGHT], {"x": (F32, ["batch", "seq", 4])}, {"loss": (F32, [])}),
            ["--dim", "seq=3"],
            0,
            ["--dim batch=N"],
        ),
        (
            "an expression",
            model(nodes, [WEIGHT], {"x": (F32, ["2*half - 7", 4])}, {"loss": (F32, [])}),
            [],
            0,
            ["--dim half=N"],
        ),
        (
            "a name that looks like an expression",
            layer(mean("y"), rows="Max(1, s)/x"),
            [],
            0,
            ["--dim 'Max(1, s)/x=N'"],
        ),
        (
            "no loss",
            layer(rows="batch", outputs={"y": (F32, ["batch", 4])}),
            [],
            1,
            ["no output is a scalar loss"],
        ),
        (
            "float64",
            layer(
                mean("y"), dtype=F64, rows="batch", weight=doubles("m.weight", [4, 4], [0.5] * 16)
            ),
            [],
            1,
            ["'m.weight' is float64"],
        ),
        (
            "an unknown operator",
            layer(wire.node("NoSuchOp", ["y"], "z"), mean("z"), rows="batch"),
            [],
            1,
            ["NoSuchOp"],
        ),
    ):
        path = save(bench, data)
        taken, _ = compile_of(bench, path, options)
        done = bench.ckc("inspect", path, *options, "--json", bench.path("report.json"))
        page = bench.ckc("inspect", path, *options)
        bench.check(not taken, f"unbound, {what}: ckc takes it")
        bench.check(
            done.returncode == page.returncode == status,
            f"unbound, {what}: inspect ends with {done.returncode}: {done.stderr}",
        )
        last = page.stderr if status else page.stdout.rstrip().split("\n")[-1]
        bench.check(
            all(word in last for word in words), f"unbound, {what}: expected {words}: {last}"
        )
        report = ck.plan(bench.path("report.json"))
        bench.check(
            report.get("verdict") == ("refused" if status else "unbound")
            and report["trainable"] == (status == 0),
            f"unbound, {what}: {report.get('verdict')}",
        )


def bytes_of_a_step(bench):
    """Gradients and states are those of the flags: layers of 784-64, 64-32 and 32-10, all or the
    last two trained."""
    model = os.path.join(ck.MODELS, "mlp-mse.onnx")
    everything, rest = (
        4 * (784 * 64 + 64 + 64 * 32 + 32 + 32 * 10 + 10),
        4 * (64 * 32 + 32 + 32 * 10 + 10),
    )
    factored = 4 * (64 + 32 + 32 + 32 + 10 + 10)
    part = ["--freeze", "net.1.*"]
    for flags, rule, gradients, state in (
        ([], "adamw", everything, 2 * everything),
        (part, "adamw", rest, 2 * rest),
        ([*part, "--dim", "batch=8"], "adamw", rest, 2 * rest),
        ([*part, "--optimizer", "adafactor"], "adafactor", rest, factored),
        (["--optimizer", "sgd"], "sgd", everything, 0),
        (["--optimizer", "sgdm", "--dim", "batch=8"], "sgdm", everything, everything),
        (["--optimizer", "none"], "none", everything, 0),
        (["--optimizer", "lion", "--grad-accum", "2"], "lion", everything, everything),
        (["--forward-only"], None, None, None),
    ):
        report = bench.path("report.json")
        bench.must(bench.ckc("inspect", model, *flags, "--json", report), f"inspect {flags}")
        found = ck.plan(report)
        found = [found.get(key) for key in ("optimizer", "gradient_bytes", "optimizer_bytes")]
        bench.check(
            found == [rule, gradients, state],
            f"{flags}: expected {[rule, gradients, state]}, found {found}",
        )
        page = bench.ckc("inspect", model, *flags).stdout
        line = (
            f"gradients {gradients / 1024:.1f} KiB, optimizer ({rule}) {state / 1024:.1f} KiB"
            if rule
            else f"parameters {everything / 1024:.1f} KiB;"
        )
        bench.check(line in page, f"{flags}: no '{line}': {page[-300:]}")


def main():
    bench = ck.Bench()
    bytes_of_a_step(bench)
    for row in REFUSED:
        refused(bench, *row)
    for row in ACCEPTED:
        accepted(bench, *row)
    said_once(bench)
    unbound(bench)
    path = save(bench, PLAIN)
    bench.must(bench.ckc(path, "-o", bench.path("m.so")), "a library")
    said = bench.ckc(save(bench, DYNAMIC), "-o", bench.path("m.so"), "--shape", "x=0x4").stderr
    bench.check(said.count("\n") == 1, f"an extent refused is bound, too: {said}")
    bench.finish()


if __name__ == "__main__":
    main()
