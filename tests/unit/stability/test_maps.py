"""Figure 1's map: its closed lines are the general ones, and its fast simulation is the plain one in law."""

import pytest
import torch

from evenly.stability import (
    coherence,
    lyapunov_exponent,
    mean_square_threshold,
    overlapping_set,
    simulate,
    stability_map,
)
from evenly.stability.criteria import chang_theorem_3_2, dexter_theorem_1
from evenly.stability.divergence import has_diverged
from evenly.stability.map_lines import Family, criterion_lr, exponent, mean_square_lr
from evenly.stability.maps import MapMethod, StabilityMap, _norms


@pytest.fixture(scope="module")
def figure() -> StabilityMap:
    return stability_map(
        rng=torch.Generator().manual_seed(0),
        batches=range(2, 50, 6),
        sigmas=range(1, 51, 7),
        rho_over_alpha=(0.05, 0.25),
    )


@pytest.mark.parametrize("ratio", [0.0, 0.25])
def test_lines_of_the_map_are_the_general_functions_on_its_sets(ratio: float) -> None:
    family = Family((3, 10, 20), (1, 5, 20), 20, 2.0, 0.5)
    square, rates, published = (f(family, ratio) for f in (mean_square_lr, exponent, criterion_lr))
    for i, batch in enumerate(family.batches[:2]):
        for j, sigma in enumerate(family.sigmas):
            problem = overlapping_set(sigma, num_examples=20)
            assert coherence(problem).sigma == pytest.approx(sigma)
            assert float(square[i, j]) == pytest.approx(
                mean_square_threshold(problem, batch=batch, rho_over_alpha=ratio), rel=1e-12
            )
            general = lyapunov_exponent(problem, lr=0.5, batch=batch, rho_over_alpha=ratio).value
            assert float(rates[i, j]) == pytest.approx(general, rel=1e-9)
            criterion = (
                chang_theorem_3_2(problem, batch=batch, rho_over_alpha=ratio)
                if ratio
                else dexter_theorem_1(problem, batch=batch)
            )
            assert float(published[i, j]) == pytest.approx(criterion.lr, rel=1e-12)


@pytest.mark.parametrize(
    "method", [MapMethod("SGD"), MapMethod("random", noise=0.3), MapMethod("SAM", rho_over_alpha=0.25)]
)
@pytest.mark.parametrize(("batch", "sigma"), [(2, 4), (5, 8), (8, 2)])
def test_fast_simulation_has_the_law_of_the_plain_one(method: MapMethod, batch: int, sigma: int) -> None:
    """Two-sample Kolmogorov–Smirnov on log‖w_T‖ at half-time and at the end."""
    steps, repeats = 30, 1500
    family = Family((batch,), (sigma,), 12, 2.0, 0.5)
    start, half, end = _norms(family, [method], steps=steps, repeats=repeats, rng=torch.Generator().manual_seed(1))
    runs = simulate(
        overlapping_set(sigma, num_examples=12), lr=0.5, batch=batch, rho_over_alpha=method.rho_over_alpha,
        noise=method.noise, steps=steps, repeats=repeats, rng=torch.Generator().manual_seed(2),
    )  # fmt: skip
    for moment, fast in enumerate((half, end)):
        a, b = (fast - start)[0, 0, 0].sort().values, runs.log_growth_LKT[0, :, moment].sort().values
        both = torch.cat([a, b])
        gap = (torch.searchsorted(a, both, right=True) - torch.searchsorted(b, both, right=True)).abs().max()
        assert float(gap) / repeats < 1.95 * (2 / repeats) ** 0.5  # passed by chance once in 1,000


def test_simulation_follows_the_almost_sure_line_and_not_the_mean_square_one(figure: StabilityMap) -> None:
    """Figure 1 shows E log|J| = 0; cells near the blind spot log(1000)/1000 of the paper's rule are left out."""
    clear = figure.exponent.abs() > 0.02
    assert (figure.diverged == (figure.exponent > 0))[clear].all()
    between = (figure.mean_square_lr < figure.lr) & (figure.exponent < -0.02)
    assert between.sum() >= 5
    assert not figure.diverged[between].any()


def test_random_perturbation_diverges_where_sgd_does_and_sam_where_sgd_does_and_more(figure: StabilityMap) -> None:
    sgd, noisy, little, much = figure.diverged
    assert (sgd != noisy).double().mean() < 0.05
    assert (figure.mean_square_lr[2] < figure.mean_square_lr[0]).all()
    assert (figure.mean_square_lr[3] < figure.mean_square_lr[2]).all()
    assert sgd.sum() <= little.sum() <= much.sum()


def test_rates_with_errors_do_not_contradict_the_exponent(figure: StabilityMap) -> None:
    homogeneous = [0, 2, 3]
    error = 5 * figure.growth.standard_error
    diverges, vanishes = figure.growth.rate > error, figure.growth.rate < -error
    unstable = figure.exponent[homogeneous] > 0
    assert not (diverges[homogeneous] & ~unstable).any()
    assert not (vanishes[homogeneous] & unstable).any()
    assert (diverges | vanishes)[homogeneous].double().mean() > 0.9
    assert not vanishes[1].any()  # with noise of its own nothing vanishes


def test_the_paper_s_rule_asks_for_more_than_half_of_the_runs() -> None:
    grown = torch.tensor([[7.0, 7.0, 7.0, 0.0], [7.0, 7.0, 0.0, 0.0], [6.9, 6.9, 6.9, 6.9]])  # log 1000 = 6.908
    assert has_diverged(grown).tolist() == [True, False, False]


def test_settings_share_their_batches_and_do_not_disturb_each_other() -> None:
    problem = overlapping_set(3, num_examples=8)
    together = simulate(problem, lr=[0.1, 0.4], batch=[2, 5], rng=torch.Generator().manual_seed(3), steps=20, repeats=3)
    alone = simulate(problem, lr=0.4, batch=5, rng=torch.Generator().manual_seed(3), steps=20, repeats=3)
    assert torch.allclose(together.log_growth_LKT[1], alone.log_growth_LKT[0])


def test_runs_beyond_the_range_of_floats_are_counted_in_logarithms() -> None:
    problem = overlapping_set(3, num_examples=8)
    runs = simulate(problem, lr=50.0, batch=4, noise=[0.0, 0.1], rng=torch.Generator().manual_seed(4), steps=1000)
    assert torch.isfinite(runs.log_growth_LKT).all()
    assert (runs.log_growth_LKT[..., -1] > 1000).all()
