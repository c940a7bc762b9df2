"""Extreme eigenvalues of a symmetric operator, to a stated bound.

Shapes: P the operator's size, M steps taken, K eigenvalues wanted.
"""

import logging
import warnings
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from evenly import memory
from evenly.device import exact, has_float64, in_float64
from evenly.errors import DataError, SetupError, UsageError

_log = logging.getLogger(__name__)

Which = Literal["largest", "smallest", "magnitude"]
Array = NDArray[np.float64]
ROUNDING = 10  # multiple of precision times largest eigenvalue: products cannot tell smaller ones from 0


class Symmetric(Protocol):
    """A symmetric P × P matrix known by its products."""

    @property
    def size(self) -> int:
        """The size of the matrix, P."""

    @property
    def dtype(self) -> torch.dtype:
        """The precision of the products."""

    @property
    def device(self) -> torch.device:
        """The device of the products."""

    def __matmul__(self, v: Tensor, /) -> Tensor: ...


@dataclass(frozen=True)
class Eigenpairs:
    """The requested eigenvalues, most extreme first: an eigenvalue lies within `residuals[i]` of `values[i]`."""

    values: Tensor
    residuals: Tensor
    vectors: Tensor
    products: int
    converged: bool


def lanczos(
    operator: Symmetric,
    *,
    rng: torch.Generator,
    k: int = 5,
    which: Which = "largest",
    tol: float = 1e-3,
    max_products: int = 500,
) -> Eigenpairs:
    """The k extreme eigenpairs by Lanczos with full reorthogonalisation, stopped by the residual.

    For a Ritz pair (θ, y) some eigenvalue λ has |θ − λ| ≤ ‖Hy − θy‖ = β_M |s_M| (Parlett, 1998, §13.2); the run ends
    when that bound is at most tol·|θ| for each of the k pairs (or at rounding level for eigenvalues near 0). The
    error is usually the bound squared over the gap, so far smaller. Ritz values that merely stopped
    changing can still be far off, and do not end the run.

    `which` is "largest" (algebraically), "smallest" or "magnitude". The starting vector is drawn from `rng`. An
    eigenvalue that is repeated exactly is counted as often as it occurs if the Krylov space closes, else once:
    in exact arithmetic one starting vector cannot see more.

    >>> class Diagonal:
    ...     size, dtype, device = 50, torch.float64, torch.device("cpu")
    ...     def __matmul__(self, v):
    ...         return torch.arange(1.0, 51.0, dtype=v.dtype) ** 2 * v
    >>> pairs = lanczos(Diagonal(), k=2, tol=1e-6, rng=torch.Generator().manual_seed(0))
    >>> [round(value, 3) for value in pairs.values.tolist()], pairs.converged
    ([2500.0, 2401.0], True)
    """
    if not 1 <= k <= operator.size:
        raise UsageError(
            f"k = {k}: the operator has {operator.size} eigenvalues; ask for 1 to {operator.size} of them."
        )
    if which not in ("largest", "smallest", "magnitude"):
        raise UsageError(f"which = {which!r}: give 'largest', 'smallest' or 'magnitude'.")
    krylov = Krylov(operator, rng=rng)
    floor = ROUNDING * torch.finfo(operator.dtype).eps
    while True:
        krylov.step()
        values_M, vectors_MM = krylov.ritz()
        rank_M = np.argsort(-_sort_key(values_M, which), kind="stable")
        residuals_M = krylov.beta * np.abs(vectors_MM[-1])
        top_K = rank_M[:k]
        bound_K = np.maximum(tol * np.abs(values_M[top_K]), floor * np.abs(values_M).max())
        converged = len(top_K) == k and bool((residuals_M[top_K] <= bound_K).all()) and _is_complete(krylov, k, which)
        if converged or krylov.complete or krylov.products >= max(max_products, k):
            break
    done = converged or krylov.complete
    if not done:
        warnings.warn(
            f"Lanczos stopped after {krylov.products} products with a residual of {residuals_M[top_K].max():.2g} for "
            f"the {k} wanted eigenvalues: raise max_products, or tol = {tol}.",
            RuntimeWarning,
            stacklevel=2,
        )
    coefficients_KM = torch.from_numpy(vectors_MM[:, top_K].T.copy()).to(krylov.basis)
    return Eigenpairs(
        values=torch.from_numpy(values_M[top_K]),
        # A product in finite precision is itself off by eps·‖H‖: no bound can be below that.
        residuals=torch.from_numpy(
            np.maximum(residuals_M[top_K], torch.finfo(operator.dtype).eps * np.abs(values_M).max())
        ),
        vectors=(coefficients_KM @ krylov.basis).to(operator.device),
        products=krylov.products,
        converged=done,
    )


