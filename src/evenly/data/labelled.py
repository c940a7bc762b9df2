"""The one type of all data: inputs, labels, named attributes, and indices that never change.

Shapes: N examples, C channels, H × W pixels, D inputs.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor
from torch.utils.data import Dataset

from evenly.data.fingerprints import fingerprint
from evenly.data.positions import check_positions
from evenly.errors import DataError, UsageError, did_you_mean

MOST_VALUES = 32  # an attribute with more values than this is a number, not a grouping
EMPTY = "(empty)"  # the name of an attribute's value that is an empty text
_UNSIGNED = (torch.uint16, torch.uint32, torch.uint64)  # torch stores these and computes next to nothing with them


@runtime_checkable
class Lazy(Protocol):
    """Inputs that stay on disk until they are asked for: image files, a foreign data set."""

    def __len__(self) -> int: ...

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one input, the same for all."""

    def read(self, positions: Sequence[int]) -> Tensor:
        """The inputs at `positions`, stacked."""

    def select(self, positions: Sequence[int]) -> "Lazy":
        """The same kind of inputs, restricted to `positions`."""

    def identity(self) -> Iterator[bytes]:
        """Bytes that change when any input does."""


@dataclass(frozen=True, eq=False)
class Labelled(Dataset[tuple[Tensor, int]]):
    """Examples with labels: one split of one data set.

    It is an ordinary map-style `torch.utils.data.Dataset` of `(input, label)`, with uint8 images scaled
    to [0, 1]; `batches` and `gather` are the fast ways through it.

    Parameters
    ----------
    inputs
        A tensor with the examples first (images as uint8 N×C×H×W, other data as float), or `Lazy` inputs. Networks are
        trained on float32, whatever the kind of number is here.
    labels
        Class numbers from 0, one per example.
    classes
        The name of each class.
    attributes
        Named integer facts per example, such as `easy`, `hard`, `group`, `domain`.
    values
        For an attribute, the names of its values, where they have names.
    index
        A number per example that stays its own in every subset, split and copy; 0..N−1 by default.
    planted
        Directions in input space that a generator planted, by name (toy data only).

    Examples
    --------
    >>> data = Labelled(torch.arange(4.0)[:, None], torch.tensor([0, 1, 0, 1]), ("even", "odd"))
    >>> data[3], data.subset([1, 3]).index.tolist()
    ((tensor([3.]), 1), [1, 3])
    """

    inputs: Tensor | Lazy
    labels: Tensor
    classes: tuple[str, ...]
    attributes: Mapping[str, Tensor] = field(default_factory=dict)
    values: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    index: Tensor = field(default_factory=lambda: torch.empty(0, dtype=torch.int64))
    name: str = "data"
    split: str = "train"
    planted: Mapping[str, Tensor] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # Of the type, not of the object: asking an instance for all that `Lazy` has would read the first input.
        lazy = hasattr(type(self.inputs), "read")
        for what, given, right in (("inputs", self.inputs, lazy), ("labels", self.labels, False)):
            if not (right or isinstance(given, Tensor)):
                raise UsageError(f"{self.name}: {what} are a {type(given).__name__}: give torch.as_tensor({what}).")
            if isinstance(given, Tensor) and given.ndim == 0:
                raise DataError(f"{self.name}: {what} are a single number: give one for each example.")
        object.__setattr__(self, "classes", self._plain_classes())
        self._check_attributes()
        if not len(self.index):
            object.__setattr__(self, "index", torch.arange(len(self.inputs)))
        self._check_lengths()
        self._check_kinds()
        # Of one kind everywhere: in bytes 2y − 1, the sign of class 0, would be 255.
        object.__setattr__(self, "labels", self.labels.long())
        self._check_labels()

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, position: int) -> tuple[Tensor, int]:
        return self.__getitems__([range(len(self))[position]])[0]  # an IndexError ends a loop over all examples

    def __getitems__(self, positions: Sequence[int]) -> list[tuple[Tensor, int]]:
        """Several examples at once: `DataLoader` fetches a batch by this."""
        inputs = scale_pixels(self.gather(positions))
        return [(x, int(self.labels[i])) for x, i in zip(inputs, positions, strict=True)]

    def __repr__(self) -> str:
        kind = "lazy " if isinstance(self.inputs, Lazy) else ""
        shape = "×".join(map(str, self.shape))
        facts = f", attributes {', '.join(self.attributes)}" if self.attributes else ""
        return f"<{self.name} {self.split}: {len(self):,} {kind}examples of {shape}, {self.num_classes} classes{facts}>"

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one input."""
        return tuple(self.inputs.shape) if isinstance(self.inputs, Lazy) else tuple(self.inputs.shape[1:])

    @property
    def num_classes(self) -> int:
        """How many classes there are, also those without an example here."""
        return len(self.classes)

    @property
    def lazy(self) -> bool:
        """Whether the inputs are still on disk."""
        return isinstance(self.inputs, Lazy)

    def gather(self, positions: Tensor | Sequence[int]) -> Tensor:
        """The raw inputs at `positions`, stacked: uint8 stays uint8."""
        where = self._positions("gather", positions)
        if isinstance(self.inputs, Lazy):
            return self.inputs.read(where.tolist())
        # index_select copies whole examples; advanced indexing would look at every pixel.
        return self.inputs.index_select(0, where.to(self.inputs.device))

    def subset(
        self, positions: Tensor | Sequence[int], *, split: str | None = None, index: Tensor | None = None
    ) -> "Labelled":
        """The examples at `positions`, in that order; their `index` goes with them, unless another is given."""
        where = self._positions("subset", positions)
        return replace(
            self,
            inputs=self.inputs.select(_compact(where)) if isinstance(self.inputs, Lazy) else self.inputs[where],
            labels=self.labels[where],
            attributes={name: values[where] for name, values in self.attributes.items()},
            index=self.index[where] if index is None else index,
            split=split or self.split,
        )

    def _positions(self, who: str, given: Tensor | Sequence[int]) -> Tensor:
        return check_positions(given, len(self), who=f"{who}: positions", where=f"{self.name} {self.split}")

    def attribute(self, name: str) -> Tensor:
        """The named attribute; `label` is always one of them."""
        if name == "label":
            return self.labels
        if name not in self.attributes:
            raise UsageError(
                f"{self.name} has no attribute {name!r}. {did_you_mean(name, ['label', *self.attributes])}"
            )
        return self.attributes[name]

    def to(self, device: torch.device | str) -> "Labelled":
        """The same examples with inputs and labels on `device` (lazy inputs stay on disk)."""
        inputs = self.inputs if isinstance(self.inputs, Lazy) else self.inputs.to(device)
        return replace(self, inputs=inputs, labels=self.labels.to(device))

    def in_memory(self, *, chunk: int = 1024) -> "Labelled":
        """The same examples with every input decoded into one tensor, read in chunks with a progress bar."""
        if not isinstance(self.inputs, Lazy):
            return self
        from evenly.progress import Bar

        whole: Tensor | None = None
        with Bar(f"decoding {self.name} {self.split}", total=len(self)) as bar:
            for start in range(0, len(self), chunk):
                part = self.inputs.read(range(start, min(start + chunk, len(self))))
                if whole is None:
                    whole = torch.empty((len(self), *part.shape[1:]), dtype=part.dtype)
                whole[start : start + len(part)] = part
                bar.advance(len(part))
        return replace(self, inputs=whole if whole is not None else torch.empty((0, *self.shape)))

    @property
    def fingerprint(self) -> str:
        """Sixteen hex digits that change when inputs, labels, classes, attributes or order do."""
        return fingerprint([repr(self.digests)])

    @property
    def digests(self) -> dict[str, str]:
        """Sixteen hex digits for each thing that makes up the examples, to tell which of them differs.

        Tensors that were changed in place since the last look have other digests.
        """
        names = sorted(self.attributes)
        meant = [(name, self.values.get(name)) for name in names]
        return {
            "inputs": self._inputs_digest(),
            "labels": fingerprint([self.labels]),
            "classes": fingerprint([repr(self.classes)]),
            "attributes": fingerprint([repr(meant), *(self.attributes[name].long() for name in names)]),
            "order": fingerprint([self.index]),
        }

    def _inputs_digest(self) -> str:
        """The digest of the inputs, kept until torch changes them in place: of all tensors they alone are large."""
        version: int | None = 0
        if isinstance(self.inputs, Tensor):  # those of inference mode count no changes
            version = None if self.inputs.is_inference() else self.inputs._version
        kept: tuple[int | None, str] = getattr(self, "_kept_digest", (None, ""))
        if version is not None and version == kept[0]:
            return kept[1]
        inputs = self.inputs.identity() if isinstance(self.inputs, Lazy) else (str(self.inputs.dtype), self.inputs)
        digest = fingerprint([repr(self.shape), *inputs])
        object.__setattr__(self, "_kept_digest", (version, digest))
        return digest

    # The version of a tensor is not kept by its copies.
    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_kept_digest"}

    def _plain_classes(self) -> tuple[str, ...]:
        """The names in a tuple, and as Python's own text: digests are of how they are written."""
        given: Any = self.classes
        if isinstance(given, str) or not hasattr(given, "__iter__"):
            raise UsageError(f"{self.name}: classes are {given!r:.60}: give the name of each class, ('cat', 'dog').")
        return tuple(str(name) if isinstance(name, str) else name for name in given)

    def _check_attributes(self) -> None:
        attributes: Mapping[str, Any] = self.attributes
        for name, given in attributes.items():
            if not isinstance(given, Tensor):
                kind = type(given).__name__
                raise UsageError(f"{self.name}: attribute {name!r} is a {kind}: give torch.as_tensor(…).")
            if given.is_floating_point() or given.is_complex() or given.ndim != 1:
                raise DataError(
                    f"{self.name}: attribute {name!r} is {given.dtype} of shape {tuple(given.shape)}, expected one "
                    "whole number per example. Bin measurements, and give .long()."
                )

    def _check_lengths(self) -> None:
        lengths = {"inputs": len(self.inputs), "labels": len(self.labels), "index": len(self.index)}
        lengths |= {f"attribute {name!r}": len(values) for name, values in self.attributes.items()}
        if len(set(lengths.values())) > 1:
            listing = ", ".join(f"{name} {length}" for name, length in lengths.items())
            raise DataError(f"{self.name}: every example needs one of each, but there are: {listing}.")

    def _check_kinds(self) -> None:
        if self.labels.is_floating_point() or self.labels.is_complex() or self.labels.ndim != 1:
            raise DataError(
                f"{self.name}: labels must be one class number per example, not {self.labels.dtype} of shape "
                f"{tuple(self.labels.shape)}. Bin a continuous target into classes first."
            )
        if isinstance(self.inputs, Tensor) and self.inputs.is_complex():
            raise DataError(
                f"{self.name}: inputs are {self.inputs.dtype}, and networks take real numbers: give "
                "torch.view_as_real(inputs), or a part of them."
            )
        if isinstance(self.inputs, Tensor) and self.inputs.dtype in _UNSIGNED:
            object.__setattr__(self, "inputs", self.inputs.to(torch.float32))

    def _check_labels(self) -> None:
        wrong = ((self.labels < 0) | (self.labels >= self.num_classes)).nonzero().flatten()
        if len(wrong):
            first = int(wrong[0])
            raise DataError(
                f"{self.name}: label {int(self.labels[first])} of example {int(self.index[first])} is out of range: "
                f"{self.num_classes} classes are numbered 0 to {self.num_classes - 1} ({len(wrong)} such labels)."
            )


def _compact(where: Tensor) -> Sequence[int]:
    """Positions as a sequence that takes no memory of its own: a list of a million integers takes 40 MB."""
    return memoryview(where.cpu().numpy())  # type: ignore[arg-type]  # an array of numpy's is a buffer


def scale_pixels(x: Tensor) -> Tensor:
    """Images as float32 in [0, 1]; anything that is not uint8 as it is."""
    return x.to(torch.float32).div_(255) if x.dtype == torch.uint8 else x
