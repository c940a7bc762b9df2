"""Lyapunov exponents: the rates at which ‖w‖ grows along almost every sequence of batches.

Shapes: K replicas, Q exponents, R = rank of H, S = R numbers of the state, or 2R with momentum.
"""

from dataclasses import dataclass
from typing import Unpack

import torch
from torch import Tensor

from evenly.errors import UsageError
from evenly.stability.batch_moments import group_size
from evenly.stability.curvatures import Diagonal
from evenly.stability.gradient_map import Ascent, check_ascent
from evenly.stability.mean_square import check_lr
from evenly.stability.method import Method, split_method
from evenly.stability.outcomes import batch_values
from evenly.stability.problem import Problem
from evenly.stability.sampling import Sampling, check_batch, draw, draw_groups


@dataclass(frozen=True)
class Estimate:
    """A number and its standard error, which is 0 where the number is exact."""

    value: float
    standard_error: float = 0.0

    def __float__(self) -> float:
        return self.value


def lyapunov_exponent(
    problem: Problem, *, lr: float, batch: int, rng: torch.Generator | None = None, **method: Unpack[Method]
) -> Estimate:
    """γ = lim (1/t) log‖w_t‖ on the range of H, almost surely: w vanishes for γ < 0 and explodes for γ > 0.

    γ = maxₐ E log|1 − ηAₐ|, exactly, for diagonal sets without momentum (Aₐ is the batch's curvature in coordinate a,
    after SAM and the decay); otherwise, and where there are too many batches to list, the top of `lyapunov_spectrum`,
    which needs `rng`. The other keywords are those of `mean_square_threshold`.

    >>> half = Problem.from_diagonal(torch.tensor([[1.0], [1.0]]))
    >>> lyapunov_exponent(half, lr=0.5, batch=1).value  # ¼ log 1 + ½ log ½ + ¼ log 0
    -inf
    """
    check_lr(lr)
    try:
        laws = coordinates(problem, batch=batch, **method)
        return Estimate(max(float((prob * (1 - lr * a).abs().log()).sum()) for a, prob in laws))
    except UsageError:
        if rng is None:
            raise
    return lyapunov_spectrum(problem, lr=lr, batch=batch, rng=rng, **method)[0]


def lyapunov_spectrum(
    problem: Problem,
    *,
    lr: float,
    batch: int,
    rng: torch.Generator,
    num: int = 1,
    steps: int = 2000,
    replicas: int = 16,
    **method: Unpack[Method],
) -> list[Estimate]:
    """The `num` largest Lyapunov exponents by the QR method (Benettin et al., 1980), with standard errors.

    `num` orthonormal vectors are carried along by the step of w, or of (w, u) with momentum, and made orthonormal again
    after each step; the logarithms of the diagonals of R average to the exponents. The first tenth of the steps is not
    counted.

    >>> rng = torch.Generator().manual_seed(0)
    >>> top = lyapunov_spectrum(Problem.from_diagonal(torch.tensor([[1.0]])), lr=0.5, batch=1, rng=rng, steps=20)[0]
    >>> round(top.value, 9), top.standard_error  # log ½
    (-0.693147181, 0.0)
    """
    check_lr(lr)
    optimizer, rest = split_method(method)
    rest.pop("crossing", None)  # batches are drawn, and no fourth moment is needed
    walk = _Walk(problem, batch, **rest)
    size = problem.rank if optimizer.plain else 2 * problem.rank
    if not 1 <= num <= size:
        raise UsageError(f"num = {num}: a problem of rank {problem.rank} has exponents 1 to {size}.")
    if replicas < 2 or steps < 10:
        raise UsageError(f"replicas = {replicas}, steps = {steps}: give at least 2 replicas and 10 steps.")
    tiny = torch.finfo(torch.float64).tiny
    start = torch.randn((replicas, size, num), generator=rng, dtype=torch.float64, device=rng.device)
    z_KQS = torch.linalg.qr(start).Q.mT
    total_KQ, skipped = z_KQS.new_zeros(replicas, num), steps // 10
    for step in range(steps):
        w, u = (z_KQS, torch.zeros_like(z_KQS)) if optimizer.plain else z_KQS.chunk(2, -1)
        w, u = optimizer.step(w, u, walk.gradient(w, rng), lr)
        z_KQS, growth_KQ = _orthonormal(w if optimizer.plain else torch.cat([w, u], -1))
        if step >= skipped:
            total_KQ += growth_KQ.clamp_min(tiny).log()
    rates_KQ = total_KQ / (steps - skipped)
    errors_Q = rates_KQ.std(0) / replicas**0.5
    return [Estimate(float(v), float(e)) for v, e in zip(rates_KQ.mean(0), errors_Q, strict=True)]


