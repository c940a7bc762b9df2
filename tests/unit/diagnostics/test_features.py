"""Which layer is read by default, and what a network without one is told."""

import pytest
import torch
from torch import Tensor, nn

from evenly.diagnostics import features, measure
from evenly.diagnostics.features import last_linear
from evenly.errors import DataError
from evenly.models import build


class HeadFirst(nn.Module):
    """Declares the head before the body."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(8, 2)
        self.body = nn.Sequential(nn.Linear(3, 8), nn.ReLU())
        self.spare = nn.Linear(3, 3)  # never called

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.head(self.body(x))
        return out


def test_features_are_the_input_of_the_linear_layer_that_is_called_last() -> None:
    model, x = HeadFirst(), torch.randn(5, 3, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(features(model, x), model.body(x).detach())
    torch.testing.assert_close(features(model, x), features(model, x, layer="head"))


def test_a_network_without_a_linear_layer_is_measured_in_all_else() -> None:
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    rng = torch.Generator().manual_seed(0)
    data = (torch.randn(12, 1, 5, 5, generator=rng), torch.arange(12) % 2)
    refused: dict[str, DataError] = {}
    found = measure(model, data, "sharpness", "rank", rng=rng, refused=refused)
    assert "lambda_max" in found
    assert list(refused) == ["rank"]
    assert "calls no linear layer" in str(refused["rank"])
    assert "--layer 0" in str(refused["rank"])


@pytest.mark.parametrize("name", ["mlp", "convnet", "preact-resnet18", "vit-s"])
def test_in_our_models_the_last_called_is_the_last_declared(name: str) -> None:
    shape = (12,) if name == "mlp" else (3, 32, 32)
    model = build(name, input_shape=shape, num_classes=2, rng=0).eval()
    declared = [n for n, module in model.named_modules() if isinstance(module, nn.Linear)]
    assert last_linear(model, torch.zeros(1, *shape)) == declared[-1]
