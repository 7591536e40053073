#!/usr/bin/env python3
"""ckc.torch.export names the node in which a file parts from its module.

differences.py CKC CKRUN [CASE...]

Files are damaged after the exporter wrote them: one node computes something else, or has another
attribute or constant.  The message must name this node and its submodule, and nothing else.
Exporters also damage files themselves: by a wrong translation, a branch of Python or a lost
gradient.  Without torch, the test is skipped.
"""

import os
import re
import struct
import sys
import unittest.mock
import warnings

import ck

sys.path.insert(0, os.path.join(ck.HERE, "..", "..", "frontend", "python"))
try:
    import torch
    from torch import nn
    from torch.nn import functional as F
except ImportError:
    print("differences: no torch")
    sys.exit(77)
try:
    import onnxscript
except ImportError:
    onnxscript = None

randn, randint = torch.randn, torch.randint
BOTH, DYNAMO = (False, True), (True,)


# ---- modules ----


class Gate(nn.Module):
    """Returns a tuple and a dict."""

    def __init__(self, n):
        super().__init__()
        self.up, self.down = nn.Linear(n, 2 * n), nn.Linear(2 * n, n)

    def forward(self, x):
        h = torch.tanh(self.up(x))
        return self.down(h), {"inner": torch.sigmoid(h)}


class Nested(nn.Module):
    """Blocks in lists in blocks; the first is called twice."""

    def __init__(self, n=6):
        super().__init__()
        self.blocks = nn.ModuleList(
            nn.ModuleDict({"gate": Gate(n), "norm": nn.LayerNorm(n)}) for _ in range(2)
        )
        self.head = nn.Sequential(nn.Linear(n, n), nn.Softplus(), nn.Linear(n, 5))

    def forward(self, x, y):
        for block in [*self.blocks, self.blocks[0]]:
            z, other = block["gate"](x)
            x = block["norm"](x + z * other["inner"].mean())
        return F.cross_entropy(self.head(x), y)


class Plain(nn.Module):
    """No submodules; an integer and a boolean path."""

    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(randn(6, 8) / 3)
        self.table = nn.Parameter(randn(9, 8))

    def forward(self, x, ids):
        h = F.leaky_relu(x @ self.w, 0.2)
        h = h + self.table[(ids * 2 + 1).clamp(max=8)]
        return (torch.where(h > 0.1, h * 0.75, h) - h.softmax(-1)).square().mean()


class Attend(nn.Module):
    def __init__(self, n=8):
        super().__init__()
        self.attention = nn.MultiheadAttention(n, 2, dropout=0.1, batch_first=True)
        self.norm, self.out = nn.LayerNorm(n), nn.Linear(n, 5)

    def forward(self, x, y):
        z, _ = self.attention(x, x, x, need_weights=False)
        return F.cross_entropy(self.out(torch.tanh(self.norm(x + F.dropout(z, 0.2)))[:, -1]), y)


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn, self.out = nn.GRU(6, 8, batch_first=True), nn.Linear(8, 5)

    def forward(self, x, y):
        return F.cross_entropy(self.out(torch.relu(self.rnn(x)[0] + 0.5).mean(1)), y)


def convolutions():
    return nn.Sequential(
        nn.Conv2d(3, 6, 3),
        nn.BatchNorm2d(6),
        nn.ELU(),
        nn.Sequential(nn.Conv2d(6, 4, 3), nn.BatchNorm2d(4), nn.Sigmoid()),
        nn.Flatten(),
        nn.Linear(4, 2),
    )


