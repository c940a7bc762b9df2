"""The inputs in a table of Hugging Face's `datasets`, read row by row on demand."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from evenly.data.channels import channels_first, pixels_of
from evenly.data.formats.image_decoding import as_mode, reason_of
from evenly.data.own.table_columns import require_column
from evenly.errors import DataError
from evenly.progress import Bar


def rows_of(
    table: Any, column: str, source: str, *, size: tuple[int, int] | None = None, mode: Literal["RGB", "L"] = "RGB"
) -> "Rows":
    """All rows of one column; the others are not read, which would decode every picture in them."""
    alone = table.select_columns([require_column(table, column, source)])
    return Rows(alone, range(len(table)), column, size, mode)


@dataclass(frozen=True, eq=False)
class Rows:
    """One column of a table of `datasets`, by position (a `Lazy`): images decoded on demand as `mode`, or arrays."""

    table: Any
    positions: Sequence[int]
    column: str
    size: tuple[int, int] | None = None
    mode: Literal["RGB", "L"] = "RGB"

    def __len__(self) -> int:
        return len(self.positions)

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """The shape of the first input, which all must share."""
        return tuple(self._input(self.positions[0]).shape)

    def read(self, positions: Sequence[int]) -> Tensor:
        """The inputs at `positions`, stacked."""
        inputs = [self._input(self.positions[i]) for i in positions]
        for position, value in zip(positions, inputs, strict=True):
            if tuple(value.shape) != self.shape:
                raise DataError(
                    f"row {self.positions[position]} has the shape {_words(value.shape)}, the first has "
                    f"{_words(self.shape)}. {_remedy(self.shape)}"
                )
        return torch.stack(inputs) if inputs else torch.empty((0, *self.shape))

    def select(self, positions: Sequence[int]) -> "Rows":
        """The rows at `positions`."""
        return replace(self, positions=[self.positions[i] for i in positions])

    def problems(self) -> list[str]:
        """A sentence each on rows that cannot be read and rows of another shape than the first: one pass over all."""
        unread: list[tuple[int, str]] = []
        odd: list[tuple[int, str]] = []
        shape: tuple[int, ...] | None = None
        with Bar("checking rows", total=len(self)) as bar:
            for position in self.positions:
                try:
                    found = tuple(self._input(position).shape)
                    shape = shape or found
                    if found != shape:
                        odd.append((int(position), _words(found)))
                except DataError as error:
                    unread.append((int(position), str(error).partition(": ")[2].partition(". ")[0].rstrip(".")))
                bar.advance()
        sentences = []
        if unread:
            sentences.append(
                f"{len(unread):,} of {len(self):,} rows cannot be read: {_some(unread)}. Leave such rows out when the "
                "data set is saved."
            )
        if odd and shape is not None:
            sentences.append(
                f"{len(odd):,} of {len(self):,} rows are not {_words(shape)} as the first is: {_some(odd)}. "
                f"{_remedy(shape)}"
            )
        return sentences

    def identity(self) -> Iterator[bytes]:
        """Every input: one pass over the rows."""
        yield repr((self.column, self.size, self.mode)).encode()
        with Bar("reading", total=len(self)) as bar:
            for position in self.positions:
                value = self._input(position)
                if value.is_floating_point() and not bool(value.isfinite().all()):
                    raise DataError(f"row {position}: {self.column!r} holds NaN or infinity. Remove or replace it.")
                yield repr((tuple(value.shape), str(value.dtype))).encode() + value.contiguous().numpy().tobytes()
                bar.advance()

    def _input(self, position: int) -> Tensor:
        try:
            value = self.table[int(position)][self.column]
            if isinstance(value, Image.Image):
                value = as_mode(value, self.mode)
        except DataError as error:
            raise DataError(f"row {position}: {self.column!r} has {error}.") from error
        except Exception as error:  # any error of datasets or Pillow on damaged bytes
            raise DataError(
                f"row {position}: {self.column!r} does not decode ({reason_of(error):.100}). Leave it out."
            ) from error
        if isinstance(value, Image.Image):
            picture = value
            if self.size is not None and picture.size != (self.size[1], self.size[0]):
                picture = picture.resize((self.size[1], self.size[0]), Image.Resampling.BILINEAR)
            return pixels_of(picture)
        try:
            array = np.asarray(value)
            numbers = torch.from_numpy(array if array.dtype == np.uint8 else array.astype(np.float32))
        except (TypeError, ValueError) as error:
            raise DataError(f"row {position}: {self.column!r} holds neither an image nor numbers.") from error
        return channels_first(numbers)


def _words(shape: Sequence[int]) -> str:
    return "×".join(map(str, shape)) or "a single number"


def _remedy(shape: Sequence[int]) -> str:
    """What makes rows of several shapes alike."""
    if len(shape) == 3:
        return f"Give a size to resize all images to: --set size={shape[-1]}."
    return "Give each row as many numbers when the data set is saved."


def _some(rows: Sequence[tuple[int, str]], most: int = 5) -> str:
    more = f" and {len(rows) - most:,} more" if len(rows) > most else ""
    return ", ".join(f"row {row} ({what})" for row, what in rows[:most]) + more
