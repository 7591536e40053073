#!/usr/bin/env python3
"""Products of rows with the matrix of each row's expert.

    experts.py CKC CKRUN [--flags "--target cuda ..."] [order] [threads] [fault] [copies]

--flags: more for ckc.  Without a part, all are checked; a GPU adds in an order of its own.

No matrix is copied for a row.  A bad index ends the step, as a gather's does; the number of
threads changes no bit; an expert's gradient is that of its rows alone, added in their order.
"""

import os
import random
import shlex
import sys

import ck

sys.path.insert(0, os.path.join(ck.HERE, "..", "runtime"))
import files

FLAGS = shlex.split(ck.option("--flags", ""))
ROWS, EXPERTS, INNER, WIDTH = 150, 5, 24, 17
MIXTURE = f"""graph @mixture {{
	input %x: f32[{ROWS},{INNER}]
	input %t: f32[{ROWS},{WIDTH},1]
	input %i: i64[{ROWS}]
	param %w: f32[{EXPERTS},{WIDTH},{INNER}] = splat 0.5
	%m = gather %w, %i {{axis=0}}
	%column: f32[{ROWS},{INNER},1] = reshape %x {{shape=[{ROWS},{INNER},1]}}
	%y = matmul %m, %column
	%p = mul %y, %t
	%loss: f32[] output = reduce_sum %p {{axes=[0,1,2], keepdims=0}}
}}
"""


def one_expert(rows):
    """The rows of one expert as a product of their own."""
    listed = ",".join(map(str, rows))
    return f"""graph @expert {{
	input %x: f32[{ROWS},{INNER}]
	input %t: f32[{ROWS},{WIDTH}]
	param %w: f32[{WIDTH},{INNER}] = splat 0.5
	const %rows: i64[{len(rows)}] = {{{listed}}}
	%xe = gather %x, %rows {{axis=0}}
	%te = gather %t, %rows {{axis=0}}
	%y = matmul %xe, %w {{tb=1}}
	%p = mul %y, %te
	%loss: f32[] output = reduce_sum %p {{axes=[0,1], keepdims=0}}
}}
"""


def noise(seed, n):
    r = random.Random(seed)
    return [r.uniform(-1, 1) for _ in range(n)]


def inputs(idx, column):
    t = (ROWS, WIDTH, 1) if column else (ROWS, WIDTH)
    return {
        "x": ("F32", (ROWS, INNER), noise(1, ROWS * INNER)),
        "t": ("F32", t, noise(2, ROWS * WIDTH)),
        **({"i": ("I64", (ROWS,), idx)} if column else {}),
    }


def gradients(bench, name, text, values, threads, *flags):
    """The bytes of w's gradient."""
    so = bench.path(name + ".so")
    with open(bench.path(name + ".ck"), "w") as f:
        f.write(text)
    files.st_write(bench.path(name + ".st"), values)
    done = bench.ckc(name + ".ck", "-o", so, "--quiet", "--threads", 3, *FLAGS, *flags)
    run = so, "--inputs", name + ".st", "--steps", 1, "--quiet", "--grads", name + ".g"
    if not bench.must(done, f"{name}: compile") or not bench.must(
        bench.ckrun(*run, "--threads", threads, "--blas", "own"), f"{name}: run"
    ):
        return b""
    return ck.tensors(bench.path(name + ".g"))["w"][2]


def order(bench):
    """The first expert has every third row, the last one has none."""
    idx = [(i * i + i // 7) % (EXPERTS - 1) if i % 3 else -EXPERTS for i in range(ROWS)]
    every = gradients(bench, "mixture", MIXTURE, inputs(idx, True), 1)
    size = len(every) // EXPERTS
    for e in range(EXPERTS):
        rows = [i for i in range(ROWS) if idx[i] % EXPERTS == e]
        mine = every[e * size : (e + 1) * size]
        if not rows:
            bench.check(mine == bytes(size), f"expert {e}, without rows: gradient is not zero")
            continue
        alone = gradients(bench, f"expert{e}", one_expert(rows), inputs(idx, False), 1)
        bench.check(mine == alone, f"expert {e}: gradient is not that of its {len(rows)} rows")


def threads(bench):
    idx = [3 if i % 4 else i % EXPERTS for i in range(ROWS)]
    for dtype in ("f32", "bf16", "f16"):
        flags = "--dtype", dtype
        got = [
            gradients(bench, f"threads-{dtype}", MIXTURE, inputs(idx, True), n, *flags)
            for n in (1, 2, 3)
        ]
        bench.check(got[0] == got[1] == got[2], f"{dtype}: threads change gradients")


def fault(bench):
    so = bench.path("bad.so")
    with open(bench.path("bad.ck"), "w") as f:
        f.write(MIXTURE)
    if not bench.must(bench.ckc("bad.ck", "-o", so, "--quiet", *FLAGS), "fault: compile"):
        return
    for bad in (EXPERTS, -EXPERTS - 1):
        idx = [bad if i in (70, 90) else i % EXPERTS for i in range(ROWS)]
        files.st_write(bench.path("bad.st"), inputs(idx, True))
        done = bench.ckrun(so, "--inputs", "bad.st", "--steps", 1, "--threads", 2)
        bench.check(
            done.returncode == 1 and f"index out of range: {bad}\n" in done.stderr,
            f"index {bad}: {done.stderr}",
        )


def copies(bench):
    """A matrix for each row would be the largest tensor by far."""
    with open(bench.path("copies.ck"), "w") as f:
        f.write(MIXTURE)
    done = bench.ckc("copies.ck", *FLAGS, "--plan-only", "--quiet", "--json", "copies.json")
    if bench.must(done, "plan"):
        most = max(
            t["bytes"] for t in ck.plan(bench.path("copies.json"))["tensors"] if not t["resident"]
        )
        bench.check(most < 4 * ROWS * WIDTH * INNER // 4, f"a tensor of {most} B")


def main():
    parts = {"order": order, "threads": threads, "fault": fault, "copies": copies}
    bench = ck.Bench()
    for part in bench.names or parts:
        parts[part](bench)
    bench.finish()


if __name__ == "__main__":
    main()
