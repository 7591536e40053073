"""Training of PyTorch modules: ckc.torch.export and ckc.torch.train."""

import collections.abc as _abc
import contextlib as _contextlib
import copy as _copy
import inspect as _inspect
import io as _io
import itertools as _itertools
import os as _os
import re as _re
import sys as _sys
import tempfile as _tempfile
import warnings as _warnings

import torch as _torch

import ckc as _ckc

from . import _dynamic, _file, _forward, _lib, _verify, _where

_Norm = _torch.nn.modules.batchnorm._NormBase


def _named(module, example):
    """The tensors of a batch by the names of forward's parameters, in their order; with **kwargs,
    as in wrappers of PEFT, any other names of a dict follow."""
    parameters = _inspect.signature(module.forward).parameters.values()
    known = [p for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    names = [p.name for p in known]
    if isinstance(example, _abc.Mapping):
        given = dict(example)
    else:
        example = (example,) if isinstance(example, _torch.Tensor) else example
        if len(example) > len(known):
            raise TypeError(
                f"forward has {len(known)} positional parameters, but the example has {len(example)} values"
            )
        given = dict(zip(names, example))
    unknown = [k for k in given if k not in names]
    if any(p.kind == p.VAR_KEYWORD for p in parameters):
        names += unknown
    elif unknown:
        raise TypeError(f"forward has no parameter {', '.join(unknown)}; it has {', '.join(names)}")
    for name in names:
        x = given.get(name)
        if x is not None and not isinstance(x, _torch.Tensor):
            raise TypeError(
                f"'{name}' is {x!r}, not a tensor: the export would drop it or make it an input; wrap the module"
            )
    for p in known:
        if given.get(p.name) is None and p.default is p.empty:
            raise TypeError(f"the example has no value for '{p.name}'")
    return {k: given[k].detach().cpu() for k in names if given.get(k) is not None}


def _twin(module):
    """The module as it is exported: a copy on the CPU, in training mode."""
    try:
        twin = _copy.deepcopy(module).cpu()
    except RuntimeError as e:
        raise _ckc.Error(
            "the module cannot be copied, as with the old torch.nn.utils.weight_norm; try: "
            f"torch.nn.utils.parametrizations.weight_norm: {e}"
        ) from e
    return twin if module.training else twin.train()


@_contextlib.contextmanager
def _untraced():
    state = _torch._C._get_tracing_state()
    _torch._C._set_tracing_state(None)
    try:
        yield
    finally:
        _torch._C._set_tracing_state(state)


def _exportable(twin, names, draws, read, checks):
    """Replace forward by one that exporters can write: all tensors by position, in and out.
    TorchScript's writes the values that buffers have after it ran: those of before."""
    inner = twin.forward
    before = {k: x.clone() for k, x in twin.named_buffers()}

    def forward(*values):
        with _torch.enable_grad(), _contextlib.ExitStack() as modes:
            modes.enter_context(_forward.written_attention())
            modes.enter_context(_forward.Written(values, read, checks))
            if draws:
                modes.enter_context(_forward.Plain(draws))
            result = inner(**dict(zip(names, values)))
        if _torch._C._get_tracing_state():
            with _untraced(), _torch.no_grad():
                for k, x in twin.named_buffers():
                    x.copy_(before[k])
        found = tuple(x for _, x in _forward.outputs(result))
        return found if len(found) > 1 else found[0]

    kind = _inspect.Parameter.POSITIONAL_OR_KEYWORD
    forward.__signature__ = _inspect.Signature([_inspect.Parameter(k, kind) for k in names])
    twin.forward = forward
    return twin


def _batch_norm(x, weight, bias, mean, var, training=True, momentum=0.1, eps=1e-5):
    """The training form, which the dynamo exporter does not write."""
    from onnxscript import opset18 as op

    if weight is None:
        weight = op.Expand(op.Constant(value_float=1.0), op.Shape(mean))
        bias = op.Sub(weight, weight)
    y, m, v = op.BatchNormalization(
        x, weight, bias, mean, var, epsilon=eps, momentum=1 - momentum, training_mode=1
    )
    return y, m, v, m, v


@_contextlib.contextmanager
def _quiet():
    """Without what exporters print, from C++, too: graphs that fail."""
    _sys.stdout.flush()
    _sys.stderr.flush()
    nowhere = _os.open(_os.devnull, _os.O_WRONLY)
    kept = [(fd, _os.dup(fd)) for fd in (1, 2)]
    try:
        for fd, _ in kept:
            _os.dup2(nowhere, fd)
        with _contextlib.redirect_stdout(_io.StringIO()):
            with _contextlib.redirect_stderr(_io.StringIO()):
                yield
    finally:
        for fd, copy in kept:
            _os.dup2(copy, fd)
            _os.close(copy)
        _os.close(nowhere)


def _write(module, batch, path, opset, dynamo, names, frozen, dynamic, draws=None):
    """Export the module, and note in the file which tensors are parameters and which are frozen.
    Returns where forward reads values of the batch, where it checks them, the frozen parameters in
    the file, and its nodes."""
    read, checks = [], []
    twin = _exportable(_copy.deepcopy(module), list(batch), draws, None if dynamo else read, checks)
    form = {"training": _torch.onnx.TrainingMode.PRESERVE, "do_constant_folding": False}
    form["dynamic_axes"] = dynamic
    if dynamo:
        size = sum(p.numel() * p.element_size() for p in module.parameters())
        norm = _torch.ops.aten._native_batch_norm_legit_functional.default
        form = {"optimize": False, "external_data": size > 1 << 30}
        form["custom_translation_table"] = {norm: _batch_norm}
        if dynamic:
            form["dynamic_shapes"] = {k: dynamic.get(k) for k in batch}
        opset = max(opset, 18)
    with _warnings.catch_warnings(), _quiet():
        _warnings.simplefilter("ignore")
        _torch.onnx.export(
            twin,
            tuple(batch.values()),
            path,
            input_names=list(batch),
            output_names=names,
            opset_version=opset,
            dynamo=dynamo,
            verbose=False,
            **form,
        )
    there, nodes = _file.read(path)
    there = dict.fromkeys(there)
    parameters = [n for n, _ in module.named_parameters(remove_duplicate=False) if n in there]
    buffers = [n for n, _ in module.named_buffers() if n in there]
    frozen = [n for n in parameters if n in frozen]
    notes = {"ckc.frozen": "\n".join(frozen)}
    if not dynamo:
        lines = [f"t: PARAMETER target='{n}'" for n in parameters]
        lines += [f"t: BUFFER target='{n}'" for n in buffers]
        notes["pkg.torch.export.ExportedProgram.graph_signature"] = "\n".join(lines)
    _file.note(path, notes)
    return list(dict.fromkeys(read)), list(dict.fromkeys(checks)), frozen, nodes


def _refuse(message, verify):
    if verify is not False:
        raise _ckc.Error(message)
    _warnings.warn(message, stacklevel=3)


def _varied(batch):
    """The batch, with random values for floats that are all equal, which prove little."""
    batch, draw = dict(batch), _torch.Generator().manual_seed(0)
    for name, x in batch.items():
        if x.numel() > 1 and bool((x == x.flatten()[0]).all()):
            if x.is_floating_point():
                batch[name] = _torch.randn(x.shape, generator=draw).to(x.dtype)
                how = "random values take their place in the verification"
            else:
                how = "a batch with different ones proves more"
            _warnings.warn(f"all values of '{name}' in the example are equal: {how}", stacklevel=3)
    return batch


def export(module, example, path, opset=17, dynamo=None, verify=True, dynamic=None):
    """Write an ONNX file that ckc trains as PyTorch trains the module, and prove it.

    module: is not changed.  If it is in eval mode, a copy in training mode is exported; otherwise
    submodules in eval mode stay so.  Its forward returns the loss, or outputs for which `ckc
    --loss` adds one.  example: a batch of inputs, as a tensor, a tuple in the order of forward's
    parameters or a dict by their names; the file has its shapes.  dynamo: the exporter; by default
    TorchScript's, and dynamo's if the former fails or its file differs.  dynamic: names of
    dimensions that stay open, {"ids": {0: "batch", 1: "length"}}, or "batch" for the first of
    every input; ckc.compile(dim={"batch": 64, "length": 128}) sets them.

    The file is compiled, and one step without dropout is compared with the module's in float64:
    loss, gradients, which parameters move, buffers.  A difference is a ckc.Error, which names the
    first node that shows it.  Open dimensions are compared at another size, too.  Warns if ckc's
    evaluation differs from that of module.eval(), and of what it freezes.  verify: False
    writes the file without a comparison; a second batch, of the same shapes except in open
    dimensions, is compared instead of the example.  Returns the path.
    """
    batch, twin = _named(module, example), _twin(module)
    dynamic = _dynamic.axes(dynamic, batch)
    for name, m in twin.named_modules():
        if isinstance(m, _Norm) and m.momentum is None and m.track_running_stats:
            _refuse(
                f"ONNX has no cumulative average for batch norm '{name}', whose momentum is None; "
                f"try: module.get_submodule('{name}').momentum = 0.1",
                verify,
            )
    hooked = [
        k
        for k, p in module.named_parameters()
        if p._backward_hooks or p._post_accumulate_grad_hooks
    ]
    if hooked:
        _refuse(f"hooks of {', '.join(hooked)} are lost in the export; remove them", verify)
    plain = _verify.Step(twin, batch)
    if plain.changed:
        _refuse(
            f"forward changes {', '.join(plain.changed)}, but a step of the file does not: make it "
            "an input; try: max_norm=None in an embedding",
            verify,
        )
    if plain.python_draws:
        _refuse(
            "forward draws numbers from random or numpy, and the file has one draw for all steps; "
            "try: torch.rand",
            verify,
        )
    names = [name for name, _ in plain.outputs]
    tied = dict(twin.named_parameters(remove_duplicate=False))
    fixed = {id(p) for k, p in twin.named_parameters() if plain.grads[k] is None}
    frozen = [k for k, p in tied.items() if id(p) in fixed]
    checked = batch
    if verify is True:
        checked = _varied(batch)
    elif verify is not False:
        checked = _named(module, verify)
    failed = []
    for exporter in (False, True) if dynamo is None else (dynamo,):
        form = opset, exporter, names, frozen, dynamic
        try:
            read, checks, noted, nodes = _write(twin, batch, path, *form)
            if verify is not False:
                if read and verify is True:
                    raise _ckc.Error(
                        f"forward turns values of the batch into Python's, {', '.join(read)}: the file "
                        "has those of the example; try: verify=ANOTHER_BATCH, if they do not matter"
                    )
                _check_chance(nodes, plain, exporter)
                _prove(twin, batch, checked, path, form)
        except BaseException as e:  # exporters raise all kinds
            with _contextlib.suppress(FileNotFoundError):
                _os.remove(path)
            if not isinstance(e, Exception):
                raise
            failed.append((e, form))
        else:
            break
    else:
        reasons = []
        for e, form in failed:
            reasons += [_reason(e), *_places(twin, batch, checked, path, form, e)]
        reasons += _verify.remedies(twin, plain)
        raise _ckc.Error("\n".join(dict.fromkeys(reasons))) from failed[0][0]
    for e, _ in failed:
        _warnings.warn(f"exported with dynamo=True, because without it: {_reason(e)}", stacklevel=2)
    if read:
        _warnings.warn(
            f"forward turns values of the batch into Python's, {', '.join(read)}: the file has those "
            "of the example",
            stacklevel=2,
        )
    if checks:
        _warnings.warn(
            f"the file assumes that values pass the checks of forward, at {', '.join(checks)}",
            stacklevel=2,
        )
    idle = [k for k in noted if tied[k].requires_grad]
    if idle:
        _warnings.warn(
            f"frozen in the file, because they get no gradient in the module: {', '.join(idle)}",
            stacklevel=2,
        )
    return path


def _reason(e):
    """The first line of an exporter's reason, with what it announces, or all of ckc's."""
    if isinstance(e, _ckc.Error):
        return str(e)
    while e.__cause__ and not isinstance(e, _torch.onnx.errors.OnnxExporterError):
        e = e.__cause__
    while isinstance(e, _torch.onnx.errors.OnnxExporterError) and e.__cause__:
        e = e.__cause__
    lines = [line for line in str(e).splitlines() if line.strip()] or [type(e).__name__]
    return " ".join(lines[: 2 if lines[0].endswith(":") else 1])[:300]


def _check_chance(nodes, plain, dynamo):
    """A step is compared without dropout and with fixed draws: their nodes are counted."""
    found = sum(node == ("Dropout", 3) for node in nodes)  # with two inputs it is inactive
    if found < plain.dropouts:
        raise _ckc.Error(
            f"the exporter dropped {plain.dropouts - found} of {plain.dropouts} dropouts"
        )
    drawn = sum(op.startswith("Random") or op in ("Bernoulli", "Multinomial") for op, _ in nodes)
    expected = len(plain.draws)
    if drawn < (min(expected, 1) if dynamo else expected):  # dynamo's functions have several calls
        raise _ckc.Error(
            f"the file has constants for {expected - drawn} of {expected} random draws"
        )


@_contextlib.contextmanager
def _proving(twin, batch, path, form):
    """The file whose steps are compared, and its draws: those of forward are constants in it."""
    draws = _verify.Step(twin, batch).draws
    if not draws:
        yield path, None
        return
    with _tempfile.TemporaryDirectory(prefix="ckc-") as folder:
        same = _os.path.join(folder, _os.path.basename(path))
        _write(twin, batch, same, *form[:-1], {}, draws)
        yield same, draws


def _sizes(dynamic, batch, draws):
    return {"dim": _dynamic.sizes(dynamic, batch)} if dynamic and not draws else {}


def _prove(twin, example, batch, path, form):
    """Compare a step of the file with the module's, at two sizes if dimensions are open."""
    dynamic = form[-1]
    with _proving(twin, batch, path, form) as (same, draws):
        _verify.compare(twin, batch, same, draws, **_sizes(dynamic, batch, draws))
    if dynamic and draws:
        _warnings.warn("forward draws numbers: only one size of dynamic is compared", stacklevel=3)
    elif dynamic:
        _dynamic.prove(twin, dynamic, example, batch, path)


def _places(twin, example, batch, path, form, different):
    """Lines that name the node of a difference, in a file that is written again."""
    if not isinstance(different, _verify.Different):
        return []
    batch = getattr(different, "batch", batch)
    with _tempfile.TemporaryDirectory(prefix="ckc-") as folder:
        again = _os.path.join(folder, _os.path.basename(path))
        try:
            _write(twin, example, again, *form)
            with _proving(twin, batch, again, form) as (same, draws):
                dims = _sizes(form[-1], batch, draws)
                return _where.first_difference(twin, batch, same, draws, different, **dims)
        except Exception as e:  # the difference is the message, whatever fails here
            return [f"no node is named: {_reason(e).splitlines()[-1]}"]


def _split(module, batch, label):
    """A batch by the names of inputs; with a label that the loss of ckc takes, and forward does
    not: the last of a tuple, or the one of that name in a dict."""
    if not label:
        return _named(module, batch)
    if isinstance(batch, _abc.Mapping):
        rest = {k: x for k, x in batch.items() if k != label}
        if label not in batch:
            raise TypeError(f"a batch has no '{label}' for the loss; it has {', '.join(batch)}")
        target = batch[label]
    else:
        *rest, target = batch
    return {**_named(module, rest), label: target.detach().cpu()}


def _batches(data, epochs, steps):
    """The batches of so many passes over data, or of so many steps."""
    done = 0
    for epoch in _itertools.count():
        if done == steps or (steps is None and epoch == epochs):
            return
        if epoch and iter(data) is data:
            raise TypeError("data is an iterator, which has one pass; pass a list or a DataLoader")
        before = done
        for batch in data:
            yield batch
            done += 1
            if done == steps:
                return
        if done == before:
            return


def train(
    module,
    data,
    loss=None,
    budget=None,
    epochs=1,
    steps=None,
    lr=1e-3,
    callback=None,
    path=None,
    verify=True,
    shapes=8,
    **options,
):
    """Train the module in place by ckc, and return the loss of each step.

    data: batches as export's example has them.  Each shape of batches has a library of its own,
    compiled when it first comes; they share weights and optimizer state.  More than `shapes` of
    them are an error.  loss: that of `ckc --loss`, if forward returns none, such as "ce"; the
    target is the last of a tuple, or `labels` (ce) or `target` of a dict.  lr: a number, or a
    function of the step from 0.  steps: instead of epochs.  callback: called after each step with
    its number from 1, its loss and the ckc.Trainer, for example to log, or to evaluate; what is
    true ends the training.  path: keeps the ONNX file and the library; those of a second shape
    have "-2" in their names.  options: those of ckc.compile and of ckc.Trainer, with ckc's
    defaults.  The state of the optimizer is new in each call.
    Parameters and running statistics go back to the module, after an error or an interrupt, too.
    """
    if "lora" in options:
        raise TypeError("the module has no adapters to train; call export, ckc.compile(lora=...)")
    kind = _re.split("[:,]", loss or "")[0]
    added = kind in ("ce", "bce", "kl", "mse", "l1", "huber")
    label = ("labels" if kind == "ce" else "target") if added else None
    settings = {name for name, _ in _lib.Hyper._fields_} | {"seed", "threads", "offload_dir"}
    hyper = {k: options.pop(k) for k in settings & options.keys()}
    if hyper.get("clip"):
        options.setdefault("update_in_backward", "off")  # needs the norm of all gradients
    losses, trainer = [], None
    with _tempfile.TemporaryDirectory(prefix="ckc-") as folder:
        path = path or _os.path.join(folder, "model.onnx")
        models = _Models(module, path, label, shapes, verify, budget, loss, options)
        try:
            for step, batch in enumerate(_batches(data, epochs, steps)):
                batch = _split(module, batch, label)
                at, model = models.find(batch)
                if trainer is None:
                    trainer = _ckc.Trainer(model, lr=0.0 if callable(lr) else lr, **hyper)
                elif model:
                    models.add_to(trainer, model, batch)
                if callable(lr):
                    trainer.hyper.lr = lr(step)
                library = trainer._libraries[at]
                given = {k: x for k, x in batch.items() if k in library.inputs}
                losses.append(trainer._step(library, trainer._taken(given)))
                if callback and callback(len(losses), losses[-1], trainer):
                    break
        finally:
            if trainer is not None:
                _copy_back(module, trainer, len(losses))
                trainer.close()
    if not losses:
        raise ValueError("data has no batch")
    return losses


class _Models:
    """The libraries of a module, one for each shape of its batches."""

    def __init__(self, module, path, label, most, verify, budget, loss, options):
        if most < 1:
            raise ValueError(f"shapes is {most}; expected 1 or more")
        self._module, self._path, self._label, self._verify = module, path, label, verify
        self._most, self._options = most, {"budget": budget, "loss": loss, **options}
        self._seen, self._largest, self._budget = {}, 0, None

    def find(self, batch):
        """The number of the library for this batch, and the library if it is new."""
        shape = tuple(sorted((k, tuple(x.shape)) for k, x in batch.items()))
        if shape in self._seen:
            return self._seen[shape], None
        if len(self._seen) == self._most:
            raise _ckc.Error(
                f"batches have more than {self._most} shapes, here {_shapes(batch)}, and a library "
                f"is compiled for each; pad them to fewer, or try: shapes={2 * self._most}"
            )
        number = self._seen[shape] = len(self._seen)
        try:
            return number, self._new(batch, number)
        except Exception as e:
            if not number:
                raise
            raise _ckc.Error(f"a batch of {_shapes(batch)}: {e}") from e

    def _new(self, batch, number):
        parts = self._options.get("grad_accum", 1)
        uneven = [k for k, x in batch.items() if x.ndim and len(x) % parts]
        if uneven:
            raise _ckc.Error(
                f"{len(batch[uneven[0]])} rows of '{uneven[0]}' do not divide into {parts} "
                "micro-batches; try: drop_last=True in the DataLoader"
            )
        example = {
            k: x[: len(x) // parts] if x.ndim else x for k, x in batch.items() if k != self._label
        }
        stem, end = _os.path.splitext(self._path)
        path = f"{stem}-{number + 1}{end}" if number else self._path
        export(self._module, example, path, verify=self._verify)
        elements = sum(x.numel() for x in batch.values())
        if self._budget and elements <= self._largest:  # has the memory of the largest, if enough
            with _contextlib.suppress(_ckc.Error):
                return _ckc.compile(path, **{**self._options, "budget": self._budget})
        model = _ckc.compile(path, **self._options)
        if elements > self._largest:
            self._largest, self._budget = elements, model.plan["summary"]["budget_bytes"]
        return model

    def add_to(self, trainer, model, batch):
        try:
            trainer.add(model)
        except _ckc.Error as e:
            raise _ckc.Error(
                f"a batch of {_shapes(batch)} cannot train the same model as the batches before, as "
                f"its export has other parameters: {e}"
            ) from e


def _shapes(batch):
    return ", ".join(f"'{k}' {list(x.shape)}" for k, x in batch.items())


def _copy_back(module, trainer, steps):
    """What was trained, and buffers: frozen parameters may be stored in fewer bits."""
    state = {k: x for k, x in trainer.state_dict().items() if not trainer._tensors[k].frozen}
    tensors = dict(module.named_parameters(remove_duplicate=False))
    tensors.update(module.named_buffers())
    with _torch.no_grad():
        for name, x in state.items():
            if name in tensors:
                tensors[name].copy_(_torch.from_numpy(x))
        for m in module.modules():
            counts = isinstance(m, _Norm) and m.num_batches_tracked is not None
            if counts and (m.training or not module.training):
                m.num_batches_tracked += steps
