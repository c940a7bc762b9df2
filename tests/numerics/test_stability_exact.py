"""The mean-square threshold against brute force: every batch listed, E[J⊗J] formed, its spectral radius taken."""

import itertools
from collections.abc import Iterator
from math import sqrt

import pytest
import torch
from torch import Tensor

from evenly.stability.criteria import chang_theorem_3_3
from evenly.stability.mean_square import mean_square_radius, mean_square_threshold, sandwich_radius
from evenly.stability.problem import Problem
from evenly.stability.sampling import Sampling, draw, second_moment
from evenly.stability.simulation import simulate

SCHEMES: tuple[Sampling, ...] = ("bernoulli", "without", "with")


def every_batch(sampling: str, num: int, batch: int) -> Iterator[tuple[float, Tensor]]:
    """Each possible batch as counts, with its probability, from the definition of the scheme."""
    if sampling == "bernoulli":
        for bits in itertools.product((0.0, 1.0), repeat=num):
            size = sum(bits)
            yield (batch / num) ** size * (1 - batch / num) ** (num - size), torch.tensor(bits, dtype=torch.float64)
    elif sampling == "without":
        chosen = list(itertools.combinations(range(num), batch))
        for some in chosen:
            counts = torch.zeros(num, dtype=torch.float64)
            counts[list(some)] = 1
            yield 1 / len(chosen), counts
    else:
        for some in itertools.product(range(num), repeat=batch):
            yield num**-batch, torch.bincount(torch.tensor(some), minlength=num).double()


def brute_radius(h_NPP: Tensor, *, lr: float, batch: int, sampling: str, ratio: float = 0.0) -> float:
    """Spectral radius of E[J⊗J] with J = I − ηH_tP as it stands: no symmetry, no change of coordinates."""
    num, dims = len(h_NPP), h_NPP.shape[1]
    eye = torch.eye(dims, dtype=torch.float64)
    p = eye + ratio * h_NPP.mean(0)
    total = torch.zeros(dims**2, dims**2, dtype=torch.float64)
    for prob, counts in every_batch(sampling, num, batch):
        j = eye - lr * torch.einsum("n,npq->pq", counts, h_NPP) / batch @ p
        total += prob * torch.kron(j, j)
    return float(torch.linalg.eigvals(total).abs().max())


def brute_threshold(h_NPP: Tensor, **setting: object) -> float:
    low, high = 0.0, 100.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if brute_radius(h_NPP, lr=middle, **setting) < 1 else (low, middle)  # type: ignore[arg-type]
    return low


