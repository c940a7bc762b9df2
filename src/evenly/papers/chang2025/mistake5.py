"""Correction 5: λmin(H) is 0 where there are more parameters than examples."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from evenly.papers.chang2025.feature_solutions import cube
from evenly.papers.chang2025.seeds import by_seed, one_part
from evenly.papers.charts import Panel
from evenly.papers.claim import Claim
from evenly.papers.experiment import Context, Experiment, PartResult, Scale

if TYPE_CHECKING:
    from torch import Tensor

    from evenly.stability.solutions import Solution

CLAIMS = (
    Claim("stricter", "Theorem 3.2's η is below SGD's", "theorem.lr < sgd.lr"),
    Claim("C.9", "An ε > 0 is below ηλ(1 + (ρ/α)λ) for every λ of H", "epsilon > 0"),
    Claim(
        "singular", "For singular H theorem 3.2's η is SGD's", "theorem.lr = sgd.lr ± 1e-9", corrects=True, after=True
    ),
    Claim("range", "On the range of H it is below", "range.theorem.lr < sgd.lr", corrects=True),
    Claim("range, C.9", "and there is such an ε", "range.epsilon > 0", corrects=True),
)


def compare_ranges(
    context: Context, *, seeds: Sequence[int], c: int, dim: int, num: int, batch: int, ratio: float
) -> PartResult:
    """Theorem 3.2 and C.9's ε with the smallest eigenvalue of all of H, and with that on its range."""
    import torch

    from evenly.rng import generator
    from evenly.stability.criteria import coherence_criterion
    from evenly.stability.solutions import feature_solution

    def one(seed: int) -> dict[str, float]:
        x_ND = cube(generator(seed, "singular"), num=num, dim=dim)
        solution = feature_solution(c, dim=dim)
        gradients_NP = gradients(solution, x_ND)
        h_PP = gradients_NP.mT @ gradients_NP / num
        problem = solution.problem(x_ND)
        smallest = round(float(torch.linalg.eigvalsh(h_PP)[0]), 9)
        sgd = round(coherence_criterion(problem, batch=batch).lr, 9)
        numbers = {"sgd.lr": sgd, "smallest": smallest, "range.smallest": problem.lambda_min}
        for where, lam in (("", smallest), ("range.", problem.lambda_min)):
            numbers[f"{where}theorem.lr"] = sgd / (1 + ratio * lam)
            numbers[f"{where}epsilon"] = sgd * lam * (1 + ratio * lam)
        return numbers

    return by_seed(seeds, one)


def gradients(solution: "Solution", x_ND: "Tensor") -> "Tensor":
    """∇f(xᵢ) in all parameters, N × P."""
    import torch

    hidden_NM = solution.hidden(x_ND)
    outer_NM = solution.w2_M * (hidden_NM > 0)
    in_w1 = (outer_NM[:, :, None] * x_ND[:, None]).flatten(1)
    return torch.cat([hidden_NM.relu(), in_w1, outer_NM], 1)


CHARTS = (
    Panel(
        "Critical learning rates",
        "η",
        {"SGD": "sgd.lr", "theorem 3.2": "theorem.lr", "on the range of H": "range.theorem.lr"},
        "H is singular and theorem 3.2 is SGD's criterion, {theorem.lr:.4f}; on the range of H, where λmin = "
        "{range.smallest:.2g}, it is {range.theorem.lr:.4f}.",
    ),
)
EXPERIMENT = Experiment(
    remark=True,
    key="chang2025/mistake5",
    title="Correction 5: λmin(H) is 0 where there are more parameters than examples",
    claim="For singular H theorem 3.2 is SGD's criterion and C.9 cannot hold; on the range of H both are right.",
    plan=partial(one_part, work=compare_ranges, c=2, batch=4, ratio=0.5),
    primary=("singular", "range", "range, C.9"),
    claims=CLAIMS,
    scales={
        "smoke": Scale((0, 1, 2), 0.1, {"dim": 8, "num": 12}),
        "full": Scale(
            tuple(range(20)), 0.1, {"dim": 20, "num": 40}, levels=True, deviations=("C = 2, d = 20, n = 40, ρ/α = 0.5",)
        ),
    },
    charts=CHARTS,
    errata=("The paper: SAM's threshold is below SGD's by 1 + (ρ/α)λmin(H), and an ε > 0 of theorem C.9 exists.",),
)
