#!/usr/bin/env python3
"""A stage of a pipeline is killed or stopped while it trains, started by mpirun or as by torchrun.

    pipeline_gone.py CKC CKRUN [--flags "--target cuda ..."] [mpi] [sockets]

The others name its rank and end in time with a status other than 0.  No process is left, and the
last checkpoint is whole.  A step of the run writes one.
"""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import ck
import processes

sys.path.insert(0, ck.TOOLS)
import spread

STAGES, VICTIM = 3, 1
FLAGS = ["--pp", STAGES, "--microbatches", 6, *shlex.split(ck.option("--flags", ""))]
# One that waits longer than another may name that one, too: it has given up before.
NAMED = rf"ranks? (?:\d+, )*{VICTIM}(?:, \d+)*"
SIGNALS = {
    signal.SIGKILL: rf"{NAMED} has left the run|{NAMED}: stopped or gone",
    signal.SIGSTOP: rf"{NAMED}: stopped or gone|{NAMED} did not arrive",
}


class Gone(processes.Processes):
    def argv(self, save):
        run = ["--threads", 1, *processes.NEVER_ENDS, "--save", save, "--save-every", 1]
        return [self.ckrun_path, self.path("pp.so"), *processes.INPUTS, *run]

    def build_once(self):
        self.build("pp", *FLAGS)
        done = self.virtual(self.path("pp.so"), "--steps", 1, "--save", self.path("v2.save"))
        self.must(done, "virtual ranks")

    def told(self, sig, text, launcher):
        """mpirun itself ends all others of a rank that was killed, and says so."""
        named = re.search(SIGNALS[sig], text)
        by_mpi = launcher == "mpi" and sig == signal.SIGKILL
        return named or (by_mpi and re.search(r"signal 9|Killed", text))

    def gone_stage(self, launcher, sig):
        folder = tempfile.mkdtemp(dir=self.work)
        save, what = os.path.join(folder, "gone.save"), f"{launcher}, {sig.name}"
        argv = self.argv(save)
        out = dict(stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd=self.work)
        if launcher == "mpi":
            line = [*processes.MPIRUN, "-n", STAGES, *argv]
            runs = [subprocess.Popen([str(x) for x in line], **out)]
            pids = self.ranks(runs[0], STAGES)
        else:
            runs = spread.start(STAGES, argv, **out)
            pids = {r: p.pid for r, p in enumerate(runs)}
        if not self.check(self.wait_for(save), f"{what}: no checkpoint") or VICTIM not in pids:
            return
        time.sleep(0.5)
        os.kill(pids[VICTIM], sig)
        at = time.monotonic()
        waited = [p for r, p in enumerate(runs) if launcher == "mpi" or r != VICTIM]
        text = "".join(self.ends(p, what) for p in waited)
        seconds = time.monotonic() - at
        if launcher != "mpi":
            # a launcher would end it: here it may only have been stopped
            runs[VICTIM].kill()
            runs[VICTIM].communicate()
        self.nobody(pids.values(), what)
        self.whole(save, what)
        self.check(seconds < processes.IN_TIME, f"{what}: took {seconds:.0f} s")
        status = [p.returncode for p in waited]
        self.check(all(s > 0 for s in status), f"{what}: status {status}")
        self.check(self.told(sig, text, launcher), f"{what}: {text[-600:]}")
        print(f"{what}: {seconds:.1f} s, status {status}", flush=True)

    def mpi(self):
        module = os.path.join(os.path.dirname(self.ckrun_path), "ckr_mpi.so")
        if not shutil.which("mpirun") or not os.path.exists(module):
            print("skipped: MPI, which needs mpirun and ckr_mpi.so")
            return
        for sig in SIGNALS:
            self.gone_stage("mpi", sig)

    def sockets(self):
        for sig in SIGNALS:
            self.gone_stage("sockets", sig)


def main():
    bench = Gone()
    # where GPUs are emulated
    os.environ.update(CKR_FAKE_GPUS=str(STAGES), CKR_FAKE_NCCL_DIR=bench.work)
    os.environ["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
    bench.build_once()
    for part in bench.names or ["mpi", "sockets"]:
        getattr(bench, part)()
    bench.finish()


if __name__ == "__main__":
    main()
