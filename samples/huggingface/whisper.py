"""Speech to text: Whisper, fine-tuned in 60 % of its memory."""

import ckc.hf
from datasets import load_dataset
from transformers import TrainingArguments, WhisperForConditionalGeneration, WhisperProcessor

name = "openai/whisper-tiny.en"
processor = WhisperProcessor.from_pretrained(name)
model = WhisperForConditionalGeneration.from_pretrained(name)


def prepared(row):
    x = processor(row["audio"]["array"], sampling_rate=16000, text=row["text"])
    return {"input_features": x["input_features"][0], "labels": x["labels"]}


data = load_dataset("hf-internal-testing/librispeech_asr_dummy", split="validation").map(prepared)
args = TrainingArguments(
    "whisper", per_device_train_batch_size=4, learning_rate=1e-5, num_train_epochs=1
)
losses = ckc.hf.train(model, data, args, budget="60%", callback=print)
model.save_pretrained("whisper")
