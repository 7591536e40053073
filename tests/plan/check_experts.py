#!/usr/bin/env python3
"""Plans of mixtures of experts at the size of Mixtral 8x7B, beside a closed formula.

    check_experts.py CKC GPT

A layer of E experts maps T tokens of width h, each with k choices, to 2 ff, ff and h elements a
row.  What forward leaves to backward is T k (h + 3 ff) elements a layer where the rest is computed
again: rows before the experts, which are copies of tokens, and what only SiLU has made.  A budget
with room for that leaves at most 2 % more, and costs at most 2 % of a step.  No value but
parameters and their gradients is larger than what `up` gives, so no matrix is copied for a row.
Planning all 32 layers without a budget takes at most 5 s of CPU.
"""

import resource
import sys

from plan_check import PlanCheck, run_parts

T, H, FF, E, K = 4096, 4096, 14336, 8, 2
LAYERS = 4, 6
VALUES = "activation", "adjoint"  # gradients of parameters are neither
ROWS = 2 * T * K * (H + 3 * FF)  # bytes of a layer in 16 bits
# in which a layer's gradients are gone before the next ones come
FLAGS = "--dtype", "bf16", "--device", "H100", "--target", "cuda", "--dp", "off", "--optimizer"
FLAGS = *FLAGS, "sgd", "--master-weights", "off", "--update-in-backward", "on"


def mixture(layers):
    lines = [f"input %x0: f32[{T},{H}]"]
    for i in range(layers):
        lines += [
            f"param %gate{i}: f32[{H},{E}]",
            f"param %up{i}: f32[{E},{2 * FF},{H}]",
            f"param %down{i}: f32[{E},{H},{FF}]",
            f"param %scale{i}: f32[{H}]",
        ]
    for i in range(layers):
        lines += [
            f"%n{i} = rmsnorm %x{i}, %scale{i} {{axis=1, eps=1e-6}}",
            f"%s{i} = matmul %n{i}, %gate{i}",
            f"%p{i} = softmax %s{i} {{axis=1}}",
            f"%q{i}, %i{i} = topk %p{i} {{k={K}, axis=1}}",
            f"%t{i} = reduce_sum %q{i} {{axes=[1]}}",
            f"%g{i} = div %q{i}, %t{i}",
            f"%r{i} = reshape %n{i} {{shape=[{T},1,{H},1]}}",
            f"%e{i} = expand %r{i} {{shape=[{T},{K},{H},1]}}",
            f"%w{i} = gather %up{i}, %i{i} {{axis=0}}",
            f"%u{i} = matmul %w{i}, %e{i}",
            f"%a{i}: f32[{T},{K},{FF},1] = slice %u{i} {{start=[0,0,0,0], step=[1,1,1,1]}}",
            f"%b{i}: f32[{T},{K},{FF},1] = slice %u{i} {{start=[0,0,{FF},0], step=[1,1,1,1]}}",
            f"%c{i} = silu %a{i}",
            f"%f{i} = mul %c{i}, %b{i}",
            f"%v{i} = gather %down{i}, %i{i} {{axis=0}}",
            f"%d{i} = matmul %v{i}, %f{i}",
            f"%o{i} = reshape %g{i} {{shape=[{T},{K},1,1]}}",
            f"%m{i} = mul %d{i}, %o{i}",
            f"%z{i} = reduce_sum %m{i} {{axes=[1,3], keepdims=0}}",
            f"%x{i + 1} = add %x{i}, %z{i}",
        ]
    lines += [f"%y = mul %x{layers}, %x{layers}"]
    lines += ["%loss: f32[] output = reduce_mean %y {axes=[0,1], keepdims=0}"]
    return "graph @mixture {\n\t" + "\n\t".join(lines) + "\n}\n"


class Experts(PlanCheck):
    def layers(self, n):
        """The plans without a budget, and with one that leaves no more of each layer."""
        model = self.path(f"m{n}.ck")
        with open(model, "w", encoding="utf-8") as sink:
            sink.write(mixture(n))
        free = self.plan(model, *FLAGS)
        saved = free["summary"]["saved_bytes"]
        budget = free["summary"]["peak_bytes"] - saved + n * ROWS
        return free["summary"], self.plan(model, *FLAGS, "--memory-budget", f"{budget}B")

    def seconds(self):
        with open(self.path("all.ck"), "w", encoding="utf-8") as sink:
            sink.write(mixture(32))
        begin = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        self.ask(self.path("all.ck"), *FLAGS)
        seconds = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - begin
        self.fault(seconds <= 5, f"planning takes {seconds:.1f} s")

    def bytes(self):
        found = []
        for n in LAYERS:
            free, plan = self.layers(n)
            found.append(plan["summary"]["saved_bytes"])
            slower = plan["summary"]["step_seconds"] / free["step_seconds"]
            self.fault(slower <= 1.02, f"{n} layers: {slower:.4f} of the time")
            most = max(t["bytes"] for t in plan["tensors"] if t["kind"] in VALUES)
            self.fault(most <= 2 * T * K * 2 * FF, f"largest value: {most} B")
        layer = (found[1] - found[0]) / (LAYERS[1] - LAYERS[0])
        self.fault(layer <= 1.02 * ROWS, f"a layer leaves {layer / ROWS:.4f} of its rows")


if __name__ == "__main__":
    sys.exit(run_parts(Experts, ["bytes", "seconds"]))
