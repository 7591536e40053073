"""Initial weights as a rule, for models whose weights are too large to carry: each tensor is a mean
and a deviation, and every machine makes the same bytes of them."""

import array
import json
import random
import struct

SAMPLE = 4096  # elements of a tensor that are read for its mean and deviation
NORMALS = 262139  # a prime: rows of a matrix begin at different places of the table


def head_of(f):
    size = int.from_bytes(f.read(8), "little")
    return size, json.loads(f.read(size))


def describe(path):
    """[(name, shape, mean, deviation)] of a safetensors file of float32 tensors, in the file's
    order."""
    found = []
    with open(path, "rb") as f:
        size, head = head_of(f)
        head.pop("__metadata__", None)
        for name, t in sorted(head.items(), key=lambda x: x[1]["data_offsets"]):
            if t["dtype"] != "F32":
                raise ValueError(f"{path}: '{name}': expected F32, found {t['dtype']}")
            begin, end = t["data_offsets"]
            n = min(SAMPLE, (end - begin) // 4)
            f.seek(8 + size + begin)
            x = struct.unpack(f"<{n}f", f.read(4 * n))
            mean = sum(x) / n
            deviation = (sum((a - mean) ** 2 for a in x) / n) ** 0.5
            # few different rules, each of which is a table
            rule = (0.0, float(f"{deviation:.2g}")) if deviation else (mean, 0.0)
            found.append((name, t["shape"], *rule))
    return found


def elements(shape):
    n = 1
    for extent in shape:
        n *= extent
    return n


def write(path, tensors):
    """A safetensors file of tensors that `describe` gives."""
    draw = random.Random(0)
    normal = array.array("f", (draw.gauss(0, 1) for _ in range(NORMALS)))
    head, at = {}, 0
    for name, shape, _, _ in tensors:
        n = 4 * elements(shape)
        head[name] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + n]}
        at += n
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    tables = {}
    with open(path, "wb") as f:
        f.write(len(text).to_bytes(8, "little") + text)
        at = 0
        for _, shape, *rule in tensors:
            mean, deviation = rule
            key, n = tuple(rule), elements(shape)
            if key not in tables:
                tables[key] = array.array("f", (mean + deviation * x for x in normal)).tobytes()
            table = tables[key][4 * at :] + tables[key][: 4 * at]
            f.write(table * (n // NORMALS) + table[: n % NORMALS * 4])
            at = (at + n) % NORMALS
