"""The columns of a table of Hugging Face's `datasets`: which holds the labels, which the inputs, and the classes."""

import io
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from PIL import Image

from evenly.data.formats.class_folders import quote_names
from evenly.errors import DataError, UsageError, did_you_mean

UNLABELLED = -1  # as `datasets` has it


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


def require_column(table: Any, column: str, source: str) -> str:
    """The name of a column, refused if the table has none of that name."""
    if column not in table.column_names:
        raise UsageError(f"{source}: there is no column {column!r}. {did_you_mean(column, table.column_names)}")
    return column


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
