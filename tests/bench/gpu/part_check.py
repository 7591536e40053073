"""Right on the device: references, bits, budgets, bytes, sanitizers, faults."""

import os

import bits
import check_models
import check_faults
import check_memory
import rounded
from models import DTYPES, tiny
from models import FAMILIES as SMALL_FAMILIES
from part_losses import graph_bits
from work import MODELS, Wrong, as_planned, ck, digest, said, same

# One of each family, and what has kernels of its own.
FAMILIES = SMALL_FAMILIES + (
    "cnn-bn-batch",
    "dlrm-dyn22",
    "crf-ts17",
    "gat-dyn24",
    "attention-bias-dyn23",
    "inception-lrn-ts14",
    "tie-norm-dyn23",
    "scatter-prod-pool-dyn24",
)
HALVES = (
    ("mlp-mse", "on"),
    ("gpt2-logits", "on"),
    ("llama-dynamo", "on"),
    ("cnn-bn-running", "off"),
)
# Own kernels with sums, and no product: what the library of products does is not promised.
ROWS = """graph @rows {
	input %x: i64[24]
	input %labels: i64[24]
	param %table: f32[40,72] = splat 0.25
	param %scale: f32[72] = splat 1.5
	param %bias: f32[72] = splat 0.125
	%a = gather %table, %x {axis=0}
	%b, %mean, %rstd = layernorm %a, %scale, %bias {axis=-1, eps=1e-05}
	%c = softmax %b {axis=1}
	%d = add %b, %c
	%loss: f32[] output, %lse, %den = sce %d, %labels
	loss %loss
}
"""


class Flags:
    """What check_models and rounded ask of their options."""

    def __init__(self, w, flags):
        self.ckc, self.ckrun, self.ref = w.tool("ckc"), w.tool("ckrun"), ref_model(w)
        self.flags, self.stage, self.most = (
            " ".join(str(f) for f in w.target() + list(flags)),
            "fuse",
            1.5,
        )
        self.run_flags = ""
        self.replicas, self.ranks, self.timeout = 1, None, 120


def ref_model(w):
    at = [w.tool(p) for p in ("ref_model", "tests/ref/ref_model")]
    return next((p for p in at if os.access(p, os.X_OK)), at[0])


def in_float32(w, name):
    """Losses, gradients and parameters after ten steps beside those of float64."""
    folder = w.path("check-" + name)
    os.makedirs(folder, exist_ok=True)
    fault = check_models.check(os.path.join(MODELS, name), Flags(w, []), folder)
    if fault:
        raise Wrong(fault)
    return "losses, gradients, parameters agree with float64"


def in_16_bits(w, name, dtype, copies, numbers):
    """First gradients: no further from float64 than 1.5 times what rounding each value costs."""
    o = Flags(w, ["--resident-copies", copies])
    numbers["error"], numbers["of_rounding"] = rounded.errors(o, os.path.join(MODELS, name), dtype)
    fault = rounded.fault(o, dtype, numbers["error"], numbers["of_rounding"])
    text = f"error {numbers['error']:.2e}, rounding alone {numbers['of_rounding']:.2e}"
    if fault:
        raise Wrong(f"{text}: {fault}")
    return text


def text_model(w, name, text):
    path = w.path(name + ".ck")
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    return path


def cpu_bits(w, at, numbers):
    """What is computed element by element has the CPU's bits, updates and random rounding too."""
    flags, name = bits.SETTINGS[at], f"bits-{at}"
    model, data = text_model(w, name, bits.GRAPH.format(shape="33,37")), w.path(name + ".npy")
    bits.np.save(data, bits.np.random.default_rng(1).uniform(-1, 1, (99, 37)).astype("float32"))
    runs = []
    for side, target in ("cpu", []), ("gpu", w.target()):
        so, save = w.path(f"{name}-{side}.so"), w.path(f"{name}-{side}.end")
        w.compile(model, so, *flags, target=target)
        w.must(w.tool("ckrun"), so, "--data", data, "--steps", 3, "--quiet", "--save", save)
        runs.append(ck.content(save))
    numbers["digest"] = digest(runs[1])
    if runs[0] != runs[1]:
        raise Wrong("other parameters than the CPU's after 3 steps")
    return "the CPU's after 3 steps"


