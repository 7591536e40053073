"""Fine-tuning of Hugging Face models: ckc.hf.train."""

import collections as _collections
import contextlib as _contextlib
import dataclasses as _dataclasses
import inspect as _inspect
import math as _math
import warnings as _warnings

import torch as _torch
import transformers as _transformers

from . import _forward
from . import torch as _ckc_torch

# What fills rows that are shorter than the batch's; of other columns 0.
_IGNORED = -100
_FILL = {"labels": _IGNORED, "decoder_input_ids": None, "input_ids": None}

_OPTIMIZERS = {"adamw_torch": "adamw", "adamw_torch_fused": "adamw", "sgd": "sgd"}
# Fields of TrainingArguments that train() follows, and those that change no number of a step.
_FOLLOWED = """per_device_train_batch_size num_train_epochs max_steps learning_rate lr_scheduler_type
    lr_scheduler_kwargs warmup_steps optim weight_decay adam_beta1 adam_beta2 adam_epsilon
    gradient_accumulation_steps max_grad_norm bf16 fp16 seed data_seed train_sampling_strategy
    dataloader_drop_last""".split()
_HARMLESS = """output_dir log report run_name project trackio hub push save eval per_device_eval
    disable_tqdm dataloader gradient_checkpointing activation_checkpointing torch_compile use_cache
    torch_empty include tf32 bf16_full_eval fp16_full_eval do_ load_best metric greater label_names
    ddp fsdp skip_memory use_cpu local_rank remove_unused length_column prediction_loss
    ignore_data_skip auto_find batch_eval restore_callback enable_jit predict_with_generate
    generation_""".split()


def _check(args):
    """Refuse arguments that would change what is trained; warn of others without effect."""
    default = type(args)(output_dir=args.output_dir)
    idle = []
    for name in (f.name for f in _dataclasses.fields(args)):
        value = getattr(args, name)
        if name in _FOLLOWED or value == getattr(default, name):
            continue
        if not name.startswith(tuple(_HARMLESS)):
            raise TypeError(f"ckc.hf.train does not know {name}={value!r}; leave its default")
        if not name.startswith("dataloader"):
            idle.append(name)
    if idle:
        _warnings.warn(f"no effect in ckc.hf.train: {', '.join(idle)}", stacklevel=3)
    if args.train_sampling_strategy not in ("random", "sequential"):
        raise TypeError(
            f"train_sampling_strategy is {args.train_sampling_strategy!r}; expected random or sequential"
        )


def _optimizer(args):
    name = getattr(args.optim, "value", args.optim)
    if name not in _OPTIMIZERS:
        raise TypeError(f"optim is '{name}'; expected one of {', '.join(_OPTIMIZERS)}")
    return _OPTIMIZERS[name]


def _rates(args, steps):
    """The learning rate of each step, by the schedulers of transformers."""
    dummy = _torch.optim.SGD([_torch.nn.Parameter(_torch.zeros(1))], lr=args.learning_rate)
    schedule = _transformers.get_scheduler(
        args.lr_scheduler_type,
        dummy,
        num_warmup_steps=args.get_warmup_steps(steps),
        num_training_steps=steps,
        scheduler_specific_kwargs=args.lr_scheduler_kwargs or {},
    )
    rates = []
    with _warnings.catch_warnings():
        _warnings.simplefilter("ignore")  # the optimizer does not step
        for _ in range(steps):
            rates.append(dummy.param_groups[0]["lr"])
            schedule.step()
    return rates


