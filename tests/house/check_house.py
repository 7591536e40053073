#!/usr/bin/env python3
"""Checks what a compiler does not: which folder includes which, who calls what, how lines look.

    check_house.py ROOT [CC]

  * includes are written from the root and point one way: ir <- frontend, passes, codegen; runtime
  stands alone, and
    all see its room support, which sees nobody; frontend/driver sees all
    (between the rooms of a folder the build sees to it: ckc_room in CMakeLists.txt)
  * a room of ROOMS includes what its row names, and nothing else of the project: ckrun knows models
  by ckr.h alone
  * warnings, since files are cut by subject: more than 25 files beside each other in a folder,
    more than 520 lines in a file
  * every header compiles alone, and so does what generated C takes along (TEXTS)
  * in the folders of UNIQUE no two files have a static function of one name
  * a file, or its header, begins with a comment that says what is in it
  * a folder with headers is a room: one of them begins with "Room FOLDER:", what it is given and
  gives, and what it must not know (texts of kernels and the public headers are no rooms)
  * the include guard of a header is its path: codegen/cpu/tile.h has CODEGEN_CPU_TILE_H
  * only the driver exits; only ilp.c sees GLPK; only the frontend sees protobuf; nobody runs a
  shell
  * what is true of an op stands in its row of ir/ops.h: places that tell ops apart by name do not
  grow (OPS)
  * every Python script can be read
  * lines are at most 80 columns with tabs of 8 (tables in ir/ops.h and option rows excepted)

Prints one line per fault; exit status 1 if there is any.
"""

import os
import re
import subprocess
import sys

FOLDERS = ("ir", "frontend", "passes", "codegen", "runtime")
MAY_SEE = {
    "ir": {"ir"},
    "frontend": {"ir", "frontend"},
    "passes": {"ir", "passes"},
    "codegen": {"ir", "codegen"},
    "runtime": {"runtime"},
}
DRIVER = "frontend/driver/"
# Folders and headers that a room may include beside its own.
ROOMS = {
    "runtime/support/": (),
    "runtime/base/": ("runtime/support/", "runtime/ckr.h", "runtime/ckr_abi.h"),
    "runtime/file/": ("runtime/support/", "runtime/base/"),
    "runtime/blas/": ("runtime/base/", "runtime/ckr_abi.h"),
    "runtime/device/": (
        "runtime/support/",
        "runtime/base/",
        "runtime/blas/",
        "runtime/ckr_abi.h",
    ),
    "runtime/team/": ("runtime/support/", "runtime/base/"),
    "runtime/ranks/": (
        "runtime/support/",
        "runtime/base/",
        "runtime/device/nccl_transport.h",
        "runtime/team/",
        "runtime/ckr_abi.h",
    ),
    "runtime/offload/": (
        "runtime/support/",
        "runtime/base/",
        "runtime/device/device.h",
    ),
    "runtime/compare/": (
        "runtime/support/",
        "runtime/base/",
        "runtime/file/",
    ),
    "runtime/library/": (
        "runtime/support/",
        "runtime/base/",
        "runtime/ckr_abi.h",
        "runtime/ranks/",
    ),
    "runtime/world/": (
        "runtime/support/",
        "runtime/base/",
        "runtime/ckr_abi.h",
        "runtime/device/",
        "runtime/offload/",
        "runtime/team/",
        "runtime/ranks/",
        "runtime/file/file.h",
        "runtime/library/",
    ),
    "runtime/stepping/": (
        "runtime/support/",
        "runtime/base/",
        "runtime/ckr_abi.h",
        "runtime/device/",
        "runtime/library/",
        "runtime/world/",
    ),
    "runtime/files/": (
        "runtime/support/",
        "runtime/base/",
        "runtime/ckr_abi.h",
        "runtime/file/",
        "runtime/library/",
        "runtime/world/",
        "runtime/stepping/",
    ),
    "runtime/measure/": (
        "runtime/support/",
        "runtime/base/",
        "runtime/ckr_abi.h",
        "runtime/file/file.h",
        "runtime/compare/",
        "runtime/ranks/comm.h",
        "runtime/library/",
        "runtime/world/",
        "runtime/stepping/",
    ),
    "runtime/evaluate/": (
        "runtime/support/",
        "runtime/base/",
        "runtime/ckr_abi.h",
        "runtime/library/",
        "runtime/world/",
        "runtime/stepping/",
    ),
    "runtime/api/": (
        "runtime/support/",
        "runtime/base/",
        "runtime/ckr_abi.h",
        "runtime/file/",
        "runtime/library/",
        "runtime/world/",
        "runtime/stepping/",
        "runtime/files/",
        "runtime/measure/",
        "runtime/evaluate/",
    ),
    "runtime/image/": ("runtime/base/", "runtime/file/"),
    "runtime/data/": (
        "runtime/support/",
        "runtime/base/",
        "runtime/file/",
        "runtime/image/",
        "runtime/ckr.h",
    ),
    "runtime/ckrun/": (
        "runtime/support/",
        "runtime/base/",
        "runtime/file/",
        "runtime/data/",
        "runtime/compare/",
        "runtime/team/launch.h",
        "runtime/ckr.h",
    ),
}
# What the compiler and the run time share stands in a room that knows neither.
SHARED = "runtime/support/"
CROWD = 25  # files beside each other
LINES = 520  # of a file
# The ABI's text is the head of generated C: codegen embeds it and fills its tables, and may read
# its numbers.
ABI = "runtime/ckr_abi.h"
WIDE = {"ir/ops.h"}
ONLY_IN = {  # pattern: who may
    r"#include <glpk\.h>": {"passes/ilp/ilp.c"},
    r"#include .*pb-c\.h": {"frontend/onnx/onnx.h"},
    r"(?<![\w.>])(exit|abort|_exit)\(": {
        "codegen/cc.c",
        "frontend/driver/workers.c",
        "ir/base/arena.c",
        "ir/base/diag.c",
        "runtime/ckrun/ckrun.c",
        "runtime/team/heartbeat.c",
        "runtime/team/socket.c",
        "passes/ilp/ilp.c",
    },
    r"volatile int \*": set(),  # what a signal handler sets is a sig_atomic_t
    r"(?<![\w.>])(system|popen|strcpy|sprintf|gets)\(": set(),
}

