"""SIGTERM while nothing else handles it, such as during imports: one line, and the exit code of what can be resumed."""

import contextlib
import os
import signal
import threading
from collections.abc import Iterator

from evenly.errors import Stopped

_SAID = b"evenly: stopped; the same command begins again, or continues from what was saved.\n"


@contextlib.contextmanager
def ending_plainly() -> Iterator[None]:
    """Within the context, SIGTERM ends this process at once, as it does by default, but not without a word.

    No exception is raised: libraries that are being imported would swallow it, or report it as a failure of theirs.

    >>> with ending_plainly():
    ...     signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    False
    """
    # Only the main thread may set handlers; elsewhere, and where one is set, the host program decides.
    if threading.current_thread() is not threading.main_thread() or (
        signal.getsignal(signal.SIGTERM) != signal.SIG_DFL
    ):
        yield
        return
    owner = os.getpid()

    def end(number: int, frame: object) -> None:
        if os.getpid() != owner:  # a forked worker, which ends as its parent expects
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
        with contextlib.suppress(OSError):  # nobody reads stderr any more
            os.write(2, _SAID)
        os._exit(Stopped.exit_code)

    signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
