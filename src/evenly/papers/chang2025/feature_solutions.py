"""(C, r)-solutions on drawn data: thresholds, coherence under SAM, and products within a cluster, for several C.

Mistakes 2, 4 and 7 read these numbers. Shapes: N examples, D inputs, M hidden units.
"""

from collections.abc import Sequence
from functools import partial
from math import sqrt
from typing import TYPE_CHECKING

from evenly.papers.chang2025.seeds import by_seed, one_part
from evenly.papers.experiment import Context, PartResult, Scale

if TYPE_CHECKING:
    import torch
    from torch import Tensor

FEATURES = (2, 3, 4, 5)  # C; figure 1d's width of 50 holds 2^5 units, not 2^6
RATIOS = (0.1, 0.5)  # ρ/α


def cube(rng: "torch.Generator", *, num: int, dim: int) -> "Tensor":
    """`num` points of {±1}^dim."""
    import torch

    return 2.0 * torch.randint(2, (num, dim), generator=rng).double() - 1


def compare_features(
    context: Context,
    *,
    seeds: Sequence[int],
    features: Sequence[int],
    dim: int,
    num: int,
    batch: int,
    ratios: Sequence[float],
) -> PartResult:
    """For every C: the criterion, exact thresholds of SGD and SAM, σ_SAM/σ, and products within a cluster.

    `C2.gain0.1` is σ_SAM/σ and `C2.sam0.1` SAM's exact threshold, both at ρ/α = 0.1.
    """
    import torch

    from evenly.rng import generator
    from evenly.stability.coherence_matrix import coherence
    from evenly.stability.criteria import coherence_criterion
    from evenly.stability.mean_square import mean_square_threshold
    from evenly.stability.problem import Problem
    from evenly.stability.solutions import feature_solution, memorising_solution

    def sigma(problem: Problem, ratio: float) -> float:
        measure = coherence(problem, rho_over_alpha=ratio)
        return (measure.lambda_max_s or 0.0) / measure.largest_example

    def one(seed: int) -> dict[str, float]:
        x_ND = cube(generator(seed, "solutions"), num=num, dim=dim)
        inputs_NN = x_ND @ x_ND.mT
        memory = memorising_solution(x_ND).problem(x_ND)
        numbers = {"memorising.exact": mean_square_threshold(memory, batch=batch)}
        for ratio in ratios:
            numbers[f"memorising.sam{ratio:g}"] = mean_square_threshold(memory, batch=batch, rho_over_alpha=ratio)
        for c in features:
            solution = feature_solution(c, dim=dim)
            problem, active_NM = solution.problem(x_ND), solution.active(x_ND).double()
            together = (active_NM @ active_NM.mT).bool() & ~torch.eye(num, dtype=torch.bool)
            gram_NN, level = solution.gram(x_ND), 2 * sqrt(dim + 1)
            formula_NN = level / 2 + (inputs_NN + 1) / (level / 2)
            plain = sigma(problem, 0.0)
            numbers |= {
                # Rounded: what is equal in exact arithmetic must not win by the last bit.
                f"C{c}.criterion": round(coherence_criterion(problem, batch=batch).lr, 9),
                f"C{c}.exact": mean_square_threshold(problem, batch=batch),
                f"C{c}.product": float(gram_NN[together].mean()) / level,
                f"C{c}.formula_error": float((gram_NN - formula_NN)[together].abs().max()),
            }
            for ratio in ratios:
                numbers[f"C{c}.gain{ratio:g}"] = sigma(problem, ratio) / plain
                numbers[f"C{c}.sam{ratio:g}"] = mean_square_threshold(problem, batch=batch, rho_over_alpha=ratio)
        return numbers

    return by_seed(seeds, one)


plan = partial(one_part, work=compare_features, features=list(FEATURES), ratios=list(RATIOS))
SCALES = {
    "smoke": Scale((0, 1, 2), 0.1, {"dim": 20, "num": 40, "batch": 5}, deviations=("d = 20, n = 40, B = 5",)),
    "full": Scale(tuple(range(40)), 0.5, {"dim": 100, "num": 100, "batch": 10}, levels=True),
}
