#!/usr/bin/env python3
"""Ranks as processes that torchrun starts, without MPI: as virtual ranks, to the bit; one that is
gone is named.

    torchrun.py CKC CKRUN [PART...]

What torchrun tells processes is told them by tests/tools/spread.py.
"""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time

import ck
import processes

sys.path.insert(0, ck.TOOLS)
import spread


class Torchrun(processes.Processes):
    def mpirun(self, n, so, *more, inputs=processes.INPUTS, env=None, only=None):
        """As mpirun does it, with what all of them say as one."""
        argv = [self.ckrun_path, so, *inputs, "--threads", 1, *more]
        return spread.run(n, argv, only, env, cwd=self.work)

    def refused(self):
        so, few = self.path("tp2.so"), ("--comm-timeout", 2)
        done = self.mpirun(2, so, *few, only=[0])
        self.check(
            "rank 0 of 2, first process at 127.0.0.1, port" in done.stderr
            and "0 of 1 other processes have joined in time" in done.stderr,
            f"the first alone: {done.stderr}",
        )
        done = self.mpirun(2, so, *few, only=[1])
        self.check("no answer in time" in done.stderr, f"the second alone: {done.stderr}")
        done = self.mpirun(3, so, *few, only=[0, 1])
        self.check(
            "1 of 2 other processes have joined in time" in done.stderr,
            f"two of three: {done.stderr}",
        )
        for port in "none", "0", "65528":
            done = self.mpirun(2, so, *few, env={"MASTER_PORT": port})
            self.check(
                done.returncode == 3 and "a port from 1 to 65527 in MASTER_PORT" in done.stderr,
                f"port {port}: {done.stderr}",
            )
        for size in "x", "-1", "":
            done = self.mpirun(2, so, *few, only=[0], env={"WORLD_SIZE": size})
            self.check(
                done.returncode == 1
                and f"in RANK and WORLD_SIZE, found '0' and '{size}'" in done.stderr,
                f"size {size!r}: {done.stderr}",
            )
        self.once(self.mpirun(3, so, "--steps", 1), "a multiple of 2 ranks, found 3", "3 ranks")

    def busy(self):
        """Another program has the port: one behind it is taken."""
        with spread.socket.socket() as s:
            s.setsockopt(spread.socket.SOL_SOCKET, spread.socket.SO_REUSEADDR, 1)
            s.bind(("0.0.0.0", 0))
            s.listen()
            self.must(
                self.mpirun(
                    2, self.path("tp2.so"), "--steps", 1, env={"MASTER_PORT": s.getsockname()[1]}
                ),
                "a port that is taken",
            )

    def strangers(self):
        """Who says nothing, or something else, holds up the others, who come again."""
        so = self.path("tp2.so")
        argv = [
            self.ckrun_path,
            so,
            *processes.INPUTS,
            "--threads",
            1,
            "--steps",
            1,
            "--comm-timeout",
            60,
        ]
        port = spread.free_port()
        at, told = (
            ("127.0.0.1", port),
            dict(stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd=self.work),
        )
        (first,) = spread.start(2, argv, [0], {"MASTER_PORT": port}, **told)
        with contextlib.ExitStack() as stack:
            for said in b"GET / HTTP/1.0\r\n\r\n" * 20, b"x", b"":
                stack.enter_context(self.stranger(at)).sendall(said)
            (second,) = spread.start(2, argv, [1], {"MASTER_PORT": port}, **told)
            for p in first, second:
                _, text = p.communicate(timeout=100)
                self.check(p.returncode == 0, f"beside strangers: {p.returncode} {text}")

    def stranger(self, at):
        for _ in range(100):
            try:
                return spread.socket.create_connection(at)
            except ConnectionRefusedError:
                time.sleep(0.1)
        raise SystemExit("nobody listens")

    def killed(self):
        self.gone_while_training(signal.SIGKILL, "rank 1 has left the run")

    def stopped(self):
        self.gone_while_training(signal.SIGSTOP, "rank 1: stopped or gone")

    def gone_while_training(self, sig, text):
        argv = [
            self.ckrun_path,
            self.path("tp2.so"),
            *processes.INPUTS,
            "--threads",
            1,
            *processes.NEVER_ENDS,
        ]
        first, second = spread.start(
            2, argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd=self.work
        )
        time.sleep(2)
        second.send_signal(sig)
        at = time.monotonic()
        try:
            _, told = first.communicate(timeout=processes.IN_TIME)
        except subprocess.TimeoutExpired:
            first.kill()
            _, told = first.communicate()
        self.check(
            first.returncode == 3
            and re.search(f"ckrun: step \\d+: .*{text}|ckrun: .*{text}", told),
            f"{sig}: {first.returncode}, {told}",
        )
        self.check(
            time.monotonic() - at < processes.IN_TIME,
            f"{sig}: took {time.monotonic() - at:.0f} s",
        )
        second.kill()
        second.communicate()


def main():
    bench = Torchrun()
    os.environ["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
    bench.parts(["same_bits"], ["stopped", "refused", "crossed", "killed", "strangers", "busy"])
    bench.finish()


if __name__ == "__main__":
    main()
