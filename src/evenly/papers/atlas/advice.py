"""What to try first, by the features of an early network: the cures that did best on the most similar tasks."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, pstdev
from typing import Any

from evenly.papers.atlas.cells import Cell, cells

Row = Mapping[str, Any]
#: The features of a task that need no group labels.
FEATURES = (
    "error", "hard_share", "hard_error", "hard_error_later", "distinctness", "disagreement", "agreement"
)  # fmt: skip
SCORED = ("balanced", "test")
NEAREST = 3
# In standard deviations over the atlas's tasks: the distance within which a second and a third task count too, and the
# distance beyond which not even the nearest does.
NEAR, FAR = 1.0, 3.0
#: The cures as methods of a comparison.
METHODS = {
    "plain": "plain",
    "random": "random:8",
    "useful": "useful:2",
    "useful8": "useful:8",
    "useful8+noise": "useful:8+noise:0.2",
    "useful8+noise-all": "useful:8+augment-all:noise:0.2",
    "useful2+noise": "useful:2+noise:0.2",
    "random+noise": "random:8+noise:0.2",
    "noise-all": "augment-all:noise:0.2",
    "reweight": "reweight:8",
    "balance": "balance:8",
    "right": "useful:2+right",
    "jtt": "jtt:5",
    "logit-penalty": "logit-penalty:0.01",
    "useful8+logit-penalty": "useful:8+logit-penalty:0.03",
    "label-smoothing": "label-smoothing:0.1",
    "sam": "sam:0.1",
    "lsam": "lsam:0.5",
    "batch": "batch",
}


@dataclass(frozen=True)
class Choice:
    """A cure and what it did on the nearest tasks: the mean difference in the balanced error, its extremes, its cost.

    `test` is the mean difference in the ordinary test error there, and `score` decides the ranking.
    """

    cure: str
    score: float
    balanced: float
    best: float
    worst: float
    test: float
    cost: float


@dataclass(frozen=True)
class Advice:
    """The cures in the order to try them, those that harmed similar tasks, and these tasks.

    `nearest` are the tasks with their distances; the ranking is empty if even the nearest is far.
    """

    nearest: Mapping[str, float]
    ranking: tuple[Choice, ...] = ()
    harmful: tuple[str, ...] = ()

    @property
    def abstains(self) -> bool:
        """Whether the atlas has no similar task."""
        return not self.ranking


def advise(features: Mapping[str, float], rows: Sequence[Row]) -> Advice:
    """Rank the cures by their effect on the tasks with the most similar early networks.

    The score of a cure is the mean over these tasks of its differences in balanced and in ordinary error, where a
    difference whose interval includes zero counts as zero, so that chance recommends no cure. A cure that harmed the
    ordinary error on one of the tasks is not advised at all. Distances are root mean squares in standard deviations
    over the tasks of the atlas; up to three tasks count, the second and third only within one standard deviation.
    """
    known = {row["key"]: features_of(row) for row in rows}
    if not known:
        return Advice({})
    scale = {name: pstdev([each[name] for each in known.values()]) or 1.0 for name in FEATURES}
    distances = {
        key: math.sqrt(fmean([((features[name] - each[name]) / scale[name]) ** 2 for name in FEATURES]))
        for key, each in known.items()
    }
    first, *others = sorted(distances.items(), key=lambda pair: pair[1])[:NEAREST]
    nearest = dict([first, *(pair for pair in others if pair[1] <= NEAR)])
    if first[1] > FAR:
        return Advice(nearest)
    return Advice(nearest, *rank_cures(cells([row for row in rows if row["key"] in nearest])))


def rank_cures(own: Sequence[Cell]) -> tuple[tuple[Choice, ...], tuple[str, ...]]:
    """The cures that did no harm to the ordinary error, best first, and those that did."""
    harmful = tuple(dict.fromkeys(cell.cure for cell in own if cell.error == "test" and cell.difference.low > 0))
    choices = [Choice("plain", 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)]
    for cure in dict.fromkeys(cell.cure for cell in own if cell.cure not in harmful):
        mine = [cell for cell in own if cell.cure == cure]
        balanced = [cell.difference.mean for cell in mine if cell.error == "balanced"]
        test = [cell.difference.mean for cell in mine if cell.error == "test"]
        clear = [c.difference.mean for c in mine if c.error in SCORED and c.difference.excludes_zero]
        cost, score = fmean(cell.cost for cell in mine), sum(clear) / len(balanced)
        choices.append(Choice(cure, score, fmean(balanced), min(balanced), max(balanced), fmean(test), cost))
    return tuple(sorted(choices, key=lambda each: (each.score, each.cost))), harmful


def leave_one_out(rows: Sequence[Row]) -> dict[str, bool]:
    """For every task, whether the advice from all other tasks is as good as the best cure there.

    The best cure is the one that the task itself would recommend. The first choice is as good if the means of its
    differences in balanced and in ordinary error are not above the intervals of the best cure's. Abstaining counts as
    plain training.
    """
    good = {}
    for row in rows:
        ranking = advise(features_of(row), [each for each in rows if each["key"] != row["key"]]).ranking
        first, own = ranking[0].cure if ranking else "plain", cells([row])
        best = rank_cures(own)[0][0].cure
        differences = {(cell.cure, cell.error): cell.difference for cell in own}
        good[row["key"]] = first == best or all(
            (differences[first, error].mean if first != "plain" else 0.0)
            <= (differences[best, error].high if best != "plain" else 0.0)
            for error in SCORED
        )
    return good


def accuracy_in_words(rows: Sequence[Row]) -> str:
    """How good the advice is on unseen tasks, in words."""
    if len(rows) < 2:
        return "One task cannot advise on another: run more of them."
    good = leave_one_out(rows)
    misses = [key.partition("/")[2] for key, hit in good.items() if not hit]
    exceptions = f" It was not on {', '.join(misses)}." if misses else ""
    return (
        "`evenly advise` looks for the tasks whose early networks are most like yours. To test it, every task is left "
        "out and advised on from the others: the first choice was as good as the best cure there, within the intervals "
        f"of the latter, on {sum(good.values())} of {len(good)} tasks.{exceptions}"
    )


def features_of(row: Row) -> dict[str, float]:
    """The features of a task's early networks: means over its seeds."""
    return {name: fmean(row["quantities"][f"early.{name}"].values()) for name in FEATURES}
