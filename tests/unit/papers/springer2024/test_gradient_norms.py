"""Closed forms of ‖∇f‖² against autograd and against a case worked out by hand."""

import pytest
import torch

from evenly.papers.springer2024.gradient_norms import by_autograd, layer_sum


def test_layer_sums_are_the_squared_norm_of_the_gradient():
    rng = torch.Generator().manual_seed(0)
    v, weights = torch.randn(3, generator=rng), [torch.randn(3, 3, generator=rng), torch.randn(3, 2, generator=rng)]
    x = torch.randn(7, 2, generator=rng)
    for relu in (False, True):
        torch.testing.assert_close(layer_sum(v, weights, x, relu=relu), by_autograd(v, weights, x, relu=relu))


def test_the_gradient_of_a_two_layer_linear_network_is_as_worked_out_by_hand():
    v, w, x = torch.tensor([3.0, 4.0]), torch.tensor([[1.0, 0.0], [0.0, 2.0]]), torch.tensor([[2.0, 1.0]])
    # ‖Wx‖² + ‖v‖²‖x‖² = (4 + 4) + 25·5
    assert by_autograd(v, [w], x, relu=False).item() == pytest.approx(133.0)
