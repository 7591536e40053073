#!/usr/bin/env python3
"""Overheads of plans with and without offload, by the share of the activations that fits.

    offload.py CKC MODEL.onnx... [--device NAME,NAME] [--share F,F] [--dtype TYPE]

Prints a Markdown table.  A share is that of the bytes that a step without recomputation saves for
backward.  An overhead is the time of a step above that one's, with the transfers for which it
waits.  `bound`: no plan with offload has less.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time


def plan(ckc, model, *options):
    """(plan, seconds); None for the plan: the budget is refused."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "plan.json")
        begun = time.monotonic()
        done = subprocess.run(
            [ckc, model, "--plan-only", "--quiet", "--json", out, *options],
            capture_output=True,
            text=True,
        )
        took = time.monotonic() - begun
        if done.returncode:
            if "is too small" not in done.stderr:
                sys.exit(done.stderr)
            return None, took
        with open(out, encoding="utf-8") as source:
            return json.load(source), took


def percent(found, base, key="exposed_seconds"):
    return f"{100 * (found['summary'][key] / base - 1):.1f} %" if found else "refused"


def row(args, model, device, share, free):
    base = free["summary"]["exposed_seconds"]
    budget = free["summary"]["peak_bytes"] - int((1 - share) * free["summary"]["saved_bytes"])
    size = ("--memory-budget", f"{budget}B", "--device", device, *args.options)
    without, _ = plan(args.ckc, model, *size)
    with_it, took = plan(args.ckc, model, *size, "--offload", "auto")
    host = with_it["host"]["bytes"] / 2**20 if with_it and "host" in with_it else 0
    cells = (
        os.path.basename(model).split(".")[0],
        device,
        f"{share:.2f}",
        percent(without, base),
        percent(with_it, base),
        percent(with_it, base, "bound_seconds"),
        f"{host:.0f} MiB",
        f"{took:.1f} s",
    )
    print("| " + " | ".join(cells) + " |", flush=True)


def main():
    parser = argparse.ArgumentParser(
        formatter_class=argparse.RawDescriptionHelpFormatter, description=__doc__
    )
    parser.add_argument("ckc")
    parser.add_argument("model", nargs="+")
    parser.add_argument("--device", default="RTX-4090,H100")
    parser.add_argument("--share", default="0.5,0.3,0.2")
    parser.add_argument("--dtype", default="bf16")
    args = parser.parse_args()
    args.options = ("--target", "cuda", "--dtype", args.dtype)
    print("| model | device | share | recomputation | with offload | bound | host | planned in |")
    print("|---|---|---:|---:|---:|---:|---:|---:|")
    for model in args.model:
        for device in args.device.split(","):
            free, _ = plan(args.ckc, model, "--device", device, *args.options)
            for share in args.share.split(","):
                row(args, model, device, float(share), free)


if __name__ == "__main__":
    main()
