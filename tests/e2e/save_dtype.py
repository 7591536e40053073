#!/usr/bin/env python3
"""--save-dtype: what backward reads may be kept in 16 bits.

    save_dtype.py CKC CKRUN

For a transformer and a convolutional net, planned for a machine where products are dear: from
keep-everything down to the least budget the plan is never slower, nor recomputes longer, than
without the flag, its least budget is no larger, more budget is never slower, and the referee
accepts it.  What runs: the first loss has the bits of float32, gradients are near float64's (the
reference's; of the net, of differences of a forward in numpy), and --check says so.  Where
everything fits, nothing changes at all.
"""

import json
import os
import re
import sys

import numpy as np

import ck
import wire

sys.path.insert(0, os.path.join(ck.HERE, "..", "runtime"))
import files  # noqa: E402

sys.path.insert(0, ck.TOOLS)
import compare  # noqa: E402
from replay import Replay  # noqa: E402

TRANSFORMER = os.path.join(ck.MODELS, "llama-dynamo")
# medians of gradients' errors; the least says that something was rounded
ERROR = {"bf16": (1e-4, 2e-2), "f16": (1e-5, 2e-3)}
CHECK = re.compile(
    r"check: bits were compared in the forward pass only; (\d+) values are saved in 16 bits, and gradients differ by (\S+) of their norm "
    r"\(per parameter: median (\S+), largest (\S+), "
)
SIDE, CHANNELS, LAYERS = 8, 12, 4


class Model:
    def __init__(self, bench, name, path, flags, inputs):
        self.bench, self.name, self.path, self.inputs = bench, name, path, inputs
        self.flags = ["--device", device(bench), *flags]

    def ckc(self, *more):
        return self.bench.ckc(self.path, *self.flags, *more)

    def plan(self, budget, *more):
        js = self.bench.path("plan.json")
        done = self.ckc(
            "--plan-only", "--json", js, *(["--memory-budget", budget] if budget else []), *more
        )
        if not self.bench.must(done, f"{self.name}: {budget} {more}"):
            return None
        plan = ck.plan(js)
        faults = Replay(plan).faults
        self.bench.check(not faults, f"{self.name}: {budget} {more}: replay: {faults[:3]}")
        return plan

    def least(self, *more):
        refused = self.ckc("--plan-only", "--memory-budget", "1B", *more)
        found = ck.ERRORS.search(refused.stderr)
        self.bench.check(
            refused.returncode == 1 and found, f"{self.name}: a byte: {refused.stderr[-300:]}"
        )
        return int(found[1])


def device(bench):
    """Products are dear and starting an op costs nothing, so that small models are planned as large
    ones."""
    path = bench.path("device.json")
    with open(path, "w", encoding="utf-8") as f:
        json.dump(
            {
                "name": "slow",
                "product_flops": 4e10,
                "product_flops16": 4e10,
                "vector_flops": 6e11,
                "bandwidth": 4e11,
                "launch_seconds": 1e-9,
                "memory_bytes": 0,
                "serial": 1,
                "link_bytes_per_second": 1e10,
                "link_latency_seconds": 2e-6,
            },
            f,
        )
    return path


def sweep(bench, model, dtype, full, exact_least, fractions, count):
    """Plans at budgets on the way down; the budget at which most is kept in 16 bits."""
    half = ["--save-dtype", dtype]
    least = model.least(*half)
    bench.check(
        least <= exact_least, f"{model.name}: {dtype}: least {least}, {exact_least} without"
    )
    before, most = None, (0, 0)
    for f in (*fractions, 0.0):
        budget = int(least + (full["peak_bytes"] - least) * f)
        plan = model.plan(budget, *half)
        if not plan:
            continue
        s, what = plan["summary"], f"{model.name}: {dtype}: {budget} B"
        held = [
            t for t in plan["tensors"] if t.get("half_of") is not None and t["alias_of"] is None
        ]
        bench.check(
            (len(held), sum(t["bytes"] for t in held))
            == (s.get("half_count", 0), s.get("half_bytes", 0)),
            f"{what}: sums",
        )
        bench.check(
            all(
                t["dtype"] == dtype and plan["tensors"][t["half_of"]]["dtype"] == "f32"
                for t in held
            ),
            f"{what}: types",
        )
        bench.check(s["peak_bytes"] <= budget, f"{what}: peak {s['peak_bytes']}")
        bench.check(
            before is None or s["step_seconds"] >= before * (1 - 1e-9),
            f"{what}: faster than with more memory",
        )
        before, most = s["step_seconds"], max(most, (len(held), budget))
        if budget < exact_least:
            continue
        exact = model.plan(budget)["summary"]
        for key in ("step_seconds", "recompute_seconds"):
            bench.check(
                s[key] <= exact[key] * (1 + 1e-9),
                f"{what}: {key} {s[key]}, {exact[key]} without the flag",
            )
        if held:
            bench.check(
                s["recompute_seconds"] < exact["recompute_seconds"],
                f"{what}: kept in 16 bits for nothing",
            )
    bench.check(most[0] >= count, f"{model.name}: {dtype}: only {most[0]} values are kept so")
    return most[1]


