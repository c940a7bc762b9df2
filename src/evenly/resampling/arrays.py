"""Arrays as users give them, converted to tensors of one kind, or refused with what to give instead.

Shapes: N examples.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from evenly.data.numpy_memory import as_tensor
from evenly.errors import DataError

Array = Tensor | NDArray[Any]


def class_numbers(labels: Array | Sequence[int]) -> Tensor:
    """Labels as int64 on the CPU; floats and several labels per example are refused with what to do instead.

    >>> class_numbers([0.5, 1.5])
    Traceback (most recent call last):
    evenly.errors.DataError: labels are float..., but examples are split within classes: ... Bin a continuous target ...
    """
    label_N = as_numbers(labels, "labels", "one class number per example, from 0: names.index(word) for words").cpu()
    if not label_N.numel():
        raise DataError("there are no examples: labels are empty.")
    if label_N.is_floating_point() or label_N.is_complex():
        raise DataError(
            f"labels are {_kind(label_N)}, but examples are split within classes: one whole number per example. "
            "Bin a continuous target into classes, use SAM alone, or call .long() if these are class numbers."
        )
    if label_N.ndim != 1:
        raise DataError(
            f"labels have shape {tuple(label_N.shape)}, expected one class number per example. Use labels.argmax(1) "
            "for one-hot labels; several labels per example cannot be split within classes: use SAM alone."
        )
    label_N = label_N.long()
    if int(label_N.min()) < 0:
        first = int((label_N < 0).nonzero()[0])
        raise DataError(
            f"label {int(label_N[first])} of example {first} is negative: classes are numbered from 0. Leave "
            "unlabelled examples out."
        )
    return label_N


def per_example(values: Array | Sequence[float], num: int, name: str) -> Tensor:
    """One finite number per example as float64 on the CPU.

    >>> per_example([1, 2], 3, "losses")
    Traceback (most recent call last):
    evenly.errors.DataError: losses: shape (2,), expected one number for each of the 3 examples. ...
    """
    value_N = as_numbers(values, name, "one number per example").to("cpu", torch.float64)
    if value_N.shape != (num,):
        raise DataError(
            f"{name}: shape {tuple(value_N.shape)}, expected one number for each of the {num:,} examples. "
            "A loss function gives them with reduction='none'."
        )
    wrong = ~torch.isfinite(value_N)
    if bool(wrong.any()):
        first = int(wrong.nonzero()[0])
        raise DataError(
            f"{name}: {float(value_N[first])} at example {first} ({int(wrong.sum()):,} such); all must be finite."
        )
    return value_N


def as_numbers(values: Any, name: str, expected: str) -> Tensor:
    """Values as a tensor without a graph, or an error that names them if they are no numbers.

    >>> as_numbers(["cat", "dog"], "labels", "one class number per example")
    Traceback (most recent call last):
    evenly.errors.DataError: labels are a list such as 'cat', not numbers: give one class number per example.
    """
    try:
        return as_tensor(values).detach()
    except (TypeError, ValueError, RuntimeError) as error:
        what = repr(values) if values is None else f"a {type(values).__name__}"
        if isinstance(values, Sequence | np.ndarray) and len(values):
            what += f" such as {values[0]!r:.60}"
        raise DataError(f"{name} are {what}, not numbers: give {expected}.") from error


def output_rows(logits: Array) -> Array:
    """Outputs with a row per example, as they were given; anything else than floating-point numbers is refused."""
    expected = "a row of the network's outputs per example, as a tensor or an array"
    rows = logits if isinstance(logits, Tensor | np.ndarray) else as_numbers(logits, "logits", expected)
    floating = rows.is_floating_point() if isinstance(rows, Tensor) else rows.dtype.kind == "f"
    if not floating:
        raise DataError(f"logits are {_kind(rows)}: give the network's last outputs as floating-point numbers.")
    if rows.ndim == 1:
        rows = rows[:, None]
    if rows.ndim != 2 or rows.shape[1] == 0:
        raise DataError(f"logits have shape {tuple(rows.shape)}, expected one row of outputs per example.")
    return rows


def _kind(array: Array) -> str:
    return str(array.dtype).removeprefix("torch.")
