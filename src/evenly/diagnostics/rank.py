"""The number of directions that the features of a network span."""

import torch
from torch import Tensor

from evenly.device import in_float64
from evenly.diagnostics.features import features
from evenly.diagnostics.subject import Numbers, Subject
from evenly.errors import DataError, UsageError


def feature_rank(features_ND: Tensor, *, share: float = 0.99) -> int:
    """The least number of principal components that hold `share` of the features' variance.

    Chang & Khanna (2025) use 0.9 for toys and 0.999 for ResNet-18.

    >>> feature_rank(torch.tensor([[1.0, 0.0, 5.0], [-1.0, 0.0, 5.0], [0.0, 0.1, 5.0]]), share=0.9)
    1
    """
    if not 0 < share <= 1:
        raise UsageError(f"share = {share} is the share of the variance to be held: give a number above 0, up to 1.")
    if features_ND.ndim != 2 or len(features_ND) < 2:
        raise DataError(f"features of shape {tuple(features_ND.shape)}: at least two examples × features are needed.")
    x_ND = in_float64(features_ND)
    x_ND = x_ND - x_ND.mean(0)
    # The smaller of the two second-moment matrices has the same nonzero eigenvalues as the larger.
    moment = x_ND.T @ x_ND if x_ND.shape[1] <= x_ND.shape[0] else x_ND @ x_ND.T
    variance = torch.linalg.eigvalsh(moment).flip(0).clamp_min(0)
    if not torch.isfinite(variance).all():
        raise DataError("the features are not finite: look for NaN or inf in the model's activations.")
    if variance[0] == 0:
        return 0
    held = variance.cumsum(0) / variance.sum()
    return int((held < share - 1e-12).sum()) + 1


def measure_rank(subject: Subject) -> Numbers:
    """The PCA rank of the features."""
    settings = {"share": 0.99, **subject.options}
    rank = feature_rank(features(subject.model, subject.part, layer=subject.layer), **settings)
    return {"feature_rank": rank, "feature_rank_share": settings["share"]}
