#!/usr/bin/env python3
"""GPT-2 124M, one training step: ckc beside its matrix products alone and beside PyTorch, in one
run.

    gpt2.py --model gpt2.onnx [--build build] [--python PYTHON-WITH-TORCH] [--batch 4] [--seq 256]
    [--budgets 100,90,...]
            [--out results/NAME.md]

The model is a GPT-2 export with symbolic `batch` and `seq` and its loss inside
(samples/chargpt/export.py shows the recipe). A budget of PCT % of the activations is
keep-everything's peak less (100 - PCT) % of the bytes that it saves for backward (gradients and
scratch, which share the arena, cannot be recomputed).  Every run is a process of its own; rounds
are interleaved, figures are medians.  OPENBLAS_CORETYPE and OPENBLAS_L2_SIZE are unset for every
side.
"""

import argparse
import datetime
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import steps

HERE = os.path.dirname(os.path.abspath(__file__))


def products(o):
    """The step's products as lines for bench_gemm: forward, and the two of backward, for every one
    of them."""
    rows, w, f, t = o.batch * o.seq, o.width, 4 * o.width, o.seq
    lines = []
    for n, k in ((3 * w, w), (w, w), (f, w), (w, f)):
        lines += [
            (o.layers, 0, 0, rows, n, k, 1),
            (o.layers, 0, 1, rows, k, n, 1),
            (o.layers, 1, 0, k, n, rows, 1),
        ]
    lines += [
        (1, 0, 1, rows, o.vocab, w, 1),
        (1, 0, 0, rows, w, o.vocab, 1),
        (1, 1, 0, o.vocab, w, rows, 1),
    ]
    d, bh = w // o.heads, o.batch * o.heads
    lines += [
        (o.layers, 0, 1, t, t, d, bh),
        (o.layers, 0, 0, t, d, t, bh),  # scores, output
        (o.layers, 0, 1, t, t, d, bh),
        (o.layers, 1, 0, t, d, t, bh),  # dP, dV
        (o.layers, 0, 0, t, d, t, bh),
        (o.layers, 1, 0, t, d, t, bh),
    ]  # dQ, dK
    return "".join(" ".join(map(str, line)) + "\n" for line in lines)


def environment():
    e = dict(os.environ)
    for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
        e.pop(name, None)
    return e


def call(argv, **kw):
    done = subprocess.run(
        [str(a) for a in argv],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
        **kw,
    )
    if done.returncode:
        sys.exit(f"{' '.join(map(str, argv))}: status {done.returncode}\n{done.stderr[-2000:]}")
    return done


def timed(argv):
    start = time.monotonic()
    done = call(argv)
    return time.monotonic() - start, done


