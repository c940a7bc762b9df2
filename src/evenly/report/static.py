"""Charts as figures for papers: matplotlib, in the colours and style of the page."""

import math
import os
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from evenly import atomic
from evenly.errors import UsageError
from evenly.report.chart import (
    Bars,
    Chart,
    Heat,
    Histogram,
    Layer,
    Line,
    Points,
    Rule,
    bar_colours,
    layer_colours,
    share_y_axes,
)
from evenly.report.palette import DIVERGING, GREY

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH, HEIGHT = 4.6, 3.4  # inches of a panel
LABEL = 0.24  # inches of a row with its label
TITLE, PANEL_TITLE = 12, 10.5  # points
INK = "#24292F"
# More marks than this are rasterised inside the SVG, which would otherwise be megabytes.
MANY, DENSE = 1000, 100  # cells of a heat map, dots of bars


def figure(charts: Chart | Sequence[Chart], *, columns: int | None = None, title: str = "", note: str = "") -> "Figure":
    """The charts as panels of one figure, which `save` writes; `note`, such as the number of seeds, stands below.

    Titles wrap at the width of their panel. Panels with the same y axis share its range.

    >>> chart = Chart("Error", "epoch", "%", [Line("SGD", [1, 2, 3], [9, 5, None])], "The error falls.")
    >>> len(figure([chart, chart, chart], columns=2).axes)
    3
    """
    from matplotlib.figure import Figure

    charts = [charts] if isinstance(charts, Chart) else share_y_axes(charts)
    if not charts:
        raise UsageError("there is no chart to draw: give at least one.")
    columns = columns or (len(charts) if len(charts) <= 3 else math.ceil(len(charts) ** 0.5))
    num_rows = math.ceil(len(charts) / columns)
    panel_height = max([HEIGHT, *(LABEL * len(chart.labels("x")) + 1.0 for chart in charts if _in_rows(chart))])
    lines = wrap(title, points=TITLE, inches=WIDTH * columns - 0.3)
    head = 0.02 * TITLE * len(lines) if title else 0.0
    foot = 0.22 if note else 0.0
    height = panel_height * num_rows + head + foot
    drawing = Figure(figsize=(WIDTH * columns, height), layout="constrained")
    drawing.get_layout_engine().set(rect=(0, foot / height, 1, 1 - foot / height))  # type: ignore[union-attr, call-arg]  # the constrained layout
    if title:
        drawing.suptitle("\n".join(lines), fontsize=TITLE, color=INK)
    if note:
        drawing.text(0.99, 0.02 / height, note, fontsize=8, color="#5F6770", ha="right", va="bottom")
    for number, chart in enumerate(charts, 1):
        axes = drawing.add_subplot(num_rows, columns, number)
        if not _in_rows(chart):
            _panel(axes, chart)
            continue
        _rows(axes, chart)
        if number % columns != 1 and columns > 1 and charts[number - 2].labels("x") == chart.labels("x"):
            axes.tick_params(labelleft=False)  # the panel to the left names them
    return drawing


def save(figure: "Figure", path: str | os.PathLike[str], *, dpi: int = 150) -> None:
    """Write the figure whole or not at all, in the format its suffix names; the same figure is the same bytes."""
    import matplotlib

    suffix = os.path.splitext(path)[1].lstrip(".").lower() or "png"
    known = figure.canvas.get_supported_filetypes()
    if suffix not in known:
        raise UsageError(f"cannot draw a .{suffix} file: {path}. Known: {', '.join(sorted(known))}.")
    # Time stamps and random names of marks would make every file different.
    undated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "ps": {}, "eps": {}}
    with (
        atomic.replacing(path) as file,
        matplotlib.rc_context({"svg.hashsalt": "evenly"}),
        warnings.catch_warnings(),
    ):
        # A letter of a class name that the font lacks is drawn as a box, which needs no warning.
        warnings.filterwarnings("ignore", message=r"Glyph \d+ .* missing from", category=UserWarning)
        figure.savefig(file, dpi=dpi, format=suffix, metadata=undated.get(suffix))


