"""Criteria: each its formula, and each on the right side of the truth."""

from math import inf, sqrt

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from evenly.errors import UsageError
from evenly.stability.coherence_matrix import coherence
from evenly.stability.criteria import (
    all_criteria,
    chang_theorem_3_1,
    chang_theorem_3_2,
    chang_theorem_3_3,
    chang_theorem_c9,
    coherence_criterion,
    dexter_theorem_1,
    sharpest_example,
)
from evenly.stability.maps import overlapping_set
from evenly.stability.problem import Problem
from evenly.stability.solution_bounds import chang_theorem_3_5, chang_theorem_3_6


def random_problem(seed: int, num: int = 6, width: int = 1, dims: int = 4) -> Problem:
    rng = torch.Generator().manual_seed(seed)
    return Problem.from_factors(torch.randn(num, width, dims, generator=rng, dtype=torch.float64))


@given(
    seed=st.integers(0, 10_000),
    num=st.integers(2, 7),
    width=st.integers(1, 2),
    dims=st.integers(1, 5),
    part=st.floats(0, 1),
    ratio=st.sampled_from([0.0, 0.05, 0.5, 3.0]),
)
@settings(max_examples=60, deadline=None)
def test_no_criterion_contradicts_the_exact_threshold(
    seed: int, num: int, width: int, dims: int, part: float, ratio: float
) -> None:
    problem = random_problem(seed, num, width, dims)
    batch = 1 + int(part * (num - 1))
    *published, exact = all_criteria(problem, batch=batch, rho_over_alpha=ratio)
    for criterion in published:
        if criterion.says == "diverges above":
            assert criterion.lr >= exact.lr * (1 - 1e-9), criterion
        else:
            assert criterion.lr <= exact.lr * (1 + 1e-9), criterion


@given(seed=st.integers(0, 10_000), num=st.integers(2, 7), width=st.integers(1, 2))
@settings(max_examples=30, deadline=None)
def test_the_sharpest_example_says_more_than_coherence_does(seed: int, num: int, width: int) -> None:
    problem = random_problem(seed, num, width)
    assert sharpest_example(problem, batch=1).lr <= coherence_criterion(problem, batch=1).lr * (1 + 1e-9)


def test_criteria_are_their_formulas_on_the_overlapping_set() -> None:
    sigma, n, batch, top = 10, 100, 20, 2.0
    problem = overlapping_set(sigma)  # coherence σ, λmax = 2, λmin = m/n = 2/σ, maxᵢ λmax(Hᵢ) = 2n/σ
    spread = sqrt(n / batch - 1)
    assert coherence(problem).sigma == pytest.approx(sigma)
    assert coherence_criterion(problem, batch=batch).lr == pytest.approx(sigma / top / spread)
    assert dexter_theorem_1(problem, batch=batch).lr == pytest.approx(min(2 / top, sigma / top / spread))
    assert chang_theorem_3_1(problem, batch=batch).lr == dexter_theorem_1(problem, batch=batch).lr
    assert sharpest_example(problem, batch=batch).lr == pytest.approx(n / (2 * n / sigma) / spread)
    found = chang_theorem_3_2(problem, batch=batch, rho_over_alpha=0.5)
    assert found.lr == pytest.approx(sigma / top / spread / (1 + 0.5 * 2 / sigma))
    assert found.notes == ()
    # C.9: μ = meanᵢ hᵢ² in the shared coordinate = σm²/n, c₂ = 1/B − 1/n
    noise = (1 / batch - 1 / n) * sigma * (2 * n / sigma) ** 2 / n
    steep = (sqrt(top**2 + 8 * noise) - top) / (2 * noise)
    assert chang_theorem_c9(problem, batch=batch).lr == pytest.approx(min(2 / sigma / noise, steep, noise**-0.5))


def test_theorem_c9_is_held_back_by_the_deterministic_part_where_all_examples_agree() -> None:
    problem = Problem.from_diagonal(torch.ones(2, 1))  # c₂μ = ½: η²/2 + η = 2
    assert chang_theorem_c9(problem, batch=1).lr == pytest.approx(sqrt(5) - 1)
    sam = chang_theorem_c9(problem, batch=1, rho_over_alpha=1.0)  # H̃ = 2, c₂μ = 2: 2η² + 2η = 2
    assert sam.lr == pytest.approx((sqrt(5) - 1) / 2)


def test_theorem_3_2_on_singular_curvature_says_so_and_keeps_to_the_range() -> None:
    values = torch.tensor([[1.0, 0.0], [3.0, 0.0]])
    plain = chang_theorem_3_2(Problem.from_diagonal(values[:, :1]), batch=1, rho_over_alpha=0.5)
    singular = chang_theorem_3_2(Problem.from_diagonal(values), batch=1, rho_over_alpha=0.5)
    assert singular.lr == plain.lr
    assert plain.notes == ()
    assert "singular" in singular.notes[0]
    assert "range" in singular.notes[0]
    assert "singular" in chang_theorem_c9(Problem.from_gram(torch.eye(3)), batch=1).notes[0]


def test_a_full_batch_leaves_gradient_descent_only() -> None:
    problem = random_problem(1)
    assert coherence_criterion(problem, batch=6).lr == inf
    assert sharpest_example(problem, batch=6).lr == inf
    assert chang_theorem_3_2(problem, batch=6, rho_over_alpha=0.1).lr == inf
    assert dexter_theorem_1(problem, batch=6).lr == pytest.approx(2 / problem.lambda_max)
    assert chang_theorem_c9(problem, batch=6).lr == pytest.approx(2 / problem.lambda_max)


def test_sigma_of_sam_is_that_of_sgd_where_all_eigenvalues_are_equal() -> None:
    """Under the paper's own assumptions the factor of SAM cancels."""
    problem = Problem.from_gram(3.0 * torch.eye(5))
    assert coherence(problem, rho_over_alpha=2.0).sigma == pytest.approx(coherence(problem).sigma)


def test_theorem_3_6_without_ascent_is_the_sgd_case() -> None:
    scale, top = chang_theorem_3_6(3, dim=24, num_examples=80, rho_over_alpha=0.0)
    assert (scale, top) == (80 / 8 * 10, 10)
    with_ascent, _ = chang_theorem_3_6(3, dim=24, num_examples=80, rho_over_alpha=0.4)
    inner = (1 + 0.4 * 10 / 8) ** 2 + 0.16 / 80 * (1 / 8 - 1 / 64) * 100
    assert with_ascent == pytest.approx(80 / 8 * 10 * sqrt(inner))


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: dexter_theorem_1(random_problem(0), batch=7), "only 6 examples"),
        (lambda: sharpest_example(random_problem(0), batch=0), "batch = 0"),
        (lambda: chang_theorem_3_2(random_problem(0), batch=2, rho_over_alpha=-1.0), "rho_over_alpha = -1"),
        (lambda: chang_theorem_3_3(1.0, sigma=11, num_examples=10, batch=2), "sigma = 11"),
        (lambda: chang_theorem_3_3(0.0, sigma=1, num_examples=10, batch=2), "lambda_1 = 0"),
        (lambda: chang_theorem_3_5(1, dim=10, num_examples=10), "c = 1"),
        (lambda: chang_theorem_3_5(2, dim=10, num_examples=10, delta=1.0), "delta = 1"),
        (lambda: chang_theorem_3_6(2, dim=10, num_examples=10, rho_over_alpha=float("nan")), "rho_over_alpha = nan"),
    ],
)
def test_assumptions_are_checked(call: object, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        call()  # type: ignore[operator]
