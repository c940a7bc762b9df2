"""Theorem 3.5: gradients by kind of patch, the factor of eq. 96, and the part of the difficult feature."""

from pathlib import Path
from typing import Any

import pytest
import torch

from evenly.data import load
from evenly.papers.experiment import Context
from evenly.papers.nguyen2024 import one_step_gradients
from evenly.papers.nguyen2024.feature_growth import gradient

HERE = Context(Path("unused"))


def patches(seed: int = 0, **options: Any) -> Any:
    return load("patches", seed=seed, num_train=80, num_test=2, orthogonal_noise=True, **options).train


def test_patches_by_kind_give_the_gradient_of_the_shuffled_ones() -> None:
    data = patches(beta_hard=0.4)
    setting = one_step_gradients._setting(data, 0.125)
    weight = 0.3 * torch.randn(4, 50, generator=torch.Generator().manual_seed(2)).double()
    x, y = data.gather(range(80)).double().flatten(0, 1)[None], (2.0 * data.labels - 1).double()[None]
    expected = gradient(weight[None], x, y)[0][0]
    torch.testing.assert_close(setting.gradient(weight, 0.4), expected, rtol=1e-4, atol=1e-7)


def test_the_factor_of_theorem_3_5_recovers_sams_ratio_and_others_do_not() -> None:
    for setting, weight in one_step_gradients._weights_at_moments(0, 0.4, 80, 1.0, 0.02, filters=1)[:2]:
        off, literal = one_step_gradients._with_one_filter(setting, weight, 0.4, 0.02)
        assert off < 0.02
        assert not literal
        sam, gd = (one_step_gradients._ratio(setting, setting.gradient(weight, 0.4, rho=rho)) for rho in (0.02, 0.0))
        assert sam / gd > 1.1  # so that a k of 1 would not do


def test_the_difficult_part_grows_with_its_strength_and_with_sam() -> None:
    found = one_step_gradients.gradient_statistics(
        HERE, seeds=[0, 1], name="b", beta_hard=0.4, num=80, lr=1.0, num_filters=6
    ).values
    for seed in (0, 1):
        assert found["b.sam"][seed] > found["b.gd"][seed]
        assert found["b.gd.stronger"][seed] > found["b.gd"][seed]
        assert found["b.cosine"][seed] < found["b.best"][seed] < 1.0
        distance, left = 1 - found["b.cosine"][seed], 1 - found["b.best"][seed]
        assert found["b.closed"][seed] == pytest.approx((distance - left) / distance)
