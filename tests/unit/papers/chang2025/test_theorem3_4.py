"""Solutions with a diagonal coherence matrix, against gradients by hand."""

import torch

from evenly.papers.catalogue import CATALOGUE
from evenly.papers.chang2025.mistake5 import gradients
from evenly.papers.chang2025.theorem3_4 import shared_unit
from evenly.papers.verdict import judge


def test_a_shared_unit_fits_two_examples_with_orthogonal_gradients() -> None:
    solution, x = shared_unit(torch.Generator().manual_seed(1), dim=9)
    first, second = gradients(solution, x)
    assert torch.allclose(solution(x), x[:, 0] * x[:, 1])
    assert solution.active(x).all()
    assert abs(float(first @ second)) < 1e-9


def test_one_direction_alone_does_not_reproduce_an_if_and_only_if() -> None:
    experiment = CATALOGUE["chang2025/theorem3.4"]
    shares = {"shared.memorises": {0: 0.0, 1: 0.0}}
    assert judge(experiment.primary_claims[1], shares).verdict == "contradicted"
