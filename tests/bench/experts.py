#!/usr/bin/env python3
"""A mixture of experts beside one MLP that does the same products, and beside PyTorch.

    experts.py [--build build] [--tokens 1024] [--width 768] [--hidden 3072] [--experts 8]
    [--choices 2] [--dtypes f32,bf16] [--steps 6] [--threads N] [--peers PYTHON] [--rounds 3]
    [--out results/experts.md]

Both are one layer with GELU and a mean of squares for a loss; the MLP has a row for each token and
choice.  Seconds are the least of --steps for all products together, forward and backward, from
`ckrun --profile`; peak bytes are the plan's.  A gate of random weights chooses the experts.  CPU
seconds of a step, with the updates of all parameters, depend less on other work of the machine.

--peers: a Python that has torch and transformers.  Mixtral's block (experts_peer.py) then trains
with AdamW in ckc and in each form that transformers has, in turns, --rounds times.  A step's
seconds are CPU seconds, of all threads: they depend little on other work of the machine.
"""

import argparse
import json
import math
import os
import random
import resource
import struct
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from steps import processor  # noqa: E402

FORMS = "eager", "batched_mm", "grouped_mm"
PRODUCTS = {"matmul", "expert_matmul", "expert_dw"}
NOISE = 4099  # numbers, which repeat


def mixture(o):
    k = o.width
    return f"""graph @mixture {{
	input %x: f32[{o.tokens},{k}]
	param %gate: f32[{k},{o.experts}] = splat 0
	param %up: f32[{o.experts},{o.hidden},{k}] = splat 0
	param %down: f32[{o.experts},{k},{o.hidden}] = splat 0
	%s = matmul %x, %gate
	%p = softmax %s {{axis=1}}
	%q, %i = topk %p {{k={o.choices}, axis=1}}
	%token: f32[{o.tokens},1,{k},1] = reshape %x {{shape=[{o.tokens},1,{k},1]}}
	%u = gather %up, %i {{axis=0}}
	%h = matmul %u, %token
	%a = gelu %h
	%d = gather %down, %i {{axis=0}}
	%y = matmul %d, %a
	%weight: f32[{o.tokens},{o.choices},1,1] = reshape %q {{shape=[{o.tokens},{o.choices},1,1]}}
	%z = mul %y, %weight
	%z2 = mul %z, %z
	%loss: f32[] output = reduce_mean %z2 {{axes=[0,1,2,3], keepdims=0}}
}}
"""


def dense(o):
    n, k = o.tokens * o.choices, o.width
    return f"""graph @dense {{
	input %x: f32[{n},{k}]
	param %up: f32[{o.hidden},{k}] = splat 0
	param %down: f32[{k},{o.hidden}] = splat 0
	%h = matmul %x, %up {{tb=1}}
	%a = gelu %h
	%y = matmul %a, %down {{tb=1}}
	%y2 = mul %y, %y
	%loss: f32[] output = reduce_mean %y2 {{axes=[0,1], keepdims=0}}
}}
"""


def call(argv):
    done = subprocess.run([str(a) for a in argv], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, argv))}: status {done.returncode}\n{done.stderr[-2000:]}")


def write_noise(path, shapes):
    r = random.Random(1)
    noise = struct.pack(f"<{NOISE}f", *(r.gauss(0, 0.05) for _ in range(NOISE)))
    head, at = {}, 0
    for name, shape in shapes.items():
        end = at + 4 * math.prod(shape)
        head[name] = {"dtype": "F32", "shape": shape, "data_offsets": [at, end]}
        at = end
    text = json.dumps(head).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        while at > 0:
            at -= f.write(noise[:at])


def cpu_seconds(argv):
    begin = resource.getrusage(resource.RUSAGE_CHILDREN)
    call(argv)
    end = resource.getrusage(resource.RUSAGE_CHILDREN)
    return end.ru_utime - begin.ru_utime + end.ru_stime - begin.ru_stime


def step_seconds(o, run):
    """What more steps take more, of CPU."""
    few, many = (cpu_seconds([*run, "--steps", n]) for n in (1, 1 + o.steps))
    return (many - few) / o.steps


def measure(o, work, name, text, rows, shapes, dtype):
    """Seconds of products and of all ops, peak bytes, CPU seconds of a step."""
    paths = {
        x: os.path.join(work, f"{name}.{x}") for x in ("ck", "so", "plan", "w", "x", "profile")
    }
    with open(paths["ck"], "w") as f:
        f.write(text)
    write_noise(paths["w"], shapes)
    write_noise(paths["x"], {"x": rows})
    call(
        [os.path.join(o.build, "ckc"), paths["ck"], "-o", paths["so"], "--quiet"]
        + ["--json", paths["plan"], "--dtype", dtype]
    )
    run = [os.path.join(o.build, "ckrun"), paths["so"], "--init", paths["w"], "--quiet"]
    run += ["--inputs", paths["x"], "--threads", o.threads]
    call([*run, "--steps", o.steps, "--profile", paths["profile"]])
    with open(paths["plan"], encoding="utf-8") as f:
        peak = json.load(f)["summary"]["peak_bytes"]
    with open(paths["profile"], encoding="utf-8") as f:
        ops = json.load(f)["ops"]
    return [
        sum(s["least"] for s in ops if s["op"] in PRODUCTS),
        sum(s["least"] for s in ops),
        peak,
        min(step_seconds(o, run) for _ in range(o.rounds)),
    ]


