"""Files that are written whole or not at all."""

import contextlib
import errno
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from evenly.errors import SetupError


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str], mode: str = "wb") -> Iterator[IO[Any]]:
    """Open a temporary neighbour of `path`; on success it takes the name, on failure it vanishes.

    A reader sees the old file or the new one, never a part, also across a power cut: the bytes are
    on the disk before the name is.

    >>> import tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> with replacing(folder / "a.txt", "w") as file:
    ...     _ = file.write("whole")
    >>> [p.name for p in folder.iterdir()], (folder / "a.txt").read_text()
    (['a.txt'], 'whole')
    """
    path = Path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    except OSError as error:
        raise SetupError(f"cannot write {path}: {error.strerror}. Choose a folder that can be written to.") from error
    temporary = Path(name)
    try:
        # mkstemp makes private files; a result should be as readable as any other file of the user's.
        os.chmod(handle, 0o666 & ~_umask())
        with os.fdopen(handle, mode, encoding=None if "b" in mode else "utf-8") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno in _FULL:
            raise SetupError(f"cannot write {path}: {error.strerror}. Free some space and repeat.") from error
        raise


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write `text` to `path`, whole or not at all."""
    with replacing(path, "w") as file:
        file.write(text)


def write_json(path: str | os.PathLike[str], value: Any) -> None:
    """Write `value` as readable JSON to `path`, whole or not at all."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")


_FULL = {errno.ENOSPC, errno.EDQUOT}


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
