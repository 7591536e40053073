"""A small reader of ONNX files: the fields that the node tests need."""

import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
import wire  # noqa: E402

# TensorProto.DataType: numpy's type of the elements, safetensors' name.  bfloat16 has no numpy
# type: its bits.
TYPES = {
    1: ("<f4", "F32"),
    2: ("u1", "U8"),
    3: ("i1", "I8"),
    4: ("<u2", "U16"),
    5: ("<i2", "I16"),
    6: ("<i4", "I32"),
    7: ("<i8", "I64"),
    9: ("?", "BOOL"),
    10: ("<f2", "F16"),
    11: ("<f8", "F64"),
    12: ("<u4", "U32"),
    13: ("<u8", "U64"),
    16: ("<u2", "BF16"),
}


class Unsupported(Exception):
    """The file holds something that no tensor type here stands for."""


def fields(raw):
    """(number, value) of a message: integers, or bytes."""
    try:
        for number, value, _ in wire.fields(raw):
            yield number, value
    except ValueError as e:
        raise Unsupported(str(e)) from None


def signed(x):
    return x - (1 << 64) if x >> 63 else x


def packed(value):
    if isinstance(value, int):
        return [value]
    at, out = 0, []
    while at < len(value):
        x, at = wire.read_varint(value, at)
        out.append(x)
    return out


def tensor(raw):
    """(safetensors type, array) of a TensorProto."""
    dims, kind, data, floats, doubles, ints = [], 0, None, b"", b"", []
    for number, value in fields(raw):
        if number == 1:
            dims += [signed(x) for x in packed(value)]
        elif number == 2:
            kind = value
        elif number == 4:
            floats += value
        elif number in (5, 7, 11):
            ints += packed(value)
        elif number == 9:
            data = value
        elif number == 10:
            doubles += value
    if kind not in TYPES:
        raise Unsupported(f"tensors of type {kind}")
    dtype, name = TYPES[kind]
    if data is not None:
        array = np.frombuffer(bytes(data), dtype)
    elif floats:
        array = np.frombuffer(bytes(floats), "<f4").astype(dtype)
    elif doubles:
        array = np.frombuffer(bytes(doubles), "<f8").astype(dtype)
    elif kind in (10, 16):
        array = np.array(ints, "<u2").view(dtype)
    else:
        array = np.array([x if dtype == "<u8" else signed(x) for x in ints]).astype(dtype)
    return name, array.reshape(dims)


class Value:
    """A graph's input or output: name, whether it is a plain tensor, its type, and its extents
    (None: not a number, or all of it unknown)."""

    def __init__(self, raw):
        self.name, self.tensor, self.kind, self.shape = "", False, 0, None
        for number, value in fields(raw):
            if number == 1:
                self.name = value.decode()
            elif number == 2:
                self.read_type(value)

    def read_type(self, raw):
        for number, value in fields(raw):
            if number != 1:
                continue
            self.tensor = True
            for n, part in fields(value):
                if n == 1:
                    self.kind = part
                elif n == 2:
                    self.shape = [dict(fields(dim)).get(1) for i, dim in fields(part) if i == 1]


class Model:
    """Of a ModelProto: the graph's inputs and outputs."""

    def __init__(self, path):
        self.inputs, self.outputs = [], []
        with open(path, "rb") as f:
            raw = memoryview(f.read()).tobytes()
        for number, value in fields(raw):
            if number != 7:
                continue
            for n, part in fields(value):
                if n == 11:
                    self.inputs.append(Value(part))
                elif n == 12:
                    self.outputs.append(Value(part))


def load(path, value):
    """(safetensors type, array) of the file with a value's contents.  Files of onnx 1.12 hold
    bfloat16 as the integers of the same bits."""
    with open(path, "rb") as f:
        kind, array = tensor(f.read())
    if kind == "U16" and value.kind == 16:
        kind = "BF16"
    if value.kind in TYPES and TYPES[value.kind][1] != kind:
        raise Unsupported(f"a tensor of type {kind} where the model has {TYPES[value.kind][1]}")
    if value.shape is not None and (
        len(value.shape) != array.ndim
        or any(d is not None and d != n for d, n in zip(value.shape, array.shape))
    ):
        raise Unsupported("a tensor of another shape than the model has")
    return kind, array
