#!/usr/bin/env python3
"""Compressed .npz files: the samples of plain ones, and whatever is broken in them is told, in
bounded room.

npz.py CKC CKRUN
"""

import io
import os
import re
import resource
import struct
import sys
import zipfile
import zlib

import ck
import numpy as np
import seen

BATCH, N = 4, 3000


def data():
    rng = np.random.default_rng(3)
    return {
        "x": rng.normal(size=(N, 7)).astype("f4"),
        "y": rng.integers(0, 10, N),
        "unused": np.zeros(9),
    }


def same(bench, so, plain, packed):
    for flags in ["--steps", 1], ["--steps", 9, "--seed", 5]:
        a, b = (seen.batch(bench, so, "--data", p, *flags) for p in (plain, packed))
        for k in "x", "y":
            bench.check((a[k] == b[k]).all(), f"{packed} {flags}: {k}")


def writers(bench, so):
    arrays = data()
    plain, packed = bench.path("plain.npz"), bench.path("packed.npz")
    np.savez(plain, **arrays)
    np.savez_compressed(packed, **arrays)
    if "zlib is not built in" in bench.ckrun(so, "--data", packed).stderr:
        seen.refused(
            bench,
            so,
            "--data",
            packed,
            told=["save it with numpy.savez: np.savez('new.npz', **np.load('"],
        )
        sys.exit(77)
    bench.check(os.path.getsize(packed) < os.path.getsize(plain), "nothing was compressed")
    same(bench, so, plain, packed)
    for level in 1, 9:
        with zipfile.ZipFile(
            bench.path("level.npz"), "w", zipfile.ZIP_DEFLATED, compresslevel=level
        ) as z:
            for k, a in arrays.items():
                f = io.BytesIO()
                np.save(f, a)
                with z.open(k + ".npy", "w", force_zip64=level == 9) as to:
                    to.write(f.getvalue())
        same(bench, so, plain, bench.path("level.npz"))
    np.savez_compressed(bench.path("a.npz"), **{k: a[:1000] for k, a in arrays.items()})
    np.savez(bench.path("b.npz"), **{k: a[1000:] for k, a in arrays.items()})
    a = seen.batch(bench, so, "--data", bench.path("[ab].npz"), "--steps", 9)
    bench.check(
        (a["x"] == seen.batch(bench, so, "--data", plain, "--steps", 9)["x"]).all(),
        "shards, one compressed",
    )
    return packed


def damaged(bench, so, packed):
    """Any byte changed, any end cut off: a message, or bytes that mean nothing."""
    raw = ck.content(packed)
    path = bench.path("damaged.npz")
    begin, unused = raw.index(b"PK\3\4"), raw.index(b"unused.npy")
    for at in list(range(begin + 60, unused - 40, 997)) + [len(raw) // 3, unused - 60]:
        with open(path, "wb") as f:
            f.write(raw[:at] + bytes([raw[at] ^ 0x24]) + raw[at + 1 :])
        seen.refused(bench, so, "--data", path, "--steps", 1)
    for at in range(0, len(raw), 4999):
        with open(path, "wb") as f:
            f.write(raw[:at])
        seen.refused(bench, so, "--data", path, "--steps", 1)


def an_npz(bench, member, size=None, crc=None, method=8):
    """One member 'x.npy' that claims what it likes."""
    pack = zlib.compressobj(9, zlib.DEFLATED, -15)
    stored = pack.compress(member) + pack.flush()
    size, crc = len(member) if size is None else size, zlib.crc32(member) if crc is None else crc
    extra = struct.pack("<HHQQ", 1, 16, size, len(stored))
    local = (
        struct.pack(
            "<4sHHHHHIIIHH",
            b"PK\3\4",
            45,
            0,
            method,
            0,
            33,
            crc,
            2**32 - 1,
            2**32 - 1,
            5,
            len(extra),
        )
        + b"x.npy"
        + extra
    )
    entry = struct.pack(
        "<4sHHHHHHIIIHHHHHII",
        b"PK\1\2",
        45,
        45,
        0,
        method,
        0,
        33,
        crc,
        2**32 - 1,
        2**32 - 1,
        5,
        len(extra),
        0,
        0,
        0,
        0,
        0,
    )
    entry += b"x.npy" + extra
    end = struct.pack("<4sHHHHIIH", b"PK\5\6", 0, 0, 1, 1, len(entry), len(local) + len(stored), 0)
    path = bench.path("hostile.npz")
    with open(path, "wb") as f:
        f.write(local + stored + entry + end)
    return path


def head(shape):
    f = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        f, {"descr": "<f4", "fortran_order": False, "shape": shape}
    )
    return f.getvalue()


def hostile(bench, so):
    row = np.zeros(7, "<f4").tobytes()
    good = head((100, 7)) + row * 100
    large = head((10000, 7)) + row * 10000
    feed = ["--feed", "y=zeros", "--steps", "1"]
    bench.must(bench.ckrun(so, "--data", an_npz(bench, good), *feed), "made by hand")
    for member, claims, told in (
        (good, {"crc": 7}, "'x' is damaged: its checksum is "),
        (good, {"size": len(good) + 1}, "it holds fewer bytes than its header says"),
        (good + bytes(100), {"size": len(good)}, "it holds more bytes than its header says"),
        (large + bytes(9), {"size": len(large)}, "it holds more bytes than its header says"),
        (good, {"size": 2**50}, "its size is too large for its compressed data"),
        (head((2**40, 7)) + row * 100, {}, "the array is larger than the file"),
        (head((2**61, 2**61)) + row, {}, "hostile.npz"),
        (good, {"method": 9}, "compressed by method 9"),
        (b"\x93NUMPY", {"size": 6}, "is cut off"),
        (b"", {}, "cut off"),
    ):
        seen.refused(bench, so, "--data", an_npz(bench, member, **claims), *feed, told=[told])
    # zeros, a thousand times smaller in the file: inflated on disk, not in memory, and only if they
    # are used
    bomb = an_npz(bench, head((2**21, 7)) + bytes(28 * 2**21))
    done = bench.ckrun(so, "--data", bomb, *feed)
    bench.must(done, "many zeros")
    bench.check("rows of 'x' f32[2097152,7]" in done.stdout, done.stdout)
    bench.check(
        int(re.search(r"the process grew by (\d+)", done.stdout)[1]) < 14 << 20, done.stdout
    )
    seen.refused(
        bench,
        so,
        "--data",
        bomb,
        *feed,
        told=["cannot create a temporary file in '/nowhere'"],
        env={"TMPDIR": "/nowhere"},
    )
    bench.must(
        bench.ckrun(so, "--data", bomb, "--feed", "x=ones", *feed, env={"TMPDIR": "/nowhere"}),
        "not used, not inflated",
    )
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, before[1]))
    seen.refused(bench, so, "--data", bomb, *feed, told=["cannot write: File too large"])
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def main():
    bench = ck.Bench()
    so = seen.compiled(bench, "xy", x=("f4", [BATCH, 7]), y=("i8", [BATCH]))
    packed = writers(bench, so)
    damaged(bench, so, packed)
    hostile(bench, so)
    bench.finish()


if __name__ == "__main__":
    main()
