"""What follows from recipes that are paired by seed."""

import json
from pathlib import Path
from typing import Any

import pytest

from evenly.errors import DataError
from evenly.intervals import paired_difference
from evenly.records import Run
from evenly.records.identity import Identity
from evenly.report.run_pairs import Group, Pair, conclusions, groups


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


def test_of_many_recipes_one_that_looks_better_may_do_so_by_chance(group: Group) -> None:
    errors = [0.05, 0.06, 0.04]  # p = 0.013: certain alone, and not among eleven
    better, alike = paired_difference(errors, [0.10] * 3), paired_difference([0.09, 0.11, 0.10], [0.10] * 3)
    pairs = [Pair(group, better, None, 1.0), Pair(group, better, better, 1.0)]
    pairs += [Pair(group, alike, alike, 1.0) for _ in range(10)]
    names = ["plain", *(f"recipe {number}" for number in range(11))]
    assert conclusions(names, pairs)[0] == (
        "recipe 0 may have a lower error than plain: −5.00 [−7.48, −2.52] points over 3 paired seeds. One of 11 "
        "recipes may differ as much by chance."
    )


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        ({"test.error": "x"}, "test.error is 'x', expected a number"),
        ({"test.error": None}, "test.error is None"),
        ({"test.error": "NaN"}, "test.error is nan"),
        ({"test.error": 0.1, "gradients": [1]}, r"gradients is \[1\]"),
    ],
)
def test_a_damaged_result_is_named_if_it_is_asked_for_and_skipped_if_not(
    damage: dict[str, Any], told: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for name, lr, seed in (("a1", 0.1, 0), ("a2", 0.1, 1), ("b1", 0.2, 0)):
        recipe = {"seed": seed, "optimizer": {"lr": lr}}
        identity = Identity(recipe, {}, {"name": "digits", "fingerprint": "1f"})
        with Run.create(tmp_path, recipe, name, identity=identity) as run:
            run.finish({"test.error": 0.1, "gradients": 10})
    (tmp_path / "a2" / "done").write_text(json.dumps(damage))
    plain, other = groups(["a1", "b1"], tmp_path)
    assert (list(plain.runs), list(other.runs)) == ([0], [0])
    assert "a2/done" in caplog.text
    with pytest.raises(DataError, match=told):
        groups(["a2", "b1"], tmp_path)
