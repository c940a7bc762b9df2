"""Figures 3, 4 and 7: LSAM gives the hard feature a larger part of the gradient, and that is what helps it."""

from collections.abc import Sequence

from evenly.papers.claim import Claim
from evenly.papers.experiment import Experiment, Part, Scale
from evenly.papers.springer2024.names import at
from evenly.papers.springer2024.probing_figures import (
    CHI,
    OPEN,
    RHOS,
    ROOM,
    SEEDS,
    SMOKE,
    SPIRAL,
    UNSAID,
    sizes,
)

RHO = 1.0  # where the mechanisms are looked at: above it ṽ_easy passes through zero
STARS = (0.5, 1.0, 1.5, 2.0, 3.0, 4.0)
MEDIANS = "medians over the batches of every epoch, where the paper has means: ṽ_easy passes through zero"


def _ratios(
    seeds: Sequence[int], *, epochs: int = 100, num_train: int = 300, num_test: int = 2000, width: int = 100
) -> list[Part]:
    given = {"seeds": list(seeds), "chi": CHI, "rhos": list(RHOS), "epochs": epochs}
    return [Part("ratios", f"{ROOM}.phantom_ratios:ratios", given | {"sizes": sizes(num_train, num_test, width)})]


def _rates(
    seeds: Sequence[int], *, epochs: int = 100, num_train: int = 300, num_test: int = 2000, width: int = 100
) -> list[Part]:
    given = {"seeds": list(seeds), "chi": CHI, "rho": RHO, "epochs": epochs}
    return [Part("rates", f"{ROOM}.phantom_ratios:rates", given | {"sizes": sizes(num_train, num_test, width)})]


def _interventions(
    seeds: Sequence[int], *, epochs: int = 100, num_train: int = 300, num_test: int = 2000, width: int = 100
) -> list[Part]:
    given = {"seeds": list(seeds), "chi": CHI, "rhos": list(RHOS), "stars": list(STARS), "epochs": epochs}
    return [
        Part("interventions", f"{ROOM}.phantom_ratios:compared", given | {"sizes": sizes(num_train, num_test, width)})
    ]


FIGURE_3 = Experiment(
    key="springer2024/fig3",
    title="ṽ_hard/ṽ_easy and v_hard/v_easy against ρ (figure 3)",
    claim="The phantom ratio ṽ_hard/ṽ_easy rises with ρ, while the real one stays near 1.",
    plan=_ratios,
    claims=(
        Claim(
            "rises",
            "ṽ_hard/ṽ_easy is larger at ρ = 1 than for SGD",
            at("phantom", chi=CHI, rho=1),
            "greater",
            at("phantom", chi=CHI, rho=0),
            note=UNSAID,
        ),
        Claim("trend", "and rises with ρ (rank correlation)", at("phantom_trend", chi=CHI), "greater", 0.0),
        Claim(
            "one",
            "for SGD the ratio is close to 1",
            at("phantom", chi=CHI, rho=0),
            "equal",
            1.0,
            paper=1.0,
            margin=0.1,
        ),
        Claim(
            "constant",
            "v_hard/v_easy is the same at ρ = 1 as for SGD",
            at("real", chi=CHI, rho=1),
            "equal",
            at("real", chi=CHI, rho=0),
            margin=0.1,
        ),
    ),
    scales={"smoke": SMOKE, "full": Scale(SEEDS, 1.0, deviations=(*OPEN, "χ = 360", MEDIANS))},
    charts=f"{ROOM}.charts_mechanism:ratios",
    errata=(
        *SPIRAL,
        "Trained from v = (1, 1) the real ratio is neither 1 for SGD nor constant in ρ: the easy weight grows from the "
        "first epoch on, and under LSAM more. The phantom ratio rises all the same.",
    ),
)

FIGURE_4 = Experiment(
    key="springer2024/fig4",
    title="LSAM's learning rates of the two features, over batches (figure 4)",
    claim="LSAM lowers the learning rate of the easy feature, raises that of the hard one, and so raises its share.",
    plan=_rates,
    claims=(
        Claim("easy", "the easy feature's rate is lowered: the median of ṽ_easy/v_easy", "easy_factor", "less", 1.0),
        Claim("hard", "the hard feature's rate is raised: the median of ṽ_hard/v_hard", "hard_factor", "greater", 1.0),
        Claim("share", "the hard feature's share is larger in ṽ than in v", "phantom_share", "greater", "real_share"),
        Claim(
            "less lowered",
            "the hard feature's rate keeps more of itself than the easy one's",
            "hard_factor",
            "greater",
            "easy_factor",
            corrects=True,
            note="what the share needs: the hard rate need not rise, only fall less",
        ),
    ),
    scales={
        "smoke": SMOKE,
        "full": Scale(SEEDS, 0.5, deviations=(*OPEN, "χ = 360, ρ = 1", "batches of the whole of training, in medians")),
    },
    charts=f"{ROOM}.charts_mechanism:rates",
    errata=(
        *SPIRAL,
        "ṽ_hard exceeds v_hard only in a batch that the hard feature, weighted by importance, gets wrong: half of the "
        "batches before the first step, ever fewer after it. Typically LSAM lowers both rates, the easy one much more.",
    ),
)


FIGURE_7 = Experiment(
    key="springer2024/fig7",
    title="The two effects by hand, alone and together, beside LSAM (figure 7)",
    claim="Importance weighting and learning rates each improve the hard feature, and together they do what LSAM does.",
    plan=_interventions,
    claims=(
        *(
            Claim(
                name,
                f"{says}: points of hard probing error gained on SGD at v*_hard = {STARS[-1]:g}",
                f"{effect}.gain",
                "greater",
                0.0,
                note=UNSAID,
            )
            for name, effect, says in (
                ("importance", "importance", "importance weighting alone"),
                ("rate", "rate", "the learning rates alone"),
                ("both", "both", "both together"),
            )
        ),
        Claim(
            "comparable",
            "the two effects alone gain alike, in points",
            "importance.gain",
            "equal",
            "rate.gain",
            margin=10.0,
        ),
        *(
            Claim(
                f"all of LSAM, ρ = {rho:g}",
                f"both together err as LSAM of ρ = {rho:g} does at its ratio, in points more",
                f"both.{at('gap', rho=rho)}",
                "equal",
                0.0,
                margin=5.0,
                after=True,
                note="by interpolation over v*_hard at LSAM's median ratio over training. Declared first as the mean "
                "of signed gaps over all ρ > 0, in which opposite gaps cancel",
            )
            for rho in (1.0, 2.0)
        ),
    ),
    scales={
        "smoke": SMOKE,
        "full": Scale(SEEDS, 3.0, deviations=(*OPEN, "χ = 360; v*_hard in 0.5, 1, 1.5, 2, 3, 4", MEDIANS)),
    },
    charts=f"{ROOM}.charts_mechanism:interventions",
    derived=f"{ROOM}.ratio_gaps:gaps",
    errata=(
        *SPIRAL,
        "The text compares by “the mean value of v_hard/v_easy over training (from figure 3)”: the phantom ratio is "
        "meant, the real one hardly changes.",
    ),
)

EXPERIMENTS = (FIGURE_3, FIGURE_4, FIGURE_7)
