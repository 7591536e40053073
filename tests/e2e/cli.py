#!/usr/bin/env python3
"""The command line: help, reports, and the exported model.

    cli.py CKC CKRUN
"""
import os
import re
import stat
import subprocess

import ck
import wire


def wide(bench, n):
    """A node with very many operands costs no more than as many nodes."""
    path = bench.path("wide.onnx")
    nodes = [wire.node("MatMul", ["x", "m.weight"], "y"), wire.node("Sum", ["y"] * n, "s"), wire.node("ReduceMean", ["s"], "loss", keepdims=0)]
    with open(path, "wb") as f:
        f.write(wire.graph(nodes, [wire.floats("m.weight", [4, 4], [1.0] * 16)], {"x": (1, [4, 4])}, ["loss"]))
    try:
        bench.must(bench.ckc(path, "--plan-only", timeout=60), f"{n} operands")
    except subprocess.TimeoutExpired:
        bench.check(False, f"{n} operands: more than a minute")


def idle(bench):
    """A parameter, by the exporter's word, that the loss does not reach."""
    names = "m.weight", "m.idle"
    signature = "\n".join(f"p_{i}: PARAMETER target='{name}'" for i, name in enumerate(names))
    entry = wire.field(16, wire.field(1, b"pkg.torch.export.ExportedProgram.graph_signature") + wire.field(2, signature.encode()))
    nodes = [wire.node("Mul", ["x", names[0]], "y"), wire.node("ReduceMean", ["y"], "loss", keepdims=0), wire.node("Floor", [names[1]], "f"),
             wire.node("ReduceMean", ["f"], "other", keepdims=0), entry]
    path = bench.path("idle.onnx")
    with open(path, "wb") as f:
        f.write(wire.graph(nodes, [wire.floats(n, [2], [0.5, 1.5]) for n in names], {"x": (1, [2])}, ["loss", "other"]))
    for flags, warned in (["--loss", "loss"], True), (["--loss", "loss", "--freeze", "m.idle"], False), (["--forward-only"], False):
        done = bench.ckc(path, "--plan-only", *flags)
        bench.must(done, f"idle parameter {flags}")
        bench.check(("'m.idle'" in done.stderr and "no gradient" in done.stderr) == warned, f"idle parameter {flags}: {done.stderr}")


def streams(bench):
    """Reports go through pipes, devices and links; whatever is at the name of a report stays what it is."""
    stem = os.path.join(ck.MODELS, "gpt2-ts14")
    plain, fifo, link, full = (bench.path(x) for x in ("plain.json", "fifo", "link", "full"))
    os.mkfifo(fifo)
    os.symlink("/dev/full", full)
    open(bench.path("target"), "w").close()
    os.symlink("target", link)
    bench.must(bench.ckc(stem + ".onnx", "--plan-only", "--json", plain), "--json to a file")
    bench.must(bench.ckc(stem + ".onnx", "--plan-only", "--json", link), "--json to a link")
    bench.check(os.path.islink(link) and os.path.getsize(bench.path("target")) > 1000, "a link did not stay one")
    with open(bench.path("through"), "wb") as through, subprocess.Popen(["cat", fifo], stdout=through) as reader:
        ok = bench.must(bench.ckc(stem + ".onnx", "--plan-only", "--json", fifo), "--json to a pipe")
        if not bench.check(ok and stat.S_ISFIFO(os.stat(fifo).st_mode), "a pipe was replaced by a file"):
            reader.kill()
    bench.check(os.path.getsize(bench.path("through")) > 1000, "nothing came through the pipe")
    done = bench.ckc(stem + ".onnx", "--plan-only", "--json", full)
    bench.check(done.returncode == 1 and "No space" in done.stderr, f"--json to a full device: {done.returncode} {done.stderr[:200]}")
    bench.check(os.path.islink(full), "the name of a device was replaced")
    source = bench.path("source")
    for verb, flag, text in (("plan", "--json", '{"nodes": [{"id": 0, "cost_ram": 1, "cost_cpu": 1}], "links": []}'),
                             ("pack", "-o", "id,lower,upper,size\n0,1,2,3\n"), ("inspect", "--json", ck.content(stem + ".onnx"))):
        with open(source, "wb") as f:
            f.write(text if isinstance(text, bytes) else text.encode())
        more = ["--budget", 1] if verb == "plan" else []
        bench.must(bench.ckc(verb, source, *more, flag, plain), f"{verb} to another file")
        before, done = ck.content(source), bench.ckc(verb, source, *more, flag, source)
        bench.check(done.returncode == 1 and "would be overwritten" in done.stderr, f"{verb} {flag} to what it reads: {done.stderr[:200]}")
        bench.check(ck.content(source) == before, f"{verb} {flag} changed what it reads")
    done = bench.ckc(stem + ".onnx", "-o", fifo)
    bench.check(done.returncode == 1 and "not a regular file" in done.stderr, f"-o to a pipe: {done.returncode} {done.stderr[:200]}")


