#!/usr/bin/env python3
"""The command line: help, reports, and the exported model.

cli.py CKC CKRUN
"""

import json
import os
import shutil
import re
import stat
import struct
import subprocess
import sys

import ck
import wire

sys.path.insert(0, os.path.join(ck.HERE, "..", "runtime"))
import files


def wide(bench, n):
    """A node with very many operands costs no more than as many nodes."""
    path = bench.path("wide.onnx")
    nodes = [
        wire.node("MatMul", ["x", "m.weight"], "y"),
        wire.node("Sum", ["y"] * n, "s"),
        wire.node("ReduceMean", ["s"], "loss", keepdims=0),
    ]
    with open(path, "wb") as f:
        f.write(
            wire.graph(
                nodes, [wire.floats("m.weight", [4, 4], [1.0] * 16)], {"x": (1, [4, 4])}, ["loss"]
            )
        )
    try:
        bench.must(bench.ckc(path, "--plan-only", timeout=60), f"{n} operands")
    except subprocess.TimeoutExpired:
        bench.check(False, f"{n} operands: more than a minute")


def idle(bench):
    """A parameter, by the exporter's word, that the loss does not reach."""
    names = "m.weight", "m.idle"
    signature = "\n".join(f"p_{i}: PARAMETER target='{name}'" for i, name in enumerate(names))
    entry = wire.field(
        16,
        wire.field(1, b"pkg.torch.export.ExportedProgram.graph_signature")
        + wire.field(2, signature.encode()),
    )
    nodes = [
        wire.node("Mul", ["x", names[0]], "y"),
        wire.node("ReduceMean", ["y"], "loss", keepdims=0),
        wire.node("Floor", [names[1]], "f"),
        wire.node("ReduceMean", ["f"], "other", keepdims=0),
        entry,
    ]
    path = bench.path("idle.onnx")
    with open(path, "wb") as f:
        f.write(
            wire.graph(
                nodes,
                [wire.floats(n, [2], [0.5, 1.5]) for n in names],
                {"x": (1, [2])},
                ["loss", "other"],
            )
        )
    for flags, warned in (
        (["--loss", "loss"], True),
        (["--loss", "loss", "--freeze", "m.idle"], False),
        (["--forward-only"], False),
    ):
        done = bench.ckc(path, "--plan-only", *flags)
        bench.must(done, f"idle parameter {flags}")
        bench.check(
            ("'m.idle'" in done.stderr and "no gradient" in done.stderr) == warned,
            f"idle parameter {flags}: {done.stderr}",
        )


def frozen(bench):
    """Parameters that the file notes as frozen, as ckc.torch.export writes it; options overrule
    it."""
    names = "m.w", "m.fixed"
    signature = "\n".join(f"t: PARAMETER target='{name}'" for name in names)
    notes = b"".join(
        wire.field(14, wire.field(1, key) + wire.field(2, value))
        for key, value in (
            ("ckc.frozen", "m.fixed\nm.absent"),
            ("pkg.torch.export.ExportedProgram.graph_signature", signature),
        )
    )
    nodes = [
        wire.node("Mul", ["x", names[0]], "a"),
        wire.node("Mul", ["a", names[1]], "b"),
        wire.node("ReduceMean", ["b"], "loss", keepdims=0),
    ]
    path, report = bench.path("frozen.onnx"), bench.path("frozen.json")
    tables = [wire.floats(n, [2], [0.5, 1.5]) for n in names]
    with open(path, "wb") as f:
        f.write(wire.graph(nodes, tables, {"x": (1, [2])}, ["loss"]) + notes)
    for flags, expected in (
        ([], {"m.fixed": "frozen in the module, as the file notes"}),
        (["--train", "m.fixed"], {}),
        (["--param", "m.fixed"], {}),
        (["--freeze", "m.w", "--train", "m.f*"], {"m.w": "--freeze 'm.w'"}),
    ):
        bench.must(bench.ckc("inspect", path, *flags, "--json", report), f"inspect {flags}")
        found = ck.plan(report)["initializers"]
        bench.check(
            {i["name"]: i["reason"] for i in found if i["frozen"]} == expected,
            f"noted as frozen, {flags}: {found}",
        )


def wishes(bench):
    """Of --train and --freeze the last that matches a name counts, and who is right about each name
    is shown."""
    path, report = bench.path("wishes.onnx"), bench.path("wishes.json")
    names = "m.w", "m.low.A", "m.low.B"
    nodes = [
        wire.node("Mul", ["x", names[0]], "a"),
        wire.node("Mul", ["a", names[1]], "b"),
        wire.node("Mul", ["b", names[2]], "c"),
        wire.node("ReduceMean", ["c"], "loss", keepdims=0),
    ]
    with open(path, "wb") as f:
        f.write(
            wire.graph(
                nodes, [wire.floats(n, [2], [0.5, 1.5]) for n in names], {"x": (1, [2])}, ["loss"]
            )
        )
    for flags, frozen in (
        (["--freeze", "*", "--train", "*.A"], {"m.w": "--freeze '*'", "m.low.B": "--freeze '*'"}),
        (["--train", "*.A", "--freeze", "m.w"], {"m.w": "--freeze 'm.w'"}),
        (
            ["--freeze", "*", "--train", "m.low.*", "--freeze", "*.B"],
            {"m.w": "--freeze '*'", "m.low.B": "--freeze '*.B'"},
        ),
    ):
        done = bench.ckc("inspect", path, *flags, "--json", report)
        bench.must(done, f"inspect {flags}")
        found = {i["name"]: i for i in ck.plan(report)["initializers"]}
        bench.check(
            {n: i["reason"] for n, i in found.items() if i["frozen"]} == frozen, f"{flags}: {found}"
        )
        bench.check(
            all(
                i["reason"].startswith("--")
                for n, i in found.items()
                if n != "m.low.B" or n in frozen
            ),
            f"{flags}: reasons {found}",
        )
        done = bench.ckc(path, "--plan-only", *flags)
        bench.must(done, f"compile {flags}")
        bench.check("does nothing" not in done.stderr, f"{flags}: {done.stderr[:300]}")
    done = bench.ckc(path, "--plan-only", "--train", "*.A", "--freeze", "*")
    bench.check(
        done.returncode == 1
        and "any trained parameter; check --train '*.A' --freeze '*': the last option that matches"
        in done.stderr,
        f"all frozen: {done.returncode} {done.stderr[:300]}",
    )
    bench.check(
        "--train '*.A' does nothing" in done.stderr,
        f"an option undone by a later one: {done.stderr[:300]}",
    )
    done = bench.ckc(path, "--plan-only", "--freeze", "*", "--train", "nosuch.*")
    bench.check(
        done.returncode == 1 and "--train 'nosuch.*': no initializer has that name" in done.stderr,
        f"a name of nothing: {done.stderr[:300]}",
    )


