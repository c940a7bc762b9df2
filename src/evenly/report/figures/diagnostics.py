"""Charts of diagnostics: their numbers as bars, probes by layer, errors by group, the line between two runs."""

import math
from collections.abc import Mapping
from typing import Any

from evenly.measurements import Measurement
from evenly.report.chart import Bars, Chart, Line

Measured = Mapping[str, Any]


def numbers(measured: Mapping[str, Measured], entry: Measurement) -> Chart | None:
    """The `bars` of a measurement, a colour for each run, with whiskers of two standard errors where they are known.

    >>> from evenly.measurements import MEASUREMENTS
    >>> rows = {"plain": {"m_sharpness": 0.5, "m_sharpness_error": 0.1}, "sam": {"m_sharpness": 0.2}}
    >>> [(layer.name, layer.y, layer.low) for layer in numbers(rows, MEASUREMENTS["m_sharpness"]).layers]
    [('plain', (0.5,), (0.3,)), ('sam', (0.2,), (None,))]
    """
    known = {
        name: row for name, row in measured.items() if any(_number(row.get(key)) is not None for key in entry.bars)
    }
    keys = [key for key in entry.bars if any(_number(row.get(key)) is not None for row in known.values())]
    if not keys:
        return None
    layers = []
    for number, (name, row) in enumerate(known.items()):
        values = [_number(row.get(key)) for key in keys]
        errors = [_number(row.get(f"{key}_error")) for key in keys]
        pairs = [(v, e) if v is not None and e is not None else None for v, e in zip(values, errors, strict=True)]
        low, high = ([None if pair is None else pair[0] + k * pair[1] for pair in pairs] for k in (-2, 2))
        labels = [entry.bars[key] for key in keys]
        layers.append(Bars(name, labels, values, low, high, colour=number, bar=not entry.log))
    some = any(low is not None for bars in layers for low in bars.low or ())
    whiskers = " Whiskers are two standard errors." if some else ""
    help = entry.help.replace("--rho", "ρ")
    sentence = f"{help[0].upper()}{help[1:]} ({entry.source}), at the last epoch measured.{whiskers}"
    return Chart(entry.title, "", entry.unit, layers, sentence, y_log=entry.log)


def _number(value: Any) -> float | None:
    return value if isinstance(value, int | float) and math.isfinite(value) else None


def layer_probes(measured: Measured) -> Chart | None:
    """The error of every attribute's probe at every layer.

    >>> rows = [{"layer": "0", "easy": 0.0, "hard": 0.1}, {"layer": "2", "easy": 0.0, "hard": 0.4}]
    >>> layer_probes({"layer_probes": rows}).layers[1].y
    (10.0, 40.0)
    """
    rows = measured.get("layer_probes")
    if not isinstance(rows, list) or not rows:
        return None
    names = [name for name in rows[0] if name not in ("layer", "features")]
    layers = [str(row["layer"]) for row in rows]
    return Chart(
        "Probing error by layer",
        "input of layer",
        "probing error (%)",
        [
            Line(f"{name} feature", layers, [100 * row[name] for row in rows], colour=number)
            for number, name in enumerate(names)
        ],
        "How well each feature can be read at the input of each layer, first to last. Where a line rises, the feature "
        "is lost.",
    )


def worst_groups(measured: Measured) -> Chart | None:
    """The error of every group, the worst first, with intervals.

    >>> worst_groups({"groups": [{"name": "a", "error": 0.2, "interval": [0.1, 0.3], "examples": 9}]}).layers[0].y
    (20.0,)
    """
    rows = measured.get("groups")
    if not isinstance(rows, list) or not rows:
        return None
    low, high = ([100 * row["interval"][end] for row in rows] for end in (0, 1))
    return Chart(
        "Error by group",
        "",
        "error (%)",
        [Bars("error", [row["name"] for row in rows], [100 * row["error"] for row in rows], low, high)],
        f"The worst group errs in {100 * rows[0]['error']:.1f}% of {rows[0]['examples']} examples.",
    )


def mode_connectivity(measured: Measured) -> Chart | None:
    """The loss on the straight line between two runs.

    >>> line = {"between": ["a", "b"], "shares": [0, 1], "losses": [0.1, 0.2], "errors": [0.0, 0.0]}
    >>> mode_connectivity({"mode_connectivity": line, "barrier": 0.0}).layers[0].y
    (0.1, 0.2)
    """
    line = measured.get("mode_connectivity")
    if not isinstance(line, Mapping) or not line.get("losses"):
        return None
    first, second = line["between"]
    return Chart(
        "Loss between two runs",
        f"share of the way from {first} to {second}",
        "training loss",
        [Line("loss", line["shares"], line["losses"])],
        f"The highest rise above the straight line between the ends is {measured.get('barrier', 0.0):.3g}: none means "
        "that both runs lie in one basin.",
    )
