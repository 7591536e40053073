#!/usr/bin/env python3
"""The account of memory and FLOPs, against formulas worked out by hand.

accounts.py CKC GPT
"""

import json
import os
import re
import resource
import subprocess
import sys
import tempfile

ASSUMED = ["--attention=unfused", "--dropout-mask=store"]
SMALL = dict(layers=3, hidden=256, heads=4, seq=128, vocab=512, batch=2)
failures = []


def expect(what, got, want):
    if got != want:
        failures.append(what)
        print(f"{what}: expected {want}, found {got}")


def expect_close(what, got, want, tolerance=1e-9):
    if abs(got - want) > tolerance * abs(want):
        failures.append(what)
        print(f"{what}: expected {want}, found {got}")


class Tools:
    def __init__(self, ckc, gpt, folder):
        self.ckc, self.gpt, self.folder = ckc, gpt, folder

    def model(self, name, **options):
        path = os.path.join(self.folder, name + ".onnx")
        argv = [self.gpt, "-o", path]
        for key, value in options.items():
            argv += ["--" + key.replace("_", "-"), str(value)]
        subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
        return path

    def plan(self, path, *flags):
        out = os.path.join(self.folder, "plan.json")
        done = subprocess.run(
            [
                self.ckc,
                path,
                "--plan-only",
                "--quiet",
                "--dtype=bf16",
                "--device=A100-80GB",
                "--json",
                out,
                *flags,
            ],
            check=True,
            text=True,
            stdout=subprocess.PIPE,
        )
        self.text = done.stdout
        with open(out, encoding="utf-8") as f:
            plan = json.load(f)
        return plan["memory"], plan["summary"]


