#!/usr/bin/env python3
"""Plans that offload values: closed forms on chains, and claims on models and random graphs.

    check_offload.py CKC MODELS [GRAPHS [SEED]]
    check_offload.py CKC --replay GRAPHS [SEED]     only random graphs on ranks

Chains have L equal layers of a bytes each, which take f seconds forward and 2 f backward.  The
device moves a bytes to or from host memory in tau seconds.

- tau <= f: everything leaves in time, so the arena needs the same few bytes for every L.
- f < tau <= 2 f: the share f / tau of the layers leaves in time.  Each of the others is computed
  again once, from a neighbour that was kept or offloaded.
- Of the states of an optimizer no more leave than the budget asks for (check_parts).
- Short chains take no longer than the best of all choices (offload_oracle.py), for any tau, and
  the bound is no more than that, nor than the optimum with host memory as a fluid.

Models and random graphs, at several budgets: a plan with offload is never slower than that without,
more host memory is never slower, what is offloaded fits --host-memory, and every plan replays
(tests/tools/replay.py).  Every model is also planned with all values offloaded, on one rank and on
several.  A curve with offload is nowhere above that without.

GRAPHS: how many random graphs (default: 40), and at most six on ranks.  --replay ran with 250 of
seed 1 and 250 of seed 2: 2561 plans, of those without --host-memory 855 offload, and no fault.
"""

import contextlib
import io
import itertools
import json
import os
import random
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
import offload_oracle  # noqa: E402
import replay  # noqa: E402

ROWS, WIDTH, LAYER = 4096, 32, 1e-3
BYTES = ROWS * WIDTH * 4
NOTHING = 1e30  # a rate at which work takes no time


class Planner:
    def __init__(self, ckc, folder):
        self.ckc, self.folder, self.count, self.faults = ckc, folder, 0, []

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as sink:
            sink.write(text)
        return self.path(name)

    def plan(self, model, *options, refused="is too small"):
        """The plan's summary, with the bytes in host memory; None: refused."""
        out = self.path("plan.json")
        command = [self.ckc, model, "--plan-only", "--quiet", "--json", out, *map(str, options)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600)
        if done.returncode == 1 and refused in done.stderr and "internal:" not in done.stderr:
            return None
        if done.returncode:
            sys.exit(f"{' '.join(command)}: exit {done.returncode}\n{done.stderr}")
        self.count += 1
        with (
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()) as said,
        ):
            if replay.main(["model", out]):
                self.faults.append(f"{' '.join(command)}: {said.getvalue().splitlines()[0]}")
        with open(out, encoding="utf-8") as source:
            plan = json.load(source)
        return dict(plan["summary"], host=plan.get("host", {}).get("bytes", 0))

    def curve(self, model, *options):
        out = self.path("curve.json")
        command = [self.ckc, model, "--curve", "--quiet", "--json", out, *map(str, options)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600)
        if done.returncode:
            sys.exit(f"{' '.join(command)}: exit {done.returncode}\n{done.stderr}")
        self.count += 1
        with open(out, encoding="utf-8") as source:
            return json.load(source)["curve"]

    def expect(self, what, holds):
        if not holds:
            self.faults.append(what)


# ---- chains ----


def chain(layers):
    lines = [f"\tinput %x0: f32[{ROWS},{WIDTH}]"]
    lines += [f"\tparam %w{i}: f32[{WIDTH},{WIDTH}]" for i in range(layers)]
    lines += [f"\t%x{i + 1}: f32[{ROWS},{WIDTH}] = matmul %x{i}, %w{i}" for i in range(layers)]
    lines.append(f"\t%l: f32[] output = reduce_mean %x{layers} {{axes=[0,1], keepdims=0}}")
    return "graph @chain {\n" + "\n".join(lines) + "\n\tloss %l\n}\n"


def profile(tau):
    return json.dumps(
        {
            "name": "chain",
            "product_flops": 2 * ROWS * WIDTH * WIDTH / LAYER,
            "vector_flops": NOTHING,
            "bandwidth": NOTHING,
            "host_bytes_per_second": BYTES / (tau * LAYER),
            "host_latency_seconds": 0,
        }
    )


