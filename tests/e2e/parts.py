#!/usr/bin/env python3
"""ckrun --save DIR/: checkpoints with a file for each process.

    parts.py CKC CKRUN [PART...]

Parts joined by a reader written from the format's description alone hold the tensors of the file
that --save FILE writes, and ckrun merge writes that file, byte for byte: for ranks in one process
and under mpirun, several optimizers, types, adapters, averages and the sharding of --zero.  Runs of
any other number of ranks load them and go on with the bits of a run that loads the file.  Each
element is in one part.  Saves replace older ones, --keep and --save-best keep theirs, and
--save-async writes the same.  Missing, doubled, damaged and foreign parts are named, and headers
that contradict themselves are refused.
"""

import itertools
import json
import os
import random
import re
import shutil
import struct
import sys
import time

import numpy as np

import ck

sys.path.insert(0, ck.TOOLS)
import compare

GPT = (ck.SAMPLE, "--dim", "batch=1", "--dim", "seq=16")
MPIRUN = ("mpirun", "--allow-run-as-root", "--oversubscribe")
STEPS = 3
# Ranks of a library, and its options.
SHAPES = {
    "one": (1, ()),
    "tp2": (2, ("--tp", 2, "--sp")),
    "tp4": (4, ("--tp", 4)),
    "tp3": (3, ("--tp", 3)),  # shards of different sizes
    "grid": (6, ("--tp", 2, "--dp", 3, "--zero", 3)),
    "group": (4, ("--dp", 4, "--zero", 1, "--zero-group", 2)),
}
KINDS = {
    "": (),
    "factored": ("--optimizer", "adafactor"),
    "bf16": ("--dtype", "bf16"),
    "f16": ("--dtype", "f16", "--ema"),
    "nf4": ("--lora", "*.qkv.*=4", "--dtype", "bf16", "--frozen-dtype", "nf4"),
}


def shapes_of(kind):
    """Shapes with ranks that a kind is tried in: blocks of 64 weights are not cut in four."""
    return ("group" if kind == "nf4" else "tp4", "grid") if kind else SHAPES


# ---- the format, from its description ----


def header(data):
    """(metadata, entries, where data begins) of a safetensors file."""
    begin = 8 + int.from_bytes(data[:8], "little")
    entries = json.loads(data[8:begin])
    return entries.pop("__metadata__"), entries, begin


def with_header(meta, entries, data):
    text = json.dumps({"__metadata__": meta, **entries}).encode()
    return len(text).to_bytes(8, "little") + text + data


def cut_of(text):
    """Shape of the whole, and indices of a part's elements in it."""
    shape, _, runs = text.partition(";")
    shape = [int(x) for x in shape.split(",") if x]
    at = []
    for run in runs.split(", ") if runs else ():
        first, length, stride, count = re.fullmatch(
            r" ?(\d+)\+(\d+)(?:/(\d+)\*(\d+))?", run
        ).groups()
        for i in range(int(count or 1)):
            begin = int(first) + i * int(stride or 0)
            at += range(begin, begin + int(length))
    return shape, sorted(at)


