"""Data sets of Hugging Face (`hf:NAME` or `hf:PATH`), from a copy on this machine, with the names of their classes.

Nothing is downloaded: `datasets` reads its local cache, or a folder.
"""

import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from evenly.data.formats.class_folders import quote_names
from evenly.data.formats.image_decoding import as_mode, reason_of
from evenly.data.formats.image_files import Size, height_and_width
from evenly.data.labelled import Labelled, has_channels_last
from evenly.data.own.folders import SPLIT_NAMES
from evenly.data.splits import Splits
from evenly.errors import DataError, SetupError, UsageError, did_you_mean
from evenly.progress import Bar

PREFIX = "hf:"
UNLABELLED = -1  # as `datasets` has it


def hugging_face(
    source: str, *, input_column: str | None = None, label_column: str | None = None, size: Size | None = None
) -> Splits:
    """The splits of a Hugging Face data set: its image column, its `ClassLabel` column, and that column's class names.

    `source` is the name of a data set that was loaded on this machine before, or a folder: one that `save_to_disk`
    wrote, or files that `datasets.load_dataset` understands. `size` resizes images, as for a folder of images. The
    classes are those of the training split, whose label and input columns the others share; a split with unlabelled
    rows is left out, with a remark.
    """
    resized = None if size is None else height_and_width(size)
    tables = _by_split(source)
    label = label_column or label_of(tables["train"], source)
    inputs = input_column or input_of(tables["train"], label, source)
    names = class_names(tables["train"], _existing(tables["train"], label, source), source)
    labels: dict[str, Tensor] = {}
    remarks = []
    for split, table in tables.items():
        _existing(table, inputs, f"{source}, split {split}")
        numbers = class_numbers(table, label, names, f"{source}, split {split}")
        if missing := numbers.count(UNLABELLED):
            without = f"{source}: {missing:,} of {len(numbers):,} rows of the split {split} have no label"
            if split == "train":
                raise DataError(f"{without}. Leave them out when the data set is saved.")
            remarks.append(f"{without}, so this split is left out.")
            continue
        labels[split] = torch.tensor(numbers, dtype=torch.int64)
    mode: Literal["L", "RGB"] = "L" if all(is_grey(tables[split], inputs) for split in labels) else "RGB"
    parts = {
        split: Labelled(rows_of(tables[split], inputs, source, size=resized, mode=mode), numbers_N, names)
        for split, numbers_N in labels.items()
    }
    return Splits(Path(source.removeprefix(PREFIX)).name, parts, remarks=remarks)


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
            pixels = np.array(picture)
            return torch.from_numpy(pixels[None] if pixels.ndim == 2 else pixels.transpose(2, 0, 1).copy())
        try:
            array = np.asarray(value)
            numbers = torch.from_numpy(array if array.dtype == np.uint8 else array.astype(np.float32))
        except (TypeError, ValueError) as error:
            raise DataError(f"row {position}: {self.column!r} holds neither an image nor numbers.") from error
        return numbers.permute(2, 0, 1) if has_channels_last(numbers.shape) else numbers


def rows_of(
    table: Any, column: str, source: str, *, size: tuple[int, int] | None = None, mode: Literal["RGB", "L"] = "RGB"
) -> Rows:
    """All rows of one column; the others are not read, which would decode every picture in them."""
    alone = table.select_columns([_existing(table, column, source)])
    return Rows(alone, range(len(table)), column, size, mode)


def is_grey(table: Any, column: str) -> bool:
    """Whether a column holds pictures without colour only; headers are read up to the first with colour."""
    if type(table.features[column]).__name__ != "Image" or not len(table):
        return False
    undecoded = table.select_columns([column]).cast_column(column, replace(table.features[column], decode=False))
    for row in undecoded:
        held = row[column] or {}
        try:
            with Image.open(io.BytesIO(held["bytes"]) if held.get("bytes") is not None else held["path"]) as image:
                if image.mode not in ("1", "L", "LA"):
                    return False
        except Exception:  # reported when it is decoded
            continue
    return True


def label_of(table: Any, source: str, *, remedy: str = "--set label_column=NAME") -> str:
    """The column with the classes: the only `ClassLabel`, or one that is called label or labels."""
    kinds = [name for name, kind in table.features.items() if type(kind).__name__ == "ClassLabel"]
    usual = [name for name in ("label", "labels") if name in table.column_names]
    if len(kinds) == 1:
        return str(kinds[0])
    if usual and (not kinds or usual[0] in kinds):
        return usual[0]
    raise UsageError(
        f"{source}: which column holds the classes? Give {remedy}; the columns are {', '.join(table.column_names)}."
    )


