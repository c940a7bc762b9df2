"""A trained run's learning rate beside the stability thresholds of its optimizer."""

from collections.abc import Sequence
from math import exp, log
from typing import Any

import torch
from torch import nn

from evenly.curvature.losses import Name
from evenly.data.labelled import Labelled
from evenly.intervals import interval
from evenly.stability.batch_gradients import mean_gradient_norm, mean_square_gradient
from evenly.stability.mean_square import check_lr, mean_square_threshold
from evenly.stability.method import Method
from evenly.stability.networks import RANK, nearness, network_problem
from evenly.stability.problem import Problem
from evenly.stability.recipe_method import RunMethod
from evenly.stability.same_batch import ALL_PAIRS
from evenly.stability.sampling import Sampling, check_batch, second_moment
from evenly.stability.scaled_model import ScaledModel
from evenly.stability.tables import NO_CRITERIA, criteria_rows, exact_row, minimum_note

_DRAWN = {"without": " without replacement", "with": " with replacement", "bernoulli": " of each example"}
_RESHUFFLED = ", and reshuffled epochs have another threshold: 0.94 to 1.46 times this one on small sets"


def run_report(
    model: nn.Module,
    train: Labelled,
    parts: Sequence[Labelled],
    method: RunMethod,
    *,
    lr: float,
    rng: torch.Generator,
    loss: Name | None = None,
    rank: int = RANK,
) -> dict[str, Any]:
    """The exact threshold of `method` on each of several random parts of the training set, and the published criteria.

    Means over examples are taken over a part; the noise is that of batches from the whole set, c₁ and c₂ with n =
    len(train). With several parts the threshold is their geometric mean, with a 95 % t-interval of the logarithms.
    """
    check_lr(lr)
    settings: Method = {**method.settings}
    sampling = settings.get("sampling", "bernoulli")
    check_batch(sampling, num_examples=len(train), batch=method.batch)
    drawn = f"Batches are taken as independent draws{_DRAWN[sampling]}; the run went through all examples once an epoch"
    notes = [*method.notes, f"{drawn}{_RESHUFFLED if method.batch < len(train) else ''}."]
    alpha, again = None, sampling == "with"
    if method.rho is not None:
        group = settings.get("m") or method.batch
        alpha = mean_gradient_norm(model, train, batch=group, rng=rng, loss=loss, replacement=again)
        if alpha == 0:
            notes.append("Every gradient is 0 here: ρ/α has no value, and SAM is judged as its optimizer alone.")
        settings["rho_over_alpha"] = method.rho / alpha if alpha else 0.0
    judged = model
    if method.adam_eps is not None:
        moments_P = mean_square_gradient(model, train, batch=method.batch, rng=rng, loss=loss, replacement=again)
        judged = ScaledModel(model, moments_P.sqrt() + method.adam_eps)
    problems = [_problem(judged, part, train, loss, rank) for part in parts]
    etas = [mean_square_threshold(problem, batch=method.batch, **settings) for problem in problems]
    spread = interval([log(eta) for eta in etas])  # of logarithms: a threshold is positive
    eta = exp(spread.mean)
    plain = problems if judged is model else [_problem(model, parts[0], train, loss, rank)]
    near = nearness(model, parts[0], loss=loss)
    notes += [*_part_notes(train, parts, etas), *_truncation_notes(problems[0], method.batch, sampling)]
    notes += _crossing_notes(problems[0], etas[0], method.batch, settings)
    notes += minimum_note(near.gradient_norm, near.residual, plain[0].lambda_max)
    own = exact_row(problems[0], eta, lr, approximate=method.adam_eps is not None)
    own["eta_interval"] = [exp(spread.low), exp(spread.high)] if len(etas) > 1 else None
    methods = {method.name: own}
    if method.batch <= len(train):
        methods = _beside_criteria(method, own, plain[0], lr=lr)
    else:
        notes.append(NO_CRITERIA)
    return {
        "num_examples": len(parts[0]),
        "population": len(train),
        "draws": len(parts),
        "batch": method.batch,
        "lr": lr,
        "sampling": sampling,
        "rho_over_alpha": settings.get("rho_over_alpha", 0.0),
        "mean_gradient_norm": alpha,
        "trace": plain[0].trace,
        "lambda_max": plain[0].lambda_max,
        "rank": plain[0].rank,
        "gradient_norm": near.gradient_norm,
        "residual": near.residual,
        "methods": methods,
        "notes": [f"Model of the optimizer: {method.name}.", *dict.fromkeys(notes)],
    }


def _beside_criteria(method: RunMethod, own: dict[str, Any], plain: Problem, *, lr: float) -> dict[str, Any]:
    """The exact row of the run's method, with the papers' criteria for plain SGD in it or beside it."""
    is_sgd = method.name == "SGD"
    papers = criteria_rows(plain, batch=method.batch, lr=lr if is_sgd else None)
    if not papers:
        return {method.name: own}
    if is_sgd:
        return {"SGD": {**papers, **own, "criteria": [*papers["criteria"][:-1], *own["criteria"]]}}
    papers["stands"] = "not this run's optimizer; the criteria of the papers are for it"
    return {method.name: own, "plain SGD": papers}


def _problem(model: nn.Module, part: Labelled, train: Labelled, loss: Name | None, rank: int) -> Problem:
    return network_problem(model, part, loss=loss, rank=rank).part_of(len(train))


def _part_notes(train: Labelled, parts: Sequence[Labelled], etas: Sequence[float]) -> list[str]:
    if len(parts[0]) == len(train):
        return []
    share = f"{len(parts[0])} of {len(train)} training examples; the noise is that of batches from all of them"
    if len(parts) == 1:
        return [f"One draw of {share}. --draws 3 gives an interval."]
    return [
        f"Geometric mean of {len(parts)} draws of {share}; single draws gave {', '.join(f'{e:.3g}' for e in etas)}."
    ]


def _crossing_notes(problem: Problem, eta: float, batch: int, settings: Method) -> list[str]:
    rows = problem.num_examples * problem.curvatures.width
    if settings.get("ascent") != "batch" or not settings.get("rho_over_alpha") or rows <= ALL_PAIRS:
        return []
    other: Method = {**settings, "crossing": "lower"}
    share = mean_square_threshold(problem, batch=batch, **other) / eta - 1
    return [
        f"One fourth moment of same-batch SAM is bounded, not computed: the threshold is at most {share:.2g} of itself "
        "too low for that."
    ]


def _truncation_notes(problem: Problem, batch: int, sampling: Sampling) -> list[str]:
    lost = problem.truncation
    if lost is None:
        return []
    c1, c2 = second_moment(sampling, num_examples=problem.population, batch=batch)
    plain = mean_square_threshold(problem, batch=batch, sampling=sampling)
    share = 1 - lost.least_threshold(plain, c1=c1, c2=c2) / plain
    return [
        f"Curvature is kept in its {problem.rank} leading directions: plain SGD's threshold is at most {share:.2g} of "
        "itself too high for that, and other optimizers' about as much."
    ]
