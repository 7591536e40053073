#!/usr/bin/env python3
"""ckc's account of memory and FLOPs beside published numbers.

    python3 samples/paper/paper.py --ckc build/ckc --gpt build/gpt --out DIR
    python3 samples/paper/paper.py ... --check samples/paper/paper.md 22B

Writes DIR/paper.md and its pictures; with --check it only compares: every
line that it would write of these models, the curves apart, must stand in the
document.  The published numbers are those of Korthikanti et al., "Reducing
Activation Recomputation in Large Transformer Models", MLSys 2023; everything
else comes from `ckc --plan-only --json` on graphs that samples/gpt writes.
Weights do not exist and are not needed.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

import svg

GIB = 2.0**30
PEAK = 312e12  # A100, 16 bits

# Table 3, 4 and 5: tensor and pipeline parallel sizes, interleaved parts,
# devices, global batch; seconds of an iteration with full recomputation and
# with the paper's techniques, their MFU and HFU in percent; what recomputing
# everything and attention's core adds to the time of a layer in percent.
MODELS = {
    "22B": dict(
        t=8,
        p=1,
        m=1,
        gpus=8,
        batch=4,
        full=1.42,
        best=1.10,
        mfu=41.5,
        hfu=43.7,
        more_full=39,
        more_selective=7,
    ),
    "175B": dict(t=8, p=8, m=3, gpus=64, batch=64, full=18.13, best=13.75, mfu=51.4, hfu=52.8),
    "530B": dict(
        t=8,
        p=35,
        m=3,
        gpus=280,
        batch=280,
        full=49.05,
        best=37.83,
        mfu=56.0,
        hfu=57.0,
        more_full=36,
    ),
    "1T": dict(
        t=8,
        p=64,
        m=1,
        gpus=512,
        batch=512,
        full=94.42,
        best=71.49,
        mfu=56.3,
        hfu=57.0,
        more_full=36,
    ),
}
ASSUMED = ["--attention=unfused", "--dropout-mask=store"]
TECHNIQUES = {
    # name: recomputation, rows split too, the formula with t, 5as/h
    "TP": ("none", False, lambda t, c: 10 + 24 / t + c / t),
    "TP + SP": ("none", True, lambda t, c: (34 + c) / t),
    "TP + selective": ("selective", False, lambda t, c: 10 + 24 / t),
    "TP + SP + selective": ("selective", True, lambda t, c: 34 / t),
    "full": ("full", False, lambda t, c: 2),
}
FORMULA = {
    "TP": "10 + 24/t + 5as/ht",
    "TP + SP": "(34 + 5as/h) / t",
    "TP + selective": "10 + 24/t",
    "TP + SP + selective": "34/t",
    "full": "2",
}


class Plan:
    """What ckc says of one plan."""

    def __init__(self, args, model, *flags):
        path = os.path.join(args.work, "plan.json")
        argv = [
            args.ckc,
            os.path.join(args.work, model + ".onnx"),
            "--plan-only",
            "--quiet",
            "--dtype=bf16",
            "--master-weights=off",
            "--device=A100-80GB",
            "--json",
            path,
            *flags,
        ]
        subprocess.run(argv, stdout=subprocess.DEVNULL, check=True)
        with open(path, encoding="utf-8") as f:
            plan = json.load(f)
        self.memory = m = plan["memory"]
        self.sum = plan["summary"]
        self.curve = plan.get("curve")
        self.middle = m["layers"] // 2
        self.unit = m["layer_input_elements"]
        self.layer = m["layer_bytes"][self.middle] / self.unit
        self.stats = m["statistics_bytes"][self.middle] / self.unit
        self.overhead = 100 * self.sum["overhead"]

    def device(self):
        return self.memory["device_layer_bytes"][self.middle]

    def block(self, name):
        values = self.memory["layer"]["values"]
        return sum(v["bytes"] for v in values if v["block"] == name) / self.unit

    def core(self):
        """5as/h"""
        t = self.memory["transformer"]
        return 5 * t["heads"] * t["seq"] / t["hidden"]


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return lines + ["| " + " | ".join(row) + " |" for row in rows] + [""]


# ---- what is planned ----


def write_model(args, model, *flags):
    subprocess.run(
        [args.gpt, *flags, "-o", os.path.join(args.work, model + ".onnx")],
        check=True,
        stdout=subprocess.DEVNULL,
    )


def plan_model(args, model):
    c = MODELS[model]
    write_model(args, model, "--model", model)
    plans = {"ckc": Plan(args, model, "--recompute=none")}
    for mode in ("none", "selective", "full"):
        plans["one, " + mode] = Plan(args, model, *ASSUMED, "--recompute=" + mode)
    stage = [
        f"--tp={c['t']}",
        f"--pp={c['p']}",
        f"--interleave={c['m']}",
        f"--microbatches={c['gpus'] // c['t'] * 8}",
    ]
    for name, (mode, rows, _) in TECHNIQUES.items():
        plans[name] = Plan(args, model, *ASSUMED, *stage, "--recompute=" + mode, *(["--sp"] * rows))
    print(model, "planned", file=sys.stderr)
    return plans


def beside_weights(plan):
    """GiB of activations, gradients and scratch at the fullest moment."""
    return plan.sum["arena_bytes"] / GIB


def plan_curve(args, model):
    """The curve of --curve and the paper's plans: (name, GiB, extra %)."""
    flags = ["--update-in-backward=on"]
    base = Plan(args, model, *flags, "--curve")
    resident = base.sum["resident_bytes"]
    line = [((p["peak_bytes"] - resident) / GIB, 100 * p["overhead"]) for p in base.curve]
    points = []
    for mode in ("none", "selective", "full"):
        plan = Plan(args, model, *ASSUMED, *flags, "--recompute=" + mode)
        points.append((mode, beside_weights(plan), plan.overhead))
    print(model, "curve", file=sys.stderr)
    return line, points


