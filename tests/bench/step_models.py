"""The networks of tests/bench/steps.py as PyTorch modules that return their loss, with a batch of
the size that is timed.

    make(NAME) -> (module in training mode, {input name: tensor})

Dropout is off, so that both sides compute the same loss.  Weights and data are random (seed 0).
Needs torch, torchvision, transformers.
"""

import torch
import torch.nn.functional as F
from torch import nn


class Classify(nn.Module):
    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, image, label):
        return F.cross_entropy(self.net(image), label)


class HuggingFace(nn.Module):
    """A transformers model under the names of its inputs."""

    def __init__(self, net, names):
        super().__init__()
        self.net = net
        self.names = names

    def forward(self, *inputs):
        return self.net(**dict(zip(self.names, inputs))).loss


class UNet(nn.Module):
    def __init__(self, width=32, levels=4):
        super().__init__()

        def block(i, o):
            return [nn.Conv2d(i, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU()]

        def double(i, o):
            return nn.Sequential(*block(i, o), *block(o, o))

        w = [width << k for k in range(levels + 1)]
        self.down = nn.ModuleList(double(i, o) for i, o in zip([3] + w, w))
        self.up = nn.ModuleList(nn.ConvTranspose2d(2 * o, o, 2, 2) for o in reversed(w[:-1]))
        self.join = nn.ModuleList(double(2 * o, o) for o in reversed(w[:-1]))
        self.head = nn.Conv2d(width, 10, 1)

    def forward(self, x):
        kept = []
        for k, block in enumerate(self.down):
            x = block(F.max_pool2d(x, 2) if k else x)
            kept.append(x)
        for up, join, skip in zip(self.up, self.join, reversed(kept[:-1])):
            x = join(torch.cat([up(x), skip], 1))
        return self.head(x)


class Lstm(nn.Module):
    def __init__(self, vocab=10000, width=512, layers=2):
        super().__init__()
        self.embed = nn.Embedding(vocab, width)
        self.rnn = nn.LSTM(width, width, layers, batch_first=True)
        self.head = nn.Linear(width, vocab)

    def forward(self, tokens, label):
        x, _ = self.rnn(self.embed(tokens))
        return F.cross_entropy(self.head(x).flatten(0, 1), label.flatten())


class Dlrm(nn.Module):
    """Dense features through an MLP, categories through embeddings, their pairwise products through
    another."""

    def __init__(self, tables=8, rows=20000, width=64):
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(rows, width) for _ in range(tables))
        self.bottom = nn.Sequential(
            nn.Linear(13, 512),
            nn.ReLU(),
            nn.Linear(512, 256),
            nn.ReLU(),
            nn.Linear(256, width),
            nn.ReLU(),
        )
        pairs = (tables + 1) * (tables + 1)
        self.top = nn.Sequential(
            nn.Linear(width + pairs, 1024),
            nn.ReLU(),
            nn.Linear(1024, 1024),
            nn.ReLU(),
            nn.Linear(1024, 512),
            nn.ReLU(),
            nn.Linear(512, 1),
        )

    def forward(self, dense, category, click):
        x = self.bottom(dense)
        all_ = torch.stack([x] + [t(category[:, i]) for i, t in enumerate(self.tables)], 1)
        pairs = torch.matmul(all_, all_.transpose(1, 2)).flatten(1)
        return F.binary_cross_entropy_with_logits(
            self.top(torch.cat([x, pairs], 1)).squeeze(1), click
        )


def tokens(vocab, *shape):
    return torch.randint(0, vocab, shape)


def images(net, batch, size=224, classes=1000):
    return Classify(net), {
        "image": torch.randn(batch, 3, size, size),
        "label": tokens(classes, batch),
    }