def check_chains(p):
    for layers in (8, 24):
        model = p.write("chain.ck", chain(layers))
        for tau in (0.25, 0.5, 1, 1.25, 1.5, 2):
            options = ("--optimizer", "sgd", "--device", p.write("device.json", profile(tau)))
            free = p.plan(model, *options)
            # the first layer has no gradient of its input
            p.expect(
                f"{layers} layers take {free['step_seconds']} s",
                abs(free["step_seconds"] - (3 * layers - 1) * LAYER) < 1e-9,
            )
            few = free["resident_bytes"] + 5 * BYTES
            got = p.plan(model, *options, "--memory-budget", f"{few}B", "--offload", "auto")
            again = 0 if tau <= 1 else (1 - 1 / tau) * layers * LAYER
            sec = got["exposed_seconds"] if got else float("inf")
            p.expect(
                f"{layers} layers, tau {tau}: {sec} s, expected {free['step_seconds'] + again} s",
                free["step_seconds"] - 1e-9 <= sec <= free["step_seconds"] + again + 1e-9,
            )


def check_short_chain(p, layers=8):
    model = p.write("chain.ck", chain(layers))
    below = []  # of the best choice: the bound, and the optimum with a fluid
    for tau, room in itertools.product((1.5, 2, 2.5, 3, 4), (3, 4, 5)):
        options = ("--optimizer", "sgd", "--device", p.write("device.json", profile(tau)))
        free = p.plan(model, *options)
        # and gradients of weights
        size = free["resident_bytes"] + room * BYTES + 2 * layers * WIDTH * WIDTH * 4
        got = p.plan(model, *options, "--memory-budget", f"{size}B", "--offload", "auto")
        best = offload_oracle.fastest_step(layers, tau, room) * LAYER
        fluid = offload_oracle.fastest_fluid(layers, tau, room) * LAYER
        p.expect(
            f"{layers} layers, tau {tau}, {room} values: {got['exposed_seconds']} s, expected {best} s",
            got["exposed_seconds"] <= best + 1e-9,
        )
        p.expect(
            f"{layers} layers, tau {tau}, {room} values: bound {got['bound_seconds']} s, "
            f"best {best} s, {fluid} s with a fluid",
            got["bound_seconds"] <= min(best, fluid) + 1e-9,
        )
        below.append((1 - got["bound_seconds"] / best, 1 - fluid / best))
    bound, fluid = (100 * sum(x) / len(below) for x in zip(*below))
    print(
        f"{layers} layers: the bound is {bound:.1f} % below the best choice, "
        f"the optimum with a fluid {fluid:.1f} %"
    )


# ---- curves ----


def fastest(curve, budget):
    return min((q["step_seconds"] for q in curve if q["budget_bytes"] <= budget), default=None)


