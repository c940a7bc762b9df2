"""Lightning's automatic optimization, the real one, with the optimizer face."""

import runpy
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

import evenly
from evenly.optim import SharpnessAware

# Lightning imports torchmetrics, which imports torchvision, whose operators may not fit the torch at hand.
runpy.run_path(str(Path(__file__).parents[1] / "numerics" / "torchvision_guard.py"))["torchvision"]()
lightning = pytest.importorskip("pytorch_lightning")
pytestmark = pytest.mark.filterwarnings("ignore")  # What Lightning remarks on is not ours.

RULES = {"sam": evenly.SAM, "asam": evenly.ASAM, "lsam": evenly.LSAM, "gsam": evenly.GSAM}


def network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))


def batches() -> list[tuple[Tensor, Tensor]]:
    numbers = torch.Generator().manual_seed(1)
    return [(torch.randn(6, 4, generator=numbers), torch.randint(3, (6,), generator=numbers)) for _ in range(5)]


class Module(lightning.LightningModule):
    """Nothing but a network, a loss and the optimizer face."""

    def __init__(self, rule) -> None:
        super().__init__()
        self.net, self.rule = network(), rule

    def training_step(self, batch: list[Tensor], _: int) -> Tensor:
        x, y = batch
        return F.cross_entropy(self.net(x), y)

    def configure_optimizers(self) -> dict:
        optimizer = SharpnessAware(
            torch.optim.SGD(self.net.parameters(), lr=0.1, momentum=0.9), self.rule(self.net, rho=0.1)
        )
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "interval": "step"}}


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_automatic_optimization_equals_a_loop_of_ones_own_bit_for_bit(rule, tmp_path: Path) -> None:
    x, y = (torch.cat(parts) for parts in zip(*batches(), strict=True))
    module = Module(rule)
    trainer = lightning.Trainer(
        max_epochs=2,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=tmp_path,
    )
    trainer.fit(module, DataLoader(TensorDataset(x, y), batch_size=6))

    net = network()
    sam, optimizer = rule(net, rho=0.1), torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
    for _ in range(2):
        for x_B, y_B in batches():
            optimizer.zero_grad()
            sam.backward(lambda x=x_B, y=y_B: F.cross_entropy(net(x), y))
            optimizer.step()
            scheduler.step()
    assert trainer.global_step == 10
    assert all(
        torch.equal(a, b) for a, b in zip(module.net.state_dict().values(), net.state_dict().values(), strict=True)
    )
