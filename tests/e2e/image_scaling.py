#!/usr/bin/env python3
"""Pixels of 8 bits: scaled as torchvision does, to the bit, and turned into the layout that the
model takes.

image_scaling.py CKC CKRUN
"""

import ck
import numpy as np
import seen

BATCH, N, H, W = 4, 12, 8, 6
MEAN, STD = np.array([0.485, 0.456, 0.406], "f4"), np.array([0.229, 0.224, 0.225], "f4")
COLOR = ["--normalize", "0.485/0.456/0.406,0.229/0.224/0.225"]


def normal(images, mean, std):
    """Of images whose last axis is the channels, in float32."""
    return (images.astype("f4") / np.float32(255) - np.float32(mean)) / np.float32(std)


def check(bench, shape, images, want, *args, told):
    """Every row of `want` comes with its own label."""
    so = seen.compiled(
        bench, "x".join(map(str, shape)), x=("f4", [BATCH, *shape]), y=("i8", [BATCH])
    )
    data = bench.path("images.npz")
    np.savez(data, images=images, y=np.arange(N, dtype="u1"))
    what = f"{images.shape} to {shape} {args}"
    for step in 1, 2, 3:
        got = seen.batch(bench, so, "--data", data, *args, "--steps", step)
        if got:
            bench.check((got["x"] == want[got["y"]]).all(), what)
    done = bench.ckrun(so, "--data", data, *args)
    line = f"x f32[{BATCH},{','.join(map(str, shape))}] = rows of 'images' u8[{','.join(map(str, images.shape))}]{told}"
    bench.check(f"\n  {line}\n" in done.stdout, f"{what}: not told '{line}':\n{done.stdout}")
    return so, data


def cubes(bench):
    """Of as many rows and columns as channels nothing tells how images lie."""
    cube = np.random.default_rng(2).integers(0, 256, (N, 3, 3, 3), dtype="u1")
    by = ", (x / 255 - mean) / std by channel"
    asis = normal(cube.transpose(0, 2, 3, 1), MEAN, STD).transpose(0, 3, 1, 2)
    so, data = check(
        bench,
        (3, 3, 3),
        cube,
        normal(cube, MEAN, STD).transpose(0, 3, 1, 2),
        *COLOR,
        "--feed",
        "x=hwc:images",
        told=", HWC to CHW" + by,
    )
    check(bench, (3, 3, 3), cube, asis, *COLOR, "--feed", "x=chw:images", told=by)
    for color in COLOR, ["--normalize", "0.5,0.5"]:
        seen.refused(
            bench,
            so,
            "--data",
            data,
            *color,
            told=["may be HWC or CHW", "--feed x=hwc:images", "--feed x=chw:images"],
        )


def main():
    bench = ck.Bench()
    hwc = np.random.default_rng(1).integers(0, 256, (N, H, W, 3), dtype="u1")
    hwc[0].flat[:] = np.arange(H * W * 3)
    hwc[1].flat[:] = np.arange(H * W * 3) + 112
    chw, gray = hwc.transpose(0, 3, 1, 2).copy(), hwc[..., 0].copy()
    last = normal(hwc, MEAN, STD)
    first = last.transpose(0, 3, 1, 2)
    by = ", (x / 255 - mean) / std by channel"
    so, data = check(bench, (3, H, W), hwc, first, *COLOR, told=", HWC to CHW" + by)
    check(bench, (3, H, W), chw, first, *COLOR, told=by)
    check(bench, (H, W, 3), hwc, last, *COLOR, told=by)
    check(bench, (H, W, 3), chw, last, *COLOR, told=", CHW to HWC" + by)
    one = ["--normalize", "0.1307,0.3081"]
    plain = ", (x / 255 - mean) / std"
    check(bench, (3, H, W), hwc, normal(chw, 0.1307, 0.3081), *one, told=", HWC to CHW" + plain)
    for shape in (H, W), (1, H, W), (H, W, 1), (H * W,):
        check(bench, shape, gray, normal(gray, 0.1307, 0.3081).reshape(N, *shape), *one, told=plain)
    check(
        bench,
        (1, H, W),
        gray[..., None],
        normal(gray, 0, 1).reshape(N, 1, H, W),
        "--normalize=0,1",
        told=", HWC to CHW" + plain,
    )
    check(
        bench,
        (3, H, W),
        hwc,
        chw.astype("f4"),
        "--feed",
        "x=float:images",
        told=", HWC to CHW, converted",
    )
    check(
        bench,
        (3, H, W),
        hwc,
        chw.astype("f4"),
        "--feed",
        "x=float:images",
        told=", HWC to CHW, converted",
    )
    wide = bench.path("wide.npz")
    np.savez(wide, images=hwc.astype("i8"), y=np.arange(N), large=hwc.astype("i4") + 1)
    seen.refused(
        bench, so, "--data", wide, *COLOR, told=["no data are assigned", "--feed x=images"]
    )
    got = seen.batch(bench, so, "--data", wide, *COLOR, "--feed", "x=images", "--steps", 2)
    bench.check(bool(got) and (got["x"] == first[got["y"]]).all(), "pixels as int64")
    seen.refused(
        bench,
        so,
        "--data",
        wide,
        *COLOR,
        "--feed",
        "x=large",
        "--epochs",
        1,
        told=["'large': element ", " is 256, which does not fit u8"],
    )
    for bad in (
        "0.5",
        "0.5,0",
        "0.5,-1",
        "0.5/0.5,1",
        "a,b",
        "0.5,0.5,0.5",
        ",",
        "",
        "0.5/,1/1",
        "0.5,nan",
        "/".join(["1"] * 17) + "," + "/".join(["1"] * 17),
    ):
        seen.refused(
            bench,
            so,
            "--data",
            data,
            "--normalize",
            bad,
            told=["expected MEAN,STD, each one number or"],
        )
    seen.refused(
        bench,
        so,
        "--data",
        data,
        "--normalize",
        "0/0,1/1",
        told=["no single axis of the input has that many"],
    )
    seen.refused(
        bench,
        so,
        "--data",
        data,
        *COLOR,
        "--feed",
        "x=float:images",
        told=["no float input reads pixels from --data"],
    )
    seen.refused(
        bench,
        so,
        "--data",
        data,
        "--feed",
        "x=images",
        told=["--normalize MEAN,STD scales pixels: 0,1 to the range 0 to 1"],
    )
    seen.refused(
        bench,
        so,
        "--data",
        data,
        *COLOR,
        "--feed",
        "x=chw:images",
        told=["--feed names another one"],
    )
    seen.refused(
        bench,
        so,
        *COLOR,
        "--feed",
        "x=ones",
        "--feed",
        "y=zeros",
        status=2,
        told=["--normalize needs --data"],
    )
    cubes(bench)
    bench.finish()


if __name__ == "__main__":
    main()
