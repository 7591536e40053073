"""Kernels of a cubin: registers and spills as ptxas says, instructions and loops of machine code.

Instructions of a loop are those of one way round.  The usual way is the shortest of those through
most of what the kernel is there for (the first of WIDE that the loop has); `way` has its opcodes in
full, `opcodes` the names of all.
"""

import collections
import os
import re
import shutil
import subprocess

WIDE = re.compile(r"HMMA|LDSM|LDGSTS"), re.compile(r"(LD|ST)G\.E\.128"), re.compile(r"(LD|ST)G")
LINE = re.compile(r"^\s+/\*([0-9a-f]{4,})\*/\s+(@!?U?P\w+\s+)?([A-Z][\w.]*)([^;]*);")

Loop = collections.namedtuple("Loop", "least usual most opcodes inner way")
Kernel = collections.namedtuple("Kernel", "name registers frame spills count loops wide split")


def disassembler(nvcc):
    """CUOBJDUMP, else cuobjdump on the path or beside nvcc; None."""
    found = [os.environ.get("CUOBJDUMP"), shutil.which("cuobjdump")]
    found.append(os.path.join(os.path.dirname(os.path.realpath(nvcc)), "cuobjdump"))
    return next((x for x in found if x and os.access(x, os.X_OK)), None)


def ptxas_says(log):
    """{mangled name: (registers, bytes of stack frame, bytes of spills)} of nvcc -Xptxas=-v."""
    found, name, frame = {}, None, (0, 0)
    for line in log.splitlines():
        if m := re.search(r"Compiling entry function '(\S+)'", line):
            name = m[1]
        elif m := re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores", line):
            frame = (int(m[1]), int(m[2]))
        elif (m := re.search(r"Used (\d+) registers", line)) and name:
            found[name] = (int(m[1]), *frame)
            name, frame = None, (0, 0)
    return found


def size_of(op):
    """Bytes of an access."""
    sizes = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16}
    return next((sizes[x] for x in op.split(".") if x in sizes), 4)


def split_vectors(code):
    """Of LDG and STG those that come as neighbours of less than 16 bytes each, which make 16 that
    are aligned: always carried out one after the other, through one register."""
    ends = {"BRA", "BSYNC", "EXIT", "RET", "BRX", "BSSY", "CALL", "WARPSYNC"}
    at = {x[0]: i for i, x in enumerate(code)}
    heads, found, offsets, version = {0}, set(), collections.defaultdict(set), collections.Counter()
    for i, (_, _, op, operands) in enumerate(code):
        if op.split(".")[0] in ends:
            heads.add(i + 1)
            heads.update(at.get(int(x, 16), 0) for x in re.findall(r"0x[0-9a-f]+", operands))
    for i, (_, predicate, op, operands) in enumerate(code):
        kind, size = op.split(".")[0], size_of(op)
        if i in heads:
            offsets.clear()
        a = re.search(r"\[(R\d+)\.64(?:\+(-?0x[0-9a-f]+))?\]", operands)
        if kind in ("LDG", "STG") and not predicate and size < 16 and a:
            seen = offsets[kind, a[1], version[a[1]], size]
            seen.add(int(a[2] or "0", 16))
            first = int(a[2] or "0", 16) // 16 * 16
            if all(first + j in seen for j in range(0, 16, size)):
                found.add(kind)
        if (to := re.match(r"\s*R(\d+)", operands)) and kind not in ("STG", "ST", "STS"):
            last = 4 if ".128" in op else 2 if ".64" in op or "WIDE" in op else 1
            version.update(f"R{int(to[1]) + j}" for j in range(last))
    return found


def functions(text):
    """(mangled name, [(address, predicate, opcode, operands)]) of what cuobjdump -sass prints."""
    name, code = None, []
    for line in text.splitlines():
        if "Function :" in line:
            if name:
                yield name, code
            name, code = line.split("Function :")[1].strip(), []
        elif m := LINE.match(line):
            code.append((int(m[1], 16), (m[2] or "").strip(), m[3], m[4]))
    if name:
        yield name, code