class Krylov:
    """An orthonormal basis of {v, Hv, H²v, …}, grown step by step, and the tridiagonal matrix of H in it."""

    def __init__(self, operator: Symmetric, *, rng: torch.Generator, start: Tensor | None = None) -> None:
        self._operator, self._rng = operator, rng
        self._storage = torch.empty(0, operator.size, dtype=operator.dtype, device=operator.device)
        self._grow(min(32, operator.size))
        self._alphas: list[float] = []
        self._betas: list[float] = []
        self.segment = 0  # where the current invariant subspace begins; a breakdown starts a new one
        self.closed = 0  # where the previous, complete one begins
        self.beta = 0.0
        self._next = self._new_direction() if start is None else start / torch.linalg.vector_norm(start)

    @property
    def products(self) -> int:
        """Products taken, which is also the size of the basis."""
        return len(self._alphas)

    @property
    def basis(self) -> Tensor:
        """The basis, one vector a row: M × P."""
        return self._storage[: self.products]

    @property
    def complete(self) -> bool:
        """Whether the basis spans everything."""
        return self.products == self._operator.size

    def step(self) -> None:
        """One product, and a basis larger by one."""
        m = self.products
        if m > 0:
            self._betas.append(self.beta)
        if m == len(self._storage):
            # Grown by half: doubling could waste as much memory as the basis, the largest object, needs.
            self._grow(min(m + m // 2, self._operator.size))
        q_P = self._storage[m] = self._next
        r_P = self._operator @ q_P
        alpha = float(torch.dot(in_float64(q_P), in_float64(r_P)))
        if not np.isfinite(alpha):
            raise DataError("a curvature product is not finite: the loss, its gradient or the weights hold NaN or inf.")
        self._alphas.append(alpha)
        r_P = self._orthogonalise(r_P)
        self.beta = float(torch.linalg.vector_norm(r_P))
        scale = max(abs(a) for a in (*self._alphas, *self._betas, self.beta))
        if self.complete:
            self.beta = 0.0
        elif self.beta <= ROUNDING * torch.finfo(self._operator.dtype).eps * scale:
            # The space is closed under H. Continue with a new direction in its complement, coupled to nothing.
            self.beta, self.closed, self.segment, self._next = 0.0, self.segment, self.products, self._new_direction()
        else:
            self._next = r_P / self.beta

    def _grow(self, rows: int) -> None:
        """Reserve memory for this many vectors: on the device, or on the host; a `SetupError` if neither has enough."""
        old, (size, dtype) = self._storage, (self._operator.size, self._operator.dtype)
        device, needed = old.device, rows * size * dtype.itemsize
        if device.type != "cpu" and needed > memory.budget(device):
            _log.warning(
                "Lanczos keeps its %d vectors of %d parameters on the host from here on: %s has no room for %.1f GB. "
                "That is slower; fewer max_products, or a larger tol, need less.",
                rows, size, device, needed / 1e9,
            )  # fmt: skip
            device = torch.device("cpu")
        left = memory.free(device)
        if device.type == "cpu" and left is not None and needed > left:
            raise SetupError(
                f"Lanczos needs {needed / 1e9:.1f} GB for {rows} vectors of {size:,} parameters, and {left / 1e9:.1f} "
                "GB are left: give fewer max_products, a larger tol, or only= some of the layers."
            )
        self._storage = torch.empty(rows, size, dtype=dtype, device=device)
        self._storage[: len(old)] = old

    def ritz(self, start: int = 0) -> tuple[Array, Array]:
        """Eigenvalues and eigenvectors (columns) of the tridiagonal matrix from row `start` on."""
        beside = np.asarray(self._betas[start:])
        matrix = np.diag(np.asarray(self._alphas[start:])) + np.diag(beside, 1) + np.diag(beside, -1)
        values, vectors = np.linalg.eigh(matrix)
        return values, vectors

    def _orthogonalise(self, r_P: Tensor) -> Tensor:
        """The part of r orthogonal to the basis; projected twice against rounding errors (Kahan, Parlett)."""
        basis_MP, home = self.basis, r_P.device
        r_P = r_P.to(basis_MP.device)
        with exact():
            for _ in range(2):
                r_P = r_P - basis_MP.T @ (basis_MP @ r_P)
        return r_P.to(home)

    def _new_direction(self) -> Tensor:
        # Drawn in float64 where possible, so that float32 and float64 start from the same vector.
        wide = torch.float64 if has_float64(self._rng.device) else torch.float32
        draw = torch.randn(self._operator.size, generator=self._rng, dtype=wide, device=self._rng.device)
        r_P = self._orthogonalise(draw.to(self._operator.device, self._operator.dtype))
        return torch.nn.functional.normalize(r_P, dim=0, eps=0.0)


def _is_complete(krylov: Krylov, k: int, which: Which) -> bool:
    """After a breakdown: whether the complement, as far as it is known, has no eigenvalue among the top k."""
    if krylov.segment == 0:
        return True
    # A random direction has a component along every remaining eigenvalue, so a space that has just closed shows all of
    # them, and its complement can only repeat them: where few directions curve, checking the zeros once is enough.
    just_closed = krylov.segment == krylov.products
    everything = np.sort(_sort_key(krylov.ritz()[0], which))[::-1]
    values, vectors = krylov.ritz(krylov.closed if just_closed else krylov.segment)
    lead = int(np.argmax(_sort_key(values, which)))
    residual = krylov.beta * abs(vectors[-1, lead])
    slack = 1e-6 * abs(everything[0])
    return bool(_sort_key(values[lead : lead + 1], which)[0] + residual <= everything[k - 1] + slack)


def _sort_key(values: Array, which: Which) -> Array:
    """Keys that are largest for the requested values."""
    if which == "magnitude":
        return np.abs(values)
    return values if which == "largest" else -values
