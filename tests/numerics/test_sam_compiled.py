"""A whole step in one graph equals the eager one."""

import copy

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import evenly
from evenly.errors import UsageError
from evenly.optim.compiled import Compiled

FAMILY = {
    "sam": lambda net: evenly.SAM(net, rho=0.3),
    "asam": lambda net: evenly.ASAM(net, rho=0.3),
    "usam": lambda net: evenly.USAM(net, rho=0.3),
    "part": lambda net: evenly.SAM(net, rho=0.3, where="2.*", weight_decay=0.1, every=2),
}


def problem() -> tuple[nn.Module, Tensor, Tensor]:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 1)), torch.randn(5, 4), torch.rand(5, 1).round()


@pytest.mark.parametrize("build", FAMILY.values(), ids=FAMILY)
def test_gradients_and_steps_equal_the_eager_ones(build) -> None:
    net, x, y = problem()
    twin = copy.deepcopy(net)
    loss_of = F.binary_cross_entropy_with_logits
    fast = Compiled(build(net), lambda x, y: loss_of(net(x), y), backend="aot_eager")
    slow = build(twin)
    pointers = [p.data_ptr() for p in net.parameters()]
    for turn in range(4):
        twin.zero_grad()
        net.zero_grad()
        expected = slow.backward(lambda x, y: loss_of(twin(x), y), x, y)
        if turn < 2:
            loss = fast.backward(x, y)
            for p, q in zip(net.parameters(), twin.parameters(), strict=True):
                torch.testing.assert_close(p.grad, q.grad)
                p.data -= 0.1 * p.grad
        else:
            loss = fast.step(x, y, lr=0.1)
        for q in twin.parameters():
            q.data -= 0.1 * q.grad
        torch.testing.assert_close(loss, expected)
    for p, q in zip(net.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(p, q)
    assert [p.data_ptr() for p in net.parameters()] == pointers


def test_a_gradient_that_is_not_finite_moves_nothing() -> None:
    net, x, _ = problem()
    fast = Compiled(evenly.SAM(net, rho=0.3), lambda x: (net(x) * x.sum()).sum(), backend="eager")
    before = [p.detach().clone() for p in net.parameters()]
    fast.backward(torch.full_like(x, torch.inf))
    assert all(torch.equal(p, old) for p, old in zip(net.parameters(), before, strict=True))


@pytest.mark.parametrize(
    "build",
    [
        lambda net: evenly.SAM(list(net.parameters())),
        lambda net: evenly.SAM(net, m=2),
        lambda net: evenly.SAM(net, fraction=0.5),
        lambda net: evenly.GSAM(net),
        lambda net: evenly.SAM(nn.Sequential(net, nn.BatchNorm1d(1))),
    ],
)
def test_what_cannot_be_compiled_is_refused(build) -> None:
    net, *_ = problem()
    with pytest.raises(UsageError, match=r"compiled"):
        Compiled(build(net), lambda x: net(x).sum())


def test_a_learning_rate_that_is_none_is_refused() -> None:
    net, x, _ = problem()
    with pytest.raises(UsageError, match="lr=0"):
        Compiled(evenly.SAM(net), lambda x: net(x).sum(), backend="eager").step(x, lr=0.0)
