"""Verdicts come by rule: sign, interval and margin decide, and nothing else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenly.errors import UsageError
from evenly.papers.experiment import Claim
from evenly.papers.verdict import judged, overall, worse

SEEDS = range(5)
A = {"a": {seed: 1.0 + 0.1 * seed for seed in SEEDS}}


def beside(*differences: float) -> dict[str, dict[int, float]]:
    """`b`, that much above `a` for each seed."""
    return A | {"b": {seed: A["a"][seed] + d for seed, d in zip(SEEDS, differences, strict=True)}}


def less(**more: object) -> Claim:
    return Claim("gap", "b is below a", "b", "less", "a", **more)  # type: ignore[arg-type]


def test_the_claimed_sign_with_an_interval_that_excludes_zero_is_reproduced():
    assert judged(less(), beside(-0.5, -0.6, -0.4, -0.5, -0.5)).verdict == "reproduced"


def test_the_claimed_sign_with_zero_in_the_interval_is_only_the_direction():
    assert judged(less(), beside(-2.0, 1.0, -1.0, 0.5, -0.5)).verdict == "same direction only"


def test_the_other_sign_is_not_reproduced_however_sure_it_is():
    assert judged(less(), beside(0.5, 0.6, 0.4, 0.5, 0.5)).verdict == "not reproduced"
    up = Claim("gap", "b is above a", "b", "greater", "a")
    assert judged(up, beside(0.5, 0.6, 0.4, 0.5, 0.5)).verdict == "reproduced"


def test_no_difference_at_all_is_not_a_direction():
    assert judged(less(), beside(0, 0, 0, 0, 0)).verdict == "not reproduced"


def test_pairing_counts_not_the_spread_between_seeds():
    far = {"a": {s: 100.0 * s for s in SEEDS}, "b": {s: 100.0 * s - 1 - 0.01 * s for s in SEEDS}}
    assert judged(less(), far).verdict == "reproduced"
    # Seeds are matched by number, not by place.
    turned = {"a": far["a"], "b": dict(reversed(far["b"].items()))}
    assert judged(less(), turned).difference == judged(less(), far).difference


def test_a_number_of_the_paper_is_held_against_ours_by_its_margin():
    found = beside(-0.5, -0.6, -0.4, -0.5, -0.5)
    near, far = less(paper=0.7, paper_against=1.2, margin=0.05), less(paper=0.2, paper_against=1.2, margin=0.05)
    assert judged(near, found).verdict == "reproduced"
    assert judged(far, found).verdict == "same direction only"
    assert judged(far, found).within is False
    # Without the paper's reference, the value itself is held against it: b is 0.7 in the mean.
    assert judged(less(paper=0.7, margin=0.05), found).within is True


def test_the_right_drop_from_another_level_is_another_result():
    claim = less(paper=4.79, paper_against=5.07, margin=0.1)
    drop = {"a": {seed: 25.07 + 0.01 * seed for seed in SEEDS}, "b": {seed: 24.79 + 0.011 * seed for seed in SEEDS}}
    assert judged(claim, drop).verdict == "same direction only"
    near = {"a": {seed: 5.3 + 0.01 * seed for seed in SEEDS}, "b": {seed: 5.02 + 0.011 * seed for seed in SEEDS}}
    assert judged(claim, near).verdict == "reproduced"


def test_at_another_size_than_the_papers_only_the_order_is_judged():
    far = less(paper=0.2, paper_against=1.2, margin=0.05)
    outcome = judged(far, beside(-0.5, -0.6, -0.4, -0.5, -0.5), levels=False)
    assert (outcome.verdict, outcome.within) == ("reproduced", None)


def test_equal_means_that_the_whole_interval_is_within_the_margin():
    same = Claim("same", "b is a", "b", "equal", "a", margin=0.1)
    assert judged(same, beside(0.01, -0.02, 0.0, 0.01, 0.0)).verdict == "reproduced"
    assert judged(same, beside(0.3, -0.3, 0.2, -0.2, 0.0)).verdict == "same direction only"
    assert judged(same, beside(0.3, 0.3, 0.2, 0.2, 0.3)).verdict == "not reproduced"


def test_one_seed_never_reproduces_anything():
    one = {"a": {0: 1.0}, "b": {0: 0.1}}
    assert judged(less(), one).verdict == "same direction only"
    assert judged(Claim("same", "b is a", "b", "equal", "a", margin=5.0), one).verdict == "same direction only"


def test_a_number_can_be_what_is_compared_with():
    assert judged(Claim("gap", "a is above ½", "a", "greater", 0.5), A).verdict == "reproduced"


def test_seeds_that_do_not_match_are_refused():
    with pytest.raises(UsageError, match="equal seeds"):
        judged(less(), {"a": {0: 1.0, 1: 1.0}, "b": {0: 1.0}})


def test_what_was_not_measured_is_named_with_what_was():
    with pytest.raises(UsageError, match=r"'b', which was not measured.*a"):
        judged(less(), A)


def test_a_number_that_is_not_finite_is_no_evidence():
    with pytest.raises(UsageError, match="not finite for seed 3"):
        judged(less(), beside(0.0, 0.0, 0.0, float("nan"), 0.0))


@given(st.lists(st.floats(-10, 10), min_size=5, max_size=5))
def test_a_claim_and_its_opposite_are_never_both_held_up(differences: list[float]):
    found = beside(*differences)
    down, up = judged(less(), found).verdict, judged(Claim("gap", "", "b", "greater", "a"), found).verdict
    assert "not reproduced" in (down, up)


def test_an_experiment_is_as_good_as_its_worst_claim_and_corrections_are_apart():
    good = judged(less(), beside(-0.5, -0.6, -0.4, -0.5, -0.5))
    bad = judged(Claim("up", "", "b", "greater", "a"), beside(-0.5, -0.6, -0.4, -0.5, -0.5))
    ours = judged(Claim("ours", "", "b", "greater", "a", corrects=True), beside(-0.5, -0.6, -0.4, -0.5, -0.5))
    assert overall([good]) == "reproduced"
    assert overall([good, ours]) == "reproduced"
    assert overall([good, bad]) == "not reproduced"


def test_verdicts_have_an_order():
    assert worse("same direction only", "reproduced")
    assert not worse("reproduced", "same direction only")
    assert not worse("not reproduced", "not run")
