#!/usr/bin/env python3
"""Memory seen from outside, on models beside those of budgets.py: full, middle and least budget;
and a kernel that leaks is seen.

process_memory.py CKC CKRUN [MODEL...]
"""

import os
import sys

import budgets
import ck
import measure

sys.path.insert(0, os.path.join(ck.HERE, "..", "sanitize"))
from sanitized import sanitized

MODELS = ("crf-ts17", "dlrm-dyn22", "gat-dyn24")
LEAK = """
void *malloc(size_t);
static void
leak(void)
{
	volatile char *p = malloc(1 << 20);

	for (int i = 0; i < 1 << 20; i += 1024)
		p[i] = 1;
}
"""


def plans(bench, name):
    stem = os.path.join(ck.MODELS, name)
    flags, _ = ck.model_flags(stem)
    refused = bench.ckc(stem + ".onnx", "-o", bench.path("no.so"), *flags, "--memory-budget", "1B")
    found = ck.ERRORS.search(refused.stderr)
    if not bench.check(found, f"{name}: a budget of 1 byte: {refused.stderr.strip()[:300]}"):
        return
    least, full = int(found.group(1)), None
    for what in "full", "middle", "least":
        budget = {"full": None, "least": least}.get(what, (least + (full or 0)) // 2)
        done, so, js = budgets.compile_plan(bench, stem, flags, budget, f"{name}-{what}")
        if bench.must(done, f"{name}, {what} budget"):
            plan = ck.plan(js)
            full = full or plan["summary"]["peak_bytes"]
            bench.measured(so, stem + ".inputs.safetensors", plan, f"{name}, {what} budget")


def leaking(bench, name):
    """The emitted C with 1 MiB taken in its first kernel."""
    stem, so, src = os.path.join(ck.MODELS, name), bench.path("leak.so"), bench.path("src")
    flags, _ = ck.model_flags(stem)
    if not bench.must(
        bench.ckc(stem + ".onnx", "-o", so, *flags, "--emit-c", src), f"{name}: --emit-c"
    ):
        return
    path = os.path.join(src, "kernels.c")
    text = ck.content(path).decode()
    head, mark, tail = text.partition("(void)p, (void)c, (void)env;\n")
    at = head.rindex("\nvoid\n")
    with open(path, "w") as f:
        f.write(head[:at] + LEAK + head[at:] + mark + "\tleak();\n" + tail)
    bench.must(
        bench.run(
            ["sh", "-c", f"cd '{src}' && cc -std=c11 -O1 -fopenmp -fPIC -shared -o '{so}' *.c -lm"]
        ),
        "the leaking C",
    )
    got = measure.complaints(measure.measure(bench.measure_path, so, stem + ".inputs.safetensors"))
    bench.check(
        any("allocations" in x for x in got) and any("grows" in x for x in got),
        f"a leak of 1 MiB a step is not seen: {got}",
    )


def main():
    bench = ck.Bench()
    for name in bench.names or MODELS:
        plans(bench, name)
    if not sanitized(bench.ckrun_path, "the kernel that leaks ends the step"):
        leaking(bench, "mlp-mse")
    bench.finish()


if __name__ == "__main__":
    main()