class Batches:
    """The rows of a tokenised dataset as batches of few shapes, in a new order in each pass.

    dataset: has a length, and rows by index that are dicts.  Columns that are no parameter of
    model.forward are left out; `label` and `label_ids` are taken for `labels`.  length: of the
    columns with a number for each token, or a dict by column; by default the longest row's.  From a
    list of lengths, each row takes the least that it fits, and a batch has rows of one length.
    Shorter rows are padded: input_ids with pad_token (by default the model's), labels with -100,
    others with 0; attention_mask is added.  A longer row is an error.  pack: tokens, without those
    that attention_mask hides, are put one behind the other and cut into rows of `length`; their
    labels are those of the dataset, or else the tokens.  The last batch of each length is filled up
    with rows whose labels are -100, if the model's loss is the same with them; otherwise, and with
    drop_last, its rows are left out.
    """

    def __init__(
        self,
        model,
        dataset,
        batch_size=8,
        length=None,
        pad_token=None,
        pack=False,
        seed=42,
        drop_last=False,
    ):
        base = model.get_base_model() if hasattr(model, "get_base_model") else model
        self._known = set(_inspect.signature(base.forward).parameters)
        self.batch_size, self._seed, self._pass = batch_size, seed, 0
        if not hasattr(dataset, "__len__"):
            raise TypeError("the dataset has no length; try: list(dataset)")
        rows = [self._row(i, dataset[i]) for i in range(len(dataset))]
        if not rows:
            raise ValueError("the dataset has no rows")
        if pack:
            rows = _packed(rows, length)
        buckets = _buckets(length)
        for i, row in enumerate(rows):
            if row.keys() != rows[0].keys():
                other = ", ".join(sorted(row.keys() ^ rows[0].keys()))
                raise ValueError(f"rows 0 and {i} do not both have: {other}")
        if "labels" in self._known and not any("label" in k for k in rows[0]):
            raise ValueError(f"the dataset has no column 'labels', only: {', '.join(rows[0])}")
        text = getattr(base.config, "get_text_config", lambda: base.config)()
        self._pad = getattr(text, "pad_token_id", None) if pad_token is None else pad_token
        lengths = [self._lengths(rows, x) for x in buckets]
        self._bucket = [self._choose(lengths, row) for row in rows]
        self._rows = [self._padded(i, row, lengths[self._bucket[i]]) for i, row in enumerate(rows)]
        self._check_shapes()
        self._fill = not drop_last
        tails = [self._tail(b) for b in range(len(buckets))]
        left_out = sum(map(len, tails))
        if self._fill and not all(self._fills(model, tail) for tail in tails if tail):
            self._fill = False
            _warnings.warn(
                f"the last {left_out} of {len(rows)} rows of each pass are left out: they do not "
                f"fill a batch of {batch_size}, and empty rows would change the loss",
                stacklevel=2,
            )
        if not len(self):
            raise ValueError(f"{len(rows)} rows do not fill a batch of {batch_size}")

    def _tail(self, bucket):
        """The rows of a length that do not fill a batch."""
        rows = [row for b, row in zip(self._bucket, self._rows) if b == bucket]
        return rows[len(rows) // self.batch_size * self.batch_size :]

    def _row(self, at, row):
        if not hasattr(row, "keys"):
            raise TypeError(f"row {at} is {type(row).__name__}; expected a dict by column")
        row = dict(row)
        for name in ("label", "label_ids"):
            if name in row and "labels" not in row and name not in self._known:
                row["labels"] = row.pop(name)
        tensors = {}
        for k, x in row.items():
            if k not in self._known or x is None:
                continue
            try:
                tensors[k] = _torch.as_tensor(x)
            except (TypeError, ValueError, RuntimeError):
                raise TypeError(
                    f"row {at}: '{k}' is {x!r:.60}; expected a number, or an array of numbers"
                ) from None
        return tensors

    def _lengths(self, rows, length):
        """Of columns of numbers in a row that differ in length, or have one given."""
        columns = {k for k, x in rows[0].items() if x.ndim == 1}
        found = {k: max(len(row[k]) for row in rows) for k in columns}
        if isinstance(length, dict):
            unknown = sorted(length.keys() - columns)
            if unknown:
                raise ValueError(f"no column to pad is called {', '.join(unknown)}")
            return {**found, **length}
        if length is None:
            return found
        if "input_ids" not in columns:
            raise ValueError("length needs a column input_ids with one row of tokens each")
        for k in columns:  # labels of a decoder have their own length
            if all(len(row[k]) == len(row["input_ids"]) for row in rows):
                found[k] = length
        return found

    def _choose(self, lengths, row):
        """The first of these lengths that the row fits, or the last."""
        for i, length in enumerate(lengths):
            if all(len(x) <= length.get(k, len(x)) for k, x in row.items() if x.ndim == 1):
                return i
        return len(lengths) - 1

    def _padded(self, at, row, length):
        if "input_ids" in row and "attention_mask" in self._known:
            row.setdefault("attention_mask", _torch.ones_like(row["input_ids"]))
            if row["input_ids"].ndim == 1:
                length = {"attention_mask": length["input_ids"], **length}
        for k, x in row.items():
            missing = length.get(k, 0) - len(x) if x.ndim == 1 else 0
            if missing < 0:
                raise ValueError(
                    f"row {at}: '{k}' has {len(x)} entries, and rows have {length[k]}; try: "
                    f"truncation=True, max_length={length[k]} in the tokenizer"
                )
            if missing:
                fill = _FILL.get(k, 0)
                fill = self._pad if fill is None else fill
                if fill is None:
                    raise ValueError("the model has no pad_token_id; try: pad_token=0")
                row[k] = _torch.nn.functional.pad(x, (0, missing), value=fill)
        return row

    def _check_shapes(self):
        first = {}
        for i, (bucket, row) in enumerate(zip(self._bucket, self._rows)):
            at = first.setdefault(bucket, i)
            for k, x in row.items():
                if x.shape != self._rows[at][k].shape:
                    raise ValueError(
                        f"row {i}: '{k}' has shape {list(x.shape)}, but row {at} has "
                        f"{list(self._rows[at][k].shape)}"
                    )

    def _batch(self, rows, size):
        """Of these rows and of empty ones, to this size."""
        batch = {k: _torch.stack([row[k] for row in rows]) for k in rows[0]}
        for k, x in batch.items() if size > len(rows) else ():
            more = x[:1].expand(size - len(rows), *x.shape[1:])
            more = _torch.full_like(more, _IGNORED) if k == "labels" else more
            batch[k] = _torch.cat([x, more])
        return batch

    def _fills(self, model, rows):
        """Whether empty rows leave the model's loss of these as it is."""
        if rows[0].get("labels", _torch.ones(())).is_floating_point():
            return False
        # on the CPU, as a label out of range ends a process that uses CUDA
        weights = {k: x.detach().cpu() for k, x in model.named_parameters()}
        losses, training = [], model.training
        model.train()
        try:
            for size in (len(rows), self.batch_size):
                state = {**weights, **{k: x.cpu().clone() for k, x in model.named_buffers()}}
                with _torch.no_grad(), _forward.Plain():
                    out = _torch.func.functional_call(model, state, (), self._batch(rows, size))
                # losses of experts count every token
                if getattr(out, "loss", None) is None or getattr(out, "aux_loss", None) is not None:
                    return False
                losses.append(float(out.loss))
        except (IndexError, RuntimeError):  # labels of -100 are classes to this model
            return False
        finally:
            model.train(training)
        return abs(losses[0] - losses[1]) <= 1e-5 * abs(losses[0])

    def __len__(self):
        share = _math.ceil if self._fill else _math.floor
        return sum(share(n / self.batch_size) for n in _collections.Counter(self._bucket).values())

    def __iter__(self):
        order = range(len(self._rows))
        if self._seed is not None:
            draw = _torch.Generator().manual_seed(self._seed + self._pass)
            order = _torch.randperm(len(self._rows), generator=draw).tolist()
        self._pass += 1
        batches, pending = [], _collections.defaultdict(list)
        for i in order:
            rows = pending[self._bucket[i]]
            rows.append(i)
            if len(rows) == self.batch_size:
                batches.append(pending.pop(self._bucket[i]))
        batches += pending.values() if self._fill else []
        # the longest first, whose memory the others take, too
        first = max(range(len(batches)), key=lambda k: self._bucket[batches[k][0]])
        for rows in [batches[first], *batches[:first], *batches[first + 1 :]]:
            yield self._batch([self._rows[i] for i in rows], self.batch_size)


def _buckets(length):
    """The lengths that there are, in order; or the one that is a dict or not given."""
    if length is None or isinstance(length, dict):
        return [length]
    lengths = list(length) if isinstance(length, (list, tuple)) else [length]
    if not lengths or not all(isinstance(n, int) and n > 0 for n in lengths):
        raise ValueError(f"length is {length!r}; expected a number of tokens, or a list of them")
    return sorted(lengths)


def _packed(rows, length):
    if not isinstance(length, int) or length < 1:
        raise ValueError("pack needs a length, a number of tokens")
    columns = {"input_ids": [], "labels": []}
    for at, row in enumerate(rows):
        if "input_ids" not in row:
            raise ValueError(f"pack: row {at} has no column 'input_ids'")
        ids = row["input_ids"]
        shown = row.get("attention_mask", _torch.ones_like(ids)).bool()
        labels = row.get("labels", ids)
        if ids.ndim != 1 or not ids.shape == shown.shape == labels.shape:
            raise ValueError(f"pack: columns of row {at} differ in shape from one row of tokens")
        columns["input_ids"].append(ids[shown])
        columns["labels"].append(labels[shown])
    columns = {k: _torch.cat(x) for k, x in columns.items()}
    tokens = len(columns["input_ids"])
    count = tokens // length
    if not count:
        raise ValueError(f"the dataset has {tokens} tokens, but a row has {length}")
    cut = {k: x[: count * length].reshape(count, length) for k, x in columns.items()}
    return [{k: x[i].clone() for k, x in cut.items()} for i in range(count)]


@_contextlib.contextmanager
def _exportable(model):
    """Experts as batched products: neither grouped products nor a loop over experts in use can be
    exported."""
    configs = {id(m.config): m.config for m in model.modules() if hasattr(m, "config")}.values()
    kept = [(c, getattr(c, "_experts_implementation", None)) for c in configs]
    kept = [(c, how) for c, how in kept if how not in (None, "batched_mm")]
    for c, _ in kept:
        c._experts_implementation = "batched_mm"
    try:
        yield
    finally:
        for c, how in kept:
            c._experts_implementation = how


def train(
    model,
    dataset,
    args=None,
    length=None,
    pad_token=None,
    pack=False,
    budget=None,
    callback=None,
    path=None,
    verify=True,
    **options,
):
    """Train a model of transformers in place by ckc, and return the loss of each step.

    The loss is that of the model, of its labels.  A model of PEFT trains its adapters: save them by
    its save_pretrained.  dataset, length, pad_token, pack: see Batches.  args: TrainingArguments;
    the default is that of transformers: batches of 8, 3 epochs, AdamW, a rate that falls from 5e-5
    to 0, gradients of norm 1 at most.  An argument that would change the training and is not known
    is an error.  budget, callback, path, verify and options: as in ckc.torch.train, such as
    budget="60%", dtype="bf16" or frozen_dtype="nf4".
    """
    if args is None:
        args = _transformers.TrainingArguments(output_dir="ckc", report_to=[])
    _check(args)
    for name in ("optimizer", "lr", "steps", "epochs", "loss", "grad_accum", "no_decay"):
        if name in options:
            raise TypeError(f"'{name}' is set by args")
    half = {x.dtype for x in model.parameters() if x.requires_grad} - {_torch.float32}
    if half:
        _warnings.warn(
            f"parameters to train are {', '.join(sorted(map(str, half)))}: updates are rounded to "
            "that; try: model.float()",
            stacklevel=2,
        )
    seed = args.seed if args.data_seed is None else args.data_seed
    accum = args.gradient_accumulation_steps
    if isinstance(length, (list, tuple)):
        options.setdefault("shapes", len(length))
    data = Batches(
        model,
        dataset,
        args.per_device_train_batch_size * accum,
        length,
        pad_token,
        pack,
        seed if args.train_sampling_strategy == "random" else None,
        args.dataloader_drop_last,
    )
    steps = args.max_steps if args.max_steps > 0 else _math.ceil(args.num_train_epochs * len(data))
    rates = _rates(args, steps)
    if accum > 1:
        options["grad_accum"] = accum
    if args.bf16 or args.fp16:
        options["dtype"] = "bf16" if args.bf16 else "f16"
    if args.weight_decay:
        decays = _transformers.Trainer.get_decay_parameter_names(None, model)
        trained = {k for k, x in model.named_parameters() if x.requires_grad}
        options["no_decay"] = sorted(trained - set(decays))
    optimizer = _optimizer(args)
    if optimizer == "adamw":
        options.update(beta1=args.adam_beta1, beta2=args.adam_beta2, eps=args.adam_epsilon)
    with _exportable(model):
        return _ckc_torch.train(
            model,
            data,
            budget=budget,
            steps=steps,
            lr=rates.__getitem__,
            callback=callback,
            path=path,
            verify=verify,
            optimizer=optimizer,
            weight_decay=args.weight_decay,
            clip=args.max_grad_norm,
            seed=args.seed,
            **options,
        )
