"""Progress for people: a bar with time left on a terminal, and elsewhere a line on stderr every half minute."""

import os
import sys
import time
from collections.abc import Iterable, Iterator, Sized
from typing import TypeVar

T = TypeVar("T")
EVERY = 30.0  # seconds from one line to the next where there is no terminal


def watched() -> bool:
    """Whether stderr is a terminal that can show a bar."""
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


def tell(sentence: str) -> None:
    """Say something to the person at the terminal, beside the results on stdout."""
    print(sentence, file=sys.stderr, flush=True)


class Bar:
    """A bar over `total` units; `advance` moves it. Without a terminal, a line says now and then how far it is.

    >>> with Bar("reading", total=3) as bar:
    ...     bar.advance(2)
    """

    def __init__(self, what: str, *, total: float | None, unit: str = "it") -> None:
        self.what, self.total, self.unit = what, total, unit

    def __enter__(self) -> "Bar":
        self._progress = None
        self._done, self._words = 0.0, ""
        self._began = self._last = time.monotonic()
        if watched():
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
            return
        self._done += amount
        now = time.monotonic()
        if now - self._last >= EVERY:
            self._last = now
            tell(self._line(now - self._began))

    def note(self, **facts: float) -> None:
        """Show some numbers beside the bar."""
        words = "  ".join(f"{name} {value:.4g}" for name, value in facts.items())
        self._words = f"  {words}"
        if self._progress is not None:
            self._progress.update(self._task, description=f"{self.what}  {words}")

    def _line(self, seconds: float) -> str:
        """How far it is, and how long the rest will take at this pace."""
        if not self.total:
            return f"{self.what}: {self._done:,.0f} after {_span(seconds)}{self._words}"
        left = seconds * (self.total - self._done) / self._done if self._done else 0.0
        return f"{self.what}: {self._done / self.total:.0%}, about {_span(left)} left{self._words}"

    def __exit__(self, *_: object) -> None:
        if self._progress is not None:
            self._progress.stop()


def _span(seconds: float) -> str:
    """A time in the unit that suits it.

    >>> _span(40), _span(600), _span(9000)
    ('40 s', '10 min', '2.5 h')
    """
    return (
        f"{seconds:.0f} s"
        if seconds < 90
        else f"{seconds / 60:.0f} min"
        if seconds < 5400
        else f"{seconds / 3600:.1f} h"
    )


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
