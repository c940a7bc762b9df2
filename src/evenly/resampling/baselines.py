"""The rivals of 2-means and the controls every comparison needs.

Nguyen et al. (2024), tables 2, 3, 5 and 6: random upsampling of as many examples, loss upweighting of the same
examples, loss above the median, and misclassified.

Shapes: N examples.
"""

import math
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from evenly.errors import UsageError
from evenly.resampling.class_statistics import splits_by_loss
from evenly.resampling.matching import positions
from evenly.resampling.separation import Separation


def upper_share(value_N: Tensor, share: float = 0.5) -> Tensor:
    """The examples whose value lies above the (1 − share) quantile; above the median by default.

    Strictly above: where many values equal the quantile, fewer than the share are marked, never more.

    >>> upper_share(torch.tensor([1.0, 5.0, 2.0, 9.0])).tolist()
    [False, True, False, True]
    """
    # A share times a number may miss a whole number by rounding: 0.29 · 100 is below 29.
    num = math.floor(share * len(value_N) + 1e-9)
    if num == 0:
        return torch.zeros(len(value_N), dtype=torch.bool)
    if num == len(value_N):
        return torch.ones(len(value_N), dtype=torch.bool)
    # By sorting: torch.quantile refuses more than 16 million values and interpolates between two.
    threshold = value_N.sort().values[len(value_N) - num - 1]
    return value_N > threshold


def misclassified(prediction_N: Tensor, label_N: Tensor) -> Tensor:
    """The examples whose predicted class is not their label.

    >>> misclassified(torch.tensor([0, 1, 1]), torch.tensor([0, 0, 1])).tolist()
    [False, True, False]
    """
    return prediction_N != label_N


def require_generator(rng: object) -> torch.Generator:
    """The same generator; a `UsageError` for anything else, such as a seed.

    >>> require_generator(0)
    Traceback (most recent call last):
    evenly.errors.UsageError: rng=0 is not a torch.Generator: give torch.Generator().manual_seed(0).
    """
    if isinstance(rng, torch.Generator):
        return rng
    seed = rng if isinstance(rng, int) else 0
    raise UsageError(f"rng={rng!r} is not a torch.Generator: give torch.Generator().manual_seed({seed}).")


def random_subset(num: int, num_drawn: int, *, rng: torch.Generator) -> Tensor:
    """`num_drawn` of `num` examples, every set of them equally likely.

    >>> random_subset(10, 3, rng=torch.Generator().manual_seed(0)).sum().item()
    3
    """
    mask_N = torch.zeros(num, dtype=torch.bool)
    rng = require_generator(rng)
    mask_N[torch.randperm(num, generator=rng, device=rng.device)[:num_drawn].cpu()] = True
    return mask_N


def random_like(separation: Separation, *, rng: torch.Generator) -> Separation:
    """The control of random upsampling: as many examples as `separation` calls hard, drawn uniformly from all.

    Both thus show equally many examples. The number in each class is left to chance, since which classes are hard is
    part of the method's result.

    >>> from evenly.resampling import separate
    >>> separation = separate(torch.tensor([[4.0, 0], [5, 0], [0, 0.1], [0, 4], [0, 5], [0.1, 0]]), [0, 0, 0, 1, 1, 1])
    >>> random_like(separation, rng=torch.Generator().manual_seed(0)).num_hard == separation.num_hard
    True
    """
    return in_places(separation, random_places(separation.hard, rng=rng))


def random_places(hard_N: Tensor, *, rng: torch.Generator, staying: Tensor | None = None) -> Tensor:
    """For every row the row whose part it plays, so that random rows play the hard ones: a permutation.

    Rows in `staying` keep their own part. Whatever belongs to a row, such as how often it is shown, moves with it.

    >>> hard = torch.tensor([True, False, False, True, False])
    >>> places = random_places(hard, rng=torch.Generator().manual_seed(0), staying=torch.tensor([0]))
    >>> places.sort().values.tolist(), hard[places].sum().item(), places[0].item()
    ([0, 1, 2, 3, 4], 2, 0)
    """
    rng = require_generator(rng)
    moving_N = torch.ones(len(hard_N), dtype=torch.bool)
    if staying is not None:
        moving_N[staying] = False
    row_M = moving_N.nonzero().flatten()
    drawn_M = row_M[torch.randperm(len(row_M), generator=rng, device=rng.device).cpu()]
    place_N = torch.arange(len(hard_N))
    place_N[drawn_M] = row_M[(~hard_N[row_M]).to(torch.int8).argsort(stable=True)]  # the hard ones first
    return place_N


def in_places(separation: Separation, place_N: Tensor) -> Separation:
    """The separation in which each row is as hard as the row whose place it takes (`random_places`)."""
    hard_N = separation.hard[place_N]
    splits = splits_by_loss(hard_N, separation.labels, separation.losses)
    return replace(separation, hard=hard_N, splits=splits, method="random", remarks=(), distinctness={})


def upweight(separation: Separation, *, factor: float = 2.0, dataset: Any = None) -> Tensor:
    """The control of upweighting: the weight of each example's loss, `factor` where it is hard and 1 elsewhere.

    The weights are in the order of `dataset`, which must be the one that was separated, or else of the separated rows.
    Nguyen et al. (2024), table 5, double the loss of hard examples and normalise nothing.

    >>> from evenly.resampling import separate
    >>> upweight(separate(torch.tensor([[4.0, 0.0], [0.0, 1.0], [0.0, 4.0], [1.0, 0.0]]), [0, 0, 1, 1])).tolist()
    [1.0, 2.0, 1.0, 2.0]
    """
    if not (math.isfinite(factor) and factor > 0):
        raise UsageError(f"factor={factor}: the weight of a hard example is a positive number; 2 is usual.")
    weight_N = torch.where(separation.hard, float(factor), 1.0)
    if dataset is None:
        return weight_N
    ordered_N = torch.empty_like(weight_N)
    where_N = positions(dataset, separation.index, separation.labels, by_position=separation.by_position)
    ordered_N[where_N] = weight_N
    return ordered_N


def reweight(separation: Separation, *, factor: float = 2.0, dataset: Any = None) -> Tensor:
    """Weights in the proportions of `upweight` whose mean over all examples is 1: copies without more steps.

    w = N·f/Σf with f = `factor` where an example is hard and 1 elsewhere. The mean loss keeps its scale, so that the
    learning rate keeps its meaning, and an epoch has as many steps as before. Every example counts in an epoch's
    gradient as it would with `factor` copies, but each step sees it at most once.

    >>> from evenly.resampling import separate
    >>> separation = separate(torch.tensor([[4.0, 0.0], [0.0, 1.0], [0.0, 4.0], [1.0, 0.0]]), [0, 0, 1, 1])
    >>> reweight(separation, factor=3).tolist()
    [0.5, 1.5, 0.5, 1.5]
    """
    weight_N = upweight(separation, factor=factor, dataset=dataset)
    return weight_N / weight_N.mean()
