"""Networks that fit the parity exactly: their facts in closed form, by autograd, and in the numbers we publish."""

from math import sqrt

import pytest
import torch
from torch import Tensor

from evenly.stability.coherence_matrix import coherence
from evenly.stability.criteria import coherence_criterion
from evenly.stability.mean_square import mean_square_threshold
from evenly.stability.solution_bounds import chang_theorem_3_5
from evenly.stability.solutions import Solution, feature_solution, memorising_solution, shared_unit_counterexample
from evenly.stability.tables import solutions_table


def cube(seed: int, n: int, d: int) -> Tensor:
    return 2.0 * torch.randint(2, (n, d), generator=torch.Generator().manual_seed(seed)).double() - 1


def gradients(solution: Solution, x_ND: Tensor) -> Tensor:
    """∇f(xᵢ) of all weights by autograd, N × P."""

    def f(w1: Tensor, b: Tensor, w2: Tensor, x: Tensor) -> Tensor:
        return w2 @ (w1 @ x + b).relu()

    weights = (solution.w1_MD, solution.b_M, solution.w2_M)
    return torch.stack([torch.cat([g.flatten() for g in torch.func.grad(f, (0, 1, 2))(*weights, x)]) for x in x_ND])


@pytest.mark.parametrize("c", [2, 3, 5])
@pytest.mark.parametrize("r", [None, 0.7, 3.0])
def test_feature_solution_fits_with_one_active_unit_and_the_stated_trace(c: int, r: float | None) -> None:
    d = 12
    x = cube(0, 40, d)
    solution = feature_solution(c, dim=d, width=2**c + 3, r=r)
    assert torch.allclose(solution(x), x[:, 0] * x[:, 1], atol=1e-12)
    assert solution.active(x).sum(1).tolist() == [1] * 40
    scale = (d + 1) ** 0.25 if r is None else r
    traces = solution.gram(x).diagonal()
    assert torch.allclose(traces, torch.full_like(traces, scale**2 + (d + 1) / scale**2))
    if r is None:
        assert float(traces[0]) == pytest.approx(2 * sqrt(d + 1))


def test_rows_are_numbered_as_in_the_paper() -> None:
    """C.1's example with d = 5, C = 3, r = 1 and ten units; its sixth row is (−1, 1, −1, 0, 0) with W2 = −1."""
    solution = feature_solution(3, dim=5, width=10, r=1.0)
    assert solution.w1_MD[:6].tolist() == [
        [1, 1, 1, 0, 0], [-1, 1, 1, 0, 0], [1, -1, 1, 0, 0], [-1, -1, 1, 0, 0], [1, 1, -1, 0, 0], [-1, 1, -1, 0, 0],
    ]  # fmt: skip
    assert solution.w2_M.tolist() == [1, -1, -1, 1, 1, -1, -1, 1, 0, 0]
    assert solution.b_M.tolist() == [-2] * 8 + [0, 0]


@pytest.mark.parametrize("kind", ["features", "memorising", "counterexample"])
def test_gram_is_that_of_autograd_gradients(kind: str) -> None:
    x = cube(1, 20, 8)
    if kind == "features":
        solution = feature_solution(3, dim=8, r=1.3)
    elif kind == "memorising":
        solution = memorising_solution(x)
    else:
        solution, x = shared_unit_counterexample()
    g = gradients(solution, x)
    assert torch.allclose(solution.gram(x), g @ g.T, atol=1e-10)


def test_inner_products_within_a_cluster_are_not_the_trace() -> None:
    """C.11 and C.12 take Hᵢ = Hⱼ there; the product is r² + (xᵢ·xⱼ + 1)/r², about half."""
    d = 100
    x = cube(2, 100, d)
    solution = feature_solution(2, dim=d)
    active = solution.active(x).double()
    same = (active @ active.T > 0) & ~torch.eye(100, dtype=torch.bool)
    ratio = (solution.gram(x)[same] / solution.gram(x)[0, 0]).mean()
    assert 0.45 < float(ratio) < 0.58


@pytest.mark.parametrize("seed", range(3))
def test_the_criterion_is_blind_to_c_and_the_exact_threshold_rises_with_it(seed: int) -> None:
    """At d = n = 100, B = 10; drawn data move the exact ones by a few hundredths."""
    rows = solutions_table([2, 3, 4, 5], rng=torch.Generator().manual_seed(seed))
    assert [row["c"] for row in rows] == [2, 3, 4, 5, "memorising"]
    for row in rows:
        assert row["eta_criterion"] == pytest.approx(100 / (2 * sqrt(101) * 3), rel=1e-9)
        assert row["eta_criterion"] == pytest.approx(1.658, abs=1e-3)
        assert row["trace"] == pytest.approx(2 * sqrt(101))
        assert row["eta_exact_sam"] < row["eta_exact"]
    exact = [row["eta_exact"] for row in rows]
    assert exact == sorted(exact)
    for value, (low, high) in zip(
        exact, [(0.42, 0.50), (0.57, 0.68), (0.71, 0.80), (0.80, 0.85), (0.995, 0.9951)], strict=True
    ):
        assert low < value < high
    lambdas, sigmas = ([row[key] for row in rows] for key in ("lambda_max", "sigma"))
    assert lambdas == sorted(lambdas, reverse=True)
    assert sigmas == sorted(sigmas, reverse=True)


@pytest.mark.parametrize("batch", [1, 7, 30])
def test_memorising_solution_is_stable_up_to_two_batches_over_the_trace(batch: int) -> None:
    x = cube(3, 30, 12)
    solution = memorising_solution(x)
    assert solution.memorises(x)
    assert torch.allclose(solution(x), x[:, 0] * x[:, 1])
    problem = solution.problem(x)
    assert mean_square_threshold(problem, batch=batch) == pytest.approx(2 * batch / (2 * sqrt(13)), rel=1e-10)
    assert coherence(problem).sigma == pytest.approx(1)


def test_theorem_3_4_is_false_in_one_direction() -> None:
    """S diagonal does not mean that the network memorises: two examples share a unit and have orthogonal gradients."""
    solution, x = shared_unit_counterexample()
    assert torch.allclose(solution(x), x[:, 0] * x[:, 1])
    assert solution.active(x).tolist() == [[True], [True]]
    assert not solution.memorises(x)
    s = coherence(solution.problem(x)).matrix_NN
    assert abs(float(s[0, 1])) < 1e-7
    assert float(s[0, 0]) > 1


def test_theorem_3_5_bounds_what_is_drawn() -> None:
    for seed in range(20):
        x = cube(seed, 60, 20)
        for c in (2, 4):
            found = coherence(feature_solution(c, dim=20).problem(x))
            assert found.lambda_max_s is not None
            assert found.lambda_max_s <= chang_theorem_3_5(c, dim=20, num_examples=60, delta=0.01)


def test_sigma_and_sharpness_shrink_together_with_c() -> None:
    x = cube(4, 100, 50)
    problems = [feature_solution(c, dim=50).problem(x) for c in (2, 3, 4, 5)]
    etas = [coherence_criterion(p, batch=10).lr for p in problems]
    assert etas == pytest.approx([etas[0]] * 4, rel=1e-9)


def test_solution_loads_into_the_model_of_the_house() -> None:
    relu2 = pytest.importorskip("evenly.models.relu2")
    x = cube(5, 20, 10).float()
    solution = feature_solution(3, dim=10, width=12)
    model = relu2.ReLU2((10,), 2, width=12)
    model.load_state_dict(solution.state_dict())
    assert torch.allclose(model(x).flatten(), x[:, 0] * x[:, 1], atol=1e-5)
