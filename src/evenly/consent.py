"""Consent to run code: a recipe or a run's folder may name a function, which must not be called without asking.

A model can be given as `module:function`. Importing the module and calling the function can run any code, so a name
read from a file is as dangerous as code from that file. It may run if the user has already named exactly this code
with exactly these options on this machine (on a command line, or by training a recipe made in Python), or trusts the
file now, with `--trust-code` or `trusting()`. Everything that reads a recipe from a file calls `require` before it
imports the module.
"""

import contextlib
import hashlib
import json
import logging
import os
import sys
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

from evenly.errors import UsageError

LIBRARIES = ("timm", "torchvision")
_log = logging.getLogger(__name__)
_trusting: ContextVar[bool] = ContextVar("_trusting", default=False)
_command: ContextVar[str] = ContextVar("_command", default="")
_named: set[str] = set()  # by this process, whether or not the machine's memory could be written


@contextlib.contextmanager
def trusting(trust: bool = True, *, command: str = "") -> Iterator[None]:
    """Within the context, code named by files may run; with `trust=False`, only code the user agreed to before.

    `command` is the user's command line; the refusal repeats it with `--trust-code`.
    """
    before = _trusting.set(trust), _command.set(command)
    try:
        yield
    finally:
        _trusting.reset(before[0])
        _command.reset(before[1])


def is_code(name: str, options: Mapping[str, Any]) -> bool:
    """Whether building this model runs code that its name or options choose.

    Catalogue models do not. A library's models do if an option could make the library fetch or read a file; numbers
    cannot.

    >>> is_code("mlp", {"width": 8}), is_code("os:system", {}), is_code("timm:resnet18", {"drop_rate": 0.1})
    (False, True, False)
    >>> is_code("timm:resnet18", {"checkpoint_path": "weights.pth"}), is_code("timm:resnet18", {"pretrained": True})
    (True, True)
    """
    library, colon, _ = name.partition(":")
    if not colon:
        return False
    return library not in LIBRARIES or not all(_is_number(each) for each in options.values())


def require(name: str, options: Mapping[str, Any], *, source: str | os.PathLike[str], remedy: str = "") -> None:
    """Refuse a model that `source`, a file or folder, names as code, unless the user has agreed to it.

    >>> require("os:system", {"command": "rm -rf /"}, source="runs/3f2a")
    Traceback (most recent call last):
    evenly.errors.UsageError: runs/3f2a names code to run: os:system(command='rm -rf /'). None of it was imported...
    """
    if not is_code(name, options) or _trusting.get() or has_consent(name, options):
        return
    call = ", ".join(f"{key}={value!r:.60}" for key, value in options.items())
    command = _command.get()
    how = remedy or (f"run it: {command} --trust-code" if command else "put it under `with evenly.consent.trusting():`")
    raise UsageError(
        f"{os.fspath(source)} names code to run: {name}({call}). None of it was imported or called, because it "
        f"has not been approved on this machine. If you know it and trust where it comes from, {how}"
    )


def has_consent(name: str, options: Mapping[str, Any]) -> bool:
    """Whether the user has named exactly this code with exactly these options on this machine."""
    mark = _mark(name, options)
    if mark in _named:
        return True
    try:
        return mark in {line.partition(" ")[0] for line in _memory().read_text(encoding="utf-8").splitlines()}
    except (OSError, ValueError):
        return False


def remember(name: str, options: Mapping[str, Any]) -> None:
    """Record that the user named this code: it may run again on this machine, from this place, with these options."""
    if not is_code(name, options) or has_consent(name, options):
        return
    mark = _mark(name, options)
    _named.add(mark)
    try:
        _memory().parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle = os.open(_memory(), os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
        try:
            os.write(handle, f"{mark} {json.dumps(name)}\n".encode())
        finally:
            os.close(handle)
    except OSError as error:  # training must not fail for it; the next command will ask
        _log.info("cannot remember in %s that %s may run: %s.", _memory(), name, error.strerror)


def _memory() -> Path:
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "evenly" / "code"


def _mark(name: str, options: Mapping[str, Any]) -> str:
    """A digest of the code's name, its options, and where it would be imported from.

    The place counts, so that a module of the same name in a stranger's folder is a different one.
    """
    facts = [name, _plain(options), _origin(name)]
    return hashlib.blake2b(json.dumps(facts, sort_keys=True).encode(), digest_size=16).hexdigest()


def _origin(name: str) -> str:
    """The location of a module's outermost package, found without importing it."""
    package = name.partition(":")[0].partition(".")[0]
    spec = PathFinder.find_spec(package, [*sys.path, os.getcwd()]) if package else None
    if spec is None:
        return ""
    places = [spec.origin] if spec.origin else list(spec.submodule_search_locations or [])
    return os.pathsep.join(os.path.realpath(place) for place in places)


def _is_number(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(map(_is_number, value))
    return value is False or (isinstance(value, int | float) and value is not True)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
