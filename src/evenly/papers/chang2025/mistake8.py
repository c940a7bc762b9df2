"""Correction 8: figure 1 shows almost-sure stability, not mean-square stability."""

from evenly.papers.chang2025.stability_maps import LINES, SCALES, map_chart, plan
from evenly.papers.charts import Panel
from evenly.papers.claim import Claim
from evenly.papers.experiment import Experiment, Measured
from evenly.report.chart import Chart

CLAIMS = (
    Claim("SGD", "It agrees with the exact mean-square boundary (% of cells)", "sgd.agrees.mean_square = 100 ± 1"),
    Claim("SAM", "Also for SAM, ρ/α = 0.2", "sam0.2.agrees.mean_square = 100 ± 1"),
    Claim(
        "SGD, almost sure",
        "It agrees better with the line E log|J| = 0",
        "sgd.agrees.almost_sure > sgd.agrees.mean_square",
        corrects=True,
    ),
    Claim(
        "SAM, almost sure",
        "Also for SAM, ρ/α = 0.2",
        "sam0.2.agrees.almost_sure > sam0.2.agrees.mean_square",
        corrects=True,
    ),
    Claim("SGD, nearly all", "namely in nearly all cells", "sgd.agrees.almost_sure = 100 ± 2", corrects=True),
)


def charts(measured: Measured) -> list[Chart]:
    """A map with all three lines, and how often each agrees with the simulation."""
    methods = {"SGD": "sgd", "SAM .1": "sam0.1", "SAM .2": "sam0.2", "SAM .4": "sam0.4"}
    agreement = Panel(
        "Agreement with the simulation",
        "% of cells",
        {name: {label: f"{method}.agrees.{line}" for label, method in methods.items()} for line, name in LINES.items()},
        "For SGD the almost-sure line agrees with the simulation in {sgd.agrees.almost_sure:.1f}% of the cells, the "
        "mean-square line in {sgd.agrees.mean_square:.1f}%, the criterion in {sgd.agrees.criterion:.1f}%.",
        y_range=(50, 101),
    )
    return [map_chart(measured, "sam0.2", "SAM, ρ/α = 0.2"), agreement.draw(measured)]


EXPERIMENT = Experiment(
    remark=True,
    key="chang2025/mistake8",
    title="Correction 8: figure 1 shows almost-sure stability",
    claim="The simulation of figure 1 follows the almost-sure line E log|J| = 0, not the mean-square boundary.",
    plan=plan,
    primary=("SGD, almost sure", "SAM, almost sure"),
    claims=CLAIMS,
    scales=SCALES,
    charts=charts,
)
