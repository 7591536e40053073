"""Checkpoints of ckc as those of torch.distributed.checkpoint (DCP), and back.

    ckc.dcp.to_dcp("run.safetensors", "run-dcp")     # or a folder of ckrun --save DIR/
    ckc.dcp.from_dcp("run-dcp", "again.safetensors")

Tensors are mapped from and to files, not held in memory.
"""

import contextlib as _contextlib
import json as _json
import os as _os
import subprocess as _subprocess
import tempfile as _tempfile

import numpy as _np
import torch as _torch
import torch.distributed.checkpoint as _dcp

from . import Error, _lib

# safetensors, and what holds its bits in NumPy
_TYPES = {
    "F64": (_torch.float64, "f8"),
    "F32": (_torch.float32, "f4"),
    "F16": (_torch.float16, "f2"),
    "BF16": (_torch.bfloat16, "i2"),
    "I64": (_torch.int64, "i8"),
    "I32": (_torch.int32, "i4"),
    "I16": (_torch.int16, "i2"),
    "I8": (_torch.int8, "i1"),
    "U8": (_torch.uint8, "u1"),
    "BOOL": (_torch.bool, "?"),
}
_NAMES = {t: name for name, (t, _) in _TYPES.items()}
_ALIGN = 64
# PyTorch's names of optimizer states.
_STATES = {
    "adam": {"m": "exp_avg", "v": "exp_avg_sq"},
    "adamw": {"m": "exp_avg", "v": "exp_avg_sq"},
    "sgdm": {"m": "momentum_buffer"},
}
_NUMBER = "step"  # of a state: PyTorch counts steps for each parameter
_META = "ckc"  # the file's metadata and order of tensors, bytes of JSON
_STATE = "optimizer.state."


def _tensor(path, kind, shape, at, mode):
    """The bytes of the file from `at` on, mapped."""
    dtype, bits = _TYPES[kind]
    shape = tuple(shape)
    if 0 in shape:
        return _torch.empty(shape, dtype=dtype)
    data = _np.memmap(path, bits, mode, at, shape)
    return _torch.from_numpy(data).view(dtype)


def _read(path):
    """(metadata, {name: tensor}) of a safetensors file."""
    with open(path, "rb") as f:
        size = int.from_bytes(f.read(8), "little")
        if size > _os.path.getsize(path):
            raise Error(f"{path}: expected a safetensors file")
        entries = _json.loads(f.read(size))
    meta, tensors = entries.pop("__metadata__", {}), {}
    for name, e in entries.items():
        if e["dtype"] not in _TYPES:
            raise Error(f"{path}: tensor '{name}' is {e['dtype']}, which PyTorch does not have")
        at = 8 + size + e["data_offsets"][0]
        tensors[name] = _tensor(path, e["dtype"], e["shape"], at, "c")
    return meta, tensors


@_contextlib.contextmanager
def _whole(checkpoint):
    """The path of a file with all of it."""
    if not _os.path.isdir(checkpoint):
        yield checkpoint
        return
    with _tempfile.TemporaryDirectory(prefix="ckc-") as folder:
        path = _os.path.join(folder, "whole.safetensors")
        argv = [_lib.program("ckrun"), "merge", checkpoint, "-o", path]
        done = _subprocess.run(argv, stderr=_subprocess.PIPE, text=True, errors="replace")
        if done.returncode:
            raise Error(done.stderr.strip())
        yield path


def _split(name, optimizer, weights):
    """(state, weight) of an optimizer state's name, or None."""
    parts = name.split(".", 2)
    known = len(parts) == 3 and parts[0] == optimizer and parts[2] in weights
    return parts[1:] if known else None


def to_dcp(checkpoint, folder, prefix="model."):
    """Write a checkpoint of ckc as a DCP checkpoint.

    Weights get their names behind `prefix`, optimizer states the names optimizer.state.NAME.STATE
    with PyTorch's words for STATE, as get_model_state_dict and get_optimizer_state_dict have them
    under "model" and "optimizer".  The rest of ckc's file is under "ckc".
    """
    with _whole(_os.fspath(checkpoint)) as path:
        meta, tensors = _read(path)
        optimizer = meta.get("optimizer", "none")
        words = _STATES.get(optimizer, {})
        text = _json.dumps({"metadata": meta, "order": list(tensors)}).encode()
        made = {_META: _torch.frombuffer(bytearray(text), dtype=_torch.uint8)}
        for name, x in tensors.items():
            of = _split(name, optimizer, tensors)
            if of is None:
                made[prefix + name] = x
                continue
            state, weight = of
            made[f"{_STATE}{weight}.{words.get(state, state)}"] = x
            if words and "exp_avg" in words.values():
                steps = float(meta["step"]) - float(meta.get("skipped", 0))
                made[f"{_STATE}{weight}.{_NUMBER}"] = _torch.tensor(steps)
        _dcp.save(made, checkpoint_id=_os.fspath(folder), no_dist=True)


