"""SAM that ascends on its own batch: the mean and covariance of A_t = H_t + cH_t², c = ρ/α, from moments up to four.

E[A_t M A_t] is a sum of words H_t^a M H_t^b with a, b ∈ {1, 2}. Each is Σ_σ c_σ F_σ(M) over the set partitions σ of its
positions (`batch_moments`), and every F_σ follows from the factors Aᵢ and their Gram: no tensor larger than the Gram is
formed, and nothing is sampled. The only form that needs all pairs of examples is the crossing one,
X(M) = meanᵢⱼ HᵢHⱼMHᵢHⱼ = (1/n²) Σᵢⱼ Aᵢᵀ Kᵢⱼ (AⱼMAᵢᵀ) Kᵢⱼ Aⱼ. By Cauchy and Schwarz −S(S(M)) ⪯ X(M) ⪯ S(S(M)) for M ⪰ 0,
S(M) = meanᵢ HᵢMHᵢ, and its coefficient is of order c²/B²: for many rows S(S(M)) replaces it, which makes the threshold
slightly too low, or −S(S(M)), which makes it slightly too high.
Shapes: N examples, C rows of a factor, R = rank of H.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Literal

import torch
from torch import Tensor

from evenly.stability.batch_moments import Partition, word_coefficients
from evenly.stability.curvatures import Diagonal, Factored
from evenly.stability.problem import Problem
from evenly.stability.sampling import Sampling

ROWS = 2_000_000  # numbers of a block row held at once
ALL_PAIRS = 1500  # rows N·C up to which X(M) is computed rather than bounded
Crossing = Literal["auto", "exact", "upper", "lower"]


@dataclass(frozen=True)
class Words:
    """The coefficients of every word for one sampling scheme."""

    sampling: Sampling
    num_examples: int
    batch: int
    m: int | None
    crossing: Crossing = "auto"

    def __call__(self, left: int, right: int) -> dict[Partition, float]:
        """c_σ of H_t^left M H_t^right."""
        return word_coefficients(
            self.sampling, num_examples=self.num_examples, batch=self.batch, left=left, right=right, m=self.m
        )


def diagonal_moments(curvatures: Diagonal, words: Words, c: float) -> tuple[Tensor, Tensor]:
    """The mean and the variance of s + cs² in every coordinate, s a batch's curvature there."""
    powers = [curvatures.values_NR.pow(k).mean(0) for k in range(5)]

    def value(left: int, right: int) -> Tensor:
        terms = [
            k * prod((powers[len(block)] for block in sigma), start=powers[0])
            for sigma, k in words(left, right).items()
        ]
        return torch.stack(terms).sum(0)

    mean_R = powers[1] + c * value(2, 0)
    square_R = value(1, 1) + 2 * c * value(1, 2) + c * c * value(2, 2)
    rounding = 1e-14 * square_R
    variance_R = square_R - mean_R.square()
    return mean_R, torch.where(variance_R > rounding, variance_R, 0.0)


def factored_moments(problem: Problem, words: Words, c: float) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
    """The eigenvalues of Ā, and cov(M) in its eigenbasis, for curvatures given by factors."""
    assert isinstance(problem.curvatures, Factored)
    a_NCR = problem.curvatures.factors_NCR
    squares_RR = _pull_back(a_NCR, a_NCR @ a_NCR.mT)  # meanᵢ Hᵢ²
    pair = words(2, 0)
    lam_R = problem.eigenvalues_R
    mean_RR = lam_R.diag() + c * (pair[((0, 1),)] * squares_RR + pair[((0,), (1,))] * lam_R.square().diag())
    mean_R, turn_RR = torch.linalg.eigh((mean_RR + mean_RR.mT) / 2)
    forms = _Forms(a_NCR @ turn_RR, turn_RR.mT @ (lam_R[:, None] * turn_RR), words, c)
    outer_RR = mean_R[:, None] * mean_R
    return mean_R, lambda m_RR: forms.second_moment(m_RR) - outer_RR * m_RR


