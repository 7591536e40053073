#!/usr/bin/env python3
"""Lists of images: the pixels of every format, each beside its label; what is broken is told by its
file.

images.py CKC CKRUN
"""

import base64
import os
import struct
import sys
import zlib

import ck
import numpy as np
import seen

BATCH, H, W = 4, 8, 6
RAW = ["--feed", "x=float:images"]
# made by Pillow 12 of a ramp, and the pixels that it reads
RGB_JPEG = """
/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAAUDBAQEAwUEBAQFBQUGBwwIBwcHBw8LCwkMEQ8SEhEPERETFhwXExQaFRERGCEYGh0dHx8fExciJCIeJBweHx7/
2wBDAQUFBQcGBw4ICA4eFBEUHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh7/wAARCAAIAAYDASIAAhEBAxEB/8QA
FQABAQAAAAAAAAAAAAAAAAAAAAT/xAAaEAEAAQUAAAAAAAAAAAAAAAAABgckNEFR/8QAFQEBAQAAAAAAAAAAAAAAAAAABQb/xAAdEQABBAIDAAAAAAAAAAAA
AAAGAAMVQQQFIiPw/9oADAMBAAIRAxEAPwCSI02tcfXAEaQGe2kXey/WlRYhzolnnS//2Q=="""
GREY_JPEG = """
/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAAUDBAQEAwUEBAQFBQUGBwwIBwcHBw8LCwkMEQ8SEhEPERETFhwXExQaFRERGCEYGh0dHx8fExciJCIeJBweHx7/
wAALCAAIAAYBAREA/8QAFAABAAAAAAAAAAAAAAAAAAAABP/EABkQAAEFAAAAAAAAAAAAAAAAAAEACDZzsf/aAAgBAQAAPwBbQYqaRoX/2Q=="""
RGB_FIRST = [
    [17, 7, 228],
    [41, 11, 221],
    [81, 12, 199],
    [121, 13, 177],
    [161, 13, 159],
    [184, 16, 151],
]
RGB_LAST = [
    [38, 202, 152],
    [62, 206, 145],
    [103, 208, 124],
    [141, 208, 102],
    [182, 208, 83],
    [204, 212, 75],
]
GREY_ROW = [10, 49, 91, 130, 168, 211]