def successors(code):
    """{index: indices that may follow}."""
    at = {x[0]: i for i, x in enumerate(code)}
    meets, follow = {}, {}
    for i, (_, predicate, op, operands) in enumerate(code):
        target = re.findall(r"0x[0-9a-f]+", operands)
        target = at.get(int(target[-1], 16)) if target else None
        beyond = [i + 1] if i + 1 < len(code) else []
        base = op.split(".")[0]
        if base == "BSSY":
            meets[operands.split(",")[0].strip()] = target
            follow[i] = beyond
        elif base == "BSYNC" and meets.get(operands.strip()) is not None:
            follow[i] = [meets[operands.strip()]]
        elif base == "BRA" and target is not None:
            follow[i] = [target] + (
                beyond if predicate or "UP" in operands or "P" in operands else []
            )
        elif base in ("EXIT", "RET", "BRA", "BRX"):
            follow[i] = beyond if predicate else []
        else:
            follow[i] = beyond
    return follow


def natural_loops(follow):
    """{first instruction: all instructions of the loop}."""
    before = collections.defaultdict(list)
    for i, then in follow.items():
        for j in then:
            before[j].append(i)
    loops = collections.defaultdict(set)
    for i, then in follow.items():
        for j in then:
            if j > i:
                continue
            body, todo = {j}, [i]
            while todo:
                k = todo.pop()
                if k not in body:
                    body.add(k)
                    todo += before[k]
            # a jump back to shared code is no loop
            if min(body) == j or reaches(follow, body, j):
                loops[j] |= body
    return loops


def reaches(follow, body, head):
    """Is `head` the only way into the loop?"""
    return all(
        k in body or all(j not in body or j == head for j in then) for k, then in follow.items()
    )


def lengths(code, follow, body, head, inner):
    """Loop of one way round."""
    wide = next(filter(None, ({i for i in body if w.match(code[i][2])} for w in WIDE)), ())

    order, state, stack = [], {head: 0}, [head]
    then = {i: [j for j in follow[i] if j in body] for i in body}
    jumps = {}  # those that do not go back
    while stack:
        i = stack[-1]
        if state[i] < len(then[i]):
            j = then[i][state[i]]
            state[i] += 1
            if j not in state:
                state[j] = 0
                stack.append(j)
        else:
            stack.pop()
            order.append(i)
            jumps[i] = [j for j in then[i] if state.get(j, -1) == -2]
            state[i] = -2

    def walk(value):
        """The instructions of the way whose values have the largest sum."""
        best, following = {}, {}
        for i in order:
            ways = [(best[j], j) for j in jumps[i]] + ([(0, None)] if head in then[i] else [])
            most, following[i] = max(ways, default=(-(1 << 30), None), key=lambda w: w[0])
            best[i] = value(i) + most
        way = [head]
        while following[way[-1]] is not None:
            way.append(following[way[-1]])
        return way

    usual = walk(lambda i: (1 << 16) * (i in wide) - 1)
    return Loop(
        len(walk(lambda i: -1)),
        len(usual),
        len(walk(lambda i: 1)),
        collections.Counter(code[i][2].split(".")[0] for i in body),
        inner,
        collections.Counter(code[i][2] for i in usual),
    )


def demangled(names):
    tool = shutil.which("c++filt")
    if not tool or not names:
        return list(names)
    done = subprocess.run([tool], input="\n".join(names), stdout=subprocess.PIPE, text=True)
    return done.stdout.splitlines()


def kernels(text, log):
    """[Kernel] of machine code and of what ptxas said, which is all where there is no text."""
    said, found = ptxas_says(log), []
    if not text:
        found = [Kernel(name, *numbers, 0, [], None, ()) for name, numbers in said.items()]
    for name, code in functions(text):
        while code and code[-1][2] == "NOP":
            code.pop()
        follow = successors(code)
        bodies = {h: b for h, b in sorted(natural_loops(follow).items()) if len(b) > 1}
        loops = [
            lengths(code, follow, body, head, not any(h != head and h in body for h in bodies))
            for head, body in bodies.items()
        ]
        wide = {x[2].split(".")[0] for x in code if ".128" in x[2]}
        found.append(
            Kernel(
                name,
                *said.get(name, (0, 0, 0)),
                len(code),
                loops,
                wide & {"LDG", "STG"},
                split_vectors(code) - wide,
            )
        )
    names = demangled([k.name for k in found])
    return [k._replace(name=re.sub(r"^void |\(.*", "", n)) for k, n in zip(found, names)]
