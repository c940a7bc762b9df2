"""Image files that are listed more than once: by one path, by links, or by both.

Shapes: N files.
"""

import array
import os
from typing import Any

import numpy as np
import torch
from torch import Tensor

from evenly.data.formats.image_files import ImageFiles

_64_BITS = 2**64 - 1


def file_numbers(inputs: Any) -> Tensor | None:
    """A number per input, the same for two that are one file; None if no two are, or the inputs are not files.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from PIL import Image
    >>> from evenly.data.formats.image_files import open_images
    >>> folder = Path(tempfile.mkdtemp())
    >>> for name in ("a.png", "b.png"):
    ...     Image.new("L", (2, 2)).save(folder / name)
    >>> (folder / "c.png").symlink_to(folder / "a.png")
    >>> file_numbers(open_images(folder, ["a.png", "b.png"])) is None
    True
    >>> number = file_numbers(open_images(folder, ["a.png", "b.png", "c.png"])).tolist()
    >>> number[0] == number[2] != number[1]
    True
    """
    if not isinstance(inputs, ImageFiles):
        return None
    # Arrays, as a dictionary of a million files would take hundreds of megabytes.
    devices, files = array.array("Q"), array.array("Q")
    for name in inputs.names:
        path = os.path.join(inputs.root, name)
        try:
            facts = os.stat(path)
        except OSError:  # reading it will say what is wrong
            device, number = 0, 0
        else:
            device, number = facts.st_dev, facts.st_ino
        devices.append(device & _64_BITS)
        # File systems that number no files tell them apart by path only.
        files.append((number or hash(os.path.realpath(path))) & _64_BITS)
    device_N, file_N = (np.unique(np.frombuffer(ids, np.uint64), return_inverse=True)[1] for ids in (devices, files))
    found, number_N = np.unique(device_N * len(files) + file_N, return_inverse=True)
    return None if len(found) == len(files) else torch.from_numpy(number_N)
