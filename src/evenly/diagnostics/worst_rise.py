"""The worst rise of the loss near the weights: in a ball, or in one scaled by each weight's size."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from evenly import tree
from evenly.curvature.chunks import Data, as_chunks
from evenly.curvature.losses import Loss, loss_and_gradient, mean_loss_of
from evenly.diagnostics.subject import Numbers, Subject
from evenly.errors import UsageError
from evenly.models.observation import observing, trainable_parameters


@dataclass(frozen=True)
class Rise:
    """The largest rise of the loss that was found within `rho` of the weights.

    Like any search, it gives a lower bound of the true maximum. `first_order` is ρ‖∇L‖, SAM's approximation.
    """

    rho: float
    loss: float
    rise: float
    first_order: float
    evaluations: int


def worst_rise(
    model: nn.Module,
    data: Data,
    *,
    rho: float,
    rng: torch.Generator,
    loss: Loss | None = None,
    steps: int = 20,
    restarts: int = 2,
    chunk: int = 250,
    scale: Sequence[Tensor] | None = None,
) -> Rise:
    """The worst-case rise max_{‖ε‖ ≤ ρ} L(w + ε) − L(w) of the mean loss (Foret et al., 2021, eq. 1), by ascent.

    Each step goes to ε = ρ g/‖g‖ with g the gradient at w + ε (a maximum on the sphere stays where it is), from SAM's
    own ε and from random directions; the best point seen counts. For a convex loss every step rises. With `scale` the
    ball is ‖ε/scale‖ ≤ ρ, entry by entry (`adaptive_sharpness`).

    >>> model = nn.Linear(1, 1, bias=False)
    >>> _ = nn.init.constant_(model.weight, 1.0)
    >>> worst = worst_rise(model, (torch.ones(1, 1), torch.zeros(1)), rho=0.5, rng=torch.Generator().manual_seed(0))
    >>> round(worst.rise, 6), worst.first_order  # (1.5² − 1²)/2
    (0.625, 0.5)
    """
    if not 0 < rho < math.inf:
        raise UsageError(f"rho = {rho} is the radius of the ball around the weights: give a positive, finite number.")
    params: list[Tensor] = list(trainable_parameters(model).values())
    with observing(model):
        chunks = as_chunks(data, model=model, size=chunk)
        mean = mean_loss_of(model, chunks, loss)
        start, gradient = loss_and_gradient(model, params, chunks, mean)
        gradient = _scale(gradient, scale)
        directions = [gradient]
        for _ in range(restarts):
            directions.append([_draw(p, rng) for p in params])
        best, evaluations = start, 1
        for direction in directions:
            previous = -math.inf
            for _ in range(steps):
                offset = tree.scale(direction, rho / tree.norm(direction).clamp_min(torch.finfo(params[0].dtype).tiny))
                with tree.displaced(params, _scale(offset, scale)):
                    value, direction = loss_and_gradient(model, params, chunks, mean)
                direction = _scale(direction, scale)
                evaluations += 1
                best = max(best, value)
                if value - previous <= 1e-6 * abs(value - start):
                    break
                previous = value
    return Rise(rho, start, best - start, rho * float(tree.norm(gradient)), evaluations)


def adaptive_sharpness(
    model: nn.Module,
    data: Data,
    *,
    rho: float,
    rng: torch.Generator,
    loss: Loss | None = None,
    steps: int = 20,
    restarts: int = 2,
    chunk: int = 250,
) -> Rise:
    """The largest L(w + ε) − L(w) over ‖ε/|w|‖₂ ≤ ρ, elementwise (Kwon et al., 2021).

    Unlike `worst_rise` it does not change when a unit's incoming weights are multiplied by a number and its outgoing
    ones divided by it, which leaves a ReLU network the same function. Caution: Andriushchenko et al. (2023) find that
    neither kind of sharpness predicts how well modern networks generalise. It correlates with settings such as the
    learning rate, and out of distribution sharper minima often do *better*. Compare like with like, and do not select
    by it.

    >>> model = nn.Linear(1, 1, bias=False)
    >>> _ = nn.init.constant_(model.weight, 2.0)
    >>> rng = torch.Generator().manual_seed(0)
    >>> worst = adaptive_sharpness(model, (torch.ones(1, 1), torch.zeros(1)), rho=0.5, rng=rng)
    >>> round(worst.rise, 6)  # (3² − 2²)/2: ρ|w| = 1
    2.5
    """
    sizes: list[Tensor] = [p.detach().abs() for p in trainable_parameters(model).values()]
    return worst_rise(
        model, data, rho=rho, rng=rng, loss=loss, steps=steps, restarts=restarts, chunk=chunk, scale=sizes
    )


def measure_rise(subject: Subject) -> Numbers:
    """The worst rise of the loss within ρ, together with ρ‖∇L‖."""
    rise = worst_rise(subject.model, subject.part, rng=subject.rng, **{"rho": subject.rho, **subject.options})
    return {"worst_rise": rise.rise, "worst_rise_rho": rise.rho, "worst_rise_first_order": rise.first_order}


def measure_adaptive_sharpness(subject: Subject) -> Numbers:
    """The worst rise within ρ of each weight's own size."""
    settings = {"rho": subject.rho, **subject.options}
    rise = adaptive_sharpness(subject.model, subject.part, rng=subject.rng, **settings)
    return {
        "adaptive_sharpness": rise.rise,
        "adaptive_sharpness_rho": rise.rho,
        "adaptive_sharpness_first_order": rise.first_order,
    }


def _scale(direction: Sequence[Tensor], scale: Sequence[Tensor] | None) -> list[Tensor]:
    return list(direction) if scale is None else [d * s for d, s in zip(direction, scale, strict=True)]


def _draw(like: Tensor, rng: torch.Generator) -> Tensor:
    return torch.randn(like.shape, generator=rng, device=rng.device).to(like)
