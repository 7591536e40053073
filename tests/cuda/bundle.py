#!/usr/bin/env python3
"""The script for a machine with a GPU runs a bundle, and one with a file missing or wrong.

    bundle.py BUILD

On the emulated GPU.  The table has a row for every item, and the exit status tells.
"""

import glob
import io
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
GPU = os.path.join(HERE, "..", "bench", "gpu")
# Of the machine: libc's, which the bundle leaves out, and what doctor compiles there.
SYSTEM = re.compile(r"/(ld-linux-[^/]*|lib(c|m|dl|pthread|rt)|doctor)\.so")


class Runs:
    def __init__(self, build, folder):
        self.folder, self.failed = folder, 0
        self.bundle = os.path.join(folder, "bundle.tar.xz")
        script = os.path.join(GPU, "bundle.py")
        argv = [sys.executable, script, "--build", build, "--out", self.bundle]
        subprocess.run([*argv, "--emulated", "--quick"], check=True)

    def changed(self, name, data):
        """The bundle with another file."""
        path = os.path.join(self.folder, "changed.tar.xz")
        with tarfile.open(self.bundle) as old, tarfile.open(path, "w:xz", preset=0) as new:
            for member in old.getmembers():
                content = old.extractfile(member) if member.isfile() else None
                if member.name == name:
                    member.size, content = len(data), io.BytesIO(data)
                new.addfile(member, content)
        return path

    def table(self):
        path = os.path.join(self.folder, "out", "table.md")
        if not os.path.exists(path):
            return ""
        with open(path, encoding="utf-8") as f:
            return f.read()

    def expect(self, what, status, words, *flags, bundle=None, early="", **env):
        """words: in the table; early: a row that it has before the run ends."""
        out, seen = os.path.join(self.folder, "out"), not early
        argv = ["sh", os.path.join(GPU, "run"), "--bundle", bundle or self.bundle, "--out", out]
        with open(os.path.join(self.folder, "said"), "w+", encoding="utf-8") as said:
            child = subprocess.Popen(
                [*argv, "--emulated", "--quick", "--peer-stand-in", *flags],
                stdout=said,
                stderr=subprocess.STDOUT,
                env={**os.environ, "PYTHON": sys.executable, **env},
            )
            while child.poll() is None:
                text = self.table()
                seen = seen or ("a run that has not ended" in text and early in text)
                time.sleep(0.1)
            said.seek(0)
            text = said.read() + self.table()
        missing = [x for x in words if x not in self.table()] + [early] * (not seen)
        if child.returncode != status or missing:
            self.failed += 1
            print(f"FAIL {what}: status {child.returncode}, no {missing} in: {text}")

    def expect_own_libraries(self, log):
        """What the loader said of our programs: all libraries are the bundle's, those that a
        library of a model asks for, too."""
        seen = set()
        for path in glob.glob(log + ".*"):
            with open(path, encoding="utf-8", errors="replace") as f:
                text = f.read()
            program = re.search(r"initialize program: \S*/(ckc|ckrun)\s", text)
            if program:
                seen.add(program[1])
                if program[1] == "ckc":  # which then looks for those that the machine has
                    text = text.split("transferring control:")[0]
                for lib in re.findall(r"calling init: (\S+)", text):
                    if "/ckc-gpu-" not in lib and not SYSTEM.search(lib):
                        self.failed += 1
                        print(f"FAIL {program[1]} takes {lib} of the machine")
        if seen != {"ckc", "ckrun"}:
            self.failed += 1
            print(f"FAIL the loader tells of {seen}")


def main():
    with tempfile.TemporaryDirectory(prefix="ckc-test-") as folder:
        runs = Runs(os.path.abspath(sys.argv[1]), folder)
        log = os.path.join(folder, "loader")
        debug = {"LD_DEBUG": "files", "LD_DEBUG_OUTPUT": log}
        words = ["| one step | ok |", "| sanitizer: initcheck | ok |"]
        runs.expect("all parts", 0, words, early=words[0], **debug)
        runs.expect_own_libraries(log)
        words = ["default | ok |", "too little memory: an allocation", "beside PyTorch | ok |"]
        runs.expect("the peer's memory", 0, words, "--only", "time", CKR_FAKE_PEER="no memory")
        ended = ["| losses | the part | cut |", "| memory | the part | cut |"]
        runs.expect("no GPU", 1, ["none found; CUDA_VISIBLE_DEVICES", *ended], CKR_FAKE_GPU="none")
        runs.expect(
            "no cuBLASLt",
            1,
            ["libcublasLt.so.13 not found", "searched the loader's path, /nosuch", *ended],
            bundle=runs.changed("gpu/libcublasLt.so.13", b""),
            CKR_GPU_LIBRARIES="/nosuch",
        )
        facts = b'{"toolkit": [13, 1], "losses": {"tiny-f32": [4, 4, 4], "mlp-mse": [1, 1, 1]}}'
        runs.expect(
            "other losses and an old driver",
            1,
            ["the driver is for 13.0: too old", "| one step | fail |"],
            "--only",
            "probe",
            bundle=runs.changed("bundle.json", facts),
        )
        runs.expect(
            "hazards",
            1,
            ["| sanitizer: racecheck | fail |"],
            "--only",
            "memory",
            CKR_FAKE_HAZARDS="2",
        )
        print(f"{runs.failed} failed")
        sys.exit(runs.failed != 0)


if __name__ == "__main__":
    main()
