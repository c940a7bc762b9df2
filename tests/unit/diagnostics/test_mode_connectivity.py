"""The line between two networks: labels of every kind, and weights that layers share."""

import copy
import math

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from evenly.diagnostics import mode_connectivity
from evenly.diagnostics.mode_connectivity import connection_numbers
from evenly.errors import UsageError


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


class Tied(nn.Module):
    """Two layers with one weight."""

    def __init__(self, seed: int, *, tied: bool = True) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False)
        with torch.no_grad():
            self.a.weight.copy_(torch.randn(2, 2, generator=generator(seed)))
        if tied:
            self.b.weight = self.a.weight

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.b(torch.tanh(self.a(x)))
        return out


X = torch.randn(60, 2, generator=generator(5))


@pytest.mark.parametrize("kind", ["0 and 1", "-1 and 1", "bytes"])
def test_a_perfect_classifier_of_one_output_has_no_errors_whatever_the_labels_are_called(kind: str) -> None:
    model, other = nn.Linear(2, 1), nn.Linear(2, 1)
    positive = model(X)[:, 0] > 0
    labels = {"0 and 1": positive.long(), "-1 and 1": 2 * positive.long() - 1, "bytes": positive.to(torch.uint8)}[kind]
    line = mode_connectivity(model, other, (X, labels), points=2)
    assert line.errors[0] == 0
    wrong = (other(X)[:, 0] > 0) != positive
    assert line.errors[1] == pytest.approx(float(wrong.double().mean()))


def test_floating_targets_have_a_loss_and_no_errors() -> None:
    model = nn.Linear(2, 1)
    line = mode_connectivity(model, model, (X, model(X)[:, 0].detach()), points=2)
    assert line.losses == (0, 0)
    assert all(map(math.isnan, line.errors))
    assert connection_numbers(line, ["a", "b"])["mode_connectivity"]["errors"] == [None, None]


def test_tied_weights_are_mixed_once() -> None:
    first, second = Tied(0), Tied(1)
    labels = torch.arange(60) % 2
    line = mode_connectivity(first, second, (X, labels), points=3)
    middle = copy.deepcopy(first)
    with torch.no_grad():
        middle.a.weight.copy_((first.a.weight + second.a.weight) / 2)
    expected = [F.cross_entropy(model(X), labels).item() for model in (first, middle, second)]
    assert line.losses == pytest.approx(expected)
    with pytest.raises(UsageError, match=r"'b.weight' is shared between layers in one network and not in the other"):
        mode_connectivity(first, Tied(1, tied=False), (X, labels))
