"""Charts for the page: plotly's JSON, and the rows behind each chart."""

import math
from collections.abc import Sequence
from typing import Any

from evenly.report.chart import (
    DIVERGING,
    GREY,
    Bars,
    Chart,
    Heat,
    Histogram,
    Layer,
    Line,
    Points,
    Rule,
    coloured,
)

Trace = dict[str, Any]
# What a theme changes; the page applies one of them when the reader asks for it.
THEMES = {
    "light": {"ink": "#24292F", "grid": "#E4E7EB", "line": "#B0B6BD", "ground": "#FFFFFF"},
    "dark": {"ink": "#E6E8EB", "grid": "#31363D", "line": "#545B64", "ground": "#1B1F24"},
}
FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, sans-serif'
MARKS = {"dot": "circle", "cross": "x-thin-open", "tick": "line-ns-open"}


def plot(chart: Chart, *, theme: str = "light") -> dict[str, Any]:
    """A chart as plotly's `data`, `layout` and `config`; the backgrounds are clear, so that either theme shows.

    >>> made = plot(Chart("Error", "epoch", "%", [Line("SGD", [1, 2], [9, float("nan")])], "It falls."))
    >>> made["data"][0]["y"], made["layout"]["xaxis"]["title"]["text"]
    ([9, None], 'epoch')
    """
    traces: list[Trace] = []
    for layer, colour in coloured(chart):
        traces += _traces(layer, colour)
    # Scripts and markup in names would be drawn as markup: plotly knows a little HTML.
    return {"data": traces, "layout": _layout(chart, theme), "config": {"displaylogo": False, "responsive": True}}


def themed(theme: str) -> dict[str, Any]:
    """What changes in any plot's layout when the reader chooses a theme, as `Plotly.relayout` takes it."""
    colours = THEMES[theme]
    changes = {"font.color": colours["ink"], "hoverlabel.bgcolor": colours["ground"]}
    changes |= {"hoverlabel.font.color": colours["ink"], "hoverlabel.bordercolor": colours["line"]}
    for axis in ("xaxis", "yaxis"):
        changes |= {f"{axis}.gridcolor": colours["grid"], f"{axis}.linecolor": colours["line"]}
    return changes


def rows(chart: Chart) -> list[dict[str, Any]]:
    """The numbers of a chart, a row for each mark, for CSV; every row has the same columns.

    >>> rows(Chart("Error", "epoch", "%", [Line("SGD", [1, 2], [9, None])], "It falls."))
    [{'series': 'SGD', 'x': 1, 'y': 9}, {'series': 'SGD', 'x': 2, 'y': None}]
    """
    found = [row for layer in chart.layers for row in _rows(layer)]
    columns = list(dict.fromkeys(name for row in found for name in row))
    return [{name: row.get(name) for name in columns} for row in found]


def _rows(layer: Layer) -> list[dict[str, Any]]:
    if isinstance(layer, Rule):
        return [{"series": layer.name, "x": layer.x, "y": layer.y}]
    if isinstance(layer, Heat):
        return [
            {"series": layer.name, "x": x, "y": y, "value": z}
            for y, row in zip(layer.y, _clean(layer.z), strict=True)
            for x, z in zip(layer.x, row, strict=True)
        ]
    if isinstance(layer, Histogram):
        return [
            {"series": layer.name, "low": low, "high": high, "y": count}
            for low, high, count in zip(layer.edges, layer.edges[1:], layer.counts, strict=False)
        ]
    alongside = [name for name in ("x", "y", "low", "high", "text") if getattr(layer, name, None) is not None]
    columns = [_clean(getattr(layer, name)) for name in alongside]
    found = [{"series": layer.name, **dict(zip(alongside, row, strict=True))} for row in zip(*columns, strict=True)]
    if isinstance(layer, Bars) and layer.dots is not None:
        for row, dots in zip(found, layer.dots, strict=True):
            row |= {f"value {number}": value for number, value in enumerate(_clean(dots), 1)}
    return found


def _traces(layer: Layer, colour: str) -> list[Trace]:
    if isinstance(layer, Line):
        return [*_bands(layer, colour), _line(layer, colour)]
    if isinstance(layer, Points):
        return [_points(layer, colour)]
    if isinstance(layer, Bars):
        return _bars(layer, colour)
    if isinstance(layer, Histogram):
        middles = [(a + b) / 2 for a, b in zip(layer.edges, layer.edges[1:], strict=False)]
        widths = [b - a for a, b in zip(layer.edges, layer.edges[1:], strict=False)]
        marker = {"color": _clear(colour, 0.45), "line": {"color": colour, "width": 1}}
        return [
            {"type": "bar", "name": _escaped(layer.name), "x": middles, "y": _clean(layer.counts), "width": widths}
            | {"marker": marker}
        ]
    return [_heat(layer)] if isinstance(layer, Heat) else []