class Outputs(nn.Module):
    """Outputs for which ckc adds a loss."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(6, 4), nn.Linear(6, 3)

    def forward(self, x):
        return {"left": torch.tanh(self.a(x)), "right": [torch.sigmoid(self.b(x))]}


# ---- damage to a written file ----


def edit(path, change):
    """Rewrite the nodes of a file: change(node, message) returns the new message."""
    from ckc import _file

    with open(path, "rb") as f:
        model = memoryview(f.read())
    with open(path, "wb") as f:
        for number, part in _file._fields(model):
            if number == 7:
                part = b"".join(
                    _file._field(i, change(_file.Node(x), bytes(x)) if i == 1 else x)
                    for i, x in _file._fields(part)
                )
            f.write(_file._field(number, part))


class Damage:
    """Replaces bytes of the k-th node of an operator, and notes its name: another operator, or
    the number of an attribute or a constant."""

    def __init__(self, op, k, old, new):
        self.op, self.k, self.old, self.new, self.name, self.notes = op, k, old, new, None, {}

    def __call__(self, path):
        seen = []

        def change(node, message):
            if node.op != self.op or self.old not in message:
                return message
            seen.append(node.name)
            if len(seen) - 1 != self.k:
                return message
            self.name = node.name
            at = message.rindex(self.old)
            return message[:at] + self.new + message[at + len(self.old) :]

        edit(path, change)


def becomes(op, k, new):
    """The field op_type of a node."""
    old, new = op.encode(), new.encode()
    return lambda: Damage(
        op, k, b"\x22" + bytes([len(old)]) + old, b"\x22" + bytes([len(new)]) + new
    )


def number(op, old, new, k=0):
    return lambda: Damage(op, k, struct.pack("<f", old), struct.pack("<f", new))


def classes(*shape):
    return lambda: (randn(4, *shape), randint(0, 5, (4,)))


# name: module, batch, damage, submodule, its class, exporters
DAMAGED = {
    "nested": (Nested, classes(6), becomes("Tanh", 1, "Sin"), "blocks.1.gate", "Gate", BOTH),
    "again": (Nested, classes(6), becomes("Tanh", 2, "Erf"), "blocks.0.gate", "Gate"),
    "returned": (
        Nested,
        classes(6),
        becomes("Sigmoid", 0, "Tanh"),
        "blocks.0.gate",
        "Gate",
        DYNAMO,
    ),
    "sequence": (Nested, classes(6), becomes("Softplus", 0, "Relu"), "head.1", "Softplus"),
    "epsilon": (
        Nested,
        classes(6),
        number("LayerNormalization", 1e-5, 0.1, 2),
        "blocks.0.norm",
        "LayerNorm",
        DYNAMO,
    ),
    "alone": (Plain, lambda: (randn(4, 6), randint(0, 4, (4,))), number("LeakyRelu", 0.2, 0.3)),
    "integer": (
        Plain,
        lambda: (randn(4, 6), torch.tensor([0, 1, 2, 0])),
        becomes("Add", 0, "Sub"),
    ),
    "compared": (
        Plain,
        lambda: (randn(4, 6), randint(0, 4, (4,))),
        becomes("Greater", 0, "Less"),
        "",
        "",
        DYNAMO,
    ),
    "norm": (Attend, classes(3, 8), becomes("Tanh", 0, "Sin"), "", "", DYNAMO),
    "recurrent": (Recurrent, classes(7, 6), becomes("Relu", 0, "Abs")),
    "activation": (
        convolutions,
        lambda: (randn(3, 3, 5, 5),),
        number("Elu", 1.0, 0.5),
        "2",
        "ELU",
    ),
    "inner": (
        convolutions,
        lambda: (randn(3, 3, 5, 5),),
        becomes("Sigmoid", 0, "HardSigmoid"),
        "3.2",
        "Sigmoid",
    ),
    "outputs": (Outputs, lambda: (randn(4, 6),), becomes("Sigmoid", 0, "Tanh")),
}


def refusal(bench, ckc, module, batch, what, dynamo, **options):
    """The message of an export that must fail."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ckc.torch.export(module, batch, bench.path("file.onnx"), dynamo=dynamo, **options)
    except ckc.Error as e:
        bench.check("no node is named" not in str(e), f"{what}: {e}")
        return str(e)
    bench.check(False, f"{what}: exported")
    return ""


def says(bench, text, what, node, of, kind="first value that the module does not have: "):
    place = f"in {of}" if of else "in the module itself"
    bench.check(f"{kind}node {node} {place}" in text, f"{what}: expected {node} {place}: {text}")


def damaged(bench, ckc, name):
    make, batch, damage, of, kind, exporters = (*DAMAGED[name], "", "", (False,))[:6]
    write = ckc.torch._write
    for dynamo in exporters:
        if dynamo and not onnxscript:
            continue
        torch.manual_seed(1)
        damage_file, what = damage(), f"{name}, dynamo={dynamo}"

        def wrong(module, batch, path, *form, **named):
            done = write(module, batch, path, *form, **named)
            damage_file(path)
            return done

        with unittest.mock.patch.object(ckc.torch, "_write", wrong):
            text = refusal(bench, ckc, make(), batch(), what, dynamo)
        if bench.check(damage_file.name, f"{what}: nothing was damaged"):
            old, new = damage_file.op, re.match(rb'"?.?([A-Z]\w+)', damage_file.new)
            op = new[1].decode() if new and b"\x22" in damage_file.new[:1] else old
            node = f"'{damage_file.name}' ({op})"
            says(bench, text, what, node, f"'{of}' ({kind})" if of else "")


# ---- damage by exporters ----


