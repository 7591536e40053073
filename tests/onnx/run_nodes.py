#!/usr/bin/env python3
"""Runs ONNX's backend node tests through generated code: ckc --forward-only, then ckrun --outputs.

    run_nodes.py --ckc CKC --ckrun CKRUN [--data DIR] [--claims FILE [--bless]] [--least N]
    [--verbose] [GLOB...]

A test is a folder with model.onnx and test_data_set_*/{input,output}_N.pb.  DIR holds such folders;
without it, those of Debian's libonnx-testdata are run.  Inputs that ckc says it must know when it
compiles (shapes, axes, ...) are given with --const.  A test counts as
  passed       every output has the expected type, shape and numbers (ONNX's own tolerances: rtol
  1e-3, atol 1e-7) not claimed  ckc refused the model with a message; they are listed by reason
  failed       anything else; also what is not claimed although FILE, one name a line, says that it
  passes
--bless adds to FILE what passes and is not in it.
Exit status: 0 nothing failed (and N passed), 1 otherwise, 77 there are no tests.
"""

import argparse
import collections
import concurrent.futures
import fnmatch
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

import numpy as np

import protobuf

DEBIAN = "/usr/share/libonnx-testdata/data/node"

# Tests that cannot be passed, or must not be.
RANDOM = "random numbers of another generator"
DISPUTED = "align_corners divides by a fractional extent; PyTorch and ONNX Runtime, whose models are trained, divide by the real one"
WHOLE = "indices count over what would do, not over output_shape; PyTorch and ONNX Runtime, whose models are trained, count over the output"
NOT_OURS = {
    "test_bernoulli*": RANDOM,
    "test_training_dropout": RANDOM,
    "test_training_dropout_default": RANDOM,
    "test_training_dropout_mask": RANDOM,
    "test_training_dropout_default_mask": RANDOM,
    "test_resize_downsample_scales_cubic_align_corners": DISPUTED,
    "test_resize_downsample_scales_linear_align_corners": DISPUTED,
    "test_maxunpool_export_with_output_shape": WHOLE,
}

# How ckc says that it must know an input when it compiles.
NEEDED = re.compile(r"depends on the contents of '([^']*)'")


def save(path, arrays):
    """A safetensors file of {name: (type, array)}."""
    head, at, parts = {}, 0, []
    for name, (kind, array) in arrays.items():
        raw = np.ascontiguousarray(array).tobytes()
        head[name] = {
            "dtype": kind,
            "shape": list(array.shape),
            "data_offsets": [at, at + len(raw)],
        }
        at += len(raw)
        parts.append(raw)
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(len(text).to_bytes(8, "little") + text + b"".join(parts))


def restore(path):
    """{name: (type, shape, bytes)} of a safetensors file."""
    with open(path, "rb") as f:
        raw = f.read()
    n = int.from_bytes(raw[:8], "little")
    return {
        name: (
            t["dtype"],
            tuple(t["shape"]),
            raw[8 + n + t["data_offsets"][0] : 8 + n + t["data_offsets"][1]],
        )
        for name, t in json.loads(raw[8 : 8 + n]).items()
        if name != "__metadata__"
    }


def widen(kind, array):
    if kind == "BF16":
        return (array.astype(np.uint32) << 16).view(np.float32)
    return array


def differ(name, kind, want, got):
    """What is wrong with an output, or None."""
    if name not in got:
        return f"output '{name}' was not written"
    gkind, shape, raw = got[name]
    if gkind != kind or shape != want.shape:
        return f"output '{name}' is {gkind}{list(shape)}, expected {kind}{list(want.shape)}"
    have = widen(kind, np.frombuffer(raw, want.dtype).reshape(shape))
    want = widen(kind, want)
    if want.dtype.kind != "f":
        bad = have != want
    else:
        rtol = 1e-2 if kind == "BF16" else 1e-3
        bad = ~np.isclose(
            have.astype(np.float64), want.astype(np.float64), rtol=rtol, atol=1e-7, equal_nan=True
        )
    if not bad.any():
        return None
    at = np.argwhere(bad)[0]
    return f"output '{name}'{list(map(int, at))} is {have[tuple(at)]}, expected {want[tuple(at)]}; {int(bad.sum())} of {bad.size} differ"


def command(argv, cwd):
    return subprocess.run(
        argv,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        timeout=120,
    )


