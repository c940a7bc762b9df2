"""Figure 2: the ρ after the grid is measured, and is no part of the trend."""

from pathlib import Path

import pytest

from evenly.papers.experiment import Context
from evenly.papers.springer2024.fig2 import BEYOND, CHIS, EXPERIMENT
from evenly.papers.springer2024.spiral_probing_error import rank_correlation
from evenly.papers.springer2024.toy import RHOS


def test_the_trend_is_over_the_grid_and_the_rho_after_it_stands_beside_it():
    values = {}
    for part in EXPERIMENT.parts("smoke", [0]):
        if part.name.startswith("chi=360"):
            values |= part.function()(Context(Path("unused")), **part.arguments).values
    errors = [values[f"chi=360.rho={rho:g}.hard"][0] for rho in RHOS]
    assert values["chi=360.trend"][0] == pytest.approx(rank_correlation(RHOS, errors))
    assert 0 <= values[f"chi=360.rho={BEYOND:g}.label"][0] <= 100


def test_every_complexity_is_run_also_after_the_grid():
    rhos = [(part.arguments["chi"], part.arguments["rhos"]) for part in EXPERIMENT.parts("full")]
    assert rhos == [(chi, grid) for chi in CHIS for grid in (list(RHOS), [BEYOND])]
