"""The work of theorems 3.4 to 3.6 and of the mistakes about (C, r)-solutions (2, 4, 5, 6 and 7).

Shapes: N examples, D inputs, M hidden units, P parameters.
"""

from collections.abc import Sequence
from math import sqrt

import torch
from torch import Tensor

from evenly.papers.chang2025.deciding import worst_share
from evenly.papers.experiment import Context, Found
from evenly.rng import generator
from evenly.stability.coherence_matrix import coherence
from evenly.stability.criteria import coherence_criterion
from evenly.stability.mean_square import mean_square_threshold
from evenly.stability.problem import Problem
from evenly.stability.solution_bounds import chang_theorem_3_5, chang_theorem_3_6
from evenly.stability.solutions import Solution, feature_solution, memorising_solution

DELTA = 0.05
Values = dict[str, dict[int, float]]


def cube(rng: torch.Generator, *, num: int, dim: int) -> Tensor:
    """`num` points of {±1}^dim."""
    return 2.0 * torch.randint(2, (num, dim), generator=rng).double() - 1


def diagonal_coherence(context: Context, *, seeds: Sequence[int], num: int, dim: int) -> Found:
    """Theorem 3.4 both ways: S of memorising solutions, and solutions with diagonal S in which two examples share.

    The second are a family: x₂ = −x₁, one unit with w1 ⊥ x₁, b = (d − 1)^¼ and w2 = y/b.
    """
    values: Values = {}
    for seed in seeds:
        rng = generator(seed, "theorem 3.4")
        x_ND = cube(rng, num=num, dim=dim)
        shared, pair = shared_unit(rng, dim=int(torch.randint(3, 40, (), generator=rng)))
        numbers = {
            "memorising.off": off_diagonal(memorising_solution(x_ND), x_ND),
            "shared.off": off_diagonal(shared, pair),
            "shared.misfit": float((shared(pair) - pair[:, 0] * pair[:, 1]).abs().max()),
            "shared.memorises": float(shared.memorises(pair)),
        }
        _note(values, seed, numbers)
    return Found(values)


def shared_unit(rng: torch.Generator, *, dim: int) -> tuple[Solution, Tensor]:
    """A solution for two opposite examples with one unit, active on both, and orthogonal gradients."""
    x_D = cube(rng, num=1, dim=dim)[0]
    w_D = torch.randn(dim, generator=rng, dtype=torch.float64)
    w_D -= (w_D @ x_D) / dim * x_D
    b = (dim - 1) ** 0.25
    return Solution(w_D[None], torch.tensor([b], dtype=torch.float64), x_D[:1] * x_D[1:2] / b), torch.stack([x_D, -x_D])


def off_diagonal(solution: Solution, x_ND: Tensor) -> float:
    """The largest entry of S beside the diagonal, over the largest on it."""
    s_NN = coherence(Problem.from_gram(solution.gram(x_ND))).matrix_NN
    return float((s_NN - s_NN.diagonal().diag()).abs().max() / s_NN.diagonal().max())


def coherence_bounds(
    context: Context,
    *,
    seeds: Sequence[int],
    features: Sequence[int],
    dim: int,
    sizes: Sequence[int],
    draws: int,
    ratio: float,
) -> Found:
    """Theorems 3.5 and 3.6 on drawn data: how often the bound fails, and measured over stated.

    `broken` is the share of draws in percent for that n and C at which the bound fails most often.

    `exact` is our expectation of gᵢᵀPgᵢ: within a cluster ⟨gᵢ, gⱼ⟩ = r² + (xᵢ·xⱼ + 1)/r², r² = √(d + 1), and
    xᵢ·xⱼ = C + a sum of d − C signs.
    """
    values: Values = {}
    level = 2 * sqrt(dim + 1)
    for seed in seeds:
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
                exact = level + ratio / num * (level**2 + (num - 1) / 2**c * product)
                found_s, found_largest, found_mean = [], [], []
                broken.append([])
                for x_ND in x_XND:
                    problem = solution.problem(x_ND)
                    there = problem.sam(ratio)
                    cluster = float(solution.active(x_ND).sum(0).max())
                    top = coherence(problem).lambda_max_s or 0.0
                    broken[-1].append(top > bound)
                    filled.append(top / (level * cluster))
                    found_s.append((coherence(there).lambda_max_s or 0.0) / stated_s)
                    found_largest.append(float(there.curvatures.largest().max()) / stated_largest)
                    found_mean.append(float(there.curvatures.largest().mean()) / exact)
                numbers |= {
                    f"n{num}.C{c}.s": sum(found_s) / draws,
                    f"n{num}.C{c}.largest": sum(found_largest) / draws,
                    f"n{num}.C{c}.expected": sum(found_mean) / draws,
                }
        numbers |= {"broken": worst_share(broken), "filled": sum(filled) / len(filled)}
        _note(values, seed, numbers)
    return Found(values)


