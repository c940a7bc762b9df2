"""Held-out examples of data without a split: a fixed random share of every class."""

import torch
from torch import Tensor

from evenly.data.splits import Splits
from evenly.errors import UsageError
from evenly.rng import generator

USUAL = 0.2  # of data that come without a test split


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
    mask = held_out_mask(splits.train.labels, share=share, key=splits.name)
    return splits | {"train": splits.train.subset(where(~mask)), "validation": splits.train.subset(where(mask))}


def with_test(splits: Splits, *, share: float | None = None, has_validation: bool = False) -> Splits:
    """The same splits with a share of the training examples, class by class, moved to `test`, and a remark on it.

    Without a `share`, a fifth of data that have nothing but `train`, unless a validation set will be held out or rows
    are repeated on purpose. Which examples these are depends on the labels alone, wherever the data lie.

    >>> from evenly.data import Labelled
    >>> data = Labelled(torch.zeros(20, 2), torch.arange(20) % 2, ("a", "b"), name="mine")
    >>> parts = with_test(Splits("mine", {"train": data}))
    >>> len(parts.train), len(parts["test"]), parts.remarks
    (16, 4, ('mine has no test split: a fifth of every class is held out as test, 4 of 20 examples (--set ...',))
    """
    if share is None:
        if has_validation or len(splits) > 1 or splits.repeated:
            return splits
        share = USUAL
    if not 0 <= share < 1:
        raise UsageError(f"held_out = {share} is a share of the training set: give a number from 0 to below 1.")
    if share == 0:
        return splits
    if "test" in splits:
        raise UsageError(f"{splits.name} has a test split: leave `held_out` out.")
    if splits.repeated:
        raise UsageError(
            f"{splits.name} repeats rows: copies of held-out examples would be trained on. Give it a column `split`."
        )
    mask = held_out_mask(splits.train.labels, share=share, key="test")
    if not bool(mask.any()):
        return splits
    part = "a fifth" if share == USUAL else f"{share:.0%}"
    but = " with two examples or more" if bool((splits.train.labels.bincount() == 1).any()) else ""
    remark = (
        f"{splits.name} has no test split: {part} of every class{but} is held out as test, {int(mask.sum()):,} of "
        f"{len(mask):,} examples (--set held_out=0, in Python held_out=0, trains on all)."
    )
    made = splits | {"train": splits.train.subset(where(~mask)), "test": splits.train.subset(where(mask), split="test")}
    made.remarks = (*splits.remarks, remark)
    made.test_is_held_out = True
    return made


def held_out_mask(labels_N: Tensor, *, share: float, key: str) -> Tensor:
    """A boolean per example: a fixed random `share` of every class (rounded), of two or more at least one and not all.

    >>> held_out_mask(torch.tensor([0] * 10 + [1] * 20), share=0.1, key="doc").sum().item()
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
