"""The models that are compiled, checked and timed."""

import collections
import os

from work import MODELS, ck

VOCAB = 50257
# name; gpt's flags; ckc's flags; sequences and tokens of a step
Gpt = collections.namedtuple("Gpt", "name shape flags batch seq vocab")


def tiny(dtype):
    return Gpt(
        f"tiny-{dtype}",
        ["--layers", 1, "--hidden", 32, "--heads", 2],
        ["--dtype", dtype],
        2,
        32,
        65,
    )


FULL = Gpt("gpt2-124M", ["--model", "gpt2", "--dropout", 0], ["--dtype", "bf16"], 64, 1024, VOCAB)
# one sequence of the same model, which a CPU can train, too
ONE = [
    Gpt(f"gpt2-124M-one-{t}", FULL.shape, ["--dtype", t], 1, FULL.seq, VOCAB)
    for t in ("f32", "bf16")
]
XL = Gpt("gpt2-1.5B", ["--model", "gpt2-xl", "--dropout", 0], ["--dtype", "bf16"], 16, 1024, VOCAB)
SMALL = Gpt(
    "small",
    ["--layers", 2, "--hidden", 64, "--heads", 2, "--dropout", 0],
    ["--dtype", "bf16"],
    2,
    64,
    65,
)
DTYPES = ("f32", "bf16", "f16")
# models of tests/models, one of each family
FAMILIES = (
    "mlp-mse",
    "gpt2-ts14",
    "llama-dynamo",
    "bert-cls-dynamo",
    "resnet-dynamo-bn",
    "unet-dynamo",
)
# Losses of a GPU and of a CPU differ at most by this, relative to the loss.
F32_LIMIT, HALF_LIMIT = 2e-4, 2e-2

# A model whose first losses are known.  model: a function that makes ckc's input; flags: ckc's;
# feed: ckrun's, for data; limit: of the losses' relative difference.
Case = collections.namedtuple("Case", "name model flags feed limit")


def gpt_case(w, gpt):
    limit = F32_LIMIT if "f32" in gpt.flags else HALF_LIMIT
    return Case(gpt.name, lambda: w.onnx(gpt), ["--loss", "loss", *gpt.flags], w.feed(gpt), limit)


def family_case(name):
    stem = os.path.join(MODELS, name)
    inputs = ["--inputs", stem + ".inputs.safetensors"]
    return Case(name, lambda: stem + ".onnx", ck.model_flags(stem)[0], inputs, F32_LIMIT)


def cases(w):
    """Models whose losses are compared with the CPU's, the smallest first."""
    small = [gpt_case(w, tiny(t)) for t in (DTYPES[:1] if w.o.quick else DTYPES)]
    small += [family_case(name) for name in (FAMILIES[:1] if w.o.quick else FAMILIES)]
    return small + ([] if w.o.emulated else [gpt_case(w, g) for g in ONE])


def timed_models(o):
    """The first is in a bundle."""
    if o.emulated:
        return [SMALL]
    return [FULL] if o.bundle else [FULL, XL]
