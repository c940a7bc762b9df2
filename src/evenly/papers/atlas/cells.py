"""The cells of the atlas, read from its rows: the effect of each cure on each task, corrected for their number."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from evenly.intervals import Interval, holm, paired_difference, power
from evenly.papers.atlas.cures import CURES
from evenly.papers.atlas.tasks import ERRORS

Row = Mapping[str, Any]
POWER = 0.9


@dataclass(frozen=True)
class Cell:
    """One cure on one task: the difference to plain training in one kind of error, in points, pair by pair.

    `certain` says that the difference survives Holm's correction over all cures and tasks in this kind of error.
    """

    task: str
    cure: str
    error: str
    plain: float
    difference: Interval
    cost: float
    certain: bool

    @property
    def verdict(self) -> str:
        """In a word or two."""
        if not self.difference.excludes_zero:
            return "unclear"
        word = "helps" if self.difference.mean < 0 else "harms"
        return word if self.certain else f"may {word[:-1]}"

    @property
    def detectable(self) -> float:
        """The smallest true difference that this many seeds detect with a power of 0.9, by bisection."""
        deviation, n = self.difference.deviation, self.difference.n
        if not deviation > 0:
            return deviation  # no variation, or no values
        low, high = 0.0, deviation
        while power(high, deviation, n) < POWER:
            low, high = high, 2 * high
        while high - low > 1e-3 * deviation:
            middle = (low + high) / 2
            low, high = (low, middle) if power(middle, deviation, n) >= POWER else (middle, high)
        return high


def cells(rows: Sequence[Row]) -> list[Cell]:
    """The cells of all rows of the atlas; the correction is within each kind of error."""
    all_cells: list[Cell] = []
    for error in ERRORS:
        pairs = [
            (row, cure) for row in rows for cure in CURES if cure != "plain" and f"{cure}.{error}" in row["quantities"]
        ]
        differences = [_difference(row, cure, error) for row, cure in pairs]
        certain = holm([each.p_value for each in differences])
        for (row, cure), difference, sure in zip(pairs, differences, certain, strict=True):
            plain = fmean(row["quantities"][f"plain.{error}"].values())
            cost = fmean(row["quantities"][f"{cure}.cost"].values())
            all_cells.append(Cell(row["key"], cure, error, plain, difference, cost, sure))
    return all_cells


def _difference(row: Row, cure: str, error: str) -> Interval:
    own, plain = row["quantities"][f"{cure}.{error}"], row["quantities"][f"plain.{error}"]
    return paired_difference([own[seed] for seed in own], [plain[seed] for seed in own])
