"""Ctrl-C and SIGTERM as requests to the loop: finish the step, save, then stop."""

import signal
import threading
from types import FrameType

from evenly.errors import Stopped


class Interruption:
    """Within the context the first SIGINT or SIGTERM is recorded in `signal`; a second one has its usual effect.

    >>> with Interruption() as interruption:
    ...     signal.raise_signal(signal.SIGTERM)
    ...     interruption.requested
    True
    """

    def __init__(self) -> None:
        self.signal: int | None = None
        self._previous: dict[int, object] = {}

    @property
    def requested(self) -> bool:
        """Whether this process should stop."""
        return self.signal is not None

    def error(self, where: str) -> BaseException:
        """What to raise once everything is saved: `KeyboardInterrupt` for Ctrl-C, `Stopped` otherwise."""
        message = f"stopped {where}; the same command continues from there."
        return KeyboardInterrupt(message) if self.signal == signal.SIGINT else Stopped(message)

    def __enter__(self) -> "Interruption":
        # Only the main thread may set handlers; elsewhere the host program decides what signals mean.
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._previous[number] = signal.signal(number, self._note)
        return self

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.signal = number
        self._restore()

    def _restore(self) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)  # type: ignore[arg-type]  # what signal.signal itself returned
        self._previous.clear()

    def __exit__(self, *_: object) -> None:
        self._restore()
