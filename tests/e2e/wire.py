"""ONNX files read and written by hand: just enough of protobuf's wire format."""

import struct


def varint(n):
    n &= (1 << 64) - 1
    out = b""
    while True:
        out += bytes([n & 127 | (128 if n > 127 else 0)])
        n >>= 7
        if not n:
            return out


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    if isinstance(value, str):
        value = value.encode()
    return varint(number << 3 | 2) + varint(len(value)) + value


def read_varint(raw, at):
    """The number at a place, and the place behind it."""
    value = shift = 0
    while True:
        byte = raw[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7


def fields(raw):
    """(number, value, whole) of a message's fields: an integer or bytes, and all bytes of the
    field."""
    at = 0
    while at < len(raw):
        start = at
        key, at = read_varint(raw, at)
        kind = key & 7
        if kind == 0:
            value, at = read_varint(raw, at)
        elif kind in (1, 2, 5):
            n, at = read_varint(raw, at) if kind == 2 else (8 if kind == 1 else 4, at)
            value, at = raw[at : at + n], at + n
        else:
            raise ValueError(f"wire type {kind}")
        yield key >> 3, value, raw[start:at]


def value_info(name, dtype, dims):
    shape = b"".join(field(1, field(1, d)) for d in dims)
    return field(1, name) + field(2, field(1, field(1, dtype) + field(2, shape)))


def a_model(graph, opset=17):
    return field(1, 8) + field(8, field(1, b"") + field(2, opset)) + field(7, graph)


def attribute(name, value):
    if isinstance(value, float):
        return field(5, field(1, name) + field(2, value) + field(20, 1))
    return field(
        5,
        field(1, name)
        + (
            b"".join(field(8, v) for v in value) + field(20, 7)
            if isinstance(value, list)
            else field(3, value) + field(20, 2)
        ),
    )


def node(op, inputs, output, **attributes):
    out = (
        b"".join(field(1, x.encode()) for x in inputs)
        + field(2, output.encode())
        + field(3, ("n_" + output).encode())
        + field(4, op.encode())
    )
    return field(1, out + b"".join(attribute(k.encode(), v) for k, v in attributes.items()))


def floats(name, dims, values):
    """An initializer."""
    return field(
        5,
        b"".join(field(1, d) for d in dims)
        + field(2, 1)
        + field(8, name.encode())
        + field(9, struct.pack(f"<{len(values)}f", *values)),
    )


def ints(name, values):
    return field(
        5,
        field(1, len(values))
        + field(2, 7)
        + field(8, name.encode())
        + field(9, struct.pack(f"<{len(values)}q", *values)),
    )


def graph(nodes, initializers, inputs, outputs):
    """A whole file; inputs: name to (type, dims); outputs: scalars."""
    out = b"".join(nodes) + field(2, b"g") + b"".join(initializers)
    out += b"".join(field(11, value_info(k.encode(), *v)) for k, v in inputs.items())
    return a_model(out + b"".join(field(12, value_info(k.encode(), 1, [])) for k in outputs))
