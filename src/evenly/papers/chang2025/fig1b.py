"""Figure 1b: the boundaries of SGD, random perturbation and SAM, compared."""

from evenly.papers.chang2025.stability_maps import ALMOST_SURE, SCALES, boundary_chart, plan
from evenly.papers.claim import Claim
from evenly.papers.experiment import Experiment, Measured
from evenly.report.chart import Chart

CLAIMS = (
    Claim(
        "cells",
        "Random perturbation diverges in the cells in which SGD does (those that differ, %)",
        "random.differs = 0 ± 2",
    ),
    Claim("area", "Random perturbation diverges in as many cells as SGD (%)", "random.diverged = sgd.diverged ± 1"),
    Claim(
        "stricter",
        "SAM with ρ/α = 0.2 diverges in more cells than SGD (%)",
        "sam0.2.diverged > sgd.diverged",
        after=True,
        note="declared in advance for ρ/α = 0.1 (figure 1c)",
    ),
)


def charts(measured: Measured) -> list[Chart]:
    """The three simulated boundaries."""
    methods = {"SGD": "sgd", "random perturbation": "random", "SAM, ρ/α = 0.2": "sam0.2"}
    return [boundary_chart(measured, methods, "SGD, random perturbation, SAM")]


EXPERIMENT = Experiment(
    key="chang2025/fig1b",
    title="Figure 1b: boundaries of three methods",
    claim="Random perturbation diverges where SGD does; SAM diverges in more cells.",
    plan=plan,
    primary=("cells", "stricter"),
    claims=CLAIMS,
    scales=SCALES,
    charts=charts,
    errata=(ALMOST_SURE,),
)
