#!/usr/bin/env python3
"""--curve: step time against memory budget.

    curve.py CKC CKRUN [MODEL...]

More bytes are never slower, and no point is there twice; the ends, and the presets, are what
--memory-budget and --recompute plan for those bytes, and no point is beaten by a preset; no
variant is chosen whose step is slower than another's; the picture is well-formed, says what its
axes are and shows the model's name as it is.
"""

import os
import shutil
import xml.etree.ElementTree as ET

import ck

GAP = 1e-3  # a search for one budget ends this close to its bound
SVG = "{http://www.w3.org/2000/svg}"


def near(a, b):
    return abs(a - b) <= 1e-9 * max(abs(a), abs(b))


def cost(q):
    """Updates in backward rule out clipping: of equal times the one without is better."""
    return q["step_seconds"], q["update_in_backward"]


def planned(bench, what, model, flags, q, *more):
    """A plan for the bytes of the point q has its peak and its time."""
    js = bench.path("one.json")
    done = bench.ckc(
        model, *flags, "--plan-only", "--json", js, "--memory-budget", q["budget_bytes"], *more
    )
    if bench.must(done, what):
        s = ck.plan(js)["summary"]
        bench.check(
            s["peak_bytes"] == q["peak_bytes"],
            f"{what}: peak {s['peak_bytes']}, not {q['peak_bytes']}",
        )
        bench.check(
            near(s["step_seconds"], q["step_seconds"]),
            f"{what}: {s['step_seconds']} s, not {q['step_seconds']}",
        )


def never_slower(bench, what, model, flags, q):
    js = bench.path("one.json")
    done = bench.ckc(
        model, *flags, "--plan-only", "--json", js, "--memory-budget", q["budget_bytes"]
    )
    if bench.must(done, what):
        s = ck.plan(js)["summary"]
        bench.check(
            s["step_seconds"] <= q["step_seconds"] * (1 + GAP),
            f"{what}: {s['step_seconds']} s, the curve says {q['step_seconds']}",
        )


