#!/usr/bin/env python3
"""Exports training graphs of large models without their weights, for tests/bench/planner_large.py.

    large_models.py --out DIR [--list] [NAME ...]     names are globs; without any: every model

DIR/NAME.onnx computes the loss of one batch.  Its parameters are external data in a file that does
not exist, which `ckc --plan-only` accepts; buffers are in the file.  Parameters are pages that no
one writes, so that 47 G parameters export in 1 GB of memory.  Depth and widths are those of the
published models, except where LAYERS or a class says otherwise.  A file that exists is kept.

Needs torch, onnx, onnxscript and transformers; sdxl needs diffusers as well.
"""

import argparse
import contextlib
import fnmatch
import io
import os
import resource
import sys
import time
import warnings

import torch
import torch.nn.functional as F
from torch import nn

# Models that are not exported at full depth: published layers, exported layers.
LAYERS = {"deepseek": (61, 8)}


def tokens(*shape):
    return torch.zeros(*shape, dtype=torch.long)


class Loss(nn.Module):
    """The loss of a transformers model, of the inputs with the names given."""

    def __init__(self, model, names, **flags):
        super().__init__()
        self.model, self.names, self.flags = model, names, flags

    def forward(self, *inputs):
        return self.model(**dict(zip(self.names, inputs)), **self.flags).loss


