"""When to separate: on recorded curves, on made ones, and on a network that trains."""

import random

import pytest
import torch

from evenly.data.digits import digits
from evenly.errors import UsageError
from evenly.models.seeding import seeding
from evenly.resampling.moment import AtEpoch, GainShrinks, at_fraction, first

# Training errors of real runs, before the first epoch and after each.
RECORDED = {
    # three convolutions, SGD with momentum, CIFAR-10, 50,000 examples
    "cifar10 convnet": [
        0.9, 0.532, 0.438, 0.411, 0.361, 0.334, 0.319, 0.293, 0.287, 0.279, 0.271, 0.261, 0.259,
    ],
    # 128 hidden units, 20,000 examples each; the second with 5 % of the labels wrong
    "fashion-mnist mlp": [
        0.9, 0.18, 0.206, 0.142, 0.139, 0.143, 0.135, 0.133, 0.117, 0.104, 0.104, 0.106, 0.103, 0.099, 0.096, 0.098,
    ],
    "fashion-mnist mlp, noisy labels": [
        0.9, 0.238, 0.212, 0.185, 0.191, 0.181, 0.197, 0.19, 0.169, 0.164, 0.162, 0.164, 0.159, 0.148, 0.165, 0.146,
    ],
    "mnist mlp": [
        0.9, 0.09, 0.0584, 0.0484, 0.0357, 0.0301, 0.027, 0.0209, 0.0168, 0.014, 0.0117, 0.0103, 0.0075, 0.0058, 0.001,
    ],
    "digits mlp": [0.9, 0.143, 0.077, 0.039, 0.036, 0.038, 0.022, 0.025, 0.016, 0.016, 0.011, 0.013, 0.009, 0.006],
}  # fmt: skip
CHOSEN = {
    "cifar10 convnet": 6,
    "fashion-mnist mlp": 3,
    "fashion-mnist mlp, noisy labels": 3,
    "mnist mlp": 3,
    "digits mlp": 4,
}


@pytest.mark.parametrize("name", RECORDED)
def test_recorded_curves_are_stopped_at_their_bend(name: str) -> None:
    errors = RECORDED[name]
    epoch = first(GainShrinks(), errors)
    assert epoch == CHOSEN[name]
    assert errors[0] - errors[epoch] > 0.6 * (errors[0] - errors[-1])  # most of what is learned in the run is learned
    assert 1 - errors[epoch] < 0.99


@pytest.mark.parametrize("rule", [GainShrinks(), GainShrinks(window=3, below=0.3), AtEpoch(4)])
def test_a_rule_decides_without_looking_ahead_and_stays_decided(rule: GainShrinks | AtEpoch) -> None:
    for errors in RECORDED.values():
        said = [rule(errors[: epoch + 1]) for epoch in range(len(errors))]
        assert said == sorted(said)
        changed = [*errors[:7], 0.9, 0.9, 0.9]
        assert [rule(changed[: epoch + 1]) for epoch in range(7)] == said[:7]


def exponential(rate: float, floor: float = 0.1, start: float = 0.9, num: int = 60) -> list[float]:
    return [floor + (start - floor) * rate**t for t in range(num)]


@pytest.mark.parametrize(("rate", "epoch"), [(0.5, 6), (0.7, 9), (0.9, 24)])
def test_an_exponential_curve_is_stopped_where_its_slope_is_a_tenth(rate: float, epoch: int) -> None:
    # The gain over (t − 2, t) is rateᵗ⁻² of the first: the moment is the first t with rateᵗ⁻² ≤ 1/10.
    assert first(GainShrinks(), exponential(rate)) == epoch
    assert rate ** (epoch - 2) <= 0.1 < rate ** (epoch - 3)


def test_a_network_that_does_nothing_for_a_while_is_waited_for() -> None:
    rng = random.Random(0)
    still = [0.5 - 0.01 * rng.random() for _ in range(30)]
    rising = [0.48, 0.4, 0.25, 0.13, 0.08, 0.07, 0.065, 0.063, 0.062]
    assert first(GainShrinks(), [0.5, *still]) is None
    assert first(GainShrinks(), [0.5, *still, *rising]) == 30 + 7


def test_a_bad_epoch_is_not_taken_for_the_end() -> None:
    errors = exponential(0.7)
    undisturbed = first(GainShrinks(), errors)
    assert undisturbed == 9
    for spike in range(2, 7):
        disturbed = [*errors[:spike], errors[spike] + 0.3, *errors[spike + 1 :]]
        assert first(GainShrinks(), disturbed) in (9, 10), spike


def test_noise_moves_the_moment_by_few_epochs() -> None:
    errors = exponential(0.8)
    quiet = first(GainShrinks(), errors)
    assert quiet == 13
    found = []
    for seed in range(200):
        rng = random.Random(seed)
        found.append(first(GainShrinks(), [0.9, *(min(max(e + rng.gauss(0, 0.005), 0), 1) for e in errors[1:])]))
    found.sort()
    assert quiet - 4 <= found[5]
    assert found[100] in range(quiet - 3, quiet + 1)
    assert found[195] <= quiet + 2


def test_a_plateau_and_a_second_fall_are_stopped_at_the_plateau() -> None:
    errors = [0.9, 0.6, 0.5, 0.49, 0.488, 0.487, 0.486, 0.3, 0.2]
    assert first(GainShrinks(), errors) == 4


def test_steady_learning_is_never_stopped() -> None:
    assert first(GainShrinks(), [0.9 - 0.02 * t for t in range(40)]) is None


def test_the_moment_of_a_network_that_trains_comes_early_and_before_everything_is_fitted() -> None:
    data = digits().train
    x = data.inputs.flatten(1).float() / 255
    errors, rng = [0.9], torch.Generator().manual_seed(0)
    with seeding(0):
        network = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
    optimizer = torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9)
    for _ in range(40):
        for batch in torch.split(torch.randperm(len(x), generator=rng), 32):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(network(x[batch]), data.labels[batch]).backward()
            optimizer.step()
        with torch.no_grad():
            errors.append(float((network(x).argmax(1) != data.labels).float().mean()))
    epoch = first(GainShrinks(), errors)
    assert epoch is not None
    assert 3 <= epoch <= 8
    assert 0.9 < 1 - errors[epoch] < 0.99
    assert errors[-1] < 0.01


def test_epochs_and_fractions() -> None:
    assert first(AtEpoch(3), [0.9] * 10) == 3
    assert first(AtEpoch(30), [0.9] * 10) is None
    assert at_fraction(0.1, epochs=80) == AtEpoch(8)
    assert at_fraction(1, epochs=5) == AtEpoch(5)
    for bad in (0, -0.1, 1.1):
        with pytest.raises(UsageError, match="fraction="):
            at_fraction(bad, epochs=10)
    with pytest.raises(UsageError, match="epoch=0"):
        AtEpoch(0)


def test_bad_settings_and_curves_are_refused() -> None:
    for settings in ({"window": 0}, {"below": 0.0}, {"below": 1.0}, {"learned": 2.0}):
        with pytest.raises(UsageError, match=next(iter(settings))):
            GainShrinks(**settings)
    with pytest.raises(UsageError, match=r"training error 53\.2 after epoch 1.*per cent"):
        GainShrinks()([0.9, 53.2])
    with pytest.raises(UsageError, match="training error nan"):
        GainShrinks()([0.9, float("nan")])
    with pytest.raises(UsageError, match="no training errors"):
        GainShrinks()([])
