"""One training step of an exported file against the module that it came from."""

import contextlib
import copy
import json
import math
import os
import random
import tempfile
import warnings

import numpy
import torch

import ckc

from . import _forward

_DTYPES = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}


def _read_safetensors(path):
    with open(path, "rb") as f:
        data = f.read()
    start = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:start])
    header.pop("__metadata__", None)
    found = {}
    for name, t in header.items():
        first, last = t["data_offsets"]
        part = bytearray(data[start + first : start + last])
        x = torch.frombuffer(part, dtype=_DTYPES[t["dtype"]]) if part else torch.zeros(0)
        found[name] = x.reshape(t["shape"]).double()
    return found


def to_type(x, dtype):
    return x.to(dtype) if dtype and _forward.is_float(x) else x


class Step:
    """A step of a copy of the module without dropout: .loss of the output `name`, .grads of its
    parameters (None: it gets none), .buffers after it.  watch: a function of the copy that returns
    a context for the forward pass."""

    def __init__(self, module, batch, name=None, dtype=None, draws=None, target=None, watch=None):
        twin = copy.deepcopy(module)
        twin = twin.to(dtype) if dtype else twin
        dropouts = _forward.without_dropout(twin)
        batch = {k: to_type(x.clone(), dtype) for k, x in batch.items()}
        variances = _follow_variances(twin)
        mode, chance = _forward.Plain(draws), random.getstate()
        numbers, settings = numpy.random.get_state()[1:3], _settings(twin)
        with torch.random.fork_rng(devices=[]), torch.enable_grad(), mode:
            with watch(twin) if watch else contextlib.nullcontext():
                result = twin(**batch)
            self.outputs = _forward.outputs(result)
            self.dropouts, self.draws = dropouts + mode.dropouts, list(mode.draws)
            self.changed = [
                k
                for (k, p), q in zip(twin.named_parameters(), module.parameters())
                if not torch.equal(p, to_type(q, p.dtype))
            ]
            if _settings(twin) != settings:
                self.changed += _counters(module, batch)
            loss = self._loss(name, target)
            if isinstance(loss, torch.Tensor) and loss.requires_grad:
                for m in twin.modules():  # a checkpoint runs forward again, without the mode
                    if isinstance(m, torch.nn.modules.dropout._DropoutNd):
                        m.p = 0.0
                loss.backward()
        self.python_draws = random.getstate() != chance or any(
            numpy.any(x != y) for x, y in zip(numbers, numpy.random.get_state()[1:3])
        )
        self.loss = float(loss.detach()) if isinstance(loss, torch.Tensor) else 0.0
        self.grads = {
            k: None if p.grad is None else p.grad.to_dense().double()
            for k, p in twin.named_parameters()
        }
        self.buffers = {k: x.detach().double() for k, x in twin.named_buffers()}
        self.buffers.update({k: x.double() for k, x in variances.items()})
        self.functions = _own_functions(loss)

    def _loss(self, name, target):
        if name is None:  # all that the file may be trained for
            return sum(x.sum() for _, x in self.outputs if x.requires_grad)
        loss = dict(self.outputs)[name]
        return (loss - to_type(target, loss.dtype)).square().mean() if loss.ndim else loss


def _counters(module, batch):
    """Settings that change in each pass, not only in the first."""
    twin = copy.deepcopy(module)
    twin(**batch)
    first = _settings(twin)
    twin(**batch)
    return [k for k, x in _settings(twin).items() if first.get(k, x) != x]


def _settings(module):
    """Numbers and texts that modules keep in Python, such as counters."""
    return {
        (f"{name}." if name else "") + k: x
        for name, m in module.named_modules()
        for k, x in vars(m).items()
        if isinstance(x, (bool, int, float, str))
    }


def _follow_variances(module):
    """Running variances as ONNX has them, of all n elements; PyTorch divides by n - 1."""
    variances = {}

    def follow(name, m):
        variances[name] = m.running_var.clone()

        def hook(m, args):
            if m.training:
                dims = [i for i in range(args[0].ndim) if i != 1]
                new = args[0].detach().var(dims, correction=0)
                variances[name] = torch.lerp(variances[name], new.to(m.running_var), m.momentum)

        m.register_forward_pre_hook(hook)

    for name, m in module.named_modules():
        if isinstance(m, torch.nn.modules.batchnorm._BatchNorm) and m.running_var is not None:
            if m.momentum is not None:
                follow(f"{name}.running_var" if name else "running_var", m)
    return variances


