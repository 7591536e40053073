"""Parts of a forward pass that exporters lose, written so that they keep them."""

import functools
import itertools
import os
import sys
import unittest.mock

import torch
from torch.utils._pytree import tree_leaves, tree_map

from . import _checks, _ctc

F = torch.nn.functional


def is_float(x):
    return isinstance(x, torch.Tensor) and x.is_floating_point()


def stop(x):
    """x, but without a gradient in ONNX, which has no detach: Round stops gradients.  Every float
    below 2^24 is rounded to a multiple of 2^-100, larger ones are integers."""
    y = x if x.dtype in (torch.float32, torch.float64) else x.float()
    small = torch.round(y * 2.0**100) * 2.0**-100
    return torch.where(y.abs() < 2.0**24, small, torch.round(y)).to(x.dtype)


_TORCH = os.path.dirname(torch.__file__) + os.sep
_OWN = _TORCH, os.path.dirname(__file__) + os.sep


def _checks_arguments(frame):
    return frame.f_code.co_filename.startswith(os.path.join(_TORCH, "distributions", ""))


def _frame(frame):
    """The frame of the module's code, outside of PyTorch and of this package, or that of a
    distribution, which checks its arguments."""
    while frame and frame.f_code.co_filename.startswith(_OWN) and not _checks_arguments(frame):
        frame = frame.f_back
    return frame


def _place(frame):
    return f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"


def line():
    """FILE:LINE of the module's code that is running; None in distributions."""
    frame = _frame(sys._getframe(1))
    return _place(frame) if frame and not _checks_arguments(frame) else None


# ---- functions whose export differs from them; None: this call does not ----


def _detach(x):
    return stop(x) if is_float(x) and x.requires_grad and torch.is_grad_enabled() else None


def _embedding(ids, weight, padding_idx=None, max_norm=None, norm_type=2.0, *rest, **named):
    """The row padding_idx gets no gradient from here."""
    if padding_idx is None:
        return None
    y = F.embedding(ids, weight, None, max_norm, norm_type, *rest, **named)
    return torch.where((ids == padding_idx % len(weight)).unsqueeze(-1), stop(y), y)


_attend = F.scaled_dot_product_attention


