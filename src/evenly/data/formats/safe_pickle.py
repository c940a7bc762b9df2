"""Read pickles of arrays and plain values without running any code they name."""

import io
import pickle
import pickletools
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, cast

import numpy as np

from evenly.errors import DataError, EvenlyError
from evenly.files.regular import open_regular


def load(path: Path) -> Any:
    """The value in the pickle at `path`: arrays, lists, dicts, tuples, numbers and strings, and nothing else.

    A pickle is a program. Here the only callables it can reach are our own stand-ins for those that rebuild an
    array, so that opening a stranger's file runs none of the stranger's code. Strings of Python 2 come as bytes.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "batch"
    >>> _ = path.write_bytes(pickle.dumps({b"data": np.arange(3)}))
    >>> load(path)[b"data"].tolist()
    [0, 1, 2]
    >>> _ = path.write_bytes(pickle.dumps(eval))
    >>> load(path)
    Traceback (most recent call last):
    evenly.errors.DataError: ...batch: this pickle tries to import builtins.eval, which no array needs. ...
    """
    try:
        with open_regular(path) as file:
            _check_operations(file, path.stat().st_size)
            return _ArraysOnly(file, path).load()
    except EvenlyError:
        raise
    except Exception as error:  # damaged bytes can raise anything inside the unpickler, even MemoryError
        raise DataError(
            f"{path}: not a readable pickle ({type(error).__name__}: {error}); {path.stat().st_size:,} bytes were "
            "found. It is truncated or damaged: fetch it again."
        ) from error


def _check_operations(file: io.BufferedReader, size: int) -> None:
    """Refuse a pickle that requests more memory than its length can justify: a distant memo slot, a long frame."""
    within = cast(IO[bytes], _Within(file, size))  # genops needs no more of a file
    for num, (operation, argument, _) in enumerate(pickletools.genops(within)):
        if "PUT" in operation.name and argument is not None and argument > num:
            raise ValueError(f"it asks for a table of {argument:,} places")
        if operation.name == "FRAME" and argument is not None and argument > size:
            raise ValueError(f"it promises {argument:,} bytes")
    file.seek(0)


class _Within:
    """A file whose reads are limited to its size: a file's `read` allocates as many bytes as requested."""

    def __init__(self, file: io.BufferedReader, size: int) -> None:
        self._file, self._size = file, size
        self.readline, self.tell = file.readline, file.tell

    def read(self, num: int) -> bytes:
        return self._file.read(min(num, self._size - self._file.tell()))


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


class _Kind:
    """Stands for numpy.dtype: a kind of number and its byte order, and none of the flags a forged state could set."""

    __slots__ = ("dtype",)

    def __init__(self, code: bytes | str, *_flags: object) -> None:
        self.dtype = np.dtype(_text(code))
        if self.dtype.kind not in "biuf":
            raise ValueError(f"an array of {self.dtype}, not of numbers")

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _version, order, *_ = state
        self.dtype = self.dtype.newbyteorder(_text(order))


class _Array(np.ndarray[Any, np.dtype[Any]]):
    """Stands for numpy.ndarray: it takes its shape, kind and bytes only after they have been looked at."""

    def __setstate__(self, state: Any, /) -> None:
        _version, shape, kind, fortran, content = state
        if not isinstance(kind, _Kind) or not isinstance(content, bytes):
            raise ValueError("an array without a kind of number or without bytes")
        super().__setstate__((1, tuple(map(int, shape)), kind.dtype, bool(fortran), content))  # type: ignore[arg-type]  # the stub wants numpy.bool


def _reconstruct(kind: type, *_: object) -> _Array:
    if kind is not _Array:
        raise ValueError("an array of an unknown kind")
    return _Array((0,), np.uint8)  # always empty at first; its state follows


def _frombuffer(content: bytes | bytearray, kind: _Kind, shape: tuple[int, ...], order: str) -> np.ndarray[Any, Any]:
    # A copy, since the pickle's own bytes cannot be written to.
    return np.frombuffer(content, dtype=kind.dtype).reshape(shape, order="F" if order == "F" else "C").copy()


def _text(word: bytes | str) -> Any:
    return word.decode("ascii") if isinstance(word, bytes) else word


def _encode(text: str, encoding: str = "latin1") -> bytes:
    # Python 3 writes bytes into protocol 2 as text; any other codec would be a way to reach more code.
    if encoding not in ("latin1", b"latin1"):
        raise ValueError(f"text in an unexpected encoding {encoding!r}")
    return text.encode("latin1")


_ADMITTED: dict[tuple[str, str], Callable[..., Any]] = {
    ("numpy", "ndarray"): _Array,
    ("numpy", "dtype"): _Kind,
    ("numpy.core.multiarray", "_reconstruct"): _reconstruct,
    ("numpy._core.multiarray", "_reconstruct"): _reconstruct,
    ("numpy.core.numeric", "_frombuffer"): _frombuffer,
    ("numpy._core.numeric", "_frombuffer"): _frombuffer,
    ("_codecs", "encode"): _encode,
}