def tensor_bytes(path, name):
    raw = ck.content(path)
    n = int.from_bytes(raw[:8], "little")
    begin, end = json.loads(raw[8 : 8 + n])[name]["data_offsets"]
    return raw[8 + n + begin : 8 + n + end]


def statistics(bench):
    """Statistics that an exporter merged with scales and biases are trained, saved and exported on
    their own; --freeze does not stop them."""
    stem = os.path.join(ck.MODELS, "cnn-bn-merged")
    names = [f"b{i}.running_{of}" for i in (1, 2, 3) for of in ("mean", "var")]
    so, saved, onnx, log, again = (
        bench.path(x) for x in ("bn.so", "bn.st", "bn.onnx", "bn.jsonl", "bn2.jsonl")
    )
    bench.must(
        bench.ckc(stem + ".onnx", "-o", so, "--batchnorm", "batch", "--freeze", "b?.*"),
        "merged statistics",
    )
    run = [so, "--inputs", stem + ".inputs.safetensors", "--steps"]
    bench.must(bench.ckrun(*run, 4, "--log", log), "four steps")
    if not bench.must(bench.ckrun(*run, 3, "--save", saved, "--export-onnx", onnx), "three steps"):
        return
    bench.must(
        bench.ckc(onnx, "-o", bench.path("bn2.so"), "--batchnorm", "batch", "--freeze", "b?.*"),
        "compile the export",
    )
    for name in names:
        now = tensor_bytes(saved, name)
        bench.check(
            now == tensor_bytes(bench.path("bn2.safetensors"), name),
            f"{name} is another in the export",
        )
        bench.check(
            now != tensor_bytes(bench.path("bn.safetensors"), name), f"{name} did not change"
        )
    bench.must(
        bench.ckrun(
            bench.path("bn2.so"),
            "--inputs",
            stem + ".inputs.safetensors",
            "--steps",
            1,
            "--log",
            again,
        ),
        "run the export",
    )
    bench.check(
        ck.losses(again)[0] == ck.losses(log)[3],
        f"export: loss {ck.losses(again)} after {ck.losses(log)}",
    )


def given_weights(bench):
    """A constant of the file is not read from --init, which says so; as a frozen parameter it
    is."""
    path, so, log = bench.path("given.onnx"), bench.path("given.so"), bench.path("given.log")
    nodes = [
        wire.node("Mul", ["x", "W"], "a"),
        wire.node("Add", ["a", "B"], "b"),
        wire.node("ReduceMean", ["b"], "loss", keepdims=0),
    ]
    with open(path, "wb") as f:
        f.write(
            wire.graph(
                nodes, [wire.floats(n, [2], [1, 3]) for n in "WB"], {"x": (1, [2])}, ["loss"]
            )
        )
    files.st_write(bench.path("given.in"), {"x": ("F32", [2], [2, 4])})
    files.st_write(bench.path("given.st"), {"W": ("F32", [2], [1, 1]), "B": ("F32", [2], [5, 5])})
    for flags, told, loss in (
        ([], True, (2 + 4) / 2 + 2),
        (["--param", "B"], False, (2 + 4) / 2 + 5),
    ):
        bench.must(
            bench.ckc(path, "-o", so, "--quiet", "--freeze", "*", "--train", "W", *flags),
            f"given weights {flags}: compile",
        )
        done = bench.ckrun(
            so,
            "--inputs",
            bench.path("given.in"),
            "--init",
            bench.path("given.st"),
            "--steps",
            1,
            "--log",
            log,
        )
        if bench.must(done, f"given weights {flags}"):
            bench.check(
                ck.losses(log) == [loss],
                f"given weights {flags}: {ck.losses(log)}, expected {loss}",
            )
            bench.check(
                (
                    "1 of 2 tensors is not used by the model: 'B'" in done.stderr
                    and "--param NAME" in done.stderr
                )
                == told,
                f"given weights {flags}: {done.stderr}",
            )
            bench.check(told or not done.stderr, f"given weights {flags}: {done.stderr}")
    # a tied weight has two names in PyTorch's file; constants are alike by chance
    for w, unread in ([1, 2], None), ([3, 3], "1 of 3 tensors is not used by the model: 'tied'"):
        files.st_write(
            bench.path("given.st"),
            {"W": ("F32", [2], w), "tied": ("F32", [2], w), "B": ("F32", [2], [5, 5])},
        )
        done = bench.ckrun(
            *(so, "--inputs", bench.path("given.in"), "--init", bench.path("given.st")),
            *("--steps", 1),
        )
        if bench.must(done, f"tied weights {w}"):
            bench.check(
                unread in done.stderr if unread else not done.stderr,
                f"tied weights {w}: {done.stderr}",
            )


