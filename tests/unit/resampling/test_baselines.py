"""The controls: same number at random, weights, steps, cost."""

from dataclasses import replace

import pytest
import torch

from evenly.data.labelled import Labelled
from evenly.errors import UsageError
from evenly.resampling import Separation, separate
from evenly.resampling.baselines import random_like, random_subset, reweight, upper_share, upweight


@pytest.fixture(scope="module")
def separation() -> Separation:
    rng = torch.Generator().manual_seed(0)
    labels = torch.randint(4, (1_000,), generator=rng)
    hard = torch.rand(1_000, generator=rng) < 0.1 * (labels + 1)
    logits = 0.3 * torch.randn(1_000, 4, generator=rng)
    logits[torch.arange(1_000), labels] += torch.where(hard, 0.0, 5.0)
    return separate(logits, labels)


def test_random_upsampling_repeats_as_many_examples_in_all_drawn_from_all_alike(separation: Separation) -> None:
    draws = [random_like(separation, rng=torch.Generator().manual_seed(seed)) for seed in range(200)]
    assert {draw.num_hard for draw in draws} == {separation.num_hard}
    assert draws[0].method == "random"
    assert draws[0].fingerprint == separation.fingerprint
    share = torch.stack([draw.hard for draw in draws]).float().mean(0)
    # Each example is drawn with the same probability: the spread over examples is that of a binomial.
    p = separation.share
    assert float(share.std()) == pytest.approx((p * (1 - p) / 200) ** 0.5, rel=0.15)
    by_class = [float(share[separation.labels == label].mean()) for label in range(4)]
    assert by_class == pytest.approx([p] * 4, abs=0.02)
    assert sum(split.num_hard for split in draws[0].splits) == separation.num_hard


def test_random_upsampling_is_the_same_for_the_same_generator(separation: Separation) -> None:
    one, two = (random_like(separation, rng=torch.Generator().manual_seed(5)) for _ in range(2))
    assert torch.equal(one.hard, two.hard)


def test_weights_are_the_factor_where_hard_and_one_elsewhere(separation: Separation) -> None:
    weights = upweight(separation, factor=2.5)
    assert torch.equal(weights == 2.5, separation.hard)
    assert torch.equal(weights == 1, ~separation.hard)
    for bad in (0, -1, float("nan"), float("inf")):
        with pytest.raises(UsageError, match="factor="):
            upweight(separation, factor=bad)


def test_weights_come_in_the_order_of_the_data_set_where_it_is_given(separation: Separation) -> None:
    data = Labelled(torch.zeros(1_000, 1), separation.labels, ("a", "b", "c", "d")).subset(range(999, -1, -1))
    numbered = replace(separation, by_position=False)
    assert torch.equal(upweight(numbered, dataset=data), upweight(numbered).flip(0))


def test_upweighting_by_two_has_the_gradient_of_repeating_once(separation: Separation) -> None:
    w = torch.zeros(4, requires_grad=True)
    x = torch.randn(1_000, 4, generator=torch.Generator().manual_seed(1))

    def losses(rows: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.cross_entropy(x[rows] * w, separation.labels[rows], reduction="none")

    (weighted,) = torch.autograd.grad((upweight(separation) * losses(torch.arange(1_000))).sum(), w)
    (repeated,) = torch.autograd.grad(losses(separation.indices(2)).sum(), w)
    torch.testing.assert_close(weighted, repeated)


@pytest.mark.parametrize(("share", "expected"), [(0.0, 0), (0.5, 50), (0.25, 25), (1.0, 100), (0.999, 99)])
def test_the_upper_share_is_never_more_than_asked(share: float, expected: int) -> None:
    values = torch.randperm(100, generator=torch.Generator().manual_seed(0)).double()
    chosen = upper_share(values, share)
    assert int(chosen.sum()) == expected
    if 0 < expected < 100:
        assert float(values[chosen].min()) > float(values[~chosen].max())


def test_equal_values_are_not_told_apart() -> None:
    assert upper_share(torch.tensor([1.0, 2.0, 2.0, 2.0])).tolist() == [False] * 4
    assert upper_share(torch.tensor([1.0, 2.0, 2.0, 3.0]), 0.25).tolist() == [False, False, False, True]


def test_drawing_takes_as_many_as_asked() -> None:
    assert [int(random_subset(7, k, rng=torch.Generator().manual_seed(0)).sum()) for k in (0, 3, 7)] == [0, 3, 7]


@pytest.mark.parametrize("share", [0.07, 0.14, 0.28, 0.29, 0.55, 0.57, 0.58])
def test_a_share_that_is_a_whole_number_of_examples_is_that_number(share: float) -> None:
    assert int(upper_share(torch.arange(100.0), share).sum()) == round(100 * share)


def test_reweighting_is_upweighting_divided_by_its_mean(separation: Separation) -> None:
    weights = reweight(separation, factor=8)
    torch.testing.assert_close(weights, upweight(separation, factor=8) / upweight(separation, factor=8).mean())
    hard = float(weights[separation.hard][0])
    assert hard == pytest.approx(8 / (1 + 7 * separation.share), rel=1e-5)