def _own_functions(loss):
    """Names of the autograd.Functions behind the loss."""
    todo, seen, found = [getattr(loss, "grad_fn", None)], set(), set()
    while todo:
        node = todo.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        name = type(node).__name__.removesuffix("Backward")
        if isinstance(node, torch.autograd.function.BackwardCFunction) and name not in (
            "BackwardHookFunction",
            "CheckpointFunction",
        ):
            found.add(name)
        todo += [n for n, _ in node.next_functions]
    return found


def remedies(module, step):
    """What forward or the module has that no export keeps."""
    found = [
        f"the backward pass of {name} is lost; try: g + (f - g).detach(), with f for the value and g "
        "for the gradient"
        for name in sorted(step.functions)
    ]
    for name, m in module.named_modules():
        if isinstance(m, (torch.nn.Embedding, torch.nn.EmbeddingBag)):
            if m.scale_grad_by_freq:
                found.append(
                    "scale_grad_by_freq is lost; try: "
                    f"module.get_submodule('{name}').scale_grad_by_freq = False"
                )
        if isinstance(m, torch.nn.modules.instancenorm._InstanceNorm) and m.track_running_stats:
            found.append(f"running statistics of '{name}' are lost; use GroupNorm")
        if m._backward_hooks or m._backward_pre_hooks:
            found.append(f"backward hooks of '{name}' are lost; remove them")
    return found


class Found:
    """The same step of the file, compiled for the loss `name`.  options: of ckc.compile; with
    outputs="*", .values has all outputs of the file after the step."""

    def __init__(self, path, batch, name, target, dropouts, **options):
        scalar = target is None
        loss = name if scalar else f"mse:{name}"
        with tempfile.TemporaryDirectory(prefix="ckc-") as folder:
            with warnings.catch_warnings(record=True) as self.warnings:
                warnings.simplefilter("always")
                model = ckc.compile(
                    path,
                    os.path.join(folder, "model.so"),
                    loss=loss,
                    optimizer="sgd",
                    **({"dropout": "off"} if dropouts else {}),
                    **options,
                )
                with ckc.Trainer(model, lr=0.0, weight_decay=0.0) as t:
                    t.hyper.on_nan = 2  # CKR_NAN_GO: a difference is reported, too
                    batch = {k: batch.get(k, target) for k in t._infos}
                    self.score = None if options.get("eval") is False else t.eval(**batch)
                    grads = os.path.join(folder, "grads.safetensors")
                    t.save_grads(grads)
                    self.loss = t.step(**batch)
                    self.grads = _read_safetensors(grads) if os.path.exists(grads) else {}
                    self.state = {k: torch.from_numpy(x) for k, x in t.state_dict().items()}
                    self.values = {
                        k: torch.from_numpy(t._out(i))
                        for k, i in t._tensors.items()
                        if "outputs" in options and i.kind == b"output"
                    }


def _norm(x):
    return "none" if x is None else f"{float(x.norm()):.6g}"


def _far(x, y, other, relative, least):
    """Whether x is further from y than rounding explains; the distance of `other`, the module's
    step in its own type, shows how far that goes."""
    noise = float((other - y).norm())
    return not float((x - y).norm()) <= relative * float(y.norm()) + 20 * noise + least


def _by_parameter(module, found):
    """The file's gradients by the names of named_parameters(), and messages about their names."""
    first, names, grads, messages = {}, {}, {}, []
    for name, p in module.named_parameters(remove_duplicate=False):
        names[name] = first.setdefault(id(p), name)
    for name, g in found.grads.items():
        if name not in names:
            messages.append(f"'{name}' is trained, but is no parameter of the module")
        elif names[name] in grads:
            messages.append(f"'{names[name]}' and '{name}' are one parameter, but two in the file")
        else:
            grads[names[name]] = g
    return grads, messages


