"""What follows from recipes that are paired by seed."""

from pathlib import Path

import pytest

from evenly.intervals import paired_difference
from evenly.records import Run
from evenly.report.run_pairs import Group, Pair, conclusions


@pytest.fixture
def group(tmp_path: Path) -> Group:
    with Run.create(tmp_path, {"seed": 0}, "a1") as run:
        run.finish({"test.error": 0.1})
    return Group({0: run}, {}, "a1")


@pytest.mark.parametrize(
    ("errors", "says"),
    [
        ([0.05, 0.06, 0.04], "SAM has a lower error than plain: −5.00 "),
        ([0.15, 0.16, 0.14], "SAM has a higher error than plain: +5.00 "),
        ([0.15, 0.05, 0.10], "may be chance"),
        ([0.05], "share one seed, which says nothing yet"),
    ],
)
def test_the_sentence_has_the_direction_of_the_difference(group: Group, errors: list[float], says: str) -> None:
    difference = paired_difference(errors, [0.10] * len(errors))
    first, second = Pair(group, difference, None, 1.0), Pair(group, difference, difference, 2.0)
    (sentence,) = conclusions(["plain", "SAM"], [first, second])
    assert says in sentence
