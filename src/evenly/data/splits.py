"""The parts of one data set: training examples, and those held out, by name."""

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from evenly.data.fingerprints import fingerprint
from evenly.data.labelled import Labelled
from evenly.errors import DataError, UsageError, did_you_mean
from evenly.records.json_text import SPELLED


class Splits(Mapping[str, Labelled]):
    """The parts of one data set by name: `train`, often `validation` and `test`, sometimes `probe` and `balanced`.

    >>> import torch
    >>> part = Labelled(torch.zeros(2, 3), torch.tensor([0, 1]), ("a", "b"))
    >>> splits = Splits("tiny", {"train": part})
    >>> list(splits), splits.train.split, splits.num_classes
    (['train'], 'train', 2)

    `remarks` are sentences about how the data were loaded that a person should see, such as broken images that
    were left out. `drawn_from` names the distribution where a seed draws the examples: the same for every seed.
    """

    repeated = False  # whether training examples occur more than once
    test_is_held_out = False  # whether `test` was held out of the training examples, as the data have no such split

    def __init__(
        self, name: str, parts: Mapping[str, Labelled], *, remarks: Sequence[str] = (), drawn_from: str = ""
    ) -> None:
        _check_parts(name, parts)
        if "train" not in parts:
            raise DataError(f"{name}: there is no 'train' split among {', '.join(parts) or 'none'}.")
        self.name = name
        self.remarks: tuple[str, ...] = tuple(remarks)
        self.drawn_from = drawn_from
        self._parts = {split: replace(part, name=name, split=split) for split, part in parts.items()}
        for part in parts.values():
            _check_names(name, part)
        _check_classes(name, parts)
        _check_twins(name, self.classes)

    def __getitem__(self, split: str) -> Labelled:
        if split not in self._parts:
            raise UsageError(f"{self.name} has no split {split!r}. {did_you_mean(split, self._parts)}")
        return self._parts[split]

    def __contains__(self, split: object) -> bool:
        return split in self._parts

    def __iter__(self) -> Iterator[str]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)

    def __repr__(self) -> str:
        return "\n".join(map(repr, self._parts.values()))

    @property
    def train(self) -> Labelled:
        """The training examples."""
        return self._parts["train"]

    @property
    def classes(self) -> tuple[str, ...]:
        """The class names."""
        return self.train.classes

    @property
    def num_classes(self) -> int:
        """How many classes there are."""
        return self.train.num_classes

    @property
    def fingerprint(self) -> str:
        """Sixteen hex digits over all splits."""
        return fingerprint([repr([(split, part.fingerprint) for split, part in self._parts.items()])])

    def identity(self) -> dict[str, Any]:
        """What tells these data from others, as plain values: the part that data have in the identity of a run."""
        splits = {split: {"examples": len(part), **part.digests} for split, part in self._parts.items()}
        return {
            "name": self.name,
            "fingerprint": self.fingerprint,
            "drawn_from": self.drawn_from or None,
            "splits": splits,
        }

    def __or__(self, more: Mapping[str, Labelled]) -> "Splits":
        made = Splits(self.name, {**self._parts, **more}, remarks=self.remarks, drawn_from=self.drawn_from)
        made.test_is_held_out = self.test_is_held_out and "test" not in more
        return made


def require_splits(splits: Any) -> Splits:
    """The same splits; a `UsageError` for anything else, such as a dict of data sets.

    >>> require_splits({"train": [1, 2]})
    Traceback (most recent call last):
    evenly.errors.UsageError: splits= is a dict, not evenly.Splits. Give Splits("mine", {"train": …}), whose parts ...
    """
    if isinstance(splits, Splits):
        return splits
    raise UsageError(
        f'splits= is a {type(splits).__name__}, not evenly.Splits. Give Splits("mine", {{"train": …}}), whose '
        "parts are Labelled: evenly.data.own.foreign.foreign(dataset) makes one of any map-style data set."
    )


def _check_parts(data: str, parts: Any) -> None:
    """Refuse anything but `Labelled` by name: a data set alone, or data sets of other kinds."""
    if not isinstance(parts, Mapping):
        raise UsageError(
            f'{data}: a {type(parts).__name__} is not splits by name. Give Splits("{data}", {{"train": …}}).'
        )
    for split, part in parts.items():
        if not isinstance(part, Labelled):
            raise UsageError(
                f"{data}: the split {split!r} is a {type(part).__name__}, not a Labelled: "
                "evenly.data.own.foreign.foreign(dataset) makes one of any map-style data set."
            )


def _check_classes(data: str, parts: Mapping[str, Labelled]) -> None:
    """Refuse splits whose class numbers do not mean what those of the training examples do."""
    classes = parts["train"].classes
    for split, part in parts.items():
        if part.classes == classes:
            continue
        place = next((n for n, (one, other) in enumerate(zip(classes, part.classes, strict=False)) if one != other), -1)
        differ = (
            f"{split} has {len(part.classes)} classes and train {len(classes)}"
            if place < 0
            else f"class {place} is {classes[place]!r} in train and {part.classes[place]!r} in {split}"
        )
        raise DataError(f"{data}: {differ}. Number the classes of all splits alike: give each the same `classes`.")


def _check_twins(data: str, classes: Sequence[str]) -> None:
    """Refuse two classes of one name, also as people see it: accents in one character or two, spaces at an end."""
    seen: dict[str, int] = {}
    for label, name in enumerate(classes):
        first = seen.setdefault(unicodedata.normalize("NFC", name).strip(), label)
        if first != label:
            same = name == classes[first]
            called = f"are both called {name!r}" if same else f"look alike, {classes[first]!a} and {name!a}"
            raise DataError(f"{data}: classes {first} and {label} {called}. Rename one, or make them one class.")


def _check_names(data: str, part: Labelled) -> None:
    """Refuse names that no record can hold: numbers, also as text, or of class folders whose bytes are not UTF-8."""
    for name in part.classes:
        if name in SPELLED:
            raise DataError(
                f"{data}: the class {name!r} would be read from a run's records as a number. Rename the class."
            )
    for name in (*part.classes, *part.attributes, *(word for words in part.values.values() for word in words)):
        if not isinstance(name, str):
            raise DataError(f"{data}: the name {name!r} is not text. Name classes, attributes and values by text.")
        if not name.isascii() and name != name.encode("utf-8", "replace").decode():
            raise DataError(f"{data}: the name {name!a} is not UTF-8. Rename the class, attribute or value.")
