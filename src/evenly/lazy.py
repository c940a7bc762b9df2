"""Re-exports that import their module only when a name is first used."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def attach(package: str, exports: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` for a package whose public names live in other modules (PEP 562).

    >>> look_up, listing, names = attach("demo", {"sqrt": "math"})
    >>> look_up("sqrt")(9.0), listing()
    (3.0, ['sqrt'])
    >>> look_up("cube")
    Traceback (most recent call last):
    AttributeError: module 'demo' has no attribute 'cube'
    """

    def look_up(name: str) -> Any:
        if name in exports:
            return getattr(import_module(exports[name]), name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    names = sorted(exports)
    return look_up, lambda: names, names
