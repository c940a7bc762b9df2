"""SPARE's balance: clusters of a class weigh alike, whatever their size, and so do classes.

Shapes: N examples.
"""

import math

import torch
from torch import Tensor

from evenly.errors import UsageError
from evenly.resampling.separation import Separation

DISTINCT = 0.9  # the silhouette from which SPARE takes power 1


def balance_weights(separation: Separation, *, power: float | None = None) -> Tensor:
    """The weight of each example, in the order of the separation's rows: ∝ (1/size of its cluster)^λ, mean 1.

    As in SPARE (Yang et al., 2024), λ = 1 where a class has a silhouette of 0.9 or more, which gives both clusters the
    same total weight; below, λ = 2, so that the smaller cluster outweighs the larger one where the two overlap. `power`
    sets one λ for all classes. All classes have the same total weight. SPARE draws examples with these probabilities,
    with replacement, and clusters softmax outputs into as many parts as the silhouette suggests; here the weights are
    those of the two clusters of `separation`.

    >>> from evenly.resampling import separate
    >>> z = torch.tensor([[4.0, 0.0], [4.1, 0.0], [4.2, 0.0], [0.0, 0.1]])
    >>> balance_weights(separate(z, [0, 0, 0, 0]), power=1).tolist()
    [0.6666666865348816, 0.6666666865348816, 0.6666666865348816, 2.0]
    """
    if power is not None and not (math.isfinite(power) and power >= 0):
        raise UsageError(f"power={power}: the exponent of cluster sizes is 0 or more; 1 balances them.")
    weight_N = torch.ones(len(separation), dtype=torch.float64)
    for split in separation.splits:
        members_N = separation.labels == split.label
        exponent = power if power is not None else 1.0 if split.silhouette >= DISTINCT else 2.0
        if split.has_both_parts:
            hard_N = members_N & separation.hard
            weight_N[hard_N] = split.num_hard**-exponent
            weight_N[members_N & ~separation.hard] = split.num_easy**-exponent
        weight_N[members_N] /= weight_N[members_N].sum()
    return (weight_N * (len(separation) / weight_N.sum())).float()


def balance_factors(separation: Separation, *, most: int, power: float | None = None) -> Tensor:
    """`balance_weights` as whole factors: the lightest example occurs once, others in proportion, at most `most` times.

    >>> from evenly.resampling import separate
    >>> z = torch.tensor([[4.0, 0.0], [4.1, 0.0], [4.2, 0.0], [0.0, 0.1]])
    >>> balance_factors(separate(z, [0, 0, 0, 0]), most=8, power=1).tolist()
    [1, 1, 1, 3]
    """
    if most < 1:
        raise UsageError(f"most={most}: every example occurs at least once.")
    weight_N = balance_weights(separation, power=power)
    return (weight_N / weight_N.min()).round().long().clamp(1, most)