def main():
    bench = ck.Bench()
    idle(bench)
    streams(bench)
    wide(bench, 30000)
    stem = os.path.join(ck.MODELS, "gpt2-ts14")
    for argv in (["--help"], ["--version"], ["inspect", "--help"]):
        done = bench.ckc(*argv)
        bench.check(done.returncode == 0 and done.stdout, f"ckc {argv}")
    bench.check(bench.ckrun("--help").returncode == 0, "ckrun --help")

    done = bench.ckc("inspect", stem + ".onnx")
    bench.must(done, "inspect")
    for word in ("opset", "parameter", "wte", "LayerNormalization" if "LayerNormalization" in done.stdout else "ReduceMean"):
        bench.check(word in done.stdout, f"inspect says nothing of {word}")

    so, js = bench.path("a.so"), bench.path("a.json")
    done = bench.ckc(stem + ".onnx", "-o", so, "--json", js, "--memory-budget", "90%", "--dump=plan", "--dump-dir", bench.path("d"))
    bench.must(done, "compile with reports")
    for word in ("recompute", "none", "full", "selective"):
        bench.check(word in done.stdout, f"--dump=plan says nothing of {word}")
    done = bench.ckc(stem + ".onnx", "--plan-only", "--dump=memory")
    bench.check(done.returncode == 0 and "layer" in done.stdout.lower(), f"--dump=memory: {done.stdout[:200]}{done.stderr[:200]}")

    twice = bench.path("b.so"), bench.path("b.json")
    bench.must(bench.ckc(stem + ".onnx", "-o", twice[0], "--json", twice[1], "--memory-budget", "90%"), "compile again")
    a, b = (re.sub(r'"flags": ?\[[^]]*\]', "", ck.content(x).decode()) for x in (js, twice[1]))
    bench.check(a == b, "the same input gives another plan")
    bench.check(ck.content(bench.path("a.safetensors")) == ck.content(bench.path("b.safetensors")), "other weights")

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
        done = bench.run(["sh", "-c", f"cd '{emit}' && cc -std=c11 -Wall -Wextra -Werror -fopenmp -O1 -march=native -fPIC -c '{f}' -o x.o"])
        bench.must(done, f"emitted {f}")

    # the exported model, compiled anew, starts where training ended
    inputs, onnx, log = stem + ".inputs.safetensors", bench.path("trained.onnx"), bench.path("l.jsonl")
    bench.must(bench.ckrun(so, "--inputs", inputs, "--steps", 4, "--log", log), "four steps")
    bench.must(bench.ckrun(so, "--inputs", inputs, "--steps", 3, "--export-onnx", onnx), "export")
    bench.must(bench.ckc(onnx, "-o", bench.path("t.so")), "compile the export")
    again = bench.path("again.jsonl")
    bench.must(bench.ckrun(bench.path("t.so"), "--inputs", inputs, "--steps", 1, "--log", again), "run the export")
    bench.check(ck.losses(again)[0] == ck.losses(log)[3], f"export: loss {ck.losses(again)} after {ck.losses(log)}")
    bench.finish()


if __name__ == "__main__":
    main()
