#!/usr/bin/env python3
"""Several libraries of one model, for inputs of different sizes, share weights and progress.

    shared_model.py CKC CKRUN [--flags "--target cuda ..."]

Expected values come from contexts of their own, which hand the model over by checkpoints.
"""

import ctypes as c
import os
import re
import shlex
import sys

import ck
import numpy as np

sys.path.insert(0, os.path.join(ck.HERE, "..", "..", "frontend", "python"))

from ckc import Error, Trainer, _lib


class Context:
    """A ckr_ctx; every call checks its status."""

    def __init__(self, so, of=None, **options):
        self.call, self.ctx = _lib.library(), c.c_void_p()
        options = _lib.Options(model_of=of.ctx if of else None, **options)
        self.do("open", c.byref(self.ctx), os.fsencode(so), c.byref(options), ctx=False)

    def do(self, name, *args, ctx=True):
        status = getattr(self.call, f"ckr_{name}")(*([self.ctx] if ctx else []), *args)
        if status:
            message = self.call.ckr_error(self.ctx).decode()
            if name == "open":
                self.close()
            raise Error(message)

    def set(self, batch):
        for name, x in batch.items():
            self.do("set", name.encode(), x.ctypes.data, x.nbytes)

    def step(self, batch):
        self.set(batch)
        loss, hyper = c.c_double(), self.call.ckr_model_hyper(self.ctx)
        hyper.lr = 0.01
        self.do("step", c.byref(hyper), c.byref(loss))
        return loss.value

    def eval(self, batch):
        self.set(batch)
        loss = c.c_double()
        self.do("eval", c.byref(loss))
        return loss.value

    def save(self, path):
        self.do("save", os.fsencode(path))

    def resume(self, path):
        self.do("resume", os.fsencode(path))

    def close(self):
        self.call.ckr_close(self.ctx)


def handed_over(bench, libraries, order, batches, options):
    """Losses and the checkpoint at the end, of contexts of their own."""
    at, losses = bench.path("handed.st"), []
    for step, k in enumerate(order):
        model = Context(libraries[k], **options)
        if step:
            model.resume(at)
        losses.append(model.step(batches[step]))
        losses.append(model.eval(batches[step]))
        model.save(at)
        model.close()
    return losses, ck.content(at)


def shared(bench, libraries, order, batches, options, saver):
    """The same of contexts that share the model."""
    at, losses, models = bench.path("shared.st"), [], {}
    for step, k in enumerate(order):
        if k not in models:
            first = next(iter(models.values()), None)
            models[k] = Context(libraries[k], of=first, **options)
        losses.append(models[k].step(batches[step]))
        losses.append(models[k].eval(batches[step]))
    models[saver].save(at)
    for model in models.values():  # the first one before those that share its model
        model.close()
    return losses, ck.content(at)


def agree(bench, what, libraries, draw, **options):
    steps = (0, 0, 0, 1, 0, 2, 1, 0) if libraries[2:] else (0, 1, 0)
    for order in (steps, [len(libraries) - 1 - k for k in steps]):
        batches = [draw(k, step) for step, k in enumerate(order)]
        want = handed_over(bench, libraries, order, batches, options)
        for saver in set(order):
            got = shared(bench, libraries, order, batches, options, saver)
            bench.check(got[0] == want[0], f"{what} {order}: losses {got[0]}, expected {want[0]}")
            bench.check(got[1] == want[1], f"{what} {order}: another checkpoint by library {saver}")


def compiled(bench, name, sizes, *flags, replicas=1):
    """Libraries of a model of tests/models for these sizes, and batches for them."""
    path = os.path.join(ck.MODELS, name)
    given = ck.tensors(path + ".inputs.safetensors")
    _, meta = ck.model_flags(path)
    libraries = []
    for size in sizes:
        words = [name, *map(str, size.values()), *flags]
        so = bench.path(re.sub(r"[^\w.]+", "_", "-".join(words)) + ".so")
        dims = [x for k, n in size.items() for x in ("--dim", f"{k}={n}")]
        if not os.path.exists(so):
            done = bench.ckc(path + ".onnx", "-o", so, *dims, "--loss", meta["loss"], *flags)
            bench.must(done, f"{name} {size}")
        libraries.append(so)

    def draw(k, step):
        chance = np.random.default_rng(step)
        of = {meta["dims"][dim]: n for dim, n in sizes[k].items()}
        of[meta["dims"]["batch"]] *= replicas
        batch = {}
        for name, (dtype, shape, data) in given.items():
            x = np.frombuffer(data, {"I64": "i8", "F32": "f4"}[dtype]).reshape(shape)
            shape = [of.get(n, n) for n in shape]
            batch[name] = np.ascontiguousarray(chance.choice(x.ravel(), shape))
        return batch

    return libraries, draw


