"""samples/chargpt by the package, in that folder.  Needs the package (pip install .) and numpy."""

import ckc
import numpy as np

text, other = (
    np.fromfile(f"/usr/share/common-licenses/{name}", "u1").astype("int64")
    for name in ("GPL-3", "LGPL-2.1")
)
model = ckc.compile("chargpt.onnx", budget="70%", dim={"batch": 16, "seq": 128})
rng = np.random.default_rng(0)
windows = lambda text, at: {
    "tokens": text[at[:, None] + np.arange(128)],
    "labels": text[at[:, None] + np.arange(1, 129)],
}
with ckc.Trainer(model, lr=3e-3) as t:
    for i in range(150):
        loss = t.step(**windows(text, rng.integers(0, len(text) - 128, 16)))
    starts = np.arange(0, len(other) - 128, 128)[:192].reshape(-1, 16)
    unseen = np.mean([t.eval(**windows(other, at)) for at in starts])
    t.save("chargpt.safetensors")
print(
    f"{model}: loss {loss:.2f}, of unseen text {unseen:.2f}, {np.exp(unseen):.1f} bytes to choose from"
)
