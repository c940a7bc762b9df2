"""Verdicts come by rule: the interval, the claimed side and the paper's effect decide, and nothing else."""

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from evenly.errors import UsageError
from evenly.papers.claim import Claim
from evenly.papers.verdict import HOLDS, VERDICTS, is_worse, judge

SEEDS = range(5)
A = {"a": {seed: 1.0 + 0.1 * seed for seed in SEEDS}}


def beside(*differences: float) -> dict[str, dict[int, float]]:
    """`b`, that much above `a` for each seed."""
    return A | {"b": {seed: A["a"][seed] + d for seed, d in zip(SEEDS, differences, strict=True)}}


def less(**more: object) -> Claim:
    return Claim("gap", "b is below a", "b < a", **more)  # type: ignore[arg-type]


def greater(**more: object) -> Claim:
    return Claim("gap", "b is above a", "b > a", **more)  # type: ignore[arg-type]


def around(mean: float, deviation: float, n: int, *, base: float = 5.0) -> dict[str, dict[int, float]]:
    """`b` beside `a` over n seeds, with exactly this mean and standard deviation of the differences."""
    raw = [(-1.0) ** k * (1 + k % 3) for k in range(n)]
    center = math.fsum(raw) / n
    spread = math.sqrt(math.fsum((r - center) ** 2 for r in raw) / (n - 1))
    differences = [mean + deviation * (r - center) / spread for r in raw]
    a = {seed: base + 0.3 * seed for seed in range(n)}
    return {"a": a, "b": {seed: a[seed] + d for seed, d in enumerate(differences)}}


def test_the_claimed_side_with_an_interval_that_excludes_zero_is_reproduced():
    assert judge(less(), beside(-0.5, -0.6, -0.4, -0.5, -0.5)).verdict == "reproduced"
    assert judge(greater(), beside(0.5, 0.6, 0.4, 0.5, 0.5)).verdict == "reproduced"


def test_an_interval_wholly_on_the_other_side_contradicts():
    assert judge(less(), beside(0.5, 0.6, 0.4, 0.5, 0.5)).verdict == "contradicted"
    assert judge(greater(), beside(-0.5, -0.6, -0.4, -0.5, -0.5)).verdict == "contradicted"


def test_an_interval_that_holds_zero_is_inconclusive_whatever_the_sign_of_its_mean():
    assert judge(less(), beside(-2.0, 1.0, -1.0, 0.5, -0.5)).verdict == "inconclusive"
    assert judge(less(), beside(2.0, -1.0, 1.0, -0.5, 0.5)).verdict == "inconclusive"


def test_an_interval_much_wider_than_the_effect_is_inconclusive_and_says_how_many_seeds_it_takes():
    # Nguyen's table 2 at a small size: ±1.0 around an effect of 0.28, with a mean of the wrong sign.
    claim = less(paper=4.79, paper_against=5.07, margin=0.14)
    outcome = judge(claim, around(0.0533, 0.405, 3))
    assert outcome.verdict == "inconclusive"
    assert outcome.effect == pytest.approx(-0.28)
    assert outcome.difference.half_width == pytest.approx(1.006, abs=1e-3)
    assert outcome.seeds_needed == 24


def test_a_smaller_effect_is_weaker_and_a_larger_one_stronger_than_claimed():
    claim = less(paper=4.0, paper_against=5.0, margin=0.25)
    assert judge(claim, around(-0.9, 0.1, 5)).verdict == "reproduced"
    assert judge(claim, around(-0.6, 0.1, 5)).verdict == "weaker than claimed"
    assert judge(claim, around(-1.6, 0.1, 5)).verdict == "stronger than claimed"
    # The side that is established stays so when even half of the effect is excluded.
    assert judge(claim, around(-0.2, 0.05, 5)).verdict == "weaker than claimed"
    up = greater(paper=5.0, paper_against=4.0, margin=0.25)
    assert judge(up, around(0.6, 0.1, 5)).verdict == "weaker than claimed"
    assert judge(up, around(1.6, 0.1, 5)).verdict == "stronger than claimed"


def test_a_size_is_only_called_other_than_claimed_if_the_interval_excludes_the_papers_effect():
    claim = less(paper=4.0, paper_against=5.0, margin=0.1)
    three = {"a": dict.fromkeys(range(3), 5.0), "b": {0: 4.0, 1: 4.5, 2: 4.1}}
    outcome = judge(claim, three)  # [−1.46, −0.14] around −0.8 holds the paper's −1
    assert outcome.difference.low < -1 < outcome.difference.high < 0
    assert (outcome.verdict, outcome.settled_if) == ("inconclusive", "measured")
    # The seeds that it names would exclude the paper's effect if the mean stays.
    assert (
        judge(claim, around(-0.8, outcome.difference.deviation, outcome.seeds_needed)).verdict == "weaker than claimed"
    )
    up = greater(paper=6.0, paper_against=5.0, margin=0.1)
    assert judge(up, around(1.3, 0.5, 5)).verdict == "inconclusive"
    assert judge(up, around(1.3, 0.1, 5)).verdict == "stronger than claimed"
    assert judge(up, around(1.05, 0.5, 5)).verdict == "reproduced"


