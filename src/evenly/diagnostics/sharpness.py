"""How sharp the minimum is: eigenvalues of the Hessian, its trace, the size of the weights, the worst loss nearby."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from evenly import tree
from evenly.curvature import density, hessian, lanczos, soundness
from evenly.curvature.chunks import Chunks, Data, chunked
from evenly.curvature.losses import Loss, Mean, mean_loss
from evenly.curvature.observing import observing, trainable
from evenly.device import in_float64
from evenly.errors import UsageError


@dataclass(frozen=True)
class Sharpness:
    """Curvature of the mean loss at the present weights; eigenvalues in units of loss per squared weight.

    Some eigenvalue lies within `residuals[i]` of `eigenvalues[i]`. `lambda_ratio_5` is λ1/λ5, and NaN where fewer were
    asked for. `trace` is an estimate with standard error `trace_error`; both are NaN where no probe was asked for.
    """

    lambda_max: float
    eigenvalues: tuple[float, ...]
    residuals: tuple[float, ...]
    lambda_ratio_5: float
    trace: float
    trace_error: float
    l1: float
    products: int


def sharpness(
    model: nn.Module,
    data: Data,
    *,
    rng: torch.Generator,
    loss: Loss | None = None,
    k: int = 5,
    tol: float = 1e-3,
    trace_probes: int = 10,
    chunk: int = 250,
) -> Sharpness:
    """λ1 … λk of the Hessian of the mean loss, λ1/λ5 (Jastrzębski et al., 2020), its trace and the weights' L1 norm.

    The eigenvalues by Lanczos to a relative residual of `tol`, the trace by Hutchinson's estimator. Nguyen et al.
    (2024), table 1, use 1,000 examples. The model is measured in eval mode: BatchNorm by its running statistics, no
    dropout.

    >>> model = nn.Linear(2, 1, bias=False)
    >>> x = torch.tensor([[2.0, 0.0], [0.0, 4.0]])  # H = XᵀX/2 = diag(2, 8)
    >>> found = sharpness(model, (x, torch.zeros(2)), k=2, rng=torch.Generator().manual_seed(0))
    >>> round(found.lambda_max, 4), round(found.trace, 4)
    (8.0, 10.0)
    """
    with observing(model):
        operator = hessian(model, data, loss=loss, chunk=chunk)
        k = min(k, operator.size)
        found = lanczos(operator, k=k, tol=tol, rng=rng)
        trace, trace_error = math.nan, math.nan
        if trace_probes:
            spectrum = density(operator, probes=trace_probes, steps=1, rng=rng)
            trace, trace_error = spectrum.trace, spectrum.trace_error
        values = tuple(found.values.tolist())
        return Sharpness(
            lambda_max=values[0],
            eigenvalues=values,
            residuals=tuple(found.residuals.tolist()),
            lambda_ratio_5=values[0] / values[4] if k >= 5 and values[4] else math.nan,
            trace=trace,
            trace_error=trace_error,
            l1=l1_norm(model),
            products=operator.products,
        )


def l1_norm(model: nn.Module) -> float:
    """Σ |w| over all parameters (Nguyen et al., 2024, figure 5).

    >>> layer = nn.Linear(1, 1)
    >>> _ = nn.init.constant_(layer.weight, -2.0), nn.init.constant_(layer.bias, 0.5)
    >>> l1_norm(layer)
    2.5
    """
    return float(sum(in_float64(p.detach().abs()).sum() for p in model.parameters()))


@dataclass(frozen=True)
class Rise:
    """The largest rise of the loss that was found within `rho` of the weights.

    A lower bound of the true maximum, as any search is. `first_order` is ρ‖∇L‖, what SAM assumes.
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
    >>> found = worst_rise(model, (torch.ones(1, 1), torch.zeros(1)), rho=0.5, rng=torch.Generator().manual_seed(0))
    >>> round(found.rise, 6), found.first_order  # (1.5² − 1²)/2
    (0.625, 0.5)
    """
    if not 0 < rho < math.inf:
        raise UsageError(f"rho = {rho} is the radius of the ball around the weights: give a positive, finite number.")
    params: list[Tensor] = list(trainable(model).values())
    with observing(model):
        chunks = chunked(data, model=model, size=chunk)
        x, y = chunks[0]
        mean = mean_loss(loss, soundness.check(model, x), y)
        start, gradient = loss_and_gradient(model, params, chunks, mean)
        gradient = _scaled(gradient, scale)
        directions = [gradient]
        for _ in range(restarts):
            directions.append([_draw(p, rng) for p in params])
        best, evaluations = start, 1
        for direction in directions:
            previous = -math.inf
            for _ in range(steps):
                offset = tree.scale(direction, rho / tree.norm(direction).clamp_min(torch.finfo(params[0].dtype).tiny))
                with tree.displaced(params, _scaled(offset, scale)):
                    value, direction = loss_and_gradient(model, params, chunks, mean)
                direction = _scaled(direction, scale)
                evaluations += 1
                best = max(best, value)
                if value - previous <= 1e-6 * abs(value - start):
                    break
                previous = value
    return Rise(rho, start, best - start, rho * float(tree.norm(gradient)), evaluations)


def loss_and_gradient(
    model: nn.Module, params: Sequence[Tensor], chunks: Chunks, mean: Mean
) -> tuple[float, list[Tensor]]:
    """The mean loss over all chunks, and its gradient."""
    total, gradient = 0.0, [torch.zeros_like(p) for p in params]
    for size, (x, y) in zip(chunks.sizes, chunks, strict=True):
        assert y is not None  # mean_loss has refused data without labels
        with torch.enable_grad():
            value = mean(model(x), y) * (size / chunks.num_examples)
            part = torch.autograd.grad(value, params, materialize_grads=True)
        total += float(value.detach())
        gradient = tree.add(gradient, part)
    return total, gradient


def _scaled(direction: Sequence[Tensor], scale: Sequence[Tensor] | None) -> list[Tensor]:
    return list(direction) if scale is None else [d * s for d, s in zip(direction, scale, strict=True)]


def _draw(like: Tensor, rng: torch.Generator) -> Tensor:
    return torch.randn(like.shape, generator=rng, device=rng.device).to(like)
