#!/usr/bin/env python3
"""One network of step_models.py in PyTorch, exported or timed: the peer of tests/bench/steps.py.

    steps_peer.py MODEL --export OUT.onnx [--inference]
    steps_peer.py MODEL [--compile] [--channels-last] [--dtype bf16] [--threads N] [--steps 3]

--export also writes the batch to OUT.onnx.safetensors; --inference exports the module in evaluation
mode. Timed, it prints one JSON object: seconds and CPU seconds of a step (medians), the losses,
seconds of the first step, bytes at the process's peak. --dtype bf16 runs the forward pass under
autocast. Needs torch, torchvision, transformers, onnx, onnxscript and safetensors.
"""

import argparse
import json
import os
import resource
import statistics
import sys
import time

import torch
from safetensors.torch import save_file

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import step_models


def export(name, path, inference):
    module, inputs = step_models.make(name)
    module.train(not inference)
    if name == "t5":
        module.net.set_attn_implementation("eager")  # the exporter cannot view sdpa's result
    how = {"input_names": list(inputs), "output_names": ["loss"], "opset_version": 18}
    if name not in ("gpt1m", "gpt2", "bert", "vit", "llama", "t5", "whisper", "dlrm", "mlp"):
        # TorchScript keeps BatchNormalization in training form and LSTM as one node
        how.update(
            dynamo=False,
            opset_version=17,
            training=torch.onnx.TrainingMode.PRESERVE,
            do_constant_folding=False,
        )
    else:
        how.update(dynamo=True, optimize=False)  # keeps every parameter and its name
    torch.onnx.export(module, tuple(inputs.values()), path, **how)
    save_file({k: v.contiguous() for k, v in inputs.items()}, path + ".safetensors")


def train(o):
    if o.threads:
        torch.set_num_threads(o.threads)
    module, inputs = step_models.make(o.model)
    inputs = list(inputs.values())
    if o.channels_last:
        module = module.to(memory_format=torch.channels_last)
        inputs = [x.to(memory_format=torch.channels_last) if x.dim() == 4 else x for x in inputs]
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-4, weight_decay=0.01, fused=True)
    call = torch.compile(module) if o.compile else module
    autocast = torch.autocast("cpu", torch.bfloat16, enabled=o.dtype == "bf16")
    seconds, cpu, losses = [], [], []
    for _ in range(o.steps + 1):
        start, used = time.perf_counter(), time.process_time()
        with autocast:
            loss = call(*inputs)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(loss.item())
        seconds.append(time.perf_counter() - start)
        cpu.append(time.process_time() - used)
    print(
        json.dumps(
            {
                "torch": torch.__version__,
                "threads": torch.get_num_threads(),
                "step_seconds": statistics.median(seconds[1:]),
                "cpu_seconds": statistics.median(cpu[1:]),
                "first_seconds": seconds[0],
                "losses": losses,
                "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
            }
        )
    )


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("model", help="a name that step_models.make knows")
    p.add_argument("--export")
    p.add_argument("--inference", action="store_true")
    p.add_argument("--compile", action="store_true")
    p.add_argument("--channels-last", action="store_true")
    p.add_argument("--dtype", choices=["f32", "bf16"], default="f32")
    p.add_argument("--threads", type=int, default=0)
    p.add_argument("--steps", type=int, default=3)
    o = p.parse_args()
    if o.export:
        export(o.model, o.export, o.inference)
    else:
        train(o)


if __name__ == "__main__":
    main()
