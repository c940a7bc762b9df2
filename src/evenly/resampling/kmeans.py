"""2-means of many clouds of points at once: many short starts, of which the best run to convergence.

Shapes: B clouds, N points (those of smaller clouds padded with zeros), D coordinates, E = D + 1, R restarts.
"""

import logging
from typing import NamedTuple

import torch
from torch import Tensor

from evenly import memory

_log = logging.getLogger(__name__)

SHORT = 5  # Lloyd steps of every restart, after which the ranking of the restarts hardly changes
KEPT = 2  # restarts that continue to a fixed point
PIECE = 2**17  # numbers copied at once
_BYTES = 12  # per point and restart: its distance to the first start, and the cumulative sum of distances, in float64
_LITTLE = 1 << 26  # bytes assumed to be free
LONGEST = 300  # Lloyd steps of those, should rounding prevent a fixed point


class TwoMeans(NamedTuple):
    """A partition in two, and the sum of squared distances to the two means."""

    side: Tensor
    inertia: float


def two_means(x_ND: Tensor, *, rng: torch.Generator | None = None, restarts: int = 10) -> TwoMeans | None:
    """The best of `restarts` 2-means partitions of the points; None where all points are equal.

    Minimises Σ_k Σ_{i in C_k} ‖x_i − μ_k‖² (Nguyen et al., 2024, eq. 12) by Lloyd's algorithm from k-means++ starts
    (Arthur & Vassilvitskii, 2007). With two means the assignment is one cut, x·(μ₁ − μ₀) > (‖μ₁‖² − ‖μ₀‖²)/2, and
    the sums of one side give those of the other: a step of all restarts is two matrix products. All restarts make a
    few steps; the best few go on until no point changes sides.

    >>> x = torch.tensor([[0.0], [0.1], [5.0], [5.1], [5.2]])
    >>> halves = two_means(x, rng=torch.Generator().manual_seed(0))
    >>> sorted([halves.side.sum().item(), (~halves.side).sum().item()]), round(halves.inertia, 3)
    ([2, 3], 0.025)
    >>> two_means(torch.ones(4, 2)) is None
    True
    """
    side_N = bisect(x_ND, rng=rng, restarts=restarts)
    if side_N is None:
        return None
    mean_12D = means(x_ND[None], side_N[None], ~side_N[None])
    return TwoMeans(side_N, inertias(x_ND[None], side_N[None], mean_12D).item())


def bisect(x_ND: Tensor, *, rng: torch.Generator | None = None, restarts: int = 10) -> Tensor | None:
    """The side of each point in `two_means`, without its inertia."""
    if rng is None:
        rng = torch.Generator().manual_seed(0)
    x_1NE = x_ND.new_empty(1, len(x_ND), x_ND.shape[1] + 1)
    x_1NE[0, :, :-1] = x_ND
    count_1 = torch.tensor([len(x_ND)], device=x_ND.device)
    center_1D = center(x_1NE, count_1)
    draws_R2 = torch.rand(restarts, 2, generator=rng, device=rng.device, dtype=torch.float64)
    side_N = two_sides(x_1NE, count_1, center_1D, draws_R2[None])[0]
    return side_N if bool(side_N.any()) else None


def center(x_BNE: Tensor, count_B: Tensor) -> Tensor:
    """Prepare points for `two_sides` in place: subtract each cloud's mean, which is returned, and set the last column.

    Centring keeps large squares from swamping differences. The last column is 1, and 0 for padding: it carries
    thresholds and counts, and keeps padding, which is all zeros, out of every sum.

    >>> x = torch.tensor([[[1.0, 0.0], [3.0, 0.0]]])
    >>> center(x, torch.tensor([2])), x
    (tensor([[2.]]), tensor([[[-1.,  1.], [ 1.,  1.]]]))
    """
    x_BND = x_BNE[..., :-1]
    center_BD = x_BND.sum(dim=1) / count_B[:, None]
    x_BND -= center_BD[:, None]
    x_BNE[..., -1] = 1
    if len(x_BNE) > 1:
        x_BNE *= point_mask(count_B, x_BNE.shape[1])[..., None]
    return center_BD


