"""Coherence against its definition with matrix square roots, and against what must hold for every set."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from evenly.stability.coherence_matrix import coherence, coherence_of_hessians
from evenly.stability.problem import Problem


def factors_of(seed: int, num: int = 5, width: int = 2, dims: int = 4) -> Tensor:
    return torch.randn(num, width, dims, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def root(h: Tensor) -> Tensor:
    values, vectors = torch.linalg.eigh(h)
    return vectors * values.clamp_min(0).sqrt() @ vectors.T


@pytest.mark.parametrize("ratio", [0.0, 0.6])
def test_coherence_is_its_definition(ratio: float) -> None:
    a = factors_of(0)
    h = a.mT @ a
    p_root = root(torch.eye(4, dtype=torch.float64) + ratio * h.mean(0))
    moved = p_root @ h @ p_root
    s = torch.stack([torch.stack([(root(x) @ root(y)).norm() for y in moved]) for x in moved])
    top = max(float(torch.linalg.eigvalsh(x)[-1]) for x in moved)
    for problem in (Problem.from_factors(a), Problem.from_dense(h)):
        found = coherence(problem, rho_over_alpha=ratio)
        assert torch.allclose(found.matrix_NN, s, atol=1e-9)
        assert found.lambda_max_s == pytest.approx(float(torch.linalg.eigvalsh(s)[-1]), rel=1e-10)
        assert found.sigma == pytest.approx(float(torch.linalg.eigvalsh(s)[-1]) / top, rel=1e-10)
        assert found.sigma_without_root == pytest.approx(float(torch.linalg.eigvalsh(s**2)[-1]) / top, rel=1e-10)
        assert found.lambda_max == pytest.approx(float(torch.linalg.eigvalsh(moved.mean(0))[-1]), rel=1e-10)
        assert found.largest_example == pytest.approx(top, rel=1e-10)


@pytest.mark.parametrize("ratio", [0.0, 0.6])
def test_coherence_needs_the_gram_only(ratio: float) -> None:
    """S_ij = ‖K_ij‖_F and, for SAM, ‖(K + (ρ/(αn))K²)_ij‖_F."""
    a = factors_of(1)
    flat = a.reshape(10, 4)
    k = flat @ flat.T
    k_sam = k + ratio / 5 * k @ k
    s = k_sam.view(5, 2, 5, 2).square().sum((1, 3)).sqrt()
    found = coherence(Problem.from_gram(k.view(5, 2, 5, 2).permute(0, 2, 1, 3)), rho_over_alpha=ratio)
    assert torch.allclose(found.matrix_NN, s, atol=1e-9)
    assert found.lambda_max == pytest.approx(float(torch.linalg.eigvalsh(k_sam)[-1]) / 5, rel=1e-10)


def test_rank_one_coherence_is_the_absolute_gram() -> None:
    g = factors_of(2, width=1)[:, 0]
    assert torch.allclose(coherence(Problem.from_factors(g)).matrix_NN, (g @ g.T).abs(), atol=1e-12)


def test_a_diagonal_set_has_the_coherence_of_the_same_set_turned() -> None:
    values = torch.rand(6, 3, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    turn = torch.linalg.qr(factors_of(4, 1, 3, 3)[0]).Q
    turned = coherence(Problem.from_dense(torch.einsum("pa,na,qa->npq", turn, values, turn)), rho_over_alpha=0.4)
    plain = coherence(Problem.from_diagonal(values), rho_over_alpha=0.4)
    assert torch.allclose(turned.matrix_NN, plain.matrix_NN, atol=1e-10)
    assert turned.sigma == pytest.approx(plain.sigma, rel=1e-10)


@given(seed=st.integers(0, 10_000), num=st.integers(1, 6), width=st.integers(1, 3), dims=st.integers(1, 6))
@settings(max_examples=30, deadline=None)
def test_bounds_that_hold_for_every_set(seed: int, num: int, width: int, dims: int) -> None:
    problem = Problem.from_factors(factors_of(seed, num, width, dims))
    found = coherence(problem)
    assert found.lambda_max_s is not None
    assert found.sigma is not None
    slack = 1 + 1e-9
    assert found.lambda_max_s <= num * found.trace * slack  # so table 1's 12,740 > 50 · 52 cannot be λmax(S)
    assert num * found.lambda_max <= found.lambda_max_s * slack
    assert found.sigma * slack >= 1


def test_exact_hessians_at_a_minimum_agree_with_gauss_newton() -> None:
    a = factors_of(5)
    exact, gauss_newton = coherence_of_hessians(a.mT @ a), coherence(Problem.from_factors(a))
    assert exact.undefined_pairs == 0
    assert exact.sigma == pytest.approx(gauss_newton.sigma, rel=1e-10)
    assert exact.trace == pytest.approx(gauss_newton.trace, rel=1e-10)
    assert exact.sigma_without_root == pytest.approx(gauss_newton.sigma_without_root, rel=1e-10)


def test_undefined_pairs_are_counted_and_never_zero_or_silent() -> None:
    h = torch.stack([torch.eye(2), -torch.eye(2), torch.diag(torch.tensor([1.0, -1.0]))]).double()
    found = coherence_of_hessians(h)
    assert found.undefined_pairs == 1  # Tr(H_0 H_1) = −2; Tr(H_0 H_2) = 0 is defined
    assert found.sigma is None
    assert found.lambda_max_s is None
    assert found.matrix_NN.isnan().nonzero().tolist() == [[0, 1], [1, 0]]
    # Tr(HᵢHⱼ) = [[2, −2, 0], [−2, 2, 0], [0, 0, 2]] has the largest eigenvalue 4.
    assert found.sigma_without_root == pytest.approx(4.0)
