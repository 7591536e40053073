"""Train ONNX models inside a memory budget.

    model = ckc.compile("model.onnx", budget="60%", loss="ce:logits")
    with ckc.Trainer(model, lr=1e-3) as t:
        for x, y in batches:
            loss = t.step(image=x, labels=y)
        print(t.eval(image=x_test, labels=y_test), t.predict(image=x_test).shape)
        t.save("run.safetensors")

Arrays are NumPy arrays, or anything that np.asarray or np.from_dlpack accepts, such as torch
tensors.  Errors are ckc.Error, with the message of ckc or libckr.
"""

import collections.abc as _abc
import contextlib as _contextlib
import ctypes as _c
import fnmatch as _fnmatch
import json as _json
import os as _os
import subprocess as _subprocess
import tempfile as _tempfile
import warnings as _warnings

import numpy as _np

from . import _lib

__all__ = ["Error", "Model", "Trainer", "compile"]

_TYPES = {
    "f32": "f4",
    "f64": "f8",
    "f16": "f2",
    "i8": "i1",
    "i16": "i2",
    "i32": "i4",
    "i64": "i8",
    "u8": "u1",
    "u16": "u2",
    "u32": "u4",
    "u64": "u8",
    "bool": "?",
    "bf16": "u2",
}


# Options without a value, which are off unless given.
_FLAGS = "ema forward-only place sp curve stats debug quiet".split()


class Error(RuntimeError):
    """An error reported by ckc or libckr."""


class Model:
    """A compiled model: .path of the library, .messages of the compiler (its warnings are Python's,
    too), .plan (the contents of `ckc --json`)."""

    def __init__(self, path, messages="", plan=None):
        self.path, self.messages, self.plan = _os.path.abspath(path), messages, plan

    def __repr__(self):
        peak = f", peak {self.plan['summary']['peak_bytes']} bytes" if self.plan else ""
        return f"<ckc.Model {self.path}{peak}>"


def _words(option, value):
    """--option and its value as on the command line, repeated for a list.  True: the option alone;
    False: off."""
    flag = "--" + option.replace("_", "-")
    if value is True:
        return [flag]
    if value is None or (value is False and option.replace("_", "-") in _FLAGS):
        return []
    if value is False:
        return [flag, "off"]
    if isinstance(value, dict):
        value = [f"{k}={v}" for k, v in value.items()]
    return [
        w for v in (value if isinstance(value, (list, tuple)) else [value]) for w in (flag, str(v))
    ]


def compile(onnx, output=None, budget=None, **options):
    """Compile an ONNX file and return a Model.

    output: path of the library (default: the ONNX file's, with .so).  budget: --memory-budget, such
    as "60%" or a number of bytes.  options: those of `ckc --help` with _ for -: dim={"batch": 8},
    loss="ce:logits", dtype="bf16", freeze=["emb*", "head*"], lora={"*.q_proj.weight": "8:16"},
    target="cuda".  outputs: --output, such as "logits", because output is the path.
    """
    for option in ("plan_only", "help", "version"):
        if option in options:
            raise TypeError(f"'{option}' does not compile a model: run the program ckc instead")
    output = output or _os.path.splitext(_os.fspath(onnx))[0] + ".so"
    with _tempfile.TemporaryDirectory(prefix="ckc-") as folder:
        plan = _os.path.join(folder, "plan.json")
        argv = [
            _lib.compiler(),
            _os.fspath(onnx),
            "-o",
            _os.fspath(output),
            "--json",
            plan,
            *_words("memory-budget", budget),
        ]
        for option, value in options.items():
            argv += _words("output" if option == "outputs" else option, value)
        done = _subprocess.run(
            argv, stdout=_subprocess.PIPE, stderr=_subprocess.STDOUT, text=True, errors="replace"
        )
        if done.returncode == 127:  # of the loader
            raise Error(_lib.missing(argv[0]) or done.stdout.strip())
        if done.returncode:
            raise Error(done.stdout.strip() or f"ckc ended with status {done.returncode}")
        for line in done.stdout.splitlines():
            if line.startswith("ckc: ") and ": warning: " in line:
                _warnings.warn(line, stacklevel=2)
        with open(plan) as f:
            return Model(output, done.stdout, _json.load(f))