def middle(memory, key="layer_bytes"):
    return memory[key][memory["layers"] // 2] / memory["layer_input_elements"]


def block(memory, name):
    return (
        sum(v["bytes"] for v in memory["layer"]["values"] if v["block"] == name)
        / memory["layer_input_elements"]
    )


def adds_up(what, memory, summary):
    """Every byte that is saved stands in one row."""
    expect(
        what + ": rows add up",
        sum(memory["layer_bytes"]) + sum(memory["statistics_bytes"]) + memory["outside_bytes"],
        summary["saved_bytes"],
    )


def core(c):
    return 5 * c["heads"] * c["seq"] / c["hidden"]


def gpt_layers(t):
    """Table 2 of Korthikanti et al. 2023, and its rows."""
    for layers in (2, 3):
        c = {**SMALL, "layers": layers}
        path = t.model("gpt", **c)
        for mode, want in (("none", 34 + core(c)), ("selective", 34), ("full", 2)):
            what = f"gpt of {layers} layers, {mode}"
            m, s = t.plan(path, *ASSUMED, "--recompute=" + mode)
            expect(what + ": layers", m["layers"], layers)
            expect(what, middle(m), want)
            adds_up(what, m, s)
    m, _ = t.plan(path, *ASSUMED, "--recompute=none")
    expect("attention", block(m, "attention"), 11 + core(SMALL))
    expect("norms", block(m, "norms"), 4)
    expect(
        "shape",
        m["transformer"],
        {k: SMALL[k] for k in ("batch", "seq", "hidden", "heads", "vocab")},
    )


def activations(t):
    """ReLU and Tanh keep their output, which the next product reads."""
    for act, want in (("gelu", 19), ("relu", 11), ("tanh", 11)):
        path = t.model(act, activation=act, **SMALL)
        m, s = t.plan(path, *ASSUMED, "--recompute=none")
        expect("mlp with " + act, block(m, "mlp"), want)
        expect("layer with " + act, middle(m), 15 + core(SMALL) + want)


def devices(t):
    path = t.model("tp", **SMALL)
    c = core(SMALL)
    for n in (2, 4):
        for flags, mode, want in (
            ([], "none", 10 + 24 / n + c / n),
            ([], "selective", 10 + 24 / n),
            ([], "full", 2),
            (["--sp"], "none", (34 + c) / n),
            (["--sp"], "selective", 34 / n),
            (["--sp"], "full", 2 / n),
        ):
            m, _ = t.plan(path, *ASSUMED, f"--tp={n}", *flags, "--recompute=" + mode)
            expect(f"one of {n} devices, {mode} {flags}", middle(m, "device_layer_bytes"), want)


def sent(t):
    """Bytes that a rank sends for one layer, as rings would: N = 2 s b h bytes
    in 16 bits go round in whole or in pieces.  Full recomputation repeats no
    collective whose result nobody needs (stored masks are made in one loop
    with what they mask, so they are not stored there)."""
    elements = SMALL["batch"] * SMALL["seq"] * SMALL["hidden"]
    for n in (2, 4):
        ring = 2 * elements * (n - 1) / n
        for flags, mode, rings in (
            ([], "none", 8),
            ([], "selective", 8),
            ([], "full", 10),
            (["--sp"], "none", 10),
            (["--sp"], "selective", 10),
            (["--sp"], "full", 11),
        ):
            got = []
            assumed = ASSUMED if mode != "full" else ASSUMED[:1]
            for layers in (4, 5):
                path = t.model("sent", **dict(SMALL, layers=layers))
                t.plan(
                    path,
                    *assumed,
                    f"--tp={n}",
                    *flags,
                    "--recompute=" + mode,
                    "--update-in-backward=off",
                )
                with open(os.path.join(t.folder, "plan.json"), encoding="utf-8") as f:
                    steps = json.load(f)["schedule"]
                got.append(sum(s.get("sent_bytes", 0) for s in steps if s["phase"] != "update"))
            expect(f"sent per layer, {n} ranks, {mode} {flags}", got[1] - got[0], rings * ring)


def pipeline(t):
    """In flight on stage r: p - r; interleaved (2 (p - r - 1) + (m - 1) p
    + 1) / m; never more than there are micro-batches."""
    path = t.model("pp", **{**SMALL, "layers": 8})
    for p, m, n in ((4, 1, 8), (4, 2, 8), (4, 1, 2), (1, 1, 1)):
        mem, _ = t.plan(
            path,
            *ASSUMED,
            "--recompute=none",
            f"--pp={p}",
            f"--interleave={m}",
            f"--microbatches={n}",
        )
        stages = mem["pipeline"]["stages"]
        expect("stages", len(stages), p)
        for r, s in enumerate(stages):
            want = p - r if m == 1 else (2 * (p - r - 1) + (m - 1) * p + 1) / m
            want = min(want, n)
            expect(f"{p} stages in {m} parts, stage {r}", s["in_flight"], want)
            if 0 < r < p - 1:
                per_layer = mem["layer_bytes"][4] + mem["statistics_bytes"][4]
                expect_close(
                    f"{p} stages, bytes of stage {r}", s["saved_bytes"], want * 8 / p * per_layer
                )
    # embedding's mask for every micro-batch in flight
    unit = mem["layer_input_elements"]
    end = 2 * 2 * unit + 4 * SMALL["batch"] * SMALL["seq"] * 2
    expect(
        "one stage",
        stages[0]["saved_bytes"],
        sum(mem["layer_bytes"]) + sum(mem["statistics_bytes"]) + unit + end,
    )


def flops(t):
    c = SMALL
    b, s, h, v = c["batch"], c["seq"], c["hidden"], c["vocab"]
    n = c["layers"]
    # forward: QKV 6, output 2, MLP 16, attention 4 s / h; logits
    forward = n * (24 * b * s * h * h + 4 * b * s * s * h) + 2 * b * s * h * v
    path = t.model("flops", **c)
    for flags in (ASSUMED, []):
        m, _ = t.plan(path, *flags, "--recompute=none")
        f = m["flops"]
        expect_close("model FLOPs", f["model"], 3 * forward)
        expect_close("formula", f["formula_model"], 3 * forward)
        # half of the scores are masked, which a fused attention leaves out
        masked = 0 if flags else n * 2 * b * s * s * h
        expect_close("FLOPs of visible scores", f["causal"], 3 * (forward - masked))
    m, _ = t.plan(path, *ASSUMED, "--recompute=none")
    expect_close("hardware FLOPs, nothing replayed", m["flops"]["hardware"], 3 * forward)
    m, _ = t.plan(path, *ASSUMED, "--recompute=selective")
    # scores again; their product with V is kept as the input of the next
    expect_close(
        "hardware FLOPs, selective", m["flops"]["hardware"], 3 * forward + n * 2 * b * s * s * h
    )


def utilisation(t):
    """MFU of a step of n micro-batches over p stages of T ranks each: n times
    the formula's FLOPs, by (n + (p - 1) / m) turns of a stage and one update,
    on T p devices of 312 TFLOP/s; or by the seconds given."""
    c = {**SMALL, "layers": 8}
    b, s, h, v = c["batch"], c["seq"], c["hidden"], c["vocab"]
    forward = c["layers"] * (24 * b * s * h * h + 4 * b * s * s * h) + 2 * b * s * h * v
    path = t.model("use", **c)
    for ranks, p, m, n in (
        (1, 1, 1, 1),
        (2, 1, 1, 1),
        (4, 1, 1, 1),
        (2, 4, 1, 4),
        (2, 4, 2, 16),
        (1, 8, 1, 64),
    ):
        flags = [*ASSUMED, "--recompute=none", "--dump=memory"]
        flags += [f"--tp={ranks}"] if ranks > 1 else []
        flags += [f"--pp={p}", f"--interleave={m}"] if p > 1 else []
        flags += [f"--microbatches={n}"] if n != p else []
        for given in (None, 0.25):
            mem, sums = t.plan(path, *flags, *([f"--step-time={given}"] if given else []))
            turn = sum(sums[f"{phase}_seconds"] for phase in ("forward", "backward", "recompute"))
            sec = given or (turn * (n + (p - 1) / m) + sums["update_seconds"]) / p
            want = 100 * n * 3 * forward / (sec * ranks * p * 312e12)
            found = re.search(
                r"([\d.e+-]+) s a step.* on (\d+) x .*?MFU "
                r"([\d.]+) %, HFU ([\d.]+) %",
                t.text,
            )
            what = f"{ranks} ranks, {p} stages, {n} micro-batches"
            expect_close(what + ": model FLOPs", mem["flops"]["model"], 3 * forward)
            expect(what + ": devices", int(found[2]), ranks * p)
            expect_close(what + ": seconds", float(found[1]), sec, 1e-5)
            expect_close(what + ": MFU", float(found[3]), want, 0.006 / want)
            if float(found[4]) < float(found[3]) or (ranks == 1 and found[4] != found[3]):
                expect(what + ": HFU", found[4], "as MFU, or what ranks repeat")


def llama(t):
    """Two layers of a LLaMA, GQA with half as many key heads, ffn 3 h."""
    path = t.model(
        "llama",
        like="llama",
        layers=2,
        hidden=256,
        heads=4,
        kv_heads=2,
        ffn=768,
        seq=128,
        vocab=512,
        batch=2,
    )
    m, s = t.plan(path, "--recompute=none")
    expect("llama: layers", m["layers"], 2)
    # norm inputs 2 + 2; normed 2 + 2, q 2, k 1, v 1, attention 2; gate, up,
    # silu and their product 6 each
    expect("llama: layer", middle(m), 4 + 4 + 4 + 2 + 24)
    adds_up("llama", m, s)


def scale(t):
    """Models of the paper: bytes at 1 %, and what planning takes."""
    for name, most in (("22B", 20), ("175B", 20), ("1T", 20)):
        path = t.model(name, model=name)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        m, _ = t.plan(path, "--recompute=none", "--target=cuda")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cheap = m["one_percent"]
        if cheap["extra"] > 0.01:
            expect(name + ": time", cheap["extra"], "at most 0.01")
        if middle({**m, **cheap}) > most:
            expect(name + ": bytes", middle({**m, **cheap}), most)
        seconds = after.ru_utime - before.ru_utime
        print(
            f"{name}: planned in {seconds:.2f} s of CPU, children at most "
            f"{after.ru_maxrss // 1024} MiB"
        )
        if seconds > 5 or after.ru_maxrss > 500 * 1024:
            expect(name + ": 5 s, 500 MB", (seconds, after.ru_maxrss), "less")


def main():
    with tempfile.TemporaryDirectory() as folder:
        t = Tools(sys.argv[1], sys.argv[2], folder)
        for part in (
            gpt_layers,
            activations,
            devices,
            sent,
            pipeline,
            flops,
            utilisation,
            llama,
            scale,
        ):
            part(t)
    print(f"{len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
