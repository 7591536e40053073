"""Bindings of libckr by ctypes: the structs and calls of ckr.h that the package uses, and the
search for its programs and for what those load."""

import ctypes as c
import os
import shutil
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))


class Options(c.Structure):
    _fields_ = [
        ("weights", c.c_char_p),
        ("blas", c.c_char_p),
        ("threads", c.c_int),
        ("seed", c.c_uint64),
        ("ranks", c.c_uint32),
        ("comm_timeout", c.c_double),
        ("model_of", c.c_void_p),
        ("offload_dir", c.c_char_p),
    ]


class Info(c.Structure):
    _fields_ = [
        ("name", c.c_char_p),
        ("dtype", c.c_char_p),
        ("kind", c.c_char_p),
        ("frozen", c.c_bool),
        ("loss", c.c_bool),
        ("shifted", c.c_bool),
        ("label", c.c_bool),
        ("index", c.c_bool),
        ("rows", c.c_int),
        ("rank", c.c_int),
        ("dim", c.c_int64 * 8),
        ("nbytes", c.c_size_t),
    ]


class Hyper(c.Structure):
    _fields_ = [
        (name, c.c_double)
        for name in (
            "lr",
            "beta1",
            "beta2",
            "eps",
            "weight_decay",
            "momentum",
            "clip",
            "beta2_decay",
            "clip_threshold",
            "eps2",
            "ema_decay",
        )
    ]
    _fields_ += [
        ("nesterov", c.c_bool),
        ("on_nan", c.c_int),
        ("loss_scale", c.c_double),
        ("scale_interval", c.c_uint64),
        ("scale_again", c.c_bool),
    ]

    def __setattr__(self, name, value):
        if name not in {n for n, _ in self._fields_}:
            raise TypeError(
                f"unknown setting '{name}'; expected one of {', '.join(sorted(n for n, _ in self._fields_))}"
            )
        if value < 0 and name != "beta2_decay":
            raise TypeError(f"'{name}' cannot be negative, found {value}")
        super().__setattr__(name, value)


class Score(c.Structure):
    _fields_ = [
        ("loss", c.c_double),
        ("accuracy", c.c_double),
        ("perplexity", c.c_double),
        ("by_batch", c.c_char_p),
    ]


class Init(c.Structure):
    _fields_ = [
        ("map", c.POINTER(c.c_char_p)),
        ("nmap", c.c_size_t),
        ("skip", c.POINTER(c.c_char_p)),
        ("nskip", c.c_size_t),
        ("partial", c.c_bool),
        ("ema", c.c_bool),
    ]