def _array(x):
    if (
        str(getattr(x, "dtype", "")) == "torch.bfloat16"
    ):  # which neither NumPy nor its DLPack reader supports
        x = x.detach().float()
    try:
        if hasattr(x, "__dlpack__") and not isinstance(x, _np.ndarray):
            for view in "detach", "resolve_neg":  # of torch; DLPack has no lazy negation
                x = getattr(x, view)() if hasattr(x, view) else x
            return _np.from_dlpack(x)
        return _np.asarray(x)
    except (RuntimeError, BufferError, ValueError) as e:
        raise Error(f"{type(x).__name__} cannot be converted to a NumPy array: {e}") from e


def _halves(x):
    """Bits of bfloat16, rounded to nearest, ties to even."""
    x = _np.asarray(x, "f4")
    u = x.view("u4")
    return _np.where(_np.isnan(x), 0x7FC0, (u + (u >> 16 & 1) + 0x7FFF) >> 16).astype("u2")


def _typed(what, x, to):
    """The array, if its type converts to dtype `to`: floats and integers within their kind, bools
    into both.  Lists and numbers have no type, so their integers also convert to floats."""
    of, a = _np.dtype("f4" if to == "bf16" else _TYPES[to]), _array(x)
    if not _np.can_cast(a.dtype, of, "same_kind") or (
        of.kind == "f" and a.dtype.kind in "iu" and hasattr(x, "dtype")
    ):
        raise Error(f"{what} is {to}, but the array is {a.dtype}; try: x.astype('{of}')")
    return a


def _converted(what, x, to):
    """A contiguous array of the library's type; a value that the type cannot hold is an error."""
    with _np.errstate(over="ignore"):
        y = _np.asarray(_halves(x) if to == "bf16" else x, _TYPES[to], order="C")
    if to == "bf16":
        bad = _np.isfinite(x) & ((y & 0x7F80) == 0x7F80)
    elif _np.can_cast(x.dtype, y.dtype):
        return y
    elif y.dtype.kind == "f":
        bad = _np.isfinite(x) & ~_np.isfinite(y)
    else:
        bad = y != x
    if bad.any():
        raise Error(f"{what} is {to}, which cannot hold {x[bad].flat[0]}")
    return y


class _Inputs(_abc.Mapping):
    """Views of the inputs' memory by name."""

    def __init__(self, trainer):
        self._trainer = trainer

    def __getitem__(self, name):
        view = self._trainer._view(self._trainer._infos[name])
        self._trainer._written.add(name)
        return view

    def __contains__(self, name):
        return name in self._trainer._infos

    def __iter__(self):
        return iter(self._trainer._infos)

    def __len__(self):
        return len(self._trainer._infos)

    def __repr__(self):
        return f"<ckc inputs {', '.join(self)}>"


class _Memory:
    """Memory of an input, which keeps its model open."""

    def __init__(self, owner, info, at):
        self.owner = owner
        self.__array_interface__ = {
            "data": (at, False),
            "typestr": _np.dtype(_TYPES[info.dtype.decode()]).str,
            "shape": tuple(info.dim[: info.rank]),
            "version": 3,
        }


class _Library:
    """An open library: .ctx, .tensors and .inputs by name, .written inputs, which hold what the
    next step() without arrays takes, .micro_batches of a step."""

    def __init__(self, call, model, **options):
        self.ctx = _c.c_void_p()
        path = model.path if isinstance(model, Model) else _os.fspath(model)
        options = _lib.Options(**options)
        status = call.ckr_open(_c.byref(self.ctx), _os.fsencode(path), _c.byref(options))
        try:
            if status:
                raise Error(call.ckr_error(self.ctx).decode(errors="replace"))
            self.tensors = {i.name.decode(): i for i in self.list(call.ckr_tensor)}
        except BaseException:
            call.ckr_close(self.ctx)
            raise
        self.inputs = {k: i for k, i in self.tensors.items() if i.kind == b"input"}
        self.written = set()
        self.micro_batches = call.ckr_micro_batches(self.ctx)

    def list(self, call):
        """All tensors that a call with an index returns."""
        found, info = [], _lib.Info()
        while not call(self.ctx, len(found), _c.byref(info)):
            found.append(_lib.Info.from_buffer_copy(info))
        return found

    def shape(self, name):
        info = self.inputs[name]
        return tuple(info.dim[: info.rank])

    def step_shape(self, name):
        """The shape that step() takes: micro-batches lie along axis 0."""
        one, n = self.shape(name), self.micro_batches
        return (n * one[0] if one else n, *one[1:]) if n > 1 else one


