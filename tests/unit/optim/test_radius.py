"""The radii of parameter groups."""

import pytest
import torch
from torch import nn

from evenly import SAM


def test_the_radii_of_an_optimizer_s_groups_are_those_of_the_state_that_it_loads() -> None:
    """`load_state_dict` puts new groups in the place of those that SAM was built from."""

    def build() -> tuple[nn.Module, torch.optim.Optimizer, SAM]:
        model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
        groups = [{"params": list(layer.parameters()), "rho": 0.5} for layer in model]
        optimizer = torch.optim.SGD(groups, lr=0.1)
        return model, optimizer, SAM(optimizer.param_groups)

    def train(model: nn.Module, optimizer: torch.optim.Optimizer, sam: SAM) -> None:
        sam.backward(lambda: model(torch.ones(2, 3)).square().mean())
        optimizer.step()
        optimizer.zero_grad()

    first = build()
    first[1].param_groups[1]["rho"] = 0.25
    model, optimizer, sam = build()
    optimizer.load_state_dict(first[1].state_dict())
    with pytest.warns(UserWarning, match=r"had rho=0\.5, later ones have the rho=0\.25 of the new group"):
        train(model, optimizer, sam)
    assert sam.radii.at(1, 0.0, 4) == [0.5, 0.5, 0.25, 0.25]
    optimizer.param_groups[0]["rho"] = 0.125  # a schedule goes on as before
    train(model, optimizer, sam)
    assert sam.radii.at(2, 0.0, 4) == [0.125, 0.125, 0.25, 0.25]


def test_radii_of_groups_that_the_optimizer_does_not_have_stay_those_given() -> None:
    model = nn.Linear(3, 2)
    mine = {"params": list(model.parameters()), "rho": 0.5}
    optimizer = torch.optim.SGD([{"params": list(model.parameters()), "rho": 0.25}], lr=0.1)
    sam = SAM([mine])
    sam.backward(lambda: model(torch.ones(2, 3)).square().mean())
    optimizer.step()
    assert sam.radii.at(1, 0.0, 2) == [0.5, 0.5]
