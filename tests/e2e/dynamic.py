#!/usr/bin/env python3
"""ckc.torch.export(dynamic=...): one file serves several batch sizes and lengths.

dynamic.py CKC CKRUN [CASE...]

Each file is compiled at sizes above those of the example and of the export's proof, and trains two
steps; losses and parameters are compared with the module's in float64.  Modules that bake a size
are refused with its name.  Without torch, the test is skipped.
"""

import os
import sys
import warnings

import ck

sys.path.insert(0, os.path.join(ck.HERE, "..", "..", "frontend", "python"))
try:
    import modules
    import torch
    from torch import nn
    from torch.nn import functional as F
except ImportError:
    print("dynamic: no torch")
    sys.exit(77)

randn, randint = torch.randn, torch.randint
BOTH, DYNAMO = (False, True), (True,)


class Encoder(nn.Module):
    """As BERT: positions, a mask of padding, blocks of attention."""

    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(20, 16), nn.Embedding(32, 16)
        layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.1, batch_first=True)
        self.blocks, self.out = nn.TransformerEncoder(layer, 2), nn.Linear(16, 5)

    def forward(self, ids, mask, labels):
        h = self.words(ids) + self.places(torch.arange(ids.shape[1]))
        h = self.blocks(h, src_key_padding_mask=mask == 0)
        return F.cross_entropy(self.out(h.mean(1)), labels)


class Decoder(nn.Module):
    """As GPT: positions cut from a table, a causal mask, a loss for each token."""

    def __init__(self, n=16, heads=2):
        super().__init__()
        self.words, self.places = nn.Embedding(20, n), nn.Parameter(randn(32, n) / 3)
        self.heads, self.norm = heads, nn.LayerNorm(n)
        self.qkv, self.out = nn.Linear(n, 3 * n), nn.Linear(n, 20)

    def forward(self, ids, labels):
        n, t = ids.shape
        h = self.words(ids) + self.places[:t]
        q, k, v = (
            x.reshape(n, t, self.heads, -1).transpose(1, 2)
            for x in self.qkv(self.norm(h)).chunk(3, -1)
        )
        z = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        z = self.out(h + z.transpose(1, 2).reshape(n, t, -1))
        return F.cross_entropy(z.flatten(0, 1), labels.flatten())


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn, self.out = nn.LSTM(6, 8, batch_first=True), nn.Linear(8, 5)

    def forward(self, x, labels):
        return F.cross_entropy(self.out(self.rnn(x)[0].mean(1)), labels)


class Classified(nn.Module):
    def __init__(self, *layers):
        super().__init__()
        self.layers = nn.Sequential(*layers)

    def forward(self, x, labels):
        return F.cross_entropy(self.layers(x), labels)


def mlp():
    return Classified(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 5))


def cnn():
    return Classified(
        nn.Conv2d(3, 6, 3),
        nn.BatchNorm2d(6),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(6, 5),
    )


def labels(n):
    return randint(0, 5, (n,))


def tokens(n, t):
    return randint(0, 20, (n, t))


def padded(n, t):
    return tokens(n, t), (torch.arange(t) < randint(2, t + 1, (n, 1))).long(), labels(n)


ROWS = {0: "batch", 1: "length"}
# name: module, batch of a size, dynamic, exporters; True: TorchScript's bakes the length
CASES = {
    "mlp": (mlp, lambda n, t: (randn(n, 6), labels(n)), "batch", DYNAMO),
    "cnn": (cnn, lambda n, t: (randn(n, 3, 6, 6), labels(n)), "batch", (False,)),
    "encoder": (Encoder, padded, {"ids": ROWS, "mask": ROWS, "labels": {0: "batch"}}, (None,)),
    "encoder_rows": (Encoder, lambda n, t: padded(n, 7), "batch", (False,)),
    "decoder": (Decoder, lambda n, t: (tokens(n, t), tokens(n, t)), {"ids": ROWS, "labels": ROWS}),
    "lstm": (
        Recurrent,
        lambda n, t: (randn(n, t, 6), labels(n)),
        {"x": ROWS, "labels": {0: "batch"}},
    ),
}


def exported(ckc, bench, module, batch, **options):
    path = bench.path("dynamic.onnx")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ckc.torch.export(module, batch, path, **options)
    return path


def serves(bench, ckc, name):
    make, batch, dynamic, exporters = (*CASES[name], BOTH)[:4]
    for dynamo in exporters:
        if dynamo is not False and not modules.onnxscript:
            continue
        torch.manual_seed(0)
        module = make()
        path = exported(ckc, bench, module, batch(4, 7), dynamic=dynamic, dynamo=dynamo)
        batches = [batch(9, 12) for _ in range(2)]
        dim = {"batch": 9} if dynamic == "batch" else {"batch": 9, "length": 12}
        trains(bench, ckc, path, module, batches, dim, f"{name}, dynamo={dynamo}")


def trains(bench, ckc, path, module, batches, dim, what):
    losses = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = ckc.compile(path, optimizer="sgd", dropout="off", dim=dim)
    with ckc.Trainer(model, lr=0.05, weight_decay=0.0) as t:
        for values in batches:
            losses.append(t.step(**ckc.torch._named(module, values)))
        state = t.state_dict()
    exact, after = modules.reference(module, batches, 0.05)
    near = all(abs(x - y) < 1e-5 * abs(y) for x, y in zip(losses, exact))
    bench.check(near, f"{what}: losses {losses}, expected {exact}")
    before = dict(module.named_parameters())
    for key, p in after.named_parameters():
        moved = float((p.detach() - before[key].detach()).norm())
        off = float((torch.from_numpy(state[key]) - p.detach()).norm())
        bench.check(off < 1e-3 * moved + 1e-6, f"{what}: {key} is off by {off} of {moved}")


