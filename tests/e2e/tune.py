#!/usr/bin/env python3
"""Fine-tuning: weights of other files, rates and decay by parameter, adapters.

    tune.py CKC CKRUN

What is expected is written down here, in double precision, from the formulas.
"""
import json
import os
import pickle
import sys
import zipfile

import ck

sys.path.insert(0, os.path.join(ck.HERE, "..", "runtime"))
import files

TWO = """graph @two {
	input %x: f32[2,3]
	param %enc.a.weight: f32[3,4] = {%s}
	param %enc.b.weight: f32[4,4] = {%s}
	param %head.weight: f32[4,2] = {1, 2, 3, 4, 5, 6, 7, 8}
	%p = matmul %x, %enc.a.weight
	%q = matmul %p, %enc.b.weight
	%r = matmul %q, %head.weight
	%loss: f32[] output = reduce_sum %r {axes=[0,1], keepdims=0}
}
""".replace("{%s}", "{" + ", ".join(["1"] * 12) + "}", 1).replace("{%s}", "{" + ", ".join(["1"] * 16) + "}")
A, B, HEAD = [.5, -1, 2, .25] * 3, [1, .5, -.25, 2] * 4, [3.0] * 8
X = [1, 2, 3, -1, -2, .5]
WEIGHTS = {"enc.a.weight": ("F32", [3, 4], A), "enc.b.weight": ("F32", [4, 4], B), "head.weight": ("F32", [4, 2], HEAD)}


def loss_of(a, b, head, x=X):
    """Of @two."""
    def times(p, q, n, k, m):
        return [sum(p[i * k + l] * q[l * m + j] for l in range(k)) for i in range(n) for j in range(m)]
    return sum(times(times(times(x, a, 2, 3, 4), b, 2, 4, 4), head, 2, 4, 2))


