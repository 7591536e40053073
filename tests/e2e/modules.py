#!/usr/bin/env python3
"""ckc.torch: modules of PyTorch are exported, proved and trained, or refused with the reason.

modules.py CKC CKRUN [MODEL...]

Each model trains three steps on other batches than that of the export.  Losses and parameters are
compared with those of the module in float64.  Without torch, the test is skipped.
"""

import copy
import os
import sys
import warnings

import ck

sys.path.insert(0, os.path.join(ck.HERE, "..", "..", "frontend", "python"))
try:
    import torch
    from torch import nn
    from torch.nn import functional as F
except ImportError:
    print("modules: no torch")
    sys.exit(77)
try:
    import onnxscript  # noqa: F401
except ImportError:
    onnxscript = None

randn, randint = torch.randn, torch.randint
EXACT, REFUSED = {}, {}


def loss_of(body, *modules, **named):
    """A module whose forward is body(its modules, batch...)."""

    class Module(nn.Module):
        def __init__(self):
            super().__init__()
            for name, m in {**{f"m{i}": m for i, m in enumerate(modules)}, **named}.items():
                setattr(self, name, m)

    count = body.__code__.co_argcount - 1
    names = body.__code__.co_varnames[1 : count + 1]
    code = f"def forward(self, {', '.join(names)}): return body(self, {', '.join(names)})"
    scope = {"body": body}
    exec(code, scope)
    Module.forward = scope["forward"]
    return Module()


def classes(*shape):
    return lambda: (randn(4, *shape), randint(0, 5, (4,)))


def case(table, batch, **expected):
    def add(make):
        table[make.__name__] = make, batch, expected
        return make

    return add


# ---- trained as PyTorch does ----


@case(EXACT, classes(3, 8, 8))
def norms():
    fixed = nn.BatchNorm2d(6)
    fixed.running_mean.normal_()
    body = nn.Sequential(
        nn.Conv2d(3, 6, 3), nn.BatchNorm2d(6, momentum=0.3), nn.ReLU(), nn.Dropout2d(0.2), fixed
    )
    module = loss_of(
        lambda s, x, y: F.cross_entropy(s.m1(s.m0(x).mean((2, 3))), y), body, nn.Linear(6, 5)
    )
    fixed.eval()
    return module


@case(EXACT, lambda: (randint(0, 9, (4, 6)), randint(0, 9, (4, 6))))
def tied():
    """A padding row that only the head trains."""
    table, head = nn.Embedding(9, 8, padding_idx=0), nn.Linear(8, 9, bias=False)
    head.weight = table.weight

    def body(s, ids, y):
        z = s.m1(s.m2(s.m0(ids)).relu())
        return F.cross_entropy(z.flatten(0, 1), y.flatten(), ignore_index=3, label_smoothing=0.1)

    return loss_of(body, table, head, nn.Linear(8, 8))


@case(EXACT, lambda: (randn(5, 6),))
def quantized():
    """detach(), also of what gets a gradient elsewhere."""

    def body(s, x):
        z = s.m0(x)
        near = s.m2(torch.cdist(z, s.m2.weight).argmin(-1))
        extra = F.mse_loss(near, z.detach()) + F.mse_loss(near.detach(), z) / 4
        return F.l1_loss(s.m1(z + (near - z).detach()), x) + extra

    return loss_of(body, nn.Linear(6, 4), nn.Linear(4, 6), nn.Embedding(7, 4))


@case(EXACT, lambda: (randn(4, 6),), frozen=["m1.weight", "m1.bias", "m2.weight"])
def teacher():
    def body(s, x):
        with torch.no_grad():
            y = s.m1(x).softmax(-1)
        return F.kl_div(s.m2(s.m0(x)).log_softmax(-1), y, reduction="batchmean")

    last = nn.Linear(5, 5)
    last.weight.requires_grad_(False)
    return loss_of(body, nn.Linear(6, 5), nn.Linear(6, 5), last)