class Baked(nn.Module):
    """A number from the example's size, in a way that forward or the exporter takes for any."""

    def __init__(self, how):
        super().__init__()
        self.how, self.out = how, nn.Linear(6, 5)

    def forward(self, x, labels):
        if self.how == "view":
            x = x.view(4, -1, 6)
        elif self.how == "int":
            x = x / int(x.shape[0])
        elif self.how == "len":
            x = x * len(x[0])
        return F.cross_entropy(self.out(x).mean(1), labels)


class Halves(nn.Module):
    """Takes even lengths only."""

    def __init__(self):
        super().__init__()
        self.out = nn.Linear(12, 5)

    def forward(self, x, labels):
        if x.shape[1] % 2:
            raise ValueError("expected an even length")
        x = x.reshape(x.shape[0], -1, 12)
        return F.cross_entropy(self.out(x).mean(1), labels)


OPEN = {"x": ROWS, "labels": {0: "batch"}}
ONLY = {"x": {0: "batch"}, "labels": {0: "batch"}}


def sized(n=4, t=6):
    return randn(n, t, 6), labels(n)


# module, dynamic, exporter, what the message has
REFUSED = {
    "view": (Baked("view"), ONLY, False, "the module itself fails at batch=3"),
    "view_dynamo": (Baked("view"), ONLY, True, "static shape of 4"),
    "int": (
        Baked("int"),
        OPEN,
        False,
        "example's size of 'batch': at batch=3, length=5",
        "node '/Div' (Div) in the module itself",
    ),
    "len": (Baked("len"), OPEN, False, "leave 'length' out of dynamic"),
    "even": (Halves(), OPEN, False, "expected an even length; try: verify=BATCH"),
}


def refuses(bench, ckc, name):
    torch.manual_seed(0)
    module, dynamic, dynamo, *parts = REFUSED[name]
    if dynamo and not modules.onnxscript:
        return
    try:
        exported(ckc, bench, module, sized(), dynamic=dynamic, dynamo=dynamo)
        bench.check(False, f"{name}: exported")
    except ckc.Error as e:
        bench.check(all(x in str(e) for x in parts), f"{name}: {e}")
        bench.check("no node is named" not in str(e), f"{name}: {e}")
    bench.check(not os.path.exists(bench.path("dynamic.onnx")), f"{name}: the file is there")


def given(bench, ckc):
    """A batch of other sizes, for a module that does not take all."""
    torch.manual_seed(0)
    module = Halves()
    path = exported(ckc, bench, module, sized(), dynamic=OPEN, verify=sized(3, 8), dynamo=False)
    batches = [sized(5, 10) for _ in range(2)]
    trains(bench, ckc, path, module, batches, {"batch": 5, "length": 10}, "given")


def arguments(bench, ckc):
    module = mlp()
    one, four = (randn(1, 6), labels(1)), (randn(4, 6), labels(4))
    for batch, dynamic, kind, message in (
        (one, "batch", ckc.Error, "'batch' is 1 in the example"),
        (four, {"y": {0: "batch"}}, TypeError, "no input 'y'; expected one of x, labels"),
        (four, {"x": {2: "batch"}}, TypeError, "'x' has 2 dimensions, but no axis 2"),
        (four, {"x": "batch"}, TypeError, "'x': expected {axis: name}"),
        (four, {"x": {0: "n", -1: "n"}}, ckc.Error, "'n' is 4 and, in axis 1 of 'x', 6"),
    ):
        try:
            exported(ckc, bench, module, batch, dynamic=dynamic)
            bench.check(False, f"arguments: exported with {dynamic}")
        except kind as e:
            bench.check(message in str(e), f"arguments: {e}")


def draws(bench, ckc):
    """Random draws are compared at one size, with a warning; the file serves others."""

    class Noisy(nn.Module):
        def __init__(self):
            super().__init__()
            self.out = nn.Linear(6, 5)

        def forward(self, x, labels):
            return F.cross_entropy(self.out(x + 0.1 * torch.randn_like(x)), labels)

    torch.manual_seed(0)
    path = bench.path("dynamic.onnx")
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        module = Noisy()
        ckc.torch.export(module, (randn(4, 6), labels(4)), path, dynamic="batch")
    texts = [str(w.message) for w in found]
    bench.check(any("only one size of dynamic is compared" in x for x in texts), f"draws: {texts}")
    with ckc.Trainer(ckc.compile(path, dim={"batch": 7}), lr=0.1) as t:
        loss = t.step(x=randn(7, 6), labels=labels(7))
    bench.check(0.5 < loss < 5, f"draws: {loss}")


def main():
    bench = ck.Bench()
    os.environ["CKC_HOME"] = os.path.dirname(bench.ckc_path)
    if not os.path.exists(os.path.join(os.environ["CKC_HOME"], "libckr.so")):
        print("dynamic: no libckr.so was built")
        sys.exit(77)
    import ckc
    import ckc.torch

    for table, test in (CASES, serves), (REFUSED, refuses):
        for name in table:
            if not bench.names or name in bench.names:
                test(bench, ckc, name)
    for test in given, arguments, draws:
        if not bench.names or test.__name__ in bench.names:
            test(bench, ckc)
    bench.finish()


if __name__ == "__main__":
    main()
