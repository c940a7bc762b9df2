"""Errors of the disk, distinguished from those of the network or of an archive."""

import contextlib
import errno
import os
import shutil
from collections.abc import Iterator
from io import RawIOBase
from pathlib import Path

from evenly.errors import SetupError

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


@contextlib.contextmanager
def writing(path: str | os.PathLike[str]) -> Iterator[None]:
    """Within the context, an `OSError` is about writing `path`, and becomes a `SetupError` that says what to do.

    >>> with writing("/proc/none/file"):
    ...     open("/proc/none/file", "wb")
    Traceback (most recent call last):
    evenly.errors.SetupError: cannot write /proc/none/file: No such file or directory. Choose a folder that ...
    """
    try:
        yield
    except OSError as error:
        fix = "Free some space" if error.errno in _FULL else "Choose a folder that can be written to"
        reason = error.strerror or str(error)
        raise SetupError(f"cannot write {path}: {reason}. {fix} and repeat the command.") from error


def write_whole(file: RawIOBase, content: bytes) -> None:
    """Write all of `content` to an unbuffered file.

    Unbuffered, because a buffer that could not be written to a full disk would be retried, and fail again, when the
    file is closed, outside the context that explains the error.

    >>> import tempfile
    >>> with tempfile.TemporaryFile(buffering=0) as file:
    ...     write_whole(file, b"abc")
    ...     file.tell()
    3
    """
    rest = memoryview(content)
    while rest:
        rest = rest[file.write(rest) or 0 :]


def require_space(path: str | os.PathLike[str], needed: int) -> None:
    """Raise unless `needed` more bytes fit on the disk of `path`, which need not exist yet.

    >>> require_space("somewhere/file", 1)
    """
    folder = next(parent for parent in Path(path).absolute().parents if parent.exists())
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise SetupError(
            f"cannot write {path}: {needed} more bytes are needed and {free} are free. "
            "Free some space, or choose a folder on another disk."
        )
