"""The marks of a chart's layers on axes of matplotlib: lines, points, bars, maps and rules.

`places` are the positions of the labels along an axis, where the values of a layer are labels.
"""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from evenly.report.chart import Bars, Heat, Histogram, Line, Points, Rule
from evenly.report.palette import DIVERGING, GREY

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK, FAINT_INK = "#24292F", "#5F6770"
# More marks than this are rasterised inside the SVG, which would otherwise be megabytes.
MANY, DENSE = 1000, 100  # cells of a heat map, dots of bars
_RULE: dict[str, Any] = {"color": GREY, "lw": 1.2, "ls": (0, (4, 3))}
_WHISKER: dict[str, Any] = {"fmt": "none", "ecolor": INK, "elinewidth": 1.4}


def draw_line(axes: "Axes", layer: Line, colour: str, places: Mapping[str, int]) -> None:
    """A line, with its band."""
    x = _positions(layer.x, places)
    axes.plot(
        x,
        _numbers(layer.y),
        color=colour,
        lw=1.8,
        ls="--" if layer.dashed else "-",
        marker="o" if len(x) == 1 else None,  # a line of one point would not be seen
        label=layer.name or None,
    )
    if layer.low is not None and layer.high is not None:
        axes.fill_between(x, _numbers(layer.low), _numbers(layer.high), color=colour, alpha=0.18, lw=0)


def draw_points(
    axes: "Axes", layer: Points, colour: str, places: Mapping[str, int], heights: Mapping[str, int]
) -> None:
    """Dots, crosses or ticks."""
    size, marker = {"dot": (18, "o"), "cross": (26, "x"), "tick": (90, "|")}[layer.mark]
    axes.scatter(
        _positions(layer.x, places),
        _positions(layer.y, heights),
        s=size,
        marker=marker,
        color=colour,
        alpha=0.75,
        label=layer.name or None,
        linewidths=0 if layer.mark == "dot" else 1.4,
    )


def draw_bars(
    axes: "Axes", layer: Bars, colours: list[str], places: Mapping[str, int], *, turn: int, turns: int
) -> None:
    """Upright bars or diamonds, with whiskers and dots: number `turn` of the `turns` side by side at each label."""
    width = 0.72 / turns
    x = [places[label] + (turn - (turns - 1) / 2) * width for label in layer.x]
    y = _numbers(layer.y)
    if layer.bar:
        axes.bar(x, y, width * 0.92, color=colours, alpha=0.55, label=layer.name or None)
    else:
        axes.scatter(x, y, marker="D", s=36, color=colours, label=layer.name or None)
    if whiskers := _whiskers(layer):
        axes.errorbar(x, y, whiskers, capsize=4, **_WHISKER)
    for place, values, hue in zip(x, layer.dots or (), colours, strict=False):
        axes.plot(
            [place + d for d in dot_offsets(len(values), width)],
            _numbers(values),
            "o",
            ms=3.2,
            color=hue,
            mec="white",
            mew=0.4,
            rasterized=len(x) * len(values) > DENSE,
        )


def draw_row_bars(axes: "Axes", layer: Bars, colours: list[str], rows: list[int]) -> None:
    """Bars or diamonds in rows, with whiskers and dots."""
    values = _numbers(layer.y)
    if layer.bar:
        axes.barh(rows, values, 0.66, color=colours, alpha=0.55)
    for row, dots, hue in zip(rows, layer.dots or (), colours, strict=False):
        spread = [row + d for d in dot_offsets(len(dots), 0.6)]
        dense = len(rows) * len(dots) > DENSE
        axes.plot(_numbers(dots), spread, "o", ms=2.6, color=hue, alpha=0.45, mew=0, rasterized=dense)
    if whiskers := _whiskers(layer):
        axes.errorbar(values, rows, xerr=whiskers, capsize=2.5, **_WHISKER)
    if not layer.bar:
        axes.scatter(values, rows, marker="D", s=26, color=colours, zorder=3)


