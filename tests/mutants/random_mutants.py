#!/usr/bin/env python3
"""How many bugs do the tests notice that nobody thought of?  Changes single places of the product
at random and runs the tests of the room in which each place is.

    random_mutants.py [--seed N] [--count N] [--jobs N] [--table FILE] [--work DIR]
    [--only N,N-N...] [--cost S] [--tests REGEX] [--least PERCENT] [--list]
    random_mutants.py --check BUILD

A room gets mutants by its lines.  One mutant is one change by one of the operators

  negate  the condition of if or while; == and !=       and-or  && and || (and, or)
  bound   < and <=, > and >=                            call    a statement that calls is removed
  one     + 1 or - 1 is dropped; a constant is one more return  another value is returned
  swap    a - b, a / b or a % b, or two arguments, change places

The seed and the source decide which.  Messages, assertions, calls that free, and drawings are left
alone.  What does not compile, and what compiles to the same programs, is passed over.

RELATED says which tests belong to a room.  They run in the order of their cost in tests/README.md,
up to --cost seconds, until one fails.  A test that takes three times its time fails.  A test that
fails without the mutant does not count.  --jobs copies of the tree are worked on at once.
--table keeps what FILE says of mutants that do not run, and the last column of survivors: why no
test can notice.  Those are equivalent; the score is the percentage killed of the others.
Exit status 0 when the score is at least PERCENT (85).
"""

import argparse
import bisect
import hashlib
import io
import math
import os
import queue
import re
import subprocess
import sys
import threading
import time
import tokenize

import run

FOLDERS = ("frontend", "ir", "passes", "codegen", "runtime")
SUFFIXES = (".c", ".h", ".cuh", ".py")
# Texts that only the compiler of a model's code reads.
KERNELS = ("codegen/cpu/units", "codegen/cpu/kernels", "codegen/cuda/kernels")
KERNELS += ("codegen/rules/kernels",)
# Where things lie on a page for people, and what ckc says about a machine.
DRAWINGS = re.compile(
    r"(inspect_page|plan_page|page_arena|pareto_front_svg|chart|run_page|plot|verb_doctor)\.[ch]"
)
LIMIT = 600  # seconds for a test without any mutant

