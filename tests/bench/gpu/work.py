"""What the parts of the benchmark share: commands, models and their runs, and items that are
carried out and told of."""

import concurrent.futures
import hashlib
import json
import os
import random
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.abspath(os.path.join(HERE, "..", "..", ".."))
MODELS = os.path.join(ROOT, "tests", "models")
ALIGN = 256
STAND_INS = os.path.join(HERE, "stand-ins")
EMULATED_NVCC = os.path.join(ROOT, "tests", "cuda", "nvcc")
for folder in ("e2e", "tools", "cuda", "ref"):
    sys.path.append(os.path.join(ROOT, "tests", folder))

import ck  # noqa: E402
import weights  # noqa: E402


class Wrong(Exception):
    """A check that failed."""


class Skipped(Exception):
    """What this machine cannot do, and why."""


class Work:
    """Folders, settings and commands of one part."""

    # Files of a bundle: what was measured where it was made; the rule of weights.
    FACTS, RULE = "bundle.json", "weights.json"

    def __init__(self, options):
        self.o = options
        self.build = options.build
        self.models = options.work
        os.makedirs(self.models, exist_ok=True)

    def path(self, name):
        return os.path.join(self.models, name)

    def bundled(self):
        """{"toolkit": [major, minor], "losses": {model: the CPU's}}"""
        return ck.plan(self.path(self.FACTS))

    def make_weights(self):
        """Weights that a bundle has as a rule, unless they are there."""
        rule = ck.plan(self.path(self.RULE)) if os.path.exists(self.path(self.RULE)) else None
        if not rule or os.path.exists(self.path(rule["models"][0] + ".safetensors")):
            return
        first, *others = (self.path(name + ".safetensors") for name in rule["models"])
        weights.write(first, rule["tensors"])
        for path in others:
            os.symlink(first, path)

    def tool(self, name):
        return os.path.join(self.build, name)

    def call(self, *argv, timeout=200, **env):
        """stdout, stderr and status; Wrong if it does not end in time or cannot be started."""
        try:
            return subprocess.run(
                [str(a) for a in argv],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                stdin=subprocess.DEVNULL,
                text=True,
                errors="replace",
                timeout=timeout,
                env={**os.environ, **env},
                cwd=self.models,
            )
        except subprocess.TimeoutExpired:
            raise Wrong(f"{os.path.basename(str(argv[0]))}: no end after {timeout} s") from None
        except OSError as e:
            raise Wrong(f"{argv[0]}: {e.strerror}") from None

    def must(self, *argv, **kw):
        done = self.call(*argv, **kw)
        if done.returncode:
            raise Wrong(
                f"{os.path.basename(str(argv[0]))}: status {done.returncode}: {said(done.stderr or done.stdout)}"
            )
        return done

    def emulation(self):
        """Environment of runs on a GPU that is the host."""
        return {
            "LD_LIBRARY_PATH": os.path.join(self.build, "gpu")
            + ":"
            + os.environ.get("LD_LIBRARY_PATH", "")
        }

    def target(self, nvcc=None):
        """ckc's flags for the device that is measured."""
        if self.o.emulated:
            return ["--target", "cuda", "--nvcc", EMULATED_NVCC]
        return ["--target", "cuda", "--arch", self.o.arch, "--nvcc", nvcc or self.o.nvcc]

    def compile(self, model, so, *flags, target=None, timeout=400):
        """The plan of a library for the device, or for another target; model: a file, or a function
        that makes it.  A bundle has libraries, and none is compiled."""
        plan = so + ".json"
        if self.o.bundle and os.path.exists(plan):
            return ck.plan(plan)
        if self.o.bundle:
            raise Skipped("not in the bundle")
        self.must(
            self.tool("ckc"),
            model() if callable(model) else model,
            "-o",
            so,
            "--json",
            plan,
            "--quiet",
            *flags,
            *(self.target() if target is None else target),
            timeout=timeout,
        )
        return ck.plan(plan)

    def onnx(self, gpt):
        """The model as a file, written once."""
        path = self.path(gpt.name + ".onnx")
        if not os.path.exists(path):
            self.must(
                self.tool("gpt"),
                *gpt.shape,
                "--seq",
                gpt.seq,
                "--batch",
                gpt.batch,
                "--vocab",
                gpt.vocab,
                "--weights",
                "-o",
                path,
            )
        return path

    def library(self, gpt, *flags):
        """(library, plan) of a model, compiled anew unless the part `build` did."""
        so = self.path(gpt.name + ".so")
        if not os.path.exists(so) or flags:
            return so, self.compile(self.onnx(gpt), so, "--loss", "loss", *gpt.flags, *flags)
        return so, ck.plan(so + ".json")

    def tokens(self, vocab):
        """A stream of random tokens."""
        path = self.path(f"tokens-{vocab}")
        if not os.path.exists(path):
            rng = random.Random(0)
            data = b"".join(
                rng.randrange(vocab).to_bytes(2, "little")
                for _ in range(20000 if vocab < 1000 else 400000)
            )
            with open(path, "wb") as f:
                f.write(data)
        return path

    def feed(self, gpt):
        return ["--data", self.tokens(gpt.vocab), "--tokens", "u16"]

    def train(self, so, tag, *flags, steps=3, **env):
        """{"losses", "gradients", "parameters"}: bytes of a run; its log's rows."""
        log, grads, save = (self.path(f"{tag}.{x}") for x in ("log", "grads", "save"))
        self.must(
            self.tool("ckrun"),
            so,
            *flags,
            "--steps",
            steps,
            "--quiet",
            "--log",
            log,
            "--grads",
            grads,
            "--save",
            save,
            **env,
        )
        return {
            "losses": ck.losses(log),
            "gradients": ck.content(grads),
            "parameters": ck.content(save),
        }, ck.log_rows(log)


