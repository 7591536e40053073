"""Bean leaves, healthy or ill: ViT, fine-tuned in bf16 and 60 % of its memory."""

import ckc.hf
from datasets import load_dataset
from transformers import AutoImageProcessor, AutoModelForImageClassification, TrainingArguments

name = "google/vit-base-patch16-224-in21k"
processor = AutoImageProcessor.from_pretrained(name)
model = AutoModelForImageClassification.from_pretrained(name, num_labels=3)
images = load_dataset("beans", split="train")
data = images.map(lambda row: {"pixel_values": processor(row["image"])["pixel_values"][0]})
args = TrainingArguments("vit", per_device_train_batch_size=16, num_train_epochs=3)
losses = ckc.hf.train(model, data, args, budget="60%", dtype="bf16", callback=print)
model.save_pretrained("vit")