# A folder, or one above it, and the tests whose whole name matches.
CK = "ck-.*|canon-.*"
PLAN = "ck-plan|plan-.*"
CPU = "codegen_(driver|scratch|math|kernels-(conv|elementwise|nn|tiles|typed|rows))"
CUDA = "codegen_kernels-cuda-.*|cuda-(bits|models-unfolded|factored)"
# Arguments with which a test takes a quarter of its time: gcc without optimisation; one optimizer.
QUICK = {
    "codegen_kernels-(conv|elementwise|nn|tiles)": "{here}/cc-quick",
    "cuda-late": "adamw",
}
RELATED = {
    "frontend/driver": "ck-run|e2e-(cli|errors|verdict|tune|report|large_weights|dump_restart"
    "|help|curve|pack)|plan-(limits|stop)|memory-.*|docs",
    "frontend/import": "import.*|inspect|ref-model-optim|fuzz-onnx|e2e-(attribute_defaults|op_forms"
    "|noise|data_dependent|losses|models|masks)|onnx-nodes",
    "frontend/inspect": "inspect.*|e2e-(report|cli)",
    "frontend/lint": "import|inspect.*|e2e-(errors|cli)",
    "frontend/onnx": "import.*|inspect.*|fuzz-(onnx|tensor)|e2e-(hostile|external|constants"
    "|op_forms|attribute_defaults|models|errors)|onnx-nodes",
    "frontend/params": "import|inspect.*|ck-lora|e2e-(cli|errors|models|op_forms|python)",
    "frontend/python": "e2e-(python|recipe-.*)",
    "ir": f"unit|{CK}|fold_.*|grad_.*|ref-forms|shard-.*|plan-(remat|replay)|e2e-(op_forms|models)",
    "ir/base": f"unit|{CK}|import|fuzz-ck|e2e-(errors|cli|hostile|verdict|external)|faults",
    "ir/infer": f"unit|{CK}|import|fold_.*|grad_.*|fuzz-ck|{CPU}|e2e-(op_forms|attribute_defaults)",
    "ir/sharding": "ck-shard|shard-.*|ref-spmd|e2e-(tensor_parallel|ranks|sharded)",
    "ir/text": f"unit|{CK}|fuzz-ck|plan-json|e2e-dump_restart",
    "ir/verify": f"unit|{CK}|fuzz-ck|shard-mutate|plan-replay",
    "passes": f"unit|{CK}|plan-(known|json)|e2e-(cli|errors|models)",
    "passes/account": f"{CK}|plan-(replay|json|known)|memory-.*|e2e-(report|dump_restart)",
    "passes/canon": f"{CK}|ref-model-optim|import|e2e-(masks|losses|axes|op_forms|models|cli|errors"
    "|masked_gradients)",
    "passes/cost": f"{CK}|fuzz-device|plan-(cost|known|remat|target)|memory|memory-accounts"
    "|e2e-(tune|tensor_parallel|verdict)",
    "passes/data_parallel": f"{CK}|memory|ref-model-accum|e2e-(accum|replicas|models-accum"
    "|models-replicas|ranks|data_dependent|masks)",
    "passes/eval": f"fold_.*|{CK}|import|grad_.*|e2e-(op_forms|constants)|onnx-nodes",
    "passes/evaluation": f"{CK}|e2e-(eval|forward|verdict|totals|recipe-.*)",
    "passes/explore": f"{CK}|{PLAN}|e2e-(eval|forward|updates|accum|tensor_parallel|tune)",
    "passes/fold": f"{CK}|fold_.*|import|inspect|e2e-(op_forms|axes|data_dependent|constants"
    "|models)|onnx-nodes",
    "passes/fuse": f"{CK}|fold_fuse|codegen_driver|ref-model-(fuse|place)|e2e-(models|losses"
    "|strided_views|vectorized)",
    "passes/grad": f"grad_.*|{CK}|ref-(forms|model-optim)|e2e-(grads|optimizers|updates|clip|zero"
    "|masked_gradients|factored|models)",
    "passes/ilp": f"{PLAN}|ck-(shard|place)|shard-models",
    "passes/lora": f"{CK}|e2e-(cli|python|tensor_parallel|updates)",
    "passes/low_precision": f"{CK}|{PLAN}|e2e-(save_dtype|budgets-bf16|monotone-.*16|rounded-.*)",
    "passes/overlap": f"{CK}|plan-(overlap|transfers|halves)|e2e-(async_transfers|ranks|zero)",
    "passes/pareto": f"{PLAN}|e2e-(curve|budgets-(mlp-mse|gpt2-ts14))",
    "passes/place": f"{CK}|{PLAN}|fuzz-pack|memory-accounts|ref-model-place",
    "passes/planner": f"{CK}|{PLAN}|memory-accounts|e2e-(curve|verdict|save_dtype|recursive"
    "|budgets-(mlp-mse|gpt2-ts14))",
    "passes/precision": f"{CK}|e2e-(precision|rounded-.*|loss_scale|resume-bf16|losses)",
    "passes/recursive": f"{PLAN}|e2e-(recursive|budgets-(mlp-mse|gpt2-ts14)|monotone-f16)",
    "passes/remat_model": f"{CK}|{PLAN}|memory-accounts|e2e-(curve|budgets-(mlp-mse|gpt2-ts14))",
    "passes/replay": f"plan-(replay|json)|{CK}",
    "passes/report": f"{CK}|e2e-(report|cli|curve|verdict|dump_restart)|memory-accounts|plan-json"
    "|docs",
    "passes/selection": f"{CK}|import|memory|e2e-(data_dependent|masks|op_forms)",
    "passes/standalone": "plan-(dag|known|random|limits|stop)|fuzz-dag|e2e-curve|memory-paper",
    "passes/tensor_parallel": f"{CK}|shard-.*|ref-spmd|e2e-(tensor_parallel|ranks|sharded"
    "|models-ranks)",
    "codegen": "codegen_(driver|scratch)|machine-plain|e2e-(models|compile_units|large_weights|cli"
    "|dump_restart|ranks|eval)",
    "codegen/cpu": f"{CPU}|e2e-(models|masks|noise|strided_views|op_forms|factored|vectorized)",
    "codegen/cuda": CUDA,
    "codegen/rules": f"{CPU}|{CUDA}|e2e-(models|strided_views|op_forms|noise|updates|factored)",
    "runtime/api": "runtime-.*|ckrun|formats|e2e-(python|eval|grads|resume)",
    "runtime/base": "runtime-.*|formats|cpu_monitor|ckrun|conv|e2e-(noise|run_errors|processes)",
    "runtime/blas": "runtime-.*|conv|codegen_kernels-tiles|e2e-(models|vectorized)",
    "runtime/ckrun": "ckrun|e2e-(run_errors|logs|history|against|data|resume|cli|eval|report|tune"
    "|forward|totals|images)",
    "runtime/compare": "e2e-(against|python)",
    "runtime/data": "pair|formats|fuzz-(data|index|array)|ckrun|e2e-(csv_files|data_files|npz"
    "|images|image_scaling|pack|data|run_errors|recipe-.*)",
    "runtime/device": "runtime-.*|cuda-(faults|engines|late|calls|cudnn|bits|factored)",
    "runtime/evaluate": "runtime-.*|e2e-(eval|forward|totals|recipe-.*)",
    "runtime/file": "pair|formats|runtime-.*|fuzz-(array|checkpoint|tensor|index)|e2e-(npz|data_files"
    "|resume|external|large_weights|axes|run_errors|python|tune)",
    "runtime/files": "runtime-.*|ckrun|fuzz-checkpoint|e2e-(resume.*|grads|python|external|zero|axes"
    "|large_weights|sharded|run_errors|precision|torchrun)",
    "runtime/image": "pair|fuzz-data|e2e-(images|image_scaling|recipe-segmentation)",
    "runtime/library": "runtime-.*|e2e-(run_errors|cli|eval)",
    "runtime/measure": "measure|runtime-.*|ckrun|e2e-(verdict|process_memory|tune|async_transfers)",
    "runtime/ranks": "ranks|runtime-.*|between-.*|e2e-(ranks|replicas|torchrun|processes)"
    "|cuda-processes",
    "runtime/stepping": "runtime-.*|ranks|measure|e2e-(accum|clip|loss_scale|updates|optimizers"
    "|forward|totals|resume|noise|async_transfers|zero|precision)|cuda-late",
    "runtime/support": "unit|pair|formats|fuzz-.*|ckrun|e2e-(cli|csv_files|run_errors|report"
    "|history|logs|help|data_files)",
    "runtime/team": "between-.*|e2e-(torchrun|processes|run_errors)",
    "runtime/world": "runtime-.*|ranks|between-2|e2e-(ranks|replicas|resident_copies|sharded|zero"
    "|async_transfers)",
}

