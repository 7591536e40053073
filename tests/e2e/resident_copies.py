#!/usr/bin/env python3
"""Copies of parameters that updates write in 16 bits are what casts in each step would make: the
same bits.

    resident_copies.py CKC CKRUN [--flags "..."]

--flags: more of them for ckc, for another target.
"""

import json
import os
import shlex

import ck
from truth import ADAM16, F16, Truth

NAME = "mlp-mse"  # its loss is no classifier's, whose kernel takes a parameter in float32 as it is
TYPES = (
    ["--dtype", "bf16"],
    ["--dtype", "f16", "--optimizer", "sgdm", "--grad-accum", "2"],
    ["--dtype", "bf16", "--optimizer", "lion"],
    ["--dtype", "bf16", "--optimizer", "sgd", "--tp", "2"],
    ["--dtype", "bf16", "--optimizer", "sgd", "--tp", "3"],  # which divides none of its widths
)


def compile_to(bench, so, mode, flags, *more):
    stem = os.path.join(ck.MODELS, NAME)
    done = bench.ckc(
        stem + ".onnx",
        "-o",
        so,
        "--quiet",
        "--dim",
        "batch=8",
        "--loss",
        "loss",
        "--resident-copies",
        mode,
        *flags,
        *more,
    )
    return bench.must(done, f"compile {mode} {flags}")


def run(bench, so, steps, *more, save="save"):
    """The losses, the checkpoint's bytes and how many steps were skipped."""
    save, log = bench.path(save), bench.path("log")
    inputs = os.path.join(ck.MODELS, NAME + ".inputs.safetensors")
    bench.must(
        bench.ckrun(so, "--inputs", inputs, "--steps", steps, "--save", save, "--log", log, *more),
        f"run {more}",
    )
    with open(log, encoding="utf-8") as f:
        skipped = sum(json.loads(line).get("skipped", False) for line in f)
    return ck.losses(log), ck.content(save), skipped


def same_bits(bench, flags, more):
    """With and without; a run that is taken up again by the other library; steps that overflow."""
    on, off = bench.path("on.so"), bench.path("off.so")
    if not (
        compile_to(bench, on, "on", flags, *more) and compile_to(bench, off, "off", flags, *more)
    ):
        return
    whole = run(bench, off, 4)
    stem = os.path.join(ck.MODELS, NAME)
    optimizer = flags[flags.index("--optimizer") :][:2] if "--optimizer" in flags else []
    if "lion" not in optimizer:  # steps of a sign, which 16 bits turn
        Truth(
            bench,
            stem + ".onnx",
            [*ck.model_flags(stem)[0], *optimizer],
            stem + ".inputs.safetensors",
            "--steps",
            4,
        ).check(f"{flags}", F16 if "f16" in flags else ADAM16, whole[0], save="save")
    bench.check(run(bench, on, 4) == whole, f"{flags}: other bits with copies")
    for first, second in ((on, off), (off, on)):
        run(bench, first, 2, save="half")
        losses, content, _ = run(bench, second, 4, "--resume", bench.path("half"))
        bench.check(
            (losses[-2:], content) == (whole[0][2:], whole[1]),
            f"{flags}: other bits when resumed by the other library",
        )
    if "f16" in flags:
        scaled = [run(bench, so, 4, "--loss-scale", "1e8", "--on-nan", "skip") for so in (on, off)]
        bench.check(
            scaled[0] == scaled[1] and scaled[0][2] > 0,
            f"{flags}: steps that overflow: {scaled[0][0]} {scaled[0][2]}, {scaled[1][0]}",
        )


def plans(bench):
    """Two bytes an element of what products read; a budget that has no room for them goes without,
    on a GPU's plan."""
    stem, found, peak = os.path.join(ck.MODELS, NAME), {}, {}
    for mode in ("on", "off", "auto"):
        path = bench.path(mode + ".json")
        bench.must(
            bench.ckc(
                stem + ".onnx",
                "--plan-only",
                "--dim",
                "batch=8",
                "--loss",
                "loss",
                "--dtype",
                "bf16",
                "--target",
                "cuda",
                "--resident-copies",
                mode,
                "--json",
                path,
            ),
            f"plan {mode}",
        )
        with open(path, encoding="utf-8") as f:
            plan = json.load(f)
        found[mode] = {
            t["name"]: t
            for t in plan["tensors"]
            if t["name"].startswith("copy.") and not t["name"].endswith(".next")
        }
        peak[mode] = plan["summary"]["peak_bytes"]
        params = {t["name"]: t for t in plan["tensors"] if t["kind"] == "param"}
        for name, t in found[mode].items():
            bench.check(
                t["kind"] == "state"
                and t["resident"]
                and t["dtype"] == "bf16"
                and t["shape"] == params[name[5:]]["shape"],
                f"tensor {t}",
            )
    bench.check(
        len(found["on"]) == 6 and not found["off"] and found["auto"].keys() == found["on"].keys(),
        f"copies {[len(x) for x in found.values()]}",
    )
    for accum in ("1", "2"):
        least = {mode: bench.least(stem, mode, accum) for mode in ("on", "off", "auto")}
        bench.check(
            least["auto"] == least["off"] <= least["on"],
            f"least budgets with --grad-accum {accum}: {least}",
        )


class Copies(ck.Bench):
    def least(self, stem, mode, accum):
        done = self.ckc(
            stem + ".onnx",
            "--plan-only",
            "--dim",
            "batch=8",
            "--loss",
            "loss",
            "--dtype",
            "bf16",
            "--target",
            "cuda",
            "--resident-copies",
            mode,
            "--grad-accum",
            accum,
            "--memory-budget",
            "1000B",
        )
        found = ck.ERRORS.search(done.stderr)
        return int(found.group(1)) if found else None


def main():
    more = shlex.split(ck.option("--flags", ""))
    bench = Copies()
    for flags in TYPES[:2] if more else TYPES:
        same_bits(bench, flags, more)
    plans(bench)
    bench.finish()


if __name__ == "__main__":
    main()
