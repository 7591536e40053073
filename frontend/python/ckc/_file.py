"""The parts of an ONNX file that an export checks and adds, in protobuf's wire format."""

import math


def _varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value, shift, at = value | (byte & 127) << shift, shift + 7, at + 1
        if byte < 128:
            return value, at


def _fields(data):
    """(number, value) of the fields of a message: a number, or a view of bytes."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = _varint(data, at)
        else:
            n, at = _varint(data, at) if kind == 2 else ({1: 8, 5: 4}[kind], at)
            value, at = data[at : at + n], at + n
        yield key >> 3, value


def _texts(message, field):
    return [bytes(x).decode() for number, x in _fields(message) if number == field]


def read(path):
    """Names of the initializers, and (operator, number of inputs) of the nodes, also of those in
    functions."""
    names, nodes = [], []
    with open(path, "rb") as f:
        model = memoryview(f.read())
    for number, part in _fields(model):
        if number not in (7, 25):  # graph, functions
            continue
        node, initializer = (1, 5) if number == 7 else (7, None)
        for inner, x in _fields(part):
            if inner == node:
                nodes.append((_texts(x, 4)[0], len([i for i in _texts(x, 1) if i])))
            elif inner == initializer:
                names += _texts(x, 8)
    return names, nodes


def _number(value):
    data = b""
    while value > 127:
        data, value = data + bytes([value & 127 | 128]), value >> 7
    return data + bytes([value])


def _field(number, value):
    if isinstance(value, int):
        return _number(number << 3) + _number(value)
    return _number(number << 3 | 2) + _number(len(value)) + bytes(value)


class Node:
    """A node of the main graph: .name, .op, .inputs, .outputs."""

    def __init__(self, message):
        self.inputs, self.outputs = _texts(message, 1), _texts(message, 2)
        self.name, self.op = (_texts(message, i)[:1] or [""] for i in (3, 4))
        self.name, self.op = self.name[0] or self.outputs[0], self.op[0]


def graph(path):
    """The nodes of the main graph, in order."""
    with open(path, "rb") as f:
        model = memoryview(f.read())
    parts = [x for number, part in _fields(model) if number == 7 for x in _fields(part)]
    return [Node(x) for number, x in parts if number == 1]


def rewrite(path, target, outputs=(), probes=()):
    """Write a copy of the file that has more outputs, and that adds to each value of `probes`,
    {value: (name, shape)}, an initializer of zeros, in float32: its gradient is that of the value.
    External data has to lie beside the copy."""
    probes = dict(probes)

    def node(message):
        made = b""
        outs = _texts(message, 2)
        if not probes.keys() & set(outs):
            return _field(1, message)
        for number, x in _fields(message):
            text = bytes(x).decode() if number == 2 else None
            made += _field(number, probes[text][0].encode() + b".in" if text in probes else x)
        made = _field(1, made)
        for value in outs:
            if value in probes:
                name = probes[value][0].encode()
                ends = _field(1, name + b".in") + _field(1, name) + _field(2, value.encode())
                made += _field(1, ends + _field(3, name) + _field(4, b"Add"))
        return made

    def zeros(name, shape):
        dims = b"".join(_field(1, n) for n in shape)
        data = bytes(4 * math.prod(shape))
        return _field(5, dims + _field(2, 1) + _field(8, name.encode()) + _field(9, data))

    def whole(part):
        made = [node(x) if number == 1 else _field(number, x) for number, x in _fields(part)]
        made += [zeros(*probe) for probe in probes.values()]
        made += [_field(12, _field(1, value.encode())) for value in outputs]
        return b"".join(made)

    with open(path, "rb") as f:
        model = memoryview(f.read())
    with open(target, "wb") as f:
        for number, part in _fields(model):
            f.write(_field(number, whole(part) if number == 7 else part))


def note(path, entries):
    """Add entries to the metadata of the model: fields of a message may be appended."""
    with open(path, "ab") as f:
        for key, value in entries.items():
            f.write(_field(14, _field(1, key.encode()) + _field(2, value.encode())))