# ---- places ----

TOKEN = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'', re.S)
DIRECTIVE = re.compile(r"^[ \t]*#(?:\s*define \w+(?:\([^)]*\))?|(?!\s*define)[^\n]*)", re.M)
WORDS = re.compile(r'"[^"]*[A-Za-z%]\S*\s+\S+\s+\S*[A-Za-z]')
GENERATES = re.compile(r"out_\w+|emit_\w+|EMIT_\w+|ptx_\w+|is_op_among|word_is_listed")
NAME = r"(?!sizeof)[A-Za-z_]\w*(?:(?:\.|->)\w+|\[[^\[\]\n]*\])*"
ALONE = r"(?<![\w.>)\]])(%s)%s(%s)(?![\w.(\[]|->)"
SAME = re.compile(r"(?i).*(min|max|mul|add|sum|same|equal|either|both|gcd|swap).*")
FREES = re.compile(r"\w*(free|fclose|close|unmap|va_end|assert|clear|release)\w*")


def blank(text, keep=""):
    return re.sub(r"[^\n]", lambda m: m[0] if m[0] in keep else " " if not keep else "_", text)


def closing(text, at):
    """Behind the bracket that closes the one at `at`."""
    depth = 0
    for i in range(at, len(text)):
        depth += (text[i] in "([{") - (text[i] in ")]}")
        if not depth:
            return i + 1
    return len(text)


def masked_c(text):
    """The text without comments, words and messages, each character in its place."""
    code = TOKEN.sub(lambda m: blank(m[0], "\"'" if m[0][0] in "\"'" else ""), text)
    code = DIRECTIVE.sub(lambda m: blank(m[0]), code)
    for m in re.finditer(r"\b(\w+)\(", code):
        end = closing(code, m.end() - 1)
        said = TOKEN.sub(lambda t: t[0] if t[0][0] == '"' else "", text[m.end() : end])
        message = WORDS.search(said) and not GENERATES.fullmatch(m[1]) and "{" not in said
        if message or m[1] in ("assert", "_Static_assert", "static_assert"):
            code = code[: m.start()] + blank(code[m.start() : end]) + code[end:]
    return code


