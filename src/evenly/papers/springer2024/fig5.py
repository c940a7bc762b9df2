"""Figure 5: Lorenz curves of the importance weights, on the toy, CelebA and Waterbirds."""

from collections.abc import Mapping, Sequence
from typing import Any

from evenly.papers.claim import Claim
from evenly.papers.experiment import Experiment, Measured
from evenly.papers.springer2024 import image_importance, toy_importance
from evenly.papers.springer2024.quantities import at
from evenly.papers.springer2024.toy import SPIRAL, UNSAID
from evenly.papers.springer2024.toy_importance import EARLY
from evenly.report.chart import Chart, Line

LATER = (
    "Beside SGD's network the claim holds early only: LSAM fits faster, and once nearly all examples are fitted the "
    "few that are not hold what importance is left, at the phantom weights too."
)


def lorenz_claims(epoch: int, *, name: str = "lsam") -> tuple[Claim, ...]:
    """What figures 5 and 8 say of one epoch; `name` is that of the quantities, lsam or sam."""
    lsam, sgd = f"{at(epoch=epoch)}.{name}", f"{at(epoch=epoch)}.sgd"
    return (
        Claim(
            f"within, epoch {epoch}",
            f"epoch {epoch}: in {name.upper()}'s network λ̃ is spread more evenly than λ (Gini)",
            f"{lsam}.phantom_gini < {lsam}.real_gini",
            note=UNSAID,
        ),
        Claim(
            f"beside SGD, epoch {epoch}",
            f"epoch {epoch}: {name.upper()}'s λ̃ is spread more evenly than the λ of SGD's network (Gini)",
            f"{lsam}.phantom_gini < {sgd}.real_gini",
            note=UNSAID,
        ),
    )


def lorenz_charts(series: Mapping[str, Any], epochs: Sequence[int], *, name: str = "lsam") -> list[Chart]:
    """Solid at the phantom weights, dashed at the real ones, in the colours of the methods."""
    panels = []
    for epoch in epochs:
        lines = []
        for who, colour in (("sgd", 0), (name, 1)):
            for kind in ("real", "phantom"):
                held = series[f"{at(epoch=epoch)}.{who}.{kind}"]["lorenz"]
                share = [100 * i / (len(held) - 1) for i in range(len(held))]
                percent = [100 * each for each in held]
                lines.append(Line(f"{who.upper()}, {kind}", share, percent, dashed=kind == "real", colour=colour))
        lines.append(Line("even", [0, 100], [0, 100], dashed=True, colour=6))
        sentence = "The share of all importance that the least important examples hold; the diagonal is evenness."
        panels.append(Chart(f"Epoch {epoch}", "examples, least important first (%)", "importance (%)", lines, sentence))
    return panels


def toy_chart(measured: Measured) -> list[Chart]:
    """SGD's and LSAM's network at one epoch."""
    return lorenz_charts(measured.series["weights"], (EARLY,))


def image_chart(measured: Measured) -> list[Chart]:
    """The networks of the first seed, at every epoch."""
    first = next(iter(measured.series.values()))
    return lorenz_charts(first, first["epochs"], name="sam")


def on_images(name: str) -> Experiment:
    """The panels of figures 5 and 8 for CelebA or Waterbirds."""
    epochs = image_importance.EPOCHS[name]
    return Experiment(
        key=f"springer2024/fig5-{name}",
        title=f"Lorenz curves of the importance weights, {image_importance.TITLES[name]} (figures 5 and 8)",
        claim="On real images too, importance is spread more evenly at SAM's phantom weights.",
        plan=image_importance.plan,
        primary=tuple(f"within, epoch {epoch}" for epoch in epochs),
        claims=tuple(claim for epoch in epochs for claim in lorenz_claims(epoch, name="sam")),
        scales=image_importance.scales(name),
        charts=image_chart,
    )


EXPERIMENTS = (
    Experiment(
        key="springer2024/fig5",
        title="Lorenz curves of the importance weights, toy (figure 5)",
        claim="Importance is spread more evenly at LSAM's phantom weights than at the real ones, its own or SGD's.",
        plan=toy_importance.plan,
        primary=(f"within, epoch {EARLY}", f"beside SGD, epoch {EARLY}"),
        claims=lorenz_claims(EARLY),
        scales=toy_importance.SCALES,
        charts=toy_chart,
        errata=(*SPIRAL, LATER),
    ),
    on_images("celeba"),
    on_images("waterbirds"),
)
