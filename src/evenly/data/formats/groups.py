"""Group data sets: a label and a spurious companion, with the publisher's own metadata and splits.

`easy` and `hard` name the two features as Springer et al. (2024), table 1, do: by their probes the label's own
feature is the easy one and its companion the hard one.
"""

import io
from collections.abc import Sequence
from pathlib import Path

from evenly.data.formats.class_folders import require_files
from evenly.data.formats.image_files import Size
from evenly.data.formats.listing import Listing, by_split, number_groups
from evenly.data.formats.locate import locate
from evenly.data.splits import Splits
from evenly.errors import DataError
from evenly.files.regular import read_text
from evenly.files.tables import Table, read_csv

_SPLITS = {"0": "train", "1": "validation", "2": "test"}


def waterbirds(*, root: Path, size: Size | None = 224, skip_broken: bool = False) -> Splits:
    """Waterbirds (Sagawa et al., 2020): land- and waterbirds, 95 % of them in training on the matching background.

    Attributes: `easy` (the kind of bird, which is the label), `hard` and `place` (the background), and
    `group` = 2·label + place.

    >>> waterbirds(root=Path("nowhere"))
    Traceback (most recent call last):
    evenly.data.formats.locate.Missing: Waterbirds was not found. Looked for nowhere/...
    """
    folder = locate("Waterbirds", root, ["waterbird_complete95_forest2water2", "waterbirds_v1.0"])
    path = locate("metadata.csv, a file of Waterbirds,", folder, ["metadata.csv"])
    table = read_csv(path)
    names, birds, split, places = (_column(path, table, c) for c in ("img_filename", "y", "split", "place"))
    return _pairs(
        "waterbirds",
        path,
        (folder, names),
        labels=_numbers(path, "y", birds, {"0": 0, "1": 1}),
        classes=("landbird", "waterbird"),
        companion="place",
        attribute=_numbers(path, "place", places, {"0": 0, "1": 1}),
        values=("land", "water"),
        joined=" on ",
        split_of=_named_splits(path, split),
        size=size,
        skip_broken=skip_broken,
    )


def celeba(*, root: Path, size: Size | None = None, skip_broken: bool = False) -> Splits:
    """CelebA (Liu et al., 2015) as in Sagawa et al. (2020): is the hair blond, with gender as its companion.

    Attributes: `easy` (the label), `hard` and `gender`, and `group` = 2·label + gender. Reads the published text
    files and the CSV re-publication; images are the aligned ones, 3×218×178.

    >>> celeba(root=Path("nowhere"))
    Traceback (most recent call last):
    evenly.data.formats.locate.Missing: CelebA was not found. Looked for nowhere/celeba or nowhere/CelebA.
    """
    folder = locate("CelebA", root, ["celeba", "CelebA"])
    facts = _celeba_file(folder, "list_attr_celeba", "Anno")
    partition = _celeba_file(folder, "list_eval_partition", "Eval")
    # The CSV re-publication unpacks into a folder of the same name inside.
    images = locate(
        "img_align_celeba, a folder of CelebA,",
        folder,
        ["img_align_celeba/img_align_celeba", "img_align_celeba", "Img/img_align_celeba"],
    )
    names, (blond, male) = _celeba_attributes(facts, ("Blond_Hair", "Male"))
    split_by_name = dict(_celeba_rows(partition))
    absent = [name for name in names if name not in split_by_name]
    if absent:
        raise DataError(f"{partition}: has no line for {absent[0]} and {len(absent) - 1:,} others of {facts.name}.")
    return _pairs(
        "celeba",
        facts,
        (images, names),
        labels=_numbers(facts, "Blond_Hair", blond, {"-1": 0, "0": 0, "1": 1}),
        classes=("not blond", "blond"),
        companion="gender",
        attribute=_numbers(facts, "Male", male, {"-1": 0, "0": 0, "1": 1}),
        values=("female", "male"),
        joined=", ",
        split_of=_named_splits(partition, [split_by_name[name] for name in names]),
        size=size,
        skip_broken=skip_broken,
    )


