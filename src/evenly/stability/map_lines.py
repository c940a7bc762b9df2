"""The closed forms beside figure 1's simulation, for all cells of `overlapping_set` at once.

A coordinate in which q examples curve by v has λ = vq/n and, in a batch, the curvature vk/B with k ~ Binomial(q, B/n).
Shapes: B batch sizes, S values of σ.
"""

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor


@dataclass(frozen=True)
class Family:
    """The cells of a map: λmax(H) is `sharpness` in each, and m = sharpness · n/σ the curvature of an example."""

    batches: tuple[int, ...]
    sigmas: tuple[int, ...]
    num_examples: int
    sharpness: float
    lr: float

    @cached_property
    def batch_B1(self) -> Tensor:
        """Batch sizes, as a column."""
        return torch.tensor(self.batches, dtype=torch.float64)[:, None]

    @cached_property
    def sigma_BS(self) -> Tensor:
        """σ of every cell."""
        sigma_S = torch.tensor(self.sigmas, dtype=torch.float64)
        return sigma_S.expand(len(self.batches), -1)

    @property
    def rate_B11(self) -> Tensor:
        """B/n."""
        return self.batch_B1[..., None] / self.num_examples

    @property
    def m_BS(self) -> Tensor:
        """The curvature of an example."""
        return self.sharpness * self.num_examples / self.sigma_BS

    @property
    def has_singles_BS(self) -> Tensor:
        """Whether any example has a coordinate of its own."""
        return self.sigma_BS < self.num_examples

    def sam_curvatures(self, rho_over_alpha: float) -> tuple[Tensor, Tensor]:
        """The curvatures under SAM, in the shared coordinate and in the single ones: v = m(1 + (ρ/α)λ)."""
        shared = self.m_BS * (1 + rho_over_alpha * self.sharpness)
        return shared, self.m_BS * (1 + rho_over_alpha * self.sharpness / self.sigma_BS)


def criterion_lr(family: Family, rho_over_alpha: float) -> Tensor:
    """The published critical η: theorem 1 of Dexter et al. (2024), for SAM theorem 3.2 of Chang & Khanna (2025)."""
    spread_B1 = (family.num_examples / family.batch_B1 - 1).sqrt()
    coherent = family.sigma_BS / (family.sharpness * spread_B1)
    if rho_over_alpha == 0:
        return coherent.clamp(max=2 / family.sharpness)
    lambda_min = torch.where(family.has_singles_BS, family.sharpness / family.sigma_BS, family.sharpness)
    return coherent / (1 + rho_over_alpha * lambda_min)


def mean_square_lr(family: Family, rho_over_alpha: float) -> Tensor:
    """The exact η*: 2/(λ + c₂v) in each coordinate, the least of them."""
    shared, single = family.sam_curvatures(rho_over_alpha)
    c2_B1 = 1 / family.batch_B1 - 1 / family.num_examples
    first = 2 / (shared * family.sigma_BS / family.num_examples + c2_B1 * shared)
    rest = 2 / (single / family.num_examples + c2_B1 * single)
    return torch.where(family.has_singles_BS, torch.minimum(first, rest), first)


def exponent(family: Family, rho_over_alpha: float) -> Tensor:
    """The exact Lyapunov exponent at the map's η: max over coordinates of E log|1 − ηvk/B|."""
    shared, single = family.sam_curvatures(rho_over_alpha)
    rate = family.rate_B11
    k = torch.arange(max(family.sigmas) + 1, dtype=torch.float64)
    sigma = family.sigma_BS[..., None]
    choose = torch.lgamma(sigma + 1) - torch.lgamma(k + 1) - torch.lgamma((sigma - k).clamp_min(0) + 1)
    log_prob = choose + torch.xlogy(k, rate) + torch.xlogy(sigma - k, 1 - rate)
    prob = torch.where(k <= sigma, log_prob.exp(), 0.0)
    logs = (1 - family.lr * shared[..., None] * k / family.batch_B1[..., None]).abs().log()
    first = torch.where(prob > 0, prob * logs, 0.0).sum(-1)
    rest = rate[..., 0] * (1 - family.lr * single / family.batch_B1).abs().log()
    return torch.where(family.has_singles_BS, torch.maximum(first, rest), first)
