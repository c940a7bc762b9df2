"""Charts for the page: JSON for its script, and the rows behind each chart."""

import math
from collections.abc import Sequence
from itertools import repeat
from typing import Any, Literal

from evenly.report.chart import Bars, Chart, Heat, Histogram, Layer, Line, Points, Rule, bar_colours, layer_colours


def plot(chart: Chart) -> dict[str, Any]:
    """A chart in the format of `templates/chart.js`: two axes, and the layers with their colours.

    >>> made = plot(Chart("Error", "epoch", "%", [Line("SGD", [1, 2], [9, float("nan")])], "It falls."))
    >>> made["layers"][0]["y"], made["x"]
    ([9, None], {'label': 'epoch', 'log': False, 'range': None, 'labels': None, 'whole': True})
    """
    layers = [_layer(chart, layer, colour) for layer, colour in layer_colours(chart) if _has_place(layer, chart)]
    return {"x": _axis(chart, "x"), "y": _axis(chart, "y"), "layers": layers}


def table(chart: Chart) -> tuple[list[str], list[tuple[Any, ...]]]:
    """The numbers of a chart, the names of their columns and a row for each mark, for CSV.

    >>> table(Chart("Error", "epoch", "%", [Line("SGD", [1, 2], [9, None]), Rule(y=5, name="goal")], "It falls."))
    (['series', 'x', 'y'], [('SGD', 1, 9), ('SGD', 2, None), ('goal', None, 5)])
    """
    parts = [_columns(layer) for layer in chart.layers]
    names = list(dict.fromkeys(name for part in parts for name in part))
    rows: list[tuple[Any, ...]] = []
    for part in parts:
        rows += zip(*(part.get(name) or repeat(None, len(part["series"])) for name in names), strict=True)
    return names, rows


def finite(values: Sequence[Any]) -> list[Any]:
    """The values as JSON can hold them: numbers that are not finite become null.

    >>> finite([1.0, math.inf, "a", (math.nan, 2)])
    [1.0, None, 'a', [None, 2]]
    """
    if {type(value) for value in values} <= {int, str}:
        return list(values)
    return [
        (v if -math.inf < v < math.inf else None)
        if type(v) is float
        else finite(v)
        if isinstance(v, list | tuple)
        else v
        for v in values
    ]


def _axis(chart: Chart, axis: Literal["x", "y"]) -> dict[str, Any]:
    label, log, limits = (
        (chart.x, chart.x_log, chart.x_range) if axis == "x" else (chart.y, chart.y_log, chart.y_limits)
    )
    numbers = [v for layer in chart.layers if not isinstance(layer, Rule | Histogram) for v in getattr(layer, axis)]
    return {
        "label": label,
        "log": log,
        "range": list(limits) if limits else None,
        "labels": chart.labels(axis) or None,
        "whole": axis == "x" and bool(numbers) and all(isinstance(v, int) for v in numbers),  # epochs have no fractions
    }


def _layer(chart: Chart, layer: Layer, colour: str) -> dict[str, Any]:
    entry: dict[str, Any] = {"kind": type(layer).__name__.lower(), "name": layer.name}
    if isinstance(layer, Rule):
        return entry | {"x": layer.x, "y": layer.y}
    if isinstance(layer, Heat):
        entry |= {"z": finite(layer.z), "limits": list(layer.limits), "diverging": layer.diverging}
        entry |= {"values": layer.show_values}
    if isinstance(layer, Histogram):
        return entry | {"colour": colour, "edges": list(layer.edges), "counts": finite(layer.counts)}
    entry |= {"x": finite(layer.x), "y": finite(layer.y)}
    if isinstance(layer, Points):
        entry |= {"colour": colour, "mark": layer.mark, "text": list(layer.text) if layer.text is not None else None}
    elif isinstance(layer, Bars):
        entry |= {"colours": bar_colours(chart, layer, colour), "bar": layer.bar, "dots": _optional(layer.dots)}
    elif isinstance(layer, Line):
        entry |= {"colour": colour, "dashed": layer.dashed}
    if isinstance(layer, Line | Bars):
        entry |= {"low": _optional(layer.low), "high": _optional(layer.high)}
    return entry


def _optional(values: Sequence[Any] | None) -> list[Any] | None:
    return finite(values) if values is not None else None


def _has_place(layer: Layer, chart: Chart) -> bool:
    """Whether a layer has a place on the axes: a rule at zero has none on a logarithmic one."""
    if not isinstance(layer, Rule):
        return True
    value, log = (layer.x, chart.x_log) if layer.x is not None else (layer.y, chart.y_log)
    return value is not None and math.isfinite(value) and (value > 0 or not log)


def _columns(layer: Layer) -> dict[str, list[Any]]:
    """The columns of one layer, by name, all of one length."""
    if isinstance(layer, Rule):
        return {"series": [layer.name], "x": [layer.x], "y": [layer.y]}
    if isinstance(layer, Heat):
        value = [z for row in finite(layer.z) for z in row]
        x, y = [x for _ in layer.y for x in layer.x], [y for y in layer.y for _ in layer.x]
        return {"series": [layer.name] * len(value), "x": x, "y": y, "value": value}
    if isinstance(layer, Histogram):
        low, high = list(layer.edges[:-1]), list(layer.edges[1:])
        return {"series": [layer.name] * len(low), "low": low, "high": high, "y": list(layer.counts)}
    alongside = {name: getattr(layer, name, None) for name in ("x", "y", "low", "high", "text")}
    columns: dict[str, list[Any]] = {"series": [layer.name] * len(layer.x)}
    columns |= {name: finite(values) for name, values in alongside.items() if values is not None}
    if isinstance(layer, Bars) and layer.dots is not None:
        dots = [finite(values) for values in layer.dots]
        for number in range(max(map(len, dots), default=0)):
            columns[f"value {number + 1}"] = [values[number] if number < len(values) else None for values in dots]
    return columns