def momentum(bench):
    """Without a word about it in the file, statistics keep 0.9 of themselves; variances are
    unbiased."""
    path, so, saved, batch = (
        bench.path(x) for x in ("mean.onnx", "mean.so", "mean.st", "mean.in.st")
    )
    names, x = ("b.weight", "b.bias", "b.running_mean", "b.running_var"), [1.0, 2.0, 4.0, 9.0]
    nodes = [
        wire.node("BatchNormalization", ["x", *names], "y"),
        wire.node("ReduceMean", ["y"], "loss", keepdims=0),
    ]
    with open(path, "wb") as f:
        f.write(
            wire.graph(
                nodes, [wire.floats(n, [1], [0.5]) for n in names], {"x": (1, [4, 1])}, ["loss"]
            )
        )
    header = json.dumps({"x": {"dtype": "F32", "shape": [4, 1], "data_offsets": [0, 16]}}).encode()
    with open(batch, "wb") as f:
        f.write(len(header).to_bytes(8, "little") + header + struct.pack("<4f", *x))
    done = bench.ckc(path, "-o", so, "--batchnorm", "batch")
    bench.must(done, "a momentum of ONNX")
    bench.check(
        "momentum 0.9 (0.1 in PyTorch's terms), the ONNX default where the file has none"
        in done.stderr,
        f"momentum: {done.stderr[:300]}",
    )
    if bench.must(bench.ckrun(so, "--inputs", batch, "--steps", 1, "--save", saved), "a step"):
        mean = sum(x) / 4
        for name, now in (
            ("b.running_mean", mean),
            ("b.running_var", sum((v - mean) ** 2 for v in x) / 3),
        ):
            got = struct.unpack("<f", tensor_bytes(saved, name))[0]
            bench.check(
                abs(got - (0.45 + 0.1 * now)) < 1e-6, f"{name} is {got}, not {0.45 + 0.1 * now}"
            )


def streams(bench):
    """Reports go through pipes, devices and links; whatever is at the name of a report stays what
    it is."""
    stem = os.path.join(ck.MODELS, "gpt2-ts14")
    plain, fifo, link, full = (bench.path(x) for x in ("plain.json", "fifo", "link", "full"))
    os.mkfifo(fifo)
    os.symlink("/dev/full", full)
    open(bench.path("target"), "w").close()
    os.symlink("target", link)
    bench.must(bench.ckc(stem + ".onnx", "--plan-only", "--json", plain), "--json to a file")
    bench.must(bench.ckc(stem + ".onnx", "--plan-only", "--json", link), "--json to a link")
    bench.check(
        os.path.islink(link) and os.path.getsize(bench.path("target")) > 1000,
        "a link did not stay one",
    )
    with (
        open(bench.path("through"), "wb") as through,
        subprocess.Popen(["cat", fifo], stdout=through) as reader,
    ):
        ok = bench.must(
            bench.ckc(stem + ".onnx", "--plan-only", "--json", fifo), "--json to a pipe"
        )
        if not bench.check(
            ok and stat.S_ISFIFO(os.stat(fifo).st_mode), "a pipe was replaced by a file"
        ):
            reader.kill()
    bench.check(os.path.getsize(bench.path("through")) > 1000, "nothing came through the pipe")
    done = bench.ckc(stem + ".onnx", "--plan-only", "--json", full)
    bench.check(
        done.returncode == 1 and "No space" in done.stderr,
        f"--json to a full device: {done.returncode} {done.stderr[:200]}",
    )
    bench.check(os.path.islink(full), "the name of a device was replaced")
    source = bench.path("source")
    for verb, flag, text in (
        ("plan", "--json", '{"nodes": [{"id": 0, "cost_ram": 1, "cost_cpu": 1}], "links": []}'),
        ("pack", "-o", "id,lower,upper,size\n0,1,2,3\n"),
        ("inspect", "--json", ck.content(stem + ".onnx")),
    ):
        with open(source, "wb") as f:
            f.write(text if isinstance(text, bytes) else text.encode())
        more = ["--budget", 1] if verb == "plan" else []
        bench.must(bench.ckc(verb, source, *more, flag, plain), f"{verb} to another file")
        before, done = ck.content(source), bench.ckc(verb, source, *more, flag, source)
        bench.check(
            done.returncode == 1 and "would be overwritten" in done.stderr,
            f"{verb} {flag} to what it reads: {done.stderr[:200]}",
        )
        bench.check(ck.content(source) == before, f"{verb} {flag} changed what it reads")
    done = bench.ckc(stem + ".onnx", "-o", fifo)
    bench.check(
        done.returncode == 1 and "not a regular file" in done.stderr,
        f"-o to a pipe: {done.returncode} {done.stderr[:200]}",
    )


def standard_output(bench):
    """A report called "-" goes to standard output; a library does not."""
    model = os.path.join(ck.MODELS, "gpt2-ts14.onnx")
    graph, rows = bench.path("graph.json"), bench.path("rows.csv")
    for path, text in (
        (graph, '{"nodes": [{"id": 0, "cost_ram": 1, "cost_cpu": 1}], "links": []}'),
        (rows, "id,lower,upper,size\n0,1,2,3\n"),
    ):
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
    for argv, first in (
        ([model, "--plan-only", "--json", "-"], "{"),
        (["inspect", model, "--json", "-"], "{"),
        (["plan", graph, "--budget", "1", "--quiet", "--json", "-"], "{"),
        (["pack", rows, "-o", "-"], "id,lower,upper,size,offset"),
        ([model, "--plan-only", "--curve-svg", "-"], ""),
    ):
        done = bench.ckc(*argv)
        bench.must(done, f"{argv} to standard output")
        bench.check(done.stdout.startswith(first), f"{argv}: {done.stdout[:60]}")
        if first == "{":
            json.loads(done.stdout)
        bench.check(
            "svg" not in argv[-2] or done.stdout.rstrip().endswith("</svg>"),
            f"{argv}: {done.stdout[-60:]}",
        )
        bench.check(
            not os.path.exists(bench.path("-")) and not os.path.exists("-"),
            f"{argv} left a file '-'",
        )
    for flags, said in (
        (["-o", "-"], "cannot write a library to standard output"),
        (["--plan-only", "--json", "-", "--curve-svg", "-"], "two outputs"),
    ):
        done = bench.ckc(model, *flags)
        bench.check(
            done.returncode == 1 and said in done.stderr,
            f"{flags}: {done.returncode} {done.stderr[:200]}",
        )
    for flags in (
        ["--plan-only", "--dump=fold", "--dump-dir", "-"],
        ["-o", bench.path("folder.so"), "--emit-c", "-"],
    ):
        done = bench.ckc(model, *flags)
        bench.check(
            done.returncode == 2 and "expected a folder" in done.stderr,
            f"{flags}: {done.returncode} {done.stderr[:200]}",
        )
        bench.check(not os.path.exists(bench.path("-")), f"{flags} left a folder '-'")
    for argv in (
        ["--help"],
        ["--version"],
        ["plan", "--help"],
        ["inspect", model],
        ["plan", graph, "--budget", "1"],
    ):
        for tool in bench.ckc_path, bench.ckrun_path:
            done = bench.run(["sh", "-c", '"$0" "$@" >/dev/full', tool, *argv])
            bench.check(
                done.returncode == 1 and "cannot write to standard output" in done.stderr,
                f"{tool} {argv} to a full device: {done.returncode} {done.stderr[:200]}",
            )
            if len(argv) > 1:
                break
    for argv in (
        [model, "--plan-only", "--json", "-"],
        [model, "--plan-only", "--curve-svg", "-"],
        ["plan", graph, "--budget", "1", "--json", "-"],
    ):
        done = bench.run(["sh", "-c", '"$0" "$@" >/dev/full', bench.ckc_path, *argv])
        bench.check(
            done.returncode == 1 and "No space" in done.stderr,
            f"{argv} to a full device: {done.returncode} {done.stderr[:200]}",
        )


