"""Your own list of images: a CSV or Parquet file with a path and a label in every row."""

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from evenly.data.formats.class_folders import listed, require_files
from evenly.data.formats.image_files import SUFFIXES, Size
from evenly.data.formats.listing import Listing
from evenly.data.formats.locate import missing
from evenly.data.labelled import Splits
from evenly.data.own.folders import SPLIT_NAMES
from evenly.data.own.repeats import repeats, with_copies
from evenly.errors import DataError, SetupError, did_you_mean

Columns = dict[str, list[str]]
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

    Paths are relative to the manifest. Labels are names or whole numbers, numbered in sorted order. Without a split
    column all is `train`; `val` and `valid` mean `validation`; `probe`, `balanced`, `target_train` and `target_test`
    are splits too. A training row with `repeat` 2 is there twice, as `evenly export --as csv` means it: its copies are
    numbered after all rows and augmented each on its own. Any further column of whole numbers or of text becomes an
    attribute (text sorted and numbered, an empty cell is a value of its own); columns of other numbers are passed over.
    A row's number is the example's `index`. `size` and `skip_broken` are as for `folder`.

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
    if not path.is_file():
        raise missing("A manifest", [path])
    columns, places = _read_parquet(path) if path.suffix.lower() == ".parquet" else _read_csv(path)
    for column, option in ((path_column, "path_column"), (label_column, "label_column")):
        if column not in columns:
            hint = did_you_mean(column, columns)
            near = f"{hint} " if hint.startswith("Did") else ""  # else it would list the columns a second time
            raise DataError(
                f"{path}: there is no column {column!r}; its columns: {', '.join(columns)}. "
                f"{near}{_misread(path, list(columns))}"
                f"Name the column with {option}=, or --set data.options.{option}=NAME."
            )
    names = columns.pop(path_column)
    if not names:
        raise DataError(f"{path}: lists no images: there is no row below the header.")
    _refuse_empty(path, path_column, names)
    labels, classes = _classes(path, label_column, columns.pop(label_column))
    split_of = _splits(path, split_column, columns.pop(split_column, ["train"] * len(names)))
    _refuse_untrained(path, labels, classes, split_of)
    often = columns.pop(repeat_column, ["1"] * len(names))
    repeat = repeats(str(path), repeat_column, often, split_of=split_of, places=places)
    require_files(path, path.parent, names)
    numbered = {name: coded for name, cells in columns.items() if (coded := _attribute(cells)) is not None}
    attributes = {name: numbers for name, (numbers, _) in numbered.items()}
    values = {name: words for name, (_, words) in numbered.items() if words is not None}
    listing = Listing(path.parent, names, labels, classes, attributes, values)
    return with_copies(path.name, listing.labelled(size=size, skip_broken=skip_broken), repeat, split_of)


class _Table(NamedTuple):
    """The cells of every column, and where each row stands in the file."""

    columns: Columns
    places: list[str]


def _read_csv(path: Path) -> _Table:
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file, delimiter=_separator(path), strict=True)
            header = [name.strip() for name in next(reader, [])]
            if not header:
                raise DataError(f"{path}: is empty. Its first line names the columns: path,label.")
            if len(set(header)) < len(header):
                raise DataError(f"{path}: two columns have the same name: {', '.join(header)}.")
            rows, places = [], []
            for row in reader:
                if row and len(row) != len(header):
                    raise DataError(
                        f"{path}: line {reader.line_num} has {len(row)} fields, the header has {len(header)} "
                        f"({', '.join(header)}). {_misread(path, header)}".rstrip()
                    )
                if row:
                    rows.append(row)
                    places.append(f"line {reader.line_num}")
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: is not UTF-8 text (byte {error.start}). Save it as UTF-8.") from error
    except csv.Error as error:
        raise DataError(f"{path}: is not a CSV file: {error}.") from error
    return _Table({name: [row[i].strip() for row in rows] for i, name in enumerate(header)}, places)


def _separator(path: Path) -> str:
    return "\t" if path.suffix.lower() == ".tsv" else ","


