"""The end of a process before, in the middle of or after its n-th writing call, as a power cut would have it."""

import builtins
import io
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

Moment = Literal["before", "halfway", "after"]
_CALLS = (
    "open", "write", "pwrite", "replace", "rename", "remove", "unlink", "mkdir", "rmdir", "fsync", "ftruncate",
    "truncate", "link", "symlink", "chmod", "utime",
)  # fmt: skip
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_TORN = ("write", "pwrite")  # calls that may be done in part


def install(*, number: int, moment: Moment, log: Path | None = None) -> None:
    """Kill this process at its writing call `number` (from 1; 0 for never); `log` receives the name of every one.

    Calls are caught at the functions of `os` and at `open`, through which all of Python's own writing goes.
    """
    count = 0
    real_open, real_write = os.open, os.write
    to = None if log is None else real_open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def caught(name: str, real: Callable[..., Any], writes: Callable[..., bool]) -> Callable[..., Any]:
        def call(*arguments: Any, **keywords: Any) -> Any:
            nonlocal count
            if not writes(*arguments, **keywords):
                return real(*arguments, **keywords)
            count += 1
            if to is not None:
                real_write(to, f"{name}\n".encode())
            if count != number:
                return real(*arguments, **keywords)
            try:
                if moment == "halfway" and name in _TORN:
                    return real(arguments[0], arguments[1][: len(arguments[1]) // 2], *arguments[2:])
                if moment == "after":
                    return real(*arguments, **keywords)
            finally:  # also where the call fails, as making a folder does that is there
                os.kill(os.getpid(), signal.SIGKILL)
            raise AssertionError("a killed process goes on")

        return call

    for name in _CALLS:
        setattr(os, name, caught(name, getattr(os, name), _opens_to_write if name == "open" else _on_a_file))
    opened = caught("open", io.open, _mode_to_write)
    io.open = builtins.open = opened


def _on_a_file(target: Any, *_: Any, **__: Any) -> bool:
    return not (isinstance(target, int) and target in (1, 2))


def _opens_to_write(path: Any, flags: int = 0, *_: Any, **__: Any) -> bool:
    return bool(flags & _WRITES) and not str(path).startswith("/dev/")


def _mode_to_write(file: Any, mode: str = "r", *_: Any, **__: Any) -> bool:
    # A file that is opened by its number was counted when it got the number.
    return not isinstance(file, int) and any(letter in mode for letter in "wax+") and not str(file).startswith("/dev/")
