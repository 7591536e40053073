#!/usr/bin/env python3
"""Makes the models cnn-bn-* of tests/models: exports whose BatchNorm is in the other form than
PyTorch trains, with PyTorch's own numbers.

    batchnorm.py OUT

cnn-bn-batch   inference form, as the dynamo exporter writes it of a module in train(); the
reference is the module in train() cnn-bn-merged  inference form of a fresh module in eval() by the
TorchScript exporter, which merges statistics with scales and biases that are
               equal; the reference is the module in train()
cnn-bn-mixed   as cnn-bn-batch; the reference is the module in train() with one norm in eval()
cnn-bn-running training form, by a custom translation; the reference is the module in eval()

Trained in float64 by torch.optim.AdamW on one fixed batch.  `flags` in NAME.json are for ckc.
Needs torch, onnx, onnxscript and safetensors.
"""

import copy
import json
import os
import sys
import warnings

import onnx
import torch
from safetensors.torch import save_file
from torch import nn

import zoo

OPTIMIZER = dict(kind="adamw", lr=1e-2, weight_decay=0.01, betas=[0.9, 0.999], eps=1e-8, steps=5)


class Cnn(nn.Module):
    """Norms of different momentum, none straight behind a convolution, which would swallow it."""

    def __init__(self):
        super().__init__()
        self.b1, self.c1 = nn.BatchNorm2d(3), nn.Conv2d(3, 4, 3, bias=False)
        self.b2, self.c2 = nn.BatchNorm2d(4, momentum=0.3), nn.Conv2d(4, 6, 3)
        self.b3, self.out = nn.BatchNorm1d(6, eps=1e-3), nn.Linear(6, 5)

    def forward(self, x, labels):
        x = self.c1(self.b1(x)).relu()
        x = self.c2(self.b2(x)).relu().mean((2, 3))
        return nn.functional.cross_entropy(self.out(self.b3(x)), labels)


def reference(module, inputs, train, frozen):
    module = copy.deepcopy(module).double().train(train)
    for name in frozen:
        module.get_submodule(name).eval()
    batch = [x.double() if x.is_floating_point() else x for x in inputs.values()]
    o, losses, grads = OPTIMIZER, [], None
    opt = torch.optim.AdamW(
        module.parameters(),
        lr=o["lr"],
        betas=o["betas"],
        eps=o["eps"],
        weight_decay=o["weight_decay"],
    )
    for _ in range(o["steps"]):
        opt.zero_grad()
        loss = module(*batch)
        loss.backward()
        losses.append(loss.item())
        grads = grads or {"grad." + n: p.grad.float() for n, p in module.named_parameters()}
        opt.step()
    buffers = {"buffer." + n: b.float() for n, b in module.named_buffers() if b.is_floating_point()}
    return {
        "loss": torch.tensor(losses),
        **grads,
        **{"param." + n: p.detach().float() for n, p in module.named_parameters()},
        **buffers,
    }


def write(out, name, module, inputs, exporter, train, flag, frozen=()):
    stem, args = os.path.join(out, name), tuple(inputs.values())
    names = dict(input_names=list(inputs), output_names=["loss"])
    if exporter == "ts":
        torch.onnx.export(
            copy.deepcopy(module).eval(),
            args,
            stem + ".onnx",
            dynamo=False,
            opset_version=17,
            **names,
        )
    else:
        table = (
            {torch.ops.aten._native_batch_norm_legit_functional.default: zoo.batch_norm_training}
            if exporter == "training"
            else None
        )
        torch.onnx.export(
            copy.deepcopy(module).train(),
            args,
            stem + ".onnx",
            dynamo=True,
            optimize=False,
            external_data=False,
            verbose=False,
            custom_translation_table=table,
            **names,
        )
    model = onnx.load(stem + ".onnx")
    for node in model.graph.node:  # names of the sources
        del node.metadata_props[:]
        node.ClearField("doc_string")
    onnx.save(model, stem + ".onnx")
    save_file(inputs, stem + ".inputs.safetensors")
    save_file(reference(module, inputs, train, frozen), stem + ".ref.safetensors")
    parameters, buffers = (
        [n for n, x in of() if x.is_floating_point()]
        for of in (module.named_parameters, module.named_buffers)
    )
    meta = dict(
        source=dict(exporter=exporter, torch=torch.__version__),
        dims={},
        loss="loss",
        parameters=parameters,
        buffers=buffers,
        flags=["--batchnorm", flag] + [f"--batchnorm={n}.*=running" for n in frozen],
        optimizer=OPTIMIZER,
        tolerance=zoo.TOLERANCE,
        nodes=len(model.graph.node),
    )
    with open(stem + ".json", "w") as f:
        json.dump(meta, f, indent=1)


def main():
    warnings.filterwarnings("ignore")
    torch.manual_seed(1)
    inputs = {"x": torch.randn(4, 3, 8, 8) * 2 + 0.5, "labels": torch.randint(0, 5, (4,))}
    fresh, used = Cnn(), Cnn()
    with torch.no_grad():
        for x in [*used.parameters(), *(b for b in used.buffers() if b.is_floating_point())]:
            x.add_(torch.rand(x.shape) * 0.2)
    write(sys.argv[1], "cnn-bn-batch", used, inputs, "dynamo", True, "batch")
    write(sys.argv[1], "cnn-bn-mixed", used, inputs, "dynamo", True, "batch", ["b3"])
    write(sys.argv[1], "cnn-bn-merged", fresh, inputs, "ts", True, "batch")
    write(sys.argv[1], "cnn-bn-running", used, inputs, "training", False, "running")


if __name__ == "__main__":
    main()
