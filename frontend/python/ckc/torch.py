"""Exports of PyTorch modules that can be trained: ckc.torch.export."""
import inspect as _inspect
import warnings as _warnings

import torch as _torch


def export(module, example, path, opset=17):
    """Write an ONNX file that ckc trains: parameters under their names, tied ones as one, nothing folded, BatchNorm and dropout in training form.

    module: in any mode, which it has again afterwards; its forward returns the loss, or outputs that `ckc --loss` adds one to.  example: a batch of
    inputs, a tuple in the order of forward's parameters or a dict by their names; its shapes are the file's.  Warns of what the file cannot hold.
    """
    names = [p for p in _inspect.signature(module.forward).parameters]
    if isinstance(example, dict):
        unknown = set(example) - set(names)
        if unknown:
            raise TypeError(f"forward has no parameter {', '.join(sorted(unknown))}; it has {', '.join(names)}")
        names = [n for n in names if n in example]
        example = tuple(example[n] for n in names)
    frozen = [n for n, p in module.named_parameters() if not p.requires_grad]
    if frozen:
        _warnings.warn(f"ONNX does not say that parameters are frozen: compile with freeze={frozen!r}", stacklevel=2)
    if any(isinstance(m, _torch.nn.Embedding) and m.padding_idx is not None for m in module.modules()):
        _warnings.warn("padding_idx of an embedding is lost: its row will be trained", stacklevel=2)
    was = module.training
    module.train()
    try:
        with _warnings.catch_warnings():
            _warnings.simplefilter("ignore")
            _torch.onnx.export(module, tuple(example), path, input_names=names[:len(example)], opset_version=opset, dynamo=False,
                               training=_torch.onnx.TrainingMode.TRAINING, do_constant_folding=False)
    finally:
        module.train(was)
    return path
