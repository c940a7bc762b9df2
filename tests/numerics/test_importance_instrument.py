"""Importance weights, inequality and appendix D against closed forms, brute force and finite differences."""

import math
from functools import partial

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from evenly.diagnostics import gini, importance, importance_weights, lorenz, median_map, reweighting
from evenly.diagnostics.importance import log_odds
from evenly.errors import DataError, UsageError
from evenly.optim import ascent


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def network(outputs: int, seed: int = 0) -> tuple[nn.Module, tuple[Tensor, Tensor]]:
    rng = generator(seed)
    model = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, outputs)).double()
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.randn(p.shape, generator=rng, dtype=p.dtype))
    return model, (torch.randn(15, 4, generator=rng, dtype=torch.float64), torch.arange(15) % max(2, outputs))


def test_weights_are_one_minus_the_probability_of_the_label() -> None:
    logits = torch.randn(7, 4, generator=generator(), dtype=torch.float64)
    labels = torch.arange(7) % 4
    expected = 1 - logits.softmax(1)[torch.arange(7), labels]
    torch.testing.assert_close(importance_weights(logits, labels), expected)


def test_weights_of_two_logits_and_of_their_difference_are_the_same() -> None:
    logits = torch.randn(7, 2, generator=generator(), dtype=torch.float64)
    labels = torch.arange(7) % 2
    torch.testing.assert_close(
        importance_weights(logits[:, 1] - logits[:, 0], labels), importance_weights(logits, labels)
    )


def test_weights_are_the_slope_of_the_logistic_loss() -> None:
    f = torch.randn(7, generator=generator(), dtype=torch.float64, requires_grad=True)
    y = torch.tensor([-1.0, 1, 1, -1, 1, -1, 1], dtype=torch.float64)
    (slope,) = torch.autograd.grad(F.softplus(-y * f).sum(), f)
    torch.testing.assert_close(importance_weights(f.detach(), (y > 0).long()), slope.abs())


def test_confident_examples_keep_their_digits() -> None:
    weights = importance_weights(torch.tensor([[60.0, 0.0, 0.0]]), torch.tensor([0]))
    assert weights.item() == pytest.approx(2 * math.exp(-60), rel=1e-5)
    assert log_odds(torch.tensor([[60.0, 0.0, 0.0]]), torch.tensor([0])).item() == pytest.approx(60 - math.log(2))


@pytest.mark.parametrize("seed", range(3))
def test_gini_is_half_the_relative_mean_difference_and_twice_the_area_above_the_lorenz_curve(seed: int) -> None:
    w = torch.rand(50, generator=generator(seed), dtype=torch.float64) ** 3
    differences = float((w[:, None] - w[None, :]).abs().mean() / (2 * w.mean()))
    x, held = lorenz(w)
    area = 1 - 2 * np.trapezoid(held.numpy(), x.numpy())
    assert gini(w) == pytest.approx(differences, rel=1e-12)
    assert gini(w) == pytest.approx(area, rel=1e-12)


def test_lorenz_from_the_top_is_the_curve_turned_by_half_a_turn() -> None:
    w = torch.rand(20, generator=generator(), dtype=torch.float64)
    _, low = lorenz(w)
    _, top = lorenz(w, largest_first=True)
    torch.testing.assert_close(top, 1 - low.flip(0))
    assert (low.diff().diff() >= -1e-12).all()  # convex


def test_medians_equal_those_of_a_loop_over_the_cells() -> None:
    rng = generator()
    w, easy, hard = torch.rand(200, generator=rng), torch.randn(200, generator=rng), torch.randn(200, generator=rng)
    found = median_map(w, easy=easy, hard=hard, bins=4)
    for e in range(4):
        for h in range(4):
            inside = torch.ones(200, dtype=torch.bool)
            for part, edges, at in ((easy.double(), found.easy_edges, e), (hard.double(), found.hard_edges, h)):
                inside &= (part >= edges[at]) & ((part < edges[at + 1]) | (at == 3))
            assert int(found.count[e, h]) == int(inside.sum())
            if inside.any():
                assert found.median[e, h].item() == pytest.approx(float(np.median(w[inside].numpy())))
            else:
                assert math.isnan(found.median[e, h].item())
    assert int(found.count.sum()) == 200


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("group", [None, 4])
def test_phantom_weights_equal_those_of_sam_written_out(outputs: int, group: int | None) -> None:
    model, (x, y) = network(outputs)
    found = importance(model, (x, y), rho=0.3, group=group, chunk=6, track=["2.weight"])
    params, expected, phantoms = list(model.parameters()), [], []
    for part in torch.arange(15).split(group or 15):
        f = model(x[part])
        loss = F.cross_entropy(f, y[part]) if outputs > 1 else F.softplus(-(2 * y[part] - 1) * f[:, 0]).mean()
        gradient = torch.autograd.grad(loss, params)
        norm = torch.sqrt(sum(g.square().sum() for g in gradient))  # type: ignore[arg-type]
        moved = {n: p + 0.3 * g / norm for (n, p), g in zip(model.named_parameters(), gradient, strict=True)}
        phantoms.append(moved["2.weight"].detach())
        f = torch.func.functional_call(model, moved, (x[part],)).detach()
        expected.append(1 - f.softmax(1).gather(1, y[part][:, None])[:, 0] if outputs > 1 else
                        torch.sigmoid(-(2 * y[part] - 1) * f[:, 0]))  # fmt: skip
    torch.testing.assert_close(found.phantom, torch.cat(expected))
    torch.testing.assert_close(found.phantoms["2.weight"], torch.stack(phantoms))
    torch.testing.assert_close(found.real, importance_weights(model(x).detach(), y))
    assert found.real_gini == gini(found.real)
    assert found.phantom_gini == gini(found.phantom)


