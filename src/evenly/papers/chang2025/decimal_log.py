"""A logarithm that is always a number."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

DECADES = 30.0


def decimal_log(value: "Tensor") -> "Tensor":
    """log₁₀ of what is not negative, kept within ±30: zero is −30, and what overflowed or is NaN is +30.

    >>> import torch
    >>> decimal_log(torch.tensor([0.0, 100.0, float("inf"), float("nan")])).tolist()
    [-30.0, 2.0, 30.0, 30.0]
    """
    log: Tensor = value.log10().nan_to_num(nan=DECADES, posinf=DECADES, neginf=-DECADES).clamp(-DECADES, DECADES)
    return log
