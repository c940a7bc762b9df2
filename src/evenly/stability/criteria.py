"""The published criteria, each named after its theorem, as critical learning rates.

All assume that a batch takes each example with probability B/n. `mean_square` and `almost_sure` have exact thresholds.
"""

from dataclasses import dataclass, field
from math import inf, sqrt
from typing import Literal

from evenly.errors import UsageError
from evenly.stability.coherence_matrix import coherence
from evenly.stability.mean_square import mean_square_threshold, sandwich_radius
from evenly.stability.problem import Problem
from evenly.stability.sampling import check_batch


@dataclass(frozen=True)
class Critical:
    """The critical learning rate of a criterion; `float()` returns it.

    `says` is the criterion's assertion: the method diverges above `lr`, converges below it, or both.
    """

    name: str
    lr: float
    says: Literal["diverges above", "converges below", "both"]
    notes: tuple[str, ...] = field(default=())

    def __float__(self) -> float:
        return self.lr


def dexter_theorem_1(problem: Problem, *, batch: int) -> Critical:
    """SGD diverges if λmax(H) > 2/η or λmax(H) > (σ/η)(n/B − 1)^−½ (Dexter et al., 2024, theorem 1).

    With `problem.sam(ρ/α)` it is the criterion for SAM in the measures H_SAM and σ_SAM, and needs no λmin.

    >>> import torch
    >>> dexter_theorem_1(Problem.from_factors(torch.eye(100)), batch=50).lr
    100.0
    """
    lr = min(2 / problem.lambda_max, coherence_criterion(problem, batch=batch).lr)
    return Critical("Dexter et al. 2024, theorem 1", lr, "diverges above")


def coherence_criterion(problem: Problem, *, batch: int) -> Critical:
    """The second condition of theorem 1 alone: λmax(H) > (σ/η)(n/B − 1)^−½.

    For (C, r)-solutions λmax(H) and σ shrink together with C, and it is the same for every C.

    >>> import torch
    >>> coherence_criterion(Problem.from_factors(torch.eye(100)), batch=50).lr
    100.0
    """
    spread = _spread(problem, batch)
    lr = _sigma_over_lambda(problem) / spread if spread else inf
    return Critical("coherence, (σ/λmax)(n/B − 1)^−½", lr, "diverges above")


def chang_theorem_3_1(problem: Problem, *, batch: int) -> Critical:
    """SGD with random perturbation w ← w − ηH_t(w + δ) diverges where SGD does (Chang & Khanna, 2025, theorem 3.1).

    >>> import torch
    >>> chang_theorem_3_1(Problem.from_factors(torch.eye(100)), batch=50).lr
    100.0
    """
    lr = dexter_theorem_1(problem, batch=batch).lr
    return Critical("Chang & Khanna 2025, theorem 3.1", lr, "diverges above", ("below it the iterates do not vanish",))


def chang_theorem_3_2(problem: Problem, *, batch: int, rho_over_alpha: float) -> Critical:
    """SAM diverges if λmax(H) > (σ/η)(n/B − 1)^−½ (1 + (ρ/α)λmin(H))^−1 (Chang & Khanna, 2025, theorem 3.2).

    Where H is singular λmin(H) = 0 and the theorem is no stricter than SGD's; restricted to the range of H, the only
    part that matters, it holds with the smallest positive eigenvalue, which is used here.

    >>> import torch
    >>> chang_theorem_3_2(Problem.from_diagonal(torch.eye(2)), batch=1, rho_over_alpha=2.0).lr
    1.0
    """
    problem.sam(rho_over_alpha)  # refuses a bad ratio
    notes = _restriction(problem) if rho_over_alpha else ()
    lr = coherence_criterion(problem, batch=batch).lr / (1 + rho_over_alpha * problem.lambda_min)
    return Critical("Chang & Khanna 2025, theorem 3.2", lr, "diverges above", notes)


def chang_theorem_c9(problem: Problem, *, batch: int, rho_over_alpha: float = 0.0) -> Critical:
    """SAM converges if, for some ε in (0, 1), ε/η ≤ λᵢ + (ρ/α)λᵢ² ≤ (2 − ε)/η and ε^−k Tr N_k → 0 (theorem C.9).

    Tr N_k grows like (η²(1/B − 1/n)μ)^k, where μ is the largest eigenvalue of M ↦ meanᵢ H̃ᵢMH̃ᵢ in SAM's coordinates;
    so an ε exists exactly when η²c₂μ < min(1, ηλ̃min, 2 − ηλ̃max). No ε exists for singular H: it is restricted to
    the range.

    >>> import torch
    >>> chang_theorem_c9(Problem.from_diagonal(torch.tensor([[1.0], [1.0]])), batch=1).lr
    1.2360679774997898
    """
    check_batch("bernoulli", num_examples=problem.population, batch=batch)
    notes = _restriction(problem)
    problem = problem.sam(rho_over_alpha)
    noise = (1 / batch - 1 / problem.population) * sandwich_radius(problem)
    name, top = "Chang & Khanna 2025, theorem C.9", problem.lambda_max
    if noise == 0:
        return Critical(name, 2 / top, "converges below", notes)
    steep = (sqrt(top * top + 8 * noise) - top) / (2 * noise)  # η²c₂μ + ηλ̃max = 2
    return Critical(name, min(problem.lambda_min / noise, steep, noise**-0.5), "converges below", notes)


