"""Remark 4: σ_SAM/σ is larger for small C, as the paper says, and yet SAM's exact threshold is lowest there."""

from evenly.papers.chang2025.feature_solutions import FEATURES, RATIOS, SCALES, plan
from evenly.papers.charts import bars, mean
from evenly.papers.claim import Claim
from evenly.papers.experiment import Experiment, Measured
from evenly.report.chart import Chart

CLAIMS = (
    *(
        Claim(
            f"bias, {ratio:g}",
            f"σ_SAM/σ is larger for C = 2 than for C = 5, ρ/α = {ratio:g}",
            f"C2.gain{ratio:g}",
            "greater",
            f"C5.gain{ratio:g}",
            after=True,
        )
        for ratio in RATIOS
    ),
    *(
        Claim(
            f"conclusion, {ratio:g}",
            f"So solutions with fewer features are more stable under SAM: its exact threshold is larger for C = 2 than "
            f"for C = 5, ρ/α = {ratio:g}",
            f"C2.sam{ratio:g}",
            "greater",
            f"C5.sam{ratio:g}",
            after=True,
        )
        for ratio in RATIOS
    ),
    *(
        Claim(
            f"reverse, {ratio:g}",
            f"SAM's exact threshold is lower for C = 2 than for C = 5, ρ/α = {ratio:g}",
            f"C2.sam{ratio:g}",
            "less",
            f"C5.sam{ratio:g}",
            corrects=True,
            after=True,
        )
        for ratio in RATIOS
    ),
)


def charts(measured: Measured) -> list[Chart]:
    """σ_SAM/σ and SAM's exact threshold over C."""
    drawn = []
    for quantity, title, y in (("gain", "σ_SAM/σ", "ratio"), ("sam", "SAM's exact threshold", "η")):
        layers = [
            bars(measured, {f"C = {c}": f"C{c}.{quantity}{ratio:g}" for c in FEATURES}, name=f"ρ/α = {ratio:g}")
            for ratio in RATIOS
        ]
        ends = ", ".join(f"{mean(measured, f'C{c}.{quantity}0.1'):.3f} for C = {c}" for c in FEATURES)
        drawn.append(Chart(title, "", y, layers, f"{title} at ρ/α = 0.1: {ends}."))
    return drawn


EXPERIMENT = Experiment(
    remark=True,
    key="chang2025/mistake4",
    title="Remark 4: a larger σ_SAM does not make solutions with few features more stable under SAM",
    claim="SAM's exact threshold is lowest for C = 2, although σ_SAM/σ is largest there.",
    plan=plan,
    primary="reverse, 0.1",
    claims=CLAIMS,
    scales=SCALES,
    charts=charts,
    errata=(
        "Withdrawn: this row once said that σ_SAM = σ and that SAM adds no bias to small C. That was our mistake: it "
        "was judged on an artificial set with H_i = H_j within a cluster, which the (C, r)-solutions are not "
        "(chang2025/mistake7). On the solutions themselves the paper's statement about σ_SAM holds.",
    ),
)
