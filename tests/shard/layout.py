#!/usr/bin/env python3
"""The choice of a sharding strategy: its cost, and what it must not cost more than.

    layout.py SHARD_LAYOUT CKC GPT

A graph by hand whose strategies a closed formula prices; layers counted once against every node for
itself; Megatron's layout, typed in, which is never cheaper; what is said where too little can be
cut.
"""

import itertools
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
MODELS = os.path.join(HERE, "..", "models")
sys.path.insert(0, os.path.join(HERE, "..", "e2e"))
import ck

failures = []
# one second for a million operations of a product or for a million bytes sent; all else is free
FLOPS, LINK = 1e6, 1e6
DEVICE = {
    "name": "by hand",
    "product_flops": FLOPS,
    "product_flops16": FLOPS,
    "vector_flops": 1e30,
    "bandwidth": 1e30,
    "launch_seconds": 0,
    "memory_bytes": 0,
    "serial": 0,
    "link_bytes_per_second": LINK,
    "link_latency_seconds": 0,
}
ROWS, WIDTH, INNER = 64, 32, 64
BY_HAND = f"""graph @mlp {{
	input %x: f32[{ROWS},{WIDTH}]
	param %w1: f32[{WIDTH},{INNER}]
	param %w2: f32[{INNER},{WIDTH}]
	%h = matmul %x, %w1
	%a = relu %h
	%y = matmul %a, %w2
	%loss output = reduce_sum %y {{axes=[0,1], keepdims=0}}
	loss %loss
}}
"""


def expect(what, ok, found=""):
    if not ok:
        failures.append(what)
        print(f"FAIL {what}: {found}", flush=True)
    return ok


def near(a, b, tolerance=1e-9):
    return abs(a - b) <= tolerance * abs(b)


class Tools:
    def __init__(self, layout, ckc, gpt, folder):
        self.layout, self.ckc, self.gpt, self.folder = layout, ckc, gpt, folder

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as f:
            f.write(text)
        return self.path(name)

    def model(self, name, **options):
        flags = [
            x for key, value in options.items() for x in ("--" + key.replace("_", "-"), str(value))
        ]
        subprocess.run(
            [self.gpt, "-o", self.path(name), *flags], check=True, stdout=subprocess.DEVNULL
        )
        return self.path(name)

    def choose(self, path, *flags, whole=False):
        # graphs in text are those that pass shard gets
        until = (
            "--passes=shard"
            if path.startswith(HERE) and path.endswith(".ck")
            else "--stop-after=shard"
        )
        argv = [
            self.layout,
            *(["-w"] if whole else []),
            path,
            "--plan-only",
            until,
            "--quiet",
            *map(str, flags),
        ]
        done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if not expect(f"{argv[1:]}", done.returncode == 0, done.stderr[-400:]):
            sys.exit(1)
        return json.loads(done.stdout)


