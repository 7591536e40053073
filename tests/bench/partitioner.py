#!/usr/bin/env python3
"""Memory against recomputation: PyTorch's partitioner and ckc, on the same training steps.

    partitioner.py [--build build] [--solver dp,ilp] [--inductor] [--budgets 1.0,0.5]
        [--out FILE.md] [NAME ...]

NAME: gpt2, vit, resnet50, unet, lstm of step_models.py; all five if none is given.  PyTorch's
activation_memory_budget goes from 1.0 down to 0.0; its graphs are run by eager kernels on the CPU
(AOTAutograd with the min-cut partitioner and Inductor's decompositions), or with --inductor are
compiled by it, a minute or more for each budget: it fuses point-wise kernels.  Its peak is that of
PyTorch's allocator over forward and backward, with parameters and inputs; recomputation is the
FLOPs of matrix products and convolutions above those of budget 1.0, counted in its graphs.  ckc
plans the export of the same module for the CPU within each of those peaks; no optimizer state, all
gradients live to the end of backward as in PyTorch.  Its plan says the FLOPs of products again.

Needs torch, torchvision, transformers, scipy (ilp), onnx, onnxscript; a few GB and about half an
hour on two cores.
"""

import argparse
import datetime
import gc
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
BUDGETS = [k / 10 for k in range(10, -1, -1)]
PRODUCTS = ("matmul", "conv", "attention", "classifier")


def flops_of(graph, inputs):
    """FLOPs of the products of a graph, which is run without data."""
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.utils.flop_counter import FlopCounterMode

    modes = [x.fake_mode for x in inputs if hasattr(x, "fake_mode")]
    with modes[0] if modes else FakeTensorMode(allow_non_fake_inputs=True):
        with FlopCounterMode(display=False) as count:
            graph(*inputs)
    return count.get_total_flops()


def compiled(module, total):
    """The module by AOTAutograd; the FLOPs of its graphs are added to total[0]."""
    import torch
    from torch._dynamo.backends.common import aot_autograd
    from torch._functorch.aot_autograd import make_boxed_func
    from torch._functorch.partitioners import min_cut_rematerialization_partition
    from torch._inductor.compile_fx import select_decomp_table

    def compiler(graph, inputs):
        total[0] += flops_of(graph, inputs)
        return make_boxed_func(graph.forward)

    backend = aot_autograd(
        fw_compiler=compiler,
        bw_compiler=compiler,
        partition_fn=min_cut_rematerialization_partition,
        decompositions=select_decomp_table(),
    )
    return torch.compile(module, backend=backend, dynamic=False)


def peak_of_step(step, held):
    """Most bytes of PyTorch's allocator during a step, from `held` before it."""
    from torch.profiler import ProfilerActivity, profile

    gc.collect()
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as p:
        step()
    now = most = held
    for e in p.profiler.kineto_results.events():
        if e.name() == "[memory]":
            now += e.nbytes()
            most = max(most, now)
    return most


def torch_rows(name, solver, budgets, inductor):
    """Prints peak bytes and FLOPs of each budget as a line of JSON."""
    import torch
    from torch._functorch import config

    import step_models

    config.activation_memory_budget_solver = solver
    module, inputs = step_models.make(name)
    held = sum(x.untyped_storage().nbytes() for x in inputs.values())
    held += sum(x.numel() * x.element_size() for x in [*module.parameters(), *module.buffers()])
    for budget in map(float, budgets.split(",")):
        config.activation_memory_budget = budget
        torch._dynamo.reset()
        total = [0]
        run = compiled(module, total)
        run(*inputs.values()).backward()
        module.zero_grad(set_to_none=True)
        if inductor == "True":  # the same partition, whose FLOPs are known now
            torch._dynamo.reset()
            run = torch.compile(module, dynamic=False)
            run(*inputs.values()).backward()
            module.zero_grad(set_to_none=True)
        peak = peak_of_step(lambda run=run: run(*inputs.values()).backward(), held)
        module.zero_grad(set_to_none=True)
        print(json.dumps({"budget": budget, "peak": peak, "flops": total[0]}), flush=True)