def _pairs(
    name: str,
    source: Path,
    files: tuple[Path, Sequence[str]],
    *,
    labels: list[int],
    classes: tuple[str, str],
    companion: str,
    attribute: list[int],
    values: tuple[str, str],
    joined: str,
    split_of: list[str],
    size: Size | None,
    skip_broken: bool,
) -> Splits:
    require_files(source, *files)
    group = number_groups(labels, attribute, num_values=2).tolist()
    listing = Listing(
        *files,
        labels,
        classes,
        {"easy": labels, "hard": attribute, companion: attribute, "group": group},
        {
            "easy": classes,
            "hard": values,
            companion: values,
            "group": tuple(f"{label}{joined}{value}" for label in classes for value in values),
        },
    )
    return by_split(name, listing.to_labelled(size=size, skip_broken=skip_broken), split_of)


def _column(path: Path, table: Table, column: str) -> list[str]:
    if not len(table):
        raise DataError(f"{path}: has no rows. Fetch it again.")
    if column not in table.columns:
        raise DataError(f"{path}: has no column {column!r}; its columns: {', '.join(table.columns)}.")
    return list(table.columns[column])


def _numbers(path: Path, column: str, cells: Sequence[str], meaning: dict[str, int]) -> list[int]:
    try:
        return [meaning[cell] for cell in cells]
    except KeyError as error:
        raise DataError(f"{path}: {column} is {error.args[0]!r}, expected one of {', '.join(meaning)}.") from None


def _named_splits(path: Path, cells: Sequence[str]) -> list[str]:
    unknown = set(cells) - set(_SPLITS)
    if unknown:
        raise DataError(f"{path}: the split is {min(unknown)!r}, expected 0 (train), 1 (validation) or 2 (test).")
    return [_SPLITS[cell] for cell in cells]


def _celeba_file(folder: Path, stem: str, below: str) -> Path:
    names = [f"{stem}.txt", f"{stem}.csv", f"{below}/{stem}.txt"]
    return locate(f"{stem}, a file of CelebA,", folder, names)


def _celeba_attributes(path: Path, wanted: tuple[str, ...]) -> tuple[list[str], list[list[str]]]:
    """File names, and the cells of each wanted column. The text file counts its rows before it names its columns."""
    with io.StringIO(read_text(path)) as file:
        first = file.readline()
        header = first.strip().split(",")[1:] if path.suffix == ".csv" else file.readline().split()
        absent = [column for column in wanted if column not in header]
        if absent:
            raise DataError(f"{path}: has no column {absent[0]!r} among its {len(header)} columns. Fetch it again.")
        places = [header.index(column) + 1 for column in wanted]
        names: list[str] = []
        cells: list[list[str]] = [[] for _ in wanted]
        for line in file:
            row = line.strip().split(",") if path.suffix == ".csv" else line.split()
            if not row or not row[0]:
                continue
            if len(row) != len(header) + 1:
                raise DataError(f"{path}: {row[0]} has {len(row) - 1} values, expected {len(header)}. Fetch it again.")
            names.append(row[0])
            for column, place in zip(cells, places, strict=True):
                column.append(row[place])
    if path.suffix != ".csv" and first.strip() != str(len(names)):
        raise DataError(f"{path}: truncated: announces {first.strip()} rows, {len(names)} were found. Fetch it again.")
    return names, cells


def _celeba_rows(path: Path) -> list[tuple[str, str]]:
    lines = read_text(path).splitlines()[path.suffix == ".csv" :]
    rows = [line.replace(",", " ").split() for line in lines if line.strip()]
    short = [row for row in rows if len(row) != 2]
    if short:
        raise DataError(f"{path}: {' '.join(short[0])!r} is not a file name and a split. Fetch it again.")
    return [(name, split) for name, split in rows]
