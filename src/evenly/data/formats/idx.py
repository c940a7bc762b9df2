"""The idx format of MNIST and its family: a big-endian header, then the bytes of one array."""

import contextlib
import gzip
import math
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import numpy as np
import torch
from numpy.typing import NDArray

from evenly.data.formats.locate import locate
from evenly.data.labelled import Labelled
from evenly.data.splits import Splits
from evenly.errors import DataError
from evenly.files.numpy_files import ALLOWANCE, LARGEST_GROWTH
from evenly.files.regular import open_regular

_CLOTHES = ("T-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot")


def mnist(*, root: Path) -> Splits:
    """MNIST (LeCun et al., 1998) from `MNIST/raw`: 60,000 + 10,000 images of 1×28×28, gzipped or not.

    >>> mnist(root=Path("nowhere"))
    Traceback (most recent call last):
    evenly.data.formats.locate.Missing: MNIST was not found. Looked for nowhere/MNIST/raw, ...
    """
    folder = locate("MNIST", root, ["MNIST/raw", "MNIST", "mnist"])
    return _family("mnist", folder, tuple(map(str, range(10))))


def fashion_mnist(*, root: Path) -> Splits:
    """Fashion-MNIST (Xiao et al., 2017) from `FashionMNIST/raw`: as `mnist`, with ten kinds of clothing.

    >>> fashion_mnist(root=Path("nowhere"))
    Traceback (most recent call last):
    evenly.data.formats.locate.Missing: Fashion-MNIST was not found. Looked for nowhere/FashionMNIST/raw, ...
    """
    folder = locate("Fashion-MNIST", root, ["FashionMNIST/raw", "FashionMNIST", "fashion-mnist"])
    return _family("fashion-mnist", folder, _CLOTHES)


def read_idx(path: Path) -> NDArray[np.uint8]:
    """The array of unsigned bytes in an idx file, read straight into its final place.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "labels-idx1-ubyte"
    >>> _ = path.write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, 3, 7, 8, 9]))
    >>> read_idx(path).tolist()
    [7, 8, 9]
    """
    with _open(path) as file:
        magic = file.read(4)
        if len(magic) < 4 or magic[:3] != b"\0\0\x08" or magic[3] == 0:
            raise DataError(
                f"{path}: not an idx file of unsigned bytes: it begins with {magic.hex(' ') or 'nothing'}, "
                "expected 00 00 08 and the number of dimensions. Fetch the file again."
            )
        header = file.read(4 * magic[3])
        if len(header) < 4 * magic[3]:
            raise _wrong_size(path, expected=4 + 4 * magic[3], found=4 + len(header))
        shape = struct.unpack(f">{magic[3]}I", header)
        start, expected = 4 + len(header), 4 + len(header) + math.prod(shape)
        _check_plausible(path, expected)
        array = np.empty(shape, dtype=np.uint8)
        size = start + _fill(file, array)
        if size < expected:
            raise _wrong_size(path, expected=expected, found=size)
        if surplus := file.read(1 << 20):
            raise _wrong_size(path, expected=expected, found=size + len(surplus))
    return array


def _family(name: str, folder: Path, classes: tuple[str, ...]) -> Splits:
    return Splits(name, {"train": _part(name, folder, "train", classes), "test": _part(name, folder, "t10k", classes)})


def _part(name: str, folder: Path, prefix: str, classes: tuple[str, ...]) -> Labelled:
    files = {what: _either_name(name, folder, f"{prefix}-{what}") for what in ("images-idx3", "labels-idx1")}
    images, labels = (read_idx(path) for path in files.values())
    if images.ndim != 3 or labels.ndim != 1 or len(images) != len(labels):
        raise DataError(
            f"{files['images-idx3']} and {files['labels-idx1'].name} do not belong together: images of shape "
            f"{images.shape}, labels of shape {labels.shape}; expected (N, height, width) and (N,)."
        )
    if len(labels) and labels.max() >= len(classes):
        first = int((labels >= len(classes)).argmax())
        raise DataError(
            f"{files['labels-idx1']}: label {labels[first]} of example {first} is out of range, "
            f"{name} has classes 0 to {len(classes) - 1}. Fetch the file again."
        )
    return Labelled(torch.from_numpy(images[:, None]), torch.from_numpy(labels.astype(np.int64)), classes)


def _either_name(name: str, folder: Path, stem: str) -> Path:
    # Some re-publications write train-images.idx3-ubyte for train-images-idx3-ubyte.
    stems = (f"{stem}-ubyte", f"{stem}-ubyte".replace("-idx", ".idx"))
    return locate(f"{stems[0]}, a file of {name},", folder, [s + suffix for s in stems for suffix in ("", ".gz")])


@contextlib.contextmanager
def _open(path: Path) -> Iterator[IO[bytes]]:
    """The file's bytes, unpacked if its name ends in .gz; damage becomes a `DataError`."""
    if path.suffix != ".gz":
        with open_regular(path) as plain:
            yield plain  # large reads go past its buffer, straight into the array
        return
    try:
        with open_regular(path) as packed, gzip.open(packed, "rb") as unpacked:
            yield unpacked  # type: ignore[misc]  # GzipFile reads bytes as IO[bytes] does
    except gzip.BadGzipFile as error:
        raise DataError(
            f"{path}: named .gz but damaged or not gzip ({error}). Fetch it again, or drop the .gz if it is unpacked."
        ) from error
    except (EOFError, zlib.error) as error:
        raise DataError(
            f"{path}: truncated or damaged gzip file, {path.stat().st_size:,} bytes were found ({error}). "
            "Fetch it again."
        ) from error


def _fill(file: IO[bytes], array: NDArray[np.uint8]) -> int:
    """Read into `array` until it is full or the file ends; how many bytes came."""
    rest = array.reshape(-1).data
    total = 0
    while len(rest) and (got := file.readinto(rest)):  # type: ignore[attr-defined]  # IO has no readinto, files do
        rest, total = rest[got:], total + got
    return total


def _check_plausible(path: Path, expected: int) -> None:
    """Refuse a header that promises more than the file can hold, before memory is reserved for it."""
    size = path.stat().st_size
    if expected > (size * LARGEST_GROWTH + ALLOWANCE if path.suffix == ".gz" else size):
        raise _wrong_size(path, expected=expected, found=size)


def _wrong_size(path: Path, *, expected: int, found: int) -> DataError:
    kind = "truncated" if found < expected else "too long"
    inside = " when unpacked" if path.suffix == ".gz" else ""
    return DataError(
        f"{path}: {kind}: its header promises {expected:,} bytes{inside}, {found:,} were found. Fetch it again."
    )
