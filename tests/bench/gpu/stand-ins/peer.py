#!/usr/bin/env python3
"""In the place of ../peer.py where there is neither a GPU nor PyTorch: takes its options, answers
in its form, trains nothing.  CKR_FAKE_PEER="no memory": PyTorch has too little of it."""

import json
import os
import sys

for folder in os.environ.get("LD_LIBRARY_PATH", "").split(":"):
    if os.path.exists(folder + "/../bundle.json") and folder.endswith("/lib"):
        sys.exit(f"would load libraries of {folder}")
if os.environ.get("CKR_FAKE_PEER") == "no memory":
    print(json.dumps({"out_of_memory": "an allocation of 8 GiB failed"}))
    sys.exit(0)
sys.argv[1:] = [x for x in sys.argv[1:] if x != "--pad"]
given = dict(zip(sys.argv[1::2], sys.argv[2::2]))
for name in ("--layers", "--hidden", "--heads", "--vocab", "--batch", "--seq", "--tokens"):
    if name not in given:
        sys.exit(f"{name} is missing")
if not os.path.exists(given["--tokens"]):
    sys.exit(f"{given['--tokens']}: no such file")
print(
    json.dumps(
        {
            "step_seconds": [1.0] * int(given.get("--blocks", 3)),
            "peak_bytes": 0,
            "reserved_bytes": 0,
            "torch": "stand-in",
            "cudnn": 0,
            "losses": [0.0] * 10,
        }
    )
)
