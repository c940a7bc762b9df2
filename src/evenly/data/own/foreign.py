"""Any map-style `torch.utils.data.Dataset` as `Labelled`: items are read on demand."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, IterableDataset, Subset, TensorDataset

from evenly.data.channels import channels_first, pixels_of
from evenly.data.formats.image_decoding import as_mode
from evenly.data.labelled import Labelled
from evenly.data.numpy_memory import as_array, as_tensor
from evenly.errors import DataError, UsageError
from evenly.progress import Bar


def foreign(
    dataset: Dataset[Any],
    *,
    labels: Sequence[int] | Tensor | None = None,
    classes: Sequence[str] | None = None,
    key: str | int = 0,
) -> Labelled:
    """The items of `dataset` with their labels, none of them read before it is needed.

    Labels are taken from `labels`, else from the data set's `targets` or `labels`, the last tensor of a
    `TensorDataset`, or the same of what a `Subset` is a part of; those of a table of Hugging Face's `datasets` from its
    `ClassLabel`, with the names of its classes. `classes` are its `classes`, or numbers. An input
    is item[`key`] where the item is a tuple, list or dict, else the item: a tensor, an array, or a PIL image.
    Items should come without random augmentation: measurements would change from pass to pass, and a run, which is
    identified by the content of its data, would never be found again.

    >>> pairs = TensorDataset(torch.arange(6.0).reshape(3, 2), torch.tensor([0, 1, 0]))
    >>> data = foreign(pairs)
    >>> data, data[2]
    (<TensorDataset train: 3 lazy examples of 2, 2 classes>, (tensor([4., 5.]), 0))
    """
    kind = type(dataset).__name__
    if hasattr(dataset, "features") and hasattr(dataset, "column_names"):
        return _of_table(dataset, labels, classes, key)
    items = require_indexable(dataset)
    class_labels = _labels_of(dataset) if labels is None else labels
    if class_labels is None:
        raise DataError(
            f"{kind}: no labels found. Looked at labels=, .targets and .labels of it (and of what it is a subset of), "
            "and the last tensor of a TensorDataset. Give labels=[…], one class number per item."
        )
    if len(items) == 0:
        raise DataError(f"{kind} has no items.")
    numbers = _checked_labels(kind, class_labels, len(items))
    names = _classes_of(dataset) if classes is None else _names(kind, classes)
    if names is None:
        names = [str(number) for number in range(int(numbers.max()) + 1)]
    inputs = ForeignInputs(dataset, range(len(items)), key)
    return Labelled(inputs, numbers, tuple(map(str, names)), name=kind)


def _checked_labels(kind: str, labels: Any, num: int) -> Tensor:
    """A class number for each of `num` items."""
    numbers = _class_numbers(kind, labels)
    if numbers.is_floating_point() or numbers.is_complex() or numbers.ndim != 1:
        raise DataError(
            f"{kind}: labels are {numbers.dtype} of shape {tuple(numbers.shape)}, expected one class number per item. "
            "Bin a continuous target into classes; take the argmax of one-hot labels."
        )
    if len(numbers) != num:
        raise DataError(f"{kind}: {len(numbers):,} labels for {num:,} items: give one per item.")
    return numbers.long()


def _class_numbers(kind: str, labels: Any) -> Tensor:
    try:
        return as_tensor(labels)
    except (TypeError, ValueError, RuntimeError) as error:
        some = list(labels[:2]) if isinstance(labels, Sequence | np.ndarray) else type(labels).__name__
        raise DataError(
            f"{kind}: the labels are {some!r:.60}, expected one class number per item, from 0. Number words by their "
            "place in a list, labels=[names.index(word) for word in words], and give it as classes=names."
        ) from error


def _names(kind: str, classes: Any) -> Sequence[str]:
    if isinstance(classes, str) or not hasattr(classes, "__len__"):
        raise UsageError(f"{kind}: classes={classes!r:.60}, expected the name of each class: classes=['cat', 'dog'].")
    names: Sequence[str] = classes
    return names


def require_indexable(dataset: Any) -> Any:
    """The same data set; a `UsageError` for what has no numbered items: a stream, or the batches of a loader.

    >>> require_indexable(iter([1, 2]))
    Traceback (most recent call last):
    evenly.errors.UsageError: list_iterator cannot be indexed: give a map-style data set, with __len__ and __getitem__.
    """
    kind = type(dataset).__name__
    if isinstance(dataset, DataLoader):
        raise UsageError(f"{kind} gives batches, not items: give its data set, loader.dataset.")
    if isinstance(dataset, IterableDataset) or not (hasattr(dataset, "__len__") and hasattr(dataset, "__getitem__")):
        raise UsageError(f"{kind} cannot be indexed: give a map-style data set, with __len__ and __getitem__.")
    return dataset


def as_dataset(data: Any) -> Any:
    """A pair of tensors, arrays or tables (inputs, labels) as a data set, and data sets as they are; else an error.

    >>> as_dataset((torch.zeros(3, 2), torch.tensor([0, 1, 1])))[2]
    (tensor([0., 0.]), tensor(1))
    """
    if isinstance(data, Mapping):
        first = next(iter(data), "train")
        raise UsageError(f"a {type(data).__name__} has several parts: give one of them, such as data[{first!r}].")
    if type(data) in (tuple, list) and len(data) == 2:
        data = type(data)(map(as_array, data))
    if _is_pair(data):
        inputs, labels = (_tensor_of(part, what) for part, what in zip(data, ("inputs", "labels"), strict=True))
        if len(inputs) != len(labels):
            raise DataError(f"{len(labels):,} labels for {len(inputs):,} inputs: give one per input.")
        return TensorDataset(inputs, labels)
    return require_indexable(data)


def _is_pair(data: Any) -> bool:
    """Whether these are inputs and labels; a list of two tensors may also be two items."""
    if not isinstance(data, tuple | list) or len(data) != 2:
        return False
    if not all(isinstance(part, Tensor | np.ndarray) and part.ndim for part in data):
        return False
    return isinstance(data, tuple) or (data[1].ndim == 1 and len(data[0]) == len(data[1]))


def _tensor_of(part: Tensor | NDArray[Any], what: str) -> Tensor:
    try:
        return as_tensor(part)
    except TypeError as error:
        raise DataError(
            f"the {what} are an array of {part.dtype}, expected numbers. Words are numbered by "
            "numpy.unique(words, return_inverse=True)[1]."
        ) from error


@dataclass(frozen=True, eq=False)
class ForeignInputs:
    """The inputs of another data set's items, by position (a `Lazy`)."""

    dataset: Dataset[Any]
    positions: Sequence[int]
    key: str | int = 0

    def __len__(self) -> int:
        return len(self.positions)

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """The shape of the data set's first input, which all must share."""
        return tuple(self._input(0).shape)

    def read(self, positions: Sequence[int]) -> Tensor:
        """The inputs at `positions`, stacked."""
        inputs = [self._input(self.positions[i]) for i in positions]
        if not inputs:
            return torch.empty((0, *self.shape))
        for position, value in zip(positions, inputs, strict=True):
            if value.shape != inputs[0].shape:
                raise DataError(
                    f"{type(self.dataset).__name__}: item {self.positions[position]} has shape {tuple(value.shape)}, "
                    f"another has {tuple(inputs[0].shape)}. Resize or crop in the data set's transform."
                )
        return torch.stack(inputs)

    def select(self, positions: Sequence[int]) -> "ForeignInputs":
        """The items at `positions`."""
        return replace(self, positions=[self.positions[i] for i in positions])

    def identity(self) -> Iterator[bytes]:
        """Every input: one pass over the items, as an epoch of training is. Nothing else tells what they are."""
        with Bar(f"reading {type(self.dataset).__name__}", total=len(self)) as bar:
            for position in self.positions:
                value = self._input(position)
                if value.is_floating_point() and not bool(value.isfinite().all()):
                    raise DataError(
                        f"item {position} of {type(self.dataset).__name__} holds NaN or infinity. Remove or replace it."
                    )
                yield repr((tuple(value.shape), str(value.dtype))).encode()
                yield value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
                bar.advance()

    def _input(self, position: int) -> Tensor:
        item = self.dataset[position]
        value = item
        if isinstance(item, (tuple, list, dict)):
            try:
                value = item[self.key]  # type: ignore[index]  # a key of the wrong kind is reported below
            except (KeyError, IndexError, TypeError):
                has = f"the keys {', '.join(map(str, item))}" if isinstance(item, dict) else f"{len(item)} parts"
                raise UsageError(
                    f"item {position} of {type(self.dataset).__name__} has {has}, none of them {self.key!r}. "
                    "Say which is the input with key=."
                ) from None
        if isinstance(value, Tensor):
            return channels_first(value)
        if isinstance(value, Image.Image):
            try:
                return pixels_of(as_mode(value, "L" if value.mode in ("L", "1") else "RGB"))
            except DataError as error:
                raise DataError(f"item {position} of {type(self.dataset).__name__} has {error}.") from error
        if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
            return channels_first(as_tensor(value))
        raise DataError(
            f"item {position} of {type(self.dataset).__name__} gives a {type(value).__name__} as its input, expected a "
            "tensor, an array or a PIL image."
        )


