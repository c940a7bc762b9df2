"""Theorem 3.4: a solution memorises if and only if its coherence matrix is diagonal.

Shapes: N examples, D inputs.
"""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from evenly.papers.chang2025.feature_solutions import cube
from evenly.papers.chang2025.seeds import by_seed, one_part
from evenly.papers.charts import Panel
from evenly.papers.claim import Claim
from evenly.papers.experiment import Context, Experiment, PartResult, Scale

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from evenly.stability.solutions import Solution

CLAIMS = (
    Claim("⇒", "S of memorising solutions is diagonal", "memorising.off = 0 ± 1e-9"),
    Claim(
        "⇐",
        "Every solution with diagonal S memorises (1 if it does)",
        "shared.memorises = 1",
        note="on a family of solutions with one unit for two opposite examples; without this direction there is no "
        "“if and only if”, so it decides the row",
    ),
    Claim("counterexample", "S is diagonal for them", "shared.off = 0 ± 1e-9", corrects=True),
    Claim("it fits", "and they fit both examples", "shared.misfit = 0 ± 1e-9", corrects=True),
)


def measure_diagonals(context: Context, *, seeds: Sequence[int], num: int, dim: int) -> PartResult:
    """S of memorising solutions, and solutions with diagonal S in which two examples share a unit."""
    import torch

    from evenly.rng import generator
    from evenly.stability.solutions import memorising_solution

    def one(seed: int) -> dict[str, float]:
        rng = generator(seed, "theorem 3.4")
        x_ND = cube(rng, num=num, dim=dim)
        shared, pair = shared_unit(rng, dim=int(torch.randint(3, 40, (), generator=rng)))
        return {
            "memorising.off": off_diagonal(memorising_solution(x_ND), x_ND),
            "shared.off": off_diagonal(shared, pair),
            "shared.misfit": float((shared(pair) - pair[:, 0] * pair[:, 1]).abs().max()),
            "shared.memorises": float(shared.memorises(pair)),
        }

    return by_seed(seeds, one)


def shared_unit(rng: "torch.Generator", *, dim: int) -> tuple["Solution", "Tensor"]:
    """A solution for two opposite examples with one unit, active on both, and orthogonal gradients.

    x₂ = −x₁, w1 ⊥ x₁, b = (d − 1)^¼ and w2 = y/b.
    """
    import torch

    from evenly.stability.solutions import Solution

    x_D = cube(rng, num=1, dim=dim)[0]
    w_D = torch.randn(dim, generator=rng, dtype=torch.float64)
    w_D -= (w_D @ x_D) / dim * x_D
    b = (dim - 1) ** 0.25
    return Solution(w_D[None], torch.tensor([b], dtype=torch.float64), x_D[:1] * x_D[1:2] / b), torch.stack([x_D, -x_D])


def off_diagonal(solution: "Solution", x_ND: "Tensor") -> float:
    """The largest entry of S beside the diagonal, over the largest on it."""
    from evenly.stability.coherence_matrix import coherence
    from evenly.stability.problem import Problem

    s_NN = coherence(Problem.from_gram(solution.gram(x_ND))).matrix_NN
    return float((s_NN - s_NN.diagonal().diag()).abs().max() / s_NN.diagonal().max())


CHARTS = (
    Panel(
        "Largest entry of S off the diagonal",
        "over the largest on it",
        {"memorising": "memorising.off", "one shared unit": "shared.off"},
        "S is diagonal to rounding for memorising solutions, and for one unit that two examples share.",
        y_range=(-0.05, 1.1),
    ),
    Panel(
        "Does it memorise?",
        "1 if no two examples share a unit",
        {"one shared unit": "shared.memorises"},
        "Solutions with one shared unit do not memorise, though their S is diagonal.",
        level=1.0,
        level_name="theorem 3.4, ⇐",
        y_range=(-0.05, 1.1),
    ),
)
plan = partial(one_part, work=measure_diagonals)
SCALES = {
    "smoke": Scale((0, 1, 2), 0.1, {"num": 10, "dim": 30}),
    "full": Scale(tuple(range(20)), 0.1, {"num": 100, "dim": 100}, levels=True),
}
EXPERIMENT = Experiment(
    key="chang2025/theorem3.4",
    title="Theorem 3.4: memorising solutions and diagonal coherence matrices",
    claim="A solution memorises if and only if its coherence matrix is diagonal.",
    plan=plan,
    primary=("⇒", "⇐"),
    claims=CLAIMS,
    scales=SCALES,
    charts=CHARTS,
    errata=(
        "⇒ holds, and is what the paper uses. ⇐ is false: the gradients of two examples that share a unit can be "
        "orthogonal (chang2025/mistake6).",
    ),
)
