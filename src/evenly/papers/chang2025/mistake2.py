"""Correction 2: the criterion does not favour small C."""

from evenly.papers.chang2025.feature_solutions import FEATURES, SCALES, plan
from evenly.papers.charts import bars, mean
from evenly.papers.claim import Claim
from evenly.papers.experiment import Experiment, Measured
from evenly.report.chart import Chart

CLAIMS = (
    Claim(
        "criterion", "The criterion's η is larger for C = 2 than for C = 5", "C2.criterion", "greater", "C5.criterion"
    ),
    Claim("exact", "The exact threshold is larger for C = 2 than for C = 5", "C2.exact", "greater", "C5.exact"),
    Claim(
        "equal", "The criterion's η is the same", "C2.criterion", "equal", "C5.criterion", margin=1e-6, corrects=True
    ),
    Claim("reverse", "The exact threshold rises with C", "C5.exact", "greater", "C2.exact", corrects=True),
    Claim("memory", "and is largest for memorising", "memorising.exact", "greater", "C5.exact", corrects=True),
)


def charts(measured: Measured) -> list[Chart]:
    """Both thresholds over C."""
    exact = {f"C = {c}": f"C{c}.exact" for c in FEATURES} | {"memorising": "memorising.exact"}
    criterion = {f"C = {c}": f"C{c}.criterion" for c in FEATURES}
    ends = ", ".join(f"{mean(measured, quantity):.2f} for {label}" for label, quantity in exact.items())
    return [
        Chart(
            "Largest stable learning rate",
            "",
            "η",
            [bars(measured, exact, name="exact"), bars(measured, criterion, name="criterion")],
            f"The criterion gives {mean(measured, 'C2.criterion'):.3f} for every C; the exact threshold is {ends}.",
        )
    ]


EXPERIMENT = Experiment(
    remark=True,
    key="chang2025/mistake2",
    title="Correction 2: the criterion does not favour small C",
    claim="The criterion gives every C the same learning rate, and the exact threshold rises with C.",
    plan=plan,
    primary="equal",
    claims=CLAIMS,
    scales=SCALES,
    charts=charts,
    errata=("The paper: solutions with fewer features are more stable, because their σ is larger.",),
)
