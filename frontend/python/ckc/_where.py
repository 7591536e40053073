"""Where a file and the module that it came from part ways, after a comparison that failed.

The module runs once more with every result of its operations recorded, and the file with all its
values as outputs.  A value of the file agrees if the module has a result of the same shape and
numbers.  Back from an output that differs, over values that do not agree, lies the first node whose
value the module does not have.  If the output agrees, the gradients of values that do are compared
from the loss back: a zero that is added to a value has its gradient.
"""

import contextlib
import os
import tempfile

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from . import _file, _forward, _verify

_LIMIT = 1 << 30  # bytes of recorded results
_NO_VALUE = ("Shape", "Size", "Optional", "If", "Loop", "Scan")  # or none that depends on data


class _Result:
    """A copy .x of a result of the module; .of, the submodule that computed it; .line of the code;
    .op, which is "output" for the submodule's; .grad, if the gradient of .tensor is followed."""

    def __init__(self, x, op, of, line, tensor):
        self.x, self.op, self.of, self.line, self.tensor, self.grad = x, op, of, line, tensor, None

    def keep(self, grad):
        self.grad = grad.detach().double().clone()


class _Record:
    """The results of a forward pass, in order: values of all operations, inside of PyTorch's own
    functions, too; gradients of what functions and submodules return, as operations run below
    autograd."""

    def __init__(self):
        self.results, self.bytes, self.inside, self.followed = [], 0, [""], {}
        self.busy = False

    def add(self, results, op, follow):
        """follow: only results with gradients, each tensor once, and outputs."""
        if self.busy:  # with what add itself computes
            return
        self.busy, line = True, _forward.line()
        for x in tree_leaves(results):
            if not isinstance(x, torch.Tensor) or x.layout != torch.strided:
                continue
            follows = follow and x.requires_grad and not x.is_leaf
            if follow and op != "output" and (not follows or id(x) in self.followed):
                continue
            self.bytes += x.numel() * x.element_size()
            if self.bytes > _LIMIT:
                continue
            copy, tensor = x.detach().clone(), id(x) if follows else None
            self.results.append(_Result(copy, op, self.inside[-1], line, tensor))
            if follows:
                self.followed[tensor] = x
                x.register_hook(self.results[-1].keep)
        self.busy = False

    @contextlib.contextmanager
    def __call__(self, module):
        record = self

        class Operations(TorchDispatchMode):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                result = func(*args, **(kwargs or {}))
                record.add(result, str(func), False)
                return result

        class Functions(torch.overrides.TorchFunctionMode):
            def __torch_function__(self, func, types, args=(), kwargs=None):
                result = func(*args, **(kwargs or {}))
                record.add(result, getattr(func, "__name__", "function"), True)
                return result

        def leave(m, args, result):
            self.add([x for _, x in _forward.outputs(result)], "output", True)
            self.inside.pop()

        for name, m in module.named_modules():
            if not isinstance(m, torch.jit.ScriptModule):
                m.register_forward_pre_hook(lambda m, args, name=name: self.inside.append(name))
                m.register_forward_hook(leave)
        with Functions(), Operations():
            yield


def _equal(x, y, other, relative=1e-5, least=1e-6):
    """Whether x is y up to rounding; `other`: y in the module's own type, or None."""
    other, relative = (y, 10 * relative) if other is None else (other, relative)
    if not y.is_floating_point() or not x.is_floating_point():
        return torch.equal(x.double(), y.double())
    x, y, other = (t.double() for t in (x, y, other))
    same = y.isinf() & (x == y)
    relative /= 10 if y.numel() == 1 else 1  # others may be as near by chance
    return not _verify._far(*(t.masked_fill(same, 0) for t in (x, y, other)), relative, least)