class Classify(nn.Module):
    """Cross entropy of the first output of a model."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x, labels):
        y = self.model(x)
        return F.cross_entropy(y if isinstance(y, torch.Tensor) else y.logits, labels)


def image_classifier(model, batch, size):
    return Classify(model), (torch.zeros(batch, 3, size, size), tokens(batch))


def causal(kind, config, batch, length):
    model = kind._from_config(config, attn_implementation="sdpa")
    names = ["input_ids", "labels"]
    return Loss(model, names, use_cache=False), (tokens(batch, length), tokens(batch, length))


def llama():
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=128256,
        hidden_size=4096,
        intermediate_size=14336,
        num_hidden_layers=32,
        num_attention_heads=32,
        num_key_value_heads=8,
        max_position_embeddings=8192,
        rms_norm_eps=1e-5,
        rope_theta=500000.0,
    )
    return causal(LlamaForCausalLM, config, 1, 8192)


class DiTBlock(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(dim, elementwise_affine=False, eps=1e-6)
        self.norm2 = nn.LayerNorm(dim, elementwise_affine=False, eps=1e-6)
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.mlp = nn.Sequential(
            nn.Linear(dim, 4 * dim), nn.GELU(approximate="tanh"), nn.Linear(4 * dim, dim)
        )
        self.modulation = nn.Sequential(nn.SiLU(), nn.Linear(dim, 6 * dim))

    def forward(self, x, c):
        b, t, d = x.shape
        s1, k1, g1, s2, k2, g2 = self.modulation(c).unsqueeze(1).chunk(6, dim=2)
        h = self.norm1(x) * (1 + k1) + s1
        q, k, v = self.qkv(h).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        h = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, t, d)
        x = x + g1 * self.proj(h)
        return x + g2 * self.mlp(self.norm2(x) * (1 + k2) + s2)


class DiT(nn.Module):
    """DiT-XL/2 (Peebles and Xie, 2023): noise prediction on latents."""

    def __init__(self, size, dim=1152, depth=28, heads=16):
        super().__init__()
        self.patch = nn.Conv2d(4, dim, 2, stride=2)
        self.position = nn.Parameter(torch.empty(1, (size // 2) ** 2, dim), requires_grad=False)
        self.time = nn.Sequential(nn.Linear(256, dim), nn.SiLU(), nn.Linear(dim, dim))
        self.label = nn.Embedding(1001, dim)
        self.blocks = nn.ModuleList(DiTBlock(dim, heads) for _ in range(depth))
        self.norm = nn.LayerNorm(dim, elementwise_affine=False, eps=1e-6)
        self.modulation = nn.Sequential(nn.SiLU(), nn.Linear(dim, 2 * dim))
        self.out = nn.Linear(dim, 2 * 2 * 8)

    def forward(self, x, t, y, noise):
        b, _, h, w = x.shape
        freqs = torch.exp(torch.arange(128) * (-9.210340371976184 / 128))
        angle = t[:, None] * freqs
        c = self.time(torch.cat([angle.cos(), angle.sin()], 1)) + self.label(y)
        x = self.patch(x).flatten(2).transpose(1, 2) + self.position
        for block in self.blocks:
            x = block(x, c)
        shift, scale = self.modulation(c).unsqueeze(1).chunk(2, dim=2)
        x = self.out(self.norm(x) * (1 + scale) + shift)
        x = x.view(b, h // 2, w // 2, 2, 2, 8).permute(0, 5, 1, 3, 2, 4).reshape(b, 8, h, w)
        return F.mse_loss(x[:, :4], noise)


def dit():
    """256 x 256 pixels: latents of 32 x 32."""
    x = torch.zeros(16, 4, 32, 32)
    return DiT(32), (x, torch.zeros(16), tokens(16), torch.zeros_like(x))


def efficientnet():
    from transformers import EfficientNetConfig, EfficientNetForImageClassification

    config = EfficientNetConfig(num_labels=1000)  # the defaults are those of B7
    return image_classifier(EfficientNetForImageClassification(config), 8, 600)


def swin():
    from transformers import SwinConfig, SwinForImageClassification

    config = SwinConfig(
        image_size=384,
        embed_dim=192,
        depths=[2, 2, 18, 2],
        num_heads=[6, 12, 24, 48],
        window_size=12,
        drop_path_rate=0.0,
        num_labels=1000,
    )
    # PyTorch cannot decompose "sdpa" with a bias here, nor in t5
    model = SwinForImageClassification._from_config(config, attn_implementation="eager")
    return image_classifier(model, 8, 384)


def convnext():
    from transformers import ConvNextConfig, ConvNextForImageClassification

    config = ConvNextConfig(
        hidden_sizes=[256, 512, 1024, 2048], depths=[3, 3, 27, 3], num_labels=1000
    )
    return image_classifier(ConvNextForImageClassification(config), 16, 224)


class Diffusion(nn.Module):
    def __init__(self, unet):
        super().__init__()
        self.unet = unet

    def forward(self, x, t, text, pooled, sizes, noise):
        added = dict(text_embeds=pooled, time_ids=sizes)
        y = self.unet(x, t, text, added_cond_kwargs=added, return_dict=False)[0]
        return F.mse_loss(y, noise)


def sdxl():
    from diffusers import UNet2DConditionModel

    unet = UNet2DConditionModel(
        sample_size=128,
        block_out_channels=(320, 640, 1280),
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"),
        transformer_layers_per_block=(1, 2, 10),
        attention_head_dim=(5, 10, 20),
        cross_attention_dim=2048,
        use_linear_projection=True,
        addition_embed_type="text_time",
        addition_time_embed_dim=256,
        projection_class_embeddings_input_dim=2816,
    )
    x, text = torch.zeros(2, 4, 128, 128), torch.zeros(2, 77, 2048)
    inputs = (x, torch.zeros(2), text, torch.zeros(2, 1280), torch.zeros(2, 6))
    return Diffusion(unet), (*inputs, torch.zeros_like(x))


def conv3d(cin, cout):
    return nn.Sequential(
        nn.Conv3d(cin, cout, 3, padding=1),
        nn.InstanceNorm3d(cout, affine=True),
        nn.LeakyReLU(0.01),
        nn.Conv3d(cout, cout, 3, padding=1),
        nn.InstanceNorm3d(cout, affine=True),
        nn.LeakyReLU(0.01),
    )


class UNet3D(nn.Module):
    """3D U-Net in the widths of nnU-Net (Isensee et al., 2021)."""

    def __init__(self, widths=(32, 64, 128, 256, 320, 320), classes=4):
        super().__init__()
        self.down = nn.ModuleList(conv3d(a, b) for a, b in zip((4, *widths), widths))
        up = list(zip(widths[:0:-1], widths[-2::-1]))
        self.turn = nn.ModuleList(nn.ConvTranspose3d(a, b, 2, stride=2) for a, b in up)
        self.up = nn.ModuleList(conv3d(2 * b, b) for _, b in up)
        self.head = nn.Conv3d(widths[0], classes, 1)

    def forward(self, x, labels):
        kept = []
        for i, block in enumerate(self.down):
            x = block(F.max_pool3d(x, 2) if i else x)
            kept.append(x)
        for turn, block, skip in zip(self.turn, self.up, kept[-2::-1]):
            x = block(torch.cat([turn(x), skip], 1))
        return F.cross_entropy(self.head(x), labels)


def unet3d():
    return UNet3D(), (torch.zeros(1, 4, 128, 128, 128), tokens(1, 128, 128, 128))


def mixtral():
    from transformers import MixtralConfig, MixtralForCausalLM

    config = MixtralConfig(
        hidden_size=4096,
        intermediate_size=14336,
        num_hidden_layers=32,
        num_attention_heads=32,
        num_key_value_heads=8,
        sliding_window=None,
        experts_implementation="batched_mm",
    )
    return causal(MixtralForCausalLM, config, 1, 128)


class LatentAttention(nn.Module):
    """Multi-head latent attention of DeepSeek-V2 and V3, without caches."""

    def __init__(self, dim, heads, q_rank, kv_rank, nope, rope, value):
        super().__init__()
        self.heads, self.kv_rank, self.nope, self.rope, self.value = (
            heads,
            kv_rank,
            nope,
            rope,
            value,
        )
        self.q_down, self.q_norm = nn.Linear(dim, q_rank, bias=False), nn.RMSNorm(q_rank)
        self.q_up = nn.Linear(q_rank, heads * (nope + rope), bias=False)
        self.kv_down, self.kv_norm = (
            nn.Linear(dim, kv_rank + rope, bias=False),
            nn.RMSNorm(kv_rank),
        )
        self.kv_up = nn.Linear(kv_rank, heads * (nope + value), bias=False)
        self.out = nn.Linear(heads * value, dim, bias=False)

    def turned(self, x, cos, sin):
        a, b = x.chunk(2, dim=-1)
        return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)

    def forward(self, x, cos, sin):
        b, t, _ = x.shape
        q = self.q_up(self.q_norm(self.q_down(x))).view(b, t, self.heads, -1).transpose(1, 2)
        kv, k_rope = self.kv_down(x).split([self.kv_rank, self.rope], -1)
        kv = self.kv_up(self.kv_norm(kv)).view(b, t, self.heads, -1).transpose(1, 2)
        q_nope, q_rope = q.split([self.nope, self.rope], -1)
        k_nope, v = kv.split([self.nope, self.value], -1)
        k_rope = self.turned(k_rope.unsqueeze(1), cos, sin).expand(b, self.heads, t, self.rope)
        q = torch.cat([q_nope, self.turned(q_rope, cos, sin)], -1)
        k = torch.cat([k_nope, k_rope], -1)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(b, t, -1))


class Experts(nn.Module):
    """Routed experts in the form of samples: every expert takes the same number of tokens, by
    top-k of the scores over tokens (expert choice), plus one shared expert."""

    def __init__(self, dim, hidden, count, share):
        super().__init__()
        self.share = share
        self.gate = nn.Linear(dim, count, bias=False)
        self.w1 = nn.Parameter(torch.empty(count, dim, 2 * hidden))
        self.w2 = nn.Parameter(torch.empty(count, hidden, dim))
        self.shared = SwiGLU(dim, hidden)

    def forward(self, x):
        b, t, d = x.shape
        flat = x.view(b * t, d)
        score = self.gate(flat).sigmoid().t()
        weight, index = score.topk(self.share * b * t // score.shape[0], dim=-1)
        chosen = flat[index]
        a, g = torch.bmm(chosen, self.w1).chunk(2, dim=-1)
        y = torch.bmm(F.silu(a) * g, self.w2) * weight.unsqueeze(-1)
        out = torch.zeros_like(flat).index_add(0, index.flatten(), y.view(-1, d))
        return out.view(b, t, d) + self.shared(x)


class SwiGLU(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.up, self.gate = (
            nn.Linear(dim, hidden, bias=False),
            nn.Linear(dim, hidden, bias=False),
        )
        self.down = nn.Linear(hidden, dim, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


class DeepSeek(nn.Module):
    """Blocks of DeepSeek-V3 with 32 of its 256 experts: one dense layer, then layers of experts."""

    def __init__(self, layers, dim=7168):
        super().__init__()
        self.embed = nn.Embedding(129280, dim)
        self.attention = nn.ModuleList(
            LatentAttention(dim, 128, 1536, 512, 128, 64, 128) for _ in range(layers)
        )
        self.mlp = nn.ModuleList(
            Experts(dim, 2048, 32, 8) if i else SwiGLU(dim, 18432) for i in range(layers)
        )
        self.norm1 = nn.ModuleList(nn.RMSNorm(dim) for _ in range(layers))
        self.norm2 = nn.ModuleList(nn.RMSNorm(dim) for _ in range(layers))
        self.norm, self.head = nn.RMSNorm(dim), nn.Linear(dim, 129280, bias=False)

    def forward(self, ids, labels):
        t = ids.shape[1]
        angle = torch.outer(torch.arange(t).float(), 10000.0 ** (-torch.arange(32) / 32))
        cos, sin = angle.cos(), angle.sin()
        x = self.embed(ids)
        for n1, a, n2, m in zip(self.norm1, self.attention, self.norm2, self.mlp):
            x = x + a(n1(x), cos, sin)
            x = x + m(n2(x))
        return F.cross_entropy(self.head(self.norm(x)).flatten(0, 1), labels.flatten())


def deepseek():
    return DeepSeek(LAYERS["deepseek"][1]), (tokens(1, 4096), tokens(1, 4096))


def whisper():
    from transformers import WhisperConfig, WhisperForConditionalGeneration

    config = WhisperConfig(
        vocab_size=51866,
        num_mel_bins=128,
        d_model=1280,
        encoder_layers=32,
        decoder_layers=32,
        encoder_attention_heads=20,
        decoder_attention_heads=20,
        encoder_ffn_dim=5120,
        decoder_ffn_dim=5120,
        dropout=0.0,
    )
    model = WhisperForConditionalGeneration._from_config(config, attn_implementation="sdpa")
    names = ["input_features", "decoder_input_ids", "labels"]
    inputs = (torch.zeros(4, 128, 3000), tokens(4, 448), tokens(4, 448))
    return Loss(model, names, use_cache=False), inputs


def t5():
    from transformers import T5Config, T5ForConditionalGeneration

    config = T5Config(
        d_model=1024,
        d_kv=128,
        d_ff=65536,
        num_layers=24,
        num_decoder_layers=24,
        num_heads=128,
        dropout_rate=0.0,
    )
    model = T5ForConditionalGeneration._from_config(config, attn_implementation="eager")
    names = ["input_ids", "decoder_input_ids", "labels"]
    return Loss(model, names, use_cache=False), (tokens(2, 512), tokens(2, 512), tokens(2, 512))


def conv2d(cin, cout, size=3, stride=1, relu=True):
    layers = [
        nn.Conv2d(cin, cout, size, stride=stride, padding=size // 2, bias=False),
        nn.BatchNorm2d(cout),
    ]
    return nn.Sequential(*layers, *([nn.ReLU()] if relu else []))


class Residual(nn.Module):
    """The basic block of ResNet, or with `neck` the bottleneck."""

    def __init__(self, cin, cout, neck=False):
        super().__init__()
        mid = cout // 4 if neck else cout
        self.body = nn.Sequential(
            *([conv2d(cin, mid, 1)] if neck else []),
            conv2d(mid if neck else cin, mid, relu=neck),
            *([conv2d(mid, cout, 1, relu=False)] if neck else [conv2d(mid, cout, relu=False)]),
        )
        self.skip = nn.Identity() if cin == cout else conv2d(cin, cout, 1, relu=False)

    def forward(self, x):
        return F.relu(self.body(x) + self.skip(x))


class Exchange(nn.Module):
    """One module of HRNet: four blocks on each resolution, then sums across resolutions."""

    def __init__(self, widths):
        super().__init__()
        self.branch = nn.ModuleList(
            nn.Sequential(*(Residual(w, w) for _ in range(4))) for w in widths
        )
        self.fuse = nn.ModuleList(
            nn.ModuleList(self.path(i, j, widths) for j in range(len(widths)))
            for i in range(len(widths))
        )

    def path(self, i, j, widths):
        if i == j:
            return nn.Identity()
        if j > i:
            return nn.Sequential(
                conv2d(widths[j], widths[i], 1, relu=False), nn.Upsample(scale_factor=2 ** (j - i))
            )
        steps = [conv2d(widths[j], widths[j], stride=2) for _ in range(i - j - 1)]
        return nn.Sequential(*steps, conv2d(widths[j], widths[i], stride=2, relu=False))

    def forward(self, xs):
        xs = [b(x) for b, x in zip(self.branch, xs)]
        return [F.relu(sum(f(x) for f, x in zip(row, xs))) for row in self.fuse]


class HRNet(nn.Module):
    """HRNetV2-W48 for segmentation (Wang et al., 2020)."""

    def __init__(self, classes=19, width=48):
        super().__init__()
        self.stem = nn.Sequential(conv2d(3, 64, stride=2), conv2d(64, 64, stride=2))
        self.layer1 = nn.Sequential(
            Residual(64, 256, neck=True), *(Residual(256, 256, neck=True) for _ in range(3))
        )
        widths = [width * 2**i for i in range(4)]
        self.first = nn.ModuleList([conv2d(256, widths[0]), conv2d(256, widths[1], stride=2)])
        self.next = nn.ModuleList(
            [conv2d(widths[1], widths[2], stride=2), conv2d(widths[2], widths[3], stride=2)]
        )
        self.stages = nn.ModuleList(
            nn.ModuleList(Exchange(widths[: s + 2]) for _ in range(n))
            for s, n in enumerate((1, 4, 3))
        )
        total = sum(widths)
        self.head = nn.Sequential(conv2d(total, total, 1), nn.Conv2d(total, classes, 1))

    def forward(self, x, labels):
        x = self.layer1(self.stem(x))
        xs = [f(x) for f in self.first]
        for s, stage in enumerate(self.stages):
            if s:
                xs = [*xs, self.next[s - 1](xs[-1])]
            for module in stage:
                xs = module(xs)
        size = xs[0].shape[2:]
        up = [F.interpolate(x, size=size, mode="bilinear", align_corners=False) for x in xs[1:]]
        y = self.head(torch.cat([xs[0], *up], 1))
        y = F.interpolate(y, size=labels.shape[1:], mode="bilinear", align_corners=False)
        return F.cross_entropy(y, labels)


def hrnet():
    return HRNet(), (torch.zeros(4, 3, 512, 1024), tokens(4, 512, 1024))


class DenseLayer(nn.Module):
    def __init__(self, cin, growth):
        super().__init__()
        self.norm1, self.conv1 = nn.BatchNorm2d(cin), nn.Conv2d(cin, 4 * growth, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(4 * growth)
        self.conv2 = nn.Conv2d(4 * growth, growth, 3, padding=1, bias=False)

    def forward(self, xs):
        x = self.conv1(F.relu(self.norm1(torch.cat(xs, 1))))
        return self.conv2(F.relu(self.norm2(x)))


class DenseNet(nn.Module):
    """DenseNet-264 (Huang et al., 2017)."""

    def __init__(self, blocks=(6, 12, 64, 48), growth=32):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False),
            nn.BatchNorm2d(64),
            nn.ReLU(),
            nn.MaxPool2d(3, stride=2, padding=1),
        )
        width, self.blocks, self.turns = 64, nn.ModuleList(), nn.ModuleList()
        for i, n in enumerate(blocks):
            self.blocks.append(
                nn.ModuleList(DenseLayer(width + k * growth, growth) for k in range(n))
            )
            width += n * growth
            if i + 1 < len(blocks):
                self.turns.append(
                    nn.Sequential(
                        nn.BatchNorm2d(width),
                        nn.ReLU(),
                        nn.Conv2d(width, width // 2, 1, bias=False),
                        nn.AvgPool2d(2),
                    )
                )
                width //= 2
        self.norm, self.head = nn.BatchNorm2d(width), nn.Linear(width, 1000)

    def forward(self, x):
        x = self.stem(x)
        for i, block in enumerate(self.blocks):
            xs = [x]
            for layer in block:
                xs.append(layer(xs))
            x = torch.cat(xs, 1)
            x = self.turns[i](x) if i < len(self.turns) else x
        return self.head(F.relu(self.norm(x)).mean((2, 3)))


def densenet():
    return image_classifier(DenseNet(), 32, 224)


class LSTM(nn.Module):
    """A language model of four LSTM layers."""

    def __init__(self, width=1024, vocab=10000):
        super().__init__()
        self.embed = nn.Embedding(vocab, width)
        self.lstm = nn.LSTM(width, width, num_layers=4, batch_first=True)
        self.head = nn.Linear(width, vocab)

    def forward(self, ids, labels):
        y = self.lstm(self.embed(ids))[0]
        return F.cross_entropy(self.head(y).flatten(0, 1), labels.flatten())


def lstm():
    return LSTM(), (tokens(64, 512), tokens(64, 512))


MODELS = {
    "llama": llama,
    "dit": dit,
    "efficientnet": efficientnet,
    "swin": swin,
    "convnext": convnext,
    "sdxl": sdxl,
    "unet3d": unet3d,
    "mixtral": mixtral,
    "deepseek": deepseek,
    "whisper": whisper,
    "t5": t5,
    "hrnet": hrnet,
    "densenet": densenet,
    "lstm": lstm,
}


@contextlib.contextmanager
def no_initial_values():
    """Memory of parameters stays untouched: functions of torch.nn.init do nothing."""
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(ImportError):
            from transformers.initialization import no_init_weights

            stack.enter_context(no_init_weights())
        kept = {n: f for n, f in vars(nn.init).items() if n.endswith("_") and callable(f)}
        for n in kept:
            setattr(nn.init, n, lambda tensor, *args, **kw: tensor)
        try:
            yield
        finally:
            for n, f in kept.items():
                setattr(nn.init, n, f)


def export(name, path):
    import onnx_ir

    with no_initial_values():
        module, inputs = MODELS[name]()
    module.train()
    parameters = {n for n, _ in module.named_parameters(remove_duplicate=False)}
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        program = torch.onnx.export(module, inputs, dynamo=True, optimize=False, verbose=False)
    offset = 0
    for n, value in program.model.graph.initializers.items():
        if n in parameters:
            c = value.const_value
            value.const_value = onnx_ir.ExternalTensor(
                f"{name}.data", offset, c.nbytes, c.dtype, shape=c.shape, name=n
            )
            offset += c.nbytes
    onnx_ir.save(program.model, path)
    return sum(1 for _ in program.model.graph), offset // 4


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("names", nargs="*", default=[])
    p.add_argument("--out", required=True)
    p.add_argument("--list", action="store_true")
    o = p.parse_args()
    warnings.simplefilter("ignore")
    os.makedirs(o.out, exist_ok=True)
    failed = False
    for name in MODELS:
        path = os.path.join(o.out, name + ".onnx")
        if o.names and not any(fnmatch.fnmatch(name, g) for g in o.names):
            continue
        if o.list or os.path.exists(path):
            print(name, path if os.path.exists(path) else "")
            continue
        start = time.process_time()
        try:
            nodes, parameters = export(name, path)
        except Exception as e:
            failed = True
            print(f"{name}: not exported: {type(e).__name__}: {e}", file=sys.stderr)
            continue
        print(
            f"{name}: {nodes} nodes, {parameters / 1e6:.0f} M parameters, "
            f"{time.process_time() - start:.0f} CPU s, peak "
            f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10} MiB",
            flush=True,
        )
    sys.exit(failed)


if __name__ == "__main__":
    main()
