"""What checks of plans share: models of the generator, plans, a list of faults."""

import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, os.pardir, "tools"))
from replay import Replay  # noqa: E402


class PlanCheck:
    FLAGS = ()  # of every plan

    def __init__(self, ckc, gpt, folder):
        self.ckc, self.gpt, self.folder, self.faults = ckc, gpt, folder, []

    def fault(self, ok, text):
        if not ok:
            self.faults.append(text)

    def path(self, name):
        return os.path.join(self.folder, name)

    def model(self, *sizes):
        command = [self.gpt, *map(str, sizes), "-o", self.path("g.onnx")]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return self.path("g.onnx")

    def ask(self, model, *flags):
        """What ckc does, whose plan is in p.json then."""
        command = [self.ckc, model, "--plan-only", "--json", self.path("p.json"), *self.FLAGS]
        return subprocess.run([*command, *map(str, flags)], capture_output=True, text=True)

    def plan(self, model, *flags):
        """The plan, which replays; what ckc says is in self.said."""
        done = self.ask(model, *flags)
        self.said = done.stderr
        if done.returncode:
            raise SystemExit(f"{flags}: {done.stderr}")
        with open(self.path("p.json"), encoding="utf-8") as source:
            plan = json.load(source)
        faults = Replay(plan).faults
        self.fault(not faults, f"{flags}: {faults[:2]}")
        return plan


def run_parts(check_class, parts):
    """Run the named parts, or all, of a check: CKC GPT [PART..]; the exit status."""
    with tempfile.TemporaryDirectory() as folder:
        check = check_class(sys.argv[1], sys.argv[2], folder)
        for part in sys.argv[3:] or parts:
            getattr(check, part)()
    print(*check.faults, f"{len(check.faults)} faults", sep="\n")
    return 1 if check.faults else 0
