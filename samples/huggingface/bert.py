"""A classifier of film reviews: BERT in 60 % of its memory, in batches of three lengths."""

import ckc.hf
from datasets import load_dataset
from transformers import AutoModelForSequenceClassification, AutoTokenizer, TrainingArguments

name = "bert-base-uncased"
tokenizer = AutoTokenizer.from_pretrained(name)
model = AutoModelForSequenceClassification.from_pretrained(name, num_labels=2)
reviews = load_dataset("rotten_tomatoes", split="train")
data = reviews.map(lambda row: tokenizer(row["text"], truncation=True, max_length=128))
args = TrainingArguments(
    "bert", per_device_train_batch_size=16, learning_rate=2e-5, num_train_epochs=1
)
losses = ckc.hf.train(model, data, args, length=[32, 64, 128], budget="60%", callback=print)
model.save_pretrained("bert")
