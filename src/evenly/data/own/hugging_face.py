"""Data sets of Hugging Face (`hf:NAME` or `hf:PATH`), from a copy on this machine, with the names of their classes.

Nothing is downloaded: `datasets` is asked for what it has stored, or given a folder.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from evenly.data.formats.image_files import Size
from evenly.data.labelled import Labelled, Splits, has_channels_last
from evenly.data.own.folders import SPLIT_NAMES
from evenly.errors import DataError, SetupError, UsageError, did_you_mean
from evenly.progress import Bar

PREFIX = "hf:"


def hugging_face(
    source: str, *, input_column: str | None = None, label_column: str | None = None, size: Size | None = None
) -> Splits:
    """The splits of a Hugging Face data set: its image column, its `ClassLabel` column, and that column's class names.

    `source` is the name of a data set that was loaded on this machine before, or a folder: one that `save_to_disk`
    wrote, or files that `datasets.load_dataset` understands. `size` resizes images, as for a folder of images.
    """
    tables = _tables(source.removeprefix(PREFIX))
    parts = {}
    for split, table in tables.items():
        label = label_column or label_of(table, source)
        if label not in table.column_names:
            raise UsageError(f"{source}: there is no column {label!r}. {did_you_mean(label, table.column_names)}")
        inputs = input_column or input_of(table, label, source)
        names = class_names(table, label, source)
        labels = torch.tensor(_numbers(table, label, names), dtype=torch.int64)
        height_width = (size, size) if isinstance(size, int) else size
        name = SPLIT_NAMES.get(split.lower(), split)
        parts[name] = Labelled(Rows(table, range(len(table)), inputs, height_width), labels, names)
    return Splits(Path(source.removeprefix(PREFIX)).name, parts)


@dataclass(frozen=True, eq=False)
class Rows:
    """One column of a table of `datasets`, by position (a `Lazy`): images decoded on demand, or arrays."""

    table: Any
    positions: Sequence[int]
    column: str
    size: tuple[int, int] | None = None

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
                    f"row {self.positions[position]} has the shape {'×'.join(map(str, value.shape))}, the first has "
                    f"{'×'.join(map(str, self.shape))}. Give a size to resize all images to: --set size=224."
                )
        return torch.stack(inputs) if inputs else torch.empty((0, *self.shape))

    def select(self, positions: Sequence[int]) -> "Rows":
        """The rows at `positions`."""
        return replace(self, positions=[self.positions[i] for i in positions])

    def identity(self) -> Iterator[bytes]:
        """Every input: one pass over the rows."""
        yield repr((self.column, self.size)).encode()
        with Bar("reading", total=len(self)) as bar:
            for position in self.positions:
                value = self._input(position)
                yield repr((tuple(value.shape), str(value.dtype))).encode() + value.contiguous().numpy().tobytes()
                bar.advance()

    def _input(self, position: int) -> Tensor:
        value = self.table[int(position)][self.column]
        if isinstance(value, Image.Image):
            picture = value.convert("L" if value.mode in ("L", "1") else "RGB")
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


def label_of(table: Any, source: str) -> str:
    """The column with the classes: the only `ClassLabel`, or one that is called label or labels."""
    kinds = [name for name, kind in table.features.items() if type(kind).__name__ == "ClassLabel"]
    usual = [name for name in ("label", "labels") if name in table.column_names]
    if len(kinds) == 1:
        return str(kinds[0])
    if usual and (not kinds or usual[0] in kinds):
        return usual[0]
    raise UsageError(
        f"{source}: which column holds the classes? Give --set label_column=NAME; the columns are "
        f"{', '.join(table.column_names)}."
    )


def input_of(table: Any, label: str, source: str) -> str:
    """The column with the inputs: the only image, or the only other column."""
    images = [name for name, kind in table.features.items() if type(kind).__name__ == "Image"]
    others = [name for name in table.column_names if name != label]
    chosen = images if images else others
    if len(chosen) == 1:
        return str(chosen[0])
    raise UsageError(f"{source}: which column holds the inputs? Give --set input_column=NAME, of {', '.join(others)}.")


def class_names(table: Any, label: str, source: str) -> tuple[str, ...]:
    """The names of a `ClassLabel`; of another column its values, sorted."""
    names = getattr(table.features[label], "names", None)
    if names:
        return tuple(map(str, names))
    values = set(table[label])
    if any(isinstance(value, float) or value is None for value in values):
        raise DataError(f"{source}: column {label!r} holds no classes. Bin a continuous target into classes.")
    return tuple(map(str, sorted(values)))


def _numbers(table: Any, label: str, names: tuple[str, ...]) -> list[int]:
    values = list(table[label])
    if getattr(table.features[label], "names", None):
        if missing := sum(value is None or value < 0 for value in values):
            raise DataError(f"{missing:,} rows have no label (−1): this split is not for training or measuring.")
        return [int(value) for value in values]
    place = {name: number for number, name in enumerate(names)}
    return [place[str(value)] for value in values]


def _tables(source: str) -> Mapping[str, Any]:
    try:
        import datasets
    except ImportError as error:
        raise SetupError(
            f'{PREFIX}{source} needs datasets ({error}). Install it: pip install "evenly[datasets]"'
        ) from None
    folder = Path(source)
    try:
        if (folder / "dataset_dict.json").is_file() or (folder / "state.json").is_file():
            loaded = datasets.load_from_disk(str(folder))
        else:
            loaded = _stored(datasets, source)
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


def _stored(datasets: Any, source: str) -> Any:
    """What `load_dataset` gives without asking the network for anything."""
    config = datasets.config
    before = config.HF_HUB_OFFLINE
    config.HF_HUB_OFFLINE = True
    try:
        return datasets.load_dataset(source)
    finally:
        config.HF_HUB_OFFLINE = before