def masked_python(text):
    lines = text.splitlines(keepends=True)
    start = [0]
    for line in lines:
        start.append(start[-1] + len(line))
    for t in tokenize.generate_tokens(io.StringIO(text).readline):
        if t.type in (tokenize.STRING, tokenize.COMMENT):
            a, b = start[t.start[0] - 1] + t.start[1], start[t.end[0] - 1] + t.end[1]
            text = text[:a] + blank(text[a:b], "\"'") + text[b:]
    return text


def spots_c(code):
    """Operator, first and last offset, new text (\\1 is the old one)."""
    for m in re.finditer(r"\b(?:if|while) (?=\()", code):
        yield "negate", m.end(), closing(code, m.end()), r"(!\1)"
    for m in re.finditer(r"\breturn ([^;{]+);", code):
        value = m[1].strip()
        flip = {"true": "false", "false": "true", "0": "1", "NULL": None}
        if value and flip.get(value, "0"):
            yield "return", m.start(1), m.end(1), flip.get(value, "0")
    # a call that is a statement: nothing before it on its line, the statement before it at an end
    for m in re.finditer(r"^[\t ]+(\w+)(?=\()", code, re.M):
        end = closing(code, m.end())
        before = code[: m.start()].rstrip().rstrip("\\").rstrip()
        word = m[1] in ("if", "for", "while", "switch", "return", "sizeof", "defined")
        ends = before.endswith((";", "{", "}", ":", "else")) or re.search(r"\)$", before)
        if code[end : end + 1] == ";" and ends and not word and not FREES.fullmatch(m[1]):
            yield "call", m.start(1), end, "(void)0"
    yield from spots_swap(code)
    for m in re.finditer(r"(?<=\s)(&&|\|\|)(?=\s)", code):
        yield "and-or", m.start(), m.end(), "||" if m[1] == "&&" else "&&"
    yield from spots_numbers(code, r"^\s*(?:static |const |struct )*\w+ [\w*, \[\]]*\[$")


def spots_swap(code):
    for m in re.finditer(ALONE % (NAME, " ([-/%]) ", NAME), code):
        if m[1] != m[3]:
            yield "swap", m.start(), m.end(), f"{m[3]} {m[2]} {m[1]}"
    for m in re.finditer(r"(?:\(|, )(?=([A-Za-z_]\w*), ([A-Za-z_]\w*)[,)])", code):
        depth, at = 0, m.start() + (m[0] == "(") - 1
        while at > 0 and (depth or code[at] != "("):
            depth += (code[at] == ")") - (code[at] == "(")
            at -= 1
        name = re.search(r"\w*$", code[:at])[0]
        if m[1] != m[2] and name and name == name.lower() and not SAME.fullmatch(name):
            yield "swap", m.start(1), m.end(2), f"{m[2]}, {m[1]}"


def spots_numbers(code, array):
    other = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
    for m in re.finditer(r"(?<= )([<>]=?|[=!]=)(?=\s)", code):
        yield "negate" if "=" in m[1][1:] and m[1][0] in "=!" else "bound", *m.span(), other[m[1]]
    for m in re.finditer(r" [+-] 1\b(?![.\w])", code):
        yield "one", m.start(), m.end(), ""
    for m in re.finditer(r"(?<=[=(,<>+\-*/%\[ ])(?<![\w.])(\d+)(?=[;),\] ])", code):
        line = code[code.rfind("\n", 0, m.start()) + 1 : m.start()]
        if not re.search(array, line):
            yield "one", m.start(), m.end(), str(int(m[1]) + 1)


def spots_python(code):
    for m in re.finditer(r"^\s*(?:if|elif|while) (.+):$", code, re.M):
        yield "negate", m.start(1), m.end(1), r"not (\1)"
    for m in re.finditer(r"\breturn ([^\n]+[^\n(\[{,])$", code, re.M):
        yield "return", m.start(1), m.end(1), "None"
    for m in re.finditer(r"^\s+([\w.]+\([^\n]*\))$", code, re.M):
        if closing(code, code.index("(", m.start())) == m.end():
            yield "call", m.start(1), m.end(1), "pass"
    for m in re.finditer(r"(?<= )(and|or)(?= )", code):
        yield "and-or", m.start(), m.end(), "or" if m[1] == "and" else "and"
    yield from spots_swap(code)
    yield from spots_numbers(code, "^$")


