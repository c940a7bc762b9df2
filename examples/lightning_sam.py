"""SAM in Lightning, on scikit-learn's digits: one callback, and the module stays as it is.

    python examples/lightning_sam.py

Automatic optimization with two micro-batches per step. Needs `pip install "evenly[lightning]"`; takes some seconds.
"""

import evenly.integrations.torchvision  # first: torchvision may not fit torch

# isort: split
import logging
import warnings

import pytorch_lightning as lightning
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

import evenly
from evenly.integrations.lightning import SharpnessAwareTraining


class Digits(lightning.LightningModule):
    """A small network and its loss; nothing here knows of SAM."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(64, 100), nn.BatchNorm1d(100), nn.ReLU(), nn.Linear(100, 10))

    def training_step(self, batch: list[torch.Tensor], _: int) -> torch.Tensor:
        """The loss of a batch."""
        x, y = batch
        return F.cross_entropy(self.net(x), y)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """The optimizer stays Lightning's and yours."""
        return torch.optim.SGD(self.parameters(), lr=0.1, momentum=0.9)


def main() -> None:
    """Train with and without SAM, and print the test errors."""
    warnings.simplefilter("ignore")
    logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)
    images, labels = load_digits(return_X_y=True)
    x, y = torch.tensor(images, dtype=torch.float32) / 16, torch.tensor(labels)
    loader = DataLoader(TensorDataset(x[:500], y[:500]), batch_size=25, shuffle=True, drop_last=True)
    for name, callbacks in (("SGD", []), ("SAM", [SharpnessAwareTraining(evenly.SAM, rho=0.1)])):
        torch.manual_seed(0)
        module = Digits()
        trainer = lightning.Trainer(
            max_epochs=20, accumulate_grad_batches=2, callbacks=callbacks, accelerator="cpu", logger=False,
            enable_progress_bar=False, enable_model_summary=False, enable_checkpointing=False,
        )  # fmt: skip
        trainer.fit(module, loader)
        with torch.no_grad():
            error = (module.eval().net(x[500:]).argmax(1) != y[500:]).float().mean().item()
        print(f"{name}: {100 * error:.2f} % test error after {trainer.global_step} steps")


if __name__ == "__main__":
    main()
