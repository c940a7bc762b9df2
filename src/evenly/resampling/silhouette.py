"""How distinct the two parts of a cloud are.

Shapes: N points, D coordinates, M of them in the sample.
"""

import torch
from torch import Tensor

SAMPLE = 128  # points from which it is estimated: everywhere the same, so that two numbers can be compared


def silhouette(x_ND: Tensor, side_N: Tensor, *, sample: int = SAMPLE, rng: torch.Generator | None = None) -> float:
    """The mean of (b − a)/max(a, b): a the mean distance to one's own part, b to the other (Rousseeuw, 1987).

    From −1 to 1; near 0 where the parts are halves of one cloud. With more than `sample` points it is estimated from
    as many, drawn from both parts alike and weighted by the sizes of the parts, so that a small part is never missed.
    A point alone in its part counts 0; without two parts there is no silhouette (nan).

    >>> x = torch.tensor([[0.0], [1.0], [9.0], [10.0]])
    >>> round(silhouette(x, torch.tensor([False, False, True, True])), 3)
    0.889
    """
    parts = [side_N.nonzero().flatten(), (~side_N).nonzero().flatten()]
    if not all(map(len, parts)):
        return float("nan")
    chosen = [
        _drawn(part, room, rng) for part, room in zip(parts, _rooms(len(parts[0]), len(parts[1]), sample), strict=True)
    ]
    x_MD = x_ND[torch.cat(chosen)]
    x_MD -= x_MD.mean(dim=0)  # so that distances by matrix product lose no digits to what all points share
    square_M = torch.linalg.vector_norm(x_MD, dim=1).square_()
    distance_MM = torch.addmm(square_M[:, None] + square_M, x_MD, x_MD.T, alpha=-2).clamp_min_(0).sqrt_()
    first = len(chosen[0])
    total = 0.0
    for part, own, other in (
        (parts[0], distance_MM[:first, :first], distance_MM[:first, first:]),
        (parts[1], distance_MM[first:, first:], distance_MM[first:, :first]),
    ):
        if len(part) > 1:
            a = own.fill_diagonal_(0).sum(dim=1) / (len(own) - 1)
            b = other.mean(dim=1)
            # Where both are 0 all points coincide, and neither part is nearer.
            total += len(part) * float(((b - a) / torch.maximum(a, b)).nan_to_num(0.0).mean())
    return total / len(x_ND)


def _rooms(one: int, other: int, sample: int) -> tuple[int, int]:
    """How many of each part fit into the sample: half each, or what a small part leaves; at least two."""
    half = max(sample // 2, 2)
    if one + other <= sample:
        return one, other
    if one < half:
        return one, min(other, max(sample - one, 2))
    if other < half:
        return min(one, max(sample - other, 2)), other
    return half, half


def _drawn(members: Tensor, num: int, rng: torch.Generator | None) -> Tensor:
    if num >= len(members):
        return members
    if rng is None:
        rng = torch.Generator().manual_seed(0)
    order = torch.randperm(len(members), generator=rng, device=rng.device)[:num]
    return members[order.to(members.device)]
