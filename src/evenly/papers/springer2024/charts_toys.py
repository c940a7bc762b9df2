"""Figures 1, 2, 10 and 11, drawn from what was measured; free of torch."""

from collections.abc import Sequence

from evenly.papers.experiment import Measured
from evenly.papers.springer2024.names import at, over_seeds
from evenly.papers.springer2024.probing_figures import BATCHES, CHI, CHIS, NOISES, RHOS
from evenly.report.chart import Chart, Heat, Line, Points

RHO = "ρ (0 is SGD)"
ERROR = "hard probing error (%)"
SHOWN = 15  # points of each class
BAND = "Means and 95 % intervals over seeds."


def curve(measured: Measured, name: str, under: str, what: str = "hard", *, dashed: bool = False) -> Line:
    """A quantity against ρ: its mean over seeds with the interval."""
    found = over_seeds(measured.values, [f"{under}.{at(what, rho=rho)}" for rho in RHOS])
    low, high = [each.low for each in found], [each.high for each in found]
    return Line(name, RHOS, [each.mean for each in found], low, high, dashed=dashed)


def surfaces(measured: Measured) -> list[Chart]:
    """Figure 1: Φ over the plane of each feature."""
    series = measured.series["surfaces"]
    inputs, labels = series["points"]["inputs"], series["points"]["labels"]
    charts = []
    for name in ("sgd", "lsam"):
        for number, feature in enumerate(("easy", "hard")):
            plane = series["planes"][f"{name} {feature}"]
            error = over_seeds(measured.values, [f"{name}.{feature}"])[0].mean
            # In steps, as contours are; it also makes a small picture.
            steps = [[round(5 * value) / 5 for value in row] for row in plane["phi"]]
            heat = Heat(plane["axis"], plane["axis"], steps, "Φ / max |Φ|", diverging=True, low=-1.0, high=1.0)
            points = [_points(inputs, labels, number, label) for label in (0, 1)]
            charts.append(
                Chart(
                    f"{name.upper()}: Φ_{feature}, {error:.1f} % misread",
                    f"{feature} feature, first",
                    "second",
                    [heat, *points],
                    f"Φ_{feature} as {name.upper()} has trained it (seed 0), over the plane of that feature, with the "
                    f"{SHOWN} training points of each class.",
                )
            )
    return charts


def complexities(measured: Measured) -> list[Chart]:
    """Figure 2: error against ρ, a line for each χ; and the same with a fitted threshold."""
    charts = []
    for what, title in (
        ("hard", "Φ_hard read at zero, as the paper does"),
        ("hard_fitted", "Φ_hard with a fitted threshold"),
    ):
        lines = [curve(measured, f"χ = {chi:g}", at(chi=chi), what) for chi in CHIS]
        sentence = f"The error of the spiral against LSAM's ρ for four complexities. {BAND}"
        charts.append(Chart(title, RHO, ERROR, lines, sentence))
    return charts


def noises(measured: Measured) -> list[Chart]:
    """Figure 10: error against ρ, a panel for each noise on both features or the hard one, a line for each level."""
    charts = []
    for noise_on in ("both", "hard"):
        for column, (kind, levels) in enumerate(NOISES.items()):
            lines = [curve(measured, f"{level:g}", f"{kind}.{noise_on}.{at(level=level)}") for level in levels]
            where = "both features" if noise_on == "both" else "the hard feature"
            sentence = f"The error of the spiral against ρ for three levels of {kind} noise on {where}. {BAND}"
            # What is on an axis is said at the edge of the sheet.
            x, y = RHO if noise_on == "hard" else "", "" if column else ERROR
            charts.append(Chart(f"{kind.capitalize()} noise, {noise_on}", x, y, lines, sentence))
    return charts


def batch_sizes(measured: Measured) -> list[Chart]:
    """Figure 11: error against ρ, a line for each batch size."""
    lines = [curve(measured, f"batch {size}", at(batch=size)) for size in BATCHES]
    sentence = f"The error of the spiral of χ = {CHI:g} against ρ for five batch sizes, 100 epochs each. {BAND}"
    return [Chart("Hard probing error by batch size", RHO, ERROR, lines, sentence)]


def _points(inputs: Sequence[Sequence[float]], labels: Sequence[int], number: int, label: int) -> Points:
    own = [row for row, each in zip(inputs, labels, strict=True) if each == label][:SHOWN]
    x, y = [round(row[2 * number], 3) for row in own], [round(row[2 * number + 1], 3) for row in own]
    return Points(
        "+1" if label else "−1", x, y, colour="#24292F" if label else "#009E73", mark="cross" if label else "dot"
    )
