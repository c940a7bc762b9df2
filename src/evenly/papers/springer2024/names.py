"""How measured quantities are called: `chi=360.rho=2.hard`, alike in the claims, in the work and in the charts."""

from collections.abc import Mapping, Sequence

from evenly.intervals import Interval, interval


def at(what: str = "", /, **where: float | str) -> str:
    """The name of a quantity under its settings.

    >>> at("hard", chi=360, rho=0.5)
    'chi=360.rho=0.5.hard'
    """
    parts = [f"{name}={value}" if isinstance(value, str) else f"{name}={value:g}" for name, value in where.items()]
    return ".".join([*parts, what] if what else parts)


def over_seeds(values: Mapping[str, Mapping[int, float]], names: Sequence[str]) -> list[Interval]:
    """The mean over seeds of each named quantity, with its interval.

    >>> [found.mean for found in over_seeds({"a": {0: 1.0, 1: 3.0}}, ["a"])]
    [2.0]
    """
    return [interval(list(values[name].values())) for name in names]
