"""An ensemble with copies, noise, smoothing and a logit penalty takes the steps of networks trained one by one."""

import pytest
import torch
from torch import Tensor

from evenly.data import load
from evenly.data.batches import order
from evenly.data.labelled import scale_pixels
from evenly.errors import UsageError
from evenly.models import build
from evenly.training.ensemble import Ensemble
from evenly.training.objective import Objective

DATA = load("digit-dominoes", seed=0).train
OPTIONS = {"width": 8, "dropout": 0.0}


def models(num: int) -> list[torch.nn.Module]:
    made = [build("mlp", input_shape=DATA.shape, num_classes=2, rng=seed, **OPTIONS) for seed in range(num)]
    return [model.double() for model in made]


def inputs() -> Tensor:
    return scale_pixels(DATA.inputs).double()


def one_by_one(model: torch.nn.Module, objective: Objective, batches: list[Tensor], lr: float) -> torch.nn.Module:
    sgd = torch.optim.SGD(model.parameters(), lr=lr)
    for rows in batches:
        sgd.zero_grad()
        objective(model(inputs()[rows]), DATA.labels[rows]).mean().backward()
        sgd.step()
    return model


def assert_equal_weights(ensemble: Ensemble, number: int, model: torch.nn.Module) -> None:
    for name, p in model.named_parameters():
        torch.testing.assert_close(ensemble.parameters()[name][number], p.detach(), rtol=1e-9, atol=1e-12)


def epoch_of(num: int, seed: int, epoch: int, size: int) -> list[Tensor]:
    return list(order(num, seed=seed, epoch=epoch).split(size))


def test_smoothing_and_penalty_are_those_of_the_loop():
    ensemble = Ensemble(
        models(3), DATA, lr=0.1, batch_size=100, seeds=[0, 1, 2], label_smoothing=[0.0, 0.2, 0.1],
        logit_penalty=[0.05, 0.0, 0.3], rule=["sgd", "sgd", "sgd"],
    )  # fmt: skip
    ensemble.run(5)
    for seed, (s, penalty) in enumerate([(0.0, 0.05), (0.2, 0.0), (0.1, 0.3)]):
        batches = epoch_of(len(DATA), seed, 0, 100)[:5]
        objective = Objective("cross-entropy", label_smoothing=s, logit_penalty=penalty)
        assert_equal_weights(ensemble, seed, one_by_one(models(3)[seed], objective, batches, 0.1))


def test_terms_reach_each_member_of_mixed_rules():
    """Groups of one rule are ranges of rows: a penalty must go to its own member after sorting by rule."""
    both = {"lr": 0.1, "batch_size": 50}
    mixed = Ensemble(
        models(3), DATA, seeds=[0, 1, 2], rule=["sam", "sgd", "sam"], rho=[0.1, 0.0, 0.2],
        logit_penalty=[0.5, 0.0, 0.1], **both,
    )  # fmt: skip
    mixed.run(4)
    for seed, (rule, rho, penalty) in enumerate([("sam", 0.1, 0.5), ("sgd", 0.0, 0.0), ("sam", 0.2, 0.1)]):
        alone = Ensemble([models(3)[seed]], DATA, seeds=[seed], rule=rule, rho=rho, logit_penalty=penalty, **both)
        alone.run(4)
        assert_equal_weights(mixed, seed, alone.member(0))


def test_copies_are_a_stream_over_each_member_s_own_epochs():
    copies = torch.ones(2, len(DATA), dtype=torch.int64)
    copies[1, ::3] = 4
    ensemble = Ensemble(models(2), DATA, lr=0.1, batch_size=128, seeds=[5, 6], copies=copies)
    ensemble.run(20)
    for member, seed in enumerate([5, 6]):
        shown = torch.arange(len(DATA)).repeat_interleave(copies[member])
        stream = torch.cat([shown[order(len(shown), seed=seed, epoch=epoch)] for epoch in range(4)])
        batches = list(stream.split(128))[:20]
        assert_equal_weights(ensemble, member, one_by_one(models(2)[member], Objective(), batches, 0.1))


def test_noise_changes_only_the_examples_that_have_it():
    sigma = torch.zeros(2, len(DATA))
    sigma[1] = 0.2
    ensemble = Ensemble(models(2), DATA, lr=0.1, batch_size=100, seeds=[0, 0], noise=sigma)
    batch = ensemble._feed.batch(0)
    rows = order(len(DATA), seed=0, epoch=0)[:100]
    torch.testing.assert_close(batch.inputs[0], inputs()[rows].flatten(1), rtol=0, atol=1e-7)
    noise = batch.inputs[1] - batch.inputs[0]
    inside = (batch.inputs[1] > 0) & (batch.inputs[1] < 1)
    assert inside.double().mean() * 2 > 0.9  # half of the noise on black pixels is clamped away
    middle = (batch.inputs[0] > 0.45) & (batch.inputs[0] < 0.55)
    assert noise[middle].std() == pytest.approx(0.2, rel=0.1)
    assert float(batch.inputs.min()) >= 0
    assert float(batch.inputs.max()) <= 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"copies": torch.ones(10, dtype=torch.int64)}, "copies are (10,)"),
        ({"copies": torch.full((len(DATA),), 0.5)}, "whole numbers"),
        ({"noise": torch.full((len(DATA),), -1.0)}, "0 or more"),
        ({"noise": torch.ones(len(DATA)), "batch_size": None}, "need a batch_size"),
        ({"label_smoothing": 1.0}, "label_smoothing = 1.0 of member 0"),
        ({"label_smoothing": 0.1, "loss": torch.nn.functional.cross_entropy}, "a function of yours"),
    ],
)
def test_what_cannot_be_meant_is_refused(options: dict, said: str):
    with pytest.raises(UsageError) as error:
        Ensemble(models(1), DATA, **{"lr": 0.1, "batch_size": 50, **options})
    assert said in str(error.value)
