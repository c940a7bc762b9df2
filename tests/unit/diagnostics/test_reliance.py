"""Reliance on an attribute, for models whose reliance is known."""

import pytest
import torch
from torch import Tensor, nn

from evenly.data import Labelled, Splits
from evenly.diagnostics import measure, reliance
from evenly.diagnostics.reliance import can_measure_reliance
from evenly.errors import DataError, UsageError


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


class Half(nn.Module):
    """Answers with the sum of some inputs."""

    def __init__(self, rows: slice) -> None:
        super().__init__()
        self.rows, self.one = rows, nn.Parameter(torch.ones(()))

    def forward(self, x: Tensor) -> Tensor:
        return self.one * x[:, self.rows].sum(1)


def correlated(num: int, follows: float) -> Labelled:
    """Inputs (tag, truth) as ±1; the tag equals the label with the given probability."""
    rng = generator(5)
    label = torch.randint(2, (num,), generator=rng)
    tag = torch.where(torch.rand(num, generator=rng) < follows, label, 1 - label)
    return Labelled(torch.stack([2.0 * tag - 1, 2.0 * label - 1], dim=1), label, ("a", "b"), {"tag": tag})


def swap_tag(x: Tensor, donors: Tensor) -> Tensor:
    return torch.cat([donors[:, :1], x[:, 1:]], dim=1)


@pytest.mark.parametrize("way", [{}, {"swap": swap_tag}])
def test_reliance_is_all_for_a_model_of_the_tag_and_none_for_a_model_of_the_truth(way: dict) -> None:  # type: ignore[type-arg]
    data = correlated(2000, follows=0.9)
    by_tag = reliance(Half(slice(0, 1)), data, attribute="tag", rng=generator(), **way)
    by_truth = reliance(Half(slice(1, 2)), data, attribute="tag", rng=generator(), **way)
    assert by_tag.accuracy == pytest.approx(0.9, abs=0.03)
    assert by_tag.randomised == pytest.approx(0.5, abs=0.04)
    assert by_tag.reliance == by_tag.accuracy - by_tag.randomised
    assert (by_truth.accuracy, by_truth.randomised) == pytest.approx((1.0, 1.0))


def test_reliance_of_a_perfect_shortcut_needs_a_swap() -> None:
    data = correlated(100, follows=1.0)
    with pytest.raises(DataError, match="no example of class 'a' with tag = 1"):
        reliance(Half(slice(0, 1)), data, attribute="tag")
    measured = reliance(Half(slice(0, 1)), data, attribute="tag", swap=swap_tag, rng=generator(), chunk=30)
    assert measured.accuracy == 1.0
    assert measured.randomised == pytest.approx(0.5, abs=0.15)


def test_reliance_weighs_combinations_by_the_shares_of_label_and_value() -> None:
    # Right for tag 0 only; labels 1:2, tags 1:3 and not independent: P(tag 0) = 1/4 whatever the label.
    label = torch.tensor([0] * 4 + [1] * 8)
    tag = torch.tensor([0, 0, 1, 1] + [0] + [1] * 7)
    right = torch.where(tag == 0, 2.0 * label - 1, 1 - 2.0 * label)
    data = Labelled(right[:, None], label, ("a", "b"), {"tag": tag})
    measured = reliance(Half(slice(0, 1)), data, attribute="tag")
    assert measured.randomised == pytest.approx(0.25)
    assert measured.accuracy == pytest.approx(3 / 12)


def test_reliance_compares_natural_with_balanced_examples() -> None:
    natural, balanced = correlated(400, follows=1.0), correlated(2000, follows=0.5)
    by_tag = reliance(Half(slice(0, 1)), natural, attribute="tag", balanced=balanced)
    assert by_tag.accuracy == 1.0
    assert by_tag.randomised == pytest.approx(0.5, abs=0.03)


class Constant(nn.Module):
    """Answers 'a' whatever it sees."""

    def __init__(self) -> None:
        super().__init__()
        self.one = nn.Parameter(torch.ones(()))

    def forward(self, x: Tensor) -> Tensor:
        return -self.one.expand(len(x))


def test_a_model_that_ignores_its_inputs_relies_on_nothing() -> None:
    """Classes 9:1 in the natural data and 1:1 where the tag is balanced: the shares are those of the natural data."""
    label, tag = torch.tensor([0] * 90 + [1] * 10), torch.tensor([0, 1] * 50)
    natural = Labelled(torch.zeros(100, 2), label, ("a", "b"), {"tag": tag})
    measured = reliance(Constant(), natural, attribute="tag", balanced=correlated(400, follows=0.5))
    assert measured.accuracy == pytest.approx(0.9)
    assert measured.reliance == pytest.approx(0, abs=1e-12)


def test_the_shares_are_natural_and_the_accuracies_balanced() -> None:
    """A model of the tag is right where tag and label agree: Σ P(label)P(tag)[label = tag], by hand and by a swap."""
    label = torch.tensor([0] * 600 + [1] * 200)
    tag = torch.tensor([0] * 550 + [1] * 50 + [0] * 20 + [1] * 180)
    x = torch.stack([2.0 * tag - 1, 2.0 * label - 1], dim=1)
    natural = Labelled(x, label, ("a", "b"), {"tag": tag})
    model = Half(slice(0, 1))
    measured = reliance(model, natural, attribute="tag", balanced=correlated(400, follows=0.5))
    p, q = 200 / 800, 230 / 800
    assert measured.randomised == pytest.approx(p * q + (1 - p) * (1 - q))
    by_swap = reliance(model, natural, attribute="tag", swap=swap_tag, rng=generator())
    assert measured.randomised == pytest.approx(by_swap.randomised, abs=0.05)


def test_without_a_balanced_split_the_test_examples_are_compared_with_themselves() -> None:
    """A model that memorised its training set and does not read the tag: the gap is no reliance."""
    train = correlated(200, follows=0.5)
    memorised = Labelled(train.inputs, train.labels, train.classes, train.attributes)
    flipped = Labelled(train.inputs * torch.tensor([1.0, -1.0]), train.labels, train.classes, train.attributes)
    splits = Splits("toy", {"train": memorised, "test": flipped})
    assert can_measure_reliance(splits)
    found = measure(Half(slice(1, 2)), splits, "reliance", rng=generator())
    assert found["reliance_tag"] == pytest.approx(0, abs=1e-12)  # all right on train, all wrong on test
    shortcut = Splits("toy", {"train": memorised, "test": correlated(50, follows=1.0)})
    assert not can_measure_reliance(shortcut)
    with pytest.raises(DataError, match="needs a split 'balanced'"):
        measure(Half(slice(1, 2)), shortcut, "reliance", rng=generator())


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: reliance(Half(slice(0, 1)), correlated(9, 0.5), attribute="tgs"), UsageError, "Did you mean 'tag'"),
        (
            lambda: reliance(Half(slice(0, 1)), correlated(9, 0.5), attribute="tag", swap=swap_tag),
            UsageError,
            "give rng=",
        ),
    ],
)
def test_bad_arguments_are_refused(call, error: type[Exception], message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(error, match=message):
        call()
