"""What a way of training gains beside plain training, in words, alike on the terminal and on pages."""

from collections.abc import Mapping

from evenly.intervals import Interval
from evenly.intervals import between as between
from evenly.intervals import points as points


def percent(found: Interval, *, signed: bool = False) -> str:
    """A share with its interval, in per cent; an error is never below 0 or above 100.

    >>> percent(Interval(0.02, -0.1071, 0.1471, 2)), percent(Interval(0.01, 0.0, 0.0, 1), signed=True)
    ('2.00 [0.00, 14.71]', '+1.00')
    """
    if signed:
        return between(found)
    text = f"{found.mean * 100:.2f}"
    low, high = (f"{min(max(end, 0.0), 1.0) * 100:.2f}" for end in (found.low, found.high))
    return text if found.n < 2 else f"{text} [{low}, {high}]"


def gained(name: str, error: str, gain: Interval, against: Mapping[str, Interval] | None = None) -> str:
    """What was found, in a sentence or two, no stronger than the numbers.

    `gain` is the paired difference to plain training; `against` are those to the controls for its extra steps, None
    for a way of training that has no such controls.

    >>> gained("USEFUL", "9.00 % error on test", Interval(-0.01, -0.02, -0.005, 5), {})
    'USEFUL comes to 9.00 % error on test, 1.00 points lower than plain training (95 % interval −2.00 to −0.50 points,
    5 paired seeds). Whether it is more than the extra steps is not known: no `random` or `steps` control was run.'
    """
    told = f"{name} comes to {error}, {abs(gain.mean) * 100:.2f} points {'lower' if gain.mean < 0 else 'higher'} than"
    if round(gain.mean, 4) == 0:
        told = f"{name} comes to {error}, the same as"
    told += " plain training"
    if gain.n < 2:
        return f"{told}, with one seed: that says nothing yet."
    told += f" (95 % interval {points(gain.low)} to {points(gain.high)} points, {gain.n} paired seeds)"
    controls = {control: other for control, other in (against or {}).items() if other.n > 1}
    if not gain.excludes_zero:
        beside = (f" Against {name}: {between(other)}, which {_zero(other)} zero." for name, other in controls.items())
        return f"{told}: the interval includes zero, so this may be chance.{''.join(beside)}"
    if against is None or gain.mean > 0:
        return f"{told}."
    if not controls:
        return f"{told}. Whether it is more than the extra steps is not known: no `random` or `steps` control was run."
    for control, other in controls.items():
        if not other.excludes_zero:
            return f"{told}, but not clearly lower than its control `{control}`: it may be the extra steps."
        if other.mean > 0:
            return f"{told}, but its control `{control}` does better still: {between(other)} against it."
    return f"{told}, and lower than as many examples of any kind."


def _zero(found: Interval) -> str:
    return "excludes" if found.excludes_zero else "includes"
