"""Adaptive sharpness: the worst rise of the loss in a ball that is measured in each weight's own size."""

import torch
from torch import Tensor, nn

from evenly.curvature.chunks import Data
from evenly.curvature.losses import Loss
from evenly.curvature.observing import trainable
from evenly.diagnostics.sharpness import Rise, worst_rise
from evenly.diagnostics.subject import Numbers, Subject


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
    ones divided by it, which leaves a ReLU network the same function. A caution: Andriushchenko et al. (2023) find that
    neither kind of sharpness tells how well modern networks generalise. It correlates with settings such as the
    learning rate, and out of distribution sharper minima often do *better*. Compare like with like, and do not select
    by it.

    >>> model = nn.Linear(1, 1, bias=False)
    >>> _ = nn.init.constant_(model.weight, 2.0)
    >>> rng = torch.Generator().manual_seed(0)
    >>> found = adaptive_sharpness(model, (torch.ones(1, 1), torch.zeros(1)), rho=0.5, rng=rng)
    >>> round(found.rise, 6)  # (3² − 2²)/2: ρ|w| = 1
    2.5
    """
    sizes: list[Tensor] = [p.detach().abs() for p in trainable(model).values()]
    return worst_rise(
        model, data, rho=rho, rng=rng, loss=loss, steps=steps, restarts=restarts, chunk=chunk, scale=sizes
    )


def measure_adaptive_sharpness(subject: Subject) -> Numbers:
    """The worst rise within ρ of each weight's own size."""
    settings = {"rho": subject.rho, **subject.options}
    rise = adaptive_sharpness(subject.model, subject.part, rng=subject.rng, **settings)
    return {
        "adaptive_sharpness": rise.rise,
        "adaptive_sharpness_rho": rise.rho,
        "adaptive_sharpness_first_order": rise.first_order,
    }
