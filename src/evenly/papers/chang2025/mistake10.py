"""Correction 10: two slips of the appendix, in the construction of (C, r)-solutions and in the proof of theorem 3.3."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from evenly.papers.chang2025.seeds import by_seed, one_part
from evenly.papers.charts import Panel
from evenly.papers.claim import Claim
from evenly.papers.experiment import Context, Experiment, PartResult, Scale

if TYPE_CHECKING:
    from torch import Tensor

    from evenly.stability.solutions import Solution

CLAIMS = (
    Claim("k > C", "With rows k > C zero the solution fits (misfits, %)", "rows.printed = 0"),
    Claim("C.13", "E[(JᵀJ)^2k] is the moment (relative error)", "moment.printed = 0 ± 1e-9"),
    Claim("k > 2^C", "With rows k > 2^C zero it fits", "rows.meant = 0", corrects=True),
    Claim("(E JᵀJ)^k", "(E JᵀJ)^k is the moment", "moment.meant = 0 ± 1e-9", corrects=True),
)


def compare_slips(context: Context, *, seeds: Sequence[int]) -> PartResult:
    """Both statements, as printed and as meant; misfits in percent of the cube."""
    from itertools import product

    import torch

    from evenly.rng import generator
    from evenly.stability.solutions import feature_solution

    cube_ND = torch.tensor(list(product([1.0, -1.0], repeat=5)), dtype=torch.float64)

    def one(seed: int) -> dict[str, float]:
        rng = generator(seed, "mistake 10")
        c = int(torch.randint(2, 6, (), generator=rng))
        whole = feature_solution(c, dim=5, width=40, r=1.0)
        j = 2 * torch.rand(4, generator=rng, dtype=torch.float64) - 1  # values of J in one direction, equally likely
        k = int(torch.randint(1, 4, (), generator=rng))
        moment = product_moment(j, k)
        return {
            "rows.printed": misfit(first_rows(whole, c), cube_ND),
            "rows.meant": misfit(first_rows(whole, 2**c), cube_ND),
            "moment.printed": abs(float(j.square().pow(2 * k).mean()) / moment - 1),
            "moment.meant": abs(float(j.square().mean()) ** k / moment - 1),
        }

    return by_seed(seeds, one)


def first_rows(solution: "Solution", num: int) -> "Solution":
    """The solution with all rows after the first `num` put to zero."""
    import torch

    from evenly.stability.solutions import Solution

    kept_M = torch.arange(len(solution.b_M)) < num
    return Solution(solution.w1_MD * kept_M[:, None], solution.b_M * kept_M, solution.w2_M * kept_M)


def misfit(solution: "Solution", x_ND: "Tensor") -> float:
    """How many examples it does not fit, in percent."""
    return 100 * float(((solution(x_ND) - x_ND[:, 0] * x_ND[:, 1]).abs() > 1e-9).double().mean())


def product_moment(j: "Tensor", k: int) -> float:
    """E[J_1 ⋯ J_k J_k ⋯ J_1] of k independent draws, by listing them all."""
    import torch

    draws = torch.cartesian_prod(*[j] * k).reshape(-1, k)
    return float(draws.prod(1).square().mean())


CHARTS = (
    Panel(
        "Examples that are not fitted",
        "% of the cube",
        {"k > C": "rows.printed", "k > 2^C": "rows.meant"},
        "As printed {rows.printed:.0f}% of the cube are not fitted, as meant none.",
    ),
    Panel(
        "Moment of a product of k Jacobians",
        "relative error",
        {"E[(JᵀJ)^2k]": "moment.printed", "(E JᵀJ)^k": "moment.meant"},
        "(E JᵀJ)^k is the moment of k independent steps; E[(JᵀJ)^2k] is not.",
    ),
)
EXPERIMENT = Experiment(
    remark=True,
    key="chang2025/mistake10",
    title="Correction 10: two slips of the appendix",
    claim="In the construction “k > C” is k > 2^C, and C.13's E[(JᵀJ)^2k] is (E JᵀJ)^k.",
    plan=partial(one_part, work=compare_slips),
    primary=("k > 2^C", "(E JᵀJ)^k"),
    claims=CLAIMS,
    scales={"smoke": Scale((0, 1, 2), 0.1), "full": Scale(tuple(range(20)), 0.1, levels=True)},
    charts=CHARTS,
    errata=("Withdrawn: this row once named signs in C.1's example. The scan at hand lost them, not the authors.",),
)