@case(EXACT, lambda: (randn(6, 4), randint(0, 6, (2, 15)), randint(0, 5, (6,))))
def graph():
    def body(s, x, edge, y):
        h, (to, of) = s.m0(x), edge
        index = to[:, None].expand(-1, 8)
        z = h.scatter_reduce(0, index, h[of], "mean")
        z = z + torch.zeros_like(h).scatter_reduce(0, index, h[of], "mean", include_self=False)
        z = z + torch.zeros_like(h).index_add_(0, to, h[of])
        return F.cross_entropy(s.m1(z.index_put((of,), h[to], accumulate=True)), y)

    return loss_of(body, nn.Linear(4, 8), nn.Linear(8, 5))


@case(EXACT, lambda: (randint(0, 3, (4, 5, 7)).float(), randint(0, 5, (4,))))
def maxima():
    """Equal elements: one of them gets the gradient."""
    return loss_of(
        lambda s, x, y: F.cross_entropy(
            s.m1((x * s.scale).max(1)[0]) + s.m1(x.min(dim=1).values), y
        ),
        m1=nn.Linear(7, 5),
        scale=nn.Parameter(torch.ones(5, 1)),
    )


@case(
    EXACT, lambda: (randn(3, 6, 8), torch.arange(6) >= randint(0, 4, (3, 1)), randint(0, 5, (3,)))
)
def attention():
    """Rows in which a mask hides every key."""

    def body(s, x, keep, y):
        q, k, v = s.m0(x).chunk(3, -1)
        mask = keep[:, None, :] & torch.ones(6, 6, dtype=torch.bool).tril()
        z = F.scaled_dot_product_attention(q, k, v, mask, dropout_p=0.1)
        return F.cross_entropy(s.m1((z + 1).mean(1)), y)

    return loss_of(body, nn.Linear(8, 24), nn.Linear(8, 5))


@case(EXACT, classes(7, 6), dynamo=True)
def recurrent():
    """Dropout between layers, which the TorchScript exporter refuses."""
    return loss_of(
        lambda s, x, y: F.cross_entropy(s.m1(s.m0(x)[0][:, -1]), y),
        nn.LSTM(6, 8, 2, batch_first=True, dropout=0.2),
        nn.Linear(8, 5),
    )


@case(EXACT, classes(6), dynamo=True)
def number():
    """A number of the batch, which TorchScript makes a constant."""
    return loss_of(
        lambda s, x, y: F.cross_entropy(s.m0(x / x.abs().max().item()), y), nn.Linear(6, 5)
    )


def speech(*shape):
    """Frames, a row of labels without one, others with padding, and where frames end."""
    labels = randint(1, 5, (4, 3))
    labels[0], labels[1, 2], labels[2, 1] = -100, -100, labels[2, 0]
    return randn(4, *shape), labels, torch.tensor([9, 7, 8, 9])


@case(EXACT, lambda: speech(9, 6))
def ctc():
    """Labels that a mask selects, after checks of them, as transformers has them."""

    def body(s, x, labels, frames):
        if labels is not None and labels.max() >= 5:
            raise ValueError("labels")
        assert frames.min() > 0
        p = s.m0(x).log_softmax(-1).transpose(0, 1)
        mask = labels >= 0
        return F.ctc_loss(p, labels.masked_select(mask), frames, mask.sum(-1))

    return loss_of(body, nn.Linear(6, 5))


@case(EXACT, lambda: speech(9, 6))
def ctc_forms():
    """Padded rows, rows behind one another, rows longer than their frames, one sequence."""

    def body(s, x, labels, frames):
        p = s.m0(x).log_softmax(-1).transpose(0, 1)
        y = labels.clamp(min=1)
        few = torch.where(frames < 8, 2, frames)
        n = torch.tensor([3, 2, 3, 1])
        row = F.ctc_loss(p, y.flatten()[:9], (9, 8, 9, 7), (3, 2, 3, 1), 0, "none")
        return (
            F.ctc_loss(p, y, few, n, blank=5, reduction="sum", zero_infinity=True)
            + (row * torch.arange(4)).sum()
            + F.ctc_loss(p[:, 0], y[3], torch.tensor(9), torch.tensor(3))
        )

    return loss_of(body, nn.Linear(6, 6))


