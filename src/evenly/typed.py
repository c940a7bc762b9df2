"""Settings as frozen dataclasses: typed, documented, checked when made, from plain mappings and back.

A class of settings is a frozen dataclass whose fields are made by `setting` and whose `__post_init__`
is `check`. Its fields are `bool`, `int`, `float`, `str`, a `Literal`, any of these `| None`,
`tuple[T, ...]`, `Mapping[str, Any]` (free options, frozen as `Options`) or another such class.
"""

import dataclasses
import functools
import math
import numbers
import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

from evenly.errors import UsageError, did_you_mean

T = TypeVar("T")


@dataclass(frozen=True)
class Bounds:
    """The open or closed interval in which a number must lie."""

    above: float | None = None
    least: float | None = None
    below: float | None = None
    most: float | None = None

    def __contains__(self, value: float) -> bool:
        return (
            (self.above is None or value > self.above)
            and (self.least is None or value >= self.least)
            and (self.below is None or value < self.below)
            and (self.most is None or value <= self.most)
        )

    def __str__(self) -> str:
        words = {"above": self.above, "of at least": self.least, "below": self.below, "of at most": self.most}
        return " and ".join(f"{word} {limit}" for word, limit in words.items() if limit is not None)


@dataclass(frozen=True)
class Setting:
    """One line of a class of settings: where it stands, what it takes, what it is by default and means."""

    path: str
    expects: str
    default: Any
    doc: str


def setting(
    default: Any,
    doc: str,
    *,
    above: float | None = None,
    least: float | None = None,
    below: float | None = None,
    most: float | None = None,
) -> Any:
    """A dataclass field with a default, one sentence of documentation, and the interval of its numbers.

    >>> @dataclass(frozen=True)
    ... class Walk:
    ...     pace: float = setting(5.0, "Kilometres per hour.", above=0)
    ...     __post_init__ = check
    >>> Walk(pace=6)
    Walk(pace=6.0)
    >>> Walk(pace=-1)
    Traceback (most recent call last):
    evenly.errors.UsageError: walk.pace: expected a number above 0, not -1. For example: walk.pace=5.0
    """
    if isinstance(default, Mapping):
        default = Options(default)
    return dataclasses.field(default=default, metadata={"doc": doc, "bounds": Bounds(above, least, below, most)})


def check(settings: Any) -> None:
    """Give every field its exact type and refuse values that cannot be meant; a `__post_init__`."""
    for field in dataclasses.fields(settings):
        path = f"{type(settings).__name__.lower()}.{field.name}"
        value = _convert(_kinds(type(settings))[field.name], getattr(settings, field.name), path, field, settings)
        object.__setattr__(settings, field.name, value)


def from_mapping(cls: type[T], mapping: Mapping[str, Any]) -> T:
    """The settings `cls` that `mapping` describes; what it does not name keeps its default.

    A name that `cls` does not have is an error, which points to the nearest one that it has.

    >>> from evenly.recipe import Recipe
    >>> from_mapping(Recipe, {"optimizer": {"lr": 1}}).optimizer.lr
    1.0
    >>> from_mapping(Recipe, {"lr": 1})
    Traceback (most recent call last):
    evenly.errors.UsageError: unknown setting 'lr'. Did you mean 'optimizer.lr'?
    """
    return typing.cast(T, _build(cls, mapping, "", MISSING, cls))


def to_mapping(settings: Any, *, defaults: bool = True) -> dict[str, Any]:
    """Plain dicts, lists and scalars that `from_mapping` reads back; without `defaults`, only what differs from them.

    >>> from evenly.recipe import Optimizer
    >>> to_mapping(Optimizer(lr=0.05), defaults=False)
    {'lr': 0.05}
    """
    return _mapping(settings, MISSING, defaults)


