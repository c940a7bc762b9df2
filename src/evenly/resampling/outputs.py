"""What a network says about a training set, checked: outputs, labels and losses, one class at a time.

Shapes: N examples, K of one class, D outputs, C classes.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from evenly.errors import DataError, UsageError, did_you_mean

Array = Tensor | NDArray[Any]
On = Literal["logits", "probabilities", "features"]
LARGEST = 1e15  # squares of larger outputs overflow in single precision when they are summed


@dataclass(frozen=True, eq=False)
class Outputs:
    """Outputs that may be larger than memory, with a label per row; `checked` makes them."""

    rows: Array
    labels: Tensor
    given: Tensor | None
    on: On
    classes: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def predict(self) -> bool:
        """Whether the outputs say a class: features do not."""
        return self.on != "features"

    @property
    def binary(self) -> bool:
        """One logit for two classes: positive says class 1."""
        return self.rows.shape[1] == 1

    def by_class(self) -> Iterator[tuple[int, Tensor]]:
        """Every class that has an example, with the positions of its examples in rising order."""
        order_N = self.labels.argsort(stable=True)
        counts = self.labels.bincount().tolist()
        for label, members_K in enumerate(torch.split(order_N, counts)):
            if len(members_K):
                yield label, members_K

    def name(self, label: int) -> str:
        """What to call a class when speaking to people."""
        return f"{label} ({self.classes[label]})" if self.classes else str(label)

    def read(self, members_K: Tensor) -> Tensor:
        """The rows of some examples in at least single precision; only these are copied."""
        first, last = int(members_K[0]), int(members_K[-1])
        adjacent = last - first + 1 == len(members_K)
        if isinstance(self.rows, Tensor):
            x_KD = self.rows[first : last + 1] if adjacent else self.rows[members_K.to(self.rows.device)]
        else:
            x_KD = torch.from_numpy(np.array(self.rows[first : last + 1] if adjacent else self.rows[members_K.numpy()]))
        x_KD = x_KD.detach()
        x_KD = x_KD if x_KD.dtype in (torch.float32, torch.float64) else x_KD.float()
        # Comparisons with nan are false, so this catches it too; extremes by row make no copy of the rows.
        good_K = (x_KD.amax(dim=1) < LARGEST) & (x_KD.amin(dim=1) > -LARGEST)
        if not bool(good_K.all()):
            example = int(members_K[int((~good_K).nonzero()[0])])
            raise DataError(
                f"the outputs of example {example} are not finite, or beyond ±{LARGEST:.0e} ({int((~good_K).sum()):,} "
                f"such examples in class {self.name(int(self.labels[example]))}). The network has diverged: lower the "
                "learning rate, and take the outputs in float32, without a mask."
            )
        return x_KD

    def losses(self, x_KD: Tensor, members_K: Tensor) -> Tensor:
        """The loss of each: as given, or the cross-entropy −log p(label)."""
        if self.given is not None:
            return self.given[members_K]
        label_K = self.labels[members_K].to(x_KD.device)
        if self.binary:
            loss_K = functional.softplus((1 - 2 * label_K) * x_KD[:, 0])
        else:
            loss_K = functional.cross_entropy(x_KD, label_K, reduction="none")
        return loss_K.double().cpu()

    def predictions(self, x_KD: Tensor) -> Tensor:
        """The class each row says."""
        return ((x_KD[:, 0] > 0).long() if self.binary else x_KD.argmax(dim=1)).cpu()

    def probabilities(self, x_KD: Tensor) -> Tensor:
        """Softmax of the rows, or (1 − p, p) for a single logit."""
        both = torch.cat([torch.zeros_like(x_KD), x_KD], dim=1) if self.binary else x_KD
        return both.softmax(dim=1)

    def points(self, x_KD: Tensor) -> Tensor:
        """What is clustered."""
        return self.probabilities(x_KD) if self.on == "probabilities" else x_KD


def checked(
    logits: Array,
    labels: Array | Sequence[int],
    *,
    losses: Array | Sequence[float] | None = None,
    on: str = "logits",
    classes: Sequence[str] | None = None,
) -> Outputs:
    """`Outputs`, or an error that says what is wrong with them before anything is computed.

    >>> checked(torch.zeros(3, 2), [0, 1, 2])
    Traceback (most recent call last):
    evenly.errors.DataError: label 2 of example 2 is out of range: the outputs have 2 columns, classes 0 to 1. ...
    """
    if on not in get_args(On):
        raise UsageError(f"on={on!r}: outputs are taken as one of three. {did_you_mean(on, get_args(On))}")
    rows = _rows(logits)
    label_N = class_numbers(labels)
    if len(label_N) != len(rows):
        raise DataError(
            f"{len(label_N):,} labels for {len(rows):,} rows of outputs: give one label per row, in the same order. "
            "Was the last batch dropped (drop_last=True)?"
        )
    loss_N = None if losses is None else per_example(losses, len(rows), "losses")
    if on == "features" and loss_N is None:
        raise UsageError("on='features': features say nothing of the loss. Give losses=, one per example.")
    num = max(rows.shape[1], 2) if on != "features" else int(label_N.max()) + 1
    if int(label_N.max()) >= num:
        first = int((label_N >= num).nonzero()[0])
        raise DataError(
            f"label {int(label_N[first])} of example {first} is out of range: the outputs have "
            f"{rows.shape[1]} columns, classes 0 to {num - 1}. "
            "If these are not logits but features, say on='features' and give losses=."
        )
    if classes is not None and len(classes) <= int(label_N.max()):
        raise UsageError(f"classes names {len(classes)} classes, the labels go up to {int(label_N.max())}.")
    return Outputs(rows, label_N, loss_N, on, tuple(map(str, classes or ())))  # type: ignore[arg-type]


def class_numbers(labels: Array | Sequence[int]) -> Tensor:
    """Labels as int64 on the CPU; floats and several labels per example are refused with what to do instead.

    >>> class_numbers([0.5, 1.5])
    Traceback (most recent call last):
    evenly.errors.DataError: labels are float..., but examples are split within classes: ... Bin a continuous target ...
    """
    label_N = torch.as_tensor(labels).detach().cpu()
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
    value_N = torch.as_tensor(values).detach().to("cpu", torch.float64)
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


def _rows(logits: Array) -> Array:
    rows = logits if isinstance(logits, Tensor | np.ndarray) else torch.as_tensor(logits)
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
