"""Parameter counts against the published ones, and against sums written out by hand."""

from collections.abc import Callable

import pytest
import torch
from torch import nn

from evenly.models.catalogue import CATALOGUE
from evenly.models.vgg import VGG19


def count(name: str, shape: tuple[int, ...], num_classes: int, **options: object) -> int:
    with torch.device("meta"):  # shapes without memory: the official VGG alone has 560 MB
        model: nn.Module = CATALOGUE[name].function()(shape, num_classes, **options)
    return sum(p.numel() for p in model.parameters())


@pytest.mark.parametrize(
    ("name", "shape", "num_classes", "published"),
    [
        # torchvision's model pages, "Number of parameters"
        ("resnet18", (3, 224, 224), 1000, 11_689_512),
        ("resnet50", (3, 224, 224), 1000, 25_557_032),
        ("densenet121", (3, 224, 224), 1000, 7_978_856),
        ("vgg19-bn", (3, 224, 224), 1000, 143_678_248),
        # the same with a head of ten classes, and Springer et al.'s network
        ("vgg19-bn", (3, 32, 32), 10, 139_622_218),
        ("convnet", (3, 64, 32), 2, 102_978),
        # Andriushchenko & Flammarion's PreAct ResNet-18: kuangliu's 11,171,146 and a last BatchNorm's 1,024
        ("preact-resnet18", (3, 32, 32), 10, 11_171_146 + 1_024),
    ],
)
def test_published_counts(name: str, shape: tuple[int, ...], num_classes: int, published: int) -> None:
    assert count(name, shape, num_classes) == published


def linear(fan_in: int, fan_out: int, bias: bool = True) -> int:
    return fan_in * fan_out + bias * fan_out


def norm(width: int) -> int:
    return 2 * width


def preact(blocks: tuple[int, ...], width: int, num_classes: int) -> int:
    total = 27 * width
    for stage, num in enumerate(blocks):
        inner, before = width * 2**stage, width * 2 ** max(stage - 1, 0)
        first = norm(before) + 9 * before * inner + norm(inner) + 9 * inner * inner + (before * inner if stage else 0)
        other = 2 * norm(inner) + 18 * inner * inner
        total += first + (num - 1) * other
    return total + norm(8 * width) + linear(8 * width, num_classes)


def vit(patch: int, side: int, width: int, depth: int, inner: int, mlp: int, num_classes: int) -> int:
    pixels = 3 * patch * patch
    embedding = norm(pixels) + linear(pixels, width) + norm(width) + width + (1 + (side // patch) ** 2) * width
    attention = norm(width) + linear(width, 3 * inner, bias=False) + linear(inner, width)
    block = attention + norm(width) + linear(width, mlp) + linear(mlp, width)
    return embedding + depth * block + norm(width) + linear(width, num_classes)


BY_HAND: list[tuple[str, tuple[int, ...], int, dict[str, object], Callable[[], int]]] = [
    ("mlp", (3, 32, 32), 10, {}, lambda: linear(3072, 512) + linear(512, 512) + linear(512, 10)),
    ("mlp", (64,), 3, {"depth": 1}, lambda: linear(64, 3)),
    ("cubic", (3, 50), 2, {}, lambda: linear(50, 40)),
    ("cubic", (3, 50), 2, {"single_logit": True, "bias": False}, lambda: 50 * 40),
    ("relu2", (15,), 2, {"width": 10}, lambda: linear(15, 10) + 10),
    (
        "disentangled",
        (4,),
        2,
        {},
        lambda: linear(4, 100) + norm(100) + linear(100, 100) + norm(100) + linear(100, 1) + 2,
    ),
    ("preact-resnet18", (3, 32, 32), 10, {"width": 16}, lambda: preact((2, 2, 2, 2), 16, 10)),
    ("preact-resnet34", (3, 32, 32), 100, {}, lambda: preact((3, 4, 6, 3), 64, 100)),
    ("vit-s", (3, 32, 32), 10, {}, lambda: vit(4, 32, 768, 8, 512, 2304, 10)),
    ("densenet121", (3, 32, 32), 10, {}, lambda: 7_978_856 - linear(1024, 1000) + linear(1024, 10)),
]


@pytest.mark.parametrize(("name", "shape", "num_classes", "options", "by_hand"), BY_HAND)
def test_counts_are_those_of_the_sums_by_hand(
    name: str, shape: tuple[int, ...], num_classes: int, options: dict[str, object], by_hand: Callable[[], int]
) -> None:
    assert count(name, shape, num_classes, **options) == by_hand()


def test_the_light_head_replaces_only_the_classifier_of_the_official_vgg() -> None:
    with torch.device("meta"):
        light = VGG19((3, 32, 32), 10, classifier="light")
        official = VGG19((3, 32, 32), 10)
    body = [p.shape for p in official.convolutions.parameters()]
    assert [p.shape for p in light.convolutions.parameters()] == body
    assert sum(p.numel() for p in light.parameters()) == sum(map(torch.Size.numel, body)) + linear(512, 10)
