"""A claim reads its relation, and refuses one that says too little."""

from typing import Any

import pytest

from evenly.errors import UsageError
from evenly.papers.claim import Claim


@pytest.mark.parametrize(
    ("relation", "expected"),
    [
        ("sam.gap < gd.gap", ("sam.gap", "less", "gd.gap", None)),
        ("batch 128.useful.error > 0", ("batch 128.useful.error", "greater", 0.0, None)),
        ("lr=0.1.rho=0.05.error = 133.9 ± 40.2", ("lr=0.1.rho=0.05.error", "equal", 133.9, 40.2)),
        ("error = 0 ± 1e-9", ("error", "equal", 0.0, 1e-9)),
        ("share = -0.5", ("share", "equal", -0.5, 0.0)),
    ],
)
def test_a_relation_names_two_sides_a_direction_and_a_margin(relation: str, expected: tuple[Any, ...]):
    claim = Claim("name", "says", relation)
    assert (claim.value, claim.direction, claim.against, claim.margin) == expected


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"relation": "a is below b"}, "write a < b, a > b or a = b ± margin, not 'a is below b'"),
        ({"relation": "a < b ± 0.1"}, "± belongs to a = b"),
        ({"relation": "a < b", "paper": 1.0}, "needs a margin"),
        ({"relation": "a < b", "paper": 1.0, "margin": 0.1}, "the paper's number for 'b' is missing"),
    ],
)
def test_an_incomplete_claim_is_refused_when_it_is_declared(wrong: dict[str, Any], message: str):
    with pytest.raises(UsageError, match=message):
        Claim("name", "says", **wrong)