SIZES = [{"batch": 2, "seq": 12}, {"batch": 4, "seq": 8}, {"batch": 2, "seq": 5}]
GPT = "chargpt-dyn-o24"


def forms(bench):
    """Steps of all kinds."""
    libraries, draw = compiled(bench, GPT, SIZES)
    agree(bench, "gpt", libraries, draw)
    os.environ["CKR_POISON"] = "1"
    agree(bench, "gpt, poisoned", libraries[:2], draw)
    del os.environ["CKR_POISON"]
    for flags in (["--memory-budget", "97%"], ["--tp", "2"]):
        ranks = 2 if "--tp" in flags else 1
        agree(bench, f"gpt {flags}", *compiled(bench, GPT, SIZES[:2], *flags), ranks=ranks)
    sizes = [{"batch": n} for n in (4, 2)]
    agree(bench, "running statistics", *compiled(bench, "resnet-ts17", sizes))
    sizes = [{"batch": n} for n in (8, 16)]
    for flags, replicas in (
        (["--dtype", "bf16", "--resident-copies", "on", "--optimizer", "lion"], 1),
        (["--dtype", "f16", "--grad-accum", "2", "--optimizer", "sgdm"], 1),
        (["--update-in-backward", "on", "--eval", "off"], 1),
        (["--dp", "auto"], 2),
        (["--zero", "1", "--dp", "2"], 2),
        (["--zero", "3", "--dp", "2"], 2),
    ):
        libraries, draw = compiled(bench, "mlp-mse", sizes, *flags, replicas=replicas)
        agree(bench, f"mlp {flags}", libraries, draw, ranks=replicas)
        if "--resident-copies" in flags:
            written(bench, libraries, draw)
    libraries, draw = compiled(bench, "mlp-mse", sizes)
    libraries[1:], _ = compiled(bench, "mlp-mse", sizes[1:], "--grad-accum", "2")
    agree(bench, "one accumulates", libraries, draw)


TEXT = """graph @wide {
	input %%x: f32[%d,512]
	param %%w: f32[512,512] = splat 0.125
	param %%c: f32[512] = splat 1
	%%h = matmul %%x, %%w
	%%r = mul %%h, %%c
	%%loss: f32[] output = reduce_mean %%r {axes=[0,1], keepdims=0}
}
"""


def wide(bench, rows, *flags, change=("", "")):
    path = bench.path(f"wide{rows}{len(flags)}{change[1]}.ck")
    with open(path, "w") as f:
        f.write((TEXT % rows).replace(*change))
    bench.must(bench.ckc(path, *flags), f"{rows} rows {flags}")
    return path[:-3] + ".so"


def mapped():
    """Bytes of memory of the process's own."""
    with open("/proc/self/statm") as f:
        return int(f.read().split()[5]) * os.sysconf("SC_PAGE_SIZE")


def memory(bench):
    """Weights and states (3 MiB) are there once, and the arena is that of the largest library."""
    # no idle team of OpenMP, whose threads' stacks are mapped at a time of their own
    os.environ["GOMP_SPINCOUNT"] = "100"
    sizes = (16, 2048, 1024)
    models = [Context(wide(bench, 16))]
    for rows in sizes[1:]:
        before = mapped()
        models.append(Context(wide(bench, rows), of=models[0]))
        more = (mapped() - before) / 2**20
        own = rows * 512 * 4 / 2**20
        arena = own * 3 if rows == max(sizes) else 0
        bench.check(own < more < own + arena + 1.5, f"{rows} rows: {more:.1f} MiB more")
    for model in models[::-1]:
        model.close()
    del os.environ["GOMP_SPINCOUNT"]


def fails(bench, call, *parts):
    try:
        call()
    except Error as e:
        bench.check(all(p in str(e) for p in parts), f"{parts}: {e}")
        return
    bench.check(False, f"{parts}: no error")


