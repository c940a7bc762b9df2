"""Transformers' own Trainer with the mixin: accumulation, bf16, clipping, label smoothing, resume."""

import runpy
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import evenly

runpy.run_path(str(Path(__file__).parents[1] / "numerics" / "torchvision_guard.py"))["torchvision"]()
pytest.importorskip("transformers")
pytestmark = pytest.mark.filterwarnings("ignore")

from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments  # noqa: E402

from evenly.integrations.transformers import SharpnessAwareTraining  # noqa: E402

RHO = 0.1


class SAMTrainer(SharpnessAwareTraining, Trainer):
    """What a user writes."""


def bert() -> BertForSequenceClassification:
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    config = BertConfig(
        vocab_size=40, max_position_embeddings=16, num_labels=2, hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0, **sizes,
    )  # fmt: skip
    return BertForSequenceClassification(config)


def examples() -> list[dict[str, torch.Tensor]]:
    numbers = torch.Generator().manual_seed(1)
    words = torch.randint(40, (16, 8), generator=numbers)
    return [{"input_ids": row, "labels": (row[0] > 19).long()} for row in words]


def arguments(folder: Path, **options) -> TrainingArguments:
    given = {
        "output_dir": str(folder),
        "per_device_train_batch_size": 4,
        "num_train_epochs": 2,
        "optim": "sgd",
        "learning_rate": 0.1,
        "lr_scheduler_type": "constant",
        "max_grad_norm": 1.0,
        "use_cpu": True,
        "report_to": [],
        "save_strategy": "no",
        "disable_tqdm": True,
        "train_sampling_strategy": "sequential",
        **options,
    }
    return TrainingArguments(**given)


def trained(folder: Path, name: str, **options) -> nn.Module:
    model = bert()
    trainer = SAMTrainer(
        model=model, args=arguments(folder, **options), train_dataset=examples(),
        sam=lambda m: getattr(evenly, name)(m, rho=RHO),
    )  # fmt: skip
    trainer.train()
    return trainer.model


def by_hand(name: str, micro: int, *, autocast: bool = False) -> nn.Module:
    model = bert()
    sam, optimizer = getattr(evenly, name)(model, rho=RHO), torch.optim.SGD(model.parameters(), lr=0.1)
    rows = examples()
    model.train()
    for _ in range(2):
        for number in range(4):
            batch = rows[4 * number : 4 * number + 4]
            words, labels = (torch.stack([row[key] for row in batch]) for key in ("input_ids", "labels"))

            def closure(words=words, labels=labels):
                with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
                    logits = model(input_ids=words).logits
                return F.cross_entropy(logits.float(), labels)  # This model's loss is a mean; the Trainer adds them up.

            sam.backward(closure)
            if (number + 1) % micro == 0:
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad()
    return model


@pytest.mark.parametrize("name", ["SAM", "LookSAM", "MSAM", "GSAM"])
@pytest.mark.parametrize("micro", [1, 2])
def test_the_trainer_equals_a_loop_of_ones_own(name: str, micro: int, tmp_path: Path) -> None:
    model = trained(tmp_path, name, gradient_accumulation_steps=micro)
    for a, b in zip(model.parameters(), by_hand(name, micro).parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-6)


def test_bf16_is_displaced_too(tmp_path: Path) -> None:
    model = trained(tmp_path, "SAM", bf16=True)
    for a, b in zip(model.parameters(), by_hand("SAM", 1, autocast=True).parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=0.02, atol=2e-3)
    plain = Trainer(model=bert(), args=arguments(tmp_path, bf16=True), train_dataset=examples())
    plain.train()
    pairs = zip(model.parameters(), plain.model.parameters(), strict=True)
    assert any(not torch.allclose(a, b, atol=1e-3) for a, b in pairs)


def test_labels_that_the_trainer_takes_out_of_its_inputs_are_there_in_the_second_pass(tmp_path: Path) -> None:
    trained(tmp_path, "SAM", label_smoothing_factor=0.1)


def test_a_resumed_run_goes_on_bit_for_bit(tmp_path: Path) -> None:
    options = {"save_strategy": "steps", "save_steps": 3, "save_total_limit": 3}
    straight = trained(tmp_path / "straight", "FriendlySAM", **options)
    trainer = SAMTrainer(
        model=bert(), args=arguments(tmp_path / "straight", **options), train_dataset=examples(),
        sam=lambda m: evenly.FriendlySAM(m, rho=RHO),
    )  # fmt: skip
    trainer.train(resume_from_checkpoint=str(tmp_path / "straight" / "checkpoint-3"))
    assert trainer.sam.num_steps == 8
    assert all(torch.equal(a, b) for a, b in zip(straight.parameters(), trainer.model.parameters(), strict=True))


def flat(model: nn.Module) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def test_every_model_that_the_trainer_makes_is_displaced(tmp_path: Path) -> None:
    trainer = SAMTrainer(
        model_init=bert, args=arguments(tmp_path), train_dataset=examples(),
        sam=lambda m: evenly.LookSAM(m, rho=RHO, k=2),
    )  # fmt: skip
    ends = []
    for _ in range(2):
        trainer.train()
        assert trainer.sam.num_steps == 8
        assert trainer.sam.params[0] is next(trainer.model.parameters())
        ends.append(flat(trainer.model))
    assert torch.equal(*ends)


def test_a_second_training_of_the_same_model_goes_on_or_starts_from_the_checkpoint_it_is_given(tmp_path: Path) -> None:
    options = {"save_strategy": "steps", "save_steps": 3, "save_total_limit": 3}
    trainer = SAMTrainer(
        model=bert(), args=arguments(tmp_path, **options), train_dataset=examples(),
        sam=lambda m: evenly.FriendlySAM(m, rho=RHO),
    )  # fmt: skip
    trainer.train()
    once = flat(trainer.model)
    trainer.train(resume_from_checkpoint=str(tmp_path / "checkpoint-3"))
    assert trainer.sam.num_steps == 8
    assert torch.equal(flat(trainer.model), once)
    trainer.train()
    assert trainer.sam.num_steps == 16
    (tmp_path / "checkpoint-3" / "sharpness_aware.pt").unlink()
    trainer.train(resume_from_checkpoint=str(tmp_path / "checkpoint-3"))
    assert trainer.sam.num_steps == 5, "the checkpoint was written without SAM"
