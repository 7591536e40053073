#!/usr/bin/env python3
"""ckc.hf trains models of transformers as transformers.Trainer trains them.

hf.py CKC CKRUN [CASE...]

Without torch, transformers, accelerate or peft, the test is skipped.
"""

import contextlib
import copy
import io
import os
import runpy
import sys
import warnings
from unittest import mock

import ck

sys.path.insert(0, os.path.join(ck.HERE, "..", "..", "frontend", "python"))
try:
    import accelerate  # noqa: F401
    import peft
    import torch
    import transformers as tf
except ImportError as e:
    print(f"hf: {e}")
    sys.exit(77)
warnings.simplefilter("ignore")
tf.logging.set_verbosity_error()

CASES = {}
NONE = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}


def draw(low, high, *shape):
    return torch.randint(low, high, shape)


def bert_config(**more):
    return tf.BertConfig(
        vocab_size=300,
        hidden_size=64,
        num_attention_heads=2,
        intermediate_size=128,
        **NONE,
        **more,
    )


def causal(kind, **more):
    """A model of tokens below 100: kind is Llama, Mixtral."""
    config = getattr(tf, kind + "Config")(
        vocab_size=100, hidden_size=64, num_attention_heads=2, **more
    )
    return getattr(tf, kind + "ForCausalLM")(config)


def case(make):
    CASES[make.__name__] = make
    return make


@case
def bert():
    """A classifier of rows of several lengths; the last batch is not full; decay by name."""
    model = tf.BertForSequenceClassification(bert_config(num_hidden_layers=2, num_labels=3))
    rows = [
        {"input_ids": draw(5, 300, n).tolist(), "label": int(draw(0, 3, 1)), "text": "left out"}
        for n in draw(4, 21, 21).tolist()
    ]
    args = {
        "num_train_epochs": 2,
        "weight_decay": 0.1,
        "warmup_steps": 2,
        "lr_scheduler_type": "cosine",
    }
    return model, rows, args, {"budget": "90%"}


@case
def vit():
    """Images, two micro-batches of two."""
    model = tf.ViTForImageClassification(
        tf.ViTConfig(
            hidden_size=64,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=128,
            image_size=32,
            patch_size=8,
            num_labels=4,
            **NONE,
        )
    )
    rows = [
        {"pixel_values": torch.randn(3, 32, 32), "labels": int(draw(0, 4, 1))} for _ in range(8)
    ]
    return model, rows, {"per_device_train_batch_size": 2, "gradient_accumulation_steps": 2}, {}


@case
def whisper():
    """Speech to text, whose labels have their own length."""
    model = tf.WhisperForConditionalGeneration(
        tf.WhisperConfig(
            vocab_size=100,
            d_model=64,
            encoder_layers=1,
            decoder_layers=2,
            encoder_attention_heads=2,
            decoder_attention_heads=2,
            encoder_ffn_dim=128,
            decoder_ffn_dim=128,
            max_source_positions=40,
            max_target_positions=30,
            num_mel_bins=16,
            pad_token_id=0,
            bos_token_id=1,
            eos_token_id=2,
            decoder_start_token_id=1,
            dropout=0.0,
        )
    )
    rows = [
        {"input_features": torch.randn(16, 80), "labels": draw(3, 100, n).tolist()}
        for n in draw(5, 13, 8).tolist()
    ]
    return model, rows, {"per_device_train_batch_size": 4, "max_steps": 3}, {}


@case
def llama():
    """Adapters of PEFT on packed text, without a step for the rest of the tokens."""
    model = causal("Llama", intermediate_size=128, num_hidden_layers=2, num_key_value_heads=1)
    model = peft.get_peft_model(
        model, peft.LoraConfig(r=4, lora_alpha=8, target_modules=["q_proj", "v_proj", "up_proj"])
    )
    rows = [{"input_ids": draw(0, 100, n).tolist()} for n in draw(10, 60, 8).tolist()]
    return model, rows, {"per_device_train_batch_size": 2}, {"length": 16, "pack": True}


@case
def mixtral():
    """Experts, which are exported as batched products."""
    model = causal(
        "Mixtral",
        intermediate_size=64,
        num_hidden_layers=1,
        num_key_value_heads=1,
        num_local_experts=4,
        num_experts_per_tok=2,
    )
    rows = [{"input_ids": draw(0, 100, 12).tolist()} for _ in range(6)]
    for row in rows:
        row["labels"] = row["input_ids"]
    return model, rows, {"per_device_train_batch_size": 2, "num_train_epochs": 1}, {}


