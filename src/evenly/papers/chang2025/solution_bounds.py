"""The draws that theorems 3.5 and 3.6 share: coherence of (C, r)-solutions beside its stated bounds.

Shapes: N examples, D inputs, X draws.
"""

from collections.abc import Collection, Sequence
from math import sqrt

from evenly.papers.chang2025.feature_solutions import FEATURES, cube
from evenly.papers.chang2025.seeds import by_seed
from evenly.papers.experiment import Context, Part, PartResult, Scale

DELTA = 0.05
CLUSTER = "The proof takes H_i = H_j within a cluster; their product is about half of that (chang2025/mistake7)."
SCALES = {
    "smoke": Scale((0, 1), 0.1, {"dim": 20, "sizes": (20, 40), "draws": 3}, deviations=("d = 20, n = 20 and 40",)),
    "full": Scale(tuple(range(20)), 3, levels=True, deviations=("n = 50, 100, 400", "ρ/α = 0.1", "δ = 0.05")),
}


def plan(seeds: Sequence[int], *, dim: int = 100, sizes: Sequence[int] = (50, 100, 400), draws: int = 10) -> list[Part]:
    """The seeds in two parts."""
    settings = {"features": list(FEATURES), "dim": dim, "sizes": list(sizes), "draws": draws, "ratio": 0.1}
    half = -(-len(seeds) // 2)
    return [
        Part(f"{part[0]}–{part[-1]}", measure_bounds, {"seeds": part, **settings})
        for part in (list(seeds[:half]), list(seeds[half:]))
        if part
    ]


def measure_bounds(
    context: Context,
    *,
    seeds: Sequence[int],
    features: Sequence[int],
    dim: int,
    sizes: Sequence[int],
    draws: int,
    ratio: float,
) -> PartResult:
    """How often the bound of theorem 3.5 fails, and what theorem 3.6 states beside what is measured.

    `broken` is the share of draws in percent for that n and C at which the bound fails most often.

    `expected` is over our expectation of gᵢᵀPgᵢ: within a cluster ⟨gᵢ, gⱼ⟩ = r² + (xᵢ·xⱼ + 1)/r², r² = √(d + 1), and
    xᵢ·xⱼ = C + a sum of d − C signs.
    """
    from evenly.rng import generator
    from evenly.stability.coherence_matrix import coherence
    from evenly.stability.solution_bounds import chang_theorem_3_5, chang_theorem_3_6
    from evenly.stability.solutions import feature_solution

    level = 2 * sqrt(dim + 1)

    def one(seed: int) -> dict[str, float]:
        rng = generator(seed, "theorem 3.5")
        broken: list[list[bool]] = []
        filled = []
        numbers: dict[str, float] = {}
        for num in sizes:
            x_XND = [cube(rng, num=num, dim=dim) for _ in range(draws)]
            for c in features:
                solution = feature_solution(c, dim=dim)
                stated_s, stated_largest = chang_theorem_3_6(c, dim=dim, num_examples=num, rho_over_alpha=ratio)
                bound = chang_theorem_3_5(c, dim=dim, num_examples=num, delta=DELTA)
                product = dim + 1 + 2 * (c + 1) + ((c + 1) ** 2 + dim - c) / (dim + 1)
                expected = level + ratio / num * (level**2 + (num - 1) / 2**c * product)
                over_s, over_largest, over_expected = [], [], []
                broken.append([])
                for x_ND in x_XND:
                    problem = solution.problem(x_ND)
                    under_sam = problem.sam(ratio)
                    cluster = float(solution.active(x_ND).sum(0).max())
                    top = coherence(problem).lambda_max_s or 0.0
                    broken[-1].append(top > bound)
                    filled.append(top / (level * cluster))
                    over_s.append((coherence(under_sam).lambda_max_s or 0.0) / stated_s)
                    over_largest.append(float(under_sam.curvatures.largest().max()) / stated_largest)
                    over_expected.append(float(under_sam.curvatures.largest().mean()) / expected)
                numbers |= {
                    f"n{num}.C{c}.s": sum(over_s) / draws,
                    f"n{num}.C{c}.largest": sum(over_largest) / draws,
                    f"n{num}.C{c}.expected": sum(over_expected) / draws,
                }
        return numbers | {"broken": largest_share(broken), "filled": sum(filled) / len(filled)}

    return by_seed(seeds, one)


def largest_share(cells: Collection[Sequence[bool]]) -> float:
    """The largest share of True among cells, in percent.

    >>> largest_share([[False, False], [True, False], [False, False]])
    50.0
    """
    return max(100 * sum(cell) / len(cell) for cell in cells)
