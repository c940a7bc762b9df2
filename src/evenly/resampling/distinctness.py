"""Whether a class falls into two parts at all, or 2-means has only cut one cloud in half.

Shapes: N points, D coordinates, M in a sample.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from evenly.resampling.kmeans import two_means
from evenly.resampling.silhouette import silhouette


class Distinctness(NamedTuple):
    """The silhouette of 2-means, and those that single Gaussian clouds of the same shape reach."""

    silhouette: float
    clouds: tuple[float, ...]

    @property
    def distinct(self) -> bool:
        """Whether the parts are more distinct than those of every cloud."""
        return self.silhouette > max(self.clouds)


def distinctness(
    x_ND: Tensor, *, sample: int = 256, clouds: int = 9, rng: torch.Generator | None = None
) -> Distinctness | None:
    """The silhouette of 2-means beside that on Gaussian clouds of the same covariance; None for fewer than 8 points.

    A silhouette has no scale of its own: halves of one Gaussian cloud reach 0.6 in one dimension and 0.05 in twenty.
    So the same is done to `clouds` clouds that have no parts: as many points drawn from N(mean, covariance). If there
    are no two parts, the chance that `distinct` says otherwise is about 1/(clouds + 1).

    >>> rng = torch.Generator().manual_seed(0)
    >>> cloud = torch.randn(200, 3, generator=rng)
    >>> distinctness(cloud, rng=rng).distinct
    False
    >>> cloud[:50] += 6
    >>> distinctness(cloud, rng=rng).distinct
    True
    """
    if len(x_ND) < 8:
        return None
    if rng is None:
        rng = torch.Generator().manual_seed(0)
    num = min(sample, len(x_ND))
    chosen_M = torch.randperm(len(x_ND), generator=rng, device=rng.device)[:num]
    found = _silhouette(x_ND[chosen_M.to(x_ND.device)], rng)
    if found is None:
        return None
    centred_ND = x_ND - x_ND.mean(dim=0)
    nulls = []
    for _ in range(clouds):
        # Random combinations of the points have exactly their covariance, without ever forming it.
        mix_MN = torch.randn(num, len(x_ND), generator=rng, device=rng.device, dtype=torch.float32)
        cloud_MD = mix_MN.to(x_ND.device, x_ND.dtype) @ centred_ND / len(x_ND) ** 0.5
        nulls.append(_silhouette(cloud_MD, rng) or 0.0)
    return Distinctness(found, tuple(nulls))


def _silhouette(x_MD: Tensor, rng: torch.Generator) -> float | None:
    parts = two_means(x_MD, rng=rng, restarts=4)
    return None if parts is None else silhouette(x_MD, parts.side, sample=len(x_MD))