def said(text):
    return " | ".join(text.strip().splitlines()[-3:])[-400:]


def as_planned(measured, plan):
    """A measured peak is the planned one; scratch at the arena's end may be written in part."""
    planned, scratch = plan["summary"]["peak_bytes"], ck.unwritten(plan)
    least = planned if scratch is None else plan["summary"]["resident_bytes"] + scratch
    # a plan rounds the last tensor up to an address's multiple
    if not least - ALIGN < measured <= planned:
        raise Wrong(f"measured peak {measured} B, planned {planned}")


def same(a, b, what):
    """Two results of train() are the same bits."""
    for part in a:
        if a[part] != b[part]:
            raise Wrong(f"{what}: other {part}")


def digest(*parts):
    h = hashlib.sha256()
    for part in parts:
        h.update(part if isinstance(part, bytes) else json.dumps(part).encode())
    return h.hexdigest()[:16]


def table_row(row):
    """A row as Markdown."""
    cells = (row["part"], row["item"], row["verdict"], f"{row['seconds']:.1f}", row["text"])
    return "| " + " | ".join(str(x).replace("|", "/").replace("\n", " ") for x in cells) + " |\n"


class Rows:
    """What a part found, a line of JSON and a row of the table for each item, so that nothing is
    lost where a part is cut."""

    def __init__(self, path, table, part):
        self.file = open(path, "a", encoding="utf-8")
        self.table = open(table, "a", encoding="utf-8")
        self.part = part

    def put(self, **row):
        row = {"part": self.part, **row}
        self.file.write(json.dumps(row) + "\n")
        self.file.flush()
        if "item" in row:
            self.table.write(table_row(row))
            self.table.flush()

    def carry_out(self, item, function):
        start, numbers = time.monotonic(), {}
        try:
            text, verdict = function(numbers), "ok"
        except Wrong as e:
            text, verdict = str(e), "fail"
        except Skipped as e:
            text, verdict = str(e), "skip"
        except Exception as e:  # a fault of the benchmark's own is a check that failed
            text, verdict = f"{type(e).__name__}: {e}", "fail"
        seconds = time.monotonic() - start
        self.put(
            item=item, verdict=verdict, text=text or "", seconds=round(seconds, 2), numbers=numbers
        )
        print(f"{verdict:4} {seconds:6.1f} s  {self.part}: {item}: {text or ''}", flush=True)

    def carry_out_all(self, items, jobs=1):
        """items: (name, function of a dict that takes numbers, returns text).  All are named first:
        what is cut then is known."""
        self.put(planned=[name for name, _ in items])
        if jobs == 1:
            for name, function in items:
                self.carry_out(name, function)
            return
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            for done in [pool.submit(self.carry_out, *item) for item in items]:
                done.result()
