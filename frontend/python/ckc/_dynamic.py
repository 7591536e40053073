"""Dimensions that an export leaves open, and batches of other sizes that prove them."""

import collections.abc

import torch

import ckc

from . import _verify


def axes(dynamic, batch):
    """{input: {axis: name}} of export's argument `dynamic`; a name alone is that of axis 0 of every
    input with as many rows as the first."""
    if not dynamic:
        return {}
    if isinstance(dynamic, str):
        rows = next((len(x) for x in batch.values() if x.ndim), None)
        dynamic = {k: {0: dynamic} for k, x in batch.items() if x.ndim and len(x) == rows}
    if not isinstance(dynamic, collections.abc.Mapping):
        raise TypeError(f"dynamic is {dynamic!r}; expected a name, or {{input: {{axis: name}}}}")
    found = {}
    for name, dims in dynamic.items():
        if name not in batch:
            raise TypeError(f"dynamic: no input '{name}'; expected one of {', '.join(batch)}")
        if not isinstance(dims, collections.abc.Mapping):
            raise TypeError(f"dynamic: '{name}': expected {{axis: name}}, found {dims!r}")
        rank = batch[name].ndim
        for axis in dims:
            if not -rank <= axis < rank:
                raise TypeError(f"dynamic: '{name}' has {rank} dimensions, but no axis {axis}")
            if not isinstance(dims[axis], str):
                raise TypeError(f"dynamic: '{name}': expected a name, found {dims[axis]!r}")
        found[name] = {axis % rank: dim for axis, dim in dims.items()}
    for dim, size in sizes(found, batch).items():
        if size < 2:
            raise ckc.Error(
                f"dynamic: '{dim}' is {size} in the example, which exporters make a constant; "
                "try: an example with 2 or more"
            )
    return found


def sizes(dynamic, batch):
    """{name: size} of a batch."""
    found = {}
    for name, dims in dynamic.items():
        for axis, dim in dims.items():
            size = batch[name].shape[axis]
            if found.setdefault(dim, size) != size:
                raise ckc.Error(
                    f"dynamic: '{dim}' is {found[dim]} and, in axis {axis} of '{name}', {size}"
                )
    return found


def _others(old):
    """Another size for each name: a smaller one that no name has, if there is one."""
    new = {}
    for dim, n in old.items():
        used = {*old.values(), *new.values()}
        free = [m for m in range(n - 1, 1, -1) if m not in used]
        new[dim] = free[0] if free else n - 1 if n > 2 else n + 1
    return new


def _resized(dynamic, batch, new):
    """A batch of these sizes: cut off, or with its first elements once more."""
    batch = dict(batch)
    for name, dims in dynamic.items():
        for axis, dim in dims.items():
            x = batch[name]
            at = torch.arange(new.get(dim, x.shape[axis])) % x.shape[axis]
            batch[name] = x.index_select(axis, at)
    return batch


def _text(dims):
    return ", ".join(f"{dim}={n}" for dim, n in dims.items())


def _fault(module, dynamic, batch, path):
    """Why a file does not compile or train as the module does with a batch; or None."""
    dims = sizes(dynamic, batch)
    try:
        _verify.Step(module, batch)
    except Exception as e:  # of forward
        line = next(iter(str(e).splitlines()), type(e).__name__)
        return ckc.Error(
            f"the module itself fails at {_text(dims)}: {line}; try: verify=BATCH, with other sizes "
            "that forward takes"
        )
    try:
        _verify.compare(module, batch, path, None, dim=dims)
    except ckc.Error as e:
        return e
    return None


def prove(module, dynamic, example, batch, path):
    """Compare a step at sizes that are not the example's: those of the batch, or smaller ones, and
    larger ones that forward takes."""
    given, old = sizes(dynamic, batch), sizes(dynamic, example)
    if all(given[dim] != n for dim, n in old.items()):
        return _compare(module, dynamic, batch, old, path)
    _compare(module, dynamic, _resized(dynamic, batch, _others(old)), old, path)
    larger = _resized(dynamic, batch, {dim: 2 * n for dim, n in old.items()})
    try:
        _verify.Step(module, larger)
    except Exception:  # such as a table of positions that ends before
        return
    _compare(module, dynamic, larger, old, path)


def _compare(module, dynamic, batch, old, path):
    given = sizes(dynamic, batch)
    fault = _fault(module, dynamic, batch, path)
    if not fault:
        return
    alone = [
        dim
        for dim in given
        if len(given) > 1
        and _fault(module, dynamic, _resized(dynamic, batch, {**old, dim: given[dim]}), path)
    ]
    baked = " and ".join(f"'{dim}'" for dim in alone or given)
    message = (
        f"the export depends on the example's size of {baked}: at {_text(given)}:\n{fault}\n"
        "try: sizes of tensors, such as x.shape[0], in place of numbers, int() and len(); or leave "
        f"{baked} out of dynamic"
    )
    if not isinstance(fault, _verify.Different):
        raise ckc.Error(message) from fault
    different = _verify.Different(message, fault.output, fault.target)
    different.batch, different.dims = batch, given
    raise different from fault
