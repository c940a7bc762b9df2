"""Charts for the page: plotly's JSON, and the rows behind each chart."""

import math
import textwrap
from itertools import repeat
from typing import Any, Literal

from evenly.report.chart import GREY, Bars, Chart, Heat, Histogram, Layer, Rule, coloured
from evenly.report.traces import Trace, clean, clear, escaped, traces

# What a theme changes; the page applies one of them when the reader asks for it.
THEMES = {
    "light": {"ink": "#24292F", "grid": "#E4E7EB", "line": "#B0B6BD", "ground": "#FFFFFF"},
    "dark": {"ink": "#E6E8EB", "grid": "#31363D", "line": "#545B64", "ground": "#1B1F24"},
}
# The toolbar comes when the pointer does, with what a mouse alone cannot do; a page on glass takes it away.
CONFIG = {
    "displaylogo": False,
    "responsive": True,
    "displayModeBar": "hover",
    "modeBarButtons": [["zoom2d", "pan2d", "resetScale2d", "toImage"]],
}
FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, sans-serif'


def plot(chart: Chart, *, theme: str = "light") -> dict[str, Any]:
    """A chart as plotly's `data`, `layout` and `config`; the backgrounds are clear, so that either theme shows.

    >>> from evenly.report.chart import Line
    >>> made = plot(Chart("Error", "epoch", "%", [Line("SGD", [1, 2], [9, float("nan")])], "It falls."))
    >>> made["data"][0]["y"], made["layout"]["xaxis"]["title"]["text"]
    ([9, None], 'epoch')
    """
    drawn: list[Trace] = []
    for layer, colour in coloured(chart):
        drawn += traces(layer, colour)
    return {"data": drawn, "layout": _layout(chart, theme), "config": dict(CONFIG)}


def themed(theme: str) -> dict[str, Any]:
    """What changes in any plot's layout when the reader chooses a theme, as `Plotly.relayout` takes it."""
    colours = THEMES[theme]
    changes = {"font.color": colours["ink"], "hoverlabel.bgcolor": colours["ground"]}
    changes |= {"hoverlabel.font.color": colours["ink"], "hoverlabel.bordercolor": colours["line"]}
    changes |= {f"modebar.{name}": value for name, value in _toolbar(theme).items()}
    for axis in ("xaxis", "yaxis"):
        changes |= {f"{axis}.gridcolor": colours["grid"], f"{axis}.linecolor": colours["line"]}
    return changes


def table(chart: Chart) -> tuple[list[str], list[tuple[Any, ...]]]:
    """The numbers of a chart, the names of their columns and a row for each mark, for CSV.

    >>> from evenly.report.chart import Line
    >>> table(Chart("Error", "epoch", "%", [Line("SGD", [1, 2], [9, None]), Rule(y=5, name="goal")], "It falls."))
    (['series', 'x', 'y'], [('SGD', 1, 9), ('SGD', 2, None), ('goal', None, 5)])
    """
    parts = [_columns(layer) for layer in chart.layers]
    names = list(dict.fromkeys(name for part in parts for name in part))
    found: list[tuple[Any, ...]] = []
    for part in parts:
        found += zip(*(part.get(name) or repeat(None, len(part["series"])) for name in names), strict=True)
    return names, found


def _columns(layer: Layer) -> dict[str, list[Any]]:
    """The columns of one layer, by name, all of one length."""
    if isinstance(layer, Rule):
        return {"series": [layer.name], "x": [layer.x], "y": [layer.y]}
    if isinstance(layer, Heat):
        value = [z for row in clean(layer.z) for z in row]
        x, y = [x for _ in layer.y for x in layer.x], [y for y in layer.y for _ in layer.x]
        return {"series": [layer.name] * len(value), "x": x, "y": y, "value": value}
    if isinstance(layer, Histogram):
        edges = list(layer.edges)
        return {
            "series": [layer.name] * len(layer.counts),
            "low": edges[:-1],
            "high": edges[1:],
            "y": list(layer.counts),
        }
    alongside = {name: getattr(layer, name, None) for name in ("x", "y", "low", "high", "text")}
    found: dict[str, list[Any]] = {"series": [layer.name] * len(layer.x)}
    found |= {name: clean(values) for name, values in alongside.items() if values is not None}
    if isinstance(layer, Bars) and layer.dots is not None:
        dots = [clean(values) for values in layer.dots]
        for number in range(max(map(len, dots), default=0)):
            found[f"value {number + 1}"] = [values[number] if number < len(values) else None for values in dots]
    return found