def _plain(key, optimizer, prefix):
    """ckc's name of a DCP tensor; None: it has none."""
    if key.startswith(_STATE):
        weight, _, state = key[len(_STATE) :].rpartition(".")
        words = {torch: ours for ours, torch in _STATES.get(optimizer, {}).items()}
        known = weight and optimizer and state != _NUMBER
        return f"{optimizer}.{words.get(state, state)}.{weight}" if known else None
    return key[len(prefix) :] if key.startswith(prefix) else None


def _load(folder, wanted):
    """The values of these keys, into their tensors."""
    planner = _dcp.DefaultLoadPlanner(flatten_state_dict=False, flatten_sharded_tensors=False)
    _dcp.load(wanted, checkpoint_id=folder, planner=planner, no_dist=True)
    return wanted


def _metadata(folder, stored, optimizer, step):
    """(metadata, names in order) of the file: our own, or those of a run of PyTorch."""
    if hasattr(stored.get(_META), "size"):
        text = _load(folder, {_META: _torch.zeros(stored[_META].size, dtype=_torch.uint8)})[_META]
        ours = _json.loads(bytes(text.tolist()))
        return ours["metadata"], ours["order"]
    if optimizer is None:
        return {}, []
    if step is None:
        counts = [k for k in stored if k.startswith(_STATE) and k.endswith("." + _NUMBER)]
        if not counts or not hasattr(stored[counts[0]], "size"):
            raise Error(f"{folder}: the checkpoint does not say its step; try: step=N")
        step = int(_load(folder, {counts[0]: _torch.zeros(())})[counts[0]])
    return {"optimizer": optimizer, "step": str(step), "seed": "0"}, []


def _begin(path, kinds, meta):
    """Write the header and room for {name: (kind, shape)}; {name: tensor} of that room."""
    at, entries, offsets = 0, {"__metadata__": {"format": "ckc", **meta}}, {}
    for name, (kind, shape) in kinds.items():
        n = int(_np.prod(shape, dtype="i8")) * _np.dtype(_TYPES[kind][1]).itemsize
        entries[name] = {"dtype": kind, "shape": list(shape), "data_offsets": [at, at + n]}
        offsets[name], at = at, at + n
    head = _json.dumps(entries, ensure_ascii=False, separators=(",", ":")).encode()
    head += b" " * (-(8 + len(head)) % _ALIGN)
    begin = 8 + len(head)
    with open(path, "wb") as f:
        f.write(len(head).to_bytes(8, "little") + head)
        f.truncate(begin + at)
    return {k: _tensor(path, *kinds[k], begin + offsets[k], "r+") for k in kinds}


def from_dcp(folder, checkpoint, prefix="model.", optimizer=None, step=None):
    """Write a DCP checkpoint as a file of ckc, for --init or --resume.

    Takes tensors of names behind `prefix`, and optimizer states optimizer.state.NAME.STATE if the
    checkpoint is one of to_dcp or `optimizer` names ckc's optimizer, such as "adamw".  step: steps
    done, if the states do not say so.  Other tensors are left out, and their names returned.
    """
    folder, checkpoint = _os.fspath(folder), _os.fspath(checkpoint)
    stored = _dcp.FileSystemReader(folder).read_metadata().state_dict_metadata
    meta, order = _metadata(folder, stored, optimizer, step)
    optimizer = meta.get("optimizer", optimizer)
    keys, other = {}, []
    for key, x in stored.items():
        name = _plain(key, optimizer, prefix) if hasattr(x, "size") else None
        if name is not None:
            keys[name] = key
        elif hasattr(x, "size") and key != _META and not key.endswith("." + _NUMBER):
            other.append(key)
    if not keys:
        raise Error(
            f"{folder}: no tensor is called {prefix}NAME, only {', '.join(sorted(other)[:3])}; "
            'try: prefix=""'
        )
    kinds = {}
    for name in [*(x for x in order if x in keys), *sorted(keys.keys() - set(order))]:
        x = stored[keys[name]]
        if x.properties.dtype not in _NAMES:
            raise Error(f"{folder}: tensor '{keys[name]}' is {x.properties.dtype}")
        kinds[name] = _NAMES[x.properties.dtype], tuple(x.size)
    temporary = f"{checkpoint}.ckc-tmp{_os.getpid()}"
    try:
        room = _begin(temporary, kinds, meta)
        _load(folder, {keys[k]: x for k, x in room.items()})
        del room  # maps are written when they go
        _os.replace(temporary, checkpoint)
    except BaseException:
        with _contextlib.suppress(OSError):
            _os.remove(temporary)
        raise
    return sorted(other)
