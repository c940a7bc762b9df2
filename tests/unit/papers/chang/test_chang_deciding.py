"""One set refutes a statement about every set, whatever the mean over sets is; and every quantity is a number."""

from collections.abc import Callable

import pytest
import torch

from evenly.papers.chang2025 import EXPERIMENTS
from evenly.papers.chang2025.deciding import decimal_log, worst_share
from evenly.papers.chang2025.learning_parity import found, line
from evenly.papers.chang2025.threshold_checks import ordered, perturbed, tight
from evenly.papers.verdict import judge

BY_KEY = {each.key: each for each in EXPERIMENTS}
SETS = 100
HELD: dict[str, tuple[Callable[..., dict[str, float]], dict[str, float]]] = {
    "3.1": (perturbed, {"criterion_over_exact": 1.3, "ratio": 1.02, "random": -1.7, "sgd": -20.0, "drift": 1e-5}),
    "3.2": (ordered, {"theorem": 2.0, "own": 1.5, "exact": 1.0, "sgd": 1.4}),
    "3.3": (tight, {"below": 0.96, "at": 1.0, "above": 1.04, "exact_over_stated": 1.0}),
}
BROKEN = [
    ("3.1", "criterion", {"criterion_over_exact": 0.99}),
    ("3.1", "bounded", {"ratio": 0.85}),
    ("3.1", "hovers", {"sgd": -1.5}),
    ("3.1", "speed", {"drift": -0.02}),
    ("3.2", "criterion", {"theorem": 0.99, "own": 0.98}),
    ("3.2", "stricter", {"sgd": 0.99}),
    ("3.2", "own coordinates", {"own": 2.1}),
    ("3.2", "own is true", {"own": 0.99}),
    ("3.3", "at", {"at": 1 + 1e-7}),
    ("3.3", "below", {"below": 1.001}),
    ("3.3", "above", {"above": 0.999}),
    ("3.3", "exact", {"exact_over_stated": 1 - 1e-7}),
]


def gathered(sets: list[dict[str, float]]) -> dict[str, dict[int, float]]:
    return {name: {seed: each[name] for seed, each in enumerate(sets)} for name in sets[0]}


@pytest.mark.parametrize("theorem", list(HELD))
def test_a_theorem_that_holds_in_every_set_is_reproduced(theorem: str) -> None:
    of, numbers = HELD[theorem]
    seen = gathered([of(**numbers)] * SETS)
    claims = BY_KEY[f"chang2025/theorem{theorem}"].claims
    assert {judge(claim, seen).verdict for claim in claims if not claim.corrects} == {"reproduced"}


@pytest.mark.parametrize(("theorem", "name", "violation"), BROKEN)
def test_one_set_of_a_hundred_refutes_a_theorem(theorem: str, name: str, violation: dict[str, float]) -> None:
    of, numbers = HELD[theorem]
    seen = gathered([of(**numbers)] * (SETS - 1) + [of(**numbers | violation)])
    verdicts = {claim.name: judge(claim, seen).verdict for claim in BY_KEY[f"chang2025/theorem{theorem}"].claims}
    assert verdicts[name] == "contradicted"


def test_equality_is_no_violation_of_a_criterion() -> None:
    assert ordered(theorem=1.0, own=0.5, exact=1.0, sgd=2.0)["criterion.violated"] == 0


def test_a_bound_that_fails_at_one_n_and_c_alone_is_refuted() -> None:
    good, bad = [False] * 10, [True] * 5 + [False] * 5
    cells = [good] * 11 + [bad]
    assert 100 * sum(map(sum, cells)) / 120 < 5  # together they would pass
    claim = next(claim for claim in BY_KEY["chang2025/theorem3.5"].claims if claim.name == "bound")
    assert judge(claim, {"broken": dict.fromkeys(range(20), worst_share(cells))}).verdict == "contradicted"
    assert judge(claim, {"broken": dict.fromkeys(range(20), worst_share([good] * 12))}).verdict == "reproduced"


def test_a_direction_that_the_paper_does_not_give_is_its_claim_and_declared_afterwards() -> None:
    claim = next(claim for claim in BY_KEY["chang2025/fig4"].claims if claim.name == "shift, contrast0.1")
    assert claim.after
    assert not claim.corrects
    assert "no direction" in claim.note
    # Not positive by construction: runs that scatter about no shift decide nothing.
    still = {"contrast0.largest": dict.fromkeys(range(4), 5.0), "contrast0.1.largest": {0: 4.0, 1: 6.0, 2: 3.0, 3: 7.0}}
    assert judge(claim, still).verdict == "inconclusive"


def test_a_logarithm_is_a_number_for_whatever_a_run_ends_at() -> None:
    ends = torch.tensor([0.0, 1e-40, 1e-3, 1e40, float("inf"), float("nan")], dtype=torch.float64)
    assert decimal_log(ends).tolist() == pytest.approx([-30, -30, -3, 30, 30, 30])


def test_a_run_without_an_active_unit_from_the_start_is_lost_and_its_numbers_are_finite() -> None:
    nan = float("nan")
    tracks = dict.fromkeys(("sigma", "sigma_printed", "lambda_max_s_printed"), torch.tensor([[nan], [nan]]))
    seen = found([("a", 0)], tracks | {"largest": torch.zeros(2, 1)})
    assert seen.values["a.lost"] == {0: 100.0}
    assert all(torch.tensor(list(by.values())).isfinite().all() for by in seen.values.values())


def test_a_line_through_huge_numbers_does_not_overflow() -> None:
    huge = torch.tensor([1e180, 2e180, 3e180], dtype=torch.float64)
    assert line(huge, 2 * huge) == pytest.approx(1)
    assert line(huge, torch.ones(3, dtype=torch.float64)) == 0
