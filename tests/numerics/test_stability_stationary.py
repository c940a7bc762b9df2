"""Where a method hovers: closed forms, a dense solve, and long random runs."""

import pytest
import torch

from evenly.optim import SAM
from evenly.stability.mean_square import mean_square_threshold
from evenly.stability.problem import Problem
from evenly.stability.sampling import Sampling, second_moment
from evenly.stability.simulation import simulate
from evenly.stability.stationary import stationary_covariance, two_cycle


@pytest.mark.parametrize("sampling", ["bernoulli", "without", "with"])
def test_covariance_solves_the_dense_equation(sampling: Sampling) -> None:
    a = torch.randn(5, 2, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    h_NPP = a.mT @ a
    h, eye = h_NPP.mean(0), torch.eye(3, dtype=torch.float64)
    problem = Problem.from_factors(a)
    lr = 0.7 * mean_square_threshold(problem, batch=2, sampling=sampling)
    c1, c2 = second_moment(sampling, num_examples=5, batch=2)
    d = c1 * torch.kron(h, h) + c2 * torch.stack([torch.kron(x, x) for x in h_NPP]).mean(0)
    moved = lr * (torch.kron(h, eye) + torch.kron(eye, h)) - lr**2 * d
    force = (lr * 0.3) ** 2 * (c1 * h @ h + c2 * (h_NPP @ h_NPP).mean(0))
    dense = torch.linalg.solve(moved, force.flatten()).view(3, 3)
    cloud = stationary_covariance(problem, lr=lr, batch=2, noise=0.3, sampling=sampling)
    assert torch.allclose(cloud.in_parameters(), dense, rtol=1e-9, atol=1e-12)
    assert cloud.mean_square == pytest.approx(float(dense.trace()), rel=1e-9)


def test_covariance_of_one_coordinate_is_its_closed_form() -> None:
    values = torch.tensor([[1.0], [3.0]], dtype=torch.float64)
    lr, noise = 0.4, 0.2
    second = 2.0**2 + 0.5 * 5.0  # E[h_t²] = mean² + (1/B − 1/n) mean of squares, B = 1, n = 2
    expected = lr * noise**2 * second / (2 * 2.0 - lr * second)
    for problem in (Problem.from_diagonal(values), Problem.from_factors(values.sqrt())):
        assert stationary_covariance(problem, lr=lr, batch=1, noise=noise).mean_square == pytest.approx(expected)


def test_noisy_runs_settle_at_the_stationary_mean_square() -> None:
    a = torch.randn(6, 1, 2, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    problem = Problem.from_factors(a)
    lr = 0.5 * mean_square_threshold(problem, batch=3)
    expected = stationary_covariance(problem, lr=lr, batch=3, noise=0.5).mean_square
    start = torch.full((20_000, 2), 0.5**0.5, dtype=torch.float64)  # of norm 1, so that growth is the norm itself
    runs = simulate(
        problem,
        lr=lr,
        batch=3,
        noise=0.5,
        rng=torch.Generator().manual_seed(2),
        steps=150,
        repeats=20_000,
        start_KR=start,
    )
    squares = (2 * runs.log_growth_LKT[0]).exp()
    for moment in (0, 1):  # already stationary at half-time
        error = float(squares[:, moment].std()) / 20_000**0.5
        assert abs(float(squares[:, moment].mean()) - expected) < 5 * error


def sam_path(curvatures: list[float], start: list[float], *, lr: float, rho: float, steps: int) -> torch.Tensor:
    """The path of evenly's SAM on ½ Σ hw², a row per step."""
    h, w = torch.tensor(curvatures, dtype=torch.float64), torch.nn.Parameter(torch.tensor(start, dtype=torch.float64))
    sam, sgd = SAM([w], rho=rho), torch.optim.SGD([w], lr=lr)
    path = [w.detach().clone()]
    for _ in range(steps):
        sgd.zero_grad()
        sam.backward(lambda: (h * w**2).sum() / 2)
        sgd.step()
        path.append(w.detach().clone())
    return torch.stack(path)


def test_true_sam_ends_in_the_two_cycle_along_the_sharpest_direction() -> None:
    lr, rho = 0.6, 0.05
    path = sam_path([0.3, 2.0], [1.0, 0.5], lr=lr, rho=rho, steps=400)
    size = two_cycle(2.0, lr=lr, rho=rho)
    assert size == pytest.approx(0.6 * 2 * 0.05 / (2 - 1.2))
    assert path[-1].tolist() == pytest.approx((-path[-2]).tolist(), abs=1e-9)
    assert abs(float(path[-1, 1])) == pytest.approx(size, rel=1e-6)
    assert abs(float(path[-1, 0])) < 1e-6


def test_without_radius_true_sam_is_gradient_descent_and_comes_to_rest() -> None:
    path = sam_path([2.0], [1.0], lr=0.6, rho=0.0, steps=3)
    assert path[:, 0].tolist() == pytest.approx([1.0, -0.2, 0.04, -0.008])


def test_a_part_settles_as_the_whole_set_that_repeats_it() -> None:
    factors = torch.randn(6, 1, 3, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    part, whole = Problem.from_factors(factors), Problem.from_factors(factors.repeat(5, 1, 1))
    settled = [
        stationary_covariance(p, lr=0.1, batch=4, noise=0.3, sampling="without").mean_square
        for p in (part.part_of(30), whole)
    ]
    assert settled[0] == pytest.approx(settled[1], rel=1e-9)