# What generated C takes along stands in one folder there.
TEXTS = ("codegen/cpu/kernels", "codegen/cpu/units", "codegen/rules/kernels", "runtime")

# Where a name says which function a stack trace or a message is about: two files have no static
# function of one name.
UNIQUE = ("runtime", "codegen", "passes", "ir", "frontend")

# These are installed, or read by name: their guards go by that name.
PUBLISHED = {"runtime/ckr.h": "CKR_H", "runtime/ckr_abi.h": "CKR_ABI_H"}

# Places that tell ops apart by name: at most how many, and why they are no property of a row.
BY_NAME = re.compile(r"\bcase OP_(?!##)|[!=]= OP_(?!NONE\b|COUNT\b)")
OPS = {
    "codegen/codegen.c": (1, "accumulation"),
    "codegen/cpu/conv_blocked.c": (15, "emit rules that ops share"),
    "codegen/cpu/conv.c": (2, "emit rules that ops share"),
    "codegen/cpu/conv_tile.c": (4, "emit rules that ops share"),
    "codegen/rules/copy.c": (4, "emit rules that ops share"),
    "codegen/rules/ew.c": (12, "emit rules that ops share"),
    "codegen/rules/loop_nest.c": (1, "emit rules that ops share"),
    "codegen/rules/loop.c": (1, "emit rules that ops share"),
    "codegen/cuda/conv.c": (4, "emit rules that ops share"),
    "codegen/cuda/reduce.c": (1, "emit rules that ops share"),
    "codegen/rules/random.c": (5, "which stream a draw has"),
    "codegen/rules/reduce.c": (10, "emit rules that ops share"),
    "codegen/cpu/reduce.c": (1, "emit rules that ops share"),
    "codegen/rules/rows.c": (2, "emit rules that ops share"),
    "codegen/rules/shard.c": (3, "what adds"),
    "codegen/cpu/tile.c": (2, "emit rules that ops share"),
    "codegen/rank_tables.c": (7, "what a collective cuts"),
    "codegen/inputs.c": (1, "slices of labels"),
    "codegen/tables.c": (1, "adam"),
    "frontend/import/import_move.c": (3, "one reader of several operators"),
    "frontend/import/import_nn.c": (3, "one reader of several operators"),
    "frontend/import/import_pool.c": (1, "one reader of several operators"),
    "frontend/import/resolve.c": (1, "copies of parameters"),
    "ir/infer/infer.c": (1, "absent operands of products"),
    "ir/infer/infer_ew.c": (2, "loops: no loop within, a cast of a micro"),
    "ir/infer/infer_index.c": (1, "the two scatters share a rule"),
    "ir/sharding/sharding_infer.c": (
        8,
        "what rounds; a bias beside a summand; expand and scatter_add with a shard of their own; "
        "what is exchanged",
    ),
    "ir/sharding/sharding_nn.c": (5, "what pads the last shard of a product"),
    "ir/sharding/sharding_rule.c": (5, "fills, loss_scale and what expand and casts repeat"),
    "ir/sharding/sharding_norm.c": (2, "what a norm is made of"),
    "ir/text/parse_node.c": (3, "loops have bodies"),
    "ir/verify/verify.c": (
        10,
        "loops have bodies; what only replicate makes a constant; attributes of views and pad; what a canonical product is",
    ),
    "ir/window.c": (5, "which operand is x, y, w"),
    "passes/canon/loss.c": (1, "class scores"),
    "passes/frozen/frozen.c": (4, "products and what becomes logits; rows that are looked up"),
    "passes/fuse/fuse_frozen.c": (3, "products, and conversions of weights"),
    "passes/account/memory_report.c": (7, "what a peer stores"),
    "passes/data_parallel/dp_partition.c": (
        5,
        "totals; numbers of the batch; losses and norms of a batch are not what the sum is",
    ),
    "passes/data_parallel/dp_visit.c": (
        3,
        "a mean of a batch is not what the sum is; what folding left of a reduction",
    ),
    "passes/data_parallel/dp_micro.c": (7, "statistics of a batch; what looks up by indices"),
    "passes/data_parallel/micro.c": (
        5,
        "what pass replicate puts between micro-batches; statistics of a batch",
    ),
    "passes/data_parallel/dp_divisor.c": (11, "a sum over samples divided by their number"),
    "passes/data_parallel/dp_sample_index.c": (
        15,
        "what integers that number samples may be made of",
    ),
    "passes/data_parallel/dp_own_rows.c": (
        21,
        "what looks up, and which operands pick; the batch of a gather_nd",
    ),
    "passes/data_parallel/dp_infer.c": (8, "what rules of ranks leave out and samples allow"),
    "passes/canon/canon.c": (4, "attention without dropout"),
    "passes/evaluation/evaluate.c": (
        15,
        "numbers of the batch; updates of statistics; what names a class",
    ),
    "passes/canon/match_act.c": (20, "patterns"),
    "passes/canon/match_attention.c": (5, "patterns"),
    "passes/canon/match_bags.c": (4, "patterns"),
    "passes/canon/match_norm.c": (3, "patterns"),
    "passes/cost/device_fit.c": (2, "what was measured"),
    "passes/pareto/part_least.c": (1, "loops"),
    "passes/eval/eval.c": (2, "rules that ops share"),
    "passes/eval/eval_num.c": (12, "rules that ops share"),
    "passes/fold/fold.c": (4, "rules of some ops, and patterns"),
    "passes/fold/fold_extent.c": (1, "what rounds"),
    "passes/fold_build/fold_facts.c": (2, "what asks for extents"),
    "passes/fold/fold_arith.c": (2, "rules of some ops, and patterns"),
    "passes/fold_build/fold_build.c": (1, "rules of some ops, and patterns"),
    "passes/selection/row_order.c": (
        8,
        "what a mask was before it was expanded; what reads places",
    ),
    "passes/fold/fold_const.c": (4, "rules of some ops, and patterns"),
    "passes/fold/fold_index.c": (2, "indices that are joined, and added up"),
    "passes/fold/fold_sink.c": (3, "what repeats elements"),
    "passes/selection/dynamic.c": (5, "rules that ops share; nonzero, part"),
    "passes/selection/dynamic_reduce.c": (9, "rules that ops share; nonzero, part"),
    "passes/selection/dynamic_keep.c": (6, "rules that ops share; nonzero, part"),
    "passes/selection/padding.c": (20, "how a mask is counted; how one-hot vectors are made"),
    "passes/fold/fold_move.c": (3, "rules of some ops, and patterns"),
    "ir/graph.c": (4, "what a copy of a weight, or a slice, is"),
    "passes/explore/evaluation_program.c": (2, "random numbers but those of dropout"),
    "passes/fuse/edit.c": (1, "loops, reshapes and transpositions"),
    "passes/fuse/fuse_classifier.c": (12, "patterns"),
    "passes/fuse/fuse_packed.c": (5, "patterns"),
    "passes/fuse/fuse_epilogues.c": (5, "patterns"),
    "passes/fuse/fuse_vocab.c": (1, "operands of sce"),
    "passes/fuse/fuse_transposed.c": (3, "loops, reshapes and transpositions"),
    "passes/fuse/fuse_pretransposed.c": (1, "products with a transposed right side"),
    "ir/loop.c": (2, "loops, reshapes and transpositions"),
    "passes/fuse/layout.c": (8, "loops, reshapes and transpositions"),
    "passes/lora/lora.c": (1, "products"),
    "passes/grad/shield.c": (5, "which operand is taken; constant divisors and exponents"),
    "passes/grad/autodiff.c": (3, "what stands for totals; rules that ops share; sums, slices"),
    "passes/grad/copies.c": (1, "casts"),
    "passes/grad/grad_index.c": (2, "rules that ops share; sums, slices"),
    "passes/grad/optim.c": (2, "rules that ops share; sums, slices"),
    "passes/precision/positions.c": (5, "matmul, casts of bools, look-ups"),
    "passes/precision/logs.c": (1, "exponentials"),
    "passes/precision/terms.c": (3, "products and powers"),
    "passes/precision/sentinels.c": (5, "what masks scores"),
    "passes/precision/precision.c": (4, "casts, weights of blocks, random numbers, dropout"),
    "passes/planner/remat_preset.c": (3, "presets of others: attention, what is gathered"),
    "passes/remat_model/remat.c": (4, "loops, attention"),
    "ir/segments.c": (3, "loops, attention"),
    "passes/report/flops.c": (2, "attention in a peer's terms"),
    "passes/report/memory_pipeline.c": (1, "attention in a peer's terms"),
    "passes/run.c": (1, "loops"),
    "passes/tensor_parallel/apply.c": (6, "attributes that hold extents, the loss, biases"),
    "passes/tensor_parallel/shard_constraints.c": (2, "norms"),
    "passes/tensor_parallel/tensor_parallel.c": (1, "biases"),
    "passes/canon/match_experts.c": (8, "gathers, products, what matrices pass through"),
    "passes/context_parallel/context.c": (10, "what may be gathered; means; sums over replicas"),
    "passes/context_parallel/cp_follow.c": (7, "attention; what shifts positions"),
    "passes/context_parallel/cp_heads.c": (1, "attention"),
    "passes/context_parallel/cp_loss.c": (2, "losses over labels"),
    "passes/context_parallel/cp_version.c": (4, "attributes of collectives, slices, attention"),
    "passes/expert_parallel/experts.c": (9, "products of experts, biases; which views keep dim 0"),
    "passes/expert_parallel/exchange.c": (14, "products of experts; attributes that let rows pass"),
    "passes/data_parallel/dp_other_batch.c": (2, "what pass replicate puts between replicas"),
    "passes/evaluation/loss_formula.c": (
        11,
        "choices by comparison, as clamps are; what pass replicate puts between replicas; means; numbers of the batch",
    ),
    "passes/data_parallel/dp_extent.c": (1, "which numbers become constants"),
    "passes/tensor_parallel/strategies.c": (
        6,
        "where shardings begin: products, products of experts, tables, norms; slices",
    ),
}