class Site:
    def __init__(self, path, text, spot, seed, seen):
        self.path, (self.op, self.start, self.end, new) = path, spot
        self.old = text[self.start : self.end]
        self.new = new.replace(r"\1", self.old)
        self.line = text.count("\n", 0, self.start) + 1
        # like places of like lines are told apart by their number
        key = (path, self.op, text.splitlines()[self.line - 1].strip(), self.old, self.new)
        seen[key] = seen.get(key, 0) + 1
        hashed = hashlib.sha256(repr((seed, key, seen[key])).encode()).digest()
        self.chance = (int.from_bytes(hashed[:8], "big") + 1) / 2.0**64

    def change(self):
        return tuple(re.sub(r"\s+", " ", x).strip() or "nothing" for x in (self.old, self.new))


def read_rooms(root, seed):
    """Lines of code and places of each room.  A room's places are in the order in which they are
    drawn; each operator that it has is as likely as another."""
    rooms = {}
    for paths in run.sources(root).values():
        for full in paths:
            path = os.path.relpath(full, root)
            ours = path.endswith(SUFFIXES) and path.split(os.sep)[0] in FOLDERS
            if not ours or DRAWINGS.fullmatch(os.path.basename(path)):
                continue
            with open(full, encoding="utf-8") as f:
                text = f.read()
            python = path.endswith(".py")
            code = masked_python(text) if python else masked_c(text)
            seen, room = {}, rooms.setdefault(os.path.dirname(path), [0, []])
            room[0] += sum(bool(line.strip()) for line in code.splitlines())
            spots = sorted(set((spots_python if python else spots_c)(code)))
            room[1] += [Site(path, text, spot, seed, seen) for spot in spots]
    for _, sites in rooms.values():
        count = {}
        for s in sites:
            count[s.op] = count.get(s.op, 0) + 1
        sites.sort(key=lambda s: (-math.log(s.chance) * count[s.op], s.path, s.start))
    return rooms


def shares(rooms, count, seed):
    """Mutants of each room, by its lines: every n-th line is in some room."""
    names = sorted(rooms)
    ends = [sum(rooms[n][0] for n in names[: i + 1]) for i in range(len(names))]
    first = int.from_bytes(hashlib.sha256(str(seed).encode()).digest()[:8], "big") / 2.0**64
    share = dict.fromkeys(names, 0)
    for i in range(count):
        share[names[bisect.bisect_right(ends, (first + i) * ends[-1] / count)]] += 1
    return share


# ---- tests ----


def read_seconds():
    """What a test takes, by the table of tests/README.md."""
    with open(os.path.join(run.ROOT, "tests", "README.md"), encoding="utf-8") as f:
        return {
            m[1]: float(m[2])
            for m in re.finditer(r"^\| (\S+) \| [\w, ]+ \| ([\d.]+) \|$", f.read(), re.M)
        }


def related(room, seconds, tests, cost, only=".*"):
    """The room's tests, cheap ones first, up to so many seconds."""
    while room not in RELATED:
        room = os.path.dirname(room)
    names = [n for n in seconds if n in tests and re.fullmatch(RELATED[room], n)]
    names = [n for n in names if re.fullmatch(only, n)]
    price = {n: seconds[n] for n in names}
    for name, more in QUICK.items():
        for n in filter(re.compile(name).fullmatch, names):
            price[f"{n} {more}"] = price.pop(n) / 4
    total, some = 0, []
    for n in sorted(price, key=lambda n: (price[n], n)):
        total += price[n]
        if total <= cost:
            some.append(n)
    return some


def check(build):
    """Rooms and tests that have other names now."""
    tests, seconds, bad = run.read_tests(build), read_seconds(), 0
    for room, names in RELATED.items():
        # each name alone: those in brackets are spelt out
        while m := re.search(r"([^|()]*)\(([^()]*)\)([^|()]*)", names):
            names = names.replace(m[0], "|".join(m[1] + x + m[3] for x in m[2].split("|")), 1)
        lost = [
            n for n in names.split("|") if not any(re.fullmatch(n, t) for t in [*tests, *seconds])
        ]
        if lost or not os.path.isdir(os.path.join(run.ROOT, room)):
            bad += 1
            print(f"random_mutants.py: {room}: no such folder or test: {' '.join(lost)}")
        if not related(room, seconds, tests, 1e9):
            bad += 1
            print(f"random_mutants.py: {room}: tests/README.md has no times of its tests")
    print(f"{len(RELATED)} rooms, {bad} want a look")
    return bad > 0


