"""A digest of a function that changes with what it does: its code, its constants, and the values it carries along."""

import functools
import io
import pickle
import sys
from collections.abc import Callable, Iterator
from types import CellType, CodeType, FunctionType, GetSetDescriptorType, MemberDescriptorType, MethodType, ModuleType
from typing import Any

from torch import Tensor

from evenly.data.fingerprints import fingerprint

DESCRIPTORS = (MemberDescriptorType, GetSetDescriptorType)  # slots, and what every object has


def function_digest(function: Callable[..., Any]) -> str:
    """Sixteen hex digits for a function, a method or an object that is called; the same in every process.

    Its code counts, and so do defaults, variables that it closes over, the attributes of an object, and what its class
    and the bases of that define. Functions that it calls count by their names only.

    >>> def after(epochs):
    ...     return lambda history: len(history) >= epochs
    >>> function_digest(after(2)) == function_digest(after(2)), function_digest(after(2)) == function_digest(after(3))
    (True, False)
    """
    return fingerprint(_pieces(function, set()))


def _pieces(value: Any, seen: set[int]) -> Iterator[str | bytes]:
    """Bytes that tell `value` from others; `seen` are the objects above it, which it may refer to again."""
    if id(value) in seen:
        return
    seen = seen | {id(value)}
    parts: tuple[Any, ...]
    match value:
        case CodeType():
            yield value.co_code
            parts = (value.co_names, value.co_consts)
        case FunctionType():
            yield f"{value.__module__}.{value.__qualname__}"
            cells = tuple(map(_content, value.__closure__ or ()))
            parts = (value.__code__, value.__defaults__, value.__kwdefaults__, cells)
        case MethodType():
            parts = (value.__func__, value.__self__)
        case functools.partial():
            parts = (value.func, value.args, value.keywords)
        case tuple() | list():
            yield f"{len(value)} items"
            parts = tuple(value)
        case dict():
            parts = tuple(value.items())
        case ModuleType():  # cannot be pickled, and its attributes are a library
            parts = ()
            yield value.__name__
        case staticmethod() | classmethod():
            parts = (value.__func__,)
        case property():
            parts = (value.fget,)
        case functools._lru_cache_wrapper():
            parts = (value.__wrapped__,)
        case _ if callable(value) and isinstance(getattr(type(value), "__call__", None), FunctionType):  # noqa: B004
            parts = (_class_attributes(type(value)), _attributes(value))
            yield _type(value)
        case _:
            parts = ()
            yield from _plain(value)
    for part in parts:
        yield from _pieces(part, seen)


def _class_attributes(kind: type) -> list[tuple[str, Any]]:
    """What a class and its bases define; those of the standard library and of torch count by their names."""
    attributes: list[tuple[str, Any]] = []
    for base in kind.__mro__:
        attributes.append(("class", f"{base.__module__}.{base.__qualname__}"))
        if base.__module__.partition(".")[0] not in {*sys.stdlib_module_names, "torch"}:
            own = ((name, each) for name, each in vars(base).items() if not isinstance(each, DESCRIPTORS))
            attributes += [(name, each) for name, each in own if callable(each) or not name.startswith("__")]
    return attributes


def _attributes(value: Any) -> dict[str, Any]:
    """The attributes of an object, in its dictionary and in slots."""
    slots = [name for base in type(value).__mro__ for name, each in vars(base).items() if isinstance(each, DESCRIPTORS)]
    held = {name: getattr(value, name) for name in slots if hasattr(value, name) and not name.startswith("__")}
    return held | getattr(value, "__dict__", {})


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # The variable has no value (yet).
        return None


def _plain(value: Any) -> Iterator[str | bytes]:
    """The pickle of a value; what cannot be pickled counts by its type and attributes, since `repr` has an address."""
    written = _pickle(value)
    if written is not None:
        yield written
        return
    yield _type(value)
    for name, inner in _attributes(value).items():
        yield name
        yield _pickle(inner) or _type(inner)


def _pickle(value: Any) -> bytes | None:
    into = io.BytesIO()
    try:
        _Pickler(into, protocol=4).dump(value)
    except Exception:  # whatever the object raises
        return None
    return into.getvalue()


class _Pickler(pickle.Pickler):
    """Writes equal values in the same way in every process: torch would write addresses, and sets have any order."""

    def persistent_id(self, value: Any) -> Any:
        """What is written in place of a tensor or a set; None leaves a value as it is."""
        if isinstance(value, Tensor):
            return str(value.dtype), tuple(value.shape), fingerprint([value])
        if isinstance(value, set | frozenset):
            return sorted(fingerprint(_pieces(item, set())) for item in value)
        return None


def _type(value: Any) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"