def by_hand(t):
    """A column and a row product: one sum of y.  A matrix that lies otherwise is exchanged,
    forward, and its gradient back; summands of h are added up into pieces, forward, and put
    together, backward."""
    path, device = t.write("mlp.ck", BY_HAND), t.write("device.json", json.dumps(DEVICE))
    for ranks in (2, 4):
        ring = (ranks - 1) / ranks / LINK  # seconds for a byte of what goes round in pieces
        products = 3 * 2 * 2 * ROWS * WIDTH * INNER / FLOPS / ranks
        best = products + 2 * 4 * ROWS * WIDTH * ring
        inner = 2 * 4 * ROWS * INNER * ring
        exchange = best + 2 * 4 * WIDTH * INNER / ranks * ring
        other = {
            "w2": ("S1", exchange),
            "w1": ("S0", exchange),
            "h": ("P", best + inner),
            "loss": None,
        }
        for value, want in other.items():
            got = t.choose(path, "--tp", ranks, "--device", device, "--explain", value)
            what = f"by hand, {ranks} ranks, {value}"
            expect(what, near(got["seconds"], best), f"{got['seconds']}, not {best}")
            expect(what, [s["value"] for s in got["second"]] == [value], got["second"])
            second = got["second"][0]
            if want is None:
                expect(what + " otherwise", second["seconds"] == -1, second)
                continue
            expect(
                what + " otherwise",
                second["state"] == want[0] and near(second["seconds"], want[1]),
                f"{second}, not {want}",
            )
        # asked for
        got = t.choose(
            path, "--tp", ranks, "--device", device, "--shard", "w2=S1", "--explain", "w2"
        )
        expect(
            f"by hand, {ranks} ranks, --shard w2=S1",
            near(got["seconds"], other["w2"][1]) and got["second"][0]["seconds"] == -1,
            got,
        )
        done = subprocess.run(
            [
                t.ckc,
                path,
                "--plan-only",
                "--quiet",
                "--tp",
                str(ranks),
                "--device",
                device,
                "--explain",
                "w2",
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        want = (
            f"  strategy     estimated at {best:.6g} s per step; with S1 [{WIDTH}] here at least {other['w2'][1]:.6g} s, "
            f"{100 * (other['w2'][1] / best - 1):.3g} % more\n"
        )
        expect(
            f"by hand, {ranks} ranks, --explain w2",
            done.returncode == 0 and want in done.stdout,
            done.stdout + done.stderr,
        )


def refused(t):
    """Ten matrices of 6 rows and 10 columns, more ranks than any of them has: eight are listed.
    Columns may be uneven; rows of a matrix go with columns of an input, which has nothing to pad
    the last piece with."""
    count = 10
    lines = [
        "input %x: f32[4,6]",
        *(f"param %w{i}: f32[6,10]" for i in range(count)),
        *(f"%y{i} = matmul %x, %w{i}" for i in range(count)),
        "%s0 = add %y0, %y1",
        *(f"%s{i} = add %s{i - 1}, %y{i + 1}" for i in range(1, count - 1)),
        f"%loss output = reduce_sum %s{count - 2} {{axes=[0,1], keepdims=0}}",
        "loss %loss",
    ]
    path = t.write("many.ck", "graph @many {\n\t" + "\n\t".join(lines) + "\n}\n")
    done = subprocess.run(
        [t.ckc, path, "--plan-only", "--tp", "13"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    said = done.stderr.splitlines()
    expect(
        "refused",
        done.returncode == 1 and "--tp 13: only 0 % of the bytes in matrices" in said[0],
        done.stderr,
    )
    want = [f"    w{i} f32[6,10]: axis 0 by 2, 3, 6; axis 1 by 2 to 10" for i in range(8)]
    expect(
        "what is left whole",
        said[1:] == [*want, "    and 2 more", "  --tp that works: 2 to 10"],
        done.stderr,
    )


def same_price(t, what, path, flags):
    """... that of the runner-up, too, if --explain is among the flags."""
    once, alone = (t.choose(path, *flags, whole=whole) for whole in (False, True))
    for a, b in zip([once, *once["second"]], [alone, *alone["second"]]):
        expect(
            f"{what} {flags}: layers counted once",
            near(a["seconds"], b["seconds"]),
            f"{a['seconds']}, every node by itself {b['seconds']}",
        )
    expect(
        f"{what} {flags}: runner-up",
        len(once["second"]) == flags.count("--explain"),
        once["second"],
    )


def equal_layers(t):
    """The layers of a model counted once cost what they do when every node chooses for itself."""
    plain, rows, gpus = (
        ["--tp", 2],
        ["--tp", 4, "--sp"],
        ["--tp", 8, "--sp", "--device", "A100-80GB"],
    )
    explained = [*rows, "--explain", "h.3.attn.mix"]
    for layers, ways in (
        (1, (plain, rows, gpus)),
        (2, (plain, rows)),
        (3, (gpus,)),
        (6, (explained,)),
        (24, (plain,)),
    ):
        path = t.model("gpt.onnx", layers=layers, hidden=256, heads=8, seq=128, vocab=512, batch=2)
        for flags in ways:
            same_price(t, f"gpt of {layers} layers", path, flags)
    for name in ("llama-dynamo", "bert-cls-dynamo"):
        stem = os.path.join(MODELS, name)
        for flags in (plain, rows):
            same_price(t, name, stem + ".onnx", [*ck.model_flags(stem)[0], *flags])
    for name in ("t5", "llama"):
        for flags in (plain, rows):
            same_price(t, name, os.path.join(HERE, "models", name + ".ck"), flags)


def typed_in(ranks, sp, batch):
    """Megatron's sharding of a GPT (Shoeybi et al. 2019, Korthikanti et al. 2023): column and row
    products, a vocabulary that is cut, what lies between them whole or cut along tokens."""
    between = "I" if not sp else "S0" if batch % ranks == 0 else "S1"
    states = {
        "h.*.attn.qkv.weight": "S1",
        "h.*.attn.qkv.bias": "S0",
        "h.*.attn.proj.weight": "S0",
        "h.*.mlp.up.weight": "S1",
        "h.*.mlp.up.bias": "S0",
        "h.*.mlp.down.weight": "S0",
        "embed.token": "S0",
        "logits.matmul": "S1",
        "final.norm": between,
        "embed.drop": between,
    }
    if not sp:
        states["embed.sum"] = between
    for name in (
        "norm1",
        "attn.proj.biased",
        "attn.drop",
        "mid",
        "norm2",
        "mlp.down.biased",
        "mlp.drop",
        "out",
    ):
        states[f"h.*.{name}"] = between
    for name in ("attn.proj", "mlp.down"):
        states[f"h.*.{name}.biased.matmul"] = "S0" if sp else "I"
    return [x for name, state in states.items() for x in ("--shard", f"{name}={state}")]


COMM = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "replicate")


def megatron(t):
    """Nothing that is chosen costs more than Megatron's strategy at the same prices.  Only the
    table of positions, which Megatron keeps whole, is left to the program in both, since --tp cuts
    every large matrix."""
    for device, size in (
        ("cpu", dict(layers=2, hidden=64, heads=8, seq=32, vocab=512, batch=1)),
        ("A100-80GB", dict(layers=1, hidden=256, heads=8, seq=128, vocab=512, batch=2)),
        ("H100", dict(layers=1, hidden=1024, heads=16, seq=256, vocab=4096, batch=4)),
    ):
        path = t.model("gpt.onnx", **size)
        for ranks, sp in itertools.product((2, 4, 8), ([], ["--sp"])):
            flags = ["--tp", ranks, *sp, "--device", device]
            free, fixed = (
                t.choose(path, *flags),
                t.choose(path, *flags, *typed_in(ranks, sp, size["batch"])),
            )
            what = f"gpt {size['hidden']} wide, {flags}"
            expect(
                what,
                free["seconds"] <= fixed["seconds"] * (1 + 1e-9),
                f"{free['seconds']}, Megatron's {fixed['seconds']}",
            )
            # two of a kind in a layer, one before the logits; the loss gathers three numbers a row
            each = 2 * size["layers"]
            want = (
                {"all_gather": each + 2, "reduce_scatter": each}
                if sp
                else {"all_reduce": each, "all_gather": 1, "replicate": each + 1}
            )
            names = [name.split(".") for name in fixed["state"] if not name.startswith("embed.")]
            got = {op: n for op in COMM if (n := sum(name[-1] == op for name in names))}
            expect(what + ", typed in", got == want, f"{got}, expected {want}")


def at_scale(t):
    """What comes out by itself at the paper's sizes."""
    path = t.model("gpt.onnx", model="22B")
    state = t.choose(path, "--tp", 8, "--sp", "--device", "A100-80GB")["state"]
    want = {"embed.token": "S0", "logits.matmul": "S1"}
    for name, cut in (
        ("attn.qkv", "S1"),
        ("attn.proj", "S0"),
        ("mlp.up", "S1"),
        ("mlp.down", "S0"),
    ):
        want.update({f"h.{layer}.{name}.weight": cut for layer in range(48)})
    expect(
        "22B: column and row pairs, a vocabulary that is cut",
        {k: state.get(k) for k in want} == want,
        {k: state.get(k) for k in want if state.get(k) != want[k]},
    )


def main():
    with tempfile.TemporaryDirectory() as folder:
        t = Tools(*map(os.path.abspath, sys.argv[1:4]), folder)
        for part in PARTS:
            part(t)
    print(f"{len(failures)} failures")
    sys.exit(1 if failures else 0)


PARTS = (by_hand, refused, equal_layers, megatron, at_scale)

if __name__ == "__main__":
    main()
