"""Files that are written whole or not at all, and that leave nothing behind when their writer is killed."""

import contextlib
import errno
import json
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from evenly.errors import SetupError, UsageError

# Flags of `os.open` that Windows does not have.
CLOEXEC, NOFOLLOW, NONBLOCK = (getattr(os, f"O_{name}", 0) for name in ("CLOEXEC", "NOFOLLOW", "NONBLOCK"))
_PART = ".part"  # how the name of a file ends while it is being written
_SLOTS = 64  # processes that may write one file at the same time
_REMEDIES = {
    errno.ENOSPC: "Free some space and repeat.",
    errno.EDQUOT: "Free some space and repeat.",
    errno.EFBIG: "Files may not grow that large here: raise the limit (`ulimit -f unlimited`) and repeat.",
}


@contextlib.contextmanager
def replacing(
    path: str | os.PathLike[str], mode: str = "wb", *, parents: bool = True, errors: str = "strict"
) -> Iterator[IO[Any]]:
    """Open a temporary file beside `path`; it is renamed to `path` on success and removed on failure.

    A reader sees the old file or the new one, never a part, even after a power cut: the bytes reach the disk before
    the rename. Missing parent folders are created, unless `parents` is false. Text is UTF-8; `errors` says what becomes
    of characters that it does not have, as for `open`: a file name may hold bytes that are no text.

    >>> import tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> with replacing(folder / "a.txt", "w") as file:
    ...     _ = file.write("whole")
    >>> [p.name for p in folder.iterdir()], (folder / "a.txt").read_text()
    (['a.txt'], 'whole')
    """
    path = _named(path)
    _refuse_special(path)
    try:
        if parents:
            path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = _temporary(path)
    except OSError as error:
        raise unwritable_error(path, error) from error
    try:
        text = {} if "b" in mode else {"encoding": "utf-8", "errors": errors}
        with os.fdopen(handle, mode, **text) as file:  # type: ignore[call-overload]  # the mode decides
            try:
                yield file
                file.flush()
                os.fsync(file.fileno())
                os.replace(temporary, path)
            except BaseException:
                # Rename before closing: closing releases the lock that tells other processes the file is in use.
                with contextlib.suppress(OSError):
                    temporary.unlink(missing_ok=True)
                raise
    except OSError as error:
        if error.errno in _REMEDIES or error.filename == os.fspath(temporary):
            raise unwritable_error(path, error) from error
        raise


@contextlib.contextmanager
def replacing_tree(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary name beside `path`; the file or folder written there replaces `path` at the end.

    For writers that take a name rather than an open file. The old `path` stays until the new one is complete and on
    disk. A failure leaves nothing behind; leftovers of a killed writer are removed by the next writer of `path`.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> with replacing_tree(folder / "site") as site:
    ...     site.mkdir()
    ...     _ = (site / "index.html").write_text("whole")
    >>> [str(p.relative_to(folder)) for p in sorted(folder.rglob("*"))]
    ['site', 'site/index.html']
    """
    path = _named(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock, work = _work_folder(path)
    except OSError as error:
        raise unwritable_error(path, error) from error
    try:
        yield work / "new" / path.name
        _to_disk(work / "new")
        if path.is_dir() and not path.is_symlink():
            os.replace(path, work / "old")
        try:
            os.replace(work / "new" / path.name, path)
        except OSError:
            _put_back(work / "old", path)
            raise
    except OSError as error:
        raise unwritable_error(path, error) from error
    finally:
        shutil.rmtree(work, ignore_errors=True)
        os.close(lock)


def _named(path: str | os.PathLike[str]) -> Path:
    """The path of something to write; one without a name of its own, such as `.` or `/`, is refused."""
    path = Path(path)
    if path.name in ("", ".."):
        raise UsageError(f"{path} is a folder, and not a name to write to: give {path / 'NAME'}.")
    return path


def _refuse_special(path: Path) -> None:
    """Refuse a pipe, a socket or a device: a file of the same name would replace it."""
    try:
        kind = os.stat(path).st_mode
    except (OSError, ValueError):
        return  # it is not there, or cannot be
    if not (stat.S_ISREG(kind) or stat.S_ISDIR(kind)):
        raise UsageError(f"{path} is a pipe, a socket or a device, which a file would replace. Give another name.")


def _work_folder(path: Path) -> tuple[int, Path]:
    """A new folder beside `path`, locked while in use; it replaces any folder that a killed writer left there."""
    for slot in range(_SLOTS):
        work = path.with_name(f".{path.name}.{slot}{_PART}")
        with contextlib.suppress(FileExistsError, NotADirectoryError):
            work.mkdir(exist_ok=True)
            handle = os.open(work / "lock", os.O_RDWR | os.O_CREAT | CLOEXEC | NOFOLLOW, 0o666)
            if _lock(handle) is not False and _is_at(handle, work / "lock"):
                _put_back(work / "old", path)  # of a writer that was killed between its two renames
                for left in (work / "new", work / "old"):
                    shutil.rmtree(left, ignore_errors=True)
                (work / "new").mkdir()
                return handle, work
            os.close(handle)
    raise OSError(errno.EBUSY, f"{_SLOTS} others are writing it")


def _put_back(old: Path, path: Path) -> None:
    """Give a folder that was moved aside its name back, unless another has the name."""
    if old.is_dir() and not os.path.lexists(path):
        os.replace(old, path)


def _to_disk(folder: Path) -> None:
    for inside, _, names in os.walk(folder):
        for name in names:
            with open(os.path.join(inside, name), "rb") as file:
                os.fsync(file.fileno())


def make_folder(path: str | os.PathLike[str]) -> None:
    """Make a folder, if it is not there, and those that it lies in."""
    try:
        os.makedirs(path, exist_ok=True)
    except OSError as error:
        raise unwritable_error(Path(path), error) from error


def write_text(path: str | os.PathLike[str], text: str, *, parents: bool = True, errors: str = "strict") -> None:
    """Write `text` to `path`, whole or not at all."""
    with replacing(path, "w", parents=parents, errors=errors) as file:
        file.write(text)


def write_json(path: str | os.PathLike[str], value: Any, *, parents: bool = True) -> None:
    """Write `value` as readable JSON to `path`, whole or not at all."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n", parents=parents)


