"""Theorem 3.1: SGD with random perturbation diverges where SGD does."""

from collections.abc import Sequence
from functools import partial
from math import log10
from typing import TYPE_CHECKING

from evenly.papers.chang2025.random_sets import ROUNDING, in_every_set, random_set, violations
from evenly.papers.chang2025.seeds import by_seed, one_part
from evenly.papers.charts import Panel
from evenly.papers.experiment import Context, Experiment, PartResult, Scale

if TYPE_CHECKING:
    from torch import Tensor

    from evenly.stability.problem import Problem

NOISE = 0.1
CLAIMS = (
    in_every_set("criterion", "The criterion's η is not below the exact one"),
    in_every_set(
        "bounded",
        "At half of the exact threshold E‖w‖² settles at its closed form",
        note="within 10%, for the Monte Carlo error",
    ),
    in_every_set("hovers", "There E‖w‖² stays above that of SGD, which vanishes"),
    in_every_set(
        "speed",
        "Above, it grows as fast as SGD: their ratio settles",
        note="log₁₀ of the ratio changes by at most 0.01 while the steps double, by the exact recursion",
    ),
)


def perturb_randomly(
    context: Context, *, seeds: Sequence[int], num: int, dim: int, batch: int, steps: int, repeats: int
) -> PartResult:
    """At half of the exact threshold the noisy method hovers, above it both methods grow alike."""
    import torch

    from evenly.papers.chang2025.decimal_log import decimal_log
    from evenly.rng import generator
    from evenly.stability.criteria import chang_theorem_3_1
    from evenly.stability.mean_square import mean_square_threshold
    from evenly.stability.simulation import simulate
    from evenly.stability.stationary import stationary_covariance

    def one(seed: int) -> dict[str, float]:
        rng = generator(seed, "theorem 3.1")
        problem = random_set(rng, num=num, dim=dim)
        exact = mean_square_threshold(problem, batch=batch)
        start_KR = torch.nn.functional.normalize(
            torch.randn(repeats, problem.rank, generator=rng, dtype=torch.float64), dim=1
        )
        runs = simulate(
            problem,
            lr=exact / 2,
            batch=batch,
            noise=[0.0, NOISE],
            rng=rng,
            steps=steps,
            repeats=repeats,
            moments=[steps],
            start_KR=start_KR,
        )
        sizes_L = (2 * runs.log_growth_LKT[..., 0]).exp().mean(1)
        sgd, noisy = decimal_log(sizes_L).tolist()
        cloud = stationary_covariance(problem, lr=exact / 2, batch=batch, noise=NOISE).mean_square
        early, late = (noise_share(problem, lr=1.5 * exact, batch=batch, steps=n) for n in (steps, 2 * steps))
        return check(
            criterion_over_exact=chang_theorem_3_1(problem, batch=batch).lr / exact,
            ratio=10**noisy / cloud,
            random=noisy,
            sgd=sgd,
            drift=late - early,
        )

    return by_seed(seeds, one)


def check(*, criterion_over_exact: float, ratio: float, random: float, sgd: float, drift: float) -> dict[str, float]:
    """What the theorem says of one set; `random` and `sgd` are log₁₀ E‖w‖² at half of the exact threshold."""
    held = {
        "criterion": criterion_over_exact >= 1 - ROUNDING,
        "bounded": abs(ratio - 1) <= 0.1,  # what the Monte Carlo error asks for
        "hovers": random > sgd,
        "speed": abs(drift) <= 0.01,
    }
    return {
        "criterion_over_exact": criterion_over_exact,
        "below.ratio": ratio,
        "below.random": random,
        "below.sgd": sgd,
        "above.drift": drift,
        **violations(held),
    }


def noise_share(problem: "Problem", *, lr: float, batch: int, steps: int) -> float:
    """log₁₀ of E‖w‖² with random perturbation over E‖w‖² without, after `steps`, by the exact recursion from M = I."""
    import torch

    from evenly.stability.sampling import second_moment

    c1, c2 = second_moment("bernoulli", num_examples=problem.num_examples, batch=batch)
    lam_R = problem.eigenvalues_R
    eye_RR = torch.eye(problem.rank, dtype=torch.float64)

    def second_moment_map(m_RR: "Tensor") -> "Tensor":
        return c1 * lam_R[:, None] * m_RR * lam_R + c2 * problem.curvatures.sandwich(m_RR)

    force_RR = (lr * NOISE) ** 2 * second_moment_map(eye_RR)
    plain, noisy = eye_RR, eye_RR
    for _ in range(steps):
        plain = plain - lr * (lam_R[:, None] + lam_R) * plain + lr**2 * second_moment_map(plain)
        noisy = noisy - lr * (lam_R[:, None] + lam_R) * noisy + lr**2 * second_moment_map(noisy) + force_RR
        size = float(plain.trace())  # both are linear in the start and the force: a common scale changes no ratio
        plain, noisy, force_RR = plain / size, noisy / size, force_RR / size
    return log10(float(noisy.trace()) / float(plain.trace()))


CHARTS = (
    Panel(
        "Criterion and cloud",
        "ratio",
        {"criterion / exact η": "criterion_over_exact", "simulated / closed form E‖w‖²": "below.ratio"},
        "The criterion's η is {criterion_over_exact:.2f} times the exact one; at half of that E‖w‖² is "
        "{below.ratio:.3f} times its closed form.",
        level=1.0,
        level_name="stated",
    ),
    Panel(
        "At half of the exact threshold",
        "log₁₀ E‖w‖² at the end",
        {"SGD": "below.sgd", "random perturbation": "below.random"},
        "SGD vanishes (log₁₀ E‖w‖² = {below.sgd:.1f}), random perturbation hovers ({below.random:.1f}).",
    ),
)
EXPERIMENT = Experiment(
    key="chang2025/theorem3.1",
    title="Theorem 3.1: random perturbation",
    claim="Random perturbation diverges where SGD does; below, its iterates stay bounded and do not vanish.",
    plan=partial(one_part, work=perturb_randomly, num=20, dim=4, batch=4),
    primary=("criterion", "bounded", "hovers"),
    claims=CLAIMS,
    scales={
        "smoke": Scale((0, 1, 2), 0.1, {"steps": 100, "repeats": 200}),
        "full": Scale(tuple(range(20)), 4, {"steps": 2000, "repeats": 2000}, levels=True),
    },
    charts=CHARTS,
)