def _attention(
    q, k, v, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False
):
    """Rows in which a boolean mask hides every key are 0.  Dropout, which exporters leave inactive,
    is written out."""
    if enable_gqa:
        k, v = (x.repeat_interleave(q.shape[-3] // x.shape[-3], -3) for x in (k, v))
    if is_causal and not dropout_p:
        return _attend(q, k, v, is_causal=True, scale=scale)
    if is_causal:
        attn_mask = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool, device=q.device).tril()
    masked = attn_mask is not None and attn_mask.dtype == torch.bool
    if not dropout_p:
        y = _attend(q, k, v, attn_mask, scale=scale)
    else:
        z = q @ k.transpose(-2, -1) * (q.shape[-1] ** -0.5 if scale is None else scale)
        if masked:
            z = z.masked_fill(~attn_mask, torch.finfo(z.dtype).min)
        elif attn_mask is not None:
            z = z + attn_mask
        y = F.dropout(z.softmax(-1), dropout_p) @ v
    return y.masked_fill(~attn_mask.any(-1, keepdim=True), 0.0) if masked else y


def written_attention():
    """For calls inside of PyTorch's own functions, which no function mode sees."""
    return unittest.mock.patch.object(F, "scaled_dot_product_attention", _attention)


def _cross_entropy(
    z, y, weight=None, size_average=None, ignore_index=-100, reduce=None, *rest, **named
):
    """label_smoothing, written out."""
    reduction, smoothing = (*rest, *("mean", 0.0)[len(rest) :])
    reduction, smoothing = (
        named.get("reduction", reduction),
        named.get("label_smoothing", smoothing),
    )
    if not smoothing or size_average is not None or reduce is not None or z.ndim < 2:
        return None
    if is_float(y):
        y = y * (1 - smoothing) + smoothing / z.shape[1]
        return F.cross_entropy(z, y, weight, reduction=reduction)
    p, keep = z.log_softmax(1), y != ignore_index
    w = torch.ones_like(p[:1]) if weight is None else weight.view(1, -1, *[1] * (z.ndim - 2))
    even = -(p * w).mean(1) * keep
    if reduction == "sum":
        even = even.sum()
    elif reduction == "mean":
        count = keep if weight is None else weight[torch.where(keep, y, 0)] * keep
        even = even.sum() / count.sum()
    exact = F.nll_loss(p, y, weight, ignore_index=ignore_index, reduction=reduction)
    return exact * (1 - smoothing) + even * smoothing


def _l1_loss(x, y, size_average=None, reduce=None, reduction="mean", **named):
    if named or size_average is not None or reduce is not None:
        return None
    d = (x - y).abs()
    return {"mean": torch.mean, "sum": torch.sum}.get(reduction, lambda d: d)(d)


def _rms_norm(x, normalized_shape, weight=None, eps=None):
    """TorchScript's exporter refuses it."""
    if x.dtype not in (torch.float32, torch.float64):
        return None
    dims = tuple(range(-len(normalized_shape), 0))
    eps = torch.finfo(x.dtype).eps if eps is None else eps
    y = x * torch.rsqrt(x.square().mean(dims, keepdim=True) + eps)
    return y if weight is None else y * weight


def _diff(x, n=1, dim=-1, prepend=None, append=None):
    if n != 1:
        return None
    x = torch.cat([y for y in (prepend, x, append) if y is not None], dim)
    return x.narrow(dim, 1, x.shape[dim] - 1) - x.narrow(dim, 0, x.shape[dim] - 1)


def _cumsum(x, dim, *, dtype=None):
    return x.long().cumsum(dim, dtype=dtype) if x.dtype == torch.bool else None


def _cumprod(x, dim, *, dtype=None):
    """By doubling: after k rounds an element is the product of the 2^k before it and itself."""
    y = x if dtype is None else x.to(dtype)
    n, shift = y.shape[dim] if y.ndim else 1, 1
    while shift < n:
        later = y.narrow(dim, shift, n - shift) * y.narrow(dim, 0, n - shift)
        y = torch.cat([y.narrow(dim, 0, shift), later], dim)
        shift *= 2
    return y


def _channels_dropout(dims, x, p=0.5, training=True, inplace=False):
    """Dropout of whole channels."""
    if not training or x.ndim != dims + 2:
        return None
    return x * F.dropout(torch.ones_like(x[(...,) + (slice(0, 1),) * dims]), p)


def _extreme(which, x, dim=None, keepdim=False):
    """One of several equal elements gets the gradient."""
    if not isinstance(dim, int) or not is_float(x):
        return None
    at = (x.argmax if which == "max" else x.argmin)(dim, keepdim=True)
    y = x.gather(dim, at)
    if not keepdim:
        y, at = y.squeeze(dim), at.squeeze(dim)
    return getattr(torch.return_types, which)((y, at))


def _scatter_mean(x, dim, index, src, reduce, *, include_self=True):
    if reduce != "mean":
        return None
    start, one = (x, torch.ones_like(x)) if include_self else (torch.zeros_like(x),) * 2
    total = start.scatter_add(dim, index, src)
    count = one.scatter_add(dim, index, torch.ones_like(src))
    return total / count if include_self else torch.where(count > 0, total / count.clamp(min=1), x)


def _linspace(*args, **named):
    """TorchScript's exporter writes float64."""
    y = torch.linspace(*args, **named)
    return y.to(y.dtype)


def _masked_select(x, mask):
    """An index, which both exporters write."""
    if x.shape != mask.shape:
        x, mask = torch.broadcast_tensors(x, mask)
    return x[mask]


def _index_add(x, dim, index, source, *, alpha=1):
    if not x.ndim:
        return None
    shape = [1] * x.ndim
    shape[dim] = -1
    return x.scatter_add(dim, index.long().view(shape).expand_as(source), source * alpha)


def _index_put(x, indices, values, accumulate=False):
    if not accumulate or len(indices) != 1 or indices[0].dtype == torch.bool:
        return None
    index, rest = indices[0], x.shape[1:]
    values = values.expand(*index.shape, *rest).reshape(-1, *rest)
    return _index_add(x, 0, index.reshape(-1) % len(x), values)


def _in_place(write):
    def function(x, *args, **named):
        y = write(x, *args, **named)
        return None if y is None else x.copy_(y)

    return function


def _table():
    table = {F.embedding: _embedding, _attend: _attention}
    table[F.cross_entropy], table[F.l1_loss] = _cross_entropy, _l1_loss
    table[F.ctc_loss], table[F.rms_norm] = _ctc.loss, _rms_norm
    table[torch.linspace] = _linspace
    for dims in 1, 2, 3:
        table[getattr(F, f"dropout{dims}d")] = functools.partial(_channels_dropout, dims)
    table[torch.detach] = table[torch.Tensor.detach] = _detach
    for name, write in (
        ("max", functools.partial(_extreme, "max")),
        ("min", functools.partial(_extreme, "min")),
        ("scatter_reduce", _scatter_mean),
        ("masked_select", _masked_select),
        ("index_add", _index_add),
        ("index_put", _index_put),
        ("diff", _diff),
        ("cumsum", _cumsum),
        ("cumprod", _cumprod),
    ):
        table[getattr(torch, name)] = table[getattr(torch.Tensor, name)] = write
        if hasattr(torch.Tensor, name + "_"):
            table[getattr(torch.Tensor, name + "_")] = _in_place(write)
    return table


_WRITTEN = _table()


def _of(owner, *names):
    return {getattr(owner, name) for name in names}


_RANDOM = (
    _of(torch, "rand", "randn", "rand_like", "randn_like", "normal", "bernoulli", "multinomial")
    | _of(torch, "poisson", "randint", "randint_like", "randperm")
    | _of(torch.Tensor, "normal_", "uniform_", "bernoulli_", "exponential_", "bernoulli")
    | _of(torch.Tensor, "multinomial", "random_", "log_normal_", "cauchy_", "geometric_")
    | _of(F, "gumbel_softmax", "rrelu", "fractional_max_pool2d", "fractional_max_pool3d")
)
_DROPOUT = (
    _of(F, "dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout")
    | _of(F, "feature_alpha_dropout")
    | _of(torch, "dropout", "alpha_dropout", "feature_dropout", "feature_alpha_dropout")
)
_READ = _of(torch.Tensor, "item", "tolist", "numpy", "__bool__", "__int__", "__float__") | _of(
    torch.Tensor, "__index__", "__array__"
)
_SELECT = _of(torch, "masked_select") | _of(torch.Tensor, "masked_select", "__getitem__")
_SUM = {torch.sum, torch.Tensor.sum}
_SIZE = ("size", "dim", "numel", "ndimension", "__len__", "__get__")
_NEW = ("new_", "zeros_", "ones_", "full_", "empty_", "rand_", "randn_")


class Written(torch.overrides.TorchFunctionMode):
    """Writes a forward pass for an exporter: padding_idx, no_grad(), detach(), rows of attention
    without a key, ties of max, and scatters keep their meaning.  Notes in `read` where forward
    turns values that depend on the batch or on chance into Python's, which are constants in the
    file.  Notes in `checks` where they are only checked, and lets the checks pass."""

    def __init__(self, batch=(), read=None, checks=None):
        super().__init__()
        self.dead = {}  # results of no_grad(), kept alive for their ids
        self.of_batch = {id(x): x for x in batch}
        self.read, self.checks = read, [] if checks is None else checks
        self.finite = _checks.Finite()
        self.selected, self.counted = {}, {}  # selections by masks, and counts of their rows

    def __torch_function__(self, func, types, args=(), kwargs=None):
        passing = self._passing(func, args)
        if passing is not None:
            return passing
        if func is F.ctc_loss:
            args, kwargs = self._with_padded_targets(*args, **kwargs or {})
        result = self._write(func, args, kwargs or {})
        self._follow(func, args, kwargs or {}, result)
        name = getattr(func, "__name__", "")
        varies = func in _RANDOM or any(id(x) in self.of_batch for x in tree_leaves((args, kwargs)))
        if varies and name not in _SIZE:
            if func in _READ and self.read is not None:
                self._note(name)
            tensors = [x for x in tree_leaves(result) if isinstance(x, torch.Tensor)]
            self.of_batch.update((id(x), x) for x in tensors)
        return result

    def _passing(self, func, args):
        """What Python reads from a tensor, if forward only checks it; else None."""
        if func not in _READ:
            return None
        frame, outcome = _frame(sys._getframe(2)), self.finite.outcome(func, args)
        if outcome is None and func is torch.Tensor.__bool__ and id(args[0]) in self.of_batch:
            outcome = _checks.guarded(frame.f_code.co_filename, frame.f_lineno) if frame else None
        if outcome is None or self.read is not None and func(*args) != outcome:
            return None
        if frame:
            self.checks.append(_place(frame))
        return outcome

    def _follow(self, func, args, kwargs, result):
        self.finite.follow(func, args, result)
        if func in _SELECT and len(args) == 2 and getattr(args[1], "dtype", None) == torch.bool:
            if args[0].ndim == 2 and args[0].shape == args[1].shape:
                self.selected[id(result)] = result, *args
        elif func in _SUM and args and args[0].dtype == torch.bool and args[0].ndim == 2:
            if kwargs.get("dim", args[1] if len(args) > 1 else None) in (1, -1, (1,), (-1,)):
                self.counted[id(result)] = result, args[0]

    def _with_padded_targets(self, p, targets, frames, lengths, *args, **kwargs):
        """How many targets a mask selects depends on its values; padded rows have a fixed shape."""
        if id(targets) in self.selected and id(lengths) in self.counted:
            _, rows, mask = self.selected[id(targets)]
            if self.counted[id(lengths)][1] is mask:
                targets = _ctc.padded(rows, mask)
        return (p, targets, frames, lengths, *args), kwargs

    def _write(self, func, args, kwargs):
        live = torch.is_grad_enabled()
        given = [x for x in tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)]
        needs = any(x.requires_grad for x in given)
        # what an autograd.Function computed needs a gradient behind it
        dead = [id(x) for x in given if id(x) in self.dead and not x.requires_grad]
        if live and dead:
            args, kwargs = tree_map(lambda x: stop(x) if id(x) in dead else x, (args, kwargs))
        write = _WRITTEN.get(func)
        result = write(*args, **kwargs) if write else None
        if result is None:
            result = func(*args, **kwargs)
        if not (needs or dead) or getattr(func, "__name__", "").startswith(_NEW):
            return result
        if not live:
            self.dead.update((id(x), x) for x in tree_leaves(result) if is_float(x))
        elif needs and write is not _detach:
            return tree_map(lambda x: stop(x) if is_float(x) and not x.requires_grad else x, result)
        return result

    def _note(self, name):
        at = line()
        if at:
            self.read.append(f"{name} at {at}")


