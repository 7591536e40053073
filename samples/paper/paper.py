#!/usr/bin/env python3
"""ckc's account of memory and FLOPs beside published numbers.

    python3 samples/paper/paper.py --ckc build/ckc --gpt build/gpt --out DIR

Writes DIR/paper.md and pictures.  The published numbers are those of
Korthikanti et al., "Reducing Activation Recomputation in Large Transformer
Models", MLSys 2023; everything else comes from `ckc --plan-only --json` on
graphs that samples/gpt writes.  Weights do not exist and are not needed.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

GIB = 2.0 ** 30
PEAK = 312e12           # A100, 16 bits

# Table 3 and table 5: tensor and pipeline parallel sizes, interleaved parts,
# devices, global batch; seconds of an iteration with full recomputation and
# with the paper's techniques, and their MFU and HFU in percent.
MODELS = {
    "22B": dict(t=8, p=1, m=1, gpus=8, batch=4, full=1.42, best=1.10,
                mfu=41.5, hfu=43.7),
    "175B": dict(t=8, p=8, m=3, gpus=64, batch=64, full=18.13, best=13.75,
                 mfu=51.4, hfu=52.8),
    "530B": dict(t=8, p=35, m=3, gpus=280, batch=280, full=49.05, best=37.83,
                 mfu=56.0, hfu=57.0),
    "1T": dict(t=8, p=64, m=1, gpus=512, batch=512, full=94.42, best=71.49,
               mfu=56.3, hfu=57.0),
}
PAPER = ["--attention=unfused", "--dropout-mask=store"]

# Outputs of norms and of GELU cost next to nothing to make again.
CHEAP = ["--recompute-values=h.*.norm?", "--recompute-values=h.*.mlp.act"]


class Run:
    """One plan: what ckc says of it."""

    def __init__(self, args, folder, model, flags):
        path = os.path.join(folder, "plan.json")
        command = [args.ckc, os.path.join(folder, model + ".onnx"),
                   "--plan-only", "--quiet", "--dtype=bf16",
                   "--device=A100-80GB", "--json", path] + flags
        subprocess.run(command, check=True, timeout=args.timeout)
        with open(path) as f:
            plan = json.load(f)
        self.memory = plan["memory"]
        self.sum = plan["summary"]
        self.layers = self.memory["layers"]
        self.unit = self.memory["layer_input_elements"]
        self.layer = self.memory["layer_bytes"][self.layers // 2]
        self.stats = self.memory["statistics_bytes"][self.layers // 2]
        self.values = self.memory["layer"]["values"]

    def block(self, name):
        return sum(v["bytes"] for v in self.values if v["block"] == name)

    def replicated(self):
        """Bytes that tensor parallelism alone does not divide: what lies
        outside of the products, and their inputs in front."""
        return sum(v["bytes"] for v in self.values
                   if v["block"] == "norms"
                   or (v["block"] in ("attention", "mlp")
                       and v["op"] == "LayerNormalization")
                   or (v["op"] == "mask" and v["bytes"] == self.unit))

    def tensor_parallel(self, t):
        return self.replicated() + (self.layer - self.replicated()) / t


def table(rows, head):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def picture(path, title, unit, groups, bars):
    """Bars of numbers: groups {name: [value per bar]}."""
    width, height, left, bottom = 760, 340, 60, 40
    top = max(max(v) for v in groups.values()) * 1.1
    colours = ["#7a8ca3", "#4f7cac", "#3fa796", "#c98b3c", "#b4544f",
               "#6b5b95"]
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" '
           f'height="{height + 40}" font-family="sans-serif" '
           f'font-size="12">',
           '<rect width="100%" height="100%" fill="white"/>',
           f'<text x="{left}" y="18" font-size="14">{title}</text>']
    scale = (height - bottom - 30) / top
    for i in range(5):
        value = top * i / 4
        y = height - bottom - value * scale
        out.append(f'<line x1="{left}" x2="{width - 10}" y1="{y:.1f}" '
                   f'y2="{y:.1f}" stroke="#ddd"/>')
        out.append(f'<text x="{left - 6}" y="{y + 4:.1f}" '
                   f'text-anchor="end">{value:.0f}</text>')
    step = (width - left - 10) / len(groups)
    for g, (name, values) in enumerate(groups.items()):
        bar = step * 0.8 / len(values)
        for i, value in enumerate(values):
            x = left + g * step + step * 0.1 + i * bar
            y = height - bottom - value * scale
            out.append(f'<rect x="{x:.1f}" y="{y:.1f}" '
                       f'width="{bar * 0.9:.1f}" '
                       f'height="{value * scale:.1f}" '
                       f'fill="{colours[i]}"/>')
            out.append(f'<text x="{x + bar * 0.45:.1f}" y="{y - 3:.1f}" '
                       f'text-anchor="middle" font-size="10">'
                       f'{value:.0f}</text>')
        out.append(f'<text x="{left + (g + 0.5) * step:.1f}" '
                   f'y="{height - bottom + 16}" text-anchor="middle">{name}'
                   f'</text>')
    for i, name in enumerate(bars):
        x = left + i * 115
        out.append(f'<rect x="{x}" y="{height + 8}" width="10" height="10" '
                   f'fill="{colours[i]}"/><text x="{x + 14}" '
                   f'y="{height + 17}">{name}</text>')
    out.append(f'<text x="12" y="{height / 2}" transform="rotate(-90 12 '
               f'{height / 2})">{unit}</text></svg>')
    with open(path, "w") as f:
        f.write("\n".join(out) + "\n")


def points(path, title, series):
    """Seconds against saved bytes; series {name: (bytes, seconds)}."""
    width, height, left, bottom = 560, 300, 70, 40
    xs = [b / GIB for b, _ in series.values()]
    ys = [s for _, s in series.values()]
    x1, y0, y1 = max(xs) * 1.15, min(ys) * 0.97, max(ys) * 1.03
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" '
           f'height="{height}" font-family="sans-serif" font-size="12">',
           '<rect width="100%" height="100%" fill="white"/>',
           f'<text x="{left}" y="18" font-size="14">{title}</text>',
           f'<path d="M{left} 30V{height - bottom}H{width - 10}" '
           f'stroke="#888" fill="none"/>']
    for i in range(5):
        x = left + (width - left - 20) * i / 4
        y = height - bottom - (height - bottom - 40) * i / 4
        out.append(f'<text x="{x:.0f}" y="{height - bottom + 16}" '
                   f'text-anchor="middle">{x1 * i / 4:.0f}</text>')
        out.append(f'<text x="{left - 6}" y="{y:.0f}" text-anchor="end">'
                   f'{y0 + (y1 - y0) * i / 4:.2f}</text>')
    for name, (b, s) in series.items():
        x = left + (width - left - 20) * (b / GIB) / x1
        y = height - bottom - (height - bottom - 40) * (s - y0) / (y1 - y0)
        out.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" '
                   f'fill="#4f7cac"/><text x="{x + 7:.1f}" '
                   f'y="{y - 6:.1f}">{name}</text>')
    out.append(f'<text x="{width / 2}" y="{height - 6}" '
               f'text-anchor="middle">GiB saved for backward by a '
               f'micro-batch; predicted seconds upwards</text></svg>')
    with open(path, "w") as f:
        f.write("\n".join(out) + "\n")


def layer_table(model, runs):
    rows = []
    for name, want in (("none", "34 + 5as/h"), ("selective", "34"),
                       ("full", "2"), ("ckc", ""), ("ckc, cheap again", "")):
        r = runs[name]
        t = r.memory["transformer"]
        core = 5 * t["heads"] * t["seq"] / t["hidden"]
        value = {"none": 34 + core, "selective": 34, "full": 2}.get(name)
        rows.append([name, want, "" if value is None else f"{value:.3f}",
                     f"{r.layer / r.unit:.3f}",
                     f"{r.block('norms') / r.unit:.3f}",
                     f"{r.block('attention') / r.unit:.3f}",
                     f"{r.block('mlp') / r.unit:.3f}",
                     str(r.stats)])
    return f"### {model}\n\n" + table(
        rows, ["plan", "formula", "value", "ckc", "norms", "attention",
               "MLP", "statistics, bytes"])


def first_stage(model, runs):
    """Bytes of the first stage in GiB, by the paper's five columns."""
    c = MODELS[model]
    factor = 1 + (c["p"] - 1) / (c["p"] * c["m"]) if c["m"] > 1 else 1
    none, sel, full = (runs[k] for k in ("none", "selective", "full"))
    scale = none.layers * factor / GIB
    return [none.tensor_parallel(c["t"]) * scale, none.layer / c["t"] * scale,
            sel.tensor_parallel(c["t"]) * scale, sel.layer / c["t"] * scale,
            full.layer * scale]


