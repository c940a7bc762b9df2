"""What a network says about a training set, checked: outputs, labels and losses, one class at a time.

Shapes: N examples, K of one class, D outputs, C classes.
"""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from evenly import memory
from evenly.data.numpy_memory import as_tensor
from evenly.device import has_float64
from evenly.errors import DataError, SetupError, UsageError, did_you_mean
from evenly.resampling.arrays import Array as Array
from evenly.resampling.arrays import class_numbers, output_rows, per_example

_log = logging.getLogger(__name__)
On = Literal["logits", "probabilities", "features"]
PIECE = 2**17  # numbers that are worked on at once where a copy is made of them
SMALL = 128  # rows up to which classes are worked on together
SUMS_TO_ONE = 1e-3  # how far the sum of rounded probabilities may be from 1
MOST_CLASSES = 10_000_000  # arrays over all class numbers are made
LARGEST = 1e15  # squares of larger outputs overflow in single precision when they are summed


@dataclass(frozen=True, eq=False)
class Outputs:
    """Outputs that may be larger than memory, with a label per row; `check_outputs` makes them."""

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
        label_N, counts_C = self.labels.numpy(), self.labels.bincount().tolist()
        # numpy sorts short integers by radix, in a time that is linear and a tenth of torch's.
        short = np.uint16 if len(counts_C) <= 2**16 else np.int64
        # A few classes at a time: the positions of millions of examples are as large as the outputs of a class or two.
        for first, last in _neighbours(counts_C, max(len(self) // 16, PIECE)):
            member_M = np.concatenate(
                [
                    start + np.flatnonzero((part >= first) & (part < last))
                    for start in range(0, len(self), PIECE)
                    for part in [label_N[start : start + PIECE]]
                ]
            )
            member_M = member_M[label_N[member_M].astype(short).argsort(kind="stable")]
            parts = torch.split(torch.from_numpy(member_M), counts_C[first:last])
            yield from ((first + place, part) for place, part in enumerate(parts) if len(part))

    def name(self, label: int) -> str:
        """The display name of a class."""
        return class_words(label, self.classes)

    @property
    def piece(self) -> int:
        """Rows that are worked on at once where a copy is made of them: a whole class would take its size again."""
        return max(PIECE // self.rows.shape[1], 1)

    def groups(self) -> Iterator[list[tuple[int, Tensor]]]:
        """The classes of `by_class`, small ones several together: what costs a thousand calls then costs a few."""
        group: list[tuple[int, Tensor]] = []
        longest = 0
        for label, members_K in self.by_class():
            longest = max(longest, len(members_K))
            if group and (longest > SMALL or longest * (len(group) + 1) > self.piece):
                yield group
                group, longest = [], len(members_K)
            group.append((label, members_K))
        yield group

    def scratch(self, *, extra: int = 0) -> Tensor:
        """Memory for the rows of the largest class or group, with `extra` columns, to be used for each in turn.

        It lies where the outputs lie, or on the host if their device has no room for it, or no float64.
        """
        device = self.rows.device if isinstance(self.rows, Tensor) else torch.device("cpu")
        dtype = torch.float64 if str(self.rows.dtype).endswith("float64") else torch.float32
        width = extra + (2 if self.binary and self.on == "probabilities" else self.rows.shape[1])
        most = max(int(self.labels.bincount().max()), min(self.piece, len(self)))
        needed = most * width * dtype.itemsize
        if not has_float64(device):
            device = torch.device("cpu")
        elif device.type != "cpu" and 2 * needed > memory.budget(device):  # as much again to compute with
            _log.warning(
                "outputs are separated on the host: %s has no room for the %.1f GB of a class of %s examples. That is "
                "slower.",
                device, 2 * needed / 1e9, f"{most:,}",
            )  # fmt: skip
            device = torch.device("cpu")
        left = memory.free(device)
        if device.type == "cpu" and left is not None and needed > left:
            raise SetupError(
                f"the outputs of the largest class, {most:,} examples, need {needed / 1e9:.1f} GB, and "
                f"{left / 1e9:.1f} GB are left: give fewer outputs (a projection of features), or "
                "separate a part of the examples."
            )
        return torch.empty(most, width, dtype=dtype, device=device)

    def read(self, members_K: Tensor, scratch: Tensor | None = None) -> Tensor:
        """The rows of some examples in at least single precision, copied into `scratch` if it is given."""
        x_KD = (self.scratch() if scratch is None else scratch)[: len(members_K), : self.rows.shape[1]]
        for part, target in zip(torch.split(members_K, self.piece), torch.split(x_KD, self.piece), strict=True):
            if isinstance(self.rows, Tensor):
                target.copy_(self.rows.detach().index_select(0, part.to(self.rows.device)))
            else:
                target.copy_(as_tensor(self.rows[part.numpy()]))
        # Comparisons with nan are false, so this catches it too; extremes by row make no copy of the rows.
        good_K = (x_KD.amax(dim=1) < LARGEST) & (x_KD.amin(dim=1) > -LARGEST)
        if not bool(good_K.all()):
            example = int(members_K[int((~good_K).nonzero()[0])])
            wrong = int((~good_K.cpu() & (self.labels[members_K] == self.labels[example])).sum())
            raise DataError(
                f"the outputs of example {example} are not finite, or beyond ±{LARGEST:.0e} ({wrong:,} such "
                f"{'example' if wrong == 1 else 'examples'} in class {self.name(int(self.labels[example]))}). The "
                "network has diverged: lower the learning rate, and take the outputs in float32, without a mask."
            )
        return x_KD

    def judge(self, x_KD: Tensor, members_K: Tensor) -> tuple[Tensor, Tensor | None]:
        """The loss of each example, and whether it is predicted rightly (None for features, which predict nothing).

        The loss is as given, or the cross-entropy log(1 + Σ_{j ≠ label} exp(x_j − x_label)): in this form small losses
        keep their digits, which a difference of logarithms loses. Of equal outputs the first is predicted. `x_KD` is
        the scratch memory that `read` returned: it is written to, and as before at the end.
        """
        loss_K = None if self.given is None else self.given[members_K]
        if not self.predict:
            assert loss_K is not None  # `check_outputs` asks for them
            return loss_K, None
        label_K1 = self.labels[members_K][:, None].to(x_KD.device)
        if self.binary:
            right_K1 = (x_KD > 0) == label_K1.bool()
            if loss_K is None:
                loss_K = functional.softplus((1 - 2 * label_K1) * x_KD)[:, 0].cpu().double()
            return loss_K, right_K1[:, 0].cpu()
        own_K1 = x_KD.gather(1, label_K1)
        x_KD.scatter_(1, label_K1, -torch.inf)  # all outputs but one's own, without a copy
        best_K = x_KD.amax(dim=1)
        if loss_K is None:
            others_K = torch.cat([x.logsumexp(dim=1) for x in torch.split(x_KD, self.piece)])
            loss_K = functional.softplus(others_K - own_K1[:, 0]).cpu().double()
        x_KD.scatter_(1, label_K1, own_K1)
        right_K = own_K1[:, 0] >= best_K
        tie = (own_K1[:, 0] == best_K).nonzero().flatten()
        if len(tie):
            right_K[tie] = x_KD[tie].argmax(dim=1) == label_K1[tie, 0]
        return loss_K, right_K.cpu()

    def predictions(self, x_KD: Tensor) -> Tensor:
        """The class each row says."""
        return ((x_KD[:, 0] > 0).long() if self.binary else x_KD.argmax(dim=1)).cpu()

    def probabilities(self, x_KD: Tensor) -> Tensor:
        """Softmax of the rows, or (1 − p, p) for a single logit."""
        both = torch.cat([torch.zeros_like(x_KD), x_KD], dim=1) if self.binary else x_KD
        return both.softmax(dim=1)

    def look_like_probabilities(self, x_KD: Tensor) -> bool:
        """Whether all rows are distributions, or single numbers from 0 to 1: logits are not."""
        if self.binary:
            return bool((x_KD.amin() >= 0) & (x_KD.amax() <= 1))
        return bool((x_KD.amin() >= 0) & ((x_KD.sum(dim=1) - 1).abs().amax() < SUMS_TO_ONE))

    def points(self, x_KD: Tensor, scratch: Tensor) -> Tensor:
        """What is clustered, in the `scratch` memory into which the rows were read."""
        if self.on != "probabilities":
            return x_KD
        target_KD = scratch[: len(x_KD), : max(x_KD.shape[1], 2)]
        for x, target in zip(torch.split(x_KD, self.piece), torch.split(target_KD, self.piece), strict=True):
            target.copy_(self.probabilities(x))
        return target_KD


def class_words(label: int, classes: Sequence[str]) -> str:
    """The display name of a class: its number, and its name where that says more.

    >>> class_words(3, ["dog", "cat", "cow", "emu"]), class_words(1, ["0", "1"]), class_words(7, [])
    ('3 (emu)', '1', '7')
    """
    name = classes[label] if classes else str(label)
    return str(label) if name == str(label) else f"{label} ({name})"


def check_outputs(
    logits: Array,
    labels: Array | Sequence[int],
    *,
    losses: Array | Sequence[float] | None = None,
    on: str = "logits",
    classes: Sequence[str] | None = None,
) -> Outputs:
    """`Outputs`, or an error that says what is wrong with them before anything is computed.

    >>> check_outputs(torch.zeros(3, 2), [0, 1, 2])
    Traceback (most recent call last):
    evenly.errors.DataError: label 2 of example 2 is out of range: the outputs have 2 columns, classes 0 to 1. ...
    """
    if on not in get_args(On):
        raise UsageError(f"on={on!r}: outputs are taken as one of three. {did_you_mean(on, get_args(On))}")
    rows = output_rows(logits)
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
    if on == "features" and num > MOST_CLASSES:
        first = int(label_N.argmax())
        raise DataError(
            f"label {num - 1} of example {first}: classes are numbered from 0, and at most {MOST_CLASSES:,} are told "
            "apart. Number them anew: labels.unique(return_inverse=True)[1]."
        )
    if classes is not None and len(classes) <= int(label_N.max()):
        raise UsageError(f"classes names {len(classes)} classes, the labels go up to {int(label_N.max())}.")
    return Outputs(rows, label_N, loss_N, on, tuple(map(str, classes or ())))  # type: ignore[arg-type]  # `on` was looked up


def _neighbours(counts_C: Sequence[int], most: int) -> Iterator[tuple[int, int]]:
    """Ranges of classes that have at most `most` examples together, or are a single class.

    >>> list(_neighbours([2, 2, 5, 1], 4))
    [(0, 2), (2, 3), (3, 4)]
    """
    first = held = 0
    for label, count in enumerate(counts_C):
        if label > first and held + count > most:
            yield first, label
            first, held = label, 0
        held += count
    yield first, len(counts_C)
