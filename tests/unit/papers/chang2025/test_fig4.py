"""A shift whose direction the paper does not give."""

from evenly.papers.catalogue import CATALOGUE
from evenly.papers.verdict import judge


def test_a_direction_that_the_paper_does_not_give_is_its_claim_and_declared_afterwards() -> None:
    (claim,) = [claim for claim in CATALOGUE["chang2025/fig4"].claims if claim.name == "shift, contrast0.1"]
    assert claim.after
    assert not claim.corrects
    assert "no direction" in claim.note
    # Not positive by construction: runs that scatter about no shift decide nothing.
    still = {"contrast0.largest": dict.fromkeys(range(4), 5.0), "contrast0.1.largest": {0: 4.0, 1: 6.0, 2: 3.0, 3: 7.0}}
    assert judge(claim, still).verdict == "inconclusive"
