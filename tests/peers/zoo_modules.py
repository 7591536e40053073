"""Small models in plain PyTorch, one class per family; forward returns the loss.  MODELS is {name:
function -> (module, inputs)}."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F

MODELS = {}


def model(name, *args, **inputs):
    """Registers a class: inputs are tensors made by name, from a fixed seed."""

    def register(cls):
        MODELS[name] = lambda: (cls(*args), {k: make() for k, make in inputs.items()})
        return cls

    return register


def real(*shape, scale=1.0, seed=1):
    return lambda: torch.randn(*shape, generator=torch.Generator().manual_seed(seed)) * scale


def unit(*shape, seed=2):
    return lambda: torch.rand(*shape, generator=torch.Generator().manual_seed(seed))


def ids(n, *shape, seed=3):
    return lambda: torch.randint(0, n, shape, generator=torch.Generator().manual_seed(seed))


def fixed(x):
    return lambda: torch.tensor(x)


# ---- sequences
# ------------------------------------------------------------------------------
@model("lstm-lm", nn.LSTM, tokens=ids(50, 3, 9), labels=ids(50, 3, 9, seed=4))
@model("gru-lm", nn.GRU, tokens=ids(50, 3, 9), labels=ids(50, 3, 9, seed=4))
@model("rnn-lm", nn.RNN, tokens=ids(50, 3, 9), labels=ids(50, 3, 9, seed=4))
class RecurrentLm(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.emb, self.rnn, self.head = (
            nn.Embedding(50, 16),
            kind(16, 24, 2, batch_first=True),
            nn.Linear(24, 50),
        )

    def forward(self, tokens, labels):
        y, _ = self.rnn(self.emb(tokens))
        return F.cross_entropy(self.head(y).flatten(0, 1), labels.flatten())


@model("bilstm-tagger", tokens=ids(50, 3, 9), labels=ids(7, 3, 9))
class BiLstmTagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb, self.rnn, self.head = (
            nn.Embedding(50, 16, padding_idx=0),
            nn.LSTM(16, 12, 1, bidirectional=True, batch_first=True),
            nn.Linear(24, 7),
        )

    def forward(self, tokens, labels):
        y, _ = self.rnn(self.emb(tokens))
        return F.nll_loss(F.log_softmax(self.head(y), -1).transpose(1, 2), labels, ignore_index=0)


@model("gru-seq2seq", source=ids(40, 2, 7), target=ids(40, 2, 6), labels=ids(40, 2, 6, seed=5))
class Seq2Seq(nn.Module):
    """Encoder GRU, decoder GRU cell by cell with additive attention."""

    def __init__(self):
        super().__init__()
        self.emb, self.enc, self.dec = (
            nn.Embedding(40, 16),
            nn.GRU(16, 16, batch_first=True),
            nn.GRUCell(32, 16),
        )
        self.wq, self.wk, self.v, self.head = (
            nn.Linear(16, 16),
            nn.Linear(16, 16, bias=False),
            nn.Linear(16, 1, bias=False),
            nn.Linear(16, 40),
        )

    def forward(self, source, target, labels):
        keys, h = self.enc(self.emb(source))
        h, out = h[0], []
        y = self.emb(target)
        for t in range(target.shape[1]):
            a = torch.softmax(self.v(torch.tanh(self.wq(h)[:, None] + self.wk(keys)))[..., 0], -1)
            h = self.dec(torch.cat([y[:, t], (a[..., None] * keys).sum(1)], -1), h)
            out.append(self.head(h))
        return F.cross_entropy(torch.stack(out, 1).flatten(0, 1), labels.flatten())


@model("lstm-cell", x=real(4, 6, 5), y=real(4, 1))
class LstmCell(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.head = nn.LSTMCell(5, 8), nn.Linear(8, 1)

    def forward(self, x, y):
        h = c = x.new_zeros(x.shape[0], 8)
        for t in range(x.shape[1]):
            h, c = self.cell(x[:, t], (h, c))
        return F.smooth_l1_loss(self.head(h), y)


@model("selective-scan", x=real(2, 8, 12), y=real(2, 8, 12, seed=9))
class SelectiveScan(nn.Module):
    """A state-space layer with input-dependent steps, written as a loop."""

    def __init__(self, d=12, n=4):
        super().__init__()
        self.conv, self.dt, self.bc = (
            nn.Conv1d(d, d, 3, padding=2, groups=d),
            nn.Linear(d, d),
            nn.Linear(d, 2 * n),
        )
        self.a_log, self.d, self.out, self.gate = (
            nn.Parameter(torch.rand(d, n)),
            nn.Parameter(torch.ones(d)),
            nn.Linear(d, d),
            nn.Linear(d, d),
        )

    def forward(self, x, y):
        u = F.silu(self.conv(x.transpose(1, 2))[..., : x.shape[1]].transpose(1, 2))
        dt = F.softplus(self.dt(u))
        b, c = self.bc(u).chunk(2, -1)
        a = -torch.exp(self.a_log)
        h, out = 0, []
        for t in range(x.shape[1]):
            h = (
                torch.exp(dt[:, t, :, None] * a) * h
                + (dt[:, t] * u[:, t])[..., None] * b[:, t, None]
            )
            out.append((h * c[:, t, None]).sum(-1) + self.d * u[:, t])
        return F.mse_loss(self.out(torch.stack(out, 1) * F.silu(self.gate(x))), y)


@model("scan-cumsum", x=real(2, 8, 6), y=real(2, 8, 6, seed=9))
class ScanCumsum(nn.Module):
    """Linear recurrence in closed form: a running sum of logarithms and of scaled inputs."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(6, 6), nn.Linear(6, 6)

    def forward(self, x, y):
        log_a = torch.cumsum(F.logsigmoid(self.a(x)), 1)
        h = torch.exp(log_a) * torch.cumsum(torch.exp(-log_a) * self.b(x), 1)
        return F.l1_loss(h, y)


@model("linear-attention", x=real(2, 6, 16), y=real(2, 6, 16, seed=9))
class LinearAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = nn.Linear(16, 16), nn.Linear(16, 16), nn.Linear(16, 16)

    def forward(self, x, y):
        q, k, v = F.elu(self.q(x)) + 1, F.elu(self.k(x)) + 1, self.v(x)
        kv = torch.cumsum(torch.einsum("btd,bte->btde", k, v), 1)
        z = torch.einsum("btd,btd->bt", q, torch.cumsum(k, 1))
        return F.mse_loss(torch.einsum("btd,btde->bte", q, kv) / z[..., None], y)


@model("transformer", source=ids(40, 2, 7), target=ids(40, 2, 6), labels=ids(40, 2, 6, seed=5))
class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb, self.head = nn.Embedding(40, 16), nn.Linear(16, 40)
        self.net = nn.Transformer(16, 4, 1, 1, 32, 0.0, batch_first=True)

    def forward(self, source, target, labels):
        mask = torch.triu(torch.full((6, 6), float("-inf"), dtype=self.head.weight.dtype), 1)
        y = self.net(self.emb(source), self.emb(target), tgt_mask=mask)
        return F.cross_entropy(self.head(y).flatten(0, 1), labels.flatten())


@model(
    "transformer-prenorm",
    x=real(2, 7, 16),
    pad=lambda: torch.arange(7)[None] >= torch.tensor([[7], [5]]),
    y=ids(4, 2),
)
class PreNorm(nn.Module):
    """Padding mask, pre-norm, ReLU, pooled by maximum."""

    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(
            16, 2, 32, 0.0, activation="relu", batch_first=True, norm_first=True
        )
        self.enc, self.head = (
            nn.TransformerEncoder(layer, 2, enable_nested_tensor=False),
            nn.Linear(16, 4),
        )

    def forward(self, x, pad, y):
        h = self.enc(x, src_key_padding_mask=pad).masked_fill(pad[..., None], -1e9).amax(1)
        return F.cross_entropy(self.head(h), y)


@model("alibi-relative", x=real(2, 6, 16), y=real(2, 6, 16, seed=9))
class Relative(nn.Module):
    """Attention with a learnt bias per distance and a talking-heads product."""

    def __init__(self):
        super().__init__()
        self.qkv, self.bias, self.mix = (
            nn.Linear(16, 48),
            nn.Embedding(11, 4),
            nn.Parameter(torch.eye(4)),
        )

    def forward(self, x, y):
        q, k, v = self.qkv(x).view(2, 6, 3, 4, 4).permute(2, 0, 3, 1, 4).unbind(0)
        at = torch.arange(6)
        bias = self.bias(at[:, None] - at[None] + 5).permute(2, 0, 1)
        p = torch.softmax(torch.einsum("bhqd,bhkd->bhqk", q, k) * 0.5 + bias, -1)
        p = torch.einsum("bhqk,hg->bgqk", p, self.mix)
        return F.huber_loss((p @ v).transpose(1, 2).reshape(2, 6, 16), y, delta=0.5)


