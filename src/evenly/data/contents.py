"""Cached digests of files: a file that has not changed since it was last read costs one stat.

The digests are in the user's cache folder, one file for every folder of data. It is only a cache: where it is damaged,
missing or cannot be written, files are read again.
"""

import functools
import hashlib
import json
import os
import stat
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from evenly import atomic
from evenly.cache import cache_folder
from evenly.errors import DataError, SetupError
from evenly.progress import Bar

# A clock may tick this rarely (FAT), and a file changed again within a tick of its last change looks unchanged. So
# files that changed this recently are not cached, as in git.
_TICK = 2_000_000_000  # nanoseconds
DECODES = "decodes"  # the least that a file of data may be checked for
_THREADS = 8  # threads, to wait for disks and networks in parallel


class FileState(NamedTuple):
    """The state of a file when its content was read, the digest of that content, and what it was checked for."""

    size: int
    modified: int
    changed: int
    inode: int
    digest: str
    checked: str = ""


def digests(root: Path, names: Sequence[str]) -> list[str]:
    """A digest of the content of every file `root/name`, of 32 hex digits.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "a").write_text("same"), (folder / "b").write_text("same"), (folder / "c").write_text("other")
    >>> one, two, three = digests(folder, ["a", "b", "c"])
    >>> one == two, one == three
    (True, False)
    """
    return [seen.digest for seen in file_states(root, names)]


def file_states(
    root: Path, names: Sequence[str], *, check: Callable[[Sequence[Path]], object] | None = None, checked: str = ""
) -> list[FileState]:
    """The state of every file `root/name`, with the digest of its content.

    `check` is given the files that are new, have changed, or were never checked for `checked`, and raises if they
    cannot be used; none of them is then remembered. A file that was checked for anything `DECODES`.
    """
    root = Path(os.path.abspath(root))
    memory = _memory_of(root)
    known = _read_memory(memory)
    states, unknown, unchecked = {}, [], []
    for name in dict.fromkeys(names):
        seen = known.get(name)
        if seen is None or seen[:4] != _look(os.path.join(root, name)):
            unknown.append(name)
            continue
        states[name] = seen
        if check is not None and seen.checked != checked and not (checked == DECODES and seen.checked):
            unchecked.append(name)
    if unknown or unchecked:
        if check is not None:
            check([root / name for name in (*unknown, *unchecked)])
        now = _read_all(root, unknown) | {name: states[name] for name in unchecked}
        now = {name: seen._replace(checked=checked) for name, seen in now.items()}
        states |= now
        _remember(memory, root, known, {name: seen for name, seen in now.items() if not _is_recent(seen)})
    return [states[name] for name in names]


def refuse_changed(path: Path, modified: int) -> None:
    """Raise if the file was written to since its state was taken, when it was last `modified` at that time."""
    if _look(os.fspath(path))[1] != modified:
        raise DataError(
            f"{path}: was written to while a command was reading the data. Repeat the command when the files are as "
            "they should be: with unchanged content the run resumes, with changed content a new one begins."
        )


def _look(path: str) -> tuple[int, int, int, int]:
    try:
        now = os.stat(path)
    except FileNotFoundError as error:
        raise DataError(f"{path}: no such file. Was it moved since it was listed?") from error
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}.") from error
    return _facts(now)


def _facts(now: os.stat_result) -> tuple[int, int, int, int]:
    return now.st_size, now.st_mtime_ns, now.st_ctime_ns, now.st_ino


def _is_recent(seen: FileState) -> bool:
    """Whether the file changed so recently that a further change might go unnoticed."""
    return max(seen.modified, seen.changed) > time.time_ns() - _TICK


def _read_all(root: Path, names: Sequence[str]) -> dict[str, FileState]:
    paths = [root / name for name in names]
    with Bar("reading files", total=len(names)) as bar, ThreadPoolExecutor(_THREADS) as pool:
        states = {}
        for name, seen in zip(names, pool.map(_read, paths), strict=True):
            states[name] = seen
            bar.advance()
    return states


def _read(path: Path) -> FileState:
    try:
        # Do not wait for the writer of a named pipe.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(handle, "rb", buffering=0) as file:
            before = os.fstat(handle)
            if not stat.S_ISREG(before.st_mode):
                raise DataError(f"{path}: is not a regular file. Remove it, or give the data without it.")
            digest = hashlib.blake2b(digest_size=16)
            while block := file.read(1 << 20):
                digest.update(block)
            after = os.fstat(handle)
    except FileNotFoundError as error:
        raise DataError(f"{path}: no such file. Was it moved since it was listed?") from error
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}.") from error
    if _facts(before)[:2] != _facts(after)[:2]:
        raise DataError(f"{path}: changed while it was read. Repeat the command once the file is complete.")
    return FileState(*_facts(after), digest.hexdigest())


def _memory_of(root: Path) -> Path | None:
    folder = cache_folder()
    name = hashlib.blake2b(os.fsencode(root), digest_size=12).hexdigest()
    return folder / "contents" / f"{name}.json" if folder is not None else None


def _read_memory(memory: Path | None) -> dict[str, FileState]:
    if memory is None:
        return {}
    try:
        now = memory.stat()
    except OSError:
        return {}
    return _parse(memory, now.st_mtime_ns, now.st_size, now.st_ino)


@functools.lru_cache(maxsize=1)  # kept for the splits of one data set, which are digested one after another
def _parse(memory: Path, *_version: int) -> dict[str, FileState]:
    try:
        checksum, _, text = memory.read_bytes().partition(b"\n")
        if checksum.decode() != _checksum(text):
            return {}
        return {name: FileState(*seen) for name, seen in json.loads(text).items()}
    except (OSError, ValueError, TypeError, AttributeError, RecursionError):
        return {}


def _remember(memory: Path | None, root: Path, known: dict[str, FileState], new: dict[str, FileState]) -> None:
    """Update the cache and forget files that are gone. Of two simultaneous writers one may lose its entries."""
    if memory is None or not new:
        return
    kept = {name: seen for name, seen in known.items() if name in new or os.path.lexists(root / name)}
    text = json.dumps(kept | new, separators=(",", ":")).encode()
    with suppress(SetupError, OSError), atomic.replacing(memory) as file:
        file.write(_checksum(text).encode() + b"\n" + text)


def _checksum(text: bytes) -> str:
    return hashlib.blake2b(text, digest_size=16).hexdigest()