def refusals(bench):
    first, other = wide(bench, 4), wide(bench, 8)
    model = Context(first)

    def refused(so, *parts):
        fails(bench, lambda: Context(so, of=model), "cannot share the model of", *parts)

    refused(wide(bench, 8, "--optimizer", "sgd"), "optimizer: expected adamw, found sgd")
    refused(wide(bench, 8, change=("%c", "%u")), "expected 'c', f32 [512], found 'u', f32 [512]")
    refused(wide(bench, 8, change=("f32[512] =", "f32[512] frozen =")), "found frozen 'c'")
    refused(wide(bench, 8, change=("%c", "%" + 190 * "u")), 190 * "u" + "', f32 [512];")
    for options in (["--state-dtype", "bf16"], ["--no-decay", "c"]):
        text = " ".join(options)
        refused(wide(bench, 8, *options), f"its options: expected none, found {text};")
    both = wide(bench, 8, "--no-decay", "c", "--grad-dtype=f32", "--memory-budget", "100%")
    one = Context(both)
    turned = wide(bench, 4, "--grad-dtype", "f32", "--no-decay=c", "--threads", "1")
    Context(turned, of=one).close()
    one.close()
    other_ranks = wide(bench, 8, "--dp", "2", "--zero", "1")
    fails(bench, lambda: Context(other_ranks, of=model), "expected 2 ranks, found 1")
    model.close()
    model = Context(first)
    twin = Context(other, of=model)
    x = {n: np.ones((n, 512), "f4") for n in (4, 8)}
    model.set({"x": x[4]})
    model.do("begin_step", None)
    for call in (
        lambda: twin.step({"x": x[8]}),
        lambda: twin.save(bench.path("x.st")),
        lambda: Context(other, of=model),
    ):
        fails(bench, call, "in flight: end it first")
    model.do("end_step", None)
    twin.step({"x": x[8]})
    loss = c.c_float()
    fails(bench, lambda: model.do("get", b"loss", c.byref(loss), 4), "has no value")
    bench.check(model.call.ckr_step_count(model.ctx) == 2, "steps are counted together")
    model.step({"x": x[4]})
    largest = Context(wide(bench, 16), of=model)
    fails(bench, lambda: model.do("get", b"loss", c.byref(loss), 4), "has no value")
    largest.close()
    twin.do("set_group", b"w", 0.0, 0.0)
    before = weights(model)
    model.step({"x": x[4]})
    bench.check((weights(model) == before).all(), "a setting of a parameter holds for all")
    lost, info = c.c_void_p(), _lib.Info()
    options = _lib.Options(model_of=model.ctx)
    twin.set({"x": x[8]})
    twin.do("begin_step", None)
    status = model.call.ckr_open(c.byref(lost), os.fsencode(other), c.byref(options))
    bench.check(status and model.call.ckr_tensor(lost, 0, c.byref(info)), "not opened, but used")
    model.call.ckr_close(lost)
    twin.do("end_step", None)
    model.set({"x": x[4]})
    model.do("begin_step", None)
    steps = model.call.ckr_step_count(twin.ctx)
    model.close()  # ends the step, for which others would wait
    bench.check(model.call.ckr_step_count(twin.ctx) == steps + 1, "the step of a closed context")
    twin.step({"x": x[8]})
    twin.close()


def weights(model, name="w"):
    w = np.empty((512, 512), "f4")
    model.do("get", name.encode(), w.ctypes.data, w.nbytes)
    return w


def averages(bench):
    """Moving averages that one library puts in place of parameters all evaluate with."""
    first = Context(wide(bench, 4, "--ema"))
    twin = Context(wide(bench, 8, "--ema"), of=first)
    x = {n: np.full((n, 512), n / 8, "f4") for n in (4, 8)}
    for _ in range(2):
        first.step({"x": x[4]})
        twin.step({"x": x[8]})
    before, average = weights(first), weights(first, "adamw.ema.w")
    twin.do("use_ema", True)
    bench.check((weights(first) == average).all() and (average != before).any(), "averages in use")
    fails(bench, lambda: first.step({"x": x[4]}), "moving averages", "are in use")
    first.do("use_ema", False)
    bench.check((weights(twin) == before).all(), "parameters are back")
    twin.step({"x": x[8]})
    first.close()
    twin.close()


def checked(bench):
    """ckr_check runs the plan and a step without recomputation from the same state."""
    libraries, draw = compiled(bench, GPT, SIZES, "--memory-budget", "97%")
    first = Context(libraries[0])
    model = Context(libraries[1], of=first)
    first.step(draw(0, 0))
    model.set(draw(1, 1))
    model.do("check", None, None, None)
    model.save(bench.path("checked.st"))
    model.close()
    first.close()
    first = Context(libraries[0])
    model = Context(libraries[1], of=first)
    first.step(draw(0, 0))
    model.set(draw(1, 1))
    model.do("step", None, None)
    model.save(bench.path("stepped.st"))
    same = ck.content(bench.path("checked.st")) == ck.content(bench.path("stepped.st"))
    bench.check(same, "a checked step ends as a step does")
    model.close()
    first.close()


