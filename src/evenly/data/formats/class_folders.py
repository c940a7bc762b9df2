"""Image files in a folder per class, and checks that listed files exist."""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NoReturn

from evenly.data.formats.image_files import SUFFIXES
from evenly.errors import DataError

_OTHER_FORMATS = (".heic", ".heif", ".avif", ".jxl", ".jp2", ".cr2", ".nef", ".arw", ".dng")  # of cameras and phones
_NAMED = 3  # names that an error lists before it counts the rest


def class_folders(folder: Path) -> dict[str, list[str]]:
    """The image files below each sub-folder of `folder`, sorted, by the sub-folder's name.

    Hidden files and folders are ignored. A class folder without images is an error, and so is a root without any, or a
    folder that cannot be read.
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
    with _reading(folder), os.scandir(folder) as entries:
        return sorted(entry.name for entry in entries if entry.is_dir() and not entry.name.startswith("."))


def remarks_on_unread(folder: Path) -> list[str]:
    """A sentence each about images in hidden folders, beside the class folders, and in formats that are not read."""
    hidden, loose = [], []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir() and entry.name.startswith("."):
                with suppress(DataError):  # such as the .Trashes of a disk
                    hidden += [entry.name] * has_images(Path(entry))
            elif _is_image(entry.name) and entry.is_file():
                loose.append(entry.name)
    remarks = []
    if hidden:
        which, rename = ("folder", "it if it is a class") if len(hidden) == 1 else ("folders", "those that are classes")
        remarks.append(
            f"{folder}: images in the hidden {which} {quote_names(sorted(hidden))} are not read. Rename {rename}."
        )
    if loose:
        count, move = ("1 image is", "it") if len(loose) == 1 else (f"{len(loose):,} images are", "them")
        has = "has" if len(loose) == 1 else "have"
        remarks.append(
            f"{folder}: {count} beside the class folders and {has} no class: {quote_names(sorted(loose))}. "
            f"Move {move} into one to use {move}."
        )
    if foreign := [name for below in sub_folders(folder) for name in image_names(folder, below, _OTHER_FORMATS)]:
        count, convert = ("1 image is", "it") if len(foreign) == 1 else (f"{len(foreign):,} images are", "them")
        remarks.append(
            f"{folder}: {count} in a format that is not read: {quote_names(foreign)}. Convert {convert} to JPEG or PNG "
            f"to use {convert}."
        )
    return remarks


def has_images(folder: Path) -> bool:
    """Whether images are directly in `folder`."""
    with _reading(folder), os.scandir(folder) as entries:
        return any(_is_image(entry.name) for entry in entries)


def _is_image(name: str, suffixes: tuple[str, ...] = SUFFIXES) -> bool:
    return name.lower().endswith(suffixes) and not name.startswith(".")


def image_names(root: Path, below: str, suffixes: tuple[str, ...] = SUFFIXES) -> list[str]:
    """The image files anywhere under `root`/`below`, relative to `root`, sorted, without hidden ones.

    A folder that cannot be read is an error: its images would be missing without a word. Links to folders are followed,
    each folder is read once, and one that `below` lies in is not.
    """
    names = []
    start = os.path.realpath(root / below)
    seen = {start, *map(str, Path(start).parents)}
    waiting = [os.fspath(root / below)]  # links come after all else, so that a folder goes by its own name
    for top in waiting:
        for where, folders, files in os.walk(top, onerror=_refuse_unreadable):
            real = os.path.realpath(where)
            if real in seen and where != waiting[0]:
                folders.clear()
                continue
            seen.add(real)
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            waiting += [path for name in folders if os.path.islink(path := os.path.join(where, name))]
            inside = Path(where).relative_to(root).as_posix()
            names += [f"{inside}/{f}" for f in files if _is_image(f, suffixes)]
    return sorted(names)


@contextmanager
def _reading(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        error.filename = error.filename or os.fspath(folder)
        _refuse_unreadable(error)


def _refuse_unreadable(error: OSError) -> NoReturn:
    raise DataError(
        f"{error.filename}: this folder cannot be read ({error.strerror}). Give yourself the right to read it (chmod "
        "-R u+rX), or move it elsewhere."
    ) from error


def require_files(source: Path, root: Path, names: Iterable[str]) -> None:
    """Raise a `DataError` if files listed in `source` do not exist; it names the first few and counts them."""
    absent = [name for name in names if not os.path.isfile(os.path.join(root, name))]
    if absent:
        raise DataError(
            f"{source}: names {len(absent):,} file{'s' * (len(absent) > 1)} that {'do' if len(absent) > 1 else 'does'} "
            f"not exist under {root}: {quote_names(absent)}. "
            f"{_remedy(root, absent[0])}"
        )


def _remedy(root: Path, name: str) -> str:
    """What to do about a listed file that does not exist under `root`."""
    slashed = name.replace("\\", "/")
    if os.path.isfile(os.path.join(root, slashed)):
        return f"{slashed!r} does: replace the backslashes in the paths by slashes."
    if os.path.isfile(name):
        return f"{name!r} is in the current folder: paths are relative to the folder of the list. Correct them."
    return "Correct the paths, or put the files there."


def quote_names(names: Sequence[str]) -> str:
    """The first few names in quotes, and how many more there are.

    >>> quote_names(["a", "b", "c", "d", "e"])
    "'a', 'b', 'c' and 2 more"
    """
    head = ", ".join(map(repr, names[:_NAMED]))
    return f"{head} and {len(names) - _NAMED:,} more" if len(names) > _NAMED else head
