"""A folder to write to, on top of one that is only read: what is missing above is found beneath."""

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Layered(os.PathLike[str]):
    """Two folders as one: files that `top` lacks are found `beneath`. As a path, and for writing, it is `top`."""

    top: Path
    beneath: Path

    def __fspath__(self) -> str:
        return os.fspath(self.top)

    def __str__(self) -> str:
        return str(self.top)


def find(folder: str | os.PathLike[str], name: str) -> Path:
    """The path of a file in a folder, or beneath it if it is only there.

    >>> import tempfile
    >>> both = Layered(Path(tempfile.mkdtemp()), Path(tempfile.mkdtemp()))
    >>> _ = (both.beneath / "a").write_text("shipped"), (both.beneath / "b").write_text("shipped")
    >>> _ = (both.top / "a").write_text("own")
    >>> [find(both, name).read_text() for name in ("a", "b")], [path.name for path in glob(both, "*")]
    (['own', 'shipped'], ['a', 'b'])
    """
    path = Path(folder) / name
    if isinstance(folder, Layered) and not path.is_file() and (folder.beneath / name).is_file():
        return folder.beneath / name
    return path


def glob(folder: str | os.PathLike[str], pattern: str) -> list[Path]:
    """The files of a folder, and those beneath it that it lacks, in the order of their names."""
    folders = [folder.beneath, folder.top] if isinstance(folder, Layered) else [Path(folder)]
    paths = {path.name: path for each in folders if each.is_dir() for path in each.glob(pattern)}
    return [paths[name] for name in sorted(paths)]
