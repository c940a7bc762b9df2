"""2-means of one cloud of points: many short starts at once, then the best of them to the end.

Shapes: N points, D coordinates, R restarts.
"""

from typing import NamedTuple

import torch
from torch import Tensor

SHORT = 5  # Lloyd steps of every restart: after these the order of the restarts hardly changes any more
KEPT = 2  # restarts that go on to a fixed point
PIECE = 2**17  # numbers that are copied at once
LONGEST = 300  # Lloyd steps of those, if rounding should keep them from one


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
    >>> found = two_means(x, rng=torch.Generator().manual_seed(0))
    >>> sorted([found.side.sum().item(), (~found.side).sum().item()]), round(found.inertia, 3)
    ([2, 3], 0.025)
    >>> two_means(torch.ones(4, 2)) is None
    True
    """
    if rng is None:
        rng = torch.Generator().manual_seed(0)
    x_NE = x_ND.new_empty(len(x_ND), x_ND.shape[1] + 1)
    x_NE[:, :-1] = x_ND
    center_D = centre(x_NE)
    side_N = sides(x_NE, center_D, torch.rand(restarts, 2, generator=rng, device=rng.device, dtype=torch.float64))
    return None if side_N is None else TwoMeans(side_N, inertia_of(x_ND, side_N))


def centre(x_NE: Tensor) -> Tensor:
    """Make points ready for `sides`, in place: take off their mean, which is returned, and fill the last column with 1.

    Centred, squares do not drown differences; the column of ones carries thresholds and counts.

    >>> x = torch.tensor([[1.0, 0.0], [3.0, 0.0]])
    >>> centre(x), x
    (tensor([2.]), tensor([[-1.,  1.], [ 1.,  1.]]))
    """
    x_ND = x_NE[:, :-1]
    center_D = x_ND.mean(dim=0)
    x_ND -= center_D
    x_NE[:, -1] = 1
    return center_D


def sides(x_NE: Tensor, center_D: Tensor, draws_R2: Tensor) -> Tensor | None:
    """The partition of `two_means` for points made ready by `centre`, from a pair of uniform numbers per restart."""
    square_N = torch.linalg.vector_norm(x_NE[:, :-1], dim=1).square_()
    scatter = float(square_N.sum(dtype=torch.float64))
    if scatter <= len(x_NE) * _rounding(center_D) or len(x_NE) < 2:
        return None
    cut_RE = _starts(x_NE, square_N, draws_R2.to(x_NE.device))
    cut_RE, _, between_R = _lloyd(x_NE, cut_RE, SHORT)
    best = between_R.topk(min(KEPT, len(between_R))).indices
    _, side_RN, between_R = _lloyd(x_NE, cut_RE[best], LONGEST)
    winner = int(between_R.argmax())
    side_N = side_RN[winner] > 0
    return side_N if 0 < int(side_N.sum()) < len(side_N) else None


def inertia_of(x_ND: Tensor, side_N: Tensor, mean_2D: Tensor | None = None) -> float:
    """Σ ‖x_i − mean of its side‖²; an empty side adds nothing. The means can be given if they are known.

    >>> inertia_of(torch.tensor([[0.0], [2.0], [7.0]]), torch.tensor([True, True, False]))
    2.0
    """
    mean_2D = torch.nan_to_num(means_of(x_ND, side_N) if mean_2D is None else mean_2D)
    total = 0.0
    size = max(PIECE // x_ND.shape[1], 1)
    for x, side in zip(torch.split(x_ND, size), torch.split(side_N, size), strict=True):
        total += float((x - mean_2D[side.long()]).square_().sum(dtype=torch.float64))
    return total


def means_of(x_ND: Tensor, side_N: Tensor) -> Tensor:
    """The mean of the points where `side_N` is false, and where it is true; nan for none.

    >>> means_of(torch.tensor([[0.0], [2.0], [7.0]]), torch.tensor([True, True, False])).tolist()
    [[7.0], [1.0]]
    """
    side_2N = torch.stack([~side_N, side_N]).to(x_ND.dtype)
    return side_2N @ x_ND / side_2N.sum(dim=1, keepdim=True)


def _starts(x_NE: Tensor, square_N: Tensor, draws_R2: Tensor) -> Tensor:
    """The cut between two starting points per restart: the first uniform, the second ∝ squared distance to it."""
    num = len(x_NE)
    x_ND = x_NE[:, :-1]
    first_R = (draws_R2[:, 0] * num).long().clamp_max_(num - 1)
    distance_RN = torch.addmm(square_N, x_ND[first_R], x_ND.T, alpha=-2).add_(square_N[first_R][:, None]).clamp_min_(0)
    mass_RN = distance_RN.cumsum(dim=1, dtype=torch.float64)
    second_R1 = torch.searchsorted(mass_RN, draws_R2[:, 1:] * mass_RN[:, -1:], right=True).clamp_max_(num - 1)
    return _cut(x_ND[first_R], x_ND[second_R1[:, 0]])


def _cut(low_RD: Tensor, high_RD: Tensor) -> Tensor:
    """The plane half way between two points: x lies on the side of `high` where cut·[x, 1] > 0."""
    offset_R1 = ((low_RD - high_RD) * (low_RD + high_RD)).sum(dim=1, keepdim=True) / 2
    return torch.cat([high_RD - low_RD, offset_R1], dim=1)


def _lloyd(x_NE: Tensor, cut_RE: Tensor, steps: int) -> tuple[Tensor, Tensor, Tensor]:
    """Lloyd's steps of all restarts, until none changes; cuts, sides (0 or 1) and scatter between the two means.

    The points are centred, so with s the sum of the n₁ of N points on one side the means are s/n₁ and −s/(N − n₁), the
    scatter between them is b = N‖s‖²/(n₁(N − n₁)), and the plane half way, up to a factor, s·x + b(n₁/N − ½) = 0.
    """
    num = len(x_NE)
    side_RN = x_NE.new_empty(len(cut_RE), num)
    sums_RE = x_NE.new_full(cut_RE.shape, float("nan"))
    between_R = x_NE.new_zeros(len(cut_RE))
    for _ in range(steps):
        torch.gt(cut_RE @ x_NE.T, 0, out=side_RN)
        before_RE, sums_RE = sums_RE, side_RN @ x_NE
        if torch.equal(sums_RE, before_RE):
            break
        # As few operations as can be: for small classes they, and not the arithmetic, are what a step costs.
        count_R = sums_RE[:, -1]
        between_R = torch.linalg.vector_norm(sums_RE[:, :-1], dim=1).square_()
        between_R /= torch.addcmul(count_R, count_R, count_R, value=-1 / num).clamp_min_(0.25)  # 0 for an empty side
        cut_RE = sums_RE.clone()
        torch.addcmul(between_R * -0.5, between_R, count_R, value=1 / num, out=cut_RE[:, -1])
    return cut_RE, side_RN, between_R


def _rounding(center_D: Tensor) -> float:
    """The squared distance that equal points may show after the mean was taken off, by rounding alone."""
    return float(center_D.square().sum()) * (4 * torch.finfo(center_D.dtype).eps) ** 2
