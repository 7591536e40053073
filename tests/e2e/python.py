#!/usr/bin/env python3
"""The Python package: the same numbers as ckrun's, and clear errors.

python.py CKC CKRUN
"""

import ctypes
import gc
import json
import os
import struct
import sys
import warnings

import ck
import numpy as np

sys.path.insert(0, os.path.join(ck.HERE, "..", "runtime"))
import files

ROOT = os.path.join(ck.HERE, "..", "..")
sys.path.insert(0, os.path.join(ROOT, "frontend", "python"))


def tensors(path):
    """Arrays of a safetensors file of float32 and int64."""
    kinds = {"F32": "f4", "I64": "i8"}
    return {
        k: np.array(v, kinds[t]).reshape(dims)
        for k, (t, dims, v) in files.st_read(path)[0].items()
        if t in kinds
    }


def layout(bench):
    """Structs lie as the C compiler lays them out."""
    from ckc import _lib

    text = '#include <stdio.h>\n#include "ckr.h"\nint main(void) {\n'
    want = []
    for name, s in (
        ("ckr_options", _lib.Options),
        ("ckr_info", _lib.Info),
        ("ckr_hyper", _lib.Hyper),
        ("ckr_score", _lib.Score),
        ("ckr_init", _lib.Init),
    ):
        text += f'printf("%zu\\n", sizeof(struct {name}));\n'
        want.append(ctypes.sizeof(s))
        for field, _ in s._fields_:
            text += f'printf("%zu\\n", offsetof(struct {name}, {field}));\n'
            want.append(getattr(s, field).offset)
    with open(bench.path("layout.c"), "w") as f:
        f.write(text + "}\n")
    done = bench.run(
        [
            "cc",
            "-I",
            os.path.join(ROOT, "runtime"),
            bench.path("layout.c"),
            "-o",
            bench.path("layout"),
        ]
    )
    if bench.must(done, "layout.c"):
        got = [int(x) for x in bench.run([bench.path("layout")]).stdout.split()]
        bench.check(got == want, f"structs: {want}, in C {got}")


def beside(bench, t, batch, name):
    """save_async writes the file of save, also while steps go on, and reports a failure once."""
    plain, path = bench.path("plain.st"), bench.path("beside.st")
    for _ in range(2):
        t.save(plain)
        t.save_async(path)
        t.step(**batch)
        t.save_wait()
        bench.check(t.save_done(), f"{name}: save_async is not done")
        bench.check(ck.content(path) == ck.content(plain), f"{name}: save_async, other bits")
    for call in t.save, t.save_async:
        try:
            call(bench.path("nowhere/x.st"))
            bench.check(False, f"{name}: {call}: wrote to no folder")
        except Exception as e:
            bench.check("cannot write" in str(e), f"{name}: {call}: {e}")
    t.save_async(path)  # close() waits


def trains(bench, ckc, name, dims, **options):
    """Losses, weights and evaluation are ckrun's, to the bit."""
    path, log, end = os.path.join(ck.MODELS, name), bench.path("log"), bench.path("end.st")
    model = ckc.compile(path + ".onnx", bench.path(name + ".so"), dim=dims, **options)
    bench.check(
        model.plan["summary"]["peak_bytes"] > 0 and os.path.exists(model.path), f"{name}: {model}"
    )
    batch = tensors(path + ".inputs.safetensors")
    with ckc.Trainer(model, lr=0.01, weight_decay=0.1) as t:
        losses = [t.step(**batch)]
        for k, x in t.inputs.items():  # in place
            x[...] = batch[k]
        losses += [t.step() for _ in range(3)]
        state, at, loss = t.state_dict(), t.steps, t.eval()
        t.save(bench.path("python.st"))
        with ckc.Trainer(model, lr=0.01, weight_decay=0.1) as again:
            again.resume(bench.path("python.st"))
            bench.check(
                again.steps == at == 4 and again.step(**batch) == t.step(), f"{name}: resumed"
            )
        beside(bench, t, batch, name)
    run = [model.path, "--inputs", path + ".inputs.safetensors"]
    bench.must(
        bench.ckrun(
            *run,
            "--steps",
            4,
            "--lr",
            0.01,
            "--weight-decay",
            0.1,
            "--log",
            log,
            "--save",
            end,
            "--quiet",
        ),
        f"{name}: ckrun",
    )
    bench.check(
        [struct.pack("f", x) for x in losses] == [struct.pack("f", x) for x in ck.losses(log)],
        f"{name}: {losses}, ckrun's {ck.losses(log)}",
    )
    saved = tensors(end)
    bench.check(
        state and all(np.array_equal(x, saved[k]) for k, x in state.items()),
        f"{name}: other weights than ckrun's",
    )
    bench.must(
        bench.ckrun("eval", *run, "--init", end, "--log", log, "--quiet"), f"{name}: ckrun eval"
    )
    bench.check(
        np.float32(loss) == np.float32(ck.log_rows(log)[0]["loss"]),
        f"{name}: eval {loss}, ckrun's {ck.log_rows(log)[0]}",
    )
    return model, batch


