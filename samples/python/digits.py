"""A classifier from PyTorch to a validated model, inside a budget.  Needs the package (pip install
.), torch and numpy."""

import ckc
import ckc.torch
import numpy as np
import torch

net = torch.nn.Sequential(
    torch.nn.Conv2d(1, 16, 3, 2, 1),
    torch.nn.BatchNorm2d(16),
    torch.nn.ReLU(),
    torch.nn.Flatten(),
    torch.nn.Linear(16 * 64, 10),
)
ckc.torch.export(net, torch.randn(64, 1, 16, 16), "digits.onnx")
model = ckc.compile("digits.onnx", budget="1.2MiB", loss="ce")
rng = np.random.default_rng(0)
shapes = rng.normal(size=(10, 1, 16, 16))  # ten patterns, under noise as strong as they are
y = rng.integers(0, 10, (40, 64))
x = (shapes[y] + rng.normal(size=(40, 64, 1, 16, 16))).astype("float32")
with ckc.Trainer(model, lr=1e-3) as t:
    losses = [t.step(input=x[i % 32], labels=y[i % 32]) for i in range(200)]
    right = np.mean([t.predict(input=x[i]).argmax(1) == y[i] for i in range(32, 40)])
    t.export_onnx("digits-trained.onnx")
print(
    f"{model}: loss {losses[0]:.2f} -> {losses[-1]:.3f}, {100 * right:.0f} % of unseen digits right"
)
