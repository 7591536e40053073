"""Right on the device: losses beside the CPU's of the same weights and data, and bits of graphs."""

from models import DTYPES, cases, tiny
from work import Wrong, ck, digest, same

STEPS = 3


def losses(w, so, case, *flags, timeout):
    log = so + ".log"
    argv = [w.tool("ckrun"), so, *case.feed, "--steps", STEPS, "--quiet", "--log", log, *flags]
    w.must(*argv, timeout=timeout)
    return ck.losses(log)


def expected(w, case):
    """The CPU's losses: those of the bundle, else measured here."""
    if w.o.bundle:
        return w.bundled()["losses"][case.name]
    so = w.path(case.name + "-cpu.so")
    w.compile(case.model, so, *case.flags, target=[])
    weights = w.path(case.name + ".safetensors")
    return losses(w, so, case, "--init", weights, timeout=1800)


def library(w, case):
    so = w.path(case.name + ".so")
    w.compile(case.model, so, *case.flags)
    return so


def compare(found, want, limit):
    """The largest relative difference; Wrong above the limit."""
    want = want[: len(found)]
    worst = max(abs(a - b) / abs(b) for a, b in zip(found, want))
    text = f"{found[0]:.6g} to {found[-1]:.6g}, the CPU's {want[0]:.6g} to {want[-1]:.6g}"
    if not worst <= limit:
        raise Wrong(f"{text}: {worst:.1e} apart, at most {limit:.0e} is right")
    return f"{text}: {worst:.1e} apart"


def against_cpu(w, case, numbers):
    numbers["losses"] = losses(w, library(w, case), case, timeout=60)
    return compare(numbers["losses"], expected(w, case), case.limit)


def graph_bits(w, gpt, numbers):
    so, _ = w.library(gpt)
    first, _ = w.train(so, gpt.name, *w.feed(gpt), steps=4)
    numbers["digest"] = digest(*first.values())
    same(
        first,
        w.train(so, gpt.name + "-plain", *w.feed(gpt), steps=4, CKR_GRAPHS="0")[0],
        "graphs against kernel by kernel",
    )
    same(first, w.train(so, gpt.name + "-again", *w.feed(gpt), steps=4)[0], "a second run")
    return f"graphs, kernel by kernel and a second run agree: {numbers['digest']}"


def carry_out(w, rows):
    w.make_weights()
    items = [(f"losses, {c.name}", lambda n, c=c: against_cpu(w, c, n)) for c in cases(w)]
    items += [
        (f"graphs and two runs, {g.name}", lambda n, g=g: graph_bits(w, g, n))
        for g in (tiny(t) for t in (DTYPES[:1] if w.o.quick else DTYPES))
    ]
    rows.carry_out_all(items)