def accumulates(bench, ckc):
    """Two micro-batches in one array are a batch of both, by a mean of means."""
    path = os.path.join(ck.MODELS, "mlp-mse")
    batch = tensors(path + ".inputs.safetensors")
    whole = ckc.compile(path + ".onnx", bench.path("whole.so"), dim={"batch": 8})
    parts = ckc.compile(path + ".onnx", bench.path("parts.so"), dim=["batch=4"], grad_accum=2)
    with ckc.Trainer(whole) as a, ckc.Trainer(parts) as b:
        for _ in range(3):
            x, y = a.step(**batch), b.step(**batch)
            bench.check(abs(x - y) < 1e-5 * abs(x), f"micro-batches: {y}, of the whole {x}")
        said(
            bench,
            ckc,
            lambda: b.step(image=batch["image"][:4]),
            "2 micro-batches of [4, 1, 28, 28]",
        )
        said(
            bench,
            ckc,
            lambda: b.step(**{**batch, "target": batch["target"].astype(complex)}),
            "try: x.astype(",
        )


def counts(bench, ckc):
    """Labels of two micro-batches, most of which one ignores, are counted first, and must be the
    same when steps read them."""
    path = bench.path("k.ck")
    with open(path, "w") as f:
        f.write(
            "graph @k {\n\tinput %x: f32[N,6]\n\tparam %w: f32[6,5] = splat 0.5\n\t%z output = matmul %x, %w\n}\n"
        )
    rng = np.random.default_rng(7)
    batch = {
        "x": np.float32(rng.normal(0, 1, (8, 6))),
        "labels": np.array([-100, -100, 3, -100, 1, 0, 4, 2]),
    }
    whole = ckc.compile(path, bench.path("counted.so"), loss="ce:z", dim=["N=8"])
    parts = ckc.compile(path, bench.path("rounds.so"), loss="ce:z", dim=["N=4"], grad_accum=2)
    with ckc.Trainer(whole) as a, ckc.Trainer(parts) as b:
        for _ in range(2):
            x, y = a.step(**batch), b.step(**batch)
            bench.check(
                abs(x - y) < 1e-5 * abs(x),
                f"micro-batches with ignored labels: {y}, of the whole {x}",
            )
        place, told = b._set, []

        def other(arrays):
            told.append(sorted(arrays))
            place({k: v + (k == "labels" and len(told) > 2) for k, v in arrays.items()})

        b._set = other
        said(
            bench,
            ckc,
            lambda: b.step(**batch),
            "the inputs differ from those of the pass that counts",
        )
        bench.check(told[:3] == [["labels"], ["labels"], ["labels", "x"]], f"set were {told}")


def said(bench, ckc, call, words):
    try:
        call()
    except (ckc.Error, TypeError) as e:
        bench.check(words in str(e), f"'{words}' expected: {e}")
    else:
        bench.check(False, f"'{words}' expected, no error")


