"""Theorems 3.2 to 3.5 as numerical checks of the network of eq. 1, from weights as the proofs assume them."""

from collections.abc import Callable
from typing import Any

from evenly.papers.claim import Claim
from evenly.papers.experiment import Experiment, Part, Scale
from evenly.papers.nguyen2024.toys import BETAS, CHARTS, SEEDS, TINY

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


def _growth(seeds: tuple[int, ...], **size: Any) -> list[Part]:
    return [
        Part(
            f"{start}β_d = {beta}",
            "nguyen2024.growth:steps",
            {"seeds": list(seeds), "name": f"{start}{beta}", "beta_hard": beta, "assume": not start, **size},
        )
        for beta in BETAS
        for start in ("", "drawn ")
    ]


def _scales(minutes: float, **tiny: Any) -> dict[str, Scale]:
    return {
        "smoke": Scale((0, 1), 0.05, {"num": 200, **tiny}, deviations=TINY),
        "full": Scale(SEEDS, minutes, {"num": 2000}, deviations=ASSUMED, levels=True),
    }


def _exact(rule: str, equations: str) -> Callable[[float], Claim]:
    def claim(beta: float) -> Claim:
        return Claim(
            f"recursion at {beta}",
            f"every step of every filter is that of {equations}, to rounding (β_d = {beta})",
            f"{beta}.{rule}.off",
            "equal",
            0.0,
            margin=1e-3,
        )

    return claim


def _shared(rule: str, name: str) -> tuple[Claim, ...]:
    """What theorems 3.2 and 3.3 say alike of GD and SAM."""
    found: list[Claim] = []
    for beta in BETAS:
        at = f"(β_d = {beta})"
        under = f"{beta}.{rule}"
        found += [
            Claim(
                f"constant from below at {beta}",
                f"the constant of the easy feature's growth is Θ(1): above 1 {at}",
                f"{under}.constant.low",
                "greater",
                1.0,
            ),
            Claim(
                f"constant from above at {beta}",
                f"and at most 3/2, the value at zero output {at}",
                f"{under}.constant.high",
                "less",
                1.51,
            ),
            Claim(
                f"easy learned at {beta}",
                f"{name} learns the easy feature: every seed {at}",
                f"{under}.learned",
                "equal",
                100.0,
                margin=0.0,
                after=True,
            ),
            Claim(
                f"in time at {beta}",
                f"and within the time of lemma B.3 for m = ηαβ_e³ and M = 3/2 of it {at}",
                f"{under}.time",
                "less",
                f"{under}.limit",
                after=True,
                note="The paper has m = M = Θ̃(η)αβ_e³; the constants are those of the two claims before, not fitted.",
            ),
            Claim(
                f"difficult not at {beta}",
                f"by then the difficult alignment is of the order it began with: less than twice {at}",
                f"{under}.hard.growth",
                "less",
                2.0,
            ),
        ]
    return tuple(found)


_THEOREM_2 = Experiment(
    key="nguyen2024/theorem3.2",
    title="Theorem 3.2: GD learns the easy feature first",
    claim="GD learns the easy feature in T₀ iterations, and the difficult one hardly moves.",
    plan=_growth,
    claims=(*map(_exact("gd", "equations 15 and 16"), BETAS), *_shared("gd", "GD")),
    scales=_scales(6, iterations=60, lr=1.0),
    charts=f"{CHARTS}:times",
    errata=(
        "Equation 7 has the difference the wrong way round: the difficult alignment rises, as equation 30 says.",
        "Equation 5 lacks the α of equation 28.",
        *INITIAL,
    ),
)
_THEOREM_3 = Experiment(
    key="nguyen2024/theorem3.3",
    title="Theorem 3.3: SAM learns the easy feature first, and later than GD",
    claim="SAM learns the easy feature before the difficult one, but more slowly than GD.",
    plan=_growth,
    claims=(
        *map(_exact("sam", "equations 44 and 45"), BETAS),
        *_shared("sam", "SAM"),
        *(
            Claim(
                f"later at {beta}",
                f"SAM learns the easy feature later than GD (β_d = {beta})",
                f"{beta}.sam.time",
                "greater",
                f"{beta}.gd.time",
            )
            for beta in BETAS
        ),
        *(
            Claim(
                f"{feature} between at {beta}",
                f"⟨w, v⟩ − ρ ≤ ⟨w_ε, v⟩ ≤ ⟨w, v⟩ for every filter and step, {words} (β_d = {beta})",
                f"{beta}.sam.between.{feature}",
                "equal",
                100.0,
                margin=0.5,
            )
            for beta in BETAS
            for feature, words in (("easy", "easy"), ("hard", "difficult"))
        ),
    ),
    scales=_scales(6, iterations=60, lr=1.0),
    charts=f"{CHARTS}:times",
    errata=(
        "Lemma A.10's second line writes α times a mean over all N examples where the sum is over the αN that have the "
        "easy patch; lemma A.12's upper bound repeats the alignment itself. Equations 44 and 9 are right.",
        *INITIAL,
    ),
)
_THEOREM_4 = Experiment(
    key="nguyen2024/theorem3.4",
    title="Theorem 3.4: SAM learns features more evenly",
    claim="At every iteration until the easy feature is learned, SAM's gap between the features is below GD's.",
    plan=_growth,
    claims=tuple(
        Claim(
            f"{name} at {beta}",
            f"{says} for every t ≤ T₀ (β_d = {beta})",
            f"{beta}.{value}",
            "equal",
            100.0,
            margin=0.5,
        )
        for beta in BETAS
        for name, says, value in (
            ("evenly", "S_e − S_d < G_e − G_d", "evenly"),
            ("easy", "S_e ≤ G_e (eq. 62)", "easy.less"),
            ("difficult", "S_d ≤ G_d (eq. 63)", "hard.less"),
        )
    )
    + tuple(
        Claim(
            f"as drawn at {beta}",
            f"with weights as they are drawn the gap is smaller in SAM, too, on average until T₀ (β_d = {beta})",
            f"drawn {beta}.gap.sam",
            "less",
            f"drawn {beta}.gap.gd",
            corrects=True,
            note="The theorem's assumptions do not hold of weights as they are drawn.",
        )
        for beta in BETAS
    ),
    scales=_scales(6, iterations=60, lr=1.0),
    charts=f"{CHARTS}:gaps",
    errata=(
        "T₀ stands for two times, GD's and SAM's; here it is GD's, the earlier one.",
        "Equation 63, a line of the proof, fails: SAM's difficult alignment passes GD's before T₀. The proof takes the "
        "slopes l for one constant; SAM's are larger, as it looks at worse weights and learns the easy feature later, "
        "and with them the difficult one grows faster. The theorem itself, equation 11, holds at every iteration.",
        *INITIAL,
    ),
)


