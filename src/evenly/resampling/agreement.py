"""How well two partitions into easy and hard agree."""

from typing import NamedTuple

from torch import Tensor

from evenly.errors import UsageError


class Agreement(NamedTuple):
    """Three measures: share of examples marked alike, overlap of the hard ones, and agreement beyond chance.

    `same` is the share of examples on which both agree. `jaccard` is |A ∩ B| / |A ∪ B| of the hard examples (1 where
    neither has any). `adjusted_rand` is 1 for the same partition and 0 on average for random ones of the same sizes
    (Hubert & Arabie, 1985); it ignores which part is called hard.
    """

    same: float
    jaccard: float
    adjusted_rand: float


def agreement(hard_N: Tensor, other_N: Tensor) -> Agreement:
    """How well two masks, a boolean per example, agree; see `Agreement`.

    >>> import torch
    >>> a, b = torch.tensor([True, True, False, False]), torch.tensor([True, False, False, False])
    >>> agreement(a, b)
    Agreement(same=0.75, jaccard=0.5, adjusted_rand=0.0)
    """
    if hard_N.shape != other_N.shape or not len(hard_N):
        raise UsageError(f"{len(hard_N):,} examples against {len(other_N):,}: both must mark the same examples.")
    num = len(hard_N)
    both = int((hard_N & other_N).sum())
    one, two = int(hard_N.sum()), int(other_N.sum())
    neither = num - one - two + both
    union = one + two - both
    return Agreement((both + neither) / num, both / union if union else 1.0, _adjusted_rand(num, one, two, both))


def _adjusted_rand(num: int, one: int, two: int, both: int) -> float:
    """(pairs together in both − expected) / (mean of pairs together in each − expected), from the 2×2 table."""
    cells = (both, one - both, two - both, num - one - two + both)
    together = sum(map(_pairs, cells))
    first, second = _pairs(one) + _pairs(num - one), _pairs(two) + _pairs(num - two)
    if first == second == together:
        return 1.0  # the same partition, including a single part, where chance gives the same
    expected = first * second / _pairs(num)
    return (together - expected) / ((first + second) / 2 - expected)


def _pairs(num: int) -> int:
    return num * (num - 1) // 2