def run(bench, model, so, what):
    log, grads = bench.path("log.jsonl"), bench.path("grads.safetensors")
    if not bench.must(
        bench.ckrun(so, "--inputs", model.inputs, "--steps", 1, "--log", log, "--grads", grads),
        what,
    ):
        return None, None
    return ck.losses(log), compare.load(grads)


def compiled(bench, model, budget, *more):
    so = bench.path("model.so")
    bench.must(
        model.ckc("-o", so, *(["--memory-budget", budget] if budget else []), *more),
        f"{model.name}: {budget} {more}",
    )
    return so


def trains(bench, model, dtype, budget, loss, error_of):
    so, what = (
        compiled(bench, model, budget, "--save-dtype", dtype),
        f"{model.name}: {dtype}: {budget} B",
    )
    got, grads = run(bench, model, so, what)
    if not got or not bench.check(loss in (None, got), f"{what}: first loss {got}, not {loss}"):
        return
    errors, (least, most) = error_of(grads), ERROR[dtype]
    bench.check(least < np.median(errors) < most, f"{what}: median error {np.median(errors):.2e}")
    done = bench.ckrun(so, "--inputs", model.inputs, "--steps", 1, "--check")
    found = CHECK.search(done.stdout)
    if bench.check(
        done.returncode == 0 and found,
        f"{what}: --check: {done.stdout[-300:]} {done.stderr[-300:]}",
    ):
        whole, median, largest = (float(x) for x in found.groups()[1:])
        bench.check(
            int(found[1]) > 1 and least / 3 < median <= largest and 0 < whole < 3 * most,
            f"{what}: --check: {found[0]}",
        )


def unchanged(bench, model, full):
    """Where everything fits generated code is the same with the flag and without it; the loss of a
    step, and its gradients."""
    code = []
    for more in ([], ["--save-dtype", "bf16"]):
        folder = bench.path(f"code{len(more)}")
        so = compiled(bench, model, full["peak_bytes"], "--emit-c", folder, *more)
        code.append([ck.content(os.path.join(folder, f)) for f in ("model.c", "kernels.c")])
    bench.check(code[0] == code[1], f"{model.name}: the flag changes a plan that keeps everything")
    return run(bench, model, so, model.name)


def transformer(bench):
    flags, _ = ck.model_flags(TRANSFORMER)
    model = Model(
        bench, "transformer", TRANSFORMER + ".onnx", flags, TRANSFORMER + ".inputs.safetensors"
    )
    ref = compare.load(TRANSFORMER + ".ref.safetensors")
    want = {k[5:]: v.astype(float) for k, v in ref.items() if k.startswith("grad.")}

    def error_of(grads):
        return [
            np.linalg.norm(grads[k].astype(float) - v) / np.linalg.norm(v)
            for k, v in want.items()
            if np.linalg.norm(v) > 1e-6
        ]

    budget = sweep(bench, model, "bf16", model.plan(None)["summary"], model.least(), (0.3,), 8)
    trains(bench, model, "bf16", budget, None, error_of)


def beside(bench, model, flags):
    """A budget at which something is kept in 16 bits, beside other flags."""
    full, least = model.plan(None, *flags)["summary"]["peak_bytes"], model.least(*flags)
    kept = 0
    for part in (4, 2, 10):
        if not kept:
            budget = least + (full - least) // part
            kept = model.plan(budget, "--save-dtype", "bf16", *flags)["summary"].get(
                "half_count", 0
            )
    bench.check(kept > 0, f"{model.name}: {flags}: nothing is kept in 16 bits")
    return budget


def patches(y):
    """[images, places, channels * 9] of [images, channels, SIDE, SIDE], zeros around."""
    wide = np.pad(y, ((0, 0), (0, 0), (1, 1), (1, 1)))
    cut = [wide[:, :, i : i + SIDE, j : j + SIDE] for i in range(3) for j in range(3)]
    return np.stack(cut, 2).reshape(len(y), -1, SIDE * SIDE).transpose(0, 2, 1)


