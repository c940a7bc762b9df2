"""The arguments of `Batches`, checked: data, positions, weights and numbers, with the fix where one is wrong.

Shapes: N examples.
"""

import operator
from collections.abc import Sequence

import torch
from torch import Tensor

from evenly.data.augment import Augmentation
from evenly.data.labelled import Labelled
from evenly.data.positions import check_positions
from evenly.data.splits import Splits
from evenly.errors import UsageError


def whole_number(what: str, value: int, *, least: int | None = None) -> int:
    """A setting that counts something, in Python's own numbers."""
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or (least is not None and number < least):
        bound = "" if least is None else f" from {least} on"
        raise UsageError(f"batches: {what} {value!r}: give a whole number{bound}.")
    return number


def check_kinds(data: object, augment: object) -> None:
    """Refuse all splits at once, data without classes, and an augmentation that is not parsed."""
    if isinstance(data, Splits):
        raise UsageError(f"batches: data are a Splits, with the parts {', '.join(data)}: give .train, or another.")
    if augment is not None and not isinstance(augment, Augmentation):
        raise UsageError(
            f"batches: augment={augment!r:.60} is a {type(augment).__name__}: give Augmentation.parse(['mirror'], "
            "data=data), after `from evenly.data import Augmentation`."
        )
    if not isinstance(data, Labelled):
        raise UsageError(
            f"batches: data are a {type(data).__name__}, which names no classes. Give Labelled(inputs, labels, "
            "classes), after `from evenly.data import Labelled`, or the part of a data set: evenly.load('digits').train"
        )


def positions_in(data: Labelled, indices: Tensor | Sequence[int] | None) -> Tensor:
    """The positions to visit, by default all."""
    if indices is None:
        return torch.arange(len(data))
    where = f"{data.name} {data.split}"
    here = indices.cpu() if isinstance(indices, Tensor) else indices
    return check_positions(here, len(data), who="batches: indices", where=where)


def example_weights(data: Labelled, weights: Tensor | Sequence[float] | None) -> Tensor | None:
    """A finite weight from 0 on for every example, if there are weights."""
    if weights is None:
        return None
    weight_N = torch.as_tensor(weights).cpu()
    if weight_N.shape != (len(data),):
        given = f"{len(weight_N)}" if weight_N.ndim == 1 else f"of shape {tuple(weight_N.shape)}"
        raise UsageError(
            f"batches: weights are {given}, and {data.name} {data.split} has {len(data)} examples: give one for each."
        )
    wrong = (~(weight_N.isfinite() & (weight_N >= 0))).nonzero().flatten()
    if len(wrong):
        raise UsageError(
            f"batches: the weight of example {int(wrong[0])} is {weight_N[wrong[0]].item():g} ({len(wrong)} such "
            "weights): give numbers from 0 on."
        )
    return weight_N