def default_names(bench):
    """Without -o: a library of another model stays, one of other options is replaced with a note,
    and a dump compiles nothing."""
    model = os.path.join(ck.MODELS, "gpt2-ts14.onnx")
    for folder in "one", "two":
        os.makedirs(bench.path(folder))
        shutil.copy(model, bench.path(folder))
    one, two, so = "one/gpt2-ts14.onnx", "two/gpt2-ts14.onnx", bench.path("gpt2-ts14.so")
    done = bench.ckc(one, "--dump=plan")
    bench.check(done.returncode == 0 and not os.path.exists(so), f"--dump: {done.stderr[:200]}")
    for argv, status, said in (
        ([one], 0, ""),
        ([os.path.join("one", os.pardir, one)], 0, ""),
        ([one, "--optimizer", "sgd"], 0, "with other options\n"),
        ([one], 0, "with other options: --optimizer sgd\n"),
        ([two], 1, f"is of another model, '{bench.path(one)}'; to replace it: -o gpt2-ts14.so"),
        ([two, "-o", "gpt2-ts14.so"], 0, ""),
        ([two], 1, "does not say which model it is of; to replace it: -o gpt2-ts14.so"),
        ([one, "--dump=plan", "-o", "gpt2-ts14.so"], 0, ""),
    ):
        before = ck.content(so) if os.path.exists(so) else None
        done = bench.ckc(*argv)
        bench.check(
            done.returncode == status
            and (said in done.stderr if said else "replaced" not in done.stderr),
            f"{argv}: {done.returncode} {done.stderr[:300]}",
        )
        bench.check(not status or ck.content(so) == before, f"{argv}: the library has changed")
    # where the record is damaged, or a file of the two is missing
    weights = bench.path("gpt2-ts14.safetensors")
    for head in (
        b'{"__metadata__":{"ckc":"0",',
        b'{"__metadata__":{"ckc":"0","model":' + b"[" * 99,
    ):
        with open(weights, "wb") as f:
            f.write(len(head).to_bytes(8, "little") + head)
        done = bench.ckc(one)
        bench.check(
            done.returncode == 1 and "does not say" in done.stderr, f"{head}: {done.stderr[:300]}"
        )
    for name in weights, so:
        os.unlink(name)
        done = bench.ckc(one)
        bench.check(done.returncode == (name == weights), f"without {name}: {done.stderr[:300]}")
    os.rename(bench.path(one), bench.path("caf\udce9.onnx"))
    for _ in range(2):
        done = bench.ckc("caf\udce9.onnx")
        bench.check(not done.returncode, f"a name that is not UTF-8: {done.stderr[:300]}")


def doctor(bench):
    """What is there and what is not; nothing is left."""
    tmp = bench.path("doctor")
    os.mkdir(tmp)
    for flags, status, said in (
        (
            [],
            0,
            [
                "builds libraries",
                "trains; optimizer adamw",
                "\nzlib ",
                "\nPNG ",
                "\nJPEG ",
                "\noffload    /var/tmp: ",
                "models can be compiled and trained here",
            ],
        ),
        (["--cc", "no-such-cc"], 1, ["'no-such-cc' not found", "cannot be compiled and trained"]),
        (["--nvcc", "no-such-nvcc"], 0, ["nvcc       not found"]),
    ):
        done = bench.ckc("doctor", *flags, env={**os.environ, "TMPDIR": tmp})
        bench.check(
            done.returncode == status and all(s in done.stdout for s in said),
            f"doctor {flags}: {done.returncode} {done.stdout} {done.stderr}",
        )
    bench.check(not os.listdir(tmp), f"doctor leaves {os.listdir(tmp)}")
    lone = bench.path("lone")
    shutil.copy(bench.ckc_path, lone)  # ckrun is not beside it
    done = bench.run([lone, "doctor"], env={**os.environ, "PATH": "/usr/bin:/bin"})
    bench.check(
        done.returncode == 1 and "ckrun: not found" in done.stdout,
        f"doctor without ckrun: {done.stdout}",
    )


