"""Regular files, opened without ever waiting: a named pipe, a socket or a device is refused by name."""

import io
import os
import stat
from typing import TextIO

from evenly.errors import DataError, SetupError

_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def open_regular(path: str | os.PathLike[str]) -> io.BufferedReader:
    """The bytes of a regular file; a `DataError` for anything else, also for what is not there.

    Opening a named pipe waits for a writer, and reading a device may never end: neither is tried.

    >>> open_regular("/dev/zero")
    Traceback (most recent call last):
    evenly.errors.DataError: /dev/zero is a device, not a regular file. Put a copy of the file there.
    """
    try:
        _require_regular(path, os.stat(path))
        # Between the two calls the name may have become a pipe: without O_NONBLOCK the second would wait.
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        try:
            _require_regular(path, os.fstat(handle))
            return open(handle, "rb")
        except BaseException:
            os.close(handle)
            raise
    except (FileNotFoundError, NotADirectoryError) as error:
        raise DataError(f"{path}: there is no such file. Was it moved?") from error
    except ValueError as error:  # a zero byte in the name
        if isinstance(error, DataError):
            raise
        raise DataError(f"{str(path)!r} is not the name of a file: {error}.") from error
    except OSError as error:
        raise SetupError(f"cannot read {path}: {error.strerror}. Check its permissions and the disk.") from error


def open_text(path: str | os.PathLike[str], *, encoding: str = "utf-8", newline: str | None = None) -> TextIO:
    """The text of a regular file; see `open_regular`."""
    return io.TextIOWrapper(open_regular(path), encoding=encoding, newline=newline)


def read_text(path: str | os.PathLike[str]) -> str:
    """All text of a regular file; a `DataError` if it is not UTF-8.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.txt").write_bytes(b"caf\\xe9")
    ...     read_text(Path(folder, "a.txt"))
    Traceback (most recent call last):
    evenly.errors.DataError: ...a.txt: is not UTF-8 text (byte 3). Save it as UTF-8.
    """
    try:
        with open_text(path) as file:
            return file.read()
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: is not UTF-8 text (byte {error.start}). Save it as UTF-8.") from error


def size_of(path: str | os.PathLike[str]) -> int:
    """The size of a regular file in bytes."""
    with open_regular(path) as file:
        return os.fstat(file.fileno()).st_size


def _require_regular(path: str | os.PathLike[str], status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        kind = _KINDS.get(stat.S_IFMT(status.st_mode), "a special file")
        raise DataError(f"{path} is {kind}, not a regular file. Put a copy of the file there.")