def _of_table(table: Any, labels: Any, classes: Sequence[str] | None, key: str | int) -> Labelled:
    """A table of Hugging Face's `datasets`: its features say which column is the label and what its classes are."""
    from evenly.data.own.table_columns import UNLABELLED, class_names, class_numbers, input_of, label_of
    from evenly.data.own.table_rows import rows_of

    kind = type(table).__name__
    if not len(table):
        raise DataError(f"{kind} has no items.")
    label = label_of(table, kind, remedy="labels=table['NAME']") if labels is None else ""
    values = list(table[label]) if label else labels
    names = None if classes is None else tuple(map(str, _names(kind, classes)))
    if label and None not in values and (names is None or any(isinstance(value, str) for value in values)):
        names = class_names(table, label, kind) if names is None else names
        values = class_numbers(table, label, names, kind)
    if label and (missing := values.count(None) + values.count(UNLABELLED)):
        raise DataError(
            f"{kind}: {missing:,} of {len(values):,} rows have no label. Leave them out: "
            f"table.filter(lambda row: row[{label!r}] not in (None, {UNLABELLED}))"
        )
    numbers = _checked_labels(kind, values, len(table))
    names = names if names is not None else tuple(str(number) for number in range(int(numbers.max()) + 1))
    column = key if isinstance(key, str) else input_of(table, label, kind, remedy="key='NAME'")
    return Labelled(rows_of(table, column, kind), numbers, names, name=kind)


def _labels_of(dataset: Any) -> Any:
    if isinstance(dataset, Subset):
        whole = _labels_of(dataset.dataset)
        return None if whole is None else _class_numbers(type(dataset.dataset).__name__, whole)[list(dataset.indices)]
    if isinstance(dataset, TensorDataset):
        return dataset.tensors[-1] if len(dataset.tensors) > 1 else None
    for name in ("targets", "labels"):
        value = getattr(dataset, name, None)
        if value is not None and not callable(value):
            return value
    return None


def _classes_of(dataset: Any) -> Any:
    """The names of the classes where the data set has them; in others `classes` is their number, or a method."""
    if isinstance(dataset, Subset):
        return _classes_of(dataset.dataset)
    names = getattr(dataset, "classes", None)
    return names if hasattr(names, "__len__") and not isinstance(names, str) else None