class _Forms:
    """E[A_t M A_t] for symmetric M, in the basis of the factors."""

    def __init__(self, a_NCR: Tensor, h_RR: Tensor, words: Words, c: float) -> None:
        self.a_NCR, self.c = a_NCR, c
        large = a_NCR.shape[0] * a_NCR.shape[1] > ALL_PAIRS
        self.crossing = ("upper" if large else "exact") if words.crossing == "auto" else words.crossing
        self.ah_NCR = a_NCR @ h_RR
        self.k_NCC = a_NCR @ a_NCR.mT
        self.one, self.three, self.four = words(1, 1), words(1, 2), words(2, 2)
        w_RR, h2_RR = _pull_back(a_NCR, self.k_NCC), h_RR @ h_RR
        self.left = torch.cat([h_RR, w_RR, h2_RR])
        one, three, four = (self._number(table) for table in (self.one, self.three, self.four))
        middle = c * (three("0|12") * w_RR + three("0|1|2") * h2_RR)
        self.right = torch.cat(
            [
                one("0|1") * h_RR + middle,
                c * three("0|12") * h_RR + c * c * (four("01|23") * w_RR + four("01|2|3") * h2_RR),
                c * three("0|1|2") * h_RR + c * c * (four("01|2|3") * w_RR + four("0|1|2|3") * h2_RR),
            ]
        )
        self.number = {1: one, 3: three, 4: four}

    @staticmethod
    def _number(table: dict[Partition, float]) -> Callable[[str], float]:
        names = {"|".join("".join(map(str, block)) for block in sigma): value for sigma, value in table.items()}
        return names.__getitem__

    def second_moment(self, m_RR: Tensor) -> Tensor:
        """E[A_t M A_t]."""
        a, ah, k, c = self.a_NCR, self.ah_NCR, self.k_NCC, self.c
        one, three, four = self.number[1], self.number[3], self.number[4]
        am, ahm = _times(a, m_RR), _times(ah, m_RR)
        d0, d1, d2 = am @ a.mT, am @ ah.mT, ahm @ ah.mT  # AMAᵀ, AMHAᵀ, AHMHAᵀ of every example
        s_RR = _pull_back(a, d0)  # meanᵢ HᵢMHᵢ
        twice = {"exact": 0.0, "upper": 1.0, "lower": -1.0}[self.crossing] * four("02|13")
        both = (
            one("01") * d0
            + c * (three("012") * _both_ways(d0 @ k) + three("02|1") * _both_ways(d1))
            + c * c * four("0123") * (k @ d0 @ k)
            + c * c * (four("013|2") * _both_ways(k @ d1) + four("03|1|2") * d2)
            + c * c * (four("03|12") + twice) * (_times(a, s_RR) @ a.mT)
        )
        mixed = c * three("01|2") * d0 + c * c * (four("012|3") * (k @ d0) + four("02|1|3") * d1.mT)
        total = _pull_back(a, both) + _both_ways(_pull_back(a, mixed, ah))
        total += c * c * four("0|12|3") * _pull_back(ah, d0, ah)
        if self.crossing == "exact":
            total += c * c * four("02|13") * self._all_pairs(am)
        size = len(m_RR)
        products = (self.left @ m_RR).view(3, size, size)
        return total + (products @ self.right.view(3, size, size)).sum(0)

    def _all_pairs(self, am_NCR: Tensor) -> Tensor:
        """meanᵢⱼ HᵢHⱼMHᵢHⱼ, a few block rows at a time."""
        num, width, dims = self.a_NCR.shape
        a = self.a_NCR.reshape(num * width, dims)
        total = a.new_zeros(dims, dims)
        chunk = max(1, ROWS // (num * width * width))
        for start in range(0, num, chunk):
            rows = self.a_NCR[start : start + chunk]
            few = rows.reshape(-1, dims)
            k = (few @ a.mT).view(len(rows), width, num, width)
            t = (am_NCR[start : start + chunk].reshape(-1, dims) @ a.mT).view(len(rows), width, num, width)
            if width == 1:
                u = k.square().mul_(t).view(len(rows), num)
            else:
                k_ij = k.transpose(1, 2)
                u = (k_ij @ t.permute(0, 2, 3, 1) @ k_ij).transpose(1, 2).reshape(len(few), num * width)
            total += few.mT @ (u @ a)
        return total / num**2


def _pull_back(left_NCR: Tensor, inner_NCC: Tensor, right_NCR: Tensor | None = None) -> Tensor:
    """meanᵢ Lᵢᵀ Dᵢ Rᵢ."""
    num, width, dims = left_NCR.shape
    inner = inner_NCC @ (left_NCR if right_NCR is None else right_NCR)
    return left_NCR.reshape(num * width, dims).mT @ inner.reshape(num * width, dims) / num


def _times(a_NCR: Tensor, m_RR: Tensor) -> Tensor:
    """One large product instead of many small ones."""
    return (a_NCR.reshape(-1, a_NCR.shape[-1]) @ m_RR).view_as(a_NCR)


def _both_ways(x: Tensor) -> Tensor:
    return x + x.mT
