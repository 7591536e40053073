#!/usr/bin/env python3
"""Make the files in exports/: what PyTorch's exporters write of small modules, each with one kind
of silent damage.

    exports.py OUT

Needs torch and onnx, unlike the test that reads the files (check_warnings.py).  Names of nodes'
sources are taken out.
"""

import os
import sys
import warnings

import onnx
import torch
from torch import nn

warnings.filterwarnings("ignore")
BATCH = {"x": {0: "batch"}}


class Module(nn.Module):
    """The loss is the mean square of what `body` gives."""

    def forward(self, x):
        y = self.body(x)
        return (y * y).mean()


class Plain(Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(8, 16), nn.Linear(16, 4)

    def body(self, x):
        return self.b(torch.relu(self.a(x)))


class Baked(Module):
    """A Python number where an extent of x should be."""

    def __init__(self):
        super().__init__()
        self.a = nn.Linear(8, 8)

    def body(self, x):
        return self.a(x).reshape(int(x.shape[0]), 2, int(x.shape[1]), 4)


class State(Module):
    """A first state for the batch of the example."""

    def __init__(self):
        super().__init__()
        self.r = nn.LSTM(8, 8, batch_first=True)

    def body(self, x):
        h = torch.zeros(1, 2, 8)
        return self.r(x, (h, h))[0]


class Positions(Module):
    def __init__(self):
        super().__init__()
        self.e, self.p, self.l = nn.Embedding(20, 8), nn.Embedding(64, 8), nn.Linear(8, 8)

    def body(self, x):
        return self.l(self.e(x) + self.p(torch.arange(x.shape[1])[None]))


class Sines(Module):
    def __init__(self):
        super().__init__()
        t = torch.arange(16)[:, None] * torch.exp(torch.arange(4) * -2.0)[None]
        self.pos = nn.Parameter(torch.cat([t.sin(), t.cos()], 1), requires_grad=False)
        self.l = nn.Linear(8, 8)

    def body(self, x):
        return self.l(x + self.pos)


class Temperature(Module):
    def __init__(self):
        super().__init__()
        self.t, self.l = nn.Parameter(torch.tensor([0.5, 0.7, 1.0, 2.0])), nn.Linear(8, 4)

    def body(self, x):
        return self.l(x) * self.t.exp()


class Tied(Module):
    def __init__(self):
        super().__init__()
        self.e, self.l = nn.Embedding(20, 8), nn.Linear(8, 20, bias=False)
        self.l.weight = self.e.weight

    def body(self, x):
        return self.l(self.e(x))


class Norms(Module):
    def __init__(self):
        super().__init__()
        self.n, self.m, self.l = nn.LayerNorm(8), nn.LayerNorm(8), nn.Linear(8, 8)

    def body(self, x):
        return self.m(self.l(self.n(x)))


class Image(Module):
    def __init__(self, affine=True):
        super().__init__()
        self.c, self.b = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4, affine=affine)

    def body(self, x):
        return self.b(self.c(x)).relu()


