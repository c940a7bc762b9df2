"""The runs that a part trains, as jobs of their own: several processes share the work of one seed.

A part that compares methods or sweeps over settings would train its networks one after the other. Its runs are planned
before it, as `evenly compare` plans them; the part then finds them done and only measures them.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from evenly.papers.experiment import Context, Part
from evenly.papers.train_and_measure import train_useful
from evenly.recipe import Recipe, Until
from evenly.sweep.plan import Job
from evenly.typed import from_mapping


def num_runs(part: Part) -> int:
    """How many runs of a part can be trained at once, without planning them: that would import torch.

    >>> num_runs(Part("sgd 0", "train_and_measure:train_useful", {"controls": ["original", "random"]}))
    3
    """
    if part.address not in _PLANNERS:
        return 1
    given = part.arguments
    if "rates" in given:
        return len(given["rates"]) * len(given["rhos"])
    return sum(1 + len(each.get("controls", ("original",))) for each in given.get("comparisons", [given]))


def runs_of(context: Context, part: Part, *, under: str) -> list[Job]:
    """The runs of a part as jobs whose names begin with `under`; none if the part is one piece of work.

    >>> given = {"recipe": {"data": {"name": "digits"}, "epochs": 2}, "seed": 0, "name": "sgd"}
    >>> part = Part("sgd 0", "train_and_measure:train_useful", given)
    >>> [(job.name, job.needs) for job in runs_of(Context(Path("runs")), part, under="fig7")][1:]
    [('fig7, plain, seed 0', ('fig7, early run, seed 0',)), ('fig7, USEFUL, seed 0', ('fig7, early run, seed 0',))]
    """
    jobs = _PLANNERS[part.address](context, part.arguments) if part.address in _PLANNERS else ()
    return [_rename(under, job) for job in jobs]


def _rename(under: str, job: Job) -> Job:
    return replace(job, name=f"{under}, {job.name}", needs=tuple(f"{under}, {name}" for name in job.needs))


def _comparison(context: Context, arguments: Mapping[str, Any]) -> Iterator[Job]:
    """The early run, USEFUL and its controls, for the arguments of `train_useful`."""
    from evenly.training.comparison import plan_runs
    from evenly.training.design import Design
    from evenly.training.useful import useful_methods

    bound = inspect.signature(train_useful).bind(context, **arguments)
    bound.apply_defaults()
    given = bound.arguments
    design = Design(
        from_mapping(Recipe, given["recipe"]),
        methods=useful_methods(given["controls"]),
        seeds=(given["seed"],),
        until=from_mapping(Until, given["until"]) if given["until"] else Until("gain"),
        factor=given["factor"],
    )
    running = {"data_root": context.data_root}
    yield from plan_runs(design, split=given["split"], refuse=True, running=running).values()


def _comparisons(context: Context, arguments: Mapping[str, Any]) -> Iterator[Job]:
    """Comparisons that share runs: a job whose run another one is training waits for it."""
    for each in arguments["comparisons"]:
        yield from (_rename(each["name"], job) for job in _comparison(context, each))


def _sweep(context: Context, arguments: Mapping[str, Any]) -> Iterator[Job]:
    """A run for every learning rate and ρ."""
    shared = {name: arguments.get(name) for name in ("recipe", "seed", "weights")} | {"data_root": context.data_root}
    for lr in arguments["rates"]:
        for rho in arguments["rhos"]:
            given = {**shared, "lr": lr, "rho": rho}
            yield Job(f"lr = {lr:g}, ρ = {rho:g}", "evenly.papers.part_runs:train_setting", given)


def train_setting(
    runs: str,
    *,
    recipe: Mapping[str, Any],
    data_root: str | None,
    lr: float,
    rho: float,
    seed: int,
    weights: str | None,
) -> None:
    """One run of a sweep, as a job of a plan."""
    from evenly.papers.springer2024.image_training import train_network

    train_network(Context(Path(runs), data_root), recipe, lr=lr, rho=rho, seed=seed, weights=weights)


_PLANNERS: Mapping[str, Callable[[Context, Mapping[str, Any]], Iterator[Job]]] = {
    "train_and_measure:train_useful": _comparison,
    "nguyen2024.fig8:forgetting_scores": _comparison,
    "nguyen2024.comparisons:train_in_turn": _comparisons,
    "springer2024.table1:sweep_errors": _sweep,
}