def random_factors(seed: int, num: int, width: int, dims: int) -> Tensor:
    return torch.randn(num, width, dims, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize("ratio", [0.0, 0.7])
@pytest.mark.parametrize("batch", [1, 2, 4])
@pytest.mark.parametrize("sampling", SCHEMES)
def test_threshold_is_where_brute_force_crosses_one(sampling: Sampling, batch: int, ratio: float) -> None:
    factors = random_factors(0, 4, 2, 3)
    exact = mean_square_threshold(Problem.from_factors(factors), batch=batch, sampling=sampling, rho_over_alpha=ratio)
    brute = brute_threshold(factors.mT @ factors, batch=batch, sampling=sampling, ratio=ratio)
    assert exact == pytest.approx(brute, rel=1e-8)


@pytest.mark.parametrize("sampling", SCHEMES)
@pytest.mark.parametrize("lr", [0.05, 0.3, 2.0])
def test_radius_is_that_of_brute_force_below_and_above_the_threshold(sampling: Sampling, lr: float) -> None:
    factors = random_factors(1, 4, 1, 3)
    problem = Problem.from_factors(factors)
    for ratio in (0.0, 0.4):
        radius = mean_square_radius(problem, lr=lr, batch=2, sampling=sampling, rho_over_alpha=ratio)
        brute = brute_radius(factors.mT @ factors, lr=lr, batch=2, sampling=sampling, ratio=ratio)
        assert radius == pytest.approx(brute, rel=1e-8)


@pytest.mark.parametrize("sampling", SCHEMES)
def test_second_moment_of_drawn_batches_is_the_stated_one(sampling: Sampling) -> None:
    num, batch = 5, 3
    c1, c2 = second_moment(sampling, num_examples=num, batch=batch)
    pairs = sum(prob * torch.outer(x, x) for prob, x in every_batch(sampling, num, batch))
    assert isinstance(pairs, Tensor)
    assert float(pairs[0, 1]) * (num / batch) ** 2 == pytest.approx(c1, abs=1e-12)
    assert float(pairs[0, 0] - pairs[0, 1]) * num / batch**2 == pytest.approx(c2, abs=1e-12)
    rng = torch.Generator().manual_seed(0)
    x = draw(sampling, num_examples=num, batches_L=torch.tensor([batch]), repeats=40_000, rng=rng)[0]
    assert torch.allclose(x.T @ x / len(x), pairs, atol=0.03)


def test_every_way_to_state_a_problem_gives_the_same_threshold() -> None:
    factors = random_factors(2, 6, 2, 9)  # fewer parameters than rows, yet not full rank below
    factors[..., 7:] = 0
    flat = factors.reshape(12, 9)
    gram = flat @ flat.T
    blocks = gram.view(6, 2, 6, 2).permute(0, 2, 1, 3)
    problems = [
        Problem.from_factors(factors),
        Problem.from_dense(factors.mT @ factors),
        Problem.from_gram(blocks),
        Problem.from_gram(gram, num_outputs=2),
        Problem.from_factors(torch.cat([factors, torch.zeros(6, 2, 20, dtype=torch.float64)], -1)),
    ]
    for batch, ratio in ((1, 0.0), (3, 0.5)):
        found = [mean_square_threshold(p, batch=batch, rho_over_alpha=ratio) for p in problems]
        assert found == pytest.approx([found[0]] * 5, rel=1e-9)
    assert [p.rank for p in problems] == [7] * 5


def test_directions_without_curvature_do_not_count() -> None:
    factors = random_factors(3, 3, 1, 2)
    padded = torch.cat([factors, torch.zeros(3, 1, 2, dtype=torch.float64)], -1)
    exact = mean_square_threshold(Problem.from_factors(padded), batch=1)
    assert exact == pytest.approx(brute_threshold(factors.mT @ factors, batch=1, sampling="bernoulli"), rel=1e-8)


@pytest.mark.parametrize("num_params", [3, 12])
def test_residual_recursion_in_example_space_is_neutral_at_the_threshold(num_params: int) -> None:
    """The map E ↦ E − (η/n)(KE+EK) + (η/B)² K(p²E + (p−p²) diag E)K on residuals has radius 1 at η*."""
    num, batch = 6, 2
    g = random_factors(4, num, 1, num_params)[:, 0]
    k = g @ g.T
    lr = mean_square_threshold(Problem.from_gram(k), batch=batch)
    p = batch / num
    columns = []
    for entry in torch.eye(num * num, dtype=torch.float64):
        e = entry.view(num, num)
        noise = p * p * e + (p - p * p) * torch.diag(e.diagonal())
        columns.append((e - lr / num * (k @ e + e @ k) + (lr / batch) ** 2 * k @ noise @ k).flatten())
    values = torch.linalg.eigvals(torch.stack(columns, 1)).abs()
    # Residuals outside the range of K never move: as many unit eigenvalues as pairs of such directions.
    still = (num - min(num, num_params)) ** 2
    assert float(values.sort().values[-1 - still]) == pytest.approx(1, abs=1e-7)


@pytest.mark.parametrize("ratio", [0.0, 0.3])
@pytest.mark.parametrize(("sigma", "batch"), [(1, 1), (5, 3), (20, 10), (20, 20)])
def test_theorem_3_3_is_exact_on_its_own_set(sigma: int, batch: int, ratio: float) -> None:
    num, top = 20, 1.7
    values = torch.zeros(num, 1, dtype=torch.float64)
    values[:sigma] = top * num / sigma
    closed = chang_theorem_3_3(top, sigma=sigma, num_examples=num, batch=batch, rho_over_alpha=ratio).lr
    for problem in (Problem.from_diagonal(values), Problem.from_factors(values.sqrt())):
        assert mean_square_threshold(problem, batch=batch, rho_over_alpha=ratio) == pytest.approx(closed, rel=1e-10)


@pytest.mark.parametrize("sampling", SCHEMES)
def test_a_diagonal_set_turned_in_space_keeps_its_closed_form(sampling: Sampling) -> None:
    rng = torch.Generator().manual_seed(5)
    values = torch.rand(7, 4, generator=rng, dtype=torch.float64)
    turn = torch.linalg.qr(torch.randn(4, 4, generator=rng, dtype=torch.float64)).Q
    turned = Problem.from_dense(torch.einsum("pa,na,qa->npq", turn, values, turn))
    diagonal = Problem.from_diagonal(values)
    for ratio in (0.0, 1.3):
        assert mean_square_threshold(turned, batch=2, sampling=sampling, rho_over_alpha=ratio) == pytest.approx(
            mean_square_threshold(diagonal, batch=2, sampling=sampling, rho_over_alpha=ratio), rel=1e-9
        )
        assert mean_square_radius(turned, lr=0.9, batch=2, sampling=sampling, rho_over_alpha=ratio) == pytest.approx(
            mean_square_radius(diagonal, lr=0.9, batch=2, sampling=sampling, rho_over_alpha=ratio), rel=1e-9
        )
    assert sandwich_radius(turned) == pytest.approx(sandwich_radius(diagonal), rel=1e-9)


@pytest.mark.parametrize("sampling", SCHEMES)
def test_the_whole_data_set_in_every_batch_is_gradient_descent(sampling: Sampling) -> None:
    problem = Problem.from_factors(random_factors(6, 5, 2, 4))
    exact = mean_square_threshold(problem, batch=5, sampling=sampling)
    if sampling == "with":  # a batch of n drawn with replacement is not the whole data set
        assert exact < 2 / problem.lambda_max
    else:
        assert exact == pytest.approx(2 / problem.lambda_max, rel=1e-12)


@pytest.mark.parametrize("ratio", [0.0, 0.5])
@pytest.mark.parametrize("sampling", SCHEMES)
@pytest.mark.parametrize("times", [0.8, 1.2])
def test_simulated_second_moment_agrees_on_both_sides(sampling: Sampling, times: float, ratio: float) -> None:
    """E‖w_t‖² over 40,000 runs against the exact map, iterated; it falls below η* and rises above."""
    factors = random_factors(7, 4, 1, 2)
    problem = Problem.from_factors(factors)
    batch, steps = 2, 8
    lr = times * mean_square_threshold(problem, batch=batch, sampling=sampling, rho_over_alpha=ratio)
    h = torch.diag_embed(problem.eigenvalues_R)
    a_NR = problem.curvatures.factors_NCR[:, 0]  # type: ignore[union-attr]
    h_NRR = a_NR[:, :, None] * a_NR[:, None, :]
    p = torch.eye(2, dtype=torch.float64) + ratio * h
    c1, c2 = second_moment(sampling, num_examples=4, batch=batch)
    m = torch.eye(2, dtype=torch.float64)
    exact = []
    for _ in range(steps):
        inner = p @ m @ p
        m = m - lr * (h @ p @ m + m @ p @ h) + lr**2 * (c1 * h @ inner @ h + c2 * (h_NRR @ inner @ h_NRR).mean(0))
        exact.append(float(m.trace()))
    start = torch.tensor([[sqrt(2), 0.0], [0.0, sqrt(2)]], dtype=torch.float64).repeat(20_000, 1)  # E[wwᵀ] = I
    runs = simulate(
        problem, lr=lr, batch=batch, rho_over_alpha=ratio, rng=torch.Generator().manual_seed(8), steps=steps,
        repeats=40_000, moments=(2, steps), sampling=sampling, start_KR=start,
    )  # fmt: skip
    squares = (2 * runs.log_growth_LKT[0]).exp() * 2
    mean, error = squares.mean(0), squares.std(0) / 200
    assert abs(float(mean[0]) - exact[1]) < 5 * float(error[0])
    assert abs(float(mean[1]) - exact[-1]) < 5 * float(error[1])
    radius = mean_square_radius(problem, lr=lr, batch=batch, sampling=sampling, rho_over_alpha=ratio)
    assert (radius < 1) == (times < 1)