def _fits_step(library, arrays):
    """True: these are a batch of the library."""
    same = arrays.keys() == library.inputs.keys()
    return (
        True if same and all(x.shape == library.step_shape(k) for k, x in arrays.items()) else None
    )


def _fits_rows(library, arrays):
    """How well the library evaluates these rows: as one batch, by few that are filled up, in few
    batches."""
    needed = {k for k, i in library.inputs.items() if not i.label}
    if not needed <= arrays.keys() <= library.inputs.keys():
        return None
    missing, rows, exact = 0, 0, True
    for name, x in arrays.items():
        shape = library.shape(name)
        if x.shape == shape:
            continue
        if not shape or x.shape[1:] != shape[1:]:
            return None
        missing, rows, exact = -len(x) % shape[0], shape[0], False
    return exact, -missing, rows


class Trainer:
    """A model in memory, with its weights and the optimizer's state.

    model: a Model, or the path of a library.  weights: a .safetensors file (default: the one beside
    the library).  threads, seed, offload_dir: as in ckrun. Settings of the optimizer are keywords:
    lr, beta1, beta2, eps, weight_decay, momentum, nesterov, clip, ema_decay, ...; the others have
    the defaults of the optimizer.  They are attributes of .hyper, which may be changed between
    steps.
    """

    def __init__(self, model, weights=None, threads=0, seed=0, offload_dir=None, **hyper):
        self._libraries, self._grads, self._norm_wanted, self._averages = [], None, False, False
        self._writer = None  # context of save_async
        self._call = _lib.library()
        if threads < 0 or seed < 0:
            raise TypeError("threads and seed cannot be negative")
        self._options = {
            "threads": threads,
            "seed": seed,
            "offload_dir": _os.fsencode(offload_dir) if offload_dir else None,
        }
        self._now = _Library(
            self._call, model, weights=_os.fsencode(weights) if weights else None, **self._options
        )
        self._libraries.append(self._now)
        try:
            self.hyper = self._call.ckr_model_hyper(self._ctx)
            for name, value in hyper.items():
                setattr(self.hyper, name, value)
                if not self._call.ckr_uses_hyper(self._ctx, name.encode()):
                    of = self._call.ckr_optimizer(self._ctx).decode()
                    why = (
                        "the library keeps no averages of parameters; try: ckc.compile(ema=True)"
                        if name == "ema_decay"
                        else f"the library's optimizer is {of}"
                    )
                    _warnings.warn(f"{name} has no effect: {why}", stacklevel=2)
        except BaseException:
            self.close()
            raise
        if weights:
            self._warn_unused()

    def add(self, model):
        """Open another library of the same model, for inputs of other shapes.  It shares weights,
        optimizer state, progress and memory.  Later calls take the library that fits their arrays.
        """
        self._open()
        library = _Library(self._call, model, model_of=self._libraries[0].ctx, **self._options)
        self._libraries.append(library)
        if self._norm_wanted:
            self._call.ckr_grad_norm(library.ctx, None)

    # ---- plumbing ----

    # of the library that was used last:
    _ctx = property(lambda self: self._now.ctx)
    _tensors = property(lambda self: self._now.tensors)
    _infos = property(lambda self: self._now.inputs)
    _written = property(lambda self: self._now.written)
    micro_batches = property(lambda self: self._now.micro_batches)

    def _choose(self, arrays, fits):
        """Use the library whose inputs best fit the arrays; it is an error if none does."""
        if len(self._libraries) == 1 or not arrays:
            return
        marked = [(fits(x, arrays), x) for x in self._libraries]
        marked = [(mark, x) for mark, x in marked if mark is not None]
        if not marked:
            shapes = [
                {name: list(x.step_shape(name)) for name in x.inputs} for x in self._libraries
            ]
            found = {name: list(x.shape) for name, x in arrays.items()}
            raise Error(f"no library fits: expected one of {shapes}, found {found}")
        self._now = max(marked, key=lambda pair: pair[0])[1]

    def _warn_unused(self):
        unused = self._call.ckr_unused_tensors(self._ctx).decode(errors="replace")
        if unused:
            _warnings.warn(unused, stacklevel=3)

    def _check(self, status, ctx=None):
        if status:
            raise Error(self._call.ckr_error(ctx or self._ctx).decode(errors="replace"))

    def _view(self, info):
        self._open()
        at = _c.c_void_p()
        self._check(self._call.ckr_input(self._ctx, info.name, _c.byref(at)))
        return _np.asarray(_Memory(self, info, at.value))

    @property
    def inputs(self):
        """Views of the inputs' memory by name, to be filled in place: t.inputs["x"][...] = x.  Fill
        all of them before a step() without arrays.  Views keep the model open, but must not be used
        after close()."""
        self._open()
        return _Inputs(self)

    def _out(self, info):
        x = _np.empty(info.dim[: info.rank], _TYPES[info.dtype.decode()])
        self._check(self._call.ckr_get(self._ctx, info.name, x.ctypes.data, info.nbytes))
        return (x.astype("u4") << 16).view("f4") if info.dtype == b"bf16" else x

    def _open(self):
        if not self._libraries:
            raise Error("the trainer is closed")

    def _taken(self, arrays):
        """The arguments of a call as arrays whose types convert to those of the inputs."""
        known = {k: i for x in self._libraries for k, i in x.inputs.items()}
        for name in arrays:
            if name not in known:
                raise Error(f"unknown input '{name}'; expected one of {', '.join(known)}")
        return {
            name: _typed(f"input '{name}'", x, known[name].dtype.decode())
            for name, x in arrays.items()
        }

    def _complete(self, arrays, labels=True):
        """Require arrays for all inputs or for none: an omitted input would keep an old batch."""
        missing = [
            f"'{k}'"
            for k, i in self._infos.items()
            if k not in (arrays or self._written) and (labels or not i.label)
        ]
        if not missing:
            return
        inputs = f"{'input' if len(missing) == 1 else 'inputs'} {', '.join(missing)}"
        if arrays:
            raise Error(
                f"no array for {inputs}: expected one for each input, or none if all are written to .inputs"
            )
        raise Error(f"{inputs} {'was' if len(missing) == 1 else 'were'} never set")

    def _set(self, arrays):
        """Set inputs to arrays of their shapes: all, or none if one fails."""
        ready = [
            (i, _converted(f"input '{k}'", arrays[k], i.dtype.decode()))
            for k, i in self._infos.items()
            if k in arrays
        ]
        for i, x in ready:
            self._check(self._call.ckr_set(self._ctx, i.name, x.ctypes.data, i.nbytes))

    # ---- training ----

    def step(self, **arrays):
        """Run forward, backward and update, and return the loss before the update.  Arrays are
        keywords by the names of inputs, one for each; without arrays, inputs keep their values or
        those written to .inputs.  A model of --grad-accum N takes N batches in one array, along
        axis 0."""
        self._open()
        arrays = self._taken(arrays)
        self._choose(arrays, _fits_step)
        return self._step(self._now, arrays)

    def _step(self, library, arrays):
        self._now, loss = library, _c.c_double()
        if self._grads:
            self._check(self._call.ckr_save_grads(self._ctx, self._grads))
            self._grads = None
        if self.micro_batches > 1:
            return self._accumulate(arrays, loss, self.micro_batches)
        for name, x in arrays.items():
            if x.shape != self._now.shape(name):
                raise Error(
                    f"input '{name}': expected shape {list(self._now.shape(name))}, found {list(x.shape)}"
                )
        self._complete(arrays)
        self._set(arrays)
        self._written.update(arrays)
        self._check(self._call.ckr_step(self._ctx, _c.byref(self.hyper), _c.byref(loss)))
        return loss.value

    def _accumulate(self, arrays, loss, n):
        parts, failed = {}, []
        for name, x in arrays.items():
            one = self._now.shape(name)
            if x.shape != self._now.step_shape(name):
                raise Error(
                    f"input '{name}': expected {n} micro-batches of {list(one)} along axis 0, found {list(x.shape)}"
                )
            parts[name] = x.reshape(n, *one)
        self._complete(arrays)

        def feed(_user, _ctx, _step, micro):
            try:
                self._set(
                    {
                        name: x[micro]
                        for name, x in parts.items()
                        if self._call.ckr_needs_input(self._ctx, name.encode())
                    }
                )
                return 0
            except Exception as e:  # raised again after the C call
                failed.append(e)
                return 1

        call = _lib.FEED(feed)
        self._check(self._call.ckr_set_feed(self._ctx, call, None))
        status = self._call.ckr_step(self._ctx, _c.byref(self.hyper), _c.byref(loss))
        self._call.ckr_set_feed(self._ctx, _lib.FEED(), None)
        if failed:
            raise failed[0]
        self._check(status)
        return loss.value

    # ---- evaluation ----

    @_contextlib.contextmanager
    def ema(self):
        """Use the moving averages of a model compiled with ema=True in place of the parameters
        inside the `with` block: in eval, predict, state_dict, export_onnx, save_merged and
        save_adapters.  step, save, resume and init fail there."""
        self._open()
        if self._averages:  # an outer block has put them there, and ends it
            yield self
            return
        self._check(self._call.ckr_use_ema(self._ctx, True))
        self._averages = True
        try:
            yield self
        finally:
            self._averages = False
            if self._libraries:
                self._check(self._call.ckr_use_ema(self._ctx, False))

    def _batches(self, arrays, labels=True):
        """Set inputs batch by batch; yield the number of new samples, the batch size and the weight
        of the batch.  A last batch is padded with its last sample; another batch of that sample
        alone, with a negative weight, cancels the padding."""
        shapes = {name: self._now.shape(name) for name in arrays}
        rows, n = next(
            (
                (to[0], len(arrays[name]))
                for name, to in shapes.items()
                if to and arrays[name].ndim and len(arrays[name]) != to[0]
            ),
            (1, 1),
        )
        for name, to in shapes.items():
            want = (n, *to[1:]) if to and to[0] == rows else to
            if arrays[name].shape != want or not n:
                raise Error(
                    f"input '{name}': expected shape {list(to)}, found {list(arrays[name].shape)}; for several batches, all arrays "
                    "need the same number of rows"
                )
        self._complete(arrays, labels)
        dealt = {name: arrays[name] for name, to in shapes.items() if to and to[0] == rows}
        self._set({name: x for name, x in arrays.items() if name not in dealt})
        for at in range(0, n, rows):
            new = min(rows, n - at)
            self._set(
                {
                    name: x[_np.minimum(_np.arange(at, at + rows), n - 1)]
                    for name, x in dealt.items()
                }
            )
            yield new, rows, 1.0
        if n % rows:
            self._set({name: x[_np.full(rows, n - 1)] for name, x in dealt.items()})
            yield 0, rows, n % rows / rows - 1

    @_contextlib.contextmanager
    def _evaluating(self, arrays):
        """Use the library that fits.  Afterwards, library and inputs are those of the next step
        again."""
        before = self._now
        self._choose(arrays, _fits_rows)
        kept = {k: self._view(self._infos[k]).copy() for k in self._written & arrays.keys()}
        try:
            yield
        finally:
            for name, x in kept.items():
                self._view(self._infos[name])[...] = x
            self._now = before

    def eval(self, **arrays):
        """Return the loss without training: no dropout, running statistics.  Arrays hold a batch,
        or any number of rows, which are split into batches; the loss is that of all rows."""
        self._open()
        arrays, score, batches = self._taken(arrays), _lib.Score(), 0
        with self._evaluating(arrays):
            self._check(self._call.ckr_score_begin(self._ctx))
            for _, rows, times in self._batches(arrays):
                self._check(self._call.ckr_score_add(self._ctx, times))
                batches += 1
            self._check(self._call.ckr_score_end(self._ctx, _c.byref(score)))
        if score.by_batch and batches > 1:
            _warnings.warn(
                f"the loss depends on the batch size, here {rows}: {score.by_batch.decode(errors='replace')}",
                stacklevel=2,
            )
        return score.loss

    def predict(self, **arrays):
        """Return the model's outputs for a batch: {name: array}, or the array if there is one.
        Labels are optional.  For any other number of rows, return the outputs that have one row or
        more per sample."""
        self._open()
        arrays = self._taken(arrays)
        with self._evaluating(arrays):
            infos = [
                i
                for i in self._now.list(self._call.ckr_eval_output)
                if not i.loss and i.kind != b"metric"
            ]
            found, some = {i.name.decode(): [] for i in infos}, False
            for new, rows, _ in self._batches(arrays, labels=False):
                if not new:
                    break
                self._check(self._call.ckr_eval(self._ctx, None))
                some |= new < rows or any(found.values())
                for i in infos:
                    y = self._out(i)
                    found[i.name.decode()].append(
                        y[: len(y) // rows * new] if new < rows and y.ndim else y
                    )
        if not found:
            raise Error(
                "the library has no output besides its loss; compile with ckc --eval on, which reports if the budget has no room"
            )
        if some:
            whole = {i.name.decode() for i in infos if i.rows and i.rank and i.dim[0] % rows == 0}
            found = {name: y for name, y in found.items() if name in whole}
            mixed = ", ".join(
                f"'{i.name.decode()}'" for i in infos if i.name.decode() in found and i.rows < 0
            )
            if mixed:
                _warnings.warn(
                    f"rows of {mixed} may depend on the other samples of the batch, here of {rows}",
                    stacklevel=2,
                )
        if not found:
            raise Error(
                f"no output has rows per sample for a batch of {rows} samples, so batches cannot be concatenated"
            )
        found = {name: _np.concatenate(y) if len(y) > 1 else y[0] for name, y in found.items()}
        return found if len(found) > 1 else next(iter(found.values()))

    @property
    def grad_norm(self):
        """The global gradient norm of the last step, before clipping; steps compute it after the
        first request."""
        self._open()
        norm = _c.c_double()
        for library in () if self._norm_wanted else self._libraries:
            self._call.ckr_grad_norm(library.ctx, None)
        self._norm_wanted = True
        self._check(self._call.ckr_grad_norm(self._ctx, _c.byref(norm)))
        return norm.value

    @property
    def steps(self):
        """Number of steps since the initial weights."""
        self._open()
        return self._call.ckr_step_count(self._ctx)

    @property
    def peak_bytes(self):
        """Bytes of the largest step so far, by any library."""
        self._open()
        return max(self._call.ckr_peak_bytes(x.ctx) for x in self._libraries)

    # ---- weights and files ----

    def state_dict(self):
        """Copies of parameters and buffers, by name; bfloat16 as float32."""
        self._open()
        return {
            k: self._out(i) for k, i in self._tensors.items() if i.kind in (b"param", b"buffer")
        }

    def load_state_dict(self, state):
        """Set all parameters and buffers in state, or none on an error; each array must have the
        right shape and a type of the same kind."""
        self._open()
        ready = []
        for name, x in state.items():
            i, x = self._tensors.get(name), _array(x)
            if i is None or i.kind not in (b"param", b"buffer"):
                raise Error(f"there is no parameter or buffer '{name}'")
            if list(x.shape) != i.dim[: i.rank]:
                raise Error(f"'{name}': expected shape {i.dim[: i.rank]}, found {list(x.shape)}")
            x = _typed(f"'{name}'", x, i.dtype.decode())
            ready.append((i, _converted(f"'{name}'", x, i.dtype.decode())))
        for i, x in ready:
            self._check(self._call.ckr_set(self._ctx, i.name, x.ctypes.data, i.nbytes))

    def save(self, path):
        """Write a checkpoint: parameters, buffers, optimizer state, step, seed."""
        self.save_wait()
        self._check(self._call.ckr_save(self._ctx, _os.fsencode(path)))

    def save_async(self, path):
        """Write the same checkpoint beside training: copies the state, and a thread writes the
        file, which appears when it is complete.  The next save, resume() and close() wait for it
        and raise its failure."""
        self.save_wait()
        self._writer = self._libraries[0].ctx
        self._check(self._call.ckr_save_async(self._writer, _os.fsencode(path)))

    def save_done(self):
        """Whether the file of save_async is complete; raises its failure."""
        self._open()
        done = _c.c_bool(True)
        if self._writer:
            self._check(self._call.ckr_save_poll(self._writer, _c.byref(done)), self._writer)
        return done.value

    def save_wait(self):
        """Wait until it is."""
        self._open()
        if self._writer:
            self._check(self._call.ckr_save_wait(self._writer), self._writer)

    def resume(self, path):
        self.save_wait()
        self._check(self._call.ckr_resume(self._ctx, _os.fsencode(path)))
        self._warn_unused()

    def init(self, path, map=None, skip=(), partial=False, ema=False):
        """Load weights from a .safetensors, .npz or index file, or from a list of them, as `ckrun
        --init`.  map replaces prefixes of names; parameters that match skip keep their values, and
        with partial, so do those that the files lack.  ema: take the moving averages of a
        checkpoint in place of its parameters.  Returns the names that kept their values."""
        self._open()
        maps = [_os.fsencode(f"{old}={new}") for old, new in (map or {}).items()]
        skips = [_os.fsencode(glob) for glob in ([skip] if isinstance(skip, str) else skip)]
        how = _lib.Init(
            (_c.c_char_p * len(maps))(*maps),
            len(maps),
            (_c.c_char_p * len(skips))(*skips),
            len(skips),
            partial,
            ema,
        )
        paths = [
            _os.fsencode(p)
            for p in ([path] if isinstance(path, (str, bytes, _os.PathLike)) else path)
        ]
        self._check(
            self._call.ckr_init_all(
                self._ctx, (_c.c_char_p * len(paths))(*paths), len(paths), _c.byref(how)
            )
        )
        self._warn_unused()
        left = []
        while name := self._call.ckr_missing_weight(self._ctx, len(left)):
            left.append(name.decode())
        return left

    def set_group(self, glob, lr=1.0, weight_decay=None):
        """Scale the learning rate of trainable parameters that match the glob by lr, and set their
        weight decay if given; a later call replaces an earlier one.  Returns their names."""
        self._open()
        names = [
            k
            for k, i in self._tensors.items()
            if i.kind == b"param" and not i.frozen and _fnmatch.fnmatchcase(k, glob)
        ]
        if not names:
            raise Error(f"no trainable parameter matches '{glob}'")
        if lr < 0 or (weight_decay is not None and weight_decay < 0):
            raise Error("lr and weight_decay of a group cannot be negative")
        for name in names:
            self._check(
                self._call.ckr_set_group(
                    self._ctx, name.encode(), lr, -1.0 if weight_decay is None else weight_decay
                )
            )
        return names

    def save_adapters(self, path):
        """Write the trained tensors of a model compiled with lora= as PEFT's
        adapter_model.safetensors, with adapter_config.json beside it; init loads them."""
        self._open()
        self._check(self._call.ckr_save_adapters(self._ctx, _os.fsencode(path)))

    def save_merged(self, path):
        """Write the parameters and buffers of the model with adapters merged into them."""
        self._open()
        self._check(self._call.ckr_save_merged(self._ctx, _os.fsencode(path)))

    def save_grads(self, path):
        """Write the gradients of the next step, before clipping, to a .safetensors file."""
        self._open()
        if len(self._libraries) > 1:  # by the one that steps
            self._grads = _os.fsencode(path)
        else:
            self._check(self._call.ckr_save_grads(self._ctx, _os.fsencode(path)))

    def export_onnx(self, path):
        """Write the ONNX file that the model was compiled from, with the current weights, adapters
        merged into them.  Dropout and BatchNormalization keep their form: warns of training form,
        which ONNX Runtime executes as in training."""
        self._open()
        self._check(self._call.ckr_export_onnx(self._ctx, _os.fsencode(path)))
        if self._call.ckr_exports_training_form(self._ctx):
            _warnings.warn(
                f"'{path}' has Dropout or BatchNormalization in training form; for inference, export "
                "the module in eval mode with the weights of state_dict()",
                stacklevel=2,
            )

    def close(self):
        """Free the model; views of .inputs must not be used afterwards."""
        try:
            if self._libraries:
                self.save_wait()
        finally:
            self._writer = None
            while self._libraries:
                self._call.ckr_close(self._libraries.pop().ctx)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        if getattr(self, "_libraries", None):
            self.close()
