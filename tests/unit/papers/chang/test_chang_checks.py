"""The checks of theorems and mistakes, against closed forms and autograd."""

from itertools import product
from math import comb
from pathlib import Path

import pytest
import torch

from evenly.papers import ledger
from evenly.papers.chang2025 import EXPERIMENTS, mapping, slip_checks, solution_checks, threshold_checks
from evenly.papers.experiment import Context
from evenly.papers.measurement import measure
from evenly.papers.verdict import HOLDS, judge
from evenly.stability import Problem, feature_solution
from evenly.stability.divergence import growth
from evenly.stability.maps import MapMethod, StabilityMap

CONTEXT = Context(Path("unused"))
BY_KEY = {each.key: each for each in EXPERIMENTS}


def test_all_that_the_paper_shows_is_declared() -> None:
    figures = ["fig1a", "fig1b", "fig1c", "fig1d", "table1", "fig2", "fig3", "fig4", "table2"]
    wanted = figures + [f"theorem3.{i}" for i in range(1, 7)] + [f"mistake{i}" for i in range(1, 11)]
    assert list(BY_KEY) == [f"chang2025/{name}" for name in wanted]
    for experiment in EXPERIMENTS:
        if "mistake" in experiment.key:
            assert any(claim.corrects for claim in experiment.claims)


@pytest.mark.parametrize("number", [2, 3, 4, 5, 6, 9, 10])
def test_a_mistake_is_found_and_its_correction_holds(number: int, tmp_path: Path) -> None:
    experiment = BY_KEY[f"chang2025/mistake{number}"]
    seen, minutes = measure(experiment, "smoke", runs=tmp_path, processes=1)
    row = ledger.row(experiment, "smoke", seen, seeds=experiment.scales["smoke"].seeds, minutes=minutes)
    assert (row["kind"], row["verdict"]) == ("remark", "reproduced")
    for claim in row["claims"]:
        assert claim["verdict"] != "contradicted" if claim["corrects"] else claim["verdict"] not in HOLDS, claim["name"]


def a_map() -> StabilityMap:
    """Two methods on a 2 × 3 grid: the simulation diverges at σ = 1 alone, the three boundaries up to σ = 2, 1, 1."""
    diverged = torch.tensor([[[True, False, False]] * 2] * 2)
    diverged[1, 0, 1] = True
    below = torch.tensor([[[0.1, 0.1, 0.9]] * 2] * 2)
    exact = torch.tensor([[[0.1, 0.9, 0.9]] * 2] * 2)
    logs = torch.zeros(2, 2, 3, 2)
    methods = (MapMethod("SGD"), MapMethod("random", noise=0.1))
    return StabilityMap(
        0.5, methods, (3, 4), (1, 2, 3), diverged, growth(logs, logs, steps=1), below, exact, 0.5 - exact
    )


def test_a_map_is_counted_cell_by_cell() -> None:
    numbers = mapping.numbers(a_map(), ["sgd", "random"])
    assert numbers["sgd.diverged"] == pytest.approx(100 / 3)
    assert numbers["sgd.missed"] == pytest.approx(50)
    assert numbers["sgd.agrees.criterion"] == pytest.approx(200 / 3)
    assert numbers["sgd.agrees.mean_square"] == numbers["sgd.agrees.almost_sure"] == 100
    assert numbers["random.differs"] == pytest.approx(100 / 6)
    assert (numbers["sgd.low_sigma"], numbers["sgd.high_sigma"]) == (100, 0)
    assert (numbers["random.small_batch"], numbers["random.large_batch"]) == pytest.approx((200 / 3, 100 / 3))
    assert mapping.lines(a_map(), 0) == {"criterion": [2, 2], "mean_square": [1, 1], "almost_sure": [1, 1]}


def test_the_moment_of_a_batch_is_counted_as_by_the_binomial_law() -> None:
    wanted = sum(comb(5, k) * 0.3**k * 0.7 ** (5 - k) * (1 - 0.4 * k) ** 2 for k in range(6))
    assert threshold_checks._counted(0.4, 5, 0.3) == pytest.approx(wanted)


