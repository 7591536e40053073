"""samples/text by the package: run data.py there, then this, in that folder.  Needs the package
(pip install .) and numpy."""

import ckc
import numpy as np

train, test = ({k: v for k, v in np.load(name).items()} for name in ("train.npz", "test.npz"))
model = ckc.compile("text.onnx", budget="70%", dim={"batch": 32})
rng = np.random.default_rng(0)
with ckc.Trainer(model, lr=1e-3) as t:
    for epoch in range(6):
        order = rng.permutation(len(train["labels"]))
        for i in range(0, len(order) - 31, 32):
            loss = t.step(**{k: v[order[i : i + 32]] for k, v in train.items()})
    batches = [
        {k: v[i : i + 32] for k, v in test.items()} for i in range(0, len(test["labels"]) - 31, 32)
    ]
    right = np.mean([t.predict(**b).argmax(1) == b["labels"] for b in batches])
    t.save("text.safetensors")
print(f"{model}: loss {loss:.3f}, {100 * right:.0f} % of unseen reviews right")