# ---- the document ----


def layer_section(model, plans):
    c, core = MODELS[model], plans["TP"].core()
    rows = [
        ["one device", "none", "34 + 5as/h", f"{34 + core:.3f}", f"{plans['one, none'].layer:.3f}"],
        ["one device", "selective", "34", "34.000", f"{plans['one, selective'].layer:.3f}"],
        ["one device", "full", "2", "2.000", f"{plans['one, full'].layer:.3f}"],
    ]
    for name, (mode, _, formula) in TECHNIQUES.items():
        rows.append(
            [
                f"{c['t']} devices, {name}",
                mode,
                FORMULA[name],
                f"{formula(c['t'], core):.3f}",
                f"{plans[name].device() / plans[name].unit:.3f}",
            ]
        )
    own = plans["ckc"]
    cheap = own.memory["one_percent"]
    least = cheap["layer_bytes"][own.middle] / own.unit
    stats = cheap["statistics_bytes"][own.middle] / own.unit
    rows += [
        ["ckc's default", "none", "", "", f"{own.layer:.3f} (statistics {own.stats:.3f})"],
        [
            f"ckc, {100 * cheap['extra']:.2f} % more time",
            "norms, GELU and the like",
            "at most 20",
            "20.000",
            f"{least:.3f} (statistics {stats:.3f})",
        ],
    ]
    return [f"### {model}", ""] + table(["plan", "recomputed", "formula", "value", "ckc"], rows)


def block_section(models):
    rows = []
    for model, plans in models.items():
        plan = plans["one, none"]
        rows.append(
            [model]
            + [
                f"{want:.3f} / {plan.block(name):.3f}"
                for name, want in (("norms", 4), ("attention", 11 + plan.core()), ("mlp", 19))
            ]
        )
    return table(["model", "norms 4", "attention 11 + 5as/h", "MLP 19"], rows)