# ---- passes of the module itself, to compare with ----


class Plain(torch.overrides.TorchFunctionMode):
    """A pass without dropout.  Counts it (.dropouts) and notes random draws (.draws); with those of
    another pass, it repeats them."""

    def __init__(self, draws=None):
        super().__init__()
        self.draws, self.dropouts = [], 0
        self.repeat = itertools.cycle(draws) if draws else None

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func in _DROPOUT:
            p, training = (*args[1:3], *(0.5, True)[max(len(args) - 1, 0) :])
            self.dropouts += bool(kwargs.get("p", p) and kwargs.get("training", training))
            return args[0] if args else kwargs["input"]
        if func is _attend:
            self.dropouts += bool(kwargs.get("dropout_p", (*args, *[0] * 5)[4]))
            args, kwargs = args[:4] + (0.0,) * (len(args) > 4) + args[5:], dict(kwargs)
            kwargs.pop("dropout_p", None)
        result = func(*args, **kwargs)
        if func in _RANDOM:
            if self.repeat:
                draw = next(self.repeat).to(result.dtype)
                return result.copy_(draw) if args and result is args[0] else draw
            self.draws.append(result.detach().clone())
        return result


def without_dropout(module):
    """Switch off the dropout inside of modules, which no function mode sees.  Returns how many
    dropouts these were."""
    n = 0
    for m in module.modules():
        if isinstance(m, (torch.nn.RNNBase, torch.nn.MultiheadAttention)):
            times = m.num_layers - 1 if isinstance(m, torch.nn.RNNBase) else 1
            n += times if m.training and m.dropout else 0
            m.dropout = 0.0
    return n


def outputs(result, name=""):
    """(name, tensor) of all tensors that forward returns, in order."""
    if isinstance(result, torch.Tensor):
        scalar = is_float(result) and not result.ndim
        return [(name or ("loss" if scalar else "output"), result)]
    if isinstance(result, dict):
        parts = result.items()
    elif isinstance(result, (tuple, list)):
        named = getattr(result, "_fields", None) or [f"output_{i}" for i in range(len(result))]
        parts = zip(named, result)
    else:
        return []
    return [pair for k, x in parts for pair in outputs(x, f"{name}.{k}" if name else str(k))]