class Tree(run.Copy):
    """A copy whose products can be compared: without debug information; types that do not fit are
    errors, as everywhere with -Werror."""

    PRODUCTS = ("ckc", "ckrun", "libckr.so", "ckr_mpi.so")

    def __init__(self, root, seconds, cost, only):
        os.makedirs(root, exist_ok=True)
        os.environ.setdefault("CCACHE_BASEDIR", os.path.dirname(root))
        flags = "-O2 -DNDEBUG -Werror=incompatible-pointer-types -Werror=int-conversion"
        super().__init__(root, 0, options=[f"-DCMAKE_C_FLAGS_RELWITHDEBINFO={flags}"])
        self.seconds, self.cost, self.only, self.passes = seconds, cost, only, {}
        self.names = [n for n in self.PRODUCTS if os.path.exists(os.path.join(self.build, n))]
        self.clean = self.products()
        self.outcome("fuzz-seeds", LIMIT)  # writes what others read

    def products(self):
        """Their contents; None if they do not build."""
        command = ["ninja", "-j1", *self.names]
        if subprocess.run(command, cwd=self.build, capture_output=True).returncode:
            return None
        hashed = hashlib.sha256()
        for name in self.names:
            with open(os.path.join(self.build, name), "rb") as f:
                hashed.update(f.read())
        return hashed.digest()

    def outcome(self, test, limit):
        why = self.rebuild(test)
        if why is not None:
            return -1, why
        self.limit = limit
        return self.run(test)

    def fails(self, test, path, text, mutated):
        """What the test says if it fails, and fails by the mutant alone; or None."""
        limit = max(30, 3 * self.seconds[test.split()[0]])
        status, said = self.outcome(test, limit)
        if status in (0, run.SKIPPED):
            return None
        if status is None or test not in self.passes:
            run.write(path, text)
            begin = time.time()
            self.passes[test] = self.outcome(test, LIMIT)[0] == 0
            own = 3 * (time.time() - begin)
            run.write(path, mutated)
            if not self.passes[test]:
                print(f"{test} fails without any mutant", flush=True)
                return None
            if status is None and own > limit:
                status, said = self.outcome(test, own)
        said = said or f"exit status {status}"
        return None if status == 0 else "took too long" if status is None else said

    def try_site(self, site):
        """killed or survived, by which test, what it said; None: it is no mutant."""
        path = os.path.join(self.root, site.path)
        with open(path, encoding="utf-8", newline="") as f:
            text = f.read()
        mutated = text[: site.start] + site.new + text[site.end :]
        kernel = os.path.dirname(site.path) in KERNELS
        try:
            run.write(path, mutated)
            now = self.products()
            if now is None or (now == self.clean and not site.path.endswith(".py")):
                return None
            room = os.path.dirname(site.path)
            for test in related(room, self.seconds, self.tests, self.cost, self.only):
                if self.passes.get(test) is False:
                    continue
                said = self.fails(test, path, text, mutated)
                if said is None:
                    continue
                if kernel and re.search(r"error: |undefined reference|undeclared", said):
                    return None
                return "killed", test, run.first_complaint(said)
            return "survived", "", ""
        finally:
            run.write(path, text)


# ---- results ----

ROW = re.compile(r"\| (\d+) \| `([^`]*)` \| (\S+) \| `` (.*) `` → `` (.*) `` \| (\S+) \| (.*) \|$")


def read_table(path):
    """Number: key, state, remark."""
    rows = {}
    if path and os.path.exists(path):
        with open(path, encoding="utf-8") as f:
            for m in filter(None, map(ROW.match, f)):
                rows[int(m[1])] = (m[2], m[3], m[4], m[5]), m[6], m[7]
    return rows


def key_of(site):
    return (f"{site.path}:{site.line}", site.op, *(x.replace("|", "¦") for x in site.change()))


def score(results):
    """Killed, survived, equivalent, percentage."""
    killed = sum(state == "killed" for _, state, _ in results.values())
    same = sum(state == "equivalent" for _, state, _ in results.values())
    left = len(results) - killed - same
    return killed, left, same, 100 * killed / max(1, killed + left)


