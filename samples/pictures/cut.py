#!/usr/bin/env python3
"""Cuts a picture out of a page of `ckc --report` or `ckrun report`: a file of its own, with the
page's colours.

cut.py PAGE.html NUMBER OUT.svg     NUMBER counts the page's pictures, from 1
"""

import re
import sys


def main():
    page, number, out = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    with open(page, encoding="utf-8") as f:
        text = f.read()
    pictures = re.findall(r"<svg.*?</svg>", text, re.S)
    if not 1 <= number <= len(pictures):
        sys.exit(f"{page} has {len(pictures)} pictures, no number {number}")
    style = re.search(r"<style>.*?</style>", text, re.S)
    picture = pictures[number - 1]
    if "xmlns=" not in picture[: picture.index(">")]:
        picture = picture.replace(
            "<svg", '<svg xmlns="http://www.w3.org/2000/svg" font-family="sans-serif"', 1
        )
    if style:
        inside = picture.index(">") + 1
        picture = picture[:inside] + "\n" + style.group() + picture[inside:]
    with open(out, "w", encoding="utf-8") as f:
        f.write(picture + "\n")


if __name__ == "__main__":
    main()
