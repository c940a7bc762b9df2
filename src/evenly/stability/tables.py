"""Tables as plain rows: the solutions side by side, and a run's learning rate beside the thresholds."""

from collections.abc import Sequence
from typing import Any, TypedDict, Unpack

import torch
from torch import Tensor

from evenly.errors import UsageError
from evenly.stability.coherence_matrix import coherence
from evenly.stability.criteria import all_criteria, chang_theorem_3_2, coherence_criterion
from evenly.stability.mean_square import check_lr, mean_square_threshold
from evenly.stability.problem import Problem
from evenly.stability.sampling import Sampling
from evenly.stability.solutions import Solution, feature_solution, memorising_solution

MEMORISING = "memorising"
NO_CRITERIA = "The papers' criteria are left out: they need a batch that is no larger than the data."


class Settings(TypedDict, total=False):
    """The keywords of `mean_square_threshold` that a report takes."""

    sampling: Sampling
    momentum: float
    nesterov: bool
    dampening: float
    weight_decay: float
    decoupled: bool


def solutions_table(
    c_values: Sequence[int],
    *,
    rng: torch.Generator,
    d: int = 100,
    n: int = 100,
    batch: int = 10,
    rho_over_alpha: float = 0.1,
) -> list[dict[str, Any]]:
    """A row per (C, r)-solution, and one for the memorising solution, on n examples drawn from {±1}^d.

    `eta_criterion` is the coherence criterion (Dexter et al., 2024), equal for every C; `eta_exact` the mean-square
    threshold, which rises with C: at equal trace the coherent solution is the less stable one. The SAM columns are the
    same in SAM's coordinates; `eta_theorem_3_2` is the paper's own bound for SAM.

    >>> rows = solutions_table([2, 3], rng=torch.Generator().manual_seed(0), d=10, n=30, batch=5)
    >>> [row["c"] for row in rows], len({round(row["eta_criterion"], 9) for row in rows})
    ([2, 3, 'memorising'], 1)
    """
    solutions: list[tuple[int | str, Solution]] = [(c, feature_solution(c, dim=d)) for c in c_values]
    if n < 1:
        raise UsageError(f"n = {n}: give at least one example.")
    x_ND = _distinct_cube(n, d, rng)
    solutions.append((MEMORISING, memorising_solution(x_ND)))
    return [
        {"c": c, **_row(solution.problem(x_ND), batch=batch, rho_over_alpha=rho_over_alpha)}
        for c, solution in solutions
    ]


def threshold_report(
    gram: Tensor | Problem,
    *,
    batch: int,
    lr: float | None = None,
    rho_over_alpha: float = 0.0,
    gradient_norm: float | None = None,
    residual: float | None = None,
    **method: Unpack[Settings],
) -> dict[str, Any]:
    """A learning rate beside the criteria for SGD and, with ρ/α > 0, for SAM; plain values throughout.

    The published criteria are for plain SGD, and for SAM that ascends on all examples. With `momentum`, `weight_decay`
    or another `sampling` (as for `mean_square_threshold`) the method that has them follows, with its exact threshold.

    Without `lr` the report holds the thresholds only. An `eta` of None is infinite: JSON has no infinity.
    `gradient_norm` and `residual` (the largest |∂loss/∂output|), where they are known, say how near to a minimum the
    network is: `notes` warns where it is not near.

    >>> report = threshold_report(torch.eye(4), batch=2, lr=0.1)
    >>> report["methods"]["SGD"]["eta_exact"], report["methods"]["SGD"]["stands"]
    (4.0, 'stable: lr is 0.025 of the exact threshold')
    """
    if lr is not None:
        check_lr(lr)
    problem = gram if isinstance(gram, Problem) else Problem.from_gram(gram)
    ratios = {"SGD": 0.0} | ({f"SAM ρ/α={rho_over_alpha:g}": rho_over_alpha} if rho_over_alpha else {})
    repeated = batch > problem.population and method.get("sampling") == "with"
    methods = {}
    if not repeated:
        methods = {name: criteria_rows(problem, batch=batch, lr=lr, ratio=ratio) for name, ratio in ratios.items()}
    words = _words(method)
    if rho_over_alpha:
        ratios[f"SAM ρ/α={rho_over_alpha:g} on its own batch"] = rho_over_alpha
    for name, ratio in ratios.items():
        own = name.endswith("batch")
        if words or own:
            eta = mean_square_threshold(
                problem, batch=batch, rho_over_alpha=ratio, ascent="batch" if own else "full", **method
            )
            methods[", ".join([name, *words])] = exact_row(problem, eta, lr)
    notes = [
        f"{row['name']}: {note}." for method in methods.values() for row in method["criteria"] for note in row["notes"]
    ]
    notes += [NO_CRITERIA] * repeated + minimum_note(gradient_norm, residual, problem.lambda_max)
    return {
        "num_examples": problem.num_examples,
        "batch": batch,
        "lr": lr,
        "rho_over_alpha": rho_over_alpha,
        "trace": problem.trace,
        "lambda_max": problem.lambda_max,
        "rank": problem.rank,
        "gradient_norm": gradient_norm,
        "residual": residual,
        "methods": methods,
        "notes": list(dict.fromkeys(notes)),
    }


