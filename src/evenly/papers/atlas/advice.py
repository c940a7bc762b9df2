"""What to try first, by the features of an early network: the cures that did best on the most similar tasks."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, pstdev
from typing import Any

from evenly.papers.atlas.cells import Cell, cells
from evenly.papers.atlas.task_list import TASKS

Row = Mapping[str, Any]
#: The features of a task that need no group labels.
FEATURES = (
    "error", "hard_share", "hard_error", "hard_error_later", "distinctness", "disagreement", "agreement"
)  # fmt: skip
SCORED = ("balanced", "test")
NEAREST = 3
# In standard deviations over the atlas's tasks: the distance within which a second and a third task count too, and the
# distance beyond which not even the nearest does. Every task of the atlas has another within 0.72: at twice that
# distance nothing is known of whether its advice carries over.
NEAR, FAR = 1.0, 1.5
# A task with wrong labels is noisier if this many times as many labels contradict the early network there as here.
# Right labels can contradict it too, where the easy feature does: 3.1% on one task without a wrong one.
NOISIER = 2.0
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

    `test` is the mean difference in the ordinary test error there, `score` decides the ranking, and `harms_balanced`
    says that the balanced error clearly rose.
    """

    cure: str
    score: float
    balanced: float
    best: float
    worst: float
    test: float
    cost: float
    harms_balanced: bool = False

    @property
    def split(self) -> str:
        """Where the cure gained most, and should be compared with plain training."""
        return "balanced" if self.balanced <= self.test else "test"


@dataclass(frozen=True)
class Advice:
    """The cures in the order to try them, those that harmed similar tasks, and these tasks.

    `nearest` are the tasks with their distances; the ranking is empty if even the nearest is far. `harmful` names the
    tasks whose ordinary error a cure raised, and `ruled_out` the cures that the caller's own signs speak against.
    `noisier` are the nearest tasks that have wrong labels and far more that contradict the early network, and the share
    of these.
    """

    nearest: Mapping[str, float]
    ranking: tuple[Choice, ...] = ()
    harmful: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    ruled_out: tuple[str, ...] = ()
    noisier: Mapping[str, float] = field(default_factory=dict)

    @property
    def abstains(self) -> bool:
        """Whether the atlas has no similar task."""
        return not self.ranking

    @property
    def surely_harmful(self) -> tuple[str, ...]:
        """The cures that harmed a task whose labels contradict the early network no more often than here."""
        return tuple(cure for cure, tasks in self.harmful.items() if not set(tasks) <= set(self.noisier))

    @property
    def first(self) -> Choice | None:
        """The cure to try first; None where the atlas abstains, or where no cure did better than plain training."""
        return next((choice for choice in self.ranking if choice.score < 0), None)


