#!/usr/bin/env python3
"""Starts a command as so many processes that know of each other what torchrun tells them.

    spread.py N COMMAND...

Exit status: the largest of theirs.
"""

import os
import socket
import subprocess
import sys


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def start(n, argv, only=None, env=None, **kw):
    """The processes; only: those of these ranks."""
    common = {
        "WORLD_SIZE": n,
        "LOCAL_WORLD_SIZE": n,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": free_port(),
        **(env or {}),
    }
    out = []
    for r in only if only is not None else range(n):
        mine = {k: str(v) for k, v in {**common, "RANK": r, "LOCAL_RANK": r}.items()}
        out.append(
            subprocess.Popen(
                [str(x) for x in argv], env={**os.environ, **mine}, stdin=subprocess.DEVNULL, **kw
            )
        )
    return out


def run(n, argv, only=None, env=None, **kw):
    """Start them, and wait: what all of them say as one, and the largest exit status."""
    some = start(
        n, argv, only, env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **kw
    )
    told = [p.communicate(timeout=300) for p in some]
    status = max(abs(p.returncode) for p in some)
    return subprocess.CompletedProcess(argv, status, *("".join(x) for x in zip(*told)))


if __name__ == "__main__":
    sys.exit(max(abs(p.wait()) for p in start(int(sys.argv[1]), sys.argv[2:])))