def unpatched(p, channels):
    wide = np.zeros((len(p), channels, SIDE + 2, SIDE + 2))
    for k, part in enumerate(
        p.transpose(0, 2, 1).reshape(len(p), channels, 9, SIDE, SIDE).transpose(2, 0, 1, 3, 4)
    ):
        wide[:, :, k // 3 : k // 3 + SIDE, k % 3 : k % 3 + SIDE] += part
    return wide[:, :, 1:-1, 1:-1]


def net_gradients(x, weights):
    """Of mean(y^2) of y = tanh(conv(..tanh(conv(x)))), in float64."""
    kept, y = [], x
    for w in weights:
        p = patches(y)
        y = np.tanh(p @ w.reshape(len(w), -1).T).transpose(0, 2, 1).reshape(len(x), -1, SIDE, SIDE)
        kept.append((p, y))
    d, out = 2 * y / y.size, []
    for w, (p, y) in zip(reversed(weights), reversed(kept)):
        z = (d * (1 - y * y)).reshape(len(x), len(w), -1).transpose(0, 2, 1)
        out.insert(0, np.einsum("npo,npk->ok", z, p).reshape(w.shape))
        d = unpatched(z @ w.reshape(len(w), -1), w.shape[1])
    return out


def net(bench):
    rng = np.random.default_rng(7)
    x = rng.standard_normal((4, CHANNELS, SIDE, SIDE)).astype("f4")
    weights = [
        (rng.standard_normal((CHANNELS, CHANNELS, 3, 3)) / 10).astype("f4") for _ in range(LAYERS)
    ]
    nodes, y = [], "x"
    for i in range(LAYERS):
        nodes += [
            wire.node("Conv", [y, f"m.{i}.weight"], f"z{i}", pads=[1, 1, 1, 1]),
            wire.node("Tanh", [f"z{i}"], f"y{i}"),
        ]
        y = f"y{i}"
    nodes += [wire.node("Mul", [y, y], "yy"), wire.node("ReduceMean", ["yy"], "loss", keepdims=0)]
    path, inputs = bench.path("net.onnx"), bench.path("net.safetensors")
    with open(path, "wb") as f:
        f.write(
            wire.graph(
                nodes,
                [wire.floats(f"m.{i}.weight", w.shape, w.ravel()) for i, w in enumerate(weights)],
                {"x": (1, x.shape)},
                ["loss"],
            )
        )
    files.st_write(inputs, {"x": ("F32", x.shape, x.ravel())})
    want = net_gradients(x.astype(float), [w.astype(float) for w in weights])

    def error_of(grads):
        return [
            np.linalg.norm(grads[f"m.{i}.weight"] - w) / np.linalg.norm(w)
            for i, w in enumerate(want)
        ]

    model = Model(bench, "net", path, ["--loss", "loss"], inputs)
    full, least = model.plan(None)["summary"], model.least()
    loss, grads = unchanged(bench, model, full)
    bench.check(max(error_of(grads)) < 1e-5, f"net: float32's error {max(error_of(grads)):.2e}")
    for dtype in ERROR:
        trains(
            bench,
            model,
            dtype,
            sweep(bench, model, dtype, full, least, (1.0, 0.6, 0.3), 2),
            loss,
            error_of,
        )
    for flags in (["--grad-accum", 2], ["--dtype", "f32"]):
        beside(bench, model, flags)
    for flags in (
        ["--tp", 2],
        ["--update-in-backward", "off"],
        ["--dtype", "bf16", "--precision", "op:tanh=f32"],
    ):
        budget = beside(bench, model, flags)
        so = compiled(bench, model, budget, "--save-dtype", "bf16", *flags)
        done = bench.ckrun(so, "--inputs", model.inputs, "--steps", 1, "--check")
        bench.check(
            done.returncode == 0 and CHECK.search(done.stdout),
            f"{flags}: --check: {done.stdout[-300:]} {done.stderr[-300:]}",
        )


def overflow(bench):
    """Squares of products beyond 65504, which f16 does not hold: --check tells of gradients that
    are no numbers."""
    n, rng = 64, np.random.default_rng(5)
    body, h = "", "x"
    for i in range(LAYERS):
        body += (
            f"\tparam %w{i}: f32[{n},{n}] = splat 0\n\t%y{i} = matmul %{h}, %w{i}\n\t%q{i} = mul %y{i}, %y{i}\n"
            f"\t%h{i} = mul %q{i}, %c\n"
        )
        h = f"h{i}"
    path, inputs, init = (
        bench.path("squares.ck"),
        bench.path("squares.safetensors"),
        bench.path("squares.init.safetensors"),
    )
    with open(path, "w", encoding="utf-8") as f:
        f.write(
            f"graph @squares {{\n\tinput %x: f32[{n},{n}]\n\tinput %c: f32[]\n{body}"
            f"\t%loss: f32[] output = reduce_mean %{h} {{axes=[0,1], keepdims=0}}\n\tloss %loss\n}}\n"
        )
    x = (1e5 * rng.standard_normal((n, n))).astype("f4")
    files.st_write(
        inputs, {"x": ("F32", x.shape, x.ravel()), "c": ("F32", (), np.array([1e-5], "f4"))}
    )
    files.st_write(
        init,
        {
            f"w{i}": ("F32", (n, n), (rng.standard_normal(n * n) / 8).astype("f4"))
            for i in range(LAYERS)
        },
    )
    model = Model(bench, "squares", path, [], inputs)
    least = model.least()
    budget = least + (model.plan(None)["summary"]["peak_bytes"] - least) // 3
    so = compiled(bench, model, budget, "--save-dtype", "f16")
    done = bench.ckrun(
        so, "--inputs", inputs, "--init", init, "--steps", 1, "--check", "--on-nan", "go", "--lr", 0
    )
    bench.check(
        done.returncode == 1 and "gradients differ" in done.stderr,
        f"squares: --check: {done.stdout[-300:]} {done.stderr[-300:]}",
    )


def main():
    bench = ck.Bench()
    overflow(bench)
    net(bench)
    transformer(bench)
    bench.finish()


if __name__ == "__main__":
    main()
