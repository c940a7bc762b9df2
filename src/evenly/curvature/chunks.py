"""Data of any kind, read in chunks: a `Labelled`, a pair of tensors, or batches from a loader."""

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from evenly.data.labelled import Labelled, scale_pixels
from evenly.errors import DataError, UsageError

Data = Labelled | tuple[Tensor, Tensor] | Tensor | Iterable[Any]
EXPECTED = "a Labelled, a pair of tensors (inputs, labels), or an iterable of such batches (a DataLoader, a list)"


@dataclass(frozen=True)
class Chunks(Sequence[tuple[Tensor, Tensor | None]]):
    """Examples in chunks of known size; `chunks[i]` reads one, on the device and in the precision of the model."""

    sizes: tuple[int, ...]
    read: Callable[[int], tuple[Tensor, Tensor | None]]

    @property
    def num_examples(self) -> int:
        """How many examples all chunks hold together."""
        return sum(self.sizes)

    def finer(self, most: int) -> "Chunks":
        """The same examples in chunks of at most `most`; these chunks if they are small enough.

        >>> as_chunks((torch.zeros(5, 2), torch.arange(5)), size=3).finer(2).sizes
        (2, 1, 2)
        """
        if max(self.sizes) <= most:
            return self
        rows = [(i, first) for i, size in enumerate(self.sizes) for first in range(0, size, most)]

        def read(place: int) -> tuple[Tensor, Tensor | None]:
            i, first = rows[place]
            x, y = self.read(i)
            return x[first : first + most], None if y is None else y[first : first + most]

        return Chunks(tuple(min(most, self.sizes[i] - first) for i, first in rows), read)

    def of_size(self, size: int) -> "Chunks":
        """The same examples in chunks of exactly `size`, the last one smaller, whatever the sizes were.

        >>> as_chunks([(torch.zeros(n, 2), torch.zeros(n)) for n in (3, 1, 3)]).of_size(2).sizes
        (2, 2, 2, 1)
        """
        starts = range(0, self.num_examples, size)
        sizes = tuple(min(size, self.num_examples - start) for start in starts)
        if sizes == self.sizes:
            return self
        ends = list(itertools.accumulate(self.sizes))

        def read(place: int) -> tuple[Tensor, Tensor | None]:
            start, stop = starts[place], starts[place] + sizes[place]
            inputs, labels = [], []
            for i, end in enumerate(ends):
                first = end - self.sizes[i]
                if first < stop and start < end:
                    x, y = self.read(i)
                    rows = slice(max(start - first, 0), stop - first)
                    inputs.append(x[rows])
                    labels.append(None if y is None else y[rows])
            known = [y for y in labels if y is not None]
            return torch.cat(inputs), torch.cat(known) if len(known) == len(inputs) else None

        return Chunks(sizes, read)

    def __len__(self) -> int:
        return len(self.sizes)

    def __getitem__(self, position: Any) -> Any:
        if not 0 <= position < len(self.sizes):
            raise IndexError(position)
        return self.read(position)

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor | None]]:
        return (self.read(i) for i in range(len(self.sizes)))


def as_chunks(data: Data, *, model: nn.Module | None = None, size: int = 250, labels: Tensor | None = None) -> Chunks:
    """The examples of `data` in chunks of `size`; the batches of a loader are read once and kept unchanged.

    Floating inputs and targets take the precision of the model's parameters, and everything its device.

    >>> chunks = as_chunks((torch.zeros(5, 2), torch.arange(5)), size=2)
    >>> chunks.sizes, chunks[2][1]
    ((2, 2, 1), tensor([4]))
    """
    if size < 1:
        raise UsageError(f"chunk = {size} is the number of examples taken at once: give 1 or more.")
    first = next(model.parameters(), None) if model is not None else None

    def place(x: Tensor) -> Tensor:
        if first is None:
            return x
        return x.to(first.device, first.dtype if x.is_floating_point() else None)

    if isinstance(data, Labelled):
        whole = data

        def read_labelled(rows: slice) -> tuple[Tensor, Tensor | None]:
            positions = range(len(whole))[rows]
            return place(scale_pixels(whole.gather(positions))), place(whole.labels[rows])

        return _slices(len(whole), size, read_labelled)
    if isinstance(data, Tensor):
        inputs, targets = data, labels
    elif isinstance(data, tuple) and len(data) == 2 and all(isinstance(part, Tensor) for part in data):
        inputs, targets = data
    else:
        return _read_batches(data, place)
    if targets is not None and len(targets) != len(inputs):
        raise DataError(f"there are {len(inputs)} inputs but {len(targets)} labels: every example needs one of each.")

    def read(rows: slice) -> tuple[Tensor, Tensor | None]:
        return place(inputs[rows]), None if targets is None else place(targets[rows])

    return _slices(len(inputs), size, read)


def _slices(num: int, size: int, read: Callable[[slice], tuple[Tensor, Tensor | None]]) -> Chunks:
    if num == 0:
        raise DataError("there are no examples: give at least one.")
    sizes = tuple(min(size, num - start) for start in range(0, num, size))
    return Chunks(sizes, lambda i: read(slice(i * size, i * size + sizes[i])))


def _read_batches(data: Iterable[Any], place: Callable[[Tensor], Tensor]) -> Chunks:
    if not isinstance(data, Iterable):
        raise UsageError(f"cannot read examples from a {type(data).__name__}: give {EXPECTED}.")
    batches: list[tuple[Tensor, Tensor | None]] = []
    for batch in data:
        if isinstance(batch, Tensor):
            batches.append((place(batch), None))
        elif isinstance(batch, tuple | list) and len(batch) >= 2 and all(isinstance(b, Tensor) for b in batch[:2]):
            batches.append((place(batch[0]), place(batch[1])))
        else:
            raise UsageError(f"a batch is a {type(batch).__name__}, not (inputs, labels): give {EXPECTED}.")
    if not batches:
        raise DataError("there are no batches: a loader can be read only once if it is a generator.")
    return Chunks(tuple(len(x) for x, _ in batches), lambda i: batches[i])


def outputs_of(model: nn.Module, data: Data, *, chunk: int = 500) -> tuple[Tensor, Tensor | None]:
    """The model's outputs and the labels of all examples, in the model's current mode, without gradients.

    >>> outputs_of(nn.Identity(), (torch.eye(2), torch.tensor([0, 1])))
    (tensor([[1., 0.],
            [0., 1.]]), tensor([0, 1]))
    """
    outputs, labels = [], []
    with torch.no_grad():
        for x, y in as_chunks(data, model=model, size=chunk):
            outputs.append(model(x))
            labels.append(y)
    return torch.cat(outputs), None if labels[0] is None else torch.cat([y for y in labels if y is not None])
