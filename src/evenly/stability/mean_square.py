"""The exact mean-square threshold: below it E‖w‖² vanishes, above it E‖w‖² grows without bound.

Without momentum the second moment M = E[wwᵀ] obeys M ← M − 2η C(M) + η² D(M) with

    C(M) = ½(ĀM + MĀ),   D(M) = E[A_t M A_t],

where A_t is the random map from the weights to a batch's gradient (`gradient_map`) plus the weight decay. Both are
self-adjoint and the map keeps M ⪰ 0, so its spectral radius is its largest eigenvalue, which is below 1 exactly when
η D ≺ 2C: η* = 2/λmax(C^−½ D C^−½). For plain SGD that is the formula of Mulayoff & Michaeli (2024); with momentum the
map acts on (w, u), and `crossing` finds where its spectral radius is 1. Nothing larger than R × R is formed.
"""

from typing import Unpack

import torch
from torch import Tensor

from evenly.errors import UsageError
from evenly.stability.crossing import first_crossing
from evenly.stability.curvatures import Diagonal
from evenly.stability.gradient_map import Ascent, GradientMap, gradient_map
from evenly.stability.method import Method, split_method
from evenly.stability.optimizer import LinearOptimizer
from evenly.stability.perron import largest_eigenvalue, perron_pair
from evenly.stability.problem import Problem
from evenly.stability.same_batch import Crossing
from evenly.stability.sampling import Sampling


def mean_square_threshold(
    problem: Problem,
    *,
    batch: int,
    sampling: Sampling = "bernoulli",
    rho_over_alpha: float = 0.0,
    ascent: Ascent = "full",
    m: int | None = None,
    crossing: Crossing = "auto",
    momentum: float = 0.0,
    nesterov: bool = False,
    dampening: float = 0.0,
    weight_decay: float = 0.0,
    decoupled: bool = False,
) -> float:
    """η*: the smallest learning rate at which the spectral radius of the second-moment map is 1.

    E‖w‖² → 0 for every η < η*. Without momentum it grows for every η > η*; with momentum, windows of stable η above η*
    are not excluded, and `mean_square_radius` answers for a given η.

    Parameters
    ----------
    sampling
        How a batch is drawn: "bernoulli" (each example with probability B/n), "without" or "with" replacement.
    rho_over_alpha
        SAM's radius over the norm of the gradient, ρ/α; 0 is ordinary training.
    ascent
        Whether SAM ascends on all examples ("full", the model of Chang & Khanna, 2025) or on the batch of its descent
        ("batch", as in practice); `m` splits the batch into groups with separate ascents (m-SAM).
    crossing
        One of the fourth moments of same-batch SAM needs all pairs of examples. "exact" computes it; "upper" and
        "lower" replace it by a bound, so that η* is slightly too low or too high; "auto" is "exact" up to 1,500
        rows of the Gram and "upper" beyond.
    momentum, nesterov, dampening, weight_decay
        As in `torch.optim.SGD`; `decoupled` decay is AdamW's.

    Examples
    --------
    >>> memorising = Problem.from_gram(20.0 * torch.eye(100))
    >>> round(mean_square_threshold(memorising, batch=10), 9)  # 2B/τ
    1.0
    >>> round(mean_square_threshold(memorising, batch=10, momentum=0.9), 4)
    0.1105
    """
    optimizer = LinearOptimizer(momentum, nesterov, dampening, weight_decay, decoupled)
    gradient = gradient_map(
        problem, batch=batch, sampling=sampling, rho_over_alpha=rho_over_alpha, ascent=ascent, m=m, crossing=crossing
    )
    if not optimizer.plain or not gradient.random:
        return first_crossing(gradient, optimizer)
    a_R = optimizer.curvature(gradient.mean_R)
    if gradient.variance_R is not None:
        return float((2 * a_R / (a_R.square() + gradient.variance_R)).min())
    root_RR = ((a_R[:, None] + a_R) / 2).sqrt_()
    squared_RR = a_R[:, None] * a_R

    def apply(m_RR: Tensor) -> Tensor:
        inner = m_RR / root_RR
        return gradient.covariance(inner).add_(inner.mul_(squared_RR)).div_(root_RR)

    # C^½ I: the identity in the coordinates of w, which overlaps with every positive semidefinite matrix.
    return 2 / largest_eigenvalue(apply, a_R.sqrt().diag())


def mean_square_radius(problem: Problem, *, lr: float, batch: int, **method: Unpack[Method]) -> float:
    """The factor by which the second moment changes per step in the long run; arguments as `mean_square_threshold`.

    The spectral radius of E[J_t ⊗ J_t] on the range of H, J_t the step of w, or of (w, u) with momentum. Where nothing
    curves, only decay moves the weights.

    >>> round(mean_square_radius(Problem.from_diagonal(torch.tensor([[1.0]])), lr=0.5, batch=1), 9)
    0.25
    """
    check_lr(lr)
    optimizer, rest = split_method(method)
    gradient = gradient_map(problem, batch=batch, **rest)
    if not optimizer.plain:
        return _radius_with_momentum(gradient, optimizer, lr)
    a_R = optimizer.curvature(gradient.mean_R)
    if gradient.variance_R is not None:
        return float(((1 - lr * a_R).square() + lr * lr * gradient.variance_R).max())
    kept_RR = (1 - lr * a_R[:, None]) * (1 - lr * a_R)

    def apply(m_RR: Tensor) -> Tensor:
        return gradient.covariance(m_RR).mul_(lr * lr).add_(kept_RR * m_RR)

    return largest_eigenvalue(apply, a_R.new_ones(len(a_R)).diag())


def _radius_with_momentum(gradient: GradientMap, optimizer: LinearOptimizer, lr: float) -> float:
    """The spectral radius of the map on E[(w, u)(w, u)ᵀ], as 2 × 2 blocks of R × R."""
    b_R22, enters_2 = optimizer.blocks(gradient.mean_R, lr)
    noise_22 = enters_2[:, None] * enters_2

    if gradient.variance_R is not None:
        own = torch.einsum("rac,rbd->rabcd", b_R22, b_R22)
        own[:, :, :, 0, 0] += noise_22 * gradient.variance_R[:, None, None]
        return float(torch.linalg.eigvals(own.reshape(-1, 4, 4)).abs().max())

    def apply(m: Tensor) -> Tensor:
        moved = torch.einsum("iac,cdij,jbd->abij", b_R22, m, b_R22)
        return moved + noise_22[:, :, None, None] * gradient.covariance(m[0, 0])

    size = len(gradient.mean_R)
    start = torch.eye(2 * size, dtype=torch.float64, device=b_R22.device).view(2, size, 2, size).transpose(1, 2)
    return perron_pair(apply, start, depth=40)[0]


def sandwich_radius(problem: Problem) -> float:
    """λmax of M ↦ meanᵢ Hᵢ M Hᵢ: how fast Σ Tr(H_{y₁}…H_{y_k}…H_{y₁}) grows, per step and divided by n^k."""
    if isinstance(problem.curvatures, Diagonal):
        return float(problem.curvatures.values_NR.square().mean(0).max())
    start = problem.eigenvalues_R.new_ones(problem.rank).diag()
    return largest_eigenvalue(problem.curvatures.sandwich, start)


def check_lr(lr: float) -> None:
    """Refuse a learning rate that is not a positive number."""
    if not 0 < lr < float("inf"):
        raise UsageError(f"lr = {lr}: a learning rate is a positive number.")
