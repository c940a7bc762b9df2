"""Values as standard JSON. NaN and the infinities, which JSON lacks, are written as text and read as numbers."""

import json
import math
import numbers
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evenly.errors import DataError, UsageError
from evenly.files.regular import open_regular

#: Texts that are read as numbers, so that no other text of a record may be one of them.
SPELLED = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def encode(value: Any, *, path: str) -> Any:
    """`value` in JSON's types: arrays and tensors as lists, NaN and the infinities as text.

    >>> encode({"loss": float("inf"), "errors": (1, 2)}, path="metrics")
    {'loss': 'Infinity', 'errors': [1, 2]}
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        if value in SPELLED:
            raise UsageError(
                f"{path}: the text {value!r} would be read back as a number. Log the number, or other text."
            )
        return value
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real):
        number = float(value)
        if math.isfinite(number):
            return number
        return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"
    if isinstance(value, Mapping):
        return {_name(key, path): encode(item, path=f"{path}.{key}") for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [encode(item, path=f"{path}[{i}]") for i, item in enumerate(value)]
    if hasattr(value, "tolist"):  # numpy and torch, neither of which is imported for this
        return encode(value.tolist(), path=path)
    raise UsageError(
        f"{path}: cannot record a {type(value).__name__}. Give numbers, text, true, false, None, "
        "or lists, mappings, arrays and tensors of them."
    )


def decode(value: Any) -> Any:
    """The inverse of `encode`, except that tuples and arrays come back as lists.

    >>> decode({"loss": "-Infinity", "note": "x"})
    {'loss': -inf, 'note': 'x'}
    """
    if isinstance(value, str):
        return SPELLED.get(value, value)
    if isinstance(value, dict):
        return {key: decode(item) for key, item in value.items()}
    return [decode(item) for item in value] if isinstance(value, list) else value


def loads(text: bytes) -> Any:
    """`json.loads` of UTF-8; half of a surrogate pair is a `ValueError` too, because no file or terminal takes it.

    >>> loads(b'"\\\\ud83d\\\\ude00"') == "\N{GRINNING FACE}"
    True
    >>> loads(b'"\\\\ud83d"')
    Traceback (most recent call last):
    UnicodeEncodeError: ...
    """
    value = json.loads(text.decode())  # given bytes, `json.loads` lets encoded halves pass
    if b"\\u" in text:
        json.dumps(value, ensure_ascii=False).encode()
    return value


def parse(text: bytes, *, source: str) -> Any:
    """Parse JSON text, with NaN and the infinities as numbers; raise a `DataError` for anything else.

    >>> parse(b'{"loss": "NaN"}', source="done")
    {'loss': nan}
    >>> parse(b"[" * 100_000, source="runs/3f2a/done")
    Traceback (most recent call last):
    evenly.errors.DataError: runs/3f2a/done is not JSON that evenly wrote: nested too deeply. ...
    """
    try:
        return decode(loads(text))
    except RecursionError:
        reason = "nested too deeply"
    except ValueError as error:  # not JSON, not UTF-8, or a number of thousands of digits
        reason = str(error)
    raise DataError(
        f"{source} is not JSON that evenly wrote: {reason}. Something else changed it: restore "
        "it, or remove the folder and repeat the command that made it."
    )


def read(path: Path) -> Any:
    """The content of the JSON file `path`; FileNotFoundError if there is none."""
    if not os.path.lexists(path):
        raise FileNotFoundError(path)
    with open_regular(path) as file:  # opening a named pipe would wait for a writer
        return parse(file.read(), source=str(path))


def text(value: Any, *, path: str) -> str:
    """`value` as indented JSON, readable by people."""
    return json.dumps(encode(value, path=path), indent=2, ensure_ascii=False) + "\n"


def line(values: Mapping[str, Any], *, path: str) -> bytes:
    """One line of JSONL.

    >>> line({"epoch": 1, "loss": float("nan")}, path="metrics")
    b'{"epoch": 1, "loss": "NaN"}\\n'
    """
    return (json.dumps(encode(values, path=path), ensure_ascii=False, allow_nan=False) + "\n").encode()


def _name(key: Any, path: str) -> str:
    if not isinstance(key, str):
        raise UsageError(f"{path}: names are text, not {key!r}. Write str({key!r}).")
    return key
