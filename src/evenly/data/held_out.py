"""A validation set where the publisher gives none: a fixed random share of every class."""

import torch
from torch import Tensor

from evenly.data.labelled import Splits
from evenly.errors import UsageError
from evenly.rng import generator


def with_validation(splits: Splits, *, share: float) -> Splits:
    """The same splits with `share` of the training examples, class by class, moved to `validation`.

    The choice depends on the name of the data set and nothing else, so that every run holds out the same ones.

    >>> from evenly.data.digits import digits
    >>> parts = with_validation(digits(), share=0.1)
    >>> len(parts.train), len(parts["validation"])
    (1295, 143)
    """
    if not 0 < share < 1:
        raise UsageError(f"validation = {share} is a share of the training set: give a number between 0 and 1.")
    if "validation" in splits:
        raise UsageError(f"{splits.name} has a published validation split: leave `validation` out.")
    mask = held_out(splits.train.labels, share=share, key=splits.name)
    return splits | {"train": splits.train.subset(where(~mask)), "validation": splits.train.subset(where(mask))}


def held_out(labels_N: Tensor, *, share: float, key: str) -> Tensor:
    """A boolean per example: a fixed random `share` of every class (rounded), of two or more at least one and not all.

    >>> held_out(torch.tensor([0] * 10 + [1] * 20), share=0.1, key="doc").sum().item()
    3
    """
    mask_N = torch.zeros(len(labels_N), dtype=torch.bool)
    for label in sorted(set(labels_N.tolist())):
        members = where(labels_N == label)
        num = min(max(round(share * len(members)), 1), len(members) - 1) if len(members) > 1 and share > 0 else 0
        chosen = torch.randperm(len(members), generator=generator(0, "held out", key, label))[:num]
        mask_N[members[chosen]] = True
    return mask_N


def where(mask_N: Tensor) -> Tensor:
    """The positions at which the mask is true.

    >>> where(torch.tensor([True, False, True])).tolist()
    [0, 2]
    """
    return mask_N.nonzero().flatten()
