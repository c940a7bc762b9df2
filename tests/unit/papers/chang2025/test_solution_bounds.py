"""The draws of theorems 3.5 and 3.6, and the rule by which a bound for every n and C is judged."""

from pathlib import Path

import pytest

from evenly.papers.catalogue import CATALOGUE
from evenly.papers.chang2025.solution_bounds import largest_share, measure_bounds
from evenly.papers.experiment import Context
from evenly.papers.verdict import judge


def test_the_expected_sharpness_under_sam_is_that_of_many_draws() -> None:
    seen = measure_bounds(
        Context(Path("unused")), seeds=[0], features=[2], dim=12, sizes=[60], draws=60, ratio=0.3
    ).values
    assert seen["n60.C2.expected"][0] == pytest.approx(1, abs=0.02)
    assert seen["n60.C2.largest"][0] < 1
    assert seen["broken"][0] == 0


def test_a_bound_that_fails_at_one_n_and_c_alone_is_refuted() -> None:
    good, bad = [False] * 10, [True] * 5 + [False] * 5
    cells = [good] * 11 + [bad]
    assert 100 * sum(map(sum, cells)) / 120 < 5  # together they would pass
    claim = CATALOGUE["chang2025/theorem3.5"].primary_claims[0]
    assert judge(claim, {"broken": dict.fromkeys(range(20), largest_share(cells))}).verdict == "contradicted"
    assert judge(claim, {"broken": dict.fromkeys(range(20), largest_share([good] * 12))}).verdict == "reproduced"
