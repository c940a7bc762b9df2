"""Progress on stderr: a bar with the time left on a terminal, a line every half minute elsewhere."""

import os
import re
import shutil
import sys
import textwrap
import time
import unicodedata
from collections.abc import Iterable, Iterator, Sized
from typing import Any, TextIO, TypeVar

T = TypeVar("T")
LINE_EVERY = 30.0  # seconds from one line to the next where there is no terminal
PATIENCE = 1.0  # seconds before a bar inside of another one is shown: most are over by then, and would only flicker
_shown: Any = None  # the display that bars inside of other bars join: there can be one on a terminal
_silent_since = _last_bar = 0.0  # when the last line was printed, or bars began; when the last of these ended


def can_show_bar() -> bool:
    """Whether stderr is a terminal that can show a bar."""
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


def tell(sentence: str) -> None:
    """Print a message to stderr; results go to stdout."""
    print(wrap_text(sentence), file=sys.stderr, flush=True)


def printable(text: str) -> str:
    """Text that only says something: control characters, which a stranger's file may hold, are escaped.

    >>> printable("a name\\x1b[2J that clears the screen")
    'a name\\\\x1b[2J that clears the screen'
    """
    if text.isprintable():
        return text
    return "".join(ascii(sign)[1:-1] if _controls(sign) else sign for sign in text)


def _controls(sign: str) -> bool:
    """Whether a character moves the cursor, turns the text around, is half of a pair, or breaks lines unseen."""
    return sign not in "\n\t" and unicodedata.category(sign) in ("Cc", "Cf", "Cs", "Zl", "Zp")


def wrap_text(text: str, *, stream: TextIO | None = None, width: int | None = None) -> str:
    """Printable text wrapped to the terminal's width, each line keeping its indent; unwrapped without a terminal.

    A line that is a command stays whole, so that it can be copied.

    >>> text = "Too early to say.\\n  - two seeds cannot tell\\n  evenly compare digits --seeds 0-4"
    >>> print(wrap_text(text, width=20))
    Too early to say.
      - two seeds cannot
        tell
      evenly compare digits --seeds 0-4
    """
    stream, text = stream or sys.stderr, printable(text)
    if width is None:
        if not stream.isatty():
            return text
        width = shutil.get_terminal_size().columns
    return "\n".join(_fill(line, width) for line in text.split("\n"))


def _fill(line: str, width: int) -> str:
    indent = re.match(r"\s*(- |\| )?", line)[0]  # type: ignore[index]  # it matches everything
    if len(line) <= width or line.lstrip().startswith("evenly "):
        return line
    wrapper = textwrap.TextWrapper(width, indent, " " * len(indent), break_long_words=False, break_on_hyphens=False)
    return wrapper.fill(line[len(indent) :])


def duration(seconds: float) -> str:
    """Seconds in the unit that suits them.

    >>> duration(5), duration(300), duration(10_000)
    ('5.0 s', '5.0 min', '2.8 h')
    """
    for size, unit in ((3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.1f} s"


class Bar:
    """A bar over `total` units; `advance` moves it. A bar inside of another one is shown below it.

    `done` units were done before, by a process that was stopped, and say nothing about the time that the rest takes.

    >>> with Bar("reading", total=3) as bar:
    ...     bar.advance(2)
    """

    def __init__(self, what: str, *, total: float | None, unit: str = "it", done: float = 0.0) -> None:
        self.what, self.total, self.unit = what, total, unit
        self._text = what
        self._before = self._done = done
        self._progress: Any = None
        self._began = self._said = time.monotonic()

    def __enter__(self) -> "Bar":
        global _shown, _silent_since
        self._owns = False
        self._began = self._said = time.monotonic()
        if self._began - max(_last_bar, _silent_since) > LINE_EVERY:
            _silent_since = self._began
        if can_show_bar():
            if _shown is None:
                _shown, self._owns = _display(self.unit), True
                _shown.start()
            self._progress = _shown
            self._task = self._progress.add_task(
                self.what, total=self.total, completed=self._before, visible=self._owns
            )
        return self

    def advance(self, amount: float = 1) -> None:
        """Move the bar by `amount` units."""
        self._done += amount
        if self._progress is not None:
            self._progress.update(self._task, advance=amount, visible=self._is_due())
        else:
            self._say()

    def note(self, *, loss: float, error: float) -> None:
        """Show loss and error (a share) beside the bar."""
        self.describe(f"{self.what}  loss {loss:.4g}  error {error * 100:.2f}%")

    def describe(self, text: str) -> None:
        """Show another text beside the bar."""
        self._text = text
        if self._progress is not None:
            self._progress.update(self._task, description=text, visible=self._is_due())
        else:
            self._say()

    def _is_due(self) -> bool:
        return self._owns or time.monotonic() - self._began >= PATIENCE

    def _say(self) -> None:
        """Print a line, if there is no terminal and the last line, of this bar or of any, was long enough ago.

        Of any, too: many short bars one after another would print nothing for as long as they take.
        """
        global _silent_since
        now = time.monotonic()
        if now - min(self._said, _silent_since) < LINE_EVERY:
            return
        if os.environ.get("RANK", "0") != "0":  # only one of several processes prints
            return
        self._said = _silent_since = now
        words = self._text
        if self.total and self.unit != "runs":  # a plan prints its own counts
            own = self._done - self._before
            left = (self.total - self._done) * (now - self._began) / own if own else 0.0
            words += f": {self._done / self.total:.0%}" + (f", about {duration(left)} left" if left > 0 else "")
        tell(words)

    def __exit__(self, *_: object) -> None:
        global _shown, _last_bar
        _last_bar = time.monotonic()
        if self._progress is not None:
            self._progress.remove_task(self._task)
            if self._owns:
                self._progress.stop()
                _shown = None
            self._progress = None


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


def _display(unit: str) -> Any:
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

    counts = [DownloadColumn(), TransferSpeedColumn()] if unit == "bytes" else [MofNCompleteColumn()]
    columns = [TextColumn("{task.description}"), BarColumn(), *counts, TimeRemainingColumn()]
    if unit == "runs":  # the description states their number and the time left
        columns = [TextColumn("{task.description}"), BarColumn()]
    return Progress(*columns, console=Console(stderr=True), transient=True)
