"""SAM in Transformers' Trainer: one mixin and the argument `sam=`.

    python examples/transformers_sam.py

A small BERT learns whether a sentence of random words has more of one half of the vocabulary, with bf16, two
micro-batches per step, and clipping. Needs `pip install "evenly[transformers]"`; takes about half a minute.
"""

import evenly.integrations.torchvision  # first: torchvision may not fit torch

# isort: split
import tempfile

import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

import evenly
from evenly.integrations.transformers import SharpnessAwareTraining


class SAMTrainer(SharpnessAwareTraining, Trainer):
    """The Trainer with SAM's gradient."""


def sentences(num: int, seed: int) -> list[dict[str, torch.Tensor]]:
    """Sentences of twelve words out of forty, and whether most of them are of the first twenty."""
    words = torch.randint(40, (num, 12), generator=torch.Generator().manual_seed(seed))
    return [{"input_ids": row, "labels": ((row < 20).sum() > 6).long()} for row in words]


def main() -> None:
    """Train, and print the error on new sentences."""
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=40, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64, num_labels=2
    )
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder, num_train_epochs=3, per_device_train_batch_size=16, gradient_accumulation_steps=2,
            learning_rate=2e-3, max_grad_norm=1.0, bf16=True, use_cpu=True, save_strategy="no", report_to=[],
            disable_tqdm=True, logging_strategy="no",
        )  # fmt: skip
        trainer = SAMTrainer(
            model=BertForSequenceClassification(config), args=arguments, train_dataset=sentences(512, 0),
            sam=lambda model: evenly.SAM(model, rho=0.05),
        )  # fmt: skip
        trainer.train()
        new = sentences(256, 1)
        found = trainer.predict(new).predictions.argmax(1)
    wrong = sum(int(label) != int(row["labels"]) for label, row in zip(found, new, strict=True))
    print(f"{trainer.sam}: {100 * wrong / len(new):.1f} % of new sentences wrong")


if __name__ == "__main__":
    main()
