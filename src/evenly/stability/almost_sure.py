"""The almost-sure threshold: the learning rate up to which ‖w‖ → 0 along almost every sequence of batches.

Mean-square stability implies almost-sure stability, not the other way round: above the mean-square threshold E‖w‖² may
grow because of ever rarer explosions while a typical run vanishes. Simulations show the almost-sure boundary.
"""

from collections.abc import Callable
from typing import Unpack

import torch
from torch import Tensor

from evenly.errors import UsageError
from evenly.stability.lyapunov import Estimate, coordinates, lyapunov_spectrum
from evenly.stability.mean_square import mean_square_threshold
from evenly.stability.method import Method
from evenly.stability.problem import Problem

PIECES = 256  # intervals searched at a time


def almost_sure_threshold(
    problem: Problem,
    *,
    batch: int,
    rng: torch.Generator | None = None,
    steps: int = 2000,
    replicas: int = 16,
    **method: Unpack[Method],
) -> Estimate:
    """The smallest η at which the top Lyapunov exponent is 0: exact for diagonal sets, by QR (with `rng`) otherwise.

    Larger η may be stable again in narrow windows, because a batch with ηs near 1 wipes out all growth;
    `lyapunov_exponent` answers for a given η. The QR method uses the same batches for every η that it tries, starts at
    the mean-square threshold, which is never above, and needs about 20 evaluations. The other keywords are those of
    `mean_square_threshold`; with momentum the answer is always by QR.

    >>> almost_sure_threshold(Problem.from_diagonal(torch.tensor([[2.0]])), batch=1).value  # 2/λ
    1.0
    """
    try:
        laws = coordinates(problem, batch=batch, **method)
        return Estimate(min(first_zero(a, prob) for a, prob in laws))
    except UsageError:
        if rng is None:
            raise
    state = rng.get_state()

    def exponent(lr: float) -> Estimate:
        rng.set_state(state)
        return lyapunov_spectrum(problem, lr=lr, batch=batch, rng=rng, steps=steps, replicas=replicas, **method)[0]

    low = mean_square_threshold(problem, batch=batch, **method)
    high = 1.1 * low
    while exponent(high).value < 0:
        low, high = high, 1.1 * high
    for _ in range(12):
        middle = (low + high) / 2
        low, high = (middle, high) if exponent(middle).value < 0 else (low, middle)
    middle, width = (low + high) / 2, 0.05 * high
    slope = (exponent(middle + width).value - exponent(middle - width).value) / (2 * width)
    return Estimate(middle, exponent(middle).standard_error / max(slope, torch.finfo(torch.float64).tiny))


def first_zero(s_J: Tensor, prob_J: Tensor) -> float:
    """The smallest η > 0 with f(η) = Σⱼ pⱼ log|1 − ηsⱼ| ≥ 0.

    f is concave between its poles 1/sⱼ, where it falls to −∞, and negative before the first. So each piece has one
    maximum, found by bisection on f′; the first piece whose maximum is not negative holds the crossing.

    >>> round(first_zero(torch.tensor([0.0, 2.0]), torch.tensor([0.5, 0.5])), 12)
    1.0
    """
    positive = s_J > 0
    s_J, prob_J = s_J[positive].double(), prob_J[positive].double()
    poles = (1 / s_J).sort().values
    ends = torch.cat([poles[1:], poles.new_tensor([torch.inf])])

    def value(lr_X: Tensor) -> Tensor:
        return ((1 - lr_X[:, None] * s_J).abs().log() * prob_J).sum(1)

    def slope(lr_X: Tensor) -> Tensor:
        return (s_J / (lr_X[:, None] * s_J - 1) * prob_J).sum(1)

    for begin in range(0, len(poles), PIECES):
        left, right = poles[begin : begin + PIECES], ends[begin : begin + PIECES]
        # Beyond the last pole f rises for ever, and is not negative from 2/sⱼ of the smallest sⱼ on.
        finite = torch.where(right.isinf(), 2 * left, right)
        top = _bisect(lambda x: slope(x) > 0, left, finite)
        top = torch.where(right.isinf(), finite, top)
        reached = value(top) >= 0
        if reached.any():
            first = int(reached.nonzero()[0])
            return float(_bisect(lambda x: value(x) < 0, left[first : first + 1], top[first : first + 1]))
    raise ArithmeticError("no crossing was found; this cannot happen for positive curvatures.")


def _bisect(below: Callable[[Tensor], Tensor], low: Tensor, high: Tensor) -> Tensor:
    """Where `below` turns from true to false, in every interval at once."""
    for _ in range(80):
        middle = (low + high) / 2
        under = below(middle)
        low, high = torch.where(under, middle, low), torch.where(under, high, middle)
    return (low + high) / 2
