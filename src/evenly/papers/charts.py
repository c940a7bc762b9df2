"""Charts for common kinds of results: quantities side by side, curves over seeds, and the claims themselves."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evenly.intervals import Interval, interval
from evenly.papers.experiment import Experiment, Measured
from evenly.report.chart import Bars, Chart, Layer, Line, Rule

OVER_SEEDS = "mean, 95% interval over seeds, and a dot for every seed"
_MEAN = re.compile(r"\{([^{}:]+):([^{}]+)\}")


def charts_of(experiment: Experiment, measured: Measured) -> list[Chart]:
    """The charts of an experiment: its own, or else one of the quantities that its claims name."""
    if callable(experiment.charts):
        return experiment.charts(measured)
    return [panel.draw(measured) for panel in experiment.charts or [claim_panel(experiment, measured)]]


@dataclass(frozen=True)
class Panel:
    """A chart of quantities side by side: a mark at each mean, its interval, and a dot for every seed.

    Parameters
    ----------
    quantities
        Labels and the names of quantities; or the names of several series, each with such a mapping.
    sentence
        The caption; `{quantity:.2f}` stands for the mean of that quantity.
    level, level_name
        A line across at a number that a statement names.
    """

    title: str
    y: str
    quantities: Mapping[str, str] | Mapping[str, Mapping[str, str]]
    sentence: str
    level: float | None = None
    level_name: str = ""
    bar: bool = False
    x: str = ""
    y_range: tuple[float, float] | None = None

    def draw(self, measured: Measured) -> Chart:
        """The chart of these measurements."""
        one: dict[str, str] = {label: each for label, each in self.quantities.items() if isinstance(each, str)}
        several = {name: each for name, each in self.quantities.items() if not isinstance(each, str)}
        series = several or {"": one}
        layers: list[Layer] = [bars(measured, each, name=name, bar=self.bar) for name, each in series.items()]
        if self.level is not None:
            layers.append(Rule(y=self.level, name=self.level_name))
        sentence = _MEAN.sub(lambda match: f"{mean(measured, match[1]):{match[2]}}", self.sentence)
        return Chart(self.title, self.x, self.y, layers, sentence, y_range=self.y_range)


def claim_panel(experiment: Experiment, measured: Measured) -> Panel:
    """A mark for each quantity that the claims of an experiment name, under its own name."""
    names = [name for claim in experiment.claims for name in (claim.value, claim.against) if isinstance(name, str)]
    quantities = {name: name for name in dict.fromkeys(names) if name in measured.values}
    return Panel(experiment.title, "", quantities, f"{experiment.claim} {OVER_SEEDS}.")


def mean(measured: Measured, quantity: str) -> float:
    """The mean of a quantity over its seeds."""
    return over_seeds(measured, quantity).mean


def over_seeds(measured: Measured, quantity: str) -> Interval:
    """The mean of a quantity over its seeds, with its interval."""
    return interval(list(measured.values[quantity].values()))


def bars(
    measured: Measured, quantities: Mapping[str, str], *, name: str = "", colour: int | None = None, bar: bool = False
) -> Bars:
    """A mark for each label at the mean of its quantity, with its interval and a dot per seed.

    `quantities` maps labels to names of quantities; those that were not measured are left out.

    >>> bars(Measured({"a": {0: 1.0, 1: 3.0}}, {}), {"plain": "a", "not measured": "b"}).y
    (2.0,)
    """
    known = {label: quantity for label, quantity in quantities.items() if quantity in measured.values}
    dots = [list(measured.values[quantity].values()) for quantity in known.values()]
    intervals = [interval(each) for each in dots]
    low, high = _band(intervals)
    return Bars(name, list(known), [each.mean for each in intervals], low, high, dots, bar=bar, colour=colour)


def curve(
    measured: Measured,
    name: str,
    x: Sequence[float],
    quantities: Sequence[str],
    *,
    colour: int | None = None,
    dashed: bool = False,
) -> Line:
    """The means of several quantities over seeds as one line, such as an error at each ρ, with their intervals."""
    return _line(name, x, [over_seeds(measured, each) for each in quantities], colour=colour, dashed=dashed)


def mean_curve(
    name: str, x: Sequence[float], runs: Sequence[Sequence[float]], *, colour: int | None = None, dashed: bool = False
) -> Line:
    """The mean of several runs as a line, with the interval of the mean as its band."""
    return _line(name, x, [interval(column) for column in zip(*runs, strict=True)], colour=colour, dashed=dashed)


def _line(name: str, x: Sequence[float], intervals: Sequence[Interval], *, colour: int | None, dashed: bool) -> Line:
    low, high = _band(intervals)
    return Line(name, x, [each.mean for each in intervals], low, high, dashed=dashed, colour=colour)


def _band(intervals: Sequence[Interval]) -> tuple[list[float] | None, list[float] | None]:
    """The ends of intervals; empty if one seed leaves them unknown."""
    if any(each.n < 2 for each in intervals):
        return None, None
    return [each.low for each in intervals], [each.high for each in intervals]
