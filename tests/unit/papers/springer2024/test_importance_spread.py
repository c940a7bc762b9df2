"""The importance that badly fitted examples hold, on cases whose answer is known."""

import pytest
import torch

from evenly.papers.springer2024.importance_spread import share_of_poorer_half


def test_the_importance_that_badly_fitted_examples_hold_depends_on_the_sign_of_the_contribution():
    weights, contribution = torch.tensor([4.0, 3.0, 2.0, 1.0]), torch.tensor([-2.0, -1.0, 1.0, 2.0])
    assert share_of_poorer_half(weights, contribution) == pytest.approx(0.7)
    assert share_of_poorer_half(weights, -contribution) == pytest.approx(0.3)
