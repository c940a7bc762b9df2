"""The set on which theorem 3.3 is tight, against the binomial law."""

from math import comb
from pathlib import Path

import pytest

from evenly.papers.chang2025 import theorem3_3
from evenly.papers.experiment import Context


def test_the_moment_of_a_batch_is_counted_as_by_the_binomial_law() -> None:
    wanted = sum(comb(5, k) * 0.3**k * 0.7 ** (5 - k) * (1 - 0.4 * k) ** 2 for k in range(6))
    assert theorem3_3.mean_square_step(0.4, 5, 0.3) == pytest.approx(wanted)


def test_the_stated_threshold_is_where_the_moment_is_one() -> None:
    seen = theorem3_3.count_batches(Context(Path("unused")), seeds=range(5)).values
    for seed in range(5):
        assert seen["below"][seed] < 1 < seen["above"][seed]
        assert seen["at"][seed] == pytest.approx(1, abs=1e-9) == seen["exact_over_stated"][seed]
