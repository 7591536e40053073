#!/usr/bin/env python3
"""Micro-batches of a step, interpreted in double precision, beside the whole batch in closed form.

    check_forms.py REF_MODEL

Losses of tests/tools/lossforms.py for 1, 2, 3, 4 and 8 micro-batches: loss and gradients within
1e-6.  Exit status 77 without numpy.
"""

import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tools"))
try:
    import numpy as np
    import compare
    import lossforms as forms
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(77)

WAYS = [(1, []), (2, []), (3, []), (4, []), (8, []), (4, ["--stop-after=place"])]


def run(tool, work, kinds, n, flags, x, w):
    with open(os.path.join(work, "m.ck"), "w") as f:
        f.write(forms.graph(kinds, forms.ROWS // n))
    with open(os.path.join(work, "setup"), "w") as f:
        f.write("steps 1\nlr 0\n")
        for i, (name, v) in enumerate({**x, **w}.items()):
            v.tofile(os.path.join(work, f"in{i}"))
            f.write(f"input {name} {work}/in{i}\n")
    done = subprocess.run(
        [
            tool,
            work,
            os.path.join(work, "m.ck"),
            "--loss",
            "loss",
            "--optimizer",
            "sgd",
            "--grad-accum",
            str(n),
            "--passes=bind,fold,canon,loss,micro,replicate,shard,autodiff,optim"
            if "--stop" not in str(flags)
            else "--quiet",
            *flags,
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode:
        return done.stdout[-800:], None
    with open(os.path.join(work, "log.jsonl")) as f:
        return json.loads(f.readline())["loss"], compare.load(
            os.path.join(work, "grads.safetensors")
        )


def main():
    kinds, faults = list(forms.TEXT), 0
    w = forms.weights(kinds)
    for half in False, True:
        x = forms.batch(half)
        want = sum(forms.loss(k, x, w[f"w.{k}"]) for k in kinds)
        right = {k: forms.gradient(k, x, w[f"w.{k}"]) for k in kinds}
        for n, flags in WAYS:
            with tempfile.TemporaryDirectory() as work:
                loss, got = run(sys.argv[1], work, kinds, n, flags, x, w)
            what = f"{n} micro-batches {flags}, half {half:d}"
            wrong = (
                []
                if got and abs(loss - want) <= 1e-6 * abs(want)
                else [f"loss {loss}, expected {want}"]
            )
            for k in kinds if got else []:
                far = np.abs(np.float64(got[f"w.{k}"]) - right[k]).max() / np.abs(right[k]).max()
                if not far <= 1e-6:
                    wrong.append(f"gradient of '{k}' is off by {far:.2g} of the largest")
            faults += len(wrong)
            print(f"{'FAIL' if wrong else 'ok  '} {what} {'; '.join(wrong)}", flush=True)
    return faults > 0


if __name__ == "__main__":
    sys.exit(main())
