"""The silhouette: how distinct the two parts of a cloud are, for one cloud or many at once.

Shapes: B clouds, N points (those of smaller clouds padded with zeros), D coordinates, M points in a sample.
"""

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

SAMPLE = 128  # points from which it is estimated, the same everywhere, so that any two silhouettes are comparable


def silhouette(x_ND: Tensor, side_N: Tensor, *, sample: int = SAMPLE, rng: torch.Generator | None = None) -> float:
    """The mean of (b − a)/max(a, b): a the mean distance to one's own part, b to the other (Rousseeuw, 1987).

    From −1 to 1; near 0 where the parts are halves of one cloud. With more than `sample` points it is estimated from
    as many, drawn from both parts alike and weighted by the sizes of the parts, so that a small part is never missed.
    A point alone in its part counts 0; without two parts there is no silhouette (nan).

    >>> x = torch.tensor([[0.0], [1.0], [9.0], [10.0]])
    >>> round(silhouette(x, torch.tensor([False, False, True, True])), 3)
    0.889
    """
    return silhouettes(x_ND[None], side_N[None], ~side_N[None], sample=sample, rng=rng).item()


def silhouettes(
    x_BND: Tensor, one_BN: Tensor, other_BN: Tensor, *, sample: int = SAMPLE, rng: torch.Generator | None = None
) -> Tensor:
    """The `silhouette` of each cloud, whose parts are `one_BN` and `other_BN`; padding is in neither.

    >>> x = torch.tensor([[[0.0], [1.0], [9.0]], [[5.0], [9.0], [0.0]]])
    >>> one = torch.tensor([[True, True, False], [True, False, False]])
    >>> other = torch.tensor([[False, False, True], [False, True, False]])
    >>> [round(value, 3) for value in silhouettes(x, one, other).tolist()]
    [0.588, 0.0]
    """
    size_B2 = torch.stack([one_BN.sum(dim=1), other_BN.sum(dim=1)], dim=1)
    part_BN2 = torch.stack([one_BN, other_BN], dim=2)
    if x_BND.shape[1] > sample and bool((size_B2.sum(dim=1) > sample).any()):
        chosen = [
            torch.cat([_draw(part, num, rng) for part, num in zip(parts, _shares(sizes, sample), strict=True)])
            for sizes, parts in (
                (sizes, (one.nonzero().flatten(), other.nonzero().flatten()))
                for sizes, one, other in zip(size_B2.tolist(), one_BN, other_BN, strict=True)
            )
        ]
        place_BM = pad_sequence(chosen, batch_first=True, padding_value=-1)
        real_BM1 = (place_BM >= 0)[..., None]
        place_BM = place_BM.clamp_min_(0)
        x_BND = x_BND.gather(1, place_BM[..., None].expand(-1, -1, x_BND.shape[2]))
        part_BN2 = part_BN2.gather(1, place_BM[..., None].expand(-1, -1, 2)) & real_BM1
    return _from_distances(x_BND, part_BN2, size_B2)


def _from_distances(x_BMD: Tensor, part_BM2: Tensor, size_B2: Tensor) -> Tensor:
    """The silhouettes of samples of clouds whose parts have these sizes."""
    part_BM2 = part_BM2.to(x_BMD.dtype)
    num_B12 = part_BM2.sum(dim=1, keepdim=True)
    # Centred, so that distances by matrix product do not lose digits to the common mean.
    x_BMD = x_BMD - torch.bmm(part_BM2.sum(dim=2)[:, None], x_BMD) / num_B12.sum(dim=2, keepdim=True)
    square_BM = torch.linalg.vector_norm(x_BMD, dim=2).square_()
    distance_BMM = torch.baddbmm(square_BM[:, :, None] + square_BM[:, None], x_BMD, x_BMD.mT, alpha=-2)
    distance_BMM = distance_BMM.clamp_min_(0).sqrt_()
    distance_BMM.diagonal(dim1=1, dim2=2).zero_()
    sums_BM2 = torch.bmm(distance_BMM, part_BM2)
    own_BM = (sums_BM2 * part_BM2).sum(dim=2) / ((num_B12 - 1) * part_BM2).sum(dim=2)
    other_BM = (sums_BM2 / num_B12 * part_BM2.flip(2)).sum(dim=2)
    # 0/0: all points coincide. A point alone in its part counts 0, and padding does not count.
    value_BM = ((other_BM - own_BM) / torch.maximum(own_BM, other_BM)).nan_to_num_(0.0)
    mean_B2 = (torch.bmm(value_BM[:, None], part_BM2) / num_B12)[:, 0]
    return ((size_B2 * mean_B2.double()).sum(dim=1) / size_B2.sum(dim=1)).where((size_B2 > 0).all(dim=1), torch.nan)


def _shares(sizes: list[int], sample: int) -> tuple[int, int]:
    """How many of each part are in the sample: half each, or what a small part leaves over; at least two."""
    one, other = sizes
    half = max(sample // 2, 2)
    if not one or not other:
        return 0, 0
    if one + other <= sample:
        return one, other
    if one < half:
        return one, min(other, max(sample - one, 2))
    if other < half:
        return min(one, max(sample - other, 2)), other
    return half, half


def _draw(members: Tensor, num: int, rng: torch.Generator | None) -> Tensor:
    if num >= len(members) or not num:
        return members[:num]
    if rng is None:
        rng = torch.Generator().manual_seed(0)
    order = torch.randperm(len(members), generator=rng, device=rng.device)[:num]
    return members[order.to(members.device)]
