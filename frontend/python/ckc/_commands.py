"""The commands ckc and ckrun of an installed package."""

import os
import sys

from . import _lib


def _run(name):
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", name)
    message = _lib.missing(path)
    if message:
        sys.exit(f"{name}: {message}")
    os.execv(path, [path, *sys.argv[1:]])


def ckc():
    _run("ckc")


def ckrun():
    _run("ckrun")
