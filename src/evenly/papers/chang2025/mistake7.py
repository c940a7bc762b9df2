"""Correction 7: examples of a cluster do not have equal curvature."""

from evenly.papers.chang2025.feature_solutions import FEATURES, SCALES, plan
from evenly.papers.charts import Panel
from evenly.papers.claim import Claim
from evenly.papers.experiment import Experiment

CLAIMS = (
    Claim("equal", "Products within a cluster over 2√(d+1), C = 2", "C2.product = 1 ± 0.05"),
    Claim("half", "They are about half of it", "C2.product = 0.5 ± 0.05", corrects=True),
    Claim("formula", "They are r² + (x_i·x_j + 1)/r²", "C2.formula_error = 0 ± 1e-9", corrects=True),
)

CHARTS = (
    Panel(
        "⟨gᵢ, gⱼ⟩ within a cluster over 2√(d+1)",
        "ratio",
        {f"C = {c}": f"C{c}.product" for c in FEATURES},
        "For C = 2 it is {C2.product:.2f} of what equal curvatures would give.",
        level=1.0,
        level_name="if Hᵢ = Hⱼ",
    ),
)
EXPERIMENT = Experiment(
    remark=True,
    key="chang2025/mistake7",
    title="Correction 7: examples of a cluster do not have equal curvature",
    claim="Within a cluster ⟨g_i, g_j⟩ = r² + (x_i·x_j + 1)/r², about half of the 2√(d+1) that the proofs take.",
    plan=plan,
    primary=("formula", "half"),
    claims=CLAIMS,
    scales=SCALES,
    charts=CHARTS,
    errata=("The proofs of theorems 3.5 and 3.6 (C.11, C.12) take H_i = H_j within a cluster.",),
)
