"""Progress for people: a bar with time left on stderr, and nothing at all when nobody is looking."""

import os
import sys
from collections.abc import Iterable, Iterator, Sized
from typing import TypeVar

T = TypeVar("T")


def can_show_bar() -> bool:
    """Whether stderr is a terminal that can show a bar."""
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


def tell(sentence: str) -> None:
    """Say something to the person at the terminal, beside the results on stdout."""
    print(sentence, file=sys.stderr, flush=True)


class Bar:
    """A bar over `total` units; `advance` moves it. Silent when stderr is not a terminal.

    >>> with Bar("reading", total=3) as bar:
    ...     bar.advance(2)
    """

    def __init__(self, what: str, *, total: float | None, unit: str = "it") -> None:
        self.what, self.total, self.unit = what, total, unit

    def __enter__(self) -> "Bar":
        self._progress = None
        if can_show_bar():
            from rich.console import Console
            from rich.progress import (
                BarColumn,
                DownloadColumn,
                MofNCompleteColumn,
                Progress,
                TextColumn,
                TimeRemainingColumn,
                TransferSpeedColumn,
            )

            counts = [DownloadColumn(), TransferSpeedColumn()] if self.unit == "bytes" else [MofNCompleteColumn()]
            self._progress = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                *counts,
                TimeRemainingColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            self._progress.start()
            self._task = self._progress.add_task(self.what, total=self.total)
        return self

    def advance(self, amount: float = 1) -> None:
        """Move the bar by `amount` units."""
        if self._progress is not None:
            self._progress.update(self._task, advance=amount)

    def note(self, **facts: float) -> None:
        """Show some numbers beside the bar."""
        if self._progress is not None:
            words = "  ".join(f"{name} {value:.4g}" for name, value in facts.items())
            self._progress.update(self._task, description=f"{self.what}  {words}")

    def __exit__(self, *_: object) -> None:
        if self._progress is not None:
            self._progress.stop()


def track(items: Iterable[T], what: str, *, total: int | None = None) -> Iterator[T]:
    """Yield `items` while a bar counts them.

    >>> list(track([1, 2, 3], "counting"))
    [1, 2, 3]
    """
    if total is None and isinstance(items, Sized):
        total = len(items)
    with Bar(what, total=total) as bar:
        for item in items:
            yield item
            bar.advance()
