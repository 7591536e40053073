#!/usr/bin/env python3
"""Device profiles from measurements: ckrun --profile read back by ckc, and
--device host with its cache.

    host.py CKC CKRUN GPT
"""

import json
import os
import subprocess
import sys
import tempfile


def main():
    ckc, ckrun, gpt = sys.argv[1:4]
    failed = []

    def expect(what, good):
        if not good:
            failed.append(what)
            print("FAILED:", what)

    with tempfile.TemporaryDirectory() as folder:

        def at(name):
            return os.path.join(folder, name)

        def plan(model, *flags):
            done = subprocess.run(
                [ckc, model, "--plan-only", "--threads", "1", "--json", at("plan"), *flags],
                stderr=subprocess.PIPE,
                text=True,
                env=env,
            )
            if done.returncode:
                return None, done.stderr
            with open(at("plan"), encoding="utf-8") as f:
                return json.load(f), done.stderr

        env = dict(os.environ, XDG_CACHE_HOME=folder)
        model = at("gpt.onnx")
        subprocess.run(
            [
                gpt,
                "--layers",
                "2",
                "--hidden",
                "128",
                "--heads",
                "4",
                "--seq",
                "64",
                "--vocab",
                "512",
                "--dropout",
                "0",
                "--weights",
                "-o",
                model,
            ],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        with open(at("tokens"), "wb") as f:
            f.write(b"all work and no play makes jack a dull boy. " * 32)
        subprocess.run([ckc, model, "-o", at("gpt.so"), "--quiet", "--threads", "1"], check=True)
        subprocess.run(
            [
                ckrun,
                at("gpt.so"),
                "--data",
                at("tokens"),
                "--tokens",
                "bytes",
                "--steps",
                "4",
                "--quiet",
                "--profile",
                at("profile"),
            ],
            check=True,
        )
        with open(at("profile"), encoding="utf-8") as f:
            least = sum(op["least"] for op in json.load(f)["ops"])
        found, said = plan(model, "--device", at("profile"))
        expect("a profile is read: " + said, found)
        if found:
            step = found["summary"]["step_seconds"]
            expect(f"{step} s are planned, {least} were measured", abs(step - least) < 1e-6 * least)

            expect("steady times bring no warning: " + said, "single step" not in said)
        with open(at("profile"), encoding="utf-8") as f:
            cold = dict(json.load(f), cold=3)
        with open(at("profile"), "w", encoding="utf-8") as f:
            json.dump(cold, f)
        found, said = plan(model, "--device", at("profile"))
        expect("a single step brings one: " + said, found and "measured a single step" in said)

        found, said = plan(model, "--device", "host")
        expect("this machine is measured: " + said, found and "measured now" in said)
        if found:
            d = found["device"]
            expect(
                "rates",
                min(d[k] for k in ("product_flops", "vector_flops", "bandwidth", "launch_seconds"))
                > 0,
            )
            expect("scales", {"conv", "attention", "adamw", "classifier"} <= set(d["scale"]))
        if "busy" not in said:
            found, again = plan(model, "--device", "host")
            expect("what was measured is kept: " + again, found and "from the cache" in again)
        expect(
            "nothing is left behind",
            set(os.listdir(folder))
            <= {
                "ckc",
                "gpt.onnx",
                "gpt.onnx.data",
                "gpt.so",
                "gpt.safetensors",
                "plan",
                "profile",
                "tokens",
            },
        )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
