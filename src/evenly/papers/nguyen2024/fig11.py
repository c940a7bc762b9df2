"""Figure 11: when to separate."""

from collections.abc import Mapping, Sequence
from typing import Any

from evenly.errors import UsageError
from evenly.papers.charts import OVER_SEEDS, bars
from evenly.papers.claim import Claim
from evenly.papers.experiment import Experiment, Measured, Part
from evenly.papers.nguyen2024.comparisons import parts, scales
from evenly.papers.nguyen2024.recipes import Case
from evenly.report.chart import Chart, Line, Points

# At full size the paper's six epochs, of which it took 8; at the small one as far around the 4 that the rule takes.
EPOCHS: Mapping[str, tuple[int, ...]] = {"smoke": (1, 2), "small": (2, 3, 4, 5), "full": (4, 5, 6, 7, 8, 10)}
CLAIMS = (
    Claim(
        "too early",
        "better than after half as many epochs (epoch 4 of the paper's 200)",
        "gain.useful.error < earliest.useful.error",
    ),
    Claim("too late", "better than after a quarter more (epoch 10 of 200)", "gain.useful.error < latest.useful.error"),
)


def cases_at(epochs: Sequence[int]) -> tuple[Case, ...]:
    """USEFUL separated by the rule and after each of these epochs: earliest, latest, and those between.

    >>> [case.name for case in cases_at((4, 8, 10))]
    ['gain', 'earliest', 'epoch 8', 'latest']
    """
    if len(set(epochs)) < len(epochs) or len(epochs) < 2 or list(epochs) != sorted(epochs):
        raise UsageError(f"separating after epochs {tuple(epochs)}: give two or more that differ, the earliest first.")
    names = ("earliest", *(f"epoch {epoch}" for epoch in epochs[1:-1]), "latest")
    at = (
        Case(name, until={"rule": "epoch", "value": epoch}, controls=())
        for name, epoch in zip(names, epochs, strict=True)
    )
    return (Case("gain", until={"rule": "gain"}), *at)


def plan(seeds: tuple[int, ...], *, size: str) -> list[Part]:
    """A part for each epoch and seed, and one for the rule's epoch."""
    return parts(seeds, cases=cases_at(EPOCHS[size]), size=size)


def charts(measured: Measured) -> list[Chart]:
    """The training error of the early run, and the test error by the epoch of separation."""
    layers: list[Any] = []
    by_rule = {key: part["curves"] for key, part in measured.series.items() if key.startswith("gain ")}
    for colour, (key, curves) in enumerate(by_rule.items()):
        plain, early = curves["original"], curves["early"]
        errors = [100 * each for each in plain["train.error"]]
        layers.append(Line(f"seed {key.split()[-1]}", plain["epoch"], errors, colour=colour))
        # Where the early run has fitted everything by its end, an earlier epoch is taken.
        separated = int(measured.values["gain.early"][int(key.split()[-1])])
        error = 100 * early["train.error"][early["epoch"].index(separated)]
        layers.append(Points("", [separated], [error], colour=colour, mark="cross"))
    # Every name but the rule's own has one epoch, the same for all seeds.
    epochs = {
        name.removesuffix(".early"): min(by.values()) for name, by in measured.values.items() if name.endswith(".early")
    }
    in_order = sorted((name for name in epochs if name != "gain"), key=lambda name: epochs[name])
    names = {f"epoch {epochs[name]:g}": name for name in in_order} | {"by the rule": "gain"}
    return [
        Chart(
            "Training error", "epoch", "training error (%)", layers, "Training error; a cross where the rule separates."
        ),
        Chart(
            "When to separate",
            "",
            "test error (%)",
            [bars(measured, {label: f"{name}.useful.error" for label, name in names.items()}, name="SGD + USEFUL")],
            f"Test error of USEFUL by the epoch of separation: {OVER_SEEDS}.",
        ),
    ]


EXPERIMENT = Experiment(
    "nguyen2024/fig11",
    "Figure 11: when to separate",
    "The best epoch to separate is where the gain in training error shrinks; earlier and later ones are worse.",
    plan,
    CLAIMS,
    scales(
        *cases_at(EPOCHS["full"]), small_deviations=("separated after 2 to 5 of 20 epochs instead of 4 to 10 of 200",)
    ),
    charts,
    ("The paper chose the epoch by the test error it reports, from six; here a rule chooses it.",),
    primary=("too early", "too late"),
)