def _layout(chart: Chart, theme: str) -> dict[str, Any]:
    colours = THEMES[theme]
    rules = [layer for layer in chart.layers if isinstance(layer, Rule) and _has_place(layer, chart)]
    heat = any(isinstance(layer, Heat) for layer in chart.layers)
    boxed = any(isinstance(layer, Bars) and layer.dots is not None for layer in chart.layers)
    axis = {"gridcolor": colours["grid"], "linecolor": colours["line"], "zeroline": False, "showgrid": not heat}
    axis |= {"automargin": True, "ticks": "outside", "ticklen": 4, "tickcolor": "rgba(0,0,0,0)"}
    named = sum(bool(getattr(layer, "name", "")) for layer in chart.layers if not isinstance(layer, Rule | Heat))
    layout: dict[str, Any] = {
        "xaxis": {**axis, "title": {"text": escaped(chart.x)}, **_scaled(chart, "x")},
        "yaxis": {**axis, "title": {"text": escaped(chart.y)}, **_scaled(chart, "y")},
        "font": {"family": FONT, "size": 12, "color": colours["ink"]},
        "paper_bgcolor": "rgba(0,0,0,0)",
        # The ground shows where a heat map knows nothing.
        "plot_bgcolor": clear(GREY, 0.3) if heat else "rgba(0,0,0,0)",
        "margin": {"l": 56, "r": 16, "t": 12, "b": 44},
        "showlegend": named > 1,
        "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom", "bgcolor": "rgba(0,0,0,0)"},
        "hovermode": "closest",
        "hoverlabel": {"bgcolor": colours["ground"], "bordercolor": colours["line"], "font": {"color": colours["ink"]}},
        "modebar": _toolbar(theme),
        "shapes": [_rule(layer) for layer in rules],
        "annotations": [_rule_name(layer, chart) for layer in rules if layer.name],
    }
    if chart.labels("x"):
        # Few bars need not be broad.
        layout["bargap"] = 0.6 if len(chart.labels("x")) <= 4 else 0.25
    if boxed:
        layout |= {"boxmode": "group", "barmode": "group", "boxgap": layout["bargap"]}
    return layout


def _toolbar(theme: str) -> dict[str, str]:
    """Said in full: over a clear paper plotly would put a dark slab behind its buttons."""
    colours = THEMES[theme]
    return {"bgcolor": "rgba(0,0,0,0)", "color": colours["line"], "activecolor": colours["ink"]}


def _has_place(rule: Rule, chart: Chart) -> bool:
    """Whether a rule lies on the axes at all: zero has no place on a logarithmic one."""
    value, log = (rule.x, chart.x_log) if rule.x is not None else (rule.y, chart.y_log)
    return value is not None and math.isfinite(value) and (value > 0 or not log)


def _rule(rule: Rule) -> dict[str, Any]:
    shape: dict[str, Any] = {"type": "line", "line": {"color": GREY, "width": 1.5, "dash": "dash"}}
    if rule.x is not None:
        return shape | {"x0": rule.x, "x1": rule.x, "y0": 0, "y1": 1, "yref": "paper"}
    return shape | {"y0": rule.y, "y1": rule.y, "x0": 0, "x1": 1, "xref": "paper"}


def _rule_name(rule: Rule, chart: Chart) -> dict[str, Any]:
    note: dict[str, Any] = {"text": escaped(rule.name), "showarrow": False, "font": {"color": GREY, "size": 11}}
    # On a logarithmic axis plotly places shapes by value, but notes by its logarithm.
    if rule.x is not None:
        x = math.log10(rule.x) if chart.x_log else rule.x
        return note | {"x": x, "y": 1, "yref": "paper", "xanchor": "right", "yanchor": "top", "textangle": -90}
    y = math.log10(rule.y or 1.0) if chart.y_log else rule.y
    return note | {"x": 1, "y": y, "xref": "paper", "xanchor": "right", "yanchor": "bottom"}


def _scaled(chart: Chart, axis: Literal["x", "y"]) -> dict[str, Any]:
    """What is said of an axis: its labels in their order, its logarithm with a tick per power, its range."""
    if labels := [escaped(label) for label in chart.labels(axis)]:
        # The first label of an upright axis is at its top, where reading begins.
        upright: dict[str, Any] = {}
        if axis == "y":
            # Long labels are broken in two: on a phone they would take all the width.
            broken = ["<br>".join(textwrap.wrap(label, max(len(label) // 2 + 4, 14))) for label in labels]
            upright = {"autorange": "reversed", "tickvals": labels, "ticktext": broken}
        return {"type": "category", "categoryorder": "array", "categoryarray": labels, **upright}
    log, limits = (chart.x_log, chart.x_range) if axis == "x" else (chart.y_log, chart.y_range)
    if not log and axis == "y":
        return {"range": list(limits)} if limits else {}
    layers = [layer for layer in chart.layers if not isinstance(layer, Rule)]
    values = [v for layer in layers for v in getattr(layer, axis, None) or () if isinstance(v, int | float)]
    if not log:
        # Epochs have no fractions.
        few = values and all(isinstance(v, int) for v in values) and max(values) - min(values) <= 10
        return ({"range": list(limits)} if limits else {}) | ({"dtick": 1} if few else {})
    values = [v for v in values if 0 < v < math.inf]
    wide = bool(values) and max(values) > 30 * min(values)
    return {
        "type": "log",
        "exponentformat": "power",
        **({"dtick": max(round(math.log10(max(values) / min(values)) / 6), 1)} if wide else {}),
        **({"range": [math.log10(limit) for limit in limits]} if limits else {}),
    }
