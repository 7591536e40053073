#!/usr/bin/env python3
"""Writes train.npz and test.npz: short reviews as rows of words' numbers, and whether each is a
praise (1) or not (0).

    python3 data.py [ROWS]      rows of train.npz, 3000 if not given; test.npz has a quarter of that

Arrays are what BERT takes: input_ids and attention_mask i64 [rows, 16], labels i64 [rows].  A `not`
turns what stands behind it, so that counting words does not do.
"""

import sys

import numpy as np

GOOD = "good great fine lovely superb fresh quick kind".split()
BAD = "bad awful poor stale slow rude dull bland".split()
THINGS = "food service room soup waiter place music view bread wine".split()
OTHERS = "[PAD] [CLS] [SEP] the was not but and really rather very today we found a it".split()
WORDS = OTHERS + GOOD + BAD + THINGS
NUMBER = {word: i for i, word in enumerate(WORDS)}
LENGTH = 16


def review(rng):
    """Words and the label: of two opinions the one behind `but` counts."""
    praise, turned = rng.integers(0, 2, 2), rng.integers(0, 2, 2)
    words = []
    for i in range(1 + rng.integers(0, 2)):
        said = rng.choice(GOOD if praise[i] != turned[i] else BAD)
        words += ["but"] * (i > 0) + ["the", rng.choice(THINGS), "was"] + ["not"] * int(turned[i])
        words += [rng.choice(["really", "rather", "very"])] * int(rng.integers(0, 2)) + [said]
        label = praise[i]
    return ["[CLS]"] + words + ["[SEP]"], label


def write(path, rows, seed):
    rng = np.random.default_rng(seed)
    ids, mask, labels = (
        np.zeros((rows, LENGTH), np.int64),
        np.zeros((rows, LENGTH), np.int64),
        np.zeros(rows, np.int64),
    )
    for i in range(rows):
        words, labels[i] = review(rng)
        ids[i, : len(words)] = [NUMBER[word] for word in words]
        mask[i, : len(words)] = 1
    np.savez(path, input_ids=ids, attention_mask=mask, labels=labels)


def main():
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 3000
    write("train.npz", rows, 0)
    write("test.npz", rows // 4, 1)


if __name__ == "__main__":
    main()
