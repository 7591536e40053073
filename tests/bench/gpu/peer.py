#!/usr/bin/env python3
"""A training step of GPT-2 by PyTorch on a GPU, timed.

    peer.py --layers 12 --hidden 768 --heads 12 --vocab 50257 --batch 64 --seq 1024 --tokens FILE
    [--sdpa default|cudnn] [--pad]
            [--warm 5 --blocks 3 --steps 20]

What ckc trains: GPT-2 with tied embeddings and dropout off, bf16 by autocast over float32
parameters, AdamW (fused), compiled.  --pad takes the vocabulary to the next multiple of 64.  FILE
holds u16 tokens.  Prints one JSON object: seconds per step of each block, timed by events; peak
bytes; versions; losses; or {"out_of_memory": why}.
"""

import argparse
import json
import math

import numpy as np
import torch
from torch.nn import functional as F


class Block(torch.nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
        self.qkv, self.out = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
        self.up, self.down = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (
            y.view(b, t, self.heads, c // self.heads).transpose(1, 2)
            for y in self.qkv(self.norm1(x)).split(c, 2)
        )
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, c))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Gpt2(torch.nn.Module):
    def __init__(self, o, vocab):
        super().__init__()
        self.tokens, self.places = (
            torch.nn.Embedding(vocab, o.hidden),
            torch.nn.Embedding(o.seq, o.hidden),
        )
        self.blocks = torch.nn.ModuleList(Block(o.hidden, o.heads) for _ in range(o.layers))
        self.norm = torch.nn.LayerNorm(o.hidden)
        for p in self.parameters():
            if p.dim() > 1:
                torch.nn.init.normal_(p, std=0.02)

    def forward(self, ids, labels):
        x = self.tokens(ids) + self.places(torch.arange(ids.shape[1], device=ids.device))
        for block in self.blocks:
            x = block(x)
        logits = F.linear(self.norm(x), self.tokens.weight)
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten())


def options():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name in ("layers", "hidden", "heads", "vocab", "batch", "seq"):
        p.add_argument("--" + name, type=int, required=True)
    for name, default in (("warm", 5), ("blocks", 3), ("steps", 20)):
        p.add_argument("--" + name, type=int, default=default)
    p.add_argument("--tokens", required=True)
    p.add_argument("--sdpa", choices=("default", "cudnn"), default="default")
    p.add_argument("--pad", action="store_true")
    return p.parse_args()


def batches(o):
    """Windows of tokens side by side, and the same one on, round and round."""
    tokens = np.fromfile(o.tokens, "<u2").astype(np.int64)
    size = o.batch * o.seq
    at = 0
    while True:
        at = 0 if at + size + 1 > len(tokens) else at
        yield tuple(
            torch.from_numpy(tokens[at + i : at + i + size].reshape(o.batch, o.seq))
            .pin_memory()
            .cuda(non_blocking=True)
            for i in (0, 1)
        )
        at += size


def main():
    o = options()
    torch.manual_seed(0)
    model = Gpt2(o, math.ceil(o.vocab / 64) * 64 if o.pad else o.vocab).cuda().train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.01, fused=True)
    if o.sdpa == "cudnn":
        torch.backends.cuda.enable_cudnn_sdp(True)
        for other in (
            torch.backends.cuda.enable_flash_sdp,
            torch.backends.cuda.enable_mem_efficient_sdp,
            torch.backends.cuda.enable_math_sdp,
        ):
            other(False)
    compiled, feed, losses = torch.compile(model), batches(o), []

    def step():
        with torch.autocast("cuda", torch.bfloat16):
            loss = compiled(*next(feed))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(loss.detach())

    for _ in range(o.warm):
        step()
    seconds = []
    for _ in range(o.blocks):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for _ in range(o.steps):
            step()
        end.record()
        end.synchronize()
        seconds.append(start.elapsed_time(end) * 1e-3 / o.steps)
    print(
        json.dumps(
            {
                "step_seconds": seconds,
                "peak_bytes": torch.cuda.max_memory_allocated(),
                "reserved_bytes": torch.cuda.max_memory_reserved(),
                "torch": torch.__version__,
                "cudnn": torch.backends.cudnn.version(),
                "losses": [x.item() for x in losses[:10]],
            }
        )
    )


if __name__ == "__main__":
    try:
        main()
    except torch.cuda.OutOfMemoryError as e:
        print(json.dumps({"out_of_memory": str(e).split(". GPU")[0]}))
