"""Figure 2: coherence measure, rank and sharpness during training."""

from evenly.papers.chang2025.parity_training import ERRATA, SCALES, epochs_chart, plan
from evenly.papers.claim import Claim
from evenly.papers.experiment import Experiment, Measured
from evenly.report.chart import Chart

CLAIMS = tuple(
    Claim(
        quantity,
        f"{label} is lower with SAM (ρ = 0.1)",
        f"sam0.1.mean.{quantity} < sgd.mean.{quantity}",
        note="mean over the epochs",
    )
    for quantity, label in (
        ("sigma_printed", "σ as printed (no root)"),
        ("rank", "Effective rank"),
        ("lambda_max", "λmax(H)"),
        ("trace", "Tr H"),
    )
)


def charts(measured: Measured) -> list[Chart]:
    """σ both ways, rank and λmax(H) over the epochs."""
    return [epochs_chart(measured, quantity) for quantity in ("sigma_printed", "sigma", "rank", "lambda_max")]


EXPERIMENT = Experiment(
    key="chang2025/fig2",
    title="Figure 2: coherence measure, rank and sharpness during training",
    claim="Throughout training SAM has a lower coherence measure, rank and sharpness than SGD.",
    plan=plan,
    primary=("sigma_printed", "rank", "lambda_max"),
    claims=CLAIMS,
    scales=SCALES,
    charts=charts,
    errata=ERRATA,
)
