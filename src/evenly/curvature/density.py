"""The whole spectrum as a density, by stochastic Lanczos quadrature, with the trace and the tails.

Shapes: P the operator's size, R random probes, M quadrature nodes of one probe, X points of a grid.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from evenly.curvature.lanczos import Krylov, Symmetric
from evenly.errors import UsageError

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Density:
    """A spectrum as nodes (R × M) with weights that sum to 1 for each probe; NaN-free, padded with weight 0.

    `trace` is P times the mean eigenvalue, and `trace_error` its standard error over the probes.
    """

    nodes: Array
    weights: Array
    size: int
    trace: float
    trace_error: float

    def at(self, points_X: Array, *, width: float) -> Array:
        """The density at these points, every node smeared to a normal curve of standard deviation `width`."""
        x_X11 = np.asarray(points_X, dtype=np.float64)[:, None, None]
        bell_XRM = np.exp(-0.5 * ((x_X11 - self.nodes) / width) ** 2) / (width * math.sqrt(2 * math.pi))
        return np.asarray((bell_XRM * self.weights).sum(2).mean(1))

    def grid(self, num: int = 200, *, width: float | None = None) -> tuple[Array, Array, float]:
        """Points over the whole spectrum, the density there, and the width used (1 % of the range by default)."""
        held = self.nodes[self.weights > 0]
        low, high = float(held.min()), float(held.max())
        width = width or max((high - low) / 100, 1e-12 + 1e-6 * abs(high))
        points_X = np.linspace(low - 4 * width, high + 4 * width, num)
        return points_X, self.at(points_X, width=width), width

    def share_above(self, threshold: float) -> float:
        """The share of the eigenvalues above `threshold`."""
        return float((self.weights * (self.nodes > threshold)).sum(1).mean())

    def trace_above(self, threshold: float) -> float:
        """The part of the trace from eigenvalues above `threshold`."""
        return float(self.size * (self.weights * self.nodes * (self.nodes > threshold)).sum(1).mean())


def density(operator: Symmetric, *, rng: torch.Generator, probes: int = 10, steps: int = 60) -> Density:
    """The spectral density by stochastic Lanczos quadrature (Ubaru et al., 2017; Ghorbani et al., 2019).

    For a random sign vector v/√P, Gauss quadrature of M steps gives vᵀφ(H)v/P ≈ Σ_m w_m φ(θ_m), exact for
    polynomials of degree 2M − 1; the mean over probes estimates Tr φ(H)/P. The trace is Hutchinson's, from the same
    products.

    >>> class Halves:
    ...     size, dtype, device = 10, torch.float64, torch.device("cpu")
    ...     def __matmul__(self, v):
    ...         return torch.tensor([0.0] * 5 + [2.0] * 5, dtype=v.dtype) * v
    >>> spectrum = density(Halves(), probes=2, steps=4, rng=torch.Generator().manual_seed(0))
    >>> round(spectrum.trace, 6), round(spectrum.share_above(1.0), 6)
    (10.0, 0.5)
    """
    if probes < 1 or steps < 1:
        raise UsageError(f"probes = {probes} and steps = {steps}: give 1 or more of each.")
    steps = min(steps, operator.size)
    nodes_RM, weights_RM, traces_R = np.zeros((probes, steps)), np.zeros((probes, steps)), np.zeros(probes)
    for r in range(probes):
        signs = torch.randint(2, (operator.size,), generator=rng, device=rng.device) * 2 - 1
        krylov = Krylov(operator, rng=rng, start=signs.to(operator.device, operator.dtype))
        while krylov.segment == 0 and krylov.products < steps:
            krylov.step()
        # After a breakdown the quadrature is exact: the new segment does not belong to it.
        values_M, vectors_MM = krylov.ritz()
        nodes_RM[r, : len(values_M)] = values_M
        weights_RM[r, : len(values_M)] = vectors_MM[0] ** 2
        traces_R[r] = operator.size * float(vectors_MM[0] ** 2 @ values_M)
    error = float(traces_R.std(ddof=1) / math.sqrt(probes)) if probes > 1 else math.nan
    return Density(nodes_RM, weights_RM, operator.size, float(traces_R.mean()), error)
