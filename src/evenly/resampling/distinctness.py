"""Whether a class falls into two parts at all, or 2-means has only cut one cloud in half.

Shapes: N points, D coordinates, M in a sample.
"""

import math
from collections.abc import Collection
from typing import NamedTuple

import torch
from torch import Tensor

from evenly.resampling.kmeans import bisect
from evenly.resampling.silhouette import SAMPLE, silhouette

FEWEST = 8  # fewer points cannot be judged
POINTS = 512  # of a cloud


class Distinctness(NamedTuple):
    """The silhouette of two parts, and the silhouettes of halves of single Gaussian clouds of the same shape."""

    silhouette: float
    clouds: tuple[float, ...]

    @property
    def distinct(self) -> bool:
        """Whether the parts are more distinct than those of every cloud."""
        return self.silhouette > max(self.clouds)


def distinctness(
    x_ND: Tensor,
    side_N: Tensor | None = None,
    *,
    known: float | None = None,
    sample: int = SAMPLE,
    clouds: int = 9,
    rng: torch.Generator | None = None,
) -> Distinctness | None:
    """The silhouette of two parts beside that of Gaussian clouds cut in two; None for fewer than 8 points or no parts.

    A silhouette has no scale of its own: halves of one Gaussian cloud reach 0.6 in one dimension and 0.05 in twenty.
    So 2-means also splits `clouds` clouds that have no parts, drawn from N(mean, covariance), and their silhouettes
    are estimated in the same way as that of the points. If there are no two parts, `distinct` is wrong with
    probability about 1/(clouds + 1). The parts are `side_N`, or those of 2-means; `known` is their silhouette, if it
    has been computed already.

    >>> rng = torch.Generator().manual_seed(0)
    >>> cloud = torch.randn(200, 3, generator=rng)
    >>> distinctness(cloud, rng=rng).distinct
    False
    >>> cloud[:50] += 6
    >>> distinctness(cloud, rng=rng).distinct
    True
    """
    if len(x_ND) < FEWEST:
        return None
    if rng is None:
        rng = torch.Generator().manual_seed(0)
    if known is None:
        side_N = bisect(x_ND, rng=rng) if side_N is None else side_N
        known = float("nan") if side_N is None else silhouette(x_ND, side_N, sample=sample, rng=rng)
    if known != known:
        return None
    num = min(POINTS, len(x_ND))
    some_M = torch.randperm(len(x_ND), generator=rng, device=rng.device)[: 2 * POINTS].to(x_ND.device)
    centred_MD = x_ND[some_M] - x_ND[some_M].mean(dim=0)
    nulls = []
    for _ in range(clouds):
        # Random combinations of the points have their covariance, which is never formed.
        mix = torch.randn(num, len(some_M), generator=rng, device=rng.device, dtype=torch.float32)
        cloud_PD = mix.to(x_ND.device, x_ND.dtype) @ centred_MD / len(some_M) ** 0.5
        half_P = bisect(cloud_PD, rng=rng, restarts=4)
        nulls.append(0.0 if half_P is None else silhouette(cloud_PD, half_P, sample=sample, rng=rng))
    return Distinctness(known, tuple(nulls))


def may_be_chance(classes: Collection[Distinctness]) -> bool:
    """Whether as many classes may look distinct although none has two parts.

    Such a class looks distinct with probability p = 1/(clouds + 1), so that the number of them is binomial. All classes
    together are held to the level of a single one: it is chance if P(at least as many) > p.

    >>> cloud, parts = Distinctness(0.3, (0.4,) * 9), Distinctness(0.5, (0.4,) * 9)
    >>> may_be_chance([parts] + 9 * [cloud]), may_be_chance(3 * [parts] + 7 * [cloud]), may_be_chance([parts])
    (True, False, False)
    """
    num, found = len(classes), sum(each.distinct for each in classes)
    p = max((1 / (len(each.clouds) + 1) for each in classes), default=1.0)
    fewer = sum(math.comb(num, k) * p**k * (1 - p) ** (num - k) for k in range(found))
    return 1 - fewer > p + 1e-9  # rounding
