#!/usr/bin/env python3
"""Planning graphs of several kinds, for tests and benchmarks of `ckc plan`.

    gen_graphs.py KIND N [SEED]     JSON on standard output

chain     N forward nodes and their backward, equal costs
resnet    training step of a residual CNN with about N nodes in all
unet      training step with skips across N levels
layered   N nodes in layers, no backward flag, few links beyond the next layer
skipping  the same with a seventh of the links beyond it, an order by chance
stacked   layers with few links, a seventh beyond the next layer, mostly not far; a depth-first
order parallel  chains side by side that meet, inside one another, no backward flag
wide      many independent chains, one sink, no backward flag
random    N nodes, links by chance, no backward flag
mirror    N nodes, each of the second half reads the one before and its counterpart in the first, as
backward does; skips, odd sizes and costs
fan       a source, N nodes that read it and some that read those, odd sizes and costs
"""

import json
import math
import random
import sys


class Graph:
    def __init__(self):
        self.nodes, self.links = [], set()

    def add(self, name, ram, cpu, inputs=(), backward=False):
        node = {"id": len(self.nodes), "name": name, "cost_ram": int(ram), "cost_cpu": cpu}
        if backward:
            node["backward"] = True
        self.nodes.append(node)
        self.links.update((i, node["id"]) for i in inputs)
        return node["id"]

    def backward_pass(self, needs):
        """Gradient nodes in reverse order; needs[i]: forward values that node i's gradient
        reads."""
        count = len(self.nodes)
        readers = [[] for _ in range(count)]
        for a, b in self.links:
            readers[a].append(b)
        grad = {}
        for i in reversed(range(count)):
            if i == 0:
                continue
            node = self.nodes[i]
            inputs = {grad[r] for r in readers[i] if r in grad} | set(needs[i])
            grad[i] = self.add(
                "d" + node["name"], node["cost_ram"], 2 * node["cost_cpu"], inputs, True
            )

    def json(self):
        return {
            "nodes": self.nodes,
            "links": [{"source": a, "target": b} for a, b in sorted(self.links)],
        }


def chain(n, seed):
    g, last = Graph(), ()
    for i in range(n):
        last = (g.add(f"f{i}", 1, 1, last),)
    g.backward_pass([[i - 1] if i else [] for i in range(n)])
    return g


