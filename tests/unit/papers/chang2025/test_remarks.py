"""Our remarks and corrections: ours holds, and what of the paper it corrects does not."""

from pathlib import Path

import pytest
import torch

from evenly.papers import ledger
from evenly.papers.catalogue import CATALOGUE
from evenly.papers.chang2025.feature_solutions import cube
from evenly.papers.chang2025.mistake5 import gradients
from evenly.papers.chang2025.mistake9 import sam_path
from evenly.papers.chang2025.mistake10 import first_rows, misfit, product_moment
from evenly.papers.measurement import measure
from evenly.papers.verdict import HOLDS
from evenly.stability import feature_solution
from evenly.sweep.where import Where

#: Statements of the paper that hold, and are named beside ours.
TRUE_OF_THE_PAPER = {"bias, 0.1", "bias, 0.5"}


def test_all_ten_are_remarks_and_say_so() -> None:
    remarks = {key for key, each in CATALOGUE.items() if key.startswith("chang2025") and each.remark}
    assert remarks == {f"chang2025/mistake{number}" for number in range(1, 11)}
    for key in remarks:
        number = key.removeprefix("chang2025/mistake")
        assert CATALOGUE[key].title.startswith((f"Remark {number}:", f"Correction {number}:"))


@pytest.mark.parametrize("number", [3, 9])
def test_what_the_paper_does_not_say_is_not_put_in_its_mouth(number: int) -> None:
    assert all(claim.corrects for claim in CATALOGUE[f"chang2025/mistake{number}"].claims)


@pytest.mark.parametrize("number", [2, 3, 4, 5, 6, 9, 10])
def test_a_correction_holds_and_what_it_corrects_does_not(number: int, tmp_path: Path) -> None:
    experiment = CATALOGUE[f"chang2025/mistake{number}"]
    seen, minutes = measure(experiment, "smoke", runs=tmp_path, where=Where(at_once=1))
    row = ledger.row(experiment, "smoke", seen, seeds=experiment.scales["smoke"].seeds, minutes=minutes)
    assert row["kind"] == "remark"
    # Two seeds may leave one of its statements open, never all.
    assert row["verdict"] in (*HOLDS, "inconclusive")
    assert next(claim["verdict"] for claim in row["claims"] if claim["primary"]) == "reproduced"
    for claim in row["claims"]:
        if claim["corrects"]:
            assert claim["verdict"] != "contradicted", claim["name"]
        elif claim["name"] not in TRUE_OF_THE_PAPER:
            assert claim["verdict"] not in HOLDS, claim["name"]


def test_gradients_of_a_solution_are_those_of_autograd() -> None:
    solution, x = feature_solution(2, dim=4), cube(torch.Generator().manual_seed(0), num=3, dim=4)
    weights = [t.clone().requires_grad_(True) for t in (solution.w2_M, solution.w1_MD, solution.b_M)]
    for i, wanted in enumerate(gradients(solution, x)):
        f = (x[i] @ weights[1].mT + weights[2]).relu() @ weights[0]
        assert torch.allclose(torch.cat([g.flatten() for g in torch.autograd.grad(f, weights)]), wanted)


def test_normalised_sam_alternates_and_reversed_it_would_not() -> None:
    path = sam_path(1.0, lr=0.5, rho=0.3, start=1.0, steps=200)
    assert float(path[-1]) == pytest.approx(-float(path[-2]))
    assert abs(float(path[-1])) == pytest.approx(0.1)
    w = 1.0
    for _ in range(200):
        w -= 0.5 * (w - 0.3 * (1 if w > 0 else -1))
    assert w == pytest.approx(0.3)


def test_a_solution_without_all_of_its_sign_patterns_misses_just_those() -> None:
    whole = feature_solution(3, dim=5, width=10, r=1.0)
    corners = torch.cartesian_prod(*[torch.tensor([1.0, -1.0], dtype=torch.float64)] * 5)
    assert misfit(first_rows(whole, 8), corners) == 0
    assert misfit(first_rows(whole, 3), corners) == pytest.approx(100 * 5 / 8)


def test_the_moment_of_a_product_is_listed_over_all_draws() -> None:
    assert product_moment(torch.tensor([0.5, -1.0]), 2) == pytest.approx(((0.25 + 1) / 2) ** 2)