def _steps(seeds: tuple[int, ...], **size: Any) -> list[Part]:
    return [
        Part(
            f"β_d = {beta}",
            "nguyen2024.one_step:recovered",
            {"seeds": list(seeds), "name": str(beta), "beta_hard": beta, **size},
        )
        for beta in BETAS
    ]


def _one_step(beta: float) -> tuple[Claim, ...]:
    at = f"(β_d = {beta})"
    return (
        Claim(
            f"SAM at {beta}",
            f"the difficult feature has a larger part in SAM's normalised gradient than in GD's {at}",
            f"{beta}.sam",
            "greater",
            f"{beta}.gd",
        ),
        Claim(
            f"stronger for GD at {beta}",
            f"making it 1.5 times as strong makes its part in GD's larger {at}",
            f"{beta}.gd.stronger",
            "greater",
            f"{beta}.gd",
        ),
        Claim(
            f"stronger for SAM at {beta}",
            f"and in SAM's {at}",
            f"{beta}.sam.stronger",
            "greater",
            f"{beta}.sam",
        ),
        Claim(
            f"recovered at {beta}",
            f"with the k of eq. 96 GD's ratio of difficult to easy is SAM's: one filter, no noise {at}",
            f"{beta}.off",
            "equal",
            0.0,
            margin=0.05,
        ),
        Claim(
            f"literal at {beta}",
            f"with ρᵗ = ρ/‖∇L‖ of the loss itself, as section 3.2 defines it, k is seldom right {at}",
            f"{beta}.literal",
            "less",
            50.0,
            corrects=True,
            note="The proof drops l ≈ ½ from the gradient: the k of eq. 96 is right if ρᵗ is taken from that gradient "
            "(84), and with the loss's own if 3 is read as 3/2.",
        ),
        Claim(
            f"several filters at {beta}",
            f"with 40 filters and noise the best k closes less than a tenth of the distance to SAM's gradient {at}",
            f"{beta}.closed",
            "less",
            0.1,
            corrects=True,
            after=True,
            note="Distance: 1 − the cosine with SAM's gradient; k from 0.8 to 2.",
        ),
    )


_THEOREM_5 = Experiment(
    key="nguyen2024/theorem3.5",
    title="Theorem 3.5: one step of SAM, or of GD with a stronger difficult feature",
    claim="SAM's step favours the difficult feature, and GD's does as much where that feature is k times as strong.",
    plan=_steps,
    claims=(*_one_step(0.2), *_one_step(0.4)),
    scales=_scales(4, num_filters=8, lr=1.0),
    charts=f"{CHARTS}:one_step",
    derived="nguyen2024.differences:closed",
    errata=(
        "Equation 96 drops l ≈ ½ from the gradient but not from ρᵗ = ρ/‖∇L‖: read 3/2 for 3, or take ρᵗ from (84).",
        "The proof leaves out the filter's index: k depends on the filter, and no single k recovers the gradient of a "
        "network with several. With 40 filters the best k closes next to nothing of the distance.",
        "Upsampling examples multiplies their number, not β_d: the theorem is about amplified features.",
    ),
)
EXPERIMENTS = (_THEOREM_2, _THEOREM_3, _THEOREM_4, _THEOREM_5)
