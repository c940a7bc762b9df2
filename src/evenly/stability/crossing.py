"""The first learning rate at which the second moment stops shrinking, for optimizers with momentum.

Let h_i be the impulse response of direction i and Q_ij = Σ_t h_i(t)h_j(t) (`LinearOptimizer.response`). Noise with
second moment X enters, leaves Q∘X in the positions, and makes noise cov(Q∘X) again. So for η below the threshold of
the mean the second moment shrinks exactly when

    μ(η) = spectral radius of X ↦ cov(Q(η)∘X)  <  1,

an R × R problem although the state is (w, u). The threshold is the smallest η with μ(η) = 1. By Schur's theorem μ(η′) ≤
μ(η) wherever Q(η) − Q(η′) ⪰ 0, which is tried on a grid below the η that Newton's method gives; where it does not hold,
μ is computed there.
"""

from collections.abc import Callable
from math import exp, log

import torch
from torch import Tensor

from evenly.stability.gradient_map import GradientMap
from evenly.stability.optimizer import LinearOptimizer
from evenly.stability.perron import largest_eigenvalue, perron_pair

GRID = 8  # learning rates below the crossing at which to check that it is the first
SMALLEST = 1e-3  # the smallest of them, as a share of the crossing


def first_crossing(gradient: GradientMap, optimizer: LinearOptimizer) -> float:
    """The smallest η at which the spectral radius of the second-moment map of (w, u) is 1.

    >>> one = torch.tensor([1.0], dtype=torch.float64)
    >>> noisy = GradientMap(one, lambda m: m, one)  # A = 0 or 2
    >>> first_crossing(noisy, LinearOptimizer())  # 2λ/(λ² + variance)
    1.0
    """
    limit = optimizer.mean_threshold(gradient.mean_R)
    if not gradient.random:
        return limit
    if gradient.variance_R is not None:
        return _diagonal_crossing(gradient.mean_R, gradient.variance_R, optimizer)
    start = gradient.mean_R.new_ones(len(gradient.mean_R)).diag()
    high, matrix, guess = limit, start, min(_guess(gradient, optimizer), 0.9 * limit)
    while True:
        lr, matrix = _newton(gradient, optimizer, guess, high, matrix)
        if lr >= (1 - 1e-12) * limit:  # the noise hardly matters, and μ is all rounding so close to its pole
            mu, fresh = 0.0, matrix
        else:
            # Another eigenvalue may have overtaken the one that Newton's method followed: a fresh start finds the top.
            mu, fresh, _ = _radius(gradient, optimizer, lr, start, 1e-3)
        if mu > 1 + 1e-5:
            high, guess, matrix = lr, lr * (1 - 1e-9), fresh
            continue
        earlier = _earlier_crossing(gradient, optimizer, lr, start)
        if earlier is None:
            return lr
        high, guess, matrix = earlier, earlier / 2, start


def _guess(gradient: GradientMap, optimizer: LinearOptimizer) -> float:
    """The threshold of the SGD that the optimizer is for small η, whose steps are η(1 − τ)/(1 − β)."""
    a_R = optimizer.curvature(gradient.mean_R) + optimizer.weight_decay * optimizer.decoupled * (1 - optimizer.momentum)
    root_RR = ((a_R[:, None] + a_R) / 2).sqrt_()

    def apply(m_RR: Tensor) -> Tensor:
        inner = m_RR / root_RR
        return (gradient.covariance(inner) + inner * (a_R[:, None] * a_R)).div_(root_RR)

    steps = (1 - optimizer.momentum) / (1 - optimizer.dampening)
    return steps * 2 / largest_eigenvalue(apply, a_R.sqrt().diag(), tol=1e-2)


def _newton(
    gradient: GradientMap, optimizer: LinearOptimizer, lr: float, high: float, matrix: Tensor
) -> tuple[float, Tensor]:
    """A root of log μ below `high`, by Newton's method in log η/(η̄ − η) that falls back to bisection.

    μ has a pole at the mean's threshold η̄, near which log μ is a straight line in this coordinate.
    """
    low, tol, limit = 0.0, 1e-2, optimizer.mean_threshold(gradient.mean_R)
    for _ in range(100):
        mu, matrix, slope = _radius(gradient, optimizer, lr, matrix, tol)
        # A rough μ may be too small, hardly too large.
        if mu * (1 + tol) < 1:
            low = max(low, lr)
        elif mu > 1:
            high = min(high, lr)
        step = -log(mu) / slope if mu > 0 and slope > 0 else 0.0
        if abs(step) < 1e-6 and tol <= 1e-5:  # the next Newton step would be about the square of this one
            return _moved(lr, step, limit), matrix
        if high - low <= 1e-13 * high:
            return high, matrix
        trial = _moved(lr, max(-2.0, min(2.0, step)), limit) if step else 0.0
        lr = trial if low < trial < high else ((low + high) / 2 if low else high / 2)
        tol = max(1e-6, min(tol, abs(step) / 3))
    raise ArithmeticError(f"the crossing did not settle: μ = {mu} at lr = {lr}.")


