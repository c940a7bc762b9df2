"""Correction 2: the criterion does not favour small C."""

from evenly.papers.chang2025.feature_solutions import FEATURES, SCALES, plan
from evenly.papers.charts import Panel
from evenly.papers.claim import Claim
from evenly.papers.experiment import Experiment

CLAIMS = (
    Claim("criterion", "The criterion's η is larger for C = 2 than for C = 5", "C2.criterion > C5.criterion"),
    Claim("exact", "The exact threshold is larger for C = 2 than for C = 5", "C2.exact > C5.exact"),
    Claim("equal", "The criterion's η is the same", "C2.criterion = C5.criterion ± 1e-6", corrects=True),
    Claim("reverse", "The exact threshold rises with C", "C5.exact > C2.exact", corrects=True),
    Claim("memory", "and is largest for memorising", "memorising.exact > C5.exact", corrects=True),
)

_EXACT = {f"C = {c}": f"C{c}.exact" for c in FEATURES} | {"memorising": "memorising.exact"}
CHARTS = (
    Panel(
        "Largest stable learning rate",
        "η",
        {"exact": _EXACT, "criterion": {f"C = {c}": f"C{c}.criterion" for c in FEATURES}},
        "The criterion gives {C2.criterion:.3f} for every C; the exact threshold is "
        + ", ".join(f"{{{quantity}:.2f}} for {label}" for label, quantity in _EXACT.items())
        + ".",
    ),
)
EXPERIMENT = Experiment(
    remark=True,
    key="chang2025/mistake2",
    title="Correction 2: the criterion does not favour small C",
    claim="The criterion gives every C the same learning rate, and the exact threshold rises with C.",
    plan=plan,
    primary=("equal", "reverse"),
    claims=CLAIMS,
    scales=SCALES,
    charts=CHARTS,
    errata=("The paper: solutions with fewer features are more stable, because their σ is larger.",),
)