def test_the_share_of_the_noise_is_a_geometric_sum_for_one_example() -> None:
    one = Problem.from_diagonal(torch.tensor([[2.0]]))
    a, force = 1 - 1.5 * 2, (1.5 * threshold_checks.NOISE * 2) ** 2
    plain, noisy = a ** (2 * 7), a ** (2 * 7) + force * sum(a ** (2 * j) for j in range(7))
    seen = threshold_checks._noise_share(one, lr=1.5, batch=1, steps=7)
    assert 10**seen == pytest.approx(noisy / plain)


def test_random_perturbation_settles_at_its_closed_form_where_it_is_run_long_enough() -> None:
    seen = threshold_checks.random_perturbation(
        CONTEXT, seeds=[0], num=10, dim=1, batch=4, steps=200, repeats=4000
    ).values
    assert seen["below.ratio"][0] == pytest.approx(1, abs=0.1)
    assert seen["below.sgd"][0] < -10 < seen["below.random"][0]


def test_the_stated_threshold_of_theorem_3_3_is_where_the_moment_is_one() -> None:
    seen = threshold_checks.tight_set(CONTEXT, seeds=range(5)).values
    for seed in range(5):
        assert seen["below"][seed] < 1 < seen["above"][seed]
        assert seen["at"][seed] == pytest.approx(1, abs=1e-9) == seen["exact_over_stated"][seed]


def test_a_shared_unit_fits_two_examples_with_orthogonal_gradients() -> None:
    solution, x = solution_checks.shared_unit(torch.Generator().manual_seed(1), dim=9)
    gradients = solution_checks._gradients(solution, x)
    assert torch.allclose(solution(x), x[:, 0] * x[:, 1])
    assert solution.active(x).all()
    assert abs(float(gradients[0] @ gradients[1])) < 1e-9


def test_gradients_of_a_solution_are_those_of_autograd() -> None:
    solution, x = feature_solution(2, dim=4), solution_checks.cube(torch.Generator().manual_seed(0), num=3, dim=4)
    weights = [t.clone().requires_grad_(True) for t in (solution.w2_M, solution.w1_MD, solution.b_M)]
    for i, wanted in enumerate(solution_checks._gradients(solution, x)):
        f = (x[i] @ weights[1].mT + weights[2]).relu() @ weights[0]
        assert torch.allclose(torch.cat([g.flatten() for g in torch.autograd.grad(f, weights)]), wanted)


def test_the_expected_sharpness_under_sam_is_that_of_many_draws() -> None:
    seen = solution_checks.coherence_bounds(
        CONTEXT, seeds=[0], features=[2], dim=12, sizes=[60], draws=60, ratio=0.3
    ).values
    assert seen["n60.C2.expected"][0] == pytest.approx(1, abs=0.02)
    assert seen["n60.C2.largest"][0] < 1
    assert seen["broken"][0] == 0


def test_true_sam_alternates_and_reversed_it_would_not() -> None:
    path = slip_checks.sam_path(1.0, lr=0.5, rho=0.3, start=1.0, steps=200)
    assert float(path[-1]) == pytest.approx(-float(path[-2]))
    assert abs(float(path[-1])) == pytest.approx(0.1)
    w = 1.0
    for _ in range(200):
        w -= 0.5 * (w - 0.3 * (1 if w > 0 else -1))
    assert w == pytest.approx(0.3)


def test_the_printed_example_does_not_fit_where_its_sixth_unit_is_needed() -> None:
    cube = torch.tensor(list(product([1.0, -1.0], repeat=5)), dtype=torch.float64)
    off = (slip_checks.printed_example()(cube) - cube[:, 0] * cube[:, 1]).abs() > 1e-9
    assert {tuple(x) for x in cube[off][:, :3].tolist()} == {(1.0, 1.0, -1.0), (-1.0, 1.0, -1.0)}


def test_fewer_features_are_less_stable_exactly_and_alike_by_the_criterion() -> None:
    seen = solution_checks.favoured(
        CONTEXT, seeds=[0, 1, 2], features=[2, 4], dim=30, num=60, batch=6, ratio=0.1
    ).values
    claims = {claim.name: claim for claim in BY_KEY["chang2025/mistake2"].claims}
    as_five = {name.replace("C4", "C5"): by for name, by in seen.items()}
    assert judge(claims["reverse"], as_five).verdict == "reproduced"
    assert seen["C2.criterion"] == pytest.approx(seen["C4.criterion"])
