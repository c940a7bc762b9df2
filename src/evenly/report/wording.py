"""The wording of numbers, the same on the terminal, on pages and in documents."""

from collections.abc import Mapping
from typing import Any

from evenly.intervals import Interval


def pair(value: float | None, against: float | None) -> str:
    """The numbers compared, in this order; empty if there is none.

    >>> pair(4.79, 5.07), pair(0.5, None), pair(None, None)
    ('4.79 / 5.07', '0.5', '')
    """
    words = ["…" if number is None else _plain(f"{number:.4g}") for number in (value, against)]
    if value is None:
        return "" if against is None else " / ".join(words)
    return words[0] if against is None else " / ".join(words)


def difference(interval_: Mapping[str, Any], *, within: tuple[float, float] | None = None) -> str:
    """A signed mean with its interval, clipped to possible values; a single value has no interval.

    >>> difference({"mean": -0.4, "low": -0.6, "high": -0.2}), difference({"mean": 1.0, "low": None, "high": None})
    ('−0.4 [−0.6, −0.2]', '+1')
    >>> difference({"mean": -0.98, "low": -1.02, "high": -0.93}, within=(-1, 1))
    '−0.98 [−1, −0.93]'
    """
    if interval_["low"] is None:
        return _signed(interval_["mean"])
    low, high = interval_["low"], interval_["high"]
    if within is not None:
        low, high = (min(max(end, within[0]), within[1]) for end in (low, high))
    return f"{_signed(interval_['mean'])} [{_signed(low)}, {_signed(high)}]"


def claimed_difference(claim: Mapping[str, Any]) -> str:
    """The difference that a claim of the ledger is judged by; a correlation stays within −1 and 1."""
    is_correlation = "correlation" in claim["says"] and not isinstance(claim["against"], str)
    return difference(claim["difference"], within=(-1.0, 1.0) if is_correlation else None)


def _signed(value: float) -> str:
    """A number with its sign and three digits.

    >>> _signed(-1390.4), _signed(0.0213), _signed(-4.92e-05)
    ('−1,390', '+0.0213', '−4.92e−05')
    """
    return _plain(f"{value:+,.0f}" if 1e3 <= abs(value) < 1e6 else f"{value:+.3g}")


def _plain(number: str) -> str:
    return number.replace("-", "−")


def duration(minutes: float) -> str:
    """A time in a convenient unit.

    >>> duration(0.05), duration(12.3), duration(300), duration(9000), duration(90_000), duration(1_600_000)
    ('3 s', '12 min', '5.0 h', '6.2 days', '62 days', '3.0 years')
    """
    if minutes < 1:
        return f"{minutes * 60:.0f} s"
    if minutes < 120:
        return f"{minutes:.0f} min"
    if minutes < 2 * 24 * 60:
        return f"{minutes / 60:.1f} h"
    days = minutes / 1440
    return f"{days:.{int(days < 10)}f} days" if days < 2 * 365 else f"{days / 365:.1f} years"


def percent(error: Interval) -> str:
    """An error with its interval, in per cent, within 0 and 100.

    >>> percent(Interval(0.02, -0.1071, 0.1471, 2)), percent(Interval(0.01, float("nan"), float("nan"), 1))
    ('2.00 [0.00, 14.71]', '1.00')
    """
    if error.n < 2:
        return f"{error.mean * 100:.2f}"
    low, high = (min(max(end, 0.0), 1.0) for end in (error.low, error.high))
    return f"{error.mean * 100:.2f} [{low * 100:.2f}, {high * 100:.2f}]"