def point_mask(count_B: Tensor, num: int) -> Tensor:
    """Which of `num` places of each cloud hold a point rather than padding.

    >>> point_mask(torch.tensor([1, 2]), 2).tolist()
    [[True, False], [True, True]]
    """
    return torch.arange(num, device=count_B.device) < count_B[:, None]


def two_sides(x_BNE: Tensor, count_B: Tensor, center_BD: Tensor, draws_BR2: Tensor) -> Tensor:
    """Whether each point is on the second side of `two_means`' partition; False throughout a cloud of equal points.

    The points come from `center`; every restart takes a pair of uniform numbers.
    """
    num = x_BNE.shape[1]
    square_BN = torch.linalg.vector_norm(x_BNE[..., :-1], dim=2).square_()
    scatter_B = square_BN.sum(dim=1, dtype=torch.float64)
    differ_B = (scatter_B > count_B * _rounding(center_BD)) & (count_B > 1)
    if not bool(differ_B.any()):
        return torch.zeros(len(x_BNE), num, dtype=torch.bool, device=x_BNE.device)
    begun = []
    for draws_BQ2 in torch.split(draws_BR2.to(x_BNE.device), _at_once(x_BNE, draws_BR2.shape[1]), dim=1):
        cut_BQE, _, between_BQ = _lloyd(x_BNE, count_B, _starts(x_BNE, square_BN, count_B, draws_BQ2), SHORT)
        begun.append((cut_BQE, between_BQ))
    cut_BRE, between_BR = begun[0] if len(begun) == 1 else (torch.cat(each, dim=1) for each in zip(*begun, strict=True))
    best_BR = between_BR.topk(min(KEPT, between_BR.shape[1]), dim=1).indices
    _, side_BRN, between_BR = _lloyd(x_BNE, count_B, _take(cut_BRE, best_BR), LONGEST)
    side_BN = _take(side_BRN, between_BR.argmax(dim=1, keepdim=True))[:, 0] > 0
    on_B = side_BN.sum(dim=1)
    in_second_BN: Tensor = side_BN & (differ_B & (on_B > 0) & (on_B < count_B))[:, None]
    return in_second_BN


def means(x_BND: Tensor, *side_BN: Tensor) -> Tensor:
    """The mean of each cloud's points on each of the given sides, B × sides × D; nan for none.

    >>> means(torch.tensor([[[0.0], [2.0], [7.0]]]), torch.tensor([[True, True, False]])).tolist()
    [[[1.0]]]
    """
    side_BSN = torch.stack(side_BN, dim=1).to(x_BND.dtype)
    return side_BSN @ x_BND / side_BSN.sum(dim=2, keepdim=True)