def _line(layer: Line, colour: str) -> Trace:
    style = {"color": colour, "width": 2, "dash": "dash" if layer.dashed else "solid"}
    return {
        "type": "scatter",
        "mode": "lines+markers" if len(layer.x) <= 40 else "lines",
        "name": _escaped(layer.name),
        "legendgroup": _escaped(layer.name),
        "x": _clean(layer.x),
        "y": _clean(layer.y),
        "line": style,
        "marker": {"color": colour, "size": 8 if len(layer.x) == 1 else 4},
    }


def _bands(layer: Line, colour: str) -> list[Trace]:
    """The band as one closed shape for each stretch without a gap: plotly would fill across gaps."""
    if layer.low is None or layer.high is None:
        return []
    stretches: list[list[tuple[Any, Any, Any]]] = [[]]
    for point in zip(_clean(layer.x), _clean(layer.low), _clean(layer.high), strict=True):
        if None in point:
            stretches.append([])
        else:
            stretches[-1].append(point)
    return [
        {
            "type": "scatter",
            "mode": "lines",
            "x": [x for x, _, _ in stretch] + [x for x, _, _ in reversed(stretch)],
            "y": [low for _, low, _ in stretch] + [high for _, _, high in reversed(stretch)],
            "fill": "toself",
            "fillcolor": _clear(colour, 0.18),
            "line": {"width": 0},
            "hoverinfo": "skip",
            "showlegend": False,
            "legendgroup": _escaped(layer.name),
        }
        for stretch in stretches
        if stretch
    ]


def _points(layer: Points, colour: str) -> Trace:
    marker: dict[str, Any] = {"color": colour, "size": 6, "opacity": 0.75, "symbol": MARKS[layer.mark]}
    if layer.mark != "dot":
        marker |= {"size": 14 if layer.mark == "tick" else 9, "line": {"width": 1.6, "color": colour}}
    trace: Trace = {"type": "scatter", "mode": "markers", "name": _escaped(layer.name), "marker": marker}
    trace |= {"x": _clean(layer.x), "y": _clean(layer.y)}
    if layer.text is not None:
        trace |= {"text": [_escaped(text) for text in layer.text], "hovertemplate": "%{text}<extra></extra>"}
    return trace


def _bars(layer: Bars, colour: str) -> list[Trace]:
    # Bars, means and dots of one layer share an offset group: they stand side by side with those of the others.
    trace: Trace = {"name": _escaped(layer.name), "x": [_escaped(label) for label in layer.x], "y": _clean(layer.y)}
    trace |= {"offsetgroup": layer.name, "legendgroup": _escaped(layer.name)}
    if layer.bar:
        trace |= {"type": "bar", "marker": {"color": _clear(colour, 0.6), "line": {"color": colour, "width": 1}}}
    else:
        trace |= {"type": "scatter", "mode": "markers", "marker": {"color": colour, "size": 10, "symbol": "diamond"}}
    if layer.low is not None and layer.high is not None:
        trace["error_y"] = {
            "type": "data",
            "symmetric": False,
            "array": _gaps(layer.high, layer.y),
            "arrayminus": _gaps(layer.y, layer.low),
            "color": GREY,
            "thickness": 1.6,
            "width": 5,
        }
    if layer.dots is None:
        return [trace]
    pairs = [(label, dot) for label, dots in zip(trace["x"], layer.dots, strict=True) for dot in _clean(dots)]
    dots: Trace = {
        # Boxes that are not seen, with all their points: plotly's own way of spreading marks beside one another.
        "type": "box",
        "name": f"{_escaped(layer.name)}: each",
        "x": [label for label, _ in pairs],
        "y": [dot for _, dot in pairs],
        "boxpoints": "all",
        "jitter": 0.4,
        "pointpos": 0,
        "fillcolor": "rgba(0,0,0,0)",
        "line": {"color": "rgba(0,0,0,0)"},
        "marker": {"color": colour, "size": 6, "line": {"color": "#FFFFFF", "width": 1}},
        "hoveron": "points",
        "showlegend": False,
        "offsetgroup": layer.name,
        "legendgroup": _escaped(layer.name),
    }
    return [trace, dots]


