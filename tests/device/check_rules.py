"""SAM's rules in a loop of one's own on the pretended device: half precision, gradients that are not finite."""

from typing import Any

import pytest
import torch
from pretended.counting import Count
from torch import Tensor, nn
from torch.nn import functional

from evenly import optim
from evenly.optim.cost import rule_class
from evenly.rules import RULES

REMEMBERING = [name for name in RULES if rule_class(name).rule_type.remembers]


def stepped(name: str, where: str, factors: list[float], *, scaled: bool = False) -> list[Any]:
    """What a rule remembers and leaves in `.grad`, step by step; each loss is multiplied by its factor."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 3)).to(where)
    rng = torch.Generator().manual_seed(0)
    x, y = torch.randn(8, 6, generator=rng).to(where), torch.randint(3, (8,), generator=rng).to(where)
    scaler = torch.amp.GradScaler(torch.device(where).type, init_scale=1024.0) if scaled else None
    sam = rule_class(name)(model, **({"sigma": 0.05} if name == "random" else {"rho": 0.05}), scaler=scaler)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, fused=True)
    found = []
    for factor in factors:
        optimizer.zero_grad()
        sam.backward(lambda factor=factor: factor * functional.cross_entropy(model(x), y))
        if scaler is None:
            grads = [p.grad.cpu() for p in model.parameters()]
            if all(bool(g.isfinite().all()) for g in grads):
                optimizer.step()
        else:
            scaler.step(optimizer)
            scaler.update()
            grads = []
        sam.begin()  # ends the step, which updates the memory
        memory = [t.cpu().clone() for _, t in sorted(sam.memory.known.items())]
        found.append((grads, memory, [p.detach().cpu().clone() for p in model.parameters()]))
    return found


def alike(a: list[Tensor], b: list[Tensor]) -> bool:
    return len(a) == len(b) and all(torch.allclose(x, y, rtol=1e-4, atol=1e-6) for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("name", REMEMBERING)
def test_nothing_is_learned_from_a_gradient_that_is_not_finite(name: str, scaled: bool) -> None:
    factors = [float("nan"), 1.0, 1.0, float("inf"), 1.0, 1.0]
    for number, (there, here) in enumerate(
        zip(*(stepped(name, where, factors, scaled=scaled) for where in ("cuda:1", "cpu")), strict=True)
    ):
        assert all(bool(t.isfinite().all()) for t in there[1]), f"step {number}"
        assert alike(there[1], here[1]), f"memory after step {number}"
        assert alike(there[2], here[2]), f"weights after step {number}"


@pytest.mark.parametrize("name", [name for name in RULES if name != "lsam"])
def test_a_scaled_loss_leads_to_the_weights_of_an_unscaled_one(name: str) -> None:
    scaled, plain = (stepped(name, "cuda:1", [1.0] * 4, scaled=how)[-1][2] for how in (True, False))
    assert alike(scaled, plain)


def test_the_scale_is_not_read_by_a_step() -> None:
    model = nn.Linear(4, 2).to("cuda:0")
    sam = optim.SAM(model, rho=0.05, scaler=torch.amp.GradScaler("cuda"))
    x = torch.ones(3, 4, device="cuda:0")
    with Count() as count:
        sam.backward(lambda: model(x).square().mean())
    assert not count.waits, count.waits
