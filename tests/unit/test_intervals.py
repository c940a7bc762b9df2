"""Power and the number of seeds, against simulation and statsmodels-free closed forms."""

import math
from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from evenly.intervals import holm, interval, num_seeds, power


@pytest.mark.parametrize(("effect", "deviation", "n"), [(0.28, 0.405, 3), (1.0, 1.0, 8), (0.5, 0.2, 4)])
def test_power_is_the_share_of_simulated_intervals_that_exclude_zero_on_the_right_side(effect, deviation, n):
    draws = np.random.default_rng(0).normal(effect, deviation, size=(200_000, n))
    half = stats.t.ppf(0.975, n - 1) * draws.std(axis=1, ddof=1) / math.sqrt(n)
    share = float((draws.mean(axis=1) - half > 0).mean())
    assert power(effect, deviation, n) == pytest.approx(share, abs=4e-3)


def test_power_is_the_tail_of_the_noncentral_t_distribution():
    for n in (2, 5, 30):
        expected = stats.nct.sf(stats.t.ppf(0.975, n - 1), n - 1, 0.7 * math.sqrt(n) / 1.3)
        assert power(0.7, 1.3, n) == pytest.approx(expected, abs=1e-9)


def test_the_number_of_seeds_is_the_first_with_the_power_that_is_wanted():
    for effect, deviation in ((0.28, 0.405), (0.28, 0.2), (1.0, 1.0)):
        n = num_seeds(effect, deviation)
        assert power(effect, deviation, n) >= 0.9 > power(effect, deviation, n - 1)


def test_the_sign_of_the_effect_does_not_matter_and_none_is_never_settled():
    assert num_seeds(-0.3, 0.4) == num_seeds(0.3, 0.4)
    assert num_seeds(0.0, 1.0) is None
    assert num_seeds(1e-9, 1.0) is None
    assert num_seeds(0.033, 1.0) == 9651  # up to 10,000 seeds, not up to a power of 2 below
    assert num_seeds(0.032, 1.0) is None
    assert num_seeds(1.0, float("nan")) is None


def test_an_interval_knows_the_deviation_it_was_made_of():
    values = [1.0, 4.0, 2.5, -3.0]
    assert interval(values).deviation == pytest.approx(float(np.std(values, ddof=1)), rel=1e-12)
    assert math.isnan(interval([1.0]).deviation)


def by_closed_testing(p_values, level=0.95):
    """A test rejects if Bonferroni's test rejects in every family that contains it (Marcus et al., 1976)."""
    families = [each for size in range(1, len(p_values) + 1) for each in combinations(range(len(p_values)), size)]
    rejecting = {each for each in families if min(p_values[i] for i in each) <= (1 - level) / len(each)}
    return [all(each in rejecting for each in families if i in each) for i in range(len(p_values))]


@pytest.mark.parametrize("missing", [0, 1, 3])
def test_holm_is_the_closed_test_and_a_missing_p_value_is_one_that_says_nothing(missing):
    rng = np.random.default_rng(missing)
    for _ in range(50):
        known = list(rng.uniform(size=6 - missing) ** 4)
        places = rng.permutation(6)
        given, as_ones = ([([*known, *[fill] * missing])[i] for i in places] for fill in (math.nan, 1.0))
        assert holm(given) == by_closed_testing(as_ones)


def test_equal_values_have_the_p_value_of_the_sign_test():
    from scipy.stats import binomtest

    for num in (2, 3, 10):
        values = [(k + 1) / 287 - k / 287 for k in range(num)]  # equal up to rounding
        assert interval(values).p_value == binomtest(num, num).pvalue
    assert interval([0.0, 0.0, 0.0]).p_value == 1