@case(EXACT, lambda: (randn(2, 3, 5, 5), randn(2, 6, 4, 4)))
def sampled():
    """Checks of finite values, a root mean square norm, places by linspace."""

    def body(s, x, y):
        z = s.m0(x)
        if not torch.isfinite(z).all() or torch.isnan(z).any():
            z = z.nan_to_num()
        z = F.rms_norm(z.transpose(1, 3), (6,), s.weight).transpose(1, 3)
        at = torch.stack(torch.meshgrid(*[torch.linspace(-0.9, 0.8, 4)] * 2, indexing="ij"), 2)
        z = F.grid_sample(z, at.to(x.dtype).expand(2, 4, 4, 2), align_corners=False)
        return F.mse_loss(z, y)

    return loss_of(body, nn.Conv2d(3, 6, 3), weight=nn.Parameter(torch.rand(6) + 0.5))


# ---- refused ----


@case(REFUSED, classes(6), message="try: module.get_submodule('m0').momentum = 0.1")
def cumulative():
    return loss_of(lambda s, x, y: F.cross_entropy(s.m0(x), y), nn.BatchNorm1d(6, momentum=None))


@case(REFUSED, classes(6), message="hooks of m0.weight are lost")
def hooked():
    module = loss_of(lambda s, x, y: F.cross_entropy(s.m0(x), y), nn.Linear(6, 5))
    module.m0.weight.register_hook(lambda g: g / 2)
    return module


@case(REFUSED, classes(6), message="forward updates 'centre', but the file does not")
def moving():
    def body(s, x, y):
        z = s.m0(x)
        with torch.no_grad():
            s.centre.lerp_(z.mean(0), 0.1)
        return F.cross_entropy(z - s.centre, y)

    module = loss_of(body, nn.Linear(6, 5))
    module.register_buffer("centre", torch.zeros(5))
    return module


class Rounded(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, g):
        return g


@case(
    REFUSED, classes(6), message="the backward pass of Rounded is lost; try: g + (f - g).detach()"
)
def straight_through():
    return loss_of(lambda s, x, y: F.cross_entropy(Rounded.apply(s.m0(x) * 3), y), nn.Linear(6, 5))


@case(REFUSED, classes(6), message="__bool__ at modules.py:")
def branch():
    return loss_of(
        lambda s, x, y: F.cross_entropy(s.m0(x) if x.sum() > 0 else s.m1(x), y),
        nn.Linear(6, 5),
        nn.Linear(6, 5),
    )


@case(REFUSED, classes(6), message="__bool__ at modules.py:")
def infinite():
    """A test of a value that depends on no parameter chooses a branch."""
    return loss_of(
        lambda s, x, y: F.cross_entropy(s.m0(x * 2 if torch.isinf(x).any() else x), y),
        nn.Linear(6, 5),
    )


@case(REFUSED, classes(6), message="__bool__ at modules.py:")
def chance():
    return loss_of(
        lambda s, x, y: F.cross_entropy(s.m1(s.m0(x) if torch.rand(()) < 0.5 else x), y),
        nn.Linear(6, 6),
        nn.Linear(6, 5),
    )


@case(REFUSED, classes(6), message="forward changes n, but a step of the file does not")
def counter():
    def body(s, x, y):
        s.n += 1
        return F.cross_entropy(s.m0(x) / s.n, y)

    module = loss_of(body, nn.Linear(6, 5))
    module.n = 0
    return module


@case(REFUSED, lambda: (randint(0, 6, (4, 5)),), message="forward changes m0.weight")
def bounded():
    return loss_of(lambda s, ids: s.m0(ids).square().mean(), nn.Embedding(6, 8, max_norm=0.5))


