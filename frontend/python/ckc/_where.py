"""Where a file and the module that it came from part ways, after a comparison that failed.

The module runs once more with every result of its operations recorded, and the file with all its
values as outputs.  A value of the file agrees if the module has a result of the same shape and
numbers.  Back from an output that differs, over values that do not agree, lies the first node whose
value the module does not have.  If the output agrees, the gradients of values that do are compared
from the loss back: a zero that is added to a value has its gradient.
"""

import ast
import contextlib
import os
import re
import tempfile

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from . import _file, _forward, _verify

_LIMIT = 1 << 30  # bytes of recorded results
_NO_VALUE = ("Shape", "Size", "Optional", "If", "Loop", "Scan")  # or none that depends on data
_STEPS = ("Round", "Sign", "Floor", "Ceil", "Greater", "Less", "GreaterOrEqual", "LessOrEqual")
_STRAIGHT = "ONNX has no gradient for it; try: g + (f - g).detach(), with g for the gradient"
_REMEDIES = {
    **dict.fromkeys(_STEPS, _STRAIGHT),
    "ScatterND": "TorchScript writes some assignments wrongly; try: dynamo=True",
    "ScatterElements": "TorchScript writes some scatters wrongly; try: dynamo=True",
    "Gather": "gradients of padding_idx and scale_grad_by_freq are lost; try: padding_idx=None",
    "InstanceNormalization": "running statistics are lost; use GroupNorm",
}


class _Result:
    """A result of the module: .x, a copy; .of, the submodule that computed it; .line of the code;
    .op; .output, whether it is the submodule's; .grad, if .tensor, its id, is followed."""

    def __init__(self, x, op, of, line, output, tensor):
        self.x, self.op, self.of, self.line, self.output = x, op, of, line, output
        self.tensor, self.grad = tensor, None

    def keep(self, grad):
        self.grad = grad.detach().double().clone()


class _Record:
    """The results of a forward pass, in order."""

    def __init__(self):
        self.results, self.bytes, self.inside, self.alive = [], 0, [""], {}
        self.busy = False

    def add(self, results, op, follow=False, output=False):
        """follow: only results with gradients, each tensor once."""
        if self.busy:  # with what add itself computes
            return
        self.busy, line = True, _forward.line()
        for x in tree_leaves(results):
            if not isinstance(x, torch.Tensor) or x.layout != torch.strided:
                continue
            follows = follow and x.requires_grad and not x.is_leaf
            if follow and not output and (not follows or id(x) in self.alive):
                continue
            self.bytes += x.numel() * x.element_size()
            if self.bytes > _LIMIT:
                continue
            kept = x.detach().clone()
            result = _Result(kept, op, self.inside[-1], line, output, id(x) if follows else None)
            if follows:
                self.alive[id(x)] = x
                x.register_hook(result.keep)
            self.results.append(result)
        self.busy = False

    @contextlib.contextmanager
    def __call__(self, module):
        handles = []

        def follow(name, m):
            def leave(m, args, result):
                self.add([x for _, x in _forward.outputs(result)], "output", True, True)
                self.inside.pop()

            handles.append(m.register_forward_pre_hook(lambda m, args: self.inside.append(name)))
            handles.append(m.register_forward_hook(leave))

        for name, m in module.named_modules():
            if not isinstance(m, torch.jit.ScriptModule):
                follow(name, m)
        try:
            with _Functions(self), _Operations(self):
                yield
        finally:
            for h in handles:
                h.remove()


class _Operations(TorchDispatchMode):
    """Values of all operations, inside of PyTorch's own functions, too."""

    def __init__(self, record):
        super().__init__()
        self.record = record

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        self.record.add(result, str(func).split(".")[1])
        return result


class _Functions(torch.overrides.TorchFunctionMode):
    """Gradients of the results of functions; operations run below autograd."""

    def __init__(self, record):
        super().__init__()
        self.record = record

    def __torch_function__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        self.record.add(result, getattr(func, "__name__", "function"), True)
        return result


