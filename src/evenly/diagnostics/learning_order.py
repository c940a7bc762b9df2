"""What is learned first: when each curve of a training run has risen by half."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evenly.errors import DataError, UsageError


@dataclass(frozen=True)
class LearningTime:
    """A curve's name and the time at which it reached the given share of its rise; NaN if it never did."""

    name: str
    time: float


def learning_order(
    curves: Mapping[str, Sequence[float]],
    *,
    times: Sequence[float] | None = None,
    share: float = 0.5,
    ends: tuple[float, float] | None = None,
) -> list[LearningTime]:
    """When each curve first crosses start + share·(end − start), the earliest first; between records by a line.

    Start and end are the curve's own first and last value, or `ends` for all (0.5 and 1 for accuracies of two classes,
    where a feature that is never learned should not count its own noise). Curves may fall: probing errors do.

    >>> learning_order({"hard": [0.0, 0.0, 1.0], "easy": [0.0, 1.0, 1.0]})
    [LearningTime(name='easy', time=0.5), LearningTime(name='hard', time=1.5)]
    """
    if not 0 < share <= 1:
        raise UsageError(f"share = {share} is the part of the rise to wait for: give a number above 0, up to 1.")
    order = []
    for name, curve in curves.items():
        when = list(times) if times is not None else list(range(len(curve)))
        if len(curve) < 2 or len(when) != len(curve):
            raise DataError(
                f"the curve {name!r} has {len(curve)} values for {len(when)} times: give two or more of each."
            )
        if not all(math.isfinite(value) for value in curve):
            raise DataError(f"the curve {name!r} holds NaN or inf.")
        order.append(LearningTime(name, _crossing(list(curve), [float(t) for t in when], share, ends)))
    return sorted(order, key=lambda learned: (math.isnan(learned.time), learned.time))


def _crossing(curve: list[float], when: list[float], share: float, ends: tuple[float, float] | None) -> float:
    start, end = ends or (curve[0], curve[-1])
    if start == end:
        return math.nan
    risen = [(value - start) / (end - start) for value in curve]
    if risen[0] >= share:
        return when[0]
    for i in range(1, len(risen)):
        if risen[i] >= share:
            return when[i - 1] + (when[i] - when[i - 1]) * (share - risen[i - 1]) / (risen[i] - risen[i - 1])
    return math.nan
