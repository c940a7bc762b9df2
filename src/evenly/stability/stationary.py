"""The limits of methods that do not converge to a point: the cloud of random perturbation, the 2-cycle of true SAM.

Shapes: P parameters, R = rank of H.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from evenly.errors import UsageError
from evenly.stability.curvatures import Diagonal
from evenly.stability.mean_square import check_lr, mean_square_threshold
from evenly.stability.problem import Problem
from evenly.stability.sampling import Sampling, second_moment


@dataclass(frozen=True, eq=False)
class Cloud:
    """A stationary covariance on the range of H; `in_parameters` carries it to the parameters."""

    covariance_RR: Tensor
    basis_PR: Tensor | None

    @property
    def mean_square(self) -> float:
        """The limit of E‖w‖², on the range of H."""
        return float(self.covariance_RR.trace())

    def in_parameters(self) -> Tensor:
        """The covariance of w, P × P."""
        if self.basis_PR is None:
            raise UsageError("a problem made from a Gram matrix does not know its parameters: give factors A_i.")
        return self.basis_PR @ self.covariance_RR @ self.basis_PR.mT


def stationary_covariance(
    problem: Problem, *, lr: float, batch: int, noise: float, sampling: Sampling = "bernoulli"
) -> Cloud:
    """The covariance Σ at which SGD with random perturbation w ← w − ηH_t(w + δ), δ ~ N(0, σ₁²I), settles.

    (2C − ηD)Σ = ησ₁² E[H_t²], E[H_t²] = c₁H² + c₂ meanᵢ Hᵢ², by conjugate gradients scaled with C; the operator is
    positive definite exactly below the mean-square threshold of SGD, above which there is no Σ.

    >>> cloud = stationary_covariance(Problem.from_diagonal(torch.tensor([[1.0]])), lr=1.0, batch=1, noise=0.5)
    >>> cloud.mean_square  # w ← −δ: the noise itself
    0.25
    """
    check_lr(lr)
    if not 0 <= noise < float("inf"):
        raise UsageError(f"noise = {noise}: σ₁ is a standard deviation, at least 0.")
    limit = mean_square_threshold(problem, batch=batch, sampling=sampling)
    if lr >= limit:
        raise UsageError(f"lr = {lr:g} is not below the mean-square threshold {limit:g}: E‖w‖² grows without bound.")
    c1, c2 = second_moment(sampling, num_examples=problem.population, batch=batch)
    lam_R = problem.eigenvalues_R
    identity_RR = torch.eye(len(lam_R), dtype=lam_R.dtype, device=lam_R.device)
    force_RR = lr * noise**2 * (c1 * lam_R.square().diag() + c2 * problem.curvatures.sandwich(identity_RR))
    twice_c_RR = lam_R[:, None] + lam_R
    kept_RR = twice_c_RR - lr * c1 * lam_R[:, None] * lam_R
    if isinstance(problem.curvatures, Diagonal):
        variances_R = force_RR.diagonal() / (
            kept_RR.diagonal() - lr * c2 * problem.curvatures.values_NR.square().mean(0)
        )
        return Cloud(variances_R.diag(), problem.basis_PR)

    def apply(m_RR: Tensor) -> Tensor:
        return (kept_RR * m_RR).sub_(problem.curvatures.sandwich(m_RR), alpha=lr * c2)

    return Cloud(_conjugate_gradients(apply, force_RR, twice_c_RR), problem.basis_PR)


def _conjugate_gradients(apply: Callable[[Tensor], Tensor], b: Tensor, scale: Tensor, tol: float = 1e-13) -> Tensor:
    """The solution of apply(x) = b for a positive definite operator, preconditioned by division with `scale`."""
    x, residual = torch.zeros_like(b), b.clone()
    direction = residual / scale
    energy = (residual * direction).sum()
    enough = tol * tol * energy
    for _ in range(20 * len(b) + 200):
        if energy <= enough:
            return x
        image = apply(direction)
        step = energy / (direction * image).sum()
        x += step * direction
        residual -= step * image
        z = residual / scale
        energy, previous = (residual * z).sum(), energy
        direction = z + (energy / previous) * direction
    raise ArithmeticError("the stationary covariance did not settle: lr is within rounding of the threshold.")


def two_cycle(curvature: float, *, lr: float, rho: float) -> float:
    """|w| between which true, normalised SAM jumps on ½hw²: w ← w − ηh(w + ρ sign w) has w → −w at ηhρ/(2 − ηh).

    With fixed α the model of Chang & Khanna (2025) has no such cycle. Bartlett, Long & Bousquet (2023) describe it.

    >>> two_cycle(1.0, lr=0.5, rho=0.3)
    0.09999999999999999
    """
    check_lr(lr)
    if not curvature > 0 or not rho >= 0:
        raise UsageError(f"curvature = {curvature} must be positive, and rho = {rho} at least 0.")
    if lr * curvature >= 2:
        raise UsageError(f"lr·h = {lr * curvature:g}: at 2 and above SAM diverges and has no cycle; take lr below it.")
    return lr * curvature * rho / (2 - lr * curvature)
