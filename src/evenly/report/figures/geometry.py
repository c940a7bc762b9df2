"""The shape of the loss around the weights, and a learning rate's stability, from the measurements of a run."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from evenly.report.chart import Bars, Chart, Line, Points, Rule

Measured = Mapping[str, Any]


def spectrum(measured: Measured) -> Chart | None:
    """The spectral density of the Hessian, and a tick for each of its largest eigenvalues.

    >>> chart = spectrum({"eigenvalues": [4.0, 1.0], "density": {"grid": [0, 2, 4], "values": [2.0, 0.5, 0.1]}})
    >>> [layer.name for layer in chart.layers]
    ['density', 'largest eigenvalues']
    """
    density, eigenvalues = measured.get("density"), measured.get("eigenvalues")
    layers: list[Line | Points | Bars] = []
    floor = 1.0
    if density and density.get("grid"):
        # One eigenvalue of ten million is a peak of 1e-7 of the largest; far below that is the tail of the smoothing.
        peak = max(density["values"])
        shown = [value if value > peak * 1e-9 else None for value in density["values"]]
        floor = min((value for value in shown if value is not None), default=1.0)
        layers.append(Line("density", density["grid"], shown))
    if eigenvalues and not layers:
        layers.append(Bars("eigenvalue", [f"λ{i}" for i in range(1, len(eigenvalues) + 1)], eigenvalues))
    elif eigenvalues:
        heights = [floor] * len(eigenvalues)
        text = [f"λ{i} = {value:.4g}" for i, value in enumerate(eigenvalues, 1)]
        layers.append(Points("largest eigenvalues", eigenvalues, heights, text, colour=1, mark="tick"))
    if not layers:
        return None
    sentence = "The eigenvalues of the loss's Hessian"
    if measured.get("lambda_max") is not None:
        sentence += f": the largest is {measured['lambda_max']:.4g}"
        if measured.get("lambda_ratio_5") is not None:
            sentence += f", {measured['lambda_ratio_5']:.3g} times the fifth"
        if measured.get("trace") is not None:
            sentence += f"; the trace, which sums all of them, is {measured['trace']:.4g}"
    return Chart(
        "Spectrum of the Hessian",
        "eigenvalue" if density else "",
        "density" if density else "eigenvalue",
        layers,
        sentence + ". Flat minima have small ones.",
        y_log=bool(density),
    )


def over_training(measurements: Mapping[str, Sequence[Measured]], what: str, *, name: str = "") -> Chart | None:
    """One measured number over the epochs at which it was measured, a line for each run measured more than once.

    >>> over_training({"useful": [{"epoch": 1, "gini": 0.4}, {"epoch": 5, "gini": 0.6}]}, "gini").layers[0].x
    (1, 5)
    """
    layers = []
    for number, (run, rows) in enumerate(measurements.items()):
        known = [row for row in rows if isinstance(row.get(what), int | float)]
        if len(known) > 1:
            layers.append(Line(run, [row["epoch"] for row in known], [row[what] for row in known], colour=number))
    if not layers:
        return None
    shown = name or what.replace("_", " ")
    return Chart(
        f"{shown[0].upper()}{shown[1:]} over training", "epoch", shown, layers, f"{shown}, at each epoch measured."
    )


def stability_position(report: Measured) -> Chart | None:
    """A run's learning rate among the criteria of stability, from `stability.json`.

    >>> made = stability_position({"lr": 0.1, "methods": {"SGD": {"criteria": [
    ...     {"name": "exact, mean square", "eta": 0.5, "says": "both"}]}}})
    >>> made.layers[0].x, made.layers[1].x
    ((0.5,), 0.1)
    """
    layers: list[Points | Rule] = []
    shown, without = [], []
    for number, (method, method_report) in enumerate(report.get("methods", {}).items()):
        # Neither infinity nor zero has a place on a logarithmic axis.
        known = [row for row in method_report["criteria"] if row.get("eta") and 0 < row["eta"] < math.inf]
        without += [
            f"{row['name']} for {method}" for row in method_report["criteria"] if row.get("eta") in (None, math.inf)
        ]
        text = [f"{method}, {row['name']}: {row['eta']:.4g} ({row.get('says', '')})" for row in known]
        names = [row["name"] for row in known]
        layers += [Points(method, [row["eta"] for row in known], names, text, colour=number)] if known else []
        if method_report.get("stands"):
            shown.append(f"{method} is {method_report['stands']}")
    if not layers:
        return None
    if report.get("lr"):
        layers.append(Rule(x=report["lr"], name=f"this run: {report['lr']:.3g}"))
    return Chart(
        "Where the learning rate stands",
        "critical learning rate",
        "",
        layers,
        "The learning rates at which each criterion places the edge of stability"
        + (f". {'; '.join(shown)}." if shown else ".")
        + (f" Without a finite edge, and so not drawn: {', '.join(without)}." if without else ""),
        x_log=True,
    )
