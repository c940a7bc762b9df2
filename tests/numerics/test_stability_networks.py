"""Real networks: Gauss–Newton from the Gram against dense matrices, and exact Hessians against finite differences."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call, jacrev

from evenly.errors import DataError, UsageError
from evenly.models.relu2 import ReLU2
from evenly.stability import (
    Problem,
    coherence,
    coherence_of_hessians,
    feature_solution,
    mean_square_threshold,
    nearness,
    network_problem,
    network_report,
    per_example_hessians,
    threshold_report,
)


def small(outputs: int) -> nn.Module:
    rng = torch.Generator().manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, outputs)).double()
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.randn(p.shape, generator=rng, dtype=torch.float64))
    return model


def examples(classes: int) -> tuple[Tensor, Tensor]:
    rng = torch.Generator().manual_seed(1)
    x = torch.randn(6, 3, generator=rng, dtype=torch.float64)
    return x, torch.randint(classes, (6,), generator=rng)


def dense_gauss_newton(model: nn.Module, x: Tensor, loss: str) -> Tensor:
    """Hᵢ = JᵢᵀQᵢJᵢ with J by reverse mode and Q from its formula, one example after the other."""
    params = dict(model.named_parameters())
    found = []
    for one in x:
        jac = jacrev(lambda p, one=one: functional_call(model, p, (one[None],))[0])(params)
        j_CP = torch.cat([part.flatten(1) for part in jac.values()], 1)
        f = model(one[None])[0]
        if loss == "squared":
            q = torch.eye(len(f), dtype=torch.float64)
        elif loss == "logistic":
            q = (f.sigmoid() * (1 - f.sigmoid()))[:, None]
        else:
            q = f.softmax(0).diag() - torch.outer(f.softmax(0), f.softmax(0))
        found.append(j_CP.T @ q @ j_CP)
    return torch.stack(found).detach()


@pytest.mark.parametrize(("loss", "outputs"), [("squared", 1), ("squared", 2), ("logistic", 1), ("cross-entropy", 3)])
def test_network_problem_is_that_of_dense_gauss_newton_matrices(loss: Any, outputs: int) -> None:
    model, (x, y) = small(outputs), examples(max(2, outputs))
    ours, dense = network_problem(model, (x, y), loss=loss), Problem.from_dense(dense_gauss_newton(model, x, loss))
    for ratio in (0.0, 0.3):
        a, b = coherence(ours, rho_over_alpha=ratio), coherence(dense, rho_over_alpha=ratio)
        assert torch.allclose(a.matrix_NN, b.matrix_NN, rtol=1e-6, atol=1e-7 * float(b.matrix_NN.max()))
        assert a.sigma == pytest.approx(b.sigma, rel=1e-8)
        assert a.sigma_without_root == pytest.approx(b.sigma_without_root, rel=1e-8)
        etas = [mean_square_threshold(p, batch=2, rho_over_alpha=ratio) for p in (ours, dense)]
        assert etas[0] == pytest.approx(etas[1], rel=1e-8)
    assert ours.trace == pytest.approx(dense.trace, rel=1e-8)


def test_a_feature_solution_in_the_model_of_the_house_has_its_own_threshold() -> None:
    x = 2.0 * torch.randint(2, (30, 10), generator=torch.Generator().manual_seed(2)).double() - 1
    y = x[:, 0] * x[:, 1]
    solution = feature_solution(3, dim=10, width=12)
    model = ReLU2((10,), 2, width=12).double()
    model.load_state_dict(solution.state_dict())
    assert torch.allclose(model(x).flatten(), y, atol=1e-12)
    near = nearness(model, (x, y), loss="squared")
    assert near.gradient_norm < 1e-10
    assert near.residual < 1e-10
    report = network_report(model, (x, y), batch=5, lr=0.1, rho_over_alpha=0.1, loss="squared")
    by_hand = threshold_report(solution.problem(x), batch=5, lr=0.1, rho_over_alpha=0.1)
    for method in ("SGD", "SAM ρ/α=0.1"):
        ours, other = report["methods"][method]["eta_exact"], by_hand["methods"][method]["eta_exact"]
        assert ours == pytest.approx(other, rel=1e-9)
    assert not any("minimum" in note for note in report["notes"])


def test_a_network_that_is_not_at_a_minimum_is_reported_as_such() -> None:
    model, (x, y) = small(1), examples(2)
    report = network_report(model, (x, y), batch=2, lr=0.1, loss="squared")
    residuals = (model(x).detach().flatten() - (2 * y - 1)).abs()
    assert report["residual"] == pytest.approx(float(residuals.max()), rel=1e-9)
    loss = (model(x).flatten() - (2 * y - 1)).square().mean() / 2
    grads = torch.autograd.grad(loss, list(model.parameters()))
    norm = torch.cat([g.flatten() for g in grads]).norm()
    assert report["gradient_norm"] == pytest.approx(float(norm), rel=1e-9)
    assert any("not at a minimum" in note for note in report["notes"])


def test_exact_hessians_are_those_of_finite_differences_and_undefined_pairs_are_counted() -> None:
    model, (x, y) = small(1), examples(2)
    exact = per_example_hessians(model, (x, y), loss="squared")
    params = list(model.parameters())

    def gradient(shift: Tensor) -> Tensor:
        saved = [p.detach().clone() for p in params]
        vector = nn.utils.parameters_to_vector(params).detach() + shift
        nn.utils.vector_to_parameters(vector, params)
        loss = (model(x[:1]).flatten() - (2 * y[:1] - 1)).square().sum() / 2
        g = torch.cat([part.flatten() for part in torch.autograd.grad(loss, params)])
        for p, old in zip(params, saved, strict=True):
            p.data = old
        return g

    steps = 1e-5 * torch.eye(exact.shape[1], dtype=torch.float64)
    differences = torch.stack([(gradient(s) - gradient(-s)) / 2e-5 for s in steps])
    assert torch.allclose(exact[0], differences, atol=1e-6)
    found = coherence_of_hessians(exact)
    traces = torch.einsum("npq,mqp->nm", exact, exact)
    assert found.undefined_pairs == int((traces.triu() < 0).sum())
    assert (found.sigma is None) == (found.undefined_pairs > 0)


def test_at_a_minimum_exact_hessians_are_the_gauss_newton_ones() -> None:
    model, (x, _) = small(1), examples(2)
    y = model(x).detach().flatten()
    exact = coherence_of_hessians(per_example_hessians(model, (x, y), loss="squared"))
    gauss_newton = coherence(network_problem(model, (x, y), loss="squared"))
    assert exact.undefined_pairs == 0
    assert exact.sigma == pytest.approx(gauss_newton.sigma, rel=1e-8)


def test_looking_at_a_network_leaves_no_trace() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1)).double().eval()
    model[0].train()
    x, y = examples(2)
    for p in model.parameters():
        p.grad = torch.ones_like(p)
    before = [t.clone() for t in (*model.parameters(), *model.buffers())]
    modes, state = [m.training for m in model.modules()], torch.get_rng_state()
    network_report(model, (x, y), batch=2, lr=0.1)
    per_example_hessians(model, (x, y))
    with pytest.raises(DataError):
        nearness(model, x)
    assert all(torch.equal(a, b) for a, b in zip(before, (*model.parameters(), *model.buffers()), strict=True))
    assert all(torch.equal(p.grad, torch.ones_like(p)) for p in model.parameters())  # type: ignore[arg-type]
    assert [m.training for m in model.modules()] == modes
    assert torch.equal(torch.get_rng_state(), state)
    assert not any(m._forward_hooks or m._backward_hooks for m in model.modules())


def test_hessians_that_do_not_fit_in_memory_are_refused_before_work_starts() -> None:
    with pytest.raises(UsageError, match="1000 Hessians of 10,100 parameters take 380 GiB: take fewer examples"):
        per_example_hessians(nn.Linear(100, 100), (torch.zeros(1000, 100), torch.zeros(1000, dtype=torch.int64)))