@model("attention-bias", x=real(2, 6, 16), y=real(2, 6, 16, seed=9))
class AttentionBias(nn.Module):
    """A learnt bias as the mask of PyTorch's own attention, an operator since opset 23."""

    def __init__(self):
        super().__init__()
        self.qkv, self.out, self.bias = (
            nn.Linear(16, 48),
            nn.Linear(16, 16),
            nn.Parameter(torch.randn(1, 4, 6, 6)),
        )

    def forward(self, x, y):
        q, k, v = (t.view(2, 6, 4, 4).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        return F.mse_loss(
            self.out(
                F.scaled_dot_product_attention(q, k, v, attn_mask=self.bias)
                .transpose(1, 2)
                .flatten(2)
            ),
            y,
        )


@model("clip-learnt", x=real(4, 6), y=real(4, 3))
class ClipLearnt(nn.Module):
    """Bounds of a clip that are trained."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.low, self.high = (
            nn.Linear(6, 8),
            nn.Linear(8, 3),
            nn.Parameter(torch.tensor(-0.4)),
            nn.Parameter(torch.tensor(0.3)),
        )

    def forward(self, x, y):
        return F.mse_loss(self.b(torch.clamp(self.a(x), self.low, self.high)), y)


@model("einsum-dots", x=real(2, 6, 5))
class EinsumDots(nn.Module):
    """Attention inside blocks, with as many leading axes as there happen to be."""

    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = nn.Linear(5, 8), nn.Linear(5, 8), nn.Linear(5, 8)

    def forward(self, x):
        q, k, v = (f(x).view(x.shape[0], -1, 3, 2, 4) for f in (self.q, self.k, self.v))
        p = torch.softmax(torch.einsum("...qhd,...khd->...hqk", q, k), -1)
        return torch.einsum("...hqk,...khd->...qhd", p, v).square().mean()


@model("sparse-topk-attention", x=real(2, 6, 8), y=real(2, 6, 8, seed=9))
class TopkAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(8, 24)

    def forward(self, x, y):
        q, k, v = self.qkv(x).chunk(3, -1)
        s = q @ k.transpose(1, 2) / math.sqrt(8)
        top = torch.topk(s, 3, -1)
        p = torch.full_like(s, float("-inf")).scatter(-1, top.indices, top.values).softmax(-1)
        return F.mse_loss(p @ v, y)


@model("moe-sparse", x=real(6, 8), y=real(6, 8, seed=9))
class SparseMoe(nn.Module):
    """Experts of stacked weights, chosen by top-2; load balance loss."""

    def __init__(self):
        super().__init__()
        self.gate, self.up, self.down = (
            nn.Linear(8, 4, bias=False),
            nn.Parameter(torch.randn(4, 8, 12) * 0.2),
            nn.Parameter(torch.randn(4, 12, 8) * 0.2),
        )

    def forward(self, x, y):
        p = self.gate(x).softmax(-1)
        w, e = torch.topk(p, 2, -1)
        h = F.gelu(torch.einsum("nd,nkdf->nkf", x, self.up[e]), approximate="tanh")
        out = torch.einsum("nkf,nkfd,nk->nd", h, self.down[e], w / w.sum(-1, keepdim=True))
        load = F.one_hot(e, 4).to(x.dtype).mean((0, 1))
        return F.mse_loss(out, y) + 0.01 * 4 * (load * p.mean(0)).sum()


@model("moe-nonzero", x=real(6, 8), y=real(6, 8, seed=9))
class NonzeroMoe(nn.Module):
    """Experts that look up their own rows, by index_add_: sizes depend on the data."""

    def __init__(self):
        super().__init__()
        self.gate, self.experts = nn.Linear(8, 3), nn.ModuleList(nn.Linear(8, 8) for _ in range(3))

    def forward(self, x, y):
        p = self.gate(x).softmax(-1)
        best = p.argmax(-1)
        out = torch.zeros_like(x)
        for i, f in enumerate(self.experts):
            at = torch.where(best == i)[0]
            out = out.index_add(0, at, f(x[at]) * p[at, i, None])
        return F.mse_loss(out, y)


MASKED = dict(x=real(4, 6, 5), m=lambda: torch.arange(24).view(4, 6) % 3 == 0)


@model("mask-assign", **MASKED)
class MaskAssign(nn.Module):
    """A learnt token in place of masked ones.  TorchScript does not broadcast it: that file cannot
    be run by anybody."""

    def __init__(self):
        super().__init__()
        self.f, self.token = nn.Linear(5, 5), nn.Parameter(torch.randn(5))

    def forward(self, x, m):
        h = self.f(x)
        h[m] = self.token
        return h.square().mean()


@model("mask-update", **MASKED)
class MaskUpdate(nn.Module):
    """What a mask selects is computed anew and put back."""

    def __init__(self):
        super().__init__()
        self.f, self.g = nn.Linear(5, 5), nn.Linear(5, 5)

    def forward(self, x, m):
        h = self.f(x).clone()
        h[m] = torch.tanh(self.g(h[m]))
        return h.square().mean()


@model("masked-scatter", source=real(8, 5), **MASKED)
class MaskedScatter(nn.Module):
    """Rows of another input in the places of a mask, as multimodal models put images among
    tokens."""

    def __init__(self):
        super().__init__()
        self.f, self.g = nn.Linear(5, 5), nn.Linear(5, 5)

    def forward(self, source, x, m):
        return self.f(x).masked_scatter(m[..., None], self.g(source)).square().mean()


@model("select-again", x=real(6, 5), m=lambda: torch.arange(6) % 2 == 0)
class SelectAgain(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Linear(5, 5)

    def forward(self, x, m):
        h = self.f(x)[m]
        return h[h[:, 0] > 0].square().sum()


@model(
    "selections-joined",
    x=real(6, 5),
    y=real(6, 5, seed=5),
    m=lambda: torch.arange(6) % 2 == 0,
    n=lambda: torch.arange(6) % 3 == 0,
)
class SelectionsJoined(nn.Module):
    def __init__(self):
        super().__init__()
        self.f, self.g = nn.Linear(5, 5), nn.Linear(5, 5)

    def forward(self, x, y, m, n):
        return self.g(torch.cat([self.f(x)[m], self.f(y)[n]])).square().mean()


class OverMask(nn.Module):
    """Losses over what a mask selects."""

    def __init__(self):
        super().__init__()
        self.f, self.g = nn.Linear(5, 5), nn.Linear(5, 5)


@model("mask-labels", tags=ids(5, 4, 6), **MASKED)
class MaskLabels(OverMask):
    def forward(self, tags, x, m):
        return (
            F.cross_entropy(self.f(x)[m], tags[m])
            + F.cross_entropy(self.g(x)[tags > 1], tags[tags > 1], reduction="sum") * 0.1
        )


@model("mask-errors", y=real(4, 6, 5, seed=5), **MASKED)
class MaskErrors(OverMask):
    """Elements, rows and samples that a mask selects, of which it is an input or computed."""

    def forward(self, y, x, m):
        h = torch.tanh(self.f(x))
        far = (self.g(h) - y)[(y - x).abs() > 1]
        return (
            (h - y)[m].abs().mean()
            + far.square().mean()
            + h[y[:, 0, 0] > 0].sum() / m.sum()
            + torch.log(h[h > 0.2]).mean()
        )


@model("mask-samples", y=real(4, 5, seed=5), **MASKED)
class MaskSamples(OverMask):
    """What is selected goes back to the sample that it is from, by number."""

    def forward(self, y, x, m):
        of, _ = torch.nonzero(m, as_tuple=True)
        each = torch.zeros_like(y).index_add(0, of, self.g(torch.tanh(self.f(x)[m])))
        return (each / m.sum(1, keepdim=True).clamp(min=1) - y).square().mean() + (
            self.f(x)[m] * y[of]
        ).mean()


@model("crf", x=real(2, 5, 6), tags=ids(4, 2, 5))
class Crf(nn.Module):
    """Forward algorithm of a conditional random field."""

    def __init__(self):
        super().__init__()
        self.emit, self.trans = nn.Linear(6, 4), nn.Parameter(torch.randn(4, 4) * 0.1)

    def forward(self, x, tags):
        e = self.emit(x)
        gold = e.gather(2, tags[..., None])[..., 0].sum(1) + self.trans[
            tags[:, :-1], tags[:, 1:]
        ].sum(1)
        a = e[:, 0]
        for t in range(1, 5):
            a = torch.logsumexp(a[:, :, None] + self.trans[None], 1) + e[:, t]
        return (torch.logsumexp(a, 1) - gold).mean()


@model("pointer", x=real(2, 5, 6), y=ids(5, 2))
class Pointer(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc, self.w1, self.w2, self.v = (
            nn.LSTM(6, 8, batch_first=True),
            nn.Linear(8, 8),
            nn.Linear(8, 8),
            nn.Parameter(torch.randn(8)),
        )

    def forward(self, x, y):
        h, (last, _) = self.enc(x)
        return F.cross_entropy(torch.tanh(self.w1(h) + self.w2(last.transpose(0, 1))) @ self.v, y)


@model("wavenet", x=ids(16, 2, 20), y=ids(16, 2, 20, seed=5))
class WaveNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb, self.head = nn.Embedding(16, 8), nn.Conv1d(8, 16, 1)
        self.f = nn.ModuleList(nn.Conv1d(8, 8, 2, dilation=2**i) for i in range(3))
        self.g = nn.ModuleList(nn.Conv1d(8, 8, 2, dilation=2**i) for i in range(3))
        self.s = nn.ModuleList(nn.Conv1d(8, 8, 1) for i in range(3))

    def forward(self, x, y):
        h, skip = self.emb(x).transpose(1, 2), 0
        for i in range(3):
            p = F.pad(h, (2**i, 0))
            z = torch.tanh(self.f[i](p)) * torch.sigmoid(self.g[i](p))
            skip = skip + self.s[i](z)
            h = h + z
        return F.cross_entropy(self.head(F.relu(skip)), y)


@model("tcn", x=real(2, 3, 20), y=real(2, 1))
class Tcn(nn.Module):
    def __init__(self):
        super().__init__()
        weight_norm = nn.utils.parametrizations.weight_norm
        self.a, self.b = (
            weight_norm(nn.Conv1d(3, 8, 3, padding=2)),
            weight_norm(nn.Conv1d(8, 8, 3, padding=4, dilation=2)),
        )
        self.skip, self.head = nn.Conv1d(3, 8, 1), nn.Linear(8, 1)

    def forward(self, x, y):
        h = F.leaky_relu(self.a(x)[..., :-2], 0.1)
        h = F.relu(self.b(h)[..., :-4]) + self.skip(x)
        return F.mse_loss(self.head(h[..., -1]), y)


@model("tasnet", x=real(2, 1, 40), y=real(2, 2, 40, seed=5))
class TasNet(nn.Module):
    """Learnt analysis and synthesis, global normalisation, scale-invariant loss."""

    def __init__(self):
        super().__init__()
        self.enc, self.norm, self.mask = (
            nn.Conv1d(1, 8, 8, 4, bias=False),
            nn.GroupNorm(1, 8),
            nn.Conv1d(8, 16, 3, padding=1),
        )
        self.act, self.dec = nn.PReLU(), nn.ConvTranspose1d(8, 1, 8, 4, bias=False)

    def forward(self, x, y):
        h = self.enc(x)
        m = torch.sigmoid(self.act(self.mask(self.norm(h)))).view(2, 2, 8, -1)
        out = self.dec((m * h[:, None]).flatten(0, 1)).view(2, 2, 40)
        scale = (out * y).sum(-1, keepdim=True) / (y * y).sum(-1, keepdim=True)
        clean = scale * y
        return -10 * torch.log10((clean**2).sum(-1) / ((out - clean) ** 2).sum(-1) + 1e-8).mean()


# ---- images
# ------------------------------------------------------------------------------
class Conv(nn.Sequential):
    """Convolution, BatchNorm, activation."""

    def __init__(self, i, o, k=3, s=1, groups=1, act=nn.ReLU, dilation=1):
        super().__init__(
            nn.Conv2d(i, o, k, s, dilation * (k // 2), dilation, groups, bias=False),
            nn.BatchNorm2d(o),
            act(),
        )


class Classify(nn.Module):
    def forward(self, image, labels):
        return F.cross_entropy(self.net(image), labels)


IMAGES = dict(image=real(4, 3, 16, 16), labels=ids(5, 4))


class SqueezeExcite(nn.Module):
    def __init__(self, c, gate):
        super().__init__()
        self.a, self.b, self.gate = nn.Conv2d(c, 4, 1), nn.Conv2d(4, c, 1), gate

    def forward(self, x):
        return x * self.gate(self.b(F.relu(self.a(F.adaptive_avg_pool2d(x, 1)))))


class MbConv(nn.Module):
    def __init__(self, c, act, gate):
        super().__init__()
        self.net = nn.Sequential(
            Conv(c, 2 * c, 1, act=act),
            Conv(2 * c, 2 * c, 3, groups=2 * c, act=act),
            SqueezeExcite(2 * c, gate),
            Conv(2 * c, c, 1, act=nn.Identity),
        )

    def forward(self, x):
        return x + self.net(x)


@model("efficientnet", nn.SiLU, torch.sigmoid, **IMAGES)
@model("mobilenet-v3", nn.Hardswish, F.hardsigmoid, **IMAGES)
@model("mobilenet-v2", nn.ReLU6, torch.sigmoid, **IMAGES)
class Mobile(Classify):
    def __init__(self, act, gate):
        super().__init__()
        self.net = nn.Sequential(
            Conv(3, 8, 3, 2, act=act),
            MbConv(8, act, gate),
            Conv(8, 12, 3, 2, act=act),
            MbConv(12, act, gate),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(12, 5),
        )


class Shuffle(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.net = nn.Sequential(
            Conv(c, c, 1), Conv(c, c, 3, groups=c, act=nn.Identity), Conv(c, c, 1)
        )

    def forward(self, x):
        a, b = x.chunk(2, 1)
        y = torch.cat([a, self.net(b)], 1)
        n, c, h, w = y.shape
        return y.view(n, 2, c // 2, h, w).transpose(1, 2).reshape(n, c, h, w)


@model("shufflenet", **IMAGES)
class ShuffleNet(Classify):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            Conv(3, 8, 3, 2),
            nn.MaxPool2d(3, 2, 1),
            Shuffle(4),
            Shuffle(4),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(8, 5),
        )


class Dense(nn.Module):
    def __init__(self, i, growth):
        super().__init__()
        self.norm, self.conv = nn.BatchNorm2d(i), nn.Conv2d(i, growth, 3, padding=1, bias=False)

    def forward(self, x):
        return torch.cat([x, self.conv(F.relu(self.norm(x)))], 1)


@model("densenet", **IMAGES)
class DenseNet(Classify):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(3, 6, 3, padding=1),
            Dense(6, 4),
            Dense(10, 4),
            nn.Conv2d(14, 7, 1),
            nn.AvgPool2d(2, 2),
            Dense(7, 4),
            nn.BatchNorm2d(11),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(11, 5),
        )


class Inception(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.a, self.b, self.c = (
            Conv(c, 4, 1),
            nn.Sequential(Conv(c, 3, 1), Conv(3, 5, 3)),
            nn.Sequential(nn.MaxPool2d(3, 1, 1), Conv(c, 3, 1)),
        )
        self.d = nn.Sequential(nn.AvgPool2d(3, 1, 1, count_include_pad=False), Conv(c, 4, 1))

    def forward(self, x):
        return torch.cat([self.a(x), self.b(x), self.c(x), self.d(x)], 1)


@model("inception-lrn", **IMAGES)
class GoogLe(Classify):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(3, 6, 5, 2, 2),
            nn.ReLU(),
            nn.LocalResponseNorm(3),
            Inception(6),
            nn.MaxPool2d(3, 2, ceil_mode=True),
            Inception(16),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(16, 5),
        )


@model("vgg", **IMAGES)
class Vgg(Classify):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(8, 12, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.AdaptiveAvgPool2d(2),
            nn.Flatten(),
            nn.Linear(48, 16),
            nn.ReLU(),
            nn.Dropout(0.0),
            nn.Linear(16, 5),
        )


@model("resnext", **IMAGES)
class ResNext(Classify):
    def __init__(self):
        super().__init__()

        class Block(nn.Module):
            def __init__(self):
                super().__init__()
                self.net = nn.Sequential(
                    Conv(8, 8, 1), Conv(8, 8, 3, groups=4), Conv(8, 8, 1, act=nn.Identity)
                )

            def forward(self, x):
                return F.relu(x + self.net(x), inplace=True)

        self.net = nn.Sequential(
            Conv(3, 8, 7, 2),
            nn.MaxPool2d(3, 2, 1),
            Block(),
            Block(),
            nn.AdaptiveMaxPool2d(1),
            nn.Flatten(),
            nn.Linear(8, 5),
        )


class ConvNextBlock(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.dw, self.norm, self.up, self.down = (
            nn.Conv2d(c, c, 7, padding=3, groups=c),
            nn.LayerNorm(c, eps=1e-6),
            nn.Linear(c, 4 * c),
            nn.Linear(4 * c, c),
        )
        self.gamma = nn.Parameter(torch.full((c,), 0.1))

    def forward(self, x):
        y = self.down(F.gelu(self.up(self.norm(self.dw(x).permute(0, 2, 3, 1)))))
        return x + (self.gamma * y).permute(0, 3, 1, 2)


@model("convnext", **IMAGES)
class ConvNext(Classify):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(3, 8, 4, 4),
            ConvNextBlock(8),
            nn.GroupNorm(1, 8),
            nn.Conv2d(8, 12, 2, 2),
            ConvNextBlock(12),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.LayerNorm(12),
            nn.Linear(12, 5),
        )

    def forward(self, image, labels):
        return F.cross_entropy(self.net(image), labels, label_smoothing=0.0)


@model("mlp-mixer", **IMAGES)
class Mixer(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch, self.head = nn.Conv2d(3, 12, 4, 4), nn.Linear(12, 5)
        self.n1, self.n2 = nn.LayerNorm(12), nn.LayerNorm(12)
        self.tokens, self.channels = (
            nn.Sequential(nn.Linear(16, 8), nn.GELU(), nn.Linear(8, 16)),
            nn.Sequential(nn.Linear(12, 24), nn.GELU(), nn.Linear(24, 12)),
        )

    def forward(self, image, labels):
        x = self.patch(image).flatten(2).transpose(1, 2)
        x = x + self.tokens(self.n1(x).transpose(1, 2)).transpose(1, 2)
        x = x + self.channels(self.n2(x))
        return F.cross_entropy(self.head(x.mean(1)), labels)


@model("conv3d", video=real(2, 2, 6, 8, 8), labels=ids(4, 2))
class Conv3d(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv3d(2, 6, 3, (1, 2, 2), 1),
            nn.BatchNorm3d(6),
            nn.ReLU(),
            nn.MaxPool3d((1, 2, 2)),
            nn.Conv3d(6, 8, (3, 1, 1), padding=(1, 0, 0), groups=2),
            nn.InstanceNorm3d(8, affine=True),
            nn.ELU(),
            nn.AvgPool3d(2),
            nn.Flatten(),
            nn.LazyLinear(4),
        )
        self.net(torch.zeros(1, 2, 6, 8, 8))

    def forward(self, video, labels):
        return F.cross_entropy(self.net(video), labels)


class Res(nn.Module):
    def __init__(self, i, o, t):
        super().__init__()
        self.n1, self.c1, self.t = (
            nn.GroupNorm(2, i),
            nn.Conv2d(i, o, 3, padding=1),
            nn.Linear(t, o),
        )
        self.n2, self.c2, self.skip = (
            nn.GroupNorm(2, o),
            nn.Conv2d(o, o, 3, padding=1),
            nn.Conv2d(i, o, 1),
        )

    def forward(self, x, t):
        h = self.c1(F.silu(self.n1(x))) + self.t(F.silu(t))[:, :, None, None]
        return self.skip(x) + self.c2(F.silu(self.n2(h)))


@model("diffusion-unet", x=real(2, 3, 8, 8), t=ids(100, 2), noise=real(2, 3, 8, 8, seed=8))
class DiffusionUnet(nn.Module):
    """Sinusoidal time embedding, attention in the middle, nearest upsampling, skips by
    concatenation."""

    def __init__(self):
        super().__init__()
        self.time = nn.Sequential(nn.Linear(8, 16), nn.SiLU(), nn.Linear(16, 16))
        self.inp, self.d1, self.down = (
            nn.Conv2d(3, 8, 3, padding=1),
            Res(8, 8, 16),
            nn.Conv2d(8, 12, 3, 2, 1),
        )
        self.m1, self.norm, self.qkv, self.proj = (
            Res(12, 12, 16),
            nn.GroupNorm(4, 12),
            nn.Conv2d(12, 36, 1),
            nn.Conv2d(12, 12, 1),
        )
        self.u1, self.out = Res(20, 8, 16), nn.Conv2d(8, 3, 3, padding=1)

    def forward(self, x, t, noise):
        f = torch.exp(-math.log(10000.0) * torch.arange(4, dtype=x.dtype) / 4)
        a = t[:, None].to(x.dtype) * f[None]
        t = self.time(torch.cat([torch.sin(a), torch.cos(a)], -1))
        h1 = self.d1(self.inp(x), t)
        h = self.m1(self.down(h1), t)
        q, k, v = self.qkv(self.norm(h)).flatten(2).chunk(3, 1)
        p = torch.softmax(q.transpose(1, 2) @ k / math.sqrt(12), -1)
        h = h + self.proj((v @ p.transpose(1, 2)).view(h.shape))
        h = self.u1(torch.cat([F.interpolate(h, scale_factor=2.0, mode="nearest"), h1], 1), t)
        return F.mse_loss(self.out(h), noise)


@model(
    "mmdit",
    x=real(2, 4, 8, 8),
    noise=real(2, 4, 8, 8, seed=8),
    t=unit(2),
    text=real(2, 5, 12, seed=6),
    pooled=real(2, 10, seed=7),
)
class MmDit(nn.Module):
    """Stable Diffusion 3 (Esser et al. 2024): streams of image and text with weights of their own
    and joint attention, modulated by time and pooled text; loss of the rectified flow."""

    class Stream(nn.Module):
        def __init__(self, width, heads, last=False):
            super().__init__()
            self.heads, self.last = heads, last
            self.modulation = nn.Linear(width, (2 if last else 6) * width)
            self.norm1 = nn.LayerNorm(width, elementwise_affine=False, eps=1e-6)
            self.norm2 = nn.LayerNorm(width, elementwise_affine=False, eps=1e-6)
            self.norm_q, self.norm_k = nn.RMSNorm(width // heads), nn.RMSNorm(width // heads)
            self.qkv = nn.Linear(width, 3 * width)
            if not last:
                self.out = nn.Linear(width, width)
                self.mlp = nn.Sequential(
                    nn.Linear(width, 2 * width),
                    nn.GELU(approximate="tanh"),
                    nn.Linear(2 * width, width),
                )

        def before(self, x, c):
            """Queries, keys and values; and the modulation of the rest of the block."""
            shift, scale, *rest = self.modulation(F.silu(c))[:, None].chunk(
                2 if self.last else 6, 2
            )
            q, k, v = (
                self.qkv(self.norm1(x) * (1 + scale) + shift)
                .unflatten(2, (3, self.heads, -1))
                .permute(2, 0, 3, 1, 4)
                .unbind()
            )
            return (self.norm_q(q), self.norm_k(k), v), rest

        def after(self, x, a, rest):
            gate, shift, scale, gate2 = rest
            x = x + gate * self.out(a)
            return x + gate2 * self.mlp(self.norm2(x) * (1 + scale) + shift)

    class Block(nn.Module):
        def __init__(self, width, heads, last):
            super().__init__()
            self.image, self.text = (
                MmDit.Stream(width, heads),
                MmDit.Stream(width, heads, last),
            )

        def forward(self, x, y, c):
            image, image_rest = self.image.before(x, c)
            text, text_rest = self.text.before(y, c)
            q, k, v = (torch.cat(z, 2) for z in zip(text, image))
            a = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
            n = y.shape[1]
            x = self.image.after(x, a[:, n:], image_rest)
            return x, y if self.text.last else self.text.after(y, a[:, :n], text_rest)

    def __init__(self):
        super().__init__()
        w = 16
        self.patch = nn.Conv2d(4, w, 2, 2)
        self.register_buffer("positions", self.sines(torch.arange(16.0), w)[None])
        self.time = nn.Sequential(nn.Linear(8, w), nn.SiLU(), nn.Linear(w, w))
        self.pooled = nn.Sequential(nn.Linear(10, w), nn.SiLU(), nn.Linear(w, w))
        self.text = nn.Linear(12, w)
        self.blocks = nn.ModuleList(MmDit.Block(w, 2, last) for last in (False, True))
        self.norm = nn.LayerNorm(w, elementwise_affine=False, eps=1e-6)
        self.modulation, self.head = nn.Linear(w, 2 * w), nn.Linear(w, 2 * 2 * 4)

    @staticmethod
    def sines(t, n):
        f = torch.exp(-math.log(1e4) * torch.arange(n // 2, dtype=t.dtype) / (n // 2))
        angle = t[:, None] * f
        return torch.cat([angle.cos(), angle.sin()], 1)

    def forward(self, x, noise, t, text, pooled):
        at = t[:, None, None, None]
        z = self.patch((1 - at) * x + at * noise).flatten(2).transpose(1, 2) + self.positions
        c = self.time(self.sines(1000 * t, 8)) + self.pooled(pooled)
        y = self.text(text)
        for block in self.blocks:
            z, y = block(z, y, c)
        shift, scale = self.modulation(F.silu(c))[:, None].chunk(2, 2)
        v = self.head(self.norm(z) * (1 + scale) + shift)
        v = v.view(-1, 4, 4, 2, 2, 4).permute(0, 5, 1, 3, 2, 4).reshape(x.shape)
        weight = torch.exp(-0.5 * torch.log(t / (1 - t)) ** 2)  # more of the middle of the path
        return (weight[:, None, None, None] * (v - (noise - x)) ** 2).mean()


@model("deeplab-aspp", image=real(2, 3, 16, 16), labels=ids(4, 2, 16, 16))
class Aspp(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.a, self.b, self.c = (
            Conv(3, 8, 3, 2),
            Conv(8, 4, 1),
            Conv(8, 4, 3, dilation=2),
            nn.Conv2d(8, 4, 1),
        )
        self.head = nn.Conv2d(12, 4, 1)

    def forward(self, image, labels):
        x = self.stem(image)
        g = F.interpolate(
            F.relu(self.c(x.mean((2, 3), keepdim=True))),
            size=x.shape[2:],
            mode="bilinear",
            align_corners=False,
        )
        y = self.head(torch.cat([self.a(x), self.b(x), g], 1))
        return F.cross_entropy(
            F.interpolate(y, size=(16, 16), mode="bilinear", align_corners=True),
            labels,
            weight=torch.tensor([1.0, 2.0, 0.5, 1.0], dtype=y.dtype),
        )


@model("fpn", image=real(2, 3, 16, 16), box=real(2, 4, 4, 4), cls=unit(2, 3, 4, 4))
class Fpn(nn.Module):
    """Two levels, focal loss and smooth L1."""

    def __init__(self):
        super().__init__()
        self.c1, self.c2, self.c3 = Conv(3, 6, 3, 2), Conv(6, 8, 3, 2), Conv(8, 8, 3, 2)
        self.l2, self.l3, self.cls, self.box = (
            nn.Conv2d(8, 6, 1),
            nn.Conv2d(8, 6, 1),
            nn.Conv2d(6, 3, 3, padding=1),
            nn.Conv2d(6, 4, 3, padding=1),
        )

    def forward(self, image, box, cls):
        x2 = self.c2(self.c1(image))
        p3 = self.l3(self.c3(x2))
        p2 = self.l2(x2) + F.interpolate(p3, scale_factor=2.0)
        z, y = self.cls(p2), (cls > 0.7).to(p2.dtype)
        p = torch.sigmoid(z)
        ce = F.binary_cross_entropy_with_logits(z, y, reduction="none")
        pt = p * y + (1 - p) * (1 - y)
        return ((0.25 * y + 0.75 * (1 - y)) * (1 - pt) ** 2 * ce).sum() / y.sum().clamp(
            min=1
        ) + F.smooth_l1_loss(self.box(p2), box, beta=0.1)


@model("espcn", image=real(2, 1, 6, 6), target=real(2, 1, 12, 12))
class Espcn(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.shuffle = (
            nn.Conv2d(1, 8, 5, padding=2, padding_mode="reflect"),
            nn.Conv2d(8, 4, 3, padding=1, padding_mode="replicate"),
            nn.PixelShuffle(2),
        )

    def forward(self, image, target):
        y = self.shuffle(self.b(torch.tanh(self.a(image)))) + F.interpolate(
            image, scale_factor=2, mode="bicubic", align_corners=False
        )
        return torch.sqrt((y - target) ** 2 + 1e-6).mean()


@model("pixelcnn", image=real(2, 1, 6, 6), target=unit(2, 1, 6, 6))
class PixelCnn(nn.Module):
    """Convolutions whose weights are masked by a buffer; circular padding."""

    def __init__(self):
        super().__init__()
        mask = torch.ones(1, 1, 5, 5)
        mask[..., 2, 2:], mask[..., 3:, :] = 0, 0
        self.register_buffer("mask", mask)
        self.w, self.c = (
            nn.Parameter(torch.randn(6, 1, 5, 5) * 0.2),
            nn.Conv2d(6, 1, 3, padding=1, padding_mode="circular"),
        )

    def forward(self, image, target):
        return F.binary_cross_entropy(
            torch.sigmoid(self.c(F.elu(F.conv2d(image, self.w * self.mask, padding=2)))), target
        )


@model("vae", x=unit(4, 20), eps=real(4, 5))
class Vae(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc, self.dec = (
            nn.Sequential(nn.Linear(20, 16), nn.Softplus(), nn.Linear(16, 10)),
            nn.Sequential(nn.Linear(5, 16), nn.Mish(), nn.Linear(16, 20)),
        )

    def forward(self, x, eps):
        mu, log_var = self.enc(x).chunk(2, -1)
        y = self.dec(mu + eps * torch.exp(0.5 * log_var))
        rec = F.binary_cross_entropy_with_logits(y, x, reduction="sum") / x.shape[0]
        return rec - 0.5 * (1 + log_var - mu**2 - log_var.exp()).sum(1).mean()


@model("vq-vae", x=real(4, 6, 8))
class VqVae(nn.Module):
    """Nearest code by distance."""

    def __init__(self):
        super().__init__()
        self.enc, self.dec, self.code = nn.Linear(8, 4), nn.Linear(4, 8), nn.Embedding(10, 4)

    def forward(self, x):
        z = self.enc(x)
        d = (
            (z**2).sum(-1, keepdim=True)
            - 2 * z @ self.code.weight.t()
            + (self.code.weight**2).sum(-1)
        )
        q = self.code(d.argmin(-1))
        st = z + (q - z) * 0.5
        return F.mse_loss(self.dec(st), x) + 1.25 * F.mse_loss(q, z)


@model("gan-generator", z=real(4, 6), real_=real(4, 1, 8, 8))
class Gan(nn.Module):
    def __init__(self):
        super().__init__()
        self.g = nn.Sequential(
            nn.ConvTranspose2d(6, 8, 4, 1, 0, bias=False),
            nn.BatchNorm2d(8),
            nn.ReLU(),
            nn.ConvTranspose2d(8, 1, 4, 2, 1),
            nn.Tanh(),
        )
        self.d = nn.Sequential(nn.Conv2d(1, 6, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(6, 1, 4))

    def forward(self, z, real_):
        fake = self.g(z[:, :, None, None])
        return (
            F.softplus(-self.d(fake)).mean()
            + F.relu(1 - self.d(real_)).mean()
            + 0.5 * F.relu(1 + self.d(fake)).mean()
        )


@model("style-modulation", x=real(2, 4, 6, 6), w=real(2, 5), y=real(2, 6, 6, 6))
class Modulated(nn.Module):
    """Weights scaled and normalised per sample, as one grouped convolution."""

    def __init__(self):
        super().__init__()
        self.weight, self.style = nn.Parameter(torch.randn(6, 4, 3, 3)), nn.Linear(5, 4)

    def forward(self, x, w, y):
        k = self.weight[None] * self.style(w)[:, None, :, None, None]
        k = k * torch.rsqrt((k**2).sum((2, 3, 4), keepdim=True) + 1e-8)
        out = F.conv2d(x.reshape(1, 8, 6, 6), k.reshape(12, 4, 3, 3), padding=1, groups=2).view(
            2, 6, 6, 6
        )
        return F.mse_loss(F.leaky_relu(out, 0.2), y)


@model("spectral-norm", x=real(4, 6), y=real(4, 3))
class Spectral(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(6, 8), nn.Linear(8, 3)
        self.register_buffer("u", torch.randn(8))

    def forward(self, x, y):
        v = F.normalize(self.a.weight.t() @ self.u, dim=0)
        u = F.normalize(self.a.weight @ v, dim=0)
        w = self.a.weight / (u @ self.a.weight @ v)
        return F.mse_loss(self.b(F.selu(F.linear(x, w, self.a.bias))), y)


@model("stn", image=real(2, 1, 8, 8), labels=ids(3, 2))
class SpatialTransformer(nn.Module):
    """Samples its input on a learnt affine grid."""

    def __init__(self):
        super().__init__()
        self.loc, self.conv, self.head = nn.Linear(64, 6), nn.Conv2d(1, 4, 3), nn.Linear(4 * 36, 3)

    def forward(self, image, labels):
        theta = self.loc(image.flatten(1)).view(2, 2, 3) * 0.1 + torch.eye(2, 3, dtype=image.dtype)
        x = F.grid_sample(
            image, F.affine_grid(theta, [2, 1, 8, 8], align_corners=False), align_corners=False
        )
        return F.cross_entropy(self.head(F.relu(self.conv(x)).flatten(1)), labels)


class Warp(nn.Module):
    """A learnt flow moves features that are learnt too; both get gradients through the sampling."""

    def __init__(self, mode, padding, align):
        super().__init__()
        self.kind = dict(mode=mode, padding_mode=padding, align_corners=align)
        self.features, self.flow, self.grid = (
            nn.Conv2d(3, 10, 3, padding=1),
            nn.Conv2d(3, 2, 3, padding=1),
            nn.Parameter(torch.rand(1, 7, 9, 2) * 2.6 - 1.3),
        )

    def forward(self, image, target):
        grid = self.grid + 0.3 * torch.tanh(self.flow(image)).permute(0, 2, 3, 1)
        return F.mse_loss(
            F.grid_sample(torch.tanh(self.features(image)), grid, **self.kind), target
        )


for kind in ["bilinear", "nearest", "bicubic"]:
    for edge in ["zeros", "border", "reflection"]:
        for corners in [False, True]:
            model(
                f"warp-{kind}-{edge}{'-corners' if corners else ''}",
                image=real(2, 3, 7, 9),
                target=real(2, 10, 7, 9),
            )(lambda kind=kind, edge=edge, corners=corners: Warp(kind, edge, corners))


@model("unfold-patches", image=real(2, 3, 8, 8), target=real(2, 3, 8, 8))
class Unfold(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Linear(27, 27)

    def forward(self, image, target):
        p = F.unfold(image, 3, padding=1)
        y = self.f(p.transpose(1, 2)).transpose(1, 2).reshape(2, 3, 9, 8, 8).mean(2)
        return F.mse_loss(y, target)


@model("fold-patches", 2, 0, 1, 2, image=real(2, 2, 9, 8), target=real(2, 2, 9, 8, seed=4))
@model("fold-overlap", 3, 1, 1, 1, image=real(2, 2, 9, 8), target=real(2, 2, 9, 8, seed=4))
@model(
    "fold-dilated",
    (3, 2),
    (2, 0),
    (2, 1),
    (1, 2),
    image=real(2, 2, 9, 8),
    target=real(2, 2, 9, 8, seed=4),
)
class Fold(nn.Module):
    """Patches that are put back, added where they overlap."""

    def __init__(self, kernel, padding, dilation, stride):
        super().__init__()
        self.how = dict(kernel_size=kernel, padding=padding, dilation=dilation, stride=stride)
        rows = F.unfold(torch.zeros(1, 2, 9, 8), **self.how).shape[1]
        self.f = nn.Linear(rows, rows)

    def forward(self, image, target):
        p = self.f(F.unfold(image, **self.how).transpose(1, 2)).transpose(1, 2)
        return F.mse_loss(F.fold(torch.tanh(p), (9, 8), **self.how), target)


@model("unpool", 2, image=real(2, 2, 8, 8), target=real(2, 2, 8, 8, seed=4))
@model("unpool-overlap", 3, image=real(2, 2, 9, 9), target=real(2, 2, 9, 9, seed=4))
class Unpool(nn.Module):
    """Maxima go back to where they came from."""

    def __init__(self, kernel):
        super().__init__()
        self.a, self.b = nn.Conv2d(2, 4, 3, padding=1), nn.Conv2d(4, 2, 3, padding=1)
        self.pool, self.unpool = (
            nn.MaxPool2d(kernel, 2, return_indices=True),
            nn.MaxUnpool2d(kernel, 2),
        )

    def forward(self, image, target):
        h = self.a(image)
        y, at = self.pool(h)
        return F.mse_loss(self.b(self.unpool(torch.tanh(y), at, output_size=h.shape)), target)


@model("maxpool-ties", image=lambda: ids(3, 2, 2, 9, 9)().float(), y=real(2, 2))
class MaxpoolTies(nn.Module):
    """Equal maxima in windows and ReLU at exact zero."""

    def __init__(self):
        super().__init__()
        self.scale, self.head = nn.Parameter(torch.ones(2)), nn.Linear(2 * 25, 2)

    def forward(self, image, y):
        h = F.relu((image - 1) * self.scale[:, None, None])
        return F.mse_loss(self.head(F.max_pool2d(h, 3, 2, 1).flatten(1)), y)


# ---- graphs, tables, points and losses
# ------------------------------------------------------------------------------
EDGES = [[0, 1, 1, 2, 3, 4, 5, 0, 2, 5], [1, 0, 2, 1, 4, 3, 0, 5, 5, 2]]


@model("gnn-scatter", x=real(6, 5), edges=fixed(EDGES), labels=ids(3, 6))
class GraphConv(nn.Module):
    """Sums of neighbours by index_add, means by counts."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.own = nn.Linear(5, 8), nn.Linear(8, 3), nn.Linear(8, 3)

    def forward(self, x, edges, labels):
        s, t = edges[0], edges[1]
        h = self.a(x)
        deg = (
            torch.zeros(6, dtype=x.dtype)
            .index_add(0, t, torch.ones(10, dtype=x.dtype))
            .clamp(min=1)
        )
        h = F.relu(torch.zeros_like(h).index_add(0, t, h[s]) / deg[:, None] + h)
        agg = torch.zeros(6, 8, dtype=x.dtype).scatter_add(0, t[:, None].expand(10, 8), h[s])
        return F.cross_entropy(self.b(agg) + self.own(h), labels)


@model("gat", x=real(6, 5), edges=fixed(EDGES), y=real(6, 4))
class GraphAttention(nn.Module):
    """Softmax over the edges of a node: scatter with a maximum, then sums."""

    def __init__(self):
        super().__init__()
        self.w, self.a = nn.Linear(5, 4, bias=False), nn.Linear(8, 1)

    def forward(self, x, edges, y):
        s, t = edges[0], edges[1]
        h = self.w(x)
        e = F.leaky_relu(self.a(torch.cat([h[s], h[t]], -1))[:, 0], 0.2)
        top = torch.full((6,), -1e9, dtype=x.dtype).scatter_reduce(0, t, e, "amax")
        p = torch.exp(e - top[t])
        p = p / torch.zeros(6, dtype=x.dtype).index_add(0, t, p)[t]
        return F.mse_loss(torch.zeros_like(h).index_add(0, t, p[:, None] * h[s]), y)


@model("scatter-max-pool", "amax", x=real(8, 4), at=fixed([0, 0, 1, 1, 1, 2, 2, 2]), y=real(3, 4))
@model("scatter-min-pool", "amin", x=real(8, 4), at=fixed([0, 0, 1, 1, 1, 2, 2, 2]), y=real(3, 4))
@model("scatter-prod-pool", "prod", x=real(8, 4), at=fixed([0, 0, 1, 1, 1, 2, 2, 2]), y=real(3, 4))
class ScatterPool(nn.Module):
    """Reduces nodes to graphs, with gradients through the reduction."""

    def __init__(self, how):
        super().__init__()
        self.f, self.base, self.how = nn.Linear(4, 4), nn.Parameter(torch.rand(3, 4)), how

    def forward(self, x, at, y):
        return F.mse_loss(
            self.base.scatter_reduce(0, at[:, None].expand(8, 4), self.f(x), self.how), y
        )


@model("dlrm", dense=real(4, 6), bag=ids(20, 4, 3), bag2=ids(30, 4, 2), y=unit(4))
class Dlrm(nn.Module):
    def __init__(self):
        super().__init__()
        self.bot, self.a, self.b, self.top = (
            nn.Linear(6, 8),
            nn.EmbeddingBag(20, 8, mode="sum"),
            nn.EmbeddingBag(30, 8, mode="mean"),
            nn.Linear(11, 1),
        )

    def forward(self, dense, bag, bag2, y):
        x = F.relu(self.bot(dense))
        t = torch.stack([x, self.a(bag), self.b(bag2)], 1)
        z = t @ t.transpose(1, 2)
        i, j = torch.tril_indices(3, 3, -1)
        return F.binary_cross_entropy_with_logits(
            self.top(torch.cat([x, z[:, i, j]], 1))[:, 0], (y > 0.5).to(x.dtype)
        )


@model("embedding-sum", bag=ids(20, 4, 3), y=real(4, 8))
class EmbeddingSum(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Embedding(20, 8, max_norm=None, padding_idx=2)

    def forward(self, bag, y):
        x = self.a(bag)
        m = (bag != 2).to(x.dtype)[..., None]
        return F.mse_loss((x * m).sum(1) / m.sum(1).clamp(min=1), y)


@model("deepfm", fields=ids(12, 5, 4), y=unit(5))
class DeepFm(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb, self.lin, self.deep = (
            nn.Embedding(12, 6),
            nn.Embedding(12, 1),
            nn.Sequential(nn.Linear(24, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 1)),
        )

    def forward(self, fields, y):
        e = self.emb(fields)
        fm = 0.5 * (e.sum(1) ** 2 - (e**2).sum(1)).sum(-1, keepdim=True)
        z = self.lin(fields).sum(1) + fm + self.deep(e.flatten(1))
        return F.binary_cross_entropy(torch.sigmoid(z)[:, 0], y)


@model("word2vec", word=ids(20, 6), context=ids(20, 6, seed=5), negative=ids(20, 6, 3, seed=6))
class Word2Vec(nn.Module):
    def __init__(self):
        super().__init__()
        self.i, self.o = nn.Embedding(20, 8), nn.Embedding(20, 8)

    def forward(self, word, context, negative):
        w = self.i(word)
        pos = F.logsigmoid((w * self.o(context)).sum(-1))
        neg = F.logsigmoid(-torch.bmm(self.o(negative), w[..., None])[..., 0]).sum(-1)
        return -(pos + neg).mean()


@model("pointnet", points=real(3, 10, 3), labels=ids(4, 3))
class PointNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.t, self.a, self.head = nn.Linear(3, 9), nn.Conv1d(3, 8, 1), nn.Linear(8, 4)

    def forward(self, points, labels):
        m = self.t(points).max(1)[0].view(3, 3, 3) + torch.eye(3, dtype=points.dtype)
        x = F.relu(self.a((points @ m).transpose(1, 2)))
        reg = torch.linalg.matrix_norm(
            torch.eye(3, dtype=points.dtype) - m @ m.transpose(1, 2)
        ).mean()
        return F.cross_entropy(self.head(x.max(2).values), labels) + 0.1 * reg


@model("dgcnn", points=real(2, 8, 3), labels=ids(4, 2))
class Dgcnn(nn.Module):
    """Neighbours by distance and topk, features of the edges."""

    def __init__(self):
        super().__init__()
        self.f, self.head = nn.Linear(6, 8), nn.Linear(8, 4)

    def forward(self, points, labels):
        d = (
            torch.cdist(points, points, compute_mode="donot_use_mm_for_euclid_dist")
            if False
            else ((points[:, :, None] - points[:, None]) ** 2).sum(-1)
        )
        at = d.topk(3, largest=False).indices
        near = torch.gather(points[:, None].expand(2, 8, 8, 3), 2, at[..., None].expand(2, 8, 3, 3))
        e = torch.cat([near - points[:, :, None], points[:, :, None].expand_as(near)], -1)
        return F.cross_entropy(self.head(F.leaky_relu(self.f(e), 0.2).amax(2).mean(1)), labels)


@model("nerf", rays=real(4, 6, 3), color=unit(4, 3))
class Nerf(nn.Module):
    """Positional encoding; volume rendering by a running product."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(15, 16), nn.ReLU(), nn.Linear(16, 4))

    def forward(self, rays, color):
        f = torch.cat(
            [rays, torch.sin(rays), torch.cos(rays), torch.sin(2 * rays), torch.cos(2 * rays)], -1
        )
        y = self.net(f)
        alpha = 1 - torch.exp(-F.softplus(y[..., 3]) * 0.3)
        keep = torch.cumprod(torch.cat([torch.ones_like(alpha[:, :1]), 1 - alpha + 1e-10], 1), 1)[
            :, :-1
        ]
        return F.mse_loss(((alpha * keep)[..., None] * torch.sigmoid(y[..., :3])).sum(1), color)


@model("siren", x=unit(8, 2), y=real(8, 3))
class Siren(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(2, 16), nn.Linear(16, 16), nn.Linear(16, 3)

    def forward(self, x, y):
        return F.mse_loss(self.c(torch.sin(30 * self.b(torch.sin(30 * self.a(x)) / 30))), y)


@model("ppo", state=real(6, 4), action=ids(3, 6), old=real(6, scale=0.1), adv=real(6), ret=real(6))
class Ppo(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.pi, self.v = nn.Linear(4, 16), nn.Linear(16, 3), nn.Linear(16, 1)

    def forward(self, state, action, old, adv, ret):
        h = torch.tanh(self.body(state))
        lp = F.log_softmax(self.pi(h), -1)
        ratio = torch.exp(lp.gather(1, action[:, None])[:, 0] - (old - 1.1))
        a = (adv - adv.mean()) / (adv.std() + 1e-8)
        surrogate = torch.min(ratio * a, ratio.clamp(0.8, 1.2) * a)
        entropy = -(lp.exp() * lp).sum(-1)
        return (
            -surrogate.mean() + 0.5 * (self.v(h)[:, 0] - ret).pow(2).mean() - 0.01 * entropy.mean()
        )


@model("simclr", a=real(5, 8), b=real(5, 8, seed=4))
class SimClr(nn.Module):
    def __init__(self):
        super().__init__()
        self.f, self.t = (
            nn.Sequential(nn.Linear(8, 12), nn.BatchNorm1d(12), nn.ReLU(), nn.Linear(12, 6)),
            nn.Parameter(torch.tensor(0.2)),
        )

    def forward(self, a, b):
        z = F.normalize(self.f(torch.cat([a, b])), dim=-1)
        s = (z @ z.t() * torch.exp(self.t)).masked_fill(
            torch.eye(10, dtype=torch.bool), float("-inf")
        )
        return F.cross_entropy(s, torch.cat([torch.arange(5, 10), torch.arange(0, 5)]))


@model("siamese-triplet", a=real(5, 8), p=real(5, 8, seed=4), n=real(5, 8, seed=5))
class Triplet(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(8, 12), nn.Hardtanh(-0.5, 0.5), nn.Linear(12, 6))

    def forward(self, a, p, n):
        a, p, n = self.f(a), self.f(p), self.f(n)
        return (
            F.triplet_margin_loss(a, p, n, margin=1.0)
            + (1 - F.cosine_similarity(a, p)).mean()
            + F.margin_ranking_loss(a[:, 0], n[:, 0], torch.ones_like(a[:, 0]), 0.1)
        )


@model("sparsemax", x=real(5, 8), y=ids(6, 5))
class Sparsemax(nn.Module):
    """Projection to the simplex by sorting and a running sum; entropy of it as loss."""

    def __init__(self):
        super().__init__()
        self.f, self.g = nn.Linear(8, 6), nn.Linear(6, 6)

    def forward(self, x, y):
        z = self.f(x)
        s = torch.sort(z, -1, descending=True).values
        k = torch.arange(1, 7, dtype=x.dtype)
        c = torch.cumsum(s, -1)
        support = (1 + k * s > c).to(x.dtype)
        n = support.sum(-1, keepdim=True)
        tau = ((s * support).sum(-1, keepdim=True) - 1) / n
        return F.cross_entropy(self.g(F.relu(z - tau)), y)


@model("losses", x=real(6, 8), y=real(6, 4), p=unit(6, 4), k=ids(4, 6))
class Losses(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Linear(8, 4)

    def forward(self, x, y, p, k):
        z = self.f(x)
        q = p / p.sum(-1, keepdim=True)
        kl = F.kl_div(F.log_softmax(z, -1), q, reduction="batchmean")
        quantile = torch.maximum(0.9 * (y - z), -0.1 * (y - z)).mean()
        poisson = F.poisson_nll_loss(z, p)
        gauss = F.gaussian_nll_loss(z, y, F.softplus(z) + 0.1)
        hinge = (
            F.multi_margin_loss(z, k)
            if False
            else F.relu(1 + z - z.gather(1, k[:, None])).sum(1).mean()
        )
        logcosh = (F.softplus(2 * (z - y)) - (z - y) - math.log(2.0)).mean()
        dice = 1 - 2 * (torch.sigmoid(z) * p).sum() / (torch.sigmoid(z).sum() + p.sum() + 1)
        return (
            kl
            + quantile
            + poisson
            + gauss
            + 0.1 * hinge
            + logcosh
            + dice
            + F.soft_margin_loss(z, torch.sign(y))
            + F.cosine_embedding_loss(z, y, torch.ones(6, dtype=z.dtype))
        )


@model("smoothed-ce", x=real(6, 8), y=ids(4, 6), soft=unit(6, 4))
class SoftTargets(nn.Module):
    """Cross entropy with probabilities as targets, and with a focal factor."""

    def __init__(self):
        super().__init__()
        self.f = nn.Linear(8, 4)

    def forward(self, x, y, soft):
        z = self.f(x)
        lp = F.log_softmax(z, 1)
        t = soft / soft.sum(1, keepdim=True)
        smooth = 0.9 * F.one_hot(y, 4).to(z.dtype) + 0.1 / 4
        return F.cross_entropy(z, t) - (smooth * lp).sum(1).mean()


@model("activations", x=real(4, 16), y=real(4, 16, seed=5))
class Activations(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Linear(16, 16)

    def forward(self, x, y):
        acts = [
            F.celu,
            F.selu,
            F.softsign,
            F.hardshrink,
            F.softshrink,
            F.tanhshrink,
            F.logsigmoid,
            F.relu6,
            F.hardswish,
            F.hardsigmoid,
            F.mish,
            F.silu,
            torch.atan,
            torch.sinh,
            lambda z: F.threshold(z, 0.1, -0.2),
            lambda z: F.rrelu(z, 0.2, 0.2),
            lambda z: F.glu(torch.cat([z, z * 0.5], -1)),
            lambda z: F.elu(z, 0.7),
            lambda z: torch.tan(z * 0.2),
            lambda z: torch.asin(torch.tanh(z) * 0.9),
            lambda z: torch.expm1(z),
            lambda z: torch.log1p(z.abs()),
            lambda z: torch.frac(z),
            lambda z: torch.remainder(z, 0.7),
            lambda z: torch.fmod(z, 0.7),
            lambda z: torch.round(z) * z,
            lambda z: torch.lerp(z, y, 0.3),
            lambda z: torch.addcmul(z, z, y),
            lambda z: z.clamp(max=0.5),
            lambda z: torch.nan_to_num(z),
            lambda z: torch.hypot(z, y) if False else torch.sqrt(z * z + y * y),
            lambda z: torch.acosh(1.5 + z * z),
            lambda z: torch.asinh(z),
            lambda z: torch.atanh(torch.tanh(z) * 0.5),
            lambda z: torch.acos(torch.tanh(z) * 0.9),
            lambda z: torch.cosh(z),
            lambda z: torch.floor(z) * z,
            lambda z: z**3,
            lambda z: (z * z + 0.1) ** y,
            lambda z: torch.exp2(z),
            lambda z: torch.log2(z.abs() + 1),
            lambda z: z.sign() * z.abs().sqrt(),
        ]
        z = self.f(x)
        return sum(F.mse_loss(a(z), y) for a in acts)


@model("reductions", x=real(4, 6, 5), y=real(4, 6, 5, seed=5))
class Reductions(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Linear(5, 5)

    def forward(self, x, y):
        z = self.f(x)
        parts = [
            z.amax(1),
            z.amin(-1),
            z.prod(2),
            z.norm(dim=1),
            z.norm(p=1, dim=2),
            z.logsumexp(1),
            z.std(1),
            z.var(2, unbiased=False),
            z.max(2).values,
            z.min(1).values,
            z.mean((0, 2)),
            z.sum(),
            z.max(),
            z.median(2).values if False else z.sort(2).values[..., 2],
            z.cumsum(1),
            torch.cumsum(z.flip(1), 1),
            z.kthvalue(2, 2).values if False else z.topk(2, 1).values,
            z.norm(),
            torch.linalg.vector_norm(z, 3, 1) if False else z.abs().pow(3).sum(1),
            z.square().mean(),
            z.diff(dim=1),
            z.roll(2, 1),
            z.unfold(1, 3, 1),
            z.tril(),
            z.triu(1),
            z.repeat(1, 2, 1),
            z.repeat_interleave(2, 1),
            z.flatten(1).var(1),
        ]
        return sum((p * p * 0.1 + p).mean() for p in parts) + F.mse_loss(z, y)


@model(
    "indexing",
    x=real(4, 6, 5),
    at=fixed([1, 3, 3, 0]),
    m=lambda: torch.arange(24).view(4, 6) % 3 == 0,
)
class Indexing(nn.Module):
    def __init__(self):
        super().__init__()
        self.w, self.f = nn.Parameter(torch.randn(4, 6, 5)), nn.Linear(5, 5)

    def forward(self, x, at, m):
        z = self.f(x) * self.w
        parts = [
            z[:, at],
            z[at, at],
            z[at],
            z[..., ::2],
            z[:, -1],
            z[:, 1:-1:2],
            z[:, :, [0, 2, 4]],
            z.index_select(1, at),
            torch.where(m[..., None], z, -z),
            z.masked_fill(m[..., None], 0.5),
            torch.take_along_dim(z, at.view(4, 1, 1), 1),
            z.scatter(1, at.view(4, 1, 1).expand(4, 1, 5), 0.25),
            z.index_put((at, at), self.w[0, 0].expand(4, 5)) if False else z,
            torch.stack([z, z * z], 1),
            torch.cat([z, x], 1),
            z.split(2, 1)[1],
            z.view(4, 3, 2, 5).transpose(1, 2).reshape(4, 30),
            z.expand(2, 4, 6, 5),
            F.pad(z, (1, 2, 0, 1), value=0.3),
            z.narrow(1, 1, 3),
            z.movedim(0, 2),
            torch.einsum("bij,bkj->bik", z, z),
            torch.tensordot(z, self.w, ([2], [2])),
            torch.outer(z[0, 0], z[1, 1]),
            torch.diagonal(z, 0, 0, 1),
            z.select(1, 2),
            z.new_zeros(4, 6, 5).index_copy(0, at[:1], z[:1]) if False else z,
        ]
        return sum((p * p * 0.1 + p).mean() for p in parts)


@model("detr", image=real(2, 3, 8, 8), cls=ids(4, 2, 3), box=unit(2, 3, 4))
class Detr(nn.Module):
    """Convolutional features, encoder-decoder with learnt queries, box losses of a fixed
    matching."""

    def __init__(self):
        super().__init__()
        self.conv, self.pos, self.query = (
            nn.Conv2d(3, 16, 2, 2),
            nn.Parameter(torch.rand(16, 16)),
            nn.Parameter(torch.rand(3, 16)),
        )
        self.net, self.cls, self.box = (
            nn.Transformer(16, 2, 1, 1, 32, 0.0, batch_first=True),
            nn.Linear(16, 4),
            nn.Linear(16, 4),
        )

    def forward(self, image, cls, box):
        x = self.conv(image).flatten(2).transpose(1, 2) + self.pos
        h = self.net(x, self.query[None].expand(2, 3, 16))
        b = self.box(h).sigmoid()
        lo, hi = b[..., :2] - b[..., 2:] / 2, b[..., :2] + b[..., 2:] / 2
        l2, h2 = box[..., :2] - box[..., 2:] / 2, box[..., :2] + box[..., 2:] / 2
        inter = (torch.min(hi, h2) - torch.max(lo, l2)).clamp(min=0).prod(-1)
        union = b[..., 2:].prod(-1) + box[..., 2:].prod(-1) - inter
        hull = (torch.max(hi, h2) - torch.min(lo, l2)).prod(-1)
        giou = inter / union - (hull - union) / hull
        return (
            F.cross_entropy(self.cls(h).transpose(1, 2), cls)
            + F.l1_loss(b, box)
            + (1 - giou).mean()
        )


@model("capsule", x=real(3, 6, 4), y=ids(2, 3))
class Capsule(nn.Module):
    """Routing by agreement, unrolled."""

    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(6, 2, 4, 5) * 0.5)

    def forward(self, x, y):
        u = torch.einsum("bid,ijde->bije", x, self.w)
        b = torch.zeros(3, 6, 2, dtype=x.dtype)
        for _ in range(3):
            s = (b.softmax(2)[..., None] * u).sum(1)
            n = (s * s).sum(-1, keepdim=True)
            v = n / (1 + n) * s / torch.sqrt(n + 1e-9)
            b = b + torch.einsum("bije,bje->bij", u, v)
        length = v.norm(dim=-1)
        t = F.one_hot(y, 2).to(x.dtype)
        return (
            (t * F.relu(0.9 - length) ** 2 + 0.5 * (1 - t) * F.relu(length - 0.1) ** 2)
            .sum(1)
            .mean()
        )


@model("neural-ode", x=real(3, 4), y=real(3, 4))
class NeuralOde(nn.Module):
    """Four steps of Runge and Kutta with shared weights."""

    def __init__(self):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 4))

    def forward(self, x, y):
        h = 0.25
        f = lambda t, z: self.f(torch.cat([z, z.new_full((3, 1), t)], -1))
        for i in range(4):
            t = i * h
            a = f(t, x)
            b = f(t + h / 2, x + h / 2 * a)
            c = f(t + h / 2, x + h / 2 * b)
            x = x + h / 6 * (a + 2 * b + 2 * c + f(t + h, x + h * c))
        return F.mse_loss(x, y)


@model("deep-sets", x=real(3, 7, 4), n=fixed([7, 4, 2]), y=real(3, 2))
class DeepSets(nn.Module):
    """Sets of unequal sizes, masked mean, maximum and log-sum-exp."""

    def __init__(self):
        super().__init__()
        self.f, self.g = nn.Linear(4, 8), nn.Linear(24, 2)

    def forward(self, x, n, y):
        m = torch.arange(7)[None] < n[:, None]
        h = F.relu(self.f(x))
        mean = (h * m[..., None]).sum(1) / n[:, None]
        low = h.masked_fill(~m[..., None], -1e4)
        return F.mse_loss(self.g(torch.cat([mean, low.amax(1), torch.logsumexp(low, 1)], -1)), y)


@model("hypernet", x=real(4, 3), z=real(4, 5), y=real(4, 2))
class HyperNet(nn.Module):
    """One network makes the weights of another, per sample; a bilinear form; a low-rank addition to
    a weight."""

    def __init__(self):
        super().__init__()
        self.h, self.bi = nn.Linear(5, 6), nn.Bilinear(3, 5, 2)
        self.frozen, self.a, self.b = (
            nn.Linear(3, 2),
            nn.Parameter(torch.randn(2, 3)),
            nn.Parameter(torch.zeros(2, 2)),
        )

    def forward(self, x, z, y):
        w = self.h(z).view(4, 2, 3)
        return F.mse_loss(
            torch.bmm(w, x[..., None])[..., 0]
            + self.bi(x, z)
            + self.frozen(x)
            + x @ self.a.t() @ self.b.t(),
            y,
        )


@model("kan", x=real(5, 3), y=real(5, 2))
class Kan(nn.Module):
    """Splines by the recursion of de Boor."""

    def __init__(self):
        super().__init__()
        self.c, self.w = nn.Parameter(torch.randn(2, 3, 6) * 0.3), nn.Parameter(torch.randn(2, 3))
        self.register_buffer("knots", torch.linspace(-2.5, 2.5, 10))

    def forward(self, x, y):
        g = self.knots
        z = torch.tanh(x)[..., None]
        b = ((z >= g[:-1]) & (z < g[1:])).to(x.dtype)
        for k in range(1, 4):
            b = (z - g[: -k - 1]) / (g[k:-1] - g[: -k - 1]) * b[..., :-1] + (g[k + 1 :] - z) / (
                g[k + 1 :] - g[1:-k]
            ) * b[..., 1:]
        return F.mse_loss(torch.einsum("big,oig->bo", b, self.c) + F.silu(x) @ self.w.t(), y)


@model(
    "rnn-packed-max",
    x=real(3, 6, 4),
    keep=fixed([[1.0] * 6, [1.0] * 4 + [0.0] * 2, [1.0] * 2 + [0.0] * 4]),
    y=ids(3, 3),
)
class MaskedGru(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn, self.head = nn.GRU(4, 6, bidirectional=True, batch_first=True), nn.Linear(12, 3)

    def forward(self, x, keep, y):
        h, _ = self.rnn(x)
        h = h * keep[..., None].to(h.dtype) - 1e3 * (1 - keep[..., None].to(h.dtype))
        return F.cross_entropy(self.head(h.max(1)[0]), y)


class Ties(nn.Module):
    """Equal elements in reductions, and arguments at the corners of functions.  Not max(dim) and
    topk: whom they choose is not in the file."""

    exact = True  # parameters without noise

    def __init__(self):
        super().__init__()
        x = torch.tensor(
            [
                [0.0, 1.0, 1.0, -1.0],
                [3.0, 3.0, -3.0, 0.0],
                [2.0, 2.0, 2.0, 2.0],
                [-2.0, 0.5, -0.5, 6.0],
            ]
        )
        self.net = nn.Module()
        self.net.z, self.net.w, self.net.b = (
            nn.Parameter(x.clone()),
            nn.Parameter(x.flip(1)),
            nn.Parameter(torch.zeros(2, 4)),
        )


def tie(name, f):
    """One function of tied arguments alone, so that a difference names it."""

    class Tie(Ties):
        def forward(self, at):
            z, w = self.net.z, self.net.w
            y = f(z, w).flatten()
            return (
                y * (torch.arange(y.numel(), dtype=z.dtype) / 7 + 1)
            ).sum() + self.net.b.sum() * 0

    model("tie-" + name, at=fixed([0, 1, 1, 0]))(Tie)


for _name, _f in dict(
    amax=lambda z, w: z.amax(1),
    amin=lambda z, w: z.amin(0),
    maximum=torch.maximum,
    minimum=torch.minimum,
    clamp=lambda z, w: z.clamp(-1, 2),
    clamp_min=lambda z, w: z.clamp(min=0),
    clamp_max=lambda z, w: z.clamp(max=3),
    abs=lambda z, w: z.abs(),
    relu=lambda z, w: F.relu(z),
    relu6=lambda z, w: F.relu6(z),
    hardtanh=lambda z, w: F.hardtanh(z),
    hardswish=lambda z, w: F.hardswish(z),
    hardsigmoid=lambda z, w: F.hardsigmoid(z),
    leaky=lambda z, w: F.leaky_relu(z, 0.1),
    elu=lambda z, w: F.elu(z),
    softshrink=lambda z, w: F.softshrink(z, 0.5),
    hardshrink=lambda z, w: F.hardshrink(z, 0.5),
    threshold=lambda z, w: F.threshold(z, 1, 0.5),
    maxall=lambda z, w: z.max(),
    maxpool=lambda z, w: F.max_pool1d(z[None], 2, 1),
    smooth_l1=lambda z, w: F.smooth_l1_loss(z, w, reduction="none"),
    huber=lambda z, w: F.huber_loss(z, w, reduction="none"),
    l1=lambda z, w: F.l1_loss(z, w, reduction="none"),
    scatter=lambda z, w: w[:2].scatter_reduce(
        0, torch.tensor([0, 1, 1, 0])[:, None].expand(4, 4), z, "amax"
    ),
    prod=lambda z, w: z.prod(0),
    where=lambda z, w: torch.where(z > 0, z, w),
    prelu=lambda z, w: F.prelu(z, w[0, :1]),
    celu=lambda z, w: F.celu(z),
    selu=lambda z, w: F.selu(z),
    norm=lambda z, w: (z - z.detach()).norm(dim=1),
    sign=lambda z, w: z.sign() * z,
    pow0=lambda z, w: z.clamp(min=0) ** 1.5,
    sqrt=lambda z, w: torch.sqrt(F.relu(z) + 1e-12),
    softplus=lambda z, w: F.softplus(z * 30),
).items():
    tie(_name, _f)
