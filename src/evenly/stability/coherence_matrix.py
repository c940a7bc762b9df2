"""Coherence: how well the curvatures of different examples align.

Shapes: N examples, P parameters.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from evenly.errors import DataError, UsageError
from evenly.stability.problem import Problem


@dataclass(frozen=True, eq=False)
class Coherence:
    """The coherence matrix of a set of curvatures, and its measures.

    Parameters
    ----------
    matrix_NN
        S_ij = √Tr(HᵢHⱼ), with NaN where the trace is negative and S undefined.
    lambda_max_s
        λmax(S); None where a pair is undefined.
    lambda_max_s_without_root
        λmax of Tr(HᵢHⱼ) itself, which table 1 of Chang & Khanna (2025) reports as λmax(S).
    lambda_max, trace
        Of H = meanᵢ Hᵢ.
    largest_example
        maxᵢ λmax(Hᵢ).
    undefined_pairs
        How many of the n(n+1)/2 unordered pairs have Tr(HᵢHⱼ) < 0; always 0 for Hᵢ ⪰ 0.
    """

    matrix_NN: Tensor
    lambda_max_s: float | None
    lambda_max_s_without_root: float
    lambda_max: float
    trace: float
    largest_example: float
    undefined_pairs: int = 0

    @property
    def sigma(self) -> float | None:
        """σ = λmax(S)/maxᵢ λmax(Hᵢ); None where S is undefined."""
        return None if self.lambda_max_s is None else self.lambda_max_s / self.largest_example

    @property
    def sigma_without_root(self) -> float:
        """λmax(Tr HᵢHⱼ)/maxᵢ λmax(Hᵢ): the σ of the paper's table 1; it scales with the curvature, σ does not."""
        return self.lambda_max_s_without_root / self.largest_example


def coherence(problem: Problem, *, rho_over_alpha: float = 0.0) -> Coherence:
    """The coherence matrix and measure of a problem; with ρ/α > 0, those of SAM.

    S_ij = ‖Hᵢ^½Hⱼ^½‖_F = √Tr(HᵢHⱼ), σ = λmax(S)/maxᵢ λmax(Hᵢ) (Dexter et al., 2024);
    S_SAM,ij = √Tr(PHᵢPHⱼ), P = I + (ρ/α)H (Chang & Khanna, 2025).

    >>> alike = Problem.from_factors(torch.ones(4, 1))
    >>> round(coherence(alike).sigma, 9), round(coherence(Problem.from_factors(torch.eye(4))).sigma, 9)
    (4.0, 1.0)
    """
    _check_kind(problem)
    problem = problem.sam(rho_over_alpha)
    traces_NN = problem.curvatures.traces().clamp_min(0)  # rounding may leave −1e−17
    matrix_NN = traces_NN.sqrt()
    return Coherence(
        matrix_NN,
        _largest(matrix_NN),
        _largest(traces_NN),
        problem.lambda_max,
        problem.trace,
        float(problem.curvatures.largest().max()),
    )


def coherence_of_hessians(hessians: Tensor) -> Coherence:
    """The same from exact per-example Hessians, N × P × P, which need not be positive semidefinite.

    Away from a minimum Tr(HᵢHⱼ) is negative for many pairs: those are counted in `undefined_pairs`, stand as NaN in
    the matrix, and leave λmax(S) and σ None. The measure without the root is always defined.

    >>> h = torch.tensor([[[1.0]], [[-2.0]]])
    >>> c = coherence_of_hessians(h)
    >>> c.undefined_pairs, c.sigma
    (1, None)
    """
    if hessians.ndim != 3 or hessians.shape[1] != hessians.shape[2] or not hessians.numel():
        raise DataError(f"Hessians must be N×P×P and not empty, not {tuple(hessians.shape)}.")
    h_NPP = hessians.detach().double()
    if not torch.isfinite(h_NPP).all():
        bad = int((~torch.isfinite(h_NPP).flatten(1).all(1)).nonzero()[0])
        raise DataError(f"H_{bad} has an entry that is not finite.")
    flat_NX = h_NPP.flatten(1)
    traces_NN = flat_NX @ flat_NX.mT  # Tr(HᵢHⱼ) = ⟨Hᵢ, Hⱼ⟩ for symmetric matrices
    undefined = traces_NN < 0
    matrix_NN = torch.where(undefined, torch.nan, traces_NN.clamp_min(0).sqrt())
    mean_PP = h_NPP.mean(0)
    pairs = int(undefined.triu().sum())
    return Coherence(
        matrix_NN,
        None if pairs else _largest(matrix_NN),
        _largest(traces_NN),
        _largest(mean_PP),
        float(mean_PP.trace()),
        float(torch.linalg.eigvalsh(h_NPP)[:, -1].max()),
        pairs,
    )


def _check_kind(problem: object) -> None:
    if isinstance(problem, Problem):
        return
    cubic = isinstance(problem, Tensor) and problem.ndim == 3
    call = "coherence_of_hessians(tensor)" if cubic else "coherence(Problem.from_factors(tensor))"
    expected = "Hessians, N×P×P" if cubic else "per-example gradients or factors, N×P"
    raise UsageError(f"coherence: a {type(problem).__name__} is not a Problem. Make one of {expected}: {call}.")


def _largest(symmetric: Tensor) -> float:
    return float(torch.linalg.eigvalsh(symmetric)[-1])
