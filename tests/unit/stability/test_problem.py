"""What a problem refuses, and in which words."""

import json
import math
import re
from typing import Any

import pytest
import torch
from torch import nn

from evenly.curvature import block_gram
from evenly.errors import DataError, SetupError, UsageError
from evenly.stability import (
    Problem,
    almost_sure_threshold,
    coherence_of_hessians,
    feature_solution,
    lyapunov_exponent,
    lyapunov_spectrum,
    mean_square_radius,
    mean_square_threshold,
    memorising_solution,
    network_problem,
    overlapping_set,
    simulate,
    solutions_table,
    stability_map,
    stationary_covariance,
    threshold_report,
    two_cycle,
)
from evenly.stability.divergence import growth
from evenly.stability.outcomes import batch_values
from evenly.stability.problem import BLOCK, _symmetric

EYE = torch.eye(3)
ONE = Problem.from_diagonal(torch.tensor([[1.0], [1.0]]))
RNG = torch.Generator().manual_seed(0)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Problem.from_dense(torch.stack([EYE, torch.diag(torch.tensor([1.0, 1.0, -0.25]))])),
         r"H_1 is not positive semidefinite: its smallest eigenvalue is -0.25.*1 of 2"),
        (lambda: Problem.from_dense(torch.stack([EYE, EYE + torch.triu(torch.ones(3, 3), 1)])),
         "H_1 is not symmetric: it differs from its transpose by 1"),
        (lambda: Problem.from_dense(torch.ones(2, 3)), r"N×P×P and not empty, not \(2, 3\)"),
        (lambda: Problem.from_diagonal(torch.tensor([[1.0], [-2.0]])), "H_1 .* entry 0 of its diagonal is -2"),
        (lambda: Problem.from_diagonal(torch.ones(3)), "N×P"),
        (lambda: Problem.from_diagonal(torch.zeros(2, 2)), "every curvature is zero"),
        (lambda: Problem.from_factors(torch.zeros(2, 2)), "every curvature is zero"),
        (lambda: Problem.from_factors(torch.zeros(2)), "N×P or N×C×P"),
        (lambda: Problem.from_factors(torch.tensor([[1.0, float("nan")]])), r"entry \(0, 1\) is nan"),
        (lambda: Problem.from_gram(torch.tensor([[1.0, 2.0], [2.0, 1.0]])), "smallest eigenvalue is -1, its largest 3"),
        (lambda: Problem.from_gram(torch.tensor([[1.0, 2.0], [0.0, 1.0]])), "Gram matrix is not symmetric"),
        (lambda: Problem.from_gram(torch.ones(2, 3)), "not 2×3"),
        (lambda: Problem.from_gram(torch.ones(2, 2, 3, 2)), "not 2×2×3×2"),
        (lambda: Problem.from_gram(torch.eye(5), num_outputs=2), "5 rows is not that of examples with 2 rows each"),
        (lambda: coherence_of_hessians(torch.ones(2, 2)), "N×P×P"),
        (lambda: coherence_of_hessians(torch.full((2, 1, 1), float("inf"))), "H_0 has an entry that is not finite"),
        (lambda: memorising_solution(torch.ones(2, 3)), r"examples \[0, 1\] are equal"),
        (lambda: memorising_solution(torch.zeros(2, 3)), r"must be ±1; entry \(0, 0\) is 0"),
        (lambda: feature_solution(2, dim=3).problem(torch.ones(2, 1)), "at least two coordinates"),
        (lambda: memorising_solution(torch.ones(1, 3)).problem(-torch.ones(1, 3)), "not fit: example 0 is off by 1"),
    ],
)  # fmt: skip
def test_data_that_cannot_be_a_minimum_are_refused(make: object, says: str) -> None:
    with pytest.raises(DataError, match=says):
        make()  # type: ignore[operator]


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: mean_square_threshold(ONE, batch=3), "batch = 3, but there are only 2 examples"),
        (lambda: mean_square_threshold(ONE, batch=0), "batch = 0"),
        (lambda: mean_square_threshold(ONE, batch=1, sampling="witout"), "Did you mean 'without'"),  # type: ignore[arg-type]
        (lambda: mean_square_threshold(ONE, batch=1, rho_over_alpha=-0.1), "rho_over_alpha = -0.1"),
        (lambda: mean_square_radius(ONE, lr=0.0, batch=1), "lr = 0.0"),
        (lambda: mean_square_radius(ONE, lr=float("nan"), batch=1), "lr = nan"),
        (lambda: lyapunov_exponent(ONE, lr=-1.0, batch=1), "lr = -1"),
        (lambda: lyapunov_exponent(Problem.from_gram(EYE), lr=0.1, batch=1), "give rng="),
        (lambda: almost_sure_threshold(Problem.from_gram(EYE), batch=1), "give rng="),
        (lambda: lyapunov_spectrum(ONE, lr=0.1, batch=1, rng=RNG, num=2), "num = 2: a problem of rank 1"),
        (lambda: lyapunov_spectrum(ONE, lr=0.1, batch=1, rng=RNG, replicas=1), "replicas = 1"),
        (lambda: batch_values(torch.rand(40, generator=RNG), batch=20), "too many to list. Give rng="),
        (lambda: stationary_covariance(ONE, lr=2.0, batch=1, noise=0.1), "not below the mean-square threshold 1.33"),
        (lambda: stationary_covariance(ONE, lr=0.2, batch=1, noise=-1.0), "noise = -1"),
        (lambda: stationary_covariance(Problem.from_gram(EYE), lr=0.1, batch=1, noise=0.1).in_parameters(), "factors"),
        (lambda: two_cycle(1.0, lr=2.0, rho=0.1), "at 2 and above SAM diverges"),
        (lambda: two_cycle(-1.0, lr=0.1, rho=0.1), "curvature = -1"),
        (lambda: simulate(ONE, lr=[0.1, 0.2], batch=[1, 1, 1], rng=RNG), "lengths 2, 3, 1, 1"),
        (lambda: simulate(ONE, lr=0.1, batch=3, rng=RNG), "only 2 examples"),
        (lambda: simulate(ONE, lr=0.1, batch=1, noise=-1.0, rng=RNG), "at least 0"),
        (lambda: simulate(ONE, lr=0.1, batch=1, steps=5, moments=[6], rng=RNG), "moments within steps"),
        (lambda: simulate(ONE, lr=0.1, batch=1, start_KR=torch.zeros(10, 1), rng=RNG), "no row zero"),
        (lambda: growth(torch.zeros(1), torch.zeros(1), steps=3), "at least two repeats"),
        (lambda: overlapping_set(0), "sigma = 0"),
        (lambda: overlapping_set(3, sharpness=0.0), "sharpness = 0"),
        (lambda: stability_map(rng=RNG, batches=[101]), "only 100 examples"),
        (lambda: stability_map(rng=RNG, sigmas=[0]), "from 1 to the number of examples, 100"),
        (lambda: stability_map(rng=RNG, rho_over_alpha=[-1.0]), "at least 0"),
        (lambda: stability_map(rng=RNG, repeats=1), "repeats = 1"),
        (lambda: feature_solution(5, dim=4), "c = 5"),
        (lambda: feature_solution(2, dim=4, width=3), "width = 3"),
        (lambda: feature_solution(2, dim=4, r=0.0), "r = 0"),
        (lambda: feature_solution(30, dim=40), "memorising_solution"),
        (lambda: solutions_table([2], rng=RNG, d=4, n=9), "d = 4, n = 9"),
        (lambda: threshold_report(EYE, batch=1, lr=-0.1), "lr = -0.1"),
    ],
)
def test_arguments_that_cannot_be_meant_are_refused(call: object, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        call()  # type: ignore[operator]


def test_a_float32_gram_with_rounding_is_accepted() -> None:
    g = torch.randn(40, 5, generator=torch.Generator().manual_seed(1))
    problem = Problem.from_gram(g @ g.T)
    assert problem.rank == 5
    assert problem.eigenvalues_R.dtype == torch.float64


def test_a_gram_that_carries_gradients_is_taken_as_numbers() -> None:
    g = torch.randn(4, 3, requires_grad=True, generator=torch.Generator().manual_seed(2))
    assert not Problem.from_gram(g @ g.T).eigenvalues_R.requires_grad
    assert g.grad is None


def test_inputs_are_left_as_they_were() -> None:
    g = torch.randn(6, 3, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    k = g @ g.T
    before, state = k.clone(), torch.get_rng_state()
    problem = Problem.from_gram(k)
    mean_square_threshold(problem, batch=2)
    simulate(problem, lr=0.1, batch=2, rng=torch.Generator().manual_seed(4), steps=3)
    threshold_report(k, batch=2, lr=0.1, rho_over_alpha=0.5)
    assert torch.equal(k, before)
    assert torch.equal(torch.get_rng_state(), state)


def test_reports_are_plain_json_also_where_a_criterion_says_nothing() -> None:
    report = threshold_report(torch.eye(4), batch=4, lr=0.1, rho_over_alpha=0.2)
    rows = solutions_table([2], rng=torch.Generator().manual_seed(0), d=6, n=10, batch=10)
    json.dumps([report, rows], allow_nan=False)
    assert rows[0]["eta_criterion"] is None
    assert [row["eta"] for row in report["methods"]["SGD"]["criteria"] if row["name"] == "sharpest example"] == [None]


def test_a_report_on_batches_larger_than_the_data_leaves_the_criteria_out() -> None:
    report = threshold_report(torch.eye(4), batch=8, lr=0.1, sampling="with")
    assert list(report["methods"]) == ["SGD, with replacement"]
    assert "criteria are left out" in report["notes"][0]


def test_report_says_where_the_learning_rate_stands_and_when_the_network_is_not_at_a_minimum() -> None:
    near = threshold_report(20.0 * torch.eye(10), batch=5, lr=0.4, rho_over_alpha=0.1, gradient_norm=0.0, residual=0.0)
    assert near["methods"]["SGD"]["eta_exact"] == pytest.approx(0.5)  # 2B/τ
    assert near["methods"]["SGD"]["stands"].startswith("stable: lr is 0.8")
    sam = near["methods"]["SAM ρ/α=0.1"]
    assert sam["eta_exact"] == pytest.approx(0.5 / 1.2)
    assert not any("minimum" in note for note in near["notes"])
    far = threshold_report(20.0 * torch.eye(10), batch=5, lr=0.6, gradient_norm=3.0, residual=0.5)
    assert far["methods"]["SGD"]["stands"].startswith("unstable in mean square")
    assert any("gradient norm 3.0, largest residual 0.5" in note for note in far["notes"])


def test_symmetry_is_checked_and_made_block_by_block() -> None:
    """More rows than one block: the result is (K + Kᵀ)/2, and one odd entry far from the diagonal is found."""
    rng = torch.Generator().manual_seed(0)
    size = 2 * BLOCK + 7
    a = torch.randn(size, 3, generator=rng)
    gram = a @ a.mT + 1e-8 * torch.rand(size, size, generator=rng)
    assert torch.equal(_symmetric(gram, "K"), (gram + gram.mT) / 2)
    gram[size - 1, 2] += 0.5
    with pytest.raises(DataError, match=r"K is not symmetric: it differs from its transpose by 0\.5"):
        _symmetric(gram, "K")
    gram[size - 1, 2] = float("inf")
    with pytest.raises(DataError, match=rf"entry \({size - 1}, 2\) is inf"):
        Problem.from_gram(gram)


@pytest.mark.parametrize("outputs", [1, 3])
def test_a_gram_matrix_beyond_memory_is_refused_with_the_examples_that_fit(
    outputs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVENLY_MEMORY", "0.001")  # a megabyte
    model, x = nn.Linear(2, outputs), torch.randn(2000, 2, generator=torch.Generator().manual_seed(0))
    labels = torch.arange(2000) % 2
    for make in (lambda n: network_problem(model, (x[:n], labels[:n])), lambda n: block_gram(model, x[:n])):
        with pytest.raises(
            SetupError, match=r"Gram matrix of 2,000 examples.*may be used on cpu.*EVENLY_MEMORY"
        ) as said:
            make(2000)
        most = int(re.search(r"--examples (\d+)", str(said.value)).group(1))  # type: ignore[union-attr]
        assert 0 < most < 2000
        make(most)
        with pytest.raises(SetupError):
            make(most + 1)


@pytest.mark.parametrize("batch", [math.nan, math.inf, 2.5, "2", None])
def test_a_batch_that_is_no_whole_number_is_refused_in_words(batch: Any) -> None:
    with pytest.raises(UsageError, match=f"batch = {batch!r}: a batch has a whole number of examples"):
        mean_square_threshold(overlapping_set(2, num_examples=10), batch=batch)
