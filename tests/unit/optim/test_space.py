"""The algebra of rules, for every kind of number that parameters may have."""

import math

import pytest
import torch
from torch import nn

import evenly
from evenly.optim.device_space import DeviceLists
from evenly.optim.space import Lists


@pytest.mark.parametrize("space", [Lists(), DeviceLists()], ids=["host", "device"])
def test_products_keep_imaginary_parts_and_precision(space: Lists) -> None:
    a, b = [torch.tensor([1 + 2j, 3 - 1j])], [torch.tensor([2 + 1j, 1j])]
    assert float(space.dot(a, b)) == 2 + 2 - 1
    fine = [torch.tensor([1.0, 1e-9], dtype=torch.float64)]
    assert float(space.dot(fine, [torch.ones(2, dtype=torch.float64)])) == 1.0 + 1e-9
    half = [torch.full((2,), 300.0, dtype=torch.float16)]
    assert float(space.dot(half, half)) == 180_000.0


@pytest.mark.parametrize("rule", [evenly.ASAM, evenly.GSAM, evenly.FriendlySAM])
def test_the_ball_of_asam_stretches_by_the_modulus_of_complex_weights(rule) -> None:
    """For L = ‖z‖² the gradient is 2z; w + ε with ε = ρ T²g/‖Tg‖, beside a real parameter in the same ball."""
    z, x = nn.Parameter(torch.tensor([3 + 4j, 0.5j])), nn.Parameter(torch.tensor([2.0]))
    seen = []

    def closure() -> torch.Tensor:
        seen.append((z.detach().clone(), x.detach().clone()))
        return z.abs().square().sum() + x.square().sum()

    rule([z, x], rho=0.5, adaptive=True, eta=0.1).backward(closure)
    at = [p.detach() for p in (z, x)]
    stretched = [(w.abs() + 0.1) * 2 * w for w in at]
    length = math.sqrt(sum(float(t.abs().square().sum()) for t in stretched))
    for w, t, there in zip(at, stretched, seen[1], strict=True):
        torch.testing.assert_close(there, w + 0.5 * (w.abs() + 0.1) * t / length)
