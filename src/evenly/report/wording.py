"""The wording of numbers, the same on the terminal, on pages and in documents."""

from collections.abc import Mapping
from typing import Any

from evenly.intervals import Interval


def pair(value: float | None, against: float | None) -> str:
    """The numbers compared, in this order; empty if there is none.

    >>> pair(4.79, 5.07), pair(0.5, None), pair(None, None), pair(4405, 16_540)
    ('4.79 / 5.07', '0.5', '', '4,405 / 16,540')
    """
    words = ["…" if number is None else _number(number, ".4g") for number in (value, against)]
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

    >>> _signed(-1390.4), _signed(0.0213), _signed(-4.92e-05), _signed(999.7), _signed(-0.0)
    ('−1,390', '+0.0213', '−4.92e−05', '+1,000', '+0')
    """
    return _number(value + 0.0, "+.3g")  # −0.0 + 0.0 is 0.0


def _number(value: float, form: str) -> str:
    """A number in this form, but in full from a thousand to a million, and with a proper minus sign."""
    if 999.5 <= abs(value) < 999_999.5:
        form = f"{form.partition('.')[0]},.0f"
    return f"{value:{form}}".replace("-", "−")


def capital(text: str) -> str:
    """The text with a capital first letter and all others as they are, unlike `str.capitalize`.

    >>> capital("run 3f2a (USEFUL, seed 0)")
    'Run 3f2a (USEFUL, seed 0)'
    """
    return text[:1].upper() + text[1:]


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
