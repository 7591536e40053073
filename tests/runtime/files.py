"""Reading and writing the file formats of the run time with the standard
library only: nothing here shares code with what is tested."""

import json
import struct

CODES = {
    "F64": "d",
    "F32": "f",
    "I64": "q",
    "I32": "i",
    "I16": "h",
    "I8": "b",
    "U64": "Q",
    "U32": "I",
    "U16": "H",
    "U8": "B",
    "F16": "e",
    "BOOL": "?",
}


def count(shape):
    n = 1
    for d in shape:
        n *= d
    return n


def st_bytes(tensors, meta=None):
    """{name: (dtype, shape, values)} as the bytes of a safetensors file."""
    head, data = {}, b""
    if meta is not None:
        head["__metadata__"] = meta
    for name, (dtype, shape, values) in tensors.items():
        raw = struct.pack(f"<{count(shape)}{CODES[dtype]}", *values)
        head[name] = {
            "dtype": dtype,
            "shape": list(shape),
            "data_offsets": [len(data), len(data) + len(raw)],
        }
        data += raw
    text = json.dumps(head).encode()
    return struct.pack("<Q", len(text)) + text + data


def st_write(path, tensors, meta=None):
    with open(path, "wb") as f:
        f.write(st_bytes(tensors, meta))


def st_read(path):
    """({name: (dtype, shape, values)}, metadata)"""
    raw = open(path, "rb").read()
    n = struct.unpack("<Q", raw[:8])[0]
    head = json.loads(raw[8 : 8 + n])
    meta = head.pop("__metadata__", {})
    out = {}
    for name, t in head.items():
        lo, hi = t["data_offsets"]
        code = f"<{count(t['shape'])}{CODES[t['dtype']]}"
        out[name] = (
            t["dtype"],
            t["shape"],
            list(struct.unpack(code, raw[8 + n + lo : 8 + n + hi])),
        )
    return out, meta


def npy_bytes(descr, shape, values, version=1, order=False):
    shape_text = "(" + ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "") + ")"
    text = f"{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape_text}, }}"
    text += " " * (-(len(text) + 11) % 64) + "\n"
    code = {
        "f4": "f",
        "f8": "d",
        "i8": "q",
        "i4": "i",
        "u8": "Q",
        "u2": "H",
        "u4": "I",
        "u1": "B",
        "b1": "?",
        "i2": "h",
        "f2": "e",
    }[descr[1:]]
    size = struct.pack("<H" if version == 1 else "<I", len(text))
    return (
        b"\x93NUMPY"
        + bytes([version, 0])
        + size
        + text.encode()
        + struct.pack(f"<{len(values)}{code}", *values)
    )


def losses(log):
    return [json.loads(line)["loss"] for line in open(log)]