class Test:
    def __init__(self, folder, options):
        self.name, self.folder, self.o = os.path.basename(folder), folder, options

    def refused(self, done):
        """How a command that did not succeed counts."""
        lines = (
            [line for line in done.stderr.splitlines() if "error" in line or "internal" in line]
            or done.stderr.splitlines()
            or [""]
        )
        if done.returncode != 1 or "internal" in done.stderr or "C compiler" in done.stderr:
            return "failed", f"status {done.returncode}: {lines[0][:300]}"
        return "not claimed", lines[0]

    def run(self):
        for pattern, why in NOT_OURS.items():
            if fnmatch.fnmatch(self.name, pattern):
                return "not claimed", why
        work = tempfile.mkdtemp(prefix="ckc-node-")
        try:
            return self.run_in(work)
        except protobuf.Unsupported as e:
            return "not claimed", str(e)
        except subprocess.TimeoutExpired:
            return "failed", "takes longer than two minutes"
        finally:
            shutil.rmtree(work, ignore_errors=True)

    def run_in(self, work):
        model = protobuf.Model(os.path.join(self.folder, "model.onnx"))
        if not all(v.tensor for v in model.inputs + model.outputs):
            return "not claimed", "sequences, optionals or maps as inputs or outputs"
        for data in sorted(glob.glob(os.path.join(self.folder, "test_data_set_*"))):
            verdict = self.run_data(work, model, data)
            if verdict[0] != "passed":
                return verdict
        return "passed", ""

    def compile(self, work, inputs, static):
        """Run ckc with the inputs in static as constants; also what is left to feed."""
        flags, fed = [], {}
        for name, (path, kind, array, fixed) in inputs.items():
            if name in static:
                flags += ["--const", f"{name}={path}"]
                continue
            if not fixed and array.ndim:
                flags += ["--shape", f"{name}=" + "x".join(map(str, array.shape))]
            fed[name] = (kind, array)
        argv = [
            self.o.ckc,
            os.path.join(self.folder, "model.onnx"),
            "--forward-only",
            "--quiet",
            "-o",
            "model.so",
            *flags,
            *self.o.flag,
        ]
        return command(argv, work), fed

    def run_data(self, work, model, data):
        inputs = {}
        for i, value in enumerate(model.inputs):
            path = os.path.join(data, f"input_{i}.pb")
            if os.path.exists(path):
                inputs[value.name] = (
                    path,
                    *protobuf.load(path, value),
                    value.shape is not None and None not in value.shape,
                )
        expected = {
            v.name: protobuf.load(os.path.join(data, f"output_{i}.pb"), v)
            for i, v in enumerate(model.outputs)
        }
        static = set()
        while True:
            done, fed = self.compile(work, inputs, static)
            needed = (
                {name for name in NEEDED.findall(done.stderr) if name in inputs} - static
                if done.returncode == 1
                else set()
            )
            if not needed:
                break
            static |= needed
        if done.returncode:
            return self.refused(done)
        save(os.path.join(work, "inputs.safetensors"), fed)
        done = command(
            [
                self.o.ckrun,
                "model.so",
                "--steps",
                "1",
                "--quiet",
                "--inputs",
                "inputs.safetensors",
                "--outputs",
                "outputs.safetensors",
            ],
            work,
        )
        if done.returncode:
            return "failed", f"ckrun: status {done.returncode}: {done.stderr.strip()[:300]}"
        got = restore(os.path.join(work, "outputs.safetensors"))
        for name, (kind, array) in expected.items():
            wrong = differ(name, kind, array, got)
            if wrong:
                return "failed", wrong
        return "passed", ""


def reason(text):
    """A message without what differs from model to model."""
    text = re.sub(r"^ckc: [^ ]*model.onnx: ", "", text)
    text = re.sub(r"node '[^']*' *|: \d+ nodes?, '.*?'.*$", "", text)
    return re.sub(r"'[^']*'", "'...'", text)[:120]


def read_claims(path):
    if not path:
        return set()
    with open(path) as f:
        return set(f.read().split())


def hold(claims, name, verdict, text):
    """The verdict, with what was given up counted as a failure."""
    if verdict == "not claimed" and name in claims:
        return "failed", f"passed once, now refused: {text}"
    return verdict, text


def bless(path, claims, passed):
    """New ones belong into the list, so that they stay."""
    with open(path, "w") as f:
        f.writelines(name + "\n" for name in sorted(claims | passed))


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--ckc", required=True, type=os.path.abspath)
    p.add_argument("--ckrun", required=True, type=os.path.abspath)
    p.add_argument("--data", default=DEBIAN)
    p.add_argument("--claims", metavar="FILE", help="names of tests that must pass where they are")
    p.add_argument("--bless", action="store_true", help="add to FILE")
    p.add_argument("--least", type=int, default=0, help="how many must pass")
    p.add_argument("--jobs", type=int, default=os.cpu_count())
    p.add_argument("--flag", action="append", default=[], help="further argument for ckc")
    p.add_argument("--verbose", action="store_true", help="name every test")
    p.add_argument("glob", nargs="*", default=["*"])
    o = p.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "2")
    folders = sorted(os.path.dirname(f) for f in glob.glob(os.path.join(o.data, "*", "model.onnx")))
    folders = [f for f in folders if any(fnmatch.fnmatch(os.path.basename(f), g) for g in o.glob)]
    if not folders:
        print(f"no tests in {o.data}; apt-get install libonnx-testdata")
        return 77
    tests, count, reasons = (
        [Test(f, o) for f in folders],
        collections.Counter(),
        collections.defaultdict(list),
    )
    claims, passed = read_claims(o.claims), set()
    with concurrent.futures.ThreadPoolExecutor(o.jobs) as pool:
        for test, result in zip(tests, pool.map(Test.run, tests)):
            verdict, text = hold(claims, test.name, *result)
            count[verdict] += 1
            if verdict == "passed":
                passed.add(test.name)
            if verdict == "not claimed":
                reasons[reason(text)].append(test.name)
            if verdict == "failed" or o.verbose:
                print(f"{verdict}: {test.name} {text}", flush=True)
    for text, names in sorted(reasons.items(), key=lambda r: -len(r[1])):
        print(
            f"not claimed: {len(names)}x {text} ({', '.join(names[:3])}{', ...' if len(names) > 3 else ''})"
        )
    print(
        f"{count['passed']} passed, {count['failed']} failed, {count['not claimed']} not claimed, of {len(tests)}"
    )
    if o.claims and passed - claims:
        print(
            f"{len(passed - claims)} pass that {o.claims} does not list"
            + ("" if o.bless else "; --bless adds them")
        )
        if o.bless:
            bless(o.claims, claims, passed)
    return 1 if count["failed"] or count["passed"] < o.least else 0


if __name__ == "__main__":
    sys.exit(main())
