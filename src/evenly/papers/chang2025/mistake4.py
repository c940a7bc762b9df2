"""Remark 4: σ_SAM/σ is larger for small C, as the paper says, and yet SAM's exact threshold is lowest there."""

from evenly.papers.chang2025.feature_solutions import FEATURES, RATIOS, SCALES, plan
from evenly.papers.charts import Panel
from evenly.papers.claim import Claim
from evenly.papers.experiment import Experiment

# Name, statement, quantity, its direction from C = 2 to C = 5.
STATEMENTS = (
    ("bias", "σ_SAM/σ is larger for C = 2 than for C = 5", "gain", ">"),
    (
        "conclusion",
        "So solutions with fewer features are more stable under SAM: its exact threshold is larger for C = 2 than for "
        "C = 5",
        "sam",
        ">",
    ),
    ("reverse", "SAM's exact threshold is lower for C = 2 than for C = 5", "sam", "<"),
)
CLAIMS = tuple(
    Claim(
        f"{name}, {ratio:g}",
        f"{says}, ρ/α = {ratio:g}",
        f"C2.{quantity}{ratio:g} {sign} C5.{quantity}{ratio:g}",
        corrects=name == "reverse",
        after=True,
    )
    for name, says, quantity, sign in STATEMENTS
    for ratio in RATIOS
)
CHARTS = tuple(
    Panel(
        title,
        y,
        {f"ρ/α = {ratio:g}": {f"C = {c}": f"C{c}.{quantity}{ratio:g}" for c in FEATURES} for ratio in RATIOS},
        f"{title} at ρ/α = 0.1: " + ", ".join(f"{{C{c}.{quantity}0.1:.3f}} for C = {c}" for c in FEATURES) + ".",
    )
    for quantity, title, y in (("gain", "σ_SAM/σ", "ratio"), ("sam", "SAM's exact threshold", "η"))
)
EXPERIMENT = Experiment(
    remark=True,
    key="chang2025/mistake4",
    title="Remark 4: a larger σ_SAM does not make solutions with few features more stable under SAM",
    claim="SAM's exact threshold is lowest for C = 2, although σ_SAM/σ is largest there.",
    plan=plan,
    primary="reverse, 0.1",
    claims=CLAIMS,
    scales=SCALES,
    charts=CHARTS,
    errata=(
        "Withdrawn: this row once said that σ_SAM = σ and that SAM adds no bias to small C. That was our mistake: it "
        "was judged on an artificial set with H_i = H_j within a cluster, which the (C, r)-solutions are not "
        "(chang2025/mistake7). On the solutions themselves the paper's statement about σ_SAM holds.",
    ),
)