# C11 7.13.1.1: setjmp is all of a condition, or compared with a constant there.
SETJMP = re.compile(r"(?<![\w.>])setjmp\(")
SETJMP_ALONE = re.compile(r"\s*(if|while|switch) \(!?setjmp\([\w.>-]+\)( [!=]= 0)?\)( \{)?$")


def sources(root):
    for folder in FOLDERS:
        for base, _, files in os.walk(os.path.join(root, folder)):
            for name in sorted(files):
                if name.endswith((".c", ".h")):
                    yield os.path.relpath(os.path.join(base, name), root)


def strip(text):
    """Comments and strings blanked, line structure kept."""
    token = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'', re.S)
    return token.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text)


def check_setjmp(path, text, faults):
    for i, line in enumerate(text.splitlines(), 1):
        if SETJMP.search(line) and not SETJMP_ALONE.match(line):
            faults.append(f"{path}:{i}: setjmp where C does not permit it")


def check_includes(path, text, faults):
    room = path.split("/")[0]
    for i, line in enumerate(text.splitlines(), 1):
        m = re.match(r'\s*#\s*include "([^"]+)"', line)
        if not m or path.startswith(DRIVER):
            continue
        target = m.group(1)
        seen = target.split("/")[0] if "/" in target else None
        if (
            seen in FOLDERS
            and seen not in MAY_SEE[room]
            and not target.startswith(SHARED)
            and not (target == ABI and room == "codegen")
        ):
            faults.append(f"{path}:{i}: {room} may not include {target}")
        for folder, others in ROOMS.items():
            if path.startswith(folder) and not target.startswith((folder, *others)):
                faults.append(f"{path}:{i}: {folder[:-1]} may not include {target}")


