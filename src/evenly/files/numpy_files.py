"""Arrays in `.npy` and `.npz` files, read without pickle and without trusting their headers."""

import contextlib
import io
import math
import os
import warnings
import zipfile
from collections.abc import Iterator
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from evenly.errors import DataError
from evenly.files.regular import open_regular

LARGEST_GROWTH = 100  # as for archives: a file that grows more than this when unpacked is no data set
ALLOWANCE = 200 << 20  # bytes that may be allocated before a file has proved to be complete
_CHUNK = 1 << 20
_LONGEST_HEADER = 1 << 13  # an array of numbers has one of 128 bytes
_COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # others may need gigabytes to unpack a byte
_LARGEST_CHARACTER = 0x10FFFF
_SURROGATES = (0xD800, 0xDFFF)

Array = NDArray[Any]


def read_npy(path: str | os.PathLike[str], *, advice: str = "Write the file again.") -> Array:
    """The array of numbers or text in an `.npy` file; `advice` ends the sentence about a file that holds none.

    >>> import tempfile
    >>> from pathlib import Path
    >>> path = Path(tempfile.mkdtemp()) / "a.npy"
    >>> np.save(path, np.arange(3))
    >>> read_npy(path).tolist()
    [0, 1, 2]
    >>> _ = path.write_bytes(path.read_bytes()[:-8])
    >>> read_npy(path)
    Traceback (most recent call last):
    evenly.errors.DataError: ...a.npy: cannot be read: its header promises 24 bytes, there are 16. Write the file again.
    """
    with open_regular(path) as file, _damage(path, "", advice):
        return _array(file, os.fstat(file.fileno()).st_size)


def read_npz(path: str | os.PathLike[str], *, advice: str = "Write it with numpy.savez(path, …).") -> dict[str, Array]:
    """Every array in an `.npz` file by its name; a `DataError` names the file and the array at fault.

    Nothing is unpickled. A file that would grow more than a hundredfold is refused before any of it is unpacked, and
    one that would take more memory than twice its size and 200 MB is read through once before memory is reserved.

    >>> import tempfile
    >>> from pathlib import Path
    >>> path = Path(tempfile.mkdtemp()) / "a.npz"
    >>> np.savez(path, x=np.zeros(2), names=np.array(["cat", "dog"]))
    >>> {name: array.tolist() for name, array in read_npz(path).items()}
    {'x': [0.0, 0.0], 'names': ['cat', 'dog']}
    """
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        with _archive(path, file, size, advice) as archive:
            members = {_name(path, info, advice): info for info in archive.infolist()}
            if len(members) < len(archive.infolist()):
                raise DataError(f"{path}: two arrays have the same name. {advice}")
            claimed = sum(info.file_size for info in members.values())
            if claimed > LARGEST_GROWTH * size + ALLOWANCE:
                raise DataError(
                    f"{path}: its {size:,} bytes would unpack to {claimed:,}, far more than arrays do; it was "
                    "not unpacked. Write it without compression: numpy.savez."
                )
            arrays = {}
            for name, info in members.items():
                with _damage(path, f"{name!r} ", advice):
                    if claimed > 2 * size + ALLOWANCE:
                        _read_through(archive, info)
                    with archive.open(info) as member:
                        arrays[name] = _array(member, info.file_size)
            return arrays


@contextlib.contextmanager
def _archive(path: str | os.PathLike[str], file: IO[bytes], size: int, advice: str) -> Iterator[zipfile.ZipFile]:
    try:
        archive = zipfile.ZipFile(file)
    except MemoryError:
        raise
    except Exception as error:  # damaged bytes can raise anything inside zipfile: struct.error, ValueError, …
        raise DataError(
            f"{path}: is not an .npz file, or is truncated ({size:,} bytes were found: {_reason(error)}). {advice}"
        ) from error
    with archive:
        yield archive


def _name(path: str | os.PathLike[str], info: zipfile.ZipInfo, advice: str) -> str:
    fault = ""
    if not info.filename.endswith(".npy"):
        fault = "is not an array"
    elif info.flag_bits & 1:
        fault = "is encrypted"
    elif info.compress_type not in _COMPRESSIONS:
        fault = "is compressed in a way that numpy does not use"
    if fault:
        raise DataError(f"{path}: {info.filename!r} {fault}. {advice}")
    return info.filename.removesuffix(".npy")


