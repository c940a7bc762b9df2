"""A chart as plain data: layers, two axes, and one sentence that says what it shows.

The same chart is drawn by `report.static` (PNG and SVG for papers) and by `report.interactive` (on the page).
Values that are None or NaN leave gaps.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

from evenly.errors import UsageError
from evenly.report.palette import DIVERGING as DIVERGING
from evenly.report.palette import GREY, SERIES, colour_of

Value = float | int | None
Position = float | int | str | None
Colour = int | str | None


class _Layer:
    """The base of layers: arrays and ranges become tuples, and related columns must have the same length."""

    _alongside: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for field in fields(self):  # type: ignore[arg-type]  # every layer is a dataclass, this class is not
            object.__setattr__(self, field.name, _plain(getattr(self, field.name)))
        for name in self._alongside:
            values, x = getattr(self, name), getattr(self, "x")  # noqa: B009 - the layers define x, this class does not
            if values is not None and len(values) != len(x):
                raise UsageError(
                    f"{type(self).__name__}: {name} has {len(values)} values, x has {len(x)}: give as many."
                )


@dataclass(frozen=True)
class Line(_Layer):
    """A curve, with a band from `low` to `high` where both are given.

    >>> Line("loss", range(3), [3.0, 2.0, None]).x
    (0, 1, 2)
    """

    name: str
    x: Sequence[Position]
    y: Sequence[Value]
    low: Sequence[Value] | None = None
    high: Sequence[Value] | None = None
    dashed: bool = False
    colour: Colour = None
    _alongside = ("y", "low", "high")


@dataclass(frozen=True)
class Points(_Layer):
    """A mark per example; `text` appears on hovering. A `tick` is a short stroke, as under a density."""

    name: str
    x: Sequence[Position]
    y: Sequence[Position]
    text: Sequence[str] | None = None
    colour: Colour = None
    mark: Literal["dot", "cross", "tick"] = "dot"
    _alongside = ("y", "text")


@dataclass(frozen=True)
class Bars(_Layer):
    """A bar per label, with its interval, and `dots`: for each bar a list of values, such as one per seed.

    With `bar=False` a mark stands at the value, for axes that do not begin at zero.
    """

    name: str
    x: Sequence[str]
    y: Sequence[Value]
    low: Sequence[Value] | None = None
    high: Sequence[Value] | None = None
    dots: Sequence[Sequence[Value]] | None = None
    bar: bool = True
    colour: Colour = None
    _alongside = ("y", "low", "high", "dots")


@dataclass(frozen=True)
class Histogram(_Layer):
    """Counts between consecutive edges."""

    name: str
    edges: Sequence[float]
    counts: Sequence[Value]
    colour: Colour = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.edges) != len(self.counts) + 1:
            raise UsageError(
                f"Histogram: {len(self.counts)} counts need {len(self.counts) + 1} edges, not {len(self.edges)}."
            )


@dataclass(frozen=True)
class Heat(_Layer):
    """A coloured cell for each x and y; `z` has a row for each y. Unknown values (None, NaN) are hatched or grey."""

    x: Sequence[Position]
    y: Sequence[Position]
    z: Sequence[Sequence[Value]]
    name: str = ""
    diverging: bool = False
    low: float | None = None
    high: float | None = None
    show_values: bool = False  # as numbers in the cells

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.z) != len(self.y) or any(len(row) != len(self.x) for row in self.z):
            shape = (len(self.z), len(self.z[0]) if self.z else 0)
            raise UsageError(f"Heat: z is {shape[0]}×{shape[1]}, expected {len(self.y)} rows (y) of {len(self.x)} (x).")

    @property
    def limits(self) -> tuple[float, float]:
        """The values at the ends of the colour scale; symmetric around zero if diverging."""
        known = [float(v) for row in self.z for v in row if v is not None and math.isfinite(v)] or [0.0]
        low = min(known) if self.low is None else self.low
        high = max(known) if self.high is None else self.high
        if self.diverging and self.low is None and self.high is None:
            high = max(abs(low), abs(high))
            low = -high
        return (low, high) if high > low else (low - 0.5, low + 0.5)


@dataclass(frozen=True)
class Rule(_Layer):
    """A line across the whole chart at one x or one y: a number of a paper, a threshold, a chosen epoch."""

    x: float | None = None
    y: float | None = None
    name: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.x is None) == (self.y is None):
            raise UsageError(f"Rule {self.name!r}: give x or y, one of them.")


Layer = Line | Points | Bars | Histogram | Heat | Rule


@dataclass(frozen=True)
class Chart:
    """Layers over two axes, whose labels carry the units, and a sentence that says what the chart shows.

    >>> chart = Chart("Training", "epoch", "error (%)", [Line("USEFUL", [1, 2], [30, 20])], "The error falls.")
    >>> chart.layers[0].name
    'USEFUL'
    """

    title: str
    x: str
    y: str
    layers: Sequence[Layer]
    sentence: str
    x_log: bool = False
    y_log: bool = False
    x_range: tuple[float, float] | None = None
    y_range: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "layers", tuple(self.layers))
        if not self.sentence.strip():
            raise UsageError(
                f"the chart {self.title!r} has no sentence: say what it shows, for those who cannot see it."
            )

    @property
    def y_limits(self) -> tuple[float, float] | None:
        """The given range along y, or 0 to 1 if all values are zero: errors and counts have nothing below."""
        if self.y_range is None and not self.y_log and not self.labels("y") and extent(self) == (0, 0):
            return 0.0, 1.0
        return self.y_range

    def labels(self, axis: Literal["x", "y"]) -> list[str]:
        """The labels along an axis, in order; none for a numeric axis."""
        layers = [layer for layer in self.layers if not isinstance(layer, Rule)]
        values = (getattr(layer, axis, None) or () for layer in layers)
        return list(dict.fromkeys(value for own in values for value in own if isinstance(value, str)))


def extent(chart: Chart) -> tuple[float, float] | None:
    """The smallest and the largest value along y; None if there are no numbers.

    >>> extent(Chart("", "", "", [Bars("error", ["a"], [3.0], low=[1.0], high=[4.0])], "One bar."))
    (0.0, 4.0)
    """
    values: list[float] = []
    for layer in chart.layers:
        if isinstance(layer, Heat):
            return None
        own = [getattr(layer, name, None) for name in ("y", "low", "high", "counts")]
        columns: list[Sequence[Any]] = [
            column if isinstance(column, tuple) else (column,) for column in own if column is not None
        ]
        columns += list(layer.dots) if isinstance(layer, Bars) and layer.dots is not None else []
        values += [v for column in columns for v in column if isinstance(v, int | float) and math.isfinite(v)]
        if isinstance(layer, Histogram) or (isinstance(layer, Bars) and layer.bar):
            values.append(0.0)
    if chart.y_log:
        values = [value for value in values if value > 0]
    return (min(values), max(values)) if values else None


def share_y_axes(charts: Sequence[Chart]) -> list[Chart]:
    """The charts, with a common range for those with the same y axis, so that heights can be compared.

    A chart keeps its own range if one is given, or if sharing would leave it less than an eighth of the height.

    >>> low, high = (Chart("", "", "loss", [Line("a", [0, 1], [0.0, top])], "It rises.") for top in (1.0, 2.0))
    >>> [chart.y_range[1] > 2 for chart in share_y_axes([low, high])]
    [True, True]
    """
    by_axis: dict[tuple[str, bool], list[tuple[float, float]]] = {}
    for chart in charts:
        ends = extent(chart)
        if chart.y and chart.y_range is None and ends is not None:
            by_axis.setdefault((chart.y, chart.y_log), []).append(ends)
    ranges: dict[tuple[str, bool], tuple[float, float]] = {}
    for axis, pairs in by_axis.items():
        low, high = min(a for a, _ in pairs), max(b for _, b in pairs)
        if axis[1]:
            spans, margin = [math.log(b / a) for a, b in pairs], (high / low) ** 0.05
            shared = (low / margin, high * margin)
        else:
            spans, margin = [b - a for a, b in pairs], 0.05 * (high - low)
            shared = (low - margin * (low != 0), high + margin)
        whole = math.log(high / low) if axis[1] else high - low
        if len(pairs) > 1 and whole > 0 and min(spans) >= whole / 8:
            ranges[axis] = shared
    return [
        replace(chart, y_range=ranges.get((chart.y, chart.y_log)))
        if chart.y_range is None and extent(chart) is not None
        else chart
        for chart in charts
    ]


def layer_colours(chart: Chart) -> Iterator[tuple[Layer, str]]:
    """Each layer with its colour: that of the method it is named after, its own, or the next that no method has.

    >>> rows = [Line("USEFUL", [1], [1]), Line("loss", [1], [1]), Line("test", [1], [1], colour=3)]
    >>> [colour for _, colour in layer_colours(Chart("", "", "", rows, "Three lines."))]
    ['#0070BA', '#D9480F', '#A87B00']
    """
    turn = 0
    taken = {colour_of(layer.name) for layer in chart.layers if not isinstance(layer, Rule | Heat)}
    free = [hue for hue in SERIES if hue not in taken] or SERIES
    for layer in chart.layers:
        own = getattr(layer, "colour", None)
        named = colour_of(layer.name)
        if isinstance(layer, Rule | Heat):
            yield layer, GREY
        elif isinstance(own, str):
            yield layer, own
        elif named is not None:
            yield layer, named
        else:
            yield layer, free[(turn if own is None else own) % len(free)]
            turn += own is None


def bar_colours(chart: Chart, layer: Bars, colour: str) -> list[str]:
    """A colour for each bar: where the chart has one layer of bars, one for each method, theirs; else the layer's.

    >>> bars = Bars("error", ["plain", "USEFUL"], [9, 8])
    >>> bar_colours(Chart("Error", "", "%", [bars], "USEFUL is lower."), bars, "#000000")
    ['#767E88', '#0070BA']
    """
    hues = [colour_of(label) for label in layer.x]
    alone = sum(isinstance(other, Bars) for other in chart.layers) == 1
    return [hue for hue in hues if hue] if alone and all(hues) else [colour] * len(layer.x)


def _plain(value: Any) -> Any:
    """Arrays, tensors, ranges and lists as tuples of plain values; anything else as it is."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if not isinstance(value, list | tuple | range):
        return value
    # Thousands of plain numbers are the usual case: checking their types once is enough.
    return tuple(value) if {type(item) for item in value} <= _PLAIN else tuple(map(_plain, value))


_PLAIN = {int, float, str, bool, type(None)}
