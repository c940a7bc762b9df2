"""Figures 3 to 9 and appendix D, drawn from what was measured; free of torch."""

from collections.abc import Sequence
from math import log10
from typing import Any

from evenly.papers.experiment import Measured
from evenly.papers.springer2024.charts_toys import BAND, ERROR, RHO, curve
from evenly.papers.springer2024.importance_figures import EARLY, EPOCHS
from evenly.papers.springer2024.mechanism_figures import STARS
from evenly.papers.springer2024.names import at, over_seeds
from evenly.papers.springer2024.probing_figures import CHI, RHOS
from evenly.report.chart import Chart, Heat, Histogram, Layer, Line, Points, Rule

FLOOR = 1e-5  # what is less important is drawn alike
ENDS = (EPOCHS[0], EPOCHS[-1])  # figure 6 has one between


def ratios(measured: Measured) -> list[Chart]:
    """Figure 3: the phantom and the real ratio against ρ."""
    lines: list[Layer] = [
        curve(measured, "ṽ_hard/ṽ_easy (phantom), median", at(chi=CHI), "phantom"),
        curve(measured, "v_hard/v_easy (real), median", at(chi=CHI), "real", dashed=True),
        Rule(y=1.0, name="the paper's SGD"),
    ]
    sentence = f"The ratio of the weights of the two features at LSAM's phantom and at the real weights. {BAND}"
    return [Chart("Phantom ratio against ρ", RHO, "hard / easy", lines, sentence)]


def rates(measured: Measured) -> list[Chart]:
    """Figure 4: (i) the factors of the learning rates, (ii) the hard feature's share, over batches."""
    series = measured.series["rates"]
    edges = series["edges"]
    return [
        Chart(
            "(i) learning rates, phantom over real",
            "ṽ/v",
            "share of batches",
            [
                Histogram("easy feature", edges, series["easy_factor"]),
                Histogram("hard feature", edges, series["hard_factor"]),
                Rule(x=1.0, name="unchanged"),
            ],
            "How LSAM changes the learning rates of the two features, over all batches of training and all seeds.",
        ),
        Chart(
            "(ii) the hard feature's share",
            "v_hard / (v_easy + v_hard)",
            "share of batches",
            [
                Histogram("real", edges, series["real_share"]),
                Histogram("phantom", edges, series["phantom_share"]),
            ],
            "The hard feature's part of both learning rates, at the real and at the phantom weights.",
        ),
    ]


def lorenz_early(measured: Measured) -> list[Chart]:
    """Figure 5: Lorenz curves of SGD's and of LSAM's network at one epoch."""
    return lorenz_charts(measured.series["weights"], (EARLY,), name="lsam")


def lorenz_all(measured: Measured) -> list[Chart]:
    """Figure 8: the same at several epochs."""
    return lorenz_charts(measured.series["weights"], EPOCHS, name="lsam")


def maps_early(measured: Measured) -> list[Chart]:
    """Figure 6: median importance at the real and at the phantom weights, at one epoch."""
    return map_charts(measured.series["weights"], (EARLY,), name="lsam")


def maps_all(measured: Measured) -> list[Chart]:
    """Figure 9: the same at the first and the last of the epochs."""
    return map_charts(measured.series["weights"], ENDS, name="lsam")


def lorenz_charts(series: Any, epochs: Sequence[int], *, name: str) -> list[Chart]:
    """Solid at the phantom weights, dashed at the real ones; SGD in blue, the other in orange, as in the paper."""
    charts = []
    for epoch in epochs:
        lines = []
        for who, colour in (("sgd", 0), (name, 1)):
            for kind, dashed in (("real", True), ("phantom", False)):
                held = series[f"{at(epoch=epoch)}.{who}.{kind}"]["lorenz"]
                share = [100 * i / (len(held) - 1) for i in range(len(held))]
                lines.append(
                    Line(f"{who.upper()}, {kind}", share, [100 * h for h in held], dashed=dashed, colour=colour)
                )
        lines.append(Line("even", [0, 100], [0, 100], dashed=True, colour=6))
        sentence = "The share of all importance that the least important examples hold; the diagonal is evenness."
        charts.append(Chart(f"Epoch {epoch}", "examples, least important first (%)", "importance (%)", lines, sentence))
    return charts


def map_charts(series: Any, epochs: Sequence[int], *, name: str) -> list[Chart]:
    """A map for the real weights of every epoch and below it one for the phantom's, all on one scale of colours."""
    charts = []
    for kind in ("real", "phantom"):
        for epoch in epochs:
            shown = series[f"{at(epoch=epoch)}.{name}.{kind}"]["map"]
            logs = [[None if v is None else log10(max(v, FLOOR)) for v in row] for row in shown["median"]]
            heat = Heat(shown["easy"], shown["hard"], logs, "log₁₀ median λ", low=log10(FLOOR), high=0.0)
            charts.append(
                Chart(
                    f"Epoch {epoch}, {name.upper()}'s {kind} weights",
                    "y·v_easy·Φ_easy",
                    "y·v_hard·Φ_hard",
                    [heat],
                    f"The median importance of the examples in every bin of what the easy and the hard feature "
                    f"contribute, {kind} weights.",
                )
            )
    return charts


def interventions(measured: Measured) -> list[Chart]:
    """Figure 7: each intervention beside LSAM, against the ratio of the two weights."""
    values = measured.values
    lsam = over_seeds(values, [f"lsam.{at('hard', rho=rho)}" for rho in RHOS])
    where = [found.mean for found in over_seeds(values, [f"lsam.{at('ratio', rho=rho)}" for rho in RHOS])]
    names = {"importance": "importance weighting", "rate": "learning rate", "both": "combined"}
    charts = []
    for effect, says in names.items():
        found = over_seeds(values, [f"{effect}.{at('hard', star=star)}" for star in STARS])
        lines: list[Layer] = [
            Line(says, STARS, [f.mean for f in found], [f.low for f in found], [f.high for f in found]),
            Line("LSAM", where, [f.mean for f in lsam], [f.low for f in lsam], [f.high for f in lsam]),
            Points("", where, [f.mean for f in lsam], colour=1),
        ]
        sentence = f"The error of the spiral against the ratio of the two weights, {says} beside LSAM. {BAND}"
        charts.append(Chart(says.capitalize(), "hard / easy", ERROR, lines, sentence))
    return charts


def foretold(measured: Measured) -> list[Chart]:
    """Appendix D: log(λ̃/λ) of every example beside what eq. 25 and eq. 27 say."""
    charts = []
    for kind, formula in (("sam", "ρ‖∇f‖"), ("lsam", "ρ‖φ(x)‖")):
        shown = measured.series["foretold"][kind]
        top = max(shown["predicted"])
        lines: list[Layer] = [
            Line("equal", [0, top], [0, top], dashed=True, colour=6),
            Points("examples", shown["predicted"], shown["measured"]),
        ]
        sentence = (
            f"The re-weighting of each training example (seed 0) beside {formula}: below the line where λ is large."
        )
        charts.append(
            Chart(f"{kind.upper()}: re-weighting, foretold by {formula}", formula, "log(λ̃/λ)", lines, sentence)
        )
    return charts
