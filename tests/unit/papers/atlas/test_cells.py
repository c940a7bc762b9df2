"""Cells of the atlas: paired differences, Holm's correction over all of them, and words that follow."""

import numpy as np
import pytest
from scipy import stats

from evenly.intervals import holm, interval
from evenly.papers.atlas.cells import cells
from evenly.papers.atlas.cures import CURES
from evenly.papers.atlas.tasks import ERRORS

SEEDS = range(20, 30)


def row(key: str, effects: dict[str, float], *, spread: float = 0.5, features: dict[str, float] | None = None) -> dict:
    """A row in which each cure changes the balanced error by its effect, and the others by nothing."""
    rng = np.random.default_rng(int(key.rpartition("-")[2]))
    quantities: dict[str, dict[str, float]] = {}
    for error in ERRORS:
        plain = rng.normal(40, 5, len(SEEDS))
        for cure in CURES:
            own = plain + (effects.get(cure, 0.0) if error == "balanced" else 0.0)
            own = own if cure == "plain" else own + rng.normal(0, spread, len(SEEDS))
            quantities[f"{cure}.{error}"] = dict(zip(map(str, SEEDS), own.tolist(), strict=True))
            quantities[f"{cure}.cost"] = {str(seed): CURES[cure].cost(0.1) for seed in SEEDS}
    for name, value in (features or {}).items():
        quantities[f"early.{name}"] = {str(seed): value for seed in SEEDS}
    return {"key": key, "quantities": quantities}


def test_a_large_effect_helps_and_harm_is_called_harm():
    made = {(cell.cure, cell.error): cell for cell in cells([row("atlas/lacking-1", {"useful8": -8.0, "jtt": 9.0})])}
    assert made["useful8", "balanced"].verdict == "helps"
    assert made["jtt", "balanced"].verdict == "harms"
    assert made["useful8", "balanced"].difference.mean == pytest.approx(-8, abs=1)
    assert made["sam", "test"].cost == 2.0


def test_what_does_not_survive_the_correction_only_may_help():
    """Of 400 cells without any effect 5% exclude zero; none of them may be called certain."""
    made = cells([row(f"atlas/noisy-{number}", {}) for number in range(8)])
    outside = [cell for cell in made if cell.difference.excludes_zero]
    assert 0.01 < len(outside) / len(made) < 0.12
    assert all(cell.verdict in ("may help", "may harm") for cell in outside)


def test_p_values_and_holm_are_those_of_scipy():
    values = [0.3, -0.1, 0.7, 0.2]
    assert interval(values).p_value == pytest.approx(stats.ttest_1samp(values, 0).pvalue, rel=1e-9)
    rng = np.random.default_rng(0)
    p = rng.uniform(0, 0.05, 30)
    order = np.argsort(p)
    adjusted = np.maximum.accumulate(np.minimum(1, p[order] * np.arange(30, 0, -1)))
    expected = np.empty(30, bool)
    expected[order] = adjusted <= 0.05
    assert holm(p.tolist()) == expected.tolist()


def test_the_effect_that_could_be_seen_is_seen_nine_times_out_of_ten():
    """Drawn again and again with that true effect, the interval of ten seeds excludes zero in about 90%."""
    cell = next(iter(cells([row("atlas/lacking-3", {})])))
    rng = np.random.default_rng(0)
    drawn = rng.normal(cell.detectable, cell.difference.deviation, (4000, 10))
    assert np.mean(stats.ttest_1samp(drawn, 0, axis=1).pvalue < 0.05) == pytest.approx(0.9, abs=0.02)
