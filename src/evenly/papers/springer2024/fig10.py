"""Figure 10: the hard probing error against ρ where features are noisy."""

from collections.abc import Sequence

from evenly.papers.claim import Claim
from evenly.papers.experiment import Measured, Part
from evenly.papers.springer2024.quantities import at
from evenly.papers.springer2024.toy import (
    ERROR_AXIS,
    RHO_AXIS,
    RHOS,
    SEEDS,
    UNSAID,
    arguments,
    experiment,
    radius_chart,
    radius_curve,
)
from evenly.report.chart import Chart

NOISES = {"label": (0.02, 0.05, 0.1), "gaussian": (0.25, 0.5, 1.0), "dropout": (0.1, 0.2, 0.4)}
NOISE_ON = {"both": "both", "hard": "the hard feature"}

CLAIMS = tuple(
    Claim(
        f"{kind} noise, {noise_on}",
        f"{kind} noise on {features}: ρ = 1 errs less than SGD, in the mean over three levels, %",
        f"{kind}.{noise_on}.{at('hard', rho=1)} < {kind}.{noise_on}.{at('hard', rho=0)}",
        note=UNSAID,
    )
    for kind in NOISES
    for noise_on, features in NOISE_ON.items()
)


def plan(seeds: Sequence[int], **size: int) -> list[Part]:
    """A part for every panel."""
    return [
        Part(
            f"{kind} noise on {noise_on}",
            "springer2024.spiral_probing_error:errors_by_radius",
            arguments(seeds, prefix=f"{kind}.{noise_on}", rhos=list(RHOS), **size)
            | {"levels": list(levels), "kind": kind, "noise_on": noise_on},
        )
        for kind, levels in NOISES.items()
        for noise_on in NOISE_ON
    ]


def chart(measured: Measured) -> list[Chart]:
    """Error against ρ, a panel for each noise on both features or the hard one, a line for each level."""
    panels = []
    for noise_on, features in NOISE_ON.items():
        for column, (kind, levels) in enumerate(NOISES.items()):
            lines = [radius_curve(measured, f"{level:g}", f"{kind}.{noise_on}.{at(level=level)}") for level in levels]
            sentence = f"The error of the spiral against ρ for three levels of {kind} noise on {features}."
            # Axes are named at the edge of the sheet only.
            x, y = RHO_AXIS if noise_on == "hard" else "", "" if column else ERROR_AXIS
            panels.append(radius_chart(f"{kind.capitalize()} noise, {noise_on}", lines, sentence, x=x, y=y))
    return panels


EXPERIMENT = experiment(
    "fig10",
    title="Hard probing error against ρ under noise (figure 10)",
    claim="LSAM improves the hard feature under label noise, Gaussian noise and dropout, of both features or one.",
    plan=plan,
    primary=tuple(claim.name for claim in CLAIMS),  # “for all types of noise”
    claims=CLAIMS,
    seeds=SEEDS[:5],
    minutes=4.0,
    deviations=(
        "5 seeds",
        "χ = 360; three levels of each noise up to the paper's largest: "
        "label 2, 5, 10%, Gaussian 0.25, 0.5, 1, dropout 10, 20, 40%",
        "probed on points without noise",
    ),
    charts=chart,
    errata=(
        "With label noise or dropout on both features the easy one does not suffice any more: SGD itself learns the "
        "spiral, and little is left for LSAM to improve.",
    ),
)