def _radius(
    gradient: GradientMap, optimizer: LinearOptimizer, lr: float, matrix: Tensor, tol: float
) -> tuple[float, Tensor, float]:
    """μ at one η with its eigenmatrix X, and ⟨X, Q′∘X⟩/⟨X, Q∘X⟩, the slope of log μ in log η/(η̄ − η).

    Where Q > 0 the map is symmetric in the coordinates Q^½∘X, otherwise its left eigenmatrix is Q∘X: either way μ is
    right to the square of X's error.
    """
    q_RR = optimizer.response(gradient.mean_R, lr)
    if bool((q_RR > 0).all()):
        root_RR = q_RR.sqrt()
        mu, y_RR = perron_pair(lambda m_RR: gradient.covariance(root_RR * m_RR) * root_RR, root_RR * matrix, tol=tol)
        x_RR = y_RR / root_RR
    else:
        _, x_RR = perron_pair(lambda m_RR: gradient.covariance(q_RR * m_RR), matrix, tol=tol)
        qx_RR = q_RR * x_RR
        mu = float((qx_RR * gradient.covariance(qx_RR)).sum() / (x_RR * qx_RR).sum())
    x_RR = (x_RR + x_RR.mT) / 2
    nudge = 1e-5
    limit = optimizer.mean_threshold(gradient.mean_R)
    moved_RR = optimizer.response(gradient.mean_R, _moved(lr, -nudge, limit))
    slope = float((x_RR.square() * (q_RR - moved_RR)).sum() / (x_RR.square() * q_RR).sum()) / nudge
    return mu, x_RR, slope


def _moved(lr: float, step: float, limit: float) -> float:
    """The η whose log η/(η̄ − η) is larger by `step`.

    >>> _moved(1.0, log(2), 2.0)  # η/(η̄ − η) from 1 to 2
    1.3333333333333333
    """
    return limit / (1 + (limit - lr) / lr * exp(-step))


def _earlier_crossing(gradient: GradientMap, optimizer: LinearOptimizer, lr: float, matrix: Tensor) -> float | None:
    """An η of the grid below `lr` with μ ≥ 1, if there is one."""
    q_RR = optimizer.response(gradient.mean_R, lr)
    scale = q_RR.diagonal().rsqrt()  # a congruence that makes Q's diagonal 1 and changes no sign of a definite form
    for share in torch.logspace(-1e-3, float(torch.log10(torch.tensor(SMALLEST))), GRID).tolist():
        here_RR = optimizer.response(gradient.mean_R, lr * share)
        rise_RR = (q_RR - here_RR) * scale[:, None] * scale
        rise_RR.diagonal().add_(1e-12 * len(scale))
        if int(torch.linalg.cholesky_ex(rise_RR).info) == 0:
            continue
        mu, _, _ = _radius(gradient, optimizer, lr * share, matrix, 1e-3)
        if mu >= 1:
            return float(lr * share)
    return None


def _diagonal_crossing(mean_R: Tensor, variance_R: Tensor, optimizer: LinearOptimizer) -> float:
    """The same for diagonal sets, where q_aa(η)·Var(A_a) = 1 in one coordinate after another."""
    best = optimizer.mean_threshold(mean_R)
    for mean, variance in torch.stack([mean_R, variance_R], 1).unique(dim=0).tolist():  # type: ignore[no-untyped-call]  # torch's own
        if variance > 0:
            best = min(best, _scalar_crossing(mean, variance, optimizer))
    return best


def _scalar_crossing(mean: float, variance: float, optimizer: LinearOptimizer) -> float:
    one = torch.tensor([mean], dtype=torch.float64)
    limit = optimizer.mean_threshold(one)

    def above(lr: float) -> bool:
        return float(optimizer.response(one, lr)) * variance >= 1

    shares = [k / 256 for k in range(1, 256)] + [1 - 2.0**-k for k in range(9, 50)]
    high = next((limit * share for share in shares if above(limit * share)), limit)
    low = high * SMALLEST**4 if high <= limit / 256 else high - limit / 128
    return _bisect(above, max(low, 0.0), high)


def _bisect(above: Callable[[float], bool], low: float, high: float) -> float:
    for _ in range(200):
        middle = (low + high) / 2
        if not low < middle < high:
            break
        low, high = (low, middle) if above(middle) else (middle, high)
    return high
