"""Figure 1c: SAM's boundary at several ρ/α."""

from evenly.papers.chang2025.stability_maps import ALMOST_SURE, RATIOS, SCALES, boundary_chart, plan
from evenly.papers.claim import Claim
from evenly.papers.experiment import Experiment, Measured
from evenly.report.chart import Chart

CLAIMS = (
    Claim("rising", "SAM diverges in more cells for ρ/α = 0.2 than for 0.1 (%)", "sam0.2.diverged > sam0.1.diverged"),
    Claim("rising on", "and in more for 0.4 than for 0.2 (%)", "sam0.4.diverged > sam0.2.diverged"),
    Claim("stricter", "Already for 0.1 in more than with ρ = 0, SGD (%)", "sam0.1.diverged > sgd.diverged"),
)


def charts(measured: Measured) -> list[Chart]:
    """SAM's simulated boundaries, from ρ = 0 on."""
    methods = {"ρ/α = 0 (SGD)": "sgd"} | {f"ρ/α = {ratio:g}": f"sam{ratio:g}" for ratio in RATIOS}
    return [boundary_chart(measured, methods, "ρ/α from 0 to 0.4")]


EXPERIMENT = Experiment(
    key="chang2025/fig1c",
    title="Figure 1c: SAM's boundary at several ρ/α",
    claim="The larger ρ/α, the more cells SAM diverges in.",
    plan=plan,
    primary=("stricter", "rising", "rising on"),
    claims=CLAIMS,
    scales=SCALES,
    charts=charts,
    errata=(
        ALMOST_SURE,
        "ρ/α is a constant of the model: SAM's own α is the gradient norm of the moment (chang2025/mistake9).",
    ),
)
