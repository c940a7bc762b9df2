"""The local learning coefficient: the effective number of parameters of a minimum, by sampling around it."""

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from evenly import tree
from evenly.curvature.chunks import Data, as_chunks
from evenly.curvature.losses import Loss, loss_and_gradient, mean_loss_of
from evenly.diagnostics.subject import Numbers, Subject
from evenly.errors import UsageError
from evenly.models.observation import observing, trainable_parameters

BEST = 0.574  # the share of accepted proposals at which Langevin steps go furthest (Roberts & Rosenthal, 1998)
FIRST_STEP = 1e-4
UNMIXED = 1.2  # from this ratio of spreads on, the chains have not mixed


@dataclass(frozen=True)
class LearningCoefficient:
    """The mean over chains, and its standard error; `accepted` is the share of proposals that were taken.

    `mixing` is Gelman & Rubin's ratio of the spread of all halves of chains to that within them: 1 where the walk has
    forgotten its start, above 1.2 where it has not.
    """

    value: float
    standard_error: float
    chains: tuple[float, ...]
    accepted: float
    mixing: float
    step: float


def learning_coefficient(
    model: nn.Module,
    data: Data,
    *,
    rng: torch.Generator,
    loss: Loss | None = None,
    step: float | None = None,
    pull: float = 100.0,
    draws: int = 200,
    burn_in: int = 100,
    chains: int = 4,
) -> LearningCoefficient:
    """λ̂ = nβ(E[L(w)] − L(w*)), β = 1/log n, over p(w) ∝ exp(−nβL(w) − (γ/2)‖w − w*‖²) (Lau et al., 2023).

    For a regular minimum of d parameters it is d/2; degenerate directions count for less. The samples are Metropolis-
    adjusted Langevin steps w ← w − (ε/2)∇U + √ε ξ on the whole data, so that `step` ε changes the pace and not the
    answer; by default it is fitted during the `burn_in`, so that about 57 % of the proposals are taken. `pull` is γ,
    which keeps the walk near w*. Where the chains do not mix it warns: take more `draws` and a longer `burn_in`, or a
    larger `pull`.

    >>> model = nn.Linear(2, 1, bias=False)
    >>> _ = nn.init.zeros_(model.weight)
    >>> x = torch.randn(200, 2, generator=torch.Generator().manual_seed(0))
    >>> rng = torch.Generator().manual_seed(1)
    >>> coefficient = learning_coefficient(model, (x, torch.zeros(200)), rng=rng, pull=0.0, draws=400)
    >>> abs(coefficient.value - 1.0) < 0.3  # d/2
    True
    """
    pace = FIRST_STEP if step is None else step
    for name, number, fits, wanted in (
        ("step", pace, pace > 0, "positive number"),
        ("pull", pull, pull >= 0, "number of at least 0"),
        ("draws", draws, draws >= 2, "whole number of at least 2"),
        ("chains", chains, chains >= 1, "whole number of at least 1"),
    ):
        if not fits or number == math.inf:
            raise UsageError(f"{name} = {number}: give a {wanted}.")
    params: list[Tensor] = list(trainable_parameters(model).values())
    with observing(model):
        chunks = as_chunks(data, model=model, size=1000)
        mean = mean_loss_of(model, chunks, loss)
        heat = chunks.num_examples / math.log(max(chunks.num_examples, 3))

        def energy(offset: list[Tensor]) -> _State:
            with tree.displaced(params, offset):
                value, gradient = loss_and_gradient(model, params, chunks, mean)
            squared = float(tree.dot(offset, offset))
            slope = tree.add(tree.scale(gradient, heat), offset, pull)
            return _State(offset, value, heat * value + pull / 2 * squared, slope)

        start = energy([torch.zeros_like(p) for p in params])
        taken, drawn = 0, []
        for _ in range(chains):
            here, losses = start, []
            for draw in range(burn_in + draws):
                here, chance, moved = _propose(here, energy, pace, rng)
                if draw >= burn_in:
                    losses.append(here.loss)
                    taken += moved
                elif step is None:
                    pace *= math.exp((chance - BEST) / math.sqrt(draw + 1))
            drawn.append(losses)
    estimates = heat * (torch.tensor(drawn, dtype=torch.float64) - start.loss)
    values = estimates.mean(1)
    error = float(values.std() / chains**0.5) if chains > 1 else math.nan
    result = LearningCoefficient(
        float(values.mean()), error, tuple(values.tolist()), taken / (chains * draws), _mixing(estimates), pace
    )
    if not result.mixing <= UNMIXED or result.accepted < 0.1:
        warnings.warn(
            f"the walk of the learning coefficient has not mixed (ratio of spreads {result.mixing:.2f}, "
            f"{result.accepted:.0%} of the proposals taken): its value is not to be trusted. Take more draws (now "
            f"{draws}) and a longer burn_in (now {burn_in}), or a larger pull (now {pull:g}).",
            stacklevel=2,
        )
    return result


@dataclass(frozen=True)
class _State:
    """The state of a walk: the offset from w*, with L, U and ∇U there."""

    offset: list[Tensor]
    loss: float
    energy: float
    slope: list[Tensor]


def _propose(
    here: _State, energy: Callable[[list[Tensor]], _State], step: float, rng: torch.Generator
) -> tuple[_State, float, bool]:
    """One Metropolis-adjusted Langevin step: the next state, the acceptance probability, and whether it moved."""
    noise = [torch.randn(p.shape, generator=rng, dtype=torch.float64).to(p) for p in here.offset]
    there = energy(tree.add(tree.add(here.offset, here.slope, -step / 2), noise, math.sqrt(step)))
    back = tree.add(tree.add(here.offset, there.offset, -1.0), there.slope, step / 2)
    log_ratio = (
        here.energy - there.energy + float(tree.dot(noise, noise)) / 2 - float(tree.dot(back, back)) / (2 * step)
    )
    chance = math.exp(min(log_ratio, 0.0)) if log_ratio == log_ratio else 0.0
    moved = float(torch.rand((), generator=rng, dtype=torch.float64)) < chance
    return there if moved else here, chance, moved


def _mixing(values_KT: Tensor) -> float:
    """Gelman & Rubin's √R̂ over the two halves of every chain."""
    half = values_KT.shape[1] // 2
    halves = torch.cat([values_KT[:, :half], values_KT[:, half : 2 * half]])
    within = float(halves.var(1).mean()) if half > 1 else 0.0
    between = float(halves.mean(1).var())
    return math.sqrt((half - 1) / half + between / within) if within else math.inf


def measure_learning_coefficient(subject: Subject) -> Numbers:
    """λ̂ with its standard error over the chains, the share of accepted proposals, and whether the chains mixed."""
    coefficient = learning_coefficient(subject.model, subject.part, rng=subject.rng, **subject.options)
    return {
        "learning_coefficient": coefficient.value,
        "learning_coefficient_error": coefficient.standard_error,
        "learning_coefficient_accepted": coefficient.accepted,
        "learning_coefficient_mixing": None if math.isinf(coefficient.mixing) else coefficient.mixing,
    }