def settings(cls: type[Any], *, under: str = "") -> Iterator[Setting]:
    """Every setting of `cls`, also those of the classes inside it, by dotted path.

    >>> from evenly.recipe import Optimizer
    >>> next(row for row in settings(Optimizer) if row.path == "lr")
    Setting(path='lr', expects='a number above 0', default=0.1, doc='Learning rate.')
    """
    for field in dataclasses.fields(cls):
        kind, path = _kinds(cls)[field.name], under + field.name
        if dataclasses.is_dataclass(kind):
            yield from settings(typing.cast(type[Any], kind), under=f"{path}.")
        else:
            yield Setting(path, _expects(kind, _bounds(field)), field.default, field.metadata.get("doc", ""))


class Options(Mapping[str, Any]):
    """A mapping that cannot change, all the way down: scalars, tuples and `Options` under names without dots.

    >>> options = Options({"noise": {"sigma": 0.125}, "layers": [64, 64]})
    >>> options, options["layers"], hash(options) == hash(Options(options))
    (Options({'noise': {'sigma': 0.125}, 'layers': [64, 64]}), (64, 64), True)
    """

    def __init__(self, mapping: Mapping[str, Any] = types.MappingProxyType({}), *, path: str = "options") -> None:
        for name in mapping:
            if not isinstance(name, str) or not name or "." in name:
                raise UsageError(f"{path}: an option's name is text without dots, not {name!r}. Rename it.")
        self._items = {name: _freeze(value, f"{path}.{name}") for name, value in mapping.items()}

    def __getitem__(self, name: str) -> Any:
        return self._items[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __hash__(self) -> int:
        return hash(frozenset(self._items.items()))

    def __repr__(self) -> str:
        return f"Options({_thaw(self)})"


def _build(cls: Any, mapping: Any, path: str, base: Any, root: type[Any]) -> Any:
    if isinstance(mapping, cls):
        return mapping
    if not isinstance(mapping, Mapping):
        names = ", ".join(f.name for f in dataclasses.fields(cls))
        what = f"{path}: expected" if path else "expected"
        raise UsageError(f"{what} a group of settings ({names}), not {_shown(mapping)}.")
    prefix = f"{path}." if path else ""
    fields = {field.name: field for field in dataclasses.fields(cls)}
    for name in mapping:
        if name not in fields:
            raise UsageError(f"unknown setting '{prefix}{name}'. {_nearest(str(name), cls, prefix, root)}")
    values = {}
    for name, field in fields.items():
        default = field.default if base is MISSING else getattr(base, name)
        kind = _kinds(cls)[name]
        if name not in mapping:
            if default is MISSING:
                raise UsageError(f"setting '{prefix}{name}' is missing: it needs {_expects(kind, _bounds(field))}.")
            values[name] = default
        elif dataclasses.is_dataclass(kind):
            values[name] = _build(kind, mapping[name], prefix + name, default, root)
        else:
            values[name] = _convert(kind, mapping[name], prefix + name, field)
    return cls(**values)


def _nearest(name: str, cls: type[Any], prefix: str, root: type[Any]) -> str:
    """The same name elsewhere in the tree, else a similar one beside it, else a similar one elsewhere."""
    paths = [row.path for row in settings(root)]
    same = [path for path in paths if path.rpartition(".")[2] == name]
    if same:
        return f"Did you mean {' or '.join(map(repr, same))}?"
    beside = did_you_mean(prefix + name, [prefix + field.name for field in dataclasses.fields(cls)])
    free = [field for field, kind in _kinds(cls).items() if get_origin(kind) is Mapping or kind is Mapping]
    if free:
        return f"{beside} What only this one understands goes to '{prefix}{free[0]}.{name}'."
    elsewhere = did_you_mean(name, [path.rpartition(".")[2] for path in paths])
    if beside.startswith("Did") or not elsewhere.startswith("Did"):
        return beside
    return did_you_mean(name, {path.rpartition(".")[2]: path for path in paths})


def _convert(kind: Any, value: Any, path: str, field: "dataclasses.Field[Any]", owner: Any = None) -> Any:
    """`value` as exactly `kind`, or a `UsageError` that names `path`."""
    ...