def errors(bench, ckc, model, batch):
    said(bench, ckc, lambda: ckc.compile(bench.path("none.onnx")), "none.onnx")
    said(
        bench,
        ckc,
        lambda: ckc.compile(
            os.path.join(ck.MODELS, "mlp-mse.onnx"),
            bench.path("no.so"),
            budget="1000B",
            dim={"batch": 8},
        ),
        "smallest budget",
    )
    said(bench, ckc, lambda: ckc.Trainer(bench.path("none.so")), "none.so")
    said(bench, ckc, lambda: ckc.Trainer(model, rate=1), "unknown setting 'rate'")
    with ckc.Trainer(model) as t:
        name, x = next(iter(batch.items()))
        said(
            bench,
            ckc,
            lambda: t.step(nobody=x),
            f"unknown input 'nobody'; expected one of {', '.join(t.inputs)}",
        )
        said(
            bench,
            ckc,
            lambda: t.step(**{name: x[:-1]}),
            f"input '{name}': expected shape {list(x.shape)}",
        )
        said(
            bench, ckc, lambda: t.load_state_dict({"nobody": x}), "no parameter or buffer 'nobody'"
        )
        said(bench, ckc, lambda: t.resume(bench.path("none.st")), "none.st")
        said(bench, ckc, lambda: setattr(t.hyper, "rate", 1), "unknown setting 'rate'")
        bench.check(not hasattr(t.inputs, "__setitem__"), "inputs can be replaced")
        kept = {k: v.copy() for k, v in t.inputs.items()}
        said(
            bench,
            ckc,
            lambda: t.step(**{k: v + 1 if k == name else v[:-1] for k, v in batch.items()}),
            "expected shape",
        )
        bench.check(
            all(np.array_equal(v, kept[k]) for k, v in t.inputs.items()),
            "a step that is refused has set inputs",
        )
        before = t.state_dict()
        t.load_state_dict({k: v * 0 for k, v in before.items()})
        bench.check(all((v == 0).all() for v in t.state_dict().values()), "load_state_dict")
    said(bench, ckc, lambda: t.step(**batch), "is closed")
    said(bench, ckc, lambda: ckc.Trainer(model, lr=-1), "cannot be negative")
    missing(bench, ckc, model, batch)
    converts(bench, ckc, model, batch)
    loads(bench, ckc, model)
    view = ckc.Trainer(model).inputs[name]  # which keeps it open
    gc.collect()
    view[...] = 1
    bench.check((view == 1).all(), "a view outlives the name of its trainer")


def missing(bench, ckc, model, batch):
    """No input is what an earlier batch, or nobody, made it: calls without it fail, name it and
    change nothing."""
    (a, x), (b, y) = batch.items()
    with ckc.Trainer(model) as t:
        for call in t.step, t.eval:
            said(bench, ckc, call, f"inputs '{a}', '{b}' were never set")
            said(bench, ckc, lambda: call(**{a: x}), f"no array for input '{b}'")
            said(bench, ckc, lambda: call(**{b: y}), f"no array for input '{a}'")
        said(bench, ckc, t.predict, f"input '{a}' was never set")
        said(bench, ckc, lambda: t.predict(**{b: y}), f"no array for input '{a}'")
        t.inputs[a][...] = x
        said(bench, ckc, t.step, f"input '{b}' was never set")
        bench.check(
            list(t.inputs) == [a, b] and b in t.inputs and len(t.inputs) == 2 and t.steps == 0,
            f"inputs {t.inputs}, {t.steps} steps",
        )
        said(bench, ckc, t.eval, f"input '{b}' was never set")
        first, before = t.step(**batch), t.state_dict()
        for call in t.step, t.eval:
            said(bench, ckc, lambda: call(**{a: x}), f"no array for input '{b}'")
        bench.check(
            t.steps == 1 and all((v == before[k]).all() for k, v in t.state_dict().items()),
            "a step that was refused has trained",
        )
        bench.check(t.step() < first, "a step without arrays is one of the batch that is set")
    parts = ckc.compile(
        os.path.join(ck.MODELS, "mlp-mse.onnx"),
        bench.path("parts.so"),
        dim={"batch": 4},
        grad_accum=2,
    )
    with ckc.Trainer(parts) as t:
        said(bench, ckc, lambda: t.step(**{a: x}), f"no array for input '{b}'")
        said(bench, ckc, t.step, f"inputs '{a}', '{b}' were never set")


