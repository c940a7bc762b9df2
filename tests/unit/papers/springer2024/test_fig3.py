"""Figure 3: SGD has no phantom, LSAM has one."""

from pathlib import Path

import pytest

from evenly.papers.experiment import Context
from evenly.papers.springer2024.fig3 import weight_ratios
from evenly.papers.springer2024.quantities import at


def test_ratios_of_sgd_are_those_of_its_real_weights_and_a_phantom_differs():
    sizes = {"num_train": 20, "num_test": 40, "width": 8}
    given = {"seeds": [0], "chi": 360.0, "rhos": [0.0, 0.5], "epochs": 2, "sizes": sizes}
    values = weight_ratios(Context(Path("unused")), **given).values
    plain, moved = at(chi=360, rho=0), at(chi=360, rho=0.5)
    assert values[f"{plain}.phantom"][0] == pytest.approx(values[f"{plain}.real"][0], abs=2e-3)
    assert abs(values[f"{moved}.phantom"][0] - values[f"{moved}.real"][0]) > 1e-3