class _Walk:
    """Random gradients A_t w for many replicas at once."""

    def __init__(
        self,
        problem: Problem,
        batch: int,
        sampling: Sampling = "bernoulli",
        rho_over_alpha: float = 0.0,
        ascent: Ascent = "full",
        m: int | None = None,
    ) -> None:
        check_batch(sampling, num_examples=problem.drawable(sampling), batch=batch)
        check_ascent(ascent, rho_over_alpha=rho_over_alpha, batch=batch, m=m)
        self.ratio = rho_over_alpha if ascent == "batch" else 0.0
        self.problem = problem.sam(rho_over_alpha) if ascent == "full" else problem
        self.sampling, self.batch = sampling, batch
        self.m = group_size(batch, m) if self.ratio else batch

    def gradient(self, w_KQR: Tensor, rng: torch.Generator) -> Tensor:
        num, curvatures = self.problem.num_examples, self.problem.curvatures
        if self.m == self.batch:
            sizes = torch.tensor([self.batch], device=rng.device)
            counts = draw(self.sampling, num_examples=num, batches_L=sizes, repeats=len(w_KQR), rng=rng)[0]
            groups = [counts[:, None, :] / self.batch]
        else:
            counts = draw_groups(
                self.sampling, num_examples=num, batch=self.batch, m=self.m, repeats=len(w_KQR), rng=rng
            )
            groups = [group[:, None, :] / self.m for group in counts.unbind(1)]
        total = torch.zeros_like(w_KQR)
        for group in groups:
            climbed = w_KQR + self.ratio * curvatures.pull(group, w_KQR) if self.ratio else w_KQR
            total += curvatures.pull(group, climbed)
        return total / len(groups)


def coordinates(problem: Problem, *, batch: int, **method: Unpack[Method]) -> list[tuple[Tensor, Tensor]]:
    """For each coordinate of a diagonal problem the values of A_t, decay included, and their probabilities.

    Coordinates that hold the same curvatures in another order share their law and are listed once. Refused where there
    is no such list: other sets, momentum, groups of a batch.
    """
    optimizer, rest = split_method(method)
    sampling, ratio = rest.get("sampling", "bernoulli"), rest.get("rho_over_alpha", 0.0)
    ascent, m = rest.get("ascent", "full"), rest.get("m")
    check_ascent(ascent, rho_over_alpha=ratio, batch=batch, m=m)
    same = ascent == "batch"
    there = problem if same else problem.sam(ratio)
    grouped = same and ratio and group_size(batch, m) < batch
    if not isinstance(there.curvatures, Diagonal) or not optimizer.plain or grouped:
        raise UsageError(
            "this set is not diagonal, or the method has momentum or groups: give rng= (a torch.Generator) to estimate "
            "its exponent by the QR method."
        )
    problem.drawable(sampling)
    columns = there.curvatures.values_NR.sort(0).values.unique(dim=1)  # type: ignore[no-untyped-call]  # untyped in torch
    laws = [batch_values(column, batch=batch, sampling=sampling) for column in columns.unbind(1)]
    return [((s + ratio * s.square() if same else s) + optimizer.weight_decay, prob) for s, prob in laws]


def _orthonormal(w_KQR: Tensor) -> tuple[Tensor, Tensor]:
    """An orthonormal basis of the rows, and by how much each grew."""
    if w_KQR.shape[1] == 1:
        norms = w_KQR.norm(dim=-1, keepdim=True)
        return w_KQR / norms.clamp_min(torch.finfo(w_KQR.dtype).tiny), norms[..., 0]
    q, r = torch.linalg.qr(w_KQR.mT)
    return q.mT, r.diagonal(dim1=-2, dim2=-1).abs()
