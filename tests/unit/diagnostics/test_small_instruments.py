"""Rank, alignment, learning order and reliance against closed forms and other libraries."""

import math

import pytest
import torch
from sklearn.decomposition import PCA
from torch import Tensor, nn

from evenly.data import Labelled, load
from evenly.diagnostics import alignment, feature_rank, learning_order, reliance
from evenly.errors import DataError, UsageError


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("shape", [(60, 12), (12, 60)])
@pytest.mark.parametrize("share", [0.5, 0.9, 0.99])
def test_rank_equals_that_of_scikit_learns_pca(shape: tuple[int, int], share: float) -> None:
    x = torch.randn(shape, generator=generator()) * torch.linspace(1, 5, shape[1]) + 3
    held = PCA().fit(x.double().numpy()).explained_variance_ratio_.cumsum()
    assert feature_rank(x, share=share) == int((held < share).sum()) + 1


def test_rank_of_exact_low_rank_features_is_that_rank_and_of_constant_ones_zero() -> None:
    x = torch.randn(50, 3, generator=generator()) @ torch.randn(3, 20, generator=generator(1))
    assert feature_rank(x, share=1 - 1e-9) == 3
    assert feature_rank(torch.ones(5, 4)) == 0


def test_alignment_does_not_depend_on_the_length_or_sign_of_the_planted_direction() -> None:
    filters = torch.randn(6, 5, generator=generator())
    v = torch.randn(5, generator=generator(1))
    a, b = (alignment(filters, planted={"hard": part})["hard"] for part in (v, -7 * v))
    unit = v / v.norm()
    assert a.largest == pytest.approx(max(abs(float(w @ unit)) for w in filters), rel=1e-6)
    assert (a.largest, a.mean) == pytest.approx((b.largest, b.mean), rel=1e-6)
    assert a.filter == b.filter


def test_alignment_reads_the_directions_planted_in_toy_data() -> None:
    data = load("patches", num_train=10, num_test=2).train
    found = alignment(data.planted["easy"][None], planted=data.planted)
    assert found["easy"].largest == pytest.approx(1.0, abs=1e-5)
    assert found["hard"].largest == pytest.approx(0.0, abs=1e-5)


def test_learning_order_of_sigmoids_is_that_of_their_centres() -> None:
    times = list(range(0, 101, 2))
    curves = {f"at {c}": [1 / (1 + math.exp(-(t - c) / 3)) for t in times] for c in (70, 30, 50)}
    found = learning_order(curves, times=times, ends=(0.0, 1.0))
    assert [learned.name for learned in found] == ["at 30", "at 50", "at 70"]
    assert [learned.time for learned in found] == pytest.approx([30, 50, 70], abs=0.1)


def test_learning_order_follows_falling_curves_and_puts_the_never_learned_last() -> None:
    found = learning_order(
        {"never": [0.5, 0.5, 0.5], "error": [0.5, 0.3, 0.1], "at once": [1.0, 1.0, 1.0]}, ends=(0.5, 0.0)
    )
    assert [learned.name for learned in found] == ["error", "never", "at once"]
    assert found[0].time == pytest.approx(1.25)
    assert math.isnan(found[1].time)


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
    found = reliance(Half(slice(0, 1)), data, attribute="tag", swap=swap_tag, rng=generator(), chunk=30)
    assert found.accuracy == 1.0
    assert found.randomised == pytest.approx(0.5, abs=0.15)


def test_reliance_weighs_combinations_by_the_shares_of_label_and_value() -> None:
    # Right for tag 0 only; labels 1:2, tags 1:3 and not independent: P(tag 0) = 1/4 whatever the label.
    label = torch.tensor([0] * 4 + [1] * 8)
    tag = torch.tensor([0, 0, 1, 1] + [0] + [1] * 7)
    right = torch.where(tag == 0, 2.0 * label - 1, 1 - 2.0 * label)
    data = Labelled(right[:, None], label, ("a", "b"), {"tag": tag})
    found = reliance(Half(slice(0, 1)), data, attribute="tag")
    assert found.randomised == pytest.approx(0.25)
    assert found.accuracy == pytest.approx(3 / 12)


def test_reliance_compares_natural_with_balanced_examples() -> None:
    natural, balanced = correlated(400, follows=1.0), correlated(2000, follows=0.5)
    by_tag = reliance(Half(slice(0, 1)), natural, attribute="tag", balanced=balanced)
    assert by_tag.accuracy == 1.0
    assert by_tag.randomised == pytest.approx(0.5, abs=0.03)


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda: feature_rank(torch.ones(3, 2), share=0), UsageError, "share = 0"),
        (lambda: feature_rank(torch.ones(1, 2)), DataError, "at least two examples"),
        (lambda: feature_rank(torch.full((3, 2), torch.nan)), DataError, "not finite"),
        (lambda: alignment(torch.ones(3, 2), planted={}), DataError, "no direction was planted"),
        (lambda: alignment(torch.ones(3, 2), planted={"easy": torch.ones(5)}), UsageError, "2 weights but"),
        (lambda: learning_order({"a": [1.0]}), DataError, "two or more"),
        (lambda: learning_order({"a": [1.0, math.nan]}), DataError, "NaN or inf"),
        (lambda: learning_order({"a": [1.0, 2.0]}, share=2), UsageError, "share = 2"),
        (lambda: reliance(Half(slice(0, 1)), correlated(9, 0.5), attribute="tgs"), UsageError, "Did you mean 'tag'"),
        (
            lambda: reliance(Half(slice(0, 1)), correlated(9, 0.5), attribute="tag", swap=swap_tag),
            UsageError,
            "give rng=",
        ),
    ],
)
def test_what_cannot_be_measured_is_refused(call, error: type[Exception], said: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(error, match=said):
        call()