_CALLS = {
    "ckr_open": (c.c_int, [c.POINTER(c.c_void_p), c.c_char_p, c.POINTER(Options)]),
    "ckr_close": (None, [c.c_void_p]),
    "ckr_error": (c.c_char_p, [c.c_void_p]),
    "ckr_tensor": (c.c_int, [c.c_void_p, c.c_size_t, c.POINTER(Info)]),
    "ckr_eval_output": (c.c_int, [c.c_void_p, c.c_size_t, c.POINTER(Info)]),
    "ckr_set": (c.c_int, [c.c_void_p, c.c_char_p, c.c_void_p, c.c_size_t]),
    "ckr_get": (c.c_int, [c.c_void_p, c.c_char_p, c.c_void_p, c.c_size_t]),
    "ckr_input": (c.c_int, [c.c_void_p, c.c_char_p, c.POINTER(c.c_void_p)]),
    "ckr_model_hyper": (Hyper, [c.c_void_p]),
    "ckr_step": (c.c_int, [c.c_void_p, c.POINTER(Hyper), c.POINTER(c.c_double)]),
    "ckr_use_ema": (c.c_int, [c.c_void_p, c.c_bool]),
    "ckr_eval": (c.c_int, [c.c_void_p, c.POINTER(c.c_double)]),
    "ckr_score_begin": (c.c_int, [c.c_void_p]),
    "ckr_score_add": (c.c_int, [c.c_void_p, c.c_double]),
    "ckr_score_end": (c.c_int, [c.c_void_p, c.POINTER(Score)]),
    "ckr_grad_norm": (c.c_int, [c.c_void_p, c.POINTER(c.c_double)]),
    "ckr_micro_batches": (c.c_uint32, [c.c_void_p]),
    "ckr_needs_input": (c.c_bool, [c.c_void_p, c.c_char_p]),
    "ckr_step_count": (c.c_uint64, [c.c_void_p]),
    "ckr_peak_bytes": (c.c_uint64, [c.c_void_p]),
    "ckr_optimizer": (c.c_char_p, [c.c_void_p]),
    "ckr_uses_hyper": (c.c_bool, [c.c_void_p, c.c_char_p]),
    "ckr_unused_tensors": (c.c_char_p, [c.c_void_p]),
    "ckr_init_all": (c.c_int, [c.c_void_p, c.POINTER(c.c_char_p), c.c_size_t, c.POINTER(Init)]),
    "ckr_missing_weight": (c.c_char_p, [c.c_void_p, c.c_size_t]),
    "ckr_set_group": (c.c_int, [c.c_void_p, c.c_char_p, c.c_double, c.c_double]),
    "ckr_save_adapters": (c.c_int, [c.c_void_p, c.c_char_p]),
    "ckr_save_merged": (c.c_int, [c.c_void_p, c.c_char_p]),
    "ckr_save": (c.c_int, [c.c_void_p, c.c_char_p]),
    "ckr_save_async": (c.c_int, [c.c_void_p, c.c_char_p]),
    "ckr_save_poll": (c.c_int, [c.c_void_p, c.POINTER(c.c_bool)]),
    "ckr_save_wait": (c.c_int, [c.c_void_p]),
    "ckr_resume": (c.c_int, [c.c_void_p, c.c_char_p]),
    "ckr_save_grads": (c.c_int, [c.c_void_p, c.c_char_p]),
    "ckr_exports_training_form": (c.c_bool, [c.c_void_p]),
    "ckr_export_onnx": (c.c_int, [c.c_void_p, c.c_char_p]),
}
FEED = c.CFUNCTYPE(c.c_int, c.c_void_p, c.c_void_p, c.c_uint64, c.c_uint32)
_CALLS["ckr_set_feed"] = (c.c_int, [c.c_void_p, FEED, c.c_void_p])
_loaded = None


def _beside(name):
    """Path of a file in the installed package, or in the build tree that CKC_HOME names."""
    for folder in (HERE, os.path.join(HERE, "bin"), os.environ.get("CKC_HOME")):
        path = folder and os.path.join(folder, name)
        if path and os.path.exists(path):
            return path
    return None


def program(name):
    """Path of the program ckc or ckrun."""
    path = _beside(name) or shutil.which(name)
    if not path:
        raise FileNotFoundError(
            f"cannot find the program {name} beside the package or in PATH; set CKC_HOME to its build directory"
        )
    return path


def compiler():
    return program("ckc")


# Debian's packages of the libraries that the programs and libckr load.
_PACKAGES = {
    "libglpk.so.40": "libglpk40",
    "libgomp.so.1": "libgomp1",
    "libjpeg.so.62": "libjpeg62-turbo",
    "libpng16.so.16": "libpng16-16",
    "libprotobuf-c.so.1": "libprotobuf-c1",
    "libz.so.1": "zlib1g",
}


def _not_found(path, names):
    packages = " ".join(_PACKAGES[name] for name in names if name in _PACKAGES)
    return f"cannot load {path}: libraries not found: {', '.join(names)}" + (
        f"; on Debian, try: apt-get install {packages}" if packages else ""
    )


def missing(path):
    """A message about the libraries that a program needs and the machine lacks, or None."""
    try:
        found = subprocess.run(
            [path],
            env={**os.environ, "LD_TRACE_LOADED_OBJECTS": "1"},
            stdout=subprocess.PIPE,
            text=True,
        ).stdout
    except OSError as e:
        return f"cannot run {path}: {e.strerror}"
    names = [line.split()[0] for line in found.splitlines() if "=> not" in line]
    return _not_found(path, names) if names else None


def library():
    global _loaded
    if not _loaded:
        path = _beside("libckr.so") or "libckr.so"
        try:
            _loaded = c.CDLL(path)
        except OSError as e:
            name = str(e).split(":")[0]
            if name == path:
                raise
            raise OSError(_not_found(path, [name])) from e
        for name, (result, arguments) in _CALLS.items():
            call = getattr(_loaded, name)
            call.restype, call.argtypes = result, arguments
    return _loaded
