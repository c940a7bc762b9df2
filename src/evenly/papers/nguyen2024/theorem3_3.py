"""Theorem 3.3: SAM learns the easy feature first too, and later than GD."""

from evenly.papers.claim import Claim
from evenly.papers.experiment import Experiment
from evenly.papers.nguyen2024.theorem3_2 import CHARTS, INITIAL, growth_claims, plan, scales
from evenly.papers.nguyen2024.two_layer_settings import BETAS

EXPERIMENT = Experiment(
    key="nguyen2024/theorem3.3",
    title="Theorem 3.3: SAM learns the easy feature first, and later than GD",
    claim="SAM learns the easy feature before the difficult one, but more slowly than GD.",
    plan=plan,
    claims=(
        *growth_claims("sam", "equations 44 and 45"),
        *(
            Claim(
                f"later at {beta}",
                f"SAM learns the easy feature later than GD (β_d = {beta})",
                f"{beta}.sam.time > {beta}.gd.time",
            )
            for beta in BETAS
        ),
        *(
            Claim(
                f"{feature} between at {beta}",
                f"⟨w, v⟩ − ρ ≤ ⟨w_ε, v⟩ ≤ ⟨w, v⟩ for every filter and step, {shown} (β_d = {beta})",
                f"{beta}.sam.between.{feature} = 100 ± 0.5",
            )
            for beta in BETAS
            for feature, shown in (("easy", "easy"), ("hard", "difficult"))
        ),
    ),
    scales=scales(6, iterations=60, lr=1.0),
    charts=CHARTS,
    errata=(
        "Lemma A.10's second line writes α times a mean over all N examples where the sum is over the αN that have the "
        "easy patch; lemma A.12's upper bound repeats the alignment itself. Equations 44 and 9 are right.",
        *INITIAL,
    ),
    primary=("difficult not at 0.2", "later at 0.2", "difficult not at 0.4", "later at 0.4"),
)
