"""The cells of a manifest's column as numbers.

Shapes: N rows.
"""

import array

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from evenly.files.cells import whole_number
from evenly.files.tables import Column


def whole_numbers(cells: Column) -> NDArray[np.int64] | None:
    """The cells as whole numbers; None if one of them is not written as one, or does not fit in 64 bits.

    >>> column = Column()
    >>> column.extend(["7", "2.0"])
    >>> whole_numbers(column).tolist()
    [7, 2]
    >>> column.extend(["007"])
    >>> whole_numbers(column) is None
    True
    """
    numbers = array.array("q")
    for cell in cells:
        number = whole_number(cell)
        if number is None:
            return None
        numbers.append(number)
    return np.frombuffer(numbers, np.int64) if numbers else np.empty(0, np.int64)


def number_words(cells: Column) -> tuple[Tensor, tuple[str, ...]]:
    """The cells as numbers of the words among them, in sorted order, and these words.

    >>> column = Column()
    >>> column.extend(["dog", "cat", "dog"])
    >>> numbers, words = number_words(column)
    >>> numbers.tolist(), words
    ([1, 0, 1], ('cat', 'dog'))
    """
    order: dict[str, int] = {}
    seen_N = torch.frombuffer(
        array.array("q", (order.setdefault(cell, len(order)) for cell in cells)), dtype=torch.int64
    )
    words = sorted(order)
    place = torch.empty(len(words), dtype=torch.int64)
    place[torch.tensor([order[word] for word in words])] = torch.arange(len(words))
    return place[seen_N], tuple(words)
