#!/usr/bin/env python3
"""Data of several files, and epochs: every sample once, with its own label.

    data_files.py CKC CKRUN

Rows hold their own number in both arrays, so that a wrong pair, a row left out and one taken twice
are seen.
"""

import itertools
import os

import ck
import numpy as np
import seen

BATCH = 4


def rows(first, n):
    """x of 3 elements and y, both telling the row's number."""
    i = np.arange(first, first + n)
    return (i[:, None] * 10 + np.arange(3)).astype("f4"), i


def numbers(bench, got, what):
    """The rows of batches, each of which is whole and with its label."""
    found = []
    for b in got:
        if not b:
            return []
        bench.check(
            (b["x"] == b["y"][:, None] * 10 + np.arange(3)).all(), f"{what}: x is not y's: {b}"
        )
        found += b["y"].tolist()
    return found


def write(bench, name, parts, save=np.savez):
    """Shards NAME-0.npz ...; returns the arguments."""
    first, args = 0, []
    for k, n in enumerate(parts):
        x, y = rows(first, n)
        path = bench.path(f"{name}-{k}.npz")
        save(path, x=x, y=y)
        args += ["--data", path]
        first += n
    return args


def epochs(bench, so):
    """Two epochs of 30 rows in batches of 4: 7.5 steps each."""
    one = write(bench, "one", [30])
    whole = numbers(bench, seen.batches(bench, so, 1, 15, *one), "one file")
    bench.check(sorted(whole[:30]) == sorted(whole[30:]) == list(range(30)), f"epochs: {whole}")
    bench.check(whole[:30] != whole[30:], "both epochs in one order")
    bench.check(whole != sorted(whole), "no order but the file's")
    for parts in ([30, 0], [10, 10, 10], [1, 22, 7], [1] * 30):
        args = write(bench, "some", parts)
        found = numbers(bench, seen.batches(bench, so, 1, 15, *args), f"shards of {parts}")
        bench.check(found == whole, f"shards of {parts}: not the order of one file")
    apart = []
    for k, n in (0, 12), (1, 18):
        x, y = rows(12 * k, n)
        np.save(bench.path(f"x{k}.npy"), x)
        np.save(bench.path(f"y{k}.npy"), y)
        apart += [f"--data=x={bench.path(f'x{k}.npy')}", f"--data=y={bench.path(f'y{k}.npy')}"]
    found = numbers(bench, seen.batches(bench, so, 1, 15, *apart), "named files")
    bench.check(found == whole, "named files: not the order of one file")
    pattern = ["--data", "x=" + bench.path("x?.npy"), "--data", "y=" + bench.path("y[01].npy")]
    bench.check(
        numbers(bench, [seen.batch(bench, so, *pattern, "--steps", 9)], "pattern") == whole[32:36],
        "patterns",
    )
    other = numbers(bench, [seen.batch(bench, so, *one, "--seed", 1)], "seed")
    bench.check(other != whole[:4], "the seed changes no order")
    return one, whole


def steps(bench, so, one):
    """--epochs counts samples, those of a run that is resumed too."""
    some = write(bench, "some", [16, 14])
    for args, n, last in (one, 1, 8), (one, 2, 15), (some, 2, 15), (one, 3, 23):
        done = bench.ckrun(so, *args, "--epochs", n)
        bench.must(done, f"{n} epochs")
        bench.check(
            f"step {last}/{last} " in done.stdout and f"step {last + 1}/" not in done.stdout,
            f"{n} epochs: {done.stdout[-300:]}",
        )
    bench.check("\n  an epoch is 30 samples, 7.5 steps\n" in done.stdout, done.stdout)
    log = bench.path("log")
    bench.must(bench.ckrun(so, *some, "--epochs", 1, "--log", log), "log")
    bench.check(
        [r["epoch"] for r in ck.log_rows(log)] == [4 * k / 30 for k in range(1, 9)],
        str(ck.log_rows(log)),
    )
    seen.refused(
        bench,
        so,
        *one,
        "--epochs",
        1,
        "--steps",
        1,
        status=2,
        told=["--epochs cannot be used with --steps"],
    )
    seen.refused(bench, so, "--epochs", 1, status=2, told=["--epochs needs --data"])
    seen.refused(bench, so, *one, "--epochs", 0, status=2, told=["--epochs must be at least 1"])
    seen.refused(bench, so, *one, "--epochs", 2**63, status=2, told=["--epochs is too large"])
    seen.refused(
        bench,
        so,
        *one,
        "--feed",
        "x=ones",
        "--feed",
        "y=zeros",
        "--epochs",
        1,
        status=2,
        told=["needs an input that reads samples"],
    )


