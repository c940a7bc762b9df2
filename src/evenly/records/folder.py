"""A run's folder and its one writer: locked, cleaned of partial files, and never recreated if it disappears."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from evenly import atomic
from evenly.errors import SetupError, UsageError
from evenly.records import json_text, lines
from evenly.records.lock import Lock

LOCK, METRICS = "lock", "metrics.jsonl"


class Folder:
    """The folder at `path`. The first write takes its lock; `release` releases it.

    Each write first checks that the locked folder is still in place: if it was moved, renamed or deleted, that is
    an error, and nothing is created.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock: Lock | None = None

    @property
    def is_held(self) -> bool:
        """Whether this process holds the lock, and the folder is where it was when the lock was taken."""
        return self._lock is not None and self._lock.in_place

    def hold(self) -> None:
        """Take the lock, and clean up after a writer that was killed."""
        if self._lock is None:
            if not self.path.is_dir():
                raise UsageError(f"{self.path} does not exist. `Run.create` makes a run's folder.")
            self._lock = Lock(self.path / LOCK)
            atomic.sweep(self.path)
            lines.drop_torn_line(self.path / METRICS)
        if not self._lock.in_place:
            raise self._moved_error()

    def release(self) -> None:
        """Release the lock; the next write takes it again."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the folder; if it disappears within the context, report that rather than the error it causes."""
        self.hold()
        try:
            yield
        except (SetupError, OSError) as error:
            if not self.is_held:
                raise self._moved_error() from error
            raise

    @contextlib.contextmanager
    def replacing(self, name: str, mode: str = "wb") -> Iterator[IO[Any]]:
        """Open a file inside to be written, whole or not at all."""
        path = self.path / name
        with self.writing():
            for inside in reversed(Path(name).parents[:-1]):
                try:
                    (self.path / inside).mkdir(exist_ok=True)
                except OSError as error:
                    raise atomic.unwritable_error(path, error) from error
            with atomic.replacing(path, mode, parents=False) as file:
                yield file

    def write(self, name: str, value: Any) -> Path:
        """Write a file of JSON inside."""
        with self.replacing(name, "w") as file:
            file.write(json_text.text(value, path=name))
        return self.path / name

    def _moved_error(self) -> SetupError:
        return SetupError(
            f"the folder of run {self.path.name} was moved, renamed or deleted while it was written: {self.path} is "
            "gone, or is another folder. Nothing more is written. Move it back, and the same command resumes from its "
            "last checkpoint; without it, that command starts again."
        )