def export(name, path):
    import torch

    import step_models

    module, inputs = step_models.make(name)
    torch.onnx.export(
        module, tuple(inputs.values()), path, dynamo=True, input_names=list(inputs),
        training=torch.onnx.TrainingMode.TRAINING, external_data=True
    )  # fmt: skip


def ckc_row(o, path, budget, work):
    """Peak bytes and FLOPs of recomputed products within a budget; None: refused."""
    file = os.path.join(work, "plan.json")
    command = [os.path.join(o.build, "ckc"), path, "--plan-only", "--quiet", "--json", file]
    command += ["--optimizer", "sgd", "--update-in-backward", "off", "--batchnorm", "batch"]
    done = subprocess.run(
        [*command, "--memory-budget", f"{budget}B"], capture_output=True, text=True
    )
    if done.returncode:
        if "smallest budget that works" in done.stderr:
            return None
        sys.exit(done.stderr)
    with open(file) as f:
        plan = json.load(f)
    again = sum(
        s["flops"]
        for s in plan["schedule"]
        if s["phase"] == "recompute" and s["op"].startswith(PRODUCTS)
    )
    return plan["summary"]["peak_bytes"], again


def child(*argv):
    """Lines that this script prints in a process of its own; what failed, or None."""
    done = subprocess.run([sys.executable, __file__, *argv], capture_output=True, text=True)
    why = done.stderr.strip().splitlines()[-1:] if done.returncode else None
    return [s for s in done.stdout.splitlines() if s.startswith("{")], why


def rows(o, name, work):
    path = os.path.join(work, name + ".onnx")
    _, why = child("--export", name, path)
    if why:
        yield [name, "export failed", str(why), "", "", ""]
        return
    for solver in o.solver.split(","):
        lines, why = child("--torch", name, solver, o.budgets, str(o.inductor))
        measured = [json.loads(s) for s in lines]
        for row in measured:
            base = measured[0]["flops"]
            ours = ckc_row(o, path, row["peak"], work)
            more = 100 * (row["flops"] - base) / base
            cells = [name, f"{solver} {row['budget']}", f"{row['peak'] / 1e6:.1f}", f"{more:.2f}"]
            if ours:
                cells += [f"{ours[0] / 1e6:.1f}", f"{100 * ours[1] / base:.2f}"]
            yield cells if ours else [*cells, "refused", ""]
        if why:
            yield [name, solver, str(why), "", "", ""]


def main():
    if sys.argv[1:2] == ["--torch"]:
        torch_rows(*sys.argv[2:])
        return
    if sys.argv[1:2] == ["--export"]:
        export(*sys.argv[2:])
        return
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("names", nargs="*", default=["gpt2", "vit", "resnet50", "unet", "lstm"])
    p.add_argument("--build", default=os.path.join(HERE, "..", "..", "build"))
    p.add_argument("--solver", default="dp,ilp")
    p.add_argument("--budgets", default=",".join(map(str, BUDGETS)))
    p.add_argument("--inductor", action="store_true")
    p.add_argument("--out")
    o = p.parse_args()
    lines = [
        f"# Memory against recomputation beside PyTorch's partitioner, {datetime.date.today()}",
        "",
        "Written by tests/bench/partitioner.py, which says how peaks and FLOPs are measured. A row is one",
        "activation_memory_budget of PyTorch 2.15 with one of its solvers, and what ckc plans within the",
        "peak that PyTorch reached. MB are 10^6 bytes; FLOPs of recomputed products in per cent of those",
        "of a step without recomputation."
        + (" PyTorch's graphs are compiled by Inductor." if o.inductor else ""),
        "",
        "| step | PyTorch's budget | peak, MB | recomputed, % | ckc's peak, MB | recomputed, % |",
        "|---|---|---:|---:|---:|---:|",
    ]
    with tempfile.TemporaryDirectory(prefix="ckc-partitioner-") as work:
        for name in o.names:
            for cells in rows(o, name, work):
                lines.append("| " + " | ".join(cells) + " |")
                print(lines[-1], flush=True)
                if o.out:
                    with open(o.out, "w") as f:
                        f.write("\n".join(lines) + "\n")


main()
