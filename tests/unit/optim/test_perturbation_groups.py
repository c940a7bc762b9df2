"""How batches are divided, and which parameters a compiled step is about."""

import copy

import pytest
import torch
from torch import nn

import evenly
from evenly.errors import UsageError
from evenly.optim.compiled import Compiled
from evenly.optim.groups import divided


@pytest.mark.parametrize(
    ("m", "ranks", "sizes", "spans"),
    [(8, 1, [8], False), (8, 2, [8], False), (16, 2, [8], True), (4, 2, [4, 4], False), (1, 1, [1] * 8, False)],
)
def test_a_group_is_a_divisor_of_what_a_rank_holds_or_all_ranks_together(
    m: int, ranks: int, sizes: list[int], spans: bool
) -> None:
    groups, spanning = divided((torch.arange(8),), m, ranks)
    assert ([len(group[0]) for group in groups], spanning) == (sizes, spans)


def test_what_is_offered_instead_is_taken() -> None:
    with pytest.raises(UsageError, match=r"take m from 1, 2, 4, 8 \(16 for all ranks\)"):
        divided((torch.arange(8),), 3, 2)
    for m in (1, 2, 4, 8, 16):
        assert divided((torch.arange(8),), m, 2)[0]


def test_a_compiled_step_follows_which_parameters_are_frozen() -> None:
    rng = torch.Generator().manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 3, bias=False), nn.Tanh(), nn.Linear(3, 3, bias=False))
    with torch.no_grad():
        for p in net.parameters():
            p.copy_(torch.randn(p.shape, generator=rng))
    x = torch.randn(4, 3, generator=rng)
    fast = Compiled(evenly.SAM(net, rho=0.3), lambda x: net(x).square().mean(), backend="eager")
    for frozen, free in ((0, 2), (2, 0)):  # as many parameters each time, and of the same shape
        net[frozen].requires_grad_(False)
        net[free].requires_grad_(True)
        net.zero_grad()
        fast.backward(x)
        found = net[free].weight.grad.clone()
        twin = copy.deepcopy(net)
        twin.zero_grad()
        evenly.SAM(twin, rho=0.3).backward(lambda twin=twin: twin(x).square().mean())
        torch.testing.assert_close(found, twin[free].weight.grad)


def test_a_compiled_step_in_double_precision_has_a_radius_in_double_precision() -> None:
    net = nn.Linear(3, 2).double()
    x = torch.linspace(-1, 1, 12, dtype=torch.float64).view(4, 3)
    Compiled(evenly.SAM(net, rho=0.1), lambda x: net(x).square().mean(), backend="eager").backward(x)
    found = net.weight.grad.clone()
    net.zero_grad()
    evenly.SAM(net, rho=0.1).backward(lambda: net(x).square().mean())
    torch.testing.assert_close(found, net.weight.grad, rtol=1e-13, atol=0)
