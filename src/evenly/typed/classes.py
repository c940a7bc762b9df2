"""Classes of settings: frozen dataclasses derived from `Settings` whose fields are made by `setting`.

Their fields are `bool`, `int`, `float`, `str`, a `Literal`, any of these `| None`, `tuple[T, ...]`,
`Mapping[str, Any]` (free options, kept as `Options`) or another such class.
"""

import difflib
import functools
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from typing import Any, TypeVar, cast, get_type_hints

from evenly.errors import UsageError
from evenly.typed.options import Options, thaw
from evenly.typed.values import Bounds, convert, expects, format_value, is_options

T = TypeVar("T", bound="Settings")


@dataclass(frozen=True)
class Setting:
    """One setting in a tree: its path, what it accepts, its default and its documentation."""

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
    absent: Any = MISSING,
) -> Any:
    """A dataclass field with a default, one sentence of documentation, and the interval of its numbers.

    A setting added in a later version declares the value that reproduces the behaviour before it, `absent`. At that
    value it is left out of `identity_settings`, so that earlier runs keep their identity.

    >>> @dataclass(frozen=True)
    ... class Walk(Settings):
    ...     pace: float = setting(5.0, "Kilometres per hour.", above=0)
    >>> Walk(pace=6)
    Walk(pace=6.0)
    >>> Walk(pace=-1)
    Traceback (most recent call last):
    evenly.errors.UsageError: walk.pace: expected a number above 0, not -1. For example: walk.pace=5.0
    """
    # Frozen settings hash and so may be defaults themselves; a plain dict may not.
    default = Options(default) if isinstance(default, dict) else default
    absent = Options(absent) if isinstance(absent, dict) else absent
    return field(default=default, metadata={"doc": doc, "bounds": Bounds(above, least, below, most), "absent": absent})


class Settings:
    """The base of frozen dataclasses of settings: each value is converted to exactly its field's type, or refused."""

    def __post_init__(self) -> None:
        cls: Any = type(self)
        for part in fields(cls):
            path = f"{cls.__name__.lower()}.{part.name}"
            value = _value(_kinds(cls)[part.name], getattr(self, part.name), path, part)
            object.__setattr__(self, part.name, value)


def from_mapping(cls: type[T], mapping: Mapping[str, Any], *, recorded: bool = False) -> T:
    """The settings `cls` that `mapping` describes; settings that it does not name keep their defaults.

    An unknown name raises an error that suggests the nearest one. A `recorded` mapping was written by some version with
    every setting: a setting that it lacks did not exist then, and takes its `absent` value.

    >>> from evenly.recipe import Recipe
    >>> from_mapping(Recipe, {"optimizer": {"lr": 1}}).optimizer.lr
    1.0
    >>> from_mapping(Recipe, {"lr": 1})
    Traceback (most recent call last):
    evenly.errors.UsageError: unknown setting 'lr'. Did you mean 'optimizer.lr'?
    """
    return cast(T, _build(cls, mapping, "", MISSING, cls, recorded))


def to_mapping(settings: Settings, *, defaults: bool = True) -> dict[str, Any]:
    """Plain dicts, lists and scalars that `from_mapping` reads back; without `defaults`, only what differs from them.

    >>> from evenly.recipe import Optimizer
    >>> to_mapping(Optimizer(lr=0.05), defaults=False)
    {'lr': 0.05}
    """
    return _mapping(settings, MISSING, defaults)


def identity_settings(settings: Settings) -> dict[str, Any]:
    """Every setting, defaults included, except for those at their `absent` value.

    Changing a default changes the result; adding a setting at its `absent` value does not.

    >>> @dataclass(frozen=True)
    ... class Walk(Settings):
    ...     pace: float = setting(5.0, "Kilometres per hour.")
    ...     uphill: bool = setting(True, "Whether the path rises.", absent=False)
    >>> identity_settings(Walk()), identity_settings(Walk(uphill=False))
    ({'pace': 5.0, 'uphill': True}, {'pace': 5.0})
    """
    mapping: dict[str, Any] = {}
    for part in fields(cast(Any, settings)):
        value = getattr(settings, part.name)
        if is_dataclass(value):
            if inner := identity_settings(cast(Settings, value)):
                mapping[part.name] = inner
        elif value != part.metadata.get("absent", MISSING):
            mapping[part.name] = thaw(value)
    return mapping