def test_any_rule_of_the_sam_family_can_make_the_phantom() -> None:
    model, data = network(3)
    still = importance(model, data, rho=0.0)
    assert torch.equal(still.real, still.phantom)
    by_asam = importance(model, data, rho=0.0, rule=partial(ascent.asam, rho=0.5))
    assert (by_asam.phantom - by_asam.real).abs().max() > 1e-3


def test_lsam_moves_the_head_only() -> None:
    model, data = network(1)
    found = importance(model, data, rho=1.0, only=["2"])
    phi = model[1](model[0](data[0])).detach()
    f, y = model(data[0]).detach()[:, 0], 2.0 * data[1] - 1
    slope = -(torch.sigmoid(-y * f) * y / 15) @ torch.cat([phi, torch.ones(15, 1, dtype=phi.dtype)], dim=1)
    step = slope / slope.norm()
    moved = f + phi @ step[:-1] + step[-1]
    torch.testing.assert_close(found.phantom, torch.sigmoid(-y * moved))


def test_appendix_d_predicts_the_norm_of_the_representation_for_lsam() -> None:
    model, (x, y) = network(1)
    model[2] = nn.Linear(6, 1, bias=False).double()
    phi = model[1](model[0](x)).detach()
    found = reweighting(model, (x, y), rho=0.01, only=["2"])
    torch.testing.assert_close(found.predicted, 0.01 * phi.norm(dim=1))
    f, s = model(x).detach()[:, 0], 2.0 * y - 1
    after = s * f - 0.01 * phi.norm(dim=1)
    torch.testing.assert_close(found.measured, F.logsigmoid(-after) - F.logsigmoid(-s * f))


def test_appendix_d_closed_form_of_a_two_layer_linear_network() -> None:
    model = nn.Sequential(nn.Linear(4, 3, bias=False), nn.Linear(3, 1, bias=False)).double()
    W, v = (p.detach() for p in model.parameters())
    x = torch.randn(5, 4, generator=generator(), dtype=torch.float64)
    found = reweighting(model, (x, torch.arange(5) % 2), rho=1e-3)
    # The appendix prints ‖Wx‖² + ‖v‖²‖x‖: the last norm must be squared.
    expected = ((x @ W.T).square().sum(1) + v.square().sum() * x.square().sum(1)).sqrt()
    torch.testing.assert_close(found.predicted, 1e-3 * expected)


@pytest.mark.parametrize("outputs", [1, 3])
def test_the_logistic_prediction_is_the_first_order_of_the_measurement(outputs: int) -> None:
    model, data = network(outputs)
    with torch.no_grad():
        model[2].weight.mul_(4)  # some examples well fitted
    errors = []
    for rho in (1e-2, 1e-3):
        found = reweighting(model, data, rho=rho, chunk=4)
        errors.append(float((found.measured - found.predicted_logistic).abs().max()))
    assert errors[1] < errors[0] / 50  # second order: a hundredth
    fitted = log_odds(model(data[0]).detach(), data[1]) > 4
    assert fitted.any()
    torch.testing.assert_close(found.predicted[fitted], found.measured[fitted], rtol=0.03, atol=0)


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda: gini(torch.tensor([-1.0])), DataError, "not negative"),
        (lambda: lorenz(torch.zeros(3)), DataError, "all weights are 0"),
        (lambda: gini(torch.zeros(0)), DataError, "one number per example"),
        (lambda: median_map(torch.ones(2), easy=torch.ones(3), hard=torch.ones(2)), DataError, "2 weights, 3 easy"),
        (lambda: importance(*network(3), rho=-1.0), UsageError, "rho = -1"),
        (lambda: importance(*network(3), rho=1.0, track=["v"]), UsageError, "cannot track 'v'"),
        (lambda: importance(*network(3), rho=float("inf")), DataError, "ascent is not finite"),
        (lambda: reweighting(*network(3), rho=0.0), UsageError, "rho = 0"),
        (lambda: importance_weights(torch.zeros(3), torch.tensor([0, 1, 5])), DataError, "number them 0 and 1"),
    ],
)
def test_what_cannot_be_weighed_is_refused(call, error: type[Exception], said: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(error, match=said):
        call()
