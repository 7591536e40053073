"""Export of PyTorch modules for training: ckc.torch.export."""

import copy as _copy
import inspect as _inspect
import warnings as _warnings

import torch as _torch


def _arguments(module, example):
    """Positional values up to the last one given, and the names of the tensors among them."""
    parameters = _inspect.signature(module.forward).parameters.values()
    known = [
        p for p in parameters if p.kind == p.POSITIONAL_OR_KEYWORD or p.kind == p.POSITIONAL_ONLY
    ]
    if isinstance(example, dict):
        given = dict(example)
    else:
        if isinstance(example, _torch.Tensor):
            example = (example,)
        if len(example) > len(known):
            raise TypeError(
                f"forward has {len(known)} positional parameters, but the example has {len(example)} values"
            )
        given = {p.name: x for p, x in zip(known, example)}
    values = []
    for p in known:
        x = given.pop(p.name, None if p.default is p.empty else p.default)
        if x is not None and not isinstance(x, _torch.Tensor):
            raise TypeError(
                f"'{p.name}' is {x!r}, not a tensor: the export would drop it or make it an input; wrap the module"
            )
        if x is None and p.default is p.empty:
            raise TypeError(f"the example has no value for '{p.name}'")
        values.append(x)
    if given:
        raise TypeError(
            f"forward has no positional parameter {', '.join(sorted(given))}; it has {', '.join(p.name for p in known)}"
        )
    while values and values[-1] is None:
        values.pop()
    return tuple(values), [p.name for p, x in zip(known, values) if x is not None]


class _ForwardNotes(_torch.overrides.TorchFunctionMode):
    """Notes whether a function returns floats without a gradient although an argument has one, as
    under no_grad() and from detach() (.stopped), and whether an embedding has a padding_idx
    (.padding)."""

    MADE_ANEW = (
        "zeros_like",
        "ones_like",
        "full_like",
        "empty_like",
        "rand_like",
        "randn_like",
        "new_zeros",
        "new_ones",
        "new_full",
        "new_empty",
        "new_tensor",
    )

    stopped = padding = False

    def __torch_function__(self, func, types, args=(), kwargs=None):
        def has_gradient(x):
            return (
                any(map(has_gradient, x))
                if isinstance(x, (tuple, list))
                else isinstance(x, _torch.Tensor) and x.requires_grad
            )

        if func is _torch.nn.functional.embedding:
            self.padding |= (kwargs or {}).get("padding_idx", (*args, None, None)[2]) is not None
        before = has_gradient((args, *(kwargs or {}).values()))
        result = func(*args, **(kwargs or {}))
        if (
            isinstance(result, _torch.Tensor)
            and result.is_floating_point()
            and before
            and getattr(func, "__name__", "") not in self.MADE_ANEW
        ):
            self.stopped |= not result.requires_grad
        return result


def _forward_notes(module, values):
    """What the forward pass of a copy of the module does that an export loses."""
    twin = _copy.deepcopy(module).train()
    with _torch.random.fork_rng(devices=[]), _torch.enable_grad(), _ForwardNotes() as noted:
        twin(*values)
    return noted


def export(module, example, path, opset=17):
    """Write an ONNX file that ckc trains: parameters with their names, tied ones once, no constant
    folding, BatchNorm and dropout in training form.

    module: is not changed.  If it is in eval mode, a copy in training mode is exported; otherwise
    submodules in eval mode stay so.  Its forward returns the loss, or outputs for which `ckc
    --loss` adds one.  example: a batch of inputs, as a tensor, a tuple in the order of forward's
    parameters or a dict by their names; the file has its shapes.  Warns about everything that the
    file cannot represent.
    """
    values, names = _arguments(module, example)
    noted = _forward_notes(module, values)
    if noted.padding:
        _warnings.warn(
            "padding_idx of an embedding is lost in the export: its row will be trained",
            stacklevel=2,
        )
    if noted.stopped:
        _warnings.warn(
            "torch.no_grad() and detach() are lost in the export: gradients flow where the module stops them; compile with freeze=[...] "
            "for parameters that only such code uses",
            stacklevel=2,
        )
    twin = _copy.deepcopy(module)
    if not module.training:
        twin.train()
    before = {k: x.clone() for k, x in twin.state_dict().items()}
    with _warnings.catch_warnings():
        _warnings.simplefilter("ignore")
        _torch.onnx.export(
            twin,
            values,
            path,
            input_names=names,
            opset_version=opset,
            dynamo=False,
            training=_torch.onnx.TrainingMode.PRESERVE,
            do_constant_folding=False,
        )
    norms = tuple(
        f"{n}." if n else ""
        for n, m in twin.named_modules()
        if isinstance(m, _torch.nn.modules.batchnorm._NormBase)
    )
    fixed = [n for n, p in module.named_parameters() if not p.requires_grad]
    fixed += [
        n for n, b in module.named_buffers() if b.is_floating_point() and not n.startswith(norms)
    ]
    with open(path, "rb") as f:
        data = f.read()
    # names of initializers: field 8 of a TensorProto
    fixed = [n for n in fixed if b"\x42" + bytes([len(n) & 127]) + n.encode() in data]
    if fixed:
        _warnings.warn(
            "ONNX does not record which parameters are frozen and which tensors are buffers; "
            f"compile with freeze={fixed!r}",
            stacklevel=2,
        )
    changed = [k for k, x in twin.state_dict().items() if not _torch.equal(before[k], x)]
    if changed:
        _warnings.warn(
            "buffers in the file include the example, because the exporter runs the module (the given module is unchanged)",
            stacklevel=2,
        )
    changed = [k for k in changed if not k.startswith(norms)]
    if changed:
        _warnings.warn(
            f"forward updates the buffers {changed!r}, but the file does not: each step uses the exported values",
            stacklevel=2,
        )
    if any(
        isinstance(m, _torch.nn.modules.batchnorm._NormBase)
        and m.momentum is None
        and m.track_running_stats
        for m in twin.modules()
    ):
        _warnings.warn(
            "momentum=None of a batch norm is lost in the export: each step will replace the running statistics",
            stacklevel=2,
        )
    return path
