"""A step ends when an optimizer takes it, whatever trace that leaves on the tensors."""

import copy
import gc
import weakref

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import evenly

KINDS = {"sgd": torch.optim.SGD, "adamw": torch.optim.AdamW, "adagrad": torch.optim.Adagrad}


def net() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3))


def train(model: nn.Module, sam, optimizer, steps: int = 6) -> None:
    """In the order of frameworks that clear gradients only before backward."""
    numbers = torch.Generator().manual_seed(1)
    for _ in range(steps):
        x, y = torch.randn(8, 4, generator=numbers), torch.randint(3, (8,), generator=numbers)
        loss = sam.loss(lambda x=x, y=y: F.cross_entropy(model(x), y))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_a_fused_optimizer_ends_a_step_as_any_other(kind) -> None:
    found = []
    for fused in (False, True):
        model = net()
        sam = evenly.LookSAM(model, rho=0.5, k=2)
        train(model, sam, kind(model.parameters(), lr=0.1, fused=fused))
        assert (sam.num_steps, sam.micro) == (6, 0)
        found.append([p.detach() for p in model.parameters()])
    for a, b in zip(*found, strict=True):
        torch.testing.assert_close(a, b)


def test_a_copy_is_told_of_its_own_optimizer_only() -> None:
    model = net()
    sam = evenly.LookSAM(model, k=2)
    twin, other = copy.deepcopy((model, sam))
    train(twin, other, torch.optim.SGD(twin.parameters(), lr=0.1, fused=True))
    assert (other.num_steps, sam.num_steps) == (6, 0)


def test_the_step_of_another_optimizer_ends_nothing() -> None:
    model, x = net(), torch.ones(2, 4)
    sam = evenly.SAM(model)
    elsewhere = nn.Parameter(torch.ones(1))
    elsewhere.grad = torch.ones(1)
    sam.backward(lambda: model(x).sum())
    torch.optim.SGD([elsewhere], lr=0.1, fused=True).step()
    sam.backward(lambda: model(x).sum())
    assert (sam.num_steps, sam.micro) == (1, 1)


def test_rules_are_not_kept_alive() -> None:
    model = net()
    sam = evenly.SAM(model)
    gone = weakref.ref(sam)
    train(model, sam, torch.optim.SGD(model.parameters(), lr=0.1), steps=1)
    del sam
    gc.collect()
    assert gone() is None


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch about itself
def test_compiled_steps_still_work() -> None:
    torch._dynamo.reset()
    model = net()
    sam, optimizer = evenly.SAM(model), torch.optim.SGD(model.parameters(), lr=0.1)
    step = torch.compile(optimizer.step, backend="eager")
    for _ in range(2):
        sam.backward(lambda: model(torch.ones(2, 4)).square().sum())
        step()
        optimizer.zero_grad()
    assert sam.num_steps == 2
