"""Tensors from arrays and tables, including arrays whose memory torch cannot share."""

import warnings
from typing import Any

import numpy as np
import torch
from torch import Tensor


def as_tensor(values: Any) -> Tensor:
    """Like `torch.as_tensor`, but takes tables, and arrays with negative strides, other byte order, or long floats.

    Only those are copied. Tables and their columns, such as those of pandas, are read by position: torch would look
    for their rows by name. Bytes in the other order come from files of other machines and formats (FITS, IDX), negative
    strides from a view such as `array[::-1]`. The tensor of an array that is read only must not be written to.

    >>> import numpy as np
    >>> as_tensor(np.arange(3)[::-1]), as_tensor(np.array([1.0, 2.0], dtype=">f4"))
    (tensor([2, 1, 0]), tensor([1., 2.]))
    """
    values = as_array(values)
    if not isinstance(values, np.ndarray):
        return torch.as_tensor(values)
    if values.dtype.kind == "f" and values.dtype.itemsize > 8:  # torch has nothing longer than float64
        values = values.astype(np.float64)
    values = values.astype(values.dtype.newbyteorder("="), copy=False)
    if any(stride < 0 for stride in values.strides):
        values = values.copy()
    with warnings.catch_warnings():
        # Nothing is written to it, and a memory-mapped file may be too large to copy.
        warnings.filterwarnings("ignore", "The given NumPy array is not writable", UserWarning)
        return torch.as_tensor(values)


def as_array(values: Any) -> Any:
    """A table or a column of one as an array; anything else as it is.

    >>> as_array([1, 2])
    [1, 2]
    """
    return values.to_numpy() if hasattr(values, "to_numpy") else values
