"""Sealed safetensors files: the header names the run that wrote the file and a checksum of its bytes.

Both stand in the file's own header, which plain safetensors readers pass over. The checksum is over the whole file,
header included: words of 64 bits are summed in blocks, and the sums hashed. It reads as fast as memory does, several
times as fast as CRC-32, and finds every changed bit, run of bits within a word, or byte. Of several changes, only those
pass that keep the sum of their block of 32 KB, such as an exchange of whole words: it guards against accidents, not
against forgery.
"""

import hashlib
import json
import mmap
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO, Any

from evenly.errors import DataError
from evenly.files.regular import open_regular

RUN, CHECKSUM = "evenly_run", "evenly_checksum"
_BLOCK = 4096  # words
_DIGITS = 32
_OPEN = "0" * _DIGITS  # what stands in the header while the checksum is computed
_LARGEST_HEADER = 10_000_000  # of tens of thousands of tensors; a stranger's header must not fill the memory


def metadata(run: str, **more: str) -> dict[str, str]:
    """What goes into the header of a file that is to be sealed.

    >>> sorted(metadata("3f2a", format="pt"))
    ['evenly_checksum', 'evenly_run', 'format']
    """
    return {**more, RUN: run, CHECKSUM: _OPEN}


def write(
    file: IO[bytes], tensors: Mapping[str, tuple[str, list[int], int]], parts: Iterable[Any], **said: str
) -> None:
    """Write a sealed file: `tensors` has the type, shape and number of bytes of each, `parts` has their bytes in order.

    The parts are taken one by one, so that they need not be in memory together. Equal runs write equal bytes.
    `file` can be read too, for the checksum; `said` is what `metadata` returns.
    """
    header = _header(tensors, said)
    where = _place(header, _OPEN)
    file.write(header)
    for part in parts:
        file.write(part)
    file.flush()
    with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        checksum = _checksum(content, where)
    file.seek(where)
    file.write(checksum.encode())
    file.seek(0, os.SEEK_END)


def check(path: Path, *, run: str | None, remedy: str) -> dict[str, str]:
    """The metadata of the file, after checking its checksum and, if `run` is given, that this run wrote it.

    A file of evenly 0.1 or of another program has no seal: it is refused where `run` is given.
    """
    try:
        with open_regular(path) as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            entries = _metadata(path, content, remedy)
            if CHECKSUM in entries and _checksum(content, _place(content, entries[CHECKSUM])) != entries[CHECKSUM]:
                raise _damage_error(path, "its checksum does not match its content", remedy)
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}.") from error
    except ValueError as error:
        if isinstance(error, DataError):
            raise
        raise _damage_error(path, str(error), remedy) from error
    if run is not None and CHECKSUM not in entries:
        raise _damage_error(path, "it carries no checksum of evenly's", remedy)
    if run is not None and entries.get(RUN) != run:
        raise DataError(f"{path} was written by run {entries.get(RUN)}, not by run {run}. {remedy}")
    return entries


def _header(tensors: Mapping[str, tuple[str, list[int], int]], said: Mapping[str, str]) -> bytes:
    """The length and the text that begin a safetensors file."""
    header: dict[str, Any] = {"__metadata__": dict(sorted(said.items()))}
    end = 0
    for name, (kind, shape, size) in tensors.items():
        begin, end = end, end + size
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [begin, end]}
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # tensors begin at multiples of eight
    return len(text).to_bytes(8, "little") + text


def _damage_error(path: Path, how: str, remedy: str) -> DataError:
    return DataError(f"{path} is damaged or truncated ({how}). {remedy}")


def _metadata(path: Path, content: mmap.mmap, remedy: str) -> dict[str, str]:
    length = int.from_bytes(content[:8], "little")
    if not 2 <= length <= min(len(content) - 8, _LARGEST_HEADER):
        raise _damage_error(path, "it has no header", remedy)
    try:
        header: Any = json.loads(content[8 : 8 + length])
    except RecursionError:
        raise _damage_error(path, "its header is nested too deeply", remedy) from None
    metadata = header.get("__metadata__", {}) if isinstance(header, dict) else None
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise _damage_error(path, "its header is not that of a safetensors file", remedy)
    return metadata


def _place(content: bytes | mmap.mmap, checksum: str) -> int:
    """Where in the file the digits of the checksum stand."""
    length = int.from_bytes(content[:8], "little")
    key = f'"{CHECKSUM}":"{checksum}"'.encode()
    where = content.find(key, 8, 8 + length)
    if where < 0 or len(checksum) != _DIGITS:
        raise ValueError("its header has no checksum where it should be")
    return where + len(key) - _DIGITS - 1


def _checksum(content: bytes | mmap.mmap, where: int) -> str:
    """The checksum of the file, with zeros where the checksum itself stands."""
    import numpy as np

    view = np.frombuffer(content, dtype=np.uint8)
    size = len(view)
    # The header, and what fills up to whole blocks after it, is small: it is hashed as it is.
    header = 8 + int.from_bytes(content[:8], "little")
    start = min(-(-header // 8) * 8, size)
    blocks = (size - start) // (8 * _BLOCK)
    digest = hashlib.blake2b(digest_size=_DIGITS // 2)
    digest.update(view[:where].data)
    digest.update(_OPEN.encode())
    digest.update(view[where + _DIGITS : start].data)
    if blocks:
        words = view[start : start + blocks * 8 * _BLOCK].view(np.uint64).reshape(blocks, _BLOCK)
        digest.update(words.sum(axis=1, dtype=np.uint64).tobytes())
    digest.update(view[start + blocks * 8 * _BLOCK :].data)
    result = digest.hexdigest()
    del view  # an mmap does not close while something looks at it
    return result
