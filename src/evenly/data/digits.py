"""Real images that need no download: the 8×8 handwritten digits that ship with scikit-learn."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from evenly.data.held_out import held_out_mask, where
from evenly.data.labelled import Labelled
from evenly.data.splits import Splits


def digits() -> Splits:
    """1,797 images of the ten digits (Alpaydin & Kaynak, 1998), a fixed fifth of each class held out for testing.

    The collection has no published split in this form; ours is a fixed shuffle, the same on every machine.
    The 17 grey levels are spread over 0..255.

    >>> splits = digits()
    >>> splits.train
    <digits train: 1,438 examples of 1×8×8, 10 classes>
    >>> len(splits["test"]), splits["test"].labels.bincount().tolist()
    (359, [36, 36, 35, 37, 36, 36, 36, 36, 35, 36])
    """
    table_ND = torch.from_numpy(_table())
    pixels = table_ND[:, :-1].reshape(-1, 1, 8, 8).mul(255 / 16).round().to(torch.uint8)
    whole = Labelled(pixels, table_ND[:, -1].long(), tuple(map(str, range(10))))
    test = held_out_mask(whole.labels, share=0.2, key="digits")
    return Splits("digits", {"train": whole.subset(where(~test)), "test": whole.subset(where(test))})


def _table() -> NDArray[Any]:
    """A row per image: its 64 pixels, then its digit. Importing scikit-learn for it takes seconds."""
    spec = find_spec("sklearn")
    file = Path(spec.origin).parent / "datasets" / "data" / "digits.csv.gz" if spec and spec.origin else None
    if file is not None and file.is_file():
        return np.loadtxt(file, delimiter=",")
    from sklearn.datasets import load_digits  # which knows where another version keeps it

    bundle = load_digits()
    return np.column_stack([bundle.data, bundle.target])
