"""How sharp a minimum is: the largest eigenvalues of the Hessian, its trace, the size of the weights."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import nn

from evenly.curvature import density, hessian, lanczos
from evenly.curvature.chunks import Data
from evenly.curvature.losses import Loss
from evenly.device import in_float64
from evenly.diagnostics.subject import Numbers, Subject
from evenly.diagnostics.trace import deflated_trace
from evenly.models.observation import observing

NOISE = 10  # residuals below which an eigenvalue may be 0: a residual is no less than the rounding of one product


@dataclass(frozen=True)
class Sharpness:
    """Curvature of the mean loss at the current weights; eigenvalues in units of loss per squared weight.

    Some eigenvalue lies within `residuals[i]` of `eigenvalues[i]`. `lambda_ratio_5` is λ1/λ5. It is NaN if fewer than
    five were requested, or if λ5 is not ten times its residual, as where the Hessian has fewer than five curved
    directions: the ratio would be rounding. `trace` is an estimate with standard error `trace_error`; both are NaN
    without probes.
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
    >>> measured = sharpness(model, (x, torch.zeros(2)), k=2, rng=torch.Generator().manual_seed(0))
    >>> round(measured.lambda_max, 4), round(measured.trace, 4)
    (8.0, 10.0)
    """
    with observing(model):
        operator = hessian(model, data, loss=loss, chunk=chunk)
        k = min(k, operator.size)
        pairs = lanczos(operator, k=k, tol=tol, rng=rng)
        trace, trace_error = math.nan, math.nan
        if trace_probes:
            spectrum = density(operator, probes=trace_probes, steps=1, rng=rng)
            trace, trace_error = spectrum.trace, spectrum.trace_error
        values = tuple(pairs.values.tolist())
        return Sharpness(
            lambda_max=values[0],
            eigenvalues=values,
            residuals=tuple(pairs.residuals.tolist()),
            lambda_ratio_5=_ratio_of_fifth(values, pairs.residuals.tolist()),
            trace=trace,
            trace_error=trace_error,
            l1=l1_norm(model),
            products=operator.products,
        )


def _ratio_of_fifth(values: Sequence[float], residuals: Sequence[float]) -> float:
    """λ1/λ5; NaN where λ5 cannot be told from 0."""
    return values[0] / values[4] if len(values) >= 5 and values[4] > NOISE * residuals[4] else math.nan


def l1_norm(model: nn.Module) -> float:
    """Σ |w| over all parameters (Nguyen et al., 2024, figure 5).

    >>> layer = nn.Linear(1, 1)
    >>> _ = nn.init.constant_(layer.weight, -2.0), nn.init.constant_(layer.bias, 0.5)
    >>> l1_norm(layer)
    2.5
    """
    return float(sum(in_float64(p.detach().abs()).sum() for p in model.parameters()))


def measure_sharpness(subject: Subject) -> Numbers:
    """λ1 … λ5 with residuals, λ1/λ5, the trace with its error, and the L1 norm of the weights."""
    options = subject.options
    measured = sharpness(subject.model, subject.part, rng=subject.rng, **{"trace_probes": 0, **options})
    trace, trace_error = measured.trace, measured.trace_error
    if "trace_probes" not in options:
        with observing(subject.model):
            operator = hessian(subject.model, subject.part, loss=options.get("loss"), chunk=options.get("chunk", 250))
            trace, trace_error = deflated_trace(operator, rng=subject.rng)
    return {
        "lambda_max": measured.lambda_max,
        "lambda_ratio_5": measured.lambda_ratio_5,
        "eigenvalues": list(measured.eigenvalues),
        "eigenvalue_residuals": list(measured.residuals),
        "trace": trace,
        "trace_error": trace_error,
        "l1": measured.l1,
    }
