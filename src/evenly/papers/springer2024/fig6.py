"""Figure 6: median importance by the contributions of the two features, on the toy, CelebA and Waterbirds."""

from collections.abc import Mapping, Sequence
from math import log10
from typing import Any

from evenly.papers.claim import Claim
from evenly.papers.experiment import Experiment, Measured
from evenly.papers.springer2024 import image_importance, toy_importance
from evenly.papers.springer2024.quantities import at
from evenly.papers.springer2024.toy import SPIRAL, UNSAID
from evenly.papers.springer2024.toy_importance import EARLY
from evenly.report.chart import Chart, Heat

FLOOR = 1e-5  # less importance is drawn like this
TYPICAL = (
    "declared after the sums above had been seen: a few examples hold nearly all of λ, so that sums are about these, "
    "and the paper's medians are about the typical example"
)
ERRATA = (
    *SPIRAL,
    "The captions of figures 6 and 9 say y·v_easy·Φ_hard for the hard contribution; v_hard is meant.",
    "λ̃ depends on the hard contribution about as much as λ does, on the easy one much less: importance leaves what "
    "the easy feature fits badly, but does not go to what the hard one does.",
)


def map_claims(epoch: int, *, name: str = "lsam") -> tuple[Claim, ...]:
    """What figures 6 and 9 say of one epoch."""
    lsam = f"{at(epoch=epoch)}.{name}"
    return (
        Claim(
            f"hard, epoch {epoch}",
            f"epoch {epoch}: the half that the hard feature fits worst holds more of λ̃ than of λ",
            f"{lsam}.hard_poor_phantom > {lsam}.hard_poor_real",
            note=UNSAID,
        ),
        Claim(
            f"easy, epoch {epoch}",
            f"epoch {epoch}: the half that the easy feature fits worst holds less of λ̃ than of λ",
            f"{lsam}.easy_poor_phantom < {lsam}.easy_poor_real",
            note=UNSAID,
        ),
        Claim(
            f"hard, typically, epoch {epoch}",
            f"epoch {epoch}: λ̃ falls with the hard feature's contribution more than λ does (rank correlation)",
            f"{lsam}.hard_rank_phantom < {lsam}.hard_rank_real",
            corrects=True,
            after=True,
            note=TYPICAL,
        ),
        Claim(
            f"easy, typically, epoch {epoch}",
            f"epoch {epoch}: λ̃ falls with the easy feature's contribution less than λ does (rank correlation)",
            f"{lsam}.easy_rank_phantom > {lsam}.easy_rank_real",
            corrects=True,
            after=True,
            note=TYPICAL,
        ),
    )


def map_charts(series: Mapping[str, Any], epochs: Sequence[int], *, name: str = "lsam") -> list[Chart]:
    """A map for the real weights of every epoch and below it one for the phantom's, all on one scale of colours."""
    panels = []
    for kind in ("real", "phantom"):
        for epoch in epochs:
            shown = series[f"{at(epoch=epoch)}.{name}.{kind}"]["map"]
            logs = [[None if v is None else log10(max(v, FLOOR)) for v in row] for row in shown["median"]]
            heat = Heat(shown["easy"], shown["hard"], logs, "log₁₀ median λ", low=log10(FLOOR), high=0.0)
            title = f"Epoch {epoch}, {name.upper()}'s {kind} weights"
            sentence = (
                "The median importance of the examples in every bin of what the easy and the hard feature contribute, "
                f"{kind} weights."
            )
            panels.append(Chart(title, "y·v_easy·Φ_easy", "y·v_hard·Φ_hard", [heat], sentence))
    return panels


def toy_chart(measured: Measured) -> list[Chart]:
    """LSAM's network at one epoch."""
    return map_charts(measured.series["weights"], (EARLY,))


def image_chart(measured: Measured) -> list[Chart]:
    """SAM's network of the first seed, at three of the epochs."""
    first = next(iter(measured.series.values()))
    return map_charts(first, [first["epochs"][i] for i in (0, 1, -1)], name="sam")


def on_images(name: str) -> Experiment:
    """The panels of figures 6 and 9 for CelebA or Waterbirds."""
    epochs = image_importance.EPOCHS[name]
    return Experiment(
        key=f"springer2024/fig6-{name}",
        title=f"Median importance by the two contributions, {image_importance.TITLES[name]} (figures 6 and 9)",
        claim="On real images too, SAM moves importance to examples that the hard feature fits badly.",
        plan=image_importance.plan,
        primary=tuple(f"hard, epoch {epoch}" for epoch in epochs),
        claims=tuple(claim for epoch in epochs for claim in map_claims(epoch, name="sam")),
        scales=image_importance.scales(name),
        charts=image_chart,
    )


EXPERIMENTS = (
    Experiment(
        key="springer2024/fig6",
        title="Median importance by the two contributions, toy (figure 6)",
        claim="LSAM moves importance to examples that the hard feature fits badly, from those that the easy one does.",
        plan=toy_importance.plan,
        primary=(f"hard, epoch {EARLY}", f"easy, epoch {EARLY}"),
        claims=map_claims(EARLY),
        scales=toy_importance.SCALES,
        charts=toy_chart,
        errata=ERRATA,
    ),
    on_images("celeba"),
    on_images("waterbirds"),
)