def utilisation(model, runs):
    c = MODELS[model]
    f = runs["selective"].memory["flops"]
    t = runs["selective"].memory["transformer"]
    n = c["batch"] / t["batch"]

    def rate(flops):
        return f"{100 * flops * n / (c['best'] * c['gpus'] * PEAK):.2f}"

    return [model, f"{c['full']:.2f}", f"{c['best']:.2f}", f"{c['mfu']}",
            rate(f["model"]), rate(f["formula_model"]), f"{c['hfu']}",
            rate(f["formula_third"]), rate(f["formula_ninth"]),
            rate(f["hardware"])]


def plan_all(args, model):
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([args.gpt, "--model", model, "-o",
                        os.path.join(folder, model + ".onnx")], check=True,
                       stdout=subprocess.DEVNULL)
        runs = {mode: Run(args, folder, model, PAPER
                          + ["--recompute=" + mode])
                for mode in ("none", "selective", "full")}
        runs["ckc"] = Run(args, folder, model, ["--recompute=none"])
        runs["ckc, cheap again"] = Run(args, folder, model,
                                       ["--recompute=none"] + CHEAP)
        for spec in args.budget:
            runs[spec] = Run(args, folder, model, ["--memory-budget", spec])
    print(model, "planned", file=sys.stderr)
    return runs