def converts(bench, ckc, model, batch):
    """Strides do not matter; values are converted within their kind, or refused."""
    (a, x), (b, y) = batch.items()
    with ckc.Trainer(model) as t, ckc.Trainer(model) as u:
        want = t.step(**batch)
        turned = np.asfortranarray(x.astype("f8"))[::1]
        wide = np.repeat(y, 2, axis=-1)[..., ::2]
        bench.check(
            not turned.flags.c_contiguous
            and not wide.flags.c_contiguous
            and u.step(**{a: turned, b: wide}) == want,
            "strided arrays",
        )
        bench.check(t.eval(**{a: x.tolist(), b: y}) == t.eval(**batch), "lists")
        bench.check(
            t.eval(**{a: np.zeros(x.shape, int).tolist(), b: y}) == t.eval(**{a: x * 0, b: y}),
            "lists of integers",
        )
        bench.check(t.eval(**{a: x > 0, b: y}) == t.eval(**{a: np.float32(x > 0), b: y}), "bools")
        for call in t.step, t.eval, t.predict:
            for bad in (
                x.astype("u1"),
                x.astype("i8"),
                x.astype(complex),
                x.astype(str),
                np.full(x.shape, None),
            ):
                said(
                    bench,
                    ckc,
                    lambda: call(**{a: bad, b: y}),
                    f"input '{a}' is f32, but the array is {bad.dtype}; try: x.astype(",
                )
            for bad in x.reshape(-1), x.T, x[:0], x[..., None]:
                said(
                    bench,
                    ckc,
                    lambda: call(**{a: bad, b: y}),
                    f"input '{a}': expected shape {list(x.shape)}, found {list(bad.shape)}",
                )
            said(
                bench,
                ckc,
                lambda: call(**{a: x.astype("f8") + 1e60, b: y}),
                f"input '{a}' is f32, which cannot hold 1e+60",
            )
            said(bench, ckc, lambda: call(**batch, more=x), "unknown input 'more'")


def loads(bench, ckc, model):
    """load_state_dict takes each array in its shape, or changes nothing."""
    with ckc.Trainer(model) as t:
        start = t.state_dict()
        name = next(k for k, v in start.items() if v.ndim == 2 and v.shape[0] != v.shape[1])
        w, other = start[name], next(k for k in start if k != name)
        for bad in w.T, w.reshape(-1), w[None], w[:0], w[:1]:
            said(
                bench,
                ckc,
                lambda: t.load_state_dict({other: start[other] + 1, name: bad}),
                f"'{name}': expected shape {list(w.shape)}, found {list(bad.shape)}",
            )
        for bad in w.astype("i4"), w.astype("u1"), w.astype(complex):
            said(
                bench,
                ckc,
                lambda: t.load_state_dict({other: start[other] + 1, name: bad}),
                f"'{name}' is f32, but the array is {bad.dtype}",
            )
        said(
            bench,
            ckc,
            lambda: t.load_state_dict({name: w + 1, "nobody": w}),
            "no parameter or buffer 'nobody'",
        )
        said(
            bench,
            ckc,
            lambda: t.load_state_dict({name: w.astype("f8") + 1e60}),
            f"'{name}' is f32, which cannot hold 1e+60",
        )
        bench.check(
            all((v == start[k]).all() for k, v in t.state_dict().items()),
            "what is refused has changed weights",
        )
        t.load_state_dict({name: np.asfortranarray(w.astype("f8") * 2)})
        bench.check(
            (t.state_dict()[name] == w * 2).all() and (t.state_dict()[other] == start[other]).all(),
            "weights in another order of memory",
        )


def predicts(bench, ckc):
    """What is predicted has the loss that eval tells."""
    path = os.path.join(ck.MODELS, "gpt2-logits")
    batch = tensors(path + ".inputs.safetensors")
    with open(path + ".json") as f:
        meta = json.load(f)
    dims, loss = meta.get("dims", {}), meta["loss"]
    model = ckc.compile(
        path + ".onnx", bench.path("logits.so"), dim=dims, loss="ce:" + loss["logits"]
    )
    with ckc.Trainer(model) as t:
        ids = {k: v for k, v in batch.items() if k != loss["labels"]}
        y = t.predict(**ids)
        said(bench, ckc, t.eval, "'labels' were never set")
        said(
            bench,
            ckc,
            lambda: t.predict(**{k: v.astype("f4") for k, v in ids.items()}),
            "try: x.astype(",
        )
        said(
            bench,
            ckc,
            lambda: t.predict(**{k: v.astype("u8") + (1 << 63) for k, v in ids.items()}),
            "cannot hold",
        )
        y = y if isinstance(y, np.ndarray) else y[loss["logits"]]
        target = batch[loss["labels"]]
        got = t.eval(**ids, labels=target)
    p = y.astype("f8").reshape(-1, y.shape[-1])
    p = p - np.log(np.exp(p).sum(-1, keepdims=True))
    k = target.reshape(-1)
    want = -p[k >= 0, k[k >= 0]].mean()
    bench.check(
        abs(got - want) < 1e-5 * want,
        f"predict: the loss of what is predicted is {want}, eval's {got}",
    )


