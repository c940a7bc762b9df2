"""Stability of the optimizers that people use, and of many classes: against plain SGD, Monte Carlo and passes."""

import itertools
import sys
import time
from collections.abc import Iterator

import torch
from torch import nn
from torch.nn import functional as F

from benchmarks.bench_instruments import convnet
from benchmarks.bench_stability import cube, network
from benchmarks.harness import benchmark, interleaved
from evenly.curvature import gram as gram_of
from evenly.curvature.capture import capture
from evenly.stability import Problem, mean_square_threshold
from evenly.stability.networks import RANK, network_problem


@benchmark(
    "stability-momentum",
    claim="exact threshold with momentum 0.9 from the Gram of 1,000 examples, against plain SGD's: time",
    at_most=3,
    repeats=3,
)
def momentum() -> Iterator[float]:
    torch.set_num_threads(1)
    gram = network(100, 50).gram(cube(1000, 100))

    def threshold(beta: float) -> float:
        return mean_square_threshold(Problem.from_gram(gram), batch=10, momentum=beta)

    yield from interleaved(lambda: threshold(0.9), lambda: threshold(0.0), warm_up=0)


@benchmark(
    "stability-same-batch",
    claim="exact threshold of SAM on its own batch, n = 100, against Monte Carlo bisection to 1 % (40,000 runs)",
    at_least=100,
    repeats=1,
)
def same_batch() -> Iterator[float]:
    torch.set_num_threads(1)
    gram, ratio, batch = network(100, 50).gram(cube(100, 100)), 0.1, 10
    seeds = itertools.count()

    def exact() -> float:
        return mean_square_threshold(Problem.from_gram(gram), batch=batch, rho_over_alpha=ratio, ascent="batch")

    def bisection() -> None:
        """Seven halvings by whether E‖residual‖² of 40,000 runs grows from step 20 to step 40."""
        rng = torch.Generator().manual_seed(next(seeds))
        low, high = 0.0, 2 / float(torch.linalg.eigvalsh(gram)[-1] / 100)
        for _ in range(7):
            lr, sizes = (low + high) / 2, []
            residual = gram @ torch.randn(100, 40_000, generator=rng, dtype=torch.float64)
            for step in range(40):
                drawn = (torch.rand(100, 40_000, generator=rng) < batch / 100).double() / batch
                climbed = residual + ratio * gram @ (drawn * residual)
                residual = residual - lr * gram @ (drawn * climbed)
                if step in (19, 39):
                    sizes.append(float(residual.square().sum()))
            low, high = (low, lr) if sizes[1] > sizes[0] else (lr, high)

    yield from interleaved(exact, bisection, warm_up=0)


def classifier(num: int) -> tuple[nn.Module, torch.Tensor, torch.Tensor]:
    """A network of ten classes, trained for a few steps."""
    torch.set_num_threads(1)
    rng = torch.Generator().manual_seed(0)
    y = torch.arange(num) % 10
    x = torch.randn(10, 64, generator=rng)[y] + torch.randn(num, 64, generator=rng)
    model = nn.Sequential(nn.Linear(64, 100), nn.ReLU(), nn.Linear(100, 10))
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.randn(p.shape, generator=rng) * (2 / p.shape[-1]) ** 0.5 if p.ndim > 1 else p * 0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(100):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
    return model, x, y


@benchmark(
    "stability-classes",
    claim="threshold of 500 examples of ten classes, in 20 forward and backward passes plus 10 s: time",
    at_most=1,
    repeats=3,
)
def ten_classes() -> Iterator[float]:
    model, x, y = classifier(500)
    while True:
        start = time.process_time()
        F.cross_entropy(model(x), y).backward()
        passes = time.process_time() - start
        start = time.process_time()
        mean_square_threshold(network_problem(model, (x, y), rank=RANK), batch=64)
        yield (time.process_time() - start) / (20 * passes + 10)


@benchmark(
    "stability-classes-growth",
    claim="threshold of 1,000 examples of ten classes against 500: CPU time; quadratic growth is 4",
    at_most=4.4,
    repeats=3,
)
def growth() -> Iterator[float]:
    sizes = {num: classifier(num) for num in (500, 1000)}

    def run(num: int) -> float:
        model, x, y = sizes[num]
        return mean_square_threshold(network_problem(model, (x, y), rank=RANK), batch=64)

    yield from interleaved(lambda: run(1000), lambda: run(500), clock=time.process_time)


def checked_against_unchecked(model: nn.Module, x: torch.Tensor) -> Iterator[float]:
    room = sys.modules["evenly.curvature.gram"]  # the package's `gram` is the function

    def unchecked() -> None:
        def without(*args: object, check: bool = True) -> object:
            return capture(*args, check=False)  # type: ignore[arg-type]

        room.capture = without  # type: ignore[attr-defined]
        try:
            gram_of(model, x)
        finally:
            room.capture = capture  # type: ignore[attr-defined]

    yield from interleaved(lambda: gram_of(model, x), unchecked, warm_up=3)


@benchmark(
    "stability-gram-check",
    claim="Gram of 1,000 examples of a 100-50-1 network with the check of every example, against the same without: "
    "time",
    at_most=1.1,
    repeats=15,
)
def gram_check() -> Iterator[float]:
    torch.set_num_threads(1)
    x = torch.randn(1000, 100, generator=torch.Generator().manual_seed(0))
    yield from checked_against_unchecked(nn.Sequential(nn.Linear(100, 50), nn.ReLU(), nn.Linear(50, 1)), x)


@benchmark(
    "stability-gram-check-cnn",
    claim="Gram of 200 examples of a small CNN with the check of every example, against the same without: time",
    at_most=1.1,
    repeats=15,
)
def gram_check_of_convolutions() -> Iterator[float]:
    model, batches = convnet(trained=False)
    model[7] = nn.Linear(512, 1)  # type: ignore[operator]
    yield from checked_against_unchecked(model, batches[0][0][:200])