class Rounded(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return torch.floor(x * 4)

    @staticmethod
    def backward(ctx, g):
        return 4 * g


class Quantizer(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Linear(6, 6)

    def forward(self, x):
        return Rounded.apply(self.scale(x))


class Detached(nn.Module):
    """Gradients flow where the exporter's trace stops them."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(6, 6)

    def forward(self, x):
        h = torch.sin(self.inner(x))
        if torch.jit.is_tracing():
            with torch.no_grad():
                h = h * 1.0
        return h + x


class Branch(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(6, 6)

    def forward(self, x):
        h = self.a(x)
        return h.sin() if x.sum() > 0 else h.cos()


class Around(nn.Module):
    """A submodule in a list, before and after layers that are exported well."""

    def __init__(self, inner, before=None):
        super().__init__()
        self.layers = nn.ModuleList([before or nn.Linear(6, 6), inner, nn.Linear(6, 5)])

    def forward(self, x, y):
        for layer in self.layers:
            x = layer(x)
        return F.cross_entropy(x, y)


GRADIENT = "first gradient that differs, from the loss back: that of the output of "


def straight_through(bench, ckc):
    torch.manual_seed(1)
    what, dynamo = "straight-through", onnxscript is not None
    text = refusal(bench, ckc, Around(Quantizer()), classes(6)(), what, dynamo)
    bench.check(GRADIENT in text, f"{what}: {text}")
    read = re.search(r"read by node '.*' \(Mul\) in 'layers.1' \(Quantizer\)", text)
    bench.check(read, f"{what}: {text}")
    bench.check("try: g + (f - g).detach()" in text, f"{what}: {text}")


def detached(bench, ckc):
    torch.manual_seed(1)
    text = refusal(bench, ckc, Around(Detached()), classes(6)(), "detached", False)
    says(bench, text, "detached", "'/layers.1/Mul' (Mul)", "'layers.1' (Detached)", GRADIENT)
    bench.check(
        "read by node '/layers.1/Round_1' (Round) in 'layers.1'" in text, f"detached: {text}"
    )


def branch(bench, ckc):
    """The batch of the comparison takes another branch than the example."""
    torch.manual_seed(1)
    example, other = classes(6)(), classes(6)()
    example[0].abs_()
    other[0].abs_().neg_()
    module = Around(Branch(), nn.Softsign())
    text = refusal(bench, ckc, module, example, "branch", False, verify=other)
    says(bench, text, "branch", "'/layers.1/Sin' (Sin)", "'layers.1' (Branch)")
    bench.check(re.search(r"near differences.py:\d+", text), f"branch: {text}")
    bench.check("output of 'layers.1': expected norm" in text, f"branch: {text}")


def translation(bench, ckc):
    """A translation of an operation that is wrong."""
    torch.manual_seed(1)
    module, batch = Around(nn.Softsign()), classes(6)()
    symbolic = "aten::abs"
    torch.onnx.register_custom_op_symbolic(symbolic, lambda g, x: g.op("Softplus", x), 17)
    try:
        text = refusal(bench, ckc, module, batch, "translation", False)
    finally:
        torch.onnx.unregister_custom_op_symbolic(symbolic, 17)
    node = "'/layers.1/Softplus' (Softplus)"
    says(bench, text, "translation", node, "'layers.1' (Softsign)")


def statistics(bench, ckc):
    """Only running statistics differ: no value shows it, and no node is claimed."""
    torch.manual_seed(1)
    write = ckc.torch._write

    def wrong(module, batch, path, *form, **named):
        done = write(module, batch, path, *form, **named)
        number("BatchNormalization", 0.9, 0.5)()(path)
        return done

    with unittest.mock.patch.object(ckc.torch, "_write", wrong):
        text = refusal(bench, ckc, convolutions(), (randn(3, 3, 5, 5),), "statistics", False)
    bench.check("buffer '1.running_mean': expected" in text, f"statistics: {text}")
    bench.check("first" not in text, f"statistics: {text}")


def many_values(bench, ckc):
    """A module whose values take too much memory to keep."""
    torch.manual_seed(1)
    with unittest.mock.patch.object(ckc.torch._where, "_LIMIT", 100):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                module = Around(Quantizer())
                ckc.torch.export(module, classes(6)(), bench.path("many.onnx"), dynamo=False)
            bench.check(False, "many values: exported")
        except ckc.Error as e:
            bench.check("does not move" in str(e) and "no node is named: " in str(e), str(e))


def main():
    bench = ck.Bench()
    os.environ["CKC_HOME"] = os.path.dirname(bench.ckc_path)
    if not os.path.exists(os.path.join(os.environ["CKC_HOME"], "libckr.so")):
        print("differences: no libckr.so was built")
        sys.exit(77)
    import ckc
    import ckc.torch

    for name in DAMAGED:
        if not bench.names or name in bench.names:
            damaged(bench, ckc, name)
    for test in straight_through, detached, branch, translation, statistics, many_values:
        if not bench.names or test.__name__ in bench.names:
            test(bench, ckc)
    bench.finish()


if __name__ == "__main__":
    main()
