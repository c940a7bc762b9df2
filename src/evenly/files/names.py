"""Very many names in little memory: one block of text, and the position of each name in it."""

import array
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray


class Names(Sequence[str]):
    """A sequence of names that takes their bytes and six more for each; a tuple of strings takes sixty more.

    >>> names = Names(["cat/1.png", "dog/1.png"])
    >>> names[1], len(names), list(names.select([1, 1])), names == ("cat/1.png", "dog/1.png")
    ('dog/1.png', 2, ['dog/1.png', 'dog/1.png'], True)
    """

    def __init__(self, names: Iterable[str]) -> None:
        text, lengths = bytearray(), array.array("i")
        for name in names:
            # As in file systems, whose names need not be UTF-8.
            encoded = name.encode("utf-8", "surrogateescape")
            text += encoded
            lengths.append(len(encoded))
        self._text = text
        width = np.uint32 if len(text) < 2**32 else np.uint64
        self._length: NDArray[Any] = np.array(lengths, np.uint16 if max(lengths, default=0) < 2**16 else np.uint32)
        self._start: NDArray[Any] = np.cumsum(self._length, dtype=width) - self._length

    def __len__(self) -> int:
        return len(self._start)

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> "Names": ...
    def __getitem__(self, place: int | slice) -> "str | Names":
        if isinstance(place, slice):
            return self.select(range(len(self))[place])
        start = int(self._start[place])
        return self._text[start : start + int(self._length[place])].decode("utf-8", "surrogateescape")

    def __iter__(self) -> Iterator[str]:
        return (self[place] for place in range(len(self)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or isinstance(other, str):
            return NotImplemented
        return len(self) == len(other) and all(one == two for one, two in zip(self, other, strict=True))

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return f"Names({list(self)!r})" if len(self) <= 3 else f"<{len(self):,} names: {self[0]!r}, {self[1]!r}, …>"

    def select(self, places: Sequence[int]) -> "Names":
        """The names at `places`, which share their text with these."""
        where: Any = np.asarray(places, np.int64)
        part = object.__new__(Names)
        part._text, part._start, part._length = self._text, self._start[where], self._length[where]
        return part


class Constant(Sequence[str]):
    """One word many times over, in no memory.

    >>> list(Constant("train", 2))
    ['train', 'train']
    """

    def __init__(self, word: str, num: int) -> None:
        self._word, self._places = word, range(num)

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> "Constant": ...
    def __getitem__(self, place: int | slice) -> "str | Constant":
        if isinstance(place, slice):
            return Constant(self._word, len(self._places[place]))
        _ = self._places[place]
        return self._word
