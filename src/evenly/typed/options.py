"""Free options, frozen: settings that only one data set or model understands."""

import math
import numbers
from collections.abc import Iterator, Mapping
from typing import Any

from evenly.errors import UsageError

DEEPEST = 64  # levels of nesting; Python's own recursion would end a little below a thousand


class Options(Mapping[str, Any]):
    """A mapping frozen all the way down: scalars, tuples and `Options` under names without dots.

    >>> options = Options({"noise": {"sigma": 0.125}, "layers": [64, 64]})
    >>> options, options["layers"]
    (Options({'noise': {'sigma': 0.125}, 'layers': [64, 64]}), (64, 64))
    >>> hash(options) == hash(Options(options))
    True
    """

    def __init__(self, mapping: Mapping[str, Any] | None = None, *, path: str = "options") -> None:
        for name in mapping or ():
            if not isinstance(name, str) or not name or "." in name:
                raise UsageError(f"{path}: the name of an option is text without dots, not {name!r}. Rename it.")
        self._items = {name: freeze(value, f"{path}.{name}") for name, value in (mapping or {}).items()}

    def __getitem__(self, name: str) -> Any:
        return self._items[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __hash__(self) -> int:
        return hash(frozenset(self._items.items()))

    def __repr__(self) -> str:
        return f"Options({thaw(self)})"


def freeze(value: Any, path: str) -> Any:
    """`value` made of Python's own immutable types; a `UsageError` that names `path` if it is not plain data.

    >>> freeze([1, {"a": True}], "data.options.x")
    (1, Options({'a': True}))
    """
    if path.count(".") + path.count("[") > DEEPEST:
        raise UsageError(f"{path[:60]}…: options are nested at most {DEEPEST} levels deep.")
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real):
        if not math.isfinite(value):
            raise UsageError(f"{path}: expected a finite number, not {float(value)}.")
        return float(value)
    if isinstance(value, Mapping):
        return Options(value, path=path)
    if isinstance(value, list | tuple):
        return tuple(freeze(item, f"{path}[{i}]") for i, item in enumerate(value))
    raise UsageError(
        f"{path}: expected a number, text, true, false, null, a list or a mapping, not a {type(value).__name__}. "
        "Recipes hold plain data only, so that they can be saved and compared."
    )


def thaw(value: Any) -> Any:
    """The plain dicts and lists of a frozen value.

    >>> thaw((1, Options({"a": (True,)})))
    [1, {'a': [True]}]
    """
    if isinstance(value, Mapping):
        return {name: thaw(item) for name, item in value.items()}
    return [thaw(item) for item in value] if isinstance(value, tuple) else value
