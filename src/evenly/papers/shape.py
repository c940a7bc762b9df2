"""The shape of a JSON file, declared as data, and a reader that refuses damaged files.

A shape is a type (`float` takes any finite number); a set of allowed values; a tuple of shapes, any of which will do;
a list with the shape of every item; a mapping by name, whose optional names end in `?`; a mapping from one pattern
to the shape of every value; or `ANYTHING`.
"""

import errno
import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from evenly.errors import DataError
from evenly.records import json_text

ANYTHING = object()
_WORDS = {str: "text", int: "a whole number", float: "a number", bool: "true or false", None: "null", dict: "a mapping"}


def read(path: Path, shape: Any, *, remedy: str) -> Any:
    """The content of a JSON file of this shape; anything else is an error that names the place and the remedy.

    >>> read(Path("nowhere.json"), {"a": int}, remedy="Write it again.")
    Traceback (most recent call last):
    evenly.errors.DataError: nowhere.json cannot be read (No such file or directory). Write it again.
    """
    try:
        value = json_text.loads(_content(path))
        wrong = next(faults(value, shape), None)
    except RecursionError:
        wrong = "it is nested too deeply"
    except OSError as error:
        wrong = error.strerror or str(error)
    except ValueError as error:  # not JSON, not UTF-8, or a number too long to read
        wrong = str(error)
    if wrong is not None:
        raise DataError(f"{path} cannot be read ({wrong}). {remedy}")
    return value


def _content(path: Path) -> bytes:
    if path.exists() and not path.is_file():  # reading a named pipe would wait for a writer
        raise OSError(errno.EINVAL, "it is not a regular file")
    return path.read_bytes()


def faults(value: Any, shape: Any, path: str = "") -> Iterator[str]:
    """A phrase for each place where a value does not have the shape.

    >>> list(faults({"a": [1, "x"]}, {"a": [int], "b?": str, "c": bool}))
    ["a[1] is 'x', not a whole number", 'c is missing']
    """
    if shape is ANYTHING:
        return
    if isinstance(shape, dict) and isinstance(value, dict):
        yield from _names(value, shape, path)
    elif isinstance(shape, list) and isinstance(value, list):
        for place, each in enumerate(value):
            yield from faults(each, shape[0], f"{path}[{place}]")
    elif isinstance(shape, tuple):
        if all(next(faults(value, each), None) for each in shape):
            # The alternative of the right kind gives the best message; otherwise all are named.
            alike = [each for each in shape if isinstance(each, type(value)) and isinstance(each, dict | list)]
            yield from faults(value, alike[0], path) if alike else [_fault(value, shape, path)]
    elif not _is(value, shape):
        yield _fault(value, shape, path)


def _names(value: Mapping[str, Any], shape: Mapping[Any, Any], path: str) -> Iterator[str]:
    under = f"{path}." if path else ""
    for name, inner in shape.items():
        if isinstance(name, re.Pattern):
            for each in value:
                if name.fullmatch(each):
                    yield from faults(value[each], inner, f"{under}{each}")
                else:
                    yield f"{path or 'it'} has an unexpected name {each[:40]!r}"
        elif (plain := name.removesuffix("?")) in value:
            yield from faults(value[plain], inner, f"{under}{plain}")
        elif plain == name:
            yield f"{under}{name} is missing"


def _is(value: Any, shape: Any) -> bool:
    if shape is None:
        return value is None
    if isinstance(shape, frozenset):
        return isinstance(value, str) and value in shape
    if not isinstance(shape, type):
        return False
    if shape is float:
        return isinstance(value, int | float) and not isinstance(value, bool) and _finite(value)
    return isinstance(value, shape) and (shape is bool or not isinstance(value, bool))


def _finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number beyond every float
        return False


def _fault(value: Any, shape: Any, path: str) -> str:
    text = repr(value)
    return f"{path or 'it'} is {text if len(text) <= 40 else text[:37] + '...'}, not {_words(shape)}"


def _words(shape: Any) -> str:
    if isinstance(shape, tuple):
        return " or ".join(map(_words, shape))
    if isinstance(shape, frozenset):
        return " or ".join(sorted(shape))
    if isinstance(shape, list | dict):
        return "a list" if isinstance(shape, list) else "a mapping"
    return _WORDS[shape]
