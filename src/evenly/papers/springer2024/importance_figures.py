"""Figures 5, 6, 8 and 9 on the toy: LSAM spreads importance, and moves it to what the hard feature fits badly."""

from collections.abc import Sequence

from evenly.papers.claim import Claim
from evenly.papers.experiment import Experiment, Part, Scale
from evenly.papers.springer2024.mechanism_figures import RHO
from evenly.papers.springer2024.names import at
from evenly.papers.springer2024.probing_figures import (
    CHI,
    OPEN,
    ROOM,
    SEEDS,
    SMOKE,
    SPIRAL,
    TINY,
    UNSAID,
    sizes,
)

EPOCHS = (5, 20, 50, 100)
EARLY = EPOCHS[1]  # "(incompletely) trained"
LATER = (
    "Beside SGD's network the claim holds early only: LSAM fits faster, and once nearly all examples are fitted the "
    "few that are not hold what importance is left, at the phantom weights too."
)
TYPICAL = (
    "declared after the sums above had been seen: a few examples hold nearly all of λ, so that sums are about these, "
    "and the paper's medians are about the typical example"
)


def _weights(
    seeds: Sequence[int],
    *,
    at_epochs: Sequence[int] = EPOCHS,
    num_train: int = 300,
    num_test: int = 2000,
    width: int = 100,
) -> list[Part]:
    given = {"seeds": list(seeds), "chi": CHI, "rho": RHO, "at_epochs": list(at_epochs)}
    return [Part("weights", f"{ROOM}.phantom_weights:weighted", given | {"sizes": sizes(num_train, num_test, width)})]


# At smoke the network is watched at the same epochs, of fewer examples: their names are those of the claims.
WATCHED = Scale(
    (0, 1), 0.05, {name: TINY[name] for name in ("num_train", "num_test", "width")}, deviations=SMOKE.deviations
)


def lorenz_claims(epoch: int, *, name: str = "lsam") -> tuple[Claim, ...]:
    """What figures 5 and 8 say of one epoch; `name` is that of the quantities, lsam or sam."""
    lsam, sgd = f"{at(epoch=epoch)}.{name}", f"{at(epoch=epoch)}.sgd"
    return (
        Claim(
            f"within, epoch {epoch}",
            f"epoch {epoch}: in {name.upper()}'s network λ̃ is spread more evenly than λ (Gini)",
            f"{lsam}.phantom_gini",
            "less",
            f"{lsam}.real_gini",
            note=UNSAID,
        ),
        Claim(
            f"beside SGD, epoch {epoch}",
            f"epoch {epoch}: {name.upper()}'s λ̃ is spread more evenly than the λ of SGD's network (Gini)",
            f"{lsam}.phantom_gini",
            "less",
            f"{sgd}.real_gini",
            note=UNSAID,
        ),
    )


def map_claims(epoch: int, *, name: str = "lsam") -> tuple[Claim, ...]:
    """What figures 6 and 9 say of one epoch."""
    lsam = f"{at(epoch=epoch)}.{name}"
    return (
        Claim(
            f"hard, epoch {epoch}",
            f"epoch {epoch}: the half that the hard feature fits worst holds more of λ̃ than of λ",
            f"{lsam}.hard_poor_phantom",
            "greater",
            f"{lsam}.hard_poor_real",
            note=UNSAID,
        ),
        Claim(
            f"easy, epoch {epoch}",
            f"epoch {epoch}: the half that the easy feature fits worst holds less of λ̃ than of λ",
            f"{lsam}.easy_poor_phantom",
            "less",
            f"{lsam}.easy_poor_real",
            note=UNSAID,
        ),
        Claim(
            f"hard, typically, epoch {epoch}",
            f"epoch {epoch}: λ̃ falls with the hard feature's contribution more than λ does (rank correlation)",
            f"{lsam}.hard_rank_phantom",
            "less",
            f"{lsam}.hard_rank_real",
            corrects=True,
            note=TYPICAL,
        ),
        Claim(
            f"easy, typically, epoch {epoch}",
            f"epoch {epoch}: λ̃ falls with the easy feature's contribution less than λ does (rank correlation)",
            f"{lsam}.easy_rank_phantom",
            "greater",
            f"{lsam}.easy_rank_real",
            corrects=True,
            note=TYPICAL,
        ),
    )


_LOOKED = (*OPEN, f"χ = 360, ρ = 1, epochs {', '.join(map(str, EPOCHS))}", "phantoms of batches of 5, as in training")
FULL_WEIGHTS = Scale(SEEDS, 0.6, deviations=_LOOKED)

FIGURE_5 = Experiment(
    key="springer2024/fig5",
    title="Lorenz curves of the importance weights, toy (figure 5)",
    claim="Importance is spread more evenly at LSAM's phantom weights than at the real ones, its own or SGD's.",
    plan=_weights,
    claims=lorenz_claims(EARLY),
    scales={"smoke": WATCHED, "full": FULL_WEIGHTS},
    charts=f"{ROOM}.charts_mechanism:lorenz_early",
    errata=(*SPIRAL, LATER),
)

FIGURE_8 = Experiment(
    key="springer2024/fig8",
    title="Lorenz curves during training, toy (figure 8)",
    claim="That importance is spread more evenly at the phantom weights holds during all of training.",
    plan=_weights,
    claims=tuple(claim for epoch in EPOCHS for claim in lorenz_claims(epoch)),
    scales={"smoke": WATCHED, "full": FULL_WEIGHTS},
    charts=f"{ROOM}.charts_mechanism:lorenz_all",
    errata=(*SPIRAL, LATER),
)

FIGURE_6 = Experiment(
    key="springer2024/fig6",
    title="Median importance by the two contributions, toy (figure 6)",
    claim="LSAM gives more importance to what the hard feature fits badly and less to what the easy one does.",
    plan=_weights,
    claims=map_claims(EARLY),
    scales={"smoke": WATCHED, "full": FULL_WEIGHTS},
    charts=f"{ROOM}.charts_mechanism:maps_early",
    errata=(
        *SPIRAL,
        "The captions of figures 6 and 9 say y·v_easy·Φ_hard for the hard contribution; v_hard is meant.",
        "λ̃ depends on the hard contribution about as much as λ does, on the easy one much less: importance leaves what "
        "the easy feature fits badly, but does not go to what the hard one does.",
    ),
)

FIGURE_9 = Experiment(
    key="springer2024/fig9",
    title="Median importance during training, toy (figure 9)",
    claim="That LSAM moves importance to what the hard feature fits badly holds during all of training.",
    plan=_weights,
    claims=tuple(claim for epoch in EPOCHS for claim in map_claims(epoch)),
    scales={"smoke": WATCHED, "full": FULL_WEIGHTS},
    charts=f"{ROOM}.charts_mechanism:maps_all",
    errata=FIGURE_6.errata,
)

EXPERIMENTS = (FIGURE_5, FIGURE_6, FIGURE_8, FIGURE_9)