def resumed(bench, so, one, whole):
    """A run goes on in the order that it began, in the middle of an epoch, whatever the files
    are."""
    some, state = write(bench, "some", [16, 14]), bench.path("state.st")
    bench.must(bench.ckrun(so, *one, "--steps", 5, "--save", state), "save")
    for steps in (["--steps", 6], ["--epochs", 1], ["--epochs", 2]):
        got = seen.batch(bench, so, *some, "--resume", state, *steps)
        last = {"6": 6, "1": 8, "2": 15}[str(steps[1])]
        found = numbers(bench, [got], f"resumed {steps}")
        bench.check(
            found == (whole + [None] * 4)[4 * last - 4 : 4 * last], f"resumed {steps}: {found}"
        )


def wrong(bench, so):
    """What could pair rows with labels of others is refused, with what to type."""
    x, y = rows(0, 30)

    def save(name, **arrays):
        np.savez(bench.path(name), **arrays)
        return ["--data", bench.path(name)]

    a = save("a.npz", x=x, y=y)
    seen.refused(
        bench,
        so,
        *a,
        *save("b.npz", x=x),
        told=["b.npz: array 'y' is missing, but other arrays of '", "a.npz'"],
    )
    seen.refused(
        bench,
        so,
        *save("b.npz", x=x),
        *a,
        told=["b.npz: array 'y' is missing, but other arrays of '"],
    )
    seen.refused(bench, so, *a, *save("b.npz", x=x, y=y, z=y), told=["a.npz: array 'z' is missing"])
    seen.refused(
        bench,
        so,
        *a,
        *save("b.npz", x=x[:, :2], y=y),
        told=["b.npz: 'x' is f32[30,2], but f32[30,3] in '"],
    )
    seen.refused(
        bench,
        so,
        *a,
        *save("b.npz", x=x.astype("f8"), y=y),
        told=["b.npz: 'x' is f64[30,3], but f32[30,3]"],
    )
    seen.refused(
        bench, so, *a, *save("b.npz", x=x, y=y[:29]), told=[" samples, but the array of '"]
    )
    for arrays in ({"x": x, "y": y}, {"x": x[:10], "y": y[:10]}):
        for k, v in arrays.items():
            np.save(bench.path(f"{k}{len(v)}.npy"), v)
    seen.refused(
        bench,
        so,
        "--data",
        bench.path("x30.npy"),
        "--data",
        bench.path("y30.npy"),
        told=[
            "their arrays have no names",
            f"--data x30={bench.path('x30.npy')} --data y30={bench.path('y30.npy')}",
        ],
    )
    named = [
        f"--data={k}={bench.path(k + n + '.npy')}"
        for k, n in (("x", "10"), ("x", "30"), ("y", "30"), ("y", "10"))
    ]
    seen.refused(
        bench,
        so,
        *named,
        told=[
            "' has 10 rows of 'x', but '",
            "' has 30 of 'y': corresponding shards must have the same number",
        ],
    )
    np.save(bench.path("y40.npy"), np.arange(40))
    seen.refused(
        bench,
        so,
        *named[:2],
        f"--data=y={bench.path('y40.npy')}",
        told=["' has 10 rows of 'x', but '"],
    )
    np.save(bench.path("none.npy"), np.arange(0))
    seen.refused(
        bench,
        so,
        *named[:2],
        named[3],
        named[2],
        f"--data=y={bench.path('none.npy')}",
        told=["'x' has 2 shards, but 'y' has 3"],
    )
    seen.refused(bench, so, *a, *a, told=["a.npz: the file is given twice"])
    seen.refused(
        bench, so, "--data", bench.path("*.none"), told=[".none': no file matches the pattern"]
    )
    seen.refused(
        bench,
        so,
        "--data",
        "x=" + bench.path("a.npz"),
        told=["the arrays of the file already have names"],
    )
    seen.refused(
        bench,
        so,
        *a,
        bench.path("b.npz"),
        status=2,
        told=["for more data files, repeat --data or quote a pattern"],
    )
    seen.refused(bench, so, *a, "--outputs", bench.path("a.npz")[:-4] + ".npz", status=2)
    for pattern in "a.np?", "?.npz":
        os.link(bench.path("a.npz"), bench.path("linked"))
        seen.refused(
            bench,
            so,
            "--data",
            bench.path(pattern),
            "--log",
            bench.path("linked"),
            told=["is both --data and --log"],
        )
        os.unlink(bench.path("linked"))
    done = bench.ckrun(
        so,
        *save("one.npz", x=x, y=y, epoch=np.array(1)),
        *save("two.npz", x=x, y=y, epoch=np.array(2)),
    )
    bench.must(done, "numbers in shards")
    for line in (
        "data of 2 files, in this order:",
        "x f32[4,3] = rows of 'x' f32[60,3]",
        "not used: 'epoch' none[]",
    ):
        bench.check(f"\n  {line}\n" in done.stdout, f"not told '{line}':\n{done.stdout}")


