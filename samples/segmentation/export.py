#!/usr/bin/env python3
"""Writes segmentation.onnx: a small U-Net, which gives the scores of three classes for each pixel.

    pip install torch onnx onnxscript
    python3 export.py [OUT.onnx]

The loss is not in the file: `ckc --loss ce:scores,axis=1` adds it, and with it the input `labels`.
This exporter writes batch norms as they evaluate; `--batchnorm batch` trains them by the batch's
statistics.
"""

import sys

import torch
from torch import nn


def block(inputs, outputs):
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=1, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU(),
        nn.Conv2d(outputs, outputs, 3, padding=1, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU(),
    )


class UNet(nn.Module):
    def __init__(self, classes=3, width=8):
        super().__init__()
        self.down = nn.ModuleList([block(3, width), block(width, 2 * width)])
        self.middle = block(2 * width, 4 * width)
        self.grow = nn.ModuleList(
            [
                nn.ConvTranspose2d(4 * width, 2 * width, 2, 2),
                nn.ConvTranspose2d(2 * width, width, 2, 2),
            ]
        )
        self.up = nn.ModuleList([block(4 * width, 2 * width), block(2 * width, width)])
        self.pool, self.scores = nn.MaxPool2d(2), nn.Conv2d(width, classes, 1)

    def forward(self, image):
        kept, x = [], image
        for down in self.down:
            kept.append(down(x))
            x = self.pool(kept[-1])
        x = self.middle(x)
        for grow, up in zip(self.grow, self.up):
            x = up(torch.cat([grow(x), kept.pop()], 1))
        return self.scores(x)


def main():
    torch.manual_seed(0)
    batch = torch.export.Dim("batch", max=1024)
    program = torch.onnx.export(
        UNet().train(),
        (torch.zeros(2, 3, 32, 32),),
        dynamo=True,
        optimize=False,
        verbose=False,
        input_names=["image"],
        output_names=["scores"],
        dynamic_shapes=({0: batch},),
    )
    for node in program.model.graph:  # notes of where on this machine a node comes from
        node.metadata_props.clear()
    program.save(sys.argv[1] if len(sys.argv) > 1 else "segmentation.onnx")


if __name__ == "__main__":
    main()