def emulated_bits(w, numbers):
    """Own kernels with sums have the bits that their emulation has; under emulation: whatever order
    lanes run in."""
    import optimizers

    model, inputs = text_model(w, "rows", ROWS), w.path("rows.in")
    rng = bits.np.random.default_rng(2)
    optimizers.write_tensors(
        inputs, {"x": rng.integers(0, 40, 24), "labels": rng.integers(0, 72, 24)}
    )
    here, other = w.path("rows.so"), w.path("rows-emulated.so")
    w.compile(model, here)
    w.compile(
        model,
        other,
        target=[
            "--target",
            "cuda",
            "--nvcc",
            os.path.join(check_models.HERE, "..", "cuda", "nvcc"),
        ],
    )
    feed = ["--inputs", inputs]
    got, _ = w.train(here, "rows", *feed)
    numbers["digest"] = digest(*got.values())
    for order in "forwards", "backwards", "shuffled":
        want, _ = w.train(other, "rows-emulated", *feed, CKR_EMULATE_ORDER=order, **w.emulation())
        same(got, want, f"emulated, lanes {order}")
    return "gather, layernorm, softmax, classifier, scatter: those of the emulation, lanes in three orders"


def budgets(w, gpt, numbers):
    """Five budgets: same bits, peaks as planned and within the budget, --check."""
    model, flags = w.onnx(gpt), ["--loss", "loss", *gpt.flags]
    full = w.compile(model, w.path(gpt.name + "-full.so"), *flags)["summary"]["peak_bytes"]
    refused = w.call(
        w.tool("ckc"), model, "-o", w.path("no.so"), *flags, "--memory-budget", "1B", *w.target()
    )
    found = ck.ERRORS.search(refused.stderr)
    if refused.returncode != 1 or not found:
        raise Wrong(f"a budget of one byte: status {refused.returncode}: {said(refused.stderr)}")
    least, want = int(found[1]), None
    for part in 4, 3, 2, 1, 0:
        size = least + (full - least) * part // 4
        so = w.path(f"{gpt.name}-{part}.so")
        plan = w.compile(model, so, *flags, "--memory-budget", size)
        got, rows = w.train(so, f"{gpt.name}-{part}", *w.feed(gpt))
        as_planned(rows[-1]["peak_bytes"], plan)
        if plan["summary"]["peak_bytes"] > size:
            raise Wrong(f"budget {size}: planned {plan['summary']['peak_bytes']}")
        want = want or got
        same(want, got, f"budget {size}")
        w.must(w.tool("ckrun"), so, *w.feed(gpt), "--check", "--steps", 2)
    numbers.update(least=least, full=full)
    return f"from {full} to {least} B: same bits, peaks as planned, --check"


def carry_out(w, rows):
    quick = w.o.quick
    items = [
        (f"float32 {name}", lambda n, m=name: in_float32(w, m))
        for name in (FAMILIES[:2] if quick else FAMILIES)
    ]
    items += [
        (f"{t} {name}", lambda n, m=name, t=t, c=c: in_16_bits(w, m, t, c, n))
        for name, c in HALVES[: 1 if quick else None]
        for t in DTYPES[1:]
    ]
    items += [
        (f"the CPU's bits, {' '.join(bits.SETTINGS[i][1::2])}", lambda n, i=i: cpu_bits(w, i, n))
        for i in range(1 if quick else len(bits.SETTINGS))
    ]
    items += [("the emulation's bits", lambda n: emulated_bits(w, n))]
    models = [tiny(t) for t in (DTYPES[:1] if quick else DTYPES)]
    items += [
        (f"graphs and two runs, {g.name}", lambda n, g=g: graph_bits(w, g, n)) for g in models
    ]
    items += [
        (f"five budgets, {g.name}", lambda n, g=g: budgets(w, g, n))
        for g in (models if not quick else [])
    ]
    items += check_faults.items(w, models[0]) + check_memory.items(w, models[0])
    for g in models:  # libraries that several items use
        w.library(g)
        w.tokens(g.vocab)
    alone = [x for x in items if x[0] in check_memory.ALONE]
    rows.put(planned=[name for name, _ in alone])
    rows.carry_out_all(
        [x for x in items if x not in alone], 1 if w.o.emulated else min(8, os.cpu_count() or 1)
    )
    rows.carry_out_all(alone)