def usage(bench):
    """Wrong usage is a line that says what is missing or not known; what is no ONNX file is called
    what it is."""
    for argv, said in (
        ([], "missing model file"),
        (["inspect"], "missing model file"),
        (["plan", "g.json"], "missing --budget F"),
        (["pack", "b.csv"], "missing -o OUT.csv"),
        (
            ["inspct", "m.onnx"],
            "unknown verb: expected inspect, advise, plan, pack or doctor, found 'inspct'",
        ),
        (["m.onnx", "n.onnx"], "expected one model file; unexpected argument 'n.onnx'"),
        (["doctor", "m.onnx"], "unexpected file"),
    ):
        done = bench.ckc(*argv)
        bench.check(
            done.returncode == 2
            and said in done.stderr
            and "--help" in done.stderr
            and done.stderr.count("\n") == 1
            and not done.stdout,
            f"{argv}: {done.returncode} {done.stderr[:300]}",
        )
    for argv in (
        ["m.onnx", "--plan-time", "0"],
        ["plan", "g.json", "--budget", "1", "--plan-time=0"],
        ["inspect", "m.onnx", "--plan-time", "-1"],
        ["m.onnx", "--step-time", "0"],
    ):
        done = bench.ckc(*argv)
        bench.check(
            done.returncode == 2 and "expected a number of seconds > 0, found '" in done.stderr,
            f"{argv}: {done.returncode} {done.stderr[:300]}",
        )
    graph = '{"nodes": [{"id": 0, "cost_ram": 1, "cost_cpu": 1}],\n"links": []}'
    for more, line in ("\n \t\r\n", 0), (" x", 2), ("\n\n{}", 4), ("\n}", 3), ("\0", 2):
        with open(bench.path("more.json"), "w", encoding="utf-8") as f:
            f.write(graph + more)
        done = bench.ckc("plan", "more.json", "--budget", "1")
        said = (
            f"ckc: more.json: line {line}: expected the end of the file after the graph, found more text\n"
            if line
            else ""
        )
        bench.check(
            done.returncode == (line > 0) and done.stderr == said,
            f"{more!r} behind a graph: {done.returncode} {done.stderr[:300]}",
        )
    for verb in [], ["inspect"], ["plan"], ["pack"]:
        short, long = bench.ckc(*verb, "-h"), bench.ckc(*verb, "--help")
        bench.check(
            short.returncode == 0 and short.stdout == long.stdout and "usage: " in short.stdout,
            f"{verb} -h: {short.returncode} {short.stderr}",
        )
    for name, head, said in (
        ("m.pt", b"PK\x03\x04" + bytes(60), "PyTorch"),
        ("m.pth", b"\x80\x02\x8a\nl\xfc\x9cF\xf9" + bytes(60), "torch.save"),
        (
            "m.safetensors",
            (60).to_bytes(8, "little") + b'{"w":1}' + bytes(60),
            "weights without a graph",
        ),
        (
            "p.safetensors",
            (640).to_bytes(8, "little") + b'{"w":1}' + bytes(640),
            "weights without a graph",
        ),
        ("m.h5", b"\x89HDF\r\n\x1a\n" + bytes(60), "Keras"),
        ("m.gguf", b"GGUF" + bytes(60), "GGUF"),
        ("m.so", b"\x7fELF" + bytes(60), "a library"),
    ):
        with open(bench.path(name), "wb") as f:
            f.write(head)
        for argv in [name, "-o", "other.so"], ["inspect", name]:
            done = bench.ckc(*argv)
            bench.check(
                done.returncode == 1
                and "not an ONNX file" in done.stderr
                and said in done.stderr
                and "torch.onnx.export(" in done.stderr,
                f"{argv}: {done.returncode} {done.stderr}",
            )


def sizes(bench):
    """Units in any case; a unit without its B is a power of ten, the lesser one."""
    model, js = os.path.join(ck.MODELS, "gpt2-ts14.onnx"), bench.path("sizes.json")
    for text, n in (
        ("6G", 6 * 10**9),
        ("6gb", 6 * 10**9),
        ("6GB", 6 * 10**9),
        ("6gib", 6 << 30),
        ("6GiB", 6 << 30),
        ("1.5t", 15 * 10**11),
        ("900m", 9 * 10**8),
        ("900MiB", 900 << 20),
        ("5000000", 5000000),
        ("5000k", 5000000),
    ):
        if bench.must(
            bench.ckc(model, "--plan-only", "--quiet", "--memory-budget", text, "--json", js), text
        ):
            bench.check(
                ck.plan(js)["summary"]["budget_bytes"] == n,
                f"{text}: {ck.plan(js)['summary']['budget_bytes']}",
            )
    for text in "6Q", "G", "6 Gi B", "6GBB":
        done = bench.ckc(model, "--plan-only", "--memory-budget", text)
        bench.check(
            done.returncode == 2 and "24GB" in done.stderr,
            f"{text}: {done.returncode} {done.stderr}",
        )
    for text, line in (
        ("70", "try: --memory-budget 70% or --memory-budget 70MiB"),
        ("512", "try: --memory-budget 512MiB or --memory-budget 512B"),
    ):
        done = bench.ckc(model, "--plan-only", "--memory-budget", text)
        bench.check(
            done.returncode == 2 and done.stderr.endswith(line + "\n"),
            f"{text}: {done.returncode} {done.stderr}",
        )


def seconds(text):
    number, unit = text.split()
    return float(number) * {"s": 1, "ms": 1e-3, "us": 1e-6}[unit]


def rows_add_up(bench, table, total):
    """Times of the rows that are recomputed, and what is said to have no row, are the plan's."""
    time = r"([\d.]+ [mu]?s)"
    said = re.findall(rf"  recompute +{time}  ", table) + re.findall(
        rf"^not listed: {time}", table, re.M
    )
    found = sum(seconds(text) for text in said)
    bench.check(abs(found - total) <= 0.02 * total, f"rows take {found} s of {total} s: {table}")


def fixed_extents(bench):
    """Where the export fixed an extent, what would free it is said."""
    model = os.path.join(ck.MODELS, "gpt2-ts14.onnx")
    for flags, said in (
        (["--dim", "batch=64"], "no named dims"),
        (["--shape", "input_ids=64x12"], "axis 0 of input 'input_ids' is 2, not 64"),
    ):
        done = bench.ckc(model, "--plan-only", *flags)
        bench.check(
            done.returncode == 1
            and said in done.stderr
            and 'dynamic_shapes={"input_ids": {0: "batch"}}' in done.stderr
            and "dynamic_axes" in done.stderr,
            f"{flags}: {done.returncode} {done.stderr}",
        )