def by_shape(bench):
    """A Trainer takes the library that fits its arrays."""
    libraries, draw = compiled(bench, GPT, [*SIZES, {"batch": 4, "seq": 12}])
    with Trainer(libraries[0], lr=0.01) as t:
        for so in libraries[1:]:
            t.add(so)
        losses = [t.step(**draw(k, 0)) for k in (0, 1, 2, 0)]
        with Trainer(libraries[0], lr=0.01) as one:
            bench.check(losses[0] == one.step(**draw(0, 0)), "first step")
        bench.check(t.step(**draw(3, 1)) > 0 and t.steps == 5, "fourth library")
        rows = {k: np.concatenate([draw(3, 5)[k], draw(0, 6)[k]]) for k in draw(0, 0)}
        t.inputs["labels"][...] = 0
        six = t.eval(**rows)
        parts = [t.eval(**{k: x[a:b] for k, x in rows.items()}) for a, b in ((0, 4), (4, 6))]
        mean = (4 * parts[0] + 2 * parts[1]) / 6
        bench.check(abs(six - mean) < 1e-6, f"eval of 6 rows: {six}, of 4 and 2: {mean}")
        four = {k: x[:4] for k, x in rows.items()}
        one = t.eval(**four)
        t.add(compiled(bench, GPT, [{"batch": 2, "seq": 12}])[0][0])
        bench.check(t.eval(**four) == one, "the library of four rows evaluates them")
        bench.check(t.inputs["labels"].shape == (4, 12), "inputs are those of the last step")
        bench.check((t.inputs["labels"] == 0).all(), "eval changes no inputs")
        long = {k: np.zeros((2, 9), x.dtype) for k, x in rows.items()}
        for call in (t.step, t.eval, t.predict):
            fails(bench, lambda: call(**long), "no library fits", "[2, 12]", "[4, 8]", "[2, 9]")
        peak = t.peak_bytes
        t.save_grads(bench.path("g.st"))
        bench.check(t.grad_norm != 0, "the norm is asked for")
        t.step(**draw(2, 7))
        bench.check(os.path.exists(bench.path("g.st")), "gradients are of the library that steps")
        bench.check(t.grad_norm > 0 and t.peak_bytes == peak, f"{t.grad_norm}, {t.peak_bytes}")
    fails(bench, lambda: t.add(libraries[0]), "closed")


def devices(bench, flags):
    """Steps that run after the calls that begin them, as late as they may."""
    sizes = [{"batch": n} for n in (8, 16, 4)]
    for late in "123":
        os.environ["CKR_FAKE_GPU_LATE"] = late
        for more in ([], ["--grad-accum", "2"]):
            libraries, draw = compiled(bench, "mlp-mse", sizes, *flags, *more)
            agree(bench, f"mlp {more}, late {late}", libraries, draw)
        written(bench, libraries, draw)


def written(bench, libraries, draw):
    """What one library writes the next step of another reads."""
    losses = []
    for by in (0, 1):
        first = Context(libraries[0])
        models = first, Context(libraries[1], of=first)
        info = _lib.Info()
        first.do("tensor", 0, c.byref(info))
        for step in range(6):
            models[step % 2].step(draw(step % 2, step))
        x = np.ones(info.nbytes // 4, "f4")
        models[1].set(draw(1, 9))
        models[by].set({info.name.decode(): x})
        loss = c.c_double()
        models[1].do("step", None, c.byref(loss))
        losses.append(loss.value)
        for model in models:
            model.close()
    bench.check(info.kind == b"param" and losses[0] == losses[1], f"written: {losses}")


def main():
    flags = shlex.split(ck.option("--flags", ""))
    bench = ck.Bench()
    os.environ["CKC_HOME"] = os.path.dirname(bench.ckc_path)
    if not os.path.exists(os.path.join(os.environ["CKC_HOME"], "libckr.so")):
        print("shared_model: no libckr.so was built")
        sys.exit(77)
    if flags:
        devices(bench, flags)
        bench.finish()
    memory(bench)
    refusals(bench)
    averages(bench)
    checked(bench)
    by_shape(bench)
    forms(bench)
    bench.finish()


if __name__ == "__main__":
    main()
