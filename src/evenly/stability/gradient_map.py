"""The random linear map A_t from the weights to a batch's gradient: its mean, and its covariance on second moments.

SGD has A_t = H_t. SAM that ascends on all examples has A_t = H_t P, P = I + (ρ/α)H, which is SGD in other coordinates
(`Problem.sam`). SAM that ascends on its own batch has A_t = H_t(I + (ρ/α)H_t), and m-SAM the mean of such maps over
groups of m examples. Mean-square stability depends only on Ā = E A_t, in whose eigenbasis everything is written, and

    cov(M) = E[A_t M A_t] − Ā M Ā = E[(A_t − Ā) M (A_t − Ā)].

Shapes: R = rank of H.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

from torch import Tensor

from evenly.errors import UsageError, did_you_mean
from evenly.stability import same_batch
from evenly.stability.batch_moments import group_size
from evenly.stability.curvatures import Diagonal
from evenly.stability.problem import Problem, check_ratio
from evenly.stability.sampling import Sampling, second_moment

Ascent = Literal["full", "batch"]
NO_NOISE = 1e-12  # a variance of A_t below this share of ‖Ā‖² is rounding


@dataclass(frozen=True, eq=False)
class GradientMap:
    """Ā by its eigenvalues, and the covariance of A_t: a number per coordinate for diagonal sets, else a map."""

    mean_R: Tensor
    covariance: Callable[[Tensor], Tensor]
    variance_R: Tensor | None

    @property
    def random(self) -> bool:
        """Whether A_t varies: a full batch, one example and equal examples leave it as it is."""
        if self.variance_R is not None:
            return bool(self.variance_R.any())
        noise = self.covariance(self.mean_R.new_ones(len(self.mean_R)).diag()).trace()
        return bool(noise > NO_NOISE * self.mean_R.square().sum())


def gradient_map(
    problem: Problem,
    *,
    batch: int,
    sampling: Sampling = "bernoulli",
    rho_over_alpha: float = 0.0,
    ascent: Ascent = "full",
    m: int | None = None,
    crossing: same_batch.Crossing = "auto",
) -> GradientMap:
    """The mean and covariance of A_t.

    >>> import torch
    >>> one = Problem.from_diagonal(torch.tensor([[1.0], [3.0]]))
    >>> mapped = gradient_map(one, batch=1, sampling="without")
    >>> mapped.mean_R.tolist(), mapped.variance_R.tolist()
    ([2.0], [1.0])
    """
    check_ascent(ascent, rho_over_alpha=rho_over_alpha, batch=batch, m=m)
    if crossing not in get_args(same_batch.Crossing):
        raise UsageError(
            f"crossing = {crossing!r} is not known. {did_you_mean(crossing, get_args(same_batch.Crossing))}"
        )
    if ascent == "batch" and rho_over_alpha:
        moments = same_batch.Words(sampling, problem.population, batch, m, crossing)
        if isinstance(problem.curvatures, Diagonal):
            mean_R, variance_R = same_batch.diagonal_moments(problem.curvatures, moments, rho_over_alpha)
            return GradientMap(mean_R, lambda m_RR: m_RR * variance_R.diag(), variance_R)
        mean_R, covariance = same_batch.factored_moments(problem, moments, rho_over_alpha)
        return GradientMap(mean_R, covariance, None)
    there = problem.sam(rho_over_alpha)
    c1, c2 = second_moment(sampling, num_examples=problem.population, batch=batch)
    lam_R, curvatures = there.eigenvalues_R, there.curvatures
    squared_RR = (c1 - 1) * lam_R[:, None] * lam_R

    def covariance_of_sgd(m_RR: Tensor) -> Tensor:
        return curvatures.sandwich(m_RR).mul_(c2).add_(squared_RR * m_RR)

    variances_R = None
    if isinstance(curvatures, Diagonal):
        variances_R = ((c1 - 1) * lam_R.square() + c2 * curvatures.values_NR.square().mean(0)).clamp_min(0)
    return GradientMap(lam_R, covariance_of_sgd, variances_R)


def check_ascent(ascent: str, *, rho_over_alpha: float, batch: int, m: int | None) -> None:
    """Refuse an unknown ascent, a bad ratio, and groups that do not divide the batch or do not climb.

    >>> check_ascent("full", rho_over_alpha=0.1, batch=4, m=2)
    Traceback (most recent call last):
    evenly.errors.UsageError: m = 2: groups climb on their own examples. Give ascent='batch', or leave m out.
    """
    if ascent not in get_args(Ascent):
        raise UsageError(f"ascent = {ascent!r} is not known. {did_you_mean(ascent, get_args(Ascent))}")
    check_ratio(rho_over_alpha)
    group_size(batch, m)
    if m is not None and rho_over_alpha and ascent == "full":
        raise UsageError(f"m = {m}: groups climb on their own examples. Give ascent='batch', or leave m out.")
