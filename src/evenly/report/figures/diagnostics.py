"""Charts of diagnostics that return more than a number: probes by layer, errors by group, the line between two runs."""

from collections.abc import Mapping
from typing import Any

from evenly.report.chart import Bars, Chart, Line

Measured = Mapping[str, Any]


def layer_probes(measured: Measured) -> Chart | None:
    """The error of the easy and the hard feature's probe at every layer.

    >>> rows = [{"layer": "0", "easy": 0.0, "hard": 0.1}, {"layer": "2", "easy": 0.0, "hard": 0.4}]
    >>> layer_probes({"layer_probes": rows}).layers[1].y
    (10.0, 40.0)
    """
    rows = measured.get("layer_probes")
    if not isinstance(rows, list) or not rows:
        return None
    names = [name for name in ("easy", "hard") if name in rows[0]]
    layers = [str(row["layer"]) for row in rows]
    return Chart(
        "Probing error by layer",
        "input of layer",
        "probing error (%)",
        [
            Line(f"{name} feature", list(range(len(rows))), [100 * row[name] for row in rows], colour=number)
            for number, name in enumerate(names)
        ],
        f"How well each feature can be read at the input of each layer: {', '.join(layers)}. Where a line rises, "
        "the feature is lost.",
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
