#!/usr/bin/env python3
"""Writes chargpt.onnx: a small decoder over bytes, with its loss inside.

    pip install torch onnx onnxscript
    python3 export.py [OUT.onnx]

The recipe for any model of your own:
  * the loss is an output of the module, so it is an output of the graph;
  * model.train(), so that dropout is exported as such;
  * optimize=False, so that every parameter keeps its name and shape;
  * batch and sequence stay symbolic: ckc binds them with --dim;
  * label smoothing is written out, as cross_entropy's label_smoothing=s is dropped (dynamo) or
  refused (TorchScript):
    p = log_softmax(z, -1); loss = (1 - s) * nll_loss(p, y) - s * p.mean().
"""

import sys

import onnx
import torch
import torch.nn.functional as F
from torch import nn

WIDTH, HEADS, LAYERS, CONTEXT, BYTES = 64, 4, 3, 128, 256


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.drop = nn.Dropout(0.1)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (
            y.reshape(b, t, HEADS, c // HEADS).transpose(1, 2)
            for y in self.qkv(self.norm1(x)).split(c, 2)
        )
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.drop(self.out(y.transpose(1, 2).reshape(b, t, c)))
        return x + self.drop(self.down(F.gelu(self.up(self.norm2(x)))))


class CharGPT(nn.Module):
    """Next-byte prediction: `tokens` and `labels` are [batch, seq]; labels[i] is the byte after
    tokens[i]."""

    def __init__(self):
        super().__init__()
        self.token, self.place = nn.Embedding(BYTES, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.block = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, BYTES, bias=False)
        self.head.weight = self.token.weight
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.normal_(p, std=0.05)

    def forward(self, tokens, labels):
        x = self.token(tokens) + self.place(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.block:
            x = block(x)
        return F.cross_entropy(self.head(self.norm(x)).flatten(0, 1), labels.flatten())


def without_source_locations(path):
    """The exporter notes a stack trace on every node: paths of the machine it ran on."""
    model = onnx.load(path)
    for node in model.graph.node:
        kept = [p for p in node.metadata_props if "stack_trace" not in p.key]
        del node.metadata_props[:]
        node.metadata_props.extend(kept)
    onnx.save(model, path)


def main():
    torch.manual_seed(0)
    path = sys.argv[1] if len(sys.argv) > 1 else "chargpt.onnx"
    model = CharGPT().train()
    tokens = torch.zeros(2, 16, dtype=torch.int64)
    batch, seq = torch.export.Dim("batch", max=4096), torch.export.Dim("seq", max=CONTEXT)
    torch.onnx.export(
        model,
        (tokens, tokens.clone()),
        path,
        input_names=["tokens", "labels"],
        output_names=["loss"],
        dynamo=True,
        optimize=False,
        dynamic_shapes=({0: batch, 1: seq}, {0: batch, 1: seq}),
        external_data=False,
        verbose=False,
    )
    without_source_locations(path)


if __name__ == "__main__":
    main()
