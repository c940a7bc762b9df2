"""The proxy coherence of appendix A, against gradients of single examples."""

import pytest
import torch
from torch import nn

from evenly.curvature.gram import gram
from evenly.papers.catalogue import CATALOGUE
from evenly.papers.chang2025.table2 import proxy_coherence


def test_the_proxy_is_of_products_of_the_gradients_of_single_losses() -> None:
    rng = torch.Generator().manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3))
    x, y = torch.randn(8, 4, generator=rng), torch.randint(3, (8,), generator=rng)
    gradients = []
    for i in range(8):
        loss = nn.functional.cross_entropy(model(x[i : i + 1]), y[i : i + 1])
        gradients.append(torch.cat([g.flatten() for g in torch.autograd.grad(loss, list(model.parameters()))]))
    g = torch.stack(gradients)
    matrix = g @ g.mT / g.norm(dim=1).max()  # as appendix A writes it
    seen = proxy_coherence(gram(model, (x, y), loss="cross-entropy"))
    assert seen["coherence_printed"] == pytest.approx(float(torch.linalg.eigvalsh(matrix)[-1]), rel=1e-4)
    assert seen["coherence"] == pytest.approx(seen["coherence_printed"] / float(g.norm(dim=1).max()), rel=1e-4)


def test_the_proxy_is_one_for_one_gradient_and_n_for_equal_ones() -> None:
    assert proxy_coherence(torch.diag(torch.tensor([0.0, 9.0])))["coherence"] == pytest.approx(1)
    assert proxy_coherence(torch.full((7, 7), 0.3))["coherence"] == pytest.approx(7)
    assert proxy_coherence(torch.zeros(3, 3)) == {"coherence": 0.0, "coherence_printed": 0.0}


def test_the_small_row_is_a_stand_in_that_says_what_it_cannot_test() -> None:
    experiment = CATALOGUE["chang2025/table2"]
    assert experiment.kind("small") == "stand-in"
    assert "cannot test" in experiment.scales["small"].deviations[0]
