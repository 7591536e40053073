"""From rows of parts to one table, one JSON file and a status."""

import datetime
import json
import os
import subprocess

import work


def row(part, item, verdict, text):
    return {
        "part": part,
        "item": item,
        "verdict": verdict,
        "text": text,
        "seconds": 0,
        "numbers": {},
    }


def read(path, part, ended):
    """A part's rows; items that were named but not carried out are told of as cut, with the reason
    `ended`."""
    lines = []
    if os.path.exists(path):
        with open(path, encoding="utf-8") as f:
            lines = [json.loads(line) for line in f if line.endswith("\n")]
    rows = [x for x in lines if "item" in x]
    planned = [name for x in lines if "planned" in x for name in x["planned"]]
    done = {x["item"] for x in rows}
    why = ended or "never carried out"
    rows += [row(part, name, "cut", why) for name in planned if name not in done]
    if not planned or (ended and not ended.startswith("cut")):
        rows.append(row(part, "the part", "fail", ended or "nothing was planned"))
    return rows


def status(rows, allow_skip):
    bad = {"fail"} if allow_skip else {"fail", "skip", "cut"}
    return 1 if not rows or any(x["verdict"] in bad for x in rows) else 0


def sources():
    done = subprocess.run(
        ["git", "-C", work.ROOT, "rev-parse", "--short", "HEAD"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    return done.stdout.strip() or "unknown"


COLUMNS = "| part | item | | s | |\n|---|---|---|---:|---|\n"


def path(o):
    return os.path.join(o.out, "table.md")


def begin(o):
    """A table of which every part adds its rows as it goes."""
    with open(path(o), "w", encoding="utf-8") as f:
        f.write("# ckc, a run that has not ended\n\n" + COLUMNS)


def write(o, rows, seconds):
    """table.md and result.json in OUT; the exit status."""
    counts = {v: sum(x["verdict"] == v for x in rows) for v in ("ok", "fail", "skip", "cut")}
    code = status(rows, o.allow_skip)
    head = ", ".join(f"{n} {v}" for v, n in counts.items())
    date = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
    where = "an emulated GPU: no time here says anything of a real one" if o.emulated else "a GPU"
    text = f"# ckc on {where}, {date}\n\n"
    text += f"Sources {sources()}; parts {', '.join(o.parts)}; {seconds:.0f} s in all; {head}; status {code}.\n\n"
    text += COLUMNS + "".join(map(work.table_row, rows))
    with open(path(o), "w", encoding="utf-8") as f:
        f.write(text)
    with open(os.path.join(o.out, "result.json"), "w", encoding="utf-8") as f:
        json.dump(
            {
                "format": "ckc-gpu-bench",
                "version": 1,
                "date": date,
                "sources": sources(),
                "emulated": o.emulated,
                "parts": o.parts,
                "seconds": round(seconds, 1),
                "counts": counts,
                "status": code,
                "items": rows,
            },
            f,
            indent=1,
        )
        f.write("\n")
    print("\n" + text)
    return code
