"""The local learning coefficient: the effective number of parameters of a minimum, by sampling around it."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from evenly import tree
from evenly.curvature import soundness
from evenly.curvature.chunks import Data, as_chunks
from evenly.curvature.losses import Loss, loss_and_gradient, mean_loss
from evenly.diagnostics.subject import Numbers, Subject
from evenly.errors import UsageError
from evenly.models.observation import observing, trainable_parameters


@dataclass(frozen=True)
class LearningCoefficient:
    """The mean over chains, and its standard error; `accepted` is the share of proposals that were taken."""

    value: float
    standard_error: float
    chains: tuple[float, ...]
    accepted: float


def learning_coefficient(
    model: nn.Module,
    data: Data,
    *,
    rng: torch.Generator,
    loss: Loss | None = None,
    step: float = 1e-4,
    pull: float = 100.0,
    draws: int = 200,
    burn_in: int = 100,
    chains: int = 4,
) -> LearningCoefficient:
    """λ̂ = nβ(E[L(w)] − L(w*)), β = 1/log n, over p(w) ∝ exp(−nβL(w) − (γ/2)‖w − w*‖²) (Lau et al., 2023).

    For a regular minimum of d parameters it is d/2; degenerate directions count for less. The samples are Metropolis-
    adjusted Langevin steps w ← w − (ε/2)∇U + √ε ξ on the whole data, so that `step` ε changes the pace and not the
    answer; `pull` is γ, which keeps the walk near w*. Where few proposals are `accepted` take a smaller step; where
    nearly all are, a larger one.

    >>> model = nn.Linear(2, 1, bias=False)
    >>> _ = nn.init.zeros_(model.weight)
    >>> x = torch.randn(200, 2, generator=torch.Generator().manual_seed(0))
    >>> rng = torch.Generator().manual_seed(1)
    >>> coefficient = learning_coefficient(model, (x, torch.zeros(200)), rng=rng, step=0.02, pull=0.0, draws=400)
    >>> abs(coefficient.value - 1.0) < 0.3  # d/2
    True
    """
    for name, number, least in (("step", step, 0), ("draws", draws, 0), ("chains", chains, 0), ("pull", pull, -1)):
        if not least < number < math.inf:
            raise UsageError(
                f"{name} = {number}: give a {'number of at least 0' if name == 'pull' else 'positive number'}."
            )
    params: list[Tensor] = list(trainable_parameters(model).values())
    with observing(model):
        chunks = as_chunks(data, model=model, size=1000)
        x, y = chunks[0]
        mean = mean_loss(loss, soundness.check(model, x), y)
        heat = chunks.num_examples / math.log(max(chunks.num_examples, 3))
        centre, slope = loss_and_gradient(model, params, chunks, mean)

        def energy(offset: list[Tensor]) -> tuple[float, float, list[Tensor]]:
            """L, U and ∇U at w* + offset."""
            with tree.displaced(params, offset):
                value, gradient = loss_and_gradient(model, params, chunks, mean)
            squared = float(tree.dot(offset, offset))
            return value, heat * value + pull / 2 * squared, tree.add(tree.scale(gradient, heat), offset, pull)

        values, taken = [], 0
        for _ in range(chains):
            here = [torch.zeros_like(p) for p in params]
            loss_here, u_here, g_here = centre, heat * centre, tree.scale(slope, heat)
            total = 0.0
            for draw in range(burn_in + draws):
                noise = [torch.randn(p.shape, generator=rng, dtype=torch.float64).to(p) for p in params]
                there = tree.add(tree.add(here, g_here, -step / 2), noise, math.sqrt(step))
                loss_there, u_there, g_there = energy(there)
                back = tree.add(tree.add(here, there, -1.0), g_there, step / 2)
                forth = tree.scale(noise, math.sqrt(step))
                log_ratio = u_here - u_there
                log_ratio += (float(tree.dot(forth, forth)) - float(tree.dot(back, back))) / (2 * step)
                if math.log(max(float(torch.rand((), generator=rng)), 1e-300)) < log_ratio:
                    here, loss_here, u_here, g_here = there, loss_there, u_there, g_there
                    taken += 1
                total += loss_here if draw >= burn_in else 0.0
            values.append(heat * (total / draws - centre))
    spread = torch.tensor(values, dtype=torch.float64)
    error = float(spread.std() / chains**0.5) if chains > 1 else math.nan
    return LearningCoefficient(float(spread.mean()), error, tuple(values), taken / (chains * (burn_in + draws)))


def measure_learning_coefficient(subject: Subject) -> Numbers:
    """λ̂ with its standard error over the chains, and the share of accepted proposals."""
    coefficient = learning_coefficient(subject.model, subject.part, rng=subject.rng, **subject.options)
    return {
        "learning_coefficient": coefficient.value,
        "learning_coefficient_error": coefficient.standard_error,
        "learning_coefficient_accepted": coefficient.accepted,
    }
