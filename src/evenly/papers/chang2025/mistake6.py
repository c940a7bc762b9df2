"""Correction 6: a diagonal S does not mean memorising (theorem 3.4, ⇐)."""

from evenly.papers.chang2025.theorem3_4 import SCALES, plan
from evenly.papers.charts import Panel
from evenly.papers.claim import Claim
from evenly.papers.experiment import Experiment

CLAIMS = (
    Claim("⇐", "Solutions with diagonal S memorise (1 if they do)", "shared.memorises = 1"),
    Claim("diagonal", "S of a shared unit can be diagonal", "shared.off = 0 ± 1e-9", corrects=True),
    Claim("fits", "where it fits both examples", "shared.misfit = 0 ± 1e-9", corrects=True),
)

CHARTS = (
    Panel(
        "One unit that two examples share",
        "1 if it memorises; |S₁₂|/S₁₁",
        {"memorises": "shared.memorises", "S off its diagonal": "shared.off"},
        "S is diagonal, and the solution does not memorise.",
        level=1.0,
        level_name="theorem 3.4, ⇐",
        y_range=(-0.05, 1.1),
    ),
)
EXPERIMENT = Experiment(
    remark=True,
    key="chang2025/mistake6",
    title="Correction 6: a diagonal S does not mean memorising",
    claim="S can be diagonal although two examples share a unit.",
    plan=plan,
    primary=("diagonal", "fits"),
    claims=CLAIMS,
    scales=SCALES,
    charts=CHARTS,
    errata=("x₂ = −x₁, one unit with w1 ⊥ x₁, b = (d − 1)^¼, w2 = y/b: ⟨g₁, g₂⟩ = b² + (1 − d)/b² = 0.",),
)
