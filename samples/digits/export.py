#!/usr/bin/env python3
"""Writes digits.onnx: a small network for pictures of 28 x 28 pixels, which gives the scores of ten
classes.

    pip install torch onnx onnxscript
    python3 export.py [OUT.onnx]

The loss is not in the file: `ckc --loss ce` adds it, and with it the input `labels`.
"""

import sys

import torch
from torch import nn


def network():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, 1, 1),
        nn.ReLU(),
        nn.Conv2d(8, 8, 3, 1, 1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, 1, 1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(16 * 7 * 7, 10),
    )


def main():
    torch.manual_seed(0)
    batch = torch.export.Dim("batch", max=4096)
    program = torch.onnx.export(
        network().train(),
        (torch.zeros(2, 1, 28, 28),),
        dynamo=True,
        optimize=False,
        verbose=False,
        input_names=["image"],
        output_names=["scores"],
        dynamic_shapes=({0: batch},),
    )
    for node in program.model.graph:  # notes of where on this machine a node comes from
        node.metadata_props.clear()
    program.save(sys.argv[1] if len(sys.argv) > 1 else "digits.onnx")


if __name__ == "__main__":
    main()
