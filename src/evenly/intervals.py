"""How certain a mean is: Student's t-intervals, also for paired differences, and how many seeds would settle it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from evenly.errors import UsageError

#: More seeds than this are never recommended.
MOST_SEEDS = 10_000


@dataclass(frozen=True)
class Interval:
    """The mean of n values, with the interval that covers the true mean with probability `level`.

    One value has a mean and no interval: `low` and `high` are NaN.
    """

    mean: float
    low: float
    high: float
    n: int
    level: float = 0.95

    @property
    def excludes_zero(self) -> bool:
        """Whether zero lies outside the interval; False for a single value."""
        return self.low > 0 or self.high < 0

    @property
    def half_width(self) -> float:
        """Half the length of the interval: the ± around the mean; NaN with one value."""
        return (self.high - self.low) / 2

    @property
    def deviation(self) -> float:
        """The standard deviation s of the values, from t_{n−1} · s/√n = half of the interval; NaN with one value.

        >>> round(interval([1.0, 2.0, 3.0]).deviation, 12)
        1.0
        """
        return self.half_width * math.sqrt(self.n) / _t_quantile(self.n, self.level) if self.n > 1 else math.nan

    @property
    def has_no_width(self) -> bool:
        """Whether all values are equal, up to rounding; False for a single value."""
        return self.n > 1 and self.half_width <= 1e-9 * abs(self.mean)

    @property
    def p_value(self) -> float:
        """Student's t-test that the true mean is zero, two-sided; NaN with one value.

        Equal values, such as errors that differ by one test example with every seed, have no known deviation: for these
        it is the sign test, p = 2/2ⁿ.

        >>> round(interval([1.0, 2.0, 3.0]).p_value, 4), interval([-0.35, -0.35, -0.35]).p_value
        (0.0742, 0.25)
        """
        from scipy.special import stdtr

        if self.n < 2:
            return math.nan
        if self.has_no_width:
            return 2.0 ** (1 - self.n) if self.mean else 1.0
        return float(2 * stdtr(self.n - 1, -abs(self.mean) * math.sqrt(self.n) / self.deviation))

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
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (num - 1))
    half = _t_quantile(num, level) * deviation / math.sqrt(num)
    return Interval(mean, mean - half, mean + half, num, level)


def paired_difference(values: Sequence[float], reference: Sequence[float], *, level: float = 0.95) -> Interval:
    """The mean of values − reference, pair by pair, with its t-interval.

    >>> paired_difference([2.0, 3.0], [1.0, 2.0])
    Interval(mean=1.0, low=1.0, high=1.0, n=2, level=0.95)
    """
    if len(values) != len(reference):
        raise UsageError(f"pairs need as many values as references, not {len(values)} and {len(reference)}.")
    return interval([a - b for a, b in zip(values, reference, strict=True)], level=level)


def power(effect: float, deviation: float, n: int, *, level: float = 0.95) -> float:
    """The probability that a t-interval of n values excludes zero on the side of a true mean `effect`.

    P(T > t_{n−1}) for T of the noncentral t distribution with n − 1 degrees of freedom and noncentrality
    effect · √n / deviation (Student's t-test, two-sided at 1 − level).

    >>> round(power(0.28, 0.405, 3), 3)  # three seeds can hardly see a quarter of a point
    0.112
    """
    if n < 2:
        return 0.0
    if deviation == 0:
        return float(effect != 0)
    from scipy.special import nctdtr

    return float(1 - nctdtr(n - 1, abs(effect) * math.sqrt(n) / deviation, _t_quantile(n, level)))


def num_seeds(effect: float, deviation: float, *, wanted: float = 0.9, level: float = 0.95) -> int | None:
    """The smallest number of seeds that detects a true `effect` with probability `wanted`.

    None if even 10,000 seeds would not do, or if the deviation is unknown.

    >>> num_seeds(0.28, 0.405), num_seeds(0.28, 0.2), num_seeds(0.0, 1.0)
    (24, 8, None)
    """
    if not (math.isfinite(effect) and math.isfinite(deviation)) or effect == 0:
        return None
    high = 2
    while power(effect, deviation, high, level=level) < wanted:
        if high == MOST_SEEDS:
            return None
        high = min(2 * high, MOST_SEEDS)
    low = high // 2  # power grows with n
    while high - low > 1:
        middle = (low + high) // 2
        if power(effect, deviation, middle, level=level) < wanted:
            low = middle
        else:
            high = middle
    return high


def holm(p_values: Sequence[float], *, level: float = 0.95) -> list[bool]:
    """Which of several tests reject, so that the chance of any false rejection is at most 1 − level (Holm, 1979).

    The i-th smallest of m p-values must be at most (1 − level)/(m − i + 1), and so must all smaller ones. A test that
    could not be made, with p = NaN, counts as p = 1: it rejects nothing and still counts among the m, so that missing
    values never make the others easier.

    >>> holm([0.01, 0.04, 0.03]), holm([0.04, float("nan"), 0.0001])
    ([True, False, False], [False, False, True])
    """
    rejected = [False] * len(p_values)
    known = [1.0 if math.isnan(p) else p for p in p_values]
    for rank, place in enumerate(sorted(range(len(known)), key=lambda i: known[i])):
        if known[place] > (1 - level) / (len(known) - rank):
            break
        rejected[place] = True
    return rejected


def points(share: float) -> str:
    """A difference of shares in percentage points, with its sign, a true minus, and never −0.00.

    >>> points(0.0123), points(-0.5), points(-0.00001)
    ('+1.23', '−50.00', '+0.00')
    """
    return f"{round(share * 100, 2) + 0.0:+.2f}".replace("-", "−")


def points_with_interval(difference: Interval) -> str:
    """A difference in percentage points with its interval; one seed gives no interval.

    >>> points_with_interval(Interval(-0.01, -0.02, 0.0, 5))
    '−1.00 [−2.00, +0.00]'
    >>> points_with_interval(Interval(0.01, float("nan"), float("nan"), 1))
    '+1.00'
    """
    return (
        points(difference.mean)
        if difference.n < 2
        else f"{points(difference.mean)} [{points(difference.low)}, {points(difference.high)}]"
    )


def _t_quantile(num: int, level: float) -> float:
    from scipy.special import stdtrit  # equals scipy.stats.t.ppf, which takes seconds to import

    return float(stdtrit(num - 1, 0.5 + level / 2))
