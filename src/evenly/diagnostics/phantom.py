"""Springer et al. (2024), appendix D: the effect of one example's ascent on its importance, predicted and measured.

Shapes: N examples, P parameters.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap
from torch.nn import functional as F

from evenly.curvature import soundness
from evenly.curvature.chunks import Data, as_chunks
from evenly.curvature.losses import mean_loss
from evenly.curvature.per_example import jacobians
from evenly.diagnostics.importance import log_odds
from evenly.errors import UsageError
from evenly.models.observation import observing, trainable_parameters


@dataclass(frozen=True)
class Reweighting:
    """log(λ̃/λ) of every example, with the ascent on that example alone.

    `predicted` is ρ‖∇f‖, which is for the exponential loss; `predicted_logistic` is (1 − λ)·ρ‖∇f‖, the same first order
    for the logistic loss that is trained with. They agree where the example is fitted (λ ≪ 1).
    """

    measured: Tensor
    predicted: Tensor
    predicted_logistic: Tensor


def reweighting(
    model: nn.Module, data: Data, *, rho: float, only: Sequence[str] | None = None, chunk: int = 64
) -> Reweighting:
    """log(λ̃/λ) ≈ ρ‖∇f‖ (eq. 25), f the log-odds of the true class, beside its true value at the phantom weights.

    `only=["head"]` is LSAM, where ‖∇f‖ is the norm of the representation (eq. 27).

    >>> model = nn.Linear(2, 1, bias=False)
    >>> result = reweighting(model, (torch.tensor([[3.0, 4.0]]), torch.tensor([1])), rho=0.1)
    >>> round(result.predicted.item(), 6)  # ρ‖x‖
    0.5
    """
    if not 0 < rho < math.inf:
        raise UsageError(f"rho = {rho} is the radius of the ascent: give a positive, finite number.")
    named = trainable_parameters(model, only=only)
    names = list(named)
    fixed = {name: p.detach() for name, p in model.named_parameters() if name not in named}
    measured, predicted, logistic = [], [], []
    with observing(model):
        buffers = dict(model.named_buffers())
        chunks = as_chunks(data, model=model, size=chunk)
        mean_loss(None, soundness.check(model, chunks[0][0]), chunks[0][1])

        def odds(f: Tensor, y: Tensor | None) -> Tensor:
            assert y is not None
            return _log_odds_of_one(f, y)

        def output_at(step_P: Tensor, x: Tensor) -> Tensor:
            parts = torch.split(step_P, [named[name].numel() for name in names])
            there = {n: named[n].detach() + part.view(named[n].shape) for n, part in zip(names, parts, strict=True)}
            own = {name: buffer.clone() for name, buffer in buffers.items()}
            outputs: Tensor = functional_call(model, (there, fixed, own), (x[None],))
            return outputs[0]

        for x, y in chunks:
            assert y is not None  # mean_loss has refused data without labels
            slope_NP = jacobians(model, x, y, odds, names)[:, 0]
            norm_N = torch.linalg.vector_norm(slope_NP, dim=1)
            step_NP = -rho * slope_NP / norm_N.clamp_min(torch.finfo(slope_NP.dtype).tiny)[:, None]
            with torch.no_grad():
                before_N, after_N = log_odds(model(x), y), log_odds(vmap(output_at, randomness="same")(step_NP, x), y)
            measured.append(F.logsigmoid(-after_N) - F.logsigmoid(-before_N))
            predicted.append(rho * norm_N)
            logistic.append(torch.sigmoid(before_N) * rho * norm_N)
    return Reweighting(torch.cat(measured), torch.cat(predicted), torch.cat(logistic))


def _log_odds_of_one(f: Tensor, y: Tensor) -> Tensor:
    """The log-odds of one example by operations that `vmap` can carry out for many."""
    flat = f.reshape(-1)
    if len(flat) == 1:
        return torch.where(y > 0, flat, -flat)
    mask = torch.arange(len(flat), device=f.device) == y
    own = torch.where(mask, flat, torch.zeros_like(flat)).sum()
    return (own - torch.where(mask, torch.full_like(flat, -torch.inf), flat).logsumexp(0))[None]