def _read_through(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> None:
    """Unpack a member without storing it, to check its length and checksum before memory is allocated."""
    with archive.open(info) as member:
        while member.read(_CHUNK):
            pass


def _array(file: IO[bytes], size: int) -> Array:
    """The array in the `size` bytes of `file`, all of which it must use."""
    shape, fortran, dtype = _header(file)
    if dtype.hasobject:
        raise DataError(
            "is an array of Python objects, which only a pickle can hold; it was not opened. Save numbers or text: "
            "give the array a dtype, such as float32."
        )
    num = math.prod(shape)
    if dtype.kind not in "biufcSU" or (dtype.itemsize == 0 and num > 0):
        raise ValueError(f"it holds {dtype}, not numbers or text")
    expected, there = num * dtype.itemsize, size - file.tell()
    if expected != there:
        raise ValueError(f"its header promises {expected:,} bytes, there are {there:,}")
    array = np.empty(shape, dtype, order="F" if fortran else "C")
    _fill(file, array.reshape(-1, order="A").view(np.uint8) if expected else np.empty(0, np.uint8))
    _check_values(array)
    # torch takes numbers in this machine's byte order alone.
    return array if dtype.isnative else array.astype(dtype.newbyteorder("="))


def _header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    version = np.lib.format.read_magic(file)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"version {version[0]}.{version[1]} of the format is not one of plain arrays")
    width = 2 if version == (1, 0) else 4
    length = file.read(width)
    if int.from_bytes(length, "little") > _LONGEST_HEADER:
        raise ValueError("its header is too long for an array of numbers")
    text = io.BytesIO(length + file.read(int.from_bytes(length, "little")))
    read = np.lib.format.read_array_header_1_0 if width == 2 else np.lib.format.read_array_header_2_0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # numpy remarks on headers that Python 2 wrote
        shape, fortran, dtype = read(text)
    if any(isinstance(length, bool) or length < 0 for length in shape):
        raise ValueError(f"its header promises the shape {shape}")
    return shape, bool(fortran), dtype


def _fill(file: IO[bytes], target: NDArray[np.uint8]) -> None:
    place = 0
    while chunk := file.read(_CHUNK):
        if place + len(chunk) > len(target):
            raise ValueError("it holds more than its header promises")
        target[place : place + len(chunk)] = np.frombuffer(chunk, np.uint8)
        place += len(chunk)
    if place < len(target):
        raise ValueError(f"it ends after {place:,} of {len(target):,} bytes")


def _check_values(array: Array) -> None:
    """Refuse bytes that are no value of their type: what is computed from them is undefined."""
    if not array.size:
        return
    flat = array.reshape(-1, order="A")
    if array.dtype.kind == "b" and flat.view(np.uint8).max() > 1:
        raise ValueError("a truth value in it is neither 0 nor 1")
    if array.dtype.kind == "U":
        codes = flat.view(np.dtype(np.uint32).newbyteorder(array.dtype.byteorder))
        low, high = _SURROGATES
        if codes.max() > _LARGEST_CHARACTER or bool(((codes >= low) & (codes <= high)).any()):
            raise ValueError("text in it has a character that does not exist")


@contextlib.contextmanager
def _damage(path: str | os.PathLike[str], member: str, advice: str) -> Iterator[None]:
    try:
        yield
    except DataError as error:
        raise DataError(f"{path}: {member}{error} {advice}") from error
    except MemoryError as error:
        raise DataError(f"{path}: {member}does not fit in memory. Give a part of it.") from error
    except Exception as error:  # the bytes choose what goes wrong: zlib.error, BadZipFile, SyntaxError, EOFError, …
        raise DataError(f"{path}: {member}cannot be read: {_reason(error)}. {advice}") from error


def _reason(error: Exception) -> str:
    """What an error says, on one line and not at length."""
    line = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
    return line if len(line) <= 200 else f"{line[:200]}…"
