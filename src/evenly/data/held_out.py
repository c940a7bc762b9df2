"""Held-out examples of data without a split: a fixed random share of every class.

Shapes: N examples, K of them that may be held out.
"""

import torch
from torch import Tensor

from evenly.data.formats.same_files import file_numbers
from evenly.data.labelled import Labelled
from evenly.data.splits import Splits
from evenly.errors import UsageError
from evenly.rng import generator

USUAL = 0.2  # of data that come without a test split


def with_validation(splits: Splits, *, share: float) -> Splits:
    """The same splits with `share` of the training examples, class by class, moved to `validation`.

    The choice depends on the name of the data set and nothing else, so that every run holds out the same ones. Of an
    image file that is listed several times, no copy is trained on where another is held out.

    >>> from evenly.data.digits import digits
    >>> parts = with_validation(digits(), share=0.1)
    >>> len(parts.train), len(parts["validation"])
    (1295, 143)
    """
    if not 0 < share < 1:
        raise UsageError(f"validation = {share} is a share of the training set: give a number between 0 and 1.")
    if "validation" in splits:
        raise UsageError(f"{splits.name} has a published validation split: leave `validation` out.")
    mask, copies = _held_out(splits.train, share=share, key=splits.name)
    kept, held = splits.train.subset(where(~mask & ~copies)), splits.train.subset(where(mask))
    made = splits | {"train": kept, "validation": held}
    if bool(copies.any()):
        made.remarks = (*made.remarks, f"{_left_out(copies)} of files held out as validation.")
    return made


def with_test(splits: Splits, *, share: float | None = None, has_validation: bool = False) -> Splits:
    """The same splits with a share of the training examples, class by class, moved to `test`, and a remark on it.

    Without a `share`, a fifth of data that have nothing but `train`, unless a validation set will be held out or rows
    are repeated on purpose. Which examples these are depends on the labels alone, wherever the data lie. Of an image
    file that is listed several times, no copy is trained on where another is held out.

    >>> from evenly.data import Labelled
    >>> data = Labelled(torch.zeros(20, 2), torch.arange(20) % 2, ("a", "b"), name="mine")
    >>> parts = with_test(Splits("mine", {"train": data}))
    >>> len(parts.train), len(parts["test"]), parts.remarks
    (16, 4, ('mine has no test split: a fifth of every class is held out as test, 4 of 20 examples (--set ...',))
    """
    if share is None:
        if has_validation or len(splits) > 1:
            return splits
        if splits.repeated:
            splits.remarks = (
                *splits.remarks,
                f"{splits.name} repeats rows and has no test split: nothing is held out, as copies of it would be "
                "trained on, so that no error but that of training is known. Give it a column `split` with test rows.",
            )
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
    mask, copies = _held_out(splits.train, share=share, key="test")
    if not bool(mask.any()):
        return splits
    part = "a fifth" if share == USUAL else f"{share:.0%}"
    but = " with two examples or more" if bool((splits.train.labels.bincount() == 1).any()) else ""
    remark = (
        f"{splits.name} has no test split: {part} of every class{but} is held out as test, {int(mask.sum()):,} of "
        f"{len(mask):,} examples (--set held_out=0, in Python held_out=0, trains on all)."
    )
    if bool(copies.any()):
        remark += f" {_left_out(copies)} of files held out."
    kept, held = splits.train.subset(where(~mask & ~copies)), splits.train.subset(where(mask), split="test")
    made = splits | {"train": kept, "test": held}
    made.remarks = (*splits.remarks, remark)
    made.test_is_held_out = True
    return made


def _held_out(data: Labelled, *, share: float, key: str) -> tuple[Tensor, Tensor]:
    """Which examples are held out, and which are further copies of their files, to be left out altogether.

    A file in several classes is never held out: it could take a class's last training example with it.
    """
    labels_N = data.labels.cpu()
    file_N = file_numbers(data.inputs)
    if file_N is None:
        mask_N = held_out_mask(labels_N, share=share, key=key)
        return mask_N, torch.zeros_like(mask_N)
    num = int(file_N.max()) + 1
    low, high = (
        torch.zeros(num, dtype=torch.int64).scatter_reduce(0, file_N, labels_N, how, include_self=False)
        for how in ("amin", "amax")
    )
    positions_N = torch.arange(len(file_N))
    first = torch.zeros(num, dtype=torch.int64).scatter_reduce(0, file_N, positions_N, "amin", include_self=False)
    may_K = where((first[file_N] == positions_N) & (low == high)[file_N])
    mask_N = torch.zeros(len(file_N), dtype=torch.bool)
    mask_N[may_K] = held_out_mask(labels_N[may_K], share=share, key=key)
    return mask_N, torch.isin(file_N, file_N[mask_N]) & ~mask_N


def _left_out(copies: Tensor) -> str:
    num = int(copies.sum())
    return f"{num:,} further {'copy is' if num == 1 else 'copies are'} left out"


def held_out_mask(labels_N: Tensor, *, share: float, key: str) -> Tensor:
    """A boolean per example: a fixed random `share` of every class (rounded), of two or more at least one and not all.

    >>> held_out_mask(torch.tensor([0] * 10 + [1] * 20), share=0.1, key="doc").sum().item()
    3
    """
    mask_N = torch.zeros(len(labels_N), dtype=torch.bool)
    classes, counts = torch.unique(labels_N, return_counts=True)
    by_class = torch.split(labels_N.argsort(stable=True), counts.tolist())
    for label, members in zip(classes.tolist(), by_class, strict=True):
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
