"""One writer per run: an advisory lock that the operating system releases when its process ends."""

import contextlib
import errno
import os
import time
import weakref
from pathlib import Path
from types import ModuleType

from evenly.atomic import CLOEXEC, NOFOLLOW, NONBLOCK
from evenly.errors import SetupError
from evenly.progress import printable


class Busy(SetupError):
    """Another process is writing to the run: the command is right, and works once that process has ended."""


PATIENCE = 0.5  # seconds; `is_locked` takes the lock for an instant and must not look like a writer


class Lock:
    """The lock file `path`, held from construction until `release`, garbage collection or the end of the process.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "lock"
    >>> lock = Lock(path)
    >>> is_locked(path), lock.release(), is_locked(path)
    (True, None, False)
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT | CLOEXEC | NOFOLLOW, 0o666)
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise SetupError(f"{path} is a link, which a lock must not be. Remove it and repeat.") from error
            raise SetupError(f"cannot write {path}: {error.strerror}. Choose a writable folder for runs.") from error
        try:
            _take(handle, path)
        except BaseException:
            os.close(handle)
            raise
        self._handle = handle
        self.release = weakref.finalize(self, _release, handle, os.getpid())

    @property
    def in_place(self) -> bool:
        """Whether the lock file is still at its path: its folder was not moved, renamed or deleted."""
        try:
            return os.path.samestat(os.fstat(self._handle), os.lstat(self.path))
        except OSError:
            return False


def is_locked(path: Path) -> bool:
    """Whether a process holds the lock at this moment."""
    fcntl = _fcntl()
    try:
        handle = os.open(path, os.O_RDONLY | CLOEXEC | NOFOLLOW | NONBLOCK)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # a file system without locks cannot have a writer
        return False
    finally:
        os.close(handle)
    return False


def _take(handle: int, path: Path) -> None:
    fcntl = _fcntl()
    give_up = time.monotonic() + PATIENCE
    try:
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > give_up:
                    raise
                time.sleep(0.02)
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{os.getpid()} on {os.uname().nodename}\n".encode(), 0)
    except BlockingIOError:
        holder = printable(os.pread(handle, 100, 0).decode(errors="replace").strip()) or "unknown"
        raise Busy(
            f"{path.parent} is being written by another process (number {holder}). "
            "Wait for it to end, stop it, or choose another folder for this run."
        ) from None
    except OSError as error:
        raise SetupError(
            f"cannot lock {path}: {error.strerror}. Choose a folder with free space on a file system with locks."
        ) from error


def _release(handle: int, owner: int) -> None:
    # A forked child has a copy of the handle; unlocking through it would unlock its parent.
    with contextlib.suppress(OSError):
        if os.getpid() == owner:
            fcntl = _fcntl()
            fcntl.flock(handle, fcntl.LOCK_UN)
        os.close(handle)


def _fcntl() -> ModuleType:
    try:
        import fcntl
    except ImportError:  # pragma: no cover - Windows
        raise SetupError("run folders are locked by flock, which this system lacks. Use Linux, macOS or WSL.") from None
    return fcntl
