"""Image files in a folder per class, and checks that listed files exist."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from evenly.data.formats.image_files import SUFFIXES
from evenly.errors import DataError

_NAMED = 3  # names that an error lists before it counts the rest


def class_folders(folder: Path) -> dict[str, list[str]]:
    """The image files below each sub-folder of `folder`, sorted, by the sub-folder's name.

    Hidden files and folders are passed over. A class folder without images is an error, and so is no folder at all.
    """
    names = sub_folders(folder)
    if not names:
        raise DataError(
            f"{folder}: there is no class folder. Expected one folder per class with its images in it, such as "
            f"{folder / 'cat' / '1.png'} and {folder / 'dog' / '1.png'}."
        )
    images = {name: image_names(folder, name) for name in names}
    empty = [name for name, files in images.items() if not files]
    if len(empty) == len(names):
        raise DataError(
            f"{folder}: no images were found in its {len(names)} folders ({quote_names(names)}). "
            f"Files with these endings are taken: {' '.join(SUFFIXES)}."
        )
    if empty:
        raise DataError(
            f"{folder}: no images in class folder {quote_names(empty)}. Put images in it, or remove it. "
            f"Files with these endings are taken: {' '.join(SUFFIXES)}."
        )
    return images


def sub_folders(folder: Path) -> list[str]:
    """The names of the folders in `folder`, sorted, without hidden ones."""
    with os.scandir(folder) as entries:
        return sorted(entry.name for entry in entries if entry.is_dir() and not entry.name.startswith("."))


def image_names(root: Path, below: str) -> list[str]:
    """The image files anywhere under `root`/`below`, relative to `root`, sorted, without hidden ones."""
    names = []
    for where, folders, files in os.walk(root / below):
        folders[:] = [name for name in folders if not name.startswith(".")]
        inside = Path(where).relative_to(root).as_posix()
        names += [f"{inside}/{f}" for f in files if f.lower().endswith(SUFFIXES) and not f.startswith(".")]
    return sorted(names)


def require_files(source: Path, root: Path, names: Iterable[str]) -> None:
    """Raise a `DataError` if files listed in `source` do not exist; it names the first few and counts them."""
    absent = [name for name in names if not os.path.isfile(os.path.join(root, name))]
    if absent:
        raise DataError(
            f"{source}: names {len(absent):,} files that do not exist under {root}: {quote_names(absent)}. "
            "Correct the paths, or put the files there."
        )


def quote_names(names: Sequence[str]) -> str:
    """The first few names in quotes, and how many more there are.

    >>> quote_names(["a", "b", "c", "d", "e"])
    "'a', 'b', 'c' and 2 more"
    """
    head = ", ".join(map(repr, names[:_NAMED]))
    return f"{head} and {len(names) - _NAMED:,} more" if len(names) > _NAMED else head