@case
def choice():
    """Rows of several texts each, in an array."""
    model = tf.BertForMultipleChoice(bert_config(num_hidden_layers=1))
    rows = [{"input_ids": draw(5, 300, 4, 9), "labels": i % 4} for i in range(8)]
    return model, rows, {"per_device_train_batch_size": 4, "optim": "sgd"}, {}


@case
def instructions():
    """Packed text: labels that are ignored, and tokens that padding has added."""
    model = causal("Llama", intermediate_size=64, num_hidden_layers=1, num_key_value_heads=2)
    rows = []
    for n in draw(5, 13, 12).tolist():
        ids = draw(1, 100, n)
        pad = torch.zeros(16 - n, dtype=torch.long)
        rows.append(
            {
                "input_ids": torch.cat([ids, pad]),
                "attention_mask": torch.cat([torch.ones_like(ids), pad]),
                "labels": torch.cat([torch.full((3,), -100), ids[3:], pad - 100]),
            }
        )
    return model, rows, {"per_device_train_batch_size": 2}, {"length": 16, "pack": True}


@case
def filled():
    """Micro-batches of two: the second of the last batch is empty."""
    model, rows, more, _ = CASES["instructions"]()
    more = {"gradient_accumulation_steps": 2, "num_train_epochs": 2, **more}
    return model, rows[:9], more, {}


class Rows(torch.utils.data.Dataset):
    """What ckc.hf.Batches has made of a dataset, row by row."""

    def __init__(self, rows):
        self.rows = rows

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return dict(self.rows[i])


