"""A large Gram matrix projected on its leading subspace, with an error bound.

The Gram of N examples with C outputs has N·C rows; a dense eigenproblem of that size takes minutes for a thousand
examples. The curvatures Hᵢ = AᵢᵀAᵢ are projected instead on an orthonormal basis V of R leading directions of H, found
by subspace iteration on K (Halko, Martinsson & Tropp, 2011). AᵢV follows from K alone and is exact for the basis found.

A projection hides directions, so the threshold of the projected problem is never below the true one. It is not far
above either. Let δ = maxᵢ λmax(Kᵢᵢ − AᵢVVᵀAᵢᵀ) be the most curvature that one example loses, ε the largest eigenvalue
of H outside of V, and λ_V = 2/η_V for plain SGD on V. Then (docs/stability.md has the proof)

    2/(λ_V + 5c₂δ + 3c₁ε) ≤ η* ≤ η_V.

Shapes: N examples, C rows of a factor, R directions.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

OVERSAMPLING = 30
ITERATIONS = 3  # products with K after the first: networks' spectra decay, so few are enough


@dataclass(frozen=True)
class Truncation:
    """What a projection discards: δ and ε as above, and Tr H of the whole."""

    example_residual: float
    eigenvalue: float
    trace: float

    def least_threshold(self, threshold: float, *, c1: float, c2: float) -> float:
        """The lower bound for plain SGD's threshold, from that of the projected problem.

        >>> Truncation(0.1, 0.0, 1.0).least_threshold(2.0, c1=1.0, c2=0.5)
        1.6
        """
        return 2 / (2 / threshold + 5 * c2 * self.example_residual + 3 * c1 * self.eigenvalue)


def leading_factors(gram: Tensor, *, num: int, width: int, rank: int) -> tuple[Tensor, Tensor, Truncation]:
    """The positive eigenvalues of H on the leading subspace (R), the factors AᵢV (N × C × R), and what is lost.

    `gram` is (N·C) × (N·C) in any precision; the products are taken in it, everything after them in double.

    >>> lam, factors, lost = leading_factors(torch.diag(torch.tensor([4.0, 2.0, 0.1, 0.1])), num=4, width=1, rank=2)
    >>> [round(v, 6) for v in lam.tolist()], round(lost.example_residual, 6)
    ([0.5, 1.0], 0.1)
    """
    size = num * width
    rng = torch.Generator().manual_seed(0)  # the start, which hardly affects the resulting subspace
    start = torch.randn(size, min(size, rank + OVERSAMPLING), generator=rng, dtype=torch.float64)
    q = torch.linalg.qr(gram @ start.to(gram)).Q
    for _ in range(ITERATIONS):
        q = torch.linalg.qr(gram @ q).Q
    image = gram @ q
    values, turn = torch.linalg.eigh((q.mT @ image).double())
    floor = 4 * size**0.5 * torch.finfo(gram.dtype).eps * float(values[-1])
    kept = torch.arange(len(values), device=values.device) >= len(values) - rank
    kept &= values > floor
    # V = Aᵀ U Λ^−½ is orthonormal for the Ritz pairs (U, Λ), and A V = K U Λ^−½.
    flat = image.double() @ (turn[:, kept] / values[kept].sqrt())
    lam, turn = torch.linalg.eigh(flat.mT @ flat / num)
    factors_NCR = (flat @ turn).view(num, width, -1)
    blocks_NCC = gram.view(num, width, num, width).diagonal(dim1=0, dim2=2).permute(2, 0, 1).double()
    lost_NCC = blocks_NCC - factors_NCR @ factors_NCR.mT
    residual = float(torch.linalg.eigvalsh(lost_NCC)[:, -1].max().clamp_min(0))
    lost = Truncation(residual, _largest_outside(gram, factors_NCR), float(gram.diagonal().double().sum()) / num)
    return lam, factors_NCR, lost


def _largest_outside(gram: Tensor, factors_NCR: Tensor) -> float:
    """λmax(K − AVVᵀAᵀ)/n by power iteration on a few vectors, whose norms bound it from below closely."""
    num, width, dims = factors_NCR.shape
    flat = factors_NCR.reshape(num * width, dims)
    v = torch.randn(len(flat), 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64).to(flat)
    largest = 0.0
    for _ in range(8):
        v = torch.linalg.qr(v).Q
        v = (gram @ v.to(gram)).double() - flat @ (flat.mT @ v)
        largest = float(torch.linalg.matrix_norm(v, 2))
    return largest / num