def favoured(
    context: Context, *, seeds: Sequence[int], features: Sequence[int], dim: int, num: int, batch: int, ratio: float
) -> Found:
    """Mistakes 2, 4 and 7: both thresholds for every C, σ_SAM/σ on clusters of equal Hᵢ, and products in a cluster."""
    values: Values = {}
    for seed in seeds:
        x_ND = cube(generator(seed, "solutions"), num=num, dim=dim)
        inputs_NN = x_ND @ x_ND.mT
        memory = memorising_solution(x_ND).problem(x_ND)
        numbers = {"memorising.exact": mean_square_threshold(memory, batch=batch)}
        for c in features:
            solution = feature_solution(c, dim=dim)
            problem, active_NM = solution.problem(x_ND), solution.active(x_ND).double()
            together = (active_NM @ active_NM.mT).bool() & ~torch.eye(num, dtype=torch.bool)
            gram_NN, level = solution.gram(x_ND), 2 * sqrt(dim + 1)
            formula_NN = level / 2 + (inputs_NN + 1) / (level / 2)
            equal = Problem.from_diagonal(level * active_NM)  # what "Hᵢ = Hⱼ in a cluster" means
            numbers |= {
                # Rounded: what is equal in exact arithmetic must not win by the last bit.
                f"C{c}.criterion": round(coherence_criterion(problem, batch=batch).lr, 9),
                f"C{c}.exact": mean_square_threshold(problem, batch=batch),
                f"C{c}.gain": round(_sigma(equal, ratio) / _sigma(equal, 0.0), 9),
                f"C{c}.product": float(gram_NN[together].mean()) / level,
                f"C{c}.formula_error": float((gram_NN - formula_NN)[together].abs().max()),
            }
        _note(values, seed, numbers)
    return Found(values)


def singular(context: Context, *, seeds: Sequence[int], c: int, dim: int, num: int, batch: int, ratio: float) -> Found:
    """Mistake 5: theorem 3.2 and C.9's ε with the smallest eigenvalue of all of H, and with that on its range."""
    values: Values = {}
    for seed in seeds:
        x_ND = cube(generator(seed, "singular"), num=num, dim=dim)
        solution = feature_solution(c, dim=dim)
        gradients_NP = _gradients(solution, x_ND)
        h_PP = gradients_NP.mT @ gradients_NP / num
        problem = solution.problem(x_ND)
        smallest = round(float(torch.linalg.eigvalsh(h_PP)[0]), 9)
        sgd = round(coherence_criterion(problem, batch=batch).lr, 9)
        numbers = {"sgd.lr": sgd, "smallest": smallest, "range.smallest": problem.lambda_min}
        for where, lam in (("", smallest), ("range.", problem.lambda_min)):
            numbers[f"{where}theorem.lr"] = sgd / (1 + ratio * lam)
            numbers[f"{where}epsilon"] = sgd * lam * (1 + ratio * lam)
        _note(values, seed, numbers)
    return Found(values)


def _gradients(solution: Solution, x_ND: Tensor) -> Tensor:
    """∇f(xᵢ) in all parameters, N × P."""
    hidden_NM = solution.hidden(x_ND)
    outer_NM = solution.w2_M * (hidden_NM > 0)
    in_w1 = (outer_NM[:, :, None] * x_ND[:, None]).flatten(1)
    return torch.cat([hidden_NM.relu(), in_w1, outer_NM], 1)


def _sigma(problem: Problem, ratio: float) -> float:
    found = coherence(problem, rho_over_alpha=ratio)
    return (found.lambda_max_s or 0.0) / found.largest_example


def _note(values: Values, seed: int, numbers: dict[str, float]) -> None:
    for name, number in numbers.items():
        values.setdefault(name, {})[seed] = number