class _Comparison:
    """Values of the file and results of the module: .same, {value: numbers of equal results}.
    names: {name of a parameter: its first one, if it is tied}."""

    def __init__(self, module, nodes, values, plain, exact, names, sources):
        self.modules, self.nodes, self.values = dict(module.named_modules()), nodes, values
        self.made, self.readers = {}, {}  # where in nodes
        self.varies = {*sources, *names}  # by more than shapes
        for k, n in enumerate(nodes):
            self.made.update((v, k) for v in n.outputs if v)
            for v in {names.get(v, v) for v in n.inputs}:
                self.readers.setdefault(v, []).append(k)
            if n.op not in _NO_VALUE and self.varies & set(n.inputs):
                self.varies.update(n.outputs)
        if [r.op for r in plain] != [r.op for r in exact]:  # float64 may run others
            plain = [None] * len(exact)
        self.results, self.plain, self.same, shapes = exact, plain, {}, {}
        for i, r in enumerate(exact):
            shapes.setdefault(r.x.shape, []).append(i)
        for value, x in values.items():
            like = [(i, exact[i].x, plain[i] and plain[i].x) for i in shapes.get(x.shape, [])]
            self.same[value] = [i for i, y, other in like if _equal(x, y, other)]
        present = {i for found in self.same.values() for i in found}
        self.missing = [i for i in range(len(exact)) if i not in present]

    def at(self, node):
        """The module's result in place of a node's: one that is equal; or else, between its inputs
        and the next output of a submodule that the file lacks, the first result of this shape that
        the file lacks, or of any shape; or an input; -1: not known."""
        own = [i for v in node.outputs for i in self.same.get(v, [])[:1]]
        after = max((i for v in node.inputs for i in self.same.get(v, [])[:1]), default=-1)
        shapes = [self.values[v].shape for v in node.outputs if v in self.values]
        lacks = [i for i in self.missing if i > after]
        end = next((i for i in lacks if self.results[i].op == "output"), -1)
        lacks = [i for i in lacks if i <= end]
        like = [i for i in lacks if self.results[i].x.shape in shapes]
        return [*own, *like, *lacks, after][0]

    def place(self, node):
        at = self.at(node)
        of = self.results[at].of if at >= 0 else ""
        what = f"'{of}' ({type(self.modules[of]).__name__})" if of else "the module itself"
        return f"node '{node.name}' ({node.op}) in {what}"

    def unknown(self, output):
        """Nodes behind an output whose values do not agree, from which only such nodes, or numbers,
        which may agree by chance, lead to it; in order."""
        todo, seen = [output], set()
        while todo:
            value = todo.pop()
            k = self.made.get(value)
            if k is None or k in seen or value not in self.values:
                continue
            if not self.same[value] or self.values[value].numel() == 1:
                seen.add(k)
                todo += [v for v in self.nodes[k].inputs if v in self.varies]
        nodes = [self.nodes[k] for k in sorted(seen)]
        return [n for n in nodes if not any(map(self.same.get, n.outputs))]

    def forward(self, output):
        """Lines about the first node whose value the module does not have."""
        unknown = self.unknown(output)
        if not unknown:
            return []
        at = self.at(unknown[0])
        result = self.results[at] if at >= 0 else None
        numbers = self._output(result.of, at, unknown) if result and result.of else []
        if self.same[output] and not numbers:  # of which nothing was seen
            return []
        near = f", near {result.line}" if result and result.line else ""
        place = self.place(unknown[0])
        return [f"first value that the module does not have: {place}{near}", *numbers]

    def _output(self, of, at, unknown):
        """The output of a submodule that the file lacks, and the nearest value in its place."""
        want = [self.results[i] for i in self.missing if i >= at]
        want = [r.x.double() for r in want if r.of == of and r.op == "output"][:1]
        values = [self.values[v].double() for n in unknown for v in n.outputs if v in self.values]
        return [
            f"  output of '{of}': " + _numbers(min(like, key=lambda x: (x - y).norm()), y)
            for y in want
            if (like := [x for x in values if x.shape == y.shape])
        ]

    def followed(self):
        """Values whose gradients the module has, too: {value: {tensor: gradient, and that of the
        module in its own type}}."""
        grads = {}
        for value, like in self.same.items():
            x = self.values[value]
            if x.dtype != torch.float32 or x.numel() == 1 or value not in self.varies:
                continue
            zero = torch.zeros(x.shape, dtype=torch.float64)
            for r, own in ((self.results[i], self.plain[i]) for i in like):
                if r.tensor:
                    both = [zero if q.grad is None else q.grad for q in (r, own or r)]
                    grads.setdefault(value, {})[r.tensor] = both
        return grads

    def backward(self, found, wanted):
        """Lines about the first gradient, from the loss back, that is not the module's."""
        at = {v: self.made.get(v, self.readers.get(v, [0])[0] - 0.5) for v in wanted}
        whole = max((float(g.norm()) for of in wanted.values() for g, _ in of.values()), default=0)
        alone, agree = {}, {}  # for agree, one value is enough of those with the same numbers
        for v, of in wanted.items():
            expected = list(of.values())
            total = [[sum(gs) for gs in zip(*expected)]] if len(expected) > 1 else []
            got = found[v] = found.get(v, torch.zeros_like(expected[0][0])).double()
            alone[v] = got.shape != expected[0][0].shape or any(
                _equal(got, g, other, 1e-3, 1e-6 * whole) for g, other in expected + total
            )
            agree.update((t, agree.get(t, False) or alone[v]) for t in of)
        for v in sorted(wanted, key=at.get, reverse=True):
            if any(agree[t] for t in wanted[v]):
                continue
            while readers := [self.nodes[k] for k in self.readers.get(v, [])]:
                later = [w for n in readers for w in n.outputs if not alone.get(w, True)]
                if not later:
                    break
                v = later[0]
            want = min((g for g, _ in wanted[v].values()), key=lambda g: (g - found[v]).norm())
            made = v in self.made and self.place(self.nodes[self.made[v]])
            of = f"the output of {made}" if made else f"'{v}'"
            return [
                f"first gradient that differs, from the loss back: that of {of}",
                f"  {_numbers(found[v], want)}",
                *[f"  read by {self.place(n)}" for n in readers[:3]],
            ]
        return []


def _numbers(x, y):
    off = float((x - y).abs().max())
    norms = f"expected norm {_verify._norm(y)}, found {_verify._norm(x)}"
    return f"{norms}, largest difference {off:.6g}"


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
    if max(r.bytes for r in records) > _LIMIT:
        return [f"no node is named: more than {_LIMIT >> 30} GiB of values"]
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
        first, parameters = {}, {}
        for name, p in module.named_parameters(remove_duplicate=False):
            parameters[name] = first.setdefault(id(p), name)
        results = [records[0].results, records[exact is not plain].results]
        sources = [*batch, *dict(module.named_buffers())]
        comparison = _Comparison(module, nodes, found.values, *results, parameters, sources)
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
    for k, g in exact.grads.items():
        if g is not None and k in comparison.readers:
            wanted[k] = {k: [g, g if plain.grads[k] is None else plain.grads[k]]}
    return comparison.backward(grads, wanted)
