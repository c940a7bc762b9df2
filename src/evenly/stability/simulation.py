"""Many runs at once: SGD, random perturbation and SAM on the linear model, in one loop over steps.

The three methods are one: w ← w − ηH_t(Pw + δ) with P = I + (ρ/α)H and δ ~ N(0, σ₁²I); SGD has ρ/α = 0 and σ₁ = 0.
So a setting is four numbers, and settings, methods and repeats are axes of a tensor.
Shapes: L settings, K repeats, R = rank of H, T moments at which the norm is read.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from evenly.errors import UsageError
from evenly.stability.mean_square import check_lr
from evenly.stability.problem import Problem
from evenly.stability.sampling import Sampling, check_batch, draw

Numbers = float | Sequence[float] | Tensor


@dataclass(frozen=True, eq=False)
class Runs:
    """log(‖w_t‖/‖w₀‖) of every run at some moments: in logarithms, because runs explode."""

    log_growth_LKT: Tensor
    moments: tuple[int, ...]


def simulate(
    problem: Problem,
    *,
    lr: Numbers,
    batch: int | Sequence[int] | Tensor,
    rng: torch.Generator,
    rho_over_alpha: Numbers = 0.0,
    noise: Numbers = 0.0,
    steps: int = 1000,
    repeats: int = 10,
    moments: Sequence[int] | None = None,
    sampling: Sampling = "bernoulli",
    start_KR: Tensor | None = None,
) -> Runs:
    """Run every setting `repeats` times; lr, batch, ρ/α and noise are numbers or equally long sequences of numbers.

    All settings see the same batches, noise and starts. `moments` (by default half-time and the end) are the steps
    after which norms are read; w starts from N(0, I) on the range of H unless `start_KR` is given.

    >>> one = Problem.from_diagonal(torch.tensor([[1.0]]))
    >>> runs = simulate(one, lr=[0.5, 3.0], batch=1, rng=torch.Generator().manual_seed(0), steps=10, repeats=2)
    >>> (runs.log_growth_LKT[:, 0, -1] / 10).exp().tolist()  # |1 − η| per step
    [0.5, 2.0]
    """
    columns = [_column(v).to(problem.eigenvalues_R.device) for v in (lr, batch, rho_over_alpha, noise)]
    try:
        lr_L, batch_L, ratio_L, noise_L = torch.broadcast_tensors(*columns)  # type: ignore[no-untyped-call]  # untyped in torch
    except RuntimeError:
        lengths = ", ".join(str(len(c)) for c in columns)
        raise UsageError(
            f"lr, batch, rho_over_alpha and noise have lengths {lengths}: give equal ones, or 1."
        ) from None
    for value in lr_L.tolist():
        check_lr(value)
    for value in batch_L.tolist():
        check_batch(sampling, num_examples=problem.drawable(sampling), batch=value)
    if (ratio_L < 0).any() or (noise_L < 0).any():
        raise UsageError("rho_over_alpha and noise must be at least 0.")
    read = tuple(moments) if moments is not None else (steps // 2, steps)
    if steps < 1 or repeats < 1 or any(not 0 <= m <= steps for m in read):
        raise UsageError(
            f"steps = {steps}, repeats = {repeats}, moments = {read}: 1 or more, and moments within steps."
        )

    w_LKR, scale_LK = _start(problem, start_KR, repeats, len(lr_L), rng)
    first_LK = w_LKR.norm(dim=-1).log()
    p_L1R = 1 + ratio_L[:, None, None] * problem.eigenvalues_R
    step_L11, noise_L11, noisy_L1 = (lr_L / batch_L)[:, None, None], noise_L[:, None, None], noise_L[:, None] > 0
    kept: dict[int, Tensor] = {0: torch.zeros_like(scale_LK)}
    for t in range(1, steps + 1):
        counts = draw(sampling, num_examples=problem.num_examples, batches_L=batch_L, repeats=repeats, rng=rng)
        where = w_LKR * p_L1R
        if bool(noisy_L1.any()):
            delta_KR = torch.randn(w_LKR.shape[1:], generator=rng, dtype=torch.float64, device=rng.device)
            where += noise_L11 * (-scale_LK).exp()[..., None] * delta_KR
        w_LKR = w_LKR - step_L11 * problem.curvatures.pull(counts, where)
        norm_LK = w_LKR.norm(dim=-1)
        if t in read:
            kept[t] = scale_LK + norm_LK.log() - first_LK
        # w = e^scale · w_LKR never overflows. With noise the scale stays ≥ 0, so that e^−scale cannot overflow either.
        unit_LK = torch.where(noisy_L1, norm_LK.clamp_min(1), norm_LK.clamp_min(torch.finfo(torch.float64).tiny))
        w_LKR, scale_LK = w_LKR / unit_LK[..., None], scale_LK + unit_LK.log()
    return Runs(torch.stack([kept[t] for t in read], -1), read)


def _column(value: Numbers) -> Tensor:
    return torch.as_tensor(value, dtype=torch.float64).reshape(-1)


def _start(
    problem: Problem, start_KR: Tensor | None, repeats: int, settings: int, rng: torch.Generator
) -> tuple[Tensor, Tensor]:
    """The first w, and 0 as its scale's logarithm."""
    if start_KR is None:
        start_KR = torch.randn((repeats, problem.rank), generator=rng, dtype=torch.float64, device=rng.device)
    if start_KR.shape != (repeats, problem.rank) or (start_KR.norm(dim=-1) == 0).any():
        raise UsageError(
            f"start_KR must be {repeats} × {problem.rank} with no row zero, not {tuple(start_KR.shape)}: "
            "one start per repeat, in the eigenbasis of H."
        )
    w_LKR = start_KR.double().expand(settings, *start_KR.shape).clone()
    return w_LKR, w_LKR.new_zeros(settings, repeats)
