"""What a report prints is what its own formulas take."""

from math import sqrt

import pytest
import torch

from evenly.stability.problem import Problem
from evenly.stability.tables import criteria_rows


@pytest.mark.parametrize("population", [6, 50])
def test_the_printed_sigma_gives_the_criterion_beside_it(population: int) -> None:
    rng = torch.Generator().manual_seed(0)
    part = Problem.from_factors(torch.randn(6, 2, 4, generator=rng, dtype=torch.float64)).part_of(population)
    row = criteria_rows(part, batch=3, lr=None)
    criterion = next(each for each in row["criteria"] if each["name"].startswith("coherence"))
    assert criterion["eta"] == pytest.approx(row["sigma"] / row["lambda_max"] / sqrt(population / 3 - 1))