def exact_row(problem: Problem, eta: float, lr: float | None, *, approximate: bool = False) -> dict[str, Any]:
    """A row for a method with an exact threshold but no published criteria, in the format of `criteria_rows`."""
    return {
        "lambda_max": problem.lambda_max,
        "largest_example": float(problem.curvatures.largest().max()),
        "eta_exact": eta,
        "stands": verdict(lr, eta, approximate=approximate),
        "criteria": [
            {
                "name": f"{'approximate' if approximate else 'exact'}, mean square",
                "eta": eta,
                "says": "both",
                "lr_over_eta": None if lr is None else lr / eta,
                "notes": [],
            }
        ],
    }


def _words(method: Settings) -> list[str]:
    """What differs from plain SGD on Bernoulli batches."""
    words = []
    if method.get("sampling", "bernoulli") != "bernoulli":
        words.append(f"{method['sampling']} replacement")
    if method.get("momentum"):
        words.append(f"{'Nesterov ' if method.get('nesterov') else ''}momentum {method['momentum']:g}")
    if method.get("weight_decay"):
        words.append(f"{'decoupled ' if method.get('decoupled') else ''}weight decay {method['weight_decay']:g}")
    return words


def minimum_note(gradient_norm: float | None, residual: float | None, lambda_max: float) -> list[str]:
    """A sentence where a network is not at a minimum: ‖∇L‖ above λmax(H)/1000, or a residual above 0.01."""
    if (gradient_norm or 0) <= 1e-3 * lambda_max and (residual or 0) <= 1e-2:
        return []
    return [
        f"The network is not at a minimum ({_name_and_value('gradient norm', gradient_norm)}, "
        f"{_name_and_value('largest residual', residual)}). Linear stability is about minima: train longer, or read "
        "these thresholds as those of the model linearised here."
    ]


def verdict(lr: float | None, threshold: float, *, approximate: bool = False) -> str:
    """Whether a learning rate is stable, as a phrase.

    >>> verdict(0.1, 0.4)
    'stable: lr is 0.25 of the exact threshold'
    """
    if lr is None:
        return f"stable in mean square below lr = {threshold:.3g}"
    word = "stable" if lr < threshold else "unstable in mean square"
    return f"{word}: lr is {lr / threshold:.3g} of the {'approximate' if approximate else 'exact'} threshold"


def _name_and_value(name: str, value: float | None) -> str:
    return f"{name} unknown" if value is None else f"{name} {float(f'{value:.3g}')}"


def criteria_rows(problem: Problem, *, batch: int, lr: float | None, ratio: float = 0.0) -> dict[str, Any]:
    """Every published criterion for SGD (or SAM on all examples, for ρ/α > 0) beside the exact threshold.

    σ and λmax(S) are those of the whole training set, as the criteria take them: they grow with its examples.
    """
    measures = coherence(problem, rho_over_alpha=ratio)
    whole = problem.population / problem.num_examples
    criteria = all_criteria(problem, batch=batch, rho_over_alpha=ratio)
    exact = criteria[-1].lr
    return {
        "lambda_max": measures.lambda_max,
        "largest_example": measures.largest_example,
        "lambda_max_s": None if measures.lambda_max_s is None else whole * measures.lambda_max_s,
        "sigma": None if measures.sigma is None else whole * measures.sigma,
        "sigma_without_root": whole * measures.sigma_without_root,
        "eta_exact": exact,
        "stands": verdict(lr, exact),
        "criteria": [
            {
                "name": c.name,
                "eta": _plain(c.lr),
                "says": c.says,
                "lr_over_eta": None if lr is None else lr / c.lr,
                "notes": list(c.notes),
            }
            for c in criteria
        ],
    }


def _row(problem: Problem, *, batch: int, rho_over_alpha: float) -> dict[str, Any]:
    here, there = coherence(problem), coherence(problem, rho_over_alpha=rho_over_alpha)
    return {
        "trace": problem.trace,
        "lambda_max": here.lambda_max,
        "sigma": here.sigma,
        "eta_criterion": _plain(coherence_criterion(problem, batch=batch).lr),
        "eta_exact": mean_square_threshold(problem, batch=batch),
        "rho_over_alpha": rho_over_alpha,
        "lambda_max_sam": there.lambda_max,
        "sigma_sam": there.sigma,
        "eta_criterion_sam": _plain(coherence_criterion(problem.sam(rho_over_alpha), batch=batch).lr),
        "eta_theorem_3_2": _plain(chang_theorem_3_2(problem, batch=batch, rho_over_alpha=rho_over_alpha).lr),
        "eta_exact_sam": mean_square_threshold(problem, batch=batch, rho_over_alpha=rho_over_alpha),
    }


def _plain(lr: float) -> float | None:
    """None for an infinite learning rate (a full batch): JSON has no infinity."""
    return lr if lr < float("inf") else None


def _distinct_cube(n: int, d: int, rng: torch.Generator) -> Tensor:
    """Distinct points of {±1}^d, n of them; equal draws, likely for small d only, are drawn again."""
    if d < 2 or n > 2**d // 2:
        raise UsageError(f"d = {d}, n = {n}: give d of at least 2, and n at most half of the 2^d points of the cube.")
    points = torch.empty(0, d, dtype=torch.float64)
    while len(points) < n:
        more = 2.0 * torch.randint(2, (n, d), generator=rng).double() - 1
        pool = torch.cat([points, more])
        _, where = pool.unique(dim=0, return_inverse=True)  # type: ignore[no-untyped-call]  # untyped in torch
        first = torch.zeros(int(where.max()) + 1, dtype=torch.int64).scatter_reduce(
            0, where, torch.arange(len(pool)), "amin", include_self=False
        )
        points = pool[first.sort().values][:n]
    return points