def added_loss(bench):
    """What --loss adds is told: the input, its type and extents; not by --quiet, and not where
    nothing is added."""
    dims = ["--dim", "batch=2", "--dim", "seq=12"]
    for name, flags, said in (
        ("gpt2-logits", [*dims, "--loss", "ce"], "--loss ce adds the input 'labels', i64[2,12]"),
        (
            "gpt2-logits",
            [*dims, "--loss", "mse:logits"],
            "--loss mse:logits adds the input 'target', f32[2,12,",
        ),
        ("gpt2-ts14", [], None),
    ):
        model = os.path.join(ck.MODELS, name + ".onnx")
        loud, quiet = (bench.ckc(model, "--plan-only", *flags, *more) for more in ([], ["--quiet"]))
        bench.must(loud, f"{name} {flags}")
        bench.check(
            said in loud.stderr if said else "adds" not in loud.stderr,
            f"{name} {flags}: {loud.stderr}",
        )
        bench.check(not quiet.stderr, f"{name} {flags} --quiet: {quiet.stderr}")


def probabilities(bench):
    """Cross entropy of what is a softmax or a sigmoid already is warned of; of logits, or their
    logarithms, it is not."""
    text = bench.path("probabilities.ck")
    for op in "softmax", "sigmoid", "log_softmax", "tanh":
        with open(text, "w", encoding="utf-8") as f:
            f.write(
                "graph @small {\ninput %x: f32[2,4]\nparam %w: f32[4]\n%y = mul %x, %w\n%p output = "
                + op
                + " %y\n}\n"
            )
        loud = bench.ckc(text, "--plan-only", "--loss", "ce")
        bench.must(loud, op)
        wanted = (
            f"--loss ce: output 'p' is a {op}, but ce applies softmax again"
            if op in ("softmax", "sigmoid")
            else ""
        )
        bench.check(
            wanted in loud.stderr and ("applies softmax again" in loud.stderr) == bool(wanted),
            f"{op}: {loud.stderr}",
        )


def without_effect(bench):
    """Options that do nothing beside the others say so, and what would make them work; those that
    do something do not."""
    model, text = os.path.join(ck.MODELS, "gpt2-ts14.onnx"), bench.path("small.ck")
    with open(text, "w", encoding="utf-8") as f:
        f.write(
            "graph @small {\ninput %x: f32[4]\nparam %w: f32[4] hex 0000803f0000803f0000803f0000803f\n%y = mul %x, %w\n"
            "%l: f32[] output = reduce_sum %y {axes=[0], keepdims=0, noop=0}\nloss %l\n}\n"
        )
    account, code = ["--dump=memory"], ["-o", bench.path("effect.so")]
    plan, budget = ["--plan-only"], ["--plan-only", "--memory-budget", "90%"]
    for option, idle, fix in (
        (["--sp"], plan + account, plan + account + ["--tp", 2]),
        (["--interleave", 2], plan + account, plan + account + ["--pp", 2]),
        (["--microbatches", 2], plan + account, plan + account + ["--pp", 2]),
        (["--schedule", "interleaved=2"], plan + account, plan + account + ["--pp", 2]),
        (["--step-time", 1], plan, plan + account),
        (["--dump-dir", bench.path("dumps")], plan + ["--dump=plan"], plan + ["--dump=fold"]),
        (["--emit-c", bench.path("c")], plan, code),
        (["--cc", "cc"], plan, code),
        (["--march", "native"], ["--passes=bind"], code),
        (["-o", bench.path("other.so")], plan, []),
        (["--optimizer", "sgd"], plan + ["--forward-only"], plan),
        (["--no-decay", "*"], plan + ["--optimizer", "none"], plan),
        (["--grad-accum", 2], plan + ["--forward-only"], plan),
        (["--recompute", "full"], plan + ["--forward-only"], plan),
        (["--update-in-backward", "on"], plan + ["--optimizer", "none"], plan),
        (["--dropout-mask", "store"], plan + ["--dropout", "off"], plan),
        (["--offload", "state"], plan + ["--forward-only"], plan),
        (["--offload", "state"], plan + ["--optimizer", "none"], plan),
        (["--offload", "state"], plan + ["--optimizer", "sgd"], plan + ["--optimizer", "sgdm"]),
        (["--offload", "state"], plan + ["--optimizer", "adafactor"], plan),
        (["--offload", "off"], plan + ["--forward-only"], plan + ["--optimizer", "sgd"]),
        (["--host-memory", "1GiB"], plan, plan + ["--offload", "state"]),
        (["--host-memory", "1GiB"], plan + ["--offload", "off"], plan + ["--offload", "state"]),
        (["--gap", 1], plan, budget),
        (["--plan-time", 9], budget + ["--recompute", "none", "--memory-budget", "100%"], budget),
    ):
        done, fine = bench.ckc(model, *option, *idle), bench.ckc(model, *option, *fix)
        warning = f"{option[0]} does nothing"
        bench.must(done, f"{option} {idle}")
        bench.check(warning in done.stderr, f"{option} {idle}: {done.stderr[:200]}")
        bench.must(fine, f"{option} {fix}")
        bench.check(warning not in fine.stderr, f"{option} {fix}: {fine.stderr[:200]}")
    for names, said in ("zz*", 1), ("*", 0):
        done = bench.ckc(model, "--memory-budget", "90%", *plan, "--no-decay", names)
        bench.check(
            done.returncode == 0
            and done.stderr.count(f"--no-decay '{names}' matches no trained parameter") == said,
            f"{names}: {done.stderr[:200]}",
        )
    done = bench.ckc(text, "--plan-only", "--train", "w")
    bench.check("--train does nothing" in done.stderr, f"--train of a text: {done.stderr[:200]}")
    done = bench.ckc(model, "--passes=bind", "--dump=memory")
    bench.check(
        done.returncode == 1 and "--dump=memory: there is no plan" in done.stderr,
        f"--dump=memory of a part: {done.stderr[:200]}",
    )
    bench.must(bench.ckc(model, "--optimizer", "sgd", *code), "sgd")
    run = [
        code[-1],
        "--inputs",
        os.path.join(ck.MODELS, "gpt2-ts14.inputs.safetensors"),
        "--steps",
        1,
    ]
    for option, fix in (["--beta1", 0.5], None), (["--min-lr", 1e-4], ["--schedule", "linear"]):
        done = bench.ckrun(*run, *option)
        bench.check(
            done.returncode == 0 and f"{option[0]} has no effect" in done.stderr,
            f"{option}: {done.stderr[:200]}",
        )
        if fix:
            done = bench.ckrun(*run, *option, *fix)
            bench.check(
                done.returncode == 0 and "has no effect" not in done.stderr,
                f"{option} {fix}: {done.stderr[:200]}",
            )
    done = bench.ckrun(*run, "--log", "-")
    bench.check(
        done.returncode == 2 and "/dev/stdout" in done.stderr,
        f"--log -: {done.returncode} {done.stderr[:200]}",
    )