def digest(data):
    """The hash of complete.json."""

    def mixed(h, x):
        h = (h ^ x) * 0x9E3779B97F4A7C15 & (1 << 64) - 1
        return h ^ h >> 29

    h = 0xCBF29CE484222325
    for at in range(0, len(data), 1 << 20):
        block = data[at : at + (1 << 20)]
        tail = block[len(block) // 8 * 8 :]
        for (x,) in struct.iter_unpack("<Q", block[: len(block) - len(tail)]):
            h = mixed(h, x)
        h = mixed(h, int.from_bytes(tail, "little") + len(tail))
    return f"{h:016x}"


def index(folder):
    with open(os.path.join(folder, "complete.json")) as f:
        return json.load(f)


def part(folder, i):
    return os.path.join(folder, f"{i:05d}-{index(folder)['save']}.safetensors")


def joined(folder):
    """{name: (type, shape, bytes)} of the whole tensors; fails unless each element is in one
    part."""
    whole = {}
    for i, mark in enumerate(index(folder)["parts"]):
        data = ck.content(part(folder, i))
        meta, entries, begin = header(data)
        assert mark == {
            "bytes": len(data),
            "header": digest(data[:begin]),
            "data": digest(data[begin:]),
        }
        for name, e in entries.items():
            shape, at = e["shape"], None
            if "ckc.cut." + name in meta:
                shape, at = cut_of(meta["ckc.cut." + name])
                assert e["shape"] == [len(at)]
            size = np.dtype(compare.TYPES[e["dtype"]]).itemsize
            lo, hi = (begin + x for x in e["data_offsets"])
            raw = np.frombuffer(data[lo:hi], "u1").reshape(-1, size)
            count = int(np.prod(shape))
            kind, to, seen = whole.setdefault(
                name, ((e["dtype"], shape), np.zeros((count, size), "u1"), np.zeros(count, int))
            )
            assert kind == (e["dtype"], shape)
            at = slice(None) if at is None else at
            to[at] = raw
            seen[at] += 1
    assert all((seen == 1).all() for _, _, seen in whole.values())
    return {name: (*kind, to.tobytes()) for name, (kind, to, _) in whole.items()}


class Parts(ck.Bench):
    def __init__(self):
        super().__init__()
        self.text, self.built = self.path("text"), {}
        with open(self.text, "wb") as f:
            f.write(bytes(random.Random(1).choices(b"abcdefgh \n", k=20000)))

    # ---- runs ----

    def library(self, shape, kind=""):
        name = f"{shape}{kind}"
        if name not in self.built:
            so = self.path(name + ".so")
            done = self.ckc(*GPT, *SHAPES[shape][1], *KINDS[kind], "-o", so)
            self.built[name] = so if self.must(done, name) else sys.exit(1)
        return self.built[name]

    def train(self, shape, *more, kind="", processes=True, env=None, verb=()):
        n = SHAPES[shape][0]
        data = ["--data", self.text, "--tokens", "bytes", "--threads", 1]
        run = [self.ckrun_path, *verb, self.library(shape, kind), *data, *more]
        if processes and n > 1:
            return self.run([*MPIRUN, "-n", n, *run], env=env)
        return self.run([*run, "--ranks", n] if n > 1 else run, env=env)

    def saved(self, shape, name, *more, **kw):
        """The folder of a run."""
        at = self.path(name)
        shutil.rmtree(at, ignore_errors=True)
        done = self.train(shape, "--steps", STEPS, "--save", at + "/", *more, **kw)
        self.must(done, f"{shape}: --save {name}/")
        return at

    def plain(self, shape, kind=""):
        at = self.path(f"{shape}{kind}.safetensors.save")
        if not os.path.exists(at):
            done = self.train(shape, "--steps", STEPS, "--save", at, kind=kind)
            self.must(done, f"{shape} {kind}: --save")
        return at

    def folder(self, name):
        """An empty one."""
        at = self.path(name)
        shutil.rmtree(at, ignore_errors=True)
        os.mkdir(at)
        return at

    def refused(self, done, what, *words):
        """One message that has the words."""
        told = re.findall("^ckrun: .*", done.stderr, re.M)
        self.check(
            done.returncode == 1
            and len(told) == 1
            and all(str(w) in told[0] for w in words)
            and "internal" not in told[0],
            f"{what}: status {done.returncode}, {done.stderr.strip()!r}, expected {words}",
        )

    def files(self, folder):
        return sorted(os.listdir(folder))

    # ---- what is written ----

    def same_as_file(self, folder, shape, kind, what):
        plain = self.plain(shape, kind)
        try:
            self.check(joined(folder) == ck.tensors(plain), f"{what}: other tensors")
        except AssertionError as e:
            self.check(False, f"{what}: parts do not make wholes: {e!r}")
        out = self.path("merged")
        self.must(self.ckrun("merge", folder, "-o", out), f"{what}: merge")
        self.check(ck.content(out) == ck.content(plain), f"{what}: the merged file differs")
        os.remove(out)

    def written(self):
        for shape, kind in ((s, k) for k in KINDS for s in shapes_of(k)):
            n = SHAPES[shape][0]
            for processes in (True, False) if n > 1 else (False,):
                what = f"{shape} {kind}, processes {processes}"
                at = self.saved(shape, "written", kind=kind, processes=processes)
                files = n if processes else 1
                expected = [*(f"{i:05d}-1.safetensors" for i in range(files)), "complete.json"]
                self.check(self.files(at) == expected, f"{what}: {self.files(at)}")
                self.check(index(at)["step"] == STEPS, f"{what}: step")
                self.same_as_file(at, shape, kind, what)
                if processes and kind != "nf4":  # one tensor of it is most
                    sizes = [x["bytes"] for x in index(at)["parts"]]
                    whole = os.path.getsize(self.plain(shape, kind))
                    self.check(
                        max(sizes) < 2 * whole / n,
                        f"{what}: parts of {sizes} bytes of {whole}",
                    )

    def loaded(self):
        """Every shape goes on with every other one's parts as with its file."""
        for kind in KINDS:
            for a, b in itertools.permutations({"one", *shapes_of(kind)}, 2):
                if not kind or b == "one" or a != "one":
                    self.crossed(a, b, kind)

    def crossed(self, a, b, kind):
        at = self.path(f"from-{a}{kind}")
        if not os.path.exists(at):
            self.saved(a, os.path.basename(at), kind=kind)
        ends = []
        for source in self.plain(a, kind), at:
            out, log = (os.path.join(self.folder("cross"), x) for x in ("save", "log"))
            done = self.train(
                b,
                *("--resume", source, "--steps", STEPS + 2, "--save", out, "--log", log),
                kind=kind,
            )
            self.must(done, f"{a} to {b} {kind}")
            ends.append((ck.content(out), ck.losses(log)))
        self.check(ends[0] == ends[1], f"{a} to {b} {kind}: other bits")

    def read(self):
        """--init, evaluation and averages read folders, too."""
        at = self.saved("grid", "read", kind="f16")
        for options in (("--init",), ("--resume",), ("--ema", "--init"), ("--ema", "--resume")):
            found = []
            for source in self.plain("grid", "f16"), at:
                done = self.train("one", *options, source, kind="f16", verb=["eval"])
                self.must(done, f"eval {options}")
                found.append(done.stdout.replace(source, ""))
            self.check(found[0] == found[1] and "loss" in found[0], f"eval {options}: {found}")

    # ---- replacing ----

    def replaced(self):
        """A save of other processes replaces all of the one before; the old one is read first."""
        at = self.saved("tp4", "again")
        for save, shape in enumerate(("tp2", "one", "grid", "one"), 2):
            step = STEPS + save
            done = self.train(shape, *("--resume", at, "--steps", step, "--save", at))
            self.must(done, f"again: {shape}")
            n = SHAPES[shape][0]
            expected = [*(f"{i:05d}-{save}.safetensors" for i in range(n)), "complete.json"]
            self.check(self.files(at) == expected, f"{shape} over another: {self.files(at)}")
            self.check(index(at)["step"] == step, f"{shape}: step")
        # what a killed run left
        left = [f"{at}/00000-99.safetensors", f"{at}/00007-3.safetensors.ckc-tmp0"]
        others = [f"{at}/notes.txt", f"{at}/00001-x.safetensors", f"{at}/1-1-1.safetensors"]
        for path in left + others:
            with open(path, "w"):
                pass
        done = self.train("one", "--resume", at, "--steps", 12, "--save", at)
        self.must(done, "over what is left")
        self.check(not any(map(os.path.exists, left)), f"left over: {self.files(at)}")
        self.check(all(map(os.path.exists, others)), f"deleted: {self.files(at)}")

    def kept(self):
        """--keep N, --save-best and --save-async have the steps that files have."""
        expected = {}
        for shape in "tp2", "one":
            for how in (), ("--save-async",):
                for form in "", "/":
                    at = self.folder("kept")
                    done = self.train(
                        shape,
                        *("--steps", 7, "--save", f"{at}/s{form}", "--save-every", 2, "--keep", 2),
                        *("--valid", self.text, "--valid-every", 3, "--save-best", f"{at}/b{form}"),
                        *how,
                    )
                    what = f"--keep, {shape} {how} {form!r}"
                    self.must(done, what)
                    found = {}
                    for name in self.files(at):
                        path = f"{at}/{name}"
                        if form:
                            out = self.path("kept.out")
                            self.must(self.ckrun("merge", path, "-o", out), f"{what}: {name}")
                            files = len(index(path)["parts"]) + 1
                            self.check(len(self.files(path)) == files, f"{what}: {name}")
                            path = out
                        found[name] = ck.content(path)
                    same = expected.setdefault(shape, found) == found
                    self.check(same, f"{what}: {sorted(found)}, {sorted(expected[shape])}")
            self.check(
                sorted(expected[shape]) == ["b", "s", "s.4", "s.6"],
                f"kept {expected[shape].keys()}",
            )

    # ---- faults ----

    def damaged(self, source, name, change):
        """A copy of the folder, changed."""
        at = self.path("damaged")
        shutil.rmtree(at, ignore_errors=True)
        shutil.copytree(source, at)
        change(at)
        return at

    def change_bytes(self, path, change):
        data = change(ck.content(path))
        with open(path, "wb") as f:
            f.write(data)

    def faulty(self):
        good = self.saved("tp4", "good")
        # of the same run but for its data
        other = self.saved("tp4", "other", "--lr", 0.5)
        names = [os.path.basename(part(good, i)) for i in range(4)]

        def flip(data):
            return data[:-5] + bytes([data[-5] ^ 4]) + data[-4:]

        def write(name, data):
            return lambda at: self.change_bytes(f"{at}/{name}", lambda _: data)

        cases = {
            "missing": (lambda at: os.remove(f"{at}/{names[2]}"), names[2], "missing", "copy"),
            "no index": (lambda at: os.remove(f"{at}/complete.json"), "complete.json", "--save"),
            "doubled": (
                lambda at: shutil.copy(f"{at}/{names[0]}", f"{at}/{names[1]}"),
                names[1],
                "copy",
            ),
            "torn": (
                lambda at: self.change_bytes(f"{at}/{names[3]}", lambda x: x[:-100]),
                names[3],
                "bytes",
                "were saved; copy",
            ),
            "flipped": (
                lambda at: self.change_bytes(f"{at}/{names[1]}", flip),
                names[1],
                "damaged or of another run",
            ),
            "foreign": (
                lambda at: shutil.copy(f"{other}/{names[2]}", f"{at}/{names[2]}"),
                names[2],
                "damaged or of another run",
            ),
            "header": (
                lambda at: self.change_bytes(
                    f"{at}/{names[2]}", lambda x: x.replace(b'"step":"3"', b'"step":"4"')
                ),
                names[2],
                "another header; copy",
            ),
            "empty index": (write("complete.json", b""), "complete.json", "expected an index"),
            "list": (write("complete.json", b"[1]"), "complete.json", "expected an index"),
            "no parts": (
                write("complete.json", b'{"format": "ckc parts 1", "save": 1, "parts": []}'),
                "complete.json",
            ),
            "format": (
                write("complete.json", b'{"format": "ckc parts 9", "save": 1}'),
                "complete.json",
                "format is not",
            ),
            "hash": (
                write("complete.json", b'{"save": 1, "parts": [{"header": "12"}]}'),
                "complete.json",
                "16 hexadecimal digits",
            ),
            "empty part": (write(names[0], b""), names[0], "0 bytes"),
        }
        for what, (change, *words) in cases.items():
            at = self.damaged(good, what, change)
            for shape in "one", "tp2":
                done = self.train(shape, "--resume", at, "--steps", STEPS + 1)
                self.refused(done, f"{what}, {shape}", *words)
            out = self.path("none")
            self.refused(self.ckrun("merge", at, "-o", out), f"{what}, merge", *words)
            self.check(not os.path.exists(out), f"{what}: a file was merged")

    def hostile(self):
        """Headers that contradict themselves or each other, with their hashes."""
        good, name = self.saved("tp2", "good2"), None
        metas = []
        for i in range(2):
            meta, entries, _ = header(ck.content(part(good, i)))
            metas.append((meta, entries))
        # a tensor that is cut along its columns
        name = next(k[8:] for k, x in metas[0][0].items() if k[:8] == "ckc.cut." and "/" in x)
        key, n = "ckc.cut." + name, metas[0][1][name]["shape"][0]
        text = metas[0][0][key]
        shape, runs = text.split("; ")
        whole = 2 * n

        def changed(i, meta=None, entries=None):
            def change(at):
                data = ck.content(part(at, i))
                m, e, begin = header(data)
                m.update(meta or {})
                e.update(entries or {})
                data = with_header({k: x for k, x in m.items() if x is not None}, e, data[begin:])
                listed = index(at)
                _, _, begin = header(data)
                listed["parts"][i] = {
                    "bytes": len(data),
                    "header": digest(data[:begin]),
                    "data": digest(data[begin:]),
                }
                with open(part(at, i), "wb") as f:
                    f.write(data)
                with open(f"{at}/complete.json", "w") as f:
                    json.dump(listed, f)

            return change

        huge = 1 << 59
        said = "do not say which"
        other = metas[1][0][key]
        cases = [
            (changed(1, {key: text}), "both have element 0 of"),  # twice the same half
            (changed(1, {key: f"{shape}; 0+{n}"}), "both have element"),
            (changed(0, {key: f"{shape}; 1+{n}"}), "both have element"),
            (changed(0, {key: f"{shape}; {whole - n + 1}+{n}"}), said),  # beyond the end
            (changed(0, {key: f"{shape}; 0+{n - 1}"}), said),  # less than its data
            (changed(0, {key: f"{shape}; 0+{n}, 0+{n}"}), said),
            (changed(0, {key: f"{shape}; 0+1/0*{n}"}), said),  # a stride of nothing
            (changed(0, {key: f"{shape}; 0+2/1*{n // 2}"}), said),  # overlaps itself
            (changed(0, {key: f"{shape}; 0+1/1*{huge}"}), said),
            (changed(0, {key: f"{shape}; 0+1/{huge}*{huge}"}), said),
            (changed(0, {key: f"{shape}; {'9' * 40}+1"}), said),
            (changed(0, {key: f"{shape}; -1+{n}"}), said),
            (changed(0, {key: f"{huge},{huge}; 0+{n}"}), said),
            (changed(0, {key: f"{','.join('1' * 9)}; 0+{n}"}), said),
            (changed(0, {key: f"{whole * 1000}; 0+{n}"}), "another name, type or shape"),
            (changed(0, {key: shape + ";"}), said),
            (changed(0, {key: ""}), said),
            (changed(0, {key: runs}), said),
            (changed(0, {key: f"{shape}; " + ", ".join(f"{2 * i}+1" for i in range(n))}), said),
            (changed(0, {key: None}), "another name, type or shape"),
            (changed(0, {key: f"{shape}; 0+1/3*{n // 2}, 1+1/3*{n - n // 2}"}), "apart"),
            # elements of nobody: the part of the other has one less
            (
                changed(
                    1,
                    {key: other.replace("+", "+1/1*", 1) if "/" not in other else None},
                ),
                name,
            ),
        ]
        limit = ["prlimit", f"--as={2 << 30}"]
        if self.run([*limit, self.ckrun_path, "--version"]).returncode:
            limit = []  # a sanitizer takes more
        for i, (change, *words) in enumerate(cases):
            at = self.damaged(good, f"hostile {i}", change)
            merge = [*limit, self.ckrun_path, "merge", at, "-o", self.path("no")]
            done = self.run(merge, env={"MALLOC_ARENA_MAX": "1"})
            self.refused(done, f"hostile {i}", *words)
            done = self.train("one", "--init", at, "--steps", STEPS + 1)
            self.refused(done, f"hostile {i}: --init", *words)

    def gaps(self):
        """Parts that each are right but leave elements out."""
        good = self.saved("tp2", "good3")
        meta, entries, begin = header(ck.content(part(good, 1)))
        name = next(k[8:] for k, x in meta.items() if k[:8] == "ckc.cut." and "+" in x)

        def empty(at):
            data = ck.content(part(at, 1))
            lo, hi = (begin + x for x in entries[name]["data_offsets"])
            shrunk, e = data[begin:lo] + data[hi:], {}
            for k, x in entries.items():
                a, b = x["data_offsets"]
                cut = [(y - (hi - lo) if y + begin >= hi else y) for y in (a, b)]
                e[k] = {**x, "data_offsets": cut}
            e[name] = {**entries[name], "shape": [0], "data_offsets": [lo - begin] * 2}
            shape = meta["ckc.cut." + name].split(";")[0]
            data = with_header({**meta, "ckc.cut." + name: shape + ";"}, e, shrunk)
            listed, (_, _, first) = index(at), header(data)
            listed["parts"][1] = {
                "bytes": len(data),
                "header": digest(data[:first]),
                "data": digest(data[first:]),
            }
            with open(part(at, 1), "wb") as f:
                f.write(data)
            with open(f"{at}/complete.json", "w") as f:
                json.dump(listed, f)

        at = self.damaged(good, "gap", empty)
        words = ("the parts have", f"elements of tensor '{name}'; copy")
        self.refused(self.ckrun("merge", at, "-o", self.path("no")), "gap", *words)
        self.refused(self.train("tp4", "--resume", at, "--steps", 9), "gap, --resume", *words)

    # ---- disks of their own ----

    def each(self, *commands):
        line = [*MPIRUN]
        for i, (folder, command) in enumerate(commands):
            line += [*([":"] if i else []), "-n", 1, "-wdir", folder, *command]
        return self.run(line)

    def apart(self):
        """Processes that do not see each other's files each write theirs; together they load."""
        a, b = self.folder("a"), self.folder("b")
        run = [self.ckrun_path, self.library("tp2"), "--data", self.text, "--tokens", "bytes"]
        run += ["--threads", 1, "--steps"]
        for i in range(2):  # also over older parts
            done = self.each(*((x, [*run, STEPS, "--save", "s/"]) for x in (a, b)))
            self.must(done, "apart: --save")
            expected = (
                [f"00000-{i + 1}.safetensors", "complete.json"],
                [f"00001-{i + 1}.safetensors"],
            )
            found = self.files(a + "/s"), self.files(b + "/s")
            self.check(found == expected, f"apart: {found}")
        more = [*run, STEPS + 1, "--resume", "s/"]
        name = expected[1][0]
        done = self.each((a, more), (b, more))
        self.refused(done, "apart: --resume", name, "missing", "copy")
        shutil.copy(f"{b}/s/{name}", f"{a}/s/{name}")
        self.same_as_file(a + "/s", "tp2", "", "apart")
        ends = []
        for source in "s/", self.plain("tp2"):
            out = self.path("apart.save")
            more = [*run, STEPS + 1, "--save", out, "--resume", source]
            self.must(self.each((a, more), (b, more)), f"apart: --resume {source}")
            ends.append(ck.content(out))
        self.check(ends[0] == ends[1], "apart: other bits")

    # ---- words ----

    def words(self):
        good = self.saved("one", "good4")
        so, file = self.library("one"), self.path("file")
        data = ["--data", self.text, "--tokens", "bytes", "--steps", 1]
        shutil.copy(self.text, file)
        os.mkdir(self.path("bare"))
        for argv, status, text in (
            (["merge"], 2, "no folder given"),
            (["merge", good], 2, "-o FILE.safetensors"),
            (["merge", good, good, "-o", "x"], 2, "a second folder"),
            (["merge", good, "-o"], 2, "-o needs a file"),
            (["merge", good, "--fast"], 2, "unknown option"),
            (["merge", file, "-o", "x"], 1, "expected a folder"),
            (["merge", "absent", "-o", "x"], 1, "absent: cannot read"),
            (["merge", self.path("bare"), "-o", "x"], 1, "no complete checkpoint"),
            (["merge", good, "-o", "absent/x"], 1, "cannot write"),
            (["merge", good, "-o", good], 1, "not a regular file"),
            ([so, *data, "--save", "file/"], 1, "cannot make the folder"),
            ([so, *data, "--save", "absent/x/"], 1, "cannot make the folder"),
            ([so, *data, "--init", "bare/"], 1, "no complete checkpoint"),
            ([so, *data, "--grads", "bare/"], 1, "bare"),
            (
                [so, *data, "--save", "w/", "--valid", self.text, "--save-best", "w/"],
                1,
                "both --save and --save-best",
            ),
        ):
            done = self.ckrun(*argv)
            self.check(
                done.returncode == status and text in done.stderr and done.stderr.count("\n") == 1,
                f"{argv}: status {done.returncode}, {done.stderr!r}",
            )
        self.check(not os.path.exists(self.path("x")), "a file was merged")
        done = self.ckrun("merge", "--help")
        self.check(done.returncode == 0 and "ckrun merge DIR -o FILE" in done.stdout, "help")


PARTS = (
    "written",
    "loaded",
    "read",
    "replaced",
    "kept",
    "faulty",
    "hostile",
    "gaps",
    "apart",
    "words",
)


def main():
    if not shutil.which("mpirun") or not os.path.exists(
        os.path.join(os.path.dirname(os.path.abspath(sys.argv[2])), "ckr_mpi.so")
    ):
        print("skipped: no mpirun, or built without MPI (libopenmpi-dev, openmpi-bin)")
        sys.exit(77)
    # MPI leaves memory to the end of the process
    os.environ["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
    bench = Parts()
    for name in bench.names or PARTS:
        at = time.monotonic()
        getattr(bench, name)()
        print(f"{name}: {time.monotonic() - at:.1f} s", flush=True)
    bench.finish()


if __name__ == "__main__":
    main()
