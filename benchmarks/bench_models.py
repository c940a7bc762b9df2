"""Models: a training step of ours against torchvision's of the same architecture, batch and weights."""

import runpy
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from benchmarks.harness import Missing, benchmark, interleaved
from evenly.models import build


def torchvision_models():
    guard = Path(__file__).parents[1] / "tests" / "numerics" / "torchvision_guard.py"
    module = runpy.run_path(str(guard))["torchvision"]()
    if module is None:
        raise Missing("Install torchvision.")
    return module.models


def step(model: nn.Module, images: Tensor, labels: Tensor) -> Callable[[], None]:
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)

    def once() -> None:
        optimizer.zero_grad()
        cross_entropy(model(images), labels).backward()
        optimizer.step()

    return once


def race(name: str, side: int, num: int) -> Iterator[float]:
    torch.set_num_threads(1)
    ours = build(name, input_shape=(3, side, side), num_classes=10, rng=0)
    peer = getattr(torchvision_models(), name)(num_classes=10)
    rng = torch.Generator().manual_seed(0)
    images, labels = torch.randn(num, 3, side, side, generator=rng), torch.randint(10, (num,), generator=rng)
    yield from interleaved(step(ours, images, labels), step(peer, images, labels), warm_up=2)


@benchmark(
    "models-resnet18", claim="a training step of resnet18 on 16 images of 64×64 over torchvision's", at_most=1.05
)
def resnet18() -> Iterator[float]:
    yield from race("resnet18", 64, 16)


@benchmark(
    "models-densenet121", claim="a training step of densenet121 on 32 images of 32×32 over torchvision's", at_most=1.05
)
def densenet121() -> Iterator[float]:
    yield from race("densenet121", 32, 32)


@benchmark(
    "models-build",
    claim="building resnet50 with weights that are a pure function of rng over torchvision's constructor",
    at_most=1.05,
)
def build_resnet50() -> Iterator[float]:
    torch.set_num_threads(1)
    models = torchvision_models()
    yield from interleaved(
        lambda: build("resnet50", input_shape=(3, 64, 64), num_classes=10, rng=0),
        lambda: models.resnet50(num_classes=10),
    )
