"""What the end-to-end tests share: running ckc and ckrun, reading what they write."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "runtime"))
import measure

MODELS = os.path.join(HERE, "..", "models")
TOOLS = os.path.join(HERE, "..", "tools")
SAMPLE = os.path.join(HERE, "..", "..", "samples", "chargpt", "chargpt.onnx")
ERRORS = re.compile(r"smallest budget that works: (\d+) B")


def option(flag, default):
    """The value of FLAG=VALUE, or of FLAG VALUE, on the command line, which loses it."""
    for at, word in enumerate(sys.argv):
        if word == flag:
            value = sys.argv[at + 1]
            del sys.argv[at : at + 2]
            return value
        if word.startswith(flag + "="):
            del sys.argv[at]
            return word[len(flag) + 1 :]
    return default


class Bench:
    """ckc, ckrun and a folder that is gone at the end; counts what was checked."""

    def __init__(self):
        if len(sys.argv) < 3:
            sys.exit(f"usage: {sys.argv[0]} CKC CKRUN [MODEL...]")
        self.ckc_path, self.ckrun_path = (os.path.abspath(x) for x in sys.argv[1:3])
        self.measure_path = os.path.join(os.path.dirname(self.ckrun_path), "measure")
        self.ref_path = os.path.join(os.path.dirname(self.ckc_path), "ref_model")
        self.names = sys.argv[3:]
        self.work = tempfile.mkdtemp(prefix="ckc-test-")
        self.passed, self.failed = 0, 0
        self.gpu = False

    def path(self, name):
        return os.path.join(self.work, name)

    def run(self, argv, env=None, timeout=300):
        return subprocess.run(
            [str(a) for a in argv],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            env={**os.environ, **(env or {})},
            timeout=timeout,
            cwd=self.work,
            stdin=subprocess.DEVNULL,
        )

    def ckc(self, *args, **kw):
        # a plain number of a few bytes is refused
        units = ["B" if before == "--memory-budget" else "" for before in ("", *args)]
        args = [f"{arg}{unit}" if isinstance(arg, int) else arg for arg, unit in zip(args, units)]
        done = self.run([self.ckc_path, *args], **kw)
        # a wrong bound costs a user nothing but the bound; here it is a fault
        if "less than its lower bound" in done.stderr:
            self.check(False, f"{args}: {done.stderr.strip()[:300]}")
        return done

    def ckrun(self, *args, **kw):
        return self.run([self.ckrun_path, *args], **kw)

    def check(self, ok, what):
        if ok:
            self.passed += 1
        else:
            self.failed += 1
            print(f"FAIL {what}", flush=True)
        return bool(ok)

    def must(self, done, what):
        """The command ended with status 0."""
        return self.check(
            done.returncode == 0, f"{what}: status {done.returncode}: {done.stderr.strip()[-600:]}"
        )

    def peak(self, peak, plan, what):
        """A measured peak is the planned one."""
        s, scratch = plan["summary"], unwritten(plan)
        least = s["peak_bytes"] if scratch is None else s["resident_bytes"] + scratch
        self.check(
            least <= peak <= s["peak_bytes"],
            f"{what}: measured peak {peak}, planned {s['peak_bytes']}",
        )

    def measured(self, so, inputs, plan, what):
        """A step keeps to the bytes planned, as seen from outside, where memory is the
        process's."""
        if self.gpu:
            return
        for text in measure.complaints(
            measure.measure(self.measure_path, so, inputs), unwritten(plan)
        ):
            self.check(False, f"{what}: {text}")
        self.passed += 1

    def finish(self):
        shutil.rmtree(self.work, ignore_errors=True)
        print(f"{self.passed} passed, {self.failed} failed")
        sys.exit(1 if self.failed else 0)


def model_flags(stem, batches=1):
    """Flags for ckc, for so many times the samples, and the model's own description."""
    with open(stem + ".json") as f:
        meta = json.load(f)
    dims = meta.get("dims", {})
    if batches > 1:
        dims["batch"] *= batches
    flags = [x for dim, size in dims.items() for x in ("--dim", f"{dim}={size}")]
    loss = meta["loss"]
    flags += [
        "--loss",
        loss
        if isinstance(loss, str)
        else f"{loss['kind']}:{loss.get('logits') or loss.get('output')}",
    ]
    return flags, meta


def unwritten(plan):
    """Where workspace begins that alone reaches the arena's end: it is for the most threads, which
    need not be there.  Else None."""
    end = plan["summary"]["arena_bytes"]
    top = [
        t
        for t in plan["tensors"]
        if not t["resident"] and t["alias_of"] is None and t["offset"] + t["bytes"] > end - 64
    ]
    return (
        min(t["offset"] for t in top)
        if top and all(t["kind"] == "workspace" for t in top)
        else None
    )


def losses(path):
    with open(path) as f:
        return [json.loads(line)["loss"] for line in f if '"loss"' in line]


def log_rows(path):
    with open(path) as f:
        return [json.loads(line) for line in f if line.strip()]


def content(path):
    with open(path, "rb") as f:
        return f.read()


def tensors(path):
    """{name: (type, shape, bytes)} of a safetensors file."""
    raw = content(path)
    data = 8 + int.from_bytes(raw[:8], "little")
    return {
        name: (
            t["dtype"],
            t["shape"],
            raw[data + t["data_offsets"][0] : data + t["data_offsets"][1]],
        )
        for name, t in json.loads(raw[8:data]).items()
        if name != "__metadata__"
    }


def plan(path):
    with open(path) as f:
        return json.load(f)