def activation_section(args):
    rows = []
    for act, want in (("gelu", 19), ("relu", 11), ("tanh", 11)):
        write_model(
            args,
            act,
            "--layers",
            "4",
            "--hidden",
            "1024",
            "--heads",
            "16",
            "--seq",
            "512",
            "--vocab",
            "1024",
            "--activation",
            act,
        )
        plan = Plan(args, act, *ASSUMED, "--recompute=none")
        rows.append([act, str(want), f"{plan.block('mlp'):.3f}"])
    return table(["activation", "MLP, by theory", "ckc"], rows)


def stage_values(model, plans):
    """GiB of the first stage: by formula, by ckc's layers, by --pp."""
    c, core = MODELS[model], plans["TP"].core()
    factor = 1 + (c["p"] - 1) / (c["p"] * c["m"]) if c["m"] > 1 else 1
    out = []
    for name, (_, _, formula) in TECHNIQUES.items():
        plan = plans[name]
        scale = plan.memory["layers"] * factor / GIB
        stage = plan.memory["pipeline"]["stages"][0]
        out.append(
            (
                formula(c["t"], core) * plan.unit * scale,
                plan.device() * scale,
                stage["saved_bytes"] / GIB,
            )
        )
    return out


def stage_section(models, stages):
    rows = []
    for model in models:
        base = stages[model][0][1]
        rows.append(
            [model]
            + [f"{a:.1f} / {b:.1f} ({100 * b / base:.0f} %) / {s:.1f}" for a, b, s in stages[model]]
        )
    return table(["model"] + list(TECHNIQUES), rows)


def use_section(models):
    rows = []
    for model, plans in models.items():
        c = MODELS[model]
        f = plans["one, selective"].memory["flops"]
        times = c["batch"] / plans["one, none"].memory["transformer"]["batch"]

        def rate(flops):
            return f"{100 * flops * times / (c['best'] * c['gpus'] * PEAK):.2f}"

        rows.append(
            [
                model,
                f"{c['best']:.2f}",
                str(c["mfu"]),
                rate(f["model"]),
                rate(f["formula_model"]),
                str(c["hfu"]),
                rate(f["formula_third"]),
                rate(f["formula_ninth"]),
                rate(f["hardware"]),
            ]
        )
    return table(
        [
            "model",
            "seconds published",
            "MFU published",
            "MFU ckc",
            "MFU formula",
            "HFU published",
            "HFU s/3h",
            "HFU 2s/9h",
            "HFU ckc",
        ],
        rows,
    )


def time_section(models):
    rows = []
    for model, plans in models.items():
        c, own = MODELS[model], plans["ckc"].memory["one_percent"]
        rows.append(
            [
                model,
                f"+{c['more_selective']} %" if "more_selective" in c else "",
                f"+{plans['TP + selective'].overhead:.2f} %",
                f"+{c['more_full']} %" if "more_full" in c else "",
                f"+{plans['full'].overhead:.2f} %",
                f"+{100 * own['extra']:.2f} %",
            ]
        )
    return table(
        [
            "model",
            "selective, published",
            "selective, ckc",
            "full, published",
            "full, ckc",
            "ckc at <= 1 %",
        ],
        rows,
    )


