"""Figures 5, 6, 8 and 9 on CelebA and Waterbirds: importance under SAM on real images."""

from collections.abc import Mapping, Sequence
from typing import Any

from evenly.papers.experiment import Experiment, Part, Scale
from evenly.papers.springer2024.importance_figures import lorenz_claims, map_claims
from evenly.papers.springer2024.picture_tables import CELEBA, DIGITS, PRETRAINED, SMOKE_SAYS, WATERBIRDS
from evenly.papers.springer2024.probing_figures import ROOM

EPOCHS = {"celeba": (1, 5, 10, 20), "waterbirds": (5, 20, 50, 100)}
RECIPES = {"celeba": CELEBA, "waterbirds": WATERBIRDS}
SHOWN = {"celeba": "CelebA", "waterbirds": "Waterbirds"}
MINUTES = {"celeba": 8000.0, "waterbirds": 2500.0}
DEVIATIONS = (
    "not in the paper, settled here: lr .001, ρ = .05, the epochs, 5,000 training examples drawn at random",
    "phantoms of batches of 128, as in training; contributions by probes fitted on validation examples of each group",
)


def _weighted(
    seeds: Sequence[int],
    *,
    recipe: Mapping[str, Any],
    at_epochs: Sequence[int],
    examples: int = 5000,
    called: Sequence[int] | None = None,
    weights: str | None = None,
    splits: Mapping[str, str] | None = None,
) -> list[Part]:
    more: dict[str, Any] = {"weights": weights, "splits": splits} if weights else {"called": called}
    given = {"recipe": dict(recipe), "rho": 0.05, "at_epochs": list(at_epochs), "examples": examples, **more}
    return [Part(f"seed {seed}", f"{ROOM}.picture_weights:weighted", {"seed": seed, **given}) for seed in seeds]


def _experiment(figure: str, name: str) -> Experiment:
    epochs, lorenz = EPOCHS[name], figure == "fig5"
    numbers = "5 and 8" if lorenz else "6 and 9"
    claims = lorenz_claims if lorenz else map_claims
    what = "Lorenz curves of the importance weights" if lorenz else "Median importance by the two contributions"
    # Four epochs stand for those of the paper.
    tiny = {"recipe": {**DIGITS, "epochs": 4}, "at_epochs": (1, 2, 3, 4), "called": epochs, "examples": 60}
    full = {
        "recipe": RECIPES[name],
        "at_epochs": epochs,
        "weights": PRETRAINED,
        "splits": {"fit": "validation", "test": "test"},
    }
    return Experiment(
        key=f"springer2024/{figure}-{name}",
        title=f"{what}, {SHOWN[name]} (figures {numbers})",
        claim=(
            "On real images too, importance is spread more evenly at SAM's phantom weights."
            if lorenz
            else "On real images too, SAM moves importance to what the hard feature fits badly."
        ),
        plan=_weighted,
        claims=tuple(claim for epoch in epochs for claim in claims(epoch, name="sam")),
        scales={
            "smoke": Scale((0, 1), 0.1, tiny, deviations=SMOKE_SAYS),
            "full": Scale((0, 1, 2, 3), MINUTES[name], full, (name,), DEVIATIONS, levels=True),
        },
        charts=f"{ROOM}.charts_pictures:{'lorenz' if lorenz else 'maps'}",
    )


EXPERIMENTS = tuple(_experiment(figure, name) for figure in ("fig5", "fig6") for name in EPOCHS)