def rss_of(argv):
    """Peak resident bytes of a process of its own."""
    pid = os.fork()
    if pid == 0:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        os.execve(argv[0], [str(a) for a in argv], environment())
    _, _, usage = os.wait4(pid, 0)
    return usage.ru_maxrss * 1024


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--model", required=True)
    p.add_argument("--build", default=os.path.join(HERE, "..", "..", "build"))
    p.add_argument(
        "--python", help="interpreter with torch and transformers; without it PyTorch is left out"
    )
    for name, default in (
        ("layers", 12),
        ("width", 768),
        ("heads", 12),
        ("vocab", 50257),
        ("batch", 4),
        ("seq", 256),
        ("steps", 6),
        ("rounds", 3),
    ):
        p.add_argument("--" + name, type=int, default=default)
    p.add_argument(
        "--fixed", action="store_true", help="the export has those extents, not symbolic ones"
    )
    p.add_argument("--budgets", default="100,75,50,35,25")
    p.add_argument(
        "--ranks", default="", help="rank counts whose steps are timed too, cut by --tp T --sp: 2,4"
    )
    p.add_argument("--out")
    o = p.parse_args()
    ckc, ckrun, gemm = (os.path.join(o.build, x) for x in ("ckc", "ckrun", "bench/bench_gemm"))
    work = tempfile.mkdtemp(prefix="ckc-bench-")
    tokens = os.path.join(work, "tokens")
    with open(tokens, "wb") as f:
        import array
        import random

        rng = random.Random(0)
        f.write(array.array("H", (rng.randrange(o.vocab) for _ in range(200000))).tobytes())

    def build(tag, *flags):
        so, js = os.path.join(work, tag + ".so"), os.path.join(work, tag + ".json")
        dims = () if o.fixed else ("--dim", f"batch={o.batch}", "--dim", f"seq={o.seq}")
        seconds, _ = timed([ckc, o.model, "-o", so, "--json", js, *dims, "--quiet", *flags])
        with open(js) as f:
            return so, seconds, json.load(f)["summary"]

    full = build("all")
    variants = [("keep everything", *full)]
    for pct in (int(x) for x in o.budgets.split(",") if x and int(x) < 100):
        budget = full[2]["peak_bytes"] - full[2]["saved_bytes"] * (100 - pct) // 100
        variants.append(
            (f"{pct} % of the activations", *build(f"b{pct}", "--memory-budget", budget))
        )

    for t in o.ranks.split(",") if o.ranks else ():
        variants.append(
            (
                f"keep everything, {t} ranks in lockstep, peak of one",
                *build(f"t{t}", "--tp", t, "--sp"),
            )
        )

    def step(so):
        log = os.path.join(work, "log.jsonl")
        argv = [
            ckrun,
            so,
            "--data",
            tokens,
            "--tokens",
            "u16",
            "--steps",
            o.steps,
            "--log",
            log,
            "--quiet",
        ]
        rss = rss_of(argv)
        with open(log) as f:
            rows = [json.loads(line) for line in f if '"loss"' in line]
        return statistics.median(r["seconds"] for r in rows[1:]), rows[-1]["peak_bytes"], rss

    floors, times, peaks, rss = [], {v[0]: [] for v in variants}, {}, {}
    torch = {"eager": [], "compiled": []}
    for r in range(o.rounds):
        floors.append(json.loads(call([gemm], input=products(o)).stdout))
        for name, so, _, _ in variants:
            seconds, peak, resident = step(so)
            times[name].append(seconds)
            peaks[name], rss[name] = peak, max(resident, rss.get(name, 0))
        if o.python and r < 1:
            for what, more in (("eager", []), ("compiled", ["--compile"])):
                done = call(
                    [
                        o.python,
                        os.path.join(HERE, "torch_peer.py"),
                        "--batch",
                        o.batch,
                        "--seq",
                        o.seq,
                        "--layers",
                        o.layers,
                        "--width",
                        o.width,
                        "--heads",
                        o.heads,
                        "--vocab",
                        o.vocab,
                        "--steps",
                        4,
                        *more,
                    ]
                )
                torch[what].append(json.loads(done.stdout.splitlines()[-1]))
    floor = statistics.median(f["seconds"] for f in floors)
    lines = [
        f"# GPT-2, {o.layers} layers of {o.width}, batch {o.batch} x {o.seq}, float32, {datetime.date.today()}",
        "",
        f"{steps.processor()}, {os.cpu_count()} cores; products alone: {floor:.3f} s "
        f"({statistics.median(f['gflops'] for f in floors):.0f} GF/s, {floors[0]['library']}).",
        "",
        "| what | compile s | step s | over products alone | peak MiB | process MiB | recompute predicted |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, _, seconds, s in variants:
        t = statistics.median(times[name])
        lines.append(
            f"| ckc, {name} | {seconds:.1f} | {t:.3f} | {t / floor:.2f} | {peaks[name] / 2**20:.0f} | {rss[name] / 2**20:.0f} | {100 * s['overhead']:.2f} % |"
        )
    for what, rows in torch.items():
        if rows:
            t = statistics.median(r["step_seconds"] for r in rows)
            lines.append(
                f"| PyTorch {rows[0]['torch']} {what} ({rows[0]['blas']}) | {rows[0]['first_seconds']:.1f} | {t:.3f} | {t / floor:.2f} | | "
                f"{max(r['peak_bytes'] for r in rows) / 2**20:.0f} | |"
            )
    text = "\n".join(lines) + "\n"
    print(text)
    if o.out:
        with open(o.out, "w") as f:
            f.write(text)
    subprocess.run(["rm", "-rf", work])


if __name__ == "__main__":
    main()
