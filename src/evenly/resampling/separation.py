"""A separation: which examples are hard, statistics of each class, and the resulting training set.

Shapes: N examples, M places in the multiset, C classes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.utils.data import Dataset, Subset

from evenly.data.own.foreign import as_dataset
from evenly.errors import UsageError
from evenly.resampling import matching, multiset
from evenly.resampling.agreement import Agreement, agreement
from evenly.resampling.arrays import Array
from evenly.resampling.distinctness import Distinctness
from evenly.resampling.outputs import class_words
from evenly.resampling.sampler import MultisetSampler

T = TypeVar("T")


class SeparationWarning(UserWarning):
    """A warning about a separation that is still usable."""


@dataclass(frozen=True, eq=False)
class ClassSplit:
    """The easy and the hard examples of one class.

    `loss_easy` and `loss_hard` are mean losses, `mean_easy` and `mean_hard` mean outputs, all nan where a part is
    empty; `inertia` is the sum of squared distances to the means. Unknown values are nan, or a mean of length 0.
    """

    label: int
    num_easy: int
    num_hard: int
    loss_easy: float
    loss_hard: float
    inertia: float
    silhouette: float
    mean_easy: Tensor
    mean_hard: Tensor

    @property
    def num(self) -> int:
        """Examples of the class."""
        return self.num_easy + self.num_hard

    @property
    def has_both_parts(self) -> bool:
        """Whether both parts have an example."""
        return self.num_easy > 0 and self.num_hard > 0

    @property
    def share(self) -> float:
        """The part of the class that is hard."""
        return self.num_hard / self.num

    def with_easy(self, more: "ClassSplit") -> "ClassSplit":
        """The split with the easy examples of another one that was not clustered."""
        num = self.num_easy + more.num_easy
        total = more.loss_easy * more.num_easy + (self.loss_easy * self.num_easy if self.num_easy else 0.0)
        return replace(self, num_easy=num, loss_easy=total / num)


@dataclass(frozen=True, eq=False, repr=False)
class Separation:
    """Which examples are hard, in the order of the rows that were separated; `separate` makes it.

    Parameters
    ----------
    hard
        Whether each example is hard.
    labels, losses
        Class number and loss of each.
    index
        The number of each example: its position in the data set, or a `Labelled`'s own index where that was given.
    splits
        Statistics of each class: sizes, mean losses, mean outputs, inertia, silhouette.
    method, on
        How the separation was made.
    accuracy
        The share of examples the network predicted rightly; nan where it predicted nothing.
    classes
        Names of the classes, or nothing.
    remarks
        Warnings: classes that could not be split, or that do not fall into two clusters.
    distinctness
        By label, how distinct the clusters of a class are; not kept in files.
    by_position
        Whether `index` counts the rows, as `separate` was given none: the examples are those of a data set in its
        order, and a `Labelled` is matched by position too, not by its own index.
    """

    hard: Tensor
    labels: Tensor
    losses: Tensor
    index: Tensor
    splits: tuple[ClassSplit, ...]
    method: str
    on: str
    accuracy: float
    classes: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    distinctness: Mapping[int, Distinctness] = field(default_factory=dict)
    by_position: bool = False

    def __len__(self) -> int:
        return len(self.hard)

    def __repr__(self) -> str:
        return (
            f"<separation by {self.method} on {self.on}: {self.num_hard:,} of {len(self):,} examples hard "
            f"({self.share:.1%}), {len(self.splits)} classes>"
        )

    @property
    def num_hard(self) -> int:
        """How many examples are hard."""
        return int(self.hard.sum())

    @property
    def share(self) -> float:
        """The part of all examples that is hard."""
        return self.num_hard / len(self)

    @property
    def inertia(self) -> float:
        """The sum of squared distances to the means of their parts, over all classes."""
        return sum(split.inertia for split in self.splits)

    @cached_property
    def fingerprint(self) -> str:
        """Sixteen hex digits over the examples and their labels, which identify the data set."""
        return matching.fingerprint(self.index, self.labels)

    def repeats(self, factor: multiset.Factor = 2, *, once: Tensor | Sequence[int] | None = None) -> Tensor:
        """How often each row occurs: see `evenly.resampling.multiset.repeats`."""
        return multiset.repeats(self.hard, factor=factor, once=once)

    def indices(self, factor: multiset.Factor = 2, *, once: Tensor | Sequence[int] | None = None) -> Tensor:
        """The numbers of the examples with repeats: all once, then the copies; for `select` of Hugging Face too.

        `factor` 2 means the original plus one copy; it may also be a sequence with a factor for every example. `once`
        selects examples (a boolean per row, or rows) that stay at one copy, such as suspects.
        """
        return self.index[multiset.expand(self.repeats(factor, once=once))]

    def positions(
        self,
        dataset: Any,
        factor: multiset.Factor = 2,
        *,
        once: Tensor | Sequence[int] | None = None,
        labels: Array | Sequence[int] | None = None,
    ) -> Tensor:
        """The multiset as positions in `dataset`, for `Batches(indices=…)`; refused if it is another data set.

        If `separate` was given an `index` of some examples of the data set only, the others are left out.
        """
        where_N = matching.positions(
            dataset,
            self.index,
            self.labels,
            labels=labels,
            by_position=self.by_position,
            part=not self.by_position,
        )
        position_N, row_N = where_N.sort()
        return position_N[multiset.expand(self.repeats(factor, once=once)[row_N])]

    def subset(
        self,
        dataset: Dataset[T],
        factor: multiset.Factor = 2,
        *,
        once: Tensor | Sequence[int] | None = None,
        labels: Array | Sequence[int] | None = None,
    ) -> Subset[T]:
        """The training set in which hard examples occur `factor` times: an ordinary `torch.utils.data.Subset`.

        The data set, or a pair of tensors (inputs, labels), must be the one that was separated; if it does not list
        its labels (`targets`, `labels`), pass them as `labels` to have this checked. If `separate` was given an `index`
        of some of its examples only, the others are left out.

        >>> from torch.utils.data import TensorDataset
        >>> from evenly.resampling import separate
        >>> data = TensorDataset(torch.tensor([[4.0, 0], [0, 1], [0, 4], [1, 0]]), torch.tensor([0, 0, 1, 1]))
        >>> len(separate(*data.tensors).subset(data))
        6
        """
        dataset = as_dataset(dataset)
        return Subset(dataset, self.positions(dataset, factor, once=once, labels=labels).tolist())

    def sampler(
        self,
        dataset: Any,
        factor: multiset.Factor = 2,
        *,
        once: Tensor | Sequence[int] | None = None,
        labels: Array | Sequence[int] | None = None,
        seed: int = 0,
        shuffle: bool = True,
    ) -> MultisetSampler:
        """A sampler for `DataLoader(dataset, sampler=…)` in which hard examples occur `factor` times an epoch.

        Each process gets its own share; `set_epoch` changes the order.
        """
        return MultisetSampler(self.positions(dataset, factor, once=once, labels=labels), seed=seed, shuffle=shuffle)

    def weights(self, factor: multiset.Factor = 2, *, once: Tensor | Sequence[int] | None = None) -> Tensor:
        """The weight of each row, `factor` if it is hard and 1 if not: for losses, or `WeightedRandomSampler`."""
        return self.repeats(factor, once=once).to(torch.get_default_dtype())

    def agreement(self, other: "Separation") -> Agreement:
        """How well two separations of the same data set agree, matched by the examples' numbers."""
        if self.fingerprint != other.fingerprint:
            raise UsageError(
                f"these separations are of different data: {len(self):,} examples, fingerprint {self.fingerprint}, and "
                f"{len(other):,}, fingerprint {other.fingerprint}. Compare separations of one data set."
            )
        return agreement(self.hard[self.index.argsort()], other.hard[other.index.argsort()])

    def name(self, label: int) -> str:
        """The display name of a class."""
        return class_words(label, self.classes)

    def summary(self) -> str:
        """A line for the whole and one for each class."""
        lines = [repr(self)[1:-1], "class: hard of all, mean loss hard | easy, silhouette"]
        for split in self.splits:
            lines.append(
                f"{self.name(split.label)}: {split.num_hard:,} of {split.num:,} ({split.share:.0%}), "
                f"{split.loss_hard:.3f} | {split.loss_easy:.3f}, {split.silhouette:.2f}"
            )
        return "\n".join([*lines, *self.remarks])
