"""The contrastive term of figure 4, against its sum over pairs."""

import pytest
import torch

from evenly.papers.chang2025 import contrastive
from evenly.papers.chang2025.parity_runs import draw_examples, initial_network


def test_the_contrastive_term_is_its_sum_over_pairs_and_its_steps_lower_it() -> None:
    x = draw_examples(0, num=8, dim=5).gather(range(8)).double()
    y = x[:, 0] * x[:, 1]
    hidden = torch.randn(8, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64).relu()
    total = 0.0
    for i in range(8):
        for j in range(8):
            apart = float((hidden[i] - hidden[j]).norm())
            if i != j:
                total += apart**2 if y[i] == y[j] else max(0.0, 1 - apart) ** 2
    assert float(contrastive.contrastive(hidden[None], y[None])) == pytest.approx(total / 56)
    ends = []
    for weight in (0.0, 1.0):
        seen = contrastive.run(
            {name: p.detach()[None] for name, p in initial_network(0, dim=5, width=6).named_parameters()},
            x[None],
            weight_K=torch.tensor([weight], dtype=torch.float64),
            seeds=[0],
            lr=0.05,
            batch=8,
            epochs=20,
            measure=lambda now: {"term": contrastive.objective(now, x[None], torch.ones(1)) - fit(now, x[None])},
        )
        ends.append(float(seen["term"][-1, 0]))
    assert ends[1] < ends[0]


def fit(now: contrastive.Weights, x: torch.Tensor) -> torch.Tensor:
    return contrastive.objective(now, x, torch.zeros(1))


def test_a_gradient_of_the_contrastive_term_is_finite_where_examples_coincide() -> None:
    hidden = torch.zeros(1, 4, 2, dtype=torch.float64, requires_grad=True)
    contrastive.contrastive(hidden, torch.tensor([[1.0, -1.0, 1.0, -1.0]])).sum().backward()
    assert hidden.grad is not None
    assert hidden.grad.isfinite().all()
