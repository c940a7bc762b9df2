"""Moments of a random batch up to the fourth, as coefficients of means over the examples.

A product of batch curvatures such as H_t² M H_t² is a sum over tuples of examples. Group the tuples by which positions
hold the same example (a set partition σ of the positions): every sampling scheme then gives

    E[H_t … M … H_t] = Σ_σ c_σ F_σ(M),    F_σ(M) = mean over one free example for each block of σ of H … M … H,

so that a scheme is a table of numbers c_σ, and F_σ belongs to the curvatures alone. With replacement, a block is one
draw. Without replacement and for Bernoulli batches E[xᵢxⱼ…] is known for *distinct* examples, and Möbius inversion on
the lattice of partitions turns sums over distinct examples into free sums.
"""

from functools import cache
from math import prod

from evenly.errors import UsageError
from evenly.stability.sampling import Sampling, check_batch

Partition = tuple[tuple[int, ...], ...]


@cache
def partitions(num: int) -> tuple[Partition, ...]:
    """All set partitions of 0 … num − 1.

    >>> partitions(2)
    (((0,), (1,)), ((0, 1),))
    >>> [len(partitions(num)) for num in range(5)]
    [1, 1, 2, 5, 15]
    """
    if num == 0:
        return ((),)
    larger: list[Partition] = []
    for smaller in partitions(num - 1):
        for i, block in enumerate(smaller):
            larger.append((*smaller[:i], (*block, num - 1), *smaller[i + 1 :]))
        larger.append((*smaller, (num - 1,)))
    return tuple(sorted(larger))


def word_coefficients(
    sampling: Sampling, *, num_examples: int, batch: int, left: int, right: int, m: int | None = None
) -> dict[Partition, float]:
    """c_σ of E[meanₕ H_g^left M H_h^right], for `left` curvatures before M and `right` behind it.

    `m` splits the batch into B/m groups of m examples each, and every group has its own H_g (m-SAM): the same group
    stands on both sides with probability m/B. By default the batch is one group.

    >>> word_coefficients("bernoulli", num_examples=4, batch=2, left=1, right=1)
    {((0,), (1,)): 1.0, ((0, 1),): 0.25}
    """
    check_batch(sampling, num_examples=num_examples, batch=batch)
    size = group_size(batch, m)
    num_groups = batch // size
    table = {}
    for sigma in partitions(left + right):
        same = _coefficient(sigma, sampling, num_examples, size, left, same=True)
        other = _coefficient(sigma, sampling, num_examples, size, left, same=False) if num_groups > 1 else 0.0
        table[sigma] = (same + (num_groups - 1) * other) / num_groups
    return table


def group_size(batch: int, m: int | None) -> int:
    """How many examples climb together: `m`, by default the whole batch.

    >>> group_size(12, None), group_size(12, 4)
    (12, 4)
    """
    if m is None:
        return batch
    if m < 1 or m != int(m) or batch % m:
        raise UsageError(f"m = {m} does not divide the batch of {batch}: give a divisor of it, or None for one group.")
    return int(m)


def _coefficient(sigma: Partition, sampling: Sampling, num: int, size: int, left: int, *, same: bool) -> float:
    """c_σ for two sides that use the same group of `size` examples, or two different groups of that size."""
    length = sum(map(len, sigma))
    if sampling == "with":  # a block is one draw, and a draw is uniform over the examples
        return _draws(sigma, size, left, same=same) / float(size) ** length
    total = 0.0
    for pi in partitions(length):
        merged = _merged_counts(pi, sigma)
        if merged is None or (not same and _mixes(pi, left)):
            continue
        moebius = prod((-1) ** (k - 1) * _factorial(k - 1) for k in merged)
        if sampling == "bernoulli":
            probability = (size / num) ** len(pi)
        else:
            probability = _draws(pi, size, left, same=same) / max(_falling_factorial(num, len(pi)), 1)
        total += moebius * probability
    return total * float(num) ** len(sigma) / float(size) ** length


def _draws(pi: Partition, size: int, left: int, *, same: bool) -> float:
    """In how many ways distinct draws of a group (or of two groups) can fill the blocks."""
    if same:
        return _falling_factorial(size, len(pi))
    if _mixes(pi, left):
        return 0
    before = sum(block[0] < left for block in pi)
    return _falling_factorial(size, before) * _falling_factorial(size, len(pi) - before)


def _mixes(pi: Partition, left: int) -> bool:
    """Whether a block holds positions of both sides of M: two groups share no example."""
    return any(block[0] < left <= block[-1] for block in pi)


def _merged_counts(pi: Partition, sigma: Partition) -> list[int] | None:
    """How many blocks of π make up each block of σ; None where π is not finer than σ."""
    counts = []
    for block in sigma:
        inside = [part for part in pi if part[0] in block]
        if sum(map(len, inside)) != len(block) or not all(p in block for part in inside for p in part):
            return None
        counts.append(len(inside))
    return counts


def _falling_factorial(num: int, k: int) -> float:
    return float(prod(num - i for i in range(k)))


def _factorial(k: int) -> int:
    return prod(range(1, k + 1))
