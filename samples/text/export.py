#!/usr/bin/env python3
"""Writes text.onnx: transformers' BertForSequenceClassification, small, with its loss inside.

pip install torch onnx onnxscript transformers
python3 export.py [OUT.onnx]
"""

import sys

import torch
from transformers import BertConfig, BertForSequenceClassification


class Classifier(torch.nn.Module):
    """The loss and the scores as outputs, not as an object."""

    def __init__(self, model):
        super().__init__()
        self.bert = model

    def forward(self, input_ids, attention_mask, labels):
        out = self.bert(input_ids=input_ids, attention_mask=attention_mask, labels=labels)
        return out.loss, out.logits


def main():
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=64,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=16,
        num_labels=2,
        initializer_range=0.1,
        problem_type="single_label_classification",
    )
    model = Classifier(BertForSequenceClassification(config)).train()
    batch, length = torch.export.Dim("batch", max=4096), 16
    ids = torch.zeros(2, length, dtype=torch.int64)
    program = torch.onnx.export(
        model,
        (ids, torch.ones_like(ids), torch.zeros(2, dtype=torch.int64)),
        dynamo=True,
        optimize=False,
        verbose=False,
        input_names=["input_ids", "attention_mask", "labels"],
        output_names=["loss", "scores"],
        dynamic_shapes=({0: batch}, {0: batch}, {0: batch}),
    )
    for node in program.model.graph:  # notes of where on this machine a node comes from
        node.metadata_props.clear()
    program.save(sys.argv[1] if len(sys.argv) > 1 else "text.onnx")


if __name__ == "__main__":
    main()