def resnet(n, seed):
    rnd = random.Random(seed)
    g, needs = Graph(), []

    def op(name, ram, cpu, inputs, saved):
        i = g.add(name, ram, cpu, inputs)
        needs.append(saved)
        return i

    size, x = 1 << 20, op("input", 1 << 18, 0, (), [])
    blocks = max(1, n // 22)
    for b in range(blocks):
        if b and b % max(1, blocks // 4) == 0:
            size //= 2
        skip = x
        for k in range(3):
            cost = rnd.choice([20, 60, 90]) * 10
            wide = size if k == 2 else size // 4
            c = op(f"b{b}conv{k}", wide, cost, (x,), [x])
            x = op(f"b{b}bn{k}", wide, wide // 60000 + 1, (c,), [c])
            if k < 2:
                x = op(f"b{b}relu{k}", wide, wide // 90000 + 1, (x,), [x])
        s = op(f"b{b}add", size, size // 60000 + 1, (x, skip), [])
        x = op(f"b{b}relu", size, size // 90000 + 1, (s,), [s])
    op("loss", 8, 5, (x,), [x])
    g.backward_pass(needs)
    return g


def unet(n, seed):
    g, needs, skips, x, size = Graph(), [], [], None, 1 << 20

    def op(name, ram, cpu, inputs):
        i = g.add(name, ram, cpu, inputs)
        needs.append(list(inputs))
        return i

    x = op("input", size, 0, ())
    for k in range(n):
        x = op(f"down{k}a", size, 300, (x,))
        x = op(f"down{k}b", size, 300, (x,))
        skips.append((x, size))
        size //= 2
        x = op(f"pool{k}", size, 20, (x,))
    for k in reversed(range(n)):
        skip, size = skips[k]
        x = op(f"up{k}", size, 50, (x,))
        x = op(f"cat{k}", 2 * size, 20, (x, skip))
        x = op(f"up{k}a", size, 500, (x,))
        x = op(f"up{k}b", size, 300, (x,))
    op("loss", 8, 1, (x,))
    g.backward_pass(needs)
    return g


def layered(n, seed):
    rnd = random.Random(seed)
    g, layers = Graph(), []
    width = 0.85 * math.sqrt(n)
    left = n
    while left:
        w = min(left, max(1, round(rnd.gauss(width, width / 4))))
        left -= w
        layer = []
        for _ in range(w):
            inputs = set()
            if layers:
                inputs = {i for i in layers[-1] if rnd.random() < 0.2}
                if not inputs:
                    inputs = {rnd.choice(layers[-1])}
                if len(layers) > 1 and rnd.random() < 0.14:
                    inputs.add(rnd.choice(rnd.choice(layers[:-1])))
            layer.append(
                g.add(f"l{len(layers)}", 10 * rnd.randint(1, 550), rnd.randint(0, 1000), inputs)
            )
        layers.append(layer)
    return g


def reorder(g, rnd, tries):
    """The same graph in the best of some random orders of execution."""
    n = len(g.nodes)
    preds, succs = [[] for _ in range(n)], [[] for _ in range(n)]
    for a, b in sorted(g.links):
        preds[b].append(a)
        succs[a].append(b)
    best = None
    for _ in range(tries):
        missing = [len(p) for p in preds]
        ready, order = [i for i in range(n) if not missing[i]], []
        while ready:
            v = ready.pop(rnd.randrange(max(0, len(ready) - rnd.choice((6, n))), len(ready)))
            order.append(v)
            for w in succs[v]:
                missing[w] -= 1
                if not missing[w]:
                    ready.append(w)
        at = {v: t for t, v in enumerate(order)}
        change = [0] * (n + 1)
        for v in range(n):
            change[at[v]] += g.nodes[v]["cost_ram"]
            change[max([at[w] for w in succs[v]], default=at[v]) + 1] -= g.nodes[v]["cost_ram"]
        live = peak = 0
        for c in change:
            live += c
            peak = max(peak, live)
        if best is None or peak < best[0]:
            best = peak, at
    at, h = best[1], Graph()
    h.nodes = [dict(g.nodes[v], id=at[v]) for v in sorted(at, key=at.get)]
    h.links = {(at[a], at[b]) for a, b in g.links}
    return h


def sizes(rnd):
    """Bytes as activations have them: many small ones, a few large."""
    mean, spread = rnd.choices([(0.5, 0.5), (1, 1), (3, 1), (5, 1)], [0.3, 0.3, 0.3, 0.1])[0]
    return 10 * max(5, round(100 * rnd.gauss(mean, spread)))


def skipping(n, seed):
    rnd = random.Random(seed)
    width = min(25, 2.5 * n**0.33)
    g, layers = Graph(), [[]]
    layers[0].append(g.add("source", sizes(rnd), 0))
    left = n - 2
    while left > 0:
        w = min(left, max(1, round(width * rnd.uniform(0.25, 1.75))))
        left -= w
        layers.append([])
        for _ in range(w):
            inputs = {i for i in layers[-2] if rnd.random() < 0.2} or {rnd.choice(layers[-2])}
            layers[-1].append(g.add(f"l{len(layers)}", sizes(rnd), rnd.randint(0, 1000), inputs))
    read = {a for a, _ in g.links}
    for here, below in zip(layers, layers[1:]):
        g.links.update((i, rnd.choice(below)) for i in here if i not in read)
    sink = g.add("sink", sizes(rnd), rnd.randint(0, 1000), layers[-1])
    extra = len(g.links) // 6
    while extra and len(layers) > 3:
        a, b = sorted(rnd.sample(range(len(layers)), 2))
        link = rnd.choice(layers[a]), rnd.choice(layers[b])
        if b - a > 1 and link not in g.links:
            g.links.add(link)
            extra -= 1
    assert sink == n - 1
    return reorder(g, rnd, 20)


def connect(g, rnd, above, below, density):
    """Links between two layers: as few as give everybody one, then a share of all others."""
    small, large = sorted((above, below), key=len)
    small, large = rnd.sample(small, len(small)), rnd.sample(large, len(large))
    links = {(a, small[k] if k < len(small) else rnd.choice(small)) for k, a in enumerate(large)}
    rest = [(a, b) for a in large for b in small if (a, b) not in links]
    links.update(rnd.sample(rest, round(density * len(rest))))
    g.links.update((min(link), max(link)) for link in links)


def depth_first(g, rnd):
    """The same graph in a depth-first order from node 0."""
    succs = [[] for _ in g.nodes]
    for a, b in sorted(g.links):
        succs[a].append(b)
    for s in succs:
        rnd.shuffle(s)
    seen, done, path = {0}, [], [(0, iter(succs[0]))]
    while path:
        below = next((w for w in path[-1][1] if w not in seen), None)
        if below is None:
            done.append(path.pop()[0])
        else:
            seen.add(below)
            path.append((below, iter(succs[below])))
    at, h = {v: t for t, v in enumerate(reversed(done))}, Graph()
    h.nodes = [dict(g.nodes[v], id=at[v]) for v in sorted(at, key=at.get)]
    h.links = {(at[a], at[b]) for a, b in g.links}
    return h


def stacked(n, seed):
    rnd = random.Random(seed)
    width = min(20, 5 * (n / 100) ** 0.75)
    g = Graph()
    layers, left = [[g.add("source", sizes(rnd), 0)]], n - 2
    while left > -1:
        w = min(left, max(1, round(width * rnd.uniform(0.25, 1.75)))) if left else 1
        left -= w
        layers.append(
            [g.add(f"l{len(layers)}", sizes(rnd), rnd.randint(0, 1000)) for _ in range(w)]
        )
        connect(g, rnd, layers[-2], layers[-1], 0.2)
    extra = round(len(g.links) * 0.14 / 0.86)
    while extra and len(layers) > 3:
        a = rnd.randrange(len(layers) - 2)
        link = rnd.choice(layers[a]), rnd.choice(layers[rnd.randrange(a + 2, len(layers))])
        if link not in g.links:
            g.links.add(link)
            extra -= 1
    return depth_first(g, rnd)


def parallel(n, seed):
    rnd = random.Random(seed)
    g = Graph()

    def part(count, source):
        """A part of about count nodes between source and the node returned."""
        if count <= 3:
            for _ in range(max(1, count)):
                source = g.add("s", sizes(rnd), rnd.randint(0, 1000), (source,))
            return source
        if rnd.random() < 0.4:
            return part(count - count // 2, part(count // 2, source))
        ways = rnd.randint(2, 4)
        ends = [part((count - 1) // ways, source) for _ in range(ways)]
        return g.add("join", sizes(rnd), rnd.randint(0, 1000), ends)

    part(n - 1, g.add("source", sizes(rnd), 0))
    return g


def wide(n, seed):
    rnd = random.Random(seed)
    g, ends, last, left = Graph(), [], (), n - 1
    while left:
        last = (g.add("c", sizes(rnd), rnd.randint(0, 1000), last),)
        left -= 1
        if rnd.random() < 0.2 or not left:
            ends.append(last[0])
            last = ()
    g.add("sink", 100, 1, ends)
    return g


def any_graph(n, seed):
    rnd = random.Random(seed)
    g = Graph()
    flags = rnd.random() < 0.5
    for i in range(n):
        inputs = {rnd.randrange(max(0, i - 6), i) for _ in range(rnd.randint(0, 3))} if i else ()
        g.add(
            f"n{i}",
            rnd.choice([0, 1, 1, 2, 3, 5, 8, 13]),
            rnd.choice([0, 1, 2, 2, 5, 9]),
            inputs,
            flags and i >= n // 2,
        )
    return g


def odd_costs(rnd):
    """What draws bytes and what draws costs, alike in some way throughout a graph."""
    ram = rnd.choice([[4], [0, 0, 1, 2, 4], [1, 2, 3, 5, 8, 13], [1 << 20, 1 << 33, (1 << 33) + 1]])
    cpu = rnd.choice([[1], [0, 0, 0, 1], [0.1, 0.2, 1 / 3, 2.5], [1e-9, 1, 1e12], range(1000)])
    return lambda: rnd.choice(ram), lambda: rnd.choice(cpu)


def mirror(n, seed):
    rnd = random.Random(seed)
    ram, cpu = odd_costs(rnd)
    g, half, skips, flags = Graph(), n // 2, rnd.random() < 0.5, rnd.random() < 0.8
    for i in range(n):
        inputs = {i - 1} if i else set()
        if i >= half:
            inputs |= {n - 1 - i} | ({n - 2 - i} if skips and i < n - 1 else set())
        elif skips and i > 2 and rnd.random() < 0.4:
            inputs.add(rnd.randrange(i - 1))
        g.add(f"n{i}", ram(), cpu(), inputs - {i}, flags and i >= half)
    return g


def fan(n, seed):
    rnd = random.Random(seed)
    ram, cpu = odd_costs(rnd)
    g, sinks = Graph(), rnd.randint(1, 4)
    g.add("source", ram(), cpu())
    for i in range(1, n):
        inputs = {0} if i < n - sinks or rnd.random() < 0.2 else set()
        inputs |= {k for k in range(1, i) if rnd.random() < (0.1 if i < n - sinks else 0.35)}
        g.add(f"n{i}", ram(), cpu(), inputs)
    return g


KINDS = {
    "chain": chain,
    "resnet": resnet,
    "unet": unet,
    "layered": layered,
    "skipping": skipping,
    "stacked": stacked,
    "parallel": parallel,
    "wide": wide,
    "random": any_graph,
    "mirror": mirror,
    "fan": fan,
}


def main():
    if len(sys.argv) not in (3, 4) or sys.argv[1] not in KINDS:
        sys.exit(__doc__)
    graph = KINDS[sys.argv[1]](int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    json.dump(graph.json(), sys.stdout)


if __name__ == "__main__":
    main()
