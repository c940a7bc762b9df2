"""λ1/λ5, where the Hessian has few directions."""

import math

import pytest
import torch
from torch import nn

from evenly.diagnostics import sharpness


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("outputs", [2, 3])
def test_the_ratio_is_unknown_where_fewer_than_five_directions_curve(outputs: int, seed: int) -> None:
    """Softmax of a linear layer: the rank of the Hessian is (outputs − 1) × (inputs + 1) = 3 or 4, of 6 or 6."""
    rng = torch.Generator().manual_seed(seed)
    inputs = 2 if outputs == 2 else 1
    data = (torch.randn(50, inputs, generator=rng), torch.randint(outputs, (50,), generator=rng))
    found = sharpness(nn.Linear(inputs, outputs), data, rng=rng)
    assert len(found.eigenvalues) == 5
    assert math.isnan(found.lambda_ratio_5)


def test_the_ratio_is_that_of_the_exact_eigenvalues_where_five_curve() -> None:
    x = torch.diag(torch.tensor([6.0, 5.0, 4.0, 3.0, 2.0, 1.0]).double())
    data = (x, torch.zeros(6, dtype=torch.float64))
    found = sharpness(nn.Linear(6, 1, bias=False).double(), data, rng=torch.Generator().manual_seed(0))
    assert found.lambda_ratio_5 == pytest.approx(36 / 4, rel=1e-3)
