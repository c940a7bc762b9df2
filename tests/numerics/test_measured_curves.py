"""What a page draws of a model, against closed forms and dense references: spectrum, trace, Lorenz curves, maps."""

import itertools
import json

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from evenly.curvature import hessian
from evenly.data import Labelled, Splits, load
from evenly.diagnostics import gini, importance, measure
from evenly.diagnostics.importance_map import contribution, importance_map, lorenz_curves
from evenly.diagnostics.probing_error import probing_errors
from evenly.diagnostics.trace import deflated_trace
from evenly.errors import DataError


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def network(*widths: int, seed: int = 0) -> nn.Sequential:
    rng = generator(seed)
    layers: list[nn.Module] = []
    for wide, narrow in itertools.pairwise(widths):
        layers += [nn.Linear(wide, narrow), nn.Tanh()]
    model = nn.Sequential(*layers[:-1])
    with torch.no_grad():
        for p in model.parameters():
            p.copy_((2 * torch.rand(p.shape, generator=rng) - 1) / p.shape[-1] ** 0.5)
    return model


def examples(num: int, dim: int, num_classes: int) -> tuple[Tensor, Tensor]:
    rng = generator(1)
    return torch.randn(num, dim, generator=rng), torch.randint(num_classes, (num,), generator=rng)


def test_the_density_is_that_of_the_dense_spectrum() -> None:
    model, data = network(6, 12, 3).double(), examples(60, 6, 3)
    data = (data[0].double(), data[1])
    found = measure(model, data, "density", rng=generator(), options={"density": {"probes": 30, "steps": 200}})
    values = torch.linalg.eigvalsh(hessian(model, data).dense()).numpy()
    grid, curve, width = np.array(found["density"]["grid"]), np.array(found["density"]["values"]), None
    width = found["density"]["width"]
    exact = np.exp(-0.5 * ((grid[:, None] - values) / width) ** 2).mean(1) / (width * np.sqrt(2 * np.pi))
    step = grid[1] - grid[0]
    assert curve.sum() * step == pytest.approx(1, abs=0.02)
    assert np.abs(curve - exact).sum() * step < 0.1  # of 2: the total variation of 30 random probes
    tail = found["tail"]
    assert tail["above"] == pytest.approx(values.max() / 10, rel=1e-3)
    assert tail["share"] == pytest.approx((values > tail["above"]).mean(), rel=0.3)
    assert tail["trace"] == pytest.approx(values[values > tail["above"]].sum(), rel=0.2)
    assert values.min() < 0
    assert tail["negative"] == pytest.approx(values[values < 0].sum(), rel=0.2)
    json.dumps(found, allow_nan=False)


def test_the_density_of_a_squared_loss_is_asked_for_by_name() -> None:
    model = nn.Linear(2, 1, bias=False)
    x = torch.tensor([[2.0, 0.0], [0.0, 4.0]])  # H = XᵀX/2 = diag(2, 8)
    found = measure(
        model, (x, torch.tensor([0, 1])), "density", rng=generator(), options={"density": {"loss": "squared"}}
    )
    assert found["tail"]["above"] == pytest.approx(0.8, rel=1e-4)
    assert found["tail"]["trace"] == pytest.approx(10, rel=1e-4)


def test_the_density_is_made_only_when_it_is_asked_for() -> None:
    assert "density" not in measure(network(4, 8, 2), load("spirals", num_train=40, num_test=200), rng=generator())


@pytest.mark.parametrize("seed", [1, 2])
def test_the_error_of_the_trace_is_honest_for_an_untrained_network(seed: int) -> None:
    model, data = network(8, 16, 16, 3, seed=seed).double(), examples(80, 8, 3)
    dense = hessian(model, (data[0].double(), data[1])).dense()

    class Dense:
        size, dtype, device = len(dense), dense.dtype, dense.device

        def __matmul__(self, v: Tensor) -> Tensor:
            return dense @ v

    found = [deflated_trace(Dense(), rng=generator(draw)) for draw in range(100)]
    off = np.array([(trace - float(dense.trace())) / error for trace, error in found])
    # 100 draws know a standard deviation to 7 %; ten probes make it that of Student's t, 1.13.
    assert 0.8 < off.std() < 1.4
    assert abs(off.mean()) < 0.4
    assert (np.abs(off) < 1.96).mean() >= 0.86


def test_the_lorenz_curves_are_those_of_the_weights_and_hold_the_gini() -> None:
    model, data = network(4, 16, 2), load("spirals", num_train=600, num_test=20).train
    found = measure(model, data, "importance", rng=generator(), rho=0.5)
    weights = importance(model, data, rho=0.5)
    curves = found["lorenz"]
    assert len(curves["share"]) == len(curves["real"]) == len(curves["phantom"]) == 101
    for name, own in (("real", weights.real), ("phantom", weights.phantom)):
        ordered = own.double().sort().values
        k = round(0.7 * len(ordered))
        assert curves[name][70] == pytest.approx(float(ordered[:k].sum() / ordered.sum()), abs=1e-6)
        area = np.trapezoid(curves[name], curves["share"])
        assert 1 - 2 * area == pytest.approx(gini(own), abs=2e-3)


