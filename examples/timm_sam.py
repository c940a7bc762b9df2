"""SAM with timm's factories: its model, optimizer and scheduler, in a loop of your own.

    python examples/timm_sam.py

Scikit-learn's digits, scaled up, in timm's smallest ResNet with AdamW and a cosine schedule with warm-up. timm's
training script passes no closure to its optimizers, so the loop is written out. Needs `pip install "evenly[timm]"`;
takes about a minute.
"""

import evenly.integrations.torchvision  # first: torchvision may not fit torch

# isort: split
import timm
import torch
from sklearn.datasets import load_digits
from timm.optim import create_optimizer_v2
from timm.scheduler import create_scheduler_v2
from torch.nn import functional as F

import evenly

EPOCHS, BATCH = 6, 25


def main() -> None:
    """Train, and print the loss and the test error after every epoch."""
    torch.manual_seed(0)
    images, labels = load_digits(return_X_y=True)
    x = F.interpolate(torch.tensor(images, dtype=torch.float32).view(-1, 1, 8, 8) / 16, size=32)
    y = torch.tensor(labels)
    model = timm.create_model("test_resnet", num_classes=10, in_chans=1)
    optimizer = create_optimizer_v2(model, opt="adamw", lr=2e-3, weight_decay=0.05)
    scheduler, _ = create_scheduler_v2(optimizer, sched="cosine", num_epochs=EPOCHS, warmup_epochs=1)
    sam = evenly.SAM(model, rho=0.05)
    for epoch in range(EPOCHS):
        model.train()
        total = 0.0
        for rows in torch.randperm(500).split(BATCH):
            loss = sam.backward(lambda rows=rows: F.cross_entropy(model(x[rows]), y[rows]))
            optimizer.step()
            optimizer.zero_grad()
            total += loss.item() * len(rows)
        scheduler.step(epoch + 1)
        with torch.no_grad():
            error = (model.eval()(x[500:1000]).argmax(1) != y[500:1000]).float().mean().item()
        print(f"epoch {epoch + 1}: loss {total / 500:.3f}, test error {100 * error:.1f} %")


if __name__ == "__main__":
    main()