def shapes(o, experts):
    each = {"up": [o.hidden, o.width], "down": [o.width, o.hidden]}
    if not experts:
        return each
    return {"gate": [o.width, experts], **{k: [experts, *v] for k, v in each.items()}}


# ---- beside PyTorch ----


def peer(o, *more):
    """The script's output, or None where this torch lacks the form."""
    sizes = ("tokens", "width", "hidden", "experts", "choices", "threads")
    argv = [o.peers, os.path.join(HERE, "experts_peer.py"), *more]
    argv += [x for k in sizes for x in ("--" + k, getattr(o, k))]
    done = subprocess.run([str(a) for a in argv], capture_output=True, text=True)
    return done.stdout if done.returncode == 0 else None


def ours(o, so, batch):
    """Of a step."""
    run = [os.path.join(o.build, "ckrun"), so, "--inputs", batch, "--threads", o.threads, "--quiet"]
    return step_seconds(o, [*run, "--lr", "1e-4", "--weight-decay", "0.01"])


def beside_torch(o, work):
    """Of each type: the least seconds of ckc and of the forms."""
    model, so = os.path.join(work, "moe.onnx"), os.path.join(work, "moe.so")
    if peer(o, "--export", model) is None:
        sys.exit(f"{o.peers}: cannot export the mixture")
    table = []
    for dtype in o.dtypes.split(","):
        ckc = [os.path.join(o.build, "ckc"), model, "-o", so, "--quiet", "--dtype", dtype]
        call([*ckc, "--loss", "loss"])
        found = {}
        for _ in range(o.rounds):
            found.setdefault("ckc", []).append(ours(o, so, model + ".safetensors"))
            for form in FORMS:
                text = peer(o, "--form", form, "--dtype", dtype, "--steps", o.steps)
                if text:
                    found.setdefault(form, []).append(min(json.loads(text)["cpu_seconds"]))
        table.append((dtype, {k: min(v) for k, v in found.items()}))
    return table


def report_peers(o, table):
    load = " ".join(f"{x:.1f}" for x in os.getloadavg())
    lines = [
        "",
        "## Beside PyTorch",
        "",
        f"Mixtral's block of these sizes (SwiGLU), one step with AdamW, CPU seconds: the least of {o.rounds} rounds of"
        f" {o.steps} steps. Load of the machine: {load}.",
        "",
        "| type | ckc | " + " | ".join(FORMS) + " | ckc / the best form |",
        "|---|---|" + "---|" * len(FORMS) + "---|",
    ]
    for dtype, found in table:
        forms = [f"{found[x]:.3f}" if x in found else "fails" for x in FORMS]
        best = min((found[x] for x in FORMS if x in found), default=math.nan)
        lines.append(
            f"| {dtype} | {found['ckc']:.3f} | {' | '.join(forms)} | {found['ckc'] / best:.2f} |"
        )
    return "\n".join(lines) + "\n"


def report(o, rows):
    lines = [
        "# Mixtures of experts",
        "",
        f"{o.experts} experts, {o.choices} of them for each of {o.tokens:,} tokens, width {o.width}, hidden {o.hidden};"
        f" {processor()}, {o.threads} thread{'s' * (o.threads > 1)}.",
        "Products: least seconds of forward and backward together. MLP: one of the same products.",
        "",
        "| type | products, s | of the MLP, s | ratio | all ops, s | of the MLP, s | a step, CPU s | of the MLP, CPU s"
        " | peak, MiB | matrices copied, MiB |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    copied = 2 * 4 * o.tokens * o.choices * o.width * o.hidden / 2**20
    for dtype, mix, mlp in rows:
        lines.append(
            f"| {dtype} | {mix[0]:.3f} | {mlp[0]:.3f} | {mix[0] / mlp[0]:.2f} | {mix[1]:.3f} | {mlp[1]:.3f}"
            f" | {mix[3]:.3f} | {mlp[3]:.3f} | {mix[2] / 2**20:,.0f} | {copied:,.0f} |"
        )
    lines += [
        "",
        "Matrices copied: what a gather of a float32 matrix for each row takes, forward alone.",
    ]
    return "\n".join(lines) + "\n"


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--build", default=os.path.join(HERE, "..", "..", "build"))
    for name, default in (
        ("tokens", 1024),
        ("width", 768),
        ("hidden", 3072),
        ("experts", 8),
        ("choices", 2),
        ("steps", 6),
        ("threads", os.cpu_count()),
    ):
        p.add_argument("--" + name, type=int, default=default)
    p.add_argument("--dtypes", default="f32,bf16")
    p.add_argument("--peers", help="a Python with torch and transformers")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--out")
    o = p.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as work:
        for dtype in o.dtypes.split(","):
            mix = measure(
                o, work, "mix", mixture(o), [o.tokens, o.width], shapes(o, o.experts), dtype
            )
            flat = [o.tokens * o.choices, o.width]
            rows.append((dtype, mix, measure(o, work, "mlp", dense(o), flat, shapes(o, 0), dtype)))
        text = report(o, rows)
        if o.peers:
            text += report_peers(o, beside_torch(o, work))
    print(text, end="")
    if o.out:
        with open(o.out, "w", encoding="utf-8") as f:
            f.write(text)


if __name__ == "__main__":
    main()
