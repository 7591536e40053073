#!/usr/bin/env python3
"""The script for a machine with a GPU runs a bundle, and one with a file missing or wrong.

    bundle.py BUILD

On the emulated GPU.  The table has a row for every item, and the exit status tells.
"""

import io
import os
import subprocess
import sys
import tarfile
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
GPU = os.path.join(HERE, "..", "bench", "gpu")


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

    def expect(self, what, status, words, *flags, bundle=None, **env):
        out = os.path.join(self.folder, "out")
        argv = ["sh", os.path.join(GPU, "run"), "--bundle", bundle or self.bundle, "--out", out]
        done = subprocess.run(
            [*argv, "--emulated", "--quick", "--peer-stand-in", *flags],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "PYTHON": sys.executable, **env},
        )
        with open(os.path.join(out, "table.md"), encoding="utf-8") as f:
            table = f.read()
        missing = [x for x in words if x not in table]
        if done.returncode != status or missing:
            self.failed += 1
            print(f"FAIL {what}: status {done.returncode}, no {missing} in: {done.stdout}{table}")


def main():
    with tempfile.TemporaryDirectory(prefix="ckc-test-") as folder:
        runs = Runs(os.path.abspath(sys.argv[1]), folder)
        runs.expect("all parts", 0, ["| one step | ok |", "| sanitizer: initcheck | ok |"])
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