def check_calls(path, code, text, faults):
    for pattern, allowed in ONLY_IN.items():
        where = text if pattern.startswith("#") else code
        for m in re.finditer(pattern, where):
            if path not in allowed:
                faults.append(
                    f"{path}:{where.count(chr(10), 0, m.start()) + 1}: {m.group()} does not belong here"
                )


def check_ops(path, code, faults):
    found = len(BY_NAME.findall(code))
    most, why = OPS.get(path, (0, "none"))
    if found > most:
        faults.append(
            f"{path}: tells ops apart by name in {found} places, {most} are known ({why}): let the row of ir/ops.h say it"
        )
    if found < most:
        faults.append(
            f"{path}: tells ops apart by name in {found} places, no longer in {most}: lower its number in OPS"
        )


def warn(text):
    print(f"warning: {text}")


def check_lines(path, text, faults):
    if text.count("\n") > LINES:
        warn(f"{path}: {text.count(chr(10))} lines; has it one subject?")
    for i, line in enumerate(text.splitlines(), 1):
        if len(line.expandtabs(8)) > 80 and path not in WIDE:
            faults.append(f"{path}:{i}: {len(line.expandtabs(8))} columns")
        if line != line.rstrip():
            faults.append(f"{path}:{i}: blanks at the end")


def needs_generated(root, path):
    """Whether a header includes, itself or through others, what the build writes."""
    with open(os.path.join(root, path), encoding="utf-8") as f:
        text = f.read()
    return "pb-c.h" in text or any(
        needs_generated(root, name)
        for name in re.findall(r'#include "([^"]+\.h)"', text)
        if os.path.exists(os.path.join(root, name))
    )


