"""Layers that cannot be probed."""

import pytest
import torch
from torch import Tensor, nn

from evenly.data import load
from evenly.diagnostics import layer_probes
from evenly.errors import UsageError


class Twice(nn.Module):
    """Calls its first layer twice."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.b(torch.relu(self.a(torch.relu(self.a(x)))))
        return out


@pytest.mark.parametrize("layers", [["a"], ["a", "b"]])
def test_a_named_layer_that_is_called_twice_is_refused_and_not_left_out(layers: list[str]) -> None:
    splits, rng = load("spirals", num_train=20, num_test=200), torch.Generator().manual_seed(0)
    with pytest.raises(UsageError, match="layer 'a' is not called exactly once for every example"):
        layer_probes(Twice(), splits, rng=rng, refits=1, layers=layers)
    assert [found.layer for found in layer_probes(Twice(), splits, rng=rng, refits=1)] == ["b"]
