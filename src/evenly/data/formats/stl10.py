"""STL-10's binary files: pixels column by column, labels from 1."""

from pathlib import Path

import numpy as np
import torch

from evenly.data.formats.locate import locate
from evenly.data.labelled import Labelled
from evenly.data.splits import Splits
from evenly.errors import DataError
from evenly.files.regular import open_regular, size_of

_CLASSES = ("airplane", "bird", "car", "cat", "deer", "dog", "horse", "monkey", "ship", "truck")
_SIDE = 96
_RECORD = 3 * _SIDE * _SIDE


def stl10(*, root: Path) -> Splits:
    """STL-10 (Coates et al., 2011): 5,000 + 8,000 labelled images of 3×96×96; the unlabelled ones are left out.

    The files store each colour plane column by column and count classes from 1; here images are row by row
    and classes count from 0.

    >>> stl10(root=Path("nowhere"))
    Traceback (most recent call last):
    evenly.data.formats.locate.Missing: STL-10 was not found. Looked for nowhere/stl10_binary.
    """
    folder = locate("STL-10", root, ["stl10_binary"])
    return Splits("stl10", {split: _part(folder, split) for split in ("train", "test")})


def _part(folder: Path, split: str) -> Labelled:
    images_file, labels_file = (
        locate(f"{name}, a file of STL-10,", folder, [name]) for name in (f"{split}_X.bin", f"{split}_y.bin")
    )
    with open_regular(labels_file) as file:
        labels = np.fromfile(file, dtype=np.uint8).astype(np.int64) - 1
    if not len(labels):
        raise DataError(f"{labels_file}: is empty. Fetch it again.")
    expected, found = len(labels) * _RECORD, size_of(images_file)
    if expected != found:
        raise DataError(
            f"{images_file}: {'truncated' if found < expected else 'too long'}: expected {expected:,} bytes for the "
            f"{len(labels):,} labels of {labels_file.name} ({_RECORD:,} each), {found:,} were found. Fetch both again."
        )
    wrong = np.flatnonzero((labels < 0) | (labels >= len(_CLASSES)))
    if len(wrong):
        raise DataError(
            f"{labels_file}: label {labels[wrong[0]] + 1} of example {wrong[0]:,} is out of range, "
            f"STL-10 has classes 1 to {len(_CLASSES)}. Fetch it again."
        )
    with open_regular(images_file) as file:
        columns_first = np.fromfile(file, dtype=np.uint8, count=expected).reshape(-1, 3, _SIDE, _SIDE)
    images = torch.from_numpy(columns_first).transpose(2, 3).contiguous()
    return Labelled(images, torch.from_numpy(labels), _CLASSES)