def settings(cls: type[Settings], *, under: str = "") -> Iterator[Setting]:
    """Every setting of `cls` and of the classes inside it, by dotted path.

    >>> from evenly.recipe import Optimizer
    >>> next(row for row in settings(Optimizer) if row.path == "lr")
    Setting(path='lr', expects='a number above 0', default=0.1, doc='Learning rate.')
    """
    for part in fields(cast(Any, cls)):
        kind, path = _kinds(cast(Any, cls))[part.name], under + part.name
        if is_dataclass(kind):
            yield from settings(cast(type[Settings], kind), under=f"{path}.")
        else:
            yield Setting(path, expects(kind, _bounds(part)), part.default, part.metadata.get("doc", ""))


def _build(cls: Any, mapping: Any, path: str, base: Any, root: type[Settings], recorded: bool = False) -> Any:
    """`mapping` as a `cls`; missing settings come from `base`, the default of the field that holds it."""
    if isinstance(mapping, cls):
        return mapping
    if not isinstance(mapping, Mapping):
        names = ", ".join(part.name for part in fields(cls))
        raise UsageError(f"{path or 'recipe'}: expected settings ({names}), not {format_value(mapping)}.")
    prefix = f"{path}." if path else ""
    kinds = _kinds(cls)
    for name in mapping:
        if name not in kinds:
            raise UsageError(f"unknown setting '{prefix}{name}'. {_nearest(str(name), cls, prefix, root)}")
    values = {}
    for part in fields(cls):
        kind, where = kinds[part.name], prefix + part.name
        default = part.default if base is MISSING else getattr(base, part.name)
        if part.name not in mapping and is_dataclass(kind) and recorded:
            values[part.name] = _build(kind, {}, where, default, root, recorded)
        elif part.name not in mapping and recorded and part.metadata.get("absent", MISSING) is not MISSING:
            values[part.name] = part.metadata["absent"]
        elif part.name not in mapping:
            if default is MISSING:
                raise UsageError(f"setting '{where}' is missing: give it {expects(kind, _bounds(part))}.")
            values[part.name] = default
        elif is_dataclass(kind):
            values[part.name] = _build(kind, mapping[part.name], where, default, root, recorded)
        else:
            values[part.name] = _value(kind, mapping[part.name], where, part)
    return cls(**values)


def _mapping(settings: Any, base: Any, defaults: bool) -> dict[str, Any]:
    mapping: dict[str, Any] = {}
    for part in fields(settings):
        value = getattr(settings, part.name)
        default = part.default if base is MISSING else getattr(base, part.name)
        if is_dataclass(value):
            inner = _mapping(value, default, defaults)
            if inner or defaults or default is MISSING:
                mapping[part.name] = inner
        elif defaults or value != default:
            mapping[part.name] = thaw(value)
    return mapping


def _value(kind: Any, value: Any, path: str, part: "Field[Any]") -> Any:
    if is_dataclass(kind):
        return _build(kind, value, path, part.default, cast(type[Settings], kind))
    return convert(kind, value, path=path, bounds=_bounds(part), example=part.default)


def _nearest(name: str, cls: Any, prefix: str, root: type[Settings]) -> str:
    """The same name elsewhere in the tree, else similar ones beside it, else similar ones elsewhere, else all here."""
    here = [part.name for part in fields(cls)]
    leaves: dict[str, list[str]] = {}
    for row in settings(root):
        leaves.setdefault(row.path.rpartition(".")[2], []).append(row.path)
    near = leaves.get(name) or [prefix + other for other in difflib.get_close_matches(name, here, n=2)]
    near = near or [path for leaf in difflib.get_close_matches(name, leaves, n=1) for path in leaves[leaf]]
    if near:
        return f"Did you mean {' or '.join(map(repr, near))}?"
    free = next((part for part, kind in _kinds(cls).items() if is_options(kind)), None)
    forward = f" An option of its own goes to '{prefix}{free}.{name}'." if free else ""
    return f"Known: {', '.join(prefix + other for other in here)}.{forward}"


def _bounds(part: "Field[Any]") -> Bounds:
    return cast(Bounds, part.metadata.get("bounds", Bounds()))


@functools.cache
def _kinds(cls: Any) -> dict[str, Any]:
    """The annotation of every field, with names resolved."""
    hints = get_type_hints(cls)
    return {part.name: hints[part.name] for part in fields(cls)}