def given_twice(bench):
    """A second file or report does not replace the first in silence; the last of two settings
    counts."""
    model = os.path.join(ck.MODELS, "gpt2-ts14.onnx")
    for option in (
        "--loss",
        "--dump",
        "--dump-dir",
        "--json",
        "--explain",
        "--passes",
        "--stop-after",
        "--curve-svg",
        "--emit-c",
    ):
        done = bench.ckc(model, option, "plan", option, "memory")
        bench.check(
            done.returncode == 2
            and f"{option} is given twice, as 'plan' and as 'memory'" in done.stderr,
            f"{option} twice: {done.stderr[:200]}",
        )
    done = bench.ckc(model, "-o", "a.so", "-ob.so")
    bench.check(
        done.returncode == 2 and "-o is given twice; unexpected second file 'b.so'" in done.stderr,
        f"-o twice: {done.stderr[:200]}",
    )
    done = bench.ckc(model, "--const", "x=a.npy", "--const", "x=b.npy")
    bench.check(
        done.returncode == 2 and "expected one FILE for each INPUT, found 'x=b.npy'" in done.stderr,
        f"--const twice: {done.stderr[:200]}",
    )
    bench.must(
        bench.ckc(
            model,
            "--plan-only",
            "--dump=plan",
            "--dump=plan",
            "--march",
            "none",
            "--march",
            "native",
            "--gap",
            5,
            "--gap",
            1,
        ),
        "settings",
    )


def traced(bench):
    """--trace tells of the arena what the plan does, step by step."""
    stem = os.path.join(ck.MODELS, "bert-cls-dynamo")
    so, js, trace = bench.path("traced.so"), bench.path("traced.json"), bench.path("trace.json")
    if not (
        bench.must(
            bench.ckc(stem + ".onnx", "-o", so, "--json", js, "--memory-budget", "85%"),
            "compile for a trace",
        )
        and bench.must(
            bench.ckrun(
                so, "--inputs", stem + ".inputs.safetensors", "--steps", 1, "--trace", trace
            ),
            "a trace",
        )
    ):
        return
    plan, events = ck.plan(js), ck.plan(trace)["traceEvents"]
    tensors = plan["tensors"]
    life = [[t["first"], t["last"]] for t in tensors]
    for t, (first, last) in zip(tensors, list(life)):
        if t["alias_of"] is not None:
            owner = life[t["alias_of"]]
            owner[:] = min(owner[0], first), max(owner[1], last)
    steps = [e["args"]["index"] for e in events if e["ph"] == "X"]
    found = [e["args"]["arena in use"] for e in events if e["ph"] == "C"]
    planned = [
        sum(
            t["bytes"]
            for t, (first, last) in zip(tensors, life)
            if t["alias_of"] is None and not t["resident"] and first <= s <= last
        )
        for s in steps
    ]
    bench.check(found == planned, f"the trace says {found}, the plan {planned}")
    bench.check(
        max(found) == plan["summary"]["live_bound_bytes"],
        f"a most of {max(found)}, the plan says {plan['summary']['live_bound_bytes']}",
    )


def quiet(bench):
    """--quiet: nothing on either stream, whatever the verb; what is said without it is no error."""
    mlp, tail = os.path.join(ck.MODELS, "mlp-mse.onnx"), ["--dim", "batch=8"]
    graph, rows = bench.path("graph.json"), bench.path("rows.csv")
    with open(graph, "w") as f:
        json.dump(
            {
                "nodes": [
                    {"id": i, "cost_ram": 1, "cost_cpu": 1, "backward": i > 8} for i in range(18)
                ],
                "links": [{"source": a, "target": b} for a in range(9) for b in (a + 1, 17 - a)],
            },
            f,
        )
    with open(rows, "w") as f:
        f.write("id,lower,upper,size\na,0,4,8\nb,2,6,8\n")
    for argv in (
        [mlp, *tail, "-o", bench.path("q.so")],
        [mlp, *tail, "--plan-only", "--memory-budget", "100%"],
        [mlp, *tail, "--plan-only", "--stats"],
        [mlp, *tail, "--plan-only", "--batchnorm", "running"],
        [os.path.join(ck.MODELS, "gpt2-ts14.onnx"), "--plan-only", "--tp", 3],
        ["plan", graph, "--budget", "0.8"],
        ["plan", graph, "--budget", "0.8", "--place", "--stats", "--json", bench.path("q.json")],
        ["pack", rows, "-o", bench.path("q.csv")],
    ):
        loud, done = bench.ckc(*argv), bench.ckc(*argv, "--quiet")
        bench.check(
            loud.returncode == done.returncode == 0 and loud.stdout + loud.stderr,
            f"{argv}: {loud.returncode}: {loud.stderr}",
        )
        bench.check(
            not done.stdout + done.stderr, f"{argv} --quiet says: {done.stdout}{done.stderr}"
        )


