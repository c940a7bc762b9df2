"""Eigenvalues where fewer directions curve than were asked for: a fitted network of few classes, a toy."""

import pytest
import torch
from torch import Tensor, nn

from evenly.curvature import lanczos
from evenly.diagnostics import sharpness


class Matrix:
    """Q diag(values) Qᵀ, known by its products, with a count of them."""

    def __init__(self, values: list[float], size: int, dtype: torch.dtype) -> None:
        rng = torch.Generator().manual_seed(0)
        self.size, self.dtype, self.device = size, dtype, torch.device("cpu")
        q = torch.linalg.qr(torch.randn(size, len(values), generator=rng, dtype=torch.float64)).Q
        self.matrix = (q * torch.tensor(values, dtype=torch.float64) @ q.T).to(dtype)

    def __matmul__(self, v: Tensor) -> Tensor:
        return self.matrix @ v


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("values", [[10.0, 5.0, 2.0], [3.0], [7.0, 1.0, 1e-3]])
def test_zeros_are_found_at_rounding_level_without_spanning_everything(values: list[float], dtype: torch.dtype) -> None:
    found = lanczos(Matrix(values, 600, dtype), k=5, rng=torch.Generator().manual_seed(1))
    expected = torch.tensor(values + [0.0] * (5 - len(values)), dtype=torch.float64)
    room = 1e-3 * expected + 40 * torch.finfo(dtype).eps * max(values)
    assert ((found.values - expected).abs() <= room).all()
    assert found.converged
    assert found.products < 30  # of 600


def test_a_layer_that_sees_two_directions_has_two_eigenvalues_and_no_warning() -> None:
    rng = torch.Generator().manual_seed(0)
    x = torch.randn(50, 2, generator=rng) @ torch.randn(2, 2000, generator=rng)
    found = sharpness(nn.Linear(2000, 1, bias=False), (x, torch.zeros(50)), rng=rng, trace_probes=0, loss="squared")
    expected = torch.linalg.eigvalsh(x.double() @ x.double().T / 50).flip(0)[:5]
    torch.testing.assert_close(
        torch.tensor(found.eigenvalues, dtype=torch.float64), expected, rtol=1e-3, atol=1e-5 * float(expected[0])
    )