def _misread(path: Path, header: list[str]) -> str:
    """What is wrong with a first line that does not look like names of columns; nothing where it does."""
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


def _read_parquet(path: Path) -> _Table:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise SetupError(
            f'{path}: reading Parquet needs pyarrow: pip install "evenly[parquet]", or give the manifest as .csv.'
        ) from error
    try:
        table = pyarrow.parquet.read_table(path)
    except (pyarrow.ArrowException, OSError) as error:
        raise DataError(f"{path}: is not a readable Parquet file: {error}") from error

    def text(cell: Any) -> str:
        return "" if cell is None else str(cell)

    columns = {name: [text(cell) for cell in table.column(name).to_pylist()] for name in table.column_names}
    return _Table(columns, [f"row {row + 1:,}" for row in range(table.num_rows)])


def _classes(path: Path, column: str, cells: list[str]) -> tuple[list[int], tuple[str, ...]]:
    _refuse_empty(path, column, cells)
    if (numbers := _whole(cells)) is not None:
        order = sorted(set(numbers))
        place = {number: label for label, number in enumerate(order)}
        return [place[number] for number in numbers], tuple(map(str, order))
    if all(_is_number(cell) for cell in cells):
        fraction = next(cell for cell in cells if _whole([cell]) is None)
        raise DataError(
            f"{path}: column {column!r} holds {fraction!r}: labels are class names or whole numbers, not measurements. "
            "Bin the target into classes."
        )
    words = sorted(set(cells))
    place_of = {word: label for label, word in enumerate(words)}
    return [place_of[cell] for cell in cells], tuple(words)


def _attribute(cells: list[str]) -> tuple[list[int], tuple[str, ...] | None] | None:
    """Numbers, and the words they stand for if it was text; None for a column of measurements."""
    if (numbers := _whole(cells)) is not None:
        return numbers, None
    if all(_is_number(cell) for cell in cells if cell):
        return None
    words = sorted(set(cells))
    place_of = {word: number for number, word in enumerate(words)}
    return [place_of[cell] for cell in cells], tuple(words)


def _splits(path: Path, column: str, cells: list[str]) -> list[str]:
    _refuse_empty(path, column, cells)
    known = SPLIT_NAMES | {split: split for split in _MORE_SPLITS}
    wrong = [row for row, cell in enumerate(cells) if cell.lower() not in known]
    if wrong:
        first = cells[wrong[0]]
        raise DataError(
            f"{path}: column {column!r} holds {first!r} in row {wrong[0] + 1:,}, which is not a split "
            f"({len(wrong):,} such rows). {did_you_mean(first.lower(), [*_USUAL_SPLITS, *_MORE_SPLITS])} "
            "If the column means something else, name another with split_column=."
        )
    return [known[cell.lower()] for cell in cells]


def _refuse_untrained(path: Path, labels: list[int], classes: Sequence[str], split_of: Sequence[str]) -> None:
    trained = {label for label, split in zip(labels, split_of, strict=True) if split == "train"}
    strange = [name for label, name in enumerate(classes) if label not in trained]
    if trained and strange:
        raise DataError(f"{path}: class {listed(strange)} has no training example. Add some, or remove the class.")


def _refuse_empty(path: Path, column: str, cells: Sequence[str]) -> None:
    empty = [row for row, cell in enumerate(cells, start=1) if not cell]
    if empty:
        raise DataError(
            f"{path}: column {column!r} is empty in row {empty[0]:,} ({len(empty):,} such rows). Fill it in."
        )


def _whole(cells: Sequence[str]) -> list[int] | None:
    """The cells as whole numbers, `2.0` among them; None if one of them is not."""
    try:
        numbers = [float(cell) for cell in cells]
    except ValueError:
        return None
    if not all(number.is_integer() for number in numbers):
        return None
    try:
        return [int(cell) for cell in cells]
    except ValueError:  # written as 2.0, as tables with gaps are
        return [int(number) for number in numbers]


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
