#!/usr/bin/env python3
"""One training step of a convolutional network in PyTorch, timed or exported: the peer of tests/bench/cnn.py.

    cnn_peer.py MODEL --export OUT.onnx [--batch 16] [--size 224]
    cnn_peer.py MODEL [--threads N] [--channels-last] [--batch 16] [--size 224] [--steps 5]

MODEL is resnet50, mobilenet or unet.  Timed, it prints one JSON object: seconds per step (median), CPU seconds, bytes at the peak.
Needs torch, safetensors and onnx.
"""
import argparse
import json
import resource
import statistics
import time

import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import nn


def conv(i, o, k=1, stride=1, groups=1, relu=None):
    parts = [nn.Conv2d(i, o, k, stride, k // 2, groups=groups, bias=False), nn.BatchNorm2d(o)]
    return nn.Sequential(*parts, *([relu()] if relu else []))


class Bottleneck(nn.Module):
    def __init__(self, i, width, stride):
        super().__init__()
        o = 4 * width
        self.body = nn.Sequential(conv(i, width, relu=nn.ReLU), conv(width, width, 3, stride, relu=nn.ReLU), conv(width, o))
        self.short = conv(i, o, 1, stride) if stride > 1 or i != o else nn.Identity()

    def forward(self, x):
        return F.relu(self.body(x) + self.short(x))


def resnet50():
    layers, i = [conv(3, 64, 7, 2, relu=nn.ReLU), nn.MaxPool2d(3, 2, 1)], 64
    for width, count, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for k in range(count):
            layers.append(Bottleneck(i, width, stride if k == 0 else 1))
            i = 4 * width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(i, 1000))


class Inverted(nn.Module):
    def __init__(self, i, o, stride, expand):
        super().__init__()
        w = i * expand
        first = [conv(i, w, relu=nn.ReLU6)] if expand > 1 else []
        self.body = nn.Sequential(*first, conv(w, w, 3, stride, groups=w, relu=nn.ReLU6), conv(w, o))
        self.skip = stride == 1 and i == o

    def forward(self, x):
        return x + self.body(x) if self.skip else self.body(x)


def mobilenet():
    layers, i = [conv(3, 32, 3, 2, relu=nn.ReLU6)], 32
    for expand, o, count, stride in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)):
        for k in range(count):
            layers.append(Inverted(i, o, stride if k == 0 else 1, expand))
            i = o
    return nn.Sequential(*layers, conv(i, 1280, relu=nn.ReLU6), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(1280, 1000))


class UNet(nn.Module):
    def __init__(self, width=32, levels=4):
        super().__init__()
        def double(i, o):
            return nn.Sequential(conv(i, o, 3, relu=nn.ReLU), conv(o, o, 3, relu=nn.ReLU))
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
        return self.head(x).mean((2, 3))


class Task(nn.Module):
    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, image, label):
        return F.cross_entropy(self.net(image), label)


def export(task, inputs, path):
    """The graph to `path`, the batch it is timed with to `path`.safetensors."""
    # TorchScript in training mode: parameters keep their names and BatchNormalization its statistics as outputs
    torch.onnx.export(task, inputs, path, input_names=["image", "label"], output_names=["loss"], dynamo=False, opset_version=17,
                      training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False, keep_initializers_as_inputs=False)
    save_file(dict(zip(("image", "label"), inputs)), path + ".safetensors")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("model", choices=["resnet50", "mobilenet", "unet"])
    p.add_argument("--export")
    p.add_argument("--channels-last", action="store_true")
    for name, default in (("batch", 16), ("size", 224), ("steps", 5), ("threads", 0)):
        p.add_argument("--" + name, type=int, default=default)
    o = p.parse_args()
    torch.manual_seed(0)
    task = Task({"resnet50": resnet50, "mobilenet": mobilenet, "unet": UNet}[o.model]()).train()
    image = torch.randn(o.batch, 3, o.size, o.size)
    label = torch.randint(0, 10, (o.batch,))
    if o.export:
        export(task, (image, label), o.export)
        return
    if o.threads:
        torch.set_num_threads(o.threads)
    if o.channels_last:
        task, image = task.to(memory_format=torch.channels_last), image.to(memory_format=torch.channels_last)
    optimizer = torch.optim.AdamW(task.parameters(), lr=1e-4, weight_decay=0.01, fused=True)
    seconds, cpu, losses = [], [], []
    for _ in range(o.steps + 1):
        start, used = time.perf_counter(), time.process_time()
        loss = task(image, label)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(loss.item())
        seconds.append(time.perf_counter() - start)
        cpu.append(time.process_time() - used)
    print(json.dumps({
        "what": "torch eager" + (" channels last" if o.channels_last else ""), "torch": torch.__version__, "threads": torch.get_num_threads(),
        "step_seconds": statistics.median(seconds[1:]), "cpu_seconds": statistics.median(cpu[1:]), "losses": losses[:3],
        "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}))


if __name__ == "__main__":
    main()