class Half:
    """As a tensor of torch is that NumPy cannot read."""

    dtype = "torch.bfloat16"

    def __init__(self, x):
        self.x = x

    def detach(self):
        return self

    def float(self):
        return self.x

    def __dlpack__(self):
        raise BufferError("bfloat16")


def halves(bench, ckc):
    """bfloat16 of torch for a float input, and floats for an input of bfloat16."""
    x = np.float32([[1.5, -2.25, 3], [0, 1, 2]] * 2)
    with open(bench.path("half.ck"), "w") as f:
        f.write(
            "graph @half {\n\tinput %x: bf16[4,3]\n\tinput %t: f32[4,3]\n\tparam %w: f32[3] = splat 1\n\t%f = cast %x {to=f32}\n"
            "\t%y output = mul %f, %w\n\t%d = sub %y, %t\n\t%q = mul %d, %d\n\t%loss: f32[] output = reduce_mean %q {axes=[0,1], keepdims=0}\n}\n"
        )
    with ckc.Trainer(ckc.compile(bench.path("half.ck"), bench.path("half.so"), loss="loss")) as t:
        got = t.predict(x=x, t=Half(x))
        bench.check((got == x).all() and t.eval(x=x, t=Half(x)) == 0, f"bfloat16: {got}")
        got = t.predict(x=np.full((4, 3), 1 + 3 / 256, "f4"))
        bench.check(
            (got == 1 + 4 / 256).all() and np.isnan(t.predict(x=np.full((4, 3), np.nan))).all(),
            f"bfloat16: 1 + 3/256 becomes {got}",
        )
        said(bench, ckc, lambda: t.eval(x=x.astype("i4")), "try: x.astype(")
        # the largest is 2^128 - 2^120; what lies half a unit beyond it rounds to 2^128
        most, beyond = 2.0**128 - 2.0**120, 2.0**128 - 2.0**119
        got = t.predict(x=np.full((4, 3), -(beyond - 2.0**104)))
        bench.check(
            (got == -most).all() and np.isinf(t.predict(x=np.full((4, 3), np.inf))).all(),
            f"the largest bfloat16: {got}",
        )
        for bad in 1e300, -1e300, beyond, np.float32(beyond):
            said(
                bench,
                ckc,
                lambda: t.eval(x=np.where(x == 3, np.asarray(bad), x), t=x),
                f"input 'x' is bf16, which cannot hold {bad}",
            )


NET = """graph @net {
	input %x: f32[4,3]
	param %w: f32[3,5] = {@W}
	%z output = matmul %x, %w
	%m: f32[5] output = reduce_max %z {axes=[0], keepdims=0}
}
"""


