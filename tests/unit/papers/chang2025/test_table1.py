"""Every row of table 1 is a claim."""

from evenly.papers.catalogue import CATALOGUE
from evenly.papers.chang2025.table1 import PAPER


def test_every_number_of_the_table_is_declared_and_what_was_added_later_says_so() -> None:
    claims = [claim for claim in CATALOGUE["chang2025/table1"].claims if not claim.corrects]
    stated = {(claim.value, claim.paper) for claim in claims}
    for number, method in enumerate(("sam0.01", "sam0.05", "sam0.1"), start=1):
        for quantity, numbers in PAPER.items():
            assert (f"{method}.{quantity}", numbers[number]) in stated
    assert {claim.value.rpartition(".")[0] for claim in claims if claim.after} == {"sam0.01", "sam0.05"}
    assert CATALOGUE["chang2025/table1"].primary_claims[0].value == "sam0.1.sigma_printed"


def test_the_rank_that_rises_in_the_table_is_not_claimed_to_fall() -> None:
    (claim,) = [c for c in CATALOGUE["chang2025/table1"].claims if c.value == "sam0.01.rank"]
    assert (claim.direction, claim.paper, claim.paper_against) == ("equal", 6.2, 6.17)
