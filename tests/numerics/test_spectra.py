"""Eigenvalues and densities against closed forms, dense float64 references, scipy and hessian-eigenthings."""

import numpy as np
import pytest
import torch
from scipy.sparse.linalg import LinearOperator, eigsh
from torch import Tensor, nn

from evenly.curvature import density, hessian, lanczos
from evenly.errors import DataError, UsageError


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


class Matrix:
    """A dense symmetric matrix as an operator."""

    def __init__(self, matrix: Tensor) -> None:
        self.matrix, self.size, self.dtype, self.device = matrix, len(matrix), matrix.dtype, matrix.device

    def __matmul__(self, v: Tensor) -> Tensor:
        return self.matrix @ v


def rotated(values: Tensor, seed: int = 0) -> Matrix:
    """A matrix with these eigenvalues and random eigenvectors."""
    basis = torch.linalg.qr(torch.randn(len(values), len(values), generator=generator(seed), dtype=torch.float64)).Q
    return Matrix((basis * values) @ basis.T)


OUTLIERS = torch.cat([torch.linspace(-1, 1, 195, dtype=torch.float64), torch.tensor([3.0, 5, 8, 13, -20]).double()])


@pytest.mark.parametrize("seed", range(10))
def test_the_five_largest_eigenvalues_are_within_the_bound_for_every_starting_vector(seed: int) -> None:
    found = lanczos(rotated(OUTLIERS), k=5, rng=generator(seed))
    exact = OUTLIERS.sort(descending=True).values[:5]
    assert found.converged
    assert ((found.values - exact).abs() <= found.residuals + 1e-12).all()
    assert (found.residuals <= 1e-3 * found.values.abs()).all()


@pytest.mark.parametrize(("which", "exact"), [("smallest", [-20.0, -1.0]), ("magnitude", [-20.0, 13.0])])
def test_the_other_ends_of_the_spectrum_can_be_asked_for(which, exact: list[float]) -> None:  # type: ignore[no-untyped-def]
    found = lanczos(rotated(OUTLIERS), k=2, which=which, tol=1e-6, rng=generator())
    assert found.values.tolist() == pytest.approx(exact, abs=1e-4)


def test_eigenvectors_leave_the_stated_residual_and_are_orthonormal() -> None:
    operator = rotated(OUTLIERS)
    found = lanczos(operator, k=4, rng=generator())
    residual = torch.linalg.vector_norm(found.vectors @ operator.matrix - found.values[:, None] * found.vectors, dim=1)
    torch.testing.assert_close(residual, found.residuals, rtol=1e-6, atol=1e-10)
    torch.testing.assert_close(found.vectors @ found.vectors.T, torch.eye(4, dtype=torch.float64), rtol=0, atol=1e-10)


@pytest.mark.parametrize(
    "values", [[5.0] * 6, [5.0, 5, 5, 1, 1, 1], [0.0] * 6, [2.0, 0, 0, 0, 0, 0], [1.0, 2, 3, 4, 5, 6]]
)
@pytest.mark.parametrize("k", [1, 3, 6])
def test_repeated_eigenvalues_are_counted_as_often_as_they_occur(values: list[float], k: int) -> None:
    found = lanczos(rotated(torch.tensor(values, dtype=torch.float64)), k=k, rng=generator())
    assert found.values.tolist() == pytest.approx(sorted(values, reverse=True)[:k], abs=1e-4)


def test_too_few_products_are_admitted_not_hidden() -> None:
    with pytest.warns(RuntimeWarning, match="stopped after 8 products with a residual of"):
        found = lanczos(rotated(torch.linspace(0, 1, 100, dtype=torch.float64)), k=5, max_products=8, rng=generator())
    assert not found.converged
    assert found.products == 8


@pytest.mark.parametrize(
    ("options", "said"), [({"k": 0}, "k = 0"), ({"k": 7}, "6 eigenvalues"), ({"which": "top"}, "'top'")]
)
def test_what_cannot_be_asked_for_is_refused(options: dict, said: str) -> None:  # type: ignore[type-arg]
    with pytest.raises(UsageError, match=said):
        lanczos(rotated(torch.ones(6, dtype=torch.float64)), rng=generator(), **options)