def wrap(text: str, *, points: float, inches: float, bold: bool = False) -> list[str]:
    """A text in as few lines as fit into `inches` at this font size, by the font's own metrics, about equally long.

    >>> wrap("one two three four", points=12, inches=1.4)
    ['one two', 'three four']
    """
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(size=points, weight="bold" if bold else "normal")

    def lines(most: float) -> list[str]:
        filled = [""]
        for word in text.split():
            longer = f"{filled[-1]} {word}".strip()
            # A lone $ would begin mathematics; its width is that of a letter either way.
            width = text_to_path.get_text_width_height_descent(longer.replace("$", "S"), font, ismath=False)[0] / 72
            if width <= most or not filled[-1]:
                filled[-1] = longer
            else:
                filled.append(word)
        return filled

    widest = lines(inches)
    narrower = (lines(inches * share / 20) for share in range(10, 20))
    return next((each for each in narrower if len(each) == len(widest)), widest) if len(widest) > 1 else widest


def _panel(axes: "Axes", chart: Chart) -> None:
    places = {label: number for number, label in enumerate(chart.labels("x"))}
    # The first label of an upright axis is at its top, where reading begins.
    heights = {label: -number for number, label in enumerate(chart.labels("y"))}
    _scales(axes, chart)
    grouped = [layer for layer in chart.layers if isinstance(layer, Bars)]
    for layer, colour in layer_colours(chart):
        if isinstance(layer, Line):
            _line(axes, layer, colour, places)
        elif isinstance(layer, Points):
            _points(axes, layer, colour, places, heights)
        elif isinstance(layer, Bars):
            _bars(axes, layer, bar_colours(chart, layer, colour), places, grouped.index(layer), len(grouped))
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
    if chart.y_limits:
        axes.set_ylim(*chart.y_limits)
    _dress(axes, chart)


def _in_rows(chart: Chart) -> bool:
    """Whether a chart is drawn with a row per label: more labels than fit below each other's marks."""
    labels = chart.labels("x")
    marks = [layer for layer in chart.layers if not isinstance(layer, Rule)]
    return len(labels) > 10 and max(map(len, labels)) > 12 and len(marks) == 1 and isinstance(marks[0], Bars)


def _rows(axes: "Axes", chart: Chart) -> None:
    """One layer of bars with a row for each label, read from the top, and its values across."""
    places = {label: number for number, label in enumerate(chart.labels("x"))}
    if chart.y_log:
        axes.set_xscale("log")
    for layer, colour in layer_colours(chart):
        if isinstance(layer, Rule):
            axes.axvline(float(layer.y or 0.0), color=GREY, lw=1.2, ls=(0, (4, 3)))
            axes.text(float(layer.y or 0.0), len(places), f" {layer.name}", fontsize=8, color="#5F6770", va="bottom")
        elif isinstance(layer, Bars):
            _row_marks(axes, layer, bar_colours(chart, layer, colour), [places[label] for label in layer.x])
    axes.set_yticks(range(len(places)), list(places))
    axes.set_ylim(len(places) + 0.1, -0.6)  # with a line for the names of rules
    if chart.y_limits:
        axes.set_xlim(*chart.y_limits)
    _dress(axes, replace(chart, x=chart.y, y=chart.x, x_range=None))


def _row_marks(axes: "Axes", layer: Bars, colours: list[str], rows: list[int]) -> None:
    values = _numbers(layer.y)
    if layer.bar:
        axes.barh(rows, values, 0.66, color=colours, alpha=0.55)
    for row, dots, hue in zip(rows, layer.dots or (), colours, strict=False):
        spread = [row + d for d in dot_offsets(len(dots), 0.6)]
        dense = len(rows) * len(dots) > DENSE
        axes.plot(_numbers(dots), spread, "o", ms=2.6, color=hue, alpha=0.45, mew=0, rasterized=dense)
    if layer.low is not None and layer.high is not None:
        below = [v - low for v, low in zip(values, _numbers(layer.low), strict=True)]
        above = [high - v for v, high in zip(values, _numbers(layer.high), strict=True)]
        axes.errorbar(values, rows, xerr=[below, above], fmt="none", ecolor=INK, elinewidth=1.4, capsize=2.5)
    if not layer.bar:
        axes.scatter(values, rows, marker="D", s=26, color=colours, zorder=3)


