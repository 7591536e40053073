"""Pretty printers for gdb: (gdb) source tests/tools/gdb_printers.py, then `p *v`, `p g->node[3]`,
`p shape`.

Values print as in the text form, "w: param f32[4,5] Shard(0)", nodes by op and numbers of operands
and results, plans by their sums.
"""

import gdb

PLACEMENTS = {0: "", 1: " Replicate, adjoint Partial", 3: " Partial"}


def table(name, index, field):
    return gdb.parse_and_eval(name)[int(index)][field]


def text(pointer, empty="?"):
    return pointer.string(errors="replace") if int(pointer) else empty


def numbers(array, n):
    return ",".join(str(int(array[i])) for i in range(n))


def shape_text(shape):
    rank = int(shape["rank"])
    return f"[{numbers(shape['dim'], rank)}]" if rank >= 0 else "[unknown]"


def placement_text(placement):
    kind = int(placement["kind"])
    if kind != 2:
        return PLACEMENTS.get(kind, f" kind {kind}")
    first, axis, segments = (
        int(placement["first_axis"]),
        int(placement["axis"]),
        int(placement["nsegment"]),
    )
    dims = str(axis) if first == axis else f"{first}..{axis}"
    return f" Shard({dims}" + (f" in {segments}" if segments > 1 else "") + ")"


class ShapePrinter:
    def __init__(self, shape):
        self.shape = shape

    def to_string(self):
        return shape_text(self.shape)


class PlacementPrinter:
    def __init__(self, placement):
        self.placement = placement

    def to_string(self):
        return placement_text(self.placement).strip() or "whole"


class ValPrinter:
    def __init__(self, val):
        self.val = val

    def to_string(self):
        v = self.val
        kind = str(v["kind"]).removeprefix("V_").lower()
        by = f" by node {int(v['def'])}" if int(v["def"]) else ""
        return (
            f"{text(v['name'])}: {kind} {text(table('dtype_info', v['dt'], 'text'))}{shape_text(v['shape'])}{placement_text(v['placement'])}{by}"
            + (" output" if bool(v["output"]) else "")
        )


class NodePrinter:
    def __init__(self, node):
        self.node = node

    def to_string(self):
        n = self.node
        return f"({numbers(n['out'], int(n['nout']))}) = {text(table('op_info', n['op'], 'text'))}({numbers(n['in'], int(n['nin']))})"


class PlanPrinter:
    def __init__(self, plan):
        self.plan = plan

    def to_string(self):
        p, s = self.plan, self.plan["sum"]
        return (
            f"plan: {int(p['ntensor'])} tensors, {int(p['nstep'])} steps, peak {int(s['peak'])} B "
            f"(arena {int(s['arena'])}, resident {int(s['resident'])})"
        )


def printers():
    collection = gdb.printing.RegexpCollectionPrettyPrinter("ckc")
    for name, printer in (
        ("Shape", ShapePrinter),
        ("Placement", PlacementPrinter),
        ("Val", ValPrinter),
        ("Node", NodePrinter),
        ("Plan", PlanPrinter),
    ):
        collection.add_printer(name, f"^{name}$", printer)
    return collection


gdb.printing.register_pretty_printer(gdb.current_objfile(), printers(), replace=True)