def test_few_examples_have_few_points_and_none_left_to_learn_has_no_curve() -> None:
    model, data = network(4, 8, 2), load("spirals", num_train=40, num_test=20).train
    assert len(lorenz_curves(importance(model, data, rho=0.1))["share"]) == 41  # type: ignore[index]
    sure = nn.Linear(1, 1, bias=False)
    nn.init.constant_(sure.weight, 1e6)
    found = importance(sure, (torch.ones(3, 1), torch.ones(3).long()), rho=0.0)
    assert lorenz_curves(found) is None


def planted(num: int, rng: torch.Generator, *, tied: bool) -> Labelled:
    """Two numbers whose signs are the easy and the hard attribute; the label is the easy one, and both if tied."""
    easy = torch.randint(2, (num,), generator=rng)
    hard = easy if tied else torch.randint(2, (num,), generator=rng)
    sizes = torch.rand(num, 2, generator=rng) + 0.2
    x = torch.stack([2 * easy - 1, 2 * hard - 1], dim=1) * sizes
    return Labelled(x, easy, ("a", "b"), {"easy": easy, "hard": hard})


def test_the_map_falls_along_the_feature_that_the_model_uses_and_along_no_other() -> None:
    rng = generator(3)
    splits = Splits("planted", {"train": planted(2000, rng, tied=True), "balanced": planted(2000, rng, tied=False)})
    model = nn.Linear(2, 1, bias=False)
    with torch.no_grad():
        model.weight.copy_(torch.tensor([[3.0, 0.0]]))  # the easy feature alone
    part = splits.train
    found = importance_map(model, part, splits, weights=importance(model, part, rho=0.1), rng=generator(), bins=5)
    real = np.array(found["real"], dtype=float)
    assert np.array(found["counts"]).sum() == 2000
    assert (np.diff(np.nanmedian(real, axis=0)) < 0).all()  # the more the easy feature says, the less it weighs
    assert np.ptp(np.nanmedian(real, axis=1)) < 0.2 * np.ptp(np.nanmedian(real, axis=0))
    assert found["x_edges"] == sorted(found["x_edges"])
    assert len(found["y_edges"]) == 6
    json.dumps(found, allow_nan=False)


def test_the_map_is_signed_by_the_label_and_ours_by_the_attribute() -> None:
    """Springer's figure 6 has y·vᵀΦ on its axes: the easy feature of a minority example speaks against its label."""
    rng = generator(4)
    balanced = planted(2000, rng, tied=False)
    minority = balanced.subset((balanced.labels != balanced.attribute("hard")).nonzero().flatten())
    splits = Splits("planted", {"train": minority, "balanced": balanced})
    model = nn.Linear(2, 1, bias=False)
    with torch.no_grad():
        model.weight.copy_(torch.tensor([[3.0, 1.0]]))
    found = importance_map(model, minority, splits, weights=importance(model, minority, rho=0.1), rng=generator())
    assert found["signed_by"] == "label"
    assert found["x_edges"][0] > 0  # the easy feature agrees with the label
    assert found["y_edges"][-1] < 0  # the hard one contradicts it, for every example
    assert found["by_attribute"]["y_edges"][0] > 0  # and is clearly seen all the same


def test_a_map_is_made_where_the_data_name_both_features_and_nowhere_else() -> None:
    spirals = load("spirals", num_train=40, num_test=200)
    assert "importance_map" in measure(network(4, 8, 2), spirals, "importance", rng=generator())
    assert "importance_map" not in measure(network(4, 8, 2), spirals.train, "importance", rng=generator())


def test_contributions_of_many_values_are_the_log_odds_of_ones_own() -> None:
    rng = generator(5)
    easy = torch.arange(300) % 3
    hard = torch.arange(300) // 3 % 2
    x = torch.nn.functional.one_hot(easy, 3).float() + 0.3 * torch.randn(300, 3, generator=rng)
    data = Labelled(x, easy, ("a", "b", "c"), {"easy": easy, "hard": hard})
    splits = Splits("three", {"train": data, "balanced": data})
    probe = probing_errors(network(3, 4, 3), splits, rng=rng, attributes=["easy"], refits=1)["easy"]
    scores = torch.randn(7, 4, generator=rng)
    own = contribution(probe, scores, torch.arange(7) % 3)
    chances = probe.contribution(scores).double().softmax(1).gather(1, (torch.arange(7) % 3)[:, None])[:, 0]
    torch.testing.assert_close(own.double(), (chances / (1 - chances)).log(), rtol=1e-5, atol=1e-5)
    with pytest.raises(DataError, match="value 5 is not among"):
        contribution(probe, scores, torch.full((7,), 5))
