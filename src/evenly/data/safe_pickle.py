"""Pickles that may hold arrays and plain values, read without running anything they ask for."""

import io
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from evenly.errors import DataError


def load(path: Path) -> Any:
    """The value in the pickle at `path`: arrays, lists, dicts, tuples, numbers and strings, and nothing else.

    A pickle is a program. Here the only callables it can reach are the three that rebuild a numpy array, so
    that opening a stranger's file runs none of the stranger's code. Strings of Python 2 come as bytes.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "batch"
    >>> _ = path.write_bytes(pickle.dumps({b"data": np.arange(3)}))
    >>> load(path)[b"data"].tolist()
    [0, 1, 2]
    >>> _ = path.write_bytes(pickle.dumps(print))
    >>> load(path)
    Traceback (most recent call last):
    evenly.errors.DataError: ...batch: this pickle tries to import builtins.print, which no array needs. ...
    """
    try:
        with path.open("rb") as file:
            return _ArraysOnly(file, path).load()
    except DataError:
        raise
    except MemoryError:
        raise
    except Exception as error:  # the bytes choose what goes wrong inside the unpickler
        raise DataError(
            f"{path}: not a readable pickle ({type(error).__name__}: {error}); {path.stat().st_size:,} bytes were "
            "found. It is truncated or damaged: fetch it again."
        ) from error


class _ArraysOnly(pickle.Unpickler):
    def __init__(self, file: io.BufferedReader, path: Path) -> None:
        super().__init__(file, encoding="bytes")
        self.path = path

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in _ADMITTED:
            return _ADMITTED[module, name]
        raise DataError(
            f"{self.path}: this pickle tries to import {module}.{name}, which no array needs. It was not executed. "
            "Fetch the file from its publisher, and do not open this one elsewhere."
        )

    def persistent_load(self, identity: Any) -> Any:
        raise DataError(f"{self.path}: this pickle refers to an outside object {identity!r}; it is not a data file.")


class _Array(np.ndarray[Any, np.dtype[Any]]):
    """Stands for numpy.ndarray inside a pickle: it cannot be called to make one, only be named to `_reconstruct`."""


def _reconstruct(kind: type, shape: tuple[int, ...], code: bytes | str) -> np.ndarray[Any, Any]:
    if kind is not _Array:
        raise ValueError("an array of an unknown kind")
    return np.ndarray((0,), np.uint8)  # numpy always begins with an empty array; its state follows


def _dtype(code: bytes | str, align: int = 0, copy: int = 1) -> np.dtype[Any]:
    # Old pickles write 0 and 1 for the flags, which numpy 2.4 warns about.
    kind = np.dtype(code.decode("ascii") if isinstance(code, bytes) else code, align=bool(align), copy=bool(copy))
    if kind.hasobject or kind.kind not in "biuf":
        raise ValueError(f"an array of {kind}, not of numbers")
    return kind


def _encode(text: str, encoding: str = "latin1") -> bytes:
    # Python 3 writes bytes into protocol 2 as text; any other codec would be a way to reach more code.
    if encoding not in ("latin1", b"latin1"):
        raise ValueError(f"text in an unexpected encoding {encoding!r}")
    return text.encode("latin1")


_ADMITTED: dict[tuple[str, str], Callable[..., Any]] = {
    ("numpy", "ndarray"): _Array,
    ("numpy", "dtype"): _dtype,
    ("numpy.core.multiarray", "_reconstruct"): _reconstruct,
    ("numpy._core.multiarray", "_reconstruct"): _reconstruct,
    ("_codecs", "encode"): _encode,
}
