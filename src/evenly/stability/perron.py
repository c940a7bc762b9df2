"""The largest eigenvalue of a symmetric operator on matrices that keeps positive matrices positive.

Such an operator has a positive semidefinite eigenmatrix for its spectral radius (Krein & Rutman, 1948), and a positive
definite start overlaps with it: Lanczos' three-term recurrence cannot miss it and needs no random start.
"""

from collections.abc import Callable

import torch
from torch import Tensor

MAX_ITERATIONS = 1000


def largest_eigenvalue(apply: Callable[[Tensor], Tensor], start: Tensor, *, tol: float = 1e-11) -> float:
    """λmax by Lanczos from `start`, to a relative error of `tol`.

    Past vectors are neither kept nor orthogonalised against, which only produces repeated copies of converged
    eigenvalues (Paige, 1980) and does not affect the largest. The error of a Ritz value θ with residual r and
    distance g to the next is at most min(r, r²/g).

    >>> d = torch.tensor([[1.0, 2.0], [2.0, 5.0]], dtype=torch.float64)
    >>> round(largest_eigenvalue(lambda m: d * m, torch.ones_like(d)), 9)
    5.0
    """
    previous, current = torch.zeros_like(start), start / start.norm()
    alphas: list[float] = []
    betas: list[float] = []
    calm = 0
    for _ in range(MAX_ITERATIONS):
        image = apply(current)
        alphas.append(float((image * current).sum()))
        image = image.sub_(current, alpha=alphas[-1])
        if betas:
            image.sub_(previous, alpha=betas[-1])
        beta = float(image.norm())
        theta, residual, gap = _top_ritz(alphas, betas, beta)
        scale = max(abs(theta), torch.finfo(start.dtype).tiny)
        error = min(residual, residual * residual / gap) if gap > 0 else residual
        calm = calm + 1 if error <= tol * scale else 0
        # Twice in a row: a single small residual may belong to a smaller eigenvalue that the Ritz value is passing.
        if calm >= 2 or beta <= 1e-14 * scale:
            return theta
        betas.append(beta)
        previous, current = current, image.div_(beta)
    raise ArithmeticError(f"Lanczos did not settle in {MAX_ITERATIONS} steps: {theta} with residual {residual}.")


def _top_ritz(alphas: list[float], betas: list[float], beta: float) -> tuple[float, float, float]:
    """The largest Ritz value, its residual, and its distance to the second largest."""
    tridiagonal = torch.diag(torch.tensor(alphas, dtype=torch.float64))
    if betas:
        off = torch.tensor(betas, dtype=torch.float64)
        tridiagonal += torch.diag(off, 1) + torch.diag(off, -1)
    values, vectors = torch.linalg.eigh(tridiagonal)
    gap = float(values[-1] - values[-2]) if len(values) > 1 else 0.0
    return float(values[-1]), beta * abs(float(vectors[-1, -1])), gap


def perron_pair(
    apply: Callable[[Tensor], Tensor], start: Tensor, *, tol: float = 1e-10, depth: int = 16
) -> tuple[float, Tensor]:
    """The spectral radius of a map that keeps positive matrices positive, and its eigenmatrix, by Arnoldi's method.

    The map need not be symmetric. `depth` steps from `start`, begun again from the best vector until the residual is at
    most tol·radius.

    >>> d = torch.tensor([[1.0, 2.0], [2.0, 5.0]], dtype=torch.float64)
    >>> value, matrix = perron_pair(lambda m: d * m, torch.ones_like(d))
    >>> round(value, 9), round(float(matrix[1, 1].abs() / matrix.norm()), 6)
    (5.0, 1.0)
    """
    shape, current = start.shape, start.reshape(-1) / start.norm()
    for _ in range(MAX_ITERATIONS):
        basis, upper = [current], torch.zeros(depth + 1, depth, dtype=torch.float64)
        for k in range(depth):
            image = apply(basis[k].view(shape)).reshape(-1)
            for _again in range(2):  # twice: once leaves rounding errors in the basis
                held = torch.stack(basis)
                overlap = held @ image
                image = image - held.mT @ overlap
                upper[: k + 1, k] += overlap.cpu()
            beta = float(image.norm())
            values, vectors = torch.linalg.eig(upper[: k + 1, : k + 1])
            top = int(values.real.argmax())
            theta, weights = float(values[top].real), vectors[:, top].real
            weights = weights / weights.norm()
            residual = beta * abs(float(weights[-1]))
            scale = max(abs(theta), torch.finfo(start.dtype).tiny)
            if residual <= tol * scale or beta <= 1e-14 * float(upper.abs().max()) or k + 1 == depth:
                break
            upper[k + 1, k] = beta
            basis.append(image / beta)
        current = torch.stack(basis).mT @ weights.to(start)
        current = current / current.norm()
        if residual <= tol * scale or beta <= 1e-14 * scale:
            return theta, current.view(shape)
    raise ArithmeticError(f"Arnoldi did not settle in {MAX_ITERATIONS} restarts: {theta} with residual {residual}.")
