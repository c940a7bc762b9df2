"""m-sharpness: how much the loss of a small group of examples rises at SAM's step for that group."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from evenly import tree
from evenly.curvature.chunks import Data, as_chunks
from evenly.curvature.losses import Loss, loss_and_gradient, mean_loss_of
from evenly.data.labelled import Labelled
from evenly.diagnostics.subject import Numbers, Subject
from evenly.errors import UsageError
from evenly.models.observation import observing, trainable_parameters


@dataclass(frozen=True)
class GroupSharpness:
    """The mean rise over the groups, its standard error, and how many groups of m there were."""

    rise: float
    standard_error: float
    m: int
    groups: int


def m_sharpness(
    model: nn.Module, data: Data, *, rho: float, m: int, rng: torch.Generator, loss: Loss | None = None
) -> GroupSharpness:
    """E_S[L_S(w + ρg_S/‖g_S‖) − L_S(w)] over random disjoint groups S of m examples (Foret et al., 2021, section 4).

    SAM with groups of m minimises it; with m = n it is the first step of `worst_rise`. Smaller groups make it larger at
    the same weights, and Andriushchenko & Flammarion (2022) find that SAM's gain grows as m shrinks.

    >>> data = Labelled(torch.tensor([[1.0], [3.0]]), torch.tensor([1, 1]), ("a", "b"))
    >>> model = nn.Linear(1, 1, bias=False)
    >>> _ = nn.init.constant_(model.weight, 2.0)
    >>> rng = torch.Generator().manual_seed(0)
    >>> m_sharpness(model, data, rho=1.0, m=1, rng=rng, loss="squared").rise  # ((2² − 1²) + (8² − 5²))/4
    10.5
    """
    if not 0 < rho < math.inf:
        raise UsageError(f"rho = {rho} is the radius of the ball around the weights: give a positive, finite number.")
    params: list[Tensor] = list(trainable_parameters(model).values())
    rises = []
    with observing(model):
        chunks = as_chunks(data, model=model)
        num = chunks.num_examples
        if not 1 <= m <= num:
            raise UsageError(f"m = {m}: a group has 1 to {num} examples.")
        mean = mean_loss_of(model, chunks, loss)
        if not isinstance(data, Labelled):
            x_N, y_N = (torch.cat(parts) for parts in zip(*chunks, strict=True))
        order = torch.randperm(num, generator=rng)
        for start in range(0, num - m + 1, m):
            rows = order[start : start + m].sort().values
            group = data.subset(rows) if isinstance(data, Labelled) else (x_N[rows], y_N[rows])
            chunks = as_chunks(group, model=model)
            before, gradient = loss_and_gradient(model, params, chunks, mean)
            size = rho / tree.norm(gradient).clamp_min(torch.finfo(params[0].dtype).tiny)
            with tree.displaced(params, tree.scale(gradient, size)):
                after, _ = loss_and_gradient(model, params, chunks, mean)
            rises.append(after - before)
    values = torch.tensor(rises, dtype=torch.float64)
    error = float(values.std() / len(values) ** 0.5) if len(values) > 1 else math.nan
    return GroupSharpness(float(values.mean()), error, m, len(values))


def measure_m_sharpness(subject: Subject) -> Numbers:
    """The mean rise of groups of 16 examples (or `m`) at SAM's own step."""
    settings = {"rho": subject.rho, "m": min(16, len(subject.part)), **subject.options}
    rise = m_sharpness(subject.model, subject.part, rng=subject.rng, **settings)
    return {
        "m_sharpness": rise.rise,
        "m_sharpness_error": rise.standard_error,
        "m_sharpness_m": rise.m,
        "m_sharpness_rho": settings["rho"],
    }