def windows(bench):
    """Tokens: windows side by side, none over the end of a file, each once in an epoch."""
    so = seen.compiled(bench, "ids", ids=("i8", [2, 5]), labels=("i8", [2, 5]))
    sizes, args, first, spans = (24, 44, 6), [], 0, []
    for k, n in enumerate(sizes):
        path = bench.path(f"t{k}.bin")
        seen.write_raw(path, "H", range(first, first + n))
        spans.append(range(first, first + n))
        args += ["--data", path]
        first += n
    per = [(n - 1) // 5 for n in sizes]
    begins = []
    for epoch in range(2):
        got = []
        for step in range(1, sum(per) // 2 + 2):
            b = seen.batch(
                bench, so, *args, "--tokens", "u16", "--steps", epoch * sum(per) // 2 + step
            )
            if not b:
                return
            for i, l in zip(b["ids"], b["labels"]):
                bench.check((np.diff(i) == 1).all() and (l == i + 1).all(), f"no window: {i} {l}")
                bench.check(
                    any(i[0] in s and l[-1] in s for s in spans), f"over the end of a file: {i} {l}"
                )
                got.append(int(i[0]))
        # 13 windows: an epoch ends in the middle of a step
        half = sum(per) % 2 and epoch
        begins.append(sorted(got[half : half + sum(per)]))
    for b in begins:
        bench.check(len(set(b)) == sum(per), f"windows twice: {b}")
        bench.check(all(q - p >= 5 for p, q in itertools.pairwise(b)), f"windows overlap: {b}")
        bench.check([sum(i in s for i in b) for s in spans] == per, f"windows of shards: {b}")
    bench.check(begins[0] != begins[1], "every epoch cuts at the same tokens")
    done = bench.ckrun(so, *args, "--tokens", "u16", "--epochs", 1)
    bench.check(
        f"\n  an epoch is {sum(per)} windows, {sum(per) / 2:g} steps\n" in done.stdout,
        done.stdout + done.stderr,
    )
    seen.write_raw(bench.path("short"), "H", range(5))
    seen.refused(
        bench,
        so,
        *args,
        "--data",
        bench.path("short"),
        "--tokens",
        "u16",
        told=["short: 5 tokens are too few for windows of 6"],
    )
    header = [20240520, 1, sizes[0]] + [0] * 253
    with open(bench.path("gpt.bin"), "wb") as f:
        f.write(np.array(header, "<i4").tobytes() + np.arange(sizes[0], dtype="<u2").tobytes())
    plain = seen.batch(bench, so, "--data", bench.path("t0.bin"), "--tokens", "u16", "--steps", 2)
    for flags in [], ["--tokens", "u16"]:
        done = bench.ckrun(so, "--data", bench.path("gpt.bin"), *flags)
        bench.check(done.returncode == (1 if flags else 0), f"a header: {done.stderr}")
    bench.check(
        (
            seen.batch(bench, so, "--data", bench.path("gpt.bin"), "--steps", 2)["ids"]
            == plain["ids"]
        ).all(),
        "tokens behind a header",
    )
    with open(bench.path("l3.bin"), "wb") as f:
        f.write(
            np.array([20240801, 7] + header[2:], "<i4").tobytes()
            + np.arange(70000, 70000 + sizes[0], dtype="<u4").tobytes()
        )
    bench.check(
        (
            seen.batch(bench, so, "--data", bench.path("l3.bin"), "--steps", 2)["ids"]
            == plain["ids"] + 70000
        ).all(),
        "wide tokens",
    )
    for cut, told in ((1040, "the file holds 8"), (500, "cut off")):
        with open(bench.path("cut.bin"), "wb") as f:
            f.write(ck.content(bench.path("gpt.bin"))[:cut])
        seen.refused(bench, so, "--data", bench.path("cut.bin"), told=[told])


def main():
    bench = ck.Bench()
    so = seen.compiled(bench, "xy", x=("f4", [BATCH, 3]), y=("i8", [BATCH]))
    one, whole = epochs(bench, so)
    steps(bench, so, one)
    resumed(bench, so, one, whole)
    wrong(bench, so)
    windows(bench)
    bench.finish()


if __name__ == "__main__":
    main()
