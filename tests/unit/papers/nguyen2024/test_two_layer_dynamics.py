"""The alignments along an ensemble's training are those along a plain loop with autograd."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from evenly.data import load
from evenly.data.labelled import Labelled
from evenly.papers.experiment import Context
from evenly.papers.nguyen2024 import two_layer_dynamics
from evenly.papers.nguyen2024.two_layer_dynamics import alignment, alignment_curves, errors, network
from evenly.rng import key

HERE = Context(Path("unused"))
SIZE: dict[str, Any] = {"num": 60, "iterations": 30, "horizon": 20, "every": 5, "lr": 0.5}


def plain(data: Labelled, seed: int, *, bias: bool, rho: float, steps: int, lr: float) -> list[Tensor]:
    """Weights of the filters after every step of a loop that knows nothing of ensembles."""
    model = network(seed, bias=bias)
    x, y = data.gather(range(len(data))), data.labels

    def backward() -> None:
        model.zero_grad()
        out = model(x)
        loss = F.cross_entropy(out, y) if bias else F.softplus(-(2.0 * y - 1) * out[:, 0]).mean()
        loss.backward()

    seen = [model.filters.weight.detach().clone()]
    for _ in range(steps):
        backward()
        if rho:
            kept = [p.detach().clone() for p in model.parameters()]
            length = torch.stack([p.grad.norm() for p in model.parameters()]).norm()
            with torch.no_grad():
                for p in model.parameters():
                    p += rho * p.grad / length
            backward()
            with torch.no_grad():
                for p, old in zip(model.parameters(), kept, strict=True):
                    p.copy_(old)
        with torch.no_grad():
            for p in model.parameters():
                p -= lr * p.grad
        seen.append(model.filters.weight.detach().clone())
    return seen


@pytest.mark.parametrize("bias", [True, False])
def test_alignments_of_gd_and_sam_are_those_of_a_plain_loop(bias: bool) -> None:
    found = alignment_curves(HERE, seeds=[3, 4], name="b", beta_hard=0.4, bias=bias, rho=0.02, **SIZE)
    data = load("patches", seed=4, num_train=60, num_test=60, beta_hard=0.4)
    for rule, rho in (("gd", 0.0), ("sam", 0.02)):
        weights = plain(data.train, 4, bias=bias, rho=rho, steps=30, lr=0.5)
        easy, hard = ([float((w @ data.train.planted[v]).abs().max()) for w in weights] for v in ("easy", "hard"))
        assert found.values[f"b.{rule}.easy"][4] == pytest.approx(easy[20], rel=1e-4)
        assert found.values[f"b.{rule}.hard"][4] == pytest.approx(hard[20], rel=1e-4)
        assert found.values[f"b.{rule}.hard.end"][4] == pytest.approx(hard[30], rel=1e-4)
        gaps = [easy[t] - hard[t] for t in (5, 10, 15, 20)]
        assert found.values[f"b.{rule}.gap"][4] == pytest.approx(sum(gaps) / 4, rel=1e-3, abs=1e-6)


def test_a_sam_that_descends_instead_of_ascending_would_be_noticed() -> None:
    data = load("patches", seed=4, num_train=60, num_test=60, beta_hard=0.4)
    v = data.train.planted["easy"]
    right, wrong = (plain(data.train, 4, bias=True, rho=rho, steps=30, lr=0.5)[-1] @ v for rho in (0.02, -0.02))
    found = alignment_curves(HERE, seeds=[4], name="b", beta_hard=0.4, rho=0.02, **SIZE).values["b.sam.easy.end"][4]
    assert found == pytest.approx(float(right.abs().max()), rel=1e-4)
    assert abs(found - float(wrong.abs().max())) > 0.05 * found


def test_gd_and_sam_start_from_the_same_weights_and_every_seed_from_its_own() -> None:
    found = alignment_curves(HERE, seeds=[0, 1], name="b", beta_hard=0.2, **SIZE).values
    assert found["b.gd.easy.start"] == found["b.sam.easy.start"]
    assert found["b.gd.easy.start"][0] != found["b.gd.easy.start"][1]


def test_takeoff_is_the_first_moment_at_the_level_or_the_last_one() -> None:
    curves = torch.tensor([[0.1, 0.1], [0.5, 0.2], [0.4, 0.3]])
    assert two_layer_dynamics._takeoff(curves, [0, 5, 10], 0.5).tolist() == [5.0, 10.0]


def test_errors_are_counted_alike_for_one_logit_and_for_two() -> None:
    one = torch.tensor([[[1.0], [-2.0], [3.0], [-1.0]]])
    two = torch.cat([-one, one], dim=2)
    labels = torch.tensor([[1, 1, 1, 0]])
    assert errors(one, labels).tolist() == errors(two, labels).tolist() == [25.0]


def test_alignment_is_of_the_best_filter_whatever_its_sign() -> None:
    weight = torch.randn(2, 5, 7, generator=torch.Generator().manual_seed(key(0, "w") % 2**31))
    v = F.normalize(torch.ones(2, 7), dim=1)
    expected = [max(abs(float(w @ v[k])) for w in weight[k]) for k in range(2)]
    assert alignment(weight, v).tolist() == pytest.approx(expected)
