#!/usr/bin/env python3
"""Pass canon on random mixtures of experts: products with gathered matrices become grouped, and
canon_same must find the same numbers to 1e-12, whatever the routing.

usage: experts.py CANON_SAME [FIRST LAST]     seeds FIRST..LAST-1
"""

import os
import random
import subprocess
import sys
import tempfile


def shape(*extents):
    return "[%s]" % ",".join(map(str, extents))


def routing(r, n, experts):
    """To one expert alone, to some, to some from the end."""
    few = r.sample(range(experts), r.randint(1, experts))
    end = r.choice((0, experts))
    return [r.choice(few) - end for _ in range(n)]


def graph(seed):
    """Indices are no constants: fold would make slices of those."""
    r = random.Random(seed)
    experts, inner, width = r.randint(2, 6), r.randint(1, 9), r.randint(1, 9)
    tokens, choices = r.randint(1, 7), r.randint(1, 3)
    left, nd = r.random() < 0.5, r.random() < 0.5
    turned, column = r.random() < 0.5, r.random() < 0.5
    idx = routing(r, tokens * choices, experts)
    tuples = (tokens, choices, 1) if nd else (tokens, choices)
    matrix = [width, inner] if left != turned else [inner, width]
    rows = r.randint(1, 3) if tokens * choices > experts else 1  # for each index
    upright = left != column
    vector = [inner, rows] if upright else [rows, inner]
    each = [width, rows] if left else [rows, width]
    once = [width, 1] if left else [1, width]
    lead = [tokens, r.choice((1, choices))]
    flags = "{ta=%d, tb=%d}" % ((turned, column) if left else (column, turned))
    pair = ("%wi", "%x") if left else ("%x", "%wi")
    lines = [
        "\tparam %%x: f32%s" % shape(*lead, *vector),
        "\tparam %%w: f32%s" % shape(experts, *matrix),
        "\tparam %%c: f32%s" % shape(experts, width),
        "\tconst %%k: i64%s = {%s}" % (shape(*tuples), ", ".join(map(str, idx))),
        "\tinput %%r: i64%s" % shape(*tuples),
        "\t%s = add %k, %r",
        "\t%i = sub %s, %r",
        "\t%%wi = %s" % ("gather_nd %w, %i" if nd else "gather %w, %i {axis=0}"),
        "\t%%ci = %s" % ("gather_nd %c, %i" if nd else "gather %c, %i {axis=0}"),
        "\t%%p = matmul %s, %s %s" % (*pair, flags),
        "\t%%q: f32%s = reshape %%p {shape=%s}" % ((shape(tokens, choices, *each),) * 2),
        "\t%%d: f32%s = reshape %%ci {shape=%s}" % ((shape(tokens, choices, *once),) * 2),
        "\t%%y output = add %s" % r.choice(("%q, %d", "%d, %q")),
    ]
    return "\n".join(["# run: --passes=canon", "graph @experts {", *lines, "}", ""])


def main():
    first, last = (int(sys.argv[2]), int(sys.argv[3])) if len(sys.argv) > 3 else (0, 400)
    with tempfile.TemporaryDirectory() as folder:
        paths = [os.path.join(folder, "%d.ck" % seed) for seed in range(first, last)]
        for seed, path in zip(range(first, last), paths):
            with open(path, "w", encoding="utf-8") as f:
                f.write(graph(seed))
        call = [sys.argv[1], "--tolerance", "1e-12", "--makes", "expert_matmul", *paths]
        return subprocess.run(call).returncode


if __name__ == "__main__":
    sys.exit(main())
