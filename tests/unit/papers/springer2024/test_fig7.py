"""Figure 7: interventions stand beside LSAM at LSAM's own ratio."""

from pathlib import Path

import pytest

from evenly.papers.experiment import Context
from evenly.papers.springer2024.fig7 import EFFECTS, gaps_at_equal_ratios, interventions


def test_interventions_are_compared_with_lsam_at_its_own_ratio():
    sizes = {"num_train": 20, "num_test": 40, "width": 8}
    given = {"seeds": [0], "chi": 360.0, "rhos": [0.0, 0.5], "stars": [0.5, 2.0], "epochs": 2, "sizes": sizes}
    values = interventions(Context(Path("unused")), **given).values
    values = values | gaps_at_equal_ratios(values)
    low, high = values["both.star=0.5.hard"][0], values["both.star=2.hard"][0]
    ratio = min(max(values["lsam.rho=0.5.ratio"][0], 0.5), 2.0)
    there = low + (high - low) * (ratio - 0.5) / 1.5
    assert values["both.rho=0.5.gap"][0] == pytest.approx(there - values["lsam.rho=0.5.hard"][0])
    assert values["rate.gain"][0] == pytest.approx(values["lsam.rho=0.hard"][0] - values["rate.star=2.hard"][0])


def test_gaps_of_opposite_signs_do_not_cancel_and_ratios_beyond_the_grid_are_counted():
    values = {f"{effect}.star={star}.hard": {0: 10.0} for effect in EFFECTS for star in (0.5, 2)}
    for rho, ratio, hard in ((0, 0.7, 30.0), (1, 1.0, 4.0), (2, 3.0, 16.0)):
        values |= {f"lsam.rho={rho}.ratio": {0: ratio}, f"lsam.rho={rho}.hard": {0: hard}}
    gaps = gaps_at_equal_ratios(values)
    assert (gaps["both.rho=1.gap"][0], gaps["both.rho=2.gap"][0]) == (6.0, -6.0)
    assert gaps["both.gap"][0] == 6.0
    assert (gaps["rho=1.clamped"][0], gaps["rho=2.clamped"][0], gaps["clamped"][0]) == (0.0, 1.0, 1.0)