class Attention(Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(8, 24)

    def body(self, x):
        q, k, v = self.l(x)[:, None].chunk(3, -1)
        return nn.functional.scaled_dot_product_attention(q, k, v, dropout_p=0.1)


class ClassToken(Module):
    """One parameter for each row of the batch, in front of a sequence."""

    def __init__(self, fresh):
        super().__init__()
        self.cls, self.l = (
            nn.Parameter(torch.zeros(1, 1, 8) if fresh else torch.randn(1, 1, 8)),
            nn.Linear(8, 8),
        )

    def body(self, x):
        return self.l(torch.cat([self.cls.expand(x.shape[0], -1, -1), x], 1))


class Tables(Module):
    """Constants that are none of the parameters: sines, a mask, frequencies, a first state."""

    def __init__(self):
        super().__init__()
        self.l, self.r = nn.Linear(8, 8), nn.GRU(8, 8, batch_first=True)

    def body(self, x):
        t = torch.arange(6)[:, None] * torch.exp(torch.arange(4) * -2.0)[None]
        y = self.l(x + torch.cat([t.sin(), t.cos()], 1)) * 2.0 ** -torch.arange(8)
        y = y * (torch.arange(6)[:, None] > torch.arange(8)[None])
        return self.r(y, torch.zeros(1, 2, 8))[0]


class Beside(Module):
    """Sines, or rows of a table expanded over the batch, added to an embedding."""

    def __init__(self, sines):
        super().__init__()
        self.e, self.p, self.l, self.sines = (
            nn.Embedding(20, 8),
            nn.Embedding(64, 8),
            nn.Linear(8, 8),
            sines,
        )

    def body(self, x):
        t = torch.arange(12)[:, None] * torch.exp(torch.arange(4) * -2.0)[None]
        rows = (
            torch.cat([t.sin(), t.cos()], 1)
            if self.sines
            else self.p(torch.arange(12)).expand(x.shape[0], -1, -1)
        )
        return self.l(self.e(x) + rows)


class Adapted(Module):
    """A frozen layer with a low-rank one beside it."""

    def __init__(self):
        super().__init__()
        self.base, self.lora_A, self.lora_B = (
            nn.Linear(8, 8),
            nn.Linear(8, 2, bias=False),
            nn.Linear(2, 8, bias=False),
        )
        self.base.requires_grad_(False)

    def body(self, x):
        return self.base(x) + self.lora_B(self.lora_A(x))


class Smoothing(nn.Module):
    """The exporter drops the smoothing of labels."""

    def __init__(self, amount):
        super().__init__()
        self.l, self.amount = nn.Linear(8, 5), amount

    def forward(self, x):
        return nn.functional.cross_entropy(
            self.l(x), (x[:, 0] > 0).long(), label_smoothing=self.amount
        )


class Shared(nn.Module):
    """A norm that is called twice is one, whatever names a tied weight (dynamo) or folding loses;
    another one of the same contents is merged."""

    def __init__(self, more):
        super().__init__()
        self.e, self.n, self.m = (
            nn.Embedding(20, 8),
            nn.LayerNorm(8),
            nn.LayerNorm(8) if more else None,
        )
        self.h = nn.Linear(8, 20, bias=False)
        self.h.weight = self.e.weight

    def forward(self, ids):
        x = self.e(ids)
        x = x + torch.tanh(self.n(x))
        x = x + torch.tanh(self.n(x))
        for _ in range(2 if self.m else 0):
            x = x + torch.tanh(self.m(x))
        return self.h(x).square().mean()


class Divided(nn.Module):
    """A loss over a number that the exporter computes of constants: nothing is lost."""

    def __init__(self):
        super().__init__()
        self.l = nn.Linear(8, 4)

    def forward(self, x):
        return self.l(x).pow(2).sum() / torch.arange(9.0).sum()


class Penalised(nn.Module):
    """A penalty on a parameter that the loss uses elsewhere, too: folding makes a number of it.
    The other terms are no penalties."""

    def __init__(self):
        super().__init__()
        self.l = nn.Linear(8, 8)

    def forward(self, x):
        return (
            0.5 * (self.l(x).square().mean() + 1.25) + 0.01 * self.l.weight.square().sum()
        ).reshape(()) - 2.5


class Computed(nn.Module):
    """What is computed of parameters that are used elsewhere, too: folding makes constants of it,
    here a number, a mask (as its contents look) and a weight."""

    def __init__(self):
        super().__init__()
        self.l = nn.Linear(8, 8, bias=False)
        self.v = nn.Parameter(torch.eye(8)[0])

    def forward(self, x):
        w = self.l.weight
        h = x @ w * w.norm() + x * self.v + torch.tanh(x) * (self.v * 2)
        return (h + nn.functional.linear(x, w * w)).square().mean()


class Towers(nn.Module):
    """One table read twice, a temperature that folding makes a number of, and a factor of 1 that is
    left out: the reads must not hide that the file lacks them."""

    def __init__(self):
        super().__init__()
        self.e, self.l, self.t = (
            nn.Embedding(20, 8),
            nn.Linear(8, 8),
            nn.Parameter(torch.tensor(1.2)),
        )
        self.one = nn.Parameter(torch.ones(()))

    def forward(self, x):
        u, v = self.e(x[:, 0]) * self.one, self.l(self.e(x[:, 1]))
        return (torch.log_softmax(u @ v.T * self.t.exp(), -1)).diagonal().mean().neg()


class Nested(nn.Module):
    """A factor of 1, which the exporter leaves out, beside a parameter further inside that is
    called alike."""

    def __init__(self, inner=None):
        super().__init__()
        self.l = inner or nn.Linear(8, 8)
        self.scale = nn.Parameter(torch.ones(()) if inner else torch.rand(8) + 1)

    def forward(self, x):
        return self.l(x) * self.scale


class Factors(Module):
    def __init__(self):
        super().__init__()
        self.m = Nested(Nested())

    def body(self, x):
        return self.m(x)


class Siamese(Module):
    """A layer called twice, too large for the exporter to see that what it makes of the weight is
    one: a copy for each call."""

    def __init__(self):
        super().__init__()
        self.l = nn.Linear(40, 40)

    def body(self, x):
        return self.l(torch.tanh(self.l(x)))


class Padding(nn.Module):
    """The exporter drops padding_idx; 2 is the row of the first table, the second has none."""

    def __init__(self):
        super().__init__()
        self.e, self.f = nn.Embedding(20, 8, padding_idx=2), nn.Embedding(20, 8)

    def forward(self, ids):
        return (self.e(ids) * self.f(ids)).square().mean()


class Frequency(nn.Module):
    """The exporter drops scale_grad_by_freq; the second table has none."""

    def __init__(self):
        super().__init__()
        self.e, self.f = (
            nn.Embedding(20, 8, scale_grad_by_freq=True),
            nn.Embedding(20, 8, sparse=True),
        )

    def forward(self, ids):
        return (self.e(ids) * self.f(ids)).square().mean()


class Detached(Module):
    """The exporter makes copies of detach(): of the input, where nothing is lost, or of a layer's
    output."""

    def __init__(self, layer):
        super().__init__()
        self.l, self.layer = nn.Linear(8, 8), layer

    def body(self, x):
        y = self.l(x if self.layer else x.detach())
        return y * y.detach() if self.layer else y


class Buffers(nn.Module):
    """Sines of positions with an axis for the batch, and weights of classes: buffers, as
    TorchScript does not say."""

    def __init__(self):
        super().__init__()
        self.l = nn.Linear(8, 5)
        at = torch.arange(16.0)[:, None] / 100.0 ** (torch.arange(4) / 4.0)
        self.register_buffer("pe", torch.stack([at.sin(), at.cos()], -1).reshape(1, 16, 8))
        self.loss = nn.BCEWithLogitsLoss(
            weight=torch.tensor([1.0, 2, 3, 4, 5]), pos_weight=torch.tensor([5.0, 4, 3, 2, 1])
        )
        self.register_buffer("shift", torch.tensor([0.1, 0.2, 0.3, 0.4, 0.5]))

    def forward(self, x):
        y = self.l(x + self.pe)
        return self.loss(y + self.shift, (x[..., :5] > 0).float())


class Fixed(Module):
    """Buffers in the places of weights: a graph's neighbours, a bank of filters, a kernel, a code
    book; one matrix is a parameter."""

    def __init__(self):
        super().__init__()
        self.register_buffer("adj", torch.softmax(torch.randn(6, 6), -1))
        self.register_buffer("bank", torch.rand(8, 4))
        self.register_buffer("kernel", torch.randn(4, 1, 3))
        self.l = nn.Linear(4, 4)
        self.l.register_buffer("codes", torch.randn(3, 4))
        self.mix_weight = nn.Parameter(torch.randn(4, 4))

    def body(self, x):
        y = self.adj @ (x @ self.bank) @ self.mix_weight
        y = self.l(y) @ self.l.codes.T @ self.l.codes
        return nn.functional.conv1d(y.transpose(1, 2), self.kernel, groups=4)


def save(out, name, folded=False):
    """folded: with the optimizer's notes of what it computed, which earlier ones did not write."""
    path = os.path.join(out, name + ".onnx")
    model = onnx.load(path)
    for node in model.graph.node:
        calls = [
            p
            for p in node.metadata_props
            if p.key == "pkg.torch.onnx.fx_node"
            and node.op_type
            in ("SoftmaxCrossEntropyLoss", "Gather", "Identity", "LayerNormalization")
        ]
        del node.metadata_props[:]
        node.metadata_props.extend(calls)
        node.ClearField("doc_string")
    for value in list(model.graph.value_info) + list(model.graph.input) + list(model.graph.output):
        notes = [
            p
            for p in value.metadata_props
            if folded and p.key == "pkg.onnxscript.optimizer.folded_from"
        ]
        del value.metadata_props[:]
        value.metadata_props.extend(notes)
    onnx.save(model, path)


def torchscript(out, name, module, x, train=True):
    """train False: eval mode and constants folded."""
    mode = torch.onnx.TrainingMode.TRAINING if train else torch.onnx.TrainingMode.EVAL
    torch.onnx.export(
        module.train(train),
        (x,),
        os.path.join(out, name + ".onnx"),
        dynamo=False,
        opset_version=17,
        do_constant_folding=not train,
        training=mode,
        input_names=["x"],
        output_names=["loss"],
        dynamic_axes=BATCH,
    )
    save(out, name)


def dynamo(out, name, module, x, optimize, batch=True, folded=False):
    dims = ({0: torch.export.Dim("batch", min=2, max=64)},) if batch else None
    torch.onnx.export(
        module.train(),
        (x,),
        os.path.join(out, name + ".onnx"),
        dynamo=True,
        optimize=optimize,
        external_data=False,
        verbose=False,
        input_names=["x"],
        output_names=["loss"],
        dynamic_shapes=dims,
    )
    save(out, name, folded)


def by_recipe(out, name, module, x):
    """Batch normalisation exported as docs/exporting.md says."""
    with open(
        os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "exporting.md")
    ) as f:
        recipe = next(
            x for x in f.read().split("```python\n") if "custom_translation_table" in x
        ).split("```")[0]
    path = os.path.join(out, name + ".onnx")
    exec(
        recipe.replace(
            "'model.onnx'",
            "path, external_data=False, verbose=False, input_names=['x'], output_names=['loss']",
        ),
        {"model": module, "args": (x,), "path": path},
    )
    save(out, name)


