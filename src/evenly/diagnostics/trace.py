"""The trace of an operator known by its products: exact on the leading directions, sampled on the rest."""

import math

import torch

from evenly.curvature.lanczos import Krylov, Symmetric
from evenly.device import in_float64


def deflated_trace(
    operator: Symmetric, *, rng: torch.Generator, steps: int = 40, probes: int = 60, tol: float = 0.05
) -> tuple[float, float]:
    """Tr H and its standard error: exact on a Krylov space V, by sign vectors z on the rest of the space.

    Tr H = Tr VᵀHV + E[zᵀQHQz], Q = I − VVᵀ. V holds the extreme eigenvectors, which make up the variance of
    Hutchinson's estimator (the idea of Hutch++, Meyer et al., 2021). Probes end when the error is `tol` of the trace.

    >>> class Powers:
    ...     size, dtype, device = 100, torch.float64, torch.device("cpu")
    ...     def __matmul__(self, v):
    ...         return 0.5 ** torch.arange(100, dtype=v.dtype) * v
    >>> trace, error = deflated_trace(Powers(), rng=torch.Generator().manual_seed(0))
    >>> round(trace, 6), error < 1e-6
    (2.0, True)
    """
    krylov = Krylov(operator, rng=rng)
    while krylov.products < min(steps, operator.size):
        krylov.step()
    inside, basis = float(krylov.ritz()[0].sum()), krylov.basis
    if krylov.complete:
        return inside, 0.0
    total = squares = 0.0
    for count in range(1, probes + 1):
        z = (torch.randint(2, (operator.size,), generator=rng, device=rng.device) * 2 - 1).to(basis)
        z = z - basis.T @ (basis @ z)
        value = float(torch.dot(in_float64(z), in_float64(operator @ z)))
        total, squares = total + value, squares + value**2
        error = math.sqrt(max(squares - total**2 / count, 0.0) / (count * max(count - 1, 1)))
        if count >= 10 and error <= tol * abs(inside + total / count):
            break
    return inside + total / count, error
