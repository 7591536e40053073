#!/usr/bin/env python3
"""Plans that our replay accepts, the reference replay accepts too; plans that
are damaged, it does not.

    check_plans.py WRITE_PLANS REPLAY.PY
"""

import json
import os
import subprocess
import sys
import tempfile


def replays(script, path):
    run = subprocess.run([sys.executable, script, "model", path], capture_output=True, text=True)
    return run.returncode == 0, run.stderr


def main():
    write_plans, script = sys.argv[1:]
    failed = copies = 0
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([write_plans, folder], check=True)
        names = sorted(os.listdir(folder))
        for name in names:
            path = os.path.join(folder, name)
            ok, why = replays(script, path)
            if not ok:
                failed += 1
                print(name, why[:500])
            with open(path, encoding="utf-8") as source:
                plan = json.load(source)
            copies += sum(s["of"] is not None for s in plan["schedule"])
            plan["summary"]["peak_bytes"] -= 64
            with open(path, "w", encoding="utf-8") as target:
                json.dump(plan, target)
            if replays(script, path)[0]:
                failed += 1
                print(name, "is accepted although it is damaged")
    print(f"{len(names)} plans, {copies} repeated steps, {failed} failed")
    return 1 if failed or not copies else 0


if __name__ == "__main__":
    sys.exit(main())