def check_header(root, path, cc, faults):
    done = subprocess.run(
        [
            cc,
            "-std=c11",
            "-D_GNU_SOURCE",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-fsyntax-only",
            "-I.",
            "-x",
            "c",
            "-",
        ],
        input=f'#include "{path}"\n',
        text=True,
        cwd=root,
        stderr=subprocess.PIPE,
    )
    if done.returncode:
        faults.append(f"{path}: does not compile alone: {done.stderr.strip().splitlines()[0]}")


def check_text(root, path, cc, faults):
    done = subprocess.run(
        [
            cc,
            "-std=c11",
            "-fopenmp",
            "-Wall",
            "-Wextra",
            "-Wmissing-prototypes",
            "-Wno-psabi",
            "-Werror",
            "-fsyntax-only",
            *(word for folder in (*TEXTS, "runtime/support") for word in ("-iquote", folder)),
            "-x",
            "c",
            "-",
        ],
        input=f'#include "{os.path.basename(path)}"\n',
        text=True,
        cwd=root,
        stderr=subprocess.PIPE,
    )
    if done.returncode:
        said = done.stderr.strip().splitlines()
        faults.append(
            f"{path}: does not compile alone: {next((line for line in said if 'error:' in line), said[-1])}"
        )


def check_statics(root, faults):
    for folder in UNIQUE:
        where = {}
        for path in sources(root):
            if path.split("/")[0] != folder or not path.endswith(".c") or "/units/" in path:
                continue
            with open(os.path.join(root, path), encoding="utf-8") as f:
                for name in re.findall(r"^static [^\n;=(]*\n(\w+)\(", f.read(), re.M):
                    if where.setdefault(name, path) != path:
                        faults.append(f"{path}: {where[name]} has a static {name}() too")


