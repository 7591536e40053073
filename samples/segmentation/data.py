#!/usr/bin/env python3
"""Writes train.npz and test.npz: pictures u8 [rows, 32, 32, 3] and what each pixel shows, 0
nothing, 1 a disc, 2 a square.

    python3 data.py [ROWS]      rows of train.npz, 800 if not given; test.npz has a quarter of that

Discs and squares have any colour, and so has what is behind them; noise is added.
"""

import sys

import numpy as np

SIDE = 32


def scene(rng):
    picture = np.full((SIDE, SIDE, 3), rng.integers(0, 256, 3), float)
    labels = np.zeros((SIDE, SIDE), np.int64)
    y, x = np.mgrid[:SIDE, :SIDE]
    for _ in range(rng.integers(1, 4)):
        kind, half = rng.integers(1, 3), rng.uniform(3, 7)
        dy, dx = y - rng.uniform(4, SIDE - 4), x - rng.uniform(4, SIDE - 4)
        inside = dy**2 + dx**2 < half**2 if kind == 1 else np.maximum(abs(dy), abs(dx)) < 0.9 * half
        picture[inside] = rng.integers(0, 256, 3)
        labels[inside] = kind
    return (picture + rng.normal(0, 12, picture.shape)).clip(0, 255).astype(np.uint8), labels


def write(path, rows, seed):
    rng = np.random.default_rng(seed)
    pictures, labels = zip(*(scene(rng) for _ in range(rows)))
    np.savez(path, image=np.stack(pictures), labels=np.stack(labels))


def main():
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 800
    write("train.npz", rows, 0)
    write("test.npz", rows // 4, 1)


if __name__ == "__main__":
    main()
