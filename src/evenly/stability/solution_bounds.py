"""The paper's bounds on the coherence of (C, r)-solutions, with r = (d + 1)^¼."""

from math import log, sqrt

from evenly.errors import UsageError


def chang_theorem_3_5(c: int, *, dim: int, num_examples: int, delta: float = 0.05) -> float:
    """With probability 1 − δ: λmax(S) ≤ 2√(d+1) (n/2^C + √(n(C + log 1/δ)/2)) (Chang & Khanna, 2025, theorem 3.5).

    >>> round(chang_theorem_3_5(2, dim=100, num_examples=100), 1)
    820.2
    """
    _check(c, dim, num_examples)
    if not 0 < delta < 1:
        raise UsageError(f"delta = {delta}: a probability strictly between 0 and 1.")
    return 2 * sqrt(dim + 1) * (num_examples / 2.0**c + sqrt(num_examples * (c + log(1 / delta)) / 2))


def chang_theorem_3_6(c: int, *, dim: int, num_examples: int, rho_over_alpha: float) -> tuple[float, float]:
    """The order of λmax(S_SAM), and maxᵢ λmax(PHᵢ), as theorem 3.6 states them (Chang & Khanna, 2025).

    With L = 2√(d+1): (n/2^C) L √((1 + (ρ/α)L/2^C)² + (ρ/α)²(1/n)(2^−C − 4^−C)L²) and L(1 + (ρ/α)L/2^C). Both rest
    on Hᵢ = Hⱼ within a cluster, which does not hold: inner products there are about half of L.

    >>> chang_theorem_3_6(2, dim=99, num_examples=100, rho_over_alpha=0.0)
    (500.0, 20.0)
    """
    _check(c, dim, num_examples)
    if not rho_over_alpha >= 0:
        raise UsageError(f"rho_over_alpha = {rho_over_alpha}: give a number of at least 0.")
    level = 2 * sqrt(dim + 1)
    ascent = 1 + rho_over_alpha * level / 2.0**c
    spread = rho_over_alpha**2 / num_examples * (2.0**-c - 4.0**-c) * level**2
    return num_examples / 2.0**c * level * sqrt(ascent**2 + spread), level * ascent


def _check(c: int, dim: int, num_examples: int) -> None:
    if not 2 <= c <= dim:
        raise UsageError(f"c = {c}: a (C, r)-solution reads C coordinates, at least 2 and at most d = {dim}.")
    if num_examples < 1:
        raise UsageError(f"num_examples = {num_examples}: give at least 1.")