class Init:
    """--init of files that differ from the model."""

    def __init__(self, bench):
        self.bench = bench
        self.so, self.log = bench.path("two.so"), bench.path("log")
        source = bench.path("two.ck")
        with open(source, "w") as f:
            f.write(TWO)
        files.st_write(bench.path("x.st"), {"x": ("F32", [2, 3], X)})
        bench.must(bench.ckc(source, "-o", self.so, "--optimizer", "sgd", "--quiet"), "two")

    def start(self, path, *flags):
        return self.bench.ckrun(self.so, "--inputs", self.bench.path("x.st"), "--init", self.bench.path(path), "--steps", 1, "--log", self.log, *flags)

    def loads(self, path, a, b, head, what, *flags, says=None):
        done = self.start(path, *flags)
        if self.bench.must(done, what):
            want = loss_of(a, b, head)
            got = ck.losses(self.log)[0]
            self.bench.check(abs(got - want) <= 1e-5 * abs(want), f"{what}: loss {got}, expected {want}")
            self.bench.check(not says or says in done.stdout, f"{what}: expected '{says}' in {done.stdout}")

    def refuses(self, path, what, *flags, says, status=1):
        done = self.start(path, *flags)
        self.bench.check(done.returncode == status and all(s in done.stderr for s in says), f"{what}: expected {says}, found {done.stderr[:500]}")

    def mapped(self):
        path, under = self.bench.path, {"model." + k: v for k, v in WEIGHTS.items()}
        files.st_write(path("under.st"), under)
        self.refuses("under.st", "another prefix", says=["3 of 3", "all are there by --init-map 'model.='"])
        self.loads("under.st", A, B, HEAD, "a prefix taken away", "--init-map", "model.=")
        files.st_write(path("bare.st"), {k[4:] if k.startswith("enc.") else k: v for k, v in WEIGHTS.items()})
        self.refuses("bare.st", "names without a prefix", says=["2 of 3", "--init-partial"])
        self.loads("bare.st", A, B, HEAD, "two mappings", "--init-map", "a.=enc.a.", "--init-map", "b.=enc.b.")
        # of mappings that fit a name the last counts
        files.st_write(path("deep.st"), {"m.x.a.weight": WEIGHTS["enc.a.weight"], "m.x.b.weight": WEIGHTS["enc.b.weight"], "m.head.weight": WEIGHTS["head.weight"]})
        self.loads("deep.st", A, B, HEAD, "the last mapping", "--init-map", "m.=", "--init-map", "m.x.=enc.")
        both = dict(under, **{"ema." + k: v for k, v in WEIGHTS.items()})
        files.st_write(path("both.st"), both)
        self.refuses("both.st", "two prefixes", says=["--init-map 'model.=' or --init-map 'ema.='"])
        self.refuses("under.st", "an idle mapping", "--init-map", "no.=", says=["no tensor begins with 'no.'", "model.enc.a.weight"])
        self.refuses("both.st", "two of one name", "--init-map", "model.=", "--init-map", "ema.=", says=["two arrays are called"])
        self.refuses("under.st", "no mapping", "--init-map", "model.", says=["OLD=NEW"], status=2)
        self.refuses("x.st", "nothing alike", says=["3 of 3", "--init-partial"])

    def partial(self):
        path = self.bench.path
        files.st_write(path("part.st"), {k: v for k, v in WEIGHTS.items() if k != "head.weight"})
        self.refuses("part.st", "a part", says=["1 of 3", "'head.weight'", "--init-partial"])
        self.loads("part.st", A, B, range(1, 9), "a part is enough", "--init-partial", says="1 of 3 parameters and buffers start as they were compiled: head.weight\n")
        files.st_write(path("wide.st"), dict(WEIGHTS, **{"head.weight": ("F32", [4, 5], [1.0] * 20)}))
        self.refuses("wide.st", "another shape", "--init-partial", says=["head.weight", "f32[4,2]", "f32[4,5]"])
        self.loads("wide.st", A, B, range(1, 9), "a head of another shape", "--init-skip", "head.*", says="head.weight")
        self.refuses("wide.st", "an idle glob", "--init-skip", "haed.*", says=["'haed.*' matches no parameter"])

    def shards(self):
        path, whole = self.bench.path, {"metadata": {"total_size": 144}, "weight_map": {}}
        for i, names in enumerate((["enc.a.weight"], ["enc.b.weight", "head.weight"])):
            files.st_write(path(f"model-{i}.safetensors"), {k: WEIGHTS[k] for k in names})
            whole["weight_map"].update({k: f"model-{i}.safetensors" for k in names})
        index = path("model.safetensors.index.json")

        def write(text):
            with open(index, "w") as f:
                f.write(text)
        write(json.dumps(whole, indent=2))
        self.loads(index, A, B, HEAD, "shards")
        write(json.dumps(whole, separators=(",", ":")))
        self.loads(index, A, B, HEAD, "shards, in one line")
        moved = dict(whole, weight_map=dict(whole["weight_map"], **{"head.weight": "model-0.safetensors"}))
        write(json.dumps(moved))
        self.refuses(index, "a tensor elsewhere", says=["expected 'head.weight' in", "model-0.safetensors"])
        for text, says in (('{"weight_map": {"a": "../x"}}', "beside it"), ('{"weight_map": {"a": "gone"}}', "gone"), ('{"weight_map": {}}', "weight_map"),
                           ('{"weight_map": [', "weight_map"), ("{", "weight_map")):
            write(text)
            self.refuses(index, text, says=[says])

    def pickles(self):
        path = self.bench.path
        with zipfile.ZipFile(path("net.pth"), "w") as z:
            z.writestr("archive/data.pkl", pickle.dumps({}, protocol=2))
        with open(path("old.bin"), "wb") as f:
            f.write(pickle.dumps({"a": [1.0]}, protocol=2))
        for name in "net.pth", "old.bin":
            stem = path(name.split(".")[0])
            self.refuses(name, name, says=["a pickle of torch.save", "python3 -c", f"'{path(name)}' '{stem}.safetensors'"])

    def run(self):
        self.mapped()
        self.partial()
        self.shards()
        self.pickles()


def main():
    bench = ck.Bench()
    Init(bench).run()
    bench.finish()


if __name__ == "__main__":
    main()
