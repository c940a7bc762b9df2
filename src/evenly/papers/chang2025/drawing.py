"""Pieces of charts that the figures of this paper share."""

from collections.abc import Mapping, Sequence

from evenly.intervals import interval
from evenly.papers.experiment import Measured
from evenly.report.chart import Bars, Chart, Line, Rule


def mean(measured: Measured, name: str) -> float:
    """The mean of a quantity over its seeds."""
    numbers = list(measured.values[name].values())
    return sum(numbers) / len(numbers)


def bars(
    measured: Measured, quantities: Mapping[str, str], *, name: str = "", colour: int | None = None, bar: bool = True
) -> Bars:
    """A bar, or a mark, for each label at the mean of its quantity, with its interval and a dot per seed."""
    dots = [list(measured.values[quantity].values()) for quantity in quantities.values()]
    found = [interval(each) for each in dots]
    alone = any(each.n < 2 for each in found)
    return Bars(
        name,
        list(quantities),
        [each.mean for each in found],
        low=None if alone else [each.low for each in found],
        high=None if alone else [each.high for each in found],
        dots=dots,
        bar=bar,
        colour=colour,
    )


def compared(
    measured: Measured,
    quantities: Mapping[str, str],
    *,
    title: str,
    y: str,
    sentence: str,
    level: float | None = None,
    level_name: str = "",
    bar: bool = True,
    y_range: tuple[float, float] | None = None,
) -> Chart:
    """Quantities side by side, with a line across at the level that a statement names."""
    rules = [] if level is None else [Rule(y=level, name=level_name)]
    return Chart(title, "", y, [bars(measured, quantities, bar=bar), *rules], sentence, y_range=y_range)


def banded(
    name: str, x: Sequence[float], runs: Sequence[Sequence[float]], *, colour: int, dashed: bool = False
) -> Line:
    """The mean of many runs as a line, with the interval of the mean as its band."""
    found = [interval(column) for column in zip(*runs, strict=True)]
    alone = len(runs) < 2
    return Line(
        name,
        x,
        [each.mean for each in found],
        low=None if alone else [each.low for each in found],
        high=None if alone else [each.high for each in found],
        dashed=dashed,
        colour=colour,
    )
