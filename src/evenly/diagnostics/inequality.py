"""How evenly something is spread over examples: Lorenz curve, Gini index, medians over two contributions.

Shapes: N examples, E and H bins of the easy and the hard contribution.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from evenly.errors import DataError, UsageError


def lorenz(weights_N: Tensor, *, largest_first: bool = False) -> tuple[Tensor, Tensor]:
    """The Lorenz curve: the share of the total that the least k examples hold, against k/N; N + 1 points each.

    The diagonal is perfect evenness. `largest_first` counts from the top instead, as Springer et al. (2024)
    describe it ("contributed by the top k points"): the same curve, rotated by 180°.

    >>> [part.tolist() for part in lorenz(torch.tensor([3.0, 1.0]))]
    [[0.0, 0.5, 1.0], [0.0, 0.25, 1.0]]
    """
    w_N = _validate(weights_N).sort(descending=largest_first).values
    total = w_N.sum()
    if total == 0:
        raise DataError("all weights are 0: there is nothing to share out.")
    held = torch.cat([w_N.new_zeros(1), w_N.cumsum(0) / total])
    return torch.linspace(0, 1, len(w_N) + 1, dtype=torch.float64), held


def gini(weights_N: Tensor) -> float:
    """The Gini index: half the mean difference between two examples over the mean; 0 is even, 1 − 1/N one holds all.

    >>> gini(torch.tensor([1.0, 1.0, 1.0])), gini(torch.tensor([0.0, 0.0, 0.0, 1.0]))
    (0.0, 0.75)
    """
    w_N = _validate(weights_N).sort().values
    num, total = len(w_N), w_N.sum()
    if total == 0:
        return 0.0
    rank_N = torch.arange(1, num + 1, dtype=torch.float64)
    return max(0.0, float(2 * (rank_N * w_N).sum() / (num * total) - (num + 1) / num))


@dataclass(frozen=True)
class MedianMap:
    """The median weight in every cell of easy × hard contribution, NaN where `count` is 0."""

    easy_edges: Tensor
    hard_edges: Tensor
    median: Tensor
    count: Tensor


def median_map(weights_N: Tensor, *, easy: Tensor, hard: Tensor, bins: int = 10) -> MedianMap:
    """Median importance binned by the signed contributions of the easy and the hard feature (figure 6).

    Contributions are y·v_easy·Φ_easy(x) and y·v_hard·Φ_hard(x), or those of two probes on real data.

    >>> easy, hard = torch.tensor([0.0, 0.1, 1.0]), torch.tensor([0.0, 0.1, 0.2])
    >>> medians = median_map(torch.tensor([1.0, 3.0, 7.0]), easy=easy, hard=hard, bins=1)
    >>> medians.median.tolist(), medians.count.sum().item()
    ([[3.0]], 3)
    """
    if bins < 1:
        raise UsageError(f"bins = {bins}: give 1 or more.")
    if not len(weights_N) == len(easy) == len(hard):
        raise DataError(
            f"{len(weights_N)} weights, {len(easy)} easy and {len(hard)} hard contributions: one each is needed."
        )
    w_N = _validate(weights_N)
    edges = [_edges(part, bins) for part in (easy, hard)]
    places = [
        torch.bucketize(part.cpu().double(), edge[1:-1].contiguous(), right=True)
        for part, edge in zip((easy, hard), edges, strict=True)
    ]
    cell_N = places[0] * bins + places[1]
    median, count = (
        torch.full((bins * bins,), torch.nan, dtype=torch.float64),
        torch.bincount(cell_N, minlength=bins**2),
    )
    for cell in count.nonzero().flatten().tolist():
        # quantile, not median: torch's median of an even number is the lower of the middle two.
        median[cell] = w_N[cell_N == cell].quantile(0.5)
    return MedianMap(edges[0], edges[1], median.view(bins, bins), count.view(bins, bins))


def _edges(values_N: Tensor, bins: int) -> Tensor:
    low, high = float(values_N.min()), float(values_N.max())
    return torch.linspace(low, high, bins + 1, dtype=torch.float64)


def _validate(weights_N: Tensor) -> Tensor:
    w_N = weights_N.detach().cpu().double()
    if w_N.ndim != 1 or len(w_N) == 0:
        raise DataError(f"weights of shape {tuple(w_N.shape)}: one number per example is needed.")
    if not torch.isfinite(w_N).all() or (w_N < 0).any():
        raise DataError("weights must be finite and not negative.")
    return w_N
