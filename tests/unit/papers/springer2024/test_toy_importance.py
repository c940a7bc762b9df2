"""Importance on the toy: measured after the epochs asked for, with Lorenz curves that agree with the Gini index."""

from itertools import pairwise
from pathlib import Path

import pytest
import torch

from evenly.diagnostics import gini
from evenly.papers.experiment import Context
from evenly.papers.springer2024.quantities import at
from evenly.papers.springer2024.toy_importance import toy_importance


def test_importance_is_measured_after_every_epoch_asked_for_and_drawn_as_lorenz_curves():
    sizes = {"num_train": 20, "num_test": 40, "width": 8}
    result = toy_importance(Context(Path("unused")), seeds=[0, 1], chi=360.0, rho=0.5, at_epochs=[1, 3], sizes=sizes)
    for epoch in (1, 3):
        for kind in ("real", "phantom"):
            name = f"{at(epoch=epoch)}.lsam.{kind}"
            curve = result.series[name]["lorenz"]
            assert curve[0] == 0.0
            assert curve[-1] == 1.0
            assert curve == sorted(curve)
            # Twice the area between diagonal and curve is the Gini index; the drawn one is the mean over seeds.
            area = 1 - 2 * sum((a + b) / 2 for a, b in pairwise(curve)) / (len(curve) - 1)
            mean = sum(result.values[f"{name}_gini"].values()) / 2
            assert area == pytest.approx(mean, abs=0.03)
    assert gini(torch.ones(5)) == 0.0