def _compare_gradients(module, exact, plain, found):
    grads, messages = _by_parameter(module, found)
    whole = math.sqrt(sum(float(g.square().sum()) for g in exact.grads.values() if g is not None))
    wild = [k for k, g in exact.grads.items() if g is not None and not g.isfinite().all()]
    if wild:
        others = f" and {len(wild) - 1} others" if wild[1:] else ""
        return [
            f"the module's own gradient of '{wild[0]}'{others} is not finite for this example; "
            "try: verify=ANOTHER_BATCH"
        ]
    blurred = []
    for name, want in exact.grads.items():
        g, other = grads.get(name), plain.grads[name]
        moves = g is not None and bool(g.any())
        if want is None:
            if moves:
                messages.append(f"'{name}' moves, but not in the module")
            continue
        noise, size = float((other - want).norm()), float(want.norm())
        if noise > 0.05 * size and size > 1e-3 * whole:
            blurred.append(name)
        if not moves and size > 20 * noise + 1e-12 * whole:
            messages.append(f"'{name}' does not move, but does in the module")
        elif moves and g.shape != want.shape:
            messages.append(f"'{name}': expected shape {list(want.shape)}, found {list(g.shape)}")
        elif moves and _far(g, want, other, 1e-3, 1e-6 * whole):
            messages.append(
                f"gradient of '{name}': expected norm {_norm(want)}, found {_norm(g)}, difference "
                f"{_norm(g - want)}"
            )
    if blurred:
        warnings.warn(
            f"rounding blurs the gradient of {', '.join(blurred)} in the module, too: for this "
            "example the comparison proves little",
            stacklevel=6,
        )
    return messages


def _compare_buffers(module, exact, plain, found):
    messages = []
    for name, old in module.named_buffers():
        want, got = exact.buffers[name], found.state.get(name, old).double()
        if _forward.is_float(old):
            same = not _far(got, want, plain.buffers[name], 1e-3, 1e-6)
        else:
            same = name.endswith("num_batches_tracked") or torch.equal(got, want)
        if not same and torch.equal(got, old.double()):
            messages.append(f"forward updates '{name}', but the file does not; make it an input")
        elif not same:
            messages.append(f"buffer '{name}': expected norm {_norm(want)}, found {_norm(got)}")
    return messages


def _compare(module, exact, plain, found):
    messages = []
    x, y, other = (torch.tensor([s.loss], dtype=torch.float64) for s in (found, exact, plain))
    if _far(x, y, other, 1e-4, 1e-6):
        messages.append(f"loss: expected {exact.loss:.6g}, found {found.loss:.6g}")
    messages += _compare_gradients(module, exact, plain, found)
    return messages + _compare_buffers(module, exact, plain, found)


def _compare_evaluation(module, batch, name, draws, target, found):
    """ckc evaluates the forward pass of training, without dropout and with running statistics."""
    try:
        score = Step(copy.deepcopy(module).eval(), batch, name, None, draws, target).loss
    except Exception:  # forward may have no loss then
        score = None
    if score is None or abs(found.score - score) > 1e-3 * abs(score) + 1e-5:
        what = "fails" if score is None else f"is {score:.6g}"
        warnings.warn(
            f"for '{name}' of the example, ckc's evaluation is {found.score:.6g}, but that of "
            f"module.eval() {what}: evaluate in PyTorch",
            stacklevel=5,
        )


class Different(ckc.Error):
    """A step of the file is not one of the module.  .output, .target: of the first loss that shows
    it."""

    def __init__(self, message, output, target):
        super().__init__(message)
        self.output, self.target = output, target


def steps(module, batch, name, draws, target, watches=(None, None)):
    """A step of the module for the loss `name` in its own type and in float64, where forward takes
    that."""
    plain = exact = Step(module, batch, name, None, draws, target, watches[0])
    with contextlib.suppress(RuntimeError, TypeError):  # a type that forward demands
        exact = Step(module, batch, name, torch.float64, draws, target, watches[1])
    return plain, exact


def compare(module, batch, path, draws, **options):
    """Raise Different unless a step of the file is that of the module, for each output that it may
    be trained for.  options: of ckc.compile."""
    checked, messages, first = 0, [], None
    for name, x in Step(module, batch, draws=draws).outputs:
        if not x.requires_grad or not x.numel():
            continue
        target = None
        if x.ndim:
            draw = torch.Generator().manual_seed(checked)
            target = torch.randn(x.shape, generator=draw).to(x.dtype)
        plain, exact = steps(module, batch, name, draws, target)
        if not math.isfinite(plain.loss):
            raise ckc.Error(f"output '{name}' of the module is {plain.loss} for the example")
        found = Found(path, batch, name, target, plain.dropouts, **options)
        differ = _compare(module, exact, plain, found)
        if not differ:
            _compare_evaluation(module, batch, name, draws, target, found)
        if differ:
            first = first or (name, target)
            differ += [str(w.message) for w in found.warnings]
            messages += [f"for output '{name}':"] + [f"  {m}" for m in differ]
        checked += 1
    if not checked:
        raise ckc.Error("no output of the module depends on a parameter")
    if messages:
        message = f"{os.path.basename(path)}: a step of the file differs from one of the module"
        raise Different("\n  ".join([message, *messages]), *first)