def reference(module, batches, lr):
    """Losses and module after so many steps of SGD in float64."""
    from ckc import _forward

    module, losses = copy.deepcopy(module).double(), []
    _forward.without_dropout(module)
    optimizer = torch.optim.SGD([p for p in module.parameters() if p.requires_grad], lr=lr)
    for batch in batches:
        batch = [x.double() if x.is_floating_point() else x for x in batch]
        with _forward.Plain():
            loss = module(*batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, module


def trains(bench, ckc, name):
    make, batch, expected = EXACT[name]
    torch.manual_seed(0)
    module, path = make(), bench.path(f"{name}.onnx")
    before = copy.deepcopy(module.state_dict())
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        ckc.torch.export(module, batch(), path)
        batches = [batch() for _ in range(3)]
        model = ckc.compile(path, optimizer="sgd", dropout="off")
    other = [str(w.message) for w in found if "exported with dynamo=True" in str(w.message)]
    bench.check(bool(other) == expected.get("dynamo", False), f"{name}: {other}")
    for key, x in module.state_dict().items():
        bench.check(torch.equal(x, before[key]), f"{name}: the export changed {key}")
    with ckc.Trainer(model, lr=0.05, weight_decay=0.0) as t:
        losses = []
        for values in batches:
            given = ckc.torch._named(module, values)
            losses.append(t.step(**{k: x for k, x in given.items() if k in t.inputs}))
        state = t.state_dict()
        frozen = [k for k, i in t._tensors.items() if i.frozen and i.kind == b"param"]
    bench.check(frozen == expected.get("frozen", []), f"{name}: frozen {frozen}")
    exact, after = reference(module, batches, 0.05)
    bench.check(
        all(abs(x - y) < 1e-5 * abs(y) for x, y in zip(losses, exact)),
        f"{name}: losses {losses}, expected {exact}",
    )
    for key, p in after.named_parameters():
        bench.check(key in state, f"{name}: no parameter {key}")
        got, moved = torch.from_numpy(state[key]), float((p.detach() - before[key]).norm())
        off = float((got - p.detach()).norm())
        bench.check(off < 1e-3 * moved + 1e-6, f"{name}: {key} is off by {off} of {moved}")
    for key, x in after.named_buffers():
        if key in state and not key.endswith("running_var"):  # n, not n - 1
            off = float((torch.from_numpy(state[key]) - x).norm())
            bench.check(off < 1e-5, f"{name}: {key} is off by {off}")


def refuses(bench, ckc, name):
    make, batch, expected = REFUSED[name]
    torch.manual_seed(0)
    module, path = make(), bench.path(f"{name}.onnx")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ckc.torch.export(module, batch(), path)
        bench.check(False, f"{name}: exported")
    except ckc.Error as e:
        bench.check(expected["message"] in str(e), f"{name}: {e}")
    bench.check(not os.path.exists(path), f"{name}: the file is there")


def drops(bench, ckc):
    """Dropout of attention is active, also inside of nn.MultiheadAttention."""
    from ckc import _file

    path = bench.path("drops.onnx")
    module = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1, batch_first=True)
    ckc.torch.export(module, randn(2, 3, 8), path, verify=False)
    nodes = _file.read(path)[1]
    bench.check(nodes.count(("Dropout", 3)) == 4, f"dropouts: {nodes}")


def evaluates(bench, ckc):
    """A forward pass that evaluates otherwise than it trains is warned of."""
    module = loss_of(
        lambda s, x, y: F.cross_entropy(s.m0(x) * (2 if s.training else 1), y), nn.Linear(6, 5)
    )
    batch = classes(6)()
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        ckc.torch.export(module, batch, bench.path("evaluates.onnx"))
    bench.check(
        any("module.eval() is" in str(w.message) for w in found), [str(w.message) for w in found]
    )


