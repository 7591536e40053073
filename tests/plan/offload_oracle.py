"""The fastest step of a chain of equal layers, by trying every choice.

Each value between layers is kept, recomputed once or offloaded, which is all a plan without
repeated recomputation can do.  Times are in those of a layer forward, bytes in those of a value.  A
lane of its own for each direction carries one transfer at a time, in the order of what it
serves; computation waits if the arena has no room for what is in flight.
"""

import itertools

KEEP, RECOMPUTE, OFFLOAD = range(3)
EPS = 1e-9


def list_nodes(layers, choice):
    """F, a layer forward or again, reads x[i - 1] and writes x[i]; W, the gradient of its weights,
    reads x[i - 1] and g[i]; X reads g[i] and writes g[i - 1]."""
    nodes = [("F", i) for i in range(1, layers + 1)]
    there = {i for i in range(1, layers) if choice[i] != RECOMPUTE}
    for i in range(layers, 0, -1):
        known = i - 1
        while known > 0 and known not in there:
            known -= 1
        for k in range(known + 1, i):
            nodes.append(("F", k))
            there.add(k)
        nodes.append(("W", i))
        if i > 1:
            nodes.append(("X", i))
    return nodes


def find_uses(nodes):
    uses = {}
    for t, (op, i) in enumerate(nodes):
        own = {"F": [("x", i), ("x", i - 1)], "W": [("x", i - 1), ("g", i)]}
        for value in own.get(op, [("g", i), ("g", i - 1)]):
            if value != ("x", 0):  # the input of the graph is not in the arena
                uses.setdefault(value, []).append(t)
    return uses


def lay_out(layers, choice, nodes):
    """Values alive at each node; what is offloaded behind a node and fetched before it."""
    live, behind, before = [0] * len(nodes), {}, {}
    for (kind, i), used in find_uses(nodes).items():
        forward = [t for t in used if t < layers]
        back = [t for t in used if t >= layers]
        spans = [used]
        if kind == "x" and i < layers and forward and back and choice[i] != KEEP:
            spans = [forward, back]
            if choice[i] == OFFLOAD:
                behind[forward[-1]] = i
                before[back[0]] = i
        for span in spans:
            for t in range(span[0], span[-1] + 1):
                live[t] += 1
    return live, behind, before


class Lane:
    def __init__(self, tau):
        self.tau, self.now, self.wait, self.flight = tau, 0, 0, []

    def begin(self, i):
        free = self.flight[-1][1] if self.flight else self.now
        self.flight.append((i, max(self.now, free) + self.tau))

    def end(self):
        i, over = self.flight.pop(0)
        self.wait += max(0, over - self.now)
        self.now = max(self.now, over)
        return i


def step_time(layers, choice, tau, room):
    """None: it does not fit."""
    nodes = list_nodes(layers, choice)
    live, behind, before = lay_out(layers, choice, nodes)
    if max(live) > room:
        return None
    out, gone = Lane(tau), {}
    for t in range(len(nodes)):
        while out.flight and (
            out.flight[0][1] <= out.now + EPS or live[t] + len(out.flight) > room
        ):
            gone[out.end()] = t
        live[t] += len(out.flight)
        out.now += 1
        if t in behind:
            out.begin(behind[t])
    while out.flight:
        gone[out.end()] = len(nodes)
    back = Lane(tau)
    for t in reversed(range(len(nodes))):
        while back.flight and (
            back.flight[0][1] <= back.now + EPS
            or live[t] + len(back.flight) > room
            or t < max(layers, gone[back.flight[0][0]])
        ):
            back.end()
        live[t] += len(back.flight)
        back.now += 1
        if t in before:
            back.begin(before[t])
    while back.flight:
        back.end()
    return len(nodes) + out.wait + back.wait


def longest_pause(used):
    return max(zip(used, used[1:]), key=lambda pause: pause[1] - pause[0], default=(0, 1))


def fluid_time(layers, choice, tau, room):
    """A step in which host memory takes any part of what pauses, at the rates of lanes: what is
    there at a node has been carried before it, and is carried back behind it."""
    nodes = list_nodes(layers, choice)
    live, _, _ = lay_out(layers, choice, nodes)
    idle = [0] * len(nodes)
    for (kind, i), used in find_uses(nodes).items():
        again = kind == "x" and i < layers and choice[i] == RECOMPUTE
        for part in (range(layers), range(layers, len(nodes))) if again else (range(len(nodes)),):
            first, last = longest_pause([t for t in used if t in part])
            for t in range(first + 1, last):
                idle[t] += 1
    before = wait = 0  # waits before the node, and all of them
    for t in range(len(nodes)):
        away = live[t] - room
        if away > idle[t]:
            return None
        if away > 0:
            before = max(before, away * tau - t)
            wait = max(wait, before, before + away * tau - (len(nodes) - 1 - t))
    return len(nodes) + wait


def fastest_fluid(layers, tau, room):
    """Of a chain: the optimum of the program whose relaxation the planner's bound is."""
    choices = itertools.product((KEEP, RECOMPUTE), repeat=layers - 1)
    times = (fluid_time(layers, (None, *c), tau, room) for c in choices)
    return min((t for t in times if t is not None), default=None)


def fastest_step(layers, tau, room):
    """Of a chain, in an arena of `room` values; None: nothing fits."""
    choices = itertools.product((KEEP, RECOMPUTE, OFFLOAD), repeat=layers - 1)
    times = (step_time(layers, (None, *c), tau, room) for c in choices)
    return min((t for t in times if t is not None), default=None)
