"""Arguments that should be numbers, whatever callers give."""

import math
from typing import Any


def number(value: Any) -> float:
    """The value as a number; NaN if it is none, which fails every comparison.

    >>> number(2), number("2"), number(None)
    (2.0, nan, nan)
    """
    try:
        return math.nan if isinstance(value, str | bytes | bool) else float(value)
    except (TypeError, ValueError):
        return math.nan


def is_whole(value: Any, *, at_least: int = 1) -> bool:
    """Whether a value is a whole number of at least `at_least`.

    >>> [is_whole(value) for value in (1, 2.0, 0, 2.5, math.nan, math.inf, "2", None, True)]
    [True, True, False, False, False, False, False, False, False]
    """
    return number(value) >= at_least and number(value).is_integer()
