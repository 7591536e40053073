"""What goes wrong on a device: one clear message, status 1, nothing left; a run that is killed goes
on from its checkpoint."""

import os
import re
import signal
import subprocess
import time

import faults
import optimizers
from work import Wrong, ck, said

# float32 elements; each is kept for backward
LARGE = """graph @large {{
	input %x: f32[1]
	param %w: f32[1] = splat 0.5
	%y = mul %x, %w
	%z = expand %y {{shape=[{rows},1048576]}}
	%e = exp %z
	%loss: f32[] output = reduce_sum %e {{axes=[0,1], keepdims=0}}
	loss %loss
}}
"""


def refused(done, *words):
    text = done.stderr.strip()
    if done.returncode != 1:
        raise Wrong(f"status {done.returncode}, expected 1: {said(text)}")
    for word in words:
        if word not in text:
            raise Wrong(f"no '{word}' in: {said(text)}")
    if text.count("\n") > 3:
        raise Wrong(f"told in {text.count(chr(10)) + 1} lines: {said(text)}")
    return said(text)


def lookup(w, name, x, labels):
    model, so, inputs = (w.path(f"lookup-{name}.{e}") for e in ("ck", "so", "in"))
    with open(model, "w", encoding="utf-8") as f:
        f.write(faults.TEXT)
    w.compile(model, so, "--optimizer", "sgd")
    optimizers.write_tensors(inputs, {"x": faults.np.array(x), "labels": faults.np.array(labels)})
    return so, inputs


def out_of_range(w, what, x, labels, word):
    so, inputs = lookup(w, what, x, labels)
    end = w.path(f"lookup-{what}.end")
    text = refused(
        w.call(w.tool("ckrun"), so, "--inputs", inputs, "--steps", 3, "--save", end), word, "step 1"
    )
    if os.path.exists(end):
        raise Wrong("a run that failed left a checkpoint")
    return text


def too_large(w):
    """A library that needs more than the device has."""
    total = int(
        w.must(
            "nvidia-smi", "--query-gpu=memory.total", "--format=csv,noheader,nounits"
        ).stdout.split()[0]
    )
    rows = total // 4 + 4096  # of 4 MiB: the device's bytes and more
    model, so, inputs = (w.path(f"large.{e}") for e in ("ck", "so", "in"))
    with open(model, "w", encoding="utf-8") as f:
        f.write(LARGE.format(rows=rows))
    optimizers.write_tensors(inputs, {"x": faults.np.ones(1, "float32")})
    peak = w.compile(model, so, "--optimizer", "sgd")["summary"]["peak_bytes"]
    if peak >> 20 <= total:
        raise Wrong(f"{peak} B planned: not too large for {total} MiB")
    return refused(
        w.call(w.tool("ckrun"), so, "--inputs", inputs, "--steps", 1), "memory", "--memory-budget"
    )


def no_device(w):
    so, inputs = lookup(w, "none", [1, 2, 3, 4], [0, 1, 2, 3])
    env = {"CKR_FAKE_GPU": "none"} if w.o.emulated else {"CUDA_VISIBLE_DEVICES": ""}
    return refused(
        w.call(w.tool("ckrun"), so, "--inputs", inputs, "--steps", 1, **env), "CUDA_VISIBLE_DEVICES"
    )


def killed(w, gpt):
    """Killed while it steps: its last checkpoint is whole, and going on from there gives the bits
    of a run that was left alone."""
    so, _ = w.library(gpt)
    whole, cut, end = (w.path(f"killed.{x}") for x in ("whole", "cut", "end"))
    base = [w.tool("ckrun"), so, *w.feed(gpt), "--quiet"]
    if os.path.exists(cut):
        os.unlink(cut)
    child = subprocess.Popen(
        [*base, "--steps", "1000000", "--save", cut, "--save-every", "2"], cwd=w.models
    )
    try:
        late = time.monotonic() + 60
        while not os.path.exists(cut) and time.monotonic() < late and child.poll() is None:
            time.sleep(0.02)
        time.sleep(0.2)
        if child.poll() is not None:
            raise Wrong(f"ended by itself, status {child.returncode}")
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()
    if not os.path.exists(cut):
        raise Wrong("no checkpoint in 60 s")
    told = w.must(*base[:-1], "--resume", cut, "--steps", 1)
    found = re.search(r"(\d+) steps are already done", told.stdout)
    if not found:
        raise Wrong(f"ckrun does not tell how many steps are done: {said(told.stdout)}")
    done = int(found[1])
    w.must(*base, "--resume", cut, "--steps", done + 2, "--save", end)
    w.must(*base, "--steps", done + 2, "--save", whole)
    if ck.content(whole) != ck.content(end):
        raise Wrong(
            f"killed behind step {done}, then 2 more: other bits than {done + 2} steps at once"
        )
    return f"killed behind step {done}: goes on with the bits of a run that was not"


def items(w, gpt):
    return [
        (
            "fault: index out of range",
            lambda n: out_of_range(
                w, "index", [1, 2, 10, 11], [0, 1, 2, 3], "index out of range: 10"
            ),
        ),
        (
            "fault: label out of range",
            lambda n: out_of_range(w, "label", [1, 2, 3, 4], [0, 9, 7, 3], "label out of range: 9"),
        ),
        ("fault: too large", lambda n: too_large(w)),
        ("fault: no device", lambda n: no_device(w)),
        ("fault: killed", lambda n: killed(w, gpt)),
    ]
