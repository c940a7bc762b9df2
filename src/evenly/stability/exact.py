"""The exact mean-square threshold: below it E‖w‖² vanishes, above it E‖w‖² grows without bound.

The second moment M = E[wwᵀ] obeys M ← M − 2η C(M) + η² D(M) with

    C(M) = ½(HM + MH),   D(M) = c₁ H M H + c₂ meanᵢ Hᵢ M Hᵢ.

Both are self-adjoint and the map keeps M ⪰ 0, so its spectral radius is its largest eigenvalue, which is below 1
exactly when η D ≺ 2C on the range of H: η* = 2/λmax(C^−½ D C^−½). The formula is that of Mulayoff & Michaeli (2024)
for sampling without replacement; (c₁, c₂) carries it to the other schemes, and `Problem.sam` to SAM. In the
eigenbasis of H, C only scales entries, and nothing larger than R × R is formed.
"""

from torch import Tensor

from evenly.errors import UsageError
from evenly.stability.curvatures import Diagonal
from evenly.stability.perron import largest_eigenvalue
from evenly.stability.problem import Problem
from evenly.stability.sampling import Sampling, second_moment


def mean_square_threshold(
    problem: Problem, *, batch: int, sampling: Sampling = "bernoulli", rho_over_alpha: float = 0.0
) -> float:
    """η*: SGD (or SAM, for ρ/α > 0) is mean-square stable for every η < η* and for none above.

    η* = 2/λmax(C†D) (Mulayoff & Michaeli, 2024); minₐ 2λₐ/(c₁λₐ² + c₂ meanᵢ hᵢₐ²) for diagonal sets.

    >>> import torch
    >>> memorising = Problem.from_gram(20.0 * torch.eye(100))
    >>> round(mean_square_threshold(memorising, batch=10), 9)  # 2B/τ
    1.0
    """
    problem = problem.sam(rho_over_alpha)
    c1, c2 = second_moment(sampling, num_examples=problem.num_examples, batch=batch)
    lam_R = problem.eigenvalues_R
    if c2 == 0:  # the whole data set in every batch
        return 2 / problem.lambda_max
    if isinstance(problem.curvatures, Diagonal):
        squares_R = problem.curvatures.values_NR.square().mean(0)
        return float((2 * lam_R / (c1 * lam_R.square() + c2 * squares_R)).min())
    root_RR = ((lam_R[:, None] + lam_R) / 2).sqrt_()
    deterministic_RR = c1 * lam_R[:, None] * lam_R

    def apply(m_RR: Tensor) -> Tensor:
        inner = m_RR / root_RR
        return problem.curvatures.sandwich(inner).mul_(c2).add_(inner.mul_(deterministic_RR)).div_(root_RR)

    # C^½ I: the identity in the coordinates of w, which overlaps with every positive semidefinite matrix.
    return 2 / largest_eigenvalue(apply, lam_R.sqrt().diag())


def mean_square_radius(
    problem: Problem, *, lr: float, batch: int, sampling: Sampling = "bernoulli", rho_over_alpha: float = 0.0
) -> float:
    """The factor by which E‖w‖² changes per step in the long run: λmax(I − 2ηC + η²D).

    >>> import torch
    >>> round(mean_square_radius(Problem.from_diagonal(torch.tensor([[1.0]])), lr=0.5, batch=1), 9)
    0.25
    """
    check_lr(lr)
    problem = problem.sam(rho_over_alpha)
    c1, c2 = second_moment(sampling, num_examples=problem.num_examples, batch=batch)
    lam_R = problem.eigenvalues_R
    kept_RR = 1 - lr * (lam_R[:, None] + lam_R) + lr * lr * c1 * lam_R[:, None] * lam_R
    if isinstance(problem.curvatures, Diagonal):
        return float((kept_RR.diagonal() + lr * lr * c2 * problem.curvatures.values_NR.square().mean(0)).max())

    def apply(m_RR: Tensor) -> Tensor:
        return problem.curvatures.sandwich(m_RR).mul_(lr * lr * c2).add_(kept_RR * m_RR)

    return largest_eigenvalue(apply, lam_R.new_ones(len(lam_R)).diag())


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
