"""The layers of a chart as plotly draws them."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from evenly.report.chart import DIVERGING, GREY, Bars, Heat, Histogram, Layer, Line, Points

Trace = dict[str, Any]
MARKS = {"dot": "circle", "cross": "x-thin-open", "tick": "line-ns-open"}


def traces(layer: Layer, colour: str) -> list[Trace]:
    """What plotly draws for one layer; a rule is a part of its layout and draws nothing here."""
    if isinstance(layer, Line):
        return [*_bands(layer, colour), _line(layer, colour)]
    if isinstance(layer, Points):
        return [_points(layer, colour)]
    if isinstance(layer, Bars):
        return _bars(layer, colour)
    if isinstance(layer, Histogram):
        middles = [(a + b) / 2 for a, b in pairwise(layer.edges)]
        widths = [b - a for a, b in pairwise(layer.edges)]
        marker = {"color": clear(colour, 0.6), "line": {"color": colour, "width": 1}}
        return [
            {"type": "bar", "name": escaped(layer.name), "x": middles, "y": clean(layer.counts), "width": widths}
            | {"marker": marker}
        ]
    return [_heat(layer)] if isinstance(layer, Heat) else []


def _line(layer: Line, colour: str) -> Trace:
    style = {"color": colour, "width": 2, "dash": "dash" if layer.dashed else "solid"}
    return {
        "type": "scatter",
        "mode": "lines+markers" if len(layer.x) <= 12 else "lines",
        "name": escaped(layer.name),
        "legendgroup": escaped(layer.name),
        "x": placed(layer.x),
        "y": clean(layer.y),
        "line": style,
        "marker": {"color": colour, "size": 8 if len(layer.x) == 1 else 4},
    }


def _bands(layer: Line, colour: str) -> list[Trace]:
    """The band as one closed shape for each stretch without a gap: plotly would fill across gaps."""
    if layer.low is None or layer.high is None:
        return []
    stretches: list[list[tuple[Any, Any, Any]]] = [[]]
    for point in zip(placed(layer.x), clean(layer.low), clean(layer.high), strict=True):
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
            "fillcolor": clear(colour, 0.18),
            "line": {"width": 0},
            "hoverinfo": "skip",
            "showlegend": False,
            "legendgroup": escaped(layer.name),
        }
        for stretch in stretches
        if stretch
    ]


def _points(layer: Points, colour: str) -> Trace:
    marker: dict[str, Any] = {"color": colour, "size": 6, "opacity": 0.85, "symbol": MARKS[layer.mark]}
    if layer.mark != "dot":
        marker |= {"size": 14 if layer.mark == "tick" else 9, "line": {"width": 1.6, "color": colour}}
    trace: Trace = {"type": "scatter", "mode": "markers", "name": escaped(layer.name), "marker": marker}
    trace |= {"x": placed(layer.x), "y": placed(layer.y)}
    if layer.text is not None:
        trace |= {"text": [escaped(text) for text in layer.text], "hovertemplate": "%{text}<extra></extra>"}
    return trace


def _bars(layer: Bars, colour: str) -> list[Trace]:
    # Bars, means and dots of one layer share an offset group: they stand side by side with those of the others.
    trace: Trace = {"name": escaped(layer.name), "x": [escaped(label) for label in layer.x], "y": clean(layer.y)}
    trace |= {"offsetgroup": layer.name, "legendgroup": escaped(layer.name)}
    if layer.bar:
        trace |= {"type": "bar", "marker": {"color": clear(colour, 0.85), "line": {"color": colour, "width": 1}}}
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
    pairs = [(label, dot) for label, dots in zip(trace["x"], layer.dots, strict=True) for dot in clean(dots)]
    dots: Trace = {
        # Boxes that are not seen, with all their points: plotly's own way of spreading marks beside one another.
        "type": "box",
        "name": f"{escaped(layer.name)}: each",
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
        "legendgroup": escaped(layer.name),
    }
    return [trace, dots]


def _heat(layer: Heat) -> Trace:
    low, high = layer.limits
    scale: Any = [[i / 2, colour] for i, colour in enumerate(DIVERGING)] if layer.diverging else "Viridis"
    return {
        "type": "heatmap",
        "name": "",
        "x": placed(layer.x),
        "y": placed(layer.y),
        "z": clean(layer.z),
        "zmin": low,
        "zmax": high,
        "colorscale": scale,
        "hoverongaps": False,
        "colorbar": {"title": {"text": escaped(layer.name), "side": "right"}, "thickness": 12, "outlinewidth": 0},
    }


def _gaps(above: Sequence[Any], below: Sequence[Any]) -> list[Any]:
    pairs = zip(clean(above), clean(below), strict=True)
    return [None if a is None or b is None else a - b for a, b in pairs]


def clear(colour: str, opacity: float) -> str:
    """A colour one can see through: `#0072B2` at 0.2 is `rgba(0,114,178,0.2)`."""
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},{opacity})"


def escaped(text: str) -> str:
    """Plotly draws a little HTML in texts: a name is only a name."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def clean(values: Sequence[Any]) -> list[Any]:
    """As JSON can say it: what is not a finite number is null."""
    if {type(value) for value in values} <= {int, str}:
        return list(values)
    return [
        (v if -math.inf < v < math.inf else None)
        if type(v) is float
        else clean(v)
        if isinstance(v, list | tuple)
        else v
        for v in values
    ]


def placed(values: Sequence[Any]) -> list[Any]:
    """Positions along an axis: numbers, or labels that are only labels."""
    return [escaped(v) if isinstance(v, str) else v for v in clean(values)]