def inertias(x_BND: Tensor, side_BN: Tensor, mean_B2D: Tensor, real_BN: Tensor | None = None) -> Tensor:
    """Σ ‖x_i − mean of its side‖² of each cloud; `mean_B2D` holds the mean where `side_BN` is true first.

    >>> x, side = torch.tensor([[[0.0], [2.0], [7.0]]]), torch.tensor([[True, True, False]])
    >>> inertias(x, side, means(x, side, ~side)).tolist()
    [2.0]
    """
    total_B = torch.zeros(len(x_BND), dtype=torch.float64, device=x_BND.device)
    size = max(PIECE // (len(x_BND) * x_BND.shape[2]), 1)
    for start in range(0, x_BND.shape[1], size):
        part = slice(start, start + size)
        mean_BPD = torch.where(side_BN[:, part, None], mean_B2D[:, :1], mean_B2D[:, 1:])
        square_BP = torch.linalg.vector_norm(x_BND[:, part] - mean_BPD, dim=2).square_()
        if real_BN is not None:  # padding has a distance too, which is nan where a side is empty
            square_BP = torch.where(real_BN[:, part], square_BP, 0.0)
        total_B += square_BP.sum(dim=1, dtype=torch.float64)
    return total_B


def _starts(x_BNE: Tensor, square_BN: Tensor, count_B: Tensor, draws_BR2: Tensor) -> Tensor:
    """The cut between two starting points per restart: the first uniform, the second ∝ squared distance to it."""
    last_B1 = count_B[:, None] - 1
    first_BR = torch.minimum((draws_BR2[..., 0] * count_B[:, None]).long(), last_B1)
    first_BRE = _take(x_BNE, first_BR)
    # 2 x·y − ‖x‖² − ‖y‖², the last for points only: padding has distance 0 and is never drawn.
    away_BRE = 2 * first_BRE
    away_BRE[..., -1] = -square_BN.gather(1, first_BR)
    distance_BRN = torch.baddbmm(square_BN[:, None], away_BRE, x_BNE.mT, alpha=-1).clamp_min_(0)
    mass_BRN = distance_BRN.cumsum(dim=2, dtype=torch.float64)
    target_BR1 = draws_BR2[..., 1:] * mass_BRN[..., -1:]
    second_BR = torch.searchsorted(mass_BRN, target_BR1.contiguous(), right=True)[..., 0]
    second_BRE = _take(x_BNE, torch.minimum(second_BR, last_B1))
    # The plane halfway between two points: x is on the side of the second where cut·[x, 1] > 0.
    cut_BRE = second_BRE - first_BRE
    cut_BRE[..., -1] = ((first_BRE - second_BRE) * (first_BRE + second_BRE)).sum(dim=2) / 2
    return cut_BRE


def _lloyd(x_BNE: Tensor, count_B: Tensor, cut_BRE: Tensor, steps: int) -> tuple[Tensor, Tensor, Tensor]:
    """Lloyd's steps of all restarts, until none changes; cuts, sides (0 or 1) and scatter between the two means.

    The points are centred, so with s the sum of the n₁ of N points on one side the means are s/n₁ and −s/(N − n₁), the
    scatter between them is b = N‖s‖²/(n₁(N − n₁)), and the plane half way, up to a factor, s·x + b(n₁/N − ½) = 0.
    """
    inverse_B1 = count_B.to(x_BNE.dtype).reciprocal()[:, None]
    side_BRN = x_BNE.new_empty(*cut_BRE.shape[:2], x_BNE.shape[1])
    sums_BRE = x_BNE.new_full(cut_BRE.shape, float("nan"))
    between_BR = x_BNE.new_zeros(cut_BRE.shape[:2])
    x_BEN = x_BNE.mT
    for _ in range(steps):
        torch.gt(torch.bmm(cut_BRE, x_BEN), 0, out=side_BRN)
        before_BRE, sums_BRE = sums_BRE, torch.bmm(side_BRN, x_BNE)
        if torch.equal(sums_BRE, before_BRE):
            break
        # As few operations as possible: in small clouds their number, not the arithmetic, decides what a step costs.
        num_BR = sums_BRE[..., -1]
        share_BR = num_BR * inverse_B1
        between_BR = torch.linalg.vector_norm(sums_BRE[..., :-1], dim=2).square_()
        between_BR /= torch.addcmul(num_BR, num_BR, share_BR, value=-1).clamp_min_(0.25)  # 0 for an empty side
        cut_BRE = sums_BRE.clone()
        torch.mul(between_BR, share_BR.sub_(0.5), out=cut_BRE[..., -1])
    return cut_BRE, side_BRN, between_BR


def _at_once(x_BNE: Tensor, restarts: int) -> int:
    """How many restarts run together: all, or as many as fit into the memory budget."""
    each = x_BNE.shape[0] * x_BNE.shape[1] * _BYTES
    if restarts * each <= _LITTLE or restarts * each <= (room := memory.budget(x_BNE.device)):
        return restarts
    num = max(1, room // each)
    _log.warning(
        "2-means of %s points makes %d of its %d restarts at a time: all of them need %.1f GB on %s, and %.1f may be "
        "planned for. That is slower; fewer restarts need less.",
        f"{x_BNE.shape[1]:,}", num, restarts, restarts * each / 1e9, x_BNE.device, room / 1e9,
    )  # fmt: skip
    return num


def _take(values_BNE: Tensor, place_BR: Tensor) -> Tensor:
    """Rows of each cloud by their places, B × R × E."""
    return values_BNE.gather(1, place_BR[..., None].expand(-1, -1, values_BNE.shape[2]))


def _rounding(center_BD: Tensor) -> Tensor:
    """The largest squared distance of equal points from rounding alone, after the mean was subtracted."""
    return center_BD.square().sum(dim=1) * (4 * torch.finfo(center_BD.dtype).eps) ** 2
