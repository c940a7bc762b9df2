"""One chart on axes of matplotlib: its marks, scales, labels, title and legend."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from evenly.report import marks
from evenly.report.chart import Bars, Chart, Heat, Histogram, Layer, Line, Points, Rule, bar_colours, layer_colours
from evenly.report.line_breaks import wrap

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH, HEIGHT = 4.6, 3.4  # inches
LABEL = 0.24  # inches of a row with its label
TITLE = 10.5  # points


def height(chart: Chart) -> float:
    """The inches that a chart needs: more than usual where it has many rows.

    >>> bars = Bars("error", [f"a method with a long name, {n}" for n in range(20)], list(range(20)))
    >>> height(Chart("Error", "", "%", [bars], "Twenty bars.")), height(Chart("Error", "", "%", [], "None."))
    (5.8, 3.4)
    """
    return max(HEIGHT, LABEL * len(chart.labels("x")) + 1.0) if is_in_rows(chart) else HEIGHT


def is_in_rows(chart: Chart) -> bool:
    """Whether a chart is drawn with a row per label: more labels than fit below each other's marks."""
    labels = chart.labels("x")
    drawn = [layer for layer in chart.layers if not isinstance(layer, Rule)]
    return len(labels) > 10 and max(map(len, labels)) > 12 and len(drawn) == 1 and isinstance(drawn[0], Bars)


def draw(axes: "Axes", chart: Chart) -> None:
    """Draw a chart on empty axes."""
    if is_in_rows(chart):
        _draw_rows(axes, chart)
    else:
        _draw_upright(axes, chart)


def _draw_upright(axes: "Axes", chart: Chart) -> None:
    places = {label: number for number, label in enumerate(chart.labels("x"))}
    # The first label of an upright axis is at its top, where reading begins.
    heights = {label: -number for number, label in enumerate(chart.labels("y"))}
    # Before the layers: setting a scale later would move what is already drawn.
    if chart.x_log:
        axes.set_xscale("log")
    if chart.y_log:
        axes.set_yscale("log")
    grouped = [layer for layer in chart.layers if isinstance(layer, Bars)]
    for layer, colour in layer_colours(chart):
        if isinstance(layer, Line):
            marks.draw_line(axes, layer, colour, places)
        elif isinstance(layer, Points):
            marks.draw_points(axes, layer, colour, places, heights)
        elif isinstance(layer, Bars):
            hues = bar_colours(chart, layer, colour)
            marks.draw_bars(axes, layer, hues, places, turn=grouped.index(layer), turns=len(grouped))
        elif isinstance(layer, Histogram):
            marks.draw_histogram(axes, layer, colour)
        elif isinstance(layer, Heat):
            marks.draw_heat(axes, layer, places, heights)
        else:
            marks.draw_rule(axes, layer)
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


def _draw_rows(axes: "Axes", chart: Chart) -> None:
    """One layer of bars with a row for each label, read from the top, and its values across."""
    places = {label: number for number, label in enumerate(chart.labels("x"))}
    if chart.y_log:
        axes.set_xscale("log")
    for layer, colour in layer_colours(chart):
        if isinstance(layer, Rule):
            marks.draw_rule_across_rows(axes, layer, num_rows=len(places))
        elif isinstance(layer, Bars):
            marks.draw_row_bars(axes, layer, bar_colours(chart, layer, colour), [places[label] for label in layer.x])
    axes.set_yticks(range(len(places)), list(places))
    axes.set_ylim(len(places) + 0.1, -0.6)  # with a line for the names of rules
    if chart.y_limits:
        axes.set_xlim(*chart.y_limits)
    _dress(axes, replace(chart, x=chart.y, y=chart.x, x_range=None))


def _dress(axes: "Axes", chart: Chart) -> None:
    from matplotlib.ticker import MaxNLocator

    title = wrap(chart.title, points=TITLE, inches=WIDTH - 0.9, bold=True)
    axes.set_title("\n".join(title), fontsize=TITLE, color=marks.INK, loc="left", fontweight="bold")
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
