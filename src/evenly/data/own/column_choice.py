"""Which columns of a manifest hold the split and the number of copies.

A column that is overlooked would train on the examples that it holds out, and say nothing.
"""

from collections.abc import Collection, Mapping
from pathlib import Path

from evenly.errors import DataError, did_you_mean

_USUAL = {"split_column": "split", "repeat_column": "repeat"}


def refuse_shared(path: Path, chosen: Mapping[str, str]) -> None:
    """Raise a `DataError` if two options name the same column.

    >>> refuse_shared(Path("list.csv"), {"path_column": "label", "label_column": "label"})
    Traceback (most recent call last):
    evenly.errors.DataError: list.csv: the column 'label' is named by two options, path_column and label_column. ...
    """
    for column in chosen.values():
        options = [option for option, name in chosen.items() if name == column]
        if len(options) > 1:
            raise DataError(
                f"{path}: the column {column!r} is named by two options, {' and '.join(options)}. Name another "
                "with one of them."
            )


def is_there(path: Path, columns: Collection[str], option: str, name: str) -> bool:
    """Whether the table has the column that `option` names; a `DataError` if it was meant to have it.

    A column whose usual name has another meaning becomes an attribute when a name that no column has is chosen.

    >>> is_there(Path("list.csv"), ["path", "label"], "split_column", "split")
    False
    >>> is_there(Path("list.csv"), ["path", "label", "Split"], "split_column", "split")
    Traceback (most recent call last):
    evenly.errors.DataError: list.csv: the column 'Split' is not 'split', the name that is looked for. ...
    """
    if name in columns:
        return True
    usual = _USUAL[option]
    if name == usual:
        alike = next((column for column in columns if column.casefold() == usual), None)
        if alike is not None:
            raise DataError(
                f"{path}: the column {alike!r} is not {usual!r}, the name that is looked for. Rename it, or name it "
                f"with {option}=, or --set {option}={alike}."
            )
        return False
    hint = did_you_mean(name, columns)
    near = hint.startswith("Did")  # else it would list the columns a second time
    if near or usual not in columns:
        raise DataError(
            f"{path}: there is no column {name!r}; its columns: {', '.join(columns)}. {f'{hint} ' if near else ''}"
            f"Correct {option}=, or leave it out."
        )
    return False