def _equal(x, y, other, relative=1e-5, least=1e-6):
    """Whether x is y up to rounding; `other`: y in the module's own type, or None."""
    other, relative = (y, 10 * relative) if other is None else (other, relative)
    if not y.is_floating_point() or not x.is_floating_point():
        return torch.equal(x.double(), y.double())
    x, y, other = (t.double() for t in (x, y, other))
    if y.isinf().any():
        same = x == y
        x, y, other = (torch.where(same, 0.0, t) for t in (x, y, other))
    relative /= 10 if y.numel() == 1 else 1  # others may be as near by chance
    return not _verify._far(x, y, other, relative, least)


class _Comparison:
    """Values of the file and results of the module: .same, {value: results that it equals}."""

    def __init__(self, module, nodes, found, plain, exact):
        self.modules = dict(module.named_modules())
        self.nodes, self.values = nodes, found
        self.maker = {v: n for n in nodes for v in n.outputs if v}
        self.readers = {}
        for n in nodes:
            for v in dict.fromkeys(n.inputs):
                self.readers.setdefault(v, []).append(n)
        self.results, self.same, self.present = exact, {}, set()
        of_shape, twins, self.rounded = {}, {}, []  # rounded: in the module's own type
        for r in plain:  # other types may run other operations
            twins.setdefault((r.op, r.of, r.x.shape), []).append(r)
        for i, r in enumerate(exact):
            of_shape.setdefault(r.x.shape, []).append(i)
            like = twins.get((r.op, r.of, r.x.shape))
            self.rounded.append(like.pop(0) if like else None)
        for value, x in found.items():
            like = of_shape.get(x.shape, [])
            self.same[value] = [
                i for i in like if _equal(x, exact[i].x, self.rounded[i] and self.rounded[i].x)
            ]
            self.present.update(self.same[value])
        self.varies = set()

    def vary(self, sources):
        """Which values depend on inputs or parameters, but not only on their shapes."""
        self.varies = set(sources)
        for n in self.nodes:
            if n.op not in _NO_VALUE and self.varies & set(n.inputs):
                self.varies.update(n.outputs)

    def path(self, node):
        """The submodule that computes a node: that of the exporter's scope; where lists have left
        gaps in it, one of those whose names end like it, by the results of the module."""
        scopes = node.notes.get("pkg.torch.onnx.name_scopes")
        if scopes:
            return next((s for s in ast.literal_eval(scopes)[::-1] if s in self.modules), "")
        at, parent = "", ""
        for part in node.name.split("/")[1:-1]:
            names = [part, re.sub(r"_\d+$", "", part)]  # later calls have a number
            paths = [f"{p}.{n}" if p else n for n in names for p in (at, parent)]
            known = [p for p in paths if p in self.modules and p != at]
            if not known:
                ends = [m for m in self.modules if m.rpartition(".")[2] in names]
                return self._nearest(node, ends)
            at, parent = known[0], at
        return at

    def _nearest(self, node, paths):
        own = [self.results[i].of for v in node.outputs for i in self.same.get(v, [])]
        after = max([i for v in node.inputs for i in self.same.get(v, [])[:1]], default=-1)
        near = own + [r.of for r in self.results[after + 1 :]]
        return next((of for of in near if of in paths), paths[0] if len(paths) == 1 else "")

    def place(self, node):
        of = self.path(node)
        what = f"'{of}' ({type(self.modules[of]).__name__})" if of else "the module itself"
        return f"node '{node.name}' ({node.op}) in {what}"

    def unknown(self, output):
        """Nodes behind an output whose values do not agree, from which only such nodes lead to it;
        in order.  A number may agree by chance: it does not count if the file lacks the output of a
        submodule."""
        todo, seen, found = [output], set(), []
        lacks = any(
            r.output and r.of and r.x.numel() > 1 and i not in self.present
            for i, r in enumerate(self.results)
        )
        while todo:
            value = todo.pop()
            node = self.maker.get(value)
            if node is None or node in seen:
                continue
            alike = self.same.get(value)
            if not alike or (lacks and self.values[value].numel() == 1):
                seen.add(node)
                found += [] if alike else [node]
                todo += [v for v in node.inputs if v in self.varies]
        return [n for n in self.nodes if n in found]

    def forward(self, output):
        """Lines about the first node whose value the module does not have."""
        unknown = self.unknown(output)
        if not unknown:
            return []
        first, of = unknown[0], self.path(unknown[0])
        behind = [i for v in first.inputs for i in self.same.get(v, [])]
        missing = [
            r
            for i, r in enumerate(self.results)
            if r.of == of and i > min(behind, default=-1) and i not in self.present
        ]
        at = next((f", near {r.line}" for r in missing if r.line), "")
        numbers = self._numbers(of, missing, self._run(first, of))
        if self.same.get(output) and not numbers:  # of which nothing was seen
            return []
        lines = [f"first value that the module does not have: {self.place(first)}{at}"]
        run = self._run(first, of)
        more = [f"'{n.name}' ({n.op})" for n in run if n in unknown and n is not first]
        if more:
            etc = f" and {len(more) - 3} more" if more[3:] else ""
            lines.append(f"  other nodes there that differ: {', '.join(more[:3])}{etc}")
        return lines + numbers + self._remedy([first])

    def _run(self, first, of):
        """Nodes from the first to the end of this call of its submodule."""
        run = []
        for n in self.nodes[self.nodes.index(first) :]:
            if self.path(n) != of and not (of and self.path(n).startswith(of + ".")):
                break
            run.append(n)
        return run

    def _numbers(self, of, missing, run):
        """What the submodule returns, and the last value of its nodes with that shape."""
        for want in (r.x for r in missing if r.output and of):
            for n in run[::-1]:
                for got in (self.values[v] for v in n.outputs if v in self.values):
                    if got.shape == want.shape and got.dtype.is_floating_point:
                        off = float((got.double() - want.double()).abs().max())
                        return [
                            f"  output of '{of}': expected norm {_verify._norm(want)}, found "
                            f"{_verify._norm(got)}, largest difference {off:.6g}"
                        ]
        return []

    def _remedy(self, nodes):
        return [f"  {_REMEDIES[n.op]}" for n in nodes if n.op in _REMEDIES][:1]

    def followed(self):
        """Values whose gradients the module has, too: {value: {tensor: gradient, and that of the
        module in its own type}}."""
        grads = {}
        for value, like in self.same.items():
            known = [(self.results[i], self.rounded[i]) for i in like if self.results[i].tensor]
            x = self.values[value]
            if known and x.dtype == torch.float32 and x.numel() > 1 and value in self.varies:
                zero = torch.zeros(x.shape, dtype=torch.float64)
                grads[value] = {
                    r.tensor: [zero if x is None or x.grad is None else x.grad for x in (r, q or r)]
                    for r, q in known
                }
        return grads

    def backward(self, found, wanted, parameters):
        """Lines about the first gradient, from the loss back, that is not the module's.
        parameters: {name: names of it, if it is tied}."""
        order = {n: i for i, n in enumerate(self.nodes)}
        at = {v: order[self.maker[v]] for v in wanted if v in self.maker}
        readers = {v: self.readers.get(v, []) for v in at}
        for p, names in parameters.items():
            readers[p] = [n for name in names for n in self.readers.get(name, [])]
            at |= {p: min(order[n] for n in readers[p]) - 0.5} if readers[p] else {}
        every = [g for grads in wanted.values() for g, _ in grads.values()]
        whole = max((float(g.norm()) for g in every), default=0.0)
        alone, agree = {}, {}  # for agree, one value is enough of those with the same numbers
        for v in at:
            expected = list(wanted[v].values())
            total = [[sum(gs) for gs in zip(*expected)]] if len(expected) > 1 else []
            got = found[v] = found.get(v, torch.zeros_like(expected[0][0])).double()
            alone[v] = same = got.shape != expected[0][0].shape or any(
                _equal(got, g, other, 1e-3, 1e-6 * whole) for g, other in expected + total
            )
            agree.update((t, agree.get(t, False) or same) for t in wanted[v])
        for v in sorted(at, key=at.get, reverse=True):
            if not any(agree[t] for t in wanted[v]):
                while after := [w for n in readers[v] for w in n.outputs if not alone.get(w, True)]:
                    v = after[0]
                return self._gradient(v, found[v], wanted[v].values(), readers[v])
        return []

    def _gradient(self, v, got, expected, readers):
        want = min((g for g, _ in expected), key=lambda g: float((g - got).norm()))
        of = f"the output of {self.place(self.maker[v])}" if v in self.maker else f"'{v}'"
        return [
            f"first gradient that differs, from the loss back: that of {of}",
            f"  expected norm {_verify._norm(want)}, found {_verify._norm(got)}, largest "
            f"difference {float((got - want).abs().max()):.6g}",
            *[f"  read by {self.place(n)}" for n in readers[:3]],
            *self._remedy(readers),
        ]


