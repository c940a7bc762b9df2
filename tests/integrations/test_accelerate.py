"""Accelerate: `backward=accelerator.backward`, with its accumulation, its autocast and its optimizer."""

import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

import evenly

runpy.run_path(str(Path(__file__).parents[1] / "numerics" / "torchvision_guard.py"))["torchvision"]()
accelerate = pytest.importorskip("accelerate")
pytestmark = pytest.mark.filterwarnings("ignore")


def network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))


def data() -> TensorDataset:
    numbers = torch.Generator().manual_seed(1)
    return TensorDataset(torch.randn(24, 4, generator=numbers), torch.randint(3, (24,), generator=numbers))


@pytest.mark.parametrize("name", ["SAM", "GSAM", "LookSAM", "FriendlySAM", "MSAM"])
@pytest.mark.parametrize("precision", ["no", "bf16"])
def test_accumulation_and_autocast_equal_a_loop_of_ones_own(name: str, precision: str) -> None:
    accelerate.state.AcceleratorState._reset_state(True)
    accelerate.state.GradientState._reset_state()
    accelerator = accelerate.Accelerator(cpu=True, gradient_accumulation_steps=2, mixed_precision=precision)
    model = network()
    prepared, optimizer, loader = accelerator.prepare(
        model, torch.optim.SGD(model.parameters(), lr=0.1), DataLoader(data(), batch_size=4)
    )
    sam = getattr(evenly, name)(prepared, rho=0.1, backward=accelerator.backward)
    for _ in range(2):
        for x, y in loader:
            with accelerator.accumulate(prepared), accelerator.autocast():
                sam.backward(lambda x=x, y=y: F.cross_entropy(prepared(x), y))
                optimizer.step()
                optimizer.zero_grad()
    assert sam.num_steps == 6

    net = network()
    sam, sgd = getattr(evenly, name)(net, rho=0.1), torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(2):
        for number, (x, y) in enumerate(DataLoader(data(), batch_size=4), 1):

            def closure(x: Tensor = x, y: Tensor = y) -> Tensor:
                with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
                    return F.cross_entropy(net(x).float(), y) / 2

            sam.backward(closure)
            if number % 2 == 0:
                sgd.step()
                sgd.zero_grad()
    for a, b in zip(model.parameters(), net.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)


RULES = ("SAM", "ASAM", "GSAM", "LookSAM", "FriendlySAM", "MSAM")


def two_processes(folder: Path) -> None:
    """What each of two processes does: every rule, on its own half of every batch."""
    accelerator = accelerate.Accelerator(cpu=True)
    weights = {}
    for name in RULES:
        model = network()
        prepared, optimizer, loader = accelerator.prepare(
            model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), DataLoader(data(), batch_size=6)
        )
        sam = getattr(evenly, name)(prepared, rho=0.1, backward=accelerator.backward)
        for _ in range(2):
            for x, y in loader:
                sam.backward(lambda x=x, y=y, net=prepared: F.cross_entropy(net(x), y))
                optimizer.step()
                optimizer.zero_grad()
        weights[name] = torch.cat([p.detach().flatten() for p in model.parameters()])
    torch.save(weights, folder / f"{os.environ['RANK']}.pt")


def test_two_processes_stay_bit_equal_and_equal_one_process_with_groups(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
    command += ["--rdzv-backend", "c10d", "--rdzv-endpoint", "127.0.0.1:0", __file__, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr[-3000:]
    one, other = (torch.load(tmp_path / f"{rank}.pt", weights_only=True) for rank in range(2))
    for name in RULES:
        assert torch.equal(one[name], other[name]), name
        net = network()
        sam = getattr(evenly, name)(net, rho=0.1, m=6)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
        for _ in range(2):
            for x, y in DataLoader(data(), batch_size=12):  # Accelerate hands batches of 6 to the two in turn
                sam.backward(lambda x, y, net=net: F.cross_entropy(net(x), y), x, y)
                optimizer.step()
                optimizer.zero_grad()
        alone = torch.cat([p.detach().flatten() for p in net.parameters()])
        torch.testing.assert_close(one[name], alone, rtol=1e-5, atol=1e-6, msg=lambda m, name=name: f"{name}: {m}")


if __name__ == "__main__":
    two_processes(Path(sys.argv[1]))
