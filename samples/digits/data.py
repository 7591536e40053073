#!/usr/bin/env python3
"""Writes train.npz and test.npz: pictures of digits, u8 [rows, 28, 28], and their labels.

    python3 data.py [ROWS]      rows of train.npz, 4000 if not given; test.npz has a quarter of that

Each digit is drawn from five by seven squares of two to three pixels, somewhere in the picture,
slanted and under noise: no two are alike.
"""

import sys

import numpy as np

FONT = (
    "01110 10001 10011 10101 11001 10001 01110",
    "00100 01100 00100 00100 00100 00100 01110",
    "01110 10001 00001 00010 00100 01000 11111",
    "11111 00010 00100 00010 00001 10001 01110",
    "00010 00110 01010 10010 11111 00010 00010",
    "11111 10000 11110 00001 00001 10001 01110",
    "00110 01000 10000 11110 10001 10001 01110",
    "11111 00001 00010 00100 01000 01000 01000",
    "01110 10001 10001 01110 10001 10001 01110",
    "01110 10001 10001 01111 00001 00010 01100",
)
SQUARES = np.array([[list(map(int, row)) for row in digit.split()] for digit in FONT])
SIDE = 28


def picture(digit, rng):
    scale, slant = rng.uniform(2.2, 3.2), rng.uniform(-0.3, 0.3)
    top, left = (rng.uniform(2, SIDE - 2 - n * scale) for n in (7, 5))
    y, x = np.mgrid[:SIDE, :SIDE] + 0.5
    row = np.floor((y - top) / scale).astype(int)
    column = np.floor((x - left + slant * (y - SIDE / 2)) / scale).astype(int)
    inside = (row >= 0) & (row < 7) & (column >= 0) & (column < 5)
    ink = inside * SQUARES[digit][row.clip(0, 6), column.clip(0, 4)]
    return (200 * ink + rng.normal(25, 30, (SIDE, SIDE))).clip(0, 255).astype(np.uint8)


def write(path, rows, seed):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 10, rows)
    np.savez(path, image=np.stack([picture(digit, rng) for digit in labels]), labels=labels)


def main():
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 4000
    write("train.npz", rows, 0)
    write("test.npz", rows // 4, 1)


if __name__ == "__main__":
    main()
