"""Theorem 3.6: coherence of (C, r)-solutions under SAM."""

import re

from evenly.papers.chang2025.feature_solutions import FEATURES
from evenly.papers.chang2025.solution_bounds import CLUSTER, SCALES, plan
from evenly.papers.charts import Panel
from evenly.papers.claim import Claim
from evenly.papers.experiment import Experiment, Measured, Scale
from evenly.report.chart import Chart

CLAIMS = (
    Claim("order", "λmax(S_SAM) over its stated order does not grow with n (50 to 400)", "n400.C3.s < n50.C3.s"),
    Claim(
        "sharpest example",
        "max λmax(PH_i) is L(1 + (ρ/α)L/2^C): measured over stated, C = 2",
        "n400.C2.largest = 1 ± 0.05",
    ),
    Claim(
        "expectation",
        "Its mean is L + (ρ/α)/n (L² + (n−1)/2^C E⟨g_i, g_j⟩²): measured over ours, C = 2",
        "n400.C2.expected = 1 ± 0.05",
        corrects=True,
        note="⟨g_i, g_j⟩ = √(d+1) + (x_i·x_j + 1)/√(d+1)",
    ),
)


def charts(measured: Measured) -> list[Chart]:
    """Measured over stated for every n and C: λmax(S_SAM), and the sharpest example."""
    sizes = sorted({int(match[1]) for name in measured.values if (match := re.match(r"n(\d+)\.", name))})
    return [
        Panel(
            title,
            "ratio",
            {f"n = {n}": {f"C = {c}": f"n{n}.C{c}.{quantity}" for c in FEATURES} for n in sizes},
            f"{title}: " + ", ".join(f"{{n{n}.C2.{quantity}:.2f}} at n = {n}" for n in sizes) + ", for C = 2.",
            level=1.0,
        ).draw(measured)
        for quantity, title in (("s", "λmax(S_SAM) over its order"), ("largest", "max λmax(PHᵢ) over the stated"))
    ]


EXPERIMENT = Experiment(
    key="chang2025/theorem3.6",
    title="Theorem 3.6: coherence of (C, r)-solutions under SAM",
    claim="λmax(S_SAM) = O((n/2^C) L √…), and max λmax(PH_i) = L(1 + (ρ/α)L/2^C), L = 2√(d+1).",
    plan=plan,
    primary=("order", "sharpest example"),
    claims=CLAIMS,
    scales=SCALES
    | {"smoke": Scale((0, 1), 0.1, {"dim": 20, "sizes": (50, 400), "draws": 1}, deviations=("d = 20, one draw",))},
    charts=charts,
    errata=(CLUSTER,),
)
