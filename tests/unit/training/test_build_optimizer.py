"""The optimizer of a recipe: the one that is named, updated in one pass over memory wherever torch can."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from evenly.errors import UsageError
from evenly.recipe import Optimizer, Recipe
from evenly.training.build_optimizer import build_optimizer


def made(model: nn.Module, name: str = "sgd", **options: object) -> torch.optim.Optimizer:
    chosen = Optimizer(name, lr=0.05, weight_decay=0.0, options=options)
    return build_optimizer(replace(Recipe(), optimizer=chosen), model)


@pytest.mark.parametrize("name", ["sgd", "adamw", "adam", "adagrad"])
def test_a_fused_update_is_torchs_plain_one_to_rounding(name: str) -> None:
    weights = []
    for options in [{}, {"foreach": False}]:
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(20, 30), nn.ReLU(), nn.Linear(30, 3))
        steps = made(model, name, **options)
        assert bool(steps.defaults["fused"]) is (options == {})
        for _ in range(20):
            steps.zero_grad()
            model(torch.randn(8, 20)).square().mean().backward()
            steps.step()
        weights.append(nn.utils.parameters_to_vector(model.parameters()).detach())
    torch.testing.assert_close(*weights, rtol=1e-4, atol=1e-6)


def test_what_torch_cannot_fuse_is_stepped_as_ever() -> None:
    words = nn.EmbeddingBag(10, 3, sparse=True)
    plain = Optimizer(lr=0.05, momentum=0.0, weight_decay=0.0)  # all that sparse gradients allow
    steps = build_optimizer(replace(Recipe(), optimizer=plain), words)
    words(torch.tensor([[1, 2]])).sum().backward()
    steps.step()
    assert not steps.defaults["fused"]
    wave = nn.ParameterList([nn.Parameter(torch.ones(2, dtype=torch.complex64))])
    assert not made(wave).defaults["fused"]
    assert "fused" not in made(nn.Linear(2, 2), "rprop").defaults


def test_nesterov_is_refused_where_the_optimizer_would_ignore_it() -> None:
    for name in ("adamw", "rmsprop"):
        chosen = Optimizer(name, nesterov=True)
        with pytest.raises(UsageError, match=rf"optimizer.nesterov=true: {name} has no such momentum. Set it to false"):
            build_optimizer(replace(Recipe(), optimizer=chosen), nn.Linear(2, 2))
    steps = build_optimizer(replace(Recipe(), optimizer=Optimizer(nesterov=True)), nn.Linear(2, 2))
    assert steps.defaults["nesterov"] is True