def one(bench, name):
    stem = os.path.join(ck.MODELS, name)
    model, (flags, _) = stem + ".onnx", ck.model_flags(stem)
    js, svg = bench.path("curve.json"), bench.path("curve.svg")
    done = bench.ckc(model, *flags, "--curve", "--curve-svg", svg, "--json", js)
    if not bench.must(done, f"{name}: --curve"):
        return
    plan = ck.plan(js)
    curve, presets, whole = plan["curve"], plan["presets"], plan["summary"]["baseline_peak_bytes"]
    bench.check(not os.path.exists(bench.path(name + ".so")), f"{name}: --curve compiled")
    for a, b in zip(curve, curve[1:]):
        bench.check(
            a["budget_bytes"] < b["budget_bytes"] and cost(a) > cost(b),
            f"{name}: not monotone: {a} {b}",
        )
    for q in curve:
        bench.check(
            q["peak_bytes"] <= q["budget_bytes"]
            and 0 <= q["recompute_seconds"] <= q["step_seconds"]
            and q["bound_seconds"] <= q["step_seconds"],
            f"{name}: {q}",
        )
        bench.check(
            near(
                q["overhead"], q["recompute_seconds"] / (q["step_seconds"] - q["recompute_seconds"])
            ),
            f"{name}: {q}",
        )
    last = curve[-1]
    bench.check(
        last["peak_bytes"] == whole and last["recompute_seconds"] == 0,
        f"{name}: the curve ends with {last}",
    )
    bench.check(
        [q["name"] for q in presets] == ["none", "selective", "full", "every=2", "every=4"],
        f"{name}: presets {presets}",
    )
    for q in presets:
        bench.check(
            any(
                c["budget_bytes"] <= q["peak_bytes"]
                and c["step_seconds"] <= q["step_seconds"] * (1 + 1e-9)
                for c in curve
            ),
            f"{name}: preset {q} beats the curve",
        )
        planned(bench, f"{name}: {q['name']}", model, flags, q, "--recompute", q["name"])
        best = min(
            (c["step_seconds"] for c in curve if c["budget_bytes"] <= q["budget_bytes"]), default=0
        )
        alone = bench.ckc(
            model, *flags, "--plan-only", "--json", js + "1", "--memory-budget", q["budget_bytes"]
        )
        if bench.must(alone, f"{name}: within {q['budget_bytes']} B"):
            one = ck.plan(js + "1")["summary"]["step_seconds"]
            bench.check(
                best <= one * (1 + 1e-9),
                f"{name}: within {q['budget_bytes']} B a single plan takes {one} s, the curve {best} s",
            )
    planned(bench, f"{name}: least", model, flags, curve[0])
    planned(bench, f"{name}: everything", model, flags, last)
    for q in curve[1 : -1 : max(1, len(curve) // 5)]:
        never_slower(bench, f"{name}: within {q['budget_bytes']} B", model, flags, q)
    below = bench.ckc(model, *flags, "--plan-only", "--memory-budget", curve[0]["budget_bytes"] - 1)
    bench.check(
        below.returncode == 1 and str(curve[0]["budget_bytes"]) in below.stderr,
        f"{name}: a byte less than the least: {below.stderr[:200]}",
    )
    rows = [line for line in done.stdout.splitlines() if line.split() and line.split()[0].isdigit()]
    bench.check(
        len(rows) == len(curve) + len(presets),
        f"{name}: {len(rows)} rows for {len(curve)} points and {len(presets)} presets",
    )
    picture(bench, name, svg, name + ".onnx", curve, presets)
    again = bench.path("again.json")
    bench.must(
        bench.ckc(model, *flags, "--curve", "--curve-svg", svg + "2", "--json", again),
        f"{name}: again",
    )
    bench.check(
        curve == ck.plan(again)["curve"] and ck.content(svg) == ck.content(svg + "2"),
        f"{name}: another curve",
    )


def picture(bench, what, path, title, curve, presets):
    try:
        root = ET.parse(path).getroot()
    except (OSError, ET.ParseError) as error:
        bench.check(False, f"{what}: {error}")
        return None
    texts = ["".join(t.itertext()) for t in root.iter(SVG + "text")]
    bench.check(
        root.tag == SVG + "svg" and not list(root.iter(SVG + "script")), f"{what}: no plain picture"
    )
    bench.check(
        any(t.startswith(title + ":") for t in texts), f"{what}: the title is not among {texts[:3]}"
    )
    for word in ["memory budget", "extra step time, %", *(q["name"] for q in presets)]:
        bench.check(any(word in t for t in texts), f"{what}: '{word}' is not in the picture")
    width, height = float(root.get("width")), float(root.get("height"))
    dots = [
        (float(c.get("cx")), float(c.get("cy")))
        for c in root.iter(SVG + "circle")
        if c.get("r") == "2"
    ]
    bench.check(len(dots) == len(curve), f"{what}: {len(dots)} dots for {len(curve)} points")
    bench.check(
        dots == sorted(dots) and all(a[1] <= b[1] for a, b in zip(dots, dots[1:])),
        f"{what}: the dots do not fall to the right",
    )
    bench.check(
        all(0 <= x <= width and 0 <= y <= height for x, y in dots),
        f"{what}: dots outside of the picture",
    )
    return texts


def hostile(bench):
    """File names are text, whatever they hold."""
    stem = os.path.join(ck.MODELS, "mlp-mse")
    flags, _ = ck.model_flags(stem)
    for name, shown in (
        ("<script>&\"'.onnx", "<script>&\"'.onnx"),
        ("a\x1b[2J\tb.onnx", "a?[2J?b.onnx"),
        ("é\u200b漢.onnx", "é\u200b漢.onnx"),
        (b"bad\xff\xc0\xaf\xed\xa0\x80.onnx", "bad??????.onnx"),
    ):
        path = os.path.join(os.fsencode(bench.work), os.fsencode(name))
        shutil.copy(stem + ".onnx", path)
        svg, js = bench.path("h.svg"), bench.path("h.json")
        done = bench.run(
            [bench.ckc_path, os.fsdecode(path), *flags, "--curve-svg", svg, "--json", js, "--quiet"]
        )
        if bench.must(done, f"{name!r}"):
            plan = ck.plan(js)
            picture(bench, f"{name!r}", svg, shown, plan["curve"], plan["presets"])


def usage(bench):
    stem = os.path.join(ck.MODELS, "mlp-mse")
    flags, _ = ck.model_flags(stem)
    done = bench.ckc(stem + ".onnx", *flags, "--curve", "--passes=bind,fold")
    bench.check(
        done.returncode == 1 and "there is no plan" in done.stderr,
        f"a curve of no plan: {done.stderr}",
    )
    done = bench.ckc(stem + ".onnx", *flags, "--curve-svg", bench.path("no/such.svg"))
    bench.check(
        done.returncode == 1 and "cannot write" in done.stderr, f"no such folder: {done.stderr}"
    )
    same = bench.path("same")
    done = bench.ckc(stem + ".onnx", *flags, "--curve-svg", same, "--json", same)
    bench.check(
        done.returncode == 1 and "two outputs" in done.stderr and not os.path.exists(same),
        f"one file twice: {done.stderr}",
    )
    so = bench.path("with.so")
    bench.must(bench.ckc(stem + ".onnx", *flags, "--curve", "-o", so), "a curve and a library")
    bench.check(os.path.exists(so), "no library beside the curve")


def faster_variant(bench, name):
    """Copies of 16-bit parameters take memory and save time. For a budget that has room for them,
    the variant without is not faster only because it recomputes less."""
    stem = os.path.join(ck.MODELS, name)
    flags = ["--target", "cuda", "--device", "H100", "--dtype", "bf16", "--optimizer", "adamw"]
    flags += [*ck.model_flags(stem)[0], "--plan-only", "--quiet", "--json", bench.path("v.json")]
    if not bench.must(bench.ckc(stem + ".onnx", *flags), f"{name} in 16 bits"):
        return
    whole, rows = ck.plan(bench.path("v.json"))["summary"], []
    for percent in 90, 70, 50, 40, 30, 20:
        budget = whole["peak_bytes"] - whole["saved_bytes"] * (100 - percent) // 100
        seconds = []
        for more in (), ("--update-in-backward", "off", "--resident-copies", "on"):
            done = bench.ckc(stem + ".onnx", *flags, "--memory-budget", f"{budget}B", *more)
            if done.returncode == 0:
                seconds.append(ck.plan(bench.path("v.json"))["summary"]["step_seconds"])
        if len(seconds) == 2:
            rows.append(percent)
            bench.check(
                seconds[0] <= seconds[1] * (1 + GAP), f"{name} at {percent} %: {seconds} s a step"
            )
    bench.check(len(rows) > 1, f"{name}: both variants only for {rows}")


def many_values(bench):
    """A part of so many values that sets of them are left out: 2 s of a processor, not minutes."""
    model = os.path.join(ck.MODELS, "recurrent", "gru-lm-ts13.onnx")
    limited = ["sh", "-c", 'ulimit -t 40; exec "$@"', "sh", bench.ckc_path]
    bench.must(bench.run([*limited, model, "--plan-only", "--curve"]), "a part of many values")


def main():
    bench = ck.Bench()
    for name in bench.names or ["mlp-mse", "gpt2-dropout-ts17", "chargpt-dyn-o24", "resnet-ts17"]:
        one(bench, name)
    hostile(bench)
    usage(bench)
    faster_variant(bench, "resnet-ts17")
    faster_variant(bench, "gpt2-dropout-ts17")
    many_values(bench)
    bench.finish()


if __name__ == "__main__":
    main()
