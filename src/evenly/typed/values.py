"""Convert a value to the type of an annotation, or raise an error that says what was expected."""

import math
import numbers
import types
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Union, get_args, get_origin

from evenly.errors import UsageError, did_you_mean
from evenly.typed.options import Options, thaw


@dataclass(frozen=True)
class Bounds:
    """The interval in which a number must lie, open (`above`, `below`) or closed (`least`, `most`).

    >>> 0 in Bounds(above=0), str(Bounds(least=0, below=1))
    (False, 'of at least 0 and below 1')
    """

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
        return " and ".join(f"{word} {limit:,.12g}" for word, limit in words.items() if limit is not None)


def convert(kind: Any, value: Any, *, path: str, bounds: Bounds, example: Any) -> Any:
    """`value` as exactly `kind`; else a `UsageError` that names `path`, the value, what was expected and an example.

    >>> convert(float, 1, path="lr", bounds=Bounds(above=0), example=0.1)
    1.0
    >>> convert(float, "fast", path="lr", bounds=Bounds(above=0), example=0.1)
    Traceback (most recent call last):
    evenly.errors.UsageError: lr: expected a number above 0, not 'fast'. For example: lr=0.1
    """
    if is_options(kind):
        if isinstance(value, Mapping):
            return Options(value, path=path)
    else:
        matched, converted = _match(kind, value, bounds)
        if matched:
            return converted
    raise UsageError(
        f"{path}: expected {expects(kind, bounds)}, not {format_value(value)}. {_hint(kind, value, path, example)}"
    )


def expects(kind: Any, bounds: Bounds) -> str:
    """The values that a field of this kind accepts, in words.

    >>> expects(tuple[float, ...], Bounds(above=0, below=1)), expects(int | None, Bounds())
    ('a list, each a number above 0 and below 1', 'a whole number or null')
    """
    if is_options(kind):
        return "a mapping of options"
    if _is_union(kind):
        return " or ".join("null" if arm is types.NoneType else expects(arm, bounds) for arm in get_args(kind))
    if get_origin(kind) is Literal:
        return "one of " + ", ".join(map(str, get_args(kind)))
    if get_origin(kind) is tuple:
        return f"a list, each {expects(get_args(kind)[0], bounds)}"
    words = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}
    if kind not in words:
        raise TypeError(f"{kind} is not a kind of setting")
    return f"{words[kind]} {bounds}".rstrip() if kind in (int, float) else words[kind]


def is_options(kind: Any) -> bool:
    """Whether the annotation is that of free options, `Mapping[str, Any]`."""
    return get_origin(kind) is Mapping


def format_value(value: Any) -> str:
    """`value` as a short piece of an error message.

    >>> format_value(None), format_value("x" * 100)[-9:]
    ('null', 'xxxxxx...')
    """
    words = {None: "null", True: "true", False: "false"}
    text = words[value] if value is None or isinstance(value, bool) else repr(thaw(value))
    return text if len(text) <= 80 else text[:77] + "..."


def _match(kind: Any, value: Any, bounds: Bounds) -> tuple[bool, Any]:
    """Whether `value` is of `kind` and in bounds, and the converted value. A bool is never a number here."""
    if _is_union(kind):
        matches = (_match(arm, value, bounds) for arm in get_args(kind))
        return next((match for match in matches if match[0]), (False, None))
    if kind is types.NoneType:
        return value is None, None
    if get_origin(kind) is Literal:
        return any(value == known and type(value) is type(known) for known in get_args(kind)), value
    if get_origin(kind) is tuple:
        if not isinstance(value, list | tuple):
            return False, None
        parts = [_match(get_args(kind)[0], item, bounds) for item in value]
        return all(matched for matched, _ in parts), tuple(part for _, part in parts)
    if kind in (bool, str):
        return isinstance(value, kind), value
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not _is_finite(value):
        return False, None
    # People write 1e3 for a thousand, which is a float in YAML.
    whole = isinstance(value, numbers.Integral) or float(value).is_integer()
    # The stub of int() knows no numbers.Real, which every number of numpy is.
    number: int | float = int(value) if kind is int else float(value)  # type: ignore[call-overload]
    return (kind is float or whole) and number in bounds, number


def _is_finite(value: numbers.Real) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number that no floating-point number reaches
        return False


def _is_union(kind: Any) -> bool:
    return get_origin(kind) in (Union, types.UnionType)


def _hint(kind: Any, value: Any, path: str, example: Any) -> str:
    if get_origin(kind) is Literal and isinstance(value, str):
        near = did_you_mean(value, map(str, get_args(kind)))
        if near.startswith("Did"):
            return near
    if get_origin(kind) is tuple and not isinstance(value, list | tuple):
        return f"For example: {path}=[{format_value(value).strip(chr(39))}]"
    return f"For example: {path}={format_value(example).strip(chr(39))}"
