"""What to try first, from what an early network shows: the cures that did best on the most similar tasks."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, pstdev
from typing import Any

from evenly.papers.atlas.cells import Cell, cells

Row = Mapping[str, Any]
#: What is known without group labels, and compared.
FEATURES = ("error", "hard_share", "hard_error", "distinctness", "disagreement")
NEAREST = 3
FAR = 3.0  # standard deviations of the atlas's own tasks, beyond which nothing is like them


@dataclass(frozen=True)
class Advice:
    """Cures from the first to try to the last, with the mean difference on the nearest tasks; none beyond the atlas."""

    nearest: tuple[str, ...]
    distance: float
    ranking: tuple[tuple[str, float], ...]

    @property
    def abstains(self) -> bool:
        """Whether the atlas has nothing like it."""
        return not self.ranking


def advise(features: Mapping[str, float], rows: Sequence[Row]) -> Advice:
    """Rank the cures by what they did to the balanced error on the tasks whose early networks look most alike.

    A cure that harmed the ordinary test error on one of these tasks, with an interval that excludes zero, is not
    advised. Distances are in standard deviations over the tasks of the atlas.
    """
    if not rows:
        return Advice((), math.inf, ())
    known = {row["key"]: _features(row) for row in rows}
    scale = {name: pstdev([each[name] for each in known.values()]) or 1.0 for name in FEATURES}
    distances = {
        key: math.sqrt(fmean([((features[name] - each[name]) / scale[name]) ** 2 for name in FEATURES]))
        for key, each in known.items()
    }
    nearest = tuple(sorted(distances, key=lambda key: distances[key])[:NEAREST])
    if distances[nearest[0]] > FAR:
        return Advice(nearest, distances[nearest[0]], ())
    own = cells([row for row in rows if row["key"] in nearest])
    return Advice(nearest, distances[nearest[0]], _ranking(own))


def _ranking(own: Sequence[Cell]) -> tuple[tuple[str, float], ...]:
    harmful = {cell.cure for cell in own if cell.error == "test" and cell.difference.low > 0}
    gains: dict[str, list[float]] = {"plain": [0.0]}
    for cell in own:
        if cell.error == "balanced" and cell.cure not in harmful:
            gains.setdefault(cell.cure, []).append(cell.difference.mean)
    means = {cure: fmean(values) for cure, values in gains.items()}
    return tuple(sorted(means.items(), key=lambda pair: pair[1]))


def left_out(rows: Sequence[Row]) -> dict[str, bool]:
    """For every task whether the advice from all others is as good as the best cure there.

    As good means that the mean difference of the first choice lies within the interval of the best cure that does no
    harm to the ordinary test error.
    """
    good = {}
    for row in rows:
        others = [each for each in rows if each["key"] != row["key"]]
        choice = advise(_features(row), others).ranking
        own = {cell.cure: cell.difference for cell in cells([row]) if cell.error == "balanced"}
        best = _ranking(cells([row]))[0][0]
        first = choice[0][0] if choice else "plain"
        if first == best:
            good[row["key"]] = True
        else:
            mean = own[first].mean if first in own else 0.0
            good[row["key"]] = mean <= (own[best].high if best in own else 0.0)
    return good


def _features(row: Row) -> dict[str, float]:
    return {name: fmean(row["quantities"][f"early.{name}"].values()) for name in FEATURES}
