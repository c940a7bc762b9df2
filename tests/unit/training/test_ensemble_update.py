"""The step of SGD for many members, batched and fused, against torch's own optimizer."""

import pytest
import torch

from evenly.training.ensemble import update
from evenly.training.ensemble.update import Rates, Update


@pytest.mark.parametrize("large", [0, 2**20], ids=["fused", "batched"])
@pytest.mark.parametrize("momentum", [[0.9, 0.9, 0.5], [0.0, 0.0, 0.0], [0.0, 0.9, 0.9]], ids=str)
def test_every_member_takes_the_steps_of_torch_sgd(
    large: int, momentum: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(update, "LARGE", large)
    lr, weight_decay = [0.1, 0.01, 0.1], [0.0, 0.1, 0.01]
    rng = torch.Generator().manual_seed(0)
    w_KP = torch.randn(3, 7, generator=rng)
    g_KP = torch.empty_like(w_KP)
    rows = [w_P.clone().requires_grad_() for w_P in w_KP]
    peers = [
        torch.optim.SGD([row], lr=lr[k], momentum=momentum[k], weight_decay=weight_decay[k])
        for k, row in enumerate(rows)
    ]
    rates = Rates(*(torch.tensor(numbers)[:, None] for numbers in (lr, momentum, weight_decay)))
    take_step = Update(w_KP, g_KP, torch.zeros_like(w_KP) if any(momentum) else None, rates)
    assert bool(take_step.equal_members) == (large == 0)
    for factor in (1.0, 0.5, 0.1):
        g_KP.copy_(torch.randn(3, 7, generator=rng))
        for k, (row, peer) in enumerate(zip(rows, peers, strict=True)):
            row.grad, peer.param_groups[0]["lr"] = g_KP[k].clone(), factor * lr[k]
            peer.step()
        take_step(factor)
    torch.testing.assert_close(w_KP, torch.stack(rows).detach())


def test_a_member_that_diverges_disturbs_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(update, "LARGE", 0)
    w_KP, g_KP = torch.ones(2, 3), torch.tensor([[1.0, 2.0, 3.0], [torch.nan, torch.inf, 1.0]])
    Update(w_KP, g_KP, None, Rates(*(torch.full((2, 1), x) for x in (0.1, 0.0, 0.0))))(1.0)
    torch.testing.assert_close(w_KP[0], torch.tensor([0.9, 0.8, 0.7]))
