"""How sure a mean is: Student's t-intervals, alone and for paired differences."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from evenly.errors import UsageError


@dataclass(frozen=True)
class Interval:
    """A mean of n values and the interval that holds the true one with probability `level`.

    One value has a mean and no interval: `low` and `high` are NaN.
    """

    mean: float
    low: float
    high: float
    n: int
    level: float = 0.95

    @property
    def excludes_zero(self) -> bool:
        """Whether zero is outside; never with one value."""
        return self.low > 0 or self.high < 0

    def __str__(self) -> str:
        if math.isnan(self.low):
            return f"{self.mean:.3g} (n = {self.n})"
        return f"{self.mean:.3g} [{self.low:.3g}, {self.high:.3g}] (n = {self.n})"


def interval(values: Sequence[float], *, level: float = 0.95) -> Interval:
    """The mean of `values` with its t-interval: x̄ ± t_{n−1} · s/√n (Student, 1908).

    >>> interval([1.0, 2.0, 3.0])
    Interval(mean=2.0, low=-0.484..., high=4.484..., n=3, level=0.95)
    """
    if not values:
        raise UsageError("an interval needs at least one value.")
    num = len(values)
    mean = math.fsum(values) / num
    if num == 1:
        return Interval(mean, math.nan, math.nan, 1, level)
    from scipy.special import (
        stdtrit,
    )  # the quantile that scipy.stats.t.ppf gives, without the seconds that takes to import

    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (num - 1))
    half = float(stdtrit(num - 1, 0.5 + level / 2)) * deviation / math.sqrt(num)
    return Interval(mean, mean - half, mean + half, num, level)


def paired(values: Sequence[float], reference: Sequence[float], *, level: float = 0.95) -> Interval:
    """The mean of values − reference, pair by pair, with its t-interval.

    >>> paired([2.0, 3.0], [1.0, 2.0])
    Interval(mean=1.0, low=1.0, high=1.0, n=2, level=0.95)
    """
    if len(values) != len(reference):
        raise UsageError(f"pairs need as many values as references, not {len(values)} and {len(reference)}.")
    return interval([a - b for a, b in zip(values, reference, strict=True)], level=level)
