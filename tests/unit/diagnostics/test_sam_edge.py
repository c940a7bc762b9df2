"""SAM's edge with momentum, against a simulation."""

import math

import pytest
import torch

from evenly.diagnostics import sam_edge
from evenly.errors import UsageError


@pytest.mark.parametrize(
    "settings",
    [{}, {"momentum": 0.9}, {"momentum": 0.9, "nesterov": True}, {"momentum": 0.8, "dampening": 0.5}],
    ids=str,
)
def test_the_edge_without_sam_is_where_torchs_own_sgd_begins_to_diverge(settings: dict[str, float]) -> None:
    edge = sam_edge(1.0, lr=0.1, rho=0.0, **settings)  # type: ignore[arg-type]

    def size_after(curvature: float) -> float:
        w = torch.ones((), dtype=torch.float64, requires_grad=True)
        optimizer = torch.optim.SGD([w], lr=0.1, **settings)  # type: ignore[arg-type]
        for _ in range(400):
            optimizer.zero_grad()
            (curvature * w.square() / 2).backward()
            optimizer.step()
        return abs(float(w.detach()))

    assert size_after(0.93 * edge) < 1e-1 < 1e1 < size_after(1.07 * edge)


@pytest.mark.parametrize("momentum", [0.0, 0.5, 0.9])
def test_at_the_edge_sam_with_momentum_goes_back_and_forth(momentum: float) -> None:
    """On ½λw² the weights w, −w, w, … with the velocity of that cycle: one step of SAM only changes the sign."""
    norm, lr, rho = 0.3, 0.1, 0.05
    edge = sam_edge(norm, lr=lr, rho=rho, momentum=momentum)
    w = norm / edge
    velocity = -edge * (w + rho) / (1 + momentum)
    velocity = momentum * velocity + edge * (w + math.copysign(rho, w))
    assert w - lr * velocity == pytest.approx(-w, rel=1e-9)
    assert lr * edge * (1 + rho * edge / norm) == pytest.approx(2 * (1 + momentum))


@pytest.mark.parametrize("settings", [{"momentum": 1.0}, {"dampening": -0.1}, {"nesterov": True}])
def test_settings_that_torch_would_refuse_are_refused(settings: dict[str, float]) -> None:
    with pytest.raises(UsageError, match=next(iter(settings))):
        sam_edge(1.0, lr=0.1, rho=0.1, **settings)  # type: ignore[arg-type]
