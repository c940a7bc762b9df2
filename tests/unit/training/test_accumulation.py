"""Gradient accumulation: a batch in parts has the gradient of the whole."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from evenly.training.accumulation import in_parts

Loss = Callable[[Tensor], Tensor]


def parameters() -> tuple[nn.Parameter, nn.Parameter]:
    return nn.Parameter(torch.tensor([1.0, -2.0])), nn.Parameter(torch.tensor([0.5, 1.0]))


def gradients(loss: Loss, x: Tensor, params: tuple[nn.Parameter, ...], *, num: int) -> list[Tensor | None]:
    """By parts, or by torch's own backward pass where `num` is 1."""
    for p in params:
        p.grad = None
    (loss(x) if num == 1 else in_parts(loss, [x], num=num, params=params)).backward()  # type: ignore[no-untyped-call]
    return [None if p.grad is None else p.grad.clone() for p in params]


def as_sum(a: Tensor, b: Tensor, x: Tensor) -> Tensor:
    """Both parameters get one and the same tensor as their gradient."""
    return (x * (a + b)).sum(1).square().mean()


def as_number(a: Tensor, b: Tensor, x: Tensor) -> Tensor:
    """The gradients are single numbers, expanded."""
    return a.sum() * x.mean() + b.sum()


def as_view(a: Tensor, b: Tensor, x: Tensor) -> Tensor:
    """The gradients are views of one tensor."""
    return (torch.cat([a, b]) * x.mean()).sum()


@pytest.mark.parametrize("what", [as_sum, as_number, as_view])
@pytest.mark.parametrize("num", [2, 3, 7])
def test_gradients_that_share_memory_add_up(what: Callable[[Tensor, Tensor, Tensor], Tensor], num: int) -> None:
    params = parameters()
    x = torch.arange(14.0).view(7, 2) - 5
    whole, parts = (gradients(lambda x: what(*params, x), x, params, num=count) for count in (1, num))
    torch.testing.assert_close(parts, whole)


def test_a_parameter_that_only_a_later_part_uses_gets_its_gradient() -> None:
    a, b = parameters()
    unused = nn.Parameter(torch.ones(2))

    def loss(x: Tensor) -> Tensor:
        """Each half of the batch goes through a parameter of its own, as in a mixture of experts."""
        left, right = x[x[:, 0] < 0], x[x[:, 0] >= 0]
        total = torch.zeros(())
        for rows, p in ((left, a), (right, b)):
            if len(rows):
                total = total + (rows @ p).square().sum()
        return total / len(x)

    x = torch.tensor([[-1.0, 2.0], [-3.0, 1.0], [1.0, 1.0], [4.0, 0.0]])
    whole, parts = (gradients(loss, x, (a, b, unused), num=count) for count in (1, 2))
    assert parts[2] is None
    torch.testing.assert_close(parts[:2], whole[:2])