def document(args, models):
    stages = {m: stage_values(m, p) for m, p in models.items()}
    out = [
        "# Activation memory and FLOPs of large GPTs",
        "",
        "Written by samples/paper/paper.py from the output of `ckc "
        "--plan-only --device A100-80GB --dtype bf16 --master-weights off`; published "
        "numbers "
        "from Korthikanti et al., MLSys 2023.  `none`, `selective` and "
        "`full` are planned under the paper's assumptions: attention op by "
        "op (`--attention=unfused`), dropout masks stored "
        "(`--dropout-mask=store`); with `--tp 8` they are "
        "plans of one rank's graph.",
        "",
        "## A layer (table 2)",
        "",
        "Bytes that a layer saves for backward, per element of its input "
        "(s b h); t = 8.  Statistics are the rows' means and deviations, "
        "and the logarithms of the sums in attention, which the formulas "
        "leave out.  With TP alone, ckc shards dropout behind products, whose masks Megatron has "
        "whole.",
        "",
    ]
    for model, plans in models.items():
        out += layer_section(model, plans)
    out += ["Formula / ckc's rows, everything kept:", ""]
    out += block_section(models)
    out += ["ReLU and Tanh need their output only, which the next product keeps anyway:", ""]
    out += activation_section(args)
    out += [
        "## The first stage (figure 7)",
        "",
        "GiB per device: layers by the formula / by ckc's rows (percent "
        "of TP alone) / what `--tp 8 --pp P` says, embedding's dropout "
        "and, with one stage, the end of the model included.  The end "
        "keeps no logits in ckc, where the paper reckons 4 s b v.",
        "",
    ]
    out += stage_section(models, stages)
    out += [
        "![first stage](first_stage.svg)",
        "",
        "## Utilisation (table 5)",
        "",
        "Percent of 312 TFLOP/s per device over the published seconds.  "
        "The published HFU is that of the formula with s/3h, which "
        "counts the replay of attention's core three times; ckc counts "
        "what the plan runs.",
        "",
    ]
    out += use_section(models)
    out += [
        "## Time (table 4)",
        "",
        "What recomputation adds to a step.  Published values were "
        "measured, ckc's are predicted from peak rates.",
        "",
    ]
    out += time_section(models)
    return out, stages


def curve_section(args, models):
    out = [
        "## Bytes against time",
        "",
        "One micro-batch on one device, updates in backward: bytes of "
        "activations, gradients and scratch at the fullest moment, "
        "beside parameters and optimizer state; recomputation in percent "
        "of the step.  The curve is that of `--curve`; the points are the "
        "paper's three plans under its assumptions.  Every eighth point "
        "of the curve:",
        "",
    ]
    for model in models:
        line, points = plan_curve(args, model)
        svg.curves(
            os.path.join(args.out, f"time_{model}.svg"),
            model,
            ("GiB of activations, gradients and scratch", "recomputation, % of a step"),
            {"ckc": line},
            points,
        )
        out += [f"![{model}](time_{model}.svg)", ""]
        some = line[:-1][::8] + line[-1:]
        out += table(
            ["plan", "GiB", "recomputation"],
            [[n, f"{b:.1f}", f"{t:.2f} %"] for n, b, t in points]
            + [["ckc", f"{b:.1f}", f"{t:.2f} %"] for b, t in reversed(some)],
        )
    return out


def check(lines, path, models):
    """Rows of all models, and of those that are named."""
    with open(path, encoding="utf-8") as f:
        there = set(f.read().splitlines())
    others = set(MODELS) - set(models)
    missing = [
        x for x in lines if x not in there and not any(x.startswith(f"| {m} ") for m in others)
    ]
    print("\n".join("not in the document: " + x for x in missing))
    if missing:
        print("if that is as it should be, write it again with --out")
    return 1 if missing else 0


def main():
    a = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    a.add_argument("--ckc", required=True)
    a.add_argument("--gpt", required=True)
    a.add_argument("--out", help="folder for the document")
    a.add_argument("--check", help="a document to compare with")
    a.add_argument("models", nargs="*", metavar="MODEL", help=", ".join(MODELS))
    args = a.parse_args()
    if not args.out and not args.check:
        a.error("--out or --check is missing")
    with tempfile.TemporaryDirectory() as args.work:
        models = {m: plan_model(args, m) for m in args.models or MODELS}
        lines, stages = document(args, models)
        if args.check:
            return check(lines, args.check, models)
        os.makedirs(args.out, exist_ok=True)
        svg.bars(
            os.path.join(args.out, "first_stage.svg"),
            "Activations of the first stage, by ckc's rows",
            "GiB",
            {m: [s[1] for s in v] for m, v in stages.items()},
            list(TECHNIQUES),
        )
        lines += curve_section(args, models)
    with open(os.path.join(args.out, "paper.md"), "w", encoding="utf-8") as f:
        f.write("\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
