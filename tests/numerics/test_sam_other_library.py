"""Equal to pytorch_optimizer where it is right: SAM, GSAM, LookSAM (two-step, one tensor), FriendlySAM."""

import copy
import types

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import evenly

peer = pytest.importorskip("pytorch_optimizer")
STEPS = 12


def network() -> tuple[nn.Module, Tensor, Tensor]:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 3)).double()
    return net, torch.randn(STEPS, 8, 4, dtype=torch.float64), torch.randint(3, (STEPS, 8))


def ours(net: nn.Module, sam, xs: Tensor, ys: Tensor) -> None:
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    for x, y in zip(xs, ys, strict=True):
        sam.backward(lambda x=x, y=y: F.cross_entropy(net(x), y))
        optimizer.step()
        optimizer.zero_grad()


def theirs(net: nn.Module, optimizer, xs: Tensor, ys: Tensor) -> None:
    for x, y in zip(xs, ys, strict=True):
        F.cross_entropy(net(x), y).backward()
        optimizer.first_step(zero_grad=True)
        F.cross_entropy(net(x), y).backward()
        optimizer.second_step(zero_grad=True)


def close(a: nn.Module, b: nn.Module, tolerance: float = 1e-7) -> None:
    """Their norms are summed in single precision, which leaves a few 1e-9."""
    for p, q in zip(a.parameters(), b.parameters(), strict=True):
        torch.testing.assert_close(p, q, rtol=tolerance, atol=tolerance)


def test_sam() -> None:
    net, x, y = network()
    twin = copy.deepcopy(net)
    ours(net, evenly.SAM(net, rho=0.2), x, y)
    theirs(twin, peer.SAM(twin.parameters(), torch.optim.SGD, rho=0.2, lr=0.1, momentum=0.9), x, y)
    close(net, twin)


def test_friendly_sam() -> None:
    net, x, y = network()
    twin = copy.deepcopy(net)
    ours(net, evenly.FriendlySAM(net, rho=0.2, sigma=0.8, decay=0.7), x, y)
    options = {"rho": 0.2, "sigma": 0.8, "lmbda": 0.7, "lr": 0.1, "momentum": 0.9}
    theirs(twin, peer.FriendlySAM(twin.parameters(), torch.optim.SGD, **options), x, y)
    close(net, twin)


def test_gsam() -> None:
    net, x, y = network()
    twin = copy.deepcopy(net)
    ours(net, evenly.GSAM(net, rho=0.2, alpha=0.3), x, y)
    base = torch.optim.SGD(twin.parameters(), lr=0.1, momentum=0.9)
    constant = types.SimpleNamespace(step=lambda: 0.2)
    optimizer = peer.GSAM(twin.parameters(), base, twin, constant, alpha=0.3)
    for a, b in zip(x, y, strict=True):
        optimizer.set_closure(F.cross_entropy, a, b)
        optimizer.step()
    close(net, twin)


def test_look_sam_of_one_tensor() -> None:
    """Theirs projects tensor by tensor, the paper's equations are over the whole network: one tensor is both."""
    torch.manual_seed(0)
    net = nn.Linear(4, 3, bias=False).double()
    twin = copy.deepcopy(net)
    _, x, y = network()
    ours(net, evenly.LookSAM(net, rho=0.2, k=3, alpha=0.6), x, y)
    optimizer = peer.LookSAM(twin.parameters(), torch.optim.SGD, rho=0.2, k=3, alpha=0.6, lr=0.1, momentum=0.9)
    for a, b in zip(x, y, strict=True):
        F.cross_entropy(twin(a), b).backward()
        if optimizer.get_step() % 3 == 0:
            optimizer.first_step(zero_grad=True)
            F.cross_entropy(twin(a), b).backward()
        optimizer.second_step(zero_grad=True)
    close(net, twin, 1e-6)  # They add 1e-8 to a norm.
