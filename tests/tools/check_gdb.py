#!/usr/bin/env python3
"""gdb's printers of tests/tools/gdb_printers.py: what they say of a small graph and its plan.

check_gdb.py CKC ROOT
"""

import os
import shutil
import subprocess
import sys
import tempfile

GRAPH = """graph @small {
	input %x: f32[4,3]
	param %w: f32[3,5]
	%y = matmul %x, %w
	%loss output = reduce_mean %y {axes=[0,1], keepdims=0}
}
"""
COMMANDS = """source {root}/tests/tools/gdb_printers.py
break pass_autodiff
run
p g->val[1]
p g->val[3].shape
p g->val[3].placement
p g->node[1]
break pass_replay
continue
p *p->planned.plan
"""
EXPECTED = (
    "$1 = x: input f32[4,3]",
    "$2 = [4,5]",
    "$3 = whole",
    "$4 = (3) = matmul(1,2)",
    "$5 = plan: ",
)


def main():
    ckc, root = sys.argv[1:]
    gdb = shutil.which("gdb")
    if not gdb:
        print("gdb is not installed")
        return 77
    with tempfile.TemporaryDirectory() as tmp:
        graph, script = os.path.join(tmp, "small.ck"), os.path.join(tmp, "script")
        with open(graph, "w") as f:
            f.write(GRAPH)
        with open(script, "w") as f:
            f.write(COMMANDS.format(root=root))
        done = subprocess.run(
            [
                gdb,
                "-nx",
                "-batch",
                "-x",
                script,
                "--args",
                ckc,
                graph,
                "-o",
                os.path.join(tmp, "small.so"),
            ],
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=300,
        )
    lines = done.stdout.splitlines()
    if any("Python scripting is not supported" in line or "ptrace" in line for line in lines):
        print("this gdb has no Python, or may not trace")
        return 77
    missing = [e for e in EXPECTED if not any(line.startswith(e) for line in lines)]
    for e in missing:
        print(f"FAIL no line begins with '{e}':\n{done.stdout}")
    return bool(missing)


if __name__ == "__main__":
    sys.exit(main())