def in_place(bench, ckc):
    """ckc.torch.train is a loop of AdamW over batches of any shapes, and reports bad ones."""
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 5))
    twin = copy.deepcopy(module)
    data = [(randn(n, 6), randint(0, 5, (n,))) for n in (16, 16, 9, 16, 4)]
    losses = ckc.torch.train(module, data, loss="ce", budget="100%", epochs=2, lr=1e-2)
    optimizer, expected = torch.optim.AdamW(twin.parameters(), lr=1e-2), []
    for x, y in data * 2:
        loss = F.cross_entropy(twin(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        expected.append(loss.item())
    bench.check(
        len(losses) == 10 and all(abs(x - y) < 1e-4 for x, y in zip(losses, expected)),
        f"train: losses {losses}, expected {expected}",
    )
    off = {k: float((x - twin.state_dict()[k]).abs().max()) for k, x in module.state_dict().items()}
    del off["0.bias"]  # without a gradient, before the norm
    off = {k: x for k, x in off.items() if "running" not in k}
    bench.check(max(off.values()) < 1e-3, f"train: module {off}")
    named = [{"labels": y, "input": x} for x, y in data]
    losses = ckc.torch.train(
        module, named, loss="ce", steps=7, lr=lambda step: 0.1 / (step + 1), optimizer="sgd"
    )
    bench.check(len(losses) == 7, f"train: {len(losses)} steps of 7")
    for batches, options, kind, message in (
        (
            data[:1] + [(randn(n, 6), randint(0, 5, (n,))) for n in (7, 3)],
            {"shapes": 2},
            ckc.Error,
            "more than 2 shapes, here 'input' [3, 6], 'labels' [3],",
        ),
        (
            [(randn(15, 6), randint(0, 5, (15,)))],
            {"grad_accum": 2},
            ckc.Error,
            "15 rows of 'input' do not divide into 2 micro-batches",
        ),
        (iter(data), {"epochs": 2}, TypeError, "data is an iterator"),
        ([], {}, ValueError, "data has no batch"),
        ([{"input": data[0][0]}], {}, TypeError, "no 'labels' for the loss"),
        (data, {"lora": {"*": 2}}, TypeError, "has no adapters"),
    ):
        try:
            ckc.torch.train(module, batches, loss="ce", verify=False, **options)
            bench.check(False, f"train: no error with {message}")
        except kind as e:
            bench.check(message in str(e), f"train: {e}")


def optional(bench, ckc):
    """Batches with and without an input have libraries of their own; nested averages are one."""

    class Masked(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(6, 5)

        def forward(self, x, mask=None):
            return self.a(x if mask is None else x * mask)

    torch.manual_seed(0)
    module = Masked()
    twin = copy.deepcopy(module)
    data = [{"x": randn(8, 6), "labels": randint(0, 5, (8,))} for _ in range(4)]
    for batch in data[1::2]:
        batch["mask"] = (randn(8, 6) > 0).float()
    seen = []

    def look(step, loss, trainer):
        with trainer.ema():
            outer = trainer.state_dict()["a.weight"]
            with trainer.ema():
                pass
            seen.append((trainer.state_dict()["a.weight"] == outer).all())

    losses = ckc.torch.train(
        module, data, loss="ce", optimizer="sgd", lr=0.1, ema=True, ema_decay=0.5, callback=look
    )
    optimizer, expected = torch.optim.SGD(twin.parameters(), lr=0.1, weight_decay=0.01), []
    for batch in data:
        loss = F.cross_entropy(twin(batch["x"], batch.get("mask")), batch["labels"])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        expected.append(loss.item())
    gap = max(abs(x - y) for x, y in zip(losses, expected))
    bench.check(gap < 1e-5, f"optional: losses {losses}, expected {expected}")
    bench.check(all(seen) and len(seen) == 4, "an inner block ends the outer one's averages")
    bad = [data[0], {"x": randn(3, 6), "labels": randint(0, 5, (3,)), "mask": randn(3, 7)}]
    try:
        ckc.torch.train(module, bad, loss="ce", ema=False)
        bench.check(False, "optional: no error for shapes that do not fit")
    except ckc.Error as e:
        bench.check(str(e).startswith("a batch of 'x' [3, 6]"), f"optional: {e}")


def main():
    bench = ck.Bench()
    os.environ["CKC_HOME"] = os.path.dirname(bench.ckc_path)
    if not os.path.exists(os.path.join(os.environ["CKC_HOME"], "libckr.so")):
        print("modules: no libckr.so was built")
        sys.exit(77)
    import ckc
    import ckc.torch

    for table, test in (EXACT, trains), (REFUSED, refuses):
        for name, (_, _, expected) in table.items():
            if bench.names and name not in bench.names:
                continue
            if expected.get("dynamo") and not onnxscript:
                print(f"{name}: no onnxscript")
                continue
            test(bench, ckc, name)
    for test in drops, evaluates, in_place, optional:
        if not bench.names or test.__name__ in bench.names:
            test(bench, ckc)
    bench.finish()


if __name__ == "__main__":
    main()