def test_a_product_that_is_not_finite_is_an_error() -> None:
    with pytest.raises(DataError, match="not finite"):
        lanczos(Matrix(torch.full((3, 3), float("nan"))), k=1, rng=generator())


def network(trained: bool) -> tuple[nn.Module, tuple[Tensor, Tensor]]:
    """A small CNN on a learnable task, with or without some training, from generators of its own."""
    rng = generator(3)
    model = nn.Sequential(
        nn.Conv2d(1, 4, 3, 2), nn.ReLU(), nn.Conv2d(4, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8, 3)
    )
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.randn(p.shape, generator=rng) * (0.1 if p.ndim == 1 else p[0].numel() ** -0.5))
    x = torch.randn(120, 1, 8, 8, generator=rng)
    y = (x.mean((1, 2, 3)) > 0).long() + (x[:, 0, 0, 0] > 0).long()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.9)
    for _ in range(60 if trained else 0):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    return model.eval(), (x, y)


@pytest.mark.parametrize("trained", [False, True])
def test_eigenvalues_of_a_network_equal_those_of_its_dense_hessian_and_of_scipy(trained: bool) -> None:
    model, data = network(trained)
    H = hessian(model.double(), data)
    exact = torch.linalg.eigvalsh(H.dense()).flip(0)[:5]
    matrix = LinearOperator((H.size, H.size), matvec=lambda v: (H @ torch.from_numpy(v.ravel())).numpy())
    theirs = eigsh(matrix, k=5, which="LA", v0=np.ones(H.size), return_eigenvectors=False)
    model.float()
    for seed in range(10):
        found = lanczos(hessian(model, data, chunk=50), k=5, rng=generator(seed))
        assert ((found.values - exact).abs() <= 1e-3 * exact.abs()).all(), (seed, found.values, exact)
    assert np.sort(theirs)[::-1] == pytest.approx(exact.numpy(), rel=1e-6)


def test_eigenvalues_agree_with_hessian_eigenthings_where_it_is_installed() -> None:
    eigenthings = pytest.importorskip("hessian_eigenthings")
    model, (x, y) = network(trained=True)
    loader = [(x[:60], y[:60]), (x[60:], y[60:])]  # equal sizes: it weighs unequal batches wrongly
    loss = eigenthings.supervised_loss(nn.functional.cross_entropy)
    settings = {"k": 2, "max_iter": 80, "which": "LA", "seed": 0, "reorthogonalize": True}
    theirs = eigenthings.lanczos(eigenthings.HessianOperator(model, loader, loss), **settings)
    ours = lanczos(hessian(model, loader), k=2, rng=generator())
    assert theirs.eigenvalues.tolist() == pytest.approx(ours.values.tolist(), rel=2e-3)


def test_the_trace_of_a_diagonal_matrix_is_exact_from_one_probe_of_signs() -> None:
    values = torch.arange(20, dtype=torch.float64)
    assert density(Matrix(values.diag()), probes=1, steps=3, rng=generator()).trace == pytest.approx(190.0)


def test_density_moments_trace_and_tails_match_the_exact_spectrum() -> None:
    found = density(rotated(OUTLIERS), probes=40, steps=60, rng=generator())
    assert abs(found.trace - OUTLIERS.sum()) < 4 * found.trace_error
    assert 0.3 < found.trace_error < 8
    second = (found.weights * found.nodes**2).sum(1).mean() * found.size
    assert second == pytest.approx(float(OUTLIERS.square().sum()), rel=0.15)
    assert found.share_above(2.0) == pytest.approx(4 / 200, rel=0.35)
    assert found.trace_above(2.0) == pytest.approx(29.0, rel=0.35)
    points, height, _ = found.grid(400)
    assert np.trapezoid(height, points) == pytest.approx(1.0, abs=1e-3)
    assert height[np.abs(points) < 1].min() > 20 * height[(points > 9) & (points < 12)].max()


def test_density_of_equal_halves_is_two_spikes_of_half_the_mass() -> None:
    values = torch.cat([torch.zeros(30), torch.full((30,), 2.0)]).double()
    found = density(rotated(values), probes=30, steps=10, rng=generator())
    assert found.share_above(1.0) == pytest.approx(0.5, abs=0.05)
    assert found.trace_above(1.0) == pytest.approx(found.trace, rel=1e-9)