def check_curve(p, what, model, options):
    """A curve with offload is nowhere above that without, and claims what plans do."""
    without = p.curve(model, *options)
    full = p.curve(model, *options, "--offload", "auto")
    for q in without:
        sec = fastest(full, q["budget_bytes"])
        p.expect(
            f"{what}, curve at {q['budget_bytes']} B: {sec} s with offload, "
            f"{q['step_seconds']} s without",
            sec is not None and sec <= q["step_seconds"] * (1 + 1e-9),
        )
    for q in full:
        p.expect(
            f"{what}, curve: {q}",
            q["bound_seconds"] <= q["step_seconds"] * (1 + 1e-9)
            and q["peak_bytes"] <= q["budget_bytes"]
            and q["overhead"] >= -1e-9,
        )
    for a, b in zip(full, full[1:]):
        p.expect(
            f"{what}, curve: {a} before {b}",
            a["budget_bytes"] < b["budget_bytes"]
            and a["step_seconds"] >= b["step_seconds"] * (1 - 1e-9),
        )
    for q in full[:: max(1, len(full) // 4)]:
        size = ("--memory-budget", f"{q['budget_bytes']}B", "--offload", "auto")
        one = p.plan(model, *options, *size)
        p.expect(
            f"{what}: {one and one['exposed_seconds']} s at {q['budget_bytes']} B, "
            f"by the curve {q['step_seconds']} s",
            one and one["exposed_seconds"] <= q["step_seconds"] * (1 + 1e-9),
        )


# ---- models and graphs ----


def check_bound(p, what, full, other):
    """The bound holds for a plan with less host memory, and the same states on the device."""
    p.expect(
        f"{what}: a step of {other['exposed_seconds']} s, below the bound {full['bound_seconds']} s",
        full["bound_class"] != "any"
        or full["resident_bytes"] != other["resident_bytes"]
        or full["bound_seconds"] <= other["exposed_seconds"] * (1 + 1e-9),
    )


def check_budgets(p, what, model, options, budgets, hosts=(0.25, 0.5)):
    """Budgets are shares of the activations of a plan that keeps all."""
    free = p.plan(model, *options)
    for share in budgets:
        budget = free["resident_bytes"] + int(share * free["arena_bytes"])
        size = ("--memory-budget", f"{budget}B")
        without = p.plan(model, *options, *size)
        full = p.plan(model, *options, *size, "--offload", "auto")
        if not full:
            p.expect(f"{what}: {budget} B are refused with offload alone", not without)
            continue
        if without:
            p.expect(
                f"{what}, {budget} B: {full['exposed_seconds']} s with offload, "
                f"{without['exposed_seconds']} s without",
                full["exposed_seconds"] <= without["exposed_seconds"] * (1 + 1e-9),
            )
            check_bound(p, f"{what}, {budget} B", full, without)
        p.expect(f"{what}: peak above {budget} B", full["peak_bytes"] <= budget)
        last = without["exposed_seconds"] if without else float("inf")
        for part in hosts if full["host"] else ():
            limit = int(part * full["host"]) + 1
            some = p.plan(model, *options, *size, "--offload", "auto", "--host-memory", f"{limit}B")
            if not some:
                continue
            p.expect(f"{what}: {some['host']} B in host memory of {limit}", some["host"] <= limit)
            p.expect(
                f"{what}, {budget} B: {some['exposed_seconds']} s with {limit} B of host memory, "
                f"{last} s with less",
                some["exposed_seconds"] <= last * (1 + 1e-9),
            )
            last = some["exposed_seconds"]
            check_bound(p, f"{what}, {budget} B, {limit} B of host memory", full, some)
        p.expect(
            f"{what}, {budget} B: {full['exposed_seconds']} s, {last} s with less host memory",
            full["exposed_seconds"] <= last * (1 + 1e-9),
        )


def random_graph(rng, most=30, size=64):
    """Layers of products, sums with earlier values and element-wise ops."""
    kind = f"f32[{size},{size}]"
    values, lines = ["x"], [f"\tinput %x: {kind}"]
    for i in range(rng.randint(6, most)):
        op = rng.choice(("matmul", "matmul", "gelu", "tanh", "add", "mul")) if i else "matmul"
        if op == "matmul":
            lines.insert(1, f"\tparam %w{i}: {kind}")
            line = f"matmul %{values[-1]}, %w{i}"
        elif op in ("add", "mul"):
            line = f"{op} %{rng.choice(values)}, %{values[-1]}"
        else:
            line = f"{op} %{values[-1]}"
        values.append(f"v{i}")
        lines.append(f"\t%v{i}: {kind} = {line}")
    lines.append(f"\t%l: f32[] output = reduce_mean %{values[-1]} {{axes=[0,1], keepdims=0}}")
    return "graph @g {\n" + "\n".join(lines) + "\n\tloss %l\n}\n"


def check_parts(p, layers=12, width=256):
    """Of optimizer states no more go to host memory than the budget asks for: those bytes, to the
    device and back, are the most that a step waits for.  One state more, and one of 64 parts of
    them all, as parts are what is tried.  In 16 bits ckc knows less well how many are enough, as
    the step without any may have copies of weights."""
    kind, state = f"f32[{width},{width}]", 4 * width * width
    names = ["x", *(f"v{k}" for k in range(layers))]
    lines = [f"\tparam %w{k}: {kind}" for k in range(layers)]
    lines += [f"\tinput %x: f32[8,{width}]"]
    lines += [f"\t%v{k}: f32[8,{width}] = matmul %{names[k]}, %w{k}" for k in range(layers)]
    lines += [f"\t%l: f32[] output = reduce_mean %{names[-1]} {{axes=[0,1], keepdims=0}}"]
    model = p.write("g.ck", "graph @g {\n" + "\n".join(lines) + "\n\tloss %l\n}\n")
    for rate, dtype in (1e9, "f32"), (25e9, "f32"), (25e9, "bf16"):
        options = "--device", p.write("device.json", device(rate)), "--optimizer", "adamw"
        options = *options, "--update-in-backward", "off", "--dtype", dtype
        free, states = p.plan(model, *options), 2 * layers * state
        for eighths in range(1, 8):
            needs = states * eighths // 8
            size = "--memory-budget", f"{free['peak_bytes'] - needs}B"
            last = float("inf")
            for limit in states // 4, states // 2, states, 4 * states:
                host = "--offload", "auto", "--host-memory", f"{limit}B"
                plan = p.plan(model, *options, *size, *host)
                sec = plan["exposed_seconds"] if plan else last
                what = f"{eighths} of 8 parts of states, {rate}, {dtype}, {limit} B of host memory"
                p.expect(f"{what}: refused", plan or limit < needs + state + states / 64)
                more = 1e-9 if dtype == "f32" else 0.15
                p.expect(f"{what}: {sec} s, {last} s with less", sec <= last * (1 + more))
                last = min(sec, last)
            most = free["exposed_seconds"] + 2 * (needs + state + states / 64) / rate
            p.expect(f"{what}: {last} s, not {most} s at most", last <= most)


def check_random(p, count, seed):
    for k in range(count):
        rng = random.Random(seed * 100000 + k)
        model = p.write("g.ck", random_graph(rng))
        device = {
            "name": "random",
            "product_flops": 10 ** rng.uniform(9, 12),
            "vector_flops": 10 ** rng.uniform(9, 12),
            "bandwidth": 10 ** rng.uniform(9, 12),
            "launch_seconds": 1e-6,
            "host_bytes_per_second": 10 ** rng.uniform(8, 11),
            "host_latency_seconds": 1e-9,
        }
        options = ["--device", p.write("device.json", json.dumps(device)), "--optimizer", "adamw"]
        check_budgets(
            p,
            f"graph {k} of seed {seed}",
            model,
            options,
            (rng.uniform(0.2, 0.9),),
            (0.3, 0.6, 0.9),
        )
        if k % 8 == 0:
            check_curve(p, f"graph {k} of seed {seed}", model, options)


# ---- random graphs on ranks ----

PLACES = (
    (),
    ("--tp", 2),
    ("--dp", 2, "--zero", 1, "--dtype", "bf16"),
    ("--tp", 2, "--sp", "--grad-accum", 2),
    ("--dp", 4, "--zero", 3),
    ("--tp", 2, "--dp", 2, "--zero", 3, "--update-in-backward", "on"),
)


def random_device(rng):
    """Transfers take from a tenth of the time of products to ten times that."""
    wide = {
        "product_flops": 10 ** rng.uniform(9, 12),
        "vector_flops": 10 ** rng.uniform(9, 12),
        "bandwidth": 10 ** rng.uniform(9, 12),
        "host_bytes_per_second": 10 ** rng.uniform(8, 11),
        "link_bytes_per_second": 10 ** rng.uniform(8, 11),
    }
    return dict(wide, launch_seconds=1e-6, host_latency_seconds=1e-9, link_latency_seconds=1e-9)


def check_replay(p, count, seed):
    """On one rank and on several, with three budgets, at one of them with a limit of host memory.
    A larger budget may make a step slower: how often, and by how much."""
    pairs, slower, worst, offloads, moved = 0, 0, 0.0, 0, 0
    for k in range(count):
        rng = random.Random(seed * 100000 + k)
        model = p.write("g.ck", random_graph(rng, 16, size=rng.choice((64, 128, 256))))
        device = dict(random_device(rng), name="random")
        place = PLACES[k % len(PLACES)]
        options = ("--optimizer", "adamw", "--device", p.write("device.json", json.dumps(device)))
        free = p.plan(model, *options, *place)
        last, limited = None, rng.randrange(3)
        for at, share in enumerate(sorted(rng.uniform(0.15, 0.95) for _ in range(3))):
            budget = free["resident_bytes"] + int(share * free["arena_bytes"])
            size = ("--memory-budget", f"{budget}B")
            what = f"graph {k} of seed {seed} {place}, {budget} B"
            without = p.plan(model, *options, *place, *size)
            full = p.plan(model, *options, *place, *size, "--offload", "auto")
            p.expect(f"{what}: refused with offload alone", full or not without)
            if not full:
                continue
            sec = full["exposed_seconds"]
            offloads += full["host"] > 0
            if without:
                p.expect(
                    f"{what}: {sec} s with offload, {without['exposed_seconds']} s without",
                    sec <= without["exposed_seconds"] * (1 + 1e-9),
                )
            if last:
                pairs += 1
                slower += sec > last * (1 + 1e-9)
                worst = max(worst, sec / last - 1)
            last = sec
            if full["host"] and at == limited:
                limit = int(rng.uniform(0.1, 0.9) * full["host"]) + 1
                some = p.plan(
                    model,
                    *options,
                    *place,
                    *size,
                    "--offload",
                    "auto",
                    "--host-memory",
                    f"{limit}B",
                )
                p.expect(f"{what}: over {limit} B", not some or some["host"] <= limit)
                if some and some["resident_bytes"] != full["resident_bytes"]:
                    moved += some["exposed_seconds"] < sec * (1 - 1e-9)
                elif some:
                    p.expect(
                        f"{what}: {sec} s, {some['exposed_seconds']} s with {limit} B at most",
                        sec <= some["exposed_seconds"] * (1 + 1e-9),
                    )
    print(f"{count} graphs, {offloads} plans that offload")
    print(f"of {pairs} larger budgets {slower} are slower, by {100 * worst:.3g} % at most")
    print(f"{moved} plans are faster with a limit that moves other states")


# of models so small a latency would be all that counts
def device(rate):
    return json.dumps(
        {
            "name": "device",
            "product_flops": 4e13,
            "vector_flops": 1e13,
            "bandwidth": 2e12,
            "host_bytes_per_second": rate,
            "host_latency_seconds": 1e-9,
        }
    )


SLOW = ("gpt2-ts14",)  # whose curve takes a minute


def check_models(p, folder):
    for name, options in (
        ("gpt2-ts14", ()),
        ("cnn-bn-batch", ()),
        ("chargpt-dyn-o24", ("--dim", "batch=8", "--dim", "seq=8")),
    ):
        model = os.path.join(folder, f"{name}.onnx")
        for rate in (25e9, 55e9):  # PCIe 4 and 5
            check_budgets(
                p,
                f"{name} at {rate}",
                model,
                [*options, "--device", p.write("device.json", device(rate))],
                (0.7, 0.2),
            )
        if name not in SLOW:
            check_curve(p, name, model, [*options, "--device", p.path("device.json")])


RANKS = (
    ("--tp", 2),
    ("--dp", 2, "--zero", 1, "--dtype", "bf16"),
    ("--dp", 4, "--zero", 3),
)


def check_curves_of_ranks(p, seed):
    """Ranks exchange values; in 16 bits parameters are offloaded, too."""
    for k, ranks in enumerate(RANKS):
        rng = random.Random(seed * 1000 + k)
        model = p.write("g.ck", random_graph(rng, 10))
        profile = json.loads(device(10 ** rng.uniform(9, 11)))
        profile["link_bytes_per_second"] = 10 ** rng.uniform(9, 11)
        profile["link_latency_seconds"] = 1e-9
        options = ("--device", p.write("device.json", json.dumps(profile)), *ranks)
        check_curve(p, f"graph of {ranks}", model, options)


def check_forward_again(p):
    """Forward computes values again, beside which others are offloaded.  What ranks exchange takes
    most of the step, so values have time to go to host memory and to come back."""
    rng = random.Random(1000)
    model = p.write("g.ck", random_graph(rng))
    profile = json.loads(device(10 ** rng.uniform(9, 11)))
    profile["link_bytes_per_second"] = 10 ** rng.uniform(9, 11)
    profile["link_latency_seconds"] = 1e-9
    options = ("--device", p.write("device.json", json.dumps(profile)), "--tp", 2)
    free = p.plan(model, *options)["exposed_seconds"]
    for budget, most in (450000, 1.1), (500000, 1.05):
        size = ("--memory-budget", f"{budget}B")
        found = p.plan(model, *options, "--offload", "auto", *size)
        p.expect(f"forward again, {budget} B: nothing is offloaded", found and found["host"])
        p.expect(
            f"forward again, {budget} B: {found and found['exposed_seconds']} s, {free} s without",
            found and found["exposed_seconds"] <= most * free,
        )


EVERYTHING = "--offload", "auto", "--offload-values", "*"
WAYS = (
    EVERYTHING,
    (*EVERYTHING, "--memory-budget", "80%"),
    (*EVERYTHING, "--tp", 2, "--halves", "on"),
    (*EVERYTHING, "--tp", 2, "--sp", "--grad-accum", 2),
    (*EVERYTHING, "--dp", 2, "--zero", 3, "--update-in-backward", "on"),
    ("--offload", "auto", "--memory-budget", "60%", "--dp", 2, "--zero", 3, "--grad-accum", 2),
    ("--offload", "auto", "--memory-budget", "75%", "--tp", 2, "--sp"),
)
# of which each budget takes seconds
LARGE = "gpt2-ts14", "chargpt-dyn-o24"


def options_of(folder, name):
    with open(os.path.join(folder, f"{name}.json"), encoding="utf-8") as source:
        model = json.load(source)
    options = [x for k, v in (model.get("dims") or {}).items() for x in ("--dim", f"{k}={v}")]
    if isinstance(model["loss"], dict):
        loss = dict(model["loss"])
        options += ["--loss", f"{loss.pop('kind')}:{next(iter(loss.values()))}"]
    return options


def check_everything(p, folder):
    fast = p.write("device.json", device(1e13))
    for name in sorted(x[:-5] for x in os.listdir(folder) if x.endswith(".onnx")):
        model = os.path.join(folder, f"{name}.onnx")
        if not os.path.exists(os.path.join(folder, f"{name}.json")):
            continue
        for way in WAYS:
            if "--memory-budget" not in way or name in LARGE:
                p.plan(model, *options_of(folder, name), "--device", fast, *way, refused=name)


def report(p):
    for fault in p.faults:
        print("FAIL", fault)
    print(f"{p.count} plans, {len(p.faults)} faults")
    return 1 if p.faults else 0


def main():
    ckc, models = sys.argv[1:3]
    count, seed = [*map(int, sys.argv[3:]), *(40, 1)[len(sys.argv[3:]) :]]
    with tempfile.TemporaryDirectory() as folder:
        p = Planner(ckc, folder)
        if models == "--replay":
            check_replay(p, count, seed)
            return report(p)
        check_chains(p)
        check_short_chain(p)
        check_models(p, models)
        check_everything(p, models)
        check_curves_of_ranks(p, seed)
        check_forward_again(p)
        check_parts(p)
        check_random(p, count, seed)
        check_replay(p, min(count, len(PLACES)), seed)
        return report(p)


if __name__ == "__main__":
    sys.exit(main())
