#!/usr/bin/env python3
"""What ckrun writes for other programs: CSV with the numbers of JSON lines, events that TensorBoard
reads.

    logs.py CKC CKRUN

Events are taken apart here, checksums included; nothing of TensorBoard is needed.
"""

import csv
import os
import struct

import ck

MODEL = os.path.join(ck.MODELS, "mlp-mse")


def crc32c(data):
    c = 0xFFFFFFFF
    for byte in data:
        c ^= byte
        for _ in range(8):
            c = (c >> 1) ^ (0x82F63B78 if c & 1 else 0)
    c ^= 0xFFFFFFFF
    return ((c >> 15 | c << 17) + 0xA282EAD8) & 0xFFFFFFFF


def varint(data, at):
    x = shift = 0
    while True:
        x |= (data[at] & 127) << shift
        shift += 7
        at += 1
        if data[at - 1] < 128:
            return x, at


def message(data):
    """{field: value}; of bytes, doubles and floats the bytes."""
    at, out = 0, {}
    while at < len(data):
        key, at = varint(data, at)
        kind = key & 7
        if kind == 0:
            out[key >> 3], at = varint(data, at)
            continue
        n = {1: 8, 5: 4}.get(kind)
        if n is None:
            n, at = varint(data, at)
        out[key >> 3] = data[at : at + n]
        at += n
    return out


def events(bench, folder):
    """{tag: {step: value}} of all files in a folder."""
    found = {}
    for name in sorted(os.listdir(folder)):
        data, at, first = ck.content(os.path.join(folder, name)), 0, True
        bench.check("tfevents" in name, f"TensorBoard looks for another name than {name}")
        while at < len(data):
            n, head = struct.unpack_from("<QI", data, at)
            body, tail = data[at + 12 : at + 12 + n], struct.unpack_from("<I", data, at + 12 + n)[0]
            bench.check(
                head == crc32c(data[at : at + 8]) and tail == crc32c(body),
                f"{name}: checksum of the record at {at}",
            )
            at += 16 + n
            m = message(body)
            bench.check(1e9 < struct.unpack("<d", m[1])[0] < 1e10, "wall time")
            if first:
                bench.check(m[3] == b"brain.Event:2", f"{name}: version {m}")
            else:
                v = message(message(m[5])[1])
                found.setdefault(v[1].decode(), {})[m[2]] = struct.unpack("<f", v[2])[0]
            first = False
    return found


def single(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def number(cell):
    return cell == "true" if cell in ("true", "false") else float(cell)


def main():
    bench = ck.Bench()
    so, data = bench.path("m.so"), MODEL + ".inputs.safetensors"
    bench.must(bench.ckc(MODEL + ".onnx", "-o", so, "--quiet", "--dim", "batch=8"), "compile")
    run = [so, "--inputs", data, "--valid", data, "--valid-every", 2, "--quiet", "--lr", 0.01]
    a, b, tb, state = (bench.path(x) for x in ("a.jsonl", "a.csv", "tb", "s.st"))
    for log, more in (a, []), (b, ["--tensorboard", tb, "--save", state]):
        bench.must(bench.ckrun(*run, "--steps", 5, "--log", log, *more), log)
    bench.must(
        bench.ckrun(*run, "--steps", 7, "--log", b, "--tensorboard", tb, "--resume", state), "go on"
    )
    bench.must(bench.ckrun(*run, "--steps", 7, "--log", a), "all steps")
    rows, table = ck.log_rows(a), list(csv.DictReader(open(b, newline="")))
    bench.check(len(table) == len(rows) == 7, f"{len(table)} rows, of {len(rows)}")
    for row, cells in zip(rows, table):
        told = {k: number(v) for k, v in cells.items() if v}
        took, too = told.pop("seconds"), row.pop("seconds")
        # behind step 5 the first run ended
        extra = {k: told.pop(k) for k in list(told) if k.startswith("valid_") and row["step"] == 5}
        bench.check(told == row and took > 0 and too > 0, f"CSV {told}, JSON {row}")
        bench.check(bool(extra) == (row["step"] == 5), f"validated at the end: {cells}")
    found = events(bench, tb)
    for key, tag in (
        ("loss", "train/loss"),
        ("lr", "train/lr"),
        ("grad_norm", "train/grad_norm"),
        ("valid_loss", "valid/loss"),
    ):
        want = {int(c["step"]): single(float(c[key])) for c in table if c[key]}
        bench.check(want and found.get(tag) == want, f"{tag}: {found.get(tag)}, expected {want}")
    bench.check("train/step" not in found and "train/skipped" not in found, f"tags {sorted(found)}")
    done = bench.ckrun("eval", so, "--inputs", data, "--init", state, "--log", bench.path("e.csv"))
    bench.must(done, "eval")
    one = list(csv.DictReader(open(bench.path("e.csv"), newline="")))
    bench.check(
        len(one) == 1 and f"loss {one[0]['loss']}" in done.stdout, f"eval: {one}, {done.stdout}"
    )
    # numbers of steps of one byte and of two
    bench.must(
        bench.ckrun(
            *run,
            "--steps",
            130,
            "--log",
            bench.path("long.csv"),
            "--tensorboard",
            bench.path("long"),
        ),
        "a longer run",
    )
    want = {
        int(c["step"]): single(float(c["loss"]))
        for c in csv.DictReader(open(bench.path("long.csv"), newline=""))
    }
    bench.check(
        list(want) == list(range(1, 131))
        and events(bench, bench.path("long"))["train/loss"] == want,
        "events of 130 steps",
    )
    for folder in bench.path("none/at/all"), a:
        done = bench.ckrun(*run, "--steps", 1, "--tensorboard", folder)
        bench.check(
            done.returncode == 1 and f"{folder}: cannot write" in done.stderr,
            f"--tensorboard {folder}: {done.stderr}",
        )
    bench.finish()


if __name__ == "__main__":
    main()
