"""Sharpness against closed forms, dense references and an exhaustive search of the ball."""

import math

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from evenly.curvature import hessian
from evenly.diagnostics import l1_norm, sharpness, worst_rise
from evenly.errors import UsageError


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def network(seed: int = 0) -> tuple[nn.Module, tuple[Tensor, Tensor]]:
    rng = generator(seed)
    model = nn.Sequential(nn.Linear(5, 6), nn.Tanh(), nn.Linear(6, 3)).double()
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.randn(p.shape, generator=rng, dtype=p.dtype))
    return model, (torch.randn(20, 5, generator=rng, dtype=torch.float64), torch.arange(20) % 3)


def test_every_number_equals_that_of_the_dense_hessian() -> None:
    model, data = network()
    found = sharpness(model, data, rng=generator(), tol=1e-8, trace_probes=200)
    H = hessian(model.eval(), data).dense()
    exact = torch.linalg.eigvalsh(H).flip(0)
    assert found.eigenvalues == pytest.approx(exact[:5].tolist(), rel=1e-7)
    assert found.lambda_max == found.eigenvalues[0]
    assert found.lambda_ratio_5 == pytest.approx(float(exact[0] / exact[4]), rel=1e-6)
    assert abs(found.trace - float(H.trace())) < 4 * found.trace_error
    assert found.trace_error < 0.2 * abs(found.trace)
    assert found.l1 == pytest.approx(sum(float(p.detach().abs().sum()) for p in model.parameters()))


def test_it_measures_the_eval_mode_function_of_a_model_in_train_mode() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.5), nn.Linear(4, 2))
    data = (torch.randn(12, 3, generator=generator()), torch.arange(12) % 2)
    first, second = (sharpness(model, data, rng=generator(), trace_probes=0) for _ in range(2))
    assert first.eigenvalues == second.eigenvalues
    assert model.training
    assert math.isnan(first.trace)


def test_fewer_parameters_than_eigenvalues_asked_for_give_what_there_is() -> None:
    found = sharpness(nn.Linear(2, 1, bias=False), (torch.eye(2), torch.zeros(2)), rng=generator())
    assert len(found.eigenvalues) == 2
    assert math.isnan(found.lambda_ratio_5)


def test_l1_norm_counts_frozen_weights_too() -> None:
    model = nn.Linear(2, 1)
    model.bias.requires_grad_(False)
    assert l1_norm(model) == pytest.approx(float((model.weight.abs().sum() + model.bias.abs().sum()).detach()))


def test_worst_rise_on_a_quadratic_is_the_solution_of_the_trust_region_problem() -> None:
    values = torch.tensor([4.0, 1.0, 0.25], dtype=torch.float64)
    model = nn.Linear(3, 1, bias=False).double()
    with torch.no_grad():
        model.weight.copy_(torch.tensor([[0.3, -1.0, 2.0]]))
    data = (values.mul(3).sqrt().diag(), torch.zeros(3, dtype=torch.float64))  # L = ½ wᵀ diag(values) w
    w, rho = model.weight.detach()[0], 0.7
    g = values * w
    # max gᵀε + ½ εᵀHε on ‖ε‖ = ρ: ε = (μ − H)⁻¹g with μ > λmax so that the norm is ρ.
    low, high = 4.0 + 1e-12, 1e6
    for _ in range(200):
        mu = math.sqrt(low * high)
        low, high = (mu, high) if (g / (mu - values)).norm() > rho else (low, mu)
    e = g / (low - values)
    found = worst_rise(model, data, rho=rho, rng=generator(), loss="squared", steps=200)
    assert found.rise == pytest.approx(float(g @ e + (values * e * e).sum() / 2), rel=1e-6)
    assert found.first_order == pytest.approx(rho * float(g.norm()))
    assert found.loss == pytest.approx(float((values * w * w).sum() / 2))


def test_worst_rise_beats_a_search_by_ten_thousand_random_points() -> None:
    rng = generator(1)
    model = nn.Linear(2, 2, bias=False).double()
    x, y = torch.randn(9, 2, generator=rng, dtype=torch.float64), torch.arange(9) % 2
    start = float(F.cross_entropy(model(x), y).detach())
    steps = torch.randn(10_000, 2, 2, generator=rng, dtype=torch.float64)
    steps = 0.5 * steps / steps.flatten(1).norm(dim=1)[:, None, None]
    logits = torch.einsum("ni,soi->nso", x, model.weight.detach() + steps)
    searched = float((-logits.log_softmax(2)[torch.arange(9), :, y]).mean(0).max()) - start
    found = worst_rise(model, (x, y), rho=0.5, rng=generator())
    assert found.rise >= searched * (1 - 1e-3)
    assert found.rise <= searched * 1.05
    assert found.rise > found.first_order  # a convex loss rises faster than its tangent


def test_a_radius_that_is_none_is_refused() -> None:
    with pytest.raises(UsageError, match="rho = 0"):
        worst_rise(nn.Linear(1, 1), (torch.ones(1, 1), torch.zeros(1)), rho=0, rng=generator())
