"""What the figures about LSAM's mechanism measure, on cases whose answer is known."""

from itertools import pairwise
from pathlib import Path

import pytest
import torch

from evenly.diagnostics import gini
from evenly.errors import UsageError
from evenly.papers.experiment import Context
from evenly.papers.springer2024 import (
    closed_forms,
    phantom_ratios,
    phantom_weights,
    ratio_gaps,
    spiral_probing,
)
from evenly.papers.springer2024.appendix_d import APPENDIX_D
from evenly.papers.springer2024.names import at

HERE = Context(Path("unused"))
SIZES = {"num_train": 20, "num_test": 40, "width": 8}


def test_layer_sums_are_the_squared_norm_of_the_gradient():
    rng = torch.Generator().manual_seed(0)
    v, weights = torch.randn(3, generator=rng), [torch.randn(3, 3, generator=rng), torch.randn(3, 2, generator=rng)]
    x = torch.randn(7, 2, generator=rng)
    for relu in (False, True):
        exact = closed_forms.by_autograd(v, weights, x, relu=relu)
        torch.testing.assert_close(closed_forms.layer_sum(v, weights, x, relu=relu), exact)


def test_the_gradient_of_a_two_layer_linear_network_is_as_worked_out_by_hand():
    v, w, x = torch.tensor([3.0, 4.0]), torch.tensor([[1.0, 0.0], [0.0, 2.0]]), torch.tensor([[2.0, 1.0]])
    # ‖Wx‖² + ‖v‖²‖x‖² = (4 + 4) + 25·5
    assert closed_forms.by_autograd(v, [w], x, relu=False).item() == pytest.approx(133.0)


def test_the_printed_formulas_of_appendix_d_are_wrong_and_the_mended_ones_right():
    found = closed_forms.norms(HERE, seeds=[0, 1], layers=3).values
    for seed in (0, 1):
        assert found["two_layer.printed"][seed] > 1e-2
        assert found["relu.printed"][seed] > 1e-2
        for name in ("two_layer.squared", "linear", "relu"):
            assert found[name][seed] < 1e-10


def test_the_importance_that_badly_fitted_examples_hold_depends_on_the_sign_of_the_contribution():
    weights, contribution = torch.tensor([4.0, 3.0, 2.0, 1.0]), torch.tensor([-2.0, -1.0, 1.0, 2.0])
    assert phantom_weights.held_by_poor(weights, contribution) == pytest.approx(0.7)
    assert phantom_weights.held_by_poor(weights, -contribution) == pytest.approx(0.3)


def test_importance_is_measured_at_every_epoch_asked_for_and_drawn_as_lorenz_curves():
    found = phantom_weights.weighted(HERE, seeds=[0, 1], chi=360.0, rho=0.5, at_epochs=[1, 3], sizes=SIZES)
    for epoch in (1, 3):
        for kind in ("real", "phantom"):
            name = f"{at(epoch=epoch)}.lsam.{kind}"
            curve = found.series[name]["lorenz"]
            assert curve[0] == 0.0
            assert curve[-1] == 1.0
            assert curve == sorted(curve)
            # Twice the area between diagonal and curve is the Gini index; the drawn one is the mean over seeds.
            area = 1 - 2 * sum((a + b) / 2 for a, b in pairwise(curve)) / (len(curve) - 1)
            mean = sum(found.values[f"{name}_gini"].values()) / 2
            assert area == pytest.approx(mean, abs=0.03)
    assert gini(torch.ones(5)) == 0.0


def test_ratios_of_sgd_are_those_of_its_real_weights_and_a_phantom_differs():
    found = phantom_ratios.ratios(HERE, seeds=[0], chi=360.0, rhos=[0.0, 0.5], epochs=2, sizes=SIZES).values
    plain, moved = at(chi=360, rho=0), at(chi=360, rho=0.5)
    assert found[f"{plain}.phantom"][0] == pytest.approx(found[f"{plain}.real"][0], abs=2e-3)
    assert abs(found[f"{moved}.phantom"][0] - found[f"{moved}.real"][0]) > 1e-3


