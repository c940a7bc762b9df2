"""The law of a batch's curvature in one coordinate: all the values of (1/B) Σᵢ xᵢhᵢ and their probabilities."""

from math import exp, lgamma, log

import torch
from torch import Tensor

from evenly.errors import UsageError
from evenly.stability.sampling import Sampling, check_batch

MAX_OUTCOMES = 200_000
NEGLIGIBLE = 1e-30  # an outcome rarer than this does not affect a sum of probabilities times logarithms


def batch_values(values_N: Tensor, *, batch: int, sampling: Sampling = "bernoulli") -> tuple[Tensor, Tensor]:
    """The distinct values of s = (1/B) Σᵢ xᵢhᵢ, ascending, and their probabilities.

    Equal hᵢ are counted together. Batches of fixed size come from independent counts given their total: binomial
    counts give the draw without replacement, Poisson counts the draw with replacement.

    >>> s, p = batch_values(torch.tensor([2.0, 2.0, 0.0, 0.0]), batch=2)
    >>> s.tolist(), [round(q, 9) for q in p.tolist()]
    ([0.0, 1.0, 2.0], [0.25, 0.5, 0.25])
    """
    num = len(values_N)
    check_batch(sampling, num_examples=num, batch=batch)
    values_N = values_N.double().cpu()
    distinct, multiplicity = values_N.unique(return_counts=True)  # type: ignore[no-untyped-call]  # untyped in torch
    sums, taken, prob = (torch.zeros(1, dtype=torch.float64) for _ in range(3))
    prob += 1
    for value, count in zip(distinct.tolist(), multiplicity.tolist(), strict=True):
        if sampling == "bernoulli" and value == 0:
            continue  # drawing these changes nothing
        times, weight = _counts(sampling, count, batch, num)
        if len(prob) * len(times) > 50 * MAX_OUTCOMES:
            raise _too_many(len(distinct))
        sums = (sums[:, None] + value * times).flatten()
        taken = (taken[:, None] + times).flatten() if sampling != "bernoulli" else torch.zeros_like(sums)
        prob = (prob[:, None] * weight).flatten()
        likely = (prob > NEGLIGIBLE) & (taken <= batch)
        sums, taken, prob = _merge(sums[likely], taken[likely], prob[likely])
        if len(prob) > MAX_OUTCOMES:
            raise _too_many(len(distinct))
    if sampling != "bernoulli":
        full = taken == batch
        sums, prob = sums[full], prob[full]
    return sums / batch, prob / prob.sum()


def _counts(sampling: Sampling, count: int, batch: int, num: int) -> tuple[Tensor, Tensor]:
    """How often a group of `count` equal examples is drawn, and the (unconditioned) probabilities."""
    rate = batch / num
    if sampling == "with":
        mean = rate * count
        pairs = [(j, exp(j * log(mean) - mean - lgamma(j + 1))) for j in range(batch + 1)]
    elif rate == 1:
        pairs = [(count, 1.0)]
    else:
        choose = [lgamma(count + 1) - lgamma(j + 1) - lgamma(count - j + 1) for j in range(count + 1)]
        pairs = [(j, exp(c + j * log(rate) + (count - j) * log(1 - rate))) for j, c in enumerate(choose)]
    times, weight = torch.tensor(pairs, dtype=torch.float64).unbind(1)
    return times, weight


def _merge(sums: Tensor, taken: Tensor, prob: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Outcomes with the same total and, to rounding, the same sum, as one."""
    scale = float(sums.abs().max()) or 1.0
    keys = torch.stack([taken, (sums / scale * 2.0**40).round()], 1)
    # `unique` is untyped in torch.
    _, where, size = keys.unique(dim=0, return_inverse=True, return_counts=True)  # type: ignore[no-untyped-call]  # torch's own
    zeros = torch.zeros(len(size), dtype=torch.float64)
    return (
        zeros.scatter_add(0, where, sums) / size,
        zeros.scatter_add(0, where, taken) / size,
        zeros.scatter_add(0, where, prob),
    )


def _too_many(distinct: int) -> UsageError:
    return UsageError(
        f"{distinct} different curvatures in one coordinate give more than {MAX_OUTCOMES:,} different batches, too "
        "many to list. Give rng= to estimate the exponent from random batches instead."
    )
