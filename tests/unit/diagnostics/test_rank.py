"""The rank of features against scikit-learn and exact low-rank features."""

import pytest
import torch
from sklearn.decomposition import PCA

from evenly.diagnostics import feature_rank
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


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: feature_rank(torch.ones(3, 2), share=0), UsageError, "share = 0"),
        (lambda: feature_rank(torch.ones(1, 2)), DataError, "at least two examples"),
        (lambda: feature_rank(torch.full((3, 2), torch.nan)), DataError, "not finite"),
    ],
)
def test_bad_arguments_are_refused(call, error: type[Exception], message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(error, match=message):
        call()
