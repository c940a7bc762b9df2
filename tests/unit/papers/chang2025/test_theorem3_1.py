"""Random perturbation, against closed forms."""

from pathlib import Path

import pytest
import torch

from evenly.papers.chang2025 import theorem3_1
from evenly.papers.experiment import Context
from evenly.stability import Problem


def test_the_share_of_the_noise_is_a_geometric_sum_for_one_example() -> None:
    one = Problem.from_diagonal(torch.tensor([[2.0]]))
    a, force = 1 - 1.5 * 2, (1.5 * theorem3_1.NOISE * 2) ** 2
    plain, noisy = a ** (2 * 7), a ** (2 * 7) + force * sum(a ** (2 * j) for j in range(7))
    seen = theorem3_1.noise_share(one, lr=1.5, batch=1, steps=7)
    assert 10**seen == pytest.approx(noisy / plain)


def test_random_perturbation_settles_at_its_closed_form_where_it_is_run_long_enough() -> None:
    seen = theorem3_1.perturb_randomly(
        Context(Path("unused")), seeds=[0], num=10, dim=1, batch=4, steps=200, repeats=4000
    ).values
    assert seen["below.ratio"][0] == pytest.approx(1, abs=0.1)
    assert seen["below.sgd"][0] < -10 < seen["below.random"][0]