def _scales(axes: "Axes", chart: Chart) -> None:
    # Before the layers: setting a scale later would move what is already drawn.
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


def _bars(axes: "Axes", layer: Bars, colours: list[str], places: dict[str, int], turn: int, num: int) -> None:
    width = 0.72 / num
    x = [places[label] + (turn - (num - 1) / 2) * width for label in layer.x]
    y = _numbers(layer.y)
    if layer.bar:
        axes.bar(x, y, width * 0.92, color=colours, alpha=0.55, label=layer.name or None)
    else:
        axes.scatter(x, y, marker="D", s=36, color=colours, label=layer.name or None)
    if layer.low is not None and layer.high is not None:
        below = [v - low for v, low in zip(y, _numbers(layer.low), strict=True)]
        above = [high - v for v, high in zip(y, _numbers(layer.high), strict=True)]
        axes.errorbar(x, y, [below, above], fmt="none", ecolor=INK, elinewidth=1.4, capsize=4)
    for place, values, hue in zip(x, layer.dots or (), colours, strict=False):
        spread = dot_offsets(len(values), width)
        axes.plot(
            [place + d for d in spread],
            _numbers(values),
            "o",
            ms=3.2,
            color=hue,
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
    # Unknown cells let the hatched background show through.
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


def _rule(axes: "Axes", layer: Rule) -> None:
    from matplotlib.patheffects import withStroke

    if layer.x is not None:
        axes.axvline(layer.x, color=GREY, lw=1.2, ls=(0, (4, 3)))
        at, place, side = (layer.x, 0.98), axes.get_xaxis_transform(), {"rotation": 90, "va": "top", "ha": "right"}
    else:
        axes.axhline(float(layer.y or 0.0), color=GREY, lw=1.2, ls=(0, (4, 3)))
        at, place, side = (0.99, float(layer.y or 0.0)), axes.get_yaxis_transform(), {"va": "bottom", "ha": "right"}
    words = axes.text(*at, layer.name, transform=place, fontsize=8, color="#5F6770", zorder=4, **side)  # type: ignore[arg-type]  # they are texts and a number
    words.set_path_effects([withStroke(linewidth=2.5, foreground="white")])  # it stays readable on top of marks


def _dress(axes: "Axes", chart: Chart) -> None:
    from matplotlib.ticker import MaxNLocator

    title = wrap(chart.title, points=PANEL_TITLE, inches=WIDTH - 0.9, bold=True)
    axes.set_title("\n".join(title), fontsize=PANEL_TITLE, color=INK, loc="left", fontweight="bold")
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
    handles, names = axes.get_legend_handles_labels()
    if len(names) > 1:
        axes.legend(handles, names, fontsize=8, frameon=False)


def _along(layer: Layer) -> Sequence[Any]:
    return () if isinstance(layer, Rule | Histogram) else layer.x


def dot_offsets(num: int, width: float) -> list[float]:
    """Horizontal offsets for the dots of one bar, so that equal ones are both visible.

    >>> dot_offsets(1, 0.6), [round(d, 2) for d in dot_offsets(3, 0.6)]
    ([0.0], [-0.15, 0.0, 0.15])
    """
    return [0.0] if num == 1 else [width * 0.5 * (i / (num - 1) - 0.5) for i in range(num)]


def _positions(values: Sequence[Any], places: dict[str, int]) -> list[float]:
    return [places[value] if isinstance(value, str) else v for value, v in zip(values, _numbers(values), strict=True)]


def _numbers(values: Sequence[Any]) -> list[float]:
    return [math.nan if value is None or isinstance(value, str) else float(value) for value in values]