def input_of(table: Any, label: str, source: str, *, remedy: str = "--set input_column=NAME") -> str:
    """The column with the inputs: the only image, or the only other column."""
    images = [name for name, kind in table.features.items() if type(kind).__name__ == "Image"]
    others = [name for name in table.column_names if name != label]
    chosen = images if images else others
    if len(chosen) == 1:
        return str(chosen[0])
    raise UsageError(f"{source}: which column holds the inputs? Give {remedy}, of {', '.join(others)}.")


def class_names(table: Any, label: str, source: str) -> tuple[str, ...]:
    """The names of a `ClassLabel`; of another column its values, sorted."""
    names = getattr(table.features[label], "names", None)
    if names:
        return tuple(map(str, names))
    values = list(table[label])
    if any(isinstance(value, float | list | dict) for value in values):
        raise DataError(
            f"{source}: column {label!r} holds no classes. Bin a continuous target into classes; give each row one "
            "class."
        )
    return tuple(map(str, sorted({value for value in values if value is not None})))


def class_numbers(table: Any, label: str, names: Sequence[str], source: str) -> list[int]:
    """The place of each row's class among `names`, and `UNLABELLED` for a row without a label (none, or −1)."""
    if label not in table.column_names:
        return [UNLABELLED] * len(table)
    values = list(table[label])
    own = getattr(table.features[label], "names", None)
    if own:  # numbers that are places among the names of this very split
        values = [None if value is None or value < 0 else own[value] for value in values]
    place: dict[Any, int] = {name: number for number, name in enumerate(names)}
    place |= {None: UNLABELLED} if "-1" in place else {None: UNLABELLED, "-1": UNLABELLED}
    words = [None if value is None else str(value) for value in values]
    if strange := sorted({word for word in words if word is not None and word not in place}):
        raise DataError(
            f"{source}: class {quote_names(strange)} has no training example. Add training examples, or leave such "
            "rows out."
        )
    return [place[word] for word in words]


def _existing(table: Any, column: str, source: str) -> str:
    if column not in table.column_names:
        raise UsageError(f"{source}: there is no column {column!r}. {did_you_mean(column, table.column_names)}")
    return column


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


def _by_split(source: str) -> dict[str, Any]:
    """The table of each split, under the usual name of that split."""
    tables: dict[str, Any] = {}
    given: dict[str, str] = {}
    for name, table in _tables(source.removeprefix(PREFIX)).items():
        split = SPLIT_NAMES.get(name.lower(), name)
        if split in tables:
            raise DataError(f"{source}: both {given[split]!r} and {name!r} would be the split {split}. Keep one.")
        tables[split], given[split] = table, name
    if "train" not in tables:
        raise DataError(f"{source}: there is no split 'train' among {', '.join(tables) or 'none'}.")
    return tables


def _tables(source: str) -> Mapping[str, Any]:
    try:
        import datasets
    except ImportError as error:
        raise SetupError(
            f'{PREFIX}{source} needs datasets ({error}). Install it: pip install "evenly[datasets]"'
        ) from None
    folder = Path(source)
    if not source:
        raise UsageError(f"{PREFIX} is followed by the name of a data set or by a folder, such as {PREFIX}photos.")
    if source.startswith((".", "/", "~")) and not folder.exists():
        raise DataError(f"{PREFIX}{source}: there is no folder {source}.")
    try:
        if (folder / "dataset_dict.json").is_file() or (folder / "state.json").is_file():
            loaded = datasets.load_from_disk(str(folder))
        else:
            loaded = _load_stored(datasets, source)
    except (SetupError, DataError):
        raise
    except Exception as error:  # whatever datasets does with what is not there or damaged
        reason = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
        raise DataError(
            f'{PREFIX}{source} could not be loaded from this machine: {reason:.300}. Fetch it once: python -c "import '
            f"datasets; datasets.load_dataset('{source}').save_to_disk('{folder.name}')\", then give "
            f"{PREFIX}{folder.name}."
        ) from error
    return loaded if isinstance(loaded, Mapping) else {str(loaded.split or "train"): loaded}


def _load_stored(datasets: Any, source: str) -> Any:
    """The result of `load_dataset` without network access."""
    config = datasets.config
    before = config.HF_HUB_OFFLINE
    config.HF_HUB_OFFLINE = True
    try:
        return datasets.load_dataset(source)
    finally:
        config.HF_HUB_OFFLINE = before
