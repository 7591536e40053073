"""The parts of an ONNX file that an export checks and adds, in protobuf's wire format."""


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


def note(path, entries):
    """Add entries to the metadata of the model: fields of a message may be appended."""

    def field(number, data):
        size, n = b"", len(data)
        while n > 127:
            size, n = size + bytes([n & 127 | 128]), n >> 7
        return bytes([number << 3 | 2]) + size + bytes([n]) + data

    with open(path, "ab") as f:
        for key, value in entries.items():
            f.write(field(14, field(1, key.encode()) + field(2, value.encode())))
