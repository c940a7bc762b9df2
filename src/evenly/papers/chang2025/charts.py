"""Figure 1 in the paper's form: maps over batch size and coherence, and losses over epochs."""

from collections.abc import Mapping
from typing import Any

from evenly.papers.chang2025.drawing import banded, mean
from evenly.papers.chang2025.figure1 import FEATURES, RATIOS
from evenly.papers.experiment import Measured
from evenly.report.chart import Chart, Heat, Line

# Seen on the dark of what diverges and on the light of what does not.
COLOURS = ("#CC79A7", "#0072B2", "#D55E00")
BOUNDARIES = {"criterion": "criterion", "mean_square": "exact, mean square", "almost_sure": "exact, almost sure"}


def fig1a(measured: Measured) -> list[Chart]:
    """SGD."""
    return [stability(measured, "sgd", "SGD")]


def fig1b(measured: Measured) -> list[Chart]:
    """Random perturbation, beside SGD."""
    return [stability(measured, "random", "Random perturbation"), stability(measured, "sgd", "SGD")]


def fig1c(measured: Measured) -> list[Chart]:
    """SAM at each ρ/α."""
    return [stability(measured, f"sam{ratio:g}", f"SAM, ρ/α = {ratio:g}") for ratio in RATIOS]


def stability(measured: Measured, method: str, title: str) -> Chart:
    """The share of seeds in which each cell stayed stable, and the three boundaries."""
    parts: list[Any] = list(measured.series.values())
    num, first = sum(part["num"] for part in parts), parts[0]
    tables = [part["diverged"][method] for part in parts]
    share = [[1 - sum(cells) / num for cells in zip(*rows, strict=True)] for rows in zip(*tables, strict=True)]
    lines = [
        Line(name, first["batches"], first["lines"][method][which], dashed=which == "criterion", colour=colour)
        for (which, name), colour in zip(BOUNDARIES.items(), COLOURS, strict=True)
    ]
    heat = Heat(first["batches"], first["sigmas"], share, name="share of seeds that stay stable", low=0.0, high=1.0)
    agree = {which: mean(measured, f"{method}.agrees.{which}") for which in BOUNDARIES}
    sentence = (
        f"{title} diverges in {mean(measured, f'{method}.diverged'):.1f} % of the cells, below the curves. The "
        f"criterion agrees in {agree['criterion']:.1f} % of all cells, the exact mean-square line in "
        f"{agree['mean_square']:.1f} %, the exact almost-sure line in {agree['almost_sure']:.1f} %."
    )
    return Chart(title, "batch size B", "coherence σ", [heat, *lines], sentence)


def fig1d(measured: Measured) -> list[Chart]:
    """The loss over epochs from every C; SGD whole, SAM dashed; for both readings of the noise."""
    series: Mapping[str, Any] = measured.series
    charts = []
    for kind, title in (("", "noise of variance 0.01"), ("narrow.", "noise of deviation 0.01")):
        lines = [
            banded(
                f"{method.upper()}, C = {c}",
                range(len(series[method]["curves"][f"{kind}{method}.C{c}"][0])),
                series[method]["curves"][f"{kind}{method}.C{c}"],
                colour=number,
                dashed=method == "sam",
            )
            for number, c in enumerate(FEATURES)
            for method in ("sgd", "sam")
        ]
        ends = ", ".join(f"{mean(measured, f'{kind}sgd.C{c}'):.2f} from C = {c}" for c in FEATURES)
        sentence = (
            f"With {title} SGD ends at a log₁₀ loss of {ends}; SAM at C = 2 at {mean(measured, f'{kind}sam.C2'):.2f}."
        )
        charts.append(Chart(title.capitalize(), "epoch", "log₁₀ training loss", lines, sentence))
    return charts
