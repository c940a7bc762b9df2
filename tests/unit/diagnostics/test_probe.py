"""Linear probes: what they refuse, and their interval where the error is a mean over groups."""

import numpy as np
import pytest
import torch

from evenly.diagnostics import fit_probe
from evenly.diagnostics.probe import effective_number, wilson
from evenly.errors import DataError


@pytest.mark.parametrize(
    ("groups", "said"),
    [
        (torch.tensor([0] * 9 + [7]), "group 7 of groups has one example"),
        (torch.zeros(9, dtype=torch.int64), r"groups of shape \(9,\) for 10 examples"),
    ],
)
def test_probes_refuse_groups_that_cannot_be_divided(groups: torch.Tensor, said: str) -> None:
    x, y = torch.randn(10, 2, generator=torch.Generator().manual_seed(0)), torch.arange(10) % 2
    with pytest.raises(DataError, match=said):
        fit_probe(x, y, test_features=x, test_targets=y, groups=groups, rng=torch.Generator())


@pytest.mark.parametrize(
    ("sizes", "errors"),
    [
        ((1000, 1000, 1000, 12), (0.05, 0.05, 0.05, 0.5)),
        ((500, 50), (0.1, 0.1)),
        ((40, 40, 40, 40), (0.02, 0.3, 0.1, 0.2)),
    ],
)
def test_the_interval_of_a_mean_over_groups_covers_the_truth(sizes: tuple[int, ...], errors: tuple[float, ...]) -> None:
    rng = np.random.default_rng(0)
    truth, covered, pooled = float(np.mean(errors)), 0, 0
    for _ in range(1000):
        found = [rng.binomial(num, p) / num for num, p in zip(sizes, errors, strict=True)]
        mean = float(np.mean(found))
        low, high = wilson(mean, effective_number(found, sizes))
        covered += low <= truth <= high
        low, high = wilson(mean, sum(sizes))
        pooled += low <= truth <= high
    assert 0.92 <= covered / 1000 <= 0.995
    if max(sizes) > 50:
        assert pooled / 1000 < 0.85  # as if all examples counted equally


def test_the_effective_number_is_that_of_the_variance_of_the_mean() -> None:
    """With equal shares it is G²/Σ(1/n_g); one group counts fully."""
    assert effective_number([0.3] * 2, [10**7, 10**6]) == pytest.approx(4 / (1e-7 + 1e-6), rel=1e-4)
    assert effective_number([0.0], [30]) == pytest.approx(30)


def test_probes_give_that_interval_for_groups_and_wilsons_without() -> None:
    rng = torch.Generator().manual_seed(0)
    x, y = torch.randn(400, 2, generator=rng), torch.arange(400) % 2
    cells = torch.where(torch.arange(400) < 360, 0, 1)
    settings: dict[str, torch.Tensor] = {"test_features": x, "test_targets": y}
    plain = fit_probe(x, y, rng=rng, **settings)  # type: ignore[arg-type]
    assert plain.interval == wilson(plain.error, 400)
    grouped = fit_probe(x, y, rng=rng, groups=cells, test_groups=cells, refits=1, **settings)  # type: ignore[arg-type]
    wide, narrow = grouped.interval, wilson(grouped.error, 400)
    assert wide[1] - wide[0] > 1.5 * (narrow[1] - narrow[0])


def test_a_feature_that_was_constant_where_the_probe_was_fitted_does_not_decide_elsewhere() -> None:
    """The mean of equal numbers is off by rounding, and dividing by that would magnify any later change."""
    rng = torch.Generator().manual_seed(0)
    x = torch.randn(600, 3, generator=rng)
    y = (x[:, 0] > 0.4).long()
    x[:300, 2], x[300:, 2] = 0.1, 0.3
    assert 0 < x[:300, 2].numpy().std() < 1e-7
    fit = {"test_features": x[300:], "test_targets": y[300:], "rng": rng, "refits": 2}
    assert fit_probe(x[:300], y[:300], **fit).error < 0.1