def test_the_shares_of_a_histogram_sum_to_one_with_what_lies_outside_its_edges():
    values = torch.tensor([-50.0, 0.05, 0.05, 1.0, 90.0])
    shares = phantom_ratios._histogram(values)
    assert sum(shares) == pytest.approx(1.0)
    assert shares[0] == pytest.approx(0.2)
    assert shares[-1] == pytest.approx(0.2)


def test_interventions_are_compared_with_lsam_at_its_own_ratio():
    given = {"seeds": [0], "chi": 360.0, "rhos": [0.0, 0.5], "stars": [0.5, 2.0], "epochs": 2, "sizes": SIZES}
    found = phantom_ratios.compared(HERE, **given).values
    found = found | ratio_gaps.gaps(found)
    low, high = found["both.star=0.5.hard"][0], found["both.star=2.hard"][0]
    ratio = min(max(found["lsam.rho=0.5.ratio"][0], 0.5), 2.0)
    there = low + (high - low) * (ratio - 0.5) / 1.5
    assert found["both.rho=0.5.gap"][0] == pytest.approx(there - found["lsam.rho=0.5.hard"][0])
    assert found["rate.gain"][0] == pytest.approx(found["lsam.rho=0.hard"][0] - found["rate.star=2.hard"][0])


def test_gaps_of_opposite_signs_do_not_cancel_and_ratios_beyond_the_grid_are_counted():
    values = {f"{effect}.star={star}.hard": {0: 10.0} for effect in ratio_gaps.EFFECTS for star in (0.5, 2)}
    for rho, ratio, hard in ((0, 0.7, 30.0), (1, 1.0, 4.0), (2, 3.0, 16.0)):
        values |= {f"lsam.rho={rho}.ratio": {0: ratio}, f"lsam.rho={rho}.hard": {0: hard}}
    found = ratio_gaps.gaps(values)
    assert (found["both.rho=1.gap"][0], found["both.rho=2.gap"][0]) == (6.0, -6.0)
    assert found["both.gap"][0] == 6.0
    assert (found["rho=1.clamped"][0], found["rho=2.clamped"][0], found["clamped"][0]) == (0.0, 1.0, 1.0)


def test_where_no_example_is_fitted_its_error_is_not_zero_but_refused():
    with pytest.raises(UsageError, match="seed 0: after 1 epochs no example"):
        closed_forms.foretold(HERE, seeds=[0], chi=360.0, rho=0.01, epochs=1, sizes=SIZES)


def test_appendix_d_measures_fitted_examples_even_at_smoke():
    scale = APPENDIX_D.scales["smoke"]
    part = next(part for part in APPENDIX_D.parts("smoke") if part.name == "foretold")
    found = part.function()(HERE, **part.arguments).values
    for seed in scale.seeds:
        assert found["fitted"][seed] > 0.5
        assert 0 < found["sam.error_fitted"][seed] < 0.02


def test_levels_of_noise_are_kept_and_averaged():
    found = spiral_probing.errors(
        HERE,
        seeds=[0, 1],
        under="label.hard",
        chi=360.0,
        rhos=[0.0, 1.0],
        epochs=1,
        levels=[0.1, 0.4],
        kind="label",
        noise_on="hard",
        sizes=SIZES,
    ).values
    for seed in (0, 1):
        each = [found[f"label.hard.level={level}.rho=1.hard"][seed] for level in (0.1, 0.4)]
        assert found["label.hard.rho=1.hard"][seed] == pytest.approx(sum(each) / 2)
        assert found["label.hard.gain"][seed] == pytest.approx(
            found["label.hard.rho=0.hard"][seed] - found["label.hard.rho=1.hard"][seed]
        )


def test_a_fitted_threshold_reads_what_zero_misreads():
    phi = torch.linspace(-1, 1, 200)
    sign = torch.where(phi > 0.5, 1.0, -1.0)
    mixed = torch.randperm(200, generator=torch.Generator().manual_seed(0))
    assert spiral_probing.fitted(phi[mixed], sign[mixed], seed=0) < 0.1
    assert (phi * sign <= 0).float().mean() > 0.2