def test_an_interval_around_zero_that_excludes_half_of_the_effect_contradicts():
    claim = less(paper=4.0, paper_against=5.0, margin=0.25)
    assert judge(claim, around(0.05, 0.1, 5)).verdict == "contradicted"
    assert judge(claim, around(0.05, 0.1, 5), levels=False).verdict == "inconclusive"
    assert judge(less(), around(0.05, 0.1, 5)).verdict == "inconclusive"


def test_no_difference_in_any_seed_contradicts_a_difference():
    # Chang and Khanna's criterion gives the same step size for every C, to the last digit.
    assert judge(less(), beside(0, 0, 0, 0, 0)).verdict == "contradicted"
    assert judge(greater(), beside(0, 0, 0, 0, 0)).verdict == "contradicted"


def test_pairing_counts_not_the_spread_between_seeds():
    far = {"a": {s: 100.0 * s for s in SEEDS}, "b": {s: 100.0 * s - 1 - 0.01 * s for s in SEEDS}}
    assert judge(less(), far).verdict == "reproduced"
    # Seeds are matched by number, not by place.
    turned = {"a": far["a"], "b": dict(reversed(far["b"].items()))}
    assert judge(less(), turned).difference == judge(less(), far).difference


def test_the_right_drop_from_another_level_is_remarked_on():
    claim = less(paper=4.79, paper_against=5.07, margin=0.1)
    assert judge(claim, around(-0.28, 0.01, 5, base=25.0)).same_level is False
    assert judge(claim, around(-0.28, 0.01, 5, base=5.0)).same_level is True
    assert judge(less(), around(-0.28, 0.01, 5)).same_level is None


def test_where_the_papers_numbers_cannot_be_compared_only_the_order_is_judged():
    far = less(paper=0.2, paper_against=1.2, margin=0.05)
    outcome = judge(far, beside(-0.5, -0.6, -0.4, -0.5, -0.5), levels=False)
    assert (outcome.verdict, outcome.effect, outcome.same_level) == ("reproduced", None, None)


def test_equal_means_that_the_whole_interval_is_within_the_margin():
    same = Claim("same", "b is a", "b = a ± 0.1")
    assert judge(same, beside(0.01, -0.02, 0.0, 0.01, 0.0)).verdict == "reproduced"
    assert judge(same, beside(0.3, -0.3, 0.2, -0.2, 0.0)).verdict == "inconclusive"
    assert judge(same, beside(0.3, 0.3, 0.2, 0.2, 0.3)).verdict == "contradicted"
    assert judge(same, beside(-0.3, -0.3, -0.2, -0.2, -0.3)).verdict == "contradicted"


def test_equality_that_the_interval_excludes_needs_the_seeds_of_the_measured_mean():
    same = Claim("same", "b is a", "b = a ± 5")
    # Springer's figure 7: 4.8 is nearly the margin, and no truth of 0 is left that 21 seeds would show.
    assert judge(same, around(4.77, 6.58, 10)).seeds_needed == 8602
    assert judge(same, around(7.5, 5.56, 10)).seeds_needed == 54
    # Where the interval holds 0, equality may be exact.
    assert judge(same, around(2.0, 6.58, 10)).seeds_needed == 25


def test_the_seeds_needed_settle_nine_of_ten_repetitions_if_what_is_assumed_is_true():
    rng = np.random.default_rng(0)
    equal, lower = Claim("same", "b is a", "b = a ± 5"), less(paper=4.5, paper_against=5.0, margin=0.2)
    for claim, found, truth in ((equal, around(2.0, 6.58, 10), 0.0), (lower, around(0.1, 0.9, 4), -0.5)):
        outcome = judge(claim, found)
        assert outcome.settled_if == "claimed"
        n, deviation = outcome.seeds_needed, outcome.difference.deviation
        drawn = rng.normal(truth, deviation, (20_000, n))
        half = scipy.stats.t.ppf(0.975, n - 1) * drawn.std(1, ddof=1) / math.sqrt(n)
        settled = np.abs(drawn.mean(1)) + half <= 5 if claim is equal else drawn.mean(1) + half < 0
        assert 0.89 < settled.mean() < 0.93


