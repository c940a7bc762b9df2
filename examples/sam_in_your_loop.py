"""SAM in a plain training loop: SGD, SAM, ASAM and LSAM on scikit-learn's digits.

    python examples/sam_in_your_loop.py

One line of your loop changes: `loss.backward()` becomes `sam.backward(lambda: ...)`. There are few training examples
(500) and a tenth of their labels are wrong, a setting in which sharpness-aware training can help.
Takes about 15 seconds on one core; prints the test error in %, mean ± standard deviation over 5 seeds, and the run time
relative to SGD. The network is so small that forward and backward passes take only part of the time.
"""

import statistics
import time

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F

import evenly

METHODS = {
    "SGD": lambda model: evenly.SAM(model, rho=0.0),
    "SAM": lambda model: evenly.SAM(model, rho=0.1),
    "ASAM": lambda model: evenly.ASAM(model, rho=1.0),
    "LSAM": lambda model: evenly.LSAM(model, rho=0.5),
}
NUM_TRAIN, NUM_EPOCHS, BATCH, WRONG = 500, 30, 50, 0.1


def digits(rng: torch.Generator) -> tuple[torch.Tensor, ...]:
    """Train and test halves of the digits; a share of the training labels is replaced by a random one."""
    images, labels = load_digits(return_X_y=True)
    x, y = torch.tensor(images, dtype=torch.float32) / 16, torch.tensor(labels)
    order = torch.randperm(len(x), generator=rng)
    train, test = order[:NUM_TRAIN], order[NUM_TRAIN:]
    wrong = torch.rand(NUM_TRAIN, generator=rng) < WRONG
    y_train = torch.where(wrong, torch.randint(10, (NUM_TRAIN,), generator=rng), y[train])
    return x[train], y_train, x[test], y[test]


def run(method: str, seed: int) -> tuple[float, float]:
    """Test error in % and seconds."""
    rng = torch.Generator().manual_seed(seed)
    x, y, x_test, y_test = digits(rng)
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(64, 100), nn.BatchNorm1d(100), nn.ReLU(), nn.Linear(100, 10))
    sam = METHODS[method](model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, NUM_EPOCHS)
    start = time.perf_counter()
    for _ in range(NUM_EPOCHS):
        for batch in torch.randperm(len(x), generator=rng).split(BATCH):
            sam.backward(lambda batch=batch: F.cross_entropy(model(x[batch]), y[batch]))
            optimizer.step()
            optimizer.zero_grad()
        schedule.step()
    seconds = time.perf_counter() - start
    with torch.no_grad():
        error = (model.eval()(x_test).argmax(1) != y_test).float().mean().item()
    return 100 * error, seconds


def main() -> None:
    """Train every method on the same seeds, in turns, and print the table."""
    torch.set_num_threads(1)
    results: dict[str, list[tuple[float, float]]] = {method: [] for method in METHODS}
    for seed in range(5):
        for method in METHODS:
            results[method].append(run(method, seed))
    sgd_seconds = statistics.median(seconds for _, seconds in results["SGD"])
    print(f"{'':6}{'test error %':>16}{'time / SGD':>12}")
    for method, runs in results.items():
        errors = [error for error, _ in runs]
        cost = statistics.median(seconds for _, seconds in runs) / sgd_seconds
        print(f"{method:6}{statistics.mean(errors):9.2f} ± {statistics.stdev(errors):.2f}{cost:12.2f}")


if __name__ == "__main__":
    main()
