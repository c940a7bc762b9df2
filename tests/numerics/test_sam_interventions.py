"""Springer's interventions against their equations, written out example by example."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from evenly.errors import UsageError
from evenly.optim import Intervention

V_STAR = torch.tensor([1.0, 2.5], dtype=torch.float64)


class Disentangled(nn.Module):
    """Φ applied to [x_easy, 0] and [0, x_hard], then v (Springer et al., eq. 4)."""

    def __init__(self) -> None:
        super().__init__()
        self.phi = nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.ReLU(), nn.Linear(8, 1))
        self.v = nn.Linear(2, 1, bias=False)

    def features(self, x: Tensor) -> Tensor:
        easy = torch.cat([x[:, :2], torch.zeros_like(x[:, 2:])], 1)
        hard = torch.cat([torch.zeros_like(x[:, :2]), x[:, 2:]], 1)
        return torch.cat([self.phi(easy), self.phi(hard)], 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.v(self.features(x)).squeeze(1)


def problem() -> tuple[Disentangled, Tensor, Tensor]:
    torch.manual_seed(0)
    y = torch.tensor([1.0, -1.0, 1.0, 1.0, -1.0], dtype=torch.float64)
    return Disentangled().double(), torch.randn(5, 4, dtype=torch.float64), y


def logistic(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    return F.softplus(-y * model(x)).mean()


@pytest.mark.parametrize("effect", ["importance", "rate", "both"])
def test_the_bodys_gradient_is_the_papers_sum_over_examples(effect: str) -> None:
    model, x, y = problem()
    Intervention(model, effect=effect, hard=2.5).backward(lambda: logistic(model, x, y))
    v = model.v.weight.detach()[0]
    body = list(model.phi.parameters())
    expected = [torch.zeros_like(p) for p in body]
    for i in range(5):  # eqs. 10, 11, 12
        phi = model.features(x[i : i + 1])[0]
        inside = V_STAR if effect in ("importance", "both") else v
        outside = V_STAR if effect in ("rate", "both") else v
        importance = torch.sigmoid(-y[i] * (inside @ phi.detach()))
        for e, g in zip(expected, torch.autograd.grad(outside @ phi, body), strict=True):
            e -= y[i] * importance * g / 5
    for p, e in zip(body, expected, strict=True):
        torch.testing.assert_close(p.grad, e)


@pytest.mark.parametrize("effect", ["importance", "rate", "both"])
def test_with_v_itself_it_is_the_plain_gradient_and_the_head_always_gets_its_own(effect: str) -> None:
    model, x, y = problem()
    plain = logistic(model, x, y)
    grads = torch.autograd.grad(plain, list(model.parameters()))
    easy, hard = model.v.weight.detach()[0].tolist()
    before = model.v.weight.detach().clone()
    loss = Intervention(model, effect=effect, easy=easy, hard=hard).backward(lambda: logistic(model, x, y))
    assert loss == plain
    for p, g in zip(model.parameters(), grads, strict=True):
        torch.testing.assert_close(p.grad, g)
    model.zero_grad()
    Intervention(model, effect=effect, hard=7.0).backward(lambda: logistic(model, x, y))
    torch.testing.assert_close(model.v.weight.grad, grads[-1])
    assert not torch.allclose(model.phi[0].weight.grad, grads[0])
    assert torch.equal(model.v.weight, before)


def test_gradients_accumulate() -> None:
    model, x, y = problem()
    intervention = Intervention(model, effect="both", hard=2.0)
    intervention.backward(lambda x, y: logistic(model, x, y), x, y)
    once = [p.grad.clone() for p in model.parameters()]
    intervention.backward(lambda x, y: logistic(model, x, y), x, y)
    for p, g in zip(model.parameters(), once, strict=True):
        torch.testing.assert_close(p.grad, 2 * g)


def test_what_cannot_be_meant_is_refused() -> None:
    model, *_ = problem()
    with pytest.raises(UsageError, match="Did you mean 'importance'"):
        Intervention(model, effect="importances", hard=1.0)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"nn.Linear\(2, ...\)"):
        Intervention(nn.Sequential(nn.Linear(3, 1)), effect="both", hard=1.0)