def table_text(results, a):
    killed, left, same, percent = score(results)
    done = subprocess.run(
        ["git", "log", "-1", "--format=%h"], cwd=run.ROOT, capture_output=True, text=True
    )
    text = [
        f"# Random mutants: {percent:.0f} % killed",
        "",
        f"Written by `tests/mutants/random_mutants.py --seed {a.seed} --count {a.count} --table` on "
        f"{time.strftime('%Y-%m-%d')}, {done.stdout.strip()}.",
        "",
        f"{killed} killed, {left} survived, {same} equivalent: no test can notice, and the table says why. "
        "A bar is written ¦.",
        "",
        "| no. | place | operator | change | result | killed by, or why it is equivalent |",
        "|---:|---|---|---|---|---|",
    ]
    for number, (site, state, remark) in sorted(results.items()):
        place, op, old, new = key_of(site)
        text.append(
            f"| {number} | `{place}` | {op} | `` {old} `` → `` {new} `` | {state} | {remark} |"
        )
    return "\n".join(text) + "\n"


def numbers(text):
    found = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return found


def main():
    ap = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    ap.add_argument("--seed", type=int, default=1, help="(1)")
    ap.add_argument("--count", type=int, default=60, help="mutants (60)")
    ap.add_argument("--jobs", type=int, default=1, help="copies of the tree (1)")
    ap.add_argument("--table", metavar="FILE", help="write the result here, in Markdown")
    ap.add_argument("--work", metavar="DIR", help="keep the copies and their builds here")
    ap.add_argument("--only", type=numbers, metavar="N,N-N...", help="mutants of these numbers")
    ap.add_argument("--cost", type=float, default=240, help="seconds of tests for a mutant (240)")
    ap.add_argument("--tests", default=".*", metavar="REGEX", help="related tests of these names")
    ap.add_argument("--least", type=float, default=85, metavar="PERCENT", help="least score (85)")
    ap.add_argument("--check", metavar="BUILD", help="only look for tests that are gone")
    ap.add_argument("--list", action="store_true", help="show what is drawn, compiled or not")
    a = ap.parse_args()
    if a.check:
        return check(a.check)
    rooms = read_rooms(run.ROOT, a.seed)
    share = shares(rooms, a.count, a.seed)
    before, results, skipped = read_table(a.table), {}, [0]
    known, first, todo = {}, 1, queue.Queue()
    for name in sorted(rooms):
        sites, mine = rooms[name][1], range(first, first + share[name])
        todo.put((sites, mine))
        first += share[name]
        if a.list:
            for i, s in zip(mine, sites):
                print(f"{i:3} {s.path}:{s.line}: {s.op}: {' -> '.join(s.change())}")
        for i in mine if a.only else ():
            key, state, remark = before.get(i, (None, "", ""))
            for s in sites:
                if key_of(s) == key:
                    known[i] = s
                    if i not in a.only:
                        results[i] = s, state, remark
    if a.list:
        return 0
    lock = threading.Lock()

    def finish(number, site, found, sec):
        state, test, said = found
        key, old, why = before.get(number, (None, None, ""))
        remark = test.split()[0] if test else ""
        if state == "survived" and key == key_of(site) and old in ("survived", "equivalent"):
            state, remark = old, why
        results[number] = site, state, remark
        where = f"{site.path}:{site.line}: {site.op}: {' -> '.join(site.change())}"
        print(f"{state:10} {number:3} {where}  [{sec:.0f} s]  {test}  {said}", flush=True)
        if a.table:
            with open(a.table, "w", encoding="utf-8") as f:
                f.write(table_text(results, a))

    def work(root):
        tree = Tree(root, read_seconds(), a.cost, a.tests)
        while True:
            try:
                sites, mine = todo.get_nowait()
            except queue.Empty:
                return
            left = iter(sites)
            for number in mine:
                for site in left:
                    if known.get(number, site) is not site:
                        continue
                    known.pop(number, None)
                    if number in results:
                        break
                    begin, found = time.time(), tree.try_site(site)
                    if found:
                        with lock:
                            finish(number, site, found, time.time() - begin)
                        break
                    skipped[0] += 1

    run.side_by_side(work, a.jobs, a.work)
    killed, left, same, percent = score(results)
    print(
        f"{len(results)} mutants: {killed} killed, {left} survived, {same} equivalent: {percent:.1f} %; "
        f"{skipped[0]} did not compile or compiled to the same"
    )
    return percent < a.least or len(results) < a.count


if __name__ == "__main__":
    sys.exit(main())
