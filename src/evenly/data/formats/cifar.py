"""CIFAR-10 and CIFAR-100 in both published forms: binary records, and pickles read without running them.

A binary record is one or two label bytes and 3,072 pixels, red, green and blue planes of 32×32.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from evenly.data.formats import safe_pickle
from evenly.data.formats.locate import locate
from evenly.data.labelled import Labelled
from evenly.data.splits import Splits
from evenly.errors import DataError
from evenly.files.regular import open_regular, read_text, size_of

_PIXELS = 3 * 32 * 32
_RECORDS_AT_ONCE = 128  # 400 kB: stays in the processor's cache between reading and copying out
_TEN = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")

Pixels = NDArray[np.uint8]
Labels = NDArray[np.int64]


def cifar10(*, root: Path) -> Splits:
    """CIFAR-10 (Krizhevsky, 2009): 50,000 + 10,000 images of 3×32×32, binary or Python version.

    >>> cifar10(root=Path("nowhere"))
    Traceback (most recent call last):
    evenly.data.formats.locate.Missing: CIFAR-10 was not found. Looked for nowhere/cifar-10-batches-bin or nowhere/...
    """
    folder = locate("CIFAR-10", root, ["cifar-10-batches-bin", "cifar-10-batches-py"])
    files = {"train": [f"data_batch_{number}" for number in range(1, 6)], "test": ["test_batch"]}
    parts = {}
    for split, names in files.items():
        if folder.name.endswith("-bin"):
            pixels, labels = read_binary([_file(folder, f"{name}.bin") for name in names], num_labels=1)
        else:
            pixels, labels = read_pickles([_file(folder, name) for name in names], keys=["labels"])
        _check_range(folder, split, labels[:, 0], len(_TEN))
        parts[split] = Labelled(torch.from_numpy(pixels), torch.from_numpy(labels[:, 0].copy()), _TEN)
    return Splits("cifar10", parts)


def cifar100(*, root: Path) -> Splits:
    """CIFAR-100 (Krizhevsky, 2009): 100 fine classes; the 20 coarse ones are the attribute `superclass`.

    >>> cifar100(root=Path("nowhere"))
    Traceback (most recent call last):
    evenly.data.formats.locate.Missing: CIFAR-100 was not found. Looked for nowhere/cifar-100-binary or nowhere/...
    """
    folder = locate("CIFAR-100", root, ["cifar-100-binary", "cifar-100-python"])
    binary = folder.name.endswith("-binary")
    coarse, fine = _names_binary(folder) if binary else _names_python(folder)
    parts = {}
    for split in ("train", "test"):
        if binary:
            pixels, labels = read_binary([_file(folder, f"{split}.bin")], num_labels=2)
        else:
            pixels, labels = read_pickles([_file(folder, split)], keys=["coarse_labels", "fine_labels"])
        _check_range(folder, split, labels[:, 0], len(coarse))
        _check_range(folder, split, labels[:, 1], len(fine))
        parts[split] = Labelled(
            torch.from_numpy(pixels),
            torch.from_numpy(labels[:, 1].copy()),
            fine,
            attributes={"superclass": torch.from_numpy(labels[:, 0].copy())},
            values={"superclass": coarse},
        )
    return Splits("cifar100", parts)


def read_binary(paths: Sequence[Path], *, num_labels: int) -> tuple[Pixels, Labels]:
    """The images N×3×32×32 and labels N×`num_labels` of CIFAR's binary files, in order.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "batch.bin"
    >>> _ = path.write_bytes(bytes([7]) + bytes(range(256)) * 12)
    >>> pixels, labels = read_binary([path], num_labels=1)
    >>> pixels.shape, pixels[0, 0, 1, :3].tolist(), labels.tolist()
    ((1, 3, 32, 32), [32, 33, 34], [[7]])
    """
    record = num_labels + _PIXELS
    counts = [_num_records(path, record) for path in paths]
    pixels, labels = np.empty((sum(counts), _PIXELS), np.uint8), np.empty((sum(counts), num_labels), np.int64)
    buffer = np.empty((_RECORDS_AT_ONCE, record), np.uint8)
    start = 0
    for path, count in zip(paths, counts, strict=True):
        with open_regular(path) as file:
            end = start + count
            while start < end:
                num = min(_RECORDS_AT_ONCE, end - start)
                _read_whole(path, file.raw, buffer[:num])
                labels[start : start + num] = buffer[:num, :num_labels]
                pixels[start : start + num] = buffer[:num, num_labels:]
                start += num
    return pixels.reshape(-1, 3, 32, 32), labels


def read_pickles(paths: Sequence[Path], *, keys: Sequence[str]) -> tuple[Pixels, Labels]:
    """The images N×3×32×32 and labels N×len(keys) of CIFAR's Python version, in order, nothing executed.

    >>> import tempfile, pickle
    >>> path = Path(tempfile.mkdtemp()) / "batch"
    >>> _ = path.write_bytes(pickle.dumps({b"data": np.ones((2, 3072), np.uint8), b"labels": [3, 4]}, protocol=2))
    >>> pixels, labels = read_pickles([path], keys=["labels"])
    >>> pixels.shape, labels.tolist()
    ((2, 3, 32, 32), [[3], [4]])
    """
    batches: list[Pixels] = []
    columns: list[Labels] = []
    for path in paths:
        content = _dictionary(path)
        data = _entry(path, content, "data")
        if not isinstance(data, np.ndarray) or data.dtype != np.uint8 or data.ndim != 2 or data.shape[1] != _PIXELS:
            found = f"{data.dtype} of shape {data.shape}" if isinstance(data, np.ndarray) else type(data).__name__
            raise DataError(f"{path}: 'data' is {found}, expected uint8 of shape (N, {_PIXELS}). Fetch it again.")
        if not len(data):
            raise DataError(f"{path}: holds no images. Fetch it again.")
        batches.append(data.view(np.ndarray))
        columns.append(np.stack([_label_list(path, content, key, len(data)) for key in keys], axis=1))
    pixels = batches[0] if len(batches) == 1 else np.concatenate(batches)
    return pixels.reshape(-1, 3, 32, 32), np.concatenate(columns)


def _num_records(path: Path, record: int) -> int:
    size = size_of(path)
    if size == 0 or size % record:
        whole = (size // record + 1) * record
        raise DataError(
            f"{path}: truncated: {size:,} bytes were found, expected a whole number of records of {record:,} bytes "
            f"({whole:,} would be the next). Fetch it again."
        )
    return size // record


def _read_whole(path: Path, file: Any, target: NDArray[np.uint8]) -> None:
    view = target.reshape(-1).data
    while len(view):
        got = file.readinto(view)
        if not got:
            raise DataError(f"{path}: ended while it was being read; was it replaced meanwhile? Read it again.")
        view = view[got:]


def _label_list(path: Path, content: dict[Any, Any], key: str, num: int) -> Labels:
    labels = _entry(path, content, key)
    if not isinstance(labels, list) or not all(isinstance(label, int) for label in labels) or len(labels) != num:
        raise DataError(f"{path}: {key!r} is not a list of {num:,} integers, one per image. Fetch it again.")
    try:
        return np.array(labels, dtype=np.int64)
    except OverflowError as error:
        raise DataError(f"{path}: {key!r} holds a number that is not a class. Fetch it again.") from error


def _dictionary(path: Path) -> dict[Any, Any]:
    content = safe_pickle.load(path)
    if not isinstance(content, dict):
        raise DataError(f"{path}: holds a {type(content).__name__}, expected CIFAR's dictionary. Fetch it again.")
    return content


def _entry(path: Path, content: dict[Any, Any], key: str) -> Any:
    """The value of `key`: Python 2 wrote bytes, re-saved files have text."""
    for form in (key.encode(), key):
        if form in content:
            return content[form]
    keys = ", ".join(str(k.decode("latin1") if isinstance(k, bytes) else k) for k in content) or "none"
    raise DataError(f"{path}: has no entry {key!r}; its entries: {keys}.")


def _names_binary(folder: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
    coarse, fine = (tuple(read_text(_file(folder, f"{kind}_label_names.txt")).split()) for kind in ("coarse", "fine"))
    return coarse, fine


def _names_python(folder: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
    path = _file(folder, "meta")
    meta = _dictionary(path)
    coarse, fine = (_names(path, meta, f"{kind}_label_names") for kind in ("coarse", "fine"))
    return coarse, fine


def _names(path: Path, meta: dict[Any, Any], key: str) -> tuple[str, ...]:
    names = _entry(path, meta, key)
    if not isinstance(names, list) or not all(isinstance(name, bytes | str) for name in names):
        raise DataError(f"{path}: {key!r} is not a list of names. Fetch it again.")
    return tuple(name.decode("latin1") if isinstance(name, bytes) else name for name in names)


def _file(folder: Path, name: str) -> Path:
    return locate(f"{name}, a file of {folder.name},", folder, [name])


def _check_range(folder: Path, split: str, labels: Labels, num_classes: int) -> None:
    wrong = np.flatnonzero((labels < 0) | (labels >= num_classes))
    if len(wrong):
        raise DataError(
            f"{folder}: label {labels[wrong[0]]} of {split} example {wrong[0]:,} is out of range, classes are 0 to "
            f"{num_classes - 1} ({len(wrong):,} such labels). The files are damaged: fetch them again."
        )