def products_library(bench):
    """Small products are ckc's own, larger ones oneDNN's if it is there; --blas is obeyed."""
    for n, at_will in (64, "own"), (512, "onednn"):
        path, so = bench.path("p.ck"), bench.path("p.so")
        with open(path, "w") as f:
            f.write(
                f"graph @p {{\ninput %x: f32[4,{n}]\nparam %w: f32[{n},{n}] = splat 0.01\n"
                "%y output = matmul %x, %w\n}\n"
            )
        bench.must(bench.ckc(path, "-o", so, "--loss", "mse:y"), f"a product of {n}")
        data = {k: ("F32", [4, n], [1.0] * 4 * n) for k in ("x", "target")}
        files.st_write(bench.path("p.in"), data)
        for wish in (), ("--blas", "own"), ("--blas", "onednn"):
            done = bench.ckrun(so, "--inputs", "p.in", "--steps", 1, *wish)
            if "cannot be loaded" in done.stderr:
                print("products_library: no oneDNN")
                return
            used = wish[1] if wish else at_will
            bench.check(
                f"products by {used}" in done.stdout, f"{n}, {wish}: {done.stdout} {done.stderr}"
            )


def main():
    bench = ck.Bench()
    products_library(bench)
    idle(bench)
    quiet(bench)
    given_twice(bench)
    frozen(bench)
    wishes(bench)
    statistics(bench)
    given_weights(bench)
    momentum(bench)
    streams(bench)
    standard_output(bench)
    default_names(bench)
    usage(bench)
    doctor(bench)
    traced(bench)
    sizes(bench)
    fixed_extents(bench)
    added_loss(bench)
    probabilities(bench)
    without_effect(bench)
    wide(bench, 30000)
    stem = os.path.join(ck.MODELS, "gpt2-ts14")
    for argv in (["--help"], ["--version"], ["inspect", "--help"]):
        done = bench.ckc(*argv)
        bench.check(done.returncode == 0 and done.stdout, f"ckc {argv}")
    bench.check(bench.ckrun("--help").returncode == 0, "ckrun --help")

    done = bench.ckc("inspect", stem + ".onnx")
    bench.must(done, "inspect")
    for word in (
        "opset",
        "parameter",
        "wte",
        "LayerNormalization" if "LayerNormalization" in done.stdout else "ReduceMean",
    ):
        bench.check(word in done.stdout, f"inspect says nothing of {word}")

    so, js = bench.path("a.so"), bench.path("a.json")
    done = bench.ckc(
        stem + ".onnx",
        "-o",
        so,
        "--json",
        js,
        "--memory-budget",
        "90%",
        "--dump=plan",
        "--dump-dir",
        bench.path("d"),
    )
    bench.must(done, "compile with reports")
    for word in ("recompute", "none", "full", "selective"):
        bench.check(word in done.stdout, f"--dump=plan says nothing of {word}")
    rows_add_up(bench, done.stdout, ck.plan(js)["summary"]["recompute_seconds"])
    done = bench.ckc(stem + ".onnx", "--plan-only", "--dump=memory")
    bench.check(
        done.returncode == 0 and "layer" in done.stdout.lower(),
        f"--dump=memory: {done.stdout[:200]}{done.stderr[:200]}",
    )

    twice = bench.path("b.so"), bench.path("b.json")
    bench.must(
        bench.ckc(stem + ".onnx", "-o", twice[0], "--json", twice[1], "--memory-budget", "90%"),
        "compile again",
    )
    a, b = (re.sub(r'"flags": ?\[[^]]*\]', "", ck.content(x).decode()) for x in (js, twice[1]))
    bench.check(a == b, "the same input gives another plan")
    bench.check(
        ck.content(bench.path("a.safetensors")) == ck.content(bench.path("b.safetensors")),
        "other weights",
    )

    names = [t["name"] for t in ck.plan(js)["tensors"] if t["decision"]]
    done = bench.ckc(stem + ".onnx", "--plan-only", "--explain", names[len(names) // 2])
    bench.check(done.returncode == 0 and done.stdout, f"--explain: {done.stderr[:200]}")
    done = bench.ckc(stem + ".onnx", "--plan-only", "--explain", "nosuch")
    bench.check(done.returncode == 1, "--explain of nothing")

    emit = bench.path("emit")
    bench.must(bench.ckc(stem + ".onnx", "-o", bench.path("c.so"), "--emit-c", emit), "--emit-c")
    sources = [f for f in os.listdir(emit) if f.endswith(".c")] if os.path.isdir(emit) else []
    bench.check(sources, "--emit-c left no source")
    for f in sources:
        done = bench.run(
            [
                "sh",
                "-c",
                f"cd '{emit}' && cc -std=c11 -Wall -Wextra -Werror -fopenmp -O1 -march=native -fPIC -c '{f}' -o x.o",
            ]
        )
        bench.must(done, f"emitted {f}")

    # the exported model, compiled anew, starts where training ended
    inputs, onnx, log = (
        stem + ".inputs.safetensors",
        bench.path("trained.onnx"),
        bench.path("l.jsonl"),
    )
    bench.must(bench.ckrun(so, "--inputs", inputs, "--steps", 4, "--log", log), "four steps")
    bench.must(bench.ckrun(so, "--inputs", inputs, "--steps", 3, "--export-onnx", onnx), "export")
    bench.must(bench.ckc(onnx, "-o", bench.path("t.so")), "compile the export")
    again = bench.path("again.jsonl")
    bench.must(
        bench.ckrun(bench.path("t.so"), "--inputs", inputs, "--steps", 1, "--log", again),
        "run the export",
    )
    bench.check(
        ck.losses(again)[0] == ck.losses(log)[3],
        f"export: loss {ck.losses(again)} after {ck.losses(log)}",
    )
    bench.finish()


if __name__ == "__main__":
    main()