def transformer(name):
    import transformers as hf

    off = {"attn_implementation": "sdpa"}
    if name == "gpt1m":
        net = hf.GPT2LMHeadModel(
            hf.GPT2Config(
                vocab_size=256,
                n_positions=64,
                n_embd=128,
                n_layer=5,
                n_head=4,
                attn_pdrop=0,
                embd_pdrop=0,
                resid_pdrop=0,
                use_cache=False,
                **off,
            )
        )
        ids = tokens(256, 8, 64)
        return net, {"input_ids": ids, "labels": ids.clone()}
    if name == "gpt2":
        net = hf.GPT2LMHeadModel(
            hf.GPT2Config(
                n_positions=256, attn_pdrop=0, embd_pdrop=0, resid_pdrop=0, use_cache=False, **off
            )
        )
        ids = tokens(50257, 4, 256)
        return net, {"input_ids": ids, "labels": ids.clone()}
    if name == "bert":
        net = hf.BertForMaskedLM(
            hf.BertConfig(hidden_dropout_prob=0, attention_probs_dropout_prob=0, **off)
        )
        labels = tokens(30522, 8, 128)
        labels[torch.rand(8, 128) > 0.15] = -100
        return net, {"input_ids": tokens(30522, 8, 128), "labels": labels}
    if name == "llama":
        net = hf.LlamaForCausalLM(
            hf.LlamaConfig(
                vocab_size=32000,
                hidden_size=768,
                intermediate_size=2048,
                num_hidden_layers=8,
                num_attention_heads=12,
                num_key_value_heads=4,
                max_position_embeddings=512,
                use_cache=False,
                **off,
            )
        )
        ids = tokens(32000, 2, 512)
        return net, {"input_ids": ids, "labels": ids.clone()}
    if name == "t5":
        net = hf.T5ForConditionalGeneration(
            hf.T5Config(dropout_rate=0, decoder_start_token_id=0, use_cache=False)
        )
        return net, {"input_ids": tokens(32128, 8, 128), "labels": tokens(32128, 8, 64)}
    config = hf.WhisperConfig(
        d_model=384,
        encoder_layers=4,
        decoder_layers=4,
        encoder_attention_heads=6,
        decoder_attention_heads=6,
        encoder_ffn_dim=1536,
        decoder_ffn_dim=1536,
        use_cache=False,
        **off,
    )
    return hf.WhisperForConditionalGeneration(config), {
        "input_features": torch.randn(2, 80, 3000),
        "labels": tokens(51865, 2, 64),
    }


def make(name):
    torch.manual_seed(0)
    if name in ("gpt1m", "gpt2", "bert", "llama", "t5", "whisper"):
        net, inputs = transformer(name)
        return HuggingFace(net.train(), list(inputs)), inputs
    if name == "lstm":
        return Lstm().train(), {"tokens": tokens(10000, 32, 128), "label": tokens(10000, 32, 128)}
    if name == "lstm64":
        return Lstm(256, 64, 1).train(), {
            "tokens": tokens(256, 16, 32),
            "label": tokens(256, 16, 32),
        }
    if name == "mlp":
        net = nn.Sequential(
            nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10)
        )
        return Classify(net).train(), {"image": torch.rand(64, 784), "label": tokens(10, 64)}
    if name == "dlrm":
        return Dlrm().train(), {
            "dense": torch.rand(512, 13),
            "category": tokens(20000, 512, 8),
            "click": torch.randint(0, 2, (512,)).float(),
        }
    if name == "unet":
        module, inputs = images(UNet(), 4, 256)
        inputs["label"] = tokens(10, 4, 256, 256)
        return module.train(), inputs
    import torchvision.models as tv

    net, batch = {
        "vit": (tv.vit_b_16, 8),
        "convnext": (lambda: tv.convnext_tiny(stochastic_depth_prob=0.0), 8),
        "resnet50": (tv.resnet50, 16),
        "efficientnet": (lambda: tv.efficientnet_b0(stochastic_depth_prob=0.0, dropout=0.0), 8),
        "mobilenet": (lambda: tv.mobilenet_v2(dropout=0.0), 16),
    }[name]
    module, inputs = images(net(), batch)
    return module.train(), inputs
