"""Theorem 3.5: one step of SAM beside one step of GD on data whose difficult feature is k times as strong."""

from typing import Any

from evenly.papers.charts import Panel
from evenly.papers.claim import Claim
from evenly.papers.experiment import Experiment, Part
from evenly.papers.nguyen2024.theorem3_2 import scales
from evenly.papers.nguyen2024.two_layer_settings import BETAS


def _claims_at(beta: float) -> tuple[Claim, ...]:
    at = f"(β_d = {beta})"
    return (
        Claim(
            f"SAM at {beta}",
            f"the difficult feature has a larger part in SAM's normalised gradient than in GD's {at}",
            f"{beta}.sam > {beta}.gd",
        ),
        Claim(
            f"stronger for GD at {beta}",
            f"making it 1.5 times as strong makes its part in GD's larger {at}",
            f"{beta}.gd.stronger > {beta}.gd",
        ),
        Claim(f"stronger for SAM at {beta}", f"and in SAM's {at}", f"{beta}.sam.stronger > {beta}.sam"),
        Claim(
            f"recovered at {beta}",
            f"with the k of eq. 96 GD's ratio of difficult to easy is SAM's: one filter, no noise {at}",
            f"{beta}.off = 0 ± 0.05",
        ),
        Claim(
            f"literal at {beta}",
            f"with ρᵗ = ρ/‖∇L‖ of the loss itself, as section 3.2 defines it, k is seldom right {at}",
            f"{beta}.literal < 50",
            corrects=True,
            note="The proof drops l ≈ ½ from the gradient: the k of eq. 96 is right if ρᵗ is taken from that gradient "
            "(84), and with the loss's own if 3 is read as 3/2.",
        ),
        Claim(
            f"several filters at {beta}",
            f"with 40 filters and noise the best k closes less than a tenth of the distance to SAM's gradient {at}",
            f"{beta}.closed < 0.1",
            corrects=True,
            after=True,
            note="Distance: 1 − the cosine with SAM's gradient; k from 0.8 to 2.",
        ),
    )


def plan(seeds: tuple[int, ...], **size: Any) -> list[Part]:
    """Both strengths of the difficult feature."""
    return [
        Part(
            f"β_d = {beta}",
            "nguyen2024.one_step_gradients:gradient_statistics",
            {"seeds": list(seeds), "name": str(beta), "beta_hard": beta, **size},
        )
        for beta in BETAS
    ]


def _by_strength(quantities: dict[str, str]) -> dict[str, dict[str, str]]:
    return {f"β_d = {beta}": {label: f"{beta}.{what}" for label, what in quantities.items()} for beta in BETAS}


CHARTS = (
    Panel(
        "The difficult feature's part",
        "part of the normalised gradient",
        _by_strength({"GD": "gd", "SAM": "sam", "GD, 1.5 β_d": "gd.stronger", "SAM, 1.5 β_d": "sam.stronger"}),
        "The part of the difficult feature in the normalised gradient, in early training.",
    ),
    Panel(
        "Likeness to SAM's gradient, 40 filters",
        "cosine",
        _by_strength({"GD": "cosine", "GD, best k": "best"}),
        "The cosine of GD's gradient with SAM's, on the same data and with the best k.",
    ),
)
EXPERIMENT = Experiment(
    key="nguyen2024/theorem3.5",
    title="Theorem 3.5: one step of SAM, or of GD with a stronger difficult feature",
    claim="SAM's step favours the difficult feature, and GD's does as much where that feature is k times as strong.",
    plan=plan,
    claims=(*_claims_at(0.2), *_claims_at(0.4)),
    scales=scales(1, num_filters=8, lr=1.0),
    charts=CHARTS,
    errata=(
        "Equation 96 drops l ≈ ½ from the gradient but not from ρᵗ = ρ/‖∇L‖: read 3/2 for 3, or take ρᵗ from (84).",
        "The proof leaves out the filter's index: k depends on the filter, and no single k recovers the gradient of a "
        "network with several. With 40 filters the best k closes next to nothing of the distance.",
        "Upsampling examples multiplies their number, not β_d: the theorem is about amplified features.",
    ),
    primary=("SAM at 0.2", "recovered at 0.2", "SAM at 0.4", "recovered at 0.4"),
)
