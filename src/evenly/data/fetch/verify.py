"""Whether the data on disk are the published ones: sizes and digests of files, and counts of images."""

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from evenly.data.fetch.publication import File, Images, Layout, Source
from evenly.data.fetch.sources import source
from evenly.errors import SetupError
from evenly.progress import Bar

IMAGE_SUFFIXES = frozenset({".png", ".jpg", ".jpeg"})
_CHUNK = 1 << 20


@dataclass(frozen=True)
class FileCheck:
    """The expected and the actual state of a file, or of a folder of images."""

    path: Path
    state: Literal["ok", "missing", "wrong"]
    expected: str
    found: str

    def __str__(self) -> str:
        if self.state == "ok":
            return f"{self.path}: ok ({self.found})"
        return f"{self.path}: {self.state}, expected {self.expected}, found {self.found}"


def verify(name: str | Source, *, root: str | os.PathLike[str]) -> list[FileCheck]:
    """Check the published data set `name` under the data root, file by file.

    If a data set has several layouts (CIFAR-10 as binary or as pickles), the most complete one on disk is checked: by
    digests if they are published, else by sizes, else by the number of images.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as root:
    ...     checks = verify("pacs", root=root)
    >>> [(check.path.name, check.state, check.expected) for check in checks[:2]]
    [('art_painting', 'missing', '2048 images'), ('cartoon', 'missing', '2344 images')]
    """
    published = name if isinstance(name, Source) else source(name)
    root = Path(root)
    layout = present_layout(published, root=root)
    folder = root / layout.folder
    hashed = sum(_size(folder / file.path) for file in layout.files if file.md5)
    with Bar(f"checking {published.name}", total=hashed, unit="bytes") as bar:
        checks = [_check_file(folder / file.path, file, bar) for file in layout.files]
    return checks + [_check_images(folder / images.path, images) for images in layout.images]


def present_layout(published: Source, *, root: Path) -> Layout:
    """The layout of which most is on disk; the preferred one where there is nothing."""

    def num_present(layout: Layout) -> int:
        return sum((root / layout.folder / part.path).exists() for part in _parts(layout))

    return max(published.layouts, key=num_present)


def digest(path: Path, algorithm: str, *, bar: Bar | None = None) -> str:
    """The hexadecimal digest of a file, read in chunks.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "a").write_bytes(b"abc")
    ...     digest(Path(folder) / "a", "md5")
    '900150983cd24fb0d6963f7d28e17f72'
    """
    # For integrity, not security: systems that forbid md5 for security allow this use.
    state = hashlib.new(algorithm, usedforsecurity=False)
    try:
        with open(path, "rb", buffering=0) as file:
            while chunk := file.read(_CHUNK):
                state.update(chunk)
                if bar is not None:
                    bar.advance(len(chunk))
    except OSError as error:
        raise SetupError(f"cannot read {path}: {error.strerror}. Check its permissions and the disk.") from error
    return state.hexdigest()


def _parts(layout: Layout) -> Iterator[File | Images]:
    yield from layout.files
    yield from layout.images


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


def _check_file(path: Path, file: File, bar: Bar) -> FileCheck:
    expected = " and ".join(
        ([f"{file.size} bytes"] if file.size is not None else []) + ([f"md5 {file.md5}"] if file.md5 else [])
    )
    if not path.is_file():
        return FileCheck(path, "missing", expected or "a file", "a folder" if path.is_dir() else "nothing")
    size = path.stat().st_size
    found = f"{size} bytes"
    if file.size is not None and size != file.size:
        bar.advance(size if file.md5 else 0)
        return FileCheck(path, "wrong", expected, found)
    if size == 0:
        return FileCheck(path, "wrong", expected or "a file that is not empty", found)
    if file.md5 is None:
        return FileCheck(path, "ok", expected or "a file that is not empty", found)
    md5 = digest(path, "md5", bar=bar)
    return FileCheck(path, "ok" if md5 == file.md5 else "wrong", expected, f"{found} and md5 {md5}")


def _check_images(path: Path, images: Images) -> FileCheck:
    expected = f"{images.number} images"
    if not path.is_dir():
        return FileCheck(path, "missing", expected, "a file" if path.exists() else "nothing")
    number = sum(
        # Names that start with a dot are what desktops leave behind, not images.
        os.path.splitext(file)[1].lower() in IMAGE_SUFFIXES and not file.startswith(".")
        for _, _, files in os.walk(path)
        for file in files
    )
    return FileCheck(path, "ok" if number == images.number else "wrong", expected, f"{number} images")
