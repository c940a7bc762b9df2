"""Theorem 3.3: a set on which SAM's mean-square stability is known exactly."""

from collections.abc import Sequence
from functools import partial
from math import exp, lgamma, log

from evenly.papers.chang2025.random_sets import ROUNDING, in_every_set, violations
from evenly.papers.chang2025.seeds import by_seed, one_part
from evenly.papers.charts import Panel
from evenly.papers.experiment import Context, Experiment, PartResult, Scale

CLAIMS = (
    in_every_set("at", "E[J²] is 1 at the stated learning rate", note="to 1e-9"),
    in_every_set("below", "and below 1 at 99% of it"),
    in_every_set("above", "and above 1 at 101% of it"),
    in_every_set("exact", "Our exact threshold is the stated one", note="to 1e-9"),
)


def count_batches(context: Context, *, seeds: Sequence[int]) -> PartResult:
    """E[J²] on the theorem's set by counting batches, at the stated learning rate and 1% beside it."""
    import torch

    from evenly.rng import generator
    from evenly.stability.criteria import chang_theorem_3_3
    from evenly.stability.mean_square import mean_square_threshold
    from evenly.stability.problem import Problem

    def one(seed: int) -> dict[str, float]:
        rng = generator(seed, "theorem 3.3")
        num = int(torch.randint(10, 101, (), generator=rng))
        sigma, batch = (int(torch.randint(1, num, (), generator=rng)) for _ in range(2))
        lambda_1, ratio = (0.1 + 3 * torch.rand(2, generator=rng, dtype=torch.float64)).tolist()
        stated = chang_theorem_3_3(lambda_1, sigma=sigma, num_examples=num, batch=batch, rho_over_alpha=ratio).lr
        curvature = lambda_1 * num / sigma
        shared = Problem.from_diagonal((torch.arange(num)[:, None] < sigma).double() * curvature)
        exact = mean_square_threshold(shared, batch=batch, rho_over_alpha=ratio)
        pull = curvature * (1 + ratio * lambda_1) / batch
        at = [mean_square_step(stated * factor * pull, sigma, batch / num) for factor in (0.99, 1.0, 1.01)]
        return check(below=at[0], at=at[1], above=at[2], exact_over_stated=exact / stated)

    return by_seed(seeds, one)


def check(*, below: float, at: float, above: float, exact_over_stated: float) -> dict[str, float]:
    """What the theorem says of one set."""
    held = {
        "below": below < 1,
        "at": abs(at - 1) <= ROUNDING,
        "above": above > 1,
        "exact": abs(exact_over_stated - 1) <= ROUNDING,
    }
    return {"below": below, "at": at, "above": above, "exact_over_stated": exact_over_stated, **violations(held)}


def mean_square_step(pull: float, sigma: int, rate: float) -> float:
    """E[(1 − pull·k)²] for k ~ Binomial(σ, rate), term by term."""
    total = 0.0
    for k in range(sigma + 1):
        choose = lgamma(sigma + 1) - lgamma(k + 1) - lgamma(sigma - k + 1)
        total += exp(choose + k * log(rate) + (sigma - k) * log(1 - rate)) * (1 - pull * k) ** 2
    return total


CHARTS = (
    Panel(
        "E[J²] by counting batches",
        "E[J²]",
        {"99%": "below", "100%": "at", "101%": "above"},
        "E[J²] is below 1 at 99% of the stated learning rate, 1 at it, and above 1 at 101%.",
        level=1.0,
    ),
)
EXPERIMENT = Experiment(
    key="chang2025/theorem3.3",
    title="Theorem 3.3: a set on which stability is known exactly",
    claim="On H_i = m e₁e₁ᵀ for i ≤ σ SAM is stable exactly where λ₁(1 + (ρ/α)λ₁) < (2σ/η)/(n/B − 1 + σ).",
    plan=partial(one_part, work=count_batches),
    primary=("at", "below", "above"),
    claims=CLAIMS,
    scales={"smoke": Scale((0, 1, 2), 0.1), "full": Scale(tuple(range(100)), 0.1, levels=True)},
    charts=CHARTS,
    errata=("The proof's E[(JᵀJ)^2k] is (E JᵀJ)^k (chang2025/mistake10); the result is right.",),
)
