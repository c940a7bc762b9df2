"""Your own list of images: a CSV or Parquet file with a path and a label in every row."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from evenly.data.formats.class_folders import quote_names, require_files
from evenly.data.formats.image_files import SUFFIXES, Size
from evenly.data.formats.listing import Listing, by_split, members
from evenly.data.formats.locate import Missing
from evenly.data.labelled import EMPTY, MOST_VALUES
from evenly.data.own.column_choice import is_there, refuse_shared
from evenly.data.own.columns import number_words, whole_numbers
from evenly.data.own.folders import SPLIT_NAMES
from evenly.data.own.parquet import read_parquet
from evenly.data.own.repeats import repeats, with_copies
from evenly.data.own.shared_files import remarks_on_shared
from evenly.data.splits import Splits
from evenly.errors import DataError, did_you_mean
from evenly.files.cells import is_integer, is_number, whole_number
from evenly.files.names import Constant, Names
from evenly.files.tables import Column, Table, read_csv

_SEPARATORS = {",": "commas", "\t": "tabs", ";": "semicolons", "|": "bars"}
_USUAL_SPLITS = ("train", "validation", "val", "valid", "test")
_MORE_SPLITS = ("probe", "balanced", "target_train", "target_test")


def manifest(
    path: Path,
    *,
    path_column: str = "path",
    label_column: str = "label",
    split_column: str = "split",
    repeat_column: str = "repeat",
    size: Size | None = None,
    skip_broken: bool = False,
) -> Splits:
    """Images listed in a `.csv`, `.tsv` or `.parquet` file with columns `path,label[,split][,repeat][,attribute…]`.

    Paths are relative to the manifest. Labels are names, or whole numbers where every one is written as such (7 or
    7.0): numbered in sorted order, so that `007` and `7` are two classes. Without a split
    column all is `train`; `val` and `valid` mean `validation`; `probe`, `balanced`, `target_train` and `target_test`
    are splits too. A training row with `repeat` 2 is there twice, as `evenly export --as csv` means it: its copies are
    numbered after all rows and augmented each on its own. Any further column of whole numbers or of text becomes an
    attribute (text sorted and numbered; empty cells are a group `(empty)`, and remarked on); columns of other numbers
    are ignored. A row's number is the example's `index`. `size` and `skip_broken` are as for `folder`.

    >>> import tempfile
    >>> from PIL import Image
    >>> root = Path(tempfile.mkdtemp())
    >>> Image.new("RGB", (8, 8)).save(root / "1.png")
    >>> _ = (root / "list.csv").write_text("path,label,place\\n1.png,cat,indoors\\n1.png,dog,outdoors\\n")
    >>> data = manifest(root / "list.csv").train
    >>> data, data.classes, data.values["place"]
    (<list.csv train: 2 lazy examples of 3×8×8, 2 classes, attributes place>, ('cat', 'dog'), ('indoors', 'outdoors'))
    """
    path = Path(path)
    if not path.exists():
        raise Missing("A manifest", [path])
    table = read_parquet(path) if path.suffix.lower() == ".parquet" else _read_csv(path)
    columns = table.columns
    for column, option in ((path_column, "path_column"), (label_column, "label_column")):
        if column not in columns:
            hint = did_you_mean(column, columns)
            near = f"{hint} " if hint.startswith("Did") else ""  # else the columns would be listed twice
            if column == path_column and _is_of_numbers(columns):
                raise DataError(
                    f"{path}: there is no column {column!r}, and its columns hold numbers: {', '.join(columns)}. A "
                    "manifest lists image files. Numbers go into an .npz file, with the arrays inputs and labels."
                )
            raise DataError(
                f"{path}: there is no column {column!r}; its columns: {', '.join(columns)}. "
                f"{near}{_misread(path, list(columns))}"
                f"Name the column with {option}=, or --set {option}=NAME."
            )
    chosen = {"path_column": path_column, "label_column": label_column}
    for option, column in (("split_column", split_column), ("repeat_column", repeat_column)):
        chosen |= {option: column} if is_there(path, columns, option, column) else {}
    refuse_shared(path, chosen)
    if not len(table):
        raise DataError(f"{path}: lists no images: there is no row below the header.")
    _refuse_empty(path, path_column, columns[path_column])
    label_N, classes = _classes(path, label_column, columns.pop(label_column))
    split_of = _splits(path, split_column, columns.pop(split_column)) if split_column in columns else None
    split_of = split_of or Constant("train", len(table))
    _refuse_untrained(path, label_N, classes, split_of)
    often = columns.pop(repeat_column, None)
    repeat = None if often is None else repeats(str(path), repeat_column, often, split_of=split_of, place=table.place)
    del often
    attributes: dict[str, Tensor] = {}
    values: dict[str, tuple[str, ...]] = {}
    remarks: list[str] = []
    for name in [each for each in columns if each != path_column]:  # each is freed as soon as it is converted
        if (coded := _attribute(columns.pop(name))) is not None:
            attributes[name], words = coded
            values |= {} if words is None else {name: words}
            remarks += _on_empty(name, attributes[name], words or (), split_of)
            del coded
    require_files(path, path.parent, columns[path_column])
    names = Names(columns.pop(path_column))
    del table
    listing = Listing(path.parent, names, label_N, classes, attributes, values)
    labelled = listing.to_labelled(size=size, skip_broken=skip_broken)
    del listing, attributes
    remarks += remarks_on_shared(labelled, split_of)
    splits = (
        by_split(path.name, labelled, split_of)
        if repeat is None
        else with_copies(path.name, labelled, repeat, split_of)
    )
    splits.remarks = (*splits.remarks, *remarks)
    return splits


def _read_csv(path: Path) -> Table:
    return read_csv(path, delimiter=_separator(path), hint=lambda header: _misread(path, header))


def _is_of_numbers(columns: Mapping[str, Column]) -> bool:
    """Whether the first row holds numbers, but for a label at most, so that no column can name files."""
    numeric = [is_number(next(iter(column))) for column in columns.values() if len(column)]
    return sum(numeric) >= max(2, len(numeric) - 1)


def _separator(path: Path) -> str:
    return "\t" if path.suffix.lower() == ".tsv" else ","


def _misread(path: Path, header: list[str]) -> str:
    """What is wrong with a first line that does not look like column names; empty if it does."""
    if path.suffix.lower() == ".parquet":
        return ""
    separator = _separator(path)
    other = next((mark for mark in _SEPARATORS if mark != separator and mark in header[0]), None)
    if len(header) == 1 and other is not None:
        return (
            f"The first line was read as one column, {header[0]!r}: separate columns by {_SEPARATORS[separator]}, not "
            f"by {_SEPARATORS[other]}. "
        )
    if any(name.lower().endswith(SUFFIXES) for name in header):
        return (
            f"The first line, {separator.join(header)!r}, was read as the names of the columns and looks like an "
            f"example: put the line {separator.join(('path', 'label'))!r} above it. "
        )
    return ""


def _classes(path: Path, column: str, cells: Column) -> tuple[Tensor, tuple[str, ...]]:
    _refuse_empty(path, column, cells)
    if (number_N := whole_numbers(cells)) is not None:
        order, label_N = np.unique(number_N, return_inverse=True)
        return torch.from_numpy(label_N), tuple(map(str, order.tolist()))
    if all(is_number(cell) for cell in cells) and (measured := next((c for c in cells if not is_integer(c)), None)):
        raise DataError(
            f"{path}: column {column!r} holds {measured!r}: labels are class names or whole numbers, not measurements. "
            "Bin the target into classes."
        )
    return number_words(cells)


def _attribute(cells: Column) -> tuple[Tensor, tuple[str, ...] | None] | None:
    """Numbers, and the words they stand for if it was text; None for a column of measurements."""
    if (number_N := whole_numbers(cells)) is not None:
        return torch.from_numpy(number_N), None
    numeric = all(is_number(cell) for cell in cells if cell)
    if numeric and not all(is_integer(cell) or whole_number(cell) is not None for cell in cells if cell):
        return None
    return number_words(cells)


def _on_empty(name: str, number_N: Tensor, words: Sequence[str], split_of: Sequence[str]) -> list[str]:
    """A sentence on the empty cells of an attribute that makes groups, except in splits that do not have it at all."""
    if "" not in words or len(words) > MOST_VALUES:
        return []
    empty_N = number_N == words.index("")
    rows = sum(int((empty_N & in_N).sum()) for in_N in members(split_of).values() if not bool(empty_N[in_N].all()))
    if not rows:
        return []
    return [
        f"column {name!r} is empty in {f'{rows:,} rows: they form' if rows > 1 else '1 row: it forms'} a group "
        f"{EMPTY!r}."
    ]


def _splits(path: Path, column: str, cells: Column) -> Sequence[str]:
    _refuse_empty(path, column, cells)
    known = SPLIT_NAMES | {split: split for split in _MORE_SPLITS}
    split_of = [known.get(cell.lower(), "") for cell in cells]
    wrong = [(row, cell) for row, cell in enumerate(cells) if not split_of[row]] if "" in split_of else []
    if wrong:
        row, first = wrong[0]
        raise DataError(
            f"{path}: column {column!r} holds {first!r} in row {row + 1:,}, which is not a split "
            f"({len(wrong):,} such rows). {did_you_mean(first.lower(), [*_USUAL_SPLITS, *_MORE_SPLITS])} "
            "If the column means something else, name another with split_column=."
        )
    return split_of


def _refuse_untrained(path: Path, label_N: Tensor, classes: Sequence[str], split_of: Sequence[str]) -> None:
    trained = {label for label, split in zip(label_N.numpy(), split_of, strict=True) if split == "train"}
    strange = [name for label, name in enumerate(classes) if label not in trained]
    if trained and strange:
        raise DataError(f"{path}: class {quote_names(strange)} has no training example. Add some, or remove the class.")


def _refuse_empty(path: Path, column: str, cells: Column) -> None:
    empty = [row for row, cell in enumerate(cells, start=1) if not cell]
    if empty:
        raise DataError(
            f"{path}: column {column!r} is empty in row {empty[0]:,} ({len(empty):,} such rows). Fill it in."
        )
