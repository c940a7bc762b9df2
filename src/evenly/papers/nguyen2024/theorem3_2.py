"""Theorem 3.2: GD learns the easy feature in T₀ iterations, and by then the difficult one has hardly moved.

Theorems 3.2 to 3.4 are statements about the same runs (`feature_growth`), from weights as the proofs assume them.
"""

from typing import Any

from evenly.papers.charts import OVER_SEEDS, Panel
from evenly.papers.claim import Claim
from evenly.papers.experiment import Experiment, Part, Scale
from evenly.papers.nguyen2024.two_layer_settings import BETAS, SEEDS, SHOWN, TINY

ASSUMED = (
    "the first weights are moved so that the proofs' assumptions hold: every alignment at least ρ (assumption A.1), "
    "and the easy feature ρ ahead (before theorem A.16)",
    "noise is made orthogonal to both features, as definition 3.1 says",
    "learned means an alignment of ½/β_e",
    "2,000 examples: the statements are about any number of them",
)
INITIAL = (
    "Assumption A.1 names v_e twice; v_d is meant. It says that all alignments are at least ρ > 0, while weights drawn "
    "from N(0, σ₀²) have about half of them below zero.",
)


def growth_claims(rule: str, equations: str) -> tuple[Claim, ...]:
    """What theorems 3.2 and 3.3 say alike of GD and SAM."""
    claims: list[Claim] = []
    for beta in BETAS:
        at, quantity = f"(β_d = {beta})", f"{beta}.{rule}"
        claims += [
            Claim(
                f"recursion at {beta}",
                f"every step of every filter is that of {equations}, to rounding {at}",
                f"{quantity}.off = 0 ± 1e-3",
            ),
            Claim(
                f"constant from below at {beta}",
                f"the constant of the easy feature's growth is Θ(1): above 1 {at}",
                f"{quantity}.constant.low > 1",
            ),
            Claim(
                f"constant from above at {beta}",
                f"and at most 3/2, the value at zero output {at}",
                f"{quantity}.constant.high < 1.51",
            ),
            Claim(
                f"easy learned at {beta}",
                f"{SHOWN[rule]} learns the easy feature: every seed {at}",
                f"{quantity}.learned = 100",
                after=True,
            ),
            Claim(
                f"in time at {beta}",
                f"{SHOWN[rule]} learns the easy feature within the time of lemma B.3 for m = ηαβ_e³ and M = 3/2 of it "
                f"{at}",
                f"{quantity}.time < {quantity}.limit",
                after=True,
                note="The paper has m = M = Θ̃(η)αβ_e³; the constants are those of the claims about them, not fitted.",
            ),
            Claim(
                f"difficult not at {beta}",
                f"by then the difficult alignment is of the order it began with: less than twice {at}",
                f"{quantity}.hard.growth < 2",
            ),
        ]
    return tuple(claims)


def plan(seeds: tuple[int, ...], **size: Any) -> list[Part]:
    """GD and SAM at both strengths, from weights as the proofs assume them and from weights as they are drawn."""
    return [
        Part(
            f"{start}β_d = {beta}",
            "nguyen2024.feature_growth:growth_statistics",
            {"seeds": list(seeds), "name": f"{start}{beta}", "beta_hard": beta, "assume": not start, **size},
        )
        for beta in BETAS
        for start in ("", "drawn ")
    ]


def scales(minutes: float, **tiny: Any) -> dict[str, Scale]:
    """A smoke scale with these settings, and the full one."""
    return {
        "smoke": Scale((0, 1), 0.05, {"num": 200, **tiny}, deviations=TINY),
        "full": Scale(SEEDS, minutes, {"num": 2000}, deviations=ASSUMED, levels=True),
    }


CHARTS = (
    Panel(
        "Until the easy feature is learned, β_d = 0.2",
        "iterations",
        {
            f"{SHOWN[rule]}, {shown}": f"0.2.{rule}.{what}"
            for rule in SHOWN
            for what, shown in (("time", "measured"), ("limit", "lemma B.3"))
        },
        f"Iterations until the easy alignment is ½, and the bound of lemma B.3: {OVER_SEEDS}.",
        bar=True,
    ),
    Panel(
        "The constant of its growth, β_d = 0.2",
        "growth / (η α β_e³ ⟨w, v_e⟩²)",
        {
            name: {SHOWN[rule]: f"0.2.{rule}.constant.{what}" for rule in SHOWN}
            for name, what in (("smallest", "low"), ("largest", "high"))
        },
        f"The smallest and the largest constant of the easy feature's growth: {OVER_SEEDS}.",
    ),
    Panel(
        "The difficult feature by then",
        "alignment at T₀ / at the start",
        {f"β_d = {beta}": {SHOWN[rule]: f"{beta}.{rule}.hard.growth" for rule in SHOWN} for beta in BETAS},
        f"How much the difficult alignment has grown when the easy feature is learned: {OVER_SEEDS}.",
    ),
)
EXPERIMENT = Experiment(
    key="nguyen2024/theorem3.2",
    title="Theorem 3.2: GD learns the easy feature first",
    claim="GD learns the easy feature in T₀ iterations, and the difficult one hardly moves.",
    plan=plan,
    claims=growth_claims("gd", "equations 15 and 16"),
    scales=scales(6, iterations=60, lr=1.0),
    charts=CHARTS,
    errata=(
        "Equation 7 has the difference the wrong way round: the difficult alignment rises, as equation 30 says.",
        "Equation 5 lacks the α of equation 28.",
        *INITIAL,
    ),
    primary=("in time at 0.2", "difficult not at 0.2", "in time at 0.4", "difficult not at 0.4"),
)