def test_an_assumption_is_named_with_the_seeds_that_rest_on_it():
    claim = less(paper=4.0, paper_against=5.0, margin=0.25)
    assert judge(claim, around(-0.5, 3.0, 5)).settled_if == "claimed"
    assert judge(claim, around(-0.5, 3.0, 5), levels=False).settled_if == "measured"
    assert judge(claim, around(-0.9, 0.1, 5)).settled_if is None


def test_as_many_seeds_as_were_run_do_not_settle_what_is_open():
    near = Claim("near", "b is a", "b = a ± 3822")
    assert judge(near, around(3800, 5684, 40)).seeds_needed is None
    claim = less(paper=4.0, paper_against=5.0, margin=0.25)
    # Nine seeds would see the paper's effect of 1, and twelve were run: to see half of it takes more.
    outcome = judge(claim, around(-0.5, 0.8, 12))
    assert (outcome.verdict, outcome.seeds_needed) == ("inconclusive", 29)


@given(st.floats(-2, 2), st.floats(0.01, 5), st.integers(2, 40), st.sampled_from("<>="))
def test_what_would_settle_a_claim_is_more_than_was_run(mean: float, deviation: float, n: int, sign: str):
    paper = {"paper": 5.5 if sign == ">" else 4.5, "paper_against": 5.0, "margin": 0.2}
    claim = Claim("c", "c", "b = a ± 0.2") if sign == "=" else Claim("c", "c", f"b {sign} a", **paper)
    outcome = judge(claim, around(mean, deviation, n))
    assert outcome.seeds_needed is None or outcome.seeds_needed > n


def test_one_seed_decides_nothing():
    one = {"a": {0: 1.0}, "b": {0: 0.1}}
    for claim in (less(), greater(), Claim("same", "b is a", "b = a ± 5")):
        outcome = judge(claim, one)
        assert (outcome.verdict, outcome.seeds_needed) == ("inconclusive", None)


def test_a_statement_about_every_seed_needs_two_to_hold_and_one_to_fail():
    every = Claim("every", "b is a", "b = a")
    assert judge(every, {"a": {0: 1.0}, "b": {0: 1.0}}).verdict == "inconclusive"
    assert judge(every, {"a": {0: 1.0, 1: 2.0}, "b": {0: 1.0, 1: 2.0}}).verdict == "reproduced"
    assert judge(every, {"a": {0: 1.0}, "b": {0: 1.1}}).verdict == "contradicted"


@pytest.mark.parametrize("margin", [-0.1, math.inf, math.nan])
def test_a_margin_that_is_none_is_refused_where_it_is_declared(margin: float):
    with pytest.raises(UsageError, match="margin"):
        less(paper=1.0, paper_against=2.0, margin=margin)


def test_a_number_can_be_what_is_compared_with():
    assert judge(Claim("gap", "a is above ½", "a > 0.5"), A).verdict == "reproduced"
    known = Claim("gap", "a − ½ is 3", "a > 0.5", paper=3.5, margin=0.5)
    assert judge(known, A).effect == 3.0
    assert judge(known, A).verdict == "weaker than claimed"


def test_seeds_that_do_not_match_are_refused():
    with pytest.raises(UsageError, match="equal seeds"):
        judge(less(), {"a": {0: 1.0, 1: 1.0}, "b": {0: 1.0}})


def test_what_was_not_measured_is_named_with_what_was():
    with pytest.raises(UsageError, match=r"'b', which was not measured.*a"):
        judge(less(), A)


def test_a_number_that_is_not_finite_is_no_evidence():
    with pytest.raises(UsageError, match="not finite for seed 3"):
        judge(less(), beside(0.0, 0.0, 0.0, float("nan"), 0.0))


def test_a_number_of_the_paper_without_its_reference_is_refused_where_it_is_declared():
    with pytest.raises(UsageError, match="number for 'a' is missing"):
        less(paper=1.0, margin=0.1)


@given(st.lists(st.floats(-10, 10), min_size=5, max_size=5))
def test_a_claim_and_its_opposite_never_both_hold(differences: list[float]):
    found = beside(*differences)
    down, up = judge(less(), found).verdict, judge(greater(), found).verdict
    assert not {down, up} <= HOLDS
    assert (down == "inconclusive") == (up == "inconclusive")


def test_verdicts_have_an_order():
    assert is_worse("inconclusive", "reproduced")
    assert is_worse("contradicted", "inconclusive")
    assert not is_worse("reproduced", "inconclusive")
    assert not is_worse("contradicted", "not run")
    assert not is_worse("stronger than claimed", "reproduced")
    assert set(VERDICTS) > HOLDS