def warned(words, call):
    """Whether a call gives a Python warning with these words, and what it returns."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        result = call()
    return any(words in str(w.message) for w in found), result


MIXED = """graph @mixed {
	input %x: f32[4,3]
	input %t: f32[4,3]
	param %w: f32[3] = splat 1
	%h = mul %x, %w
	%mean = reduce_mean %h {axes=[0], keepdims=1}
	%y output = sub %h, %mean
	%d = sub %h, %t
	%q = mul %d, %d
	%loss: f32[] output = reduce_mean %q {axes=[0,1], keepdims=0}
}
"""


def warns(bench, ckc):
    """What ckc and ckrun warn of is a warning in Python, too; evaluation leaves the inputs of the
    next step as they are."""
    with open(bench.path("mixed.ck"), "w") as f:
        f.write(MIXED)
    got, model = warned(
        "does nothing",
        lambda: ckc.compile(
            os.path.join(ck.MODELS, "mlp-mse.onnx"),
            bench.path("warned.so"),
            batchnorm="batch",
            dim={"batch": 2},
        ),
    )
    bench.check(got and "does nothing" in model.messages, "compile: no warning")
    model = ckc.compile(bench.path("mixed.ck"), bench.path("mixed.so"), loss="loss")
    got, t = warned("nesterov has no effect: ", lambda: ckc.Trainer(model, lr=0.5, nesterov=True))
    bench.check(got, "nesterov of adamw: no warning")
    files.st_write(bench.path("more.st"), {"w": ("F32", [3], [1] * 3), "v": ("F32", [1], [1])})
    got = warned("1 of 2 tensors is not used", lambda: t.init(bench.path("more.st")))[0]
    bench.check(got, "init: no warning")
    x = np.float32(np.sin(np.arange(12))).reshape(4, 3)
    for rows, expected in ((4, False), (3, True), (9, True)):
        got = warned(
            "rows of 'y' may depend on the other samples",
            lambda: t.predict(x=np.resize(x, (rows, 3))),
        )[0]
        bench.check(got == expected, f"predict of {rows} rows: warned {got}")
    t.inputs["x"][...], t.inputs["t"][...] = x, 0
    t.predict(x=2 * x)
    t.eval(x=3 * x, t=x)
    loss = t.step()
    bench.check(abs(loss - np.mean(x.astype("f8") ** 2)) < 1e-6, f"after eval: {loss}")
    t.close()


def averages(bench, ckc):
    """Inside `with t.ema()` the parameters are the moving averages, and outside they have the bits
    they had."""
    path = os.path.join(ck.MODELS, "mlp-mse")
    batch = tensors(path + ".inputs.safetensors")
    end, onnx = bench.path("ema.st"), bench.path("ema.onnx")
    model = ckc.compile(
        path + ".onnx", bench.path("ema.so"), dim={"batch": 8}, loss="loss", ema=True
    )
    with ckc.Trainer(model, lr=0.01, ema_decay=0.5) as t:
        said(bench, ckc, lambda: t.ema().__enter__(), "no values before the first update")
        for _ in range(3):
            t.step(**batch)
        t.save(end)
        want = {k: v for k, v in tensors(end).items() if k.startswith("adamw.ema.")}
        before, plain = t.state_dict(), t.eval(**batch)
        with t.ema() as same:
            now, averaged = same.state_dict(), same.eval(**batch)
            t.export_onnx(onnx)
            for call in (
                lambda: t.step(**batch),
                lambda: t.save(bench.path("no.st")),
                lambda: t.resume(end),
                lambda: t.init(end),
                lambda: t.load_state_dict(before),
            ):
                said(bench, ckc, call, "the moving averages of the parameters are in use")
        bench.check(
            {"adamw.ema." + k: v.tobytes() for k, v in now.items()}
            == {k: v.tobytes() for k, v in want.items()},
            "state_dict() is not that of the averages",
        )
        after = t.state_dict()
        bench.check(
            all(after[k].tobytes() == v.tobytes() for k, v in before.items())
            and t.eval(**batch) == plain != averaged,
            "the parameters are not back",
        )
        again = bench.path("again.st")
        t.save(again)
        bench.check(ck.tensors(again) == ck.tensors(end), "the exchange changes checkpoints")
        t.init(end, ema=True)
        bench.check(t.eval(**batch) == averaged, "init(ema=True) is not the averages")
        t.load_state_dict(now)
        bench.check(t.eval(**batch) == averaged, "load_state_dict() of averages")
    exported = ck.content(onnx)
    bench.check(all(v.tobytes() in exported for v in want.values()), "export_onnx() in ema()")
    model = ckc.compile(path + ".onnx", bench.path("no-ema.so"), dim={"batch": 8}, loss="loss")
    got, t = warned("try: ckc.compile(ema=True)", lambda: ckc.Trainer(model, ema_decay=0.5))
    bench.check(got, "ema_decay without averages: no warning")
    said(bench, ckc, lambda: t.ema().__enter__(), "compile it with ckc --ema")
    said(bench, ckc, lambda: ckc.Trainer(model, ema_decay=-1), "cannot be negative")
    t.close()


def any_number(bench, ckc):
    """Arrays of rows that fill no batch: predictions, and the loss of all by weights of classes."""
    weights = np.array([0.5, 2, 0, 1, 1.5])
    w = np.float32(np.sin(np.arange(15))).reshape(3, 5)
    x = np.float32(np.cos(np.arange(33))).reshape(11, 3)
    y = np.arange(11) * 3 % 5
    with open(bench.path("net.ck"), "w") as f:
        f.write(NET.replace("@W", ",".join(map(str, w.ravel()))))
    model = ckc.compile(
        bench.path("net.ck"), bench.path("net.so"), loss="ce:z,weights=0.5/2/0/1/1.5"
    )
    z = x.astype("f8") @ w
    each = np.log(np.exp(z).sum(1)) - z[np.arange(11), y]
    with ckc.Trainer(model) as t:
        for n in 1, 4, 6, 8, 11:
            got, want = (
                t.eval(x=x[:n], labels=y[:n]),
                (weights[y] * each)[:n].sum() / weights[y][:n].sum(),
            )
            bench.check(abs(got - want) < 1e-5, f"eval of {n} rows: {got}, expected {want}")
            got = t.predict(x=x[:n])
            got = got["z"] if n == 4 else got
            bench.check(
                got.shape == (n, 5) and np.abs(got - z[:n]).max() < 1e-5,
                f"predict of {n} rows: {got}",
            )
        said(bench, ckc, lambda: t.eval(x=x, labels=y[:-1]), "the same number of rows")
        said(bench, ckc, lambda: t.eval(x=x[:0], labels=y[:0]), "the same number of rows")


def tunes(bench, ckc):
    """Groups, adapters and weights of other names, as ckrun has them."""
    path, batch = (
        os.path.join(ck.MODELS, "mlp-mse"),
        tensors(os.path.join(ck.MODELS, "mlp-mse.inputs.safetensors")),
    )
    model = ckc.compile(path + ".onnx", bench.path("tune.so"), dim={"batch": 8})
    with ckc.Trainer(model, lr=0.01, weight_decay=0.1) as t:
        start = t.state_dict()
        names = sorted(start)
        first, last = names[0], names[-1]
        bench.check(
            t.set_group(first, lr=0) == [first]
            and t.set_group(last, lr=2, weight_decay=0) == [last],
            "groups",
        )
        t.step(**batch)
        end = t.state_dict()
        bench.check(
            (end[first] == start[first]).all() and (end[last] != start[last]).any(),
            "a group of rate 0 moves, or another does not",
        )
        said(bench, ckc, lambda: t.set_group("nosuch*"), "nosuch")
        said(bench, ckc, lambda: t.set_group(first, lr=-1), "negative")
        t.save(bench.path("all.st"))
    run = bench.ckrun(
        model.path,
        "--inputs",
        path + ".inputs.safetensors",
        "--steps",
        "1",
        "--lr",
        "0.01",
        "--weight-decay",
        "0.1",
        "--lr-scale",
        f"{first}=0",
        "--lr-scale",
        f"{last}=2",
        "--decay",
        f"{last}=0",
        "--save",
        bench.path("run.st"),
    )
    if bench.must(run, "groups by ckrun"):
        a, b = tensors(bench.path("all.st")), tensors(bench.path("run.st"))
        bench.check(all((a[k] == b[k]).all() for k in names), "groups: other bits than ckrun's")
    with ckc.Trainer(model) as t:
        said(bench, ckc, lambda: t.init(bench.path("all.st"), map={"nosuch.": "x."}), "nosuch.")
        bench.check(t.init(bench.path("all.st"), skip=first) == [first], "init: what was left")
        state = t.state_dict()
        bench.check(
            (state[first] == start[first]).all() and (state[last] == end[last]).all(),
            "init: weights",
        )
    weight = next(k for k in names if start[k].ndim == 2)
    with ckc.Trainer(
        ckc.compile(path + ".onnx", bench.path("lora.so"), dim={"batch": 8}, lora={weight: 2}),
        lr=0.1,
    ) as t:
        said(bench, ckc, lambda: t.set_group(weight), "no trainable parameter matches")
        bench.check(
            len(t.set_group("*", lr=1)) == 2, "a group of all has parameters that are not trained"
        )
        losses = [t.step(**batch) for _ in range(4)]
        t.save_adapters(bench.path("adapter.st"))
        t.save_merged(bench.path("merged.st"))
        want = t.eval(**batch)
        t.init([bench.path("all.st"), bench.path("adapter.st")])
        t.init(bench.path("adapter.st"))
        said(
            bench, ckc, lambda: t.init([bench.path("adapter.st"), bench.path("none.st")]), "none.st"
        )
    bench.check(
        losses[-1] < losses[0] and len(tensors(bench.path("adapter.st"))) == 2,
        f"adapters: {losses}",
    )
    with ckc.Trainer(model) as t:
        t.init(bench.path("merged.st"))
        bench.check(
            abs(t.eval(**batch) - want) < 1e-5 * max(1, abs(want)),
            "merged weights give another loss",
        )


class Negated(Half):
    """As z.conj().imag of torch: its elements are those of DLPack with the other sign."""

    dtype = "torch.float32"

    def resolve_neg(self):
        return -self.x


def again(bench, ckc):
    """What is compiled to a path is what runs, whatever the process has run from that path before,
    or runs still."""
    text, where = (
        "graph @g {\n\tinput %x: f32[2]\n\tconst %c: f32[] = {NUMBER}\n\t%y output = mul %x, %c\n}\n",
        os.getcwd(),
    )
    open_ones = []
    for number in 2, 3, 4:
        for folder in "one", "two":
            os.makedirs(bench.path(folder), exist_ok=True)
            os.chdir(bench.path(folder))
            factor = number * (10 if folder == "two" else 1)
            with open("g.ck", "w") as f:
                f.write(text.replace("NUMBER", str(factor)))
            model = ckc.compile("g.ck", "g.so", forward_only=True)
            for close in True, False:
                t = ckc.Trainer(model)
                bench.check(
                    t.predict(x=np.float32([1, 2]))[0] == factor,
                    f"{folder}: another library than the one compiled now",
                )
                if close:
                    t.close()
                else:
                    open_ones.append((t, factor))
    for t, want in open_ones:
        got = t.predict(x=Negated(np.float32([-1, -2])))
        bench.check(
            (got == [want, 2 * want]).all(),
            f"another library, or the other sign: {got}, expected {want} times 1, 2",
        )
        t.close()
    os.chdir(where)
    # overwritten in place: the code that runs is neither this nor that
    t = ckc.Trainer(model)
    with open(model.path, "r+b") as f:
        f.seek(0, 2)
        f.write(b"\0")
    said(bench, ckc, lambda: ckc.Trainer(model), "overwritten")
    t.close()


def needs(bench, ckc):
    """What the loader does not find is named, with the package of what Debian has."""
    from ckc import _lib

    def make(what, name, *options):
        done = bench.run(
            [
                "cc",
                "-x",
                "c",
                "/dev/null",
                "-x",
                "none",
                "-shared",
                "-o",
                bench.path(name),
                *options,
            ]
        )
        return bench.must(done, what)

    none = bench.path("libckc-none.so.7")
    found = make("library", "libckc-none.so.7", "-Wl,-soname,libckc-none.so.7") and make(
        "libckr", "libckr.so", "-Wl,--no-as-needed", none
    )
    with open(bench.path("main.c"), "w") as f:
        f.write("int main(void) { return 0; }\n")
    done = bench.run(["cc", "main.c", "-o", "ckc", "-Wl,--no-as-needed", none])
    if not (bench.must(done, "program") and found):
        return
    os.remove(none)
    home, loaded, _lib._loaded = os.environ["CKC_HOME"], _lib._loaded, None
    os.environ["CKC_HOME"] = bench.work
    said(bench, ckc, lambda: ckc.compile("x.onnx"), "libraries not found: libckc-none.so.7")
    try:
        _lib.library()
        bench.check(False, "libckr.so without its library: no error")
    except OSError as e:
        bench.check("libraries not found: libckc-none.so.7" in str(e), f"libckr.so: {e}")
    os.environ["CKC_HOME"], _lib._loaded = home, loaded
    bench.check(_lib.missing(bench.ckc_path) is None, "ckc has all libraries")
    text = _lib._not_found("ckc", ["libglpk.so.40", "libprotobuf-c.so.1"])
    bench.check(text.endswith("apt-get install libglpk40 libprotobuf-c1"), text)


def main():
    bench = ck.Bench()
    os.environ["CKC_HOME"] = os.path.dirname(bench.ckc_path)
    if not os.path.exists(os.path.join(os.environ["CKC_HOME"], "libckr.so")):
        print("python: no libckr.so was built")
        sys.exit(77)
    import ckc

    layout(bench)
    model, batch = trains(bench, ckc, "mlp-mse", {"batch": 8}, budget="100%")
    trains(bench, ckc, "cnn-bn-merged", {})
    errors(bench, ckc, model, batch)
    accumulates(bench, ckc)
    counts(bench, ckc)
    predicts(bench, ckc)
    warns(bench, ckc)
    averages(bench, ckc)
    any_number(bench, ckc)
    halves(bench, ckc)
    tunes(bench, ckc)
    again(bench, ckc)
    needs(bench, ckc)
    bench.finish()


if __name__ == "__main__":
    main()
