#!/usr/bin/env python3
"""Write schemas.txt: what the operators of ONNX look like, version by version.

    make_schemas.py > schemas.txt

Needs the package onnx, and onnxruntime for the operators of com.microsoft that ckc imports.  A line
per version of an operator:
    NAME VERSION INPUTS OUTPUTS         "2-3"; "1-*" without an end
and one per attribute, after a tab: its name, its type, and its default, "required", or "-" if it
has none.  Operators without attributes in all versions and with the same inputs and outputs have
one line for the first.
"""

import struct
import sys

import onnx.defs
import onnx.helper

MICROSOFT = (
    "BiasGelu",
    "FastGelu",
    "Gelu",
    "QuickGelu",
    "SimplifiedSkipLayerNormalization",
    "SkipLayerNormalization",
)


def span(low, high):
    return f"{low}-{'*' if high > 1000 else high}"


def default_text(value):
    if isinstance(value, bytes):
        return value.decode() or '""'
    if isinstance(value, float):
        return f"{struct.unpack('<f', struct.pack('<f', value))[0]:.9g}"
    if isinstance(value, (list, tuple)):
        return ",".join(default_text(x) for x in value)
    return str(value)


def attribute_text(name, a):
    default = (
        onnx.AttributeProto.FromString(a._default_value)
        if hasattr(a, "_default_value")
        else a.default_value
    )
    value = (
        "required"
        if a.required
        else default_text(onnx.helper.get_attribute_value(default))
        if default.type
        else "-"
    )
    return f"\t{name} {str(a.type).split('.')[-1].lower()} {value}"


def text(name, s, lists):
    out = [f"{name} {s.since_version} {lists}"]
    return out + [attribute_text(k, a) for k, a in sorted(s.attributes.items())]


def main():
    schemas = sorted(
        (s.name, s.since_version, s)
        for s in onnx.defs.get_all_schemas_with_history()
        if s.domain == "" and not s.deprecated
    )
    print(f"# onnx {onnx.__version__}, written by make_schemas.py")
    print(f"newest {onnx.defs.onnx_opset_version()} {onnx.IR_VERSION}")
    before = None
    for name, version, s in schemas:
        lines = text(
            name, s, f"{span(s.min_input, s.max_input)} {span(s.min_output, s.max_output)}"
        )
        same = (name, lines[0].split()[2:], lines[1:])
        if same != before:
            print("\n".join(lines))
        before = same
    try:
        from onnxruntime.capi.onnxruntime_pybind11_state import get_all_operator_schema
    except ImportError:
        sys.exit("without onnxruntime those of com.microsoft are missing")
    for s in sorted(get_all_operator_schema(), key=lambda s: (s.name, s.since_version)):
        if (
            s.domain == "com.microsoft"
            and s.name in MICROSOFT
            or s.domain == ""
            and s.name == "SimplifiedLayerNormalization"
        ):
            full = f"com.microsoft.{s.name}" if s.domain else s.name
            print(
                "\n".join(
                    text(
                        full,
                        s,
                        f"{span(s.min_input, s.max_input)} {span(s.min_output, s.max_output)}",
                    )
                )
            )


if __name__ == "__main__":
    main()