def check_guards(root, faults):
    for folder in (*FOLDERS, "tests"):
        for base, _, files in os.walk(os.path.join(root, folder)):
            for name in sorted(files):
                if not name.endswith((".h", ".cuh")):
                    continue
                path = os.path.relpath(os.path.join(base, name), root)
                with open(os.path.join(base, name), encoding="utf-8") as f:
                    text = f.read()
                # Tables have none: their readers include them several times.
                m = re.search(r"^#ifndef (\w+)\n#define \1\n", text, re.M)
                guard = PUBLISHED.get(path, re.sub(r"\W", "_", path).upper())
                if m and m.group(1) != guard:
                    faults.append(f"{path}: include guard {m.group(1)}, expected {guard}")


def check_first_words(root, faults):
    """A file begins with a comment that says what is in it, or its header does."""
    for path in sources(root):
        header = re.sub(r"\.c$", ".h", path)
        begins = []
        for name in {path, header}:
            if os.path.exists(os.path.join(root, name)):
                with open(os.path.join(root, name), encoding="utf-8") as f:
                    begins.append(f.read(2))
        if not {"/*", "//"} & set(begins):
            faults.append(f"{path}: begins without a comment on what is in it")


def check_heads(root, faults):
    """One header of a folder says what the room is for."""
    heads = {}
    for path in sources(root):
        folder = os.path.dirname(path)
        if not path.endswith(".h") or folder in ("runtime", *TEXTS) or "/kernels" in folder:
            continue
        heads.setdefault(folder, [])
        with open(os.path.join(root, path), encoding="utf-8") as f:
            text = f.read()
        if m := re.match(r"/\* Room (\w+):(.*?)\*/", text, re.S):
            heads[folder].append(m.group(1))
            missing = [w for w in ("in", "out", "must not know") if f"\n * {w} " not in m.group(2)]
            if missing:
                faults.append(f"{path}: the head of the room lacks: {', '.join(missing)}")
    for folder, names in heads.items():
        if names != [os.path.basename(folder)]:
            faults.append(
                f"{folder}: expected one head '/* Room {os.path.basename(folder)}:', "
                f"found {', '.join(names) or 'none'}"
            )


def check_crowds(root):
    for folder in FOLDERS:
        for base, _, files in os.walk(os.path.join(root, folder)):
            if len(files) > CROWD:
                warn(f"{os.path.relpath(base, root)}: {len(files)} files; is it one room?")


def check_scripts(root, faults):
    """A script that no test runs is read at least, by the oldest Python that is at hand: this
    one."""
    for base, _, files in os.walk(root):
        for path in (os.path.join(base, name) for name in files if name.endswith(".py")):
            if not path.startswith((os.path.join(root, "build"), os.path.join(root, "."))):
                with open(path, encoding="utf-8") as f:
                    try:
                        compile(f.read(), path, "exec")
                    except SyntaxError as e:
                        faults.append(f"{os.path.relpath(path, root)}:{e.lineno}: {e.msg}")


def main():
    root, cc = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "cc"
    faults = [
        f"OPS: {path} is gone" for path in OPS if not os.path.exists(os.path.join(root, path))
    ]
    for path in sources(root):
        with open(os.path.join(root, path), encoding="utf-8") as f:
            text = f.read()
        rows = "#ifndef OP\n" in text or re.search(
            r"^DT\(", text, re.M
        )  # tables are included by their readers
        check_includes(path, text, faults)
        check_setjmp(path, strip(text), faults)
        check_calls(path, strip(text), text, faults)
        check_lines(path, text, faults)
        check_ops(path, strip(text), faults)
        if os.path.dirname(path) in TEXTS[:2]:
            check_text(root, path, cc, faults)
        elif (
            path.endswith(".h")
            and not rows
            and "/kernels/" not in path
            and not needs_generated(root, path)
        ):
            check_header(root, path, cc, faults)
    check_statics(root, faults)
    check_guards(root, faults)
    check_first_words(root, faults)
    check_heads(root, faults)
    check_crowds(root)
    check_scripts(root, faults)
    print("\n".join(faults[:60]))
    print(f"{len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
