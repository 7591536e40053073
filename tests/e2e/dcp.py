#!/usr/bin/env python3
"""ckc.dcp: checkpoints as those of torch.distributed.checkpoint, and back.

    dcp.py CKC CKRUN [PART...]

A round trip gives the same file, byte for byte, also of a checkpoint in parts.  PyTorch goes on
where ckc stopped, and ckc where PyTorch stopped, with the losses of a run that did not change
hands; so it does from a checkpoint that two processes of PyTorch wrote.  Without torch, the test is
skipped.
"""

import os
import random
import shutil
import sys
import time
import warnings

import ck

sys.path.insert(0, os.path.join(ck.HERE, "..", "..", "frontend", "python"))
try:
    import torch
    import torch.distributed.checkpoint as dcp
    from torch.distributed.checkpoint.default_planner import DefaultLoadPlanner
    from torch.distributed.checkpoint.state_dict import (
        get_model_state_dict,
        get_optimizer_state_dict,
        set_optimizer_state_dict,
    )
except ImportError:
    print("dcp: no torch with torch.distributed")
    sys.exit(77)

GPT = (ck.SAMPLE, "--dim", "batch=1", "--dim", "seq=16")
KINDS = {
    "adamw": (),
    "adafactor": ("--optimizer", "adafactor"),
    "sgd": ("--optimizer", "sgd"),
    "bf16": ("--dtype", "bf16", "--master-weights", "off"),
    "f16": ("--dtype", "f16", "--ema"),
    "nf4": ("--lora", "*.qkv.*=4", "--frozen-dtype", "nf4"),
}
# A process of PyTorch that has one of two parts of each matrix.
SHARDED = """
import os, sys, torch
import torch.distributed as dist, torch.distributed.checkpoint as dcp
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor
rank, source, to, store = int(sys.argv[1]), *sys.argv[2:]
dist.init_process_group("gloo", init_method="file://" + store, rank=rank, world_size=2)
mesh = init_device_mesh("cpu", (2,))
def shard(x):
    return distribute_tensor(x, mesh, [Shard(x.dim() - 1)]) if x.dim() else x
def walk(x):
    return {k: walk(v) for k, v in x.items()} if isinstance(x, dict) else (
        shard(x) if torch.is_tensor(x) else x)
dcp.save(walk(torch.load(source)), checkpoint_id=to)
dist.destroy_process_group()
"""


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up = torch.nn.Linear(8, 16)
        self.down = torch.nn.Linear(16, 4)

    def forward(self, x, target):
        return ((self.down(torch.tanh(self.up(x))) - target) ** 2).mean()


def batch(seed):
    draw = torch.Generator().manual_seed(seed)
    return {
        "x": torch.randn(6, 8, generator=draw),
        "target": torch.randn(6, 4, generator=draw),
    }


STOP, STEPS, LR = 3, 7, 1e-2


