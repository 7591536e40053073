"""The models of GPT's shape that are compiled, checked and timed."""

import collections

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


def timed_models(o):
    return [SMALL] if o.emulated else [FULL, XL]
