"""The decimal logarithm, clipped so that it is always finite."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

DECADES = 30.0


def decimal_log(value: "Tensor") -> "Tensor":
    """log₁₀ of a number that is not negative, clipped to ±30: 0 becomes −30, and an overflow or NaN +30.

    >>> import torch
    >>> decimal_log(torch.tensor([0.0, 100.0, float("inf"), float("nan")])).tolist()
    [-30.0, 2.0, 30.0, 30.0]
    """
    log: Tensor = value.log10().nan_to_num(nan=DECADES, posinf=DECADES, neginf=-DECADES).clamp(-DECADES, DECADES)
    return log
