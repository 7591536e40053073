"""Checks in a forward pass. The exported file assumes that values pass them."""

import ast
import functools
import linecache

import torch

_FINITE = {owner.isfinite for owner in (torch, torch.Tensor)}
_NOT_FINITE = {
    getattr(owner, name)
    for owner in (torch, torch.Tensor)
    for name in ("isinf", "isnan", "isposinf", "isneginf")
}
_ALL = {getattr(owner, name) for owner in (torch, torch.Tensor) for name in ("all", "any")}
_READ = {torch.Tensor.__bool__, torch.Tensor.item}


class Finite:
    """Finds tests such as isfinite(x).all() of values that depend on a parameter.  The file assumes
    that these values are finite; a step with others is useless in any case."""

    def __init__(self):
        self.known = {}  # by id: a result, kept alive, and its value if all is finite

    def follow(self, func, args, result):
        if not args or not isinstance(args[0], torch.Tensor):
            return
        if func in _FINITE or func in _NOT_FINITE:
            if args[0].requires_grad:
                self.known[id(result)] = result, func in _FINITE
        elif func in _ALL and id(args[0]) in self.known:
            self.known[id(result)] = result, self.known[id(args[0])][1]

    def outcome(self, func, args):
        """What Python reads from the result of such a test; None for other reads."""
        return self.known[id(args[0])][1] if func in _READ and id(args[0]) in self.known else None


@functools.lru_cache(maxsize=64)
def _guards(file):
    """(first line, last line, value of operands) of the conditions in a file that only raise."""
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except SyntaxError:
        return []
    found = []
    for s in ast.walk(tree):
        if isinstance(s, ast.If) and isinstance(s.body[-1], ast.Raise):
            wanted = False
        elif isinstance(s, ast.Assert):
            wanted = True
        else:
            continue
        outcome = _of_operands(s.test, wanted)
        if outcome is not None:
            found.append((s.test.lineno, s.test.end_lineno, outcome))
    return found


def _of_operands(test, wanted):
    """The value of the operands of a condition with which it is `wanted`; None if they differ."""
    if isinstance(test, ast.BoolOp):
        parts = {_of_operands(x, wanted) for x in test.values}
        return parts.pop() if len(parts) == 1 else None
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _of_operands(test.operand, not wanted)
    return wanted


def guarded(file, line):
    """The value of a tensor's __bool__ in this line with which nothing is raised; None if the line
    is no such condition."""
    for first, last, outcome in _guards(file):
        if first <= line <= last:
            return outcome
    return None
