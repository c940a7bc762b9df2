"""Figure 1 of Chang & Khanna (2025): where SGD, random perturbation and SAM diverge over batch size and coherence.

The set for a cell (B, σ) is `overlapping_set`: σ examples share one direction, the others have one each. Its Hᵢ are
diagonal and no example curves in two coordinates, so coordinates are independent, and simulation is exact in law at
little cost: the shared coordinate is stepped with binomial batches; each of the others depends only on how often
its example was drawn, and is sampled at the end.
Shapes: M methods, B batch sizes, S values of σ, K repeats, J coordinates of single examples.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from evenly.errors import UsageError
from evenly.progress import track
from evenly.stability.divergence import Growth, growth, has_diverged
from evenly.stability.map_lines import Family, criterion_lr, exponent, mean_square_lr
from evenly.stability.mean_square import check_lr
from evenly.stability.problem import Problem
from evenly.stability.sampling import check_batch

HUGE = 1e150  # a run this large has diverged; its square must not overflow


@dataclass(frozen=True)
class MapMethod:
    """w ← w − ηH_t(Pw + δ) with P = I + (ρ/α)H, δ ~ N(0, noise² I)."""

    name: str
    rho_over_alpha: float = 0.0
    noise: float = 0.0


@dataclass(frozen=True, eq=False)
class StabilityMap:
    """The arrays of figure 1, all M × B × S.

    `diverged` is the paper's rule on the simulation and `growth` the rate with its error; `criterion_lr` is the
    published criterion's critical η, `mean_square_lr` the exact one, and `exponent` the Lyapunov exponent at `lr`. So
    the three boundaries are the contours criterion_lr = lr, mean_square_lr = lr and exponent = 0.
    """

    lr: float
    methods: tuple[MapMethod, ...]
    batches: tuple[int, ...]
    sigmas: tuple[int, ...]
    diverged: Tensor
    growth: Growth
    criterion_lr: Tensor
    mean_square_lr: Tensor
    exponent: Tensor


def overlapping_set(sigma: int, *, num_examples: int = 100, sharpness: float = 2.0) -> Problem:
    """Hᵢ = m e₁e₁ᵀ for i ≤ σ, else m e_{i−σ+1}e_{i−σ+1}ᵀ, with m = λn/σ so that λmax(H) = λ; its coherence is σ.

    >>> problem = overlapping_set(5)
    >>> problem.rank, problem.lambda_max
    (96, 2.0)
    """
    if not 1 <= sigma <= num_examples:
        raise UsageError(f"sigma = {sigma}: from 1 to n = {num_examples} examples can share a direction.")
    if not sharpness > 0:
        raise UsageError(f"sharpness = {sharpness}: λmax(H) must be positive.")
    rows = torch.arange(num_examples)
    values = torch.zeros(num_examples, num_examples - sigma + 1, dtype=torch.float64)
    values[rows, (rows - sigma + 1).clamp_min(0)] = sharpness * num_examples / sigma
    return Problem.from_diagonal(values)


def stability_map(
    *,
    rng: torch.Generator,
    lr: float = 0.5,
    batches: Sequence[int] = range(1, 50),
    sigmas: Sequence[int] = range(1, 51),
    rho_over_alpha: Sequence[float] = (0.25,),
    noise: float = 0.1,
    num_examples: int = 100,
    sharpness: float = 2.0,
    steps: int = 1000,
    repeats: int = 10,
) -> StabilityMap:
    """Simulate every cell for SGD, random perturbation and SAM at each ρ/α, with the criteria and exact lines beside.

    Batches, starts and noise are shared by the methods; w starts from N(0, I).

    >>> m = stability_map(rng=torch.Generator().manual_seed(0), batches=[2, 40], sigmas=[1, 40], repeats=4)
    >>> [method.name for method in m.methods], m.diverged[0].tolist()
    (['SGD', 'random', 'SAM ρ/α=0.25'], [[True, False], [True, False]])
    """
    check_lr(lr)
    for batch in batches:
        check_batch("bernoulli", num_examples=num_examples, batch=batch)
    if not sigmas or not batches or not all(1 <= sigma <= num_examples for sigma in sigmas):
        raise UsageError(
            f"sigmas = {list(sigmas)}, batches = {list(batches)}: give at least one of each, and σ from 1 to the "
            f"number of examples, {num_examples}."
        )
    if not all(ratio >= 0 for ratio in rho_over_alpha) or not noise >= 0 or not sharpness > 0:
        raise UsageError(
            f"rho_over_alpha = {list(rho_over_alpha)}, noise = {noise}, sharpness = {sharpness}: the first two must be "
            "at least 0, and the sharpness positive."
        )
    if steps < 2 or repeats < 2:
        raise UsageError(f"steps = {steps}, repeats = {repeats}: give at least 2 of each.")
    sams = [MapMethod(f"SAM ρ/α={ratio:g}", rho_over_alpha=ratio) for ratio in rho_over_alpha]
    methods = (MapMethod("SGD"), MapMethod("random", noise=noise), *sams)
    family = Family(tuple(batches), tuple(sigmas), num_examples, sharpness, lr)
    start, half, end = _norms(family, methods, steps=steps, repeats=repeats, rng=rng)
    ratios = [method.rho_over_alpha for method in methods]
    return StabilityMap(
        lr,
        methods,
        family.batches,
        family.sigmas,
        has_diverged(end - start),
        growth(half, end, steps=steps - steps // 2),
        torch.stack([criterion_lr(family, ratio) for ratio in ratios]),
        torch.stack([mean_square_lr(family, ratio) for ratio in ratios]),
        torch.stack([exponent(family, ratio) for ratio in ratios]),
    )


def _norms(
    family: Family, methods: Sequence[MapMethod], *, steps: int, repeats: int, rng: torch.Generator
) -> tuple[Tensor, Tensor, Tensor]:
    """log‖w‖ at the start, at half-time and at the end: M × B × S × K each (the start without M)."""
    cells = (len(family.batches), len(family.sigmas), repeats)
    singles = family.num_examples - min(family.sigmas)
    alone_BSKJ = torch.arange(singles).expand(*cells, -1) < (family.num_examples - family.sigma_BS[..., None, None])
    shared = [torch.randn(cells, generator=rng, dtype=torch.float64)] * len(methods)
    single = [torch.randn((*cells, singles), generator=rng, dtype=torch.float64) * alone_BSKJ] * len(methods)
    norms = [torch.stack([_log_norm(a, b) for a, b in zip(shared, single, strict=True)])]
    # Homogeneous quantities are kept as logarithms: they may grow beyond the range of floats.
    shared = [w if m.noise else w.abs().log() for w, m in zip(shared, methods, strict=True)]
    single = [w if m.noise else w.abs().log() for w, m in zip(single, methods, strict=True)]
    for part in (steps // 2, steps - steps // 2):
        shared = _step_shared(family, methods, shared, part, rng)
        single = _jump_singles(family, methods, single, part, alone_BSKJ, rng)
        logs = [
            torch.logaddexp(2 * a, torch.logsumexp(2 * b, -1)) / 2 if not m.noise else _log_norm(a, b)
            for a, b, m in zip(shared, single, methods, strict=True)
        ]
        norms.append(torch.stack(logs))
    return norms[0], norms[1], norms[2]


def _step_shared(
    family: Family, methods: Sequence[MapMethod], start: Sequence[Tensor], steps: int, rng: torch.Generator
) -> list[Tensor]:
    """The shared coordinate after `steps` batches; given the batches, the noise adds up to one normal number."""
    shape = start[0].shape
    count_BSK = family.sigma_BS[..., None].expand(shape).contiguous()
    rate_BSK = family.rate_B11.expand(shape).contiguous()
    pull_BS1 = (family.lr * family.m_BS / family.batch_B1)[..., None]
    w, spread = list(start), [torch.zeros(shape, dtype=torch.float64) for _ in start]
    for _ in track(range(steps), "stepping batches"):
        pulled_BSK = torch.binomial(count_BSK, rate_BSK, generator=rng).mul_(pull_BS1)
        for i, method in enumerate(methods):
            if method.noise:
                kept = 1 - pulled_BSK
                w[i] = (w[i] * kept).clamp_(-HUGE, HUGE)
                spread[i] = (spread[i] * kept.square() + (method.noise * pulled_BSK).square()).clamp_(max=HUGE**2)
            else:
                p = 1 + method.rho_over_alpha * family.sharpness
                w[i] = w[i] + (1 - p * pulled_BSK).abs_().log_()
    z_BSK = torch.randn(shape, generator=rng, dtype=torch.float64)
    return [v + s.sqrt() * z_BSK if m.noise else v for v, s, m in zip(w, spread, methods, strict=True)]


def _jump_singles(
    family: Family,
    methods: Sequence[MapMethod],
    start: Sequence[Tensor],
    steps: int,
    alone_BSKJ: Tensor,
    rng: torch.Generator,
) -> list[Tensor]:
    """The coordinates of single examples after `steps` batches, each drawn a binomial number of times."""
    shape = start[0].shape
    hits = torch.binomial(
        torch.full(shape, float(steps), dtype=torch.float64),
        family.rate_B11[..., None].expand(shape).contiguous(),
        generator=rng,
    )
    z = torch.randn(shape, generator=rng, dtype=torch.float64)
    pull_BS = family.lr * family.m_BS / family.batch_B1
    after = []
    for w, method in zip(start, methods, strict=True):
        if method.noise:
            # The sign of `kept` is left out: start and noise are symmetric, and only norms are read.
            kept = (1 - pull_BS)[..., None, None]
            grown = (kept.abs().log() * hits).exp().clamp(max=HUGE)
            # Σ_{j<h} kept^{2j} = (1 − kept^{2h})/(1 − kept²), or h where kept² = 1.
            flat = (kept.square() - 1).abs() < 1e-12
            series = torch.where(flat, hits, (1 - grown.square()) / (1 - kept.square()))
            noisy = method.noise * pull_BS.abs()[..., None, None] * series.clamp(0, HUGE**2 / 1e8).sqrt() * z
            after.append((w * grown + noisy) * alone_BSKJ)
        else:
            p_BS = 1 + method.rho_over_alpha * family.sharpness / family.sigma_BS
            after.append(w + _xlog(hits, (1 - p_BS * pull_BS).abs()[..., None, None]))
    return after


def _xlog(times: Tensor, factor: Tensor) -> Tensor:
    """The product times · log(factor), with 0 · log 0 = 0."""
    return torch.where(times > 0, times * factor.log(), 0.0)


def _log_norm(shared: Tensor, single: Tensor) -> Tensor:
    return (shared.square() + single.square().sum(-1)).log() / 2