def _heat(layer: Heat) -> Trace:
    low, high = layer.limits
    scale: Any = [[i / 2, colour] for i, colour in enumerate(DIVERGING)] if layer.diverging else "Viridis"
    return {
        "type": "heatmap",
        "name": "",
        "x": _clean(layer.x),
        "y": _clean(layer.y),
        "z": _clean(layer.z),
        "zmin": low,
        "zmax": high,
        "colorscale": scale,
        "hoverongaps": False,
        "colorbar": {"title": {"text": _escaped(layer.name), "side": "right"}, "thickness": 12, "outlinewidth": 0},
    }


def _layout(chart: Chart, theme: str) -> dict[str, Any]:
    colours = THEMES[theme]
    heat = any(isinstance(layer, Heat) for layer in chart.layers)
    boxed = any(isinstance(layer, Bars) and layer.dots is not None for layer in chart.layers)
    axis = {"gridcolor": colours["grid"], "linecolor": colours["line"], "zeroline": False, "showgrid": not heat}
    axis |= {"automargin": True, "ticks": "outside", "ticklen": 4, "tickcolor": "rgba(0,0,0,0)"}
    named = sum(bool(getattr(layer, "name", "")) for layer in chart.layers if not isinstance(layer, Rule | Heat))
    layout: dict[str, Any] = {
        "xaxis": {**axis, "title": {"text": _escaped(chart.x)}, **_scaled(chart.x_log, chart.x_range)},
        "yaxis": {**axis, "title": {"text": _escaped(chart.y)}, **_scaled(chart.y_log, chart.y_range)},
        "font": {"family": FONT, "size": 12, "color": colours["ink"]},
        "paper_bgcolor": "rgba(0,0,0,0)",
        # The ground shows where a heat map knows nothing.
        "plot_bgcolor": _clear(GREY, 0.3) if heat else "rgba(0,0,0,0)",
        "margin": {"l": 56, "r": 16, "t": 12, "b": 44},
        "showlegend": named > 1,
        "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom", "bgcolor": "rgba(0,0,0,0)"},
        "hovermode": "closest",
        "hoverlabel": {"bgcolor": colours["ground"], "bordercolor": colours["line"], "font": {"color": colours["ink"]}},
        "shapes": [_rule(layer) for layer in chart.layers if isinstance(layer, Rule)],
    }
    if boxed:
        layout |= {"boxmode": "group", "barmode": "group"}
    if chart.categories:
        layout["xaxis"] |= {"type": "category", "categoryarray": [_escaped(name) for name in chart.categories]}
        layout["xaxis"] |= {"categoryorder": "array"}
    return layout


def _rule(rule: Rule) -> dict[str, Any]:
    shape: dict[str, Any] = {"type": "line", "line": {"color": GREY, "width": 1.5, "dash": "dash"}}
    if rule.x is not None:
        shape |= {"x0": rule.x, "x1": rule.x, "y0": 0, "y1": 1, "yref": "paper"}
        place = {"textposition": "end", "textangle": -90, "yanchor": "top"}
    else:
        shape |= {"y0": rule.y, "y1": rule.y, "x0": 0, "x1": 1, "xref": "paper"}
        place = {"textposition": "end", "yanchor": "bottom"}
    return shape | {"label": {"text": _escaped(rule.name), "font": {"color": GREY, "size": 11}, **place}}


def _scaled(log: bool, limits: tuple[float, float] | None) -> dict[str, Any]:
    if limits is not None and log:
        limits = (math.log10(limits[0]), math.log10(limits[1]))
    return ({"type": "log"} if log else {}) | ({"range": list(limits)} if limits else {})


def _gaps(above: Sequence[Any], below: Sequence[Any]) -> list[Any]:
    pairs = zip(_clean(above), _clean(below), strict=True)
    return [None if a is None or b is None else a - b for a, b in pairs]


def _clear(colour: str, opacity: float) -> str:
    """A colour one can see through: `#0072B2` at 0.2 is `rgba(0,114,178,0.2)`."""
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},{opacity})"


def _escaped(text: str) -> str:
    """Plotly draws a little HTML in texts: a name is only a name."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _clean(values: Sequence[Any]) -> list[Any]:
    """As JSON can say it: what is not a finite number is null."""
    return [
        _clean(v) if isinstance(v, list | tuple) else None if isinstance(v, float) and not math.isfinite(v) else v
        for v in values
    ]