def draw_histogram(axes: "Axes", layer: Histogram, colour: str) -> None:
    """Counts as filled stairs."""
    counts = _numbers(layer.counts)
    axes.stairs(counts, layer.edges, fill=True, color=colour, alpha=0.35)
    axes.stairs(counts, layer.edges, color=colour, label=layer.name or None)


def draw_heat(axes: "Axes", layer: Heat, places: Mapping[str, int], heights: Mapping[str, int]) -> None:
    """A map with its scale of colours; the hatched background shows through unknown cells."""
    from matplotlib.colors import LinearSegmentedColormap

    x, y = _positions(layer.x, places), _positions(layer.y, heights)
    z = [_numbers(row) for row in layer.z]
    low, high = layer.limits
    cmap: Any = LinearSegmentedColormap.from_list("diverging", list(DIVERGING)) if layer.diverging else "viridis"
    axes.patch.set_facecolor("#E6E6E6")
    axes.patch.set_hatch("////")
    axes.patch.set_edgecolor("#BDBDBD")
    mesh = axes.pcolormesh(
        x, y, z, cmap=cmap, vmin=low, vmax=high, shading="nearest", rasterized=len(z) * len(x) > MANY
    )
    if layer.show_values:
        for j, row in enumerate(z):
            for i, value in enumerate(row):
                ink = "#111111" if value > low + 0.6 * (high - low) else "white"
                axes.text(x[i], y[j], f"{value:.3g}", ha="center", va="center", fontsize=8, color=ink)
    axes.figure.colorbar(mesh, ax=axes, label=layer.name, fraction=0.05)


def draw_rule(axes: "Axes", layer: Rule) -> None:
    """A named line across the axes at one value."""
    from matplotlib.patheffects import withStroke

    if layer.x is not None:
        axes.axvline(layer.x, **_RULE)
        at, place, side = (layer.x, 0.98), axes.get_xaxis_transform(), {"rotation": 90, "va": "top", "ha": "right"}
    else:
        y = float(layer.y or 0.0)
        axes.axhline(y, **_RULE)
        at, place, side = (0.99, y), axes.get_yaxis_transform(), {"va": "bottom", "ha": "right"}
    words = axes.text(*at, layer.name, transform=place, fontsize=8, color=FAINT_INK, zorder=4, **side)  # type: ignore[arg-type]  # they are texts and a number
    words.set_path_effects([withStroke(linewidth=2.5, foreground="white")])  # it stays readable on top of marks


def draw_rule_across_rows(axes: "Axes", layer: Rule, *, num_rows: int) -> None:
    """A rule at a value of bars in rows, named below the last."""
    value = float(layer.y or 0.0)
    axes.axvline(value, **_RULE)
    axes.text(value, num_rows, f" {layer.name}", fontsize=8, color=FAINT_INK, va="bottom")


def dot_offsets(num: int, width: float) -> list[float]:
    """Offsets for the dots of one bar, so that equal ones are both visible.

    >>> dot_offsets(1, 0.6), [round(d, 2) for d in dot_offsets(3, 0.6)]
    ([0.0], [-0.15, 0.0, 0.15])
    """
    return [0.0] if num == 1 else [width * 0.5 * (i / (num - 1) - 0.5) for i in range(num)]


def _whiskers(layer: Bars) -> list[list[float]] | None:
    """How far the interval of each bar reaches below and above its value."""
    if layer.low is None or layer.high is None:
        return None
    values, lows, highs = _numbers(layer.y), _numbers(layer.low), _numbers(layer.high)
    below = [value - low for value, low in zip(values, lows, strict=True)]
    above = [high - value for value, high in zip(values, highs, strict=True)]
    return [below, above]


def _positions(values: Sequence[Any], places: Mapping[str, int]) -> list[float]:
    return [places[value] if isinstance(value, str) else v for value, v in zip(values, _numbers(values), strict=True)]


def _numbers(values: Sequence[Any]) -> list[float]:
    return [math.nan if value is None or isinstance(value, str) else float(value) for value in values]
