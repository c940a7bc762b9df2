"""Charts as figures for papers: matplotlib, with the colours and the look of the page."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from evenly.errors import UsageError
from evenly.report.chart import DIVERGING, GREY, Bars, Chart, Heat, Histogram, Layer, Line, Points, Rule, coloured

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH, HEIGHT = 4.6, 3.4  # inches of a panel
INK = "#24292F"
# More marks than these are drawn as an image inside the SVG, which would be megabytes otherwise.
MANY, DENSE = 1000, 100  # cells of a heat map, dots of bars


def figure(charts: Chart | Sequence[Chart], *, columns: int | None = None, title: str = "") -> "Figure":
    """The charts as panels of one figure; `report.sheet.save` writes it as SVG, PDF or PNG.

    >>> chart = Chart("Error", "epoch", "%", [Line("SGD", [1, 2, 3], [9, 5, None])], "The error falls.")
    >>> len(figure([chart, chart, chart], columns=2).axes)
    3
    """
    from matplotlib.figure import Figure

    charts = [charts] if isinstance(charts, Chart) else list(charts)
    if not charts:
        raise UsageError("there is no chart to draw: give at least one.")
    columns = columns or (len(charts) if len(charts) <= 3 else math.ceil(len(charts) ** 0.5))
    num_rows = math.ceil(len(charts) / columns)
    made = Figure(figsize=(WIDTH * columns, HEIGHT * num_rows + 0.35 * bool(title)), layout="constrained")
    if title:
        made.suptitle(title, fontsize=12, color=INK)
    for number, chart in enumerate(charts, 1):
        _panel(made.add_subplot(num_rows, columns, number), chart)
    return made


def _panel(axes: "Axes", chart: Chart) -> None:
    places = {label: number for number, label in enumerate(chart.labels("x"))}
    # The first label of an upright axis is at its top, where reading begins.
    heights = {label: -number for number, label in enumerate(chart.labels("y"))}
    _scales(axes, chart)
    grouped = [layer for layer in chart.layers if isinstance(layer, Bars)]
    for layer, colour in coloured(chart):
        if isinstance(layer, Line):
            _line(axes, layer, colour, places)
        elif isinstance(layer, Points):
            _points(axes, layer, colour, places, heights)
        elif isinstance(layer, Bars):
            _bars(axes, layer, colour, places, grouped.index(layer), len(grouped))
        elif isinstance(layer, Histogram):
            counts = _numbers(layer.counts)
            axes.stairs(counts, layer.edges, fill=True, color=colour, alpha=0.35)
            axes.stairs(counts, layer.edges, color=colour, label=layer.name or None)
        elif isinstance(layer, Heat):
            _heat(axes, layer, places, heights)
        else:
            _rule(axes, layer)
    if places:
        turned = len(places) > 4 and max(map(len, places)) > 6
        axes.set_xticks(
            range(len(places)), list(places), rotation=35 if turned else 0, ha="right" if turned else "center"
        )
    if heights:
        axes.set_yticks(list(heights.values()), list(heights))
    _dress(axes, chart)


def _scales(axes: "Axes", chart: Chart) -> None:
    # Before the layers: a scale that is set later would move what is drawn already.
    if chart.x_log:
        axes.set_xscale("log")
    if chart.y_log:
        axes.set_yscale("log")


def _line(axes: "Axes", layer: Line, colour: str, places: dict[str, int]) -> None:
    x = _positions(layer.x, places)
    mark = "o" if len(x) == 1 else None  # a line of one point would not be seen
    axes.plot(
        x,
        _numbers(layer.y),
        color=colour,
        lw=1.8,
        ls="--" if layer.dashed else "-",
        marker=mark,
        label=layer.name or None,
    )
    if layer.low is not None and layer.high is not None:
        axes.fill_between(x, _numbers(layer.low), _numbers(layer.high), color=colour, alpha=0.18, lw=0)


def _points(axes: "Axes", layer: Points, colour: str, places: dict[str, int], heights: dict[str, int]) -> None:
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


def _bars(axes: "Axes", layer: Bars, colour: str, places: dict[str, int], turn: int, num: int) -> None:
    width = 0.72 / num
    x = [places[label] + (turn - (num - 1) / 2) * width for label in layer.x]
    y = _numbers(layer.y)
    if layer.bar:
        axes.bar(x, y, width * 0.92, color=colour, alpha=0.55, label=layer.name or None)
    else:
        axes.plot(x, y, "D", ms=6, color=colour, label=layer.name or None)
    if layer.low is not None and layer.high is not None:
        below = [v - low for v, low in zip(y, _numbers(layer.low), strict=True)]
        above = [high - v for v, high in zip(y, _numbers(layer.high), strict=True)]
        axes.errorbar(x, y, [below, above], fmt="none", ecolor=INK, elinewidth=1.2, capsize=3)
    for place, values in zip(x, layer.dots or (), strict=False):
        spread = spreading(len(values), width)
        axes.plot(
            [place + d for d in spread],
            _numbers(values),
            "o",
            ms=3.2,
            color=colour,
            mec="white",
            mew=0.4,
            rasterized=len(x) * len(values) > DENSE,
        )


def _heat(axes: "Axes", layer: Heat, places: dict[str, int], heights: dict[str, int]) -> None:
    from matplotlib.colors import LinearSegmentedColormap

    x, y = _positions(layer.x, places), _positions(layer.y, heights)
    z = [_numbers(row) for row in layer.z]
    low, high = layer.limits
    cmap: Any = LinearSegmentedColormap.from_list("diverging", list(DIVERGING)) if layer.diverging else "viridis"
    # What is unknown lets the hatched ground show through.
    axes.patch.set_facecolor("#E6E6E6")
    axes.patch.set_hatch("////")
    axes.patch.set_edgecolor("#BDBDBD")
    mesh = axes.pcolormesh(
        x, y, z, cmap=cmap, vmin=low, vmax=high, shading="nearest", rasterized=len(z) * len(x) > MANY
    )
    axes.figure.colorbar(mesh, ax=axes, label=layer.name, fraction=0.05)


def _rule(axes: "Axes", layer: Rule) -> None:
    if layer.x is not None:
        axes.axvline(layer.x, color=GREY, lw=1.2, ls=(0, (4, 3)))
        at, place, side = (layer.x, 0.98), axes.get_xaxis_transform(), {"rotation": 90, "va": "top", "ha": "right"}
    else:
        axes.axhline(float(layer.y or 0.0), color=GREY, lw=1.2, ls=(0, (4, 3)))
        at, place, side = (0.99, float(layer.y or 0.0)), axes.get_yaxis_transform(), {"va": "bottom", "ha": "right"}
    axes.text(*at, layer.name, transform=place, fontsize=8, color="#5F6770", **side)  # type: ignore[arg-type]  # they are texts and a number


def _dress(axes: "Axes", chart: Chart) -> None:
    from matplotlib.ticker import MaxNLocator

    axes.set_title(chart.title, fontsize=10.5, color=INK, loc="left", fontweight="bold")
    axes.set_xlabel(chart.x, fontsize=9)
    axes.set_ylabel(chart.y, fontsize=9)
    axes.tick_params(labelsize=8, color="#B0B6BD")
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color("#B0B6BD")
    if not any(isinstance(layer, Heat) for layer in chart.layers):
        axes.grid(True, color="#E8EAED", lw=0.8)
        axes.set_axisbelow(True)
    values = [v for layer in chart.layers for v in _along(layer)]
    if values and all(isinstance(v, int) for v in values) and not (chart.x_log or chart.labels("x")):
        axes.xaxis.set_major_locator(MaxNLocator("auto", steps=[1, 2, 5, 10], integer=True))  # epochs have no fractions
    if chart.x_range:
        axes.set_xlim(*chart.x_range)
    if chart.y_range:
        axes.set_ylim(*chart.y_range)
    handles, names = axes.get_legend_handles_labels()
    if len(names) > 1:
        axes.legend(handles, names, fontsize=8, frameon=False)


def _along(layer: Layer) -> Sequence[Any]:
    return () if isinstance(layer, Rule | Histogram) else layer.x


def spreading(num: int, width: float) -> list[float]:
    """Sideways places for the dots of one bar, so that equal ones are both seen.

    >>> spreading(1, 0.6), [round(d, 2) for d in spreading(3, 0.6)]
    ([0.0], [-0.15, 0.0, 0.15])
    """
    return [0.0] if num == 1 else [width * 0.5 * (i / (num - 1) - 0.5) for i in range(num)]


def _positions(values: Sequence[Any], places: dict[str, int]) -> list[float]:
    return [places[value] if isinstance(value, str) else v for value, v in zip(values, _numbers(values), strict=True)]


def _numbers(values: Sequence[Any]) -> list[float]:
    return [math.nan if value is None or isinstance(value, str) else float(value) for value in values]
