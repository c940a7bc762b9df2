"""Lyapunov exponents: the rates at which ‖w‖ grows along almost every sequence of batches.

Shapes: K replicas, Q exponents, R = rank of H.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from evenly.errors import UsageError
from evenly.stability.curvatures import Diagonal
from evenly.stability.exact import check_lr
from evenly.stability.outcomes import batch_values
from evenly.stability.problem import Problem
from evenly.stability.sampling import Sampling, check_batch, draw


@dataclass(frozen=True)
class Estimate:
    """A number and its standard error, which is 0 where the number is exact."""

    value: float
    standard_error: float = 0.0

    def __float__(self) -> float:
        return self.value


def lyapunov_exponent(
    problem: Problem,
    *,
    lr: float,
    batch: int,
    sampling: Sampling = "bernoulli",
    rho_over_alpha: float = 0.0,
    rng: torch.Generator | None = None,
) -> Estimate:
    """γ = lim (1/t) log‖w_t‖ on the range of H, almost surely: w vanishes for γ < 0 and explodes for γ > 0.

    γ = maxₐ E log|1 − ηsₐ|, exactly, for diagonal sets (sₐ is the batch's curvature in coordinate a); otherwise, and
    where the batches are too many to list, the top of `lyapunov_spectrum`, which needs `rng`.

    >>> half = Problem.from_diagonal(torch.tensor([[1.0], [1.0]]))
    >>> lyapunov_exponent(half, lr=0.5, batch=1).value  # ¼ log 1 + ½ log ½ + ¼ log 0
    -inf
    """
    check_lr(lr)
    there = problem.sam(rho_over_alpha)
    if isinstance(there.curvatures, Diagonal):
        try:
            return Estimate(
                max(
                    float((prob * (1 - lr * s).abs().log()).sum())
                    for s, prob in coordinates(there, batch=batch, sampling=sampling)
                )
            )
        except UsageError:
            if rng is None:
                raise
    if rng is None:
        raise UsageError("this set is not diagonal: give rng= (a torch.Generator) to estimate the exponent by QR.")
    return lyapunov_spectrum(there, lr=lr, batch=batch, sampling=sampling, rng=rng)[0]


def lyapunov_spectrum(
    problem: Problem,
    *,
    lr: float,
    batch: int,
    rng: torch.Generator,
    num: int = 1,
    steps: int = 2000,
    replicas: int = 16,
    sampling: Sampling = "bernoulli",
) -> list[Estimate]:
    """The `num` largest Lyapunov exponents by the QR method (Benettin et al., 1980), with standard errors.

    `num` orthonormal vectors are carried along by J_t = I − ηH_t and made orthonormal again after each step; the
    logarithms of the diagonals of R average to the exponents. The first tenth of the steps is not counted.

    >>> rng = torch.Generator().manual_seed(0)
    >>> top = lyapunov_spectrum(Problem.from_diagonal(torch.tensor([[1.0]])), lr=0.5, batch=1, rng=rng, steps=20)[0]
    >>> round(top.value, 9), top.standard_error  # log ½
    (-0.693147181, 0.0)
    """
    check_lr(lr)
    check_batch(sampling, num_examples=problem.num_examples, batch=batch)
    if not 1 <= num <= problem.rank:
        raise UsageError(f"num = {num}: a problem of rank {problem.rank} has exponents 1 to {problem.rank}.")
    if replicas < 2 or steps < 10:
        raise UsageError(f"replicas = {replicas}, steps = {steps}: give at least 2 replicas and 10 steps.")
    tiny = torch.finfo(torch.float64).tiny
    start = torch.randn((replicas, problem.rank, num), generator=rng, dtype=torch.float64, device=rng.device)
    w_KQR = torch.linalg.qr(start).Q.mT
    sizes = torch.tensor([batch], device=rng.device)
    total_KQ, skipped = w_KQR.new_zeros(replicas, num), steps // 10
    for step in range(steps):
        counts_KN = draw(sampling, num_examples=problem.num_examples, batches_L=sizes, repeats=replicas, rng=rng)[0]
        w_KQR = w_KQR - lr / batch * problem.curvatures.pull(counts_KN[:, None, :], w_KQR)
        w_KQR, growth_KQ = _orthonormal(w_KQR)
        if step >= skipped:
            total_KQ += growth_KQ.clamp_min(tiny).log()
    rates_KQ = total_KQ / (steps - skipped)
    errors_Q = rates_KQ.std(0) / replicas**0.5
    return [Estimate(float(v), float(e)) for v, e in zip(rates_KQ.mean(0), errors_Q, strict=True)]


def coordinates(problem: Problem, *, batch: int, sampling: Sampling) -> list[tuple[Tensor, Tensor]]:
    """For each coordinate of a diagonal problem the values of a batch's curvature and their probabilities.

    Coordinates that hold the same curvatures in another order share their law and are listed once.
    """
    assert isinstance(problem.curvatures, Diagonal)
    columns = problem.curvatures.values_NR.sort(0).values.unique(dim=1)  # type: ignore[no-untyped-call]  # untyped in torch
    return [batch_values(column, batch=batch, sampling=sampling) for column in columns.unbind(1)]


def _orthonormal(w_KQR: Tensor) -> tuple[Tensor, Tensor]:
    """An orthonormal basis of the rows, and by how much each grew."""
    if w_KQR.shape[1] == 1:
        norms = w_KQR.norm(dim=-1, keepdim=True)
        return w_KQR / norms.clamp_min(torch.finfo(w_KQR.dtype).tiny), norms[..., 0]
    q, r = torch.linalg.qr(w_KQR.mT)
    return q.mT, r.diagonal(dim1=-2, dim2=-1).abs()
