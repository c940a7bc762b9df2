"""Reliance on an attribute, for models whose reliance is known."""

import pytest
import torch
from torch import Tensor, nn

from evenly.data import Labelled
from evenly.diagnostics import reliance
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