def _tensor_values(nodes):
    """Values that may be outputs of a graph: no sequences, no statistics, no masks of dropout."""
    return [
        v
        for n in nodes
        if n.op not in _NO_VALUE and (n.op == "SequenceAt" or "Sequence" not in n.op)
        for v in (n.outputs[:1] if n.op in ("Dropout", "BatchNormalization") else n.outputs)
        if v
    ]


def first_difference(module, batch, path, draws, different, **options):
    """Lines that name the node where the file parts from the module; none if no value shows it."""
    output, target = different.output, different.target
    records = _Record(), _Record()
    plain, exact = _verify.steps(module, batch, output, draws, target, records)
    results = [r.results for r in records]
    if max(r.bytes for r in records) > _LIMIT:
        return [f"no node is named: more than {_LIMIT >> 30} GiB of values"]
    if exact is plain:
        results[1] = results[0]
    if any(g is not None and not g.isfinite().all() for g in exact.grads.values()):
        return []
    nodes = _file.graph(path)
    with tempfile.TemporaryDirectory(prefix="ckc-") as folder:
        copy = os.path.join(folder, "model.onnx")

        def step(values, probes, **more):
            _file.rewrite(path, copy, values, probes)
            return _verify.Found(
                copy, batch, output, target, plain.dropouts, eval=False, **options, **more
            )

        names = [name for name, _ in plain.outputs]
        found = step([v for v in _tensor_values(nodes) if v not in names], {}, outputs="*")
        if target is None:
            found.values[output] = torch.tensor(found.loss)
        comparison = _Comparison(module, nodes, found.values, *results)
        aliases = {}
        for name, p in module.named_parameters(remove_duplicate=False):
            aliases.setdefault(id(p), []).append(name)
        buffers = dict(module.named_buffers())
        comparison.vary([*batch, *buffers, *[k for names in aliases.values() for k in names]])
        lines = comparison.forward(output)
        if lines:
            return lines
        wanted = {v: g for v, g in comparison.followed().items() if v not in names}
        probes = {
            v: (f"ckc.gradient.{i}", tuple(found.values[v].shape)) for i, v in enumerate(wanted)
        }
        found = step((), probes, param=[name for name, _ in probes.values()])
    grads = {v: found.grads.pop(k) for v, (k, _) in probes.items() if k in found.grads}
    grads.update(_verify._by_parameter(module, found)[0])
    trained = {
        k: {k: [g, g if plain.grads[k] is None else plain.grads[k]]}
        for k, g in exact.grads.items()
        if g is not None
    }
    wanted.update(trained)
    aliases = {names[0]: names for names in aliases.values() if names[0] in trained}
    return comparison.backward(grads, wanted, aliases)