def document(args, all_runs):
    columns = ["TP", "TP+SP", "TP+selective", "TP+SP+selective", "full"]
    stage = {m: first_stage(m, r) for m, r in all_runs.items()}
    parts = [
        "# Activation memory and FLOPs of large GPTs\n",
        "Written by samples/paper/paper.py from the output of `ckc "
        "--plan-only`; published numbers from Korthikanti et al., MLSys "
        "2023.  Bytes are those of a micro-batch in 16 bits; a layer is "
        "given in bytes per element of its input (s·b·h).\n",
        "## A layer (table 2)\n",
        "`none`, `selective` and `full` are planned as the paper assumes: "
        "attention op by op, dropout masks stored.  `ckc` is the default: "
        "fused attention, no masks, everything kept; `cheap again` drops "
        "the outputs of norms and GELU.\n",
    ]
    parts += [layer_table(m, r) for m, r in all_runs.items()]
    parts += [
        "## The first stage (figure 7)\n",
        "GiB per device with tensor parallelism of 8, all micro-batches in "
        "flight; tensor parallelism divides the rows inside of the "
        "products, sequence parallelism the others too.  This is "
        "arithmetic on ckc's rows.\n",
        table([[m] + [f"{v:.1f} ({100 * v / row[0]:.0f} %)" for v in row]
               for m, row in stage.items()], ["model"] + columns),
        "![first stage](first_stage.svg)\n",
        "## Utilisation (table 5)\n",
        "Seconds as published; MFU and HFU in percent of 312 TFLOP/s per "
        "device.  `ckc` columns use the FLOPs counted in the graph; HFU is "
        "given by the formula with s/3h, which reproduces the published "
        "column, with 2s/9h, and by the count of what the plan runs.\n",
        table([utilisation(m, r) for m, r in all_runs.items()],
              ["model", "full s", "present s", "MFU published", "MFU ckc",
               "MFU formula", "HFU published", "HFU s/3h", "HFU 2s/9h",
               "HFU ckc"]),
        "## Bytes against time\n",
    ]
    for m, runs in all_runs.items():
        parts.append(f"![{m}](time_{m}.svg)\n")
        parts.append(table(
            [[k, f"{r.sum['saved_bytes'] / GIB:.2f}",
              f"{r.sum['step_seconds']:.3f}",
              f"{100 * r.sum['overhead']:.2f} %"] for k, r in runs.items()],
            ["plan", "GiB saved", "predicted s", "recomputation"]))
        points(os.path.join(args.out, f"time_{m}.svg"),
               f"{m}, one micro-batch on one device",
               {k: (r.sum["saved_bytes"], r.sum["step_seconds"])
                for k, r in runs.items()})
    picture(os.path.join(args.out, "first_stage.svg"),
            "Activations of the first stage", "GiB", stage, columns)
    with open(os.path.join(args.out, "paper.md"), "w") as f:
        f.write("\n".join(parts))


def main():
    a = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    a.add_argument("--ckc", required=True)
    a.add_argument("--gpt", required=True)
    a.add_argument("--out", required=True)
    a.add_argument("--timeout", type=float, default=600)
    a.add_argument("--budget", action="append", default=[],
                   help="plan for this budget as well (repeatable)")
    a.add_argument("models", nargs="*", default=list(MODELS))
    args = a.parse_args()
    os.makedirs(args.out, exist_ok=True)
    document(args, {m: plan_all(args, m) for m in args.models or MODELS})


if __name__ == "__main__":
    main()