class Fine(ck.Bench):
    def same(self, name, hf):
        torch.manual_seed(0)
        model, rows, more, options = CASES[name]()
        model.train()
        args = tf.TrainingArguments(
            output_dir=self.path(name),
            learning_rate=1e-3,
            train_sampling_strategy="sequential",
            logging_steps=1,
            report_to=[],
            save_strategy="no",
            use_cpu=True,
            disable_tqdm=True,
            **more,
        )
        other, before = copy.deepcopy(model), copy.deepcopy(model.state_dict())
        own = {k: options[k] for k in ("length", "pack") if k in options}
        data = hf.Batches(model, rows, **own)
        got = hf.train(model, rows, args, **options)
        trainer = tf.Trainer(other, args, train_dataset=Rows(data._rows))
        trainer.remove_callback(tf.trainer_callback.PrinterCallback)
        trainer.train()
        want = [float(h["loss"]) for h in trainer.state.log_history if "loss" in h]
        gap = max((abs(a - b) for a, b in zip(got, want)), default=1)
        self.check(len(got) == len(want) and gap < 2e-4, f"{name}: losses {got}, expected {want}")
        moved, worst = 0, 0
        for k, x in other.state_dict().items():
            if x.is_floating_point():
                moved = max(moved, float((x - before[k]).abs().max()))
                worst = max(worst, float((x - model.state_dict()[k]).abs().max()))
        self.check(worst < 0.02 * moved, f"{name}: parameters differ by {worst}, moved {moved}")
        return model

    def adapters(self, model):
        """PEFT writes what ckc has trained, and reads it again."""
        model.save_pretrained(self.path("adapter"))
        files = os.listdir(self.path("adapter"))
        self.check("adapter_model.safetensors" in files, f"files of PEFT: {files}")

    def quantised(self, hf):
        """Adapters beside 4 bits: the module's own weights stay as they are."""
        torch.manual_seed(0)
        model, rows, _, options = CASES["llama"]()
        before = copy.deepcopy(model.state_dict())
        seen = []
        losses = hf.train(
            model,
            rows,
            tf.TrainingArguments(output_dir=self.path("q"), max_steps=5, report_to=[]),
            frozen_dtype="nf4",
            callback=lambda step, loss, trainer: seen.append((step, loss)) or step == 3,
            **options,
        )
        self.check([(i + 1, x) for i, x in enumerate(losses)] == seen, f"callback: {seen}")
        self.check(len(losses) == 3, f"a callback ends training: {losses}")
        after = model.state_dict()
        same = [k for k, x in before.items() if torch.equal(x, after[k])]
        self.check(
            {k for k in before if "lora_" not in k} <= set(same) and len(same) < len(before),
            "frozen weights keep their bits, adapters move",
        )

    def batches(self, hf):
        """Which rows of the last batch take part, and what packed rows are made of."""
        torch.manual_seed(0)
        model, rows, _, _ = CASES["bert"]()
        self.check(len(hf.Batches(model, rows)) == 3, "empty rows fill the last batch")
        self.check(len(hf.Batches(model, rows, drop_last=True)) == 2, "drop_last leaves it out")
        model.config.num_labels, model.config.problem_type = 3, "regression"
        numbers = [{**row, "label": [1, 2, 3]} for row in rows]
        self.check(len(hf.Batches(model, numbers)) == 2, "no empty rows for squares")
        model = tf.ResNetForImageClassification(
            tf.ResNetConfig(
                embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], layer_type="basic"
            )
        )
        before = copy.deepcopy(model.state_dict())
        images = [{"pixel_values": torch.randn(3, 32, 32), "labels": i % 2} for i in range(11)]
        self.check(len(hf.Batches(model, images)) == 1, "no empty rows in batch statistics")
        same = all(torch.equal(x, before[k]) for k, x in model.state_dict().items())
        self.check(same, "the module is as before")
        model, rows, _, options = CASES["instructions"]()
        data = hf.Batches(model, rows, **options)
        tokens = sum(int(row["attention_mask"].sum()) for row in rows)
        packed = torch.stack([row["input_ids"] for row in data._rows])
        self.check(len(packed) == tokens // 16 and bool(packed.all()), f"packed: {packed}")
        kept = sum(int((row["labels"] == -100).sum()) for row in data._rows)
        self.check(30 <= kept <= 36, f"{kept} labels of packed rows are ignored")

    def lengths(self, hf):
        """Rows in batches of three lengths, which have a library each, train as one model."""
        torch.manual_seed(0)
        model, rows, _, _ = CASES["bert"]()
        model.train()
        twin, lengths = copy.deepcopy(model), [20, 6, 12]
        args = tf.TrainingArguments(
            output_dir=self.path("lengths"),
            per_device_train_batch_size=4,
            num_train_epochs=2,
            learning_rate=1e-3,
            lr_scheduler_type="constant",
            data_seed=3,
            report_to=[],
        )
        data = hf.Batches(model, rows, 4, length=lengths, seed=3)
        passes = [list(data), list(data)]
        sizes = {
            n: sum(min(m for m in lengths if m >= len(r["input_ids"])) == n for r in rows)
            for n in lengths
        }
        expected = sorted(n for n in lengths for _ in range((sizes[n] + 3) // 4))
        for batches in passes:
            found = sorted(batch["input_ids"].shape[1] for batch in batches)
            self.check(found == expected and len(data) == len(found), f"lengths: {found}")
            tokens = sum(int(b["attention_mask"][b["labels"] >= 0].sum()) for b in batches)
            self.check(tokens == sum(len(r["input_ids"]) for r in rows), f"{tokens} tokens")
        self.check(
            [b["input_ids"].tolist() for b in passes[0]]
            != [b["input_ids"].tolist() for b in passes[1]],
            "a pass has a new order",
        )
        got = hf.train(model, rows, args, length=lengths, budget="100%")
        optimizer = torch.optim.AdamW(twin.parameters(), lr=1e-3, weight_decay=0.0)
        want = []
        for batch in passes[0] + passes[1]:
            optimizer.zero_grad()
            loss = twin(**batch).loss
            loss.backward()
            torch.nn.utils.clip_grad_norm_(twin.parameters(), 1.0)
            optimizer.step()
            want.append(float(loss.detach()))
        gap = max(abs(a - b) for a, b in zip(got, want))
        self.check(len(got) == len(want) and gap < 2e-4, f"lengths: {got}, expected {want}")
        try:
            hf.Batches(model, rows, length=[6, 12])
            self.check(False, "no error for a row that is too long")
        except ValueError as e:
            self.check("max_length=12" in str(e), f"too long: {e}")

    def samples(self, hf):
        """The scripts of samples/huggingface run, on models and data of this file's."""
        vit = tf.ViTConfig(
            hidden_size=64,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=128,
            image_size=64,
            patch_size=4,
            num_labels=3,
        )
        whisper = CASES["whisper"]()[0].config
        whisper.max_source_positions = 400
        bert = bert_config(num_hidden_layers=2)
        torch.manual_seed(0)
        texts = [{"text": "x" * n, "label": n % 2} for n in draw(3, 129, 48).tolist()]
        images = [{"image": i, "labels": i % 3} for i in range(16)]
        speech = [{"audio": {"array": i}, "text": "xyz"} for i in range(4)]
        rows = {"rotten_tomatoes": texts, "beans": images}

        class Dataset(list):
            def map(self, f):
                return Dataset({**row, **f(row)} for row in self)

        def processor(x, sampling_rate=None, text=""):
            if sampling_rate:
                return {"input_features": [torch.randn(16, 800)], "labels": [3, 4, 5]}
            return {"pixel_values": [torch.randn(3, 64, 64).tolist()]}

        def tokenizer(text, truncation, max_length):
            return {"input_ids": [5 + len(text) % 7] * min(len(text), max_length)}

        def made(call, *args):
            return mock.Mock(from_pretrained=lambda name, **more: call(*args))

        replaced = {
            "AutoTokenizer": made(lambda: tokenizer),
            "AutoImageProcessor": made(lambda: processor),
            "WhisperProcessor": made(lambda: processor),
            "AutoModelForSequenceClassification": made(tf.BertForSequenceClassification, bert),
            "AutoModelForImageClassification": made(tf.ViTForImageClassification, vit),
            "WhisperForConditionalGeneration": made(tf.WhisperForConditionalGeneration, whisper),
        }
        datasets = mock.Mock(load_dataset=lambda name, split: Dataset(rows.get(name, speech)))
        folder, before = os.path.join(ck.HERE, "..", "..", "samples", "huggingface"), os.getcwd()
        os.chdir(self.work)
        with mock.patch.dict(sys.modules, datasets=datasets), mock.patch.multiple(tf, **replaced):
            for script, steps in ("bert.py", 3), ("vit.py", 3), ("whisper.py", 1):
                with contextlib.redirect_stdout(io.StringIO()):
                    found = runpy.run_path(os.path.join(folder, script))
                losses = found["losses"]
                self.check(
                    steps <= len(losses) <= steps + 2 and losses[-1] > 0, f"{script}: {losses}"
                )
                self.check(os.path.exists(script[:-3] + "/model.safetensors"), f"{script}: no file")
                with open(os.path.join(folder, script)) as f:
                    lines = [x for x in f.read().splitlines()[1:] if x]
                self.check(len(lines) <= 15, f"{script}: {len(lines)} lines")
        os.chdir(before)

    def refused(self, hf):
        torch.manual_seed(0)
        model, rows, _, _ = CASES["bert"]()

        def args(**more):
            return tf.TrainingArguments(output_dir=self.path("no"), report_to=[], **more)

        for call, what in (
            (lambda: hf.train(model, rows, args(label_smoothing_factor=0.1)), "label_smoothing"),
            (lambda: hf.train(model, rows, args(optim="adafactor")), "expected one of adamw_torch"),
            (lambda: hf.train(model, rows, length=8), "truncation=True, max_length=8"),
            (lambda: hf.train(model, rows, lr=1e-3), "'lr' is set by args"),
            (lambda: hf.train(model, []), "has no rows"),
            (lambda: hf.Batches(model, rows, pack=True), "pack needs a length"),
            (lambda: hf.Batches(model, rows, length={"ids": 3}), "no column to pad"),
            (lambda: hf.Batches(model, iter(rows)), "try: list(dataset)"),
            (lambda: hf.Batches(model, ["text"]), "expected a dict by column"),
            (lambda: hf.Batches(model, [{**rows[0], "label": "good"}]), "'labels' is 'good'"),
            (lambda: hf.Batches(model, [{"input_ids": [5]}]), "no column 'labels', only: input"),
            (lambda: hf.Batches(model, [*rows, {"input_ids": [5]}]), "do not both have: labels"),
        ):
            try:
                call()
                said = "nothing"
            except (TypeError, ValueError) as e:
                said = str(e)
            self.check(what in said, f"expected a refusal with '{what}', found: {said}")


def main():
    b = Fine()
    os.environ["CKC_HOME"] = os.path.dirname(b.ckc_path)
    torch.set_num_threads(1)
    import ckc.hf as hf

    for name in b.names or CASES:
        model = b.same(name, hf)
        if name == "llama":
            b.adapters(model)
    b.quantised(hf)
    b.batches(hf)
    b.lengths(hf)
    b.samples(hf)
    b.refused(hf)
    b.finish()


main()