def advise(features: Mapping[str, float], rows: Sequence[Row], *, against: Collection[str] = ()) -> Advice:
    """Rank the cures by their effect on the tasks with the most similar early networks.

    The score of a cure is the mean over these tasks of its differences in balanced and in ordinary error, where a
    difference whose interval includes zero counts as zero, so that chance recommends no cure. A cure that harmed the
    ordinary error on one of the tasks is not advised at all. Distances are root mean squares in standard deviations
    over the tasks of the atlas; up to three tasks count, the second and third only within one standard deviation.
    `against` are words of methods that what is known of the data itself rules out, such as `useful`: cures with these
    words are left out of the ranking.
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
    ranking, harmful = rank_cures(cells([row for row in rows if row["key"] in nearest]))
    ruled_out = tuple(choice.cure for choice in ranking if not words_of(choice.cure).isdisjoint(against))
    noisy = {key: known[key]["disagreement"] for key in nearest if key in TASKS and TASKS[key].minority == "noisy"}
    noisier = {key: share for key, share in noisy.items() if share > NOISIER * features["disagreement"]}
    return Advice(
        nearest, tuple(each for each in ranking if each.cure not in ruled_out), harmful, ruled_out, noisier
    )  # fmt: skip


def words_of(cure: str) -> set[str]:
    """The words of a cure's method, without their values.

    >>> sorted(words_of("useful8+noise"))
    ['noise', 'useful']
    """
    return {word.partition(":")[0] for word in METHODS[cure].split("+")}


def rank_cures(own: Sequence[Cell]) -> tuple[tuple[Choice, ...], dict[str, tuple[str, ...]]]:
    """The cures that did no harm to the ordinary error, best first, and those that did, with the tasks they harmed."""
    harmed = [cell for cell in own if cell.error == "test" and cell.difference.low > 0]
    harmful = {cell.cure: tuple(each.task for each in harmed if each.cure == cell.cure) for cell in harmed}
    choices = [Choice("plain", 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)]
    for cure in dict.fromkeys(cell.cure for cell in own if cell.cure not in harmful):
        mine = [cell for cell in own if cell.cure == cure]
        balanced = [cell.difference.mean for cell in mine if cell.error == "balanced"]
        test = [cell.difference.mean for cell in mine if cell.error == "test"]
        clear = {
            error: sum(c.difference.mean for c in mine if c.error == error and c.difference.excludes_zero)
            for error in SCORED
        }
        cost, score = fmean(cell.cost for cell in mine), sum(clear.values()) / len(balanced)
        ends = min(balanced), max(balanced)
        choices.append(Choice(cure, score, fmean(balanced), *ends, fmean(test), cost, clear["balanced"] > 0))
    return tuple(sorted(choices, key=lambda each: (each.score, each.cost))), harmful


def leave_one_out(rows: Sequence[Row]) -> dict[str, bool]:
    """For every task, whether the advice from all other tasks is as good as the best cure there.

    The best cure is the one that the task itself would recommend. Abstaining counts as plain training.
    """
    good = {}
    for row in rows:
        ranking = advise(features_of(row), [each for each in rows if each["key"] != row["key"]]).ranking
        good[row["key"]] = _is_as_good(ranking[0].cure if ranking else "plain", cells([row]))
    return good


def same_for_all(rows: Sequence[Row]) -> dict[str, int]:
    """On how many tasks each cure is as good as the best cure there: what advice has to exceed to be worth anything."""
    own = [cells([row]) for row in rows]
    measured = {cell.cure for each in own for cell in each}
    return {cure: sum(_is_as_good(cure, each) for each in own) for cure in METHODS if cure in {"plain", *measured}}


def _is_as_good(cure: str, own: Sequence[Cell]) -> bool:
    """Whether a cure's mean differences in both errors are within the best cure's intervals, or below, on one task."""
    best = rank_cures(own)[0][0].cure
    differences = {(cell.cure, cell.error): cell.difference for cell in own}
    return cure == best or all(
        (differences[cure, error].mean if cure != "plain" else 0.0)
        <= (differences[best, error].high if best != "plain" else 0.0)
        for error in SCORED
    )


def accuracy_in_words(rows: Sequence[Row]) -> str:
    """How good the advice is on unseen tasks, in words, beside rules that look at no task."""
    if len(rows) < 2:
        return "One task cannot advise on another: run more of them."
    good, same = leave_one_out(rows), same_for_all(rows)
    misses = [key.partition("/")[2] for key, hit in good.items() if not hit]
    exceptions = f" It was not on {', '.join(misses)}." if misses else ""
    cure = max(same, key=lambda each: same[each])
    return (
        "`evenly advise` looks for the tasks whose early networks are most like yours. To test it, every task is left "
        "out and advised on from the others: the first choice was as good as the best cure there, within the intervals "
        f"of the latter, on {sum(good.values())} of {len(good)} tasks.{exceptions} For comparison: of the rules that "
        f"always try the same cure, the best was as good on {same[cure]} (`{METHODS[cure]}`, known only afterwards), "
        f"and plain training on {same['plain']}."
    )


def features_of(row: Row) -> dict[str, float]:
    """The features of a task's early networks: means over its seeds."""
    return {name: fmean(row["quantities"][f"early.{name}"].values()) for name in FEATURES}
