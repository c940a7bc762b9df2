"""Theorem C.9 by its own matrices: N_k and E‖J_k ⋯ J_1‖² step by step, on dense curvatures."""

from pathlib import Path

import pytest
import torch

from evenly.papers.chang2025.random_sets import random_set
from evenly.papers.chang2025.theorem3_2 import compare_thresholds
from evenly.papers.experiment import Context
from evenly.stability.criteria import chang_theorem_c9
from evenly.stability.problem import Problem

NUM, DIM, BATCH, RATIO = 12, 3, 4, 0.2


def dense_set(seed: int) -> tuple[torch.Tensor, Problem]:
    gradients = torch.randn(NUM, DIM, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return gradients[:, :, None] * gradients[:, None], Problem.from_factors(gradients)


def test_below_the_learning_rate_of_c9_noise_terms_vanish_faster_than_epsilon_and_sam_converges() -> None:
    h_NPP, problem = dense_set(0)
    lr = 0.99 * chang_theorem_c9(problem, batch=BATCH, rho_over_alpha=RATIO).lr
    h, eye = h_NPP.mean(0), torch.eye(DIM, dtype=torch.float64)
    p = eye + RATIO * h
    slopes = torch.linalg.eigvalsh(h @ p)
    epsilon = min(1.0, lr * float(slopes[0]), 2 - lr * float(slopes[-1]))
    noise = lr**2 * (1 / (NUM * BATCH) - 1 / NUM**2)
    j = eye - lr * h @ p
    scaled, total = eye, eye  # N_k ε^−k, and E[J_1ᵀ ⋯ J_kᵀ J_k ⋯ J_1]
    for _ in range(2000):
        scaled = noise / epsilon * (p @ h_NPP @ scaled @ h_NPP @ p).sum(0)
        total = j.mT @ total @ j + noise * (p @ h_NPP @ total @ h_NPP @ p).sum(0)
    assert float(scaled.trace()) < 1e-3
    assert float(total.trace()) < 1e-3


def test_above_the_learning_rate_of_c9_no_epsilon_makes_the_noise_terms_vanish() -> None:
    h_NPP, problem = dense_set(0)
    lr = 1.01 * chang_theorem_c9(problem, batch=BATCH, rho_over_alpha=RATIO).lr
    p = torch.eye(DIM, dtype=torch.float64) + RATIO * h_NPP.mean(0)
    slopes = torch.linalg.eigvalsh(h_NPP.mean(0) @ p)
    best = min(1.0, lr * float(slopes[0]), 2 - lr * float(slopes[-1]))  # the largest ε that the first condition allows
    pulled = p @ h_NPP
    radius = torch.linalg.eigvals(torch.einsum("nab,ncd->acbd", pulled, pulled).reshape(DIM**2, -1)).abs().max()
    assert lr**2 * (1 / (NUM * BATCH) - 1 / NUM**2) * float(radius) > best


def test_every_set_is_one_of_the_seed_and_c9_is_below_the_exact_threshold_in_all() -> None:
    seen = compare_thresholds(Context(Path("unused")), seeds=range(4), num=30, dim=10, batch=5).values
    assert set(seen["converges.violated"].values()) == {0.0}
    assert all(0 < ratio < 1 for ratio in seen["converging_over_exact"].values())
    first, again = (random_set(torch.Generator().manual_seed(1), num=5, dim=2).lambda_max for _ in range(2))
    assert first == pytest.approx(again)