def chang_theorem_3_3(
    lambda_1: float, *, sigma: int, num_examples: int, batch: int, rho_over_alpha: float = 0.0
) -> Critical:
    """The set on which theorem 3.2 is tight: Hᵢ = (λ₁n/σ)e₁e₁ᵀ for i ≤ σ, else 0 (Chang & Khanna, 2025, theorem 3.3).

    SAM is mean-square stable on it exactly when λ₁(1 + (ρ/α)λ₁) < (2σ/η)(n/B − 1 + σ)^−1.

    >>> chang_theorem_3_3(2.0, sigma=10, num_examples=100, batch=10).lr
    0.5263157894736842
    """
    check_batch("bernoulli", num_examples=num_examples, batch=batch)
    if not (1 <= sigma <= num_examples and sigma == int(sigma)):
        raise UsageError(f"sigma = {sigma}: theorem 3.3 needs a whole number from 1 to n = {num_examples}.")
    if not lambda_1 > 0 or not rho_over_alpha >= 0:
        raise UsageError(f"lambda_1 = {lambda_1} must be positive, and rho_over_alpha = {rho_over_alpha} at least 0.")
    sharp = lambda_1 * (1 + rho_over_alpha * lambda_1)
    return Critical(
        "Chang & Khanna 2025, theorem 3.3", 2 * sigma / (sharp * (num_examples / batch - 1 + sigma)), "both"
    )


def sharpest_example(problem: Problem, *, batch: int) -> Critical:
    """SGD diverges if maxᵢ λmax(Hᵢ) > (n/η)(n/B − 1)^−½: simpler than the σ-criterion and never weaker.

    meanᵢ HᵢMHᵢ alone grows by λmax(Hᵢ)²/n on M = uuᵀ; and λmax(S) ≥ nλmax(H), so σ/λmax(H) ≥ n/maxᵢ λmax(Hᵢ).

    >>> import torch
    >>> sharpest_example(Problem.from_factors(torch.eye(100)), batch=50).lr
    100.0
    """
    spread = _spread(problem, batch)
    largest = float(problem.curvatures.largest().max())
    lr = problem.population / (largest * spread) if spread else inf
    return Critical("sharpest example", lr, "diverges above")


def all_criteria(problem: Problem, *, batch: int, rho_over_alpha: float = 0.0) -> list[Critical]:
    """Every criterion that applies to the method, SGD for ρ/α = 0 and SAM otherwise, and the exact threshold last.

    >>> import torch
    >>> [c.name for c in all_criteria(Problem.from_factors(torch.eye(4)), batch=2)][-1]
    'exact, mean square'
    """
    there = problem.sam(rho_over_alpha)
    criteria = [
        Critical("gradient descent, 2/λmax", 2 / there.lambda_max, "diverges above"),
        coherence_criterion(there, batch=batch),
        dexter_theorem_1(there, batch=batch),
    ]
    if rho_over_alpha:
        criteria.append(chang_theorem_3_2(problem, batch=batch, rho_over_alpha=rho_over_alpha))
    else:
        criteria.append(chang_theorem_3_1(problem, batch=batch))
    criteria.append(sharpest_example(there, batch=batch))
    criteria.append(chang_theorem_c9(problem, batch=batch, rho_over_alpha=rho_over_alpha))
    exact = mean_square_threshold(problem, batch=batch, rho_over_alpha=rho_over_alpha)
    return [*criteria, Critical("exact, mean square", exact, "both")]


def _sigma_over_lambda(problem: Problem) -> float:
    sigma = coherence(problem).sigma
    assert sigma is not None  # the curvatures of a Problem are positive semidefinite, so no pair is undefined
    # λmax(S) grows with the number of examples: a part's is that of the whole set times its share.
    return sigma / problem.lambda_max * problem.population / problem.num_examples


def _spread(problem: Problem, batch: int) -> float:
    """(n/B − 1)^½, the relative spread of the number of times an example is drawn."""
    check_batch("bernoulli", num_examples=problem.population, batch=batch)
    return sqrt(problem.population / batch - 1)


def _restriction(problem: Problem) -> tuple[str, ...]:
    if not problem.singular:
        return ()
    return (f"H is singular, λmin(H) = 0: restricted to its range, where λmin = {problem.lambda_min:.3g}",)