def main():
    out = sys.argv[1]
    os.makedirs(out, exist_ok=True)
    torch.manual_seed(1)
    flat, cube, image, ids = (
        torch.randn(2, 8),
        torch.randn(2, 6, 8),
        torch.randn(2, 3, 8, 8),
        torch.randint(0, 20, (2, 12)),
    )
    torchscript(out, "ts-plain", Plain(), flat)
    torchscript(out, "ts-baked", Baked(), cube)
    torchscript(out, "ts-baked-state", State(), cube)
    torchscript(out, "ts-positions", Positions(), ids)
    torchscript(out, "ts-sines", Sines(), torch.randn(2, 16, 8))
    torchscript(out, "ts-buffers", Buffers(), torch.randn(2, 16, 8))
    torchscript(out, "ts-fixed", Fixed(), cube)
    torchscript(out, "ts-eval-names", Plain(), cube, train=False)
    torchscript(out, "ts-eval-norms", Norms(), cube, train=False)
    torchscript(out, "ts-eval-tied", Tied(), ids, train=False)
    dynamo(out, "dynamo-plain", Plain(), flat, False)
    dynamo(out, "dynamo-positions", Positions(), ids, False)
    dynamo(out, "dynamo-norms", Norms(), cube, False)
    dynamo(out, "dynamo-batchnorm", Image(), image, False)
    by_recipe(out, "dynamo-recipe-plain", Image(False), image)
    dynamo(out, "dynamo-dropout", Attention(), cube, False)
    dynamo(out, "dynamo-cross-entropy", Smoothing(0.0), flat, False)
    dynamo(out, "dynamo-smoothing", Smoothing(0.1), flat, False)
    dynamo(out, "dynamo-optimized-names", Plain(), cube, True, batch=False)
    dynamo(out, "dynamo-optimized-positions", Positions(), ids, True)
    dynamo(out, "dynamo-optimized-norms", Norms(), cube, True)
    dynamo(out, "dynamo-optimized-tied", Tied(), ids, True)
    dynamo(out, "dynamo-optimized-scale", Temperature(), flat, True)
    dynamo(out, "dynamo-optimized-batchnorm", Image(), image, True)
    dynamo(out, "dynamo-optimized-token", ClassToken(False), cube, True, batch=False)
    dynamo(out, "dynamo-optimized-fresh-token", ClassToken(True), cube, True, batch=False)
    dynamo(out, "dynamo-optimized-tables", Tables(), cube, True, batch=False)
    dynamo(out, "dynamo-optimized-sines", Beside(True), ids, True, batch=False)
    dynamo(out, "dynamo-optimized-expanded", Beside(False), ids, True, batch=False)
    dynamo(out, "dynamo-shared", Shared(False), ids, False, batch=False)
    dynamo(out, "dynamo-optimized-shared", Shared(True), ids, True, batch=False)
    dynamo(out, "dynamo-optimized-penalty", Penalised(), flat, True)
    dynamo(out, "dynamo-penalty", Penalised(), flat, False)
    dynamo(out, "dynamo-optimized-divided", Divided(), flat, True)
    dynamo(out, "dynamo-optimized-computed", Computed(), flat, True, folded=True)
    dynamo(out, "dynamo-computed", Computed(), flat, False)
    dynamo(out, "dynamo-optimized-towers", Towers(), ids, True, batch=False, folded=True)
    dynamo(out, "dynamo-towers", Towers(), ids, False, batch=False)
    dynamo(out, "dynamo-optimized-factors", Factors(), flat, True)
    dynamo(out, "dynamo-optimized-siamese", Siamese(), torch.randn(2, 6, 40), True, folded=True)
    dynamo(out, "dynamo-padding", Padding(), ids, False)
    dynamo(out, "dynamo-frequency", Frequency(), ids, False)
    dynamo(out, "dynamo-detach", Detached(True), flat, False)
    dynamo(out, "dynamo-detach-input", Detached(False), flat, False)
    dynamo(out, "dynamo-lora", Adapted(), flat, False)


if __name__ == "__main__":
    main()
