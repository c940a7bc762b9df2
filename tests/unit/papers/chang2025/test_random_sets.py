"""One set refutes a statement about every set, whatever the mean over sets is."""

from collections.abc import Callable

import pytest

from evenly.papers.catalogue import CATALOGUE
from evenly.papers.chang2025 import theorem3_1, theorem3_2, theorem3_3
from evenly.papers.verdict import judge

SETS = 100
HELD: dict[str, tuple[Callable[..., dict[str, float]], dict[str, float]]] = {
    "3.1": (
        theorem3_1.check,
        {"criterion_over_exact": 1.3, "ratio": 1.02, "random": -1.7, "sgd": -20.0, "drift": 1e-5},
    ),
    "3.2": (theorem3_2.check, {"theorem": 2.0, "own": 1.5, "converging": 0.2, "exact": 1.0, "sgd": 1.4}),
    "3.3": (theorem3_3.check, {"below": 0.96, "at": 1.0, "above": 1.04, "exact_over_stated": 1.0}),
}
BROKEN = [
    ("3.1", "criterion", {"criterion_over_exact": 0.99}),
    ("3.1", "bounded", {"ratio": 0.85}),
    ("3.1", "hovers", {"sgd": -1.5}),
    ("3.1", "speed", {"drift": -0.02}),
    ("3.2", "criterion", {"theorem": 0.99, "own": 0.98}),
    ("3.2", "stricter", {"sgd": 0.99}),
    ("3.2", "converges", {"converging": 1.01}),
    ("3.2", "own coordinates", {"own": 2.1}),
    ("3.2", "own is true", {"own": 0.99}),
    ("3.3", "at", {"at": 1 + 1e-7}),
    ("3.3", "below", {"below": 1.001}),
    ("3.3", "above", {"above": 0.999}),
    ("3.3", "exact", {"exact_over_stated": 1 - 1e-7}),
]


def gather(sets: list[dict[str, float]]) -> dict[str, dict[int, float]]:
    return {name: {seed: each[name] for seed, each in enumerate(sets)} for name in sets[0]}


@pytest.mark.parametrize("theorem", list(HELD))
def test_a_theorem_that_holds_in_every_set_is_reproduced(theorem: str) -> None:
    check, numbers = HELD[theorem]
    seen = gather([check(**numbers)] * SETS)
    claims = CATALOGUE[f"chang2025/theorem{theorem}"].claims
    assert {judge(claim, seen).verdict for claim in claims if not claim.corrects} == {"reproduced"}


@pytest.mark.parametrize(("theorem", "name", "violation"), BROKEN)
def test_one_set_of_a_hundred_refutes_a_theorem(theorem: str, name: str, violation: dict[str, float]) -> None:
    check, numbers = HELD[theorem]
    seen = gather([check(**numbers)] * (SETS - 1) + [check(**numbers | violation)])
    verdicts = {claim.name: judge(claim, seen).verdict for claim in CATALOGUE[f"chang2025/theorem{theorem}"].claims}
    assert verdicts[name] == "contradicted"


def test_equality_is_no_violation_of_a_criterion() -> None:
    numbers = theorem3_2.check(theorem=1.0, own=0.5, converging=1.0, exact=1.0, sgd=2.0)
    assert numbers["criterion.violated"] == numbers["converges.violated"] == 0
