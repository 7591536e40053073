#!/usr/bin/env python3
"""A mixture of experts of transformers, exported or timed: the peer of tests/bench/experts.py.

    experts_peer.py --export OUT.onnx [--tokens N --width N --hidden N --experts N --choices N]
    experts_peer.py --form eager|batched_mm|grouped_mm [--dtype bf16] [--steps 3] [--threads N] ...

The block is Mixtral's: a gate, SwiGLU experts; the loss is a mean of squares. --export also writes
the batch to OUT.onnx.safetensors. Timed, it prints one JSON object: CPU seconds of each step with
AdamW, and the losses. Needs torch, transformers, onnx, onnxscript and safetensors.
"""

import argparse
import json
import time

import torch
from safetensors.torch import save_file
from transformers import MixtralConfig
from transformers.models.mixtral.modeling_mixtral import MixtralSparseMoeBlock


class Mixture(torch.nn.Module):
    def __init__(self, o, form):
        super().__init__()
        config = MixtralConfig(
            hidden_size=o.width,
            intermediate_size=o.hidden,
            num_local_experts=o.experts,
            num_experts_per_tok=o.choices,
            experts_implementation=form,
        )
        torch.manual_seed(1)
        self.block = MixtralSparseMoeBlock(config)
        for w in self.parameters():
            torch.nn.init.normal_(w, std=0.05)

    def forward(self, x):
        y = self.block(x)
        return ((y[0] if isinstance(y, tuple) else y) ** 2).mean()


def batch(o):
    return torch.randn(1, o.tokens, o.width, generator=torch.Generator().manual_seed(2))


def export(o):
    torch.onnx.export(
        Mixture(o, "batched_mm").train(),
        (batch(o),),
        o.export,
        dynamo=True,
        optimize=False,
        input_names=["x"],
        output_names=["loss"],
        opset_version=18,
    )
    save_file({"x": batch(o)}, o.export + ".safetensors")


def train(o):
    torch.set_num_threads(o.threads)
    module, x = Mixture(o, o.form).train(), batch(o)
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-4, weight_decay=0.01, fused=True)
    autocast = torch.autocast("cpu", torch.bfloat16, enabled=o.dtype == "bf16")
    seconds, losses = [], []
    for _ in range(o.steps + 1):
        used = time.process_time()
        with autocast:
            loss = module(x)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(loss.item())
        seconds.append(time.process_time() - used)
    print(json.dumps({"torch": torch.__version__, "cpu_seconds": seconds[1:], "losses": losses}))


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--export")
    p.add_argument("--form", default="eager")
    p.add_argument("--dtype", default="f32")
    for name, default in (
        ("tokens", 1024),
        ("width", 768),
        ("hidden", 3072),
        ("experts", 8),
        ("choices", 2),
        ("steps", 3),
        ("threads", 1),
    ):
        p.add_argument("--" + name, type=int, default=default)
    o = p.parse_args()
    export(o) if o.export else train(o)


if __name__ == "__main__":
    main()
