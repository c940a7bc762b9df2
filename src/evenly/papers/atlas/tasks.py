"""The tasks of the atlas, and the experiment of each: a minority, its share, the number of examples, a network."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from evenly.intervals import paired_difference
from evenly.papers.atlas.cures import CURES
from evenly.papers.claim import Claim
from evenly.papers.experiment import Experiment, Measured, Part, Scale
from evenly.report.chart import Bars, Chart, Rule

Minority = Literal["lacking", "conflicting", "noisy"]
#: The kinds of error: on the task's own test set, with the easy feature independent of the label, in the worst group.
ERRORS = {
    "test": "the test set drawn as the training set is",
    "balanced": "test examples whose easy feature says nothing",
    "worst": "the worst group of test examples, by class and by whether they are of the minority's kind",
}
TITLES = {"test": "Ordinary test set", "balanced": "Balanced", "worst": "Worst group"}
SEEDS = tuple(range(20, 30))  # fresh: the cures and their settings were explored on other seeds
AT_ONCE = 5  # seeds in one part
_WORDS = {
    "lacking": "lack the easy feature",
    "conflicting": "have an easy feature that indicates another class",
    "noisy": "have a wrong label, and a fifth lack the easy feature",
}


@dataclass(frozen=True)
class Task:
    """A training set with a planted minority, and the network that learns it."""

    data: str
    minority: Minority
    share: float
    size: int
    model: str = "mlp"
    network: Mapping[str, Any] = field(default_factory=lambda: {"dropout": 0.0})
    lr: float = 0.05
    epochs: int = 30
    prefix: str = ""
    suffix: str = ""

    @property
    def key(self) -> str:
        """Its key, such as `atlas/lacking-20`."""
        return f"atlas/{self.prefix}{self.minority}-{100 * self.share:g}{self.suffix}"

    @property
    def options(self) -> dict[str, Any]:
        """The options of the data set."""
        planted = {
            "lacking": {"alpha": round(1 - self.share, 6)},
            "conflicting": {"alpha": round(1 - self.share, 6), "conflict": self.share},
            "noisy": {"alpha": 0.8, "noise": self.share},
        }[self.minority]
        return {**planted, "size": self.size}

    @property
    def sentence(self) -> str:
        """The task in words."""
        return f"{100 * self.share:g}% of {self.size:,} examples of {self.data} {_WORDS[self.minority]}"

    @property
    def words(self) -> str:
        """The task and its network in words."""
        return f"{self.sentence}, {self.model}"

    @property
    def group(self) -> str:
        """The group of test examples that corresponds to the minority."""
        return "contradicts" if self.minority == "conflicting" else "lacks"


def experiment(
    task: Task, *, scale: Literal["small", "full"], minutes: float, data: tuple[str, ...] = (), value: float = 0.0
) -> Experiment:
    """The experiment of a task: every cure beside plain training, with the same seeds."""

    def plan(
        seeds: Sequence[int], *, epochs: int = task.epochs, cures: Sequence[str] = tuple(CURES), **other: Any
    ) -> list[Part]:
        settings: dict[str, Any] = {
            "data": task.data, "options": task.options, "model": task.model, "network": dict(task.network),
            "group": task.group, "lr": task.lr, "epochs": epochs, "cures": list(cures), **other,
        }  # fmt: skip
        chunks = [list(seeds[first : first + AT_ONCE]) for first in range(0, len(seeds), AT_ONCE)]
        return [
            Part(f"seeds {own[0]}–{own[-1]}", "atlas.training:train_cures", {**settings, "seeds": own})
            for own in chunks
        ]

    small = {"dropout": 0.0, "width": 8} if task.model == "mlp" else {}
    smoke = {"data": "digit-dominoes", "options": {**task.options, "size": 60}, "epochs": 2, "network": small}
    scales = {"smoke": Scale((0, 1), 0.1, smoke)}
    scales[scale] = Scale(SEEDS, minutes, data=data, value=value, wanted=len(SEEDS))
    return Experiment(
        key=task.key,
        title=f"Atlas: {task.words}",
        claim=f"Where {task.sentence}, USEFUL lowers the error on balanced data.",
        plan=plan,
        claims=tuple(_claims()),
        scales=scales,
        charts=draw,
        primary="useful balanced",
        atlas=True,
    )


def _claims() -> list[Claim]:
    return [
        Claim(
            f"{name} {where}",
            f"{cure.label} has a lower error than plain training on {words}",
            f"{name}.{where} < plain.{where}",
        )
        for where, words in ERRORS.items()
        for name, cure in CURES.items()
        if name != "plain"
    ]


def draw(measured: Measured) -> list[Chart]:
    """The difference to plain training of every cure, pair by pair, for each kind of error."""
    charts = []
    for where, words in ERRORS.items():
        plain = measured.values[f"plain.{where}"]
        named = [name for name in CURES if name != "plain" and f"{name}.{where}" in measured.values]
        own = [measured.values[f"{name}.{where}"] for name in named]
        dots = [[by[seed] - plain[seed] for seed in plain] for by in own]
        means = [paired_difference(list(by.values()), [plain[seed] for seed in by]) for by in own]
        low, high = [each.low for each in means], [each.high for each in means]
        labels = [CURES[name].label for name in named]
        layer = Bars("", labels, [each.mean for each in means], low, high, dots, bar=False)
        error = sum(plain.values()) / len(plain)
        charts.append(
            Chart(
                f"{where.capitalize()}: plain training {error:.2f}%",
                "",
                "difference to plain training, points",
                [layer, Rule(y=0.0, name="plain")],
                f"Difference to plain training in the error on {words}: mean, 95% interval, and every seed.",
            )
        )
    return charts