def write(bench, name, content):
    path = bench.path(name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(content if isinstance(content, bytes) else content.encode())
    return path


def pnm(pixels, comment=b""):
    kind = b"P6" if pixels.ndim == 3 else b"P5"
    return (
        kind
        + b"\n"
        + comment
        + b"%d %d\n255\n" % (pixels.shape[1], pixels.shape[0])
        + pixels.tobytes()
    )


def png(rows, depth, color, palette=b"", more=b"", interlace=0):
    """Rows are bytes; each gets another filter, undone here by what it subtracts."""

    def chunk(kind, data):
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    wide = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[color] * max(depth // 8, 1)
    data, above = b"", bytes(len(rows[0]))
    for k, row in enumerate(rows):
        left = bytes(wide) + row[:-wide]
        guess = [bytes(len(row)), left, above, bytes((a + b) // 2 for a, b in zip(left, above))][
            k % 4
        ]
        data += bytes([k % 4]) + bytes((a - b) & 255 for a, b in zip(row, guess))
        above = row
    head = struct.pack(">IIBBBBB", W, len(rows), depth, color, 0, 0, interlace)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + (chunk(b"PLTE", palette) if palette else b"")
        + more
        + chunk(b"IDAT", zlib.compress(data))
        + chunk(b"IEND", b"")
    )


def lines(bench, name, entries):
    return write(bench, name, "".join(f"{path} {label}\n" for path, label in entries))


def check(bench, so, path, want, what, *args, near=0):
    """want: {label: pixels}; three steps are an epoch of twelve."""
    for step in 1, 2, 3:
        got = seen.batch(bench, so, "--data", path, *args, "--steps", step)
        for x, y in zip(got.get("x", ()), got.get("y", ())):
            bench.check(np.abs(x - want[int(y)]).max() <= near, f"{what}: image {y}")


def formats(bench):
    rng = np.random.default_rng(8)
    rgb = [rng.integers(0, 256, (H, W, 3), dtype="u1") for _ in range(12)]
    palette = rng.integers(0, 256, (16, 3), dtype="u1")
    index = rng.integers(0, 16, (H, W))
    rgb[4] = palette[index]
    rgb[5] = rgb[5][..., :1].repeat(3, -1)
    rgb[6] = rgb[6][..., :1].repeat(3, -1)
    packed = [bytes((r[0::2] << 4 | r[1::2]).astype("u1")) for r in index]
    made = [
        ("a.ppm", pnm(rgb[0])),
        ("b c.ppm", pnm(rgb[1], b"# of 3 3\n")),
        ("d.png", png([bytes(r.ravel()) for r in rgb[2]], 8, 2)),
        ("sub/e.png", png([bytes(r.ravel()) for r in rgb[3]], 8, 2)),
        ("f.png", png(packed, 4, 3, palette.tobytes())),
        ("g.png", png([bytes(r[:, 0]) for r in rgb[5]], 8, 0)),
        ("h.pgm", pnm(rgb[6][..., 0])),
    ]
    made += [(f"{k}.ppm", pnm(rgb[k])) for k in range(7, 12)]
    entries = [(name, 100 - k) for k, (name, _) in enumerate(made)]
    for name, content in made:
        write(bench, "images/" + name, content)
    entries[3] = (bench.path("images/sub/e.png"), entries[3][1])
    path = lines(bench, "images/all.lst", entries)
    want = {100 - k: p.astype("f4") for k, p in enumerate(rgb)}
    hwc = seen.compiled(bench, "hwc", x=("f4", [BATCH, H, W, 3]), y=("i8", [BATCH]))
    chw = seen.compiled(bench, "chw", x=("f4", [BATCH, 3, H, W]), y=("i8", [BATCH]))
    check(bench, hwc, path, want, "as it lies", *RAW)
    check(bench, chw, path, {k: p.transpose(2, 0, 1) for k, p in want.items()}, "turned", *RAW)
    scaled = {
        k: (p.transpose(2, 0, 1) / np.float32(255) - np.float32(0.5)) / np.float32(0.25)
        for k, p in want.items()
    }
    check(bench, chw, path, scaled, "scaled", "--normalize", "0.5,0.25")
    halves = [
        lines(bench, f"images/{k}.lst", part) for k, part in enumerate((entries[:4], entries[4:]))
    ]
    check(bench, hwc, halves[0], want, "two lists", "--data", halves[1], *RAW)
    done = bench.ckrun(chw, "--data", path, "--normalize", "0,1")
    for line in (
        f"x f32[{BATCH},3,{H},{W}] = rows of 'images' u8[12,{H},{W},3], HWC to CHW, (x / 255 - mean) / std",
        f"y i64[{BATCH}] = rows of 'labels' i64[12]",
    ):
        bench.check(
            f"\n  {line}\n" in done.stdout, f"not told '{line}':\n{done.stdout}{done.stderr}"
        )
    grey = seen.compiled(bench, "grey", x=("f4", [BATCH, 1, H, W]), y=("i8", [BATCH]))
    one = lines(bench, "images/grey.lst", [("h.pgm", k) for k in range(12)])
    check(bench, grey, one, {k: rgb[6][..., 0].astype("f4") for k in range(12)}, "grey", *RAW)
    return hwc, grey


def jpeg(bench, hwc, grey):
    write(bench, "images/rgb.jpg", base64.b64decode(RGB_JPEG))
    write(bench, "images/grey.jpg", base64.b64decode(GREY_JPEG))
    path = lines(bench, "images/jpeg.lst", [("rgb.jpg", 0), ("grey.jpg", 1)] * 6)
    ramp = np.array([GREY_ROW] * H, "f4")
    for step in 1, 2, 3:
        got = seen.batch(bench, hwc, "--data", path, *RAW, "--steps", step)
        for x, y in zip(got.get("x", ()), got.get("y", ())):
            far = (
                np.abs(x - ramp[..., None])
                if y
                else np.abs(x[[0, -1]] - np.array([RGB_FIRST, RGB_LAST]))
            )
            bench.check(far.max() <= 2, f"jpeg {y}: {far.max()}")
    check(
        bench,
        grey,
        lines(bench, "images/greys.lst", [("grey.jpg", 1)] * 12),
        {1: ramp},
        "grey jpeg",
        *RAW,
        near=2,
    )


def wrong(bench, hwc):
    good = np.arange(H * W * 3, dtype="u1").reshape(H, W, 3)
    write(bench, "images/good.ppm", pnm(good))
    rows = [bytes(r.ravel()) for r in good]
    whole = png(rows, 8, 2)
    cut = base64.b64decode(RGB_JPEG)
    for name, content, told in (
        ("cut.ppm", pnm(good)[:-1], "cut.ppm: ends early"),
        ("text.ppm", "P6 what", "has no size"),
        ("deep.ppm", pnm(good).replace(b"255", b"65535"), "expected pixel values from 0 to 255"),
        (
            "small.ppm",
            pnm(good[:-1]),
            "expected an image of 8x6x3 (height, width, channels) like the first one, found 7x6x3",
        ),
        ("none.png", "GIF89a", "expected a PNG or JPEG image, or a binary PGM or PPM"),
        ("empty", "", "expected a PNG or"),
        ("cut.png", whole[:-30], "cut.png: cannot be read as PNG: "),
        ("crc.png", whole[:60] + b"x" + whole[61:], "crc.png: cannot be read as PNG: "),
        ("alpha.png", png([bytes(24)] * H, 8, 6), "found a transparent image"),
        ("deep.png", png([bytes(36)] * H, 16, 2), "found 16-bit"),
        (
            "huge.png",
            whole[:16] + struct.pack(">II", 2**31 - 1, 2**31 - 1) + whole[24:],
            "huge.png: cannot be read",
        ),
        ("cut.jpg", cut[:-30], "cut.jpg: cannot be read as JPEG: Premature end"),
        ("cut2.jpg", cut[:200], "cut2.jpg: cannot be read as JPEG: "),
        ("bad.jpg", cut[:20] + bytes(100) + cut[120:], "bad.jpg: cannot be read as JPEG: "),
        ("huge.ppm", b"P6 65535 65535 255\n", "huge.ppm: "),
    ):
        write(bench, "images/" + name, content)
        path = lines(bench, "images/wrong.lst", [("good.ppm", 0)] * 3 + [(name, 1)])
        seen.refused(bench, hwc, "--data", path, *RAW, told=[told])
        if name[:5] != "small":
            seen.refused(
                bench,
                hwc,
                "--data",
                lines(bench, "images/wrong.lst", [(name, 1)] * 4),
                *RAW,
                told=[name],
            )
    for content, told in (
        ("", "wrong.lst: the file is empty"),
        ("good.ppm\n", ":1: expected PATH LABEL"),
        ("good.ppm 0\n\ngood.ppm cat\n", ":3: expected PATH LABEL"),
        ("7\n", ":1: expected PATH LABEL"),
        ("none.ppm 7\n", "none.ppm: cannot read: No such file"),
        ("good.ppm 1.5\n", ":1: expected"),
        ("good.ppm 0\n" + "x" * 5000 + " 1\n", ":2: the line has more than"),
        ("good.ppm 0\na\0b 1\n", ":2: found a NUL byte"),
        (". 0\n", "not a regular file"),
    ):
        seen.refused(
            bench, hwc, "--data", write(bench, "images/wrong.lst", content), *RAW, told=[told]
        )
    seen.refused(
        bench,
        hwc,
        "--data",
        lines(bench, "images/wrong.lst", [("good.ppm", 0)] * 4),
        told=["x=float:images"],
    )
    path = write(bench, "images/large.lst", "good.ppm 3\n" * 9999)
    done = bench.ckrun(hwc, "--data", path, *RAW, "--epochs", 1)
    bench.check(
        "an epoch is 9999 samples" in done.stdout and "step 2500/2500" in done.stdout,
        done.stdout[-200:] + done.stderr,
    )


def skip_unless_built(bench, hwc):
    """Without libpng or libjpeg there is a line that says so."""
    for name, content in (
        ("a.png", png([bytes(3 * W)] * H, 8, 2)),
        ("a.jpg", base64.b64decode(RGB_JPEG)),
    ):
        write(bench, name, content)
        done = bench.ckrun(hwc, "--data", lines(bench, "one.lst", [(name, 0)]), *RAW)
        if "not built in (CMake: " in done.stderr:
            bench.check(done.returncode == 1, done.stderr)
            sys.exit(77)


def main():
    bench = ck.Bench()
    skip_unless_built(
        bench, seen.compiled(bench, "hwc", x=("f4", [BATCH, H, W, 3]), y=("i8", [BATCH]))
    )
    hwc, grey = formats(bench)
    jpeg(bench, hwc, grey)
    wrong(bench, hwc)
    bench.finish()


if __name__ == "__main__":
    main()
