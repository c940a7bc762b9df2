"""When a set of runs counts as diverged: the paper's rule, and one with an error bar.

Shapes: K repeats in the last dimension, any settings before it.
"""

from dataclasses import dataclass
from math import log

from torch import Tensor

from evenly.errors import UsageError


def has_diverged(log_growth_K: Tensor, *, factor: float = 1000.0) -> Tensor:
    """The rule of Chang & Khanna (2025): more than half of the runs ended with ‖w_T‖ > 1000‖w₀‖.

    It misses growth slower than log(1000)/T per step, and so depends on T.

    >>> import torch
    >>> has_diverged(torch.tensor([[7.0, 7.0, 0.0], [7.0, 0.0, 0.0]])).tolist()
    [True, False]
    """
    return (log_growth_K > log(factor)).double().mean(-1) > 0.5


@dataclass(frozen=True, eq=False)
class Growth:
    """Growth per step over the second half of the runs: mean over the repeats and its standard error.

    Five standard errors of ten repeats are passed by chance about once in 3,000 cells. The rate nears the exponent from
    above where many coordinates grow alike, because ‖w‖ follows the largest: a negative rate is the safer verdict. A
    stable method with its own noise hovers near 0.
    """

    rate: Tensor
    standard_error: Tensor


def growth(log_half_K: Tensor, log_end_K: Tensor, *, steps: int) -> Growth:
    """The rate (log‖w_T‖ − log‖w_{T−steps}‖)/steps, an estimate of the Lyapunov exponent that forgets the start.

    >>> import torch
    >>> growth(torch.zeros(2), torch.tensor([1.0, 3.0]), steps=2).rate.item()
    1.0
    """
    if log_end_K.shape[-1] < 2 or steps < 1:
        raise UsageError("a standard error needs at least two repeats, and a rate at least one step.")
    rates_K = (log_end_K - log_half_K) / steps
    return Growth(rates_K.mean(-1), rates_K.std(-1) / rates_K.shape[-1] ** 0.5)
