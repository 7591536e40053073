"""samples/segmentation by the package: run data.py there, then this, in that folder.  Needs the
package (pip install .) and numpy."""

import ckc
import numpy as np

train, test = ({k: v for k, v in np.load(name).items()} for name in ("train.npz", "test.npz"))
for data in (train, test):
    data["image"] = (data["image"].transpose(0, 3, 1, 2) / 127.5 - 1).astype("float32")
model = ckc.compile(
    "segmentation.onnx", budget="70%", dim={"batch": 16}, loss="ce:scores,axis=1", batchnorm="batch"
)
rng = np.random.default_rng(0)
with ckc.Trainer(model, lr=5e-3) as t:
    for epoch in range(6):
        for rows in rng.permutation(len(train["image"])).reshape(-1, 16):
            loss = t.step(**{k: v[rows] for k, v in train.items()})
    right = np.mean(
        [
            t.predict(image=test["image"][i : i + 16]).argmax(1) == test["labels"][i : i + 16]
            for i in range(0, 192, 16)
        ]
    )
    t.save("segmentation.safetensors")
print(f"{model}: loss {loss:.3f}, {100 * right:.0f} % of unseen pixels right")
