"""A chart as plain data: layers, two axes, and one sentence that says what it shows.

The same chart is drawn by `report.static` (PNG and SVG for papers) and by `report.interactive` (on the page).
Values that are None or NaN leave gaps.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal

from evenly.errors import UsageError
from evenly.report.sheet import COLOURS

Value = float | int | None
Position = float | int | str | None
Colour = int | str | None
# Yellow cannot be seen on white, black cannot on dark: six colours and a grey that is seen on both.
GREY = "#7F8790"
PALETTE = (*COLOURS[:6], GREY)
# For heat maps: dark is little, light is much; or, diverging, blue below and vermilion above the middle.
DIVERGING = (COLOURS[0], "#F2F2F2", COLOURS[1])


class _Layer:
    """What every layer does: arrays and ranges become tuples, and what belongs together is of one length."""

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
    """A mark per example; `text` is what hovering says of each. A `tick` is a short stroke, as under a density."""

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
    """How many lie between each edge and the next."""

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
    """A coloured cell for each x and y; `z` has a row for each y. What is unknown (None, NaN) is hatched or grey."""

    x: Sequence[Position]
    y: Sequence[Position]
    z: Sequence[Sequence[Value]]
    name: str = ""
    diverging: bool = False
    low: float | None = None
    high: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.z) != len(self.y) or any(len(row) != len(self.x) for row in self.z):
            shape = (len(self.z), len(self.z[0]) if self.z else 0)
            raise UsageError(f"Heat: z is {shape[0]}×{shape[1]}, expected {len(self.y)} rows (y) of {len(self.x)} (x).")

    @property
    def limits(self) -> tuple[float, float]:
        """What the ends of the colours stand for; around zero when diverging."""
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
    """Layers over two axes, whose labels carry the units, and the sentence that says what is to be seen.

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

    def labels(self, axis: Literal["x", "y"]) -> list[str]:
        """The labels along an axis, in their order; none where it is of numbers."""
        layers = [layer for layer in self.layers if not isinstance(layer, Rule)]
        values = (getattr(layer, axis, None) or () for layer in layers)
        return list(dict.fromkeys(value for own in values for value in own if isinstance(value, str)))


def coloured(chart: Chart) -> Iterator[tuple[Layer, str]]:
    """Each layer with its colour: its own, or the next of the palette."""
    turn = 0
    for layer in chart.layers:
        colour = getattr(layer, "colour", None)
        if isinstance(layer, Rule | Heat):
            yield layer, GREY
        elif colour is None:
            yield layer, PALETTE[turn % len(PALETTE)]
            turn += 1
        else:
            yield layer, PALETTE[colour % len(PALETTE)] if isinstance(colour, int) else colour


def _plain(value: Any) -> Any:
    """Arrays, tensors, ranges and lists as tuples of plain values; anything else as it is."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if not isinstance(value, list | tuple | range):
        return value
    # Thousands of plain numbers are the usual case: one look at their types is enough.
    return tuple(value) if {type(item) for item in value} <= _PLAIN else tuple(map(_plain, value))


_PLAIN = {int, float, str, bool, type(None)}
