"""Figure 3: the sharpest example and λmax(S) during training."""

from evenly.papers.chang2025.parity_training import ERRATA, SCALES, epochs_chart, plan
from evenly.papers.claim import Claim
from evenly.papers.experiment import Experiment, Measured
from evenly.report.chart import Chart

CLAIMS = tuple(
    Claim(
        f"{quantity}, {one} and {other}",
        f"{label} is lower with {one} than with {other}",
        f"{one}.mean.{quantity} < {other}.mean.{quantity}",
        note="mean over the epochs",
    )
    for quantity, label in (("largest", "max λmax(H_i)"), ("lambda_max_s_printed", "λmax(S) as printed"))
    for one, other in (("sam0.1", "sam0.05"), ("sam0.05", "sam0.01"), ("sam0.1", "sgd"))
)


def charts(measured: Measured) -> list[Chart]:
    """The sharpest example and λmax(S), both ways, over the epochs."""
    return [epochs_chart(measured, quantity) for quantity in ("largest", "lambda_max_s_printed", "lambda_max_s")]


EXPERIMENT = Experiment(
    key="chang2025/fig3",
    title="Figure 3: max λmax(H_i) and λmax(S) during training",
    claim="SAM regulates the sharpest example, and with it the coherence matrix, the more the larger ρ.",
    plan=plan,
    primary=tuple(claim.name for claim in CLAIMS if not claim.corrects),
    claims=CLAIMS,
    scales=SCALES,
    charts=charts,
    errata=ERRATA,
)