class Dcp(ck.Bench):
    def __init__(self):
        super().__init__()
        os.environ["CKC_HOME"] = os.path.dirname(self.ckc_path)
        global ckc
        import ckc.dcp
        import ckc.torch

    def fresh(self, name):
        at = self.path(name)
        shutil.rmtree(at, ignore_errors=True)
        return at

    # ---- there and back ----

    def trip(self, source, plain, what):
        at, back = self.fresh("dcp"), self.path("back")
        ckc.dcp.to_dcp(source, at)
        other = ckc.dcp.from_dcp(at, back)
        self.check(other == [] and ck.content(back) == ck.content(plain), f"{what}: other bytes")

    def trips(self):
        text = self.path("text")
        with open(text, "wb") as f:
            f.write(bytes(random.Random(1).choices(b"abcdefgh \n", k=20000)))
        for kind, flags in KINDS.items():
            so, plain, folder = (self.path(kind + x) for x in (".so", ".s", ".d/"))
            self.must(self.ckc(*GPT, *flags, "-o", so), kind)
            for save in plain, folder:
                run = [so, "--data", text, "--tokens", "bytes", "--steps", 2, "--save", save]
                self.must(self.ckrun(*run), f"{kind}: --save")
                self.trip(save, plain, f"{kind} {save}")

    # ---- with PyTorch ----

    def model(self):
        torch.manual_seed(1)
        net = Net()
        path = self.path("net.onnx")
        if not os.path.exists(path):
            ckc.torch.export(net, batch(0), path)
            self.library = ckc.compile(path)
        return net

    def adam(self, net):
        return torch.optim.AdamW(net.parameters(), lr=LR, weight_decay=0.01)

    def torch_steps(self, net, adam, first, end):
        losses = []
        for i in range(first, end):
            adam.zero_grad()
            loss = net(**batch(i))
            loss.backward()
            adam.step()
            losses.append(float(loss.detach()))
        return losses

    def near(self, a, b, what):
        worst = max(abs(x - y) for x, y in zip(a, b))
        self.check(len(a) == len(b) and worst <= 1e-6 * max(map(abs, b)), f"{what}: {a}, {b}")

    def whole_run(self):
        net = self.model()
        return self.torch_steps(net, self.adam(net), 0, STEPS)

    def to_torch(self):
        expected, net = self.whole_run(), self.model()
        with ckc.Trainer(self.library, lr=LR) as t:
            losses = [t.step(**batch(i)) for i in range(STOP)]
            t.save(self.path("run.s"))
        at = self.fresh("handed")
        ckc.dcp.to_dcp(self.path("run.s"), at)
        with torch.no_grad():
            for x in net.parameters():
                x.zero_()
        adam = self.adam(net)
        state = {
            "model": get_model_state_dict(net),
            "optimizer": get_optimizer_state_dict(net, adam),
        }
        planner = DefaultLoadPlanner(allow_partial_load=True)
        dcp.load(state, checkpoint_id=at, planner=planner, no_dist=True)
        net.load_state_dict(state["model"])
        set_optimizer_state_dict(net, adam, state["optimizer"])
        losses += self.torch_steps(net, adam, STOP, STEPS)
        self.near(losses, expected, "ckc, then PyTorch")

    def state(self):
        """A run of PyTorch that stopped, as {"model": ..., "optimizer": ...}."""
        net = self.model()
        adam = self.adam(net)
        self.torch_steps(net, adam, 0, STOP)
        return {
            "model": get_model_state_dict(net),
            "optimizer": get_optimizer_state_dict(net, adam),
        }

    def goes_on(self, at, what):
        expected, path = self.whole_run(), self.path("torch.s")
        other = ckc.dcp.from_dcp(at, path, optimizer="adamw")
        self.check(other == [], f"{what}: {other} left out")
        with ckc.Trainer(self.library, lr=LR) as t:
            t.resume(path)
            losses = [t.step(**batch(i)) for i in range(STOP, STEPS)]
        self.near(losses, expected[STOP:], what)

    def from_torch(self):
        at = self.fresh("torch")
        dcp.save(self.state(), checkpoint_id=at, no_dist=True)
        self.goes_on(at, "PyTorch, then ckc")
        # weights alone
        ckc.dcp.from_dcp(at, self.path("weights.s"))
        names = sorted(ck.tensors(self.path("weights.s")))
        self.check(names == sorted(self.state()["model"]), f"weights: {names}")

    def sharded(self):
        at, source = self.fresh("sharded"), self.path("source.pt")
        torch.save(self.state(), source)
        script = self.path("sharded.py")
        with open(script, "w") as f:
            f.write(SHARDED)
        import subprocess

        runs = [
            subprocess.Popen([sys.executable, script, str(i), source, at, self.path("store")])
            for i in range(2)
        ]
        if self.check([x.wait(120) for x in runs] == [0, 0], "two processes of PyTorch"):
            files = [x for x in os.listdir(at) if x.endswith(".distcp")]
            self.check(len(files) == 2, f"files of two processes: {files}")
            self.goes_on(at, "two processes of PyTorch, then ckc")

    # ---- words ----

    def words(self):
        self.model()
        at = self.fresh("words")
        dcp.save({"net": {"w": torch.ones(2)}}, checkpoint_id=at, no_dist=True)
        with open(self.path("text.s"), "w") as f:
            f.write("no checkpoint of anybody")
        bare = self.path("bare")
        os.mkdir(bare)
        for call, text in (
            (lambda: ckc.dcp.from_dcp(at, self.path("w.s")), "no tensor is called model.NAME"),
            (lambda: ckc.dcp.from_dcp(at, self.path("w.s"), optimizer="adamw"), "step=N"),
            (lambda: ckc.dcp.to_dcp(self.path("text.s"), self.path("x")), "safetensors"),
            (lambda: ckc.dcp.to_dcp(bare, self.path("x")), "no complete checkpoint"),
        ):
            try:
                call()
                self.check(False, f"{text}: no error")
            except ckc.Error as e:
                self.check(text in str(e), f"{text}: {e}")
        left = [x for x in os.listdir(self.work) if "tmp" in x or x == "w.s"]
        self.check(left == [], f"left over: {left}")


def main():
    warnings.filterwarnings("ignore", message="torch.distributed is disabled")
    bench = Dcp()
    for name in bench.names or ("trips", "to_torch", "from_torch", "sharded", "words"):
        at = time.monotonic()
        getattr(bench, name)()
        print(f"{name}: {time.monotonic() - at:.1f} s", flush=True)
    bench.finish()


if __name__ == "__main__":
    main()