def unwritable_error(path: Path, error: OSError) -> SetupError:
    """The error for a file that cannot be written, with its remedy."""
    remedy = _REMEDIES.get(error.errno or 0, "Choose a folder that can be written to.")
    return SetupError(f"cannot write {path}: {error.strerror or error}. {remedy}")


def sweep(folder: Path) -> None:
    """Remove what killed writers left in `folder` and below; the file of a live writer stays.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / ".a.txt.0.part").write_text("half")
    >>> sweep(folder)
    >>> list(folder.iterdir())
    []
    """
    for inside, _, names in os.walk(folder):
        for name in names:
            if name.startswith(".") and name.endswith(_PART):
                with contextlib.suppress(OSError):
                    _remove_if_abandoned(Path(inside, name))


def _temporary(path: Path) -> tuple[int, Path]:
    """A new file beside `path`, locked while it is written; it replaces any file that a killed writer left there.

    The names are few and fixed, so that the next writer of the same file finds leftovers without listing the folder.
    """
    for slot in range(_SLOTS):
        temporary = path.with_name(f".{path.name}.{slot}{_PART}")
        for _ in range(10):
            try:
                # 0o666: a result should be as readable as any other file of the user's.
                handle = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | CLOEXEC, 0o666)
            except FileExistsError:
                if not _remove_if_abandoned(temporary):
                    break  # another process is writing it
                continue
            locked = _lock(handle)
            if locked is None:  # a file system without locks: names must not be shared
                os.close(handle)
                temporary.unlink()
                return _open_unshared(path)
            # Between making and locking it, another process may have taken it for abandoned.
            if locked and _is_at(handle, temporary):
                return handle, temporary
            os.close(handle)
    return _open_unshared(path)


def _open_unshared(path: Path) -> tuple[int, Path]:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=_PART)
    os.chmod(handle, 0o666 & ~_umask())  # mkstemp makes private files
    return handle, Path(name)


def _remove_if_abandoned(temporary: Path) -> bool:
    """Remove the file unless a live process holds its lock; return whether the name is now free."""
    try:
        handle = os.open(temporary, os.O_RDONLY | NOFOLLOW | NONBLOCK | CLOEXEC)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    try:
        if not _lock(handle):
            return False
        if _is_at(handle, temporary):
            temporary.unlink()
        return True
    except OSError:
        return False
    finally:
        os.close(handle)


def _lock(handle: int) -> bool | None:
    """Try to lock the file for this process; return whether it worked, or None where files cannot be locked."""
    try:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except (OSError, ImportError):
        return None
    return True


def _is_at(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), os.lstat(path))
    except FileNotFoundError:
        return False


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
