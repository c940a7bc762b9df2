"""All seeds as one part of an experiment, and their numbers gathered under the names of the quantities."""

from collections.abc import Callable, Sequence
from typing import Any

from evenly.papers.experiment import Part, PartResult


def one_part(seeds: Sequence[int], *, work: Callable[..., PartResult], **settings: Any) -> list[Part]:
    """All seeds as one piece of work."""
    return [Part("all", work, {"seeds": list(seeds), **settings})]


def by_seed(seeds: Sequence[int], one: Callable[[int], dict[str, float]]) -> PartResult:
    """The numbers that `one` gives for each seed, by quantity.

    >>> by_seed([3, 4], lambda seed: {"square": seed**2}).values
    {'square': {3: 9, 4: 16}}
    """
    values: dict[str, dict[int, float]] = {}
    for seed in seeds:
        for name, number in one(seed).items():
            values.setdefault(name, {})[seed] = number
    return PartResult(values)
